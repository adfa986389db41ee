"""What a student sees after getting unit 07 right: their own function on the course's own small BERT and its log.

As in rewards.py: a few lines within two seconds, and never a download.
"""

import json
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import torch
import torch.nn.functional as F

from bert_minimal.train import data
from coursework.checks.rewards import shown_on

if TYPE_CHECKING:
    from bert_minimal.heads import MaskedLM
    from bert_minimal.wordpiece import WordPiece

PEAK, WARMUP, STEPS, CLIP = 1e-3, 500, 10_000, 1.0  # how the course's BERT was trained, by its README
LINES = (
    "the violinmaker carved another bridge .",
    "the parrot lived in the palm .",
    "the potatoes were fried with onions .",
)


class Course(NamedTuple):
    tokenizer: "WordPiece"
    model: "MaskedLM"


def course() -> Course:
    """The package's own checkpoint, fresh each time, as it will be trained on."""
    from bert_minimal.heads import MaskedLM
    from bert_minimal.wordpiece import WordPiece

    folder = data.fetch("course")
    return Course(WordPiece.from_pretrained(folder), MaskedLM.from_pretrained(folder).float())


def question(tokenizer: "WordPiece", text: str, word: str) -> tuple[torch.Tensor, torch.Tensor]:
    """ids (1, S) with the piece `word` hidden, labels (1, S)."""
    ids = torch.tensor([tokenizer(text).input_ids])
    asked = ids == tokenizer(word).input_ids[1]
    return ids.masked_fill(asked, tokenizer.mask_id), ids.masked_fill(~asked, -100)


def loss_of(model: "MaskedLM", ids: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(model(input_ids=ids).logits.flatten(0, 1), labels.flatten())


@shown_on(course, learns=True)
def what_decays(decay_groups: Callable, real: Course) -> None:
    matrices, vectors = decay_groups(real.model)
    numbers = [sum(p.numel() for p in group) for group in (matrices, vectors)]
    print("  What this made possible: an optimizer that knows what to pull at. The course's BERT, by your groups:")
    print(f"    with decay     {len(matrices):3} tensors, {numbers[0]:9,} numbers ({numbers[0] / sum(numbers):.1%})")
    print(f"    without decay  {len(vectors):3} tensors, {numbers[1]:9,} numbers")
    print("    More than half of the tensors are spared, and hardly any of the numbers.")


@shown_on(course, learns=True)
def as_in_the_log(learning_rate: Callable, real: Course) -> None:
    rows = [json.loads(line) for line in (data.fetch("course") / "log.jsonl").read_text(encoding="utf-8").splitlines()]
    same = sum(
        math.isclose(learning_rate(row["step"] - 1, WARMUP, STEPS, PEAK), row["learning_rate"], rel_tol=1e-9)
        for row in rows
    )
    print("  What this made possible: the schedule by which the course's own BERT was trained.")
    print(f"    {same} of {len(rows)} learning rates in its log are those of your function:")
    for row in rows[:: len(rows) // 4]:
        mine = learning_rate(row["step"] - 1, WARMUP, STEPS, PEAK)
        print(f"    step {row['step']:6,}   its log {row['learning_rate']:.7f}   you {mine:.7f}")


@shown_on(course, learns=True)
def a_real_gradient(clip_gradients: Callable, real: Course) -> None:
    print("  What this made possible: steps of a bearable length. Gradients of the course's BERT, one sentence each:")
    for text, word in ((LINES[0], "bridge"), ("he opened the door and walked into the room .", "door")):
        loss = loss_of(real.model, *question(real.tokenizer, text, word))
        gradients = torch.autograd.grad(loss, list(real.model.parameters()), allow_unused=True)
        clipped, norm = clip_gradients([g for g in gradients if g is not None], CLIP)
        after = math.sqrt(sum(float(g.square().sum()) for g in clipped))
        print(f"    {text.replace(word, '[MASK]'):50} loss {loss.item():5.2f}   norm {float(norm):6.2f} → {after:.2f}")


@shown_on(course, learns=True)
def the_first_steps(adamw_step: Callable, real: Course) -> None:
    ids, labels = question(real.tokenizer, LINES[0], "bridge")
    parameters = list(real.model.parameters())
    state = {p: (torch.zeros_like(p), torch.zeros_like(p)) for p in parameters}
    chances = []
    for step in range(1, 5):
        loss = loss_of(real.model, ids, labels)
        chances.append(math.exp(-loss.item()))
        for p, gradient in zip(parameters, torch.autograd.grad(loss, parameters, allow_unused=True), strict=True):
            if gradient is not None:
                new, *state[p] = adamw_step(p.detach(), gradient, *state[p], step, 1e-4)  # type: ignore[assignment]
                p.data = new
    print("  What this made possible: your optimizer teaches the course's BERT a sentence it has never read.")
    print(f"    {LINES[0].replace('bridge', '[MASK]')}   chance of “bridge”, step by step:")
    print("    " + " → ".join(f"{chance:.1%}" for chance in chances))


@shown_on(course, learns=True)
def what_sixteen_bits_lose(unscale_gradients: Callable, real: Course) -> None:
    loss = (
        loss_of(real.model, *question(real.tokenizer, LINES[0], "bridge")) / 1000
    )  # its share in a batch of a thousand
    exact = [g for g in torch.autograd.grad(loss, list(real.model.parameters()), allow_unused=True) if g is not None]
    exact = [g for g in exact if g.dim() > 1][1:]  # of the words' table most rows are zero anyway
    total = sum(int((g != 0).sum()) for g in exact)
    print("  What this made possible: gradients of the course's BERT in 16 bits, and back through your function:")
    for scale in (1.0, 2.0**10, 2.0**16):
        mine, finite = unscale_gradients([(g * scale).half() for g in exact], scale)
        lost = sum(int(((a == 0) & (b != 0)).sum()) for a, b in zip(mine, exact, strict=True))
        print(f"    loss · {scale:8,.0f}: {lost / total:5.1%} of the numbers have become 0; all finite: {bool(finite)}")


class Downhill:
    """The plainest optimizer there is: a small step against the gradient."""

    def __init__(self, parameters, lr: float):
        self.param_groups = [{"params": list(parameters), "lr": lr}]

    def zero_grad(self, set_to_none: bool = True) -> None:
        for p in self.param_groups[0]["params"]:
            p.grad = None

    @torch.no_grad()
    def step(self) -> None:
        for p in self.param_groups[0]["params"]:
            if p.grad is not None:
                p -= self.param_groups[0]["lr"] * p.grad


@shown_on(course, learns=True)
def a_real_step(training_step: Callable, real: Course) -> None:
    class Logits(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.bert = real.model

        def forward(self, ids):
            return self.bert(input_ids=ids).logits

    small = Logits()
    words = ("bridge", "palm", "onions")
    batches = [question(real.tokenizer, text, word) for text, word in zip(LINES, words, strict=True)]
    optimizer = Downhill(small.parameters(), 0.05)
    losses = [float(training_step(small, optimizer, batches, 1.0)) for _ in range(4)]
    print("  What this made possible: training. Four steps of yours on the course's BERT, three sentences a step,")
    print("    and never more than one in memory. The loss: " + " → ".join(f"{loss:.2f}" for loss in losses))
