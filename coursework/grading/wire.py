"""Reads what comes out of a student's kernel. Every byte of it may be forged, so nothing is taken on trust.

The kernel cannot know the expected values, so a forged answer earns what its numbers earn. What is left to prevent
is an answer that breaks, tricks or floods the judge: sizes are limited, types are exact, and whatever is not the
wire format of runner.py makes that one answer an error.
"""

import base64
import binascii
import json
import math
import re
from typing import Any

LARGEST_REPLY = 32 << 20  # characters of one reply; the largest honest one has some hundred thousand
DEEPEST = 20
PRINTED = 2_000

ITEM_BYTES = {
    "bool": 1, "uint8": 1, "int8": 1, "int16": 2, "int32": 4, "int64": 8,
    "float16": 2, "bfloat16": 2, "float32": 4, "float64": 8, "complex64": 8, "complex128": 16,
}  # fmt: skip


class Malformed(ValueError):
    """Not the wire format."""


def error(kind: str, message: str) -> dict:
    """A wire answer that is an error; of kind "Refused", its message is shown as it stands."""
    return {
        "value": None,
        "grads": None,
        "changed": [],
        "error": {"type": kind, "message": message, "line": ""},
        "printed": "",
    }


def read_replies(text: Any, calls: list[dict]) -> list[dict]:
    """One well-formed wire answer a call, from text that claims to be runner.serve's reply to `calls`."""
    bad = error("Unreadable", "")
    if type(text) is not str or len(text) > LARGEST_REPLY:
        return [bad for _ in calls]
    try:
        replies = json.loads(text)
    except (ValueError, RecursionError):
        return [bad for _ in calls]
    if type(replies) is not list or len(replies) != len(calls):
        return [bad for _ in calls]
    return [_read_one(reply, call) or bad for reply, call in zip(replies, calls, strict=True)]


def _read_one(reply: Any, call: dict) -> dict | None:
    try:
        _need(type(reply) is dict and set(reply) == {"value", "grads", "changed", "error", "printed"})
        return {
            "value": value(reply["value"]),
            "grads": _grads(reply["grads"], len(call["wrt"])),
            "changed": _changed(reply["changed"], call),
            "error": _error(reply["error"]),
            "printed": plain_text(reply["printed"], PRINTED),
        }
    except Malformed:
        return None


def value(wire: Any, depth: int = 0) -> Any:
    """The same wire value, proven to be one; raises Malformed."""
    _need(depth <= DEEPEST)
    if _is_plain(wire):
        return _plain(wire)
    if type(wire) is list:
        return [value(item, depth + 1) for item in wire]
    _need(type(wire) is dict)
    if set(wire) == {"tensor", "dtype", "shape"}:
        return tensor(wire)
    if set(wire) == {"other", "text"}:
        return {"other": plain_text(wire["other"], 200), "text": plain_text(wire["text"], 200)}
    _need(len(wire) == 1)
    (kind, content), *_ = wire.items()
    if kind == "dtype":
        _need(type(content) is str and content in ITEM_BYTES)
        return {"dtype": content}
    _need(kind in ("tuple", "dict", "set") and type(content) is list)
    if kind == "tuple":
        return {"tuple": [value(item, depth + 1) for item in content]}
    if kind == "set":
        return {"set": [_key(item, depth + 1) for item in content]}
    _need(all(type(pair) is list and len(pair) == 2 for pair in content))
    return {"dict": [[_key(key, depth + 1), value(item, depth + 1)] for key, item in content]}


def tensor(wire: dict) -> dict:
    """A wire tensor whose bytes are exactly as many as its shape and dtype say; raises Malformed."""
    data, dtype, shape = wire["tensor"], wire["dtype"], wire["shape"]
    _need(type(data) is str and type(dtype) is str and dtype in ITEM_BYTES and type(shape) is list)
    _need(len(shape) <= 8 and all(type(n) is int and 0 <= n <= LARGEST_REPLY for n in shape))
    try:
        raw = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raise Malformed from None
    _need(len(raw) == math.prod(shape) * ITEM_BYTES[dtype])
    _need(dtype != "bool" or not raw.strip(b"\x00\x01"))
    return {"tensor": data, "dtype": dtype, "shape": shape}


def plain_text(text: Any, longest: int) -> str:
    """Text without control characters other than new lines and tabs (a terminal obeys those), cut at `longest`."""
    _need(type(text) is str)
    return "".join(c for c in text[:longest] if c in "\n\t" or c.isprintable())


def _is_plain(wire: Any) -> bool:
    """None, bool, float, str, or a whole number that fits a tensor (a larger one cannot become a float)."""
    return wire is None or type(wire) in (bool, float, str) or (type(wire) is int and -(2**63) <= wire < 2**63)


def _plain(wire: Any) -> Any:
    return without_surrogates(wire) if type(wire) is str else wire


def without_surrogates(text: str) -> str:
    """Half an emoji is no text that could be sent or written: a question mark in a box stands for it."""
    return re.sub("[\ud800-\udfff]", "\N{REPLACEMENT CHARACTER}", text)


def _key(wire: Any, depth: int) -> Any:
    """Something hashable: a plain value or a tuple of them."""
    _need(depth <= DEEPEST)
    if type(wire) is dict and set(wire) == {"tuple"} and type(wire["tuple"]) is list:
        return {"tuple": [_key(item, depth + 1) for item in wire["tuple"]]}
    _need(_is_plain(wire))
    return _plain(wire)


def _grads(wire: Any, count: int) -> list | None:
    if wire is None:
        return None
    _need(type(wire) is list and len(wire) == count)
    for grad in wire:
        _need(grad is None or (type(grad) is dict and set(grad) == {"tensor", "dtype", "shape"}))
    return [None if grad is None else tensor(grad) for grad in wire]


def _changed(wire: Any, call: dict) -> list[int | str]:
    known = [*range(len(call["args"])), *(key for key, _ in call["kwargs"]["dict"])]
    _need(type(wire) is list and len(wire) <= len(known))
    _need(all(type(path) in (int, str) and path in known for path in wire))
    return wire


def _error(wire: Any) -> dict | None:
    if wire is None:
        return None
    _need(type(wire) is dict and set(wire) == {"type", "message", "line"})
    return {
        "type": plain_text(wire["type"], 80),
        "message": plain_text(wire["message"], 300),
        "line": plain_text(wire["line"], 120),
    }


def _need(condition: bool) -> None:
    if not condition:
        raise Malformed
