"""The page of the API has every module, and what autodoc passes over in silence (no docstring) is noticed."""

import inspect
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "bert_minimal"
WRITE_THE_SMALL_SETS = {"grammar", "names", "passages"}  # run once, for the files in train/small
MODULES = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for path in sorted(PACKAGE.rglob("*.py"))
    if not path.stem.startswith("__") and path.stem not in WRITE_THE_SMALL_SETS
]


def test_every_module_has_its_place():
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    assert sorted(name for name in MODULES if f".. automodule:: {name}\n" not in page) == []


@pytest.mark.parametrize("name", MODULES)
def test_every_public_function_and_class_says_what_it_is(name):
    module = import_module(name)
    own = [item for item in vars(module).values() if getattr(item, "__module__", "") == module.__name__]
    public = [item for item in own if inspect.isroutine(item) or inspect.isclass(item)]
    silent = [item.__name__ for item in public if not item.__name__.startswith("_") and says_nothing(item)]
    assert silent == []


def says_nothing(item) -> bool:
    """A dataclass and a NamedTuple without a docstring get one made of their fields: Name(a, b)."""
    return not item.__doc__ or item.__doc__.startswith(f"{item.__name__}(")
