"""Right answers of unit 06 that differ in structure from the reference: each must get full marks."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from coursework.checks.model import Encoder, bert, count_parameters, encoder_layer, feed_forward, load_weights, pooler

# ---------------------------------------------------------------- 06.1 feed-forward


@feed_forward.alternative
def linear_gelu_linear(x, weights):
    inner = F.gelu(F.linear(x, weights["up.weight"], weights["up.bias"]))
    return F.linear(inner, weights["down.weight"], weights["down.bias"])


@feed_forward.alternative
def one_inner_feature_at_a_time(x, weights):
    """Reads the layer as a memory: each inner feature looks for something, and adds its column where it finds it."""
    out = weights["down.bias"].expand_as(x)
    for i in range(len(weights["up.bias"])):
        found = F.gelu((x * weights["up.weight"][i]).sum(-1, keepdim=True) + weights["up.bias"][i])
        out = out + found * weights["down.weight"][:, i]
    return out


@feed_forward.alternative
def normal_distribution_and_einsum(x, weights):
    inner = torch.einsum("...d,fd->...f", x, weights["up.weight"]) + weights["up.bias"]
    inner = inner * torch.special.ndtr(inner)
    return torch.einsum("...f,df->...d", inner, weights["down.weight"]) + weights["down.bias"]


@feed_forward.alternative
def modules_filled_with_the_weights(x, weights):
    inner, width = weights["up.weight"].shape
    model = nn.Sequential(nn.Linear(width, inner), nn.GELU(), nn.Linear(inner, width))
    names = {"0.weight": "up.weight", "0.bias": "up.bias", "2.weight": "down.weight", "2.bias": "down.bias"}
    return torch.func.functional_call(model, {theirs: weights[ours] for theirs, ours in names.items()}, (x,))


# ---------------------------------------------------------------- 06.2 encoder layer


def _norm(x, weights, name):
    return F.layer_norm(x, x.shape[-1:], weights[f"{name}.weight"], weights[f"{name}.bias"], 1e-12)


@encoder_layer.alternative
def with_the_librarys_attention(
    hidden, weights, num_heads, attention_mask=None, dropout_p=0.0, attention_dropout_p=0.0, training=False
):
    def linear(x, name):
        return F.linear(x, weights[f"{name}.weight"], weights[f"{name}.bias"])

    query, key, value = (
        linear(hidden, name).unflatten(2, (num_heads, -1)).transpose(1, 2) for name in ("query", "key", "value")
    )
    mask = None if attention_mask is None else attention_mask[:, None, None, :].bool()
    rate = attention_dropout_p if training else 0.0
    context = F.scaled_dot_product_attention(query, key, value, attn_mask=mask, dropout_p=rate)
    attended = F.dropout(linear(context.transpose(1, 2).flatten(2), "output"), dropout_p, training)
    x = _norm(hidden + attended, weights, "attention_norm")
    inner = F.dropout(linear(F.gelu(linear(x, "up")), "down"), dropout_p, training)
    return _norm(x + inner, weights, "norm")


@encoder_layer.alternative
def fused_projection_written_out(
    hidden, weights, num_heads, attention_mask=None, dropout_p=0.0, attention_dropout_p=0.0, training=False
):
    names = ("query", "key", "value")
    matrix, bias = (torch.cat([weights[f"{name}.{kind}"] for name in names]) for kind in ("weight", "bias"))
    batch, length, width = hidden.shape
    qkv = torch.addmm(bias, hidden.reshape(-1, width), matrix.T)
    query, key, value = qkv.view(batch, length, 3, num_heads, -1).permute(2, 0, 3, 1, 4)
    scores = query @ key.transpose(-1, -2) / math.sqrt(width / num_heads)
    if attention_mask is not None:
        scores = scores.masked_fill(attention_mask[:, None, None] == 0, torch.finfo(scores.dtype).min)
    context = F.dropout(F.softmax(scores, -1), attention_dropout_p, training) @ value
    context = context.permute(0, 2, 1, 3).reshape(batch, length, width)
    x = hidden + F.dropout(
        context @ weights["output.weight"].mT + weights["output.bias"], p=dropout_p, training=training
    )
    x = _norm(x, weights, "attention_norm")
    inner = F.gelu(x @ weights["up.weight"].mT + weights["up.bias"]) @ weights["down.weight"].mT
    return _norm(x + F.dropout(inner + weights["down.bias"], p=dropout_p, training=training), weights, "norm")


@encoder_layer.alternative
def module_style(
    hidden, weights, num_heads, attention_mask=None, dropout_p=0.0, attention_dropout_p=0.0, training=False
):
    width, inner = hidden.size(2), len(weights["up.bias"])

    class FeedForward(nn.Module):  # its parts are made in another order than they are used
        def __init__(self):
            super().__init__()
            self.norm, self.drop = nn.LayerNorm(width, eps=1e-12), nn.Dropout(dropout_p)
            self.down, self.up = nn.Linear(inner, width), nn.Linear(width, inner)

        def forward(self, x):
            return self.norm(x + self.drop(self.down(nn.functional.gelu(self.up(x)))))

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.output, self.attention_norm = nn.Linear(width, width), nn.LayerNorm(width, eps=1e-12)
            self.value, self.key, self.query = (nn.Linear(width, width) for _ in range(3))
            self.drop, self.drop_weights = nn.Dropout(dropout_p), nn.Dropout(attention_dropout_p)

        def forward(self, x):
            query, key, value = (
                f(x).unflatten(2, (num_heads, -1)).transpose(1, 2) for f in (self.query, self.key, self.value)
            )
            scores = query @ key.mT / (width // num_heads) ** 0.5
            if attention_mask is not None:
                scores = scores + (1.0 - attention_mask[:, None, None, :]) * -10000.0
            context = (self.drop_weights(scores.softmax(-1)) @ value).transpose(1, 2).flatten(2)
            return self.attention_norm(x + self.drop(self.output(context)))

    def fill(module):
        return {name: weights[name] for name, _ in module.named_parameters()}

    x = hidden
    for module in (Attention(), FeedForward()):
        module = module.to(hidden.device).train(training)
        x = torch.func.functional_call(module, fill(module), (x,))
    return x


@encoder_layer.alternative
def sentence_by_sentence_without_padding(
    hidden, weights, num_heads, attention_mask=None, dropout_p=0.0, attention_dropout_p=0.0, training=False
):
    """Drops the padding, so that no mask is needed, and leaves zeros at padded places."""
    rows = []
    for b, row in enumerate(hidden):
        real = torch.ones_like(row[:, 0]) if attention_mask is None else attention_mask[b]
        found = with_the_librarys_attention(
            row[None, real == 1], weights, num_heads, None, dropout_p, attention_dropout_p, training
        )
        rows.append(torch.zeros_like(row).index_put(((real == 1).nonzero()[:, 0],), found[0]))
    return torch.stack(rows)


# ---------------------------------------------------------------- 06.3 encoder


@Encoder.alternative
class ModuleList(nn.Module):
    def __init__(self, make_layer, num_layers):
        super().__init__()
        self.layers = nn.ModuleList(make_layer() for _ in range(num_layers))

    def forward(self, hidden, attention_mask=None, all_states=False):
        states = (hidden,)
        for layer in self.layers:
            hidden = layer(hidden, attention_mask)
            states = (*states, hidden)
        return states if all_states else hidden


@Encoder.alternative
class Chain(nn.Module):
    """A layer and what is left of the stack, which is a chain again."""

    def __init__(self, make_layer, num_layers):
        super().__init__()
        self.first = make_layer()
        self.rest = Chain(make_layer, num_layers - 1) if num_layers > 1 else None

    def forward(self, hidden, attention_mask=None, all_states=False):
        after = self.first(hidden, attention_mask=attention_mask)
        states = [hidden, *(self.rest(after, attention_mask, True) if self.rest else [after])]
        return states if all_states else states[-1]


@Encoder.alternative
def a_function_that_fills_a_sequential(make_layer, num_layers):
    class Numbered(nn.Sequential):
        def forward(self, hidden, attention_mask=None, all_states=False):
            states = [hidden]
            for i in range(len(self)):
                states.append(self[i](states[i], attention_mask))
            return states if all_states else states.pop()

    return Numbered(*[make_layer() for _ in range(num_layers)])


@Encoder.alternative
class AttributesByName(nn.Module):
    def __init__(self, make_layer, num_layers):
        super().__init__()
        self.num_layers = num_layers
        for number in range(num_layers):
            setattr(self, f"layer_{number}", make_layer())

    def forward(self, hidden, attention_mask=None, all_states=False):
        states = [hidden]
        for number in range(self.num_layers):
            hidden = getattr(self, f"layer_{number}")(hidden, attention_mask)
            states.append(hidden)
        if all_states:
            return states
        return hidden


# ---------------------------------------------------------------- 06.4 pooler


@pooler.alternative
def dense_and_tanh(hidden, weights):
    return torch.tanh(F.linear(hidden[:, 0, :], weights["weight"], weights["bias"]))


@pooler.alternative
def all_tokens_then_the_first(hidden, weights):
    return torch.einsum("bsd,ed->bse", hidden, weights["weight"]).add(weights["bias"]).tanh().select(1, 0)


@pooler.alternative
def sentence_by_sentence(hidden, weights):
    dense = [(weights["weight"] * states[0]).sum(1) + weights["bias"] for states in hidden]
    return 2 * torch.sigmoid(2 * torch.stack(dense)) - 1


# ---------------------------------------------------------------- 06.5 count parameters


@count_parameters.alternative
def one_formula(
    vocab_size,
    hidden_size,
    num_hidden_layers,
    num_attention_heads,
    intermediate_size,
    max_position_embeddings,
    type_vocab_size,
):
    tables = (vocab_size + max_position_embeddings + type_vocab_size) * hidden_size
    layer = 4 * hidden_size**2 + 2 * hidden_size * intermediate_size + 9 * hidden_size + intermediate_size
    return tables + num_hidden_layers * layer + hidden_size**2 + 3 * hidden_size


@count_parameters.alternative
def shapes_listed(
    vocab_size,
    hidden_size,
    num_hidden_layers,
    num_attention_heads,
    intermediate_size,
    max_position_embeddings,
    type_vocab_size,
):
    d, f, norm = hidden_size, intermediate_size, [(hidden_size,), (hidden_size,)]
    layer = [(d, d), (d,)] * 4 + norm + [(f, d), (f,), (d, f), (d,)] + norm
    tables = [(rows, d) for rows in (vocab_size, max_position_embeddings, type_vocab_size)]
    return sum(math.prod(shape) for shape in tables + norm + layer * num_hidden_layers + [(d, d), (d,)])


@count_parameters.alternative
def modules_on_the_meta_device(
    vocab_size,
    hidden_size,
    num_hidden_layers,
    num_attention_heads,
    intermediate_size,
    max_position_embeddings,
    type_vocab_size,
):
    """Lets PyTorch count a model of the same parts that is never filled with numbers."""
    d, f = hidden_size, intermediate_size
    with torch.device("meta"):
        model = nn.ModuleList(nn.Embedding(n, d) for n in (vocab_size, max_position_embeddings, type_vocab_size))
        model += [nn.LayerNorm(d), nn.Linear(d, d)]
        for _ in range(num_hidden_layers):
            model += [nn.Linear(d, d) for _ in range(4)]
            model += [nn.Linear(d, f), nn.Linear(f, d), nn.LayerNorm(d), nn.LayerNorm(d)]
    return sum(p.numel() for p in model.parameters())


@count_parameters.alternative
def head_by_head(
    vocab_size,
    hidden_size,
    num_hidden_layers,
    num_attention_heads,
    intermediate_size,
    max_position_embeddings,
    type_vocab_size,
):
    d, share = hidden_size, hidden_size / num_attention_heads
    attention = num_attention_heads * 3 * (d * share + share) + num_attention_heads * share * d + d
    layer = attention + (d + 1) * intermediate_size + (intermediate_size + 1) * d + 2 * 2 * d
    tables = d * sum((vocab_size, max_position_embeddings, type_vocab_size))
    return round(tables + 2 * d + num_hidden_layers * layer + (d + 1) * d)


# ---------------------------------------------------------------- 06.6 load weights


def _tidy(name):
    name = name.removeprefix("bert.")
    if name.endswith(".gamma"):
        return name.removesuffix("gamma") + "weight"
    return name.removesuffix("beta") + "bias" if name.endswith(".beta") else name


@load_weights.alternative
def three_sets_of_names(state, wanted):
    found = {_tidy(name): tensor for name, tensor in state.items()}
    found = {n: t for n, t in found.items() if not n.startswith("cls.") and n != "embeddings.position_ids"}
    names = {theirs for theirs, _, _ in wanted}
    if names != set(found):
        raise ValueError(f"missing {sorted(names - set(found))}, not expected {sorted(set(found) - names)}")
    wrong = {theirs: tuple(found[theirs].shape) for theirs, _, shape in wanted if found[theirs].shape != shape}
    if wrong:
        raise ValueError(f"shapes that do not fit: {wrong}")
    return {ours: found[theirs] for theirs, ours, _ in wanted}


@load_weights.alternative
def crossed_off_a_list(state, wanted):
    open_rows, result, strange, wrong = {theirs: (ours, shape) for theirs, ours, shape in wanted}, {}, [], []
    for stored in sorted(state):
        parts = stored.split(".")
        parts = parts[1:] if parts[0] == "bert" else parts
        parts[-1] = {"gamma": "weight", "beta": "bias"}.get(parts[-1], parts[-1])
        if parts[0] == "cls" or parts[-1] == "position_ids":
            continue
        row = open_rows.pop(".".join(parts), None)
        if row is None:
            strange.append(stored)
        elif list(state[stored].shape) != list(row[1]):
            wrong.append(stored)
        else:
            result[row[0]] = state[stored].clone()
    problems = [f"{name} is strange" for name in strange] + [f"{name} has a wrong shape" for name in wrong]
    problems += [f"{ours} is missing" for ours, _ in open_rows.values()]
    if problems:
        raise ValueError("; ".join(problems))
    return result


@load_weights.alternative
def every_spelling_tried(state, wanted):
    """Goes the other way: from what is wanted to the spellings a file may have."""
    result, used, problems = {}, set(), []
    for theirs, ours, shape in wanted:
        old = [theirs[: -len(new)] + before for new, before in ((".weight", ".gamma"), (".bias", ".beta"))
               if theirs.endswith(new)]  # fmt: skip
        spellings = [prefix + name for prefix in ("", "bert.") for name in (theirs, *old)]
        there = [name for name in spellings if name in state]
        used.update(there)
        if not there:
            problems.append(f"there is no {theirs}")
        elif state[there[0]].shape != torch.Size(shape):
            problems.append(f"{there[0]} should have the shape {tuple(shape)}")
        else:
            result[ours] = state[there[0]]
    for name in state.keys() - used:
        if not name.startswith("cls.") and not name.endswith("embeddings.position_ids"):
            problems.append(f"{name} is of no use")
    if problems:
        raise ValueError("\n".join(problems))
    return result


# ---------------------------------------------------------------- 06.7 bert


@bert.alternative
def functional(input_ids, token_type_ids, attention_mask, weights, num_heads):
    def linear(x, name):
        return F.linear(x, weights[f"{name}.weight"], weights[f"{name}.bias"])

    def heads(x):
        return x.unflatten(2, (num_heads, -1)).transpose(1, 2)

    mask = attention_mask[:, None, None, :].bool()
    x = F.embedding(input_ids, weights["embeddings.word_embeddings.weight"])
    x = x + F.embedding(token_type_ids, weights["embeddings.token_type_embeddings.weight"])
    x = x + weights["embeddings.position_embeddings.weight"][: input_ids.size(1)]
    x = _norm(x, weights, "embeddings.LayerNorm")
    number = 0
    while f"encoder.layer.{number}.output.dense.bias" in weights:
        here = f"encoder.layer.{number}"
        query, key, value = (heads(linear(x, f"{here}.attention.self.{name}")) for name in ("query", "key", "value"))
        context = F.scaled_dot_product_attention(query, key, value, attn_mask=mask).transpose(1, 2).flatten(2)
        x = _norm(x + linear(context, f"{here}.attention.output.dense"), weights, f"{here}.attention.output.LayerNorm")
        inner = F.gelu(linear(x, f"{here}.intermediate.dense"))
        x = _norm(x + linear(inner, f"{here}.output.dense"), weights, f"{here}.output.LayerNorm")
        number += 1
    return x, linear(x[:, 0], "pooler.dense").tanh()


@bert.alternative
def modules_with_the_librarys_names(input_ids, token_type_ids, attention_mask, weights, num_heads):
    width = weights["embeddings.LayerNorm.weight"].numel()

    class Layer(nn.Module):
        def __init__(self, inner):
            super().__init__()
            attention, output = nn.Module(), nn.Module()
            attention.self, attention.output, self.attention, self.output = nn.Module(), nn.Module(), attention, output
            for name in ("query", "key", "value"):
                setattr(attention.self, name, nn.Linear(width, width))
            attention.output.dense, output.dense = nn.Linear(width, width), nn.Linear(inner, width)
            attention.output.LayerNorm, output.LayerNorm = (nn.LayerNorm(width, eps=1e-12) for _ in range(2))
            self.intermediate = nn.Module()
            self.intermediate.dense = nn.Linear(width, inner)

        def forward(self, x):
            me = self.attention.self
            q, k, v = (f(x).unflatten(2, (num_heads, -1)) for f in (me.query, me.key, me.value))
            scores = torch.einsum("bihd,bjhd->bhij", q, k) / math.sqrt(q.size(-1))
            scores = scores + torch.where(attention_mask[:, None, None] == 1, 0.0, -1e9)
            context = torch.einsum("bhij,bjhd->bihd", scores.softmax(-1), v).flatten(2)
            x = self.attention.output.LayerNorm(x + self.attention.output.dense(context))
            return self.output.LayerNorm(x + self.output.dense(F.gelu(self.intermediate.dense(x))))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.pooler, self.encoder, self.embeddings = nn.Module(), nn.Module(), nn.Module()
            self.pooler.dense = nn.Linear(width, width)
            inner = len(weights["encoder.layer.0.intermediate.dense.bias"])
            count = len({name.split(".")[2] for name in weights if name.startswith("encoder.")})
            self.encoder.layer = nn.ModuleList(Layer(inner) for _ in range(count))
            for name in ("word", "position", "token_type"):
                rows = len(weights[f"embeddings.{name}_embeddings.weight"])
                setattr(self.embeddings, f"{name}_embeddings", nn.Embedding(rows, width))
            self.embeddings.LayerNorm = nn.LayerNorm(width, eps=1e-12)

        def forward(self):
            e, places = self.embeddings, torch.arange(input_ids.size(1), device=input_ids.device)
            x = e.word_embeddings(input_ids) + e.token_type_embeddings(token_type_ids) + e.position_embeddings(places)
            x = e.LayerNorm(x)
            for layer in self.encoder.layer:
                x = layer(x)
            return [x, self.pooler.dense(x[:, 0]).tanh()]

    return torch.func.functional_call(Model().eval(), weights, ())


@bert.alternative
def sentences_one_by_one(input_ids, token_type_ids, attention_mask, weights, num_heads):
    """Each text alone and without its padding; places of padding stay 0."""
    width = weights["pooler.dense.bias"].numel()
    pooled, rows = [], []
    for ids, segments, mask in zip(input_ids, token_type_ids, attention_mask, strict=True):
        real = int(mask.sum())
        x, first = functional(ids[None, :real], segments[None, :real], mask[None, :real], weights, num_heads)
        rows.append(torch.cat([x[0], x.new_zeros(len(ids) - real, width)]))
        pooled.append(first[0])
    return torch.stack(rows), torch.stack(pooled)
