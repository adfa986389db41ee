"""A student's afternoon in a real browser: a wrong answer, the right one, and nbgrader's Validate."""

import re
import shutil
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).parents[2]
UNIT = "01_attention"
WRONG = "def attention_scores(query, key):\n    return query @ key.transpose(-2, -1)\n"

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]


def right_answers() -> dict[str, str]:
    """Answer cell -> its source in the solutions, without the marks."""
    nb = nbformat.read(ROOT / "solutions" / UNIT / f"{UNIT}.ipynb", as_version=4)
    answers = {cell.id: cell.source for cell in nb.cells if cell.id.endswith("-answer")}
    return {key: re.sub(r" *### (BEGIN|END) SOLUTION\n?", "", source) for key, source in answers.items()}


@pytest.fixture
def folder(tmp_path) -> Path:
    """The exercises as a student has them after all but the first are answered."""
    copy = tmp_path / "course"
    shutil.copytree(ROOT / "exercises", copy / "exercises")
    shutil.copy(ROOT / "nbgrader_config.py", copy)
    path = copy / "exercises" / UNIT / f"{UNIT}.ipynb"
    nb, answers = nbformat.read(path, as_version=4), right_answers()
    for cell in nb.cells:
        if cell.id in answers and cell.id != "attention_scores-answer":
            cell.source = answers[cell.id]
    nbformat.write(nb, path)
    return copy


class Notebook:
    """The open notebook, cells addressed by their ids."""

    def __init__(self, page, path: Path):
        self.page = page
        self.ids = [cell.id for cell in nbformat.read(path, as_version=4).cells]
        page.locator(".jp-Notebook .jp-Cell").nth(len(self.ids) - 1).wait_for(state="attached")
        page.locator("#jp-main-statusbar", has_text=re.compile(r"ipykernel\) \| Idle")).wait_for()

    def cell(self, id: str):
        return self.page.locator(".jp-Notebook .jp-Cell").nth(self.ids.index(id))

    def write(self, id: str, source: str) -> None:
        self.cell(id).locator(".cm-content").click()
        self.page.keyboard.press("ControlOrMeta+A")
        self.page.keyboard.insert_text(source)

    def run(self, id: str, shows: str = "") -> str:
        """Run a cell; returns its output once it contains `shows`."""
        self.cell(id).locator(".cm-content").click()
        self.page.keyboard.press("ControlOrMeta+Enter")
        self.cell(id).locator(".jp-InputPrompt", has_text=re.compile(r"\[\d+\]")).wait_for()
        if not shows:
            return ""
        output = self.cell(id).locator(".jp-OutputArea-output", has_text=shows).first
        output.wait_for()
        return output.inner_text()

    def validate(self) -> str:
        """Press nbgrader's Validate; returns what its dialogue says, and closes it."""
        self.page.get_by_role("button", name="Validate").first.click()
        dialogue = self.page.locator(".jp-Dialog-content")
        dialogue.wait_for(timeout=240_000)
        words = dialogue.inner_text()
        dialogue.locator(".jp-Dialog-button").last.click()
        return words


def test_wrong_then_right_then_validate(start_lab, browser_page, folder):
    file = f"exercises/{UNIT}/{UNIT}.ipynb"
    browser_page.goto(start_lab(folder).page(file))
    notebook = Notebook(browser_page, folder / file)
    for id in ("setup", "imports"):
        notebook.run(id)

    notebook.write("attention_scores-answer", WRONG)
    notebook.run("attention_scores-answer")
    said = notebook.run("attention_scores-try", shows="01.1")
    assert "✗ 01.1 attention scores" in said
    assert "looks  like scores that are not scaled at all" in said
    assert "Traceback" not in said
    assert "Success" not in notebook.validate()

    notebook.write("attention_scores-answer", right_answers()["attention_scores-answer"])
    notebook.run("attention_scores-answer")
    assert "all 4 parts pass" in notebook.run("attention_scores-try", shows="✓ 01.1 attention scores")
    assert "Success" in notebook.validate()


def test_locked_cells_cannot_be_edited(start_lab, browser_page, folder):
    file = f"exercises/{UNIT}/{UNIT}.ipynb"
    browser_page.goto(start_lab(folder).page(file))
    notebook = Notebook(browser_page, folder / file)
    before = notebook.cell("attention_scores").locator(".cm-content").inner_text()
    notebook.write("attention_scores", "1.0")
    assert notebook.cell("attention_scores").locator(".cm-content").inner_text() == before
