"""Unit 06: the model. B batch, S sequence, D features, F inner features, H heads, L layers, V vocabulary.

Here are the exercises: what is asked, the right answer, and how each step of it is seen on its own. The known
mistakes and the right alternatives stand in model_mistakes.py and model_alternatives.py.
"""

import math
import re
from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F

from coursework.checks import model_rewards
from coursework.checks.engine import Answer, Call, Case, Exercise, Inputs, Part
from coursework.runner import Probe

LESSON = "06_model"

# ---------------------------------------------------------------- 06.1 feed-forward

feed_forward = Exercise(
    "06.1", "feed_forward", "feed-forward",
    lesson=LESSON, section="Feed-forward", points=2, draw=True,
    parts=[Part("GELU"), Part("up"), Part("down"), Part("gradient", kind="gradient")],
)  # fmt: skip


@feed_forward.reference
def _feed_forward(x, weights):
    inner = x @ weights["up.weight"].T + weights["up.bias"]  # (…, F)  # step: up
    inner = inner * (1 + torch.erf(inner / math.sqrt(2))) / 2  # step: GELU
    return inner @ weights["down.weight"].T + weights["down.bias"]  # (…, D)  # step: down


@feed_forward.cases
def _(new: Inputs):
    x, same, plain = new.normal(3, 5, 7, scale=2.0), torch.eye(7, dtype=new.dtype), torch.zeros(7, dtype=new.dtype)
    open_weights = {"up.weight": same, "up.bias": plain, "down.weight": same, "down.bias": plain}
    says = "with weights that change nothing the result should be gelu(x), with erf: yours is off by {off}"
    yield Case("GELU", (Call((x, open_weights)),), says)
    up = {"up.weight": new.normal(7, 7), "up.bias": new.normal(7, scale=2.0)}
    says = "with a second product that changes nothing, gelu(x · Wᵀ + b) is off by {off}"
    yield Case("up", (Call((x, open_weights | up)),), says)
    for shape in ((2, 5, 7), (6, 7), (2, 3, 4, 7)):  # any number of axes before the last
        says = "the result is off by {off}: the second product is wrong"
        yield Case("down", (Call((new.normal(*shape), _inner_weights(new, 7, 11))),), says)
    call = Call((new.normal(2, 5, 7), weights := _inner_weights(new, 7, 11)), wrt=(0, *((1, name) for name in weights)),
                cotangents=(new.normal(2, 5, 7),))  # fmt: skip
    yield Case("gradient", (call,))


def _inner_weights(new: Inputs, width: int, inner: int) -> dict[str, torch.Tensor]:
    return {"up.weight": new.normal(inner, width, scale=1.5 / math.sqrt(width)), "up.bias": new.normal(inner),
            "down.weight": new.normal(width, inner, scale=1.5 / math.sqrt(inner)),
            "down.bias": new.normal(width)}  # fmt: skip


# ---------------------------------------------------------------- 06.2 encoder layer

encoder_layer = Exercise(
    "06.2", "encoder_layer", "encoder layer",
    lesson=LESSON, section="One layer", points=6, draw=True,
    parts=[Part("residual and LayerNorm", 2), Part("feed-forward"), Part("attention"), Part("padding"),
           Part("gradient", kind="gradient"), Part("dropout", 2)],
)  # fmt: skip


@encoder_layer.reference
def _encoder_layer(hidden, weights, num_heads, attention_mask=None, dropout_p=0.0, attention_dropout_p=0.0,
                   training=False):  # fmt: skip
    def linear(x, name):
        return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]

    def norm(x, name):
        x = x - x.mean(dim=2, keepdim=True)  # step: residual and LayerNorm
        x = x / torch.sqrt((x * x).mean(dim=2, keepdim=True) + 1e-12)  # step: residual and LayerNorm
        return weights[f"{name}.weight"] * x + weights[f"{name}.bias"]  # step: residual and LayerNorm

    query, key, value = (linear(hidden, name) for name in ("query", "key", "value"))
    size = hidden.size(2) // num_heads
    contexts = []
    for h in range(num_heads):
        mine = slice(h * size, (h + 1) * size)
        scores = query[:, :, mine] @ key[:, :, mine].mT / math.sqrt(size)  # (B, S, S)  # step: attention
        if attention_mask is not None:
            scores = scores.masked_fill(attention_mask[:, None, :] == 0, -math.inf)  # step: padding or attention
        ratios = F.dropout(scores.softmax(dim=2), attention_dropout_p, training)  # step: dropout or attention
        contexts.append(ratios @ value[:, :, mine])  # step: attention
    attended = linear(torch.cat(contexts, dim=2), "output")  # (B, S, D)  # step: attention
    attended = F.dropout(attended, dropout_p, training)  # step: dropout
    x = norm(hidden + attended, "attention_norm")  # step: residual and LayerNorm or attention
    inner = F.gelu(linear(x, "up"))  # (B, S, F)  # step: feed-forward
    inner = linear(inner, "down")  # step: feed-forward
    inner = F.dropout(inner, dropout_p, training)  # step: dropout
    return norm(x + inner, "norm")  # step: residual and LayerNorm or feed-forward


def _layer_weights(new: Inputs, width: int, inner: int) -> dict[str, torch.Tensor]:
    """Loud weights, biases, γ and β, under the names of exercise 06.2."""
    names = ("query", "key", "value", "output")
    weights = {f"{name}.weight": new.normal(width, width, scale=1.2 / math.sqrt(width)) for name in names}
    weights |= {f"{name}.bias": new.normal(width) for name in names}
    for name in ("attention_norm", "norm"):
        weights |= {f"{name}.weight": new.normal(width, mean=1.5), f"{name}.bias": new.normal(width)}
    return weights | _inner_weights(new, width, inner)


def _plain_norms(weights: dict) -> dict:
    """The same with both LayerNorms at γ = 1 and β = 0."""
    plain = {}
    for name in ("attention_norm", "norm"):
        plain |= {f"{name}.weight": torch.ones_like(weights[f"{name}.weight"])}
        plain |= {f"{name}.bias": torch.zeros_like(weights[f"{name}.bias"])}
    return weights | plain


def _silent(weights: dict, *names: str) -> dict:
    """The same with these linear layers giving 0."""
    return weights | {key: torch.zeros_like(w) for key, w in weights.items() if key.partition(".")[0] in names}


SUB_LAYERS = ("output", "down")  # with these silent, attention and feed-forward add nothing


class _RealTokens:
    """Equal to the reference at real tokens; what stands at padded places is nobody's business."""

    def __init__(self, says: str, want: torch.Tensor, mask: torch.Tensor | None):
        self.says, self.want = says, want
        self.real = torch.ones(want.shape[:2]) == 1 if mask is None else mask == 1

    def __call__(self, answer: Answer) -> str | None:
        value = answer.value[0] if isinstance(answer.value, (tuple, list)) else answer.value
        gap = (value.double() - self.want)[self.real].abs()
        if not bool(gap.isfinite().all()):
            return "the result is infinite in places"
        off, scale = float(gap.max()), float(self.want[self.real].abs().max())
        return None if off <= 1e-4 * max(scale, 1e-30) else self.says.format(off=f"{off:.2g}")


@encoder_layer.cases
def _(new: Inputs):
    batch, heads, length, size = 3, 3, 5, 4
    hidden, weights = new.normal(batch, length, heads * size, mean=0.5), _layer_weights(new, heads * size, 17)
    mask = new.padding_mask(batch, length)

    def case(part: str, says: str, hidden, weights, mask=None, **rates) -> Case:
        doubles = {name: w.double() for name, w in weights.items()}
        want = _encoder_layer(hidden.double(), doubles, heads, mask, **rates)
        return Case(part, (Call((hidden, weights, heads, mask), rates),), holds=_RealTokens(says, want, mask))

    nothing = _silent(weights, *SUB_LAYERS)
    says = "when attention and feed-forward add nothing, LayerNorm(hidden) should come back: off by {off}"
    yield case("residual and LayerNorm", says, hidden, _plain_norms(nothing), mask)
    says = "when attention and feed-forward add nothing, the result is off by {off}: γ and β are not in their places"
    yield case("residual and LayerNorm", says, hidden, nothing, mask)
    quiet = nothing | {"attention_norm.weight": 1e-6 * nothing["attention_norm.weight"],
                       "attention_norm.bias": 1e-6 * nothing["attention_norm.bias"]}  # fmt: skip
    for which, small in (("first", (1e-6 * hidden, nothing)), ("second", (hidden, quiet))):
        says = f"where a token's features hardly differ, the {which} LayerNorm is off by {{off}}: BERT's eps is 1e-12"
        yield case("residual and LayerNorm", says, *small, mask)
    says = "with attention silent the result is off by {off}: the second half of the layer is wrong"
    yield case("feed-forward", says, hidden, _silent(weights, "output"), mask)
    says = "with feed-forward silent the result is off by {off}: the first half of the layer is wrong"
    yield case("attention", says, hidden, _silent(weights, "down"))
    yield case("attention", "the result is off by {off}, although each half alone is right", hidden, weights)
    yield case("padding", "with padding in the batch, real tokens are off by {off}", hidden, weights, mask)

    names = [name for name in weights if name != "key.bias"]  # it moves all scores of a row alike: softmax ignores it
    precise = hidden.double(), {name: w.double() for name, w in weights.items()}  # gradients through two LayerNorms
    call = Call((*precise, heads), wrt=(0, *((1, name) for name in names)),
                cotangents=(new.normal(batch, length, heads * size),))  # fmt: skip
    yield Case("gradient", (call,))
    everything = {"dropout_p": 1.0, "attention_dropout_p": 1.0}
    says = "dropout acts although training is False (off by {off})"
    yield case("dropout", says, hidden, weights, mask, **everything, training=False)
    says = ("in training with dropout_p = 1 both sub-layers add nothing, and LayerNorm(LayerNorm(hidden)) is left: "
            "yours is off by {off}")  # fmt: skip
    yield case("dropout", says, hidden, weights, mask, dropout_p=1.0, training=True)
    says = ("in training with attention_dropout_p = 1 attention finds nothing and adds its output bias alone: "
            "yours is off by {off}")  # fmt: skip
    yield case("dropout", says, hidden, weights, mask, attention_dropout_p=1.0, training=True)
    yield _attention_dropout(new, heads, length, size)
    yield _dropout_of_features(new, heads, size)
    yield from _dropout_of_inputs(new, heads, size)


def _dropout_of_features(new: Inputs, heads: int, size: int) -> Case:
    """Feed-forward has one inner feature, and gives every feature of a token the same. Dropped one by one, some of a
    token's features are left; were the inner one dropped as well, tokens would come out without any."""
    width = heads * size
    weights = {name: torch.zeros_like(w) for name, w in _layer_weights(new, width, 1).items()}
    weights = _plain_norms(weights) | {"up.bias": torch.full((1,), 3.0, dtype=new.dtype),
                                       "down.weight": torch.full((width, 1), 5.0, dtype=new.dtype)}  # fmt: skip
    hidden = new.normal(8, 25, width)
    bare = _encoder_layer(hidden.double(), {name: w.double() for name, w in weights.items()} | {
        "down.weight": torch.zeros(width, 1).double()}, heads)  # fmt: skip
    call = Call((hidden, weights, heads), {"dropout_p": 0.5, "training": True}, seed=new.random.randrange(1 << 30))

    def holds(answer: Answer) -> str | None:
        untouched = (answer.value.double() - bare).abs().amax(-1) < 1e-3  # nothing came from feed-forward
        if float(untouched.double().mean()) < 0.25:  # by right one token in 4,096
            return None
        return "in training whole tokens get nothing from feed-forward: is there a dropout on its inner features, too?"

    return Case("dropout", (call,), holds=holds, random=True)


def _dropout_of_inputs(new: Inputs, heads: int, size: int) -> Iterator[Case]:
    """Each sub-layer reads feature 0 of its input, which is 1, and gives all others one number. How far this number
    lifts what was kept above what was dropped, measured by feature 0, is the same for all tokens: as long as the
    sub-layer always reads the whole 1."""
    width = heads * size
    nothing = _plain_norms({name: torch.zeros_like(w) for name, w in _layer_weights(new, width, 1).items()})
    first = torch.eye(width, dtype=new.dtype)[0]
    attention = {"value.weight": 2 * first.expand(width, width), "value.bias": torch.ones_like(first),
                 "output.weight": 5 * torch.diag(1 - first)}  # fmt: skip
    feed = {"attention_norm.weight": torch.zeros_like(first), "attention_norm.bias": first,
            "up.weight": 2 * first[None], "up.bias": torch.ones_like(first[:1]),
            "down.weight": 5 * (1 - first)[:, None]}  # fmt: skip
    hidden = first.expand(80, 1, width)
    for which, weights in (("attention", nothing | attention), ("feed-forward", nothing | feed)):
        call = Call((hidden, weights, heads), {"dropout_p": 0.5, "training": True}, seed=new.random.randrange(1 << 30))
        yield Case("dropout", (call,), holds=lambda a, which=which: _reads_all(a.value.double(), which), random=True)


def _reads_all(value: torch.Tensor, which: str) -> str | None:
    one, others = value[:, 0, 0], value[:, 0, 1:]
    low, high = others.amin(1), others.amax(1)
    mixed = high - low > 0.01  # some were kept, some dropped
    lifts = ((high - low) / (one - low))[mixed]
    if not len(lifts) or float(lifts.max() - lifts.min()) < 0.01 * float(lifts.max()):
        return None
    return f"in training {which} reads an input with dropout: dropout acts on what it gives, not on what it gets"


def _attention_dropout(new: Inputs, heads: int, length: int, size: int) -> Case:
    """All values are 1, so a head's context is the sum of the weights that were kept: one number for all its features.
    Nothing else speaks; both LayerNorms only shift and stretch a token."""
    weights = {name: torch.zeros_like(w) for name, w in _layer_weights(new, heads * size, 17).items()}
    weights = _plain_norms(weights) | {"output.weight": torch.eye(heads * size, dtype=new.dtype)}
    weights["value.bias"] = torch.ones_like(weights["value.bias"])
    hidden = torch.zeros(4, length, heads * size, dtype=new.dtype)
    call = Call((hidden, weights, heads), {"attention_dropout_p": 0.5, "training": True},
                seed=new.random.randrange(1 << 30))  # fmt: skip
    return Case("dropout", (call,), holds=lambda a: _drops_weights(a.value.double(), heads), random=True)


def _drops_weights(value: torch.Tensor, heads: int) -> str | None:
    by_head = value.flatten(0, 1).unflatten(1, (heads, -1))  # (B S, H, d)
    differ = by_head.flatten(1).amax(1) - by_head.flatten(1).amin(1) > 0.5
    if not bool(differ.any()):
        return "with attention_dropout_p = 0.5 no attention weight is dropped in training"
    if float(by_head[differ].std(dim=2).max()) > 0.01:
        return "attention's dropout should drop weights, a whole token for a head at a time, not single features"
    return None


@encoder_layer.reward
def _(function):
    model_rewards.six_layers_of_minilm(function)


@feed_forward.reward
def _(function):
    model_rewards.what_an_inner_feature_waits_for(function)


# ---------------------------------------------------------------- 06.3 the stack, a class

Encoder = Exercise(
    "06.3", "Encoder", "encoder",
    lesson=LESSON, section="The stack", points=4,
    parts=[Part("one after the other"), Part("all states"), Part("own parameters", 2), Part("train and eval"),
           Part("gradient", kind="gradient")],
)  # fmt: skip


@Encoder.reference
def _encoder(make_layer, num_layers):
    class Stack(torch.nn.Module):
        def __init__(self):
            super().__init__()
            for i in range(num_layers):  # step: one after the other or own parameters
                self.add_module(str(i), make_layer())  # step: own parameters or one after the other

        def forward(self, hidden, attention_mask=None, all_states=False):
            states = [hidden]
            for layer in self.children():
                states.append(layer(states[-1], attention_mask))  # step: one after the other
            return states if all_states else states[-1]  # step: all states or one after the other

    return Stack()


def layer_maker(tables):
    """A probe: make_layer() gives a new layer each time, that is no BERT layer. In training it also changes sign."""

    class Layer(torch.nn.Module):
        def __init__(self, table):
            super().__init__()
            self.table = torch.nn.Parameter(table.clone())

        def forward(self, hidden, attention_mask=None):
            if attention_mask is not None:
                hidden = hidden * attention_mask[:, :, None]
            hidden = hidden.roll(1, dims=1) + torch.tanh(hidden @ self.table)
            return -hidden if self.training else hidden

    made: list[Layer] = []

    def make_layer():
        made.append(Layer(tables[len(made) % len(tables)]))
        return made[-1]

    return make_layer


# What follows is sent to where the student's class lives, and asks it there.


def run_it(encoder_class, make_layer, num_layers, hidden, mask, all_states=False):
    encoder = encoder_class(make_layer, num_layers)
    if all_states:
        encoder(hidden, mask, all_states=True)  # a second time must be like the first
        return list(encoder(hidden, mask, all_states=True))
    return encoder(hidden, mask)


def count_it(encoder_class, make_layer, num_layers):
    made = [encoder_class(make_layer, num_layers) for _ in range(2)]
    return [len(list(encoder.parameters())) for encoder in made]


def copy_it(encoder_class, make_layer, num_layers, hidden, mask):
    first, second = (encoder_class(make_layer, num_layers) for _ in range(2))
    second.load_state_dict(first.state_dict())
    return [first(hidden, mask), second(hidden, mask)]


def switch_it(encoder_class, make_layer, num_layers, hidden, mask):
    encoder = encoder_class(make_layer, num_layers)
    encoder.eval()
    evaluated = encoder(hidden, mask)
    encoder.train()
    return [evaluated, encoder(hidden, mask)]


def learn_it(encoder_class, make_layer, num_layers, hidden, mask, cotangent):
    encoder = encoder_class(make_layer, num_layers)
    (encoder(hidden, mask) * cotangent).sum().backward()
    return sorted(0.0 if p.grad is None else float(p.grad.norm()) for p in encoder.parameters())


@Encoder.cases
def _(new: Inputs):
    def maker(count: int, width: int) -> Probe:
        return Probe.of(layer_maker, new.normal(count, width, width, scale=1 / math.sqrt(width)))

    hidden, mask = new.normal(2, 5, 6), new.padding_mask(2, 5)

    def call(driver: Callable, count: int, *more, tables: int | None = None) -> Call:
        return Call((maker(tables or count, 6), count, *more), driver=Probe.of(driver))

    for count in (1, 3, 5):
        says = f"with {count} layer{'s' * (count > 1)} the result is off by {{off}}"
        yield Case("one after the other", (call(run_it, count, hidden, mask),), says)
    yield Case("one after the other", (call(run_it, 3, hidden, None),), "without a mask the result is off by {off}")
    for count in (2, 4):
        yield Case("all states", (call(run_it, count, hidden, mask, True),), loose=True,
                   holds=lambda a, count=count: _has_all_states(a.value, count))  # fmt: skip
        yield Case("all states", (call(run_it, count, hidden, mask, True),), "one of the states is off by {off}")
    yield Case("own parameters", (call(count_it, 4, tables=8),), holds=lambda a: _has_parameters(a.value, 4))
    says = "a second encoder that loads the first one's state_dict gives other results, off by {off}"
    yield Case("own parameters", (call(copy_it, 3, hidden, mask, tables=6),), says)
    says = "encoder.train() and encoder.eval() do not reach the layers: their results are off by {off}"
    yield Case("train and eval", (call(switch_it, 3, hidden, mask),), says)
    says = "after backward() the gradients of encoder.parameters() are off by {off}"
    yield Case("gradient", (call(learn_it, 3, hidden, mask, new.normal(2, 5, 6)),), says)


def _has_all_states(states: list, count: int) -> str | None:
    if len(states) == count + 1:
        return None
    return (
        f"with {count} layers there are {count + 1} states, the input and what each layer gave; yours are {len(states)}"
    )


def _has_parameters(found: list[int], count: int) -> str | None:
    for number in found:
        if number != count:
            return (
                f"encoder.parameters() finds {number} tensors in a stack of {count} layers with one tensor each: "
                "an optimizer and a checkpoint would miss the rest"
                if number < count
                else f"encoder.parameters() finds {number} tensors in a stack of {count} layers with one tensor each"
            )
    return None


@Encoder.reward
def _(function):
    model_rewards.a_stack_that_holds_minilm(function)


# ---------------------------------------------------------------- 06.4 pooler

pooler = Exercise(
    "06.4", "pooler", "pooler",
    lesson=LESSON, section="The pooler", points=2, draw=True,
    parts=[Part("first token"), Part("tanh"), Part("dense"), Part("gradient", kind="gradient")],
)  # fmt: skip


@pooler.reference
def _pooler(hidden, weights):
    first = hidden[:, 0]  # (B, D)  # step: first token
    dense = first @ weights["weight"].T + weights["bias"]  # step: dense
    return (torch.exp(2 * dense) - 1) / (torch.exp(2 * dense) + 1)  # step: tanh


@pooler.cases
def _(new: Inputs):
    hidden = new.normal(3, 5, 7)
    others = torch.cat([hidden[:, :1], new.normal(3, 4, 7)], dim=1)
    weights = {"weight": new.normal(7, 7, scale=0.4), "bias": new.normal(7)}
    same = {"weight": torch.eye(7, dtype=new.dtype), "bias": torch.zeros(7, dtype=new.dtype)}
    yield Case("first token", (Call((hidden, weights)), Call((others, weights))), holds=_reads_the_first_alone)
    says = "with a dense layer that changes nothing the result should be tanh(hidden[:, 0]): yours is off by {off}"
    yield Case("tanh", (Call((hidden, same)),), says)
    yield Case("dense", (Call((hidden, weights)),), "the result is off by {off}: the dense layer is wrong")
    call = Call((hidden, weights), wrt=(0, (1, "weight"), (1, "bias")), cotangents=(new.normal(3, 7),))
    yield Case("gradient", (call,))


def _reads_the_first_alone(a: Answer, b: Answer) -> str | None:
    if float((a.value - b.value).abs().max()) > 1e-5:
        return "the result changes when tokens other than [CLS], the first, change"
    return None


@pooler.reward
def _(function):
    model_rewards.pooled_by_minilm(function)


# ---------------------------------------------------------------- 06.5 count parameters

count_parameters = Exercise(
    "06.5", "count_parameters", "count parameters",
    lesson=LESSON, section="Where the 110 million sit", points=3,
    parts=[Part("tables"), Part("layer"), Part("once in a model"), Part("heads", kind="invariant"), Part("whole")],
)  # fmt: skip

SIZES = ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size",
         "max_position_embeddings", "type_vocab_size")  # fmt: skip
BASE = dict(zip(SIZES, (30522, 768, 12, 12, 3072, 512, 2), strict=True))
LARGE = dict(zip(SIZES, (30522, 1024, 24, 16, 4096, 512, 2), strict=True))


@count_parameters.reference
def _count_parameters(vocab_size, hidden_size, num_hidden_layers, num_attention_heads, intermediate_size,
                      max_position_embeddings, type_vocab_size):  # fmt: skip
    d, f = hidden_size, intermediate_size
    total = vocab_size * d + max_position_embeddings * d + type_vocab_size * d  # step: tables
    for _ in range(num_hidden_layers):
        total += 4 * (d * d + d)  # query, key, value, output  # step: layer
        total += f * d + f + d * f + d  # up, down  # step: layer
        total += 2 * (d + d)  # two LayerNorms  # step: layer
    total += 2 * d + d * d + d  # LayerNorm of the embeddings, pooler  # step: once in a model
    return total


@count_parameters.cases
def _(new: Inputs):
    draw = new.random.randrange
    heads = draw(3, 6)
    size = dict(zip(SIZES, (draw(50, 90), 2 * heads * draw(3, 6), draw(2, 5), heads, draw(100, 140), draw(20, 40),
                            draw(3, 6)), strict=True))  # fmt: skip

    def grown(part: str, says: str, by: dict[str, int], want: int) -> Case:
        larger = size | {name: size[name] + more for name, more in by.items()}
        return Case(part, (Call((), size), Call((), larger)),
                    holds=lambda a, b: _says_exactly(says, int(b.value) - int(a.value), want))  # fmt: skip

    d, f = size["hidden_size"], size["intermediate_size"]
    for name, what in (("vocab_size", "word"), ("max_position_embeddings", "place"), ("type_vocab_size", "segment")):
        yield grown("tables", f"one {what} more should cost {{want:,}} numbers, one vector; yours costs {{got:,}}",
                    {name: 1}, d)  # fmt: skip
    says = "one layer more should cost {want:,} numbers; yours costs {got:,}"
    yield grown("layer", f"with D = {d} and F = {f} {says}", {"num_hidden_layers": 1}, _layer_size(d, f))
    says = (
        f"one inner feature more should cost {{want:,}} numbers in {size['num_hidden_layers']} layers; yours {{got:,}}"
    )
    yield grown("layer", says, {"intermediate_size": 1}, size["num_hidden_layers"] * (2 * d + 1))
    bare = size | {"num_hidden_layers": 0}
    tables = d * (size["vocab_size"] + size["max_position_embeddings"] + size["type_vocab_size"])
    says = f"apart from tables and layers {{want:,}} numbers are left with D = {d}; yours are {{got:,}}"
    yield Case("once in a model", (Call((), bare),),
               holds=lambda a: _says_exactly(says, int(a.value) - tables, d * d + 3 * d))  # fmt: skip
    says = "more heads of a smaller size should cost nothing; yours cost {got:,} numbers"
    yield grown("heads", says, {"num_attention_heads": size["num_attention_heads"]}, 0)
    for name, sizes in (("BERT-base", BASE), ("BERT-large", LARGE), ("a small model", size)):
        want = _count_parameters(**sizes)
        says = f"{name} has {{want:,}} parameters; yours has {{got:,}}"
        yield Case("whole", (Call((), sizes),),
                   holds=lambda a, says=says, want=want: _says_exactly(says, a.value, want))  # fmt: skip


def _layer_size(d: int, f: int) -> int:
    return 4 * (d * d + d) + 2 * d * f + f + d + 4 * d


def _says_exactly(says: str, got: float, want: int) -> str | None:
    return None if got == want else says.format(got=got, want=want)


@count_parameters.reward
def _(function):
    model_rewards.sizes_of_the_family(function)


# ---------------------------------------------------------------- 06.6 load weights

load_weights = Exercise(
    "06.6", "load_weights", "load weights",
    lesson=LESSON, section="Real weights", points=4,
    parts=[Part("names"), Part("prefix"), Part("gamma and beta"), Part("left out"), Part("missing"), Part("unexpected"),
           Part("shapes")],
)  # fmt: skip


@load_weights.reference
def _load_weights(state, wanted):
    found, origin = {}, {}
    for stored, tensor in state.items():
        name = re.sub("^bert[.]", "", stored)  # step: prefix
        name = re.sub("[.]gamma$", ".weight", name)  # step: gamma and beta
        name = re.sub("[.]beta$", ".bias", name)  # step: gamma and beta
        if name != "embeddings.position_ids" and not name.startswith("cls."):  # step: left out
            found[name], origin[name] = tensor, stored
    missing = sorted(theirs for theirs, _, _ in wanted if theirs not in found)  # step: missing
    unexpected = sorted(origin[name] for name in found if name not in {theirs for theirs, _, _ in wanted})
    if missing or unexpected:  # step: missing or unexpected
        raise ValueError(f"missing: {', '.join(missing)}; unexpected: {', '.join(unexpected)}")
    wrong = [origin[theirs] for theirs, _, shape in wanted if tuple(found[theirs].shape) != tuple(shape)]
    if wrong:  # step: shapes
        raise ValueError(f"of another shape: {', '.join(wrong)}")
    return {ours: found[theirs] for theirs, ours, _ in wanted}


@load_weights.canonical
def _(value):
    """In any order; of the words of a ValueError only the tensors that it names, in any of their spellings."""
    if isinstance(value, dict) and set(value) == {"ValueError"}:
        return {"ValueError": sorted({_clean(name) for name in re.findall(r"\w+(?:\.\w+)+", str(value["ValueError"]))})}
    return dict(sorted(value.items(), key=str)) if isinstance(value, dict) else value


def try_it(load, state, wanted):
    """Where the student's function lives: what it returns, or the words of its ValueError."""
    try:
        return load(state, wanted)
    except ValueError as error:
        return {"ValueError": str(error)}


@load_weights.cases
def _(new: Inputs):
    layer = new.random.randrange(2, 12)
    rows = [
        ("embeddings.word_embeddings.weight", "word", (11, 6)),
        ("embeddings.LayerNorm.weight", "embeddings_norm.weight", (6,)),
        ("embeddings.LayerNorm.bias", "embeddings_norm.bias", (6,)),
        (f"encoder.layer.{layer}.attention.self.query.weight", f"layers.{layer}.query.weight", (6, 6)),
        (f"encoder.layer.{layer}.intermediate.dense.weight", f"layers.{layer}.up.weight", (9, 6)),
        (f"encoder.layer.{layer}.output.dense.weight", f"layers.{layer}.down.weight", (6, 9)),
        (f"encoder.layer.{layer}.output.LayerNorm.bias", f"layers.{layer}.norm.bias", (6,)),
        ("embeddings.position_embeddings.weight", "position", (5, 6)),
        (f"encoder.layer.{layer}.bert.scale", f"layers.{layer}.scale", (3,)),  # not at the beginning
        (f"encoder.layer.{layer}.cls.scale", f"layers.{layer}.cls_scale", (3,)),
        (f"encoder.layer.{layer}.gamma.rate", f"layers.{layer}.rate", (3,)),  # not at the end
    ]
    new.random.shuffle(rows)
    state = {theirs: new.normal(*shape) for theirs, _, shape in rows}
    yield Case("names", (Call((state, rows)),), "one of the tensors is not the one of that name")

    prefixed = {f"bert.{name}": tensor for name, tensor in state.items()}
    yield Case("prefix", (Call((prefixed, rows)),), "with names that begin with “bert.” tensors are mixed up")
    old = {name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): tensor
           for name, tensor in prefixed.items()}  # fmt: skip
    yield Case("gamma and beta", (Call((old, rows)),), "with gamma and beta of 2018 tensors are mixed up")
    more = {"embeddings.position_ids": torch.arange(5)[None], "cls.predictions.bias": new.normal(11),
            "cls.seq_relationship.weight": new.normal(2, 6)}  # fmt: skip
    yield Case("left out", (Call((more | old, rows)),), "with tensors that are to be left out, others are mixed up")
    yield Case("left out", (Call((state | {"bert.embeddings.position_ids": torch.arange(5)[None]}, rows)),))

    def refuses(part: str, what: str, state: dict, names: list[str]) -> Case:
        known = {theirs: ours for theirs, ours, _ in rows}
        call = Call((state, rows), driver=Probe.of(try_it))
        return Case(part, (call,), holds=lambda a: _names_them(a.value, what, names, known), loose=True)

    first, second = new.random.sample([theirs for theirs, _, _ in rows], 2)
    gone = {name: tensor for name, tensor in old.items() if _clean(name) not in (first, second)}
    yield refuses("missing", "missing", gone, [first, second])
    strange = old | {"bert.encoder.layer.77.output.dense.weight": new.normal(6, 9), "qa_outputs.bias": new.normal(2)}
    names = ["encoder.layer.77.output.dense.weight", "qa_outputs.bias"]
    yield refuses("unexpected", "not expected", strange, names)
    changes = (
        ("down", lambda w: w.T.contiguous()),
        ("query", lambda w: w[:3]),
        ("query", lambda w: w[:, :3]),
        ("up", lambda w: w.flatten()),
    )
    for which, change in changes:
        (name,) = [stored for stored in old if {t: o for t, o, _ in rows}[_clean(stored)].endswith(f"{which}.weight")]
        yield refuses("shapes", "of another shape", old | {name: change(old[name])}, [_clean(name)])
    (name,) = [stored for stored in old if stored.endswith("LayerNorm.gamma")]
    yield refuses("shapes", "of another shape", old | {name: old[name][:1]}, [_clean(name)])  # would broadcast


def _clean(name: str) -> str:
    name = re.sub(r"\.gamma$", ".weight", name.removeprefix("bert."))
    return re.sub(r"\.beta$", ".bias", name)


def _names_them(value: dict, what: str, names: list[str], known: dict[str, str]) -> str | None:
    if "ValueError" not in value:
        return f"{_list(names)} {'is' if len(names) == 1 else 'are'} {what}, and no ValueError is raised"
    said = str(value["ValueError"])
    for name in names:
        forms = {name, known.get(name, name), re.sub("weight$", "gamma", name), re.sub("bias$", "beta", name)}
        if not any(form in said for form in forms):
            return f"{_list(names)} {'is' if len(names) == 1 else 'are'} {what}; the ValueError does not name {name}"
    return None


def _list(names: list[str]) -> str:
    return " and ".join(names)


@load_weights.reward
def _(function):
    model_rewards.minilm_by_your_names(function)


# ---------------------------------------------------------------- 06.7 bert

bert = Exercise(
    "06.7", "bert", "bert",
    lesson=LESSON, section="Real weights", points=6, seconds=4.0,
    parts=[Part("embeddings"), Part("layers", 2), Part("padding"), Part("pooler"), Part("gradient", kind="gradient")],
)  # fmt: skip

OURS = {"query": "attention.self.query", "key": "attention.self.key", "value": "attention.self.value",
        "output": "attention.output.dense", "attention_norm": "attention.output.LayerNorm",
        "up": "intermediate.dense", "down": "output.dense", "norm": "output.LayerNorm"}  # fmt: skip


@bert.reference
def _bert(input_ids, token_type_ids, attention_mask, weights, num_heads):
    rows = []
    for ids, segments in zip(input_ids.tolist(), token_type_ids.tolist(), strict=True):
        x = torch.stack([weights["embeddings.word_embeddings.weight"][i] for i in ids])  # step: embeddings
        x = x + weights["embeddings.position_embeddings.weight"][: len(ids)]  # step: embeddings
        rows.append(x + weights["embeddings.token_type_embeddings.weight"][segments])  # step: embeddings
    x = torch.stack(rows)  # (B, S, D)
    x = x - x.mean(dim=2, keepdim=True)  # step: embeddings
    x = x / torch.sqrt((x * x).mean(dim=2, keepdim=True) + 1e-12)  # step: embeddings
    x = weights["embeddings.LayerNorm.weight"] * x + weights["embeddings.LayerNorm.bias"]  # step: embeddings
    count = sum(name.endswith("query.weight") for name in weights)
    for i in range(count):  # step: layers
        layer = {f"{ours}.{kind}": weights[f"encoder.layer.{i}.{theirs}.{kind}"]
                 for ours, theirs in OURS.items() for kind in ("weight", "bias")}  # fmt: skip
        x = _encoder_layer(x, layer, num_heads, attention_mask)  # step: layers or padding
    first = x[:, 0] @ weights["pooler.dense.weight"].T + weights["pooler.dense.bias"]  # (B, D)  # step: pooler
    return x, torch.tanh(first)  # step: pooler


def _hf_weights(new: Inputs, width: int, inner: int, layers: int, vocabulary: int) -> dict[str, torch.Tensor]:
    """A whole model under the library's names, in no order, with spare places and a spare segment."""
    weights = {
        "embeddings.word_embeddings.weight": new.normal(vocabulary, width),
        "embeddings.position_embeddings.weight": new.normal(29, width),
        "embeddings.token_type_embeddings.weight": new.normal(3, width),
        "embeddings.LayerNorm.weight": new.normal(width, mean=1.5),
        "embeddings.LayerNorm.bias": new.normal(width),
        "pooler.dense.weight": new.normal(width, width, scale=0.3),
        "pooler.dense.bias": new.normal(width),
    }
    for i in range(layers):
        for name, tensor in _layer_weights(new, width, inner).items():
            ours, _, kind = name.partition(".")
            weights[f"encoder.layer.{i}.{OURS[ours]}.{kind}"] = tensor
    names = list(weights)
    new.random.shuffle(names)
    return {name: weights[name] for name in names}


@bert.cases
def _(new: Inputs):
    heads, size, vocabulary = 3, 4, 23

    def question(batch: int, length: int, layers: int) -> tuple:
        mask = new.padding_mask(batch, length)
        ids = new.integers(1, vocabulary, batch, length) * mask  # [PAD] is 0
        first = new.integers(1, 3, batch, 1)  # so many tokens of segment 0; every row has at least two
        segments = (torch.arange(length) >= first).long() * mask
        segments[0, 1] = 1
        return ids, segments, mask, _hf_weights(new, heads * size, 17, layers, vocabulary)

    def case(part: str, says: str, ids, segments, mask, weights) -> Case:
        want, _ = _bert(ids, segments, mask, {name: w.double() for name, w in weights.items()}, heads)
        return Case(part, (Call((ids, segments, mask, weights, heads)),), holds=_RealTokens(says, want, mask))

    ids, segments, mask, weights = question(3, 5, 2)
    full = torch.ones_like(mask)
    quiet = {name: _quiet(name, w) for name, w in weights.items()}
    says = "with layers that add nothing the result is off by {off}: the embeddings are wrong"
    yield case("embeddings", says, ids, segments, full, quiet)
    tiny = quiet | {name: 1e-6 * w for name, w in quiet.items() if name.endswith("embeddings.weight")}
    says = "with very small embeddings the result is off by {off}: BERT's eps is 1e-12"
    yield case("embeddings", says, ids, segments, full, tiny)
    one = {name: w for name, w in weights.items() if ".1." not in name}
    yield case("layers", "with one layer the result is off by {off}", ids, segments, full, one)
    yield case("layers", "with two layers the result is off by {off}", ids, segments, full, weights)
    many = question(2, 4, 11)
    yield case("layers", "with eleven layers the result is off by {off}", many[0], many[1], torch.ones_like(many[2]),
               many[3])  # fmt: skip
    yield case("padding", "with padding in the batch, real tokens are off by {off}", ids, segments, mask, weights)
    yield Case("pooler", (Call((ids, segments, mask, weights, heads)),),
               holds=lambda a: _pools_its_own(a.value, weights))  # fmt: skip
    names = [name for name in weights if not name.endswith("key.bias")]
    cotangents = new.normal(3, 5, heads * size), new.normal(3, heads * size)
    precise = {name: w.double() for name, w in weights.items()}  # some gradients are very small
    call = Call((ids, segments, full, precise, heads), wrt=tuple((3, name) for name in names), cotangents=cotangents)
    yield Case("gradient", (call,))


def _quiet(name: str, w: torch.Tensor) -> torch.Tensor:
    """Layers that add nothing and whose LayerNorms neither stretch nor shift."""
    if name.startswith("encoder."):
        return torch.ones_like(w) if name.endswith("LayerNorm.weight") else torch.zeros_like(w)
    return w


def _pools_its_own(value: tuple, weights: dict) -> str | None:
    """The pooled vectors against the student's own last states."""
    last, pooled = (tensor.double() for tensor in value)
    want = F.linear(last[:, 0], weights["pooler.dense.weight"].double(), weights["pooler.dense.bias"].double()).tanh()
    off = float((pooled - want).abs().max())
    return None if off < 1e-4 else f"the second result is not tanh(W · [CLS] + b) of the first: off by {off:.2g}"


@bert.reward
def _(function):
    model_rewards.the_whole_of_minilm(function)


# Known mistakes and right alternatives register themselves with the exercises above.
from coursework.checks import model_alternatives, model_mistakes  # noqa: E402, F401
