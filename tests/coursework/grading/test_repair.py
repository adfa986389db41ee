"""Damaged notebooks: each comes back with every graded cell once, after its answer, and says what was done."""

import copy

import nbformat
import pytest

from coursework.grading.collect import WrongNotebook
from coursework.grading.nbgrader_steps import PutRight
from coursework.grading.repair import repair
from tests.coursework.grading.conftest import LESSON, answer, cell, released_notebook

A, B = "attention_scores", "causal_mask"
ANSWER = f"def {A}(query, key):\n    return query @ key.mT"


@pytest.fixture
def released():
    return released_notebook([A, B])


@pytest.fixture
def handed_in(released):
    notebook = copy.deepcopy(released)
    answer(notebook, A, ANSWER)
    return notebook


def index(notebook, name: str) -> int:
    (found,) = [i for i, c in enumerate(notebook.cells) if c.metadata.get("nbgrader", {}).get("grade_id") == name]
    return found


def at(notebook, name: str):
    return notebook.cells[index(notebook, name)]


def assert_whole(notebook, released):
    """Every graded and locked cell once, as released; each graded one after its answer; a second repair is idle."""
    for wanted in released.cells:
        name = wanted.metadata.get("nbgrader", {}).get("grade_id")
        if name and not wanted.metadata["nbgrader"]["solution"] and wanted.cell_type == "code":
            assert at(notebook, name).source == wanted.source
            assert at(notebook, name).metadata["nbgrader"] == wanted.metadata["nbgrader"]
    for name in (A, B):
        answers = [i for i, c in enumerate(notebook.cells) if f"def {name}" in c.source]
        assert index(notebook, name) > max(answers)
    nbformat.validate(notebook)
    once = copy.deepcopy(notebook)
    assert repair(notebook, released) == []
    assert notebook == once


def test_an_undamaged_notebook_stays_as_it_is(handed_in, released):
    before = copy.deepcopy(handed_in.cells)
    handed_in.metadata["kernelspec"] = {"name": "python3", "display_name": "x", "language": "python"}
    assert repair(handed_in, released) == []
    assert handed_in.cells == before


def test_a_split_answer_runs_in_its_pieces(handed_in, released):
    i = index(handed_in, f"{A}-answer")
    piece = copy.deepcopy(handed_in.cells[i])
    piece.source, piece["id"] = "print('second half')", "other"
    handed_in.cells.insert(i + 1, piece)
    told = repair(handed_in, released)
    assert any("piece" in sentence for sentence in told)
    assert [c.source for c in handed_in.cells].count("print('second half')") == 1
    assert_whole(handed_in, released)


def test_a_copied_graded_cell_is_kept_once(handed_in, released):
    handed_in.cells.append(copy.deepcopy(at(handed_in, A)))
    told = repair(handed_in, released)
    assert any("2 copies" in sentence for sentence in told)
    assert_whole(handed_in, released)


def test_deleted_cells_come_back(handed_in, released):
    handed_in.cells = [c for c in handed_in.cells if c.get("id") not in (A, B, "setup")]
    told = repair(handed_in, released)
    assert len(told) >= 3
    assert_whole(handed_in, released)
    assert index(handed_in, "setup") < index(handed_in, f"{A}-answer")


def test_a_graded_cell_above_its_answer_moves_below_it(handed_in, released):
    graded = handed_in.cells.pop(index(handed_in, A))
    handed_in.cells.insert(0, graded)
    assert any("before its answer" in sentence for sentence in repair(handed_in, released))
    assert_whole(handed_in, released)


def test_an_answer_in_a_cell_of_its_own_counts(handed_in, released):
    answer(handed_in, A, f"def {A}(*args, **kwargs):\n    raise NotImplementedError()")
    handed_in.cells.append(cell("code", "mine", ANSWER))
    repair(handed_in, released)
    assert index(handed_in, A) > [c.get("id") for c in handed_in.cells].index("mine")
    assert_whole(handed_in, released)


def test_stripped_metadata_and_ids_are_recognised_by_text(handed_in, released):
    for i, c in enumerate(handed_in.cells):
        c.metadata, c["id"] = nbformat.from_dict({}), f"x{i}"
    told = repair(handed_in, released)
    assert any("had lost" in sentence for sentence in told)
    assert_whole(handed_in, released)
    assert at(handed_in, f"{A}-answer").source == ANSWER


def test_retyped_cells_become_code_again(handed_in, released):
    for name in (A, f"{A}-answer"):
        i = index(handed_in, name)
        old = handed_in.cells[i]
        handed_in.cells[i] = nbformat.v4.new_markdown_cell(old.source, id=old["id"], metadata=old.metadata)
    repair(handed_in, released)
    assert at(handed_in, f"{A}-answer").cell_type == "code"
    assert_whole(handed_in, released)


def test_code_written_into_a_locked_cell_still_runs(handed_in, released):
    at(handed_in, "setup").source += "\nimport math"
    repair(handed_in, released)
    after = handed_in.cells[index(handed_in, "setup") + 1]
    assert after.source.endswith("import math")
    assert "nbgrader" not in after.metadata
    assert_whole(handed_in, released)


def test_changed_points_and_invented_graded_cells_earn_nothing(handed_in, released):
    at(handed_in, A).metadata["nbgrader"]["points"] = 1000
    forged = {"nbgrader": dict(at(handed_in, A).metadata["nbgrader"], grade_id="bonus")}
    handed_in.cells.append(cell("code", "bonus", "100.0", forged))
    repair(handed_in, released)
    assert at(handed_in, A).metadata["nbgrader"]["points"] == at(released, A).metadata["nbgrader"]["points"]
    assert "nbgrader" not in handed_in.cells[-1].metadata
    assert_whole(handed_in, released)


def test_reversed_notebook_is_put_in_working_order(handed_in, released):
    handed_in.cells = handed_in.cells[::-1]
    repair(handed_in, released)
    assert_whole(handed_in, released)


def test_another_kernel_is_told(handed_in, released):
    handed_in.metadata["kernelspec"] = {"name": "julia-1.9", "display_name": "Julia", "language": "julia"}
    assert repair(handed_in, released) == ["the notebook named another kernel; it was run with Python 3"]
    assert handed_in.metadata["kernelspec"]["name"] == "python3"


def class_exercise(source: str):
    """A released notebook with one exercise more, whose answer is this."""
    notebook = released_notebook([A, B])
    marks = {name: copy.deepcopy(at(notebook, name).metadata) for name in (A, f"{A}-answer")}
    for name, text in (("Encoder-answer", source), ("Encoder", "check.Encoder.grade(globals())")):
        made = cell("code", name, text, marks[name.replace("Encoder", A)])
        made.metadata["nbgrader"]["grade_id"] = name
        notebook.cells.append(made)
    return notebook


@pytest.mark.parametrize("written", ["class Encoder:\n    x = 1", "Encoder = lambda x: x", "Encoder: type = object"])
@pytest.mark.parametrize("damage", ["deleted", "moved up", "answer stripped"])
def test_a_graded_cell_follows_a_class_or_an_assigned_name(written, damage):
    released = class_exercise("class Encoder:\n    raise NotImplementedError()")
    notebook = copy.deepcopy(released)
    answer(notebook, "Encoder", written)
    graded = notebook.cells.pop(index(notebook, "Encoder"))
    if damage != "deleted":
        notebook.cells.insert(2, graded)
    if damage == "answer stripped":
        notebook.cells[-1].metadata, notebook.cells[-1]["id"] = nbformat.from_dict({}), "x"
    repair(notebook, released)
    assert notebook.cells[index(notebook, "Encoder") - 1].source == written
    assert_whole(notebook, released)


def test_a_missing_graded_cell_whose_answer_nobody_finds_comes_last(released):
    notebook = copy.deepcopy(released)
    notebook.cells = [c for c in notebook.cells if c.get("id") not in (A, f"{A}-answer")]
    notebook.cells.append(cell("code", "mine", f"if True:\n    def {A}(query, key): return query @ key.mT"))
    repair(notebook, released)
    assert index(notebook, A) == len(notebook.cells) - 1
    assert_whole(notebook, released)


def test_a_notebook_of_nothing_that_was_handed_out_is_an_error_of_one_student_in_nbgrader(course):
    recipe = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("flour = 1")])
    asked = {"nbgrader": {"assignment": LESSON, "student": "anna"}}
    with pytest.raises(WrongNotebook, match="none of the exercises of 01_attention"):
        PutRight(course=str(course)).preprocess(recipe, asked)
    answered = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("def causal_mask(length):\n    return 1")])
    put_right, _ = PutRight(course=str(course)).preprocess(answered, asked)
    assert len(put_right.cells) > 2
