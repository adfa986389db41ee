"""What a run is measured by: floating-point operations, the device's peak, memory, curves."""

import json
import time
from pathlib import Path

import torch

from ..config import BertConfig


def matrix_parameters(config: BertConfig) -> int:
    """Weights of the encoder's matrix products: 12 D² a layer where F = 4 D."""
    width, inner = config.hidden_size, config.intermediate_size
    return config.num_hidden_layers * (4 * width * width + 2 * width * inner)


def training_flops(config: BertConfig, tokens: int, length: float, masked: float, sequences: int) -> float:
    """Floating-point operations of one forward and backward pass (a multiplication and an addition are two).

    tokens: real ones; length: mean over tokens of the length of the sequence it is in (attention looks that
    far); masked: places that go through the masked-LM head; sequences: rows that go through the pooler. A
    product costs 2 forward and 4 backward for each weight and token. Nothing recomputed is counted, nor are
    softmax, LayerNorm and the like: the usual way, as in Chowdhery et al. 2022 (PaLM), appendix B.
    """
    width, vocabulary = config.hidden_size, config.vocab_size
    encoder = 6 * matrix_parameters(config) * tokens
    attention = 12 * config.num_hidden_layers * width * length * tokens  # QKᵀ and weights · V
    head = 6 * (width * width + width * vocabulary) * masked
    return encoder + attention + head + 6 * width * width * sequences


def count_parameters(model: torch.nn.Module) -> int:
    """Numbers that are learned; one used in two places (the embeddings, in the head again) counts once."""
    return sum(p.numel() for p in model.parameters())


def measured_peak(device: torch.device, precision: str) -> float:
    """FLOP/s of a large matrix product on random numbers in this precision: what MFU is a share of."""
    dtype = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}[precision]
    size, repeats = (8192, 10) if device.type == "cuda" else (1024, 4)
    a, b = (torch.randn(size, size, device=device).to(dtype) for _ in range(2))
    for _ in range(3):
        a @ b
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    start = time.perf_counter()
    for _ in range(repeats):
        a @ b
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return 2 * size**3 * repeats / (time.perf_counter() - start)


def read_log(path: str | Path) -> list[dict]:
    """The rows of a run's log.jsonl."""
    return [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines()]


def draw_curves(log: Path, picture: Path) -> None:
    """The run's loss, a mean over each stretch of the log, and the held-out loss, against the step: a PNG."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    from ..visualize import _style

    rows = read_log(log)
    held = [row for row in rows if "held_out_loss" in row]
    with rc_context(_style()):
        figure = Figure(figsize=(7, 4))
        axis = figure.subplots()
        axis.plot([row["step"] for row in rows], [row["loss"] for row in rows], label="learned from, with dropout")
        axis.plot([r["step"] for r in held], [r["held_out_loss"] for r in held], "o-", label="held out, without")
        axis.set(xlabel="step", ylabel="loss, masked LM + next sentence (nats)")
        axis.legend(frameon=False)
        figure.savefig(picture, dpi=110, metadata={"Software": None})
