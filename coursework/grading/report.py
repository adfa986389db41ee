"""The class at a glance, as Markdown: what somebody has to look at, then each assignment's marks and which mistakes
were made how often (what to teach again)."""

from collections import Counter
from pathlib import Path
from statistics import mean

from coursework.grading.assignments import known_assignments
from coursework.grading.plain import fenced, markdown
from coursework.grading.results import Result, in_order


def write_report(results: list[Result], out: Path) -> None:
    """report.md in `out`."""
    results = sorted(results, key=in_order)
    graded = [r for r in results if r.marks]
    parts = [f"# Class report\n\n{len(results)} submissions, {len(results) - len(graded)} of them not graded\n"]
    parts += to_look_at(results)
    for assignment in sorted({r.assignment for r in graded}):
        parts += about(assignment, [r for r in graded if r.assignment == assignment])
    (out / "report.md").write_text("\n".join(parts) + "\n", encoding="utf-8", errors="backslashreplace")


def to_look_at(results: list[Result]) -> list[str]:
    """The lines about what somebody has to look at; none if there is nothing."""
    trouble = [(r, m) for r in results for m in r.marks if m.trouble]
    stopped = [(r, [m for m in r.marks if m.status in ("time limit", "died")]) for r in results]
    sections = {
        "Not graded": [f"- {who(r)}: {markdown(r.status)}" for r in results if r.status != "graded"],
        "Could not be judged: please report these": [
            f"- {who(r)}, {m.number} {m.exercise}:\n\n{fenced(m.trouble)}\n" for r, m in trouble
        ],
        "Stopped: too slow, or the process ended": [
            f"- {who(r)}: {', '.join(f'{m.number} {m.status}' for m in marks)}" for r, marks in stopped if marks
        ],
        "Worth a look: these cells use things that an answer has no need of, and no mark depends on it": [
            f"- {who(r)}: {markdown(', '.join(r.look))}" for r in results if r.look
        ],
    }
    told = [line for head, rows in sections.items() if rows for line in (f"### {head}\n", *rows, "")]
    return ["## To look at\n", *told] if told else []


def who(result: Result) -> str:
    return f"{markdown(result.student)}, {markdown(result.assignment) or 'no assignment'}"


def about(assignment: str, results: list[Result]) -> list[str]:
    """The lines about one assignment."""
    points = [r.points for r in results]
    head = f"{len(results)} graded, mean {mean(points):.1f} of {results[0].max:g} points, "
    lines = [f"## {assignment}\n", head + f"from {min(points):g} to {max(points):g}\n"]
    lines += ["| exercise | mean | of | right | not answered |", "|---|---:|---:|---:|---:|"]
    for exercise in [mark.exercise for mark in results[0].marks]:
        marks = [mark for result in results for mark in result.marks if mark.exercise == exercise]
        status = Counter(m.status for m in marks)
        average = mean(m.points for m in marks)
        title = f"{marks[0].number} {marks[0].title}"
        lines.append(f"| {title} | {average:.2f} | {marks[0].max:g} | {status['right']} | {status['not answered']} |")
    lines += ["", "### What to teach again\n", *what_to_teach(assignment, results)]
    repaired = [r for r in results if r.repairs]
    if repaired:
        lines.append(f"\n### Put right before grading\n\n{len(repaired)} notebooks:\n")
        lines += [f"- {markdown(r.student)}: {markdown(told)}" for r in repaired for told in r.repairs]
    return [*lines, ""]


def what_to_teach(assignment: str, results: list[Result]) -> list[str]:
    """Recognised mistakes, and steps that fail without one, the most frequent first."""
    known = known_assignments()[assignment].exercises
    seen: Counter[str] = Counter()
    for mark in (m for r in results for m in r.marks if m.status not in ("right", "not answered")):
        if mark.mistake:
            seen[f"{mark.number}: {known[mark.exercise].mistakes[mark.mistake].looks}"] += 1
        elif mark.failed:
            seen[f"{mark.number}: no known mistake; the first step that fails is “{mark.failed}”"] += 1
    return [f"- {count} × {what}" for what, count in seen.most_common()] or ["- nothing: no wrong answers"]
