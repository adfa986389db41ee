"""Your own BERT from notebooks: all right, one piece missing, one wrong, and folders that hold nothing."""

import json
import shutil
from pathlib import Path

import pytest
import torch

from coursework import capstone as module
from coursework import checks
from coursework.capstone import PIECES, CapstoneError, capstone, collect, definitions

SOLUTIONS = Path(__file__).parents[2] / "solutions"


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A student's folder with everything solved."""
    for lesson in {lesson for lesson, _, _ in PIECES}:
        shutil.copytree(SOLUTIONS / lesson, tmp_path / lesson)
    return tmp_path


def change(notebook: Path, cell_id: str, source: str) -> None:
    content = json.loads(notebook.read_text(encoding="utf-8"))
    (cell,) = [cell for cell in content["cells"] if cell["id"] == cell_id]
    cell["source"] = source
    notebook.write_text(json.dumps(content), encoding="utf-8")


def test_all_solved_is_one_model_with_the_packages_numbers(work, minilm, capsys):
    assert capstone(work)
    said = capsys.readouterr().out
    assert said.count("✓ yours") == len(PIECES)
    assert "Every line of this BERT is yours." in said
    assert "✗" not in said
    assert said.count("off by at most") == 10
    assert "door" in said  # he opened the [MASK]


def test_what_is_missing_or_wrong_is_named_and_stood_in_for(work, minilm, capsys):
    change(work / "01_attention" / "01_attention.ipynb", "split_heads-answer", "# later\n")
    relu = "def feed_forward(x, weights):\n    x = F.relu(F.linear(x, weights['up.weight'], weights['up.bias']))\n"
    relu += "    return F.linear(x, weights['down.weight'], weights['down.bias'])\n"
    change(work / "06_model" / "06_model.ipynb", "feed_forward-answer", relu)
    change(work / "02_embeddings" / "02_embeddings.ipynb", "layer_norm-answer",
           "def layer_norm(x, weight, bias, eps=1e-12):\n    raise NotImplementedError()\n")  # fmt: skip
    (work / "05_nsp" / "05_nsp.ipynb").unlink()
    assert capstone(work)  # the stand-ins make the numbers right
    said = capsys.readouterr().out
    assert "missing in 01_attention.ipynb" in said
    assert "fails its check: like ReLU instead of GELU" in said
    assert "not written yet" in said
    assert "there is no 05_nsp.ipynb" in said
    assert f"{len(PIECES) - 4} of its {len(PIECES)} pieces are yours" in said


def test_a_cell_with_a_typing_mistake_is_told_and_the_rest_counts(work, monkeypatch):
    monkeypatch.setattr(module, "PIECES", [piece for piece in PIECES if piece[1] in ("pooler", "Encoder")])
    change(work / "06_model" / "06_model.ipynb", "pooler-answer", "def pooler(hidden, weights:\n    return 1\n")
    pieces = {piece.exercise.name: piece for piece in collect(work)}
    assert not pieces["pooler"].yours
    assert "line 1" in pieces["pooler"].word
    assert pieces["Encoder"].yours


def test_only_definitions_are_executed(tmp_path):
    lines = ["import math", "SIZE = 3", "answer = print('run')", "print('run')", "for _ in range(9): SIZE = 4",
             "def area(r): return math.pi * r * SIZE"]  # fmt: skip
    broken = "import no_such_module\ndef later(): return 2\n"
    cells = [
        {"cell_type": "code", "id": "a", "source": "\n".join(lines)},
        {"cell_type": "markdown", "source": "x"},
        {"cell_type": "code", "id": "b", "source": broken},
    ]
    path = tmp_path / "01_attention.ipynb"
    path.write_text(json.dumps({"cells": cells}), encoding="utf-8")
    names, troubles = definitions(path)
    assert names["area"](1) == pytest.approx(9.42, abs=0.01)
    assert "answer" not in names
    assert names["later"]() == 2
    assert len(troubles) == 1
    assert "no_such_module" in troubles[0]


def test_a_wrong_number_is_seen(minilm, capsys, monkeypatch):
    stand_ins = [module._stand_in(checks.find(lesson, name), work, "") for lesson, name, work in PIECES]
    monkeypatch.setattr(module, "collect", lambda folder: stand_ins)
    monkeypatch.setattr(module.YourBert, "pooled", lambda self, states: torch.zeros(len(states), states.shape[2]))
    assert not capstone()
    said = capsys.readouterr().out
    assert "✗ pooled, by pooler" in said
    assert "Every line" not in said


def test_a_folder_without_notebooks_and_a_broken_one(tmp_path):
    with pytest.raises(CapstoneError, match="name the folder"):
        collect(tmp_path)
    (tmp_path / "01_attention.ipynb").write_text("grade(globals()) {", encoding="utf-8")
    with pytest.raises(CapstoneError, match="open it and save it again"):
        collect(tmp_path)
