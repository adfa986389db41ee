"""Unit 04, beyond what the tests over all units do: chance, the references against torch, the rewards."""

import random

import pytest
import torch
import torch.nn.functional as F

from coursework import checks
from coursework.checks import mlm as unit
from coursework.checks.engine import Answer, run_variant

EXERCISES = checks.exercises("mlm")
each_exercise = pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise.name)
CHANCY = [unit.select_positions, unit.mask_tokens]


def _said(exercise, function, seeds):
    """For each seed: what the check's judgements of chance say of a function; None for each that passes."""
    for seed in seeds:
        said = []
        for case in exercise.questions(seed):
            answers = []
            for call in case.calls:
                torch.manual_seed(call.seed + seed)
                random.seed(call.seed + seed)
                answers.append(Answer(function(*call.args, **call.kwargs)))
            said.append(case.holds(*answers))
        yield said


@pytest.mark.parametrize("exercise", CHANCY, ids=lambda exercise: exercise.name)
def test_what_is_right_by_chance_passes_with_30_seeds(exercise):
    """500 seeds are asked by the long test over all units."""
    for said in _said(exercise, next(iter(exercise.alternatives.values())).function, range(100, 130)):
        assert not any(said), said


CLOSE = ("independent_draws", "independent_draws_random_last", "tenth_of_the_rest", "last_piece_never")


@pytest.mark.parametrize("name", CLOSE)
def test_what_is_nearly_right_fails(name):
    for said in _said(unit.mask_tokens, unit.mask_tokens.mistakes[name].function, range(100, 104)):
        assert any(said)


@pytest.mark.long
@pytest.mark.parametrize("name", CLOSE)
def test_what_is_nearly_right_fails_with_100_seeds(name):
    for said in _said(unit.mask_tokens, unit.mask_tokens.mistakes[name].function, range(1000, 1100)):
        assert any(said)


def test_the_observed_split_is_in_the_message():
    mistake = unit.mask_tokens.mistakes["independent_draws"]
    verdict = unit.mask_tokens.verdict(run_variant("mask_tokens", mistake.function), seed=2018)
    assert "split 81." in verdict.what or "split 80.9%" in verdict.what
    assert verdict.mistake == "independent_draws"


def test_references_equal_the_package_and_torch():
    from bert_minimal.config import BertConfig
    from bert_minimal.heads import MaskedLMHead

    config = BertConfig(vocab_size=19, hidden_size=12, num_hidden_layers=1, num_attention_heads=3, intermediate_size=24)
    head = MaskedLMHead(config)
    for parameter in head.parameters():
        torch.nn.init.normal_(parameter)
    weights = {"dense.weight": head.dense_weight, "dense.bias": head.dense_bias, "norm.weight": head.norm_weight,
               "norm.bias": head.norm_bias, "decoder.bias": head.decoder_bias, "word": torch.randn(19, 12)}  # fmt: skip
    hidden = torch.randn(7, 12)
    torch.testing.assert_close(unit._mlm_head(hidden, weights), head(hidden, weights["word"]), rtol=1e-4, atol=1e-4)
    logits, labels = torch.randn(2, 4, 9), torch.tensor([[0, -100, 3, 8], [-100, -100, 1, -100]])
    wanted = F.cross_entropy(logits.flatten(0, 1), labels.flatten())
    torch.testing.assert_close(unit._mlm_loss(logits, labels), wanted)


@each_exercise
def test_rewards_show_the_students_own_function(exercise, capsys):
    exercise._reward(next(iter(exercise.alternatives.values())).function)
    assert "What this made possible" in capsys.readouterr().out
