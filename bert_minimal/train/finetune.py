"""Fine-tuning: a pre-trained BERT, a fresh head, a few thousand labelled examples (Devlin et al. 2019, section 4).

    from bert_minimal.train.finetune import FineTuneOptions, Text, classify, class_logits

    train = [Text("a warm , funny film", "good"), Text("dull", "bad"), …]     # Text(text, label, pair)
    result = classify("course", train, dev, options=FineTuneOptions(epochs=3, seed=0))
    result.scores                       # on dev: loss, accuracy, f1, mcc, of the weights that were kept
    result.model, result.tokenizer      # SequenceClassifier in eval mode, WordPiece
    result.answers                      # logits (dev, K), numpy; result.labels names the K classes
    class_logits(result, [Text("what a mess")])                               # logits (1, K) for other texts

The start is a catalogue name ("course", "minilm"), a folder or a hub id. `FineTuneOptions(frozen=True)` learns
the head and the pooler only, `random=True` starts from random weights instead of the folder's; several seeds
are a loop: `[classify(…, options=replace(options, seed=s)).scores["accuracy"] for s in range(5)]`, and
`scores.mean_sd` of it. `long="windows"` (and pool, stride) reads documents that are longer than max_length.

This file has what all tasks share (options, batches, `fit`) and classification; tagging.py and answering.py
have the other two, finetune_command.py the command line. Training itself is loop.py's.
"""

import contextlib
import io
import json
import math
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import torch
import torch.nn.functional as F
from safetensors import safe_open
from safetensors.torch import save
from torch import Tensor, nn

from .. import windows
from ..checkpoint import find_folder
from ..config import BertConfig
from ..heads import NO_LABEL, SequenceClassifier
from ..model import Module
from ..variants import FAMILIES
from ..wordpiece import SPECIAL, WordPiece
from . import data
from .corpus import write_whole
from .loop import TrainingStopped, TrainOptions, choose_precision, train
from .scores import class_scores

SORTED_TOGETHER = 8  # batches whose examples are sorted by length before they are cut
ANSWER_TOKENS = 8192  # pieces at once when nothing is learned

Long = Literal["cut", "head+tail", "windows"]
Pool = Literal["mean", "max"]
Precision = Literal["", "fp32", "bf16", "fp16"]


@dataclass(frozen=True)
class FineTuneOptions:
    """The defaults are the paper's recipe: Devlin et al. 2019, A.3, found the same few values good on all tasks,
    batch 16 or 32, learning rate 5e-5, 3e-5 or 2e-5, 2 to 4 epochs, dropout 0.1; 4.1 takes batch 32, 3 epochs.
    The rate falls linearly to 0 (A.2). That it first rises for a tenth of the steps stands in Google's code only.
    """

    epochs: float = 3  # times through the training examples
    batch: int = 32  # examples a step
    learning_rate: float = 5e-5  # at its highest, after the warm-up
    warmup: float = 0.1  # share of the steps
    max_length: int = 0  # pieces, with [CLS] and [SEP]; 0: 128, and 384 for questions with their passages
    seed: int = 0  # head, order, dropout
    frozen: bool = False  # learn head and pooler only; the encoder stays as it is, without dropout
    random: bool = False  # don't take the encoder's weights from the start, only its sizes and vocabulary
    class_weights: bool = False  # rare classes count more: each class the same in sum
    accumulate: int = 1  # parts into which a step's batch is cut: the same result in less memory
    evaluate_every: int = 0  # steps; 0: after each epoch
    patience: int = 0  # stop after so many evaluations without a better one; 0: never
    best_by: str = ""  # the dev score that says which weights are kept; empty: the task's usual one
    long: Long = "cut"  # texts over max_length (classification)
    pool: Pool = "mean"  # over windows, of what the pooler gives
    stride: int = 0  # pieces between the starts of two windows; 0: half a window
    precision: Precision = ""  # empty: what the device does best

    def __post_init__(self):
        for names, holds, what in (
            ("epochs batch learning_rate accumulate", lambda x: 0 < x < math.inf, "above 0 and finite"),
            ("max_length seed evaluate_every patience stride", lambda x: x >= 0, "0 or above"),
            ("warmup", lambda x: 0 <= x <= 1, "a share of the steps, from 0 to 1"),
        ):
            for name in names.split():
                if not holds(getattr(self, name)):
                    raise ValueError(f"{option(name)} is {getattr(self, name)}; it has to be {what}")
        for name, choices in (("long", Long), ("pool", Pool), ("precision", Precision)):
            if getattr(self, name) not in get_args(choices):
                raise ValueError(f"{option(name)} is {getattr(self, name)!r}; it has to be one of {get_args(choices)}")
        if self.max_length and self.max_length < 3:
            raise ValueError(f"--max-length is {self.max_length}; [CLS], one piece and [SEP] are the least")
        if self.batch % self.accumulate:
            raise ValueError(f"a batch of {self.batch} does not split into --accumulate {self.accumulate} equal parts")


def option(name: str) -> str:
    """An option as the command line calls it."""
    return f"--{name.replace('_', '-')}"


PAPER = FineTuneOptions()


def refuse_options(options: FineTuneOptions, names: str, why: str) -> None:
    """Raise ValueError if an option was chosen that would change nothing here."""
    for name in names.split():
        if getattr(options, name) != getattr(PAPER, name):
            raise ValueError(f"{option(name)} {getattr(options, name)} would change nothing {why}: leave it out")


class Text(NamedTuple):
    """One example to classify. label: a class's name, or its number; None where it is to be found."""

    text: str
    label: str | int | None = None
    pair: str | None = None


class Row(NamedTuple):
    """One sequence for the model."""

    ids: list[int]
    types: list[int]


@dataclass
class Result:
    """What came of fine-tuning; the model has the best weights on dev (without dev: the last ones)."""

    model: Any
    tokenizer: WordPiece
    labels: tuple[str, ...]
    options: FineTuneOptions
    scores: dict[str, float]  # on dev
    log: list[dict]  # rows of the loop: step, loss, …, held_out_SCORE
    kept_step: int
    seconds: float
    answers: Any = None  # on dev; what they are says each task
    settings: dict = field(default_factory=dict)  # what only one task has


# ---- classification


def classify(
    start: str | Path,
    train_texts: Sequence[Text],
    dev_texts: Sequence[Text] = (),
    labels: Sequence[str] | None = None,
    options: FineTuneOptions = PAPER,
    out: Path | None = None,
) -> Result:
    """Fine-tune a `SequenceClassifier` (section 4.1); the best weights by accuracy on dev are kept.

    Args:
        labels: names of the classes; a label in the texts is then one of these, or its number. None: the names
            are the labels of the training texts, in order.
        out: a folder for the log, and for the state from which a run that was broken off goes on.

    Raises ValueError for labels that don't fit, TrainingStopped when memory is short or training diverges.
    """
    options = replace(options, max_length=options.max_length or 128)
    if options.long != "windows":
        refuse_options(options, "pool", "without --long windows")
    labels = tuple(labels) if labels else class_names(train_texts)
    if len(labels) < 2:
        raise ValueError(f"the training texts have the labels {list(labels)}: two or more are needed to tell apart")
    gold = class_numbers(train_texts, labels, "training text", dev_texts)
    dev_gold = class_numbers(dev_texts, labels, "dev text", train_texts)
    tokenizer, model = open_start(SequenceClassifier, start, options, labels=labels)
    encoded, dev_encoded = (encode_texts(tokenizer, texts, options) for texts in (train_texts, dev_texts))

    def make_batch(chosen: Sequence[int]) -> dict[str, Tensor]:
        return text_batch([encoded[i] for i in chosen]) | {"labels": torch.tensor([gold[i] for i in chosen])}

    def measure(model: Any) -> tuple[dict[str, float], np.ndarray]:
        logits = logits_of(model, dev_encoded, options.pool)  # (dev, K)
        loss = F.cross_entropy(torch.from_numpy(logits), torch.tensor(dev_gold)).item()
        return {"loss": loss, **class_scores(dev_gold, logits.argmax(1), len(labels))}, logits

    weights = balanced(gold, len(labels)) if options.class_weights else None
    return fit(
        Result(model, tokenizer, labels, options, {}, [], 0, 0.0),
        [sum(len(row.ids) for row in rows) for rows in encoded],
        make_batch,
        ClassObjective(options.pool, weights),
        measure if dev_texts else None,
        ("accuracy", "f1", "mcc", "loss"),
        out,
    )


def class_logits(result: Result, texts: Sequence[Text]) -> np.ndarray:
    """(n, K): the scores of a fine-tuned classifier before softmax."""
    return logits_of(result.model, encode_texts(result.tokenizer, texts, result.options), result.options.pool)


def class_names(texts: Sequence[Text]) -> tuple[str, ...]:
    """The labels that occur, in order; whole numbers come first, by their size."""
    names = {str(text.label) for text in texts if text.label is not None}
    numbers = {name for name in names if re.fullmatch(r"-?[0-9]+", name)}
    return (*sorted(numbers, key=int), *sorted(names - numbers))


def class_numbers(texts: Sequence[Text], labels: tuple[str, ...], what: str, beside: Sequence[Text] = ()) -> list[int]:
    """Raises ValueError naming the first text whose label is none of `labels`.

    A name may look like a number ("1" may be class 0): whether labels are names or numbers is decided once, for
    these texts and those `beside` them. They are numbers if not all are names and all are whole numbers.
    """
    known = {name: number for number, name in enumerate(labels)}
    given = [text.label for text in (*texts, *beside) if text.label is not None]
    if not all(str(label) in known for label in given) and all(isinstance(label, int) for label in given):
        known = {str(number): number for number in range(len(labels))}
    for at, text in enumerate(texts):
        if text.label is None or str(text.label) not in known:
            raise ValueError(f"{what} {at} has the label {text.label!r}; the classes are {', '.join(labels)}")
    return [known[str(text.label)] for text in texts]


def balanced(gold: Sequence[int], classes: int) -> Tensor:
    """(K,) weights with which each class has the same share in the loss; their mean over the examples is 1."""
    counts = torch.bincount(torch.tensor(gold), minlength=classes)
    return len(gold) / (classes * counts.clamp(min=1))


def encode_texts(tokenizer: WordPiece, texts: Sequence[Text], options: FineTuneOptions) -> list[list[Row]]:
    """Each text as one row, or as several where it is read in windows. Of a pair the longer text is cut."""
    found = []
    for text in texts:
        if text.pair is not None or options.long == "cut":
            encoding = tokenizer(text.text, text.pair, max_length=options.max_length)
            found.append([Row(encoding.input_ids, encoding.token_type_ids)])
            continue
        pieces, room = tokenizer(text.text).input_ids[1:-1], options.max_length - 2
        if options.long == "head+tail":
            parts = [windows.head_tail(pieces, room)]
        else:
            stride = options.stride or max(1, room // 2)
            parts = [pieces[a:b] for a, b in windows.windows(len(pieces), room, stride)]
        found.append([Row([tokenizer.cls_id, *p, tokenizer.sep_id], [0] * (len(p) + 2)) for p in parts])
    return found


def text_batch(texts: list[list[Row]]) -> dict[str, Tensor]:
    """B texts of one or more windows. document (W,): the text that each window is from, absent if W = B."""
    batch = lay_out([row for rows in texts for row in rows])
    if any(len(rows) > 1 for rows in texts):
        batch["document"] = torch.repeat_interleave(torch.tensor([len(rows) for rows in texts]))
        batch["documents"] = torch.empty(len(texts), dtype=torch.uint8)  # only its shape says something
    return batch


def text_logits(model: Any, batch: dict[str, Tensor], how: str) -> Tensor:
    """-> (B, K). Windows are pooled before the classifier, so that "max" picks features, not classes."""
    stream = stream_of(batch)
    if "document" not in batch:
        return model.stream(**stream)
    pooled = model.bert.pooler(model.bert.stream(**stream), stream["cu_seqlens"])  # (W, D)
    pooled = windows.pool(pooled, batch["document"], len(batch["documents"]), how)  # (B, D)
    pooled = F.dropout(pooled, model.config.hidden_dropout_prob, model.training)
    return F.linear(pooled, model.classifier_weight, model.classifier_bias)


@torch.inference_mode()
def logits_of(model: Any, encoded: list[list[Row]], how: str) -> np.ndarray:
    """(n, K) float32, in the order of `encoded`."""
    logits = np.zeros((len(encoded), len(model.config.labels)), np.float32)
    for chosen in by_length([sum(len(row.ids) for row in rows) for rows in encoded]):
        batch = to_device(text_batch([encoded[i] for i in chosen]), model)
        logits[chosen] = text_logits(model, batch, how).float().cpu().numpy()
    return logits


class ClassObjective:
    """Cross-entropy of one label a text."""

    names = ("class",)

    def __init__(self, pool: str, weights: Tensor | None = None):
        self.pool, self.weights = pool, weights

    def count(self, batch: dict[str, Tensor]) -> Tensor:
        return (batch["labels"] != NO_LABEL).sum().float()[None]

    def losses(self, model: Any, batch: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        logits, labels = text_logits(model, batch, self.pool).float(), batch["labels"]
        weights = None if self.weights is None else self.weights.to(logits.device)
        loss = F.cross_entropy(logits, labels, weights, ignore_index=NO_LABEL, reduction="sum")
        return loss[None], (logits.argmax(-1) == labels).sum().float()[None]


# ---- what all tasks share: batches


def lay_out(rows: Sequence[Row]) -> dict[str, Tensor]:
    """Sequences end to end, without padding (see stream.py): N tokens, B sequences."""
    lengths = torch.tensor([len(row.ids) for row in rows])
    return {
        "input_ids": torch.tensor([i for row in rows for i in row.ids]),  # (N,)
        "token_type_ids": torch.tensor([i for row in rows for i in row.types]),  # (N,)
        "position_ids": torch.cat([torch.arange(n) for n in lengths.tolist()]),  # (N,)
        "cu_seqlens": F.pad(lengths.cumsum(0), (1, 0)).to(torch.int32),  # (B + 1,)
        "longest": torch.empty(int(lengths.max()), dtype=torch.uint8),  # only its shape says something
    }


def stream_of(batch: dict[str, Tensor]) -> dict[str, Any]:
    """The keywords of `model.stream`."""
    names = ("input_ids", "token_type_ids", "position_ids", "cu_seqlens")
    return {name: batch[name] for name in names} | {"max_seqlen": len(batch["longest"])}


def to_device(batch: dict[str, Tensor], model: nn.Module) -> dict[str, Tensor]:
    """The batch on the model's device."""
    device = next(model.parameters()).device
    return {name: value.to(device) for name, value in batch.items()}


def by_length(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Numbers of all examples, the longest first, in batches of about ANSWER_TOKENS pieces."""
    order, start = sorted(range(len(lengths)), key=lambda i: -lengths[i]), 0
    while start < len(order):
        size = max(1, ANSWER_TOKENS // max(1, lengths[order[start]]))
        yield order[start : start + size]
        start += size


class Batches:
    """Which examples are in which step: a function of (seed, step), so that a run can go on anywhere.

    Each epoch deals out all examples once, in batches whose sizes differ by at most one. Within a few batches
    examples are sorted by length: a batch then has neighbours of like length, which is what attention is
    fastest on. The order of the batches is drawn anew.
    """

    def __init__(self, lengths: Sequence[int], batch: int, seed: int):
        self.lengths, self.batch, self.seed = np.asarray(lengths), batch, seed
        self.steps_an_epoch = -(-len(lengths) // batch)
        self.epoch, self.dealt = -1, []

    def __getitem__(self, step: int) -> list[int]:
        epoch, place = divmod(step, self.steps_an_epoch)
        if epoch != self.epoch:
            self.epoch, self.dealt = epoch, self.deal(epoch)
        return self.dealt[place].tolist()

    def deal(self, epoch: int) -> list[np.ndarray]:
        rng = np.random.default_rng((self.seed, epoch))
        batches = np.array_split(rng.permutation(len(self.lengths)), self.steps_an_epoch)
        dealt = []
        for start in range(0, len(batches), SORTED_TOGETHER):
            few = batches[start : start + SORTED_TOGETHER]
            together = np.concatenate(few)
            together = together[np.argsort(self.lengths[together], kind="stable")]
            dealt += np.split(together, np.cumsum([len(b) for b in few])[:-1])
        return [dealt[i] for i in rng.permutation(len(dealt))]


# ---- what all tasks share: start, training, the best weights


def open_start(kind: type[Module], start: str | Path, options: FineTuneOptions, **changes) -> tuple[WordPiece, Any]:
    """Tokenizer, and a model with a fresh head on the device that there is.

    Raises ValueError or FileNotFoundError for what is no checkpoint of BERT, saying what to do.
    """
    folder = find_start(start)
    torch.manual_seed(options.seed)
    if options.random:
        entries = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        config = FAMILIES.get(entries.get("model_type"), BertConfig).from_hf(entries)
        model = kind(replace(config, **changes))
    else:
        with contextlib.redirect_stdout(io.StringIO()):  # it would say that the head is fresh: that is the point
            model = kind.from_pretrained(folder, **changes)
        if any(name.startswith("bert.") for name in model.loaded.fresh):
            print(f"{start} was saved without a pooler: it starts fresh, like the head")
    tokenizer = open_tokenizer(folder)
    if len(tokenizer) > model.config.vocab_size:
        raise ValueError(f"{start}: {len(tokenizer)} pieces, but vectors for {model.config.vocab_size}: files mixed up")
    if options.max_length > model.config.max_position_embeddings:
        longer = "; --long windows reads longer texts all the same" if kind is SequenceClassifier else ""
        raise ValueError(
            f"--max-length is {options.max_length}, but {start} has {model.config.max_position_embeddings} positions: "
            f"lower it{longer}"
        )
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    return tokenizer, model.to(device)


def catalogue() -> list[str]:
    """Every name that can be fetched."""
    return ["course", *data.RESOURCES]


def find_start(start: str | Path) -> Path:
    """The folder of a catalogue name, a folder or a hub id."""
    path = Path(start).expanduser()
    files = list(path.iterdir()) if path.is_dir() else [path]
    has_safetensors = any(file.name == "model.safetensors" for file in files)
    if not has_safetensors and any(".ckpt" in file.name for file in files):
        where = path if path.is_dir() else path.parent
        raise ValueError(
            f"{start} is a TensorFlow checkpoint, which this program does not read. Convert it once: pip install "
            "'transformers<5' tensorflow in an environment of its own, then in Python: from transformers import "
            "BertConfig, BertForPreTraining as P; "
            f"P.from_pretrained({str(where / 'bert_model.ckpt.index')!r}, from_tf=True, config=BertConfig."
            f"from_json_file({str(where / 'bert_config.json')!r})).save_pretrained('NEW'). Copy vocab.txt to NEW and "
            "start from that"
        )
    if str(start) in catalogue() and not path.is_dir():
        return data.fetch(str(start))
    try:
        folder = find_folder(start)
    except (OSError, ValueError) as error:  # the hub's errors speak of its own cache
        reason = str(error).partition("\n")[0]
        raise FileNotFoundError(
            f"{start} is no folder and no catalogue name ({', '.join(catalogue())}), and the Hugging Face hub gave no "
            f"model of that name ({reason})"
        ) from error
    if not path.is_dir():
        WordPiece.from_pretrained(str(start))  # the hub's vocabulary comes into the same folder
    return folder


def open_tokenizer(folder: str | Path) -> WordPiece:
    """Cased vocabularies stay cased, also where no tokenizer_config.json says so; what one says holds."""
    tokenizer, stated = WordPiece.from_pretrained(folder), Path(folder) / "tokenizer_config.json"
    if stated.is_file() and "do_lower_case" in json.loads(stated.read_text(encoding="utf-8")):
        return tokenizer
    cased = any(piece != piece.lower() for piece in tokenizer.pieces if piece not in SPECIAL and piece[0] != "[")
    return WordPiece.from_pretrained(folder, do_lower_case=False) if cased else tokenizer


class HeadOnly(nn.Module):
    """The model as the loop sees it when the encoder is frozen: the only parameters are head and pooler, and the
    encoder never drops anything (dropout is there to make learning harder; nothing is learned in it)."""

    def __init__(self, model: Any):
        super().__init__()
        self.whole = model

    def parameters(self, recurse: bool = True) -> Iterator[nn.Parameter]:
        fixed = {id(p) for p in self.fixed()}
        return (p for p in self.whole.parameters(recurse) if id(p) not in fixed)

    def fixed(self) -> list[nn.Parameter]:
        return [p for name, p in self.whole.bert.named_parameters() if not name.startswith("pooler.")]

    def train(self, mode: bool = True) -> "HeadOnly":
        super().train(mode)
        for name, part in self.whole.bert.named_children():
            if name != "pooler":
                part.eval()
        return self

    def __getattr__(self, name: str) -> Any:  # stream, bert, config, classifier_weight …
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("whole"), name)

    @contextlib.contextmanager
    def frozen(self, precision: str) -> Iterator[None]:
        """Inside, the fixed parameters ask for no gradient and have the type that the head computes in."""
        fixed = self.fixed()
        values = [p.data for p in fixed]
        for p in fixed:
            p.requires_grad = False
            p.data = p.data.bfloat16() if precision == "bf16" else p.data
        try:
            yield
        finally:
            for p, value in zip(fixed, values, strict=True):
                p.data, p.requires_grad = value, True


class Best:
    """The weights with the best score so far, as they were measured; with a folder also in a file there."""

    def __init__(self, path: Path | None):
        self.path, self.score, self.values = path, -math.inf, []

    def offer(self, score: float, model: nn.Module) -> None:
        if score > self.score:
            self.score = score
            self.values = [p.detach().to("cpu", torch.float32, copy=True) for p in model.parameters()]
            if self.path is not None:
                self.write(self.path)

    def write(self, path: Path) -> None:
        tensors = {str(i): value for i, value in enumerate(self.values)}
        write_whole(path, save(tensors, {"score": str(self.score)}))

    def read(self, path: Path) -> None:
        with safe_open(path, framework="pt") as file:
            self.score = float(file.metadata()["score"])
            self.values = [file.get_tensor(str(i)) for i in range(len(file.keys()))]

    def give_back(self, model: nn.Module) -> None:
        for p, value in zip(model.parameters(), self.values, strict=True):
            p.data.copy_(value)


def fit(
    result: Result,
    lengths: Sequence[int],
    make_batch: Callable[[Sequence[int]], dict[str, Tensor]],
    objective: Any,
    measure: Callable[[Any], tuple[dict[str, float], Any]] | None,
    scored: tuple[str, ...],
    out: Path | None,
) -> Result:
    """Train `result.model` on examples of these lengths, and fill in the rest of `result`.

    make_batch: numbers of examples -> a batch. measure: model, in eval mode -> scores on dev and the answers that
    they are computed from. scored: names of these scores; the first decides, unless the options name another.
    """
    model, options, began = result.model, result.options, time.perf_counter()
    best_by = options.best_by or scored[0]
    if best_by not in scored:
        raise ValueError(f"--best-by is {best_by!r}; the scores here are {', '.join(scored)}")
    if not lengths:
        raise ValueError("there are no training examples")
    dealt = Batches(lengths, options.batch, options.seed)
    check_parts(options, len(lengths) // dealt.steps_an_epoch)
    loop_options = options_for_loop(options, dealt.steps_an_epoch, next(model.parameters()).device)
    learner: Any = HeadOnly(model) if options.frozen else model
    best = open_best(out)
    sign = -1 if best_by == "loss" else 1

    def batches(numbers: list[int]) -> Iterator[dict[str, Tensor]]:
        for number in numbers:
            step, part = divmod(number, options.accumulate)
            yield make_batch(dealt[step][part :: options.accumulate])

    def watch(learner: Any) -> dict[str, float]:
        scores, _ = measure(learner.eval())
        best.offer(sign * scores[best_by], learner)
        learner.train()
        return scores

    def enough(log: list[dict]) -> bool:
        found = [sign * row[f"held_out_{best_by}"] for row in log if f"held_out_{best_by}" in row]
        return 0 < options.patience < len(found) - found.index(max(found)) if found else False

    tokens = sum(lengths) // (dealt.steps_an_epoch * options.accumulate)
    kept = learner.frozen(loop_options.precision) if options.frozen else contextlib.nullcontext()
    with memory_advice(options), kept:
        on_dev = watch if measure else None
        result.log = train(
            learner, objective, batches, loop_options, out, on_dev, (tokens, 0.0), enough=enough if measure else None
        )
    if torch.cuda.is_available():
        torch.cuda.synchronize()  # the loop has a stream of its own
    model.eval()
    result.kept_step = result.log[-1]["step"]
    if measure is not None:
        best.give_back(learner)
        measured = [row for row in result.log if f"held_out_{best_by}" in row]
        result.kept_step = max(measured, key=lambda row: sign * row[f"held_out_{best_by}"])["step"]
        result.scores, result.answers = measure(model)
    result.seconds = time.perf_counter() - began
    return result


def check_parts(options: FineTuneOptions, smallest: int) -> None:
    """Raise ValueError if the smallest batch has fewer examples than there are parts: one would be empty."""
    if smallest < options.accumulate:
        fits = max(parts for parts in range(1, smallest + 1) if options.batch % parts == 0)
        raise ValueError(
            f"dealt out evenly, the training examples give batches of {smallest} too, which can't be cut into "
            f"{options.accumulate} parts: take --accumulate {fits}"
        )


def options_for_loop(options: FineTuneOptions, steps_an_epoch: int, device: torch.device) -> TrainOptions:
    """Epochs as steps; the dev set is measured, and the state saved, `evaluate_every` steps or once an epoch."""
    steps = max(1, round(options.epochs * steps_an_epoch))
    every = options.evaluate_every or steps_an_epoch
    return TrainOptions(
        steps=steps,
        learning_rate=options.learning_rate,
        warmup=round(options.warmup * steps),
        accumulate=options.accumulate,
        precision=options.precision or choose_precision(device),
        compile=False,  # every batch has another shape
        seed=options.seed,
        log_every=max(1, min(50, steps // 20)),
        evaluate_every=every,
        save_every=every,
    )


def open_best(out: Path | None) -> Best:
    """What an earlier part of this run found best; nothing if the run begins."""
    best = Best(None if out is None else out / "best.safetensors")
    if best.path is not None and best.path.exists():
        if (out / "state.safetensors").exists():
            best.read(best.path)
        else:
            best.path.unlink()
    return best


@contextlib.contextmanager
def memory_advice(options: FineTuneOptions) -> Iterator[None]:
    """Lack of memory, on a GPU or not, becomes TrainingStopped with the three things to change."""
    try:
        yield
    except (TrainingStopped, RuntimeError, MemoryError) as error:
        on_gpu = isinstance(error.__cause__, torch.OutOfMemoryError)
        on_cpu = isinstance(error, MemoryError) or "can't allocate memory" in str(error)
        if not (on_gpu or on_cpu):
            raise
        raise TrainingStopped(
            f"memory is short with batches of {options.batch // options.accumulate} sequences of up to "
            f"{options.max_length} pieces. Three things to change, the first costs nothing but time:\n"
            f"  1. --accumulate {2 * options.accumulate}: the same batch in smaller bites, the same result\n"
            f"  2. --max-length {options.max_length // 2}: what comes after is not read (texts: or --long windows)\n"
            "  3. a smaller --model, or --frozen: no gradients and no optimizer state for the encoder\n"
            "In Python these are fields of FineTuneOptions: accumulate, max_length, long, frozen"
        ) from error
