"""Right answers of unit 09 that differ in structure: each must get full marks."""

import collections
import itertools

import torch

from coursework.checks.long_documents import head_tail, pool, predict_documents, windows

# ---------------------------------------------------------------- 09.1 head and tail


@head_tail.alternative
def two_slices(pieces, max_length, head, cls_id, sep_id):
    room = max_length - 2
    if len(pieces) > room:
        pieces = pieces[:head] + pieces[len(pieces) - (room - head) :]
    return [cls_id, *pieces, sep_id]


@head_tail.alternative
def cut_out_the_middle(pieces, max_length, head, cls_id, sep_id):
    kept = list(pieces)
    lost = max(0, len(kept) - (max_length - 2))
    del kept[head : head + lost]
    return [cls_id, *kept, sep_id]


@head_tail.alternative
def places_in_a_tensor(pieces, max_length, head, cls_id, sep_id):
    lost = max(0, len(pieces) - max_length + 2)
    place = torch.arange(len(pieces) - lost)
    place[head:] += lost
    return [cls_id, *torch.tensor(pieces)[place].tolist(), sep_id]


@head_tail.alternative
def piece_by_piece_from_both_ends(pieces, max_length, head, cls_id, sep_id):
    room, front, back = max_length - 2, [], []
    while len(front) < min(head, len(pieces)):
        front.append(pieces[len(front)])
    while len(front) + len(back) < min(room, len(pieces)):
        back.insert(0, pieces[-1 - len(back)])
    return [cls_id, *front, *back, sep_id]


@head_tail.alternative
def a_copy_popped_in_the_middle(pieces, max_length, head, cls_id, sep_id):
    kept = list(pieces)
    while len(kept) > max_length - 2:
        kept.pop(head)
    kept.insert(0, cls_id)
    kept.append(sep_id)
    return kept


@head_tail.alternative
def a_queue_of_the_last(pieces, max_length, head, cls_id, sep_id):
    if len(pieces) <= max_length - 2:
        return cls_id, *pieces, sep_id
    return cls_id, *pieces[:head], *collections.deque(pieces, maxlen=max_length - 2 - head), sep_id


# ---------------------------------------------------------------- 09.2 windows


def _refuse(stride, room):
    if stride < 1 or stride > room:
        raise ValueError(f"stride {stride} does not fit room {room}")


@windows.alternative
def count_them_first(pieces, max_length, stride, cls_id, sep_id):
    room = max_length - 2
    _refuse(stride, room)
    count = 1 + max(0, -(-(len(pieces) - room) // stride))
    return [[cls_id, *pieces[k * stride : k * stride + room], sep_id] for k in range(count)]


@windows.alternative
def while_something_is_unread(pieces, max_length, stride, cls_id, sep_id):
    room = max_length - 2
    _refuse(stride, room)
    found, start, unread = [], 0, True
    while unread:
        part = pieces[start : start + room]
        found.append([cls_id, *part, sep_id])
        unread = start + len(part) < len(pieces)
        start += stride
    return found


@windows.alternative
def shorten_the_rest(pieces, max_length, stride, cls_id, sep_id):
    """The first window, then the windows of what begins a stride later."""
    room = max_length - 2
    _refuse(stride, room)
    first = [cls_id, *pieces[:room], sep_id]
    if len(pieces) <= room:
        return [first]
    return [first, *shorten_the_rest(pieces[stride:], max_length, stride, cls_id, sep_id)]


@windows.alternative
def unfold_and_the_rest(pieces, max_length, stride, cls_id, sep_id):
    """torch cuts the full windows; what they leave is the last one."""
    room = max_length - 2
    _refuse(stride, room)
    if len(pieces) <= room:
        return [[cls_id, *pieces, sep_id]]
    full = torch.tensor(pieces).unfold(0, room, stride)  # (full windows, room)
    found = full.tolist()
    if (len(found) - 1) * stride + room < len(pieces):
        found.append(pieces[len(found) * stride :])
    return [[cls_id, *part, sep_id] for part in found]


@windows.alternative
def a_copy_eaten_up(pieces, max_length, stride, cls_id, sep_id):
    left, room = pieces.copy(), max_length - 2
    if stride not in range(1, room + 1):
        raise ValueError(f"stride {stride} does not fit room {room}")
    found = []
    while True:
        found.append((cls_id, *left[:room], sep_id))
        if len(left) <= room:
            return tuple(found)
        del left[:stride]


# ---------------------------------------------------------------- 09.3 pool


@pool.alternative
def select_each_document(x, document, documents, how):
    rows = [x[document == number] for number in range(documents)]
    return torch.stack([row.mean(0) if how == "mean" else row.max(0).values for row in rows])


@pool.alternative
def added_and_scattered(x, document, documents, how):
    if how == "mean":
        sums = torch.zeros(documents, x.size(1), dtype=x.dtype, device=x.device).index_add(0, document, x)
        return sums / torch.bincount(document, minlength=documents)[:, None]
    lowest = torch.full((documents, x.size(1)), -torch.inf, dtype=x.dtype, device=x.device)
    return lowest.scatter_reduce(0, document[:, None].expand_as(x), x, "amax", include_self=False)


@pool.alternative
def a_matrix_of_who_belongs_where(x, document, documents, how):
    belongs = document[None, :] == torch.arange(documents, device=x.device)[:, None]  # (B, W)
    if how == "mean":
        share = belongs.to(x.dtype)
        return (share / share.sum(1, keepdim=True)) @ x
    return x[None].masked_fill(~belongs[:, :, None], -torch.inf).amax(1)


@pool.alternative
def sorted_and_split(x, document, documents, how):
    order = document.argsort(stable=True)
    parts = x[order].split(torch.bincount(document, minlength=documents).tolist())
    return torch.cat([(p.mean(0) if how == "mean" else p.amax(0))[None] for p in parts])


@pool.alternative
def one_hot_and_einsum(x, document, documents, how):
    belongs = torch.nn.functional.one_hot(document, documents).to(x.dtype)  # (W, B)
    if how == "mean":
        return torch.einsum("wb,wk->bk", belongs, x) / belongs.sum(0)[:, None]
    return torch.where(belongs.T[:, :, None] > 0, x[None], -torch.inf).max(1).values


@pool.alternative
def segments(x, document, documents, how):
    order = document.argsort()
    return torch.segment_reduce(x[order], how, lengths=torch.bincount(document, minlength=documents))


# ---------------------------------------------------------------- 09.4 predict documents


def _padded(some):
    rows = [torch.tensor(ids) for ids in some]
    ids = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
    lengths = torch.tensor([len(row) for row in rows])
    return ids, (torch.arange(ids.size(1))[None, :] < lengths[:, None]).long()


@predict_documents.alternative
def one_after_another_then_split(model, documents, how, batch):
    flat = list(itertools.chain.from_iterable(documents))
    with torch.no_grad():
        logits = torch.cat([model(*_padded(flat[i : i + batch])) for i in range(0, len(flat), batch)])
    parts = logits.split([len(cuts) for cuts in documents])
    pooled = torch.stack([p.mean(0) if how == "mean" else p.amax(0) for p in parts])
    return pooled, pooled.argmax(-1)


@predict_documents.alternative
def sorted_by_length(model, documents, how, batch):
    """Windows of like length together, each put back to its own place."""
    pairs = [(ids, number) for number, cuts in enumerate(documents) for ids in cuts]
    pairs.sort(key=lambda pair: len(pair[0]))
    rows = [None] * len(documents)
    counts = [len(cuts) for cuts in documents]
    with torch.inference_mode():
        while pairs:
            some, pairs = pairs[:batch], pairs[batch:]
            for (_, number), row in zip(some, model(*_padded([ids for ids, _ in some])), strict=True):
                if how == "mean":
                    row = row / counts[number]
                before = rows[number]
                rows[number] = row if before is None else before + row if how == "mean" else torch.maximum(before, row)
        pooled = torch.stack(rows)
    return pooled, pooled.max(1).indices


@predict_documents.alternative
@torch.no_grad()
def numbered_and_scattered(model, documents, how, batch):
    flat = [ids for cuts in documents for ids in cuts]
    document = torch.repeat_interleave(torch.tensor([len(cuts) for cuts in documents]))
    longest = max(map(len, flat))
    ids, mask = torch.zeros(2, len(flat), longest, dtype=torch.int64)
    for row, window in enumerate(flat):
        ids[row, : len(window)] = torch.tensor(window)
        mask[row, : len(window)] = 1
    logits = torch.cat([model(i, m) for i, m in zip(ids.split(batch), mask.split(batch), strict=True)])
    index = document[:, None].expand_as(logits).to(logits.device)
    start = torch.zeros(len(documents), logits.size(1), dtype=logits.dtype, device=logits.device)
    pooled = start.scatter_reduce(0, index, logits, "mean" if how == "mean" else "amax", include_self=False)
    return pooled, pooled.argmax(1)


@predict_documents.alternative
def by_keywords_and_with_a_bool_mask(model, documents, how, batch):
    flat = [ids for cuts in documents for ids in cuts]
    before = torch.is_grad_enabled()
    torch.set_grad_enabled(False)
    logits = []
    for start in range(0, len(flat), batch):
        ids, mask = _padded(flat[start : start + batch])
        logits += model(attention_mask=mask.bool(), input_ids=ids)
    torch.set_grad_enabled(before)
    rows = iter(logits)
    parts = [torch.stack([next(rows) for _ in cuts]) for cuts in documents]
    pooled = torch.stack([part.mean(0) if how == "mean" else part.amax(0) for part in parts])
    return [pooled, pooled.max(1).indices]
