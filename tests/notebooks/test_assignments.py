"""Assignments keep their word: the examples in the text are what the solutions give, and solutions get all points."""

import ast
import contextlib
import io
import re
from pathlib import Path

import nbformat
import pytest
import torch

from coursework.checks import exercises
from coursework.checks.engine import run_here

ROOT = Path(__file__).parents[2]
SOLUTIONS = sorted((ROOT / "solutions").glob("*/*.ipynb"))
UNITS = [path.stem for path in SOLUTIONS]  # whose texts have worked examples in this form


def solved(path: Path) -> tuple[dict, dict]:
    """Cells by id, and the names that the imports and the solutions define."""
    cells = {cell.id: cell for cell in nbformat.read(path, as_version=4).cells}
    names: dict = {"torch": torch, "__name__": "__main__"}
    for cell in cells.values():
        if cell.id in ("setup", "imports") or cell.id.endswith("-answer"):
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile(cell.source, cell.id, "exec"), names)
    return cells, names


def examples(text: str, names: dict):
    """Pairs (value, expected as written in the comment below) of the Python blocks in a text."""
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        lines = block.splitlines()
        for node in ast.parse(block).body:
            source = ast.get_source_segment(block, node)
            if not isinstance(node, ast.Expr):
                exec(source, names)
                continue
            after = lines[node.end_lineno :]
            count = next((i for i, line in enumerate(after) if not line.startswith("#")), len(after))
            yield tried(source, names), "".join(line.lstrip("# ") for line in after[:count])


def tried(source: str, names: dict):
    """The value; for an example of an error, its last line as Python prints it."""
    try:
        return eval(source, names)
    except ValueError as error:
        return error


def same(value, written):
    """A value and what the text says it is; numbers agree to the four places that a text shows."""
    if isinstance(value, torch.Tensor):
        torch.testing.assert_close(value, written, rtol=1e-4, atol=1e-4, check_dtype=value.dtype == torch.bool)
    elif isinstance(value, dict):
        assert list(value) == list(written)
        for key in value:
            same(value[key], written[key])
    elif isinstance(value, (list, tuple)):
        assert (type(value), len(value)) == (type(written), len(written))
        for one, other in zip(value, written, strict=True):
            same(one, other)
    else:
        assert value == (pytest.approx(written, abs=1e-4) if isinstance(written, float) else written)


@pytest.mark.parametrize("unit", UNITS)
def test_worked_examples_are_what_the_solutions_give(unit):
    cells, names = solved(ROOT / "solutions" / unit / f"{unit}.ipynb")
    for exercise in exercises(unit):
        pairs = list(examples(cells[f"{exercise.name}-text"].source, names))
        assert pairs, f"{exercise.name} shows no example"
        for value, written in pairs:
            if isinstance(value, ValueError):
                assert written == f"ValueError: {value}"
            else:
                same(value, eval(written, {"tensor": torch.tensor, "True": True, "nan": float("nan")}))


@pytest.mark.parametrize("path", SOLUTIONS, ids=lambda path: path.stem)
def test_solutions_get_all_points(path):
    _, names = solved(path)
    for exercise in exercises(path.stem):
        verdict = exercise.verdict(run_here(names), seed=31)
        assert verdict.passed, verdict.text()
        assert verdict.points == exercise.points


@pytest.mark.parametrize("path", SOLUTIONS, ids=lambda path: path.stem)
def test_every_exercise_begins_alike(path):
    """Number and title, what it is for, then how hard, how long and how many points."""
    cells, _ = solved(path)
    for exercise in exercises(path.stem):
        head = rf"## {exercise.number} · .+\n\n\*\*What for\.\*\* .+\n\n\*\*Difficulty\*\* ●+○* · \*\*minutes\*\* \d+ · "
        assert re.match(head + rf"\*\*points\*\* {exercise.points:g}\n\n", cells[f"{exercise.name}-text"].source), exercise.name


@pytest.mark.parametrize("path", SOLUTIONS, ids=lambda path: path.stem)
def test_hints_are_three_and_folded(path):
    cells, _ = solved(path)
    for exercise in exercises(path.stem):
        text = cells[f"{exercise.name}-text"].source
        assert re.findall(r"<summary>Hint (\d)", text) == ["1", "2", "3"]
