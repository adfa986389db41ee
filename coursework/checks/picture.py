"""Draws "yours" beside "expected" when a tensor is wrong."""

import torch


def draw(yours: torch.Tensor, expected: torch.Tensor) -> None:
    """Show heat maps of the last two dimensions at the first index of all others, and where they differ.

    Does nothing outside a notebook, for tensors of other shapes than each other, and for less than two dimensions.
    """
    if expected.dim() < 2 or yours.shape != expected.shape:
        return
    try:
        from IPython import get_ipython
        from IPython.display import display
    except ImportError:
        return
    if get_ipython() is None:
        return
    from bert_minimal.visualize import figure_html

    figure = picture(yours, expected)
    display(figure_html(figure, "Heat maps of your answer, the expected one and where they differ"))


def picture(yours: torch.Tensor, expected: torch.Tensor):
    """The matplotlib Figure of `draw`: yours and expected in one scale of colours, and the difference in its own."""
    from matplotlib.figure import Figure

    first = (0,) * (expected.dim() - 2)
    a, b = yours[first].double().cpu(), expected[first].double().cpu()
    seen = b[b.isfinite()]
    low, high = (float(seen.min()), float(seen.max())) if seen.numel() else (0.0, 1.0)
    gap = (a - b).abs().nan_to_num(posinf=high - low)
    figure = Figure(figsize=(8, 2.6), layout="constrained", facecolor="white")
    axes = figure.subplots(1, 3)
    for ax, image, title in zip(axes, (a, b, gap), ("yours", "expected", "difference"), strict=True):
        limits = (0, max(float(gap.max()), 1e-9)) if title == "difference" else (low, max(high, low + 1e-9))
        figure.colorbar(ax.imshow(image.numpy(), cmap="cividis", vmin=limits[0], vmax=limits[1]), ax=ax)
        ax.set_title(title)
    return figure
