"""Grades one notebook: its cells run in a student's kernel, its graded cells are judged here, outside.

A cell that never ends, kills the process or eats the memory costs what that cell defines and nothing else: the
kernel is started anew and the earlier cells are run again, without those that killed it. The notebook as a whole has
a limit too, which says so where it strikes.
"""

import math
import re
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import nbformat

from coursework.checks.engine import Exercise, Verdict
from coursework.grading.kernel import KernelBroken, KernelDied, StudentKernel, request_of
from coursework.grading.plain import lines
from coursework.grading.suspicious import insides, sources_of, statements
from coursework.grading.wire import error, read_replies

CELL_SECONDS = 15.0  # what one of the student's cells may take
PATIENCE = 3.0  # an answer that was late is asked for once more, with so many times its limit
OUTPUTS_OF_A_NOTEBOOK = 10_000_000  # characters, pictures included; an honest one has some hundred thousand
LATE = "was not asked"  # so starts what is said of an answer for which the notebook had no time left
NO_MEMORY = "can't allocate memory"  # torch's words for it
NOTEBOOK_SECONDS = 300.0  # what a whole notebook may take; an honest one takes less than 30


def whole_notebook(cell_seconds: float) -> float:
    """Seconds that a whole notebook may take: whoever gives the cells more gives it to the notebook."""
    return max(NOTEBOOK_SECONDS, NOTEBOOK_SECONDS / CELL_SECONDS * cell_seconds)


class TimeUsedUp(Exception):
    """The notebook as a whole has taken as long as it may."""


@dataclass(frozen=True)
class Mark:
    """What one exercise earned. status: right, partly right, wrong, not answered, time limit, died, not judged."""

    exercise: str
    number: str
    title: str
    points: float
    max: float
    status: str
    message: str
    failed: str | None = None  # the first part that fails
    mistake: str | None = None  # name of the recognised mistake
    trouble: str = ""  # for the instructor alone: why it could not be judged


@dataclass
class Session:
    """Runs a notebook's cells in order. `make_kernel` gives a fresh StudentKernel whenever one is needed."""

    make_kernel: Callable[[], AbstractContextManager[StudentKernel]]
    seed: int
    device: str = "cpu"
    cell_seconds: float = CELL_SECONDS
    notebook_seconds: float = NOTEBOOK_SECONDS
    handed_out: frozenset[str] = frozenset()  # sources of cells that are ours: nobody's answer
    outputs_left: int = OUTPUTS_OF_A_NOTEBOOK
    _kernel: StudentKernel | None = None
    _ran: list[str] = field(default_factory=list)  # sources to repeat in a new kernel
    _lost: list[tuple[str, str]] = field(default_factory=list)  # cells left out, and why
    _spent: float = 0.0  # seconds that the notebook has taken: cells, repeated ones too, new kernels, questions
    _since: float | None = None  # when what is being counted began

    def close(self) -> None:
        """End the kernel."""
        if self._kernel is not None:
            self._kernel.__exit__()
            self._kernel = None

    # ------------------------------------------------------------ the student's cells

    def run_cell(self, source: str) -> list[dict]:
        """The outputs of one of the student's cells; what stops it is said in the last one."""
        try:
            with self._counted():
                outputs = self._run_cell(source)
        except TimeUsedUp:
            return [_note(f"This cell was not run: {self._used_up()}.")]
        self.outputs_left -= len(repr(outputs))
        if self.outputs_left < 0:
            return [_note("This cell ran; what it showed is left out, because the notebook has shown too much.")]
        return outputs

    def _run_cell(self, source: str) -> list[dict]:
        for attempt in (1, 2):
            try:
                outputs, in_time = self._alive().run(source, self.cell_seconds)
                break
            except KernelDied as death:
                self.close()
                if isinstance(death, KernelBroken) and attempt == 1:
                    continue  # an earlier cell broke it: _alive finds out which, and leaves it out
                return [self._leave_out(source, str(death))]
        if any(output.get("ename") == "MemoryError" or NO_MEMORY in output.get("evalue", "") for output in outputs):
            self.close()  # what it still holds would starve the others
            return [*outputs, self._leave_out(source, "used up the memory")]
        if not in_time:
            outputs.append(_note(f"This cell did not finish in {self.cell_seconds:g} s and was interrupted."))
        self._ran.append(source)  # what it defined before it was interrupted, it defines again
        return outputs

    def _leave_out(self, source: str, reason: str) -> dict:
        self._lost.append((source, reason))
        return _note(f"This cell {reason}. It was left out; the cells before it were run again.")

    def _alive(self) -> StudentKernel:
        """The kernel, started anew if it died, with every earlier cell run again but those that kill it."""
        while self._kernel is None:
            self._need_time()
            self._kernel = self.make_kernel().__enter__()
            for i, source in enumerate([*self._ran, ""]):  # the empty one finds out whether the last one broke it
                self._need_time()
                try:
                    self._kernel.run(source, self.cell_seconds)
                except KernelDied as death:
                    self.close()
                    guilty = i - 1 if isinstance(death, KernelBroken) else i
                    if 0 <= guilty < len(self._ran):
                        self._leave_out(self._ran.pop(guilty), str(death))
                    break
        return self._kernel

    # ------------------------------------------------------------ the notebook's time

    @contextmanager
    def _counted(self) -> Iterator[None]:
        """What happens inside takes of the notebook's time; raises TimeUsedUp when none is left. The first start of
        a kernel is not the student's doing, and is not counted."""
        if not self._spent:
            self._alive()
        self._since = time.monotonic()
        try:
            self._need_time()
            yield
        finally:
            self._spent += time.monotonic() - self._since
            self._since = None

    def _need_time(self) -> None:
        now = 0.0 if self._since is None else time.monotonic() - self._since
        if self._spent + now > self.notebook_seconds:
            raise TimeUsedUp

    def _used_up(self) -> str:
        """Why something was not done, as the end of a sentence."""
        return (
            f"the notebook as a whole may take {self.notebook_seconds:g} s, and what came before this had taken them "
            "(each cell counts, also when it is run again after one that ended the process)"
        )

    # ------------------------------------------------------------ the graded cells

    def grade(self, exercise: Exercise) -> Mark:
        """Judge one exercise with what the student's names are now. Never raises for anything a student did."""
        deaths: list[str] = []  # how the student's process ended, if it did

        def run(calls: list[dict], device: str) -> list[dict]:
            replies = self._ask(exercise, calls, device, deaths)
            if any(reply["error"] and reply["error"]["type"] == "TimeLimit" for reply in replies):
                patient = [call | {"seconds": PATIENCE * call["seconds"]} for call in calls]
                replies = self._ask(exercise, patient, device, deaths)  # a busy machine is not the student's fault
            return replies

        try:
            verdict = exercise.verdict(run, seed=self.seed, rounds=2, device=self.device)
        except Exception:  # an answer that trips the judge: loud in the report, and no other exercise suffers
            told = f"✗ {exercise.number} {exercise.title}: could not be judged; your instructor has the details"
            return replace(_mark(exercise, 0.0, "not judged", told), trouble=lines(traceback.format_exc(limit=-3)))
        verdict = self._refuse_insides(self._explain(verdict, exercise.name, deaths), exercise)
        points = verdict.points if math.isfinite(verdict.points) else 0.0
        points = min(max(float(points), 0.0), exercise.points)
        status = _status(verdict, deaths)
        return _mark(exercise, points, status, verdict.text(), verdict.failed, verdict.mistake)

    def _explain(self, verdict: Verdict, name: str, deaths: list[str]) -> Verdict:
        """Say so when a name is missing because the cell that defines it had to be left out."""
        if verdict.what.startswith("there is no"):
            for source, death in self._lost:
                if re.search(rf"\b{name}\b", source):
                    deaths.append(death)
                    return replace(verdict, what=f"there is no {name}: the cell that defines it {death}")
        return verdict

    def _refuse_insides(self, verdict: Verdict, exercise: Exercise) -> Verdict:
        """An exercise that excludes an operator earns nothing by torch's insides (suspicious.py)."""
        if exercise.exclude and verdict.points > 0:
            theirs = [part for source in self._ran if source not in self.handed_out for part in statements(source)]
            used = [inside for source in sources_of(exercise.name, theirs) for inside in insides(source)]
            if used:
                what = (
                    f"uses {used[0]}: this exercise asks for {', '.join(exercise.exclude)} by torch's public operators"
                )
                return replace(verdict, points=0.0, what=what, looks="", think="", failed="shape", mistake=None)
        return verdict

    def _ask(self, exercise: Exercise, calls: list[dict], device: str, deaths: list[str]) -> list[dict]:
        """Well-formed answers to the calls, whatever happens in the student's process."""
        limit = 4 * max(call["seconds"] for call in calls) + 4  # for what runner.py cannot stop itself
        death = ""
        for _ in range(2):  # the process may have been about to end before we asked: once more in a fresh one
            try:
                with self._counted():
                    return read_replies(self._alive().ask(request_of(calls, device), limit), calls)
            except TimeUsedUp:
                death = f"{LATE}: {self._used_up()}"
            except KernelDied as end:
                self.close()
                death = str(end)
            if "did not finish" in death or death.startswith(LATE):
                break
        deaths.append(death)
        return [error("Refused", death) for _ in calls]


def _status(verdict: Verdict, deaths: list[str]) -> str:
    if verdict.passed:
        return "right"
    if deaths:
        return "time limit" if "did not finish" in deaths[0] or deaths[-1].startswith(LATE) else "died"
    if verdict.blank:
        return "not answered"
    if verdict.points > 0:
        return "partly right"
    return "time limit" if "did not finish" in verdict.what else "wrong"


def _mark(
    exercise: Exercise,
    points: float,
    status: str,
    message: str,
    failed: str | None = None,
    mistake: str | None = None,
) -> Mark:
    return Mark(
        exercise.name, exercise.number, exercise.title, points, exercise.points, status, lines(message), failed, mistake
    )


def _note(text: str) -> dict:
    return {"output_type": "stream", "name": "stdout", "text": f"[grading] {text}\n"}


# ---------------------------------------------------------------- a whole notebook


def grade_notebook(notebook: Any, exercises: dict[str, Exercise], session: Session) -> list[Mark]:
    """Run and judge a notebook (nbformat 4, changed in place: outputs are what happened here); marks in its order.

    A cell whose nbgrader metadata say "graded, not a solution" and whose grade_id is one of `exercises` is judged
    and not run; every other code cell is the student's and is run.
    """
    marks = []
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        exercise = exercises.get(graded_id(cell) or "")
        if exercise is not None:
            mark = session.grade(exercise)
            marks.append(mark)
            cell.outputs = nbformat.from_dict(outputs_of(mark))
        else:
            cell.outputs = nbformat.from_dict(session.run_cell(cell.source))
        cell.execution_count = None
    return marks


def graded_id(cell: Any) -> str | None:
    """The grade_id of an automatically graded cell, or None."""
    metadata = cell.metadata.get("nbgrader", {})
    if metadata.get("grade") and not metadata.get("solution"):
        return metadata.get("grade_id")
    return None


def outputs_of(mark: Mark) -> list[dict]:
    """What a judged cell shows: the message, then the points as nbgrader reads them (a plain float's repr)."""
    return [
        {"output_type": "stream", "name": "stdout", "text": mark.message + "\n"},
        {
            "output_type": "execute_result",
            "execution_count": None,
            "metadata": {},
            "data": {"text/plain": repr(float(mark.points))},
        },
    ]
