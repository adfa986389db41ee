"""What fine-tuned models are judged by: accuracy, F1 and Matthews' correlation; entities; answers.

Classes are whole numbers here, tags are strings as in CoNLL files, answers are strings.
"""

import importlib.util
import math
import re
import string
from collections import Counter
from collections.abc import Sequence

import numpy as np

# ---- classes


def confusion(gold: Sequence[int], predicted: Sequence[int], classes: int) -> np.ndarray:
    """(K, K) counts: row the true class, column the predicted one."""
    table = np.zeros((classes, classes), int)
    np.add.at(table, (np.asarray(gold, int), np.asarray(predicted, int)), 1)
    return table


def class_scores(gold: Sequence[int], predicted: Sequence[int], classes: int) -> dict[str, float]:
    """accuracy, f1 and mcc, as the GLUE tasks use them (Wang et al. 2019).

    f1 is that of class 1 where there are two classes, and the plain mean over the classes where there are more.
    mcc is Matthews' correlation (for several classes Gorodkin 2004's R_K): 0 for guessing, also for always
    giving one answer, however frequent. A ratio of nothing to nothing counts as 0.
    """
    table = confusion(gold, predicted, classes).astype(float)
    true, said, right, total = table.sum(1), table.sum(0), table.diagonal(), table.sum()
    f1 = np.divide(2 * right, true + said, out=np.zeros(classes), where=true + said > 0)
    covariance = right.sum() * total - true @ said
    spread = math.sqrt((total**2 - said @ said) * (total**2 - true @ true))
    return {
        "accuracy": float(right.sum() / max(1.0, total)),
        "f1": float(f1[1] if classes == 2 else f1.mean()),
        "mcc": float(covariance / spread) if spread else 0.0,
    }


def mean_sd(values: Sequence[float]) -> tuple[float, float]:
    """Mean and standard deviation (n - 1) of a score over seeds; the latter is NaN for a single one."""
    return float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else math.nan


# ---- entities


def entities(tags: Sequence[str]) -> list[tuple[str, int, int]]:
    """(type, first word, word after the last) of each entity in one sentence's tags O, B-TYPE, I-TYPE.

    As seqeval and the CoNLL evaluation read them: an I- that continues nothing (after O, or of another type)
    begins an entity. So tags without any B- (the IO scheme) are read too; there, neighbours of one type are one.
    """
    found, kind, start = [], None, 0
    for at, tag in enumerate([*tags, "O"]):
        prefix, _, name = tag.partition("-")
        goes_on = prefix == "I" and name == kind
        if kind is not None and not goes_on:
            found.append((kind, start, at))
            kind = None
        if prefix in ("B", "I") and not goes_on:
            kind, start = name, at
    return found


def need_seqeval() -> None:
    """Raise ValueError if entities can't be scored here: to be asked before an hour of training, not after."""
    if not importlib.util.find_spec("seqeval"):
        raise ValueError("entities are scored by seqeval, which is not installed: pip install seqeval")


def entity_scores(gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> dict[str, float]:
    """precision, recall and f1 of whole entities, by seqeval; and the share of single words tagged right.

    An entity counts if its type and both ends are right. The words' accuracy is there to be distrusted: most
    words are O, and who finds nothing has nine in ten of them right.
    """
    from seqeval.metrics.sequence_labeling import precision_recall_fscore_support

    precision, recall, f1, _ = precision_recall_fscore_support(
        [list(tags) for tags in gold], [list(tags) for tags in predicted], average="micro", zero_division=0
    )
    pairs = [pair for g, p in zip(gold, predicted, strict=True) for pair in zip(g, p, strict=True)]
    right = sum(g == p for g, p in pairs) / max(1, len(pairs))
    return {"precision": float(precision), "recall": float(recall), "f1": float(f1), "word_accuracy": right}


# ---- answers

ARTICLES = re.compile(r"\b(a|an|the)\b")
PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalise_answer(text: str) -> str:
    """SQuAD's rule (Rajpurkar et al. 2016, section 6.1): no case, ASCII punctuation, articles or extra space."""
    return " ".join(ARTICLES.sub(" ", text.lower().translate(PUNCTUATION)).split())


def exact_match(answer: str, truth: str) -> float:
    """1.0 if both are the same once normalised, else 0.0 (SQuAD's first score)."""
    return float(normalise_answer(answer) == normalise_answer(truth))


def overlap_f1(answer: str, truth: str) -> float:
    """F1 of the words of both, as bags. If either has no word, 1 where both have none, else 0."""
    said, true = (normalise_answer(text).split() for text in (answer, truth))
    if not said or not true:
        return float(said == true)
    common = (Counter(said) & Counter(true)).total()
    return 2 * common / (len(said) + len(true))


def answer_scores(truths: Sequence[Sequence[str]], answers: Sequence[str]) -> dict[str, float]:
    """exact and f1, 0 to 1: for each question the best over its true answers, then the mean.

    A question without true answers has none, and "" is right (SQuAD 2.0, Rajpurkar et al. 2018). True answers
    of which nothing is left by the normalisation are passed over, as in the official program for 2.0.
    """
    exact, f1 = [], []
    for possible, answer in zip(truths, answers, strict=True):
        possible = [truth for truth in possible if normalise_answer(truth)] or [""]
        exact.append(max(exact_match(answer, truth) for truth in possible))
        f1.append(max(overlap_f1(answer, truth) for truth in possible))
    return {"exact": float(np.mean(exact)), "f1": float(np.mean(f1))}


def best_threshold(gaps: Sequence[float], gains: Sequence[float], losses: Sequence[float]) -> float:
    """The threshold on "no answer" with the best sum of scores (section 4.3 of Devlin et al.: chosen on dev).

    gaps: how much the score of no answer exceeds that of the best span; gains: what the span would score;
    losses: what no answer would score. A question is answered if its gap is at most the threshold.
    """
    order = np.argsort(gaps, kind="stable")
    change = np.asarray(gains, float)[order] - np.asarray(losses, float)[order]
    totals = np.concatenate([[0.0], change.cumsum()])  # answering the first k
    # Only between different gaps can a threshold stand.
    sorted_gaps = np.asarray(gaps, float)[order]
    possible = [k for k in range(len(totals)) if k in (0, len(order)) or sorted_gaps[k - 1] < sorted_gaps[k]]
    k = max(possible, key=lambda k: totals[k])
    if k == 0:
        return float(sorted_gaps[0]) - 1.0
    return float(sorted_gaps[-1]) + 1.0 if k == len(order) else float(sorted_gaps[k - 1] + sorted_gaps[k]) / 2
