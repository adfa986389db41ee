"""Long documents: BERT has position vectors for 512 pieces, a film review may have two thousand.

Three ways to make it fit, as Sun et al. 2019 ("How to Fine-Tune BERT for Text Classification?", section 5.2)
compare them: keep the beginning; keep the beginning and the end; cut the whole text into windows, read each by
itself, and pool what BERT says of them. `room` is what the tokenizer's [CLS] and [SEP] leave free.
"""

from collections.abc import Sequence
from typing import TypeVar

import torch
from torch import Tensor

Piece = TypeVar("Piece")


def truncate(pieces: Sequence[Piece], room: int) -> list[Piece]:
    """The first `room` pieces."""
    return list(pieces[: at_least_one(room)])


def head_tail(pieces: Sequence[Piece], room: int, head: int | None = None) -> list[Piece]:
    """The first `head` pieces and the last room - head; everything if it fits.

    head=None: a quarter of the room. Sun et al. take 128 of 510 from the front.
    """
    at_least_one(room)
    head = room // 4 if head is None else head
    if not 0 <= head <= room:
        raise ValueError(f"head is {head}; of {room} pieces it can be 0 to {room}")
    if len(pieces) <= room:
        return list(pieces)
    return [*pieces[:head], *pieces[len(pieces) - (room - head) :]]


def windows(length: int, size: int, stride: int) -> list[tuple[int, int]]:
    """Where to cut `length` pieces: (start, end) of windows of at most `size`, each `stride` after the last.

    Together they hold every piece; the first that reaches the end is the last one, so none lies inside another.
    No piece at all makes one empty window. `stride` counts pieces between two starts, as doc_stride does in
    Google's code; in Hugging Face's tokenizers the word means the overlap, size - stride.
    """
    at_least_one(size)
    if not 1 <= stride <= size:
        raise ValueError(f"stride is {stride}; with windows of {size} it can be 1 to {size}, else pieces are skipped")
    last = max(0, -(-(length - size) // stride))  # number of the first window that reaches the end
    return [(k * stride, min(k * stride + size, length)) for k in range(last + 1)]


def pool(x: Tensor, document: Tensor, documents: int, how: str) -> Tensor:
    """One row a document from one row a window: x (W, K) -> (B, K), B = `documents`.

    document: (W,) int64, the number of the document that each window is from; each has at least one window.
    how: "mean", or "max" for the largest value of each column.
    """
    if how == "mean":
        sums = x.new_zeros(documents, x.shape[1]).index_add(0, document, x)
        return sums / torch.bincount(document, minlength=documents)[:, None].to(x.dtype)
    if how == "max":
        lowest = x.new_full((documents, x.shape[1]), -torch.inf)
        return lowest.scatter_reduce(0, document[:, None].expand_as(x), x, "amax")
    raise ValueError(f'how is "mean" or "max", not {how!r}')


def at_least_one(room: int) -> int:
    """The room itself. Raises ValueError if no piece fits into it."""
    if room < 1:
        raise ValueError(f"there is room for {room} pieces: max_length has to exceed the special tokens")
    return room
