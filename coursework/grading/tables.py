"""Marks as tables: marks.csv for programs, and CSV files for the two most used gradebooks, Moodle and Canvas.

Moodle: Grades > Import > CSV maps a column that identifies the student (username, ID number or e-mail) and one
column a grade item, optionally one of feedback (docs.moodle.org, "Grade import"). For what came from one of its
assignments, the assignment takes a grading worksheet and a zip of feedback files, which know a student by the number
in the folder's name (mod/assign/feedback/offline/importgradeslib.php, …/file/importziplib.php).
Canvas: Gradebook > Import wants Student, ID, SIS User ID, SIS Login ID, Section, then one column an assignment, and
"Points Possible" as the first data row (Canvas Instructor Guide, "How do I import grades in the Gradebook?").
"""

import csv
import os
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from coursework.grading.plain import cell
from coursework.grading.results import Result, by_name


def write_tables(results: list[Result], out: Path) -> None:
    """In `out`: marks.csv; moodle.csv and canvas.csv with a column an assignment; the same with _questions in their
    names and a column an exercise; what an assignment in Moodle takes back, if the submissions came from one. What
    could not be graded is an empty cell: it is no 0 in a gradebook."""
    _write(out / "marks.csv", ["student", "assignment", "exercise", "points", "max", "status"], mark_rows(results))
    graded = [r for r in results if r.max > 0]
    whole = [Item(r.assignment, r.student, _points(r), r.max, summary(r), r.canvas_id) for r in graded]
    questions = [
        Item(f"{r.assignment} {m.number} {m.exercise}", r.student, m.points, m.max, m.status, r.canvas_id)
        for r in graded
        for m in r.marks
    ]
    for items, suffix in ((whole, ""), (questions, "_questions")):
        _moodle(items, out / f"moodle{suffix}.csv")
        _canvas(items, out / f"canvas{suffix}.csv")
    of_moodle = [r for r in results if r.moodle_id and r.assignment]
    for assignment in sorted({r.assignment for r in of_moodle}):
        _moodle_assignment(assignment, [r for r in of_moodle if r.assignment == assignment], out)


@dataclass(frozen=True)
class Item:
    """What one student has for one column of a gradebook; points None: not graded."""

    column: str
    student: str
    points: float | None
    max: float
    feedback: str
    canvas_id: str = ""


def _moodle(items: list[Item], path: Path) -> None:
    heads = [head for column in _columns(items) for head in (column, f"{column} feedback")]
    rows = [
        [student, *(cell for item in row for cell in (_shown(item), item.feedback if item else ""))]
        for student, row in _by_student(items)
    ]
    _write(path, ["Username", *heads], rows)


def _moodle_assignment(assignment: str, results: list[Result], out: Path) -> None:
    """What an assignment in Moodle takes back: the marks of those graded, and everybody's page of feedback."""
    head = ["Identifier", "Grade", "Last modified (grade)", "Feedback comments"]
    rows = [[f"Participant {r.moodle_id}", f"{r.points:g}", "", summary(r)] for r in results if r.status == "graded"]
    _write(out / f"moodle_{assignment}_worksheet.csv", head, rows)
    path = out / f"moodle_{assignment}_feedback.zip"
    fresh = path.with_suffix(".new")
    with zipfile.ZipFile(fresh, "w", zipfile.ZIP_DEFLATED) as packed:
        for r in results:
            page = out / "feedback" / r.student / f"{assignment}.html"
            packed.write(page, f"Participant_{r.moodle_id}_assignsubmission_file_/{page.name}")
    os.replace(fresh, path)


def _canvas(items: list[Item], path: Path) -> None:
    most = {column: max(item.max for item in items if item.column == column) for column in _columns(items)}
    possible = ["    Points Possible", "", "", "", "", *[f"{points:g}" for points in most.values()]]
    ids = {item.student: item.canvas_id for item in items}
    rows = [[student, ids[student], "", student, "", *map(_shown, row)] for student, row in _by_student(items)]
    _write(path, ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", *most], [possible, *rows])


def _columns(items: list[Item]) -> list[str]:
    return sorted({item.column for item in items})


def _by_student(items: list[Item]) -> Iterator[tuple[str, list[Item | None]]]:
    """Each student with one item, or None, a column."""
    of = {(item.student, item.column): item for item in items}
    columns = _columns(items)
    for student in sorted({item.student for item in items}, key=by_name):
        yield student, [of.get((student, column)) for column in columns]


def _shown(item: Item | None) -> str:
    return "" if item is None or item.points is None else f"{item.points:g}"


def _points(result: Result) -> float | None:
    return result.points if result.status == "graded" else None


def mark_rows(results: list[Result]) -> list[list]:
    """One row an exercise; one row with exercise "*" for a submission that could not be graded."""
    rows: list[list] = []
    for result in results:
        start = [result.student, result.assignment]
        if result.status != "graded":
            rows.append([*start, "*", "0", f"{result.max:g}", result.status])
        for mark in result.marks:
            rows.append([*start, mark.exercise, f"{mark.points:g}", f"{mark.max:g}", mark.status])
    return rows


def summary(result: Result) -> str:
    """One line for a gradebook's feedback column."""
    if result.status != "graded":
        return result.status
    return "; ".join(f"{m.number} {m.status} ({m.points:g}/{m.max:g})" for m in result.marks)


def _write(path: Path, head: list[str], rows: Iterable[list[str]]) -> None:
    """Whole or not at all, whatever a name or a message holds."""
    fresh = path.with_suffix(".new")
    with fresh.open("w", newline="", encoding="utf-8", errors="backslashreplace") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(head)
        writer.writerows([[cell(field) for field in row] for row in rows])
    os.replace(fresh, path)
