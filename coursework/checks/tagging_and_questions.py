"""Unit 10: a tag for each word, and where an answer lies.

Here are the exercises: what is asked, the right answer, and how each step of it is seen on its own. The known
mistakes and the right alternatives stand in tagging_and_questions_mistakes.py and …_alternatives.py.
"""

import re
import string
from collections import Counter

import torch

from coursework.checks import tagging_and_questions_rewards as rewards
from coursework.checks.engine import Answer, Call, Case, Exercise, Inputs, Part, compare

LESSON = "10_tagging_and_questions"
NO_LABEL = -100


def _as_floats(value):
    """1 and 1.0, a tuple and a list are the same numbers."""
    if not isinstance(value, (list, tuple)):
        return value
    return [float(v) if isinstance(v, (int, float)) else v for v in value]


# ---------------------------------------------------------------- 10.1 align labels

align_labels = Exercise(
    "10.1", "align_labels", "align labels",
    lesson=LESSON, section="Words have labels, pieces need them", points=3, draw=True,
    parts=[Part("first pieces"), Part("continuations"), Part("special tokens"), Part("padding")],
)  # fmt: skip


@align_labels.reference
def _align_labels(word_labels, word_ids):
    labels = torch.full_like(word_ids, NO_LABEL)  # (B, S)
    for row in range(word_ids.size(0)):
        for i in range(word_ids.size(1)):
            word = int(word_ids[row, i])
            begins = i == 0 or int(word_ids[row, i - 1]) != word  # step: first pieces or continuations
            if word >= 0 and begins:  # step: first pieces or special tokens
                labels[row, i] = word_labels[row][word]  # step: first pieces
    return labels


@align_labels.canonical
def _(value):
    """-100 nearer to the classes, so that the picture can show the classes apart; nobody's answer holds -3."""
    whole = isinstance(value, torch.Tensor) and not value.dtype.is_floating_point
    return torch.where(value == NO_LABEL, -3, value) if whole else value


def _pieces_of_words(new: Inputs, words: int) -> list[int]:
    """How many pieces each word has: some have one, some two, one has three."""
    counts = [3, 2, 2, *(new.random.choice((1, 1, 1, 2)) for _ in range(words - 4)), 1]
    return new.random.sample(counts, len(counts))


@align_labels.cases
def _(new: Inputs):
    batches = []
    for sizes in ((6, 9, 7), (8, 5), (7,)):
        rows, labels = [], []
        for words in sizes:
            row = [-1, *(w for w, n in enumerate(_pieces_of_words(new, words)) for _ in range(n)), -1]
            if words == 9:  # a text that was too long: its last words are cut off
                row = [*row[:-4], -1]
            chosen = [new.random.randrange(1, 7) for _ in range(words)]
            chosen[2] = chosen[1]  # neighbours of one class, and one of class 0, as in every text
            chosen[3] = 0
            rows.append(row)
            labels.append(chosen)
        longest = max(map(len, rows)) + 2
        word_ids = torch.tensor([row + [-1] * (longest - len(row)) for row in rows])
        batches.append((labels, word_ids, [len(row) for row in rows]))
    for part in ("first pieces", "continuations", "special tokens", "padding"):
        for labels, word_ids, lengths in batches:
            yield Case(part, (Call((labels, word_ids)),), holds=_Labels(part, labels, word_ids, lengths))


class _Labels:
    """Compares the labels at the places of one kind."""

    def __init__(self, part: str, labels: list[list[int]], word_ids: torch.Tensor, lengths: list[int]):
        self.part, self.word_ids, self.want = part, word_ids, _align_labels(labels, word_ids)
        self.lengths = lengths

    def __call__(self, answer: Answer) -> str | None:
        for row, i in (self.want != answer.value.cpu()).nonzero().tolist():
            kind, name = self._place(row, i)
            if kind == self.part:
                mine, theirs = int(answer.value[row, i]), int(self.want[row, i])
                return f"row {row}, piece {i} {name}: its label is {mine}, expected {theirs}"
        return None

    def _place(self, row: int, i: int) -> tuple[str, str]:
        word = int(self.word_ids[row, i])
        if i >= self.lengths[row]:
            return "padding", "is padding"
        if word < 0:
            return "special tokens", f"is {'[CLS]' if i == 0 else '[SEP]'}"
        if int(self.word_ids[row, i - 1]) == word:
            return "continuations", f"continues word {word}"
        return "first pieces", f"begins word {word}"


@align_labels.reward
def _(function):
    rewards.a_sentence_in_pieces(function)


# ---------------------------------------------------------------- 10.2 find entities

find_entities = Exercise(
    "10.2", "find_entities", "find entities",
    lesson=LESSON, section="From tags to entities", points=3,
    parts=[Part("plain entities"), Part("the end"), Part("neighbours"), Part("I- without B-"),
           Part("change of kind"), Part("names with a hyphen")],
)  # fmt: skip


@find_entities.reference
def _find_entities(tags):
    found, kind, start = [], None, 0
    for i in range(len(tags) + 1):  # step: the end or plain entities
        tag = tags[i] if i < len(tags) else "O"  # step: the end or plain entities
        goes_on = tag[:2] == "I-" and tag[2:] == kind  # step: plain entities or change of kind or neighbours
        if kind is not None and not goes_on:
            found.append((kind, start, i))
            kind = None
        if tag != "O" and not goes_on:  # step: plain entities or neighbours or I- without B-
            kind, start = tag[2:], i  # step: plain entities or names with a hyphen
    return found


KINDS = ("PER", "LOC", "ORG", "MISC", "TIME")


@find_entities.cases
def _(new: Inputs):
    def case(part: str, *runs: str) -> Case:
        tags = [tag for run in runs for tag in run.split()]
        return Case(part, (Call((tags,)),), holds=_Entities(tags), loose=True)

    def some(low: int = 1, high: int = 4) -> str:
        return "O " * new.random.randrange(low, high)

    def entity(kind: str, inside: int) -> str:
        return " ".join([f"B-{kind}", *[f"I-{kind}"] * inside])

    a, b, c, d, e = new.random.sample(KINDS, 5)
    yield case("plain entities", some(), entity(a, 2), some(), entity(b, 1), some(), entity(a, 0), some())
    yield case("plain entities", entity(c, 3), some(), entity(c, 0), some(2), entity(d, 1), some())
    yield case("plain entities", some(3, 6))
    yield case("plain entities", some(), entity("BIRD", 1), some(), entity("ISLAND", 2), some())  # B and I in the kind
    yield case("the end", some(), entity(b, 1), some(), entity(c, 2))
    yield case("the end", some(), entity(d, 0))
    yield case("the end", entity(e, 3))
    yield case("the end")
    yield case("neighbours", some(), entity(a, 1), entity(b, 0), entity(c, 2), some())
    yield case("neighbours", some(), entity(d, 1), entity(d, 0), entity(d, 2), some(), entity(a, 1))
    yield case("I- without B-", some(), f"I-{a}", some(), f"I-{b} I-{b} I-{b}", some(), entity(c, 1), some())
    yield case("I- without B-", f"I-{d} I-{d}", some(), entity(d, 1), some(1, 2), f"I-{d}")
    yield case("change of kind", some(), f"{entity(a, 1)} I-{b} I-{b}", some(), f"B-{c} I-{d}", some())
    yield case("change of kind", some(), f"I-{e} I-{a}", some(), f"{entity(b, 2)} I-{c} {entity(c, 1)}")
    long, short = new.random.sample(("creative-work", "art-of-war", "sea-side-town"), 2)
    yield case("names with a hyphen", some(), entity(long, 2), some(), entity(short, 0), some(), entity(long, 1))
    yield case("names with a hyphen", some(), entity("CLUB-NIGHT", 1), some(), entity("TAXI-RIDE", 2), some())
    first, last = long.split("-")[0], long.split("-")[-1]  # a part of a kind's name is another kind
    parts = f"B-{first} I-{long}", f"B-{last} I-{long}", f"B-{long} I-{first}"
    yield case("names with a hyphen", some(), parts[0], some(), parts[1], some(), parts[2])


class _Entities:
    """Compares lists of entities and shows the first difference with the tags around it."""

    def __init__(self, tags: list[str]):
        self.tags, self.want = tags, _find_entities(tags)

    def __call__(self, answer: Answer) -> str | None:
        got = [tuple(entity) if isinstance(entity, (list, tuple)) else entity for entity in answer.value]
        if got == self.want:
            return None
        shown = " ".join(self.tags) or "no tags"
        for entity in self.want:
            if entity not in got:
                return f"{shown}: {entity} is not among yours, which are {got!r:.90}"
        extra = [entity for entity in got if entity not in self.want]
        if extra:
            return f"{shown}: you find {extra[0]!r:.40}, which is no entity there"
        return f"{shown}: expected {self.want!r:.90}, in this order and each once"


@find_entities.reward
def _(function):
    rewards.entities_of_the_small_set(function)


# ---------------------------------------------------------------- 10.3 entity F1

entity_f1 = Exercise(
    "10.3", "entity_f1", "entity F1",
    lesson=LESSON, section="Entity F1 is not accuracy", points=3,
    parts=[Part("precision"), Part("recall"), Part("F1"), Part("kind and borders"), Part("over sentences"),
           Part("nothing there")],
)  # fmt: skip


@entity_f1.reference
def _entity_f1(true, predicted):
    right = sum(entity in t for t, p in zip(true, predicted, strict=True) for entity in p)
    said, there = sum(map(len, predicted)), sum(map(len, true))
    precision = right / said if said else 0.0  # step: precision or nothing there or kind and borders
    recall = right / there if there else 0.0  # step: recall or nothing there
    f1 = 2 * right / (said + there) if said + there else 0.0  # step: F1 or nothing there or kind and borders
    return precision, recall, f1


@entity_f1.canonical
def _(value):
    return (
        [float(v) if isinstance(v, (int, float)) else v for v in value] if isinstance(value, (list, tuple)) else value
    )


def _sentence_of_entities(new: Inputs, count: int, sizes=(1, 2, 3)) -> list[tuple[str, int, int]]:
    """`count` entities one after another, with gaps of at least 3, so that there is room beside each."""
    found, at = [], new.random.randrange(0, 3)
    for _ in range(count):
        size = new.random.choice(sizes)
        found.append((new.random.choice(KINDS), at, at + size))
        at += size + new.random.randrange(3, 6)
    return found


@entity_f1.cases
def _(new: Inputs):
    def case(part: str, true: list, predicted: list) -> Case:
        return Case(part, (Call((true, predicted)),), holds=_Scores(part, true, predicted), loose=True)

    # One sentence: two of seven are missed, and three said that are not there.
    true = _sentence_of_entities(new, 7)
    beyond = true[-1][2] + 4
    false = [(new.random.choice(KINDS), beyond + 4 * i, beyond + 4 * i + 1 + i % 2) for i in range(3)]
    lost = set(new.random.sample(range(7), 2))
    found = [entity for i, entity in enumerate(true) if i not in lost]
    for part in ("precision", "recall", "F1"):
        yield case(part, [true], [found + false])
        yield case(part, [true], [found[:3] + false[:1]])
    # Nearly right is wrong: another kind, one token more, one less, the second half, all in one
    kind, start, end = new.random.choice(KINDS[:2]), 5, 8
    for near in (
        [(KINDS[2], start, end)], [(kind, start, end + 1)], [(kind, start - 1, end)], [(kind, start + 1, end)],
        [(kind, start, end - 1)], [(kind, start, start + 1), (kind, start + 1, end)],
    ):  # fmt: skip
        yield case("kind and borders", [[*true[:1], (kind, start + 20, end + 20)]],
                   [[*true[:1], *((k, s + 20, e + 20) for k, s, e in near)]])  # fmt: skip
    # Sentences of different sizes: a mean over sentences, or over kinds, is another number
    sizes = (1, 6, 3)
    many = [_sentence_of_entities(new, size) for size in sizes]
    some = [many[0][:1], [*many[1][:2], ("TIME", 90, 92)], [*many[2][:2], ("PER", 90, 91), ("LOC", 95, 97)]]
    yield case("over sentences", many, some)
    # The same place in another sentence is another place
    moved = [[("PER", 2, 4)], [("LOC", 2, 4)], [("ORG", 7, 8)]]
    yield case("over sentences", moved, [moved[1], moved[2], moved[2]])
    yield case("over sentences", [moved[0], moved[0]], [moved[0], []])
    yield case("nothing there", [[], true[:3]], [[], []])
    yield case("nothing there", [[], []], [true[:2], []])
    yield case("nothing there", [[], []], [[], []])
    yield case("nothing there", [true[:2], []], [[], true[:1]])


class _Scores:
    """Compares precision, recall or F1 alone, or all three."""

    NAMES = ("precision", "recall", "F1")

    def __init__(self, part: str, true: list, predicted: list):
        self.part, self.true, self.predicted = part, true, predicted
        self.want = _entity_f1(true, predicted)

    def __call__(self, answer: Answer) -> str | None:
        if len(answer.value) != 3:
            return f"returns {len(answer.value)} numbers, expected precision, recall and F1"
        for name, mine, want in zip(self.NAMES, answer.value, self.want, strict=True):
            off = compare(mine, want, 0.0, 1e-6)
            if off and off.kind != "value":
                return f"for {name} it {off.text}"
            if off and self.part in (name, "kind and borders", "over sentences", "nothing there"):
                return f"{name} is {float(mine):.6g}, expected {want:.6g}, {self._where()}"
        return None

    def _where(self) -> str:
        true, predicted = sum(map(len, self.true)), sum(map(len, self.predicted))
        if self.part == "kind and borders":
            return f"for {self.predicted[0][1:]} where {self.true[0][1:]} is true, and one that is right"
        sentences = "1 sentence" if len(self.true) == 1 else f"{len(self.true)} sentences"
        return f"for {predicted} entities predicted and {true} true ones in {sentences}"


@entity_f1.reward
def _(function):
    rewards.a_list_of_names(function)


# ---------------------------------------------------------------- 10.4 span targets

span_targets = Exercise(
    "10.4", "span_targets", "span targets",
    lesson=LESSON, section="From characters to pieces", points=4,
    parts=[Part("first piece"), Part("last piece"), Part("inside a piece"), Part("the question"),
           Part("outside the window"), Part("no answer")],
)  # fmt: skip


@span_targets.reference
def _span_targets(offsets, is_context, start, end):
    inside = [i for i, yes in enumerate(is_context) if yes]
    if start is None:
        return 0, 0
    if offsets[inside[0]][0] > start or offsets[inside[-1]][1] < end:  # step: outside the window or first piece
        return 0, 0
    first = max(i for i in inside if offsets[i][0] <= start)  # step: first piece or inside a piece
    last = min(i for i in inside if offsets[i][1] >= end)  # step: last piece or inside a piece
    return first, last


class Passage:
    """A question and a passage as pieces with their characters; `window` gives what the model sees of them."""

    def __init__(self, new: Inputs, words: int):
        self.new = new
        self.question, at = [], 0
        for _ in range(new.random.randrange(5, 8)):
            size = new.random.randrange(3, 8)
            self.question.append((at, at + size))
            at += size + 1
        self.pieces: list[tuple[int, int]] = []  # characters of each piece
        self.begins: list[int] = []  # pieces that begin a word
        at = 0
        for i in range(words):
            sizes = [new.random.randrange(3, 7)] + [new.random.randrange(2, 5)] * (i % 3)  # one to three pieces
            self.begins.append(len(self.pieces))
            for size in sizes:
                self.pieces.append((at, at + size))
                at += size
            at += 1

    def window(self, low: int, high: int, padding: int = 3) -> tuple[list[tuple[int, int]], list[bool]]:
        """Pieces low … high - 1 of the passage -> offsets, is_context."""
        part, no = self.pieces[low:high], (0, 0)
        offsets = [no, *self.question, no, *part, no, *[no] * padding]
        before = len(self.question) + 2
        return offsets, [before <= i < before + len(part) for i in range(len(offsets))]

    def characters(self, first: int, last: int) -> tuple[int, int]:
        return self.pieces[first][0], self.pieces[last][1]


@span_targets.cases
def _(new: Inputs):
    text = Passage(new, 24)
    b = text.begins
    # A window in the middle: its characters are beyond those of the question
    low, high = b[13], b[22]

    def case(part: str, window: tuple[int, int], start: int | None, end: int | None) -> Case:
        offsets, is_context = text.window(*window)
        call = Call((offsets, is_context, start, end))
        return Case(part, (call,), holds=_Span(part, offsets, is_context, start, end), loose=True)

    for part in ("first piece", "last piece"):
        yield case(part, (low, high), *text.characters(b[15], b[18] - 1))
        yield case(part, (low, high), *text.characters(b[16], b[17] - 1))  # one word
        yield case(part, (low, high), *text.characters(b[15], b[15]))  # a word of one piece
        for piece in range(b[17], b[18]):  # one of the three pieces of a word
            yield case(part, (low, high), *text.characters(piece, piece))
        yield case(part, (low, high), *text.characters(low, b[14] - 1))  # the window's first word
        yield case(part, (low, high), *text.characters(b[20], high - 1))  # and its last
    # "2019" of "2019s": the answer begins after, or ends before, its piece does
    for shift_start, shift_end in ((1, 0), (0, 1), (1, 1)):
        start, end = text.characters(b[16], b[18] - 1)
        yield case("inside a piece", (low, high), start + shift_start, end - shift_end)
    start, end = text.pieces[b[16]][1] - 1, text.pieces[b[18] - 1][0] + 1  # the last character of a piece, the first
    yield case("inside a piece", (low, high), start, end)
    middle = text.pieces[b[18]]
    yield case("inside a piece", (low, high), middle[0] + 1, middle[1] - 1)
    # At the beginning of the passage, the question has the same numbers of characters
    for first, last in ((b[0], b[1] - 1), (b[1], b[3] - 1), (b[2], b[2] + 1)):
        yield case("the question", (0, b[9]), *text.characters(first, last))
    # Before the window, behind it, and cut by either border
    for first, last in ((b[10], b[12] - 1), (b[22], b[23] - 1), (b[11], b[14] - 1), (b[21], b[23] - 1), (b[12], b[23])):
        yield case("outside the window", (low, high), *text.characters(first, last))
    inner = b[14] + 1  # the window begins inside a word: its second piece
    yield case("outside the window", (inner, high), *text.characters(b[14], b[15] - 1))
    yield case("outside the window", (0, b[9]), *text.characters(b[10], b[11] - 1))
    yield case("no answer", (low, high), None, None)
    yield case("no answer", (0, b[9]), None, None)


class _Span:
    """Compares the first piece, the last, or both."""

    def __init__(self, part: str, offsets: list, is_context: list, start: int | None, end: int | None):
        self.part, self.offsets, self.asked = part, offsets, (start, end)
        self.want = _span_targets(offsets, is_context, start, end)
        inside = [offset for offset, yes in zip(offsets, is_context, strict=True) if yes]
        self.window = inside[0][0], inside[-1][1]

    def __call__(self, answer: Answer) -> str | None:
        if len(answer.value) != 2:
            return f"returns {len(answer.value)} numbers, expected the first and the last piece"
        which = {"first piece": [0], "last piece": [1]}.get(self.part, [0, 1])
        got = tuple(answer.value)
        if all(got[k] == self.want[k] for k in which):
            return None
        start, end = self.asked
        if self.part == "no answer":
            return f"there is no answer (start is None), and the result is {got}, expected (0, 0)"
        asked = f"an answer at characters {start} to {end}"
        if got == (0, 0) and self.want != (0, 0):
            return f"{asked} lies in the window, characters {self.window[0]} to {self.window[1]}, and gives (0, 0)"
        if self.part == "outside the window":
            return (
                f"{asked}, of which the window has {self.window[0]} to {self.window[1]}, gives {got}, expected (0, 0)"
            )
        if self.part in ("first piece", "last piece"):
            k = which[0]
            at = self.offsets[self.want[k]]
            right = f"{self.want[k]}, which has characters {at[0]} to {at[1]}"
            return f"{asked}: its {self.part} is {got[k]}, expected {right}"
        return f"{asked} gives pieces {got}, expected {self.want}"


@span_targets.reward
def _(function):
    rewards.an_answer_found_in_pieces(function)


# ---------------------------------------------------------------- 10.5 best span

best_span = Exercise(
    "10.5", "best_span", "best span",
    lesson=LESSON, section="The best legal pair", points=4,
    parts=[Part("two scores"), Part("one pair"), Part("length"), Part("passage only"), Part("no answer"),
           Part("threshold")],
)  # fmt: skip


@best_span.reference
def _best_span(logits, is_context, max_pieces=30, threshold=0.0):
    is_context = is_context.tolist()
    start, end = logits.T.tolist()
    best, span = -float("inf"), (0, 0)
    for i in range(len(start)):
        for j in range(i, min(i + max_pieces, len(start))):  # step: length or one pair or two scores
            score = start[i] + end[j]  # step: two scores or one pair
            if is_context[i] and is_context[j] and score > best:  # step: two scores or passage only or one pair
                best, span = score, (i, j)
    nothing = start[0] + end[0]  # step: no answer
    return span if best > nothing + threshold else (0, 0)  # step: no answer or threshold or two scores


@best_span.cases
def _(new: Inputs):
    def case(part: str, starts: dict[int, float], ends: dict[int, float], exact: bool = False, **options) -> Case:
        """Loud scores at some places of 23 pieces: [CLS], a question of 4, [SEP], a passage of 14, [SEP], 2 [PAD]."""
        logits = new.normal(23, 2, scale=0.3)
        logits[0] = -2.0
        for column, loud in enumerate((starts, ends)):
            for place, score in loud.items():
                logits[place, column] = score + (0.0 if exact else 0.01 * new.random.random())
        is_context = torch.tensor([6 <= i < 20 for i in range(23)])
        call = Call((logits, is_context), options)
        return Case(part, (call,), holds=_Best(part, logits, is_context, options), loose=True)

    r = new.random.randrange
    i, j = r(7, 10), r(12, 17)
    yield case("two scores", {i: 6}, {j: 7})
    yield case("two scores", {j: 6, i: 4.2}, {j: 5, j + 1: 3})  # an answer of one piece
    yield case("two scores", {6: 5, 9: 3.5}, {19: 5, 12: 4.4})  # the passage's borders
    i, j = r(14, 17), r(9, 11)
    yield case("one pair", {i: 5, j - 2: 4}, {j: 5.2, i + 2: 3})  # end's favourite, with another start
    yield case("one pair", {i: 5, j - 2: 2.2}, {j: 5.2, i + 2: 4.5})  # start's favourite, with another end
    yield case("one pair", {17: 5.2, 11: 4.1}, {7: 5, 13: 4.2})  # neither's favourite
    yield case("one pair", {16: 4.6, 10: 3.9, 8: 3.4}, {9: 4.4, 12: 4.3, 18: 2.5})
    most = r(4, 7)
    yield case("length", {8: 6, 12: 2}, {8 + most: 6, 10: 3.3, 14: 2.4}, max_pieces=most)  # one too long
    yield case("length", {8: 6, 12: 2}, {7 + most: 6, 9: 3.3, 15: 2.4}, max_pieces=most)  # just fits
    yield case("length", {9: 3.0, 13: 4.4}, {9: 4.6, 13: 2.6}, max_pieces=1)
    yield case("length", {7: 6, 15: 4}, {18: 6, 16: 4, 10: 2.2}, max_pieces=5)
    yield case("length", {12: -1.9}, {12: 6}, max_pieces=1)  # the best pair, and hardly a start is worse
    yield case("passage only", {2: 9, 8: 4, 5: 6}, {4: 9, 11: 4, 5: 7})  # a pair in the question, and [SEP]
    yield case("passage only", {9: 4, 20: 8}, {12: 4, 20: 8})  # the last [SEP]
    yield case("passage only", {7: 4, 21: 8}, {10: 4, 22: 8, 21: 9})  # padding
    yield case("passage only", {3: 9, 9: 4}, {12: 5, 14: 3})  # from the question into the passage
    yield case("passage only", {8: 5, 12: 3}, {10: 4, 20: 9, 21: 7})  # out of the passage
    yield case("no answer", {0: 4.5, 8: 4}, {0: 4.4, 11: 3.5})
    yield case("no answer", {0: 2, 8: 4}, {0: 6.5, 11: 3.5})  # 8.5 for none, 7.5 for the pair
    yield case("no answer", {0: 6.5, 8: 4}, {0: 0.4, 11: 3.5})  # 6.9 for none
    yield case("no answer", {0: 1, 8: 4}, {0: 5.5, 11: 3.5})  # 6.5 for none: the end alone would say nothing
    yield case("no answer", {0: 9, 8: 4}, {0: -3, 11: 3.5})  # 6 for none, though [CLS] has the best start
    yield case("no answer", {0: -3, 8: 4}, {0: 9, 11: 3.5})  # or the best end
    yield case("no answer", {0: 4, 8: 4}, {0: 3.5, 11: 3.5}, exact=True)  # equal is not greater
    low = dict.fromkeys(range(6, 20), -4.0)
    yield case("no answer", low | {0: -9, 9: -1.5}, low | {0: -9, 12: -1.2})  # below 0, and better than none
    yield case("threshold", {0: 3, 8: 4}, {0: 3, 11: 3.5}, threshold=2.0)  # 1.5 better than none
    yield case("threshold", {0: 3, 8: 4}, {0: 3, 11: 3.5}, threshold=1.0)
    yield case("threshold", {0: 1, 8: 4}, {0: 1, 11: 3.5}, threshold=0.5)  # much better than none
    yield case("threshold", {0: 4, 8: 4}, {0: 4, 11: 3.5}, threshold=1.0)  # 0.5 worse than none
    yield case("threshold", {0: 4.2, 8: 4}, {0: 4.3, 11: 3.5}, threshold=-2.0)  # 1 worse than none
    yield case("threshold", {0: 5.2, 8: 4}, {0: 5.3, 11: 3.5}, threshold=-2.0)


class _Best:
    """Compares the pair, and says what its score is beside that of the right one."""

    def __init__(self, part: str, logits: torch.Tensor, is_context: torch.Tensor, options: dict):
        self.part, self.logits = part, logits.double()
        self.want = _best_span(logits.double(), is_context, **options)
        self.how = "".join(f", {name}={value}" for name, value in options.items())

    def __call__(self, answer: Answer) -> str | None:
        got = tuple(answer.value)
        if got == self.want:
            return None
        if len(got) != 2 or not all(isinstance(x, int) and 0 <= x < len(self.logits) for x in got):
            return f"the result is {got!r:.60}, expected the places of the first and last piece, two ints"
        where = "the passage is pieces 6 to 19" + self.how
        return f"your span {self._told(got)}, expected {self._told(self.want)}; {where}"

    def _told(self, span: tuple[int, int]) -> str:
        score = float(self.logits[span[0], 0] + self.logits[span[1], 1])
        return f"{span} scores {score:.1f}" if span != (0, 0) else f"(0, 0), no answer, scores {score:.1f}"


@best_span.reward
def _(function):
    rewards.a_reader_by_rule(function)


# ---------------------------------------------------------------- 10.6 exact match and F1

exact_match_and_f1 = Exercise(
    "10.6", "exact_match_and_f1", "exact match and F1",
    lesson=LESSON, section="Nearly right answers", points=3,
    parts=[Part("equality"), Part("capitals"), Part("punctuation"), Part("white space"), Part("articles"),
           Part("shared words"), Part("several answers"), Part("no answer")],
)  # fmt: skip


@exact_match_and_f1.reference
def _exact_match_and_f1(prediction, answers):
    best_match, best_f1 = 0.0, 0.0
    said = _normal_words(prediction)
    for answer in answers or [""]:
        true = _normal_words(answer)
        best_match = max(best_match, float(said == true))  # step: equality or several answers or shared words
        if not said or not true:
            f1 = float(said == true)
        else:
            common = (Counter(said) & Counter(true)).total()
            f1 = 2 * common / (len(said) + len(true))  # step: shared words or equality
        best_f1 = max(best_f1, f1)  # step: several answers or equality
    return best_match, best_f1


def _normal_words(text: str) -> list[str]:
    bare = "".join(c for c in text.lower() if c not in string.punctuation)
    return re.sub(r"\b(a|an|the)\b", " ", bare).split()


@exact_match_and_f1.canonical
def _(value):
    return (
        [float(v) if isinstance(v, (int, float)) else v for v in value] if isinstance(value, (list, tuple)) else value
    )


NOUNS = ("lantern", "harbour", "violin", "parrot", "candle", "letter", "potato", "whistle", "bridge", "mouse")


@exact_match_and_f1.cases
def _(new: Inputs):
    def case(part: str, prediction: str, *answers: str) -> Case:
        return Case(part, (Call((prediction, list(answers))),), holds=_Both(prediction, list(answers)), loose=True)

    a, b, c, d, e, f = new.random.sample(NOUNS, 6)
    year = str(new.random.randrange(1200, 1999))
    yield case("equality", f"{a} {b}", f"{a} {b}")
    yield case("equality", f"{a} {b}", f"{c} {d} {e}")
    yield case("equality", f"{a} {b}", f"{b} {a}")  # the order counts for one score, not for the other
    yield case("equality", f"{a} {b}", f"{a}{b}")
    yield case("capitals", f"{a.capitalize()} {b.upper()}", f"{a} {b}")
    yield case("capitals", f"{c} {d} of {e}", f"{c.upper()} {d.capitalize()} Of {e}")
    yield case("punctuation", f'"{a} {b}."', f"{a} {b}")
    yield case("punctuation", f"{c}'s {d}-{e}", f"{c}s {d}{e}")
    yield case("punctuation", f"{a}, {b} ({c})", f"{a} {b} {c}!")
    yield case("punctuation", f"“{a} {b}”", f"{a} {b}")  # only the ASCII marks go
    yield case("punctuation", f"{a}{string.punctuation}{b} {c}", f"{a}{b} {c}")  # but all of them
    yield case("white space", f" {a}  {b}\t{c} ", f"{a} {b} {c}")
    yield case("white space", f"{d}\n{e}", f"{d} {e}")
    yield case("articles", f"the {a} and an {b}", f"a {a} and {b}")
    yield case("articles", f"{a} in {e} the", f"{a} in {e}")
    yield case("articles", f"The {b} of AN {c}", f"{b} of {c}")
    yield case("articles", f"theatre {c} another {d}", f"atre {c} other {d}")  # no article inside a word
    yield case("articles", "u.s.a. " + f, "usa " + f)
    yield case("articles", f"The A {b}", b)  # two side by side
    yield case("articles", f"the {a}", f"these {a}")
    yield case("shared words", f"{a} {b} {c} {d}", f"{b} {a} {e}")  # another order
    yield case("shared words", f"{a} {b}", f"{a} {b} {c} {d} {e}")
    yield case("shared words", f"{a} {a} {b} {c}", f"{a} {a} {a} {d}")  # two of them are shared
    yield case("shared words", f"{a} {a} {a}", f"{a} {b}")
    yield case("shared words", f"in {year} {f}", f"{year}")
    yield case("several answers", f"{a} {b}", f"{c}", f"{a} {b}", f"{a} {b} {d}")
    yield case("several answers", f"{a} {b}", f"{b} {a}", f"{a} {b}")  # F1 is 1 for both
    yield case("several answers", f"{a} {b} {c}", f"{a} {d} {e} {f}", f"{a} {b}", f"{f}")
    yield case("no answer", "")
    yield case("no answer", f"{a} {b}")
    yield case("no answer", "", f"{a} {b}")
    yield case("no answer", "the", f"{c}")
    yield case("no answer", "The!")  # no words are left
    yield case("no answer", "", "a")


class _Both:
    """Compares exact match and F1."""

    def __init__(self, prediction: str, answers: list[str]):
        self.prediction, self.answers = prediction, answers
        self.want = _exact_match_and_f1(prediction, answers)

    def __call__(self, answer: Answer) -> str | None:
        if len(answer.value) != 2:
            return f"returns {len(answer.value)} numbers, expected exact match and F1"
        for name, mine, want in zip(("exact match", "F1"), answer.value, self.want, strict=True):
            if abs(mine - want) > 1e-6:
                asked = f"{self.prediction!r} against {self.answers!r}"
                return f"{name} of {asked} is {float(mine):.6g}, expected {want:.6g}"
        return None


@exact_match_and_f1.reward
def _(function):
    rewards.answers_people_would_accept(function)


# Known mistakes and right alternatives register themselves with the exercises above.
from coursework.checks import tagging_and_questions_alternatives, tagging_and_questions_mistakes  # noqa: E402, F401
