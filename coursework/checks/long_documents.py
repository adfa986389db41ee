"""Unit 09: documents that are longer than BERT can read.

Here are the exercises: what is asked, the right answer, and how each step of it is seen on its own. The known
mistakes and the right alternatives stand in long_documents_mistakes.py and long_documents_alternatives.py.
"""

from collections.abc import Callable

import torch

from coursework.checks import long_documents_rewards as rewards
from coursework.checks.engine import Answer, Call, Case, Exercise, Inputs, Part
from coursework.runner import Probe

LESSON = "09_long_documents"


def _plain(value):
    """Ids in a list, a tuple or a tensor are the same ids."""
    if isinstance(value, torch.Tensor) and value.dim() and not value.dtype.is_floating_point:
        return value.tolist()
    return [_plain(item) for item in value] if isinstance(value, (list, tuple)) else value


def _document(new: Inputs, length: int) -> tuple[list[int], int, int]:
    """Pieces that are all different, so that each tells its place; the ids of [CLS] and [SEP], not the usual ones."""
    first, cls_id, sep_id = new.random.randrange(1000, 5000), *new.random.sample(range(100, 200), 2)
    return [first + i for i in range(length)], cls_id, sep_id


# ---------------------------------------------------------------- 09.1 head and tail

head_tail = Exercise(
    "09.1", "head_tail", "head and tail",
    lesson=LESSON, section="Keep the beginning, keep the end", points=3,
    parts=[Part("special tokens"), Part("length"), Part("beginning"), Part("end"), Part("no tail"), Part("no head"),
           Part("documents that fit", 2.0)],
)  # fmt: skip


@head_tail.reference
def _head_tail(pieces, max_length, head, cls_id, sep_id):
    room = max_length - 2  # step: length
    kept = []
    for place, piece in enumerate(pieces):
        of_the_end = place >= len(pieces) - (room - head)  # step: end or length or no tail or documents that fit
        if place < head or of_the_end:  # step: beginning or length or documents that fit or no head
            kept.append(piece)
    return [cls_id, *kept, sep_id]  # step: special tokens


@head_tail.canonical
def _(value):
    return _plain(value)


@head_tail.cases
def _(new: Inputs):
    def case(part: str, length: int, max_length: int, head: int) -> Case:
        pieces, cls_id, sep_id = _document(new, length)
        call = Call((pieces, max_length, head, cls_id, sep_id))
        return Case(part, (call,), holds=_Kept(part, *call.args), loose=True)

    most = new.random.randrange(13, 17)
    room, length = most - 2, new.random.randrange(28, 35)
    for part in ("special tokens", "length", "beginning", "end"):
        yield case(part, length, most, 4)  # fewer from the front than from the end, and the other way round
        yield case(part, length + 1, most, room - 3)
        yield case(part, room + 2, most, 5)  # only two are lost
    yield case("no tail", length, most, room)
    yield case("no tail", room + 1, most, room)
    yield case("no head", length, most, 0)
    yield case("no head", room + 1, most, 0)
    for short, head in ((room, 4), (room - 1, 4), (room - 3, 5), (3, 5), (4, 0), (5, room), (1, 3), (0, 0), (0, 3)):
        yield case("documents that fit", short, most, head)
    again, cls_id, sep_id = [5, 8, 5, 6, 7, 9, 6, 5], *new.random.sample(range(100, 200), 2)
    call = Call((again, 7, 2, cls_id, sep_id))
    kept = [cls_id, 5, 8, 9, 6, 5, sep_id]
    says = f"{again}, in which ids come again, max_length 7, head 2: expected {kept}"
    yield Case("end", (call,), holds=lambda a: None if _plain(a.value) == kept else says, loose=True)
    whole, told = [cls_id, *again, sep_id], f"{again}, in which ids come again, fits: all of them are kept, in order"
    call = Call((again, 12, 2, cls_id, sep_id))
    yield Case("documents that fit", (call,), loose=True, holds=lambda a: None if _plain(a.value) == whole else told)


class _Kept:
    """Compares what one part is about, and says it in places of the document."""

    def __init__(self, part: str, pieces: list[int], max_length: int, head: int, cls_id: int, sep_id: int):
        self.part, self.pieces, self.head, self.most = part, pieces, head, max_length
        self.special = cls_id, sep_id
        self.want = _head_tail(pieces, max_length, head, cls_id, sep_id)

    def __call__(self, answer: Answer) -> str | None:
        got, want = _plain(answer.value), self.want
        if got == want:
            return None
        at = f"{len(self.pieces)} pieces, max_length {self.most}, head {self.head}"
        if self.part == "special tokens":
            if got[:1] == want[:1] and got[-1:] == want[-1:] and sum(got.count(i) for i in self.special) == 2:
                return None
            return f"the result should begin with cls_id and end with sep_id, each once; yours is {_shown(got)}"
        if self.part == "length":
            return f"{at}: {len(got)} ids, expected {len(want)}" if len(got) != len(want) else None
        inside, expected = ([i for i in ids if i not in self.special] for ids in (got, want))
        if self.part == "beginning":
            if inside[: self.head] == expected[: self.head]:
                return None
            return f"{at}: should begin with pieces 0 to {self.head - 1}, and begins with {self._places(inside)}"
        if self.part == "end":
            tail = len(expected) - self.head
            if inside[-tail:] == expected[-tail:]:
                return None
            low = len(self.pieces) - tail
            return f"{at}: should end with pieces {low} to {len(self.pieces) - 1}, and ends with {self._places(inside)}"
        if inside == expected:
            return f"{at}: the right pieces, but not from cls_id to sep_id: {_shown(got)}"
        return f"{at}: keeps {self._places(inside)}, expected {self._places(expected)}"

    def _places(self, ids: list) -> str:
        """Runs of neighbours, as "0–3, 20–24"."""
        strange = [i for i in ids if i not in self.pieces]
        if strange:
            return f"{strange[0]}, which is none of the pieces"
        runs: list[list[int]] = []
        for place in map(self.pieces.index, ids):
            if runs and place == runs[-1][1] + 1:
                runs[-1][1] = place
            else:
                runs.append([place, place])
        told = [f"{a}–{b}" if a < b else f"{a}" for a, b in runs]
        return "pieces " + ", ".join(told[:4]) + (" …" if len(told) > 4 else "") if told else "no piece"


def _shown(ids: list) -> str:
    return f"{ids}" if len(ids) < 5 else f"[{ids[0]}, {ids[1]}, …, {ids[-2]}, {ids[-1]}]"


@head_tail.reward
def _(function):
    rewards.both_ends_of_a_review(function)


# ---------------------------------------------------------------- 09.2 windows

windows = Exercise(
    "09.2", "windows", "windows",
    lesson=LESSON, section="Windows with a stride", points=4,
    parts=[Part("special tokens"), Part("size"), Part("stride"), Part("last window", 2.0), Part("documents that fit"),
           Part("strides that skip")],
)  # fmt: skip


@windows.reference
def _windows(pieces, max_length, stride, cls_id, sep_id):
    room = max_length - 2  # step: size
    if stride < 1 or stride > room:  # step: strides that skip
        raise ValueError(f"stride is {stride}: with room for {room} pieces it can be 1 to {room}")
    found = []
    for start in range(0, max(1, len(pieces)), stride):  # step: stride or size or special tokens or documents that fit
        found.append([cls_id, *pieces[start : start + room], sep_id])  # step: special tokens or size
        if start + room >= len(pieces):  # step: last window or documents that fit
            break
    return found


@windows.canonical
def _(value):
    return _plain(value)


@windows.cases
def _(new: Inputs):
    def case(part: str, length: int, room: int, stride: int) -> Case:
        pieces, cls_id, sep_id = _document(new, length)
        call = Call((pieces, room + 2, stride, cls_id, sep_id))
        return Case(part, (call,), holds=_Cuts(part, *call.args), loose=True)

    # No stride is half of the room: there, a stride and an overlap are the same number.
    room, stride = new.random.choice(((9, 4), (11, 4), (10, 3), (11, 5)))
    count = new.random.randrange(3, 5)
    full = count * stride + room  # the last window is full
    for part in ("special tokens", "size", "stride"):
        yield case(part, full, room, stride)
        yield case(part, full - 1, room, stride)
        yield case(part, full + 2, room, room)  # no overlap
        yield case(part, full - 2, room, room - 1)
    for more in (0, 1, -1, stride - 1, 2 - stride):
        yield case("last window", full + more, room, stride)
    yield case("last window", 3 * room, room, room)
    yield case("last window", 3 * room + 1, room, room)
    yield case("last window", room + 1, room, stride)
    yield case("last window", room + 4, room, 1)
    yield case("last window", 4, 1, 1)
    again, cls_id, sep_id = [5, 6, 7, 9, 8, 5, 9, 7, 9], *new.random.sample(range(100, 200), 2)
    cuts = [[cls_id, *again[k : k + 4], sep_id] for k in (0, 3, 6)]
    told = f"{again}, in which ids come again, max_length 6, stride 3: expected {cuts}"
    call = Call((again, 6, 3, cls_id, sep_id))
    yield Case("last window", (call,), holds=lambda a: None if _plain(a.value) == cuts else told, loose=True)
    for length in (room, room - 1, stride + 1, stride, 1, 0):
        yield case("documents that fit", length, room, stride)
    yield case("documents that fit", room, room, room)
    wrong = [(stride, full) for stride in (room + 1, room + 2, room + 5, 0, -2)]
    wrong += [(stride, length) for stride in (room + 1, 0) for length in (room, 1, 0)]  # refused all the same
    for stride, length in wrong:
        pieces, cls_id, sep_id = _document(new, length)
        says = f"stride {stride} with room for {room} pieces should raise a ValueError: "
        says += "pieces between two windows are never read" if stride > 0 else "no window ever reaches the end"
        says += ", if not here then in a longer document" if length < full else ""
        call = Call((pieces, room + 2, stride, cls_id, sep_id))
        yield Case("strides that skip", (call,), says, raises="ValueError")


class _Cuts:
    """Compares what one part is about, and says it in places of the document."""

    def __init__(self, part: str, pieces: list[int], max_length: int, stride: int, cls_id: int, sep_id: int):
        self.part, self.pieces, self.most, self.special = part, pieces, max_length, (cls_id, sep_id)
        self.want = _windows(pieces, max_length, stride, cls_id, sep_id)
        self.where = f"{len(pieces)} pieces, max_length {max_length}, stride {stride}"

    def __call__(self, answer: Answer) -> str | None:
        got, want = _plain(answer.value), self.want
        if got == want:
            return None
        if any(not isinstance(window, list) for window in got):
            return "the result should be a list of windows, each a list of ids"
        look = {"special tokens": self._specials, "size": self._sizes, "stride": self._starts}
        if self.part in look:
            return look[self.part](got)
        if self._told(got) == self._told(want) and (wrong := self._specials(got)):
            return f"{self.where}: {wrong}"
        return f"{self.where}: your windows are {self._told(got)}; expected {self._told(want)}"

    def _specials(self, got: list[list[int]]) -> str | None:
        for number, ids in enumerate(got):
            inside = sum(ids.count(i) for i in self.special)
            if [*ids[:1], *ids[-1:]] != list(self.special) or inside != 2:
                return f"window {number} should begin with cls_id and end with sep_id, each once, and is {_shown(ids)}"
        return None if got else f"{self.where}: no window at all"

    def _sizes(self, got: list[list[int]]) -> str | None:
        for number, ids in enumerate(got):
            if len(ids) > self.most or (len(ids) < self.most and number + 1 < min(len(got), len(self.want))):
                return f"{self.where}: window {number} has {len(ids)} ids, expected {self.most}"
        return None

    def _starts(self, got: list[list[int]]) -> str | None:
        for number, (mine, theirs) in enumerate(zip(got[:-1], self.want[:-1], strict=False)):
            if mine[1:2] != theirs[1:2]:
                want = self._told([theirs])
                return f"{self.where}: window {number} is {self._told([mine])}; expected {want}"
        return None

    def _told(self, cuts: list[list[int]]) -> str:
        """Windows as the places of their first and last piece."""
        found = []
        for ids in cuts[:9]:
            places = [self.pieces.index(i) for i in ids if i in self.pieces]
            found.append(f"{places[0]}–{places[-1]}" if places else "empty")
        return ", ".join(found or ["none"]) + (" …" if len(cuts) > 9 else "")


@windows.reward
def _(function):
    rewards.a_review_in_windows(function)


# ---------------------------------------------------------------- 09.3 pool

pool = Exercise(
    "09.3", "pool", "pool",
    lesson=LESSON, section="One answer from many windows", points=4,
    parts=[Part("mean"), Part("max"), Part("different counts", 2.0), Part("mixed order"), Part("one window"),
           Part("gradient of the mean", kind="gradient"), Part("gradient of the max", kind="gradient")],
)  # fmt: skip


@pool.reference
def _pool(x, document, documents, how):
    rows = []
    for number in range(documents):
        mine = [
            x[w] for w in range(len(x)) if int(document[w]) == number
        ]  # step: mean or different counts or mixed order
        if how == "mean":
            rows.append(sum(mine) / len(mine))  # step: mean or gradient of the mean or different counts
        else:
            largest = mine[0]
            for row in mine[1:]:  # step: max or different counts
                largest = torch.where(row > largest, row, largest)  # step: max or gradient of the max
            rows.append(largest)
    return torch.stack(rows)


@pool.cases
def _(new: Inputs):
    def numbers(counts: list[int], mixed: bool = False) -> torch.Tensor:
        found = [d for d, count in enumerate(counts) for _ in range(count)]
        if mixed:
            new.random.shuffle(found)
        return torch.tensor(found)

    def ask(counts: list[int], how: str, mixed: bool = False, low: float = 0.0, **more) -> Call:
        x = new.normal(sum(counts), 5, scale=2.0, mean=low)
        return Call((x, numbers(counts, mixed), len(counts), how), **more)

    for how in ("mean", "max"):
        yield Case(how, (ask([3], how),), f"how={how!r}, one document of three windows: off by {{off}}")
        yield Case(how, (ask([3, 3, 3, 3], how),), f"how={how!r}, four documents of three windows each: off by {{off}}")
        yield Case(how, (ask([4, 4], how, low=-9.0),), f"how={how!r}, all numbers below 0: off by {{off}}")
    counts = new.random.sample([2, 3, 4, 6], 4)
    for how in ("mean", "max"):
        says = f"how={how!r}, documents of {counts} windows: off by {{off}}"
        yield Case("different counts", (ask(counts, how),), says)
        yield Case("different counts", (ask(counts, how, low=-9.0),), says + ", all numbers below 0")
        yield Case("different counts", (ask(counts, how, low=-3000.0),), says + ", all numbers around -3000")
        says = f"how={how!r}, windows of several documents mixed: off by {{off}}"
        yield Case("mixed order", (ask(counts, how, mixed=True),), says)
        says = f"how={how!r}, documents of one window beside longer ones: off by {{off}}"
        yield Case("one window", (ask([1, 4, 1], how), ask([1], how), ask([1, 1, 1], how)), says)
        yield Case("one window", (ask([3, 5, 1], how, low=-9.0),), says)
    for how in ("mean", "max"):
        call = ask(counts, how, mixed=True, wrt=(0,), cotangents=(new.normal(4, 5),))
        yield Case(f"gradient of the {how}", (call,))


@pool.reward
def _(function):
    rewards.windows_of_two_reviews(function)


# ---------------------------------------------------------------- 09.4 predict documents

predict_documents = Exercise(
    "09.4", "predict_documents", "predict documents",
    lesson=LESSON, section="Several documents, one batch", points=5,
    parts=[Part("one window each"), Part("padding", 2.0), Part("mean", 2.0), Part("max"), Part("labels", 2.0),
           Part("batches", 2.0), Part("no gradients")],
)  # fmt: skip


@predict_documents.reference
def _predict_documents(model, documents, how, batch):
    found: list[list[torch.Tensor]] = [[] for _ in documents]
    todo = [(number, ids) for number, cuts in enumerate(documents) for ids in cuts]
    with torch.no_grad():
        for start in range(0, len(todo), batch):
            some = todo[start : start + batch]
            longest = max(len(ids) for _, ids in some)
            padded = torch.tensor([ids + [0] * (longest - len(ids)) for _, ids in some])  # step: padding
            mask = torch.tensor(
                [[1] * len(ids) + [0] * (longest - len(ids)) for _, ids in some]
            )  # step: padding or one window each
            for (number, _), logits in zip(some, model(padded, mask), strict=True):
                found[number].append(logits)
    rows = []
    for logits in found:
        together = torch.stack(logits)  # (windows of this document, K)
        mean = together.sum(0) / len(together)  # step: mean or one window each
        rows.append(mean if how == "mean" else together.max(0).values)  # step: mean or max
    pooled = torch.stack(rows)  # (B, K)
    return pooled, pooled.argmax(1)  # step: labels


@predict_documents.canonical
def _(value):
    """Two results in a list or a tuple; of how the model was asked only what judges."""
    if isinstance(value, dict) and "calls" in value:
        return [sorted(value["calls"]), value["graph"], value["as before"]]
    return list(value) if isinstance(value, (list, tuple)) else value


def ask_for_documents(function, weights, documents, how, batch, about):
    """Let the student's function ask a small model -> its logits, its labels, or how the model was asked."""
    calls, enabled = [], torch.is_grad_enabled()

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            for name, value in weights.items():
                self.register_parameter(name, torch.nn.Parameter(value.clone()))

        def forward(self, input_ids, attention_mask):  # (W, S), (W, S) of 1 and 0 -> (W, K)
            input_ids, attention_mask = input_ids.to(self.table.device), attention_mask.to(self.table.device)
            filled = bool(input_ids[attention_mask == 0].any())  # with other ids than 0
            calls.append([input_ids.size(0), torch.is_grad_enabled(), filled])
            real = attention_mask[:, :, None].to(self.table.dtype)
            x = (self.table[input_ids] + self.position[: input_ids.size(1)]) * real  # (W, S, D)
            x = torch.tanh(x.sum(1) / real.sum(1))
            return x @ self.weight.T + self.bias

    model = Model().eval()
    found = function(model, documents, how, batch)
    if not isinstance(found, (tuple, list)) or len(found) != 2:
        raise ValueError("return two things: the logits (B, K) and the labels (B,)")
    logits, labels = found
    if about == "calls":
        graph = bool(getattr(logits, "requires_grad", False))
        before = [torch.is_grad_enabled() == enabled, all(weight.requires_grad for weight in model.parameters())]
        return {"calls": calls, "graph": graph, "as before": before}
    return labels if about == "labels" else logits


@predict_documents.cases
def _(new: Inputs):
    pieces, width, classes = 23, 7, 4
    weights = {"table": new.normal(pieces, width, scale=2.0), "position": new.normal(12, width),
               "weight": new.normal(classes, width, scale=2.0), "bias": new.normal(classes)}  # fmt: skip
    weights["table"][0] += 3.0  # padding that is read is heard

    def cuts(sizes: list[int]) -> list[list[int]]:
        return [new.integers(1, pieces, size).tolist() for size in sizes]

    for _ in range(3):  # no class is the usual winner, or windows would never disagree
        logits = torch.cat([_window_logits(weights, cuts([8] * 9)), _window_logits(weights, cuts([3] * 9))])
        weights["bias"] = weights["bias"] - logits.mean(0).to(new.dtype)

    def ask(documents: list, how: str, batch: int, about: str = "logits") -> Call:
        return Call((weights, documents, how, batch, about), driver=Probe.of(ask_for_documents))

    for how in ("mean", "max"):
        says = f"three documents of one window each, how={how!r}: the logits are off by {{off}}"
        yield Case("one window each", (ask([cuts([6]), cuts([6]), cuts([6])], how, 3),), says)
    says = "windows of {} tokens: the logits are off by {{off}}"
    for sizes in ((8, 3, 5), (2, 9, 4)):
        yield Case("padding", (ask([cuts([size]) for size in sizes], "mean", 3),), says.format(list(sizes)))
    yield Case("padding", (ask([cuts([8]), cuts([3])], "mean", 3, "calls"),), holds=_filled_with_0, loose=True)
    # Documents of several windows, all but the last of a document full
    many = [cuts([8, 8, 8, 3]), cuts([5]), cuts([8, 8, 2]), cuts([8, 8, 8, 8, 8, 4]), cuts([8, 6])]
    counts = [len(document) for document in many]
    for how in ("mean", "max"):
        for batch in (16, 5, 3):
            says = f"documents of {counts} windows, how={how!r}, batches of {batch}: the logits are off by {{off}}"
            yield Case(how, (ask(many, how, batch),), says)
    for one in ([cuts([7])], [cuts([8, 8, 5])]):
        part, says = "one window each" if len(one[0]) == 1 else "mean", "a single document: "
        yield Case(part, (ask(one, "mean", 4),), says + "the logits are off by {off}")
        yield Case(part, (ask(one, "mean", 4, "labels"),), says + "its label is another")
    outvoted = [_outvoted(weights, lambda: cuts([8, 8, 8, 8, 3]), votes=k < 3) for k in range(5)]
    for how in ("mean", "max"):
        for documents in (many, outvoted):
            call = ask(documents, how, 5, "labels")
            says = f"how={how!r}: {{off}} of {len(documents)} labels are not the class of the largest pooled logit"
            yield Case("labels", (call,), says)
    for batch in (5, 16, 1):
        yield Case("batches", (ask(many, "mean", batch, "calls"),), loose=True,
                   holds=lambda a, batch=batch: _asked(a, counts, batch))  # fmt: skip
    yield Case("no gradients", (ask(many, "mean", 5, "calls"),), holds=_no_graph, loose=True)


def _window_logits(weights: dict[str, torch.Tensor], document: list[list[int]]) -> torch.Tensor:
    """(windows, K): what the model of `ask_for_documents` says."""
    w = {name: value.double() for name, value in weights.items()}
    x = [torch.tanh((w["table"][ids] + w["position"][: len(ids)]).mean(0)) for ids in document]
    return torch.stack(x) @ w["weight"].T + w["bias"]


def _outvoted(weights: dict[str, torch.Tensor], draw: Callable[[], list], votes: bool) -> list[list[int]]:
    """A document with another label by its windows' votes, or by their mean probabilities, than by pooled logits."""
    for _ in range(1000):
        logits = _window_logits(weights, document := draw())
        counts = torch.bincount(logits.argmax(1), minlength=logits.size(1))
        other = int((counts if votes else logits.softmax(1).mean(0)).argmax())
        if other not in (int(logits.mean(0).argmax()), int(logits.amax(0).argmax())):
            return document
    raise AssertionError("no such document found")


def _filled_with_0(answer: Answer) -> str | None:
    filled = any(filled for _, _, filled in answer.value["calls"])
    return "where the mask is 0, the model is given other ids than 0" if filled else None


def _asked(answer: Answer, counts: list[int], batch: int) -> str | None:
    sizes, windows = [size for size, _, _ in answer.value["calls"]], sum(counts)
    told = f"{len(counts)} documents of {counts} windows, batch {batch}"
    if sum(sizes) != windows:
        return f"{told}: the model is asked about {sum(sizes)} windows, expected {windows}"
    if max(sizes) > batch:
        return f"{told}: {max(sizes)} windows at once"
    if len(sizes) > -(-windows // batch):
        enough = -(-windows // batch)
        return f"{told}: the model is called {len(sizes)} times, and {enough} would do: fill each batch"
    return None


def _no_graph(answer: Answer) -> str | None:
    switched_back, still_learns = answer.value["as before"]
    if not still_learns:
        return "the model's parameters are frozen afterwards (requires_grad is False): it can learn no more"
    if answer.value["graph"] or any(enabled for _, enabled, _ in answer.value["calls"]):
        return "the model is asked with gradients switched on: of each window it keeps everything for a way back"
    if not switched_back:
        return "gradients stay switched off afterwards: whatever is trained next learns nothing"
    return None


@predict_documents.reward
def _(function):
    rewards.long_reviews_judged(function)


# Known mistakes and right alternatives register themselves with the exercises above.
from coursework.checks import long_documents_alternatives, long_documents_mistakes  # noqa: E402, F401
