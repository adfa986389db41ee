"""Says in plain words what this machine has, what is missing or odd, and what to do about it."""

import json
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch

OLDEST_PYTHON = (3, 11)
OLDEST_TORCH = (2, 6)
FREE_GIB = 5  # weights, texts and a class's notebooks
MEMORY_GIB = 4  # what a lesson may take
SERVER = ("nbgrader.server_extensions.formgrader", "nbgrader.server_extensions.validate_assignment")


@dataclass(frozen=True)
class Finding:
    """One thing looked at. level: "ok", "note" (works, but know this) or "wrong" (something will not work)."""

    level: str
    subject: str
    says: str
    do: str = ""

    def __str__(self) -> str:
        mark = {"ok": "✓", "note": "·", "wrong": "✗"}[self.level]
        lines = [f"{mark} {self.subject:<11} {self.says}"]
        return "\n".join(lines + ([f"{'':14}→ {self.do}"] if self.do else []))


def examine() -> list[Finding]:
    """All findings, in the order in which they matter."""
    looks = (_python, _torch, _packages, _gpu, _memory, _disk, _sandbox, _jupyter, _weights, _course)
    return [finding for look in looks for finding in look()]


def main() -> int:
    """Print the findings; 1 if something will not work."""
    findings = examine()
    for finding in findings:
        print(finding)
    wrong = sum(finding.level == "wrong" for finding in findings)
    print("\nEverything that the course needs is here." if not wrong else f"\n{wrong} to put right: see the arrows.")
    return 1 if wrong else 0


def _python() -> Iterator[Finding]:
    here = f"{platform.python_version()} at {sys.executable}"
    if sys.version_info < OLDEST_PYTHON:
        yield Finding("wrong", "Python", f"{here} is too old", "install Python 3.11 or newer, then: make setup")
    elif sys.prefix == sys.base_prefix and "CONDA_PREFIX" not in os.environ:
        yield Finding("note", "Python", f"{here}, outside of any environment", "make setup, then use .venv/bin/python")
    else:
        yield Finding("ok", "Python", here)


def _torch() -> Iterator[Finding]:
    found = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])
    if found < OLDEST_TORCH:
        yield Finding("wrong", "torch", f"{torch.__version__} is too old", "pip install --upgrade 'torch>=2.6'")
    elif found < (2, 10):
        says = f"{torch.__version__}: no kernel for streams without padding, training on a GPU is slower"
        yield Finding("note", "torch", says, "pip install --upgrade torch, if speed matters")
    else:
        yield Finding("ok", "torch", f"{torch.__version__}, {torch.get_num_threads()} threads")


def _packages() -> Iterator[Finding]:
    """What pyproject.toml's extra `course` names and is not installed, or is too old."""
    from importlib.metadata import requires

    from packaging.requirements import Requirement

    try:
        wanted = [Requirement(line) for line in requires("bert-from-scratch") or []]
    except PackageNotFoundError:
        yield Finding("wrong", "packages", "the course itself is not installed", 'pip install -e ".[course]"')
        return
    extras = ({"extra": ""}, {"extra": "colab"}, {"extra": "course"})
    needed = [r for r in wanted if r.name != "bert-from-scratch" and any(_applies(r, extra) for extra in extras)]
    off = [text for requirement in needed if (text := _unmet(requirement))]
    if off:
        yield Finding("wrong", "packages", "; ".join(off), 'pip install -e ".[course]"')
    else:
        yield Finding("ok", "packages", f"all {len(needed)} that the course names")


def _applies(requirement, extra: dict[str, str]) -> bool:
    return requirement.marker is None or requirement.marker.evaluate(extra)


def _unmet(requirement) -> str:
    try:
        have = version(requirement.name)
    except PackageNotFoundError:
        return f"{requirement.name} is missing"
    return "" if requirement.specifier.contains(have, prereleases=True) else f"{requirement} wanted, {have} is here"


def _gpu() -> Iterator[Finding]:
    if not torch.cuda.is_available():
        if shutil.which("nvidia-smi"):
            says = "nvidia-smi is here, but this torch cannot use the GPU"
            yield Finding("note", "GPU", says, "install a CUDA build of torch: pytorch.org/get-started says which")
        elif torch.backends.mps.is_available():
            yield Finding("ok", "GPU", "Apple's; the course runs on the CPU, so that numbers agree")
        else:
            yield Finding("ok", "GPU", "none; every lesson is made for a CPU")
        return
    for i in range(torch.cuda.device_count()):
        card = torch.cuda.get_device_properties(i)
        major, minor = card.major, card.minor
        precision = "bf16 (use it: no loss scaling)" if major >= 8 else "fp16 with loss scaling; bf16 would be emulated"
        flash = "flash attention" if major >= 8 else "no flash attention (needs compute capability 8.0)"
        says = f"{card.name}, {card.total_memory / 2**30:.0f} GiB, sm{major}{minor}: {precision}; {flash}"
        level = "ok" if major >= 7 else "note"
        yield Finding(level, f"GPU {i}", says, "" if major >= 7 else "too old for today's kernels: use the CPU")


def _memory() -> Iterator[Finding]:
    import psutil

    free = psutil.virtual_memory().available / 2**30
    says = f"{free:.1f} GiB free of {psutil.virtual_memory().total / 2**30:.1f}"
    if free < MEMORY_GIB:
        yield Finding("note", "memory", says, f"lessons take up to {MEMORY_GIB} GiB: close other notebooks' kernels")
    else:
        yield Finding("ok", "memory", says)


def _disk() -> Iterator[Finding]:
    from bert_minimal.train.data import cache

    folder = next(p for p in (cache(), *cache().parents) if p.exists())
    free = shutil.disk_usage(folder).free / 2**30
    says = f"{free:.0f} GiB free where weights are kept ({cache()})"
    if not os.access(folder, os.W_OK):
        yield Finding("wrong", "disk", f"{folder} cannot be written to", f"make {cache()} a folder of yours")
    elif free < FREE_GIB:
        yield Finding("note", "disk", says, f"weights and texts take up to {FREE_GIB} GiB")
    else:
        yield Finding("ok", "disk", says)


def _sandbox() -> Iterator[Finding]:
    program = shutil.which("bwrap")
    if not sys.platform.startswith("linux"):
        says = "bubblewrap exists on Linux only; students don't need it"
        yield Finding("note", "sandbox", says, "grade submissions on a Linux machine, or in a container")
    elif program is None:
        says = "no bubblewrap; students don't need it"
        yield Finding("note", "sandbox", says, "to grade: apt-get install bubblewrap (dnf, pacman likewise)")
    else:
        trial = [program, "--unshare-all", "--die-with-parent", "--ro-bind", "/", "/", "--proc", "/proc", "true"]
        done = subprocess.run(trial, capture_output=True, text=True, timeout=20)
        if done.returncode:
            says = f"bubblewrap is here but may not make a sandbox: {done.stderr.strip()[:100]}"
            do = "allow user namespaces (Ubuntu: sysctl kernel.apparmor_restrict_unprivileged_userns=0)"
            yield Finding("note", "sandbox", says, do)
        else:
            yield Finding("ok", "sandbox", "bubblewrap works: submissions can be graded")


def _jupyter() -> Iterator[Finding]:
    """Whether JupyterLab would show nbgrader's toolbar and Validate, and run the notebooks with this Python."""
    install = 'pip install -e ".[course]", in the environment that starts JupyterLab'
    share = Path(sys.prefix) / "share" / "jupyter"
    if not (share / "labextensions" / "@jupyter" / "nbgrader" / "package.json").exists():
        yield Finding("wrong", "JupyterLab", "nbgrader's extension for JupyterLab is not installed here", install)
    off = [name for name in SERVER if not _server_extensions().get(name)]
    if off:
        do = f"jupyter server extension enable --sys-prefix {off[0]}"
        yield Finding("wrong", "JupyterLab", f"server extension {off[0]} is off: no Validate, no Formgrader", do)
    kernel = share / "kernels" / "python3" / "kernel.json"
    program = json.loads(kernel.read_text())["argv"][0] if kernel.exists() else ""
    if not kernel.exists():
        yield Finding("wrong", "JupyterLab", "no kernel python3 in this environment", install)
    elif Path(program).is_absolute() and Path(program).parent != Path(sysconfig.get_path("scripts")):
        do = "python -m ipykernel install --sys-prefix"
        yield Finding("wrong", "JupyterLab", f"its kernel python3 runs another Python: {program}", do)
    elif not off:
        yield Finding("ok", "JupyterLab", "nbgrader's extensions are on, the kernel is this Python")


def _server_extensions() -> dict[str, bool]:
    """What Jupyter's configuration says, nearest folder first."""
    from jupyter_core.paths import jupyter_config_path

    enabled: dict[str, bool] = {}
    for folder in reversed(jupyter_config_path()):
        for path in sorted(Path(folder, "jupyter_server_config.d").glob("*.json")):
            enabled |= json.loads(path.read_text()).get("ServerApp", {}).get("jpserver_extensions", {})
    return enabled


def _weights() -> Iterator[Finding]:
    from bert_minimal.train.data import RESOURCES, cache

    have = [name for name in RESOURCES if (cache() / name).is_dir() and any((cache() / name).iterdir())]
    if have:
        yield Finding("ok", "weights", f"already here: {', '.join(have)}")
    else:
        says = "none here yet; lessons fetch what they need (MiniLM: 90 MB)"
        yield Finding("note", "weights", says, "on a journey? run the lessons once while online")


def _course() -> Iterator[Finding]:
    """Whether a student's folder shadows the package, the classic reason for odd errors."""
    import bert_minimal

    home = Path(bert_minimal.__file__).resolve().parents[1]
    installed = Path(__file__).resolve().parents[1]
    if home != installed:
        says = f"bert_minimal comes from {home}, coursework from {installed}"
        yield Finding("wrong", "course", says, "start Python in another folder, or install the course once only")
    else:
        yield Finding("ok", "course", str(installed))
