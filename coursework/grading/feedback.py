"""One student's feedback as one HTML page: marks, messages, repairs, and their own cells as they ran.

Harmless by construction: every text of the student's is escaped, nothing of theirs is rendered, no script, no
address outside. It holds messages of the checks, never an expected value.
"""

from html import escape
from typing import Any

from coursework.grading.plain import without_control
from coursework.grading.results import Result
from coursework.grading.session import graded_id

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem;
       color: #1a1a1a; background: #fff; }
table { border-collapse: collapse; } td, th { padding: .25rem .75rem; border-bottom: 1px solid #bbb; text-align: left; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; background: #f4f4f4; padding: .6rem; margin: .3rem 0; }
pre.said { background: #fff; border-left: 4px solid #0072b2; } img { max-width: 100%; }
"""


def feedback_page(result: Result, notebook: Any | None) -> str:
    """HTML of one submission; `notebook` as graded, or None when it could not be read."""
    title = f"{result.assignment}: {result.student}"
    parts = [f"<h1>{escape(title)}</h1>", f"<p><b>{result.points:g} of {result.max:g} points</b></p>"]
    if result.status != "graded":
        parts.append(f"<p>{escape(result.status)}</p>")
    if result.marks:
        parts.append(_table(result))
    if result.repairs:
        listed = "".join(f"<li>{escape(told)}</li>" for told in result.repairs)
        parts.append(f"<h2>Put right before grading</h2><ul>{listed}</ul>")
    parts += [f'<h2 id="{m.exercise}">{m.number} {escape(m.title)}</h2>{_said(m.message)}' for m in result.marks]
    if notebook is not None:
        parts.append("<h2>Your cells, as they ran</h2>")
        parts += [_cell(cell) for cell in notebook.cells if cell.cell_type == "code" and not graded_id(cell)]
    body = "\n".join(parts)
    policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f"<style>{STYLE}</style></head>\n<body>\n{body}\n</body></html>\n"
    )


def _table(result: Result) -> str:
    rows = [
        f'<tr><td><a href="#{m.exercise}">{m.number} {escape(m.title)}</a></td><td>{escape(m.status)}</td>'
        f'<td class="number">{m.points:g}</td><td class="number">{m.max:g}</td></tr>'
        for m in result.marks
    ]
    head = '<tr><th>exercise</th><th>verdict</th><th class="number">points</th><th class="number">of</th></tr>'
    return f"<table>{head}{''.join(rows)}</table>"


def _said(message: str) -> str:
    return f'<pre class="said">{escape(message)}</pre>'


def _cell(cell: Any) -> str:
    shown = [f"<pre>{escape(without_control(cell.source))}</pre>"]
    for output in cell.outputs:
        data = output.get("data", {})
        text = output.get("text") or data.get("text/plain") or "\n".join(output.get("traceback", []))
        if "image/png" in data:
            shown.append(
                f'<img alt="picture drawn by this cell" src="data:image/png;base64,{escape(data["image/png"])}">'
            )
        elif text:
            shown.append(f'<pre class="said">{escape(text)}</pre>')
    return "".join(shown)
