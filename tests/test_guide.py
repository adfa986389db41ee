"""The instructor's guide: its commands are run as they stand, and the files it names are the files there are."""

import csv
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from coursework.grading.assignments import known_assignments
from coursework.grading.collect import parse
from coursework.grading.demo import ASSIGNMENT, submissions

ROOT = Path(__file__).parents[1]
GUIDE = (ROOT / "docs" / "instructors.md").read_text(encoding="utf-8")
CLASS = ("perfect", "half_done", "mistake-attention_scores-not_scaled", "broken_json")


def commands(tried: str = "tried") -> list[str]:
    blocks = re.findall(rf"<!-- {tried} by tests/test_guide\.py -->\n```sh\n(.*?)```", GUIDE, re.DOTALL)
    return [line for block in blocks for line in block.splitlines()]


def hand_in(folder: Path, students: tuple[str, ...]) -> None:
    path = ROOT / "exercises" / ASSIGNMENT / f"{ASSIGNMENT}.ipynb"
    made = submissions(parse(path.read_bytes(), path.name), known_assignments()[ASSIGNMENT].exercises)
    for student in students:
        target = folder / "submitted" / student / ASSIGNMENT / f"{ASSIGNMENT}.ipynb"
        target.parent.mkdir(parents=True)
        target.write_text(made[student], encoding="utf-8")


@pytest.mark.long
@pytest.mark.sandbox
@pytest.mark.timeout(900)
def test_an_evening_of_grading_as_the_guide_has_it(bwrap, tmp_path):
    hand_in(tmp_path, CLASS)
    own = os.environ | {"XDG_DATA_HOME": str(tmp_path / "home"), "PYTHONPATH": str(ROOT)}
    assert len(commands()) == 5
    for command in commands():
        program, *arguments = command.split()
        assert program == ".venv/bin/python"
        done = subprocess.run([sys.executable, *arguments], cwd=tmp_path, env=own, capture_output=True, text=True)
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    named = re.findall(r"^\| (`[^|]+`) \|", GUIDE.partition("| in `graded/`")[2].partition("\n\n")[0], re.MULTILINE)
    files = [name for cell in named for name in re.findall(r"`([^`]+)`", cell)]
    assert len(files) == 7
    for name in files:
        assert (tmp_path / "graded" / name.replace("ada", "perfect")).is_file(), name
    marks = (tmp_path / "graded" / "marks.csv").read_text()
    assert marks == (tmp_path / "sharded" / "marks.csv").read_text()
    assert "not scaled" in (tmp_path / "graded" / "report.md").read_text()


@pytest.mark.long
@pytest.mark.sandbox
@pytest.mark.timeout(900)
def test_nbgraders_own_tools_as_the_guide_has_them_twice_in_a_row(bwrap, tmp_path):
    course = tmp_path / "course"
    kept = shutil.ignore_patterns(".*", "notebooks", "benchmarks", "docs", "tests", "__pycache__", "*.db")
    shutil.copytree(ROOT, course, ignore=kept)
    hand_in(course, ("perfect", "half_done"))
    programs = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    own = os.environ | {"XDG_DATA_HOME": str(tmp_path / "home"), "PYTHONPATH": str(course), "PATH": programs}
    activate, *asked = commands("tried twice in a row")
    assert activate == "source .venv/bin/activate"
    assert len(asked) == 5
    for command in asked * 2:
        done = subprocess.run(command.split(), cwd=course, env=own, capture_output=True, text=True)
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    released = Path("exercises") / ASSIGNMENT / f"{ASSIGNMENT}.ipynb"
    assert (course / released).read_bytes() == (ROOT / released).read_bytes()
    marks = {row["student_id"]: float(row["score"]) for row in csv.DictReader((course / "grades.csv").open())}
    assert marks == {"perfect": 18.0, "half_done": 9.0}
    assert (course / "feedback" / "perfect" / ASSIGNMENT / f"{ASSIGNMENT}.html").is_file()


def test_the_guide_names_commands_that_exist():
    names = set(re.findall(r"-m coursework (\w+)", GUIDE))
    done = subprocess.run([sys.executable, "-m", "coursework"], cwd=ROOT, capture_output=True, text=True)
    assert names
    assert all(name in done.stdout + done.stderr for name in names)
