"""Right answers of unit 01 that differ in structure from the reference: each must get full marks."""

import math

import torch
import torch.nn.functional as F

from coursework.checks.attention import (
    attention_scores,
    causal_mask,
    mask_to_bias,
    merge_heads,
    multi_head_attention,
    scaled_dot_product_attention,
    split_heads,
)

# ---------------------------------------------------------------- 01.1 attention scores


@attention_scores.alternative
def einsum(query, key):
    return torch.einsum("bhid,bhjd->bhij", query, key) / query.size(-1) ** 0.5


@attention_scores.alternative
def loops_over_batch_and_heads(query, key):
    rows = [[q @ k.T * q.size(-1) ** -0.5 for q, k in zip(*pair, strict=True)] for pair in zip(query, key, strict=True)]
    return torch.stack([torch.stack(row) for row in rows])


@attention_scores.alternative
def baddbmm_with_alpha(query, key):
    batch, heads, length, size = query.shape
    empty = torch.zeros(1, device=query.device, dtype=query.dtype)
    flat = torch.baddbmm(
        empty, query.flatten(0, 1), key.flatten(0, 1).transpose(1, 2), beta=0, alpha=1 / math.sqrt(size)
    )
    return flat.view(batch, heads, length, length)


@attention_scores.alternative
def scales_both_by_the_fourth_root(query, key):
    root = query.size(-1) ** 0.25  # keeps float16 from overflowing
    return torch.matmul(query / root, (key / root).transpose(2, 3))


# ---------------------------------------------------------------- 01.2 mask to bias


@mask_to_bias.alternative
def arithmetic_with_ten_thousand(attention_mask, dtype=torch.float32):
    return (1.0 - attention_mask.unsqueeze(1).unsqueeze(2).to(dtype)) * -10000.0


@mask_to_bias.alternative
def where_with_room_above_the_lowest_number(attention_mask, dtype=torch.float32):
    low = torch.full((), 0.9 * torch.finfo(dtype).min, dtype=dtype, device=attention_mask.device)
    return torch.where(attention_mask[:, None, None, :].bool(), torch.zeros_like(low), low)


@mask_to_bias.alternative
def masked_fill(attention_mask, dtype=torch.float32):
    bias = torch.zeros(attention_mask.shape, dtype=dtype, device=attention_mask.device)
    return bias.masked_fill(attention_mask.logical_not(), -3e4).reshape(len(attention_mask), 1, 1, -1)


@mask_to_bias.alternative
def clamped_logarithm(attention_mask, dtype=torch.float32):
    return attention_mask.double().log().clamp(min=-1e4).to(dtype)[:, None, None]


@mask_to_bias.alternative
def two_numbers_looked_up(attention_mask, dtype=torch.float32):
    return torch.tensor([-5e4, 0.0], dtype=dtype, device=attention_mask.device)[attention_mask][:, None, None, :]


# ---------------------------------------------------------------- 01.3 scaled dot-product attention


@scaled_dot_product_attention.alternative
def matmul_and_softmax(query, key, value, bias=None, dropout_p=0.0, training=False):
    scores = torch.matmul(query, key.transpose(-1, -2)).div(math.sqrt(query.shape[-1]))
    weights = torch.softmax(scores if bias is None else scores + bias, dim=-1)
    return torch.matmul(torch.nn.functional.dropout(weights, p=dropout_p, training=training), value)


@scaled_dot_product_attention.alternative
def one_query_at_a_time(query, key, value, bias=None, dropout_p=0.0, training=False):
    batch, heads, length, size = query.shape
    bias = query.new_zeros(()) if bias is None else bias
    bias = bias.expand(batch, heads, length, length)
    context = torch.zeros_like(query)
    for i in range(length):
        scores = (query[:, :, i : i + 1] * key).sum(-1) * size**-0.5 + bias[:, :, i]
        weights = F.dropout(F.softmax(scores, dim=-1), dropout_p, training)
        context[:, :, i] = (weights.unsqueeze(-1) * value).sum(2)
    return context


@scaled_dot_product_attention.alternative
def online_softmax_over_keys(query, key, value, bias=None, dropout_p=0.0, training=False):
    """Like flash attention: walks over the keys once and keeps a running maximum, sum and context."""
    batch, heads, length, size = query.shape
    top = query.new_full((batch, heads, length, 1), -math.inf)
    total, context = torch.zeros_like(top), torch.zeros_like(query)
    for j in range(length):
        score = (query * key[:, :, j : j + 1]).sum(-1, keepdim=True) / math.sqrt(size)
        if bias is not None:
            score = score + bias[..., j : j + 1]
        new_top = torch.maximum(top, score)
        shrink, weight = (top - new_top).exp(), (score - new_top).exp()
        total = total * shrink + weight
        context = context * shrink + F.dropout(weight, dropout_p, training) * value[:, :, j : j + 1]
        top = new_top
    return context / total


@scaled_dot_product_attention.alternative
def bmm_and_own_dropout(query, key, value, bias=None, dropout_p=0.0, training=False):
    batch, heads, length, size = query.shape
    scores = torch.bmm(query.flatten(0, 1) / size**0.5, key.flatten(0, 1).mT).view(batch, heads, length, length)
    scores = scores if bias is None else bias + scores
    weights = (scores - scores.logsumexp(-1, keepdim=True)).exp()
    if training and dropout_p > 0:
        kept = torch.rand_like(weights) >= dropout_p
        weights = torch.where(kept, weights / max(1 - dropout_p, 1e-9), 0.0)
    return torch.bmm(weights.flatten(0, 1), value.flatten(0, 1)).view_as(value)


# ---------------------------------------------------------------- 01.4 split heads, 01.5 merge heads


@split_heads.alternative
def view_and_transpose(x, num_heads):
    batch, length, width = x.shape
    return x.view(batch, length, num_heads, width // num_heads).transpose(1, 2)


@split_heads.alternative
def chunks_stacked(x, num_heads):
    return torch.stack(x.chunk(num_heads, dim=-1), dim=1)


@split_heads.alternative
def copied_head_by_head(x, num_heads):
    batch, length, width = x.shape
    size = width // num_heads
    out = x.new_empty(batch, num_heads, length, size)
    for h in range(num_heads):
        out[:, h] = x[..., h * size : (h + 1) * size]
    return out


@split_heads.alternative
def strided(x, num_heads):
    x = x.contiguous()
    batch, length, width = x.shape
    size = width // num_heads
    return x.as_strided((batch, num_heads, length, size), (length * width, size, width, 1))


@merge_heads.alternative
def transpose_and_reshape(x):
    return x.transpose(1, 2).reshape(x.size(0), x.size(2), -1)


@merge_heads.alternative
def contiguous_view(x):
    batch, heads, length, size = x.shape
    return x.permute(0, 2, 1, 3).contiguous().view(batch, length, heads * size)


@merge_heads.alternative
def concatenated(x):
    return torch.cat(x.unbind(1), dim=-1)


@merge_heads.alternative
def einsum_with_a_table_of_places(x):
    heads, size = x.size(1), x.size(3)
    place = torch.eye(heads * size, dtype=x.dtype, device=x.device).view(heads, size, heads * size)
    return torch.einsum("bhsd,hdf->bsf", x, place)


# ---------------------------------------------------------------- 01.6 multi-head attention


def _fused(weights):
    names = ("query", "key", "value")
    return [torch.cat([weights[f"{name}.{kind}"] for name in names]) for kind in ("weight", "bias")]


@multi_head_attention.alternative
def fused_projection_and_library_kernel(hidden, weights, num_heads, attention_mask=None):
    query, key, value = F.linear(hidden, *_fused(weights)).unflatten(2, (3, num_heads, -1)).permute(2, 0, 3, 1, 4)
    mask = None if attention_mask is None else attention_mask[:, None, None, :].bool()
    context = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
    return F.linear(context.transpose(1, 2).flatten(2), weights["output.weight"], weights["output.bias"])


@multi_head_attention.alternative
def library_multi_head(hidden, weights, num_heads, attention_mask=None):
    x = hidden.transpose(0, 1)  # it wants (S, B, D)
    in_weight, in_bias = _fused(weights)
    out, _ = F.multi_head_attention_forward(
        x, x, x, hidden.size(2), num_heads, in_weight, in_bias, None, None, False, 0.0,
        weights["output.weight"], weights["output.bias"], training=False,
        key_padding_mask=None if attention_mask is None else attention_mask == 0,
    )  # fmt: skip
    return out.transpose(0, 1)


@multi_head_attention.alternative
def einsum_with_weights_by_head(hidden, weights, num_heads, attention_mask=None):
    def project(name):
        weight = weights[f"{name}.weight"].unflatten(0, (num_heads, -1))  # (H, d, D)
        return torch.einsum("bsf,hdf->bhsd", hidden, weight) + weights[f"{name}.bias"].view(1, num_heads, 1, -1)

    scores = torch.einsum("bhid,bhjd->bhij", project("query"), project("key"))
    scores = scores / math.sqrt(hidden.size(2) / num_heads)
    if attention_mask is not None:
        scores = torch.where(attention_mask[:, None, None, :] == 1, scores, -1e4)
    context = torch.einsum("bhij,bhjd->bhid", scores.softmax(-1), project("value"))
    mixed = torch.einsum("bhsd,fhd->bsf", context, weights["output.weight"].unflatten(1, (num_heads, -1)))
    return mixed + weights["output.bias"]


@multi_head_attention.alternative
def sentence_by_sentence_without_padding(hidden, weights, num_heads, attention_mask=None):
    """Drops the padding, so that no mask is needed, and leaves zeros at padded places."""
    out = torch.zeros_like(hidden)
    for b, sentence in enumerate(hidden):
        real = slice(None) if attention_mask is None else attention_mask[b].bool()
        query, key, value = (
            (sentence[real] @ weights[f"{n}.weight"].T + weights[f"{n}.bias"]).chunk(num_heads, dim=1)
            for n in ("query", "key", "value")
        )
        found = [(q @ k.T / q.size(1) ** 0.5).softmax(1) @ v for q, k, v in zip(query, key, value, strict=True)]
        out[b, real] = torch.cat(found, 1) @ weights["output.weight"].T + weights["output.bias"]
    return out


@multi_head_attention.alternative
def without_the_keys_bias(hidden, weights, num_heads, attention_mask=None):
    """The key's bias adds the same to all scores of a row, and softmax does not see it."""
    return fused_projection_and_library_kernel(
        hidden, weights | {"key.bias": torch.zeros_like(weights["key.bias"])}, num_heads, attention_mask
    )


# ---------------------------------------------------------------- 01.7 causal mask


@causal_mask.alternative
def lower_triangle(length):
    return torch.tril(torch.ones(length, length, dtype=torch.bool))


@causal_mask.alternative
def positions_compared(length):
    position = torch.arange(length)
    return position.unsqueeze(1) >= position


@causal_mask.alternative
def nested_lists(length):
    return torch.tensor([[j <= i for j in range(length)] for i in range(length)])


@causal_mask.alternative
def counted_up(length):
    return torch.eye(length).cumsum(0).T.flip(0, 1).bool() & torch.eye(length).cumsum(0).bool()


@causal_mask.alternative
def not_above_the_diagonal(length):
    return ~torch.ones(length, length).triu(diagonal=1).bool()
