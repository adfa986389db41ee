"""One training loop, for pre-training and for fine-tuning.

    train(model, objective, batches, TrainOptions(steps=1000), out=Path("run"))

What is trained is said by two things from outside: an `Objective` (what the losses are) and `batches` (which
batch has which number). The loop adds what every run needs: precision, schedule, clipping, accumulation, several
GPUs, compilation, progress, a log, and checkpoints from which a killed run goes on as if nothing had happened.

Devlin et al. 2019, A.2: Adam with β 0.9 and 0.999, weight decay 0.01, learning rate warmed up, then falling
linearly. That biases and LayerNorm are not decayed, ε = 1e-6 and the gradient clipped to norm 1 stand in
Google's code only. "Decay" is AdamW's: taken off the weight itself, not added to the gradient.
"""

import contextlib
import json
import math
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import torch
import torch.distributed as dist
from safetensors import safe_open
from safetensors.torch import save
from torch import Tensor, nn
from torch.optim.adamw import adamw
from torch.utils.checkpoint import checkpoint

from ..model import Layer
from .corpus import at_least, write_whole

ALIGNED = 64  # elements: matrix products are fastest on rows that begin at a multiple of 128 bytes
EAGER_STEPS = 3  # before a CUDA graph is recorded: compilation and first allocations happen here
MOST_GRAPHS = 2  # shapes; each keeps the memory of a step
MOMENTS = ("exp_avg", "exp_avg_sq", "step")  # what AdamW keeps beside the values
DIVERGED = 2.0  # nats above the first loss of the run


class Objective(Protocol):
    """What to learn. T tasks (masked LM and next sentence; or one); each loss is a mean over its own labels."""

    @property
    def names(self) -> tuple[str, ...]:
        """T of them."""

    def count(self, batch: dict[str, Tensor]) -> Tensor:
        """-> (T,) labels in the batch, float32."""

    def losses(self, model: Any, batch: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        """-> (T,) *sums* of the losses over the labels, (T,) how many answers are right; float32."""


@dataclass(frozen=True)
class TrainOptions:
    """How to train, whatever is trained. Raises ValueError if a number makes no sense."""

    steps: int
    learning_rate: float = 1e-4
    warmup: int = 0  # steps
    weight_decay: float = 0.01
    clip: float = 1.0  # norm of the gradient of all parameters together
    accumulate: int = 1  # batches a step, on all processes together
    precision: str = ""  # fp32, bf16, fp16; empty: what the device does best
    compile: bool | None = None  # None: on a GPU yes, on a CPU no (compiling takes longer than it saves there)
    save_memory: bool = False  # about a fifth less memory for 1 % more time: see `recompute_gelu`
    seed: int = 0
    log_every: int = 10  # steps
    evaluate_every: int = 0  # steps; 0: at the end only
    save_every: int = 500  # steps; 0: at the end only

    def __post_init__(self):
        at_least(1, steps=self.steps, accumulate=self.accumulate, log_every=self.log_every)
        at_least(0, warmup=self.warmup, weight_decay=self.weight_decay, seed=self.seed)
        at_least(0, evaluate_every=self.evaluate_every, save_every=self.save_every)
        for name in ("learning_rate", "clip"):
            if getattr(self, name) <= 0:
                raise ValueError(f"--{name.replace('_', '-')} is {getattr(self, name)}: it has to be above 0")
        if self.precision not in ("", "fp32", "bf16", "fp16"):
            raise ValueError(f"--precision is {self.precision!r}: give fp32, bf16 or fp16, or nothing")


class TrainingStopped(RuntimeError):
    """Training cannot go on; the message says why and what to change."""


def learning_rate(step: int, options: TrainOptions) -> float:
    """Linear warm-up, then linear to 0 at the end. The first step (0) is above 0, so is the last."""
    if step < options.warmup:
        return options.learning_rate * (step + 1) / options.warmup
    return options.learning_rate * (options.steps - step) / max(1, options.steps - options.warmup)


def decay_groups(model: nn.Module) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
    """Parameters with weight decay (matrices) and without (biases, LayerNorm)."""
    parameters = list(model.parameters())
    return [p for p in parameters if p.ndim > 1], [p for p in parameters if p.ndim <= 1]


def choose_precision(device: torch.device) -> str:
    """bf16 where the GPU computes in it (compute capability 8.0 and up), fp16 on older ones, fp32 on a CPU."""
    if device.type != "cuda":
        return "fp32"
    return "bf16" if torch.cuda.get_device_capability(device)[0] >= 8 else "fp16"


class FlatParameters:
    """All parameters in two long vectors, with and without decay; the model's parameters become views of them.

    Then clipping, summing over GPUs and the optimizer are each one call instead of two hundred.

    fp32, fp16: the model computes with the values themselves (fp16: under autocast). bf16: it computes with a
    rounded copy, made anew after each step, and the optimizer works on `values`, which stay float32: a step is
    often smaller than the distance between neighbouring bf16 numbers and would be lost.
    """

    def __init__(self, model: nn.Module, precision: str):
        self.groups, self.gaps = decay_groups(model), []
        self.parameters, self.value_views, self.values, self.compute = [], [], [], []
        for group in self.groups:
            starts = [0]
            for p in group:
                starts.append(starts[-1] + math.ceil(p.numel() / ALIGNED) * ALIGNED)
            values = torch.zeros(starts[-1], device=group[0].device)
            for p, start in zip(group, starts, strict=False):
                values[start : start + p.numel()] = p.detach().flatten()
            compute = values.to(torch.bfloat16) if precision == "bf16" else values
            for p, start in zip(group, starts, strict=False):
                part = slice(start, start + p.numel())
                p.data, p.grad = compute[part].view(p.shape), None
                self.parameters.append(p)
                self.value_views.append(values[part].view(p.shape))
            self.gaps.append([compute.new_zeros(-p.numel() % ALIGNED) for p in group])
            self.values.append(nn.Parameter(values))
            self.compute.append(compute)
        self.forget()

    def forget(self) -> None:
        """No gradients: what a step begins with."""
        self.total: list[Tensor] = []

    def collect(self) -> None:
        """Add the gradients of one batch to the total: in the gradients' precision, from the second on in float32."""
        found = []
        for group, gaps in zip(self.groups, self.gaps, strict=True):
            gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in group]
            found.append(torch.cat([x.flatten() for pair in zip(gradients, gaps, strict=True) for x in pair]))
        for p in self.parameters:
            p.grad = None
        self.total = [a.float().add_(b) for a, b in zip(self.total, found, strict=True)] if self.total else found

    def sum_over_processes(self) -> None:
        """The total of all GPUs; where gradients are bf16 they also travel as bf16, in half the time."""
        self.total = [total.to(compute.dtype) for total, compute in zip(self.total, self.compute, strict=True)]
        for total in self.total:
            dist.all_reduce(total)

    def refresh(self) -> None:
        """After the values have changed: round them for the model."""
        for values, compute in zip(self.values, self.compute, strict=True):
            if compute.dtype != values.dtype:
                compute.copy_(values.detach())

    @contextlib.contextmanager
    def full_precision(self) -> Iterator[None]:
        """Inside, the model's parameters are the float32 values: for saving."""
        computing = [p.data for p in self.parameters]
        for p, view in zip(self.parameters, self.value_views, strict=True):
            p.data = view
        try:
            yield
        finally:
            for p, data in zip(self.parameters, computing, strict=True):
                p.data = data


class FlatAdamW(torch.optim.AdamW):
    """torch's AdamW on `FlatParameters`, with what stands before and after it: clipping and rounding.

    Compiled, the three are one pass over memory (for 110 M parameters 1.1 ms instead of 2.4); else torch's own
    fused kernel does the update. A torch.optim.Optimizer, so that a GradScaler can skip a step that overflowed.
    """

    def __init__(self, flat: FlatParameters, options: TrainOptions, compiled: bool):
        self.flat, self.clip = flat, options.clip
        device = flat.values[0].device
        self.rate = torch.zeros((), device=device)  # a tensor, so that a recorded graph reads today's value
        self.norm = torch.zeros((), device=device)  # of the last gradient, before it was clipped
        decays = (options.weight_decay, 0.0)
        groups = [{"params": [v], "weight_decay": d} for v, d in zip(flat.values, decays, strict=True)]
        super().__init__(groups, lr=self.rate, betas=(0.9, 0.999), eps=1e-6, capturable=device.type == "cuda")
        for values in flat.values:
            shapes = {"exp_avg": values.shape, "exp_avg_sq": values.shape, "step": torch.Size(())}
            self.state[values] = {name: torch.zeros(shapes[name], device=device) for name in MOMENTS}
        self.change = torch.compile(self.clip_and_change, dynamic=False) if compiled else self.clip_and_change

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        self.norm.copy_(self.change(self.flat.total))

    def clip_and_change(self, total: list[Tensor]) -> Tensor:
        """Scale the whole gradient down to norm `clip` if it is longer, then AdamW -> its norm before, 0-d."""
        norm = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(t, dtype=torch.float32) for t in total]))
        scale = (self.clip / (norm + 1e-6)).clamp(max=1.0)
        for gradient, group in zip(total, self.param_groups, strict=True):
            (values,) = group["params"]
            state = self.state[values]
            adamw(
                [values],
                [gradient.float().mul_(scale)],
                [state["exp_avg"]],
                [state["exp_avg_sq"]],
                [],
                [state["step"]],
                foreach=False,
                fused=not torch.compiler.is_compiling(),
                capturable=True,
                amsgrad=False,
                beta1=group["betas"][0],
                beta2=group["betas"][1],
                lr=self.rate,
                weight_decay=group["weight_decay"],
                eps=group["eps"],
                maximize=False,
            )
        self.flat.refresh()
        return norm


def recompute_gelu(model: nn.Module) -> None:
    """Let each encoder layer compute GELU a second time in backward, instead of keeping what it gave till then.

    Of the sixteen vectors of model width that a layer keeps for each token, GELU's output is four.
    """
    for layer in model.modules():
        if isinstance(layer, Layer) and "down" not in vars(layer):
            layer.down = partial(checkpoint, layer.down, use_reentrant=False, preserve_rng_state=False)  # type: ignore[method-assign]


class Step:
    """One optimizer step: forward and backward over its batches, sum over processes, clip, update.

    Calling it never waits for the device; results are added up in `sums`, rows loss, right, count (3, T),
    until `read` takes them.
    """

    def __init__(self, model: nn.Module, objective: Objective, options: TrainOptions, device: torch.device):
        self.model, self.objective, self.options, self.device = model, objective, options, device
        self.precision = options.precision or choose_precision(device)
        self.flat = FlatParameters(model, self.precision)
        self.scaler = torch.amp.GradScaler(device.type, enabled=self.precision == "fp16")
        on_gpu = device.type == "cuda"
        compiled = on_gpu if options.compile is None else options.compile
        self.optimizer = FlatAdamW(self.flat, options, compiled)
        if options.save_memory:
            recompute_gelu(model)
        self.loss = torch.compile(self.loss_of, dynamic=False) if compiled else self.loss_of
        self.sums = torch.zeros(3, len(objective.names), device=device)
        # A step of one batch a GPU is recorded once and replayed, sums over GPUs included: launching costs nothing.
        self.record = compiled and on_gpu and not self.scaler.is_enabled()
        self.graphs: dict[tuple, tuple[torch.cuda.CUDAGraph, dict[str, Tensor]]] = {}
        self.seen: dict[tuple, int] = {}

    def loss_of(self, batch: dict[str, Tensor], counts: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """This batch's share of the step's loss: each task's sum over the labels of *all* batches and GPUs."""
        fp16 = self.precision == "fp16"
        with torch.autocast(self.device.type, torch.float16) if fp16 else contextlib.nullcontext():
            sums, right = self.objective.losses(self.model, batch)
        return (sums / counts.clamp(min=1)).sum(), sums.detach(), right

    def __call__(self, batches: list[dict[str, Tensor]], rate: float) -> None:
        self.optimizer.rate.fill_(rate)
        batches = [{name: self.send(value) for name, value in batch.items()} for batch in batches]
        if not self.record or len(batches) != 1:
            return self.run(batches)
        shapes = tuple(v.shape for v in batches[0].values())
        self.seen[shapes] = self.seen.get(shapes, 0) + 1
        new = shapes not in self.graphs
        if self.seen[shapes] <= EAGER_STEPS or (new and len(self.graphs) == MOST_GRAPHS):
            return self.run(batches)
        if new:
            torch.cuda.synchronize()
            torch.cuda.empty_cache()
            static, graph = {k: v.clone() for k, v in batches[0].items()}, torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, stream=torch.cuda.current_stream(), capture_error_mode="thread_local"):
                self.run([static])
            self.graphs[shapes] = graph, static
        graph, static = self.graphs[shapes]
        for name, value in batches[0].items():
            static[name].copy_(value, non_blocking=True)
        graph.replay()

    def send(self, value: Tensor) -> Tensor:
        """To the device without waiting for it. Pinned here and not by the loader's thread: another thread's
        calls to CUDA would spoil the recording of a graph."""
        if self.device.type == "cuda" and not value.is_cuda:
            value = value.pin_memory()
        return value.to(self.device, non_blocking=True)

    def run(self, batches: list[dict[str, Tensor]]) -> None:
        self.flat.forget()
        counts = torch.stack([self.objective.count(batch) for batch in batches]).sum(dim=0)
        if distributed():
            dist.all_reduce(counts)
        for batch in batches:
            loss, sums, right = self.loss(batch, counts)
            self.scaler.scale(loss).backward()
            self.flat.collect()
            self.sums[0] += sums
            self.sums[1] += right
            self.sums[2] += self.objective.count(batch)
        if distributed():
            self.flat.sum_over_processes()
        if self.scaler.is_enabled():  # it looks for the gradients where an optimizer has them
            for values, total in zip(self.flat.values, self.flat.total, strict=True):
                values.grad = total
        self.scaler.unscale_(self.optimizer)
        self.scaler.step(self.optimizer)
        self.scaler.update()

    def close(self) -> None:
        """Let the recorded graphs go: several processes can't part while a recording holds their connection."""
        self.graphs.clear()

    def read(self) -> dict[str, float]:
        """Means since the last call, over all processes: NAME_loss, NAME_accuracy, loss; the last norm."""
        if distributed():
            dist.all_reduce(self.sums)
        found = means(self.objective.names, self.sums) | {"gradient_norm": self.optimizer.norm.item()}
        self.sums.zero_()
        return found


def means(names: tuple[str, ...], sums: Tensor) -> dict[str, float]:
    """sums (3, T), rows loss, right and count -> each task's mean loss and accuracy, and the total loss."""
    loss, right, count = sums.tolist()
    found = {}
    for name, task_loss, task_right, task_count in zip(names, loss, right, count, strict=True):
        found[f"{name}_loss"] = task_loss / max(1.0, task_count)
        found[f"{name}_accuracy"] = task_right / max(1.0, task_count)
    return {"loss": sum(found[f"{name}_loss"] for name in names), **found}


@torch.no_grad()
def evaluate(model: nn.Module, objective: Objective, batches: Iterator[dict[str, Tensor]]) -> dict[str, float]:
    """Means over all batches together (not a mean of batch means), in eval mode."""
    device, training = next(model.parameters()).device, model.training
    sums = torch.zeros(3, len(objective.names), device=device)
    model.eval()
    for batch in batches:
        batch = {name: value.to(device) for name, value in batch.items()}
        loss, right = objective.losses(model, batch)
        sums += torch.stack([loss, right, objective.count(batch)])
    model.train(training)
    return means(objective.names, sums)


# ---- several processes


def distributed() -> bool:
    """Whether this process is one of several that train together."""
    return dist.is_available() and dist.is_initialized()


def rank_and_world() -> tuple[int, int]:
    """-> (number of this process, how many there are)."""
    return (dist.get_rank(), dist.get_world_size()) if distributed() else (0, 1)


def start_processes() -> torch.device:
    """The device of this process. Under `torchrun` also joins the others: NCCL on GPUs, gloo on CPUs."""
    if torch.cuda.is_available():
        device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)))
        torch.cuda.set_device(device)
    else:
        device = torch.device("cpu")
    if "RANK" in os.environ and not distributed():
        dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    return device


# ---- checkpoints


def save_state(path: Path, step: Step, done: int) -> None:
    """Everything a run needs to go on: values, Adam's moments, random states. One file, whole or not at all."""
    tensors = {"random_cpu": torch.get_rng_state()}
    if step.device.type == "cuda":
        tensors["random_cuda"] = torch.cuda.get_rng_state()
    for number, values in enumerate(step.flat.values):
        state = step.optimizer.state[values]
        tensors[f"values.{number}"] = values.detach().cpu()
        tensors |= {f"{name}.{number}": state[name].cpu() for name in MOMENTS}
    about = {"done": done, "options": asdict(step.options), "scaler": step.scaler.state_dict()}
    write_whole(path, save(tensors, {"about": json.dumps(about)}))


def load_state(path: Path, step: Step) -> int:
    """Undo `save_state` -> how many steps were done. Raises ValueError if the run was another one."""
    with safe_open(path, framework="pt") as file:
        about = json.loads(file.metadata()["about"])
        # These change nothing that is learned.
        free = ("log_every", "evaluate_every", "save_every", "compile", "save_memory")
        differing = [
            f"{name} was {about['options'].get(name)}, now {value}"
            for name, value in asdict(step.options).items()
            if name not in free and about["options"].get(name) != value
        ]
        sizes = [len(values) for values in step.flat.values]
        if [file.get_slice(f"values.{n}").get_shape()[0] for n in range(len(sizes))] != sizes:
            differing.append("the model has another size")
        if differing:
            raise ValueError(f"{path} belongs to another run: {'; '.join(differing)}. Give a new folder")
        for number, values in enumerate(step.flat.values):
            values.data.copy_(file.get_tensor(f"values.{number}"))
            for name in MOMENTS:
                step.optimizer.state[values][name].copy_(file.get_tensor(f"{name}.{number}"))
        step.flat.refresh()
        if about["scaler"]:
            step.scaler.load_state_dict(about["scaler"])
        rank, world = rank_and_world()
        if world > 1:  # the file has one process's random state: all take a new one, each its own
            torch.manual_seed(step.options.seed + about["done"] * world + rank)
            return about["done"]
        torch.set_rng_state(file.get_tensor("random_cpu"))
        if step.device.type == "cuda" and "random_cuda" in file.keys():  # noqa: SIM118 (a file, not a dict)
            torch.cuda.set_rng_state(file.get_tensor("random_cuda"))
    return about["done"]


# ---- the loop


def train(
    model: nn.Module,
    objective: Objective,
    batches: Callable[[list[int]], Iterator[dict[str, Tensor]]],
    options: TrainOptions,
    out: Path | None = None,
    measure: Callable[[Any], dict[str, float]] | None = None,
    tokens_and_flops: tuple[int, float] = (0, 0.0),
    peak: float = 0.0,
    stop_at: int | None = None,
    enough: Callable[[list[dict]], bool] | None = None,
) -> list[dict]:
    """Train `model`, which is on its device, in place; goes on from `out/state.safetensors` if there is one.

    Args:
        batches: numbers -> an iterator over the batches with these numbers, the same ones each time. Step s takes
            numbers s · accumulate … , dealt round the processes.
        measure: model -> numbers to log, every `evaluate_every` steps and at the end.
        tokens_and_flops: of one batch, for tokens/s and MFU; peak: FLOP/s of one device.
        stop_at: end early, with the state saved: the run can go on later.
        enough: the log so far -> whether the run is over before its last step (what is measured gets no better).

    Returns the log. Raises TrainingStopped on NaN, divergence and lack of memory.
    """
    device, (rank, world) = next(model.parameters()).device, rank_and_world()
    if options.accumulate % world:
        raise ValueError(f"accumulate is {options.accumulate}; {world} processes need a multiple of {world}")
    if device.type == "cuda":  # a graph can't be recorded on the default stream
        stream = torch.cuda.Stream(device)
        stream.wait_stream(torch.cuda.current_stream())
        context = torch.cuda.stream(stream)
    else:
        context = contextlib.nullcontext()
    torch.manual_seed(options.seed + rank)  # dropout; from here on also restored by load_state
    try:
        with context, contextlib.closing(Step(model.train(), objective, options, device)) as step:
            return _train(step, batches, out, measure, (tokens_and_flops, peak), (stop_at, enough))
    except torch.OutOfMemoryError as error:
        raise TrainingStopped(
            f"out of memory on {device} with {options.accumulate} batch(es) a step. Halve the sequences a batch "
            "and double accumulate: the result is the same, in smaller bites. Or save_memory, a smaller model, shorter "
            f"sequences. ({str(error).splitlines()[0]})"
        ) from error


def _train(step: Step, batches, out, measure, figures, ends) -> list[dict]:
    (tokens_and_flops, peak), (stop_at, enough), (rank, world) = figures, ends, rank_and_world()
    model, objective, options, state, log = step.model, step.objective, step.options, None, Log(None, 0)
    first, end = 0, min(options.steps, stop_at or options.steps)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        state = out / "state.safetensors"
        first = load_state(state, step) if state.exists() else 0
        log = Log(out / "log.jsonl" if rank == 0 else None, first)
    share = options.accumulate // world
    numbers = [s * options.accumulate + k * world + rank for s in range(first, end) for k in range(share)]
    dealt, bar = batches(numbers), progress(first, options.steps, rank)
    since, clock = first, time.perf_counter()
    worst = log.rows[0]["loss"] + DIVERGED if log.rows else None
    for s in range(first, end):
        if enough is not None and enough(log.rows):
            break
        step([next(dealt) for _ in range(share)], learning_rate(s, options))
        done = s + 1
        last, saving = done == end, bool(options.save_every) and done % options.save_every == 0
        measuring = measure is not None and (
            done == options.steps or (options.evaluate_every and done % options.evaluate_every == 0)
        )
        if done % options.log_every == 0 or last or saving or measuring:
            found = step.read()
            seconds, steps = time.perf_counter() - clock, done - since
            batches_per_second = steps * options.accumulate / max(seconds, 1e-9)
            row = {"step": done, "learning_rate": learning_rate(s, options), **found}
            row["tokens_per_second"] = batches_per_second * tokens_and_flops[0]
            if peak:
                row["mfu"] = batches_per_second * tokens_and_flops[1] / (peak * world)
            worst = found["loss"] + DIVERGED if worst is None else worst
            stop_if_ill(done, found, worst, options)
            if measuring:
                row |= {f"held_out_{name}": value for name, value in measure(model).items()}
            log.write(row)
            bar.set_postfix_str(summary(row, objective.names), refresh=False)
            since, clock = done, time.perf_counter()
        bar.update()
        if state is not None and (saving or last):
            if rank == 0:
                log.sync()
                save_state(state, step, done)
            if distributed():
                dist.barrier()
            clock = time.perf_counter() if since == done else clock
    bar.close()
    with step.flat.full_precision():
        finished = {p: p.data.clone() for p in model.parameters()}
    for p, data in finished.items():  # the model leaves as it came: its own float32 tensors, no gradients
        p.data, p.grad = data, None
    return log.rows


def stop_if_ill(step: int, found: dict[str, float], worst: float, options: TrainOptions) -> None:
    """Raises TrainingStopped if the loss is no number, or above `worst`."""
    if not math.isfinite(found["loss"]):
        raise TrainingStopped(
            f"the loss is {found['loss']} at step {step}. Usual causes: the learning rate "
            f"({options.learning_rate:g}) is too high or the warm-up ({options.warmup} steps) too short; in fp16, "
            "a value over 65,504. Training goes on from the last state if you start it again with the same options."
        )
    if found["loss"] > worst:
        raise TrainingStopped(
            f"the loss is {found['loss']:.2f} at step {step}, {DIVERGED} above where it began: it diverges. Lower "
            f"the learning rate ({options.learning_rate:g}), or lengthen the warm-up ({options.warmup} steps)."
        )


class Log:
    """JSON lines. Rows after the step from which a run goes on are dropped: they will be written again."""

    def __init__(self, path: Path | None, done: int):
        self.path, self.rows = path, []
        if path is not None and path.exists():
            lines = path.read_text(encoding="utf-8").splitlines()
            rows = [json.loads(line) for line in lines if line.endswith("}")]  # the last may be cut off
            self.rows = [row for row in rows if row["step"] <= done]
        if path is not None:
            write_whole(path, "".join(json.dumps(row) + "\n" for row in self.rows).encode())
        self.file = None if path is None else open(path, "a", encoding="utf-8")  # noqa: SIM115 (as long as the run)

    def write(self, row: dict) -> None:
        self.rows.append(row)
        if self.file:
            self.file.write(json.dumps(row) + "\n")
            self.file.flush()

    def sync(self) -> None:
        os.fsync(self.file.fileno())


def progress(first: int, steps: int, rank: int):
    """A bar that begins at step `first`; only the process of rank 0 shows it."""
    from tqdm import tqdm

    return tqdm(total=steps, initial=first, unit="step", disable=rank > 0, dynamic_ncols=True, mininterval=1.0)


def summary(row: dict, names: tuple[str, ...]) -> str:
    """What stands beside the bar: the log's last row in a few words."""
    words = [f"loss {row['loss']:.3f}", *(f"{name} {row[f'{name}_accuracy']:.1%}" for name in names)]
    if row["tokens_per_second"]:
        words.append(f"{row['tokens_per_second'] / 1000:,.0f}k tok/s")
    if "mfu" in row:
        words.append(f"MFU {row['mfu']:.0%}")
    return ", ".join(words)
