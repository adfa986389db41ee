"""The same recipe in transformers gives the same model: all three tasks, from files' examples to weights.

Without dropout nothing is left to chance, so the two have to agree to rounding after every step of a whole run:
batches, padding or none, losses and their means, labels on pieces, spans in windows, decay groups, clipping, schedule.
"""

from dataclasses import replace

import numpy as np
import pytest
import torch

from bert_minimal.checkpoint import state_for_file
from bert_minimal.heads import QuestionAnswering, SequenceClassifier, TokenClassifier
from bert_minimal.train import answering, finetune, tagging
from bert_minimal.train.finetune import Batches, FineTuneOptions, open_start
from bert_minimal.train.loop import learning_rate

from .test_answering import questions
from .test_finetune import texts
from .test_tagging import sentences

transformers = pytest.importorskip("transformers")
pytestmark = pytest.mark.usefixtures("one_thread")
OPTIONS = FineTuneOptions(epochs=2, batch=8, learning_rate=1e-3, max_length=24, stride=8)
STILL = dict(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)


def still(module, monkeypatch):
    monkeypatch.setattr(module, "open_start", lambda *a, **k: open_start(*a, **k, **STILL))


def padded(rows, labels=None, fill=-100):
    width = max(len(row.ids) for row in rows)

    def pad(lists, filler):
        return torch.tensor([list(x) + [filler] * (width - len(x)) for x in lists])

    batch = {
        "input_ids": pad([row.ids for row in rows], 0),
        "token_type_ids": pad([row.types for row in rows], 0),
        "attention_mask": pad([[1] * len(row.ids) for row in rows], 0),
    }
    return batch if labels is None else batch | {"labels": pad(labels, fill)}


def trained_by_transformers(hf_class, kind, start, lengths, batch_of, **changes):
    """The textbook loop: transformers' model and loss, torch's optimizer and clipping."""
    _, ours = open_start(kind, start, OPTIONS, **changes, **STILL)
    model = hf_class(transformers.BertConfig(**ours.config.to_hf()))
    model.load_state_dict(state_for_file(ours), strict=False)  # position_ids is a buffer of theirs
    model.train()
    dealt = Batches(lengths, OPTIONS.batch, OPTIONS.seed)
    schedule = finetune.options_for_loop(OPTIONS, dealt.steps_an_epoch, torch.device("cpu"))
    matrices, others = ([p for p in model.parameters() if (p.ndim > 1) == wanted] for wanted in (True, False))
    groups = [dict(params=matrices, weight_decay=0.01), dict(params=others, weight_decay=0.0)]
    optimizer = torch.optim.AdamW(groups, betas=(0.9, 0.999), eps=1e-6)
    for step in range(schedule.steps):
        loss = model(**batch_of(dealt[step])).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, schedule)
        optimizer.step()
    return model


def assert_same_weights(ours, theirs, moved_from):
    """To 2 % of how far training has moved a tensor. What a softmax cancels (the key's bias; for questions all that
    shifts every place alike) has a gradient of rounding errors, of which Adam makes steps of any size."""
    found, expected, before = state_for_file(ours), theirs.state_dict(), state_for_file(moved_from)
    for name, value in found.items():
        if "key.bias" not in name and name != "qa_outputs.bias":
            moved = (value - before[name]).abs().max()
            assert (value - expected[name]).abs().max() <= 0.02 * moved + 1e-5, name
    assert (found["bert.embeddings.word_embeddings.weight"] != before["bert.embeddings.word_embeddings.weight"]).any()


def test_classification(tiny, monkeypatch):
    still(finetune, monkeypatch)
    train, labels = texts(60, 0), ("bad", "good")
    result = finetune.classify(tiny, train, labels=labels, options=OPTIONS)
    encoded = finetune.encode_texts(result.tokenizer, train, OPTIONS)

    def batch_of(chosen):
        answers = torch.tensor([labels.index(train[i].label) for i in chosen])
        return padded([encoded[i][0] for i in chosen]) | {"labels": answers}

    kinds, lengths = (transformers.BertForSequenceClassification, SequenceClassifier), [len(r[0].ids) for r in encoded]
    theirs = trained_by_transformers(*kinds, tiny, lengths, batch_of, labels=labels)
    assert_same_weights(result.model, theirs, open_start(SequenceClassifier, tiny, OPTIONS, labels=labels)[1])


@pytest.mark.parametrize("pieces", ["first", "all"])
def test_tagging(tiny, monkeypatch, pieces):
    still(tagging, monkeypatch)
    train = sentences(60, 0)
    result = tagging.tag(tiny, train, options=OPTIONS, pieces=pieces)
    numbers = {name: number for number, name in enumerate(result.labels)}
    parts = [p for s in train for p in tagging.parts_of(result.tokenizer, s, OPTIONS.max_length, numbers, pieces)]

    def batch_of(chosen):
        return padded([parts[i].row for i in chosen], [parts[i].labels for i in chosen])

    kinds, lengths = (transformers.BertForTokenClassification, TokenClassifier), [len(part.row.ids) for part in parts]
    theirs = trained_by_transformers(*kinds, tiny, lengths, batch_of, labels=result.labels)
    assert_same_weights(result.model, theirs, open_start(TokenClassifier, tiny, OPTIONS, labels=result.labels)[1])


def test_answering(tiny, monkeypatch):
    """transformers' softmax runs over padding too, so here all windows are of one length."""
    still(answering, monkeypatch)
    options = replace(OPTIONS, max_length=14, stride=4)
    monkeypatch.setattr(
        answering, "windows_of", lambda *a, real=answering.windows_of: full(real(*a), options.max_length)
    )
    train = questions(80, 0, empty=True)
    result = answering.answer(tiny, train, options=options)
    windows = [window for q in train for window in answering.windows_of(result.tokenizer, q, options)]
    assert len(windows) > 80

    def batch_of(chosen):
        spans = torch.tensor([windows[i].span for i in chosen])
        rows = padded([windows[i].row for i in chosen])
        return rows | {"start_positions": spans[:, 0], "end_positions": spans[:, 1]}

    theirs = trained_by_transformers(
        transformers.BertForQuestionAnswering, QuestionAnswering, tiny, [len(w.row.ids) for w in windows], batch_of
    )
    assert_same_weights(result.model, theirs, open_start(QuestionAnswering, tiny, OPTIONS)[1])


def full(windows, length):
    return [window for window in windows if len(window.row.ids) == length]


def test_windows_are_those_of_transformers_tokenizer(tiny):
    """The same cuts as Hugging Face's fast tokenizer makes, whose `stride` is the overlap."""
    tokenizer, _ = open_start(QuestionAnswering, tiny, OPTIONS)
    fast = transformers.AutoTokenizer.from_pretrained(tiny)
    context = "Anna was in Paris , the lamp was lit . Otto was cold in Lyon , a boat was in the river ."
    asked = answering.windows_of(tokenizer, answering.Question("q", "Who was cold ?", context), OPTIONS)
    room = asked[0].context[1] - asked[0].context[0]
    cut = dict(truncation="only_second", max_length=OPTIONS.max_length, stride=room - OPTIONS.stride)
    theirs = fast("Who was cold ?", context, **cut, return_overflowing_tokens=True, return_offsets_mapping=True)
    assert [window.row.ids for window in asked] == theirs["input_ids"]
    assert [window.row.types for window in asked] == theirs["token_type_ids"]
    for window, offsets in zip(asked, theirs["offset_mapping"], strict=True):
        a, b = window.context
        np.testing.assert_array_equal(window.offsets, offsets[a:b])
