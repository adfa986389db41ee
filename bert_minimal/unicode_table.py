"""What BERT's normalisation makes of one character, by a table in this package and not by unicodedata.

unicodedata knows another Unicode in every Python version, and `tokenizers` a third one. The table,
data/unicode_table.json, written by tests/bert_minimal/make_unicode_table.py, holds the answers of
`tokenizers` 0.23 for every code point, so that a text gives the same tokens everywhere. A code point that it
does not name is a letter and stays as it is; so do nearly all that no Unicode has assigned. Lone surrogates,
which are no characters and which `tokenizers` refuses, are dropped.
"""

import json
import unicodedata
from bisect import bisect_right
from functools import cache
from importlib.resources import files


def ranges(text: str) -> list[tuple[int, int]]:
    """ "41-43 61" -> [(0x41, 0x43), (0x61, 0x61)]: sorted, both ends included."""
    pairs = (item.split("-") for item in text.split())
    return [(int(pair[0], 16), int(pair[-1], 16)) for pair in pairs]


def characters(text: str) -> list[str]:
    """All characters of some ranges, written as `ranges` reads them."""
    return [chr(code) for low, high in ranges(text) for code in range(low, high + 1)]


def within(code: int, spans: list[tuple[int, int]]) -> bool:
    """Whether one of the sorted spans holds the code point."""
    at = bisect_right(spans, (code, 0x110000)) - 1
    return at >= 0 and code <= spans[at][1]


@cache
def table() -> dict:
    """The file, as sets of characters, spans of code points, and dicts character -> form."""
    raw = json.loads(files(__package__).joinpath("data", "unicode_table.json").read_text(encoding="utf-8"))
    for name in ("space", "punctuation"):
        raw[name] = frozenset(characters(raw[name]))
    for name in ("drop", "cjk"):
        raw[name] = ranges(raw[name])
    for name in (
        "strip",
        "lower",
    ):  # "41": "C0-C5": À … Å become A; "": what vanishes, the accents themselves
        raw[name] = {c: "".join(characters(form)) for form, span in raw[name].items() for c in characters(span)}
    return raw


class Forms(dict):
    """character -> its normalised form: "" if dropped, " " if white space, " 中 " if CJK, else itself,
    without accents if `strip`, lower-case if `lower`. Worked out when first asked for, then remembered."""

    def __init__(self, lower: bool, strip: bool):
        self.lower, self.strip = lower, strip

    def __missing__(self, c: str) -> str:
        t, code, form = table(), ord(c), c
        if c in t["space"]:
            form = " "
        elif within(code, t["drop"]):
            form = ""
        else:
            if self.strip and "가" <= c <= "힣":  # a Korean syllable: arithmetic, the same in every version
                form = unicodedata.normalize("NFD", c)
            elif self.strip:
                form = t["strip"].get(c, c)
            if self.lower:
                form = "".join(t["lower"].get(x, x) for x in form)
            if within(code, t["cjk"]):
                form = f" {form} "
        self[c] = form
        return form
