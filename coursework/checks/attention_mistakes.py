"""What students really get wrong in unit 01, as code: each must be rejected and called by its name."""

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


@attention_scores.mistake(
    "scaling by √D, the width of the whole model, instead of √d of one head",
    think="how many products are summed in one score?",
)
def scaled_by_model_width(query, key):
    return query @ key.mT / math.sqrt(query.size(1) * query.size(-1))


@attention_scores.mistake("scores that are not scaled at all", think="what happens to softmax when d grows?")
def not_scaled(query, key):
    return query @ key.mT


@attention_scores.mistake("dividing by d instead of √d", think="if variance grows with d, how does the spread grow?")
def divided_by_d(query, key):
    return query @ key.mT / query.size(-1)


@attention_scores.mistake("multiplying by √d instead of dividing", think="should the spread grow or shrink?")
def multiplied_by_root(query, key):
    return query @ key.mT * math.sqrt(query.size(-1))


@attention_scores.mistake(
    "query and key swapped: row i holds the scores of key i", think="whose question does row i answer?"
)
def query_and_key_swapped(query, key):
    return key @ query.mT / math.sqrt(query.size(-1))


@attention_scores.mistake("scaling by √S, the length", think="which length do the two vectors of a dot product have?")
def scaled_by_length(query, key):
    return query @ key.mT / math.sqrt(query.size(-2))


@attention_scores.mistake("scaling by √H, the number of heads", think="which size is which in query.shape?")
def scaled_by_heads(query, key):
    return query @ key.mT / math.sqrt(query.size(1))


@attention_scores.mistake("a softmax already taken", think="is a score allowed to be negative?")
def softmax_included(query, key):
    return (query @ key.mT / math.sqrt(query.size(-1))).softmax(-1)


@attention_scores.mistake(
    "the product of features instead of tokens (d × d)", think="which axis should the product sum away?"
)
def sums_over_tokens(query, key):
    return query.mT @ key / math.sqrt(query.size(-1))


@attention_scores.mistake(
    "a transpose of the wrong two axes", think="which two axes of key must trade places, counted from the end?"
)
def transposes_heads_and_tokens(query, key):
    return query @ key.transpose(1, 2) / math.sqrt(query.size(-1))


@attention_scores.mistake(
    "GPT's causal mask: what comes later is closed", think="may a token of BERT look at what comes after it?"
)
def causal_scores(query, key):
    scores = query @ key.mT / math.sqrt(query.size(-1))
    return scores.masked_fill(_ahead(query), -math.inf)


def _ahead(x):
    """(S, S) of bool, True where column j comes after row i; x (B, H, S, d)."""
    return torch.ones(x.size(2), x.size(2), dtype=torch.bool, device=x.device).triu(1)


@attention_scores.mistake("a detached key: no gradient reaches it", think="what does .detach() or .data cut off?")
def detached_key(query, key):
    return query @ key.detach().mT / math.sqrt(query.size(-1))


# ---------------------------------------------------------------- 01.2 mask to bias


@mask_to_bias.mistake(
    "a mask added as 1/0", think="by what factor does adding 1 to a score change a weight after softmax?"
)
def added_as_one_and_zero(attention_mask, dtype=torch.float32):
    return attention_mask[:, None, None, :].to(dtype)


@mask_to_bias.mistake("an inverted mask: real tokens are hidden", think="what does a 1 in attention_mask mean?")
def inverted(attention_mask, dtype=torch.float32):
    return attention_mask[:, None, None, :].to(dtype) * torch.finfo(dtype).min


@mask_to_bias.mistake("−inf on padded tokens", think="what is exp(−inf) / Σ exp(−inf) in a row of nothing but padding?")
def minus_infinity(attention_mask, dtype=torch.float32):
    zeros = torch.zeros(attention_mask.shape, dtype=dtype, device=attention_mask.device)
    return zeros.masked_fill(attention_mask == 0, -math.inf)[:, None, None]


@mask_to_bias.mistake("−1e9 in float16, where it is −inf", think="what is the lowest number that float16 can hold?")
def overflows_in_half(attention_mask, dtype=torch.float32):
    return ((1 - attention_mask[:, None, None, :].float()) * -1e9).to(dtype)


@mask_to_bias.mistake("zero times infinity", think="what is 0 · ∞?")
def zero_times_infinity(attention_mask, dtype=torch.float32):
    return (1 - attention_mask[:, None, None, :].to(dtype)) * -math.inf


@mask_to_bias.mistake("1e-9 where −1e9 was meant", think="is 1e-9 a large number?")
def tiny_instead_of_huge(attention_mask, dtype=torch.float32):
    return ((1 - attention_mask[:, None, None, :].float()) * -1e-9).to(dtype)


@mask_to_bias.mistake("−1 on padded tokens: too weak", think="by what factor does −1 shrink a weight?")
def minus_one(attention_mask, dtype=torch.float32):
    return attention_mask[:, None, None, :].to(dtype) - 1


@mask_to_bias.mistake(
    "−100 or −1000: too weak for a large score", think="what is left of −100 on a padded token whose score is 150?"
)
def minus_hundred(attention_mask, dtype=torch.float32):
    return (1 - attention_mask[:, None, None, :].to(dtype)) * -100


@mask_to_bias.mistake("a large number with the wrong sign", think="does softmax favour large or small scores?")
def wrong_sign(attention_mask, dtype=torch.float32):
    return (1 - attention_mask[:, None, None, :].to(dtype)) * torch.finfo(dtype).max


@mask_to_bias.mistake(
    "a mask on the queries (B, 1, S, 1), not on the keys", think="rows look, columns are looked at: who is hidden?"
)
def masks_queries(attention_mask, dtype=torch.float32):
    return (1 - attention_mask[:, None, :, None].to(dtype)) * torch.finfo(dtype).min


@mask_to_bias.mistake(
    "a bias of shape (B, S): its rows would be added to the wrong axis",
    think="against which axes of (B, H, S, S) does (B, S) broadcast?",
)
def without_axes(attention_mask, dtype=torch.float32):
    return (1 - attention_mask.to(dtype)) * torch.finfo(dtype).min


@mask_to_bias.mistake(
    "GPT's causal mask mixed in: (B, 1, S, S)", think="may a token of BERT look at what comes after it?"
)
def causal_and_padding(attention_mask, dtype=torch.float32):
    closed = (attention_mask[:, None, None, :] == 0) | _ahead(attention_mask[:, None, :, None])
    return torch.zeros(closed.shape, dtype=dtype, device=closed.device).masked_fill(closed, torch.finfo(dtype).min / 2)


@mask_to_bias.mistake("the dtype ignored", think="what is float16 + float32?")
def ignores_dtype(attention_mask, dtype=torch.float32):
    return (1 - attention_mask[:, None, None, :].float()) * -1e4


@mask_to_bias.mistake("a mask of True and False, not something to add", think="what is a score + True?")
def returns_bool(attention_mask, dtype=torch.float32):
    return attention_mask[:, None, None, :] == 0


# ---------------------------------------------------------------- 01.3 scaled dot-product attention


def _attend(query, key, value, bias, dropout_p, training, *, scale=None, dim=-1, hide=lambda s, b: s + b):
    """Right, except for what a mistake below passes in."""
    scores = query @ key.mT / (math.sqrt(query.size(-1)) if scale is None else scale)
    if bias is not None:
        scores = hide(scores, bias)
    return F.dropout(scores.softmax(dim), dropout_p, training) @ value


@scaled_dot_product_attention.mistake(
    "scaling by √D, the width of the whole model", think="how many products are summed in one score?"
)
def attention_scaled_by_model_width(query, key, value, bias=None, dropout_p=0.0, training=False):
    width = query.size(1) * query.size(-1)
    return _attend(query, key, value, bias, dropout_p, training, scale=math.sqrt(width))


@scaled_dot_product_attention.mistake(
    "scores that are not scaled",
    think="how far do the largest scores lie apart when d is 64, and what is softmax then?",
)
def attention_not_scaled(query, key, value, bias=None, dropout_p=0.0, training=False):
    return _attend(query, key, value, bias, dropout_p, training, scale=1.0)


@scaled_dot_product_attention.mistake("dividing by d instead of √d", think="is it the variance that grows with d?")
def attention_divided_by_d(query, key, value, bias=None, dropout_p=0.0, training=False):
    return _attend(query, key, value, bias, dropout_p, training, scale=query.size(-1))


@scaled_dot_product_attention.mistake(
    "multiplying by √d instead of dividing", think="should the spread of the scores grow or shrink?"
)
def attention_multiplied_by_root(query, key, value, bias=None, dropout_p=0.0, training=False):
    return _attend(query, key, value, bias, dropout_p, training, scale=1 / math.sqrt(query.size(-1)))


@scaled_dot_product_attention.mistake(
    "scaling by √S, the length", think="which length do the two vectors of a dot product have?"
)
def attention_scaled_by_length(query, key, value, bias=None, dropout_p=0.0, training=False):
    return _attend(query, key, value, bias, dropout_p, training, scale=math.sqrt(query.size(-2)))


@scaled_dot_product_attention.mistake("scaling by √H, the number of heads", think="which size is which in query.shape?")
def attention_scaled_by_heads(query, key, value, bias=None, dropout_p=0.0, training=False):
    return _attend(query, key, value, bias, dropout_p, training, scale=math.sqrt(query.size(1)))


@scaled_dot_product_attention.mistake(
    "softmax taken twice", think="the weights lie between 0 and 1: how far apart can a second softmax put them?"
)
def softmax_twice(query, key, value, bias=None, dropout_p=0.0, training=False):
    scores = query @ key.mT / math.sqrt(query.size(-1))
    weights = (scores if bias is None else scores + bias).softmax(-1)
    return F.dropout(weights.softmax(-1), dropout_p, training) @ value


@scaled_dot_product_attention.mistake(
    "a softmax by hand that overflows: eˣ of the scores as they are",
    think="in float32 e⁸⁹ is infinite: which number may you subtract from a whole row without changing its shares?",
)
def exponentials_overflow(query, key, value, bias=None, dropout_p=0.0, training=False):
    scores = query @ key.mT / math.sqrt(query.size(-1))
    weights = (scores if bias is None else scores + bias).exp()
    return F.dropout(weights / weights.sum(-1, keepdim=True), dropout_p, training) @ value


@scaled_dot_product_attention.mistake(
    "GPT's causal mask in BERT's attention", think="may a token of BERT look at what comes after it?"
)
def attention_causal(query, key, value, bias=None, dropout_p=0.0, training=False):
    ahead = _ahead(query)
    closed = torch.zeros_like(ahead, dtype=query.dtype).masked_fill(ahead, -1e9)
    return _attend(query, key, value, closed if bias is None else bias + closed, dropout_p, training)


@scaled_dot_product_attention.mistake(
    "a softmax over the query axis", think="what should sum to 1: what a token gives, or what it receives?"
)
def softmax_over_queries(query, key, value, bias=None, dropout_p=0.0, training=False):
    return _attend(query, key, value, bias, dropout_p, training, dim=-2)


@scaled_dot_product_attention.mistake("a softmax over the heads", think="do heads compete with one another?")
def softmax_over_heads(query, key, value, bias=None, dropout_p=0.0, training=False):
    return _attend(query, key, value, bias, dropout_p, training, dim=1)


@scaled_dot_product_attention.mistake("no softmax at all", think="what turns scores into shares of 1?")
def without_softmax(query, key, value, bias=None, dropout_p=0.0, training=False):
    scores = query @ key.mT / math.sqrt(query.size(-1))
    return F.dropout(scores if bias is None else scores + bias, dropout_p, training) @ value


@scaled_dot_product_attention.mistake("the bias never used", think="who keeps padding out?")
def bias_ignored(query, key, value, bias=None, dropout_p=0.0, training=False):
    return _attend(query, key, value, None, dropout_p, training)


@scaled_dot_product_attention.mistake(
    "scores multiplied by the bias", think="what does softmax do with a score of 0? And −1e9 times a negative score?"
)
def scores_times_bias(query, key, value, bias=None, dropout_p=0.0, training=False):
    return _attend(query, key, value, bias, dropout_p, training, hide=lambda scores, bias: scores * bias)


@scaled_dot_product_attention.mistake("the bias subtracted", think="which sign has the bias of a padded token already?")
def bias_subtracted(query, key, value, bias=None, dropout_p=0.0, training=False):
    return _attend(query, key, value, bias, dropout_p, training, hide=lambda scores, bias: scores - bias)


@scaled_dot_product_attention.mistake("the bias added before the scale", think="is the bias, too, a sum of d products?")
def bias_before_scale(query, key, value, bias=None, dropout_p=0.0, training=False):
    return _attend(
        query,
        key,
        value,
        bias,
        dropout_p,
        training,
        hide=lambda scores, bias: scores + bias / math.sqrt(query.size(-1)),
    )


@scaled_dot_product_attention.mistake(
    "a bias read as yes or no instead of added", think="what would a bias of −0.5 mean?"
)
def bias_as_yes_or_no(query, key, value, bias=None, dropout_p=0.0, training=False):
    return _attend(
        query, key, value, bias, dropout_p, training, hide=lambda scores, bias: scores.masked_fill(bias < 0, -1e9)
    )


@scaled_dot_product_attention.mistake(
    "a mask applied after softmax: rows no longer sum to 1", think="where does the share of a removed token go?"
)
def masked_after_softmax(query, key, value, bias=None, dropout_p=0.0, training=False):
    weights = (query @ key.mT / math.sqrt(query.size(-1))).softmax(-1)
    if bias is not None:
        weights = weights.masked_fill(bias < 0, 0.0)
    return F.dropout(weights, dropout_p, training) @ value


@scaled_dot_product_attention.mistake(
    "a bias added after softmax", think="may a weight be −1e9? At which step are the scores still free numbers?"
)
def bias_after_softmax(query, key, value, bias=None, dropout_p=0.0, training=False):
    weights = (query @ key.mT / math.sqrt(query.size(-1))).softmax(-1)
    return F.dropout(weights if bias is None else weights + bias, dropout_p, training) @ value


@scaled_dot_product_attention.mistake("dropout nowhere", think="what is dropout_p for?")
def never_drops(query, key, value, bias=None, dropout_p=0.0, training=False):
    return _attend(query, key, value, bias, 0.0, False)


@scaled_dot_product_attention.mistake(
    "dropout in evaluation too", think="what does F.dropout assume when it isn't told whether this is training?"
)
def drops_in_evaluation(query, key, value, bias=None, dropout_p=0.0, training=False):
    return _attend(query, key, value, bias, dropout_p, True)


@scaled_dot_product_attention.mistake(
    "dropout on the scores, before softmax", think="what weight does a score of 0 get?"
)
def drops_scores(query, key, value, bias=None, dropout_p=0.0, training=False):
    scores = F.dropout(query @ key.mT / math.sqrt(query.size(-1)), dropout_p, training)
    return (scores if bias is None else scores + bias).softmax(-1) @ value


@scaled_dot_product_attention.mistake(
    "dropout on the context instead of the weights", think="should a query miss one feature, or one token?"
)
def drops_context(query, key, value, bias=None, dropout_p=0.0, training=False):
    return F.dropout(_attend(query, key, value, bias, 0.0, False), dropout_p, training)


@scaled_dot_product_attention.mistake(
    "dropout without the scale-up by 1 / (1 − p)", think="what is the mean of a weight that is 0 in a quarter of cases?"
)
def drops_without_scaling(query, key, value, bias=None, dropout_p=0.0, training=False):
    scores = query @ key.mT / math.sqrt(query.size(-1))
    weights = (scores if bias is None else scores + bias).softmax(-1)
    if training:
        weights = weights * (torch.rand_like(weights) >= dropout_p)
    return weights @ value


def _drop_together(query, key, value, bias, dropout_p, training, *, part):
    """One draw of dropout for all weights along the axes that `part` cuts to 1."""
    scores = query @ key.mT / math.sqrt(query.size(-1))
    weights = (scores if bias is None else scores + bias).softmax(-1)
    return weights * F.dropout(torch.ones_like(weights[part]), dropout_p, training) @ value


@scaled_dot_product_attention.mistake(
    "the same keys dropped for every query", think="should all tokens miss the same word at once?"
)
def drops_the_same_keys(query, key, value, bias=None, dropout_p=0.0, training=False):
    return _drop_together(query, key, value, bias, dropout_p, training, part=(..., slice(1), slice(None)))


@scaled_dot_product_attention.mistake(
    "a query that loses all its weights or none", think="what does a token with no weight left learn?"
)
def drops_whole_rows(query, key, value, bias=None, dropout_p=0.0, training=False):
    return _drop_together(query, key, value, bias, dropout_p, training, part=(..., slice(1)))


@scaled_dot_product_attention.mistake(
    "one draw of dropout for all heads", think="how many weights are there, over all heads?"
)
def drops_the_same_in_all_heads(query, key, value, bias=None, dropout_p=0.0, training=False):
    return _drop_together(query, key, value, bias, dropout_p, training, part=(slice(None), slice(1)))


@scaled_dot_product_attention.mistake(
    "one draw of dropout for all texts of the batch", think="how many weights are there, over all texts?"
)
def drops_the_same_in_all_texts(query, key, value, bias=None, dropout_p=0.0, training=False):
    return _drop_together(query, key, value, bias, dropout_p, training, part=(slice(1),))


@scaled_dot_product_attention.mistake(
    "weights divided by their sum again after dropout", think="what is the mean of a weight that is kept as it was?"
)
def divides_after_dropout(query, key, value, bias=None, dropout_p=0.0, training=False):
    scores = query @ key.mT / math.sqrt(query.size(-1))
    weights = F.dropout((scores if bias is None else scores + bias).softmax(-1), dropout_p, training)
    return weights / weights.sum(-1, keepdim=True).clamp(min=1e-9) @ value


@scaled_dot_product_attention.mistake(
    "dropout on the values instead of the weights", think="which numbers say how much a token looks at another?"
)
def drops_values(query, key, value, bias=None, dropout_p=0.0, training=False):
    return _attend(query, key, F.dropout(value, dropout_p, training), bias, 0.0, False)


@scaled_dot_product_attention.mistake(
    "p taken for the share that is kept", think="with dropout_p = 0.1, how many weights should go?"
)
def keeps_p(query, key, value, bias=None, dropout_p=0.0, training=False):
    return _attend(query, key, value, bias, 1 - dropout_p, training)


@scaled_dot_product_attention.mistake(
    "values summed over the queries: the weights are transposed", think="row i of the weights: who looks, at whom?"
)
def transposed_weights(query, key, value, bias=None, dropout_p=0.0, training=False):
    scores = query @ key.mT / math.sqrt(query.size(-1))
    weights = (scores if bias is None else scores + bias).softmax(-1)
    return F.dropout(weights, dropout_p, training).mT @ value


@scaled_dot_product_attention.mistake("keys summed instead of values", think="what is value for, then?")
def sums_keys(query, key, value, bias=None, dropout_p=0.0, training=False):
    return _attend(query, key, key, bias, dropout_p, training)


@scaled_dot_product_attention.mistake("query and key swapped", think="whose question does row i answer?")
def attention_swapped(query, key, value, bias=None, dropout_p=0.0, training=False):
    return _attend(key, query, value, bias, dropout_p, training)


@scaled_dot_product_attention.mistake(
    "detached attention weights: no gradient reaches query and key", think="how would the scores ever learn?"
)
def detached_weights(query, key, value, bias=None, dropout_p=0.0, training=False):
    return _attend(query.detach(), key.detach(), value, bias, dropout_p, training)


# ---------------------------------------------------------------- 01.4 split heads


@split_heads.mistake(
    "view(B, H, S, d) without a transpose: it mixes tokens", think="which numbers lie side by side in memory?"
)
def viewed_without_transpose(x, num_heads):
    batch, length, width = x.shape
    return x.reshape(batch, num_heads, length, width // num_heads)


@split_heads.mistake(
    "interleaved heads: every H-th feature", think="do the features of one head lie side by side, or H apart?"
)
def interleaved(x, num_heads):
    return x.unflatten(2, (-1, num_heads)).permute(0, 3, 1, 2)


@split_heads.mistake("the transpose forgotten: (B, S, H, d)", think="which axis must stand before the tokens?")
def transpose_forgotten(x, num_heads):
    return x.unflatten(2, (num_heads, -1))


@split_heads.mistake(
    "num_heads taken for the size of a head", think="H heads of size d: which of the two is num_heads?"
)
def heads_for_size(x, num_heads):
    return x.unflatten(2, (-1, num_heads)).transpose(1, 2)


@split_heads.mistake("d and S swapped: (B, H, d, S)", think="what do you want in a row: one token, or one feature?")
def split_transposed(x, num_heads):
    return x.unflatten(2, (num_heads, -1)).permute(0, 2, 3, 1)


@split_heads.mistake("heads in reverse order", think="which features belong to head 0?")
def reversed_heads(x, num_heads):
    return x.unflatten(2, (num_heads, -1)).transpose(1, 2).flip(1)


@split_heads.mistake(
    "the batch split instead of the features", think="does each head see all sentences, or all features?"
)
def every_head_sees_everything(x, num_heads):
    return x[:, None].repeat(1, num_heads, 1, 1)


# ---------------------------------------------------------------- 01.5 merge heads


@merge_heads.mistake(
    "heads merged without transposing back: it mixes tokens", think="which numbers lie side by side in memory?"
)
def merged_without_transpose(x):
    batch, heads, length, size = x.shape
    return x.reshape(batch, length, heads * size)


@merge_heads.mistake(
    "view after transpose, which torch refuses",
    think="a transpose moves no number, it only changes the strides: can view still walk through in order?",
)
def view_after_transpose(x):
    batch, heads, length, size = x.shape
    return x.transpose(1, 2).view(batch, length, heads * size)


@merge_heads.mistake("interleaved heads", think="do the features of one head lie side by side, or H apart?")
def merged_interleaved(x):
    return x.permute(0, 2, 3, 1).flatten(2)


@merge_heads.mistake("(B, S, H, d): the last two axes are not joined", think="how many numbers has one token?")
def not_joined(x):
    return x.transpose(1, 2)


@merge_heads.mistake("heads summed", think="what would be left of knowing which head found it?")
def heads_summed(x):
    return x.sum(1)


@merge_heads.mistake("heads averaged", think="what would be left of knowing which head found it?")
def heads_averaged(x):
    return x.mean(1)


@merge_heads.mistake("heads one after the other along the tokens", think="along which axis do the heads join?")
def joined_along_tokens(x):
    return x.flatten(1, 2)


@merge_heads.mistake("the wrong two axes transposed", think="which axis must move: the heads, or the features?")
def features_before_tokens(x):
    batch, heads, length, size = x.shape
    return x.transpose(2, 3).reshape(batch, length, heads * size)


# ---------------------------------------------------------------- 01.6 multi-head attention


def _split(x, heads):
    return x.unflatten(2, (heads, -1)).transpose(1, 2)


def _hide_padding(scores, mask):
    return scores.masked_fill(mask[:, None, None, :] == 0, -1e9)


def _multi(
    hidden, weights, heads, mask, *,
    linear=F.linear, split=_split, scale=None, hide=_hide_padding, softmax=torch.softmax, dim=-1,
    after=lambda shares, mask: shares,
    merge=lambda x: x.transpose(1, 2).flatten(2), output=F.linear,
):  # fmt: skip
    """Right, except for what a mistake below passes in."""
    query, key, value = (
        split(linear(hidden, weights[f"{name}.weight"], weights[f"{name}.bias"]), heads)
        for name in ("query", "key", "value")
    )
    scores = query @ key.mT / (math.sqrt(query.size(-1)) if scale is None else scale)
    if mask is not None:
        scores = hide(scores, mask)
    context = merge(after(softmax(scores, dim), mask) @ value)
    return output(context, weights["output.weight"], weights["output.bias"])


@multi_head_attention.mistake("scaling by √D instead of √d", think="how many features has one head?")
def multi_scaled_by_width(hidden, weights, num_heads, attention_mask=None):
    return _multi(hidden, weights, num_heads, attention_mask, scale=math.sqrt(hidden.size(2)))


@multi_head_attention.mistake("scores that are not scaled", think="what happens to softmax when d grows?")
def multi_not_scaled(hidden, weights, num_heads, attention_mask=None):
    return _multi(hidden, weights, num_heads, attention_mask, scale=1.0)


@multi_head_attention.mistake("dividing by d instead of √d", think="is it the variance that grows with d?")
def multi_divided_by_d(hidden, weights, num_heads, attention_mask=None):
    return _multi(hidden, weights, num_heads, attention_mask, scale=hidden.size(2) / num_heads)


@multi_head_attention.mistake(
    "multiplying by √d instead of dividing", think="should the spread of the scores grow or shrink?"
)
def multi_multiplied_by_root(hidden, weights, num_heads, attention_mask=None):
    return _multi(hidden, weights, num_heads, attention_mask, scale=math.sqrt(num_heads / hidden.size(2)))


@multi_head_attention.mistake(
    "scaling by √S, the length", think="which length do the two vectors of a dot product have?"
)
def multi_scaled_by_length(hidden, weights, num_heads, attention_mask=None):
    return _multi(hidden, weights, num_heads, attention_mask, scale=math.sqrt(hidden.size(1)))


@multi_head_attention.mistake("scaling by √H, the number of heads", think="how many features has one head?")
def multi_scaled_by_heads(hidden, weights, num_heads, attention_mask=None):
    return _multi(hidden, weights, num_heads, attention_mask, scale=math.sqrt(num_heads))


@multi_head_attention.mistake(
    "softmax taken twice", think="the weights lie between 0 and 1: how far apart can a second softmax put them?"
)
def multi_softmax_twice(hidden, weights, num_heads, attention_mask=None):
    return _multi(hidden, weights, num_heads, attention_mask, softmax=lambda s, dim: s.softmax(dim).softmax(dim))


@multi_head_attention.mistake(
    "a softmax by hand that overflows: eˣ of the scores as they are",
    think="in float32 e⁸⁹ is infinite: which number may you subtract from a whole row without changing its shares?",
)
def multi_exponentials_overflow(hidden, weights, num_heads, attention_mask=None):
    def by_hand(scores, dim):
        return scores.exp() / scores.exp().sum(dim, keepdim=True)

    return _multi(hidden, weights, num_heads, attention_mask, softmax=by_hand)


@multi_head_attention.mistake("a softmax over the query axis", think="whose shares sum to 1?")
def multi_softmax_over_queries(hidden, weights, num_heads, attention_mask=None):
    return _multi(hidden, weights, num_heads, attention_mask, dim=-2)


@multi_head_attention.mistake("a softmax over the heads", think="do heads compete with one another?")
def multi_softmax_over_heads(hidden, weights, num_heads, attention_mask=None):
    return _multi(hidden, weights, num_heads, attention_mask, dim=1)


@multi_head_attention.mistake("a mask added as 1/0", think="by what factor does adding 1 to a score change a weight?")
def multi_mask_added(hidden, weights, num_heads, attention_mask=None):
    return _multi(hidden, weights, num_heads, attention_mask, hide=lambda s, mask: s + mask[:, None, None, :])


@multi_head_attention.mistake("an inverted mask: real tokens are hidden", think="what does a 1 in the mask mean?")
def multi_mask_inverted(hidden, weights, num_heads, attention_mask=None):
    return _multi(hidden, weights, num_heads, attention_mask, hide=lambda s, mask: _hide_padding(s, 1 - mask))


@multi_head_attention.mistake("scores multiplied by the mask", think="what does softmax do with a score of 0?")
def multi_mask_multiplied(hidden, weights, num_heads, attention_mask=None):
    return _multi(hidden, weights, num_heads, attention_mask, hide=lambda s, mask: s * mask[:, None, None, :])


@multi_head_attention.mistake(
    "a mask applied after softmax: rows no longer sum to 1", think="where does the share of a removed token go?"
)
def multi_masked_after_softmax(hidden, weights, num_heads, attention_mask=None):
    return _multi(
        hidden, weights, num_heads, attention_mask, hide=lambda scores, mask: scores,
        after=lambda shares, mask: shares if mask is None else shares * mask[:, None, None, :],
    )  # fmt: skip


@multi_head_attention.mistake(
    "a mask on the queries, not on the keys", think="who is hidden: who looks, or what is seen?"
)
def multi_masks_queries(hidden, weights, num_heads, attention_mask=None):
    return _multi(
        hidden, weights, num_heads, attention_mask,
        hide=lambda scores, mask: scores.masked_fill(mask[:, None, :, None] == 0, -1e9),
    )  # fmt: skip


@multi_head_attention.mistake(
    "−inf in whole rows of the scores: the padding's own rows become NaN",
    think="which shares has a row that is −∞ everywhere, and who is hidden: who looks, or what is seen?",
)
def multi_rows_of_infinity(hidden, weights, num_heads, attention_mask=None):
    def hide(scores, mask):
        real = mask[:, None, :, None] * mask[:, None, None, :]
        return scores.masked_fill(real == 0, -math.inf)

    return _multi(hidden, weights, num_heads, attention_mask, hide=hide)


@multi_head_attention.mistake("the attention mask never used", think="who keeps padding out?")
def multi_mask_ignored(hidden, weights, num_heads, attention_mask=None):
    return _multi(hidden, weights, num_heads, None)


@multi_head_attention.mistake(
    "GPT's causal mask in BERT's attention", think="may a token of BERT look at what comes after it?"
)
def multi_causal(hidden, weights, num_heads, attention_mask=None):
    everyone = torch.ones(hidden.shape[:2], device=hidden.device) if attention_mask is None else attention_mask

    def look_back_only(scores, mask):
        past = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
        return _hide_padding(scores, mask).masked_fill(~past, -1e9)

    return _multi(hidden, weights, num_heads, everyone, hide=look_back_only)


@multi_head_attention.mistake(
    "heads split by view(B, H, S, d) without a transpose", think="which numbers lie side by side in memory?"
)
def multi_viewed(hidden, weights, num_heads, attention_mask=None):
    def view(x, heads):
        return x.reshape(x.size(0), heads, x.size(1), -1)

    return _multi(hidden, weights, num_heads, attention_mask, split=view)


@multi_head_attention.mistake(
    "heads merged without transposing back (with one head nobody notices)",
    think="in which order does memory hold them?",
)
def multi_merged_by_view(hidden, weights, num_heads, attention_mask=None):
    return _multi(hidden, weights, num_heads, attention_mask, merge=lambda x: x.reshape(hidden.shape))


@multi_head_attention.mistake(
    "heads split and merged by view alone: the two errors do not cancel", think="what is token 0 of head 0 made of?"
)
def multi_viewed_both_ways(hidden, weights, num_heads, attention_mask=None):
    def view(x, heads):
        return x.reshape(x.size(0), heads, x.size(1), -1)

    return _multi(hidden, weights, num_heads, attention_mask, split=view, merge=lambda x: x.reshape(hidden.shape))


@multi_head_attention.mistake("one head only: the features are never split", think="what is num_heads for?")
def multi_one_head(hidden, weights, num_heads, attention_mask=None):
    return _multi(hidden, weights, 1, attention_mask)


@multi_head_attention.mistake("the output projection forgotten", think="how do heads hear of one another?")
def multi_without_output(hidden, weights, num_heads, attention_mask=None):
    return _multi(hidden, weights, num_heads, attention_mask, output=lambda context, weight, bias: context)


@multi_head_attention.mistake("the output bias missing", think="how many tensors has the output projection?")
def multi_without_output_bias(hidden, weights, num_heads, attention_mask=None):
    return _multi(hidden, weights, num_heads, attention_mask, output=lambda x, weight, bias: F.linear(x, weight))


@multi_head_attention.mistake("biases of query, key and value missing", think="how many tensors has one projection?")
def multi_without_biases(hidden, weights, num_heads, attention_mask=None):
    return _multi(hidden, weights, num_heads, attention_mask, linear=lambda x, weight, bias: F.linear(x, weight))


@multi_head_attention.mistake(
    "the bias of the query missing", think="a key's bias shifts all scores of a row alike: does a query's, too?"
)
def multi_without_query_bias(hidden, weights, num_heads, attention_mask=None):
    bias = torch.zeros_like(weights["query.bias"])
    return _multi(hidden, weights | {"query.bias": bias}, num_heads, attention_mask)


@multi_head_attention.mistake("the bias of the value missing", think="how many tensors has one projection?")
def multi_without_value_bias(hidden, weights, num_heads, attention_mask=None):
    bias = torch.zeros_like(weights["value.bias"])
    return _multi(hidden, weights | {"value.bias": bias}, num_heads, attention_mask)


@multi_head_attention.mistake(
    "x @ W instead of x @ Wᵀ", think="torch keeps a weight as (out, in): along which axis do you sum?"
)
def multi_weights_not_transposed(hidden, weights, num_heads, attention_mask=None):
    turned = {name: w.T if name.endswith("weight") else w for name, w in weights.items()}
    return _multi(hidden, turned, num_heads, attention_mask)


def _taken(weights, **sources):
    """The weights, where each role named takes those of its source."""
    return weights | {
        f"{role}.{kind}": weights[f"{source}.{kind}"] for role, source in sources.items() for kind in ("weight", "bias")
    }


@multi_head_attention.mistake("query and key swapped", think="whose question does row i answer?")
def multi_swapped(hidden, weights, num_heads, attention_mask=None):
    return _multi(hidden, _taken(weights, query="key", key="query"), num_heads, attention_mask)


@multi_head_attention.mistake("one projection for query and key", think="how many weights are there, and what for?")
def multi_shared_projection(hidden, weights, num_heads, attention_mask=None):
    return _multi(hidden, _taken(weights, key="query"), num_heads, attention_mask)


@multi_head_attention.mistake("the key's projection for the query too", think="which weights ask, and which answer?")
def multi_query_from_key(hidden, weights, num_heads, attention_mask=None):
    return _multi(hidden, _taken(weights, query="key"), num_heads, attention_mask)


@multi_head_attention.mistake(
    "values made with the key's projection", think="is what a token is found by also what it hands over?"
)
def multi_value_from_key(hidden, weights, num_heads, attention_mask=None):
    return _multi(hidden, _taken(weights, value="key"), num_heads, attention_mask)


@multi_head_attention.mistake(
    "values made with the query's projection", think="is what a token asks for also what it hands over?"
)
def multi_value_from_query(hidden, weights, num_heads, attention_mask=None):
    return _multi(hidden, _taken(weights, value="query"), num_heads, attention_mask)


@multi_head_attention.mistake("key and value swapped", think="which of the two is compared, and which is summed?")
def multi_key_and_value_swapped(hidden, weights, num_heads, attention_mask=None):
    return _multi(hidden, _taken(weights, key="value", value="key"), num_heads, attention_mask)


@multi_head_attention.mistake(
    "one projection for query, key and value", think="how many weights are there, and what for?"
)
def multi_one_projection(hidden, weights, num_heads, attention_mask=None):
    return _multi(hidden, _taken(weights, key="query", value="query"), num_heads, attention_mask)


@multi_head_attention.mistake("hidden states used as values, not projected", think="what is value.weight for?")
def multi_values_not_projected(hidden, weights, num_heads, attention_mask=None):
    eye = torch.eye(hidden.size(2), dtype=hidden.dtype, device=hidden.device)
    plain = weights | {"value.weight": eye, "value.bias": torch.zeros_like(weights["value.bias"])}
    return _multi(hidden, plain, num_heads, attention_mask)


@multi_head_attention.mistake(
    "squeeze(0): one text alone loses its batch axis", think="which shape has a batch of one text?"
)
def multi_squeezed(hidden, weights, num_heads, attention_mask=None):
    return _multi(hidden, weights, num_heads, attention_mask).squeeze(0)


@multi_head_attention.mistake(
    "squeeze(): one text alone loses its batch axis, and one token its own",
    think="which shape have two texts of one token?",
)
def multi_squeezed_everywhere(hidden, weights, num_heads, attention_mask=None):
    return _multi(hidden, weights, num_heads, attention_mask).squeeze()


@multi_head_attention.mistake(
    "the residual added here already", think="which part of the layer adds its input to the output?"
)
def multi_with_residual(hidden, weights, num_heads, attention_mask=None):
    return hidden + _multi(hidden, weights, num_heads, attention_mask)


# ---------------------------------------------------------------- 01.7 causal mask


@causal_mask.mistake(
    "True where looking is forbidden (torch's nn.Transformer reads masks so)", think="what should True mean here?"
)
def true_is_forbidden(length):
    return torch.ones(length, length, dtype=torch.bool).triu(1)


@causal_mask.mistake("the upper triangle: tokens see only what comes after", think="row i looks, column j is looked at")
def upper_triangle(length):
    return torch.ones(length, length, dtype=torch.bool).triu()


@causal_mask.mistake("a diagonal off by one: a token can't see itself", think="what may token 0 look at?")
def without_itself(length):
    return torch.ones(length, length, dtype=torch.bool).tril(-1)


@causal_mask.mistake(
    "a diagonal off by one: each token sees the next", think="what would a language model learn if it saw the answer?"
)
def sees_the_next(length):
    return torch.ones(length, length, dtype=torch.bool).tril(1)


@causal_mask.mistake("BERT's mask: everyone sees everyone", think="what tells GPT's attention from BERT's?")
def everyone(length):
    return torch.ones(length, length, dtype=torch.bool)


@causal_mask.mistake("only the diagonal: tokens see nothing but themselves", think="what has token 3 to read?")
def only_itself(length):
    return torch.eye(length, dtype=torch.bool)


@causal_mask.mistake("only the token before and itself", think="how far back may GPT look?")
def one_step_back(length):
    return torch.ones(length, length, dtype=torch.bool).tril().triu(-1)


@causal_mask.mistake("1 and 0 instead of True and False", think="which dtype did the task ask for?")
def ones_and_zeros(length):
    return torch.ones(length, length).tril()


@causal_mask.mistake("a bias to add instead of True and False", think="which dtype did the task ask for?")
def causal_bias(length):
    return torch.full((length, length), -math.inf).triu(1)
