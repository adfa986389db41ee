"""A small course in nbgrader's own layout, with the settings of this repository, and its commands."""

import json
import os
import subprocess
import sys
from pathlib import Path

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
{more}
"""


def make_course(root: Path, handed_in: dict[str, str], more: str = "") -> None:
    """Write solutions, exercises, settings and submissions (student -> notebook) to `root`, and release."""
    for kind in ("solutions", "exercises"):
        path = root / kind / LESSON / f"{LESSON}.ipynb"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(released_notebook(NAMES)))
    for student, text in handed_in.items():
        path = root / "submitted" / student / LESSON / f"{LESSON}.ipynb"
        path.parent.mkdir(parents=True)
        path.write_text(text)
    settings = SETTINGS.format(config=str(ROOT / "nbgrader_config.py"), root=str(root), more=more)
    (root / "nbgrader_config.py").write_text(settings)
    nbgrader(root, "generate_assignment", LESSON, "--force")


def nbgrader(root: Path, *arguments: str) -> str:
    """What an nbgrader command prints; its failure fails the test."""
    return _python(root, "-m", "nbgrader", *arguments)


def with_gradebook(root: Path, source: str) -> object:
    """Run `source` with `gradebook` open (nbgrader's API), in a process of its own; what it leaves in `answer`."""
    lines = "\n".join(f"    {line}" for line in source.strip().splitlines())
    script = f"""
import datetime, json
from nbgrader.api import Gradebook
answer = None
with Gradebook("sqlite:///{root}/gradebook.db") as gradebook:
{lines}
print("answer:" + json.dumps(answer))
"""
    return json.loads(_python(root, "-c", script).rpartition("answer:")[2])


def _python(root: Path, *arguments: str) -> str:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        [sys.executable, *arguments], cwd=root, env=os.environ | {"PATH": path}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
