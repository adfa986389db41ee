"""Unit 12: reading the library. B batch, H heads, S sequence, D hidden size.

Here are the exercises: weights under other names, the place where two models part, and what heads look at. The known
mistakes and the right alternatives stand in hugging_face_mistakes.py and hugging_face_alternatives.py.
"""

import math

import torch

from coursework.checks.engine import Answer, Call, Case, Exercise, Inputs, Part
from coursework.runner import Probe

LESSON = "12_hugging_face"

# ---------------------------------------------------------------- 12.1 weights across names

translate_names = Exercise(
    "12.1", "translate_names", "weights across names",
    lesson=LESSON, section="One table of names", points=4,
    parts=[Part("names", 2.0), Part("layers", 2.0), Part("stacked", 2.0), Part("prefix"), Part("old names"),
           Part("missing", kind="invariant"), Part("left over", kind="invariant")],
)  # fmt: skip

SELF = "encoder.layer.#.attention.self."
TABLE = [
    ["embeddings.word", ["embeddings.word_embeddings.weight"]],
    ["embeddings.norm_weight", ["embeddings.LayerNorm.weight"]],
    ["embeddings.norm_bias", ["embeddings.LayerNorm.bias"]],
    ["layers.#.up_weight", ["encoder.layer.#.intermediate.dense.weight"]],
    ["layers.#.norm_weight", ["encoder.layer.#.output.LayerNorm.weight"]],
    ["layers.#.norm_bias", ["encoder.layer.#.output.LayerNorm.bias"]],
    ["layers.#.qkv_weight", [f"{SELF}{kind}.weight" for kind in ("query", "key", "value")]],
    ["layers.#.qkv_bias", [f"{SELF}{kind}.bias" for kind in ("query", "key", "value")]],
]


@translate_names.reference
def _translate_names(state, table, num_layers):
    theirs = {}
    for name, tensor in state.items():
        plain = name[len("bert.") :] if name.startswith("bert.") else name  # step: prefix
        for old, now in ((".gamma", ".weight"), (".beta", ".bias")):
            plain = plain[: -len(old)] + now if plain.endswith(old) else plain  # step: old names
        theirs[plain] = tensor
    ours = {}
    for name, sources in table:
        numbers = list(range(num_layers)) if "#" in name else [0]
        for number in numbers:
            found = [source.replace("#", str(number)) for source in sources]
            if not all(source in theirs for source in found):
                raise ValueError(f"missing: {found}")
            ours[name.replace("#", str(number))] = torch.cat([theirs.pop(source) for source in found])
    if theirs:
        raise ValueError(f"left over: {list(theirs)}")
    return ours


@translate_names.cases
def _(new: Inputs):
    plain, single, stacked = TABLE[:3], TABLE[3:6], TABLE[6:]
    layers = new.random.randrange(3, 6)
    yield Case("names", (Call((_state(new, plain, 0), plain, 0)),), holds=lambda a: _has_names(a.value, plain, 0))
    yield Case("names", (Call((_state(new, plain, 0), plain, 0)),), "right names, wrong tensors (off by {off})")
    for count in (layers, 12):  # "layer.1" is also how "layer.10" begins
        call = Call((_state(new, single, count), single, count))
        yield Case("layers", (call,), holds=lambda a, n=count: _has_names(a.value, single, n), loose=True)
        yield Case("layers", (call,), "the tensors of some layers are not those of the same number (off by {off})")
    yield Case("stacked", (Call((_state(new, stacked, 3), stacked, 3)),),
               "query, key and value do not lie one below the other, in this order (off by {off})")  # fmt: skip
    inside = [
        ["layers.#.scale", ["encoder.layer.#.bert.scale.weight"]],
        ["layers.#.rate", ["encoder.layer.#.gamma.rate.bias"]],
    ]
    table = TABLE + inside  # the same letters further inside a name are no prefix and no ending
    state = {f"bert.{name}": tensor for name, tensor in _state(new, table, 2).items()}
    yield Case("prefix", (Call((state, table, 2)),), 'names that begin with "bert." stand for the same tensors')
    state = {_of_2018(name): tensor for name, tensor in _state(new, table, 2).items()}
    yield Case("old names", (Call((state, table, 2)),), "gamma is a LayerNorm's weight, beta its bias")
    state = {f"bert.{_of_2018(name, ('LayerNorm', 'scale'))}": tensor for name, tensor in _state(new, table, 2).items()}
    yield Case(
        "old names",
        (Call((state, table, 2)),),
        'names that begin with "bert." end in gamma and beta, not only those of a LayerNorm',
    )
    state = {f"{'bert.' * (i % 2)}{name}": tensor for i, (name, tensor) in enumerate(_state(new, table, 2).items())}
    yield Case("prefix", (Call((state, table, 2)),), 'every second name begins with "bert."')
    for lost in ("embeddings.LayerNorm.bias", "encoder.layer.1.attention.self.key.weight"):
        state = _state(new, TABLE, 2)
        del state[lost]
        yield Case(
            "missing", (Call((state, TABLE, 2)),), f"{lost} is not in the file, and nobody is told", raises="ValueError"
        )
    for more in ("pooler.dense.weight", "encoder.layer.2.output.LayerNorm.bias"):
        state = _state(new, TABLE, 2) | {more: new.normal(5)}
        yield Case("left over", (Call((state, TABLE, 2)),), f"{more} of the file finds no use, and nobody is told",
                   raises="ValueError")  # fmt: skip


def _state(new: Inputs, table: list, layers: int) -> dict[str, torch.Tensor]:
    """A file's tensors for a table, in the file's own order, which is not the table's."""
    sizes = {"word": (11, 6), "up": (7, 6), "qkv_weight": (6, 6)}
    state = {}
    for name, sources in table:
        shape = next((size for key, size in sizes.items() if key in name), (6,))
        for number in range(layers) if "#" in name else [0]:
            state |= {source.replace("#", str(number)): new.normal(*shape) for source in sources}
    names = sorted(state)
    new.random.shuffle(names)
    return {name: state[name] for name in names}


def _of_2018(name: str, whose: tuple[str, ...] = ("LayerNorm",)) -> str:
    """LayerNorm's parameters were called gamma and beta in the first released files."""
    if not any(module in name for module in whose):
        return name
    return name.replace(".weight", ".gamma").replace(".bias", ".beta")


def _has_names(ours: dict, table: list, layers: int) -> str | None:
    wanted = {name.replace("#", str(number)) for name, _ in table for number in (range(layers) if "#" in name else [0])}
    missing, more = sorted(wanted - set(ours)), sorted(map(str, set(ours) - wanted))
    if more:
        return f"the result has a name that the table's left column has not: {more[0]}"
    return f"the result has no {missing[0]}" if missing else None


@translate_names.canonical
def _(value):
    """In whatever order the names were put in."""
    return dict(sorted(value.items())) if isinstance(value, dict) and all(isinstance(k, str) for k in value) else value


# ---------------------------------------------------------------- 12.2 where two models part

first_divergence = Exercise(
    "12.2", "first_divergence", "where two models part",
    lesson=LESSON, section="Where two models part", points=4,
    parts=[Part("equal"), Part("first", 2.0), Part("padding"), Part("tolerance"), Part("NaN"),
           Part("shape and transposed"), Part("scaled and shifted", 2.0)],
)  # fmt: skip

STEPS = ("embeddings", "layer.0.attention", "layer.0.output", "layer.9.attention", "layer.9.output", "layer.10.output")


@first_divergence.reference
def _first_divergence(mine, theirs, attention_mask, tolerance=1e-4):
    for name in theirs:
        got, want = mine[name], theirs[name]
        turned = got.shape != want.shape and got.mT.shape == want.shape  # step: shape and transposed
        if got.shape != want.shape and not turned:
            return name, "shape"  # step: shape and transposed
        rows = [(b, s) for b in range(len(want)) for s in range(want.shape[1]) if attention_mask[b, s] == 1]
        a = torch.stack([(got.mT if turned else got)[place] for place in rows])  # (N, D)  # step: padding or first
        b = torch.stack([want[place] for place in rows])  # (N, D)  # step: padding or first
        limit = tolerance * float(b.abs().max())  # step: tolerance or first
        if bool(a.isnan().any()):
            return name, "nan"  # step: NaN
        if float((a - b).abs().max()) <= limit:
            if turned:
                return name, "transposed"  # step: shape and transposed
            continue
        if turned:
            return name, "shape"  # step: shape and transposed
        factor = float((a * b).sum() / (b * b).sum())  # step: scaled and shifted
        if float((a - factor * b).abs().max()) <= limit:  # step: scaled and shifted
            return name, "scaled"  # step: scaled and shifted
        shift = (a - b)[0]  # (D,)  # step: scaled and shifted
        if float((a - b - shift).abs().max()) <= limit:  # step: scaled and shifted
            return name, "shifted"  # step: scaled and shifted
        return name, "other"  # step: first
    return None, "equal"  # step: equal


@first_divergence.cases
def _(new: Inputs):
    mask = new.padding_mask(3, 7)
    theirs = {name: new.normal(3, 7, 5, scale=2.0) for name in STEPS}

    def ask(changes: dict, part: str, says: str, **more):
        return _ask({name: changes.get(name, x.clone()) for name, x in theirs.items()}, theirs, mask, part, says, more)

    noise = {name: new.normal(3, 7, 5) for name in STEPS}
    yield ask({}, "equal", "all tensors are equal")
    for at in (0, 2, 4):  # and all after it is wrong as well, most just before the end
        later = {name: theirs[name] + noise[name] * (1 + i) for i, name in enumerate(STEPS[at:-1])}
        later |= {STEPS[-1]: theirs[STEPS[-1]] + noise[STEPS[-1]] / 2}
        yield ask(later, "first", f"the first difference is in {STEPS[at]}")
    mine = {name: theirs[name] + noise[name] for name in reversed(STEPS[1:])} | {STEPS[0]: theirs[STEPS[0]].clone()}
    yield _ask(mine, theirs, mask, "first", "theirs has the order of computing")
    wider = {STEPS[1]: theirs[STEPS[1]] + noise[STEPS[1]], STEPS[3]: new.normal(3, 7, 6)}
    yield ask(wider, "first", f"{STEPS[1]} differs, and only after it a shape")
    only_once = {STEPS[2]: theirs[STEPS[2]] + noise[STEPS[2]]}
    yield ask(only_once, "first", f"{STEPS[2]} differs, and what comes after it is equal again")

    padding = (mask == 0)[..., None] * 9.0
    yield ask({name: theirs[name] + padding * noise[name] for name in STEPS}, "padding", "only padding differs")
    broken = {STEPS[1]: torch.where(padding > 0, math.nan, theirs[STEPS[1]])}
    yield ask(broken, "padding", "only padding is NaN")
    mixed = {
        STEPS[0]: theirs[STEPS[0]] + padding * noise[STEPS[0]],
        STEPS[3]: 3 * theirs[STEPS[3]] + padding * noise[STEPS[3]],
    }
    loud = {name: x + 50 * padding * noise[name] for name, x in theirs.items()}
    quiet = {name: x.clone() for name, x in loud.items()}
    quiet[STEPS[1]][1, 1, 2] += 0.02
    yield _ask(quiet, loud, mask, "padding", f"{STEPS[1]} differs by 0.02 beside large numbers in the padding")
    yield ask(mixed, "padding", f"padding differs in {STEPS[0]}, real tokens first in {STEPS[3]}, by a factor of 3")

    large = {name: 400 * x for name, x in theirs.items()}
    close = {name: x + 0.02 * noise[name].clamp(-1, 1) for name, x in large.items()}  # 0.02 of 800: rounding
    yield _ask(close, large, mask, "tolerance", "0.02 in numbers of a thousand is rounding")
    small = {name: 1e-4 * x for name, x in theirs.items()}
    apart = {name: x + 2e-5 * noise[name] for name, x in small.items()}
    yield _ask(apart, small, mask, "tolerance", "a tenth of the numbers' own size is no rounding")
    spike = {name: x.clone() for name, x in theirs.items()}
    spike[STEPS[1]][0, 0, 2] = 400.0  # the limit is 0.04
    beside = {name: x + 0.01 * noise[name].clamp(-1, 1) * (name == STEPS[1]) for name, x in spike.items()}
    yield _ask(beside, spike, mask, "tolerance", "0.01 beside a number of 400 is rounding")
    for off in (0.01, -0.01):
        one = theirs[STEPS[1]].clone()
        one[1, 1, 2] += off  # a single number
        yield ask({STEPS[1]: one}, "tolerance", f"a single number of {STEPS[1]} is off by {off}")
    yield ask({STEPS[1]: one}, "tolerance", "with a tolerance of 0.1 that is no difference", tolerance=0.1)
    twice = {STEPS[1]: 2 * theirs[STEPS[1]]}
    yield ask(twice, "tolerance", "twice theirs is off by more than 0.7 of theirs", tolerance=0.7)

    hole = theirs[STEPS[2]].clone()
    hole[1, 0, 3] = math.nan
    yield ask({STEPS[2]: hole}, "NaN", f"{STEPS[2]} holds a NaN")
    yield ask({STEPS[2]: torch.full_like(hole, math.nan)}, "NaN", f"{STEPS[2]} is nothing but NaN")

    turned = {STEPS[1]: theirs[STEPS[1]].mT.contiguous()}
    yield ask(turned, "shape and transposed", f"{STEPS[1]} has its last two axes exchanged")
    yield ask({STEPS[1]: new.normal(3, 5, 7)}, "shape and transposed", "the shape is turned, the numbers are others")
    yield ask({STEPS[1]: new.normal(3, 7, 6)}, "shape and transposed", f"{STEPS[1]} has another width")
    for factor in (1.7, -0.3):
        yield ask({STEPS[4]: factor * theirs[STEPS[4]]}, "scaled and shifted", f"{STEPS[4]} is {factor} times theirs")
    bias = new.normal(5)
    yield ask({STEPS[4]: theirs[STEPS[4]] - bias}, "scaled and shifted", "the same vector is missing in every token")
    yield ask({STEPS[4]: theirs[STEPS[4]] + 0.7}, "scaled and shifted", "the same vector, 0.7 everywhere, is added")
    features, tokens = new.normal(5, scale=0.3, mean=2.0), new.normal(7, 1, scale=0.3, mean=2.0)
    for own, whose in ((features, "feature"), (tokens, "token")):
        yield ask({STEPS[4]: theirs[STEPS[4]] * own}, "scaled and shifted", f"each {whose} has a factor of its own")
    yield ask({STEPS[4]: theirs[STEPS[4]] + tokens}, "scaled and shifted", "to each token another number is added")
    both = 2 * theirs[STEPS[3]] - bias
    yield ask({STEPS[3]: both}, "scaled and shifted", "scaled and shifted at once is neither alone")


NOWHERE = "(nowhere)"


def name_of(function, *arguments, **more):
    """What the function returns, with a text also where it names no tensor, so that a wrong name is no wrong type."""
    found = function(*arguments, **more)
    if isinstance(found, (tuple, list)) and len(found) == 2:
        return "(nowhere)" if found[0] is None else found[0], found[1]
    return found


def _ask(mine: dict, theirs: dict, mask: torch.Tensor, part: str, what: str, more: dict | None = None) -> Case:
    """A case whose answer is the reference's; if not, `what` says what there was to see."""
    truth = _first_divergence(mine, theirs, mask, **(more or {}))

    def holds(answer) -> str | None:
        found = [[None if name == NOWHERE else name, kind] for name, kind in (answer.value, truth)]
        if found[0] == found[1]:
            return None
        return f"{what}: returns {found[0][0]!r}, {found[0][1]!r}, expected {found[1][0]!r}, {found[1][1]!r}"

    return Case(part, (Call((mine, theirs, mask), more or {}, driver=Probe.of(name_of)),), holds=holds)


@first_divergence.canonical
def _(value):
    return tuple(value) if isinstance(value, list) else value


# ---------------------------------------------------------------- 12.3 entropy of a head

attention_entropy = Exercise(
    "12.3", "attention_entropy", "attention entropy of a head",
    lesson=LESSON, section="How wide does a head look?", points=2,
    parts=[Part("entropy", 2.0), Part("weights of 0"), Part("real tokens")],
)  # fmt: skip


@attention_entropy.reference
def _attention_entropy(weights, attention_mask):
    batch, heads, length, _ = weights.shape
    result = torch.zeros(heads, dtype=weights.dtype)
    for h in range(heads):
        rows = []
        for b in range(batch):
            for i in range(length):
                if attention_mask[b, i] == 1:  # step: real tokens
                    shares = [float(p) for p in weights[b, h, i] if float(p) > 0]  # step: weights of 0 or entropy
                    rows.append(sum(-p * math.log(p) for p in shares))  # step: entropy
        result[h] = sum(rows) / len(rows)  # step: entropy
    return result


@attention_entropy.cases
def _(new: Inputs):
    everyone = torch.ones(2, 6, dtype=torch.int64)
    even = torch.full((2, 3, 6, 6), 1 / 6, dtype=new.dtype)
    yield Case("entropy", (Call((even, everyone)),), "six equal weights have an entropy of ln 6, yours is off by {off}")
    full, _ = _weights(new, 2, 3, 6, everyone)
    yield Case("entropy", (Call((full, everyone)),), "without any padding the entropies are off by {off}")
    one_hot = torch.eye(6, dtype=new.dtype)[new.integers(0, 6, 2, 3, 6)]
    yield Case("weights of 0", (Call((one_hot, everyone)),), holds=_is_zero)
    for batch, heads, length in ((3, 4, 7), (4, 3, 9)):
        mask = new.padding_mask(batch, length)
        weights, _ = _weights(new, batch, heads, length, mask)
        yield Case("real tokens", (Call((weights, mask)),), "with padding off by {off}: whose rows count?")


def _is_zero(answer: Answer) -> str | None:
    off = float(answer.value.abs().max())  # a tiny number in the place of 0 leaves a little
    return None if off < 1e-5 else f"looking at one token is an entropy of 0, yours is off by {off:.2g}"


def _weights(new: Inputs, batch: int, heads: int, length: int, mask: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Attention weights in which no head is like another, 0 for padded keys; and ids with one or two [SEP] (3)."""
    scores = new.normal(batch, heads, length, length) * torch.linspace(0.5, 3.0, heads)[:, None, None]
    scores = scores.masked_fill(mask[:, None, None, :] == 0, -math.inf)
    ids = new.integers(10, 50, batch, length) * mask
    ends = mask.sum(1) - 1
    ids[torch.arange(batch), ends] = 3
    ids[0, ends[0] // 2] = 3
    return scores.double().softmax(-1).to(new.dtype), ids


# ---------------------------------------------------------------- 12.4 jobs of heads

head_jobs = Exercise(
    "12.4", "head_jobs", "jobs of heads",
    lesson=LESSON, section="Four heads with four jobs", points=4,
    parts=[Part("next", 2.0), Part("previous"), Part("sep", 2.0), Part("broadcast", 2.0)],
)  # fmt: skip


@head_jobs.reference
def _head_jobs(weights, input_ids, attention_mask, sep_id):
    batch, heads, length, _ = weights.shape
    seen = {job: [[] for _ in range(heads)] for job in ("next", "previous", "sep", "broadcast")}
    for b in range(batch):
        real = int(attention_mask[b].sum())
        for h in range(heads):
            for i in range(real):
                row = [float(p) for p in weights[b, h, i]]
                if i + 1 < real:  # step: next
                    seen["next"][h].append(row[i + 1])  # step: next
                if i - 1 >= 0:  # step: previous
                    seen["previous"][h].append(row[i - 1])  # step: previous
                seen["sep"][h].append(sum(row[j] for j in range(length) if input_ids[b, j] == sep_id))  # step: sep
                entropy = sum(-p * math.log(p) for p in row if p > 0)  # step: broadcast
                seen["broadcast"][h].append(entropy / math.log(real))  # step: broadcast
    return {job: torch.tensor([sum(x) / len(x) for x in lists]).to(weights.dtype) for job, lists in seen.items()}


@head_jobs.cases
def _(new: Inputs):
    lots = []
    for batch, heads, length in ((2, 3, 7), (3, 4, 8)):
        for padded in (False, True):
            mask = new.padding_mask(batch, length) if padded else torch.ones(batch, length, dtype=torch.int64)
            mask[:, :3] = 1  # at least [CLS], a word and [SEP]
            lots.append((*_weights(new, batch, heads, length, mask), mask))
    for job in ("next", "previous", "sep", "broadcast"):
        for i, (weights, ids, mask) in enumerate(lots):
            truth = _head_jobs(weights.double(), ids, mask, 3)
            right = _is_right(truth, job, padded=i % 2 == 1)
            yield Case(job, (Call((weights, ids, mask, 3)),), holds=right, loose=True)


def _is_right(truth: dict, job: str, padded: bool):
    """`holds` of a case: this job's numbers are the reference's."""

    def holds(answer) -> str | None:
        value, want = answer.value, truth[job]
        if set(value) != set(truth):
            return f"returns the keys {sorted(map(str, value))}, expected {sorted(truth)}"
        got = value[job]
        if not isinstance(got, torch.Tensor) or got.shape != want.shape:
            return f"{job!r} should be a tensor of shape {tuple(want.shape)}, one number a head"
        off = float((got.double() - want).abs().max())
        if off < 1e-5:
            return None
        return f"{job!r} is off by {off:.2g} {'where there is padding' if padded else 'even without padding'}"

    return holds


@head_jobs.canonical
def _(value):
    return dict(sorted(value.items())) if isinstance(value, dict) and all(isinstance(k, str) for k in value) else value


# Known mistakes and right alternatives register themselves with the exercises above.
from coursework.checks import hugging_face_alternatives, hugging_face_mistakes, hugging_face_rewards  # noqa: E402, F401

translate_names.reward(hugging_face_rewards.a_real_file_in_our_names)
first_divergence.reward(hugging_face_rewards.a_planted_divergence)
attention_entropy.reward(hugging_face_rewards.widest_and_narrowest)
head_jobs.reward(hugging_face_rewards.four_heads)
