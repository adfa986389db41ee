"""Drawings of lesson 08. Each takes what the lesson computed and returns HTML with a text for screen readers."""

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from bert_minimal.visualize import figure_html, style

DARK, OCHRE, ROSE, GREY = "#004488", "#DDAA33", "#BB5566", "#8a8a8a"
LOOKS = [(DARK, "o-"), (ROSE, "s--"), (OCHRE, "^-.")]


def _panels(columns: int, width: float, height: float, **options):
    style()
    figure = Figure(figsize=(width, height))
    return figure, figure.subplots(1, columns, squeeze=False, **options)[0]


def by_examples(sizes: Sequence[int], found: Mapping[str, Sequence[float]], blind: float, title: str):
    """Test accuracy of several learners over the number of labelled examples; `blind`: who reads nothing."""
    figure, (axes,) = _panels(1, 8.6, 4.3)
    places = range(len(sizes))
    for (name, values), (colour, look) in zip(found.items(), LOOKS, strict=False):
        axes.plot(places, values, look, color=colour, markersize=7)
        axes.annotate(f"{name}, {values[-1]:.0%}", (places[-1], values[-1]), (9, 0), textcoords="offset points",
                      color=colour if colour != OCHRE else "#7a5c00", va="center")  # fmt: skip
    axes.axhline(blind, color=GREY, linewidth=1, linestyle=":")
    axes.text(len(sizes) + 0.13, blind + 0.006, "reads nothing", color="#555555", fontsize=9, ha="right")
    axes.set_xticks(list(places), [str(size) for size in sizes])
    axes.set(xlabel="labelled sentences to learn from", ylabel="right on the test sentences",
             xlim=(-0.2, len(sizes) + 0.15), ylim=(0.42, 0.8))  # fmt: skip
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    axes.set_title(title)
    rows = "; ".join(f"{name}: " + ", ".join(f"{v:.0%}" for v in values) for name, values in found.items())
    return figure_html(
        figure, f"Accuracy over {', '.join(map(str, sizes))} labelled examples. {rows}. Blind: {blind:.0%}."
    )


def by_rate(rates: Sequence[float], accuracy: Sequence[float], blanks: Sequence[float], before: float, title: str):
    """Left: accuracy on the new task over the learning rate. Right: blanks that the old head can still fill."""
    figure, (left, right) = _panels(2, 10.6, 3.9)
    places = range(len(rates))
    for axes, values, colour, what in ((left, accuracy, DARK, "new task: right on the test sentences"),
                                       (right, blanks, ROSE, "old task: masked words guessed")):  # fmt: skip
        axes.plot(places, values, "o-", color=colour, markersize=7)
        for x, value in zip(places, values, strict=True):
            axes.annotate(f"{value:.0%}", (x, value), (0, 9), textcoords="offset points", ha="center", color=colour,
                          bbox={"facecolor": "white", "edgecolor": "none", "pad": 1})  # fmt: skip
        axes.set_xticks(list(places), [f"{rate:.0e}".replace("e-0", "e-") for rate in rates])
        axes.set(xlabel="learning rate", title=what, xlim=(-0.4, len(rates) - 0.6))
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    left.set_ylim(0.4, 0.8)
    right.set_ylim(0, max(before, *blanks) * 1.25)
    right.axhline(before, color=GREY, linewidth=1, linestyle=":")
    right.text(len(rates) - 0.65, before, "before fine-tuning", color="#555555", fontsize=9, ha="right", va="bottom")
    figure.suptitle(title)
    pairs = "; ".join(
        f"{rate:g}: {a:.0%} right, {b:.0%} of the blanks" for rate, a, b in zip(rates, accuracy, blanks, strict=True)
    )
    return figure_html(
        figure, f"By learning rate, the new task and the old one: {pairs}. Before: {before:.0%} of the blanks."
    )


def by_seed(found: Mapping[str, Sequence[float]], title: str):
    """One dot a seed, the mean as a line, mean ± sd as a band."""
    from bert_minimal.train.scores import mean_sd

    figure, (axes,) = _panels(1, 8.2, 1.3 + 0.75 * len(found))
    told = []
    for row, (name, values) in enumerate(found.items()):
        mean, sd = mean_sd(values)
        axes.fill_betweenx([row - 0.26, row + 0.26], mean - sd, mean + sd, color=DARK, alpha=0.15, linewidth=0)
        axes.plot([mean, mean], [row - 0.26, row + 0.26], color=DARK, linestyle="-")
        twins = [list(values[:i]).count(value) for i, value in enumerate(values)]  # the same value: one above the other
        axes.plot(values, [row - 0.13 * twin for twin in twins], "o", color=ROSE, markersize=7)
        told.append(f"{name}: {mean:.1%} ± {sd:.1%}")
        axes.text(mean, row - 0.3, f"{mean:.1%} ± {sd:.1%}", ha="center", va="bottom", fontsize=9.5)
    axes.set_yticks(range(len(found)), list(found))
    axes.set(xlabel="right on the test sentences, one dot a seed", ylim=(len(found) - 0.6, -0.65))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    axes.set_title(title)
    return figure_html(figure, f"Accuracy over seeds, mean ± standard deviation. {'; '.join(told)}.")


def padding(lengths: Sequence[int], batch: int, title: str):
    """What a model reads of `lengths` texts in their own order, and sorted: real tokens and padding, a row a text."""
    figure, panels = _panels(2, 9.6, 3.6, sharey=True)
    shares = []
    for axes, (name, order) in zip(
        panels, {"as they come": lengths, "sorted by length": sorted(lengths)}.items(), strict=True
    ):
        longest = [max(order[i - i % batch : i - i % batch + batch]) for i in range(len(order))]
        axes.barh(range(len(order)), longest, color=OCHRE, height=1.0, edgecolor="white", linewidth=0.3, hatch="///")
        axes.barh(range(len(order)), order, color=DARK, height=1.0, edgecolor="white", linewidth=0.3)
        shares.append(1 - sum(order) / sum(longest))
        axes.set(title=f"{name}: {shares[-1]:.0%} is padding", xlabel="positions that the model reads", yticks=[])
        axes.invert_yaxis()
    panels[0].set_ylabel(f"texts, {batch} a batch")
    figure.suptitle(title)
    alt = (
        f"Bars of {len(lengths)} texts in batches of {batch}: tokens, and hatched the padding behind them. As they "
        f"come {shares[0]:.0%} of all positions are padding, sorted by length {shares[1]:.0%}."
    )
    return figure_html(figure, alt)


def losses(curves: Mapping[str, Sequence[float]], right: Sequence[float], floor: float, title: str):
    """Training losses of healthy and ill runs, a panel each; `right`: the share of right answers at the end.

    floor: what the second run's loss can't fall below.
    """
    figure, panels = _panels(len(curves), 3.5 * len(curves), 3.3)
    for axes, (name, values), share, colour in zip(panels, curves.items(), right, (DARK, ROSE, OCHRE), strict=True):
        axes.plot(range(1, len(values) + 1), values, color=colour, linestyle="-")
        axes.axhline(0, color=GREY, linewidth=0.8)
        axes.set(title=f"{name}\n{values[0]:.2f} → {values[-1]:.2f}, {share:.0%} right", xlabel="step")
    top = max(max(values) for values in list(curves.values())[:2])
    for axes in panels[:2]:  # the third has nothing in common with them
        axes.set_ylim(-0.04, top * 1.05)
    panels[1].axhline(floor, color=GREY, linewidth=1, linestyle=":")
    panels[1].text(1, floor - 0.02, f"no way below {floor:.2f}", color="#555555", fontsize=9, va="top")
    panels[0].set_ylabel("training loss")
    figure.suptitle(title)
    ends = "; ".join(
        f"{name} from {values[0]:.2f} to {values[-1]:.2f} with {share:.0%} right"
        for (name, values), share in zip(curves.items(), right, strict=True)
    )
    return figure_html(figure, f"Training losses, one panel a run: {ends}.")
