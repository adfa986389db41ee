"""Unit 05: sentence pairs, the next-sentence head and the two losses. B batch, S sequence, D features, V pieces.

Here are the exercises: what is asked, the right answer, and how each step of it is seen on its own. The known
mistakes and the right alternatives stand in nsp_mistakes.py and nsp_alternatives.py.

Sentences are lists of numbers, and no number occurs twice in a question's documents: so each sentence of an answer
tells where it comes from. Where chance decides, what must hold for every draw is judged draw by draw, and shares
are judged over hundreds of draws, with bounds of six standard deviations or more.
"""

import random
from collections.abc import Callable, Sequence

import torch

from coursework.checks import nsp_rewards
from coursework.checks.engine import Answer, Call, Case, Exercise, Inputs, Part

LESSON = "05_nsp"
DRAWS = 240
SLACK = 0.21  # of a share of one half in 240 draws: 6.5 standard deviations

# ---------------------------------------------------------------- 05.1 read documents

read_documents = Exercise(
    "05.1", "read_documents", "read documents",
    lesson=LESSON, section="A document is a list of sentences", points=2,
    parts=[Part("sentences"), Part("documents"), Part("empty lines"), Part("white space")],
)  # fmt: skip


@read_documents.reference
def _read_documents(text):
    documents, current = [], []
    for line in [*text.splitlines(), ""]:
        if line.strip():  # step: white space or empty lines or sentences
            current.append(line.strip())
        elif current:
            documents.append(current)
            current = []
    return documents


@read_documents.cases
def _(new: Inputs):
    words = iter(new.random.sample(range(100, 1000), 40))

    def line() -> str:
        return f"No. {next(words)} fell. Mind {next(words)}!"  # full stops inside, and one sentence all the same

    def case(part: str, text: str) -> Case:
        return Case(part, (Call((text,)),), holds=_Documents(text), loose=True)

    a, b, c, d, e, f = (line() for _ in range(6))
    yield case("sentences", f"{a}\n{b}\n{c}\n")
    yield case("documents", f"{a}\n{b}\n\n{c}\n\n{d}\n{e}\n{f}\n")
    yield case("documents", f"{a}\n\n{b}\n{c}")  # the last line has no end of line
    yield case("empty lines", f"\n\n{a}\n{b}\n\n\n\n{c}\n\n")
    yield case("empty lines", "\n\n")
    yield case("empty lines", "")
    yield case("white space", f"  {a}\n{b}  \n \t \n{c}\r\n\r\n{d}\n")


class _Documents:
    def __init__(self, text: str):
        self.want = _read_documents(text)

    def __call__(self, answer: Answer) -> str | None:
        got, want = answer.value, self.want
        flat = [sentence for document in got if isinstance(document, list) for sentence in document]
        if len(flat) == 0 < len(got):
            return f"the documents are {'empty lists' if got[0] == [] else 'no lists of sentences'}"
        odd = next((sentence for sentence in flat if not isinstance(sentence, str)), None)
        if odd is not None:
            return f"a sentence is a {type(odd).__name__}, expected a string"
        if [] in got:
            return f"{got.count([])} of {len(got)} documents are empty: an empty line ends a document and begins none"
        if any(not sentence.strip() for sentence in flat):
            return "an empty line is kept as a sentence"
        right = [sentence for document in want for sentence in document]
        if [sentence.strip() for sentence in flat] == right and flat != right:
            return "white space or the end of the line is left at a sentence"
        if flat != right:
            lost, extra = [s for s in right if s not in flat], [s for s in flat if s not in right]
            twice = "some come twice" if len(flat) > len(right) else "they are in another order"
            why = f"missing is “{lost[0]}”" if lost else f"“{extra[0]}” is none" if extra else twice
            many = "1 sentence" if len(flat) == 1 else f"{len(flat)} sentences"
            return f"{many}, expected {len(right)}: {why}"
        if list(map(len, got)) != list(map(len, want)):
            return f"documents of {_counts(got)} sentences, expected {_counts(want)}"
        return None


def _counts(parts: Sequence[Sequence]) -> str:
    return " + ".join(str(len(part)) for part in parts) or "no"


@read_documents.reward
def _(function):
    nsp_rewards.two_voices(function)


# ---------------------------------------------------------------- 05.2 gather

gather = Exercise(
    "05.2", "gather", "gather a segment",
    lesson=LESSON, section="A segment is many sentences", points=2,
    parts=[Part("start"), Part("enough", 2.0), Part("exactly enough"), Part("the end")],
)  # fmt: skip


@gather.reference
def _gather(document, start, target):
    taken, length = [], 0
    for i in range(start, len(document)):  # step: start or enough
        if length >= target:  # step: enough or exactly enough
            break
        taken.append(list(document[i]))
        length = length + len(document[i])  # step: enough or exactly enough
    return taken


class _Library:
    """Documents in which each number occurs once, so that it is known where a sentence comes from."""

    def __init__(self, new: Inputs, sizes: Sequence[int], longest: int = 6):
        numbers = iter(new.random.sample(range(1000, 1000 + 2 * sum(sizes) * longest), sum(sizes) * longest))
        lengths = [[new.random.randrange(2, longest + 1) for _ in range(size)] for size in sizes]
        self.documents = [[[next(numbers) for _ in range(n)] for n in row] for row in lengths]
        self.home = {s[0]: (d, i) for d, document in enumerate(self.documents) for i, s in enumerate(document)}

    def place(self, sentence) -> tuple[int, int] | None:
        """(document, sentence) of a whole sentence, or None."""
        found = self.home.get(sentence[0]) if isinstance(sentence, list) and sentence and _plain(sentence) else None
        return found if found and self.documents[found[0]][found[1]] == sentence else None

    def run(self, segment) -> tuple[int, int] | None:
        """(document, first sentence) of a segment of whole sentences that follow each other, or None."""
        places = [self.place(sentence) for sentence in segment] if isinstance(segment, list) else []
        if not places or places[0] is None:
            return None
        document, first = places[0]
        return (document, first) if places == [(document, first + k) for k in range(len(places))] else None


def _plain(sentence: list) -> bool:
    return all(type(piece) is int for piece in sentence)


def _tokens(segment: list) -> int:
    return sum(map(len, segment))


@gather.cases
def _(new: Inputs):
    def case(part: str, library: _Library, start: int, target: int) -> Case:
        want = _gather(library.documents[0], start, target)
        call = Call((library.documents[0], start, target))
        return Case(part, (call,), holds=_Segment(part, library, start, target, want), loose=True)

    def question(first: int, count: int) -> tuple[_Library, int, int]:
        """`count` sentences of a document fill the target, the last one goes over it by 1 to 5."""
        library = _Library(new, [12], 9)
        document = library.documents[0]
        document[first + count - 1] += [5000 + k for k in range(max(0, 5 - len(document[first + count - 1])))]
        whole = _tokens(document[first : first + count])
        return library, first, whole - new.random.randrange(2, 4)

    yield case("start", *question(new.random.randrange(2, 5), 3))
    yield case("enough", *question(0, 4))
    yield case("enough", *question(new.random.randrange(1, 4), 5))
    library, start, _ = question(new.random.randrange(1, 4), 4)
    yield case("exactly enough", library, start, _tokens(library.documents[0][start : start + 4]))
    yield case("enough", library, start, 2)  # one sentence may be enough
    yield case("the end", library, 9, 200)
    yield case("the end", library, 11, 40)


class _Segment:
    """Compares a segment; of the part "start" only where it begins is judged."""

    def __init__(self, part: str, library: _Library, start: int, target: int, want: list):
        self.part, self.library, self.start, self.target, self.want = part, library, start, target, want

    def __call__(self, answer: Answer) -> str | None:
        got, want, length = list(answer.value), self.want, len(self.library.documents[0])
        asked = f"from sentence {self.start} of {length} with target {self.target}"
        if got == want:
            return None
        if not all(isinstance(sentence, list) for sentence in got):
            return "the result holds numbers, expected a list of sentences, each a list of its own"
        if not got:
            return None if self.part == "start" else f"{asked}: nothing is taken"
        place = self.library.run(got)
        if place is None:
            cut = next((s for s in got if self.library.place(s) is None), None)
            if cut is not None:
                return f"{asked}: a sentence is cut or changed, expected whole ones"
            return f"{asked}: the sentences do not follow each other"
        if place[1] != self.start:
            return f"{asked}: begins with sentence {place[1]}"
        if self.part == "start" or len(got) == len(want):
            return None
        more = "too many" if len(got) > len(want) else "too few"
        have = f"{asked}: takes {len(got)} sentences with {_tokens(got)} tokens, {more}"
        return have + (f" (expected {len(want)}, with {_tokens(want)})")


@gather.reward
def _(function):
    nsp_rewards.a_review_in_segments(function)


# ---------------------------------------------------------------- 05.3 make a pair

make_pair = Exercise(
    "05.3", "make_pair", "make a pair",
    lesson=LESSON, section="IsNext, NotNext", points=6,
    parts=[Part("segments", 2.0), Part("labels"), Part("is next"), Part("not next", 2.0), Part("used"),
           Part("chances", 2.0)],
)  # fmt: skip


@make_pair.reference
def _make_pair(documents, number, start, target):
    chunk = _gather(documents[number], start, target)
    if len(chunk) == 1:
        chunk = [list(sentence) for sentence in documents[number][start : start + 2]]  # step: is next
    cut = random.randrange(1, len(chunk))  # step: chances or segments
    a, b = chunk[:cut], chunk[cut:]
    if random.random() < 0.5:
        return a, b, 0, len(a) + len(b)  # step: used or labels
    other = random.choice([i for i in range(len(documents)) if i != number])  # step: not next or chances
    begin = random.randrange(0, len(documents[other]))
    room = max(1, target - _tokens(a))  # step: not next or is next
    return a, _gather(documents[other], begin, room), 1, len(a)  # step: used or labels or not next


@make_pair.cases
def _(new: Inputs):
    seed = new.random.randrange(1 << 30)

    def case(part: str, library: _Library, asked: list[tuple[int, int, int]], judge: Callable, draws: int) -> Case:
        """Each question is asked several times; `judge` gets all the pairs that came back."""
        calls = tuple(Call((library.documents, *asked[i % len(asked)]), seed=seed + i) for i in range(draws))
        pairs = [_Pair(library, *call.args[1:]) for call in calls]

        def holds(*answers: Answer) -> str | None:
            for pair, answer in zip(pairs, answers, strict=True):
                if said := pair.read(answer):
                    return said
            return judge(pairs)

        return Case(part, calls, holds=holds, random=True, loose=True)

    few = _Library(new, [6, 7], 3)  # with two documents a B from A's own comes out soon
    asked = [(0, 0, 10), (1, 3, 9), (0, 2, 7), (1, 1, 11)]
    yield case("segments", few, asked, _of_a, 24)
    yield case("labels", few, asked, _labels, 24)
    yield case("is next", few, asked, _is_next, 24)
    yield case("not next", few, asked, _not_next, 40)
    yield case("used", few, asked, _used, 24)
    long = _Library(new, [5, 6], 3)
    for number, document in enumerate(long.documents):
        document[1] += [9000 + 100 * number + k for k in range(14)]
    yield case("is next", long, [(0, 1, 15), (1, 1, 12)], _is_next, 24)
    yield case("not next", long, [(0, 1, 15), (1, 1, 12)], _not_next, 24)
    yield case("not next", few, [(0, 2, 30)], _not_next, 24)  # the ends of both documents
    yield case("not next", _Library(new, [4, 3, 3], 3), [(1, 0, 20)], _not_next, 24)  # where one ends another begins
    yield case("chances", _Library(new, [7, 4, 4, 4], 3), [(0, 1, 99)], _chances, DRAWS)


class _Pair:
    """One pair that came back, beside the question: where A and B come from, and whether B follows A."""

    def __init__(self, library: _Library, number: int, start: int, target: int):
        self.library, self.number, self.start, self.target = library, number, start, target
        self.document = library.documents[number]
        self.chunk = _gather(self.document, start, target)
        if len(self.chunk) == 1:
            self.chunk = self.document[start : start + 2]

    def read(self, answer: Answer) -> str | None:
        """Takes the answer in; returns a sentence if it is not of the right form."""
        if len(answer.value) != 4:
            return f"returns {len(answer.value)} values, expected 4: a, b, label, used"
        self.a, self.b, self.label, self.used = answer.value
        for name, segment in (("a", self.a), ("b", self.b)):
            if not segment:
                return "a segment is empty: each has at least one sentence"
            if not isinstance(segment, list) or not all(isinstance(sentence, list) for sentence in segment):
                return f"{name} holds numbers, expected a list of sentences, each a list of its own"
        self.place_a, self.place_b = self.library.run(self.a), self.library.run(self.b)
        self.follows = self.place_b == (self.number, self.start + len(self.a))
        self.own = self.place_b is not None and self.place_b[0] == self.number
        return None


def _of_a(pairs: list[_Pair]) -> str | None:
    for pair in pairs:
        if pair.place_a is None:
            return "a is not made of whole sentences that follow each other"
        if pair.place_a != (pair.number, pair.start):
            where = "another document" if pair.place_a[0] != pair.number else "another sentence"
            return f"a begins at {where}: it should begin at sentence start of documents[number]"
        if pair.place_b is None:
            return "b is not made of whole sentences that follow each other"
    if all(len(pair.a) == 1 for pair in pairs):
        return "a is always a single sentence, though the target has room for more"
    too_long = next((pair for pair in pairs if len(pair.a) >= len(pair.chunk)), None)
    if too_long:
        taken = f"a takes {len(too_long.a)} sentences where {len(too_long.chunk)} fill the target"
        return f"{taken}: nothing is left for b"
    return None


def _labels(pairs: list[_Pair]) -> str | None:
    odd = next((pair.label for pair in pairs if pair.label not in (0, 1)), None)
    if odd is not None:
        return f"a label is {odd}: 0 is IsNext, 1 is NotNext"
    same, other = [p.label for p in pairs if p.follows], [p.label for p in pairs if not p.own]
    if (same and set(same) == {1} and 1 not in other) and (not other or set(other) == {0}):
        return "labels are the wrong way round: 1 where b follows a. 0 is IsNext"
    if 0 in other:
        many = "always" if 1 not in other else "sometimes"
        return f"the label is {many} 0 where b comes from another document" + (
            ", and 1 where it follows a" if 1 in same else ""
        )
    if same and 0 not in same and len(same) > len(pairs) / 4:
        return "the label is always 1, also where b follows a"
    return None


def _is_next(pairs: list[_Pair]) -> str | None:
    follow = [pair for pair in pairs if pair.follows and pair.label == 0]
    if not follow:
        own = any(pair.own for pair in pairs if pair.label == 0)
        return "no b with label 0 is what follows a" + (": it begins elsewhere in a's document" if own else "")
    for pair in pairs:
        if pair.label == 0 and pair.own and not pair.follows:
            return "label 0, and b begins elsewhere in a's document than where a ends"
    for pair in follow:
        both = pair.a + pair.b
        if len(both) != len(pair.chunk):
            more = "many" if len(both) > len(pair.chunk) else "few"
            many = f"together a and b have {len(both)} sentences with {_tokens(both)} tokens, too {more}"
            if all(len(p.b) == 1 for p in follow) and more == "few":
                return f"{many}: b is always a single sentence"
            return f"{many}: {len(pair.chunk)} fill the target {pair.target}"
    return None


def _not_next(pairs: list[_Pair]) -> str | None:
    drawn = [pair for pair in pairs if pair.label == 1]
    if not drawn:
        return "b is never drawn from another document"
    own = [pair for pair in drawn if pair.own]
    if own:
        which = "every b" if len(own) == len(drawn) else "some b"
        if all(pair.place_b and pair.place_b[1] > pair.start + len(pair.a) for pair in own):
            return f"{which} with label 1 comes from further down in a's own document"
        after = any(pair.follows for pair in own)
        return f"{which} with label 1 comes from a's own document" + (", and may be just what follows a" * after)
    for pair in drawn:
        if pair.place_b is None:
            places = [pair.library.place(sentence) for sentence in pair.b]
            if None not in places and len({place[0] for place in places if place}) > 1:
                return "b with label 1 has sentences of several documents: where one ends b ends"
            return "b with label 1 is not made of whole sentences that follow each other"
        document, begin = pair.place_b
        room = max(1, pair.target - _tokens(pair.a))
        want = _gather(pair.library.documents[document], begin, room)
        if len(pair.b) != len(want):
            more = "more" if len(pair.b) > len(want) else "fewer"
            if all(len(p.b) == 1 for p in drawn):
                return f"b with label 1 is always a single sentence, where a leaves room for {room} tokens"
            whole = all(p.place_b and len(p.b) == len(_rest(p)) for p in drawn)
            full = all(p.place_b and len(p.b) == len(_gather(_rest(p), 0, p.target)) for p in drawn)
            why = ": all the rest of its document" * whole or ": as many as fill the target without a" * full
            return f"b with label 1 has {more} sentences than fill the room that a leaves{why}"
    return None


def _rest(pair: _Pair) -> list:
    assert pair.place_b is not None
    return pair.library.documents[pair.place_b[0]][pair.place_b[1] :]


def _used(pairs: list[_Pair]) -> str | None:
    for name, label in (("IsNext", 0), ("NotNext", 1)):
        mine = [pair for pair in pairs if pair.label == label]
        want = [len(pair.a) + len(pair.b) * (label == 0) for pair in mine]
        got = [pair.used for pair in mine]
        if got != want:
            both = [len(pair.a) + len(pair.b) for pair in mine]
            chunk, tokens = [len(pair.chunk) for pair in mine], [_tokens(pair.a) for pair in mine]
            place = [pair.start + n for pair, n in zip(mine, want, strict=True)]
            why = (
                ": the sentences of b are counted, though they are of another document" if got == both
                else ": the sentences that b displaced are counted, and would be lost" if got == chunk
                else ": b's sentences are of this document too" if got == [len(pair.a) for pair in mine]
                else ": that is where to go on, not how many were used" if got == place
                else ": sentences are counted, not tokens" if got[0] >= tokens[0] and label == 1 else ""
            )  # fmt: skip
            i = next(i for i, (g, w) in enumerate(zip(got, want, strict=True)) if g != w)
            return f"used is {got[i]} for a pair {name}, expected {want[i]}{why}"
    return None


def _chances(pairs: list[_Pair]) -> str | None:
    share = sum(pair.follows for pair in pairs) / len(pairs)
    if all(pair.a == pairs[0].a and pair.b == pairs[0].b for pair in pairs):
        return f"{len(pairs)} calls make the same pair: nothing is drawn anew"
    if abs(share - 0.5) > SLACK:
        return f"b follows a in {share:.0%} of {len(pairs)} pairs: " + (
            "always" if share == 1 else "never" if share == 0 else "too often" if share > 0.5 else "too rarely"
        )
    sizes, full = [len(pair.a) for pair in pairs], len(pairs[0].chunk)
    for size in range(1, full):
        if sizes.count(size) < 0.3 * len(sizes) / (full - 1):
            rare = "never" if size not in sizes else "too rarely"
            which = "one sentence" if size == 1 else "all but one" if size == full - 1 else "about half of them"
            return f"a {rare} has {which} ({size} of {full} sentences): every cut should be as likely"
    return _anywhere(pairs)


def _anywhere(pairs: list[_Pair]) -> str | None:
    drawn = [pair.place_b for pair in pairs if pair.label == 1 and pair.place_b and not pair.own]
    others = [i for i in range(len(pairs[0].library.documents)) if i != pairs[0].number]
    seen = {document for document, _ in drawn}
    if len(seen) < len(others):
        return f"b comes from {len(seen)} of {len(others)} other documents: each should have its chance"
    begins = {begin for _, begin in drawn}
    lost = set(range(len(pairs[0].library.documents[others[0]]))) - begins  # they are equally long
    if begins == {0}:
        return "b always begins at the first sentence of its document"
    if lost:
        which = "first" if 0 in lost else "last" if max(begins) < max(lost) else "second"
        return f"b never begins at the {which} sentence of its document"
    return None


@make_pair.reward
def _(function):
    nsp_rewards.a_book_in_pairs(function)


# ---------------------------------------------------------------- 05.4 sentence order

order_pair = Exercise(
    "05.4", "order_pair", "sentence order",
    lesson=LESSON, section="Sentence order instead", points=3,
    parts=[Part("segments"), Part("labels", 2.0), Part("chances")],
)  # fmt: skip


@order_pair.reference
def _order_pair(sentences):
    cut = random.randrange(1, len(sentences))  # step: segments or chances
    a, b = sentences[:cut], sentences[cut:]  # step: segments
    if random.random() < 0.5:  # step: labels or chances
        return a, b, 0  # step: labels
    return b, a, 1  # step: labels


@order_pair.cases
def _(new: Inputs):
    seed = new.random.randrange(1 << 30)
    sizes = (2, 5, 4)
    for part, judge, draws in (("segments", _halves, 36), ("labels", _orders, 36), ("chances", _shares, DRAWS)):
        texts = [_Library(new, [size], 4) for size in (sizes if draws < DRAWS else (4,))]
        calls = tuple(Call((texts[i % len(texts)].documents[0],), seed=seed + i) for i in range(draws))

        def holds(*answers: Answer, texts=texts, judge=judge) -> str | None:
            orders = [_Order(texts[i % len(texts)]) for i in range(len(answers))]
            said = (order.read(answer) for order, answer in zip(orders, answers, strict=True))
            return next((words for words in said if words), None) or judge(orders)

        yield Case(part, calls, holds=holds, random=True, loose=True)


class _Order:
    def __init__(self, library: _Library):
        self.library, self.count = library, len(library.documents[0])

    def read(self, answer: Answer) -> str | None:
        if len(answer.value) != 3:
            return f"returns {len(answer.value)} values, expected 3: a, b, label"
        self.a, self.b, self.label = answer.value
        for name, segment in (("a", self.a), ("b", self.b)):
            if not segment:
                return "a segment is empty: each has at least one sentence"
            if not isinstance(segment, list) or not all(isinstance(sentence, list) for sentence in segment):
                return f"{name} holds numbers, expected a list of sentences, each a list of its own"
        self.first, self.second = self.library.run(self.a), self.library.run(self.b)
        in_order = self.first == (0, 0) and self.second == (0, len(self.a))
        swapped = self.second == (0, 0) and self.first == (0, len(self.b))
        self.order = 0 if in_order else 1 if swapped else None
        return None


def _halves(orders: list[_Order]) -> str | None:
    for order in orders:
        if order.first is None or order.second is None:
            segment = order.a if order.first is None else order.b
            places = [order.library.place(sentence) for sentence in segment]
            if None in places:
                return "a sentence is cut or changed: the words of a sentence stay as they are"
            return "inside a segment the sentences keep their order, and yours do not"
        if order.a == order.b:
            return "a and b are the same sentences"
        if order.order is None or len(order.a) + len(order.b) != order.count:
            both = len(order.a) + len(order.b)
            few = "left out" if both < order.count else "taken twice" if both > order.count else "out of place"
            return f"a and b together should be all the sentences, and some are {few}"
    return None


def _orders(orders: list[_Order]) -> str | None:
    odd = next((order.label for order in orders if order.label not in (0, 1)), None)
    if odd is not None:
        return f"a label is {odd}: 0 is in order, 1 is swapped"
    kept, swapped = ([o.label for o in orders if o.order == k] for k in (0, 1))
    if kept and swapped and set(kept) == {1} and set(swapped) == {0}:
        return "labels are the wrong way round: 0 is in order, 1 is swapped"
    if 1 in kept:
        return f"the label is {'always' if 0 not in kept else 'sometimes'} 1 where a comes first" + (
            ", and 0 where it does not" if 0 in swapped else ""
        )
    if 0 in swapped:
        return f"the label is {'always' if 1 not in swapped else 'sometimes'} 0 where the two are swapped"
    return None


def _shares(orders: list[_Order]) -> str | None:
    if all(order.a == orders[0].a and order.b == orders[0].b for order in orders):
        return f"{len(orders)} calls make the same pair: nothing is drawn anew"
    share = sum(order.order == 1 for order in orders) / len(orders)
    if abs(share - 0.5) > SLACK:
        return f"{share:.0%} of {len(orders)} pairs are swapped: " + (
            "all" if share == 1 else "none" if share == 0 else "too many" if share > 0.5 else "too few"
        )
    sizes, count = [len(o.b) if o.order == 1 else len(o.a) for o in orders], orders[0].count
    for size in range(1, count):
        if sizes.count(size) < 0.3 * len(sizes) / (count - 1):
            rare = "never" if size not in sizes else "too rarely"
            which = "the first" if size == 1 else "the last but one" if size == count - 1 else "one in the middle"
            return f"the cut {rare} comes after {which} ({size} of {count} sentences): every cut should be as likely"
    return None


@order_pair.reward
def _(function):
    nsp_rewards.a_story_swapped(function)


# ---------------------------------------------------------------- 05.5 NSP head

nsp_head = Exercise(
    "05.5", "nsp_head", "NSP head",
    lesson=LESSON, section="The head reads the pooled [CLS]", points=4,
    parts=[Part("classifier"), Part("first token"), Part("dense"), Part("tanh"), Part("gradient", kind="gradient")],
)  # fmt: skip


@nsp_head.reference
def _nsp_head(hidden, weights):
    rows = []
    for x in hidden:  # one text, (S, D)
        x = (weights["pooler.weight"] * x[0]).sum(1) + weights["pooler.bias"]  # step: dense or first token
        x = 1 - 2 / (1 + torch.exp(2 * x))  # step: tanh or dense
        rows.append((weights["classifier.weight"] * x).sum(1) + weights["classifier.bias"])  # step: classifier or dense
    return torch.stack(rows)


@nsp_head.cases
def _(new: Inputs):
    batch, length, width = 3, 5, 8
    hidden = new.normal(batch, length, width)
    weights = {
        "pooler.weight": new.normal(width, width, scale=0.4),
        "pooler.bias": new.normal(width, scale=0.6),
        "classifier.weight": new.normal(2, width),
        "classifier.bias": new.normal(2, scale=2.0),
    }
    # A classifier of two rows of the unit matrix shows two features of what it is given: four of them show all eight.
    eye, zero = torch.eye(width, dtype=new.dtype), torch.zeros(2, dtype=new.dtype)
    windows = [weights | {"classifier.weight": eye[i : i + 2], "classifier.bias": zero} for i in range(0, width, 2)]
    asked = tuple(Call((hidden, seen)) for seen in (weights, *windows))
    yield Case("classifier", asked, holds=lambda full, *seen: _is_linear(full, seen, weights))
    others = torch.cat([hidden[:, :1], new.normal(batch, length + 2, width)], 1)
    yield Case("first token", (Call((hidden, weights)), Call((others, weights))), holds=_same)
    quiet = weights | {"pooler.bias": weights["pooler.bias"] * 1e-3, "classifier.bias": zero}
    for small in (hidden[:, :1] * 1e-3, hidden * 1e-3):
        want = _nsp_head(small.double(), {name: weight.double() for name, weight in quiet.items()})
        yield Case("dense", (Call((small, quiet)),), holds=lambda a, want=want: _is_dense(a.value, want))
    yield Case("tanh", (Call((hidden, weights)),), "for large numbers the scores are off by {off}: not tanh")
    every = 0, *((1, name) for name in weights)
    yield Case("gradient", (Call((hidden, weights), wrt=every, cotangents=(new.normal(batch, 2),)),))


def _is_linear(full: Answer, seen: Sequence[Answer], weights: dict) -> str | None:
    features = torch.cat([answer.value.double() for answer in seen], 1)  # (B, D), whatever they are
    want = features @ weights["classifier.weight"].double().T + weights["classifier.bias"].double()
    off = float((full.value.double() - want).abs().max())
    if off <= 1e-4 * max(1.0, float(want.abs().max())):
        return None
    return f"the scores are not the pooled vector times classifier.weight plus classifier.bias (off by {off:.2g})"


def _is_dense(got: torch.Tensor, want: torch.Tensor) -> str | None:
    off = float((got.double() - want).abs().max())
    if off <= 1e-3 * float(want.abs().max()):  # tanh may be written so that float32 rounds: 2 σ(2x) − 1
        return None
    few = "for small numbers, which tanh leaves as they are,"
    return f"{few} the scores are off by {off:.2g}: the dense layer or its input"


def _same(one: Answer, other: Answer) -> str | None:
    off = float((one.value.double() - other.value.double()).abs().max())
    return None if off < 1e-4 else f"the scores change by {off:.2g} when other tokens than [CLS] change"


@nsp_head.reward
def _(function):
    nsp_rewards.does_it_follow(function)


# ---------------------------------------------------------------- 05.6 NSP loss

nsp_loss = Exercise(
    "05.6", "nsp_loss", "NSP loss",
    lesson=LESSON, section="Two losses, one sum", points=3,
    parts=[Part("IsNext"), Part("NotNext"), Part("mean"), Part("without label"), Part("large scores"),
           Part("gradient", kind="gradient")],
)  # fmt: skip


@nsp_loss.reference
def _nsp_loss(logits, labels):
    total, count = logits.sum() * 0.0, 0
    for scores, label in zip(logits, labels.tolist(), strict=True):
        if label != -100:  # step: without label or IsNext
            total = total + torch.logsumexp(scores, 0) - scores[label]  # step: IsNext or NotNext or mean
            count = count + 1  # step: mean or without label or IsNext
    return total / max(count, 1)  # step: mean or without label or IsNext


@nsp_loss.cases
def _(new: Inputs):
    logits = new.normal(7, 2, scale=1.5)
    labels = torch.tensor([0, 1, 1, 0, 1, 0, 1])[torch.randperm(7, generator=new._generator)]
    zero, one = torch.tensor([0]), torch.tensor([1])
    for row in (0, 1):
        says = "for a single pair with label 0 (IsNext) the loss is off by {off}"
        yield Case("IsNext", (Call((logits[row : row + 1], zero)),), says)
    for row in (0, 1):
        says = "for a single pair with label 1 (NotNext) the loss is off by {off}"
        yield Case("NotNext", (Call((logits[row : row + 1], one)),), says)
    yield Case("mean", (Call((logits, labels)),), "for 7 pairs of both labels the loss is off by {off}")
    some = labels.clone()
    some[1::3] = -100  # at 1 and 4
    yield Case("without label", (Call((logits, some)),), "with 2 of 7 labels −100 the loss is off by {off}")
    none = torch.full_like(labels, -100)
    yield Case("without label", (Call((logits, none)),), "without any label the loss should be 0")
    says = "with 200 added to every score nothing should change, and the loss is off by {off}"
    yield Case("large scores", (Call((logits + 200, labels)),), says)
    yield Case(
        "large scores", (Call((logits * 1000, labels)),), "with scores in the thousands the loss is off by {off}"
    )
    cotangent = torch.tensor(1.7, dtype=new.dtype)
    yield Case("gradient", (Call((logits, some), wrt=(0,), cotangents=(cotangent,)),))


@nsp_loss.reward
def _(function):
    nsp_rewards.how_surprised(function)


# ---------------------------------------------------------------- 05.7 pre-training loss

pretraining_loss = Exercise(
    "05.7", "pretraining_loss", "pre-training loss",
    lesson=LESSON, section="Two losses, one sum", points=4,
    parts=[Part("next sentence"), Part("masked words"), Part("sum"), Part("without label"),
           Part("gradient", kind="gradient")],
)  # fmt: skip


@pretraining_loss.reference
def _pretraining_loss(mlm_logits, mlm_labels, nsp_logits, nsp_labels):
    words, count = mlm_logits.sum() * 0.0, 0
    for scores, label in zip(mlm_logits.flatten(0, 1), mlm_labels.flatten().tolist(), strict=True):
        if label != -100:  # step: masked words or without label
            words = words + torch.logsumexp(scores, 0) - scores[label]  # step: masked words
            count = count + 1  # step: masked words
    words = words / max(count, 1)  # step: masked words or without label
    follows, pairs = nsp_logits.sum() * 0.0, 0
    for scores, label in zip(nsp_logits, nsp_labels.tolist(), strict=True):
        if label != -100:  # step: without label or next sentence
            follows = follows + torch.logsumexp(scores, 0) - scores[label]  # step: next sentence
            pairs = pairs + 1  # step: next sentence or without label
    return words + follows / max(pairs, 1)  # step: sum or next sentence or without label or masked words


@pretraining_loss.cases
def _(new: Inputs):
    batch, length, size = 3, 5, 11
    words, follows = new.normal(batch, length, size, scale=2.0), new.normal(batch, 2, scale=1.5)
    asked = new.integers(1, size, batch, length)
    asked[0, 1:], asked[1, ::2], asked[2, 3] = -100, -100, -100  # 1, 2 and 4 labelled
    asked[1, 1] = 0  # piece 0 is a label like any other
    mixed = torch.tensor([0, 1, 1])
    surer = words + 5.0 * torch.nn.functional.one_hot(asked.clamp(min=0), size)  # of the right pieces

    def call(w=words, m=asked, f=follows, labels=mixed) -> Call:
        return Call((w, m, f, labels))

    def case(part: str, when: str, *calls: Call) -> Case:
        """Of one call the loss, of two how far it moves from the first to the second."""
        if len(calls) == 1:
            return Case(part, calls, when + " the loss is off by {off}")
        first, second = (_pretraining_loss(*(arg.clone() for arg in call.args)) for call in calls)
        return Case(part, calls, holds=lambda a, b: _moves(a, b, float(second - first), when))

    rows = {name: torch.full((batch,), label) for label, name in enumerate(("IsNext", "NotNext"))}
    for name, row in rows.items():
        when = f"when the scores of the next sentence change and all labels are {row[0]} ({name})"
        yield case("next sentence", when, call(labels=row), call(f=2 * follows.flip(0), labels=row))
    when = "when only the labels of the next sentence change"
    yield case("next sentence", when, call(labels=rows["IsNext"]), call())
    yield case("masked words", "when only the scores of the words change", call(), call(w=surer))
    one = torch.full_like(asked, -100)
    one[1, 2] = 0
    when = "when instead of 7 words a single one is asked, whose piece is 0"
    yield case("masked words", when, call(), call(m=one))
    yield case("sum", "with both tasks", call())
    none, no_pair = torch.full_like(asked, -100), torch.full((batch,), -100)
    yield case("without label", "without any masked word, where the other task is left,", call(m=none))
    yield case("without label", "with one pair without a label (−100)", call(labels=torch.tensor([0, -100, 1])))
    yield case(
        "without label", "without any label of the next sentence, where the words are left,", call(labels=no_pair)
    )
    cotangent = torch.tensor(1.3, dtype=new.dtype)
    yield Case("gradient", (Call((words, asked, follows, mixed), wrt=(0, 2), cotangents=(cotangent,)),))


def _moves(first: Answer, second: Answer, want: float, when: str) -> str | None:
    got = float(second.value) - float(first.value)
    return (
        None
        if abs(got - want) <= 2e-4 * max(1.0, abs(want))
        else f"{when} the loss moves by {got:.3g}, expected {want:.3g}"
    )


@pretraining_loss.reward
def _(function):
    nsp_rewards.one_step_of_pretraining(function)


# Known mistakes and right alternatives register themselves with the exercises above.
from coursework.checks import nsp_alternatives, nsp_mistakes  # noqa: E402, F401
