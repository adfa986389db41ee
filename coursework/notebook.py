"""What the first cell of every notebook does, and that cell's text.

`coursework/build.py` writes the text into all notebooks, with the repository's address from pyproject.toml.
"""

import json
import os
import random
from importlib.util import find_spec
from pathlib import Path

import torch

SEED = 2018  # the year of BERT
USED = ("matplotlib", "transformers", "tokenizers", "bertviz", "pooch", "tqdm")  # beside torch, by the lessons

SETUP = """\
# Set-up: run this first. On Colab it installs the course; elsewhere it only gets things ready.
import os, subprocess, sys
from importlib.metadata import version
from importlib.util import find_spec
if "google.colab" in sys.modules and not find_spec("coursework") and "NBGRADER_EXECUTION" not in os.environ:
    with open("keep-torch.txt", "w") as pin:  # Colab's torch fits its GPU: pip must leave it alone
        pin.write("torch==" + version("torch"))
    course = "bert-from-scratch[colab] @ git+{repository}@{tag}"
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", "-c", "keep-torch.txt", course], check=True)

from coursework.notebook import start
device = start("{unit}")"""

BADGE = "[![Open In Colab](https://colab.research.google.com/assets/colab-badge.svg)]({address})"


def setup_cell(unit: str, repository: str, tag: str) -> str:
    """The source of the set-up cell of unit "01_attention"."""
    return SETUP.format(unit=unit, repository=repository, tag=tag)


def badge(path: str, repository: str, tag: str) -> str:
    """The Markdown line that opens the notebook at `path` (from the repository's root) on Colab."""
    repository = repository.removeprefix("https://github.com/")
    return BADGE.format(address=f"https://colab.research.google.com/github/{repository}/blob/{tag}/{path}")


def start(unit: str) -> torch.device:
    """Get a notebook ready: seeds, device, the style of pictures. Prints one line; needs no internet.

    Args:
        unit: "01_attention".
    Returns:
        cuda if there is a GPU, else cpu.
    """
    seed_everything()
    # Progress bars and hints of these libraries go to stderr, which clutters lessons and costs points in grading.
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    missing = [name for name in USED if find_spec(name) is None]
    if "matplotlib" not in missing:
        from bert_minimal.visualize import style

        style()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    print(_ready(unit, device, missing))
    return device


def seed_everything(seed: int = SEED) -> None:
    """Seeds python, numpy and torch, so that a rerun gives the same numbers."""
    import numpy as np

    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def _ready(unit: str, device: torch.device, missing: list[str]) -> str:
    if missing:
        return f"Missing: {', '.join(missing)}. Install with: pip install {' '.join(missing)}"
    if "COURSEWORK_BUILD" in os.environ:  # stored outputs name no machine: a rerun elsewhere changes nothing
        return "Ready."
    if device.type == "cuda":
        gigabytes = torch.cuda.get_device_properties(device).total_memory / 2**30
        where = f"{torch.cuda.get_device_name(device)}, {gigabytes:.0f} GiB"
    else:
        where = f"CPU, {torch.get_num_threads()} threads"
    return f"Ready: {where}, torch {torch.__version__}.{_measured(unit)}"


def _measured(unit: str) -> str:
    """What `make lessons` measured, where the repository is at hand (not on Colab)."""
    table = Path(__file__).resolve().parents[1] / "notebooks" / "measured.json"
    figures = json.loads(table.read_text()).get(unit) if table.exists() else None
    if figures is None:
        return ""
    return (
        f" The whole lesson runs in {figures['seconds']} s and {figures['peak_mib'] / 1024:.1f} GiB"
        f" on {figures['cores']} CPU cores."
    )
