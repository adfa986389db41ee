"""Finds the submissions in a folder or a zip and reads each one, whatever its state; nothing there is changed.

    STUDENT/ASSIGNMENT/ASSIGNMENT.ipynb                  nbgrader's submitted/
    STUDENT+ASSIGNMENT+TIME[+RANDOM]/ASSIGNMENT.ipynb    nbgrader's exchange, inbound/; the latest one counts
    NAME_12345_assignsubmission_file…/FILE.ipynb         Moodle, "Download all submissions"
    NAME[_LATE]_123_456_FILE.ipynb                       Canvas, "Download Submissions"

Moodle and Canvas do not say which assignment it is: the file's name must contain it, or --assignment says it.
"""

import json
import re
import shutil
import warnings
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MANY = 5_000  # notebooks in one zip
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


def find_submissions(folder: Path, assignments: list[str], assignment: str = "") -> list[Submission]:
    """Every submission below `folder`, in order of student and assignment; raises Unreadable if there is none.

    assignments: all that are known; assignment: the one that files from Moodle or Canvas are for.
    """
    if not folder.is_dir():
        raise Unreadable(f"{folder} is not a folder: give the folder, or the zip, with the submissions")
    found: list[Submission] = []
    for path in visible(folder):
        found += in_entry(path, assignments, assignment)
    if not found:
        raise Unreadable(f"no submissions in {folder}: it should hold <student>/<assignment>/<assignment>.ipynb")
    latest = {(s.student, s.assignment): s for s in found}  # the exchange may hold several; names sort by time
    return sorted(latest.values(), key=lambda s: (s.student, s.assignment))


EXCHANGE = re.compile(r"(?P<student>[^+]+)\+(?P<assignment>[^+]+)\+\d{4}-\d\d-\d\d [^+]+(\+.*)?")
MOODLE = re.compile(r"(?P<student>.+_\d+)_assignsubmission_file_?.*")
CANVAS = re.compile(r"(?P<student>[^_]+?)(_LATE)?_\d+_\d+_(?P<file>.+)\.ipynb")


def in_entry(path: Path, assignments: list[str], assignment: str) -> list[Submission]:
    """The submissions in one folder or file of the class's folder."""
    name = path.name
    if path.is_file():
        canvas = CANVAS.fullmatch(name)
        return [named_by(path, canvas["student"], canvas["file"], assignments, assignment)] if canvas else []
    if exchange := EXCHANGE.fullmatch(name):
        return [find_notebook(exchange["student"], path, assignments, exchange["assignment"])]
    if moodle := MOODLE.fullmatch(name):
        files = [file for file in visible(path) if file.suffix == ".ipynb"]
        if len(files) != 1:
            return [Submission(moodle["student"], assignment, path, f"{len(files)} notebooks in {name}, expected one")]
        return [named_by(files[0], moodle["student"], files[0].stem, assignments, assignment)]
    handed_in = [sub for sub in visible(path) if sub.is_dir()]
    if not handed_in:
        return [Submission(name, "", path, f"no folder of an assignment in {name}/")]
    return [find_notebook(name, sub, assignments, sub.name) for sub in handed_in]


def named_by(path: Path, student: str, file: str, assignments: list[str], assignment: str) -> Submission:
    """A submission whose assignment is `assignment`, or stands in the name of its file."""
    assignment = assignment or next((known for known in assignments if known in file), "")
    problem = "" if assignment in assignments else f"cannot tell which assignment {path.name} is: say --assignment"
    return Submission(student, assignment, path, problem)


def unpack(archive: Path, target: Path) -> Path:
    """The notebooks of a zip, below `target`; raises Unreadable when there are too many or too large ones."""
    try:
        with zipfile.ZipFile(archive) as packed:
            notebooks = [info for info in packed.infolist() if info.filename.endswith(".ipynb")]
            if len(notebooks) > MANY:
                raise Unreadable(f"{archive.name} holds {len(notebooks)} notebooks, more than {MANY}")
            shutil.rmtree(target, ignore_errors=True)
            for info in notebooks:
                if info.file_size <= LARGEST:  # a larger one is not worth unpacking; it would be refused anyway
                    packed.extract(info, target)  # never outside of target, whatever its name says
                else:
                    placeholder = target / Path(info.filename.replace("..", "_").lstrip("/"))
                    placeholder.parent.mkdir(parents=True, exist_ok=True)
                    placeholder.write_text(f"{info.file_size} bytes, too large")
    except zipfile.BadZipFile as error:
        raise Unreadable(f"{archive.name} is not a zip: {error}") from None
    inner = visible(target) if target.is_dir() else []
    wrapped = len(inner) == 1 and inner[0].is_dir() and not any(p.match(inner[0].name) for p in (EXCHANGE, MOODLE))
    deep = wrapped and any(inner[0].glob("*/*/*.ipynb"))  # one folder around the folders of the students
    return inner[0] if deep else target


def find_notebook(student: str, folder: Path, assignments: list[str], name: str) -> Submission:
    """The notebook of assignment `name` in a folder: the one of its name, else the only one there."""
    named = folder / f"{name}.ipynb"
    if name not in assignments:
        known = ", ".join(sorted(assignments))
        return Submission(student, name, named, f"there is no assignment {name}; known are {known}")
    notebooks = [path for path in visible(folder) if path.suffix == ".ipynb"]
    if named not in notebooks and len(notebooks) == 1:
        named = notebooks[0]
    if named not in notebooks:
        names = ", ".join(path.name for path in visible(folder)) or "nothing"
        return Submission(student, name, named, f"no notebook {named.name} among what was handed in: {names}")
    return Submission(student, name, named)


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
    if submission.assignment not in path.stem:
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
