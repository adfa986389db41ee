"""Unit 01: attention. B batch, H heads, S sequence, d head size, D = H·d hidden size."""

import math

import torch
import torch.nn.functional as F

from coursework.checks.engine import Answer, Call, Case, Exercise, Inputs, Part

LESSON = "01_attention"

# ---------------------------------------------------------------- 01.1 attention scores

attention_scores = Exercise(
    "01.1", "attention_scores", "attention scores",
    lesson=LESSON, section="Queries, keys and values", points=2, draw=True,
    parts=[Part("dot products"), Part("scale"), Part("gradient", kind="gradient")],
)  # fmt: skip


@attention_scores.reference
def _attention_scores(query, key):
    rows = [(query[:, :, i, None, :] * key).sum(-1) for i in range(query.size(2))]  # step: dot products
    scores = torch.stack(rows, dim=2)  # (B, H, S, S)  # step: dot products
    return scores / math.sqrt(query.size(3))  # step: scale


@attention_scores.cases
def _(new: Inputs):
    for shape in ((2, 3, 5, 7), (3, 4, 6, 11)):  # every size another number
        query, key = new.normal(*shape), new.normal(*shape)
        dots = torch.einsum("bhid,bhjd->bhij", query.double(), key.double())
        yield Case("dot products", (Call((query, key)),), holds=lambda a, dots=dots: _proportional(a, dots))
        yield Case("scale", (Call((query, key)),), "the scores are too large or too small (off by {off})")
    query, key, cotangent = new.normal(2, 3, 5, 7), new.normal(2, 3, 5, 7), new.normal(2, 3, 5, 5)
    yield Case("gradient", (Call((query, key), wrt=(0, 1), cotangents=(cotangent,)),))


def _proportional(answer: Answer, dots: torch.Tensor) -> str | None:
    """None if the answer is a positive multiple of the dot products."""
    got = answer.value.double()
    if not bool(got.isfinite().all()):
        return "the scores contain NaN or infinity"
    factor = (got * dots).sum() / (dots * dots).sum()
    if factor > 0 and float((got - factor * dots).abs().max()) < 1e-4 * float(got.abs().max()):
        return None
    if float((got - got.mT).abs().max()) == 0:
        return "score (i, j) equals score (j, i): each is not the dot product of query i with key j"
    return "score (i, j) is not a multiple of the dot product of query i with key j"


@attention_scores.mistake(
    "scaling by √D, the width of the whole model, instead of √d of one head",
    think="how many products are summed in one score?",
)
def scaled_by_model_width(query, key):
    return query @ key.transpose(-2, -1) / math.sqrt(query.size(1) * query.size(-1))


@attention_scores.mistake("scores that are not scaled at all", think="what happens to softmax when d grows?")
def not_scaled(query, key):
    return query @ key.transpose(-2, -1)


@attention_scores.mistake("dividing by d instead of √d", think="if variance grows with d, how does the spread grow?")
def divided_by_d(query, key):
    return query @ key.transpose(-2, -1) / query.size(-1)


@attention_scores.mistake(
    "query and key swapped: row i holds the scores of key i", think="whose question does row i answer?"
)
def query_and_key_swapped(query, key):
    return key @ query.transpose(-2, -1) / math.sqrt(query.size(-1))


@attention_scores.mistake("scaling by √S, the length", think="which length do the two vectors of a dot product have?")
def scaled_by_length(query, key):
    return query @ key.transpose(-2, -1) / math.sqrt(query.size(-2))


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


# ---------------------------------------------------------------- 01.3 scaled dot-product attention

scaled_dot_product_attention = Exercise(
    "01.3", "scaled_dot_product_attention", "scaled dot-product attention",
    lesson=LESSON, section="Masks", points=4, draw=True,
    parts=[Part("softmax"), Part("scores"), Part("scale"), Part("mask"), Part("weighted sum"),
           Part("padding", kind="invariant"), Part("gradient", kind="gradient"), Part("dropout")],
)  # fmt: skip


@scaled_dot_product_attention.reference
def _attention(query, key, value, bias=None, dropout_p=0.0, training=False):
    scores = torch.einsum("bhid,bhjd->bhij", query, key)  # step: scores
    scores = scores / math.sqrt(query.size(3))  # step: scale
    if bias is not None:
        scores = scores + bias  # step: mask
    weights = scores.exp() / scores.exp().sum(dim=3, keepdim=True)  # step: softmax
    weights = F.dropout(weights, dropout_p, training)  # step: dropout
    return torch.einsum("bhij,bhjd->bhid", weights, value)  # step: weighted sum
