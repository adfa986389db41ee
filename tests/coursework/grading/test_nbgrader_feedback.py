"""nbgrader's feedback pages: nothing in them asks for anything outside, and their formulas are there."""

import re
from pathlib import Path

import nbformat
import pytest
from bs4 import BeautifulSoup

from coursework.grading.nbgrader_feedback import SelfContained, formula

from .conftest import LESSON, cell, marks
from .nbgrader_course import make_course, nbgrader

ROOT = Path(__file__).parents[3]
ASSIGNMENTS = sorted((ROOT / "exercises").glob("*/*.ipynb"))
TEXT = r"""
# Attention [![badge](https://example.org/badge.svg)](https://example.org/lesson)

Scores are $QK^\top/\sqrt{d_k}$, and $$\text{softmax}(x)_i = \frac{e^{x_i}}{\sum_j e^{x_j}}$$

A broken one: $a_$.
"""


def rendered(text: str) -> BeautifulSoup:
    """The page's form of a Markdown text."""
    return BeautifulSoup(SelfContained().markdown2html({}, text), "html.parser")


def outside(page: BeautifulSoup) -> list[str]:
    """What a page would load or run: addresses of tags that load, imports in its styles, scripts."""
    loading = [tag for tag in page.find_all(True) if tag.name != "a"]
    found = [tag[key] for tag in loading for key in ("src", "href", "data", "srcset", "poster") if tag.get(key)]
    styles = " ".join(style.get_text() for style in page.find_all("style"))
    found += re.findall(r"@import[^;]*|url\(['\"]?https?:[^)]*", styles)
    found += [str(script)[:80] for script in page.find_all("script")]
    return [address for address in found if not address.startswith("data:")]


@pytest.mark.parametrize("path", ASSIGNMENTS, ids=lambda path: path.stem)
def test_every_formula_of_an_assignment_is_drawn_without_a_script(path):
    texts = [c.source for c in nbformat.read(path, as_version=4).cells if c.cell_type == "markdown"]
    for text in texts:
        page = rendered(text)
        assert outside(page) == []
        plain = re.sub(r"```.*?```|`[^`]*`", "", text, flags=re.DOTALL)
        assert len(page.find_all("math")) == len(re.findall(r"\$\$.+?\$\$|\$.+?\$", plain, re.DOTALL))
        assert "\\" not in "".join(math.get_text() for math in page.find_all("math"))


def test_formulas_pictures_and_a_broken_formula():
    page = rendered(TEXT)
    inline, block = page.find_all("math")
    assert inline.find("msqrt") is not None
    assert (inline["display"], block["display"]) == ("inline", "block")
    assert block.find("mfrac") is not None
    assert page.find("a").get_text() == "badge"
    assert page.find("code").get_text() == "a_"
    assert outside(BeautifulSoup('<img src="https://x.org/a.png"><script>1</script>', "html.parser"))


def test_a_formula_holds_no_tag():
    assert "<script" not in formula(r"\text{<script>alert(1)</script>}", "inline")


@pytest.mark.long
def test_generate_feedback_makes_pages_that_need_nothing(tmp_path):
    from .conftest import released_notebook

    root = tmp_path / "course"
    notebook = released_notebook(["merge_heads"])
    notebook.cells.insert(1, cell("markdown", "formulas", TEXT, marks("formulas")))
    make_course(root, {"anna": nbformat.writes(notebook)})
    for kind in ("solutions", "exercises"):  # the text above is part of what was handed out
        nbformat.write(notebook, root / kind / LESSON / f"{LESSON}.ipynb")
    nbgrader(root, "generate_assignment", LESSON, "--force")
    nbgrader(root, "autograde", LESSON)
    nbgrader(root, "generate_feedback", LESSON)
    page = BeautifulSoup((root / "feedback" / "anna" / LESSON / f"{LESSON}.html").read_text(), "html.parser")
    assert outside(page) == []
    assert len(page.find_all("math")) == 2
    assert "default-src 'none'" in page.find("meta", attrs={"http-equiv": "Content-Security-Policy"})["content"]
    assert "NotImplementedError" in page.get_text()
