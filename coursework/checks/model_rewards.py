"""What a student sees after getting unit 06 right: their own function in the place of a part of MiniLM.

As in rewards.py: a few lines within two seconds, and never a download.
"""

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import torch

from bert_minimal.config import PRESETS
from coursework.cast import CAST, NEXT
from coursework.checks.rewards import if_fetched, shown_on

if TYPE_CHECKING:
    from bert_minimal.model import Bert
    from bert_minimal.wordpiece import WordPiece


class Real(NamedTuple):
    tokenizer: "WordPiece"
    model: "Bert"
    stored: dict[str, torch.Tensor]  # as in the file, under the library's names
    layers: list[dict[str, torch.Tensor]]  # each layer's weights under the names of exercise 06.2
    states: tuple[torch.Tensor, ...]  # 7 of (1, S, 384): the seal's sentence on its way up


@functools.cache
def real() -> Real | None:
    """MiniLM, or None if it has not been fetched before."""
    from safetensors.torch import load_file

    from bert_minimal.model import Bert
    from bert_minimal.wordpiece import WordPiece
    from coursework.checks.model import OURS

    cache = if_fetched("minilm/model.safetensors")
    if cache is None:
        return None
    folder = cache / "minilm"
    tokenizer, model = WordPiece.from_pretrained(folder), Bert.from_pretrained(folder)
    stored = load_file(folder / "model.safetensors")
    layers = [
        {f"{ours}.{kind}": stored[f"encoder.layer.{i}.{theirs}.{kind}"]
         for ours, theirs in OURS.items() for kind in ("weight", "bias")}
        for i in range(len(model.layers))
    ]  # fmt: skip
    ids = torch.tensor([tokenizer(CAST["seal"]).input_ids])
    with torch.no_grad():
        states = model(input_ids=ids, output_hidden_states=True).hidden_states
    return Real(tokenizer, model, stored, layers, states)


def _apart(a: torch.Tensor, b: torch.Tensor) -> str:
    off = float((a - b).abs().max())
    return f"{off:.0e}" if off else "0"


@shown_on(real)
def what_an_inner_feature_waits_for(feed_forward: Callable, minilm: Real) -> None:
    weights, x = minilm.layers[0], minilm.states[0][0]  # (S, 384)
    layer = minilm.model.layers[0]
    inner = x @ weights["up.weight"].T + weights["up.bias"]
    theirs = torch.nn.functional.gelu(inner) @ layer.down_weight.T + layer.down_bias
    awake = int((inner[2] > 0).sum())
    print("  What this made possible: two thirds of every layer's numbers now do their work.")
    print(f"    MiniLM's first feed-forward through your function: off by {_apart(feed_forward(x, weights), theirs)}.")
    print(f"    Of its {inner.size(1)} inner features, “seal” is let through by {awake}.")


@shown_on(real)
def six_layers_of_minilm(encoder_layer: Callable, minilm: Real) -> None:
    x = minilm.states[0]
    print("  What this made possible: the whole way up. Your layer, six times, with MiniLM's weights:")
    for i, weights in enumerate(minilm.layers):
        x = encoder_layer(x, weights, 12)
        if i % 2:
            print(f"    after layer {i + 1} your numbers and the model's differ by {_apart(x, minilm.states[i + 1])}")


@shown_on(real)
def a_stack_that_holds_minilm(encoder: Callable, minilm: Real) -> None:
    layers = iter(minilm.model.layers)

    class Layer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inside = next(layers)

        def forward(self, hidden, attention_mask=None):
            mask = torch.ones(hidden.shape[:2]) if attention_mask is None else attention_mask
            return self.inside.by_definition(hidden, mask)[0]

    stack = encoder(Layer, len(minilm.layers)).eval()
    states = stack(minilm.states[0], None, all_states=True)
    numbers = sum(p.numel() for p in stack.parameters())
    print("  What this made possible: a model that an optimizer can see.")
    print(f"    Your stack holds MiniLM's six layers: {numbers:,} parameters, all found.")
    print(f"    Its last state is off by {_apart(states[-1], minilm.states[-1])}.")


@shown_on(real)
def pooled_by_minilm(pooler: Callable, minilm: Real) -> None:
    weights = {"weight": minilm.stored["pooler.dense.weight"], "bias": minilm.stored["pooler.dense.bias"]}
    ids = torch.tensor([minilm.tokenizer(CAST["seal"]).input_ids])
    theirs, mine = minilm.model(input_ids=ids).pooler_output, pooler(minilm.states[-1], weights)
    print("  What this made possible: one vector for a whole text.")
    print(f"    “{CAST['seal']}”: {mine.size(1)} numbers between {mine.min():.2f} and {mine.max():.2f},")
    print(f"    off from MiniLM's by {_apart(mine, theirs)}.")


def sizes_of_the_family(count_parameters: Callable) -> None:
    print("  What this made possible: knowing a model's size before you download it.")
    for name, (layers, width) in PRESETS.items():
        sizes = {"vocab_size": 30522, "hidden_size": width, "num_hidden_layers": layers}
        sizes |= {"num_attention_heads": width // 64, "intermediate_size": 4 * width}
        count = count_parameters(**sizes, max_position_embeddings=512, type_vocab_size=2)
        print(f"    BERT-{name:<7} {layers:2} layers, {width:4} wide: {count:>11,}")


@shown_on(real)
def minilm_by_your_names(load_weights: Callable, minilm: Real) -> None:
    wanted = [(name, name.replace("encoder.layer", "layers"), tuple(tensor.shape))
              for name, tensor in minilm.stored.items() if not name.endswith("position_ids")]  # fmt: skip
    loaded = load_weights(minilm.stored, wanted)
    numbers = sum(tensor.numel() for tensor in loaded.values())
    print("  What this made possible: real weights, and none of them lost unseen.")
    print(f"    MiniLM's file: {len(loaded)} tensors, {numbers:,} numbers, all in their places.")
    name = "encoder.layer.3.output.dense.bias"
    try:
        load_weights({n: tensor for n, tensor in minilm.stored.items() if n != name}, wanted)
    except ValueError as error:
        print(f"    With one tensor taken out your function says: {str(error)[:110]}")


@shown_on(real)
def the_whole_of_minilm(bert: Callable, minilm: Real) -> None:
    rows = [minilm.tokenizer(CAST[name], NEXT[name]) for name in CAST]
    longest = max(len(row.input_ids) for row in rows)
    ids, segments, mask = (
        torch.tensor([row[field] + [0] * (longest - len(row[field])) for row in rows])
        for field in ("input_ids", "token_type_ids", "attention_mask")
    )
    weights = {name: tensor for name, tensor in minilm.stored.items() if not name.endswith("position_ids")}
    states, pooled = bert(ids, segments, mask, weights, 12)
    theirs = minilm.model(input_ids=ids, token_type_ids=segments, attention_mask=mask)
    print("  What this made possible: BERT. Six pairs of sentences through your function, with real weights:")
    print(f"    the states of {int(mask.sum())} tokens are off by ", end="")
    print(f"{_apart(states[mask == 1], theirs.last_hidden_state[mask == 1])}, ", end="")
    print(f"the pooled vectors by {_apart(pooled, theirs.pooler_output)}.")
    print("    Now: python -m coursework capstone puts together what you wrote in units 01 to 06.")
