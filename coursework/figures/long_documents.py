"""Drawings of lesson 09. Each takes what the lesson computed and returns HTML with a text for screen readers."""

from collections.abc import Sequence

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from bert_minimal.visualize import KEY, QUERY, VALUE, figure_html, style

INK = "#222222"


def by_tenth(right: Sequence[float], error: Sequence[float], whole: float, count: int):
    """The share of verdicts guessed from each tenth of the reviews alone, with its standard error."""
    style()
    figure = Figure(figsize=(8, 3.9))
    axes = figure.subplots()
    last = len(right) - 1
    colours = [QUERY] * last + [KEY]
    for k, (value, e) in enumerate(zip(right, error, strict=True)):
        axes.errorbar(k, 100 * value, 100 * e, fmt="o", ms=8, capsize=4, color=colours[k])
        axes.annotate(f"{100 * value:.0f}", (k, 100 * (value + e) + 0.6), ha="center", va="bottom", color=colours[k])
    axes.axhline(100 * whole, color=VALUE, ls="--")
    axes.text(0, 100 * whole + 0.4, f"all of the review: {100 * whole:.0f} %", color=VALUE, va="bottom")
    axes.set_xticks(range(len(right)), ["first", *(f"{k + 1}." for k in range(1, last)), "last"])
    axes.set(xlabel="a tenth of the review", ylabel="verdicts guessed, in %", ylim=(60, 100 * whole + 5))
    axes.set_title(f"The last tenth tells most: {100 * right[-1]:.0f} % of the verdicts, by counting words alone")
    told = ", ".join(f"{100 * value:.0f}" for value in right)
    alt = f"Per cent of the verdicts of {count} long reviews guessed from each tenth alone: {told}; "
    return figure_html(figure, alt + f"bars of one standard error. From all of it: {100 * whole:.0f}.")


def review_windows(length: int, cuts: Sequence[tuple[int, int]], marks: dict[str, list[int]], most: int = 512,
                   chances: Sequence[float] | None = None, truth: str = ""):  # fmt: skip
    """A review of `length` pieces, where words of praise and blame stand in it, and its windows (start, end).

    chances: of "good" as the model sees each window; without, the windows are drawn plain.
    """
    style()
    figure = Figure(figsize=(10, 0.36 * len(cuts) + 2.2))
    axes = figure.subplots()
    axes.add_patch(Rectangle((0, 0.2), length, 0.6, fc="#dddddd", ec="none"))
    axes.text(-8, 0.5, "review", ha="right", va="center")
    for name, colour, y, mark in (("praise", VALUE, -0.15, "^"), ("blame", KEY, 1.15, "v")):
        axes.plot(marks[name], [y] * len(marks[name]), mark, color=colour, ms=6, ls="none")
        axes.text(
            length + 8, y, f"{mark.replace('^', '▲').replace('v', '▼')} words of {name}", va="center", color=colour
        )
    if length > most:
        axes.plot([most, most], [0.0, 1.0], "-", color=INK, lw=2)
        axes.text(most, -0.45, f"place {most}: BERT ends here", ha="center", va="bottom", fontsize=9)
    for k, (a, b) in enumerate(cuts):
        y, good = k + 2.0, None if chances is None else chances[k]
        colour = "#cfe3f5" if good is None else VALUE if good > 0.5 else KEY
        strength = 1.0 if good is None else 0.15 + 1.3 * abs(good - 0.5)
        hatch = "//" if good is not None and good <= 0.5 else ""
        axes.add_patch(Rectangle((a, y + 0.1), b - a, 0.75, fc=colour, alpha=strength, ec="none", hatch=hatch))
        axes.add_patch(Rectangle((a, y + 0.1), b - a, 0.75, fc="none", ec="#666666", lw=0.8))
        axes.text(-8, y + 0.5, f"window {k}", ha="right", va="center")
        said = f"pieces {a} to {b - 1}" if good is None else f"good: {good:.0%}"
        axes.text(length + 8, y + 0.5, said, va="center", fontsize=9.5)
    axes.set(xlim=(-0.1 * length, 1.24 * length), ylim=(len(cuts) + 2.2, -1.0))
    axes.axis("off")
    listed = ", ".join(f"{a} to {b}" for a, b in cuts)
    counts = f"{len(marks['praise'])} words of praise and {len(marks['blame'])} of blame"
    if chances is None:
        places = [place for found in marks.values() for place in found]
        behind = f"{sum(place >= most for place in places)} of {len(places)}"
        title = f"{length} pieces, {len(cuts)} windows: {behind} loud words stand where BERT can't see"
        alt = f"A review of {length} pieces with {counts}, and its windows: {listed}."
    else:
        mean = sum(chances) / len(chances)
        agree = sum((c > 0.5) == (mean > 0.5) for c in chances)
        title = f"{agree} of {len(cuts)} windows agree; the mean says good: {mean:.0%} (the writer: {truth})"
        told = ", ".join(f"{c:.0%}" for c in chances)
        alt = f"The windows of a review of {length} pieces, {listed}; the chance of “good” in each: {told}."
    figure.suptitle(title)
    return figure_html(figure, alt)


def shares(sizes: Sequence[int], attention: dict[str, Sequence[float]], most: int = 512):
    """Which part of the work is attention's, at each length, for models of several widths."""
    style()
    figure = Figure(figsize=(7.5, 3.8))
    axes = figure.subplots()
    for (name, values), colour, line in zip(attention.items(), (QUERY, KEY), ("-", "--"), strict=False):
        axes.plot(sizes, [100 * v for v in values], line, color=colour)
        axes.annotate(f"  {name}", (sizes[-1], 100 * values[-1]), va="center", color=colour)
        at = values[list(sizes).index(most)]
        axes.plot([most], [100 * at], "o", color=colour)
        axes.annotate(f"{at:.0%}", (most, 100 * at), (0, 7), textcoords="offset points", ha="center", color=colour)
    axes.axvline(most, color="#777777", lw=1, ls=":")
    axes.set(xlabel="tokens in one text", ylabel="attention's part of the work, %", ylim=(0, 100))
    axes.set_xscale("log", base=2)
    axes.set_xticks(sizes, [str(s) for s in sizes])
    axes.set_xlim(sizes[0], sizes[-1] * 2.6)
    low = min(values[list(sizes).index(most)] for values in attention.values())
    axes.set_title(f"At {most} tokens, attention is {low:.0%} of BERT-base's work: the square comes later")
    told = "; ".join(f"{name} {', '.join(f'{v:.0%}' for v in values)}" for name, values in attention.items())
    return figure_html(figure, f"Attention's part of the work for texts of {list(sizes)} tokens: {told}.")


def cost_and_accuracy(rows: dict[str, tuple[float, float, float]], count: int):
    """name -> (cost a review, accuracy, standard error). Cost as a multiple of the first row's.

    Among the rows are "windows" and "overlapping windows". Rows of the same cost are drawn a little apart.
    """
    style()
    figure = Figure(figsize=(9, 4.6))
    axes = figure.subplots()
    unit = next(iter(rows.values()))[0]
    most = max(cost for cost, *_ in rows.values()) / unit
    taken: list[float] = []
    for (name, (cost, right, error)), marker in zip(rows.items(), "o^svDPX", strict=False):
        colour = QUERY if "windows" not in name else KEY if "max" not in name else VALUE
        x = cost / unit
        apart = x + 0.035 * most * sum(abs(x - other) < 0.1 for other in taken)
        taken.append(x)
        axes.errorbar(apart, 100 * right, 100 * error, fmt=marker, color=colour, ms=8, capsize=4, label=name)
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    low = min(right - error for _, right, error in rows.values())
    high = max(right + error for _, right, error in rows.values())
    axes.set(xlabel="work for one review (the first 128 tokens = 1)", ylabel="reviews judged right, %")
    axes.set(xlim=(0, most * 1.08), ylim=(100 * low - 4, 100 * high + 3))
    (first, *_), once, twice = rows.values(), rows["windows"], rows["overlapping windows"]
    gains = [100 * (once[1] - first[1]), 100 * (twice[1] - once[1])]
    axes.set_title(
        f"Windows: {once[0] / unit:.0f} × the work, {gains[0]:+.0f} points. With overlap: {twice[0] / unit:.0f} ×, "
        f"{gains[1]:+.0f} more. Bars: one standard error, {count} reviews", loc="left", fontsize=10.5,
    )  # fmt: skip
    told = "; ".join(f"{n}: cost {c / unit:.1f}, {r:.0%} ± {e:.0%}" for n, (c, r, e) in rows.items())
    return figure_html(figure, f"Accuracy against cost. {told}.")
