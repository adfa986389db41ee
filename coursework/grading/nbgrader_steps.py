"""The same grading as steps of nbgrader's own autograde, so that its commands, gradebook and formgrader keep working.

nbgrader_config.py names them: `PutRight` before nbgrader compares cells with its gradebook, `JudgeOutside` in place
of nbgrader's Execute, `ShowAsText` before anyone looks at the result. They call what the class runner calls, so the
marks are the same.
"""

import tempfile
from pathlib import Path
from typing import Any

from nbgrader.preprocessors import NbGraderPreprocessor
from traitlets import Bool, Float, Unicode

from coursework.grading.assignments import known_assignments, names_for_students
from coursework.grading.collect import parse
from coursework.grading.kernel import StudentKernel
from coursework.grading.one import ROOT, Terms, locked_sources, manager_class, need_unit
from coursework.grading.plain import fenced
from coursework.grading.repair import repair
from coursework.grading.secret import class_seed
from coursework.grading.session import CELL_SECONDS, Session, grade_notebook, whole_notebook


class GradingStep(NbGraderPreprocessor):
    """A step that knows what was handed out."""

    course = Unicode(str(ROOT), help="folder that holds exercises/").tag(config=True)

    def released(self, resources: dict) -> Any:
        path = Terms(0, Path(), Path(self.course)).released(resources["nbgrader"]["assignment"])
        return parse(path.read_bytes(), path.name)


class PutRight(GradingStep):
    """Repairs a submission by comparing it with the released notebook; another unit's is an error of that student."""

    def preprocess(self, nb: Any, resources: dict) -> tuple[Any, dict]:
        need_unit(nb, resources["nbgrader"]["assignment"], Terms(0, Path(), Path(self.course)))
        for told in repair(nb, self.released(resources)):
            who = resources["nbgrader"]
            self.log.warning("%s, %s: %s", who["student"], who["assignment"], told)
        return nb, resources


class JudgeOutside(GradingStep):
    """Runs the student's cells in a kernel of their own and judges the graded cells here, in nbgrader's process."""

    trusted = Bool(False, help="run students' code with your own rights, without the sandbox").tag(config=True)
    cell_seconds = Float(CELL_SECONDS, help="time limit of one of the student's cells").tag(config=True)
    seed_file = Unicode("", help="file with the seed of the questions; this user's own unless given").tag(config=True)

    def preprocess(self, nb: Any, resources: dict) -> tuple[Any, dict]:
        assignment = known_assignments().get(resources["nbgrader"]["assignment"])
        seed = class_seed(Path(self.seed_file) if self.seed_file else None)
        with tempfile.TemporaryDirectory(prefix="student-") as folder:
            session = Session(
                lambda: StudentKernel(Path(folder), names_for_students(), manager_class(self.trusted)),
                seed,
                cell_seconds=self.cell_seconds,
                notebook_seconds=whole_notebook(self.cell_seconds),
                handed_out=locked_sources(self.released(resources)),
            )
            try:
                grade_notebook(nb, assignment.exercises if assignment else {}, session)
            finally:
                session.close()
        return nb, resources


class ShowAsText(NbGraderPreprocessor):
    """Turns Markdown and raw cells that a student wrote into text as it was typed: rendered, they could run script
    in the formgrader with the instructor's rights. Outputs are harmless already (kernel.py keeps text and PNG)."""

    def preprocess(self, nb: Any, resources: dict) -> tuple[Any, dict]:
        for cell in nb.cells:
            cell.pop("attachments", None)
            marks = cell.metadata.get("nbgrader", {})
            ours = marks.get("locked") and not marks.get("solution")
            if cell.cell_type != "code" and not ours:
                cell.cell_type = "markdown"
                cell.source = fenced(cell.source)
        return nb, resources
