"""A student on Colab: opens a lesson and an exercise by their badges, runs everything, hands the file in, is graded."""

import csv
import json
import os
import re
import shutil
import sys
from itertools import groupby

import nbformat
import pytest

from tests.colab.conftest import run
from tests.colab.saved import as_colab_saves

UNIT = "01_attention"
pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]


def kinds(notebook) -> list[list[list[str]]]:
    """What each code cell shows, by kind: pictures, tables, printed text (in however many pieces it came)."""
    shown = []
    for cell in notebook.cells:
        if cell.cell_type == "code" and cell.id != "setup":
            outputs = [out for out in cell.outputs if out.get("name") != "stderr"]
            kind = [sorted(out["data"]) if "data" in out else [out.output_type] for out in outputs]
            shown.append([key for key, _ in groupby(kind)])
    return shown


def errors(notebook) -> list[str]:
    """Lines on stderr, but for what the first use of real weights says there."""
    outputs = [out for cell in notebook.cells for out in cell.get("outputs", [])]
    lines = [line for out in outputs if out.get("name") == "stderr" for line in out.text.splitlines()]
    return [line for line in lines if not line.startswith("Downloading data from")]


@pytest.fixture(scope="module")
def lesson(colab, archive):
    """Lesson 01 after Run all on a fresh machine: its first cell installs the course."""
    notebook = nbformat.read(archive.folder / "notebooks" / f"{UNIT}.ipynb", as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    assert "False" in colab.asked("from importlib.util import find_spec; print(find_spec('coursework') is not None)")
    colab.run_all(notebook)
    return notebook


def test_a_lesson_runs_and_shows_what_the_stored_one_shows(lesson, archive):
    stored = nbformat.read(archive.folder / "notebooks" / f"{UNIT}.ipynb", as_version=4)
    assert kinds(lesson) == kinds(stored)
    (setup,) = [cell for cell in lesson.cells if cell.id == "setup"]
    assert re.search(r"^Ready: \w+.*torch \d", setup.outputs[-1].text)
    assert errors(lesson) == []


def test_the_course_came_from_the_archive_and_torch_stayed(lesson, colab):
    source = """
import json, torch, bert_minimal, coursework
from importlib import metadata
installed = sorted(d.name.lower() for d in metadata.distributions())
print(json.dumps([torch.__file__, bert_minimal.__file__, coursework.__file__, installed]))
"""
    torch_file, model_file, course_file, installed = json.loads(colab.asked(source))
    assert "dist-packages" in torch_file
    site = str(colab.python.parents[1])
    assert model_file.startswith(site)
    assert course_file.startswith(site)
    assert not {"jupyterlab", "nbgrader", "nbclient"} & set(installed)
    assert sorted(path.name for path in colab.content.iterdir()) == ["keep-torch.txt"]


def test_an_exercise_done_on_colab_earns_full_marks(lesson, colab, archive, tmp_path):
    notebook = nbformat.read(archive.folder / "exercises" / UNIT / f"{UNIT}.ipynb", as_version=4)
    solved = nbformat.read(archive.folder / "solutions" / UNIT / f"{UNIT}.ipynb", as_version=4)
    answers = {cell.id: cell.source for cell in solved.cells if cell.id.endswith("-answer")}
    for cell in notebook.cells:
        if cell.id in answers:
            cell.source = re.sub(r" *### (BEGIN|END) SOLUTION\n?", "", answers[cell.id])
    colab.run_all(notebook)
    tried = [cell for cell in notebook.cells if cell.id.endswith("-try")]
    assert tried
    for cell in tried:
        assert any("✓" in json.dumps(out, ensure_ascii=False) for out in cell.outputs), cell.id

    text = as_colab_saves(notebook)
    assert "nbgrader" not in text
    handed_in = tmp_path / "class" / "student" / UNIT / f"{UNIT}.ipynb"
    handed_in.parent.mkdir(parents=True)
    handed_in.write_text(text)
    walls = [] if shutil.which("bwrap") else ["--trusted"]
    grade = [sys.executable, "-m", "coursework", "grade", tmp_path / "class", "--out", tmp_path / "out", *walls]
    run(grade, cwd=archive.folder, env=os.environ | {"PYTHONPATH": str(archive.folder)})
    with (tmp_path / "out" / "marks.csv").open() as file:
        marks = list(csv.DictReader(file))
    assert len(marks) == len(tried)
    assert [row["exercise"] for row in marks if float(row["points"]) != float(row["max"])] == []
    assert "recognised by their text" in (tmp_path / "out" / "feedback" / "student" / f"{UNIT}.html").read_text()


def test_nothing_is_installed_where_the_course_is_already(lesson, colab):
    """A second Run all on the same machine asks pip for nothing."""
    (colab.content / "keep-torch.txt").unlink()
    again = nbformat.v4.new_notebook(cells=[cell for cell in lesson.cells if cell.get("id") == "setup"])
    colab.run_all(again)
    assert not (colab.content / "keep-torch.txt").exists()
