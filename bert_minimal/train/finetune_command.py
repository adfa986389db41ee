"""`python -m bert_minimal finetune` and `predict`: from files to a model, its scores and its answers.

    python -m bert_minimal finetune my-run --train train.tsv --dev dev.tsv --test test.tsv --model course
    python -m bert_minimal finetune my-run --train train.conll --dev dev.conll --model minilm --seeds 0 1 2
    python -m bert_minimal finetune my-run --train train-v2.0.json --dev dev-v2.0.json --model bert-base-cased
    python -m bert_minimal predict my-run new.tsv --out answers

The folder gets model/ (config.json, model.safetensors, vocab.txt, task.json: the best weights on dev, of the best
seed), metrics.json, the log, and beside them what to look at. For dev and for each file that is predicted:

    classify   NAME_results.tsv    a probability a class, a text a line, no header: as Google's run_classifier.py
    tag        NAME_tags.conll     word and tag;  NAME_entities.tsv: sentence, start, end, type, probability, words
    answer     NAME_answers.json   id -> answer, as SQuAD's program wants it;  NAME_answers.tsv: with score and place
    where the truth is known       NAME_errors.tsv, the surest first; and confusion.png, or report.txt for entities
"""

import hashlib
import importlib.util
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from ..heads import QuestionAnswering, SequenceClassifier, TokenClassifier
from ..model import Module
from .answering import Answer, Question, answer, predict_answers
from .corpus import write_whole
from .files import READERS, Read, check_classes, read_texts
from .finetune import FineTuneOptions, Result, Text, class_logits, class_names, class_numbers, classify, open_tokenizer
from .scores import (
    answer_scores,
    class_scores,
    confusion,
    entities,
    entity_scores,
    exact_match,
    mean_sd,
    need_seqeval,
    overlap_f1,
)
from .tagging import Pieces, predict_tags, tag

Task = Literal["classify", "tag", "answer"]
KINDS: dict[str, type[Module]] = {"classify": SequenceClassifier, "tag": TokenClassifier, "answer": QuestionAnswering}
ENDINGS: dict[str, Task] = {".tsv": "classify", ".csv": "classify", ".jsonl": "classify", ".json": "answer"}
ENDINGS |= {".conll": "tag", ".bio": "tag", ".iob": "tag", ".iob2": "tag"}


def finetune(
    out: Path,
    /,
    train: Path,
    recipe: FineTuneOptions,
    dev: Path | None = None,
    test: Path | None = None,
    model: str = "course",
    task: Task | None = None,
    columns: tuple[str, ...] = (),
    pieces: Pieces = "first",
    seeds: tuple[int, ...] = (),
) -> None:
    """Fine-tune on labelled files: texts or pairs to classify, words to tag, questions to answer.

    The recipe is the paper's (Devlin et al. 2019, A.3): 3 epochs, batch 32, learning rate 5e-5 falling linearly;
    128 pieces (questions: 384). Worth trying, also says the paper: batch 16; 2e-5 and 3e-5; 2 and 4 epochs.

    Args:
        out: folder for everything; a run that was broken off goes on if started again in the same way.
        train: .tsv, .csv, .jsonl: texts with labels; .conll: words with tags; .json: questions as in SQuAD.
        recipe: how to train.
        dev: likewise; says which weights are kept, and when to stop (--patience).
        test: likewise, labels not needed; is answered at the end.
        model: where to start: a catalogue name ("course", "minilm"), a folder or a hub id.
        task: told by train's ending unless said.
        columns: what each column of .tsv and .csv is, if no header tells: id, label, text, pair, - (pass over).
        pieces: tagging: label a word's first piece only, or all of them.
        seeds: several runs, one a seed; mean and deviation are reported and the best on dev is kept.
    """
    task = task or task_of(train)
    if (out / "metrics.json").exists():  # what is written last
        raise ValueError(f"{out} holds a finished run: name another folder, or delete this one")
    check_asked(task, pieces, seeds)
    recipes = [replace(recipe, seed=seed) for seed in seeds or (recipe.seed,)]
    read = {"train": read_data(task, train, columns, True)}
    for name, path in (("dev", dev), ("test", test)):
        if path is not None:
            read[name] = read_data(task, path, columns, name == "dev", read["train"].roles)
    labels = say_classes(read) if task == "classify" else ()
    contents = {f"{name}'s sha256": digest(path) for name, path in (("train", train), ("dev", dev)) if path is not None}
    claim(out, {"train": str(train), "dev": str(dev), **contents, "labels": list(labels), "model": model, "task": task,
                "pieces": pieces, "columns": list(columns), **asdict(recipe)})  # fmt: skip
    results, score = [], main_score(task, recipe)
    for one in recipes:
        if len(recipes) > 1:
            print(f"seed {one.seed}")
        results.append(run(task, model, read, labels, one, out / f"seed-{one.seed}", pieces))
        print("  ".join(f"{name} {value:.4f}" for name, value in results[-1].scores.items()))
    sign = -1 if score == "loss" else 1
    best = max(results, key=lambda result: sign * result.scores.get(score, 0.0))
    if task == "classify":
        best.settings["columns"] = read["train"].roles  # files to predict may lack a header too
    save_result(best, task, out / "model")
    metrics: dict[str, Any] = {"kept": {"seed": best.options.seed, "step": best.kept_step, "by": score}}
    metrics["dev"] = {str(result.options.seed): result.scores for result in results}
    if len(results) > 1 and "dev" in read:
        metrics["over seeds"] = {name: mean_sd([r.scores[name] for r in results]) for name in best.scores}
        print(
            "mean ± sd over seeds: "
            + ", ".join(f"{n} {m:.4f} ± {d:.4f}" for n, (m, d) in metrics["over seeds"].items())
        )
    for name in ("dev", "test"):
        if name in read:
            scores = write_answers(best, task, read[name], out, name)
            metrics |= {"test": scores} if name == "test" and scores else {}
    write_whole(out / "metrics.json", (json.dumps(metrics, indent=1) + "\n").encode())
    for result in results:  # what only a run that goes on needs
        for name in ("state.safetensors", "best.safetensors"):
            (out / f"seed-{result.options.seed}" / name).unlink(missing_ok=True)
    print(f"the model is in {out / 'model'}, what it got right and wrong in {out}")


def predict(model: Path, file: Path, /, out: Path = Path("."), columns: tuple[str, ...] = ()) -> None:
    """Answer a file with a fine-tuned model; scores too, where the file has labels.

    Args:
        model: a model's folder, a run's, or one that holds runs: the newest model in it is taken, and said.
        file: as for finetune; labels are not needed.
        out: folder for the answers.
        columns: as for finetune.
    """
    folder = newest_model(model)
    if folder != model:
        print(f"model: {folder}")
    task, result = load_result(folder)
    out.mkdir(parents=True, exist_ok=True)
    read = read_data(task, file, columns, False, result.settings.get("columns", ()))
    write_answers(result, task, read, out, file.stem)
    print(f"answers to {file} are in {out}")


# ---- reading


def task_of(path: Path) -> Task:
    """The task that a file's ending stands for. Raises ValueError for an ending that says nothing."""
    if path.suffix.lower() not in ENDINGS:
        raise ValueError(f"no telling from {path.name} what the task is: say --task classify, tag or answer")
    return ENDINGS[path.suffix.lower()]


def check_asked(task: Task, pieces: Pieces, seeds: Sequence[int]) -> None:
    """Raise ValueError for what can't be done as asked: now rather than after training."""
    if pieces != "first" and task != "tag":
        raise ValueError(f"--pieces {pieces} is for words to tag: leave it out")
    if len(set(seeds)) < len(seeds):
        raise ValueError(f"--seeds {' '.join(map(str, seeds))} names one twice: the same run again says nothing new")
    if task == "tag":
        need_seqeval()


def read_data(task: Task, path: Path, columns: tuple[str, ...], labelled: bool, like: Sequence[str] = ()) -> Read:
    """like: how the training file's columns were taken, for a file without a header."""
    if columns and task != "classify":
        raise ValueError("--columns is for texts to classify: leave it out")
    read = read_texts(path, columns, labelled, like) if task == "classify" else READERS[task](path, labelled)
    print(f"{path}: {len(read.examples):,} examples" + "".join(f"; {words}" for words in read.said))
    return read


def say_classes(read: dict[str, Read]) -> tuple[str, ...]:
    """Names of the classes; how each label is numbered is printed, since files with 1 and 2 invite off-by-one."""
    labels = class_names(read["train"].examples)
    for other in ("dev", "test"):
        if other in read:
            check_classes(read[other], labels)
    counts = [sum(text.label == name for text in read["train"].examples) for name in labels]
    table = ", ".join(f"{name!r} is class {k} ({n:,})" for k, (name, n) in enumerate(zip(labels, counts, strict=True)))
    print(f"labels: {table}")
    return labels


def claim(out: Path, about: dict) -> None:
    """Raise ValueError if the folder belongs to another run. As long as nothing is learned, it belongs to none."""
    if not any(out.glob("seed-*/state.safetensors")):
        (out / "run.json").unlink(missing_ok=True)
    same_run(out / "run.json", about)


def digest(path: Path) -> str:
    """Tells whether a file is still the same, in half as many digits as SHA-256 has."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:32]


def same_run(path: Path, about: dict) -> None:
    """Raise ValueError if the folder belongs to a run that was started otherwise."""
    if path.exists():
        before = json.loads(path.read_text(encoding="utf-8"))
        differing = [
            f"{name} was {before.get(name)}, now {value}" for name, value in about.items() if before.get(name) != value
        ]
        if differing:
            raise ValueError(f"{path.parent} belongs to another run: {'; '.join(differing)}. Name a new folder")
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, (json.dumps(about, indent=1) + "\n").encode())


def main_score(task: Task, options: FineTuneOptions) -> str:
    """The score by which the best weights are chosen."""
    return options.best_by or ("accuracy" if task == "classify" else "f1")


def run(
    task: Task,
    start: str,
    read: dict[str, Read],
    labels: tuple[str, ...],
    options: FineTuneOptions,
    out: Path,
    pieces: Pieces,
) -> Result:
    """Fine-tune once, with one seed."""
    train, dev = (read[name].examples if name in read else [] for name in ("train", "dev"))
    if task == "classify":
        return classify(start, train, dev, labels, options, out)
    return tag(start, train, dev, options, out, pieces) if task == "tag" else answer(start, train, dev, options, out)


# ---- models in folders


def save_result(result: Result, task: Task, folder: Path) -> None:
    """The model as transformers opens it, and task.json: what is needed to read texts as in training."""
    result.model.save_pretrained(folder)
    result.tokenizer.save_pretrained(folder)
    about = {"task": task, "labels": result.labels, "options": asdict(result.options), "settings": result.settings}
    write_whole(folder / "task.json", (json.dumps(about, indent=1, ensure_ascii=False) + "\n").encode())


def load_result(folder: Path) -> tuple[Task, Result]:
    """What `save_result` wrote. Raises ValueError if the model's weights are not all there."""
    about = json.loads((folder / "task.json").read_text(encoding="utf-8"))
    model: Any = KINDS[about["task"]].from_pretrained(folder)
    if model.loaded.fresh:
        raise ValueError(f"{folder} was saved without {', '.join(model.loaded.fresh)}: its answers would be noise")
    model.to("cuda" if torch.cuda.is_available() else "cpu")
    options = FineTuneOptions(**about["options"])
    result = Result(model, open_tokenizer(folder), tuple(about["labels"]), options, {}, [], 0, 0.0)
    return about["task"], replace(result, settings=about["settings"])


def newest_model(folder: Path) -> Path:
    """The folder itself if it is a model's, else the model in it that was written last."""
    if (folder / "task.json").is_file():
        return folder
    found = sorted(folder.rglob("task.json"), key=lambda path: path.stat().st_mtime_ns)
    if not found:
        there = ", ".join(sorted(path.name for path in folder.iterdir())[:8]) if folder.is_dir() else "no such folder"
        raise ValueError(f"no fine-tuned model in {folder} ({there}): give a folder that `finetune` made")
    return found[-1].parent


# ---- answers


def write_answers(result: Result, task: Task, read: Read, out: Path, name: str) -> dict[str, float]:
    """Write all files for one file's answers; -> its scores, printed too; {} where the truth is not known."""
    writers: dict[str, Callable[..., dict[str, float]]] = {"classify": write_classes, "tag": write_tags}
    scores = writers.get(task, write_spans)(result, read, out, name)
    if scores:
        print(f"{name}: " + ", ".join(f"{score} {value:.4f}" for score, value in scores.items()))
    return scores


def write_rows(path: Path, rows: Sequence[Sequence[Any]]) -> None:
    """Tab-separated; a tab or a line's end inside a text becomes a space."""
    lines = (
        "\t".join(" ".join(str(cell).split()) if isinstance(cell, str) else str(cell) for cell in row) for row in rows
    )
    write_whole(path, "".join(f"{line}\n" for line in lines).encode())


def write_classes(result: Result, read: Read, out: Path, name: str) -> dict[str, float]:
    """Write probabilities and, for texts with labels, the errors and the confusion matrix; -> scores, or none."""
    texts: list[Text] = read.examples
    logits = torch.from_numpy(class_logits(result, texts))
    probabilities = logits.softmax(-1).numpy()  # (n, K)
    write_rows(out / f"{name}_results.tsv", [[f"{p:.7f}" for p in row] for row in probabilities])
    if any(text.label is None for text in texts):
        return {}
    check_classes(read, result.labels)
    gold, said = class_numbers(texts, result.labels, "text"), probabilities.argmax(1)
    wrong = sorted((i for i in range(len(texts)) if gold[i] != said[i]), key=lambda i: -probabilities[i].max())
    rows: list[list[Any]] = [["id", "probability", "answer", "truth", "text", "pair"]]
    for i in wrong:
        verdict = f"{probabilities[i].max():.4f}", result.labels[said[i]], result.labels[gold[i]]
        rows.append([read.ids[i], *verdict, texts[i].text, texts[i].pair or ""])
    write_rows(out / f"{name}_errors.tsv", rows)
    if importlib.util.find_spec("matplotlib"):  # a bare GPU machine may lack it
        table = confusion(gold, said, len(result.labels))
        title = f"{name}: {table.trace()} of {len(texts)} right"
        confusion_picture(table, result.labels, title).savefig(out / f"{name}_confusion.png", dpi=100)
    else:
        print(f"no {name}_confusion.png: matplotlib is not installed")
    return class_scores(gold, said, len(result.labels))


def confusion_picture(table: np.ndarray, labels: Sequence[str], title: str):
    """Row the truth, column the answer; colour by the share of the row, numbers are counts."""
    import matplotlib
    from matplotlib.figure import Figure

    from ..visualize import style

    with matplotlib.rc_context():
        style()
        side = 2.2 + 0.55 * len(labels)
        figure = Figure(figsize=(side + 0.8, side))
        axis = figure.subplots()
        shares = table / np.maximum(1, table.sum(1, keepdims=True))
        axis.imshow(shares, cmap="cividis", vmin=0, vmax=1)
        for (row, column), count in np.ndenumerate(table):
            colour = "black" if shares[row, column] > 0.5 else "white"
            axis.text(column, row, str(count), ha="center", va="center", color=colour)
        axis.set_xticks(range(len(labels)), labels, rotation=90 if len(labels) > 3 else 0)
        axis.set_yticks(range(len(labels)), labels)
        axis.set(xlabel="answer", ylabel="truth", title=title)
        axis.tick_params(length=0)
    return figure


def write_tags(result: Result, read: Read, out: Path, name: str) -> dict[str, float]:
    """Write tagged words, entities and, where tags are known, the errors; -> scores, or none."""
    known = all(sentence.tags is not None for sentence in read.examples)
    if known:
        need_seqeval()
    found = predict_tags(result, [sentence.words for sentence in read.examples])
    lines, errors = [], []
    rows: list[list[Any]] = [["sentence", "start", "end", "type", "probability", "words"]]
    for at, (sentence, (tags, probabilities)) in enumerate(zip(read.examples, found, strict=True)):
        lines += [f"{word}\t{tag}\n" for word, tag in zip(sentence.words, tags, strict=True)] + ["\n"]
        said = entities(tags)
        sure = {span: float(np.mean(probabilities[span[1] : span[2]])) for span in said}
        rows += [[at, a, b, kind, f"{sure[kind, a, b]:.4f}", " ".join(sentence.words[a:b])] for kind, a, b in said]
        true = entities(sentence.tags or [])
        for what, spans in (("invented", set(said) - set(true)), ("missed", set(true) - set(said))):
            errors += [
                [at, what, kind, " ".join(sentence.words[a:b]), " ".join(sentence.words)]
                for kind, a, b in sorted(spans)
            ]
    write_whole(out / f"{name}_tags.conll", "".join(lines).encode())
    write_rows(out / f"{name}_entities.tsv", rows)
    if not known:
        return {}
    gold, predicted = [sentence.tags for sentence in read.examples], [tags for tags, _ in found]
    write_rows(out / f"{name}_errors.tsv", [["sentence", "error", "type", "entity", "words"], *errors])
    report = entity_report(gold, predicted)
    write_whole(out / f"{name}_report.txt", f"Entities of {name}, by seqeval\n\n{report}".encode())
    return entity_scores(gold, predicted)


def entity_report(gold: list[list[str]], predicted: list[list[str]]) -> str:
    """A row a type of entity. seqeval makes none where there is no type."""
    from seqeval.metrics import classification_report

    if not any(entities(tags) for tags in (*gold, *predicted)):
        return "no entity in truth or answers\n"
    return classification_report(gold, predicted, digits=3, zero_division=0)


def write_spans(result: Result, read: Read, out: Path, name: str) -> dict[str, float]:
    """Write answers and, where the true ones are known, the errors; -> scores, or none."""
    questions: list[Question] = read.examples
    found: list[Answer] = predict_answers(result, questions)
    texts = {question.id: span.text for question, span in zip(questions, found, strict=True)}
    write_whole(out / f"{name}_answers.json", (json.dumps(texts, indent=1, ensure_ascii=False) + "\n").encode())
    rows = [[q.id, f"{a.score:.4f}", a.start, a.end, a.text] for q, a in zip(questions, found, strict=True)]
    write_rows(out / f"{name}_answers.tsv", [["id", "score", "start", "end", "answer"], *rows])
    if any(question.answers is None for question in questions):
        return {}
    truths = [[text for text, _ in question.answers or ()] for question in questions]
    wrong = [i for i, span in enumerate(found) if not any(exact_match(span.text, t) for t in truths[i] or [""])]
    errors = []
    for i in sorted(wrong, key=lambda i: -found[i].score):
        f1 = max(overlap_f1(found[i].text, truth) for truth in truths[i] or [""])
        question, truth = questions[i], " / ".join(dict.fromkeys(truths[i])) or "(no answer)"
        errors.append(
            [
                question.id,
                f"{found[i].score:.4f}",
                f"{f1:.3f}",
                found[i].text or "(no answer)",
                truth,
                question.question,
            ]
        )
    write_rows(out / f"{name}_errors.tsv", [["id", "score", "f1", "answer", "truth", "question"], *errors])
    return answer_scores(truths, [span.text for span in found])
