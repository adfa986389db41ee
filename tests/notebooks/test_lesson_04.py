"""Lesson 04: its own loss is right, and its experiment shows what the text says of it."""

import re
from pathlib import Path

import nbformat
import pytest
import torch

from coursework import checks
from coursework.checks.engine import run_here

LESSON = Path(__file__).parents[2] / "notebooks" / "04_mlm.ipynb"


@pytest.fixture(scope="module")
def cells():
    return {cell.id: cell for cell in nbformat.read(LESSON, as_version=4).cells}


def test_the_lessons_loss_passes_its_own_exercise(cells):
    names = {"torch": torch}
    exec(cells["loss-code"].source.partition("by_hand")[0], names)
    assert checks.find("04", "mlm_loss").verdict(run_here(names), seed=3).passed


def test_the_word_that_is_read_is_known_only_when_it_was_asked_for(cells):
    page = next(o.data["text/html"] for o in cells["always"].outputs if "data" in o)
    lazy, usual = map(int, re.search(r"a word that is read: always \[MASK\] (\d+)%, 80/10/10 (\d+)%", page).groups())
    assert usual > lazy + 40
