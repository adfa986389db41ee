"""What stands for the course's packages in a student's kernel at grading. Its source runs there before any cell.

Notebooks import `coursework` for their checks; at grading these do nothing, because judging happens outside. The
packages that hold answers are refused with a sentence. In the sandbox they do not exist at all: this file is for
clear words, the walls are in sandbox.py.
"""

import importlib.abc
import importlib.machinery
import sys

REFUSED = ("bert_minimal", "transformers", "tokenizers")


class Check:
    """Stands for one exercise: checks nothing, earns nothing."""

    def __call__(self, *args, **kwargs):
        return None

    def grade(self, namespace):
        return 0.0


class StandIn(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the stand-in for `coursework` and refuses everything that holds answers."""

    def __init__(self, units):
        self.known = {"coursework", "coursework.checks", "coursework.notebook"}
        self.known |= {f"coursework.checks.{unit}" for unit in units}
        self.exercises = units

    def find_spec(self, name, path=None, target=None):
        if name in self.known:
            return importlib.machinery.ModuleSpec(name, self, is_package=name in ("coursework", "coursework.checks"))
        if name.partition(".")[0] in (*REFUSED, "coursework"):
            raise ImportError(f"{name} is not there at grading: the exercises need torch and Python alone")
        return None

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        if module.__name__ == "coursework.notebook":
            module.start = start
        unit = module.__name__.rpartition(".")[2]
        for exercise in self.exercises.get(unit, ()):
            setattr(module, exercise, Check())


def start(lesson):
    """The device, as coursework.notebook.start returns it; says and shows nothing."""
    import torch

    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def install(units):
    """units: {"attention": ["attention_scores", …], …}, the names that notebooks may import and call."""
    for name in list(sys.modules):
        if name.partition(".")[0] in (*REFUSED, "coursework"):
            del sys.modules[name]
    sys.meta_path.insert(0, StandIn(units))


def warm_up():
    """Import torch and use it once, so that neither is counted as a student's time: the first gradient imports half
    of torch, and a time limit that strikes during an import leaves a broken module behind."""
    import torch

    x = torch.ones(2, 2, requires_grad=True)
    torch.autograd.grad([torch.softmax(x @ x, -1)], [x], [torch.ones(2, 2)], allow_unused=True)
