"""Drawings of lesson 03. Each takes what the lesson computed and returns HTML with a text for screen readers."""

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from bert_minimal.visualize import figure_html, style

DARK, OCHRE, ROSE, PALE = "#004488", "#DDAA33", "#BB5566", "#e6e6e6"
PIECE_COLOURS = ("#56B4E9", "#E69F00", "#99DDC5", "#CC79A7", "#F0E442")


def walk(word: str, tries: list[tuple[int, int, bool]]):
    """A word walked through by longest match: one row a try, (start, end, found)."""
    style()
    figure = Figure(figsize=(0.62 * len(word) + 3.6, 0.42 * len(tries) + 1.5))
    axes = figure.subplots()
    colours = iter(PIECE_COLOURS * 3)
    for i, c in enumerate(word):
        axes.text(i + 0.5, -0.55, c, ha="center", va="center", fontsize=13, weight="bold")
    for y, (start, end, found) in enumerate(tries):
        fill = next(colours) if found else PALE
        box = (start + 0.04, y + 0.08), end - start - 0.08, 0.84
        axes.add_patch(Rectangle(*box, fc=fill, ec=DARK if found else "white", lw=1.6 if found else 0.8))
        name = "##" * bool(start) + word[start:end]
        axes.text((start + end) / 2, y + 0.5, name, ha="center", va="center", fontsize=10.5,
                  color="#111111" if found else "#777777")  # fmt: skip
        said = "✓ a piece" if found else "not in the vocabulary"
        axes.text(len(word) + 0.3, y + 0.5, said, va="center", fontsize=9.5, color=DARK if found else "#777777",
                  weight="bold" if found else "normal")  # fmt: skip
    axes.set(xlim=(0, len(word) + 4), ylim=(len(tries) + 0.05, -1.1))
    axes.axis("off")
    pieces = ["##" * bool(start) + word[start:end] for start, end, found in tries if found]
    figure.suptitle(f"Longest match first: {len(tries)} look-ups, {len(pieces)} pieces")
    tried = "; ".join(f"{word[s:e]} {'found' if found else 'not found'}" for s, e, found in tries)
    return figure_html(figure, f"{word}, tried from the left, the longest part first: {tried}. Result: {pieces}.")


def merges(histories: dict[str, list[tuple[str, list[list[str]]]]]):
    """Words cut into pieces after each merge, one column of rows for each rule. (new piece, pieces of each word)."""
    style()
    steps = max(map(len, histories.values()))
    figure = Figure(figsize=(13, 0.52 * steps + 1.3))
    for axes, (rule, history) in zip(figure.subplots(1, len(histories)), histories.items(), strict=True):
        for y, (new, words) in enumerate(history):
            label = f"+ {new}" if new else "characters"
            axes.text(-0.3, y + 0.5, label, ha="right", va="center", fontsize=10, weight="bold" if new else "normal")
            x = 0.0
            for pieces in words:
                for piece in pieces:
                    bare = piece.removeprefix("##")
                    fill = OCHRE if piece == new else "#cfe3f5" if len(bare) > 1 else "white"
                    axes.add_patch(Rectangle((x, y + 0.12), len(bare), 0.76, fc=fill, ec="#666666", lw=0.9))
                    axes.text(x + len(bare) / 2, y + 0.5, bare, ha="center", va="center", fontsize=10)
                    x += len(bare)
                x += 0.8
        axes.set(xlim=(-4.6, x), ylim=(steps, -0.1))
        axes.set_title(rule)
        axes.axis("off")
    figure.suptitle("The same words, the same number of merges: the two rules build different vocabularies")
    alt = " ".join(f"{rule}: {', '.join(new for new, _ in history if new)}." for rule, history in histories.items())
    return figure_html(figure, f"Words cut into pieces after each merge, in two columns. Pieces made, in order. {alt}")


def curves(sizes: list[int], rows: dict[str, list[float]], real: float):
    """Tokens a word on a text that was not trained on, against the size of the vocabulary."""
    style()
    figure = Figure(figsize=(9, 3.9))
    axes = figure.subplots()
    for (name, values), colour, line, marker in zip(
        rows.items(), (DARK, ROSE, OCHRE), ("-", "--", "-."), "os^", strict=True
    ):
        axes.plot(sizes, values, line, color=colour, marker=marker, markersize=5)
        lift = {"frequency": "top"}.get(name, "bottom")  # two of the curves end close to each other
        axes.annotate(f"  {name}", (sizes[-1], values[-1]), va=lift, color="#111111", fontsize=9.5)
    axes.axhline(real, color="#777777", linewidth=1.2, linestyle=":")
    axes.text(sizes[0], real + 0.06, f"BERT's own 30,522 pieces: {real:.2f}", fontsize=9.5, color="#555555")
    axes.set(xlabel="pieces in the vocabulary", ylabel="pieces a word", ylim=(0.9, None))
    axes.set_xlim(sizes[0] - 40, sizes[-1] * 1.42)
    axes.set_xticks(sizes)
    axes.set_title("The ratio spends the vocabulary on rare letters: a new text is cut finer")
    alt = "; ".join(f"{name}: {values[0]:.2f} to {values[-1]:.2f}" for name, values in rows.items())
    return figure_html(figure, f"Pieces a word fall as the vocabulary grows from {sizes[0]} to {sizes[-1]}. {alt}.")


def census(groups: dict[str, tuple[int, list[str]]]):
    """What the pieces of a vocabulary are: a bar for each group, with examples."""
    style()
    figure = Figure(figsize=(11, 0.5 * len(groups) + 1.2))
    axes = figure.subplots()
    names, counts = list(groups), [count for count, _ in groups.values()]
    axes.barh(names, counts, color=[DARK, "#56B4E9", OCHRE, "#888888", "#bbbbbb", ROSE][: len(groups)])
    for y, (count, examples) in enumerate(groups.values()):
        axes.text(count + 150, y, f"{count:,}:  {'  '.join(examples)}", va="center", fontsize=9.5)
    axes.set(xlim=(0, max(counts) * 1.45), xticks=[])
    axes.spines["bottom"].set_visible(False)
    axes.invert_yaxis()
    begin, inside = counts[0] / sum(counts), counts[1] / sum(counts)
    axes.set_title(
        f"Of BERT's {sum(counts):,} pieces {begin:.0%} are words or beginnings, {inside:.0%} continue a word"
    )
    listed = "; ".join(f"{name} {count:,}" for name, (count, _) in groups.items())
    return figure_html(figure, f"Bars, groups of pieces: {listed}.")


def pieces_a_word(running: list[float], distinct: list[float]):
    """Shares of words cut into 1, 2, … pieces: as they occur in a text, and each different word once."""
    style()
    figure = Figure(figsize=(8.5, 3.2))
    axes = figure.subplots()
    for shift, values, colour, hatch, name in (
        (-0.2, running, DARK, "", "words as they occur"),
        (0.2, distinct, OCHRE, "//", "each different word once"),
    ):
        bars = axes.bar([i + 1 + shift for i in range(len(values))], values, 0.38, color=colour, hatch=hatch,
                        edgecolor="white", label=name)  # fmt: skip
        axes.bar_label(bars, labels=[f"{value:.0%}" for value in values], fontsize=9)
    axes.set_xticks(range(1, len(running) + 1), [*map(str, range(1, len(running))), f"{len(running)} or more"])
    axes.set(yticks=[], xlabel="pieces", ylim=(0, 1.08))
    axes.spines["left"].set_visible(False)
    axes.legend(frameon=False)
    axes.set_title(f"{running[0]:.0%} of a book's words are one piece; of its different words only {distinct[0]:.0%}")
    return figure_html(
        figure,
        f"Bars. Of the words as they occur {running[0]:.0%} are one piece; of the different words {distinct[0]:.0%}.",
    )
