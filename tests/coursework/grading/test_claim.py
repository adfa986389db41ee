"""Whose the folder of results is: a second run, or another class, is told so and changes nothing."""

import json
import sys

import pytest

from coursework.grading import claim, command
from coursework.grading.claim import DEMO, Taken, claimed
from tests.coursework.grading.conftest import LESSON, released_notebook

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no locks there")


def test_a_whole_run_has_the_folder_alone_and_shards_share_it(tmp_path):
    with (
        claimed(tmp_path, "a class", ""),
        pytest.raises(Taken, match=r"process \d+ on .* is grading into .*: wait until it has ended, or give another"),
        claimed(tmp_path, "a class", "1/2"),
    ):
        pass
    with (
        claimed(tmp_path, "a class", "1/2"),
        claimed(tmp_path, "a class", "2/2"),
        pytest.raises(Taken, match="wait until it has ended"),
        claimed(tmp_path, "a class", ""),
    ):
        pass
    with claimed(tmp_path, "a class", ""):
        pass


def test_another_class_replaces_no_marks(tmp_path, capsys):
    out = tmp_path / "out"
    for class_ in ("autumn", "spring"):
        path = tmp_path / class_ / "anna" / LESSON / f"{LESSON}.ipynb"
        path.parent.mkdir(parents=True)
        path.write_text("no notebook" if class_ == "autumn" else json.dumps(released_notebook()))
    assert command.grade(tmp_path / "autumn", out, seed=1, trusted=True) == 0
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    assert command.grade(tmp_path / "spring", out, seed=1, trusted=True) == 1
    said = capsys.readouterr().out.splitlines()[-1]
    assert f"holds the marks of {tmp_path / 'autumn'}, and this is {tmp_path / 'spring'}: give another --out" in said
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before | {
        out / ".grading.lock": (out / ".grading.lock").read_bytes()
    }
    (out / "class.txt").unlink()  # as the message says
    with claimed(out, str(tmp_path / "spring"), ""):
        pass


def test_the_demo_class_makes_way_for_a_real_one(tmp_path, capsys):
    with claimed(tmp_path, DEMO, ""):
        for made in ("demo_class/perfect", "feedback/perfect", "results/perfect", "feedback/somebody"):
            (tmp_path / made).mkdir(parents=True)
        for made in ("marks.csv", "moodle_export.csv"):
            (tmp_path / made).touch()
    with claimed(tmp_path, "/a/class", ""):
        left = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if not path.name.startswith("."))
        assert left == ["class.txt", "feedback", "feedback/somebody", "moodle_export.csv", "results"]
    assert "held the demo class, which is removed now" in capsys.readouterr().out
    with pytest.raises(Taken, match="this is the demo class"), claimed(tmp_path, DEMO, ""):
        pass


def test_a_folder_without_locks_says_so_and_is_used(tmp_path, monkeypatch, capsys):
    def without(*_):
        raise OSError(37, "No locks available")

    monkeypatch.setattr(claim.fcntl, "flock", without)
    with claimed(tmp_path, "a class", ""):
        assert "cannot be locked (No locks available): see to it" in capsys.readouterr().out
