"""Lesson 01: its own functions, taken from its cells, give transformers' numbers on real weights."""

import ast
from pathlib import Path

import nbformat
import pytest
import torch

from coursework.cast import CAST, TWINS
from coursework.checks import attention as checks

LESSON = Path(__file__).parents[2] / "notebooks" / "01_attention.ipynb"


@pytest.fixture(scope="module")
def cells():
    notebook = nbformat.read(LESSON, as_version=4)
    return {cell.id: cell for cell in notebook.cells}


@pytest.fixture(scope="module")
def lesson(cells, minilm):
    """The names that the lesson's cells define; drawings at the end of a cell are left out."""
    names: dict = {}
    exec("import torch", names)
    for cell in cells.values():
        if cell.cell_type != "code" or cell.id in ("setup", "map", "real-code"):
            continue
        tree = ast.parse(cell.source)
        if isinstance(tree.body[-1], ast.Expr):
            tree.body.pop()
        exec(compile(tree, cell.id, "exec"), names)
        if cell.id == "gpt-maps":
            return names
    raise AssertionError("the lesson has no cell gpt-maps")


@pytest.fixture(scope="module")
def library(minilm):
    from transformers import BertModel

    return BertModel.from_pretrained(minilm, attn_implementation="eager").eval()


@pytest.mark.parametrize("sentence", [*CAST.values(), *TWINS.values()])
def test_first_layer_equals_transformers(lesson, library, sentence):
    mixed = []
    dense = library.encoder.layer[0].attention.output.dense
    hook = dense.register_forward_hook(lambda module, given, out: mixed.append(out[0]))
    ids = torch.tensor([lesson["tokenizer"](sentence).input_ids])
    with torch.inference_mode():
        output = library(input_ids=ids, output_attentions=True, output_hidden_states=True)
        hook.remove()
        ours, weights = lesson["multi_head"](output.hidden_states[0][0], lesson["weights"], 12)
    assert weights.shape == (12, ids.shape[1], ids.shape[1])
    torch.testing.assert_close(weights, output.attentions[0][0], rtol=0, atol=1e-5)
    torch.testing.assert_close(ours, mixed[0], rtol=0, atol=1e-5)


def test_states_equal_transformers(lesson, library):
    ids = torch.tensor([lesson["tokenizer"](CAST["match"]).input_ids])
    with torch.inference_mode():
        wanted = library(input_ids=ids, output_hidden_states=True).hidden_states
    for ours, theirs in zip(lesson["states"](CAST["match"]), wanted, strict=True):
        torch.testing.assert_close(ours, theirs[0], rtol=1e-4, atol=1e-5)


def test_functions_agree_with_torch(lesson):
    query, key, value = torch.randn(3, 4, 7, 5, dtype=torch.float64)  # (H, S, d)
    bias = torch.randn(7, 7, dtype=torch.float64)
    wanted = torch.nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=bias)
    torch.testing.assert_close(lesson["attention"](query, key, value, bias)[0], wanted)
    assert torch.equal(lesson["causal_mask"](6), checks.causal_mask._reference(6))


def test_with_the_causal_mask_the_beginning_cannot_know_the_end(lesson):
    one, other = (lesson["states"](s["match"])[0] for s in (CAST, TWINS))
    for bias, blind in ((lesson["no_ahead"](len(one)), True), (0.0, False)):
        a, b = (lesson["multi_head"](x, lesson["weights"], 12, bias)[0] for x in (one, other))
        assert torch.equal(a[2], b[2]) is blind
