"""A student's Markdown is shown as it was typed: nothing of it is rendered."""

import nbformat
import pytest
from nbconvert.exporters import HTMLExporter

from coursework.grading.nbgrader_steps import ShowAsText
from tests.coursework.grading.conftest import marks

HOSTILE = [
    "<img src=x onerror=alert(1)>",
    "```\nbreak out\n```\n<script>alert(1)</script>",
    "`````` \n<script>alert(1)</script>",
    "[click](javascript:alert(1))",
    "~~~\n</code></pre><script>alert(1)</script>",
    "a\u2028```\n<svg onload=alert(1)>",
    "\r```\r<svg onload=alert(1)>",
]


@pytest.mark.parametrize("source", HOSTILE)
@pytest.mark.parametrize("kind", ["markdown", "raw", "answer"])
def test_nothing_is_rendered(source, kind):
    make = nbformat.v4.new_raw_cell if kind == "raw" else nbformat.v4.new_markdown_cell
    cell = make(source, metadata=marks("a", solution=True, grade=True, locked=False) if kind == "answer" else {})
    cell["attachments"] = {"x.svg": {"image/svg+xml": "<svg onload=alert(1)>"}}
    if kind == "raw":
        cell.metadata["format"] = "text/html"
    notebook = nbformat.v4.new_notebook(cells=[cell])
    notebook, _ = ShowAsText().preprocess(notebook, {})
    html, _ = HTMLExporter(template_name="basic").from_notebook_node(notebook)
    for harmful in ("<img", "<svg", "<script>alert", 'href="javascript', "href='javascript"):
        assert harmful not in html


def test_the_courses_own_text_is_rendered():
    cell = nbformat.v4.new_markdown_cell("# Title", metadata=marks("text"))
    notebook, _ = ShowAsText().preprocess(nbformat.v4.new_notebook(cells=[cell]), {})
    assert notebook.cells[0].source == "# Title"
