"""What in a student's cells deserves a look, read from their source on this side, where nothing can hide it by running.

Marks don't depend on it, with one exception: an exercise that excludes an operator is not answered with torch's
insides. The runner refuses such an operator in the student's own process, so there the refusal could be switched off.
"""

import ast
import symtable

from IPython.core.inputtransformer2 import TransformerManager

# Parts of torch that reach an operator past its public name, however the module is called, threads (what the runner
# refuses it refuses in its own), and Python's ways to get at a name that is not written down. An answer that has to be
# written with torch's public operators has no other use for them: what counts is their use, not a variable or an
# import of that name.
INSIDES = {
    "torch._C", "._C", "torch._refs", "._refs", "torch._decomp", "._decomp", "torch._prims", "._prims", "torch._VF",
    "._VF", "torch.ops", ".ops", "torch.jit", ".jit", "torch.overrides", ".overrides", "torch.library", ".library",
    "torch.utils._python_dispatch", "._python_dispatch", "DisableTorchFunction", ".DisableTorchFunction",
    "DisableTorchFunctionSubclass", ".DisableTorchFunctionSubclass", "__torch_function__", ".__torch_function__",
    "__torch_dispatch__", ".__torch_dispatch__", "sys._getframe", "sys.modules", "gc", "ctypes", "inspect",
    "attrgetter", ".attrgetter", "methodcaller", ".methodcaller", "threading", "concurrent", "Thread",
    "ThreadPoolExecutor", "getattr", "vars", "globals", "locals", "eval", "exec", "compile", "__builtins__",
    "builtins", ".__dict__", ".__getattribute__", ".__globals__", ".__closure__", "__import__",
    ".import_module", "import_module", ".exec_module", "pickle",
}  # fmt: skip

WORTH_A_LOOK = {
    "torch._C", "torch.overrides", "DisableTorchFunction", "sys._getframe", "sys.settrace", "sys.setprofile",
    "sys.meta_path", "sys.modules", "gc", "ctypes", "os._exit", "os.kill", "os.fork", "subprocess", "socket", "signal",
    "multiprocessing", ".__subclasses__", ".__globals__", ".f_back", ".f_locals", ".ast_transformers", ".kernel",
    "builtins", "coursework.runner", "bert_minimal", "transformers", "tokenizers",
}  # fmt: skip


def python_of(source: str) -> str:
    """What IPython makes of a cell: magics become calls, an indented cell moves left. Empty for what it can't run."""
    try:
        text = TransformerManager().transform_cell(source)
        ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    return text


def parsed(source: str) -> ast.Module:
    return ast.parse(python_of(source))


def looked_up(source: str) -> set[str]:
    """Names that a cell, or a function in it, takes from outside: no parameters, no local variables."""
    tables, found = [symtable.symtable(python_of(source), "cell", "exec")], set()
    while tables:
        table = tables.pop()
        tables += table.get_children()
        whole = table.get_type() == "module"
        found |= {s.get_name() for s in table.get_symbols() if s.is_referenced() and (whole or s.is_global())}
    return found


def names_used(source: str) -> set[str]:
    """Every name in a cell, every dotted path's beginnings, every attribute with its dot: {"torch", "torch._C",
    "torch._C._nn", "._C", "._nn", …}."""
    found: set[str] = set()
    for node in ast.walk(parsed(source)):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            home = getattr(node, "module", None)
            for alias in node.names:
                found |= beginnings(f"{home}.{alias.name}" if home else alias.name) | {alias.name}
        elif isinstance(node, ast.Attribute):
            found |= beginnings(dotted(node)) | {f".{node.attr}"}
        elif isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.add(node.name)
    return found


def dotted(node: ast.expr) -> str:
    """torch.ops.aten for its syntax tree; calls in between are left out."""
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    if isinstance(node, ast.Call):
        return dotted(node.func)
    return node.id if isinstance(node, ast.Name) else ""


def beginnings(path: str) -> set[str]:
    parts = path.split(".")
    return {".".join(parts[:n]) for n in range(1, len(parts) + 1)}


def statements(source: str) -> list[str]:
    """A cell, cut: a scratch line is no part of the answer that it stands beside."""
    return [ast.unparse(node) for node in parsed(source).body]


def sources_of(name: str, sources: list[str]) -> list[str]:
    """The sources that an answer called `name` rests on: those that define it, or a name that these use, and so on.

    To set an attribute of something (`torch.softmax = mine`), by `setattr` as well, counts as defining it.
    """
    defines = [names_defined(source) for source in sources]
    uses = [looked_up(source) for source in sources]
    wanted, found = {name}, [False] * len(sources)
    while any(new := [not f and bool(d & wanted) for f, d in zip(found, defines, strict=True)]):
        found = [f or n for f, n in zip(found, new, strict=True)]
        wanted = wanted.union(*(u for u, n in zip(uses, new, strict=True) if n))
    return [source for source, f in zip(sources, found, strict=True) if f]


def names_defined(source: str) -> set[str]:
    """Names that a cell gives a value, the owners of attributes and items that it sets included."""
    found: set[str] = set()
    for node in ast.walk(parsed(source)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            found |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
        elif isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) and isinstance(node.ctx, (ast.Store, ast.Del)):
            found.add(owner(node))
        elif isinstance(node, ast.Call) and dotted(node.func).rpartition(".")[2] in ("setattr", "__setattr__", "patch"):
            found |= {owner(argument) for argument in node.args[:1]}
    return found


def owner(node: ast.expr) -> str:
    """torch for torch.nn.functional["gelu"]."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def taken(source: str) -> set[str]:
    """Names that a cell looks up and that are no variables of its own, or imports from somewhere or under new names."""
    table = symtable.symtable(python_of(source), "cell", "exec")
    found = looked_up(source) - {s.get_name() for s in table.get_symbols() if s.is_assigned() and not s.is_imported()}
    for node in ast.walk(parsed(source)):
        if isinstance(node, ast.ImportFrom):
            found |= {str(node.module).partition(".")[0], *(alias.name for alias in node.names)}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.asname}
    return found


def insides(source: str) -> list[str]:
    """Ways past torch's public names that a cell takes. A module may look up its own attributes by name."""
    really = taken(source)
    found = {name for name in names_used(source) & INSIDES if "." in name or name in really}
    nodes = list(ast.walk(parsed(source)))
    named = sum(isinstance(node, ast.Name) and node.id == "getattr" for node in nodes)
    own = [
        n
        for n in nodes
        if isinstance(n, ast.Call) and dotted(n.func) == "getattr" and n.args and owner(n.args[0]) == "self"
    ]
    return sorted(found - {"getattr"} if named == len(own) else found)


def worth_a_look(sources: list[str]) -> list[str]:
    """What an instructor may want to read, over all cells of a notebook."""
    return sorted(set().union(*map(names_used, sources)) & WORTH_A_LOOK)
