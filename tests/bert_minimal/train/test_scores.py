"""Scores against those of published implementations."""

import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bert_minimal.train.scores import class_scores, confusion, mean_sd

sklearn_metrics = pytest.importorskip("sklearn.metrics")  # comes with seqeval


@settings(max_examples=60)
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
