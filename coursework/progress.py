"""A student's progress: which exercises passed their instant check, what follows from it, and what is next.

One small file on the student's own computer, written by the instant check; nothing is ever sent anywhere.
"""

import json
import os
from dataclasses import dataclass
from html import escape
from pathlib import Path

import platformdirs

from coursework import checks
from coursework.checks.engine import Exercise

# What one can explain and build, and the exercises behind it; true when all of them have passed.
CHECKLIST = (
    ("tell why BERT reads both sides and GPT only the left, and what each is good for", ("01.7", "11")),
    ("compute attention by hand, in three lines, and on real weights", ("01",)),
    ("name the three embeddings, and say what [CLS] and [SEP] are for", ("02",)),
    ("cut a word into pieces, and say what WordPiece is and is not", ("03",)),
    ("explain masked language modelling: 15 %, 80/10/10, and why", ("04",)),
    ("explain next sentence prediction, and what was wrong with it", ("05",)),
    ("put BERT together and load real weights into it", ("06",)),
    ("train one, and read its curves", ("07",)),
    ("fine-tune it to classify texts, long ones too", ("08", "09")),
    ("fine-tune it to find names, and to answer questions about a text", ("10",)),
    ("say what RoBERTa, ALBERT and DistilBERT changed", ("11",)),
    ("read the library's source beside yours", ("12",)),
)


@dataclass(frozen=True)
class Unit:
    """One unit: its exercises in order, and the best points of each so far."""

    name: str  # "01_attention"
    exercises: tuple[Exercise, ...]
    best: dict[str, float]

    @property
    def points(self) -> float:
        return sum(self.best.get(exercise.name, 0.0) for exercise in self.exercises)

    @property
    def max(self) -> float:
        return sum(exercise.points for exercise in self.exercises)

    @property
    def open(self) -> list[Exercise]:
        """Exercises that have not passed yet."""
        return [exercise for exercise in self.exercises if self.best.get(exercise.name, 0.0) < exercise.points]


def record() -> Path:
    """Where the points lie: BERT_PROGRESS if it is set, else this user's own data folder."""
    chosen = os.environ.get("BERT_PROGRESS")
    return Path(chosen) if chosen else platformdirs.user_data_path("bert-from-scratch") / "progress.json"


def note(exercise: Exercise, points: float) -> None:
    """Remember the points of an exercise if they are its best. Says nothing and stops nobody when it cannot write."""
    if "COURSEWORK_BUILD" in os.environ or "NBGRADER_EXECUTION" in os.environ:
        return
    best = read()
    key = f"{exercise.number} {exercise.name}"
    if points <= best.get(key, 0.0):
        return
    path = record()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_suffix(".new")
        fresh.write_text(json.dumps(best | {key: points}, indent=1, sort_keys=True), encoding="utf-8")
        os.replace(fresh, path)  # whole or not at all
    except OSError:
        pass  # a full or read-only disk is no reason to fail a right answer


def read() -> dict[str, float]:
    """Best points by "01.1 attention_scores"; empty where there is no record, or none that can be read."""
    if "COURSEWORK_BUILD" in os.environ:
        return {}  # a lesson is stored without anybody's progress
    try:
        raw = json.loads(record().read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    if not isinstance(raw, dict):
        return {}
    return {key: float(value) for key, value in raw.items() if isinstance(value, int | float)}


def units() -> list[Unit]:
    """Every unit there is, with what the record says of it."""
    best = read()
    found = []
    for name in checks.UNITS:
        exercises = tuple(checks.exercises(name))
        known = {e.name: min(best.get(f"{e.number} {e.name}", 0.0), e.points) for e in exercises}
        found.append(Unit(checks.unit(name).LESSON, exercises, known))
    return found


def next_step(found: list[Unit]) -> Exercise | None:
    """The first exercise, in the order of the course, that has not passed; None when all have."""
    return next((exercise for unit in found for exercise in unit.open), None)


def checklist(found: list[Unit]) -> list[tuple[str, bool]]:
    """(what one can do, whether the exercises behind it have passed)."""
    passed = {exercise.number: exercise not in unit.open for unit in found for exercise in unit.exercises}

    def true(needed: str) -> bool:
        behind = [ok for number, ok in passed.items() if number == needed or number.startswith(f"{needed}.")]
        return bool(behind) and all(behind)

    return [(ability, all(map(true, needs))) for ability, needs in CHECKLIST]


def draw():
    """The map of the course with what is done, points a unit, and the checklist, for a notebook (an HTML object)."""
    from IPython.display import HTML

    from coursework.bert_map import bert_map

    found = units()
    step = next_step(found)
    done = {int(unit.name[:2]) for unit in found if not unit.open}
    picture = bert_map(int(step.number[:2]) if step else 12, done).data
    rows = "".join(
        f'<tr><td style="text-align:left">{unit.name}</td><td>{unit.points:g}</td><td>{unit.max:g}</td></tr>'
        for unit in found
    )
    items = "".join(f"<li>{'☑' if true else '☐'} {escape(ability)}</li>" for ability, true in checklist(found))
    return HTML(
        f"{picture}<table><tr><th>unit</th><th>points</th><th>of</th></tr>{rows}</table>"
        f'<p>I can</p><ul style="list-style:none">{items}</ul><p>{escape(what_next(step))}</p>'
    )


def what_next(step: Exercise | None) -> str:
    if step is None:
        return "Every exercise has passed. Read the package now: you know every line of it."
    return f"Next: {step.number} {step.title}, in exercises/{step.see.partition('/')[2].partition(',')[0]}."


def main() -> int:
    """Print units, points, what you can now explain and build, and what is next. Kept on this computer alone."""
    from rich.console import Console
    from rich.table import Table

    found = units()
    table = Table("unit", "passed", "points", "of")
    for unit in found:
        done = len(unit.exercises) - len(unit.open)
        table.add_row(unit.name, f"{done} of {len(unit.exercises)}", f"{unit.points:g}", f"{unit.max:g}")
    console = Console()
    console.print(table)
    console.print("I can")
    for ability, true in checklist(found):
        console.print(f"  {'☑' if true else '☐'} {ability}", highlight=False, markup=False)
    console.print(what_next(next_step(found)), highlight=False, markup=False)
    console.print(f"(from {record()}, which the instant checks write)", highlight=False, markup=False)
    return 0
