"""What is known of one graded submission, and its file: one JSON a submission, so that a run can be taken up again."""

import dataclasses
import json
import os
import re
import secrets
import unicodedata
from dataclasses import dataclass
from pathlib import Path

from coursework.grading.session import Mark


@dataclass(frozen=True)
class Result:
    """One submission's marks. status "graded", or a word and a sentence why not ("unreadable: …")."""

    student: str
    assignment: str
    status: str
    marks: tuple[Mark, ...]
    max: float
    repairs: tuple[str, ...] = ()
    look: tuple[str, ...] = ()  # what an instructor may want to read in it (suspicious.py)
    seconds: float = 0.0
    key: str = ""  # changes with the submission, the checks and the seed: equal keys need no second grading
    canvas_id: str = ""  # the number by which Canvas knows the student
    moodle_id: str = ""  # the number by which Moodle knows the participant of this assignment

    @property
    def points(self) -> float:
        return round(sum(mark.points for mark in self.marks), 4)


def in_order(result: Result) -> tuple:
    """Sorts results as people do: by student, then by assignment."""
    return *by_name(result.student), result.assignment


def by_name(student: str) -> tuple[list[str | int], str]:
    """Sorts names as people do: small letters like capitals, Ö like O, s9 before s10; two names are never equal."""
    letters = unicodedata.normalize("NFKD", student).casefold()
    parts = re.split(r"(\d+)", "".join(c for c in letters if not unicodedata.combining(c)))
    return [int(part) if i % 2 else part for i, part in enumerate(parts)], student


def save(result: Result, path: Path) -> None:
    """Write one submission's result to its file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_text(path, json.dumps(dataclasses.asdict(result), indent=1, ensure_ascii=False))


def replace_text(path: Path, text: str) -> None:
    """Write a file whole or not at all, also when the grader is killed, or two of them write it."""
    fresh = path.with_suffix(f".{secrets.token_hex(4)}.new")
    fresh.write_text(text, encoding="utf-8", errors="replace")
    os.replace(fresh, path)


def load(path: Path) -> Result | None:
    """The result in a file, or None if there is none of this version of the grader."""
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
        marks = tuple(Mark(**mark) for mark in raw.pop("marks"))
        return Result(marks=marks, repairs=tuple(raw.pop("repairs")), look=tuple(raw.pop("look")), **raw)
    except (OSError, ValueError, TypeError, KeyError):
        return None
