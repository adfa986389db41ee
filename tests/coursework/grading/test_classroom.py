"""A class: files in, tables out. No submission is lost, none stops the others, none is changed."""

import csv
import itertools
import json
import shutil
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from coursework.grading import classroom
from coursework.grading.assignments import known_assignments
from coursework.grading.collect import Unreadable, find_submissions, read_notebook
from coursework.grading.demo import alternative_of, make_demo_class, mistakes_of, splice
from coursework.grading.feedback import feedback_page
from coursework.grading.one import ROOT
from coursework.grading.results import Result, load, save
from coursework.grading.secret import class_seed
from coursework.grading.session import Mark
from coursework.grading.tables import write_tables
from tests.coursework.grading.conftest import LESSON, released_notebook

MARK = Mark("causal_mask", "01.7", "causal mask", 0.5, 1.0, "partly right", "✗ <b>01.7</b>", "itself", None)


def hand_in(folder, student: str, text: str, assignment: str = LESSON, name: str = "") -> None:
    path = folder / student / assignment / (name or f"{assignment}.ipynb")
    path.parent.mkdir(parents=True)
    path.write_text(text)


def rows(path) -> list[dict]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_a_class_with_everything_wrong_in_it(tmp_path, course):
    exercises = known_assignments()[LESSON].exercises
    text = splice(released_notebook(["causal_mask"]), {"causal_mask": alternative_of(exercises["causal_mask"])})
    (course / "exercises" / LESSON / f"{LESSON}.ipynb").write_text(json.dumps(released_notebook(["causal_mask"])))
    folder, out = tmp_path / "class", tmp_path / "out"
    hand_in(folder, "anna", text)
    hand_in(folder, "ben", text[:300])
    hand_in(folder, "=cmd()", "{}")
    hand_in(folder, "dora", text, assignment="99_unknown")
    hand_in(folder, "emil", text, name="my homework (2).ipynb")
    (folder / "fay").mkdir()
    before = {path: path.read_bytes() for path in folder.rglob("*.ipynb")}
    classroom.grade(folder, out, seed=5, course=course, trusted=True)
    assert {path: path.read_bytes() for path in folder.rglob("*.ipynb")} == before

    table = rows(out / "marks.csv")
    assert list(table[0]) == ["student", "assignment", "exercise", "points", "max", "status"]
    right = {(r["student"], r["points"]) for r in table if r["exercise"] == "causal_mask"}
    assert right == {("anna", "1"), ("emil", "1")}
    failed = {r["student"]: r["status"] for r in table if r["exercise"] == "*"}
    assert set(failed) == {"ben", "'=cmd()", "dora", "fay"}
    assert all(status.startswith("unreadable: ") and len(status) > 30 for status in failed.values())
    assert "my homework (2).ipynb" in (out / "feedback" / "emil" / f"{LESSON}.html").read_text()
    assert "ben" in (out / "report.md").read_text()
    canvas = rows(out / "canvas.csv")
    assert {r["Student"]: r[LESSON] for r in canvas}["anna"] == "1"
    assert float(canvas[0][LESSON]) == sum(e.points for e in exercises.values())
    assert {r["Username"]: r[LESSON] for r in rows(out / "moodle.csv")}["emil"] == "1"
    assert {r["Username"]: r[LESSON] for r in rows(out / "moodle.csv")}["ben"] == ""  # no 0: somebody must look
    for name, who in (("moodle", "Username"), ("canvas", "Student")):
        table = {r[who]: r for r in rows(out / f"{name}_questions.csv")}
        numbers = {e.number: e.name for e in exercises.values()}
        asked = [column for column in table["emil"] if column.startswith(LESSON) and "feedback" not in column]
        assert all(name == numbers[number] for _, number, name in map(str.split, asked))
        assert sum(float(table["emil"][column]) for column in asked) == 1
        assert "ben" not in table or not any(table["ben"][column] for column in asked)

    # A second run grades what changed, or has no page any more, and nothing else.
    (out / "feedback" / "emil" / f"{LESSON}.html").unlink()
    kept = (out / "results" / "anna" / f"{LESSON}.json").stat().st_mtime_ns
    (folder / "ben" / LESSON / f"{LESSON}.ipynb").write_text(text)
    again = classroom.grade(folder, out, seed=5, course=course, trusted=True)
    assert {r.student: r.points for r in again if r.marks} == {"anna": 1.0, "ben": 1.0, "emil": 1.0}
    assert (out / "results" / "anna" / f"{LESSON}.json").stat().st_mtime_ns == kept
    assert (out / "feedback" / "emil" / f"{LESSON}.html").is_file()


def test_a_notebook_of_another_unit_is_said_to_be_one_and_earns_no_0(tmp_path):
    """The real notebooks: unit 02's and a lesson under unit 01's name, with and without what nbgrader knows them by."""
    other = (ROOT / "exercises" / "02_embeddings" / "02_embeddings.ipynb").read_text()
    stripped = json.loads(other)
    for cell in stripped["cells"]:
        cell["metadata"] = {}
        cell.pop("id")
    hand_in(tmp_path / "class", "anna", other)
    hand_in(tmp_path / "class", "ben", json.dumps(stripped))
    hand_in(tmp_path / "class", "carl", (ROOT / "notebooks" / "12_hugging_face.ipynb").read_text())
    results = {r.student: r for r in classroom.grade(tmp_path / "class", tmp_path / "out", seed=5, trusted=True)}
    for student in ("anna", "ben"):
        said = "wrong notebook: this is the notebook of 02_embeddings, not of 01_attention"
        assert results[student].status.startswith(said)
        assert said in (tmp_path / "out" / "feedback" / student / f"{LESSON}.html").read_text()
    assert "it has none of the exercises of 01_attention: ask" in results["carl"].status
    assert (tmp_path / "out" / "report.md").read_text().count("wrong notebook: ") == 3
    assert {r["status"].partition(":")[0] for r in rows(tmp_path / "out" / "marks.csv")} == {"wrong notebook"}
    assert not any(r[LESSON] for r in rows(tmp_path / "out" / "moodle.csv"))


def test_an_empty_folder_is_said_clearly(tmp_path):
    with pytest.raises(Unreadable, match="no submissions"):
        find_submissions(tmp_path, [LESSON])
    with pytest.raises(Unreadable, match="not a folder"):
        find_submissions(tmp_path / "absent", [LESSON])


@pytest.mark.parametrize(
    "text",
    ["", "[]", "3", "\x00\xff", '{"nbformat": 4}', '{"nbformat": 4, "cells": {}}', '{"nbformat": "4", "cells": []}',
     "[" * 5000],
)  # fmt: skip
def test_what_is_no_notebook_is_unreadable(tmp_path, text):
    hand_in(tmp_path, "anna", text)
    (submission,) = find_submissions(tmp_path, [LESSON])
    with pytest.raises(Unreadable, match="is not a notebook"):
        read_notebook(submission)


def test_cells_with_fields_of_the_wrong_type_are_read(tmp_path):
    cells = [{"cell_type": "code", "source": ["a", 3, "b"], "metadata": 7, "outputs": 1, "id": []}, 5, {}]
    hand_in(tmp_path, "anna", json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": [], "cells": cells}))
    notebook, _ = read_notebook(find_submissions(tmp_path, [LESSON])[0])
    assert [c.source for c in notebook.cells] == ["ab", ""]


def test_links_are_not_followed(tmp_path):
    (tmp_path / "secret.ipynb").write_text(json.dumps(released_notebook()))
    folder = tmp_path / "class" / "anna" / LESSON
    folder.mkdir(parents=True)
    (folder / f"{LESSON}.ipynb").symlink_to(tmp_path / "secret.ipynb")
    with pytest.raises(Unreadable, match="not an ordinary file"):
        read_notebook(find_submissions(tmp_path / "class", [LESSON])[0])


def test_results_come_back_as_they_were_saved(tmp_path):
    result = Result("ünal", LESSON, "graded", (MARK,), 18.0, ("told",), ("gc",), 1.5, "key")
    save(result, tmp_path / "r.json")
    assert load(tmp_path / "r.json") == result
    (tmp_path / "r.json").write_text((tmp_path / "r.json").read_text()[:50])
    assert load(tmp_path / "r.json") is None


def test_tables_hold_no_formula(tmp_path):
    write_tables([Result("@SUM(A1)", LESSON, "graded", (MARK,), 1.0)], tmp_path)
    assert rows(tmp_path / "marks.csv")[0]["student"] == "'@SUM(A1)"


def test_tables_are_whole_whatever_a_name_holds_and_say_canvas_own_number(tmp_path):
    write_tables([Result("half \ud800", LESSON, "graded", (MARK,), 1.0, canvas_id="201")], tmp_path)
    assert rows(tmp_path / "canvas.csv")[1]["ID"] == "201"
    assert rows(tmp_path / "marks.csv")[0]["student"] == "half \\ud800"
    assert not list(tmp_path.glob("*.new"))


@pytest.mark.skipif(shutil.which("make") is None, reason="no make here")
def test_make_grade_takes_a_folder_with_spaces():
    asked = ["make", "-n", "grade", "FOLDER=Winter term", "OUT=marks of winter"]
    said = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert 'grade "Winter term" --out "marks of winter"\n' in said  # make inside make says where it is, too


def test_feedback_escapes_whatever_a_student_wrote():
    notebook = released_notebook(["causal_mask"])
    notebook.cells[2].source = "<script>alert(1)</script>"
    notebook.cells[2].outputs = [{"output_type": "stream", "name": "stdout", "text": "<img src=x onerror=1>"}]
    page = feedback_page(Result("<i>", LESSON, "graded", (MARK,), 1.0, ("<u>",)), notebook)
    for harmful in ("<script>", "<img src=x", "<i>", "<u>", "<b>01.7"):
        assert harmful not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "default-src &#x27;none&#x27;" in page or "default-src 'none'" in page


def test_the_seed_is_made_once_and_kept_to_oneself(tmp_path):
    path = tmp_path / "deep" / "seed"
    assert class_seed(path) == class_seed(path)
    assert path.stat().st_mode & 0o077 == 0
    path.write_text("not a number")
    with pytest.raises(ValueError, match="remove it"):
        class_seed(path)


def test_one_seed_for_all_who_start_at_once(tmp_path, monkeypatch):
    drawn = itertools.count()
    monkeypatch.setattr("secrets.randbits", lambda bits: time.sleep(0.05) or next(drawn))
    with ThreadPoolExecutor(16) as pool:
        seeds = list(pool.map(lambda _: class_seed(tmp_path / "home" / "seed"), range(64)))
    assert len(set(seeds)) == 1
    assert [path.name for path in (tmp_path / "home").iterdir()] == ["seed"]


EARNED = {  # demo student -> points of 18, or a word of the status
    "perfect": 18, "blank": 0, "half_done": 9, "syntax_error": 16, "endless_cell": 16, "endless_answer": 16,
    "kills_its_kernel": 18, "answer_kills_it": 16, "warns_on_stderr": 18, "patches_allclose": 0,
    "imports_the_answer": 0, "claims_full_marks": 0, "broken_json": "unreadable", "not_a_notebook": "unreadable",
}  # fmt: skip


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_the_demo_class_gets_the_marks_it_earned(tmp_path, course):
    exercises = known_assignments()[LESSON].exercises
    folder = make_demo_class(tmp_path / "class", course)
    results = {r.student: r for r in classroom.grade(folder, tmp_path / "out", seed=11, course=course, trusted=True)}
    for student, earned in EARNED.items():
        if isinstance(earned, str):
            assert results[student].status.startswith(earned), student
        else:
            assert (results[student].status, results[student].points) == ("graded", earned), student
    status = {s: {m.exercise: m.status for m in r.marks} for s, r in results.items()}
    assert status["endless_cell"]["attention_scores"] == status["endless_answer"]["attention_scores"] == "time limit"
    assert status["answer_kills_it"]["attention_scores"] == "died"
    assert set(status["blank"].values()) == {"not answered"}
    for name, exercise in exercises.items():
        for mistake, _ in mistakes_of(exercise)[:2]:
            marks = {m.exercise: m for m in results[f"mistake-{name}-{mistake}"].marks}
            assert marks[name].mistake == mistake
            assert marks[name].points < exercise.points
            assert all(m.status == "right" for other, m in marks.items() if other != name)
