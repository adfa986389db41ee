"""What students really get wrong in unit 09, as code: each must be rejected and called by its name."""

import torch

from coursework.checks.long_documents import head_tail, pool, predict_documents, windows

# ---------------------------------------------------------------- 09.1 head and tail


@head_tail.mistake("only the beginning kept: plain truncation", think="what did the reviewer say in the last sentence?")
def only_the_beginning(pieces, max_length, head, cls_id, sep_id):
    return [cls_id, *pieces[: max_length - 2], sep_id]


@head_tail.mistake("only the end kept", think="what is `head` for?")
def only_the_end(pieces, max_length, head, cls_id, sep_id):
    return [cls_id, *pieces[max(0, len(pieces) - max_length + 2) :], sep_id]


@head_tail.mistake("the whole text cut with [CLS] and [SEP] in it: [SEP] is lost, or the last piece",
                   think="which of the ids must be there, however long the text is?")  # fmt: skip
def sep_cut_off(pieces, max_length, head, cls_id, sep_id):
    ids = [cls_id, *pieces, sep_id]
    if len(ids) <= max_length:
        return ids
    return ids[: head + 1] + ids[len(ids) - 1 - (max_length - head - 1) : -1]


@head_tail.mistake("room for max_length pieces: [CLS] and [SEP] not counted", think="how many ids does the model get?")
def specials_not_counted(pieces, max_length, head, cls_id, sep_id):
    if len(pieces) <= max_length:
        return [cls_id, *pieces, sep_id]
    return [cls_id, *pieces[:head], *pieces[len(pieces) - (max_length - head) :], sep_id]


@head_tail.mistake("a document of up to max_length pieces left whole: [CLS] and [SEP] not counted there",
                   think="how many pieces fit when two places are taken?")  # fmt: skip
def fits_without_specials(pieces, max_length, head, cls_id, sep_id):
    if len(pieces) <= max_length:
        return [cls_id, *pieces, sep_id]
    return [cls_id, *pieces[:head], *pieces[len(pieces) - (max_length - 2 - head) :], sep_id]


@head_tail.mistake("one of the two special tokens counted only", think="which two places are taken already?")
def one_special_counted(pieces, max_length, head, cls_id, sep_id):
    room = max_length - 1
    if len(pieces) <= room:
        return [cls_id, *pieces, sep_id]
    return [cls_id, *pieces[:head], *pieces[len(pieces) - (room - head) :], sep_id]


@head_tail.mistake("[CLS] and [SEP] left out", think="which token's vector goes to the classifier?")
def no_specials(pieces, max_length, head, cls_id, sep_id):
    room = max_length - 2
    return list(pieces) if len(pieces) <= room else [*pieces[:head], *pieces[len(pieces) - (room - head) :]]


@head_tail.mistake("a [SEP] between head and tail", think="how many texts is this?")
def sep_in_the_middle(pieces, max_length, head, cls_id, sep_id):
    room = max_length - 2
    if len(pieces) <= room:
        return [cls_id, *pieces, sep_id]
    return [cls_id, *pieces[:head], sep_id, *pieces[len(pieces) - (room - head) + 1 :], sep_id]


@head_tail.mistake("no tail asked for, and pieces[-0:] taken: that is everything", think="what does x[-0:] give?")
def minus_zero(pieces, max_length, head, cls_id, sep_id):
    room = max_length - 2
    if len(pieces) <= room:
        return [cls_id, *pieces, sep_id]
    return [cls_id, *pieces[:head], *pieces[-(room - head) :], sep_id]


@head_tail.mistake("a short document in which head and tail overlap: pieces come twice",
                   think="is there a middle to be left out when everything fits?")  # fmt: skip
def overlap_comes_twice(pieces, max_length, head, cls_id, sep_id):
    room = max_length - 2
    tail = room - head
    return [cls_id, *pieces[:head], *(pieces[-tail:] if tail else []), sep_id]


@head_tail.mistake("the tail begun one piece too late", think="how many pieces are in x[n - 3 + 1 :]?")
def tail_one_late(pieces, max_length, head, cls_id, sep_id):
    room = max_length - 2
    if len(pieces) <= room:
        return [cls_id, *pieces, sep_id]
    return [cls_id, *pieces[:head], *pieces[len(pieces) - (room - head) + 1 :], sep_id]


@head_tail.mistake(
    "a tail that takes all the room, as if there were no head", think="how much room is left after head?"
)
def tail_of_the_whole_room(pieces, max_length, head, cls_id, sep_id):
    room = max_length - 2
    if len(pieces) <= room:
        return [cls_id, *pieces, sep_id]
    return [cls_id, *pieces[:head], *pieces[len(pieces) - room :], sep_id]


@head_tail.mistake("[CLS] and [SEP] not counted in the tail: two pieces too many", think="which two places are taken?")
def tail_two_too_long(pieces, max_length, head, cls_id, sep_id):
    if len(pieces) <= max_length - 2:
        return [cls_id, *pieces, sep_id]
    return [cls_id, *pieces[:head], *pieces[len(pieces) - (max_length - head) :], sep_id]


@head_tail.mistake("head and tail cut from the ids with [CLS] and [SEP] in them: head has a piece too few",
                   think="does `head` count pieces or ids?")  # fmt: skip
def cut_with_specials(pieces, max_length, head, cls_id, sep_id):
    ids = [cls_id, *pieces, sep_id]
    return ids if len(ids) <= max_length else ids[:head] + ids[len(ids) - (max_length - head) :]


@head_tail.mistake("[CLS] and [SEP] exchanged", think="which of the two comes first?")
def specials_exchanged(pieces, max_length, head, cls_id, sep_id):
    room = max_length - 2
    kept = pieces if len(pieces) <= room else [*pieces[:head], *pieces[len(pieces) - (room - head) :]]
    return [sep_id, *kept, cls_id]


@head_tail.mistake("pieces looked up by their value: an id that comes again is taken for its first place",
                   think="may a word come twice in a review?")  # fmt: skip
def by_value(pieces, max_length, head, cls_id, sep_id):
    last = len(pieces) - (max_length - 2 - head)
    kept = [piece for piece in pieces if pieces.index(piece) < head or pieces.index(piece) >= last]
    return [cls_id, *kept, sep_id]


@head_tail.mistake(
    "an empty document answered with an empty list", think="what does the model get for an empty review?"
)
def nothing_for_nothing(pieces, max_length, head, cls_id, sep_id):
    room = max_length - 2
    kept = pieces if len(pieces) <= room else [*pieces[:head], *pieces[len(pieces) - (room - head) :]]
    return [cls_id, *kept, sep_id] if pieces else []


@head_tail.mistake("head and tail exchanged: head pieces from the end", think="which end is the head?")
def exchanged(pieces, max_length, head, cls_id, sep_id):
    room = max_length - 2
    if len(pieces) <= room:
        return [cls_id, *pieces, sep_id]
    return [cls_id, *pieces[: room - head], *pieces[len(pieces) - head :], sep_id]


@head_tail.mistake("the tail put before the head", think="in which order was the text written?")
def tail_first(pieces, max_length, head, cls_id, sep_id):
    room = max_length - 2
    if len(pieces) <= room:
        return [cls_id, *pieces, sep_id]
    return [cls_id, *pieces[len(pieces) - (room - head) :], *pieces[:head], sep_id]


@head_tail.mistake("the tail turned round", think="in which order does a reader read the end?")
def tail_reversed(pieces, max_length, head, cls_id, sep_id):
    room = max_length - 2
    if len(pieces) <= room:
        return [cls_id, *pieces, sep_id]
    return [cls_id, *pieces[:head], *pieces[::-1][: room - head], sep_id]


@head_tail.mistake("as many pieces from the end as from the front: head is not what is left for the tail",
                   think="how much room is left after the head?")  # fmt: skip
def tail_like_head(pieces, max_length, head, cls_id, sep_id):
    room = max_length - 2
    if len(pieces) <= room:
        return [cls_id, *pieces, sep_id]
    return [cls_id, *pieces[:head], *pieces[len(pieces) - head :], sep_id]


@head_tail.mistake("what comes right after the head, in place of the end", think="where does the tail begin?")
def tail_after_head(pieces, max_length, head, cls_id, sep_id):
    room = max_length - 2
    if len(pieces) <= room:
        return [cls_id, *pieces, sep_id]
    return [cls_id, *pieces[:head], *pieces[head + 1 : room + 1], sep_id]


@head_tail.mistake("half and half, whatever head says", think="what did the caller ask for?")
def halves(pieces, max_length, head, cls_id, sep_id):
    room = max_length - 2
    if len(pieces) <= room:
        return [cls_id, *pieces, sep_id]
    return [cls_id, *pieces[: room // 2], *pieces[len(pieces) - (room - room // 2) :], sep_id]


@head_tail.mistake("[CLS] counted as one of the head's pieces", think="does head count pieces or ids?")
def cls_in_the_head(pieces, max_length, head, cls_id, sep_id):
    room = max_length - 2
    if len(pieces) <= room:
        return [cls_id, *pieces, sep_id]
    front = max(0, head - 1)
    return [cls_id, *pieces[:front], *pieces[len(pieces) - (room - front) :], sep_id]


@head_tail.mistake("a head of 0 taken for no head given (`head or …`)", think="is 0 nothing, or a number?")
def zero_is_nothing(pieces, max_length, head, cls_id, sep_id):
    room = max_length - 2
    if len(pieces) <= room:
        return [cls_id, *pieces, sep_id]
    head = head or room // 4
    return [cls_id, *pieces[:head], *pieces[len(pieces) - (room - head) :], sep_id]


@head_tail.mistake("101 and 102 written into the code", think="whose vocabulary is this?")
def fixed_ids(pieces, max_length, head, cls_id, sep_id):
    room = max_length - 2
    kept = list(pieces) if len(pieces) <= room else [*pieces[:head], *pieces[len(pieces) - (room - head) :]]
    return [101, *kept, 102]


@head_tail.mistake("the caller's list cut with del", think="who else holds this list?")
def cut_in_place(pieces, max_length, head, cls_id, sep_id):
    lost = max(0, len(pieces) - (max_length - 2))
    del pieces[head : head + lost]
    return [cls_id, *pieces, sep_id]


@head_tail.mistake("pieces.insert and pieces.append: [CLS] and [SEP] put into the caller's list",
                   think="who else holds this list?")  # fmt: skip
def put_into_the_callers_list(pieces, max_length, head, cls_id, sep_id):
    room = max_length - 2
    kept = pieces if len(pieces) <= room else [*pieces[:head], *pieces[len(pieces) - (room - head) :]]
    kept.insert(0, cls_id)
    kept.append(sep_id)
    return kept


@head_tail.mistake("short documents filled up with 0", think="who pads, and how long will the batch be?")
def filled_up(pieces, max_length, head, cls_id, sep_id):
    room = max_length - 2
    kept = pieces if len(pieces) <= room else [*pieces[:head], *pieces[len(pieces) - (room - head) :]]
    return [cls_id, *kept, sep_id] + [0] * (room - len(kept))


@head_tail.mistake(
    "an id that comes again left out: dict.fromkeys or a set", think="may a word come twice in a review?"
)
def each_id_once(pieces, max_length, head, cls_id, sep_id):
    room = max_length - 2
    kept = pieces if len(pieces) <= room else [*pieces[:head], *pieces[len(pieces) - (room - head) :]]
    return [cls_id, *dict.fromkeys(kept), sep_id]


@head_tail.mistake("pieces[:head] and pieces[-tail:] taken always: twice in a short document, and all when tail is 0",
                   think="what does x[-0:] give, and is there a middle when everything fits?")  # fmt: skip
def two_slices_always(pieces, max_length, head, cls_id, sep_id):
    return [cls_id, *pieces[:head], *pieces[-(max_length - 2 - head) :], sep_id]


@head_tail.mistake("[MASK] or another id in the middle, for what was left out", think="what may stand between the two?")
def a_sign_in_the_middle(pieces, max_length, head, cls_id, sep_id):
    room = max_length - 2
    if len(pieces) <= room:
        return [cls_id, *pieces, sep_id]
    return [cls_id, *pieces[:head], 103, *pieces[len(pieces) - (room - head) + 1 :], sep_id]


# ---------------------------------------------------------------- 09.2 windows


def _refuse(stride, room):
    if not 1 <= stride <= room:
        raise ValueError(f"stride {stride}, room {room}")


def _cut(pieces, room, stride, cls_id, sep_id):
    """A right answer, to be spoilt."""
    _refuse(stride, room)
    count = 1 + max(0, -(-(len(pieces) - room) // stride))
    return [[cls_id, *pieces[k * stride : k * stride + room], sep_id] for k in range(count)]


@windows.mistake("the stride taken for the overlap, as Hugging Face's tokenizers use the word",
                 think="how many pieces are there between two starts?")  # fmt: skip
def stride_is_the_overlap(pieces, max_length, stride, cls_id, sep_id):
    room = max_length - 2
    _refuse(stride, room)
    return _cut(pieces, room, max(1, room - stride), cls_id, sep_id)


@windows.mistake("windows side by side: the stride not used", think="what becomes of a sentence at a border?")
def side_by_side(pieces, max_length, stride, cls_id, sep_id):
    room = max_length - 2
    _refuse(stride, room)
    return _cut(pieces, room, room, cls_id, sep_id)


@windows.mistake("room for max_length pieces: [CLS] and [SEP] not counted", think="how many ids does the model get?")
def specials_not_counted_in_windows(pieces, max_length, stride, cls_id, sep_id):
    _refuse(stride, max_length - 2)
    return _cut(pieces, max_length, stride, cls_id, sep_id)


@windows.mistake("one of the two special tokens counted only", think="which two places are taken already?")
def one_special_counted_in_windows(pieces, max_length, stride, cls_id, sep_id):
    _refuse(stride, max_length - 2)
    return _cut(pieces, max_length - 1, stride, cls_id, sep_id)


@windows.mistake("[CLS] and [SEP] left out", think="which token's vector goes to the classifier?")
def no_specials_in_windows(pieces, max_length, stride, cls_id, sep_id):
    return [ids[1:-1] for ids in _cut(pieces, max_length - 2, stride, cls_id, sep_id)]


@windows.mistake("[CLS] in the first window only and [SEP] in the last only",
                 think="what does the model see of the windows before, when it reads this one?")  # fmt: skip
def specials_once(pieces, max_length, stride, cls_id, sep_id):
    cuts = _cut(pieces, max_length - 2, stride, cls_id, sep_id)
    last = len(cuts) - 1
    return [ids[k > 0 : len(ids) - (k < last)] for k, ids in enumerate(cuts)]


@windows.mistake("special tokens first and windows of the whole after: only the ends have them",
                 think="is each window a text of its own?")  # fmt: skip
def specials_before_cutting(pieces, max_length, stride, cls_id, sep_id):
    _refuse(stride, max_length - 2)
    ids = [cls_id, *pieces, sep_id]
    count = 1 + max(0, -(-(len(ids) - max_length) // stride))
    return [ids[k * stride : k * stride + max_length] for k in range(count)]


@windows.mistake("what is left at the end lost, because it does not fill a window",
                 think="which pieces have no window?")  # fmt: skip
def the_rest_is_lost(pieces, max_length, stride, cls_id, sep_id):
    room = max_length - 2
    cuts = _cut(pieces, room, stride, cls_id, sep_id)
    return [cuts[0], *(ids for ids in cuts[1:] if len(ids) == max_length)]


@windows.mistake("a document that fills no window lost, and the rest of every other",
                 think="what comes back for a short review?")  # fmt: skip
def only_full_windows(pieces, max_length, stride, cls_id, sep_id):
    return [ids for ids in _cut(pieces, max_length - 2, stride, cls_id, sep_id) if len(ids) == max_length]


@windows.mistake("a window for each start within the document: the last ones lie inside others",
                 think="does the last window show anything new?")  # fmt: skip
def windows_inside_others(pieces, max_length, stride, cls_id, sep_id):
    room = max_length - 2
    _refuse(stride, room)
    starts = range(0, max(1, len(pieces)), stride)
    return [[cls_id, *pieces[start : start + room], sep_id] for start in starts]


@windows.mistake("a start for each stride: the last windows lie inside others, and an empty document has none",
                 think="does the last window show anything new? and what does an empty review get?")  # fmt: skip
def a_start_for_each_stride(pieces, max_length, stride, cls_id, sep_id):
    room = max_length - 2
    _refuse(stride, room)
    return [[cls_id, *pieces[start : start + room], sep_id] for start in range(0, len(pieces), stride)]


@windows.mistake("starts up to n - room, which range leaves out: the window that reaches the end is missing",
                 think="what is the last number of range(0, 6, 3)?")  # fmt: skip
def last_start_left_out(pieces, max_length, stride, cls_id, sep_id):
    room = max_length - 2
    _refuse(stride, room)
    return [[cls_id, *pieces[start : start + room], sep_id] for start in range(0, len(pieces) - room, stride)]


@windows.mistake("windows as long as the stride", think="how many pieces have room in a window?")
def windows_of_a_stride(pieces, max_length, stride, cls_id, sep_id):
    _refuse(stride, max_length - 2)
    starts = range(0, max(1, len(pieces)), stride)
    return [[cls_id, *pieces[start : start + stride], sep_id] for start in starts]


@windows.mistake(
    "short documents answered before the stride is looked at", think="would the caller want to know today?"
)
def short_before_stride(pieces, max_length, stride, cls_id, sep_id):
    room = max_length - 2
    return [[cls_id, *pieces, sep_id]] if len(pieces) <= room else _cut(pieces, room, stride, cls_id, sep_id)


@windows.mistake(
    "empty documents answered before the stride is looked at", think="would the caller want to know today?"
)
def empty_before_stride(pieces, max_length, stride, cls_id, sep_id):
    return _cut(pieces, max_length - 2, stride, cls_id, sep_id) if pieces else [[cls_id, sep_id]]


@windows.mistake("one window more when the last one just reaches the end", think="is there anything left to read?")
def one_too_many(pieces, max_length, stride, cls_id, sep_id):
    room = max_length - 2
    _refuse(stride, room)
    found, start = [], 0
    while True:
        found.append([cls_id, *pieces[start : start + room], sep_id])
        if start + room > len(pieces):
            return found
        start += stride


@windows.mistake("the last window pushed back so that it is full", think="how far is its start from the one before?")
def last_pushed_back(pieces, max_length, stride, cls_id, sep_id):
    room = max_length - 2
    cuts = _cut(pieces, room, stride, cls_id, sep_id)
    if len(cuts) > 1:
        cuts[-1] = [cls_id, *pieces[-room:], sep_id]
    return cuts


@windows.mistake("the last window filled up with 0", think="who pads, and how long will the batch be?")
def last_padded(pieces, max_length, stride, cls_id, sep_id):
    cuts = _cut(pieces, max_length - 2, stride, cls_id, sep_id)
    return [ids + [0] * (max_length - len(ids)) for ids in cuts]


@windows.mistake("a document that fits gives no window", think="is a short review no review?")
def nothing_for_short_ones(pieces, max_length, stride, cls_id, sep_id):
    cuts = _cut(pieces, max_length - 2, stride, cls_id, sep_id)
    return cuts if len(pieces) > max_length - 2 else []


@windows.mistake("an empty document gives no window", think="which answer does an empty review get then?")
def nothing_for_empty_ones(pieces, max_length, stride, cls_id, sep_id):
    return _cut(pieces, max_length - 2, stride, cls_id, sep_id) if pieces else _refuse(stride, max_length - 2) or []


@windows.mistake("a document that fits given as one list, not as a list with one window",
                 think="can the caller ask how many windows there are?")  # fmt: skip
def bare_when_it_fits(pieces, max_length, stride, cls_id, sep_id):
    cuts = _cut(pieces, max_length - 2, stride, cls_id, sep_id)
    return cuts[0] if len(cuts) == 1 else cuts


@windows.mistake("a stride larger than the room taken as it is: pieces in between are never read",
                 think="which pieces are in no window?")  # fmt: skip
def skips(pieces, max_length, stride, cls_id, sep_id):
    if stride < 1:
        raise ValueError("stride is less than 1")
    return _cut_anyhow(pieces, max_length - 2, stride, cls_id, sep_id)


def _cut_anyhow(pieces, room, stride, cls_id, sep_id):
    count = 1 + max(0, -(-(len(pieces) - room) // stride))
    return [[cls_id, *pieces[k * stride : k * stride + room], sep_id] for k in range(count)]


@windows.mistake("a stride of 0 or less not refused", think="when would the last window reach the end?")
def zero_is_taken(pieces, max_length, stride, cls_id, sep_id):
    if stride > max_length - 2:
        raise ValueError("stride larger than the room")
    return _cut_anyhow(pieces, max_length - 2, max(1, stride), cls_id, sep_id)


@windows.mistake("any stride taken, also one that skips pieces or never moves", think="which strides make no sense?")
def any_stride(pieces, max_length, stride, cls_id, sep_id):
    return _cut_anyhow(pieces, max_length - 2, max(1, stride), cls_id, sep_id)


@windows.mistake("a wrong stride quietly put right", think="would the caller want to know?")
def put_right(pieces, max_length, stride, cls_id, sep_id):
    room = max_length - 2
    return _cut(pieces, room, min(max(1, stride), room), cls_id, sep_id)


@windows.mistake("a stride up to max_length allowed", think="how many of the max_length ids are pieces?")
def stride_of_max_length(pieces, max_length, stride, cls_id, sep_id):
    _refuse(stride, max_length)
    return _cut_anyhow(pieces, max_length - 2, stride, cls_id, sep_id)


@windows.mistake("no overlap refused: a stride of exactly the room is allowed",
                 think="does a stride of the room skip anything?")  # fmt: skip
def room_refused(pieces, max_length, stride, cls_id, sep_id):
    _refuse(stride, max_length - 3)
    return _cut(pieces, max_length - 2, stride, cls_id, sep_id)


@windows.mistake("pieces without [CLS] at the overlap: what a window shares with the one before left out",
                 think="what is an overlap for?")  # fmt: skip
def overlap_removed(pieces, max_length, stride, cls_id, sep_id):
    room = max_length - 2
    cuts = _cut(pieces, room, stride, cls_id, sep_id)
    return [cuts[0], *([cls_id, *ids[1 + room - stride :]] for ids in cuts[1:])]


@windows.mistake("101 and 102 written into the code", think="whose vocabulary is this?")
def fixed_ids_in_windows(pieces, max_length, stride, cls_id, sep_id):
    return _cut(pieces, max_length - 2, stride, 101, 102)


@windows.mistake("start and end of each window in place of its ids", think="what does the model read?")
def borders_only(pieces, max_length, stride, cls_id, sep_id):
    room = max_length - 2
    count = len(_cut(pieces, room, stride, cls_id, sep_id))
    return [[k * stride, min(len(pieces), k * stride + room)] for k in range(count)]


@windows.mistake("the first window only: a return inside the loop", think="when does a loop end that returns?")
def first_window_and_home(pieces, max_length, stride, cls_id, sep_id):
    return _cut(pieces, max_length - 2, stride, cls_id, sep_id)[:1]


@windows.mistake("windows counted from the end of the document: the first is the short one",
                 think="at which piece does window 0 begin?")  # fmt: skip
def from_the_end(pieces, max_length, stride, cls_id, sep_id):
    cuts = _cut(pieces[::-1], max_length - 2, stride, sep_id, cls_id)
    return [ids[::-1] for ids in cuts[::-1]]


@windows.mistake("windows in the wrong order, the last first", think="in which order was the text written?")
def last_window_first(pieces, max_length, stride, cls_id, sep_id):
    return _cut(pieces, max_length - 2, stride, cls_id, sep_id)[::-1]


@windows.mistake("one list of all ids (+= or extend), not a list of windows", think="where does a window end?")
def one_flat_list(pieces, max_length, stride, cls_id, sep_id):
    return [i for ids in _cut(pieces, max_length - 2, stride, cls_id, sep_id) for i in ids]


@windows.mistake("what is left at the end put into the window before, which becomes too long",
                 think="how many places has the model?")  # fmt: skip
def rest_into_the_window_before(pieces, max_length, stride, cls_id, sep_id):
    room = max_length - 2
    cuts = _cut(pieces, room, stride, cls_id, sep_id)
    if len(cuts) > 1:
        cuts[-2:] = [[*cuts[-2][:-1], *cuts[-1][1 + room - stride :]]]
    return cuts


@windows.mistake("the end known by its id: a window that ends with the id of the last piece taken for the last",
                 think="may a word come twice in a review?")  # fmt: skip
def end_known_by_its_id(pieces, max_length, stride, cls_id, sep_id):
    cuts = _cut(pieces, max_length - 2, stride, cls_id, sep_id)
    last = next((k for k, ids in enumerate(cuts) if ids[-2] == cuts[-1][-2]), 0)
    return cuts[: last + 1]


@windows.mistake("pieces deleted from the caller's list on the way (del or pop)", think="who else holds this list?")
def eaten_up(pieces, max_length, stride, cls_id, sep_id):
    cuts = _cut(pieces, max_length - 2, stride, cls_id, sep_id)
    del pieces[: (len(cuts) - 1) * stride]
    return cuts


@windows.mistake("windows without any pieces", think="what does the slice have in it?")
def no_pieces(pieces, max_length, stride, cls_id, sep_id):
    return [[cls_id] for _ in _cut(pieces, max_length - 2, stride, cls_id, sep_id)]


# ---------------------------------------------------------------- 09.3 pool


def _each(x, document, documents, mean, largest, how):
    rows = [x[document == number] for number in range(documents)]
    return torch.stack([mean(row) if how == "mean" else largest(row) for row in rows])


def _mean(rows):
    return rows.mean(0)


def _max(rows):
    return rows.amax(0)


@pool.mistake("sums: not divided by the number of windows", think="is a longer review a better one?")
def sums(x, document, documents, how):
    return _each(x, document, documents, lambda rows: rows.sum(0), _max, how)


@pool.mistake("every document divided by the same number of windows", think="how many windows has each?")
def divided_by_the_average(x, document, documents, how):
    share = len(x) / documents
    return _each(x, document, documents, lambda rows: rows.sum(0) / share, _max, how)


@pool.mistake("divided by the most windows that a document has: as if padding windows were windows",
              think="how many windows has each?")  # fmt: skip
def divided_by_the_most(x, document, documents, how):
    most = int(torch.bincount(document).max())
    return _each(x, document, documents, lambda rows: rows.sum(0) / most, _max, how)


@pool.mistake("the zeros that scatter_reduce starts from counted as a window (include_self)",
              think="how many rows does the mean of one window have?")  # fmt: skip
def start_counts(x, document, documents, how):
    index, start = document[:, None].expand_as(x), x.new_zeros(documents, x.size(1))
    return start.scatter_reduce(0, index, x, "mean" if how == "mean" else "amax")


@pool.mistake("a number like -100 in place of minus infinity", think="can a score be below it?")
def finite_minimum(x, document, documents, how):
    return _each(x, document, documents, _mean, lambda rows: rows.amax(0).clamp(min=-100.0), how)


@pool.mistake("every document given the same number of windows: x.view(documents, …)",
              think="how many windows has each?")  # fmt: skip
def equal_shares(x, document, documents, how):
    if len(x) % documents:
        raise RuntimeError("shape is invalid for input")
    parts = x.view(documents, -1, x.size(1))
    return parts.mean(1) if how == "mean" else parts.amax(1)


@pool.mistake("windows counted off in order of documents: document numbers only counted, not followed",
              think="which document is window 3 from, if the windows are mixed?")  # fmt: skip
def in_order(x, document, documents, how):
    parts = x.split(torch.bincount(document, minlength=documents).tolist())
    return torch.stack([_mean(part) if how == "mean" else _max(part) for part in parts])


@pool.mistake("a mean over all windows of all documents", think="may one review's windows judge another?")
def over_all(x, document, documents, how):
    found = _mean(x) if how == "mean" else _max(x)
    return found.expand(documents, -1)


@pool.mistake("the largest looked for among 0 as well: a maximum that starts from zeros",
              think="what is the largest of -3 and -5?")  # fmt: skip
def max_from_zero(x, document, documents, how):
    return _each(x, document, documents, _mean, lambda rows: rows.amax(0).clamp(min=0), how)


@pool.mistake("documents with fewer windows padded with 0, which then counts as a largest value",
              think="what is the largest of -3, -5 and padding?")  # fmt: skip
def max_with_padding(x, document, documents, how):
    most = int(torch.bincount(document).max())
    padded = [torch.cat([x[document == d], x.new_zeros(most - int((document == d).sum()), x.size(1))])
              for d in range(documents)]  # fmt: skip
    return torch.stack([rows.amax(0) if how == "max" else x[document == d].mean(0) for d, rows in enumerate(padded)])


@pool.mistake("the whole row of the window with the largest first number",
              think="may each column have its largest in another window?")  # fmt: skip
def row_by_first_column(x, document, documents, how):
    return _each(x, document, documents, _mean, lambda rows: rows[rows[:, 0].argmax()], how)


@pool.mistake("the whole row of the window that has the largest number of all",
              think="may each column have its largest in another window?")  # fmt: skip
def row_of_the_largest(x, document, documents, how):
    return _each(x, document, documents, _mean, lambda rows: rows[rows.amax(1).argmax()], how)


@pool.mistake("the value farthest from 0 in place of the largest", think="is -9 larger than 2?")
def farthest_from_zero(x, document, documents, how):
    def far(rows):
        return rows.gather(0, rows.abs().argmax(0, keepdim=True))[0]

    return _each(x, document, documents, _mean, far, how)


@pool.mistake(
    "the places of the largest values (argmax) in place of the values", think="which of the two does max give?"
)
def places(x, document, documents, how):
    return _each(x, document, documents, _mean, lambda rows: rows.argmax(0).to(rows.dtype), how)


@pool.mistake("the smallest values", think="which end of the numbers is asked for?")
def smallest(x, document, documents, how):
    return _each(x, document, documents, _mean, lambda rows: rows.amin(0), how)


@pool.mistake("the median in place of the mean", think="what does one loud window do to each of the two?")
def median(x, document, documents, how):
    return _each(x, document, documents, lambda rows: rows.median(0).values, _max, how)


@pool.mistake("mean and max exchanged", think="what does how say?")
def exchanged_words(x, document, documents, how):
    return _each(x, document, documents, _max, _mean, how)


@pool.mistake("a mean whatever how says", think="what is how for?")
def mean_always(x, document, documents, how):
    return _each(x, document, documents, _mean, _mean, how)


@pool.mistake("a max whatever how says", think="what is how for?")
def max_always(x, document, documents, how):
    return _each(x, document, documents, _max, _max, how)


@pool.mistake("the first window of each document only", think="what do the other windows say?")
def first_window(x, document, documents, how):
    return _each(x, document, documents, lambda rows: rows[0], lambda rows: rows[0], how)


@pool.mistake("the last window of each document only: each overwrote the one before",
              think="what does out[document] = x keep of several windows?")  # fmt: skip
def last_window(x, document, documents, how):
    return _each(x, document, documents, lambda rows: rows[-1], lambda rows: rows[-1], how)


@pool.mistake(
    "a running mean, (old + new) / 2: the last window counts half", think="what does the first of four weigh?"
)
def running_mean(x, document, documents, how):
    def run(rows):
        found = rows[0]
        for row in rows[1:]:
            found = (found + row) / 2
        return found

    return _each(x, document, documents, run, _max, how)


@pool.mistake("softmax before pooling", think="is x a table of probabilities?")
def probabilities(x, document, documents, how):
    return _each(x.softmax(-1), document, documents, _mean, _max, how)


@pool.mistake("one number a document: pooled over the columns too", think="what shape has one row a document?")
def over_columns(x, document, documents, how):
    return _each(x, document, documents, lambda rows: rows.mean(), lambda rows: rows.amax(), how)


@pool.mistake("one row a window: the pooled row given to each window", think="how many rows has (B, K)?")
def row_for_each_window(x, document, documents, how):
    return _each(x, document, documents, _mean, _max, how)[document]


@pool.mistake(
    "the values taken out of the graph (detach, item or tolist)", think="how shall the encoder learn from it?"
)
def detached(x, document, documents, how):
    return _each(x.detach(), document, documents, _mean, _max, how)


@pool.mistake("the largest values taken out of the graph (item, tolist, data)",
              think="how shall the encoder learn from it?")  # fmt: skip
def max_detached(x, document, documents, how):
    return _each(x, document, documents, _mean, lambda rows: rows.detach().amax(0), how)


@pool.mistake("rows of zeros for documents of one window: only several windows pooled",
              think="what is the mean of one row?")  # fmt: skip
def single_windows_forgotten(x, document, documents, how):
    found = _each(x, document, documents, _mean, _max, how)
    return torch.where(torch.bincount(document)[:, None] > 1, found, 0.0)


@pool.mistake("divided by the number of all windows: x times a mask, then a mean over all rows",
              think="how many windows has each?")  # fmt: skip
def divided_by_all_windows(x, document, documents, how):
    return _each(x, document, documents, lambda rows: rows.sum(0) / len(x), _max, how)


@pool.mistake("divided by one window more than there are", think="what is the mean of one row?")
def divided_by_one_more(x, document, documents, how):
    return _each(x, document, documents, lambda rows: rows.sum(0) / (len(rows) + 1), _max, how)


@pool.mistake("a smooth maximum (logsumexp) in place of the largest", think="which number did a window really have?")
def smooth_maximum(x, document, documents, how):
    return _each(x, document, documents, _mean, lambda rows: rows.logsumexp(0), how)


@pool.mistake("the whole row of the window with the largest sum",
              think="may each column have its largest in another window?")  # fmt: skip
def row_of_the_largest_sum(x, document, documents, how):
    return _each(x, document, documents, _mean, lambda rows: rows[rows.sum(1).argmax()], how)


@pool.mistake("rows in the order in which documents first come, not in that of their numbers",
              think="which document belongs in row 0?")  # fmt: skip
def in_order_of_appearance(x, document, documents, how):
    return _each(x, document, documents, _mean, _max, how)[list(dict.fromkeys(document.tolist()))]


@pool.mistake("x sorted by document, but document itself not", think="whose row is x[0] after sorting?")
def sorted_without_its_numbers(x, document, documents, how):
    return _each(x[document.argsort(stable=True)], document, documents, _mean, _max, how)


@pool.mistake("a row for each run of windows (unique_consecutive), also where a document comes back later",
              think="how many rows has (B, K)?")  # fmt: skip
def a_row_for_each_run(x, document, documents, how):
    parts = x.split(torch.unique_consecutive(document, return_counts=True)[1].tolist())
    return torch.stack([_mean(part) if how == "mean" else _max(part) for part in parts])


@pool.mistake("documents counted from 1", think="which number has the first document?")
def documents_from_one(x, document, documents, how):
    return _each(x, document - 1, documents, _mean, lambda rows: rows.amax(0) if len(rows) else rows.sum(0), how)


@pool.mistake("squeeze() at the end: a single document loses its axis", think="which shape has one document's row?")
def axis_squeezed(x, document, documents, how):
    return _each(x, document, documents, _mean, _max, how).squeeze()


@pool.mistake("rows laid end to end (torch.cat), not stacked", think="which shape do B rows of K numbers make?")
def end_to_end(x, document, documents, how):
    return _each(x, document, documents, _mean, _max, how).flatten()


# ---------------------------------------------------------------- 09.4 predict documents


def _pad(some, masked=True, left=False):
    longest = max(map(len, some))
    fill = [[0] * (longest - len(ids)) for ids in some]
    rows = [f + ids if left else ids + f for ids, f in zip(some, fill, strict=True)]
    ones = [[int(masked or 1) * 1 for _ in ids] for ids in some]
    mask = [[int(not masked)] * len(f) + o if left else o + [int(not masked)] * len(f)
            for o, f in zip(ones, fill, strict=True)]  # fmt: skip
    return torch.tensor(rows), torch.tensor(mask)


def _of_windows(model, documents, batch, pad=_pad):
    """Logits of all windows in order, and the document of each."""
    flat = [(number, ids) for number, cuts in enumerate(documents) for ids in cuts]
    with torch.no_grad():
        parts = [model(*pad([ids for _, ids in flat[i : i + batch]])) for i in range(0, len(flat), batch)]
    logits = torch.cat(parts)
    return logits, torch.tensor([number for number, _ in flat], device=logits.device)


def _grouped(logits, document, how):
    parts = logits.split(torch.bincount(document).tolist())
    return torch.stack([part.mean(0) if how == "mean" else part.amax(0) for part in parts])


@predict_documents.mistake("the model asked once for each document: batches of one document's windows",
                           think="what does the model do while it reads one short review?")  # fmt: skip
def one_document_at_a_time(model, documents, how, batch):
    with torch.no_grad():
        rows = [torch.cat([model(*_pad(cuts[i : i + batch])) for i in range(0, len(cuts), batch)])
                for cuts in documents]  # fmt: skip
    pooled = torch.stack([row.mean(0) if how == "mean" else row.amax(0) for row in rows])
    return pooled, pooled.argmax(1)


@predict_documents.mistake("squeeze() at the end: a single document loses its axis",
                           think="which shape do one document's logits have?")  # fmt: skip
def squeezed(model, documents, how, batch):
    logits, document = _of_windows(model, documents, batch)
    pooled = _grouped(logits, document, how)
    return pooled.squeeze(), pooled.argmax(1).squeeze()


@predict_documents.mistake("a max whatever how says", think="what is how for?")
def always_max(model, documents, how, batch):
    logits, document = _of_windows(model, documents, batch)
    pooled = _grouped(logits, document, "max")
    return pooled, pooled.argmax(1)


@predict_documents.mistake("mean and max exchanged", think="what does how say?")
def how_exchanged(model, documents, how, batch):
    logits, document = _of_windows(model, documents, batch)
    pooled = _grouped(logits, document, "max" if how == "mean" else "mean")
    return pooled, pooled.argmax(1)


@predict_documents.mistake("all windows of a document at once, whatever batch says",
                           think="what if a document has a hundred windows?")  # fmt: skip
def a_document_is_a_batch(model, documents, how, batch):
    with torch.no_grad():
        rows = [model(*_pad(cuts)) for cuts in documents]
    pooled = torch.stack([row.mean(0) if how == "mean" else row.amax(0) for row in rows])
    return pooled, pooled.argmax(1)


@predict_documents.mistake("all windows of all documents at once, whatever batch says",
                           think="what is batch for?")  # fmt: skip
def everything_at_once(model, documents, how, batch):
    logits, document = _of_windows(model, documents, 1000)
    pooled = _grouped(logits, document, how)
    return pooled, pooled.argmax(1)


@predict_documents.mistake("one window a call", think="how many windows may one call have?")
def one_window_a_call(model, documents, how, batch):
    logits, document = _of_windows(model, documents, 1)
    pooled = _grouped(logits, document, how)
    return pooled, pooled.argmax(1)


@predict_documents.mistake("`batch` documents a call in place of `batch` windows", think="what does batch count?")
def batch_of_documents(model, documents, how, batch):
    rows = []
    with torch.no_grad():
        for i in range(0, len(documents), batch):
            some = documents[i : i + batch]
            rows += model(*_pad([ids for cuts in some for ids in cuts])).split([len(cuts) for cuts in some])
    pooled = torch.stack([row.mean(0) if how == "mean" else row.amax(0) for row in rows])
    return pooled, pooled.argmax(1)


@predict_documents.mistake("padding not masked: the mask is all ones", think="what does the model read there?")
def padding_is_read(model, documents, how, batch):
    logits, document = _of_windows(model, documents, batch, lambda some: _pad(some, masked=False))
    pooled = _grouped(logits, document, how)
    return pooled, pooled.argmax(1)


@predict_documents.mistake("padding on the left: all tokens of short windows have other positions",
                           think="which position has [CLS]?")  # fmt: skip
def padding_on_the_left(model, documents, how, batch):
    logits, document = _of_windows(model, documents, batch, lambda some: _pad(some, left=True))
    pooled = _grouped(logits, document, how)
    return pooled, pooled.argmax(1)


@predict_documents.mistake("windows cut to the shortest of the batch: no padding needed, but words are lost",
                           think="what stood in the longer windows?")  # fmt: skip
def cut_to_the_shortest(model, documents, how, batch):
    def cut(some):
        least = min(map(len, some))
        return _pad([ids[:least] for ids in some])

    logits, document = _of_windows(model, documents, batch, cut)
    pooled = _grouped(logits, document, how)
    return pooled, pooled.argmax(1)


@predict_documents.mistake("softmax before pooling: probabilities in place of logits",
                           think="what was asked for, logits or probabilities?")  # fmt: skip
def pools_probabilities(model, documents, how, batch):
    logits, document = _of_windows(model, documents, batch)
    pooled = _grouped(logits.softmax(-1), document, how)
    return pooled, pooled.argmax(1)


@predict_documents.mistake("softmax after pooling: probabilities in place of logits",
                           think="what was asked for, logits or probabilities?")  # fmt: skip
def softmax_at_the_end(model, documents, how, batch):
    pooled = _grouped(*_of_windows(model, documents, batch), how).softmax(-1)
    return pooled, pooled.argmax(1)


@predict_documents.mistake("labels by vote: each window votes for its own class",
                           think="which label do the pooled logits have?")  # fmt: skip
def labels_by_vote(model, documents, how, batch):
    logits, document = _of_windows(model, documents, batch)
    votes = torch.stack([torch.bincount(part.argmax(1), minlength=logits.size(1)).argmax()
                         for part in logits.split(torch.bincount(document).tolist())])  # fmt: skip
    return _grouped(logits, document, how), votes


@predict_documents.mistake("labels from mean probabilities, while the logits are pooled otherwise",
                           think="which label do the pooled logits have?")  # fmt: skip
def labels_by_probability(model, documents, how, batch):
    logits, document = _of_windows(model, documents, batch)
    return _grouped(logits, document, how), _grouped(logits.softmax(-1), document, "mean").argmax(1)


@predict_documents.mistake("the label of the first window", think="what do the other windows say?")
def label_of_the_first(model, documents, how, batch):
    logits, document = _of_windows(model, documents, batch)
    first = torch.stack([part[0] for part in logits.split(torch.bincount(document).tolist())])
    return _grouped(logits, document, how), first.argmax(1)


@predict_documents.mistake("one label a window", think="how many documents are there?")
def label_of_each_window(model, documents, how, batch):
    logits, document = _of_windows(model, documents, batch)
    return _grouped(logits, document, how), logits.argmax(1)


@predict_documents.mistake("argmax over documents in place of classes", think="which axis has the classes?")
def argmax_over_documents(model, documents, how, batch):
    pooled = _grouped(*_of_windows(model, documents, batch), how)
    return pooled, pooled.argmax(0)


@predict_documents.mistake("the largest logit in place of its class", think="what is a label?")
def largest_logit(model, documents, how, batch):
    pooled = _grouped(*_of_windows(model, documents, batch), how)
    return pooled, pooled.amax(1)


@predict_documents.mistake("the logits of each document's first window only: truncation after all",
                           think="why were the other windows read?")  # fmt: skip
def first_window_only(model, documents, how, batch):
    logits, document = _of_windows(model, documents, batch)
    pooled = torch.stack([part[0] for part in logits.split(torch.bincount(document).tolist())])
    return pooled, pooled.argmax(1)


@predict_documents.mistake("sums over windows in place of means", think="is a longer review a better one?")
def sums_of_windows(model, documents, how, batch):
    logits, document = _of_windows(model, documents, batch)
    parts = logits.split(torch.bincount(document).tolist())
    pooled = torch.stack([part.sum(0) if how == "mean" else part.amax(0) for part in parts])
    return pooled, pooled.argmax(1)


@predict_documents.mistake("windows weighed by their length", think="was a weighted mean asked for?")
def weighed_by_length(model, documents, how, batch):
    logits, document = _of_windows(model, documents, batch)
    rows = []
    for part, cuts in zip(logits.split(torch.bincount(document).tolist()), documents, strict=True):
        weights = torch.tensor([len(ids) for ids in cuts], dtype=part.dtype, device=part.device)
        rows.append((weights @ part) / weights.sum() if how == "mean" else part.amax(0))
    pooled = torch.stack(rows)
    return pooled, pooled.argmax(1)


@predict_documents.mistake("a mean of batch means: a document whose windows lie in two batches is averaged twice",
                           think="what weight has a window that came alone in its batch?")  # fmt: skip
def mean_of_batch_means(model, documents, how, batch):
    flat = [(number, ids) for number, cuts in enumerate(documents) for ids in cuts]
    found = [[] for _ in documents]
    with torch.no_grad():
        for i in range(0, len(flat), batch):
            some = flat[i : i + batch]
            logits = model(*_pad([ids for _, ids in some]))
            for number in sorted({number for number, _ in some}):
                part = logits[[n == number for n, _ in some]]
                found[number].append(part.mean(0) if how == "mean" else part.amax(0))
    rows = [torch.stack(parts) for parts in found]
    pooled = torch.stack([row.mean(0) if how == "mean" else row.amax(0) for row in rows])
    return pooled, pooled.argmax(1)


@predict_documents.mistake("the windows of the last, incomplete batch left out", think="what is 17 divided by 5?")
def last_batch_lost(model, documents, how, batch):
    flat = [(number, ids) for number, cuts in enumerate(documents) for ids in cuts]
    whole = len(flat) // batch * batch or len(flat)
    with torch.no_grad():
        logits = torch.cat([model(*_pad([ids for _, ids in flat[i : i + batch]])) for i in range(0, whole, batch)])
    document = torch.tensor([number for number, _ in flat[:whole]], device=logits.device)
    rows = []
    for number in range(len(documents)):
        part = logits[document == number]
        rows.append(
            logits.new_zeros(logits.size(1)) if not len(part) else part.mean(0) if how == "mean" else part.amax(0)
        )
    pooled = torch.stack(rows)
    return pooled, pooled.argmax(1)


@predict_documents.mistake("windows sorted by length, and their logits not put back",
                           think="whose logits are in row 0 after sorting?")  # fmt: skip
def not_put_back(model, documents, how, batch):
    flat = sorted((ids for cuts in documents for ids in cuts), key=len)
    with torch.no_grad():
        logits = torch.cat([model(*_pad(flat[i : i + batch])) for i in range(0, len(flat), batch)])
    parts = logits.split([len(cuts) for cuts in documents])
    pooled = torch.stack([part.mean(0) if how == "mean" else part.amax(0) for part in parts])
    return pooled, pooled.argmax(1)


@predict_documents.mistake("a mean whatever how says", think="what is how for?")
def always_the_mean(model, documents, how, batch):
    pooled = _grouped(*_of_windows(model, documents, batch), "mean")
    return pooled, pooled.argmax(1)


@predict_documents.mistake("the whole row of the surest window in place of the largest of each class",
                           think="may each class have its largest logit in another window?")  # fmt: skip
def row_of_the_surest(model, documents, how, batch):
    logits, document = _of_windows(model, documents, batch)
    parts = logits.split(torch.bincount(document).tolist())
    pooled = torch.stack([part.mean(0) if how == "mean" else part[part.amax(1).argmax()] for part in parts])
    return pooled, pooled.argmax(1)


@predict_documents.mistake("asked with gradients switched on, and the way back dropped afterwards (detach)",
                           think="when is the memory for the way back taken?")  # fmt: skip
def detached_afterwards(model, documents, how, batch):
    flat = [(number, ids) for number, cuts in enumerate(documents) for ids in cuts]
    parts = [model(*_pad([ids for _, ids in flat[i : i + batch]])).detach() for i in range(0, len(flat), batch)]
    logits = torch.cat(parts)
    pooled = _grouped(logits, torch.tensor([number for number, _ in flat], device=logits.device), how)
    return pooled, pooled.argmax(1)


@predict_documents.mistake("asked with gradients switched on", think="does anybody learn here?")
def with_gradients(model, documents, how, batch):
    flat = [(number, ids) for number, cuts in enumerate(documents) for ids in cuts]
    logits = torch.cat([model(*_pad([ids for _, ids in flat[i : i + batch]])) for i in range(0, len(flat), batch)])
    pooled = _grouped(logits, torch.tensor([number for number, _ in flat], device=logits.device), how)
    return pooled, pooled.argmax(1)


@predict_documents.mistake("one result alone", think="which two things were asked for?")
def logits_alone(model, documents, how, batch):
    return _grouped(*_of_windows(model, documents, batch), how)


def _without_gradients(model, documents, how, batch, pad=_pad):
    """A right answer, but for what `pad` does."""
    pooled = _grouped(*_of_windows(model, documents, batch, pad), how)
    return pooled, pooled.argmax(1)


@predict_documents.mistake("the labels first, the logits second", think="in which order are they asked for?")
def results_exchanged(model, documents, how, batch):
    return _without_gradients(model, documents, how, batch)[::-1]


@predict_documents.mistake("mask and ids exchanged in the call", think="which of the two comes first?")
def mask_first(model, documents, how, batch):
    return _without_gradients(model, documents, how, batch, lambda some: _pad(some)[::-1])


@predict_documents.mistake("the mask reversed: 1 for padding", think="which tokens shall the model read?")
def mask_reversed(model, documents, how, batch):
    def pad(some):
        ids, mask = _pad(some)
        return ids, 1 - mask

    return _without_gradients(model, documents, how, batch, pad)


@predict_documents.mistake("places of padding filled with another id than 0", think="which id was asked for?")
def filled_with_another_id(model, documents, how, batch):
    def pad(some):
        ids, mask = _pad(some)
        return ids + (1 - mask), mask

    return _without_gradients(model, documents, how, batch, pad)


@predict_documents.mistake("padding written into the caller's windows", think="who else holds these lists?")
def padding_for_the_caller(model, documents, how, batch):
    def pad(some):
        ids, mask = _pad(some)
        for window in some:
            window += [0] * (ids.size(1) - len(window))
        return ids, mask

    return _without_gradients(model, documents, how, batch, pad)


@predict_documents.mistake("[CLS] and [SEP] cut off before the model reads", think="are special tokens in the windows?")
def specials_cut_off(model, documents, how, batch):
    return _without_gradients(model, documents, how, batch, lambda some: _pad([ids[1:-1] or ids for ids in some]))


@predict_documents.mistake("one more window a call than `batch`", think="what is the last number of range(0, batch)?")
def one_more_a_call(model, documents, how, batch):
    return _without_gradients(model, documents, how, batch + 1)


@predict_documents.mistake("the smallest logit's class", think="what does a large logit say?")
def smallest_logit(model, documents, how, batch):
    pooled = _grouped(*_of_windows(model, documents, batch), how)
    return pooled, pooled.argmin(1)


@predict_documents.mistake("labels (B, 1): the axis of the classes kept", think="which shape do B labels have?")
def axis_kept(model, documents, how, batch):
    pooled = _grouped(*_of_windows(model, documents, batch), how)
    return pooled, pooled.argmax(1, keepdim=True)


@predict_documents.mistake("labels from the largest logits, while the mean is asked for",
                           think="which label do the pooled logits have?")  # fmt: skip
def labels_by_the_largest(model, documents, how, batch):
    logits, document = _of_windows(model, documents, batch)
    return _grouped(logits, document, how), _grouped(logits, document, "max").argmax(1)


@predict_documents.mistake("the model frozen (requires_grad_(False)) in place of asking without gradients",
                           think="who trains this model next, and what will it learn?")  # fmt: skip
def model_frozen(model, documents, how, batch):
    model.requires_grad_(False)
    return with_gradients(model, documents, how, batch)


@predict_documents.mistake("gradients switched off and never on again", think="what does the next training learn?")
def never_on_again(model, documents, how, batch):
    torch.set_grad_enabled(False)
    return _without_gradients(model, documents, how, batch)
