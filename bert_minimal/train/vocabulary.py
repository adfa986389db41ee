"""How a vocabulary of pieces is learned, by either of two rules that popular texts confuse."""

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from itertools import pairwise

MAX_ALPHABET = 1000  # single characters taken in, the most frequent first; words with others are left out


def learn_pieces(words: Mapping[str, int], size: int, rule: str, min_count: int) -> list[str]:
    """At most `size` pieces from word -> count: the single characters, then the merges in the order made.

    Start with every word in single characters, all but its first marked ##. Then, again and again, make the
    best pair of neighbours one piece, everywhere. Best has the highest score, where count means occurrences
    in the words as they are cut at that moment, times the count of the word:

        rule="ratio"       count(ab) / (count(a) · count(b)), the pair furthest above chance. Google never
                           published its trainer; this is the rule by which WordPiece is usually described
        rule="frequency"   count(ab): byte-pair encoding (Sennrich et al. 2016, section 3.2), which many
                           texts describe as WordPiece, and which Hugging Face's WordPiece trainer does

    among pairs with count(ab) ≥ min_count. Ties: the pair that is first in code point order, by a, then b.
    The ratio is highest where a and b are rare (two that occur once, together, score 1, the maximum): without
    a min_count that grows with the text it fills the vocabulary with accidents. benchmarks/tokenizer.py
    measures that, and how the two rules compare. Raises ValueError if `size` is less than the characters.
    """
    if rule not in ("ratio", "frequency") or min_count < 1:
        raise ValueError(f'rule is "ratio" or "frequency", min_count ≥ 1; not {rule!r} and {min_count}')
    seen: Counter[str] = Counter()  # one character, as it stands in a word -> how often
    for word, n in words.items():
        for piece in characters(word):
            seen[piece] += n
    learned = sorted(seen, key=lambda piece: (-seen[piece], piece))[:MAX_ALPHABET]
    if len(learned) > size:
        raise ValueError(f"there are {len(learned)} characters: vocab_size has to be {len(learned) - size} more")
    known = set(learned)
    split = [pieces for word in words if known.issuperset(pieces := characters(word))]
    weight = [n for word, n in words.items() if known.issuperset(characters(word))]
    single: Counter[str] = Counter()  # count(a)
    together: Counter[tuple[str, str]] = Counter()  # count(ab)
    where = defaultdict(set)  # pair -> words in which it stands, or stood
    partners = defaultdict(set)  # piece -> pairs in which it stands, or stood
    heap: list[tuple[float, tuple[str, str]]] = []  # (−score, pair), with entries that are out of date

    def count(at: int, sign: int) -> set[tuple[str, str]]:
        """Put a word's pieces and pairs into the counts (sign 1) or take them out (sign −1)."""
        pieces, n = split[at], sign * weight[at]
        for piece in pieces:
            single[piece] += n
        for pair in pairwise(pieces):
            together[pair] += n
            if sign > 0:
                where[pair].add(at)
                partners[pair[0]].add(pair)
                partners[pair[1]].add(pair)
        return set(pairwise(pieces))

    def score(a: str, b: str) -> float:
        return together[a, b] / (single[a] * single[b]) if rule == "ratio" else together[a, b]

    def push(pairs: Iterable[tuple[str, str]]) -> None:
        for pair in pairs:
            if together[pair] >= min_count:
                heapq.heappush(heap, (-score(*pair), pair))

    for at in range(len(split)):
        count(at, 1)
    push(together)
    while heap and len(learned) < size:
        minus_score, (a, b) = heapq.heappop(heap)
        if together[a, b] < min_count or -minus_score != score(a, b):
            continue  # out of date: if the pair is still worth something, it was pushed again
        changed = set()
        if rule == "ratio":  # count(a) and count(b) are about to fall: every pair with one of them changes
            for piece in (a, b):
                partners[piece] = {pair for pair in partners[piece] if together[pair] >= min_count}
                changed |= partners[piece]
        for at in where.pop((a, b)):
            changed |= count(at, -1)
            split[at] = joined(split[at], a, b)
            changed |= count(at, 1)
        push(changed)
        if a + b[2:] not in known:  # a##bc and ab##c are two pairs, and one piece
            known.add(a + b[2:])
            learned.append(a + b[2:])
    return learned


def characters(word: str) -> list[str]:
    """sea -> ["s", "##e", "##a"]."""
    return [word[0], *("##" + c for c in word[1:])]


def joined(pieces: list[str], a: str, b: str) -> list[str]:
    """Every a followed by b made one piece, from left to right."""
    out, i = [], 0
    while i < len(pieces):
        both = pieces[i] == a and i + 1 < len(pieces) and pieces[i + 1] == b
        out.append(a + b[2:] if both else pieces[i])
        i += 2 if both else 1
    return out
