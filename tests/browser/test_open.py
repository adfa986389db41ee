"""Every lesson and exercise as it opens in JupyterLab, light and dark, with no way to the internet."""

import shutil
from pathlib import Path

import nbformat
import pytest

from .reading import Heard, faint

ROOT = Path(__file__).parents[2]
NOTEBOOKS = [*sorted((ROOT / "notebooks").glob("*.ipynb")), *sorted((ROOT / "exercises").glob("*/*.ipynb"))]
BADGE = "https://colab.research.google.com/assets/colab-badge.svg"  # the one picture that is not in the notebook

pytestmark = [pytest.mark.browser, pytest.mark.timeout(1500)]


SHOWN = [
    f".jp-Notebook {kind}{part}" for kind in (".jp-OutputArea-output", ".jp-MarkdownOutput") for part in ("", " *")
]


@pytest.mark.parametrize("theme", ["JupyterLab Light", "JupyterLab Dark"])
def test_notebooks_open_offline_without_errors_and_can_be_read(start_lab, browser_page, tmp_path, theme):
    course = tmp_path / "course"
    for folder in ("notebooks", "exercises"):
        shutil.copytree(ROOT / folder, course / folder)
    page, problems = browser_page, {}
    heard = Heard(page, allowed={BADGE})
    lab = start_lab(course, theme)
    for path in NOTEBOOKS:
        heard.forget()
        cells = len(nbformat.read(path, as_version=4).cells)
        page.goto(lab.page(path.relative_to(ROOT).as_posix()))
        page.locator(".jp-Notebook .jp-Cell").nth(cells - 1).wait_for(state="attached")
        page.wait_for_timeout(1500)
        found = heard.said() | {
            "no text": page.locator(".jp-Notebook img:not([alt]), .jp-Notebook img[alt='']").count(),
            "no title": page.locator(".jp-Notebook iframe:not([title])").count(),
            "unfolded": page.locator(".jp-Notebook details[open]").count(),
            "faint": faint(page, SHOWN, leave="mjx-container, style, script, iframe, pre code"),
        }
        if any(found.values()):
            problems[path.stem] = {key: value for key, value in found.items() if value}
        page.screenshot(path=str(tmp_path / f"{theme.split()[1]}-{path.parent.name}-{path.stem}.png"))
    assert not problems, "\n".join(f"{page}: {found}" for page, found in problems.items())
