"""Fine-tuning on a CPU: this package against transformers, the same recipe, paired over seeds.

    BERT_TEST_DATA=… python benchmarks/finetune_cpu.py --seeds 0 1                 # 1,000 sentences: minutes a seed
    BERT_TEST_DATA=… python benchmarks/finetune_cpu.py --seeds 0 1 2 3 4 --sentences 8530 --tests 0   # an hour or two

MiniLM learns the polarity of film sentences: the first sentences of Rotten Tomatoes as `train.data` deals them; the
test are sentences of Pang & Lee's sentence_polarity (a folder of that name in $BERT_TEST_DATA) that are not among
those 8,530, compared by their letters only. Both sides start from the same weights, head included, see the same
batches in the same order, and take the same optimizer, schedule, clipping and dropout rates; what differs is the
code and the random numbers of dropout. Seeds take turns, ours first in one and second in the next.

Time a step: both take the same batches in turns. How much is padding depends on how transformers is used: padded to
the longest of a batch drawn at random (a collator), to 128 always (its run_glue.py unless told otherwise, as Google's
run_classifier.py before it), or to the longest among neighbours in length.

Results go to finetune_cpu.json and .md in benchmarks/results; seeds of the same recipe on the same machine are
added to those there, so that a long run can be cut into short ones.
"""

import argparse
import json
import math
import os
import platform
import re
import time
import zipfile
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import torch
import transformers
from machine import processor

from bert_minimal.checkpoint import state_for_file
from bert_minimal.heads import SequenceClassifier
from bert_minimal.train import data, finetune
from bert_minimal.train.finetune import Batches, ClassObjective, FineTuneOptions, Text, class_logits, classify
from bert_minimal.train.loop import Step, TrainOptions, learning_rate
from bert_minimal.train.scores import mean_sd

RESULTS = Path(__file__).parent / "results"
LABELS = ("negative", "positive")
TIMED_STEPS = 6


def letters(text: str) -> str:
    return re.sub("[^a-z]", "", text.lower())


def test_sentences(folder: Path, count: int) -> list[Text]:
    """Sentences that are in no part of the training corpus, in an order that depends on nothing."""
    archive = zipfile.ZipFile(folder / "sentence_polarity" / "sentence_polarity.zip")
    learned, found = {letters(text) for text, _ in data.sentences()}, []
    for name, label in (("neg", 0), ("pos", 1)):
        lines = archive.read(f"sentence_polarity/rt-polarity.{name}").decode("utf-8").strip().split("\n")
        found += [Text(line.strip(), label) for line in lines if letters(line) not in learned]
    order = np.random.default_rng(0).permutation(len(found))
    return [found[i] for i in order[: count or None]]


def padded(rows, width: int = 0) -> dict[str, torch.Tensor]:
    """To the longest row, or to `width`."""
    width = width or max(len(row.ids) for row in rows)
    ids = torch.tensor([row.ids + [0] * (width - len(row.ids)) for row in rows])
    mask = torch.tensor([[1] * len(row.ids) + [0] * (width - len(row.ids)) for row in rows])
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": torch.zeros_like(ids)}


class Theirs:
    """transformers' model with torch's own optimizer: the textbook loop."""

    def __init__(self, ours: SequenceClassifier, options: TrainOptions):
        config = transformers.BertConfig(**ours.config.to_hf(), attn_implementation="sdpa")
        self.model = transformers.BertForSequenceClassification(config)
        self.model.load_state_dict(state_for_file(ours))
        self.model.train()
        matrices = [p for p in self.model.parameters() if p.ndim > 1]
        others = [p for p in self.model.parameters() if p.ndim <= 1]
        groups = [{"params": matrices, "weight_decay": options.weight_decay}, {"params": others, "weight_decay": 0.0}]
        self.optimizer = torch.optim.AdamW(groups, lr=0.0, betas=(0.9, 0.999), eps=1e-6, fused=True)

    def step(self, rows, labels: list[int], rate: float, width: int = 0) -> None:
        loss = self.model(**padded(rows, width), labels=torch.tensor(labels)).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.step()
        self.optimizer.zero_grad()

    @torch.inference_mode()
    def accuracy(self, encoded, gold: list[int]) -> float:
        self.model.eval()
        right = 0
        for chosen in finetune.by_length([len(rows[0].ids) for rows in encoded]):
            logits = self.model(**padded([encoded[i][0] for i in chosen])).logits
            right += (logits.argmax(-1) == torch.tensor([gold[i] for i in chosen])).sum().item()
        return right / len(gold)


def pair(seed: int, train: list[Text], test: list[Text], options: FineTuneOptions) -> dict:
    """Both sides with one seed -> their accuracies on test."""
    options = replace(options, seed=seed)
    tokenizer, start = finetune.open_start(SequenceClassifier, "minilm", options, labels=LABELS)
    encoded, asked = (finetune.encode_texts(tokenizer, texts, options) for texts in (train, test))
    gold, truth = [text.label for text in train], [text.label for text in test]
    dealt = Batches([len(rows[0].ids) for rows in encoded], options.batch, seed)
    schedule = finetune.options_for_loop(options, dealt.steps_an_epoch, torch.device("cpu"))

    def ours() -> float:
        logits = class_logits(classify("minilm", train, labels=LABELS, options=options), test)
        return float((logits.argmax(1) == np.array(truth)).mean())

    def theirs() -> float:
        side = Theirs(start, schedule)
        torch.manual_seed(seed)
        for number in range(schedule.steps):
            chosen = dealt[number]
            side.step([encoded[i][0] for i in chosen], [gold[i] for i in chosen], learning_rate(number, schedule))
        return side.accuracy(asked, truth)

    row = {"seed": seed}
    sides = [("ours", ours), ("transformers", theirs)]
    for name, side in sides if seed % 2 == 0 else sides[::-1]:
        row[name] = side()
        print(f"seed {seed}, {name}: {row[name]:.4f}", flush=True)
    return row


def step_times(train: list[Text], options: FineTuneOptions) -> list[dict]:
    """Mean milliseconds of a step on the same sentences, all ways in turns."""
    tokenizer, start = finetune.open_start(SequenceClassifier, "minilm", options, labels=LABELS)
    encoded, gold = finetune.encode_texts(tokenizer, train, options), [text.label for text in train]
    schedule = finetune.options_for_loop(options, 100, torch.device("cpu"))
    theirs = Theirs(start, schedule)
    ours = Step(start.train(), ClassObjective("mean"), schedule, torch.device("cpu"))

    def by_ours(chosen: list[int]) -> None:
        labels = torch.tensor([gold[i] for i in chosen])
        ours([finetune.text_batch([encoded[i] for i in chosen]) | {"labels": labels}], 1e-5)

    def by_theirs(chosen: list[int], width: int = 0) -> None:
        theirs.step([encoded[i][0] for i in chosen], [gold[i] for i in chosen], 1e-5, width)

    count = TIMED_STEPS * options.batch
    lengths = [len(rows[0].ids) for rows in encoded]
    order = np.random.default_rng(0).permutation(len(train))[:count]
    at_random = [sorted(chunk.tolist(), key=lengths.__getitem__) for chunk in np.split(order, TIMED_STEPS)]
    by_length = np.split(np.array(sorted(order.tolist(), key=lengths.__getitem__)), TIMED_STEPS)
    by_ours(at_random[0]), by_theirs(at_random[0])  # warm-up
    found = []
    for name, batches, width in (
        ("at random, padded to the longest", at_random, 0),
        ("at random, padded to 128", at_random, 128),
        ("neighbours in length, padded to the longest", by_length, 0),
    ):
        seconds = [0.0, 0.0]
        for chosen in batches:
            for side, step in enumerate((lambda c: by_ours(c), lambda c: by_theirs(c, width))):  # noqa: B023
                began = time.perf_counter()
                step([int(i) for i in chosen])
                seconds[side] += time.perf_counter() - began
        ours_ms, theirs_ms = (1e3 * total / TIMED_STEPS for total in seconds)
        cells = sum((width or max(lengths[i] for i in chosen)) * len(chosen) for chosen in batches)
        found.append({"batches": name, "ours_ms": round(ours_ms, 1), "transformers_ms": round(theirs_ms, 1),
                      "ratio": round(theirs_ms / ours_ms, 3), "tokens": sum(lengths[i] for i in order),
                      "padded": cells})  # fmt: skip
        print(found[-1], flush=True)
    return found


def table(result: dict) -> str:
    recipe, machine, rows = result["recipe"], result["machine"], result["seeds"]
    ours, theirs = ([row[name] for row in rows] for name in ("ours", "transformers"))
    lines = ["<!-- finetune_cpu: written by benchmarks/finetune_cpu.py -->"]
    lines += ["| seed | ours | transformers | difference |", "|---|---|---|---|"]
    for row, a, b in zip(rows, ours, theirs, strict=True):
        lines.append(f"| {row['seed']} | {a:.2%} | {b:.2%} | {a - b:+.2%} |")
    if len(rows) > 1:
        difference, spread = mean_sd([a - b for a, b in zip(ours, theirs, strict=True)])
        means = " | ".join(f"{mean_sd(side)[0]:.2%}" for side in (ours, theirs))
        error = spread / math.sqrt(len(rows))
        lines.append(f"| mean | {means} | {difference:+.2%} ± {error:.2%} (standard error) |")
    lines += ["", "| batches of a step | real tokens of padded | ours | transformers | times as fast |"]
    lines.append("|---|---|---|---|---|")
    for kind in result["steps"]:
        times = f"{kind['ours_ms']:.0f} ms | {kind['transformers_ms']:.0f} ms | {kind['ratio']:.2f}"
        lines.append(f"| {kind['batches']} | {kind['tokens'] / kind['padded']:.0%} | {times} |")
    lines.append("")
    lines.append(
        f"MiniLM-L6 on {recipe['sentences']:,} sentences, {recipe['epochs']:g} epoch(s), batch {recipe['batch']}, "
        f"{recipe['learning_rate']:g}, float32; accuracy on {recipe['tests']:,} other sentences (one is "
        f"{1 / recipe['tests']:.2%}). {machine['threads']} threads, {machine['processor']}, torch {machine['torch']}, "
        f"transformers {machine['transformers']} (sdpa), {result['date']}."
    )
    return "\n".join([*lines, "<!-- /finetune_cpu -->", ""])


def write(path: Path, result: dict) -> None:
    RESULTS.mkdir(exist_ok=True)
    path.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")
    path.with_suffix(".md").write_text(table(result))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1], help="none: time steps only")
    parser.add_argument("--sentences", type=int, default=1000, help="to learn from, 8,530 at most")
    parser.add_argument("--tests", type=int, default=1000, help="to test on; 0: all")
    parser.add_argument("--epochs", type=float, default=1)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--learning-rate", type=float, default=2e-4, help="above the paper's: the model is small")
    arguments = parser.parse_args()
    if "BERT_TEST_DATA" not in os.environ:
        parser.error("set BERT_TEST_DATA to a folder that holds sentence_polarity/sentence_polarity.zip (nltk_data's)")
    test = test_sentences(Path(os.environ["BERT_TEST_DATA"]), arguments.tests)
    train = [Text(text, label) for text, label in data.sentences()[: arguments.sentences]]
    recipe = dict(epochs=arguments.epochs, batch=arguments.batch, learning_rate=arguments.learning_rate)
    options = FineTuneOptions(**recipe, max_length=128)
    result = {
        "date": time.strftime("%Y-%m-%d"),
        "machine": {
            "processor": processor(),
            "threads": torch.get_num_threads(),
            "python": platform.python_version(),
            "torch": torch.__version__,
            "transformers": transformers.__version__,
        },
        "recipe": {**asdict(replace(options, seed=0)), "sentences": len(train), "tests": len(test)},
        "steps": [],
        "seeds": [],
    }
    path = RESULTS / "finetune_cpu.json"
    if path.exists():
        before = json.loads(path.read_text())
        if all(before[name] == result[name] for name in ("machine", "recipe")):
            result["seeds"] = [row for row in before["seeds"] if row["seed"] not in arguments.seeds]
            result["steps"] = before["steps"]
    result["steps"] = result["steps"] or step_times(train, options)
    write(path, result)
    for seed in arguments.seeds:
        result["seeds"].append(pair(seed, train, test, options))
        result["seeds"].sort(key=lambda row: row["seed"])
        write(path, result)
    print(table(result))


if __name__ == "__main__":
    main()
