"""The causal twin against transformers, the rows both twins learn from, the command, and the twins as shipped."""

import json
from dataclasses import asdict, replace

import numpy as np
import pytest
import torch
import transformers

from bert_minimal import BertConfig, WordPiece
from bert_minimal.heads import NO_LABEL, MaskedLM
from bert_minimal.train.corpus import Corpus, prepare
from bert_minimal.train.data import fetch
from coursework import twins
from coursework.twins import asking, training

from ..bert_minimal.parity import CONFIG, assert_close, batch, make_loud, transformers_twin

SIZES = {**asdict(CONFIG), "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
DOCUMENTS = [
    [f"Boat {n} had {k} sails. Old in {n} {k}! Who rows {n} {k}? We row {n} {k}."] for n in range(20) for k in (1, 2)
]


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """For models so small that two threads only wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def gpt():
    return make_loud(MaskedLM(twins.GptConfig(**SIZES)).double()).eval()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    tokenizer = WordPiece.train((p for d in DOCUMENTS for p in d), 120)
    prepare(DOCUMENTS, tokenizer, folder / "learn")
    prepare(DOCUMENTS[:8], tokenizer, folder / "held-out")
    return folder


# ---- the mask


@pytest.mark.parametrize("lengths", [(7, 4, 9), (9, 9, 9)])
def test_equals_transformers_decoder_in_value_and_gradient(gpt, lengths):
    inputs = batch(lengths, config=gpt.config)
    twin = transformers_twin(gpt, transformers.BertLMHeadModel)
    assert twin.config.is_decoder
    real = inputs["attention_mask"].bool()
    ours, theirs = gpt(**inputs).logits[real], twin(**inputs).logits[real]
    assert_close(ours, theirs)
    direction = torch.randn(ours.shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    gpt.zero_grad()
    (ours * direction).sum().backward()
    (theirs * direction).sum().backward()
    theirs = dict(twin.named_parameters())
    assert_close(gpt.bert.embeddings.word.grad, theirs["bert.embeddings.word_embeddings.weight"].grad)
    up = theirs["bert.encoder.layer.1.intermediate.dense.weight"].grad
    assert_close(gpt.bert.layers[1].up_weight.grad, up)
    query = theirs["bert.encoder.layer.0.attention.self.query.weight"].grad
    assert_close(gpt.bert.layers[0].qkv_weight.grad[:24], query)


def test_definition_equals_stream(gpt):
    inputs = batch(config=gpt.config)
    fast, slow = gpt.bert(**inputs), gpt.bert(**inputs, output_attentions=True)
    assert_close(fast.last_hidden_state, slow.last_hidden_state, 1e-12)
    for weights in slow.attentions:
        assert weights.triu(1).abs().max() == 0
        torch.testing.assert_close(weights.sum(-1), torch.ones_like(weights.sum(-1)))
        assert weights[1, :, :, 4:].abs().max() == 0  # padding


def test_what_comes_later_changes_nothing_for_gpt_and_everything_for_bert(gpt):
    bert = MaskedLM(BertConfig(**SIZES)).double().eval()
    bert.load_state_dict(gpt.state_dict())
    ids = torch.randint(1, 61, (2, 9))
    other = ids.clone()
    other[:, 5:] = (ids[:, 5:] + 7) % 60 + 1
    for model, same in ((gpt, True), (bert, False)):
        a, b = (model(input_ids=x).logits[:, :5] for x in (ids, other))
        assert torch.allclose(a, b, atol=1e-12) == same


def test_attention_dropout_is_refused():
    with pytest.raises(ValueError, match="no dropout in attention"):
        twins.GptConfig()


# ---- the rows


def test_both_read_the_same_text_and_are_asked_what_they_should(folder):
    learn = Corpus(folder / "learn")
    tokenizer = learn.tokenizer()
    bert, gpt = (training.Rows(learn, name, 6, 32, seed=3) for name in ("bert", "gpt"))
    text = []
    for document in learn:
        text += [*np.concatenate(list(document)).tolist(), tokenizer.sep_id]
    assert gpt.text.tolist() == text
    beginnings = {0}
    for document in learn:
        for sentence in document:
            beginnings.add(max(beginnings) + len(sentence))
        beginnings = {*beginnings - {max(beginnings)}, max(beginnings) + 1}
    asked, hidden = 0, 0
    for number in range(30):
        a, b = bert[number], gpt[number]
        rows = b["input_ids"].long()
        assert rows.shape == (6, 32)
        for row in rows.tolist():
            assert row[0] == tokenizer.cls_id
            assert any(text[at : at + 31] == row[1:] for at in beginnings)
        assert torch.equal(rows.flatten()[b["places"] + 1], b["labels"])
        assert b["places"].tolist() == [32 * r + c for r in range(6) for c in range(31)]
        real = a["labels"] != NO_LABEL
        restored = a["input_ids"].long().flatten()
        hidden += (restored[a["places"][real]] == tokenizer.mask_id).sum().item()
        asked += real.sum().item()
        restored[a["places"][real]] = a["labels"][real]
        assert torch.equal(restored.view(6, 32), rows)  # the same rows, but for what is asked
        assert a["places"].shape == bert[0]["places"].shape
    assert 0.12 < asked / (30 * 6 * 32) < 0.17
    assert 0.7 < hidden / asked < 0.9
    assert all(torch.equal(x, y) for x, y in zip(bert[4].values(), bert[4].values(), strict=True))
    assert not torch.equal(bert[4]["input_ids"], bert[5]["input_ids"])


def test_a_text_shorter_than_a_row_is_refused(folder):
    with pytest.raises(ValueError, match="less than one row"):
        training.Rows(Corpus(folder / "held-out"), "gpt", 2, 4000)


# ---- the command


def test_the_command_trains_both_alike_and_goes_on(folder, tmp_path, monkeypatch, capsys):
    small = replace(
        training.SIZES, hidden_size=24, num_hidden_layers=2, intermediate_size=48, max_position_embeddings=24
    )
    monkeypatch.setattr(training, "SIZES", small)
    settings = dict(steps=100, sequences=8, learning_rate=4e-3, corpus=folder)
    train = training.train

    def breaks_off(model, *arguments, **options):
        if type(model.bert) is twins.Gpt:
            train(model, *arguments, stop_at=60, **options)
            raise KeyboardInterrupt
        return train(model, *arguments, **options)

    training.twins(tmp_path / "a", **settings)
    monkeypatch.setattr(training, "train", breaks_off)
    with pytest.raises(KeyboardInterrupt):
        training.twins(tmp_path / "b", **settings)
    monkeypatch.setattr(training, "train", train)
    capsys.readouterr()
    training.twins(tmp_path / "b", **settings)
    assert "bert is in" in capsys.readouterr().out

    uniform = np.log(len(Corpus(folder / "learn").tokenizer()))
    for name in ("bert", "gpt"):
        log = [json.loads(line) for line in (tmp_path / "a" / name / "log.jsonl").read_text().splitlines()]
        assert log[-1]["step"] == 100
        assert log[-1]["held_out_piece_loss"] < 0.8 * uniform
        files = [tmp_path / run / name / "model.safetensors" for run in ("a", "b")]
        assert files[0].read_bytes() == files[1].read_bytes()
        assert not (tmp_path / "a" / name / "state.safetensors").exists()
    gpt = twins.open_twin("gpt", tmp_path / "a")
    theirs, info = transformers.BertLMHeadModel.from_pretrained(tmp_path / "a" / "gpt", output_loading_info=True)
    assert not info["unexpected_keys"]
    ids = torch.tensor([[2, 9, 14, 7, 3]])
    with torch.no_grad():
        a, b = gpt(input_ids=ids).logits, theirs.float().eval()(input_ids=ids).logits
    torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)
    assert not torch.allclose(twins.open_twin("bert", tmp_path / "a")(input_ids=ids).logits, a, atol=0.1)


def test_a_twin_is_not_opened_as_the_other(folder, tmp_path, gpt):
    training.save_twin(make_loud(MaskedLM(twins.GptConfig(**SIZES))), tmp_path / "bert")
    training.save_twin(make_loud(MaskedLM(BertConfig(**SIZES))), tmp_path / "gpt")
    for name in ("bert", "gpt"):
        with pytest.raises(ValueError, match="is_decoder"):
            twins.open_twin(name, tmp_path)


# ---- the twins as shipped


def test_the_shipped_twins_have_one_size_and_answer_as_their_logs_say():
    models = {name: twins.open_twin(name) for name in ("bert", "gpt")}
    sizes = {name: [p.shape for p in model.parameters()] for name, model in models.items()}
    assert sizes["bert"] == sizes["gpt"]
    assert sum((twins.HERE / name / "model.safetensors").stat().st_size for name in models) < 6_000_000
    logs = {
        name: [json.loads(line) for line in (twins.HERE / name / "log.jsonl").read_text().splitlines()]
        for name in models
    }
    assert [row["step"] for row in logs["bert"]] == [row["step"] for row in logs["gpt"]]
    tokenizer = WordPiece.from_pretrained(fetch("course"))
    ids = torch.tensor([tokenizer("he opened the [MASK] and walked into the room .").input_ids])
    with torch.no_grad():
        best = models["bert"](input_ids=ids).logits[0, 4].topk(3).indices.tolist()
        assert "door" in [tokenizer.pieces[i] for i in best]
        best = models["gpt"](input_ids=ids[:, :3]).logits[0, -1].topk(3).indices.tolist()  # he opened …
    assert "the" in [tokenizer.pieces[i] for i in best]


def test_a_hole_is_filled_without_being_read():
    """Also where one guess only is tried: then it is the likeliest piece after the left side."""
    gpt = twins.open_twin("gpt")
    row = torch.randint(10, 8000, (1, 20), generator=torch.Generator().manual_seed(0))[0]
    other = row.clone()
    other[9] = 4
    assert asking.fill_by_reading_on(gpt, row, 9) == asking.fill_by_reading_on(gpt, other, 9)
    likeliest = asking.scores_at(gpt, row[None, :9], 8)[0].argmax()
    assert asking.fill_by_reading_on(gpt, row, 9, most=1) == likeliest
    with torch.no_grad():
        rows = row.repeat(5, 1)
        rows[:, 9] = asking.scores_at(gpt, row[None, :9], 8)[0].topk(5).indices
        log_p = gpt(input_ids=rows).logits.log_softmax(-1)[:, :-1].gather(2, rows[:, 1:, None]).sum((1, 2))
    assert asking.fill_by_reading_on(gpt, row, 9, most=5) == rows[log_p.argmax(), 9]
