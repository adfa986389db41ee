"""Scores against those of published implementations."""

import math
import re
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bert_minimal.train.scores import (
    answer_scores,
    best_threshold,
    class_scores,
    confusion,
    entities,
    entity_scores,
    exact_match,
    mean_sd,
    normalise_answer,
    overlap_f1,
)

sklearn_metrics = pytest.importorskip("sklearn.metrics")  # comes with seqeval


@settings(max_examples=60, deadline=None)
@given(st.sampled_from([2, 3, 5]), st.data())
def test_class_scores_are_those_of_scikit_learn(classes, data):
    pairs = data.draw(st.lists(st.tuples(*[st.integers(0, classes - 1)] * 2), min_size=1, max_size=30))
    gold, predicted = map(list, zip(*pairs, strict=True))
    found = class_scores(gold, predicted, classes)
    average = dict(average="binary") if classes == 2 else dict(average="macro", labels=range(classes))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = {
            "accuracy": sklearn_metrics.accuracy_score(gold, predicted),
            "f1": sklearn_metrics.f1_score(gold, predicted, zero_division=0, **average),
            "mcc": sklearn_metrics.matthews_corrcoef(gold, predicted),
        }
    assert found == pytest.approx(expected, abs=1e-12)
    table = sklearn_metrics.confusion_matrix(gold, predicted, labels=range(classes))
    assert np.array_equal(confusion(gold, predicted, classes), table)


def test_one_answer_for_all_is_worth_nothing_to_mcc():
    found = class_scores([1] * 9 + [0], [1] * 10, 2)
    assert found["accuracy"] == 0.9
    assert found["mcc"] == 0.0


def test_mean_and_deviation():
    assert mean_sd([0.8, 0.9, 1.0]) == pytest.approx((0.9, 0.1))
    mean, sd = mean_sd([0.8])
    assert mean == 0.8
    assert math.isnan(sd)


# ---------------------------------------------------------------- entities

TAGS = st.sampled_from(["O", "B-PER", "I-PER", "B-LOC", "I-LOC", "B-a-b", "I-a-b"])


def seqeval_spans(tags):
    from seqeval.metrics.sequence_labeling import get_entities

    return [(kind, start, end + 1) for kind, start, end in get_entities(list(tags))]


@settings(max_examples=300, deadline=None)
@given(st.lists(TAGS, max_size=14))
def test_entities_are_those_of_seqeval(tags):
    assert entities(tags) == seqeval_spans(tags)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_entity_f1_is_seqevals_and_that_of_the_spans_that_are_written(data):
    """Predictions near the truth (a few tags changed) and far from it; also where nothing is there or found."""
    lengths = data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=5))
    gold = [data.draw(st.lists(TAGS, min_size=n, max_size=n)) for n in lengths]
    change = data.draw(st.sampled_from([0, 1, 3, 99]))
    predicted = [[data.draw(TAGS) if data.draw(st.integers(0, 99)) < change * 10 else t for t in s] for s in gold]
    from seqeval.metrics import f1_score, precision_score, recall_score

    found = entity_scores(gold, predicted)
    for name, score in (("f1", f1_score), ("precision", precision_score), ("recall", recall_score)):
        assert found[name] == pytest.approx(score(gold, predicted, zero_division=0), abs=1e-12)
    true, said = ({(n, *e) for n, s in enumerate(tags) for e in entities(s)} for tags in (gold, predicted))
    assert found["f1"] == pytest.approx(2 * len(true & said) / max(1, len(true) + len(said)), abs=1e-12)


def test_finding_nothing_has_a_fine_word_accuracy_and_no_f1():
    gold = [["O"] * 9 + ["B-LOC"]]
    found = entity_scores(gold, [["O"] * 10])
    assert found == {"precision": 0.0, "recall": 0.0, "f1": 0.0, "word_accuracy": 0.9}


# ---------------------------------------------------------------- answers

ODD = "The a an lamp LAMP lamp. ,lamp' 42 4,2 é É - the-lamp anna's Theatre ß SS “x” […]"
WORDS = st.sampled_from(re.split(" ", ODD))
PHRASES = st.lists(WORDS, max_size=5).map(" ".join) | st.text(max_size=8)


@pytest.fixture(scope="module")
def squad():
    """The published scores of SQuAD: torchmetrics took them over from the official program."""
    return pytest.importorskip("torchmetrics.functional.text.squad")


@settings(max_examples=400, deadline=None)
@given(answer=PHRASES, truth=PHRASES)
def test_em_and_f1_are_those_of_torchmetrics(squad, answer, truth):
    assert normalise_answer(answer) == squad._normalize_text(answer)
    assert exact_match(answer, truth) == float(squad._compute_exact_match_score(answer, truth))
    assert overlap_f1(answer, truth) == pytest.approx(float(squad._compute_f1_score(answer, truth)), abs=1e-6)


@settings(max_examples=60, deadline=None)
@given(pairs=st.lists(st.tuples(PHRASES, st.lists(PHRASES.filter(normalise_answer), min_size=1)), min_size=1))
def test_the_mean_over_questions_is_that_of_torchmetrics(squad, pairs):
    said = [{"prediction_text": answer, "id": str(n)} for n, (answer, _) in enumerate(pairs)]
    true = [
        {"answers": {"text": truths, "answer_start": [0] * len(truths)}, "id": str(n)}
        for n, (_, truths) in enumerate(pairs)
    ]
    expected = squad.squad(said, true)
    found = answer_scores([truths for _, truths in pairs], [answer for answer, _ in pairs])
    assert 100 * found["exact"] == pytest.approx(expected["exact_match"].item(), abs=1e-3)
    assert 100 * found["f1"] == pytest.approx(expected["f1"].item(), abs=1e-3)


def test_answers_by_hand():
    assert normalise_answer("The  cat's, a hat!") == "cats hat"
    assert exact_match("an apple.", "Apple") == 1.0
    assert overlap_f1("old grey cat", "the cat") == pytest.approx(0.5)
    assert overlap_f1("cat cat", "cat") == pytest.approx(2 / 3)  # bags: a word twice is not right twice
    assert answer_scores([[], ["a"], ["x"]], ["", "", ""]) == {
        "exact": pytest.approx(2 / 3),
        "f1": pytest.approx(2 / 3),
    }
    assert answer_scores([["dog", "old cat"]], ["the old cat"]) == {"exact": 1.0, "f1": 1.0}


@settings(max_examples=100)
@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(0, 4), st.integers(0, 1)), min_size=1, max_size=9))
def test_no_other_threshold_is_better(rows):
    gaps, gains, losses = map(list, zip(*rows, strict=True))

    def total(threshold):
        return sum(g if gap <= threshold else n for gap, g, n in rows)

    best = best_threshold(gaps, gains, losses)
    assert total(best) == max(total(t / 2) for t in range(-9, 10))
