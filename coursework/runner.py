"""Executes plain calls against names that a student defined and returns plain answers. Knows no test.

This one file is all of the course that enters the student's process at grading, so it imports nothing of the
course. The same code runs in the student's own notebook, which is why the instant check and the mark agree.

Wire format (JSON): None, bool, int, float and str stand for themselves, lists for lists; a tensor is
{"tensor": base64 of its bytes, "dtype": "float32", "shape": [2, 3]}, a tuple {"tuple": […]}, a dictionary
{"dict": [[key, value], …]}, a set {"set": […]}, torch.float16 {"dtype": "float16"}; a probe goes in as
{"probe": its source, "name": what it defines, "args": […] or null}; anything else comes back as
{"other": type, "text": repr}.
"""

import base64
import builtins
import contextlib
import ctypes
import dis
import functools
import inspect
import io
import json
import linecache
import os
import random
import textwrap
import threading
import time
import traceback
import warnings

import numpy as np
import torch
from torch.overrides import TorchFunctionMode

LARGEST = 1 << 26  # bytes of one tensor on the wire
PRINTED = 2_000  # characters kept of what a student's function prints
PLAIN = {type(None), bool, int, float, str}  # what stands for itself on the wire
LIBRARY = os.path.dirname(os.__file__)  # Python's own modules: no line of theirs is a student's

# What an exercise may exclude, by the name a student would know -> the names torch has for it.
EXCLUDABLE = {
    "layer_norm": {"layer_norm", "native_layer_norm", "rms_norm", "group_norm", "native_group_norm", "batch_norm",
                   "native_batch_norm", "instance_norm"},
    "softmax": {"softmax", "special_softmax", "special_log_softmax", "_softmax", "log_softmax", "_log_softmax",
                "softmin"},
    "scaled_dot_product_attention": {
        "scaled_dot_product_attention", "_scaled_dot_product_attention_math", "multi_head_attention_forward",
        "_native_multi_head_attention", "_scaled_dot_product_flash_attention_for_cpu",
        "_scaled_dot_product_flash_attention", "_scaled_dot_product_efficient_attention",
    },
    "multi_head_attention": {"multi_head_attention_forward", "_native_multi_head_attention"},
    "cross_entropy": {"cross_entropy", "cross_entropy_loss", "nll_loss", "nll_loss_nd"},
    "gelu": {"gelu"},
    "embedding": {"embedding", "embedding_bag"},
}  # fmt: skip

# What torch's functions were called before anybody could give them another name.
TRUE_NAMES = {
    id(getattr(home, name)): name
    for home in (torch, torch.nn.functional, torch.special, torch.Tensor, torch._C._nn)
    for names in EXCLUDABLE.values()
    for name in names
    if hasattr(home, name)
}


# ---------------------------------------------------------------- plain values on the wire


class Probe:
    """What a question needs beyond plain values: a small function or class, sent as its source.

    `source` may use torch and F (torch.nn.functional) and defines `name`. With `args` the probe stands for
    name(*args), made where the student's code runs: a model, an optimizer, a teacher. It holds no answer.
    """

    def __init__(self, source, name, args=None):
        self.source, self.name, self.args = source, name, args

    @classmethod
    def of(cls, definition, *args):
        """From a function or class; with arguments, from what it returns for them."""
        return cls(textwrap.dedent(inspect.getsource(definition)), definition.__name__, args or None)

    def build(self):
        namespace = {"torch": torch, "F": torch.nn.functional, "__name__": "probe"}
        exec(compile(self.source, "<probe>", "exec"), namespace)
        return namespace[self.name] if self.args is None else namespace[self.name](*self.args)


def pack(value, depth=0):
    """A value as JSON-able data; what is not plain becomes {"other": …}."""
    if type(value) in PLAIN:
        return value
    if depth > 20:
        return {"other": "nested too deeply", "text": ""}
    if isinstance(value, torch.Tensor):
        return pack_tensor(value)
    if isinstance(value, np.generic):  # a number that NumPy made is a number
        return pack(value.item(), depth + 1)
    if isinstance(value, torch.dtype):
        return {"dtype": str(value).removeprefix("torch.")}
    if type(value) is list:
        return [item if type(item) in PLAIN else pack(item, depth + 1) for item in value]  # quick for long lists
    if isinstance(value, tuple):
        return {"tuple": [pack(item, depth + 1) for item in value]}
    if isinstance(value, dict):
        return {"dict": [[pack(k, depth + 1), pack(v, depth + 1)] for k, v in value.items()]}
    if isinstance(value, Probe):
        args = None if value.args is None else [pack(arg, depth + 1) for arg in value.args]
        return {"probe": value.source, "name": value.name, "args": args}
    if type(value) in (set, frozenset):
        return {"set": [pack(item, depth + 1) for item in value]}
    return {"other": f"{type(value).__module__}.{type(value).__qualname__}", "text": repr(value)[:200]}


def pack_tensor(tensor):
    if tensor.is_sparse or tensor.is_quantized or tensor.device.type == "meta":
        return {"other": f"a {tensor.layout} tensor on {tensor.device}", "text": ""}
    if tensor.numel() * tensor.element_size() > LARGEST:
        return {"other": f"a tensor of shape {tuple(tensor.shape)}, too large to look at", "text": ""}
    plain = tensor.detach().as_subclass(torch.Tensor).resolve_conj().resolve_neg().cpu().contiguous()
    data = plain.reshape(-1).view(torch.uint8).numpy().tobytes()
    return {
        "tensor": base64.b64encode(data).decode(),
        "dtype": str(plain.dtype).removeprefix("torch."),
        "shape": list(plain.shape),
    }


def unpack(wire, device="cpu"):
    """The value that `pack` wrote; of a probe, what it stands for. {"other": …} stays a dictionary."""
    if isinstance(wire, list):
        return [item if type(item) in PLAIN else unpack(item, device) for item in wire]
    if not isinstance(wire, dict):
        return wire
    if "tensor" in wire:
        dtype = dtype_called(wire["dtype"])
        data = bytearray(base64.b64decode(wire["tensor"]))
        flat = torch.frombuffer(data, dtype=dtype) if data else torch.empty(0, dtype=dtype)
        return flat.reshape(wire["shape"]).to(device)
    if "tuple" in wire:
        return tuple(unpack(item, device) for item in wire["tuple"])
    if "dict" in wire:
        return {unpack(k): unpack(v, device) for k, v in wire["dict"]}
    if "set" in wire:
        return {unpack(item) for item in wire["set"]}
    if "probe" in wire:
        args = None if wire["args"] is None else tuple(unpack(wire["args"], device))
        return Probe(wire["probe"], wire["name"], args).build()
    if "dtype" in wire:
        return dtype_called(wire["dtype"])
    return wire


def dtype_called(name):
    dtype = getattr(torch, name)
    if not isinstance(dtype, torch.dtype):
        raise ValueError(f"torch.{name} is not a dtype")
    return dtype


# ---------------------------------------------------------------- what may interrupt a call


class TimeLimit(BaseException):
    """The call took longer than its limit. Not an Exception, so that `except Exception` does not catch it."""


class Refused(BaseException):
    """The call used something that the exercise asks the student to write."""


class NotThere(Exception):
    """No such name: its cell has not been run."""


class NotCallable(Exception):
    """The name stands for something that is not a function."""


@contextlib.contextmanager
def time_limit(seconds):
    """Raise TimeLimit in this thread after `seconds` of work, and again every half second in case it is caught.

    Work is the processor time of this process, so that a busy machine makes nobody late; who sleeps or waits is
    stopped after ten times as long. None: never.
    """
    if seconds is None:
        yield
        return
    thread, done = threading.get_ident(), threading.Event()
    worked, began = time.process_time(), time.monotonic()

    def interrupt():
        wait = min(0.05, seconds / 4)
        while not done.wait(wait):
            if time.process_time() - worked >= seconds or time.monotonic() - began >= 10 * seconds:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(TimeLimit))
                wait = 0.5

    watch = threading.Thread(target=interrupt, daemon=True)
    watch.start()
    try:
        yield
    finally:
        stopped = False
        while not stopped:
            try:  # it may strike while we are stopping it, and once more after that
                done.set()
                watch.join()
                for _ in range(100):  # a pending exception comes out at a jump back. Never clear one with
                    pass  # SetAsyncExc(…, None): CPython 3.11 then stays on its slow path, and cProfile hangs
                stopped = True
            except TimeLimit:
                pass


class Excluded(TorchFunctionMode):
    """Refuses torch functions by name, whether called from torch, torch.nn, torch.Tensor or torch.ops."""

    def __init__(self, names):
        super().__init__()
        self.blocked = {torch_name: name for name in names for torch_name in EXCLUDABLE[name]}

    def __torch_function__(self, function, types, args=(), kwargs=None):
        called = TRUE_NAMES.get(id(function)) or getattr(function, "__name__", "").partition(".")[0]
        name = self.blocked.get(called)
        if name is not None:
            raise Refused(f"calls torch's own {name}, and this exercise asks you to write it")
        return function(*args, **(kwargs or {}))


def refuse_borrowed(function, modules, seen=None):
    """Refuse a function that names something of the packages that hold the answers, itself or through the
    student's other functions. Catches the honest short cut; at grading those packages are out of reach."""
    seen = set() if seen is None else seen
    if inspect.isclass(function):
        homes = [base.__module__ for base in function.__mro__ if base.__module__.partition(".")[0] in modules]
        if homes:
            raise Refused(f"uses {homes[0]}, and this exercise asks you to write it")
        for method in vars(function).values():
            if inspect.isfunction(method):
                refuse_borrowed(method, modules, seen)
        return
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    if code is None or code in seen:
        return
    seen.add(code)
    known = {**function.__globals__, **inspect.getclosurevars(function).nonlocals}
    for name in [function.__module__, *names_in(code)]:
        value = known.get(name)
        home = getattr(value, "__name__" if inspect.ismodule(value) else "__module__", None)
        for candidate in (name, home):
            if isinstance(candidate, str) and candidate.partition(".")[0] in modules:
                raise Refused(f"uses {candidate}, and this exercise asks you to write it")
        if inspect.isfunction(value) or (inspect.isclass(value) and value.__module__ == function.__module__):
            refuse_borrowed(value, modules, seen)


def names_in(code):
    """The variables and modules that a code object, and the functions inside it, look up by name outside of it."""
    kinds = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "IMPORT_NAME")
    names = {step.argval for step in dis.get_instructions(code) if step.opname in kinds}
    for constant in code.co_consts:
        if inspect.iscode(constant):
            names |= names_in(constant)
    return names.difference(code.co_cellvars)  # its own variables, which functions inside it look up here


class FirstWords(io.StringIO):
    """Keeps the beginning of what is printed and lets the rest go."""

    def write(self, text):
        super().write(text[: max(0, PRINTED - self.tell())])
        return len(text)


# ---------------------------------------------------------------- one call, one answer


def answer(call, namespace, device="cpu"):
    """Run one wire call against `namespace` and return one wire answer; never raises.

    call: {"name", "args", "kwargs", "wrt": paths [position] or [position, key], "cotangents": one an output,
           "seed", "exclude": operators by name, "modules": packages that hold answers,
           "seconds": its limit, or None, "driver": a probe that is called with the student's function before the
           other arguments and asks it (makes a model, trains it, looks inside …), or absent}
    answer: {"value", "grads", "changed": positions or keywords of arguments changed in place, "error", "printed"}
    """
    reply: dict = {"value": None, "grads": None, "changed": [], "error": None, "printed": ""}
    args, kwargs = unpack(call["args"], device), unpack(call["kwargs"], device)
    given = {**dict(enumerate(args)), **kwargs}  # position or keyword -> argument
    before = {path: pack(arg) for path, arg in given.items()}
    if call["wrt"]:
        warm_up()
    leaves = [args[path[0]][path[1]] if len(path) == 2 else args[path[0]] for path in call["wrt"]]
    for leaf in leaves:
        leaf.requires_grad_(True)
    words = FirstWords()
    try:
        with quiet(words), same_start(call["seed"]), time_limit(call["seconds"]):
            function = look_up(namespace, call["name"])
            if call["modules"]:
                refuse_borrowed(function, call["modules"])
            if call.get("driver"):
                function = functools.partial(unpack(call["driver"], device), function)
            with Excluded(call["exclude"]):
                value = function(*args, **kwargs)
            if leaves:
                reply["grads"] = gradients(value, unpack(call["cotangents"], device), leaves)
        reply["value"] = pack(value)
    except BaseException as error:
        reply["error"] = describe(error, call["seconds"])
    reply["changed"] = [path for path, arg in given.items() if pack(arg) != before[path]]
    reply["printed"] = words.getvalue()
    return reply


@functools.cache
def warm_up():
    """The first gradient of a process makes torch import 500 modules: nobody's time limit should pay for that."""
    with torch.inference_mode(False), torch.enable_grad():  # whatever the student has switched off
        x = torch.zeros(1, device="cpu", requires_grad=True)
        torch.autograd.grad(2 * x, x)


def look_up(namespace, name):
    if name not in namespace:
        raise NotThere(name)
    if not callable(namespace[name]):
        raise NotCallable(type(namespace[name]).__name__)
    return namespace[name]


@contextlib.contextmanager
def quiet(words):
    with contextlib.redirect_stdout(words), contextlib.redirect_stderr(words), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextlib.contextmanager
def same_start(seed):
    """Every call starts from the same state of torch and random, and leaves the student's as it was."""
    dtype, precision, state = torch.get_default_dtype(), torch.get_float32_matmul_precision(), random.getstate()
    gpus = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else []
    torch.set_default_dtype(torch.float32)
    torch.set_float32_matmul_precision("highest")  # a GPU may otherwise round products to 10 bits
    try:
        with torch.random.fork_rng(gpus), torch.inference_mode(False), torch.enable_grad():
            torch.default_generator.manual_seed(seed)
            if gpus:
                torch.cuda.manual_seed_all(seed)
            random.seed(seed)
            yield
    finally:
        torch.set_default_dtype(dtype)
        torch.set_float32_matmul_precision(precision)
        random.setstate(state)


def gradients(value, cotangents, leaves):
    """Gradients of Σ output · cotangent at the leaves; None where the outputs do not depend on one."""
    outputs = [value] if isinstance(value, torch.Tensor) else list(value)
    pairs = [
        (output, cotangent)
        for output, cotangent in zip(outputs, cotangents, strict=False)
        if isinstance(output, torch.Tensor) and output.requires_grad and output.shape == cotangent.shape
    ]
    if not pairs:
        return [None for _ in leaves]
    grads = torch.autograd.grad(
        [output for output, _ in pairs],
        leaves,
        [cotangent.to(output.dtype) for output, cotangent in pairs],
        allow_unused=True,
    )
    return [pack(grad) for grad in grads]


def describe(error, seconds):
    """{"type", "message", "line": source line of the student's that failed, or ""}."""
    if isinstance(error, TimeLimit):
        return {"type": "TimeLimit", "message": f"did not finish in {seconds:g} s", "line": ""}
    line = ""
    for frame in traceback.extract_tb(error.__traceback__):
        ours = frame.filename in (describe.__code__.co_filename, "<probe>")
        if not ours and "site-packages" not in frame.filename and not frame.filename.startswith(LIBRARY + os.sep):
            line = linecache.getline(frame.filename, frame.lineno or 0).strip()
    try:
        message = str(error)
    except BaseException:  # a student's exception may have a broken __str__
        message = ""
    return {"type": kind_of(error), "message": message[:300], "line": line[:120]}


def kind_of(error):
    """The name of an error's class. Who derives TooLong from ValueError raises a ValueError: of a class that neither
    Python nor this file defines, the name of the one that it comes from."""
    ours = (TimeLimit, Refused, NotThere, NotCallable)
    known = (base for base in type(error).__mro__ if base in ours or vars(builtins).get(base.__name__) is base)
    return next(known).__name__


def serve(request, namespace):
    """JSON in, JSON out: {"calls": […], "device": "cpu"} -> list of answers. After a call that ran out of time, or
    that the student interrupted, the others get the same answer unasked: one endless loop costs one limit."""
    request = json.loads(request)
    replies: list[dict] = []
    for call in request["calls"]:
        stopped = (
            replies and replies[-1]["error"] and replies[-1]["error"]["type"] in ("TimeLimit", "KeyboardInterrupt")
        )
        replies.append(replies[-1] if stopped else answer(call, namespace, request["device"]))
    return json.dumps(replies)
