"""The site as a reader sees it, light and dark, with no way to the internet."""

import functools
import http.server
import re
import subprocess
import sys
import threading
from pathlib import Path
from urllib.parse import unquote

import pytest

from .reading import Heard, faint

ROOT = Path(__file__).parents[2]
BADGE = "https://colab.research.google.com/assets/colab-badge.svg"  # the one picture from elsewhere
BLANK_FONT = "Access to font at 'about:blank'"  # MathJax 2 asks for no font by this name, and is refused: as meant

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """(address, folder) of the site as `make site` builds it; any warning of the build fails."""
    out = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", "-c", "docs",
               "-d", str(out / "doctrees"), ".", str(out / "html")]  # fmt: skip
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    handler = functools.partial(Quiet, directory=str(out / "html"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", out / "html"
        server.shutdown()


def test_every_page_reads_well_offline_in_both_themes(site, browser_page, tmp_path):
    address, folder = site
    page, problems = browser_page, {}
    heard = Heard(page, allowed={BADGE}, harmless=(BLANK_FONT,))
    paths = sorted(p.relative_to(folder) for kind in ("docs", "notebooks") for p in (folder / kind).glob("*.html"))
    assert len(paths) >= 15
    for path in paths:
        heard.forget()
        page.goto(f"{address}/{path.as_posix()}")
        for theme in ("light", "dark"):
            page.evaluate("theme => { document.body.dataset.theme = theme }", theme)
            page.wait_for_timeout(500)
            found = heard.said() | {
                "no text": page.locator("article img:not([alt]), article img[alt='']").count(),
                "faint": faint(page, ["article *"], leave=".MathJax, .MathJax_Preview, style, script, iframe"),
            }
            if any(found.values()):
                problems[f"{path}, {theme}"] = {key: value for key, value in found.items() if value}
        page.screenshot(path=str(tmp_path / f"{path.stem}.png"))
    assert not problems, "\n".join(f"{page}: {found}" for page, found in problems.items())


def test_every_link_within_the_site_leads_somewhere(site):
    _, folder = site
    for page in (*folder.glob("docs/*.html"), *folder.glob("notebooks/*.html")):
        for link in re.findall(r'<a [^>]*href="([^"#]+)', page.read_text(encoding="utf-8")):
            assert re.match(r"[a-z]+:", link) or (page.parent / unquote(link)).exists(), f"{page.name}: {link}"


def test_the_front_door_leads_in_and_the_search_finds_a_lesson(site, browser_page):
    address, _ = site
    heard = Heard(browser_page, harmless=(BLANK_FONT,))
    browser_page.goto(address)
    browser_page.wait_for_url("**/docs/index.html")
    browser_page.goto(f"{address}/search.html?q=wordpiece")
    browser_page.locator(".search a[href*='03_wordpiece']").first.wait_for()
    assert not any(heard.said().values()), heard.said()
