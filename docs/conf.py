"""The site: the lessons as they are stored, with their outputs. `make site` builds it, without the internet."""

import shutil
import tomllib
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parents[1]
settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
repository = settings["project"]["urls"]["Repository"]

project = "BERT from scratch"
author = settings["project"]["authors"][0]["name"]
copyright = "text and pictures CC BY 4.0, code MIT"

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.mathjax"]
root_doc = "docs/index"
include_patterns = ["docs/*.md", "notebooks/*.ipynb"]
exclude_patterns = ["**/.ipynb_checkpoints"]
nb_execution_mode = "off"  # `make lessons` is what executes them
myst_enable_extensions = ["dollarmath", "amsmath"]
myst_heading_anchors = 3
suppress_warnings = ["myst.xref_missing", "mystnb.unknown_mime_type"]  # lessons also link to files of the repository

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the signature has them; shapes stand in the text
add_module_names = False

# Formulas without the internet: MathJax comes out of a package and is copied beside the pages.
MATHJAX = "_static/mathjax"
mathjax_path = "mathjax/MathJax.js?config=TeX-AMS-MML_HTMLorMML-full"
mathjax2_config = {
    "messageStyle": "none",
    "tex2jax": {"inlineMath": [["\\(", "\\)"]]},
    "HTML-CSS": {"availableFonts": [], "imageFont": None, "preferredFont": None, "webFont": "STIX-Web"},  # as shipped
}
myst_update_mathjax = False  # it writes settings for MathJax 3


FRONT_DOOR = """<!doctype html>
<meta charset="utf-8"><title>BERT from scratch</title>
<meta http-equiv="refresh" content="0; url=docs/index.html"><a href="docs/index.html">BERT from scratch</a>
"""


def finish(app, error):
    """Put MathJax where mathjax_path looks for it, and a page at the site's root that leads to ours."""
    if error is None and app.builder.format == "html":
        home = Path(next(iter(find_spec("jupyter_server_mathjax").submodule_search_locations)))
        shutil.copytree(home / "static", Path(app.outdir) / MATHJAX, dirs_exist_ok=True)
        (Path(app.outdir) / "index.html").write_text(FRONT_DOOR, encoding="utf-8")


def setup(app):
    app.connect("build-finished", finish)


html_theme = "furo"
html_title = project
html_theme_options = {"source_repository": repository, "source_branch": "main", "source_directory": ""}
