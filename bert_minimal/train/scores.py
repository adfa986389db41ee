"""What fine-tuned models are judged by: accuracy, F1 and Matthews' correlation; entities; answers.

Classes are whole numbers here, tags are strings as in CoNLL files, answers are strings.
"""

import math
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
