"""A notebook used, not only opened: hints fold, interactive views draw offline, bars move, the keyboard suffices."""

import re
import shutil
from pathlib import Path

import nbformat
import pytest
from nbformat.sign import NotebookNotary

from coursework.grading.repair import KERNEL
from tests.browser.test_exercise import UNIT, Notebook, right_answers

ROOT = Path(__file__).parents[2]
EXERCISE = f"exercises/{UNIT}/{UNIT}.ipynb"
BAR = "import sys, time\nfrom tqdm import tqdm\nfor step in tqdm(range(40), file=sys.stdout):\n    time.sleep(0.1)"

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]


@pytest.fixture
def folder(tmp_path) -> Path:
    """The lessons and exercises, as a student has them."""
    copy = tmp_path / "course"
    for name in ("notebooks", "exercises"):
        shutil.copytree(ROOT / name, copy / name)
    return copy


@pytest.fixture
def asked(browser_page) -> list[str]:
    """Addresses outside this machine that the page asks for; none answers."""
    found: list[str] = []
    elsewhere = re.compile(r"^https?://(?!127\.0\.0\.1)")
    browser_page.on("request", lambda request: found.append(request.url) if elsewhere.match(request.url) else None)
    browser_page.route(elsewhere, lambda route: route.abort())
    return found


def frames_of(notebook) -> int:
    outputs = [out for cell in notebook.cells for out in cell.get("outputs", [])]
    return sum("<iframe" in "".join(out.get("data", {}).get("text/html", "")) for out in outputs)


STORED = [path for path in sorted((ROOT / "notebooks").glob("*.ipynb")) if frames_of(nbformat.read(path, as_version=4))]


@pytest.mark.parametrize("theme", ["JupyterLab Light", "JupyterLab Dark"])
def test_stored_interactive_views_draw_offline(start_lab, browser_page, asked, folder, tmp_path, theme):
    """In a notebook that this user trusts (as after running it): lines and words, dark on white in both themes."""
    assert STORED
    (tmp_path / "data").mkdir()
    lab = start_lab(folder, theme)
    for path in STORED:
        lesson = nbformat.read(path, as_version=4)
        NotebookNotary(data_dir=str(tmp_path / "data")).sign(lesson)
        browser_page.goto(lab.page(path.relative_to(ROOT).as_posix()))
        frames = browser_page.locator(".jp-Notebook iframe")
        frames.first.wait_for(state="attached")
        assert frames.count() == frames_of(lesson)
        for number in range(frames.count()):
            assert len(frames.nth(number).get_attribute("title")) > 20
            inside = frames.nth(number).content_frame
            inside.locator("svg line, svg path, svg rect").nth(20).wait_for(state="attached")
            assert "[CLS]" in inside.locator("body").text_content()
            white = "element => getComputedStyle(element).backgroundColor"
            assert frames.nth(number).evaluate(white) == "rgb(255, 255, 255)"
        frames.first.scroll_into_view_if_needed()
        browser_page.screenshot(path=str(tmp_path / f"frame-{path.stem}-{theme.split()[1]}.png"))
    assert [url for url in asked if "colab-badge" not in url] == []


def test_hints_are_folded_and_open_by_mouse_and_by_key(start_lab, browser_page, asked, folder):
    browser_page.goto(start_lab(folder).page(EXERCISE))
    notebook = Notebook(browser_page, folder / EXERCISE)
    hints = notebook.cell("attention_scores-text").locator("details")
    assert hints.count() >= 3
    for number in range(hints.count()):
        hint = hints.nth(number)
        inside = hint.locator("p, pre, li").first
        assert not inside.is_visible()
        if number == 0:
            hint.locator("summary").click()
        else:
            hint.locator("summary").focus()
            browser_page.keyboard.press("Enter")
        inside.wait_for(state="visible")


def test_a_progress_bar_moves(start_lab, browser_page, folder):
    path = folder / "bar.ipynb"
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(BAR, id="bar")])
    notebook.metadata["kernelspec"] = dict(KERNEL)
    nbformat.write(notebook, path)
    browser_page.goto(start_lab(folder).page("bar.ipynb"))
    notebook = Notebook(browser_page, path)
    notebook.cell("bar").locator(".cm-content").click()
    browser_page.keyboard.press("ControlOrMeta+Enter")
    output = notebook.cell("bar").locator(".jp-OutputArea-output")
    seen = []
    while not seen or seen[-1] < 100:
        output.filter(has_text=re.compile(r"\d%")).first.wait_for()
        seen.append(int(re.findall(r"(\d+)%", output.first.inner_text())[-1]))
        browser_page.wait_for_timeout(200)
    assert len(set(seen)) > 4, seen
    assert seen == sorted(seen)
    assert output.count() == 1
    assert len(output.inner_text().splitlines()) == 1  # one line that moves, not forty


def test_an_exercise_is_done_by_keyboard_alone(start_lab, browser_page, folder):
    """No click: run the first cells, go to the answer, write it, run it, run its check."""
    browser_page.goto(start_lab(folder).page(EXERCISE))
    notebook = Notebook(browser_page, folder / EXERCISE)
    keys, selected = browser_page.keyboard, browser_page.locator(".jp-Notebook .jp-Cell.jp-mod-selected")
    selected.first.wait_for(state="attached")
    place = notebook.ids.index("attention_scores-answer")
    ran = browser_page.locator(".jp-InputPrompt", has_text=re.compile(r"\[\d+\]"))
    for _ in range(place):
        keys.press("Shift+Enter")
    keys.press("Enter")
    keys.press("ControlOrMeta+A")
    keys.insert_text(right_answers()["attention_scores-answer"])
    keys.press("Shift+Enter")
    keys.press("Escape")
    keys.press("Shift+Enter")
    output = notebook.cell("attention_scores-try").locator(".jp-OutputArea-output", has_text="01.1").first
    output.wait_for()
    assert "all 4 parts pass" in output.inner_text()
    assert ran.count() >= 4
