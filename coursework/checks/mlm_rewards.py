"""What a student sees after getting unit 04 right: their own function at work on the course's own small BERT.

As in rewards.py: a few lines within two seconds, and never a download.
"""

import functools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import torch

from bert_minimal.train import data
from coursework.cast import CAST
from coursework.checks.rewards import shown_on

if TYPE_CHECKING:
    from bert_minimal.wordpiece import WordPiece

BLANKS = ("he opened the [MASK] and walked into the room .", "the captain and his crew sailed across the [MASK] .")
LINE = "the captain and his crew sailed across the sea ."


class Course(NamedTuple):
    tokenizer: "WordPiece"
    weights: dict[str, torch.Tensor]  # of the head, named as in exercise 04.3
    vectors: Callable[[str], torch.Tensor]  # a text -> (S, D), what the last layer says of each token


@functools.cache
def course() -> Course:
    """The package's own checkpoint."""
    from bert_minimal.heads import MaskedLM
    from bert_minimal.wordpiece import WordPiece

    folder = data.fetch("course")
    tokenizer, model = WordPiece.from_pretrained(folder), MaskedLM.from_pretrained(folder).eval()
    head = model.mlm
    weights = {"dense.weight": head.dense_weight, "dense.bias": head.dense_bias, "norm.weight": head.norm_weight,
               "norm.bias": head.norm_bias, "word": model.bert.embeddings.word,
               "decoder.bias": head.decoder_bias}  # fmt: skip

    def vectors(text: str) -> torch.Tensor:
        ids = torch.tensor([tokenizer(text).input_ids])
        with torch.no_grad():
            return model.bert(input_ids=ids).last_hidden_state[0]

    return Course(tokenizer, {name: tensor.detach() for name, tensor in weights.items()}, vectors)


@shown_on(course)
def ten_times(select_positions: Callable, real: Course) -> None:
    print("  What this made possible: a new exercise from the same sentence, every time (█ is hidden).")
    ids = torch.tensor([real.tokenizer(CAST["match"]).input_ids])
    words = [real.tokenizer.pieces[i] for i in ids[0].tolist()]
    asked = 0
    for _ in range(6):
        chosen = select_positions(ids, list(real.tokenizer.special_ids), 0.15)[0].tolist()
        asked += sum(chosen)
        print("    " + " ".join("█" * len(word) if yes else word for word, yes in zip(words, chosen, strict=True)))
    ordinary = 6 * (len(words) - 2)
    print(f"    {asked} of {ordinary} words hidden, {asked / ordinary:.0%}: with so few words it varies.")


@shown_on(course)
def a_sentence_hidden(mask_tokens: Callable, real: Course) -> None:
    tokenizer = real.tokenizer
    ids = torch.tensor([tokenizer(CAST["bridge"]).input_ids])
    selected = torch.ones_like(ids, dtype=torch.bool)
    selected[0, [0, -1]] = False
    inputs, labels = mask_tokens(ids, selected, tokenizer.mask_id, len(tokenizer.pieces))
    print("  What this made possible: questions for a BERT. All words of a sentence selected, read and asked:")
    for name, row in (("reads", inputs[0]), ("asked", labels[0])):
        words = ["·" if i == -100 else tokenizer.pieces[i] for i in row.tolist()]
        print(f"    {name}  {' '.join(words)}")


@shown_on(course)
def a_blank_filled(mlm_head: Callable, real: Course) -> None:
    print("  What this made possible: the course's own BERT fills in blanks, through your head.")
    for text in BLANKS:
        place = real.tokenizer(text).input_ids.index(real.tokenizer.mask_id)
        chance, pieces = mlm_head(real.vectors(text)[place][None], real.weights)[0].softmax(-1).topk(4)
        guesses = [f"{real.tokenizer.pieces[i]} {p:.0%}" for i, p in zip(pieces.tolist(), chance.tolist(), strict=True)]
        print(f"    {text}\n      → {', '.join(guesses)}")


@shown_on(course)
def how_surprised(mlm_loss: Callable, real: Course) -> None:
    from coursework.checks.mlm import mlm_head

    ids = real.tokenizer(LINE).input_ids
    place = len(ids) - 3  # the last word, before the full stop
    labels = torch.full((1, len(ids)), -100)
    print("  What this made possible: one number for how well a model reads. The course's BERT, last word hidden:")
    logits = mlm_head._reference(real.vectors(LINE.replace("sea .", "[MASK] ."))[None], real.weights)
    for word in ("sea", "room", "spoon"):
        labels[0, place] = real.tokenizer(word).input_ids[1]
        loss = float(mlm_loss(logits, labels))
        print(
            f"    … sailed across the {word:<6} loss {loss:5.2f}: unsure as among {math.exp(loss):,.0f} equal choices"
        )
    print(f"    (Knowing nothing: ln {logits.size(-1)} = {math.log(logits.size(-1)):.2f}.)")


@shown_on(course)
def work_saved(gather_positions: Callable, real: Course) -> None:
    size, width = real.weights["word"].shape
    hidden = torch.stack([real.vectors(LINE)] * 2)
    places = torch.tensor([[1, 3], [2, 9]])
    found = gather_positions(hidden, places)
    same = torch.equal(found[1, 0], hidden[1, 2])
    print(f"  What this made possible: {'the head runs' if same else 'a head that runs'} "
          "only where something is asked.")  # fmt: skip
    every, some = (count * size * width / 1e9 for count in (64 * 128, 64 * 20))
    print(f"    64 texts of 128 tokens, 20 blanks each: {some:.1f} instead of {every:.1f} thousand million products; "
          f"{64 * 128 * size * 4 / 1e6:,.0f} MB of scores become {64 * 20 * size * 4 / 1e6:,.0f}.")  # fmt: skip
