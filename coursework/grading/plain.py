"""A student's words on their way to a terminal, a table, a report or a page: nothing there obeys them, and they are
short. File names are a student's words too, and so is what an exception quotes."""

import hashlib
import os
import re

SENTENCE = 500  # characters of a reason, or of a repair
LINES = 3_000  # characters of a message, or of a traceback
NAME = 200  # bytes of a name: with an ending it is still one that a file can have


def without_control(text: str) -> str:
    """Without the sequences and characters that a terminal obeys."""
    text = re.sub(r"\x1b\[[0-9;?]*[ -/]*[@-~]", "", text)
    return "".join(c for c in text if c in "\n\t" or c.isprintable())


def lines(text: str, longest: int = LINES) -> str:
    """Text of several lines, cut at `longest`."""
    text = without_control(text[: 4 * longest])
    return text if len(text) <= longest else text[:longest] + " [… cut here]"


def sentence(text: str, longest: int = SENTENCE) -> str:
    """Text in one line, cut at `longest`."""
    return " ".join(lines(text, longest).split())


def name(text: str) -> str:
    """A name that can be shown and written anywhere: odd bytes and characters become \\xfc; a long one ends in a
    digest, so that two names stay two."""
    text = os.fsencode(text).decode("utf-8", "backslashreplace")
    text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    if len(text.encode()) <= NAME:
        return text
    return f"{text.encode()[: NAME - 20].decode(errors='ignore')}…{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def markdown(text: str) -> str:
    """One line that Markdown shows as it stands: no HTML, no link, no picture, no table, no formula."""
    text = re.sub(r"([\\`*\[\]|$!~#])", r"\\\1", sentence(text))
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def fenced(text: str) -> str:
    """Markdown that shows lines as they are: a code block whose fence is longer than any inside."""
    longest = max((len(ticks) for ticks in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{text}\n{fence}"


def cell(text: str) -> str:
    """A spreadsheet's cell: an apostrophe keeps it from being a formula, also where it is cut at a semicolon."""
    return re.sub(r"(^|[;,|\t\r\n])(\s*)(?=[=+\-@＝＋－＠])", r"\1\2'", text)
