"""What is read from a student's source: torch's insides in an answer, and what an instructor may want to see."""

import pytest

from coursework.checks import exercises
from coursework.grading.suspicious import insides, names_used, worth_a_look


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import torch\ny = torch._C._nn.gelu(x)", ["torch._C"]),
        ("from torch._refs import layer_norm", ["torch._refs"]),
        ("import torch.jit as j", ["torch.jit"]),
        ("with torch._C.DisableTorchFunction(): pass", [".DisableTorchFunction", "torch._C"]),
        ("f = getattr(torch, 'soft' + 'max')", ["getattr"]),
        ("y = torch.softmax(x, -1)\nmodel.eval()\nx.gc = 1", []),
        ("%matplotlib inline\nimport gc", ["gc"]),
        ("def (:", []),
    ],
)
def test_insides_of_torch_are_seen(source, found):
    assert insides(source) == found


def test_no_right_alternative_uses_insides():
    import inspect
    import textwrap

    for unit in ("attention", "embeddings"):
        for exercise in exercises(unit):
            for variant in exercise.alternatives.values():
                assert insides(textwrap.dedent(inspect.getsource(variant.function))) == [], variant.name


def test_worth_a_look_is_over_all_cells():
    cells = ["import os\nos._exit(1)", "sys._getframe().f_back.f_locals", "x = 1"]
    assert worth_a_look(cells) == [".f_back", ".f_locals", "os._exit", "sys._getframe"]
    assert "x" in names_used(cells[2])
