"""Unit 09: the references agree with the model package and with Hugging Face's tokenizers."""

import random

import pytest
import torch

from bert_minimal import windows as package
from coursework.checks import exercises, find
from coursework.checks.engine import run_variant
from coursework.checks.long_documents import _head_tail, _pool, _predict_documents, _windows

CLS, SEP = 7, 8


def test_head_and_tail_are_the_packages():
    for seed in range(200):
        chance = random.Random(seed)
        room = chance.randrange(1, 20)
        pieces, head = list(range(100, 100 + chance.randrange(0, 50))), chance.randrange(0, room + 1)
        assert _head_tail(pieces, room + 2, head, CLS, SEP) == [CLS, *package.head_tail(pieces, room, head), SEP]


def test_windows_are_the_packages():
    for seed in range(200):
        chance = random.Random(seed)
        room = chance.randrange(1, 20)
        pieces, stride = list(range(100, 100 + chance.randrange(0, 50))), chance.randrange(1, room + 1)
        cuts = package.windows(len(pieces), room, stride)
        assert _windows(pieces, room + 2, stride, CLS, SEP) == [[CLS, *pieces[a:b], SEP] for a, b in cuts]


def test_windows_are_those_of_tokenizers_whose_stride_is_the_overlap():
    tokenizers = pytest.importorskip("tokenizers")
    from bert_minimal.train.data import fetch

    fast = tokenizers.BertWordPieceTokenizer(str(fetch("course") / "vocab.txt"))
    text = "the seal broke the seal on the letter and swam home . " * 6
    whole = fast.encode(text).ids
    for room, stride in ((10, 3), (10, 10), (14, 5), (80, 1)):
        fast.enable_truncation(room + 2, stride=room - stride)
        first = fast.encode(text)
        theirs = [first.ids, *(part.ids for part in first.overflowing)]
        assert _windows(whole[1:-1], room + 2, stride, whole[0], whole[-1]) == theirs


def test_pooling_is_the_packages_in_value_and_gradient():
    for seed in range(20):
        torch.manual_seed(seed)
        x = torch.randn(12, 5, dtype=torch.float64, requires_grad=True)
        document = torch.cat([torch.arange(4), torch.randint(0, 4, (8,))])[torch.randperm(12)]
        weights = torch.randn(4, 5, dtype=torch.float64)
        for how in ("mean", "max"):
            ours, theirs = (pool(x, document, 4, how) for pool in (_pool, package.pool))
            torch.testing.assert_close(ours, theirs)
            grads = [torch.autograd.grad((out * weights).sum(), x, retain_graph=True)[0] for out in (ours, theirs)]
            torch.testing.assert_close(*grads)


def test_predictions_are_those_of_a_real_classifier():
    """Mean of logits = logits of the mean vector, as the package pools: the classifier is linear."""
    from bert_minimal.heads import SequenceClassifier
    from bert_minimal.train.data import fetch
    from bert_minimal.train.finetune import Row, logits_of

    torch.manual_seed(0)
    model = SequenceClassifier.from_pretrained(fetch("course"), labels=("a", "b", "c")).eval()
    documents = [[torch.randint(5, 8000, (size,)).tolist() for size in sizes] for sizes in ((9, 9, 4), (6,), (9, 2))]
    rows = [[Row(ids, [0] * len(ids)) for ids in cuts] for cuts in documents]
    logits, labels = _predict_documents(
        lambda ids, mask: model(input_ids=ids, attention_mask=mask).logits, documents, "mean", 4
    )
    theirs = torch.from_numpy(logits_of(model, rows, "mean"))
    torch.testing.assert_close(logits, theirs, atol=1e-5, rtol=1e-4)
    assert labels.tolist() == theirs.argmax(1).tolist()


def test_every_part_can_fail_alone():
    """Each part of each exercise is the first that fails for one of the known mistakes."""
    for exercise in exercises("09"):
        cases, found = exercise.questions(4), set()
        for variant in exercise.mistakes.values():
            found.add(exercise.judge(cases, exercise.ask(run_variant(exercise.name, variant.function), cases)).failed)
        missing = {part.name for part in exercise.parts} - found - {"shape"}
        assert not missing, f"{exercise.name}: no mistake fails first at {missing}"


def test_where_labels_are_asked_windows_would_say_otherwise():
    exercise = find("09", "predict_documents")
    for seed in range(8):
        cases = [case for case in exercise.questions(seed) if case.part == "labels"][1::2]  # for the mean, then the max
        for name, places in (("labels_by_vote", slice(0, 3)), ("labels_by_probability", slice(3, 5))):
            for case in cases:
                run = run_variant(exercise.name, exercise.mistakes[name].function)
                ((wrong,),), ((right,),) = exercise.ask(run, [case]), exercise._expected([case])
                assert (wrong.value[places] != right.value[places]).all()
