"""nbgrader's feedback page with nothing outside it: no script, no CDN, formulas as MathML, which browsers draw alone.

nbgrader_config.py names `SelfContained`, so `nbgrader generate_feedback` and the formgrader's button use it. The page
also forbids itself, by its content policy, to run or to load anything.
"""

import re
from html import escape
from typing import Any

from jinja2 import DictLoader, pass_context
from latex2mathml import exceptions as tex
from latex2mathml.converter import convert
from nbconvert.exporters import HTMLExporter
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from traitlets import default

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:"
WITHOUT_MATHJAX = {"mathjax.html.j2": "{%- macro mathjax(url='') -%}{%- endmacro %}"}
UNREADABLE = tuple(kind for kind in vars(tex).values() if isinstance(kind, type) and issubclass(kind, Exception))


class SelfContained(HTMLExporter):
    """nbconvert's HTML exporter under nbgrader's template, for GenerateFeedback.exporter_class."""

    @default("extra_loaders")
    def _before_nbconverts_own(self) -> list[DictLoader]:
        return [DictLoader(WITHOUT_MATHJAX)]

    @pass_context
    def markdown2html(self, context: Any, source: str) -> str:
        """Markdown of ours or of the instructor's (students' is shown as text) -> HTML."""
        return MarkdownWithMath(renderer=Renderer(escape=False, exclude_anchor_links=True)).render(source)

    def from_notebook_node(self, nb: Any, resources: dict | None = None, **more: Any) -> Any:  # (html, resources)
        page, resources = super().from_notebook_node(nb, resources, **more)
        policy = f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        page = re.sub(r"@font-face\s*{[^}]*}", "", page)  # of icons that the page does not show
        return page.replace("<head>", f"<head>\n{policy}", 1), resources


class Renderer(IPythonRenderer):
    """Markdown whose formulas are MathML and whose pictures from elsewhere are their texts."""

    def inline_math(self, body: str) -> str:
        return formula(body, "inline")

    def block_math(self, body: str) -> str:
        return formula(body, "block")

    def latex_environment(self, name: str, body: str) -> str:
        return formula(rf"\begin{{{name}}}{body}\end{{{name}}}", "block")

    def image(self, text: str, url: str, title: str | None = None) -> str:
        return super().image(text, url, title) if url.startswith("data:") else escape(text)


def formula(source: str, display: str) -> str:
    """MathML of a TeX formula; the TeX itself where it is none (in a comment of the instructor's, say)."""
    safe = source.replace("<", r"\lt ").replace(">", r"\gt ")  # the converter lets tags through inside \text
    try:
        return convert(safe, display=display)
    except UNREADABLE:
        return f"<code>{escape(source)}</code>"
