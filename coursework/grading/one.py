"""Grades one submission from its file to its result: read, repair, run, judge, write the feedback."""

import hashlib
import json
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jupyter_client.manager import KernelManager

from coursework import runner
from coursework.checks import engine
from coursework.grading.assignments import Assignment, known_assignments, names_for_students
from coursework.grading.collect import Submission, Unreadable, WrongNotebook, parse, read_notebook
from coursework.grading.feedback import feedback_page
from coursework.grading.kernel import StudentKernel
from coursework.grading.plain import sentence
from coursework.grading.repair import exercises_in, repair
from coursework.grading.results import Result, save
from coursework.grading.sandbox import SandboxedKernel
from coursework.grading.session import CELL_SECONDS, Session, grade_notebook, whole_notebook
from coursework.grading.suspicious import worth_a_look

ROOT = Path(__file__).resolve().parents[2]
MOST_TOLD = 40  # sentences on what was put right in one notebook


@dataclass(frozen=True)
class Terms:
    """What is the same for a whole class. course: the folder that holds exercises/."""

    seed: int
    out: Path
    course: Path = ROOT
    trusted: bool = False
    cell_seconds: float = CELL_SECONDS

    def released(self, assignment: str) -> Path:
        """The released notebook of an assignment."""
        return self.course / "exercises" / assignment / f"{assignment}.ipynb"

    def result_file(self, submission: Submission) -> Path:
        return self.out / "results" / submission.student / f"{submission.assignment or '_'}.json"

    def feedback_file(self, submission: Submission) -> Path:
        return self.out / "feedback" / submission.student / f"{submission.assignment or '_'}.html"


def key_of(submission: Submission, terms: Terms) -> str:
    """Changes whenever grading again could give another result."""
    settings = [submission.canvas_id, submission.moodle_id, terms.seed, terms.trusted, terms.cell_seconds]
    digest = hashlib.sha256(json.dumps([submission.problem, submission.told, *settings]).encode())
    code = [Path(runner.__file__), *Path(engine.__file__).parent.glob("*.py"), *Path(__file__).parent.glob("*.py")]
    for path in [submission.path, terms.released(submission.assignment), *sorted(code)]:
        digest.update(content(path))
    return digest.hexdigest()[:20]


def content(path: Path) -> bytes:
    """A file's bytes; what cannot be opened differs from what can."""
    try:
        return path.read_bytes() if path.is_file() else b"absent"
    except OSError:
        return b"closed"


def grade_one(submission: Submission, terms: Terms) -> Result:
    """The result of one submission, written to terms.out with its feedback page. Never raises for a student's doing."""
    start = time.monotonic()
    assignment = known_assignments().get(submission.assignment)
    total = assignment.points if assignment else 0.0
    notebook, told, marks, look, status = None, [], [], [], "graded"
    try:
        notebook, told = read_notebook(submission)
        ours = locked_sources(released_notebook(submission.assignment, terms))
        look = worth_a_look([c.source for c in notebook.cells if c.cell_type == "code" and c.source not in ours])
        assert assignment is not None, "find_submissions says so when an assignment is unknown"
        need_unit(notebook, assignment.name, terms)
        notebook, more, marks = judge(notebook, assignment, terms)
        told += more
    except Unreadable as problem:
        status = sentence(f"{problem.word}: {problem}")
    result = Result(
        submission.student, submission.assignment, status, tuple(marks), total, few([*submission.told, *told]),
        tuple(look), round(time.monotonic() - start, 2), key_of(submission, terms), submission.canvas_id,
        submission.moodle_id,
    )  # fmt: skip
    page = terms.feedback_file(submission)
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(feedback_page(result, notebook), encoding="utf-8", errors="replace")
    save(result, terms.result_file(submission))
    return result


def few(told: list[str]) -> tuple[str, ...]:
    """The first sentences, and how many more there are: a notebook can be damaged a thousand times."""
    more = [f"and {len(told) - MOST_TOLD} more of this kind"] if len(told) > MOST_TOLD else []
    return tuple(sentence(said) for said in [*told[:MOST_TOLD], *more])


def need_unit(notebook: Any, name: str, terms: Terms) -> None:
    """Raises WrongNotebook for one without any exercise of the assignment: another unit's, or no assignment's."""

    def exercises_of(unit: str) -> int:
        released = released_notebook(unit, terms)
        return exercises_in(notebook, released) if released else 0

    if exercises_of(name) or not terms.released(name).is_file():
        return
    found = {unit: exercises_of(unit) for unit in known_assignments()}
    likely = max(found, key=lambda unit: found[unit])
    if found[likely]:
        raise WrongNotebook(f"this is the notebook of {likely}, not of {name}: ask for that one")
    raise WrongNotebook(
        f"it has none of the exercises of {name}: ask for the notebook that was handed out, with answers"
    )


def judge(notebook: Any, assignment: Assignment, terms: Terms) -> tuple[Any, list[str], list]:
    """(the notebook as it ran, repairs, marks)."""
    released = released_notebook(assignment.name, terms)
    told = repair(notebook, released) if released else []
    with tempfile.TemporaryDirectory(prefix="student-") as folder:
        session = Session(
            lambda: StudentKernel(Path(folder), names_for_students(), manager_class(terms.trusted)),
            terms.seed,
            cell_seconds=terms.cell_seconds,
            notebook_seconds=whole_notebook(terms.cell_seconds),
            handed_out=locked_sources(released),
        )
        try:
            marks = grade_notebook(notebook, assignment.exercises, session)
        finally:
            session.close()
    return notebook, told, marks


def released_notebook(name: str, terms: Terms) -> Any | None:
    path = terms.released(name)
    return parse(path.read_bytes(), path.name) if path.is_file() else None


def locked_sources(released: Any | None) -> frozenset[str]:
    """Code of a released notebook that students cannot edit: its set-up."""
    cells = released.cells if released else []
    return frozenset(cell.source for cell in cells if cell.metadata.get("nbgrader", {}).get("locked"))


def manager_class(trusted: bool) -> type[KernelManager]:
    """What starts the kernel: inside the sandbox, or with this user's rights for a trusted class."""
    return KernelManager if trusted else SandboxedKernel
