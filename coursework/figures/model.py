"""Drawings of lesson 06. Each takes what the lesson computed and returns HTML with a text for screen readers."""

import torch
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from bert_minimal.visualize import figure_html, style

DARK, OCHRE, ROSE, GREY = "#004488", "#DDAA33", "#BB5566", "#8a8a8a"


def _panels(columns: int, width: float, height: float, **options):
    style()
    figure = Figure(figsize=(width, height))
    return figure, figure.subplots(1, columns, squeeze=False, **options)[0]


def gelu(x: torch.Tensor, curves: dict[str, torch.Tensor]):
    """Left: the activations over x. Right: how far the tanh form is from the one with erf."""
    figure, (left, right) = _panels(2, 11, 3.6)
    looks = {"erf": (DARK, "-"), "tanh": (OCHRE, "--"), "ReLU": (GREY, ":")}
    for name, values in curves.items():
        left.plot(x, values, looks[name][1], color=looks[name][0], linewidth=2.4 if name == "erf" else 1.8)
    left.annotate("GELU, with erf and with tanh:\none line to the eye", (-0.9, -0.17), (-3.9, 1.3), fontsize=9.5,
                  arrowprops={"arrowstyle": "-", "color": "#777777"})  # fmt: skip
    left.annotate("ReLU", (1.5, 1.5), (0.6, 2.2), color="#555555", arrowprops={"arrowstyle": "-", "color": GREY})
    left.set(xlabel="x", ylim=(-0.4, 3), xlim=(-4, 3))
    gap = curves["tanh"] - curves["erf"]
    worst = gap.abs().argmax()
    right.axhline(0, color=GREY, linewidth=0.8)
    right.plot(x, gap * 1e4, color=OCHRE, linestyle="-")
    right.plot(x[worst], gap[worst] * 1e4, "o", color=ROSE)
    right.annotate(f"  {float(gap[worst]):+.5f} at x = {float(x[worst]):+.1f}", (x[worst], gap[worst] * 1e4),
                   color=ROSE, fontsize=9.5, va="top" if gap[worst] < 0 else "bottom")  # fmt: skip
    right.set(xlabel="x", ylabel="tanh form − erf form, in 1/10,000", xlim=(-4, 5.4))
    figure.suptitle(f"Two functions go by the name of GELU; they differ by {float(gap.abs().max()):.4f} at most")
    alt = (
        "Left: GELU is near 0 for very negative x, dips below 0 and follows x for large x; its two forms lie on one "
        f"another, ReLU has a sharp corner. Right: their difference, at most {float(gap.abs().max()):.5f}, largest "
        f"at x = {float(x[worst]):.1f}, and 0 far from the middle."
    )
    return figure_html(figure, alt)


def layer_map():
    """One layer as boxes, from the bottom to the top, with the three places of dropout."""
    style()
    figure = Figure(figsize=(9.2, 5.2))
    axes = figure.subplots()
    axes.set(xlim=(-0.3, 9.2), ylim=(-0.1, 7.6))
    axes.axis("off")
    boxes = (
        ("attention", 1.35, DARK), ("+", 2.55, "white"), ("LayerNorm 1", 3.3, OCHRE),
        ("feed-forward", 4.65, DARK), ("+", 5.85, "white"), ("LayerNorm 2", 6.6, OCHRE),
    )  # fmt: skip
    for name, y, colour in boxes:
        width = 0.5 if name == "+" else 2.6
        shape = FancyBboxPatch((2.5 - width / 2, y - 0.26), width, 0.52, boxstyle="round,pad=0,rounding_size=0.12",
                               fc=colour, ec="#333333", zorder=3)  # fmt: skip
        axes.add_patch(shape)
        ink = "white" if colour == DARK else "#111111"
        axes.text(2.5, y, name, ha="center", va="center", color=ink, zorder=4, fontsize=11)
    arrow = {"arrowstyle": "-|>", "color": "#555555", "linewidth": 1.3, "shrinkA": 0, "shrinkB": 0}
    for low, high in ((0.35, 1.09), (1.61, 2.29), (2.81, 3.04), (3.56, 4.39), (4.91, 5.59), (6.11, 6.34), (6.86, 7.35)):
        axes.annotate("", (2.5, high), (2.5, low), arrowprops=arrow)
    for start, end in ((0.6, 2.55), (3.85, 5.85)):  # the residuals
        axes.plot([2.5, 0.55, 0.55], [start, start, end], color=ROSE, linewidth=2, linestyle="-")
        axes.annotate("", (2.25, end), (0.54, end), arrowprops=arrow | {"color": ROSE, "linewidth": 2})
        axes.text(0.4, (start + end) / 2, "residual", rotation=90, ha="right", va="center", color=ROSE)
    axes.text(2.5, 0.2, "hidden (B, S, D)", ha="center", va="center", fontsize=10)
    axes.text(2.7, 7.35, "to the next layer", ha="left", va="center", fontsize=10)
    for y, x, words in (
        (1.35, 3.8, "on the attention weights, after softmax"),
        (1.95, 2.5, "on what attention gives, before the sum"),
        (5.25, 2.5, "on what feed-forward gives, before the sum"),
    ):
        axes.annotate(f"dropout: {words}", (x, y), (4.5, y), va="center", fontsize=10,
                      arrowprops={"arrowstyle": "-", "linestyle": ":", "color": "#333333"})  # fmt: skip
        axes.plot(x, y, "D", color="#333333", markersize=7, zorder=5)
    axes.set_title("One layer: twice “compute, drop, add, normalise”. Nothing drops on the red lines", loc="left")
    alt = (
        "From the bottom: hidden states, attention, a sum with the residual, LayerNorm 1, feed-forward, a sum with the "
        "residual, LayerNorm 2, next layer. Dropout acts at three places: on the attention weights, on attention's "
        "output before the sum, on feed-forward's output before the sum. The residual lines carry no dropout."
    )
    return figure_html(figure, alt)


LOOKS = {"post-LN, as in BERT": (DARK, "-", "o"), "pre-LN, as in GPT-2": (OCHRE, "-", "s"),
         "no residual": (ROSE, "--", "^"), "no LayerNorm": (GREY, ":", "v")}  # fmt: skip


def signal(alike: dict[str, list[float]], length: dict[str, list[float]], slope: dict[str, list[float]]):
    """By layer, for each kind of stack: how alike the tokens are, how long they are, and the gradient's size."""
    figure, (left, middle, right) = _panels(3, 13, 3.9)
    for axes, curves in ((left, alike), (middle, length), (right, slope)):
        for name, values in curves.items():
            colour, line, mark = LOOKS[name]
            first = 1 if axes is right else 0
            axes.plot(
                range(first, first + len(values)), values, line, color=colour, marker=mark, markersize=4, label=name
            )
        axes.set_xlabel("layer")
    left.set(
        ylabel="cosine of two tokens, mean", ylim=(-0.1, 1.08), title="without the residual\nall tokens become one"
    )
    middle.set(
        ylabel="length of a token's vector",
        ylim=(0, None),
        title="pre-LN grows, post-LN\n(under the red line) does not",
    )
    right.set(
        ylabel="gradient of a layer's weights",
        yscale="log",
        title="the gradient reaches the first layer\nin all four",
    )
    handles, names = left.get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=4, frameon=False)
    figure.suptitle("One sentence through twelve fresh layers of BERT-base")
    last = {name: values[-1] for name, values in alike.items()}
    alt = (
        "Three panels of curves over the layers. Mean cosine of two tokens after the last layer: "
        + ", ".join(f"{name} {value:.2f}" for name, value in last.items())
        + ". Length of a token's vector after the last layer: "
        + ", ".join(f"{name} {values[-1]:.0f}" for name, values in length.items())
        + ". Gradient of the first and of the last layer: "
        + ", ".join(f"{name} {values[0]:.1g} and {values[-1]:.1g}" for name, values in slope.items())
        + "."
    )
    return figure_html(figure, alt)


def starts(drawn: dict[str, torch.Tensor], std: float):
    """Histograms of fresh weights, one a way of drawing them, with a line at two spreads."""
    figure, panels = _panels(len(drawn), 11.5, 3.1, sharey=True)
    for axes, (name, values) in zip(panels, drawn.items(), strict=True):
        axes.hist(values.numpy(), bins=90, range=(-6 * std, 6 * std), color=DARK)
        for x in (-2 * std, 2 * std):
            axes.axvline(x, color=ROSE, linestyle="--", linewidth=1.2)
        largest, spread = float(values.abs().max()), float(values.std())
        axes.set_title(f"{name}\nlargest {largest:.3f}, spread {spread:.4f}", fontsize=10)
        axes.set_yticks([])
    figure.suptitle("trunc_normal_ cuts at ±2, not at two spreads (red), unless told")
    alt = "Histograms of fresh weights: " + "; ".join(
        f"{name}: largest {float(v.abs().max()):.3f}, spread {float(v.std()):.4f}" for name, v in drawn.items()
    )
    return figure_html(figure, alt + ".")


def parameters(models: dict[str, dict[str, int]]):
    """One bar a model, cut into its parts by their share; the numbers in millions."""
    figure, (axes,) = _panels(1, 11.5, 1.05 * len(models) + 1.3)
    colours = {"word table": OCHRE, "attention": ROSE, "feed-forward": DARK, "all the rest": GREY}
    for y, parts in enumerate(models.values()):
        left, total = 0.0, sum(parts.values())
        for name, count in parts.items():
            share = count / total
            axes.barh(y, share, left=left, color=colours[name], edgecolor="white", height=0.66)
            if share > 0.05:
                ink = "#111111" if name == "word table" else "white"
                words = f"{name}\n{count / 1e6:.1f} M · {share:.0%}"
                axes.text(left + share / 2, y, words, ha="center", va="center", color=ink, fontsize=9.5)
            left += share
        rest = parts["all the rest"]
        axes.text(1, y, f"  the rest:\n  {rest / 1e6:.1f} M · {rest / total:.1%}", va="center", fontsize=9.5)
    axes.set_yticks(range(len(models)), [f"{name}\n{sum(parts.values()):,}" for name, parts in models.items()])
    axes.invert_yaxis()
    axes.set(xlabel="share of the parameters", xlim=(0, 1.13), xticks=[0, 0.25, 0.5, 0.75, 1])
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    axes.set_title("Feed-forward holds more than half of BERT; attention, which made it famous, about a quarter")
    alt = "Stacked bars. " + " ".join(
        f"{name}, {sum(parts.values()):,} parameters: "
        + ", ".join(f"{part} {count / 1e6:.1f} million" for part, count in parts.items())
        + "."
        for name, parts in models.items()
    )
    return figure_html(figure, alt)


def moves(moved: dict[str, float]):
    """How far the last layer's vectors move for each mistake in the model: one bar a mistake."""
    figure, (axes,) = _panels(1, 9.5, 0.42 * len(moved) + 1.3)
    ordered = dict(sorted(moved.items(), key=lambda item: item[1]))
    bars = axes.barh(list(ordered), list(ordered.values()), color=DARK)
    axes.bar_label(bars, labels=[f" {value:.2%}" if value < 0.1 else f" {value:.0%}" for value in ordered.values()])
    axes.set(xlim=(0, 1.15 * max(ordered.values())), xlabel="how far the last vectors move, in lengths of a vector")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    axes.set_title("All of these run, and none of them says a word")
    alt = "Bars, from small to large: " + ", ".join(f"{name} {value:.2%}" for name, value in ordered.items()) + "."
    return figure_html(figure, alt)
