"""What a student sees after getting unit 08 right: their own function on the course's own BERT.

As in rewards.py: a few lines within two seconds, and never a download.
"""

import copy
import functools
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import nn

from bert_minimal.heads import NextSentence
from bert_minimal.train import data
from bert_minimal.wordpiece import WordPiece
from coursework.cast import CAST, NEXT
from coursework.checks.rewards import shown_on

# Written for this course: twelve opinions to learn from, six strangers. 1 is good.
LEARN = [
    ("a warm and funny film with a wonderful cast .", 1), ("a dull and pointless film with a terrible cast .", 0),
    ("one of the best movies of the year , i loved it .", 1), ("one of the worst movies of the year , i hated it .", 0),
    ("beautiful , touching and very well acted .", 1), ("boring , stupid and very badly acted .", 0),
    ("a great story , and a perfect ending .", 1), ("a silly story , and an awful ending .", 0),
    ("it is charming from beginning to end .", 1), ("it is a mess from beginning to end .", 0),
    ("an excellent thriller that i would watch again .", 1), ("a waste of time that i would never watch again .", 0),
]  # fmt: skip
STRANGERS = [
    ("a wonderful little comedy .", 1), ("what a terrible waste of talent .", 0),
    ("brilliant , moving , and the music is excellent .", 1), ("so bad that we left after half an hour .", 0),
    ("i loved every minute of this beautiful film .", 1), ("lame jokes and a boring plot .", 0),
]  # fmt: skip
MORE = [
    ("funny and wise , with a perfect cast .", 1), ("the best comedy i have seen in years .", 1),
    ("a moving story , wonderfully told .", 1), ("an unforgettable evening at the cinema .", 1),
]  # fmt: skip


class Course(NamedTuple):
    tokenizer: WordPiece
    model: NextSentence


@functools.cache
def course() -> Course:
    """The package's own checkpoint."""
    folder = data.fetch("course")
    return Course(WordPiece.from_pretrained(folder), NextSentence.from_pretrained(folder).eval())


def pairs(tokenizer: WordPiece) -> dict[str, torch.Tensor]:
    """Each sentence of the cast with each continuation, as a padded batch (36, S)."""
    rows = [tokenizer(first, second) for first in CAST.values() for second in NEXT.values()]
    longest = max(len(row.input_ids) for row in rows)
    names = ("input_ids", "token_type_ids", "attention_mask")
    return {
        name: torch.tensor([getattr(row, name) + [0] * (longest - len(row.input_ids)) for row in rows])
        for name in names
    }


@shown_on(course)
def the_same_head_as_before(classification_head: Callable, real: Course) -> None:
    model, batch = real.model, pairs(real.tokenizer)
    pooled = model.bert(**batch).pooler_output
    apart = (classification_head(pooled, model.nsp_weight, model.nsp_bias) - model(**batch).logits).abs().max().item()
    print("  What this made possible: any task with K answers. Next-sentence prediction was one of them all along:")
    said = f"{apart:.0e} at most" if apart else "nothing"
    print(f"    with its weights, your head and the course's BERT differ by {said}, on {len(pooled)} pairs.")


class Reader(nn.Module):
    """Padded ids -> the course's pooled vector."""

    def __init__(self, bert: nn.Module, dropout: float = 0.1):
        super().__init__()
        self.bert, self.dropout = bert, nn.Dropout(dropout)

    def forward(self, ids: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        mask = ids != 0 if mask is None else mask
        return self.dropout(self.bert(input_ids=ids, attention_mask=mask.long()).pooler_output)


class Judge(nn.Module):
    """The course's BERT with a fresh head for two classes."""

    def __init__(self, model: NextSentence):
        super().__init__()
        self.encoder, self.head = Reader(copy.deepcopy(model.bert)), nn.Linear(model.nsp_weight.size(1), 2)

    def forward(self, ids: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        return self.head(self.encoder(ids, mask))


class Downhill:
    """Descent with momentum: torch's own optimizers take seconds to import."""

    def __init__(self, parameters, lr: float):
        self.all, self.lr, self.before = list(parameters), lr, {}

    def zero_grad(self, set_to_none: bool = True) -> None:
        for p in self.all:
            p.grad = None

    @torch.no_grad()
    def step(self) -> None:
        for p in self.all:
            if p.grad is not None:
                self.before[p] = 0.9 * self.before.get(p, 0.0) + p.grad
                p -= self.lr * self.before[p]


def padded(tokenizer: WordPiece, texts: list[str]) -> torch.Tensor:
    rows = [torch.tensor(tokenizer(text).input_ids) for text in texts]
    return nn.utils.rnn.pad_sequence(rows, batch_first=True)


def after_twelve_reviews(tokenizer: WordPiece, model: NextSentence) -> Judge:
    """In eval mode: the course's BERT as it is, and a head that has read LEARN."""
    judge = Judge(model).eval()
    labels = torch.tensor([label for _, label in LEARN])
    with torch.no_grad():
        x = judge.encoder(padded(tokenizer, [text for text, _ in LEARN]))
    optimizer = Downhill(judge.head.parameters(), 0.05)
    for _ in range(30):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(judge.head(x), labels).backward()
        optimizer.step()
    return judge


@shown_on(course, learns=True)
def a_lazy_judge(evaluate: Callable, real: Course) -> None:
    texts = STRANGERS + MORE
    labels = torch.tensor([label for _, label in texts])
    lazy = torch.tensor([[0.0, 1.0]]).expand(len(labels), 2)
    judge = after_twelve_reviews(*real)
    with torch.no_grad():
        logits = judge(padded(real.tokenizer, [text for text, _ in texts]))
    good = int(labels.sum())
    print(f"  What this made possible: a judge of judges. {len(texts)} short reviews, {good} good ones:")
    for name, found in (("always “good”", lazy), ("the course's BERT", logits)):
        scores = evaluate(list(zip(found.split(4), labels.split(4), strict=True)))
        print(f"    {name:18}" + "".join(f"   {key} {float(scores[key]):4.2f}" for key in ("accuracy", "f1", "mcc")))
    print("    Accuracy and F1 praise the one who reads nothing. MCC does not.")


@shown_on(course, learns=True)
def twelve_reviews(fine_tune: Callable, real: Course) -> None:
    labels = torch.tensor([label for _, label in LEARN])
    ids = padded(real.tokenizer, [text for text, _ in LEARN])
    judge = Judge(real.model)
    losses = fine_tune(judge, Downhill, [(ids[:6], labels[:6]), (ids[6:], labels[6:])], 10, 0.05, True)
    judge.eval()
    with torch.no_grad():
        said = judge(padded(real.tokenizer, [text for text, _ in STRANGERS])).argmax(1).tolist()
    right = sum(a == b for a, (_, b) in zip(said, STRANGERS, strict=True))
    print(
        "  What this made possible: a new task for a BERT that was never told of it. Your loop, twelve short reviews,"
    )
    print(f"    a frozen encoder: the loss goes from {float(losses[0]):.2f} to {float(losses[-1]):.2f};")
    print(f"    {right} of {len(STRANGERS)} reviews that it has never read are judged right.")


@shown_on(course, learns=True)
def strangers(predict: Callable, real: Course) -> None:
    judge = after_twelve_reviews(*real)
    probabilities = predict(judge, [real.tokenizer(text).input_ids for text, _ in STRANGERS], 4)
    print("  What this made possible: answers, each beside its own question. The course's BERT, a head that has read")
    print("    twelve reviews, and your function:")
    for (text, label), row in zip(STRANGERS, probabilities.tolist(), strict=True):
        print(f"    good: {row[1]:4.0%}  ({'good' if label else 'bad'})  {text}")
