"""Lesson 03: its own functions, taken from its cells, agree with the tokenizer, the trainer and the exercises."""

import ast
import re
from pathlib import Path

import nbformat
import pytest

from bert_minimal.train.vocabulary import learn_pieces
from coursework.cast import CAST, NEXT, TWINS
from coursework.checks import exercises, wordpiece
from coursework.checks.engine import run_here

LESSON = Path(__file__).parents[2] / "notebooks" / "03_wordpiece.ipynb"
NEEDED = ("encode", "scores", "train", "train-code")  # the cells that define functions


@pytest.fixture(scope="module")
def cells():
    return {cell.id: cell for cell in nbformat.read(LESSON, as_version=4).cells}


@pytest.fixture(scope="module")
def lesson(cells, minilm):
    """The functions that the lesson's cells define; what they show and assert is left out."""
    from bert_minimal.wordpiece import WordPiece

    names: dict = {"tokenizer": WordPiece.from_pretrained(minilm)}
    exec("from collections import Counter", names)
    for name in NEEDED:
        tree = ast.parse(cells[name].source)
        tree.body = [node for node in tree.body if isinstance(node, (ast.FunctionDef, ast.Assign))]
        exec(compile(tree, name, "exec"), names)
    names["cut"] = lambda words: {w: [w[0], *("##" + c for c in w[1:])] for w in words}
    return names


def test_encode_word_is_the_tokenizers_and_passes_its_own_exercise(lesson):
    tokenizer = lesson["tokenizer"]
    for text in [*CAST.values(), *TWINS.values(), *NEXT.values(), "epistemology 😀 unaffable x²"]:
        for word in tokenizer.split_words(text):
            assert lesson["encode_word"](word, tokenizer.vocab) == tokenizer.encode_word(word)
    assert wordpiece.encode_word.verdict(run_here({"encode_word": lesson["encode_word"]}), seed=3).passed


@pytest.mark.parametrize("rule", ["ratio", "frequency"])
def test_training_merges_as_the_trainer_does(lesson, rule):
    counts = {"sea": 9, "seal": 5, "meal": 4, "small": 3, "fizz": 2}
    history = lesson["train"](counts, 6, lesson[rule])
    characters = {c for pieces in history[0][1] for c in pieces}
    assert [new for new, _ in history[1:]] == learn_pieces(counts, len(characters) + 6, rule, 1)[len(characters) :]


def test_checks_point_at_sections_that_exist(cells):
    headings = set(re.findall(r"^## (.+)$", "\n".join(cell.source for cell in cells.values()), re.MULTILINE))
    for exercise in exercises("03"):
        assert re.fullmatch(r'notebooks/03_wordpiece, "(.+)"', exercise.see)[1] in headings


def test_cells_are_short_and_pictures_have_a_text(cells):
    code = [cell for cell in cells.values() if cell.cell_type == "code" and cell.id != "setup"]
    assert 15 <= len(code) <= 30
    assert max(len(cell.source.splitlines()) for cell in code) <= 15
    pages = [o.data["text/html"] for cell in code for o in cell.outputs if "text/html" in o.get("data", {})]
    pictures = [alt for page in pages for alt in re.findall(r'<img alt="([^"]*)"', page)]
    assert len(pictures) == 7
    assert min(map(len, pictures)) > 60
