"""Who may write to the folder of results: one run at a time, or shards of one class together; one class for ever.

OUT/.grading.lock   held by whoever is grading; the system lets go of it when the process ends, however it ends
OUT/class.txt       the class whose marks these are
"""

import os
import platform
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from coursework.grading.results import replace_text

if sys.platform != "win32":
    import fcntl

DEMO = "the demo class"


class Taken(Exception):
    """The folder of results is somebody else's; the message says what to do."""


@contextmanager
def claimed(out: Path, class_: str, shard: str) -> Iterator[None]:
    """Have `out` for the marks of a class: its folder or zip, or DEMO. Shards share it with other shards.

    Raises Taken when another run is grading into `out`, or the marks of another class lie there.
    """
    out.mkdir(parents=True, exist_ok=True)
    with (out / ".grading.lock").open("a+", encoding="utf-8") as file:
        lock(file, out, shared=bool(shard))
        owner = out / "class.txt"
        there = owner.read_text(encoding="utf-8").strip() if owner.exists() else class_
        if there == DEMO != class_:
            print(f"{out} held the demo class, which is removed now")
            remove_demo(out)
        elif there != class_:
            raise Taken(
                f"{out} holds the marks of {there}, and this is {class_}: give another --out; if it is the same class "
                f"in another place, remove {owner} and say it again"
            )
        replace_text(owner, class_ + "\n")
        yield


def remove_demo(out: Path) -> None:
    """Remove the demo class and what was made of it, and nothing else that lies there."""
    students = [path.name for path in (out / "demo_class").glob("*")]
    for made in ("demo_class", *(f"{kind}/{student}" for kind in ("results", "feedback") for student in students)):
        shutil.rmtree(out / made, ignore_errors=True)
    tables = [f"{name}{kind}.csv" for name in ("moodle", "canvas") for kind in ("", "_questions")]
    for made in ("report.md", "marks.csv", *tables):
        (out / made).unlink(missing_ok=True)


def lock(file: IO[str], out: Path, shared: bool) -> None:
    """Lock an open file until it is closed; raises Taken. Where there are no locks (Windows), nothing is locked."""
    if sys.platform == "win32":
        return
    try:
        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        file.seek(0)
        who = file.read().strip() or "another process"
        raise Taken(f"{who} is grading into {out}: wait until it has ended, or give another --out") from None
    except OSError as error:  # some network file systems have none
        print(f"{out} cannot be locked ({error.strerror}): see to it that no second run writes there")
        return
    file.truncate(0)
    file.write(f"process {os.getpid()} on {platform.node()}\n")
    file.flush()
