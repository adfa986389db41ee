"""A notebook as Colab writes it to Drive and hands it out for download."""

import json
import random
import string
from typing import Any


def as_colab_saves(notebook: Any, seed: int = 0) -> str:
    """JSON of nbformat 4.0: ids moved into Colab's own metadata and new there, nbgrader's marks gone, sources as lists
    of lines, a table of contents and an accelerator in the head, the running user in each cell."""
    draw = random.Random(seed)
    cells = []
    for cell in notebook.cells:
        metadata: dict[str, Any] = {"id": "".join(draw.choices(string.ascii_letters + string.digits + "-_", k=12))}
        saved: dict[str, Any] = {"cell_type": cell.cell_type, "source": cell.source.splitlines(keepends=True)}
        if cell.cell_type == "code":
            if cell.outputs:
                metadata["colab"] = {"base_uri": "https://localhost:8080/"}
                metadata["outputId"] = f"{draw.getrandbits(32):08x}-6e1f-4c5d-f0aa-{draw.getrandbits(48):012x}"
            user = {"displayName": "A Student", "userId": f"{draw.getrandbits(64):020d}"}
            times = {"status": "ok", "timestamp": 1795862400000, "user_tz": -60, "elapsed": draw.randrange(9000)}
            metadata["executionInfo"] = {"user": user} | times
            saved |= {"execution_count": cell.execution_count, "outputs": [as_lines(out) for out in cell.outputs]}
        cells.append(saved | {"metadata": metadata})
    head = {
        "accelerator": "GPU",
        "colab": {"provenance": [], "gpuType": "T4", "toc_visible": True},
        "kernelspec": {"display_name": "Python 3", "name": "python3"},
        "language_info": {"name": "python"},
    }
    return json.dumps({"nbformat": 4, "nbformat_minor": 0, "metadata": head, "cells": cells}, indent=2)


def as_lines(output: Any) -> dict:
    """An output with its texts as lists of lines."""
    saved = json.loads(json.dumps(output))
    if isinstance(saved.get("text"), str):
        saved["text"] = saved["text"].splitlines(keepends=True)
    if isinstance(data := saved.get("data"), dict):
        saved["data"] = {kind: v.splitlines(keepends=True) if isinstance(v, str) else v for kind, v in data.items()}
    return saved
