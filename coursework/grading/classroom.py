"""Grades a class: every submission in a folder, over all cores, one line each; a second run grades what changed.

OUT/marks.csv, moodle.csv, canvas.csv   the marks (tables.py)
OUT/report.md                           the class at a glance (report.py)
OUT/feedback/STUDENT/ASSIGNMENT.html    for each student
OUT/results/STUDENT/ASSIGNMENT.json     what a second run need not do again
"""

import multiprocessing
import os
import re
import shutil
import signal
import sys
import threading
import time
import traceback
from collections.abc import Generator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from pathlib import Path
from typing import Any

from coursework.grading.assignments import known_assignments
from coursework.grading.collect import Submission, Unreadable, find_submissions, unpack
from coursework.grading.one import ROOT, Terms, grade_one, key_of
from coursework.grading.plain import lines, sentence
from coursework.grading.report import write_report
from coursework.grading.results import Result, in_order, load
from coursework.grading.sandbox import require_bubblewrap
from coursework.grading.secret import class_seed
from coursework.grading.session import CELL_SECONDS
from coursework.grading.tables import write_tables


def grade(
    folder: Path,
    out: Path = Path("graded"),
    *,
    seed: int | None = None,
    trusted: bool = False,
    jobs: int | None = None,
    cell_seconds: float = CELL_SECONDS,
    assignment: str = "",
    shard: str = "",
    course: Path = ROOT,
) -> list[Result]:
    """Grade every submission in FOLDER and write marks, feedback and a report to OUT, which claim.py keeps for us.

    Args:
        folder: a folder, or a zip from Moodle or Canvas, as collect.py lists; nothing in it is changed.
        out: where results go; what is there from an earlier run is kept if nothing changed since.
        seed: of the questions; without it the secret one of this user (secret.py).
        trusted: run students' code with your own rights, without the sandbox.
        jobs: how many submissions at a time; as many as there are cores unless said otherwise.
        cell_seconds: time limit of one of a student's cells; a whole notebook has 20 times that, at least 300 s.
        assignment: what files from Moodle or Canvas are for, where their names do not say it.
        shard: "2/5": only the second fifth of the submissions and no tables, for one of five machines; the run
            without it, after all of them, finds everything graded and writes the tables.
        course: the folder with the released exercises/.
    Raises:
        Unreadable: when the folder holds no submission at all. No single submission stops the run.
        NoSandbox: when there is no bubblewrap and the class is not trusted.
    """
    if not trusted:
        require_bubblewrap()
    out.mkdir(parents=True, exist_ok=True)
    terms = Terms(class_seed() if seed is None else seed, out.resolve(), course.resolve(), trusted, cell_seconds)
    if folder.is_file():
        folder = unpack(folder, out / "unpacked")
        for older in () if shard else [path for path in folder.parent.iterdir() if path != folder]:
            shutil.rmtree(older)
    submissions = of_shard(find_submissions(folder, list(known_assignments()), assignment), shard)
    results = []
    started = time.monotonic()
    with closing(grade_all(submissions, terms, jobs or cores())) as coming:
        for done, result in enumerate(coming, 1):
            results.append(result)
            left = (time.monotonic() - started) / done * (len(submissions) - done)
            print(line(result), f"[{done}/{len(submissions)}, {left:.0f} s left]", flush=True)
    if shard:
        print(f"shard {shard} is done; after all shards, the same command without --shard writes the tables")
        return results
    results.sort(key=in_order)
    write_tables(results, out)
    write_report(results, out)
    print(f"marks: {out / 'marks.csv'}   class report: {out / 'report.md'}   feedback: {out / 'feedback'}")
    return results


def of_shard(submissions: list[Submission], shard: str) -> list[Submission]:
    """Every submission, or for "2/5" the second of each five; raises Unreadable for anything else."""
    if not shard:
        return submissions
    found = re.fullmatch(r"(\d+)/(\d+)", shard)
    if not found or not 1 <= int(found[1]) <= int(found[2]):
        raise Unreadable(f"--shard {shard}: say 2/5 for the second of five")
    return submissions[int(found[1]) - 1 :: int(found[2])]


def grade_all(submissions: list[Submission], terms: Terms, jobs: int) -> Generator[Result, None, None]:
    """Results as they come. A worker that breaks costs no submission: what was under way is graded once more alone."""
    waiting = []
    for submission in submissions:
        earlier = load(terms.result_file(submission))
        page = terms.feedback_file(submission)
        if earlier is not None and earlier.key == key_of(submission, terms) and page.is_file():
            yield earlier
        else:
            waiting.append(submission)
    broken = []
    spawn = multiprocessing.get_context("spawn")
    turn = spawn.Value("i", 0)
    with ProcessPoolExecutor(min(jobs, len(waiting)) or 1, spawn, prepare_worker, (turn,)) as pool:
        running = {pool.submit(grade_one, submission, terms): submission for submission in waiting}
        try:
            for future in as_completed(running):
                try:
                    yield future.result()
                except BrokenProcessPool:
                    broken.append(running[future])
                except Exception as problem:
                    yield lost(running[future], problem)
        except (KeyboardInterrupt, GeneratorExit):
            print("stopping: what is under way is finished first", flush=True)
            pool.shutdown(cancel_futures=True)
            raise
    for submission in broken:
        with ProcessPoolExecutor(1, spawn, prepare_worker, (turn,)) as pool:
            try:
                yield pool.submit(grade_one, submission, terms).result()
            except Exception as problem:
                yield lost(submission, problem)


def lost(submission: Submission, problem: Exception) -> Result:
    """A submission that the grader itself failed on: in the marks, with the reason, and no other one is touched."""
    print(lines("".join(traceback.format_exception(problem))), file=sys.stderr)
    assignment = known_assignments().get(submission.assignment)
    status = sentence(f"grader failed: {type(problem).__name__}: {problem}")
    return Result(submission.student, submission.assignment, status, (), assignment.points if assignment else 0.0)


def prepare_worker(turn: Any) -> None:
    """One thread and one core a worker. The student's process inherits the core and cannot leave it, so that a cell
    with a hundred threads does not slow the other workers. turn: how many workers came before."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches every process: the grader alone decides
    import torch

    torch.set_num_threads(1)
    threading.Thread(target=leave_with, args=(os.getppid(),), daemon=True).start()
    if hasattr(os, "sched_setaffinity"):
        with turn.get_lock():
            mine, turn.value = turn.value, turn.value + 1
        allowed = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {allowed[mine % len(allowed)]})


def leave_with(parent: int) -> None:
    """End this worker, and with it the student's process, when the grader is killed."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def line(result: Result) -> str:
    """One submission's outcome."""
    verdict = f"{result.points:g} of {result.max:g}" if result.status == "graded" else result.status
    repaired = f", {len(result.repairs)} repairs" if result.repairs else ""
    return f"{result.student:<24} {result.assignment:<16} {verdict}{repaired} ({result.seconds:.1f} s)"
