"""Unit 05, beyond what the tests over all units do: references against the package, and the rewards."""

import numpy as np
import pytest
import torch

from bert_minimal import BertConfig
from bert_minimal.heads import PreTraining
from bert_minimal.train import pairs
from coursework import checks
from coursework.checks import nsp as unit
from coursework.checks.engine import Inputs, run_variant

EXERCISES = checks.exercises("05")


def _right(exercise, function, seed):
    verdict = exercise.verdict(run_variant(exercise.name, function), seed=seed)
    assert verdict.passed, verdict.text()


@pytest.mark.parametrize("seed", range(3))
def test_the_packages_own_pairs_pass_the_checks(seed):
    def make_pair(documents, number, start, target):
        rng = np.random.default_rng(int(torch.randint(1 << 30, ())))
        return tuple(pairs.pair_at(documents, number, start, target, rng))

    def order_pair(sentences):
        rng = np.random.default_rng(int(torch.randint(1 << 30, ())))
        return tuple(pairs.order_at([sentences], 0, 0, 10**6, rng)[:3])

    _right(unit.make_pair, make_pair, seed)
    _right(unit.order_pair, order_pair, seed)
    _right(unit.gather, pairs.gather, seed)


def test_head_and_loss_are_the_models():
    model = (
        PreTraining(
            BertConfig(vocab_size=97, hidden_size=24, num_hidden_layers=2, num_attention_heads=3, intermediate_size=48)
        )
        .double()
        .eval()
    )
    new = Inputs(3)
    ids = new.integers(5, model.config.vocab_size, 3, 9)
    words, follows = torch.full_like(ids, -100), torch.tensor([0, 1, 1])
    words[:, 2:5] = ids[:, 2:5]
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(new.normal(*parameter.shape, scale=0.3))
        theirs = model(input_ids=ids, labels=words, next_sentence_label=follows)
        hidden = model.bert(input_ids=ids).last_hidden_state
        weights = {"pooler.weight": model.bert.pooler.weight, "pooler.bias": model.bert.pooler.bias,
                   "classifier.weight": model.nsp_weight, "classifier.bias": model.nsp_bias}  # fmt: skip
        scores = unit._nsp_head(hidden, weights)
        every = model.mlm(hidden, model.bert.embeddings.word)
        loss = unit._pretraining_loss(every, words, scores, follows)
    torch.testing.assert_close(scores, theirs.seq_relationship_logits, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(loss, theirs.loss, rtol=1e-6, atol=1e-6)


def test_sentences_say_what_was_drawn():
    def told(name):
        variant = unit.make_pair.mistakes[name].function
        return unit.make_pair.verdict(run_variant("make_pair", variant), seed=7).what

    assert "of 240 pairs: too often" in told("share_of_masking")  # the observed split
    assert "a's own document" in told("own_document_included")
    assert "0 is IsNext" in told("labels_reversed")


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise.name)
def test_rewards_show_the_students_own_function(exercise, gutenberg, capsys):
    exercise._reward(next(iter(exercise.alternatives.values())).function)
    assert "What this made possible" in capsys.readouterr().out
