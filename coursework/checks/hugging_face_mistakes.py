"""What goes wrong in unit 12, as code: each must be rejected and called by its name."""

import math
import re

import torch

from coursework.checks.hugging_face import attention_entropy, first_divergence, head_jobs, translate_names

# ---------------------------------------------------------------- 12.1 weights across names


def _translate(state, table, num_layers, *, prefix=True, old=("weight", "bias"), first=0, join=torch.cat,
               number=lambda i: i, missing=True, left=True, order=lambda theirs: theirs, error=ValueError):  # fmt: skip
    """Right, except for what a mistake below passes in."""
    values = {}
    for name, tensor in state.items():
        name = name.removeprefix("bert.") if prefix else name
        name = re.sub(r"\.gamma$", f".{old[0]}", name)
        values[re.sub(r"\.beta$", f".{old[1]}", name)] = tensor
    ours, used = {}, set()
    for name, theirs in table:
        for i in range(first, num_layers + first) if "#" in name else [0]:
            sources = [t.replace("#", str(number(i))) for t in order(theirs)]
            if not all(s in values for s in sources):
                if missing:
                    raise error(f"missing {sources}")
                continue
            used |= set(sources)
            ours[name.replace("#", str(i))] = join([values[s] for s in sources])
    if left and set(values) - used:
        raise error("left over")
    return ours


@translate_names.mistake(
    "strict=False: what is missing is passed over", think="what are the values of a parameter that no file has filled?"
)
def missing_passed_over(state, table, num_layers):
    return _translate(state, table, num_layers, missing=False)


@translate_names.mistake(
    "strict=False: what is left over is passed over", think="whose checkpoint is it, if it holds a layer you have not?"
)
def left_over_passed_over(state, table, num_layers):
    return _translate(state, table, num_layers, left=False)


@translate_names.mistake(
    "strict=False: neither missing nor left-over names are told", think="how would you notice that nothing was loaded?"
)
def nothing_is_strict(state, table, num_layers):
    return _translate(state, table, num_layers, missing=False, left=False)


@translate_names.mistake("a KeyError instead of words", think="what should somebody do who reads KeyError: 'x.weight'?")
def raises_key_error(state, table, num_layers):
    return _translate(state, table, num_layers, error=KeyError)


@translate_names.mistake('a prefix "bert." that is kept', think="what is the encoder of a classifier called?")
def prefix_kept(state, table, num_layers):
    return _translate(state, table, num_layers, prefix=False)


@translate_names.mistake('"bert." removed everywhere in a name', think="what does replace do in the middle of a name?")
def prefix_removed_everywhere(state, table, num_layers):
    return _translate({name.replace("bert.", ""): x for name, x in state.items()}, table, num_layers)


@translate_names.mistake(
    "gamma and beta translated in the middle of a name", think="at which end of the name do they stand?"
)
def old_names_everywhere(state, table, num_layers):
    renamed = {name.replace("gamma", "weight").replace("beta", "bias"): x for name, x in state.items()}
    return _translate(renamed, table, num_layers)


@translate_names.mistake("gamma and beta exchanged", think="which of the two multiplies?")
def gamma_and_beta_exchanged(state, table, num_layers):
    return _translate(state, table, num_layers, old=("bias", "weight"))


@translate_names.mistake("gamma and beta left as they are", think="what were a LayerNorm's parameters called in 2018?")
def names_of_2018_kept(state, table, num_layers):
    return _translate(state, table, num_layers, old=("gamma", "beta"))


@translate_names.mistake("value, key, query: the blocks in reverse", think="which of the three is first in the table?")
def blocks_in_reverse(state, table, num_layers):
    return _translate(state, table, num_layers, order=lambda theirs: theirs[::-1])


@translate_names.mistake("the blocks in the order of the alphabet", think="does key come before query in the table?")
def blocks_by_alphabet(state, table, num_layers):
    return _translate(state, table, num_layers, order=sorted)


@translate_names.mistake("only the first of several tensors taken", think="how many rows has a weight made of three?")
def first_block_only(state, table, num_layers):
    return _translate(state, table, num_layers, join=lambda blocks: blocks[0])


@translate_names.mistake("a new axis: stack instead of cat", think="how many axes has a weight made of three weights?")
def stacked_on_a_new_axis(state, table, num_layers):
    return _translate(state, table, num_layers, join=lambda b: torch.stack(b) if len(b) > 1 else b[0])


@translate_names.mistake("blocks side by side instead of one below the other", think="is a feature a row of W?")
def side_by_side(state, table, num_layers):
    return _translate(state, table, num_layers, join=lambda blocks: torch.cat(blocks, -1))


@translate_names.mistake("the blocks added up", think="are query, key and value one vector?")
def blocks_added(state, table, num_layers):
    return _translate(state, table, num_layers, join=sum)


@translate_names.mistake("transposed weights", think="which way round do F.linear and nn.Linear both want W?")
def transposed(state, table, num_layers):
    return _translate(state, table, num_layers, join=lambda b: torch.cat(b).T if b[0].ndim == 2 else torch.cat(b))


@translate_names.mistake("layer 0's tensors in every layer", think="where does the number go on the file's side?")
def first_layer_everywhere(state, table, num_layers):
    return _translate(state, table, num_layers, number=lambda i: 0, left=False)


@translate_names.mistake("layers counted from 1", think="what is the first layer called in the file?")
def layers_from_one(state, table, num_layers):
    return _translate(state, table, num_layers, first=1, number=lambda i: i - 1)


@translate_names.mistake("layers in the order of the alphabet: 0, 1, 10, 11, 2 …", think="how are texts sorted?")
def layers_by_alphabet(state, table, num_layers):
    return _translate(
        state, table, num_layers, number=lambda i: sorted(range(num_layers), key=str)[i] if num_layers else 0
    )


@translate_names.mistake("tensors matched by their order, not by name", think="in whose order does the file keep them?")
def by_order(state, table, num_layers):
    rows = [(ours.replace("#", str(i)), len(theirs))
            for ours, theirs in table for i in (range(num_layers) if "#" in ours else [0])]  # fmt: skip
    tensors = iter(state.values())
    return {name: torch.cat([next(tensors) for _ in range(count)]) for name, count in rows}


@translate_names.mistake("the table read the wrong way round", think="whose names are the keys of the result?")
def wrong_way_round(state, table, num_layers):
    return {
        name.removeprefix("bert.").replace(".gamma", ".weight").replace(".beta", ".bias"): x
        for name, x in state.items()
    }


@translate_names.mistake("the caller's dictionary emptied", think="who else still needs `state`?")
def state_emptied(state, table, num_layers):
    ours = _translate(state, table, num_layers)
    state.clear()
    return ours


@translate_names.mistake(
    "gamma and beta translated in a LayerNorm only", think="does the task speak of LayerNorm's names?"
)
def layer_norm_only(state, table, num_layers):
    renamed = {
        name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias"): tensor
        for name, tensor in state.items()
    }
    return _translate(renamed, table, num_layers, old=("gamma", "beta"))


@translate_names.mistake(
    "either the prefix or the old ending, not both: elif", think="what becomes of bert.embeddings.LayerNorm.gamma?"
)
def prefix_or_ending(state, table, num_layers):
    def plain(name):
        if name.startswith("bert."):
            return name.removeprefix("bert.")
        return re.sub(r"\.beta$", ".bias", re.sub(r"\.gamma$", ".weight", name))

    renamed = {plain(name): tensor for name, tensor in state.items()}
    return _translate(renamed, table, num_layers, prefix=False, old=("gamma", "beta"))


@translate_names.mistake(
    'the first name decides whether all begin with "bert."', think="must the names of a file be all of one kind?"
)
def first_name_decides(state, table, num_layers):
    prefix = "bert." * next(iter(state)).startswith("bert.")
    return _translate({name[len(prefix) :]: x for name, x in state.items()}, table, num_layers, prefix=False)


@translate_names.mistake("an error without words", think="what would you like to read when a file does not fit?")
def raises_without_words(state, table, num_layers):
    try:
        return _translate(state, table, num_layers)
    except ValueError:
        raise ValueError from None


@translate_names.mistake(
    "what is wrong printed or returned, not raised", think="what does the caller do with the result?"
)
def told_without_raising(state, table, num_layers):
    try:
        return _translate(state, table, num_layers)
    except ValueError as error:
        print(error)
        return {}


@translate_names.mistake("a list of blocks, never joined", think="which call makes one tensor of three?")
def blocks_in_a_list(state, table, num_layers):
    return _translate(state, table, num_layers, join=lambda blocks: blocks if len(blocks) > 1 else blocks[0])


@translate_names.mistake(
    "the rows with # taken once, with layer 0", think="how often does a row with # stand for a tensor?"
)
def layer_zero_only(state, table, num_layers):
    return _translate(state, table, min(num_layers, 1), left=False)


# ---------------------------------------------------------------- 12.2 where two models part


def _kind(a, b, limit, turned, *, nan=True, scaled=True, shifted=True):
    if nan and bool(a.isnan().any()):
        return "nan"
    if float((a - b).abs().max()) <= limit:
        return "transposed" if turned else ""
    if turned:
        return "shape"
    if scaled and float((a - (a * b).sum() / (b * b).sum() * b).abs().max()) <= limit:
        return "scaled"
    if shifted and float((a - b - (a - b)[0]).abs().max()) <= limit:
        return "shifted"
    return "other"


def _diverge(mine, theirs, attention_mask, tolerance, *, names=list, padding=True, size=None, turn=True, kind=_kind):
    """Right, except for what a mistake below passes in. Gives every (name, kind) that differs, in order."""
    found = []
    for name in names(theirs):
        a, b = mine[name], theirs[name]
        turned = a.shape != b.shape and a.mT.shape == b.shape
        if a.shape != b.shape and not (turned and turn):
            found.append((name, "shape"))
            continue
        a = a.mT if turned else a
        if padding:
            a, b = a[attention_mask == 1], b[attention_mask == 1]
        limit = tolerance * float(b.abs().max() if size is None else size(b))
        if said := kind(a.reshape(-1, a.shape[-1]), b.reshape(-1, b.shape[-1]), limit, turned):
            found.append((name, said))
    return found


def _first(found):
    return found[0] if found else (None, "equal")


@first_divergence.mistake("the last difference instead of the first", think="which of them caused the others?")
def last_difference(mine, theirs, attention_mask, tolerance=1e-4):
    found = _diverge(mine, theirs, attention_mask, tolerance)
    return found[-1] if found else (None, "equal")


@first_divergence.mistake("the largest difference instead of the first", think="do errors shrink on their way up?")
def largest_difference(mine, theirs, attention_mask, tolerance=1e-4):
    found = _diverge(mine, theirs, attention_mask, tolerance)
    real = attention_mask == 1
    gap = {
        n: float((mine[n] - theirs[n])[real].abs().max()) if mine[n].shape == theirs[n].shape else 0 for n, _ in found
    }
    return max(found, key=lambda pair: gap[pair[0]]) if found else (None, "equal")


@first_divergence.mistake("names in the order of the alphabet", think="is layer.10 computed before layer.2?")
def by_alphabet(mine, theirs, attention_mask, tolerance=1e-4):
    return _first(_diverge(mine, theirs, attention_mask, tolerance, names=sorted))


@first_divergence.mistake("the order of `mine` instead of `theirs`", think="which of the two is known to be in order?")
def order_of_mine(mine, theirs, attention_mask, tolerance=1e-4):
    return _first(_diverge(mine, theirs, attention_mask, tolerance, names=lambda _: list(mine)))


@first_divergence.mistake("only the last tensor looked at", think="how would one know where it went wrong?")
def only_the_last(mine, theirs, attention_mask, tolerance=1e-4):
    return _first(_diverge(mine, theirs, attention_mask, tolerance, names=lambda names: list(names)[-1:]))


@first_divergence.mistake("padding compared as well", think="do two models have to agree on what nobody reads?")
def padding_counts(mine, theirs, attention_mask, tolerance=1e-4):
    return _first(_diverge(mine, theirs, attention_mask, tolerance, padding=False))


@first_divergence.mistake(
    "an absolute tolerance", think="is 0.01 much? In numbers of a thousand, and in numbers of a thousandth?"
)
def absolute_tolerance(mine, theirs, attention_mask, tolerance=1e-4):
    return _first(_diverge(mine, theirs, attention_mask, tolerance, size=lambda b: 1.0))


@first_divergence.mistake("the limit taken from the mean |number| instead of the largest",
                          think="what does the table say: the largest, or a usual one?")  # fmt: skip
def size_by_mean(mine, theirs, attention_mask, tolerance=1e-4):
    return _first(_diverge(mine, theirs, attention_mask, tolerance, size=lambda b: b.abs().mean()))


@first_divergence.mistake("a fixed tolerance: the argument is never used", think="who decides how close is close?")
def fixed_tolerance(mine, theirs, attention_mask, tolerance=1e-4):
    return _first(_diverge(mine, theirs, attention_mask, 1e-4))


@first_divergence.mistake("no tolerance at all", think="do two right programs round alike?")
def no_tolerance(mine, theirs, attention_mask, tolerance=1e-4):
    return _first(_diverge(mine, theirs, attention_mask, 0.0))


@first_divergence.mistake(
    "the mean difference instead of the largest", think="what does one wrong number weigh in a mean of a million?"
)
def mean_difference(mine, theirs, attention_mask, tolerance=1e-4):
    def kind(a, b, limit, turned):
        if not bool(a.isnan().any()) and float((a - b).abs().mean()) <= limit:
            return "transposed" if turned else ""
        return _kind(a, b, limit, turned)

    return _first(_diverge(mine, theirs, attention_mask, tolerance, kind=kind))


@first_divergence.mistake("NaN that passes for equal", think="is NaN > tolerance True?")
def nan_passes(mine, theirs, attention_mask, tolerance=1e-4):
    def kind(a, b, limit, turned):
        if not float((a - b).abs().max()) > limit:  # False for NaN
            return "transposed" if turned else ""
        return _kind(a, b, limit, turned, nan=False)

    return _first(_diverge(mine, theirs, attention_mask, tolerance, kind=kind))


@first_divergence.mistake('NaN called "other"', think="which question has to come first?")
def nan_is_other(mine, theirs, attention_mask, tolerance=1e-4):
    found = _first(_diverge(mine, theirs, attention_mask, tolerance))
    return (found[0], "other") if found[1] == "nan" else found


@first_divergence.mistake("a transpose never tried", think="(B, D, S) for (B, S, D): could the numbers be right?")
def never_turned(mine, theirs, attention_mask, tolerance=1e-4):
    return _first(_diverge(mine, theirs, attention_mask, tolerance, turn=False))


@first_divergence.mistake("a transpose said from the shape alone", think="are the numbers the same once turned?")
def turned_by_shape(mine, theirs, attention_mask, tolerance=1e-4):
    name, kind = _first(_diverge(mine, theirs, attention_mask, tolerance))
    return (name, "transposed") if kind == "shape" and mine[name].mT.shape == theirs[name].shape else (name, kind)


@first_divergence.mistake("shapes never compared", think="what does torch do with (B, S, 5) − (B, S, 6)?")
def shapes_not_compared(mine, theirs, attention_mask, tolerance=1e-4):
    for name in theirs:
        a, b = mine[name][attention_mask == 1], theirs[name][attention_mask == 1]
        if kind := _kind(a, b, tolerance * float(b.abs().max()), False):
            return name, kind
    return None, "equal"


@first_divergence.mistake("a factor never tried", think="which one number, times theirs, comes closest to mine?")
def never_scaled(mine, theirs, attention_mask, tolerance=1e-4):
    kind = lambda *args: _kind(*args, scaled=False)  # noqa: E731
    return _first(_diverge(mine, theirs, attention_mask, tolerance, kind=kind))


@first_divergence.mistake("a missing vector never tried", think="what does a forgotten bias do to each token?")
def never_shifted(mine, theirs, attention_mask, tolerance=1e-4):
    kind = lambda *args: _kind(*args, shifted=False)  # noqa: E731
    return _first(_diverge(mine, theirs, attention_mask, tolerance, kind=kind))


@first_divergence.mistake("a single number as the shift, not a vector", think="is a bias the same for every feature?")
def shifted_by_a_number(mine, theirs, attention_mask, tolerance=1e-4):
    def kind(a, b, limit, turned):
        said = _kind(a, b, limit, turned, shifted=False)
        even = said == "other" and float(((a - b) - (a - b)[0, 0]).abs().max()) <= limit
        return "shifted" if even else said

    return _first(_diverge(mine, theirs, attention_mask, tolerance, kind=kind))


@first_divergence.mistake("a factor from the sizes: its sign is lost", think="could the factor be negative?")
def sign_lost(mine, theirs, attention_mask, tolerance=1e-4):
    def kind(a, b, limit, turned):
        said = _kind(a, b, limit, turned)
        wrong = said == "scaled" and float((a - a.norm() / b.norm() * b).abs().max()) > limit
        return "other" if wrong else said

    return _first(_diverge(mine, theirs, attention_mask, tolerance, kind=kind))


@first_divergence.mistake('"scaled" and "shifted" exchanged', think="which of the two does a missing bias make?")
def kinds_exchanged(mine, theirs, attention_mask, tolerance=1e-4):
    name, kind = _first(_diverge(mine, theirs, attention_mask, tolerance))
    return name, {"scaled": "shifted", "shifted": "scaled"}.get(kind, kind)


@first_divergence.mistake("None for equal models instead of a pair", think="what does `name, kind = …` do with None?")
def none_when_equal(mine, theirs, attention_mask, tolerance=1e-4):
    found = _diverge(mine, theirs, attention_mask, tolerance)
    return found[0] if found else None


@first_divergence.mistake("the limit taken from mine, not from theirs", think="which of the two is known to be right?")
def size_of_mine(mine, theirs, attention_mask, tolerance=1e-4):
    found = _diverge(mine, theirs, attention_mask, tolerance)
    for name, kind in found:
        if kind in ("shape", "nan", "transposed"):
            return name, kind
        a, b = mine[name][attention_mask == 1], theirs[name][attention_mask == 1]
        if float((a - b).abs().max()) > tolerance * float(a.abs().max()):
            return name, kind
    return None, "equal"


@first_divergence.mistake(
    "the limit taken from all numbers, padding's too", think="may what nobody reads decide what counts as a difference?"
)
def size_with_padding(mine, theirs, attention_mask, tolerance=1e-4):
    for name, b in theirs.items():
        room = tolerance * float(b.abs().max() / b[attention_mask == 1].abs().max())
        if found := _diverge(mine, {name: b}, attention_mask, room):
            return found[0]
    return None, "equal"


@first_divergence.mistake(
    "each number compared with its own size, as torch.allclose(rtol=…) does",
    think="what is the limit for a number near 0?",
)
def own_size(mine, theirs, attention_mask, tolerance=1e-4):
    def kind(a, b, limit, turned):
        if bool(((a - b).abs() <= tolerance * b.abs()).all()):
            return "transposed" if turned else ""
        return _kind(a, b, limit, turned) or "scaled"

    return _first(_diverge(mine, theirs, attention_mask, tolerance, kind=kind))


@first_divergence.mistake("the sign of the difference kept: too small passes", think="is −3 above the limit?")
def signed_difference(mine, theirs, attention_mask, tolerance=1e-4):
    def kind(a, b, limit, turned):
        if not bool(a.isnan().any()) and float((a - b).max()) <= limit:
            return "transposed" if turned else ""
        return _kind(a, b, limit, turned)

    return _first(_diverge(mine, theirs, attention_mask, tolerance, kind=kind))


@first_divergence.mistake("only the first token compared", think="which tokens are real: only [CLS]?")
def only_cls(mine, theirs, attention_mask, tolerance=1e-4):
    first = torch.zeros_like(attention_mask)
    first[:, 0] = 1
    return _first(_diverge(mine, theirs, first, tolerance))


@first_divergence.mistake("only the first text of the batch compared", think="how many texts are in a batch?")
def only_the_first_text(mine, theirs, attention_mask, tolerance=1e-4):
    first = torch.zeros_like(attention_mask)
    first[0] = attention_mask[0]
    return _first(_diverge(mine, theirs, first, tolerance))


@first_divergence.mistake(
    "all shapes looked at before any number", think="does the first difference have to be a shape?"
)
def shapes_of_all_first(mine, theirs, attention_mask, tolerance=1e-4):
    found = _diverge(mine, theirs, attention_mask, tolerance)
    shapes = [pair for pair in found if pair[1] in ("shape", "transposed")]
    return _first(shapes or found)


@first_divergence.mistake("NaN looked for in the padding too", think="does what stands at padding count?")
def nan_of_padding(mine, theirs, attention_mask, tolerance=1e-4):
    for name in theirs:
        if bool(mine[name].isnan().any()):
            return name, "nan"
        if found := _diverge(mine, {name: theirs[name]}, attention_mask, tolerance):
            return found[0]
    return None, "equal"


@first_divergence.mistake("multiplied by the mask: NaN · 0 is NaN", think="what is NaN times 0?")
def multiplied_by_the_mask(mine, theirs, attention_mask, tolerance=1e-4):
    keep, everyone = attention_mask[..., None], torch.ones_like(attention_mask)
    for name, b in theirs.items():
        a = mine[name] * keep if mine[name].shape == b.shape else mine[name]
        mask = everyone if mine[name].shape == b.shape else attention_mask
        found = _diverge({name: a}, {name: b * keep}, mask, tolerance)
        if found:
            return found[0]
    return None, "equal"


@first_divergence.mistake("a factor for each feature", think="one number for the whole tensor, or one a column?")
def factor_a_feature(mine, theirs, attention_mask, tolerance=1e-4):
    def kind(a, b, limit, turned):
        said = _kind(a, b, limit, turned)
        even = said == "other" and float((a - (a * b).sum(0) / (b * b).sum(0) * b).abs().max()) <= limit
        return "scaled" if even else said

    return _first(_diverge(mine, theirs, attention_mask, tolerance, kind=kind))


@first_divergence.mistake("a factor for each token", think="one number for the whole tensor, or one a row?")
def factor_a_token(mine, theirs, attention_mask, tolerance=1e-4):
    def kind(a, b, limit, turned):
        said = _kind(a, b, limit, turned)
        even = said == "other" and float((a - (a * b).sum(1, True) / (b * b).sum(1, True) * b).abs().max()) <= limit
        return "scaled" if even else said

    return _first(_diverge(mine, theirs, attention_mask, tolerance, kind=kind))


@first_divergence.mistake(
    "a shift for each token", think="is the same vector missing everywhere, or another one each time?"
)
def shift_a_token(mine, theirs, attention_mask, tolerance=1e-4):
    def kind(a, b, limit, turned):
        said = _kind(a, b, limit, turned)
        even = said == "other" and float(((a - b) - (a - b)[:, :1]).abs().max()) <= limit
        return "shifted" if even else said

    return _first(_diverge(mine, theirs, attention_mask, tolerance, kind=kind))


@first_divergence.mistake(
    "the tensors paired by their order, not by name", think="must mine be in the order of theirs?"
)
def paired_by_order(mine, theirs, attention_mask, tolerance=1e-4):
    return _first(_diverge(dict(zip(theirs, mine.values(), strict=True)), theirs, attention_mask, tolerance))


@first_divergence.mistake('a text "None" where no tensor differs', think='is "None" in quotes the same as None?')
def none_as_a_text(mine, theirs, attention_mask, tolerance=1e-4):
    name, kind = _first(_diverge(mine, theirs, attention_mask, tolerance))
    return str(name), kind


@first_divergence.mistake("the pair turned round: (kind, name)", think="which of the two comes first in the example?")
def pair_turned_round(mine, theirs, attention_mask, tolerance=1e-4):
    return _first(_diverge(mine, theirs, attention_mask, tolerance))[::-1]


# ---------------------------------------------------------------- 12.3 entropy of a head


def _entropies(weights):
    return torch.special.entr(weights).sum(-1)  # (B, H, S)


def _over_real(x, attention_mask):
    real = attention_mask[:, None, :].to(x.dtype)
    return (x * real).sum((0, 2)) / real.sum()


@attention_entropy.mistake("0 · log 0, which is NaN", think="what is log 0, and what is 0 times that?")
def zero_times_log_zero(weights, attention_mask):
    return _over_real(-(weights * weights.log()).sum(-1), attention_mask)


@attention_entropy.mistake("the rows of padding counted", think="who asks in row i, and is anybody there?")
def padding_asks(weights, attention_mask):
    return _entropies(weights).mean((0, 2))


@attention_entropy.mistake("padding left out of the sum, but not of the count", think="by how many is the sum divided?")
def divided_by_all(weights, attention_mask):
    return (_entropies(weights) * attention_mask[:, None, :]).mean((0, 2))


@attention_entropy.mistake("logarithms to base 2", think="ln 6 is 1.79; what is log2 6?")
def in_bits(weights, attention_mask):
    return _over_real(_entropies(weights) / math.log(2), attention_mask)


@attention_entropy.mistake("the sign forgotten", think="is the logarithm of a share positive?")
def negative(weights, attention_mask):
    return -_over_real(_entropies(weights), attention_mask)


@attention_entropy.mistake("entropies added up, not averaged", think="should a longer text make a head look wider?")
def summed(weights, attention_mask):
    return (_entropies(weights) * attention_mask[:, None, :]).sum((0, 2))


@attention_entropy.mistake("the sum over the queries instead of the keys", think="what sums to 1: a row or a column?")
def over_queries(weights, attention_mask):
    return _over_real(torch.special.entr(weights).sum(-2), attention_mask)


@attention_entropy.mistake(
    "the mean over keys instead of the sum", think="is the entropy of six equal shares ln 6, or a sixth of it?"
)
def mean_over_keys(weights, attention_mask):
    return _over_real(torch.special.entr(weights).mean(-1), attention_mask)


@attention_entropy.mistake(
    "a mean of the texts' means", think="should a token of a short text count more than one of a long text?"
)
def mean_of_means(weights, attention_mask):
    real = attention_mask[:, None, :].to(weights.dtype)
    return ((_entropies(weights) * real).sum(2) / real.sum(2)).mean(0)


@attention_entropy.mistake(
    "the entropy of the average row", think="two tokens that each look at one other: how wide do they look?"
)
def entropy_of_the_mean(weights, attention_mask):
    rows = weights.transpose(1, 2)[attention_mask == 1]  # (N, H, S)
    return torch.special.entr(rows.mean(0)).sum(-1)


@attention_entropy.mistake("the exponential taken: a number of tokens", think="was the exponential asked for?")
def perplexity(weights, attention_mask):
    return _over_real(_entropies(weights), attention_mask).exp()


@attention_entropy.mistake("divided by the logarithm of the length", think="is a share asked for?")
def share_of_the_most(weights, attention_mask):
    return _over_real(_entropies(weights), attention_mask) / math.log(weights.shape[-1])


@attention_entropy.mistake("a softmax taken a second time", think="do the weights of a row sum to 1 already?")
def softmax_again(weights, attention_mask):
    return _over_real(_entropies(weights.softmax(-1)), attention_mask)


@attention_entropy.mistake("−Σ log p without the weights", think="how often does each surprise come?")
def unweighted(weights, attention_mask):
    return _over_real(-weights.clamp_min(1e-12).log().sum(-1), attention_mask)


@attention_entropy.mistake("1 − Σ p², which is Gini's impurity", think="where is the logarithm?")
def gini(weights, attention_mask):
    return _over_real(1 - weights.square().sum(-1), attention_mask)


@attention_entropy.mistake("logarithms to base 10", think="ln 6 is 1.79; what is log10 6?")
def to_base_ten(weights, attention_mask):
    return _over_real(_entropies(weights) / math.log(10), attention_mask)


@attention_entropy.mistake("divided by the ln n of each text", think="is a share asked for?")
def share_of_each_text(weights, attention_mask):
    most = attention_mask.sum(1).to(weights.dtype).log()[:, None, None]
    return _over_real(_entropies(weights) / most, attention_mask)


@attention_entropy.mistake("log_softmax in the place of log", think="are the weights scores, or shares already?")
def log_softmax_of_weights(weights, attention_mask):
    return _over_real(-(weights * weights.log_softmax(-1)).sum(-1), attention_mask)


@attention_entropy.mistake("only the first text of the batch", think="how many texts are in a batch?")
def first_text_only(weights, attention_mask):
    return _over_real(_entropies(weights[:1]), attention_mask[:1])


@attention_entropy.mistake("divided by the number of texts, not of tokens", think="how many rows are averaged?")
def divided_by_texts(weights, attention_mask):
    return (_entropies(weights) * attention_mask[:, None, :]).sum((0, 2)) / len(weights)


@attention_entropy.mistake(
    "a number added to every weight, and not a tiny one", think="what does log(p + 0.001) do to p = 0.01?"
)
def large_epsilon(weights, attention_mask):
    return _over_real(-(weights * (weights + 1e-3).log()).sum(-1), attention_mask)


# ---------------------------------------------------------------- 12.4 jobs of heads


def _jobs(weights, input_ids, attention_mask, sep_id):
    real = attention_mask.to(weights.dtype)
    pairs = real[:, None, 1:]

    def mean(x, mask):
        return (x * mask).sum((0, 2)) / mask.sum()

    to_sep = (weights * (input_ids == sep_id)[:, None, None, :]).sum(-1)
    return {
        "next": mean(weights.diagonal(1, 2, 3), pairs),
        "previous": mean(weights.diagonal(-1, 2, 3), pairs),
        "sep": mean(to_sep, real[:, None]),
        "broadcast": mean(_entropies(weights) / real.sum(1).log()[:, None, None], real[:, None]),
    }


@head_jobs.mistake("next and previous exchanged", think="row i, column i + 1: is that token before or after?")
def exchanged(weights, input_ids, attention_mask, sep_id):
    jobs = _jobs(weights, input_ids, attention_mask, sep_id)
    return jobs | {"next": jobs["previous"], "previous": jobs["next"]}


@head_jobs.mistake("rows read as columns", think="weights[b, h, i, j]: who looks, i or j?")
def rows_as_columns(weights, input_ids, attention_mask, sep_id):
    jobs = _jobs(weights, input_ids, attention_mask, sep_id)
    return {
        **jobs,
        **{k: v for k, v in _jobs(weights.mT, input_ids, attention_mask, sep_id).items() if k != "broadcast"},
    }


@head_jobs.mistake("each token's look at itself", think="what does the main diagonal hold?")
def at_itself(weights, input_ids, attention_mask, sep_id):
    itself = _over_real(weights.diagonal(0, 2, 3), attention_mask)
    return _jobs(weights, input_ids, attention_mask, sep_id) | {"next": itself, "previous": itself}


@head_jobs.mistake("two steps ahead and back", think="by how much does the next position differ from mine?")
def two_steps(weights, input_ids, attention_mask, sep_id):
    pairs = attention_mask[:, 2:]
    return _jobs(weights, input_ids, attention_mask, sep_id) | {
        "next": _over_real(weights.diagonal(2, 2, 3), pairs), "previous": _over_real(weights.diagonal(-2, 2, 3), pairs)
    }  # fmt: skip


@head_jobs.mistake("the last token asked for its next one", think="how many of n tokens have a token after them?")
def divided_by_all_tokens(weights, input_ids, attention_mask, sep_id):
    jobs, count = _jobs(weights, input_ids, attention_mask, sep_id), attention_mask.sum()
    share = (count - len(attention_mask)) / count
    return jobs | {"next": jobs["next"] * share, "previous": jobs["previous"] * share}


@head_jobs.mistake("the mask without its last column, not without its first",
                   think="of a pair i, i + 1 at the end of a text: which of the two may be padding?")  # fmt: skip
def pairs_by_their_first(weights, input_ids, attention_mask, sep_id):
    pairs = attention_mask[:, :-1]
    return _jobs(weights, input_ids, attention_mask, sep_id) | {
        "next": _over_real(weights.diagonal(1, 2, 3), pairs), "previous": _over_real(weights.diagonal(-1, 2, 3), pairs)
    }  # fmt: skip


@head_jobs.mistake("only the first [SEP] of a text", think="how many [SEP] has a pair?")
def first_sep_only(weights, input_ids, attention_mask, sep_id):
    first = (input_ids == sep_id).long().argmax(1)
    given = torch.stack([w[:, :, i] for w, i in zip(weights, first.tolist(), strict=True)])
    return _jobs(weights, input_ids, attention_mask, sep_id) | {"sep": _over_real(given, attention_mask)}


@head_jobs.mistake("the rows of padding counted", think="who asks in row i, and is anybody there?")
def padding_counted(weights, input_ids, attention_mask, sep_id):
    everyone = torch.ones_like(attention_mask)
    jobs = _jobs(weights, input_ids, everyone, sep_id)
    even = (_entropies(weights) / attention_mask.sum(1).to(weights.dtype).log()[:, None, None]).mean((0, 2))
    return jobs | {"broadcast": even}


@head_jobs.mistake(
    "the largest weight on a [SEP] instead of their sum", think="a pair has two [SEP]: how much do both get together?"
)
def largest_sep(weights, input_ids, attention_mask, sep_id):
    most = (weights * (input_ids == sep_id)[:, None, None, :]).amax(-1)
    return _jobs(weights, input_ids, attention_mask, sep_id) | {"sep": _over_real(most, attention_mask)}


@head_jobs.mistake("only the last [SEP] of a text", think="how many [SEP] has a pair?")
def last_sep_only(weights, input_ids, attention_mask, sep_id):
    last = attention_mask.sum(1) - 1
    given = torch.stack([w[:, :, i] for w, i in zip(weights, last.tolist(), strict=True)])
    return _jobs(weights, input_ids, attention_mask, sep_id) | {"sep": _over_real(given, attention_mask)}


@head_jobs.mistake("what [SEP] looks at, not who looks at [SEP]", think="is [SEP] a row here, or a column?")
def from_sep(weights, input_ids, attention_mask, sep_id):
    rows = (input_ids == sep_id).long()
    got = weights.amax(-1)
    return _jobs(weights, input_ids, attention_mask, sep_id) | {"sep": _over_real(got, rows)}


@head_jobs.mistake("the attention of one [SEP], not of all of them together", think="the mean over two, or the sum?")
def mean_sep(weights, input_ids, attention_mask, sep_id):
    is_sep = (input_ids == sep_id)[:, None, None, :]
    to_sep = (weights * is_sep).sum(-1) / is_sep.sum(-1)
    return _jobs(weights, input_ids, attention_mask, sep_id) | {"sep": _over_real(to_sep, attention_mask)}


@head_jobs.mistake("102 taken for [SEP], whatever sep_id is", think="what is the argument sep_id for?")
def sep_is_102(weights, input_ids, attention_mask, sep_id):
    return _jobs(weights, input_ids, attention_mask, 102)


@head_jobs.mistake("the token itself instead of the next one", think="which diagonal holds what i gives to i + 1?")
def main_diagonal(weights, input_ids, attention_mask, sep_id):
    own = _over_real(weights.diagonal(0, 2, 3), attention_mask)
    return _jobs(weights, input_ids, attention_mask, sep_id) | {"next": own}


@head_jobs.mistake(
    "no mask on the diagonals: pairs of padding counted", think="how many pairs has a text of n real tokens?"
)
def all_pairs(weights, input_ids, attention_mask, sep_id):
    return _jobs(weights, input_ids, attention_mask, sep_id) | {
        "next": weights.diagonal(1, 2, 3).mean((0, 2)), "previous": weights.diagonal(-1, 2, 3).mean((0, 2))
    }  # fmt: skip


@head_jobs.mistake("without the rows of [SEP] itself", think="over which tokens is the mean of “sep”?")
def rows_without_sep(weights, input_ids, attention_mask, sep_id):
    to_sep = (weights * (input_ids == sep_id)[:, None, None, :]).sum(-1)
    asking = attention_mask * (input_ids != sep_id)
    return _jobs(weights, input_ids, attention_mask, sep_id) | {"sep": _over_real(to_sep, asking)}


@head_jobs.mistake("divided by how many [SEP] there are, not tokens", think="a mean over which rows?")
def divided_by_seps(weights, input_ids, attention_mask, sep_id):
    is_sep = (input_ids == sep_id).to(weights.dtype)
    given = torch.einsum("bhij,bj->h", weights * attention_mask[:, None, :, None], is_sep) / is_sep.sum()
    return _jobs(weights, input_ids, attention_mask, sep_id) | {"sep": given}


@head_jobs.mistake("an entropy divided by n, not by ln n", think="what is the entropy of n equal shares?")
def divided_by_n(weights, input_ids, attention_mask, sep_id):
    even = _entropies(weights) / attention_mask.sum(1)[:, None, None]
    return _jobs(weights, input_ids, attention_mask, sep_id) | {"broadcast": _over_real(even, attention_mask)}


@head_jobs.mistake("the mean entropy divided by the mean of ln n", think="what comes first: the share, or the mean?")
def ratio_of_means(weights, input_ids, attention_mask, sep_id):
    most = attention_mask.sum(1).to(weights.dtype).log().mean()
    even = _over_real(_entropies(weights), attention_mask) / most
    return _jobs(weights, input_ids, attention_mask, sep_id) | {"broadcast": even}


@head_jobs.mistake("the length of the first text used for all", think="is every text as long as the first?")
def first_length_for_all(weights, input_ids, attention_mask, sep_id):
    even = _over_real(_entropies(weights), attention_mask) / math.log(int(attention_mask[0].sum()))
    return _jobs(weights, input_ids, attention_mask, sep_id) | {"broadcast": even}


@head_jobs.mistake("an entropy that is not divided by the largest possible", think="what is the most, with n tokens?")
def raw_entropy(weights, input_ids, attention_mask, sep_id):
    raw = _over_real(_entropies(weights), attention_mask)
    return _jobs(weights, input_ids, attention_mask, sep_id) | {"broadcast": raw}


@head_jobs.mistake(
    "an entropy divided by log S, padding included",
    think="over how many tokens can a head spread?",
)
def by_padded_length(weights, input_ids, attention_mask, sep_id):
    even = _over_real(_entropies(weights), attention_mask) / math.log(weights.shape[-1])
    return _jobs(weights, input_ids, attention_mask, sep_id) | {"broadcast": even}


@head_jobs.mistake("1 − entropy: narrow heads get the high number", think="is it wide or narrow?")
def narrowness(weights, input_ids, attention_mask, sep_id):
    jobs = _jobs(weights, input_ids, attention_mask, sep_id)
    return jobs | {"broadcast": 1 - jobs["broadcast"]}


@head_jobs.mistake("0 · log 0, which is NaN", think="what is log 0, and what is 0 times that?")
def broadcast_nan(weights, input_ids, attention_mask, sep_id):
    even = -(weights * weights.log()).sum(-1) / attention_mask.sum(1).to(weights.dtype).log()[:, None, None]
    return _jobs(weights, input_ids, attention_mask, sep_id) | {"broadcast": _over_real(even, attention_mask)}


@head_jobs.mistake("a mean of the texts' means", think="should a token of a short text count more?")
def jobs_by_text(weights, input_ids, attention_mask, sep_id):
    each = [_jobs(*(x[b : b + 1] for x in (weights, input_ids, attention_mask)), sep_id) for b in range(len(weights))]
    return {job: torch.stack([jobs[job] for jobs in each]).mean(0) for job in each[0]}
