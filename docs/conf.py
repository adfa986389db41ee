"""The site: the lessons as they are stored, with their outputs. `make site` builds it, without the internet."""

import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
repository = settings["project"]["urls"]["Repository"]

project = "BERT from scratch"
author = settings["project"]["authors"][0]["name"]
copyright = "text and pictures CC BY 4.0, code MIT"

extensions = ["myst_nb"]
root_doc = "docs/index"
include_patterns = ["docs/*.md", "notebooks/*.ipynb"]
exclude_patterns = ["**/.ipynb_checkpoints"]
nb_execution_mode = "off"  # `make lessons` is what executes them
myst_enable_extensions = ["dollarmath", "amsmath"]
myst_heading_anchors = 3
suppress_warnings = ["myst.xref_missing", "mystnb.unknown_mime_type"]  # lessons also link to files of the repository

html_theme = "furo"
html_title = project
html_theme_options = {"source_repository": repository, "source_branch": "main", "source_directory": ""}
