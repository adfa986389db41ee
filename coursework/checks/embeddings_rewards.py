"""What a student sees after getting unit 02 right: their own function on MiniLM's tables and vocabulary.

As in rewards.py: a few lines within two seconds, and never a download.
"""

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import torch
import torch.nn.functional as F

from coursework.cast import CAST, NEXT
from coursework.checks.rewards import if_fetched, shown_on

if TYPE_CHECKING:
    from bert_minimal.wordpiece import WordPiece


class Tables(NamedTuple):
    tokenizer: "WordPiece"
    weights: dict[str, torch.Tensor]  # "word", "position", "segment", "norm.weight", "norm.bias" as in exercise 02.4
    pair: dict[str, list[int]]  # the first sentence of the cast and its continuation
    expected: torch.Tensor  # (1, S, 384), what the whole model feeds its first layer for the pair


@functools.cache
def tables() -> Tables | None:
    """MiniLM's, or None if it has not been fetched before."""
    from bert_minimal.model import Bert
    from bert_minimal.wordpiece import WordPiece

    cache = if_fetched("minilm/model.safetensors")
    if cache is None:
        return None
    folder = cache / "minilm"
    tokenizer, model = WordPiece.from_pretrained(folder), Bert.from_pretrained(folder)
    pair = tokenizer(CAST["seal"], NEXT["seal"])
    ids, segments = torch.tensor([pair.input_ids]), torch.tensor([pair.token_type_ids])
    with torch.no_grad():
        states = model(input_ids=ids, token_type_ids=segments, output_hidden_states=True).hidden_states
    e = model.embeddings
    weights = {"word": e.word, "position": e.position, "segment": e.segment, "norm.weight": e.norm_weight}
    weights = {name: table.detach() for name, table in (weights | {"norm.bias": e.norm_bias}).items()}
    return Tables(tokenizer, weights, pair, states[0])


@shown_on(tables)
def loudness(layer_norm: Callable, real: Tables) -> None:
    print("  What this made possible: vectors of one loudness. Spread of MiniLM's word vectors before and after yours:")
    one, zero = torch.ones(384), torch.zeros(384)
    for piece in ("[CLS]", "seal", "the", "[PAD]"):
        x = real.weights["word"][real.tokenizer.vocab[piece]]
        before, after = (float(v.std(correction=0)) for v in (x, layer_norm(x[None], one, zero)))
        print(f"    {piece:<6} {before:.3f} → {after:.3f}")


@shown_on(tables)
def a_real_pair(build_inputs: Callable, real: Tables) -> None:
    tokenizer = real.tokenizer
    a, b = (tokenizer(text)["input_ids"][1:-1] for text in (CAST["match"], NEXT["match"]))
    special = {"cls_id": tokenizer.cls_id, "sep_id": tokenizer.sep_id, "pad_id": tokenizer.pad_id}
    row = build_inputs(a, b, max_length=24, **special)
    theirs = tokenizer(CAST["match"], NEXT["match"], max_length=24, padding="max_length")
    print("  What this made possible: the input of a real BERT (below each token its segment, · for padding)")
    tokens = [tokenizer.pieces[i] for i in row["input_ids"]]
    marks = [str(s) if m else "·" for s, m in zip(row["token_type_ids"], row["attention_mask"], strict=True)]
    for start in (0, 12):
        for words in (tokens, marks):
            print("    " + " ".join(f"{word:<6}" for word in words[start : start + 12]).rstrip())
    same = sum(row[field] == theirs[field] for field in row)
    print(f"    {same} of your 3 rows equal those of the course's own tokenizer.")


@shown_on(tables)
def six_pairs(pad_batch: Callable, real: Tables) -> None:
    rows = [{k: v for k, v in real.tokenizer(CAST[name], NEXT[name]).items() if k != "offset_mapping"} for name in CAST]
    batch = pad_batch(rows, real.tokenizer.pad_id)
    count, (texts, longest) = int(batch["attention_mask"].sum()), tuple(batch["input_ids"].shape)
    print("  What this made possible: our six sentences with what comes next, in one call of a model.")
    print(f"    Your batch: {texts} × {longest} = {texts * longest} places for {count} tokens.", end="")
    print(f" Padded to 512 it would be {texts * 512:,}.")


@shown_on(tables)
def first_vectors(embeddings: Callable, real: Tables) -> None:
    ids, segments = torch.tensor([real.pair["input_ids"]]), torch.tensor([real.pair["token_type_ids"]])
    mine = embeddings(ids, segments, real.weights)
    print("  What this made possible: what goes into the first layer of a real BERT, by your own code.")
    off = float((mine - real.expected).abs().max())
    print(f"    “{CAST['seal']} {NEXT['seal']}”: {tuple(mine.shape)} numbers, off by at most {off:.0e}.")
    seals = [mine[0, i] for i, piece in enumerate(real.pair["input_ids"]) if piece == real.tokenizer.vocab["seal"]]
    cosine = float(F.cosine_similarity(*seals, dim=0))
    print(f"    The two “seal”s have cosine {cosine:.3f}: same word, other place. The layers can start from that.")
