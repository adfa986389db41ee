"""What students really get wrong in unit 07, as code: each must be rejected and called by its name."""

import math

import torch
import torch.nn.functional as F

from coursework.checks.pretraining import (
    adamw_step,
    clip_gradients,
    decay_groups,
    learning_rate,
    training_step,
    unscale_gradients,
)

# ---------------------------------------------------------------- 07.1 decay groups


def _sorted_out(model, decays):
    """Trainable parameters, each once, by a question about (name, parameter)."""
    pairs = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
    return [p for name, p in pairs if decays(name, p)], [p for name, p in pairs if not decays(name, p)]


@decay_groups.mistake("decay on everything", think="what is a bias pulled towards, and should it be?")
def everything_decays(model):
    return _sorted_out(model, lambda name, p: True)


@decay_groups.mistake("decay on nothing", think="which parameters does weight decay belong to?")
def nothing_decays(model):
    return _sorted_out(model, lambda name, p: False)


@decay_groups.mistake(
    "biases left out, but LayerNorm's γ decays", think="what does a LayerNorm do whose γ is pulled to 0?"
)
def norms_decay(model):
    return _sorted_out(model, lambda name, p: not name.endswith(("bias", "beta")))


@decay_groups.mistake("LayerNorm left out, but biases decay", think="are biases matrices?")
def biases_decay(model):
    def decays(name, p):
        return not any(word in name for word in ("Norm", "norm", "gamma", "beta"))

    return _sorted_out(model, decays)


@decay_groups.mistake(
    'a list of names, ["bias", "LayerNorm.weight"], that does not fit this model',
    think="which of the model's LayerNorms are called otherwise?",
)
def names_that_do_not_fit(model):
    return _sorted_out(model, lambda name, p: not any(word in name for word in ("bias", "LayerNorm.weight")))


@decay_groups.mistake(
    "sorted by the word “bias” in the name alone",
    think="which of the model's γ and β have no such word in their names?",
)
def by_the_word_bias(model):
    return _sorted_out(model, lambda name, p: "bias" not in name)


@decay_groups.mistake("one list of parameters instead of two", think="where are those that do not decay?")
def one_list_alone(model):
    return _sorted_out(model, lambda name, p: p.dim() > 1)[0]


@decay_groups.mistake(
    "the optimizer's groups, as dictionaries", think="what is asked for: two lists, or what AdamW takes?"
)
def as_dictionaries(model):
    decay, none = _sorted_out(model, lambda name, p: p.dim() > 1)
    return [{"params": decay, "weight_decay": 0.01}, {"params": none, "weight_decay": 0.0}]


@decay_groups.mistake("the two groups swapped", think="which group comes first?")
def swapped(model):
    return _sorted_out(model, lambda name, p: p.dim() < 2)


@decay_groups.mistake(
    "embeddings without decay, which is a habit of GPT programs", think="is a table of embeddings a matrix?"
)
def embeddings_spared(model):
    return _sorted_out(model, lambda name, p: p.dim() > 1 and not name.startswith(("word", "position")))


@decay_groups.mistake("frozen parameters among the rest", think="what does requires_grad say?")
def frozen_too(model):
    parameters = list(model.parameters())
    return [p for p in parameters if p.dim() > 1], [p for p in parameters if p.dim() < 2]


@decay_groups.mistake(
    "frozen parameters taken for those without decay", think="may decay, or an optimizer, touch what is frozen?"
)
def frozen_without_decay(model):
    first = [p for p in model.parameters() if p.dim() > 1 and p.requires_grad]
    return first, [p for p in model.parameters() if not any(p is q for q in first)]


@decay_groups.mistake("tied weights taken twice", think="how many tensors are word.weight and decoder.weight together?")
def tied_twice(model):
    pairs = [(n, p) for n, p in model.named_parameters(remove_duplicate=False) if p.requires_grad]
    return [p for _, p in pairs if p.dim() > 1], [p for _, p in pairs if p.dim() < 2]


@decay_groups.mistake(
    "the tied table left out altogether", think="is the decoder's weight found anywhere else in your groups?"
)
def tied_lost(model):
    names = [n for n, _ in model.named_parameters(remove_duplicate=False)]
    once = dict(model.named_parameters())
    tied = {id(p) for n, p in model.named_parameters(remove_duplicate=False) if n in set(names) - set(once)}
    first, rest = _sorted_out(model, lambda name, p: p.dim() > 1)
    return [p for p in first if id(p) not in tied], rest


@decay_groups.mistake(
    "a walk through Linear, Embedding and LayerNorm modules: bare parameters are lost",
    think="do your two groups have as many parameters as the model?",
)
def only_known_modules(model):
    nn, first, rest, taken = torch.nn, [], [], set()
    for module in model.modules():
        if isinstance(module, (nn.Linear, nn.Embedding, nn.LayerNorm)):
            for name, p in module.named_parameters(recurse=False):
                if p.requires_grad and id(p) not in taken:
                    taken.add(id(p))
                    matrix = name == "weight" and not isinstance(module, nn.LayerNorm)
                    (first if matrix else rest).append(p)
    return first, rest


@decay_groups.mistake("only the linear layers decay", think="which matrices lie outside the linear layers?")
def only_linear_layers(model):
    inside = {id(m.weight) for m in model.modules() if isinstance(m, torch.nn.Linear)}
    return _sorted_out(model, lambda name, p: id(p) in inside)


@decay_groups.mistake("names instead of the parameters", think="can an optimizer change a name?")
def names_returned(model):
    pairs = [(n, p) for n, p in model.named_parameters() if p.requires_grad]
    return [n for n, p in pairs if p.dim() > 1], [n for n, p in pairs if p.dim() < 2]


@decay_groups.mistake("copies of the parameters", think="who changes when the optimizer changes a copy?")
def copies_returned(model):
    first, rest = _sorted_out(model, lambda name, p: p.dim() > 1)
    return [p.detach().clone() for p in first], [p.detach().clone() for p in rest]


# ---------------------------------------------------------------- 07.2 learning rate


def _rate(step, warmup, total, peak, up=None, down=None):
    """The right schedule, except for what is given."""
    if step >= total:
        return 0.0
    if step < warmup:
        return up(step, warmup, total, peak) if up else peak * (step + 1) / warmup
    return down(step, warmup, total, peak) if down else peak * (total - step) / max(1, total - warmup)


@learning_rate.mistake("a warm-up that begins at 0", think="what does a step with the rate 0 learn?")
def begins_at_zero(step, warmup, total, peak):
    return _rate(step, warmup, total, peak, up=lambda s, w, t, p: p * s / w)


@learning_rate.mistake(
    "a warm-up that never leaves 0: divided as whole numbers", think="what is step // warmup during the warm-up?"
)
def never_leaves_zero(step, warmup, total, peak):
    return _rate(step, warmup, total, peak, up=lambda s, w, t, p: p * (s // w))


@learning_rate.mistake(
    "the fall counted from step 0, as in Google's first program: a jump down where the warm-up ends",
    think="what are the rates of the last step of the warm-up and of the next one?",
)
def falls_from_step_zero(step, warmup, total, peak):
    return _rate(step, warmup, total, peak, down=lambda s, w, t, p: p * (t - s) / t)


@learning_rate.mistake("a fall that lasts as long as the whole run: it never reaches 0",
                       think="how many steps are left after the warm-up?")  # fmt: skip
def never_arrives(step, warmup, total, peak):
    return _rate(step, warmup, total, peak, down=lambda s, w, t, p: p * (1 - (s - w) / t))


@learning_rate.mistake("no fall: constant after the warm-up", think="where should the rate be at the end?")
def constant(step, warmup, total, peak):
    return _rate(step, warmup, total, peak, down=lambda s, w, t, p: p)


@learning_rate.mistake("no warm-up at all", think="what is the argument warmup for?")
def no_warm_up(step, warmup, total, peak):
    return peak * (total - step) / total if step < total else 0.0


@learning_rate.mistake("a full rate at once, and then the fall after the warm-up", think="what is the first rate?")
def starts_at_the_peak(step, warmup, total, peak):
    return _rate(step, warmup, total, peak, up=lambda s, w, t, p: p)


@learning_rate.mistake("the cosine instead of the straight line", think="which curve has the same slope everywhere?")
def cosine(step, warmup, total, peak):
    def down(s, w, t, p):
        return p * (1 + math.cos(math.pi * (s - w) / max(1, t - w))) / 2

    return _rate(step, warmup, total, peak, down=down)


@learning_rate.mistake("the schedule of the first Transformer, with 1/√step", think="is this a straight line to 0?")
def inverse_root(step, warmup, total, peak):
    return _rate(step, warmup, total, peak, down=lambda s, w, t, p: p * math.sqrt(max(1, w) / (s + 1)))


@learning_rate.mistake("a last step with the rate 0", think="how many steps are still to do at step total − 1?")
def last_step_zero(step, warmup, total, peak):
    return _rate(step, warmup, total, peak, down=lambda s, w, t, p: p * (t - 1 - s) / max(1, t - 1 - w))


@learning_rate.mistake("negative after the end", think="what is total − step when step is larger?")
def negative_later(step, warmup, total, peak):
    if step < warmup:
        return peak * (step + 1) / warmup
    return peak * (total - step) / max(1, total - warmup)


@learning_rate.mistake("a division by warmup = 0", think="what if there is no warm-up?")
def divides_by_no_warm_up(step, warmup, total, peak):
    return max(0.0, peak * min((step + 1) / warmup, (total - step) / max(1, total - warmup)))


@learning_rate.mistake("a division by total − warmup = 0", think="what if the warm-up is the whole run?")
def divides_by_no_rest(step, warmup, total, peak):
    rise = (step + 1) / warmup if step < warmup else 1.0
    return max(0.0, peak * min(rise, (total - step) / (total - warmup)))


@learning_rate.mistake("a factor between 0 and 1: the peak is left out", think="what is the argument peak for?")
def factor_only(step, warmup, total, peak):
    return _rate(step, warmup, total, 1.0)


@learning_rate.mistake("warm-up over warmup + 1 steps", think="which step is the first with the full rate?")
def one_step_late(step, warmup, total, peak):
    return _rate(step, warmup, total, peak, up=lambda s, w, t, p: p * (s + 1) / (w + 1))


@learning_rate.mistake(
    "warm-up and fall multiplied from the start", think="does the rate fall while it is still rising?"
)
def both_at_once(step, warmup, total, peak):
    return _rate(step, warmup, total, peak, up=lambda s, w, t, p: p * (s + 1) / w * (t - s) / t)


@learning_rate.mistake(
    "the warm-up one step too long: <= where < belongs", think="which rate has the step number warmup?"
)
def warm_up_to_the_end(step, warmup, total, peak):
    return peak * (step + 1) / warmup if step <= warmup and warmup else _rate(step, warmup, total, peak)


@learning_rate.mistake("a fall that begins one step too early", think="which rate has the step number warmup?")
def falls_one_step_early(step, warmup, total, peak):
    return _rate(step, warmup, total, peak, down=lambda s, w, t, p: p * (t - s - 1) / max(1, t - w))


@learning_rate.mistake(
    "Google's first program: the first step has the rate 0, and the fall is counted from step 0",
    think="what are the rates of the first step, and of the two around the end of the warm-up?",
)
def schedule_of_google(step, warmup, total, peak):
    if step < warmup:
        return peak * step / warmup
    return peak * max(0.0, 1 - step / total)


@learning_rate.mistake("steps counted from 1", think="which number has the first step?")
def counted_from_one(step, warmup, total, peak):
    return _rate(step - 1, warmup, total, peak)


# ---------------------------------------------------------------- 07.3 clip gradients


def _norm(gradients):
    return torch.sqrt(sum(g.double().square().sum() for g in gradients))


def _shortened(gradients, norm, max_norm):
    return [g * min(1.0, max_norm / float(norm)) for g in gradients]


@clip_gradients.mistake("each tensor clipped by its own norm", think="do all tensors keep their share of the step?")
def each_by_itself(gradients, max_norm):
    return [_shortened([g], g.norm(), max_norm)[0] for g in gradients], _norm(gradients)


@clip_gradients.mistake(
    "each tensor clipped by its own norm, and the last one's returned", think="how long are all of them together?"
)
def each_and_the_last(gradients, max_norm):
    return [_shortened([g], g.norm(), max_norm)[0] for g in gradients], gradients[-1].norm()


@clip_gradients.mistake("each number clipped, which turns the step", think="do all numbers shrink by the same factor?")
def each_number(gradients, max_norm):
    return [g.clamp(-max_norm, max_norm) for g in gradients], _norm(gradients)


@clip_gradients.mistake("the norms added up", think="what is the length of (3, 4): 7 or 5?")
def norms_added(gradients, max_norm):
    norm = sum(float(g.norm()) for g in gradients)
    return _shortened(gradients, max(norm, 1e-30), max_norm), norm


@clip_gradients.mistake("the squared norm: a root is missing", think="what is the length of (3, 4): 25 or 5?")
def no_root(gradients, max_norm):
    square = float(_norm(gradients)) ** 2
    return _shortened(gradients, max(square, 1e-30), max_norm), square


@clip_gradients.mistake(
    "every gradient brought to max_norm, the short ones too", think="what should happen to a gradient of norm 0.4?"
)
def always_scaled(gradients, max_norm):
    norm = _norm(gradients)
    return [(g * (max_norm / norm)).to(g.dtype) for g in gradients], norm


@clip_gradients.mistake("always divided by the norm", think="what is the length of the result?")
def to_length_one(gradients, max_norm):
    norm = _norm(gradients)
    return [(g / norm).to(g.dtype) if norm > max_norm else g.clone() for g in gradients], norm


@clip_gradients.mistake("multiplied the wrong way round: norm / max_norm", think="should a long one get longer?")
def upside_down(gradients, max_norm):
    norm = _norm(gradients)
    return [(g * (norm / max_norm)).to(g.dtype) if norm > max_norm else g.clone() for g in gradients], norm


@clip_gradients.mistake("the long ones left alone and the short ones scaled", think="which way does your < point?")
def comparison_reversed(gradients, max_norm):
    norm = float(_norm(gradients))
    return [g * (max_norm / norm) if 0 < norm < max_norm else g.clone() for g in gradients], norm


@clip_gradients.mistake("the norm of the largest number", think="which norm adds squares?")
def largest_number(gradients, max_norm):
    norm = max(float(g.abs().max()) for g in gradients)
    return _shortened(gradients, max(norm, 1e-30), max_norm), norm


@clip_gradients.mistake("the norm of the longest tensor only", think="do the others not count?")
def longest_tensor(gradients, max_norm):
    norm = max(float(g.norm()) for g in gradients)
    return _shortened(gradients, max(norm, 1e-30), max_norm), norm


@clip_gradients.mistake("absolute numbers added: the 1-norm", think="which norm adds squares?")
def one_norm(gradients, max_norm):
    norm = sum(float(g.abs().sum()) for g in gradients)
    return _shortened(gradients, max(norm, 1e-30), max_norm), norm


@clip_gradients.mistake("the root of the mean of squares", think="does the norm grow when there are more numbers?")
def root_of_the_mean(gradients, max_norm):
    norm = float(_norm(gradients)) / math.sqrt(sum(g.numel() for g in gradients))
    return _shortened(gradients, max(norm, 1e-30), max_norm), norm


@clip_gradients.mistake("the norm *after* clipping returned", think="what would a log show if it is always 1?")
def norm_after(gradients, max_norm):
    clipped = _shortened(gradients, max(float(_norm(gradients)), 1e-30), max_norm)
    return clipped, _norm(clipped)


@clip_gradients.mistake("the factor returned instead of the norm", think="which number would you want to see in a log?")
def factor_returned(gradients, max_norm):
    factor = min(1.0, max_norm / max(float(_norm(gradients)), 1e-30))
    return [g * factor for g in gradients], factor


@clip_gradients.mistake("0 divided by 0 when all gradients are zero", think="what is max_norm / norm times 0 then?")
def zero_by_zero(gradients, max_norm):
    norm = _norm(gradients)
    return [(g / norm * norm.clamp(max=max_norm)).to(g.dtype) for g in gradients], norm


@clip_gradients.mistake(
    "all gradients in one long vector", think="does each parameter get a gradient of its own shape?"
)
def one_long_vector(gradients, max_norm):
    norm = _norm(gradients)
    return torch.cat(_shortened([g.flatten() for g in gradients], max(float(norm), 1e-30), max_norm)), norm


@clip_gradients.mistake("the caller's gradients changed in place", think="does g.mul_ make a new tensor?")
def in_place(gradients, max_norm):
    norm = _norm(gradients)
    for g in gradients:
        g.mul_(min(1.0, max_norm / max(float(norm), 1e-30)))
    return gradients, norm


# ---------------------------------------------------------------- 07.4 AdamW step


def _adam(p, g, m, v, step, lr, betas, eps, decay, correct, direction=None):
    """The right step, with another direction (m, v, first, second, eps) -> tensor if given."""
    m, v = betas[0] * m + (1 - betas[0]) * g, betas[1] * v + (1 - betas[1]) * g * g
    first, second = (1 - betas[0] ** step, 1 - betas[1] ** step) if correct else (1.0, 1.0)
    way = direction(m, v, first, second, eps) if direction else (m / first) / ((v / second).sqrt() + eps)
    return p - lr * (way + decay * p), m, v


@adamw_step.mistake(
    "weight decay added to the gradient: Adam with L2, not AdamW",
    think="what happens to a decay that is divided by √v like the gradient?",
)
def l2_in_the_gradient(parameter, gradient, m, v, step, lr, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.01,
                       bias_correction=True):  # fmt: skip
    gradient = gradient + weight_decay * parameter
    return _adam(parameter, gradient, m, v, step, lr, betas, eps, 0.0, bias_correction)


@adamw_step.mistake("decay forgotten", think="what is the argument weight_decay for?")
def no_decay(parameter, gradient, m, v, step, lr, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.01,
             bias_correction=True):  # fmt: skip
    return _adam(parameter, gradient, m, v, step, lr, betas, eps, 0.0, bias_correction)


@adamw_step.mistake(
    "decay not multiplied by the learning rate", think="how strong is the decay at the end, when lr is nearly 0?"
)
def decay_without_lr(parameter, gradient, m, v, step, lr, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.01,
                     bias_correction=True):  # fmt: skip
    new, m, v = _adam(parameter, gradient, m, v, step, lr, betas, eps, 0.0, bias_correction)
    return new - weight_decay * parameter, m, v


@adamw_step.mistake(
    "decay of the *new* parameter, as an old version of transformers had it",
    think="which parameter shrinks: the one before the step, or after it?",
)
def decay_afterwards(parameter, gradient, m, v, step, lr, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.01,
                     bias_correction=True):  # fmt: skip
    new, m, v = _adam(parameter, gradient, m, v, step, lr, betas, eps, 0.0, bias_correction)
    return new - lr * weight_decay * new, m, v


@adamw_step.mistake("decay with the wrong sign: weights grow", think="does the parameter come closer to 0?")
def decay_outwards(parameter, gradient, m, v, step, lr, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.01,
                   bias_correction=True):  # fmt: skip
    return _adam(parameter, gradient, m, v, step, lr, betas, eps, -weight_decay, bias_correction)


@adamw_step.mistake("bias correction never done", think="what is the argument bias_correction for?")
def never_corrected(parameter, gradient, m, v, step, lr, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.01,
                    bias_correction=True):  # fmt: skip
    return _adam(parameter, gradient, m, v, step, lr, betas, eps, weight_decay, False)


@adamw_step.mistake("bias correction always done", think="what is the argument bias_correction for?")
def always_corrected(parameter, gradient, m, v, step, lr, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.01,
                     bias_correction=True):  # fmt: skip
    return _adam(parameter, gradient, m, v, step, lr, betas, eps, weight_decay, True)


@adamw_step.mistake(
    "corrected m and v handed on to the next step", think="is the correction part of the running means?"
)
def corrected_kept(parameter, gradient, m, v, step, lr, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.01,
                   bias_correction=True):  # fmt: skip
    new, m, v = _adam(parameter, gradient, m, v, step, lr, betas, eps, weight_decay, bias_correction)
    if bias_correction:
        m, v = m / (1 - betas[0] ** step), v / (1 - betas[1] ** step)
    return new, m, v


@adamw_step.mistake("steps counted from 0 in the correction", think="what is 1 − β¹, and what 1 − β²?")
def one_step_more(parameter, gradient, m, v, step, lr, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.01,
                  bias_correction=True):  # fmt: skip
    return _adam(parameter, gradient, m, v, step + 1, lr, betas, eps, weight_decay, bias_correction)


@adamw_step.mistake("step − 1 in the correction: 1 − β⁰ is 0", think="what is the number of the first step here?")
def one_step_less(parameter, gradient, m, v, step, lr, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.01,
                  bias_correction=True):  # fmt: skip
    return _adam(parameter, gradient, m, v, step - 1, lr, betas, eps, weight_decay, bias_correction)


@adamw_step.mistake("β · step instead of β to the power of step", think="what is 1 − 0.9 · 2, and what 1 − 0.9²?")
def step_times_beta(parameter, gradient, m, v, step, lr, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.01,
                    bias_correction=True):  # fmt: skip
    def direction(m, v, first, second, eps):
        first, second = (1 - betas[0] * step, 1 - betas[1] * step) if bias_correction else (1.0, 1.0)
        return (m / first) / ((v / second).sqrt() + eps)

    return _adam(parameter, gradient, m, v, step, lr, betas, eps, weight_decay, bias_correction, direction)


@adamw_step.mistake("1 − β without the power of step", think="does your correction fade as the steps go on?")
def no_power(parameter, gradient, m, v, step, lr, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.01,
             bias_correction=True):  # fmt: skip
    return _adam(parameter, gradient, m, v, 1, lr, betas, eps, weight_decay, bias_correction)


@adamw_step.mistake("only m corrected", think="does v begin at 0 as well?")
def only_m_corrected(parameter, gradient, m, v, step, lr, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.01,
                     bias_correction=True):  # fmt: skip
    return _adam(parameter, gradient, m, v, step, lr, betas, eps, weight_decay, bias_correction,
                 lambda m, v, first, second, eps: (m / first) / (v.sqrt() + eps))  # fmt: skip


@adamw_step.mistake("v corrected with β₁", think="which β belongs to v?")
def corrected_with_the_other(parameter, gradient, m, v, step, lr, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.01,
                             bias_correction=True):  # fmt: skip
    return _adam(parameter, gradient, m, v, step, lr, betas, eps, weight_decay, bias_correction,
                 lambda m, v, first, second, eps: (m / first) / ((v / first).sqrt() + eps))  # fmt: skip


@adamw_step.mistake(
    "v corrected after the root, without a root of the correction", think="what is √(v / c): √v / c or √v / √c?"
)
def corrected_after_the_root(parameter, gradient, m, v, step, lr, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.01,
                             bias_correction=True):  # fmt: skip
    return _adam(parameter, gradient, m, v, step, lr, betas, eps, weight_decay, bias_correction,
                 lambda m, v, first, second, eps: (m / first) / (v.sqrt() / second + eps))  # fmt: skip


@adamw_step.mistake("eps inside the root", think="is it √v + eps or √(v + eps)?")
def eps_inside(parameter, gradient, m, v, step, lr, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.01,
               bias_correction=True):  # fmt: skip
    return _adam(parameter, gradient, m, v, step, lr, betas, eps, weight_decay, bias_correction,
                 lambda m, v, first, second, eps: (m / first) / (v / second + eps).sqrt())  # fmt: skip


@adamw_step.mistake(
    "eps added before the correction, as TensorFlow does", think="is √v corrected before eps comes to it?"
)
def eps_before_the_correction(parameter, gradient, m, v, step, lr, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.01,
                              bias_correction=True):  # fmt: skip
    return _adam(parameter, gradient, m, v, step, lr, betas, eps, weight_decay, bias_correction,
                 lambda m, v, first, second, eps: (m / first) / ((v.sqrt() + eps) / second**0.5))  # fmt: skip


@adamw_step.mistake("eps forgotten", think="what if v is 0?")
def no_eps(parameter, gradient, m, v, step, lr, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.01,
           bias_correction=True):  # fmt: skip
    return _adam(parameter, gradient, m, v, step, lr, betas, 0.0, weight_decay, bias_correction)


@adamw_step.mistake(
    "1e-8, PyTorch's default, instead of BERT's 1e-6", think="which number stands in the signature for eps?"
)
def eps_of_pytorch(parameter, gradient, m, v, step, lr, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01,
                   bias_correction=True):  # fmt: skip
    return _adam(parameter, gradient, m, v, step, lr, betas, eps, weight_decay, bias_correction)


@adamw_step.mistake("divided by v instead of √v", think="in which unit is v, if the gradient is in metres?")
def no_root_of_v(parameter, gradient, m, v, step, lr, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.01,
                 bias_correction=True):  # fmt: skip
    return _adam(parameter, gradient, m, v, step, lr, betas, eps, weight_decay, bias_correction,
                 lambda m, v, first, second, eps: (m / first) / (v / second + eps))  # fmt: skip


@adamw_step.mistake("the gradient itself instead of m in the update", think="what is the running mean for?")
def no_momentum(parameter, gradient, m, v, step, lr, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.01,
                bias_correction=True):  # fmt: skip
    return _adam(parameter, gradient, m, v, step, lr, betas, eps, weight_decay, bias_correction,
                 lambda m, v, first, second, eps: gradient / ((v / second).sqrt() + eps))  # fmt: skip


@adamw_step.mistake("the old m and v in the update", think="does this step's gradient take part in this step?")
def old_moments(parameter, gradient, m, v, step, lr, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.01,
                bias_correction=True):  # fmt: skip
    old_m, old_v = m, v
    return _adam(parameter, gradient, m, v, step, lr, betas, eps, weight_decay, bias_correction,
                 lambda m, v, first, second, eps: (old_m / first) / ((old_v / second).sqrt() + eps))  # fmt: skip


@adamw_step.mistake("v from the gradient, not from its square", think="can a root be taken of a negative v?")
def v_not_squared(parameter, gradient, m, v, step, lr, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.01,
                  bias_correction=True):  # fmt: skip
    v = betas[1] * v + (1 - betas[1]) * gradient
    m = betas[0] * m + (1 - betas[0]) * gradient
    first, second = (1 - betas[0] ** step, 1 - betas[1] ** step) if bias_correction else (1.0, 1.0)
    return parameter - lr * (m / first / ((v / second).sqrt() + eps) + weight_decay * parameter), m, v


@adamw_step.mistake("β and 1 − β swapped", think="how much of the old mean is kept, with β = 0.9?")
def shares_swapped(parameter, gradient, m, v, step, lr, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.01,
                   bias_correction=True):  # fmt: skip
    b1, b2 = betas
    m, v = (1 - b1) * m + b1 * gradient, (1 - b2) * v + b2 * gradient**2
    first, second = (1 - b1**step, 1 - b2**step) if bias_correction else (1.0, 1.0)
    return parameter - lr * (m / first / ((v / second).sqrt() + eps) + weight_decay * parameter), m, v


@adamw_step.mistake("β₁ and β₂ swapped", think="which of the two is longer in memory?")
def betas_swapped(parameter, gradient, m, v, step, lr, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.01,
                  bias_correction=True):  # fmt: skip
    return _adam(parameter, gradient, m, v, step, lr, betas[::-1], eps, weight_decay, bias_correction)


@adamw_step.mistake("momentum without the 1 − β: a sum, not a mean", think="how large does m get after many steps?")
def sum_not_mean(parameter, gradient, m, v, step, lr, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.01,
                 bias_correction=True):  # fmt: skip
    b1, b2 = betas
    m, v = b1 * m + gradient, b2 * v + gradient**2
    first, second = (1 - b1**step, 1 - b2**step) if bias_correction else (1.0, 1.0)
    return parameter - lr * (m / first / ((v / second).sqrt() + eps) + weight_decay * parameter), m, v


@adamw_step.mistake("uphill: + where − belongs", think="does the loss fall in the direction of the gradient?")
def uphill(parameter, gradient, m, v, step, lr, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.01,
           bias_correction=True):  # fmt: skip
    new, m, v = _adam(parameter, gradient, m, v, step, -lr, betas, eps, -weight_decay, bias_correction)
    return new, m, v


@adamw_step.mistake("the parameter, m and v changed in place", think="does p -= … make a new tensor?")
def changed_in_place(parameter, gradient, m, v, step, lr, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.01,
                     bias_correction=True):  # fmt: skip
    new, new_m, new_v = _adam(parameter, gradient, m, v, step, lr, betas, eps, weight_decay, bias_correction)
    return parameter.copy_(new), m.copy_(new_m), v.copy_(new_v)


@adamw_step.mistake("m and v first, the parameter last", think="in which order are the three asked for?")
def parameter_last(parameter, gradient, m, v, step, lr, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.01,
                  bias_correction=True):  # fmt: skip
    parameter, m, v = _adam(parameter, gradient, m, v, step, lr, betas, eps, weight_decay, bias_correction)
    return m, v, parameter


@adamw_step.mistake(
    "the decay divided by √v too: a bracket in the wrong place", think="does decay pass through √v in AdamW?"
)
def decay_in_the_fraction(parameter, gradient, m, v, step, lr, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.01,
                  bias_correction=True):  # fmt: skip
    old = parameter
    m, v = betas[0] * m + (1 - betas[0]) * gradient, betas[1] * v + (1 - betas[1]) * gradient**2
    first, second = (1 - betas[0] ** step, 1 - betas[1] ** step) if bias_correction else (1.0, 1.0)
    return old - lr * (m / first + weight_decay * old) / ((v / second).sqrt() + eps), m, v


@adamw_step.mistake("v made of the new m, not of the gradient", think="v is a running mean of what?")
def v_of_m(parameter, gradient, m, v, step, lr, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.01,
                  bias_correction=True):  # fmt: skip
    m = betas[0] * m + (1 - betas[0]) * gradient
    v = betas[1] * v + (1 - betas[1]) * m**2
    first, second = (1 - betas[0] ** step, 1 - betas[1] ** step) if bias_correction else (1.0, 1.0)
    return parameter - lr * (m / first / ((v / second).sqrt() + eps) + weight_decay * parameter), m, v


@adamw_step.mistake("only the parameter returned", think="what does the next step need besides the parameter?")
def moments_forgotten(parameter, gradient, m, v, step, lr, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.01,
                      bias_correction=True):  # fmt: skip
    return _adam(parameter, gradient, m, v, step, lr, betas, eps, weight_decay, bias_correction)[0]


# ---------------------------------------------------------------- 07.5 unscale gradients


def _all_finite(gradients):
    return all(bool(g.isfinite().all()) for g in gradients)


@unscale_gradients.mistake(
    "divided in float16, or put back into it: small ones become 0", think="which is the smallest float16 above 0?"
)
def divided_in_half(gradients, scale):
    return [(g / scale).float() for g in gradients], _all_finite(gradients)


@unscale_gradients.mistake("not divided at all", think="by how much are the gradients too large?")
def not_divided(gradients, scale):
    return [g.float() for g in gradients], _all_finite(gradients)


@unscale_gradients.mistake("multiplied once more", think="the loss was multiplied; what undoes that?")
def multiplied(gradients, scale):
    return [g.float() * scale for g in gradients], _all_finite(gradients)


@unscale_gradients.mistake("NaN not noticed: only infinity looked for", think="what is inf − inf?")
def only_infinity(gradients, scale):
    return [g.float() / scale for g in gradients], not any(bool(g.isinf().any()) for g in gradients)


@unscale_gradients.mistake("infinity not noticed: only NaN looked for", think="what is 70,000 in float16?")
def only_nan(gradients, scale):
    return [g.float() / scale for g in gradients], not any(bool(g.isnan().any()) for g in gradients)


@unscale_gradients.mistake("minus infinity not noticed", think="to which side can a number overflow?")
def only_plus(gradients, scale):
    bad = any(bool((g == math.inf).any() | g.isnan().any()) for g in gradients)
    return [g.float() / scale for g in gradients], not bad


@unscale_gradients.mistake("only the first gradient looked at", think="can one of the others overflow alone?")
def only_the_first(gradients, scale):
    return [g.float() / scale for g in gradients], _all_finite(gradients[:1])


@unscale_gradients.mistake("only the last gradient looked at", think="what remains of the answers before it?")
def only_the_last(gradients, scale):
    return [g.float() / scale for g in gradients], _all_finite(gradients[-1:])


@unscale_gradients.mistake("true as soon as one gradient is finite", think="is it any or all that has to be finite?")
def any_finite(gradients, scale):
    return [g.float() / scale for g in gradients], any(bool(g.isfinite().all()) for g in gradients)


@unscale_gradients.mistake(
    "a sum in float16 asked: it overflows where all numbers are finite", think="what is 60,000 + 60,000 in float16?"
)
def sum_in_half(gradients, scale):
    return [g.float() / scale for g in gradients], all(bool(g.sum().isfinite()) for g in gradients)


@unscale_gradients.mistake(
    "the largest number of float16 taken for infinite", think="is 65,504 a number of float16, or the first that is not?"
)
def largest_is_infinite(gradients, scale):
    return [g.float() / scale for g in gradients], all(bool((g.abs() < 65504).all()) for g in gradients)


@unscale_gradients.mistake("the answer upside down: true when a number is not finite", think="when is the step made?")
def says_the_opposite(gradients, scale):
    return [g.float() / scale for g in gradients], not _all_finite(gradients)


@unscale_gradients.mistake(
    "bad numbers replaced by 0 before they are looked for", think="what is left to find after nan_to_num?"
)
def replaced_first(gradients, scale):
    clean = [g.float().nan_to_num(0.0, 0.0, 0.0) / scale for g in gradients]
    return clean, _all_finite(clean)


@unscale_gradients.mistake("the caller's gradients divided in place", think="does g /= … make a new tensor?")
def divided_in_place(gradients, scale):
    return [g.div_(scale).float() for g in gradients], _all_finite(gradients)


# ---------------------------------------------------------------- 07.6 training step


def _clip(model, max_norm):
    torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)


def _sum(model, ids, labels):
    return F.cross_entropy(model(ids).flatten(0, 1), labels.flatten(), reduction="sum")


def _count(micro_batches):
    return sum((labels != -100).sum() for _, labels in micro_batches)


def _step(model, optimizer, micro_batches, max_norm, share=None):
    """The right step, with another share(loss sum, labels) of the loss if given."""
    model.train()
    optimizer.zero_grad()
    count, total = _count(micro_batches), 0.0
    for ids, labels in micro_batches:
        loss = _sum(model, ids, labels)
        loss = share(loss, labels) if share else loss / count
        loss.backward()
        total = total + loss.detach()
    _clip(model, max_norm)
    optimizer.step()
    return total


@training_step.mistake(
    "the mean of each micro-batch, added up and not divided", think="how does the step grow with more micro-batches?"
)
def not_divided_at_all(model, optimizer, micro_batches, max_norm):
    return _step(model, optimizer, micro_batches, max_norm, lambda loss, labels: loss / (labels != -100).sum())


@training_step.mistake(
    "a mean of means: each micro-batch by its own count, then by how many micro-batches there are",
    think="should a label count more because its micro-batch has few?",
)
def mean_of_means(model, optimizer, micro_batches, max_norm):
    return _step(model, optimizer, micro_batches, max_norm,
                 lambda loss, labels: loss / (labels != -100).sum() / len(micro_batches))  # fmt: skip


@training_step.mistake(
    "a mean of means, with at least one label counted in each micro-batch",
    think="should a label count more because its micro-batch has few?",
)
def careful_mean_of_means(model, optimizer, micro_batches, max_norm):
    return _step(model, optimizer, micro_batches, max_norm,
                 lambda loss, labels: loss / (labels != -100).sum().clamp(min=1) / len(micro_batches))  # fmt: skip


@training_step.mistake("divided by all places, asked or not", think="how many places have a label?")
def by_all_places(model, optimizer, micro_batches, max_norm):
    places = sum(labels.numel() for _, labels in micro_batches)
    return _step(model, optimizer, micro_batches, max_norm, lambda loss, labels: loss / places)


@training_step.mistake("a sum of losses, not a mean", think="what happens to the step when the batch is doubled?")
def a_sum(model, optimizer, micro_batches, max_norm):
    return _step(model, optimizer, micro_batches, max_norm, lambda loss, labels: loss)


@training_step.mistake("divided by the number of micro-batches only", think="how many labels are there?")
def by_micro_batches(model, optimizer, micro_batches, max_norm):
    return _step(model, optimizer, micro_batches, max_norm, lambda loss, labels: loss / len(micro_batches))


@training_step.mistake("label 0 left out, as if it meant “ignore”", think="which label means: nothing is asked?")
def zero_ignored(model, optimizer, micro_batches, max_norm):
    changed = [(ids, labels.masked_fill(labels == 0, -100)) for ids, labels in micro_batches]
    return _step(model, optimizer, changed, max_norm)


@training_step.mistake("zero_grad missing", think="what is in the gradients before the first backward?")
def no_zero_grad(model, optimizer, micro_batches, max_norm):
    model.train()
    count, total = _count(micro_batches), 0.0
    for ids, labels in micro_batches:
        loss = _sum(model, ids, labels) / count
        loss.backward()
        total = total + loss.detach()
    _clip(model, max_norm)
    optimizer.step()
    return total


@training_step.mistake(
    "zero_grad for every micro-batch: only the last one counts", think="what has backward put into the gradients?"
)
def zero_grad_inside(model, optimizer, micro_batches, max_norm):
    model.train()
    count, total = _count(micro_batches), 0.0
    for ids, labels in micro_batches:
        optimizer.zero_grad()
        loss = _sum(model, ids, labels) / count
        loss.backward()
        total = total + loss.detach()
    _clip(model, max_norm)
    optimizer.step()
    return total


@training_step.mistake("zero_grad between backward and step", think="what does the optimizer find?")
def zero_grad_too_late(model, optimizer, micro_batches, max_norm):
    model.train()
    count, total = _count(micro_batches), 0.0
    for ids, labels in micro_batches:
        loss = _sum(model, ids, labels) / count
        loss.backward()
        total = total + loss.detach()
    _clip(model, max_norm)
    optimizer.zero_grad()
    optimizer.step()
    return total


@training_step.mistake("step before backward", think="which gradients does the optimizer use?")
def step_first(model, optimizer, micro_batches, max_norm):
    model.train()
    optimizer.zero_grad()
    count, total = _count(micro_batches), 0.0
    for ids, labels in micro_batches:
        loss = _sum(model, ids, labels) / count
        optimizer.step()
        loss.backward()
        total = total + loss.detach()
    _clip(model, max_norm)
    return total


@training_step.mistake("a step for every micro-batch", think="what is accumulated, if each one is used at once?")
def a_step_each(model, optimizer, micro_batches, max_norm):
    model.train()
    count, total = _count(micro_batches), 0.0
    for ids, labels in micro_batches:
        optimizer.zero_grad()
        loss = _sum(model, ids, labels) / count
        loss.backward()
        total = total + loss.detach()
        _clip(model, max_norm)
        optimizer.step()
    return total


@training_step.mistake("no step at all", think="who changes the parameters?")
def never_steps(model, optimizer, micro_batches, max_norm):
    model.train()
    optimizer.zero_grad()
    count, total = _count(micro_batches), 0.0
    for ids, labels in micro_batches:
        loss = _sum(model, ids, labels) / count
        loss.backward()
        total = total + loss.detach()
    return total


@training_step.mistake("no clipping, or only after the step", think="which gradient has the optimizer used?")
def never_clips(model, optimizer, micro_batches, max_norm):
    return _step(model, optimizer, micro_batches, math.inf)


@training_step.mistake(
    "clipped first, divided by the count afterwards",
    think="which gradient has the norm max_norm: that of the sum, or of the mean?",
)
def clipped_before_divided(model, optimizer, micro_batches, max_norm):
    model.train()
    optimizer.zero_grad()
    count, total = _count(micro_batches), 0.0
    for ids, labels in micro_batches:
        loss = _sum(model, ids, labels)
        loss.backward()
        total = total + loss.detach()
    _clip(model, max_norm)
    for p in model.parameters():
        p.grad /= count
    optimizer.step()
    return total / count


@training_step.mistake(
    "the running sum of the losses sent back each time", think="how often does the first micro-batch go back?"
)
def running_sum_sent_back(model, optimizer, micro_batches, max_norm):
    model.train()
    optimizer.zero_grad()
    count, total = _count(micro_batches), 0.0
    for ids, labels in micro_batches:
        total = total + _sum(model, ids, labels) / count
        total.backward(retain_graph=True)
    _clip(model, max_norm)
    optimizer.step()
    return total.detach()


@training_step.mistake("the last micro-batch alone", think="is everything that belongs into the loop indented?")
def last_micro_batch_alone(model, optimizer, micro_batches, max_norm):
    return _step(model, optimizer, micro_batches[-1:], max_norm)


@training_step.mistake("clipping after every micro-batch", think="how long can a sum of clipped gradients be?")
def clips_each(model, optimizer, micro_batches, max_norm):
    model.train()
    optimizer.zero_grad()
    count, total = _count(micro_batches), 0.0
    for ids, labels in micro_batches:
        loss = _sum(model, ids, labels) / count
        loss.backward()
        _clip(model, max_norm)
        total = total + loss.detach()
    optimizer.step()
    return total


@training_step.mistake("each parameter clipped by itself", think="do all tensors keep their share of the step?")
def clips_per_tensor(model, optimizer, micro_batches, max_norm):
    model.train()
    optimizer.zero_grad()
    count, total = _count(micro_batches), 0.0
    for ids, labels in micro_batches:
        loss = _sum(model, ids, labels) / count
        loss.backward()
        total = total + loss.detach()
    for p in model.parameters():
        torch.nn.utils.clip_grad_norm_([p], max_norm)
    optimizer.step()
    return total


@training_step.mistake("each number of the gradient clipped", think="does the step keep its direction?")
def clips_numbers(model, optimizer, micro_batches, max_norm):
    model.train()
    optimizer.zero_grad()
    count, total = _count(micro_batches), 0.0
    for ids, labels in micro_batches:
        loss = _sum(model, ids, labels) / count
        loss.backward()
        total = total + loss.detach()
    torch.nn.utils.clip_grad_value_(model.parameters(), max_norm)
    optimizer.step()
    return total


@training_step.mistake(
    "the losses added up and sent back once: all micro-batches in memory together",
    think="when can the memory of the first micro-batch be given back?",
)
def one_backward(model, optimizer, micro_batches, max_norm):
    model.train()
    optimizer.zero_grad()
    loss = sum(_sum(model, ids, labels) for ids, labels in micro_batches) / _count(micro_batches)
    loss.backward()
    _clip(model, max_norm)
    optimizer.step()
    return loss.detach()


@training_step.mistake(
    "a second pass under no_grad for the loss: the model is run twice as often",
    think="is the loss not known from the pass that is sent back?",
)
def a_second_pass(model, optimizer, micro_batches, max_norm):
    model.train()
    optimizer.zero_grad()
    count = _count(micro_batches)
    with torch.no_grad():
        total = sum(_sum(model, ids, labels) for ids, labels in micro_batches) / count
    for ids, labels in micro_batches:
        (_sum(model, ids, labels) / count).backward()
    _clip(model, max_norm)
    optimizer.step()
    return total


@training_step.mistake("the micro-batches put together again", think="why was the batch cut into pieces?")
def together_again(model, optimizer, micro_batches, max_norm):
    ids, labels = (torch.cat(list(part)) for part in zip(*micro_batches, strict=True))
    return _step(model, optimizer, [(ids, labels)], max_norm)


@training_step.mistake("model.train() missing after an evaluation", think="does dropout do anything in eval mode?")
def still_in_eval(model, optimizer, micro_batches, max_norm):
    optimizer.zero_grad()
    count, total = _count(micro_batches), 0.0
    for ids, labels in micro_batches:
        loss = _sum(model, ids, labels) / count
        loss.backward()
        total = total + loss.detach()
    _clip(model, max_norm)
    optimizer.step()
    return total


@training_step.mistake("the loss added up with its graph", think="what does the sum of losses keep in memory?")
def keeps_the_graph(model, optimizer, micro_batches, max_norm):
    model.train()
    optimizer.zero_grad()
    count, total = _count(micro_batches), 0.0
    for ids, labels in micro_batches:
        loss = _sum(model, ids, labels) / count
        loss.backward()
        total = total + loss
    _clip(model, max_norm)
    optimizer.step()
    return total


@training_step.mistake(".item() for each micro-batch", think="what must a GPU have finished before item() answers?")
def item_each_time(model, optimizer, micro_batches, max_norm):
    model.train()
    optimizer.zero_grad()
    count, total = _count(micro_batches), 0.0
    for ids, labels in micro_batches:
        loss = _sum(model, ids, labels) / count
        loss.backward()
        total += loss.item()
    _clip(model, max_norm)
    optimizer.step()
    return torch.tensor(total)


@training_step.mistake(".item() at the end of every step", think="does every single step's loss have to be known?")
def item_at_the_end(model, optimizer, micro_batches, max_norm):
    return _step(model, optimizer, micro_batches, max_norm).item()


@training_step.mistake("the last micro-batch's loss returned", think="whose loss should the log show?")
def last_loss(model, optimizer, micro_batches, max_norm):
    model.train()
    optimizer.zero_grad()
    count, loss = _count(micro_batches), torch.zeros(())
    for ids, labels in micro_batches:
        loss = _sum(model, ids, labels) / count
        loss.backward()
    _clip(model, max_norm)
    optimizer.step()
    return loss.detach()


@training_step.mistake("nothing returned", think="what would you like to see in a log?")
def returns_nothing(model, optimizer, micro_batches, max_norm):
    _step(model, optimizer, micro_batches, max_norm)
