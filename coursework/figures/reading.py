"""Which lines of one file run: for reading somebody else's code by what it does."""

import sys
from collections.abc import Callable


def lines_run(path: str, call: Callable[[], object]) -> set[int]:
    """Numbers of the lines in the file at `path` that Python executes during `call()`."""
    seen: set[int] = set()

    def in_file(frame, event, _):
        if event == "line":
            seen.add(frame.f_lineno)
        return in_file

    def enter(frame, event, _):
        return in_file if frame.f_code.co_filename == path else None

    before = sys.gettrace()
    sys.settrace(enter)
    try:
        call()
    finally:
        sys.settrace(before)
    return seen
