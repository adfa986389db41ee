"""Unit 08: classification. B texts a batch, S tokens, D features, K classes, n texts in all.

Here are the exercises: what is asked, the right answer, and how each step of it is seen on its own. The known
mistakes and the right alternatives stand in classification_mistakes.py and classification_alternatives.py.

Where an exercise takes a model, a small one is made where the student's code runs, by a driver that notes in which
mode it was asked. Its dropout is no chance: which features are dropped depends on how often it was asked, so that
two right answers get the same weights, and a layer in the wrong mode shows in the numbers.
"""

import math

import torch

from coursework.checks import classification_rewards
from coursework.checks.engine import Answer, Call, Case, Exercise, Inputs, Part
from coursework.runner import Probe

LESSON = "08_classification"

# ---------------------------------------------------------------- 08.1 classification head

classification_head = Exercise(
    "08.1", "classification_head", "classification head",
    lesson=LESSON, section="A head on the pooled vector", points=3,
    parts=[Part("linear", 2.0), Part("bias"), Part("gradient", kind="gradient"), Part("eval mode"),
           Part("everything dropped"), Part("dropout", 2.0)],
)  # fmt: skip


@classification_head.reference
def _classification_head(pooled, weight, bias, p=0.1, training=False):
    if training:  # step: eval mode or everything dropped or dropout
        keep = torch.rand_like(pooled) >= p  # step: everything dropped or dropout
        scale = 1 / (1 - p) if p < 1 else 0.0  # step: dropout or everything dropped
        pooled = keep * pooled * scale  # step: dropout or everything dropped
    products = pooled[:, None] * weight  # step: linear or dropout
    return products.sum(-1) + bias  # step: linear or bias or dropout or everything dropped


@classification_head.cases
def _(new: Inputs):
    batch, width, classes = 5, 7, 3
    pooled, weight = new.normal(batch, width).tanh() * 2, new.normal(classes, width)
    bias = new.normal(classes, scale=2.0, mean=3.0)
    zero = torch.zeros_like(bias)
    plain = {"p": 0.0, "training": False}
    yield Case("linear", (Call((pooled, weight, zero), plain),), "without dropout and bias the logits are off by {off}")
    yield Case("bias", (Call((pooled, weight, bias), plain),), "with a bias the logits are off by {off}")
    yield Case("gradient", (Call((pooled, weight, bias), plain, (0, 1, 2), (new.normal(batch, classes),)),))
    off = "outside training nothing may be dropped, whatever p is: off by {off}"
    for p in (0.4, 1.0):
        yield Case("eval mode", (Call((pooled, weight, bias), {"p": p, "training": False}),), off)
    yield Case("eval mode", (Call((pooled, weight, bias)),), "with the default arguments the logits are off by {off}")
    yield Case("everything dropped", (Call((pooled, weight, bias), {"p": 1.0, "training": True}),),
               "when every feature is dropped (p = 1) only the bias remains: off by {off}")  # fmt: skip
    yield Case("everything dropped", (Call((pooled, weight, bias), {"p": 0.0, "training": True}),),
               "with p = 0 nothing is dropped in training either: off by {off}")  # fmt: skip
    ones, features = torch.ones(80, 60, dtype=new.dtype), torch.eye(60, dtype=new.dtype)
    nothing = torch.zeros(60, dtype=new.dtype)
    for p in (0.25, 0.6):
        how, seed = {"p": p, "training": True}, new.random.randrange(10**6)
        call = Call((ones, features, nothing), how, seed=seed)
        yield Case("dropout", (call,), holds=lambda a, p=p: _dropped(a, p), random=True)
        alike = Call((ones, torch.ones_like(features[:classes]), nothing[:classes]), how, seed=seed)
        yield Case("dropout", (alike,), holds=_dropped_for_all_classes, random=True)


def _dropped(answer: Answer, p: float) -> str | None:
    """Ones through the identity: what comes out is the dropout itself, (80, 60)."""
    out = answer.value.double()
    zeros = out == 0
    if not bool(zeros.any()):
        return f"in training nothing is dropped (p = {p})"
    if bool((zeros == zeros[:1]).all()):
        return "all texts of the batch lose the same features: draw for each number by itself"
    if bool((zeros == zeros[:, :1]).all()):
        return "a text loses all its features or none: draw for each number by itself"
    share = float(zeros.double().mean())
    if abs(share - p) > 0.06:
        return f"{share:.0%} of the features are dropped, asked for {p:.0%}"
    kept = out[~zeros]
    if float((kept - 1 / (1 - p)).abs().max()) > 1e-4:
        return f"kept features come out as {float(kept.mean()):.2f} times themselves; expected 1 / (1 − p) times"
    return None


def _dropped_for_all_classes(answer: Answer) -> str | None:
    """With weights of 1 all classes have the same score, if they read the same features. (80, K)."""
    out = answer.value
    if float((out - out[:, :1]).abs().max()) < 1e-3:
        return None
    return "each class reads other features: drop from the pooled vector, once for all classes"


@classification_head.reward
def _(function):
    classification_rewards.the_same_head_as_before(function)


# ---------------------------------------------------------------- 08.2 evaluate

evaluate = Exercise(
    "08.2", "evaluate", "evaluate",
    lesson=LESSON, section="One number for a whole set", points=4,
    parts=[Part("accuracy"), Part("F1"), Part("MCC"), Part("batches", 2.0), Part("one answer for all")],
)  # fmt: skip


@evaluate.reference
def _evaluate(batches):
    tp = fp = fn = tn = 0
    for logits, labels in batches:
        for (no, yes), label in zip(logits.tolist(), labels.tolist(), strict=True):
            said = int(yes > no)
            tp += said * label
            fp += said * (1 - label)
            fn += (1 - said) * label
            tn += (1 - said) * (1 - label)
    right = tp + tn  # step: accuracy
    both = 2 * tp + fp + fn  # step: F1
    f1 = 2 * tp / both if both else 0.0  # step: F1 or one answer for all
    covariance = tp * tn - fp * fn  # step: MCC
    spread = (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)  # step: MCC or one answer for all
    mcc = covariance / math.sqrt(spread) if spread else 0.0  # step: MCC or one answer for all
    return {"accuracy": right / (right + fp + fn), "f1": f1, "mcc": mcc}  # step: accuracy


@evaluate.cases
def _(new: Inputs):
    def batch(tp: int, fp: int, fn: int, tn: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Logits (B, 2) and labels (B,) with these counts. The sign of a logit says nothing, only which is larger."""
        pairs = [(1, 1)] * tp + [(1, 0)] * fp + [(0, 1)] * fn + [(0, 0)] * tn  # said, label
        new.random.shuffle(pairs)
        said, labels = (torch.tensor(column) for column in zip(*pairs, strict=True))
        low = new.normal(len(pairs), scale=4.0)
        high = low + new.normal(len(pairs)).abs() + 0.1
        logits = torch.where((said == 1)[:, None], torch.stack([low, high], 1), torch.stack([high, low], 1))
        return logits, labels

    def some(low: int) -> int:
        return low + new.random.randrange(3)

    good, poor = [batch(some(9), some(5), some(1), some(3))], [batch(some(1), some(5), some(7), some(2))]
    for part, key in (("accuracy", "accuracy"), ("F1", "f1"), ("MCC", "mcc")):
        for one in (good, poor):
            want = _evaluate(one)[key]
            yield Case(part, (Call((one,)),), holds=lambda a, key=key, want=want: _score(a, key, want))
    several = [batch(some(1), 0, some(4), 0), batch(some(9), some(3), some(1), some(2)), batch(0, some(2), 0, some(5)),
               batch(0, 1, 0, 0)]  # fmt: skip
    says = "of four batches of unequal size, the scores are off by {off}"
    yield Case("batches", (Call((several,)),), says)
    yield Case("batches", (Call((several[::-1],)),), "the same batches in another order: off by {off}")
    always, never = [batch(some(7), some(3), 0, 0), batch(2, 1, 0, 0)], [batch(0, 0, some(3), some(6))]
    yield Case("one answer for all", (Call((always,)),), "who always says 1 has scores that are off by {off}")
    yield Case("one answer for all", (Call((never,)),), "who never says 1 has scores that are off by {off}")
    none = [batch(0, 0, 0, some(4))]
    yield Case("one answer for all", (Call((none,)),), "where no label is 1 and nobody says so: off by {off}")
    ones, zeros = [batch(some(2), 0, some(2), 0)], [batch(0, some(2), 0, some(2))]
    yield Case("one answer for all", (Call((ones,)),), "where every label is 1, and not every answer: off by {off}")
    yield Case("one answer for all", (Call((zeros,)),), "where every label is 0, and not every answer: off by {off}")
    wrong = [batch(0, some(2), some(3), 0)]
    yield Case("one answer for all", (Call((wrong,)),), "where every answer is wrong, the scores are off by {off}")


def _score(answer: Answer, key: str, want: float) -> str | None:
    got = float(answer.value[key])
    if abs(got - want) <= 1e-5:
        return None
    digits = 4 if f"{got:.4g}" != f"{want:.4g}" else 7  # as many as it takes to see the difference
    return f"on a single batch {key} is {got:.{digits}g}, expected {want:.{digits}g}"


@evaluate.canonical
def _(value):
    if not isinstance(value, dict):
        return value
    numbers = {k: float(v) if isinstance(v, torch.Tensor) and v.numel() == 1 else v for k, v in value.items()}
    return dict(sorted(numbers.items(), key=lambda item: str(item[0])))


@evaluate.reward
def _(function):
    classification_rewards.a_lazy_judge(function)


# ---------------------------------------------------------------- 08.3 fine-tune

fine_tune = Exercise(
    "08.3", "fine_tune", "fine-tune",
    lesson=LESSON, section="The loop, once more", points=6,
    parts=[Part("loss", 2.0), Part("one step"), Part("old gradients"), Part("learning rate"), Part("all batches", 2.0),
           Part("train mode", 2.0), Part("frozen weights", 2.0), Part("frozen dropout", 2.0), Part("head's dropout"),
           Part("plain numbers", kind="invariant")],
)  # fmt: skip


@fine_tune.reference
def _fine_tune(model, make_optimizer, batches, epochs, lr, frozen=False):
    parameters = list(model.head.parameters()) if frozen else list(model.parameters())  # step: frozen weights
    optimizer = make_optimizer(parameters, lr)
    losses = []
    for number in range(epochs * len(batches)):  # step: all batches
        ids, labels = batches[number % len(batches)]  # step: all batches
        model.train()  # step: train mode
        if frozen:
            model.encoder.eval()  # step: frozen dropout
        logits = model(ids)
        wrong = torch.logsumexp(logits, 1) - logits[range(len(labels)), labels]  # step: loss
        loss = wrong.sum() / len(labels)  # step: loss or one step
        gradients = torch.autograd.grad(loss, parameters)
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.grad = gradient
        optimizer.step()
        losses.append(loss.item())
    return losses


def one_run(function, weights, batches, epochs, lr, frozen, about, drop=False, old=0.0, again=False):
    """Ask to fine-tune a small model that comes in eval mode -> what `about` names.

    drop: whether its layers drop anything in train mode; old: what the gradients hold before; again: whether the
    same model has been fine-tuned before, frozen.
    """
    nn, events, read, learned = torch.nn, [], [], []

    class Dropping(nn.Module):
        """Every third feature, beginning with another one each time it is asked in train mode."""

        def __init__(self, name, **tensors):
            super().__init__()
            self.name, self.asked = name, 0
            for key, tensor in tensors.items():
                self.register_parameter(key, nn.Parameter(tensor.clone()))

        def dropped(self, x):
            events.append(self.name + (" trains" if self.training else " in eval mode"))
            if not (self.training and drop):
                return x
            self.asked += 1
            return x * ((torch.arange(x.size(1), device=x.device) + self.asked) % 3 != 0) * 1.5

    class Encoder(Dropping):
        def forward(self, ids):  # (B, S) -> (B, D)
            return self.dropped(torch.tanh(self.table[ids].mean(1) @ self.dense))

    class Head(Dropping):
        def forward(self, pooled):  # (B, D) -> (B, K)
            read.append(pooled.size(0))
            return self.dropped(pooled) @ self.weight.T + self.bias

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder = Encoder("encoder", table=weights["table"], dense=weights["dense"])
            self.head = Head("head", weight=weights["weight"], bias=weights["bias"])

        def forward(self, ids):  # (B, S) -> (B, K)
            return self.head(self.encoder(ids))

    class Optimizer:
        """Descent with momentum and decay. As torch's own: who has no gradient stays."""

        def __init__(self, parameters, lr):
            found = [p["params"] if isinstance(p, dict) else [p] for p in parameters]
            self.all = [p for group in found for p in group]
            self.lr, self.before = lr, {}

        def zero_grad(self, set_to_none=True):
            for p in self.all:
                p.grad = None

        @torch.no_grad()
        def step(self):
            events.append("step")
            learned.extend(read[-1:])  # the size of the batch that was read last
            for p in self.all:
                if p.grad is not None:
                    self.before[p] = 0.5 * self.before.get(p, 0.0) + p.grad + 0.1 * p
                    p -= self.lr * self.before[p]

    model = Model().eval()
    for p in model.parameters():
        p.grad = torch.full_like(p, old) if old else None
    if again:
        function(model, Optimizer, batches, epochs, lr, True)
    losses = function(model, Optimizer, batches, epochs, lr, frozen)
    found = {name.rpartition(".")[2]: p.detach() for name, p in model.named_parameters()}
    if about == "weights":
        return found
    if about == "moved":
        return [name for name, p in found.items() if not torch.equal(p, weights[name])]
    if about == "events":
        return events
    if about == "order":
        return learned
    losses = losses.unbind() if isinstance(losses, torch.Tensor) and losses.dim() == 1 else losses
    if about == "kinds" and isinstance(losses, (list, tuple)):
        return ["graph" if getattr(loss, "requires_grad", False) else "number" for loss in losses]
    if isinstance(losses, (list, tuple)):
        return [loss.item() if isinstance(loss, torch.Tensor) and loss.numel() == 1 else loss for loss in losses]
    return losses


@fine_tune.cases
def _(new: Inputs):
    pieces, width, classes, length = 11, 6, 4, 5
    weights = {"table": new.normal(pieces, width, scale=1.5), "dense": new.normal(width, width),
               "weight": new.normal(classes, width, scale=1.5), "bias": new.normal(classes, scale=2.0)}  # fmt: skip
    # Each batch has the label 0, and another one: a loss that leaves out 0 is off, and still a number.
    zero, sizes = torch.zeros(1, dtype=torch.int64), (3, 7, 2)
    batches = [(new.integers(0, pieces, size, length), torch.cat([zero, new.integers(1, classes, size - 1)]))
               for size in sizes]  # fmt: skip
    one, lr = batches[:1], round(new.random.uniform(0.1, 0.2), 3)

    def ask(about: str, batches: list, epochs: int = 1, lr: float = lr, frozen: bool = False, **more) -> Call:
        return Call((weights, batches, epochs, lr, frozen, about), more, driver=Probe.of(one_run))

    yield Case("loss", (ask("losses", one),), "the loss of one batch is off by {off}")
    yield Case("one step", (ask("moved", one),), holds=_moved, loose=True)
    yield Case("one step", (ask("weights", one),), "after one step the weights are off by {off}")
    yield Case("old gradients", (ask("weights", one, old=0.7),),
               "what stood in the gradients before is in the step: the weights are off by {off}")  # fmt: skip
    yield Case("learning rate", (ask("weights", one, lr=0.5),), "with lr = 0.5 the weights are off by {off}")
    yield Case("all batches", (ask("events", batches, 2),), holds=lambda a: _steps(a, 6), loose=True)
    yield Case("all batches", (ask("order", batches, 3),), holds=lambda a: _in_order(a, sizes * 3), loose=True)
    yield Case("all batches", (ask("losses", batches, 3),), "three batches, three epochs: the losses are off by {off}")
    yield Case("all batches", (ask("weights", batches, 2),), "after six steps the weights are off by {off}")
    modes = ask("events", batches, 2, drop=True)
    still = "is asked in eval mode: nothing is dropped while it learns"
    yield Case("train mode", (modes,), holds=lambda a: _mode(a, "in eval mode", still), loose=True)
    yield Case("train mode", (ask("weights", batches, 2, drop=True),), "with dropout, the weights are off by {off}")
    yield Case("frozen weights", (ask("moved", batches, 2, frozen=True),), holds=_only_the_head, loose=True)
    yield Case("frozen weights", (ask("weights", batches, 2, frozen=True),),
               "frozen, without dropout: the weights are off by {off}")  # fmt: skip
    yield Case("frozen weights", (ask("moved", batches, again=True),), holds=_thawed, loose=True)
    frozen = ask("events", batches, 2, frozen=True, drop=True)
    noisy = "is frozen and still drops features: it is in train mode"
    yield Case("frozen dropout", (frozen,), holds=lambda a: _mode(a, "encoder trains", noisy), loose=True)
    sure = "learns, and is in eval mode: nothing is dropped"
    yield Case("head's dropout", (frozen,), holds=lambda a: _mode(a, "head in eval mode", sure), loose=True)
    yield Case("head's dropout", (ask("weights", batches, 2, frozen=True, drop=True),),
               "frozen, with dropout in the head: the weights are off by {off}")  # fmt: skip
    yield Case("plain numbers", (ask("kinds", batches),), holds=_plain_numbers, loose=True)


def _moved(answer: Answer) -> str | None:
    if not answer.value:
        return "nothing has been learned: no weight is changed"
    still = [name for name in ("table", "dense", "weight", "bias") if name not in answer.value]
    return f"not everything learns: {' and '.join(still)} did not move" if still else None


def _only_the_head(answer: Answer) -> str | None:
    moved = [name for name in answer.value if name in ("table", "dense")]
    if moved:
        return f"the encoder is frozen, and its {' and '.join(moved)} moved"
    still = [name for name in ("weight", "bias") if name not in answer.value]
    return f"with a frozen encoder the head learns, but its {' and '.join(still)} did not move" if still else None


def _thawed(answer: Answer) -> str | None:
    still = [name for name in ("table", "dense") if name not in answer.value]
    says = "fine-tuned once more, not frozen this time, the model learns with its head only"
    return f"{says}: the encoder's {' and '.join(still)} did not move" if still else None


def _in_order(answer: Answer, want: tuple[int, ...]) -> str | None:
    """Batches are told apart by their sizes. Another number of steps is another part of the story."""
    got = answer.value
    if sorted(got) != sorted(want) or tuple(got) == want:
        return None
    return f"the batches are learned in another order than given: {got} texts, expected {list(want)}"


def _steps(answer: Answer, want: int) -> str | None:
    steps = answer.value.count("step")
    return None if steps == want else f"three batches, two epochs: {steps} steps, expected {want}"


def _mode(answer: Answer, wrong: str, says: str) -> str | None:
    found = next((event for event in answer.value if event.endswith(wrong)), None)
    return f"the {found.split()[0]} {says}" if found else None


def _plain_numbers(answer: Answer) -> str | None:
    if "graph" in answer.value:
        return "the returned losses hold on to their graphs: the memory of every step stays taken"
    return None


@fine_tune.canonical
def _(value):
    """Of events only what judges: how many steps, and who was in which mode. Other lists of words stay."""
    words = isinstance(value, list) and all(isinstance(item, str) for item in value)
    if words and any(" " in item for item in value):
        return [str(value.count("step")), *sorted({item for item in value if " " in item})]
    return value


@fine_tune.reward
def _(function):
    classification_rewards.twelve_reviews(function)


# ---------------------------------------------------------------- 08.4 predict

predict = Exercise(
    "08.4", "predict", "predict",
    lesson=LESSON, section="Answers for strangers", points=5,
    parts=[Part("probabilities", 2.0), Part("eval mode"), Part("padding", 2.0), Part("order", 2.0), Part("batches"),
           Part("by length"), Part("no gradients"), Part("mode afterwards", kind="invariant")],
)  # fmt: skip


@predict.reference
def _predict(model, sequences, batch):
    was_training = model.training
    model.eval()  # step: eval mode
    rows: dict[int, torch.Tensor] = {}
    place = {id(row): number for number, row in enumerate(sequences)}
    todo = sorted(sequences, key=len)  # step: by length
    with torch.no_grad():
        while todo:
            some, todo = todo[:batch], todo[batch:]
            longest = len(some[-1])
            ids = torch.tensor([row + [0] * (longest - len(row)) for row in some])  # step: padding
            mask = torch.tensor(
                [[1] * len(row) + [0] * (longest - len(row)) for row in some]
            )  # step: padding or probabilities
            for row, logits in zip(some, model(ids, mask), strict=True):
                grown = torch.exp(logits - logits.max())  # step: probabilities
                rows[place[id(row)]] = grown / grown.sum()  # step: probabilities
    model.train(was_training)
    return torch.stack([rows[number] for number in range(len(sequences))])


def ask_to_predict(function, weights, sequences, batch, training, about):
    """Ask for the probabilities of a small model's classes -> them, or how the model was asked and left."""
    calls, lengths = [], [len(row) for row in sequences]

    class Thinned(torch.nn.Module):
        """A part with a mode of its own: in train mode it drops every third feature."""

        def forward(self, x):
            return x * (torch.arange(x.size(1), device=x.device) % 3 != 0) * 1.5 if self.training else x

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.thinned = Thinned()
            for name, value in weights.items():
                self.register_parameter(name, torch.nn.Parameter(value.clone()))

        def forward(self, ids, mask):  # (B, S), (B, S) of 1 and 0 -> (B, K)
            real = mask[:, :, None].to(self.table.dtype)
            x = (self.table[ids] + self.position[: ids.size(1)]) * real  # (B, S, D)
            logits = self.thinned(torch.tanh(x.sum(1) / real.sum(1))) @ self.weight.T + self.bias
            other = bool((ids[mask == 0] != 0).any())  # something else than 0 where nothing should be
            calls.append([ids.size(0), ids.size(1), other, logits.requires_grad])
            return logits

    model = Model().train(training)
    out = function(model, sequences, batch)
    if about == "calls":
        graph = isinstance(out, torch.Tensor) and out.requires_grad
        modes = [part.training for part in model.modules()]  # the whole first
        learns = all(p.requires_grad for p in model.parameters())
        asked = {"calls": calls, "lengths": lengths, "batch": batch}
        return asked | {"graph": graph, "modes": modes, "learns": learns}
    return out


@predict.cases
def _(new: Inputs):
    pieces, width, classes = 17, 6, 4
    weights = {"table": new.normal(pieces, width, scale=2.0), "position": new.normal(12, width),
               "weight": new.normal(classes, width, scale=2.0), "bias": new.normal(classes)}  # fmt: skip
    weights["table"][0] += 3.0  # padding that is read is heard

    def sequence(length: int) -> list[int]:
        return new.integers(1, pieces, length).tolist()

    def ask(sequences: list, batch: int, training: bool = False, about: str = "probabilities") -> Call:
        return Call((weights, sequences, batch, training, about), driver=Probe.of(ask_to_predict))

    alike, rising = [sequence(5) for _ in range(3)], [sequence(n) for n in (2, 4, 7)]
    yield Case("probabilities", (ask(alike, 3),), "for texts of one length the probabilities are off by {off}")
    yield Case("probabilities", (ask(alike[:1], 3),), "for a single text the probabilities are off by {off}")
    yield Case("eval mode", (ask(alike, 3, training=True),), "a model that comes in train mode: off by {off}")
    yield Case("padding", (ask(rising, 3),), "for texts of 2, 4 and 7 tokens the probabilities are off by {off}")
    with_zero = [[*text[:1], 0, *text[1:]] for text in rising]  # a token as any other
    yield Case("padding", (ask(with_zero, 3),), "of texts with a 0 among their ids the probabilities are off by {off}")
    yield Case("padding", (ask(rising, 3, about="calls"),), holds=_padded_with_0, loose=True)
    # Sorted, a text goes from place i to another one, and no place is where its text came from: an order that is
    # put back the wrong way round differs.
    lengths = [6, 2, 9, 4, 11, 3, 8]
    start = new.random.randrange(7)
    mixed = [sequence(n) for n in lengths[start:] + lengths[:start]]
    while not _length_alone_saves(mixed, 2):
        mixed = [sequence(n) for n in lengths[start:] + lengths[:start]]
    says = "for seven texts of mixed lengths the probabilities are off by {off}"
    yield Case("order", (ask(mixed, 7),), says + ", all in one batch")
    for batch in (3, 2):
        yield Case("order", (ask(mixed, batch),), f"{says}, {batch} a batch")
    yield Case("batches", (ask(mixed, 3, about="calls"),), holds=lambda a: _calls(a, 7, 3), loose=True)
    yield Case("batches", (ask(mixed, 1),), f"{says}, one a batch")
    yield Case("by length", (ask(mixed, 2, about="calls"),), holds=_width, loose=True)
    yield Case("no gradients", (ask(mixed, 3, about="calls"),), holds=_no_gradients, loose=True)
    for training in (True, False):
        yield Case("mode afterwards", (ask(mixed, 3, training, "calls"),), loose=True,
                   holds=lambda a, training=training: _afterwards(a, training))  # fmt: skip


def _calls(answer: Answer, count: int, batch: int) -> str | None:
    sizes = [size for size, *_ in answer.value["calls"]]
    if sum(sizes) != count:
        return f"{count} texts, and the model was asked about {sum(sizes)}"
    if max(sizes) > batch:
        return f"{max(sizes)} texts at once; at most {batch} fit into memory"
    if len(sizes) > -(-count // batch):
        return f"{count} texts in {len(sizes)} batches; {-(-count // batch)} of at most {batch} are enough"
    return None


def _positions(lengths: list[int], batch: int) -> int:
    """What is read, padding included, of texts of these lengths in this order."""
    groups = [lengths[i : i + batch] for i in range(0, len(lengths), batch)]
    return sum(len(group) * max(group) for group in groups)


def _sorted_positions(lengths: list[int], batch: int) -> tuple[int, int]:
    """What is read of texts sorted by length: the better way round and the other."""
    ways = [_positions(sorted(lengths, reverse=down), batch) for down in (False, True)]
    return min(ways), max(ways)


def _length_alone_saves(sequences: list[list[int]], batch: int) -> bool:
    """Sorting by ids, by their sum or not at all costs more than sorting by length, up or down, and each differs."""
    orders = [[len(row) for row in order] for order in (sorted(sequences), sorted(sequences, key=sum), sequences)]
    read = [_positions(order, batch) for order in orders]
    least = min(read + [_positions(order[::-1], batch) for order in orders])
    return least > _sorted_positions(orders[0], batch)[1] and len(set(read)) == 3


def _padded_with_0(answer: Answer) -> str | None:
    if any(other for _, _, other, _ in answer.value["calls"]):
        return "the mask is right, but the ids that it hides are not 0"
    return None


def _width(answer: Answer) -> str | None:
    """Positions with padding, against sorting up or down."""
    lengths, batch = answer.value["lengths"], answer.value["batch"]
    asked = sum(rows * width for rows, width, *_ in answer.value["calls"])
    least, most = _sorted_positions(lengths, batch)
    if asked <= most:
        return None
    return f"the model reads {asked} positions for {sum(lengths)} tokens; with texts of like length together {least}"


def _no_gradients(answer: Answer) -> str | None:
    if answer.value["graph"]:
        return "the probabilities hold on to a graph: memory for gradients that nobody wants"
    if any(graph for *_, graph in answer.value["calls"]):
        return "the model is asked with gradients switched on: it keeps everything for a way back"
    if not answer.value["learns"]:
        return "afterwards the model's weights want no gradients: whoever goes on training it learns nothing"
    return None


def _afterwards(answer: Answer, training: bool) -> str | None:
    came, left = ("train", "eval") if training else ("eval", "train")
    whole, *parts = answer.value["modes"]
    if whole != training:
        return f"the model came in {came} mode and is left in {left} mode"
    if any(part != training for part in parts):
        return f"the model is back in {came} mode, but a part inside it is left in {left} mode"
    return None


@predict.canonical
def _(value):
    """Of how the model was asked only what judges: sorted up or down is the same, as long as little padding is read."""
    if isinstance(value, dict) and "calls" in value:
        calls = value["calls"]
        sizes = [rows for rows, *_ in calls]
        counts = [sum(sizes), max(sizes, default=0), len(sizes)]
        widths = sorted(call[:2] for call in calls) if _width(Answer(value)) else []
        seen = [any(call[2] for call in calls), any(call[3] for call in calls)]
        return [counts, widths, seen, value["graph"], value["modes"], value["learns"]]
    return value


@predict.reward
def _(function):
    classification_rewards.strangers(function)


# Known mistakes and right alternatives register themselves with the exercises above.
from coursework.checks import classification_alternatives, classification_mistakes  # noqa: E402, F401
