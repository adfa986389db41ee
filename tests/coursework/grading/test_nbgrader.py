"""nbgrader's own commands keep working: plain autograde, marks by hand, late penalties, grading again, feedback."""

import csv
import json

import pytest

from coursework.grading import classroom
from coursework.grading.assignments import known_assignments
from coursework.grading.demo import alternative_of, mistakes_of, splice
from coursework.grading.secret import class_seed

from .conftest import LESSON, released_notebook
from .nbgrader_course import NAMES, make_course, nbgrader, with_gradebook

MARKS = f"""
answer = {{s.student.id: {{g.name: g.score for n in s.notebooks for g in n.grades}}
          for s in gradebook.assignment_submissions("{LESSON}")}}
"""
DUE = f"""
gradebook.update_or_create_assignment("{LESSON}", duedate=datetime.datetime(2026, 3, 1, 12))
gradebook.db.commit()
"""
BY_HAND = f"""
grade = gradebook.find_grade("{NAMES[0]}", "{LESSON}", "{LESSON}", "ben")
grade.manual_score, grade.needs_manual_grade = 1.75, False
gradebook.db.commit()
"""
PENALTIES = f"""
answer = {{s.student.id: [n.late_submission_penalty for n in s.notebooks]
          for s in gradebook.assignment_submissions("{LESSON}")}}
"""

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]


@pytest.fixture
def exercises():
    return known_assignments()[LESSON].exercises


@pytest.fixture
def right(exercises) -> dict[str, str]:
    return {name: alternative_of(exercises[name]) for name in NAMES}


@pytest.fixture
def partly(exercises, right) -> dict[str, str]:
    return right | {NAMES[0]: dict(mistakes_of(exercises[NAMES[0]]))["not_scaled"]}


def test_plain_nbgrader_gives_the_same_marks(tmp_path, exercises, right, partly):
    split = json.loads(splice(released_notebook(NAMES), right))
    split["cells"] += [dict(cell, id=f"{cell['id']}-copy") for cell in split["cells"][-4:]]
    root = tmp_path / "course"
    handed_in = {
        "anna": splice(released_notebook(NAMES), right),
        "ben": splice(released_notebook(NAMES), partly, extra="import sys\nprint('loud', file=sys.stderr)"),
        "carl": json.dumps(split),
        "dora": splice(released_notebook(NAMES), right | {NAMES[1]: "import os\nos._exit(1)"}),
    }
    make_course(root, handed_in)
    seed = class_seed(root / "seed")
    nbgrader(root, "autograde", LESSON)
    theirs = with_gradebook(root, MARKS)
    ours = {
        r.student: {m.exercise: m.points for m in r.marks}
        for r in classroom.grade(root / "submitted", tmp_path / "out", seed=seed, course=root, trusted=True)
    }
    assert theirs == ours
    assert ours["anna"] == ours["carl"] == {name: exercises[name].points for name in NAMES}
    assert 0 < ours["ben"][NAMES[0]] < exercises[NAMES[0]].points
    assert ours["dora"] == ours["anna"] | {NAMES[1]: 0.0}


def test_marks_by_hand_late_penalties_grading_again_and_feedback(tmp_path, exercises, right, partly):
    root = tmp_path / "course"
    handed_in = {"anna": splice(released_notebook(NAMES), right), "ben": splice(released_notebook(NAMES), partly)}
    make_course(root, handed_in, 'c.LateSubmissionPlugin.penalty_method = "zero"')
    for student, handed_in_at in (("anna", "2026-03-02 09:00:00 UTC"), ("ben", "2026-02-27 09:00:00 UTC")):
        (root / "submitted" / student / LESSON / "timestamp.txt").write_text(handed_in_at)
    with_gradebook(root, DUE)
    nbgrader(root, "autograde", LESSON)
    before = with_gradebook(root, MARKS)
    assert before["ben"][NAMES[0]] < 1.75
    full = sum(exercises[name].points for name in NAMES)
    assert with_gradebook(root, PENALTIES) == {"anna": [full], "ben": [None]}

    with_gradebook(root, BY_HAND)  # what the formgrader writes when an instructor overrules a mark
    nbgrader(root, "autograde", LESSON, "--force")
    assert with_gradebook(root, MARKS) == before | {"ben": before["ben"] | {NAMES[0]: 1.75}}

    nbgrader(root, "generate_feedback", LESSON)
    page = (root / "feedback" / "ben" / LESSON / f"{LESSON}.html").read_text()
    assert "looks  like scores that are not scaled at all" in page
    nbgrader(root, "export")
    (anna, ben) = csv.DictReader((root / "grades.csv").open())
    assert float(anna["late_submission_penalty"]) == full
    assert float(ben["score"]) == sum(before["ben"].values()) - before["ben"][NAMES[0]] + 1.75
