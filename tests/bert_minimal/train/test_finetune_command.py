"""finetune and predict from the command line, on a tiny model: the files they leave, and what they refuse."""

import importlib.util
import json

import numpy as np
import pytest
import torch

from bert_minimal.__main__ import main
from bert_minimal.heads import SequenceClassifier
from bert_minimal.train import finetune_command
from bert_minimal.train.finetune_command import newest_model
from bert_minimal.train.scores import answer_scores, class_scores, entities

from .test_answering import questions
from .test_finetune import DEV, TRAIN
from .test_tagging import sentences

pytest.importorskip("tyro")
pytestmark = pytest.mark.usefixtures("one_thread")
FAST = ["--epochs", "4", "--batch", "8", "--learning-rate", "3e-3", "--max-length", "24"]


def texts_file(path, texts, header=True):
    lines = [f"{text.text}\t{text.label}" for text in texts]
    path.write_text("\n".join((["sentence\tlabel"] if header else []) + lines) + "\n")
    return str(path)


def conll_file(path, some):
    path.write_text("\n".join("".join(f"{w}\t{t}\n" for w, t in zip(*s, strict=True)) for s in some))
    return str(path)


def squad_file(path, some):
    paragraphs = [
        {"context": q.context, "qas": [{"id": q.id, "question": q.question, "is_impossible": not q.answers,
                                        "answers": [{"text": t, "answer_start": a} for t, a in q.answers]}]}
        for q in some
    ]  # fmt: skip
    path.write_text(json.dumps({"data": [{"title": "t", "paragraphs": paragraphs}]}))
    return str(path)


def table(path) -> list[list[str]]:
    return [line.split("\t") for line in path.read_text().splitlines()]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    texts_file(folder / "train.tsv", TRAIN)
    texts_file(folder / "dev.tsv", DEV)
    (folder / "test.tsv").write_text("index\tsentence\n" + "".join(f"{n}\t{t.text}\n" for n, t in enumerate(DEV)))
    return folder


@pytest.fixture(scope="module")
def finished(tiny, files, one_thread):
    out = files / "run"
    train, dev, test = (str(files / f"{name}.tsv") for name in ("train", "dev", "test"))
    main(["finetune", str(out), "--train", train, "--dev", dev, "--test", test, "--model", str(tiny),
          "--seeds", "0", "1", *FAST])  # fmt: skip
    return out


def test_texts_from_files_to_answers(finished):
    metrics = json.loads((finished / "metrics.json").read_text())
    rows = np.array(table(finished / "test_results.tsv"), float)
    assert rows.shape == (40, 2)
    assert np.allclose(rows.sum(1), 1, atol=1e-5)
    gold = [["bad", "good"].index(text.label) for text in DEV]
    scores = class_scores(gold, rows.argmax(1), 2)
    kept = metrics["dev"][str(metrics["kept"]["seed"])]
    assert {name: kept[name] for name in scores} == pytest.approx(scores)
    accuracies = [metrics["dev"][seed]["accuracy"] for seed in ("0", "1")]
    assert kept["accuracy"] == max(accuracies)
    assert metrics["over seeds"]["accuracy"] == pytest.approx([np.mean(accuracies), np.std(accuracies, ddof=1)])
    errors = table(finished / "dev_errors.tsv")
    assert len(errors) - 1 == sum(gold != rows.argmax(1))
    assert (finished / "dev_confusion.png").read_bytes()[:4] == b"\x89PNG"
    assert (np.array(table(finished / "dev_results.tsv")) == np.array(table(finished / "test_results.tsv"))).all()
    assert not list(finished.rglob("state.safetensors"))
    assert SequenceClassifier.from_pretrained(finished / "model").config.labels == ("bad", "good")


def test_predict_finds_the_model_and_gives_the_same_answers(finished, files, tmp_path, capsys):
    main(["predict", str(finished), str(files / "test.tsv"), "--out", str(tmp_path / "answers")])
    assert f"model: {finished / 'model'}" in capsys.readouterr().out
    np.testing.assert_allclose(
        np.array(table(tmp_path / "answers" / "test_results.tsv"), float),
        np.array(table(finished / "test_results.tsv"), float),
        atol=1e-6,
    )
    main(["predict", str(finished / "model"), str(files / "dev.tsv"), "--out", str(tmp_path)])
    printed = capsys.readouterr().out
    kept = json.loads((finished / "metrics.json").read_text())
    assert f"accuracy {kept['dev'][str(kept['kept']['seed'])]['accuracy']:.4f}" in printed


def test_the_numbering_of_labels_is_said(tiny, files, tmp_path, capsys):
    stars = [text._replace(label={"bad": "1", "good": "2"}[text.label]) for text in TRAIN]
    train = texts_file(tmp_path / "train.tsv", stars, header=False)
    main(["finetune", str(tmp_path / "run"), "--train", train, "--model", str(tiny), *FAST])
    printed = capsys.readouterr().out
    assert "labels: '1' is class 0 (" in printed
    assert "'2' is class 1 (" in printed
    assert "no header; the columns are taken as text, label" in printed


def test_test_files_without_a_header_are_read_as_training_was(tiny, tmp_path, capsys):
    for name, some in (("train", TRAIN), ("test", DEV)):
        (tmp_path / f"{name}.tsv").write_text("".join(f"{text.label}\t{text.text}\n" for text in some))
    train, test, out = (str(tmp_path / name) for name in ("train.tsv", "test.tsv", "run"))
    main(["finetune", out, "--train", train, "--test", test, "--model", str(tiny), *FAST])
    scores = json.loads((tmp_path / "run" / "metrics.json").read_text())["test"]
    assert scores["accuracy"] > 0.8
    capsys.readouterr()
    main(["predict", out, test, "--out", str(tmp_path)])
    assert f"accuracy {scores['accuracy']:.4f}" in capsys.readouterr().out


def test_tags_from_files_to_answers(tiny, tmp_path, capsys):
    dev = sentences(30, 1)
    train, dev_file = conll_file(tmp_path / "train.conll", sentences(80, 0)), conll_file(tmp_path / "dev.conll", dev)
    out = tmp_path / "run"
    main(["finetune", str(out), "--train", train, "--dev", dev_file, "--model", str(tiny), "--pieces", "all",
          *FAST, "--epochs", "10"])  # fmt: skip
    blocks = (out / "dev_tags.conll").read_text().strip().split("\n\n")
    predicted = [[line.split("\t")[1] for line in block.split("\n")] for block in blocks]
    assert [len(tags) for tags in predicted] == [len(sentence.words) for sentence in dev]
    rows = table(out / "dev_entities.tsv")[1:]
    assert [(int(r[0]), r[3], int(r[1]), int(r[2])) for r in rows] == [
        (n, *span) for n, tags in enumerate(predicted) for span in entities(tags)
    ]
    assert all(r[5] == " ".join(dev[int(r[0])].words[int(r[1]) : int(r[2])]) for r in rows)
    f1 = json.loads((out / "metrics.json").read_text())["dev"]["0"]["f1"]
    assert f1 > 0.7
    assert "PER" in (out / "dev_report.txt").read_text()
    errors = table(out / "dev_errors.tsv")[1:]
    gold = {(n, *span) for n, s in enumerate(dev) for span in entities(s.tags)}
    said = {(n, *span) for n, tags in enumerate(predicted) for span in entities(tags)}
    assert len(errors) == len(gold ^ said)
    (tmp_path / "new.conll").write_text("\n".join(dev[0].words) + "\n")
    main(["predict", str(out), str(tmp_path / "new.conll"), "--out", str(tmp_path)])
    found = [line.split("\t")[1] for line in (tmp_path / "new_tags.conll").read_text().strip().split("\n")]
    assert found == predicted[0]


def test_questions_from_files_to_answers(tiny, tmp_path):
    dev = questions(20, 1, empty=True)
    train, dev_file = (
        squad_file(tmp_path / "train.json", questions(90, 0, empty=True)),
        squad_file(tmp_path / "dev.json", dev),
    )
    out = tmp_path / "run"
    main(["finetune", str(out), "--train", train, "--dev", dev_file, "--model", str(tiny), *FAST])
    answers = json.loads((out / "dev_answers.json").read_text())
    scores = answer_scores([[t for t, _ in q.answers] for q in dev], [answers[q.id] for q in dev])
    metrics = json.loads((out / "metrics.json").read_text())["dev"]["0"]
    assert {name: metrics[name] for name in scores} == pytest.approx(scores)
    rows = table(out / "dev_answers.tsv")[1:]
    assert [r[0] for r in rows] == [q.id for q in dev]
    assert all(0 <= float(r[1]) <= 1 for r in rows)
    for q, row in zip(dev, rows, strict=True):
        assert q.context[int(row[2]) : int(row[3])] == answers[q.id]
    assert len(table(out / "dev_errors.tsv")) - 1 == round((1 - scores["exact"]) * len(dev))
    main(["predict", str(out), dev_file, "--out", str(tmp_path)])
    assert json.loads((tmp_path / "dev_answers.json").read_text()) == answers


def test_a_broken_run_goes_on_and_another_is_refused(tiny, files, tmp_path, monkeypatch, capsys):
    out = tmp_path / "run"
    arguments = ["finetune", str(out), "--train", str(files / "train.tsv"), "--dev", str(files / "dev.tsv")]
    arguments += ["--model", str(tiny), *FAST]
    monkeypatch.setattr(finetune_command, "save_result", lambda *a: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(SystemExit, match="goes on from its last state"):
        main(arguments)
    monkeypatch.undo()
    assert (out / "seed-0" / "state.safetensors").exists()
    with pytest.raises(SystemExit, match=r"belongs to another run: epochs was 4\.0, now 5\.0\. Name"):
        main([*arguments, "--epochs", "5"])
    assert not (out / "metrics.json").exists()
    main(arguments)
    rows = [json.loads(line) for line in (out / "seed-0" / "log.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows] == sorted({row["step"] for row in rows})
    with pytest.raises(SystemExit, match="holds a finished run"):
        main(arguments)


def test_what_was_only_checked_locks_no_folder(tiny, files, tmp_path):
    out = tmp_path / "run"
    arguments = ["finetune", str(out), "--train", str(files / "train.tsv"), *FAST, "--epochs", "1"]
    with pytest.raises(SystemExit):
        main([*arguments, "--model", str(tmp_path / "tpyo")])
    main([*arguments, "--model", str(tiny)])
    assert (out / "metrics.json").exists()


def test_a_run_does_not_go_on_with_other_data(tiny, tmp_path, monkeypatch):
    out, train = tmp_path / "run", texts_file(tmp_path / "train.tsv", TRAIN)
    arguments = ["finetune", str(out), "--train", train, "--model", str(tiny), *FAST, "--epochs", "1"]
    monkeypatch.setattr(finetune_command, "save_result", lambda *a: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(SystemExit, match="goes on from its last state"):
        main(arguments)
    texts_file(tmp_path / "train.tsv", TRAIN[1:])
    with pytest.raises(SystemExit, match=r"belongs to another run: train's sha256 was [0-9a-f]*, now [0-9a-f]*. Name"):
        main(arguments)


@pytest.fixture
def without(monkeypatch):
    """A machine without the library of this name."""
    find = importlib.util.find_spec
    return lambda name: monkeypatch.setattr(importlib.util, "find_spec", lambda n: None if n == name else find(n))


def test_without_matplotlib_a_run_ends_without_a_picture(tiny, files, tmp_path, without, capsys):
    without("matplotlib")
    out, (train, dev) = tmp_path / "run", (str(files / f"{name}.tsv") for name in ("train", "dev"))
    main(["finetune", str(out), "--train", train, "--dev", dev, "--model", str(tiny), *FAST, "--epochs", "1"])
    assert "no dev_confusion.png: matplotlib is not installed" in capsys.readouterr().out
    assert (out / "metrics.json").exists()


def test_without_seqeval_tagging_does_not_begin(tiny, tmp_path, without):
    without("seqeval")
    train = conll_file(tmp_path / "train.conll", sentences(8, 0))
    with pytest.raises(SystemExit, match="pip install seqeval"):
        main(["finetune", str(tmp_path / "run"), "--train", train, "--model", str(tiny), *FAST])
    assert not (tmp_path / "run").exists()


def test_a_file_in_which_nobody_has_a_name_is_scored(tiny, tmp_path, monkeypatch):
    train, dev = conll_file(tmp_path / "train.conll", sentences(8, 0)), tmp_path / "dev.conll"
    dev.write_text("the O\nlamp O\n")
    nothing = lambda result, some: [(["O"] * len(words), [1.0] * len(words)) for words in some]  # noqa: E731
    monkeypatch.setattr(finetune_command, "predict_tags", nothing)
    out = tmp_path / "run"
    main(["finetune", str(out), "--train", train, "--dev", str(dev), "--model", str(tiny), *FAST])
    assert "no entity in truth or answers" in (out / "dev_report.txt").read_text()
    assert (out / "metrics.json").exists()


def test_the_newest_model_is_found(finished, tmp_path):
    import os
    import shutil

    for number, name in enumerate(("b", "c", "a")):
        shutil.copytree(finished / "model", tmp_path / name / "model")
        os.utime(tmp_path / name / "model" / "task.json", (number, number))
    assert newest_model(tmp_path) == tmp_path / "a" / "model"
    assert newest_model(tmp_path / "c" / "model") == tmp_path / "c" / "model"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["finetune", "run", "--train", "a.txt"], "say --task classify, tag or answer"),
        (["finetune", "run", "--train", "nowhere.tsv"], "nowhere.tsv"),
        (["finetune", "run", "--train", "train.tsv", "--dev", "odd.tsv"], "odd.tsv, line 2: the label 'ugly'"),
        (["finetune", "run", "--train", "half.tsv"], "half.tsv, line 3: 1 columns"),
        (["finetune", "run", "--train", "train.tsv", "--seeds", "0", "0"], "--seeds 0 0 names one twice"),
        (["finetune", "run", "--train", "train.tsv", "--pieces", "all"], "--pieces all is for words to tag"),
        (["finetune", "run", "--train", "train.json", "--columns", "text"], "--columns is for texts to classify"),
        (["predict", ".", "train.tsv"], "no fine-tuned model in"),
        (["predict", "nowhere", "train.tsv"], "no such folder"),
    ],
)
def test_wrong_input_gets_one_sentence(files, arguments, says, tmp_path, monkeypatch):
    texts_file(tmp_path / "train.tsv", TRAIN)
    (tmp_path / "odd.tsv").write_text("text\tlabel\na\tugly\n")
    (tmp_path / "half.tsv").write_text("text\tlabel\na\tb\nc\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert str(stopped.value).startswith("error: ")
    assert says in str(stopped.value)
    assert not (tmp_path / "run" / "model").exists()


def test_short_memory_from_the_command_line(tiny, files, tmp_path, monkeypatch):
    monkeypatch.setattr("bert_minimal.train.finetune.ClassObjective.losses", lambda *a: torch.empty(2**55))
    with pytest.raises(SystemExit, match="Three things to change"):
        main(["finetune", str(tmp_path / "run"), "--train", str(files / "train.tsv"), "--model", str(tiny), *FAST])
