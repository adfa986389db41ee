"""Pre-training: masked LM and next sentence (Devlin et al. 2019, section 3.1 and A.2).

    python -m bert_minimal pretrain my-model                        # 3 minutes on a laptop, texts from the catalogue
    python -m bert_minimal pretrain my-model --preset h100 --text my-folder
    python -m bert_minimal pretrain my-model --recipe paper --scale 0.01 --dry-run
    torchrun --nproc-per-node 2 -m bert_minimal pretrain my-model --preset h100 --sequences 256 --accumulate 2

    python -m bert_minimal evaluate my-model/model                  # both accuracies on documents held out

The folder gets the prepared texts (corpus/), run.json and command.txt (what was asked for), log.jsonl,
state.safetensors, from which a run that was broken off goes on, and at the end the model itself (model/), for
`Bert.from_pretrained` and for transformers, and curves.png.
"""

import importlib.util
import json
import math
import os
import shlex
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor

from ..config import BertConfig
from ..heads import NO_LABEL, PreTraining
from ..wordpiece import WordPiece
from . import loop
from .corpus import Corpus, PairBatches, at_least, check_batches, loader, prepare, read_documents, split_held_out
from .finetune import find_start
from .finetune_command import same_run
from .loop import TrainOptions, choose_precision, distributed, rank_and_world, start_processes, train
from .metrics import count_parameters, draw_curves, measured_peak, training_flops
from .pairs import order_at, pair_at

MEASURE_FROM = 10**12  # numbers of the batches to measure on: far from those that are learned from
HELD_OUT_ONE_IN = 50  # documents


@dataclass(frozen=True)
class Recipe:
    """What is trained, and how. A step sees sequences · accumulate sequences of the phase's length."""

    layers: int
    width: int
    heads: int
    vocabulary: int
    steps: int
    sequences: int  # of a batch, at the first phase's length
    learning_rate: float
    warmup: int
    phases: tuple[tuple[float, int], ...]  # share of the steps, length in pieces
    mixed: bool = False  # the phases take turns all along; else one follows the other
    same_sequences: bool = False  # later phases: as many sequences a batch (the paper), or as many tokens
    accumulate: int = 1
    positions: int = 512
    dropout: float = 0.1
    attention_dropout: float = 0.0  # without it the fastest kernels can be used
    weight_decay: float = 0.01
    documents: int | None = None  # at most so many are read

    def sequences_of(self, length: int) -> int:
        """Sequences in a batch of the phase of this length."""
        return self.sequences if self.same_sequences else self.sequences * self.phases[0][1] // length

    def config(self) -> BertConfig:
        """The model's sizes."""
        return BertConfig(
            vocab_size=self.vocabulary,
            hidden_size=self.width,
            num_hidden_layers=self.layers,
            num_attention_heads=self.heads,
            intermediate_size=4 * self.width,
            max_position_embeddings=self.positions,
            hidden_dropout_prob=self.dropout,
            attention_probs_dropout_prob=self.attention_dropout,
        )


# fmt: off
PRESETS = {
    "laptop": Recipe(layers=2, width=128, heads=2, vocabulary=4096, steps=500, sequences=32, learning_rate=2e-3,
                     warmup=50, phases=((1.0, 64),), positions=128, documents=3000),
    "t4": Recipe(layers=4, width=256, heads=4, vocabulary=8192, steps=12_000, sequences=256, learning_rate=1e-3,
                 warmup=600, phases=((0.9, 128), (0.1, 512)), mixed=True),
    "h100": Recipe(layers=6, width=256, heads=4, vocabulary=8192, steps=40_000, sequences=512, learning_rate=1e-3,
                   warmup=2000, phases=((0.9, 128), (0.1, 512)), mixed=True),
}
PAPER = Recipe(layers=12, width=768, heads=12, vocabulary=30_522, steps=1_000_000, sequences=256,
               learning_rate=1e-4, warmup=10_000, phases=((0.9, 128), (0.1, 512)), same_sequences=True,
               attention_dropout=0.1)
# What the paper says, where, and how this program does it.
PAPER_NUMBERS = (
    ("layers, width, heads", "12, 768, 12 (base); 24, 1024, 16 (large)", "3", "base"),
    ("parameters", "110 M; 340 M", "3", "109.5 M in the encoder, counted here"),
    ("vocabulary", "30,000 pieces", "3", "30,522, as released"),
    ("texts", "BooksCorpus 800 M words, English Wikipedia 2,500 M", "3.1", "what --text names"),
    ("sequences a batch", "256 (of 512: 131,072 tokens, printed as 128,000)", "A.2", "256"),
    ("steps", "1,000,000, about 40 times through 3.3 G words", "A.2", "1,000,000 times --scale"),
    ("lengths", "90 % of the steps 128, the rest 512", "A.2", "the same"),
    ("optimizer", "Adam, 1e-4, β 0.9 and 0.999, L2 weight decay 0.01", "A.2", "AdamW, the same numbers"),
    ("schedule", "10,000 steps of warm-up, then linear", "A.2", "the same, times --scale"),
    ("dropout", "0.1 on all layers", "A.2", "0.1"),
    ("activation", "GELU", "A.2", "GELU (erf)"),
    ("masking", "15 %; 80 / 10 / 10", "3.1, A.1", "the same, drawn anew each time unless --static"),
    ("next sentence", "half IsNext, half NotNext", "3.1, A.2", "the same"),
    ("loss", "sum of both means", "A.2", "the same"),
    ("cost", "4 Cloud TPUs (base), 16 (large), four days each", "A.2", "see below"),
)
# fmt: on


class PreTrainingObjective:
    """Both tasks' losses on a batch of `corpus.PairBatches`."""

    names = ("mlm", "nsp")

    def count(self, batch: dict[str, Tensor]) -> Tensor:
        labels = (batch["masked_labels"], batch["follows"])
        return torch.stack([(x != NO_LABEL).sum() for x in labels]).float()

    def losses(self, model: PreTraining, batch: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        stream = {name: batch[name] for name in ("input_ids", "token_type_ids", "position_ids", "cu_seqlens")}
        longest = batch["longest"].shape[0]
        pieces, follows = model.stream(batch["masked_positions"], **stream, max_seqlen=longest)
        sums, right = [], []
        for logits, labels in ((pieces, batch["masked_labels"]), (follows, batch["follows"])):
            logits = logits.float()
            sums.append(F.cross_entropy(logits, labels, ignore_index=NO_LABEL, reduction="sum"))
            right.append((logits.argmax(-1) == labels).sum())
        return torch.stack(sums), torch.stack(right).float()


class PhasedBatches(torch.utils.data.Dataset):
    """PairBatches whose length depends on the step: mostly short sequences, some fewer long ones.

    One phase after the other is the paper's way. Mixed, the steps of each phase are spread evenly: positions
    from 128 on do not meet a finished model at the end (there the loss rose from 2.6 to 4, benchmarks/LOG.md).

    `static` 0 draws pairs and masks anew for every batch. Otherwise there are only as many batches as that many
    times through the texts take, and then the same come again.
    """

    def __init__(self, corpus: Corpus, recipe: Recipe, seed: int, whole_words: bool, task, static: int = 0):
        self.recipe, self.ends, self.phases, self.distinct = recipe, [], [], []
        for share, length in recipe.phases:
            self.ends.append(share + (self.ends[-1] if self.ends else 0.0))
            self.phases.append(PairBatches(corpus, recipe.sequences_of(length), length, seed, whole_words, task))
            once = max(1, round(corpus.index["tokens"] / self.phases[-1].tokens))  # batches
            self.distinct.append(static * once or sys.maxsize)

    def __getitem__(self, number: int) -> dict[str, Tensor]:
        step = number // self.recipe.accumulate
        at = step * 0.6180339887498949 % 1 if self.recipe.mixed else step / self.recipe.steps
        phase = next((i for i, end in enumerate(self.ends) if at < end), len(self.ends) - 1)
        return self.phases[phase][number % self.distinct[phase]]


def pretrain(
    out: Path,
    /,
    text: tuple[str, ...] = ("movie-reviews", "gutenberg"),
    preset: Literal["laptop", "t4", "h100"] = "laptop",
    recipe: Literal["ours", "paper"] = "ours",
    scale: float = 1.0,
    task: Literal["next-sentence", "sentence-order"] = "next-sentence",
    whole_words: bool = False,
    static: int = 0,
    precision: Literal["", "fp32", "bf16", "fp16"] = "",
    save_memory: bool = False,
    steps: int | None = None,
    sequences: int | None = None,
    accumulate: int | None = None,
    workers: int | None = None,
    seed: int = 0,
    corpus: Path | None = None,
    dry_run: bool = False,
) -> None:
    """Train a BERT from nothing: vocabulary, texts, masked LM and next sentence.

    Args:
        out: folder for everything; a run that was broken off goes on if started again in the same way.
        text: catalogue names, .txt files or folders of them.
        preset: sizes for this machine; laptop takes 3 minutes.
        recipe: "paper": the numbers of Devlin et al. 2019 instead of the preset's.
        scale: times the steps and the warm-up.
        task: what the second segment is for: next sentence (BERT) or sentence order (ALBERT).
        whole_words: mask all pieces of a word together.
        static: mask the texts so many times and repeat that (Google's code: 10); 0 draws new masks for every batch.
        precision: empty for what the device does best.
        save_memory: about a fifth less memory for 1 % more time: GELU is computed twice.
        steps: instead of the recipe's (warm-up in proportion).
        sequences: in a batch; if memory is short, halve it …
        accumulate: batches a step: … and double this. A multiple of the number of processes, if there are several.
        workers: processes that make batches; default: as many as there are processors to spare.
        seed: of weights, texts' order, masks, dropout.
        corpus: a folder with learn/ and held-out/ prepared before (by an earlier run: OUT/corpus).
        dry_run: say what it would take, and stop.
    """
    device = start_processes()
    chosen = scaled(PAPER if recipe == "paper" else PRESETS[preset], scale, steps)
    if sequences is not None:
        chosen = replace(chosen, sequences=sequences)
    if accumulate is not None:
        chosen = replace(chosen, accumulate=accumulate)
    rank, world = rank_and_world()
    check_numbers(chosen, seed, workers, world)
    at_least(0, static=static)
    precision = precision or choose_precision(device)
    if dry_run:
        print(plan(chosen, device, precision, recipe == "paper", save_memory))
        return
    if rank == 0 and corpus is None:
        prepare_texts(text, out / "corpus", chosen.vocabulary, chosen.documents)
    if distributed():
        dist.barrier()
    folder = corpus or out / "corpus"
    learn, held = Corpus(folder / "learn"), Corpus(folder / "held-out")
    if rank == 0:  # not before: a command whose texts can't be read shall leave no mark
        others = dict(text=list(text), corpus=corpus and str(corpus), task=task, whole_words=whole_words, static=static)
        mark_run(out, chosen, **others, precision=precision, seed=seed)
    chosen = replace(chosen, vocabulary=len(learn.tokenizer()))
    torch.manual_seed(seed)
    model = PreTraining(chosen.config()).to(device)
    if rank == 0:
        print(f"{count_parameters(model):,} parameters; {learn.index['tokens']:,} pieces to learn from, ", end="")
        print(f"{held.index['tokens']:,} held out in {len(held)} documents")

    pair_task = pair_at if task == "next-sentence" else order_at
    dealt = PhasedBatches(learn, chosen, seed, whole_words, pair_task, static)
    length = chosen.phases[0][1]
    measured = PairBatches(held, min(chosen.sequences, 256), length, seed, whole_words, pair_task)

    def measure(model: PreTraining) -> dict[str, float]:
        return once_through(model, measured)

    if workers is None:
        workers = max(0, min(16, (os.cpu_count() or 1) // world - 2)) if device.type == "cuda" else 0

    def batches(numbers: list[int]) -> Iterator[dict[str, Tensor]]:
        return loader(dealt, numbers, workers)

    tokens = chosen.sequences * length
    masked = round(0.15 * tokens)
    flops = training_flops(chosen.config(), tokens, length, masked, chosen.sequences)
    options = TrainOptions(
        steps=chosen.steps,
        learning_rate=chosen.learning_rate,
        warmup=chosen.warmup,
        weight_decay=chosen.weight_decay,
        accumulate=chosen.accumulate,
        precision=precision,
        save_memory=save_memory,
        seed=seed,
        log_every=max(1, min(50, chosen.steps // 40)),
        evaluate_every=max(200, chosen.steps // 12),
        save_every=max(100, chosen.steps // 20),
    )
    peak = measured_peak(device, precision)
    train(model, PreTrainingObjective(), batches, options, out, measure, (tokens, flops), peak)
    if rank == 0:
        save_model(model, learn.tokenizer(), out / "model")
        if importlib.util.find_spec("matplotlib"):  # a bare GPU machine may lack it
            draw_curves(out / "log.jsonl", out / "curves.png")
        print_scores(measure(model))
        print(f"the model is in {out / 'model'}")
    if distributed():
        dist.destroy_process_group()


def once_through(model: PreTraining, batches: PairBatches) -> dict[str, float]:
    """Both tasks' losses and accuracies on held-out documents: about as many pieces as they have, 2 M at most."""
    from tqdm import tqdm

    rounds = max(1, min(batches.corpus.index["tokens"], 2_000_000) // batches.tokens)
    dealt = loader(batches, range(MEASURE_FROM, MEASURE_FROM + rounds), 0)
    bar = tqdm(dealt, "held out", rounds, unit="batch", leave=False, delay=5)
    return loop.evaluate(model, PreTrainingObjective(), iter(bar))


def print_scores(found: dict[str, float]) -> None:
    """One line: the names and numbers that `once_through` found."""
    print("held out: " + ", ".join(f"{name} {value:.4f}" for name, value in found.items()))


def evaluate(
    model: str = "course",
    /,
    text: tuple[str, ...] = ("movie-reviews", "gutenberg"),
    length: int = 128,
    sequences: int = 64,
    seed: int = 0,
) -> None:
    """Masked-LM and next-sentence accuracy of a saved model on the documents that `pretrain` holds out.

    The course's own model takes two minutes on a laptop.

    Args:
        model: "course", or the folder model/ of a run: a checkpoint with both heads.
        text: catalogue names, .txt files or folders of them; about one document in fifty of each is measured on.
        length: of a sequence, in pieces.
        sequences: a batch.
        seed: of pairs and masks; another one asks other questions.
    """
    folder, device = find_start(model), start_processes()
    loaded: Any = PreTraining.from_pretrained(folder)
    if loaded.loaded.fresh:
        raise ValueError(f"{model} was saved without {', '.join(loaded.loaded.fresh)}: only noise could be measured")
    check_batches(sequences, length, seed, loaded.config.max_position_embeddings)
    _, held = split_texts(text)
    with tempfile.TemporaryDirectory() as kept:
        corpus = prepare(held, WordPiece.from_pretrained(folder), Path(kept))
        print(f"{len(corpus):,} documents, {corpus.index['tokens']:,} pieces, sequences of {length}")
        print_scores(once_through(loaded.to(device), PairBatches(corpus, sequences, length, seed)))


def check_numbers(recipe: Recipe, seed: int, workers: int | None, processes: int) -> None:
    """Raises ValueError if it can't be trained so: now, not after the vocabulary has been learned."""
    at_least(0, workers=workers or 0)
    at_least(1, accumulate=recipe.accumulate)
    if recipe.accumulate % processes:
        raise ValueError(f"--accumulate is {recipe.accumulate}: {processes} processes need a multiple of {processes}")
    first = recipe.phases[0][1]
    for _, length in recipe.phases:
        check_batches(recipe.sequences, length, seed, recipe.positions)
        if not recipe.sequences_of(length):
            raise ValueError(
                f"--sequences {recipe.sequences} of {first} pieces have no room for one of {length}, which this "
                f"recipe needs: give at least {math.ceil(length / first)}"
            )


def mark_run(out: Path, recipe: Recipe, **options: Any) -> None:
    """run.json, by which the folder is known again, and command.txt. Raises ValueError if it is another run's."""
    numbers = json.loads(json.dumps(asdict(recipe)))  # as they will be read: lists, not tuples
    same_run(out / "run.json", {**numbers, **options})
    command = [Path(sys.executable).name, "-m", "bert_minimal", *sys.argv[1:]]
    (out / "command.txt").write_text(shlex.join(command) + "\n", encoding="utf-8")


def scaled(recipe: Recipe, scale: float, steps: int | None) -> Recipe:
    """More or fewer steps, warm-up in proportion."""
    if not 0 < scale < math.inf:
        raise ValueError(f"--scale is {scale}: it has to be above 0")
    if steps is not None:
        at_least(1, steps=steps)
    wanted = steps or max(1, round(recipe.steps * scale))
    return replace(recipe, steps=wanted, warmup=round(recipe.warmup * wanted / recipe.steps))


def prepare_texts(sources: tuple[str, ...], folder: Path, pieces: int | WordPiece, most: int | None = None) -> None:
    """Split into documents to learn from and held-out ones, learn a vocabulary from the first, tokenise both.

    pieces: how many to learn, or the tokenizer to use. most: documents to read.
    The vocabulary is made by the rule "frequency": on these texts it needs fewer tokens a word on held-out text
    than "ratio" (1.46 against 1.53 with 8,192 pieces). What is there already is not made again.
    """
    if all((folder / part / "index.json").exists() for part in ("learn", "held-out")):
        return
    learn, held = split_texts(sources, most)
    if isinstance(pieces, int):
        print(f"learning {pieces:,} pieces from {len(learn):,} documents")
        pieces = WordPiece.train((p for d in learn for p in d), pieces, rule="frequency")
    prepare(held, pieces, folder / "held-out")
    prepare(learn, pieces, folder / "learn")


def split_texts(sources: tuple[str, ...], most: int | None = None) -> tuple[list, list]:
    """-> (documents to learn from, held-out ones): two each at least, since a random B is from another document.

    most: documents to read, of all sources together. Raises ValueError if there are too few.
    """
    learn, held = [], []
    for source in sources:
        documents = [document for document in read_documents(source) if document]
        if most is not None:
            documents = documents[: most // len(sources)]
        if len(documents) < 3:
            raise ValueError(f"{source} has {len(documents)} document(s); at least three are needed, one held out")
        some, others = split_held_out(documents, HELD_OUT_ONE_IN)
        learn, held = learn + some, held + others
    if len(learn) + len(held) < 4:
        raise ValueError(f"{sources[0]} has three documents; a fourth is needed, since two are held out")
    if len(held) < 2:
        held.append(learn.pop())
    return learn, held


def save_model(model: PreTraining, tokenizer: WordPiece, folder: Path) -> None:
    """config.json, model.safetensors and the tokenizer's files."""
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def plan(recipe: Recipe, device: torch.device, precision: str, paper: bool, save_memory: bool = False) -> str:
    """What --dry-run prints: parameters, tokens, operations, memory, time; the paper's numbers beside ours."""
    config = recipe.config()
    with torch.device("meta"):
        model = PreTraining(config)
    parameters, encoder = count_parameters(model), count_parameters(model.bert)
    flops, tokens, per_batch = 0.0, 0, 0
    for share, length in recipe.phases:
        sequences, batches = recipe.sequences_of(length), round(share * recipe.steps) * recipe.accumulate
        flops += batches * training_flops(config, sequences * length, length, 0.15 * sequences * length, sequences)
        tokens += batches * sequences * length
        per_batch = max(per_batch, sequences * length)
    peak = measured_peak(device, precision)
    # Weights and Adam's two moments in float32, and the gradients; in bf16 these are half as long, but the weights'
    # rounded copy comes besides.
    fixed = parameters * 16
    # Fitted to the peaks measured on an H200 with base (benchmarks/results): bytes a feature, layer and token.
    each = (25 if save_memory else 33) * (1 if precision == "bf16" else 2)
    kept = per_batch * (each * recipe.width * recipe.layers + 0.15 * 6 * recipe.vocabulary)
    share = 0.4 if device.type == "cuda" else 0.25
    lines = [
        f"model        {recipe.layers} layers x {recipe.width}, {recipe.heads} heads, {recipe.vocabulary:,} pieces",
        f"parameters   {parameters:,} ({encoder:,} without the heads)",
        f"steps        {recipe.steps:,}, warm-up {recipe.warmup:,}, learning rate {recipe.learning_rate:g}",
        "batches      "
        + ", then ".join(f"{recipe.sequences_of(n)} x {n} for {share:.0%} of the steps" for share, n in recipe.phases),
        f"a step       {recipe.accumulate} of these",
        f"tokens       {tokens:,} in all",
        f"operations   {flops:.2e} floating point",
        f"memory       about {(fixed + kept) / 2**30:.1f} GiB ({fixed / 2**30:.1f} whatever the batch), {precision}",
        f"time         about {words_for(flops / (peak * share))} on {name_of(device)}: {peak / 1e12:.2f} TFLOP/s "
        f"measured, {share:.0%} of it reached",
    ]
    if paper:
        lines += ["", f"{'':21} {'the paper says':52} {'section':9} here"]
        lines += [f"{name:21} {says:52} {section:9} {here}" for name, says, section, here in PAPER_NUMBERS]
    return "\n".join(lines)


def words_for(seconds: float) -> str:
    """7200 -> "2 hours": in the largest unit of which there are two."""
    for unit, size in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:,.0f} {unit}"
    return f"{seconds:.0f} seconds"


def name_of(device: torch.device) -> str:
    """The GPU's name, or how many threads of the CPU are used."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else f"{torch.get_num_threads()} CPU threads"
