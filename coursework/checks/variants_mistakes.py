"""What students really get wrong in unit 11, as code: each must be rejected and called by its name."""

import copy

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


@roberta_positions.mistake("BERT's positions: 0, 1, 2 …", think="which row of the table belongs to padding?")
def berts_positions(input_ids, padding_id):
    return torch.arange(input_ids.shape[1], device=input_ids.device).expand_as(input_ids).clone()


@roberta_positions.mistake(
    "counting starts at padding_id, not one above it", think="may a word and padding share a position?"
)
def starts_at_padding(input_ids, padding_id):
    real = (input_ids != padding_id).long()
    return torch.where(real == 1, real.cumsum(1) - 1 + padding_id, padding_id)


@roberta_positions.mistake("counting from 1, as if padding_id were 0", think="what is padding_id for?")
def padding_id_ignored(input_ids, padding_id):
    real = (input_ids != padding_id).long()
    return torch.where(real == 1, real.cumsum(1), padding_id)


@roberta_positions.mistake("always from 2, as if padding_id were 1", think="what if padding has another number?")
def always_from_two(input_ids, padding_id):
    real = (input_ids != padding_id).long()
    return torch.where(real == 1, real.cumsum(1) + 1, padding_id)


@roberta_positions.mistake(
    "the column plus padding_id + 1, padding counted too", think="what if the padding stands on the left?"
)
def columns_shifted(input_ids, padding_id):
    columns = torch.arange(input_ids.shape[1], device=input_ids.device) + padding_id + 1
    return columns.expand_as(input_ids).clone()


@roberta_positions.mistake(
    "real tokens numbered by their column: right only while padding comes last",
    think="which position has the first word after three of padding?",
)
def columns_of_real(input_ids, padding_id):
    columns = torch.arange(input_ids.shape[1], device=input_ids.device) + padding_id + 1
    return torch.where(input_ids != padding_id, columns, padding_id)


@roberta_positions.mistake("padding at position 0", think="which row of the table did RoBERTa keep for padding?")
def padding_at_zero(input_ids, padding_id):
    real = (input_ids != padding_id).long()
    return (real.cumsum(1) + padding_id) * real


@roberta_positions.mistake(
    "padding keeps the position of the last real token", think="what must all padding have in common?"
)
def padding_goes_on(input_ids, padding_id):
    return (input_ids != padding_id).long().cumsum(1) + padding_id


@roberta_positions.mistake(
    "counted down the batch, not along the row", think="along which axis does a text run in (B, S)?"
)
def down_the_batch(input_ids, padding_id):
    real = (input_ids != padding_id).long()
    return real.cumsum(0) * real + padding_id


@roberta_positions.mistake("counted on from row to row", think="where does the second text begin?")
def through_the_batch(input_ids, padding_id):
    real = (input_ids != padding_id).long()
    return real.flatten().cumsum(0).view_as(real) * real + padding_id


# ---------------------------------------------------------------- 11.2 ALBERT's embedding


@factorised_embedding.mistake("the bias forgotten", think="what does a linear layer add after the product?")
def no_bias(input_ids, weights):
    return weights["word"][input_ids] @ weights["widen.weight"].T


@factorised_embedding.mistake(
    "the matrix (D, E) read as (E, D): reshaped, not transposed", think="what is row 0 of widen.weight about?"
)
def reshaped(input_ids, weights):
    wide, narrow = weights["widen.weight"].shape
    return weights["word"][input_ids] @ weights["widen.weight"].reshape(narrow, wide) + weights["widen.bias"]


@factorised_embedding.mistake(
    "the matrix (D, E) not transposed: E and D in the wrong order", think="which axis of the matrix meets E numbers?"
)
def not_transposed(input_ids, weights):
    return weights["word"][input_ids] @ weights["widen.weight"] + weights["widen.bias"]


@factorised_embedding.mistake("the narrow vectors returned, never widened", think="how wide is the model inside?")
def never_widened(input_ids, weights):
    return weights["word"][input_ids]


@factorised_embedding.mistake("√E multiplied in, as in the first Transformer", think="does ALBERT scale its words?")
def scaled(input_ids, weights):
    narrow = weights["word"][input_ids] * weights["word"].shape[1] ** 0.5
    return F.linear(narrow, weights["widen.weight"], weights["widen.bias"])


@factorised_embedding.mistake(
    "an activation after the matrix", think="would a product of two matrices still be one table?"
)
def activated(input_ids, weights):
    return F.gelu(F.linear(weights["word"][input_ids], weights["widen.weight"], weights["widen.bias"]))


@factorised_embedding.mistake("row 0 taken for padding and set to zero", think="does BERT's [PAD] have a zero vector?")
def zero_for_padding(input_ids, weights):
    narrow = weights["word"][input_ids] * (input_ids != 0)[..., None]
    return F.linear(narrow, weights["widen.weight"], weights["widen.bias"])


@factorised_embedding.mistake("looked up from 1", think="what number has the first piece?")
def from_one(input_ids, weights):
    return F.linear(weights["word"][input_ids - 1], weights["widen.weight"], weights["widen.bias"])


@factorised_embedding.mistake(
    "the word table detached: it never learns", think="which of the two matrices should be trained?"
)
def frozen_words(input_ids, weights):
    return F.linear(weights["word"].detach()[input_ids], weights["widen.weight"], weights["widen.bias"])


# ---------------------------------------------------------------- 11.3 one layer, many times


@SharedEncoder.mistake("a new layer each time: BERT's stack", think="how many times does ALBERT call make_layer?")
class AStack(nn.Module):
    def __init__(self, make_layer, times):
        super().__init__()
        self.layers = nn.ModuleList(make_layer() for _ in range(times))

    def forward(self, hidden, attention_mask=None):
        for layer in self.layers:
            hidden = layer(hidden, attention_mask)
        return hidden


@SharedEncoder.mistake(
    "copies of one layer: equal at first, each learns by itself",
    think="after one step of training, are the copies still equal?",
)
class Copies(nn.Module):
    def __init__(self, make_layer, times):
        super().__init__()
        layer = make_layer()
        self.layers = nn.ModuleList(copy.deepcopy(layer) for _ in range(times))

    def forward(self, hidden, attention_mask=None):
        for layer in self.layers:
            hidden = layer(hidden, attention_mask)
        return hidden


@SharedEncoder.mistake(
    "one layer listed n times: its file holds it n times", think="what does state_dict() say of the same layer twice?"
)
class ListedManyTimes(nn.Module):
    def __init__(self, make_layer, times):
        super().__init__()
        self.layers = nn.ModuleList([make_layer()] * times)

    def forward(self, hidden, attention_mask=None):
        for layer in self.layers:
            hidden = layer(hidden, attention_mask)
        return hidden


@SharedEncoder.mistake(
    "the layer in a plain list, or made anew in forward: the optimizer never sees it",
    think="how does a Module learn what its parameters are?",
)
class InAPlainList(nn.Module):
    def __init__(self, make_layer, times):
        super().__init__()
        self.layers = [make_layer()] * times

    def forward(self, hidden, attention_mask=None):
        for layer in self.layers:
            hidden = layer(hidden, attention_mask)
        return hidden


class _Shared(nn.Module):
    def __init__(self, make_layer, times):
        super().__init__()
        self.layer, self.times = make_layer(), times


@SharedEncoder.mistake("the layer run once only, or each time on the same input", think="what does the third run read?")
class Once(_Shared):
    def forward(self, hidden, attention_mask=None):
        return self.layer(hidden, attention_mask)


@SharedEncoder.mistake("run once too often", think="does the first run count?")
class OnceTooOften(_Shared):
    def forward(self, hidden, attention_mask=None):
        hidden = self.layer(hidden, attention_mask)
        for _ in range(self.times):
            hidden = self.layer(hidden, attention_mask)
        return hidden


@SharedEncoder.mistake("the results of all runs added up", think="where is the residual: here or inside the layer?")
class AddedUp(_Shared):
    def forward(self, hidden, attention_mask=None):
        total = 0
        for _ in range(self.times):
            hidden = self.layer(hidden, attention_mask)
            total = total + hidden
        return total


@SharedEncoder.mistake("the mask not passed on", think="does the layer know where padding is?")
class NoMask(_Shared):
    def forward(self, hidden, attention_mask=None):
        for _ in range(self.times):
            hidden = self.layer(hidden)
        return hidden


@SharedEncoder.mistake(
    "detached between the runs: only the last one learns", think="which of the uses must reach the weights?"
)
class Detached(_Shared):
    def forward(self, hidden, attention_mask=None):
        for _ in range(self.times):
            hidden = self.layer(hidden.detach(), attention_mask)
        return hidden


# ---------------------------------------------------------------- 11.4 counting


def _count(vocab, width, inner, layers, embedding, shared, *, decoder=0, layer_extra=0, rest=0, widen=None, times=None):
    """The right count with one thing changed."""
    if widen is None:
        widen = embedding * width + width if embedding != width else 0
    layer = 4 * (width * width + width) + 2 * width * inner + inner + width + 4 * width + layer_extra
    stack = (times if times is not None else 1 if shared else layers) * layer
    head = width * embedding + embedding + 2 * embedding + vocab
    return vocab * embedding + 516 * embedding + widen + stack + head + decoder + rest


@count_masked_lm.mistake(
    "the tied decoder counted a second time", think="does the decoder have a matrix of its own, or the word table?"
)
def tied_counted_twice(vocab, width, inner, layers, embedding, shared):
    return _count(vocab, width, inner, layers, embedding, shared, decoder=vocab * embedding)


@count_masked_lm.mistake("the decoder's bias forgotten", think="what is added to the score of each piece?")
def no_decoder_bias(vocab, width, inner, layers, embedding, shared):
    return _count(vocab, width, inner, layers, embedding, shared, decoder=-vocab)


@count_masked_lm.mistake("a shared layer counted as often as it is run", think="how many copies of it are in the file?")
def shared_counted_each_time(vocab, width, inner, layers, embedding, shared):
    return _count(vocab, width, inner, layers, embedding, shared, times=layers)


@count_masked_lm.mistake("one layer counted, shared or not", think="what is the argument shared for?")
def always_shared(vocab, width, inner, layers, embedding, shared):
    return _count(vocab, width, inner, layers, embedding, shared, times=1)


@count_masked_lm.mistake("no biases in the layer", think="what does each of the six products add?")
def no_biases(vocab, width, inner, layers, embedding, shared):
    return _count(vocab, width, inner, layers, embedding, shared, layer_extra=-(5 * width + inner))


@count_masked_lm.mistake("no LayerNorm in the layer", think="how many γ and β has a layer?")
def no_norms(vocab, width, inner, layers, embedding, shared):
    return _count(vocab, width, inner, layers, embedding, shared, layer_extra=-4 * width)


@count_masked_lm.mistake(
    "attention's output matrix forgotten: three products, not four", think="what mixes what the heads found?"
)
def three_products(vocab, width, inner, layers, embedding, shared):
    return _count(vocab, width, inner, layers, embedding, shared, layer_extra=-(width * width + width))


@count_masked_lm.mistake(
    "the inner width taken for 4 · width, whatever is given", think="what is the argument inner for?"
)
def four_times(vocab, width, inner, layers, embedding, shared):
    return _count(vocab, width, 4 * width, layers, embedding, shared)


@count_masked_lm.mistake(
    "a widening matrix in BERT too", think="what is left to widen if the embedding is as wide as the model?"
)
def always_widened(vocab, width, inner, layers, embedding, shared):
    return _count(vocab, width, inner, layers, embedding, shared, widen=embedding * width + width)


@count_masked_lm.mistake(
    "the widening matrix forgotten", think="how do E numbers become D numbers between embedding and first layer?"
)
def never_widened_count(vocab, width, inner, layers, embedding, shared):
    return _count(vocab, width, inner, layers, embedding, shared, widen=0)


@count_masked_lm.mistake(
    "words, positions and segments as wide as the model", think="what is narrow in ALBERT: words only, or all three?"
)
def wide_embeddings(vocab, width, inner, layers, embedding, shared):
    return _count(vocab, width, inner, layers, width, shared)


@count_masked_lm.mistake(
    "2 · embedding numbers too few: no segments, or one LayerNorm of the two forgotten",
    think="which three tables are summed, and where do LayerNorms stand outside of the layers?",
)
def no_segments(vocab, width, inner, layers, embedding, shared):
    return _count(vocab, width, inner, layers, embedding, shared, rest=-2 * embedding)


@count_masked_lm.mistake("no positions", think="which three tables are summed?")
def no_positions(vocab, width, inner, layers, embedding, shared):
    return _count(vocab, width, inner, layers, embedding, shared, rest=-512 * embedding)


# ---------------------------------------------------------------- 11.5 sentence order


def _join(sentences):
    return [token for sentence in sentences for token in sentence]


@sentence_order_pair.mistake("labels reversed: 0 is in order", think="which label has IsNext?")
def labels_reversed(sentences, cut, swapped):
    a, b = _join(sentences[:cut]), _join(sentences[cut:])
    return (b, a, 0) if swapped else (a, b, 1)


@sentence_order_pair.mistake("the label changed, the text not", think="what would the model see of the swap?")
def only_the_label(sentences, cut, swapped):
    return _join(sentences[:cut]), _join(sentences[cut:]), int(swapped)


@sentence_order_pair.mistake("the text changed, the label not", think="what should the model answer to a swapped pair?")
def only_the_text(sentences, cut, swapped):
    a, b = _join(sentences[:cut]), _join(sentences[cut:])
    return (b, a, 0) if swapped else (a, b, 0)


@sentence_order_pair.mistake(
    "all sentences in reverse order, not two segments swapped", think="does each segment still read well by itself?"
)
def reversed_sentences(sentences, cut, swapped):
    turned = sentences[::-1] if swapped else sentences
    at = len(sentences) - cut if swapped else cut
    return _join(turned[:at]), _join(turned[at:]), int(swapped)


@sentence_order_pair.mistake(
    "the tokens of the segments reversed", think="does each segment still read well by itself?"
)
def reversed_tokens(sentences, cut, swapped):
    a, b = _join(sentences[:cut]), _join(sentences[cut:])
    return (b[::-1], a[::-1], 1) if swapped else (a, b, 0)


@sentence_order_pair.mistake("cut after so many tokens, not sentences", think="what does cut count?")
def cut_in_tokens(sentences, cut, swapped):
    tokens = _join(sentences)
    a, b = tokens[:cut], tokens[cut:]
    return (b, a, 1) if swapped else (a, b, 0)


@sentence_order_pair.mistake("one sentence on each side, the others lost", think="what becomes of the third sentence?")
def two_sentences_only(sentences, cut, swapped):
    a, b = list(sentences[cut - 1]), list(sentences[cut])
    return (b, a, 1) if swapped else (a, b, 0)


@sentence_order_pair.mistake(
    "lists of sentences returned, not of tokens", think="what should come between [CLS] and [SEP]?"
)
def not_joined(sentences, cut, swapped):
    a, b = sentences[:cut], sentences[cut:]
    return (b, a, 1) if swapped else (a, b, 0)


@sentence_order_pair.mistake("cut one sentence too late", think="how many sentences are in sentences[:cut]?")
def cut_too_late(sentences, cut, swapped):
    a, b = _join(sentences[: cut + 1]), _join(sentences[cut + 1 :])
    return (b, a, 1) if swapped else (a, b, 0)


# ---------------------------------------------------------------- 11.6 distillation


def _soft(student, teacher, T, power=2):
    kl = F.kl_div((student / T).log_softmax(-1), (teacher.detach() / T).softmax(-1), reduction="batchmean")
    return kl * T**power


def _hard(student, labels):
    return F.cross_entropy(student, labels, ignore_index=-100)


def _cosine(student, teacher, mask):
    real = mask.bool()
    return (1 - F.cosine_similarity(student[real], teacher.detach()[real], dim=-1)).mean()


@distillation_loss.mistake(
    "KL the wrong way round: the student's probabilities weigh", think="whose probabilities say what matters?"
)
def kl_reversed(student_logits, teacher_logits, labels, student_hidden, teacher_hidden, attention_mask, T):
    teacher = teacher_logits.detach()
    soft = F.kl_div((teacher / T).log_softmax(-1), (student_logits / T).softmax(-1), reduction="batchmean") * T * T
    return soft, _hard(student_logits, labels), _cosine(student_hidden, teacher_hidden, attention_mask)


@distillation_loss.mistake("no factor T²", think="by how much does dividing by T shrink the gradient?")
def no_square(student_logits, teacher_logits, labels, student_hidden, teacher_hidden, attention_mask, T):
    soft = _soft(student_logits, teacher_logits, T, power=0)
    return soft, _hard(student_logits, labels), _cosine(student_hidden, teacher_hidden, attention_mask)


@distillation_loss.mistake("a factor T where T² belongs", think="how often is the gradient divided by T?")
def only_once(student_logits, teacher_logits, labels, student_hidden, teacher_hidden, attention_mask, T):
    soft = _soft(student_logits, teacher_logits, T, power=1)
    return soft, _hard(student_logits, labels), _cosine(student_hidden, teacher_hidden, attention_mask)


@distillation_loss.mistake("only the teacher's logits divided by T", think="are the two compared at one temperature?")
def teacher_only(student_logits, teacher_logits, labels, student_hidden, teacher_hidden, attention_mask, T):
    p = (teacher_logits.detach() / T).softmax(-1)
    soft = F.kl_div(student_logits.log_softmax(-1), p, reduction="batchmean") * T * T
    return soft, _hard(student_logits, labels), _cosine(student_hidden, teacher_hidden, attention_mask)


@distillation_loss.mistake("multiplied by T instead of divided", think="should the answers become softer or harder?")
def multiplied(student_logits, teacher_logits, labels, student_hidden, teacher_hidden, attention_mask, T):
    soft = _soft(student_logits, teacher_logits, 1 / T, power=-2)
    return soft, _hard(student_logits, labels), _cosine(student_hidden, teacher_hidden, attention_mask)


@distillation_loss.mistake("T left out altogether", think="what is the argument T for?")
def no_temperature(student_logits, teacher_logits, labels, student_hidden, teacher_hidden, attention_mask, T):
    soft = _soft(student_logits, teacher_logits, 1.0)
    return soft, _hard(student_logits, labels), _cosine(student_hidden, teacher_hidden, attention_mask)


@distillation_loss.mistake(
    'reduction="mean": divided by the number of pieces too', think="KL is a sum over what, a mean over what?"
)
def mean_of_everything(student_logits, teacher_logits, labels, student_hidden, teacher_hidden, attention_mask, T):
    soft = _soft(student_logits, teacher_logits, T) / student_logits.shape[-1]
    return soft, _hard(student_logits, labels), _cosine(student_hidden, teacher_hidden, attention_mask)


@distillation_loss.mistake("summed over the rows, not the mean", think="should twice as many rows weigh twice?")
def summed(student_logits, teacher_logits, labels, student_hidden, teacher_hidden, attention_mask, T):
    soft = _soft(student_logits, teacher_logits, T) * len(student_logits)
    return soft, _hard(student_logits, labels), _cosine(student_hidden, teacher_hidden, attention_mask)


@distillation_loss.mistake(
    "probabilities given to kl_div where log-probabilities belong", think="what does F.kl_div expect first?"
)
def no_log(student_logits, teacher_logits, labels, student_hidden, teacher_hidden, attention_mask, T):
    p, q = (teacher_logits.detach() / T).softmax(-1), (student_logits / T).softmax(-1)
    soft = F.kl_div(q, p, reduction="batchmean") * T * T
    return soft, _hard(student_logits, labels), _cosine(student_hidden, teacher_hidden, attention_mask)


@distillation_loss.mistake(
    "cross-entropy with soft answers: the teacher's own doubt is in it", think="what is the loss of a perfect pupil?"
)
def soft_cross_entropy(student_logits, teacher_logits, labels, student_hidden, teacher_hidden, attention_mask, T):
    p = (teacher_logits.detach() / T).softmax(-1)
    soft = -(p * (student_logits / T).log_softmax(-1)).sum(-1).mean() * T * T
    return soft, _hard(student_logits, labels), _cosine(student_hidden, teacher_hidden, attention_mask)


@distillation_loss.mistake("squared difference of the logits", think="which distance between distributions is asked?")
def squares(student_logits, teacher_logits, labels, student_hidden, teacher_hidden, attention_mask, T):
    soft = F.mse_loss(student_logits, teacher_logits.detach())
    return soft, _hard(student_logits, labels), _cosine(student_hidden, teacher_hidden, attention_mask)


@distillation_loss.mistake(
    "the teacher not detached: it learns from its pupil", think="through which tensors does backward() run?"
)
def teacher_learns(student_logits, teacher_logits, labels, student_hidden, teacher_hidden, attention_mask, T):
    p, q = (teacher_logits / T).log_softmax(-1), (student_logits / T).log_softmax(-1)
    soft = F.kl_div(q, p, reduction="batchmean", log_target=True) * T * T
    real = attention_mask.bool()
    apart = (1 - F.cosine_similarity(student_hidden[real], teacher_hidden[real], dim=-1)).mean()
    return soft, _hard(student_logits, labels), apart


@distillation_loss.mistake("the temperature in the hard loss too", think="how soft is a label?")
def hard_at_temperature(student_logits, teacher_logits, labels, student_hidden, teacher_hidden, attention_mask, T):
    soft = _soft(student_logits, teacher_logits, T)
    return soft, _hard(student_logits / T, labels), _cosine(student_hidden, teacher_hidden, attention_mask)


@distillation_loss.mistake(
    "the hard loss divided by all rows, those without a label too", think="how many answers were asked for?"
)
def divided_by_all(student_logits, teacher_logits, labels, student_hidden, teacher_hidden, attention_mask, T):
    soft = _soft(student_logits, teacher_logits, T)
    hard = F.cross_entropy(student_logits, labels, ignore_index=-100, reduction="sum") / len(labels)
    return soft, hard, _cosine(student_hidden, teacher_hidden, attention_mask)


@distillation_loss.mistake("padding compared too", think="what does a hidden vector of padding mean?")
def with_padding(student_logits, teacher_logits, labels, student_hidden, teacher_hidden, attention_mask, T):
    apart = (1 - F.cosine_similarity(student_hidden, teacher_hidden.detach(), dim=-1)).mean()
    return _soft(student_logits, teacher_logits, T), _hard(student_logits, labels), apart


@distillation_loss.mistake("padding set to 0, but counted in the mean", think="by how many tokens is the sum divided?")
def padding_in_the_mean(student_logits, teacher_logits, labels, student_hidden, teacher_hidden, attention_mask, T):
    apart = (1 - F.cosine_similarity(student_hidden, teacher_hidden.detach(), dim=-1)) * attention_mask
    return _soft(student_logits, teacher_logits, T), _hard(student_logits, labels), apart.mean()


@distillation_loss.mistake(
    "the cosine itself: the best pupil has the largest loss", think="which value is best: 1 or 0?"
)
def not_one_minus(student_logits, teacher_logits, labels, student_hidden, teacher_hidden, attention_mask, T):
    near = 1 - _cosine(student_hidden, teacher_hidden, attention_mask)
    return _soft(student_logits, teacher_logits, T), _hard(student_logits, labels), near


@distillation_loss.mistake("a cosine over the texts' tokens, not over features", think="which axis is a vector?")
def over_tokens(student_logits, teacher_logits, labels, student_hidden, teacher_hidden, attention_mask, T):
    mask = attention_mask[..., None].to(student_hidden.dtype)
    apart = (1 - F.cosine_similarity(student_hidden * mask, teacher_hidden.detach() * mask, dim=1)).mean()
    return _soft(student_logits, teacher_logits, T), _hard(student_logits, labels), apart


@distillation_loss.mistake("the distance of the vectors, not their angle", think="does length matter here?")
def distances(student_logits, teacher_logits, labels, student_hidden, teacher_hidden, attention_mask, T):
    real = attention_mask.bool()
    apart = F.mse_loss(student_hidden[real], teacher_hidden.detach()[real])
    return _soft(student_logits, teacher_logits, T), _hard(student_logits, labels), apart


@distillation_loss.mistake(
    "the hidden vectors detached: the cosine teaches nothing", think="which of the two models should change?"
)
def student_detached(student_logits, teacher_logits, labels, student_hidden, teacher_hidden, attention_mask, T):
    apart = _cosine(student_hidden.detach(), teacher_hidden, attention_mask)
    return _soft(student_logits, teacher_logits, T), _hard(student_logits, labels), apart


# ---------------------------------------------------------------- 11.7 half of the teacher


def _depth(state):
    return 1 + max(int(name.split(".")[1]) for name in state if name.startswith("layers."))


def _taken(state, chosen, renumber=True, rest=True, clone=True):
    student = {}
    for name, tensor in state.items():
        words = name.split(".")
        if words[0] == "layers":
            number = int(words[1])
            if number not in chosen:
                continue
            words[1] = str(chosen.index(number)) if renumber else words[1]
        elif not rest:
            continue
        student[".".join(words)] = tensor.clone() if clone else tensor
    return student


@student_from_teacher.mistake("the first half of the layers", think="what would the upper half have done?")
def first_half(state):
    return _taken(state, list(range(_depth(state) // 2)))


@student_from_teacher.mistake("the last half of the layers", think="what do upper layers expect to read?")
def last_half(state):
    depth = _depth(state)
    return _taken(state, list(range(depth // 2, depth)))


@student_from_teacher.mistake("layers 1, 3, 5 …", think="is layer 0 among every second one, counted from the first?")
def odd_layers(state):
    return _taken(state, list(range(1, _depth(state), 2)))


@student_from_teacher.mistake(
    "the layers keep their old numbers", think="which layers does a model of half depth have?"
)
def old_numbers(state):
    return _taken(state, list(range(0, _depth(state), 2)), renumber=False)


@student_from_teacher.mistake("all layers copied", think="how deep should the student be?")
def all_layers(state):
    return _taken(state, list(range(_depth(state))))


@student_from_teacher.mistake(
    "the number exchanged wherever it stands in the name: replace", think="what becomes of layers.2.norm2?"
)
def replaced_everywhere(state):
    student = {}
    for name, tensor in state.items():
        number = int(name.split(".")[1]) if name.startswith("layers.") else 0
        if number % 2 == 0:
            new = name.replace(str(number), str(number // 2)) if name.startswith("layers.") else name
            student[new] = tensor.clone()
    return student


@student_from_teacher.mistake("only the layers copied", think="with which words would the student start?")
def layers_only(state):
    return _taken(state, list(range(0, _depth(state), 2)), rest=False)


@student_from_teacher.mistake(
    "the teacher's own tensors, not copies", think="what happens to the teacher when the student trains in place?"
)
def shared_tensors(state):
    return _taken(state, list(range(0, _depth(state), 2)), clone=False)


@student_from_teacher.mistake(
    "only the first digit of the number read: 10 taken for 1", think="how many digits has the number of a layer?"
)
def first_digit(state):
    student = {}
    for name, tensor in state.items():
        if not name.startswith("layers."):
            student[name] = tensor.clone()
        elif int(name[7]) % 2 == 0:
            student[f"layers.{int(name[7]) // 2}.{name.split('.', 2)[2]}"] = tensor.clone()
    return student


@student_from_teacher.mistake(
    "every name with “layers” in it taken for a layer's", think="where in the name does “layers” have to stand?"
)
def layers_anywhere(state):
    return {name: tensor for name, tensor in _taken(state, list(range(0, _depth(state), 2))).items()
            if name.startswith("layers.") or "layers" not in name}  # fmt: skip
