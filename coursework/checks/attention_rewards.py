"""What a student sees after getting unit 01 right: their own function in MiniLM's first layer (see rewards.py)."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from coursework.cast import CAST
from coursework.checks.rewards import if_fetched, shown_on

SENTENCE = CAST["seal"]


class FirstLayer(NamedTuple):
    """A sentence at the door of MiniLM's first layer, and that layer's attention weights."""

    tokens: list[str]
    hidden: torch.Tensor  # (1, S, 384)
    weights: dict[str, torch.Tensor]  # "query.weight", "query.bias", … as in exercise 01.6
    heads: int
    expected: torch.Tensor  # (1, S, 384), what the model's own attention gives


@functools.cache
def first_layer() -> FirstLayer | None:
    """MiniLM's first layer, or None if it has not been fetched before."""
    from bert_minimal import Bert, WordPiece
    from bert_minimal.attention import multi_head_attention

    cache = if_fetched("minilm/model.safetensors")
    if cache is None:
        return None
    folder = cache / "minilm"
    words = WordPiece.from_pretrained(folder)
    model: Any = Bert.from_pretrained(folder)
    ids = torch.tensor([words(SENTENCE).input_ids])
    layer = model.layers[0]
    weights = {}
    for kind, stacked in (("weight", layer.qkv_weight), ("bias", layer.qkv_bias)):
        names = (f"query.{kind}", f"key.{kind}", f"value.{kind}")
        weights |= dict(zip(names, stacked.chunk(3), strict=True))
    weights |= {"output.weight": layer.attention_weight, "output.bias": layer.attention_bias}
    with torch.no_grad():
        hidden = model.embeddings(ids, torch.zeros_like(ids), torch.arange(ids.size(1))[None])
        tensors = (layer.qkv_weight, layer.qkv_bias, layer.attention_weight, layer.attention_bias)
        expected = multi_head_attention(hidden, *tensors, layer.num_heads)[0]
    weights = {name: weight.detach() for name, weight in weights.items()}
    return FirstLayer([words.pieces[i] for i in ids[0].tolist()], hidden, weights, layer.num_heads, expected)


# ---------------------------------------------------------------- unit 01


def spread_of_scores(function: Callable) -> None:
    """01.1: the division keeps the spread at 1, whatever the width."""
    print("  What this made possible: scores of one size at every width. The spread of random ones, by your function:")
    for size in (16, 256):
        query, key = torch.randn(2, 1, 1, 200, size)
        spread, raw = function(query, key).std().item(), (query @ key.mT).std().item()
        print(f"    d = {size:<4} {spread:5.2f}   (without your division {raw:5.2f})")


@shown_on(first_layer)
def padding_gets_nothing(function: Callable, layer: FirstLayer) -> None:
    """01.2: a real head with five padding tokens behind the sentence."""
    tokens = [*layer.tokens, *["[PAD]"] * 5]
    hidden = torch.cat([layer.hidden, torch.ones(1, 5, layer.hidden.size(2))], dim=1)
    query, key = (_head(layer, name, hidden, 0) for name in ("query", "key"))
    scores = query @ key.mT / query.size(-1) ** 0.5  # (1, 1, S + 5, S + 5)
    mask = torch.tensor([[token != "[PAD]" for token in tokens]]).long()
    print("  What this made possible: texts of different lengths in one batch. In a real head of MiniLM,")
    for name, weights in {"without": scores.softmax(-1), "with": (scores + function(mask)).softmax(-1)}.items():
        share = weights[0, 0, : len(layer.tokens), len(layer.tokens) :].sum(-1).mean().item()
        print(f"    {name:>7} your bias five [PAD] tokens get {share:6.1%} of the attention")


@shown_on(first_layer)
def what_the_seal_looks_at(function: Callable, layer: FirstLayer) -> None:
    """01.3: with the identity as value the context is the weights themselves."""
    query, key = (_head(layer, name, layer.hidden, 0) for name in ("query", "key"))
    weights = function(query, key, torch.eye(len(layer.tokens))[None, None])[0, 0]  # (S, S)
    best = weights[2].topk(3)  # the row of the first "seal"
    looks = ", ".join(f"“{layer.tokens[i]}” {w:.2f}" for w, i in zip(*best, strict=True))
    print(f"  What this made possible: words that listen. “{SENTENCE}”")
    print(f"    In a real head of MiniLM, through your function, the first “seal” looks at {looks}.")


@shown_on(first_layer)
def twelve_heads(function: Callable, layer: FirstLayer) -> None:
    """01.4: real vectors of a sentence, divided among the heads."""
    shape, split = tuple(layer.hidden.shape), tuple(function(layer.hidden, layer.heads).shape)
    print(f"  What this made possible: {layer.heads} heads that look for different things.")
    print(f"    A sentence in MiniLM: {shape} becomes {split}.")


@shown_on(first_layer)
def nothing_is_lost(function: Callable, layer: FirstLayer) -> None:
    """01.5: splitting and merging real vectors gives them back."""
    _, length, width = layer.hidden.shape
    split = layer.hidden.unflatten(2, (layer.heads, width // layer.heads)).movedim(2, 1)
    same = torch.equal(function(split), layer.hidden)
    print("  What this made possible: one vector a token again, for the output projection.")
    print(f"    {length} real vectors of {width} numbers, split and merged by you: the same to the last bit? {same}")


@shown_on(first_layer)
def first_layer_of_minilm(function: Callable, layer: FirstLayer) -> None:
    """01.6: the student's attention in place of the model's."""
    mask = torch.ones(layer.hidden.shape[:2], dtype=torch.int64)
    apart = (function(layer.hidden, layer.weights, layer.heads, mask) - layer.expected).abs().max().item()
    print("  What this made possible: the first step of a real BERT is now yours.")
    print(f"    “{SENTENCE}” through MiniLM's first attention, {layer.heads} heads, 384 wide:")
    print(f"    your numbers and the model's differ by {f'{apart:.0e} at most' if apart else 'nothing'}.")


def a_sentence_under_the_mask(function: Callable) -> None:
    """01.7: who may look at whom, drawn in characters."""
    words = CAST["match"].rstrip(".").split()
    print("  What this made possible: GPT. BERT would have a full square here:")
    for word, row in zip(words, function(len(words)).tolist(), strict=True):
        print(f"    {word:>7}  {' '.join('■' if may else '·' for may in row)}")


def _head(layer: FirstLayer, name: str, hidden: torch.Tensor, head: int) -> torch.Tensor:
    """One head's query or key: (1, 1, S, d)."""
    size = hidden.size(2) // layer.heads
    rows = slice(head * size, (head + 1) * size)
    return (hidden @ layer.weights[f"{name}.weight"][rows].T + layer.weights[f"{name}.bias"][rows])[:, None]
