"""A demo class for assignment 01, made by writing answers into the released notebook: good, wrong, broken, hostile.

Right answers and mistakes are those of coursework.checks, so that what each submission should earn is known.
"""

import ast
import copy
import inspect
import json
import re
import shutil
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

from coursework.checks.engine import Exercise
from coursework.grading.assignments import known_assignments
from coursework.grading.collect import parse
from coursework.grading.one import ROOT

ASSIGNMENT = "01_attention"

ENDLESS = "while True:\n    try:\n        while True:\n            pass\n    except BaseException:\n        pass"
PATCHED = """
import torch
torch.allclose = torch.equal = lambda *args, **kwargs: True
torch.testing.assert_close = lambda *args, **kwargs: None
torch.Tensor.__eq__ = lambda self, other: torch.ones(())
"""


def make_demo_class(folder: Path, course: Path = ROOT) -> Path:
    """Write the demo class to `folder` in nbgrader's layout, anew; returns `folder`."""
    path = course / "exercises" / ASSIGNMENT / f"{ASSIGNMENT}.ipynb"
    released = parse(path.read_bytes(), path.name)
    shutil.rmtree(folder, ignore_errors=True)
    for student, text in submissions(released, known_assignments()[ASSIGNMENT].exercises).items():
        target = folder / student / ASSIGNMENT / f"{ASSIGNMENT}.ipynb"
        target.parent.mkdir(parents=True)
        target.write_text(text, encoding="utf-8")
    return folder


def submissions(released: Any, exercises: dict[str, Exercise]) -> dict[str, str]:
    """Student -> the text of a notebook."""
    right = {name: alternative_of(exercise) for name, exercise in exercises.items()}
    first = next(iter(exercises))
    made = {
        "perfect": splice(released, right),
        "blank": splice(released, {}),
        "half_done": splice(released, dict(list(right.items())[::2])),
        "syntax_error": splice(released, right | {first: f"def {first}(*args)\n    return 0"}),
        "endless_cell": splice(released, right | {first: right[first] + "\n" + ENDLESS}),
        "endless_answer": splice(released, right | {first: f"def {first}(*args):\n{indent(ENDLESS)}"}),
        "kills_its_kernel": splice(released, right, extra="import os\nos._exit(1)"),
        "answer_kills_it": splice(released, right | {first: f"def {first}(*args):\n    import os\n    os._exit(1)"}),
        "warns_on_stderr": splice(released, {n: loud(n, source) for n, source in right.items()}),
        "patches_allclose": splice(released, {}, extra=PATCHED),
        "imports_the_answer": splice(released, {first: imported(first)}),
        "claims_full_marks": splice(released, {}, extra="print(2.0)\n2.0"),
        "broken_json": splice(released, right)[:500],
        "not_a_notebook": json.dumps({"a recipe": ["flour", "water"]}),
    }
    for name, exercise in exercises.items():
        for mistake, wrong in mistakes_of(exercise)[:2]:
            made[f"mistake-{name}-{mistake}"] = splice(released, right | {name: wrong})
    return made


def splice(released: Any, answers: dict[str, str], extra: str = "") -> str:
    """The released notebook with `answers` (exercise -> source) in its answer cells, and one more cell, `extra`,
    after the imports."""
    notebook = copy.deepcopy(released)
    for cell in notebook.cells:
        name = str(cell.metadata.get("nbgrader", {}).get("grade_id", "")).removesuffix("-answer")
        if cell.metadata.get("nbgrader", {}).get("solution") and name in answers:
            cell.source = answers[name]
    if extra:
        first_answer = next(i for i, c in enumerate(notebook.cells) if c.metadata.get("nbgrader", {}).get("solution"))
        notebook.cells.insert(first_answer, {"cell_type": "code", "id": "extra", "metadata": {}, "outputs": [],
                                             "execution_count": None, "source": extra.strip()})  # fmt: skip
    notebook.pop("_upgraded", None)
    return json.dumps(notebook, indent=1)


def alternative_of(exercise: Exercise) -> str:
    """Source of the first right alternative, under the exercise's name."""
    return source_of(next(iter(exercise.alternatives.values())).function, exercise.name)


def mistakes_of(exercise: Exercise) -> list[tuple[str, str]]:
    """(name, source) of the known mistakes that can be written into one cell."""
    plain = [mistake for mistake in exercise.mistakes.values() if mistake.function.__closure__ is None]
    return [(mistake.name, source_of(mistake.function, exercise.name)) for mistake in plain]


def source_of(function: Callable, name: str) -> str:
    """A function's source under another name, with the imports and the helpers of its module that it uses."""
    needed: dict[str, str] = {}
    _collect(function, needed)
    own = re.sub(rf"(?<![.\w]){function.__name__}\b", name, needed.pop(function.__name__))
    return "\n\n".join([*needed.values(), own])


def _collect(function: Callable, needed: dict[str, str]) -> None:
    """Into `needed`: what the function uses, before the function itself (a default value needs its helper)."""
    source = textwrap.dedent(inspect.getsource(function))
    source = source[source.index("def ") :]
    for used in sorted({node.id for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)}):
        value = vars(inspect.getmodule(function)).get(used)
        if used in needed or value is function:
            continue
        if inspect.ismodule(value):
            needed[used] = f"import {value.__name__} as {used}"
        elif inspect.isfunction(value) and value.__module__.startswith("coursework."):
            _collect(value, needed)
    needed[function.__name__] = source


def indent(source: str) -> str:
    return textwrap.indent(source, "    ")


def loud(name: str, source: str) -> str:
    """The same answer, which warns on stderr each time."""
    warn = "import sys, warnings"
    talk = 'warnings.warn("careful")\n    print("debug", file=sys.stderr)\n    '
    body = re.sub(rf"(def {name}\([^)]*\)[^:]*:\n    )", rf"\1{talk}", source)
    return f"{warn}\n{body}\nprint('a cell that talks', file=sys.stderr)"


def imported(name: str) -> str:
    return f"from coursework.checks.attention import _{name} as {name}"
