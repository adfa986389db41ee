"""Attention without padding: the tokens of a batch laid end to end, one signature, three kernels.

A batch of sequences of lengths 3, 5 and 2 becomes N = 10 rows and `cu_seqlens = [0, 3, 8, 10]`, where each
sequence begins and the last one ends. Every step of BERT but attention treats tokens one by one and never
notices; attention must only look inside a sequence. Nothing is spent on padding: short texts in a batch of
mixed lengths cost what they weigh.

The kernels compute `attention.scaled_dot_product_attention`, and the tests hold each of them to it in value
and gradient. A stream obeys three rules: `cu_seqlens` runs from 0 to N exactly; no sequence is longer than
`max_seqlen` (a Python int); a sequence may be empty. So a loader that wants a fixed shape fills the tail of
the stream with [PAD] tokens as one or more sequences of their own, and the batch with empty ones.
"""

from itertools import groupby
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from .attention import very_negative

try:
    from torch.nn.attention.varlen import varlen_attn  # torch 2.10 and newer
except ImportError:
    varlen_attn = None  # type: ignore[assignment]


class Stream(NamedTuple):
    """What `Bert.stream` takes, as keywords: `model.stream(**stream._asdict())`."""

    input_ids: Tensor  # (N,)
    token_type_ids: Tensor  # (N,)
    position_ids: Tensor  # (N,)
    cu_seqlens: Tensor  # (B + 1,) int32
    max_seqlen: int


@torch.compiler.disable  # how many tokens there are is read back from the device
def pack(
    input_ids: Tensor, token_type_ids: Tensor, position_ids: Tensor, attention_mask: Tensor
) -> tuple[Stream, Tensor]:
    """Drop the padding: four (B, S) tensors -> the stream and `where` (N,), each token's place in B * S.

    A model compiled whole runs this part eagerly and compiles the rest.
    """
    where = attention_mask.flatten().nonzero().squeeze(1)
    lengths = attention_mask.bool().sum(dim=1)  # (B,)
    cu_seqlens = F.pad(lengths.cumsum(0), (1, 0)).to(torch.int32)
    stream = Stream(
        input_ids.flatten()[where],
        token_type_ids.flatten()[where],
        position_ids.flatten()[where],
        cu_seqlens,
        int(lengths.max()),
    )
    return stream, where


def unpack(x: Tensor, where: Tensor, batch: int, length: int, fill: float = 0.0) -> Tensor:
    """(N, …) -> (B, S, …), with `fill` where there was padding."""
    if len(where) == batch * length:
        return x.unflatten(0, (batch, length))
    filled = x.new_full((batch * length, *x.shape[1:]), fill)
    return filled.index_copy(0, where, x).unflatten(0, (batch, length))


def stream_attention(
    query: Tensor, key: Tensor, value: Tensor, cu_seqlens: Tensor, max_seqlen: int, dropout_p: float = 0.0
) -> Tensor:
    """Context vectors of a stream: query, key, value (N, H, d), cu_seqlens (B + 1,) -> (N, H, d).

    Takes the fastest kernel that can do what is asked. `dropout_p` acts whenever it is above 0: the caller
    passes 0 in eval mode.
    """
    flash = varlen_attn is not None and query.is_cuda and query.dtype in (torch.float16, torch.bfloat16)
    if flash and dropout_p == 0.0 and torch.cuda.get_device_properties(query.device).major >= 8:
        return by_flash(query, key, value, cu_seqlens, max_seqlen)
    if query.device.type == "cpu" and not torch.compiler.is_compiling():
        return by_runs(query, key, value, cu_seqlens, max_seqlen, dropout_p)
    return by_padding(query, key, value, cu_seqlens, max_seqlen, dropout_p)


def by_flash(query, key, value, cu_seqlens, max_seqlen) -> Tensor:
    """The kernel made for streams. Half precision, CUDA compute capability 8.0 and up, no dropout."""
    return varlen_attn(query, key, value, cu_seqlens, cu_seqlens, max_seqlen, max_seqlen)  # type: ignore[return-value]


def by_runs(query, key, value, cu_seqlens, max_seqlen, dropout_p=0.0) -> Tensor:
    """Sequence after sequence, neighbours of equal length together: fastest on a CPU.

    Measured there on 32 sequences of 5 to 66 tokens: 3.0 ms, against 4.5 ms with equal lengths gathered from
    all over the batch and 13 ms padded. When all have the same length this is one plain call on a view.
    """
    lengths = cu_seqlens.diff().tolist()
    runs = [(length, sum(1 for _ in run)) for length, run in groupby(lengths)]
    tokens = [length * count for length, count in runs]
    contexts = []
    for (length, count), *qkv in zip(runs, *(x.split(tokens) for x in (query, key, value)), strict=True):
        if length == 0:
            continue
        q, k, v = (x.unflatten(0, (count, length)).transpose(1, 2) for x in qkv)  # (count, H, length, d)
        context = F.scaled_dot_product_attention(q, k, v, dropout_p=dropout_p)
        contexts.append(context.transpose(1, 2).flatten(0, 1))
    return torch.cat(contexts) if len(contexts) > 1 else contexts[0]


def by_padding(query, key, value, cu_seqlens, max_seqlen, dropout_p=0.0) -> Tensor:
    """Back to (B, H, S, d) for the time of one call: older GPUs, older torch, attention dropout, float32.

    Reads nothing back from the device, so it compiles; each token's place in the padded batch is computed
    from `cu_seqlens` where that lies.
    """
    batch, tokens = len(cu_seqlens) - 1, len(query)
    token = torch.arange(tokens, device=query.device)
    sequence = torch.searchsorted(cu_seqlens[1:].contiguous(), token, right=True)  # ends at or before me
    place = sequence * max_seqlen + token - cu_seqlens[sequence]  # (N,), all different

    def pad(x: Tensor) -> Tensor:  # (N, H, d) -> (B, H, S, d)
        padded = x.new_zeros(batch * max_seqlen, *x.shape[1:]).index_copy(0, place, x)
        return padded.unflatten(0, (batch, max_seqlen)).transpose(1, 2)

    padding = torch.arange(max_seqlen, device=query.device) >= cu_seqlens.diff()[:, None]  # (B, S)
    bias = query.new_zeros(batch, 1, 1, max_seqlen).masked_fill(padding[:, None, None, :], very_negative(query.dtype))
    context = F.scaled_dot_product_attention(pad(query), pad(key), pad(value), attn_mask=bias, dropout_p=dropout_p)
    return context.transpose(1, 2).flatten(0, 1).index_select(0, place)
