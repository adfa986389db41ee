"""The model from the command line.

    python -m bert_minimal fill-mask | encode | export | pretrain | evaluate | distill | finetune | predict

MODEL is a name in the catalogue ("course", "minilm", "bert-tiny-mlm"; see `train/data.py`), a folder, or an
id on the Hugging Face hub. `COMMAND --help` lists the options.
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

from . import heads
from .checkpoint import IGNORED, TWINS, bert_name
from .model import Bert, Module
from .train.distill import distill
from .train.finetune import find_start
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
    if top < 1:
        raise ValueError(f"--top is {top}: ask for one guess or more")
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
    """Write one vector for each text, the mean of its pieces' last hidden states ([CLS] and [SEP] among them).

    The file is a .npy of (texts, width), float32.

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
        folder: where to write; new or empty.
    """
    if folder.is_dir() and any(folder.iterdir()):
        raise ValueError(f"{folder} already holds files: name a new folder")
    entries = json.loads((find_start(model) / "config.json").read_text(encoding="utf-8"))
    name = (entries.get("architectures") or [Bert.hf_name])[0]  # BertForMaskedLM, DistilBertForMaskedLM …
    kind = next((kind for kind in WITH_HEADS if name.endswith(kind.hf_name.removeprefix("Bert"))), Bert)
    tokenizer, loaded = open_whole(kind, model, may_lack=("pooler",) if kind is Bert else ())
    loaded.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    parameters = sum(p.numel() for p in loaded.parameters())
    written = json.loads((folder / "config.json").read_text(encoding="utf-8"))["architectures"][0]
    print(f"{folder}: {written}, {parameters:,} parameters, {len(tokenizer):,} pieces")
    if left := [n for n in loaded.loaded.unused if bert_name(loaded.config, n) not in IGNORED | TWINS.keys()]:
        print(f"left out, for {written} has no place for it: {', '.join(left)}")


def open_whole(kind: type[Module], model: str, may_lack: tuple[str, ...] = ()) -> tuple[WordPiece, Module]:
    """Tokenizer and model. Raises ValueError if a part would start fresh: its answers would be noise."""
    source = find_start(model)
    loaded: Any = kind.from_pretrained(source)
    if fresh := {name.split(".")[0] for name in loaded.loaded.fresh} - set(may_lack):
        raise ValueError(f"{model} was saved without its {', '.join(sorted(fresh))} part, which {kind.hf_name} needs")
    return WordPiece.from_pretrained(source), loaded


def some(texts: list[str]) -> list[str]:
    if not texts:
        raise ValueError("no text given")
    return texts


def main(arguments: list[str] | None = None) -> None:
    import tyro

    commands: dict[str, Any] = {"fill-mask": fill_mask, "encode": encode, "export": export, "pretrain": pretrain}
    commands |= {"evaluate": evaluate, "distill": distill, "finetune": finetune, "predict": predict}
    flat = tyro.conf.OmitArgPrefixes  # --epochs, not --options.epochs
    try:
        tyro.extras.subcommand_cli_from_dict(
            commands, prog="python -m bert_minimal", description=__doc__, args=arguments, config=(flat,)
        )
    except (ValueError, OSError, TrainingStopped) as error:  # what the user can put right: one message, no traceback
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        sys.exit("\nstopped. A training that had begun goes on from its last state with the same command")


if __name__ == "__main__":
    main()
