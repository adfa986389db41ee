"""Your own BERT: a student's functions from units 01 to 06, put together into one model that runs real weights.

The notebooks are read from a folder. Of their cells only imports, functions, classes and plain constants are
executed, in this process: it is the student's own code on the student's own machine. Each function is tried with its
instant check; where one is missing or wrong it is named, and the course's own stands in for it.
"""

import ast
import json
import linecache
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from coursework import checks
from coursework.cast import CAST, NEXT
from coursework.checks.engine import INSTANT_SEED, Exercise, run_here

# What the model is made of, in the order in which a text passes it: lesson, function, its work.
PIECES = (
    ("03_wordpiece", "split_words", "cuts a text into words"),
    ("03_wordpiece", "encode_word", "cuts a word into pieces"),
    ("02_embeddings", "build_inputs", "makes BERT's three rows of a pair"),
    ("02_embeddings", "pad_batch", "makes a batch of the rows"),
    ("06_model", "load_weights", "reads the file of weights"),
    ("02_embeddings", "embeddings", "makes the first vectors"),
    ("01_attention", "mask_to_bias", "hides padding, layer 1"),
    ("01_attention", "split_heads", "splits the heads, layer 1"),
    ("01_attention", "scaled_dot_product_attention", "attends, layer 1"),
    ("01_attention", "merge_heads", "merges the heads, layer 1"),
    ("01_attention", "multi_head_attention", "attends, layer 2"),
    ("02_embeddings", "layer_norm", "normalises, layers 1 and 2"),
    ("06_model", "feed_forward", "thinks, layers 1 and 2"),
    ("06_model", "encoder_layer", "is layers 3 to 6"),
    ("06_model", "Encoder", "holds the layers"),
    ("06_model", "pooler", "makes one vector of a text"),
    ("04_mlm", "mlm_head", "scores the pieces for a blank"),
    ("05_nsp", "nsp_head", "says whether B follows A"),
    ("06_model", "bert", "does all of it a second time"),
)
PROMPTS = (
    "the captain and his crew sailed across the [MASK] .",
    "he opened the [MASK] and walked into the room .",
    "once upon a time there lived an old king who had three [MASK] .",
)
CLOSE = 1e-4  # how far the numbers may be from the package's


class CapstoneError(Exception):
    """There is nothing to put together; the message says what to do."""


@dataclass(frozen=True)
class Piece:
    """One function of the model: whose it is, and why it is the course's where it is."""

    exercise: Exercise
    work: str
    function: Callable
    yours: bool
    word: str = ""


# ---------------------------------------------------------------- collecting


def find_notebook(folder: Path, lesson: str) -> Path | None:
    """The student's notebook of an assignment, anywhere below the folder; the last saved where there are several.

    In the course's own folder the work is done in exercises/.
    """
    folder = folder / "exercises" if (folder / "exercises").is_dir() else folder
    found = [path for path in folder.rglob(f"{lesson}.ipynb") if ".ipynb_checkpoints" not in path.parts]
    found = [path for path in found if "grade(globals())" in path.read_text(encoding="utf-8")]  # no lesson
    return max(found, key=lambda path: path.stat().st_mtime, default=None)


def definitions(notebook: Path) -> tuple[dict[str, Any], list[str]]:
    """The names that a notebook's imports, functions, classes and constants define, and what went wrong on the way.

    Raises CapstoneError for a file that is no notebook.
    """
    try:
        cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    except (ValueError, KeyError, TypeError) as error:
        raise CapstoneError(f"{notebook} cannot be read as a notebook: open it and save it again") from error
    names: dict[str, Any] = {"__name__": "capstone"}
    troubles = []
    for number, cell in enumerate(cells):
        if cell.get("cell_type") != "code":
            continue
        source = "".join(cell["source"])
        where = f"{notebook.name}, cell {cell.get('id', number)}"
        try:
            nodes = [node for node in ast.parse(source).body if _only_defines(node)]
        except SyntaxError as error:
            troubles.append(f"{where}: {error.msg} in line {error.lineno}")
            continue
        linecache.cache[where] = (len(source), None, source.splitlines(keepends=True), where)  # for messages
        for node in nodes:
            try:
                exec(compile(ast.Module([node], []), where, "exec"), names)
            except Exception as error:  # whatever a student's line may raise: told, and the other cells still count
                troubles.append(f"{where}: {type(error).__name__}: {error}")
    return names, troubles


def _only_defines(node: ast.stmt) -> bool:
    """Imports, functions and classes, and assignments that call nothing: no training, no drawing, no check."""
    if isinstance(node, ast.Import):
        return True
    if isinstance(node, ast.ImportFrom):
        return (node.module or "").partition(".")[0] != "coursework"
    if isinstance(node, ast.Assign):
        return not any(isinstance(part, (ast.Call, ast.Await)) for part in ast.walk(node.value))
    return isinstance(node, (ast.FunctionDef, ast.ClassDef))


def collect(folder: Path) -> list[Piece]:
    """Every piece of the model, from the folder's notebooks where it is there and passes its check.

    Raises CapstoneError if the folder holds none of the notebooks, or one cannot be read.
    """
    lessons = list(dict.fromkeys(lesson for lesson, _, _ in PIECES))
    paths = {lesson: find_notebook(folder, lesson) for lesson in lessons}
    if not any(paths.values()):
        raise CapstoneError(f"no notebook of units 01 to 06 below {folder.resolve()}: name the folder that holds them")
    read = {lesson: definitions(path) for lesson, path in paths.items() if path}
    pieces = []
    for lesson, name, work in PIECES:
        exercise = checks.find(lesson, name)
        if lesson not in read:
            pieces.append(_stand_in(exercise, work, f"there is no {lesson}.ipynb"))
            continue
        names, troubles = read[lesson]
        if name not in names:
            said = f"missing in {lesson}.ipynb" + (f" ({troubles[0]})" if troubles else "")
            pieces.append(_stand_in(exercise, work, said))
            continue
        verdict = exercise.verdict(run_here(names), seed=INSTANT_SEED)
        if verdict.passed:
            pieces.append(Piece(exercise, work, names[name], yours=True))
        else:
            said = "not written yet" if verdict.blank else f"fails its check: {verdict.looks or verdict.what}"
            pieces.append(_stand_in(exercise, work, said))
    return pieces


def _stand_in(exercise: Exercise, work: str, word: str) -> Piece:
    return Piece(exercise, work, next(iter(exercise.alternatives.values())).function, yours=False, word=word)


# ---------------------------------------------------------------- one model


class YourBert:
    """The pieces as one model with the weights of a folder. In use only: no gradients, no dropout."""

    def __init__(self, pieces: list[Piece], folder: Path):
        from safetensors.torch import load_file

        from bert_minimal import WordPiece

        self.do = {piece.exercise.name: piece.function for piece in pieces}
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        tokenizer = WordPiece.from_pretrained(folder)
        self.vocab, self.pieces, self.lower = tokenizer.vocab, tokenizer.pieces, tokenizer.do_lower_case
        self.heads, self.depth = config["num_attention_heads"], config["num_hidden_layers"]
        self.stored = {name: tensor.float() for name, tensor in load_file(folder / "model.safetensors").items()}
        self.rows = wanted(config)
        self.weights = self.do["load_weights"](self.stored, self.rows)

    def batch(self, texts: list[str | tuple[str, str]]) -> dict[str, Tensor]:
        """Texts or pairs -> input_ids, token_type_ids, attention_mask, each (B, S)."""
        special = {f"{name}_id": self.vocab[f"[{name.upper()}]"] for name in ("cls", "sep", "pad")}
        rows = []
        for text in texts:
            a, b = (text, None) if isinstance(text, str) else text
            a, b = self.ids(a), None if b is None else self.ids(b)
            length = len(a) + (2 if b is None else len(b) + 3)
            rows.append(self.do["build_inputs"](a, b, max_length=length, **special))
        return self.do["pad_batch"](rows, special["pad_id"])

    def ids(self, text: str) -> list[int]:
        words = self.do["split_words"](text, lower=self.lower)
        return [self.vocab[p] for word in words for p in self.word(word)]

    def word(self, word: str) -> list[str]:
        return [word] if word in ("[MASK]", "[SEP]", "[CLS]") else self.do["encode_word"](word, self.vocab)

    @torch.no_grad()
    def states(self, input_ids: Tensor, token_type_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """(B, S) three times -> (B, S, D): embeddings, then the layers in the student's stack."""
        hidden = self.do["embeddings"](input_ids, token_type_ids, self.part("embeddings."))
        numbers = iter(range(self.depth))
        stack = self.do["Encoder"](lambda: _Layer(self, next(numbers)), self.depth).eval()
        return stack(hidden, attention_mask)

    def part(self, prefix: str) -> dict[str, Tensor]:
        return {n.removeprefix(prefix): w for n, w in self.weights.items() if n.startswith(prefix)}

    @torch.no_grad()
    def pooled(self, states: Tensor) -> Tensor:
        return self.do["pooler"](states, self.part("pooler."))

    @torch.no_grad()
    def whole(self, input_ids: Tensor, token_type_ids: Tensor, attention_mask: Tensor) -> tuple[Tensor, Tensor]:
        """The same by exercise 06.7: states and pooled vectors in one function."""
        ours = {ours: theirs for theirs, ours, _ in self.rows}
        theirs = {ours[name]: tensor for name, tensor in self.weights.items()}
        return self.do["bert"](input_ids, token_type_ids, attention_mask, theirs, self.heads)

    @torch.no_grad()
    def scores(self, states: Tensor) -> Tensor:
        """(…, D) -> (…, V), for a file that has the masked-LM head."""
        head = {"dense": "cls.predictions.transform.dense", "norm": "cls.predictions.transform.LayerNorm"}
        weights = {f"{ours}.{kind}": self.stored[f"{theirs}.{kind}"]
                   for ours, theirs in head.items() for kind in ("weight", "bias")}  # fmt: skip
        weights |= {"word": self.weights["embeddings.word"], "decoder.bias": self.stored["cls.predictions.bias"]}
        return self.do["mlm_head"](states, weights)

    @torch.no_grad()
    def follows(self, states: Tensor) -> Tensor:
        """(B, S, D) -> (B, 2), for a file that has the next-sentence head: scores of yes and no."""
        kinds = ("weight", "bias")
        weights = {f"pooler.{kind}": self.weights[f"pooler.{kind}"] for kind in kinds}
        weights |= {f"classifier.{kind}": self.stored[f"cls.seq_relationship.{kind}"] for kind in kinds}
        return self.do["nsp_head"](states, weights)


class _Layer(torch.nn.Module):
    """Layer 1 of the smallest pieces, layer 2 of multi-head attention, the others of encoder_layer."""

    def __init__(self, model: YourBert, number: int):
        super().__init__()
        self.do, self.heads, self.number = model.do, model.heads, number
        self.weights = model.part(f"layers.{number}.")

    def forward(self, hidden: Tensor, attention_mask: Tensor) -> Tensor:
        if self.number >= 2:
            return self.do["encoder_layer"](hidden, self.weights, self.heads, attention_mask)
        attend = self.smallest if self.number == 0 else self.do["multi_head_attention"]
        x = self.norm(hidden + attend(hidden, self.weights, self.heads, attention_mask), "attention_norm")
        return self.norm(x + self.do["feed_forward"](x, self.weights), "norm")

    def norm(self, x: Tensor, name: str) -> Tensor:
        return self.do["layer_norm"](x, self.weights[f"{name}.weight"], self.weights[f"{name}.bias"])

    def smallest(self, hidden: Tensor, weights: dict[str, Tensor], heads: int, mask: Tensor) -> Tensor:
        query, key, value = (
            self.do["split_heads"](F.linear(hidden, weights[f"{name}.weight"], weights[f"{name}.bias"]), heads)
            for name in ("query", "key", "value")
        )
        context = self.do["scaled_dot_product_attention"](query, key, value, bias=self.do["mask_to_bias"](mask))
        return F.linear(self.do["merge_heads"](context), weights["output.weight"], weights["output.bias"])


def wanted(config: dict) -> list[tuple[str, str, tuple[int, ...]]]:
    """Rows for exercise 06.6 from a config.json: name in the file, our name, shape."""
    from coursework.checks.model import OURS

    d, f = config["hidden_size"], config["intermediate_size"]
    tables = (("word", "word", config["vocab_size"]), ("position", "position", config["max_position_embeddings"]),
              ("token_type", "segment", config["type_vocab_size"]))  # fmt: skip
    rows: list[tuple[str, str, tuple[int, ...]]]
    rows = [(f"embeddings.{theirs}_embeddings.weight", f"embeddings.{ours}", (n, d)) for theirs, ours, n in tables]
    sizes = {"embeddings.LayerNorm": ("embeddings.norm", (d,)), "pooler.dense": ("pooler", (d, d))}
    for i in range(config["num_hidden_layers"]):
        for ours, theirs in OURS.items():
            shape = {"up": (f, d), "down": (d, f), "norm": (d,), "attention_norm": (d,)}.get(ours, (d, d))
            sizes[f"encoder.layer.{i}.{theirs}"] = f"layers.{i}.{ours}", shape
    for theirs, (ours, shape) in sizes.items():
        rows += [(f"{theirs}.weight", f"{ours}.weight", shape), (f"{theirs}.bias", f"{ours}.bias", shape[:1])]
    return rows


# ---------------------------------------------------------------- what it shows


def capstone(folder: str | Path = ".") -> bool:
    """Collect, put together, compare with the package and fill in blanks; prints what it finds.

    Returns whether every number is the package's, to 1e-4.
    Raises:
        CapstoneError: no notebooks there.
        FetchError: MiniLM's weights are neither in the cache nor to be had.
    """
    from bert_minimal.train.data import fetch

    pieces = collect(Path(folder))
    _show(pieces)
    minilm = YourBert(pieces, fetch("minilm"))
    equal = _compare(minilm, fetch("minilm"), "MiniLM, 22.7 million real weights")
    course = YourBert(pieces, fetch("course"))
    equal &= _compare(course, fetch("course"), "the course's own model")
    equal &= _compare_heads(course, fetch("course"))
    _fill(course)
    mine = sum(piece.yours for piece in pieces)
    if mine == len(pieces) and equal:
        print("\nEvery line of this BERT is yours.")
    elif equal:
        print(f"\n{mine} of its {len(pieces)} pieces are yours. Write the others, and run this again.")
    return equal


def _show(pieces: list[Piece]) -> None:
    print("Your BERT, piece by piece:")
    for piece in pieces:
        name = f"{piece.exercise.number} {piece.exercise.name}"
        print(f"  {'✓ yours       ' if piece.yours else '○ the course’s'}  {name:<36} {piece.work}")
        if piece.word:
            print(f"{'':18}{piece.word}")


@torch.no_grad()
def _compare(mine: YourBert, folder: Path, title: str) -> bool:
    from bert_minimal import Bert

    model: Any = Bert.from_pretrained(folder)
    batch, real = _pairs(mine)
    states, theirs = mine.states(**batch), model(**batch)
    again, pooled_again = mine.whole(**batch)
    print(f"\n{title}: {int(real.sum())} tokens in {len(real)} pairs, yours beside the package's")
    return _near(
        {
            "states, piece by piece": (states - theirs.last_hidden_state)[real],
            "states, by bert (06.7)": (again - theirs.last_hidden_state)[real],
            "pooled, by pooler": mine.pooled(states) - theirs.pooler_output,
            "pooled, by bert (06.7)": pooled_again - theirs.pooler_output,
        }
    )


@torch.no_grad()
def _compare_heads(mine: YourBert, folder: Path) -> bool:
    from bert_minimal.heads import MaskedLM, NextSentence

    masked: Any = MaskedLM.from_pretrained(folder)
    follows: Any = NextSentence.from_pretrained(folder)
    batch, real = _pairs(mine)
    states = mine.states(**batch)
    return _near(
        {
            "scores for a blank": (mine.scores(states) - masked(**batch).logits)[real],
            "scores for “B follows A”": mine.follows(states) - follows(**batch).logits,
        }
    )


def _pairs(mine: YourBert) -> tuple[dict[str, Tensor], Tensor]:
    """The cast with what comes next, and which tokens are real."""
    batch = mine.batch([(CAST[name], NEXT[name]) for name in CAST])
    return batch, batch["attention_mask"] == 1


def _near(gaps: dict[str, Tensor]) -> bool:
    off = {name: float(gap.abs().max()) for name, gap in gaps.items()}
    for name, size in off.items():
        print(f"  {'✓' if size < CLOSE else '✗'} {name:<26} off by at most {size:.0e}")
    return max(off.values()) < CLOSE


def _fill(mine: YourBert) -> None:
    print("\nYour BERT fills in blanks (the course's weights):")
    for text in PROMPTS:
        batch = mine.batch([text])
        row, place = (batch["input_ids"] == mine.vocab["[MASK]"]).nonzero()[0].tolist()
        scores = mine.scores(mine.states(**batch)[row, place][None])[0]
        best = scores.softmax(0).topk(4)
        guesses = ", ".join(f"{mine.pieces[i]} {p:.0%}" for p, i in zip(*map(Tensor.tolist, best), strict=True))
        print(f"  {text}\n      {guesses}")
