"""Drawings of lesson 02. Each takes what the lesson computed and returns HTML with a text for screen readers."""

import torch
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from bert_minimal.visualize import KEPT, SEGMENT_A, SEGMENT_B, figure_html, style

DARK, OCHRE, ROSE = "#004488", "#DDAA33", "#BB5566"  # for what has no colour of its own in the course


def _panels(columns: int, width: float, height: float, **options):
    style()
    figure = Figure(figsize=(width, height))
    return figure, figure.subplots(1, columns, squeeze=False, **options)[0]


def two_seals(placed: list[float], unplaced: list[float]):
    """Lines over the layers: how far apart two equal words of one sentence are, with and without positions."""
    figure, (axes,) = _panels(1, 8, 3.3)
    layers = len(placed) - 1
    for values, colour, line, name in (
        (placed, DARK, "-", "with position vectors"),
        (unplaced, ROSE, "--", "without: exactly 0"),
    ):
        axes.plot(values, line, color=colour, marker="o", markersize=4)
        axes.annotate(f"  {name}", (layers, values[-1]), color=colour, va="center")
    axes.set_xticks(range(layers + 1), ["input", *(f"layer {i}" for i in range(1, layers + 1))])
    axes.set_xlim(-0.2, layers + 1.9)
    axes.set_ylim(-0.03, 1.15 * max(placed))
    axes.set(ylabel="distance, in lengths of a vector")
    axes.set_title("The animal and the wax: without positions, six layers cannot tell one “seal” from the other")
    alt = (
        f"With position vectors the two seals are apart, by {placed[0]:.2f} at the input and {placed[-1]:.2f} after "
        "the last layer. Without them the distance is 0 in every layer."
    )
    return figure_html(figure, alt)


def pair(tokens: list[str], segments: list[int], parts: dict[str, torch.Tensor], count: int = 16):
    """A pair token by token: three rows of ids, and below each token its vectors.

    parts: name → (S, D), the three addends, their sum, and what LayerNorm makes of it. Of the D features those
    `count` are drawn in which positions differ most.
    """
    style()
    length = len(tokens)
    figure = Figure(figsize=(11.5, 8.6))
    top, *strips = figure.subplots(1 + len(parts), 1, height_ratios=[1.9] + [1] * len(parts), sharex=True)
    colours = [(SEGMENT_A, SEGMENT_B)[s] for s in segments]
    rows = (("token", tokens, 0.8, 1.6), ("segment", segments, 2.1, 0.8), ("position", list(range(length)), 3.0, 0.8))
    for name, words, centre, height in rows:
        top.text(-0.75, centre, name, ha="right", va="center", fontsize=10)
        for i, word in enumerate(words):
            fill = colours[i] if name == "segment" else "white"
            box = (i - 0.47, centre - height / 2 + 0.03), 0.94, height - 0.06
            top.add_patch(Rectangle(*box, fc=fill, ec="#777777", lw=0.8))
            upright = {"rotation": 90, "fontsize": 9.5} if name == "token" else {"fontsize": 9.5}
            top.text(i, centre, str(word), ha="center", va="center", **upright)
    top.set(xlim=(-0.5, length - 0.5), ylim=(3.45, -0.05))
    top.axis("off")
    shown = parts["position"][1:].var(dim=0).topk(count).indices.sort().values
    for axes, sign, (name, x) in zip(strips, ("", "+ ", "+ ", "= ", ""), parts.items(), strict=True):
        loud = 2.0 if "LayerNorm" in name else 0.16  # one scale for what is added and for the sum
        axes.imshow(x[:, shown].T, aspect="auto", cmap="cividis", vmin=-loud, vmax=loud, interpolation="nearest")
        axes.set_ylabel(sign + name, rotation=0, ha="right", va="center", fontsize=10)
        axes.vlines([i + 0.5 for i in range(length - 1)], -0.5, count - 0.5, color="white", linewidth=1)
        axes.set(xticks=[], yticks=[], xlim=(-0.5, length - 0.5))
        axes.spines[:].set_visible(False)
    figure.suptitle("Equal words have equal columns, segments differ little, positions glide: three vectors, one sum")
    alt = (
        f"{length} tokens from {tokens[0]} to {tokens[-1]}; under each its segment, 0 up to the first [SEP], then 1, "
        f"and its position from 0 to {length - 1}. Below, {count} features of each token's vectors: the word's (equal "
        "words have equal columns), the segment's (two columns only), the position's (changing gradually from left to "
        "right), their sum, and the sum after LayerNorm."
    )
    return figure_html(figure, alt)


def places(cosines: torch.Tensor, waves: torch.Tensor):
    """Cosines of all pairs of position vectors (P, P): whole, enlarged, and their mean by distance beside `waves`."""
    figure, (whole, near, curve) = _panels(3, 12.5, 3.9, width_ratios=[1, 1, 1.35])
    picture = whole.imshow(cosines, cmap="cividis", vmin=-0.6, vmax=1)
    near.imshow(cosines[:41, :41], cmap="cividis", vmin=-0.6, vmax=1)
    whole.set(title=f"all {len(cosines)} places", xlabel="place", ylabel="place")
    near.set(title="the first 41", xlabel="place")
    figure.colorbar(picture, ax=[whole, near], label="cosine", location="left", shrink=0.8)
    distance = range(41)
    means = {}
    for table, colour, line, name in (
        (cosines, DARK, "-", "learned"),
        (waves, OCHRE, "--", "sines and cosines, computed"),
    ):
        means[name] = [float(torch.diagonal(table, d)[1:].mean()) for d in distance]  # without place 0
        curve.plot(distance, means[name], line, color=colour)
    curve.text(12, 0.74, "computed: sines and cosines", fontsize=9)
    curve.text(26.5, 0.42, "learned", color=DARK, fontsize=9)
    curve.set(xlabel="distance of two places", ylabel="mean cosine", ylim=(-0.1, 1.05))
    curve.set_title("nearer is more alike, but in waves")
    figure.suptitle("Nobody told the model which places are neighbours: its position vectors found out")
    means = means["learned"]
    alt = (
        "A map of cosines with a bright diagonal and paler stripes along it. The curve of mean cosine against distance "
        f"falls from 1 to {means[3]:.2f} at distance 3, rises again to {means[5]:.2f} at 5 and goes on in waves."
    )
    return figure_html(figure, alt)


def two_segments(segment: torch.Tensor, lengths: dict[str, float]):
    """Left: the two segment vectors and their difference, feature by feature. Right: lengths to compare with."""
    figure, (left, right) = _panels(2, 11.5, 2.9, width_ratios=[2.2, 1])
    strips = torch.stack([segment[0], segment[1], segment[1] - segment[0]])
    left.imshow(strips, aspect="auto", cmap="cividis", vmin=-0.1, vmax=0.1, interpolation="nearest")
    left.set_yticks(range(3), ["segment A", "segment B", "B − A"])
    left.set_xticks([])
    left.hlines([0.5, 1.5], -0.5, strips.shape[1] - 0.5, color="white", linewidth=4)
    left.tick_params(length=0)
    left.spines[:].set_visible(False)
    left.set_xlabel(f"{strips.shape[1]} features")
    bars = right.barh(list(lengths), list(lengths.values()), color=[KEPT, DARK, OCHRE, ROSE][: len(lengths)])
    right.bar_label(bars, fmt=" %.2f")
    right.set(xlim=(0, 1.25 * max(lengths.values())), xlabel="length of the vector")
    right.invert_yaxis()
    figure.suptitle("What tells B from A is small and the same for every token")
    alt = "Three strips of features: segments A and B look alike, their difference is faint. Bars of mean lengths: "
    return figure_html(figure, alt + ", ".join(f"{name} {value:.2f}" for name, value in lengths.items()) + ".")


def features(stages: dict[str, torch.Tensor], word: str, loud: int):
    """The features of one token at each stage of LayerNorm, one bar a feature; the loud one in its own colour."""
    figure, panels = _panels(len(stages), 12, 3.2)
    for axes, (name, x) in zip(panels, stages.items(), strict=True):
        colours = [ROSE if i == loud else DARK for i in range(len(x))]
        axes.vlines(range(len(x)), 0, x, color=colours, linewidth=[2.5 if i == loud else 0.8 for i in range(len(x))])
        axes.axhline(0, color="black", linewidth=0.6)
        axes.set_title(
            f"{name}\nmean {float(x.mean()) + 0.0:.2f}, spread {float(x.std(correction=0)):.2f}", fontsize=10
        )
        axes.plot(loud, x[loud], "o", color=ROSE, markersize=5)
        plain = {"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "boxstyle": "round,pad=0.15"}
        axes.text(loud + 12, float(x[loud]), f"feature {loud}", color=ROSE, fontsize=9, va="center", bbox=plain)
        axes.set_xlabel(f"{len(x)} features")
        axes.set_xticks([])
    figure.suptitle(f"“{word}”: LayerNorm sets the scale, and the learned weight turns the loudest feature down")
    first, *_, last = stages.values()
    alt = (
        f"Bars for all features of “{word}”, before LayerNorm, after the division and after weight and bias. Feature "
        f"{loud} sticks out first ({float(first[loud]):.2f}, {float(first[loud] / first.std()):.0f} times the spread), "
        f"and does no longer at the end ({float(last[loud]):.2f})."
    )
    return figure_html(figure, alt)


def batch(rows: list[tuple[list[str], list[int]]]):
    """Texts of unlike length as rows of tokens in the colour of their segment, padding hatched."""
    style()
    longest = max(len(tokens) for tokens, _ in rows)
    figure = Figure(figsize=(11.5, 0.78 * len(rows) + 1))
    axes = figure.subplots()
    for y, (tokens, segments) in enumerate(rows):
        for x in range(longest):
            real = x < len(tokens)
            fill = (SEGMENT_A, SEGMENT_B)[segments[x]] if real else "#eeeeee"
            axes.add_patch(Rectangle((x, y), 1, 1, ec="white", lw=1.2, fc=fill, hatch="" if real else "////"))
            if real:
                axes.text(x + 0.5, y + 0.5, tokens[x], ha="center", va="center", fontsize=9, rotation=90)
    axes.set(xlim=(0, longest), ylim=(len(rows), 0))
    axes.axis("off")
    real = sum(len(tokens) for tokens, _ in rows)
    shares = f"{real} of {longest * len(rows)} places are real tokens ({real / longest / len(rows):.0%})"
    figure.suptitle(f"A batch is as long as its longest text: {shares}")
    names = [Patch(fc=SEGMENT_A, label="segment A"), Patch(fc=SEGMENT_B, label="segment B"),
             Patch(fc="#eeeeee", hatch="////", ec="white", label="padding")]  # fmt: skip
    figure.legend(handles=names, loc="outside lower center", ncols=3, frameon=False)
    alt = f"{len(rows)} rows of tokens, segment A then segment B, each filled up to {longest} places. {shares}."
    return figure_html(figure, alt)


def lengths(table: torch.Tensor, marked: dict[str, float]):
    """How long the word vectors are, as a histogram, with some of them marked by name."""
    figure, (axes,) = _panels(1, 8.5, 3.4)
    counts, _, _ = axes.hist(table.numpy(), bins=80, color="#bbbbbb")
    levels = (0.95, 0.8, 0.65)
    for i, (name, value) in enumerate(sorted(marked.items(), key=lambda item: item[1])):
        colour = ROSE if name == "[PAD]" else DARK
        height = levels[i % 3] * float(counts.max())
        axes.vlines(value, 0, height, color=colour, linewidth=2, linestyle="-" if name == "[PAD]" else ":")
        axes.text(value, height, f" {name} {value:.2f}", color=colour, va="bottom", ha="left", fontsize=9)
    axes.set(xlim=(0, None), xlabel="length of the vector", ylabel="pieces of the vocabulary")
    axes.set_title("Padding is not nothing: [PAD] has a vector like any other piece")
    listed = ", ".join(f"{name} {value:.2f}" for name, value in marked.items())
    return figure_html(
        figure, f"Histogram of the lengths of all word vectors, mostly between 0.5 and 1.5. Marked: {listed}."
    )


def moves(moved: dict[str, float]):
    """How far the last layer's vectors move for each mistake in the input: one bar a mistake, from small to large."""
    figure, (axes,) = _panels(1, 9.5, 0.42 * len(moved) + 1.3)
    ordered = dict(sorted(moved.items(), key=lambda item: item[1]))
    bars = axes.barh(list(ordered), list(ordered.values()), color=DARK)
    axes.bar_label(bars, labels=[f" {value:.1%}" for value in ordered.values()])
    axes.set(
        xlim=(0, 1.15 * max(ordered.values())), xlabel="how far the tokens' last vectors move, in lengths of a vector"
    )
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    axes.set_title("None of these raises an error, and all of them give other vectors")
    alt = "Bars, from small to large: " + ", ".join(f"{name} {value:.1%}" for name, value in ordered.items()) + "."
    return figure_html(figure, alt)
