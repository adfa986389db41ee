"""What all checks share. A check is two pure functions with a runner between them:

    cases(seed)            plain calls, each belonging to one *part* of the verdict
    judge(cases, answers)  plain answers -> which parts pass, the points, and the words

In a notebook the runner works in the same process; at grading it works alone in the student's kernel, while the
cases, the references and the mistakes stay on the trusted side. Nothing here ever executes a student's code.
"""

import inspect
import json
import math
import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from coursework import runner

INSTANT_SEED = 2018  # the instant check asks the same questions each time; the grader's seed is secret
HOLDS_ANSWERS = ("bert_minimal", "coursework", "transformers", "tokenizers")
RTOL, ATOL = 1e-4, 1e-5  # of a value, and of the largest value in its tensor (float32 inputs)
SAME = 1e-5  # two wrong answers are the same mistake when they differ by no more than this, relatively


class CheckFailed(AssertionError):
    """A wrong answer, told in a few lines: notebooks show the message alone, without a traceback."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


# ---------------------------------------------------------------- questions and answers


@dataclass(frozen=True)
class Call:
    """One plain question: call `name` with these tensors and plain values.

    `wrt` lists the arguments whose gradients of Σ output · cotangent are asked for: a position in `args`, or
    (position, key) for a tensor in a dictionary. `driver`: a probe that is called with the student's function, then
    these arguments, and asks it where it lives (makes a model of a class, looks at its parameters, trains it …).
    """

    args: tuple
    kwargs: dict[str, Any] = field(default_factory=dict)
    wrt: tuple[int | tuple[int, str], ...] = ()
    cotangents: tuple[torch.Tensor, ...] = ()
    name: str = ""  # the exercise's own name unless said otherwise
    seed: int = 0
    driver: runner.Probe | None = None


@dataclass(frozen=True)
class Answer:
    """What came back: a value and gradients, or an error {"type", "message", "line"}."""

    value: Any = None
    grads: list | None = None
    changed: tuple[int | str, ...] = ()  # arguments changed in place: a position, or a keyword
    error: dict | None = None
    printed: str = ""


@dataclass(frozen=True)
class Case:
    """Calls that decide one part of the verdict, and the sentence for when they fail.

    Without `holds`, the answers must equal the reference's; `{off}` in `says` becomes the largest difference. With
    `holds`, it gets the answers to all calls (of the right type and shape, free of NaN where the reference is) and
    returns None or a sentence of its own. `random`: the answers depend on a random generator, so a mistake is
    recognised by that sentence and not by the numbers. `raises`: the right answer to each call is this error.
    `loose`: `holds` judges lengths and keys as well, and gets every answer of the right type.
    """

    part: str
    calls: tuple[Call, ...]
    says: str = ""
    holds: Callable[..., str | None] | None = None
    random: bool = False
    raises: str = ""
    loose: bool = False


@dataclass(frozen=True)
class Part:
    """One step of the exercise that earns points by itself.

    kind "value" or "gradient" compares numbers; "invariant" earns nothing until some values are right.
    """

    name: str
    weight: float = 1.0
    kind: str = "value"


class Inputs:
    """Seeded random inputs of one dtype, loud enough that no mistake hides."""

    def __init__(self, seed: int, dtype: torch.dtype = torch.float32):
        self.dtype = dtype
        self.random = random.Random(seed)
        self._generator = torch.Generator().manual_seed(seed)

    def normal(self, *shape: int, scale: float = 1.0, mean: float = 0.0) -> torch.Tensor:
        noise = torch.randn(shape, generator=self._generator, dtype=torch.float64)
        return (noise * scale + mean).to(self.dtype)

    def integers(self, low: int, high: int, *shape: int) -> torch.Tensor:
        """Whole numbers in [low, high), int64."""
        return torch.randint(low, high, shape, generator=self._generator)

    def padding_mask(self, batch: int, length: int) -> torch.Tensor:
        """(batch, length) of 1 and 0: every row starts with at least two real tokens and ends in padding."""
        lengths = self.integers(2, length, batch)  # at most length - 1
        return (torch.arange(length) < lengths[:, None]).long()


Run = Callable[[list[dict], str], list[dict]]  # wire calls, device -> wire answers


def run_here(namespace: dict) -> Run:
    """A runner in this process, through the same wire as the grader's."""

    def run(calls: list[dict], device: str) -> list[dict]:
        return json.loads(runner.serve(json.dumps({"calls": calls, "device": device}), namespace))

    return run


def run_variant(name: str, function: Callable) -> Run:
    """A runner for what stands in the checks themselves: a reference, a mistake, an alternative."""

    def run(calls: list[dict], device: str) -> list[dict]:
        return run_here({name: function})([call | {"modules": [], "seconds": None} for call in calls], device)

    return run


# ---------------------------------------------------------------- comparing


@dataclass(frozen=True)
class Difference:
    """How an answer differs from the expected one. kind: type, shape, nan, value; size: for values.

    `text` follows "the result", and stands alone for a type, a shape and a NaN.
    """

    kind: str
    text: str
    size: float = math.inf


def compare(got: Any, want: Any, rtol: float = RTOL, atol: float = ATOL) -> Difference | None:
    """The first difference that matters, or None. `want` may be of higher precision than `got`."""
    if isinstance(want, torch.Tensor):
        return _compare_tensors(got, want, rtol, atol)
    if isinstance(want, (list, tuple)):
        if not isinstance(got, (list, tuple)):
            return Difference("type", f"returns {describe(got)}, expected {describe(want)}")
        if len(got) != len(want):
            return Difference("shape", f"returns {len(got)} values, expected {len(want)}")
        for i, (g, w) in enumerate(zip(got, want, strict=True)):
            difference = compare(g, w, rtol, atol)
            if difference and difference.kind == "type" and difference.text.startswith("returns "):
                text = f"in place {i} of the result stands {difference.text.removeprefix('returns ')}"
                return replace(difference, text=text)
            if difference:
                return difference
        return None
    if isinstance(want, dict):
        if not isinstance(got, dict):
            return Difference("type", f"returns {describe(got)}, expected {describe(want)}")
        if set(got) != set(want):
            return Difference("shape", f"returns the keys {sorted(map(str, got))}")
        for key in want:
            difference = compare(got[key], want[key], rtol, atol)
            if difference:
                return replace(difference, text=f"{difference.text}, in {key!r}")
        return None
    if isinstance(want, float) and isinstance(got, torch.Tensor) and got.numel() == 1:
        got = got.item()  # a number in a tensor is a number
    if isinstance(want, bool) and isinstance(got, torch.Tensor) and got.dtype == torch.bool and got.numel() == 1:
        got = bool(got)
    if isinstance(want, (int, float)) and not isinstance(want, bool):
        if isinstance(got, bool) or not isinstance(got, (int, float)):
            return Difference("type", f"returns {describe(got)}, expected a number")
        if math.isnan(got) and not math.isnan(want):
            return Difference("nan", "returns NaN, which is not a number")
        if not math.isclose(got, want, rel_tol=rtol, abs_tol=atol):
            return Difference("value", f"is off by {abs(got - want):.2g}", abs(got - want))
        return None
    if type(got) is not type(want):
        return Difference("type", f"returns {describe(got)}, expected {'None' if want is None else describe(want)}")
    return None if got == want else Difference("value", "is not what was expected")


def _compare_tensors(got: Any, want: torch.Tensor, rtol: float, atol: float) -> Difference | None:
    if not isinstance(got, torch.Tensor):
        return Difference("type", f"returns {describe(got)}, expected {describe(want)}")
    if got.shape != want.shape:
        text = f"returns shape {tuple(got.shape)}, expected {tuple(want.shape)}"
        return Difference("shape", text)
    if got.dtype.is_floating_point != want.dtype.is_floating_point or (
        (got.dtype == torch.bool) != (want.dtype == torch.bool)
    ):
        return Difference("type", f"returns {describe(got)}, expected {describe(want)}")
    if not want.dtype.is_floating_point:
        wrong = int((got.to(want.dtype) != want).sum())
        return Difference("value", f"{wrong} of {want.numel()} entries are wrong", wrong) if wrong else None
    got, want = got.double(), want.double()
    nan = got.isnan() & ~want.isnan()
    if bool(nan.any()):
        return Difference("nan", f"returns NaN (not a number) in {_where(nan)}")
    if bool((got.isinf() & want.isfinite()).any()):
        return Difference("value", f"is infinite in {_where(got.isinf() & want.isfinite())}")
    gap = torch.where(got == want, 0.0, (got - want).abs())  # equal infinities are equal
    gap = torch.where(got.isnan() & want.isnan(), 0.0, gap)
    finite = want[want.isfinite()].abs()
    scale = float(finite.max()) if finite.numel() else 0.0
    if bool((gap <= rtol * want.abs().nan_to_num() + atol * max(scale, 1e-30)).all()):
        return None
    size = float(gap.nan_to_num(posinf=math.inf).max())
    return Difference("value", f"is off by {size:.2g}", size)


def _where(entries: torch.Tensor) -> str:
    first = [int(i) for i in entries.nonzero()[0]]
    return f"{int(entries.sum())} of {entries.numel()} entries, the first at {first}"


def describe(value: Any) -> str:
    """What a value is, in a student's words."""
    if value is None:
        return "None (is a `return` missing?)"
    if isinstance(value, torch.Tensor):
        kind = "float" if value.dtype.is_floating_point else str(value.dtype).removeprefix("torch.")
        return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind} tensor of shape {tuple(value.shape)}"
    if isinstance(value, dict) and set(value) == {"other", "text"}:
        return value["other"] if value["other"].startswith("a ") else f"a {value['other']}"
    if isinstance(value, (list, tuple)):
        return f"a {type(value).__name__} of {len(value)}"
    article = "an" if type(value).__name__[0] in "aeiou" else "a"
    return f"{article} {type(value).__name__}"


# ---------------------------------------------------------------- the verdict


@dataclass(frozen=True)
class Verdict:
    """What a check has to say. `mistake` and `failed` are names for programs; `text()` is for people."""

    number: str
    title: str
    see: str
    parts: tuple[tuple[str, bool], ...]
    points: float
    max_points: float
    what: str = ""
    looks: str = ""
    think: str = ""
    mistake: str | None = None
    failed: str | None = None  # the first part that fails
    blank: bool = False
    picture: tuple[torch.Tensor, torch.Tensor] | None = None  # yours, expected; instant check only
    printed: str = ""

    @property
    def passed(self) -> bool:
        return self.failed is None

    def text(self) -> str:
        head = f"{self.number} {self.title}"
        if self.blank:
            return f"○ {head}: not answered yet"
        right = sum(ok for _, ok in self.parts)
        if self.passed:
            return f"✓ {head}: all {right} parts pass ({self.points:g} of {self.max_points:g} points)"
        lines = [f"✗ {head}: {right} of {len(self.parts)} parts pass"]
        for label in ("what", "looks", "think", "see"):
            if getattr(self, label):
                lines.append(f"  {label:<6} {getattr(self, label)}")
        return "\n".join(lines)


@dataclass(frozen=True)
class Variant:
    """A known mistake, or a right alternative that differs in structure: an implementation as code."""

    name: str
    function: Callable
    looks: str = ""
    think: str = ""


class Exercise:
    """One graded function: its cases, reference, known mistakes and right alternatives.

    number "01.3"; name of the student's function; lesson "01_attention" and its section for "see";
    `exclude`: what the student must write himself (keys of runner.EXCLUDABLE); `seconds`: limit of one call.
    """

    def __init__(
        self,
        number: str,
        name: str,
        title: str,
        *,
        lesson: str,
        section: str,
        points: float,
        parts: Sequence[Part],
        exclude: tuple[str, ...] = (),
        seconds: float = 2.0,
        draw: bool = False,
    ):
        self.number, self.name, self.title, self.points = number, name, title, float(points)
        self.see = f'notebooks/{lesson}, "{section}"'
        self.parts = (Part("shape", 1.0, "invariant"), *parts)
        self.exclude, self.seconds, self.draw = exclude, seconds, draw
        self.mistakes: dict[str, Variant] = {}
        self.alternatives: dict[str, Variant] = {}
        self._reference: Callable | None = None
        self._cases: Callable[[Inputs], Iterator[Case]] | None = None
        self._canonical: Callable[[Any], Any] = lambda value: value
        self._reward: Callable[[Callable], None] | None = None

    # ------------------------------------------------------------ what a unit's module says of it

    def reference(self, function: Callable) -> Callable:
        """Decorator: the right answer, in float64 and slow on purpose."""
        self._reference = function
        return function

    def cases(self, function: Callable[[Inputs], Iterator[Case]]) -> Callable:
        """Decorator: a generator of cases from seeded Inputs."""
        self._cases = function
        return function

    def mistake(self, looks: str, *, think: str) -> Callable:
        """Decorator: a wrong implementation that students really write; `looks` follows "looks like …"."""

        def add(function: Callable) -> Callable:
            self.mistakes[function.__name__] = Variant(function.__name__, function, looks, think)
            return function

        return add

    def alternative(self, function: Callable) -> Callable:
        """Decorator: a right implementation of another structure; must get full marks."""
        self.alternatives[function.__name__] = Variant(function.__name__, function)
        return function

    def canonical(self, function: Callable[[Any], Any]) -> Callable:
        """Decorator: brings values that mean the same to one form before a mistake is recognised by them.

        It gets whatever a student returns and gives back unchanged what it does not know.
        """
        self._canonical = function
        return function

    def reward(self, function: Callable[[Callable], None]) -> Callable:
        """Decorator: shown once everything passes, with the student's own function."""
        self._reward = function
        return function

    # ------------------------------------------------------------ the two pure functions

    def questions(self, seed: int, dtype: torch.dtype = torch.float32, rounds: int = 1) -> list[Case]:
        """`rounds` lots of cases; the same seed gives the same cases."""
        assert self._cases is not None
        return [case for i in range(rounds) for case in self._cases(Inputs(seed + 7919 * i, dtype))]

    def judge(self, cases: list[Case], answers: list[list[Answer]], show: bool = False) -> Verdict:
        """Plain answers -> verdict. answers[i] belongs to cases[i].calls. `show` adds the picture."""
        expected = self._expected(cases)
        kind = {part.name: part.kind for part in self.parts}
        found = [self._look(*three) for three in zip(cases, answers, expected, strict=True)]
        values = [
            look for case, (look, _) in zip(cases, found, strict=True) if kind[case.part] == "value" and not case.raises
        ]
        never_runs = all(look == "error" for look in values)
        failed: dict[str, str] = {}  # part -> its first sentence, the first failing case first
        for case, (look, sentence) in zip(cases, found, strict=True):
            if sentence is None:
                continue
            if look in ("type", "shape") or (look == "error" and never_runs):
                failed.setdefault("shape", sentence)
            failed.setdefault(case.part, sentence)
        first = next(iter(failed), None)
        verdict = Verdict(
            self.number, self.title, self.see, tuple((part.name, part.name not in failed) for part in self.parts),
            self._credit(failed), self.points, failed=first, what=failed.get(first or "", ""),
            printed=answers[0][0].printed,
        )  # fmt: skip
        if verdict.passed:
            return verdict
        if show and self.draw:
            wrong = next(i for i, (_, sentence) in enumerate(found) if sentence is not None)
            pair = [self._canonical(group[wrong][0].value) for group in (answers, expected)]
            if all(isinstance(value, torch.Tensor) for value in pair):
                verdict = replace(verdict, picture=tuple(pair))
        return self._name(verdict, cases, answers, expected, [sentence for _, sentence in found])

    def _look(self, case: Case, got: list[Answer], want: list[Answer]) -> tuple[str, str | None]:
        """(kind of failure, sentence) of one case; the sentence is None when it passes."""
        if case.raises:
            said = next((said for answer in got if (said := _misses(case, answer, self.name))), None)
            return "value", said
        error = next((answer.error for answer in got if answer.error), None)
        if error:
            return "error", _tell_error(error, self.name)
        changed = [path for g, w in zip(got, want, strict=True) for path in g.changed if path not in w.changed]
        if changed:
            return "changed", f"changes its argument {self._argument(changed[0])} in place: the caller still needs it"
        pairs = list(zip(got, want, strict=True))
        found = [difference for g, w in pairs if (difference := compare(g.value, w.value))]
        forms = ("type", "nan") if case.loose else ("type", "shape", "nan")
        wrong_form = next((d for d in found if d.kind in forms), None)
        if wrong_form:
            return wrong_form.kind, wrong_form.text
        if case.holds is not None:
            return "value", case.holds(*got)
        if found:
            plain = f"the result {found[0].text}"
            off = f"{found[0].size:.2g}"
            return "value", case.says.format(off=off) if case.says and found[0].size < math.inf else plain
        gradients = [self._look_at_gradients(g, w, call) for (g, w), call in zip(pairs, case.calls, strict=True)]
        return "gradient", next((sentence for sentence in gradients if sentence), None)

    def _look_at_gradients(self, got: Answer, want: Answer, call: Call) -> str | None:
        for path, mine, true in zip(call.wrt, got.grads or [], want.grads or [], strict=True):
            if true is None:
                continue
            which = repr(path[1]) if isinstance(path, tuple) else self._argument(path)
            if mine is None:
                return f"the value is right but no gradient reaches {which}"
            difference = compare(mine, true)
            if difference:
                return f"the value is right but the gradient of {which} {difference.text}"
        return None

    def _argument(self, path: int | str) -> str:
        """The name of an argument, as the exercise's signature has it."""
        assert self._reference is not None
        names = list(inspect.signature(self._reference).parameters)
        return path if isinstance(path, str) else names[path] if path < len(names) else f"number {path + 1}"

    def _credit(self, failed: dict[str, str]) -> float:
        right = [part for part in self.parts if part.name not in failed]
        if not any(part.kind == "value" for part in right):
            return 0.0  # the shape and the invariants earn nothing by themselves
        return round(self.points * sum(p.weight for p in right) / sum(p.weight for p in self.parts), 2)

    def _name(self, verdict: Verdict, cases: list[Case], answers: list[list[Answer]],
              expected: list[list[Answer]], said: list[str | None]) -> Verdict:  # fmt: skip
        """The verdict with the known mistake that gives the same answers, if there is one. said: of each case."""
        flat = [answer for group in answers for answer in group]
        if all(a.error and a.error["type"] == "NotImplementedError" for a in flat):
            return replace(verdict, blank=True, failed="shape")
        for variant in self.mistakes.values():
            gap = self._apart(variant, cases, answers, expected, said)
            if gap <= SAME:
                how = "your answers are exactly that mistake's"
                if any(a.error for a in flat):
                    how = "that fails in the same way"
                elif gap > 0:
                    how = f"your numbers equal that mistake's to 1e{max(-7, math.ceil(math.log10(gap)))}"
                looks = f"like {variant.looks}: {how}"
                return replace(verdict, looks=looks, think=variant.think, mistake=variant.name)
        return verdict

    def _apart(self, variant: Variant, cases: list[Case], answers: list[list[Answer]],
               expected: list[list[Answer]], said: list[str | None]) -> float:  # fmt: skip
        """How far our answers are from a mistake's, relatively; inf as soon as one case tells them apart."""
        gap = 0.0
        groups = zip(cases, answers, expected, said, strict=True)
        for case, ours, want, sentence in sorted(groups, key=lambda group: group[3] is None):  # what fails tells most
            (theirs,) = self.ask(run_variant(self.name, variant.function), [case])
            gap = max(gap, self._apart_in(case, ours, theirs, want, sentence))
            if gap > SAME:
                return math.inf
        return gap

    def _apart_in(self, case: Case, ours: list[Answer], theirs: list[Answer], want: list[Answer],
                  said: str | None) -> float:  # fmt: skip
        if case.random:
            told = self._look(case, theirs, want)[1]
            return 0.0 if _alike(said or "", told or "") else math.inf
        pairs = list(zip(ours, theirs, strict=True))
        if case.raises and all(a.error and b.error for a, b in pairs):  # everybody words an error his own way
            return 0.0 if all(_kind(a) == _kind(b) for a, b in pairs) else math.inf
        return max(_gap(self._plain(a), self._plain(b)) for a, b in pairs)

    def _plain(self, answer: Answer) -> Answer:
        return answer if answer.error else replace(answer, value=self._canonical(answer.value))

    # ------------------------------------------------------------ asking

    def ask(self, run: Run, cases: list[Case], device: str = "cpu", trusted: bool = False) -> list[list[Answer]]:
        """Put the calls of all cases to a runner; answers grouped as the cases are."""
        wire = [self._wire(call, trusted) for case in cases for call in case.calls]
        replies = run(wire, device)
        if not isinstance(replies, list) or len(replies) != len(wire):
            replies = [{} for _ in wire]  # unreadable, each of them
        answers = iter([_read(reply) for reply in replies])
        return [[next(answers) for _ in case.calls] for case in cases]

    def _wire(self, call: Call, trusted: bool) -> dict:
        """`trusted`: the reference itself, which may call anything."""
        return {
            "name": call.name or self.name,
            "args": [runner.pack(arg) for arg in call.args],
            "kwargs": runner.pack(call.kwargs),
            "wrt": [list(path) if isinstance(path, tuple) else [path] for path in call.wrt],
            "cotangents": [runner.pack(cotangent) for cotangent in call.cotangents],
            "seed": call.seed,
            "exclude": [] if trusted else list(self.exclude),
            "modules": list(HOLDS_ANSWERS),
            "seconds": self.seconds,
            "driver": runner.pack(call.driver),
        }

    def _expected(self, cases: list[Case]) -> list[list[Answer]]:
        """The reference's answers, in float64."""
        precise = [replace(case, calls=tuple(_precise(call) for call in case.calls)) for case in cases]
        assert self._reference is not None
        answers = self.ask(run_variant(self.name, self._reference), precise, trusted=True)
        for case, group in zip(cases, answers, strict=True):
            for answer in group:
                assert _kind(answer) == case.raises, f"the reference of {self.number} fails: {answer.error}"
        return answers

    # ------------------------------------------------------------ how it is called

    def verdict(self, run: Run, *, seed: int, rounds: int = 1, device: str = "cpu",
                dtype: torch.dtype = torch.float32, show: bool = False) -> Verdict:  # fmt: skip
        """Ask a runner and judge: the one path that the notebook, the grader and the tests share."""
        cases = self.questions(seed, dtype, rounds)
        return self.judge(cases, self.ask(run, cases, device), show)

    def __call__(self, function: Callable, device: str = "cpu", note: bool = True) -> None:
        """The instant check: prints one line when right, raises CheckFailed when not.

        `device="cuda"` asks again with tensors that lie on the GPU, once everything is right on the CPU.
        `note=False` keeps the student's progress out of it: a lesson shows answers that are not theirs.
        """
        from coursework.checks import instant

        instant.check(self, function, device, note)

    def grade(self, namespace: dict) -> float:
        """The graded cell: prints the message, never raises, returns the points as a plain float."""
        from coursework.checks import instant

        return instant.grade(self, namespace)


# ---------------------------------------------------------------- small helpers of the above


def _read(reply: Any) -> Answer:
    """A wire answer, which may come from a process that a student controls: what is malformed is an error."""
    try:
        error, grads = reply["error"], reply["grads"]
        return Answer(
            runner.unpack(reply["value"]),
            None if grads is None else [runner.unpack(grad) for grad in grads],
            tuple(path if isinstance(path, int) else str(path) for path in reply["changed"]),
            None if error is None else {key: str(error[key]) for key in ("type", "message", "line")},
            str(reply["printed"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError, RuntimeError, OverflowError):
        return Answer(error={"type": "Unreadable", "message": "", "line": ""})


def _precise(call: Call) -> Call:
    def up(value: Any) -> Any:
        if isinstance(value, torch.Tensor) and value.is_floating_point():
            return value.double()
        if isinstance(value, (list, tuple)):
            return type(value)(up(item) for item in value)
        if isinstance(value, dict):
            return {key: up(item) for key, item in value.items()}
        if isinstance(value, runner.Probe) and value.args is not None:
            return runner.Probe(value.source, value.name, up(value.args))
        return value

    return replace(call, args=up(call.args), kwargs=up(call.kwargs), cotangents=up(call.cotangents))


def _kind(answer: Answer) -> str:
    return answer.error["type"] if answer.error else ""


def _misses(case: Case, answer: Answer, name: str) -> str | None:
    """What is said of an answer that should have been the error `case.raises`."""
    if answer.error is None:
        return case.says or f"should raise {case.raises}, and returns {describe(answer.value)}"
    if answer.error["type"] == case.raises:
        return None if answer.error["message"].strip() else f"raises {case.raises} without a word: say what is wrong"
    return f"should raise a {case.raises} that says what to do; {_tell_error(answer.error, name)}"


def _tell_error(error: dict, name: str) -> str:
    if error["type"] == "Refused":
        return error["message"]
    if error["type"] == "NotThere":
        return f"there is no {name} yet: run the cell that defines it"
    if error["type"] == "NotCallable":
        return f"{name} is a value of type {error['message']}, not a function"
    if error["type"] == "TimeLimit":
        return f"{error['message']}: is there a loop that never ends?"
    if error["type"] == "KeyboardInterrupt":
        return "was interrupted before it finished"
    if error["type"] == "Unreadable":
        return "gave an answer that cannot be read"
    where = f", in your line  {error['line']}" if error["line"] else ""
    if "on the same device" in error["message"]:
        return f"makes a tensor elsewhere than where its arguments lie: write device=x.device, x an argument{where}"
    message = error["message"].split("\n")[0][:160]
    return f"raises {error['type']}: {message}{where}" if message else f"raises {error['type']}{where}"


def _gap(a: Answer, b: Answer) -> float:
    """How far two answers are apart, relatively: 0 for equal, inf for different in kind."""
    if (a.error is None) != (b.error is None) or a.changed != b.changed:
        return math.inf
    if a.error and b.error:
        own = all(re.search(r"(^|: *)raise ", error["line"] or "") for error in (a.error, b.error))
        told = [(error["type"], _gist(error["message"], own)) for error in (a.error, b.error)]
        return 0.0 if told[0] == told[1] else math.inf
    return max(_value_gap(a.value, b.value), _gradient_gap(a.grads, b.grads))


def _gradient_gap(a: list | None, b: list | None) -> float:
    """As for values; a tensor that was not used has no gradient (None), or one of 0, or of rounding alone: that
    depends on the wording and the machine."""
    if a is None or b is None or len(a) != len(b):
        return _value_gap(a, b)
    finite = [grad[grad.isfinite()].abs() for grad in [*a, *b] if isinstance(grad, torch.Tensor)]
    rounding = 1e-6 * max((float(sizes.max()) for sizes in finite if sizes.numel()), default=0.0)

    def nothing(grad: Any) -> bool:
        return grad is None or (isinstance(grad, torch.Tensor) and bool((grad.abs() <= rounding).all()))

    pairs = [(x, y) for x, y in zip(a, b, strict=True) if not (nothing(x) and nothing(y))]
    return max((_value_gap(x, y) for x, y in pairs), default=0.0)


def _alike(said: str, told: str) -> bool:
    """Two sentences about draws: equal but for the numbers, and shares within 1.9 in a hundred (chance moves them)."""
    if _without_numbers(said) != _without_numbers(told):
        return False
    shares = [[float(share) for share in re.findall(r"(\d[\d.]*) ?%", text)] for text in (said, told)]
    return len(shares[0]) == len(shares[1]) and all(abs(x - y) <= 1.9 for x, y in zip(*shares, strict=True))


def _gist(message: str, own: bool) -> Any:
    """What an error says, whoever worded it: the tensors that it names (a.b.c), or Python's words without numbers;
    nothing if it is of the student's own wording."""
    named = re.findall(r"\w+(?:\.\w+){2,}", message)
    return frozenset(named) if named else "" if own else _without_numbers(message)


def _without_numbers(message: str) -> str:
    return re.sub(r"[-+]?\d[\d.]*(e[-+]?\d+)?", "#", message.split("\n")[0])[:80]


def _value_gap(a: Any, b: Any) -> float:
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        if a.shape != b.shape or a.dtype.is_floating_point != b.dtype.is_floating_point:
            return math.inf
        if not a.numel():
            return 0.0
        a, b = a.double(), b.double()
        if not bool((a.isnan() == b.isnan()).all()):
            return math.inf
        apart = torch.where(a == b, 0.0, (a - b).abs()).nan_to_num(nan=0.0, posinf=math.inf)
        scale = b[b.isfinite()].abs().max() if b.isfinite().any() else torch.tensor(1.0)
        return float(apart.max() / scale.clamp_min(1e-30))
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        if len(a) != len(b):
            return math.inf
        return max((_value_gap(x, y) for x, y in zip(a, b, strict=True)), default=0.0)
    if isinstance(a, dict) and isinstance(b, dict):
        return _value_gap(list(a.values()), list(b.values())) if list(a) == list(b) else math.inf
    kinds = {type(a), type(b)}
    if float in kinds and kinds <= {int, float}:  # 0 for 0.0 is the same number; two whole numbers must be equal
        if math.isnan(a) or math.isnan(b):
            return 0.0 if math.isnan(a) and math.isnan(b) else math.inf
        return abs(a - b) / max(abs(b), 1e-30) if a != b else 0.0
    return 0.0 if type(a) is type(b) and a == b else math.inf
