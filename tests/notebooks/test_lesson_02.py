"""Lesson 02: its own functions, taken from its cells, give transformers' numbers on real weights."""

import ast
from pathlib import Path

import nbformat
import pytest
import torch

from coursework.cast import CAST, NEXT
from coursework.checks import embeddings as checks

LESSON = Path(__file__).parents[2] / "notebooks" / "02_embeddings.ipynb"


@pytest.fixture(scope="module")
def cells():
    notebook = nbformat.read(LESSON, as_version=4)
    return {cell.id: cell for cell in notebook.cells}


@pytest.fixture(scope="module")
def lesson(cells, minilm):
    """The names that the lesson's cells define, up to the real numbers; drawings are left out."""
    names: dict = {}
    for cell in cells.values():
        if cell.cell_type != "code" or cell.id in ("setup", "map", "bag-code", "two-seals", "undo-result"):
            continue
        tree = ast.parse(cell.source)
        if isinstance(tree.body[-1], ast.Expr):
            tree.body.pop()
        exec(compile(tree, cell.id, "exec"), names)
        if cell.id == "real-code":
            return names
    raise AssertionError("the lesson has no cell real-code")


@pytest.mark.parametrize("name", CAST)
def test_tables_sum_and_layer_norm_equal_transformers(lesson, minilm, name):
    from transformers import BertModel

    library = BertModel.from_pretrained(minilm).eval()
    row = lesson["tokenizer"](CAST[name], NEXT[name])
    ids, segments = torch.tensor([row.input_ids]), torch.tensor([row.token_type_ids])
    with torch.inference_mode():
        wanted = library.embeddings(input_ids=ids, token_type_ids=segments)[0]
    x = lesson["word"][ids[0]] + lesson["segment"][segments[0]] + lesson["position"][: ids.shape[1]]
    ours = lesson["layer_norm"](x, lesson["weight"], lesson["bias"])
    torch.testing.assert_close(ours, wanted, rtol=0, atol=1e-5)


def test_layer_norm_of_the_lesson_passes_its_own_exercise(lesson):
    from coursework.checks.engine import run_here

    assert checks.layer_norm.verdict(run_here({"layer_norm": lesson["layer_norm"]}), seed=3).passed


def test_without_positions_the_order_of_words_does_not_matter(lesson):
    row = lesson["tokenizer"](CAST["seal"])
    turned = row | {"input_ids": [row.input_ids[0], *row.input_ids[:0:-1]]}
    for model, blind in ((lesson["unplaced"], True), (lesson["bert"], False)):
        one, other = lesson["states"](model, row)[-1], lesson["states"](model, turned)[-1]
        assert torch.allclose(one[0], other[0], atol=1e-4) is blind
        assert torch.allclose(one[1:], other[1:].flip(0), atol=1e-4) is blind
