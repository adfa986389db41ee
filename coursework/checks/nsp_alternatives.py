"""Right answers of unit 05 that differ in structure: each must get full marks."""

import itertools
import random
import re

import torch
import torch.nn.functional as F
from torch import nn

from coursework.checks.nsp import (
    gather,
    make_pair,
    nsp_head,
    nsp_loss,
    order_pair,
    pretraining_loss,
    read_documents,
)

# ---------------------------------------------------------------- 05.1 read documents


@read_documents.alternative
def regular_expression(text):
    blocks = re.split(r"\n(?:[ \t]*\n)+", text.replace("\r", ""))
    documents = [[line.strip() for line in block.split("\n") if line.strip()] for block in blocks]
    return [document for document in documents if document]


@read_documents.alternative
def grouped(text):
    lines = [line.strip() for line in text.splitlines()]
    return [list(group) for full, group in itertools.groupby(lines, key=bool) if full]


@read_documents.alternative
def last_list_grows(text):
    documents = [[]]
    for line in map(str.strip, text.splitlines()):
        if line:
            documents[-1].append(line)
        elif documents[-1]:
            documents.append([])
    return documents if documents[-1] else documents[:-1]


# ---------------------------------------------------------------- 05.2 gather


@gather.alternative
def while_loop(document, start, target):
    end, length = start, 0
    while end < len(document) and length < target:
        length += len(document[end])
        end += 1
    return document[start:end]


@gather.alternative
def sums_before(document, start, target):
    before = [0, *itertools.accumulate(map(len, document[start:]))]
    return [sentence for sentence, length in zip(document[start:], before, strict=False) if length < target]


@gather.alternative
def recursion(document, start, target):
    if start >= len(document) or target <= 0:
        return []
    return [document[start], *recursion(document, start + 1, target - len(document[start]))]


# ---------------------------------------------------------------- 05.3 make a pair


def _fill(document, start, room):
    end, length = start, 0
    while end < len(document) and (length < room or end == start):
        length += len(document[end])
        end += 1
    return end


@make_pair.alternative
def slices(documents, number, start, target):
    document = documents[number]
    end = max(_fill(document, start, target), start + 2)
    cut = random.randint(start + 1, end - 1)
    a = document[start:cut]
    if random.random() < 0.5:
        return a, document[cut:end], 0, end - start
    other = (number + random.randint(1, len(documents) - 1)) % len(documents)
    begin = random.randrange(len(documents[other]))
    stop = _fill(documents[other], begin, target - sum(map(len, a)))
    return a, documents[other][begin:stop], 1, cut - start


@make_pair.alternative
def drawn_by_torch(documents, number, start, target):
    chunk, length = [], 0
    for sentence in documents[number][start:]:
        if length >= target and len(chunk) > 1:
            break
        if length < target or len(chunk) == 1:
            chunk.append(sentence)
        length += len(sentence)
    cut = int(torch.randint(1, len(chunk), ()))
    a, b, label = chunk[:cut], chunk[cut:], int(torch.rand(()) >= 0.5)
    if label == 0:
        return [a, b, 0, len(chunk)]
    others = documents[:number] + documents[number + 1 :]
    other = others[int(torch.randint(len(others), ()))]
    begin, b = int(torch.randint(len(other), ())), []
    for sentence in other[begin:]:
        b.append(sentence)
        if sum(map(len, a + b)) >= target:
            break
    return [a, b, 1, cut]


@make_pair.alternative
def coin_first_as_google_draws(documents, number, start, target):
    """Another document found by drawing again, B filled as in create_pretraining_data.py."""
    document, follows = documents[number], bool(random.getrandbits(1))
    end = max(_fill(document, start, target), start + 2)
    a_end = random.choice(range(start + 1, end))
    a = [list(sentence) for sentence in document[start:a_end]]
    if follows:
        return a, [list(sentence) for sentence in document[a_end:end]], 0, end - start
    other = number
    while other == number:
        other = random.randint(0, len(documents) - 1)
    b, wanted = [], target - sum(len(sentence) for sentence in a)
    for j in range(random.randint(0, len(documents[other]) - 1), len(documents[other])):
        b.append(documents[other][j])
        if sum(len(sentence) for sentence in b) >= wanted:
            break
    return a, b, 1, len(a)


@make_pair.alternative
def any_sentence_elsewhere(documents, number, start, target):
    """B's beginning drawn among all sentences of the other documents: long documents come more often."""
    document = documents[number]
    end = max(_fill(document, start, target), start + 2)
    cut = random.choice(range(1, end - start))
    a = document[start : start + cut]
    elsewhere = [(d, s) for d in range(len(documents)) if d != number for s in range(len(documents[d]))]
    if random.choice((True, False)):
        return a, document[start + cut : end], 0, end - start
    d, s = random.choice(elsewhere)
    return a, documents[d][s : _fill(documents[d], s, target - sum(map(len, a)))], 1, cut


# ---------------------------------------------------------------- 05.4 sentence order


@order_pair.alternative
def swap_if(sentences):
    cut = random.randint(1, len(sentences) - 1)
    a, b, label = sentences[:cut], sentences[cut:], 0
    if random.random() < 0.5:
        a, b, label = b, a, 1
    return a, b, label


@order_pair.alternative
def reversed_halves(sentences):
    cut = 1 + int(torch.randint(len(sentences) - 1, ()))
    label = int(torch.randint(2, ()))
    halves = [sentences[:cut], sentences[cut:]]
    return [*halves[:: -1 if label else 1], label]


@order_pair.alternative
def rotated(sentences):
    cut, label = random.choice(range(1, len(sentences))), random.getrandbits(1)
    turned = sentences[cut:] + sentences[:cut] if label else list(sentences)
    where = len(sentences) - cut if label else cut
    return turned[:where], turned[where:], label


# ---------------------------------------------------------------- 05.5 NSP head


@nsp_head.alternative
def linear(hidden, weights):
    pooled = F.linear(hidden[:, 0], weights["pooler.weight"], weights["pooler.bias"]).tanh()
    return F.linear(pooled, weights["classifier.weight"], weights["classifier.bias"])


@nsp_head.alternative
def tanh_from_a_sigmoid(hidden, weights):
    x = hidden.select(1, 0) @ weights["pooler.weight"].T + weights["pooler.bias"]
    return (2 * torch.sigmoid(2 * x) - 1) @ weights["classifier.weight"].T + weights["classifier.bias"]


@nsp_head.alternative
def einsum(hidden, weights):
    x = torch.einsum("bd,ed->be", hidden.select(1, 0), weights["pooler.weight"]) + weights["pooler.bias"]
    return torch.einsum("be,ke->bk", torch.tanh(x), weights["classifier.weight"]) + weights["classifier.bias"]


@nsp_head.alternative
def one_text_at_a_time(hidden, weights):
    out = []
    for text in hidden:
        pooled = torch.tanh(weights["pooler.weight"] @ text[0] + weights["pooler.bias"])
        out.append(weights["classifier.weight"] @ pooled + weights["classifier.bias"])
    return torch.stack(out)


@nsp_head.alternative
def modules(hidden, weights):
    size = hidden.shape[-1]
    layers = nn.Sequential(nn.Linear(size, size), nn.Tanh(), nn.Linear(size, 2)).to(hidden)
    names = {"0.weight": "pooler.weight", "0.bias": "pooler.bias", "2.weight": "classifier.weight",
             "2.bias": "classifier.bias"}  # fmt: skip
    return torch.func.functional_call(layers, {ours: weights[w] for ours, w in names.items()}, hidden[:, 0])


@nsp_head.alternative
def every_token_then_the_first(hidden, weights):
    """Wasteful, but right: the pooler on all tokens, and then [CLS] of it."""
    pooled = torch.tanh(hidden @ weights["pooler.weight"].mT + weights["pooler.bias"])
    return (pooled @ weights["classifier.weight"].mT + weights["classifier.bias"])[:, 0]


# ---------------------------------------------------------------- 05.6 NSP loss


@nsp_loss.alternative
def sum_and_count(logits, labels):
    total = F.cross_entropy(logits, labels, reduction="sum", ignore_index=-100)
    return total / (labels != -100).sum().clamp(min=1)


@nsp_loss.alternative
def one_logistic(logits, labels):
    """Two scores are one difference: the loss is softplus of the wrong one minus the right one."""
    asked = labels != -100
    difference = (logits[:, 1] - logits[:, 0])[asked]
    sign = 1.0 - 2.0 * labels[asked]
    return F.softplus(sign * difference).sum() / max(1, int(asked.sum()))


@nsp_loss.alternative
def mean_or_nothing(logits, labels):
    asked = labels >= 0
    return F.cross_entropy(logits[asked], labels[asked]) if bool(asked.any()) else logits.sum() * 0.0


@nsp_loss.alternative
def log_softmax_and_gather(logits, labels):
    asked = (labels != -100).to(logits.dtype)
    right = logits.log_softmax(-1).gather(1, labels.clamp(min=0).unsqueeze(1)).squeeze(1)
    return -(right * asked).sum() / asked.sum().clamp(min=1)


# ---------------------------------------------------------------- 05.7 pre-training loss


def _mean(scores, labels):
    total = F.cross_entropy(scores, labels, reduction="sum")
    return total / (labels != -100).sum().clamp(min=1)


@pretraining_loss.alternative
def two_means(mlm_logits, mlm_labels, nsp_logits, nsp_labels):
    return _mean(mlm_logits.flatten(0, 1), mlm_labels.flatten()) + _mean(nsp_logits, nsp_labels)


@pretraining_loss.alternative
def only_what_is_asked(mlm_logits, mlm_labels, nsp_logits, nsp_labels):
    total = (mlm_logits.sum() + nsp_logits.sum()) * 0.0
    for logits, labels in ((mlm_logits, mlm_labels), (nsp_logits, nsp_labels)):
        asked = labels != -100
        if bool(asked.any()):
            total = total + F.cross_entropy(logits[asked], labels[asked])
    return total


@pretraining_loss.alternative
def classes_on_the_second_axis(mlm_logits, mlm_labels, nsp_logits, nsp_labels):
    words = F.cross_entropy(mlm_logits.transpose(1, 2), mlm_labels, reduction="none")  # (B, S)
    follows = F.cross_entropy(nsp_logits, nsp_labels, reduction="none")  # (B,)
    counts = [max(1, int((labels != -100).sum())) for labels in (mlm_labels, nsp_labels)]
    return words.sum() / counts[0] + follows.sum() / counts[1]


@pretraining_loss.alternative
def log_probabilities_by_index(mlm_logits, mlm_labels, nsp_logits, nsp_labels):
    loss = 0.0
    for logits, labels in (
        (mlm_logits.reshape(-1, mlm_logits.size(-1)), mlm_labels.reshape(-1)),
        (nsp_logits, nsp_labels),
    ):
        rows = (labels != -100).nonzero()[:, 0]
        loss = loss - logits.log_softmax(-1)[rows, labels[rows]].sum() / max(len(rows), 1)
    return loss
