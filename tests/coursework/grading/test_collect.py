"""Every way in which submissions arrive, found without changing anything."""

import json
import os
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from coursework.grading.classroom import of_shard
from coursework.grading.collect import LARGEST, Unreadable, find_submissions, parse, read_notebook, unpack, visible
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
    assert [s.moodle_id for s in found if s.moodle_id] == ["1234"]


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
    unpacked = unpack(archive, tmp_path / "deep" / "out")
    outside = [p for p in tmp_path.rglob("*.ipynb") if not p.is_relative_to(tmp_path / "deep" / "out")]
    assert outside == []
    (anna,) = [s for s in find_submissions(unpacked, KNOWN) if s.student == "anna"]
    with pytest.raises(Unreadable, match="more than 20 MB"):
        read_notebook(anna)
    archive.write_bytes(b"no zip")
    with pytest.raises(Unreadable, match="not a zip"):
        unpack(archive, tmp_path / "out")


def test_a_zip_is_unpacked_once_whoever_comes(folder, tmp_path):
    """Shards that start together, or later: nobody finds half of it, and nobody takes it away from another."""
    with zipfile.ZipFile(tmp_path / "class.zip", "w") as packed:
        for name in FILES:
            packed.write(folder / name, name)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: unpack(tmp_path / "class.zip", tmp_path / "out"), range(8)))
    assert len(set(found)) == 1
    assert [path.name for path in (tmp_path / "out").iterdir()] == [found[0].name]
    before = {path: path.stat().st_mtime_ns for path in found[0].rglob("*")}
    assert unpack(tmp_path / "class.zip", tmp_path / "out") == found[0]
    assert {path: path.stat().st_mtime_ns for path in found[0].rglob("*")} == before
    assert len(find_submissions(found[0], KNOWN)) == 5


def test_shards_are_the_class(folder):
    everyone = find_submissions(folder, KNOWN)
    parts = [of_shard(everyone, f"{i}/3") for i in (1, 2, 3)]
    assert sorted(s.student for part in parts for s in part) == sorted(s.student for s in everyone)
    for wrong in ("0/3", "4/3", "half"):
        with pytest.raises(Unreadable, match="second of five"):
            of_shard(everyone, wrong)


def hand_in(folder, name: str) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(json.dumps(released_notebook(["causal_mask"])))


def problems(folder) -> dict[str, str]:
    return {s.student: s.problem for s in find_submissions(folder, KNOWN)}


def test_an_entry_that_cannot_be_opened_stops_nobody(folder, monkeypatch):
    hand_in(folder, f"fay/{LESSON}/{LESSON}.ipynb")
    hand_in(folder, f"gil/{LESSON}/{LESSON}.ipynb")
    (folder / "hal").symlink_to(folder / "nowhere")

    def closed(path):
        if path.name == "fay" or path.parent.name == "gil":
            raise PermissionError(13, "Permission denied")
        return listed(path)

    listed = visible
    monkeypatch.setattr("coursework.grading.collect.visible", closed)
    found = problems(folder)
    assert "cannot be opened (Permission denied): give yourself the right" in found["fay"]
    assert "cannot be opened" in found["gil"]
    assert "ask for the notebook itself" in found["hal"]
    assert found["anna"] == ""


@pytest.mark.skipif(sys.platform != "linux", reason="names are bytes on Linux only")
def test_a_name_that_is_not_utf8_can_be_written(tmp_path):
    hand_in(tmp_path, os.fsdecode(b"J\xfcrgen") + f"/{LESSON}/my {LESSON}" + os.fsdecode(b"\xfc.ipynb"))
    (submission,) = find_submissions(tmp_path, KNOWN)
    assert (submission.student, submission.problem) == ("J\\xfcrgen", "")
    read_notebook(submission)


def test_a_notebook_that_cannot_be_opened_is_unreadable(folder, monkeypatch):
    def closed(path):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", closed)
    with pytest.raises(Unreadable, match="cannot be opened"):
        read_notebook(find_submissions(folder, KNOWN)[0])


def test_damaged_members_of_a_zip_cost_themselves(tmp_path):
    archive, text = tmp_path / "class.zip", json.dumps(released_notebook(["causal_mask"]))
    with zipfile.ZipFile(archive, "w") as packed:
        for student in ("anna", "broken", "locked"):
            packed.writestr(f"{student}/{LESSON}/{LESSON}.ipynb", text.replace("# Attention", f"# {student} here"))
        packed.writestr(f"long/{LESSON}/{'x' * 300}.ipynb", text)
        packed.writestr("both.ipynb", text)
        packed.writestr(f"both.ipynb/{LESSON}/{LESSON}.ipynb", text)
    data = bytearray(archive.read_bytes().replace(b"broken here", b"brokXn here"))  # its checksum is wrong now
    data[data.rindex(b"PK\x01\x02", 0, data.rindex(b"locked/")) + 8] |= 1  # its entry says: encrypted
    data[data.rindex(b"PK\x03\x04", 0, data.index(b"locked/")) + 6] |= 1
    archive.write_bytes(data)
    found = {s.student: s for s in find_submissions(unpack(archive, tmp_path / "out"), KNOWN)}
    assert set(found) == {"anna", "broken", "locked", "long", "both.ipynb"}
    read_notebook(found["anna"])
    for student, why in (("broken", "Bad CRC"), ("locked", "encrypted"), ("long", "too long")):
        with pytest.raises(Unreadable, match=f"could not be unpacked: .*{why}.*ask for the notebook itself"):
            read_notebook(found[student])


def test_half_an_emoji_in_a_cell_is_replaced(tmp_path):
    notebook = released_notebook(["causal_mask"])
    notebook.cells[2].source = "# \ud800"
    hand_in(tmp_path, f"anna/{LESSON}/{LESSON}.ipynb")
    (tmp_path / "anna" / LESSON / f"{LESSON}.ipynb").write_text(json.dumps(notebook))
    read, _ = read_notebook(find_submissions(tmp_path, KNOWN)[0])
    assert read.cells[2].source == "# \N{REPLACEMENT CHARACTER}"


def test_two_of_one_name_in_canvas_stay_two(tmp_path):
    for name in (f"leewei_201_5002_{LESSON}.ipynb", f"leewei_202_5003_{LESSON}.ipynb", f"ada_7_8_{LESSON}.ipynb"):
        hand_in(tmp_path, name)
    found = {s.student: s.canvas_id for s in find_submissions(tmp_path, KNOWN)}
    assert found == {"leewei_201": "201", "leewei_202": "202", "ada": "7"}


def test_what_was_set_aside_is_named(folder):
    hand_in(folder, f"anna/{LESSON}/{LESSON}_final.ipynb")
    hand_in(folder, f"emil_99_1236_{LESSON}.ipynb")
    (folder / f"emil_99_1237_{LESSON}.pdf").touch()
    told = {s.student: s.told for s in find_submissions(folder, KNOWN)}
    assert told["anna"] == (f"{LESSON}.ipynb was graded; beside it lay {LESSON}_final.ipynb, which was not",)
    assert f"emil_99_1235_{LESSON}.ipynb, emil_99_1237_{LESSON}.pdf was set aside" in told["emil"][0]
    assert "2026-11-20" in told["ben"][0]
    assert told["doedora"] == ("it was handed in late, as Canvas says; no points were taken for that",)
    assert told["Carla Müller_1234"] == ()


def test_the_files_name_goes_before_the_option(tmp_path):
    hand_in(tmp_path, f"fay_1_2_{LESSON}.ipynb")
    assert find_submissions(tmp_path, KNOWN, "00_start_here")[0].assignment == LESSON
    with pytest.raises(Unreadable, match=f"there is no assignment 01_atention; known are 00_start_here, {LESSON}"):
        find_submissions(tmp_path, KNOWN, "01_atention")


def test_nobody_is_graded_for_a_link_to_anothers_work(folder):
    (folder / "copy").symlink_to(folder / "anna")
    (folder / "fay").mkdir()
    (folder / "fay" / LESSON).symlink_to(folder / "anna" / LESSON)
    found = problems(folder)
    assert "by a link" in found["copy"]
    assert "by a link" in found["fay"]
    assert found["anna"] == ""


def test_every_entry_is_accounted_for(folder):
    for name in ("fay_1_2_homework.py", f"gil_3_4_{LESSON}.ipynb.txt", "notes.pdf"):
        (folder / name).touch()
    hand_in(folder, f"hal/{LESSON}/{LESSON}.IPYNB")
    found = problems(folder)
    assert "ask for the .ipynb file itself" in found["fay"]
    assert "ask for the .ipynb file itself" in found["gil"]
    assert "take it out" in found["notes.pdf"]
    assert found["hal"] == ""


@pytest.mark.parametrize("name", [name for name in FILES if FILES[name]])
def test_a_zip_made_on_a_mac_with_a_folder_around_it(folder, tmp_path, name):
    with zipfile.ZipFile(tmp_path / "class.zip", "w") as packed:
        packed.write(folder / name, f"week 3/{name}")
        packed.writestr(f"__MACOSX/week 3/{name.replace(LESSON + '.', '._' + LESSON + '.')}", "x")
        packed.writestr("week 3/.DS_Store", "x")
        packed.writestr("week 3/fay_1_2_homework.pdf", "x")
    found = find_submissions(unpack(tmp_path / "class.zip", tmp_path / "out"), KNOWN)
    assert [(s.student, s.assignment) for s in found if not s.problem] == [FILES[name]]
    assert [s.student for s in found if s.problem] == ["fay"]


@pytest.mark.parametrize(("data", "what"), [(b"", "it is empty"), (b"<html>log in</html>", "cannot be read as JSON")])
def test_what_is_no_notebook_says_what_to_do(data, what):
    with pytest.raises(Unreadable, match=f"{what}.*; ask for it to be saved and handed in again"):
        parse(data, "01_attention.ipynb")
