"""The set-up cell: its text on Colab and elsewhere, and what start() does."""

import json
import random
import subprocess
import sys
import types

import numpy as np
import pytest
import torch

from coursework import notebook

AT = ("https://github.com/someone/course", "v1.2.3")


@pytest.fixture
def run_setup(monkeypatch, tmp_path):
    """Runs the set-up cell; returns the pip commands that it would have run."""
    monkeypatch.chdir(tmp_path)
    commands = []
    monkeypatch.setattr(subprocess, "run", lambda command, check: commands.append(command))

    def run(*, colab: bool, installed: bool, grading: bool = False):
        if colab:
            monkeypatch.setitem(sys.modules, "google.colab", types.ModuleType("google.colab"))
        else:
            monkeypatch.delitem(sys.modules, "google.colab", raising=False)
        if grading:
            monkeypatch.setenv("NBGRADER_EXECUTION", "autograde")
        else:
            monkeypatch.delenv("NBGRADER_EXECUTION", raising=False)
        import importlib.util

        found = importlib.util.find_spec
        monkeypatch.setattr(
            importlib.util, "find_spec", lambda name, *a: found(name, *a) if installed or name != "coursework" else None
        )
        names: dict = {}
        exec(notebook.setup_cell("01_attention", *AT), names)
        return commands, names

    return run


def test_on_colab_the_pinned_tag_is_installed_and_torch_stays(run_setup, tmp_path):
    ((_, *command),), names = run_setup(colab=True, installed=False)
    assert command[:2] == ["-m", "pip"]
    assert command[-1] == "bert-from-scratch[colab] @ git+https://github.com/someone/course@v1.2.3"
    pin = (tmp_path / command[command.index("-c") + 1]).read_text()
    assert pin == f"torch=={torch.__version__}"
    assert isinstance(names["device"], torch.device)


@pytest.mark.parametrize(
    "where",
    [
        {"colab": True, "installed": True},
        {"colab": False, "installed": True},
        {"colab": False, "installed": False},
        {"colab": True, "installed": False, "grading": True},
    ],
)
def test_elsewhere_nothing_is_installed(run_setup, tmp_path, where):
    commands, _ = run_setup(**where)
    assert commands == []
    assert list(tmp_path.iterdir()) == []


def test_start_seeds_everything_and_says_one_line(capsys):
    def numbers():
        device = notebook.start("01_attention")
        return device, random.random(), np.random.rand(), torch.rand(3).tolist()

    assert numbers() == numbers()
    out, err = capsys.readouterr()
    assert err == ""
    assert len(out.strip().split("\n")) == 2  # one a start
    assert torch.__version__ in out


def test_start_says_the_measured_figures_of_a_lesson(monkeypatch, tmp_path, capsys):
    (tmp_path / "notebooks").mkdir()
    figures = {"01_attention": {"seconds": 41, "peak_mib": 1536, "cores": 2}}
    (tmp_path / "notebooks/measured.json").write_text(json.dumps(figures))
    monkeypatch.setattr(notebook, "__file__", str(tmp_path / "coursework" / "notebook.py"))
    notebook.start("01_attention")
    assert "41 s and 1.5 GiB on 2 CPU cores" in capsys.readouterr().out
    notebook.start("02_embeddings")
    assert "GiB on" not in capsys.readouterr().out


def test_start_says_what_is_missing_and_stored_lessons_name_no_machine(monkeypatch, capsys):
    monkeypatch.setattr(notebook, "find_spec", lambda name: None if name == "bertviz" else object())
    notebook.start("01_attention")
    assert "pip install bertviz" in capsys.readouterr().out
    monkeypatch.undo()
    monkeypatch.setenv("COURSEWORK_BUILD", "1")
    notebook.start("01_attention")
    assert capsys.readouterr().out == "Ready.\n"
