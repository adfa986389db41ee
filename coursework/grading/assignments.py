"""Which exercises an assignment has: those of the unit in coursework.checks whose LESSON is the assignment's name."""

import importlib
import pkgutil
from dataclasses import dataclass
from functools import cache

import coursework.checks
from coursework.checks.engine import Exercise


@dataclass(frozen=True)
class Assignment:
    """name "01_attention"; exercises by their grade_id, in the order of the unit."""

    name: str
    exercises: dict[str, Exercise]

    @property
    def points(self) -> float:
        return sum(exercise.points for exercise in self.exercises.values())


@cache
def units() -> dict[str, tuple[str, dict[str, Exercise]]]:
    """{"attention": ("01_attention", {"attention_scores": Exercise, …}), …}"""
    found = {}
    for info in pkgutil.iter_modules(coursework.checks.__path__):
        module = importlib.import_module(f"coursework.checks.{info.name}")
        lesson = getattr(module, "LESSON", None)
        if lesson is not None:
            exercises = {e.name: e for e in vars(module).values() if isinstance(e, Exercise)}
            found[info.name] = (lesson, exercises)
    return found


def known_assignments() -> dict[str, Assignment]:
    """Every assignment that can be graded, by name."""
    return {lesson: Assignment(lesson, exercises) for lesson, exercises in units().values()}


def names_for_students() -> dict[str, list[str]]:
    """What a student's notebook may import from coursework.checks: unit -> exercises."""
    return {unit: list(exercises) for unit, (_, exercises) in units().items()}
