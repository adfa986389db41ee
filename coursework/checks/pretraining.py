"""Unit 07: pre-training. V pieces, D features, B sequences of S tokens a micro-batch.

Here are the exercises: what is asked, the right answer, and how each step of it is seen on its own. The known
mistakes and the right alternatives stand in pretraining_mistakes.py and pretraining_alternatives.py.

Where an exercise takes a model or an optimizer, small ones are made where the student's code runs, by a driver
that reports what the optimizer saw and in which order things happened.
"""

import math
from collections.abc import Iterable

import torch

from coursework.checks import pretraining_rewards
from coursework.checks.engine import ATOL, RTOL, Answer, Call, Case, Exercise, Inputs, Part
from coursework.runner import Probe

LESSON = "07_pretraining"

# ---------------------------------------------------------------- 07.1 decay groups

decay_groups = Exercise(
    "07.1", "decay_groups", "decay groups",
    lesson=LESSON, section="What is pulled towards zero", points=3,
    parts=[Part("matrices"), Part("biases"), Part("LayerNorm"), Part("tied"), Part("frozen")],
)  # fmt: skip


@decay_groups.reference
def _decay_groups(model):
    found: tuple[list, list] = [], []
    taken = set()
    for _, parameter in model.named_parameters(remove_duplicate=False):
        if not parameter.requires_grad or id(parameter) in taken:  # step: frozen or tied
            continue
        taken.add(id(parameter))
        vector = int(parameter.dim() < 2)  # step: matrices or biases or LayerNorm
        found[vector].append(parameter)
    return found


def where_parameters_go(function, layers, width, frozen, names):
    """Ask for the groups of a small model -> of each of `names`, where its parameter went."""
    nn = torch.nn

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.query = nn.Linear(width, width)
            self.norm1 = nn.LayerNorm(width)
            self.up = nn.Parameter(torch.zeros(3 * width, width))
            self.up_bias = nn.Parameter(torch.zeros(3 * width))
            self.LayerNorm = nn.LayerNorm(width)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.word = nn.Embedding(11, width)
            self.position_embeddings = nn.Parameter(torch.zeros(5, width))
            self.gamma, self.beta = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width))
            self.layers = nn.ModuleList(Layer() for _ in range(layers))
            self.decoder = nn.Linear(width, 11)
            self.decoder.weight = self.word.weight

    model = Model()
    known = dict(model.named_parameters(remove_duplicate=False))
    for name in frozen:
        known[name].requires_grad_(False)
    answer = function(model)
    groups = list(answer) if hasattr(answer, "__iter__") else []
    if len(groups) != 2:
        return {"not two groups": "None (is a `return` missing?)" if answer is None else f"{len(groups)} things"}
    if any(isinstance(group, dict) for group in groups):
        return {"not a parameter of the model": "dictionary"}
    first, second = (list(group) for group in groups)
    strange = [type(p).__name__ for p in first + second if not any(p is q for q in known.values())]
    if strange:
        return {"not a parameter of the model": strange[0]}
    found = {}
    for name in names:
        counts = tuple(sum(p is known[name] for p in group) for group in (first, second))
        found[name] = {(1, 0): "decay", (0, 1): "no decay", (0, 0): "neither"}.get(counts, "twice")
    return found


@decay_groups.cases
def _(new: Inputs):
    layers, width = new.random.randrange(2, 4), new.random.randrange(3, 8)
    inside = [f"layers.{i}." for i in range(layers)]
    frozen = ["position_embeddings", new.random.choice(inside) + "query.bias"]

    def case(part: str, names: list[str], want: str, frozen: Iterable[str] = ()) -> Case:
        call = Call((layers, width, list(frozen), names), driver=Probe.of(where_parameters_go))
        return Case(part, (call,), holds=lambda a: _all_in(a, want), loose=True)

    matrices = ["position_embeddings", *(i + name for i in inside for name in ("query.weight", "up"))]
    yield case("matrices", matrices, "decay")
    yield case(
        "biases", ["decoder.bias", *(i + name for i in inside for name in ("query.bias", "up_bias"))], "no decay"
    )
    norms = [i + f"{n}.{what}" for i in inside for n in ("LayerNorm", "norm1") for what in ("bias", "weight")]
    yield case("LayerNorm", ["beta", "gamma", *norms], "no decay")
    yield case("tied", ["word.weight", "decoder.weight"], "decay")
    yield case("frozen", frozen, "neither", frozen)
    rest = [name for name in (*matrices, "word.weight") if name not in frozen]
    yield case("frozen", rest, "decay", frozen)  # who is not frozen stays


def _all_in(answer: Answer, want: str) -> str | None:
    for name, where in answer.value.items():
        if name == "not two groups":
            return f"returns {where}: expected two lists of parameters, with decay and without"
        if name.startswith("not a"):
            if where == "dictionary":
                return "the groups are dictionaries: expected two lists of parameters"
            return f"the groups hold a {where}, not the parameters of the model themselves"
        if where != want:
            told = {"decay": "among those with decay", "no decay": "among those without decay",
                    "neither": "in neither group", "twice": "in the groups twice"}  # fmt: skip
            return f"{name} is {told[where]}; it belongs {told[want]}{' once' * (where == 'twice')}"
    return None


@decay_groups.reward
def _(function):
    pretraining_rewards.what_decays(function)


# ---------------------------------------------------------------- 07.2 learning rate

learning_rate = Exercise(
    "07.2", "learning_rate", "learning rate",
    lesson=LESSON, section="Warm up, then slow down", points=3,
    parts=[Part("warm-up"), Part("first step"), Part("decay", 2.0), Part("last step"), Part("no warm-up"),
           Part("after the end", kind="invariant")],
)  # fmt: skip


@learning_rate.reference
def _learning_rate(step, warmup, total, peak):
    rates = [peak * (i + 1) / warmup for i in range(warmup)]  # step: warm-up or first step or no warm-up
    slope = peak / max(1, total - warmup)  # step: decay or last step or no warm-up
    rates += [slope * (total - i) for i in range(warmup, total)]  # step: decay or last step or no warm-up
    rates += [0.0] * (step + 1 - total)  # step: after the end
    return float(rates[step])


@learning_rate.cases
def _(new: Inputs):
    warmup, total = new.random.randrange(8, 14), new.random.randrange(60, 90)
    peak = round(new.random.uniform(0.5, 2.0), 3)

    def case(part: str, step: int, says: str, warmup: int = warmup, total: int = total) -> Case:
        says += f" (step {step}, warm-up {warmup}, total {total}, peak {peak}): off by {{off}}"
        return Case(part, (Call((step, warmup, total, peak)),), says)

    rising, falling = "inside the warm-up the rate is wrong", "after the warm-up the rate is wrong"
    for step in (2, warmup // 2, warmup - 2):
        yield case("warm-up", step, rising)
    first = Call((0, warmup, total, peak))
    yield Case(
        "first step", (first,), holds=lambda a: "step 0 has the rate 0: it learns nothing" if a.value == 0 else None
    )
    yield case("first step", 0, "the first step is wrong")
    yield case("first step", warmup - 1, "the last step of the warm-up has the peak")
    for step in (warmup, warmup + 7, (warmup + total) // 2):
        yield case("decay", step, falling)
    yield Case("last step", (Call((total - 1, warmup, total, peak)),),
               holds=lambda a: "the last step has the rate 0: it learns nothing" if a.value == 0 else None)  # fmt: skip
    yield case("last step", total - 1, "the last step is wrong")
    for step in (0, 1, total // 2, total - 1):
        yield case("no warm-up", step, "without a warm-up the rate is wrong", warmup=0)
    for step in (0, warmup - 1):
        yield case("no warm-up", step, "with nothing but warm-up the rate is wrong", total=warmup)
    for step in (total, total + 1, total + 30):
        yield case("after the end", step, "after the end the rate is not 0")


@learning_rate.canonical
def _(value):
    return float(value) if isinstance(value, (int, torch.Tensor)) and not isinstance(value, bool) else value


@learning_rate.reward
def _(function):
    pretraining_rewards.as_in_the_log(function)


# ---------------------------------------------------------------- 07.3 clip gradients

clip_gradients = Exercise(
    "07.3", "clip_gradients", "clip gradients",
    lesson=LESSON, section="A step that is never too long", points=3,
    parts=[Part("norm"), Part("scale", 2.0), Part("short gradients"), Part("zero gradients", kind="invariant")],
)  # fmt: skip


@clip_gradients.reference
def _clip_gradients(gradients, max_norm):
    total = 0.0
    for gradient in gradients:
        total += sum(number * number for number in gradient.flatten().tolist())  # step: norm
    norm = math.sqrt(total)  # step: norm
    if norm <= max_norm:  # step: scale or short gradients or zero gradients
        return [gradient.clone() for gradient in gradients], norm
    return [gradient * max_norm / norm for gradient in gradients], norm  # step: scale


@clip_gradients.cases
def _(new: Inputs):
    gradients = [new.normal(3, 5, scale=2.0), new.normal(7, scale=0.3), new.normal(2, 3, 2), new.normal(1, 4)]
    norm = math.sqrt(sum(float(g.double().square().sum()) for g in gradients))
    short = [g / norm * 0.4 for g in gradients]
    yield Case("norm", (Call((gradients, 1e6)),), holds=lambda a: _near(a.value[1], norm, "the norm"))
    for limit in (1.0, 0.37 * norm, 0.2):
        says = "a gradient of norm " + f"{norm:.1f}, limited to {limit:.2f}, is off by {{off}}"
        yield Case("scale", (Call((gradients, limit)),), says)
    yield Case("short gradients", (Call((short, 1.0)),), "a gradient that is short already changes by {off}")
    yield Case("norm", (Call((short, 1.0)),), holds=lambda a: _near(a.value[1], 0.4, "the norm"))
    yield Case("zero gradients", (Call(([torch.zeros_like(g) for g in gradients], 1.0)),), "zeros become {off}")


def _near(got, want, what: str) -> str | None:
    """A sentence if a number or a tensor is off; `want` from float32 inputs."""
    got, want = torch.as_tensor(got).double(), torch.as_tensor(want).double()
    if not want.dim() and got.numel() == 1:
        got = got.reshape(())  # a number in a tensor is a number
    if got.shape != want.shape:
        return f"{what} has shape {tuple(got.shape)}, expected {tuple(want.shape)}"
    off = (got - want).abs()
    if bool((off <= RTOL * want.abs() + ATOL * float(want.abs().max())).all()):
        return None
    return f"{what} is off by {float(off.max()):.2g}"


@clip_gradients.canonical
def _(value):
    if not isinstance(value, (list, tuple)) or len(value) != 2 or not isinstance(value[0], (list, tuple)):
        return value
    norm = value[1]
    return list(value[0]), float(norm) if isinstance(norm, torch.Tensor) and norm.numel() == 1 else norm


@clip_gradients.reward
def _(function):
    pretraining_rewards.a_real_gradient(function)


# ---------------------------------------------------------------- 07.4 AdamW step

adamw_step = Exercise(
    "07.4", "adamw_step", "AdamW step",
    lesson=LESSON, section="Adam, by hand", points=5,
    parts=[Part("m"), Part("v"), Part("update", 2.0), Part("eps"), Part("bias correction", 2.0), Part("decay", 2.0),
           Part("defaults")],
)  # fmt: skip


@adamw_step.reference
def _adamw_step(parameter, gradient, m, v, step, lr, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.01,
                bias_correction=True):  # fmt: skip
    b1, b2 = betas
    new_m = gradient + b1 * (m - gradient)  # step: m
    new_v = gradient * gradient + b2 * (v - gradient * gradient)  # step: v
    first, second = 1.0, 1.0  # step: update
    if bias_correction:
        first = 1 - b1**step  # step: bias correction
        second = 1 - b2**step  # step: bias correction
    root = torch.sqrt(new_v / second)  # step: update or bias correction
    root = root + eps  # step: eps or update
    direction = new_m / first / root  # step: update or bias correction
    pull = weight_decay * parameter  # step: decay or update
    change = direction + pull  # step: decay or update
    return parameter - lr * change, new_m, new_v  # step: update


@adamw_step.cases
def _(new: Inputs):
    shape = 3, 5
    parameter, gradient = new.normal(*shape, scale=2.0), new.normal(*shape, scale=1.5)
    m, v = new.normal(*shape), new.normal(*shape).square() + 0.1
    b1, b2 = round(new.random.uniform(0.6, 0.8), 2), round(new.random.uniform(0.85, 0.95), 2)
    state = parameter, gradient, m, v
    plain = {"betas": (b1, b2), "eps": 1e-9, "weight_decay": 0.0, "bias_correction": False}

    def call(step: int = 3, lr: float = 0.3, state: tuple = state, **more) -> Call:
        return Call((*state, step, lr), plain | more)

    want_m, want_v = b1 * m + (1 - b1) * gradient, b2 * v + (1 - b2) * gradient**2
    yield Case("m", (call(),), holds=lambda a: _near(a.value[1], want_m, "the new m"))
    yield Case("v", (call(),), holds=lambda a: _near(a.value[2], want_v, "the new v"))
    for step, lr in ((3, 0.3), (9, 0.05)):
        yield Case("update", (call(step, lr),), "without correction and decay, the new parameter is off by {off}")
    for eps in (0.5, 2.0):
        yield Case("eps", (call(eps=eps),), f"with eps = {eps}, the new parameter is off by {{off}}")
    for step in (1, 2, 7):
        says = f"with bias correction at step {step}, the result is off by {{off}}"
        yield Case("bias correction", (call(step, bias_correction=True, eps=0.2),), says)
    fresh = parameter, gradient, torch.zeros_like(m), torch.zeros_like(v)
    yield Case("bias correction", (call(1, state=fresh, bias_correction=True),), "the very first step is off by {off}")
    for correct in (False, True):
        says = f"with decay{' and bias correction' * correct}, the result is off by {{off}}"
        yield Case("decay", (call(4, weight_decay=0.6, bias_correction=correct),), says)
    still = parameter, torch.zeros_like(gradient), torch.zeros_like(m), torch.zeros_like(v)
    yield Case("decay", (call(4, 0.1, state=still, weight_decay=0.5, eps=1e-6),),
               "without a gradient the parameter just shrinks, by lr · weight_decay of it: off by {off}")  # fmt: skip
    small = parameter, gradient * 1e-6, m * 1e-6, v * 1e-12
    for step in (1, 400):
        yield Case("defaults", (Call((*small, step, 0.3)),), "with the default numbers the result is off by {off}")


@adamw_step.reward
def _(function):
    pretraining_rewards.the_first_steps(function)


# ---------------------------------------------------------------- 07.5 unscale gradients

unscale_gradients = Exercise(
    "07.5", "unscale_gradients", "unscale gradients",
    lesson=LESSON, section="Sixteen bits", points=2,
    parts=[Part("divided"), Part("small gradients", 2.0), Part("finite", 2.0)],
)  # fmt: skip


@unscale_gradients.reference
def _unscale_gradients(gradients, scale):
    wide = [gradient.double() for gradient in gradients]  # step: small gradients
    divided = [gradient / scale for gradient in wide]  # step: divided or small gradients
    finite = all(
        math.isfinite(number) for gradient in divided for number in gradient.flatten().tolist()
    )  # step: finite
    return divided, finite


@unscale_gradients.cases
def _(new: Inputs):
    scale = 2.0 ** new.random.randrange(9, 13)
    loud = [new.normal(*shape, scale=300.0).half() for shape in ((3, 5), (7,), (2, 3, 2))]

    def spoiled(which: int, number: float) -> list[torch.Tensor]:
        return [g.index_fill(0, torch.tensor([1]), number) if i == which else g for i, g in enumerate(loud)]

    yield Case("divided", (Call((loud, scale)),), holds=lambda a: _divided(a.value[0], loud, scale))
    huge = [torch.full((5,), 60000.0).half(), loud[0], torch.full((2, 3), -60000.0).half()]
    largest = [torch.tensor([65504.0, -65504.0]).half(), loud[0]]
    yield Case("divided", (Call((huge, scale)),), holds=lambda a: _divided(a.value[0], huge, scale))
    faint = [new.normal(*shape, scale=2e-5).half() for shape in ((4, 3), (6,))]
    yield Case("small gradients", (Call((faint, scale)),), holds=lambda a: _divided(a.value[0], faint, scale))
    yield Case("small gradients", (Call((loud, scale)),), holds=lambda a: _all_float32(a.value[0]))
    yield Case("finite", (Call((loud, scale)),), holds=lambda a: _says(a.value[1], True, "all numbers are finite"))
    for large, number in ((huge, "60,000"), (largest, "65,504, the largest of float16")):
        told = f"all numbers are finite, one is {number}"
        yield Case("finite", (Call((large, scale)),), holds=lambda a, told=told: _says(a.value[1], True, told))
    for which, number in ((0, math.inf), (1, -math.inf), (2, math.nan), (0, math.nan), (2, math.inf)):
        told = f"gradient {which} holds {number}"
        yield Case("finite", (Call((spoiled(which, number), scale)),),
                   holds=lambda a, told=told: _says(a.value[1], False, told))  # fmt: skip


def _divided(got: list, gradients: list[torch.Tensor], scale: float) -> str | None:
    for i, (mine, gradient) in enumerate(zip(got, gradients, strict=True)):
        want = gradient.double() / scale
        lost = int(((mine == 0) & (want != 0)).sum())
        if lost:
            return f"{lost} of {want.numel()} numbers of gradient {i} become 0, and are not"
        said = _near(mine, want, f"gradient {i}")
        if said:
            return said
    return None


def _all_float32(got: list) -> str | None:
    kinds = {str(mine.dtype).removeprefix("torch.") for mine in got} - {"float32", "float64"}
    return f"returns {kinds.pop()}: the optimizer needs float32" if kinds else None


def _says(got, want: bool, why: str) -> str | None:
    return None if bool(got) == want else f"{why}, and the second value says {bool(got)}"


@unscale_gradients.canonical
def _(value):
    if not isinstance(value, (list, tuple)) or len(value) != 2 or not isinstance(value[0], (list, tuple)):
        return value
    finite = value[1]
    return list(value[0]), bool(finite) if isinstance(finite, torch.Tensor) and finite.numel() == 1 else finite


@unscale_gradients.reward
def _(function):
    pretraining_rewards.what_sixteen_bits_lose(function)


# ---------------------------------------------------------------- 07.6 training step

training_step = Exercise(
    "07.6", "training_step", "training step",
    lesson=LESSON, section="A large batch in small bites", points=6, seconds=10,  # the first backward imports a lot
    parts=[Part("one step", kind="invariant"), Part("gradient"), Part("old gradients"), Part("global count", 2.0),
           Part("clipping"), Part("loss"), Part("small bites", kind="invariant"), Part("train mode", kind="invariant"),
           Part("no waiting", kind="invariant")],
)  # fmt: skip


@training_step.reference
def _training_step(model, optimizer, micro_batches, max_norm):
    parameters = list(model.parameters())
    model.train()
    count = 0
    for _, labels in micro_batches:
        count += sum(label != -100 for label in labels.flatten().tolist())  # step: global count or gradient
    sums, total = [torch.zeros_like(p) for p in parameters], torch.zeros((), dtype=parameters[0].dtype)
    for ids, labels in micro_batches:
        chances = model(ids).softmax(-1).flatten(0, 1)
        asked = [(i, label) for i, label in enumerate(labels.flatten().tolist()) if label != -100]  # step: gradient
        surprises = [-chances[i, label].log() / count for i, label in asked]  # step: gradient or global count
        loss = torch.stack([0 * chances.sum(), *surprises]).sum()
        grads = torch.autograd.grad(loss, parameters)
        sums = [s + g for s, g in zip(sums, grads, strict=True)]  # step: global count or gradient
        total = total + loss.detach()  # step: loss or no waiting
    norm = torch.stack([(s * s).sum() for s in sums]).sum().sqrt()  # step: clipping or gradient
    scale = torch.clamp(max_norm / norm, max=1.0)  # step: clipping or gradient
    for parameter, s in zip(parameters, sums, strict=True):
        parameter.grad = s * scale  # step: clipping or gradient
    optimizer.step()
    return total


def one_step(function, weights, micro_batches, max_norm, about, old=0.0):
    """Ask for one step on a small model, with an optimizer that notes what it sees -> what `about` names.

    old: what the gradients hold before, as after an earlier step. The model comes from an evaluation.
    """
    events: list = []
    seen: list = []

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            for name, value in weights.items():
                self.register_parameter(name, torch.nn.Parameter(value.clone()))

        def forward(self, ids):  # (B, S) -> (B, S, V)
            forward = "forward" if self.training else "forward in eval mode"
            events.append(forward if torch.is_grad_enabled() else "look")  # under no_grad nothing is kept
            logits = torch.tanh(self.table[ids] @ self.dense) @ self.table.T + self.bias
            if logits.requires_grad:
                logits.register_hook(lambda grad: events.append("backward"))
            return logits

    class Optimizer:
        def __init__(self, parameters):
            self.param_groups = [{"params": list(parameters), "lr": 0.1}]

        def zero_grad(self, set_to_none=True):
            events.append("zero_grad")
            for p in self.param_groups[0]["params"]:
                p.grad = None if set_to_none else torch.zeros_like(p)

        def step(self):
            found = [p.grad for p in self.param_groups[0]["params"]]
            events.append("step" if all(g is not None for g in found) else "step without gradients")
            seen.append(
                [torch.zeros_like(w) if g is None else g.clone() for g, w in zip(found, weights.values(), strict=True)]
            )
            with torch.no_grad():
                for p, g in zip(self.param_groups[0]["params"], seen[-1], strict=True):
                    p -= self.param_groups[0]["lr"] * g

    class Watch(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, torch_function, types, args=(), kwargs=None):
            name = getattr(torch_function, "__name__", "")
            if name in ("item", "tolist", "__float__") and args and args[0].is_floating_point():
                events.append("wait")
            return torch_function(*args, **(kwargs or {}))

    model = Model().eval()
    for p in model.parameters():
        p.grad = torch.full_like(p, old) if old else None
    optimizer = Optimizer(model.parameters())
    with Watch():
        loss = function(model, optimizer, micro_batches, max_norm)
    if about == "loss":
        return loss.detach() if isinstance(loss, torch.Tensor) else loss
    if about == "gradient":
        return seen[0] if seen else []
    return events + ["graph"] * (isinstance(loss, torch.Tensor) and loss.requires_grad)


@training_step.cases
def _(new: Inputs):
    size, width, length = 13, 6, 7
    weights = {"table": new.normal(size, width), "dense": new.normal(width, width), "bias": new.normal(size)}

    def batch(asked: int, rows: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Ids and labels, `asked` of them not −100; 0 is a piece like any other."""
        ids, labels = new.integers(0, size, rows, length), torch.full((rows * length,), -100)
        places = new.random.sample(range(rows * length), asked)
        labels[places] = new.integers(1, size, asked)
        if asked > 1:
            labels[places[0]] = 0
        return ids, labels.view(rows, length)

    one, several = [batch(5, 3)], [batch(2, 2), batch(9, 3), batch(4, 2)]
    with_empty = [batch(3, 2), batch(0, 2), batch(8, 3)]

    def ask(about: str, batches: list, max_norm: float = 1e6, old: float = 0.0) -> Call:
        return Call((weights, batches, max_norm, about, old), driver=Probe.of(one_step))

    yield Case("one step", (ask("order", one),), holds=_one_step, loose=True)
    yield Case("one step", (ask("order", several),), holds=_one_step, loose=True)
    yield Case("gradient", (ask("gradient", one),), "one micro-batch: the gradient is off by {off}")
    yield Case("old gradients", (ask("gradient", one, old=0.7),),
               "what the last step left in the gradients is still there: off by {off}")  # fmt: skip
    yield Case("global count", (ask("gradient", several),),
               "three micro-batches with 2, 9 and 4 labels: the gradient is off by {off}")  # fmt: skip
    yield Case("global count", (ask("gradient", with_empty),),
               "three micro-batches, one without any label: the gradient is off by {off}")  # fmt: skip
    for limit in (0.05, 0.3):
        yield Case("clipping", (ask("gradient", several, limit),),
                   f"the gradient that the optimizer sees, limited to norm {limit}, is off by {{off}}")  # fmt: skip
    for batches in (one, several, with_empty):
        yield Case("loss", (ask("loss", batches),), "the returned loss is off by {off}")
    yield Case("small bites", (ask("order", several),), holds=_in_bites, loose=True)
    yield Case("train mode", (ask("order", one),), holds=_in_train_mode, loose=True)
    yield Case("no waiting", (ask("order", several),), holds=_no_waiting, loose=True)


@training_step.canonical
def _(value):
    """Events that judge nothing are left out, and a loss is a number; gradients stay."""
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return [item for item in value if item != "zero_grad"]
    return float(value) if isinstance(value, torch.Tensor) and value.numel() == 1 else value


def _one_step(answer: Answer) -> str | None:
    events = answer.value
    steps = [event for event in events if event.startswith("step")]
    if not steps:
        return "optimizer.step() is never called"
    if "backward" not in events:
        return "nothing is sent backward through the model"
    if "step without gradients" in steps:
        return "when optimizer.step() is called, there are no gradients"
    if len(steps) > 1:
        return f"optimizer.step() is called {len(steps)} times: all micro-batches together are one step"
    last = max(i for i, event in enumerate(events) if event == "backward")
    return "optimizer.step() is called before the gradients are there" if events.index(steps[0]) < last else None


def _in_bites(answer: Answer) -> str | None:
    """No second forward while the first is not sent back: else nothing is saved."""
    waiting = most = 0
    for event in answer.value:
        waiting += event.startswith("forward") - (event == "backward")
        most = max(most, waiting)
    looks = answer.value.count("look")
    if looks:
        return f"the model is run {looks} more times under no_grad: one pass a micro-batch has all that is needed"
    forwards = sum(event.startswith("forward") for event in answer.value)
    if forwards == 1:
        return "the micro-batches are put together again: that needs the memory of the whole batch"
    if most > 1:
        return f"{most} micro-batches are in memory at once: send each one back before the next goes forward"
    return None


def _in_train_mode(answer: Answer) -> str | None:
    return "the model is still in eval mode: no dropout" if "forward in eval mode" in answer.value else None


def _no_waiting(answer: Answer) -> str | None:
    if "graph" in answer.value:
        return "the returned loss holds on to the graph: the memory of the step is not given back"
    waits = answer.value.count("wait")
    if waits:
        return f"a number is asked of a tensor {waits} times (item or float): each time a GPU has to finish first"
    return None


@training_step.reward
def _(function):
    pretraining_rewards.a_real_step(function)


# Known mistakes and right alternatives register themselves with the exercises above.
from coursework.checks import pretraining_alternatives, pretraining_mistakes  # noqa: E402, F401
