"""What in a student's cells deserves a look, read from their source on this side, where nothing can hide it by running.

Marks don't depend on it, with one exception: an exercise that excludes an operator is not answered with torch's
insides. The runner refuses such an operator in the student's own process, so there the refusal could be switched off.
"""

import ast

# Parts of torch that reach an operator past its public name. A student's answer has no other use for them.
INSIDES = {
    "torch._C", "torch._refs", "torch._decomp", "torch._prims", "torch._VF", "torch.ops", "torch.jit",
    "torch.overrides", "torch.library", "torch.utils._python_dispatch", "DisableTorchFunction", ".DisableTorchFunction",
    "__torch_function__", "__torch_dispatch__", "sys._getframe", "gc", "ctypes", "inspect", "getattr", "eval", "exec",
    "__import__", "importlib",
}  # fmt: skip

WORTH_A_LOOK = {
    "torch._C", "torch.overrides", "DisableTorchFunction", "sys._getframe", "sys.settrace", "sys.setprofile",
    "sys.meta_path", "sys.modules", "gc", "ctypes", "os._exit", "os.kill", "os.fork", "subprocess", "socket", "signal",
    "multiprocessing", ".__subclasses__", ".__globals__", ".f_back", ".f_locals", ".ast_transformers", ".kernel",
    "builtins", "coursework.runner", "bert_minimal", "transformers",
}  # fmt: skip


def names_used(source: str) -> set[str]:
    """Every name in a cell, every dotted path's beginnings, every attribute with its dot: {"torch", "torch._C",
    "torch._C._nn", "._C", "._nn", …}."""
    lines = [line for line in source.splitlines() if not line.lstrip().startswith(("%", "!"))]
    try:
        tree = ast.parse("\n".join(lines))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set()
    found: set[str] = set()
    for node in ast.walk(tree):
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


def insides(source: str) -> list[str]:
    """Ways past torch's public names that a cell mentions."""
    return sorted(names_used(source) & INSIDES)


def worth_a_look(sources: list[str]) -> list[str]:
    """What an instructor may want to read, over all cells of a notebook."""
    return sorted(set().union(*map(names_used, sources)) & WORTH_A_LOOK)
