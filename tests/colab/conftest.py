"""Colab, as far as one machine can play it: a bare Python with a torch, IPython 7, a folder /content and no repository.

What differs from the real thing: Colab has a thousand packages more (none that the course needs and would not
install), its Python is 3.12 (here it is the one that runs the tests), and its torch comes with a GPU.
"""

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import nbformat
import pytest

from tests.conftest import absent

ROOT = Path(__file__).parents[2]
KERNEL = ["ipykernel==6.17.1", "ipython==7.34.0", "ipywidgets>=8"]  # Colab's; its ipywidgets 7 wants a whole server
HERE_ALREADY = "torch"  # with what it depends on: lent by the environment that runs the tests

# Colab's kernel has imported its own package before the first cell runs: that is how the set-up cell knows it.
GOOGLE_COLAB = "import sys, types\nsys.modules['google.colab'] = types.ModuleType('google.colab')\n"


@dataclass(frozen=True)
class Archive:
    """The repository as GitHub would hand it out: what is committed, and nothing else of this folder."""

    folder: Path
    git: Path  # the same with a tag, for `pip install git+…@tag`


@dataclass(frozen=True)
class Colab:
    """A machine of Colab's: its Python, its /content, what its processes see of the environment."""

    python: Path
    content: Path
    environment: dict[str, str]

    def asked(self, source: str) -> str:
        """What a Python process of Colab's prints."""
        return run([self.python, "-c", source], cwd=self.content, env=self.environment)

    def run_all(self, notebook: Any) -> None:
        """Runtime → Run all, from /content; an error in a cell fails the test."""
        from jupyter_client.kernelspec import KernelSpec
        from jupyter_client.manager import AsyncKernelManager
        from nbclient import NotebookClient

        manager = AsyncKernelManager()
        command = [str(self.python), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        manager._kernel_spec = KernelSpec(argv=command, display_name="Python 3", language="python")
        where = {"metadata": {"path": str(self.content)}}
        client = NotebookClient(notebook, km=manager, resources=where, timeout=600)
        client.owns_km = True  # stops the kernel at the end
        client.execute(env=self.environment)


@pytest.fixture(scope="session")
def archive(tmp_path_factory) -> Archive:
    """`git archive` of the last commit, unpacked; the address in pyproject.toml leads to its `git`."""
    if not (ROOT / ".git").exists():
        pytest.skip("no git here: this test installs what is committed")
    folder = tmp_path_factory.mktemp("archive") / "repository"
    folder.mkdir()
    packed = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, check=True, capture_output=True).stdout
    subprocess.run(["tar", "-x"], cwd=folder, input=packed, check=True)
    (git := folder.with_name("git")).mkdir()
    subprocess.run(["tar", "-x"], cwd=git, input=packed, check=True)
    tag = re.search(r"@(v[\d.]+)", set_up_cell(folder)).group(1)
    run(["git", "init", "-q"], cwd=git)
    run(["git", "add", "--all"], cwd=git)
    run(["git", "-c", "user.name=test", "-c", "user.email=test@localhost", "commit", "-qm", "release"], cwd=git)
    run(["git", "tag", tag], cwd=git)
    return Archive(folder, git)


@pytest.fixture(scope="session")
def colab(archive, tmp_path_factory) -> Colab:
    """A fresh machine; its torch is a link to ours, whatever else it has comes from the package index."""
    place = tmp_path_factory.mktemp("colab")
    lent, content, home = (place / name for name in ("dist-packages", "content", "home"))
    for folder in (lent, content, home):
        folder.mkdir()
    run([sys.executable, "-m", "venv", place / "usr"], cwd=place)
    python = place / "usr" / "bin" / "python"
    lend(HERE_ALREADY, lent)
    packages = Path(run([python, "-c", "import site; print(site.getsitepackages()[0])"], cwd=place).strip())
    (packages / "colab.pth").write_text(f"{lent}\n")
    start_up = home / ".ipython" / "profile_default" / "startup"
    start_up.mkdir(parents=True)
    (start_up / "00-colab.py").write_text(GOOGLE_COLAB)
    ours = re.compile(r"PYTHON|VIRTUAL_ENV|BERT_|COURSEWORK|NBGRADER|JUPYTER|IPYTHON|XDG|MPL|HF_")
    address = re.search(r"git\+(https://\S+?)@", set_up_cell(archive.folder)).group(1)
    environment = {key: value for key, value in os.environ.items() if not ours.match(key)} | {
        "HOME": str(home),
        "PIP_CACHE_DIR": run([sys.executable, "-m", "pip", "cache", "dir"], cwd=place).strip(),
        "PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}",
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.{archive.git.as_uri()}.insteadOf",
        "GIT_CONFIG_VALUE_0": address,
    }
    install = [python, "-m", "pip", "install", "-q", *KERNEL]
    done = subprocess.run(install, cwd=place, env=environment, capture_output=True, text=True)
    if done.returncode:
        absent(f"pip cannot get Colab's kernel: {done.stderr.strip().splitlines()[-1]}")
    return Colab(python, content, environment)


def lend(name: str, folder: Path, seen: set[str] | None = None) -> None:
    """Link an installed package and what it depends on into `folder`. pip sees them there and, since they lie outside
    its environment, cannot remove them."""
    seen = set() if seen is None else seen
    if name in seen:
        return
    seen.add(name)
    found = metadata.distribution(name)
    home = Path(str(found.locate_file("")))
    tops = {file.parts[0] for file in found.files or () if file.parts[0] not in ("..", "__pycache__")}
    for top in tops:
        if not (folder / top).exists():
            (folder / top).symlink_to(home / top)
    for line in found.requires or ():
        if "extra ==" not in line:
            requirement = re.match(r"[\w.-]+", line).group()
            try:
                metadata.distribution(requirement)
            except metadata.PackageNotFoundError:  # for another system or another Python
                continue
            lend(requirement, folder, seen)


def set_up_cell(folder: Path) -> str:
    """The source of the set-up cell, from a lesson in the archive."""
    lesson = nbformat.read(folder / "notebooks" / "01_attention.ipynb", as_version=4)
    return next(cell.source for cell in lesson.cells if cell.id == "setup")


def run(command: list, cwd: Path, env: dict[str, str] | None = None) -> str:
    """What a command prints; its failure fails the test with what it said."""
    done = subprocess.run([str(part) for part in command], cwd=cwd, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
