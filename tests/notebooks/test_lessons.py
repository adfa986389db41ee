"""What every lesson keeps: short cells, pictures with a text, sections that the checks point at, links that lead on."""

import re
from pathlib import Path

import nbformat
import pytest

from coursework import checks

ROOT = Path(__file__).parents[2]
LESSONS = sorted((ROOT / "notebooks").glob("[0-9]*.ipynb"))
each_lesson = pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)


def _cells(path: Path) -> list:
    return nbformat.read(path, as_version=4).cells


def _pictures(path: Path) -> list[str]:
    """The texts of the pictures that the stored outputs show."""
    outputs = [output for cell in _cells(path) for output in cell.get("outputs", [])]
    pages = [output.data["text/html"] for output in outputs if "text/html" in output.get("data", {})]
    return [alt for page in pages for alt in re.findall(r'<img alt="([^"]*)"', page)]


@each_lesson
def test_a_cell_is_short(path):
    code = [cell for cell in _cells(path) if cell.cell_type == "code" and cell.id != "setup"]
    assert len(code) <= 30
    long = {cell.id: len(cell.source.splitlines()) for cell in code if len(cell.source.splitlines()) > 15}
    assert not long


@each_lesson
def test_pictures_teach_and_have_a_text(path):
    pictures = _pictures(path)
    assert len(pictures) >= (1 if path.stem == "00_start_here" else 3)
    assert min(map(len, pictures)) > 60
    bare = [
        output for cell in _cells(path) for output in cell.get("outputs", []) if "image/png" in output.get("data", {})
    ]
    assert not bare, "a picture without a text: show it with visualize.figure_html"


@each_lesson
def test_the_reader_must_guess_first(path):
    source = "\n".join(cell.source for cell in _cells(path) if cell.cell_type == "code")
    assert len(re.findall(r'^quiz\.\w+\(guess=""\)', source, re.MULTILINE)) >= (
        1 if path.stem == "00_start_here" else 2
    )


@each_lesson
def test_checks_point_at_sections_that_exist(path):
    headings = re.findall(r"^## (.+)$", "\n".join(cell.source for cell in _cells(path)), re.MULTILINE)
    for exercise in checks.exercises(path.stem):
        section = re.fullmatch(rf'notebooks/{path.stem}, "(.+)"', exercise.see)[1]
        assert section in headings, f"{exercise.number} points at {section!r}"


@pytest.mark.parametrize(
    "path", [*LESSONS, *sorted((ROOT / "exercises").glob("*/*.ipynb"))], ids=lambda p: f"{p.parent.name}/{p.stem}"
)
def test_links_between_notebooks_lead_somewhere(path):
    for cell in _cells(path):
        for link in re.findall(r"\]\(((?!https?:|#|attachment:)[^)\s]+)\)", cell.source):
            assert (path.parent / link.partition("#")[0]).exists(), f"{cell.id}: {link}"
