"""The loop on tiny models: schedule, groups, clipping, accumulation, processes, resume, illness."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from bert_minimal import BertConfig
from bert_minimal.heads import PreTraining
from bert_minimal.train import loop
from bert_minimal.train.corpus import Corpus, PairBatches, loader, prepare
from bert_minimal.train.loop import (
    FlatAdamW,
    FlatParameters,
    TrainingStopped,
    TrainOptions,
    decay_groups,
    learning_rate,
    train,
)
from bert_minimal.train.pretrain import PreTrainingObjective
from bert_minimal.wordpiece import WordPiece

# Trains in a process of its own: python -c RUN corpus out steps accumulate save_every dropout
RUN = """
import sys, torch
from pathlib import Path
torch.set_num_threads(1)
from bert_minimal import BertConfig
from bert_minimal.heads import PreTraining
from bert_minimal.train.corpus import Corpus, PairBatches, loader
from bert_minimal.train.loop import TrainOptions, start_processes, train
from bert_minimal.train.pretrain import PreTrainingObjective
start_processes()
corpus, out, steps, accumulate, save_every, dropout = sys.argv[1:]
corpus = Corpus(corpus)
torch.manual_seed(0)
config = BertConfig.preset("tiny", vocab_size=len(corpus.tokenizer()), num_hidden_layers=1, hidden_size=32,
    intermediate_size=64, num_attention_heads=2, max_position_embeddings=32,
    hidden_dropout_prob=float(dropout), attention_probs_dropout_prob=float(dropout))
batches = PairBatches(corpus, 4, 32, seed=0)
options = TrainOptions(steps=int(steps), learning_rate=1e-3, warmup=2, accumulate=int(accumulate), log_every=3,
    save_every=int(save_every))
train(PreTraining(config), PreTrainingObjective(), lambda n: loader(batches, n, 0), options, Path(out))
"""


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    documents = [
        [
            f"The clerk of room {n} counted {n * k} boats. Then she closed the {k} books! Who read them?"
            for k in range(4)
        ]
        for n in range(20)
    ]
    prepare(documents, WordPiece.train((p for d in documents for p in d), 150), folder)
    return folder


def run(corpus, out, steps, accumulate=1, save_every=5, dropout=0.1, processes=1, wait=True):
    arguments = [str(a) for a in (corpus, out, steps, accumulate, save_every, dropout)]
    command = [sys.executable, "-c", RUN, *arguments]
    if processes > 1:
        script = Path(out).with_suffix(".py")
        script.write_text(RUN)
        torchrun = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
        command = [sys.executable, *torchrun, str(script), *arguments]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(__file__).parents[3])}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if wait:
        errors = process.communicate()[1]
        assert process.returncode == 0, errors[-3000:]
    return process


def rows(out: Path, *without: str) -> list[dict]:
    found = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    return [{k: v for k, v in row.items() if k not in without} for row in found]


def tensors(out: Path) -> dict[str, torch.Tensor]:
    from safetensors.torch import load_file

    return load_file(out / "state.safetensors")


def test_two_processes_learn_what_one_does(corpus, tmp_path):
    """Four batches a step: dealt to two processes, or accumulated by one. Masked counts differ by batch."""
    run(corpus, tmp_path / "one", 4, accumulate=4, dropout=0.0)
    run(corpus, tmp_path / "two", 4, accumulate=4, dropout=0.0, processes=2)
    one, two = tensors(tmp_path / "one"), tensors(tmp_path / "two")
    for name in ("exp_avg.0", "exp_avg.1"):  # Adam's mean gradient: not normalised, so it shows any scale
        assert torch.linalg.vector_norm(one[name]) > 1e-3
        torch.testing.assert_close(two[name], one[name], rtol=1e-4, atol=1e-6)
    for a, b in zip(rows(tmp_path / "one"), rows(tmp_path / "two"), strict=True):
        assert b["loss"] == pytest.approx(a["loss"], rel=1e-5)
        assert b["mlm_accuracy"] == a["mlm_accuracy"]
        assert b["gradient_norm"] == pytest.approx(a["gradient_norm"], rel=1e-4)


@pytest.mark.long
def test_killed_at_any_moment_ends_as_if_unbroken(corpus, tmp_path):
    """SIGKILL after ever longer times, whatever it is doing then; started again until it gets through."""
    run(corpus, tmp_path / "whole", 48, save_every=8)
    kills, patience = 0, 0.05
    state = tmp_path / "broken" / "state.safetensors"
    while True:
        process = run(corpus, tmp_path / "broken", 48, save_every=8, wait=False)
        before, end = state.stat().st_mtime_ns if state.exists() else None, time.time() + 60
        # From the moment its next state appears (so that it gets on), a little longer each time.
        while process.poll() is None and time.time() < end:
            if state.exists() and state.stat().st_mtime_ns != before:
                break
            time.sleep(0.002)
        time.sleep(patience)
        patience += 0.013
        if process.poll() is not None:
            break
        process.send_signal(signal.SIGKILL)
        process.wait()
        kills += 1
    assert process.returncode == 0, process.stderr.read()
    assert kills >= 2
    whole, broken = tensors(tmp_path / "whole"), tensors(tmp_path / "broken")
    assert whole.keys() == broken.keys()
    for name in whole:
        assert torch.equal(whole[name], broken[name]), name
    timing = ("tokens_per_second", "mfu")
    assert [r for r in rows(tmp_path / "whole", *timing)] == [r for r in rows(tmp_path / "broken", *timing)]


def test_a_write_that_breaks_off_leaves_the_old_state(tmp_path, monkeypatch):
    path = tmp_path / "state"
    loop.write_whole(path, b"old")

    def die(number):
        raise OSError("the disk is full")

    monkeypatch.setattr("bert_minimal.train.corpus.os.fsync", die)
    with pytest.raises(OSError, match="full"):
        loop.write_whole(path, b"new, half written")
    assert path.read_bytes() == b"old"


def test_schedule():
    options = TrainOptions(steps=100, learning_rate=1.0, warmup=10)
    rates = [learning_rate(step, options) for step in range(100)]
    assert rates[0] == pytest.approx(0.1)  # not 0: the first step teaches something
    assert rates[9] == rates[10] == 1.0
    assert rates[55] == pytest.approx(0.5)
    assert 0 < rates[99] == pytest.approx(1 / 90)
    assert max(rates) == 1.0


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (dict(steps=0), "--steps is 0: give at least 1"),
        (dict(steps=9, accumulate=0), "--accumulate is 0"),
        (dict(steps=9, log_every=0), "--log-every is 0"),
        (dict(steps=9, warmup=-1), "--warmup is -1: give at least 0"),
        (dict(steps=9, learning_rate=-1), "--learning-rate is -1: it has to be above 0"),
        (dict(steps=9, clip=0.0), "--clip is 0.0"),
        (dict(steps=9, precision="x"), "--precision is 'x': give fp32, bf16 or fp16"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, says):
    with pytest.raises(ValueError, match=says):
        TrainOptions(**options)


def tiny(vocabulary: int, **changes) -> PreTraining:
    torch.manual_seed(0)
    sizes = dict(hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64)
    sizes |= dict(max_position_embeddings=32, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    return PreTraining(BertConfig(vocab_size=vocabulary, **{**sizes, **changes}))


def test_biases_and_layer_norms_do_not_decay():
    model = tiny(50)
    names = {p: name for name, p in model.named_parameters()}
    decayed, plain = ([names[p] for p in group] for group in decay_groups(model))
    assert sorted(decayed + plain) == sorted(names.values())
    assert all("bias" in name or "norm" in name for name in plain)
    assert not any("bias" in name or "norm" in name for name in decayed)


def reference(model, objective, batches, options):
    """The same by torch's own means: separate tensors, clip_grad_norm_, plain AdamW."""
    decayed, plain = decay_groups(model)
    groups = [dict(params=decayed, weight_decay=options.weight_decay), dict(params=plain, weight_decay=0.0)]
    optimizer = torch.optim.AdamW(groups, lr=0.0, betas=(0.9, 0.999), eps=1e-6)
    for step in range(options.steps):
        chosen = batches[step * options.accumulate : (step + 1) * options.accumulate]
        counts = sum(objective.count(b) for b in chosen)
        total = sum((objective.losses(model, b)[0] / counts).sum() for b in chosen)
        optimizer.zero_grad()
        total.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), options.clip)
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, options)
        optimizer.step()


@pytest.mark.parametrize("accumulate", [1, 2])
@pytest.mark.parametrize(("precision", "tolerance"), [("fp32", 1e-5), ("fp16", 0.02), ("bf16", 0.05)])
def test_a_step_is_the_textbook_step(corpus, precision, tolerance, accumulate):
    corpus = Corpus(corpus)
    data = PairBatches(corpus, 3, 32, seed=1)
    options = TrainOptions(steps=6, learning_rate=1e-3, warmup=2, accumulate=accumulate, clip=0.5, precision=precision)
    ours, theirs = tiny(len(corpus.tokenizer())), tiny(len(corpus.tokenizer()))
    start = [p.detach().clone() for p in ours.parameters()]
    train(ours, PreTrainingObjective(), lambda n: loader(data, n, 0), options)
    reference(theirs, PreTrainingObjective(), [data[n] for n in range(6 * accumulate)], options)
    moved = expected = 0.0
    for a, b, before in zip(ours.parameters(), theirs.parameters(), start, strict=True):
        assert a.dtype == torch.float32
        moved += (a - b).square().sum().item()
        expected += (b - before).square().sum().item()
    assert expected > 0
    # half precision: the gradients are rounded, so the paths part a little; relative to the way gone
    assert (moved / expected) ** 0.5 < tolerance


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_the_compiled_update_is_the_library_s(precision):
    """Clipping, AdamW and rounding in one compiled pass, against torch's fused kernel: values, moments, norm."""
    ended = []
    for compiled in (False, True):
        model = tiny(50)
        flat = FlatParameters(model, precision)
        optimizer = FlatAdamW(flat, TrainOptions(steps=3, clip=0.5), compiled)
        generator = torch.Generator().manual_seed(0)
        for rate in (1e-2, 3e-3, 1e-3):
            flat.forget()
            for p in model.parameters():
                p.grad = torch.randn(p.shape, generator=generator).to(p.dtype)
            flat.collect()
            optimizer.rate.fill_(rate)
            optimizer.step()
        states = [state[name] for state in optimizer.state.values() for name in loop.MOMENTS]
        ended.append([*(v.detach() for v in flat.values), *states, optimizer.norm])
        assert all(torch.equal(c, v.to(c.dtype)) for c, v in zip(flat.compute, flat.values, strict=True))
    for eager, one_pass in zip(*ended, strict=True):
        torch.testing.assert_close(one_pass, eager, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_save_memory_keeps_less_and_changes_nothing(corpus, compiled):
    """The same loss and gradients, bit for bit if not compiled; GELU's output is not kept for backward.

    What compiled code keeps autograd does not show: it is measured on a GPU (benchmarks/pretrain_gpu.py).
    """
    batch = next(loader(PairBatches(Corpus(corpus), 4, 32, seed=0), range(1), 0))
    ended, kept = [], []
    for save_memory in (False, True):
        torch.manual_seed(0)
        model = tiny(len(Corpus(corpus).tokenizer()))
        objective = PreTrainingObjective()
        options = TrainOptions(steps=1, compile=compiled, save_memory=save_memory)
        step = loop.Step(model, objective, options, torch.device("cpu"))
        sizes: dict[int, int] = {}

        def count(x, sizes=sizes):
            sizes[x.untyped_storage().data_ptr()] = x.untyped_storage().nbytes()
            return x

        torch.manual_seed(1)
        with torch.autograd.graph.saved_tensors_hooks(count, lambda x: x):
            loss = step.loss(batch, objective.count(batch))[0]
        loss.backward()
        ended.append([loss.detach(), *(p.grad for p in model.parameters())])
        kept.append(sum(sizes.values()))
    exact = dict(rtol=1e-5, atol=1e-7) if compiled else dict(rtol=0, atol=0)
    for with_it, without in zip(*ended, strict=True):
        torch.testing.assert_close(with_it, without, **exact)
    layers, inner = model.config.num_hidden_layers, model.config.intermediate_size
    if not compiled:
        assert kept[0] - kept[1] == layers * len(batch["input_ids"]) * inner * 4  # float32


def test_a_parameter_without_gradient_only_decays():
    """Nothing reads it, so nothing is collected for it: its gradient counts as 0 instead of ending the run."""
    model = tiny(50)
    flat = FlatParameters(model, "fp32")
    optimizer = FlatAdamW(flat, TrainOptions(steps=1), compiled=False)
    word, before = model.bert.embeddings.word, model.bert.embeddings.word.detach().clone()
    for p in model.parameters():
        p.grad = None if p is word else torch.ones_like(p)
    flat.collect()
    optimizer.rate.fill_(0.1)
    optimizer.step()
    torch.testing.assert_close(word.detach(), before * (1 - 0.1 * 0.01))


def test_batches_do_not_depend_on_workers(corpus):
    data = PairBatches(Corpus(corpus), 3, 32, seed=1)
    alone, helped = ([*loader(data, [5, 2, 9], workers)] for workers in (0, 2))
    for a, b in zip(alone, helped, strict=True):
        assert all(torch.equal(a[name], b[name]) for name in a if name != "longest")


def test_nan_and_divergence_stop_with_a_word(corpus):
    corpus = Corpus(corpus)
    data = PairBatches(corpus, 3, 32, seed=1)
    for rate, word in ((1e6, "learning rate"), (float("nan"), "loss is nan")):
        options = TrainOptions(steps=30, learning_rate=rate, log_every=1)
        with pytest.raises(TrainingStopped, match=word):
            train(tiny(len(corpus.tokenizer())), PreTrainingObjective(), lambda n: loader(data, n, 0), options)


def test_out_of_memory_says_what_to_change(corpus):
    corpus = Corpus(corpus)

    class Hungry(PreTrainingObjective):
        def losses(self, model, batch):
            raise torch.OutOfMemoryError("tried to allocate 900 GiB")

    data = PairBatches(corpus, 3, 32, seed=1)
    with pytest.raises(TrainingStopped, match="Halve the sequences a batch and double accumulate"):
        train(tiny(50 + len(corpus.tokenizer())), Hungry(), lambda n: loader(data, n, 0), TrainOptions(steps=1))


def test_a_state_of_another_run_is_refused(corpus, tmp_path):
    corpus = Corpus(corpus)
    data, vocabulary = PairBatches(corpus, 3, 32, seed=1), len(corpus.tokenizer())

    def start(steps: int, words: int) -> None:
        options = TrainOptions(steps=steps)
        train(tiny(words), PreTrainingObjective(), lambda n: loader(data, n, 0), options, tmp_path)

    start(2, vocabulary)
    with pytest.raises(ValueError, match="steps was 2, now 3"):
        start(3, vocabulary)
    with pytest.raises(ValueError, match="the model has another size"):
        start(2, vocabulary + 64)
