"""Unit 10: the references agree with implementations that others wrote, and with the model package."""

import random

import numpy as np
import pytest
import torch

from bert_minimal.train import answering, small
from bert_minimal.train.scores import exact_match, overlap_f1
from bert_minimal.wordpiece import WordPiece
from coursework.checks import exercises, find
from coursework.checks.tagging_and_questions import (
    _align_labels,
    _best_span,
    _entity_f1,
    _exact_match_and_f1,
    _find_entities,
    _span_targets,
)

TAGS = ["O", "O", "B-PER", "I-PER", "B-LOC", "I-LOC", "I-ORG"]


def noisy(chance, count):
    return [[chance.choice(TAGS) for _ in range(chance.randrange(1, 12))] for _ in range(count)]


def test_entities_and_f1_are_seqevals():
    from seqeval.metrics.sequence_labeling import get_entities, precision_recall_fscore_support

    for seed in range(100):
        chance = random.Random(seed)
        true = noisy(chance, 6)
        predicted = [[tag if chance.random() < 0.7 else chance.choice(TAGS) for tag in row] for row in true]
        for row in true:
            assert _find_entities(row) == [(kind, start, end + 1) for kind, start, end in get_entities(row)]
        ours = _entity_f1([_find_entities(row) for row in true], [_find_entities(row) for row in predicted])
        theirs = precision_recall_fscore_support(true, predicted, average="micro", zero_division=0)[:3]
        assert ours == pytest.approx(theirs)


def test_labels_are_those_of_transformers_word_ids():
    from transformers import BertTokenizerFast

    from bert_minimal.train.data import fetch

    fast = BertTokenizerFast(vocab=str(fetch("course") / "vocab.txt"), vocab_file=str(fetch("course") / "vocab.txt"))
    sentences = small.sentences("test")[:20]
    for sentence in sentences:
        ids = fast(sentence.words, is_split_into_words=True).word_ids()
        numbers = list(range(len(sentence.words)))  # each word its own class
        got = _align_labels([numbers], torch.tensor([[-1 if w is None else w for w in ids]]))[0].tolist()
        assert [label for label in got if label != -100] == sorted(set(ids) - {None})
        assert all(label in (-100, word) for label, word in zip(got, ids, strict=True))


def test_targets_are_those_the_reader_is_trained_with():
    from bert_minimal.train.data import fetch

    tokenizer = WordPiece.from_pretrained(fetch("course"))
    options = answering.FineTuneOptions(max_length=48, stride=12)
    seen = set()
    for question in small.questions("test"):
        start, end = None, None
        if question.answers:
            text, start = question.answers[0]
            end = start + len(text)
        for window in answering.windows_of(tokenizer, question, options):
            low, high = window.context
            offsets = [(0, 0)] * low + [tuple(map(int, pair)) for pair in window.offsets] + [(0, 0)]
            is_context = [low <= i < high for i in range(len(offsets))]
            assert _span_targets(offsets, is_context, start, end) == window.span
            seen.add(window.span == (0, 0))
    assert seen == {True, False}


def test_the_best_span_is_the_readers():
    rng = np.random.default_rng(0)
    for _ in range(50):
        logits = rng.normal(size=(40, 2))
        logits[0] = -9
        is_context = torch.tensor([8 <= i < 39 for i in range(40)])
        best = answering.best_spans(logits[:, 0], logits[:, 1], (8, 39), 1)[0]
        assert _best_span(torch.tensor(logits), is_context, answering.LONGEST_ANSWER) == tuple(best[1:])


def test_exact_match_and_f1_are_those_of_torchmetrics():
    squad = pytest.importorskip("torchmetrics.functional.text").squad
    words = ["the", "A", "bridge", "Bridge!", "(old)", "u.s.a.", "an", "seal", "seal,", "theatre", "“x”", "--"]
    for seed in range(200):
        chance = random.Random(seed)
        said, *accepted = (" ".join(chance.choices(words, k=chance.randrange(1, 6))) for _ in range(3))
        match, f1 = _exact_match_and_f1(said, accepted)
        assert match == max(exact_match(said, a) for a in accepted)
        assert f1 == pytest.approx(max(overlap_f1(said, a) for a in accepted))
        if all(_exact_match_and_f1("", [text]) == (0.0, 0.0) for text in (said, *accepted)):  # SQuAD 1.1 knows no ""
            answer = [{"answers": {"answer_start": [0] * 2, "text": accepted}, "id": "a"}]
            theirs = squad([{"prediction_text": said, "id": "a"}], answer)
            assert (100 * match, 100 * f1) == pytest.approx((theirs["exact_match"].item(), theirs["f1"].item()))


def test_every_part_can_fail_alone():
    """Each part of each exercise is the first that fails for one of the known mistakes."""
    from coursework.checks.engine import run_variant

    for exercise in exercises("10"):
        cases = exercise.questions(4)
        found = set()
        for variant in exercise.mistakes.values():
            found.add(exercise.judge(cases, exercise.ask(run_variant(exercise.name, variant.function), cases)).failed)
        missing = {part.name for part in exercise.parts} - found - {"shape"}
        assert not missing, f"{exercise.name}: no mistake fails first at {missing}"


def test_the_picture_keeps_classes_apart():
    exercise = find("10", "align_labels")
    shown = exercise._canonical(torch.tensor([[-100, 0, 6]]))
    assert shown.tolist() == [[-3, 0, 6]]
