"""A notebook's cells run in a student's kernel: what goes wrong there costs what it costs and nothing else."""

import sys
import textwrap
import time

import nbformat
import pytest

from coursework.grading.assignments import known_assignments, names_for_students
from coursework.grading.demo import alternative_of
from coursework.grading.kernel import StudentKernel
from coursework.grading.session import Session, grade_notebook, outputs_of
from tests.coursework.grading.conftest import LESSON, answer, released_notebook

A, B, C = "attention_scores", "causal_mask", "merge_heads"
SWALLOWS = "\nwhile True:\n    try:\n        while True:\n            pass\n    except BaseException:\n        pass"


@pytest.fixture
def exercises():
    return known_assignments()[LESSON].exercises


@pytest.fixture
def session(tmp_path):
    made = Session(lambda: StudentKernel(tmp_path, names_for_students()), seed=7, cell_seconds=2)
    yield made
    made.close()


def test_marks_of_right_dead_and_blank_answers_in_one_notebook(session, exercises):
    notebook = released_notebook([A, B, C])
    answer(notebook, A, alternative_of(exercises[A]) + "\nimport sys\nprint('to stderr', file=sys.stderr)\n1 / 0")
    answer(notebook, B, f"def {B}(length):\n    import os\n    os._exit(1)")
    marks = grade_notebook(notebook, exercises, session)
    assert [(m.exercise, m.status, m.points) for m in marks] == [
        (A, "right", 2.0),
        (B, "died", 0.0),
        (C, "not answered", 0.0),
    ]
    assert "ended the Python process" in marks[1].message
    nbformat.validate(notebook)


def test_cells_that_never_end_or_kill_the_process_cost_themselves(session, exercises):
    notebook = released_notebook([A, C])
    answer(notebook, A, alternative_of(exercises[A]) + "\nimport os\nkept = os.getpid()\nwhile True:\n    pass")
    killer = nbformat.v4.new_code_cell("import os\nos.kill(os.getpid(), 9)")
    swallows = nbformat.v4.new_code_cell(f"late = 1{SWALLOWS * 2}")
    notebook.cells[3:3] = [killer]
    notebook.cells.insert(-3, swallows)
    answer(notebook, C, alternative_of(exercises[C]))
    marks = grade_notebook(notebook, exercises, session)
    assert [m.status for m in marks] == ["right", "right"]
    told = ["".join(o.get("text", "") for o in c.outputs) for c in notebook.cells if c.cell_type == "code"]
    assert sum("[grading] This cell" in text for text in told) == 3


def test_cells_that_each_end_in_time_end_with_the_notebooks_time(session, exercises):
    """A hundred cells that each stay below the limit of a cell, and what the student reads then."""
    session.notebook_seconds = 3
    answered = alternative_of(exercises[A])
    assert session.run_cell(answered) == []
    assert session.grade(exercises[A]).status == "right"
    began = time.monotonic()
    shown = [session.run_cell("import time\ntime.sleep(0.9)") for _ in range(100)]
    assert time.monotonic() - began < 6
    assert "may take 3 s, and what came before this had taken them" in shown[-1][0]["text"]
    mark = session.grade(exercises[A])
    assert (mark.status, mark.points) == ("time limit", 0.0)
    assert "was not asked: the notebook as a whole may take 3 s" in mark.message


def test_what_is_run_again_after_a_death_takes_of_the_notebooks_time(session):
    session.notebook_seconds = 3
    for _ in range(2):
        session.run_cell("import time\ntime.sleep(0.9)")
    began = time.monotonic()
    shown = [session.run_cell("import os\nos._exit(1)") for _ in range(20)]
    assert time.monotonic() - began < 10
    assert "ended the Python process" in shown[0][0]["text"]
    assert "was not run" in shown[-1][0]["text"]


def test_a_slow_first_start_is_not_the_students_time(session):
    session.notebook_seconds = 0.5
    kernel = session.make_kernel
    session.make_kernel = lambda: time.sleep(1) or kernel()
    assert session.run_cell("print(1)")[0]["text"] == "1\n"


@pytest.mark.long
def test_a_cell_that_breaks_the_kernel_later_is_found_and_left_out(session, exercises):
    session.run_cell(alternative_of(exercises[A]))
    session.run_cell("import sys\nsys.stdout = None")  # this one ends well: the next one shows the damage
    assert session.run_cell("print('after')")[0]["text"] == "after\n"
    session.run_cell(alternative_of(exercises[B]))
    session.run_cell("sys = __import__('sys')\nsys.stdout = None")
    assert [session.grade(exercises[name]).status for name in (A, B)] == ["right", "right"]
    (output,) = session.run_cell("quit()")
    assert "quits Python" in output["text"]
    assert session.grade(exercises[B]).status == "right"


@pytest.mark.long
def test_an_endless_answer_is_stopped(session, exercises):
    session.run_cell(f"def {A}(query, key):\n    while True:\n        pass")
    start = time.monotonic()
    mark = session.grade(exercises[A])
    assert (mark.status, mark.points) == ("time limit", 0.0)
    assert time.monotonic() - start < 60


def test_nothing_that_holds_answers_can_be_imported(session):
    ours = ("bert_minimal", "bert_minimal.model", "coursework.runner", "coursework.checks.engine")
    for name in (*ours, "transformers", "tokenizers", "tokenizers.models"):
        (output,) = session.run_cell(f"import {name}")
        assert output["ename"] == "ImportError"
        assert output["evalue"].endswith("is not there at grading: the exercises need torch and Python alone")
    assert session.run_cell("from coursework.checks import attention as check\ncheck.merge_heads(None)") == []
    (output,) = session.run_cell("from coursework.checks.attention import _attention")
    assert output["ename"] == "ImportError"


def test_a_students_names_and_patches_do_not_reach_the_judge(session, exercises):
    session.run_cell("import torch\ntorch.allclose = torch.equal = lambda *a, **k: True")
    session.run_cell(f"compile = exec = globals = 1\ndef {A}(query, key):\n    return query @ key.mT")
    assert session.grade(exercises[A]).mistake == "not_scaled"


def test_a_cell_shows_text_and_pictures_cut_to_size_and_nothing_that_runs(session):
    outputs = session.run_cell("print('x' * 10_000_000)")
    assert sum(len(o["text"]) for o in outputs) < 20_000
    html = "from IPython.display import HTML, Javascript, display\ndisplay(HTML('<script>1</script>'), Javascript('1'))"
    kinds = {kind for output in session.run_cell(html) for kind in output["data"]}
    assert kinds == {"text/plain"}


def test_a_notebook_that_shows_too_much_shows_no_more_and_runs(session, exercises):
    session.outputs_left = 2_000
    shown = [session.run_cell("print('x' * 900)")[0]["text"] for _ in range(3)]
    assert ["x" in text for text in shown] == [True, True, False]
    assert session.run_cell(alternative_of(exercises[A])) != []
    assert session.grade(exercises[A]).status == "right"


def test_a_message_is_short_and_nothing_obeys_it(session, exercises):
    session.run_cell(f"def {A}(query, key):\n    return '\\x1b[2J' + 'x' * 5_000_000")
    mark = session.grade(exercises[A])
    assert mark.points == 0
    assert len(mark.message) < 4_000
    assert "\x1b" not in mark.message


def test_points_are_shown_as_nbgrader_reads_them(session, exercises):
    shown = outputs_of(session.grade(exercises[A]))
    assert [o["output_type"] for o in shown] == ["stream", "execute_result"]
    assert shown[1]["data"] == {"text/plain": "0.0"}


def test_the_environment_of_the_grader_does_not_enter(session, monkeypatch):
    monkeypatch.setenv("GRADERS_SECRET", "1")
    (output,) = session.run_cell("import os\nprint(sorted(os.environ))")
    assert "GRADERS_SECRET" not in output["text"]
    assert "PATH" in output["text"] or sys.platform == "win32"


def test_an_excluded_operator_is_not_reached_past_torchs_public_names(session, exercises):
    name = "scaled_dot_product_attention"
    signature = f"def {name}(query, key, value, bias=None, dropout_p=0.0, training=False):"
    call = f"torch.nn.functional.{name}(query, key, value, bias, dropout_p if training else 0.0)"
    session.run_cell(f"import torch\n{signature}\n    return {call}")
    mark = session.grade(exercises[name])
    assert (mark.points, "asks you to write it" in mark.message) == (0.0, True)
    session.run_cell(f"{signature}\n    with torch._C.DisableTorchFunction():\n        return {call}")
    mark = session.grade(exercises[name])
    assert (mark.points, "torch's public operators" in mark.message) == (0.0, True)
    session.run_cell(
        f"def roundabout(*args):\n    with torch._C.DisableTorchFunction():\n        return {call.split('(')[0]}(*args)"
    )
    session.run_cell(f"{signature}\n    return roundabout(query, key, value, bias, dropout_p if training else 0.0)")
    mark = session.grade(exercises[name])
    assert (mark.points, "torch's public operators" in mark.message) == (0.0, True)


@pytest.mark.parametrize("hidden", ["a magic", "an indented cell", "a thread"])
def test_an_excluded_operator_is_seen_in_a_cell_that_only_ipython_reads(session, exercises, hidden):
    name = "scaled_dot_product_attention"
    call = f"torch.nn.functional.{name}(query, key, value, bias, dropout_p if training else 0.0)"
    cell = f"import torch\ndef {name}(query, key, value, bias=None, dropout_p=0.0, training=False):\n"
    if hidden == "a thread":
        cell = f"from concurrent.futures import ThreadPoolExecutor as P\n{cell}"
        cell += f"    return P().submit(lambda: {call}).result()"
    else:
        cell = f"{cell}    with torch._C.DisableTorchFunction():\n        return {call}"
        cell = f"here = %pwd\n{cell}" if hidden == "a magic" else textwrap.indent(cell, " ")
    session.run_cell(cell)
    mark = session.grade(exercises[name])
    assert (mark.points, "torch's public operators" in mark.message) == (0.0, True)


def test_right_answers_keep_their_points_whatever_their_variables_are_called(session, exercises):
    """A scratch cell that looks into things, modules that are imported and not used, a variable called `vars`."""
    name = "scaled_dot_product_attention"
    session.run_cell("import gc, inspect, operator\nimport torch\nquery = torch.zeros(1)\nprint(len(vars(query)))")
    answer = alternative_of(exercises[name])
    session.run_cell(f"{answer}\ndef unrelated(vars):\n    locals = vars\n    return locals")
    assert session.grade(exercises[name]).points == exercises[name].points
