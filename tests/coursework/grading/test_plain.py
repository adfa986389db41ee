"""Whatever a student's words hold, no terminal, table, report or page obeys it, and none of it is long."""

import csv
import json
import re
import sys

import nbformat
import pytest
from nbconvert.filters.markdown_mistune import markdown2html_mistune

from coursework.grading import classroom, plain
from coursework.grading.collect import find_submissions
from coursework.grading.kernel import OUTPUTS_KEPT, Outputs
from coursework.grading.report import write_report
from coursework.grading.results import Result
from coursework.grading.session import Mark
from coursework.grading.tables import write_tables
from tests.coursework.grading.conftest import LESSON, released_notebook

HOSTILE = (
    "<img src=x onerror=alert(1)> [a](javascript:alert(1)) ![b](http://x/y.png) | `c` \x1b[2J\x07 \n\n# head $x$ "
    + "y" * 10**6
)


def test_a_report_shows_a_students_words_as_they_stand_and_short(tmp_path):
    mark = Mark(
        "causal_mask", "01.7", "causal mask", 0.0, 1.0, "not judged", "m", trouble=plain.lines("```\n" + HOSTILE)
    )
    result = Result(HOSTILE, HOSTILE, HOSTILE, (), 1.0, (HOSTILE,), (HOSTILE,))
    judged = Result("anna", LESSON, "graded", (mark,), 1.0, (HOSTILE,), (HOSTILE,))
    write_report([result, judged], tmp_path)
    text = (tmp_path / "report.md").read_text()
    assert len(text) < 20_000
    assert all(c in "\n\t" or c.isprintable() for c in text)
    page = markdown2html_mistune(text)
    assert len(re.findall("<h1", page)) == 1
    for harmful in ("<img", 'href="javascript', '">a</a>', "<code>c</code>", "<script", "</code></pre>\n<p><img"):
        assert harmful not in page


@pytest.mark.parametrize("start", ["=", "+", "-", "@", " =", "\n=", "\t=", "x;=", "x; =", "x\t@", "＝", "＠"])
def test_a_table_holds_no_formula(tmp_path, start):
    write_tables([Result(f"{start}cmd|' /C calc'!A0", LESSON, "graded", (), 1.0)], tmp_path)
    for name in ("moodle", "canvas"):
        with (tmp_path / f"{name}.csv").open(encoding="utf-8", newline="") as file:
            shown = list(csv.reader(file))[-1][0]
        assert not re.search(r"(^|[;\t\r\n])\s*[=+\-@＝＋－＠]", shown)


@pytest.mark.skipif(sys.platform == "win32", reason="names are stricter there")
def test_names_with_escapes_or_of_any_length_end_in_short_printable_lines(tmp_path, capsys, course):
    folder = tmp_path / "class"
    long = ["\x1b" * 200, "\x1b" * 199 + "\x07", "ü" * 120]
    for student in ("\x1b]0;title\x07", "two\nlines", *long):
        path = folder / student / LESSON / "\x1b[2J.txt"
        path.parent.mkdir(parents=True)
        path.touch()
    for i in range(300):
        (folder / "two\nlines" / LESSON / f"{i}-{'x' * 200}.txt").touch()
    (folder / "anna" / ("y" * 255)).mkdir(parents=True)
    found = find_submissions(folder, [LESSON])
    assert len({s.student for s in found}) == len(found) == 6
    results = classroom.grade(folder, tmp_path / "out", course=course, trusted=True, seed=1)
    assert all(r.status.startswith("unreadable: ") and len(r.status) < 600 for r in results)
    said = capsys.readouterr().out + (tmp_path / "out" / "report.md").read_text()
    assert all(c == "\n" or c.isprintable() for c in said)
    assert "\\x1b]0;title\\x07" in said
    assert len(list((tmp_path / "out" / "feedback").rglob("*.html"))) == 6


def test_a_thousand_repairs_are_told_in_forty_sentences(tmp_path, course):
    notebook = released_notebook(["causal_mask"])
    claims = {"nbgrader": {"grade": True, "solution": False, "grade_id": "mine"}}
    notebook.cells += [nbformat.v4.new_markdown_cell("x", metadata=claims) for _ in range(1000)]
    path = tmp_path / "class" / "anna" / LESSON / f"{LESSON}.ipynb"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(notebook))
    (result,) = classroom.grade(tmp_path / "class", tmp_path / "out", course=course, trusted=True, seed=1)
    assert result.status == "graded"
    assert 30 < len(result.repairs) < 50
    assert "more of this kind" in result.repairs[-1]


def test_a_cell_that_sends_errors_for_ever_keeps_some():
    outputs = Outputs()
    for _ in range(5 * OUTPUTS_KEPT):
        outputs.add("error", {"ename": "x", "evalue": "y", "traceback": []})
    assert len(outputs.kept) == OUTPUTS_KEPT
