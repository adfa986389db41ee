"""A course of one assignment, built with the course's conventions, so that no test depends on a notebook's text."""

import json
from pathlib import Path

import nbformat
import pytest

from coursework.grading.assignments import known_assignments

LESSON = "01_attention"
SETUP = 'from coursework.notebook import start\ndevice = start("01_attention")'
IMPORTS = "import math\nimport torch\nimport torch.nn.functional as F\nfrom coursework.checks import attention as check"
STUB = "raise NotImplementedError()"


def marks(grade_id: str, **changes) -> dict:
    plain = {"grade": False, "solution": False, "locked": True, "task": False, "schema_version": 3}
    return {"nbgrader": plain | {"grade_id": grade_id} | changes}


def cell(kind: str, name: str, source: str, metadata: dict | None = None):
    make = nbformat.v4.new_code_cell if kind == "code" else nbformat.v4.new_markdown_cell
    return make(source, id=name, metadata=metadata or {})


def released_notebook(names: list[str] | None = None):
    """The released notebook of assignment 01, with these exercises only."""
    exercises = known_assignments()[LESSON].exercises
    cells = [
        cell("markdown", "title", "# Attention"),
        cell("code", "setup", SETUP, marks("setup")),
        cell("code", "imports", IMPORTS),
    ]
    for name in names or list(exercises):
        points = exercises[name].points
        cells += [
            cell("markdown", f"{name}-text", f"## {name}", marks(f"{name}-text")),
            cell("code", f"{name}-answer", f"def {name}(*args, **kwargs):\n    {STUB}",
                 marks(f"{name}-answer", solution=True, locked=False)),
            cell("code", f"{name}-try", f"check.{name}({name})"),
            cell("code", name, f"check.{name}.grade(globals())", marks(name, grade=True, points=points)),
        ]  # fmt: skip
    return nbformat.v4.new_notebook(cells=cells)


def answer(notebook, name: str, source: str) -> None:
    """Write an answer into a notebook."""
    next(c for c in notebook.cells if c.get("id") == f"{name}-answer").source = source


@pytest.fixture
def course(tmp_path: Path) -> Path:
    """A folder with exercises/01_attention/."""
    path = tmp_path / "course" / "exercises" / LESSON / f"{LESSON}.ipynb"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(released_notebook()))
    return tmp_path / "course"
