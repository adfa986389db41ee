"""Unit 02, beyond what the tests over all units do: chance, errors that are asked for, the reference against torch."""

import pytest
import torch
import torch.nn.functional as F

from coursework.checks import embeddings as unit
from coursework.checks.engine import run_here, run_variant

EXERCISES = [unit.layer_norm, unit.build_inputs, unit.pad_batch, unit.embeddings]
QUICK, LONG = range(100, 130), range(1000, 1500)


def _verdict(exercise, function, seed=2018):
    return exercise.verdict(run_variant(exercise.name, function), seed=seed)


# ---------------------------------------------------------------- chance


def _said_of_dropout(function, seeds):
    """For many seeds: the sentences that the cases on dropout have for a function."""
    exercise = unit.embeddings
    for seed in seeds:
        cases = [case for case in exercise.questions(seed) if case.part == "dropout"]
        answers = exercise.ask(run_variant(exercise.name, function), cases)
        looks = [exercise._look(*three) for three in zip(cases, answers, exercise._expected(cases), strict=True)]
        yield [sentence for _, sentence in looks if sentence]


RIGHT = [unit.embeddings._reference, *(variant.function for variant in unit.embeddings.alternatives.values())]
CHANCY = ("dropout_not_scaled", "whole_tokens_dropped", "whole_features_dropped", "dropout_shared_by_tokens",
          "dropout_shared_by_texts", "keeps_dropout_p", "no_dropout")  # fmt: skip


@pytest.mark.parametrize("function", RIGHT, ids=lambda f: f.__name__)
def test_right_dropout_passes_with_30_seeds(function):
    assert not any(_said_of_dropout(function, QUICK))


@pytest.mark.parametrize("name", CHANCY)
def test_wrong_dropout_fails_with_30_seeds(name):
    assert all(_said_of_dropout(unit.embeddings.mistakes[name].function, QUICK))


@pytest.mark.long
@pytest.mark.parametrize("function", RIGHT, ids=lambda f: f.__name__)
def test_right_dropout_passes_with_500_seeds(function):
    assert not any(_said_of_dropout(function, LONG))


@pytest.mark.long
@pytest.mark.parametrize("name", CHANCY)
def test_wrong_dropout_fails_with_500_seeds(name):
    assert all(_said_of_dropout(unit.embeddings.mistakes[name].function, LONG))


def test_the_observed_share_is_in_the_message():
    def drops_half(input_ids, token_type_ids, weights, dropout_p=0.0, training=False):
        x = unit._embeddings(input_ids, token_type_ids, weights)
        return F.dropout(x, 1.0 if dropout_p == 1.0 else 0.5, training)

    verdict = _verdict(unit.embeddings, drops_half)
    assert verdict.failed == "dropout"
    assert "sets a share of 0.5 to 0" in verdict.what or "sets a share of 0.4" in verdict.what


# ---------------------------------------------------------------- rounding


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_digits_are_lost_by_the_difference_of_squares_alone(dtype):
    exercise = unit.layer_norm
    lossy, right = exercise.mistakes["mean_of_squares"], exercise.alternatives.values()
    for seed in QUICK:
        (case,) = (case for case in exercise.questions(seed, dtype) if case.random)
        for variant in (lossy, *right):
            ((answer,),) = exercise.ask(run_variant(exercise.name, variant.function), [case])
            assert bool(answer.value.isfinite().all())  # a NaN would be told in other words, and not be named
            assert bool(case.holds(answer)) == (variant is lossy), (variant.name, seed)


# ---------------------------------------------------------------- errors that are asked for


def test_the_message_of_a_right_error_is_the_students_own():
    def with_other_words(a, b=None, *, max_length, cls_id, sep_id, pad_id):
        try:
            return unit._build_inputs(a, b, max_length=max_length, cls_id=cls_id, sep_id=sep_id, pad_id=pad_id)
        except ValueError:
            raise ValueError("zu lang") from None

    assert _verdict(unit.build_inputs, with_other_words).passed


def test_an_error_derived_from_the_right_one_is_right():
    class TooLong(ValueError):
        pass

    def with_a_class_of_its_own(a, b=None, *, max_length, cls_id, sep_id, pad_id):
        try:
            return unit._build_inputs(a, b, max_length=max_length, cls_id=cls_id, sep_id=sep_id, pad_id=pad_id)
        except ValueError as error:
            raise TooLong(*error.args) from None

    assert _verdict(unit.build_inputs, with_a_class_of_its_own).passed


def test_an_error_of_another_kind_is_told_and_costs_its_part_only():
    def key_error(a, b=None, *, max_length, cls_id, sep_id, pad_id):
        try:
            return unit._build_inputs(a, b, max_length=max_length, cls_id=cls_id, sep_id=sep_id, pad_id=pad_id)
        except ValueError:
            raise KeyError("too long") from None

    verdict = _verdict(unit.build_inputs, key_error)
    assert (verdict.failed, verdict.points) == ("too long", 2.5)
    assert "raises KeyError" in verdict.what
    assert "ValueError" in verdict.what


def test_raising_always_earns_nothing():
    def always(a, b=None, *, max_length, cls_id, sep_id, pad_id):
        raise ValueError("too long")

    assert _verdict(unit.build_inputs, always).points == 0.0


def test_a_blank_answer_is_blank():
    def layer_norm(x, weight, bias, eps=1e-12):
        raise NotImplementedError

    verdict = unit.layer_norm.verdict(run_here({"layer_norm": layer_norm}), seed=1)
    assert verdict.blank
    assert verdict.points == 0.0


# ---------------------------------------------------------------- references, and what is excluded


def test_references_equal_torch():
    x, weight, bias = torch.randn(2, 3, 5, 7, dtype=torch.float64), torch.randn(7).double(), torch.randn(7).double()
    torch.testing.assert_close(unit._layer_norm(x, weight, bias), F.layer_norm(x, (7,), weight, bias, 1e-12))
    ids = torch.tensor([[1, 2, 0], [3, 0, 0]])
    weights = {"word": torch.randn(5, 7), "position": torch.randn(9, 7), "segment": torch.randn(2, 7)}
    weights |= {"norm.weight": torch.randn(7), "norm.bias": torch.randn(7)}
    x = weights["word"][ids] + weights["position"][:3] + weights["segment"][ids % 2]
    wanted = F.layer_norm(x, (7,), weights["norm.weight"], weights["norm.bias"], 1e-12)
    torch.testing.assert_close(unit._embeddings(ids, ids % 2, weights), wanted, rtol=1e-5, atol=1e-5)


def test_references_equal_the_tokenizer(minilm):
    from bert_minimal.wordpiece import WordPiece
    from coursework.cast import CAST, NEXT

    words = WordPiece.from_pretrained(minilm)
    special = {"cls_id": words.cls_id, "sep_id": words.sep_id, "pad_id": words.pad_id}
    names = ("input_ids", "token_type_ids", "attention_mask")
    for key in CAST:
        a, b = (words(text).input_ids[1:-1] for text in (CAST[key], NEXT[key]))
        theirs = words(CAST[key], NEXT[key], max_length=40, padding="max_length")
        assert unit._build_inputs(a, b, max_length=40, **special) == {name: theirs[name] for name in names}
    rows = [words(CAST[key], NEXT[key]) for key in CAST]
    theirs = words(list(CAST.values()), list(NEXT.values()), padding=True, return_tensors="pt")
    batch = unit._pad_batch(rows, words.pad_id)
    assert all(torch.equal(batch[name], theirs[name]) for name in names)


@pytest.mark.parametrize("borrowed", [F.layer_norm, lambda x, shape, *rest: torch.nn.LayerNorm(shape)(x)])
def test_torchs_own_layer_norm_is_refused(borrowed):
    verdict = _verdict(unit.layer_norm, lambda x, weight, bias, eps=1e-12: borrowed(x, x.shape[-1:]))
    assert verdict.points == 0.0
    assert "asks you to write it" in verdict.what


def test_torchs_own_is_known_under_another_name(monkeypatch):
    monkeypatch.setattr(F.layer_norm, "__name__", "mine")
    verdict = _verdict(unit.layer_norm, lambda x, weight, bias, eps=1e-12: F.layer_norm(x, x.shape[-1:], weight, bias))
    assert "calls torch's own layer_norm" in verdict.what


# ---------------------------------------------------------------- rewards


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda e: e.name)
def test_rewards_show_the_students_own_function(exercise, minilm, capsys):
    exercise._reward(next(iter(exercise.alternatives.values())).function)
    right = capsys.readouterr().out
    assert "What this made possible" in right
    wrong = {"layer_norm": "divided_by_length", "build_inputs": "no_segments", "pad_batch": "batch_mask_all_ones",
             "embeddings": "no_positions"}[exercise.name]  # fmt: skip
    exercise._reward(exercise.mistakes[wrong].function)
    assert capsys.readouterr().out != right


def test_without_weights_a_reward_says_so(monkeypatch, tmp_path, capsys):
    from coursework.checks import embeddings_rewards as rewards

    monkeypatch.setenv("BERT_MINIMAL_CACHE", str(tmp_path))
    rewards.tables.cache_clear()
    rewards.six_pairs(None)
    rewards.tables.cache_clear()
    assert "run the lesson once" in capsys.readouterr().out
