"""Right answers of unit 04 that differ in structure: each must get full marks."""

import random

import torch
import torch.nn.functional as F
from torch import nn

from coursework.checks.mlm import gather_positions, mask_tokens, mlm_head, mlm_loss, select_positions

# ---------------------------------------------------------------- 04.1 select positions


@select_positions.alternative
def each_token_by_itself(input_ids, special_ids, probability=0.15):
    special = torch.isin(input_ids, torch.tensor(special_ids, device=input_ids.device))
    return (torch.rand(input_ids.shape, device=input_ids.device) < probability) & ~special


@select_positions.alternative
def bernoulli_of_a_table(input_ids, special_ids, probability=0.15):
    chance = torch.full(input_ids.shape, probability, device=input_ids.device)
    for piece in special_ids:
        chance.masked_fill_(input_ids == piece, 0.0)
    return torch.bernoulli(chance).bool()


@select_positions.alternative
def exact_count_a_text(input_ids, special_ids, probability=0.15):
    chosen = torch.zeros_like(input_ids, dtype=torch.bool)
    for i, row in enumerate(input_ids.tolist()):
        places = [j for j, piece in enumerate(row) if piece not in special_ids]
        random.shuffle(places)
        for j in places[: round(probability * len(places))]:
            chosen[i, j] = True
    return chosen


@select_positions.alternative
def exact_count_of_the_batch(input_ids, special_ids, probability=0.15):
    ordinary = torch.ones_like(input_ids, dtype=torch.bool)
    for piece in special_ids:
        ordinary &= input_ids != piece
    places = ordinary.flatten().nonzero().squeeze(1)
    chosen = torch.zeros(input_ids.numel(), dtype=torch.bool, device=input_ids.device)
    lot = torch.randperm(len(places), device=input_ids.device)[: int(len(places) * probability)]
    chosen[places[lot]] = True
    return chosen.view(input_ids.shape)


@select_positions.alternative
def as_google_counts(input_ids, special_ids, probability=0.15):
    """15 % of all real tokens, the special ones in the count but never chosen (create_pretraining_data.py)."""
    pad = max(special_ids, key=lambda piece: int((input_ids == piece).sum()))  # padding is the most frequent
    chosen = torch.zeros_like(input_ids, dtype=torch.bool)
    for i, row in enumerate(input_ids.tolist()):
        places = [j for j, piece in enumerate(row) if piece not in special_ids]
        count = max(1, round(probability * sum(piece != pad for piece in row)))
        for j in random.sample(places, min(count, len(places))):
            chosen[i, j] = True
    return chosen


@select_positions.alternative
def smallest_lots(input_ids, special_ids, probability=0.15):
    special = (input_ids[..., None] == torch.tensor(special_ids, device=input_ids.device)).any(-1)
    lots = torch.rand(input_ids.shape, device=input_ids.device).masked_fill(special, 2.0)
    rank = lots.argsort(-1).argsort(-1)
    return rank < ((~special).sum(-1, keepdim=True) * probability).round()


# ---------------------------------------------------------------- 04.2 mask tokens


@mask_tokens.alternative
def one_draw_and_where(input_ids, selected, mask_id, vocab_size):
    draw = torch.rand(input_ids.shape, device=input_ids.device)
    other = torch.randint_like(input_ids, vocab_size)
    changed = torch.where(draw < 0.8, mask_id, torch.where(draw < 0.9, other, input_ids))
    return torch.where(selected, changed, input_ids), input_ids.masked_fill(~selected, -100)


@mask_tokens.alternative
def half_of_the_rest(input_ids, selected, mask_id, vocab_size):
    """Two draws, the second only for what the first left: 0.5 of 20 % is 10 %."""
    inputs, labels = input_ids.clone(), input_ids.clone()
    labels[~selected] = -100
    hide = torch.bernoulli(torch.full(input_ids.shape, 0.8, device=input_ids.device)).bool() & selected
    inputs[hide] = mask_id
    swap = torch.bernoulli(torch.full(input_ids.shape, 0.5, device=input_ids.device)).bool() & selected & ~hide
    inputs[swap] = torch.randint(vocab_size, input_ids.shape, device=input_ids.device)[swap]
    return inputs, labels


@mask_tokens.alternative
def exact_counts(input_ids, selected, mask_id, vocab_size):
    places = selected.flatten().nonzero().squeeze(1)
    places = places[torch.randperm(len(places), device=places.device)]
    hide, swap = places[: round(0.8 * len(places))], places[round(0.8 * len(places)) : round(0.9 * len(places))]
    inputs = input_ids.flatten().clone()
    inputs[hide] = mask_id
    inputs[swap] = torch.randint(0, vocab_size, swap.shape, device=swap.device)
    return inputs.view_as(input_ids), torch.where(selected, input_ids, -100)


@mask_tokens.alternative
def piece_by_piece(input_ids, selected, mask_id, vocab_size):
    inputs, labels = [], []
    for ids, chosen in zip(input_ids.tolist(), selected.tolist(), strict=True):
        labels.append([piece if yes else -100 for piece, yes in zip(ids, chosen, strict=True)])
        row = list(ids)
        for i in [i for i, yes in enumerate(chosen) if yes]:
            fate = random.choices(("hide", "swap", "keep"), (80, 10, 10))[0]
            if fate != "keep":
                row[i] = mask_id if fate == "hide" else random.randint(0, vocab_size - 1)
        inputs.append(row)
    return torch.tensor(inputs, device=input_ids.device), torch.tensor(labels, device=input_ids.device)


@mask_tokens.alternative
def never_the_mask_nor_low_numbers(input_ids, selected, mask_id, vocab_size):
    """Special tokens left out of the draw; multinomial decides."""
    fate = torch.multinomial(torch.tensor([0.8, 0.1, 0.1]), input_ids.numel(), replacement=True)
    fate = fate.view(input_ids.shape).to(input_ids.device)
    other = torch.randint(1, vocab_size - 1, input_ids.shape, device=input_ids.device)
    other = other + (other >= mask_id)
    choices = torch.stack([torch.full_like(input_ids, mask_id), other, input_ids])
    changed = choices.gather(0, fate[None])[0]
    return input_ids + (changed - input_ids) * selected, input_ids * selected - 100 * (~selected).long()


# ---------------------------------------------------------------- 04.3 MLM head


@mlm_head.alternative
def functional(hidden, weights):
    x = F.gelu(F.linear(hidden, weights["dense.weight"], weights["dense.bias"]))
    x = F.layer_norm(x, x.shape[-1:], weights["norm.weight"], weights["norm.bias"], eps=1e-12)
    return F.linear(x, weights["word"], weights["decoder.bias"])


@mlm_head.alternative
def by_formula(hidden, weights):
    x = hidden @ weights["dense.weight"].T + weights["dense.bias"]
    x = 0.5 * x * (1 + torch.erf(x * 0.5**0.5))
    variance, mean = torch.var_mean(x, -1, correction=0, keepdim=True)
    x = (x - mean) * torch.rsqrt(variance + 1e-12) * weights["norm.weight"] + weights["norm.bias"]
    return x @ weights["word"].transpose(0, 1) + weights["decoder.bias"]


@mlm_head.alternative
def einsum_and_normal_distribution(hidden, weights):
    x = torch.einsum("...d,ed->...e", hidden, weights["dense.weight"]) + weights["dense.bias"]
    x = x * torch.special.ndtr(x)
    norm = nn.LayerNorm(x.size(-1), eps=1e-12, elementwise_affine=False)
    x = torch.addcmul(weights["norm.bias"], norm(x), weights["norm.weight"])
    return torch.einsum("...d,vd->...v", x, weights["word"]) + weights["decoder.bias"]


@mlm_head.alternative
def modules_with_given_parameters(hidden, weights):
    width, size = hidden.shape[-1], len(weights["word"])
    dense = nn.Linear(width, width, device="meta")
    x = torch.func.functional_call(dense, {"weight": weights["dense.weight"], "bias": weights["dense.bias"]}, hidden)
    norm = nn.LayerNorm(width, eps=1e-12, device="meta")
    parameters = {"weight": weights["norm.weight"], "bias": weights["norm.bias"]}
    x = torch.func.functional_call(norm, parameters, nn.GELU()(x))
    decoder = nn.Linear(width, size, device="meta")
    return torch.func.functional_call(decoder, {"weight": weights["word"], "bias": weights["decoder.bias"]}, x)


# ---------------------------------------------------------------- 04.4 MLM loss


@mlm_loss.alternative
def library_sum(logits, labels):
    total = F.cross_entropy(logits.flatten(0, -2), labels.flatten(), ignore_index=-100, reduction="sum")
    return total / (labels != -100).sum().clamp(min=1)


@mlm_loss.alternative
def pick_then_library(logits, labels):
    asked = labels != -100
    if not asked.any():
        return logits.sum() * 0
    return F.cross_entropy(logits[asked], labels[asked])


@mlm_loss.alternative
def mean_or_zero(logits, labels):
    """The mean of nothing is 0 / 0; its gradient is 0 all the same."""
    return F.cross_entropy(logits.transpose(1, 2), labels).nan_to_num(0.0)


@mlm_loss.alternative
def gather_of_log_softmax(logits, labels):
    asked = (labels != -100).to(logits.dtype)
    picked = logits.log_softmax(-1).gather(-1, labels.clamp(min=0)[..., None])[..., 0]
    return -(picked * asked).sum() / asked.sum().clamp(min=1)


@mlm_loss.alternative
def one_hot_targets(logits, labels):
    target = F.one_hot(labels.clamp(min=0), logits.size(-1)) * (labels != -100)[..., None]
    surprise = torch.logsumexp(logits, -1, keepdim=True) - logits
    return (surprise * target).sum() / max(int(target.sum()), 1)


@mlm_loss.alternative
def token_by_token(logits, labels):
    losses = [
        torch.logsumexp(logits[i, j], 0) - logits[i, j, labels[i, j]]
        for i, j in (labels != -100).nonzero().tolist()
    ]  # fmt: skip
    return torch.stack(losses).mean() if losses else 0.0 * logits.sum()


# ---------------------------------------------------------------- 04.5 gather positions


@gather_positions.alternative
def torch_gather(hidden, positions):
    return hidden.gather(1, positions[..., None].expand(-1, -1, hidden.size(-1)))


@gather_positions.alternative
def two_indices(hidden, positions):
    return hidden[torch.arange(len(hidden), device=hidden.device)[:, None], positions]


@gather_positions.alternative
def flat_with_offset(hidden, positions):
    """As Google's gather_indexes does it."""
    batch, length, width = hidden.shape
    offset = torch.arange(batch, device=hidden.device)[:, None] * length
    return hidden.reshape(-1, width).index_select(0, (positions + offset).flatten()).view(batch, -1, width)


@gather_positions.alternative
def one_hot_product(hidden, positions):
    return F.one_hot(positions, hidden.size(1)).to(hidden.dtype) @ hidden


@gather_positions.alternative
def text_by_text(hidden, positions):
    return torch.stack([x[where] for x, where in zip(hidden, positions, strict=True)])
