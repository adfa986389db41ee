"""The texts' way into batches, and the whole command on a small text."""

import json
import math
import re
import shlex
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch

from bert_minimal import Bert, BertConfig
from bert_minimal.__main__ import main
from bert_minimal.heads import PreTraining
from bert_minimal.train.corpus import Corpus, PairBatches, prepare, read_documents, split_held_out
from bert_minimal.train.loop import evaluate
from bert_minimal.train.metrics import count_parameters, training_flops
from bert_minimal.train.pairs import pair_at
from bert_minimal.train.pretrain import (
    PAPER,
    PRESETS,
    PhasedBatches,
    PreTrainingObjective,
    check_numbers,
    plan,
    pretrain,
    save_model,
    split_texts,
)
from bert_minimal.train.pretrain import evaluate as evaluate_saved
from bert_minimal.wordpiece import WordPiece

# Every sentence says which document it is from.
DOCUMENTS = [
    [f"Boat {n} had {k} sails. Old in {n} {k}! Who rows {n} {k}? We row {n} {k}.", f"So {n} was {k}. End of {n} {k}."]
    for n in range(30)
    for k in range(2)
]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> Corpus:
    tokenizer = WordPiece.train((p for d in DOCUMENTS for p in d), 120)
    return prepare(DOCUMENTS, tokenizer, tmp_path_factory.mktemp("corpus"))


def test_prepared_text_is_the_text(corpus):
    tokenizer = corpus.tokenizer()
    assert len(corpus) == len(DOCUMENTS)
    for number in (0, 17, 59):
        ids = np.concatenate(list(corpus[number])).tolist()
        assert ids == [i for p in DOCUMENTS[number] for i in tokenizer(p).input_ids[1:-1]]
        assert len(corpus[number]) == 6
    assert corpus.shards[0].dtype == np.uint16


def test_several_shards_read_as_one(tmp_path, corpus, monkeypatch):
    monkeypatch.setattr("bert_minimal.train.corpus.SHARD_TOKENS", 300)
    monkeypatch.setattr("bert_minimal.train.corpus.TEXTS_AT_ONCE", 7)
    many = prepare(DOCUMENTS, corpus.tokenizer(), tmp_path)
    assert len(many.shards) > 3
    for number in range(len(corpus)):
        assert [s.tolist() for s in many[number]] == [s.tolist() for s in corpus[number]]


def test_a_batch_is_what_it_says(corpus):
    tokenizer = corpus.tokenizer()
    data = PairBatches(corpus, 6, 48, seed=3)
    shapes, paddings = set(), []
    for number in range(20):
        batch = data[number]
        shapes.add(tuple(v.shape for v in batch.values()))
        ends = batch["cu_seqlens"].tolist()
        assert ends[0] == 0
        assert ends[-1] == 6 * 48
        lengths = np.diff(ends)
        assert lengths.max() <= 48
        assert lengths.min() >= 0
        restored = batch["input_ids"].long()
        real = batch["masked_labels"] != -100
        restored[batch["masked_positions"][real]] = batch["masked_labels"][real]
        for start, end, label in zip(ends, ends[1:], batch["follows"].tolist(), strict=False):
            ids, types = restored[start:end].tolist(), batch["token_type_ids"][start:end].tolist()
            assert batch["position_ids"][start:end].tolist() == list(range(end - start))
            if label == -100:
                assert set(ids) <= {tokenizer.pad_id}
                continue
            assert ids[0] == tokenizer.cls_id
            assert ids[-1] == tokenizer.sep_id
            assert ids.count(tokenizer.sep_id) == 2
            first = ids.index(tokenizer.sep_id) + 1  # the first [SEP] belongs to the first segment
            assert types == [0] * first + [1] * (end - start - first)
        paddings.append((restored == tokenizer.pad_id).sum().item())
        asked = real.sum().item()
        assert 0.05 < asked / (6 * 48) < 0.25
    assert len(shapes) == 1
    assert np.mean(paddings) < 48  # under one sequence


def test_next_means_next_in_the_text(corpus):
    """Label 0: A and B together stand in one document. Label 1: they do not."""
    data, tokenizer = PairBatches(corpus, 6, 48, seed=4), corpus.tokenizer()
    documents = [" ".join(map(str, np.concatenate(list(d)).tolist())) for d in corpus]
    rng, labels = np.random.default_rng(0), []
    for walk in range(300):
        ids, first, label = data.example(walk, rng)
        a, b = ids[1 : first - 1].tolist(), ids[first:-1].tolist()
        both = " ".join(map(str, a + b))
        if len(ids) < 48:  # where nothing was cut away between the two
            assert any(both in d for d in documents) == (label == 0), tokenizer.decode(ids.tolist())
        labels.append(label)
    assert 0.35 < np.mean(labels) < 0.65


def test_the_walk_visits_the_text_evenly(corpus):
    data = PairBatches(corpus, 6, 48, seed=5)
    n = len(data.has_next)
    starts = [data.start(walk) for walk in range(3 * n)]
    assert all(s < len(corpus[d]) - 1 for d, s in starts)  # never a last sentence
    visits = np.zeros(n, int)
    for d, s in starts:
        visits[corpus.documents[d] + s] += 1
    assert (visits[data.has_next] > 0).mean() > 0.95
    assert visits.max() <= 8
    near = [abs(a[0] - b[0]) for a, b in pairwise(starts)]
    assert np.median(near) > len(corpus) / 5  # neighbours in the walk are not neighbours in the text


def test_same_seed_same_batch(corpus):
    one, two, other = (PairBatches(corpus, 6, 48, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(one[7]["input_ids"], two[7]["input_ids"])
    assert not torch.equal(one[7]["input_ids"], one[8]["input_ids"])
    assert not torch.equal(one[7]["input_ids"], other[7]["input_ids"])


def test_static_masks_come_again_and_dynamic_ones_do_not(corpus):
    recipe = replace(PRESETS["t4"], sequences=2, steps=1000, phases=((1.0, 32),))
    dynamic = PhasedBatches(corpus, recipe, 0, False, pair_at)
    for copies in (1, 3):
        data = PhasedBatches(corpus, recipe, 0, False, pair_at, copies)
        period = copies * round(corpus.index["tokens"] / (2 * 32))
        assert 1 < period < 100
        seen = [data[number] for number in range(2 * period)]
        for number in range(period):
            first, again, anew = seen[number], seen[number + period], dynamic[number + period]
            for name in first.keys() - {"longest"}:  # of which only the shape says something
                assert torch.equal(first[name], again[name])
                assert torch.equal(first[name], dynamic[number][name])
            assert not torch.equal(first["input_ids"], anew["input_ids"])
        assert len({tuple(batch["input_ids"].tolist()) for batch in seen}) == period


@pytest.mark.parametrize("mixed", [False, True])
def test_phases(corpus, mixed):
    recipe = replace(PRESETS["t4"], sequences=8, steps=200, phases=((0.75, 16), (0.25, 64)), mixed=mixed)
    data = PhasedBatches(corpus, recipe, 0, False, pair_at)
    lengths = [data[step]["longest"].shape[0] for step in range(200)]
    assert abs(lengths.count(64) - 50) <= 1
    assert (lengths == sorted(lengths)) != mixed
    assert data[199]["input_ids"].shape == data[0]["input_ids"].shape == (128,)  # as many tokens in both


def test_evaluation_is_a_mean_over_labels(corpus):
    """Not a mean of batch means; and both losses are what cross-entropy says."""
    torch.manual_seed(0)
    model = PreTraining(BertConfig.preset("tiny", vocab_size=len(corpus.tokenizer())))
    data = PairBatches(corpus, 3, 48, seed=6)
    found = evaluate(model, PreTrainingObjective(), iter([data[0], data[1]]))
    model.eval()
    losses = []
    for batch in (data[0], data[1]):
        stream = {n: batch[n] for n in ("input_ids", "token_type_ids", "position_ids", "cu_seqlens")}
        pieces, _ = model.stream(batch["masked_positions"], **stream, max_seqlen=48)
        logp, labels = pieces.log_softmax(-1), batch["masked_labels"]
        losses += [-logp[i, labels[i]].item() for i in range(len(labels)) if labels[i] != -100]
    assert found["mlm_loss"] == pytest.approx(np.mean(losses), rel=1e-5)
    assert found["mlm_loss"] == pytest.approx(np.log(len(corpus.tokenizer())), rel=0.1)  # untrained: ln V
    assert found["nsp_loss"] == pytest.approx(np.log(2), rel=0.1)
    assert found["loss"] == found["mlm_loss"] + found["nsp_loss"]
    assert not model.training


def test_held_out_documents():
    learn, held = split_held_out(list(range(5000)), 50)
    assert sorted(learn + held) == list(range(5000))
    assert 60 < len(held) < 140
    learn, held = split_held_out(["only", "three", "books"], 50)
    assert len(held) >= 1
    assert len(learn) >= 1


def test_a_small_text_has_two_held_out_documents_for_training_and_for_measuring(tmp_path):
    text = tmp_path / "text.txt"
    for many in (4, 20):
        text.write_text("\n\n\n".join("\n\n".join(d) for d in DOCUMENTS[:many]))
        learn, held = split_texts((str(text),))
        assert len(held) == 2
        assert sorted(learn + held) == sorted(DOCUMENTS[:many])
    tokenizer = WordPiece.train((p for d in DOCUMENTS for p in d), 150)
    save_model(PreTraining(BertConfig.preset("tiny", vocab_size=len(tokenizer))), tokenizer, tmp_path / "model")
    evaluate_saved(str(tmp_path / "model"), (str(text),), length=32, sequences=4)
    text.write_text("\n\n\n".join("\n\n".join(d) for d in DOCUMENTS[:3]))
    with pytest.raises(ValueError, match="a fourth is needed"):
        split_texts((str(text),))


def test_read_documents(tmp_path):
    (tmp_path / "a.txt").write_text("One line.\nStill the first.\n\nSecond paragraph.\n")
    (tmp_path / "b.txt").write_text("Other.\n\n\nThird document in a single file.\n")
    assert next(read_documents(str(tmp_path))) == ["One line. Still the first.", "Second paragraph."]
    assert list(read_documents(str(tmp_path / "b.txt"))) == [["Other."], ["Third document in a single file."]]
    with pytest.raises(FileNotFoundError, match=r"give a \.txt file"):
        list(read_documents(str(tmp_path / "nowhere")))


def test_a_file_that_is_not_utf8_is_named(tmp_path):
    """An empty one is none of these: in a folder of thousands there may be some."""
    (tmp_path / "a.txt").write_text("")
    (tmp_path / "b.txt").write_bytes("Fine.\r\n\r\nLe café.".encode("latin-1"))
    for source in (tmp_path, tmp_path / "b.txt"):
        with pytest.raises(ValueError, match=r"b\.txt, line 3: byte 0xe9 is not UTF-8: save the file as UTF-8"):
            list(read_documents(str(source)))
    (tmp_path / "b.txt").write_bytes("Fine.\r\n\r\nLe café.".encode("utf-8-sig"))
    assert list(read_documents(str(tmp_path))) == [[], ["Fine.", "Le café."]]


def test_flops_of_base():
    """6 per parameter and token is the rule of thumb; attention adds 12 L D S."""
    config = BertConfig()
    flops = training_flops(config, tokens=1000, length=512, masked=0, sequences=0)
    assert flops == 6 * 84_934_656 * 1000 + 12 * 12 * 768 * 512 * 1000


def test_the_plan_of_the_paper():
    text = plan(PAPER, torch.device("cpu"), "fp32", paper=True)
    assert "110,106,428" in text  # with both heads; bert-base's encoder has 109,482,240
    assert "109,482,240" in text
    assert "1,000,000" in text
    assert "10,000 steps of warm-up" in text
    with torch.device("meta"):
        assert count_parameters(Bert(PAPER.config())) == 109_482_240


@pytest.fixture
def text(tmp_path) -> str:
    """The documents in one file, in a folder whose name has to be quoted."""
    folder = tmp_path / "my texts"
    folder.mkdir()
    (folder / "text.txt").write_text("\n\n\n".join("\n\n".join(d) for d in DOCUMENTS))
    return str(folder / "text.txt")


@pytest.fixture
def small_laptop(monkeypatch):
    """A preset that trains in seconds."""
    small = replace(PRESETS["laptop"], vocabulary=150, layers=1, width=64, heads=2)
    monkeypatch.setitem(PRESETS, "laptop", small)


def test_a_run_started_otherwise_is_refused_and_leaves_all_as_it_was(tmp_path, text, small_laptop, monkeypatch):
    out, other = tmp_path / "out", tmp_path / "other.txt"
    other.write_text("\n\n\n".join("\n\n".join(d) for d in reversed(DOCUMENTS)))
    arguments = ["pretrain", str(out), "--text", text, "--steps", "3", "--sequences", "2"]
    monkeypatch.setattr("sys.argv", ["bert_minimal/__main__.py", *arguments])
    main(arguments)
    before = {name: (out / name).read_bytes() for name in ("run.json", "command.txt", "log.jsonl", "state.safetensors")}
    changes = ["--text", str(other)], ["--sequences", "4"], ["--task", "sentence-order"], ["--whole-words"]
    for changed in (*changes, ["--seed", "1"], ["--static", "2"], ["--corpus", str(out / "corpus")]):
        monkeypatch.setattr("sys.argv", ["bert_minimal/__main__.py", *arguments, *changed])
        with pytest.raises(SystemExit, match=f"belongs to another run: {changed[0][2:].replace('-', '_')} was"):
            main([*arguments, *changed])
    assert all((out / name).read_bytes() == content for name, content in before.items())
    main(arguments)


def test_command_txt_can_be_run(tmp_path, text, small_laptop, monkeypatch):
    arguments = ["pretrain", str(tmp_path / "out"), "--text", text, "--steps", "1", "--sequences", "2"]
    monkeypatch.setattr("sys.argv", ["bert_minimal/__main__.py", *arguments])
    main(arguments)
    _, *command = shlex.split((tmp_path / "out" / "command.txt").read_text())
    assert command == ["-m", "bert_minimal", *arguments]


def test_a_command_whose_text_is_not_there_leaves_no_mark(tmp_path, text, small_laptop):
    """Put right, it starts."""
    arguments = ["pretrain", str(tmp_path / "out"), "--steps", "1", "--sequences", "2", "--text"]
    with pytest.raises(SystemExit, match="no text at"):
        main([*arguments, "nowhere.txt"])
    assert not (tmp_path / "out").exists()
    main([*arguments, text])


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--sequences", "-4"], "--sequences is -4: give at least 1"),
        (["--sequences", "0"], "--sequences is 0: give at least 1"),
        (["--preset", "t4", "--sequences", "2"], "no room for one of 512, which this recipe needs: give at least 4"),
        (["--seed", "-1"], "--seed is -1: give at least 0"),
        (["--accumulate", "0"], "--accumulate is 0: give at least 1"),
        (["--workers", "-1"], "--workers is -1: give at least 0"),
        (["--steps", "0"], "--steps is 0: give at least 1"),
        (["--scale", "0"], "--scale is 0.0: it has to be above 0"),
        (["--scale", "inf"], "--scale is inf"),
    ],
)
def test_a_wrong_number_gets_one_sentence_and_leaves_no_mark(options, says, tmp_path, text, small_laptop):
    with pytest.raises(SystemExit, match=f"^error: .*{says}"):
        main(["pretrain", str(tmp_path / "out"), "--text", text, *options])
    assert not (tmp_path / "out").exists()


def test_several_processes_need_a_batch_each():
    with pytest.raises(ValueError, match="--accumulate is 1: 2 processes need a multiple of 2"):
        check_numbers(PRESETS["h100"], seed=0, workers=None, processes=2)
    check_numbers(replace(PRESETS["h100"], accumulate=2), seed=0, workers=None, processes=2)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--length", "65"], "--length is 65: the model reads 64 pieces at most"),
        (["--length", "4"], "--length is 4: give at least 5"),
        (["--sequences", "0"], "--sequences is 0: give at least 1"),
        (["--seed", "-1"], "--seed is -1: give at least 0"),
    ],
)
def test_measuring_refuses_a_wrong_number_in_one_sentence(options, says, tiny, text):
    with pytest.raises(SystemExit, match=f"^error: {says}"):
        main(["evaluate", str(tiny), "--text", text, *options])


def test_the_shortest_sequence_is_one_piece_a_segment(corpus):
    batch = PairBatches(corpus, 1, 5, seed=0)[0]
    assert batch["token_type_ids"].tolist() == [0, 0, 0, 1, 1]


def test_the_command_from_text_to_model(tmp_path, text, small_laptop, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["pretrain", "out"])
    out = tmp_path / "out"
    pretrain(out, text=(text,), steps=40, sequences=4, preset="laptop", dry_run=True)
    assert "operations" in capsys.readouterr().out
    assert not out.exists()
    pretrain(out, text=(text,), steps=40, sequences=4)
    model = PreTraining.from_pretrained(out / "model")
    assert len(WordPiece.from_pretrained(out / "model")) == model.config.vocab_size
    log = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    assert log[-1]["step"] == 40
    assert (out / "curves.png").read_bytes()[:4] == b"\x89PNG"
    assert log[-1]["held_out_mlm_loss"] < np.log(model.config.vocab_size)
    assert log[-1]["loss"] < log[0]["loss"]


def test_the_saved_model_is_measured_by_a_command(tmp_path, monkeypatch, capsys):
    """On the held-out part of its texts; a checkpoint without both heads is refused, not scored as noise."""
    text = tmp_path / "text.txt"
    text.write_text("\n\n\n".join("\n\n".join(d) for d in DOCUMENTS * 12))
    tokenizer = WordPiece.train((p for d in DOCUMENTS for p in d), 150)
    model = PreTraining(BertConfig.preset("tiny", vocab_size=len(tokenizer)))
    save_model(model, tokenizer, tmp_path / "whole")
    main(["evaluate", str(tmp_path / "whole"), "--text", str(text), "--length", "32", "--sequences", "4"])
    said = capsys.readouterr().out
    loss = float(re.search(r"mlm_loss ([0-9.]+)", said)[1])
    assert abs(loss - math.log(len(tokenizer))) < 0.5  # untrained: every piece is as likely
    model.bert.save_pretrained(tmp_path / "encoder")
    tokenizer.save_pretrained(tmp_path / "encoder")
    with pytest.raises(ValueError, match="only noise could be measured"):
        evaluate_saved(str(tmp_path / "encoder"), (str(text),), length=32, sequences=4)
