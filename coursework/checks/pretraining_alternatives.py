"""Right answers of unit 07 that differ in structure: each must get full marks."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from coursework.checks.pretraining import (
    adamw_step,
    clip_gradients,
    decay_groups,
    learning_rate,
    training_step,
    unscale_gradients,
)

# ---------------------------------------------------------------- 07.1 decay groups


@decay_groups.alternative
def by_shape(model):
    trained = [p for p in model.parameters() if p.requires_grad]
    return [p for p in trained if p.dim() > 1], [p for p in trained if p.dim() <= 1]


@decay_groups.alternative
def by_name(model):
    def spared(name):
        last = name.rpartition(".")[2]
        return last.endswith("bias") or last in ("gamma", "beta") or "norm" in name.lower()

    groups = {True: [], False: []}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            groups[spared(name)].append(parameter)
    return groups[False], groups[True]


@decay_groups.alternative
def by_module(model):
    first, rest, seen = [], [], set()
    for module in model.modules():
        for parameter in module.parameters(recurse=False):
            if parameter in seen or not parameter.requires_grad:
                continue
            seen.add(parameter)
            vector = isinstance(module, nn.LayerNorm) or len(parameter.shape) == 1
            (rest if vector else first).append(parameter)
    return first, rest


@decay_groups.alternative
def by_sets(model):
    everything = {p for p in model.parameters() if p.requires_grad}
    vectors = {p for p in everything if p.squeeze().dim() <= 1}
    return everything - vectors, vectors


# ---------------------------------------------------------------- 07.2 learning rate


@learning_rate.alternative
def two_branches(step, warmup, total, peak):
    if step < warmup and step < total:
        return peak * (step + 1) / warmup
    return peak * max(0, total - step) / max(1, total - warmup)


@learning_rate.alternative
def lower_of_two_lines(step, warmup, total, peak):
    rising = (step + 1) / warmup if warmup else 1.0
    falling = (total - step) / (total - warmup) if total > warmup else 1.0 * (step < total)
    return max(0.0, peak * min(rising, falling, 1.0))


@learning_rate.alternative
def by_interpolation(step, warmup, total, peak):
    if step >= total:
        return 0.0
    if step < warmup:
        return float(torch.lerp(torch.tensor(0.0).double(), torch.tensor(float(peak)).double(), (step + 1) / warmup))
    return float(torch.linspace(peak, 0.0, total - warmup + 1, dtype=torch.float64)[step - warmup])


@learning_rate.alternative
def step_by_step(step, warmup, total, peak):
    rate = peak if warmup == 0 else 0.0
    for now in range(step + 1):
        if now >= total:
            return 0.0
        if now < warmup:
            rate += peak / warmup
        elif now > warmup:
            rate -= peak / (total - warmup)
    return rate


# ---------------------------------------------------------------- 07.3 clip gradients


@clip_gradients.alternative
def norm_of_norms(gradients, max_norm):
    norm = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(g) for g in gradients]))
    scale = (max_norm / (norm + 1e-6)).clamp(max=1.0)
    return [g * scale for g in gradients], norm


@clip_gradients.alternative
def one_vector_and_back(gradients, max_norm):
    flat = torch.cat([g.reshape(-1) for g in gradients])
    norm = flat.norm().item()
    if norm > max_norm:
        flat = flat * (max_norm / norm)
    parts = flat.split([g.numel() for g in gradients])
    return [part.view_as(g) for part, g in zip(parts, gradients, strict=True)], norm


@clip_gradients.alternative
def torchs_own(gradients, max_norm):
    holders = [torch.zeros_like(g) for g in gradients]
    for holder, g in zip(holders, gradients, strict=True):
        holder.grad = g.clone()
    norm = torch.nn.utils.clip_grad_norm_(holders, max_norm)
    return [holder.grad for holder in holders], norm


@clip_gradients.alternative
def squares_in_a_loop(gradients, max_norm):
    square = 0.0
    for g in gradients:
        square += float((g.double() ** 2).sum())
    norm = math.sqrt(square)
    return tuple(g.clone() if norm <= max_norm else g / (norm / max_norm) for g in gradients), norm


# ---------------------------------------------------------------- 07.4 AdamW step


@adamw_step.alternative
def as_in_the_paper(parameter, gradient, m, v, step, lr, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.01,
                    bias_correction=True):  # fmt: skip
    b1, b2 = betas
    m = b1 * m + (1 - b1) * gradient
    v = b2 * v + (1 - b2) * gradient**2
    m_hat, v_hat = (m / (1 - b1**step), v / (1 - b2**step)) if bias_correction else (m, v)
    return parameter - lr * (m_hat / (v_hat.sqrt() + eps) + weight_decay * parameter), m, v


@adamw_step.alternative
def as_in_torch(parameter, gradient, m, v, step, lr, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.01,
                bias_correction=True):  # fmt: skip
    m, v = torch.lerp(m, gradient, 1 - betas[0]), torch.lerp(v, gradient * gradient, 1 - betas[1])
    parameter = parameter * (1 - lr * weight_decay)
    first = 1 - betas[0] ** step if bias_correction else 1.0
    second = 1 - betas[1] ** step if bias_correction else 1.0
    return torch.addcdiv(parameter, m, v.sqrt() / math.sqrt(second) + eps, value=-lr / first), m, v


@adamw_step.alternative
def decay_first_in_place_on_copies(parameter, gradient, m, v, step, lr, betas=(0.9, 0.999), eps=1e-6,
                                   weight_decay=0.01, bias_correction=True):  # fmt: skip
    new, m, v = parameter.clone(), m.clone(), v.clone()
    m.mul_(betas[0]).add_(gradient, alpha=1 - betas[0])
    v.mul_(betas[1]).addcmul_(gradient, gradient, value=1 - betas[1])
    correction = [1.0, 1.0]
    if bias_correction:
        correction = [1 - beta**step for beta in betas]
    new.mul_(1 - lr * weight_decay)
    new.sub_(lr * (m / correction[0]) / ((v / correction[1]) ** 0.5 + eps))
    return new, m, v


@adamw_step.alternative
def number_by_number(parameter, gradient, m, v, step, lr, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.01,
                     bias_correction=True):  # fmt: skip
    rows = []
    for p, g, mean, square in zip(*(t.flatten().tolist() for t in (parameter, gradient, m, v)), strict=True):
        mean = mean - (1 - betas[0]) * (mean - g)
        square = square - (1 - betas[1]) * (square - g * g)
        c1, c2 = (1 - betas[0] ** step, 1 - betas[1] ** step) if bias_correction else (1, 1)
        rows.append((p - lr * weight_decay * p - lr * (mean / c1) / (math.sqrt(square / c2) + eps), mean, square))
    columns = torch.tensor(rows, dtype=parameter.dtype, device=parameter.device).T
    return tuple(column.reshape(parameter.shape) for column in columns)


# ---------------------------------------------------------------- 07.5 unscale gradients


@unscale_gradients.alternative
def wide_then_divided(gradients, scale):
    wide = [g.float() / scale for g in gradients]
    return wide, all(bool(torch.isfinite(g).all()) for g in wide)


@unscale_gradients.alternative
def times_the_inverse(gradients, scale):
    flat = torch.cat([g.flatten().to(torch.float32) for g in gradients]) * (1.0 / scale)
    parts = flat.split([g.numel() for g in gradients])
    return [p.view(g.shape) for p, g in zip(parts, gradients, strict=True)], bool(flat.isfinite().all())


@unscale_gradients.alternative
def the_sum_tells(gradients, scale):
    wide = [g.double() / scale for g in gradients]
    total = sum(float(g.abs().sum()) for g in wide)
    return [g.float() for g in wide], math.isfinite(total)


@unscale_gradients.alternative
def a_tensor_of_bool(gradients, scale):
    found = torch.stack([(g - g).eq(0).all() for g in gradients])  # inf − inf and NaN − NaN are NaN
    return tuple(g.float().div(scale) for g in gradients), found.all()


# ---------------------------------------------------------------- 07.6 training step


@training_step.alternative
def sums_and_one_count(model, optimizer, micro_batches, max_norm):
    model.train()
    optimizer.zero_grad()
    count = sum((labels != -100).sum() for _, labels in micro_batches)
    total = torch.zeros(())
    for ids, labels in micro_batches:
        loss = F.cross_entropy(model(ids).flatten(0, 1), labels.flatten(), reduction="sum") / count
        loss.backward()
        total = total + loss.detach()
    torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()
    return total


@training_step.alternative
def means_with_weights(model, optimizer, micro_batches, max_norm):
    model.train(True)
    for parameter in model.parameters():
        parameter.grad = None
    counts = [int((labels != -100).sum()) for _, labels in micro_batches]
    losses = []
    for (ids, labels), count in zip(micro_batches, counts, strict=True):
        if count == 0:
            continue
        mean = F.cross_entropy(model(ids).transpose(1, 2), labels)
        share = mean * (count / sum(counts))
        share.backward()
        losses.append(share.detach())
    torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()
    optimizer.zero_grad()
    return torch.stack(losses).sum()


@training_step.alternative
def divided_at_the_end(model, optimizer, micro_batches, max_norm):
    model.train()
    optimizer.zero_grad(set_to_none=False)
    total, count = 0.0, 0
    for ids, labels in micro_batches:
        logits = model(ids)
        asked = labels != -100
        right = logits[asked].gather(-1, labels[asked][:, None]).squeeze(-1)
        surprise = (logits[asked].logsumexp(-1) - right).sum()
        surprise.backward()
        total, count = total + surprise.detach(), count + asked.sum()
    for parameter in model.parameters():
        parameter.grad /= count
    torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()
    return total / count


@training_step.alternative
def gradients_by_hand(model, optimizer, micro_batches, max_norm):
    model.train()
    parameters = list(model.parameters())
    count = sum((labels >= 0).sum() for _, labels in micro_batches)
    held, total = [torch.zeros_like(p) for p in parameters], 0.0
    for ids, labels in micro_batches:
        chances = model(ids).log_softmax(-1)
        asked = labels >= 0
        loss = -(chances.gather(-1, labels.clamp(min=0)[..., None])[..., 0] * asked).sum() / count
        for sum_so_far, new in zip(held, torch.autograd.grad(loss, parameters), strict=True):
            sum_so_far += new
        total = total + loss.detach()
    norm = torch.stack([g.norm() for g in held]).norm()
    scale = (max_norm / norm).clamp(max=1.0)
    for parameter, gradient in zip(parameters, held, strict=True):
        parameter.grad = gradient * scale
    optimizer.step()
    return total
