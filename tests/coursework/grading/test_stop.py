"""Ctrl-C: what is under way is finished, nothing else is begun, one sentence says how to go on."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from tests.coursework.grading.conftest import LESSON, released_notebook

STUDENTS = 30
RUN = """
import sys
from pathlib import Path
from coursework.grading import command
if __name__ == "__main__":
    sys.exit(command.grade(Path({folder!r}), Path({out!r}), seed=4, jobs=2, trusted=True))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C is another thing there")
@pytest.mark.timeout(180)
def test_stopped_by_the_keyboard(tmp_path):
    folder, out = tmp_path / "class", tmp_path / "out"
    for i in range(STUDENTS):
        path = folder / f"s{i}" / LESSON / f"{LESSON}.ipynb"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(released_notebook(["causal_mask"])))
    script = tmp_path / "run.py"
    script.write_text(RUN.format(folder=str(folder), out=str(out)))
    grader = subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        start_new_session=True,
    )  # fmt: skip
    while not list(out.rglob("*.json")) and grader.poll() is None:
        time.sleep(0.1)
    os.killpg(grader.pid, signal.SIGINT)  # as a terminal does: to the grader and to its workers
    said, _ = grader.communicate(timeout=120)
    assert grader.returncode == 130, said
    assert "the same command goes on" in said
    assert "Traceback" not in said
    assert 0 < len(list(out.rglob("*.json"))) < STUDENTS // 2
    assert not (out / "marks.csv").exists()
