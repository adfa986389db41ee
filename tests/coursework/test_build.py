"""Normal form, release, the leak check, the agreement of notebooks and checks, and the lessons' staleness."""

import copy
import json
import shutil
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from coursework import build, checks, lessons
from coursework.build import BuildError, Place, disagreements, dumps, leaks, normal, read, release

UNIT = "01_attention"
WHERE = Place(Path(f"solutions/{UNIT}/{UNIT}.ipynb"), "solutions", UNIT)
LESSON = Place(Path(f"notebooks/{UNIT}.ipynb"), "notebooks", UNIT)
AT = ("https://github.com/someone/course", "v9.9.9")


def cell(kind, id, source, **marks):
    made = (new_code_cell if kind == "code" else new_markdown_cell)(source)
    made["id"] = id
    if marks:
        plain = {"grade": False, "locked": True, "solution": False, "task": False, "schema_version": 3, "grade_id": id}
        made.metadata["nbgrader"] = plain | marks
    return made


def assignment():
    """A small assignment for the real checks of unit 01."""
    cells = [
        cell("markdown", "title", "# Exercises\nAll of them."),
        cell("code", "setup", "", locked=True),
        cell("code", "imports", "import torch\nfrom coursework.checks import attention as check"),
    ]
    for exercise in checks.exercises(UNIT):
        name = exercise.name
        answer = (
            f"def {name}(x):\n    ### BEGIN SOLUTION\n    y = x.{name}_secret(1, 2)\n    return y\n    ### END SOLUTION"
        )
        cells += [
            cell("markdown", f"{name}-text", f"## {exercise.title}", locked=True),
            cell("code", f"{name}-answer", answer, solution=True, locked=False),
            cell("code", f"{name}-try", f"check.{name}({name})"),
            cell("code", name, f"check.{name}.grade(globals())", grade=True, points=exercise.points),
        ]
    return new_notebook(cells=cells)


@pytest.fixture
def root(tmp_path):
    """A repository with that one assignment and one lesson."""
    for name in ("pyproject.toml", "nbgrader_config.py"):
        shutil.copy(build.ROOT / name, tmp_path)
    (tmp_path / "notebooks").mkdir()
    folder = tmp_path / "solutions" / UNIT
    folder.mkdir(parents=True)
    build.write(normal(assignment(), WHERE, *build.address()), folder / f"{UNIT}.ipynb")
    return tmp_path


# ---------------------------------------------------------------- normal form


def test_normal_form_is_a_fixed_point():
    once = normal(assignment(), WHERE, *AT)
    again = normal(nbformat.reads(dumps(once), as_version=4), WHERE, *AT)
    assert dumps(again) == dumps(once)


def test_normal_form_removes_what_a_run_leaves_behind():
    nb = assignment()
    run = copy.deepcopy(nb)
    run.metadata = nbformat.from_dict({"widgets": {"application/vnd.jupyter.widget-state+json": {}}, "kernelspec": {}})
    for code in (c for c in run.cells if c.cell_type == "code"):
        code.execution_count = 7
        code.metadata["execution"] = {"iopub.execute_input": "2026-01-01T00:00:00Z"}
        code.metadata["collapsed"] = True
        code.outputs = [new_output("stream", name="stdout", text="hello")]
    assert dumps(normal(run, WHERE, *AT)) == dumps(normal(nb, WHERE, *AT))


def test_lessons_keep_outputs_but_no_counts():
    nb = new_notebook(cells=[cell("markdown", "title", "# L"), cell("code", "setup", ""), cell("code", "sum", "1 + 1")])
    nb.cells[2].outputs = [new_output("execute_result", {"text/plain": "2"}, execution_count=3)]
    kept = normal(nb, LESSON, *AT).cells[2].outputs
    assert kept[0].data["text/plain"] == "2"
    assert kept[0].execution_count is None


def test_setup_cell_and_badge_are_stamped_once():
    nb = assignment()
    stamped = normal(normal(nb, WHERE, "https://github.com/old/place", "v0"), WHERE, *AT)
    title, setup = stamped.cells[0].source, stamped.cells[1]
    link = f"https://colab.research.google.com/github/someone/course/blob/v9.9.9/exercises/{UNIT}/{UNIT}.ipynb"
    assert title.count("Open In Colab") == 1
    assert link in title
    assert title.startswith("# Exercises\n")
    assert title.endswith("All of them.")
    assert "git+https://github.com/someone/course@v9.9.9" in setup.source
    assert f'start("{UNIT}")' in setup.source
    assert setup.metadata.nbgrader.locked
    assert not setup.metadata.editable


def test_ids_become_readable_and_stay():
    nb = assignment()
    nb.cells.append(cell("markdown", "0123456789ab", "## What comes *next*"))
    nb.cells.append(cell("code", "8c9f1e2a-1111-2222-3333-444455556666", "1"))
    nb.cells.append(cell("code", "a1b2c3d4", "2"))
    ids = [c.id for c in normal(nb, WHERE, *AT).cells][-3:]
    assert ids[0] == "what-comes-next"
    assert len(set(ids)) == 3
    assert all(i.startswith("what-comes-next") for i in ids)


def test_a_graded_cell_is_called_by_its_grade_id():
    nb = assignment()
    nb.cells[6]["id"] = "something-else"
    assert normal(nb, WHERE, *AT).cells[6].id == checks.exercises(UNIT)[0].name


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda nb: nb.cells.pop(0), "title"),
        (lambda nb: nb.cells.pop(1), "setup"),
        (lambda nb: nb.cells.append(copy.deepcopy(nb.cells[2])), "share the id imports"),
    ],
)
def test_what_normal_form_refuses(spoil, says):
    nb = assignment()
    spoil(nb)
    with pytest.raises(BuildError, match=says):
        normal(nb, WHERE, *AT)


# ---------------------------------------------------------------- agreement


def test_a_right_assignment_agrees_with_its_checks():
    assert disagreements(normal(assignment(), WHERE, *AT), UNIT) == []


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda cells: cells[6].metadata.nbgrader.update(points=99), "99"),
        (lambda cells: cells[6].update(source="1.0"), "must read check"),
        (lambda cells: cells[6].metadata.nbgrader.update(locked=False), "locked"),
        (lambda cells: cells[5].update(source=""), "-try: must read"),
        (lambda cells: cells[4].update(source="def f(): pass"), "no ### BEGIN SOLUTION"),
        (lambda cells: cells[4].metadata.nbgrader.update(solution=False), "solution"),
        (lambda cells: cells[3].metadata.nbgrader.update(locked=False), "locked"),
        (lambda cells: cells[2].update(source="import torch"), "imports lacks"),
        (lambda cells: cells.pop(6), "graded cells"),
        (lambda cells: cells.insert(3, cells.pop(5)), "in the order"),
    ],
)
def test_each_disagreement_is_told(spoil, says):
    nb = normal(assignment(), WHERE, *AT)
    spoil(nb.cells)
    assert any(says in sentence for sentence in disagreements(nb, UNIT))


def test_an_assignment_without_checks_is_told():
    assert "no unit '42_nothing'" in disagreements(normal(assignment(), WHERE, *AT), "42_nothing")[0]


# ---------------------------------------------------------------- release and leaks


def test_release_is_nbgraders_and_the_same_each_time(root):
    assert release(root, check=True) == [f"{UNIT}/{UNIT}.ipynb"]
    assert not (root / "exercises").exists()
    assert release(root) == [f"{UNIT}/{UNIT}.ipynb"]
    path = root / "exercises" / UNIT / f"{UNIT}.ipynb"
    first = path.read_bytes()
    assert release(root) == []
    shutil.rmtree(root / "exercises")
    release(root)
    assert path.read_bytes() == first
    cells = {c.id: c for c in read(path).cells}
    name = checks.exercises(UNIT)[0].name
    assert "raise NotImplementedError()" in cells[f"{name}-answer"].source
    assert "SOLUTION" not in cells[f"{name}-answer"].source
    assert cells[name].metadata.nbgrader.checksum
    assert cells[name].metadata.deletable is False


def test_release_drops_units_that_are_gone(root):
    old = root / "exercises" / "99_old" / "99_old.ipynb"
    old.parent.mkdir(parents=True)
    old.write_text("{}")
    assert "99_old/99_old.ipynb" in release(root)
    assert not old.exists()


def test_release_refuses_a_disagreement_and_leaves_the_old_release(root):
    release(root)
    path = root / "solutions" / UNIT / f"{UNIT}.ipynb"
    nb = read(path)
    nb.cells[6].metadata.nbgrader.points = 99
    build.write(nb, path)
    before = (root / "exercises" / UNIT / f"{UNIT}.ipynb").read_bytes()
    with pytest.raises(BuildError, match="99"):
        release(root)
    assert (root / "exercises" / UNIT / f"{UNIT}.ipynb").read_bytes() == before


@pytest.mark.parametrize("plant", ["y  =  x.{}_secret( 1,2 )", "so x.{}_secret(1, 2) it is", "x.{}_secret(1,\n  2)"])
def test_a_planted_solution_line_is_found(root, plant):
    release(root)
    assert leaks(root) == []
    path = root / "exercises" / UNIT / f"{UNIT}.ipynb"
    nb = read(path)
    nb.cells[3].source += "\n" + plant.format(checks.exercises(UNIT)[0].name)
    build.write(nb, path)
    assert leaks(root)


def test_a_leak_in_the_solutions_own_text_stops_the_release(root):
    path = root / "solutions" / UNIT / f"{UNIT}.ipynb"
    nb = read(path)
    nb.cells[3].source += f"\n<details>x.{checks.exercises(UNIT)[0].name}_secret(1, 2)</details>"
    build.write(nb, path)
    with pytest.raises(BuildError, match="leak"):
        release(root)


def test_trivial_lines_are_no_leak():
    block = "### BEGIN SOLUTION\nreturn x\nfor row in rows:\nimport torch.nn\nq = k @ v  # why\n### END SOLUTION"
    nb = new_notebook(cells=[cell("code", "a", block)])
    assert build.solution_lines(nb) == set()
    block = "### BEGIN SOLUTION\nreturn x.softmax(dim=-1)\n### END SOLUTION"
    nb = new_notebook(cells=[cell("code", "a", block)])
    assert build.solution_lines(nb) == {"returnx.softmax(dim=-1)", "x.softmax(dim=-1)"}


# ---------------------------------------------------------------- lessons


def lesson(root, *sources):
    cells = [cell("markdown", "title", "# L"), cell("code", "setup", "")]
    cells += [cell("code", f"cell-{'abcdef'[i]}", source) for i, source in enumerate(sources)]
    path = root / "notebooks" / f"{UNIT}.ipynb"
    build.write(normal(new_notebook(cells=cells), LESSON, *build.address()), path)
    return path


def test_lesson_is_executed_once_and_measured(root):
    path = lesson(root, "print('two', 1 + 1)", "1 + 1")
    assert lessons.stale(root) == [LESSON.path]
    assert lessons.run(root) == [LESSON.path]
    assert lessons.stale(root) == []
    assert lessons.run(root) == []
    nb = read(path)
    assert nb.cells[1].outputs[0].text == "Ready.\n"
    assert nb.cells[2].outputs[0].text == "two 2\n"
    assert nb.cells[3].outputs[0].data["text/plain"] == "2"
    figures = json.loads((root / "notebooks/measured.json").read_text())[UNIT]
    assert 0 < figures["seconds"] < 120
    assert 100 < figures["peak_mib"] < 4096


@pytest.mark.parametrize(
    ("source", "says"),
    [("import sys; print('x', file=sys.stderr)", "stderr"), ("print(object())", "address"), ("1 / 0", "ZeroDivision")],
)
def test_output_that_cannot_be_stored(tmp_path, source, says):
    path = tmp_path / "lesson.ipynb"
    build.write(new_notebook(cells=[cell("code", "a", source)]), path)
    with pytest.raises(BuildError, match=says):
        lessons.execute(path)


def test_lesson_that_fails_keeps_its_file(root):
    path = lesson(root, "1 / 0")
    before = path.read_bytes()
    with pytest.raises(BuildError, match="ZeroDivisionError"):
        lessons.run(root)
    assert path.read_bytes() == before
    assert lessons.stale(root) == [LESSON.path]


def test_hash_follows_imports_and_nothing_else(tmp_path):
    package = tmp_path / "bert_minimal"
    (package / "train").mkdir(parents=True)
    files = {
        "__init__.py": "from .model import Bert\nfrom .other import Other\n",
        "model.py": "def f():\n    from bert_minimal.train import loop\nclass Bert: pass\n",
        "other.py": "class Other: pass\n",
        "train/__init__.py": "",
        "train/loop.py": "from ..leaf import leaf\n",
        "leaf.py": "leaf = 1\n",
    }
    for name, text in files.items():
        (package / name).write_text(text)
    nb = new_notebook(
        cells=[cell("code", "a", "%matplotlib inline\nfrom bert_minimal import Bert"), cell("markdown", "b", "x")]
    )
    first = lessons.code_hash(nb, tmp_path)

    def changed(name, text):
        old = (package / name).read_text()
        (package / name).write_text(text)
        now = lessons.code_hash(nb, tmp_path)
        (package / name).write_text(old)
        return now != first

    assert changed("leaf.py", "leaf = 2\n"), "imported by what is imported, from inside a function"
    assert changed("model.py", files["model.py"] + "x = 1\n")
    assert not changed("other.py", "class Other: x = 1\n"), "not imported by the lesson"
    assert not changed("leaf.py", "# a remark\n\nleaf = 1\n"), "a comment changes no output"
    nb.cells[1].source = "other words"
    assert lessons.code_hash(nb, tmp_path) == first, "text changes no output"
    nb.cells[0].source += "\nBert()"
    assert lessons.code_hash(nb, tmp_path) != first


def test_hash_follows_the_weights_that_a_lesson_opens(tmp_path):
    weights = tmp_path / "bert_minimal" / "pretrained" / "model.safetensors"
    weights.parent.mkdir(parents=True)
    opens, reads = ([cell("code", "a", source)] for source in ('fetch("course")', "1 + 1"))
    found = []
    for data in (b"one", b"other"):
        weights.write_bytes(data)
        found.append([lessons.code_hash(new_notebook(cells=cells), tmp_path) for cells in (opens, reads)])
    assert found[0][0] != found[1][0]
    assert found[0][1] == found[1][1]
