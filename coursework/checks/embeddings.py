"""Unit 02: the input of BERT. B batch, S sequence, D features; a, b lists of piece ids.

Here are the exercises: what is asked, the right answer, and how each step of it is seen on its own. The known
mistakes and the right alternatives stand in embeddings_mistakes.py and embeddings_alternatives.py.
"""

import torch
import torch.nn.functional as F

from coursework.checks import embeddings_rewards
from coursework.checks.engine import Answer, Call, Case, Exercise, Inputs, Part, compare

LESSON = "02_embeddings"
LONGEST = 512  # BERT has 512 position vectors (Devlin et al. 2019, appendix A.2)

# ---------------------------------------------------------------- 02.1 LayerNorm

layer_norm = Exercise(
    "02.1", "layer_norm", "layer norm",
    lesson=LESSON, section="LayerNorm", points=3, draw=True, exclude=("layer_norm",),
    parts=[Part("mean"), Part("spread"), Part("eps"), Part("weight and bias"), Part("gradient", kind="gradient")],
)  # fmt: skip


@layer_norm.reference
def _layer_norm(x, weight, bias, eps=1e-12):
    rows = []
    for row in x.reshape(-1, len(weight)):  # one token, (D,)  # step: shape
        centred = row - row.sum() / len(row)  # step: mean
        variance = (centred * centred).sum() / len(row)  # step: spread or mean
        row = centred / torch.sqrt(variance + eps)  # step: spread or eps or mean
        rows.append(weight * row + bias)  # step: weight and bias or mean
    return torch.stack(rows).view(x.shape)  # step: shape


@layer_norm.cases
def _(new: Inputs):
    tokens = new.normal(3, 5, 7, scale=2.0, mean=3.0) * (1 + new.integers(0, 4, 3, 5, 1))  # of unlike spread
    plain = torch.ones(7, dtype=new.dtype), torch.zeros(7, dtype=new.dtype)
    yield Case("mean", (Call((tokens, *plain)),), holds=lambda a: _is_centred(a.value, tokens))
    yield Case("spread", (Call((tokens, *plain)),), holds=lambda a: _has_spread_1(a.value))

    quiet = new.normal(4, 7, scale=1e-6)  # variance about 1e-12, as much as eps
    quiet[2] = 0.0  # variance 0
    yield Case("eps", (Call((quiet, *plain)),), holds=lambda a: _adds_eps(a.value, quiet, 1e-12))
    yield Case("eps", (Call((tokens[0], *plain), {"eps": 0.5}),), "with eps=0.5 the result is off by {off}")

    noise, far = new.normal(16, 7), 0.1 * torch.finfo(new.dtype).eps ** -0.5  # 290 in float32
    distant = far + noise / noise.std(-1, keepdim=True)
    # random: rounding leaves other digits in each wording and on each machine
    yield Case("spread", (Call((distant, *plain)),), holds=lambda a: _keeps_digits(a.value, distant), random=True)

    for shape in ((2, 5, 7), (6, 11), (2, 3, 4, 5)):  # any number of axes before the last
        x, weight, bias = new.normal(*shape), new.normal(shape[-1], mean=1.5), new.normal(shape[-1], scale=2.0)
        yield Case("weight and bias", (Call((x, weight, bias)),), "with weight and bias the result is off by {off}")
    x, weight, bias = new.normal(2, 5, 7), new.normal(7, mean=1.5), new.normal(7)
    yield Case("gradient", (Call((x, weight, bias), wrt=(0, 1, 2), cotangents=(new.normal(2, 5, 7),)),))


def _is_centred(value: torch.Tensor, x: torch.Tensor) -> str | None:
    value, centred = value.double(), x.double() - x.double().mean(-1, keepdim=True)
    if not bool(value.isfinite().all()):
        return "the result is infinite in places"
    mean = float(value.mean(-1).abs().max())
    if mean > 1e-4 * float(value.abs().max()):
        return f"a token's features should average 0 before weight and bias; yours average up to {mean:.2g}"
    factor = (value * centred).sum(-1, keepdim=True) / (centred * centred).sum(-1, keepdim=True)
    apart = float((value - factor * centred).abs().max())
    if apart > 1e-4 * float(value.abs().max()) or not bool((factor > 0).all()):
        return "a token's features should be x − mean, times one positive number for the whole token"
    return None


def _has_spread_1(value: torch.Tensor) -> str | None:
    spread = value.double().std(-1, correction=0)
    low, high = float(spread.min()), float(spread.max())
    if abs(low - 1) < 1e-4 and abs(high - 1) < 1e-4:
        return None
    return f"a token's features should have standard deviation 1; yours have {low:.3g} … {high:.3g}"


def _adds_eps(value: torch.Tensor, x: torch.Tensor, eps: float) -> str | None:
    """`x`: tokens with a variance about as large as eps, one of them with a variance of 0."""
    value, x = value.double(), x.double()
    centred, variance = x - x.mean(-1, keepdim=True), x.var(-1, correction=0, keepdim=True)
    difference = compare(value, centred / torch.sqrt(variance + eps))
    if difference is None:
        return None
    real = variance[:, 0] > 0
    acts = ((centred / value) ** 2 - variance)[real]  # what stands beside the variance under the root
    mean = float(acts.mean())
    if bool((acts > 0).all()) and float(acts.max() - acts.min()) < 0.05 * mean and not 0.5 < mean / eps < 1.5:
        return f"eps acts as {mean:.1g} although nobody asked for another than {eps:.0e}"
    return f"where a token's features hardly differ the result {difference.text}"


def _keeps_digits(value: torch.Tensor, x: torch.Tensor) -> str | None:
    """`x`: tokens whose mean is so large that √eps of it is no longer small beside their spread.

    Squares of distances lose a fraction of 1e-4 there at most, in float32; differences of squares 1e-2 at least.
    """
    centred = x.double() - x.double().mean(-1, keepdim=True)
    off = float((value.double() - centred / centred.std(-1, correction=0, keepdim=True)).abs().max())
    if off < 2e-3:
        return None
    mean = float(x.mean())
    return f"where a token's mean is large beside its spread ({mean:.0f} to 1) the result is off by {off:.2g}"


@layer_norm.reward
def _(function):
    embeddings_rewards.loudness(function)


# ---------------------------------------------------------------- 02.2 build inputs

build_inputs = Exercise(
    "02.2", "build_inputs", "build inputs",
    lesson=LESSON, section="From pieces to three rows", points=3,
    parts=[Part("special tokens"), Part("segments"), Part("padding"), Part("attention mask"),
           Part("too long", kind="invariant")],
)  # fmt: skip


@build_inputs.reference
def _build_inputs(a, b=None, *, max_length, cls_id, sep_id, pad_id):
    first, second = [cls_id, *a, sep_id], [] if b is None else [*b, sep_id]  # step: special tokens
    length = len(first) + len(second)
    if length > max_length or max_length > LONGEST:  # step: too long or special tokens
        raise ValueError(f"{length} tokens do not fit into {min(max_length, LONGEST)}: shorten the text")
    rest = max_length - length
    return {
        "input_ids": first + second + [pad_id] * rest,  # step: special tokens or padding
        "token_type_ids": [0] * len(first) + [1] * len(second) + [0] * rest,  # step: segments or padding
        "attention_mask": [1] * length + [0] * rest,  # step: attention mask
    }


@build_inputs.cases
def _(new: Inputs):
    cls_id, sep_id, pad_id = new.random.sample(range(1, 90), 3)
    special = {"cls_id": cls_id, "sep_id": sep_id, "pad_id": pad_id}
    names = {cls_id: "[CLS]", sep_id: "[SEP]", pad_id: "[PAD]"}

    def words(count: int) -> list[int]:
        return [new.random.randrange(100, 1000) for _ in range(count)]

    def call(a: list[int], b: list[int] | None, max_length: int) -> Call:
        return Call((a,) if b is None else (a, b), {"max_length": max_length, **special})

    a, b, c = words(4), words(6), words(5)
    # a pair and a single text, each with room to spare and without; 512 is still allowed
    rows = [(a, b, 17), (a, b, 13), (c, None, 11), (c, None, 7), (b, a, LONGEST)]
    rows += [([*words(2), pad_id, *words(1)], [*words(1), pad_id], 11)]  # pad_id among the words
    wanted = [_build_inputs(x, y, max_length=n, **special) for x, y, n in rows]
    for part, field, padding in (
        ("special tokens", "input_ids", False),
        ("segments", "token_type_ids", False),
        ("padding", "input_ids", True),
        ("padding", "token_type_ids", True),
        ("attention mask", "attention_mask", None),
    ):
        for row, want in zip(rows, wanted, strict=True):
            judge = _Row(field, want, names if field == "input_ids" else {}, padding)
            yield Case(part, (call(*row),), holds=judge)
    want = _build_inputs(a, [], max_length=9, **special)  # no words are a text too
    yield Case("special tokens", (call(a, [], 9),), holds=_Row("input_ids", want, names, None))
    for x, y, most in ((a, b, 12), (c, None, 6), (words(511), None, 600), (a, b, LONGEST + 1)):
        total = len(x) + (2 if y is None else len(y) + 3)
        says = f"{total} tokens and max_length={most} give no ValueError"
        yield Case("too long", (call(x, y, most),), says, raises="ValueError")


class _Row:
    """Compares one row of ids: its real tokens (padding False), its padding (True), or all of it (None)."""

    def __init__(self, field: str, want: dict, names: dict[int, str], padding: bool | None):
        self.field, self.want, self.names = field, want[field], names
        real = sum(want["attention_mask"])
        self.span = {False: range(real), True: range(real, len(self.want)), None: range(len(self.want))}[padding]

    def __call__(self, answer: Answer) -> str | None:
        got = list(answer.value[self.field])
        wrong = next((i for i in self.span if got[i] != self.want[i]), None)
        if wrong is None:
            return None
        return f"{self.field}[{wrong}] is {self._name(got[wrong])}, expected {self._name(self.want[wrong])}"

    def _name(self, value) -> str:
        return f"{self.names[value]} ({value})" if value in self.names else str(value)


@build_inputs.reward
def _(function):
    embeddings_rewards.a_real_pair(function)


@build_inputs.canonical
def _(value):
    """An error that is returned is worded by everybody in his own way."""
    return {"other": value["other"]} if isinstance(value, dict) and set(value) == {"other", "text"} else value


# ---------------------------------------------------------------- 02.3 pad a batch

pad_batch = Exercise(
    "02.3", "pad_batch", "pad a batch",
    lesson=LESSON, section="A batch", points=2,
    parts=[Part("ids"), Part("padding"), Part("segments"), Part("attention mask")],
)  # fmt: skip


@pad_batch.reference
def _pad_batch(rows, pad_id):
    longest = max(len(row["input_ids"]) for row in rows)  # step: shape
    shape = len(rows), longest
    ids, segments, mask = torch.full(shape, pad_id), torch.zeros(shape).long(), torch.zeros(shape).long()
    for i, row in enumerate(rows):
        for j, (piece, segment) in enumerate(zip(row["input_ids"], row["token_type_ids"], strict=True)):
            ids[i, j] = piece  # step: ids
            segments[i, j] = segment  # step: segments
            mask[i, j] = 1  # step: attention mask
    return {"input_ids": ids, "token_type_ids": segments, "attention_mask": mask}


@pad_batch.cases
def _(new: Inputs):
    # The longest row is neither the first nor the last; pad_id also occurs as a real token, in the first row at its
    # end (GPT-2's texts end in the token that is its padding too).
    for lengths, first in (((5, 9, 7), (3, 5, 7)), ((6, 4, 11, 8), (6, 2, 6, 5))):
        pad_id = new.random.randrange(2, 9)
        rows = []
        for length, a in zip(lengths, first, strict=True):
            ids = [new.random.randrange(10, 99) for _ in range(length)]
            ids[new.random.randrange(1, length - 1)] = pad_id
            rows.append({"input_ids": ids, "token_type_ids": [0] * a + [1] * (length - a)})
        rows[0]["input_ids"][-1] = pad_id
        want = _pad_batch(rows, pad_id)
        for part, field, padding in (
            ("ids", "input_ids", False),
            ("padding", "input_ids", True),
            ("padding", "token_type_ids", True),
            ("segments", "token_type_ids", False),
            ("attention mask", "attention_mask", None),
        ):
            yield Case(part, (Call((rows, pad_id)),), holds=_Rows(field, want, padding))
    yield Case("ids", (Call((rows[:1], pad_id)),), holds=_Rows("input_ids", _pad_batch(rows[:1], pad_id), None))


class _Rows:
    """Compares one field of a batch: its real tokens (padding False), its padding (True), or all of it (None)."""

    def __init__(self, field: str, want: dict, padding: bool | None):
        self.field, self.want = field, want[field]
        real = want["attention_mask"] == 1
        self.where = {False: real, True: ~real, None: torch.ones_like(real)}[padding]

    def __call__(self, answer: Answer) -> str | None:
        wrong = ((answer.value[self.field] != self.want) & self.where).nonzero()
        if not len(wrong):
            return None
        i, j = (int(index) for index in wrong[0])
        got, want = int(answer.value[self.field][i, j]), int(self.want[i, j])
        return f"{self.field}[{i}, {j}] is {got}, expected {want}"


@pad_batch.reward
def _(function):
    embeddings_rewards.six_pairs(function)


# ---------------------------------------------------------------- 02.4 embeddings

embeddings = Exercise(
    "02.4", "embeddings", "embeddings",
    lesson=LESSON, section="Three tables, one sum", points=4, draw=True,
    parts=[Part("LayerNorm"), Part("word"), Part("position"), Part("segment"), Part("gradient", kind="gradient"),
           Part("dropout")],
)  # fmt: skip


@embeddings.reference
def _embeddings(input_ids, token_type_ids, weights, dropout_p=0.0, training=False):
    rows = []
    for ids, segments in zip(input_ids.tolist(), token_type_ids.tolist(), strict=True):
        x = torch.stack([weights["word"][i] for i in ids])  # (S, D)  # step: word
        x = x + torch.stack([weights["position"][i] for i in range(len(ids))])  # step: position or word
        x = x + torch.stack([weights["segment"][i] for i in segments])  # step: segment or word
        centred = x - x.mean(dim=1, keepdim=True)  # step: LayerNorm or word
        x = centred / torch.sqrt((centred**2).mean(dim=1, keepdim=True) + 1e-12)  # step: LayerNorm
        rows.append(weights["norm.weight"] * x + weights["norm.bias"])  # step: LayerNorm
    return F.dropout(torch.stack(rows), dropout_p, training)  # (B, S, D)  # step: dropout


@embeddings.cases
def _(new: Inputs):
    # More position than word vectors, and a spare segment: no foreseen mistake looks outside a table.
    vocabulary, positions, segments = 23, 29, 3

    def question(batch: int, length: int, width: int) -> tuple:
        ids = new.integers(1, vocabulary, batch, length) * (mask := new.padding_mask(batch, length))  # [PAD] is 0
        first = new.integers(1, 3, batch, 1)  # so many tokens of segment 0; every row has at least two
        types = (torch.arange(length) >= first).long() * mask
        types[0, 1] = 1
        weights = {
            "word": new.normal(vocabulary, width),
            "position": new.normal(positions, width),
            "segment": new.normal(segments, width),
            "norm.weight": new.normal(width, mean=1.5),
            "norm.bias": new.normal(width, scale=2.0),
        }
        return ids, types, weights

    ids, types, weights = question(3, 5, 7)
    plain = {"norm.weight": torch.ones(7, dtype=new.dtype), "norm.bias": torch.zeros(7, dtype=new.dtype)}
    small = {name: 2e-3 * weights[name] for name in ("word", "position", "segment")}
    nothing = {name: torch.zeros_like(weights[name]) for name in ("position", "segment")}
    yield Case("LayerNorm", (Call((ids, types, weights | plain)),), holds=lambda a: _is_normalised(a.value))
    yield Case(
        "LayerNorm",
        (Call((ids, types, weights | plain)), Call((ids, types, weights))),
        holds=lambda a, b, weights=weights: _scales_and_shifts(a.value, b.value, weights),
    )
    yield Case(
        "LayerNorm",
        (Call((ids, types, weights | plain | small)),),
        holds=lambda a: (said := _is_normalised(a.value)) and f"when all vectors are small, {said}",
    )
    says = "with position and segment vectors of 0, the result is off by {off}: not the vectors of input_ids"
    yield Case("word", (Call((ids, types, weights | nothing)),), says)
    says = "with segment vectors of 0, the result is off by {off}: not word + position"
    yield Case("position", (Call((ids, types, weights | {"segment": nothing["segment"]})),), says)
    yield Case("segment", (Call((ids, types, weights)),), "the result is off by {off}: the segment's part is wrong")

    says = "with one text in the batch the result is off by {off}"
    yield Case("word", (Call((ids[:1], types[:1], weights)),), says)
    ids, types, weights = question(2, 6, 11)
    yield Case("segment", (Call((ids, types, weights)),), "the result is off by {off}: the segment's part is wrong")
    empty = {name: torch.zeros_like(weights[name]) for name in ("word", "position", "segment")}
    says = "where all three vectors are 0 the result is not norm.bias (off by {off})"
    yield Case("LayerNorm", (Call((ids, types, weights | empty)),), says)
    every = tuple((2, name) for name in weights)
    yield Case("gradient", (Call((ids, types, weights), wrt=every, cotangents=(new.normal(2, 6, 11),)),))
    yield from _dropout_cases(new, *question(4, 6, 33))


def _is_normalised(value: torch.Tensor) -> str | None:
    value = value.double()
    mean, spread = float(value.mean(-1).abs().max()), value.std(-1, correction=0)
    if mean > 1e-3:
        return f"a token's features should average 0 with norm.weight 1 and norm.bias 0; yours average up to {mean:.2g}"
    if float((spread - 1).abs().max()) > 1e-3:
        low, high = float(spread.min()), float(spread.max())
        return f"a token's features should have standard deviation 1; yours have {low:.3g} … {high:.3g}"
    return None


def _scales_and_shifts(plain: torch.Tensor, loud: torch.Tensor, weights: dict) -> str | None:
    want = plain.double() * weights["norm.weight"].double() + weights["norm.bias"].double()
    off = float((loud.double() - want).abs().max())
    return None if off < 1e-3 else f"norm.weight and norm.bias do not act last, feature by feature (off by {off:.2g})"


def _dropout_cases(new: Inputs, ids, types, weights):
    everything = {"dropout_p": 1.0, "training": True}
    says = "with dropout_p = 1 in training everything is dropped and the result is 0, yours is off by {off}"
    yield Case("dropout", (Call((ids, types, weights), everything),), says)
    says = "dropout acts although training is False (off by {off})"
    yield Case("dropout", (Call((ids, types, weights), everything | {"training": False}),), says)
    want = _embeddings(ids, types, {name: table.double() for name, table in weights.items()})
    call = Call((ids, types, weights), {"dropout_p": 0.25, "training": True}, seed=new.random.randrange(1 << 30))
    yield Case("dropout", (call,), holds=lambda a: _drops_a_quarter(a.value.double(), want), random=True)


def _drops_a_quarter(got: torch.Tensor, want: torch.Tensor) -> str | None:
    """dropout_p = 0.25 leaves each of 792 features 0 or 4/3 of itself: a share within 9 sd of 0.25."""
    dropped = got == 0
    share = float(dropped.double().mean())
    if share == 0:
        return "in training nothing is dropped"
    shared = {"features of a token": (2,), "tokens of the batch": (0, 1), "tokens of a text": (1,), "texts": (0,)}
    for what, axes in shared.items():
        if share < 1 and bool((dropped.all(axes) | ~dropped.any(axes)).all()):
            return f"all {what} share one draw of dropout: each number has its own"
    if not 0.11 < share < 0.39:
        return f"dropout_p = 0.25 sets a share of {share:.2f} to 0"
    if float((got - want)[~dropped].abs().max()) < 1e-3:
        return "what remains is not scaled up by 1 / (1 − dropout_p)"
    if float((got - want / 0.75)[~dropped].abs().max()) > 1e-3:
        return "dropout does not leave each number either 0 or divided by 1 − dropout_p"
    return None


@embeddings.reward
def _(function):
    embeddings_rewards.first_vectors(function)


# Known mistakes and right alternatives register themselves with the exercises above.
from coursework.checks import embeddings_alternatives, embeddings_mistakes  # noqa: E402, F401
