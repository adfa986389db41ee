"""Finds the submissions in a folder or a zip and reads each one, whatever its state; nothing there is changed.

    STUDENT/ASSIGNMENT/ASSIGNMENT.ipynb                  nbgrader's submitted/
    STUDENT+ASSIGNMENT+TIME[+RANDOM]/ASSIGNMENT.ipynb    nbgrader's exchange, inbound/; the latest one counts
    NAME_12345_assignsubmission_file…/FILE.ipynb         Moodle, "Download all submissions"
    NAME[_LATE]_123_456_FILE.ipynb                       Canvas, "Download Submissions"

Moodle and Canvas do not say which assignment it is: the file's name must contain it, or --assignment says it.
Whatever else lies there becomes a submission with a problem: nothing is lost without a word, and nothing stops the run.
"""

import hashlib
import json
import os
import re
import shutil
import tempfile
import warnings
import zipfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from coursework.grading import plain
from coursework.grading.wire import without_surrogates

MANY = 5_000  # notebooks in one zip
LARGEST = 20 << 20  # bytes of a notebook; pictures and all, an honest one has less than one megabyte


class Unreadable(Exception):
    """A submission that cannot be graded; the message is one sentence for the instructor and the student."""

    word = "unreadable"


class WrongNotebook(Unreadable):
    """A notebook that can be read and is not the assignment's."""

    word = "wrong notebook"


@dataclass(frozen=True)
class Submission:
    """One student's notebook for one assignment. `problem`: why there is nothing to read at `path`; `told`: what the
    student should know of how it was chosen; `canvas_id`, `moodle_id`: the numbers by which Canvas knows the student,
    and Moodle the participant of this assignment."""

    student: str
    assignment: str
    path: Path
    problem: str = ""
    told: tuple[str, ...] = ()
    canvas_id: str = ""
    moodle_id: str = ""


def find_submissions(folder: Path, assignments: list[str], assignment: str = "") -> list[Submission]:
    """Every submission below `folder`, in order of student and assignment; raises Unreadable if there is none.

    assignments: all that are known; assignment: the one that files from Moodle or Canvas are for.
    """
    if assignment and assignment not in assignments:
        raise Unreadable(f"--assignment {assignment}: {unknown(assignment, assignments)}")
    if not folder.is_dir():
        raise Unreadable(f"{folder} is not a folder: give the folder, or the zip, with the submissions")
    try:
        entries = visible(unwrapped(folder, assignments))
    except OSError as error:
        raise Unreadable(closed(str(folder), error)) from None
    found = [submission for path in entries for submission in in_entry(path, assignments, assignment)]
    if not found:
        raise Unreadable(f"no submissions in {folder}: it should hold <student>/<assignment>/<assignment>.ipynb")
    return sorted(one_each(told_apart(found)), key=lambda s: (s.student, s.assignment))


def in_entry(path: Path, assignments: list[str], assignment: str) -> list[Submission]:
    """The submissions in one folder or file of the class's folder: at least one, with a problem if need be."""
    home = Path(os.path.realpath(path.parent)) / path.name
    try:
        made = in_folder(path, assignments, assignment) if path.is_dir() else [in_file(path, assignments, assignment)]
    except OSError as error:
        made = [Submission(path.name, "", path, closed(path.name, error))]
    return [
        replace(s, student=plain.name(s.student), assignment=plain.name(s.assignment), problem=shown(s.problem))
        for s in (s if Path(os.path.realpath(s.path)).is_relative_to(home) else astray(s) for s in made)
    ]


def astray(submission: Submission) -> Submission:
    """A link can lead to another student's work, or to the instructor's files."""
    what = f"{submission.path.name} leads to another place by a link, so it is not an ordinary file of this student's"
    return replace(submission, problem=f"{what}: ask for the notebook itself")


EXCHANGE = re.compile(r"(?P<student>[^+]+)\+(?P<assignment>[^+]+)\+\d{4}-\d\d-\d\d [^+]+(\+.*)?")
MOODLE = re.compile(r"(?P<student>.+_(?P<id>\d+))_assignsubmission_file_?.*")
CANVAS = re.compile(r"(?P<student>[^_]+?)(?P<late>_LATE)?_(?P<id>\d+)_\d+_(?P<file>.+)")


def in_file(path: Path, assignments: list[str], assignment: str) -> Submission:
    """The submission that a file of the class's folder is: one from Canvas, or one that cannot be graded."""
    canvas = CANVAS.fullmatch(path.name)
    if canvas is None:
        what = f"{path.name} is neither a student's folder nor a file named as Canvas names them"
        return Submission(path.name, "", path, f"{what}: give each student a folder, or take it out")
    made = named_by(path, canvas["student"], canvas["file"], assignments, assignment)
    if not is_notebook(path):
        made = replace(made, problem=f"{path.name} is not a notebook: ask for the .ipynb file itself")
    late = ("it was handed in late, as Canvas says; no points were taken for that",) if canvas["late"] else ()
    return replace(made, canvas_id=canvas["id"], told=late)


def in_folder(path: Path, assignments: list[str], assignment: str) -> list[Submission]:
    """The submissions in a folder of the class's folder."""
    name = path.name
    if exchange := EXCHANGE.fullmatch(name):
        return [find_notebook(exchange["student"], path, assignments, exchange["assignment"])]
    if moodle := MOODLE.fullmatch(name):
        files = [file for file in visible(path) if is_notebook(file)]
        if len(files) != 1:
            among = ", ".join(file.name for file in visible(path)) or "nothing"
            what = f"{len(files)} notebooks in {name}, expected one; handed in: {among}"
            return [Submission(moodle["student"], assignment, path, what, moodle_id=moodle["id"])]
        made = named_by(files[0], moodle["student"], files[0].stem, assignments, assignment)
        return [replace(made, moodle_id=moodle["id"])]
    handed_in = [sub for sub in visible(path) if sub.is_dir()]
    if not handed_in:
        return [Submission(name, "", path, f"no folder of an assignment in {name}/")]
    return [in_handed_in(name, sub, assignments) for sub in handed_in]


def in_handed_in(student: str, folder: Path, assignments: list[str]) -> Submission:
    """One assignment's folder; if it cannot be opened, the student's others still can."""
    try:
        return find_notebook(student, folder, assignments, folder.name)
    except OSError as error:
        return Submission(student, folder.name, folder, closed(folder.name, error))


def named_by(path: Path, student: str, file: str, assignments: list[str], assignment: str) -> Submission:
    """A submission whose assignment stands in the name of its file, or else is `assignment`."""
    assignment = next((known for known in assignments if known in file), assignment)
    problem = "" if assignment else f"cannot tell which assignment {path.name} is: say --assignment"
    return Submission(student, assignment, path, problem)


def told_apart(found: list[Submission]) -> list[Submission]:
    """Canvas writes a name without its spaces and signs, so two students can have the same: then its number counts."""
    numbers: dict[str, set[str]] = {}
    for s in found:
        if s.canvas_id:
            numbers.setdefault(s.student, set()).add(s.canvas_id)
    return [
        replace(s, student=f"{s.student}_{s.canvas_id}") if len(numbers.get(s.student, ())) > 1 and s.canvas_id else s
        for s in found
    ]


def one_each(found: list[Submission]) -> list[Submission]:
    """One submission a student and assignment: the last that can be read (the exchange's names sort by time)."""
    groups: dict[tuple[str, str], list[Submission]] = {}
    for s in found:
        groups.setdefault((s.student, s.assignment), []).append(s)
    chosen = []
    for group in groups.values():
        best = ([s for s in group if not s.problem] or group)[-1]
        aside = [plain.name(handed_in_as(s)) for s in group if s is not best]
        told = (plain.sentence(f"handed in {len(group)} times; {', '.join(aside)} was set aside"),) if aside else ()
        chosen.append(replace(best, told=best.told + told))
    return chosen


def handed_in_as(submission: Submission) -> str:
    """The name by which an instructor finds it: a file from Canvas, else the folder that it lies in."""
    path = submission.path
    return path.name if submission.canvas_id or path.is_dir() else path.parent.name


def unwrapped(folder: Path, assignments: list[str]) -> Path:
    """`folder`, or the only folder in it where that one is a wrapper around those of the students."""
    inside = visible(folder)
    if len(inside) != 1 or inside[0].is_symlink() or any(p.fullmatch(inside[0].name) for p in (EXCHANGE, MOODLE)):
        return folder
    within = contents(inside[0])
    if any(path.name in assignments for path in within):
        return folder
    students = [
        path
        for path in within
        if any(pattern.fullmatch(path.name) for pattern in (EXCHANGE, MOODLE, CANVAS))
        or any(sub.name in assignments for sub in contents(path))
    ]
    return inside[0] if students else folder


def find_notebook(student: str, folder: Path, assignments: list[str], name: str) -> Submission:
    """The notebook of assignment `name` in a folder: the one of its name, else the only one there."""
    named = folder / f"{name}.ipynb"
    if name not in assignments:
        return Submission(student, name, named, unknown(name, assignments))
    notebooks = [path for path in visible(folder) if is_notebook(path)]
    if named not in notebooks and len(notebooks) == 1:
        named = notebooks[0]
    if named not in notebooks:
        names = ", ".join(path.name for path in visible(folder)) or "nothing"
        return Submission(student, name, named, f"no notebook {named.name} among what was handed in: {names}")
    others = ", ".join(plain.name(path.name) for path in notebooks if path != named)
    told = (plain.sentence(f"{named.name} was graded; beside it lay {others}, which was not"),) if others else ()
    return Submission(student, name, named, told=told)


# ---------------------------------------------------------------- a zip


def unpack(archive: Path, target: Path) -> Path:
    """The notebooks of a zip, and of every other file its name, so that none is lost without a word: in a folder below
    `target` that is named after the zip's content, so that several runs may do it at once.
    Raises Unreadable when it is no zip, or holds too many notebooks."""
    try:
        packed = zipfile.ZipFile(archive)
    except (zipfile.BadZipFile, OSError) as error:
        raise Unreadable(f"{archive.name} is not a zip: {error}") from None
    with packed:
        members = [info for info in packed.infolist() if not info.is_dir() and not is_hidden(info.filename)]
        notebooks = [info for info in members if is_notebook(Path(info.filename))]
        if len(notebooks) > MANY:
            raise Unreadable(f"{archive.name} holds {len(notebooks)} notebooks, more than {MANY}")
        with archive.open("rb") as file:
            unpacked = target / hashlib.file_digest(file, "sha256").hexdigest()[:20]
        if unpacked.is_dir():
            return unpacked
        target.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(dir=target))
        for info in notebooks:
            if problem := unpack_member(packed, info, fresh):
                stand_for(info, fresh, NOT_UNPACKED + problem)
        for info in [info for info in members if info not in notebooks][:MANY]:
            stand_for(info, fresh, "")
    try:
        fresh.rename(unpacked)
    except OSError:
        shutil.rmtree(fresh)
        if not unpacked.is_dir():  # it is there when another run was quicker
            raise
    return unpacked


def unpack_member(packed: zipfile.ZipFile, info: zipfile.ZipInfo, target: Path) -> str:
    """Unpack one file; why that cannot be, or nothing."""
    if info.file_size > LARGEST:
        return f"it has more than {LARGEST >> 20} MB: clear its outputs"
    if info.flag_bits & 1:
        return "it is encrypted: ask for the notebook itself"
    try:
        packed.extract(info, target)  # never outside of target, whatever its name says
    except Exception as error:  # zipfile raises all kinds on damaged, encrypted and oddly named files
        return f"{getattr(error, 'strerror', None) or str(error)[:100]}: ask for the notebook itself"
    return ""


NOT_UNPACKED = "could not be unpacked: "  # so starts what stands for a file that a zip would not give


def stand_for(info: zipfile.ZipInfo, target: Path, text: str) -> None:
    """A file in place of one that is not unpacked, with its name, or the beginning where that is too long."""
    parts = [part.replace(":", "_") for part in Path(info.filename).parts if part not in ("/", "..")]
    short = [part if len(part) <= 60 else f"{part[:50]}…{Path(part).suffix[:9]}" for part in parts]
    try:
        place = target.joinpath(*short)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8", errors="backslashreplace")
    except (OSError, ValueError) as error:
        print(f"{plain.name(info.filename)} in the zip was left out: {error}")


# ---------------------------------------------------------------- names


def visible(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if not is_hidden(path.name))


def contents(path: Path) -> list[Path]:
    """What is in a folder; nothing, if it is none or cannot be opened."""
    try:
        return visible(path)
    except OSError:
        return []


def is_hidden(name: str) -> bool:
    """Files that start with a dot, and the folder that macOS adds to zips."""
    return any(part == "__MACOSX" or (part.startswith(".") and part != "..") for part in Path(name).parts)


def is_notebook(path: Path) -> bool:
    return path.suffix.lower() == ".ipynb"


def shown(problem: str) -> str:
    """A sentence that quotes names of files."""
    return plain.sentence(os.fsencode(problem).decode("utf-8", "backslashreplace"))


def unknown(name: str, assignments: list[str]) -> str:
    return f"there is no assignment {name}; known are {', '.join(sorted(assignments))}"


def closed(name: str, error: OSError) -> str:
    what = f"{plain.name(name)} cannot be opened ({error.strerror})"
    return f"{what}: give yourself the right to read it, or ask for it again"


# ---------------------------------------------------------------- reading


def read_notebook(submission: Submission) -> tuple[Any, list[str]]:
    """(the notebook as nbformat 4.5, what had to be done to read it); raises Unreadable."""
    if submission.problem:
        raise Unreadable(submission.problem)
    path, name = submission.path, plain.name(submission.path.name)
    try:
        if path.is_symlink() or not path.is_file():
            raise Unreadable(f"{name} is not an ordinary file")
        if path.stat().st_size > LARGEST:
            raise Unreadable(f"{name} has {path.stat().st_size >> 20} MB, more than {LARGEST >> 20}: clear its outputs")
        data = path.read_bytes()
    except OSError as error:
        raise Unreadable(closed(name, error)) from None
    told = []
    if submission.assignment not in path.stem:
        told.append(f"the notebook was called {name}; it was graded as {submission.assignment}.ipynb")
    if data.startswith(NOT_UNPACKED.encode()):
        raise Unreadable(f"{name} {data[:300].decode(errors='replace')}")
    notebook = parse(data, name)
    if notebook.pop("_upgraded", False):
        told.append("the notebook was in an older format; it was converted")
    return notebook, told


def parse(data: bytes, name: str) -> Any:
    """Bytes -> nbformat 4.5 with nothing in it that is of the wrong type; raises Unreadable."""
    import nbformat

    try:
        raw = json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        what = f"it cannot be read as JSON ({str(error)[:80]})" if data.strip() else "it is empty"
        raise Unreadable(f"{name} is not a notebook: {what}; ask for it to be saved and handed in again") from None
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
    made = make(without_surrogates(source) if isinstance(source, str) else "")
    made.metadata = metadata if isinstance(metadata, dict) else nbformat.from_dict({})
    if not isinstance(made.metadata.get("nbgrader"), dict):
        made.metadata.pop("nbgrader", None)
    made["id"] = cell.get("id")
    return made
