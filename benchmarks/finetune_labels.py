"""What pre-training is worth: the course's model against the same model with random weights, few labels to many.

    python benchmarks/finetune_labels.py --out results                # 500, 2,000 and 6,000 sentences, five seeds

Sentences of film reviews (Rotten Tomatoes, from the catalogue). The last 2,000 are the test, the 500 before them choose
the epoch and, with a seed of its own, the learning rate, for each start and number of labels by itself: a random
start likes another one. A seed draws the labelled sentences, their order, the head and dropout; both starts see the
same. `--sizes 500` makes one row; rows already in the JSON file are kept.
"""

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from machine import processor

from bert_minimal.train import data
from bert_minimal.train.finetune import FineTuneOptions, Text, class_logits, classify
from bert_minimal.train.scores import mean_sd

TEST, DEV, LABELS = 2000, 500, ("negative", "positive")
RATES = (1e-4, 3e-4, 1e-3)
CHOOSING_SEED = 1000


def split() -> tuple[list[Text], list[Text], list[Text]]:
    texts = [Text(text, label) for text, label in data.sentences()]
    return texts[: -TEST - DEV], texts[-TEST - DEV : -TEST], texts[-TEST:]


def labelled(pool: list[Text], size: int, seed: int) -> list[Text]:
    return [pool[i] for i in np.random.default_rng(seed).permutation(len(pool))[:size]]


def accuracy(logits: np.ndarray, texts: list[Text]) -> float:
    return float((logits.argmax(1) == np.array([text.label for text in texts])).mean())


def row_of(size: int, seeds: int, model: str, epochs: float) -> dict:
    pool, dev, test = split()
    row: dict = {"labels": size}
    for start in ("pretrained", "random"):
        options = FineTuneOptions(epochs=epochs, batch=32, max_length=128, random=start == "random")
        choosing, tried = labelled(pool, size, CHOOSING_SEED), {}
        for rate in RATES:
            result = classify(model, choosing, dev, LABELS, replace(options, learning_rate=rate, seed=CHOOSING_SEED))
            tried[rate] = result.scores["accuracy"]
        best = max(tried, key=tried.__getitem__)
        found = []
        for seed in range(seeds):
            result = classify(model, labelled(pool, size, seed), dev, LABELS,
                              replace(options, learning_rate=best, seed=seed))  # fmt: skip
            found.append(accuracy(class_logits(result, test), test))
        row[start] = {"learning_rate": best, "test_accuracy": found}
        print(size, start, tried, found, flush=True)
    return row


def table(result: dict) -> str:
    lines = ["<!-- finetune_labels: written by benchmarks/finetune_labels.py -->"]
    lines += ["| labelled sentences | the course's model | random weights | gain, points |", "|---|---|---|---|"]
    for row in sorted(result["rows"], key=lambda row: row["labels"]):
        starts = [row[start]["test_accuracy"] for start in ("pretrained", "random")]
        cells = [f"{m:.1%} ± {sd:.1%}" for m, sd in map(mean_sd, starts)]
        gain, sd = mean_sd([100 * (a - b) for a, b in zip(*starts, strict=True)])
        lines.append(f"| {row['labels']:,} | {' | '.join(cells)} | {gain:+.1f} ± {sd:.1f} |")
    lines += ["", f"{result['what']} {result['machine']}.", "<!-- /finetune_labels -->"]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[500, 2000, 6000])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epochs", type=float, default=4)
    parser.add_argument("--model", default="course")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    path = chosen.out / "finetune_labels.json"
    card = torch.cuda.get_device_name() if torch.cuda.is_available() else processor()
    result = {
        "what": f"Accuracy on {TEST:,} other sentences (half are right by guessing), mean ± standard deviation over "
        f"{chosen.seeds} seeds, {chosen.epochs:g} epochs of batches of 32; learning rate chosen on {DEV} sentences.",
        "machine": f"{card}, torch {torch.__version__}, {time.strftime('%Y-%m-%d')}",
        "rows": json.loads(path.read_text())["rows"] if path.exists() else [],
    }
    for size in chosen.sizes:
        result["rows"] = [row for row in result["rows"] if row["labels"] != size]
        result["rows"].append(row_of(size, chosen.seeds, chosen.model, chosen.epochs))
        path.write_text(json.dumps(result, indent=1) + "\n")
    path.with_suffix(".md").write_text(table(result))
    print(table(result))


if __name__ == "__main__":
    main()
