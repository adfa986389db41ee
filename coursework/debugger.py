"""Where do two models part? The first tensor of a reference that a student's model does not have, and how it differs.

Nothing has to be named or built alike. Both models run on the same inputs while every tensor that a torch function
gives back is recorded, with the line of code that asked for it. A tensor of the reference *agrees* when the other
model computed the same numbers anywhere, in any layout: (B, S, D), (S, B, D), heads split off, padding dropped. A
step without a counterpart is excused when everything that is made from it has one, as fused products and
fast kernels leave steps out. The first step that is not excused is where the models part.

How they part is found by trial (`debugger_trials.py`): the reference's own steps are repeated with one thing changed
(no bias, another axis, other weights) until a tensor comes out that the student's model really computed.
"""

import linecache
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

TOLERANCE = {torch.float64: 1e-9, torch.float32: 2e-5}  # of a tensor's largest number; others: half precision
HALF = 2e-2
TORCH = str(Path(torch.__file__).parent)
CONSTANT = 1e-12  # a tensor whose numbers vary by less than this has nothing to tell


@dataclass(frozen=True)
class Difference:
    """What `first_difference` found. `str()` of it is the whole message; it is true when the models differ.

    kind: a few words, "" when equal. step, reference_line: the first step of the reference that does not agree, and
    its code. your_line: where the nearest tensor of the student's model comes from, "" if there is none. off: the
    largest difference to that tensor. tokens: which tokens differ. agrees: the last step that does agree.
    """

    kind: str = ""
    step: str = ""
    reference_line: str = ""
    your_line: str = ""
    off: float = 0.0
    tokens: str = ""
    agrees: str = ""
    outputs: str = ""

    def __bool__(self) -> bool:
        return bool(self.kind)

    def __str__(self) -> str:
        if not self:
            return f"✓ equal: {self.outputs}"
        lines = [f"✗ first difference: {self.step}"]
        for label, text in (
            ("how", self.kind), ("tokens", self.tokens), ("ref.", self.reference_line), ("yours", self.your_line),
            ("agrees", f"up to {self.agrees}" if self.agrees else "nothing before it"),
        ):  # fmt: skip
            if text:
                lines.append(f"  {label:<6} {text}")
        return "\n".join(lines)

    __repr__ = __str__


def first_difference(model: Callable, reference: Callable, inputs: Mapping | tuple | Tensor) -> Difference:
    """The first tensor of `reference` that `model` does not compute, and what is known of how it differs.

    model, reference: modules or functions, called alike; `lambda` adapts one that is called otherwise. inputs:
    keywords as a dictionary, positions as a tuple, or one tensor; the first tensor is (B, S, …), and
    "attention_mask" (1 = real), if there is one, says what is padding and of no matter. Best with B, S, heads and
    features of different sizes, weights in which no bias is 0 and no γ is 1, padding, and two segments; in float64
    (`model.double()`) differences of 1e-9 count, in float32 those of 2e-5.

    Both run as they are, in training or evaluation mode, without gradients. Raises ValueError if the reference gives
    another answer each time, or if neither output is of a form that can be compared.
    """
    reference = _spelled_out(reference)
    args, kwargs = _as_call(inputs)
    frame = Frame.of(args, kwargs)
    once, twice = (record(model, args, kwargs) for _ in range(2))
    if wavering := _first_wavering(once, twice, model):
        return wavering
    truth = record(reference, args, kwargs)
    if not _same(truth.outputs, record(reference, args, kwargs).outputs):
        raise ValueError("the reference gives another answer each time: call .eval() on it")
    told, wrong = _pair_outputs(once, truth, frame)
    if not told:
        shapes = [[tuple(x.shape) for x in run.outputs] for run in (once, truth)]
        return Difference(f"shape: your model returns {shapes[0]}, the reference {shapes[1][:4]}", "the output")
    if not wrong:
        count = f"{len(told)} outputs" if len(told) > 1 else "the output"
        return Difference(outputs=f"{count} to {max(told):.0e} of the largest number")
    return _place(once, truth, frame, wrong)


def _spelled_out(reference: Callable) -> Callable:
    """Our own model writes every step out only when asked for the attention weights."""
    from bert_minimal import Bert

    if not isinstance(reference, Bert):
        return reference
    return Named(reference, {"output_attentions": True})


@dataclass(frozen=True)
class Named:
    """A module called with more keywords than the caller gives."""

    module: nn.Module
    more: dict

    def __call__(self, *args, **kwargs):
        return self.module(*args, **kwargs, **self.more)


def _as_call(inputs) -> tuple[tuple, dict]:
    if isinstance(inputs, Mapping):
        return (), dict(inputs)
    return ((inputs,) if isinstance(inputs, Tensor) else tuple(inputs)), {}


# ---------------------------------------------------------------- recording


@dataclass(frozen=True)
class Ref:
    """Stands in recorded arguments for a tensor that an earlier step gave."""

    step: int
    place: int


@dataclass
class Step:
    """One call of a torch function that gave floating-point tensors made from weights or activations."""

    function: Callable
    name: str  # "linear"
    args: tuple  # with Ref for what came from earlier steps
    kwargs: dict
    outputs: list[Tensor]  # copies: what a later in-place operation does to the original does not show
    module: str  # "encoder.layer.0.attention.self.query"; "" outside of named modules
    line: str  # "model.py:12  x = F.linear(x, w, b)"

    @property
    def title(self) -> str:
        return f"{self.module or self.line.partition('  ')[0]} ({self.name})"

    def parents(self) -> list[Ref]:
        return [value for value in _leaves((self.args, self.kwargs)) if isinstance(value, Ref)]


@dataclass
class Run:
    """All steps of one call, in order. outputs: the tensors it returned; made_by: their steps, or None."""

    steps: list[Step] = field(default_factory=list)
    outputs: list[Tensor] = field(default_factory=list)
    made_by: list[Ref | None] = field(default_factory=list)


class _Recorder(TorchFunctionMode):
    def __init__(self, dead: list[Tensor], names: dict[int, str]):
        super().__init__()
        self.run = Run()
        self.names = names
        self.kept: list[Any] = list(dead)  # so that no id is used a second time
        self.known: dict[int, Ref] = {}
        self.dead = {id(tensor) for tensor in dead}

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        live = self._is_live(args, kwargs)
        packed = (self._pack(args), self._pack(kwargs)) if live else ((), {})
        given = function(*args, **kwargs)
        name = getattr(function, "__name__", str(function))
        tensors = [args[0]] if name == "__setitem__" else [v for v in _leaves(given) if isinstance(v, Tensor)]
        self.kept += tensors
        tensors = [tensor for tensor in tensors if tensor.is_floating_point()]
        if not live:
            self.dead |= {id(tensor) for tensor in tensors}
        elif tensors and tensors[0].device.type != "meta":
            number = len(self.run.steps)
            copies = [tensor.detach().clone() for tensor in tensors]
            module, line = _code(self.names)
            step = Step(function, plain_name(name), packed[0], packed[1], copies, module, line)
            self.run.steps.append(step)
            for i, tensor in enumerate(tensors):
                self.known[id(tensor)] = Ref(number, i)
        return given

    def _is_live(self, args, kwargs) -> bool:
        """Whether floating-point numbers other than a mask's go in: what is made of ids and masks says little."""
        tensors = [v for v in _leaves((args, kwargs)) if isinstance(v, Tensor) and v.is_floating_point()]
        return any(id(tensor) not in self.dead for tensor in tensors)

    def _pack(self, value):
        if isinstance(value, Tensor):
            self.kept.append(value)
            return self.known.get(id(value), value)
        if type(value) in (list, tuple):
            return type(value)(self._pack(item) for item in value)
        if isinstance(value, dict):
            return {key: self._pack(item) for key, item in value.items()}
        return value


def plain_name(name: str) -> str:
    """`add_` and `__radd__` are additions like any other."""
    name = name.strip("_")
    return {"radd": "add", "rmul": "mul", "truediv": "div", "method": "attribute", "getitem": "[ ]"}.get(name, name)


def record(model: Callable, args: tuple, kwargs: dict) -> Run:
    """Run `model` and keep what every torch function in it gave. Random numbers are left as they were."""
    mask = kwargs.get("attention_mask")
    module = model.module if isinstance(model, Named) else model
    names = {id(part): name for name, part in module.named_modules()} if isinstance(module, nn.Module) else {}
    recorder = _Recorder([mask] if isinstance(mask, Tensor) else [], names)
    with torch.no_grad(), torch.random.fork_rng(), recorder:
        torch.seed()
        given = model(*args, **kwargs)
    run = recorder.run
    values = given.__dict__ if hasattr(given, "__dataclass_fields__") and not isinstance(given, Mapping) else given
    for value in _leaves(values):
        if isinstance(value, Tensor) and value.is_floating_point():
            run.outputs.append(value.detach())
            run.made_by.append(recorder.known.get(id(value)))
    return run


def _code(names: dict[int, str]) -> tuple[str, str]:
    """Where this is happening: the innermost module whose method runs, and the line of code, outside of torch."""
    frame, line, module = sys._getframe(2), "", ""
    while frame and not (line and module):
        path = frame.f_code.co_filename
        if not line and path != __file__ and not path.startswith(TORCH):
            place = f"{Path(path).name}:{frame.f_lineno}" if path.endswith(".py") else f"{frame.f_code.co_name}()"
            line = f"{place}  {linecache.getline(path, frame.f_lineno).strip()}"
        module = module or names.get(id(frame.f_locals.get("self")), "")
        frame = frame.f_back
    return module, line


def _leaves(value) -> Iterator:
    """Everything in nested tuples, lists and dictionaries."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from _leaves(item)
    else:
        yield value


# ---------------------------------------------------------------- comparing whatever the layout


@dataclass(frozen=True)
class Frame:
    """Batch, length and which tokens are real: what it takes to read a tensor token by token."""

    real: Tensor  # (B, S) bool
    segments: Tensor | None  # (B, S), 0 and 1

    @classmethod
    def of(cls, args: tuple, kwargs: dict) -> "Frame":
        tensors = [v for v in (kwargs.get("input_ids"), *args, *kwargs.values()) if isinstance(v, Tensor)]
        if not tensors or tensors[0].ndim < 2:
            raise ValueError("the first tensor among the inputs has to be (batch, tokens, …)")
        mask = kwargs.get("attention_mask")
        if mask is None or mask.shape != tensors[0].shape[:2]:
            mask = torch.ones(tensors[0].shape[:2], device=tensors[0].device)
        return cls(mask != 0, kwargs.get("token_type_ids"))

    def readings(self, x: Tensor) -> list[Tensor]:
        """Every way to see x as rows of numbers, one row a real token (N, W) or one row a sequence (B, W)."""
        batch, length = self.real.shape
        count = int(self.real.sum())
        x = x.detach().double().cpu()
        found: list[Tensor] = []
        if x.ndim >= 2 and x.shape[0] == count:
            found.append(x.flatten(1))  # padding dropped, tokens end to end
        if x.ndim >= 2 and x.shape[0] == batch * length:
            found += self._by_token(x.unflatten(0, (batch, length)), [1])
        if x.ndim >= 3 and x.shape[0] % batch == 0 and x.shape[0] > batch and length in x.shape[1:]:
            x = x.unflatten(0, (batch, -1))  # heads folded into the batch, for torch.bmm
        axes = [i for i, size in enumerate(x.shape) if size == batch][:1]
        if not axes and (batch == 1 or (x.ndim == 2 and x.shape[0] == length)):
            x, axes = x.expand(batch, *x.shape), [0]
        if axes:
            x = x.movedim(axes[0], 0)
        elif x.ndim >= 2 and x.shape[0] == 1 and length in x.shape[1:]:
            x, axes = x.expand(batch, *x.shape[1:]), [0]
        if axes and x.ndim >= 2:
            tokens = [i for i in range(1, x.ndim) if x.shape[i] == length]
            if len(tokens) > 1 and tokens[-2:] == [x.ndim - 2, x.ndim - 1]:
                tokens = tokens[:-1]  # (…, S, S): the last axis holds the keys
            found += self._by_token(x, tokens)
            if not tokens:
                found.append(x.flatten(1))  # one row a sequence
        return [rows for rows in found if rows.shape[1] > 0]

    def _by_token(self, x: Tensor, axes: list[int]) -> list[Tensor]:
        found = []
        for axis in axes:
            y = x.movedim(axis, 1)
            if y.ndim > 2 and y.shape[-1] == self.real.shape[1]:  # keys: what padding gets is of no matter
                keys = self.real.cpu().view(len(y), *[1] * (y.ndim - 2), -1)
                y = torch.where(keys, y, 0.0)
            found.append(y[self.real.cpu()].flatten(1))
        return found

    def tokens(self, wrong: Tensor) -> str:
        """(N,) of bool, or (B,) for one row a sequence -> which tokens they are, in words."""
        if bool(wrong.all()):
            return "all"
        batch = len(self.real)
        if len(wrong) == batch and len(wrong) != int(self.real.sum()):
            return f"sequences {wrong.nonzero().flatten().tolist()}"
        row, column = self.real.cpu().nonzero().T
        padded = ~self.real.cpu().all(1)
        if torch.equal(wrong, padded[row]):
            return "all in the sequences that have padding, none in the others"
        if self.segments is not None and torch.equal(wrong, self.segments.cpu()[row, column] == 1):
            return "all of segment 1, none of segment 0"
        if torch.equal(wrong, column > 0):
            return "all but the first of each sequence"
        where = column[wrong].unique().tolist()
        return f"{int(wrong.sum())} of {len(wrong)}, at positions {', '.join(map(str, where[:8]))}" + (
            " …" if len(where) > 8 else ""
        )


class Pool:
    """The tensors of one run, ready to be searched by value."""

    def __init__(self, run: Run, frame: Frame):
        self.frame = frame
        self.entries: list[tuple[Ref, Tensor]] = []
        for number, step in enumerate(run.steps):
            for place, x in enumerate(step.outputs):
                self.entries += [(Ref(number, place), rows) for rows in frame.readings(x)]
        self.by_shape: dict[tuple, list[int]] = {}
        self.norms = [float(rows.norm()) for _, rows in self.entries]
        for i, (_, rows) in enumerate(self.entries):
            self.by_shape.setdefault(tuple(rows.shape), []).append(i)

    def same_shape(self, rows: Tensor) -> list[tuple[Ref, Tensor]]:
        return [self.entries[i] for i in self.by_shape.get(tuple(rows.shape), ())]

    def find(self, rows: Tensor, tolerance: float) -> list[Ref]:
        """Where the same numbers were computed."""
        norm, near = float(rows.norm()), tolerance * float(rows.abs().max()) * rows.numel() ** 0.5
        return [
            self.entries[i][0]
            for i in self.by_shape.get(tuple(rows.shape), ())
            if abs(self.norms[i] - norm) <= near and equal(self.entries[i][1], rows, tolerance)
        ]


def tolerance_of(*tensors: Tensor) -> float:
    return max(TOLERANCE.get(tensor.dtype, HALF) for tensor in tensors)


def equal(a: Tensor, b: Tensor, tolerance: float) -> bool:
    """Equal to a share of the largest number: that of the smaller tensor, so that nothing equals a mask of −1e38."""
    return float((a - b).abs().max()) <= tolerance * min(float(a.abs().max()), float(b.abs().max()))


def _same(a: list[Tensor], b: list[Tensor]) -> bool:
    return len(a) == len(b) and all(torch.allclose(x, y, equal_nan=True) for x, y in zip(a, b, strict=True))


# ---------------------------------------------------------------- the three questions


def _first_wavering(once: Run, twice: Run, model: Callable) -> Difference | None:
    """Two runs of one model on the same inputs: the first step that gives other numbers the second time."""
    for a, b in zip(once.steps, twice.steps, strict=False):
        if _same(a.outputs, b.outputs):
            continue
        wrong = torch.cat([(x != y).flatten() for x, y in zip(a.outputs, b.outputs, strict=True)])
        training = isinstance(model, nn.Module) and model.training
        if "dropout" not in a.name:
            kind = "other numbers each time it runs: something random is in it"
        elif training:
            kind = "dropout is on: the model is in training mode. Call .eval() on it before comparing"
        else:
            kind = "dropout is on outside of training mode: does F.dropout get training=self.training?"
        share = f"{float(wrong.double().mean()):.0%} of the numbers change from run to run"
        return Difference(kind, a.title, tokens=share, your_line=a.line)
    return None


def _pair_outputs(run: Run, truth: Run, frame: Frame) -> tuple[list[float], list[tuple]]:
    """How far each output is off, relatively; and the pairs that should be equal and are not, see `_place`."""
    told, wrong, used = [], [], set()
    for ours, made in zip(run.outputs, run.made_by, strict=True):
        for number, (theirs, theirs_made) in enumerate(zip(truth.outputs, truth.made_by, strict=True)):
            if number in used or (pair := _rows_alike(frame.readings(ours), frame.readings(theirs))) is None:
                continue
            used.add(number)
            got, want = pair
            told.append(float((got - want).abs().max() / want.abs().max().clamp_min(1e-30)))
            if not told[-1] <= tolerance_of(ours, theirs) and theirs_made is not None:
                wrong.append((ours, made, theirs, theirs_made))
            break
    return told, wrong


def _rows_alike(ours: list[Tensor], theirs: list[Tensor]) -> tuple[Tensor, Tensor] | None:
    """One reading of each with the same shape."""
    return next(((a, b) for b in theirs for a in ours if a.shape == b.shape), None)


def _place(run: Run, truth: Run, frame: Frame, wrong: list[tuple[Tensor, Ref | None, Tensor, Ref]]) -> Difference:
    """wrong: pairs of outputs that should be equal, each with the step that made it."""
    from coursework.debugger_trials import explain, relation

    pool = Pool(run, frame)
    tolerance = tolerance_of(*run.outputs, *truth.outputs)
    rows = {  # the reference's tensors as rows, where they can be read and are not constant
        Ref(i, k): seen[0]
        for i, step in enumerate(truth.steps)
        for k, x in enumerate(step.outputs)
        if (seen := [r for r in frame.readings(x) if float(r.std()) > CONSTANT])
    }
    matches = {ref: found for ref, x in rows.items() if (found := pool.find(x, tolerance))}
    suspects = _not_excused(truth, set(matches), [ref for *_, ref in wrong])
    readable = [ref for ref in suspects if ref in rows]
    if not readable:  # all the right numbers are there, and something else is returned
        ours, _, theirs, ref = wrong[0]
        mine, true = _rows_alike(frame.readings(ours), frame.readings(theirs))
        kind = relation(mine, true, tolerance)
        kind = f"every step agrees; what you return differs: {kind or 'is it the last result?'}"
        return Difference(kind, truth.steps[ref.step].title, truth.steps[ref.step].line)

    first = min(readable, key=lambda ref: (ref.step, ref.place))
    before = [ref.step for ref in matches if ref.step < first.step]
    agrees = truth.steps[max(before)].title if before else ""
    made = [ref for _, ref, *_ in wrong if ref is not None]
    open_ends = _not_excused(run, {ref for found in matches.values() for ref in found}, made) | set(made)
    free = [(ref, x) for ref, x in pool.entries if ref in open_ends]
    found = explain(truth, rows, suspects, first, free, frame, tolerance)
    if not found.certain and (early := _returns_early([x for x, *_ in wrong], truth, rows, frame, tolerance)):
        kind = f"steps are missing: your output is the result of {early} already"
        return Difference(kind, truth.steps[first.step].title, truth.steps[first.step].line, agrees=agrees)
    at, off, tokens = truth.steps[found.ref.step], 0.0, ""
    if found.near is not None and found.like in rows:
        gap = (found.near - rows[found.like]).abs()
        off, tokens = float(gap.max()), frame.tokens(gap.max(1).values > tolerance * rows[found.like].abs().max())
    line = run.steps[found.yours.step].line if found.yours is not None else ""
    return Difference(found.kind, at.title, at.line, line, off, tokens, agrees)


def _returns_early(outputs: list[Tensor], truth: Run, rows: dict, frame: Frame, tolerance: float) -> str:
    """The step of the reference that gives what the student's model returns as its last result, or ""."""
    seen = [reading for x in outputs for reading in frame.readings(x)]
    for ref, true in rows.items():
        if any(x.shape == true.shape and equal(x, true, tolerance) for x in seen):
            return truth.steps[ref.step].title
    return ""


def _not_excused(truth: Run, matched: set[Ref], wanted: list[Ref]) -> set[Ref]:
    """The tensors from which a way leads to a wrong output without passing one that agrees."""
    suspects, ahead = set(), list(wanted)
    while ahead:
        ref = ahead.pop()
        if ref not in suspects and ref not in matched:
            suspects.add(ref)
            ahead += truth.steps[ref.step].parents()
    return suspects
