"""Marks as tables: marks.csv for programs, moodle.csv and canvas.csv for the two most used gradebooks.

Moodle: Grades > Import > CSV maps a column that identifies the student (username, ID number or e-mail) and one
column a grade item, optionally one of feedback (docs.moodle.org, "Grade import").
Canvas: Gradebook > Import wants Student, ID, SIS User ID, SIS Login ID, Section, then one column an assignment, and
"Points Possible" as the first data row (Canvas Instructor Guide, "How do I import grades in the Gradebook?").
"""

import csv
from collections.abc import Iterable
from pathlib import Path

from coursework.grading.results import Result


def write_tables(results: list[Result], out: Path) -> None:
    """marks.csv, moodle.csv, canvas.csv in `out`."""
    _write(out / "marks.csv", ["student", "assignment", "exercise", "points", "max", "status"], mark_rows(results))
    assignments = sorted({r.assignment for r in results if r.max > 0})
    of = {(r.student, r.assignment): r for r in results}
    students = sorted({r.student for r in results})

    def cells(student: str, *, feedback: bool) -> list:
        row: list = []
        for assignment in assignments:
            result = of.get((student, assignment))
            graded = result is not None and result.status == "graded"
            row.append(f"{result.points:g}" if graded else "")  # what could not be read is no 0 in a gradebook
            if feedback:
                row.append(summary(result) if result else "")
        return row

    heads = [column for assignment in assignments for column in (assignment, f"{assignment} feedback")]
    _write(out / "moodle.csv", ["Username", *heads], [[s, *cells(s, feedback=True)] for s in students])
    most = {a: max(r.max for r in results if r.assignment == a) for a in assignments}
    possible = ["    Points Possible", "", "", "", "", *[f"{most[a]:g}" for a in assignments]]
    rows = [[s, "", "", s, "", *cells(s, feedback=False)] for s in students]
    heads = ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", *assignments]
    _write(out / "canvas.csv", heads, [possible, *rows])


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


def _write(path: Path, head: list[str], rows: Iterable[list]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(head)
        writer.writerows([[_harmless(cell) for cell in row] for row in rows])


def _harmless(cell: object) -> object:
    """A spreadsheet runs a cell that starts like a formula; an apostrophe makes it text."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(("=", "+", "-", "@", "\t", "\r")) else cell
