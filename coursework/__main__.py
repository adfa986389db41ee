"""The course's commands: python -m coursework doctor | release | lessons | grade | report | mistakes | progress |
capstone | twins."""

import sys
from collections.abc import Callable
from pathlib import Path

USAGE = __doc__


def doctor() -> int:
    """Say what this machine has, what is missing or odd, and what to do."""
    from coursework.doctor import main

    return main()


def release(check: bool = False) -> int:
    """Make exercises/ from solutions/ with nbgrader.

    Args:
        check: change nothing; exit with 1 if something would change.
    """
    from coursework.build import BuildError
    from coursework.build import release as run

    try:
        changed = run(check=check)
    except BuildError as error:
        return _fail(error)
    for name in changed:
        print(f"exercises/{name} {'differs' if check else 'written'}")
    if not changed:
        print("exercises/ are up to date")
    return 1 if check and changed else 0


def lessons(check: bool = False, every: bool = False) -> int:
    """Execute the lessons whose code has changed and store their outputs.

    Args:
        check: run nothing; exit with 1 if a lesson is stale.
        every: execute the others too.
    """
    from coursework.build import BuildError
    from coursework.lessons import run, stale

    if check:
        old = stale()
        for path in old:
            print(f"{path} is stale: make lessons")
        return 1 if old else 0
    try:
        done = run(every=every)
    except BuildError as error:
        return _fail(error)
    print(f"{len(done)} lessons executed" if done else "all lessons are up to date")
    return 0


def report(out: Path = Path("graded")) -> int:
    """Print the report on the class that `grade` wrote.

    Args:
        out: the folder that `grade` was told to write to.
    """
    path = out / "report.md"
    if not path.exists():
        print(f"there is no {path}: first python -m coursework grade FOLDER --out {out}", file=sys.stderr)
        return 1
    print(path.read_text(encoding="utf-8"))
    return 0


def capstone(folder: Path = Path("."), /) -> int:
    """Put a student's own functions of units 01 to 06 together into one BERT, and run real weights with it.

    Args:
        folder: where the notebooks are.
    """
    from bert_minimal.train.data import FetchError
    from coursework.capstone import CapstoneError
    from coursework.capstone import capstone as run

    try:
        return 0 if run(folder) else 1
    except (CapstoneError, FetchError) as error:
        return _fail(error)


def _fail(error: Exception) -> int:
    print(error, file=sys.stderr)
    return 1


def main() -> None:
    import tyro

    from coursework.grading.command import grade
    from coursework.mistakes import main as mistakes
    from coursework.new_exercise import main as new_exercise
    from coursework.progress import main as progress
    from coursework.twins.training import twins

    commands: dict[str, Callable] = {"doctor": doctor, "release": release, "lessons": lessons, "grade": grade}
    commands |= {"report": report, "mistakes": mistakes, "progress": progress, "new-exercise": new_exercise}
    commands |= {"capstone": capstone, "twins": twins}
    sys.exit(tyro.extras.subcommand_cli_from_dict(commands, prog="python -m coursework", description=USAGE))


if __name__ == "__main__":
    main()
