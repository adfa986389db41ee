"""Grading a class: how many submissions a minute, how much memory, and whether a killed run loses anything.

    python benchmarks/grading.py                     # 60 submissions of assignment 01, a few minutes on two cores
    python benchmarks/grading.py --students 300

The class repeats the demo class (right, wrong, broken, hostile), each student with another name. The grader is killed
with SIGKILL when a third is done, and started again; then the same class is graded in one go by a fresh run. The
marks must be the same, and of every copy of a notebook the same as of the first.
"""

import csv
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import psutil
import tyro
from machine import processor

from coursework.grading.assignments import known_assignments
from coursework.grading.collect import parse
from coursework.grading.demo import ASSIGNMENT, submissions
from coursework.grading.one import ROOT

RESULTS = Path(__file__).parent / "results"


def write_class(folder: Path, students: int) -> None:
    path = ROOT / "exercises" / ASSIGNMENT / f"{ASSIGNMENT}.ipynb"
    made = list(submissions(parse(path.read_bytes(), path.name), known_assignments()[ASSIGNMENT].exercises).items())
    for i in range(students):
        name, text = made[i % len(made)]
        target = folder / f"{i:03d}-{name}" / ASSIGNMENT / f"{ASSIGNMENT}.ipynb"
        target.parent.mkdir(parents=True)
        target.write_text(text, encoding="utf-8")


@dataclass
class Run:
    seconds: float
    peak_mib: int  # of the grader, its workers and all students' processes together
    graded: int  # how many results lay there at the end


def run(folder: Path, out: Path, kill_at: int | None = None) -> Run:
    """One `coursework grade`; kill_at: SIGKILL once so many results are there."""
    command = [sys.executable, "-m", "coursework", "grade", str(folder), "--out", str(out), "--seed", "5"]
    begin, peak = time.monotonic(), 0
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while process.poll() is None:
        peak = max(peak, memory_of(process.pid))
        if kill_at is not None and len(results(out)) >= kill_at:
            process.send_signal(signal.SIGKILL)
        time.sleep(0.5)
    return Run(time.monotonic() - begin, peak, len(results(out)))


def memory_of(pid: int) -> int:
    """MiB of a process and all below it; shared pages are counted once a process, so this is an upper bound."""
    try:
        family = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    except psutil.NoSuchProcess:
        return 0
    total = 0
    for process in family:
        try:
            total += process.memory_info().rss
        except psutil.NoSuchProcess:
            continue
    return total >> 20


def results(out: Path) -> list[Path]:
    return list((out / "results").glob("*/*.json"))


def marks(out: Path) -> dict[str, list]:
    """Student -> rows of marks.csv."""
    table: dict[str, list] = {}
    with (out / "marks.csv").open() as file:
        for row in csv.DictReader(file):
            table.setdefault(row["student"], []).append((row["exercise"], row["points"], row["status"][:40]))
    return table


def main(students: int = 60, save: bool = True) -> None:
    """Grade a class of so many students twice, once killed on the way."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "class"
        write_class(folder, students)
        killed = run(folder, Path(scratch) / "killed", kill_at=students // 3)
        resumed = run(folder, Path(scratch) / "killed")
        whole = run(folder, Path(scratch) / "whole")
        first, second = marks(Path(scratch) / "killed"), marks(Path(scratch) / "whole")
    assert first == second, "a killed and resumed run gives other marks"
    assert len(second) == students, f"{students - len(second)} submissions are lost"
    by_kind: dict[str, list] = {}
    for student, rows in second.items():
        by_kind.setdefault(student.partition("-")[2], []).append(rows)
    assert all(rows == copies[0] for copies in by_kind.values() for rows in copies), "copies of one got other marks"
    figures = {
        "students": students, "kinds": len(by_kind), "seconds": round(whole.seconds),
        "a_minute": round(60 * students / whole.seconds, 1), "peak_mib": whole.peak_mib,
        "killed_after": killed.graded, "resumed_seconds": round(resumed.seconds),
        "cores": len(os.sched_getaffinity(0)), "machine": processor(), "date": time.strftime("%Y-%m-%d"),
    }  # fmt: skip
    text = f"""\
| submissions of assignment 01 | on | seconds | a minute | memory at most, all processes |
|---|---|---|---|---|
| {students:,} ({len(by_kind)} kinds: right, wrong, broken, hostile) | {figures["cores"]} cores | \
{figures["seconds"]:,} | {figures["a_minute"]} | {figures["peak_mib"] / 1024:.1f} GiB |

Killed with SIGKILL after {killed.graded} and started again: the same marks, nothing lost. {figures["machine"]}, \
{figures["date"]}.
"""
    print(text)
    if save:
        (RESULTS / "grading.json").write_text(json.dumps(figures, indent=1) + "\n")
        body = f"<!-- grading: written by benchmarks/grading.py -->\n{text}<!-- /grading -->\n"
        (RESULTS / "grading.md").write_text(body)


if __name__ == "__main__":
    tyro.cli(main)
