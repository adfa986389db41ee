"""Drawings of lesson 05. Each takes what the lesson computed and returns HTML with a text for screen readers."""

import torch
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from bert_minimal.visualize import SEGMENT_A, SEGMENT_B, figure_html, style

DARK, ROSE, GREY = "#004488", "#BB5566", "#dddddd"  # for what has no colour of its own in the course


def document_cut(lengths: list[int], pairs: list[tuple[int, int, int, int]]):
    """A document as a row of sentences, and the pairs cut from it below, each under its sentences.

    lengths: words of each sentence; pairs: (first sentence, sentences of A, words of B, label).
    """
    style()
    begins = [sum(lengths[:i]) for i in range(len(lengths) + 1)]
    figure = Figure(figsize=(11.5, 0.52 * len(pairs) + 1.9))
    axes = figure.subplots()
    for i, length in enumerate(lengths):
        axes.add_patch(Rectangle((begins[i], -1.5), length, 0.8, fc=GREY, ec="white", lw=1.5))
        axes.text(begins[i] + length / 2, -1.1, str(i), ha="center", va="center", fontsize=8)
    for row, (first, count, words_b, label) in enumerate(pairs):
        left, middle = begins[first], begins[first + count]
        axes.add_patch(Rectangle((left, row), middle - left, 0.8, fc=SEGMENT_A, ec="white", lw=1.5))
        axes.text((left + middle) / 2, row + 0.4, "A", ha="center", va="center", weight="bold")
        face, edge, hatch = ("white", ROSE, "///") if label else (SEGMENT_B, "white", None)
        axes.add_patch(Rectangle((middle, row), words_b, 0.8, lw=1.5, fc=face, ec=edge, hatch=hatch))
        box = {"boxstyle": "round,pad=0.15", "fc": "white", "ec": "none"} if label else None
        axes.text(middle + words_b / 2, row + 0.4, "B", ha="center", va="center", weight="bold", bbox=box)
        said = "1 NotNext: B is from another book" if label else "0 IsNext"
        axes.text(middle + words_b + 4, row + 0.4, said, va="center", fontsize=9)
    widest = max(begins[f + c] + b for f, c, b, _ in pairs)
    axes.set(xlim=(0, max(begins[-1], widest + 0.22 * begins[-1])), ylim=(len(pairs), -1.7))
    axes.axis("off")
    figure.suptitle("A document cut into pairs: what a false B pushed aside comes back as the next A")
    told = "; ".join(
        f"pair {i + 1}: A sentences {f} to {f + c - 1}, B {'from another book' if y else 'the sentences after it'}"
        for i, (f, c, _, y) in enumerate(pairs)
    )
    return figure_html(figure, f"{len(lengths)} sentences in a row, and below them the pairs cut from them. {told}.")


def accuracies(rows: dict[str, float], title: str):
    """Horizontal bars of shares of right answers, with chance marked."""
    style()
    figure = Figure(figsize=(9.5, 0.62 * len(rows) + 1.3))
    axes = figure.subplots()
    colours = [DARK if share > 0.55 else ROSE for share in rows.values()]
    bars = axes.barh(list(rows), list(rows.values()), color=colours, height=0.62)
    axes.bar_label(bars, fmt=lambda share: f" {share:.0%}")
    axes.axvline(0.5, color="black", ls="--", lw=1)
    axes.text(0.51, len(rows) - 0.58, "a coin", fontsize=9)
    axes.invert_yaxis()
    axes.set(xlim=(0, 1), xticks=[])
    axes.spines[["bottom", "left"]].set_visible(False)
    axes.tick_params(length=0)
    axes.set_title(title)
    told = "; ".join(f"{name}: {share:.0%}" for name, share in rows.items())
    return figure_html(figure, f"Bars of the share of right answers; a coin has 50 %. {told}.")


def telling_words(together: list[tuple[str, float]], apart: list[tuple[str, float]]):
    """Two panels: the words whose sharing says IsNext most, and those whose standing on one side says NotNext."""
    style()
    figure = Figure(figsize=(10, 0.3 * len(together) + 1.3))
    panels = figure.subplots(1, 2)
    for axes, words, colour, name in zip(
        panels, (together, apart), (DARK, ROSE), ("in both", "in one only"), strict=True
    ):
        names, weights = zip(*words, strict=True)
        axes.barh(range(len(names)), [abs(w) for w in weights], color=colour, height=0.7)
        axes.set_yticks(range(len(names)), names)
        axes.invert_yaxis()
        axes.set(xticks=[])
        axes.spines[["bottom", "left"]].set_visible(False)
        axes.tick_params(length=0)
        axes.set_title(f"{name}: {'IsNext' if colour == DARK else 'NotNext'}", fontsize=10)
    figure.suptitle("Names and topics: what a bag of words goes by")
    told = ", ".join(word for word, _ in together), ", ".join(word for word, _ in apart)
    return figure_html(figure, f"The words that tell most. In both segments: {told[0]}. In one only: {told[1]}.")


def answers(scores: dict[str, torch.Tensor], right: dict[str, bool]):
    """A dot for each pair at its probability of IsNext, a row a kind; the share of “yes” at the side."""
    style()
    figure = Figure(figsize=(10.5, 0.75 * len(scores) + 1.4))
    axes = figure.subplots()
    for y, (name, p) in enumerate(scores.items()):
        jitter = torch.linspace(-0.3, 0.3, len(p))[torch.randperm(len(p), generator=torch.Generator().manual_seed(0))]
        colour = DARK if right[name] else ROSE
        axes.scatter(p, y + jitter, s=16, color=colour, marker="o" if right[name] else "x", alpha=0.8)
        axes.text(1.04, y, f"“yes” to {(p > 0.5).double().mean():.0%}", va="center")
    axes.axvline(0.5, color="black", ls="--", lw=1)
    axes.set_yticks(range(len(scores)), list(scores))
    axes.invert_yaxis()
    axes.set(xlim=(-0.02, 1.02), xlabel="probability of IsNext")
    axes.spines[["left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    figure.suptitle("The course's BERT hears whether it is the same film, not what comes first")
    told = "; ".join(f"{name}: yes to {(p > 0.5).double().mean():.0%}" for name, p in scores.items())
    return figure_html(figure, f"Dots: each pair's probability of IsNext. {told}.")


def similarities(maps: dict[str, torch.Tensor]):
    """Heat maps of cosines between sentences, side by side in one scale of colours."""
    style()
    figure = Figure(figsize=(11.5, 4.0))
    panels = figure.subplots(1, len(maps))
    for axes, (name, cosines) in zip(panels, maps.items(), strict=True):
        image = axes.imshow(cosines.numpy(), cmap="cividis", vmin=0, vmax=1)
        apart = cosines[~torch.eye(len(cosines), dtype=torch.bool)]
        axes.set_title(f"{name}\nunlike sentences: {apart.mean():.2f} on average", fontsize=10)
        axes.set(xticks=[], yticks=[])
    figure.colorbar(image, ax=panels, shrink=0.8, label="cosine")
    figure.suptitle("[CLS] after pre-training: unlike sentences look alike")
    told = "; ".join(
        f"{name}: {c[~torch.eye(len(c), dtype=torch.bool)].mean():.2f} on average" for name, c in maps.items()
    )
    return figure_html(figure, f"Heat maps of cosines between {len(next(iter(maps.values())))} sentences. {told}.")


def two_losses(words: float, pairs: float, start: tuple[float, float]):
    """Stacked bars of both losses, at the start and of the trained model."""
    style()
    figure = Figure(figsize=(9.5, 2.6))
    axes = figure.subplots()
    for y, (name, (a, b)) in enumerate({"knows nothing": start, "the course's BERT": (words, pairs)}.items()):
        axes.barh(y, a, color=DARK, height=0.6)
        axes.barh(y, b, left=a, color=ROSE, height=0.6, hatch="//", edgecolor="white")
        axes.text(a + b + 0.1, y, f"{a:.2f} + {b:.2f} = {a + b:.2f}", va="center")
        axes.text(-0.15, y, name, ha="right", va="center")
    axes.invert_yaxis()
    axes.set(xlim=(0, 1.25 * sum(start)), xticks=[], yticks=[])
    axes.spines[["bottom", "left"]].set_visible(False)
    names = [Patch(fc=DARK, label="masked words"), Patch(fc=ROSE, hatch="//", ec="white", label="next sentence")]
    figure.legend(handles=names, loc="outside lower center", ncols=2, frameon=False)
    figure.suptitle("One sum: nearly all of it is the words")
    alt = f"Two bars. Knows nothing: {start[0]:.2f} and {start[1]:.2f}. The course's BERT: {words:.2f} and {pairs:.2f}."
    return figure_html(figure, alt)
