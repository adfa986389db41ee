"""The walls, from inside: what a student's process may see, write, start and use up."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest
from jupyter_client.manager import KernelManager

from coursework.grading import sandbox
from coursework.grading.assignments import names_for_students
from coursework.grading.kernel import StudentKernel
from coursework.grading.sandbox import NoSandbox, SandboxedKernel, require_bubblewrap

pytestmark = pytest.mark.sandbox

SEEN = """
import os
print(sorted(os.environ))
seen = [name for name in os.listdir(".") if name != ".ipython"]
print(os.path.exists({repository!r} + "/coursework"), os.path.exists({home!r} + "/.bashrc"), seen)
print([p for p in os.listdir("/proc") if p.isdigit()])
"""

ENTERS = {  # ours, and what ipykernel sets for itself
    "HOME", "USER", "PATH", "LANG", "PWD", "NBGRADER_EXECUTION", "MPLBACKEND", "OMP_NUM_THREADS", "HF_HUB_OFFLINE",
    "PYTHONDONTWRITEBYTECODE", "IPYTHONDIR", "TERM", "CLICOLOR", "CLICOLOR_FORCE", "FORCE_COLOR", "PAGER", "GIT_PAGER",
    "PYDEVD_USE_FRAME_EVAL", "LD_LIBRARY_PATH", "LC_CTYPE",
}  # fmt: skip

REFUSED = {
    "open('/usr/written', 'w')": "OSError",
    "open('/written', 'w')": "OSError",
    "open('/proc/sys/kernel/core_pattern', 'w')": "OSError",
    "open('/tmp/large', 'wb').write(bytes(20 << 20))": "OSError",
    "[open(f'/dev/shm/{i}', 'wb').write(bytes(8 << 20)) for i in range(20)]": "OSError",
    "open('/dev/large', 'wb')": "OSError",
    "open(SHARED + '/file', 'w')": "PermissionError",
    "open(SHARED + '/c.json', 'a')": "PermissionError",
    "os.mkdir(SHARED + '/folder')": "PermissionError",
    "os.symlink('/usr', SHARED + '/link')": "PermissionError",
    "os.open(SHARED, os.O_TMPFILE | os.O_WRONLY)": "PermissionError",
    "os.remove(SHARED + '/s-1')": "PermissionError",
    "os.chmod(SHARED, 0o700); open(SHARED + '/file', 'w')": "PermissionError",
    "f = os.open(SHARED, 0); os.fchmod(f, 0o700); open(SHARED + '/file', 'w')": "PermissionError",
    "os.chmod(SHARED + '/c.json', 0o700); open(SHARED + '/c.json', 'a')": "PermissionError",
    "os.setxattr(SHARED, 'user.x', bytes(1000))": "PermissionError",
    "[open('/dev/null') for _ in range(500)]": "OSError",
    "import os; os.fork()": "PermissionError",
    "import subprocess; subprocess.run(['ls'])": "PermissionError",
    "import multiprocessing as m; p = m.Process(target=print); p.start()": "PermissionError",
    "import os; os.memfd_create('x')": "PermissionError",
    "import os; os.sched_setaffinity(0, {0})": "PermissionError",
    "import resource as r; r.setrlimit(r.RLIMIT_AS, (1 << 40, 1 << 40))": "ValueError",
    "import socket; socket.create_connection(('127.0.0.1', 22), 2)": "ConnectionRefusedError",
    "import socket; socket.create_connection(('192.0.2.1', 80), 2)": "OSError",
    "bytearray(5 << 30)": "MemoryError",
    "import torch; torch.ones(1 << 31)": "RuntimeError",
    "import sys; sys.meta_path.pop(0); import bert_minimal": "ModuleNotFoundError",
    "import transformers.models": "ModuleNotFoundError",
    "import tokenizers.models": "ModuleNotFoundError",
}


@pytest.fixture(scope="module")
def kernel(bwrap, tmp_path_factory):
    with StudentKernel(tmp_path_factory.mktemp("student"), names_for_students(), SandboxedKernel) as made:
        made.run(f"import os; SHARED = {str(made.sockets)!r}", 30)
        yield made


@pytest.mark.parametrize("source", REFUSED)
def test_what_the_walls_refuse(kernel, source):
    outputs, in_time = kernel.run(source, 30)
    assert in_time
    assert outputs[-1].get("ename") == REFUSED[source], outputs


def test_every_folder_that_can_be_written_has_a_size(kernel):
    """Of the mounted ones: (place, is it writable, its size) as the process sees them."""
    (output,), _ = kernel.run(
        "for line in open('/proc/self/mounts'):\n    _, place, kind, options, *_ = line.split()\n"
        "    if os.path.isdir(place) and not os.statvfs(place).f_flag & os.ST_RDONLY:\n"
        "        print(place, kind, 'size=65536k' in options)",
        30,
    )
    writable = [line.split() for line in output["text"].splitlines()]
    assert sorted(where[:2] for where in writable if where[2] == "True") == [
        ["/dev/shm", "tmpfs"],
        ["/student", "tmpfs"],
        ["/tmp", "tmpfs"],
    ]
    assert [where for where, _, sized in writable if sized == "False" and where != "/dev/pts"] == [str(kernel.sockets)]


def test_nothing_of_the_grader_is_in_sight(kernel):
    home = str(Path.home())
    (output,), _ = kernel.run(SEEN.format(repository=str(sandbox.ROOT), home=home), 30)
    environment, places, processes = output["text"].splitlines()
    assert places == "False False []"
    assert processes == "['1']"
    assert "PATH" in ENTERS & set(ast.literal_eval(environment))
    assert set(ast.literal_eval(environment)) <= ENTERS


def test_memory_comes_back_and_torch_and_threads_work(kernel):
    kernel.run("kept = []\nwhile True:\n    kept.append(bytearray(64 << 20))", 60)
    (output,), _ = kernel.run(
        "del kept\nimport threading, torch\nt = threading.Thread(target=print, args=('from a thread',))\n"
        "t.start(); t.join()\nprint(torch.softmax(torch.zeros(2), 0).tolist())",
        30,
    )
    assert output["text"] == "from a thread\n[0.5, 0.5]\n"


def test_an_endless_cell_is_interrupted_and_the_names_stay(kernel):
    _, in_time = kernel.run("kept = 7\nwhile True:\n    pass", 1)
    assert not in_time
    (output,), _ = kernel.run("print(kept)", 30)
    assert output["text"] == "7\n"


def test_nothing_is_left_when_the_kernel_is_gone(bwrap, tmp_path):
    with StudentKernel(tmp_path, names_for_students(), SandboxedKernel) as made:
        pid = made.manager.provisioner.process.pid
        sockets = made.sockets
        made.run("import threading, time\nthreading.Thread(target=time.sleep, args=(600,)).start()", 30)
    assert not sockets.exists()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_without_bubblewrap_it_refuses_and_says_what_to_do(monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(NoSandbox, match=r"install it .* or say --trusted"):
        require_bubblewrap()


def test_a_bubblewrap_that_may_not_make_a_sandbox_stops_the_class_with_what_to_do(tmp_path, monkeypatch):
    for name, code in (("bwrap", 1), ("prlimit", 0)):
        (tmp_path / name).write_text(f"#!/bin/sh\necho no namespaces >&2\nexit {code}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "platform", "linux")
    with pytest.raises(NoSandbox, match=r"no namespaces.*: allow user namespaces .* or say --trusted"):
        require_bubblewrap()


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="we are an ordinary user already")
def test_it_works_for_an_ordinary_user(bwrap, tmp_path):
    """The walls without root's rights: the command line that starts a kernel, run as nobody."""
    with open(os.devnull, "rb") as nothing:
        walls = sandbox.bubblewrap(tmp_path, {}, nothing.fileno())
    at = walls.index("--seccomp")
    walls[at : at + 2] = []
    at = walls.index("--bind")
    walls[at : at + 3] = []
    python = os.path.realpath(sys.executable)
    probe = [*walls, "/usr/bin/env", "true"]
    for prefix in (sys.base_prefix, sys.prefix):  # nobody may not enter root's home: the system's own are enough here
        if str(prefix) in probe:
            at = probe.index(str(prefix)) - 1
            probe[at : at + 3] = []
    probe = [part for part in probe if part != python]
    done = subprocess.run(probe, user=65534, group=65534, extra_groups=[], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_trusted_class_needs_no_walls(tmp_path):
    with StudentKernel(tmp_path, names_for_students(), KernelManager) as made:
        (output,), _ = made.run("print(1)", 30)
    assert output["text"] == "1\n"
