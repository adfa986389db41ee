"""Finds the submissions in a folder and reads each one, whatever its state; nothing in the folder is changed.

Layout: <student>/<assignment>/<assignment>.ipynb, as in nbgrader's submitted/.
"""

import json
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LARGEST = 20 << 20  # bytes of a notebook; pictures and all, an honest one has less than one megabyte


class Unreadable(Exception):
    """A submission that cannot be graded; the message is one sentence for the instructor and the student."""


@dataclass(frozen=True)
class Submission:
    """One student's notebook for one assignment. `problem`: why there is nothing to read at `path`."""

    student: str
    assignment: str
    path: Path
    problem: str = ""


def find_submissions(folder: Path, assignments: list[str]) -> list[Submission]:
    """Every submission below `folder`, in order of student and assignment; raises Unreadable if there is none."""
    if not folder.is_dir():
        raise Unreadable(f"{folder} is not a folder: give the folder that holds one folder a student")
    found = []
    for student in visible(folder):
        handed_in = [sub for sub in visible(student) if sub.is_dir()] if student.is_dir() else []
        found += [find_notebook(student.name, sub, assignments) for sub in handed_in]
        if student.is_dir() and not handed_in:
            found.append(Submission(student.name, "", student, f"no folder of an assignment in {student.name}/"))
    if not found:
        raise Unreadable(f"no submissions in {folder}: it should hold <student>/<assignment>/<assignment>.ipynb")
    return found


def find_notebook(student: str, folder: Path, assignments: list[str]) -> Submission:
    """The notebook of one assignment's folder: the one of its name, else the only one there."""
    named = folder / f"{folder.name}.ipynb"
    if folder.name not in assignments:
        known = ", ".join(sorted(assignments))
        return Submission(student, folder.name, named, f"there is no assignment {folder.name}; known are {known}")
    notebooks = [path for path in visible(folder) if path.suffix == ".ipynb"]
    if named not in notebooks and len(notebooks) == 1:
        named = notebooks[0]
    if named not in notebooks:
        names = ", ".join(path.name for path in visible(folder)) or "nothing"
        return Submission(student, folder.name, named, f"no notebook {named.name} among what was handed in: {names}")
    return Submission(student, folder.name, named)


def visible(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if not path.name.startswith("."))


def read_notebook(submission: Submission) -> tuple[Any, list[str]]:
    """(the notebook as nbformat 4.5, what had to be done to read it); raises Unreadable."""
    if submission.problem:
        raise Unreadable(submission.problem)
    path = submission.path
    if path.is_symlink() or not path.is_file():
        raise Unreadable(f"{path.name} is not an ordinary file")
    if path.stat().st_size > LARGEST:
        raise Unreadable(
            f"{path.name} has {path.stat().st_size >> 20} MB, more than {LARGEST >> 20}: clear its outputs"
        )
    told = []
    if path.stem != submission.assignment:
        told.append(f"the notebook was called {path.name}; it was graded as {submission.assignment}.ipynb")
    notebook = parse(path.read_bytes(), path.name)
    if notebook.pop("_upgraded", False):
        told.append("the notebook was in an older format; it was converted")
    return notebook, told


def parse(data: bytes, name: str) -> Any:
    """Bytes -> nbformat 4.5 with nothing in it that is of the wrong type; raises Unreadable."""
    import nbformat

    try:
        raw = json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"{name} is not a notebook: it cannot be read as JSON ({str(error)[:80]})") from None
    if not isinstance(raw, dict) or not isinstance(raw.get("nbformat"), int):
        raise Unreadable(f"{name} is not a notebook: its JSON has no nbformat")
    try:
        with warnings.catch_warnings():  # nbformat warns about what is put right just below
            warnings.simplefilter("ignore")
            notebook = nbformat.from_dict(raw)
            if raw["nbformat"] < 4:
                notebook = nbformat.convert(notebook, 4)
    except Exception as error:  # nbformat's converters raise all kinds on damaged files
        raise Unreadable(f"{name} is not a notebook: {type(error).__name__} ({str(error)[:80]})") from None
    cells = notebook.get("cells")
    if not isinstance(cells, list):
        raise Unreadable(f"{name} is not a notebook: it has no cells")
    clean = nbformat.v4.new_notebook()
    clean.cells = [whole(cell) for cell in cells if isinstance(cell, dict)]
    if isinstance(notebook.get("metadata"), dict):
        clean.metadata = notebook.metadata
    if not isinstance(clean.metadata.get("kernelspec"), dict):
        clean.metadata.pop("kernelspec", None)
    clean["_upgraded"] = raw["nbformat"] < 4
    return clean


def whole(cell: Any) -> Any:
    """A cell with the fields that it must have, of the types that they must have; outputs are let go."""
    import nbformat

    kind = cell.get("cell_type")
    make = {"code": nbformat.v4.new_code_cell, "raw": nbformat.v4.new_raw_cell}.get(kind, nbformat.v4.new_markdown_cell)
    source = cell.get("source")
    if isinstance(source, list):
        source = "".join(line for line in source if isinstance(line, str))
    metadata = cell.get("metadata")
    made = make(source if isinstance(source, str) else "")
    made.metadata = metadata if isinstance(metadata, dict) else nbformat.from_dict({})
    if not isinstance(made.metadata.get("nbgrader"), dict):
        made.metadata.pop("nbgrader", None)
    made["id"] = cell.get("id")
    return made
