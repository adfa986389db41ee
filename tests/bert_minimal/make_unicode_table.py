"""Write bert_minimal/data/unicode_table.json: what BERT's normalisation makes of every code point.

    python tests/bert_minimal/make_unicode_table.py

Python's unicodedata changes with Python's version and knows other code points than `tokenizers` (whose
punctuation and mark classes come from an older Unicode, and whose lower-casing from a newer one). So the
answers are asked of `tokenizers`, one code point at a time, and written down. The same question is then
asked of unicodedata, by the rules of the BERT paper's code. Where the two differ, the code point is
*left out of the promise*: the table follows `tokenizers` there too, but another version of either library
may see it differently. Everything else that unicodedata knows as assigned is promised.
"""

import json
import sys
import unicodedata
from itertools import groupby
from pathlib import Path

import tokenizers
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer

TABLE = Path(__file__).parents[2] / "bert_minimal" / "data" / "unicode_table.json"
HANGUL = range(0xAC00, 0xD7A4)  # taken apart by arithmetic, not by table
SURROGATES = range(0xD800, 0xE000)  # no characters: `tokenizers` cannot be asked, we drop them

bare, strip, lower = (
    BertNormalizer(clean_text=True, handle_chinese_chars=True, strip_accents=s, lowercase=low).normalize_str
    for s, low in ((False, False), (True, False), (False, True))
)
words = BertPreTokenizer().pre_tokenize_str


def seen_by_tokenizers(c: str) -> tuple[str, str, str]:
    """(class, form without accents, lower-case form) of one character, as `tokenizers` answers."""
    if ord(c) in SURROGATES:
        return "drop", c, c
    kind = {c: "letter", "": "drop", " ": "space", f" {c} ": "cjk"}[bare(c)]
    if kind == "letter" and [w for w, _ in words(f"a{c}b")] == ["a", c, "b"]:
        kind = "punctuation"
    return kind, strip(c).strip(" "), lower(c).strip(" ")


def seen_by_unicodedata(c: str) -> tuple[str, str, str]:
    """The same from Python's unicodedata, by the rules of google-research/bert's tokenization.py."""
    category = unicodedata.category(c)
    if c in "\t\n\r" or category in ("Zs", "Zl", "Zp"):
        kind = "space"
    elif c == "\ufffd" or category.startswith("C"):
        kind = "drop"
    elif category.startswith("P") or (c.isascii() and not c.isalnum()):
        kind = "punctuation"
    elif any(lo <= ord(c) <= hi for lo, hi in CJK):
        kind = "cjk"
    else:
        kind = "letter"
    marks_off = "".join(x for x in unicodedata.normalize("NFD", c) if unicodedata.category(x) != "Mn")
    return kind, marks_off, c.lower()


CJK = [  # google-research/bert, tokenization.py
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B920, 0x2CEAF),
    (0x2F800, 0x2FA1F),
]


def changes_places(c: str) -> bool:
    """True for a mark that stays when accents are stripped and that NFD may swap with its neighbour.

    Our normaliser looks at one character at a time and cannot see that, so these are left out too.
    """
    probes = "\u302e\U0001d165\U0001d16d"  # marks that stay, of three different combining classes
    return any(strip(a + b) != strip(a) + strip(b) for p in probes for a, b in ((c, p), (p, c)))


def ranges(codes: list[int]) -> str:
    """[65, 66, 67, 97] -> "41-43 61"."""
    runs = [[code for _, code in run] for _, run in groupby(enumerate(sorted(codes)), lambda x: x[1] - x[0])]
    return " ".join(f"{r[0]:X}-{r[-1]:X}" if len(r) > 1 else f"{r[0]:X}" for r in runs)


def by_form(forms: dict[int, str]) -> dict[str, str]:
    """{0xC0: "A", 0xC1: "A"} -> {"41": "C0-C1"}: what becomes A, what becomes nothing, and so on."""
    groups: dict[str, list[int]] = {}
    for code, form in forms.items():
        groups.setdefault(" ".join(f"{ord(x):X}" for x in form), []).append(code)
    return {form: ranges(codes) for form, codes in sorted(groups.items())}


def make_table() -> dict:
    classes: dict[str, list[int]] = {k: [] for k in ("space", "drop", "cjk", "punctuation", "letter")}
    left_out: dict[str, list[int]] = {"class": [], "accents": [], "case": [], "order": []}
    strip_forms, lower_forms, promise = {}, {}, []
    for code in range(sys.maxunicode + 1):
        c = chr(code)
        kind, without_accents, lowered = ours = seen_by_tokenizers(c)
        classes[kind].append(code)
        if kind not in ("space", "drop"):
            if without_accents != c and code not in HANGUL:
                strip_forms[code] = without_accents
            if lowered != c:
                lower_forms[code] = lowered
        if unicodedata.category(c) in ("Cn", "Cs"):
            continue
        theirs = seen_by_unicodedata(c)
        if ours[0] != theirs[0]:
            left_out["class"].append(code)
        elif kind not in ("space", "drop") and ours[1] != theirs[1]:
            left_out["accents"].append(code)
        elif kind not in ("space", "drop") and ours[2] != theirs[2]:
            left_out["case"].append(code)
        elif without_accents and kind == "letter" and changes_places(c):
            left_out["order"].append(code)
        else:
            promise.append(code)
    return {
        "made_by": "tests/bert_minimal/make_unicode_table.py",
        "tokenizers": tokenizers.__version__,
        "unicodedata": unicodedata.unidata_version,
        **{kind: ranges(classes[kind]) for kind in ("space", "drop", "cjk", "punctuation")},
        "strip": by_form(strip_forms),
        "lower": by_form(lower_forms),
        "promise": ranges(promise),
        "left_out": {why: ranges(codes) for why, codes in left_out.items()},
    }


if __name__ == "__main__":
    TABLE.write_text(json.dumps(make_table(), indent=0) + "\n", encoding="utf-8")
