"""The report: what somebody has to look at comes first; names come in the order in which people look for them."""

import csv
import zipfile

from coursework.grading.report import write_report
from coursework.grading.results import Result, in_order
from coursework.grading.session import Mark
from coursework.grading.tables import write_tables
from tests.coursework.grading.conftest import LESSON


def result(student: str, status: str = "graded", verdict: str = "right", assignment: str = LESSON, **more) -> Result:
    mark = Mark("causal_mask", "01.7", "causal mask", 1.0, 1.0, verdict, "m", trouble=more.pop("trouble", ""))
    return Result(student, assignment, status, (mark,) if status == "graded" else (), 1.0, **more)


def test_what_somebody_has_to_look_at_comes_first_and_in_order(tmp_path):
    results = [
        result("s10", "unreadable: it is empty"),
        result("zoe"),
        result("s9", "wrong notebook: this is the notebook of 02_embeddings, not of 01_attention"),
        result("odd", verdict="not judged", trouble="Traceback"),
        result("anna", look=("gc",), repairs=("told",)),
        result("slow", verdict="time limit"),
    ]
    write_report(results, tmp_path)
    text = (tmp_path / "report.md").read_text()
    heads = [line.split(":")[0] for line in text.splitlines() if line.startswith("#")]
    assert heads == [
        "# Class report",
        "## To look at",
        "### Not graded",
        "### Could not be judged",
        "### Stopped",
        "### Worth a look",
        f"## {LESSON}",
        "### What to teach again",
        "### Put right before grading",
    ]
    assert "6 submissions, 2 of them not graded" in text
    assert text.index("- s9, ") < text.index("- s10, ")
    assert f"- slow, {LESSON}: 01.7 time limit" in text


def test_a_class_without_problems_has_no_such_section(tmp_path):
    write_report([result("anna")], tmp_path)
    assert "To look at" not in (tmp_path / "report.md").read_text()


def test_moodle_gets_back_a_worksheet_and_a_zip_by_its_own_numbers(tmp_path):
    results = [
        result("Ada Lovelace_12345", moodle_id="12345"),
        result("Ben_777", "unreadable: it is empty", moodle_id="777"),
        result("carla_9"),
    ]
    for r in results:
        page = tmp_path / "feedback" / r.student / f"{LESSON}.html"
        page.parent.mkdir(parents=True)
        page.write_text(r.student)
    write_tables(results, tmp_path)
    with (tmp_path / f"moodle_{LESSON}_worksheet.csv").open(encoding="utf-8", newline="") as file:
        (row,) = csv.DictReader(file)  # no grade for what was not graded
    assert (row["Identifier"], row["Grade"], row["Feedback comments"]) == ("Participant 12345", "1", "01.7 right (1/1)")
    assert "Last modified (grade)" in row
    found = {}
    with zipfile.ZipFile(tmp_path / f"moodle_{LESSON}_feedback.zip") as packed:
        for name in packed.namelist():
            folder, file = name.split("/")
            _, number, kind, plugin, rest = folder.split("_", 4)  # as Moodle's importziplib.php does
            assert (kind, plugin, rest, file) == ("assignsubmission", "file", "", f"{LESSON}.html")
            found[number] = packed.read(name).decode()
    assert found == {"12345": "Ada Lovelace_12345", "777": "Ben_777"}


def test_tables_are_in_the_order_of_a_class_list(tmp_path):
    names = ["ada", "Ben", "Örs", "olga", "s9", "s10", "zoe"]
    results = [result(name, assignment=unit) for name in reversed(names) for unit in ("02_embeddings", LESSON)]
    ordered = sorted(results, key=in_order)
    assert [(r.student, r.assignment) for r in ordered[:3]] == [
        ("ada", LESSON),
        ("ada", "02_embeddings"),
        ("Ben", LESSON),
    ]
    write_tables(ordered, tmp_path)
    with (tmp_path / "moodle.csv").open(encoding="utf-8", newline="") as file:
        shown = [row["Username"] for row in csv.DictReader(file)]
    assert shown == ["ada", "Ben", "olga", "Örs", "s9", "s10", "zoe"]
