"""The model from the command line.

    python -m bert_minimal fill-mask | encode | export | pretrain | evaluate | distill | finetune | predict

MODEL is a name in the catalogue ("course", "minilm", "bert-tiny-mlm"; see `train/data.py`), a folder, or an
id on the Hugging Face hub. `COMMAND --help` lists the options.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

from . import heads
from .checkpoint import find_folder
from .model import Bert, Module
from .train import data
from .train.distill import distill
from .train.finetune_command import finetune, predict
from .train.loop import TrainingStopped
from .train.pretrain import evaluate, pretrain
from .wordpiece import WordPiece

BATCH = 32
WITH_HEADS = (heads.MaskedLM, heads.NextSentence, heads.PreTraining, heads.SequenceClassifier,
              heads.TokenClassifier, heads.QuestionAnswering)  # fmt: skip


def fill_mask(texts: list[str], /, model: str = "course", top: int = 5) -> None:
    """Guess what stands at each [MASK]: the best pieces with their probabilities.

    Args:
        texts: each with at least one [MASK].
        model: a catalogue name, a folder or a hub id, with a masked-LM head.
        top: guesses for each [MASK].
    """
    for text in some(texts):
        if "[MASK]" not in text:
            raise ValueError(f"nothing to guess in {text!r}: write [MASK] where a piece is missing")
    tokenizer, masked_lm = open_whole(heads.MaskedLM, model)
    for text in texts:
        row = tokenizer(text, return_tensors="pt")
        masked = row.input_ids == tokenizer.mask_id  # (1, S)
        with torch.inference_mode():
            logits = masked_lm(input_ids=row.input_ids, masked_positions=masked).logits  # (M, V)
        print(text)
        probabilities, ids = logits.softmax(-1).topk(min(top, logits.shape[1]))  # (M, top)
        for number, (ps, guesses) in enumerate(zip(probabilities, ids, strict=True), 1):
            words = (f"{tokenizer.pieces[i]} {p:.1%}" for p, i in zip(ps, guesses, strict=True))
            print(f"  [MASK] {number}:  {'   '.join(words)}")


def encode(texts: list[str], /, out: Path, model: str = "minilm") -> None:
    """Write one vector for each text, the mean of its pieces' last hidden states: a .npy of (texts, width).

    Args:
        texts: the texts; a single - reads them from standard input, one a line.
        out: the .npy file to write.
        model: a catalogue name, a folder or a hub id.
    """
    if texts == ["-"]:
        texts = [line.rstrip("\r\n") for line in sys.stdin]
    tokenizer, encoder = open_whole(Bert, model, may_lack=("pooler",))
    longest = encoder.config.max_position_embeddings
    lengths = [len(tokenizer(text).input_ids) for text in some(texts)]
    vectors = np.empty((len(texts), encoder.config.hidden_size), np.float32)
    for start in range(0, len(texts), BATCH):
        batch = tokenizer(texts[start : start + BATCH], max_length=longest, padding=True, return_tensors="pt")
        with torch.inference_mode():
            output = encoder(input_ids=batch.input_ids, attention_mask=batch.attention_mask)
        real = batch.attention_mask.sum(1, keepdim=True)  # (B, 1); rows of padding are 0, so a sum will do
        vectors[start : start + BATCH] = output.last_hidden_state.sum(1) / real
    with open(out, "wb") as file:  # not np.save(out): it would add .npy to another name
        np.save(file, vectors)
    print(f"{out}: {len(vectors)} vectors of {vectors.shape[1]} numbers")
    if cut := sum(length > longest for length in lengths):
        print(f"{cut} of {len(texts)} texts were longer than {longest} pieces; what came after was not read")


def export(model: str, folder: Path, /) -> None:
    """Write config.json, model.safetensors and vocab.txt so that transformers' AutoModel opens the folder.

    Args:
        model: a catalogue name, a folder or a hub id.
        folder: where to write; must not hold a checkpoint yet.
    """
    import json

    if (folder / "model.safetensors").exists():
        raise ValueError(f"{folder} already holds a checkpoint: name another folder")
    source = find_folder(find(model))
    names = json.loads((source / "config.json").read_text(encoding="utf-8")).get("architectures") or []
    kind = next((kind for kind in WITH_HEADS if kind.hf_name in names), Bert)
    tokenizer, loaded = open_whole(kind, model, may_lack=("pooler",) if kind is Bert else ())
    loaded.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    parameters = sum(p.numel() for p in loaded.parameters())
    print(f"{folder}: {kind.hf_name}, {parameters:,} parameters, {len(tokenizer):,} pieces")


def find(model: str) -> Path | str:
    """A catalogue name becomes its folder; a folder or hub id stays."""
    return data.fetch(model) if model == "course" or model in data.RESOURCES else model


def open_whole(kind: type[Module], model: str, may_lack: tuple[str, ...] = ()) -> tuple[WordPiece, Module]:
    """Tokenizer and model. Raises ValueError if a part would start fresh: its answers would be noise."""
    source = find(model)
    loaded: Any = kind.from_pretrained(source)
    fresh = {name.split(".")[0] for name in loaded.loaded.fresh} - set(may_lack)
    if fresh:
        parts = ", ".join(sorted(fresh))
        raise ValueError(f"{model} was saved without its {parts} part, which {kind.hf_name} needs")
    return WordPiece.from_pretrained(source), loaded


def some(texts: list[str]) -> list[str]:
    if not texts:
        raise ValueError("no text given")
    return texts


def main(arguments: list[str] | None = None) -> None:
    import tyro

    commands: dict[str, Any] = {"fill-mask": fill_mask, "encode": encode, "export": export, "pretrain": pretrain}
    commands |= {"evaluate": evaluate, "distill": distill, "finetune": finetune, "predict": predict}
    try:
        tyro.extras.subcommand_cli_from_dict(
            commands,
            prog="python -m bert_minimal",
            description=__doc__,
            args=arguments,
            config=(tyro.conf.OmitArgPrefixes,),  # --epochs, not --options.epochs
        )
    except (ValueError, OSError, TrainingStopped) as error:  # what the user can put right: one message, no traceback
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
