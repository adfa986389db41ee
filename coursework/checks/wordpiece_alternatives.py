"""Right answers of unit 03 that differ in structure: each must get full marks."""

import itertools
import math
import re
import unicodedata
from collections import Counter, defaultdict, deque
from functools import cache

from coursework.checks.wordpiece import decode, encode_word, pair_scores, split_words, train, truncate_pair

# ---------------------------------------------------------------- 03.1 split into words


@split_words.alternative
def states_of_a_reader(text, lower=True):
    """Character by character, with the word so far."""
    words, word, i = [], "", 0
    special = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
    while i < len(text):
        found = next((s for s in special if text.startswith(s, i)), None)
        c = found or text[i]
        i += len(c)
        kind = "" if found else unicodedata.category(c)
        alone = found or kind[0] == "P" or 0x4E00 <= ord(c) <= 0x9FFF or (c.isascii() and kind[0] == "S")
        if alone or c.isspace():
            words += [word] if word else []
            words += [c] if alone else []
            word = ""
        elif kind not in ("Cc", "Cf"):
            small = unicodedata.normalize("NFD", c).lower() if lower else c
            word += "".join(x for x in small if not lower or unicodedata.category(x) != "Mn")
    return [*words, word] if word else words


@split_words.alternative
def one_regular_expression(text, lower=True):
    special = r"\[(?:PAD|UNK|CLS|SEP|MASK)\]"
    text = "".join(c for c in text if c.isspace() or unicodedata.category(c) not in ("Cc", "Cf"))
    parts = []
    for part in re.split(f"({special})", text):
        if lower and not re.fullmatch(special, part):
            part = "".join(c for c in unicodedata.normalize("NFD", part.lower()) if not unicodedata.combining(c))
        parts.append(part)
    marks = {c for part in parts for c in part if unicodedata.category(c).startswith("P")} | set("$+<=>^`|~")
    alone = "".join(map(re.escape, sorted(marks))) + "\u4e00-\u9fff"
    return re.findall(rf"{special}|[{alone}]|[^\s{alone}]+", "\0".join(parts).replace("\0", " "))


@split_words.alternative
def translate_and_split(text, lower=True):
    special = {"[PAD]": "\ue000", "[UNK]": "\ue001", "[CLS]": "\ue002", "[SEP]": "\ue003", "[MASK]": "\ue004"}
    for token, sign in special.items():  # private characters stand in for them
        text = text.replace(token, sign)
    if lower:
        text = unicodedata.normalize("NFD", text.lower())
    table: dict[str, str | int | None] = {}
    for c in set(text):
        kind = unicodedata.category(c)
        if c.isspace():
            table[c] = " "
        elif kind in ("Cc", "Cf") or (lower and kind == "Mn"):
            table[c] = None
        elif kind[0] in "P" or c in "$+<=>^`|~" or "\u4e00" <= c <= "\u9fff" or kind == "Co":
            table[c] = f" {c} "
    back = {sign: token for token, sign in special.items()}
    return [back.get(word, word) for word in text.translate(str.maketrans(table)).split()]


@split_words.alternative
def group_by_kind(text, lower=True):
    def kind(c):
        if c.isspace():
            return "space"
        if unicodedata.category(c)[0] == "P" or c in "$+<=>^`|~" or "\u4e00" <= c <= "\u9fff":
            return c
        return "word"

    words = []
    for i, part in enumerate(re.split(r"\[(PAD|UNK|CLS|SEP|MASK)\]", text)):
        if i % 2:
            words.append(f"[{part}]")
            continue
        if lower:
            part = re.sub("[\u0300-\u036f]", "", unicodedata.normalize("NFD", part).lower())
        part = [c for c in part if unicodedata.category(c) not in ("Cc", "Cf") or c in "\t\n\r"]
        for name, group in itertools.groupby(part, key=kind):
            if name == "word":
                words.append("".join(group))
            elif name != "space":
                words += list(group)
    return words


# ---------------------------------------------------------------- 03.2 pair scores


@pair_scores.alternative
def counters(splits):
    single, together = Counter(), Counter()
    for pieces, n in splits.items():
        single.update({piece: n * k for piece, k in Counter(pieces).items()})
        together.update({pair: n * k for pair, k in Counter(itertools.pairwise(pieces)).items()})
    return {pair: n / single[pair[0]] / single[pair[1]] for pair, n in together.items()}


@pair_scores.alternative
def occurrences_written_out(splits):
    """Every occurrence of a word is a list entry: nothing is weighted."""
    words = [pieces for pieces, n in splits.items() for _ in range(n)]
    flat = [piece for pieces in words for piece in pieces]
    pairs = [pair for pieces in words for pair in itertools.pairwise(pieces)]
    return {(a, b): pairs.count((a, b)) / (flat.count(a) * flat.count(b)) for a, b in set(pairs)}


@pair_scores.alternative
def from_each_pairs_side(splits):
    pairs = {pair for pieces in splits for pair in itertools.pairwise(pieces)}
    scores = {}
    for a, b in sorted(pairs):
        both = sum(n * sum(p[i : i + 2] == (a, b) for i in range(len(p))) for p, n in splits.items())
        scores[a, b] = both / math.prod(sum(n * p.count(x) for p, n in splits.items()) for x in (a, b))
    return scores


@pair_scores.alternative
def exponential_of_logarithms(splits):
    single, together = defaultdict(int), defaultdict(int)
    for pieces, n in splits.items():
        for i, piece in enumerate(pieces):
            single[piece] += n
            if i:
                together[pieces[i - 1], piece] += n
    log = math.log
    return {pair: math.exp(log(n) - sum(log(single[x]) for x in pair)) for pair, n in together.items()}


# ---------------------------------------------------------------- 03.3 train


@train.alternative
def counters_and_min(word_counts, num_merges):
    words = [(["##" * (i > 0) + c for i, c in enumerate(word)], n) for word, n in word_counts.items()]
    vocabulary = list(dict.fromkeys(piece for pieces, _ in words for piece in pieces))
    for _ in range(num_merges):
        single, together = Counter(), Counter()
        for pieces, n in words:
            for piece in pieces:
                single[piece] += n
            for pair in itertools.pairwise(pieces):
                together[pair] += n
        if not together:
            return vocabulary
        a, b = min(together, key=lambda pair: (-together[pair] / (single[pair[0]] * single[pair[1]]), pair))
        new = a + b.removeprefix("##")
        vocabulary += [new]
        for pieces, _ in words:
            i = 0
            while i < len(pieces) - 1:
                if pieces[i] == a and pieces[i + 1] == b:
                    pieces[i : i + 2] = [new]
                i += 1
    return vocabulary


@train.alternative
def strings_with_spaces(word_counts, num_merges):
    """Each word as one string, pieces between spaces, and a regular expression that looks at whole pieces."""
    words = {word: " ".join([word[0], *("##" + c for c in word[1:])]) for word in word_counts}
    vocabulary = sorted(set(" ".join(words.values()).split()))
    while num_merges > 0:
        num_merges -= 1
        single, together = defaultdict(int), defaultdict(int)
        for word, text in words.items():
            pieces = text.split()
            for i in range(len(pieces)):
                single[pieces[i]] += word_counts[word]
                if i + 1 < len(pieces):
                    together[pieces[i], pieces[i + 1]] += word_counts[word]
        ranked = sorted(together, key=lambda p: (-(together[p] / single[p[0]] / single[p[1]]), *p))
        if not ranked:
            break
        a, b = ranked[0]
        pattern = re.compile(rf"(?<!\S){re.escape(a)} {re.escape(b)}(?!\S)")
        words = {word: pattern.sub(a + b[2:], text) for word, text in words.items()}
        vocabulary.append(a + b[2:])
    return vocabulary


@train.alternative
def counts_kept_up_to_date(word_counts, num_merges):
    """Only the words that hold the pair are counted again."""
    words = [[word[0]] + ["##" + c for c in word[1:]] for word in word_counts]
    weight = list(word_counts.values())
    single, together, where = Counter(), Counter(), defaultdict(set)

    def count(at, sign):
        for piece in words[at]:
            single[piece] += sign * weight[at]
        for pair in zip(words[at], words[at][1:], strict=False):
            together[pair] += sign * weight[at]
            where[pair].add(at)

    for at in range(len(words)):
        count(at, 1)
    vocabulary = sorted(single)
    for _ in range(num_merges):
        alive = [pair for pair, n in together.items() if n > 0]
        if not alive:
            break
        top = max(together[p] / (single[p[0]] * single[p[1]]) for p in alive)
        a, b = min(p for p in alive if together[p] / (single[p[0]] * single[p[1]]) == top)
        for at in where[a, b]:
            count(at, -1)
            left, out = deque(words[at]), []
            while left:
                piece = left.popleft()
                if piece == a and left and left[0] == b:
                    piece += left.popleft()[2:]
                out.append(piece)
            words[at] = out
            count(at, 1)
        vocabulary.append(a + b[2:])
    return vocabulary


# ---------------------------------------------------------------- 03.4 encode a word


@encode_word.alternative
def shrink_from_the_end(word, vocab, max_chars=100):
    if len(word) > max_chars:
        return ["[UNK]"]
    pieces, start = [], 0
    while start < len(word):
        end = len(word)
        while end > start and ("##" if start else "") + word[start:end] not in vocab:
            end -= 1
        if end == start:
            return ["[UNK]"]
        pieces.append(("##" if start else "") + word[start:end])
        start = end
    return pieces


@encode_word.alternative
def piece_by_recursion(word, vocab, max_chars=100):
    def rest(text):
        if text == "##":
            return []
        for end in range(len(text), 2 * text.startswith("##"), -1):
            if text[:end] in vocab:
                tail = rest("##" + text[end:])
                return None if tail is None else [text[:end], *tail]
        return None

    return ["[UNK]"] if len(word) > max_chars else rest(word) or ["[UNK]"]


@encode_word.alternative
def longest_of_the_vocabulary(word, vocab, max_chars=100):
    """Looks through the vocabulary, not through the word."""
    if not len(word) <= max_chars:
        return ["[UNK]"]
    first = [p for p in vocab if not p.startswith("##")]
    inside = [p[2:] for p in vocab if p.startswith("##")]
    pieces, left = [], word
    while left:
        fits = [p for p in (inside if pieces else first) if p and left.startswith(p)]
        if not fits:
            return ["[UNK]"]
        best = max(fits, key=len)
        left = left[len(best) :]
        pieces.append("##" + best if pieces else best)
    return pieces


@encode_word.alternative
def from_memory_of_ends(word, vocab, max_chars=100):
    @cache
    def end_of(start):
        ends = (e for e in range(len(word), start, -1) if "##" * bool(start) + word[start:e] in vocab)
        return next(ends, None)

    ends = [0]
    while len(word) <= max_chars and ends[-1] is not None and ends[-1] < len(word):
        ends.append(end_of(ends[-1]))
    if ends[-1] != len(word):
        return ["[UNK]"]
    return ["##" * bool(a) + word[a:b] for a, b in itertools.pairwise(ends)]


# ---------------------------------------------------------------- 03.5 decode


@decode.alternative
def join_and_replace(pieces):
    kept = (piece for piece in pieces if piece not in ("[CLS]", "[SEP]", "[PAD]"))
    return " ".join(kept).replace(" ##", "")


@decode.alternative
def words_as_a_list(pieces):
    words = []
    for piece in pieces:
        if piece in {"[CLS]", "[SEP]", "[PAD]"}:
            continue
        if words and piece[:2] == "##":
            words[-1] += piece[2:]
        else:
            words.append(piece)
    return " ".join(words)


@decode.alternative
def a_space_before_each(pieces):
    kept = [p for p in pieces if p not in ["[PAD]", "[SEP]", "[CLS]"]]
    spaced = [p.removeprefix("##") if p.startswith("##") and i else " " + p for i, p in enumerate(kept)]
    return "".join(spaced)[1:]


# ---------------------------------------------------------------- 03.6 truncate a pair


@truncate_pair.alternative
def one_token_at_a_time(a, b, max_length):
    if max_length < 3:
        raise ValueError("max_length must be at least 3")
    a, b = a[:], b[:]
    while len(a) + len(b) + 3 > max_length:
        (a if len(a) > len(b) else b).pop()
    return a, b


@truncate_pair.alternative
def lengths_by_arithmetic(a, b, max_length):
    room = max_length - 3
    if room < 0:
        raise ValueError("no room")
    if len(a) + len(b) <= room:
        return a, b
    half = room // 2
    if len(a) <= half:
        return a, b[: room - len(a)]
    if len(b) <= half:
        return a[: room - len(b)], b
    return a[: room - half], b[:half]


@truncate_pair.alternative
def search_for_the_best(a, b, max_length):
    """Of all that could be kept: as much as possible, as even as possible, the odd one for a."""
    choices = [(i, j) for i in range(len(a) + 1) for j in range(len(b) + 1) if i + j + 3 <= max_length]
    if not choices:
        raise ValueError("max_length has to be 3 at least")
    i, j = max(choices, key=lambda ij: (sum(ij), -abs(ij[0] - ij[1]), ij[0]))
    return [a[:i], b[:j]]


@truncate_pair.alternative
def deal_out_the_room(a, b, max_length):
    """The room is dealt in turns, a first, until it or the tokens are used up."""
    room, x, y = max_length - 3, [], []
    if room < 0:
        raise ValueError("too short")
    for p, q in itertools.zip_longest(a, b):
        for piece, side in ((p, x), (q, y)):
            if piece is not None and room > 0:
                side.append(piece)
                room -= 1
    return x, y
