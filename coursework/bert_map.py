"""The picture of the whole: the pieces of BERT and the unit that builds each. It heads every lesson."""

from dataclasses import dataclass

from bert_minimal.visualize import figure_html


@dataclass(frozen=True)
class Piece:
    unit: int
    name: str
    x: float  # centre
    y: float
    width: float
    height: float = 0.62


# Text enters at the bottom; each step up is what happens next to it.
PIECES = (
    Piece(3, "word pieces", 2.0, 0.9, 3.4),
    Piece(2, "embeddings of the input", 2.0, 1.9, 3.4),
    Piece(1, "attention", 2.0, 3.05, 2.9),
    Piece(6, "feed-forward, LayerNorm", 2.0, 3.8, 2.9),
    Piece(6, "pooler", 2.0, 4.95, 3.4),
    Piece(4, "fill in the blank", 5.7, 2.15, 2.3),
    Piece(5, "next sentence?", 5.7, 3.1, 2.3),
    Piece(7, "pre-training", 5.7, 4.35, 2.3),
    Piece(8, "one label for a text", 9.0, 1.5, 2.7),
    Piece(9, "long documents", 9.0, 2.45, 2.7),
    Piece(10, "tags and answers", 9.0, 3.4, 2.7),
    Piece(11, "RoBERTa, ALBERT, …", 9.0, 4.35, 2.7),
    Piece(12, "the library's BERT", 9.0, 5.3, 2.7),
)
BUILT, LATER, INK = "#0072B2", "#8a8a8a", "#111111"
PROGRESS = "Filled: you have built it. Thick frame: next. Dashed: still to come."
TAUGHT = {piece.unit: piece.name.partition(":")[0] for piece in PIECES} | {
    6: "the layer, the stack and the pooler",
}


def bert_map(unit: int, done: set[int] | None = None):
    """The map at the head of unit 0 to 12: built so far filled, today's in a thick frame, the rest dashed.

    done: the units that are filled; those before `unit` unless it is given (progress.py).

    Returns an IPython HTML object. Raises ValueError for a unit that does not exist.
    """
    if unit not in range(13):
        raise ValueError(f"units are 0 to 12, not {unit!r}")
    import matplotlib
    from matplotlib.figure import Figure
    from matplotlib.patches import FancyBboxPatch

    with matplotlib.rc_context({"figure.dpi": 100, "font.size": 10}):
        figure = Figure(figsize=(10.4, 5.4), facecolor="white", layout="constrained")
        axes = figure.subplots()
        axes.set(xlim=(0, 10.6), ylim=(-0.15, 6.1))
        axes.axis("off")
        _background(axes)
        for piece in PIECES:
            new, built = piece.unit == unit, piece.unit < unit if done is None else piece.unit in done
            box = FancyBboxPatch(
                (piece.x - piece.width / 2, piece.y - piece.height / 2), piece.width, piece.height,
                boxstyle="round,pad=0,rounding_size=0.12", zorder=3,
                facecolor=BUILT if built else "white",
                edgecolor="#D55E00" if new else BUILT if built else LATER,
                linewidth=3.2 if new else 1.2, linestyle="-" if new or built else (0, (4, 3)),
            )  # fmt: skip
            axes.add_patch(box)
            text = f"{piece.unit:02d}  {piece.name}"
            axes.text(
                piece.x, piece.y, text, ha="center", va="center", fontsize=9.5, zorder=4,
                color="white" if built else INK if new else "#666666", weight="bold" if new else "normal",
            )  # fmt: skip
        axes.set_title(_title(unit) if done is None else PROGRESS, fontsize=11.5, loc="left")
    return figure_html(figure, _alt(unit) if done is None else f"{PROGRESS} Built: units {sorted(done)}.")


def _background(axes) -> None:
    """What holds the pieces together: the text, the arrows, the layer that repeats, the three columns."""
    from matplotlib.patches import FancyBboxPatch

    axes.text(2.0, 0.1, "“The match was over before the candle was lit.”", ha="center", va="center", fontsize=10)
    layer = (0.35, 2.55), 3.3, 1.75
    axes.add_patch(FancyBboxPatch(*layer, boxstyle="round,pad=0,rounding_size=0.15", fc="#f2f2f2", ec="#cccccc"))
    axes.text(3.74, 3.95, "× 12", ha="left", va="center", fontsize=11, color="#333333", weight="bold")
    arrow = {"arrowstyle": "-|>", "color": "#777777", "linewidth": 1.2, "shrinkA": 0, "shrinkB": 0}
    for low, high in ((0.27, 0.59), (1.21, 1.59), (2.21, 2.74), (3.36, 3.49), (4.11, 4.64)):
        axes.annotate("", (2.0, high), (2.0, low), arrowprops=arrow, zorder=2)
    for x, y, words in ((2.0, 5.85, "the model"), (5.7, 5.85, "how it learns"), (9.0, 5.85, "what it is good for")):
        axes.text(x, y, words, ha="center", va="center", fontsize=10, color="#333333", weight="bold")
    axes.annotate("", (4.45, 3.1), (3.75, 3.1), arrowprops=arrow)
    axes.annotate("", (7.55, 3.1), (6.95, 3.1), arrowprops=arrow)
    axes.annotate("", (5.7, 4.02), (5.7, 3.45), arrowprops=arrow)


def _title(unit: int) -> str:
    if unit == 0:
        return "BERT, and the unit that builds each piece"
    if unit == 12:
        return "Everything is built; today we read the library's BERT beside ours"
    return f"Today, unit {unit:02d}: {TAUGHT[unit]} (thick frame). Filled: built. Dashed: still to come"


def _alt(unit: int) -> str:
    steps = "text, word pieces (unit 3), embeddings (2), twelve layers of attention (1) and feed-forward (6), pooler"
    learns = "fill in the blank (4), next sentence (5), pre-training (7)"
    uses = "one label for a text (8), long documents (9), tags and answers (10), variants (11), the library's BERT (12)"
    today = f" Today: {TAUGHT[unit]}." if unit else ""
    return f"Map of the course. The model, from the bottom: {steps}. How it learns: {learns}. Uses: {uses}.{today}"
