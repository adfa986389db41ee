"""What is read from a student's source: torch's insides in an answer, and what an instructor may want to see."""

import pytest

from coursework.checks import UNITS, exercises
from coursework.grading.collect import parse
from coursework.grading.one import ROOT, locked_sources
from coursework.grading.suspicious import insides, names_used, sources_of, worth_a_look


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import torch\ny = torch._C._nn.gelu(x)", ["._C", "torch._C"]),
        ("from torch._refs import layer_norm", ["torch._refs"]),
        ("import torch.jit as j", ["torch.jit"]),
        ("with torch._C.DisableTorchFunction(): pass", [".DisableTorchFunction", "._C", "torch._C"]),
        ("import torch.nn.functional as F\nF._VF.softmax(x)", ["._VF"]),
        ("layer = getattr(self, f'layer_{i}')", []),
        ("layer = getattr(self, name)\nf = getattr(torch, name)", ["getattr"]),
        ("look = getattr\nlayer = getattr(self, name)", ["getattr"]),
        ("f = getattr(torch, 'soft' + 'max')", ["getattr"]),
        ("y = torch.softmax(x, -1)\nmodel.eval()\nx.gc = 1", []),
        ("%matplotlib inline\nimport gc\ngc.get_objects()", ["gc"]),
        ("here = %pwd\ny = torch._C._nn.gelu(x)", ["._C", "torch._C"]),
        ("  y = torch._C._nn.gelu(x)", ["._C", "torch._C"]),
        ("from concurrent.futures import ThreadPoolExecutor as P", ["ThreadPoolExecutor", "concurrent"]),
        ("import gc as g\ng.get_objects()", ["gc"]),
        ("def (:", []),
    ],
)
def test_insides_of_torch_are_seen(source, found):
    assert insides(source) == found


@pytest.mark.parametrize(
    "source",
    [
        "def f(x):\n    vars = x.var(-1)\n    return vars",
        "import gc, inspect, pickle\nimport torch",
        "import functools, operator\ny = functools.reduce(operator.matmul, [a, b])",
        "def f(eval, locals): return eval + locals",
    ],
)
def test_a_word_that_is_only_written_is_no_way_around(source):
    """A variable of that name, an import that nothing uses: right answers lost all their points for it."""
    assert insides(source) == []


def test_a_scratch_cell_with_the_name_of_a_parameter_is_no_part_of_the_answer():
    cells = ["query = torch.randn(2)\nprint(vars(query))", "def f(query, key):\n    out = query @ key\n    return out"]
    assert sources_of("f", cells) == cells[1:]


def test_no_right_alternative_uses_insides():
    import inspect
    import textwrap

    for unit in UNITS:
        for exercise in exercises(unit):
            for variant in exercise.alternatives.values():
                assert insides(textwrap.dedent(inspect.getsource(variant.function))) == [], variant.name


def test_worth_a_look_is_over_all_cells():
    cells = ["import os\nos._exit(1)", "sys._getframe().f_back.f_locals", "x = 1"]
    assert worth_a_look(cells) == [".f_back", ".f_locals", "os._exit", "sys._getframe"]
    assert "x" in names_used(cells[2])


@pytest.mark.parametrize(
    "cells",
    [
        ["def helper(x): return x", "other = 1", "def f(x):\n    return helper(x)"],
        ["import torch\ntorch.relu = 1", "other = 1", "f = torch.relu"],
        ["setattr(torch, 'relu', 1)", "other = 1", "class f:\n    y = torch.relu"],
        ["table['a'] = 1", "other = 1", "def f(x): return table['a']"],
        ["def g(x): return x", "other = 1", "def h(x): return g(x)", "f, z = h, 1"],
    ],
)
def test_an_answer_rests_on_the_cells_that_define_what_it_uses(cells):
    assert sources_of("f", cells) == [cell for cell in cells if cell != "other = 1"]


def test_the_cells_that_we_hand_out_are_nobodys_answer():
    for path in (ROOT / "exercises").glob("*/*.ipynb"):
        notebook = parse(path.read_bytes(), path.name)
        ours = locked_sources(notebook)
        theirs = [cell for cell in notebook.cells if cell.cell_type == "code" and cell.source not in ours]
        assert any("def start" in source or "import start" in source for source in ours)
        assert all(insides(cell.source) == [] for cell in theirs), path.name
