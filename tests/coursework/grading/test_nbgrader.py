"""Plain `nbgrader autograde` with the course's own settings gives the marks that the class runner gives."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from coursework.grading import classroom
from coursework.grading.assignments import known_assignments
from coursework.grading.demo import alternative_of, mistakes_of, splice
from coursework.grading.secret import class_seed
from tests.coursework.grading.conftest import LESSON, released_notebook

ROOT = Path(__file__).parents[3]
NAMES = ["attention_scores", "merge_heads", "causal_mask"]
SETTINGS = """
exec(open({config!r}).read().replace("__file__", {config!r}.__repr__()))
c.CourseDirectory.root = {root!r}
c.CourseDirectory.db_url = "sqlite:///{root}/gradebook.db"
c.GradingStep.course = {root!r}
c.JudgeOutside.seed_file = "{root}/seed"
c.JudgeOutside.trusted = True
"""
READ = """
from nbgrader.api import Gradebook
import json, sys
with Gradebook("sqlite:///" + sys.argv[1]) as gradebook:
    marks = {s.student.id: {g.name: g.auto_score for n in s.notebooks for g in n.grades}
             for s in gradebook.assignment_submissions("01_attention")}
print(json.dumps(marks))
"""


def nbgrader(root: Path, *arguments: str) -> str:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        [sys.executable, "-m", *arguments], cwd=root, env=os.environ | {"PATH": path}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.long
@pytest.mark.timeout(900)
def test_plain_nbgrader_gives_the_same_marks(tmp_path):
    exercises = known_assignments()[LESSON].exercises
    root, submitted = tmp_path / "course", tmp_path / "course" / "submitted"
    for kind in ("solutions", "exercises"):
        path = root / kind / LESSON / f"{LESSON}.ipynb"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(released_notebook(NAMES)))
    right = {name: alternative_of(exercises[name]) for name in NAMES}
    partly = right | {NAMES[0]: dict(mistakes_of(exercises[NAMES[0]]))["not_scaled"]}
    split = json.loads(splice(released_notebook(NAMES), right))
    split["cells"] += [dict(cell, id=f"{cell['id']}-copy") for cell in split["cells"][-4:]]
    handed_in = {
        "anna": splice(released_notebook(NAMES), right),
        "ben": splice(released_notebook(NAMES), partly, extra="import sys\nprint('loud', file=sys.stderr)"),
        "carl": json.dumps(split),
        "dora": splice(released_notebook(NAMES), right | {NAMES[1]: "import os\nos._exit(1)"}),
    }
    for student, text in handed_in.items():
        path = submitted / student / LESSON / f"{LESSON}.ipynb"
        path.parent.mkdir(parents=True)
        path.write_text(text)
    seed = class_seed(root / "seed")
    settings = SETTINGS.format(config=str(ROOT / "nbgrader_config.py"), root=str(root))
    (root / "nbgrader_config.py").write_text(settings)

    nbgrader(root, "nbgrader", "generate_assignment", LESSON, "--force")
    nbgrader(root, "nbgrader", "autograde", LESSON)
    (root / "read.py").write_text(READ)
    theirs = json.loads(nbgrader(root, "read", str(root / "gradebook.db")))
    ours = {
        r.student: {m.exercise: m.points for m in r.marks}
        for r in classroom.grade(submitted, tmp_path / "out", seed=seed, course=root, trusted=True)
    }
    assert theirs == ours
    assert ours["anna"] == ours["carl"] == {name: exercises[name].points for name in NAMES}
    assert 0 < ours["ben"][NAMES[0]] < exercises[NAMES[0]].points
    assert ours["dora"] == ours["anna"] | {NAMES[1]: 0.0}
    shutil.rmtree(root)
