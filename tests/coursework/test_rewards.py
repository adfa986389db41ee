"""Rewards: what they print comes from the student's function and real weights, and never waits for a hub."""

import pytest
import torch

from coursework import checks
from coursework.checks import attention_rewards as rewards
from coursework.checks.instant import show_reward

EXERCISES = [exercise for unit in checks.UNITS for exercise in checks.exercises(unit)]


def test_every_exercise_but_warm_ups_has_a_reward():
    assert {e.number[:2] for e in EXERCISES if e._reward is None} == {"00"}


@pytest.mark.parametrize("exercise", [e for e in EXERCISES if e._reward], ids=lambda e: e.name)
def test_rewards_say_what_was_made_possible(exercise, minilm, gutenberg, movie_reviews, capsys):
    state = torch.random.get_rng_state()
    show_reward(exercise, next(iter(exercise.alternatives.values())).function)
    said = capsys.readouterr().out
    assert len(said.splitlines()) >= 2
    assert "run the lesson once" not in said
    assert torch.equal(torch.random.get_rng_state(), state), "it draws from the student's own random numbers"


def test_numbers_are_the_functions_own(minilm, capsys):
    rewards.what_the_seal_looks_at(lambda q, k, v: torch.nn.functional.scaled_dot_product_attention(q, k, v))
    assert "“letter” 0.48" in capsys.readouterr().out
    rewards.padding_gets_nothing(lambda mask: torch.zeros(len(mask), 1, 1, mask.size(1)))  # a bias that hides nothing
    without, with_bias = [line for line in capsys.readouterr().out.splitlines() if "your bias" in line]
    assert without.split()[-4] == with_bias.split()[-4] != "0.0%"
    rewards.first_layer_of_minilm(lambda hidden, weights, heads, mask: torch.zeros_like(hidden))
    assert "differ by 0e+00" not in capsys.readouterr().out


def test_without_weights_a_reward_says_how_to_get_them(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("BERT_MINIMAL_CACHE", str(tmp_path))
    rewards.first_layer.cache_clear()
    rewards.twelve_heads(None)
    rewards.first_layer.cache_clear()
    assert "run the lesson once" in capsys.readouterr().out
