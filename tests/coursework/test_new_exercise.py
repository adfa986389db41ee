"""The cells that `new-exercise` writes are those that an author would have made by hand."""

import contextlib
import io
import re
from pathlib import Path

import nbformat
import pytest
import torch

from coursework import checks
from coursework.build import BuildError
from coursework.checks.engine import run_here
from coursework.new_exercise import add

ROOT = Path(__file__).parents[2]
UNIT, NAME = "01_attention", "merge_heads"
IDS = [f"{NAME}-text", f"{NAME}-answer", f"{NAME}-try", NAME]


@pytest.fixture
def without(tmp_path) -> Path:
    """A repository whose assignment 01 lacks one exercise."""
    notebook = nbformat.read(ROOT / "solutions" / UNIT / f"{UNIT}.ipynb", as_version=4)
    notebook.cells = [cell for cell in notebook.cells if cell.id not in IDS]
    path = tmp_path / "solutions" / UNIT / f"{UNIT}.ipynb"
    path.parent.mkdir(parents=True)
    nbformat.write(notebook, path)
    return tmp_path


def test_the_cells_of_an_exercise_are_put_in(without):
    made = nbformat.read(add("01", NAME, without), as_version=4)
    assert [cell.id for cell in made.cells[-5:-1]] == IDS
    ours = {cell.id: cell for cell in nbformat.read(ROOT / "solutions" / UNIT / f"{UNIT}.ipynb", as_version=4).cells}
    for cell in made.cells[-5:-1]:
        assert cell.metadata == ours[cell.id].metadata
        assert cell.cell_type == ours[cell.id].cell_type
    assert made.cells[-3].source == ours[f"{NAME}-try"].source
    assert made.cells[-2].source == ours[NAME].source
    assert re.findall(r"<summary>Hint (\d)", made.cells[-5].source) == ["1", "2", "3"]
    names = {"torch": torch}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(made.cells[-4].source, names)
    assert checks.find("01", NAME).verdict(run_here(names), seed=4).passed
    with pytest.raises(BuildError, match="already"):
        add("01", NAME, without)


def test_an_exercise_without_checks_is_said(without):
    with pytest.raises(LookupError, match="merge_heads"):
        add("01", "merge_hedas", without)
