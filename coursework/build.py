"""Notebooks from source to reader: normal form, and the release of the exercises. lessons.py executes lessons.

    python -m coursework.build [FILES]          bring notebooks to normal form (all of them without FILES)
    python -m coursework.build --check [FILES]  say which are not, change nothing

`python -m coursework release` calls `release` below. The .ipynb is the only source; normal form
makes a rerun that changes nothing give the same bytes.
"""

import copy
import json
import re
import shutil
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coursework import checks
from coursework.notebook import badge, setup_cell

ROOT = Path(__file__).resolve().parents[1]
KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
KEPT = ("nbgrader", "tags", "editable", "deletable", "jupyter")  # cell metadata; the rest is an editor's state
READ_ONLY = {"grade": False, "locked": True, "schema_version": 3, "solution": False, "task": False}


class BuildError(Exception):
    """Something in the notebooks is wrong; the message says where and what to do."""


# ---------------------------------------------------------------- where things are


@dataclass(frozen=True)
class Place:
    """A notebook's path from the root, its kind (notebooks, solutions or exercises) and its unit."""

    path: Path
    kind: str
    unit: str


def place(path: Path) -> Place:
    """notebooks/01_attention.ipynb, solutions/01_attention/01_attention.ipynb -> kind and unit."""
    kind, unit = path.parts[0], path.parts[1].removesuffix(".ipynb")
    if kind not in ("notebooks", "solutions", "exercises"):
        raise BuildError(f"{path}: a notebook of the course lies in notebooks/, solutions/ or exercises/")
    return Place(path, kind, unit)


def places(root: Path = ROOT) -> list[Place]:
    """Every notebook of the course, in order."""
    found = [*root.glob("notebooks/*.ipynb"), *root.glob("solutions/*/*.ipynb"), *root.glob("exercises/*/*.ipynb")]
    return [place(path.relative_to(root)) for path in sorted(found)]


def address(root: Path = ROOT) -> tuple[str, str]:
    """(repository, tag) from pyproject.toml."""
    settings = tomllib.loads((root / "pyproject.toml").read_text())
    return settings["project"]["urls"]["Repository"], settings["tool"]["coursework"]["tag"]


def read(path: Path) -> Any:
    import nbformat

    return nbformat.read(path, as_version=4)


def write(notebook: Any, path: Path) -> None:
    """Write only what differs, so that files keep their times."""
    text = dumps(notebook)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8", newline="\n")


def dumps(notebook: Any) -> str:
    """Sorted keys, one space, a newline at the end."""
    return json.dumps(notebook, sort_keys=True, indent=1, ensure_ascii=False) + "\n"


# ---------------------------------------------------------------- normal form


def normal(notebook: Any, where: Place, repository: str, tag: str) -> Any:
    """A copy in normal form, with the set-up cell and the Colab badge stamped.

    Raises:
        BuildError: no title, no set-up cell, or two cells with one id.
    """
    import nbformat

    nb = copy.deepcopy(notebook)
    lesson = where.kind == "notebooks"
    code = nb.metadata.get("coursework", {}).get("code")
    nb.nbformat, nb.nbformat_minor = 4, 5
    nb.metadata = nbformat.from_dict({"kernelspec": KERNEL, "language_info": {"name": "python"}})
    if lesson and code:
        nb.metadata["coursework"] = {"code": code}
    previous = "cell"
    for cell in nb.cells:
        cell.metadata = nbformat.from_dict({key: cell.metadata[key] for key in KEPT if key in cell.metadata})
        cell.source = "\n".join(line.rstrip() for line in cell.source.split("\n")).strip("\n")
        cell["id"] = previous = _id(cell, previous, [other.get("id") for other in nb.cells])
        if cell.cell_type == "code":
            cell.execution_count = None
            cell.outputs = [_output(output) for output in cell.outputs] if lesson else []
    _unique([cell.id for cell in nb.cells], where.path)
    _stamp(nb, where, repository, tag)
    nbformat.validate(nb)
    return nb


def _id(cell: Any, previous: str, taken: list[str]) -> str:
    """The graded cell's grade_id, the id it has, or a readable one made from its heading or its neighbour."""
    if "nbgrader" in cell.metadata:
        return cell.metadata.nbgrader.grade_id
    old = cell.get("id", "")
    random_looking = re.fullmatch(r"(?=.*\d)[0-9a-f]{6,}(-[0-9a-f-]+)?", old)
    if re.fullmatch(r"[A-Za-z][\w-]{0,63}", old) and not random_looking:
        return old
    heading = re.match(r"#+ (.*)", cell.source) if cell.cell_type == "markdown" else None
    stem = re.sub(r"[^a-z0-9]+", "-", heading[1].lower()).strip("-")[:40] if heading else ""
    stem = stem or re.sub(r"-then(-\d+)?$", "", previous)[:50] + "-then"
    names = (stem if i == 1 else f"{stem}-{i}" for i in range(1, 1000))
    return next(name for name in names if name not in taken)


def _unique(ids: list[str], path: Path) -> None:
    twice = sorted({i for i in ids if ids.count(i) > 1})
    if twice:
        raise BuildError(f"{path}: cells share the id {', '.join(twice)}: give each its own")


def _output(output: Any) -> Any:
    if "execution_count" in output:
        output.execution_count = None
    if "data" in output:
        output.data.pop("application/vnd.jupyter.widget-view+json", None)
    return output


def _stamp(nb: Any, where: Place, repository: str, tag: str) -> None:
    title = nb.cells[0] if nb.cells else None
    if title is None or title.cell_type != "markdown" or not title.source.startswith("# "):
        raise BuildError(f"{where.path}: the first cell must be Markdown and begin with a title, # …")
    opens = where.path if where.kind == "notebooks" else Path("exercises", *where.path.parts[1:])
    first, *rest = [line for line in title.source.split("\n") if not line.startswith("[![Open In Colab]")]
    body = "\n".join(rest).strip("\n")
    title.source = f"{first}\n\n{badge(opens.as_posix(), repository, tag)}\n\n{body}".rstrip()

    setup = next((cell for cell in nb.cells if cell.id == "setup"), None)
    if setup is None or nb.cells.index(setup) != 1 or setup.cell_type != "code":
        raise BuildError(f'{where.path}: the second cell must be the code cell with the id "setup"')
    setup.source = setup_cell(where.unit, repository, tag)
    setup.metadata.update(editable=False, deletable=False)
    if where.kind != "notebooks":
        setup.metadata["nbgrader"] = setup.metadata.get("nbgrader", {}) | READ_ONLY | {"grade_id": "setup"}


def normalise(paths: list[Path], root: Path = ROOT, check: bool = False) -> list[Path]:
    """Bring notebooks to normal form; returns those that were not in it. With `check`, changes nothing.

    exercises/ are generated: there `release` is what mends them, so only their form is checked.
    """
    repository, tag = address(root)
    off = []
    for path in paths:
        wanted = normal(read(root / path), place(path), repository, tag)
        if (root / path).read_text(encoding="utf-8") != dumps(wanted):
            off.append(path)
            if not check:
                write(wanted, root / path)
    return off


# ---------------------------------------------------------------- what notebooks and checks must agree on


def disagreements(notebook: Any, unit: str) -> list[str]:
    """Sentences on where an assignment (with solutions) and its checks differ; empty when all is well."""
    try:
        short = checks.unit(unit).__name__.rpartition(".")[2]
    except LookupError as error:
        return [str(error)]
    said = []
    exercises = {exercise.name: exercise for exercise in checks.exercises(unit)}
    cells = {cell.id: cell for cell in notebook.cells}
    order = list(cells)
    graded = [cell.id for cell in notebook.cells if cell.metadata.get("nbgrader", {}).get("grade")]
    if graded != list(exercises):
        said.append(f"graded cells {graded}, but coursework.checks.{short} has {list(exercises)}")
    if f"from coursework.checks import {short} as check" not in cells.get("imports", {}).get("source", ""):
        said.append(f"the cell imports lacks: from coursework.checks import {short} as check")
    for name, exercise in exercises.items():
        wanted = [f"{name}-text", f"{name}-answer", f"{name}-try", name]
        absent = [i for i in wanted if i not in cells]
        if absent:
            said.append(f"{name}: no cell {', '.join(absent)}")
            continue
        if sorted(wanted, key=order.index) != wanted:
            said.append(f"{name}: its cells stand in the order {sorted(wanted, key=order.index)}")
        text, answer, trial, grade = (cells[i] for i in wanted)
        marks = {"grade": True, "locked": True, "solution": False, "points": exercise.points}
        for cell, kind, expected in (
            (text, "markdown", {"grade": False, "locked": True, "solution": False}),
            (answer, "code", {"grade": False, "solution": True}),
            (grade, "code", marks),
        ):
            have = cell.metadata.get("nbgrader", {})
            wrong = {key: have.get(key) for key, value in expected.items() if have.get(key) != value}
            if wrong or cell.cell_type != kind:
                said.append(f"{cell.id}: is {cell.cell_type} with {wrong}, should be {kind} with {expected}")
        if grade.source != f"check.{name}.grade(globals())":
            said.append(f"{name}: the graded cell must read check.{name}.grade(globals())")
        if trial.source != f"check.{name}({name})" or "nbgrader" in trial.metadata:
            said.append(f"{name}-try: must read check.{name}({name}) and be no nbgrader cell")
        if "### BEGIN SOLUTION" not in answer.source:
            said.append(f"{name}-answer: no ### BEGIN SOLUTION … ### END SOLUTION")
    return said


# ---------------------------------------------------------------- leaks


def solution_lines(notebook: Any) -> set[str]:
    """What solutions say, without white space: each telling line, and what it returns or assigns."""
    found = set()
    for cell in notebook.cells:
        for block in re.findall(r"### BEGIN SOLUTION\n(.*?)### END SOLUTION", cell.source, re.DOTALL):
            for line in block.split("\n"):
                statement = _squeeze(line)
                value = re.sub(r"^(return|[\w.,]+=(?!=))", "", statement)
                found |= {text for text in (statement, value) if _telling(text)}
    return found


def _squeeze(line: str) -> str:
    return re.sub(r"\s+", "", re.sub(r"(^|\s)#.*", "", line))


def _telling(text: str) -> bool:
    """Long enough to give something away, and more than a name: it calls, computes or indexes."""
    return len(text) >= 12 and re.search(r"[-+*/@(\[]", text) is not None and not text.startswith(("import", "raise"))


def leaks(root: Path = ROOT, released: Path | None = None) -> list[str]:
    """Solution lines that stand in released files: "exercises/…: the line". Text outputs and hints count too."""
    released = released or root / "exercises"
    found = []
    for source in sorted((root / "solutions").glob("*/*.ipynb")):
        secret = solution_lines(read(source))
        for path in sorted((released / source.parent.name).rglob("*")):
            if path.suffix not in (".ipynb", ".py", ".md", ".txt"):
                continue
            text = _squeeze_all(path)
            found += [f"{path.name} of {source.parent.name}: {line}" for line in sorted(secret) if line in text]
    return found


def _squeeze_all(path: Path) -> str:
    if path.suffix != ".ipynb":
        return re.sub(r"\s+", "", path.read_text(encoding="utf-8"))
    nb = read(path)
    outputs = [json.dumps(cell.get("outputs", []), ensure_ascii=False) for cell in nb.cells]
    return re.sub(r"\s+", "", "\n".join([cell.source for cell in nb.cells] + outputs))


# ---------------------------------------------------------------- release


def release(root: Path = ROOT, check: bool = False) -> list[str]:
    """Make exercises/ from solutions/ with nbgrader's own generate_assignment; returns what changed.

    With `check`, says what would change and leaves exercises/ and solutions/ as they are.

    Raises:
        BuildError: notebooks and checks disagree, nbgrader refuses, or a solution would leak.
    """
    sources = [where for where in places(root) if where.kind == "solutions"]
    off = normalise([where.path for where in sources], root, check)
    problems = [f"{path} is not in normal form: make release" for path in off] if check else []
    for where in sources:
        problems += [f"{where.path}: {said}" for said in disagreements(read(root / where.path), where.unit)]
    if problems:
        raise BuildError("\n".join(problems))
    with tempfile.TemporaryDirectory() as folder:
        fresh = Path(folder) / "exercises"
        for unit in sorted({where.unit for where in sources}):
            _generate(unit, root, fresh)
        repository, tag = address(root)
        for path in sorted(fresh.glob("*/*.ipynb")):
            where = place(Path("exercises", *path.relative_to(fresh).parts))
            write(normal(read(path), where, repository, tag), path)
        leaked = leaks(root, fresh)
        if leaked:
            raise BuildError("solutions would leak into the exercises:\n" + "\n".join(leaked))
        changed = _differences(fresh, root / "exercises")
        if changed and not check:
            shutil.rmtree(root / "exercises", ignore_errors=True)
            shutil.copytree(fresh, root / "exercises")
    return changed


def _generate(unit: str, root: Path, into: Path) -> None:
    """`nbgrader generate_assignment UNIT --no-db`, in this process: importing nbgrader takes seconds."""
    import logging

    from nbgrader.converters import GenerateAssignment
    from nbgrader.converters.base import NbGraderException
    from nbgrader.coursedir import CourseDirectory
    from traitlets.config import Config
    from traitlets.config.loader import PyFileConfigLoader

    config = Config(PyFileConfigLoader("nbgrader_config.py", path=str(root)).load_config())
    config.CourseDirectory.root = str(root)
    config.CourseDirectory.assignment_id = unit
    config.CourseDirectory.release_directory = str(into)
    config.GenerateAssignment.no_database = True
    config.SaveCells.enabled = False
    log = logging.getLogger("nbgrader")
    log.setLevel(logging.ERROR)
    coursedir = CourseDirectory(config=config, log=log)
    try:
        GenerateAssignment(coursedir=coursedir, config=config, log=log).start()
    except NbGraderException as error:
        raise BuildError(f"nbgrader could not release {unit}: {error}") from error


def _differences(fresh: Path, old: Path) -> list[str]:
    """Names of files that are new, changed or gone."""
    have = {
        p.relative_to(old): p.read_bytes()
        for p in old.rglob("*")
        if p.is_file() and ".ipynb_checkpoints" not in p.parts
    }
    want = {p.relative_to(fresh): p.read_bytes() for p in fresh.rglob("*") if p.is_file()}
    return sorted(str(name) for name in have.keys() | want.keys() if have.get(name) != want.get(name))


# ---------------------------------------------------------------- command line


def main(arguments: list[str]) -> int:
    """Normal form for pre-commit and `make lint`; 1 when a notebook was not in it."""
    check = "--check" in arguments
    given = [Path(a).resolve().relative_to(ROOT) for a in arguments if a != "--check"]
    off = normalise(given or [where.path for where in places()], check=check)
    for path in off:
        print(f"{path}: {'is not in normal form: python -m coursework.build' if check else 'brought to normal form'}")
    return 1 if off else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except BuildError as error:
        sys.exit(str(error))
