"""How do two models part? The reference's steps once more, each with one thing changed, until the numbers are yours.

A trial changes one step, then repeats the few steps that use it. When one of them gives a tensor that the student's
model computed (and that the reference, unchanged, has nowhere), the change is the mistake. Tensors are large, so an
agreement by accident is out of the question. Where no trial hits, the two nearest tensors are compared directly.
"""

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from coursework.debugger import Frame, Ref, Run, equal

FOLLOW = 12  # steps after the changed one that are repeated
SILENT = 8  # of these may pass before the first hit: a fused kernel leaves no trace of scores and weights
TRIED = 12  # suspects whose step is changed, the earliest first
BEFORE = 6  # generations of steps before the first suspect that are changed too: moving heads leaves no other trace

Free = list[tuple[Ref, Tensor]]  # the student's tensors, as rows, that equal nothing in the reference


@dataclass(frozen=True)
class Found:
    """kind in words; ref: where in the reference; yours, near: the student's tensor; like: the reference's to it.

    certain: with one change all that was repeated came out as the student's.
    """

    kind: str
    ref: Ref
    yours: Ref | None = None
    near: Tensor | None = None
    like: Ref | None = None
    certain: bool = False


def explain(
    truth: Run, rows: dict[Ref, Tensor], suspects: set[Ref], first: Ref, free: Free, frame: Frame, tol: float
) -> Found:
    """The best explanation there is: a trial that hits, a plain relation, or the nearest tensor.

    rows: the reference's tensors, token by token; suspects: those from which a way leads to a wrong output; first:
    the first of them; free: the student's tensors, token by token, of which the same can be said.
    """
    by_shape: dict[tuple, Free] = {}
    norms: dict[int, float] = {}  # by the tensor's id: most candidates are ruled out by their length
    for ref, x in free:
        by_shape.setdefault(tuple(x.shape), []).append((ref, x))
        norms[id(x)] = float(x.norm())

    def hit(x: Tensor) -> tuple[Ref, Tensor] | None:
        for seen in frame.readings(x)[:1]:
            norm = float(seen.norm())
            near = tol * float(seen.abs().max()) * seen.numel() ** 0.5
            for ref, mine in by_shape.get(tuple(seen.shape), ()):
                if norm > 0 and abs(norms[id(mine)] - norm) <= near and equal(mine, seen, tol):
                    return ref, mine
        return None

    best, furthest = None, -1
    for number in _to_change(truth, suspects, first):
        at = first if first.step == number else Ref(number, 0)
        for kind, outputs in _trials(truth, number):
            hits, to_the_end = _repeat(truth, number, outputs, hit)
            if to_the_end:
                return Found(kind, at, *hits[0], certain=True)
            if hits and max(ref.step for ref, *_ in hits) > furthest:  # the true change explains what follows, too
                furthest, best = max(ref.step for ref, *_ in hits), Found(kind, at, *hits[0])
        for kind, x in _other_weights(truth, number):
            if found := hit(x):
                best = best or Found(kind, at, *found, at)
                break
    if best:
        return best
    for ref in sorted((ref for ref in suspects if ref in rows), key=lambda ref: (ref.step, ref.place))[:4]:
        for yours, mine in by_shape.get(tuple(rows[ref].shape), ()):
            if kind := relation(mine, rows[ref], tol):
                return Found(kind, ref, yours, mine, ref)
    near = [(_cosine(mine, rows[first]), ref, mine) for ref, mine in by_shape.get(tuple(rows[first].shape), ())]
    if not near:
        return Found("no tensor of yours has as many numbers a token: left out, or of another size?", first)
    cosine, yours, mine = max(near, key=lambda entry: entry[0])
    if bool(mine.isnan().any()):
        return Found("NaN (not a number) in your tensor", first, yours, mine, first)
    return Found(
        f"no simple relation; the nearest of your tensors has a cosine of {cosine:.3f}", first, yours, mine, first
    )


def _to_change(truth: Run, suspects: set[Ref], first: Ref) -> list[int]:
    """Numbers of the steps to try, in order."""
    before, front = set(), {first.step}
    for _ in range(BEFORE):
        front = {ref.step for number in front for ref in truth.steps[number].parents()}
        before |= front
    near = sorted({ref.step for ref in suspects if ref.step >= first.step})[:TRIED]
    return [first.step, *sorted(before, reverse=True), *near[1:]]


def _repeat(truth: Run, number: int, outputs: list[Tensor], hit: Callable) -> tuple[list, bool]:
    """Put `outputs` in the place of a step's and run on: the student's tensors that come out, and whether the last
    step, too, gave one (then nothing is left to explain)."""
    changed = {Ref(number, place): x for place, x in enumerate(outputs)}
    hits = [(*found, ref) for ref, x in changed.items() if (found := hit(x))]
    repeated, last = 0, bool(hits)
    for later, step in enumerate(truth.steps[number + 1 :], number + 1):
        if repeated >= (FOLLOW if hits else SILENT):
            break
        if not any(ref in changed for ref in step.parents()):
            continue
        repeated += 1
        try:
            given = step.function(*_fill(truth, step.args, changed), **_fill(truth, step.kwargs, changed))
        except RuntimeError:  # the change made a shape that does not go on from here: this trial ends
            return hits, False
        tensors = [x for x in (given if isinstance(given, (tuple, list)) else [given]) if isinstance(x, Tensor)]
        for place, x in enumerate(tensors):
            changed[Ref(later, place)] = x
            if found := hit(x):
                hits.append((*found, Ref(later, place)))
            last = found is not None
    return hits, last


def _fill(truth: Run, value: Any, changed: dict[Ref, Tensor]) -> Any:
    """Recorded arguments with tensors in the place of each Ref: copies, since a step may work in place."""
    if isinstance(value, Ref):
        return changed.get(value, truth.steps[value.step].outputs[value.place]).clone()
    if type(value) in (list, tuple):
        return type(value)(_fill(truth, item, changed) for item in value)
    if isinstance(value, dict):
        return {key: _fill(truth, item, changed) for key, item in value.items()}
    return value


# ---------------------------------------------------------------- the changes


def _trials(truth: Run, number: int) -> Iterator[tuple[str, list[Tensor]]]:
    """(what was changed, the step's outputs then)."""
    step = truth.steps[number]
    changes = CHANGES.get(step.name)
    if changes is None:
        return
    args, kwargs = _fill(truth, step.args, {}), _fill(truth, step.kwargs, {})
    out = step.outputs[0]
    with torch.no_grad():
        for kind, x in changes(out, *args, **kwargs):
            if x.shape == out.shape and not torch.equal(x, out):
                yield kind, [x, *step.outputs[1:]]


def _other_weights(truth: Run, number: int) -> Iterator[tuple[str, Tensor]]:
    """A linear step or a LayerNorm with the weights of every other one; those of the same name first."""
    step = truth.steps[number]
    if step.name not in ("linear", "layer_norm"):
        return
    x, *mine = step.args
    others = [other for other in truth.steps if other.name == step.name and len(other.args) == len(step.args)]
    name = re.sub(r"\d+", "", step.module)
    for other in sorted(others, key=lambda other: re.sub(r"\d+", "", other.module) != name):
        theirs = other.args[1:]
        pairs = [(a, b) for a, b in zip(mine, theirs, strict=True) if isinstance(b, Tensor)]
        plain = not any(isinstance(value, Ref) for value in (*mine, *theirs))
        if plain and any(a is not b for a, b in pairs) and all(getattr(a, "shape", None) == b.shape for a, b in pairs):
            with torch.no_grad():
                changed = step.function(_fill(truth, x, {}), *theirs, **_fill(truth, step.kwargs, {}))
            yield f"computed with the weights of {other.title}", changed


def _linear(out, x, weight, bias=None):
    if bias is not None:
        yield "the bias is missing", F.linear(x, weight)
        yield "the bias is added twice", out + bias
        yield "the bias is subtracted", out - 2 * bias
    if weight.shape[0] == weight.shape[1]:
        yield "the weight is transposed: x @ W instead of x @ W.T", F.linear(x, weight.T, bias)
        yield "this step is left out", x


def _embedding(out, ids, weight, *rest, **more):
    yield "this embedding is left out", torch.zeros_like(out)
    yield "every token gets row 0 of the table", weight[torch.zeros_like(ids)]
    if int(ids.max()) + 1 < len(weight):
        yield "counted from 1: each id is one too high", weight[ids + 1]
    if int(ids.max()) <= 1:
        yield "0 and 1 are exchanged", weight[1 - ids]
    yield "scaled by √D, as in the Transformer of 2017", out * math.sqrt(out.shape[-1])


def _add(out, a, b, alpha=1):
    for kept, lost in ((a, "second"), (b, "first")):
        if isinstance(kept, Tensor) and kept.shape == out.shape:
            yield (
                f"only one of the two things added is there: the {lost} is missing (a residual, a bias or a mask?)",
                kept,
            )
    if isinstance(b, Tensor):
        yield "subtracted instead of added", a - b
        yield "multiplied instead of added", a * b


def _scaling(out, a, b):
    """a · b or a / b where b, or 1 / b, is a number such as √d."""
    if not isinstance(a, Tensor) or a.shape != out.shape:
        return
    yield "not scaled (scores are divided by √d)" if _is_score(out) else "this factor is left out", a
    if isinstance(b, (int, float)):
        factor = float((out * a).sum() / (a * a).sum())
        yield "scaled by 1/d instead of 1/√d", a * factor**2
        yield "scaled the wrong way round: multiplied where it should be divided", a / factor
        if out.ndim == 4:
            yield "scaled by √D, the whole width, instead of √d, one head's", out / math.sqrt(out.shape[1])


def _is_score(x: Tensor) -> bool:
    return x.ndim >= 3 and x.shape[-1] == x.shape[-2]


def _matmul(out, a, b):
    if a.shape[-1] == a.shape[-2]:
        yield "the first factor (the weights) is transposed", a.mT @ b


def _layer_norm(out, x, shape, weight=None, bias=None, eps=1e-5):
    mean, spread = x.mean(-1, keepdim=True), x.std(-1, keepdim=True, unbiased=False)
    weight = torch.ones(shape, dtype=x.dtype) if weight is None else weight
    bias = torch.zeros(shape, dtype=x.dtype) if bias is None else bias
    yield "LayerNorm is left out", x
    yield "LayerNorm without its γ and β", F.layer_norm(x, shape, eps=eps)
    yield "LayerNorm without β", F.layer_norm(x, shape, weight, None, eps)
    yield "LayerNorm without γ", F.layer_norm(x, shape, None, bias, eps)
    yield (
        "LayerNorm divides by n − 1 (unbiased variance)",
        weight * (x - mean) / (x.var(-1, keepdim=True) + eps).sqrt() + bias,
    )
    for other in (1e-3, 1e-5, 1e-6, 1e-8, 1e-12):
        if other != eps:
            yield f"LayerNorm with eps {other:g} instead of {eps:g}", F.layer_norm(x, shape, weight, bias, other)
        yield f"LayerNorm with eps {other:g} outside of the root", weight * (x - mean) / (spread + other) + bias
    yield "LayerNorm does not subtract the mean", weight * x / (spread.square() + eps).sqrt() + bias


def _gelu(out, x, approximate="none"):
    yield (
        ("GELU's tanh approximation (Google's code) instead of erf", F.gelu(x, approximate="tanh"))
        if approximate == "none"
        else ("the exact GELU instead of its tanh approximation", F.gelu(x))
    )
    yield "ReLU instead of GELU", F.relu(x)
    yield "SiLU instead of GELU", F.silu(x)
    yield "tanh instead of GELU", x.tanh()
    yield "the activation is left out", x


def _tanh(out, x):
    yield "tanh is left out", x
    yield "ReLU instead of tanh", F.relu(x)
    yield "GELU instead of tanh", F.gelu(x)


def _softmax(out, x, dim=-1, *rest, **more):
    for axis in range(x.ndim):
        if axis != dim % x.ndim:
            yield f"softmax over axis {axis} instead of {dim}", x.softmax(axis)
    if _is_score(x):
        future = torch.ones(x.shape[-2:], dtype=torch.bool).triu(1)
        yield "a causal mask: tokens do not see those after them", x.masked_fill(future, -math.inf).softmax(dim)
    yield "softmax is left out", x


def _sdpa(out, query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, **more):
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    bias = torch.zeros((), dtype=query.dtype) if attn_mask is None else attn_mask
    if bias.dtype == torch.bool:
        bias = torch.zeros(bias.shape, dtype=query.dtype).masked_fill(~bias, -1e9)
    dots = query @ key.mT

    def context(scores, dim=-1):
        return scores.softmax(dim) @ value

    yield "the scores are not scaled by 1/√d", context(dots + bias)
    yield "the scores are scaled by 1/d instead of 1/√d", context(dots * scale**2 + bias)
    yield (
        "the scores are scaled by √D, the whole width, instead of √d",
        context(dots * scale / math.sqrt(query.shape[1]) + bias),
    )
    yield "no mask: padding is looked at", context(dots * scale)
    yield "the mask is inverted", context(dots * scale + torch.where(bias < -1, 0.0, -1e9))
    yield "the mask is added as 1 and 0", context(dots * scale + (bias > -1).to(query.dtype))
    future = torch.ones(dots.shape[-2:], dtype=torch.bool).triu(1)
    yield "a causal mask: tokens do not see those after them", context((dots * scale + bias).masked_fill(future, -1e9))
    yield "softmax over the queries instead of the keys", context(dots * scale + bias, -2)
    yield "query and key are exchanged", context(dots.mT * scale + bias) if _is_score(dots) else out


def _select(out, x, index):
    """[CLS] taken out of every sequence: x[:, 0], or the rows of a stream where sequences begin."""
    if isinstance(index, tuple) and len(index) >= 2 and index[0] == slice(None) and index[1] == 0:
        yield "the last token instead of [CLS]", x[:, -1]
        yield "the mean over all tokens instead of [CLS]", x.mean(1)
        yield "the second token instead of [CLS]", x[:, 1]
    elif isinstance(index, Tensor) and index.ndim == 1 and len(index) and int(index[0]) == 0 and x.ndim == 2:
        ends = [*index[1:].tolist(), len(x)]
        yield "the last token instead of [CLS]", x[torch.tensor(ends) - 1]
        means = [x[i:j].mean(0) for i, j in zip(index.tolist(), ends, strict=True) if i < j]
        if len(means) == len(index):
            yield "the mean over all tokens instead of [CLS]", torch.stack(means)


def _move(out, x, *axes, **more):
    yield "heads and tokens are mixed: a view or reshape where axes have to be transposed", x.reshape(out.shape)


def _split(out, x, *shape, **more):
    if out.ndim > x.ndim:
        *outer, heads, size = out.shape
        mixed = x.reshape(*outer, size, heads).transpose(-1, -2)
        yield (
            "features are dealt out to the heads one by one, where each head has neighbours: (d, H), not (H, d)",
            mixed,
        )


CHANGES: dict[str, Callable[..., Iterator[tuple[str, Tensor]]]] = {
    "linear": _linear, "embedding": _embedding, "add": _add, "mul": _scaling, "div": _scaling, "matmul": _matmul,
    "layer_norm": _layer_norm, "gelu": _gelu, "tanh": _tanh, "softmax": _softmax,
    "scaled_dot_product_attention": _sdpa, "[ ]": _select, "transpose": _move, "permute": _move, "view": _split,
    "reshape": _split, "unflatten": _split,
}  # fmt: skip


# ---------------------------------------------------------------- relations between two tensors


def relation(mine: Tensor, true: Tensor, tol: float) -> str:
    """What `mine` is to `true`, both (N, W), if it can be said in one sentence; else ""."""
    limit = tol * float(true.abs().max())
    if not bool(mine.isfinite().all()):
        return ""
    factor = float((mine * true).sum() / (true * true).sum())
    if factor and float((mine - factor * true).abs().max()) <= limit * max(1.0, abs(factor)):
        return (
            "the sign is turned round"
            if abs(factor + 1) < tol
            else f"scaled: your numbers are {factor:.6g} times these"
        )
    gap = mine - true
    if len(gap) > 1 and float((gap - gap[0]).abs().max()) <= 2 * limit and float(gap[0].abs().max()) > limit:
        return f"the same vector is added to every row (its largest entry {float(gap[0].abs().max()):.3g}): a bias?"
    if float((mine.sort(-1).values - true.sort(-1).values).abs().max()) <= limit:
        return "the same numbers in each row, in another order: heads or features are exchanged"
    if float((mine.flatten().sort().values - true.flatten().sort().values).abs().max()) <= limit:
        return "the same numbers in other places: axes are transposed or mixed"
    if float(gap.abs().max()) <= 3e-2 * float(true.abs().max()) and _cosine(mine, true) > 0.9999:
        return f"almost equal (off by {float(gap.abs().max()):.2g}): another precision, or a formula a little different"
    return ""


def _cosine(a: Tensor, b: Tensor) -> float:
    return float(F.cosine_similarity(a.flatten().nan_to_num(), b.flatten().nan_to_num(), dim=0))
