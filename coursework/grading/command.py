"""`python -m coursework grade`: a folder of submissions, or a demo class when none is given."""

from pathlib import Path

from tyro.conf import Positional


def grade(
    folder: Positional[Path | None] = None,
    out: Path = Path("graded"),
    seed: int | None = None,
    trusted: bool = False,
    jobs: int | None = None,
    cell_seconds: float = 15.0,
    assignment: str = "",
    shard: str = "",
) -> int:
    """Grade a class: marks, feedback, tables for Moodle and Canvas, and a report.

    Args:
        folder: holds <student>/<assignment>/<assignment>.ipynb, or what Moodle, Canvas or nbgrader's exchange give
            (a zip, too); it is never changed. A demo class without it.
        out: where results go, of one class. A second run grades only what changed.
        seed: of the questions that are asked; by default a secret one, made once for this user.
        trusted: run students' code with your own rights, where there is no sandbox.
        jobs: how many submissions at a time; by default one a core.
        cell_seconds: time limit of one of a student's cells; a whole notebook has 20 times that, at least 300 s.
        assignment: what files from Moodle or Canvas are for, where their names do not say it.
        shard: 2/5 grades the second fifth of the class, on one of five machines; the same command without it, after
            all of them, writes the tables.
    """
    from coursework.grading.claim import DEMO, Taken, claimed
    from coursework.grading.classroom import grade as grade_class
    from coursework.grading.collect import Unreadable
    from coursework.grading.demo import make_demo_class
    from coursework.grading.sandbox import NoSandbox, has_bubblewrap

    try:
        with claimed(out, DEMO if folder is None else str(folder.resolve()), shard):
            if folder is None:
                folder = make_demo_class(out / "demo_class")
                print(f"no FOLDER given: grading a demo class, written to {folder}")
                trusted = trusted or not has_bubblewrap()  # we wrote it ourselves
            results = grade_class(
                folder, out, seed=seed, trusted=trusted, jobs=jobs, cell_seconds=cell_seconds,
                assignment=assignment, shard=shard,
            )  # fmt: skip
    except (Unreadable, NoSandbox, Taken) as problem:
        print(problem)
        return 1
    except KeyboardInterrupt:
        print("stopped; the same command goes on where it was, and writes the tables")
        return 130  # as a shell says of what Ctrl-C ended
    failed = [result for result in results if result.status != "graded"]
    if failed:
        print(f"{len(failed)} of {len(results)} could not be graded; marks.csv and report.md say why")
    return 0
