"""What students really get wrong in unit 04, as code: each must be rejected and called by its name."""

import torch
import torch.nn.functional as F

from coursework.checks.mlm import gather_positions, mask_tokens, mlm_head, mlm_loss, select_positions

# ---------------------------------------------------------------- 04.1 select positions


def _lots(input_ids):
    return torch.rand(input_ids.shape, device=input_ids.device)


def _among(input_ids, special_ids):
    return torch.isin(input_ids, torch.tensor(list(special_ids), device=input_ids.device))


@select_positions.mistake("special tokens and padding selected like words", think="can [CLS] be guessed from context?")
def specials_selected(input_ids, special_ids, probability=0.15):
    return _lots(input_ids) < probability


@select_positions.mistake("only padding left out", think="which other tokens stand in every text and are no words?")
def only_padding_spared(input_ids, special_ids, probability=0.15):
    return (_lots(input_ids) < probability) & ~_among(input_ids, special_ids[2:3])


@select_positions.mistake(
    "[CLS] and [SEP] left out, but padding selected", think="what would the model learn from guessing [PAD]?"
)
def padding_selected(input_ids, special_ids, probability=0.15):
    return (_lots(input_ids) < probability) & ~_among(input_ids, [special_ids[0], special_ids[1], *special_ids[3:]])


@select_positions.mistake(
    "[CLS], [SEP] and [PAD] left out, but not the special tokens among the words",
    think="do you use the whole list special_ids?",
)
def only_the_first_three(input_ids, special_ids, probability=0.15):
    return (_lots(input_ids) < probability) & ~_among(input_ids, special_ids[:3])


@select_positions.mistake("of the special tokens only [CLS] left out", think="do you use the whole list special_ids?")
def only_the_first(input_ids, special_ids, probability=0.15):
    return (_lots(input_ids) < probability) & (input_ids != special_ids[0])


@select_positions.mistake(
    "the special tokens taken for the lowest numbers of the vocabulary",
    think="may a piece with a number below that of [MASK] be a word?",
)
def above_the_largest(input_ids, special_ids, probability=0.15):
    return (_lots(input_ids) < probability) & (input_ids > max(special_ids))


@select_positions.mistake(
    "only the last of the special tokens left out: each round of a loop overwrites the one before",
    think="what is left of the first special token after the second round?",
)
def only_the_last(input_ids, special_ids, probability=0.15):
    return (_lots(input_ids) < probability) & (input_ids != special_ids[-1])


@select_positions.mistake(
    "| for &: every ordinary token selected, and some special ones", think="both, or one of the two?"
)
def either_of_the_two(input_ids, special_ids, probability=0.15):
    return (_lots(input_ids) < probability) | ~_among(input_ids, special_ids)


@select_positions.mistake("only special tokens selected: a ~ missing", think="which tokens may be selected?")
def specials_instead(input_ids, special_ids, probability=0.15):
    return (_lots(input_ids) < probability) & _among(input_ids, special_ids)


@select_positions.mistake(
    "the comparison the wrong way round: 85 % selected", think="how often is a random number below 0.15?"
)
def the_others(input_ids, special_ids, probability=0.15):
    return (_lots(input_ids) > probability) & ~_among(input_ids, special_ids)


@select_positions.mistake("15 % whatever probability says", think="what is the argument probability for?")
def always_15(input_ids, special_ids, probability=0.15):
    return (_lots(input_ids) < 0.15) & ~_among(input_ids, special_ids)


@select_positions.mistake("another default than 0.15", think="how much does BERT hide?")
def default_of_20(input_ids, special_ids, probability=0.2):
    return (_lots(input_ids) < probability) & ~_among(input_ids, special_ids)


@select_positions.mistake("torch.randn instead of torch.rand", think="how often is a normal number below 0.15?")
def normal_numbers(input_ids, special_ids, probability=0.15):
    return (torch.randn(input_ids.shape, device=input_ids.device) < probability) & ~_among(input_ids, special_ids)


@select_positions.mistake("two draws where there is one: 15 % of 15 %", think="what is 0.15 · 0.15?")
def drawn_twice(input_ids, special_ids, probability=0.15):
    once, twice = _lots(input_ids) < probability, _lots(input_ids) < probability
    return once & twice & ~_among(input_ids, special_ids)


@select_positions.mistake(
    "a number of places counted with the padding", think="does a short text have as many words to hide as a long one?"
)
def count_with_padding(input_ids, special_ids, probability=0.15):
    lots = _lots(input_ids).masked_fill(_among(input_ids, special_ids), 2.0)
    chosen = lots.argsort(-1).argsort(-1) < round(probability * input_ids.shape[-1])
    return chosen & (lots < 2)


@select_positions.mistake(
    "places drawn with repetition: some come twice", think="how many *different* places are there?"
)
def with_repetition(input_ids, special_ids, probability=0.15):
    chosen = torch.zeros_like(input_ids, dtype=torch.bool)
    special = _among(input_ids, special_ids)
    for i in range(len(input_ids)):
        places = (~special[i]).nonzero().squeeze(1)
        count = round(probability * len(places))
        chosen[i, places[torch.randint(len(places), (count,), device=places.device)]] = True
    return chosen


@select_positions.mistake(
    "one place a text, whatever its length", think="how many places are 15 % of a text of 300 words?"
)
def one_place_a_text(input_ids, special_ids, probability=0.15):
    lots = _lots(input_ids).masked_fill(_among(input_ids, special_ids), 2.0)
    return lots == lots.amin(-1, keepdim=True)


@select_positions.mistake("the first 15 % of each text, not drawn at all", think="what would be learned of the end?")
def the_beginning(input_ids, special_ids, probability=0.15):
    ordinary = ~_among(input_ids, special_ids)
    return ordinary & (ordinary.cumsum(-1) <= (ordinary.sum(-1, keepdim=True) * probability).round())


@select_positions.mistake(
    "the same seed set inside: one mask for all epochs, static without being told",
    think="what does the second pass over a text teach, if the same words are hidden again?",
)
def seed_inside(input_ids, special_ids, probability=0.15):
    lots = torch.rand(input_ids.shape, generator=torch.Generator().manual_seed(42)).to(input_ids.device)
    return (lots < probability) & ~_among(input_ids, special_ids)


@select_positions.mistake(
    "one draw for the whole batch: the same places in every text", think="what shape must the random numbers have?"
)
def one_mask_for_the_batch(input_ids, special_ids, probability=0.15):
    lots = torch.rand(input_ids.shape[-1], device=input_ids.device)
    few = lots.argsort().argsort() < round(probability * len(lots))
    return few.expand(input_ids.shape) & ~_among(input_ids, special_ids)


@select_positions.mistake("one draw a text: hidden whole or not at all", think="what is left to guess from?")
def one_draw_a_text(input_ids, special_ids, probability=0.15):
    texts = input_ids.shape[0]
    lot = torch.randperm(texts, device=input_ids.device)[:, None] < round(probability * texts)
    return lot.expand(input_ids.shape) & ~_among(input_ids, special_ids)


@select_positions.mistake("numbers, not True and False", think="which type do comparisons give?")
def as_integers(input_ids, special_ids, probability=0.15):
    return ((_lots(input_ids) < probability) & ~_among(input_ids, special_ids)).long()


@select_positions.mistake(
    "one place always selected, so that no text goes without a question",
    think="must every text be asked something, every time?",
)
def one_place_always(input_ids, special_ids, probability=0.15):
    chosen = _lots(input_ids) < probability
    chosen[:, 1] = True
    return chosen & ~_among(input_ids, special_ids)


@select_positions.mistake("the places as a list of numbers, not a table", think="which shape has the result?")
def as_places(input_ids, special_ids, probability=0.15):
    return ((_lots(input_ids) < probability) & ~_among(input_ids, special_ids)).nonzero()


# ---------------------------------------------------------------- 04.2 mask tokens


def _corrupt(input_ids, selected, mask_id, vocab_size, hide=0.8, swap=0.1):
    draw = _lots(input_ids)
    inputs = input_ids.clone()
    inputs[selected & (draw < hide)] = mask_id
    swapped = selected & (draw >= hide) & (draw < hide + swap)
    inputs[swapped] = torch.randint_like(input_ids, vocab_size)[swapped]
    return inputs


def _asked(input_ids, selected, nothing=-100):
    return torch.where(selected, input_ids, nothing)


@mask_tokens.mistake(
    "labels copied after masking", think="at a place that reads [MASK], which answer do your labels ask for?"
)
def labels_after_masking(input_ids, selected, mask_id, vocab_size):
    inputs = _corrupt(input_ids, selected, mask_id, vocab_size)
    return inputs, _asked(inputs, selected)


@mask_tokens.mistake(
    "labels = inputs without clone(): masking changes both", think="how many tensors are there after `labels = inputs`?"
)
def labels_share_memory(input_ids, selected, mask_id, vocab_size):
    inputs = _corrupt(input_ids, selected, mask_id, vocab_size)
    return inputs, inputs


@mask_tokens.mistake(
    "every piece a label, also where nothing is asked", think="how does the loss know which places to count?"
)
def labels_everywhere(input_ids, selected, mask_id, vocab_size):
    return _corrupt(input_ids, selected, mask_id, vocab_size), input_ids.clone()


@mask_tokens.mistake(
    "0 where nothing is asked, which is also a piece ([PAD])", think="can 0 be told from the piece with the number 0?"
)
def zero_for_nothing(input_ids, selected, mask_id, vocab_size):
    return _corrupt(input_ids, selected, mask_id, vocab_size), _asked(input_ids, selected, 0)


@mask_tokens.mistake(
    "another negative number than −100 where nothing is asked",
    think="which number does cross-entropy leave out by default?",
)
def minus_one_for_nothing(input_ids, selected, mask_id, vocab_size):
    return _corrupt(input_ids, selected, mask_id, vocab_size), _asked(input_ids, selected, -1)


@mask_tokens.mistake(
    "a positive number where nothing is asked: −100 has a minus", think="which number does cross-entropy leave out?"
)
def positive_for_nothing(input_ids, selected, mask_id, vocab_size):
    return _corrupt(input_ids, selected, mask_id, vocab_size), _asked(input_ids, selected, 100)


@mask_tokens.mistake(
    "labels the wrong way round: −100 where something is asked", think="which places shall the loss count?"
)
def labels_inverted(input_ids, selected, mask_id, vocab_size):
    return _corrupt(input_ids, selected, mask_id, vocab_size), _asked(input_ids, ~selected)


@mask_tokens.mistake("labels never stored: all of them −100", think="what does the loss compare with?")
def labels_never_stored(input_ids, selected, mask_id, vocab_size):
    return _corrupt(input_ids, selected, mask_id, vocab_size), torch.full_like(input_ids, -100)


@mask_tokens.mistake(
    "labels only where [MASK] stands",
    think="if only [MASK] is ever asked for, why should the model think about the other words?",
)
def labels_where_masked(input_ids, selected, mask_id, vocab_size):
    inputs = _corrupt(input_ids, selected, mask_id, vocab_size)
    return inputs, _asked(input_ids, selected & (inputs == mask_id))


@mask_tokens.mistake(
    "labels only where the input changed", think="the 10 % that stay: are they selected, and are they asked for?"
)
def labels_where_changed(input_ids, selected, mask_id, vocab_size):
    inputs = _corrupt(input_ids, selected, mask_id, vocab_size)
    return inputs, _asked(input_ids, selected & (inputs != input_ids))


@mask_tokens.mistake("the caller's batch changed in place", think="what will the next epoch find in it?")
def caller_changed(input_ids, selected, mask_id, vocab_size):
    labels = _asked(input_ids, selected)
    input_ids.copy_(_corrupt(input_ids, selected, mask_id, vocab_size))
    return input_ids, labels


@mask_tokens.mistake("80/10/10 of all tokens, selected or not", think="which places may change at all?")
def all_tokens_masked(input_ids, selected, mask_id, vocab_size):
    everywhere = torch.ones_like(selected)
    return _corrupt(input_ids, everywhere, mask_id, vocab_size), _asked(input_ids, selected)


@mask_tokens.mistake("random pieces put everywhere, also where nothing is selected", think="which places may change?")
def random_everywhere(input_ids, selected, mask_id, vocab_size):
    draw = _lots(input_ids)
    inputs = torch.where(selected & (draw < 0.8), mask_id, input_ids)
    swapped = (draw >= 0.8) & (draw < 0.9)
    return torch.where(swapped, torch.randint_like(input_ids, vocab_size), inputs), _asked(input_ids, selected)


@mask_tokens.mistake(
    "the other places masked: selected read the wrong way round", think="where is selected True: where to hide?"
)
def others_masked(input_ids, selected, mask_id, vocab_size):
    return _corrupt(input_ids, ~selected, mask_id, vocab_size), _asked(input_ids, selected)


@mask_tokens.mistake("always [MASK]: 100/0/0", think="what does the model meet when it is used, and never in training?")
def always_mask(input_ids, selected, mask_id, vocab_size):
    return torch.where(selected, mask_id, input_ids), _asked(input_ids, selected)


@mask_tokens.mistake("80/20/0: no piece stays as it is", think="must a piece that is asked for always be wrong?")
def nothing_stays(input_ids, selected, mask_id, vocab_size):
    return _corrupt(input_ids, selected, mask_id, vocab_size, swap=0.2), _asked(input_ids, selected)


@mask_tokens.mistake("80/0/20: no random pieces", think="what keeps the model from trusting every word it reads?")
def no_random_pieces(input_ids, selected, mask_id, vocab_size):
    return _corrupt(input_ids, selected, mask_id, vocab_size, swap=0.0), _asked(input_ids, selected)


@mask_tokens.mistake(
    "a random piece for 10 % of the 20 % left: 80/2/18",
    think="of what is a second draw the share: of all, or of the rest?",
)
def tenth_of_the_rest(input_ids, selected, mask_id, vocab_size):
    hide = selected & (_lots(input_ids) < 0.8)
    swap = selected & ~hide & (_lots(input_ids) < 0.1)
    inputs = torch.where(hide, mask_id, input_ids)
    return torch.where(swap, torch.randint_like(input_ids, vocab_size), inputs), _asked(input_ids, selected)


@mask_tokens.mistake(
    "a random piece for half of all, over the [MASK]s too: 40/50/10", think="0.5 is a share of what the first draw left"
)
def half_of_all(input_ids, selected, mask_id, vocab_size):
    inputs = torch.where(selected & (_lots(input_ids) < 0.8), mask_id, input_ids)
    swap = selected & (_lots(input_ids) < 0.5)
    return torch.where(swap, torch.randint_like(input_ids, vocab_size), inputs), _asked(input_ids, selected)


@mask_tokens.mistake(
    "independent draws, the second over the first: 72/10/18",
    think="can two draws that know nothing of each other split a whole into 80, 10 and 10?",
)
def second_over_first(input_ids, selected, mask_id, vocab_size):
    inputs = torch.where(selected & (_lots(input_ids) < 0.8), mask_id, input_ids)
    swap = selected & (_lots(input_ids) < 0.1)
    return torch.where(swap, torch.randint_like(input_ids, vocab_size), inputs), _asked(input_ids, selected)


@mask_tokens.mistake("80 and 10 exchanged: 10/80/10", think="which of the three is the usual fate?")
def mask_and_random_exchanged(input_ids, selected, mask_id, vocab_size):
    return _corrupt(input_ids, selected, mask_id, vocab_size, 0.1, 0.8), _asked(input_ids, selected)


@mask_tokens.mistake("80 % stay, and 10 % become [MASK]: 10/10/80", think="which of the three is the usual fate?")
def mask_and_unchanged_exchanged(input_ids, selected, mask_id, vocab_size):
    return _corrupt(input_ids, selected, mask_id, vocab_size, 0.1, 0.1), _asked(input_ids, selected)


@mask_tokens.mistake(
    "independent draws: first 10 % random, then 10 % of all stay, the rest [MASK]: 81/9/10",
    think="90 % of 90 %: how much is that? One draw, cut at 0.8 and 0.9, does without",
)
def independent_draws(input_ids, selected, mask_id, vocab_size):
    swap, stay = _lots(input_ids) < 0.1, _lots(input_ids) < 0.1
    inputs = torch.where(selected & swap & ~stay, torch.randint_like(input_ids, vocab_size), input_ids)
    return torch.where(selected & ~swap & ~stay, mask_id, inputs), _asked(input_ids, selected)


@mask_tokens.mistake(
    "independent draws: 10 % stay, 10 % of all random, over those too: 81/10/9",
    think="90 % of 90 %: how much is that? One draw, cut at 0.8 and 0.9, does without",
)
def independent_draws_random_last(input_ids, selected, mask_id, vocab_size):
    swap, stay = _lots(input_ids) < 0.1, _lots(input_ids) < 0.1
    inputs = torch.where(selected & ~stay, mask_id, input_ids)
    inputs = torch.where(selected & swap, torch.randint_like(input_ids, vocab_size), inputs)
    return inputs, _asked(input_ids, selected)


@mask_tokens.mistake("one random piece for the whole batch", think="what shape has what randint gives you?")
def one_random_piece(input_ids, selected, mask_id, vocab_size):
    draw = _lots(input_ids)
    piece = (mask_id + 1 + int(torch.randint(vocab_size - mask_id - 1, ()))) % vocab_size
    inputs = torch.where(selected & (draw < 0.9), torch.where(draw < 0.8, mask_id, piece), input_ids)
    return inputs, _asked(input_ids, selected)


@mask_tokens.mistake("one random piece for each text", think="what shape has what randint gives you?")
def one_piece_a_text(input_ids, selected, mask_id, vocab_size):
    draw = _lots(input_ids)
    other = torch.randint(vocab_size, (len(input_ids), 1), device=input_ids.device)
    inputs = torch.where(selected & (draw < 0.9), torch.where(draw < 0.8, mask_id, other), input_ids)
    return inputs, _asked(input_ids, selected)


@mask_tokens.mistake("the same random pieces in all texts of the batch", think="what shape has what randint gives you?")
def one_piece_a_place(input_ids, selected, mask_id, vocab_size):
    draw = _lots(input_ids)
    other = torch.randint(vocab_size, (input_ids.shape[1],), device=input_ids.device)
    inputs = torch.where(selected & (draw < 0.9), torch.where(draw < 0.8, mask_id, other), input_ids)
    return inputs, _asked(input_ids, selected)


@mask_tokens.mistake("random pieces taken from the batch itself", think="may *any* piece of the vocabulary come?")
def random_from_the_batch(input_ids, selected, mask_id, vocab_size):
    draw = _lots(input_ids)
    other = input_ids.flatten()[torch.randint(input_ids.numel(), input_ids.shape, device=input_ids.device)]
    inputs = torch.where(selected & (draw < 0.9), torch.where(draw < 0.8, mask_id, other), input_ids)
    return inputs, _asked(input_ids, selected)


@mask_tokens.mistake(
    "randint to vocab_size − 1: its end is left out anyway", think="which is the largest number randint gives?"
)
def last_piece_never(input_ids, selected, mask_id, vocab_size):
    draw = _lots(input_ids)
    other = torch.randint_like(input_ids, vocab_size - 1)
    inputs = torch.where(selected & (draw < 0.9), torch.where(draw < 0.8, mask_id, other), input_ids)
    return inputs, _asked(input_ids, selected)


@mask_tokens.mistake("numbers from 0 to vocab_size: one too many", think="how many pieces are there, counted from 0?")
def beyond_the_vocabulary(input_ids, selected, mask_id, vocab_size):
    inputs = _corrupt(input_ids, selected, mask_id, vocab_size + 1)
    return inputs, _asked(input_ids, selected)


@mask_tokens.mistake("one fate for a whole text", think="what shape must the random numbers have?")
def one_fate_a_text(input_ids, selected, mask_id, vocab_size):
    texts = len(input_ids)
    draw = (torch.randperm(texts, device=input_ids.device)[:, None] + 0.5) / texts
    other = torch.randint_like(input_ids, vocab_size)
    changed = torch.where(draw < 0.8, mask_id, torch.where(draw < 0.9, other, input_ids))
    return torch.where(selected, changed, input_ids), _asked(input_ids, selected)


@mask_tokens.mistake("the same fate in all texts of the batch", think="what shape must the random numbers have?")
def one_fate_a_place(input_ids, selected, mask_id, vocab_size):
    length = input_ids.shape[1]
    draw = (torch.randperm(length, device=input_ids.device) + 0.5) / length
    other = torch.randint_like(input_ids, vocab_size)
    changed = torch.where(draw < 0.8, mask_id, torch.where(draw < 0.9, other, input_ids))
    return torch.where(selected, changed, input_ids), _asked(input_ids, selected)


@mask_tokens.mistake(
    "the same seed set inside: one mask for all epochs", think="what does a second pass over the same text teach?"
)
def seed_set_inside(input_ids, selected, mask_id, vocab_size):
    torch.manual_seed(0)
    return _corrupt(input_ids, selected, mask_id, vocab_size), _asked(input_ids, selected)


@mask_tokens.mistake("labels first, inputs second", think="in which order are they asked for?")
def order_exchanged(input_ids, selected, mask_id, vocab_size):
    return _asked(input_ids, selected), _corrupt(input_ids, selected, mask_id, vocab_size)


@mask_tokens.mistake("the labels not returned", think="how many things does the function return?")
def inputs_alone(input_ids, selected, mask_id, vocab_size):
    return _corrupt(input_ids, selected, mask_id, vocab_size)


# ---------------------------------------------------------------- 04.3 MLM head


def _head(hidden, weights, act=F.gelu, eps=1e-12):
    x = act(F.linear(hidden, weights["dense.weight"], weights["dense.bias"]))
    return F.layer_norm(x, x.shape[-1:], weights["norm.weight"], weights["norm.bias"], eps)


def _decode(x, weights):
    return F.linear(x, weights["word"], weights["decoder.bias"])


@mlm_head.mistake(
    "the decoder's bias lost", think="what says that “the” is a better guess than “zygote”, on no evidence?"
)
def no_decoder_bias(hidden, weights):
    return F.linear(_head(hidden, weights), weights["word"]) + 0 * weights["decoder.bias"]


@mlm_head.mistake("the decoder's bias added twice", think="does F.linear add it already?")
def decoder_bias_twice(hidden, weights):
    return _decode(_head(hidden, weights), weights) + weights["decoder.bias"]


@mlm_head.mistake(
    "no dense layer, GELU and LayerNorm: straight to the decoder", think="what are the first four weights for?"
)
def straight_to_the_decoder(hidden, weights):
    return _decode(hidden, weights) + 0 * sum(weights[name].sum() for name in weights)


@mlm_head.mistake("the dense layer left out", think="what are dense.weight and dense.bias for?")
def no_dense(hidden, weights):
    x = F.layer_norm(F.gelu(hidden), hidden.shape[-1:], weights["norm.weight"], weights["norm.bias"], 1e-12)
    return _decode(x, weights) + 0 * (weights["dense.weight"].sum() + weights["dense.bias"].sum())


@mlm_head.mistake("the dense layer's bias forgotten", think="what are dense.weight *and* dense.bias for?")
def no_dense_bias(hidden, weights):
    return _decode(_head(hidden, weights | {"dense.bias": 0 * weights["dense.bias"]}), weights)


@mlm_head.mistake("dense.weight not turned over: x · W instead of x · Wᵀ", think="out × in: which axis belongs to x?")
def dense_not_turned(hidden, weights):
    return _decode(_head(hidden, weights | {"dense.weight": weights["dense.weight"].T}), weights)


@mlm_head.mistake("no GELU", think="what are two linear maps in a row worth?")
def no_gelu(hidden, weights):
    return _decode(_head(hidden, weights, lambda x: x), weights)


@mlm_head.mistake("ReLU for GELU", think="what does GELU make of −0.5?")
def relu(hidden, weights):
    return _decode(_head(hidden, weights, F.relu), weights)


@mlm_head.mistake("tanh for GELU, as in the pooler", think="which of the two heads has the tanh?")
def tanh(hidden, weights):
    return _decode(_head(hidden, weights, torch.tanh), weights)


@mlm_head.mistake(
    "Google's tanh approximation of GELU: near, and no crime, but erf is asked for here",
    think="what is the default of F.gelu's argument approximate?",
)
def gelu_by_tanh(hidden, weights):
    return _decode(_head(hidden, weights, lambda x: F.gelu(x, approximate="tanh")), weights)


@mlm_head.mistake("the sigmoid approximation of GELU", think="erf is exact: why approximate?")
def gelu_by_sigmoid(hidden, weights):
    return _decode(_head(hidden, weights, lambda x: x * torch.sigmoid(1.702 * x)), weights)


@mlm_head.mistake("GELU with erf(x), without the √2", think="which deviation has the normal distribution in GELU?")
def erf_without_root(hidden, weights):
    return _decode(_head(hidden, weights, lambda x: x * (1 + torch.erf(x)) / 2), weights)


@mlm_head.mistake("the LayerNorm left out", think="what are norm.weight and norm.bias for?")
def no_norm(hidden, weights):
    x = F.gelu(F.linear(hidden, weights["dense.weight"], weights["dense.bias"]))
    return _decode(x, weights) + 0 * (weights["norm.weight"].sum() + weights["norm.bias"].sum())


@mlm_head.mistake("LayerNorm before GELU", think="in which order do they stand?")
def norm_before_gelu(hidden, weights):
    x = F.linear(hidden, weights["dense.weight"], weights["dense.bias"])
    x = F.layer_norm(x, x.shape[-1:], weights["norm.weight"], weights["norm.bias"], 1e-12)
    return _decode(F.gelu(x), weights)


@mlm_head.mistake("LayerNorm first of all", think="in which order do dense, GELU and LayerNorm stand?")
def norm_first(hidden, weights):
    x = F.layer_norm(hidden, hidden.shape[-1:], weights["norm.weight"], weights["norm.bias"], 1e-12)
    return _decode(F.gelu(F.linear(x, weights["dense.weight"], weights["dense.bias"])), weights)


@mlm_head.mistake("LayerNorm without its weight and bias", think="what are norm.weight and norm.bias for?")
def norm_without_parameters(hidden, weights):
    x = F.gelu(F.linear(hidden, weights["dense.weight"], weights["dense.bias"]))
    x = F.layer_norm(x, x.shape[-1:], eps=1e-12)
    return _decode(x, weights) + 0 * (weights["norm.weight"].sum() + weights["norm.bias"].sum())


@mlm_head.mistake("LayerNorm without its bias", think="what are norm.weight *and* norm.bias for?")
def norm_without_bias(hidden, weights):
    return _decode(_head(hidden, weights | {"norm.bias": 0 * weights["norm.bias"]}), weights)


@mlm_head.mistake("LayerNorm without its weight", think="what are norm.weight *and* norm.bias for?")
def norm_without_weight(hidden, weights):
    return _decode(_head(hidden, weights | {"norm.weight": 1 + 0 * weights["norm.weight"]}), weights)


@mlm_head.mistake(
    "divided by the size without taking the mean away first: RMSNorm", think="what is the mean of a normalised vector?"
)
def mean_not_taken_away(hidden, weights):
    x = F.gelu(F.linear(hidden, weights["dense.weight"], weights["dense.bias"]))
    x = x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-12)
    return _decode(weights["norm.weight"] * x + weights["norm.bias"], weights)


@mlm_head.mistake("norm.weight and norm.bias exchanged", think="which of the two multiplies?")
def norm_exchanged(hidden, weights):
    x = F.gelu(F.linear(hidden, weights["dense.weight"], weights["dense.bias"]))
    return _decode(F.layer_norm(x, x.shape[-1:], weights["norm.bias"], weights["norm.weight"], 1e-12), weights)


@mlm_head.mistake("eps 1e-5, torch's default, in the LayerNorm", think="which eps has BERT?")
def eps_of_torch(hidden, weights):
    return _decode(_head(hidden, weights, eps=1e-5), weights)


@mlm_head.mistake("the variance divided by D − 1", think="torch.var has a default that is not LayerNorm's: which?")
def unbiased_variance(hidden, weights):
    x = F.gelu(F.linear(hidden, weights["dense.weight"], weights["dense.bias"]))
    x = (x - x.mean(-1, keepdim=True)) / torch.sqrt(x.var(-1, keepdim=True) + 1e-12)
    return _decode(weights["norm.weight"] * x + weights["norm.bias"], weights)


@mlm_head.mistake("a residual connection around the transform", think="is there an x + … in the head?")
def with_residual(hidden, weights):
    x = F.gelu(F.linear(hidden, weights["dense.weight"], weights["dense.bias"])) + hidden
    x = F.layer_norm(x, x.shape[-1:], weights["norm.weight"], weights["norm.bias"], 1e-12)
    return _decode(x, weights)


@mlm_head.mistake("softmax at the end: probabilities instead of scores", think="what will cross-entropy do first?")
def softmax_at_the_end(hidden, weights):
    return _decode(_head(hidden, weights), weights).softmax(-1)


@mlm_head.mistake("log-softmax at the end instead of scores", think="are scores asked for, or log-probabilities?")
def log_softmax_at_the_end(hidden, weights):
    return _decode(_head(hidden, weights), weights).log_softmax(-1)


@mlm_head.mistake("scores divided by √D, as in attention", think="is there a √ in the head?")
def divided_by_root(hidden, weights):
    return _head(hidden, weights) @ weights["word"].T / hidden.shape[-1] ** 0.5 + weights["decoder.bias"]


@mlm_head.mistake("the word table cut off from the gradient: not tied", think="what learns, in a tied decoder?")
def table_detached(hidden, weights):
    return F.linear(_head(hidden, weights), weights["word"].detach(), weights["decoder.bias"])


@mlm_head.mistake(
    "the word table not turned over: x · E instead of x · Eᵀ", think="which shapes has F.linear's weight?"
)
def table_not_turned(hidden, weights):
    return _head(hidden, weights) @ weights["word"] + weights["decoder.bias"]


# ---------------------------------------------------------------- 04.4 MLM loss


def _surprise(logits, labels):
    """(…) loss of each token, 0 where nothing is asked."""
    return F.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="none").view(labels.shape)


@mlm_loss.mistake("F.cross_entropy alone: NaN when no token is labelled", think="what is 0 divided by 0?")
def nan_when_none(logits, labels):
    return F.cross_entropy(logits.flatten(0, 1), labels.flatten())


@mlm_loss.mistake(
    "the sum divided by all positions, not by the labelled",
    think="the same guesses in a text twice as long: should the loss be half?",
)
def over_all_positions(logits, labels):
    return _surprise(logits, labels).mean()


@mlm_loss.mistake("the sum, not the mean", think="should a larger batch have a larger loss?")
def the_sum(logits, labels):
    return _surprise(logits, labels).sum()


@mlm_loss.mistake(
    "a mean of each text's mean",
    think="does a token of a text with one blank count as much as one of a text with four?",
)
def mean_of_means(logits, labels):
    asked = (labels != -100).sum(1)
    return (_surprise(logits, labels).sum(1) / asked.clamp(min=1)).sum() / (asked > 0).sum().clamp(min=1)


@mlm_loss.mistake(
    "a mean of each text's mean, texts without a label among them", think="how many *places* were asked in the batch?"
)
def mean_of_all_means(logits, labels):
    asked = (labels != -100).sum(1)
    return (_surprise(logits, labels).sum(1) / asked.clamp(min=1)).mean()


@mlm_loss.mistake(
    "scores and labels shifted against each other, as for a model that guesses the next word",
    think="which word do the scores of a place speak of, in BERT?",
)
def shifted_for_gpt(logits, labels):
    return _surprise(logits[:, :-1], labels[:, 1:]).sum() / (labels[:, 1:] != -100).sum().clamp(min=1)


@mlm_loss.mistake(
    "−100 counted as a piece in the sum, though not in the count", think="which places may the sum take in?"
)
def nothing_in_the_sum(logits, labels):
    surprise = -logits.log_softmax(-1).gather(-1, labels.clamp(min=0)[..., None])
    return surprise.sum() / (labels != -100).sum().clamp(min=1)


@mlm_loss.mistake(
    "a small number added inside the logarithm", think="what becomes of a probability of 1e-300, and of its gradient?"
)
def small_number_inside(logits, labels):
    asked = labels != -100
    picked = (logits.softmax(-1) + 1e-9).log().gather(-1, labels.clamp(min=0)[..., None])[..., 0]
    return -picked[asked].sum() / asked.sum().clamp(min=1)


@mlm_loss.mistake(
    "a mean over everything, then times the share of labelled (a number times weights)",
    think="how often has been divided?",
)
def scalar_times_weights(logits, labels):
    asked = (labels != -100).to(logits.dtype)
    loss = F.cross_entropy(logits.flatten(0, 1), labels.clamp(min=0).flatten())
    return (loss * asked).sum() / asked.sum().clamp(min=1)


@mlm_loss.mistake("labels of 0 left out too", think="is piece 0 a piece like any other here?")
def zero_left_out(logits, labels):
    asked = labels > 0
    return _surprise(logits, labels).mul(asked).sum() / asked.sum().clamp(min=1)


@mlm_loss.mistake("−100 counted as piece 0", think="which token does cross-entropy see where you wrote 0 for −100?")
def nothing_as_zero(logits, labels):
    return F.cross_entropy(logits.flatten(0, 1), labels.clamp(min=0).flatten())


@mlm_loss.mistake("softmax before cross-entropy", think="what does cross-entropy do with its input first?")
def softmax_first(logits, labels):
    asked = (labels != -100).sum().clamp(min=1)
    return _surprise(logits.softmax(-1), labels).sum() / asked


@mlm_loss.mistake("scores fed to nll_loss without log-softmax", think="what does nll_loss expect?")
def nll_of_scores(logits, labels):
    total = F.nll_loss(logits.flatten(0, 1), labels.flatten(), reduction="sum")
    return total / (labels != -100).sum().clamp(min=1)


@mlm_loss.mistake("the probability of the right piece, without a logarithm", think="where is the log in cross-entropy?")
def probability_not_log(logits, labels):
    asked = labels != -100
    picked = logits.softmax(-1).gather(-1, labels.clamp(min=0)[..., None])[..., 0]
    return (picked * asked).sum() / asked.sum().clamp(min=1)


@mlm_loss.mistake(
    "log of softmax in two steps: −∞ when a probability rounds to 0",
    think="what is log(softmax(x)) of a score 200 below?",
)
def log_of_softmax(logits, labels):
    asked = labels != -100
    picked = logits.softmax(-1).log().gather(-1, labels.clamp(min=0)[..., None])[..., 0]
    return -picked[asked].sum() / asked.sum().clamp(min=1)


@mlm_loss.mistake("exp without taking off the largest score: overflow", think="what is exp(500) in float32?")
def plain_exponential(logits, labels):
    asked = labels != -100
    picked = logits.gather(-1, labels.clamp(min=0)[..., None])[..., 0]
    return (logits.exp().sum(-1).log() - picked)[asked].sum() / asked.sum().clamp(min=1)


@mlm_loss.mistake(
    "exp divided by the sum of exp, without taking off the largest score: ∞/∞", think="what is exp(500) in float32?"
)
def softmax_by_hand(logits, labels):
    asked = labels != -100
    chance = logits.exp() / logits.exp().sum(-1, keepdim=True)
    return -chance.log().gather(-1, labels.clamp(min=0)[..., None])[..., 0][asked].sum() / asked.sum().clamp(min=1)


@mlm_loss.mistake("logarithm to base 2", think="which logarithm is meant when a loss starts at ln V?")
def base_2(logits, labels):
    return _surprise(logits, labels).sum() / (labels != -100).sum().clamp(min=1) / 0.6931471805599453


@mlm_loss.mistake("the minus forgotten", think="the better the guess, the … the loss?")
def minus_forgotten(logits, labels):
    return -_surprise(logits, labels).sum() / (labels != -100).sum().clamp(min=1)


@mlm_loss.mistake("perplexity, exp of the loss", think="which of the two is trained on?")
def perplexity(logits, labels):
    return (_surprise(logits, labels).sum() / (labels != -100).sum().clamp(min=1)).exp()


@mlm_loss.mistake("one loss for each token instead of one number", think="which shape has the result?")
def one_loss_a_token(logits, labels):
    return _surprise(logits, labels)


@mlm_loss.mistake(
    "axes reshaped, not moved: (B, S, V) read as (B, V, S)", think="what does view do with the numbers' order?"
)
def reshaped_not_moved(logits, labels):
    batch, length, size = logits.shape
    return F.cross_entropy(logits.reshape(batch, size, length), labels)


@mlm_loss.mistake("one number in a list of its own: shape (1,), not ()", think="how many axes has a number?")
def one_axis_left(logits, labels):
    return (_surprise(logits, labels).sum() / (labels != -100).sum().clamp(min=1)).reshape(1)


@mlm_loss.mistake(
    "log-softmax over the places, not over the pieces",
    think="which numbers compete: those of one place, or of one piece?",
)
def softmax_over_places(logits, labels):
    logarithms = logits.log_softmax(1).gather(-1, labels.clamp(min=0)[..., None])[..., 0]
    asked = labels != -100
    return -(logarithms * asked).sum() / asked.sum().clamp(min=1)


@mlm_loss.mistake("the sum divided by the number of texts", think="is it texts that are asked for, or words?")
def divided_by_texts(logits, labels):
    return _surprise(logits, labels).sum() / len(labels)


@mlm_loss.mistake("a plain number without a gradient (.item(), .detach())", think="what will backward() find?")
def no_gradient(logits, labels):
    return (_surprise(logits, labels).sum() / (labels != -100).sum().clamp(min=1)).detach()


@mlm_loss.mistake(
    "a bare 0 when no token is labelled: backward() raises",
    think="what does backward() do with a number in which no score took part? Is there a 0 that hangs on logits?",
)
def bare_zero(logits, labels):
    asked = labels != -100
    return F.cross_entropy(logits[asked], labels[asked]) if asked.any() else torch.tensor(0.0, device=logits.device)


@mlm_loss.mistake("one added below to avoid 0/0: a little too small", think="does clamp(min=1) change a count of 7?")
def one_added(logits, labels):
    return _surprise(logits, labels).sum() / ((labels != -100).sum() + 1)


# ---------------------------------------------------------------- 04.5 gather positions


@gather_positions.mistake(
    "the batch offset missing: all vectors from the first text",
    think="in hidden.view(B·S, D), where does text 1 begin?",
)
def offset_missing(hidden, positions):
    return hidden.reshape(-1, hidden.size(-1))[positions]


@gather_positions.mistake(
    "an offset of M a text, not of S", think="how many rows has each text in hidden.view(B·S, D)?"
)
def offset_of_m(hidden, positions):
    offset = torch.arange(len(hidden), device=hidden.device)[:, None] * positions.size(1)
    return hidden.reshape(-1, hidden.size(-1))[positions + offset]


@gather_positions.mistake("the first text's places used for all", think="does each text have its own blanks?")
def first_places_for_all(hidden, positions):
    return hidden[:, positions[0]]


@gather_positions.mistake(
    "the places sorted first: vectors in another order than asked", think="will the labels be sorted too?"
)
def places_sorted(hidden, positions):
    places = positions.sort(-1).values
    return hidden.gather(1, places[..., None].expand(-1, -1, hidden.size(-1)))


@gather_positions.mistake("places counted from 1", think="which token stands at place 0?")
def places_from_one(hidden, positions):
    return hidden.gather(1, (positions - 1).clamp(min=0)[..., None].expand(-1, -1, hidden.size(-1)))


@gather_positions.mistake(
    "hidden[:, positions]: each text's places looked up in every text", think="which shape comes out?"
)
def every_text_for_each(hidden, positions):
    return hidden[:, positions]


@gather_positions.mistake(
    "torch.gather with positions of shape (B, M, 1): one feature alone",
    think="how many features shall each place give?",
)
def one_feature(hidden, positions):
    return hidden.gather(1, positions[..., None])


@gather_positions.mistake("the first M vectors, whatever was asked", think="what is positions for?")
def the_first_ones(hidden, positions):
    return hidden[:, : positions.size(1)]


@gather_positions.mistake("texts and places laid end to end: (B·M, D)", think="which shape is asked for?")
def flattened(hidden, positions):
    return hidden[torch.arange(len(hidden), device=hidden.device)[:, None], positions].flatten(0, 1)


@gather_positions.mistake(
    "vectors cut off from the gradient (.data, .detach())", think="how will the layers below learn?"
)
def no_gradient_back(hidden, positions):
    return hidden.detach().gather(1, positions[..., None].expand(-1, -1, hidden.size(-1))) + 0 * hidden[:, :1]
