"""A card before Ampere (Colab's T4: compute capability 7.5) has no bfloat16 units and no kernel for streams.

What the code chooses there is asked with a device that says so; what it computes there is forced on this machine:
float16 under autocast, attention through the padded kernel, gradients scaled.
"""

from types import SimpleNamespace

import pytest
import torch

from bert_minimal import Bert, BertConfig, stream
from bert_minimal.train import loop
from bert_minimal.train.loop import TrainOptions, choose_precision

T4, A100, H100 = (7, 5), (8, 0), (9, 0)
EPS = torch.finfo(torch.float16).eps


@pytest.fixture
def card(monkeypatch):
    """card(T4): from now on torch says that its GPU is one."""

    def pretend(capability: tuple[int, int]) -> None:
        properties = SimpleNamespace(major=capability[0], minor=capability[1])
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device=None: capability)
        monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device=None: properties)

    return pretend


@pytest.mark.parametrize(("capability", "precision"), [(T4, "fp16"), (A100, "bf16"), (H100, "bf16")])
def test_precision_follows_the_card(card, capability, precision):
    card(capability)
    assert choose_precision(torch.device("cuda", 0)) == precision
    assert choose_precision(torch.device("cpu")) == "fp32"


@pytest.mark.parametrize(
    ("capability", "dtype", "dropout", "kernel"),
    [
        (T4, torch.float16, 0.0, "by_padding"),
        (T4, torch.bfloat16, 0.0, "by_padding"),
        (T4, torch.float32, 0.1, "by_padding"),
        (A100, torch.float16, 0.0, "by_flash"),
        (A100, torch.bfloat16, 0.0, "by_flash"),
        (A100, torch.bfloat16, 0.1, "by_padding"),
        (A100, torch.float32, 0.0, "by_padding"),
    ],
)
def test_kernel_follows_the_card(card, monkeypatch, capability, dtype, dropout, kernel):
    card(capability)
    for name in ("by_flash", "by_padding", "by_runs"):
        monkeypatch.setattr(stream, name, lambda *arguments, name=name: name)
    query = SimpleNamespace(is_cuda=True, device=torch.device("cuda", 0), dtype=dtype)
    monkeypatch.setattr(stream, "varlen_attn", object())
    assert stream.stream_attention(query, query, query, None, 7, dropout) == kernel
    monkeypatch.setattr(stream, "varlen_attn", None)  # torch before 2.10
    assert stream.stream_attention(query, query, query, None, 7, dropout) == "by_padding"


@pytest.fixture
def as_on_a_t4(monkeypatch):
    """Attention through the padded kernel, the other two out of reach."""

    def out_of_reach(*arguments):
        raise AssertionError("a T4 has no such kernel")

    monkeypatch.setattr(stream, "by_runs", stream.by_padding)
    monkeypatch.setattr(stream, "by_flash", out_of_reach)


def loud_model() -> Bert:
    """Weights large enough that a part left out would show."""
    torch.manual_seed(1)
    config = BertConfig.preset(
        "tiny", vocab_size=90, num_hidden_layers=3, hidden_size=36, num_attention_heads=3, intermediate_size=50,
        max_position_embeddings=20, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    model = Bert(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.2)
    return model


def batch() -> dict[str, torch.Tensor]:
    """(4, 17) with two segments; padding on the right, on the left and in the middle; one row without."""
    draw = torch.Generator().manual_seed(2)
    mask = torch.ones(4, 17, dtype=torch.long)
    mask[0, 9:], mask[1, :5], mask[2, 6:10] = 0, 0, 0
    ids = torch.randint(0, 90, (4, 17), generator=draw)
    return dict(input_ids=ids, token_type_ids=torch.randint(0, 2, (4, 17), generator=draw), attention_mask=mask)


def outcome(model: Bert) -> tuple[torch.Tensor, torch.Tensor, dict[str, torch.Tensor]]:
    """Hidden states, pooler output and all gradients for one loud cotangent of both."""
    inputs = batch()
    out = model(**inputs)
    draw = torch.Generator().manual_seed(3)
    hidden = out.last_hidden_state * inputs["attention_mask"][:, :, None]
    model.zero_grad()
    total = (hidden * torch.randn(hidden.shape, generator=draw)).sum() + out.pooler_output.sum()
    total.backward()
    gradients = {name: p.grad.clone().float() for name, p in model.named_parameters()}
    return hidden.detach().float(), out.pooler_output.detach().float(), gradients


def apart(a: torch.Tensor, b: torch.Tensor) -> float:
    return ((a - b).norm() / b.norm()).item()


def test_the_padded_kernel_gives_the_same_numbers(as_on_a_t4, monkeypatch):
    """Float64: whichever kernel, the whole model and its gradients are the same."""
    model = loud_model().double()
    padded = outcome(model)
    monkeypatch.undo()
    runs = outcome(model)
    assert apart(padded[0], runs[0]) < 1e-6
    assert apart(padded[1], runs[1]) < 1e-6
    for name, gradient in runs[2].items():
        assert apart(padded[2][name], gradient) < 1e-5, name


def test_float16_gives_the_same_numbers_to_its_precision(as_on_a_t4):
    """Autocast and the padded kernel, as fine-tuning on a T4 runs, against float64."""
    model = loud_model()
    exact = outcome(loud_model().double())
    with torch.autocast("cpu", torch.float16):
        half = outcome(model)
    assert 0 < apart(half[0], exact[0]) < 10 * EPS  # some rounding there must be, or it was not float16
    assert apart(half[1], exact[1]) < 10 * EPS
    for name, gradient in exact[2].items():
        assert half[2][name].isfinite().all(), name
        if not name.endswith("key_bias"):
            assert apart(half[2][name], gradient) < 30 * EPS, name


class Slope:
    """A task whose loss is `steep` times the model's answer, so that the gradient is known."""

    names = ("slope",)
    steep = 1.0

    def count(self, batch):
        return torch.ones(1)

    def losses(self, model, batch):
        return (model(batch["x"]).sum() * self.steep).float()[None], torch.zeros(1)


def weights_after(task: Slope, step: loop.Step, model: torch.nn.Linear) -> torch.Tensor:
    step([{"x": torch.ones(1, 4)}], 1e-3)
    return model.weight.detach().clone()


def test_a_step_whose_gradient_overflows_is_left_out():
    """float16 ends at 65504: the loss is scaled up so that small gradients survive, and a step in which something
    overflowed changes nothing but the scale, which is halved."""
    torch.manual_seed(0)
    model, task = torch.nn.Linear(4, 2), Slope()
    step = loop.Step(model, task, TrainOptions(steps=9, precision="fp16"), torch.device("cpu"))
    before, scale = model.weight.detach().clone(), step.scaler.get_scale()
    assert scale > 1000
    task.steep = 60000.0  # fits float16, times the scale it does not
    assert weights_after(task, step, model).equal(before)
    assert step.scaler.get_scale() == scale / 2
    task.steep = 2e-8  # float16 rounds it to 0; times the scale it is kept
    moved = (before - weights_after(task, step, model)).mean().item()
    assert moved == pytest.approx(1e-3 * 2e-8 / (2e-8 + 1e-6), rel=0.1)  # Adam's first step, with its ε of 1e-6
