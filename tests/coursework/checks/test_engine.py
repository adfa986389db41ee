"""compare() by its properties, bad input in one sentence each, credit, and robustness against a lying process."""

import math

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from coursework import checks
from coursework.checks.engine import (
    ATOL,
    RTOL,
    Answer,
    Call,
    Case,
    Exercise,
    Inputs,
    Part,
    _alike,
    _gap,
    _read,
    compare,
    describe,
    run_here,
    run_variant,
)

NUMBERS = st.floats(-1e6, 1e6)
LISTS = st.lists(NUMBERS, min_size=1, max_size=12)
VALUES = st.recursive(
    st.integers() | NUMBERS | st.text(max_size=5) | st.booleans() | st.none() | LISTS.map(torch.tensor),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


# ---------------------------------------------------------------- compare


@given(VALUES)
def test_everything_equals_itself(value):
    assert compare(value, value) is None


@given(LISTS, st.integers(0, 11), st.floats(3.0, 1e6), st.sampled_from((-1, 1)))
def test_a_change_beyond_the_tolerance_is_seen_and_measured(values, at, times, sign):
    want = torch.tensor(values, dtype=torch.float64)
    at %= len(values)
    bound = RTOL * abs(values[at]) + ATOL * max(abs(v) for v in values)
    assume(bound > 1e-12)
    got = want.clone()
    got[at] += sign * times * bound
    difference = compare(got, want)
    assert difference.kind == "value"
    assert math.isclose(difference.size, times * bound, rel_tol=1e-3)


@given(LISTS, st.floats(-0.9, 0.9))
def test_a_change_within_the_tolerance_is_none(values, part):
    want = torch.tensor(values, dtype=torch.float64)
    got = want + part * (RTOL * want.abs() + ATOL * want.abs().max())
    assert compare(got, want) is None


@given(LISTS)
def test_float32_rounding_is_no_difference(values):
    want = torch.tensor(values, dtype=torch.float64)
    assert compare(want.float(), want) is None


@given(LISTS, st.floats(1e-3, 1e3))
def test_the_verdict_does_not_depend_on_the_unit(values, unit):
    want = torch.tensor(values, dtype=torch.float64)
    got = want * 1.00005
    assert (compare(got, want) is None) == (compare(got * unit, want * unit) is None)


@pytest.mark.parametrize(
    ("got", "want", "kind", "text"),
    [
        (None, torch.ones(2), "type", "returns None (is a `return` missing?), expected a float tensor of shape (2,)"),
        (torch.ones(3), torch.ones(2), "shape", "returns shape (3,), expected (2,)"),
        (torch.ones(2).long(), torch.ones(2), "type", "returns an int64 tensor of shape (2,)"),
        (torch.ones(2), torch.ones(2).bool(), "type", "expected a bool tensor of shape (2,)"),
        (torch.ones(2).long(), torch.ones(2).bool(), "type", "expected a bool tensor"),
        ({"other": "numpy.ndarray", "text": ""}, torch.ones(2), "type", "returns a numpy.ndarray"),
        (True, torch.ones(2), "type", "returns a bool"),
        (torch.tensor([1.0, math.nan]), torch.ones(2), "nan", "NaN (not a number) in 1 of 2 entries, the first at [1]"),
        (torch.tensor([1.0, -math.inf]), torch.ones(2), "value", "is infinite in 1 of 2 entries"),
        (torch.tensor([1, 5]), torch.tensor([1, 2]), "value", "1 of 2 entries are wrong"),
        (math.nan, 1.0, "nan", "NaN"),
        (True, 1, "type", "returns a bool, expected a number"),
        (2.0, 1.0, "value", "off by 1"),
        ([1, 2], [1, 2, 3], "shape", "returns 2 values, expected 3"),
        ({"a": 1}, {"b": 1}, "shape", "returns the keys ['a']"),
        ({"a": 1.0}, {"a": 2.0}, "value", "in 'a'"),
        ("cat", "dog", "value", "not what was expected"),
        (7, "dog", "type", "returns an int"),
    ],
)
def test_differences_are_told_in_words(got, want, kind, text):
    difference = compare(got, want)
    assert difference.kind == kind
    assert text in difference.text


def test_what_is_wrong_inside_a_list_is_told_with_its_place():
    assert compare([1], ["a"]).text == "in place 0 of the result stands an int, expected a str"
    assert compare(("a", "b"), ("a", None)).text == "in place 1 of the result stands a str, expected None"


def test_equal_infinities_and_nans_are_equal():
    special = torch.tensor([math.inf, -math.inf, math.nan, 1.0])
    assert compare(special, special.clone()) is None
    assert compare(torch.tensor([-math.inf, 1.0]), torch.tensor([math.inf, 1.0])).kind == "value"
    assert compare(torch.empty(0, 3), torch.empty(0, 3)) is None


def test_a_number_in_a_tensor_is_a_number_and_lists_match_tuples():
    assert compare(torch.tensor(2.0), 2.0) is None
    assert compare([1, (2, 3)], (1, [2, 3])) is None


@given(VALUES)
def test_describe_says_something_of_anything(value):
    assert describe(value)


# ---------------------------------------------------------------- bad input: one clear sentence each


def _endless(query, key):
    while True:
        pass


def _in_place(query, key):
    query /= query.size(-1) ** 0.5
    return query @ key.mT


def _right(query, key):
    return query @ key.mT / query.size(-1) ** 0.5


BAD = {
    "None": (lambda q, k: None, "returns None (is a `return` missing?), expected a float tensor of shape (2, 3, 5, 5)"),
    "wrong shape": (lambda q, k: _right(q, k)[0], "returns shape (3, 5, 5), expected (2, 3, 5, 5)"),
    "NaN": (lambda q, k: _right(q, k) * math.nan, "returns NaN (not a number) in 150 of 150 entries, the first at"),
    "an exception": (lambda q, k: q @ k, "raises RuntimeError: Expected size"),
    "an endless loop": (_endless, "did not finish in 2 s: is there a loop that never ends?"),
    "an in-place change": (_in_place, "changes its argument query in place: the caller still needs it"),
    "numpy": (lambda q, k: _right(q, k).detach().numpy(), "returns a numpy.ndarray, expected a float tensor"),
    "bool": (lambda q, k: True, "returns a bool, expected a float tensor"),
    "a tuple": (lambda q, k: (q, k), "returns a tuple of 2, expected a float tensor"),
    "a list": (lambda q, k: _right(q, k).tolist(), "returns a list of 2, expected a float tensor"),
    "complex": (lambda q, k: _right(q, k) * 1j, "returns a complex64 tensor"),
    "sys.exit": (lambda q, k: exit(), "raises SystemExit"),
    "one argument too few": (lambda q: q, "raises TypeError"),
    "unfinished": (lambda q, k: undefined_name, "raises NameError: name 'undefined_name' is not defined"),  # noqa: F821
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_gets_one_clear_sentence(name):
    function, sentence = BAD[name]
    exercise = checks.find("01", "attention_scores")
    verdict = exercise.verdict(run_here({"attention_scores": function}), seed=1)
    assert sentence in verdict.what
    assert "\n" not in verdict.what
    assert not verdict.passed
    assert verdict.mistake is None
    assert verdict.points == 0


def test_a_blank_answer_is_not_answered_yet():
    def blank(query, key):
        raise NotImplementedError

    verdict = checks.find("01", "attention_scores").verdict(run_here({"attention_scores": blank}), seed=1)
    assert verdict.blank
    assert verdict.points == 0
    assert verdict.text() == "○ 01.1 attention scores: not answered yet"


def test_a_cell_that_was_not_run_and_a_name_that_is_no_function():
    exercise = checks.find("01", "attention_scores")
    assert "run the cell that defines it" in exercise.verdict(run_here({}), seed=1).what
    assert "not a function" in exercise.verdict(run_here({"attention_scores": 3}), seed=1).what


MALFORMED = [
    None, 3, {}, {"value": {"tensor": "!", "dtype": "float32", "shape": [1]}},
    {"value": {"tensor": "AAAA", "dtype": "load", "shape": [1]}}, {"value": {"tensor": "", "dtype": 3, "shape": []}},
    {"value": {"dict": [[[], 1]]}}, {"value": {"set": [[1]]}}, {"value": 1, "error": "no"},
    {"value": 1, "changed": 5},
]  # fmt: skip


@pytest.mark.parametrize("reply", MALFORMED)
def test_a_malformed_reply_is_an_answer_that_cannot_be_read(reply):
    if isinstance(reply, dict) and "value" in reply:
        reply = {"grads": None, "changed": [], "error": None, "printed": ""} | reply
    assert _read(reply).error["type"] == "Unreadable"


@pytest.mark.parametrize("replies", [None, [], [None], "text", {"a": 1}])
def test_a_process_that_answers_nonsense_gets_no_points(replies):
    verdict = checks.find("01", "attention_scores").verdict(lambda calls, device: replies, seed=1)
    assert not verdict.passed
    assert verdict.points == 0
    assert verdict.what == "gave an answer that cannot be read"


# ---------------------------------------------------------------- credit and names, on a small exercise


def _small() -> Exercise:
    """a·x + b, with a, b and the gradient as parts."""
    exercise = Exercise(
        "99.1", "line", "line", lesson="99_none", section="None", points=4,
        parts=[Part("slope"), Part("intercept", 2.0), Part("symmetry", kind="invariant")],
    )  # fmt: skip

    @exercise.reference
    def _(x):
        return 2 * x + 1

    @exercise.cases
    def _(new: Inputs):
        x = new.normal(5)
        yield Case("slope", (Call((x,)), Call((x + 1,))), holds=lambda a, b: _constant(b.value - a.value, 2.0))
        yield Case("intercept", (Call((x,)),), "the intercept is off by {off}")
        yield Case("symmetry", (Call((x,)), Call((-x,))), holds=lambda a, b: _constant(a.value + b.value))

    def _constant(values, want=None):
        want = values[0] if want is None else torch.tensor(want)
        return None if torch.allclose(values, want, atol=1e-4) else "not a line"

    @exercise.mistake("three where one was meant", think="where does it cross?")
    def three(x):
        return 2 * x + 3

    return exercise


@pytest.mark.parametrize(
    ("function", "points", "failed"),
    [
        (lambda x: 2 * x + 1, 4.0, None),
        (lambda x: 2 * x + 7, 2.4, "intercept"),  # shape, slope and symmetry: 3 of 5 weights
        (lambda x: 3 * x, 0.0, "slope"),  # shape and symmetry alone earn nothing
        (lambda x: None, 0.0, "shape"),
    ],
)
def test_partial_credit(function, points, failed):
    verdict = _small().verdict(run_here({"line": function}), seed=0)
    assert verdict.points == points
    assert verdict.failed == failed


@given(st.floats(-5, 5), st.floats(-5, 5))
@settings(max_examples=40, deadline=None)
def test_credit_is_a_plain_float_within_bounds(a, b):
    verdict = _small().verdict(run_here({"line": lambda x: a * x + b}), seed=0)
    assert type(verdict.points) is float
    assert 0.0 <= verdict.points <= 4.0
    assert (verdict.points == 4.0) == verdict.passed


def test_a_mistake_is_named_only_when_the_numbers_are_its_own():
    exercise = _small()
    told = exercise.verdict(run_here({"line": lambda x: x + x + 3}), seed=0)
    assert told.mistake == "three"
    assert "looks  like three where one was meant: your" in told.text()
    assert exercise.verdict(run_here({"line": lambda x: 2 * x + 3.01}), seed=0).mistake is None


def test_a_tensor_left_out_is_the_same_mistake_with_no_gradient_and_with_one_of_zero():
    value, zero = torch.ones(2), torch.zeros(3)
    assert _gap(Answer(value, [None, value]), Answer(value, [zero, value])) == 0
    assert _gap(Answer(value, [None, value]), Answer(value, [value, value])) == math.inf
    assert _gap(Answer(value, None), Answer(value, [zero, zero])) == math.inf


def test_a_gradient_of_rounding_alone_tells_no_mistakes_apart():
    """0 in exact arithmetic; another machine or another number of threads leaves other digits."""
    value, nothing = torch.ones(3), torch.full((2,), math.nan)
    here, there = Answer(value, [value, 1e-15 * value]), Answer(value, [value, -2e-15 * value])
    assert _gap(here, there) == 0
    assert _gap(Answer(value, [value, 1e-3 * value]), Answer(value, [value, 2e-3 * value])) == 0.5
    assert _gap(Answer(value, [1e-15 * value]), Answer(value, [2e-15 * value])) == 0.5  # nothing to compare it with
    assert _gap(Answer(value, [value, nothing]), Answer(value, [value, nothing])) == 0
    assert _gap(Answer(value, [value, nothing]), Answer(value, [value, torch.zeros(2)])) == math.inf


def test_a_mistake_of_chance_is_named_only_when_its_shares_are_near():
    said = "split 72.1% / 9.8% / 18.1%: [MASK] too rare"
    assert _alike(said, "split 71.8% / 10.2% / 18.0%: [MASK] too rare")
    assert not _alike(said, "split 69.9% / 10.1% / 20.0%: [MASK] too rare")
    assert not _alike(said, "split 72.1% / 9.8% / 18.1%: [MASK] too often")
    assert _alike("most of the pieces (281) change", "most of the pieces (290) change")


def test_errors_are_alike_when_they_name_the_same_tensors_in_other_words():
    def failed(message, kind="ValueError"):
        return Answer(error={"type": kind, "message": message, "line": ""})

    ours = failed("missing ['layer.1.norm.bias'], extra ['layer.1.norm.beta']")
    assert _gap(ours, failed("unexpected: layer.1.norm.beta; not there: layer.1.norm.bias")) == 0
    assert _gap(ours, failed("missing layer.2.norm.bias, extra layer.2.norm.beta")) == math.inf
    assert _gap(ours, failed("layer.1.norm.bias layer.1.norm.beta", "KeyError")) == math.inf


def test_errors_that_students_raise_are_alike_in_any_words():
    def raised(message, line):
        return Answer(error={"type": "ValueError", "message": message, "line": line})

    assert _gap(raised("bad stride", "raise ValueError(text)"), raised("stride 3", "raise ValueError(f'{x}')")) == 0
    assert _gap(raised("bad stride", "raise ValueError(text)"), raised("3", "if s > n: raise ValueError(s)")) == 0
    assert _gap(raised("bad stride", "raise ValueError(text)"), raised("no 0 here", "x.index(0)")) == math.inf


def test_an_error_in_one_part_costs_that_part_alone():
    def fails_later(query, key, value, bias=None, dropout_p=0.0, training=False):
        if training:
            raise TypeError("later")
        scores = query @ key.mT / query.size(-1) ** 0.5
        return (scores if bias is None else scores + bias).softmax(-1) @ value

    exercise = checks.find("01", "scaled_dot_product_attention")
    verdict = exercise.verdict(run_variant(exercise.name, fails_later), seed=1)
    assert [name for name, ok in verdict.parts if not ok] == ["dropout"]
    assert "raises TypeError: later" in verdict.what
    assert 0 < verdict.points < exercise.points


def test_library_kernels_are_refused_where_they_are_the_task():
    def library(query, key, value, bias=None, dropout_p=0.0, training=False):
        return torch.nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=bias)

    exercise = checks.find("01", "scaled_dot_product_attention")
    verdict = exercise.verdict(run_here({exercise.name: library}), seed=1)
    assert verdict.what == "calls torch's own scaled_dot_product_attention, and this exercise asks you to write it"
