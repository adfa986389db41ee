"""nbgrader's settings for this course: `nbgrader …` commands and JupyterLab read them from this folder."""

from pathlib import Path

c = get_config()

c.CourseDirectory.course_id = "bert-from-scratch"
c.CourseDirectory.root = str(Path(__file__).resolve().parent)
c.CourseDirectory.source_directory = "solutions"
c.CourseDirectory.release_directory = "exercises"
c.ClearSolutions.code_stub = {"python": "raise NotImplementedError()  # your answer replaces this line"}

# Grading: damaged notebooks are put right, students' cells run in a kernel of their own, judging happens outside it.
c.Autograde.sanitize_preprocessors = [
    "nbgrader.preprocessors.ClearOutput",
    "coursework.grading.nbgrader_steps.PutRight",
    "nbgrader.preprocessors.DeduplicateIds",
    "nbgrader.preprocessors.OverwriteKernelspec",
    "nbgrader.preprocessors.OverwriteCells",
    "nbgrader.preprocessors.CheckCellMetadata",
]
c.Autograde.autograde_preprocessors = [
    "coursework.grading.nbgrader_steps.JudgeOutside",
    "coursework.grading.nbgrader_steps.ShowAsText",
    "nbconvert.preprocessors.ClearMetadataPreprocessor",
    "nbgrader.preprocessors.LimitOutput",
    "nbgrader.preprocessors.SaveAutoGrades",
    "nbgrader.preprocessors.AssignLatePenalties",
    "nbgrader.preprocessors.CheckCellMetadata",
]

# Feedback: pages that load nothing from elsewhere.
c.GenerateFeedback.exporter_class = "coursework.grading.nbgrader_feedback.SelfContained"
