"""What a student sees after getting unit 05 right: their own function on real text and the course's own BERT.

As in rewards.py: a few lines within two seconds, and never a download.
"""

import functools
import math
import re
from collections.abc import Callable
from typing import NamedTuple

import torch

from bert_minimal.heads import PreTraining
from bert_minimal.train import data
from bert_minimal.train.pairs import split_sentences
from bert_minimal.wordpiece import WordPiece
from coursework.cast import CAST, NEXT
from coursework.checks.rewards import if_fetched, shown_on

# Written for this course: a review cut in two, and the second half of another one.
WESTERN = (
    "This western was shot in two weeks, and it shows. The horses act better than the sheriff, and the sheriff knows "
    "it. Half of the film is a man who chews tobacco and looks at the desert."
)
GOES_ON = (
    "Even the saloon looks tired. I fell asleep before the last duel, and when I woke up the same man still chewed "
    "tobacco."
)
CARTOON = (
    "As a mermaid she sings like an angel, and the fish in the choir are very funny. My daughter has watched this "
    "cartoon nine times and knows all the songs by heart."
)


class Course(NamedTuple):
    tokenizer: WordPiece
    model: PreTraining
    weights: dict[str, torch.Tensor]  # named as in exercise 05.5


@functools.cache
def course() -> Course:
    """The package's own checkpoint."""
    folder = data.fetch("course")
    model = PreTraining.from_pretrained(folder).eval()
    pooler = model.bert.pooler
    weights = {"pooler.weight": pooler.weight, "pooler.bias": pooler.bias,
               "classifier.weight": model.nsp_weight, "classifier.bias": model.nsp_bias}  # fmt: skip
    return Course(WordPiece.from_pretrained(folder), model, {name: w.detach() for name, w in weights.items()})


@functools.cache
def two_books() -> list[list[list[str]]] | None:
    """The beginnings of two books as documents of sentences of words, or None if they have not been fetched."""
    names = ("gutenberg/carroll-alice.txt", "gutenberg/melville-moby_dick.txt")
    cache, books = if_fetched(*names), []
    if cache is None:
        return None
    for name in names:
        text = (cache / name).read_text(encoding="utf-8", errors="replace")[3_000:40_000]
        paragraphs = [" ".join(lines.split()) for lines in re.split(r"\n\s*\n", text)[1:-1]]
        books.append([sentence.split() for p in paragraphs for sentence in split_sentences(p)])
    return books


def two_voices(read_documents: Callable) -> None:
    """05.1: how many true neighbours a text has, with empty lines in the right places and in the wrong ones."""
    lines = [(CAST[name], NEXT[name]) for name in CAST]
    right = read_documents("\n\n".join("\n".join(pair) for pair in lines))
    wrong = read_documents("\n\n".join(sentence for pair in lines for sentence in pair))
    print("  What this made possible: a text file becomes documents. Twelve sentences of our cast, by your function:")
    for name, documents in {
        "an empty line after each pair": right,
        "an empty line after every sentence": wrong,
    }.items():
        neighbours = sum(len(document) - 1 for document in documents)
        print(f"    {name:35} {len(documents):2} documents, {neighbours} sentences that have a next")


@shown_on(two_books)
def a_review_in_segments(gather: Callable, books: list) -> None:
    """05.2: how much of a book fills a target."""
    print("  What this made possible: full inputs. The second page of Alice in Wonderland, in words:")
    for target in (10, 60, 250):
        taken = gather(books[0], 3, target)
        print(f"    target {target:>3}: {len(taken):2} sentences, {sum(map(len, taken)):3} words")


@shown_on(two_books)
def a_book_in_pairs(make_pair: Callable, books: list) -> None:
    """05.3: a book cut into pairs from beginning to end; one of each kind shown."""
    start, pairs = 0, []
    while start < len(books[0]) - 1:
        *pair, used = make_pair(books, 0, start, 60)
        pairs.append(pair)
        start += used
    follow = sum(label == 0 for _, _, label in pairs)
    print(f"  What this made possible: questions for a BERT. Alice in {len(pairs)} pairs, {follow} of them IsNext:")
    for wanted, name in enumerate(("IsNext", "NotNext")):
        a, b, _ = next((pair for pair in pairs if pair[2] == wanted), pairs[0])
        print(f"    {name:7}  … {' '.join(a[-1][-7:])}  |  {' '.join(b[0][:7])} …")


@shown_on(two_books)
def a_story_swapped(order_pair: Callable, books: list) -> None:
    """05.4: the same sentences in both orders."""
    chunk, seen = books[0][5:8], {}
    for _ in range(40):
        a, b, label = order_pair(chunk)
        seen.setdefault(label, (a, b))
    print("  What this made possible: ALBERT's question. The same book, the same words, and only the order differs:")
    for label, (a, b) in sorted(seen.items()):
        print(f"    label {label}  {' '.join(a[0][:6])} …  |  {' '.join(b[0][:6])} …")


def _pair(real: Course, a: str, b: str) -> dict[str, torch.Tensor]:
    encoded = real.tokenizer(a, b)
    return {"input_ids": torch.tensor([encoded.input_ids]), "token_type_ids": torch.tensor([encoded.token_type_ids])}


@shown_on(course)
def does_it_follow(nsp_head: Callable, real: Course) -> None:
    """05.5: the student's head on the course's BERT."""
    print("  What this made possible: the course's own BERT says through your head whether B follows A.")
    print(f"    A  {WESTERN[:85]} …")
    for b in (GOES_ON, CARTOON):
        hidden = real.model.bert(**_pair(real, WESTERN, b)).last_hidden_state
        print(f"    B  {b[:62]} …\n       IsNext {nsp_head(hidden, real.weights).softmax(-1)[0, 0]:.0%}")


@shown_on(course)
def how_surprised(nsp_loss: Callable, real: Course) -> None:
    """05.6: the loss of a real answer under each label."""
    from coursework.checks.nsp import nsp_head

    hidden = real.model.bert(**_pair(real, WESTERN, GOES_ON)).last_hidden_state
    scores = nsp_head._reference(hidden, real.weights)
    print("  What this made possible: a number for how well a model knows what follows. A true next, by your function:")
    for label, name in enumerate(("IsNext (right)", "NotNext")):
        print(f"    label {label}, {name:15} loss {float(nsp_loss(scores, torch.tensor([label]))):.2f}")
    print(f"    (Who tosses a coin has ln 2 = {math.log(2):.2f}.)")


@shown_on(course)
def one_step_of_pretraining(pretraining_loss: Callable, real: Course) -> None:
    """05.7: both tasks on one real pair, by a trained model and by one that knows nothing."""
    inputs = _pair(real, WESTERN, GOES_ON)
    labels = torch.full_like(inputs["input_ids"], -100)
    for place in (3, 8, 14, 24, 33):
        labels[0, place] = inputs["input_ids"][0, place]
        inputs["input_ids"][0, place] = real.tokenizer.mask_id
    hidden = real.model.bert(**inputs)
    words = real.model.mlm(hidden.last_hidden_state, real.model.bert.embeddings.word)
    follows = torch.nn.functional.linear(hidden.pooler_output, real.model.nsp_weight, real.model.nsp_bias)
    print("  What this made possible: the number that pre-training makes small. A pair of segments with five blanks:")
    for name, scale in (("knows nothing", 0.0), ("the course's BERT", 1.0)):
        loss = float(pretraining_loss(scale * words, labels, scale * follows, torch.tensor([0])))
        print(f"    {name:18} {loss:5.2f}")
    size = words.size(-1)
    print(f"    (Knowing nothing is ln {size:,} + ln 2 = {math.log(size) + math.log(2):.2f}.)")
