"""Drawings of lesson 11. Each takes what the lesson computed and returns HTML with a text for screen readers."""

from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from bert_minimal.visualize import figure_html, style

BLUE, OCHRE, ROSE, GREY = "#004488", "#DDAA33", "#BB5566", "#BBBBBB"


def sharing(times: int = 12):
    """Left a stack of layers with their own weights, right one layer and the arrow that runs round it."""
    style()
    figure = Figure(figsize=(9.5, 5.4))
    left, right = figure.subplots(1, 2)
    for number in range(times):
        _box(left, 0.3, number * 0.75 + 0.75, 2.4, 0.58, f"layer {number + 1}", BLUE)
    _box(left, 0.3, 0.0, 2.4, 0.58, "words: 768 wide", OCHRE, "black")
    _box(right, 0.3, 3.6, 2.4, 2.2, "one layer", BLUE)
    _box(right, 0.3, 1.1, 2.4, 0.58, "widen: 128 to 768", ROSE)
    _box(right, 0.3, 0.0, 0.75, 0.58, "words", OCHRE, "black")
    right.text(1.15, 0.29, "128 wide", va="center")
    arrow = {"arrowstyle": "-|>", "lw": 2, "color": "black"}
    for a, b in (((1.5, 0.62), (1.5, 1.08)), ((1.5, 1.72), (1.5, 3.55)), ((1.5, 5.85), (1.5, 7.6))):
        right.annotate("", b, a, arrowprops=arrow)
    loop = {**arrow, "connectionstyle": "arc3,rad=0.9", "color": ROSE, "lw": 3}
    right.annotate("", (2.75, 4.0), (2.75, 5.4), arrowprops={**loop, "connectionstyle": "arc3,rad=-1.1"})
    right.text(3.75, 4.7, f"{times} times\nround", va="center", ha="left", color=ROSE, weight="bold", fontsize=13)
    for axes, title in (
        (left, "BERT: twelve layers, twelve sets of weights"),
        (right, "ALBERT: one set, used twelve times"),
    ):
        axes.set(xlim=(0, 5.2), ylim=(-0.2, times * 0.75 + 0.9))
        axes.axis("off")
        axes.set_title(title, fontsize=11)
    figure.suptitle("The same work, a ninth of the weights")
    alt = (
        f"Left, BERT: a word table 768 wide, above it {times} boxes, layer 1 to {times}. Right, ALBERT: a word table "
        f"128 wide, a matrix that widens to 768, one box “one layer”, and an arrow that leads from its top back to its "
        f"bottom, marked {times} times round."
    )
    return figure_html(figure, alt)


def _box(axes, x, y, width, height, text, fill, ink="white"):
    axes.add_patch(FancyBboxPatch((x, y), width, height, boxstyle="round,pad=0,rounding_size=0.1", fc=fill, ec="white"))
    axes.text(x + width / 2, y + height / 2, text, ha="center", va="center", color=ink, fontsize=9.5)


def stored_and_done(families: dict[str, tuple[float, float]]):
    """families: name -> (millions of parameters, GFLOPs a text)."""
    style()
    figure = Figure(figsize=(9.5, 3.3))
    both = figure.subplots(1, 2, sharey=True)
    for axes, column, unit, colour in ((both[0], 0, "M stored", OCHRE), (both[1], 1, "GFLOP for one text", BLUE)):
        values = [pair[column] for pair in families.values()]
        bars = axes.barh(list(families), values, color=colour, height=0.65)
        axes.bar_label(bars, [f" {value:.0f}" for value in values])
        axes.set(xlabel=unit, xticks=[], xlim=(0, max(values) * 1.15))
        axes.spines[:].set_visible(False)
        axes.tick_params(length=0)
    both[0].invert_yaxis()
    figure.suptitle("ALBERT stores a ninth and computes as much; only DistilBERT computes less")
    told = "; ".join(f"{name} {a:.0f} million and {b:.0f} GFLOP" for name, (a, b) in families.items())
    return figure_html(figure, f"Two bar charts side by side, parameters stored and operations for one text: {told}.")


def grouped(table: dict[str, dict[str, float]], title: str):
    """table: group -> {series: share}. Bars with their numbers on them."""
    style()
    series = list(next(iter(table.values())))
    figure = Figure(figsize=(9.5, 3.6))
    axes = figure.subplots()
    wide = 0.8 / len(series)
    looks = [(BLUE, ""), (OCHRE, "//"), (ROSE, ".."), (GREY, "")]
    for number, (name, (colour, hatch)) in enumerate(zip(series, looks, strict=False)):
        places = [x + number * wide for x in range(len(table))]
        bars = axes.bar(places, [row[name] for row in table.values()], wide * 0.92, color=colour, hatch=hatch,
                        edgecolor="white", label=name)  # fmt: skip
        axes.bar_label(bars, [f"{row[name]:.0%}" for row in table.values()], padding=2)
    axes.set_xticks([x + wide * (len(series) - 1) / 2 for x in range(len(table))], list(table))
    axes.set(ylim=(0, max(max(row.values()) for row in table.values()) * 1.18), yticks=[])
    axes.spines[["left", "top", "right"]].set_visible(False)
    axes.tick_params(length=0)
    if len(series) > 1:
        axes.legend(frameon=False, ncols=len(series), loc="upper left", bbox_to_anchor=(0, 1.13))
    figure.suptitle(title)
    told = "; ".join(f"{group}: " + ", ".join(f"{n} {v:.0%}" for n, v in row.items()) for group, row in table.items())
    return figure_html(figure, f"Bar chart: {title}. {told}.")
