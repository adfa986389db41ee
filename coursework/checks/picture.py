"""Draws "yours" beside "expected" when a tensor is wrong."""

import torch


def draw(yours: torch.Tensor, expected: torch.Tensor) -> None:
    """Heat maps of the last two dimensions at the first index of all others, and where they differ."""
    import matplotlib.pyplot as plt

    if expected.dim() < 2 or yours.shape != expected.shape:
        return
    first = (0,) * (expected.dim() - 2)
    a, b = yours[first].double(), expected[first].double()
    low, high = float(b.min()), float(b.max())
    fig, axes = plt.subplots(1, 3, figsize=(8, 2.6), layout="constrained", facecolor="white")
    for ax, image, title in zip(axes, (a, b, (a - b).abs()), ("yours", "expected", "difference"), strict=True):
        limits = {"vmin": 0, "vmax": max(high - low, 1e-9)} if title == "difference" else {"vmin": low, "vmax": high}
        fig.colorbar(ax.imshow(image, cmap="cividis", **limits), ax=ax)
        ax.set_title(title)
    plt.show()
    plt.close(fig)
