"""A grader killed in the middle leaves nothing running, and taken up again it gives the marks it would have given."""

import json
import subprocess
import sys
import time

import psutil
import pytest

from coursework.grading import classroom
from coursework.grading.assignments import known_assignments
from coursework.grading.demo import mistakes_of, splice
from tests.coursework.grading.conftest import LESSON, released_notebook

NAMES = ["merge_heads", "causal_mask"]
RUN = """
from pathlib import Path
from coursework.grading.classroom import grade
if __name__ == "__main__":
    grade(Path({folder!r}), Path({out!r}), seed=4, course=Path({course!r}), jobs=2, trusted=True)
"""


@pytest.mark.long
@pytest.mark.timeout(900)
def test_killed_in_the_middle_and_taken_up_again(tmp_path):
    exercises = known_assignments()[LESSON].exercises
    course, folder = tmp_path / "course", tmp_path / "class"
    released = released_notebook(NAMES)
    path = course / "exercises" / LESSON / f"{LESSON}.ipynb"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(released))
    for i in range(6):
        answers = {name: mistakes_of(exercises[name])[i][1] for name in NAMES}
        handed_in = folder / f"s{i}" / LESSON / f"{LESSON}.ipynb"
        handed_in.parent.mkdir(parents=True)
        handed_in.write_text(splice(released, answers))
    script = tmp_path / "run.py"
    script.write_text(RUN.format(folder=str(folder), out=str(tmp_path / "out"), course=str(course)))

    grader = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.DEVNULL)
    while not list((tmp_path / "out").rglob("*.json")) and grader.poll() is None:
        time.sleep(0.1)
    family = psutil.Process(grader.pid).children(recursive=True)
    grader.kill()
    grader.wait()
    done = {p: p.stat().st_mtime_ns for p in (tmp_path / "out").rglob("*.json")}
    assert 0 < len(done) < 6
    _, left = psutil.wait_procs(family, timeout=20)
    assert left == []

    settings = {"seed": 4, "course": course, "trusted": True}
    resumed = classroom.grade(folder, tmp_path / "out", **settings)
    fresh = classroom.grade(folder, tmp_path / "fresh", **settings)
    assert [(r.student, r.marks) for r in resumed] == [(r.student, r.marks) for r in fresh]
    assert all(p.stat().st_mtime_ns == then for p, then in done.items())
