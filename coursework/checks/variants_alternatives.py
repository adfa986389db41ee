"""Right answers of unit 11 that differ in structure: each must get full marks."""

import itertools
import math
import re

import torch
import torch.nn.functional as F
from torch import nn

from coursework.checks.variants import (
    SharedEncoder,
    count_masked_lm,
    distillation_loss,
    factorised_embedding,
    roberta_positions,
    sentence_order_pair,
    student_from_teacher,
)

# ---------------------------------------------------------------- 11.1 RoBERTa's positions


@roberta_positions.alternative
def cumulated(input_ids, padding_id):
    real = input_ids != padding_id
    return real.cumsum(1) * real + padding_id


@roberta_positions.alternative
def written_into_a_table(input_ids, padding_id):
    positions = torch.full_like(input_ids, padding_id)
    for row, ids in zip(positions, input_ids, strict=True):
        places = (ids != padding_id).nonzero().squeeze(1)
        row[places] = torch.arange(len(places), device=ids.device) + padding_id + 1
    return positions


@roberta_positions.alternative
def by_comparing_pairs(input_ids, padding_id):
    real = input_ids != padding_id  # how many real tokens stand at or before me?
    width = input_ids.shape[1]
    before = torch.ones(width, width, dtype=torch.long, device=input_ids.device).tril()
    counts = (real.long()[:, None, :] * before).sum(-1)
    return torch.where(real, counts + padding_id, torch.full_like(counts, padding_id))


# ---------------------------------------------------------------- 11.2 ALBERT's embedding


@factorised_embedding.alternative
def library_calls(input_ids, weights):
    return F.linear(F.embedding(input_ids, weights["word"]), weights["widen.weight"], weights["widen.bias"])


@factorised_embedding.alternative
def the_whole_table_first(input_ids, weights):
    table = weights["word"] @ weights["widen.weight"].T + weights["widen.bias"]  # (V, D), as BERT has it
    return table[input_ids]


@factorised_embedding.alternative
def one_hot_and_einsum(input_ids, weights):
    hot = F.one_hot(input_ids, len(weights["word"])).to(weights["word"].dtype)
    return torch.einsum("bsv,ve,de->bsd", hot, weights["word"], weights["widen.weight"]) + weights["widen.bias"]


# ---------------------------------------------------------------- 11.3 one layer, many times


@SharedEncoder.alternative
class ALoop(nn.Module):
    def __init__(self, make_layer, times):
        super().__init__()
        self.layer, self.times = make_layer(), times

    def forward(self, hidden, attention_mask=None):
        for _ in range(self.times):
            hidden = self.layer(hidden, attention_mask)
        return hidden


@SharedEncoder.alternative
class AListOfOne(nn.Module):
    def __init__(self, make_layer, times):
        super().__init__()
        self.layers = nn.ModuleList([make_layer()])
        self.order = [0] * times

    def forward(self, hidden, attention_mask=None):
        for number in self.order:
            hidden = self.layers[number](hidden, attention_mask)
        return hidden


@SharedEncoder.alternative
class CallsItself(nn.Module):
    def __init__(self, make_layer, times):
        super().__init__()
        self.add_module("block", make_layer())
        self.times = times

    def forward(self, hidden, attention_mask=None):
        return self.deeper(hidden, attention_mask, self.times)

    def deeper(self, hidden, attention_mask, left):
        return hidden if left == 0 else self.deeper(self.block(hidden, attention_mask), attention_mask, left - 1)


# ---------------------------------------------------------------- 11.4 counting


@count_masked_lm.alternative
def a_formula(vocab, width, inner, layers, embedding, shared):
    layer = width * (4 * width + 2 * inner + 9) + inner
    narrow = embedding * (vocab + 514 + 2 + width + 3) + vocab
    return narrow + (0 if embedding == width else width * (embedding + 1)) + (1 if shared else layers) * layer


@count_masked_lm.alternative
def a_list_of_shapes(vocab, width, inner, layers, embedding, shared):
    layer = [(width, width), (width,)] * 4 + [(inner, width), (inner,), (width, inner), (width,)] + [(width,)] * 4
    shapes = [(vocab, embedding), (512, embedding), (2, embedding), (embedding,), (embedding,)]
    if embedding != width:
        shapes += [(width, embedding), (width,)]
    shapes += layer if shared else layer * layers
    shapes += [(embedding, width), (embedding,), (embedding,), (embedding,), (vocab,)]
    return sum(math.prod(shape) for shape in shapes)


@count_masked_lm.alternative
def modules_counted(vocab, width, inner, layers, embedding, shared):
    with torch.device("meta"):
        layer = [torch.empty(4 * width, width), torch.empty(4 * width), torch.empty(inner, width), torch.empty(inner),
                 torch.empty(width, inner), torch.empty(width), torch.empty(4, width)]  # fmt: skip
        rest = [torch.empty(vocab + 512 + 2, embedding), torch.empty(2, embedding), torch.empty(embedding, width),
                torch.empty(3, embedding), torch.empty(vocab)]  # fmt: skip
        if embedding != width:
            rest += [torch.empty(width, embedding), torch.empty(width)]
    of_layer = sum(tensor.numel() for tensor in layer)
    return sum(tensor.numel() for tensor in rest) + of_layer * (1 if shared else layers)


# ---------------------------------------------------------------- 11.5 sentence order


@sentence_order_pair.alternative
def sliced(sentences, cut, swapped):
    first = [token for sentence in sentences[:cut] for token in sentence]
    second = [token for sentence in sentences[cut:] for token in sentence]
    return (second, first, 1) if swapped else (first, second, 0)


@sentence_order_pair.alternative
def chained(sentences, cut, swapped):
    parts = [list(itertools.chain.from_iterable(part)) for part in (sentences[:cut], sentences[cut:])]
    if swapped:
        parts.reverse()
    return parts[0], parts[1], int(swapped)


@sentence_order_pair.alternative
def rotated(sentences, cut, swapped):
    tokens = [token for sentence in sentences for token in sentence]
    at = sum(map(len, sentences[:cut]))
    if swapped:
        tokens, at = tokens[at:] + tokens[:at], len(tokens) - at
    return tokens[:at], tokens[at:], 1 if swapped else 0


# ---------------------------------------------------------------- 11.6 distillation


@distillation_loss.alternative
def with_the_library(student_logits, teacher_logits, labels, student_hidden, teacher_hidden, attention_mask, T):
    with torch.no_grad():
        p = (teacher_logits / T).softmax(-1)
    soft = F.kl_div((student_logits / T).log_softmax(-1), p, reduction="batchmean") * T**2
    hard = F.cross_entropy(student_logits, labels)
    real = attention_mask.bool()
    x, y = student_hidden[real], teacher_hidden[real].detach()
    return soft, hard, F.cosine_embedding_loss(x, y, torch.ones(len(x), device=x.device))


@distillation_loss.alternative
def by_the_formulas(student_logits, teacher_logits, labels, student_hidden, teacher_hidden, attention_mask, T):
    teacher_logits, teacher_hidden = teacher_logits.detach(), teacher_hidden.detach()
    log_p = teacher_logits / T - (teacher_logits / T).logsumexp(-1, keepdim=True)
    log_q = student_logits / T - (student_logits / T).logsumexp(-1, keepdim=True)
    soft = (log_p.exp() * (log_p - log_q)).sum(-1).mean() * T * T
    asked = labels != -100
    kept = labels[asked]
    hard = (student_logits[asked].logsumexp(-1) - student_logits[asked].gather(1, kept[:, None])[:, 0]).mean()
    x, y = (h / h.norm(dim=-1, keepdim=True) for h in (student_hidden, teacher_hidden))
    mask = attention_mask.to(x.dtype)
    return soft, hard, ((1 - (x * y).sum(-1)) * mask).sum() / mask.sum()


@distillation_loss.alternative
def as_differences(student_logits, teacher_logits, labels, student_hidden, teacher_hidden, attention_mask, T):
    p = (teacher_logits.detach() / T).softmax(-1)  # KL as soft cross-entropy less the teacher's own entropy
    crossed = F.cross_entropy(student_logits / T, p)
    entropy = torch.distributions.Categorical(probs=p).entropy().mean()
    normal = [F.normalize(h, dim=-1).flatten(0, 1) for h in (student_hidden, teacher_hidden.detach())]
    real = attention_mask.flatten().nonzero().squeeze(1)
    apart = (normal[0][real] - normal[1][real]).square().sum(-1) / 2  # |x - y|² = 2 - 2 cos for unit vectors
    hard = F.nll_loss(student_logits.log_softmax(-1), labels, ignore_index=-100)
    return (crossed - entropy) * T**2, hard, apart.mean()


# ---------------------------------------------------------------- 11.7 half of the teacher


@student_from_teacher.alternative
def by_a_pattern(state):
    student = {}
    for name, tensor in state.items():
        found = re.fullmatch(r"layers\.(\d+)\.(.+)", name)
        if found is None:
            student[name] = tensor.clone()
        elif int(found[1]) % 2 == 0:
            student[f"layers.{int(found[1]) // 2}.{found[2]}"] = tensor.clone()
    return student


@student_from_teacher.alternative
def by_prefixes(state):
    student = {name: tensor.detach().clone() for name, tensor in state.items() if not name.startswith("layers.")}
    number = 0
    while any(name.startswith(f"layers.{2 * number}.") for name in state):
        old, new = f"layers.{2 * number}.", f"layers.{number}."
        student |= {new + name[len(old) :]: state[name].clone() for name in state if name.startswith(old)}
        number += 1
    return student


@student_from_teacher.alternative
def gathered_by_layer(state):
    layers: dict[int, dict] = {}
    student = {}
    for name, tensor in state.items():
        first, _, rest = name.partition(".")
        if first == "layers":
            number, _, kind = rest.partition(".")
            layers.setdefault(int(number), {})[kind] = tensor
        else:
            student[name] = tensor * 1
    for new, old in enumerate(sorted(layers)[::2]):
        student.update({f"layers.{new}.{kind}": tensor * 1 for kind, tensor in layers[old].items()})
    return student
