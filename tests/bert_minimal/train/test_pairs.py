"""Sentences, next-sentence pairs and sentence order."""

import numpy as np
import pytest

from bert_minimal.train.pairs import fit, gather, order_at, pair_at, pairs_of, split_sentences, target_length


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        (
            "The lamp went out. Nobody moved! Why? It was late.",
            ["The lamp went out.", "Nobody moved!", "Why?", "It was late."],
        ),
        ("Dr. Hale met Mrs. Orr at St. Anne's. They left.", ["Dr. Hale met Mrs. Orr at St. Anne's.", "They left."]),
        ("J. R. Moss wrote it. I read it.", ["J. R. Moss wrote it.", "I read it."]),
        ("It was I. Then she left.", ["It was I.", "Then she left."]),
        ("It cost 3.50 at noon. 12 people paid.", ["It cost 3.50 at noon.", "12 people paid."]),
        ("See No. 7 first. He said no. Then he went.", ["See No. 7 first.", "He said no.", "Then he went."]),
        ('"Stop!" he said. "Why?" She ran.', ['"Stop!" he said.', '"Why?"', "She ran."]),
        ("He left (at last.) Nobody cried.", ["He left (at last.)", "Nobody cried."]),
        ("“Is it far?” “Not far.”", ["“Is it far?”", "“Not far.”"]),
        ("Wait... what? Well... Yes.", ["Wait... what?", "Well...", "Yes."]),
        ("no capitals here. none at all", ["no capitals here. none at all"]),
        ("boats, nets, etc. Are they new?", ["boats, nets, etc. Are they new?"]),
        ("  ", []),
    ],
)
def test_split_sentences(text, sentences):
    assert split_sentences(text) == sentences


def test_splitting_loses_no_word():
    text = "A b. C d! (E f?) “G h.” I j... K l. Mr. M n. O. P. Q r"
    assert " ".join(split_sentences(text)).split() == text.split()


# Document d, sentence s is [100 d + s] repeated: a token tells where it comes from.
DOCUMENTS = [[[100 * d + s] * (3 + (d + s) % 4) for s in range(12 + d)] for d in range(6)]


def place(sentence: list[int]) -> tuple[int, int]:
    return divmod(sentence[0], 100)


def all_pairs(task=pair_at):
    runs = [(d, np.random.default_rng([seed, d])) for seed in range(60) for d in range(6)]
    return [(d, pair) for d, rng in runs for pair in pairs_of(DOCUMENTS, d, 40, rng, task)]


def test_half_are_next_and_labels_say_which():
    pairs = all_pairs()
    for d, pair in pairs:
        documents = {place(s)[0] for s in pair.b}
        assert {place(s)[0] for s in pair.a} == {d}
        if pair.label == 0:  # IsNext: B goes on exactly where A ends
            assert place(pair.b[0]) == (d, place(pair.a[-1])[1] + 1)
        else:  # never the same document, so never the true next
            assert len(documents) == 1
            assert d not in documents
    n = len(pairs)
    assert n > 1000
    assert abs(sum(p.label for _, p in pairs) / n - 0.5) < 5 * 0.5 / n**0.5


def test_every_other_document_is_drawn():
    drawn = {(d, place(p.b[0])[0]) for d, p in all_pairs() if p.label == 1}
    assert drawn == {(d, other) for d in range(6) for other in range(6) if d != other}


def test_displaced_sentences_come_again():
    """After a NotNext pair the walk goes on with the sentences that B displaced: none is lost."""
    for seed in range(20):
        pairs = pairs_of(DOCUMENTS, 2, 40, np.random.default_rng(seed))
        own = [place(s)[1] for p in pairs for s in (p.a + p.b if p.label == 0 else p.a)]
        assert own == list(range(len(own)))
        assert len(own) >= len(DOCUMENTS[2]) - 1  # the last one alone has no next


def test_order():
    pairs = all_pairs(order_at)
    for d, pair in pairs:
        first, second = (pair.b, pair.a) if pair.label else (pair.a, pair.b)
        assert place(second[0]) == (d, place(first[-1])[1] + 1)
    assert abs(sum(p.label for _, p in pairs) / len(pairs) - 0.5) < 5 * 0.5 / len(pairs) ** 0.5


def test_short_lengths_have_their_share():
    rng = np.random.default_rng(0)
    lengths = np.array([target_length(125, rng) for _ in range(20_000)])
    assert abs((lengths < 125).mean() - 0.1 * 123 / 124) < 0.012
    assert lengths.min() <= 4
    assert abs(lengths[lengths < 125].mean() - 63) < 4


def test_gather_fills_the_target():
    assert [place(s) for s in gather(DOCUMENTS[1], 3, 10)] == [(1, 3), (1, 4), (1, 5)]
    assert gather(DOCUMENTS[1], 12, 100) == DOCUMENTS[1][12:]


def test_fit_cuts_the_longer():
    a, b = list(range(50)), list(range(100, 110))
    kept = [fit(a, b, 30, np.random.default_rng(seed)) for seed in range(40)]
    assert {(len(x), len(y)) for x, y in kept} == {(20, 10)}
    assert {x[0] for x, _ in kept} == {0, 30}  # sometimes the end goes, sometimes the start


def test_words_for_what_cannot_be():
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="one document only"):
        pairs_of(DOCUMENTS[:1], 0, 40, rng)
    with pytest.raises(ValueError, match="no sentences"):
        pairs_of([[], *DOCUMENTS], 1, 40, rng)
