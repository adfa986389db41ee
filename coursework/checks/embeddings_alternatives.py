"""Right answers of unit 02 that differ in structure: each must get full marks."""

import itertools

import torch
import torch.nn.functional as F
from torch import nn

from coursework.checks.embeddings import build_inputs, embeddings, layer_norm, pad_batch

# ---------------------------------------------------------------- 02.1 LayerNorm


@layer_norm.alternative
def var_mean_and_rsqrt(x, weight, bias, eps=1e-12):
    variance, mean = torch.var_mean(x, dim=-1, correction=0, keepdim=True)
    return torch.addcmul(bias, (x - mean) * torch.rsqrt(variance + eps), weight)


@layer_norm.alternative
def matrix_that_centres(x, weight, bias, eps=1e-12):
    width = x.size(-1)
    centre = torch.eye(width, dtype=x.dtype, device=x.device) - 1 / width
    centred = x @ centre
    length = torch.linalg.vector_norm(centred, dim=-1, keepdim=True)
    return centred / torch.hypot(length / width**0.5, torch.full_like(length, eps**0.5)) * weight + bias


@layer_norm.alternative
def token_by_token(x, weight, bias, eps=1e-12):
    tokens = []
    for token in x.flatten(0, -2):
        spread = torch.sqrt(torch.var(token, correction=0) + eps)
        tokens.append((token - token.mean()) / spread * weight + bias)
    return torch.stack(tokens).reshape(x.shape)


@layer_norm.alternative
def features_first(x, weight, bias, eps=1e-12):
    x = x.movedim(-1, 0)  # without keepdim: what is left lines up by itself
    centred = x - x.mean(0)
    x = centred / torch.sqrt(centred.pow(2).mean(0) + eps)
    return x.movedim(0, -1) * weight + bias


# ---------------------------------------------------------------- 02.2 build inputs


@build_inputs.alternative
def append_and_loop(a, b=None, *, max_length, cls_id, sep_id, pad_id):
    ids, types = [cls_id], [0]
    for segment, pieces in enumerate([a] if b is None else [a, b]):
        for piece in pieces:
            ids.append(piece)
            types.append(segment)
        ids.append(sep_id)
        types.append(segment)
    mask = [1] * len(ids)
    if len(ids) > min(max_length, 512) or max_length > 512:
        raise ValueError(f"{len(ids)} tokens")
    while len(ids) < max_length:
        ids.append(pad_id)
        types.append(0)
        mask.append(0)
    return {"input_ids": ids, "token_type_ids": types, "attention_mask": mask}


@build_inputs.alternative
def padding_first_then_filled(a, b=None, *, max_length, cls_id, sep_id, pad_id):
    if max_length > 512:
        raise ValueError("BERT has 512 positions")
    second = 0 if b is None else len(b) + 1
    if len(a) + 2 + second > max_length:
        raise ValueError("shorten the text")
    row = {"input_ids": [pad_id] * max_length, "token_type_ids": [0] * max_length, "attention_mask": [0] * max_length}
    end = len(a) + 2
    row["input_ids"][:end] = [cls_id, *a, sep_id]
    if b is not None:
        row["input_ids"][end : end + second] = [*b, sep_id]
        row["token_type_ids"][end : end + second] = [1] * second
    row["attention_mask"][: end + second] = [1] * (end + second)
    return row


@build_inputs.alternative
def through_tensors(a, b=None, *, max_length, cls_id, sep_id, pad_id):
    parts = [[cls_id, *a, sep_id]] + ([[*b, sep_id]] if b is not None else [])
    ids = torch.tensor(list(itertools.chain(*parts)))
    missing = max_length - len(ids)
    if missing < 0 or max_length > 512:
        raise ValueError(f"{-missing} tokens too many")
    types = torch.repeat_interleave(torch.arange(len(parts)), torch.tensor([len(part) for part in parts]))
    rows = F.pad(ids, (0, missing), value=pad_id), F.pad(types, (0, missing)), torch.arange(max_length) < len(ids)
    names = "input_ids", "token_type_ids", "attention_mask"
    return dict(zip(names, (row.long().tolist() for row in rows), strict=True))


@build_inputs.alternative
def rule_for_each_place(a, b=None, *, max_length, cls_id, sep_id, pad_id):
    first = len(a) + 2
    total = first if b is None else first + len(b) + 1
    if not total <= max_length <= 512:
        raise ValueError("does not fit")

    def piece(i):
        if i == 0:
            return cls_id
        if i in (first - 1, total - 1):
            return sep_id
        if i >= total:
            return pad_id
        return a[i - 1] if i < first else b[i - first]

    places = range(max_length)
    return {
        "input_ids": [piece(i) for i in places],
        "token_type_ids": [int(first <= i < total) for i in places],
        "attention_mask": [int(i < total) for i in places],
    }


# ---------------------------------------------------------------- 02.3 pad a batch


@pad_batch.alternative
def torch_pad_sequence(rows, pad_id):
    def pad(field, value):
        tensors = [torch.tensor(row[field]) for row in rows]
        return nn.utils.rnn.pad_sequence(tensors, batch_first=True, padding_value=value)

    lengths = torch.tensor([len(row["input_ids"]) for row in rows])
    mask = torch.arange(int(lengths.max())) < lengths[:, None]
    return {
        "input_ids": pad("input_ids", pad_id), "token_type_ids": pad("token_type_ids", 0), "attention_mask": mask.int()
    }  # fmt: skip


@pad_batch.alternative
def zip_longest(rows, pad_id):
    def pad(lists, filler):
        return torch.tensor(list(zip(*itertools.zip_longest(*lists, fillvalue=filler), strict=True)))

    return {
        "input_ids": pad([row["input_ids"] for row in rows], pad_id),
        "token_type_ids": pad([row["token_type_ids"] for row in rows], 0),
        "attention_mask": pad([[1] * len(row["input_ids"]) for row in rows], 0),
    }


@pad_batch.alternative
def longest_first_then_lists(rows, pad_id):
    longest = len(sorted(rows, key=lambda row: -len(row["input_ids"]))[0]["input_ids"])
    out = {"input_ids": [], "token_type_ids": [], "attention_mask": []}
    for row in rows:
        ids, types = list(row["input_ids"]), list(row["token_type_ids"])
        mask = [1 for _ in ids]
        while len(ids) < longest:
            ids, types, mask = [*ids, pad_id], [*types, 0], [*mask, 0]
        for field, values in zip(out, (ids, types, mask), strict=True):
            out[field].append(values)
    return {field: torch.tensor(values) for field, values in out.items()}


@pad_batch.alternative
def masked_scatter(rows, pad_id):
    lengths = torch.tensor([len(row["input_ids"]) for row in rows])
    mask = torch.arange(int(lengths.max()))[None] < lengths[:, None]
    flat_ids = torch.tensor([i for row in rows for i in row["input_ids"]])
    flat_types = torch.tensor([i for row in rows for i in row["token_type_ids"]])
    ids = torch.full(mask.shape, pad_id).masked_scatter(mask, flat_ids)
    types = torch.zeros(mask.shape, dtype=torch.int64).masked_scatter(mask, flat_types)
    return {"input_ids": ids, "token_type_ids": types, "attention_mask": mask.long()}


# ---------------------------------------------------------------- 02.4 embeddings


@embeddings.alternative
def functional_all_through(input_ids, token_type_ids, weights, dropout_p=0.0, training=False):
    places = torch.arange(input_ids.size(1), device=input_ids.device).expand_as(input_ids)
    x = F.embedding(input_ids, weights["word"])
    x = x + F.embedding(places, weights["position"]) + F.embedding(token_type_ids, weights["segment"])
    x = F.layer_norm(x, (x.size(-1),), weights["norm.weight"], weights["norm.bias"], eps=1e-12)
    return F.dropout(x, dropout_p, training)


@embeddings.alternative
def one_hot_products(input_ids, token_type_ids, weights, dropout_p=0.0, training=False):
    dtype = weights["word"].dtype
    x = F.one_hot(input_ids, len(weights["word"])).to(dtype) @ weights["word"]
    x = x + F.one_hot(token_type_ids, len(weights["segment"])).to(dtype) @ weights["segment"]
    x = x + weights["position"][: input_ids.shape[1]]
    centred = x - x.mean(-1, keepdim=True)
    x = centred * (centred.square().mean(-1, keepdim=True) + 1e-12).rsqrt()
    x = x * weights["norm.weight"] + weights["norm.bias"]
    if training and dropout_p > 0:
        keep = torch.bernoulli(torch.full_like(x, 1 - dropout_p))
        x = x * keep / max(1 - dropout_p, 1e-9)
    return x


@embeddings.alternative
def one_bag_for_three_tables(input_ids, token_type_ids, weights, dropout_p=0.0, training=False):
    """The tables end to end, and a bag of three rows for each token."""
    tables = [weights[name] for name in ("word", "position", "segment")]
    batch, length = input_ids.shape
    places = torch.arange(length, device=input_ids.device).expand(batch, length)
    second = len(tables[0])
    bags = torch.stack([input_ids, places + second, token_type_ids + second + len(tables[1])], dim=-1)
    x = F.embedding_bag(bags.flatten(0, 1), torch.cat(tables), mode="sum")
    x = F.layer_norm(x, x.shape[-1:], weights["norm.weight"], weights["norm.bias"], 1e-12)
    return F.dropout(x.view(batch, length, -1), dropout_p, training)


@embeddings.alternative
def mean_of_three(input_ids, token_type_ids, weights, dropout_p=0.0, training=False):
    """A third of the sum: LayerNorm takes the factor out again, so this is no mistake."""
    places = torch.ones_like(input_ids).cumsum(1) - 1
    x = weights["word"][input_ids] + weights["position"][places] + weights["segment"][token_type_ids]
    norm = nn.LayerNorm(x.size(-1), eps=1e-12, elementwise_affine=False)
    x = norm(x / 3) * weights["norm.weight"] + weights["norm.bias"]
    return nn.Dropout(dropout_p).train(training)(x)


@embeddings.alternative
def text_by_text(input_ids, token_type_ids, weights, dropout_p=0.0, training=False):
    texts = []
    for ids, segments in zip(input_ids, token_type_ids, strict=True):
        x = weights["word"].index_select(0, ids) + weights["segment"].index_select(0, segments)
        x = x + weights["position"].narrow(0, 0, len(ids))
        texts.append(F.layer_norm(x, x.shape[1:], weights["norm.weight"], weights["norm.bias"], 1e-12))
    return F.dropout(torch.stack(texts), dropout_p, training)
