"""Right answers of unit 08 that differ in structure: each must get full marks."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from coursework.checks.classification import classification_head, evaluate, fine_tune, predict

# ---------------------------------------------------------------- 08.1 classification head


@classification_head.alternative
def dropout_and_linear(pooled, weight, bias, p=0.1, training=False):
    return F.linear(F.dropout(pooled, p, training), weight, bias)


@classification_head.alternative
def modules_with_these_weights(pooled, weight, bias, p=0.1, training=False):
    layer = nn.Linear(weight.size(1), weight.size(0), device=pooled.device, dtype=pooled.dtype)
    return torch.func.functional_call(layer, {"weight": weight, "bias": bias}, nn.Dropout(p).train(training)(pooled))


@classification_head.alternative
def bernoulli_and_einsum(pooled, weight, bias, p=0.1, training=False):
    if training:
        kept = torch.bernoulli(torch.full_like(pooled, 1 - p))
        pooled = pooled * kept / max(1 - p, 1e-9)
    return torch.einsum("bd,kd->bk", pooled, weight) + bias


@classification_head.alternative
def one_class_after_another(pooled, weight, bias, p=0.1, training=False):
    if training and p < 1:
        pooled = pooled.masked_fill(torch.rand(pooled.shape, device=pooled.device) < p, 0.0) / (1 - p)
    elif training:
        pooled = pooled * 0
    return torch.stack([(pooled * row).sum(1) + b for row, b in zip(weight, bias, strict=True)], dim=1)


# ---------------------------------------------------------------- 08.2 evaluate


@evaluate.alternative
def four_counts(batches):
    tp = fp = fn = tn = 0
    for logits, labels in batches:
        said = logits.argmax(-1)
        tp += int(((said == 1) & (labels == 1)).sum())
        fp += int(((said == 1) & (labels == 0)).sum())
        fn += int(((said == 0) & (labels == 1)).sum())
        tn += int(((said == 0) & (labels == 0)).sum())
    precision, recall = tp / max(1, tp + fp), tp / max(1, tp + fn)
    f1 = 2 * precision * recall / (precision + recall) if tp else 0.0
    root = math.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn))
    return {"accuracy": (tp + tn) / (tp + fp + fn + tn), "f1": f1, "mcc": (tp * tn - fp * fn) / root if root else 0.0}


@evaluate.alternative
def all_together_first(batches):
    said = torch.cat([logits[:, 1] > logits[:, 0] for logits, _ in batches]).double()
    labels = torch.cat([labels for _, labels in batches]).double()
    asked = said.sum() + labels.sum()
    f1 = 2 * (said * labels).sum() / asked if asked > 0 else torch.tensor(0.0)
    both = torch.stack([said, labels])
    mcc = torch.corrcoef(both)[0, 1] if len(said) > 1 and bool((both.std(1) > 0).all()) else torch.tensor(0.0)
    return {"mcc": mcc, "f1": f1, "accuracy": (said == labels).double().mean()}


@evaluate.alternative
def a_table_of_counts(batches):
    table = torch.zeros(4, dtype=torch.int64)
    for logits, labels in batches:
        table += torch.bincount((2 * labels + logits.softmax(-1).argmax(-1)).cpu(), minlength=4)
    (tn, fp), (fn, tp) = table.double().view(2, 2).tolist()
    mcc = 0.0
    if min(tn + fp, fn + tp, tn + fn, fp + tp) > 0:
        mcc = (tn * tp - fp * fn) / ((tn + fp) * (fn + tp) * (tn + fn) * (fp + tp)) ** 0.5
    f1 = 0.0 if tp == 0 else 1 / (1 + (fp + fn) / (2 * tp))
    return {"accuracy": (tn + tp) / (tn + fp + fn + tp), "f1": f1, "mcc": mcc}


# ---------------------------------------------------------------- 08.3 fine-tune


@fine_tune.alternative
def as_usual(model, make_optimizer, batches, epochs, lr, frozen=False):
    for p in model.encoder.parameters():
        p.requires_grad_(not frozen)
    optimizer = make_optimizer([p for p in model.parameters() if p.requires_grad], lr)
    model.train()
    if frozen:
        model.encoder.eval()
    losses = []
    for _ in range(epochs):
        for ids, labels in batches:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(ids), labels)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


@fine_tune.alternative
def features_without_a_graph(model, make_optimizer, batches, epochs, lr, frozen=False):
    model.train()
    model.encoder.train(not frozen)
    model.zero_grad()
    optimizer = make_optimizer(model.parameters(), lr)
    losses = []
    for _ in range(epochs):
        for ids, labels in batches:
            with torch.set_grad_enabled(not frozen):
                pooled = model.encoder(ids)
            log_probabilities = model.head(pooled).log_softmax(-1)
            loss = F.nll_loss(log_probabilities, labels)
            loss.backward()
            losses.append(loss.detach())
            optimizer.step()
            model.zero_grad()
    return torch.stack(losses)


@fine_tune.alternative
def features_computed_once(model, make_optimizer, batches, epochs, lr, frozen=False):
    if frozen:
        model.eval()
        with torch.no_grad():
            batches = [(model.encoder(ids), labels) for ids, labels in batches]
    learner = model.head if frozen else model
    optimizer, losses = make_optimizer(list(learner.parameters()), lr), []
    learner.train()
    for x, labels in batches * epochs:
        learner.zero_grad()
        logits = learner(x)
        loss = (logits.logsumexp(1) - logits.gather(1, labels[:, None])[:, 0]).mean()
        loss.backward()
        optimizer.step()
        losses.append(float(loss))
    return losses


@fine_tune.alternative
def gradients_by_hand(model, make_optimizer, batches, epochs, lr, frozen=False):
    learned = [p for name, p in model.named_parameters() if not (frozen and name.startswith("encoder."))]
    optimizer = make_optimizer(learned, lr)
    losses = []
    for _ in range(epochs):
        for ids, labels in batches:
            model.train()
            model.encoder.train(not frozen)
            logits = model(ids)
            truth = F.one_hot(labels, logits.size(1)).to(logits.dtype)
            loss = -(truth * torch.log_softmax(logits, 1)).sum() / len(ids)
            for p, g in zip(learned, torch.autograd.grad(loss, learned), strict=True):
                p.grad = g
            optimizer.step()
            losses.append(loss.item())
    return losses


# ---------------------------------------------------------------- 08.4 predict


@predict.alternative
def sorted_and_put_back(model, sequences, batch):
    was_training = model.training
    model.eval()
    order = sorted(range(len(sequences)), key=lambda i: len(sequences[i]))
    found = [None] * len(sequences)
    with torch.no_grad():
        for start in range(0, len(order), batch):
            chosen = order[start : start + batch]
            longest = max(len(sequences[i]) for i in chosen)
            ids = torch.tensor([sequences[i] + [0] * (longest - len(sequences[i])) for i in chosen])
            mask = torch.tensor([[1] * len(sequences[i]) + [0] * (longest - len(sequences[i])) for i in chosen])
            device = next(model.parameters()).device
            for i, row in zip(chosen, model(ids.to(device), mask.to(device)).softmax(-1), strict=True):
                found[i] = row
    model.train(was_training)
    return torch.stack(found)


@predict.alternative
@torch.inference_mode()
def longest_first_and_inverse(model, sequences, batch):
    device, was_training = next(model.parameters()).device, model.training
    model.eval()
    lengths = torch.tensor([len(s) for s in sequences])
    order = lengths.argsort(descending=True)
    logits = []
    for chosen in order.split(batch):
        rows = [torch.tensor(sequences[i]) for i in chosen.tolist()]
        ids = nn.utils.rnn.pad_sequence(rows, batch_first=True)
        mask = torch.arange(ids.size(1)) < lengths[chosen][:, None]
        logits.append(model(ids.to(device), mask.to(device)))
    model.train(was_training)
    return torch.cat(logits)[order.argsort().to(device)].softmax(-1).clone()


@predict.alternative
def written_into_place(model, sequences, batch):
    device, training = next(model.parameters()).device, model.training
    model.train(False)
    numbered, out = sorted(enumerate(sequences), key=lambda pair: len(pair[1])), None
    while numbered:
        some, numbered = numbered[:batch], numbered[batch:]
        ids = torch.zeros(len(some), len(some[-1][1]), dtype=torch.int64)
        mask = torch.zeros_like(ids)
        for row, (_, sequence) in enumerate(some):
            ids[row, : len(sequence)] = torch.tensor(sequence)
            mask[row, : len(sequence)] = 1
        with torch.no_grad():
            grown = torch.exp(model(ids.to(device), mask.to(device)).log_softmax(1))
        if out is None:
            out = grown.new_zeros(len(sequences), grown.size(1))
        out[[i for i, _ in some]] = grown
    model.train(training)
    return out
