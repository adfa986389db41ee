"""What a student sees after getting unit 12 right: their own function on the real weights of MiniLM.

As in rewards.py: a few lines within two seconds, and never a download.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from bert_minimal import Bert, WordPiece
from bert_minimal.checkpoint import TABLE
from coursework.cast import CAST, NEXT
from coursework.checks.rewards import if_fetched, shown_on


class Real(NamedTuple):
    model: Bert
    tokenizer: WordPiece
    state: dict[str, Tensor]  # the file's tensors, under the file's names


@functools.cache
def real() -> Real | None:
    """MiniLM in our model, and as its file has it; None if it has not been fetched before."""
    from safetensors.torch import load_file

    cache = if_fetched("minilm/model.safetensors")
    if cache is None:
        return None
    folder = cache / "minilm"
    state = load_file(folder / "model.safetensors")
    return Real(Bert.from_pretrained(folder), WordPiece.from_pretrained(folder), state)


def plain_table() -> list[list[Any]]:
    """The course's table of names without its parts and its short form for weight and bias: a plain encoder's."""
    rows = []
    for part, ours, *theirs in TABLE:
        for kind in ("weight", "bias") if "*" in ours else ("",):
            if part in ("embeddings", "layers", "pooler"):
                ours_, *theirs_ = (name.removeprefix("bert.").replace("*", kind) for name in (ours, *theirs))
                rows.append([ours_, theirs_])
    return rows


def pair_of_texts(found: Real) -> dict[str, Tensor]:
    encoded = found.tokenizer([CAST["seal"], CAST["plot"]], [NEXT["seal"], NEXT["plot"]], padding=True)
    return {name: torch.as_tensor(encoded[name]) for name in ("input_ids", "token_type_ids", "attention_mask")}


@shown_on(real)
def a_real_file_in_our_names(translate_names: Callable, found: Real) -> None:
    state = {name: tensor for name, tensor in found.state.items() if not name.endswith("position_ids")}
    ours = translate_names(state, plain_table(), 6)
    model = Bert(found.model.config).eval()
    model.load_state_dict(ours)
    inputs = pair_of_texts(found)
    off = (model(**inputs).last_hidden_state - found.model(**inputs).last_hidden_state).abs().max()
    print("  What this made possible: MiniLM's file, under our names, by your function:")
    print(f"    {len(state)} tensors became {len(ours)} parameters, {sum(x.numel() for x in ours.values()):,} numbers")
    print(f"    the model with them differs from the course's own loading by {float(off):.0e}")


@shown_on(real)
def a_planted_divergence(first_divergence: Callable, found: Real) -> None:
    inputs = pair_of_texts(found)
    names = ["embeddings", *(f"layer {i}" for i in range(6))]
    theirs = found.model(**inputs, output_hidden_states=True).hidden_states
    bias = found.model.layers[3].norm_bias
    right = bias.detach().clone()
    bias.zero_()
    mine = found.model(**inputs, output_hidden_states=True).hidden_states
    bias.copy_(right)
    two = (dict(zip(names, states, strict=True)) for states in (mine, theirs))
    name, kind = first_divergence(*two, inputs["attention_mask"])
    print("  What this made possible: we took one bias out of MiniLM's layer 3 and asked your function.")
    print(f"    It says: {kind}, first in {name}. The layers after it differ, too, and are not to blame.")


@shown_on(real)
def widest_and_narrowest(attention_entropy: Callable, found: Real) -> None:
    inputs = pair_of_texts(found)
    attentions = found.model(**inputs, output_attentions=True).attentions
    entropy = torch.stack([attention_entropy(a, inputs["attention_mask"]) for a in attentions])  # (L, H)
    print("  MiniLM's 72 heads on two pairs of sentences, by your function (exp of the entropy, a number of tokens):")
    for word, place in (("widest", int(entropy.argmax())), ("narrowest", int(entropy.argmin()))):
        layer, head = divmod(place, entropy.shape[1])
        tokens = float(entropy[layer, head].exp())
        print(f"    the {word} is head {head} of layer {layer}: it looks at {tokens:.1f} tokens")


@shown_on(real)
def four_heads(head_jobs: Callable, found: Real) -> None:
    inputs = pair_of_texts(found)
    attentions = found.model(**inputs, output_attentions=True).attentions
    sep = found.tokenizer.pieces.index("[SEP]")
    each = [head_jobs(a, inputs["input_ids"], inputs["attention_mask"], sep) for a in attentions]
    print("  The best of MiniLM's 72 heads for each job, by your function:")
    for job in ("next", "previous", "sep", "broadcast"):
        scores = torch.stack([jobs[job] for jobs in each])
        layer, head = divmod(int(scores.argmax()), scores.shape[1])
        print(f"    {job:<10} head {head:>2} of layer {layer}: {float(scores.max()):.0%}")
