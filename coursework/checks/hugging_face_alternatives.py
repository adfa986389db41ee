"""Right answers of unit 12 that differ in structure: each must get full marks."""

import math
import re

import torch
import torch.nn.functional as F

from coursework.checks.hugging_face import attention_entropy, first_divergence, head_jobs, translate_names

# ---------------------------------------------------------------- 12.1 weights across names


@translate_names.alternative
def from_the_file(state, table, num_layers):
    """Goes through the file, with the table turned round: each source knows its target and its place there."""
    target = {}
    for ours, theirs in table:
        for number in range(num_layers) if "#" in ours else (0,):
            for place, source in enumerate(theirs):
                target[source.replace("#", str(number))] = (ours.replace("#", str(number)), place, len(theirs))
    blocks: dict = {}
    for name, tensor in state.items():
        name = re.sub(r"\.gamma$", ".weight", re.sub(r"\.beta$", ".bias", re.sub(r"^bert\.", "", name)))
        if name not in target:
            raise ValueError(f"{name} is of no use")
        ours, place, count = target.pop(name)
        blocks.setdefault(ours, [None] * count)[place] = tensor
    if target:
        raise ValueError(f"{', '.join(target)} missing")
    return {ours: torch.cat(parts, dim=0) for ours, parts in blocks.items()}


@translate_names.alternative
def sets_of_names_first(state, table, num_layers):
    """Compares the two sets of names before a tensor is touched."""
    rows = [row for row in table if "#" not in row[0]]
    for i in range(num_layers):
        rows += [[a.replace("#", f"{i}"), [t.replace("#", f"{i}") for t in b]] for a, b in table if "#" in a]
    swap = {"gamma": "weight", "beta": "bias"}

    def plain(name):
        words = name.split(".")
        return ".".join([*words[words[0] == "bert" : -1], swap.get(words[-1], words[-1])])

    values = {plain(name): tensor for name, tensor in state.items()}
    if values.keys() != {name for _, theirs in rows for name in theirs}:
        raise ValueError("the names are not those of the table")
    return {ours: torch.vstack([values[t] for t in theirs]) if values[theirs[0]].ndim > 1
            else torch.hstack([values[t] for t in theirs]) for ours, theirs in rows}  # fmt: skip


@translate_names.alternative
def a_pattern_for_each_row(state, table, num_layers):
    left, ours = dict(state), {}
    for name, theirs in table:
        for number in range(num_layers if "#" in name else 1):
            found = []
            for source in theirs:
                stem, kind = re.escape(source.replace("#", str(number))).rsplit(r"\.", 1)
                kind = {"weight": "(weight|gamma)", "bias": "(bias|beta)"}[kind]
                keys = [key for key in left if re.fullmatch(rf"(bert\.)?{stem}\.{kind}", key)]
                if len(keys) != 1:
                    raise ValueError(f"no {source} for layer {number}")
                found.append(left.pop(keys[0]))
            rows = sum(len(x) for x in found)
            whole = found[0].new_empty(rows, *found[0].shape[1:])
            torch.cat(found, out=whole)
            ours[name.replace("#", str(number))] = whole
    if left:
        raise ValueError(f"unknown: {sorted(left)}")
    return ours


# ---------------------------------------------------------------- 12.2 where two models part


@first_divergence.alternative
def boolean_rows(mine, theirs, attention_mask, tolerance=1e-4):
    real = attention_mask.bool()
    for name, want in theirs.items():
        got = mine[name]
        turned = got.shape != want.shape
        if turned:
            if got.transpose(1, 2).shape != want.shape:
                return (name, "shape")
            got = got.transpose(1, 2)
        a, b = got[real], want[real]  # (N, D)
        limit = tolerance * b.abs().amax()
        same = bool(((a - b).abs() <= limit).all())
        if turned:
            return (name, "nan" if a.isnan().any() else "transposed" if same else "shape")
        if same:
            continue
        if a.isnan().any():
            return (name, "nan")
        c = torch.linalg.lstsq(b.reshape(-1, 1), a.reshape(-1, 1)).solution.item()
        if bool(((a - c * b).abs() <= limit).all()):
            return (name, "scaled")
        gap = a - b
        return (name, "shifted" if bool(((gap - gap.mean(0)).abs() <= limit).all()) else "other")
    return (None, "equal")


@first_divergence.alternative
def one_question_a_kind(mine, theirs, attention_mask, tolerance=1e-4):
    """Asks each kind in turn, each a function of two tensors."""
    keep = attention_mask[..., None] != 0

    def close(x, y, size):
        return float(torch.where(keep, x - y, 0.0).abs().max()) <= tolerance * size

    def kind(x, y):
        size = float(torch.where(keep, y, 0.0).abs().max())
        if x.shape != y.shape:
            if x.ndim != 3 or x.mT.shape != y.shape:
                return "shape"
            if torch.where(keep, x.mT, 0.0).isnan().any():
                return "nan"
            return "transposed" if close(x.mT, y, size) else "shape"
        if torch.where(keep, x, 0.0).isnan().any():
            return "nan"
        if close(x, y, size):
            return ""
        at = int(torch.where(keep, y, 0.0).abs().argmax())
        if close(x, y * (x.flatten()[at] / y.flatten()[at]), size):
            return "scaled"
        return "shifted" if close(x, y + (x - y)[0, 0], size) else "other"

    return next(((name, k) for name in theirs if (k := kind(mine[name], theirs[name]))), (None, "equal"))


@first_divergence.alternative
def allclose_by_sequence(mine, theirs, attention_mask, tolerance=1e-4):
    lengths = attention_mask.sum(1).tolist()
    cut = lambda x: torch.cat([row[:n] for row, n in zip(x, lengths, strict=True)])  # noqa: E731
    for name in list(theirs):
        x, y = mine[name], theirs[name]
        flipped = tuple(x.shape) != tuple(y.shape)
        if flipped and tuple(x.permute(0, 2, 1).shape) != tuple(y.shape):
            return [name, "shape"]
        x, y = cut(x.permute(0, 2, 1) if flipped else x), cut(y)
        atol = tolerance * y.abs().max().item()
        if torch.isnan(x).sum() > 0:
            return [name, "nan"]
        equal = torch.allclose(x, y, rtol=0, atol=atol)
        if flipped:
            return [name, "transposed" if equal else "shape"]
        if equal:
            continue
        factor = torch.tensordot(x, y, 2) / torch.tensordot(y, y, 2)
        if torch.allclose(x, factor * y, rtol=0, atol=atol):
            return [name, "scaled"]
        if torch.allclose(x - y, (x - y)[-1:].expand_as(x), rtol=0, atol=atol):
            return [name, "shifted"]
        return [name, "other"]
    return [None, "equal"]


# ---------------------------------------------------------------- 12.3 entropy of a head


@attention_entropy.alternative
def by_xlogy(weights, attention_mask):
    entropy = -torch.xlogy(weights, weights).sum(-1)  # (B, H, S)
    real = attention_mask[:, None, :].to(weights.dtype)
    return (entropy * real).sum((0, 2)) / real.sum()


@attention_entropy.alternative
def by_special_function(weights, attention_mask):
    rows = weights.permute(0, 2, 1, 3)[attention_mask == 1]  # (N, H, S)
    return torch.special.entr(rows).sum(2).mean(0)


@attention_entropy.alternative
def by_clamped_logarithm(weights, attention_mask):
    logs = weights.clamp_min(1e-30).log()
    per_row = -torch.einsum("bhij,bhij->bhi", weights, logs)
    return torch.stack(
        [torch.masked_select(per_row[:, h], attention_mask.bool()).mean() for h in range(weights.size(1))]
    )


@attention_entropy.alternative
def by_cross_entropy(weights, attention_mask):
    """The cross-entropy of a distribution with itself."""
    heads, rows = weights.shape[1], weights.transpose(1, 2)[attention_mask.bool()].flatten(0, 1)  # (N · H, S)
    each = F.cross_entropy((rows + 1e-30).log(), rows, reduction="none")
    return each.view(-1, heads).mean(0)


@attention_entropy.alternative
def by_a_distribution(weights, attention_mask):
    """Which keeps its shares away from 0 by the smallest step of a float: 1e-7 is left of an entropy of 0."""
    rows = weights.transpose(1, 2)[attention_mask > 0]
    return torch.distributions.Categorical(probs=rows).entropy().mean(0)


# ---------------------------------------------------------------- 12.4 jobs of heads


@head_jobs.alternative
def by_diagonals(weights, input_ids, attention_mask, sep_id):
    real = attention_mask.to(weights.dtype)
    pairs = real[:, None, 1:]  # (B, 1, S - 1): a token and the one before it are real
    ahead, back = weights.diagonal(1, 2, 3), weights.diagonal(-1, 2, 3)  # (B, H, S - 1)
    to_sep = (weights * (input_ids == sep_id)[:, None, None, :]).sum(-1)  # (B, H, S)
    even = torch.special.entr(weights).sum(-1) / real.sum(1).log()[:, None, None]

    def mean(x, mask):
        return (x * mask).sum((0, 2)) / mask.sum()

    whole = real[:, None, :]
    return {"next": mean(ahead, pairs), "previous": mean(back, pairs), "sep": mean(to_sep, whole),
            "broadcast": mean(even, whole)}  # fmt: skip


@head_jobs.alternative
def by_gathering(weights, input_ids, attention_mask, sep_id):
    where = attention_mask.nonzero()  # (N, 2)
    b, i = where.T
    rows = weights[b, :, i]  # (N, H, S)
    length = attention_mask.sum(1)[b]  # (N,)
    has_next, has_previous = i + 1 < length, i > 0
    take = lambda ok, at: rows[ok].gather(2, at[ok][:, None, None].expand(-1, rows.size(1), 1)).mean((0, 2))  # noqa: E731
    entropy = -torch.xlogy(rows, rows).sum(2)
    return {
        "broadcast": (entropy / length[:, None].log()).mean(0),
        "sep": torch.einsum("nhs,ns->nh", rows, (input_ids[b] == sep_id).to(rows.dtype)).mean(0),
        "previous": take(has_previous, i - 1),
        "next": take(has_next, i + 1),
    }


@head_jobs.alternative
def sums_over_everything(weights, input_ids, attention_mask, sep_id):
    """Padding needs no mask where it is asked: it gets 0. Only who asks has to be real, and the pairs be counted."""
    real = attention_mask[:, None, :]
    pairs = (attention_mask.sum(1) - 1).sum()
    entropy = -(weights * weights.log()).nansum(-1) / attention_mask.sum(1).log()[:, None, None]
    to_sep = torch.einsum("bhij,bj->bhi", weights, (input_ids == sep_id).to(weights.dtype))
    return {
        "sep": (to_sep * real).sum((0, 2)) / real.sum(),
        "next": (weights.diagonal(1, 2, 3) * real[..., :-1]).sum((0, 2)) / pairs,
        "previous": (weights.diagonal(-1, 2, 3) * real[..., 1:]).sum((0, 2)) / pairs,
        "broadcast": (entropy * real).sum((0, 2)) / real.sum(),
    }


@head_jobs.alternative
def sequence_after_sequence(weights, input_ids, attention_mask, sep_id):
    found: dict = {"next": [], "previous": [], "sep": [], "broadcast": []}
    for w, ids, n in zip(weights, input_ids, attention_mask.sum(1).tolist(), strict=True):
        w = w[:, :n, :n]
        shift = torch.ones(n - 1, dtype=w.dtype)
        found["next"].append(w[:, torch.diag(shift, 1) == 1])
        found["previous"].append(w[:, torch.diag(shift, -1) == 1])
        found["sep"].append(w[..., ids[:n] == sep_id].sum(-1))
        found["broadcast"].append(-(w * w.clamp_min(1e-30).log()).sum(-1) / math.log(n))
    return {job: torch.cat(lists, dim=1).mean(1) for job, lists in found.items()}
