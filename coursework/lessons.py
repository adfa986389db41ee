"""Executes the lessons whose code has changed, and stores their outputs.

A lesson records the hash of the code it ran, so that a test can say which lessons are stale. Measured seconds and
memory go to notebooks/measured.json and not into the notebooks: a rerun on another machine changes nothing else.
"""

import ast
import hashlib
import json
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from coursework.build import ROOT, BuildError, address, normal, normalise, place, places, read, write

PACKAGES = ("bert_minimal", "coursework")
LIMIT = 600  # seconds for one cell
# Weights that ship with the project, and the word in a lesson's cells that says it opens them.
WEIGHTS = {'"course"': "bert_minimal/pretrained", "twins": "coursework/twins"}
# KiB that a kernel took at most. On Linux ru_maxrss begins with what the parent had at the fork: not asked there.
PEAK = """
import pathlib, re, resource, sys
status = pathlib.Path("/proc/self/status")
peak = re.search(r"VmHWM:\\s+(\\d+) kB", status.read_text())[1] if status.exists() else (
    resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // (1024 if sys.platform == "darwin" else 1))  # macOS: bytes
print(peak)
"""


def code_hash(notebook: Any, root: Path = ROOT) -> str:
    """Hash of what a lesson runs: its cells, the files of this project that they import, the weights they open.

    Blank lines and whole-line comments don't count.
    """
    cells = [cell.source for cell in notebook.cells if cell.cell_type == "code" and cell.id != "setup"]
    sources = {f"cell {i}": source for i, source in enumerate(cells)}
    files: set[Path] = set()
    for source in ["from coursework.notebook import start", *cells]:
        _follow(source, "", root, files)
    sources |= {path.relative_to(root).as_posix(): path.read_text(encoding="utf-8") for path in files}
    digest = hashlib.sha256()
    for name, source in sorted(sources.items()):
        lines = [line.rstrip() for line in source.split("\n") if line.strip() and not line.lstrip().startswith("#")]
        digest.update("\n".join([name, *lines, ""]).encode())
    for word, folder in WEIGHTS.items():
        if any(word in source for source in cells):
            for path in sorted((root / folder).rglob("*.safetensors")):
                digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _follow(source: str, package: str, root: Path, files: set[Path]) -> None:
    """Add the project files that `source`, a module in `package`, imports, and what those import."""
    plain = re.sub(r"^(\s*)[%!].*", r"\1pass", source, flags=re.MULTILINE)  # IPython's magics
    for module, name in _imports(plain, package):
        for path in _defined_in(module, name, root):
            if path not in files:
                files.add(path)
                home = path.parent.relative_to(root)
                _follow(path.read_text(encoding="utf-8"), ".".join(home.parts), root, files)


def _imports(source: str, package: str) -> Iterator[tuple[str, str]]:
    """(module, name) of every import of this project's packages, also inside functions; name "" for `import m`."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            pairs = [(alias.name, "") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            pairs = [(".".join([*base, *([node.module] if node.module else [])]), alias.name) for alias in node.names]
        else:
            continue
        yield from (pair for pair in pairs if pair[0].partition(".")[0] in PACKAGES)


def _defined_in(module: str, name: str, root: Path) -> list[Path]:
    """The file that holds `name` of `module`: a submodule, or where a package's __init__ has it from."""
    folder = root.joinpath(*module.split("."))
    if folder.with_suffix(".py").exists():
        return [folder.with_suffix(".py")]
    package = folder / "__init__.py"
    if not package.exists():
        return []
    if name and ((folder / f"{name}.py").exists() or (folder / name / "__init__.py").exists()):
        return _defined_in(f"{module}.{name}", "", root)
    sources = [m for m, n in _imports(package.read_text(encoding="utf-8"), module) if n == name]
    return _defined_in(sources[0], name, root) if name and sources else [package]


def stale(root: Path = ROOT) -> list[Path]:
    """Lessons whose stored outputs come from other code than they would run now."""
    lessons = [where.path for where in places(root) if where.kind == "notebooks"]
    return [path for path in lessons if _recorded(read(root / path)) != code_hash(read(root / path), root)]


def _recorded(notebook: Any) -> str | None:
    return notebook.metadata.get("coursework", {}).get("code")


def run(root: Path = ROOT, every: bool = False) -> list[Path]:
    """Execute the stale lessons (or every one), store their outputs, and note seconds and memory in measured.json.

    Raises:
        BuildError: a cell fails, writes to stderr, or prints what differs from run to run.
    """
    paths = [where.path for where in places(root) if where.kind == "notebooks"]
    normalise(paths, root)
    todo = paths if every else stale(root)
    repository, tag = address(root)
    table = root / "notebooks" / "measured.json"
    for path in todo:
        print(f"running {path}", flush=True)
        nb, figures = execute(root / path)
        nb.metadata["coursework"] = {"code": code_hash(nb, root)}
        write(normal(nb, place(path), repository, tag), root / path)
        measured = json.loads(table.read_text()) if table.exists() else {}
        measured[path.stem] = figures
        table.write_text(json.dumps(measured, indent=1, sort_keys=True) + "\n")
        print(f"        {figures['seconds']} s, {figures['peak_mib']} MiB", flush=True)
    return todo


def execute(path: Path) -> tuple[Any, dict[str, int]]:
    """Run a lesson on the CPU in a fresh kernel, in its own folder; the notebook with outputs, and what it took.

    Returns:
        (notebook, {"seconds", "peak_mib", "cores"}), start of the kernel included.
    Raises:
        BuildError: as `lessons`.
    """
    import nbformat
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError

    nb = read(path)
    nb.cells.append(nbformat.v4.new_code_cell(PEAK))
    fixed = {"COURSEWORK_BUILD": "1", "CUDA_VISIBLE_DEVICES": "", "PYTHONHASHSEED": "0", "MPLBACKEND": ""}
    environment = {key: value for key, value in (os.environ | fixed).items() if value or key == "CUDA_VISIBLE_DEVICES"}
    client = NotebookClient(
        nb, timeout=LIMIT, kernel_name="python3", resources={"metadata": {"path": str(path.parent)}},
        coalesce_streams=True, extra_arguments=["--HistoryManager.enabled=False"],
    )  # fmt: skip
    begin = time.perf_counter()
    try:
        client.execute(env=environment)
    except CellExecutionError as error:
        raise BuildError(f"{path.name}: {error}") from error
    seconds = time.perf_counter() - begin
    kib = int(nb.cells.pop().outputs[0].text)
    _settled(nb, path)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return nb, {"seconds": round(seconds), "peak_mib": kib // 1024, "cores": cores}


def _settled(nb: Any, path: Path) -> None:
    """Outputs must be the same on every run and free of warnings."""
    for cell in nb.cells:
        for output in cell.get("outputs", []):
            if output.get("name") == "stderr":
                raise BuildError(f"{path.name}, cell {cell.id}: writes to stderr: {output.text[:300]}")
            text = output.get("text", "") or output.get("data", {}).get("text/plain", "")
            found = re.search(r" at 0x[0-9a-f]{6,}", text)
            if found and "text/html" not in output.get("data", {}):
                raise BuildError(f"{path.name}, cell {cell.id}: prints an address that changes: {found[0]}")
