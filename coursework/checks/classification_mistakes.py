"""What students really get wrong in unit 08, as code: each must be rejected and called by its name."""

import math
import random

import torch
import torch.nn.functional as F
from torch import nn

from coursework.checks.classification import classification_head, evaluate, fine_tune, predict

# ---------------------------------------------------------------- 08.1 classification head


@classification_head.mistake(
    "no dropout: declared and never used", think="what should happen to the pooled vector in training?"
)
def dropout_never_used(pooled, weight, bias, p=0.1, training=False):
    return pooled @ weight.T + bias


@classification_head.mistake("dropout in eval mode too", think="what does F.dropout do when nobody says training=…?")
def dropout_in_eval(pooled, weight, bias, p=0.1, training=False):
    return F.linear(F.dropout(pooled, p), weight, bias)


@classification_head.mistake(
    "dropout on the logits, after the linear layer", think="what is dropped: features or answers?"
)
def dropout_on_logits(pooled, weight, bias, p=0.1, training=False):
    return F.dropout(F.linear(pooled, weight, bias), p, training)


@classification_head.mistake("dropout on the weights", think="do all texts of a batch lose the same features?")
def dropout_on_weights(pooled, weight, bias, p=0.1, training=False):
    return F.linear(pooled, F.dropout(weight, p, training), bias)


@classification_head.mistake(
    "training and eval swapped", think="when is something dropped: when training is True or when it is False?"
)
def modes_swapped(pooled, weight, bias, p=0.1, training=False):
    return F.linear(F.dropout(pooled, p, not training), weight, bias)


@classification_head.mistake(
    "p taken for the share that is kept", think="with p = 0.1, how much of the vector is left?"
)
def keeps_p(pooled, weight, bias, p=0.1, training=False):
    return F.linear(F.dropout(pooled, 1 - p, training), weight, bias)


@classification_head.mistake("dropped without scaling up the rest",
                             think="how large is a sum on average when a quarter of its terms is gone?")  # fmt: skip
def not_rescaled(pooled, weight, bias, p=0.1, training=False):
    if training:
        pooled = pooled * (torch.rand_like(pooled) >= p)
    return F.linear(pooled, weight, bias)


@classification_head.mistake("0 / 0 where everything is dropped", think="what do you divide by when p is 1?")
def zero_by_zero(pooled, weight, bias, p=0.1, training=False):
    if training:
        pooled = pooled * (torch.rand_like(pooled) >= p) / (1 - p)
    return F.linear(pooled, weight, bias)


@classification_head.mistake(
    "one draw for the whole batch", think="do two texts of a batch lose the same features in your function?"
)
def one_draw_for_the_batch(pooled, weight, bias, p=0.1, training=False):
    return F.linear(pooled * F.dropout(torch.ones_like(pooled[:1]), p, training), weight, bias)


@classification_head.mistake("whole texts dropped", think="is the draw made for each text or for each feature?")
def whole_rows(pooled, weight, bias, p=0.1, training=False):
    return F.linear(pooled * F.dropout(torch.ones_like(pooled[:, :1]), p, training), weight, bias)


@classification_head.mistake("p fixed at 0.1", think="what is the argument p for?")
def p_is_fixed(pooled, weight, bias, p=0.1, training=False):
    return F.linear(F.dropout(pooled, 0.1, training), weight, bias)


@classification_head.mistake("softmax already in the head", think="what does cross-entropy do first with what it gets?")
def softmax_in_the_head(pooled, weight, bias, p=0.1, training=False):
    return F.linear(F.dropout(pooled, p, training), weight, bias).softmax(-1)


@classification_head.mistake("log-softmax already in the head", think="what is asked for: scores or log-probabilities?")
def log_softmax_in_the_head(pooled, weight, bias, p=0.1, training=False):
    return F.linear(F.dropout(pooled, p, training), weight, bias).log_softmax(-1)


@classification_head.mistake("the bias forgotten", think="what is left when every feature is dropped?")
def no_bias(pooled, weight, bias, p=0.1, training=False):
    return F.linear(F.dropout(pooled, p, training), weight)


@classification_head.mistake("tanh once more", think="who has applied the pooler's tanh already?")
def tanh_again(pooled, weight, bias, p=0.1, training=False):
    return F.linear(F.dropout(torch.tanh(pooled), p, training), weight, bias)


@classification_head.mistake("a tanh on the logits", think="may a score be larger than 1?")
def tanh_on_logits(pooled, weight, bias, p=0.1, training=False):
    return torch.tanh(F.linear(F.dropout(pooled, p, training), weight, bias))


@classification_head.mistake(
    "weight not transposed", think="the weight is (K, D): which of its axes meets the features?"
)
def not_transposed(pooled, weight, bias, p=0.1, training=False):
    return F.dropout(pooled, p, training) @ weight + bias


@classification_head.mistake("a new linear layer with weights of its own", think="where do weight and bias go in?")
def own_weights(pooled, weight, bias, p=0.1, training=False):
    layer = nn.Linear(weight.size(1), weight.size(0), dtype=pooled.dtype, device=pooled.device)
    return layer(F.dropout(pooled, p, training))


@classification_head.mistake("the class instead of the scores", think="can a gradient pass through argmax?")
def class_returned(pooled, weight, bias, p=0.1, training=False):
    return F.linear(F.dropout(pooled, p, training), weight, bias).argmax(-1)


@classification_head.mistake(
    "the pooled vector detached: the encoder never learns", think="does a gradient reach the encoder?"
)
def detached(pooled, weight, bias, p=0.1, training=False):
    return F.linear(F.dropout(pooled.detach(), p, training), weight, bias)


# ---------------------------------------------------------------- 08.2 evaluate


def _counts(batches):
    """tp, fp, fn, tn over all batches."""
    said = torch.cat([logits.argmax(1) for logits, _ in batches])
    true = torch.cat([labels for _, labels in batches])
    return tuple(int(((said == s) & (true == t)).sum()) for s, t in ((1, 1), (1, 0), (0, 1), (0, 0)))


def _scores(tp, fp, fn, tn):
    both = 2 * tp + fp + fn
    spread = (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)
    return {
        "accuracy": (tp + tn) / (tp + fp + fn + tn),
        "f1": 2 * tp / both if both else 0.0,
        "mcc": (tp * tn - fp * fn) / math.sqrt(spread) if spread else 0.0,
    }


@evaluate.mistake("a mean of the batches' scores", think="does a batch of one text count as much as a batch of twenty?")
def mean_of_batches(batches):
    each = [_scores(*_counts([batch])) for batch in batches]
    return {key: sum(scores[key] for scores in each) / len(each) for key in each[0]}


@evaluate.mistake(
    "the batches' scores weighted by their sizes", think="is F1 of a whole set a mean of the F1 of its parts?"
)
def weighted_mean_of_batches(batches):
    sizes = [len(labels) for _, labels in batches]
    each = [_scores(*_counts([batch])) for batch in batches]
    return {key: sum(s[key] * n for s, n in zip(each, sizes, strict=True)) / sum(sizes) for key in each[0]}


@evaluate.mistake("accuracy as the mean of the batches' accuracies, the rest over the whole set",
                  think="how many texts are in the last batch?")  # fmt: skip
def mean_of_accuracies(batches):
    each = [_scores(*_counts([batch]))["accuracy"] for batch in batches]
    return _scores(*_counts(batches)) | {"accuracy": sum(each) / len(each)}


@evaluate.mistake("the scores of the last batch", think="what do your counts remember of the first batches?")
def last_batch(batches):
    return _scores(*_counts(batches[-1:]))


@evaluate.mistake("the scores of the first batch: a return inside the loop", think="when does your loop end?")
def first_batch(batches):
    return _scores(*_counts(batches[:1]))


@evaluate.mistake(
    "divided by batches × the first batch's size", think="is every batch as large as the first one? count the texts"
)
def equal_sizes_believed(batches):
    tp, fp, fn, tn = _counts(batches)
    return _scores(tp, fp, fn, tn) | {"accuracy": (tp + tn) / (len(batches) * len(batches[0][1]))}


@evaluate.mistake("F1 of class 0", think="which class is the one that is looked for?")
def f1_of_zero(batches):
    tp, fp, fn, tn = _counts(batches)
    return _scores(tp, fp, fn, tn) | {"f1": _scores(tn, fn, fp, tp)["f1"]}


@evaluate.mistake("the mean of both classes' F1", think="is F1 asked of one class or of both?")
def macro_f1(batches):
    tp, fp, fn, tn = _counts(batches)
    return _scores(tp, fp, fn, tn) | {"f1": (_scores(tp, fp, fn, tn)["f1"] + _scores(tn, fn, fp, tp)["f1"]) / 2}


@evaluate.mistake("F1 counted over both classes at once, which is accuracy", think="do right answers 0 count in F1?")
def micro_f1(batches):
    scores = _scores(*_counts(batches))
    return scores | {"f1": scores["accuracy"]}


@evaluate.mistake("precision for F1", think="which texts does precision never look at?")
def precision_only(batches):
    tp, fp, fn, tn = _counts(batches)
    return _scores(tp, fp, fn, tn) | {"f1": tp / (tp + fp) if tp + fp else 0.0}


@evaluate.mistake("recall for F1", think="what is the recall of somebody who always says 1?")
def recall_only(batches):
    tp, fp, fn, tn = _counts(batches)
    return _scores(tp, fp, fn, tn) | {"f1": tp / (tp + fn) if tp + fn else 0.0}


@evaluate.mistake("the plain mean of precision and recall", think="what kind of mean is F1?")
def arithmetic_mean(batches):
    tp, fp, fn, tn = _counts(batches)
    precision, recall = tp / max(1, tp + fp), tp / max(1, tp + fn)
    return _scores(tp, fp, fn, tn) | {"f1": (precision + recall) / 2}


@evaluate.mistake(
    "F1 without its two 2s: the errors count double", think="how often does an error count in F1, and a hit?"
)
def f1_without_twos(batches):
    tp, fp, fn, tn = _counts(batches)
    return _scores(tp, fp, fn, tn) | {"f1": tp / (tp + fp + fn) if tp + fp + fn else 0.0}


@evaluate.mistake("F1 without the 2", think="what is F1 when every answer is right?")
def f1_without_two(batches):
    tp, fp, fn, tn = _counts(batches)
    scores = _scores(tp, fp, fn, tn)
    return scores | {"f1": scores["f1"] / 2}


@evaluate.mistake(
    "MCC without the root", think="what is MCC when every answer is right, and are there 1 or 4 sums below?"
)
def mcc_without_root(batches):
    tp, fp, fn, tn = _counts(batches)
    spread = (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)
    return _scores(tp, fp, fn, tn) | {"mcc": (tp * tn - fp * fn) / spread if spread else 0.0}


@evaluate.mistake("MCC with tp·fp instead of tp·tn", think="what is multiplied with the true positives?")
def mcc_wrong_pairs(batches):
    tp, fp, fn, tn = _counts(batches)
    spread = (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)
    return _scores(tp, fp, fn, tn) | {"mcc": (tp * fp - tn * fn) / math.sqrt(spread) if spread else 0.0}


@evaluate.mistake("MCC guessed from accuracy, as 2 · accuracy − 1", think="what is it for who always says the same?")
def mcc_from_accuracy(batches):
    scores = _scores(*_counts(batches))
    return scores | {"mcc": 2 * scores["accuracy"] - 1}


@evaluate.mistake("an MCC that is never negative", think="what should it be for a model that is wrong every time?")
def mcc_absolute(batches):
    scores = _scores(*_counts(batches))
    return scores | {"mcc": abs(scores["mcc"])}


@evaluate.mistake(
    "a division by 0 where one answer is given to all", think="what is the product below if nobody says 0?"
)
def divides_by_zero(batches):
    tp, fp, fn, tn = _counts(batches)
    precision, recall = tp / (tp + fp), tp / (tp + fn)
    mcc = (tp * tn - fp * fn) / math.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn))
    f1 = 2 * precision * recall / (precision + recall)
    return {"accuracy": (tp + tn) / (tp + fp + fn + tn), "f1": f1, "mcc": mcc}


@evaluate.mistake("a division by 0 where all labels are the same, which your guard does not ask about",
                  think="which of the four sums below are 0 when every label is 1?")  # fmt: skip
def guards_the_answers_alone(batches):
    tp, fp, fn, tn = _counts(batches)
    spread = (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)
    mcc = 0.0 if tp + fp == 0 or tn + fn == 0 else (tp * tn - fp * fn) / math.sqrt(spread)
    return _scores(tp, fp, fn, tn) | {"mcc": mcc}


@evaluate.mistake("an MCC that is 0 wherever TP or TN is 0", think="what is MCC when every answer is wrong?")
def mcc_needs_right_answers(batches):
    tp, fp, fn, tn = _counts(batches)
    return _scores(tp, fp, fn, tn) | {"mcc": _scores(tp, fp, fn, tn)["mcc"] if tp and tn else 0.0}


@evaluate.mistake("an MCC of 1 where all labels are the same and the answers are not",
                  think="what does the text say of a division by 0?")  # fmt: skip
def mcc_one_for_equal_labels(batches):
    tp, fp, fn, tn = _counts(batches)
    equal = (tp + fn == 0 or tn + fp == 0) and tp + fp > 0 and tn + fn > 0
    return _scores(tp, fp, fn, tn) | ({"mcc": 1.0} if equal else {})


@evaluate.mistake("MCC as NaN where one answer is given to all", think="what is 0 / 0 for a tensor, and what is asked?")
def nan_mcc(batches):
    tp, fp, fn, tn = _counts(batches)
    spread = torch.tensor(float((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)))
    return _scores(tp, fp, fn, tn) | {"mcc": (tp * tn - fp * fn) / spread.sqrt()}


@evaluate.mistake("a correlation and an F1 that are 0 / 0 where all answers are the same",
                  think="what is the spread of answers that are all 1?")  # fmt: skip
def nan_everywhere(batches):
    said = torch.cat([logits.argmax(1) for logits, _ in batches]).double()
    true = torch.cat([labels for _, labels in batches]).double()
    return {
        "accuracy": (said == true).double().mean(),
        "f1": 2 * (said * true).sum() / (said.sum() + true.sum()),
        "mcc": torch.corrcoef(torch.stack([said, true]))[0, 1],
    }


@evaluate.mistake("a threshold on the logit of class 1", think="must the larger of two logits be above 0?")
def threshold_on_a_logit(batches):
    return _scores(*_counts([(torch.stack([logits[:, 1] * 0, logits[:, 1]], 1), labels) for logits, labels in batches]))


@evaluate.mistake("the classes swapped: the smallest logit wins", think="which logit is the answer?")
def argmin_taken(batches):
    return _scores(*_counts([(-logits, labels) for logits, labels in batches]))


@evaluate.mistake("percent instead of shares", think="what is the accuracy when everything is right: 1 or 100?")
def percent(batches):
    return {key: 100 * value for key, value in _scores(*_counts(batches)).items()}


def _rounded(batches, digits):
    return {key: round(value, digits) for key, value in _scores(*_counts(batches)).items()}


@evaluate.mistake("scores rounded to four digits", think="is a rounded score the score, or the way it is shown?")
def rounded(batches):
    return _rounded(batches, 4)


@evaluate.mistake("scores rounded to three digits", think="is a rounded score the score, or the way it is shown?")
def rounded_to_three(batches):
    return _rounded(batches, 3)


@evaluate.mistake("scores rounded to two digits", think="is a rounded score the score, or the way it is shown?")
def rounded_to_two(batches):
    return _rounded(batches, 2)


@evaluate.mistake("the number of right answers, not their share", think="what do you divide by?")
def not_divided(batches):
    tp, fp, fn, tn = _counts(batches)
    return _scores(tp, fp, fn, tn) | {"accuracy": tp + tn}


# ---------------------------------------------------------------- 08.3 fine-tune


def _loop(model, make_optimizer, batches, epochs, lr, frozen, *, loss_of=None, modes=None, learned=None, zero=True,
          keep=None, order=None):  # fmt: skip
    """The right loop, except for what is given. zero: False, or "epoch"; order: batches -> those of an epoch."""
    encoder = list(model.encoder.parameters())
    for p in encoder:
        p.requires_grad_(not frozen)
    optimizer = make_optimizer(learned or [p for p in model.parameters() if p.requires_grad], lr)
    if modes:
        modes()
    else:
        model.train()
        model.encoder.train(not frozen)
    losses = []
    for _ in range(epochs):
        if zero == "epoch":
            model.zero_grad()
        for ids, labels in order(batches) if order else batches:
            if zero is True:
                model.zero_grad()
            loss = (loss_of or F.cross_entropy)(model(ids), labels)
            loss.backward()
            optimizer.step()
            losses.append(keep(loss) if keep else loss.item())
    return losses


@fine_tune.mistake("softmax, and then cross-entropy, which does it again",
                   think="what does F.cross_entropy do first with what it gets?")  # fmt: skip
def softmax_twice(model, make_optimizer, batches, epochs, lr, frozen=False):
    return _loop(model, make_optimizer, batches, epochs, lr, frozen,
                 loss_of=lambda logits, labels: F.cross_entropy(logits.softmax(-1), labels))  # fmt: skip


@fine_tune.mistake(
    "raw logits given to the NLL loss", think="what does F.nll_loss expect: logits or log-probabilities?"
)
def raw_logits_into_nll(model, make_optimizer, batches, epochs, lr, frozen=False):
    return _loop(model, make_optimizer, batches, epochs, lr, frozen, loss_of=F.nll_loss)


@fine_tune.mistake("softmax without its logarithm given to the NLL loss", think="where is the logarithm taken?")
def probabilities_into_nll(model, make_optimizer, batches, epochs, lr, frozen=False):
    return _loop(model, make_optimizer, batches, epochs, lr, frozen,
                 loss_of=lambda logits, labels: F.nll_loss(logits.softmax(-1), labels))  # fmt: skip


@fine_tune.mistake(
    "softmax over the batch instead of the classes", think="which numbers add up to 1: a row or a column?"
)
def softmax_over_the_batch(model, make_optimizer, batches, epochs, lr, frozen=False):
    return _loop(model, make_optimizer, batches, epochs, lr, frozen,
                 loss_of=lambda logits, labels: F.nll_loss(logits.log_softmax(0), labels))  # fmt: skip


@fine_tune.mistake("the sum over the batch instead of the mean", think="is a step for 7 texts longer than one for 3?")
def summed(model, make_optimizer, batches, epochs, lr, frozen=False):
    return _loop(model, make_optimizer, batches, epochs, lr, frozen,
                 loss_of=lambda logits, labels: F.cross_entropy(logits, labels, reduction="sum"))  # fmt: skip


@fine_tune.mistake("the squared distance to the truth as 0 and 1", think="which loss was asked for?")
def squared_error(model, make_optimizer, batches, epochs, lr, frozen=False):
    def loss_of(logits, labels):
        return F.mse_loss(logits.softmax(-1), F.one_hot(labels, logits.size(1)).to(logits.dtype))

    return _loop(model, make_optimizer, batches, epochs, lr, frozen, loss_of=loss_of)


@fine_tune.mistake("label 0 taken for “ignore this one”", think="is 0 a class here, or the id of padding?")
def zero_ignored(model, make_optimizer, batches, epochs, lr, frozen=False):
    return _loop(model, make_optimizer, batches, epochs, lr, frozen,
                 loss_of=lambda logits, labels: F.cross_entropy(logits, labels, ignore_index=0))  # fmt: skip


@fine_tune.mistake("label smoothing nobody asked for", think="is the truth 1 or 0.9?")
def smoothed(model, make_optimizer, batches, epochs, lr, frozen=False):
    return _loop(model, make_optimizer, batches, epochs, lr, frozen,
                 loss_of=lambda logits, labels: F.cross_entropy(logits, labels, label_smoothing=0.1))  # fmt: skip


@fine_tune.mistake("no model.train(): nothing is ever dropped", think="in which mode is a model that was just loaded?")
def never_in_train_mode(model, make_optimizer, batches, epochs, lr, frozen=False):
    return _loop(model, make_optimizer, batches, epochs, lr, frozen, modes=lambda: None)


@fine_tune.mistake("frozen, but its dropout is still on", think="why make features noisy that can't learn from it?")
def frozen_and_dropping(model, make_optimizer, batches, epochs, lr, frozen=False):
    return _loop(model, make_optimizer, batches, epochs, lr, frozen, modes=lambda: model.train())


@fine_tune.mistake("eval mode for all of a frozen model, also for the head", think="which part still learns?")
def all_in_eval_mode(model, make_optimizer, batches, epochs, lr, frozen=False):
    return _loop(model, make_optimizer, batches, epochs, lr, frozen, modes=lambda: model.train(not frozen))


@fine_tune.mistake("train mode in the first epoch only", think="who calls model.train() again after model.eval()?")
def train_mode_once(model, make_optimizer, batches, epochs, lr, frozen=False):
    for p in model.encoder.parameters():
        p.requires_grad_(not frozen)
    optimizer, losses = make_optimizer(list(model.parameters()), lr), []
    model.train()
    model.encoder.train(not frozen)
    for _ in range(epochs):
        for ids, labels in batches:
            model.zero_grad()
            loss = F.cross_entropy(model(ids), labels)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        model.eval()
    return losses


@fine_tune.mistake("frozen is never looked at", think="what does your function do differently when frozen is True?")
def frozen_ignored(model, make_optimizer, batches, epochs, lr, frozen=False):
    return _loop(model, make_optimizer, batches, epochs, lr, False)


@fine_tune.mistake("always frozen", think="what does your function do when frozen is False?")
def always_frozen(model, make_optimizer, batches, epochs, lr, frozen=False):
    return _loop(model, make_optimizer, batches, epochs, lr, True)


@fine_tune.mistake("eval mode taken for freezing: the encoder still learns", think="does eval() stop gradients?")
def eval_is_not_frozen(model, make_optimizer, batches, epochs, lr, frozen=False):
    return _loop(model, make_optimizer, batches, epochs, lr, False,
                 modes=lambda: (model.train(), model.encoder.train(not frozen)))  # fmt: skip


@fine_tune.mistake("the head frozen instead of the encoder", think="which part has never learned anything yet?")
def head_frozen(model, make_optimizer, batches, epochs, lr, frozen=False):
    part = model.encoder if frozen else model
    return _loop(model, make_optimizer, batches, epochs, lr, False, learned=list(part.parameters()),
                 modes=lambda: (model.train(), model.encoder.train(not frozen)))  # fmt: skip


@fine_tune.mistake("frozen for good: a later run that is not frozen learns the head only",
                   think="who wants the encoder's gradients back when frozen is False?")  # fmt: skip
def never_thawed(model, make_optimizer, batches, epochs, lr, frozen=False):
    if frozen:
        model.encoder.requires_grad_(False)
    optimizer, losses = make_optimizer([p for p in model.parameters() if p.requires_grad], lr), []
    model.train()
    model.encoder.train(not frozen)
    for _ in range(epochs):
        for ids, labels in batches:
            model.zero_grad()
            loss = F.cross_entropy(model(ids), labels)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


@fine_tune.mistake("gradients of frozen weights set to 0: the optimizer's decay still shrinks them",
                   think="does a weight stand still whose gradient is 0, if there is weight decay?")  # fmt: skip
def zeroed_gradients(model, make_optimizer, batches, epochs, lr, frozen=False):
    optimizer, losses = make_optimizer(list(model.parameters()), lr), []
    model.train()
    model.encoder.train(not frozen)
    for _ in range(epochs):
        for ids, labels in batches:
            model.zero_grad()
            loss = F.cross_entropy(model(ids), labels)
            loss.backward()
            if frozen:
                for p in model.encoder.parameters():
                    p.grad = torch.zeros_like(p)
            optimizer.step()
            losses.append(loss.item())
    return losses


@fine_tune.mistake("a frozen encoder, and the head's bias frozen with it", think="how many tensors has the head?")
def bias_frozen_too(model, make_optimizer, batches, epochs, lr, frozen=False):
    learned = [model.head.weight] if frozen else None
    return _loop(model, make_optimizer, batches, epochs, lr, frozen, learned=learned)


@fine_tune.mistake("only the head learns", think="what did you give to make_optimizer?")
def optimizer_has_the_head_only(model, make_optimizer, batches, epochs, lr, frozen=False):
    return _loop(model, make_optimizer, batches, epochs, lr, frozen, learned=list(model.head.parameters()))


@fine_tune.mistake("gradients never cleared", think="what is in .grad before backward?")
def never_cleared(model, make_optimizer, batches, epochs, lr, frozen=False):
    return _loop(model, make_optimizer, batches, epochs, lr, frozen, zero=False)


@fine_tune.mistake("gradients cleared once an epoch", think="what is in .grad before the second batch's backward?")
def cleared_once_an_epoch(model, make_optimizer, batches, epochs, lr, frozen=False):
    return _loop(model, make_optimizer, batches, epochs, lr, frozen, zero="epoch")


@fine_tune.mistake("gradients cleared between backward and step", think="what does the optimizer find in .grad?")
def cleared_before_the_step(model, make_optimizer, batches, epochs, lr, frozen=False):
    optimizer, losses = make_optimizer(list(model.parameters()), lr), []
    model.train()
    model.encoder.train(not frozen)
    for _ in range(epochs):
        for ids, labels in batches:
            loss = F.cross_entropy(model(ids), labels)
            loss.backward()
            optimizer.zero_grad()
            optimizer.step()
            losses.append(loss.item())
    return losses


@fine_tune.mistake("no optimizer.step()", think="who changes the weights?")
def no_step(model, make_optimizer, batches, epochs, lr, frozen=False):
    model.train()
    model.encoder.train(not frozen)
    return [F.cross_entropy(model(ids), labels).item() for _ in range(epochs) for ids, labels in batches]


@fine_tune.mistake("one step an epoch", think="how many steps are three batches?")
def one_step_an_epoch(model, make_optimizer, batches, epochs, lr, frozen=False):
    for p in model.encoder.parameters():
        p.requires_grad_(not frozen)
    optimizer, losses = make_optimizer([p for p in model.parameters() if p.requires_grad], lr), []
    model.train()
    model.encoder.train(not frozen)
    for _ in range(epochs):
        model.zero_grad()
        for ids, labels in batches:
            loss = F.cross_entropy(model(ids), labels)
            loss.backward()
            losses.append(loss.item())
        optimizer.step()
    return losses


@fine_tune.mistake("one epoch only", think="what is the argument epochs for?")
def one_epoch(model, make_optimizer, batches, epochs, lr, frozen=False):
    return _loop(model, make_optimizer, batches, 1, lr, frozen)


@fine_tune.mistake("the last batch first", think="in which order do the batches come, and is that yours to choose?")
def batches_reversed(model, make_optimizer, batches, epochs, lr, frozen=False):
    return _loop(model, make_optimizer, batches, epochs, lr, frozen, order=lambda batches: batches[::-1])


# Of shuffled batches only those are recognised that are drawn like these (each call begins with the same seed); of
# others the check says that their order is not the given one.
@fine_tune.mistake("batches in an order drawn anew for each epoch", think="which order does the exercise ask for?")
def batches_shuffled(model, make_optimizer, batches, epochs, lr, frozen=False):
    return _loop(model, make_optimizer, batches, epochs, lr, frozen,
                 order=lambda batches: [batches[i] for i in torch.randperm(len(batches))])  # fmt: skip


@fine_tune.mistake("batches shuffled by Python's random", think="which order does the exercise ask for?")
def batches_shuffled_by_python(model, make_optimizer, batches, epochs, lr, frozen=False):
    mine = list(batches)

    def order(_):
        random.shuffle(mine)
        return mine

    return _loop(model, make_optimizer, batches, epochs, lr, frozen, order=order)


@fine_tune.mistake(
    "only the first batch of each epoch: a break or a return in the loop", think="when does the loop end?"
)
def first_batch_only(model, make_optimizer, batches, epochs, lr, frozen=False):
    return _loop(model, make_optimizer, batches[:1], epochs, lr, frozen)


@fine_tune.mistake("the last, smaller batch left out", think="which texts are never learned?")
def last_batch_left_out(model, make_optimizer, batches, epochs, lr, frozen=False):
    return _loop(model, make_optimizer, batches[:-1] or batches, epochs, lr, frozen)


@fine_tune.mistake(
    "a new optimizer for every epoch: its momentum is lost", think="what does an optimizer remember between steps?"
)
def new_optimizer_each_epoch(model, make_optimizer, batches, epochs, lr, frozen=False):
    losses = []
    for _ in range(epochs):
        losses += _loop(model, make_optimizer, batches, 1, lr, frozen)
    return losses


@fine_tune.mistake("a new optimizer for every step: its momentum is lost",
                   think="what does an optimizer remember between steps?")  # fmt: skip
def new_optimizer_each_step(model, make_optimizer, batches, epochs, lr, frozen=False):
    losses = []
    for batch in list(batches) * epochs:
        losses += _loop(model, make_optimizer, [batch], 1, lr, frozen)
    return losses


@fine_tune.mistake("a learning rate of 1e-3, whatever is asked for",
                   think="what does a rate that is twenty times too high do to what was learned?")  # fmt: skip
def own_learning_rate(model, make_optimizer, batches, epochs, lr, frozen=False):
    return _loop(model, make_optimizer, batches, epochs, 1e-3, frozen)


@fine_tune.mistake("the loss noted after the step, not before", think="which loss has the step been made for?")
def loss_after_the_step(model, make_optimizer, batches, epochs, lr, frozen=False):
    for p in model.encoder.parameters():
        p.requires_grad_(not frozen)
    optimizer, losses = make_optimizer([p for p in model.parameters() if p.requires_grad], lr), []
    model.train()
    model.encoder.train(not frozen)
    for _ in range(epochs):
        for ids, labels in batches:
            model.zero_grad()
            F.cross_entropy(model(ids), labels).backward()
            optimizer.step()
            losses.append(F.cross_entropy(model(ids), labels).item())
    return losses


@fine_tune.mistake("losses returned with their graphs", think="what does a loss hold on to, until item() is called?")
def losses_with_graphs(model, make_optimizer, batches, epochs, lr, frozen=False):
    return _loop(model, make_optimizer, batches, epochs, lr, frozen, keep=lambda loss: loss)


@fine_tune.mistake("only the last loss returned", think="how many losses are asked for?")
def last_loss_only(model, make_optimizer, batches, epochs, lr, frozen=False):
    return _loop(model, make_optimizer, batches, epochs, lr, frozen)[-1:]


@fine_tune.mistake("nothing returned", think="what should your function give back?")
def nothing_returned(model, make_optimizer, batches, epochs, lr, frozen=False):
    _loop(model, make_optimizer, batches, epochs, lr, frozen)


# ---------------------------------------------------------------- 08.4 predict


def _ask(model, sequences, batch, *, order=None, back=None, end=None, mode="eval", restore=True, gradients=False,
         pad=0, left=False, mask_of=None, width=None):  # fmt: skip
    """The right answers, except for what is given.

    back: how rows are put back; end: logits -> what is returned; mask_of: ids -> the mask.
    """
    device, was_training = next(model.parameters()).device, model.training
    if mode is not None:
        model.train(mode == "train")
    if order is None:
        order = sorted(range(len(sequences)), key=lambda i: len(sequences[i]))
    logits = []
    with torch.set_grad_enabled(gradients):
        for start in range(0, len(order), batch):
            some = [sequences[i] for i in order[start : start + batch]]
            longest = width(sequences, some) if width else max(len(s) for s in some)
            some = [s[:longest] for s in some]
            gaps = [longest - len(s) for s in some]
            before = [n if left else 0 for n in gaps]
            ids = torch.tensor(
                [[pad] * b + s + [pad] * (n - b) for s, n, b in zip(some, gaps, before, strict=True)], device=device
            )
            mask = torch.tensor(
                [[0] * b + [1] * len(s) + [0] * (n - b) for s, n, b in zip(some, gaps, before, strict=True)],
                device=device,
            )
            logits.append(model(ids, mask_of(ids) if mask_of else mask))
        logits = torch.cat(logits)
        out = end(logits) if end else logits.softmax(-1)
    if restore:
        model.train(was_training)
    places = torch.tensor(order, device=device)
    return back(out, places) if back else out[places.argsort()]


@predict.mistake("logits instead of probabilities", think="do the numbers of a text add up to 1?")
def logits_returned(model, sequences, batch):
    return _ask(model, sequences, batch, end=lambda logits: logits)


@predict.mistake("log-probabilities", think="can a probability be negative?")
def log_probabilities(model, sequences, batch):
    return _ask(model, sequences, batch, end=lambda logits: logits.log_softmax(-1))


@predict.mistake("a sigmoid of each logit", think="do the numbers of a text add up to 1?")
def sigmoid_taken(model, sequences, batch):
    return _ask(model, sequences, batch, end=torch.sigmoid)


@predict.mistake("softmax over the texts instead of the classes", think="what adds up to 1: a row or a column?")
def softmax_over_texts(model, sequences, batch):
    return _ask(model, sequences, batch, end=lambda logits: logits.softmax(0))


@predict.mistake("softmax twice", think="what does softmax make of numbers between 0 and 1?")
def softmax_twice_over(model, sequences, batch):
    return _ask(model, sequences, batch, end=lambda logits: logits.softmax(-1).softmax(-1))


@predict.mistake("exp without dividing by the sum", think="do the numbers of a text add up to 1?")
def not_normalised(model, sequences, batch):
    return _ask(model, sequences, batch, end=torch.exp)


@predict.mistake("classes instead of probabilities", think="how sure is the model? does your answer say so?")
def classes_returned(model, sequences, batch):
    return _ask(model, sequences, batch, end=lambda logits: logits.argmax(-1))


@predict.mistake("no model.eval(): dropout while answering", think="in which mode does the model come, sometimes?")
def train_mode_kept(model, sequences, batch):
    return _ask(model, sequences, batch, mode=None)


@predict.mistake("train mode, on purpose", think="what does model.train() switch on?")
def train_mode_on(model, sequences, batch):
    return _ask(model, sequences, batch, mode="train")


@predict.mistake("padding that the mask does not hide", think="what does the mask say about the places you filled up?")
def padding_read(model, sequences, batch):
    return _ask(model, sequences, batch, mask_of=torch.ones_like)


@predict.mistake("a mask made from ids, with another id as padding", think="which id is hidden by ids != 0?")
def padded_with_one(model, sequences, batch):
    return _ask(model, sequences, batch, pad=1, mask_of=lambda ids: (ids != 0).long())


@predict.mistake("a mask made from ids: a token whose id is 0 is hidden with the padding",
                 think="who knows better where a text ends: its ids or its length?")  # fmt: skip
def mask_from_ids(model, sequences, batch):
    return _ask(model, sequences, batch, mask_of=lambda ids: (ids != 0).long())


@predict.mistake("padded with 1, under a right mask", think="with which id does the exercise ask you to pad?")
def hidden_padding_of_ones(model, sequences, batch):
    return _ask(model, sequences, batch, pad=1)


@predict.mistake("padding on the left", think="which position has the first token of a short text?")
def padded_left(model, sequences, batch):
    return _ask(model, sequences, batch, left=True)


@predict.mistake("everything cut to the shortest of the batch", think="what happens to the end of a long text?")
def cut_to_the_shortest(model, sequences, batch):
    return _ask(model, sequences, batch, width=lambda every, some: min(len(s) for s in some))


@predict.mistake("answers in the order of length, not in the order of the texts",
                 think="whose answer is the first row of your result?")  # fmt: skip
def order_not_restored(model, sequences, batch):
    return _ask(model, sequences, batch, back=lambda out, places: out)


@predict.mistake("put back the wrong way round: out[order] instead of out[order] = …",
                 think="does order say where a text went, or where it came from?")  # fmt: skip
def order_taken_for_its_inverse(model, sequences, batch):
    return _ask(model, sequences, batch, back=lambda out, places: out[places])


@predict.mistake("the list of texts turned round instead of put back", think="is sorting undone by turning round?")
def turned_round(model, sequences, batch):
    return _ask(model, sequences, batch, back=lambda out, places: out.flip(0))


@predict.mistake("the last, smaller batch lost", think="are there as many answers as texts?")
def last_batch_lost(model, sequences, batch):
    device, was_training, rows = next(model.parameters()).device, model.training, []
    model.eval()
    order = sorted(range(len(sequences)), key=lambda i: len(sequences[i]))
    with torch.no_grad():
        for number in range(max(1, len(sequences) // batch)):
            some = [torch.tensor(sequences[i]) for i in order[number * batch : (number + 1) * batch]]
            ids = nn.utils.rnn.pad_sequence(some, batch_first=True).to(device)
            mask = (
                torch.arange(ids.size(1), device=device) < torch.tensor([len(s) for s in some], device=device)[:, None]
            )
            rows += list(zip(order[number * batch :], model(ids, mask).softmax(-1), strict=False))
    model.train(was_training)
    return torch.stack([row for _, row in sorted(rows, key=lambda pair: pair[0])])


@predict.mistake("all texts in one batch", think="what if there are a million?")
def one_large_batch(model, sequences, batch):
    return _ask(model, sequences, len(sequences))


@predict.mistake("one text a time", think="what is the argument batch for?")
def one_by_one(model, sequences, batch):
    return _ask(model, sequences, 1)


@predict.mistake("batches in the order of the texts: long and short ones together",
                 think="how much of what the model reads is padding?")  # fmt: skip
def not_by_length(model, sequences, batch):
    return _ask(model, sequences, batch, order=list(range(len(sequences))))


@predict.mistake("texts sorted by their ids, not by their length", think="what does sorted do with lists of numbers?")
def sorted_by_content(model, sequences, batch):
    return _ask(model, sequences, batch, order=sorted(range(len(sequences)), key=lambda i: sequences[i]))


@predict.mistake("texts sorted by the sum of their ids", think="which is the longer text, [16, 16] or [1, 1, 1]?")
def sorted_by_sum(model, sequences, batch):
    return _ask(model, sequences, batch, order=sorted(range(len(sequences)), key=lambda i: sum(sequences[i])))


@predict.mistake("each batch padded to the longest text of all", think="how much of what the model reads is padding?")
def padded_to_the_longest(model, sequences, batch):
    return _ask(model, sequences, batch, width=lambda every, some: max(len(s) for s in every))


@predict.mistake("the caller's list sorted", think="what does sequences.sort() do to the list outside?")
def sorts_the_callers_list(model, sequences, batch):
    before = list(sequences)
    out = _ask(model, before, batch)
    sequences.sort(key=len)
    return out


@predict.mistake("gradients left on", think="what does the model keep in memory when nobody says no_grad?")
def gradients_left_on(model, sequences, batch):
    return _ask(model, sequences, batch, gradients=True)


@predict.mistake("gradients left on and cut off afterwards", think="when is the memory taken: during or after?")
def detached_too_late(model, sequences, batch):
    return _ask(model, sequences, batch, gradients=True).detach()


@predict.mistake("gradients switched off at the weights, for good", think="can the model learn after your answers?")
def weights_left_frozen(model, sequences, batch):
    model.requires_grad_(False)
    return _ask(model, sequences, batch)


@predict.mistake(
    "the model left in eval mode: the rest of the training has no dropout", think="in which mode did the model come?"
)
def left_in_eval_mode(model, sequences, batch):
    return _ask(model, sequences, batch, restore=False)


@predict.mistake("the mode given back to the model alone: its parts stay in eval mode",
                 think="what does model.train(…) do that model.training = … does not?")  # fmt: skip
def only_the_whole_restored(model, sequences, batch):
    was_training = model.training
    out = _ask(model, sequences, batch, restore=False)
    model.training = was_training
    return out


@predict.mistake("the model always left in train mode", think="what if the model came in eval mode?")
def left_in_train_mode(model, sequences, batch):
    out = _ask(model, sequences, batch)
    model.train()
    return out
