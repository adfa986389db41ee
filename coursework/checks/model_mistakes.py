"""What students really get wrong in unit 06, as code: each must be rejected and called by its name."""

import copy
import math
import re

import torch
import torch.nn.functional as F
from torch import nn

from coursework.checks.model import (
    OURS,
    Encoder,
    bert,
    count_parameters,
    encoder_layer,
    feed_forward,
    load_weights,
    pooler,
)

# ---------------------------------------------------------------- 06.1 feed-forward


def _linear(x, weights, name):
    return F.linear(x, weights[f"{name}.weight"], weights[f"{name}.bias"])


def _feed(x, weights, act=F.gelu):
    return _linear(act(_linear(x, weights, "up")), weights, "down")


def _tanh_gelu(x):
    return F.gelu(x, approximate="tanh")


@feed_forward.mistake("ReLU instead of GELU", think="what does GELU give for −1, and what does ReLU?")
def relu(x, weights):
    return _feed(x, weights, F.relu)


@feed_forward.mistake(
    "the tanh approximation of GELU. Google's own code computes it so: no crime, but here erf is asked",
    think='which GELU does "gelu" mean in a config.json of Hugging Face?',
)
def tanh_approximation(x, weights):
    return _feed(x, weights, _tanh_gelu)


@feed_forward.mistake("x · sigmoid(1.702 x), the quick approximation of GELU", think="whose formula has an erf?")
def sigmoid_approximation(x, weights):
    return _feed(x, weights, lambda x: x * torch.sigmoid(1.702 * x))


@feed_forward.mistake("SiLU instead of GELU", think="x times the normal distribution function, or x times a sigmoid?")
def silu(x, weights):
    return _feed(x, weights, F.silu)


@feed_forward.mistake("erf(x) without the division by √2", think="what is the argument of erf in Φ(x)?")
def erf_without_root(x, weights):
    return _feed(x, weights, lambda x: x * (1 + torch.erf(x)) / 2)


@feed_forward.mistake("Φ(x) alone: the x in front is missing", think="what should GELU give for x = 10?")
def distribution_alone(x, weights):
    return _feed(x, weights, lambda x: (1 + torch.erf(x / math.sqrt(2))) / 2)


@feed_forward.mistake(
    "no activation between the two products", think="what is a product of two matrices, if nothing stands between?"
)
def linear_all_through(x, weights):
    return _feed(x, weights, lambda x: x)


@feed_forward.mistake("GELU at the end, not in the middle", think="can a layer ending in GELU give −5?")
def gelu_at_the_end(x, weights):
    return F.gelu(_feed(x, weights, lambda x: x))


@feed_forward.mistake("a second GELU, at the end", think="can a layer ending in GELU give −5?")
def gelu_twice(x, weights):
    return F.gelu(_feed(x, weights))


@feed_forward.mistake("GELU before the first product", think="on which vector does it act, x or the inner one?")
def gelu_first(x, weights):
    return _feed(F.gelu(x), weights, lambda x: x)


@feed_forward.mistake("up.bias missing", think="how many tensors has one linear layer?")
def without_up_bias(x, weights):
    return _feed(x, weights | {"up.bias": torch.zeros_like(weights["up.bias"])})


@feed_forward.mistake("down.bias missing", think="how many tensors has one linear layer?")
def without_down_bias(x, weights):
    return _feed(x, weights | {"down.bias": torch.zeros_like(weights["down.bias"])})


@feed_forward.mistake(
    "x @ W instead of x @ Wᵀ", think="torch keeps a weight as (out, in): along which axis do you sum?"
)
def not_transposed(x, weights):
    inner = F.gelu(x @ weights["up.weight"] + weights["up.bias"])
    return inner @ weights["down.weight"] + weights["down.bias"]


@feed_forward.mistake("up.bias added after GELU", think="does GELU see the bias?")
def bias_after_gelu(x, weights):
    inner = F.gelu(F.linear(x, weights["up.weight"])) + weights["up.bias"]
    return _linear(inner, weights, "down")


@feed_forward.mistake("tanh for GELU", think="what does GELU make of 5?")
def tanh_for_gelu(x, weights):
    return _linear(torch.tanh(_linear(x, weights, "up")), weights, "down")


@feed_forward.mistake("the residual added here already", think="which exercise adds its input to the output?")
def with_residual(x, weights):
    return x + _feed(x, weights)


@feed_forward.mistake("a LayerNorm at the end already", think="which exercise normalises?")
def with_layer_norm(x, weights):
    return F.layer_norm(_feed(x, weights), x.shape[-1:])


@feed_forward.mistake("a detached inner vector: no gradient passes", think="what does .detach() or .data cut off?")
def detached_inner(x, weights):
    return _linear(F.gelu(_linear(x, weights, "up")).detach(), weights, "down")


# ---------------------------------------------------------------- 06.2 encoder layer


def _drop(x, p, training):
    return F.dropout(x, p, training)


def _norm(x, weights, name, eps=1e-12):
    return F.layer_norm(x, x.shape[-1:], weights[f"{name}.weight"], weights[f"{name}.bias"], eps)


def _detached_norm(x, weights, name):
    centred = x - x.mean(-1, keepdim=True).detach()
    x = centred / torch.sqrt(x.var(-1, correction=0, keepdim=True).detach() + 1e-12)
    return weights[f"{name}.weight"] * x + weights[f"{name}.bias"]


def _unbiased_norm(x, weights, name):
    x = (x - x.mean(-1, keepdim=True)) / torch.sqrt(x.var(-1, keepdim=True) + 1e-12)
    return weights[f"{name}.weight"] * x + weights[f"{name}.bias"]


def _attend(hidden, weights, num_heads, mask, p=0.0, training=False, *, scale=None, split=None, names="qkv",
            hide=None, drop=None):  # fmt: skip
    """Right, except for what a mistake below passes in."""
    long = {"q": "query", "k": "key", "v": "value"}
    split = split or (lambda x: x.unflatten(2, (num_heads, -1)).transpose(1, 2))
    query, key, value = (split(_linear(hidden, weights, long[letter])) for letter in names)
    scores = query @ key.mT / (scale or math.sqrt(query.size(-1)))
    if mask is not None:
        bias = (1 - mask[:, None, None, :].to(scores.dtype)) * -1e9
        scores = hide(scores, mask) if hide else scores + bias
    ratios = scores.softmax(-1)
    context = drop(ratios, value) if drop else _drop(ratios, p, training) @ value
    return _linear(context.transpose(1, 2).flatten(2), weights, "output")


def _layer(hidden, weights, num_heads, mask, p, attention_p, training, *, norm=_norm, act=F.gelu, attend=_attend,
           drops=(True, True)):  # fmt: skip
    """Right, except for what a mistake below passes in."""
    attended = attend(hidden, weights, num_heads, mask, attention_p, training)
    x = norm(hidden + _drop(attended, p * drops[0], training), weights, "attention_norm")
    return norm(x + _drop(_feed(x, weights, act), p * drops[1], training), weights, "norm")


@encoder_layer.mistake(
    "pre-LN: LayerNorm before each sub-layer, as in GPT-2", think="what does the paper's picture show above “Add”?"
)
def pre_layer_norm(
    hidden, weights, num_heads, attention_mask=None, dropout_p=0.0, attention_dropout_p=0.0, training=False
):
    inner = _norm(hidden, weights, "attention_norm")
    attended = _attend(inner, weights, num_heads, attention_mask, attention_dropout_p, training)
    x = hidden + _drop(attended, dropout_p, training)
    return x + _drop(_feed(_norm(x, weights, "norm"), weights), dropout_p, training)


@encoder_layer.mistake("LayerNorm on the sub-layer's output, and then the sum", think="is it Norm(x + f(x))?")
def norm_before_the_sum(
    hidden, weights, num_heads, attention_mask=None, dropout_p=0.0, attention_dropout_p=0.0, training=False
):
    attended = _attend(hidden, weights, num_heads, attention_mask, attention_dropout_p, training)
    x = hidden + _norm(_drop(attended, dropout_p, training), weights, "attention_norm")
    return x + _norm(_drop(_feed(x, weights), dropout_p, training), weights, "norm")


@encoder_layer.mistake(
    "no residual around attention", think="what is left of a token that nobody looks at, not even itself?"
)
def without_first_residual(
    hidden, weights, num_heads, attention_mask=None, dropout_p=0.0, attention_dropout_p=0.0, training=False
):
    attended = _attend(hidden, weights, num_heads, attention_mask, attention_dropout_p, training)
    x = _norm(_drop(attended, dropout_p, training), weights, "attention_norm")
    return _norm(x + _drop(_feed(x, weights), dropout_p, training), weights, "norm")


@encoder_layer.mistake("no residual around feed-forward", think="how many “Add” are there in one layer?")
def without_second_residual(
    hidden, weights, num_heads, attention_mask=None, dropout_p=0.0, attention_dropout_p=0.0, training=False
):
    attended = _attend(hidden, weights, num_heads, attention_mask, attention_dropout_p, training)
    x = _norm(hidden + _drop(attended, dropout_p, training), weights, "attention_norm")
    return _norm(_drop(_feed(x, weights), dropout_p, training), weights, "norm")


@encoder_layer.mistake("no residual at all", think="what does “Add” in “Add & Norm” add?")
def without_residuals(
    hidden, weights, num_heads, attention_mask=None, dropout_p=0.0, attention_dropout_p=0.0, training=False
):
    attended = _attend(hidden, weights, num_heads, attention_mask, attention_dropout_p, training)
    x = _norm(_drop(attended, dropout_p, training), weights, "attention_norm")
    return _norm(_drop(_feed(x, weights), dropout_p, training), weights, "norm")


@encoder_layer.mistake(
    "the layer's input added again after feed-forward", think="what went into feed-forward, hidden or x?"
)
def second_residual_from_the_input(
    hidden, weights, num_heads, attention_mask=None, dropout_p=0.0, attention_dropout_p=0.0, training=False
):
    attended = _attend(hidden, weights, num_heads, attention_mask, attention_dropout_p, training)
    x = _norm(hidden + _drop(attended, dropout_p, training), weights, "attention_norm")
    return _norm(hidden + _drop(_feed(x, weights), dropout_p, training), weights, "norm")


@encoder_layer.mistake(
    "attention and feed-forward side by side, both on the input", think="whose result does feed-forward work on?"
)
def side_by_side(
    hidden, weights, num_heads, attention_mask=None, dropout_p=0.0, attention_dropout_p=0.0, training=False
):
    attended = _attend(hidden, weights, num_heads, attention_mask, attention_dropout_p, training)
    x = _norm(hidden + _drop(attended, dropout_p, training), weights, "attention_norm")
    return _norm(x + _drop(_feed(hidden, weights), dropout_p, training), weights, "norm")


@encoder_layer.mistake("the first LayerNorm missing", think="how many “Norm” are there in one layer?")
def without_first_norm(
    hidden, weights, num_heads, attention_mask=None, dropout_p=0.0, attention_dropout_p=0.0, training=False
):
    attended = _attend(hidden, weights, num_heads, attention_mask, attention_dropout_p, training)
    x = hidden + _drop(attended, dropout_p, training)
    return _norm(x + _drop(_feed(x, weights), dropout_p, training), weights, "norm")


@encoder_layer.mistake("the second LayerNorm missing", think="how many “Norm” are there in one layer?")
def without_second_norm(
    hidden, weights, num_heads, attention_mask=None, dropout_p=0.0, attention_dropout_p=0.0, training=False
):
    attended = _attend(hidden, weights, num_heads, attention_mask, attention_dropout_p, training)
    x = _norm(hidden + _drop(attended, dropout_p, training), weights, "attention_norm")
    return x + _drop(_feed(x, weights), dropout_p, training)


@encoder_layer.mistake("one LayerNorm used in both places", think="which γ and β belong to the end of the layer?")
def one_norm_for_both(
    hidden, weights, num_heads, attention_mask=None, dropout_p=0.0, attention_dropout_p=0.0, training=False
):
    one = weights | {f"norm.{kind}": weights[f"attention_norm.{kind}"] for kind in ("weight", "bias")}
    return _layer(hidden, one, num_heads, attention_mask, dropout_p, attention_dropout_p, training)


@encoder_layer.mistake("the two LayerNorms exchanged", think="which of the two follows attention?")
def norms_exchanged(
    hidden, weights, num_heads, attention_mask=None, dropout_p=0.0, attention_dropout_p=0.0, training=False
):
    def other(x, weights, name):
        return _norm(x, weights, {"norm": "attention_norm", "attention_norm": "norm"}[name])

    return _layer(hidden, weights, num_heads, attention_mask, dropout_p, attention_dropout_p, training, norm=other)


@encoder_layer.mistake("eps = 1e-5, PyTorch's own, instead of BERT's 1e-12", think="what is the default of layer_norm?")
def eps_of_pytorch(
    hidden, weights, num_heads, attention_mask=None, dropout_p=0.0, attention_dropout_p=0.0, training=False
):
    def norm(x, weights, name):
        return _norm(x, weights, name, 1e-5)

    return _layer(hidden, weights, num_heads, attention_mask, dropout_p, attention_dropout_p, training, norm=norm)


@encoder_layer.mistake("a variance divided by D − 1", think="what does torch.var divide by unless told otherwise?")
def unbiased_variance(
    hidden, weights, num_heads, attention_mask=None, dropout_p=0.0, attention_dropout_p=0.0, training=False
):
    return _layer(
        hidden, weights, num_heads, attention_mask, dropout_p, attention_dropout_p, training, norm=_unbiased_norm
    )


@encoder_layer.mistake(
    "detached statistics in LayerNorm: the value is right, the gradient is not",
    think="if x grows, do mean and variance stay?",
)
def detached_statistics(
    hidden, weights, num_heads, attention_mask=None, dropout_p=0.0, attention_dropout_p=0.0, training=False
):
    return _layer(
        hidden, weights, num_heads, attention_mask, dropout_p, attention_dropout_p, training, norm=_detached_norm
    )


@encoder_layer.mistake("ReLU instead of GELU", think="what does GELU give for −1, and what does ReLU?")
def layer_with_relu(
    hidden, weights, num_heads, attention_mask=None, dropout_p=0.0, attention_dropout_p=0.0, training=False
):
    return _layer(hidden, weights, num_heads, attention_mask, dropout_p, attention_dropout_p, training, act=F.relu)


@encoder_layer.mistake(
    "the tanh approximation of GELU. Google's own code computes it so: no crime, but here erf is asked",
    think='which GELU does "gelu" mean in a config.json of Hugging Face?',
)
def layer_with_tanh_gelu(
    hidden, weights, num_heads, attention_mask=None, dropout_p=0.0, attention_dropout_p=0.0, training=False
):
    return _layer(hidden, weights, num_heads, attention_mask, dropout_p, attention_dropout_p, training, act=_tanh_gelu)


@encoder_layer.mistake("dropout forgotten after both sub-layers", think="what is dropout_p for?")
def hidden_dropout_forgotten(
    hidden, weights, num_heads, attention_mask=None, dropout_p=0.0, attention_dropout_p=0.0, training=False
):
    return _layer(hidden, weights, num_heads, attention_mask, 0.0, attention_dropout_p, training)


@encoder_layer.mistake("dropout forgotten after attention", think="how many sub-layers has a layer?")
def attended_dropout_forgotten(
    hidden, weights, num_heads, attention_mask=None, dropout_p=0.0, attention_dropout_p=0.0, training=False
):
    rates = (dropout_p, attention_dropout_p, training)
    return _layer(hidden, weights, num_heads, attention_mask, *rates, drops=(False, True))


@encoder_layer.mistake("dropout forgotten after feed-forward", think="how many sub-layers has a layer?")
def feed_forward_dropout_forgotten(
    hidden, weights, num_heads, attention_mask=None, dropout_p=0.0, attention_dropout_p=0.0, training=False
):
    rates = (dropout_p, attention_dropout_p, training)
    return _layer(hidden, weights, num_heads, attention_mask, *rates, drops=(True, False))


@encoder_layer.mistake(
    "attention_dropout_p never used: no dropout on the attention weights, or that of dropout_p",
    think="what is attention_dropout_p for?",
)
def attention_dropout_forgotten(
    hidden, weights, num_heads, attention_mask=None, dropout_p=0.0, attention_dropout_p=0.0, training=False
):
    return _layer(hidden, weights, num_heads, attention_mask, dropout_p, 0.0, training)


@encoder_layer.mistake("no dropout anywhere", think="what are the last three arguments for?")
def no_dropout_anywhere(
    hidden, weights, num_heads, attention_mask=None, dropout_p=0.0, attention_dropout_p=0.0, training=False
):
    return _layer(hidden, weights, num_heads, attention_mask, 0.0, 0.0, False)


@encoder_layer.mistake(
    "dropout after the residual: it drops the input as well",
    think="with dropout_p = 1, should the token itself be lost?",
)
def dropout_after_the_residual(
    hidden, weights, num_heads, attention_mask=None, dropout_p=0.0, attention_dropout_p=0.0, training=False
):
    attended = _attend(hidden, weights, num_heads, attention_mask, attention_dropout_p, training)
    x = _norm(_drop(hidden + attended, dropout_p, training), weights, "attention_norm")
    return _norm(_drop(x + _feed(x, weights), dropout_p, training), weights, "norm")


@encoder_layer.mistake("dropout after LayerNorm", think="with dropout_p = 1, should the token itself be lost?")
def dropout_after_the_norm(
    hidden, weights, num_heads, attention_mask=None, dropout_p=0.0, attention_dropout_p=0.0, training=False
):
    attended = _attend(hidden, weights, num_heads, attention_mask, attention_dropout_p, training)
    x = _drop(_norm(hidden + attended, weights, "attention_norm"), dropout_p, training)
    return _drop(_norm(x + _feed(x, weights), weights, "norm"), dropout_p, training)


@encoder_layer.mistake(
    "dropout on the inner features instead of the output of feed-forward",
    think="with dropout_p = 1, may down.bias still be added?",
)
def dropout_inside_feed_forward(
    hidden, weights, num_heads, attention_mask=None, dropout_p=0.0, attention_dropout_p=0.0, training=False
):
    def act(x):
        return _drop(F.gelu(x), dropout_p, training)

    rates = (dropout_p, attention_dropout_p, training)
    return _layer(hidden, weights, num_heads, attention_mask, *rates, act=act, drops=(True, False))


@encoder_layer.mistake(
    "a fourth dropout, on the inner features of feed-forward",
    think="how many places does the picture of the layer show?",
)
def dropout_inside_too(
    hidden, weights, num_heads, attention_mask=None, dropout_p=0.0, attention_dropout_p=0.0, training=False
):
    def act(x):
        return _drop(F.gelu(x), dropout_p, training)

    return _layer(hidden, weights, num_heads, attention_mask, dropout_p, attention_dropout_p, training, act=act)


@encoder_layer.mistake(
    "dropout in evaluation too", think="what does F.dropout assume when it isn't told whether this is training?"
)
def dropout_in_evaluation(
    hidden, weights, num_heads, attention_mask=None, dropout_p=0.0, attention_dropout_p=0.0, training=False
):
    return _layer(hidden, weights, num_heads, attention_mask, dropout_p, attention_dropout_p, True)


@encoder_layer.mistake(
    "attention's dropout in evaluation too", think="does F.scaled_dot_product_attention know whether you are training?"
)
def attention_dropout_in_evaluation(
    hidden, weights, num_heads, attention_mask=None, dropout_p=0.0, attention_dropout_p=0.0, training=False
):
    def attend(hidden, weights, num_heads, mask, p, training):
        return _attend(hidden, weights, num_heads, mask, p, True)

    return _layer(hidden, weights, num_heads, attention_mask, dropout_p, attention_dropout_p, training, attend=attend)


@encoder_layer.mistake("the two dropout rates exchanged", think="which of the two is for attention's weights?")
def rates_exchanged(
    hidden, weights, num_heads, attention_mask=None, dropout_p=0.0, attention_dropout_p=0.0, training=False
):
    return _layer(hidden, weights, num_heads, attention_mask, attention_dropout_p, dropout_p, training)


@encoder_layer.mistake(
    "attention's dropout on the scores, before softmax", think="what share does a score of 0 get?"
)  # fmt: skip
def dropout_on_the_scores(
    hidden, weights, num_heads, attention_mask=None, dropout_p=0.0, attention_dropout_p=0.0, training=False
):
    def attend(hidden, weights, num_heads, mask, p, training):
        def hide(scores, mask):
            return _drop(scores, p, training) + (1 - mask[:, None, None, :].to(scores.dtype)) * -1e9

        mask = torch.ones(hidden.shape[:2], device=hidden.device) if mask is None else mask
        return _attend(hidden, weights, num_heads, mask, hide=hide)

    return _layer(hidden, weights, num_heads, attention_mask, dropout_p, attention_dropout_p, training, attend=attend)


@encoder_layer.mistake(
    "attention's dropout on the context instead of the weights",
    think="should a query miss one feature, or one token?",
)
def dropout_on_the_context(
    hidden, weights, num_heads, attention_mask=None, dropout_p=0.0, attention_dropout_p=0.0, training=False
):
    def attend(hidden, weights, num_heads, mask, p, training):
        return _attend(hidden, weights, num_heads, mask, drop=lambda ratios, value: _drop(ratios @ value, p, training))

    return _layer(hidden, weights, num_heads, attention_mask, dropout_p, attention_dropout_p, training, attend=attend)


@encoder_layer.mistake(
    "the mask never used, or put on the queries, where it moves all scores of a row alike",
    think="rows look, columns are looked at: who is to be hidden?",
)
def mask_ignored(
    hidden, weights, num_heads, attention_mask=None, dropout_p=0.0, attention_dropout_p=0.0, training=False
):
    return _layer(hidden, weights, num_heads, None, dropout_p, attention_dropout_p, training)


def _hiding(hide):
    def attend(hidden, weights, num_heads, mask, p, training):
        return _attend(hidden, weights, num_heads, mask, p, training, hide=hide)

    return attend


@encoder_layer.mistake("the scores multiplied by the mask", think="what does softmax make of a score of 0?")
def mask_multiplied(
    hidden, weights, num_heads, attention_mask=None, dropout_p=0.0, attention_dropout_p=0.0, training=False
):
    attend = _hiding(lambda scores, mask: scores * mask[:, None, None, :])
    rates = (dropout_p, attention_dropout_p, training)
    return _layer(hidden, weights, num_heads, attention_mask, *rates, attend=attend)


@encoder_layer.mistake(
    "the rows of padded tokens hidden instead of their columns",
    think="rows look, columns are looked at: who is to be hidden?",
)
def mask_on_the_rows(
    hidden, weights, num_heads, attention_mask=None, dropout_p=0.0, attention_dropout_p=0.0, training=False
):
    attend = _hiding(lambda scores, mask: scores.masked_fill(mask[:, None, :, None] == 0, -1e9))
    rates = (dropout_p, attention_dropout_p, training)
    return _layer(hidden, weights, num_heads, attention_mask, *rates, attend=attend)


@encoder_layer.mistake(
    "the mask added to the scores as 1 and 0", think="by what factor does adding 1 to a score change a weight?"
)
def mask_added_as_one_and_zero(
    hidden, weights, num_heads, attention_mask=None, dropout_p=0.0, attention_dropout_p=0.0, training=False
):
    attend = _hiding(lambda scores, mask: scores + mask[:, None, None, :])
    return _layer(hidden, weights, num_heads, attention_mask, dropout_p, attention_dropout_p, training, attend=attend)


@encoder_layer.mistake("an inverted mask: real tokens are hidden", think="what does a 1 in attention_mask mean?")
def mask_inverted(
    hidden, weights, num_heads, attention_mask=None, dropout_p=0.0, attention_dropout_p=0.0, training=False
):
    attend = _hiding(lambda scores, mask: scores - 1e9 * mask[:, None, None, :])
    return _layer(hidden, weights, num_heads, attention_mask, dropout_p, attention_dropout_p, training, attend=attend)


def _attending(**changes):
    def attend(hidden, weights, num_heads, mask, p, training):
        return _attend(hidden, weights, num_heads, mask, p, training, **changes)

    return attend


@encoder_layer.mistake(
    "heads made by view(B, H, S, d) without a transpose", think="which numbers lie side by side in memory?"
)
def heads_viewed(
    hidden, weights, num_heads, attention_mask=None, dropout_p=0.0, attention_dropout_p=0.0, training=False
):
    attend = _attending(split=lambda x: x.reshape(x.size(0), num_heads, x.size(1), -1))
    return _layer(hidden, weights, num_heads, attention_mask, dropout_p, attention_dropout_p, training, attend=attend)


@encoder_layer.mistake(
    "heads interleaved: head h takes every H-th feature",
    think="head h has the features from h · d to (h + 1) · d: which?",
)
def heads_interleaved(
    hidden, weights, num_heads, attention_mask=None, dropout_p=0.0, attention_dropout_p=0.0, training=False
):
    heads = "query", "key", "value"
    turned = dict(weights)
    order = torch.arange(hidden.size(2)).view(-1, num_heads).T.flatten()  # of the features, head by head
    for name in heads:
        turned |= {f"{name}.weight": weights[f"{name}.weight"][order], f"{name}.bias": weights[f"{name}.bias"][order]}
    turned["output.weight"] = weights["output.weight"][:, order]
    return _layer(hidden, turned, num_heads, attention_mask, dropout_p, attention_dropout_p, training)


@encoder_layer.mistake("GPT's mask: no token looks at what comes after it", think="which sides does BERT read?")
def causal(hidden, weights, num_heads, attention_mask=None, dropout_p=0.0, attention_dropout_p=0.0, training=False):
    length = hidden.size(1)
    ahead = torch.ones(length, length, dtype=torch.bool, device=hidden.device).triu(1)

    def hide(scores, mask):
        return scores.masked_fill(ahead | (mask[:, None, None, :] == 0), -1e9)

    mask = torch.ones(hidden.shape[:2], device=hidden.device) if attention_mask is None else attention_mask
    attend = _attending(hide=hide)
    return _layer(hidden, weights, num_heads, mask, dropout_p, attention_dropout_p, training, attend=attend)


@encoder_layer.mistake("query, key and value without their biases", think="what does a linear layer of BERT add?")
def without_projection_biases(
    hidden, weights, num_heads, attention_mask=None, dropout_p=0.0, attention_dropout_p=0.0, training=False
):
    bare = weights | {f"{name}.bias": 0 * weights[f"{name}.bias"] for name in ("query", "key", "value")}
    return _layer(hidden, bare, num_heads, attention_mask, dropout_p, attention_dropout_p, training)


@encoder_layer.mistake("feed-forward without its last bias", think="what are down.weight *and* down.bias for?")
def without_down_bias_in_the_layer(
    hidden, weights, num_heads, attention_mask=None, dropout_p=0.0, attention_dropout_p=0.0, training=False
):
    bare = weights | {"down.bias": 0 * weights["down.bias"]}
    return _layer(hidden, bare, num_heads, attention_mask, dropout_p, attention_dropout_p, training)


@encoder_layer.mistake(
    "dropout on what attention reads", think="which three places have dropout: in front of a sub-layer, or behind it?"
)
def attention_input_dropped(
    hidden, weights, num_heads, attention_mask=None, dropout_p=0.0, attention_dropout_p=0.0, training=False
):
    attended = _attend(
        _drop(hidden, dropout_p, training), weights, num_heads, attention_mask, attention_dropout_p, training
    )
    x = _norm(hidden + _drop(attended, dropout_p, training), weights, "attention_norm")
    return _norm(x + _drop(_feed(x, weights), dropout_p, training), weights, "norm")


@encoder_layer.mistake(
    "dropout on what feed-forward reads",
    think="which three places have dropout: in front of a sub-layer, or behind it?",
)
def feed_forward_input_dropped(
    hidden, weights, num_heads, attention_mask=None, dropout_p=0.0, attention_dropout_p=0.0, training=False
):
    attended = _attend(hidden, weights, num_heads, attention_mask, attention_dropout_p, training)
    x = _norm(hidden + _drop(attended, dropout_p, training), weights, "attention_norm")
    inner = _feed(_drop(x, dropout_p, training), weights)
    return _norm(x + _drop(inner, dropout_p, training), weights, "norm")


@encoder_layer.mistake("scores divided by √D instead of √d of one head", think="how many products are in one score?")
def scaled_by_model_width(
    hidden, weights, num_heads, attention_mask=None, dropout_p=0.0, attention_dropout_p=0.0, training=False
):
    attend = _attending(scale=math.sqrt(hidden.size(2)))
    return _layer(hidden, weights, num_heads, attention_mask, dropout_p, attention_dropout_p, training, attend=attend)


@encoder_layer.mistake("scores that are not scaled", think="how does the spread of a score grow with d?")
def not_scaled(hidden, weights, num_heads, attention_mask=None, dropout_p=0.0, attention_dropout_p=0.0, training=False):
    attend = _attending(scale=1.0)
    return _layer(hidden, weights, num_heads, attention_mask, dropout_p, attention_dropout_p, training, attend=attend)


@encoder_layer.mistake("key and value exchanged", think="with which of the two does a query meet?")
def key_and_value_exchanged(
    hidden, weights, num_heads, attention_mask=None, dropout_p=0.0, attention_dropout_p=0.0, training=False
):
    def attend(hidden, weights, num_heads, mask, p, training):
        return _attend(hidden, weights, num_heads, mask, p, training, names="qvk")

    return _layer(hidden, weights, num_heads, attention_mask, dropout_p, attention_dropout_p, training, attend=attend)


@encoder_layer.mistake(
    "heads merged without transposing back", think="which axis must stand beside d when heads become one vector?"
)
def merged_without_transposing(
    hidden, weights, num_heads, attention_mask=None, dropout_p=0.0, attention_dropout_p=0.0, training=False
):
    def attend(hidden, weights, num_heads, mask, p, training):
        query, key, value = (
            _linear(hidden, weights, name).unflatten(2, (num_heads, -1)).transpose(1, 2)
            for name in ("query", "key", "value")
        )
        scores = query @ key.mT / math.sqrt(query.size(-1))
        if mask is not None:
            scores = scores + (1 - mask[:, None, None, :].to(scores.dtype)) * -1e9
        context = _drop(scores.softmax(-1), p, training) @ value
        return _linear(context.reshape(hidden.shape), weights, "output")

    return _layer(hidden, weights, num_heads, attention_mask, dropout_p, attention_dropout_p, training, attend=attend)


@encoder_layer.mistake("softmax over the queries", think="which weights should add up to 1: a row's or a column's?")
def softmax_over_queries(
    hidden, weights, num_heads, attention_mask=None, dropout_p=0.0, attention_dropout_p=0.0, training=False
):
    def attend(hidden, weights, num_heads, mask, p, training):
        query, key, value = (
            _linear(hidden, weights, name).unflatten(2, (num_heads, -1)).transpose(1, 2)
            for name in ("query", "key", "value")
        )
        scores = query @ key.mT / math.sqrt(query.size(-1))
        if mask is not None:
            scores = scores + (1 - mask[:, None, None, :].to(scores.dtype)) * -1e9
        context = _drop(scores.softmax(-2), p, training) @ value
        return _linear(context.transpose(1, 2).flatten(2), weights, "output")

    return _layer(hidden, weights, num_heads, attention_mask, dropout_p, attention_dropout_p, training, attend=attend)


@encoder_layer.mistake("query and key exchanged", think="whose question does row i answer?")
def query_and_key_exchanged(
    hidden, weights, num_heads, attention_mask=None, dropout_p=0.0, attention_dropout_p=0.0, training=False
):
    attend = _attending(names="kqv")
    return _layer(hidden, weights, num_heads, attention_mask, dropout_p, attention_dropout_p, training, attend=attend)


@encoder_layer.mistake("one head, whatever num_heads says", think="what is num_heads for?")
def one_head(hidden, weights, num_heads, attention_mask=None, dropout_p=0.0, attention_dropout_p=0.0, training=False):
    return _layer(hidden, weights, 1, attention_mask, dropout_p, attention_dropout_p, training)


@encoder_layer.mistake(
    "the output projection of attention missing", think="what mixes what the heads have found?"
)  # fmt: skip
def without_output_projection(
    hidden, weights, num_heads, attention_mask=None, dropout_p=0.0, attention_dropout_p=0.0, training=False
):
    eye = torch.eye(hidden.size(2), dtype=hidden.dtype, device=hidden.device)
    plain = weights | {"output.weight": eye, "output.bias": torch.zeros_like(weights["output.bias"])}
    return _layer(hidden, plain, num_heads, attention_mask, dropout_p, attention_dropout_p, training)


@encoder_layer.mistake("the output projection's bias missing", think="how many tensors has one linear layer?")
def without_output_bias(
    hidden, weights, num_heads, attention_mask=None, dropout_p=0.0, attention_dropout_p=0.0, training=False
):
    plain = weights | {"output.bias": torch.zeros_like(weights["output.bias"])}
    return _layer(hidden, plain, num_heads, attention_mask, dropout_p, attention_dropout_p, training)


@encoder_layer.mistake("the feed-forward layer missing", think="what follows the first Add & Norm?")
def without_feed_forward(
    hidden, weights, num_heads, attention_mask=None, dropout_p=0.0, attention_dropout_p=0.0, training=False
):
    attended = _attend(hidden, weights, num_heads, attention_mask, attention_dropout_p, training)
    return _norm(hidden + _drop(attended, dropout_p, training), weights, "attention_norm")


@encoder_layer.mistake("the caller's hidden states changed in place", think="what does += do to the caller's tensor?")
def changed_in_place(
    hidden, weights, num_heads, attention_mask=None, dropout_p=0.0, attention_dropout_p=0.0, training=False
):
    attended = _attend(hidden, weights, num_heads, attention_mask, attention_dropout_p, training)
    with torch.no_grad():
        hidden.add_(_drop(attended, dropout_p, training))
    x = _norm(hidden, weights, "attention_norm")
    return _norm(x + _drop(_feed(x, weights), dropout_p, training), weights, "norm")


# ---------------------------------------------------------------- 06.3 encoder


class _Stack(nn.Module):
    """Right; what is below changes one thing."""

    def __init__(self, make_layer, num_layers):
        super().__init__()
        self.layers = nn.ModuleList([make_layer() for _ in range(num_layers)])

    def forward(self, hidden, attention_mask=None, all_states=False):
        states = [hidden]
        for layer in self.layers:
            states.append(layer(states[-1], attention_mask))
        return states if all_states else states[-1]


@Encoder.mistake(
    "one layer object used L times: [layer] * L holds the same one again and again",
    think="how many times is make_layer called?",
)
class OneObject(_Stack):
    def __init__(self, make_layer, num_layers):
        super().__init__(make_layer, 1)
        self.layers = nn.ModuleList([self.layers[0]] * num_layers)


@Encoder.mistake(
    "layers in a plain list or dictionary: .parameters(), .to() and .eval() do not find them",
    think="what does nn.ModuleList do that a list does not?",
)
class PlainList(_Stack):
    def __init__(self, make_layer, num_layers):
        nn.Module.__init__(self)
        self.layers = [make_layer() for _ in range(num_layers)]


@Encoder.mistake("make_layer itself in the list, not what it makes", think="what do round brackets after a name do?")
class NotCalled(_Stack):
    def __init__(self, make_layer, num_layers):
        nn.Module.__init__(self)
        self.layers = nn.ModuleList([make_layer for _ in range(num_layers)])


@Encoder.mistake(
    "one layer copied L times: all begin with the same weights", think="how many times is make_layer called?"
)
class Copies(_Stack):
    def __init__(self, make_layer, num_layers):
        nn.Module.__init__(self)
        first = make_layer()
        self.layers = nn.ModuleList(copy.deepcopy(first) for _ in range(num_layers))


@Encoder.mistake(
    "all states returned, also where only the last is asked for", think="what does all_states=False ask for?"
)
class AlwaysAllStates(_Stack):
    def forward(self, hidden, attention_mask=None, all_states=False):
        return super().forward(hidden, attention_mask, True)


@Encoder.mistake(
    "layers made anew in every forward: nothing that is learned would stay", think="when should a weight be born?"
)
class MadeInForward(_Stack):
    def __init__(self, make_layer, num_layers):
        super().__init__(make_layer, 0)
        self.make_layer, self.count = make_layer, num_layers

    def forward(self, hidden, attention_mask=None, all_states=False):
        states = [hidden]
        for _ in range(self.count):
            states.append(self.make_layer().train(self.training)(states[-1], attention_mask))
        return states if all_states else states[-1]


@Encoder.mistake("the layers in reverse order", think="which layer is next to the embeddings?")
class Reversed(_Stack):
    def forward(self, hidden, attention_mask=None, all_states=False):
        states = [hidden]
        for layer in reversed(self.layers):
            states.append(layer(states[-1], attention_mask))
        return states if all_states else states[-1]


@Encoder.mistake("every layer gets the input, not what the layer before gave", think="what does layer 2 read?")
class SideBySide(_Stack):
    def forward(self, hidden, attention_mask=None, all_states=False):
        states = [hidden, *(layer(hidden, attention_mask) for layer in self.layers)]
        return states if all_states else states[-1]


@Encoder.mistake(
    "each state detached before the next layer: only the last layer learns",
    think="what does .detach() or .data cut off?",
)
class Detached(_Stack):
    def forward(self, hidden, attention_mask=None, all_states=False):
        states = [hidden]
        for layer in self.layers:
            states.append(layer(states[-1].detach(), attention_mask))
        return states if all_states else states[-1]


@Encoder.mistake("the last layer left out", think="how often is the loop's body run?")
class OneTooFew(_Stack):
    def forward(self, hidden, attention_mask=None, all_states=False):
        states = [hidden]
        for layer in self.layers[:-1]:
            states.append(layer(states[-1], attention_mask))
        return states if all_states else states[-1]


@Encoder.mistake("attention_mask not passed on to the layers", think="who keeps padding out in layer 5?")
class MaskForgotten(_Stack):
    def forward(self, hidden, attention_mask=None, all_states=False):
        return super().forward(hidden, None, all_states)


@Encoder.mistake("attention_mask passed on to the first layer alone", think="who keeps padding out in layer 5?")
class MaskForTheFirst(_Stack):
    def forward(self, hidden, attention_mask=None, all_states=False):
        states = [hidden]
        for layer in self.layers:
            states.append(layer(states[-1], attention_mask if len(states) == 1 else None))
        return states if all_states else states[-1]


@Encoder.mistake("a residual around each layer again", think="who adds the input: the layer or the stack?")
class ResidualAgain(_Stack):
    def forward(self, hidden, attention_mask=None, all_states=False):
        states = [hidden]
        for layer in self.layers:
            states.append(states[-1] + layer(states[-1], attention_mask))
        return states if all_states else states[-1]


@Encoder.mistake(
    "a LayerNorm after the last layer, as in GPT-2", think="where is the LayerNorm of a post-LN layer already?"
)
class NormAtTheEnd(_Stack):
    def forward(self, hidden, attention_mask=None, all_states=False):
        states = super().forward(hidden, attention_mask, True)
        states[-1] = F.layer_norm(states[-1], hidden.shape[-1:])
        return states if all_states else states[-1]


@Encoder.mistake("all states without the input, the first of them", think="which state is number 0?")
class WithoutTheInput(_Stack):
    def forward(self, hidden, attention_mask=None, all_states=False):
        states = super().forward(hidden, attention_mask, True)
        return states[1:] if all_states else states[-1]


@Encoder.mistake("all states without the last", think="when does a state go into the list: before its layer, or after?")
class WithoutTheLast(_Stack):
    def forward(self, hidden, attention_mask=None, all_states=False):
        states = super().forward(hidden, attention_mask, True)
        return states[:-1] if all_states else states[-1]


@Encoder.mistake(
    "states kept on self: the list grows with every call", think="where should a list begin that belongs to one call?"
)
class StatesOnSelf(_Stack):
    def __init__(self, make_layer, num_layers):
        super().__init__(make_layer, num_layers)
        self.states = []

    def forward(self, hidden, attention_mask=None, all_states=False):
        states = super().forward(hidden, attention_mask, True)
        self.states.extend(states)
        return self.states if all_states else states[-1]


@Encoder.mistake("all_states ignored: only the last comes back", think="what is all_states for?")
class LastStateAlone(_Stack):
    def forward(self, hidden, attention_mask=None, all_states=False):
        return super().forward(hidden, attention_mask)


@Encoder.mistake("no gradient: the stack runs under no_grad", think="is forward used in training, too?")
class NoGradient(_Stack):
    def forward(self, hidden, attention_mask=None, all_states=False):
        states = super().forward(hidden, attention_mask, True)
        states = [state.detach() + 0 * hidden for state in states]
        zero = sum(p.sum() for p in self.parameters()) * 0  # a graph, but nothing flows through it
        states[-1] = states[-1] + zero
        return states if all_states else states[-1]


@Encoder.mistake("train() cut off: the layers are put into eval mode for ever", think="who decides about the mode?")
class AlwaysEval(_Stack):
    def forward(self, hidden, attention_mask=None, all_states=False):
        for layer in self.layers:
            layer.eval()
        return super().forward(hidden, attention_mask, all_states)


# ---------------------------------------------------------------- 06.4 pooler


@pooler.mistake("the mean of all tokens instead of the first", think="which token was trained to speak for the text?")
def mean_of_tokens(hidden, weights):
    return torch.tanh(F.linear(hidden.mean(1), weights["weight"], weights["bias"]))


@pooler.mistake("the last token instead of the first", think="where does [CLS] stand?")
def last_token(hidden, weights):
    return torch.tanh(F.linear(hidden[:, -1], weights["weight"], weights["bias"]))


@pooler.mistake("the second token: counting from 1", think="which index has the first token?")
def second_token(hidden, weights):
    return torch.tanh(F.linear(hidden[:, 1], weights["weight"], weights["bias"]))


@pooler.mistake("the largest value of each feature over the tokens", think="is this BERT's pooler, or max pooling?")
def max_of_tokens(hidden, weights):
    return torch.tanh(F.linear(hidden.amax(1), weights["weight"], weights["bias"]))


@pooler.mistake("the first text of the batch instead of the first token of each", think="which axis counts the texts?")
def first_of_the_batch(hidden, weights):
    return torch.tanh(F.linear(hidden[0], weights["weight"], weights["bias"]))


@pooler.mistake("all tokens, not only the first", think="how many vectors does a text need here?")
def every_token(hidden, weights):
    return torch.tanh(F.linear(hidden, weights["weight"], weights["bias"]))


@pooler.mistake("the raw [CLS]: neither dense layer nor tanh", think="what are the weights for?")
def raw_cls(hidden, weights):
    return hidden[:, 0]


@pooler.mistake("no tanh", think="between which two numbers should every feature lie?")
def without_tanh(hidden, weights):
    return F.linear(hidden[:, 0], weights["weight"], weights["bias"])


@pooler.mistake("no dense layer", think="what are the weights for?")
def without_dense(hidden, weights):
    return hidden[:, 0].tanh()


@pooler.mistake("tanh before the dense layer", think="between which two numbers should every feature lie?")
def tanh_first(hidden, weights):
    return F.linear(hidden[:, 0].tanh(), weights["weight"], weights["bias"])


@pooler.mistake("a sigmoid instead of tanh", think="may a feature of the result be negative?")
def sigmoid_for_tanh(hidden, weights):
    return torch.sigmoid(F.linear(hidden[:, 0], weights["weight"], weights["bias"]))


@pooler.mistake("GELU instead of tanh", think="between which two numbers should every feature lie?")
def gelu_for_tanh(hidden, weights):
    return F.gelu(F.linear(hidden[:, 0], weights["weight"], weights["bias"]))


@pooler.mistake("the bias missing", think="how many tensors has one linear layer?")
def pooler_without_bias(hidden, weights):
    return torch.tanh(hidden[:, 0] @ weights["weight"].mT)


@pooler.mistake("x @ W instead of x @ Wᵀ", think="torch keeps a weight as (out, in): along which axis do you sum?")
def pooler_not_transposed(hidden, weights):
    return torch.tanh(hidden[:, 0] @ weights["weight"] + weights["bias"])


@pooler.mistake("an axis of length 1 kept: (B, 1, D)", think="what does hidden[:, :1] keep that hidden[:, 0] does not?")
def axis_kept(hidden, weights):
    return torch.tanh(F.linear(hidden[:, :1], weights["weight"], weights["bias"]))


@pooler.mistake("a detached [CLS]: no gradient reaches the encoder", think="what does .detach() or .data cut off?")
def detached_cls(hidden, weights):
    return torch.tanh(F.linear(hidden[:, 0].detach(), weights["weight"], weights["bias"]))


# ---------------------------------------------------------------- 06.5 count parameters


def _count(size, *, tables=1, layer=None, once=None):
    v, d, count, _, f, p, t = size
    layer = 4 * (d * d + d) + 2 * d * f + f + d + 4 * d if layer is None else layer
    return tables * (v + p + t) * d + count * layer + (d * d + 3 * d if once is None else once)


def _unpack(size):
    """D, F and one layer's number."""
    d, f = size[1], size[4]
    return d, f, 4 * (d * d + d) + 2 * d * f + f + d + 4 * d


def _wrong_count(looks, think):
    """The signature with its seven sizes once, for mistakes that are one line each."""

    def add(function):
        def counted(vocab_size, hidden_size, num_hidden_layers, num_attention_heads, intermediate_size,
                    max_position_embeddings, type_vocab_size):  # fmt: skip
            return function(
                (vocab_size, hidden_size, num_hidden_layers, num_attention_heads, intermediate_size,
                 max_position_embeddings, type_vocab_size)
            )  # fmt: skip

        counted.__name__ = function.__name__
        return count_parameters.mistake(looks, think=think)(counted)

    return add


@_wrong_count("the biases of the linear layers forgotten", "how many tensors has one linear layer?")
def biases_forgotten(size):
    d, f, layer = _unpack(size)
    return _count(size, layer=layer - 5 * d - f, once=d * d + 2 * d)


@_wrong_count("the biases of query, key and value forgotten", "in BERT every linear layer has a bias")
def attention_biases_forgotten(size):
    d, _, layer = _unpack(size)
    return _count(size, layer=layer - 3 * d)


@_wrong_count("all LayerNorms forgotten", "what is learned in a LayerNorm?")
def norms_forgotten(size):
    d, _, layer = _unpack(size)
    return _count(size, layer=layer - 4 * d, once=d * d + d)


@_wrong_count("γ without β", "what is learned in a LayerNorm?")
def gamma_alone(size):
    d, _, layer = _unpack(size)
    return _count(size, layer=layer - 2 * d, once=d * d + 2 * d)


@_wrong_count("one LayerNorm a layer", "how many “Add & Norm” are there in one layer?")
def one_norm_a_layer(size):
    d, _, layer = _unpack(size)
    return _count(size, layer=layer - 2 * d)


@_wrong_count("the LayerNorm of the embeddings forgotten", "what follows the sum of the three vectors?")
def embeddings_norm_forgotten(size):
    d, *_ = _unpack(size)
    return _count(size, once=d * d + d)


@_wrong_count("a LayerNorm of its own for each of the three tables", "what is normalised, the parts or the sum?")
def three_embedding_norms(size):
    d, *_ = _unpack(size)
    return _count(size, once=d * d + d + 6 * d)


@_wrong_count("the pooler forgotten", "which dense layer does the [CLS] pass at the end?")
def pooler_forgotten(size):
    return _count(size, once=2 * size[1])


@_wrong_count("the pooler in every layer", "how often does a text pass the pooler?")
def pooler_in_every_layer(size):
    d, _, layer = _unpack(size)
    return _count(size, layer=layer + d * d + d, once=2 * d)


@_wrong_count("one matrix for query, key and value together of D × D", "how many vectors come out of the three?")
def one_projection_for_three(size):
    d, _, layer = _unpack(size)
    return _count(size, layer=layer - 2 * (d * d + d))


@_wrong_count("attention's output projection forgotten", "what mixes what the heads have found?")
def output_projection_forgotten(size):
    d, _, layer = _unpack(size)
    return _count(size, layer=layer - d * d - d)


@_wrong_count("projections of D × D for each head", "how many features does one head have?")
def projections_for_each_head(size):
    d, _, layer = _unpack(size)
    return _count(size, layer=layer + 3 * (size[3] - 1) * (d * d + d))


@_wrong_count(
    "the decoder's bias of the masked language model counted too", "does “without any head” leave a bias for each word?"
)
def decoder_bias_counted(size):
    return _count(size) + size[0]


@_wrong_count("the two scores of the next-sentence head counted too", "does “without any head” leave a classifier?")
def next_sentence_counted(size):
    return _count(size) + 2 * size[1] + 2


@_wrong_count("position_ids counted too", "is 0, 1, 2, … learned?")
def position_ids_counted(size):
    return _count(size) + size[5]


@_wrong_count("one matrix for up and down", "may a weight be used twice because its shape fits when turned?")
def up_and_down_shared(size):
    d, f, layer = _unpack(size)
    return _count(size, layer=layer - d * f)


@_wrong_count("F taken for 4 · D, whatever intermediate_size says", "which argument was not used?")
def inner_is_four_times(size):
    return _count((*size[:4], 4 * size[1], *size[5:]))


@_wrong_count("512 places, whatever max_position_embeddings says", "which argument was not used?")
def always_512_places(size):
    return _count((*size[:5], 512, size[6]))


@_wrong_count("the table of places forgotten", "how many tables make up a token's input?")
def places_forgotten(size):
    return _count((*size[:5], 0, size[6]))


@_wrong_count("the table of segments forgotten", "how many tables make up a token's input?")
def segments_forgotten(size):
    return _count((*size[:6], 0))


@_wrong_count(
    "the masked-LM decoder counted too: it is the word table over again", "is a matrix that is used twice stored twice?"
)
def tied_decoder_counted(size):
    d, v = size[1], size[0]
    return _count(size, once=d * d + 3 * d + v * d + v)


@_wrong_count("one layer, not L", "how many layers are there?")
def one_layer(size):
    return _count((*size[:2], 1, *size[3:]))


@_wrong_count("the paper's rounded number", "can a model have exactly 110,000,000 parameters?")
def rounded_to_millions(size):
    return round(_count(size), -6) or 110_000_000


# ---------------------------------------------------------------- 06.6 load weights


def _tidy(name):
    name = re.sub(r"\.gamma$", ".weight", name.removeprefix("bert."))
    return re.sub(r"\.beta$", ".bias", name)


def _left_out(name):
    return name == "embeddings.position_ids" or name.startswith("cls.")


def _load(state, wanted, *, tidy=_tidy, left_out=_left_out, missing=True, unexpected=True, shapes=True,
          say=lambda names: ", ".join(sorted(names)), error=ValueError,
          same=lambda a, b: tuple(a) == tuple(b)):  # fmt: skip
    """Right, except for what a mistake below passes in."""
    found = {tidy(name): tensor for name, tensor in state.items() if not left_out(tidy(name))}
    names = {theirs for theirs, _, _ in wanted}
    if missing and names - found.keys():
        raise error(f"missing: {say(names - found.keys())}")
    if unexpected and found.keys() - names:
        raise error(f"not expected: {say(found.keys() - names)}")
    wrong = [theirs for theirs, _, shape in wanted if theirs in found and not same(found[theirs].shape, shape)]
    if shapes and wrong:
        raise error(f"wrong shape: {say(wrong)}")
    return {ours: found[theirs] for theirs, ours, _ in wanted if theirs in found}


@load_weights.mistake("the prefix “bert.” not removed", think="which names come from a file with a head?")
def prefix_kept(state, wanted):
    return _load(state, wanted, tidy=lambda name: re.sub(r"\.beta$", ".bias", re.sub(r"\.gamma$", ".weight", name)))


@load_weights.mistake(
    "“bert.” removed everywhere, not only at the beginning", think="what does replace do in the middle of a name?"
)
def prefix_replaced_everywhere(state, wanted):
    return _load(state, wanted, tidy=lambda name: _tidy(name).replace("bert.", ""))


@load_weights.mistake(
    "“bert.” expected in every name: five letters cut from names without it", think="is the prefix always there?"
)
def five_letters_cut(state, wanted):
    return _load(state, wanted, tidy=lambda name: _tidy(name[5:]))


@load_weights.mistake(
    "lstrip(“bert.”), which takes letters and no word", think="what does 'tree'.lstrip('bert.') leave?"
)
def letters_stripped(state, wanted):
    return _load(state, wanted, tidy=lambda name: _tidy(name.lstrip("bert.")))


@load_weights.mistake("gamma and beta not translated", think="what were weight and bias of LayerNorm called in 2018?")
def old_names_unknown(state, wanted):
    return _load(state, wanted, tidy=lambda name: name.removeprefix("bert."))


@load_weights.mistake("gamma and beta exchanged", think="which of the two multiplies?")
def old_names_exchanged(state, wanted):
    def tidy(name):
        name = re.sub(r"\.gamma$", ".bias", name.removeprefix("bert."))
        return re.sub(r"\.beta$", ".weight", name)

    return _load(state, wanted, tidy=tidy)


@load_weights.mistake(
    "gamma and beta translated in the middle of a name", think="at which end of the name do they stand?"
)
def old_names_everywhere(state, wanted):
    return _load(state, wanted, tidy=lambda name: _tidy(name).replace("gamma", "weight").replace("beta", "bias"))


@load_weights.mistake(
    "position_ids taken for an unexpected tensor", think="does a list 0, 1, 2 … hold anything that was learned?"
)
def position_ids_unexpected(state, wanted):
    return _load(state, wanted, left_out=lambda name: name.startswith("cls."))


@load_weights.mistake("every name with “cls” in it left out", think="where in a name does the head's cls. stand?")
def cls_anywhere(state, wanted):
    return _load(state, wanted, left_out=lambda name: name == "embeddings.position_ids" or "cls" in name)


@load_weights.mistake(
    "every name with “position” in it left out", think="is the table of positions learned, or a list 0, 1, 2 …?"
)
def positions_left_out(state, wanted):
    return _load(state, wanted, left_out=lambda name: "position" in name or name.startswith("cls."))


@load_weights.mistake("the heads (cls. …) taken for unexpected tensors", think="whose are the names with cls.?")
def heads_unexpected(state, wanted):
    return _load(state, wanted, left_out=lambda name: name == "embeddings.position_ids")


@load_weights.mistake(
    "strict=False: missing tensors are passed over in silence", think="what values would those tensors have?"
)
def missing_passed_over(state, wanted):
    return _load(state, wanted, missing=False)


@load_weights.mistake(
    "tensors that find no place are passed over in silence", think="what if the file is of a deeper model?"
)
def unexpected_passed_over(state, wanted):
    return _load(state, wanted, unexpected=False)


@load_weights.mistake("strict=False: nothing is checked but shapes", think="what would a typing mistake in a name do?")
def not_strict(state, wanted):
    return _load(state, wanted, missing=False, unexpected=False)


@load_weights.mistake("shapes not compared", think="what if the file is of a wider model?")
def shapes_passed_over(state, wanted):
    return _load(state, wanted, shapes=False)


@load_weights.mistake("numbers of entries compared instead of shapes", think="is (6, 9) the same as (9, 6)?")
def entries_counted(state, wanted):
    return _load(state, wanted, same=lambda a, b: math.prod(a) == math.prod(b))


@load_weights.mistake("only the number of axes compared", think="is (6, 6) the same as (3, 6)?")
def axes_counted(state, wanted):
    return _load(state, wanted, same=lambda a, b: len(a) == len(b))


@load_weights.mistake("only the first axis compared", think="is (6, 3) the same as (6, 6)?")
def first_axis_compared(state, wanted):
    return _load(state, wanted, same=lambda a, b: a[0] == b[0])


@load_weights.mistake("a ValueError that names no tensor", think="what would you want to read at two in the morning?")
def nameless_error(state, wanted):
    return _load(state, wanted, say=lambda names: f"{len(names)} tensors")


@load_weights.mistake("a ValueError that names the first tensor alone", think="what of the others?")
def first_name_alone(state, wanted):
    return _load(state, wanted, say=lambda names: min(names))


@load_weights.mistake("a KeyError instead of a ValueError", think="which error did the task ask for?")
def key_error(state, wanted):
    return _load(state, wanted, error=KeyError)


@load_weights.mistake("the file's names kept", think="under which names will the model look for its weights?")
def their_names_kept(state, wanted):
    theirs = {ours: theirs for theirs, ours, _ in wanted}
    return {theirs[ours]: tensor for ours, tensor in _load(state, wanted).items()}


@load_weights.mistake(
    "tensors taken by their order, not by their name", think="does a dictionary keep the order of the model?"
)
def by_order(state, wanted):
    return dict(zip((ours for _, ours, _ in wanted), sorted_tensors(_load(state, wanted), wanted), strict=True))


def sorted_tensors(loaded, wanted):
    rows = sorted(wanted)
    return [loaded[ours] for _, ours, _ in rows]


@load_weights.mistake("the caller's state emptied by pop", think="may the caller still need the dictionary?")
def popped(state, wanted):
    loaded = _load(state, wanted)
    state.clear()
    return loaded


# ---------------------------------------------------------------- 06.7 bert


def _part(weights, prefix, names):
    return {f"{ours}.{kind}": weights[f"{prefix}{theirs}.{kind}"]
            for ours, theirs in names.items() for kind in ("weight", "bias")}  # fmt: skip


def _depth(weights):
    return sum(name.endswith("query.weight") for name in weights)


def _embed(ids, segments, weights, *, start=0, norm=_norm, table="token_type"):
    x = F.embedding(ids, weights["embeddings.word_embeddings.weight"])
    x = x + weights["embeddings.position_embeddings.weight"][start : start + ids.size(1)]
    if table:
        x = x + F.embedding(segments, weights[f"embeddings.{table}_embeddings.weight"])
    return norm(x, weights, "embeddings.LayerNorm")


def _whole(ids, segments, mask, weights, heads, *, x=None, numbers=None, layer=_layer, pool=None, names=OURS):
    """Right, except for what a mistake below passes in."""
    x = _embed(ids, segments, weights) if x is None else x
    for i in range(_depth(weights)) if numbers is None else numbers:
        x = layer(x, _part(weights, f"encoder.layer.{i}.", names), heads, mask, 0.0, 0.0, False)
    pool = pool or (lambda x: _linear(x[:, 0], weights, "pooler.dense").tanh())
    return x, pool(x)


@bert.mistake(
    "attention_mask and token_type_ids exchanged", think="which argument comes second in the function that you call?"
)
def mask_and_segments_exchanged(input_ids, token_type_ids, attention_mask, weights, num_heads):
    return _whole(input_ids, attention_mask, token_type_ids, weights, num_heads)


@bert.mistake("the mask used as segments", think="how many 1s should a text without a second sentence have?")
def mask_as_segments(input_ids, token_type_ids, attention_mask, weights, num_heads):
    return _whole(input_ids, attention_mask, attention_mask, weights, num_heads)


@bert.mistake("segments forgotten", think="how many tables make up a token's input?")
def bert_without_segments(input_ids, token_type_ids, attention_mask, weights, num_heads):
    x = _embed(input_ids, token_type_ids, weights, table=None)
    return _whole(input_ids, token_type_ids, attention_mask, weights, num_heads, x=x)


@bert.mistake("positions counted from 1", think="which row of the table does [CLS] get?")
def positions_from_one(input_ids, token_type_ids, attention_mask, weights, num_heads):
    x = _embed(input_ids, token_type_ids, weights, start=1)
    return _whole(input_ids, token_type_ids, attention_mask, weights, num_heads, x=x)


@bert.mistake("positions forgotten", think="how does the model know that “dog bites man” is not “man bites dog”?")
def bert_without_positions(input_ids, token_type_ids, attention_mask, weights, num_heads):
    key = "embeddings.position_embeddings.weight"
    return _whole(input_ids, token_type_ids, attention_mask, weights | {key: 0 * weights[key]}, num_heads)


@bert.mistake("no LayerNorm after the embeddings", think="what follows the sum of the three vectors?")
def embeddings_without_norm(input_ids, token_type_ids, attention_mask, weights, num_heads):
    x = _embed(input_ids, token_type_ids, weights, norm=lambda x, weights, name: x)
    return _whole(input_ids, token_type_ids, attention_mask, weights, num_heads, x=x)


@bert.mistake("eps = 1e-5 in the embeddings' LayerNorm", think="what is the default of layer_norm?")
def embeddings_eps_of_pytorch(input_ids, token_type_ids, attention_mask, weights, num_heads):
    x = _embed(input_ids, token_type_ids, weights, norm=lambda x, weights, name: _norm(x, weights, name, 1e-5))
    return _whole(input_ids, token_type_ids, attention_mask, weights, num_heads, x=x)


@bert.mistake("the mask never used", think="who keeps padding out?")
def bert_without_mask(input_ids, token_type_ids, attention_mask, weights, num_heads):
    return _whole(input_ids, token_type_ids, None, weights, num_heads)


@bert.mistake("an inverted mask: real tokens are hidden", think="what does a 1 in attention_mask mean?")
def bert_with_inverted_mask(input_ids, token_type_ids, attention_mask, weights, num_heads):
    return _whole(input_ids, token_type_ids, 1 - attention_mask, weights, num_heads)


@bert.mistake("the weights of layer 0 in every layer", think="where does the layer's number stand in a name?")
def first_layer_every_time(input_ids, token_type_ids, attention_mask, weights, num_heads):
    numbers = [0] * _depth(weights)
    return _whole(input_ids, token_type_ids, attention_mask, weights, num_heads, numbers=numbers)


@bert.mistake("the layers in reverse order", think="which layer is next to the embeddings?")
def layers_reversed(input_ids, token_type_ids, attention_mask, weights, num_heads):
    numbers = reversed(range(_depth(weights)))
    return _whole(input_ids, token_type_ids, attention_mask, weights, num_heads, numbers=numbers)


@bert.mistake("layers sorted as text: 0, 1, 10, 2 …", think="which comes first as text, “10” or “2”?")
def layers_sorted_as_text(input_ids, token_type_ids, attention_mask, weights, num_heads):
    numbers = sorted(map(str, range(_depth(weights))))
    return _whole(input_ids, token_type_ids, attention_mask, weights, num_heads, numbers=numbers)


@bert.mistake("layers in the order of the dictionary", think="does anything say that the file is in order?")
def layers_as_they_come(input_ids, token_type_ids, attention_mask, weights, num_heads):
    numbers = dict.fromkeys(name.split(".")[2] for name in weights if name.startswith("encoder."))
    return _whole(input_ids, token_type_ids, attention_mask, weights, num_heads, numbers=numbers)


@bert.mistake("the last layer left out", think="how many layers do the names tell of?")
def one_layer_too_few(input_ids, token_type_ids, attention_mask, weights, num_heads):
    numbers = range(_depth(weights) - 1)
    return _whole(input_ids, token_type_ids, attention_mask, weights, num_heads, numbers=numbers)


@bert.mistake("twelve layers, whatever the weights hold", think="what tells you how many layers there are?")
def always_twelve_layers(input_ids, token_type_ids, attention_mask, weights, num_heads):
    return _whole(input_ids, token_type_ids, attention_mask, weights, num_heads, numbers=range(12))


@bert.mistake(
    "the two LayerNorms of a layer exchanged", think="which is attention.output.LayerNorm, which output.LayerNorm?"
)
def layer_norms_exchanged(input_ids, token_type_ids, attention_mask, weights, num_heads):
    names = OURS | {"norm": OURS["attention_norm"], "attention_norm": OURS["norm"]}
    return _whole(input_ids, token_type_ids, attention_mask, weights, num_heads, names=names)


@bert.mistake("query and key exchanged", think="whose question does row i answer?")
def bert_with_query_for_key(input_ids, token_type_ids, attention_mask, weights, num_heads):
    names = OURS | {"query": OURS["key"], "key": OURS["query"]}
    return _whole(input_ids, token_type_ids, attention_mask, weights, num_heads, names=names)


def _pre_layer(x, weights, heads, mask, *rates):
    x = x + _attend(_norm(x, weights, "attention_norm"), weights, heads, mask)
    return x + _feed(_norm(x, weights, "norm"), weights)


@bert.mistake("pre-LN: LayerNorm before each sub-layer, as in GPT-2", think="Norm(x + f(x)) or x + f(Norm(x))?")
def bert_with_pre_norm(input_ids, token_type_ids, attention_mask, weights, num_heads):
    return _whole(input_ids, token_type_ids, attention_mask, weights, num_heads, layer=_pre_layer)


@bert.mistake("no residual at all", think="what does “Add” in “Add & Norm” add?")
def bert_without_residuals(input_ids, token_type_ids, attention_mask, weights, num_heads):
    def layer(x, weights, heads, mask, *rates):
        x = _norm(_attend(x, weights, heads, mask), weights, "attention_norm")
        return _norm(_feed(x, weights), weights, "norm")

    return _whole(input_ids, token_type_ids, attention_mask, weights, num_heads, layer=layer)


@bert.mistake("ReLU instead of GELU", think="what does GELU give for −1, and what does ReLU?")
def bert_with_relu(input_ids, token_type_ids, attention_mask, weights, num_heads):
    def layer(*args):
        return _layer(*args, act=F.relu)

    return _whole(input_ids, token_type_ids, attention_mask, weights, num_heads, layer=layer)


@bert.mistake(
    "the tanh approximation of GELU. Google's own code computes it so: no crime, but here erf is asked",
    think='which GELU does "gelu" mean in a config.json of Hugging Face?',
)
def bert_with_tanh_gelu(input_ids, token_type_ids, attention_mask, weights, num_heads):
    def layer(*args):
        return _layer(*args, act=_tanh_gelu)

    return _whole(input_ids, token_type_ids, attention_mask, weights, num_heads, layer=layer)


@bert.mistake("scores divided by √D instead of √d of one head", think="how many products are in one score?")
def bert_scaled_by_width(input_ids, token_type_ids, attention_mask, weights, num_heads):
    def layer(x, *args):
        return _layer(x, *args, attend=_attending(scale=math.sqrt(x.size(2))))

    return _whole(input_ids, token_type_ids, attention_mask, weights, num_heads, layer=layer)


@bert.mistake("one head, whatever num_heads says", think="what is num_heads for?")
def bert_with_one_head(input_ids, token_type_ids, attention_mask, weights, num_heads):
    return _whole(input_ids, token_type_ids, attention_mask, weights, 1)


@bert.mistake("a LayerNorm after the last layer, as in GPT-2", think="where is it in a post-LN layer already?")
def bert_with_final_norm(input_ids, token_type_ids, attention_mask, weights, num_heads):
    x, _ = _whole(input_ids, token_type_ids, attention_mask, weights, num_heads)
    x = _norm(x, weights, "embeddings.LayerNorm")
    return x, _linear(x[:, 0], weights, "pooler.dense").tanh()


@bert.mistake("the raw [CLS] as second result", think="what are pooler.dense.weight and its bias for?")
def bert_with_raw_cls(input_ids, token_type_ids, attention_mask, weights, num_heads):
    return _whole(input_ids, token_type_ids, attention_mask, weights, num_heads, pool=lambda x: x[:, 0])


@bert.mistake("a pooler without tanh", think="between which two numbers should every feature lie?")
def bert_pooled_without_tanh(input_ids, token_type_ids, attention_mask, weights, num_heads):
    def pool(x):
        return _linear(x[:, 0], weights, "pooler.dense")

    return _whole(input_ids, token_type_ids, attention_mask, weights, num_heads, pool=pool)


@bert.mistake("the last token pooled instead of [CLS]", think="where does [CLS] stand?")
def bert_pools_the_last(input_ids, token_type_ids, attention_mask, weights, num_heads):
    def pool(x):
        return _linear(x[:, -1], weights, "pooler.dense").tanh()

    return _whole(input_ids, token_type_ids, attention_mask, weights, num_heads, pool=pool)


@bert.mistake("the pooled vectors first, the states second", think="in which order are they asked for?")
def bert_results_exchanged(input_ids, token_type_ids, attention_mask, weights, num_heads):
    states, pooled = _whole(input_ids, token_type_ids, attention_mask, weights, num_heads)
    return pooled, states


@bert.mistake("the pooled vector alone", think="how many results are asked for?")
def bert_returns_pooled_alone(input_ids, token_type_ids, attention_mask, weights, num_heads):
    return _whole(input_ids, token_type_ids, attention_mask, weights, num_heads)[1]


@bert.mistake("no gradient: everything under torch.no_grad()", think="is this function used in training, too?")
def bert_without_gradient(input_ids, token_type_ids, attention_mask, weights, num_heads):
    with torch.no_grad():
        return _whole(input_ids, token_type_ids, attention_mask, weights, num_heads)
