"""What a student's process sends is proven to be the wire format, or counts as an answer that cannot be read."""

import base64
import json

import pytest
import torch

from coursework import runner
from coursework.grading.wire import Malformed, read_replies, value

CALLS = [{"name": "f", "args": [1, 2], "kwargs": {"dict": [["bias", None]]}, "wrt": [[0]]}]
GOOD = {"value": 1.5, "grads": None, "changed": [], "error": None, "printed": ""}


def tensor(data=b"\0" * 24, dtype="float32", shape=(2, 3)):
    return {"tensor": base64.b64encode(data).decode(), "dtype": dtype, "shape": list(shape)}


@pytest.mark.parametrize(
    "plain",
    [None, True, -3, 0.1, float("nan"), "ü", [1, [2]], (1, (2,)), {"a": torch.ones(2, 3), (1, 2): None}, {1, 2},
     torch.float16, torch.tensor([True, False]), torch.arange(5), torch.empty(0, 4), torch.tensor(1.5).bfloat16()],
)  # fmt: skip
def test_whatever_the_runner_packs_is_accepted_unchanged(plain):
    wire = json.loads(json.dumps(runner.pack(plain)))
    assert json.dumps(value(wire)) == json.dumps(wire)


@pytest.mark.parametrize(
    "wire",
    [
        tensor(shape=(2, 4)),  # fewer bytes than the shape says
        tensor(shape=(1 << 40, 1 << 40)),
        tensor(shape=(-2, -3)),
        tensor(shape=(2.0, 3)),
        tensor(dtype="dtype"),
        tensor(dtype="load"),
        tensor(b"\x02", "bool", (1,)),
        {"tensor": "not base64!", "dtype": "float32", "shape": [2]},
        {**tensor(), "more": 1},
        {"tuple": {"0": 1}},
        {"dict": [[1, 2, 3]]},
        {"dict": [[[1], 2]]},  # a list is no key
        {"set": [{"set": []}]},
        {"dtype": "load"},
        {"object": "posix.system"},
        {},
        10**400,  # cannot become a float
    ],
)
def test_what_is_not_the_wire_format_is_refused(wire):
    with pytest.raises(Malformed):
        value(wire)


def test_half_an_emoji_becomes_a_character_that_can_be_written():
    wire = json.loads(json.dumps({"dict": [["\ud800", ["a\udfff", "😀"]]]}))
    assert value(wire) == {"dict": [["\ufffd", ["a\ufffd", "😀"]]]}


def test_nesting_is_limited_everywhere():
    for kind in ("tuple", "set"):
        wire: object = 1
        for _ in range(200):
            wire = {kind: [wire]} if kind == "tuple" else {"set": [{"tuple": [wire]}]}
        with pytest.raises(Malformed):
            value(wire)


@pytest.mark.parametrize(
    "change",
    [
        {"changed": [2]},
        {"changed": ["weights"]},
        {"changed": [True]},
        {"grads": []},
        {"grads": [1.0]},
        {"error": {"type": "E", "message": "m"}},
        {"error": {"type": "E", "message": "m", "line": 3}},
        {"printed": None},
        {"points": 100},
    ],
)
def test_a_malformed_answer_is_an_error_and_its_neighbours_are_not(change):
    replies = read_replies(json.dumps([GOOD, GOOD | change]), CALLS * 2)
    assert replies[0] == GOOD
    assert replies[1]["error"]["type"] == "Unreadable"


@pytest.mark.parametrize("text", ["", "[]", "null", "[" * 100_000, "9" * 10_000, None, b"[]", '{"0": 1}'])
def test_a_reply_that_is_none_makes_every_answer_an_error(text):
    assert [r["error"]["type"] for r in read_replies(text, CALLS * 3)] == ["Unreadable"] * 3


def test_good_replies_pass_with_positions_and_keywords():
    reply = GOOD | {"changed": [1, "bias"], "grads": [tensor()]}
    assert read_replies(json.dumps([reply]), CALLS) == [reply]


def test_texts_lose_what_a_terminal_obeys():
    error = {"type": "E", "message": "\x1b[2Jgone\r", "line": "a\x07b"}
    (reply,) = read_replies(json.dumps([GOOD | {"error": error}]), CALLS)
    assert reply["error"] == {"type": "E", "message": "[2Jgone", "line": "ab"}
