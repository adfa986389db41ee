"""Lesson 03: its own functions, taken from its cells, agree with the tokenizer, the trainer and the exercises."""

import ast
from pathlib import Path

import nbformat
import pytest

from bert_minimal.train.vocabulary import learn_pieces
from coursework.cast import CAST, NEXT, TWINS
from coursework.checks import wordpiece
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
