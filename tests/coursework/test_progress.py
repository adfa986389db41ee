"""A student's progress is what the instant checks saw: the best points, kept on this computer, and what follows."""

import json
import re
from pathlib import Path

import nbformat
import pytest

from coursework import checks, progress
from coursework.checks.engine import CheckFailed

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def own_record(monkeypatch, tmp_path):
    monkeypatch.setenv("BERT_PROGRESS", str(tmp_path / "deep" / "progress.json"))
    return tmp_path / "deep" / "progress.json"


def pass_all(unit: str) -> None:
    for exercise in checks.exercises(unit):
        progress.note(exercise, exercise.points)


def test_the_instant_check_notes_the_best_points(own_record):
    exercise = checks.find("00", "count_words")
    with pytest.raises(CheckFailed):
        exercise(lambda sentence: sentence.count(" "))
    before = progress.read().get("00.1 count_words", 0.0)
    exercise(lambda sentence: len(sentence.split()))
    assert progress.read()["00.1 count_words"] == exercise.points > before
    with pytest.raises(CheckFailed):
        exercise(lambda sentence: 0)
    assert progress.read()["00.1 count_words"] == exercise.points
    assert [file.name for file in own_record.parent.iterdir()] == ["progress.json"]


def test_what_a_lesson_shows_is_not_noted(own_record):
    """Whoever only ran lesson 00 has done nothing yet: its answers are not theirs."""
    lesson = nbformat.read(ROOT / "notebooks" / "00_start_here.ipynb", as_version=4)
    shown = [line for cell in lesson.cells if cell.cell_type == "code" for line in cell.source.splitlines()]
    calls = [line.strip() for line in shown if line.strip().startswith("check.count_words(")]
    assert calls
    assert all("note=False" in call for call in calls)
    checks.find("00", "count_words")(lambda sentence: len(sentence.split()), note=False)
    assert not own_record.exists()


def test_what_is_next_and_what_one_can_do():
    found = progress.units()
    assert progress.next_step(found).number == "00.1"
    assert not any(true for _, true in progress.checklist(found))
    pass_all("00")
    pass_all("01")
    found = progress.units()
    assert progress.next_step(found).number == "02.1"
    assert [ability for ability, true in progress.checklist(found) if true] == [
        "compute attention by hand, in three lines, and on real weights"
    ]


def test_every_ability_rests_on_exercises_and_every_unit_on_an_ability():
    numbers = {exercise.number for unit in checks.UNITS for exercise in checks.exercises(unit)}
    needs = {need for _, behind in progress.CHECKLIST for need in behind}
    lessons = {number[:2] for number in numbers} - {"00"}
    assert lessons <= {need[:2] for need in needs}
    assert all(need in numbers for need in needs if "." in need)


@pytest.mark.parametrize("text", ["", "[1, 2]", '{"01.1 attention_scores": "many"}', "{"])
def test_a_damaged_record_is_an_empty_one(own_record, text):
    own_record.parent.mkdir()
    own_record.write_text(text)
    assert progress.read() == {}
    pass_all("00")
    assert json.loads(own_record.read_text())["00.1 count_words"] == 1.0


def test_where_nothing_can_be_written_a_check_still_works(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("BERT_PROGRESS", str(tmp_path / "file" / "progress.json"))
    checks.find("00", "count_words")(lambda sentence: len(sentence.split()))
    assert progress.read() == {}


@pytest.mark.parametrize("name", ["COURSEWORK_BUILD", "NBGRADER_EXECUTION"])
def test_neither_building_nor_grading_leaves_a_trace(monkeypatch, name, own_record):
    monkeypatch.setenv(name, "1")
    pass_all("00")
    assert not own_record.exists()


def test_it_is_shown_as_text_and_as_a_picture(capsys):
    pass_all("00")
    assert progress.main() == 0
    said = capsys.readouterr().out
    exercises = len(checks.exercises("00"))
    assert re.search(rf"00_start_here\s+│\s+{exercises} of {exercises}", said)
    assert "Next: 01.1 attention scores, in exercises/01_attention" in said
    page = progress.draw().data
    assert "<img alt=" in page
    assert "☐ compute attention by hand" in page
