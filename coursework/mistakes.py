"""The table of known mistakes and right alternatives, each tried on its check: python -m coursework mistakes."""

import json as json_text
from dataclasses import asdict, dataclass

from coursework import checks
from coursework.checks.engine import Exercise, Variant, run_variant

SEEDS = (2018, 7)  # the instant check's questions and others


@dataclass(frozen=True)
class Row:
    """One mistake (rejected? called by its own name?) or one alternative (full marks?)."""

    unit: str
    exercise: str
    kind: str  # "mistake" or "alternative"
    name: str
    rejected: bool | None
    named: bool | None
    accepted: bool | None
    what: str
    looks: str
    think: str

    @property
    def good(self) -> bool:
        return bool(self.accepted) if self.kind == "alternative" else bool(self.rejected and self.named)


def rows(unit: str | None = None) -> list[Row]:
    """Run every mistake and alternative of one unit, or of all. Raises LookupError for a unit there is not."""
    names = checks.UNITS if unit is None else [unit]
    lessons = [(checks.unit(name).LESSON, exercise) for name in names for exercise in checks.exercises(name)]
    return [
        _row(lesson, exercise, kind, variant)
        for lesson, exercise in lessons
        for kind, table in (("mistake", exercise.mistakes), ("alternative", exercise.alternatives))
        for variant in table.values()
    ]


def _row(lesson: str, exercise: Exercise, kind: str, variant: Variant) -> Row:
    run = run_variant(exercise.name, variant.function)
    verdicts = [exercise.verdict(run, seed=seed) for seed in SEEDS]
    rejected = named = accepted = None
    if kind == "mistake":
        rejected = all(not verdict.passed for verdict in verdicts)
        named = all(verdict.mistake == variant.name for verdict in verdicts)
    else:
        accepted = all(verdict.passed and verdict.points == exercise.points for verdict in verdicts)
    return Row(lesson, exercise.name, kind, variant.name, rejected, named, accepted,
               verdicts[0].what, variant.looks, variant.think)  # fmt: skip


def main(unit: str | None = None, json: bool = False) -> int:
    """Print both tables, or JSON. Returns 1 if a mistake slips through or a right answer is refused."""
    found = rows(unit)
    if json:
        print(json_text.dumps([asdict(row) for row in found], indent=1, ensure_ascii=False))
    else:
        _show(found)
    return 0 if all(row.good for row in found) else 1


def _show(found: list[Row]) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    mistakes = Table("exercise", "mistake", "rejected", "named", "what the check says", title="Known mistakes")
    right = Table("exercise", "alternative", "full marks", title="Right answers of another structure")
    for row in found:
        where = f"{row.unit[:2]} {row.exercise}"
        if row.kind == "mistake":
            mistakes.add_row(where, row.looks, _mark(row.rejected), _mark(row.named), row.what)
        else:
            right.add_row(where, row.name.replace("_", " "), _mark(row.accepted))
    console.print(mistakes, right)
    good = sum(row.good for row in found)
    console.print(f"{good} of {len(found)} as they should be")


def _mark(yes: bool | None) -> str:
    return "yes" if yes else "[bold]NO[/bold]"
