"""Puts the four cells of an exercise that has checks into its assignment: text, answer, instant check, graded cell.

The texts are a frame to fill in; everything that a machine can know is right already (ids, marks, points, the call).
"""

import inspect
from pathlib import Path
from typing import Any

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell
from tyro.conf import Positional

from coursework import checks
from coursework.build import ROOT, BuildError, read, write
from coursework.checks.engine import Exercise

TEXT = """\
## {number} {title}

**What for.** …

**Difficulty** ●●○○○ · **minutes** 10 · **points** {points:g}

**Write** `{signature}`.

**By hand.**

```python
{name}(…)
# …
```

<details><summary>Hint 1: the idea</summary>

…

</details>

<details><summary>Hint 2: the shapes on the way</summary>

…

</details>

<details><summary>Hint 3: pseudocode</summary>

…

</details>"""


def add(unit: str, name: str, root: Path = ROOT) -> Path:
    """Insert the cells of exercise `name` of unit "01" before the assignment's last cell; returns the notebook's path.

    Raises:
        BuildError: the notebook has the exercise already.
        LookupError: no such unit or exercise in coursework.checks.
    """
    exercise = checks.find(unit, name)
    lesson = checks.unit(unit).LESSON
    path = root / "solutions" / lesson / f"{lesson}.ipynb"
    notebook = read(path)
    if any(cell.get("id") == name for cell in notebook.cells):
        raise BuildError(f"{path.name} has {name} already")
    notebook.cells[-1:-1] = cells_of(exercise)
    write(notebook, path)
    return path


def cells_of(exercise: Exercise) -> list[Any]:
    """The four cells, in order."""
    name, reference = exercise.name, exercise._reference
    assert reference is not None, f"{name} has no reference yet"
    signature = f"{name}{inspect.signature(reference)}"
    text = TEXT.format(
        number=exercise.number, title=exercise.title, points=exercise.points, signature=signature, name=name
    )
    source = inspect.getsource(reference)
    body = source[source.index("\n", source.index("):")) + 1 :].rstrip()
    answer = f'def {signature}:\n    """…"""\n    ### BEGIN SOLUTION\n{body}\n    ### END SOLUTION'
    return [
        new_markdown_cell(text, id=f"{name}-text", metadata=_marks(f"{name}-text", locked=True)),
        new_code_cell(answer, id=f"{name}-answer", metadata=_marks(f"{name}-answer", solution=True)),
        new_code_cell(f"check.{name}({name})", id=f"{name}-try"),
        new_code_cell(
            f"check.{name}.grade(globals())", id=name,
            metadata=_marks(name, grade=True, locked=True, points=exercise.points),
        ),
    ]  # fmt: skip


def _marks(grade_id: str, **more: Any) -> Any:
    marks = {
        "grade": False,
        "grade_id": grade_id,
        "locked": False,
        "schema_version": 3,
        "solution": False,
        "task": False,
    }
    return nbformat.from_dict({"nbgrader": marks | more})


def main(unit: Positional[str], name: Positional[str]) -> int:
    """Put the cells of a new exercise into its assignment, to be filled in.

    Args:
        unit: "01" or "01_attention".
        name: of the exercise, as in coursework/checks.
    """
    try:
        path = add(unit, name)
    except (BuildError, LookupError) as problem:
        print(problem)
        return 1
    print(f"{path} has the cells of {name}: fill in the text, the answer and the table on top, then make release")
    return 0
