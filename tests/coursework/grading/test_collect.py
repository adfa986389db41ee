"""Every way in which submissions arrive, found without changing anything."""

import json
import zipfile

import pytest

from coursework.grading.classroom import of_shard
from coursework.grading.collect import LARGEST, Unreadable, find_submissions, read_notebook, unpack
from tests.coursework.grading.conftest import LESSON, released_notebook

KNOWN = ["00_start_here", LESSON]
FILES = {
    f"anna/{LESSON}/{LESSON}.ipynb": ("anna", LESSON),
    f"ben+{LESSON}+2026-11-20 10:00:00 UTC/{LESSON}.ipynb": None,  # handed in again the next day
    f"ben+{LESSON}+2026-11-21 10:00:00 UTC+abc/{LESSON}.ipynb": ("ben", LESSON),
    f"Carla Müller_1234_assignsubmission_file_/my {LESSON} (1).ipynb": ("Carla Müller_1234", LESSON),
    f"doedora_LATE_99_1234_{LESSON}-2.ipynb": ("doedora", LESSON),
    f"emil_99_1235_{LESSON}.ipynb": ("emil", LESSON),
}


@pytest.fixture
def folder(tmp_path):
    for name in FILES:
        path = tmp_path / "class" / name
        path.parent.mkdir(parents=True) if not path.parent.exists() else None
        path.write_text(json.dumps(released_notebook(["causal_mask"])))
    return tmp_path / "class"


def test_every_layout_is_found(folder):
    found = find_submissions(folder, KNOWN)
    assert {(s.student, s.assignment) for s in found} == {who for who in FILES.values() if who}
    assert not any(s.problem for s in found)
    assert all(read_notebook(s) for s in found)
    (ben,) = [s for s in found if s.student == "ben"]
    assert "2026-11-21" in str(ben.path)


def test_a_file_that_does_not_say_its_assignment_needs_to_be_told(tmp_path):
    (tmp_path / "fay_1_2_homework.ipynb").write_text("{}")
    assert "say --assignment" in find_submissions(tmp_path, KNOWN)[0].problem
    assert find_submissions(tmp_path, KNOWN, LESSON)[0].assignment == LESSON


@pytest.mark.parametrize("around", ["", "submissions/"])
def test_a_zip_is_unpacked_beside_the_marks(folder, tmp_path, around):
    archive = tmp_path / "class.zip"
    names = [name for name in FILES if name.startswith("anna")] if around else list(FILES)
    with zipfile.ZipFile(archive, "w") as packed:
        for name in names:
            packed.write(folder / name, around + name)
    found = find_submissions(unpack(archive, tmp_path / "out"), KNOWN)
    assert {(s.student, s.assignment) for s in found} == {FILES[name] for name in names if FILES[name]}


def test_a_hostile_zip_stays_where_it_belongs(tmp_path):
    archive = tmp_path / "class.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("../../escaped.ipynb", "{}")
        packed.writestr("/absolute.ipynb", "{}")
        packed.writestr(f"anna/{LESSON}/{LESSON}.ipynb", " " * (LARGEST + 1))
    unpack(archive, tmp_path / "deep" / "out")
    outside = [p for p in tmp_path.rglob("*.ipynb") if not p.is_relative_to(tmp_path / "deep" / "out")]
    assert outside == []
    (anna,) = [s for s in find_submissions(tmp_path / "deep" / "out", KNOWN) if s.student == "anna"]
    with pytest.raises(Unreadable, match="not a notebook"):
        read_notebook(anna)
    archive.write_bytes(b"no zip")
    with pytest.raises(Unreadable, match="not a zip"):
        unpack(archive, tmp_path / "out")


def test_shards_are_the_class(folder):
    everyone = find_submissions(folder, KNOWN)
    parts = [of_shard(everyone, f"{i}/3") for i in (1, 2, 3)]
    assert sorted(s.student for part in parts for s in part) == sorted(s.student for s in everyone)
    for wrong in ("0/3", "4/3", "half"):
        with pytest.raises(Unreadable, match="second of five"):
            of_shard(everyone, wrong)
