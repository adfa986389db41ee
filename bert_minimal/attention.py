"""Attention as it is defined: padded sequences, every score written out, one function a step.

This is the text to read and the yardstick. `stream.py` computes the same context vectors faster, and the
tests hold the two equal in value and gradient. The formulas are section 3.2 of Vaswani et al. 2017
("Attention is all you need"), which section 3 of Devlin et al. 2019 takes over unchanged for BERT.
Shapes use the letters listed in `config.py`.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor


def split_heads(x: Tensor, num_heads: int) -> Tensor:
    """(B, S, D) -> (B, H, S, d): head h gets the h-th slice of d = D / H neighbouring features.

    A plain view as (B, H, S, d) would mix tokens instead: the features lie side by side in memory, so
    they are split first and the axes swapped after.
    """
    batch, length, width = x.shape
    if width % num_heads:
        raise ValueError(f"{width} features do not split into {num_heads} equal heads")
    return x.view(batch, length, num_heads, width // num_heads).transpose(1, 2)


def merge_heads(x: Tensor) -> Tensor:
    """(B, H, S, d) -> (B, S, D), undoing `split_heads`."""
    return x.transpose(1, 2).flatten(2)  # flatten copies here: after a transpose the memory is out of order


def attention_scores(query: Tensor, key: Tensor) -> Tensor:
    """How well each query fits each key: QKᵀ / √d (Vaswani et al., equation 1).

    query (B, H, Sq, d), key (B, H, Sk, d) -> scores (B, H, Sq, Sk). A dot product of d independent numbers
    of variance 1 has variance d; dividing by √d keeps the softmax out of its flat ends.
    """
    return query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])


def very_negative(dtype: torch.dtype) -> float:
    """A number that softmax turns into weight 0, in any precision.

    Half the lowest finite value: −1e9 is −inf in float16, and the lowest value itself becomes −inf as soon
    as a negative score is added. A row of nothing but −inf is NaN after softmax; a row of nothing but this
    number is not.
    """
    return torch.finfo(dtype).min / 2


def mask_to_bias(attention_mask: Tensor, dtype: torch.dtype) -> Tensor:
    """What to add to the scores so that nobody looks at padding (Devlin et al.'s code; not in the paper).

    attention_mask (B, S), 1 = real token, 0 = padding -> (B, 1, 1, S), 0 where real and very negative where
    padded. The two axes of length 1 repeat the row for every head and every query.
    """
    padded = attention_mask[:, None, None, :] == 0
    return torch.zeros(padded.shape, dtype=dtype, device=padded.device).masked_fill(padded, very_negative(dtype))


def causal_mask(length: int, device: torch.device | None = None) -> Tensor:
    """(S, S) bool, True where the query (row) may look at the key (column): itself and what came before.

    GPT's mask, for comparison (Devlin et al., A.4 and figure 3). BERT never uses it: each
    token looks to both sides.
    """
    return torch.ones(length, length, dtype=torch.bool, device=device).tril()


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    bias: Tensor | None = None,
    dropout_p: float = 0.0,
    training: bool = False,
) -> tuple[Tensor, Tensor]:
    """softmax(QKᵀ / √d + bias) V (Vaswani et al., equation 1).

    query, key, value (B, H, S, d), bias anything that broadcasts to (B, H, S, S)
    -> context (B, H, S, d) and weights (B, H, S, S).

    The returned weights are those before dropout, so each row sums to 1. Dropout removes whole weights,
    that is, hides tokens from one query (Devlin et al., A.2: dropout on all layers; the place is that of
    their released code).
    """
    scores = attention_scores(query, key)
    if bias is not None:
        scores = scores + bias
    weights = scores.softmax(dim=-1)  # over the keys: each query shares out a weight of 1
    context = F.dropout(weights, dropout_p, training) @ value
    return context, weights


def multi_head_attention(
    x: Tensor,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    output_weight: Tensor,
    output_bias: Tensor,
    num_heads: int,
    attention_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    training: bool = False,
) -> tuple[Tensor, Tensor]:
    """H heads side by side, then a mix of what they found (Vaswani et al., section 3.2.2).

    x (B, S, D); qkv_weight (3D, D) and qkv_bias (3D,): the query, key and value projections one below the
    other, so that one matrix product does the work of three; output_weight (D, D), output_bias (D,);
    attention_mask (B, S), 1 = real -> output (B, S, D) and weights (B, H, S, S).
    """
    query, key, value = F.linear(x, qkv_weight, qkv_bias).chunk(3, dim=-1)  # each (B, S, D)
    bias = None if attention_mask is None else mask_to_bias(attention_mask, x.dtype)
    context, weights = scaled_dot_product_attention(
        split_heads(query, num_heads),
        split_heads(key, num_heads),
        split_heads(value, num_heads),
        bias,
        dropout_p,
        training,
    )
    return F.linear(merge_heads(context), output_weight, output_bias), weights
