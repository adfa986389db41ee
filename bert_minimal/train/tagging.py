"""Tagging words: named entities (Devlin et al. 2019, section 5.3).

    from bert_minimal.train.tagging import Sentence, tag, predict_tags

    train = [Sentence(["Anna", "lives", "in", "Lyon"], ["B-PER", "O", "O", "B-LOC"]), …]
    result = tag("minilm", train, dev, FineTuneOptions(epochs=3))
    result.scores                       # on dev: precision, recall, f1 of whole entities; word_accuracy; loss
    result.answers                      # tags of the dev sentences
    predict_tags(result, [["Otto", "slept"]])      # -> [(tags, probability of each)]

The data label words; BERT reads pieces, and a word may be several. Two conventions, `pieces=`:

    Lyon  B-LOC      "first"    l B-LOC   ##yon  -        the paper's: the other pieces are not asked
                     "all"      l B-LOC   ##yon I-LOC     the other pieces repeat the word's tag, as I-

Both answer with the first piece. (B- repeated on ##yon would say that a second place begins there.)
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from ..heads import NO_LABEL, TokenClassifier
from ..wordpiece import WordPiece
from .finetune import (
    PAPER,
    FineTuneOptions,
    Result,
    Row,
    balanced,
    by_length,
    fit,
    lay_out,
    open_start,
    refuse_options,
    stream_of,
    to_device,
)
from .scores import entity_scores

Pieces = Literal["first", "all"]


class Sentence(NamedTuple):
    """Words and their tags, O or B-TYPE or I-TYPE; None where they are to be found."""

    words: list[str]
    tags: list[str] | None = None


class Part(NamedTuple):
    """Some words of a sentence, as many as fit into one sequence."""

    row: Row
    first: list[int]  # where in the row each word begins
    labels: list[int]  # one a piece


def tag(
    start: str | Path,
    train_sentences: Sequence[Sentence],
    dev_sentences: Sequence[Sentence] = (),
    options: FineTuneOptions = PAPER,
    out: Path | None = None,
    pieces: Pieces = "first",
) -> Result:
    """Fine-tune a `TokenClassifier`; the best weights by entity F1 on dev are kept.

    Result.labels are the tags, O first. Raises ValueError for tags that can't be, naming the sentence, and
    TrainingStopped when memory is short or training diverges.
    """
    refuse_options(options, "long pool", "in tagging, where long sentences are read in parts")
    options = replace(options, max_length=options.max_length or 128)
    for what, sentences in (("training sentence", train_sentences), ("dev sentence", dev_sentences)):
        for at, sentence in enumerate(sentences):
            check_tags(sentence, f"{what} {at}")
    labels = tag_names(train_sentences, pieces)
    tokenizer, model = open_start(TokenClassifier, start, options, labels=labels)
    numbers = {name: number for number, name in enumerate(labels)}
    parts = [p for s in train_sentences for p in parts_of(tokenizer, s, options.max_length, numbers, pieces)]
    dev_parts = [parts_of(tokenizer, s, options.max_length, numbers, pieces) for s in dev_sentences]
    gold = [sentence.tags or [] for sentence in dev_sentences]

    def make_batch(chosen: Sequence[int]) -> dict[str, Tensor]:
        return tag_batch([parts[i] for i in chosen])

    def measure(model: Any) -> tuple[dict[str, float], list[list[str]]]:
        found, loss = tags_of(model, dev_parts)
        predicted = [tags for tags, _ in found]
        return {**entity_scores(gold, predicted), "loss": loss}, predicted

    weights = None
    if options.class_weights:
        weights = balanced([label for part in parts for label in part.labels if label != NO_LABEL], len(labels))
    return fit(
        Result(model, tokenizer, labels, options, {}, [], 0, 0.0, settings={"pieces": pieces}),
        [len(part.row.ids) for part in parts],
        make_batch,
        TagObjective(weights),
        measure if dev_sentences else None,
        ("f1", "precision", "recall", "word_accuracy", "loss"),
        out,
    )


def predict_tags(result: Result, sentences: Sequence[Sequence[str]]) -> list[tuple[list[str], list[float]]]:
    """For each sentence (a list of words): its words' tags, and how probable the model finds each."""
    parts = [parts_of(result.tokenizer, Sentence(list(s)), result.options.max_length) for s in sentences]
    return tags_of(result.model, parts)[0]


def check_tags(sentence: Sentence, what: str) -> None:
    """Raise ValueError unless the sentence has words, and for each a tag O, B-TYPE or I-TYPE."""
    if not sentence.words or sentence.tags is None or len(sentence.words) != len(sentence.tags):
        tags = "no" if sentence.tags is None else len(sentence.tags)
        raise ValueError(f"{what} has {len(sentence.words)} words and {tags} tags; it needs one for each, and a word")
    for wrong in (tag for tag in sentence.tags if tag != "O" and not (tag[:2] in ("B-", "I-") and tag[2:])):
        raise ValueError(f"{what} has the tag {wrong!r}; tags are O, B-TYPE and I-TYPE (other schemes: convert them)")


def tag_names(sentences: Sequence[Sentence], pieces: Pieces) -> tuple[str, ...]:
    """O, then the tags that occur, by type; for "all" also the I- that the pieces inside a word need."""
    names = {tag for sentence in sentences for tag in sentence.tags or ()} - {"O"}
    if pieces == "all":
        names |= {f"I-{name[2:]}" for name in names}
    if not names:
        raise ValueError("no training sentence has a tag other than O: there is nothing to learn")
    return ("O", *sorted(names, key=lambda name: (name[2:], name)))


def parts_of(
    tokenizer: WordPiece,
    sentence: Sentence,
    max_length: int,
    numbers: dict[str, int] | None = None,
    pieces: Pieces = "first",
) -> list[Part]:
    """A sentence as one sequence, or as several where it is too long: cut between words, none left out.

    numbers: tag -> class; a tag that training never saw gets no label.
    """
    room, parts, labels_of = max_length - 2, [], numbers or {}
    ids, first, labels = [], [], []
    for at, word in enumerate(sentence.words):
        # A word of characters that the tokenizer drops has no piece, but needs one to be asked.
        word_ids = (tokenizer(word).input_ids[1:-1] or [tokenizer.unk_id])[:room]
        if len(ids) + len(word_ids) > room:
            parts.append((ids, first, labels))
            ids, first, labels = [], [], []
        name = sentence.tags[at] if sentence.tags else ""
        inside = name if name == "O" else f"I-{name[2:]}"
        rest = labels_of.get(inside, NO_LABEL) if pieces == "all" else NO_LABEL
        first.append(len(ids) + 1)  # [CLS] comes first
        ids = ids + word_ids
        labels += [labels_of.get(name, NO_LABEL), *[rest] * (len(word_ids) - 1)]
    parts.append((ids, first, labels))
    return [
        Part(Row([tokenizer.cls_id, *i, tokenizer.sep_id], [0] * (len(i) + 2)), f, [NO_LABEL, *n, NO_LABEL])
        for i, f, n in parts
    ]


def tag_batch(parts: Sequence[Part]) -> dict[str, Tensor]:
    """Parts of sentences -> a batch of the stream with a label for each piece."""
    batch = lay_out([part.row for part in parts])
    return batch | {"labels": torch.tensor([label for part in parts for label in part.labels])}  # (N,)


class TagObjective:
    """Cross-entropy of one label a piece, where there is one."""

    names = ("tag",)

    def __init__(self, weights: Tensor | None = None):
        self.weights = weights

    def count(self, batch: dict[str, Tensor]) -> Tensor:
        return (batch["labels"] != NO_LABEL).sum().float()[None]

    def losses(self, model: Any, batch: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        logits, labels = model.stream(**stream_of(batch)).float(), batch["labels"]  # (N, K), (N,)
        weights = None if self.weights is None else self.weights.to(logits.device)
        loss = F.cross_entropy(logits, labels, weights, ignore_index=NO_LABEL, reduction="sum")
        return loss[None], (logits.argmax(-1) == labels).sum().float()[None]


@torch.inference_mode()
def tags_of(model: Any, sentences: list[list[Part]]) -> tuple[list[tuple[list[str], list[float]]], float]:
    """For each sentence its words' tags and their probabilities; and the mean loss of the labels, if there are any."""
    parts = [part for sentence in sentences for part in sentence]
    answers: list[Any] = [None] * len(parts)
    total, count = 0.0, 0.0
    for chosen in by_length([len(part.row.ids) for part in parts]):
        some = [parts[i] for i in chosen]
        batch = to_device(tag_batch(some), model)
        logits = model.stream(**stream_of(batch)).float()  # (N, K)
        total += F.cross_entropy(logits, batch["labels"], ignore_index=NO_LABEL, reduction="sum").item()
        count += (batch["labels"] != NO_LABEL).sum().item()
        best = [x.cpu().numpy() for x in logits.softmax(-1).max(-1)]  # two (N,)
        starts = batch["cu_seqlens"].tolist()
        for i, part, begin in zip(chosen, some, starts, strict=False):
            places = begin + np.array(part.first, int)
            answers[i] = [x[places] for x in best]
    found, names, at = [], model.config.labels, 0
    for sentence in sentences:
        own = answers[at : at + len(sentence)]
        at += len(sentence)
        tags = [names[k] for _, classes in own for k in classes]
        found.append((tags, [float(p) for ps, _ in own for p in ps]))
    return found, total / max(1.0, count)
