"""README: what it shows is what the code says now, and where it points there is something."""

import ast
import importlib.util
import io
import re
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
FIGURES = (ROOT / "docs" / "figures.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def make_pages():
    spec = importlib.util.spec_from_file_location("make_pages", ROOT / "docs" / "make_pages.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("page", [README, FIGURES], ids=["README", "figures"])
def test_blocks_are_current(make_pages, page):
    assert make_pages.filled(page) == page, "run: python docs/make_pages.py"


def test_every_benchmark_has_its_place(make_pages):
    """A script's table stands on the page of figures, whose blocks a script fills."""
    tables = {path.stem for path in (ROOT / "benchmarks" / "results").glob("*.md")}
    assert tables <= set(re.findall(r"<!-- (\w+) -->", FIGURES))


def test_a_typed_figure_is_noticed(make_pages):
    typed = README.replace("parts pass", "parts pass, honestly", 1)
    assert typed != README
    assert make_pages.filled(typed) == README


def test_every_link_leads_somewhere():
    for page, home in ((README, ROOT), (FIGURES, ROOT / "docs")):
        links = [target.partition("#")[0] for target in re.findall(r"\]\(([^)\s]+)\)", page)]
        missing = [link for link in links if link and "://" not in link and not (home / link).exists()]
        assert not missing


def code_lines(path: Path) -> int:
    """Lines that hold code: neither blank, nor comment, nor docstring."""
    source = path.read_text(encoding="utf-8")
    prose: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node) is not None:
            prose |= set(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    layout = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    lines = {n for token in tokens if token.type not in layout for n in range(token.start[0], token.end[0] + 1)}
    return len(lines - prose)


def test_the_core_reads_in_an_evening():
    files = sorted((ROOT / "bert_minimal").glob("*.py"))
    assert sum(map(code_lines, files)) <= 1500, {path.name: code_lines(path) for path in files}
