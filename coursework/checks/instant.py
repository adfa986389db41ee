"""How a check talks inside a notebook: the instant check raises, the graded cell prints and returns points."""

import contextlib
import io
import random
from collections.abc import Callable

import torch

from coursework import progress
from coursework.checks.engine import INSTANT_SEED, CheckFailed, Exercise, Verdict, run_here


def check(exercise: Exercise, function: Callable, device: str = "cpu", note: bool = True) -> None:
    """Print the verdict if all parts pass (and show the reward), else raise CheckFailed with it.

    Always asks on the CPU first, as grading does: the same draws and the same names on every machine, and an index
    out of range is an error there, not the end of the kernel's GPU. `device="cuda"` then asks there as well.
    """
    if not callable(function):
        raise CheckFailed(
            f"✗ {exercise.number} {exercise.title}: got {type(function).__name__}, not a function\n"
            f"  think  did you pass {exercise.name} itself, without calling it?"
        )
    run = run_here({exercise.name: function})
    verdict = exercise.verdict(run, seed=INSTANT_SEED, show=True)
    if verdict.passed and device != "cpu":
        verdict = exercise.verdict(run, seed=INSTANT_SEED, device=device, show=True)
    _show_prints(verdict)
    if note:
        progress.note(exercise, verdict.points)
    if not verdict.passed:
        if verdict.picture is not None:
            from coursework.checks.picture import draw

            draw(*verdict.picture)
        raise CheckFailed(verdict.text())
    print(verdict.text())
    show_reward(exercise, function)


def show_reward(exercise: Exercise, function: Callable) -> None:
    """What being right made possible. Its draws are the same each time, and leave the student's own as they were."""
    if exercise._reward is None:
        return
    state = random.getstate()
    try:
        with torch.random.fork_rng([]):
            torch.manual_seed(4)
            random.seed(4)
            exercise._reward(function)
    except Exception as error:  # right in every part, and yet not on what the reward shows
        print(f"(What comes next could not be shown with your function: {type(error).__name__}: {error})")
    finally:
        random.setstate(state)


def grade(exercise: Exercise, namespace: dict) -> float:
    """Print the verdict on namespace[exercise.name] and return its points; never raises, silent on stderr."""
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            verdict = exercise.verdict(run_here(namespace), seed=INSTANT_SEED, rounds=2)
    except Exception as error:  # torch itself was changed under the check's feet, say: told, and worth nothing
        print(f"✗ {exercise.number} {exercise.title}: the check could not run ({type(error).__name__}: {error})")
        print("  think  restart the kernel and run all cells: does it still happen?")
        return 0.0
    print(verdict.text())
    return float(verdict.points)


def _show_prints(verdict: Verdict) -> None:
    if verdict.printed:
        print("your function printed:\n" + verdict.printed.rstrip())
