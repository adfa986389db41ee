"""Pictures: attention grids, interactive attention without the internet, hidden states, loss curves.

One style for all: opaque white (readable in a dark notebook), colours that colour-blind readers can tell
apart (Okabe & Ito 2008) with a line style each, and one colour for one thing through the whole course.
Every picture's title says what it shows, and `figure_html` gives it a text for those who can't see it.
"""

import base64
import html
import io
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch

QUERY, KEY, VALUE = "#0072B2", "#D55E00", "#009E73"  # blue, vermilion, green
SEGMENT_A, SEGMENT_B = "#56B4E9", "#E69F00"  # sky, orange
MASKED, RANDOM, KEPT = "#CC79A7", "#F0E442", "#999999"  # purple, yellow (for fills), grey

_COLOURS = [QUERY, KEY, VALUE, MASKED, SEGMENT_A, SEGMENT_B, "#000000"]
_LINES = ["-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1))]

MAX_TOKENS = 32  # labels stay readable, and a view's size grows with the square


def style() -> None:
    """Make the course's style matplotlib's default; the functions below use it without this."""
    import matplotlib

    matplotlib.rcParams.update(_style())


def _style() -> dict:
    from cycler import cycler

    white = {f"{part}.facecolor": "white" for part in ("figure", "axes", "savefig")}
    cycle = cycler(color=_COLOURS) + cycler(linestyle=_LINES)
    grid = {"axes.grid": False, "axes.spines.top": False, "axes.spines.right": False}
    text = {"font.size": 10, "axes.titlesize": 11, "figure.titlesize": 12, "savefig.transparent": False}
    return {**white, **grid, **text, "figure.constrained_layout.use": True, "axes.prop_cycle": cycle} | {
        "image.cmap": "cividis",
        "lines.linewidth": 1.8,
        "figure.dpi": 100,
    }


def attention_grid(weights, tokens: Sequence[str], title: str, columns: int = 4, names=None):
    """Heat maps, one a head: row = the token that looks, column = the token looked at, dark 0 to bright 1.

    Args:
        weights: (H, S, S) or (1, H, S, S) attention probabilities, tensor or array.
        tokens: S tokens, S ≤ 32.
        title: the finding, not the axes ("Head 2 looks one word back").
        columns: pictures a row.
        names: H titles, one a picture; default "head 0", "head 1", …
    Returns:
        a matplotlib Figure; show it with `figure_html(figure, alt)`.
    Raises:
        ValueError: wrong shape, too many tokens, or numbers that are no probabilities.
    """
    import matplotlib
    from matplotlib.figure import Figure

    w = _probabilities(weights, tokens)  # (H, S, S)
    H, S, _ = w.shape
    names = [f"head {h}" for h in range(H)] if names is None else list(names)
    if len(names) != H:
        raise ValueError(f"{len(names)} names for {H} heads")
    columns = min(columns, H)
    rows = -(-H // columns)
    side = 0.9 + 0.16 * S + 0.4 * (S < 8)
    with matplotlib.rc_context(_style()):
        width = max(side * columns + 1.2, 0.1 * len(title))  # the title must fit above a single small map
        figure = Figure(figsize=(width, side * rows + 0.8))
        axes = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
        for axis in axes.flat[H:]:
            axis.axis("off")
        for axis, head, name in zip(axes.flat, w, names, strict=False):  # the last row may have room left
            picture = axis.imshow(head, cmap="cividis", vmin=0, vmax=1)
            axis.set_title(name)
            axis.set_xticks(range(S), tokens, rotation=90, fontsize=8)
            axis.set_yticks(range(S), tokens, fontsize=8)
            axis.tick_params(length=0, labelbottom=True)
        figure.colorbar(picture, ax=axes, label="attention weight", shrink=0.8)
        figure.supylabel("this token …", fontsize=9)
        figure.supxlabel("… looks at this one", fontsize=9)
        figure.suptitle(title)
    return figure


def hidden_state_map(states, tokens: Sequence[str], title: str):
    """What each layer leaves of the word itself: cosine between a token's vector there and its embedding.

    states: L+1 tensors (S, D) or (1, S, D), the embeddings first as a model returns them. Returns a Figure.
    """
    import matplotlib
    from matplotlib.figure import Figure

    x = np.stack([_array(s).reshape(-1, s.shape[-1]) for s in states])  # (L+1, S, D)
    if x.shape[1] != len(tokens):
        raise ValueError(f"states for {x.shape[1]} positions, but {len(tokens)} tokens: one row a token")
    x = x / np.linalg.norm(x, axis=-1, keepdims=True)
    cosine = np.einsum("lsd,sd->ls", x, x[0])
    with matplotlib.rc_context(_style()):
        figure = Figure(figsize=(1.8 + 0.45 * len(tokens), 1.6 + 0.3 * len(x)))
        axis = figure.subplots()
        low = min(0, cosine.min())
        picture = axis.imshow(cosine, cmap="cividis", vmin=low, vmax=1, aspect="auto", origin="lower")
        axis.set_xticks(range(len(tokens)), tokens, rotation=90)
        axis.set_yticks(range(len(x)), ["embedding", *(f"layer {i}" for i in range(1, len(x)))])
        axis.tick_params(length=0)
        axis.set_title(title)
        figure.colorbar(picture, ax=axis, label="cosine with its embedding")
    return figure


def loss_curves(curves: Mapping[str, Sequence[float]], title: str, every: int = 1, lines=None):
    """Loss against step, each curve's name at its end. Returns a Figure.

    curves: name → losses in nats, one every `every` steps. lines: name → height of a level to compare with,
    such as {"guessing: ln V": math.log(V)}.
    """
    import matplotlib
    from matplotlib.figure import Figure

    if not curves or not all(len(c) for c in curves.values()):
        raise ValueError("each curve needs at least one loss")
    with matplotlib.rc_context(_style()):
        figure = Figure(figsize=(7, 4))
        axis = figure.subplots()
        for name, losses in curves.items():
            y = np.asarray(losses, dtype=float)
            (line,) = axis.plot(np.arange(1, len(y) + 1) * every, y)
            last = np.flatnonzero(np.isfinite(y))  # a run that blew up is labelled where it was last seen
            at = ((last[-1] + 1) * every, y[last[-1]]) if len(last) else (every, 0)
            axis.annotate(f" {name}", at, color=line.get_color(), va="center", annotation_clip=False)
        for name, height in (lines or {}).items():
            axis.axhline(height, color=KEPT, linewidth=1, linestyle=":")
            beside = axis.get_yaxis_transform()  # x in parts of the width, y in data
            axis.text(1, height, name, transform=beside, ha="right", va="bottom", color="#555")
        axis.set(xlabel="step", ylabel="loss (nats)", title=title)
    return figure


def figure_html(figure, alt: str, width: int | None = None):
    """The figure as HTML with a text for screen readers (notebooks ignore `Image(alt=…)`).

    alt: one or two sentences that say what the picture shows. Returns an IPython HTML object.
    """
    from IPython.display import HTML
    from matplotlib import pyplot

    if not alt.strip():
        raise ValueError("alt is empty: say in a sentence what the picture shows")
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=110, facecolor="white", metadata={"Software": None})
    pyplot.close(figure)  # a pyplot figure would be shown a second time at the end of the cell
    size = f"width:{width}px;" if width else ""
    data = base64.b64encode(buffer.getvalue()).decode()
    image = f'<img alt="{html.escape(alt)}" style="{size}max-width:100%" src="data:image/png;base64,{data}">'
    return HTML(f'<figure style="margin:0;background:#fff">{image}</figure>')


def attention_view(attentions, tokens: Sequence[str], kind: str = "head", sentence_b_start=None):
    """bertviz's interactive view in a frame that needs no internet and is readable in both themes.

    Args:
        attentions: L tensors (1, H, S, S) or (H, S, S), as a model returns them.
        tokens: S tokens, S ≤ 32.
        kind: "head" (lines between tokens, one layer at a time) or "model" (all layers and heads, small).
        sentence_b_start: for a pair: position of the first token of the second text, or None.
    Returns:
        an IPython HTML object. Untrusted notebooks and GitHub don't run it: show `attention_grid` beside it.
    """
    from bertviz import head_view, model_view
    from IPython.display import HTML

    if kind not in ("head", "model"):
        raise ValueError(f"kind must be 'head' or 'model', not {kind!r}")
    if isinstance(attentions, torch.Tensor | np.ndarray):
        raise ValueError("attentions must be a list of (1, H, S, S), one a layer: put a single one into [ ]")
    rounded = [torch.from_numpy(_probabilities(a, tokens).round(4))[None] for a in attentions]
    if sentence_b_start is not None and not 0 < sentence_b_start < len(tokens):
        raise ValueError(f"sentence_b_start must be a position between 1 and {len(tokens) - 1}")
    more = {"sentence_b_start": sentence_b_start, "html_action": "return"}
    more |= {"display_mode": "light"} if kind == "model" else {}
    raw = (head_view if kind == "head" else model_view)(rounded, list(tokens), **more).data
    S, L, H = len(tokens), len(rounded), rounded[0].shape[1]
    height = 23 * S + 90 if kind == "head" else max(L * (84 * S // H + 10) + 41, 18 * S + 55) + 60
    page = html.escape(_offline_page(raw))
    label = f"Attention between tokens, interactive ({kind} view): {' '.join(tokens)}"
    return HTML(
        f'<div style="background:#fff"><iframe title="{html.escape(label)}" sandbox="allow-scripts" '
        f'style="width:100%;height:{height}px;border:0;background:#fff" srcdoc="{page}"></iframe></div>'
    )


def _offline_page(raw: str) -> str:
    """bertviz's HTML without its CDN: libraries inlined, require.js replaced by what the view uses of it."""
    body, script = raw.rsplit('<script type="text/javascript">', 1)
    script = script.rsplit("</script>", 1)[0]
    script = re.sub(r"require\.config\(\{.*?\}\s*\}\);", "", script, count=1, flags=re.S)
    script = script.replace("</", r"<\/").replace("<!--", r"<\!--")  # a token must not end the script
    body = re.sub(r"<script src=[^>]*></script>", "", body)
    folder = Path(__file__).parent / "data" / "js"
    names = ("jquery.slim.min.js", "d3-selection.min.js", "d3-color.min.js")
    libraries = "".join(f"<script>{(folder / n).read_text('utf-8')}</script>" for n in names)
    notices = (folder / "LICENSES.txt").read_text("utf-8")
    stand_in = (
        f"d3.schemeCategory10 = {_COLOURS}; d3.scaleOrdinal = list => i => list[i % list.length];"
        "const requirejs = (names, run) => run(jQuery, d3);"
    )
    page = f"<!DOCTYPE html><meta charset=utf-8><!--\n{notices}\n-->"
    page += "<style>body{background:#fff;color:#000}</style>"
    page += f"{libraries}{body}<script>{stand_in}{script}</script>"
    return re.sub(r"bertviz-[0-9a-f]{32}", "bertviz", page)  # a random id would change with each run


def _array(x) -> np.ndarray:
    return x.detach().double().cpu().numpy() if isinstance(x, torch.Tensor) else np.asarray(x, dtype=float)


def _probabilities(weights, tokens: Sequence[str]) -> np.ndarray:
    """(H, S, S) as an array, checked against the tokens."""
    if isinstance(tokens, str):
        raise ValueError("tokens must be a list of strings, one a position, not one string")
    w = _array(weights)
    if w.ndim == 4 and len(w) == 1:
        w = w[0]
    if w.ndim != 3 or w.shape[1] != w.shape[2]:
        raise ValueError(f"weights must be (H, S, S) or (1, H, S, S), those of one text, not {w.shape}")
    if w.shape[1] != len(tokens):
        raise ValueError(f"weights for {w.shape[1]} positions but {len(tokens)} tokens: drop padding from both")
    if len(tokens) > MAX_TOKENS:
        raise ValueError(f"{len(tokens)} tokens are too many to read: take a text of at most {MAX_TOKENS}")
    if not (np.isfinite(w).all() and w.min() >= 0 and w.max() <= 1 + 1e-4):
        raise ValueError("attention weights must lie between 0 and 1: pass what comes after the softmax")
    return w
