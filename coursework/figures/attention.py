"""Drawings of lesson 01. Each takes what the lesson computed and returns HTML with a text for screen readers."""

import matplotlib
import numpy as np
import torch
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from bert_minimal.visualize import KEPT, KEY, QUERY, VALUE, figure_html, style

# For what has no colour of its own in the course: dark blue, ochre and rose differ in lightness too.
DARK, OCHRE, ROSE = "#004488", "#DDAA33", "#BB5566"
ORIGINS = (DARK, OCHRE, ROSE, "#999999")
HATCHES = ("", "///", "...", "")


def _panels(columns: int, width: float, height: float, **options):
    style()
    figure = Figure(figsize=(width, height))
    return figure, figure.subplots(1, columns, squeeze=False, **options)[0]


def turning(leanings: dict[str, list[float]], towards: str, away: str):
    """Lines over the layers: how much nearer a word's vector is to one meaning than to the other."""
    figure, (axes,) = _panels(1, 8, 3.7)
    for (ending, values), colour, line in zip(leanings.items(), (ROSE, DARK), ("-", "--"), strict=True):
        axes.plot(values, line, color=colour, marker="o", markersize=4)
        axes.annotate(f"  {ending}", (len(values) - 1, values[-1]), color=colour, va="center")
    axes.axhline(0, color=KEPT, linewidth=1)
    layers = len(values) - 1
    axes.set_xticks(range(layers + 1), ["input", *(f"layer {i}" for i in range(1, layers + 1))])
    axes.set_xlim(-0.2, layers + 2.1)
    axes.text(-0.1, axes.get_ylim()[1], f"↑ nearer to {towards}", va="top", fontsize=9)
    axes.text(-0.1, axes.get_ylim()[0], f"↓ nearer to {away}", va="bottom", fontsize=9)
    axes.set(ylabel="difference of two cosines")
    axes.set_title("Same word, same place: only the ending differs, and layer by layer it turns “match” around")
    ends = ", ".join(f"with the ending “{name}” it reaches {v[-1]:+.2f}" for name, v in leanings.items())
    return figure_html(figure, f"Two lines that start at the same point at the input; {ends}.")


def steps(matrices: dict[str, torch.Tensor], tokens: list[str]):
    """Query, key, scores, weights, value and context side by side, every number written in its cell."""
    colours = {"query": QUERY, "key": KEY, "value": VALUE, "context": VALUE}
    widths = [m.shape[1] for m in matrices.values()]
    figure, panels = _panels(len(matrices), 11.5, 2.5, width_ratios=widths)
    for axes, (name, matrix) in zip(panels, matrices.items(), strict=True):
        m = matrix.numpy()
        colour = colours.get(name.split()[0], "black")
        ramp = matplotlib.colors.LinearSegmentedColormap.from_list("", ["white", colour if name in colours else KEPT])
        axes.imshow(m, cmap=ramp, vmin=0, vmax=max(1.6 * m.max(), 0.1), aspect="auto")
        for (row, column), number in np.ndenumerate(m):
            whole = float(number).is_integer()
            axes.text(column, row, f"{number:.0f}" if whole else f"{number:.2f}", ha="center", va="center", fontsize=9)
        axes.set_yticks(range(len(tokens)), tokens if axes is panels[0] else [""] * len(tokens))
        square = m.shape[1] == len(tokens)
        axes.set_xticks(range(m.shape[1]), tokens if square else [""] * m.shape[1], rotation=40, fontsize=8)
        axes.add_patch(Rectangle((-0.5, 0.5), m.shape[1], 1, fill=False, ec="black", lw=1.6, clip_on=False))
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
        axes.set_title(name, color=colour, fontsize=10)
    figure.suptitle("“match” asks, “candle” fits best, so “match” takes two thirds of its new vector from “candle”")
    alt = "Six small tables from query to context. In the row of “match” the weights are 0.09, 0.24 and 0.67."
    return figure_html(figure, alt)


def saturation(widths: list[int], spread: list[float], raw: list[tuple], scaled: list[tuple]):
    """Left: spread of raw scores against √d. Right: (largest weight, slope of softmax), raw and divided by √d."""
    figure, (left, right) = _panels(2, 11, 3.9)
    left.loglog(widths, spread, "o", color=DARK, markersize=8, label="measured")
    left.loglog(widths, [d**0.5 for d in widths], "--", color="black", linewidth=1.2, label="√d")
    left.set(xlabel="d, numbers in a query", ylabel="standard deviation of q · k")
    left.set_title("The spread of raw scores grows like √d …")
    left.legend(frameon=False)
    for pairs, colour, name in ((raw, ROSE, "raw"), (scaled, DARK, "divided by √d")):
        for values, line, what in zip(zip(*pairs, strict=True), ("-o", ":s"), ("largest weight", "slope"), strict=True):
            right.semilogx(widths, values, line, color=colour, markersize=4)
            right.annotate(f"  {what}, {name}", (widths[-1], values[-1]), color=colour, va="center", fontsize=9)
    right.set(xlabel="d, numbers in a query", ylim=(0, 1.03), xlim=(widths[0] * 0.8, widths[-1] * 60))
    right.set_xticks([10**i for i in range(4)])
    right.set_title("… and, raw, softmax gives all to one of 16 tokens")
    alt = (
        f"Left: the measured spread lies on the line √d, from {spread[0]:.1f} to {spread[-1]:.1f}. Right: with raw "
        f"scores the largest of 16 weights rises from {raw[0][0]:.2f} to {raw[-1][0]:.2f} and the slope of softmax "
        f"falls to {raw[-1][1]:.2f}; divided by √d both stay level."
    )
    return figure_html(figure, alt)


def heads(right: torch.Tensor, wrong: torch.Tensor, tokens: list[str]):
    """Where each number of each head comes from: colour and number of the token. Two rows of (H, S, d)."""
    style()
    count, length, size = right.shape
    figure = Figure(figsize=(10, 4.1))
    rows = figure.subplots(2, count, sharex=True, sharey=True)
    for row, tensor, name in zip(rows, (right, wrong), ("split, then swap", "one view"), strict=True):
        for head, axes in enumerate(row):
            for (i, j), origin in np.ndenumerate(tensor[head].numpy()):
                token = int(origin)
                box = Rectangle((j, i), 1, 1, fc=ORIGINS[token], ec="white", alpha=0.55, hatch=HATCHES[token])
                axes.add_patch(box)
                plain = {"facecolor": "white", "edgecolor": "none", "boxstyle": "round,pad=0.15"}
                axes.text(j + 0.5, i + 0.5, tokens[token], ha="center", va="center", fontsize=8, bbox=plain)
            axes.set(xlim=(0, size), ylim=(length, 0), title=f"{name}: head {head}")
            axes.set_yticks(np.arange(length) + 0.5, tokens)
            axes.set_xticks([])
            axes.tick_params(length=0)
            axes.spines[:].set_visible(False)
    figure.suptitle("Row “seal” must hold numbers of “seal” only: above it does, below three tokens are mixed")
    alt = "Above: in each head every row holds numbers of its own token. Below: rows hold numbers of other tokens."
    return figure_html(figure, alt)


def two_masks(both: torch.Tensor, causal: torch.Tensor, tokens: list[str]):
    """Who may look at whom: BERT's mask beside GPT's, both (S, S) bool."""
    figure, panels = _panels(2, 9.4, 4.5)
    for axes, mask, title in zip(panels, (both, causal), ("BERT: everything real", "GPT: nothing ahead"), strict=True):
        for (row, column), may in np.ndenumerate(mask.numpy()):
            fill = {"fc": DARK, "alpha": 0.8} if may else {"fc": "#eeeeee", "hatch": "///"}
            axes.add_patch(Rectangle((column, row), 1, 1, ec="white", **fill))
        axes.set(xlim=(0, len(tokens)), ylim=(len(tokens), 0), title=title, aspect="equal")
        axes.set_xticks(np.arange(len(tokens)) + 0.5, tokens, rotation=90, fontsize=9)
        axes.set_yticks(np.arange(len(tokens)) + 0.5, tokens, fontsize=9)
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
    legend = [
        Patch(fc=DARK, alpha=0.8, label="may look"),
        Patch(fc="#eeeeee", hatch="///", ec="white", label="may not"),
    ]
    panels[1].legend(handles=legend, loc="upper left", bbox_to_anchor=(1.02, 1), frameon=False)
    figure.suptitle("Row by row: BERT's “match” may look at “candle”, GPT's may not")
    alt = "Two tables of who may look at whom. BERT: all but the padding columns. GPT: the lower left triangle."
    return figure_html(figure, alt)


def differences(tokens: list[str], both: torch.Tensor, causal: torch.Tensor):
    """Bars per token: how far a token's vector moves when the sentence's ending changes."""
    figure, panels = _panels(2, 10.5, 3.4, sharey=True)
    first = int((causal > 0).nonzero()[0])
    for axes, values, colour, title in zip(
        panels, (both, causal), (DARK, OCHRE), ("looking to both sides", "causal mask"), strict=True
    ):
        axes.bar(range(len(tokens)), values, color=colour, edgecolor="black", linewidth=0.6)
        axes.set_xticks(range(len(tokens)), tokens, rotation=60, ha="right", rotation_mode="anchor")
        axes.set_title(title)
        axes.axvline(first - 0.5, color="black", linewidth=1, linestyle=":")
    panels[0].set_ylabel("change of the token's vector")
    for i in range(first):
        panels[1].text(i, 0, "0", ha="center", va="bottom", fontsize=9)
    figure.suptitle("The ending changes: with both sides “match” hears of it, with a causal mask it cannot")
    alt = (
        f"Bars for each token. Looking to both sides every token changes, “match” by {both[2]:.2f}; "
        "with the causal mask all tokens before the ending change by exactly 0."
    )
    return figure_html(figure, alt)


def looked_at_and_given(tokens: list[str], looked: torch.Tensor, given: torch.Tensor):
    """Two bars a token: its share of the weights, and its share of what is handed over."""
    figure, (axes,) = _panels(1, 9.5, 3.6)
    place = np.arange(len(tokens))
    axes.bar(place - 0.2, looked, 0.4, color=OCHRE, hatch="///", edgecolor="white", label="share of the weights")
    axes.bar(place + 0.2, given, 0.4, color=DARK, label="share of what arrives: weight × length of its vector")
    axes.set_xticks(place, tokens, rotation=40, ha="right", rotation_mode="anchor")
    axes.yaxis.set_major_formatter(matplotlib.ticker.PercentFormatter(1, decimals=0))
    axes.legend(frameon=False)
    axes.set_title(f"[CLS] gets {looked[0]:.0%} of the attention, and {given[0]:.0%} of what arrives comes from it")
    alt = f"[CLS] has {looked[0]:.0%} of the weights and gives {given[0]:.0%} of what arrives: less than an even share."
    return figure_html(figure, alt)
