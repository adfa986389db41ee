"""nbgrader's settings for this course: `nbgrader …` commands and JupyterLab read them from this folder."""

from pathlib import Path

c = get_config()

c.CourseDirectory.course_id = "bert-from-scratch"
c.CourseDirectory.root = str(Path(__file__).resolve().parent)
c.CourseDirectory.source_directory = "solutions"
c.CourseDirectory.release_directory = "exercises"
c.ClearSolutions.code_stub = {"python": "raise NotImplementedError()  # your answer replaces this line"}
