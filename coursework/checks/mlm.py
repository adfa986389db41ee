"""Unit 04: the masked language model. B batch, S sequence, D features, V pieces, M places to guess.

Here are the exercises: what is asked, the right answer, and how each step of it is seen on its own. The known
mistakes and the right alternatives stand in mlm_mistakes.py and mlm_alternatives.py.

Where chance decides, a property is judged and not the numbers: shares of many draws, with bounds of six standard
deviations or more of the binomial, so that a right answer fails once in some hundred million checks.
"""

import random

import torch

from coursework.checks import mlm_rewards
from coursework.checks.engine import Answer, Call, Case, Exercise, Inputs, Part

LESSON = "04_mlm"
SIGMAS = 6.0  # one in five hundred million for each bound

# ---------------------------------------------------------------- 04.1 select positions

select_positions = Exercise(
    "04.1", "select_positions", "select positions",
    lesson=LESSON, section="Fifteen in a hundred", points=3,
    parts=[Part("probability", 2.0), Part("special tokens"), Part("fresh draws")],
)  # fmt: skip


@select_positions.reference
def _select_positions(input_ids, special_ids, probability=0.15):
    rows = []
    for row in input_ids.tolist():
        lucky = [random.random() < probability for _ in row]  # step: probability
        rows.append([yes and piece not in special_ids for yes, piece in zip(lucky, row, strict=True)])
    return torch.tensor(rows)


@select_positions.cases
def _(new: Inputs):
    batch = _Batch(new, 40, 401)
    arguments = batch.ids, list(batch.names)
    seed = new.random.randrange(1 << 30)

    def call(probability: float, seed: int = seed) -> Call:
        return Call((*arguments, probability), seed=seed)

    for p in (0.15, 0.5):
        yield Case("probability", (call(p),), holds=lambda a, p=p: batch.share(a.value, p), random=True)
    yield Case("probability", (call(0.15), call(0.5)), holds=lambda a, b: batch.heeds(a.value, b.value), random=True)
    yield Case("probability", (call(1.0),), holds=lambda a: batch.share(a.value, 1.0), random=True)
    plain = Call(arguments, seed=seed + 1)
    yield Case("probability", (plain,), holds=lambda a: batch.share(a.value, 0.15, "by default "), random=True)
    for p in (1.0, 0.5):
        yield Case("special tokens", (call(p),), holds=lambda a: batch.spares(a.value), random=True)
    twice = call(0.15, seed + 2), call(0.15, seed + 3)
    yield Case("fresh draws", twice, holds=lambda a, b: batch.draws_afresh(a.value, b.value), random=True)


class _Batch:
    """Texts of unlike length, each [CLS] A [SEP] B [SEP] and padding, with some [UNK] and [MASK] among the words."""

    def __init__(self, new: Inputs, texts: int, longest: int):
        numbers = new.random.sample(range(1, 300), 5)
        words = torch.tensor([piece for piece in range(1, 1000) if piece not in numbers])  # below them and above
        self.names = dict(zip(numbers, ("[CLS]", "[SEP]", "[PAD]", "[UNK]", "[MASK]"), strict=True))
        cls_id, sep_id, self.pad_id, *among = numbers
        self.ids = torch.full((texts, longest), self.pad_id)
        for row in self.ids:
            length = new.random.randrange(longest // 3, longest)
            row[:length] = words[new.integers(0, len(words), length)]
            row[new.integers(0, length, 6)] = torch.tensor(among)[new.integers(0, 2, 6)]
            row[0] = cls_id
            row[[length // 2, length - 1]] = sep_id
        self.ordinary = ~torch.isin(self.ids, torch.tensor(numbers))

    def share(self, chosen: torch.Tensor, p: float, when: str = "") -> str | None:
        """Of the ordinary tokens p, exactly or on average; p of all real tokens, as Google counts, is right too."""
        count = int(self.ordinary.sum())
        real = int((self.ids != self.pad_id).sum())
        slack = SIGMAS * (p * (1 - p) / count) ** 0.5 + (len(self.ids) / count if p < 1 else 0.0)
        got = float(chosen[self.ordinary].double().mean())
        if p - slack - 1e-9 <= got <= min(1.0, p * real / count + slack):
            return None
        rate = f"selects {got:.1%} of the ordinary tokens where {when}{p:.0%} are asked for"
        if p not in (0.5, 1.0) and abs(got - (1 - p)) < slack:
            return f"{rate}: just the others"
        return f"{rate}: {'none' if got == 0 else 'all' if got == 1 else 'too many' if got > p else 'too few'}"

    def heeds(self, some: torch.Tensor, more: torch.Tensor) -> str | None:
        few, many = (float(chosen[self.ordinary].double().mean()) for chosen in (some, more))
        if abs(few - many) > 0.1:
            return None
        return f"selects {few:.1%} of the ordinary tokens with probability 0.15 and {many:.1%} with 0.5"

    def spares(self, chosen: torch.Tensor) -> str | None:
        hit = [name for piece, name in self.names.items() if bool(chosen[self.ids == piece].any())]
        return f"selects {', '.join(hit)}: a special token is never hidden" if hit else None

    def draws_afresh(self, first: torch.Tensor, second: torch.Tensor) -> str | None:
        beginning, rest = self.ordinary.clone(), self.ordinary.clone()
        beginning[:, 50:], rest[:, :50] = False, False
        for part, where in (("first 50 tokens of the texts", beginning), ("later tokens of the texts", rest)):
            got = float(first[where].double().mean())
            if got > 0.30:  # about 2000 tokens at 0.15: 19 standard deviations
                return f"selects {got:.0%} of the {part}: every place should have the same chance"
        hits = [int(row.sum()) for row in first & self.ordinary]
        words = [int(row.sum()) for row in self.ordinary]
        if all(hit in (0, many) for hit, many in zip(hits, words, strict=True)):
            return "a text is selected whole or not at all: each token has its own draw"
        columns = range(1, first.shape[1] // 4)  # in every text
        if all(len(set(first[self.ordinary[:, j], j].tolist())) <= 1 for j in columns):
            return "all texts of the batch are selected at the same places"
        if torch.equal(first, second):
            return "two calls select the same places: nothing is drawn anew"
        after = first[:, 1:][first[:, :-1] & self.ordinary[:, :-1] & self.ordinary[:, 1:]]
        if float(after.double().mean()) > 0.5:  # 0.15 of about a thousand: 31 standard deviations
            return "the selected places of a text lie side by side: each token has its own draw"
        for j in columns:
            if bool(first[self.ordinary[:, j], j].all()) and bool(second[self.ordinary[:, j], j].all()):
                return f"place {j} is selected in every text: each token should have the same chance"
        return None


@select_positions.reward
def _(function):
    mlm_rewards.ten_times(function)


# ---------------------------------------------------------------- 04.2 mask tokens

mask_tokens = Exercise(
    "04.2", "mask_tokens", "mask tokens",
    lesson=LESSON, section="80, 10, 10", points=5,
    parts=[Part("labels", 2.0), Part("untouched"), Part("split", 2.0), Part("random pieces"), Part("fresh draws")],
)  # fmt: skip


@mask_tokens.reference
def _mask_tokens(input_ids, selected, mask_id, vocab_size):
    inputs, labels = [], []
    for ids, asked in zip(input_ids.tolist(), selected.tolist(), strict=True):
        for piece, yes in zip(ids, asked, strict=True):
            draw = random.random()
            hide, swap = draw < 0.8, draw < 0.9  # step: split
            new = mask_id if hide else random.randrange(vocab_size) if swap else piece  # step: split or random pieces
            inputs.append(new if yes else piece)
            labels.append(piece if yes else -100)  # step: labels
    return torch.tensor(inputs).view(input_ids.shape), torch.tensor(labels).view(input_ids.shape)


@mask_tokens.cases
def _(new: Inputs):
    mask_id = new.random.randrange(3, 90)

    def question(texts: int, length: int, size: int, share: float = 1.0) -> tuple[Call, torch.Tensor, torch.Tensor]:
        """Pieces from the lower half of the vocabulary, 0 ([PAD]) among them; the first of each text not selected."""
        ids = new.integers(0, size // 2, texts, length)
        ids[ids == mask_id] = 7
        selected = torch.rand(texts, length, generator=new._generator) < share
        selected[:, 0], selected[0, 1], ids[0, 1] = False, True, 0  # a selected piece with the number 0
        return Call((ids, selected, mask_id, size), seed=new.random.randrange(1 << 30)), ids, selected

    call, ids, selected = question(6, 83, 200, 0.4)
    holds = _Holds(ids, selected, mask_id, 200)
    yield Case("labels", (call,), holds=holds.labels, random=True)
    yield Case("untouched", (call,), holds=holds.untouched, random=True)
    nothing = torch.zeros_like(selected)
    of_nothing = _Holds(ids, nothing, mask_id, 200)
    yield Case("labels", (Call((ids, nothing, mask_id, 200)),), holds=of_nothing.labels, random=True)
    yield Case("untouched", (Call((ids, nothing, mask_id, 200)),), holds=of_nothing.untouched, random=True)

    call, ids, selected = question(40, 1001, 200)
    holds = _Holds(ids, selected, mask_id, 200)
    yield Case("split", (call,), holds=lambda a, holds=holds: holds.split(a, least=0.02), random=True)
    yield Case("random pieces", (call,), holds=holds.pieces, random=True)
    call, ids, selected = question(30, 151, 200)
    again = Call(call.args, seed=call.seed + 1)
    yield Case("fresh draws", (call, again), holds=_Holds(ids, selected, mask_id, 200).draws_afresh, random=True)
    call, ids, selected = question(100, 1801, 1000)  # 180,000 draws tell 80 % from 81 %
    yield Case("split", (call,), holds=_Holds(ids, selected, mask_id, 1000).split, random=True)


class _Holds:
    """What must hold for the answers (inputs, labels) to one question."""

    def __init__(self, ids: torch.Tensor, selected: torch.Tensor, mask_id: int, size: int):
        self.ids, self.selected, self.mask_id, self.size = ids, selected, mask_id, size

    def labels(self, answer: Answer) -> str | None:
        inputs, labels = answer.value
        chosen, ids = self.selected, self.ids
        rest = labels[~chosen]
        if torch.equal(labels, inputs) and bool(chosen.any()):
            return "labels and inputs are the same numbers: what the model reads is no question"
        if bool((labels[chosen] == -100).all()) and torch.equal(rest, ids[~chosen]) and bool(chosen.any()):
            return "labels are −100 just where something is asked, and the pieces elsewhere: the wrong way round"
        if bool((rest != -100).any()):
            if torch.equal(rest, ids[~chosen]):
                return "labels hold the piece also where nothing is asked: −100 belongs there"
            if torch.equal(rest, inputs[~chosen]):
                return "labels hold what the model reads also where nothing is asked: −100 belongs there"
            odd = int(rest[rest != -100][0])
            kind = ", a negative number," if odd < 0 else ", a positive number," if odd > 0 else ""
            return f"labels are {odd}{kind} where nothing is asked: −100 belongs there"
        got, want = labels[chosen], ids[chosen]
        if torch.equal(got, want):
            return None
        if bool((got == -100).all()):
            return "labels are −100 at selected places too: nothing is ever asked"
        wrong = got != want
        if bool((got[wrong] == -100).all()):
            stays, hidden = got[inputs[chosen] == want], got[inputs[chosen] == self.mask_id]
            if bool((stays == -100).all()) and bool((hidden != -100).all()):
                swapped = got[(inputs[chosen] != want) & (inputs[chosen] != self.mask_id)]
                where = (
                    "where a selected piece does not become [MASK]"
                    if bool((swapped == -100).all())
                    else "where a selected piece stays"
                )
                return f"labels are −100 {where}: it is asked for too"
            return f"labels are −100 at {int(wrong.sum())} selected places"
        if torch.equal(got[wrong], inputs[chosen][wrong]):
            return "labels hold what the model reads, not what stood there before: copied after masking"
        return f"labels are not the original pieces at {int(wrong.sum())} of {len(want)} selected places"

    def untouched(self, answer: Answer) -> str | None:
        inputs, rest = answer.value[0], ~self.selected
        changed = int((inputs[rest] != self.ids[rest]).sum())
        if not changed:
            return None
        many = "all" if changed > 0.95 * int(rest.sum()) else "most" if changed > 0.5 * int(rest.sum()) else "some"
        if bool((inputs[rest] == self.mask_id).any()):
            return f"{many} of the pieces that were not selected change ({changed}), and become [MASK]"
        return f"{many} of the pieces that were not selected change ({changed})"

    def split(self, answer: Answer, least: float = 0.0) -> str | None:
        """`least`: what is right within this much is right; 81 % of 40,000 is told from 80 % by luck only."""
        fates = (answer.value[0] == self.mask_id)[:, 1:].double().mean(1)  # the first of each text is not selected
        if bool(self.selected[:, 1:].all()) and bool(((fates < 0.02) | (fates > 0.98)).all()) and fates.std() > 0.1:
            return "all selected pieces in a text have the same fate: each has its own draw"
        new, old = answer.value[0][self.selected], self.ids[self.selected]
        count = len(old)
        hidden, same = new == self.mask_id, new == old
        masked, other, kept = (float(what.double().mean()) for what in (hidden, ~hidden & ~same, same))
        shares = {"[MASK]": (masked, 0.8), "another": (other, 0.1), "unchanged": (kept, 0.1)}
        said = {}
        for name, (got, want) in shares.items():
            slack = max(least, SIGMAS * (want * (1 - want) / count) ** 0.5 + 0.2 / self.size)  # may draw the same
            off = "too often" if got > want else "too rare" if got > want / 4 else "far too rare" if got else "never"
            said[name] = "right" if abs(got - want) <= slack else off
        if set(said.values()) == {"right"}:
            return None
        told = ", ".join(f"{name} {word}" for name, word in said.items())
        return f"split {masked:.1%} / {other:.1%} / {kept:.1%}: {told}"

    def pieces(self, answer: Answer) -> str | None:
        inputs = answer.value[0]
        swapped = self.selected & (inputs != self.mask_id) & (inputs != self.ids)
        drawn = inputs[swapped]
        if bool((drawn < 0).any()) or bool((drawn >= self.size).any()):
            return f"a random piece has the number {int(drawn.max())}: the vocabulary has 0 … {self.size - 1}"
        if len(drawn) < 1000:  # the split says so
            return None
        if len(drawn.unique()) == 1:
            return "one random piece stands at all places: each place has its own draw"
        if not bool((drawn >= self.size // 2).any()):
            return "random pieces come from this batch only: any piece of the vocabulary may come"
        pieces = torch.where(swapped, inputs, -1)
        for table, where in ((pieces, "at all places of a text"), (pieces.T, "at one place of all texts")):
            if all(len(set(row) - {-1}) <= 1 for row in table.tolist()):
                return f"one random piece stands {where}: each place has its own draw"
        counts = torch.bincount(drawn, minlength=self.size)  # about 20 of each
        common = counts[100:].double()  # special tokens may be left out; they have low numbers
        missing, usual = int((common == 0).sum()), float(common.mean())
        if missing > 1:
            return f"{missing} pieces of the vocabulary are never drawn: any piece may come"
        if not int(counts[-1]):
            return f"the last piece of the vocabulary, {self.size - 1}, is never drawn"
        if float(counts.max()) > usual + 12 * usual**0.5:
            return f"piece {int(counts.argmax())} is drawn {int(counts.max())} times, the others {usual:.0f} times"
        if float(((common - usual) ** 2).sum()) / usual > 212:  # χ² of 99 degrees of freedom: once in a billion
            return "some pieces are drawn much more often than others: all are equally likely"
        return None

    def draws_afresh(self, one: Answer, other: Answer) -> str | None:
        first, second = one.value[0], other.value[0]
        if torch.equal(first, second):
            return "two calls give the same inputs: nothing is drawn anew"
        masked = (first == self.mask_id)[1:, 1:]
        for table, what in ((masked, "in a text"), (masked.T, "at one place of all texts")):
            shares = table.double().mean(1)
            if bool(((shares < 0.1) | (shares > 0.9)).all()):
                return f"all selected pieces {what} have the same fate: each has its own draw"
        return None


@mask_tokens.reward
def _(function):
    mlm_rewards.a_sentence_hidden(function)


# ---------------------------------------------------------------- 04.3 MLM head

mlm_head = Exercise(
    "04.3", "mlm_head", "MLM head",
    lesson=LESSON, section="From a vector to a score for every piece", points=4,
    parts=[Part("decoder bias"), Part("decoder"), Part("LayerNorm"), Part("GELU"), Part("dense"),
           Part("gradient", kind="gradient")],
)  # fmt: skip


@mlm_head.reference
def _mlm_head(hidden, weights):
    rows = []
    for x in hidden.reshape(-1, hidden.shape[-1]):  # one token, (D,)  # step: shape
        x = (weights["dense.weight"] * x).sum(1) + weights["dense.bias"]  # step: dense
        x = x * (1 + torch.erf(x / 2**0.5)) / 2  # step: GELU or LayerNorm
        centred = x - x.mean()  # step: LayerNorm or GELU
        x = centred / torch.sqrt((centred * centred).mean() + 1e-12)  # step: LayerNorm
        x = weights["norm.weight"] * x + weights["norm.bias"]  # step: LayerNorm
        scores = (weights["word"] * x).sum(1)  # step: decoder or LayerNorm
        rows.append(scores + weights["decoder.bias"])  # step: decoder bias or decoder
    return torch.stack(rows).view(*hidden.shape[:-1], -1)


@mlm_head.cases
def _(new: Inputs):
    size, width = 23, 7
    hidden = new.normal(3, 5, width, scale=1.5)
    weights = {
        "dense.weight": new.normal(width, width),
        "dense.bias": new.normal(width, scale=0.5),
        "norm.weight": new.normal(width, mean=1.5),
        "norm.bias": new.normal(width, scale=2.0),
        "word": new.normal(size, width),
        "decoder.bias": new.normal(size, scale=2.0),
    }
    eye, one, zero = (
        torch.eye(width, dtype=new.dtype),
        torch.ones(width, dtype=new.dtype),
        torch.zeros(width, dtype=new.dtype),
    )
    unbiased = weights | {"decoder.bias": torch.zeros(size, dtype=new.dtype)}
    bare = weights | {"word": eye, "decoder.bias": zero}  # the scores are what comes out of LayerNorm
    plain = bare | {"norm.weight": one, "norm.bias": zero}
    straight = plain | {"dense.weight": eye, "dense.bias": zero}
    yield Case(
        "decoder bias",
        (Call((hidden, weights)), Call((hidden, unbiased))),
        holds=lambda a, b: _adds(a.value, b.value, weights["decoder.bias"]),
    )
    yield Case(
        "decoder",
        (Call((hidden, unbiased)), Call((hidden, bare))),
        holds=lambda a, b: _is_a_product(a.value, b.value, weights["word"]),
    )
    yield Case("LayerNorm", (Call((hidden, plain)),), holds=lambda a: _is_normalised(a.value))
    yield Case(
        "LayerNorm",
        (Call((hidden, bare)), Call((hidden, plain))),
        holds=lambda a, b: _scaled(a.value, b.value, weights),
    )
    level = plain | {"dense.weight": torch.zeros(width, width, dtype=new.dtype)}  # the bias alone reaches GELU
    yield Case(
        "GELU",
        (Call((hidden, straight)), Call((hidden, level))),
        holds=lambda a, b: _is_gelu(a.value, hidden, b.value, weights["dense.bias"].expand(hidden.shape)),
    )
    says = "the vectors before the decoder are off by {off}: the dense layer is wrong"
    yield Case("dense", (Call((hidden, plain)),), says)
    says = "where a token's features hardly differ the result is off by {off}: is eps 1e-12?"
    yield Case("LayerNorm", (Call((hidden * 1e-6, straight)),), says)
    yield Case("dense", (Call((hidden, weights)),), "the scores are off by {off}")
    yield Case("dense", (Call((hidden[0], weights)),), "for hidden of shape (M, D) the scores are off by {off}")
    every = 0, *((1, name) for name in weights)
    yield Case("gradient", (Call((hidden, weights), wrt=every, cotangents=(new.normal(3, 5, size),)),))


def _apart(a: torch.Tensor, b: torch.Tensor) -> float:
    return float((a.double() - b.double()).abs().max())


def _adds(with_bias: torch.Tensor, without: torch.Tensor, bias: torch.Tensor) -> str | None:
    off = _apart(with_bias.double() - without.double(), bias.double().expand(with_bias.shape))
    if off < 2e-4 * float(with_bias.abs().max()):
        return None
    return f"decoder.bias is not what is added last (off by {off:.2g})"


def _is_a_product(scores: torch.Tensor, vectors: torch.Tensor, word: torch.Tensor) -> str | None:
    off = _apart(scores, vectors.double() @ word.double().T)
    if off < 2e-4 * float(scores.abs().max()):
        return None
    return f"the scores are not the vectors times weights['word'], one dot product a piece (off by {off:.2g})"


def _is_normalised(value: torch.Tensor) -> str | None:
    value = value.double()
    mean, spread = float(value.mean(-1).abs().max()), value.std(-1, correction=0)
    if mean > 1e-3:
        return f"before the decoder a token's features should average 0; yours average up to {mean:.2g}"
    if float((spread - 1).abs().max()) > 1e-3:
        low, high = float(spread.min()), float(spread.max())
        return f"before the decoder a token's features should have deviation 1; yours {low:.3g} … {high:.3g}"
    return None


def _is_gelu(through_weight: torch.Tensor, x: torch.Tensor, through_bias: torch.Tensor, y: torch.Tensor) -> str | None:
    """Right in one of the two: then what is off in the other is the dense layer. (eps only scales.)"""
    gaps = []
    for got, before in ((through_weight, x.double()), (through_bias, y.double())):
        after = before * torch.special.ndtr(before)
        gaps.append(_apart(_standardised(got.double()), _standardised(after)))
    return None if min(gaps) < 2e-4 else f"with a dense layer that changes nothing, off by {gaps[0]:.2g}: not GELU"


def _standardised(x: torch.Tensor) -> torch.Tensor:
    return (x - x.mean(-1, keepdim=True)) / x.std(-1, correction=0, keepdim=True).clamp(min=1e-9)


def _scaled(loud: torch.Tensor, plain: torch.Tensor, weights: dict) -> str | None:
    off = _apart(loud, plain.double() * weights["norm.weight"].double() + weights["norm.bias"].double())
    if off < 2e-4 * float(loud.abs().max()):
        return None
    return f"norm.weight and norm.bias do not act on it (off by {off:.2g})"


@mlm_head.reward
def _(function):
    mlm_rewards.a_blank_filled(function)


# ---------------------------------------------------------------- 04.4 MLM loss

mlm_loss = Exercise(
    "04.4", "mlm_loss", "MLM loss",
    lesson=LESSON, section="The loss, and what it says", points=3,
    parts=[Part("cross-entropy"), Part("labelled only", 2.0), Part("large scores"), Part("none labelled"),
           Part("gradient", kind="gradient")],
)  # fmt: skip


@mlm_loss.reference
def _mlm_loss(logits, labels):
    total, count = logits.sum() * 0.0, 0
    for scores, label in zip(logits.reshape(-1, logits.shape[-1]), labels.flatten().tolist(), strict=True):
        if label != -100:  # step: labelled only or cross-entropy
            total = total + torch.logsumexp(scores, 0) - scores[label]  # step: cross-entropy
            count = count + 1  # step: labelled only or cross-entropy
    return total / max(count, 1)  # step: labelled only or none labelled or cross-entropy


@mlm_loss.cases
def _(new: Inputs):
    batch, length, size = 3, 5, 11
    logits = new.normal(batch, length, size, scale=2.0)
    full = new.integers(0, size, batch, length)
    says = "with every token labelled the loss is off by {off}"
    yield Case("cross-entropy", (Call((logits[:1, :1], full[:1, :1])),), "for a single token the loss is off by {off}")
    yield Case("cross-entropy", (Call((logits, full)),), says)
    labels = full.clone()
    labels[0, 1:], labels[1, ::2], labels[2, 3] = -100, -100, -100  # 1, 2 and 4 labelled: no mean of means
    labels[0, 0], labels[1, 1] = 0, size - 1  # piece 0 is a label like any other
    says = "with 7 of 15 tokens labelled the loss is off by {off}"
    yield Case("labelled only", (Call((logits, labels)),), says)
    one = torch.full_like(full, -100)
    one[1, 2] = 0
    yield Case("labelled only", (Call((logits, one)),), "with one labelled token, whose piece is 0, off by {off}")
    says = "with 1000 added to every score nothing should change, and the loss is off by {off}"
    yield Case("large scores", (Call((logits + 1000, labels)),), says)
    yield Case("large scores", (Call((logits * 1000, labels)),), "with scores in the thousands off by {off}")
    none = torch.full_like(full, -100)
    yield Case("none labelled", (Call((logits, none)),), "without any label the loss should be 0")
    none_at_all = Call((logits, none), wrt=(0,), cotangents=(torch.tensor(1.0, dtype=new.dtype),))
    yield Case("gradient", (Call((logits, labels), wrt=(0,), cotangents=(torch.tensor(1.7, dtype=new.dtype),)),))
    yield Case("gradient", (none_at_all,), "without any label the loss should be 0")


@mlm_loss.reward
def _(function):
    mlm_rewards.how_surprised(function)


# ---------------------------------------------------------------- 04.5 gather positions

gather_positions = Exercise(
    "04.5", "gather_positions", "gather positions",
    lesson=LESSON, section="Only where it is asked", points=2,
    parts=[Part("places"), Part("texts"), Part("gradient", kind="gradient")],
)  # fmt: skip


@gather_positions.reference
def _gather_positions(hidden, positions):
    rows = []
    for i, places in enumerate(positions.tolist()):
        rows.append(torch.stack([hidden[i, place] for place in places]))  # step: texts or places
    return torch.stack(rows)


@gather_positions.cases
def _(new: Inputs):
    def question(batch: int, length: int, width: int, count: int) -> tuple:
        places = torch.stack([torch.randperm(length, generator=new._generator)[:count] for _ in range(batch)])
        return new.normal(batch, length, width), places

    hidden, places = question(1, 9, 7, 4)
    yield Case(
        "places", (Call((hidden, places)),), "with a single text the vectors are not those of the places asked for"
    )
    hidden, places = question(3, 11, 5, 4)
    says = "with three texts some vectors are not those of the text they belong to"
    yield Case("texts", (Call((hidden, places)),), says)
    places[0, 1] = places[0, 0]  # a place may be asked for twice
    yield Case("texts", (Call((hidden, places)),), says)
    yield Case("gradient", (Call((hidden, places), wrt=(0,), cotangents=(new.normal(3, 4, 5),)),))


@gather_positions.reward
def _(function):
    mlm_rewards.work_saved(function)


# Known mistakes and right alternatives register themselves with the exercises above.
from coursework.checks import mlm_alternatives, mlm_mistakes  # noqa: E402, F401
