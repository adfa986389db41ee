"""Drawings of lesson 07. Each takes what the lesson computed and returns HTML with a text for screen readers."""

from matplotlib.figure import Figure

from bert_minimal.visualize import KEPT, figure_html, style

DARK, OCHRE, ROSE = "#004488", "#DDAA33", "#BB5566"  # for what has no colour of its own in the course


def _level(axes, height: float, name: str) -> None:
    axes.axhline(height, color=KEPT, linewidth=1, linestyle=":")
    axes.text(1, height, name, transform=axes.get_yaxis_transform(), ha="right", va="top", fontsize=8, color="#444")


def first_fall(whole: list[float], bias: list[float], every: int, levels: dict[str, float], share: float):
    """A whole model and a lone bias, both from ln V down to the level of frequencies."""
    style()
    figure = Figure(figsize=(8.5, 3.9))
    axes = figure.subplots()
    steps = [every * (i + 1) for i in range(len(whole))]
    axes.plot(steps, bias, color=OCHRE, linestyle="--", label="one number for each piece, nothing else")
    axes.plot(steps, whole, color=DARK, label="the whole model")
    for name, height in levels.items():
        _level(axes, height, f"{name} = {height:.2f}")
    axes.set(xlabel="step", ylabel="loss (nats)", ylim=(min(whole) - 0.15, max(levels.values()) + 0.2))
    axes.legend(frameon=False, loc="center right", bbox_to_anchor=(1, 0.62))
    axes.set_title(f"Most of the fall is word frequency: {share:.0%} of it can be had without reading at all")
    told = f"The whole model falls from {whole[0]:.2f} to {whole[-1]:.2f}, a lone bias from {bias[0]:.2f} to "
    told += f"{bias[-1]:.2f}. Dotted: " + ", ".join(f"{name} {height:.2f}" for name, height in levels.items())
    return figure_html(figure, f"Loss against step. {told}.")


def steps_of_adam(corrected: list[float], raw: list[float]):
    """Length of each step in units of lr, with and without bias correction."""
    style()
    figure = Figure(figsize=(8.5, 3.4))
    axes = figure.subplots()
    numbers = range(1, len(raw) + 1)
    axes.plot(numbers, raw, color=ROSE, linestyle="--", label="no correction (BERT's original)")
    axes.plot(numbers, corrected, color=DARK, label="bias correction")
    longest = max(range(len(raw)), key=raw.__getitem__)
    at = longest + 1, raw[longest]
    axes.annotate(f"step {at[0]}: {at[1]:.1f} × lr", at, (3 * at[0], at[1]), fontsize=9,
                  arrowprops={"arrowstyle": "-", "color": "#777777"})  # fmt: skip
    axes.set(xscale="log", xlabel="step", ylabel="length of the step / lr", ylim=(0, 7.2))
    axes.legend(frameon=False, loc="upper right")
    axes.set_title("Without bias correction the first steps are too long, not too short")
    told = (
        f"Corrected steps are 1 lr long. Without correction the first is {raw[0]:.2f}, the longest {raw[longest]:.2f} "
    )
    return figure_html(figure, f"Length of Adam's steps for a steady gradient. {told}, the last {raw[-1]:.2f}.")


def ward(runs: dict[str, dict[str, list[float]]], healthy: dict[str, list[float]], every: int, level: float,
         title: str):  # fmt: skip
    """Six curves, each beside a healthy one in grey. runs: name → {"train", "held"}; held has half as many points."""
    style()
    figure = Figure(figsize=(11.5, 5.6))
    for axes, (name, run) in zip(figure.subplots(2, 3).flat, runs.items(), strict=True):
        for curves, colour, width, label in ((healthy, "#bbbbbb", 1.2, "healthy"), (run, DARK, 1.8, "this run")):
            train, held = curves["train"], curves["held"]
            axes.plot([every * (i + 1) for i in range(len(train))], train, "-", color=colour, lw=width, label=label)
            axes.plot([2 * every * (i + 1) for i in range(len(held))], held, "--", color=colour, lw=width)
        lowest = min(*run["train"], *run["held"], *healthy["train"])
        highest = max(*run["train"], *run["held"], *healthy["train"])
        axes.axhline(level, color=ROSE, lw=1, ls=":")
        axes.set_ylim(min(lowest - 0.1, 4.6) if lowest > 4 else 0, highest + 0.15)
        axes.set_title(name)
    figure.suptitle(title)
    figure.supxlabel("step. Solid: training text, dashed: held-out text, grey: healthy, dotted: word frequency alone",
                     fontsize=9)  # fmt: skip
    figure.supylabel("loss (nats)", fontsize=9)
    told = "; ".join(f"{name}: training {r['train'][0]:.1f} → {r['train'][-1]:.1f}, held out {r['held'][-1]:.1f}"
                     for name, r in runs.items())  # fmt: skip
    return figure_html(figure, f"Six panels of training curves. Healthy: → {healthy['train'][-1]:.1f}. {told}.")


def two_runs(ours: list[tuple[float, float]], shipped: list[tuple[float, float]], levels: dict[str, float]):
    """Held or training loss against tokens read, on a logarithmic axis: (tokens, loss) of each run."""
    style()
    figure = Figure(figsize=(9.5, 4.2))
    axes = figure.subplots()
    for points, colour, line, name in ((ours, ROSE, "-", "yours, just now"),
                                       (shipped, DARK, "--", "the course's BERT")):  # fmt: skip
        x, y = zip(*points, strict=True)
        axes.plot(x, y, color=colour, linestyle=line)
        axes.annotate(f" {name}: {y[-1]:.1f}", (x[-1], y[-1]), color=colour, va="bottom")
    for name, height in levels.items():
        _level(axes, height, f"{name} = {height:.2f}")
    axes.set_xlim(min(ours)[0] / 2, shipped[-1][0] * 12)
    axes.set(xscale="log", xlabel="tokens read (each step right is ten times as many)", ylabel="masked-LM loss (nats)")
    times = shipped[-1][0] / ours[-1][0]
    axes.set_title(f"The same road; the course's BERT went on for {times:,.0f} times as many tokens")
    told = f"yours ends at {ours[-1][1]:.2f} after {ours[-1][0]:,.0f}, the course's at {shipped[-1][1]:.2f} after "
    return figure_html(figure, f"Loss against tokens read: {told}{shipped[-1][0]:,.0f}.")
