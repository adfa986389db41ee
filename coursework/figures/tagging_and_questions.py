"""Drawings of lesson 10. Each takes what the lesson computed and returns HTML with a text for screen readers."""

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from bert_minimal.visualize import KEY, QUERY, SEGMENT_A, SEGMENT_B, VALUE, figure_html, style

KIND = {"PER": SEGMENT_B, "LOC": SEGMENT_A, "ORG": "#99DDC5"}
INK = "#222222"


def labels(pieces: list[str], word_ids: list[int], rows: dict[str, list[str]]):
    """Pieces, the words they belong to, and a row of labels for each convention ("·" for none)."""
    style()
    widths = [max(len(piece), 5) * 0.115 + 0.16 for piece in pieces]
    left = np.concatenate([[0], np.cumsum(widths)])
    figure = Figure(figsize=(left[-1] + 2.6, 0.55 * (len(rows) + 1) + 1.0))
    axes = figure.subplots()
    for i, piece in enumerate(pieces):
        axes.text((left[i] + left[i + 1]) / 2, 0.5, piece, ha="center", va="center", fontsize=10, weight="bold")
    for word in sorted(set(word_ids) - {-1}):
        places = [i for i, w in enumerate(word_ids) if w == word]
        axes.plot([left[places[0]] + 0.06, left[places[-1] + 1] - 0.06], [0.92, 0.92], "-", color=QUERY, lw=2.5)
    for y, (name, row) in enumerate(rows.items(), 1):
        axes.text(-0.1, y + 0.5, name, ha="right", va="center", fontsize=10)
        for i, label in enumerate(row):
            fill = KIND.get(label[2:], "#eeeeee" if label == "O" else "white")
            box = (left[i] + 0.03, y + 0.12), widths[i] - 0.06, 0.76
            axes.add_patch(Rectangle(*box, fc=fill, ec="#bbbbbb", ls="--" if label == "·" else "-"))
            shown = "–" if label == "·" else label
            axes.text((left[i] + left[i + 1]) / 2, y + 0.5, shown, ha="center", va="center", fontsize=8.5)
    axes.set(xlim=(-1.9, left[-1] + 0.1), ylim=(len(rows) + 1.1, 0))
    axes.axis("off")
    words = len(set(word_ids) - {-1})
    figure.suptitle(f"{words} words, {len(pieces)} pieces: a label for each word, and for the other pieces none (–)")
    told = " ".join(f"{name}: {' '.join(row)}." for name, row in rows.items())
    return figure_html(figure, f"Pieces {' '.join(pieces)}, a line under each word, and rows of labels. {told}")


def two_scores(epochs: list[float], accuracy: list[float], f1: list[float], nothing: float):
    """Word accuracy and entity F1 of the same predictions, after each epoch."""
    style()
    figure = Figure(figsize=(7.5, 3.9))
    axes = figure.subplots()
    for values, name, colour, line, marker in (
        (accuracy, "words right", QUERY, "-", "o"), (f1, "entity F1", KEY, "--", "s"),
    ):  # fmt: skip
        axes.plot(epochs, values, line, color=colour, marker=marker)
        axes.annotate(f"  {name} {values[-1]:.2f}", (epochs[-1], values[-1]), va="center", color=colour)
    axes.axhline(nothing, color="#777777", lw=1.2, ls=":")
    axes.text(epochs[0], nothing - 0.06, f"O always: {nothing:.2f} of the words", fontsize=9.5, color="#555555")
    axes.set(xlabel="times through the training sentences", ylim=(0, 1.02), xlim=(0.8, epochs[-1] * 1.32))
    axes.set_xticks(epochs)
    axes.set_title(f"The same answers: {accuracy[-1]:.0%} of the words right, an entity F1 of {100 * f1[-1]:.0f}")
    alt = f"Two curves over {len(epochs)} epochs: words right from {accuracy[0]:.2f} to {accuracy[-1]:.2f}, "
    return figure_html(figure, alt + f"entity F1 from {f1[0]:.2f} to {f1[-1]:.2f}. Saying O always: {nothing:.2f}.")


def windows(length: int, cuts: list[tuple[int, int]], answer: tuple[int, int]):
    """A passage of `length` pieces, its windows (start, end), and where the answer lies (first, last)."""
    style()
    figure = Figure(figsize=(10, 0.42 * len(cuts) + 1.6))
    axes = figure.subplots()
    axes.add_patch(Rectangle((0, 0.15), length, 0.6, fc="#dddddd", ec="none"))
    axes.text(-1, 0.45, "passage", ha="right", va="center")
    whole = 0
    for y, (a, b) in enumerate(cuts, 1):
        inside = a <= answer[0] and answer[1] < b
        whole += inside
        fill, said = (VALUE, "holds the answer") if inside else ("#cfe3f5", "target (0, 0): no answer in here")
        axes.add_patch(Rectangle((a, y + 0.15), b - a, 0.6, fc=fill, alpha=0.75 if inside else 1, ec="#666666", lw=0.8))
        axes.text(-1, y + 0.45, f"window {y}", ha="right", va="center")
        axes.text(length + 1, y + 0.45, said, va="center", weight="bold" if inside else "normal", fontsize=9.5)
    x = answer[0], answer[1] + 1
    axes.axvspan(*x, color=KEY, alpha=0.35, lw=0)
    axes.text(sum(x) / 2, -0.25, "answer", ha="center", va="bottom", color=INK)
    axes.set(xlim=(-12, length + 42), ylim=(len(cuts) + 1, -0.7))
    axes.axis("off")
    figure.suptitle(f"A passage of {length} pieces in {len(cuts)} windows: {whole} of them hold the whole answer")
    listed = ", ".join(f"{a} to {b}" for a, b in cuts)
    return figure_html(figure, f"Bars: a passage of {length} pieces; windows {listed}; the answer at {answer}.")


def span(pieces: list[str], start: list[float], end: list[float], best: tuple[int, int], question: str):
    """Start and end scores over a passage's pieces (two rows of bars), the best legal span marked."""
    style()
    figure = Figure(figsize=(0.27 * len(pieces) + 1.2, 4.4))
    above, below = figure.subplots(2, 1, sharex=True)
    x = range(len(pieces))
    for axes, values, name, colour, hatch, place in (
        (above, start, "start score", QUERY, "", best[0]), (below, end, "end score", KEY, "//", best[1]),
    ):  # fmt: skip
        axes.axvspan(best[0] - 0.5, best[1] + 0.5, color="#F0E442", alpha=0.5, lw=0)
        axes.bar(x, values, color=colour, hatch=hatch, edgecolor="white", width=0.8)
        axes.axhline(0, color="#888888", lw=0.8)
        axes.set_ylabel(name)
        axes.annotate(f"{values[place]:.1f}", (place, max(values[place], 0)), ha="center", va="bottom", weight="bold")
        axes.margins(y=0.2)
    below.set_xticks(list(x), pieces, rotation=90, fontsize=8.5)
    below.set_xlim(-0.7, len(pieces) - 0.3)
    said = " ".join(pieces[best[0] : best[1] + 1]).replace(" ##", "")
    figure.suptitle(f"“{question}” The best legal pair: “{said}”")
    alt = f"Two rows of bars over a passage: start scores, of the chosen span {start[best[0]]:.1f}, "
    return figure_html(figure, alt + f"and end scores, {end[best[1]]:.1f}. The chosen span is “{said}”.")


def square(pieces: list[str], sums: np.ndarray, most: int, best: tuple[int, int]):
    """All pairs of start (row) and end (column); what is not legal is grey."""
    style()
    size = len(pieces)
    figure = Figure(figsize=(0.24 * size + 2.4, 0.24 * size + 1.6))
    axes = figure.subplots()
    i, j = np.indices(sums.shape)
    legal = (i <= j) & (j - i < most)
    picture = axes.imshow(np.where(legal, sums, np.nan), cmap="cividis")
    axes.set_facecolor("#d9d9d9")
    figure.colorbar(picture, ax=axes, shrink=0.7, label="start score + end score")
    axes.add_patch(Rectangle((best[1] - 0.5, best[0] - 0.5), 1, 1, fc="none", ec=KEY, lw=3))
    axes.set_xticks(range(size), pieces, rotation=90, fontsize=8)
    axes.set_yticks(range(size), pieces, fontsize=8)
    axes.set(xlabel="… and ends here", ylabel="the answer starts here …")
    share = legal.sum() / legal.size
    axes.set_title(f"Of {legal.size} pairs {share:.0%} are legal;\nthe best of them is framed", loc="left")
    alt = f"A square of all pairs of {size} pieces. Grey: the end before the start, or more than {most} pieces. "
    return figure_html(figure, alt + f"Framed, the best: “{pieces[best[0]]}” to “{pieces[best[1]]}”.")
