"""Puts a damaged notebook right before it is graded, by comparing it with the released one.

Students copy, split, move and delete cells; Colab and VS Code drop nbgrader's metadata and cell ids. None of this
should cost points. A cell is recognised by its grade_id, else by its id, else by an equal source, and an answer
at last by the function or class that it defines. Every repair is told to the student in a sentence.
"""

import ast
import copy
import re
from dataclasses import dataclass, field
from typing import Any

KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}


@dataclass
class Repair:
    """A notebook under repair. `released`: the released notebook; `cells`: the student's; `told`: what was done."""

    released: Any
    cells: list[Any]
    told: list[str] = field(default_factory=list)

    def of_kind(self, kind: str) -> dict[str, Any]:
        """Released cells by name: kind "graded", "answer" or "locked" (text and code that students don't edit)."""
        return {name(cell): cell for cell in self.released.cells if kind_of(cell) == kind}


def repair(notebook: Any, released: Any) -> list[str]:
    """Change `notebook` (nbformat 4.5, in place) so that it has every graded and locked cell of `released` once,
    in working order, with its metadata. Returns one sentence a repair; running it twice changes nothing more."""
    work = Repair(released, notebook.cells)
    matched = match(work)
    retype(work, matched)
    restore_locked(work, matched)
    place_graded(work, matched)
    restore_metadata(work, matched)
    number_ids(work.cells)
    notebook.cells = work.cells
    if notebook.metadata.get("kernelspec", KERNEL).get("name") != KERNEL["name"]:
        work.told.append("the notebook named another kernel; it was run with Python 3")
    notebook.metadata["kernelspec"] = dict(KERNEL)
    return work.told


# ---------------------------------------------------------------- recognising


def kind_of(cell: Any) -> str:
    """graded, answer, locked or free."""
    marks = cell.metadata.get("nbgrader") or {}
    if marks.get("solution"):
        return "answer"
    if marks.get("grade"):
        return "graded"
    return "locked" if marks.get("locked") else "free"


def name(cell: Any) -> str:
    """A released cell's name: its grade_id."""
    return cell.metadata["nbgrader"]["grade_id"]


def match(work: Repair) -> dict[int, str]:
    """Index in the student's notebook -> name of the released cell that it is, or is a copy or a piece of."""
    known = {name(cell): cell for cell in work.released.cells if kind_of(cell) != "free"}
    by_source = {squeezed(cell): key for key, cell in known.items() if kind_of(cell) != "answer"}
    found: dict[int, str] = {}
    for i, cell in enumerate(work.cells):
        marks = cell.metadata.get("nbgrader")
        said = marks.get("grade_id") if isinstance(marks, dict) else None
        for key in (said, cell.get("id"), by_source.get(squeezed(cell))):
            if isinstance(key, str) and key in known:
                found[i] = key
                break
    for key, cell in known.items():
        if kind_of(cell) == "answer" and key not in found.values():
            defining = [i for i, c in enumerate(work.cells) if i not in found and defines(c) & defines(cell)]
            if defining:
                found[defining[-1]] = key
    return found


def exercises_in(notebook: Any, released: Any) -> int:
    """How many graded and answer cells of `released` a notebook has in any shape that repair() puts right."""
    found = set(match(Repair(released, notebook.cells)).values())
    return sum(name(cell) in found for cell in released.cells if kind_of(cell) in ("graded", "answer"))


def squeezed(cell: Any) -> str:
    """A source without what editors change by themselves."""
    return re.sub(r"\s+", " ", cell.source).strip()


DEFINITION = r"^(?:(?:async\s+)?def|class)\s+(\w+)|^(\w+)\s*(?::[^=\n]+)?=(?!=)"


def defines(cell: Any) -> set[str]:
    """Functions, classes and names that a cell defines at its top level, also when it does not parse."""
    found = re.findall(DEFINITION, cell.source, re.MULTILINE)
    return {called or assigned for called, assigned in found}


# ---------------------------------------------------------------- putting right


def retype(work: Repair, matched: dict[int, str]) -> None:
    """Turn cells back that were made Markdown, raw or code."""
    known = {name(cell): cell for cell in work.released.cells if kind_of(cell) != "free"}
    for i, key in matched.items():
        cell, right = work.cells[i], known[key].cell_type
        if cell.cell_type != right:
            work.told.append(f"the cell {key} had been turned into {cell.cell_type}; it is {right} again")
            cell.cell_type = right
            for extra in ("outputs", "execution_count"):
                cell.pop(extra, None)
            if right == "code":
                cell.update(outputs=[], execution_count=None)


def restore_locked(work: Repair, matched: dict[int, str]) -> None:
    """Give locked cells their text again; code that a student wrote into one runs after it, in a cell of its own."""
    locked = work.of_kind("locked")
    for i in sorted(matched, reverse=True):
        key = matched[i]
        if key not in locked or work.cells[i].source == locked[key].source:
            continue
        changed = squeezed(work.cells[i]) != squeezed(locked[key])
        if changed and locked[key].cell_type == "code" and parses(work.cells[i].source):
            insert(work, matched, i + 1, free_copy(work.cells[i]))
            work.told.append(f"the locked cell {key} had been changed; it was restored, and your version run after it")
        elif changed:
            work.told.append(f"the locked cell {key} had been changed; it was restored")
        work.cells[i].source = locked[key].source
    before = -1
    for cell in work.released.cells:
        if kind_of(cell) == "free":
            continue
        here = [i for i, key in matched.items() if key == name(cell)]
        if kind_of(cell) == "locked" and cell.cell_type == "code" and not here:
            insert(work, matched, before + 1, copy.deepcopy(cell))
            matched[before + 1] = name(cell)
            here = [before + 1]
            work.told.append(f"the locked cell {name(cell)} was missing; it was put back")
        before = max([before, *here])


def place_graded(work: Repair, matched: dict[int, str]) -> None:
    """Have each graded cell once: where its last copy stands, but never before the answer that it is about."""
    for key, cell in work.of_kind("graded").items():
        copies = sorted(i for i, found in matched.items() if found == key)
        answers = answers_of(work, matched, key)
        place = max([*copies[-1:], *answers, -1])
        if len(copies) == 1 and place == copies[0]:
            work.cells[place].source = cell.source
            continue
        if not copies:
            work.told.append(f"the graded cell {key} was missing; it was put back")
        elif len(copies) > 1:
            work.told.append(f"there were {len(copies)} copies of the graded cell {key}; one was kept")
        else:
            work.told.append(f"the graded cell {key} stood before its answer; it was moved after it")
        if place < 0:  # nobody knows where its answer is: at the end, everything there is has been defined
            place = len(work.cells) - 1
        insert(work, matched, place + 1, copy.deepcopy(cell))
        for i in sorted(copies, reverse=True):
            remove(work, matched, i)
        matched[place + 1 - len(copies)] = key


def answers_of(work: Repair, matched: dict[int, str], key: str) -> list[int]:
    """Where the answer to a graded cell stands: its answer cell, or, when that one is untouched, the last cell that
    defines its name."""
    released = next((c for c in work.of_kind("answer").values() if key in defines(c)), None)
    if released is None:
        return []
    own = [i for i, found in matched.items() if found == name(released)]
    if own and any(squeezed(work.cells[i]) != squeezed(released) for i in own):
        return own
    elsewhere = [i for i, c in enumerate(work.cells) if c.cell_type == "code" and key in defines(c)]
    return elsewhere[-1:] or own


def restore_metadata(work: Repair, matched: dict[int, str]) -> None:
    """nbgrader's metadata as released on the first cell of each name; on no other cell."""
    known = {name(cell): cell for cell in work.released.cells if kind_of(cell) != "free"}
    taken, lost = set(), 0
    for i, cell in enumerate(work.cells):
        key = matched.get(i)
        marks = cell.metadata.get("nbgrader")
        if key is None or key in taken:
            if marks:
                work.told.append(f"a copy or a piece of {key} was run as a cell of its own" if key else FOREIGN)
            cell.metadata.pop("nbgrader", None)
            continue
        taken.add(key)
        lost += not marks
        cell.metadata = copy.deepcopy(known[key].metadata)
        cell["id"] = known[key].get("id", key)
    if lost:
        work.told.append(f"{lost} cells had lost what nbgrader knows them by; they were recognised by their text")


FOREIGN = "a cell claimed to be one of nbgrader's and is not part of this assignment; it was run as an ordinary cell"


# ---------------------------------------------------------------- small helpers


def insert(work: Repair, matched: dict[int, str], place: int, cell: Any) -> None:
    work.cells.insert(place, cell)
    moved = {i + (i >= place): key for i, key in matched.items()}
    matched.clear()
    matched.update(moved)


def remove(work: Repair, matched: dict[int, str], place: int) -> None:
    del work.cells[place]
    moved = {i - (i > place): key for i, key in matched.items() if i != place}
    matched.clear()
    matched.update(moved)


def free_copy(cell: Any) -> Any:
    """The same cell without anything of nbgrader's."""
    made = copy.deepcopy(cell)
    made.metadata.pop("nbgrader", None)
    made.pop("id", None)
    return made


def parses(source: str) -> bool:
    """Whether this is Python, once IPython's magics are left out."""
    lines = [line for line in source.splitlines() if not line.lstrip().startswith(("%", "!"))]
    try:
        ast.parse("\n".join(lines))
    except (SyntaxError, ValueError):
        return False
    return True


def number_ids(cells: list[Any]) -> None:
    """Every cell has an id of its own; those of the first comer stay."""
    taken: set[str] = set()
    for i, cell in enumerate(cells):
        said = cell.get("id")
        if not (isinstance(said, str) and re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", said)) or said in taken:
            said = f"cell-{i}"
            while said in taken:
                said += "-again"
            cell["id"] = said
        taken.add(said)
