"""What students really get wrong in unit 11, as code: each must be rejected and called by its name."""

import copy
import random
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


@roberta_positions.mistake("0 taken for padding, as in BERT", think="which number has padding here, and which has <s>?")
def zero_is_padding(input_ids, padding_id):
    real = input_ids != 0
    return real.cumsum(1) * real + padding_id


@roberta_positions.mistake("1 taken for padding, whatever padding_id is", think="what if padding has another number?")
def one_is_padding(input_ids, padding_id):
    real = input_ids != 1
    return real.cumsum(1) * real + padding_id


@roberta_positions.mistake(
    "ids below padding_id taken for padding: > instead of !=", think="which number has the first token, <s>?"
)
def larger_ids_only(input_ids, padding_id):
    real = input_ids > padding_id
    return real.cumsum(1) * real + padding_id


@roberta_positions.mistake(
    "the columns from the first real token on: right only without padding between",
    think="does padding between two words move the second word on?",
)
def columns_from_the_first(input_ids, padding_id):
    real = input_ids != padding_id
    columns = torch.arange(input_ids.shape[1], device=input_ids.device) - real.long().argmax(1, keepdim=True)
    return torch.where(real, columns + padding_id + 1, padding_id)


@roberta_positions.mistake("so many first columns counted as a row has real tokens", think="must padding come last?")
def lengths_only(input_ids, padding_id):
    length = (input_ids != padding_id).sum(1, keepdim=True)
    columns = torch.arange(input_ids.shape[1], device=input_ids.device)
    return torch.where(columns < length, columns + padding_id + 1, padding_id)


@roberta_positions.mistake("counted from the end of the row", think="in which direction is a text read?")
def from_the_end(input_ids, padding_id):
    real = (input_ids != padding_id).long()
    return real.flip(1).cumsum(1).flip(1) * real + padding_id


@roberta_positions.mistake("the question turned round: padding counted, not words", think="where is “is real” True?")
def padding_counted(input_ids, padding_id):
    padded = input_ids == padding_id
    return padded.cumsum(1) * padded + padding_id


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


@factorised_embedding.mistake("padding_idx=0: row 0 never learns", think="is row 0 a row like any other here?")
def row_zero_frozen(input_ids, weights):
    narrow = F.embedding(input_ids, weights["word"], padding_idx=0)
    return F.linear(narrow, weights["widen.weight"], weights["widen.bias"])


@factorised_embedding.mistake(
    "the numbers put into a layer of one's own (.data): the given matrix never learns",
    think="whose gradient does backward() fill: the layer's, or the tensor's in `weights`?",
)
def own_layer(input_ids, weights):
    narrow = weights["word"][input_ids]
    layer = nn.Linear(*weights["widen.weight"].T.shape)
    layer.weight.data, layer.bias.data = weights["widen.weight"], weights["widen.bias"]
    return layer(narrow)


@factorised_embedding.mistake("all of it under no_grad: nothing learns", think="which weights are to be trained?")
def under_no_grad(input_ids, weights):
    with torch.no_grad():
        return F.linear(weights["word"][input_ids], weights["widen.weight"], weights["widen.bias"])


@factorised_embedding.mistake(
    "normalised before it widens, as the real ALBERT does", think="what does the task say to leave out?"
)
def normalised(input_ids, weights):
    narrow = weights["word"][input_ids]
    return F.linear(F.layer_norm(narrow, narrow.shape[-1:]), weights["widen.weight"], weights["widen.bias"])


@factorised_embedding.mistake("the bias added twice", think="what does F.linear do with its third argument?")
def bias_twice(input_ids, weights):
    return F.linear(weights["word"][input_ids], weights["widen.weight"], weights["widen.bias"]) + weights["widen.bias"]


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


@SharedEncoder.mistake("run once too few", think="how many numbers has range(times - 1)?")
class OnceTooFew(_Shared):
    def forward(self, hidden, attention_mask=None):
        for _ in range(self.times - 1):
            hidden = self.layer(hidden, attention_mask)
        return hidden


@SharedEncoder.mistake("always run twelve times", think="what is the argument times for?")
class AlwaysTwelve(_Shared):
    def forward(self, hidden, attention_mask=None):
        for _ in range(12):
            hidden = self.layer(hidden, attention_mask)
        return hidden


@SharedEncoder.mistake("the mask passed on in the first run only", think="is there padding in the second run too?")
class MaskOnce(_Shared):
    def forward(self, hidden, attention_mask=None):
        hidden = self.layer(hidden, attention_mask)
        for _ in range(self.times - 1):
            hidden = self.layer(hidden)
        return hidden


@SharedEncoder.mistake("a mask without a default: encoder(hidden) fails", think="what if no token is padding?")
class MaskRequired(_Shared):
    def forward(self, hidden, attention_mask):
        for _ in range(self.times):
            hidden = self.layer(hidden, attention_mask)
        return hidden


@SharedEncoder.mistake("the input added in each run", think="where is the residual: here or inside the layer?")
class ResidualAround(_Shared):
    def forward(self, hidden, attention_mask=None):
        for _ in range(self.times):
            hidden = hidden + self.layer(hidden, attention_mask)
        return hidden


@SharedEncoder.mistake("a new layer in each run, made in forward", think="how many times does ALBERT call make_layer?")
class MadeAnew(nn.Module):
    def __init__(self, make_layer, times):
        super().__init__()
        self.make_layer, self.times = make_layer, times

    def forward(self, hidden, attention_mask=None):
        for _ in range(self.times):
            hidden = self.make_layer()(hidden, attention_mask)
        return hidden


@SharedEncoder.mistake(
    "a second layer, made and never run", think="what does parameters() find of a layer nobody calls?"
)
class ASpareLayer(nn.Module):
    def __init__(self, make_layer, times):
        super().__init__()
        self.layer, self.spare, self.times = make_layer(), make_layer(), times

    def forward(self, hidden, attention_mask=None):
        for _ in range(self.times):
            hidden = self.layer(hidden, attention_mask)
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
    "2 · embedding numbers too few: no segments, one LayerNorm of the two forgotten, or only the γ of both",
    think="which three tables are summed, and where do LayerNorms stand outside of the layers?",
)
def no_segments(vocab, width, inner, layers, embedding, shared):
    return _count(vocab, width, inner, layers, embedding, shared, rest=-2 * embedding)


@count_masked_lm.mistake("no positions", think="which three tables are summed?")
def no_positions(vocab, width, inner, layers, embedding, shared):
    return _count(vocab, width, inner, layers, embedding, shared, rest=-512 * embedding)


@count_masked_lm.mistake("a pooler counted too", think="who reads the pooled [CLS] here: does the list have it?")
def with_pooler(vocab, width, inner, layers, embedding, shared):
    return _count(vocab, width, inner, layers, embedding, shared, rest=width * width + width)


@count_masked_lm.mistake(
    "the head's linear layer forgotten", think="what makes `embedding` numbers of `width` numbers?"
)
def no_transform(vocab, width, inner, layers, embedding, shared):
    return _count(vocab, width, inner, layers, embedding, shared, rest=-(width * embedding + embedding))


@count_masked_lm.mistake(
    "embedding numbers too few: one segment, or a head without a bias",
    think="how many segments are there, and what has a linear layer besides its matrix?",
)
def no_head_bias(vocab, width, inner, layers, embedding, shared):
    return _count(vocab, width, inner, layers, embedding, shared, rest=-embedding)


@count_masked_lm.mistake("a head as wide as the model", think="how many numbers does the word table have a piece?")
def wide_head(vocab, width, inner, layers, embedding, shared):
    rest = width * width + width + 2 * width - (width * embedding + embedding + 2 * embedding)
    return _count(vocab, width, inner, layers, embedding, shared, rest=rest)


@count_masked_lm.mistake("a widening matrix without a bias", think="what has a linear layer besides its matrix?")
def widened_without_bias(vocab, width, inner, layers, embedding, shared):
    return _count(vocab, width, inner, layers, embedding, shared, widen=embedding * width * (embedding != width))


@count_masked_lm.mistake(
    "one LayerNorm in a layer, or only the γ of both", think="after which two steps does one stand?"
)
def one_norm(vocab, width, inner, layers, embedding, shared):
    return _count(vocab, width, inner, layers, embedding, shared, layer_extra=-2 * width)


@count_masked_lm.mistake("a float", think="can a model have half a parameter? What does / return?")
def as_a_float(vocab, width, inner, layers, embedding, shared):
    return float(_count(vocab, width, inner, layers, embedding, shared))


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


@sentence_order_pair.mistake("cut one sentence too early", think="how many sentences are in sentences[:cut]?")
def cut_too_early(sentences, cut, swapped):
    a, b = _join(sentences[: cut - 1]), _join(sentences[cut - 1 :])
    return (b, a, 1) if swapped else (a, b, 0)


@sentence_order_pair.mistake(
    "a = b, then b = a: both are the second segment", think="what is left in a when b is filled from it?"
)
def lost_on_the_way(sentences, cut, swapped):
    a, b = _join(sentences[:cut]), _join(sentences[cut:])
    return (b, b, 1) if swapped else (a, b, 0)


@sentence_order_pair.mistake("True and False as labels, not 1 and 0", think="which type do labels have in a batch?")
def bool_labels(sentences, cut, swapped):
    a, b = _join(sentences[:cut]), _join(sentences[cut:])
    return (b, a, True) if swapped else (a, b, False)


@sentence_order_pair.mistake("[SEP] put in as well", think="who adds the special tokens (unit 02)?")
def with_separators(sentences, cut, swapped):
    a, b = [*_join(sentences[:cut]), "[SEP]"], [*_join(sentences[cut:]), "[SEP]"]
    return (b, a, 1) if swapped else (a, b, 0)


@sentence_order_pair.mistake("swapped by a coin, not by the argument", think="who tosses the coin: you, or the caller?")
def own_coin(sentences, cut, swapped):
    a, b = _join(sentences[:cut]), _join(sentences[cut:])
    return (b, a, 1) if random.random() < 0.5 else (a, b, 0)


@sentence_order_pair.mistake("swapped where it should be in order, and in order where swapped", think="what is True?")
def swap_turned_round(sentences, cut, swapped):
    a, b = _join(sentences[:cut]), _join(sentences[cut:])
    return (a, b, 1) if swapped else (b, a, 0)


@sentence_order_pair.mistake("always swapped", think="what is the argument swapped for?")
def always_swapped(sentences, cut, swapped):
    return _join(sentences[cut:]), _join(sentences[:cut]), 1


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


@distillation_loss.mistake("only the student's logits divided by T", think="are the two compared at one temperature?")
def student_only(student_logits, teacher_logits, labels, student_hidden, teacher_hidden, attention_mask, T):
    p = teacher_logits.detach().softmax(-1)
    soft = F.kl_div((student_logits / T).log_softmax(-1), p, reduction="batchmean") * T * T
    return soft, _hard(student_logits, labels), _cosine(student_hidden, teacher_hidden, attention_mask)


@distillation_loss.mistake(
    "the softmax over the rows, not over the pieces", think="what adds up to 1: the answers to…?"
)
def softmax_over_rows(student_logits, teacher_logits, labels, student_hidden, teacher_hidden, attention_mask, T):
    p, q = (teacher_logits.detach() / T).softmax(0), (student_logits / T).log_softmax(0)
    soft = F.kl_div(q, p, reduction="batchmean") * T * T
    return soft, _hard(student_logits, labels), _cosine(student_hidden, teacher_hidden, attention_mask)


@distillation_loss.mistake(
    "log-probabilities as kl_div's second argument, whose logarithm it takes itself: NaN",
    think="which of the two does F.kl_div want as a logarithm?",
)
def log_of_a_log(student_logits, teacher_logits, labels, student_hidden, teacher_hidden, attention_mask, T):
    p, q = (teacher_logits.detach() / T).log_softmax(-1), (student_logits / T).log_softmax(-1)
    soft = F.kl_div(q, p, reduction="batchmean") * T * T
    return soft, _hard(student_logits, labels), _cosine(student_hidden, teacher_hidden, attention_mask)


@distillation_loss.mistake(
    "the soft loss on the rows with a label only", think="can a teacher be asked where nobody knows the right answer?"
)
def soft_with_labels_only(student_logits, teacher_logits, labels, student_hidden, teacher_hidden, attention_mask, T):
    asked = labels != -100
    soft = _soft(student_logits[asked], teacher_logits[asked], T)
    return soft, _hard(student_logits, labels), _cosine(student_hidden, teacher_hidden, attention_mask)


@distillation_loss.mistake("the soft loss detached from the student", think="which of the two models should change?")
def soft_detached(student_logits, teacher_logits, labels, student_hidden, teacher_hidden, attention_mask, T):
    soft = _soft(student_logits.detach(), teacher_logits, T)
    return soft, _hard(student_logits, labels), _cosine(student_hidden, teacher_hidden, attention_mask)


@distillation_loss.mistake("a softmax before the cross-entropy", think="what does F.cross_entropy do with its scores?")
def softmax_twice(student_logits, teacher_logits, labels, student_hidden, teacher_hidden, attention_mask, T):
    hard = _hard(student_logits.softmax(-1), labels)
    return _soft(student_logits, teacher_logits, T), hard, _cosine(student_hidden, teacher_hidden, attention_mask)


@distillation_loss.mistake("nll_loss on raw scores", think="what does F.nll_loss want: scores, or log-probabilities?")
def raw_nll(student_logits, teacher_logits, labels, student_hidden, teacher_hidden, attention_mask, T):
    hard = F.nll_loss(student_logits, labels)
    return _soft(student_logits, teacher_logits, T), hard, _cosine(student_hidden, teacher_hidden, attention_mask)


@distillation_loss.mistake("the teacher's scores compared with the labels", think="who is to learn the right words?")
def teachers_hard_loss(student_logits, teacher_logits, labels, student_hidden, teacher_hidden, attention_mask, T):
    hard = _hard(teacher_logits.detach(), labels)
    return _soft(student_logits, teacher_logits, T), hard, _cosine(student_hidden, teacher_hidden, attention_mask)


@distillation_loss.mistake("the teacher's best guess taken for the label", think="what is the argument labels for?")
def teachers_guess(student_logits, teacher_logits, labels, student_hidden, teacher_hidden, attention_mask, T):
    hard = _hard(student_logits, teacher_logits.argmax(-1))
    return _soft(student_logits, teacher_logits, T), hard, _cosine(student_hidden, teacher_hidden, attention_mask)


@distillation_loss.mistake(
    "the mask not made bool: x[0 and 1] takes texts 0 and 1, not tokens", think="what does x[a tensor of 0 and 1] take?"
)
def mask_as_numbers(student_logits, teacher_logits, labels, student_hidden, teacher_hidden, attention_mask, T):
    near = F.cosine_similarity(student_hidden[attention_mask], teacher_hidden.detach()[attention_mask], dim=-1)
    return _soft(student_logits, teacher_logits, T), _hard(student_logits, labels), (1 - near).mean()


@distillation_loss.mistake("the mask inverted: padding compared", think="is 1 a real token, or padding?")
def mask_inverted(student_logits, teacher_logits, labels, student_hidden, teacher_hidden, attention_mask, T):
    apart = _cosine(student_hidden, teacher_hidden, 1 - attention_mask)
    return _soft(student_logits, teacher_logits, T), _hard(student_logits, labels), apart


@distillation_loss.mistake("a mean of the texts' means", think="should a token of a short text count more?")
def cosine_by_text(student_logits, teacher_logits, labels, student_hidden, teacher_hidden, attention_mask, T):
    texts = zip(student_hidden, teacher_hidden, attention_mask, strict=True)
    apart = torch.stack([_cosine(*text) for text in texts]).mean()
    return _soft(student_logits, teacher_logits, T), _hard(student_logits, labels), apart


@distillation_loss.mistake("all tokens laid end to end, one cosine", think="how many angles are there: one a token?")
def one_long_vector(student_logits, teacher_logits, labels, student_hidden, teacher_hidden, attention_mask, T):
    x, y = (hidden[attention_mask.bool()].flatten() for hidden in (student_hidden, teacher_hidden.detach()))
    apart = 1 - F.cosine_similarity(x, y, dim=0)
    return _soft(student_logits, teacher_logits, T), _hard(student_logits, labels), apart


@distillation_loss.mistake("only [CLS] compared", think="has the teacher one vector a text, or one a token?")
def cosine_of_cls(student_logits, teacher_logits, labels, student_hidden, teacher_hidden, attention_mask, T):
    apart = _cosine(student_hidden[:, :1], teacher_hidden[:, :1], attention_mask[:, :1])
    return _soft(student_logits, teacher_logits, T), _hard(student_logits, labels), apart


@distillation_loss.mistake("a product without dividing by the lengths", think="does length matter here?")
def dot_product(student_logits, teacher_logits, labels, student_hidden, teacher_hidden, attention_mask, T):
    near = (student_hidden * teacher_hidden.detach()).sum(-1)
    apart = (1 - near)[attention_mask.bool()].mean()
    return _soft(student_logits, teacher_logits, T), _hard(student_logits, labels), apart


@distillation_loss.mistake("the cosines added up, not averaged", think="should a longer text weigh more?")
def cosine_summed(student_logits, teacher_logits, labels, student_hidden, teacher_hidden, attention_mask, T):
    apart = _cosine(student_hidden, teacher_hidden, attention_mask) * attention_mask.sum()
    return _soft(student_logits, teacher_logits, T), _hard(student_logits, labels), apart


@distillation_loss.mistake("one sum instead of three losses", think="who weighs the three: you, or the caller?")
def one_sum(student_logits, teacher_logits, labels, student_hidden, teacher_hidden, attention_mask, T):
    apart = _cosine(student_hidden, teacher_hidden, attention_mask)
    return _soft(student_logits, teacher_logits, T) + _hard(student_logits, labels) + apart


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


@student_from_teacher.mistake(
    "the number exchanged wherever it stands between two dots: replace", think="what becomes of layers.2.parts.2.bias?"
)
def replaced_between_dots(state):
    student = {}
    for name, tensor in state.items():
        number = int(name.split(".")[1]) if name.startswith("layers.") else 0
        if number % 2 == 0:
            new = name.replace(f".{number}.", f".{number // 2}.") if name.startswith("layers.") else name
            student[new] = tensor.clone()
    return student


@student_from_teacher.mistake(
    "every number of the name halved", think="which of the numbers in layers.2.norm2 counts the layers?"
)
def all_numbers_halved(state):
    student = {}
    for name, tensor in state.items():
        if not name.startswith("layers."):
            student[name] = tensor.clone()
        elif int(name.split(".")[1]) % 2 == 0:
            student[re.sub(r"\d+", lambda found: str(int(found[0]) // 2), name)] = tensor.clone()
    return student


@student_from_teacher.mistake(
    "all layers written under half their number: 1, 3, 5 … win", think="what happens to layer 1's tensors?"
)
def odd_overwrite_even(state):
    names = sorted(state, key=lambda name: int(name.split(".")[1]) if name.startswith("layers.") else -1)
    student = {}
    for name in names:
        words = name.split(".")
        if words[0] == "layers":
            words[1] = str(int(words[1]) // 2)
        student[".".join(words)] = state[name].clone()
    return student


@student_from_teacher.mistake("the new number is a float: layers.1.0", think="what does 2 / 2 give, and what 2 // 2?")
def divided_with_a_slash(state):
    student = {}
    for name, tensor in state.items():
        words = name.split(".")
        if words[0] == "layers" and int(words[1]) % 2:
            continue
        if words[0] == "layers":
            words[1] = str(int(words[1]) / 2)
        student[".".join(words)] = tensor.clone()
    return student


@student_from_teacher.mistake(
    "the layers taken in the order of the alphabet: 0, 1, 10, 11, 2 …", think="does “10” come before “2”?"
)
def layers_by_alphabet(state):
    kept = sorted({name.split(".")[1] for name in state if name.startswith("layers.")})[::2]
    return _taken(state, [int(number) for number in kept])


@student_from_teacher.mistake("every third layer", think="how deep is a student of half the depth?")
def every_third(state):
    return _taken(state, list(range(0, _depth(state), 3)))


@student_from_teacher.mistake(
    'startswith("layers") without the dot', think="is layers_scale.weight a tensor of some layer?"
)
def without_the_dot(state):
    return {
        name: tensor
        for name, tensor in _taken(state, list(range(0, _depth(state), 2))).items()
        if name.startswith("layers.") or not name.startswith("layers")
    }


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
