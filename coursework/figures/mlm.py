"""Drawings of lesson 04. Each takes what the lesson computed and returns HTML with a text for screen readers."""

from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from bert_minimal.visualize import KEPT, MASKED, RANDOM, figure_html, style

DARK, OCHRE, ROSE = "#004488", "#DDAA33", "#BB5566"  # for what has no colour of its own in the course


def many_times(tokens: list[str], rows: list[list[tuple[str, str]]]):
    """One sentence, masked once a row. rows: for each token (what the model reads, "", "mask", "random" or "kept")."""
    style()
    figure = Figure(figsize=(11.5, 0.33 * (len(rows) + 1) + 1.1))
    axes = figure.subplots()
    fills = {"": "white", "mask": MASKED, "random": RANDOM, "kept": KEPT}
    for x, token in enumerate(tokens):
        axes.text(x + 0.5, -0.45, token, ha="center", va="center", fontsize=9, weight="bold")
    for y, row in enumerate(rows):
        for x, (word, fate) in enumerate(row):
            axes.add_patch(Rectangle((x, y), 1, 1, fc=fills[fate], ec="#dddddd", lw=0.8))
            if fate:
                shown = word if len(word) < 11 else word[:9] + "…"
                axes.text(x + 0.5, y + 0.5, shown, ha="center", va="center", fontsize=7.5)
    axes.set(xlim=(0, len(tokens)), ylim=(len(rows), -1))
    axes.axis("off")
    count = {fate: sum(f == fate for row in rows for _, f in row) for fate in ("mask", "random", "kept")}
    total = sum(count.values())
    figure.suptitle(
        f"{len(rows)} readings of one sentence: {total} questions, {len(set(map(tuple, rows)))} different rows"
    )
    names = [Patch(fc=MASKED, label=f"[MASK] ({count['mask']})"), Patch(fc=RANDOM, label=f"random ({count['random']})"),
             Patch(fc=KEPT, label=f"unchanged, but asked ({count['kept']})")]  # fmt: skip
    figure.legend(handles=names, loc="outside lower center", ncols=3, frameon=False)
    alt = (
        f"A table: {len(rows)} rows, one a reading, and a column for each token of “{' '.join(tokens)}”. {total} cells "
        f"are marked: {count['mask']} with [MASK], {count['random']} with a random piece, {count['kept']} unchanged. "
        "[CLS] and [SEP] are never marked."
    )
    return figure_html(figure, alt)


def splits(shares: dict[str, tuple[float, float, float]]):
    """Stacked bars: the shares of [MASK], random and unchanged for each way of drawing."""
    style()
    figure = Figure(figsize=(9.5, 0.62 * len(shares) + 1.5))
    axes = figure.subplots()
    for y, parts in enumerate(shares.values()):
        left = 0.0
        for part, fill in zip(parts, (MASKED, RANDOM, KEPT), strict=True):
            axes.barh(y, part, left=left, color=fill, edgecolor="white")
            if part > 0.005:
                axes.text(left + part / 2, y, f"{part:.1%}", ha="center", va="center", fontsize=9)
            left += part
    axes.set_yticks(range(len(shares)), list(shares))
    axes.invert_yaxis()
    axes.set(xlim=(0, 1), xticks=[])
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    figure.suptitle("One draw, cut in three, gives 80/10/10; draws that ignore each other do not")
    names = [Patch(fc=MASKED, label="[MASK]"), Patch(fc=RANDOM, label="random"), Patch(fc=KEPT, label="unchanged")]
    figure.legend(handles=names, loc="outside lower center", ncols=3, frameon=False)
    told = "; ".join(f"{name}: {a:.1%}, {b:.1%}, {c:.1%}" for name, (a, b, c) in shares.items())
    return figure_html(figure, f"Bars of the shares that become [MASK], become random, stay. {told}.")


def candidates(blanks: dict[str, list[tuple[str, float]]]):
    """For each text with a blank, bars of the likeliest pieces."""
    style()
    figure = Figure(figsize=(11.5, 3.1))
    panels = figure.subplots(1, len(blanks), squeeze=False)[0]
    for axes, (text, guesses) in zip(panels, blanks.items(), strict=True):
        words, chances = zip(*guesses, strict=True)
        bars = axes.barh(words, chances, color=MASKED)
        axes.bar_label(bars, labels=[f" {chance:.0%}" for chance in chances])
        axes.invert_yaxis()
        axes.set(xlim=(0, 1.2 * max(chances)), xticks=[])
        axes.spines[["bottom", "left"]].set_visible(False)
        axes.tick_params(length=0)
        axes.set_title(text.replace("[MASK]", "____"), fontsize=9)
    figure.suptitle("The words to the right move the answer: what the course's BERT puts in the blank")
    told = " ".join(f"“{t}”: {', '.join(f'{w} {p:.0%}' for w, p in g)}." for t, g in blanks.items())
    return figure_html(figure, f"Bars of the likeliest pieces for each blank. {told}")


def reading(table: dict[str, dict[str, float]], title: str):
    """Bars for several trainings and several questions. table: question → {training: share}."""
    style()
    figure = Figure(figsize=(9.5, 3.4))
    axes = figure.subplots()
    trainings = list(next(iter(table.values())))
    for i, (training, colour, hatch) in enumerate(zip(trainings, (ROSE, DARK, OCHRE), ("//", "", ".."), strict=False)):
        places = [x + (i - (len(trainings) - 1) / 2) * 0.36 for x in range(len(table))]
        bars = axes.bar(places, [row[training] for row in table.values()], 0.34, color=colour, hatch=hatch,
                        edgecolor="white", label=training)  # fmt: skip
        axes.bar_label(bars, fmt=lambda share: f"{share:.0%}")
    axes.set_xticks(range(len(table)), list(table))
    axes.set(ylim=(0, 1.12), yticks=[])
    axes.spines[["left"]].set_visible(False)
    axes.legend(frameon=False, loc="upper left")
    axes.set_title(title)
    told = "; ".join(f"{q}: " + ", ".join(f"{t} {v:.0%}" for t, v in row.items()) for q, row in table.items())
    return figure_html(figure, f"Bars. {told}.")
