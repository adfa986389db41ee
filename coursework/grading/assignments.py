"""Which exercises an assignment has: those of the unit in coursework.checks whose LESSON is the assignment's name."""

from dataclasses import dataclass
from functools import cache

from coursework import checks
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
def known_assignments() -> dict[str, Assignment]:
    """Every assignment that can be graded, by name."""
    lessons = [checks.unit(unit).LESSON for unit in checks.UNITS]
    return {lesson: Assignment(lesson, {e.name: e for e in checks.exercises(lesson)}) for lesson in lessons}


def names_for_students() -> dict[str, list[str]]:
    """What a student's notebook may import from coursework.checks: unit -> exercises."""
    return {unit: [exercise.name for exercise in checks.exercises(unit)] for unit in checks.UNITS}
