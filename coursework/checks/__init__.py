"""The checks: one module a unit. `UNITS` names them in the order of the course."""

import importlib
from pkgutil import iter_modules
from types import ModuleType

from coursework.checks.engine import Exercise

# In the order of the course, so that a unit's place is its number. A unit that is not written yet is not offered.
_ORDER = ("start_here", "attention", "embeddings", "wordpiece", "mlm", "nsp", "model", "pretraining", "classification",
          "long_documents", "tagging_and_questions", "variants", "hugging_face")  # fmt: skip
UNITS = tuple(name for name in _ORDER if name in {module.name for module in iter_modules(__path__)})


def unit(name: str) -> ModuleType:
    """The module of a unit, by its name ("attention"), its lesson ("01_attention") or its number ("01").

    Raises LookupError with the names there are.
    """
    for number, known in enumerate(_ORDER):
        if known in UNITS and (name == known or name[:2] == f"{number:02}"):
            module = importlib.import_module(f"coursework.checks.{known}")
            if name in (known, module.LESSON, module.LESSON[:2]):
                return module
    raise LookupError(f"no unit {name!r}; there are {', '.join(UNITS)}")


def exercises(name: str) -> list[Exercise]:
    """The exercises of a unit, in order."""
    found = [value for value in vars(unit(name)).values() if isinstance(value, Exercise)]
    return sorted(found, key=lambda exercise: exercise.number)


def find(lesson: str, exercise_name: str) -> Exercise:
    """One exercise: find("01_attention", "merge_heads"). Raises LookupError."""
    for exercise in exercises(lesson):
        if exercise.name == exercise_name:
            return exercise
    names = ", ".join(exercise.name for exercise in exercises(lesson))
    raise LookupError(f"{lesson} has no exercise {exercise_name!r}; there are {names}")
