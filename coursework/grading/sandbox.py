"""The walls around a student's process: bubblewrap, a system-call filter and resource limits, on Linux.

Inside there are Python's libraries, read-only, and three empty folders in memory, each of a fixed size; nothing else
can be written. No network, no home, no course, no other submission, no environment of the grader's: answers cannot
be imported because they are not there. One process, which can start threads and no second process, so that one
address-space limit bounds the memory; when it ends everything of it is gone. It needs no rights: it works for an
ordinary user and for root.
"""

import os
import platform
import shutil
import struct
import sys
import tempfile
import uuid
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from jupyter_client.manager import KernelManager
from jupyter_client.provisioning.local_provisioner import LocalProvisioner

from coursework.checks.engine import HOLDS_ANSWERS

MEMORY = 4 << 30  # bytes of address space; torch's libraries take less than one gigabyte of it
DISK = 64 << 20  # bytes of each of the three folders in memory
FILE = 16 << 20  # bytes of one file
OPEN_FILES = 256
CPU_SECONDS = 900  # of all threads together

HOME = "/student"  # inside the walls
ROOT = Path(__file__).resolve().parents[2]


class NoSandbox(Exception):
    """There is no bubblewrap here, or it does not work; the message says what to do."""


def require_bubblewrap() -> str:
    """bwrap's path; raises NoSandbox where students' code cannot be walled in."""
    found = shutil.which("bwrap")
    if sys.platform != "linux" or found is None or shutil.which("prlimit") is None:
        raise NoSandbox(
            "no bubblewrap here, so students' code would run with your rights: install it (Debian and Ubuntu: "
            "sudo apt-get install bubblewrap), or say --trusted if you trust every submission"
        )
    if trouble := forbidden(found):
        raise NoSandbox(f"{trouble}; or say --trusted if you trust every submission")
    return found


@cache
def forbidden(program: str) -> str:
    """Why this bubblewrap may not make a sandbox, in the doctor's words, or nothing. Tried once a process."""
    from coursework import doctor

    return "; ".join(f"{found.says}: {found.do}" for found in doctor._sandbox() if found.level != "ok")


def has_bubblewrap() -> bool:
    """Whether students' code can be walled in here."""
    try:
        return bool(require_bubblewrap())
    except NoSandbox:
        return False


class SandboxedKernel(KernelManager):
    """jupyter's kernel manager, with the kernel behind the walls."""

    def __init__(self, **settings: Any):
        super().__init__(**settings)
        self.provisioner = SandboxProvisioner(kernel_id=uuid.uuid4().hex, kernel_spec=self.kernel_spec, parent=self)


class SandboxProvisioner(LocalProvisioner):
    """Starts the kernel's command in bubblewrap. Interrupts go through the kernel's control channel: a signal would
    reach bwrap and not the kernel. SIGKILL to bwrap ends everything inside."""

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> Any:
        rules = seccomp_rules()
        sockets = Path(self.parent.connection_file).parent
        environment = kwargs["env"]
        with tempfile.TemporaryFile() as file:
            file.write(rules)
            file.seek(0)
            walls = bubblewrap(sockets, environment, file.fileno())
            kwargs |= {"env": {"PATH": os.environ.get("PATH", os.defpath)}, "pass_fds": (file.fileno(),)}
            return await super().launch_kernel([*limits(), *walls, *cmd], **kwargs)


def limits() -> list[str]:
    """prlimit's command line; the hard limits, so that nothing inside can raise them."""
    each = {"as": MEMORY, "fsize": FILE, "nofile": OPEN_FILES, "cpu": CPU_SECONDS, "core": 0, "msgqueue": 0}
    return [shutil.which("prlimit") or "prlimit", *(f"--{name}={value}:{value}" for name, value in each.items())]


def bubblewrap(sockets: Path, environment: dict[str, str], rules: int) -> list[str]:
    """bwrap's command line. sockets: the one folder shared with the grader; rules: descriptor of the filter."""
    walls = [require_bubblewrap(), "--unshare-all", "--unshare-user", "--die-with-parent", "--new-session"]
    walls += ["--as-pid-1", "--cap-drop", "ALL", "--clearenv", "--hostname", "student", "--seccomp", str(rules)]
    seen = [Path(p) for p in ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64") if os.path.exists(p)]
    for path in seen:
        walls += (
            ["--symlink", os.readlink(path), str(path)] if path.is_symlink() else ["--ro-bind", str(path), str(path)]
        )
    for path in ("/etc/ld.so.cache", "/etc/alternatives", "/etc/localtime", "/sys/devices/system/cpu"):
        walls += ["--ro-bind-try", path, path]
    for size, path in ((None, "/proc"), (None, "/dev"), (DISK, "/dev/shm"), (DISK, "/tmp"), (DISK, HOME)):
        if size is None:
            walls += ["--proc" if path == "/proc" else "--dev", path]
        else:
            walls += ["--size", str(size), "--tmpfs", path]
    walls += ["--remount-ro", "/proc"]  # else root's files in /proc/sys could be written by root, without any rights
    walls += hide(ROOT, seen)
    for prefix in dict.fromkeys([sys.base_prefix, sys.prefix]):
        if not any(Path(prefix).is_relative_to(path) for path in seen):
            walls += ["--ro-bind", prefix, prefix]
            seen.append(Path(prefix))
    for package in HOLDS_ANSWERS:
        spec = find_spec(package)
        for place in (spec.submodule_search_locations or []) if spec else []:
            walls += hide(Path(place), seen)
    walls += ["--bind", str(sockets), str(sockets)]  # kernel.py takes the right to write there before any cell runs
    hidden = [path for at, path in enumerate(walls) if walls[at - 1] == "--tmpfs" and walls[at - 2] != str(DISK)]
    for path in ("/dev", *hidden, "/"):  # in memory too, and without a size
        walls += ["--remount-ro", path]
    own = {"HOME": HOME, "USER": "student", "IPYTHONDIR": f"{HOME}/.ipython", "PATH": "/usr/bin:/bin"}
    for name, value in (environment | own).items():
        walls += ["--setenv", name, value]
    return [*walls, "--chdir", HOME, "--"]


def hide(path: Path, seen: list[Path]) -> list[str]:
    """An empty folder over `path`, if it would otherwise be in sight."""
    return ["--tmpfs", str(path)] if any(path.is_relative_to(outer) for outer in seen) else []


# ---------------------------------------------------------------- the filter of system calls

# By machine: AUDIT_ARCH of linux/audit.h; clone; calls that are refused (linux/arch syscall tables).
# They start processes, make memory that no limit counts, move to another core, or are ways into the kernel. setxattr
# and chmod could give back the right to write where kernel.py took it; chmod does nothing and says that it worked,
# because Python's shutil.copy, and with it IPython's start, stops at a refusal.
X86_64 = {
    "fork": 57, "vfork": 58, "ptrace": 101, "shmget": 29, "semget": 64, "msgget": 68, "mq_open": 240,
    "memfd_create": 319, "memfd_secret": 447, "sched_setaffinity": 203, "unshare": 272, "setns": 308, "mount": 165,
    "umount2": 166, "pivot_root": 155, "chroot": 161, "bpf": 321, "perf_event_open": 298, "userfaultfd": 323,
    "add_key": 248, "request_key": 249, "keyctl": 250, "io_uring_setup": 425, "io_uring_enter": 426,
    "io_uring_register": 427, "process_vm_readv": 310, "process_vm_writev": 311, "open_by_handle_at": 304,
    "init_module": 175, "finit_module": 313, "personality": 135, "chmod": 90, "fchmod": 91, "fchmodat": 268,
    "fchmodat2": 452, "setxattr": 188, "lsetxattr": 189, "fsetxattr": 190, "setxattrat": 463,
}  # fmt: skip
AARCH64 = {
    "ptrace": 117, "shmget": 194, "semget": 190, "msgget": 186, "mq_open": 180, "memfd_create": 279,
    "memfd_secret": 447, "sched_setaffinity": 122, "unshare": 97, "setns": 268, "mount": 40, "umount2": 39,
    "pivot_root": 41, "chroot": 51, "bpf": 280, "perf_event_open": 241, "userfaultfd": 282, "add_key": 217,
    "request_key": 218, "keyctl": 219, "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427,
    "process_vm_readv": 270, "process_vm_writev": 271, "open_by_handle_at": 265, "init_module": 105,
    "finit_module": 273, "personality": 92, "fchmod": 52, "fchmodat": 53, "fchmodat2": 452, "setxattr": 5,
    "lsetxattr": 6, "fsetxattr": 7, "setxattrat": 463,
}  # fmt: skip
MACHINES = {"x86_64": (0xC000003E, 56, X86_64), "aarch64": (0xC00000B7, 220, AARCH64)}

CLONE3, CLONE_THREAD, X32 = 435, 0x00010000, 0x40000000
LOAD, EQUAL, AT_LEAST, ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06  # classic BPF, linux/bpf_common.h
ALLOW, KILL, IGNORE = 0x7FFF0000, 0x80000000, 0x00050000
REFUSE, UNKNOWN = 0x00050000 | 1, 0x00050000 | 38  # EPERM, ENOSYS


def seccomp_rules() -> bytes:
    """The filter as the kernel reads it: struct sock_filter {code, jump if true, jump if false, k}, each 8 bytes.

    Raises NoSandbox on a machine whose system calls are not listed here.
    """
    if platform.machine() not in MACHINES:
        raise NoSandbox(f"no system-call filter for {platform.machine()}; grade on x86_64 or aarch64, or say --trusted")
    machine, clone, refused = MACHINES[platform.machine()]
    steps = [(LOAD, 0, 0, 4), (EQUAL, 1, 0, machine), (RETURN, 0, 0, KILL), (LOAD, 0, 0, 0)]
    steps += [(AT_LEAST, 0, 1, X32), (RETURN, 0, 0, KILL)]  # no second table of calls on x86
    steps += [(EQUAL, 0, 1, CLONE3), (RETURN, 0, 0, UNKNOWN)]  # the C library then uses clone, which can be looked at
    for name, number in refused.items():
        steps += [(EQUAL, 0, 1, number), (RETURN, 0, 0, IGNORE if "chmod" in name else REFUSE)]
    steps += [(EQUAL, 0, 3, clone), (LOAD, 0, 0, 16), (ANY_BIT, 1, 0, CLONE_THREAD), (RETURN, 0, 0, REFUSE)]
    return b"".join(struct.pack("HBBI", *step) for step in [*steps, (RETURN, 0, 0, ALLOW)])
