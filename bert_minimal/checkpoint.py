"""Weights from and to files: one table of names, read in both directions, and nothing loaded by halves.

Only safetensors files are read: a `.bin` or `.pt` file is a pickle, which can run any program when opened.
"""

import json
import os
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from .config import BertConfig, names_in_files
from .model import Bert, Module, initialise_parameter

# Part, our parameter, the file's tensors (stacked row upon row where there are several).
# # is the layer's number, * stands once for weight and once for bias. A plain `Bert` has no leading "bert.".
# fmt: off
TABLE = (
    ("embeddings", "bert.embeddings.word", "bert.embeddings.word_embeddings.weight"),
    ("embeddings", "bert.embeddings.position", "bert.embeddings.position_embeddings.weight"),
    ("embeddings", "bert.embeddings.segment", "bert.embeddings.token_type_embeddings.weight"),
    ("embeddings", "bert.embeddings.norm_*", "bert.embeddings.LayerNorm.*"),
    ("layers", "bert.layers.#.qkv_*", "bert.encoder.layer.#.attention.self.query.*",
                                      "bert.encoder.layer.#.attention.self.key.*",
                                      "bert.encoder.layer.#.attention.self.value.*"),
    ("layers", "bert.layers.#.attention_*", "bert.encoder.layer.#.attention.output.dense.*"),
    ("layers", "bert.layers.#.attention_norm_*", "bert.encoder.layer.#.attention.output.LayerNorm.*"),
    ("layers", "bert.layers.#.up_*", "bert.encoder.layer.#.intermediate.dense.*"),
    ("layers", "bert.layers.#.down_*", "bert.encoder.layer.#.output.dense.*"),
    ("layers", "bert.layers.#.norm_*", "bert.encoder.layer.#.output.LayerNorm.*"),
    ("pooler", "bert.pooler.*", "bert.pooler.dense.*"),
    ("mlm", "mlm.dense_*", "cls.predictions.transform.dense.*"),
    ("mlm", "mlm.norm_*", "cls.predictions.transform.LayerNorm.*"),
    ("mlm", "mlm.decoder_bias", "cls.predictions.bias"),
    ("nsp", "nsp_*", "cls.seq_relationship.*"),
    ("classifier", "classifier_*", "classifier.*"),
    ("span", "span_*", "qa_outputs.*"),
)
# fmt: on
# Every other part may be absent from a file as a whole: it starts fresh.
ALWAYS_LEARNED = ("embeddings", "layers")
# The decoder of the masked LM is the word embeddings; some files write it, and its bias, a second time.
TWINS = {
    "cls.predictions.decoder.weight": "bert.embeddings.word_embeddings.weight",
    "cls.predictions.decoder.bias": "cls.predictions.bias",
}
# 0, 1, 2 …: early versions of transformers saved this buffer. It holds nothing learned.
IGNORED = {"bert.embeddings.position_ids"}


class Loaded(NamedTuple):
    """What came of loading: our names that start fresh, and the file's names that found no use."""

    fresh: list[str]
    unused: list[str]


def table_for(num_layers: int, more: tuple[tuple[str, ...], ...] = ()) -> list[tuple[str, str, list[str]]]:
    """TABLE (and `more` rows) with # and * written out: part, our name, the file's names."""
    rows = []
    for part, *names in TABLE + more:
        for number in range(num_layers) if part == "layers" else [0]:
            for kind in ("weight", "bias") if "*" in names[0] else [""]:
                ours, *theirs = (name.replace("#", str(number)).replace("*", kind) for name in names)
                rows.append((part, ours, theirs))
    return rows


def names_for(config: BertConfig, classifier: bool) -> list[tuple[str, str]]:
    """Parts of names that the family's files write otherwise, in the order in which they are replaced."""
    rows = names_in_files(config.model_type, "classifier") if classifier else []
    return rows + names_in_files(config.model_type, "tensor")


def bert_name(config: BertConfig, name: str) -> str:
    """A name in a file of RoBERTa, ALBERT or DistilBERT -> what it would be called in a file of BERT."""
    for berts, theirs in reversed(names_for(config, classifier=True)):
        name = name.replace(theirs, berts)
    return name


def canonical(name: str) -> str:
    """A name, ours or the file's, as TABLE writes it: with "bert.", without the gamma and beta of 2018."""
    name = re.sub(r"\.gamma$", ".weight", re.sub(r"\.beta$", ".bias", name))
    return f"bert.{name}" if name.startswith(("embeddings.", "encoder.", "layers.", "pooler.")) else name


def load_weights(model: Module, path: str | os.PathLike) -> Loaded:
    """Fill every parameter of `model` from a safetensors file; a head that it lacks as a whole starts fresh.

    Values become float32 (torch's default dtype). The model may be on the meta device. Raises ValueError,
    before anything is changed, naming every tensor that is unknown, missing or of another shape.
    """
    try:
        with safe_open(path, framework="pt") as file:
            return _load(model, file, path)
    except SafetensorError as error:
        raise ValueError(f"{path} is cut off or no safetensors file ({error}): download it again") from error


def _load(model: Module, file, path) -> Loaded:
    config, parameters = model.config, {canonical(name): p for name, p in model.named_parameters()}
    stored = {canonical(bert_name(config, name)): name for name in file.keys()}  # noqa: SIM118 (not a dict)
    for twin in TWINS.keys() & stored.keys():
        stored.setdefault(TWINS[twin], stored[twin])
    table = table_for(config.num_stored_layers, config.more_tensors)

    table = [row for row in table if row[1] in parameters or row[0] not in ALWAYS_LEARNED]  # DistilBERT: no segments
    known = {name for _, _, theirs in table for name in theirs} | IGNORED | TWINS.keys()
    if unknown := sorted(stored[name] for name in stored.keys() - known):
        raise ValueError(
            f"{path} holds tensors this model does not know: {', '.join(unknown)}. It is of another kind, or "
            f"config.json (num_hidden_layers {config.num_hidden_layers}) is not its own"
        )

    wanted = [row for row in table if row[1] in parameters]
    present = {part for part, _, theirs in wanted if stored.keys() & theirs} | set(ALWAYS_LEARNED)
    sources = {ours: theirs for part, ours, theirs in wanted if part in present}
    if missing := [name for theirs in sources.values() for name in theirs if name not in stored]:
        raise ValueError(f"{path} lacks tensors this model needs: {', '.join(missing)}")

    wrong = []
    for ours, theirs in sources.items():
        rows, *rest = parameters[ours].shape
        expected = [rows // len(theirs), *rest]
        found = {stored[name]: file.get_slice(stored[name]).get_shape() for name in theirs}
        wrong += [f"{name} is {shape}, expected {expected}" for name, shape in found.items() if shape != expected]
    if wrong:
        raise ValueError(
            f"{path} does not fit the configuration: {'; '.join(wrong)}. Is config.json its own? A head "
            'for other classes needs their names: from_pretrained(…, labels=("no", "yes"))'
        )
    for twin in TWINS.keys() & stored.keys() if "mlm" in present else ():
        if not torch.equal(file.get_tensor(stored[twin]), file.get_tensor(stored[TWINS[twin]])):
            raise ValueError(f"{path}: {stored[twin]} and {stored[TWINS[twin]]} differ, but in BERT they are one")

    values = {}
    for name, old in model.named_parameters():
        if canonical(name) in sources:
            blocks = [file.get_tensor(stored[theirs]) for theirs in sources[canonical(name)]]
            values[name] = torch.cat(blocks).to(torch.get_default_dtype())
        else:
            values[name] = torch.empty(old.shape)
            initialise_parameter(name, values[name], config.initializer_range)
        values[name] = values[name] if old.is_meta else values[name].to(old.device)
    model.load_state_dict(values, assign=True)
    used = {stored[name] for theirs in sources.values() for name in theirs}
    fresh = [name for name, _ in model.named_parameters() if canonical(name) not in sources]
    return Loaded(fresh, sorted(set(stored.values()) - used))


def find_folder(folder_or_id: str | os.PathLike) -> Path:
    """A folder as it is; anything else is a hub id, from the local cache or the hub."""
    folder, text = Path(folder_or_id).expanduser(), str(folder_or_id)
    if folder.is_dir():
        return folder
    if not re.fullmatch(r"[\w-][\w.-]*(/[\w.-]+)?", text):
        raise FileNotFoundError(f"there is no folder {text}, and a hub id looks like owner/name")
    from huggingface_hub import snapshot_download

    return Path(snapshot_download(text, allow_patterns=["config.json", "model.safetensors"]))


def from_pretrained(cls, folder_or_id: str | os.PathLike, **changes):
    """See `Module.from_pretrained`."""
    folder = find_folder(folder_or_id)
    for name in ("config.json", "model.safetensors"):
        if not (folder / name).is_file():
            others = ", ".join(sorted(path.name for path in folder.iterdir())) or "nothing"
            raise FileNotFoundError(
                f"{folder_or_id} has no {name} (there is {others}). A .bin, .pt or .ckpt can run code when "
                "opened and is not read; who trusts it can open and save it again in transformers"
            )
    from .variants import FAMILIES

    entries = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    config = FAMILIES.get(entries.get("model_type"), BertConfig).from_hf(entries)
    with torch.device("meta"):  # no memory and no random numbers for values that the file replaces
        model = (config.encoder_class() if cls is Bert else cls)(replace(config, **changes))
    model.loaded = load_weights(model, folder / "model.safetensors")
    if model.loaded.fresh:
        print(f"not in {folder_or_id}, so these start fresh and need training: {', '.join(model.loaded.fresh)}")
    return model.eval()


def state_for_file(model: Module) -> dict[str, Tensor]:
    """Every parameter under the file's names, query, key and value apart again."""
    values = {canonical(name): p.detach().cpu() for name, p in model.named_parameters()}
    state, config = {}, model.config
    for _, ours, theirs in table_for(config.num_stored_layers, config.more_tensors):
        if ours in values:
            state |= zip(theirs, map(Tensor.clone, values[ours].chunk(len(theirs))), strict=True)
    if isinstance(model, Bert):
        state = {name.removeprefix("bert."): tensor for name, tensor in state.items()}
    classifier = model.hf_name == "BertForSequenceClassification"
    for berts, theirs in names_for(config, classifier):
        state = {name.replace(berts, theirs): tensor for name, tensor in state.items()}
    return state


def save_pretrained(model: Module, folder: str | os.PathLike) -> None:
    """See `Module.save_pretrained`. Both files are written aside first: each appears whole or not at all."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    aside = {name: folder / f"{name}.{os.getpid()}.tmp" for name in ("config.json", "model.safetensors")}
    family = model.config.encoder_class().__name__  # transformers uses the same: RobertaForMaskedLM
    entries = {"architectures": [model.hf_name.replace("Bert", family)], **model.config.to_hf()}
    try:
        aside["config.json"].write_text(json.dumps(entries, indent=2) + "\n", encoding="utf-8")
        save_file(state_for_file(model), aside["model.safetensors"], metadata={"format": "pt"})
        shutil.copymode(aside["config.json"], aside["model.safetensors"])  # safetensors lets only the owner read
        for name, path in aside.items():
            os.replace(path, folder / name)
    finally:
        for path in aside.values():
            path.unlink(missing_ok=True)
