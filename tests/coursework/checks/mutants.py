"""Wrong versions of a reference, made automatically: one change to the syntax tree of one line `# step: NAME`."""

import ast
import copy
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass

ROLES = ("query", "key", "value", "output")
COMPARISONS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)
SWAPS = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
         ast.FloorDiv: ast.Mod, ast.Mod: ast.FloorDiv,
         ast.BitOr: ast.BitAnd, ast.BitAnd: ast.BitOr}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    steps: tuple[str, ...]  # the step or steps that the changed line is marked with
    line: str  # as it reads now
    function: Callable


def mutants(reference: Callable) -> list[Mutant]:
    """Every one-place change of the marked lines of `reference`, each text once."""
    source = textwrap.dedent(inspect.getsource(reference))
    source = source[source.index("def ") :]
    steps = {
        number: tuple(found.group(1).strip().split(" or "))
        for number, line in enumerate(source.splitlines(), 1)
        if (found := re.search(r"# step: (.+)$", line))
    }
    tree = ast.parse(source)
    original = ast.unparse(tree)
    made: dict[str, Mutant] = {}
    for index, node in enumerate(ast.walk(tree)):
        marked = steps.get(getattr(node, "lineno", 0))
        if marked is None:
            continue
        for change in changes(node):
            changed = copy.deepcopy(tree)
            target = list(ast.walk(changed))[index]
            _replace(changed, target, change(copy.deepcopy(target)))
            text = ast.unparse(ast.fix_missing_locations(changed))
            if text != original and text not in made:
                new = [b for a, b in zip(original.splitlines(), text.splitlines(), strict=True) if a != b]
                namespace = dict(reference.__globals__)
                exec(compile(changed, "<mutant>", "exec"), namespace)
                made[text] = Mutant(marked, new[0].strip(), namespace[reference.__name__])
    return list(made.values())


def changes(node: ast.AST) -> Iterator[Callable]:
    """What can be done to this node: functions from its copy to what stands in its place."""
    if isinstance(node, ast.BinOp):
        yield lambda n: n.left
        yield lambda n: n.right
        if type(node.op) in SWAPS:
            yield lambda n: ast.BinOp(n.left, SWAPS[type(n.op)](), n.right)
        if isinstance(node.op, (ast.FloorDiv, ast.Mod)):  # whole numbers: off by one
            yield lambda n: ast.BinOp(n, ast.Sub(), ast.Constant(1))
        if not isinstance(node.op, (ast.Add, ast.Mult, ast.BitOr, ast.BitAnd)):
            yield lambda n: ast.BinOp(n.right, n.op, n.left)
    if isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARISONS:
        for op in COMPARISONS:
            yield lambda n, op=op: ast.Compare(n.left, [op()], n.comparators)
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        for by in (1, -1):
            yield lambda n, by=by: ast.Constant(n.value + by)
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield from _changed_strings(node.value)
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in ROLES:
        for other in set(ROLES[:3]) - {node.id}:
            yield lambda n, other=other: ast.Name(other, ast.Load())
    if isinstance(node, ast.Call):
        if len(node.args) > 1:
            yield lambda n: ast.Call(n.func, [n.args[1], n.args[0], *n.args[2:]], n.keywords)
        for i in range(len(node.keywords)):
            yield lambda n, i=i: ast.Call(n.func, n.args, n.keywords[:i] + n.keywords[i + 1 :])
        if isinstance(node.func, ast.Attribute):
            yield lambda n: n.func.value if not isinstance(n.func.value, ast.Name) or n.args == [] else n
            if len(node.args) and not isinstance(node.args[0], ast.Constant):
                yield lambda n: n.args[0]
            if node.func.attr == "sum":
                yield lambda n: ast.Call(ast.Attribute(n.func.value, "mean", ast.Load()), n.args, n.keywords)
                yield lambda n: ast.Call(ast.Attribute(n.func.value, "amax", ast.Load()), n.args, n.keywords)
    if isinstance(node, ast.Attribute) and node.attr in ("T", "mT"):
        yield lambda n: n.value


def _changed_strings(text: str) -> Iterator[Callable]:
    if "->" in text:  # an einsum: trade two letters in one of its operands
        operands = re.split(r"(,|->)", text)
        for k in range(0, len(operands), 2):
            for a, b in (("i", "j"), ("j", "d"), ("b", "h")):
                swapped = operands[k].translate(str.maketrans({a: b, b: a}))
                yield lambda n, k=k, s=swapped, o=operands: ast.Constant("".join([*o[:k], s, *o[k + 1 :]]))
    role, _, kind = text.partition(".")
    if role in ROLES:
        for other in set(ROLES) - {role}:
            yield lambda n, other=other, kind=kind: ast.Constant(f"{other}.{kind}")


def _replace(tree: ast.AST, old: ast.AST, new: ast.AST) -> None:
    for parent in ast.walk(tree):
        for field, value in ast.iter_fields(parent):
            if value is old:
                setattr(parent, field, new)
            elif isinstance(value, list) and any(item is old for item in value):
                setattr(parent, field, [new if item is old else item for item in value])
