"""From documents to pairs of segments: next sentence (BERT) and sentence order (ALBERT).

Devlin et al. 2019, section 3.1 "Task #2" and appendix A.2. A "sentence" there is any run of text, mostly
several sentences long: sentences are taken until they fill the input, cut in two at random, and half of the
time the second part is replaced by text from another document. Label 0 is IsNext, label 1 NotNext.

A document is a sequence of sentences, a sentence a sequence of tokens: lists of ids in a lesson, views of a
memory-mapped file in training. `pair_at` makes one example, `pairs_of` walks through a document with it.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..wordpiece import truncated_lengths

IS_NEXT, NOT_NEXT = 0, 1
SHORT_PROBABILITY = 0.1  # google-research/bert, create_pretraining_data.py; the paper does not mention it

# A full stop after these ends no sentence, or so rarely that to join two is the smaller loss.
ABBREVIATIONS = frozenset(
    """mr mrs ms dr prof rev hon st sr jr messrs mme mlle capt col gen lt sgt gov sen rep pres vs etc e.g i.e cf
    viz al approx vol chap fig pp inc ltd co corp u.s u.k a.m p.m ph.d jan feb mar apr jun jul aug sept sep oct
    nov dec mt ft""".split()  # noqa: SIM905 (a list of 58 strings is harder to read)
)
# end marks, closing quotes and brackets, white space, and what may begin a sentence
BOUNDARY = re.compile(r"""([.!?…]+)(["'”’»)\]]*)\s+(?=["'“‘«(\[¿¡]*[A-Z0-9À-ÖØ-Þ])""")
LAST_WORD = re.compile(r"[^\s(\[\"'“‘«]+$")


def split_sentences(text: str) -> list[str]:
    """Cut a paragraph after . ! ? … where a capital or a digit follows; quotes stay with their sentence.

    Not after an abbreviation ("Dr. Hale") or an initial ("J. R. Moss"); a number has no space after its
    point. A rule of thumb: text without capitals stays in one piece, and "in the U.S. He …" is not cut.
    """
    sentences, start = [], 0
    for match in BOUNDARY.finditer(text):
        if match[1] == "." and not match[2]:
            word = LAST_WORD.search(text, start, match.start())
            word = word[0] if word else ""
            initial = len(word) == 1 and word.isupper() and word != "I"
            number = word.lower() == "no" and text[match.end()].isdigit()  # "No. 7", but "He said no. Then"
            if initial or number or word.lower() in ABBREVIATIONS:
                continue
        sentences.append(text[start : match.end()].strip())
        start = match.end()
    sentences.append(text[start:].strip())
    return [sentence for sentence in sentences if sentence]


class Pair(NamedTuple):
    """An example: two segments, and whether the second is what follows the first."""

    a: list  # sentences
    b: list
    label: int
    used: int  # sentences of the document that went into it: where to go on


def gather(document: Sequence, start: int, target: int) -> list:
    """Sentences from `start` on until they have `target` tokens (the last one may go over) or end."""
    taken, length, end = [], 0, len(document)
    while start < end and length < target:
        sentence = document[start]
        taken.append(sentence)
        length += len(sentence)
        start += 1
    return taken


def pair_at(documents: Sequence[Sequence], number: int, start: int, target: int, rng: np.random.Generator) -> Pair:
    """Next-sentence example of about `target` tokens that begins at sentence `start` of document `number`.

    There has to be a sentence after `start` (else nothing could be IsNext), and a second document. In a
    NotNext pair B starts anywhere in any other document, so it can never be the true next by accident, and
    the sentences that B displaced are not counted as used.
    """
    chunk = gather(documents[number], start, target)
    if len(chunk) == 1:  # one long sentence fills it all: the next one comes along, and both will be cut
        chunk = list(documents[number][start : start + 2])
    cut = int(rng.integers(1, len(chunk)))
    a = chunk[:cut]
    if rng.random() < 0.5:
        return Pair(a, chunk[cut:], IS_NEXT, len(chunk))
    other = int(rng.integers(len(documents) - 1))
    other += other >= number  # every document but this one, all equally likely
    room = max(1, target - sum(map(len, a)))
    b = gather(documents[other], int(rng.integers(len(documents[other]))), room)
    return Pair(a, b, NOT_NEXT, cut)


def order_at(documents: Sequence[Sequence], number: int, start: int, target: int, rng: np.random.Generator) -> Pair:
    """Sentence-order example (Lan et al. 2020, section 3.1): label 0 in order, 1 the same two swapped."""
    chunk = gather(documents[number], start, target)
    if len(chunk) == 1:
        chunk = list(documents[number][start : start + 2])
    cut = int(rng.integers(1, len(chunk)))
    swapped = int(rng.random() < 0.5)
    a, b = (chunk[cut:], chunk[:cut]) if swapped else (chunk[:cut], chunk[cut:])
    return Pair(a, b, swapped, len(chunk))


def target_length(room: int, rng: np.random.Generator, short_probability: float = SHORT_PROBABILITY) -> int:
    """Mostly all the room; sometimes a random shorter length, so that short inputs are no surprise later."""
    return int(rng.integers(2, room + 1)) if rng.random() < short_probability else room


def pairs_of(
    documents: Sequence[Sequence], number: int, max_length: int, rng: np.random.Generator, task=pair_at
) -> list[Pair]:
    """A whole document cut into pairs, each sentence in turn; a last one alone has no next and is left out."""
    if len(documents) < 2:
        raise ValueError("there is one document only: a random B needs at least a second one")
    if not all(len(document) for document in documents):
        raise ValueError("a document has no sentences: leave it out before making pairs")
    pairs, start = [], 0
    while start < len(documents[number]) - 1:
        pair = task(documents, number, start, target_length(max_length - 3, rng), rng)
        pairs.append(pair)
        start += pair.used
    return pairs


def fit(a: Sequence[int], b: Sequence[int], room: int, rng: np.random.Generator):
    """Cut the longer of two segments until both have `room` tokens; a coin says whether its start or its end
    goes, so that the model sees both (Google's code throws that coin for each token)."""
    keep_a, keep_b = truncated_lengths(len(a), len(b), room, "longest_first")
    a = a[len(a) - keep_a :] if rng.random() < 0.5 else a[:keep_a]
    b = b[len(b) - keep_b :] if rng.random() < 0.5 else b[:keep_b]
    return a, b
