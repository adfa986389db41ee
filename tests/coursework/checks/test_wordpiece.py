"""Unit 03, beyond what the tests over all units do: the references against the tokenizer, questions that are fair."""

import itertools

import pytest

from bert_minimal.train.vocabulary import learn_pieces
from bert_minimal.wordpiece import WordPiece, truncated_lengths
from coursework import checks
from coursework.cast import CAST, NEXT, TWINS
from coursework.checks import wordpiece as unit
from coursework.checks import wordpiece_rewards as rewards
from coursework.checks.engine import Inputs, run_variant

EXERCISES = checks.exercises("03")
each_exercise = pytest.mark.parametrize("exercise", EXERCISES, ids=lambda e: e.name)


def _verdict(exercise, function, seed=2018):
    return exercise.verdict(run_variant(exercise.name, function), seed=seed)


# ---------------------------------------------------------------- references against the tokenizer


@pytest.mark.parametrize("lower", [True, False])
def test_words_are_the_tokenizers(minilm, lower):
    tokenizer = WordPiece(WordPiece.from_pretrained(minilm).pieces, do_lower_case=lower)
    texts = [*CAST.values(), *TWINS.values(), *NEXT.values()]
    texts += [case.calls[0].args[0] for case in unit.split_words.questions(3)]
    for text in texts:
        if "[" not in text:  # split_words of the tokenizer knows nothing of [MASK]
            assert unit._split_words(text, lower) == tokenizer.split_words(text)


def test_pieces_and_text_are_the_tokenizers(minilm):
    tokenizer = WordPiece.from_pretrained(minilm)
    for text in [*CAST.values(), "Unaffable epistemology 😀, x² naïve violinmakers [MASK]."]:
        pieces = []
        for word in unit._split_words(text):
            pieces += [word] if word in unit.SPECIAL else unit._encode_word(word, tokenizer.vocab)
        assert pieces == tokenizer.tokenize(text)
        text = tokenizer.decode(tokenizer.vocab[piece] for piece in pieces)
        assert unit._decode(["[CLS]", *pieces, "[SEP]", "[PAD]"]) == text


def test_training_is_the_trainers():
    counts = unit._corpus(Inputs(5), 6, 9, unit._no_tie)
    vocabulary = unit._train(counts, 6)
    learned = learn_pieces(counts, len(vocabulary), "ratio", 1)
    assert sorted(vocabulary) == sorted(learned)
    assert vocabulary[-6:] == learned[-6:]


def test_truncation_keeps_as_many_as_the_tokenizer():
    for a, b, room in itertools.product(range(8), range(8), range(0, 12, 2)):
        x, y = unit._truncate_pair(["a"] * a, ["b"] * b, room + 3)
        assert (len(x), len(y)) == truncated_lengths(a, b, room, "longest_first")


# ---------------------------------------------------------------- questions that are fair


def test_no_question_hangs_on_a_rounded_tie():
    """What scores the same at any merge has the same three counts, so it is the same float however it is computed."""
    for seed in range(12):
        for case in unit.train.questions(seed):
            assert unit._history(*case.calls[0].args) is not None


def test_the_order_of_the_characters_is_free():
    def backwards(word_counts, num_merges):
        vocabulary = unit._train(word_counts, num_merges)
        count = len(unit._train(word_counts, 0))
        return vocabulary[:count][::-1] + vocabulary[count:]

    assert _verdict(unit.train, backwards).passed
    mistake = unit.train.mistakes["byte_pair_encoding"].function

    def both(word_counts, num_merges):
        vocabulary, count = mistake(word_counts, num_merges), len(unit._train(word_counts, 0))
        return vocabulary[:count][::-1] + vocabulary[count:]

    assert _verdict(unit.train, both).mistake == "byte_pair_encoding"


def test_sentences_show_what_came_and_what_was_expected():
    told = _verdict(unit.encode_word, unit.encode_word.mistakes["unknown_tail"].function).what
    assert "[UNK]" in told
    assert "expected [UNK]" in told
    told = _verdict(unit.train, unit.train.mistakes["byte_pair_encoding"].function).what
    assert "score most" in told
    told = _verdict(unit.decode, lambda pieces: pieces).what
    assert told == "returns a list of 3, expected a str"


@pytest.mark.parametrize("strange", [[1], ["a", None], [["a"]]])
def test_strange_lists_are_told(strange):
    for exercise in (unit.split_words, unit.train, unit.encode_word, unit.truncate_pair):
        verdict = _verdict(exercise, lambda *args, **kwargs: strange)
        assert not verdict.passed
        assert verdict.points == 0
    assert _verdict(unit.pair_scores, lambda splits: dict.fromkeys([(1, 2), "ab"], "high")).points == 0


# ---------------------------------------------------------------- rewards


@each_exercise
def test_rewards_show_the_students_own_function(exercise, minilm, gutenberg, capsys):
    exercise._reward(next(iter(exercise.alternatives.values())).function)
    right = capsys.readouterr().out
    assert "What this made possible" in right
    wrong = {"split_words": "split_at_spaces_only", "pair_scores": "frequency", "train": "byte_pair_encoding",
             "encode_word": "shortest_match", "decode": "marks_left", "truncate_pair": "always_b"}  # fmt: skip
    exercise._reward(exercise.mistakes[wrong[exercise.name]].function)
    assert capsys.readouterr().out != right


def test_without_the_book_a_reward_says_so(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("BERT_MINIMAL_CACHE", str(tmp_path))
    rewards.real.cache_clear()
    rewards.long_pairs(None)
    rewards.real.cache_clear()
    assert "run the lesson once" in capsys.readouterr().out
