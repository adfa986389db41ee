"""Unit 01: attention. B batch, H heads, S sequence, d head size, D = H·d hidden size.

Here are the exercises: what is asked, the right answer, and how each step of it is seen on its own. The known
mistakes and the right alternatives stand in attention_mistakes.py and attention_alternatives.py.
"""

import math

import torch
import torch.nn.functional as F

from coursework.checks.engine import Call, Case, Exercise, Inputs, Part

LESSON = "01_attention"

# ---------------------------------------------------------------- 01.1 attention scores

attention_scores = Exercise(
    "01.1", "attention_scores", "attention scores",
    lesson=LESSON, section="Queries, keys and values", points=2, draw=True,
    parts=[Part("dot products"), Part("scale"), Part("gradient", kind="gradient")],
)  # fmt: skip


@attention_scores.reference
def _attention_scores(query, key):
    rows = [(query[:, :, i, None, :] * key).sum(-1) for i in range(query.size(2))]  # step: dot products
    scores = torch.stack(rows, dim=2)  # (B, H, S, S)  # step: dot products
    return scores / math.sqrt(query.size(3))  # step: scale


@attention_scores.cases
def _(new: Inputs):
    for shape in ((2, 3, 5, 7), (3, 4, 6, 11), (1, 2, 4, 3)):  # every size another number
        query, key = new.normal(*shape), new.normal(*shape)
        dots = query.double() @ key.double().mT
        yield Case("dot products", (Call((query, key)),), holds=lambda a, dots=dots: _are_multiples(a.value, dots))
        yield Case("scale", (Call((query, key)),), "the scores are too large or too small (off by {off})")
    query, key, cotangent = new.normal(2, 3, 5, 7), new.normal(2, 3, 5, 7), new.normal(2, 3, 5, 5)
    yield Case("gradient", (Call((query, key), wrt=(0, 1), cotangents=(cotangent,)),))


@attention_scores.canonical
def _(scores):
    """Any number that closes a token is the same number."""
    if not isinstance(scores, torch.Tensor) or not scores.is_floating_point():
        return scores
    return scores.masked_fill(scores < -1e4, -math.inf)


def _are_multiples(scores: torch.Tensor, dots: torch.Tensor) -> str | None:
    if not bool(scores.isfinite().all()):
        return "some scores are infinite"
    if _proportional(scores, dots):
        return None
    if float((scores - scores.mT).abs().max()) == 0:
        return "score (i, j) equals score (j, i): each is not the dot product of query i with key j"
    return "score (i, j) is not a multiple of the dot product of query i with key j"


def _proportional(got: torch.Tensor, want: torch.Tensor, tolerance: float = 1e-4) -> bool:
    """Whether `got` is a positive multiple of `want`."""
    got, want = got.double(), want.double()
    if not bool(got.isfinite().all()):
        return False
    factor = (got * want).sum() / (want * want).sum()
    return bool(factor > 0) and float((got - factor * want).abs().max()) < tolerance * float(got.abs().max())


# ---------------------------------------------------------------- 01.2 mask to bias

mask_to_bias = Exercise(
    "01.2", "mask_to_bias", "mask to bias",
    lesson=LESSON, section="Masks", points=2, draw=True,
    parts=[Part("padded tokens", 2.0), Part("real tokens", kind="invariant"), Part("no NaN", kind="invariant"),
           Part("dtype", kind="invariant")],
)  # fmt: skip


@mask_to_bias.reference
def _mask_to_bias(attention_mask, dtype=torch.float32):
    bias = torch.zeros(attention_mask.shape, dtype=dtype)  # (B, S)  # step: real tokens or dtype
    bias[attention_mask == 0] = torch.finfo(dtype).min / 2  # finite, in float16 too  # step: padded tokens or no NaN
    return bias[:, None, None, :]  # (B, 1, 1, S)  # step: shape


@mask_to_bias.cases
def _(new: Inputs):
    mask = new.padding_mask(3, 7)
    everyone = torch.zeros(2, 5, dtype=torch.int64)  # rows of nothing but padding
    for dtype in (torch.float32, torch.float16):
        call = Call((mask,), {"dtype": dtype})
        scores = new.normal(3, 1, 7, 7, scale=3.0) + 1500.0 * (mask == 0)[:, None, None, :]  # padding looks attractive
        yield Case("padded tokens", (call,), holds=lambda a, m=mask, s=scores: _padding_gets_nothing(a.value, m, s))
        yield Case("real tokens", (call,), holds=lambda a, m=mask: _real_tokens_get_zero(a.value, m))
        empty, low = Call((everyone,), {"dtype": dtype}), new.normal(2, 1, 5, 5) - 40.0
        yield Case("no NaN", (empty,), holds=lambda a, s=low: _no_nan_after_softmax(a.value, s))
        yield Case("dtype", (call,), holds=lambda a, t=dtype: _has_dtype(a.value, t))
    yield Case(
        "padded tokens", (Call((mask,)),), holds=lambda a, m=mask, s=scores: _padding_gets_nothing(a.value, m, s)
    )
    lone = torch.tensor([[0, 0, 1, 1]])  # one text alone, and its padding in front
    high = 1500.0 * (lone == 0)[:, None, None, :].expand(1, 1, 4, 4)
    yield Case("padded tokens", (Call((lone,)),), holds=lambda a: _padding_gets_nothing(a.value, lone, high))


def _padding_gets_nothing(bias: torch.Tensor, mask: torch.Tensor, scores: torch.Tensor) -> str | None:
    padded = (mask == 0)[:, None, None, :].expand(scores.shape)
    weights = (scores.double() + bias.double()).softmax(-1)[padded]
    if bool(weights.isnan().any()):
        return "after softmax, rows with real tokens become NaN"
    left = float(weights.max())
    return None if left < 1e-6 else f"padded tokens still get attention (up to {left:.2g} of 1)"


def _real_tokens_get_zero(bias: torch.Tensor, mask: torch.Tensor) -> str | None:
    added = bias[:, 0, 0][mask == 1].abs().max()
    return None if added == 0 else f"the scores of real tokens change (by {float(added):.2g})"


def _no_nan_after_softmax(bias: torch.Tensor, scores: torch.Tensor) -> str | None:
    if not bool((scores.to(bias.dtype) + bias).double().softmax(-1).isnan().any()):
        return None
    kind = str(bias.dtype).removeprefix("torch.")
    what = "is −inf" if bool(bias.isinf().any()) else "leaves no room: with a score of −40 it becomes −inf"
    return f"in {kind} the number for padding {what}; a row of nothing but padding is NaN after softmax"


def _has_dtype(bias: torch.Tensor, dtype: torch.dtype) -> str | None:
    return None if bias.dtype == dtype else f"returns {bias.dtype} when asked for {dtype}"


@mask_to_bias.canonical
def _(bias):
    """Any number that works is the same number, −1e4; so are those too weak for a large score, −100."""
    if not isinstance(bias, torch.Tensor) or not bias.is_floating_point():
        return bias
    low, weak = (bias < -2000) & bias.isfinite(), (bias < -60) & (bias > -2000)
    return bias.masked_fill(low, -1e4).masked_fill(weak, -100.0)


# ---------------------------------------------------------------- 01.3 scaled dot-product attention

scaled_dot_product_attention = Exercise(
    "01.3", "scaled_dot_product_attention", "scaled dot-product attention",
    lesson=LESSON, section="Masks", points=4, draw=True, exclude=("scaled_dot_product_attention",),
    parts=[Part("weighted sum"), Part("scores"), Part("softmax"), Part("scale"), Part("mask"),
           Part("padding", kind="invariant"), Part("gradient", kind="gradient"), Part("dropout")],
)  # fmt: skip


MASK_SAYS = "the bias is not what is added to the scaled scores (context off by {off})"


@scaled_dot_product_attention.reference
def _attention(query, key, value, bias=None, dropout_p=0.0, training=False):
    scores = torch.einsum("bhid,bhjd->bhij", query, key)  # step: scores
    scores = scores / math.sqrt(query.size(3))  # step: scale
    if bias is not None:
        scores = scores + bias  # step: mask
    scores = scores - scores.amax(dim=3, keepdim=True)
    weights = scores.exp() / scores.exp().sum(dim=3, keepdim=True)  # step: softmax
    weights = F.dropout(weights, dropout_p, training)  # step: dropout
    return torch.einsum("bhij,bhjd->bhid", weights, value)  # step: weighted sum


@scaled_dot_product_attention.cases
def _(new: Inputs):
    # Values that are one-hot lay the attention weights open. Small scores keep every weight well above 0.
    query, key, value = new.normal(2, 3, 5, 7, scale=0.5), new.normal(2, 3, 5, 7), new.normal(2, 3, 5, 7)
    one_hot = torch.eye(5, 7, dtype=new.dtype).expand(2, 3, 5, 7).contiguous()
    dots = query.double() @ key.double().mT
    yield Case(
        "weighted sum",
        (Call((query, key, one_hot)), Call((query, key, value))),
        holds=lambda seen, context: _sums_values(seen.value, context.value, value, dots),
    )
    for strictly in (False, True):  # first what can be said of the scores whatever the softmax, then all
        yield Case(
            "scores",
            (Call((query, key, one_hot)),),
            holds=lambda seen, strictly=strictly: _uses_dots(seen.value[..., :5], dots, strictly),
        )
        yield Case(
            "softmax",
            (Call((query, key, one_hot)), Call((2 * query, key, one_hot))),
            holds=lambda once, twice: _is_softmax(once.value[..., :5], twice.value[..., :5]),
        )
    yield Case("scale", (Call((query, key, one_hot)),), "the scores are too large or too small: weights off by {off}")

    bias = (1 - new.padding_mask(2, 5))[:, None, None, :].to(new.dtype) * -1e9  # (B, 1, 1, S)
    gentle = new.normal(2, 1, 5, 5)  # (B, 1, S, S): no yes or no, something to add
    yield Case("mask", (Call((query, key, value, bias)),), MASK_SAYS)
    yield Case("mask", (Call((query, key, value), {"bias": gentle}),), MASK_SAYS)
    hidden = bias[:, 0, 0, :, None].bool()[:, None]  # (B, 1, S, 1): padding
    other_key, other_value = key + 3 * hidden * new.normal(2, 3, 5, 7), value + 3 * hidden * new.normal(2, 3, 5, 7)
    yield Case(
        "padding",
        (Call((query, key, value, bias)), Call((query, other_key, other_value, bias))),
        holds=lambda a, b: _unmoved(a.value, b.value, ~hidden, "keys and values"),
    )

    lone = [new.normal(1, 1, 3, 2) for _ in range(3)]
    yield Case("scores", (Call(tuple(lone)),), "one text with one head: the context is off by {off}")
    few = torch.arange(5).to(new.dtype) % 3  # whole numbers, so that no digit is lost beside the large one
    large = torch.stack([few + _too_large(new), few - _too_large(new)])[:, None, None]  # (B, 1, 1, S)
    says = "with large scores the context is off by {off}"
    yield Case("softmax", (Call((torch.zeros_like(query), key, value, large)),), says)
    yield from _louder_cases(new)


def _too_large(new: Inputs) -> int:
    """A score whose exponential is infinite, and 0 with the other sign: 134 in float32."""
    return math.ceil(1.5 * math.log(torch.finfo(new.dtype).max))


def _louder_cases(new: Inputs):
    query, key, value = new.normal(3, 4, 6, 11), new.normal(3, 4, 6, 11), new.normal(3, 4, 6, 11)
    bias = (1 - new.padding_mask(3, 6))[:, None, None, :].to(new.dtype) * -1e9
    yield Case("mask", (Call((query, key, value, bias)),), MASK_SAYS)
    yield Case("gradient", (Call((query, key, value, bias), wrt=(0, 1, 2), cotangents=(new.normal(3, 4, 6, 11),)),))
    yield from _dropout_cases(new, query, key, value)


def _dropout_cases(new: Inputs, query, key, value):
    yield Case(
        "dropout",
        (Call((query, key, value), {"dropout_p": 1.0, "training": True}),),
        "with dropout_p = 1 in training every weight is dropped and the context is 0, yours is off by {off}",
    )
    yield Case(
        "dropout",
        (Call((query, key, value), {"dropout_p": 1.0, "training": False}),),
        "dropout acts although training is False (context off by {off})",
    )
    batch, heads, length, size = query.shape
    one_hot = torch.eye(length, size, dtype=new.dtype).expand(batch, heads, length, size).contiguous()
    weights = _attention(query.double(), key.double(), one_hot.double())[..., :length]
    quarter = {"dropout_p": 0.25, "training": True}
    yield Case(
        "dropout",
        (Call((query, key, one_hot), quarter, seed=new.random.randrange(1 << 30)),),
        holds=lambda a: _drops_a_quarter(a.value[..., :length].double(), weights),
        random=True,
    )
    same = value[..., :1].expand(batch, heads, length, size).contiguous()  # every feature has the same values
    yield Case(
        "dropout",
        (Call((query, key, same), quarter, seed=new.random.randrange(1 << 30)),),
        holds=lambda a: None if float((a.value - a.value[..., :1]).abs().max()) < 1e-4
        else "dropout hits single features of the context, not the attention weights",
        random=True,
    )  # fmt: skip


def _sums_values(seen, context, value, dots) -> str | None:
    """`seen` is the context of one-hot values: the weights, and zeros in the remaining columns."""
    length = dots.size(-1)
    weights = seen[..., :length].double()
    off = float((context.double() - weights @ value.double()).abs().max())
    if not off < 1e-4 * max(1.0, float(context.abs().max())) or bool(seen[..., length:].any()):
        return f"the context is not the weights times the values (off by {off:.2g})"
    if not bool((weights - torch.diag_embed(weights.diagonal(dim1=-2, dim2=-1))).any()):
        return "the context of each token is made of its own value alone"
    if _sums_to_one(weights.mT) and not _sums_to_one(weights) and _uses_dots(weights.mT, dots) is None:
        return "the values are summed with the transposed weights: over the queries, not over the keys"
    return None


def _is_softmax(once, twice) -> str | None:
    """`twice`: the weights for doubled queries, which squares the ratios of true softmax weights."""
    if not _sums_to_one(once):
        if _sums_to_one(once.mT):
            return "the attention weights of one key sum to 1: softmax runs over the queries, not over the keys"
        low, high = float(once.sum(-1).min()), float(once.sum(-1).max())
        sums = f"{low:.2g} … {high:.2g}" if high - low > 0.01 else f"{high:.2g}"
        return f"the attention weights of one query sum to {sums}, not to 1"
    if not bool((once > 0).all()) or not bool((twice > 0).all()):
        return "some attention weights are 0 or negative without any mask"
    before, after = _log_ratios(once), _log_ratios(twice)
    if not _proportional(after, before, 1e-3) or not after.abs().max() > 1.2 * before.abs().max():
        return "the attention weights are not a softmax: doubled scores should square their ratios"
    return None


def _uses_dots(weights, dots, strictly: bool = True) -> str | None:
    """The logarithms of softmax weights are a multiple of the scores, apart from a constant in each row.

    Not strictly: None, too, for what are no softmax weights at all.
    """
    if bool((weights > 0).all()) and _sums_to_one(weights):
        scores = dots.double()
        if _proportional(_log_ratios(weights), scores - scores.mean(-1, keepdim=True), 1e-3):
            return None
        if _proportional(_log_ratios(weights), scores.mT - scores.mT.mean(-1, keepdim=True), 1e-3):
            return "query and key are swapped: row i uses the scores of key i"
    elif not strictly:
        return None
    return "the scores behind the weights are not dot products of query i with key j"


def _log_ratios(weights: torch.Tensor) -> torch.Tensor:
    """Of each weight to its row's geometric mean: the scores, apart from what softmax does not see."""
    logs = weights.double().log()
    return logs - logs.mean(-1, keepdim=True)


def _sums_to_one(weights: torch.Tensor) -> bool:
    return float((weights.double().sum(-1) - 1).abs().max()) < 1e-4


def _unmoved(before, after, real, what: str) -> str | None:
    moved = float(((after - before) * real).abs().max())
    return None if moved < 1e-5 else f"real tokens change when padded {what} change (by {moved:.2g})"


def _drops_a_quarter(seen: torch.Tensor, weights: torch.Tensor) -> str | None:
    """dropout_p = 0.25 leaves each weight 0 or 4/3 of itself; 432 weights, so the share is within 7 sd of 0.25."""
    dropped = seen.abs() < 1e-7
    share = float(dropped.double().mean())
    if share == 0:
        return "in training nothing is dropped"
    shared = ("of the batch share one draw", "of a text share one draw", "drop the same keys", "are dropped whole")
    for axis, what in zip((3, 2, 1, 0), ("rows of weights", "all queries", "all heads", "all texts"), strict=True):
        if share < 1 and bool((dropped == dropped.select(axis, 0).unsqueeze(axis)).all()):
            return f"{what} {shared[axis]}: dropout draws for each weight by itself"
    if _sums_to_one(seen):
        return "after dropout the weights still sum to 1: it acts before the softmax, or they are divided again"
    if float((seen - weights)[~dropped].abs().max()) < 1e-4:
        return "the weights that remain are not scaled up by 1 / (1 − p)"
    if float((seen - weights / 0.75)[~dropped].abs().max()) > 1e-4:
        return "dropout does not leave each attention weight either 0 or divided by 1 − p"
    return None if 0.1 < share < 0.4 else f"dropout_p = 0.25 drops a share of {share:.2f}"


# ---------------------------------------------------------------- 01.4 split heads, 01.5 merge heads

split_heads = Exercise(
    "01.4", "split_heads", "split heads", lesson=LESSON, section="Heads", points=2, draw=True,
    parts=[Part("tokens"), Part("features"), Part("gradient", kind="gradient")],
)  # fmt: skip


@split_heads.reference
def _split_heads(x, num_heads):
    size = x.size(2) // num_heads  # step: features
    owned = torch.arange(num_heads)[:, None] * size + torch.arange(size)  # (H, d), head h's features  # step: features
    return x[:, :, owned].permute(0, 2, 1, 3)  # (B, S, H, d) -> (B, H, S, d)  # step: tokens


@split_heads.cases
def _(new: Inputs):
    for batch, heads, length, size in ((2, 3, 5, 4), (3, 4, 6, 2), (1, 2, 3, 5)):
        x = _numbered(new, batch, length, heads * size)
        want = _split_heads(x, heads)
        yield Case("tokens", (Call((x, heads)),), holds=lambda a, x=x, want=want: _same_token(a.value, want, x, 2, 1))
        yield Case("features", (Call((x, heads)),), holds=lambda a, x=x, want=want: _same_entry(a.value, want, x))
    yield Case("gradient", (Call((new.normal(2, 5, 12), 3), wrt=(0,), cotangents=(new.normal(2, 3, 5, 4),)),))


merge_heads = Exercise(
    "01.5", "merge_heads", "merge heads", lesson=LESSON, section="Heads", points=2, draw=True,
    parts=[Part("tokens"), Part("features"), Part("gradient", kind="gradient")],
)  # fmt: skip


@merge_heads.reference
def _merge_heads(x):
    feature = torch.arange(x.size(1) * x.size(3))  # (D,)  # step: features
    head, place = feature // x.size(3), feature % x.size(3)  # step: features
    return x[:, head, :, place].permute(1, 2, 0)  # (D, B, S) -> (B, S, D)  # step: tokens


@merge_heads.cases
def _(new: Inputs):
    for shape in ((2, 3, 5, 4), (3, 4, 6, 2), (1, 2, 3, 5)):
        x = _numbered(new, *shape)
        want = _merge_heads(x)
        yield Case("tokens", (Call((x,)),), holds=lambda a, x=x, want=want: _same_token(a.value, want, x, 1, 2))
        yield Case("features", (Call((x,)),), holds=lambda a, x=x, want=want: _same_entry(a.value, want, x))
    yield Case("gradient", (Call((new.normal(2, 3, 5, 4),), wrt=(0,), cotangents=(new.normal(2, 5, 12),)),))


def _numbered(new: Inputs, *shape: int) -> torch.Tensor:
    """Consecutive whole numbers, so that each entry of an answer tells where it came from."""
    return (torch.arange(math.prod(shape)).view(shape) + new.random.randrange(1, 1000)).to(new.dtype)


def _origin(value: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """For each entry of `value`, its index in the flat `x`; -1 where it is none of x's entries."""
    index = value.double() - float(x.flatten()[0])
    known = (index == index.round()) & (index >= 0) & (index < x.numel())
    return torch.where(known, index, -1).long()


def _place(flat: int, shape) -> list[int]:
    return [int(i) for i in torch.unravel_index(torch.tensor(flat), tuple(shape))]


def _same_token(value, want, x, axis: int, x_axis: int) -> str | None:
    """Each entry comes from the token, and the sentence, whose row it stands in. The axes: where tokens are."""
    origin = _origin(value, x)
    if bool((origin < 0).any()):
        return f"entry {_place(int((origin < 0).flatten().nonzero()[0]), value.shape)} is none of x's entries"
    source = torch.unravel_index(origin, x.shape)
    true = torch.unravel_index(_origin(want, x), x.shape)
    wrong = (source[0] != true[0]) | (source[x_axis] != true[x_axis])
    if not bool(wrong.any()):
        return None
    here = _place(int(wrong.flatten().nonzero()[0]), value.shape)
    place = _place(int(origin[tuple(here)]), x.shape)
    return f"entry {here}, of token {here[axis]}, holds x{place}, which belongs to token {place[x_axis]}"


def _same_entry(value, want, x) -> str | None:
    wrong = value.double() != want.double()
    if not bool(wrong.any()):
        return None
    here = _place(int(wrong.flatten().nonzero()[0]), value.shape)
    got, true = (int(_origin(t, x)[tuple(here)]) for t in (value, want))
    if got < 0:
        return f"entry {here} is none of x's entries"
    return f"entry {here} holds x{_place(got, x.shape)}, expected x{_place(true, x.shape)}"


# ---------------------------------------------------------------- 01.6 multi-head attention

multi_head_attention = Exercise(
    "01.6", "multi_head_attention", "multi-head attention",
    lesson=LESSON, section="Heads", points=5, draw=True,
    parts=[Part("output projection"), Part("value projection"), Part("query and key projections"), Part("softmax"),
           Part("heads"), Part("scale"), Part("mask"), Part("padding", kind="invariant"),
           Part("gradient", kind="gradient")],
)  # fmt: skip


@multi_head_attention.reference
def _multi_head(hidden, weights, num_heads, attention_mask=None):
    size = hidden.size(2) // num_heads  # step: heads
    query = hidden @ weights["query.weight"].T + weights["query.bias"]  # step: query and key projections
    key = hidden @ weights["key.weight"].T + weights["key.bias"]  # step: query and key projections
    value = hidden @ weights["value.weight"].T + weights["value.bias"]  # step: value projection
    contexts = []
    for h in range(num_heads):
        mine = slice(h * size, (h + 1) * size)  # step: heads
        scores = query[:, :, mine] @ key[:, :, mine].mT  # (B, S, S)  # step: query and key projections
        scores = scores / math.sqrt(size)  # step: scale
        if attention_mask is not None:
            scores = scores - 1e9 * (1 - attention_mask[:, None, :])  # step: mask
        scores = scores - scores.amax(dim=2, keepdim=True)
        ratios = scores.exp() / scores.exp().sum(dim=2, keepdim=True)  # step: softmax
        contexts.append(ratios @ value[:, :, mine])  # step: value projection or softmax
    context = torch.cat(contexts, dim=2)  # (B, S, D)  # step: heads
    return context @ weights["output.weight"].T + weights["output.bias"]  # step: output projection


def _random_weights(new: Inputs, width: int) -> dict[str, torch.Tensor]:
    """Loud weights and biases, and scores of a spread of about 1."""
    names = ("query", "key", "value", "output")
    weights = {f"{name}.weight": new.normal(width, width, scale=1 / math.sqrt(width)) for name in names}
    return weights | {f"{name}.bias": new.normal(width) for name in names}


def _pass_through(weights: dict[str, torch.Tensor], name: str) -> dict[str, torch.Tensor]:
    """The same weights with one projection that changes nothing."""
    eye = torch.eye(len(weights[f"{name}.bias"]), dtype=weights[f"{name}.bias"].dtype)
    return weights | {f"{name}.weight": eye, f"{name}.bias": torch.zeros_like(eye[0])}


def _open_weights(new: Inputs, batch: int, heads: int, length: int, size: int):
    """Hidden states that name their own token in the first S features, and weights that show the attention: the
    output at [b, i, h·d + j] is what token i gives to token j in head h."""
    width = heads * size
    hidden = new.normal(batch, length, width)
    hidden[:, :, :length] = torch.eye(length, dtype=new.dtype)
    weights = _pass_through(_random_weights(new, width), "output")
    weights = {name: 0.4 * w if name[0] in "qk" else w for name, w in weights.items()}  # no weight near 0
    show = torch.zeros(width, width, dtype=new.dtype)  # (out, in)
    for h in range(heads):
        show[h * size : h * size + length, :length] = torch.eye(length, dtype=new.dtype)
    return hidden, weights | {"value.weight": show, "value.bias": torch.zeros(width, dtype=new.dtype)}


def _seen(context: torch.Tensor, heads: int, length: int) -> torch.Tensor:
    """(B, S, D) by `_open_weights` -> the attention (B, H, S, S)."""
    return context.unflatten(2, (heads, -1))[..., :length].transpose(1, 2)


def _dots(hidden, weights, heads: int) -> torch.Tensor:
    """(B, H, S, S) in float64, not scaled."""
    w = {name: tensor.double() for name, tensor in weights.items()}
    query, key = (F.linear(hidden.double(), w[f"{n}.weight"], w[f"{n}.bias"]) for n in ("query", "key"))
    return torch.einsum("bihd,bjhd->bhij", query.unflatten(2, (heads, -1)), key.unflatten(2, (heads, -1)))


@multi_head_attention.cases
def _(new: Inputs):
    batch, heads, length, size = 2, 3, 4, 5
    hidden, weights = new.normal(batch, length, heads * size), _random_weights(new, heads * size)
    yield Case(
        "output projection",
        (Call((hidden, _pass_through(weights, "output"), heads)), Call((hidden, weights, heads))),
        holds=lambda plain, full: _projects(plain.value, full.value, weights),
    )
    # One token, one head: whatever the attention, the context is the token's own value.
    alone, one = new.normal(6, 1, 7), _pass_through(_random_weights(new, 7), "output")
    asks_nothing, says_nothing = (
        one | {name: torch.zeros_like(tensor) for name, tensor in one.items() if name.startswith(silent)}
        for silent in ("query", "key")
    )
    own = F.linear(alone.double(), one["value.weight"].double(), one["value.bias"].double())
    open_hidden, shown = _open_weights(new, batch, 1, length, heads * size)
    twice = shown | {"query.weight": 2 * shown["query.weight"], "query.bias": 2 * shown["query.bias"]}
    one_head = _dots(open_hidden, shown, 1)
    for strictly in (False, True):  # first what can be said of a step whatever the softmax, then all
        yield Case(
            "value projection",
            (Call((alone, asks_nothing, 1)), Call((alone, says_nothing, 1))),
            holds=lambda a, b, strictly=strictly: (
                _finds_its_own_value(a.value, own, strictly) or _finds_its_own_value(b.value, own, strictly)
            ),
        )
        yield Case(
            "query and key projections",
            (Call((open_hidden, shown, 1)),),
            holds=lambda a, strictly=strictly: _uses_dots(_seen(a.value, 1, length), one_head, strictly),
        )
        yield Case(
            "softmax",
            (Call((open_hidden, shown, 1)), Call((open_hidden, twice, 1))),
            holds=lambda a, b: _is_softmax(_seen(a.value, 1, length), _seen(b.value, 1, length)),
        )
    yield from _three_heads_cases(new, batch, heads, length, size)
    yield Case("heads", (Call((hidden, weights, heads)),))
    yield Case("heads", (Call((hidden[:1], weights, heads)),), "with one text in the batch the result is off by {off}")
    # The key's bias moves all scores of a row alike, and softmax does not see it.
    loud = weights | {"key.bias": 5 * _too_large(new) * weights["key.bias"].sign()}
    call = Call((hidden, loud, heads))  # random: of so large scores rounding leaves other digits in each wording
    yield Case("softmax", (call,), holds=lambda a: None if bool(a.value.isfinite().all())
               else "with large scores the result is infinite in places", random=True)  # fmt: skip
    yield from _mask_cases(new, heads, length, size)


def _three_heads_cases(new: Inputs, batch: int, heads: int, length: int, size: int):
    open_hidden, shown = _open_weights(new, batch, heads, length, size)
    dots = _dots(open_hidden, shown, heads)
    yield Case(
        "heads",
        (Call((open_hidden, shown, heads)),),
        holds=lambda a, dots=dots: None if _uses_dots(_seen(a.value, heads, length), dots) is None
        else "with one head it is right, with three it is not: a head works on features that are not its own",
    )  # fmt: skip
    yield Case("scale", (Call((open_hidden, shown, heads)),), "the attention is too sharp or too flat (off by {off})")


def _mask_cases(new: Inputs, heads: int, length: int, size: int):
    """Only the outputs of real tokens count: what stands at padded places is nobody's business."""
    batch = 6
    hidden, weights = new.normal(batch, length, heads * size), _random_weights(new, heads * size)
    mask = new.padding_mask(batch, length)
    real = mask[:, :, None].bool()
    want = _multi_head(hidden.double(), {name: w.double() for name, w in weights.items()}, heads, mask)
    yield Case(
        "mask",
        (Call((hidden, weights, heads, mask)),),
        holds=lambda a: None if (off := float(((a.value - want) * real).abs().max())) < 1e-4
        else f"with padding in the batch, real tokens are off by {off:.2g}",
    )  # fmt: skip
    other = hidden + ~real * new.normal(batch, length, heads * size, scale=3.0)
    yield Case(
        "padding",
        (Call((hidden, weights, heads), {"attention_mask": mask}), Call((other, weights, heads, mask))),
        holds=lambda a, b: _unmoved(a.value, b.value, real, "tokens"),
    )
    cotangent = real * new.normal(batch, length, heads * size)
    names = [name for name in weights if name != "key.bias"]  # it moves all scores of a row alike: softmax ignores it
    call = Call((hidden, weights, heads), wrt=(0, *((1, name) for name in names)), cotangents=(cotangent,))
    yield Case("gradient", (call,))


def _finds_its_own_value(context, own, strictly: bool) -> str | None:
    """Not strictly: a multiple of it will do, for the weight of the only token may be wrong."""
    off = float((context - own).abs().max())
    if off < 1e-4 or (not strictly and (_proportional(context, own) or not bool(context.any()))):
        return None
    return f"a single token should find its own value, x · Wᵀ + b: off by {off:.2g}"


def _projects(plain, full, weights) -> str | None:
    """`plain`: the output when the output projection is set to change nothing."""
    matrix, bias = weights["output.weight"].double(), weights["output.bias"].double()
    context, full = plain.double(), full.double()

    def equal(wrong: torch.Tensor) -> bool:
        return float((full - wrong).abs().max()) < 1e-4 * float(full.abs().max())

    if equal(context @ matrix.T + bias):
        return None
    if equal(context):
        return "the output projection changes nothing: is it applied?"
    if equal(context @ matrix.T):
        return "the bias of the output projection is missing"
    return "the output is not context · Wᵀ + b with the weights of the output projection"


# ---------------------------------------------------------------- 01.7 causal mask

causal_mask = Exercise(
    "01.7", "causal_mask", "causal mask", lesson=LESSON, section="GPT's mask and BERT's", points=1, draw=True,
    parts=[Part("itself"), Part("past and future")],
)  # fmt: skip


@causal_mask.reference
def _causal_mask(length):
    itself = torch.eye(length) == 1  # step: itself or past and future
    position = torch.arange(length)
    past = position[:, None] > position[None, :]  # row i, column j: j came before i  # step: past and future
    return past | itself  # (S, S)  # step: itself or past and future


@causal_mask.cases
def _(new: Inputs):
    for length in (new.random.randrange(5, 9), 1, 4):
        call = Call((length,))
        yield Case("itself", (call,), holds=lambda a: None if bool(a.value.diagonal().all())
                   else "a token may not look at itself: the diagonal is not all True")  # fmt: skip
        yield Case("past and future", (call,), holds=lambda a: _looks_back(a.value))


def _looks_back(allowed: torch.Tensor) -> str | None:
    past, future = allowed.tril(-1), allowed.triu(1)
    if bool(future.any()):
        row, column = future.nonzero()[0].tolist()
        return f"token {row} may look at token {column}, which comes later"
    missing = torch.ones_like(allowed).tril(-1) & ~past
    if not bool(missing.any()):
        return None
    row, column = missing.nonzero()[0].tolist()
    return f"token {row} may not look at token {column}, which came before"


# Known mistakes and right alternatives register themselves with the exercises above.
from coursework.checks import attention_alternatives, attention_mistakes, attention_rewards  # noqa: E402, F401

attention_scores.reward(attention_rewards.spread_of_scores)
mask_to_bias.reward(attention_rewards.padding_gets_nothing)
scaled_dot_product_attention.reward(attention_rewards.what_the_seal_looks_at)
split_heads.reward(attention_rewards.twelve_heads)
merge_heads.reward(attention_rewards.nothing_is_lost)
multi_head_attention.reward(attention_rewards.first_layer_of_minilm)
causal_mask.reward(attention_rewards.a_sentence_under_the_mask)
