"""Unit 08 against code that knows nothing of it: the package's scores, scikit-learn's, torch's own dropout."""

import importlib.util
import random
from collections import OrderedDict

import pytest
import torch
import torch.nn.functional as F

from bert_minimal.train.scores import class_scores
from coursework import checks
from coursework.checks import classification, classification_rewards
from coursework.checks import classification_mistakes as mistakes
from coursework.checks.engine import run_variant

HEAD = checks.find("08", "classification_head")


def _batches(seed: int) -> tuple[list, list[int], list[int]]:
    rng = random.Random(seed)
    sizes = [rng.randrange(1, 9) for _ in range(rng.randrange(1, 6))]
    batches, gold, said = [], [], []
    for size in sizes:
        logits, labels = torch.randn(size, 2), torch.tensor([int(rng.random() < seed % 3 / 2) for _ in range(size)])
        batches.append((logits, labels))
        gold += labels.tolist()
        said += logits.argmax(1).tolist()
    return batches, gold, said


def test_scores_are_those_of_the_package():
    for seed in range(60):
        batches, gold, said = _batches(seed)
        assert classification._evaluate(batches) == pytest.approx(class_scores(gold, said, 2))


@pytest.mark.skipif(importlib.util.find_spec("sklearn") is None, reason="scikit-learn is not installed")
def test_scores_are_those_of_scikit_learn():
    from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef

    for seed in range(30):
        batches, gold, said = _batches(seed)
        found = classification._evaluate(batches)
        assert found["accuracy"] == pytest.approx(accuracy_score(gold, said))
        assert found["f1"] == pytest.approx(f1_score(gold, said, zero_division=0))
        assert found["mcc"] == pytest.approx(matthews_corrcoef(gold, said))


def _chance(seed: int, function) -> list[str | None]:
    cases = [case for case in HEAD.questions(seed) if case.random]
    answers = HEAD.ask(run_variant(HEAD.name, function), cases)
    return [case.holds(*group) for case, group in zip(cases, answers, strict=True)]


@pytest.mark.parametrize("seeds", [range(30), pytest.param(range(30, 500), marks=pytest.mark.long)])
def test_a_right_dropout_is_never_refused(seeds):
    for variant in HEAD.alternatives.values():
        for seed in seeds:
            assert _chance(seed, variant.function) == [None] * 4, (variant.name, seed)


def test_a_wrong_share_is_told_with_what_was_seen():
    def drops_more(pooled, weight, bias, p=0.1, training=False):
        return F.linear(F.dropout(pooled, min(1.0, p + 0.15), training), weight, bias)

    for seed in range(20):
        first, _, second, _ = _chance(seed, drops_more)
        assert "asked for 25%" in (first or "")
        assert "asked for 60%" in (second or "")


def test_a_loop_with_torchs_own_optimizer_learns_and_frozen_weights_stay():
    """The reference's loop is not bound to the driver's optimizer."""
    torch.manual_seed(0)
    parts = {"encoder": torch.nn.Linear(5, 7), "tanh": torch.nn.Tanh(), "head": torch.nn.Linear(7, 2)}
    model = torch.nn.Sequential(OrderedDict(parts))
    x = torch.randn(24, 5)
    batches = [(x[:16], (x[:16, 0] > 0).long()), (x[16:], (x[16:, 0] > 0).long())]
    before = model.encoder.weight.clone()
    losses = classification._fine_tune(model, torch.optim.SGD, batches, 30, 0.5, True)
    assert losses[-1] < losses[0] * 0.7
    assert torch.equal(model.encoder.weight, before)
    classification._fine_tune(model, torch.optim.SGD, batches, 1, 0.5, False)
    assert not torch.equal(model.encoder.weight, before)


def test_answers_do_not_depend_on_the_batch():
    class Mean(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.table = torch.nn.Parameter(torch.randn(9, 3).double())

        def forward(self, ids, mask):
            return (self.table[ids] * mask[:, :, None]).sum(1) / mask.sum(1, keepdim=True)

    model, rng = Mean(), random.Random(1)
    sequences = [[rng.randrange(9) for _ in range(rng.randrange(1, 12))] for _ in range(17)]
    one, several = (classification._predict(model, sequences, batch) for batch in (1, 4))
    torch.testing.assert_close(one, several)
    torch.testing.assert_close(one.sum(1), torch.ones(17).double())
    assert model.training


def test_a_mistake_is_recognised_with_0_for_0_point_0_and_with_texts_sorted_the_other_way():
    def last_batch_only(batches):  # an int where the mistake has a float
        return {key: value or 0 for key, value in mistakes._scores(*mistakes._counts(batches[-1:])).items()}

    def logits_longest_first(model, sequences, batch):
        order = sorted(range(len(sequences)), key=lambda i: -len(sequences[i]))
        return mistakes._ask(model, sequences, batch, order=order, end=lambda logits: logits)

    for name, function, mistake in (("evaluate", last_batch_only, "last_batch"),
                                    ("predict", logits_longest_first, "logits_returned")):  # fmt: skip
        for seed in (1, 2018):
            verdict = checks.find("08", name).verdict(run_variant(name, function), seed=seed)
            assert verdict.mistake == mistake, verdict.text()


def test_weights_frozen_for_the_while_are_an_answer_without_gradients():
    def frozen_for_the_while(model, sequences, batch):
        model.requires_grad_(False)
        out = mistakes._ask(model, sequences, batch, gradients=True)
        model.requires_grad_(True)
        return out

    verdict = checks.find("08", "predict").verdict(run_variant("predict", frozen_for_the_while), seed=1)
    assert verdict.passed, verdict.text()


def test_batches_in_any_other_order_are_told_so():
    def sampled(model, make_optimizer, batches, epochs, lr, frozen=False):
        anew = random.Random(5)
        return mistakes._loop(model, make_optimizer, batches, epochs, lr, frozen,
                              order=lambda batches: anew.sample(batches, len(batches)))  # fmt: skip

    verdict = checks.find("08", "fine_tune").verdict(run_variant("fine_tune", sampled), seed=1)
    assert verdict.failed == "all batches"
    assert "another order" in verdict.what


def test_the_rewards_heads_tell_praise_from_blame():
    """What the rewards print is true: after twelve reviews, most strangers are judged right."""
    tokenizer, model = classification_rewards.course()
    torch.manual_seed(4)
    judge = classification_rewards.after_twelve_reviews(tokenizer, model)
    texts = classification_rewards.STRANGERS + classification_rewards.MORE
    with torch.no_grad():
        said = judge(classification_rewards.padded(tokenizer, [text for text, _ in texts])).argmax(1).tolist()
    assert sum(a == b for a, (_, b) in zip(said, texts, strict=True)) >= 7
