"""What all rewards share. A reward is what a student sees after getting it right: their own function at work on real
weights or real text, a few lines within two seconds. It never waits for a download: it says how to get what it needs.
"""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from bert_minimal.train import data

LATER = "  (On real weights and real text there is more to see: run the lesson once, then check again.)"


def if_fetched(*files: str) -> Path | None:
    """The cache with all downloads if it holds these files, "minilm/vocab.txt" say; else None."""
    return data.cache() if all((data.cache() / name).is_file() for name in files) else None


def shown_on(real: Callable[[], Any], learns: bool = False) -> Callable[[Callable], Callable[[Callable], None]]:
    """Decorator: show(function, real()) becomes a reward. Where real() is None, it says how to get what is missing.

    learns: whether gradients are taken.
    """

    def decorate(show: Callable[[Callable, Any], None]) -> Callable[[Callable], None]:
        @functools.wraps(show)
        def reward(function: Callable) -> None:
            found = real()
            if found is None:
                print(LATER)
                return
            with torch.set_grad_enabled(learns):
                show(function, found)

        return reward

    return decorate
