"""Distillation: a student with half of its teacher's layers (Sanh et al. 2019, "DistilBERT", sections 2 and 3).

    python -m bert_minimal distill my-student                              # minutes on a laptop
    python -m bert_minimal distill my-student --documents 0 --steps 20000 --sequences 256 --length 128      # a GPU
    python -m bert_minimal finetune my-run --train train.tsv --dev dev.tsv --model my-student/model

The student is a DistilBERT (`variants.py`): no segments, no pooler, each second layer of the teacher's to begin with,
and the teacher's embeddings and masked-LM head. It learns from three losses: the teacher's softened answers at the
hidden pieces, the true pieces, and the direction of the teacher's last vectors at all tokens.

The folder gets corpus/, log.jsonl, state.safetensors, from which a run that was broken off goes on, and at the end
model/ (transformers opens it as DistilBertForMaskedLM) and metrics.json.
"""

import json
import os
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from ..config import BertConfig
from ..heads import NO_LABEL, MaskedLM
from ..variants import DistilBertConfig
from ..wordpiece import WordPiece
from .corpus import Corpus, PairBatches, at_least, check_batches, fingerprint, loader, write_whole
from .finetune import find_start, open_tokenizer, stream_of
from .finetune_command import same_run
from .loop import TrainOptions, choose_precision, evaluate, start_processes, train
from .metrics import count_parameters
from .pretrain import MEASURE_FROM, prepare_texts

TEMPERATURE = 2.0  # the paper's code; the paper gives no number
WEIGHTS = (5.0, 2.0, 1.0)  # soft answers, true pieces, directions: the command in the authors' repository


def make_student(teacher: MaskedLM, layers: int, fresh: bool = False) -> MaskedLM:
    """A DistilBERT of `layers` layers, each of them a copy of one of the teacher's (every second one for half).

    Segments are gone; in a text by itself every token is in segment 0, so its vector is added to all positions, and
    a student with all the layers computes what the teacher does. fresh: random weights instead, drawn anew.
    Raises ValueError unless the teacher is a BERT whose number of layers is a multiple of `layers`.
    """
    config = teacher.config
    if type(config) is not BertConfig:
        raise ValueError(f"the teacher is a {config.model_type}; this program distils BERT")
    if not 0 < layers <= config.num_hidden_layers or config.num_hidden_layers % layers:
        raise ValueError(
            f"a student of {layers} layers can't take every k-th of its teacher's {config.num_hidden_layers}: "
            "choose a divisor of it"
        )
    student = MaskedLM(DistilBertConfig(**{**asdict(config), "num_hidden_layers": layers, "type_vocab_size": 1}))
    student.to(teacher.bert.embeddings.word.dtype)
    if fresh:
        return student
    every, values = config.num_hidden_layers // layers, teacher.state_dict()
    for name, parameter in student.state_dict().items():
        if name.startswith("bert.layers."):
            number, rest = name.removeprefix("bert.layers.").split(".", 1)
            parameter.copy_(values[f"bert.layers.{int(number) * every}.{rest}"])
        elif name == "bert.embeddings.position":
            parameter.copy_(values[name] + values["bert.embeddings.segment"][0])
        else:
            parameter.copy_(values[name])
    return student


class Distillation:
    """The three losses on a batch of `corpus.PairBatches`; "right" is agreement with the teacher, with the true
    piece, and the cosine of the two vectors. Each loss is a mean over its labels times its weight.

    soft       T² · KL(teacher ‖ student), both at temperature T, at the pieces asked for (Hinton et al. 2015, 2)
    mlm        cross-entropy of the true pieces
    direction  1 - cosine of the last vectors, at every token
    """

    names = ("soft", "mlm", "direction")

    def __init__(self, teacher: MaskedLM, weights: tuple[float, float, float] = WEIGHTS):
        self.teacher, self.weights = teacher.eval().requires_grad_(False), weights

    def count(self, batch: dict[str, Tensor]) -> Tensor:
        asked = (batch["masked_labels"] != NO_LABEL).sum()
        return torch.stack([asked, asked, (batch["input_ids"] != 0).sum()]).float()  # 0 is [PAD]

    def losses(self, student: MaskedLM, batch: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        stream, places, labels = stream_of(batch), batch["masked_positions"], batch["masked_labels"]
        asked, real = labels != NO_LABEL, batch["input_ids"] != 0  # (M,), (N,)
        with torch.no_grad():
            theirs = self.teacher.bert.stream(**stream)  # (N, D)
            taught = self.teacher.mlm(theirs[places], self.teacher.bert.embeddings.word).float()  # (M, V)
        own = student.bert.stream(**stream)
        said = student.mlm(own[places], student.bert.embeddings.word).float()
        p, log_q = (taught / TEMPERATURE).softmax(-1), (said / TEMPERATURE).log_softmax(-1)
        soft = F.kl_div(log_q, p, reduction="none").sum(-1) * TEMPERATURE**2  # (M,)
        true = F.cross_entropy(said, labels, ignore_index=NO_LABEL, reduction="none")  # 0 where nothing is asked
        cosine = F.cosine_similarity(own.float(), theirs.float(), dim=-1)  # (N,)
        sums = torch.stack([(soft * asked).sum(), true.sum(), ((1 - cosine) * real).sum()])
        best = said.argmax(-1)
        agree = (best == taught.argmax(-1)) & asked
        right = torch.stack([agree.sum(), (best == labels).sum(), (cosine.detach() * real).sum()])
        return sums * sums.new_tensor(self.weights), right.float()


class MaskedPieces:
    """Masked LM alone, for measuring: cross-entropy and accuracy of the true pieces."""

    names = ("mlm",)

    def count(self, batch: dict[str, Tensor]) -> Tensor:
        return (batch["masked_labels"] != NO_LABEL).sum().float()[None]

    def losses(self, model: MaskedLM, batch: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        logits, labels = model.stream(batch["masked_positions"], **stream_of(batch)).float(), batch["masked_labels"]
        loss = F.cross_entropy(logits, labels, ignore_index=NO_LABEL, reduction="sum")
        return loss[None], (logits.argmax(-1) == labels).sum().float()[None]


def distill(
    out: Path,
    /,
    teacher: str = "course",
    text: tuple[str, ...] = ("movie-reviews", "gutenberg"),
    layers: int | None = None,
    steps: int = 300,
    sequences: int = 32,
    length: int = 64,
    learning_rate: float = 5e-4,
    weights: tuple[float, float, float] = WEIGHTS,
    fresh: bool = False,
    documents: int = 3000,
    precision: Literal["", "fp32", "bf16", "fp16"] = "",
    workers: int | None = None,
    seed: int = 0,
    corpus: Path | None = None,
) -> None:
    """Train a student with half the layers to answer as its teacher does.

    Args:
        out: folder for everything; a run that was broken off goes on if started again in the same way.
        teacher: a BERT with a masked-LM head: a catalogue name, a folder or a hub id.
        text: catalogue names, .txt files or folders of them.
        layers: of the student; default: half the teacher's.
        steps: each of one batch.
        sequences: in a batch.
        length: pieces of a sequence.
        learning_rate: at its highest, after a tenth of the steps.
        weights: of the teacher's answers, the true pieces, the directions; 0 1 0 is training without a teacher.
        fresh: begin with random weights instead of the teacher's layers.
        documents: so many are read at most; 0: all.
        precision: empty for what the device does best.
        workers: processes that make batches; default: as many as there are processors to spare.
        seed: of texts' order, masks, dropout, and of fresh weights.
        corpus: a folder with learn/ and held-out/ in the teacher's pieces, prepared before (OUT/corpus).
    """
    if (out / "model" / "config.json").exists():
        raise ValueError(f"{out} holds a finished student: name another folder, or delete this one")
    at_least(0, workers=workers or 0)
    least = max(4, 3 * len(text))  # of each text one is held out, and two in all
    if documents and documents < least:
        raise ValueError(f"--documents is {documents}: give at least {least}, or 0 for all there are")
    device = start_processes()
    options = TrainOptions(
        steps=steps,
        learning_rate=learning_rate,
        warmup=steps // 10,
        precision=precision or choose_precision(device),
        compile=False,  # two models take long to compile, and a student is trained in minutes
        seed=seed,
        log_every=max(1, min(50, steps // 20)),
        evaluate_every=max(1, steps // 5),
        save_every=max(50, steps // 5),
    )
    source = find_start(teacher)
    tokenizer = open_tokenizer(source)
    master: Any = MaskedLM.from_pretrained(source).to(device)
    if any(name.startswith("mlm.") for name in master.loaded.fresh):
        raise ValueError(f"{teacher} was saved without a masked-LM head: it has no answers to learn from")
    check_batches(sequences, length, seed, master.config.max_position_embeddings)
    if layers is None:
        layers = max(1, master.config.num_hidden_layers // 2)
    torch.manual_seed(seed)
    student = make_student(master, layers, fresh).to(device)
    if corpus is None:
        prepare_texts(text, out / "corpus", tokenizer, documents or None)
    learn, held = (Corpus((corpus or out / "corpus") / part) for part in ("learn", "held-out"))
    if learn.index["vocabulary"] != fingerprint(tokenizer):
        raise ValueError(f"{corpus} was prepared in other pieces than {teacher}'s: its numbers mean other words")
    # Not before: a command whose texts can't be read shall leave no mark.
    same_run(out / "run.json", {"teacher": teacher, "text": list(text), "layers": layers, "sequences": sequences,
                                "length": length, "weights": list(weights), "fresh": fresh, "documents": documents,
                                "corpus": corpus and str(corpus)})  # fmt: skip
    if workers is None:
        workers = max(0, min(16, (os.cpu_count() or 1) - 2)) if device.type == "cuda" else 0
    dealt, asked = PairBatches(learn, sequences, length, seed), PairBatches(held, min(sequences, 256), length, seed)
    rounds = max(1, min(held.index["tokens"], 500_000 if device.type == "cuda" else 20_000) // asked.tokens)

    def measure(model: MaskedLM) -> dict[str, float]:
        return evaluate(model, MaskedPieces(), loader(asked, range(MEASURE_FROM, MEASURE_FROM + rounds), 0))

    def batches(numbers: list[int]) -> Iterator[dict[str, Tensor]]:
        return loader(dealt, numbers, workers)

    scores = {"teacher": measure(master)}
    print(f"teacher {describe(master, scores['teacher'])}")
    objective = Distillation(master.bfloat16() if options.precision == "bf16" else master, weights)
    train(student, objective, batches, options, out, measure, (dealt.tokens, 0.0))
    if device.type == "cuda":
        torch.cuda.synchronize()  # the loop has a stream of its own
    scores["student"] = measure(student)
    print(f"student {describe(student, scores['student'])}")
    parameters = {"teacher": count_parameters(master), "student": count_parameters(student)}
    figures = {"parameters": parameters, "held out": scores, "steps": steps, "tokens": steps * dealt.tokens}
    write_whole(out / "metrics.json", (json.dumps(figures, indent=1) + "\n").encode())
    save_student(student, tokenizer, out / "model")
    (out / "state.safetensors").unlink()
    print(f"the student is in {out / 'model'}")


def describe(model: MaskedLM, scores: dict[str, float]) -> str:
    """One line on a teacher or a student: its size and how often it is right."""
    layers, parameters = model.config.num_hidden_layers, count_parameters(model)
    return f"{layers:2} layers, {parameters:,} parameters: {scores['mlm_accuracy']:.1%} of the hidden pieces right"


def save_student(student: MaskedLM, tokenizer: WordPiece, folder: Path) -> None:
    """The tokenizer first: a folder with a model in it is a finished one."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save_pretrained(folder)
    student.save_pretrained(folder)
