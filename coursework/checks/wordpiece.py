"""Unit 03: text to pieces and back. A piece that continues a word begins with ##.

Here are the exercises: what is asked, the right answer, and how each step of it is seen on its own. The known
mistakes and the right alternatives stand in wordpiece_mistakes.py and wordpiece_alternatives.py.
"""

import re
import string
import unicodedata
from collections import Counter
from fractions import Fraction
from itertools import pairwise

from coursework.checks import wordpiece_rewards
from coursework.checks.engine import Answer, Call, Case, Exercise, Inputs, Part

LESSON = "03_wordpiece"
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def _shown(pieces) -> str:
    """Pieces side by side, for a sentence."""
    return " ".join(map(str, pieces)) if pieces else "nothing"


def _strange(value) -> str | None:
    """Said of a list that should hold strings and holds something else."""
    odd = [item for item in value if not isinstance(item, str)]
    return f"the result holds a {type(odd[0]).__name__} ({odd[0]!r:.40}), expected strings" if odd else None


def _letters(new: Inputs, count: int) -> list[str]:
    return new.random.sample(string.ascii_lowercase, count)


# ---------------------------------------------------------------- 03.1 split into words

split_words = Exercise(
    "03.1", "split_words", "split words",
    lesson=LESSON, section="Words first", points=3,
    parts=[Part("white space"), Part("control characters"), Part("punctuation"), Part("Chinese characters"),
           Part("capitals"), Part("accents"), Part("special tokens")],
)  # fmt: skip


@split_words.reference
def _split_words(text, lower=True):
    words = []
    for part in re.split(r"(\[(?:PAD|UNK|CLS|SEP|MASK)\])", text):
        if part in SPECIAL:
            words.append(part)
            continue
        if lower:
            part = unicodedata.normalize("NFD", part.lower())
            part = "".join(c for c in part if unicodedata.category(c) != "Mn")
        spaced = ""
        for c in part:
            kind = unicodedata.category(c)
            if c.isspace():
                spaced += " "
            elif kind in ("Cc", "Cf"):
                continue
            elif kind.startswith("P") or c in string.punctuation or "\u4e00" <= c <= "\u9fff":
                spaced += f" {c} "
            else:
                spaced += c
        words += spaced.split()
    return words


@split_words.cases
def _(new: Inputs):
    def some(count: int) -> list[str]:
        return ["".join(_letters(new, new.random.randrange(3, 8))) for _ in range(count)]

    def case(part: str, text: str, lower: bool = True) -> Case:
        call = Call((text,)) if lower else Call((text,), {"lower": False})
        return Case(part, (call,), holds=_Words(text, _split_words(text, lower), lower), loose=True)

    a, b, c, d, e = some(5)
    yield case("white space", f"  {a} {b}\t{c}\n{d}\u00a0{e}\r\n")
    yield case("white space", "")
    yield case("white space", " \n ")
    a, b, c, d, e = some(5)
    yield case("control characters", f"{a[:2]}\x07{a[2:]} {b}\u200b{c} \x00{d}\t{e[:1]}\u00ad{e[1:]}\ufeff")
    a, b, c, d, e = some(5)
    yield case("punctuation", f"{a}, {b}.{c}'s ({d}-{e})!")
    yield case("punctuation", f"...{a}?! “{b}” ¿{c}? {d}—{e}…")
    signs = new.random.sample("$+<=>^`|~", 5)
    yield case("punctuation", "".join(map("".join, zip((a, b, c, d, e), signs, strict=True))) + f" {a}7 {b}€ 3×4° नदी")
    sun, moon, rain = new.random.sample("水火山木日月雨人", 3)
    yield case("Chinese characters", f"{a}{sun}{moon}{b} {rain}.")
    a, b, c, d, e = (word.capitalize() for word in some(5))
    yield case("capitals", f"{a} {b.swapcase()}{c} {d.upper()}, {e}.")
    yield case("capitals", f"{a} {b.swapcase()}{c} {d.upper()}, {e}.", lower=False)
    joined = f"{a}fé {b}ïve fac{c.lower()}ade\u0327, o\u0302{d.lower()} ångström{e}"
    yield case("accents", joined)
    yield case("accents", f"{a}ø strasse{b}ß x² ½{c.lower()} ﬁ{d} мой")
    yield case("accents", f"{b} 한국 {c}")  # letters that NFD takes apart, with no accent among the parts
    yield case("accents", f"{a}fé {b}ïve, Ångström", lower=False)
    first, second, third = new.random.sample(SPECIAL, 3)
    yield case("special tokens", f"{a} {first} {b} {second}")
    yield case("special tokens", f"{c}{second}{d} ({third}). [{e}] {first.lower()}")
    yield case("special tokens", f"{c} {third}, {e}", lower=False)


class _Words:
    """Compares the words of a text, and shows the first difference with what stands around it."""

    def __init__(self, text: str, want: list[str], lower: bool):
        self.text, self.want, self.how = text, want, "" if lower else " with lower=False"

    def __call__(self, answer: Answer) -> str | None:
        got = list(answer.value)
        if said := _strange(got):
            return said
        if got == self.want:
            return None
        i = next((i for i, (g, w) in enumerate(zip(got, self.want, strict=False)) if g != w), None)
        if i is None:
            i = min(len(got), len(self.want))
        mine, theirs = (ascii_quotes(words[i]) if i < len(words) else "missing" for words in (got, self.want))
        theirs = theirs if i < len(self.want) else "the end"
        return f"{self.text!a}{self.how}: word {i} is {mine}, expected {theirs}"


def ascii_quotes(word: str) -> str:
    """A word in quotes; what cannot be seen is written as its code."""
    seen = word.isprintable() and not any(unicodedata.combining(c) for c in word)
    return f"“{word}”" if seen else f"{word!a}"


@split_words.reward
def _(function):
    wordpiece_rewards.a_book_in_words(function)


# ---------------------------------------------------------------- 03.2 pair scores

pair_scores = Exercise(
    "03.2", "pair_scores", "pair scores",
    lesson=LESSON, section="Two rules", points=3,
    parts=[Part("pairs"), Part("ratio"), Part("word counts")],
)  # fmt: skip


@pair_scores.reference
def _pair_scores(splits):
    single, together = {}, {}
    for pieces, n in splits.items():
        for i in range(len(pieces)):  # step: ratio or word counts or pairs
            single[pieces[i]] = single.get(pieces[i], 0) + n  # step: ratio or word counts or pairs
        for i in range(len(pieces) - 1):  # step: pairs or ratio
            pair = pieces[i], pieces[i + 1]  # step: pairs
            together[pair] = together.get(pair, 0) + n  # step: ratio or word counts
    return {(a, b): float(Fraction(n, single[a] * single[b])) for (a, b), n in together.items()}  # step: ratio


@pair_scores.canonical
def _(value):
    return dict(sorted(value.items(), key=repr)) if isinstance(value, dict) else value


def _splits(new: Inputs, letters: list[str], words: int, count) -> dict[tuple[str, ...], int]:
    """Words of 1 to 5 pieces, each with how often it occurs; pieces recur, and one follows itself, twice."""
    starts, inner = letters[:3], ["##" + c for c in letters[1:]]
    doubled = new.random.choice(inner)
    splits = {(starts[0], doubled, doubled, doubled, inner[0]): count(), (starts[2],): count()}
    while len(splits) < words:
        pieces = (new.random.choice(starts), *new.random.choices(inner, k=new.random.randrange(1, 5)))
        splits[pieces] = count()
    return splits


@pair_scores.cases
def _(new: Inputs):
    for part in ("pairs", "ratio", "word counts"):
        for words in (5, 8):
            numbers = iter(new.random.sample(range(2, 30), words))
            count = (lambda: 1) if part == "ratio" else (lambda numbers=numbers: next(numbers, 1))
            splits = _splits(new, _letters(new, 5), words, count)
            yield Case(part, (Call((splits,)),), holds=_Scores(part, _pair_scores(splits)), loose=True)


class _Scores:
    """Compares the pairs alone (part "pairs"), or their scores as well."""

    def __init__(self, part: str, want: dict):
        self.part, self.want = part, want

    def __call__(self, answer: Answer) -> str | None:
        got = answer.value
        lost = [pair for pair in self.want if pair not in got]
        if lost:
            return f"the pair {lost[0]} has no score: it stands in a word, side by side and in this order"
        extra = [pair for pair in got if pair not in self.want]
        if extra:
            return f"{extra[0]!r:.60} has a score, and is no pair of neighbours inside one word"
        if self.part == "pairs":
            return None
        for pair, score in self.want.items():
            mine = got[pair]
            if not isinstance(mine, (int, float)) or isinstance(mine, bool):
                return f"the score of {pair} is a {type(mine).__name__}, expected a number"
            if not abs(mine - score) <= 1e-6 * score:
                note = ", with each word once" if self.part == "ratio" else ""
                return f"the score of {pair} is {mine:.4g}, expected {score:.4g}{note}"
        return None


@pair_scores.reward
def _(function):
    wordpiece_rewards.best_pairs_of_a_book(function)


# ---------------------------------------------------------------- 03.3 train

train = Exercise(
    "03.3", "train", "train",
    lesson=LESSON, section="Merge by merge", points=4,
    parts=[Part("characters"), Part("first merge"), Part("new piece"), Part("ties"), Part("later merges"),
           Part("the end")],
)  # fmt: skip


@train.reference
def _train(word_counts, num_merges):
    splits = {word: [word[0], *("##" + c for c in word[1:])] for word in word_counts}  # step: characters or first merge
    vocabulary = sorted({piece for pieces in splits.values() for piece in pieces})
    for _ in range(num_merges):  # step: the end
        scores = _scores(splits, word_counts)
        if not scores:
            break
        a, b = min(scores, key=lambda pair: (-scores[pair][0], pair))  # step: first merge or ties
        vocabulary.append(a + b[2:])  # step: new piece or first merge
        splits = {
            word: _merged(pieces, a, b) for word, pieces in splits.items()
        }  # step: later merges or the end or ties
    return vocabulary


def _scores(splits, word_counts) -> dict[tuple[str, str], tuple]:
    """Each pair -> its exact score and the three counts behind it."""
    single, together = Counter(), Counter()
    for word, pieces in splits.items():
        for piece in pieces:
            single[piece] += word_counts[word]
        for pair in pairwise(pieces):
            together[pair] += word_counts[word]
    return {(a, b): (Fraction(n, single[a] * single[b]), n, single[a], single[b]) for (a, b), n in together.items()}


def _merged(pieces: list[str], a: str, b: str) -> list[str]:
    out: list[str] = []
    for piece in pieces:
        if out and out[-1] == a and piece == b:
            out[-1] = a + b[2:]
        else:
            out.append(piece)
    return out


def _history(word_counts: dict[str, int], num_merges: int) -> list[tuple[tuple[str, str], dict]] | None:
    """The merges, each with all scores at that moment. None unless rounding leaves every choice as it is: what
    ties has the same three counts, and no piece comes about twice."""
    splits = {word: [word[0], *("##" + c for c in word[1:])] for word in word_counts}
    history: list[tuple[tuple[str, str], dict]] = []
    for _ in range(num_merges):
        scores = _scores(splits, word_counts)
        if not scores:
            break
        a, b = min(scores, key=lambda pair: (-scores[pair][0], pair))
        best = {counts for counts in scores.values() if counts[0] == scores[a, b][0]}
        if len(best) > 1 or a + b[2:] in {x + y[2:] for (x, y), _ in history}:
            return None
        history.append(((a, b), scores))
        splits = {word: _merged(pieces, a, b) for word, pieces in splits.items()}
    return history


def _corpus(new: Inputs, num_merges: int, words: int, fits, unlike: tuple[str, ...] = ()) -> dict[str, int]:
    """Random words of a few letters with random counts, such that `fits(history)`, and such that the mistakes
    called `unlike` give another vocabulary."""
    while True:
        letters = _letters(new, 5)
        texts = {"".join(new.random.choices(letters, k=new.random.randrange(2, 7))) for _ in range(words)}
        texts = sorted(texts, key=lambda text: new.random.random())
        counts = {text: new.random.randrange(1, 13) for text in texts}
        history = _history(counts, num_merges)
        if history and len(history) == num_merges and fits(history):
            right = _train(counts, num_merges)
            if all(train.mistakes[name].function(counts, num_merges) != right for name in unlike):
                return counts


def _no_tie(history) -> bool:
    return all(sum(c[0] == scores[pair][0] for c in scores.values()) == 1 for pair, scores in history)


def _starts_word(history) -> bool:
    return _no_tie(history) and not history[0][0][0].startswith("##")


def _inside_word(history) -> bool:
    return _no_tie(history) and history[0][0][0].startswith("##")


@train.cases
def _(new: Inputs):
    def case(part: str, counts: dict[str, int], merges: int) -> Case:
        return Case(part, (Call((counts, merges)),), holds=_Vocabulary(part, counts, merges), loose=True)

    starting = _corpus(new, 1, 7, _starts_word)
    inside = [_corpus(new, 1, 8, _inside_word) for _ in range(2)]
    yield case("characters", starting, 0)
    alone = next(letter for letter in string.ascii_lowercase if letter not in "".join(starting))
    yield case("characters", starting | {alone: 2}, 0)
    for part in ("first merge", "new piece"):
        for counts in (starting, *inside):
            yield case(part, counts, 1)

    # Two-letter words of letters that occur nowhere else, equally often: all their pairs score the same.
    letters, often = _letters(new, 12), new.random.randrange(2, 9)
    ordered = sorted(a + b for a, b in zip(letters[:5], letters[5:10], strict=True))
    first = new.random.choice((1, 2, 3))  # where the first in the alphabet stands: neither first nor last
    order = [*ordered[2:4], ordered[1], ordered[4]]
    order.insert(first, ordered[0])
    rest = {letters[10] + letters[11]: often + 5}
    yield case("ties", {word: often for word in order} | rest, 3)

    # Once su is merged, three pairs score the same. s ##v comes first, not what makes the first or the longest piece.
    p, q, s, t = sorted(_letters(new, 4))
    for u, v in ((p, q), (q, p)):
        yield case("ties", {s + u + v: often, s + v: often, t + v: often}, 2)

    for merges in (4, 6):
        unlike = ("scores_from_the_start", "replaced_as_text", "words_not_merged")
        yield case("later merges", _corpus(new, merges, 9, _no_tie, unlike), merges)
    # x y y y u: from left to right the first two y become one, and the third goes on to merge with u
    x, y, z, u, w = _letters(new, 5)
    yield case("later merges", {x + y * 3 + u: 1, z + y * 2 + w + y * 2: 1, z + u: 1, x + w: 40, z + w: 30}, 3)
    yield case("later merges", {z + y * 2 + w + y * 2: 1, x + w: 40, z + w: 30}, 2)  # twice in one word
    yield case("the end", _short(new), 40)


def _short(new: Inputs) -> dict[str, int]:
    """Three short words that are one piece each before 40 merges are made."""
    while True:
        words = ["".join(_letters(new, size)) for size in (4, 3, 2)]
        counts = dict(zip(words, new.random.sample(range(1, 9), 3), strict=True)) | {words[0][0]: 2}
        if _history(counts, 40):
            return counts


class _Vocabulary:
    """Compares a vocabulary: its characters in any order, then the pieces in the order of the merges."""

    def __init__(self, part: str, counts: dict[str, int], merges: int):
        history = _history(counts, merges)
        assert history is not None
        self.part, self.history, self.merges = part, history, merges
        want = _train(counts, merges)
        self.characters, self.want = want[: len(want) - len(history)], want[len(want) - len(history) :]

    def __call__(self, answer: Answer) -> str | None:
        got = list(answer.value)
        if said := _strange(got):
            return said
        count = len(self.characters)
        start, new = got[:count], got[count:]
        if sorted(start) != self.characters:
            lost = [c for c in self.characters if c not in start]
            odd = lost[0] if lost else next(c for c in start if start.count(c) > 1)
            why = "is not among the first" if lost else "comes twice among the first"
            return f"the vocabulary starts with the {count} characters of these words; {odd!r} {why} {count}"
        for i, (mine, piece) in enumerate(zip(new, self.want, strict=False)):
            bare = (lambda text: text.replace("#", "")) if self.part == "first merge" else str
            if bare(mine) != bare(piece):
                return self._wrong_merge(i, mine, piece)
        if len(new) != len(self.want):
            until = ", then no pair is left" if len(self.want) < self.merges else ""
            return (
                f"{len(new)} pieces follow the characters; with num_merges={self.merges} it is {len(self.want)}{until}"
            )
        return None

    def _wrong_merge(self, i: int, mine: str, piece: str) -> str:
        (a, b), scores = self.history[i]
        score, n, x, y = scores[a, b]
        best = f"{a} and {b} score most ({n} / ({x} · {y}) = {float(score):.3g})"
        if mine.replace("#", "") == piece.replace("#", ""):
            return f"{a} and {b} merge to {piece}, yours to {mine}"
        equal = [pair for pair, counts in scores.items() if counts[0] == score]
        if len(equal) > 1 and mine in {a + b[2:] for a, b in equal}:
            first = f"{len(equal)} pairs score the same, and {a} {b} comes first in the alphabet"
            return f"merge {i + 1}: {first}; yours is {mine}"
        return f"merge {i + 1}: {best} and give {piece}; yours is {mine}"


@train.canonical
def _(value):
    """The characters, whose order is free, in one order: what is one letter long, then the rest as it came."""
    if not isinstance(value, list) or not all(isinstance(piece, str) for piece in value):
        return value
    count = next((i for i, piece in enumerate(value) if len(piece.removeprefix("##")) > 1), len(value))
    return sorted(value[:count]) + value[count:]


@train.reward
def _(function):
    wordpiece_rewards.trained_on_a_book(function)


# ---------------------------------------------------------------- 03.4 encode a word

encode_word = Exercise(
    "03.4", "encode_word", "encode a word",
    lesson=LESSON, section="Longest match first", points=3,
    parts=[Part("longest match"), Part("##"), Part("unknown"), Part("too long")],
)  # fmt: skip


@encode_word.reference
def _encode_word(word, vocab, max_chars=100):
    if len(word) > max_chars:  # step: too long or longest match
        return ["[UNK]"]
    pieces, start = [], 0
    for _ in word:
        candidates = [word[start:end] for end in range(start + 1, len(word) + 1)]  # step: longest match or ##
        known = [x for x in candidates if ("##" if start else "") + x in vocab]  # step: ## or longest match
        if not known:
            return ["[UNK]"]
        pieces.append(("##" if start > 0 else "") + known[-1])  # step: longest match or ##
        start += len(known[-1])
        if start == len(word):  # step: unknown or longest match
            break
    return pieces


def _vocabulary(new: Inputs, *pieces: str) -> dict[str, int]:
    """The pieces in random order, each with an id, and [UNK]."""
    order = new.random.sample(sorted(pieces), len(pieces))
    return {piece: i for i, piece in enumerate(["[UNK]", *order])}


@encode_word.cases
def _(new: Inputs):
    def case(part: str, word: str, vocab: dict[str, int], **options) -> Case:
        want = _encode_word(word, vocab, **options)
        return Case(part, (Call((word, vocab), options),), holds=_Pieces(part, word, want, options), loose=True)

    a, b, c, d, e, f, g = _letters(new, 7)
    inside = ["##" + x for x in (b, c, d, e, f)]
    # abcdef: longest first abc ##de ##f; fewest pieces ab ##cdef; from the end ab ##cdef as well
    many = _vocabulary(new, a, a + b, a + b + c, *inside, f"##{c}{d}{e}{f}", f"##{d}{e}", f"##{e}{f}", f"##{b}{c}")
    yield case("longest match", a + b + c + d + e + f, many)
    yield case("longest match", a + b + c, many)
    yield case("longest match", a + b + d + e + d + e + f + b, many)
    yield case("longest match", a + d + c + b, many)
    # abdef: longest first abd ##ef; from the end a ##b ##def
    few = _vocabulary(new, a, a + b + d, *inside, f"##{d}{e}{f}", f"##{e}{f}")
    yield case("longest match", a + b + d + e + f, few)
    # fg is a word but not ##fg; ##ab continues a word but ab starts none
    marks = _vocabulary(new, a, f + g, "##" + f, "##" + g, f"##{a}{b}", "##" + b, f)
    yield case("##", a + f + g, marks)
    yield case("##", a + b, marks)
    yield case("##", f + a + b + f + g, marks)
    # g is in no piece; and a word that another cut would save
    yield case("unknown", a + b + c + g, many)
    yield case("unknown", g + a + b, many)
    yield case("unknown", a + b + g + c + d, many)
    yield case("unknown", g, many)
    blind = _vocabulary(new, a, a + b, a + b + c, f"##{c}{d}", "##" + c, e, d)
    yield case("unknown", a + b + c + d, blind)
    yield case("too long", a + b + c + d + e, many, max_chars=5)
    yield case("too long", a + b + c + d + e + f, many, max_chars=5)
    yield case("too long", a + b + c + d + e + f + b + d, many, max_chars=5)
    yield case("too long", a + b * 130, many)
    yield case("too long", a + b * 99, many)
    yield case("too long", a + b * 100, many)
    yield case("too long", a + b * 119, many, max_chars=120)


class _Pieces:
    """Compares pieces; for the part "longest match" without their ##."""

    def __init__(self, part: str, word: str, want: list[str], options: dict):
        self.word, self.want, self.blind = word, want, part == "longest match"
        self.how = "".join(f", {name}={value}" for name, value in options.items())

    def __call__(self, answer: Answer) -> str | None:
        got = list(answer.value)
        if said := _strange(got):
            return said
        plain = (lambda p: p.removeprefix("##")) if self.blind else str
        if list(map(plain, got)) == list(map(plain, self.want)):
            return None
        if len(self.word) > 20:
            mine = f"{len(got)} pieces" if got != ["[UNK]"] else "[UNK]"
            theirs = f"{len(self.want)} pieces" if self.want != ["[UNK]"] else "[UNK]"
            return f"a word of {len(self.word)} characters{self.how} gives {mine}, expected {theirs}"
        return f"“{self.word}”{self.how} gives {_shown(got):.80}, expected {_shown(self.want)}"


@encode_word.reward
def _(function):
    wordpiece_rewards.real_vocabulary(function)


# ---------------------------------------------------------------- 03.5 decode

decode = Exercise(
    "03.5", "decode", "decode",
    lesson=LESSON, section="And back", points=2,
    parts=[Part("words"), Part("continuations"), Part("special tokens"), Part("the beginning")],
)  # fmt: skip


@decode.reference
def _decode(pieces):
    text = ""
    for piece in pieces:
        if piece in ("[CLS]", "[SEP]", "[PAD]"):
            continue
        if piece.startswith("##") and text:
            text += piece[2:]  # step: continuations
        else:
            text += " " + piece if text else piece  # step: words or the beginning
    return text


@decode.cases
def _(new: Inputs):
    def word(size: int) -> str:
        return "".join(_letters(new, size))

    def case(part: str, *pieces: str) -> Case:
        return Case(part, (Call((list(pieces),)),), holds=_Text(pieces, _decode(pieces)))

    a, b, c, d, e, f = (word(size) for size in (3, 2, 4, 1, 5, 3))
    yield case("words", a, b, c)
    yield case("words", a, "'", d, b, ",", c, ".")
    yield case("words", "#", a, "5", "#", b)
    yield case("words", a, "[", c, "]", b)
    yield case("continuations", a, "##" + b, c, "##" + d, "##" + e, f)
    yield case("continuations", d, "##" + d, "##" + d, a, ".")
    yield case("continuations", c, "##" + a)
    yield case("continuations", e, "###", "##" + b, f)
    yield case("special tokens", "[CLS]", a, "##" + b, "[SEP]", c, e, "[SEP]", "[PAD]", "[PAD]")
    yield case("special tokens", "[CLS]", a, "[MASK]", b, "[UNK]", ".", "[SEP]")
    yield case("special tokens", "[CLS]", a, "[SEP]", "##" + b, "[SEP]")
    yield case("the beginning", "##" + a, "##" + b, c)
    yield case("the beginning", "[CLS]", "##" + c, d, "[SEP]")
    yield case("the beginning", "[CLS]", "[SEP]", "[PAD]")
    yield case("the beginning")


class _Text:
    """Compares texts."""

    def __init__(self, pieces: tuple[str, ...], want: str):
        self.pieces, self.want = pieces, want

    def __call__(self, answer: Answer) -> str | None:
        if answer.value == self.want:
            return None
        return f"{_shown(self.pieces)} gives “{answer.value:.60}”, expected “{self.want}”"


@decode.reward
def _(function):
    wordpiece_rewards.there_and_back(function)


# ---------------------------------------------------------------- 03.6 truncate a pair

truncate_pair = Exercise(
    "03.6", "truncate_pair", "truncate a pair",
    lesson=LESSON, section="Too long for BERT", points=2,
    parts=[Part("what fits"), Part("how many"), Part("which text"), Part("which end"),
           Part("too small", kind="invariant")],
)  # fmt: skip


@truncate_pair.reference
def _truncate_pair(a, b, max_length):
    room = max_length - 3  # step: how many or what fits
    if room < 0:  # step: too small or which text
        raise ValueError(f"max_length={max_length} has no room for [CLS] and two [SEP]: give at least 3")
    a, b = list(a), list(b)
    for _ in range(len(a) + len(b) - room):  # step: how many or what fits
        if len(a) > len(b):  # step: which text or how many
            a = a[:-1]  # step: which end or how many
        else:
            b = b[:-1]  # step: which end or how many or which text
    return a, b


@truncate_pair.cases
def _(new: Inputs):
    def case(part: str, sizes: tuple[int, int], most: int) -> Case:
        a, b = ([f"{letter}{i}" for i in range(size)] for letter, size in zip(names, sizes, strict=True))
        return Case(part, (Call((a, b, most)),), holds=_Cut(part, a, b, most), loose=True)

    names = _letters(new, 2)
    few = new.random.randrange(4, 7)
    yield case("what fits", (few, few + 3), 2 * few + 9)
    yield case("what fits", (few + 1, few), 2 * few + 4)  # to the last place
    yield case("what fits", (few, 0), few + 3)
    # one long and one short; both long, with an even and an odd room; an empty text; no room at all
    odd = [((few + 9, few + 6), 14), ((few + 5, few + 5), 12), ((few + 3, few + 8), 12), ((few + 8, few + 3), 13)]
    sizes = [((few + 9, 3), few + 8), ((2, few + 8), few + 7), *odd, ((few + 7, 0), few + 4), ((few, few + 2), 3)]
    sizes.append(((few + 1, few), 4))
    for part in ("how many", "which text", "which end"):
        for pair, most in sizes:
            yield case(part, pair, most)
    for most in (2, 0):
        a, b = [f"{names[0]}{i}" for i in range(few)], [names[1]]
        says = f"max_length={most} leaves no room for [CLS] and two [SEP], and gives no ValueError"
        yield Case("too small", (Call((a, b, most)),), says, raises="ValueError")


class _Cut:
    """Looks at how many tokens are kept in all, at how many of each text, or at all of it."""

    def __init__(self, part: str, a: list[str], b: list[str], most: int):
        self.part, self.texts, self.most = part, (a, b), most
        self.want = _truncate_pair(a, b, most)

    def __call__(self, answer: Answer) -> str | None:
        got = answer.value
        if len(got) != 2 or not all(isinstance(text, (list, tuple)) for text in got):
            return "returns something else than two lists"
        got, want = [list(text) for text in got], [list(text) for text in self.want]
        sizes, kept, right = ([len(text) for text in texts] for texts in (self.texts, got, want))
        asked = f"of {sizes[0]} and {sizes[1]} tokens with max_length={self.most}"
        if self.part in ("what fits", "how many") and sum(kept) != sum(right):
            return f"{asked} you keep {kept[0]} + {kept[1]} = {sum(kept)}, expected {sum(right)} in all"
        if self.part != "how many" and kept != right:
            return f"{asked} you keep {kept[0]} and {kept[1]}, expected {right[0]} and {right[1]}"
        if self.part in ("what fits", "which end") and got != want:
            i = 0 if got[0] != want[0] else 1
            return f"{asked}: the tokens kept of {'ab'[i]} are {_shown(got[i]):.60}, expected {_shown(want[i]):.60}"
        return None


@truncate_pair.reward
def _(function):
    wordpiece_rewards.long_pairs(function)


# Known mistakes and right alternatives register themselves with the exercises above.
from coursework.checks import wordpiece_alternatives, wordpiece_mistakes  # noqa: E402, F401
