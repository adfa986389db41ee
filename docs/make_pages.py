"""Fills in what README.md and docs/figures.md don't say by hand: `python docs/make_pages.py` (`--check` compares).

Between `<!-- name -->` and `<!-- /name -->` stands what a program found out: a check's real message, the table of
units, the figures of benchmarks/. The picture of the message is docs/img/named_mistake.png.
"""

import json
import math
import re
import statistics
import sys
from pathlib import Path

import torch

from bert_minimal.visualize import style
from coursework.build import read
from coursework.checks import UNITS, attention, exercises, unit
from coursework.checks.engine import INSTANT_SEED, Verdict, run_variant

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
PAGES = (README, ROOT / "docs" / "figures.md")
RESULTS = ROOT / "benchmarks" / "results"
PICTURE = ROOT / "docs" / "img" / "named_mistake.png"


def wrong_answer() -> Verdict:
    """What the check of 01.3 says to the mistake that half of all beginners make."""
    exercise = attention.scaled_dot_product_attention
    mistake = exercise.mistakes["softmax_over_queries"]
    run = run_variant(exercise.name, mistake.function)
    return exercise.verdict(run, seed=INSTANT_SEED, show=True)


def draw(verdict: Verdict) -> None:
    """Yours beside expected, and under them the message in the type of a notebook."""
    import matplotlib.pyplot as plt

    style()
    yours, expected = (tensor[0, 0].double() for tensor in verdict.picture)
    fig, axes = plt.subplots(1, 2, figsize=(8, 4.2), facecolor="white", layout="constrained")
    limits = {"vmin": min(0.0, float(expected.min())), "vmax": float(expected.max())}
    for ax, image, title in zip(axes, (yours, expected), ("yours", "expected"), strict=True):
        image = ax.imshow(image, cmap="cividis", **limits)
        ax.set(title=title, xticks=[], yticks=[])
    fig.colorbar(image, ax=axes)
    fig.supxlabel(verdict.text(), x=0.02, ha="left", family="monospace", fontsize=9)
    PICTURE.parent.mkdir(exist_ok=True)
    fig.savefig(PICTURE, dpi=110, metadata={"Software": None})


def unit_table() -> str:
    """One row a unit that is there: its lesson, exercises, points, and how many mistakes its checks know by name."""
    rows = ["| unit | lesson | exercises | points | mistakes known by name |", "|---|---|---|---|---|"]
    for name in UNITS:
        place = unit(name).LESSON
        lesson, assignment = ROOT / "notebooks" / f"{place}.ipynb", ROOT / "exercises" / place / f"{place}.ipynb"
        if not lesson.exists() or not assignment.exists():
            continue
        asked = exercises(name)
        title = read(lesson).cells[0].source.split("\n")[0].removeprefix("# ")
        rows.append(
            f"| {place[:2]} | [{title}](notebooks/{place}.ipynb) | [{len(asked)}](exercises/{place}/{place}.ipynb) "
            f"| {sum(e.points for e in asked):g} | {sum(len(e.mistakes) for e in asked)} |"
        )
    return "\n".join(rows)


def results(name: str) -> dict:
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def span(values: list[float]) -> str:
    """The least and the most of some ratios."""
    low, high = f"{min(values):.2f}", f"{max(values):.2f}"
    return low if low == high else f"{low} to {high}"


def beside(rows: list[dict], name: str, contender: str, what: str) -> list[float]:
    """A contender against transformers compiled in the same run of benchmarks/pretrain_gpu.py, in every run."""
    of = {(r["run"], r["contender"]): r[what] for r in rows if r["row"] == name}
    runs = [run for run, who in of if who == contender and (run, "transformers compiled") in of]
    return [of[run, contender] / of[run, "transformers compiled"] for run in runs]


def paired(name: str, pairs: list[tuple[float, float]]) -> str:
    """Mean difference in points, and its standard error."""
    points = [100 * (ours - theirs) for ours, theirs in pairs]
    error = statistics.stdev(points) / math.sqrt(len(points))
    return f"{name} {statistics.mean(points):+.1f} ± {error:.1f}"


def summary() -> str:
    """README's figures: one line each."""
    cpu, steps = results("inference_cpu")["rows"], results("finetune_cpu")["steps"]
    ragged = [row["ratio"] for row in cpu if row["batch"].startswith("ragged")]
    spread = [row["ratio"] for row in cpu if row["batch"].startswith("spread")]
    equal = [row["ratio"] for row in cpu if row["batch"].startswith("equal")]
    gpu, full = results("pretrain_gpu"), ("base 256 x 128", "base 64 x 512")

    def gain(names: tuple[str, ...], contender: str = "ours", what: str = "tokens_per_second") -> str:
        return span([ratio for name in names for ratio in beside(gpu["results"], name, contender, what)])

    tasks, sentences = results("finetune_tasks")["rows"], results("finetune_cpu")["seeds"]
    scores = [("wnut", "f1", "WNUT-17"), ("xquad", "f1", "XQuAD")]
    differences = [paired("sentences", [(row["ours"], row["transformers"]) for row in sentences])]
    for task, score, name in scores:
        rows = [row for row in tasks if row["task"] == task]
        differences.append(paired(name, [(row["ours"][score], row["transformers"][score]) for row in rows]))
    labels = results("finetune_labels")["rows"]
    few = ", ".join(f"{row['labels']:,}" for row in labels)
    gains = [statistics.mean(r["pretrained"]["test_accuracy"]) - statistics.mean(r["random"]["test_accuracy"])
             for r in labels]  # fmt: skip
    graded = results("grading")
    saving = (gain(full, "ours, save memory"), gain(full, "ours, save memory", "peak_gib"))
    by_batches = [f"{row['ratio']:.1f} × {row['batches'].partition(', ')[2]}" for row in steps[:2]]
    lines = {
        "reading a batch of mixed lengths, on a CPU": f"{span(ragged)} × as fast; "
        f"lengths spread evenly {span(spread)}; equal lengths {span(equal)}",
        "a pre-training step of full rows, both compiled": f"{gain(full)} × as fast in {gain(full, what='peak_gib')} "
        f"of the memory; with `save_memory` {saving[0]} in {saving[1]}",
        "… of rows of mixed lengths": gain(("base 512 ragged 5-66", "base 64 ragged 20-512")) + " × as fast",
        "… of 32 rows of 128 tokens": gain(("base 32 x 128",)) + " × as fast",
        "a fine-tuning step on sentences, on a CPU": "; ".join(by_batches),
        "points more after fine-tuning, five seeds paired": ", ".join(differences),
    }
    own = {
        f"points over a random start with {few} labels": ", ".join(f"+{100 * g:.0f}" for g in gains),
        "submissions graded a minute, sandboxed": f"{graded['a_minute']} on {graded['cores']} cores",
    }
    table = ["| beside `transformers` | ours |", "|---|---|", *(f"| {k} | {v} |" for k, v in lines.items())]
    table += ["", "| the course itself | |", "|---|---|", *(f"| {k} | {v} |" for k, v in own.items())]
    where = (
        f"GPU: {gpu['device']}; transformers gets its mask, with which it is faster. Machines stand beside each table."
    )
    return "\n".join([*table, "", where])


def two_gpus() -> str:
    found = results("pretrain_gpus")
    each = ", ".join(f"{speed / 1000:.0f}" for speed in found["alone"])
    return (
        f"{found['row']} a GPU: {found['ratio']:.2f} × ({each} k tokens/s alone, {found['together'] / 1000:,.0f} k "
        f"together). {found['gpus']} {found['device']}. {found.get('note', '')}".strip()
    )


def blocks() -> dict[str, str]:
    """Name of each block -> what belongs in it."""
    found = {"message": f"```text\n{wrong_answer().text()}\n```", "units": unit_table()}
    found |= {"summary": summary(), "pretrain_gpus": two_gpus()}
    for table in sorted(RESULTS.glob("*.md")):
        name, text = table.stem, table.read_text(encoding="utf-8")
        found[name] = re.sub(r"<!-- /?\w+.*?-->\n?", "", text).strip()
    return found


def filled(text: str) -> str:
    """A page with every block renewed; raises KeyError for a block that nothing fills."""
    have = blocks()
    return re.sub(
        r"<!-- (\w+) -->\n.*?<!-- /\1 -->",
        lambda m: f"<!-- {m[1]} -->\n{have[m[1]]}\n<!-- /{m[1]} -->",
        text,
        flags=re.DOTALL,
    )


def main() -> int:
    torch.set_num_threads(1)
    old = {page: page.read_text(encoding="utf-8") for page in PAGES}
    new = {page: filled(text) for page, text in old.items()}
    if "--check" not in sys.argv:
        for page, text in new.items():
            page.write_text(text, encoding="utf-8", newline="\n")
        draw(wrong_answer())
    elif new != old:
        print("README.md or docs/figures.md is not what the code says now: python docs/make_pages.py")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
