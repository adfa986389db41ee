"""What a hostile student wrote, shown to the instructor: nothing of it runs in the formgrader or in the feedback."""

import json
import re

import pytest

from coursework.grading import classroom
from coursework.grading.demo import splice
from tests.coursework.grading.conftest import LESSON, released_notebook
from tests.coursework.grading.nbgrader_course import NAMES, make_course, nbgrader, with_gradebook

STEAL = "document.title = 'LEAK'; window.LEAK = 1; fetch('/api/contents?LEAK')"
MARKDOWN = f"""
# A note to my teacher
<img src="nowhere.png" onerror="{STEAL}">
<svg onload="{STEAL}"></svg>
<a href="javascript:{STEAL}" id="link">my source</a>
<iframe srcdoc="<script>parent.{STEAL}</script>"></iframe>
<script>{STEAL}</script>
"""
CODE = f"""
from IPython.display import HTML, SVG, Javascript, Markdown, display
display(HTML("<img src=x onerror=\\"{STEAL}\\"><script>{STEAL}</script>"), Javascript("{STEAL}"),
        SVG("<svg onload=\\"{STEAL}\\" xmlns='http://www.w3.org/2000/svg'/>"), Markdown("<script>{STEAL}</script>"))
print("<script>{STEAL}</script><img src=x onerror=\\"{STEAL}\\">")
raise ValueError("<script>{STEAL}</script>")
"""

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]


@pytest.fixture
def course(tmp_path):
    """A course in which eve's notebook tries to run script in whoever looks at it; graded."""
    root = tmp_path / "course"
    notebook = json.loads(splice(released_notebook(NAMES), {}, extra=CODE))
    for kind in ("markdown", "raw"):
        notebook["cells"].append({"cell_type": kind, "id": f"note-{kind}", "metadata": {}, "source": MARKDOWN})
    make_course(root, {"eve": json.dumps(notebook)})
    nbgrader(root, "autograde", LESSON)
    return root


def watched(page) -> list[str]:
    """Every address that the page asks for from now on; only this machine answers."""
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.route(re.compile(r"^https?://(?!127\.0\.0\.1)"), lambda route: route.abort())
    return asked


def untouched(page, asked: list[str]) -> bool:
    page.wait_for_timeout(1500)
    return page.evaluate("window.LEAK") is None and page.title() != "LEAK" and not any("LEAK" in url for url in asked)


def test_nothing_of_a_students_runs_in_the_formgrader(start_lab, browser_page, course):
    lab, asked = start_lab(course), watched(browser_page)
    ids = with_gradebook(
        course, f'answer = [n.id for s in gradebook.assignment_submissions("{LESSON}") for n in s.notebooks]'
    )
    browser_page.goto(f"http://127.0.0.1:{lab.port}/formgrader/submissions/{ids[0]}/?index=0&token={lab.token}")
    browser_page.get_by_text("A note to my teacher").first.wait_for()
    assert browser_page.locator("#link").count() == 0
    assert untouched(browser_page, asked)


def test_nothing_of_a_students_runs_in_the_feedback_and_it_needs_no_network(browser_page, course, tmp_path):
    asked = watched(browser_page)
    classroom.grade(course / "submitted", tmp_path / "out", seed=1, course=course, trusted=True)
    nbgrader(course, "generate_feedback", LESSON)
    ours = tmp_path / "out" / "feedback" / "eve" / f"{LESSON}.html"
    theirs = course / "feedback" / "eve" / LESSON / f"{LESSON}.html"
    browser_page.goto(ours.as_uri())
    assert "ValueError" in browser_page.inner_text("body")
    assert untouched(browser_page, asked)
    assert asked == [ours.as_uri()]
    asked.clear()
    browser_page.goto(theirs.as_uri())
    browser_page.get_by_text("A note to my teacher").first.wait_for()
    assert untouched(browser_page, asked)
    assert asked == [theirs.as_uri()]


def test_the_trap_works(browser_page, tmp_path):
    """The same script in a page that does render it: else the tests above would prove nothing."""
    page = tmp_path / "page.html"
    page.write_text(f"<html><body>{MARKDOWN}</body></html>")
    browser_page.goto(page.as_uri())
    assert not untouched(browser_page, watched(browser_page))
