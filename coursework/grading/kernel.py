"""One student's kernel: run a cell in it, put calls to it, notice that it is late or dead. It is never believed.

The grader speaks Jupyter's protocol over Unix sockets (tcp where there are none). What a student's process sends is
limited in size, and only plain text and PNG pictures are kept of its outputs.
"""

import ast
import base64
import binascii
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import zmq
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager

from coursework import runner
from coursework.grading import stand_in
from coursework.grading.plain import without_control
from coursework.grading.wire import LARGEST_REPLY

TEXT_KEPT = 10_000  # characters of one cell's output
OUTPUTS_KEPT = 1_000  # of one cell
PICTURES_KEPT = 1_000_000  # bytes of one cell's pictures, base64
GRACE = 2.0  # seconds a cell has to stop after it was interrupted
START = 120.0  # seconds a kernel has to answer for the first time, torch imported


class KernelDied(Exception):
    """The student's process ended, or had to be ended. The message says why, as the end of a sentence."""


class KernelBroken(KernelDied):
    """The process lives and no longer answers: what ran before this request broke what notebooks need."""


class NoKernel(Exception):
    """A fresh kernel did not answer: the grader's trouble, not the student's."""


@dataclass
class Outputs:
    """What one cell showed, cut to size: nbformat outputs of harmless kinds."""

    kept: list[dict] = field(default_factory=list)
    text_left: int = TEXT_KEPT
    pictures_left: int = PICTURES_KEPT

    def add(self, kind: str, content: dict) -> None:
        """Keep an iopub message's text and PNG; anything else a student can send is let go."""
        if len(self.kept) >= OUTPUTS_KEPT:
            return
        if kind == "stream":
            text = self._cut(content.get("text"))
            name = "stderr" if content.get("name") == "stderr" else "stdout"
            if text and self.kept and self.kept[-1].get("name") == name:
                self.kept[-1]["text"] += text
            elif text:
                self.kept.append({"output_type": "stream", "name": name, "text": text})
        elif kind in ("execute_result", "display_data"):
            data = self._harmless(content.get("data"))
            if data:
                self.kept.append({"output_type": "display_data", "metadata": {}, "data": data})
        elif kind == "error":
            lines = content.get("traceback")
            text = "\n".join(line for line in lines if type(line) is str) if type(lines) is list else ""
            self.kept.append({
                "output_type": "error",
                "ename": self._cut(content.get("ename")),
                "evalue": self._cut(content.get("evalue")),
                "traceback": [self._cut(text)],
            })  # fmt: skip

    def _cut(self, text: Any) -> str:
        if type(text) is not str or not self.text_left:
            return ""
        text = without_control(text[: 4 * TEXT_KEPT])
        kept = text[: self.text_left]
        self.text_left -= len(kept)
        return kept if len(kept) == len(text) else kept + "\n[… cut here]\n"

    def _harmless(self, data: Any) -> dict:
        if type(data) is not dict:
            return {}
        kept = {"text/plain": self._cut(data.get("text/plain"))}
        png = data.get("image/png")
        if type(png) is str and len(png) <= self.pictures_left and is_png(png):
            self.pictures_left -= len(png)
            kept["image/png"] = png
        return {key: value for key, value in kept.items() if value}


def is_png(text: str) -> bool:
    """Whether this is base64 of something that starts as a PNG does."""
    try:
        raw = base64.b64decode(re.sub(r"\s", "", text), validate=True)
    except (binascii.Error, ValueError):
        return False
    return raw.startswith(b"\x89PNG\r\n\x1a\n")


class StudentKernel:
    """A kernel with the stand-in installed. Used as a context manager; gone, with its folder, afterwards.

    `manager`: the class that starts it (sandbox.SandboxedKernel, or jupyter's own for trusted classes).
    """

    def __init__(self, folder: Path, units: dict[str, list[str]], manager: type[KernelManager] = KernelManager):
        self.folder, self.units, self.manager_class = folder, units, manager
        self.sockets = Path(tempfile.mkdtemp(prefix="k-"))  # short: a socket's path has at most 107 bytes
        self.said = tempfile.TemporaryFile()  # noqa: SIM115 (what it says before it can speak to us)
        self.manager: KernelManager | None = None
        self.client: BlockingKernelClient | None = None

    def __enter__(self) -> "StudentKernel":
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self.client is not None:
            self.client.stop_channels()
        if self.manager is not None and self.manager.has_kernel:
            self.manager.shutdown_kernel(now=True)
        self.said.close()
        self.sockets.chmod(0o700)
        shutil.rmtree(self.sockets, ignore_errors=True)

    def _start(self) -> None:
        context = zmq.Context()
        context.setsockopt(zmq.MAXMSGSIZE, LARGEST_REPLY + (1 << 20))
        context.setsockopt(zmq.RCVHWM, 200)
        self.manager = self.manager_class(
            kernel_name="python3",
            transport="ipc" if os.name == "posix" else "tcp",
            connection_file=str(self.sockets / "c.json"),
            context=context,
        )
        environment = student_environment() | {"IPYTHONDIR": str(self.sockets / "ipython")}
        if os.name == "posix":
            self.manager.ip = str(self.sockets / "s")
        self.manager.start_kernel(
            cwd=str(self.folder), env=environment, extra_arguments=[QUIET],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self.said,
        )  # fmt: skip
        self.client = self.manager.client()
        self.client.start_channels(hb=False, stdin=False)
        opening = (
            "exec(compile(_source, '<grading>', 'exec'), _space := {'__name__': 'stand_in'})\n"
            "_space['install'](_units)\n_space['warm_up']()\ndel _source, _space, _units"
        )
        source = Path(stand_in.__file__).read_text()
        try:
            reply = self._execute(f"_source, _units = {source!r}, {self.units!r}\n{opening}", Outputs(), START)
        except KernelDied:
            reply = None
        if reply is None or reply.get("status") != "ok":
            self.said.seek(0)
            raise NoKernel(f"the kernel did not start: {reply or self.said.read().decode(errors='replace')[-2000:]}")
        self._seal()

    def _seal(self) -> None:
        """From now on nothing more can be written to the folder that the process shares with the grader, so that it
        cannot fill the grader's disk, not even with files that have no name. The sandbox lets nobody unseal it."""
        for path in self.sockets.glob("*.json"):
            path.chmod(0o400)
        self.sockets.chmod(0o500)

    # ------------------------------------------------------------ what a grader wants of it

    def run(self, source: str, seconds: float) -> tuple[list[dict], bool]:
        """Run one cell; (its outputs, whether it ended in time). Raises KernelDied."""
        outputs = Outputs()
        reply = self._execute(source, outputs, seconds)
        payload = reply.get("payload") if reply is not None else None
        if type(payload) is list and any(type(p) is dict and p.get("source") == "ask_exit" for p in payload):
            raise KernelDied("quits Python")
        if reply is not None:
            return outputs.kept, True
        if self._idle:
            raise KernelBroken(BROKEN)
        self._interrupt()
        if self._reply(self._last, outputs, GRACE) is None:
            raise KernelDied(f"did not finish in {seconds:g} s and could not be interrupted")
        return outputs.kept, False

    def ask(self, request: str, seconds: float) -> str:
        """runner.serve's reply to a request, as unread text. Raises KernelDied, also when it takes too long."""
        source = Path(runner.__file__).read_text()
        made = f"{{'__name__': 'course_runner', '__file__': {ASKED!r}}}"
        built_in = "__import__('builtins')"
        expression = (
            f"(lambda space: ({built_in}.exec({built_in}.compile({source!r}, {ASKED!r}, 'exec'), space),"
            f" space['serve']({request!r}, {built_in}.globals()))[1])({made})"
        )
        reply = self._execute("", Outputs(), seconds, expression)
        if reply is None and self._idle:
            raise KernelBroken(BROKEN)
        if reply is None:
            raise KernelDied(f"did not finish in {seconds:g} s and could not be interrupted")
        answer = reply.get("user_expressions", {}).get("answer", {})
        text = answer.get("data", {}).get("text/plain", "") if answer.get("status") == "ok" else ""
        try:
            value = ast.literal_eval(text) if len(text) <= 2 * LARGEST_REPLY else None
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            value = None
        return value if type(value) is str else ""

    # ------------------------------------------------------------ the protocol

    def _execute(self, code: str, outputs: Outputs, seconds: float, expression: str = "") -> dict | None:
        """Send one execute_request and wait for its reply; None when it takes longer than `seconds`."""
        assert self.client is not None
        self._last = self.client.execute(
            code,
            silent=bool(expression),
            store_history=False,
            allow_stdin=False,
            stop_on_error=False,
            user_expressions={"answer": expression} if expression else {},
        )
        return self._reply(self._last, outputs, seconds)

    def _reply(self, request: str, outputs: Outputs, seconds: float) -> dict | None:
        assert self.client is not None
        assert self.manager is not None
        shell, iopub = self.client.shell_channel, self.client.iopub_channel
        poller = zmq.Poller()
        poller.register(shell.socket, zmq.POLLIN)
        poller.register(iopub.socket, zmq.POLLIN)
        deadline = time.monotonic() + seconds
        found, self._idle = None, False
        while time.monotonic() < deadline:
            ready = dict(poller.poll(100))
            if not ready and found is not None:
                return found
            if not ready and not self.manager.is_alive():
                raise KernelDied("ended the Python process (os._exit, a crash, or more memory than allowed)")
            if iopub.socket in ready:
                message = _receive(iopub)
                if message["parent_header"].get("msg_id") == request:
                    idle = message["msg_type"] == "status" and message["content"].get("execution_state") == "idle"
                    if idle and not self._idle:  # the reply, if there is one, is here or about to be
                        self._idle, deadline = True, min(deadline, time.monotonic() + GRACE)
                    outputs.add(message["msg_type"], message["content"])
            if shell.socket in ready:
                message = _receive(shell)
                if message["parent_header"].get("msg_id") == request:
                    found = message["content"]
                    deadline = time.monotonic() + GRACE  # for the rest of its outputs
            if self._idle and found is not None:
                return found
        return found

    def _interrupt(self) -> None:
        assert self.client is not None
        self.client.control_channel.send(self.client.session.msg("interrupt_request", content={}))


BROKEN = "broke what notebooks need to answer (sys.stdout, IPython or its sockets)"
ASKED = "<the grader's question>"
QUIET = "--HistoryManager.enabled=False"


def _receive(channel: Any) -> dict:
    """One message of a student's kernel, or KernelDied: a kernel that breaks the protocol is not spoken to again."""
    try:
        message = channel.get_msg(timeout=0)
        whole = type(message["parent_header"]) is dict and type(message["content"]) is dict
    except Exception as error:  # at this border anything can arrive, and every kind of failure means the same
        raise KernelDied("sent the grader something that is not a message") from error
    if not whole:
        raise KernelDied("sent the grader something that is not a message")
    return message


def student_environment() -> dict[str, str]:
    """Environment of the student's process: nothing of the instructor's but where programs and libraries are."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LD_LIBRARY_PATH", "SYSTEMROOT") if name in os.environ}
    return kept | {
        "NBGRADER_EXECUTION": "autograde",
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
        "OMP_NUM_THREADS": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "HF_HUB_OFFLINE": "1",
    }


def request_of(calls: list[dict], device: str) -> str:
    """runner.serve's request."""
    return json.dumps({"calls": calls, "device": device})
