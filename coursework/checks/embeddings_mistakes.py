"""What students really get wrong in unit 02, as code: each must be rejected and called by its name."""

import torch
import torch.nn.functional as F

from coursework.checks.embeddings import build_inputs, embeddings, layer_norm, pad_batch

# ---------------------------------------------------------------- 02.1 LayerNorm


def _normalised(x, eps, correction=0, dim=-1):
    """(x − mean) / √(variance + eps), for the mistakes that get this part right."""
    variance, mean = torch.var_mean(x, dim, correction=correction, keepdim=True)
    return (x - mean) / torch.sqrt(variance + eps)


@layer_norm.mistake(
    "the variance divided by D − 1 (torch.var's own default)", think="is this a guess from a sample, or all there is?"
)
def unbiased_variance(x, weight, bias, eps=1e-12):
    return weight * _normalised(x, eps, correction=1) + bias


@layer_norm.mistake(
    "eps added to the deviation, outside the root", think="√(1e-12) is 1e-6: which of the two is safer?"
)
def eps_outside_the_root(x, weight, bias, eps=1e-12):
    deviation, mean = torch.std_mean(x, -1, correction=0, keepdim=True)
    return weight * (x - mean) / (deviation + eps) + bias


@layer_norm.mistake("√eps beside √variance: two roots", think="does the root stand over the sum, or over each part?")
def root_of_each(x, weight, bias, eps=1e-12):
    deviation, mean = torch.std_mean(x, -1, correction=0, keepdim=True)
    return weight * (x - mean) / (deviation + eps**0.5) + bias


@layer_norm.mistake("eps squared under the root", think="is eps a deviation or a variance?")
def eps_squared(x, weight, bias, eps=1e-12):
    return weight * _normalised(x, eps**2) + bias


@layer_norm.mistake(
    "eps as the least variance (max or clamp) instead of added to it", think="what does + do that max does not?"
)
def variance_clamped(x, weight, bias, eps=1e-12):
    variance, mean = torch.var_mean(x, -1, correction=0, keepdim=True)
    return weight * (x - mean) / torch.sqrt(torch.clamp(variance, min=eps)) + bias


@layer_norm.mistake(
    "eps only where the variance is 0", think="does the formula add eps to some tokens, or to all of them?"
)
def eps_for_zero_alone(x, weight, bias, eps=1e-12):
    variance, mean = torch.var_mean(x, -1, correction=0, keepdim=True)
    return weight * (x - mean) / torch.sqrt(torch.where(variance == 0, eps, variance)) + bias


@layer_norm.mistake(
    "torch's std (D − 1) with eps outside the root, as in a well-known tutorial",
    think="which two lines differ from the formula?",
)
def unbiased_and_outside(x, weight, bias, eps=1e-12):
    return weight * (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + eps) + bias


@layer_norm.mistake(
    "eps fixed at 1e-5, torch's default, whatever the caller says", think="what is the argument eps for?"
)
def eps_of_torch(x, weight, bias, eps=1e-12):
    return weight * _normalised(x, 1e-5) + bias


@layer_norm.mistake(
    "a default eps of 1e-5, which is torch's and not BERT's", think="which default does the task ask for?"
)
def default_of_torch(x, weight, bias, eps=1e-5):
    return weight * _normalised(x, eps) + bias


@layer_norm.mistake(
    "a default eps of 1e-6, as in a well-known tutorial, not BERT's", think="which default does the task ask for?"
)
def default_of_a_tutorial(x, weight, bias, eps=1e-6):
    return weight * _normalised(x, eps) + bias


@layer_norm.mistake("eps fixed at 1e-12, whatever the caller says", think="what is the argument eps for?")
def eps_ignored(x, weight, bias, eps=1e-12):
    return weight * _normalised(x, 1e-12) + bias


@layer_norm.mistake("no eps at all", think="what if all features of a token are equal?")
def no_eps(x, weight, bias, eps=1e-12):
    return weight * _normalised(x, 0.0) + bias


@layer_norm.mistake("eps added twice", think="how many eps has the formula?")
def eps_twice(x, weight, bias, eps=1e-12):
    return weight * _normalised(x, 2 * eps) + bias


@layer_norm.mistake("weight and bias forgotten", think="what do the two learned vectors do after the division?")
def no_weight_and_bias(x, weight, bias, eps=1e-12):
    return _normalised(x, eps) + 0 * (weight + bias)


@layer_norm.mistake("the bias forgotten", think="where does each feature's new zero come from?")
def no_bias(x, weight, bias, eps=1e-12):
    return weight * _normalised(x, eps) + 0 * bias


@layer_norm.mistake("the weight forgotten", think="where does each feature's new spread come from?")
def no_weight(x, weight, bias, eps=1e-12):
    return _normalised(x, eps) + bias + 0 * weight


@layer_norm.mistake("the bias added before the weight multiplies", think="which comes last?")
def bias_before_weight(x, weight, bias, eps=1e-12):
    return weight * (_normalised(x, eps) + bias)


@layer_norm.mistake("weight and bias swapped", think="which of the two starts at 1, and which at 0?")
def weight_and_bias_swapped(x, weight, bias, eps=1e-12):
    return bias * _normalised(x, eps) + weight


@layer_norm.mistake("1 + weight as the scale", think="the weight starts at 1: which scale would that give?")
def weight_plus_one(x, weight, bias, eps=1e-12):
    return (1 + weight) * _normalised(x, eps) + bias


@layer_norm.mistake(
    "weight and bias copied (nn.Parameter, .data, detach): no gradient reaches the caller's own",
    think="whose weight is to learn: the one that was handed in, or a new one?",
)
def weight_and_bias_copied(x, weight, bias, eps=1e-12):
    return weight.detach() * _normalised(x, eps) + bias.detach()


@layer_norm.mistake("the mean taken as a constant (detached)", think="does the mean change when one feature changes?")
def mean_detached(x, weight, bias, eps=1e-12):
    variance = x.var(-1, correction=0, keepdim=True)
    return weight * (x - x.mean(-1, keepdim=True).detach()) / torch.sqrt(variance + eps) + bias


@layer_norm.mistake("the deviation taken as a constant (detached)", think="does the spread change with a feature?")
def deviation_detached(x, weight, bias, eps=1e-12):
    deviation = torch.sqrt(x.var(-1, correction=0, keepdim=True) + eps).detach()
    return weight * (x - x.mean(-1, keepdim=True)) / deviation + bias


@layer_norm.mistake(
    "mean and deviation taken as constants (detached or under no_grad)",
    think="moving x by a constant changes nothing: what must its gradient then sum to?",
)
def statistics_detached(x, weight, bias, eps=1e-12):
    with torch.no_grad():
        variance, mean = torch.var_mean(x, -1, correction=0, keepdim=True)
    return weight * (x - mean) / torch.sqrt(variance + eps) + bias


@layer_norm.mistake(
    "computed on numbers without a gradient (.data, .detach())", think="how would the layers below learn?"
)
def no_gradient(x, weight, bias, eps=1e-12):
    return weight * _normalised(x.detach(), eps) + bias


@layer_norm.mistake(
    "BatchNorm: each feature normalised over the batch", think="may a token depend on the other texts in its batch?"
)
def over_the_batch(x, weight, bias, eps=1e-12):
    return weight * _normalised(x, eps, dim=0) + bias


@layer_norm.mistake(
    "one mean and one deviation for a whole text, not for each token",
    think="would padding then change the real tokens?",
)
def over_the_text(x, weight, bias, eps=1e-12):
    return weight * _normalised(x, eps, dim=(-2, -1)) + bias


@layer_norm.mistake(
    "one mean and one deviation for all axes but the first", think="may one token change another's features here?"
)
def over_all_but_the_first(x, weight, bias, eps=1e-12):
    return weight * _normalised(x, eps, dim=tuple(range(1, x.dim()))) + bias


@layer_norm.mistake("one mean and one deviation for everything", think="which axis holds one token's features?")
def over_everything(x, weight, bias, eps=1e-12):
    return weight * _normalised(x, eps, dim=tuple(range(x.dim()))) + bias


@layer_norm.mistake("dim=1, whatever the number of axes", think="what stands on axis 1 of (B, S, D), and where is D?")
def over_axis_1(x, weight, bias, eps=1e-12):
    return weight * _normalised(x, eps, dim=1) + bias


@layer_norm.mistake(
    "dim=2, which not every tensor has", think="x may be (N, D) too: which number always means the last?"
)
def over_axis_2(x, weight, bias, eps=1e-12):
    return weight * _normalised(x, eps, dim=2) + bias


@layer_norm.mistake("RMSNorm: divided by the root mean square, no mean taken off", think="where does the mean go?")
def rms_norm(x, weight, bias, eps=1e-12):
    return weight * x / torch.sqrt((x * x).mean(-1, keepdim=True) + eps) + bias


@layer_norm.mistake("the mean not subtracted", think="what is the result's mean before weight and bias?")
def mean_not_subtracted(x, weight, bias, eps=1e-12):
    return weight * x / torch.sqrt(x.var(-1, correction=0, keepdim=True) + eps) + bias


@layer_norm.mistake("divided by the variance, no root", think="if x is doubled, what must happen to the result?")
def divided_by_variance(x, weight, bias, eps=1e-12):
    return weight * (x - x.mean(-1, keepdim=True)) / (x.var(-1, correction=0, keepdim=True) + eps) + bias


@layer_norm.mistake("divided by the vector's length (no mean over D)", think="is the root of a sum a deviation?")
def divided_by_length(x, weight, bias, eps=1e-12):
    centred = x - x.mean(-1, keepdim=True)
    return weight * centred / torch.sqrt((centred * centred).sum(-1, keepdim=True) + eps) + bias


@layer_norm.mistake(
    "the variance as the mean of the squares minus the square of the mean: right on paper, but few digits are left "
    "where the mean is large",
    think="x about 1000: how many of float32's seven digits are the same in the two numbers that you subtract?",
)
def mean_of_squares(x, weight, bias, eps=1e-12):
    mean = x.mean(-1, keepdim=True)
    variance = (x * x).mean(-1, keepdim=True) - mean * mean
    return weight * (x - mean) / torch.sqrt(variance + eps) + bias


@layer_norm.mistake(
    "F.normalize: divided by the vector's length, without eps under the root", think="is the root of a sum a deviation?"
)
def length_of_one(x, weight, bias, eps=1e-12):
    return weight * F.normalize(x - x.mean(-1, keepdim=True), dim=-1) + bias


@layer_norm.mistake("the mean of the distances instead of the root of their squares' mean", think="what is a variance?")
def mean_distance(x, weight, bias, eps=1e-12):
    centred = x - x.mean(-1, keepdim=True)
    return weight * centred / (centred.abs().mean(-1, keepdim=True) + eps) + bias


@layer_norm.mistake("the mean taken off and nothing divided", think="what is the result's deviation before the weight?")
def never_divided(x, weight, bias, eps=1e-12):
    return weight * (x - x.mean(-1, keepdim=True)) + bias


@layer_norm.mistake("divided by len(x), which counts the first axis", think="which axis holds the D features?")
def mean_by_len(x, weight, bias, eps=1e-12):
    centred = x - x.sum(-1, keepdim=True) / len(x)
    variance = (centred * centred).sum(-1, keepdim=True) / len(x)
    return weight * centred / torch.sqrt(variance + eps) + bias


@layer_norm.mistake("keepdim=True forgotten", think="which shape has x.mean(-1), and how does it line up with x?")
def keepdim_forgotten(x, weight, bias, eps=1e-12):
    return weight * (x - x.mean(-1)) / torch.sqrt(x.var(-1, correction=0) + eps) + bias


@layer_norm.mistake("x changed in place", think="who else holds this tensor? (the residual connection does)")
def changed_in_place(x, weight, bias, eps=1e-12):
    x -= x.mean(-1, keepdim=True)
    return weight * _normalised(x, eps) + bias


@layer_norm.mistake(
    "an in-place step (-=, /=, *=) over numbers that the gradient still needs",
    think="backwards, the square needs what was squared: is it still there?",
)
def overwritten_before_the_gradient(x, weight, bias, eps=1e-12):
    centred = x - x.mean(-1, keepdim=True)
    centred /= torch.sqrt((centred * centred).mean(-1, keepdim=True) + eps)
    return weight * centred + bias


# ---------------------------------------------------------------- 02.2 build inputs


def _fields(ids, types, real, max_length, pad_id, pad_type=0):
    rest = max_length - len(ids)
    return {
        "input_ids": ids + [pad_id] * rest,
        "token_type_ids": types + [pad_type] * rest,
        "attention_mask": [1] * real + [0] * (max_length - real),
    }


def _joined(a, b, cls_id, sep_id):
    ids = [cls_id, *a, sep_id] + ([] if b is None else [*b, sep_id])
    return ids, [0] * (len(a) + 2) + [1] * (len(ids) - len(a) - 2)


def _fits(length, max_length):
    if length > max_length or max_length > 512:
        raise ValueError("too long")


@build_inputs.mistake("the last [SEP] missing", think="how does the model know where B ends?")
def last_sep_missing(a, b=None, *, max_length, cls_id, sep_id, pad_id):
    ids, types = _joined(a, b, cls_id, sep_id)
    if b is not None:
        ids, types = ids[:-1], types[:-1]
    _fits(len(ids), max_length)
    return _fields(ids, types, len(ids), max_length, pad_id)


@build_inputs.mistake("no [SEP] after a single text", think="does a text end when nothing follows?")
def single_without_sep(a, b=None, *, max_length, cls_id, sep_id, pad_id):
    ids, types = _joined(a, b, cls_id, sep_id)
    if b is None:
        ids, types = ids[:-1], types[:-1]
    _fits(len(ids), max_length)
    return _fields(ids, types, len(ids), max_length, pad_id)


@build_inputs.mistake("ids of a known vocabulary (101, 102, 0) instead of those given", think="what is cls_id for?")
def ids_by_heart(a, b=None, *, max_length, cls_id, sep_id, pad_id):
    ids, types = _joined(a, b, 101, 102)
    _fits(len(ids), max_length)
    return _fields(ids, types, len(ids), max_length, 0)


@build_inputs.mistake("B in front of A", think="which of the two comes first?")
def second_first(a, b=None, *, max_length, cls_id, sep_id, pad_id):
    ids, types = _joined(a, None, cls_id, sep_id) if b is None else _joined(b, a, cls_id, sep_id)
    _fits(len(ids), max_length)
    return _fields(ids, types, len(ids), max_length, pad_id)


@build_inputs.mistake("no [SEP] between A and B", think="where does A end?")
def no_sep_between(a, b=None, *, max_length, cls_id, sep_id, pad_id):
    if b is None:
        ids, types = _joined(a, None, cls_id, sep_id)
    else:
        ids, types = [cls_id, *a, *b, sep_id], [0] * (len(a) + 1) + [1] * (len(b) + 1)
    _fits(len(ids), max_length)
    return _fields(ids, types, len(ids), max_length, pad_id)


@build_inputs.mistake("no [CLS] in front", think="from which token will the classifier read?")
def no_cls(a, b=None, *, max_length, cls_id, sep_id, pad_id):
    ids, types = _joined(a, b, cls_id, sep_id)
    ids, types = ids[1:], types[1:]
    _fits(len(ids), max_length)
    return _fields(ids, types, len(ids), max_length, pad_id)


@build_inputs.mistake("a second [CLS] in front of B", think="how many [CLS] has a row?")
def second_cls(a, b=None, *, max_length, cls_id, sep_id, pad_id):
    if b is None:
        ids, types = _joined(a, None, cls_id, sep_id)
    else:
        ids = [cls_id, *a, sep_id, cls_id, *b, sep_id]
        types = [0] * (len(a) + 2) + [1] * (len(b) + 2)
    _fits(len(ids), max_length)
    return _fields(ids, types, len(ids), max_length, pad_id)


@build_inputs.mistake("an empty B added to a single text", think="what should happen when b is None?")
def single_gets_two_seps(a, b=None, *, max_length, cls_id, sep_id, pad_id):
    ids, types = _joined(a, b or [], cls_id, sep_id)
    _fits(len(ids), max_length)
    return _fields(ids, types, len(ids), max_length, pad_id)


@build_inputs.mistake(
    "`if b` where `if b is not None` is meant: an empty list is a second text too", think="is [] the same as None?"
)
def empty_pair_is_single(a, b=None, *, max_length, cls_id, sep_id, pad_id):
    ids, types = _joined(a, b or None, cls_id, sep_id)
    _fits(len(ids), max_length)
    return _fields(ids, types, len(ids), max_length, pad_id)


@build_inputs.mistake("the first [SEP] counted to segment 1", think="whose end does the first [SEP] mark?")
def first_sep_in_segment_1(a, b=None, *, max_length, cls_id, sep_id, pad_id):
    ids, types = _joined(a, b, cls_id, sep_id)
    _fits(len(ids), max_length)
    if b is not None:
        types[len(a) + 1] = 1
    return _fields(ids, types, len(ids), max_length, pad_id)


@build_inputs.mistake("the last [SEP] counted to segment 0", think="whose end does the last [SEP] mark?")
def last_sep_in_segment_0(a, b=None, *, max_length, cls_id, sep_id, pad_id):
    ids, types = _joined(a, b, cls_id, sep_id)
    _fits(len(ids), max_length)
    types[-1] = 0
    return _fields(ids, types, len(ids), max_length, pad_id)


@build_inputs.mistake(
    "segments numbered 1 and 2", think="how many rows has BERT's segment table, and which is the first?"
)
def segments_1_and_2(a, b=None, *, max_length, cls_id, sep_id, pad_id):
    ids, types = _joined(a, b, cls_id, sep_id)
    _fits(len(ids), max_length)
    return _fields(ids, [t + 1 for t in types], len(ids), max_length, pad_id)


@build_inputs.mistake("segment 1 for A and 0 for B", think="which of the two has segment 0?")
def segments_exchanged(a, b=None, *, max_length, cls_id, sep_id, pad_id):
    ids, types = _joined(a, b, cls_id, sep_id)
    _fits(len(ids), max_length)
    return _fields(ids, types if b is None else [1 - t for t in types], len(ids), max_length, pad_id)


@build_inputs.mistake("segment 0 everywhere", think="how does the model tell A from B?")
def no_segments(a, b=None, *, max_length, cls_id, sep_id, pad_id):
    ids, types = _joined(a, b, cls_id, sep_id)
    _fits(len(ids), max_length)
    return _fields(ids, [0] * len(types), len(ids), max_length, pad_id)


@build_inputs.mistake("segment 1 for the padding", think="what does the text say about token_type_ids of padding?")
def padding_in_segment_1(a, b=None, *, max_length, cls_id, sep_id, pad_id):
    ids, types = _joined(a, b, cls_id, sep_id)
    _fits(len(ids), max_length)
    return _fields(ids, types, len(ids), max_length, pad_id, pad_type=1)


@build_inputs.mistake(
    "segment 1 for the padding behind a pair", think="what does the text say about token_type_ids of padding?"
)
def padding_behind_a_pair_in_segment_1(a, b=None, *, max_length, cls_id, sep_id, pad_id):
    ids, types = _joined(a, b, cls_id, sep_id)
    _fits(len(ids), max_length)
    return _fields(ids, types, len(ids), max_length, pad_id, pad_type=0 if b is None else 1)


@build_inputs.mistake("padding put between A and B", think="at which positions does B start then, in a batch?")
def padding_between(a, b=None, *, max_length, cls_id, sep_id, pad_id):
    ids, types = _joined(a, b, cls_id, sep_id)
    _fits(len(ids), max_length)
    first = len(a) + 2
    gap = [pad_id] * (max_length - len(ids))
    return {
        "input_ids": ids[:first] + gap + ids[first:],
        "token_type_ids": types[:first] + [0] * len(gap) + types[first:],
        "attention_mask": [1] * first + [0] * len(gap) + [1] * (len(ids) - first),
    }


@build_inputs.mistake("padding before the last [SEP]", think="what comes right after the last word of a text?")
def padding_before_last_sep(a, b=None, *, max_length, cls_id, sep_id, pad_id):
    ids, types = _joined(a, b, cls_id, sep_id)
    _fits(len(ids), max_length)
    gap = [pad_id] * (max_length - len(ids))
    return {
        "input_ids": [*ids[:-1], *gap, sep_id],
        "token_type_ids": types[:-1] + [types[-1]] * (len(gap) + 1),
        "attention_mask": [1] * (len(ids) - 1) + [0] * len(gap) + [1],
    }


@build_inputs.mistake("padding on the left", think="which position vector does [CLS] always get?")
def padded_on_the_left(a, b=None, *, max_length, cls_id, sep_id, pad_id):
    ids, types = _joined(a, b, cls_id, sep_id)
    _fits(len(ids), max_length)
    rest = max_length - len(ids)
    return {
        "input_ids": [pad_id] * rest + ids,
        "token_type_ids": [0] * rest + types,
        "attention_mask": [0] * rest + [1] * len(ids),
    }


@build_inputs.mistake("no padding", think="how long is each of the three rows to be?")
def not_padded(a, b=None, *, max_length, cls_id, sep_id, pad_id):
    ids, types = _joined(a, b, cls_id, sep_id)
    _fits(len(ids), max_length)
    return _fields(ids, types, len(ids), len(ids), pad_id)


@build_inputs.mistake("token_type_ids without padding", think="how long is each of the three rows to be?")
def types_not_padded(a, b=None, *, max_length, cls_id, sep_id, pad_id):
    ids, types = _joined(a, b, cls_id, sep_id)
    _fits(len(ids), max_length)
    return _fields(ids, types, len(ids), max_length, pad_id) | {"token_type_ids": types}


@build_inputs.mistake("padding with 0 instead of pad_id", think="is [PAD] number 0 in every vocabulary?")
def padded_with_zero(a, b=None, *, max_length, cls_id, sep_id, pad_id):
    ids, types = _joined(a, b, cls_id, sep_id)
    _fits(len(ids), max_length)
    return _fields(ids, types, len(ids), max_length, 0)


@build_inputs.mistake("a mask of 1 for padding and 0 for tokens", think="1 means “look at me”: who is looked at?")
def mask_inverted(a, b=None, *, max_length, cls_id, sep_id, pad_id):
    ids, types = _joined(a, b, cls_id, sep_id)
    _fits(len(ids), max_length)
    row = _fields(ids, types, len(ids), max_length, pad_id)
    return row | {"attention_mask": [1 - m for m in row["attention_mask"]]}


@build_inputs.mistake(
    "a mask made from the ids (id ≠ pad_id)", think="what if a text really contains the piece that serves as padding?"
)
def row_mask_from_ids(a, b=None, *, max_length, cls_id, sep_id, pad_id):
    ids, types = _joined(a, b, cls_id, sep_id)
    _fits(len(ids), max_length)
    row = _fields(ids, types, len(ids), max_length, pad_id)
    return row | {"attention_mask": [int(i != pad_id) for i in row["input_ids"]]}


@build_inputs.mistake("a mask of True and False", think="the mask is to hold whole numbers: how does one make them?")
def row_mask_of_bools(a, b=None, *, max_length, cls_id, sep_id, pad_id):
    ids, types = _joined(a, b, cls_id, sep_id)
    _fits(len(ids), max_length)
    row = _fields(ids, types, len(ids), max_length, pad_id)
    return row | {"attention_mask": [bool(m) for m in row["attention_mask"]]}


@build_inputs.mistake("a mask of all ones", think="may a real token look at padding?")
def mask_all_ones(a, b=None, *, max_length, cls_id, sep_id, pad_id):
    ids, types = _joined(a, b, cls_id, sep_id)
    _fits(len(ids), max_length)
    return _fields(ids, types, max_length, max_length, pad_id)


@build_inputs.mistake("[CLS] and [SEP] masked like padding", think="are [CLS] and [SEP] real tokens?")
def specials_masked(a, b=None, *, max_length, cls_id, sep_id, pad_id):
    ids, types = _joined(a, b, cls_id, sep_id)
    _fits(len(ids), max_length)
    row = _fields(ids, types, len(ids), max_length, pad_id)
    return row | {"attention_mask": [int(i not in (cls_id, sep_id, pad_id)) for i in row["input_ids"]]}


@build_inputs.mistake("what is too long cut silently", think="which token is lost first, and who would notice?")
def cut_silently(a, b=None, *, max_length, cls_id, sep_id, pad_id):
    ids, types = _joined(a, b, cls_id, sep_id)
    ids, types = ids[:max_length], types[:max_length]
    return _fields(ids, types, len(ids), max_length, pad_id)


@build_inputs.mistake(
    "what is too long cut in front of the last [SEP], silently", think="what does the text say: cut, or raise?"
)
def cut_before_the_last_sep(a, b=None, *, max_length, cls_id, sep_id, pad_id):
    ids, types = _joined(a, b, cls_id, sep_id)
    while len(ids) > max_length:
        del ids[-2], types[-2]
    return _fields(ids, types, len(ids), max_length, pad_id)


@build_inputs.mistake("no check of the length at all", think="what will a table of 512 rows say to position 600?")
def never_too_long(a, b=None, *, max_length, cls_id, sep_id, pad_id):
    ids, types = _joined(a, b, cls_id, sep_id)
    return _fields(ids, types, len(ids), max_length, pad_id)


@build_inputs.mistake("the limit of 512 forgotten", think="how many rows has BERT's table of positions?")
def no_limit_of_512(a, b=None, *, max_length, cls_id, sep_id, pad_id):
    ids, types = _joined(a, b, cls_id, sep_id)
    if len(ids) > max_length:
        raise ValueError("too long")
    return _fields(ids, types, len(ids), max_length, pad_id)


@build_inputs.mistake(
    "the number of tokens compared with 512, not max_length", think="how long are the rows that the caller asks for?"
)
def tokens_against_512(a, b=None, *, max_length, cls_id, sep_id, pad_id):
    ids, types = _joined(a, b, cls_id, sep_id)
    if len(ids) > max_length or len(ids) > 512:
        raise ValueError("too long")
    return _fields(ids, types, len(ids), max_length, pad_id)


@build_inputs.mistake(
    "a max_length above 512 lowered silently", think="how long are the rows that the caller then gets?"
)
def lowered_to_512(a, b=None, *, max_length, cls_id, sep_id, pad_id):
    max_length = min(max_length, 512)
    ids, types = _joined(a, b, cls_id, sep_id)
    _fits(len(ids), max_length)
    return _fields(ids, types, len(ids), max_length, pad_id)


@build_inputs.mistake("512 itself refused", think="positions 0 to 511: how many tokens?")
def refuses_512(a, b=None, *, max_length, cls_id, sep_id, pad_id):
    ids, types = _joined(a, b, cls_id, sep_id)
    if len(ids) > max_length or max_length >= 512:
        raise ValueError("too long")
    return _fields(ids, types, len(ids), max_length, pad_id)


@build_inputs.mistake("a row that just fits refused", think="is a text of max_length tokens too long?")
def refuses_an_exact_fit(a, b=None, *, max_length, cls_id, sep_id, pad_id):
    ids, types = _joined(a, b, cls_id, sep_id)
    if len(ids) >= max_length or max_length > 512:
        raise ValueError("too long")
    return _fields(ids, types, len(ids), max_length, pad_id)


@build_inputs.mistake("[CLS] and [SEP] not counted in the length", think="how long are the rows you return?")
def specials_not_counted(a, b=None, *, max_length, cls_id, sep_id, pad_id):
    _fits(len(a) + len(b or []), max_length)
    ids, types = _joined(a, b, cls_id, sep_id)
    return _fields(ids, types, len(ids), max_length, pad_id)


@build_inputs.mistake("three special tokens counted for a single text too", think="how many [SEP] has a single text?")
def always_three_specials(a, b=None, *, max_length, cls_id, sep_id, pad_id):
    _fits(len(a) + len(b or []) + 3, max_length)
    ids, types = _joined(a, b, cls_id, sep_id)
    return _fields(ids, types, len(ids), max_length, pad_id)


@build_inputs.mistake(
    "an assert where a ValueError is asked", think="what is left of an assert when Python runs with -O?"
)
def asserts_the_length(a, b=None, *, max_length, cls_id, sep_id, pad_id):
    ids, types = _joined(a, b, cls_id, sep_id)
    assert len(ids) <= max_length <= 512, "too long"
    return _fields(ids, types, len(ids), max_length, pad_id)


@build_inputs.mistake("an Exception where a ValueError is asked", think="who catches a ValueError: will yours do?")
def raises_exception(a, b=None, *, max_length, cls_id, sep_id, pad_id):
    ids, types = _joined(a, b, cls_id, sep_id)
    if not len(ids) <= max_length <= 512:
        raise Exception("too long")
    return _fields(ids, types, len(ids), max_length, pad_id)


@build_inputs.mistake("a ValueError returned, not raised", think="does a caller notice what you return?")
def returns_the_error(a, b=None, *, max_length, cls_id, sep_id, pad_id):
    ids, types = _joined(a, b, cls_id, sep_id)
    if not len(ids) <= max_length <= 512:
        return ValueError("too long")
    return _fields(ids, types, len(ids), max_length, pad_id)


@build_inputs.mistake("None returned (and perhaps a line printed) instead of an error", think="does a caller notice?")
def returns_none(a, b=None, *, max_length, cls_id, sep_id, pad_id):
    ids, types = _joined(a, b, cls_id, sep_id)
    if not len(ids) <= max_length <= 512:
        return None
    return _fields(ids, types, len(ids), max_length, pad_id)


@build_inputs.mistake("tensors where lists are asked for", think="what does the text say that each of the three is?")
def rows_as_tensors(a, b=None, *, max_length, cls_id, sep_id, pad_id):
    ids, types = _joined(a, b, cls_id, sep_id)
    _fits(len(ids), max_length)
    row = _fields(ids, types, len(ids), max_length, pad_id)
    return {field: torch.tensor(values) for field, values in row.items()}


@build_inputs.mistake("the caller's list changed", think="a.append changes a: whose list is it?")
def callers_list_changed(a, b=None, *, max_length, cls_id, sep_id, pad_id):
    _fits(len(_joined(a, b, cls_id, sep_id)[0]), max_length)
    a.insert(0, cls_id)
    a.append(sep_id)
    second = [] if b is None else [*b, sep_id]
    return _fields(a + second, [0] * len(a) + [1] * len(second), len(a) + len(second), max_length, pad_id)


@build_inputs.mistake("the caller's second list changed", think="b.append changes b: whose list is it?")
def callers_second_list_changed(a, b=None, *, max_length, cls_id, sep_id, pad_id):
    ids, types = _joined(a, b, cls_id, sep_id)
    _fits(len(ids), max_length)
    if b is not None:
        b.append(sep_id)
    return _fields(ids, types, len(ids), max_length, pad_id)


# ---------------------------------------------------------------- 02.3 pad a batch


def _batch(rows, pad_id, longest=None, segment_of_padding=0):
    longest = longest or max(len(row["input_ids"]) for row in rows)
    gaps = [longest - len(row["input_ids"]) for row in rows]
    pairs = list(zip(rows, gaps, strict=True))
    return {
        "input_ids": torch.tensor([row["input_ids"] + [pad_id] * gap for row, gap in pairs]),
        "token_type_ids": torch.tensor([row["token_type_ids"] + [segment_of_padding] * gap for row, gap in pairs]),
        "attention_mask": torch.tensor([[1] * (longest - gap) + [0] * gap for gap in gaps]),
    }


@pad_batch.mistake("every row padded to 512", think="what does the model compute for the places that nobody needs?")
def always_512(rows, pad_id):
    return _batch(rows, pad_id, 512)


@pad_batch.mistake("as long as the first row", think="what if a later row is longer?")
def as_long_as_the_first(rows, pad_id):
    longest = len(rows[0]["input_ids"])
    batch = _batch(rows, pad_id)
    return {field: value[:, :longest].contiguous() for field, value in batch.items()}


@pad_batch.mistake("cut to the shortest row", think="which tokens are lost?")
def cut_to_the_shortest(rows, pad_id):
    shortest = min(len(row["input_ids"]) for row in rows)
    return {field: value[:, :shortest].contiguous() for field, value in _batch(rows, pad_id).items()}


@pad_batch.mistake("padding on the left", think="which position vector does [CLS] always get?")
def batch_padded_on_the_left(rows, pad_id):
    batch = _batch(rows, pad_id)
    shifts = [batch["input_ids"].size(1) - len(row["input_ids"]) for row in rows]
    return {
        field: torch.stack([row.roll(shift) for row, shift in zip(value, shifts, strict=True)])
        for field, value in batch.items()
    }


@pad_batch.mistake("padding with 0 instead of pad_id", think="is [PAD] number 0 in every vocabulary?")
def batch_padded_with_zero(rows, pad_id):
    return _batch(rows, 0)


@pad_batch.mistake("pad_id in token_type_ids too", think="is a segment a word piece?")
def segments_padded_with_pad_id(rows, pad_id):
    return _batch(rows, pad_id, segment_of_padding=pad_id)


@pad_batch.mistake("segment 1 for the padding", think="what does the text say about token_type_ids of padding?")
def batch_padding_in_segment_1(rows, pad_id):
    return _batch(rows, pad_id, segment_of_padding=1)


@pad_batch.mistake(
    "a mask made from the ids (id ≠ pad_id)", think="what if a text really contains the piece that serves as padding?"
)
def mask_from_ids(rows, pad_id):
    batch = _batch(rows, pad_id)
    return batch | {"attention_mask": (batch["input_ids"] != pad_id).long()}


@pad_batch.mistake(
    "a mask up to the last id that is not pad_id", think="what if a text really ends in the piece that is padding too?"
)
def mask_to_the_last_other_id(rows, pad_id):
    batch = _batch(rows, pad_id)
    others_from_here = (batch["input_ids"] != pad_id).flip(1).cumsum(1).flip(1)
    return batch | {"attention_mask": (others_from_here > 0).long()}


@pad_batch.mistake("squeeze(): one row alone loses its batch axis", think="which shape has a batch of one row?")
def batch_squeezed(rows, pad_id):
    return {field: value.squeeze(0) for field, value in _batch(rows, pad_id).items()}


@pad_batch.mistake("a mask made from the segments", think="which tokens have segment 0?")
def mask_is_the_segment(rows, pad_id):
    batch = _batch(rows, pad_id)
    return batch | {"attention_mask": batch["token_type_ids"].clone()}


@pad_batch.mistake("a mask of 1 for padding and 0 for tokens", think="1 means “look at me”: who is looked at?")
def batch_mask_inverted(rows, pad_id):
    batch = _batch(rows, pad_id)
    return batch | {"attention_mask": 1 - batch["attention_mask"]}


@pad_batch.mistake("a mask of all ones", think="may a real token look at padding?")
def batch_mask_all_ones(rows, pad_id):
    batch = _batch(rows, pad_id)
    return batch | {"attention_mask": torch.ones_like(batch["attention_mask"])}


@pad_batch.mistake("a mask of True and False", think="the mask is to hold whole numbers: how does one make them?")
def mask_of_bools(rows, pad_id):
    batch = _batch(rows, pad_id)
    return batch | {"attention_mask": batch["attention_mask"].bool()}


@pad_batch.mistake("token_type_ids all 0", think="where do the rows' own segments go?")
def batch_without_segments(rows, pad_id):
    batch = _batch(rows, pad_id)
    return batch | {"token_type_ids": torch.zeros_like(batch["token_type_ids"])}


@pad_batch.mistake(
    "the caller's lists grown in place", think="row += … changes the caller's list: will it be used again?"
)
def callers_rows_grown(rows, pad_id):
    longest = max(len(row["input_ids"]) for row in rows)
    mask = torch.tensor([[int(i < len(row["input_ids"])) for i in range(longest)] for row in rows])
    for row in rows:
        row["input_ids"] += [pad_id] * (longest - len(row["input_ids"]))
        row["token_type_ids"] += [0] * (longest - len(row["token_type_ids"]))
    return {
        "input_ids": torch.tensor([row["input_ids"] for row in rows]),
        "token_type_ids": torch.tensor([row["token_type_ids"] for row in rows]),
        "attention_mask": mask,
    }


@pad_batch.mistake(
    "a new key in the caller's rows", think="row[…] = … changes the caller's dictionary: will it be used again?"
)
def callers_rows_get_a_mask(rows, pad_id):
    batch = _batch(rows, pad_id)
    for row, mask in zip(rows, batch["attention_mask"].tolist(), strict=True):
        row["attention_mask"] = mask
    return batch


@pad_batch.mistake("the rows sorted by length", think="which row of labels will belong to row 0 of your batch?")
def longest_first(rows, pad_id):
    return _batch(sorted(rows, key=lambda row: len(row["input_ids"]), reverse=True), pad_id)


@pad_batch.mistake("the rows sorted by length", think="which row of labels will belong to row 0 of your batch?")
def shortest_first(rows, pad_id):
    return _batch(sorted(rows, key=lambda row: len(row["input_ids"])), pad_id)


@pad_batch.mistake("one list B times: [[…]] * B holds the same list everywhere", think="how many lists did you make?")
def one_list_many_times(rows, pad_id):
    longest = max(len(row["input_ids"]) for row in rows)
    ids, types, mask = ([[filler] * longest] * len(rows) for filler in (pad_id, 0, 0))
    for i, row in enumerate(rows):
        length = len(row["input_ids"])
        ids[i][:length], types[i][:length], mask[i][:length] = row["input_ids"], row["token_type_ids"], [1] * length
    fields = ("input_ids", "token_type_ids", "attention_mask")
    return {field: torch.tensor(lists) for field, lists in zip(fields, (ids, types, mask), strict=True)}


@pad_batch.mistake("lists where tensors are asked for", think="what does the text say that each of the three is?")
def lists_of_lists(rows, pad_id):
    return {field: value.tolist() for field, value in _batch(rows, pad_id).items()}


@pad_batch.mistake(
    "floats: what torch.zeros and torch.full(…, 0.) make", think="may an index be 3.0? Which dtype is it?"
)
def all_floats(rows, pad_id):
    return {field: value.float() for field, value in _batch(rows, pad_id).items()}


@pad_batch.mistake("a mask of floats: what torch.ones and torch.zeros make", think="which dtype did the task ask for?")
def mask_of_floats(rows, pad_id):
    batch = _batch(rows, pad_id)
    return batch | {"attention_mask": batch["attention_mask"].float()}


@pad_batch.mistake("rows of unequal length made into one tensor", think="which shape would a ragged tensor have?")
def ragged(rows, pad_id):
    return {field: torch.tensor([row[field] for row in rows]) for field in ("input_ids", "token_type_ids")}


# ---------------------------------------------------------------- 02.4 embeddings


def _sum(input_ids, token_type_ids, weights):
    places = torch.arange(input_ids.size(1), device=input_ids.device)
    return weights["word"][input_ids] + weights["position"][places] + weights["segment"][token_type_ids]


def _norm(x, weights, eps=1e-12):
    return F.layer_norm(x, x.shape[-1:], weights["norm.weight"], weights["norm.bias"], eps)


def _done(x, weights, dropout_p, training):
    return F.dropout(_norm(x, weights), dropout_p, training)


@embeddings.mistake("positions counted from 1", think="which row of the table belongs to [CLS]?")
def positions_from_1(input_ids, token_type_ids, weights, dropout_p=0.0, training=False):
    places = torch.arange(1, input_ids.size(1) + 1, device=input_ids.device)
    x = weights["word"][input_ids] + weights["position"][places] + weights["segment"][token_type_ids]
    return _done(x, weights, dropout_p, training)


@embeddings.mistake("position vectors looked up by token id", think="where does a token stand, and what is it?")
def positions_by_token_id(input_ids, token_type_ids, weights, dropout_p=0.0, training=False):
    x = weights["word"][input_ids] + weights["position"][input_ids] + weights["segment"][token_type_ids]
    return _done(x, weights, dropout_p, training)


@embeddings.mistake("positions counted again in the second segment", think="is B's first token at place 0?")
def positions_restart(input_ids, token_type_ids, weights, dropout_p=0.0, training=False):
    places = torch.arange(input_ids.size(1), device=input_ids.device).expand(input_ids.shape)
    start = (token_type_ids == 0).long().cumprod(1).sum(1, keepdim=True)
    places = torch.where(token_type_ids == 1, places - start, places)
    x = weights["word"][input_ids] + weights["position"][places] + weights["segment"][token_type_ids]
    return _done(x, weights, dropout_p, training)


@embeddings.mistake(
    "one position for a whole text: its number in the batch", think="which axis is the place in the text?"
)
def positions_over_the_batch(input_ids, token_type_ids, weights, dropout_p=0.0, training=False):
    places = torch.arange(input_ids.size(0), device=input_ids.device)[:, None]
    x = weights["word"][input_ids] + weights["position"][places] + weights["segment"][token_type_ids]
    return _done(x, weights, dropout_p, training)


@embeddings.mistake(
    "positions that count the real tokens alone, from 1, as in RoBERTa", think="which places has a text of S tokens?"
)
def positions_of_roberta(input_ids, token_type_ids, weights, dropout_p=0.0, training=False):
    real = (input_ids != 0).long()
    x = weights["word"][input_ids] + weights["position"][real.cumsum(1) * real] + weights["segment"][token_type_ids]
    return _done(x, weights, dropout_p, training)


@embeddings.mistake("place 0 for all padding", think="what does the text say about padding and its place?")
def padding_at_place_0(input_ids, token_type_ids, weights, dropout_p=0.0, training=False):
    places = torch.arange(input_ids.size(1), device=input_ids.device) * (input_ids != 0)
    x = weights["word"][input_ids] + weights["position"][places] + weights["segment"][token_type_ids]
    return _done(x, weights, dropout_p, training)


@embeddings.mistake("the whole position table added", think="how many of its rows does a text of S tokens need?")
def whole_position_table(input_ids, token_type_ids, weights, dropout_p=0.0, training=False):
    x = weights["word"][input_ids] + weights["position"] + weights["segment"][token_type_ids]
    return _done(x, weights, dropout_p, training)


@embeddings.mistake("position vectors forgotten", think="what is a text without order?")
def no_positions(input_ids, token_type_ids, weights, dropout_p=0.0, training=False):
    x = weights["word"][input_ids] + weights["segment"][token_type_ids]
    return _done(x, weights, dropout_p, training)


@embeddings.mistake("sines and cosines instead of the learned table", think="which table did weights bring along?")
def sinusoids(input_ids, token_type_ids, weights, dropout_p=0.0, training=False):
    length, width = input_ids.size(1), weights["word"].size(1)
    places = torch.arange(length, device=input_ids.device)[:, None]
    angle = places / 10_000 ** (torch.arange(0, width, 2, device=input_ids.device) / width)
    waves = torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)[:, :width]
    x = weights["word"][input_ids] + waves + weights["segment"][token_type_ids]
    return _done(x, weights, dropout_p, training)


@embeddings.mistake("position vectors that get no gradient (.data, or a buffer)", think="how were they learned?")
def positions_detached(input_ids, token_type_ids, weights, dropout_p=0.0, training=False):
    x = _sum(input_ids, token_type_ids, weights | {"position": weights["position"].detach()})
    return _done(x, weights, dropout_p, training)


@embeddings.mistake(
    "tables that get no gradient (nn.Embedding.from_pretrained freezes them)", think="how were they learned?"
)
def tables_frozen(input_ids, token_type_ids, weights, dropout_p=0.0, training=False):
    frozen = {name: weights[name].detach() for name in ("word", "position", "segment")}
    return _done(_sum(input_ids, token_type_ids, weights | frozen), weights, dropout_p, training)


@embeddings.mistake(
    "a norm.weight and norm.bias that get no gradient (copied into a new nn.LayerNorm)",
    think="whose weight is to learn: the one that was handed in, or a new one?",
)
def norm_frozen(input_ids, token_type_ids, weights, dropout_p=0.0, training=False):
    frozen = {name: weights[name].detach() for name in ("norm.weight", "norm.bias")}
    return _done(_sum(input_ids, token_type_ids, weights), weights | frozen, dropout_p, training)


@embeddings.mistake(
    "no gradient at all (no_grad, .data, or copies in new modules)", think="how would the five weights learn?"
)
def everything_frozen(input_ids, token_type_ids, weights, dropout_p=0.0, training=False):
    with torch.no_grad():
        return _done(_sum(input_ids, token_type_ids, weights), weights, dropout_p, training)


@embeddings.mistake(
    "the first text's segments for all texts", think="do all texts of a batch change over at one place?"
)
def segments_of_the_first_text(input_ids, token_type_ids, weights, dropout_p=0.0, training=False):
    return _done(_sum(input_ids, token_type_ids[0].expand_as(input_ids), weights), weights, dropout_p, training)


@embeddings.mistake("segment vectors forgotten", think="which of the three arguments is not used?")
def no_segment_vectors(input_ids, token_type_ids, weights, dropout_p=0.0, training=False):
    return _done(
        _sum(input_ids, token_type_ids, weights) - weights["segment"][token_type_ids], weights, dropout_p, training
    )


@embeddings.mistake("segments looked up as 1 and 2", think="which is the first row of a table?")
def segments_plus_1(input_ids, token_type_ids, weights, dropout_p=0.0, training=False):
    return _done(_sum(input_ids, token_type_ids + 1, weights), weights, dropout_p, training)


@embeddings.mistake("segment 0 for every token", think="which of the three arguments is not used?")
def all_in_segment_0(input_ids, token_type_ids, weights, dropout_p=0.0, training=False):
    return _done(_sum(input_ids, torch.zeros_like(token_type_ids), weights), weights, dropout_p, training)


@embeddings.mistake("the two segments swapped", think="which row belongs to A?")
def segments_swapped(input_ids, token_type_ids, weights, dropout_p=0.0, training=False):
    return _done(_sum(input_ids, 1 - token_type_ids, weights), weights, dropout_p, training)


@embeddings.mistake("a vector of zeros for [PAD]", think="what hides the padding: its vector, or the mask?")
def pad_vector_zero(input_ids, token_type_ids, weights, dropout_p=0.0, training=False):
    keep = torch.ones_like(weights["word"])
    keep[0] = 0
    return _done(
        _sum(input_ids, token_type_ids, weights | {"word": weights["word"] * keep}), weights, dropout_p, training
    )


@embeddings.mistake(
    "padding_idx=0, which keeps the gradient from [PAD]'s vector", think="did anybody say that [PAD] may not learn?"
)
def padding_idx(input_ids, token_type_ids, weights, dropout_p=0.0, training=False):
    places = torch.arange(input_ids.size(1), device=input_ids.device)
    x = F.embedding(input_ids, weights["word"], padding_idx=0)
    x = x + weights["position"][places] + weights["segment"][token_type_ids]
    return _done(x, weights, dropout_p, training)


@embeddings.mistake("padded rows set to 0 in the result", think="who hides the padding later on?")
def padded_rows_zeroed(input_ids, token_type_ids, weights, dropout_p=0.0, training=False):
    x = _norm(_sum(input_ids, token_type_ids, weights), weights) * (input_ids != 0)[..., None]
    return F.dropout(x, dropout_p, training)


@embeddings.mistake("word vectors multiplied by √D, as in the first Transformer", think="does BERT scale them?")
def words_scaled(input_ids, token_type_ids, weights, dropout_p=0.0, training=False):
    scaled = weights["word"] * weights["word"].size(1) ** 0.5
    return _done(_sum(input_ids, token_type_ids, weights | {"word": scaled}), weights, dropout_p, training)


@embeddings.mistake("no LayerNorm after the sum", think="which two of the weights are not used?")
def no_layer_norm(input_ids, token_type_ids, weights, dropout_p=0.0, training=False):
    return F.dropout(_sum(input_ids, token_type_ids, weights), dropout_p, training)


@embeddings.mistake("LayerNorm on each of the three parts, then the sum", think="how often is LayerNorm applied?")
def norm_on_each_part(input_ids, token_type_ids, weights, dropout_p=0.0, training=False):
    places = torch.arange(input_ids.size(1), device=input_ids.device).expand(input_ids.shape)
    parts = weights["word"][input_ids], weights["position"][places], weights["segment"][token_type_ids]
    return F.dropout(sum(_norm(part, weights) for part in parts), dropout_p, training)


@embeddings.mistake(
    "LayerNorm on the word vectors, the rest added afterwards", think="what does the formula normalise?"
)
def norm_on_words_only(input_ids, token_type_ids, weights, dropout_p=0.0, training=False):
    words = weights["word"][input_ids]
    rest = _sum(input_ids, token_type_ids, weights) - words
    return F.dropout(_norm(words, weights) + rest, dropout_p, training)


@embeddings.mistake("LayerNorm without its weight and bias", think="which two of the weights are not used?")
def norm_without_weight_and_bias(input_ids, token_type_ids, weights, dropout_p=0.0, training=False):
    x = _sum(input_ids, token_type_ids, weights)
    return F.dropout(F.layer_norm(x, x.shape[-1:], eps=1e-12), dropout_p, training)


@embeddings.mistake("LayerNorm without its weight", think="where does each feature's new spread come from?")
def norm_without_weight(input_ids, token_type_ids, weights, dropout_p=0.0, training=False):
    ones = torch.ones_like(weights["norm.weight"])
    return _done(_sum(input_ids, token_type_ids, weights), weights | {"norm.weight": ones}, dropout_p, training)


@embeddings.mistake("LayerNorm without its bias", think="where does each feature's new zero come from?")
def norm_without_bias(input_ids, token_type_ids, weights, dropout_p=0.0, training=False):
    zeros = torch.zeros_like(weights["norm.bias"])
    return _done(_sum(input_ids, token_type_ids, weights), weights | {"norm.bias": zeros}, dropout_p, training)


@embeddings.mistake("norm.weight and norm.bias swapped", think="which of the two starts at 1, and which at 0?")
def norm_swapped(input_ids, token_type_ids, weights, dropout_p=0.0, training=False):
    swapped = {"norm.weight": weights["norm.bias"], "norm.bias": weights["norm.weight"]}
    return _done(_sum(input_ids, token_type_ids, weights), weights | swapped, dropout_p, training)


@embeddings.mistake(
    "a LayerNorm of your own whose variance is divided by D − 1",
    think="is this a guess from a sample, or all there is?",
)
def norm_unbiased(input_ids, token_type_ids, weights, dropout_p=0.0, training=False):
    x = _normalised(_sum(input_ids, token_type_ids, weights), 1e-12, correction=1)
    return F.dropout(x * weights["norm.weight"] + weights["norm.bias"], dropout_p, training)


@embeddings.mistake("an eps of 1e-6 in LayerNorm", think="which eps does BERT use?")
def eps_1e_6(input_ids, token_type_ids, weights, dropout_p=0.0, training=False):
    return F.dropout(_norm(_sum(input_ids, token_type_ids, weights), weights, 1e-6), dropout_p, training)


@embeddings.mistake("the sum added to its LayerNorm once more", think="is there a residual connection at the input?")
def with_residual(input_ids, token_type_ids, weights, dropout_p=0.0, training=False):
    x = _sum(input_ids, token_type_ids, weights)
    return x + _done(x, weights, dropout_p, training)


@embeddings.mistake("the three vectors multiplied, not added", think="what does + stand for in the formula?")
def product_of_three(input_ids, token_type_ids, weights, dropout_p=0.0, training=False):
    places = torch.arange(input_ids.size(1), device=input_ids.device)
    x = weights["word"][input_ids] * weights["position"][places] * weights["segment"][token_type_ids]
    return _done(x, weights, dropout_p, training)


@embeddings.mistake("torch's default eps of 1e-5 in LayerNorm", think="which eps does BERT use?")
def eps_1e_5(input_ids, token_type_ids, weights, dropout_p=0.0, training=False):
    return F.dropout(_norm(_sum(input_ids, token_type_ids, weights), weights, 1e-5), dropout_p, training)


@embeddings.mistake(
    "LayerNorm over tokens and features together", think="may one token change another's features here?"
)
def norm_over_the_text(input_ids, token_type_ids, weights, dropout_p=0.0, training=False):
    x = _sum(input_ids, token_type_ids, weights)
    x = F.layer_norm(x, x.shape[-2:], eps=1e-12) * weights["norm.weight"] + weights["norm.bias"]
    return F.dropout(x, dropout_p, training)


@embeddings.mistake("no eps in LayerNorm", think="what if all features of a token are equal?")
def norm_without_eps(input_ids, token_type_ids, weights, dropout_p=0.0, training=False):
    x = _normalised(_sum(input_ids, token_type_ids, weights), 0.0)
    return F.dropout(x * weights["norm.weight"] + weights["norm.bias"], dropout_p, training)


@embeddings.mistake("no dropout", think="what are the last two arguments for?")
def no_dropout(input_ids, token_type_ids, weights, dropout_p=0.0, training=False):
    return _norm(_sum(input_ids, token_type_ids, weights), weights)


@embeddings.mistake("dropout before LayerNorm", think="which of the two comes last?")
def dropout_before_norm(input_ids, token_type_ids, weights, dropout_p=0.0, training=False):
    return _norm(F.dropout(_sum(input_ids, token_type_ids, weights), dropout_p, training), weights)


@embeddings.mistake("dropout before LayerNorm and after it", think="how often does dropout act?")
def dropout_twice(input_ids, token_type_ids, weights, dropout_p=0.0, training=False):
    return _done(F.dropout(_sum(input_ids, token_type_ids, weights), dropout_p, training), weights, dropout_p, training)


@embeddings.mistake("dropout on the word vectors alone", think="what is the very last result?")
def dropout_on_words(input_ids, token_type_ids, weights, dropout_p=0.0, training=False):
    words = weights["word"][input_ids]
    rest = _sum(input_ids, token_type_ids, weights) - words
    return _norm(F.dropout(words, dropout_p, training) + rest, weights)


@embeddings.mistake("dropout fixed at 0.1, whatever the caller says", think="what is the argument dropout_p for?")
def dropout_fixed(input_ids, token_type_ids, weights, dropout_p=0.0, training=False):
    return _done(_sum(input_ids, token_type_ids, weights), weights, 0.1, training)


@embeddings.mistake("dropout in evaluation and none in training", think="when does dropout rest?")
def dropout_the_wrong_way_round(input_ids, token_type_ids, weights, dropout_p=0.0, training=False):
    return _done(_sum(input_ids, token_type_ids, weights), weights, dropout_p, not training)


@embeddings.mistake(
    "dropout of 2012: nothing scaled up in training, all multiplied by 1 − p in evaluation",
    think="PyTorch divides by 1 − p in training: what is then left to do in evaluation?",
)
def dropout_scaled_in_evaluation(input_ids, token_type_ids, weights, dropout_p=0.0, training=False):
    x = _norm(_sum(input_ids, token_type_ids, weights), weights)
    return x * (torch.rand_like(x) >= dropout_p) if training else x * (1 - dropout_p)


@embeddings.mistake(
    "dropout in evaluation too (F.dropout and a new nn.Dropout act unless told not to)", think="who tells it to rest?"
)
def dropout_always(input_ids, token_type_ids, weights, dropout_p=0.0, training=False):
    return torch.nn.Dropout(dropout_p)(_norm(_sum(input_ids, token_type_ids, weights), weights))


@embeddings.mistake(
    "dropout_p taken for the share that is kept", think="with dropout_p = 0 nothing is dropped: is it so?"
)
def keeps_dropout_p(input_ids, token_type_ids, weights, dropout_p=0.0, training=False):
    return F.dropout(_norm(_sum(input_ids, token_type_ids, weights), weights), 1 - dropout_p, training)


@embeddings.mistake(
    "dropout without 1 / (1 − p)", think="is the average input of the next layer the same in evaluation?"
)
def dropout_not_scaled(input_ids, token_type_ids, weights, dropout_p=0.0, training=False):
    x = _norm(_sum(input_ids, token_type_ids, weights), weights)
    return x * (torch.rand_like(x) >= dropout_p) if training else x


@embeddings.mistake("whole tokens dropped (dropout1d)", think="what is drawn: a token, or each of its numbers?")
def whole_tokens_dropped(input_ids, token_type_ids, weights, dropout_p=0.0, training=False):
    return F.dropout1d(_norm(_sum(input_ids, token_type_ids, weights), weights), dropout_p, training)


@embeddings.mistake(
    "one draw of dropout for all texts of the batch", think="how many numbers are there, over all texts?"
)
def dropout_shared_by_texts(input_ids, token_type_ids, weights, dropout_p=0.0, training=False):
    x = _norm(_sum(input_ids, token_type_ids, weights), weights)
    return x * F.dropout(torch.ones_like(x[:1]), dropout_p, training)


@embeddings.mistake(
    "one draw of dropout for all tokens of a text", think="how many numbers are there, over all tokens?"
)
def dropout_shared_by_tokens(input_ids, token_type_ids, weights, dropout_p=0.0, training=False):
    x = _norm(_sum(input_ids, token_type_ids, weights), weights)
    return x * F.dropout(torch.ones_like(x[:, :1]), dropout_p, training)


@embeddings.mistake(
    "one draw of dropout for all tokens of all texts", think="is it the feature that is drawn, or each number?"
)
def whole_features_dropped(input_ids, token_type_ids, weights, dropout_p=0.0, training=False):
    x = _norm(_sum(input_ids, token_type_ids, weights), weights)
    return x * F.dropout(torch.ones_like(x[0, 0]), dropout_p, training)


@embeddings.mistake("squeeze(): one text alone loses its batch axis", think="which shape has a batch of one text?")
def squeezed(input_ids, token_type_ids, weights, dropout_p=0.0, training=False):
    return _done(_sum(input_ids, token_type_ids, weights).squeeze(0), weights, dropout_p, training)


@embeddings.mistake("a concatenation instead of a sum", think="how wide is a token's vector to be?")
def concatenated(input_ids, token_type_ids, weights, dropout_p=0.0, training=False):
    places = torch.arange(input_ids.size(1), device=input_ids.device).expand(input_ids.shape)
    parts = weights["word"][input_ids], weights["position"][places], weights["segment"][token_type_ids]
    return F.dropout(torch.cat([_norm(part, weights) for part in parts], dim=-1), dropout_p, training)


@embeddings.mistake("the tables changed in place", think="what does += do to the table that x was taken from?")
def tables_changed(input_ids, token_type_ids, weights, dropout_p=0.0, training=False):
    with torch.no_grad():
        weights["position"][: input_ids.size(1)] += weights["segment"][0]
    return _done(_sum(input_ids, token_type_ids, weights), weights, dropout_p, training)
