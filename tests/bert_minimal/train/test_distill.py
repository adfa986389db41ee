"""Distillation: where a student begins, the three losses against their definition, and the command."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
import transformers

from bert_minimal import Bert, BertConfig, WordPiece
from bert_minimal.__main__ import main
from bert_minimal.heads import NO_LABEL, MaskedLM, PreTraining, SequenceClassifier
from bert_minimal.train import distill as module
from bert_minimal.train.corpus import Corpus, PairBatches, loader
from bert_minimal.train.distill import Distillation, distill, make_student
from bert_minimal.train.finetune import stream_of
from bert_minimal.train.loop import TrainOptions, evaluate, train
from bert_minimal.train.pretrain import PreTrainingObjective, prepare_texts
from bert_minimal.variants import AlbertConfig

from ..parity import make_loud
from .conftest import WORDS

pytest.importorskip("tyro")
pytestmark = pytest.mark.usefixtures("one_thread")
CONFIG = BertConfig(vocab_size=50, hidden_size=24, num_hidden_layers=4, num_attention_heads=3, intermediate_size=40,
                    max_position_embeddings=32, hidden_dropout_prob=0.0)  # fmt: skip
FAST = ["--steps", "30", "--sequences", "4", "--length", "24", "--learning-rate", "2e-3"]


@pytest.fixture
def teacher():
    return make_loud(MaskedLM(replace(CONFIG, attention_probs_dropout_prob=0.0)).double()).eval()


@pytest.fixture(scope="module")
def text(tmp_path_factory) -> str:
    """Documents in which a word follows from the one before, so that there is something to learn."""
    rng, words = np.random.default_rng(0), WORDS[:-8]
    documents = []
    for _ in range(40):
        at, sentences = int(rng.integers(len(words))), []
        for _ in range(6):
            sentences.append(" ".join(words[(at + k) % len(words)] for k in range(7)).capitalize() + ".")
            at += int(rng.integers(2, 5))
        documents.append(" ".join(sentences))
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text("\n\n\n".join(documents))
    return str(path)


@pytest.fixture(scope="module")
def taught(tiny, text, tmp_path_factory, one_thread):
    """`tiny`, trained on the text: a teacher that knows something."""
    folder, tokenizer = tmp_path_factory.mktemp("taught"), WordPiece.from_pretrained(tiny)
    prepare_texts((text,), folder / "corpus", tokenizer)
    model, batches = PreTraining.from_pretrained(tiny), PairBatches(Corpus(folder / "corpus" / "learn"), 4, 24, seed=1)
    options = TrainOptions(steps=200, learning_rate=4e-3, warmup=20, save_every=0, log_every=100)
    train(model, PreTrainingObjective(), lambda numbers: loader(batches, numbers, 0), options)
    model.save_pretrained(folder / "model")
    tokenizer.save_pretrained(folder / "model")
    return folder / "model"


@pytest.fixture(scope="module")
def finished(taught, text, tmp_path_factory, one_thread):
    out = tmp_path_factory.mktemp("student") / "run"
    main(["distill", str(out), "--teacher", str(taught), "--text", text, *FAST])
    return out


# ---- where it begins


def test_a_student_with_all_layers_is_its_teacher(teacher):
    student = make_student(teacher, 4).double().eval()
    ids, mask = torch.randint(1, 50, (3, 9)), (torch.arange(9) < torch.tensor([[9], [4], [6]])).long()
    ours, theirs = (model(input_ids=ids, attention_mask=mask).logits for model in (student, teacher))
    torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("layers", "taken"), [(2, (0, 2)), (1, (0,)), (4, (0, 1, 2, 3))])
def test_it_begins_with_every_kth_layer(teacher, layers, taken):
    student = make_student(teacher, layers)
    assert len(student.bert.layers) == layers
    for number, at in enumerate(taken):
        ours, theirs = student.bert.layers[number].state_dict(), teacher.bert.layers[at].state_dict()
        assert all(torch.equal(ours[name], theirs[name]) for name in theirs)
    assert torch.equal(student.mlm.dense_weight, teacher.mlm.dense_weight)


def test_a_fresh_student_has_nothing_of_its_teacher(teacher):
    student = make_student(teacher, 2, fresh=True)
    assert not torch.equal(student.bert.embeddings.word, teacher.bert.embeddings.word)
    assert 0 < student.bert.embeddings.word.std() < 0.03
    changed = [p for p in make_student(teacher, 2).parameters()]
    assert {p.shape for p in changed} == {p.shape for p in student.parameters()}


def test_what_cannot_be_distilled_is_refused(teacher):
    with pytest.raises(ValueError, match="choose a divisor"):
        make_student(teacher, 3)
    sizes = dict(hidden_size=24, num_attention_heads=3, num_hidden_layers=2, intermediate_size=40)
    with pytest.raises(ValueError, match="the teacher is a albert"):
        make_student(MaskedLM(AlbertConfig(vocab_size=50, embedding_size=8, **sizes)), 1)


# ---- what it learns from


def test_losses_are_what_the_papers_say(teacher, finished):
    """Against a slow text of the definitions, one hidden piece and one token after the other."""
    corpus = Corpus(finished / "corpus" / "learn")
    config = replace(teacher.config, vocab_size=len(corpus.tokenizer()))
    teacher = make_loud(MaskedLM(config).double()).eval()
    student = make_loud(make_student(teacher, 2).double(), seed=1).eval()
    batch = PairBatches(corpus, 3, 24, seed=0)[0]
    objective = Distillation(teacher, (5.0, 2.0, 1.0))
    sums, right = objective.losses(student, batch)
    counts = objective.count(batch).tolist()

    with torch.no_grad():
        stream = stream_of(batch)
        vectors = [model.bert.stream(**stream) for model in (student, teacher)]
        scores = [m.mlm(v, m.bert.embeddings.word) for m, v in zip((student, teacher), vectors, strict=True)]
    soft = true = direction = agreed = found = cosines = 0.0
    pairs = zip(batch["masked_positions"].tolist(), batch["masked_labels"].tolist(), strict=True)
    asked = [(place, label) for place, label in pairs if label != NO_LABEL]
    for place, label in asked:
        ours, theirs = (s[place].numpy() for s in scores)
        p, q = (np.exp(x / 2) / np.exp(x / 2).sum() for x in (theirs, ours))
        soft += 4 * (p * (np.log(p) - np.log(q))).sum()
        true -= np.log(np.exp(ours[label]) / np.exp(ours).sum())
        agreed += ours.argmax() == theirs.argmax()
        found += ours.argmax() == label
    real = (batch["input_ids"] != 0).nonzero().squeeze(1).tolist()
    for place in real:
        a, b = (v[place].numpy() for v in vectors)
        cosines += (a @ b) / np.sqrt((a @ a) * (b @ b))
        direction += 1 - (a @ b) / np.sqrt((a @ a) * (b @ b))
    assert counts == [len(asked), len(asked), len(real)]
    assert 0 < len(real) < 3 * 24 + 1
    np.testing.assert_allclose(sums.detach(), [5 * soft, 2 * true, direction], rtol=1e-5)
    np.testing.assert_allclose(right, [agreed, found, cosines], rtol=1e-5)

    sums.sum().backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in student.mlm.parameters())
    assert all(p.grad is None for p in teacher.parameters())


def test_nothing_to_learn_where_both_say_the_same(teacher, finished):
    corpus = Corpus(finished / "corpus" / "learn")
    teacher = make_loud(MaskedLM(replace(teacher.config, vocab_size=len(corpus.tokenizer())))).eval()
    with torch.no_grad():
        teacher.bert.embeddings.segment[1] = teacher.bert.embeddings.segment[0]
    batch = PairBatches(corpus, 3, 24, seed=0)[0]
    found = evaluate(make_student(teacher, 4), Distillation(teacher), iter([batch]))
    assert abs(found["soft_loss"]) < 1e-4
    assert abs(found["direction_loss"]) < 1e-5
    assert found["soft_accuracy"] == 1.0
    assert found["mlm_loss"] > 0.1


# ---- the command


def test_the_student_is_smaller_and_learns(finished, taught):
    figures = json.loads((finished / "metrics.json").read_text())
    teacher, student = MaskedLM.from_pretrained(taught), MaskedLM.from_pretrained(finished / "model")
    assert student.config.num_hidden_layers == 1
    assert figures["parameters"] == {
        "teacher": sum(p.numel() for p in teacher.parameters()),
        "student": sum(p.numel() for p in student.parameters()),
    }
    layer = sum(p.numel() for p in teacher.bert.layers[1].parameters())
    assert figures["parameters"]["teacher"] - figures["parameters"]["student"] == layer + 2 * 32  # and segments
    assert figures["tokens"] == 30 * 4 * 24
    log = [json.loads(line) for line in (finished / "log.jsonl").read_text().splitlines()]
    assert log[-1]["step"] == 30
    for name in ("soft_loss", "mlm_loss", "direction_loss"):
        assert np.mean([row[name] for row in log[-5:]]) < 0.97 * np.mean([row[name] for row in log[:3]]), name
    assert figures["held out"]["student"]["mlm_loss"] == pytest.approx(log[-1]["held_out_mlm_loss"])


def test_transformers_and_finetune_open_it(finished):
    ours = MaskedLM.from_pretrained(finished / "model")
    theirs, info = transformers.DistilBertForMaskedLM.from_pretrained(finished / "model", output_loading_info=True)
    assert not any(info[kind] for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    ids = torch.tensor([[2, 9, 14, 7, 3]])
    with torch.no_grad():
        torch.testing.assert_close(
            ours(input_ids=ids).logits, theirs.eval()(input_ids=ids).logits, rtol=1e-4, atol=1e-5
        )
    assert SequenceClassifier.from_pretrained(finished / "model", labels=("no", "yes")).bert.layers


def test_a_broken_run_ends_as_an_unbroken_one_and_another_is_refused(finished, taught, text, tmp_path, monkeypatch):
    arguments = ["distill", str(tmp_path / "run"), "--teacher", str(taught), "--text", text, *FAST]

    def breaks_off(model, objective, batches, options, out, measure, figures):
        train(model, objective, batches, options, out, measure, figures, stop_at=13)
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "train", breaks_off)
    with pytest.raises(SystemExit, match="goes on from its last state"):
        main(arguments)
    monkeypatch.undo()
    assert not (tmp_path / "run" / "model").exists()
    with pytest.raises(SystemExit, match="belongs to another run: weights was"):
        main([*arguments, "--weights", "0", "1", "0"])
    with pytest.raises(SystemExit, match="belongs to another run: corpus was"):
        main([*arguments, "--corpus", str(finished / "corpus")])
    with pytest.raises(SystemExit, match="belongs to another run: steps was 30, now 40"):
        main([*arguments, "--steps", "40"])
    main(arguments)
    a, b = (Bert.from_pretrained(folder / "model").state_dict() for folder in (finished, tmp_path / "run"))
    assert all(torch.equal(a[name], b[name]) for name in a)
    with pytest.raises(SystemExit, match="holds a finished student"):
        main(arguments)


def test_the_model_appears_last(taught, text, tmp_path, monkeypatch):
    """Broken off while the files are written: started again, the run ends well."""
    arguments = ["distill", str(tmp_path / "run"), "--teacher", str(taught), "--text", text, *FAST]
    monkeypatch.setattr(MaskedLM, "save_pretrained", lambda *a: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(SystemExit, match="goes on from its last state"):
        main(arguments)
    monkeypatch.undo()
    assert not (tmp_path / "run" / "model" / "config.json").exists()
    main(arguments)
    assert (tmp_path / "run" / "model" / "model.safetensors").exists()
    assert not (tmp_path / "run" / "state.safetensors").exists()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--layers", "3"], "choose a divisor"),
        (["--length", "65"], "reads 64 pieces at most"),
        (["--layers", "0"], "choose a divisor"),
        (["--length", "4"], "--length is 4: give at least 5"),
        (["--sequences", "0"], "--sequences is 0: give at least 1"),
        (["--steps", "0"], "--steps is 0: give at least 1"),
        (["--seed", "-1"], "--seed is -1: give at least 0"),
        (["--workers", "-1"], "--workers is -1: give at least 0"),
        (["--learning-rate", "-1"], "--learning-rate is -1.0: it has to be above 0"),
        (["--documents", "1"], "--documents is 1: give at least 4"),
        (["--documents", "-1"], "--documents is -1: give at least 4"),
        (["--text", "nowhere.txt"], "nowhere.txt"),
    ],
)
def test_wrong_input_gets_one_sentence_and_leaves_no_mark(options, says, taught, text, tmp_path):
    with pytest.raises(SystemExit) as stopped:
        main(["distill", str(tmp_path / "run"), "--teacher", str(taught), "--text", text, *options])
    assert str(stopped.value).startswith("error: ")
    assert says in str(stopped.value)
    assert not (tmp_path / "run").exists()


def test_a_corpus_in_other_pieces_and_a_teacher_without_answers_are_refused(finished, taught, tmp_path):
    import shutil

    other = shutil.copytree(taught, tmp_path / "other")
    pieces = (taught / "vocab.txt").read_text().splitlines()
    (other / "vocab.txt").write_text("\n".join([*pieces[:-2], pieces[-1], pieces[-2]]) + "\n")
    with pytest.raises(ValueError, match="was prepared in other pieces"):
        distill(tmp_path / "run", teacher=str(other), corpus=finished / "corpus")
    Bert(BertConfig.from_hf(json.loads((taught / "config.json").read_text()))).save_pretrained(other)
    with pytest.raises(ValueError, match="saved without a masked-LM head"):
        distill(tmp_path / "run", teacher=str(other), corpus=finished / "corpus")
