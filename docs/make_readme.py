"""Fills in what README.md does not say by hand: `python docs/make_readme.py` (`--check` only compares).

Between `<!-- name -->` and `<!-- /name -->` stands what a program found out: a check's real message, the table of
units, the figures of benchmarks/. The picture of the message is docs/img/named_mistake.png.
"""

import re
import sys
from pathlib import Path

import torch

from bert_minimal.visualize import style
from coursework.build import read
from coursework.checks import UNITS, attention, exercises, unit
from coursework.checks.engine import INSTANT_SEED, Verdict, run_variant

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
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


def blocks() -> dict[str, str]:
    """Name of each block -> what belongs in it."""
    found = {"message": f"```text\n{wrong_answer().text()}\n```", "units": unit_table()}
    for table in sorted((ROOT / "benchmarks" / "results").glob("*.md")):
        name, text = table.stem, table.read_text(encoding="utf-8")
        found[name] = re.sub(r"<!-- /?\w+.*?-->\n?", "", text).strip()
    return found


def filled(text: str) -> str:
    """README with every block renewed; raises KeyError for a block that nothing fills."""
    have = blocks()
    return re.sub(
        r"<!-- (\w+) -->\n.*?<!-- /\1 -->",
        lambda m: f"<!-- {m[1]} -->\n{have[m[1]]}\n<!-- /{m[1]} -->",
        text,
        flags=re.DOTALL,
    )


def main() -> int:
    torch.set_num_threads(1)
    old = README.read_text(encoding="utf-8")
    new = filled(old)
    if "--check" not in sys.argv:
        README.write_text(new, encoding="utf-8", newline="\n")
        draw(wrong_answer())
    elif new != old:
        print("README.md is not what the code says now: python docs/make_readme.py")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
