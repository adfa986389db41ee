"""Unit 11: what RoBERTa, ALBERT and DistilBERT change. B batch, S sequence, D features, V pieces, E embedding.

Here are the exercises: what is asked, the right answer, and how each step of it is seen on its own. The known
mistakes and the right alternatives stand in variants_mistakes.py and variants_alternatives.py.
"""

from collections.abc import Callable

import torch

from coursework.checks import variants_rewards
from coursework.checks.engine import Answer, Call, Case, Exercise, Inputs, Part, describe
from coursework.runner import Probe

LESSON = "11_variants"

# ---------------------------------------------------------------- 11.1 RoBERTa's positions

roberta_positions = Exercise(
    "11.1", "roberta_positions", "RoBERTa's positions",
    lesson=LESSON, section="RoBERTa: the same model, 514 rows", points=2,
    parts=[Part("first position"), Part("counting"), Part("padding")],
)  # fmt: skip


@roberta_positions.reference
def _roberta_positions(input_ids, padding_id):
    rows = []
    for row in input_ids.tolist():
        positions, place = [], padding_id  # step: first position
        for piece in row:
            real = piece != padding_id  # step: padding or counting or first position
            place = place + 1 if real else place  # step: counting or first position
            positions.append(place if real else padding_id)  # step: padding or counting
        rows.append(positions)
    return torch.tensor(rows)


@roberta_positions.cases
def _(new: Inputs):
    def ids(padding_id: int, lengths: list[int], width: int, side: str = "right") -> torch.Tensor:
        """Pieces from 0 on, but not padding; `lengths` of them in each row are real, the others padding."""
        table = new.integers(0, 90, len(lengths), width)
        table[:, [0, -1]] = torch.tensor([0, 2])  # <s> and </s>
        table[table == padding_id] = 90
        columns = torch.arange(width)
        for row, length in zip(table, lengths, strict=True):
            right = columns >= length
            places = {"right": right, "left": columns < width - length, "between": right & (columns < width - 1)}
            row[places[side]] = padding_id
        return table

    full = [ids(padding_id, [7, 7], 7) for padding_id in (1, 4)]
    for padding_id, table in zip((1, 4), full, strict=True):
        says = f"in a row without padding (padding_id {padding_id}) positions are wrong"
        yield Case("first position", (Call((table, padding_id)),), says)
    for padding_id, side in ((1, "on the right"), (1, "on the left"), (3, "on the left"), (3, "between")):
        table = ids(padding_id, [8, 3, 5, 1], 8, side.split()[-1])
        real = table != padding_id
        want = torch.where(real, real.cumsum(1) + padding_id, padding_id)

        def agrees(answer: Answer, where: torch.Tensor, what: str, want: torch.Tensor = want) -> str | None:
            wrong = (answer.value != want) & where
            if not bool(wrong.any()):
                return None
            row, column = wrong.nonzero()[0].tolist()
            got = f"{int(answer.value[row, column])} where {int(want[row, column])} is right"
            return f"{what}: {got} (row {row}, column {column})"

        counted = f"with padding {side} a real token has another position"
        padded = f"padding {side} does not get position {padding_id}"
        call = Call((table, padding_id))
        yield Case("counting", (call,), holds=lambda a, f=agrees, r=real, w=counted: f(a, r, w))
        yield Case("padding", (call,), holds=lambda a, f=agrees, r=~real, w=padded: f(a, r, w))


@roberta_positions.reward
def _(function):
    variants_rewards.rows_of_a_batch(function)


# ---------------------------------------------------------------- 11.2 ALBERT's embedding

factorised_embedding = Exercise(
    "11.2", "factorised_embedding", "ALBERT's narrow embedding",
    lesson=LESSON, section="ALBERT: narrow at the door", points=2,
    parts=[Part("look up"), Part("widen"), Part("bias"), Part("gradient", kind="gradient")],
)  # fmt: skip


@factorised_embedding.reference
def _factorised_embedding(input_ids, weights):
    rows = []
    for piece in input_ids.reshape(-1).tolist():
        narrow = weights["word"][piece]  # (E,)  # step: look up
        wide = (weights["widen.weight"] * narrow).sum(1)  # (D,)  # step: widen or look up
        rows.append(wide + weights["widen.bias"])  # step: bias or look up
    return torch.stack(rows).view(*input_ids.shape, -1)


@factorised_embedding.cases
def _(new: Inputs):
    pieces, narrow, wide = 19, 4, 7
    ids = new.integers(0, pieces, 3, 5)
    ids[0, :3] = torch.tensor([0, pieces - 1, 0])  # padding's row is a row like any other
    weights = {
        "word": new.normal(pieces, narrow),
        "widen.weight": new.normal(wide, narrow),
        "widen.bias": new.normal(wide, scale=2.0),
    }
    copies = torch.zeros(wide, narrow, dtype=new.dtype)
    copies[:narrow] = torch.eye(narrow, dtype=new.dtype)
    still = torch.zeros(wide, dtype=new.dtype)
    seen = weights | {"widen.weight": copies, "widen.bias": still}
    yield Case("look up", (Call((ids, seen)),), "with a widening that only copies, the result is off by {off}")
    unbiased = weights | {"widen.bias": still}
    yield Case("widen", (Call((ids, unbiased)),), "with a bias of zeros the result is off by {off}")
    yield Case("bias", (Call((ids, weights)),), "with a bias the result is off by {off}")
    wrt = tuple((1, name) for name in weights)
    yield Case("gradient", (Call((ids, weights), wrt=wrt, cotangents=(new.normal(3, 5, wide),)),))


@factorised_embedding.reward
def _(function):
    variants_rewards.what_it_saves(function)


# ---------------------------------------------------------------- 11.3 one layer, many times

SharedEncoder = Exercise(
    "11.3", "SharedEncoder", "one layer, many times",
    lesson=LESSON, section="ALBERT: one layer, twelve times", points=4,
    parts=[Part("many times", 2.0), Part("one layer"), Part("state dict"), Part("gradient", 2.0)],
)  # fmt: skip


@SharedEncoder.reference
def _shared_encoder(make_layer, times):
    class Shared(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = make_layer()

        def forward(self, hidden, attention_mask=None):
            done = 0  # step: many times
            while done < times:  # step: many times
                hidden = self.layer(hidden, attention_mask)  # step: many times
                done = done + 1  # step: many times
            return hidden

    return Shared()


def shared_maker(tables):
    """-> make_layer(): each call gives a layer of its own, with one parameter (D, D)."""

    class Layer(torch.nn.Module):
        def __init__(self, table):
            super().__init__()
            self.table = torch.nn.Parameter(table.clone())

        def forward(self, hidden, attention_mask=None):
            if attention_mask is not None:
                hidden = hidden * attention_mask[:, :, None]
            return hidden.roll(1, dims=1) + torch.tanh(hidden @ self.table)

    made = []

    def make_layer():
        made.append(Layer(tables[len(made) % len(tables)]))
        return made[-1]

    return make_layer


# What follows is sent to where the student's class lives, and asks it there.


def run_shared(encoder_class, make_layer, times, hidden, mask):
    return encoder_class(make_layer, times)(hidden, mask)


def run_without_mask(encoder_class, make_layer, times, hidden):
    return encoder_class(make_layer, times)(hidden)


def count_shared(encoder_class, make_layer, times, hidden, mask):
    encoder = encoder_class(make_layer, times)
    encoder(hidden, mask)
    return len(list(encoder.parameters()))


def list_shared(encoder_class, make_layer, times):
    return len(encoder_class(make_layer, times).state_dict())


def learn_shared(encoder_class, make_layer, times, hidden, mask, cotangent):
    encoder = encoder_class(make_layer, times)
    (encoder(hidden, mask) * cotangent).sum().backward()
    return [p.grad for p in encoder.parameters() if p.grad is not None]


@SharedEncoder.cases
def _(new: Inputs):
    tables = new.normal(14, 6, 6, scale=0.4)  # as many layers as anybody may make, all different
    hidden, mask = new.normal(2, 5, 6), new.padding_mask(2, 5)

    def call(driver: Callable, *more) -> Call:
        return Call((Probe.of(shared_maker, tables), *more), driver=Probe.of(driver))

    for times in (1, 3, 12):
        says = f"run {'once' if times == 1 else f'{times} times'}, the result is off by {{off}}"
        yield Case("many times", (call(run_shared, times, hidden, mask),), says)
    yield Case("many times", (call(run_without_mask, 2, hidden),), "without a mask the result is off by {off}")
    yield Case("one layer", (call(count_shared, 5, hidden, mask),), holds=lambda a: _parameters_of(a.value, 5))
    yield Case("state dict", (call(list_shared, 5),), holds=lambda a: _entries_of(a.value, 5))
    says = "the gradient of the layer's tensor is off by {off}: it is the sum over all the times it was used"
    for times in (1, 4):
        more = times, hidden, mask, new.normal(2, 5, 6)
        yield Case("gradient", (call(learn_shared, *more),), says)


def _parameters_of(found: int, times: int) -> str | None:
    if found == 1:
        return None
    told = "none" if found == 0 else f"{found} tensors"
    return f"encoder.parameters() finds {told} for a layer with one tensor that is run {times} times"


def _entries_of(found: int, times: int) -> str | None:
    if found == 1:
        return None
    return f"encoder.state_dict() has {found} entries for a layer with one tensor that is run {times} times"


@SharedEncoder.reward
def _(function):
    variants_rewards.deeper_is_no_larger(function)


# ---------------------------------------------------------------- 11.4 counting

count_masked_lm = Exercise(
    "11.4", "count_masked_lm", "110 million and 12 million",
    lesson=LESSON, section="Twelve million, counted", points=4,
    parts=[Part("vocabulary"), Part("one layer", 2.0), Part("layers"), Part("the rest"), Part("narrow and wide")],
)  # fmt: skip


@count_masked_lm.reference
def _count_masked_lm(vocab, width, inner, layers, embedding, shared):
    word = vocab * embedding  # step: vocabulary
    places = 512 * embedding + 2 * embedding  # step: the rest or narrow and wide or one layer
    widen = embedding * width + width if embedding != width else 0  # step: narrow and wide or the rest
    attention = 4 * (width * width + width)  # step: one layer
    feed_forward = width * inner + inner + inner * width + width  # step: one layer
    norms = 4 * width  # step: one layer
    layer = attention + feed_forward + norms  # step: one layer
    stack = layer if shared else layers * layer  # step: layers or one layer
    head = width * embedding + embedding + 2 * embedding  # step: the rest or narrow and wide or layers
    scores = vocab  # the decoder is the word table: only its bias is new  # step: vocabulary
    total = word + scores  # step: vocabulary
    total = total + stack  # step: one layer or layers
    total = total + places + 2 * embedding + head  # step: the rest or narrow and wide or one layer
    return total + widen  # step: narrow and wide or the rest or one layer


@count_masked_lm.cases
def _(new: Inputs):
    vocabulary = new.random.randrange(40, 90)

    def call(vocab=vocabulary, width=12, inner=31, layers=5, embedding=12, shared=False) -> Call:
        return Call((vocab, width, inner, layers, embedding, shared))

    def grows(step: int, what: str) -> Callable:
        def holds(before: Answer, after: Answer) -> str | None:
            got = after.value - before.value
            return None if got == step else f"{what}: {got:+,} parameters, not {step:+,}"

        return holds

    for embedding in (12, 7):
        pair = call(embedding=embedding), call(embedding=embedding, vocab=vocabulary + 10)
        yield Case("vocabulary", pair, holds=grows(10 * (embedding + 1), "10 more pieces"))
    for width, inner in ((12, 31), (20, 9)):
        size = {"width": width, "inner": inner, "embedding": width}
        layer = 4 * (width * width + width) + 2 * width * inner + inner + width + 4 * width
        pair = call(layers=2, **size), call(layers=3, **size)
        yield Case("one layer", pair, holds=grows(layer, f"a layer of width {width} and inner width {inner}"))
    pair = call(layers=2, shared=True), call(layers=9, shared=True)
    yield Case("layers", pair, holds=grows(0, "a shared layer that is run 9 times and not 2"))
    layer = 4 * (144 + 12) + 2 * 12 * 31 + 31 + 12 + 48
    pair = call(layers=7, shared=True), call(layers=7)
    yield Case("layers", pair, holds=grows(6 * layer, "7 layers with weights of their own instead of one shared"))
    # Without layers and words, as wide as narrow: what is left is places, their LayerNorm and the head.
    rest = _count_masked_lm(0, 12, 31, 0, 12, False)
    empty = call(vocab=0, layers=0)
    yield Case("the rest", (empty,), holds=lambda a: _is_left(a.value, rest))
    pair = empty, call(vocab=0, layers=0, embedding=7)
    step = _count_masked_lm(0, 12, 31, 0, 7, False) - rest
    yield Case("narrow and wide", pair, holds=grows(step, "an embedding 7 and not 12 wide, no words, no layers"))
    for numbers in (
        (30522, 768, 3072, 12, 768, False),
        (30000, 768, 3072, 12, 128, True),
        (vocabulary, 12, 31, 5, 7, True),
    ):
        want = _count_masked_lm(*numbers)
        yield Case("narrow and wide", (Call(numbers),), holds=lambda a, n=numbers, w=want: _is_all(a.value, n, w))


def _is_left(got: int, want: int) -> str | None:
    return None if got == want else f"with no words and no layers {got:,} parameters are left, not {want:,}"


def _is_all(got: int, numbers: tuple, want: int) -> str | None:
    if got == want:
        return f"count_masked_lm{numbers} is {got}: a float, not a whole number" if isinstance(got, float) else None
    return f"count_masked_lm{numbers} is {got:,}, off by {got - want:+,}"


@count_masked_lm.reward
def _(function):
    variants_rewards.four_sizes(function)


# ---------------------------------------------------------------- 11.5 sentence order

sentence_order_pair = Exercise(
    "11.5", "sentence_order_pair", "sentence order",
    lesson=LESSON, section="Sentence order against next sentence", points=2,
    parts=[Part("in order"), Part("swapped"), Part("label")],
)  # fmt: skip


@sentence_order_pair.reference
def _sentence_order_pair(sentences, cut, swapped):
    first, second = [], []
    for number, sentence in enumerate(sentences):
        for token in sentence:
            (first if number < cut else second).append(token)  # step: in order or swapped
    a, b = (second, first) if swapped else (first, second)  # step: swapped or in order
    label = 1 if swapped else 0  # step: label
    return a, b, label


@sentence_order_pair.cases
def _(new: Inputs):
    def sentences(count: int) -> list[list[int]]:
        """All numbers of a document are different, so that each token is known."""
        tokens = new.random.sample(range(100, 900), 60)
        lengths = [new.random.randrange(1, 6) for _ in range(count)]
        return [[tokens.pop() for _ in range(length)] for length in lengths]

    for count, cut in ((2, 1), (5, 2), (4, 3), (6, 1)):
        document = sentences(count)
        first, second = ([token for words in part for token in words] for part in (document[:cut], document[cut:]))
        for swapped in (False, True):
            a, b = (second, first) if swapped else (first, second)
            part = "swapped" if swapped else "in order"
            call = Call((document, cut, swapped))
            yield Case(part, (call,), holds=lambda r, a=a, b=b, p=part: _segments(r.value, a, b, p), loose=True)
            yield Case("label", (call,), holds=lambda r, s=swapped: _order_label(r.value, s), loose=True)


def _segments(got: tuple, a: list, b: list, part: str) -> str | None:
    if len(got) != 3:
        return f"returns {len(got)} values, expected 3: a, b and the label"
    for name, mine, want, other in (("A", got[0], a, b), ("B", got[1], b, a)):
        found, right = [[repr(token) for token in tokens] for tokens in (mine, want)]
        if found == right:
            continue
        if found == [repr(token) for token in other]:
            return f"{part}: segment {name} is what the other segment should be"
        if sorted(found) == sorted(right):
            return f"{part}: segment {name} has the right tokens in another order"
        return f"{part}: segment {name} has {len(mine)} items, {mine[:4]} …, where {want[:4]} … ({len(want)}) is right"
    return None


def _order_label(got: tuple, swapped: bool) -> str | None:
    want = int(swapped)
    if len(got) != 3:
        return f"returns {len(got)} values, expected 3: a, b and the label"
    if repr(got[2]) == repr(want):
        return None
    return f"the label of a pair {'swapped' if swapped else 'in order'} is {got[2]}, not {want}"


@sentence_order_pair.reward
def _(function):
    variants_rewards.an_order(function)


# ---------------------------------------------------------------- 11.6 distillation

distillation_loss = Exercise(
    "11.6", "distillation_loss", "distillation",
    lesson=LESSON, section="DistilBERT: learning from a teacher", points=6,
    parts=[Part("soft", 2.0), Part("temperature", 2.0), Part("hard"), Part("cosine", 2.0), Part("mask"),
           Part("gradient", kind="gradient"), Part("teacher")],
)  # fmt: skip


@distillation_loss.reference
def _distillation_loss(student_logits, teacher_logits, labels, student_hidden, teacher_hidden, attention_mask, T):
    soft, hard, asked = 0.0, 0.0, 0
    for mine, wanted, label in zip(student_logits, teacher_logits.detach(), labels.tolist(), strict=True):
        p = torch.exp(wanted / T) / torch.exp(wanted / T).sum()  # step: temperature or soft
        q = torch.exp(mine / T) / torch.exp(mine / T).sum()  # step: temperature or soft
        kl = (p * (p / q).log()).sum()  # step: soft
        soft = soft + kl * T * T / len(student_logits)  # step: temperature or soft
        if label != -100:  # step: hard
            hard = hard - (torch.exp(mine[label]) / torch.exp(mine).sum()).log()  # step: hard
            asked = asked + 1  # step: hard
    apart, tokens = 0.0, 0
    for mine, wanted, mask in zip(student_hidden, teacher_hidden.detach(), attention_mask.tolist(), strict=True):
        for x, y, real in zip(mine, wanted, mask, strict=True):
            if real:  # step: mask
                cosine = (x * y).sum() / (x * x).sum().sqrt() / (y * y).sum().sqrt()  # step: cosine
                apart = apart + 1 - cosine  # step: cosine
                tokens = tokens + 1  # step: cosine or mask
    return soft, hard / asked, apart / tokens


def which(number: int):
    """A driver that gives back one of the three losses."""
    return Probe.of(one_of, number)


def one_of(number):
    def driver(function, *arguments):
        losses = function(*arguments)
        if not isinstance(losses, (tuple, list)) or len(losses) != 3:
            raise TypeError("three losses are asked for, as a tuple: soft, hard, cosine")
        return losses[number]

    return driver


def teachers_share(function, student_logits, teacher_logits, labels, student_hidden, teacher_hidden, mask, T):
    """After backward(): does the student get a gradient, does the teacher get one?"""
    leaves = [x.clone().requires_grad_() for x in (student_logits, teacher_logits, student_hidden, teacher_hidden)]
    losses = function(leaves[0], leaves[1], labels, leaves[2], leaves[3], mask, T)
    sum(losses).backward()
    return [leaf.grad is not None and bool((leaf.grad != 0).any()) for leaf in leaves]


@distillation_loss.cases
def _(new: Inputs):
    rows, pieces, width = 6, 11, 5
    mask = new.padding_mask(3, 7)
    everything = torch.ones_like(mask)
    labels = new.integers(0, pieces, rows)
    labels[[1, 4]] = -100
    arguments = [new.normal(rows, pieces, scale=2.0), new.normal(rows, pieces, scale=2.0), labels,
                 new.normal(3, 7, width), new.normal(3, 7, width), mask]  # fmt: skip
    near = new.normal(rows, pieces, scale=2.0)

    def call(number: int, T: float, changes: dict[int, torch.Tensor] | None = None, **more) -> Call:
        changed = [(changes or {}).get(i, x) for i, x in enumerate(arguments)]
        return Call((*changed, T), driver=which(number), **more)

    equal = call(0, 1.0, {0: near, 1: near})
    yield Case("soft", (equal,), holds=lambda a: _is_zero(a.value, "soft: of two equal distributions"))
    yield Case("soft", (call(0, 1.0),), "soft: at temperature 1 it is off by {off}")
    for T in (2.0, 5.0):
        yield Case("temperature", (call(0, T),), f"soft: at temperature {T:g} it is off by {{off}}")
    every = {2: labels.clamp(min=0)}
    yield Case("hard", (call(1, 1.0, every),), "hard: with a label in each row it is off by {off}")
    yield Case("hard", (call(1, 2.0, every),), "hard: at temperature 2 it is off by {off}: labels know no temperature")
    yield Case("hard", (call(1, 1.0),), "hard: where some labels are −100 it is off by {off}")
    full = {5: everything}
    longer = call(2, 1.0, full | {4: arguments[3] * 3})
    yield Case("cosine", (longer,), holds=lambda a: _is_zero(a.value, "cosine: of vectors that differ in length only"))
    yield Case("cosine", (call(2, 1.0, full),), "cosine: without padding it is off by {off}")
    yield Case("mask", (call(2, 1.0),), "cosine: with padding it is off by {off}")
    one = torch.ones((), dtype=new.dtype)
    for number, leaf, name in ((0, 0, "soft"), (1, 0, "hard"), (2, 3, "cosine")):
        says = f"{name}: at temperature 2 it is off by {{off}}"
        yield Case("gradient", (call(number, 2.0, wrt=(leaf,), cotangents=(one,)),), says)
    asked = Call((*arguments, 2.0), driver=Probe.of(teachers_share))
    yield Case("teacher", (asked,), holds=lambda a: _who_learns(a.value), loose=True)


def _is_zero(got: torch.Tensor, what: str) -> str | None:
    return None if abs(float(got)) < 1e-5 else f"{what} it is {float(got):.2g}, not 0"


def _who_learns(found: list[bool]) -> str | None:
    if found[1] or found[3]:
        where = " and ".join(name for name, yes in (("logits", found[1]), ("hidden vectors", found[3])) if yes)
        return f"a gradient reaches the teacher's {where}: the teacher would learn from its pupil"
    if not (found[0] and found[2]):
        return f"no gradient reaches the student's {'logits' if not found[0] else 'hidden vectors'}"
    return None


@distillation_loss.reward
def _(function):
    variants_rewards.soft_answers(function)


# ---------------------------------------------------------------- 11.7 half of the teacher

student_from_teacher = Exercise(
    "11.7", "student_from_teacher", "half of the teacher",
    lesson=LESSON, section="DistilBERT: learning from a teacher", points=3,
    parts=[Part("which layers", 2.0), Part("new numbers"), Part("the rest"), Part("copies")],
)  # fmt: skip


@student_from_teacher.reference
def _student_from_teacher(state):
    student = {}
    for name in state:
        words = name.split(".")
        if words[0] != "layers":
            student[name] = state[name].clone()  # step: the rest or copies
        elif int(words[1]) % 2 == 0:  # step: which layers
            number = int(words[1]) // 2  # step: new numbers or which layers
            student[".".join(["layers", str(number), *words[2:]])] = state[name].clone()
    return student


def alter_it(function, state):
    """Change the student, then look at the teacher."""
    student = function(state)
    for tensor in student.values():
        tensor += 1
    return list(state.values())


@student_from_teacher.cases
def _(new: Inputs):
    def teacher(layers: int, shuffled: bool = False) -> dict:
        state = {"embeddings.word": new.normal(9, 4), "embeddings.norm_bias": new.normal(4)}
        for number in range(layers):
            state |= {
                f"layers.{number}.up_weight": new.normal(6, 4),
                f"layers.{number}.up_bias": new.normal(6),
                f"layers.{number}.norm{number}_{number // 2}": new.normal(4),
                f"layers.{number}.parts.{number}.bias": new.normal(4),
            }  # numbers that count no layers
        state["pooler.layers.3.weight"] = new.normal(4, 4)  # "layers" in it, and yet no layer
        state["layers_scale.weight"] = new.normal(4)
        names = list(state)
        if shuffled:
            new.random.shuffle(names)
        return {name: state[name] for name in names}

    for layers, shuffled in ((4, False), (6, True), (12, False), (24, True)):
        state = teacher(layers, shuffled)
        call = Call((state,))
        for part in ("which layers", "new numbers", "the rest"):
            yield Case(part, (call,), holds=lambda a, s=state, n=layers, p=part: _half(a.value, s, n, p), loose=True)
    state = teacher(4)
    says = "changing the student changes the teacher by {off}: its tensors are the teacher's own, not copies"
    yield Case("copies", (Call((state,), driver=Probe.of(alter_it)),), says)


def _layer(name: str) -> int:
    """The number after "layers."; -1 if there is none."""
    number = name.split(".")[1]
    return int(number) if number.isdecimal() else -1


def _half(got: dict, state: dict, layers: int, part: str) -> str | None:
    odd = next((name for name, tensor in got.items() if not isinstance(tensor, torch.Tensor)), None)
    if odd is not None:
        return f"under {odd!r} stands {describe(got[odd])}, not a tensor"
    mine = {str(name): tensor for name, tensor in got.items() if str(name).startswith("layers.")}
    if part == "the rest":
        for name in (name for name in state if not name.startswith("layers.")):
            if name not in got:
                return f"{name} is missing"
            if got[name].shape != state[name].shape or not torch.equal(got[name].cpu(), state[name]):
                return f"{name} is not the teacher's"
        extra = [name for name in got if name not in mine and name not in state]
        return f"{extra[0]} is a name that the teacher has not" if extra else None
    if part == "new numbers":
        want = {f"layers.{n}.{kind}" for n in range(layers // 2)
                for kind in ("up_weight", "up_bias", f"norm{2 * n}_{n}", f"parts.{2 * n}.bias")}  # fmt: skip
        if set(mine) == want:
            return None
        found = sorted({_layer(name) for name in mine})
        if found == list(range(layers // 2)):
            wrong = [f"{name}, which the student should not have" for name in sorted(set(mine) - want)]
            wrong += [f"no {name}" for name in sorted(want - set(mine))]
            return f"the layers have the right numbers, but there is {wrong[0]}"
        return f"from {layers} layers the student has layers {found}, expected 0 … {layers // 2 - 1}"
    from_layer = {}
    for name, tensor in mine.items():
        if name.endswith("up_weight"):
            same = [n for n in range(layers) if torch.equal(tensor.cpu(), state[f"layers.{n}.up_weight"])]
            from_layer[_layer(name)] = same[0] if same else None
    found = [from_layer[number] for number in sorted(from_layer)]
    if found == list(range(0, layers, 2)):
        return None
    return f"of {layers} layers the student takes {found}, expected {list(range(0, layers, 2))}"


@student_from_teacher.reward
def _(function):
    variants_rewards.half_the_course(function)


# The known mistakes and the right alternatives add themselves to the exercises above.
from coursework.checks import variants_alternatives, variants_mistakes  # noqa: E402, F401
