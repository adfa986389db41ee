"""Every lesson and exercise as it opens in JupyterLab, light and dark, with no way to the internet."""

import re
import shutil
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).parents[2]
NOTEBOOKS = [*sorted((ROOT / "notebooks").glob("*.ipynb")), *sorted((ROOT / "exercises").glob("*/*.ipynb"))]
BADGE = "https://colab.research.google.com/assets/colab-badge.svg"  # the one picture that is not in the notebook

# Text that stands out too little from what is behind it (WCAG 2.2, 1.4.3), among what a notebook of ours shows.
CONTRAST = """
() => {
  const canvas = document.createElement("canvas").getContext("2d");
  const rgba = (text) => {
    canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = text; canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const behind = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const color = rgba(getComputedStyle(e).backgroundColor);
      if (color[3] > 200) return color;
    }
    return [255, 255, 255, 255];
  };
  const light = ([r, g, b]) => [r, g, b].map((v) => v / 255)
    .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const faint = [];
  const shown = [".jp-OutputArea-output", ".jp-MarkdownOutput"]
    .flatMap((kind) => [".jp-Notebook " + kind, ".jp-Notebook " + kind + " *"]).join();
  for (const element of document.querySelectorAll(shown)) {
    const text = [...element.childNodes].filter((n) => n.nodeType === 3).map((n) => n.textContent.trim()).join("");
    if (!text || element.closest("mjx-container, style, script, iframe, pre code")) continue;
    const [a, b] = [light(rgba(getComputedStyle(element).color)), light(behind(element))].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < 4.5) faint.push(`${ratio.toFixed(2)} ${text.slice(0, 60)}`);
  }
  return faint;
}
"""

pytestmark = [pytest.mark.browser, pytest.mark.timeout(1500)]


@pytest.mark.parametrize("theme", ["JupyterLab Light", "JupyterLab Dark"])
def test_notebooks_open_offline_without_errors_and_can_be_read(start_lab, browser_page, tmp_path, theme):
    course = tmp_path / "course"
    for folder in ("notebooks", "exercises"):
        shutil.copytree(ROOT / folder, course / folder)
    page, asked, errors = browser_page, [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.route(re.compile(r"^https?://(?!127\.0\.0\.1)"), lambda route: route.abort())
    lab = start_lab(course, theme)
    problems = {}
    for path in NOTEBOOKS:
        asked.clear(), errors.clear()
        cells = len(nbformat.read(path, as_version=4).cells)
        page.goto(lab.page(path.relative_to(ROOT).as_posix()))
        page.locator(".jp-Notebook .jp-Cell").nth(cells - 1).wait_for(state="attached")
        page.wait_for_timeout(1500)
        found = {
            "asked": [url for url in asked if re.match(r"https?://(?!127\.0\.0\.1)", url) and url != BADGE],
            "errors": [text for text in errors if "ERR_FAILED" not in text],  # the badge, which we did not let through
            "no text": page.locator(".jp-Notebook img:not([alt]), .jp-Notebook img[alt='']").count(),
            "no title": page.locator(".jp-Notebook iframe:not([title])").count(),
            "unfolded": page.locator(".jp-Notebook details[open]").count(),
            "faint": page.evaluate(CONTRAST),
        }
        if any(found.values()):
            problems[path.stem] = {key: value for key, value in found.items() if value}
        page.screenshot(path=str(tmp_path / f"{theme.split()[1]}-{path.parent.name}-{path.stem}.png"))
    assert not problems, problems
