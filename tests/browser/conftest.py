"""A JupyterLab server and a browser, both real."""

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest


@dataclass(frozen=True)
class Lab:
    """A running JupyterLab: address of the page that shows a file of its root folder."""

    port: int
    token: str

    def page(self, file: str) -> str:
        return f"http://127.0.0.1:{self.port}/lab/tree/{file}?token={self.token}"


@pytest.fixture
def start_lab(tmp_path) -> Iterator[Callable[..., Lab]]:
    """start_lab(folder, theme): JupyterLab with that folder as root; stopped at the end, its log shown on failure."""
    running: list[tuple[subprocess.Popen, Path]] = []

    def start(folder: Path, theme: str = "JupyterLab Light") -> Lab:
        settings = tmp_path / "lab-settings"
        tracker = settings / "@jupyterlab" / "notebook-extension" / "tracker.jupyterlab-settings"
        tracker.parent.mkdir(parents=True)
        tracker.write_text('{"windowingMode": "none"}')  # every cell is in the page, seen or not
        news = settings / "@jupyterlab" / "apputils-extension" / "notification.jupyterlab-settings"
        news.parent.mkdir(parents=True)
        news.write_text('{"checkForUpdates": false, "fetchNews": "false"}')
        (news.parent / "themes.jupyterlab-settings").write_text(f'{{"theme": "{theme}"}}')
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        token, log = "browser-test", tmp_path / "lab.log"
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        own = {"JUPYTERLAB_SETTINGS_DIR": str(settings), "JUPYTERLAB_WORKSPACES_DIR": str(tmp_path / "workspaces")}
        environment = os.environ | own | {"PATH": path, "JUPYTER_CONFIG_DIR": str(tmp_path / "config")}
        environment["JUPYTER_DATA_DIR"] = str(tmp_path / "data")
        command = [sys.executable, "-m", "jupyter", "lab", "--no-browser", "--allow-root", f"--ServerApp.port={port}"]
        command += ["--ServerApp.port_retries=0", f"--IdentityProvider.token={token}", f"--ServerApp.root_dir={folder}"]
        with log.open("w") as file:
            process = subprocess.Popen(command, cwd=folder, env=environment, stdout=file, stderr=subprocess.STDOUT)
        running.append((process, log))
        _wait_until_it_answers(f"http://127.0.0.1:{port}/api/status?token={token}", process, log)
        return Lab(port, token)

    yield start
    for process, log in running:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
        print(log.read_text()[-3000:])  # pytest shows it when the test failed


def _wait_until_it_answers(url: str, process: subprocess.Popen, log: Path, seconds: float = 90) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end and process.poll() is None:
        try:
            urllib.request.urlopen(url, timeout=5).close()
            return
        except (urllib.error.URLError, OSError):
            time.sleep(0.3)
    pytest.fail(f"JupyterLab did not start:\n{log.read_text()[-3000:]}")


@pytest.fixture
def browser_page(chromium_path, tmp_path):
    """A page of a headless Chromium; on failure a picture of it lies in the test's folder."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium_path, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1400, "height": 1000})
        page.set_default_timeout(60_000)
        yield page
        page.screenshot(path=str(tmp_path / "last-seen.png"))
        browser.close()
