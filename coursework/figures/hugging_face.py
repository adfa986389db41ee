"""Drawings of lesson 12. Each takes what the lesson computed and returns HTML with a text for screen readers."""

from matplotlib.figure import Figure

from bert_minimal.visualize import KEPT, KEY, QUERY, VALUE, figure_html, style


def lines_of_code(counts: dict[str, tuple[int, str]]):
    """What the lines of a file are for: name -> (lines, "model" or "rest"), as one bar."""
    style()
    figure = Figure(figsize=(10, 2.6))
    axes = figure.subplots()
    left, total = 0, sum(lines for lines, _ in counts.values())
    for i, (name, (lines, kind)) in enumerate(counts.items()):
        fill = QUERY if kind == "model" else ("#d9d9d9", "#efefef")[i % 2]
        axes.barh(0, lines, left=left, color=fill, edgecolor="#555555", height=0.6)
        text = f"{name}\n{lines / total:.0%}"
        white = "white" if kind == "model" else "#222222"
        axes.text(left + lines / 2, 0, text, ha="center", va="center", fontsize=9, color=white)
        left += lines
    axes.set(xlim=(0, total), ylim=(-0.45, 0.45), yticks=[])
    axes.set_xlabel("lines of the file that defines the library's BERT")
    share = sum(lines for lines, kind in counts.values() if kind == "model") / total
    figure.suptitle(f"Most of the library's file is not the model: {share:.0%} computes")
    alt = ", ".join(f"{' '.join(name.split())} {lines / total:.0%}" for name, (lines, _) in counts.items())
    return figure_html(figure, f"A bar of the lines in the library's file for BERT: {alt}.")


def divergence(names: list[str], off: list[float], first: int):
    """Relative difference of each hidden state to the right one; the first that differs is marked."""
    style()
    figure = Figure(figsize=(7.5, 3.2))
    axes = figure.subplots()
    floor = 1e-8
    colours = [KEPT if i < first else KEY if i == first else "#f2c9ab" for i in range(len(off))]
    axes.bar(range(len(off)), [max(x, floor) for x in off], color=colours, edgecolor="#555555", log=True)
    axes.axhline(1e-4, color="#555555", lw=1, ls=":")
    axes.text(-0.45, 1.2e-4, "rounding ends here", va="bottom", fontsize=9)
    axes.set_xticks(range(len(names)), names)
    axes.set_ylim(floor, 10)
    axes.set_ylabel("off, relative")
    axes.set_title(f"The first wrong one is to blame, and the rest pass it on: {names[first]}")
    said = ", ".join(f"{name} {x:.0e}" for name, x in zip(names, off, strict=True))
    return figure_html(figure, f"Bars of how far each hidden state is off, logarithmic: {said}.")


def jobs(scores: dict[str, list[list[float]]], chance: dict[str, float]):
    """For each job a map of layers by heads; the best head is framed. scores: job -> L rows of H numbers."""
    from matplotlib.patches import Rectangle

    style()
    figure = Figure(figsize=(12, 3.3))
    found = []
    for axes, (job, rows) in zip(figure.subplots(1, len(scores)), scores.items(), strict=True):
        picture = axes.imshow(rows, cmap="cividis", vmin=0, vmax=1, origin="lower")
        best, layer, head = max((x, i, j) for i, row in enumerate(rows) for j, x in enumerate(row))
        axes.add_patch(Rectangle((head - 0.5, layer - 0.5), 1, 1, fill=False, ec=KEY, lw=2.5))
        axes.set_title(f"{job}\nbest: layer {layer}, head {head}, {best:.0%}", fontsize=10)
        axes.set_xlabel(f"head   (by chance: {chance[job]:.0%})")
        axes.set_xticks(range(len(rows[0])))
        axes.set_yticks(range(len(rows)))
        axes.tick_params(length=0, labelsize=8)
        found.append(f"{job}: layer {layer}, head {head}, {best:.0%}")
    figure.axes[0].set_ylabel("layer")
    figure.colorbar(picture, ax=figure.axes, shrink=0.75, label="share")
    figure.suptitle("Seventy-two heads, four questions: the best for each job is looked up, not looked for")
    return figure_html(figure, f"Four maps of layers by heads. Best heads: {'; '.join(found)}.")


def width_by_layer(entropies: list[list[float]], most: float):
    """Each head's entropy as a number of tokens, a dot a head, by layer."""
    style()
    figure = Figure(figsize=(7.5, 3.2))
    axes = figure.subplots()
    for layer, row in enumerate(entropies):
        axes.plot([layer] * len(row), row, "o", color=VALUE, alpha=0.6, ms=6)
    axes.axhline(most, color="#555555", lw=1, ls=":")
    axes.text(len(entropies) - 0.55, most, "all tokens alike", ha="right", va="bottom", fontsize=9)
    axes.axhline(1, color="#555555", lw=1, ls=":")
    axes.text(len(entropies) - 0.55, 1, "a single token", ha="right", va="bottom", fontsize=9)
    axes.set(xlabel="layer", ylabel="exp(entropy), in tokens", ylim=(0, most * 1.12))
    axes.set_title("Some heads spread over most tokens; one, in the same layer, looks at a single one")
    low, high = min(map(min, entropies)), max(map(max, entropies))
    alt = f"Dots for every head by layer: exp of the entropy runs from {low:.1f} to {high:.1f} tokens."
    return figure_html(figure, alt)
