"""Extractive question answering: where in a passage does the answer stand? (Devlin et al. 2019, 4.2 and 4.3)

    from bert_minimal.train.answering import Question, answer, predict_answers, SQUAD

    train = [Question("q1", "Who slept?", "Otto slept late.", (("Otto", 0),)), …]     # answers: text, where it begins
    result = answer("minilm", train, dev, SQUAD)
    result.scores                       # on dev: exact and f1 by SQuAD's rules, 0 to 1; loss
    result.answers                      # an Answer a question: text, score, start, end, gap
    predict_answers(result, [Question("x", "Who?", "Otto slept.")])

A passage that does not fit is read in windows, each with the whole question; the answer is the best legal span
over all of them. A question with `answers=()` has no answer; if there are such in training, the model may say so.
The sizes are those of Google's run_squad.py: 384 pieces, 128 from window to window, questions cut at 64, answers of
at most 30.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from .. import windows
from ..attention import very_negative
from ..heads import QuestionAnswering
from ..stream import unpack
from ..wordpiece import WordPiece
from .finetune import (
    FineTuneOptions,
    Result,
    Row,
    by_length,
    fit,
    lay_out,
    open_start,
    refuse_options,
    stream_of,
    to_device,
)
from .scores import answer_scores, best_threshold, exact_match, overlap_f1

SQUAD = FineTuneOptions(max_length=384, stride=128)  # with the paper's 3 epochs, batch 32, 5e-5 (section 4.2)
LONGEST_QUESTION, LONGEST_ANSWER = 64, 30  # pieces
CANDIDATES = 20  # spans between which an answer's score is shared out


class Question(NamedTuple):
    """answers: each with the character at which it begins; () if there is none; None where it is to be found."""

    id: str
    question: str
    context: str
    answers: tuple[tuple[str, int], ...] | None = None


class Answer(NamedTuple):
    """context[start:end] == text; score: its share among the best spans, 0 to 1; "" for no answer.

    gap: how much the score of "no answer" exceeds that of the best span.
    """

    text: str
    score: float
    start: int
    end: int
    gap: float


class Window(NamedTuple):
    """What the model reads of one question: the question and a part of its passage."""

    row: Row
    context: tuple[int, int]  # places of the row that hold pieces of the passage: from, to (exclusive)
    offsets: np.ndarray  # (pieces of the passage in here, 2): which characters each is
    span: tuple[int, int]  # first and last place of the answer; 0, 0 ([CLS]) if it is not whole in here


def answer(
    start: str | Path,
    train_questions: Sequence[Question],
    dev_questions: Sequence[Question] = (),
    options: FineTuneOptions = SQUAD,
    out: Path | None = None,
) -> Result:
    """Fine-tune `QuestionAnswering`; the best weights by F1 on dev are kept.

    Where training has questions without an answer, the threshold for saying "" is chosen on dev by F1, as in
    section 4.3, and stands in Result.settings. Raises ValueError for a question whose answer is not where it
    should be, TrainingStopped when memory is short or training diverges.
    """
    refuse_options(options, "long pool class_weights", "for questions, whose passages are read in windows")
    options = replace(options, max_length=options.max_length or SQUAD.max_length, stride=options.stride or SQUAD.stride)
    tokenizer, model = open_start(QuestionAnswering, start, options)
    learned = [window for q in train_questions for window in windows_of(tokenizer, q, options)]
    asked = [windows_of(tokenizer, question, options) for question in dev_questions]
    may_be_empty = any(question.answers == () for question in train_questions)
    settings = {"may_be_empty": may_be_empty, "threshold": 0.0}
    truths = [[text for text, _ in question.answers or ()] for question in dev_questions]

    def make_batch(chosen: Sequence[int]) -> dict[str, Tensor]:
        return span_batch([learned[i] for i in chosen])

    def measure(model: Any) -> tuple[dict[str, float], list[Answer]]:
        scored, loss = span_scores(model, asked)
        spans = [best_answer(q, w, s) for q, w, s in zip(dev_questions, asked, scored, strict=True)]
        if may_be_empty:
            settings["threshold"] = threshold_for(spans, truths)
        answers = [decide(span, settings) for span in spans]
        return {**answer_scores(truths, [a.text for a in answers]), "loss": loss}, answers

    return fit(
        Result(model, tokenizer, (), options, {}, [], 0, 0.0, settings=settings),
        [len(window.row.ids) for window in learned],
        make_batch,
        SpanObjective(),
        measure if dev_questions else None,
        ("f1", "exact", "loss"),
        out,
    )


def predict_answers(result: Result, questions: Sequence[Question]) -> list[Answer]:
    """One answer a question, by the threshold for "no answer" that dev gave (`Result.settings`)."""
    asked = [windows_of(result.tokenizer, q._replace(answers=None), result.options) for q in questions]
    scored, _ = span_scores(result.model, asked)
    spans = [best_answer(q, w, s) for q, w, s in zip(questions, asked, scored, strict=True)]
    return [decide(span, result.settings) for span in spans]


def windows_of(tokenizer: WordPiece, question: Question, options: FineTuneOptions) -> list[Window]:
    """[CLS] question [SEP] part of the passage [SEP], as often as the passage needs."""
    asked = tokenizer(question.question).input_ids[1:-1][:LONGEST_QUESTION]
    passage = tokenizer(question.context)
    pieces, offsets = passage.input_ids[1:-1], np.array(passage.offset_mapping[1:-1], int).reshape(-1, 2)
    if not pieces:
        raise ValueError(f"question {question.id}: there is no word in its passage {question.context!r:.40}")
    room, before = options.max_length - len(asked) - 3, len(asked) + 2
    if room < 1:
        raise ValueError(f"--max-length {options.max_length} leaves no room for a passage beside {len(asked)} pieces")
    wanted = span_of(question, offsets) if question.answers else None
    found = []
    for a, b in windows.windows(len(pieces), room, min(options.stride, room)):
        ids = [tokenizer.cls_id, *asked, tokenizer.sep_id, *pieces[a:b], tokenizer.sep_id]
        types = [0] * before + [1] * (b - a + 1)
        inside = wanted is not None and a <= wanted[0] and wanted[1] < b
        span = (before + wanted[0] - a, before + wanted[1] - a) if inside else (0, 0)
        found.append(Window(Row(ids, types), (before, before + b - a), offsets[a:b], span))
    return found


def span_of(question: Question, offsets: np.ndarray) -> tuple[int, int]:
    """The pieces of the first answer: every piece that shares a character with it. First and last, inclusive."""
    text, start = question.answers[0]
    if not text or question.context[start : start + len(text)] != text:
        there = question.context[start : start + len(text)]
        raise ValueError(f"question {question.id}: at character {start} stands {there!r:.40}, not {text!r:.40}")
    touched = np.flatnonzero((offsets[:, 0] < start + len(text)) & (offsets[:, 1] > start))
    if not len(touched):
        raise ValueError(f"question {question.id}: the tokenizer sees nothing in its answer {text!r:.40}")
    return int(touched[0]), int(touched[-1])


def span_batch(some: Sequence[Window]) -> dict[str, Tensor]:
    """Windows -> a batch of the stream, with each token's place in the padded batch and the answers' places."""
    batch = lay_out([window.row for window in some])
    longest = len(batch["longest"])
    sequence = torch.repeat_interleave(batch["cu_seqlens"].diff().long())  # (N,)
    return batch | {
        "where": sequence * longest + batch["position_ids"],  # (N,) each token's place in B * S
        "spans": torch.tensor([window.span for window in some]),  # (B, 2)
    }


def span_logits(model: Any, batch: dict[str, Tensor]) -> Tensor:
    """-> (B, 2, S) scores of starting and ending at each place; so low on padding that softmax makes them 0."""
    logits = model.stream(**stream_of(batch)).float()  # (N, 2)
    sizes = len(batch["spans"]), len(batch["longest"])
    return unpack(logits, batch["where"], *sizes, fill=very_negative(logits.dtype)).transpose(1, 2)


class SpanObjective:
    """The mean of two cross-entropies over a sequence's places, as in Google's code; right: both ends."""

    names = ("span",)

    def count(self, batch: dict[str, Tensor]) -> Tensor:
        return torch.full((1,), len(batch["spans"]), dtype=torch.float32, device=batch["spans"].device)

    def losses(self, model: Any, batch: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        logits = span_logits(model, batch)  # (B, 2, S)
        loss = F.cross_entropy(logits.flatten(0, 1), batch["spans"].flatten(), reduction="sum") / 2
        right = (logits.argmax(-1) == batch["spans"]).all(-1).sum()
        return loss[None], right.float()[None]


@torch.inference_mode()
def span_scores(model: Any, asked: list[list[Window]]) -> tuple[list[list[np.ndarray]], float]:
    """For each question, for each of its windows, (2, S) scores; and the mean loss over windows."""
    flat = [window for question in asked for window in question]
    scores: list[Any] = [None] * len(flat)
    total, objective = 0.0, SpanObjective()
    for chosen in by_length([len(window.row.ids) for window in flat]):
        some = [flat[i] for i in chosen]
        batch = to_device(span_batch(some), model)
        total += objective.losses(model, batch)[0].item()
        logits = span_logits(model, batch).cpu().numpy()
        for i, window, rows in zip(chosen, some, logits, strict=True):
            scores[i] = rows[:, : len(window.row.ids)]
    found, at = [], 0
    for question in asked:
        found.append(scores[at : at + len(question)])
        at += len(question)
    return found, total / max(1, len(flat))


def best_spans(start: np.ndarray, end: np.ndarray, context: tuple[int, int], top: int) -> list[tuple[float, int, int]]:
    """The `top` best legal spans (score, first, last): in the passage, no end before its start, not too long.

    start, end: (S,) scores. Every pair is looked at: the best start and the best end apart need not be legal.
    """
    a, b = context
    pairs = start[a:b, None] + end[None, a:b]  # (P, P)
    legal = np.triu(np.ones_like(pairs, bool)) & ~np.triu(np.ones_like(pairs, bool), LONGEST_ANSWER)
    first, last = np.nonzero(legal)
    sums = pairs[first, last]
    order = np.argsort(-sums, kind="stable")[:top]
    return [(float(sums[i]), a + int(first[i]), a + int(last[i])) for i in order]


def best_answer(question: Question, asked: list[Window], scores: list[np.ndarray]) -> Answer:
    """The best span over all windows. The score of no answer is the lowest that any window gives to [CLS]."""
    spans: dict[tuple[int, int], float] = {}
    for window, (start, end) in zip(asked, scores, strict=True):
        a, _ = window.context
        for score, first, last in best_spans(start, end, window.context, CANDIDATES):
            place = int(window.offsets[first - a, 0]), int(window.offsets[last - a, 1])
            spans[place] = max(score, spans.get(place, score))
    none = min(float(start[0] + end[0]) for start, end in scores)
    best = max(spans, key=spans.__getitem__)
    candidates = np.sort(list(spans.values()))[::-1][:CANDIDATES]
    share = 1 / np.exp(candidates - spans[best]).sum()
    return Answer(question.context[slice(*best)], float(share), *best, none - spans[best])


def decide(span: Answer, settings: dict) -> Answer:
    """The span, or no answer where that may be and its lead is over the threshold."""
    if settings["may_be_empty"] and span.gap > settings["threshold"]:
        return Answer("", float(1 / (1 + np.exp(-span.gap))), 0, 0, span.gap)
    return span


def threshold_for(spans: Sequence[Answer], truths: Sequence[Sequence[str]]) -> float:
    """What makes F1 best on these questions; exact match decides between equals."""
    gains, losses = [], []
    for span, possible in zip(spans, truths, strict=True):
        for found, text in ((gains, span.text), (losses, "")):
            pairs = [(overlap_f1(text, truth), exact_match(text, truth)) for truth in possible or [""]]
            found.append(max(f1 for f1, _ in pairs) + 1e-6 * max(exact for _, exact in pairs))
    return best_threshold([span.gap for span in spans], gains, losses)
