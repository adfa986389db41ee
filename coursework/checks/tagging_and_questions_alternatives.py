"""Right answers of unit 10 that differ in structure: each must get full marks."""

import re
import string
from bisect import bisect_left, bisect_right
from collections import Counter
from itertools import groupby, pairwise

import torch

from coursework.checks.tagging_and_questions import (
    align_labels,
    best_span,
    entity_f1,
    exact_match_and_f1,
    find_entities,
    span_targets,
)

# ---------------------------------------------------------------- 10.1 align labels


@align_labels.alternative
def remembers_the_word_before(word_labels, word_ids):
    rows = []
    for labels, words in zip(word_labels, word_ids.tolist(), strict=True):
        row, before = [], None
        for word in words:
            row.append(-100 if word == -1 or word == before else labels[word])
            before = word
        rows.append(row)
    return torch.tensor(rows, device=word_ids.device)


@align_labels.alternative
def shifted_and_compared(word_labels, word_ids):
    """No loop over pieces: a table of labels, looked up where the word is another than the one before."""
    words = max(map(len, word_labels))
    table = torch.tensor([row + [0] * (words - len(row)) for row in word_labels], device=word_ids.device)
    begins = torch.ones_like(word_ids, dtype=torch.bool)
    begins[:, 1:] = word_ids[:, 1:] != word_ids[:, :-1]
    found = table.gather(1, word_ids.clamp(min=0))
    return found.masked_fill(~begins | (word_ids < 0), -100)


@align_labels.alternative
def word_by_word(word_labels, word_ids):
    out = torch.full_like(word_ids, -100)
    for row, labels in enumerate(word_labels):
        for word, label in enumerate(labels):
            places = (word_ids[row] == word).nonzero()
            if len(places):
                out[row, places[0]] = label
    return out


@align_labels.alternative
def runs_of_one_word(word_labels, word_ids):
    rows = []
    for labels, words in zip(word_labels, word_ids.tolist(), strict=True):
        row = []
        for word, run in groupby(words):
            row += [labels[word] if word >= 0 else -100] + [-100] * (len(list(run)) - 1)
        rows.append(row)
    return torch.tensor(rows, device=word_ids.device)


@align_labels.alternative
def words_seen_and_int32(word_labels, word_ids):
    rows = []
    for labels, words in zip(word_labels, word_ids, strict=True):
        seen, row = {-1}, []
        for word in words:
            row.append(-100 if word.item() in seen else labels[word])
            seen.add(word.item())
        rows.append(torch.tensor(row, dtype=torch.int32))
    return torch.stack(rows)


@align_labels.alternative
def a_copy_overwritten_from_the_right(word_labels, word_ids):
    out = word_ids.clone()
    for row, labels in zip(out, word_labels, strict=True):
        for i in range(len(row) - 1, -1, -1):
            word = int(row[i])
            row[i] = -100 if word < 0 or (i and int(row[i - 1]) == word) else labels[word]
    return out


# ---------------------------------------------------------------- 10.2 find entities


@find_entities.alternative
def jump_from_entity_to_entity(tags):
    found, i = [], 0
    while i < len(tags):
        if tags[i] == "O":
            i += 1
            continue
        kind, start = tags[i].split("-", 1)[1], i
        i += 1
        while i < len(tags) and tags[i] == f"I-{kind}":
            i += 1
        found.append((kind, start, i))
    return found


@find_entities.alternative
def grow_the_last_one(tags):
    found = []
    for i, tag in enumerate(tags):
        mark, _, kind = tag.partition("-")
        if mark == "O":
            continue
        if mark == "I" and found and found[-1][0] == kind and found[-1][2] == i:
            found[-1][2] = i + 1
        else:
            found.append([kind, i, i + 1])
    return [tuple(entity) for entity in found]


@find_entities.alternative
def numbers_then_groups(tags):
    """Mark where each entity begins, number the runs by it, and group."""
    kinds = [tag[2:] for tag in tags]
    number, numbers = 0, []
    for i, tag in enumerate(tags):
        begins = tag.startswith("B") or i == 0 or kinds[i] != kinds[i - 1]
        number += begins
        numbers.append(number)
    found = []
    for _, places in groupby(range(len(tags)), key=lambda i: numbers[i]):
        places = list(places)
        if tags[places[0]] != "O":
            found.append((kinds[places[0]], places[0], places[-1] + 1))
    return found


@find_entities.alternative
def borders_between_neighbours(tags):
    starts, ends = [], []
    for i, (before, tag) in enumerate(pairwise(["O", *tags, "O"])):
        if before != "O" and (not tag.startswith("I") or before[1:] != tag[1:]):
            ends.append(i)
        if tag != "O" and (tag.startswith("B") or before[1:] != tag[1:]):
            starts.append(i)
    return [(tags[s][2:], s, e) for s, e in zip(starts, ends, strict=True)]


@find_entities.alternative
def from_the_right(tags):
    found, end = [], None
    for i in range(len(tags) - 1, -1, -1):
        if tags[i] == "O":
            continue
        end = end or i + 1
        if tags[i].startswith("B") or i == 0 or tags[i - 1][1:] != tags[i][1:]:
            found.insert(0, [tags[i].removeprefix("B-") if tags[i][0] == "B" else tags[i][2:], i, end])
            end = None
    return tuple(found)


# ---------------------------------------------------------------- 10.3 entity F1


@entity_f1.alternative
def sets_with_the_sentence_inside(true, predicted):
    a = {(n, *entity) for n, entities in enumerate(true) for entity in entities}
    b = {(n, *entity) for n, entities in enumerate(predicted) for entity in entities}
    precision = len(a & b) / len(b) if b else 0.0
    recall = len(a & b) / len(a) if a else 0.0
    together = precision + recall
    return precision, recall, 2 * precision * recall / together if together else 0.0


@entity_f1.alternative
def counts_of_right_false_and_missed(true, predicted):
    right = false = missed = 0
    for t, p in zip(true, predicted, strict=True):
        t, p = set(map(tuple, t)), set(map(tuple, p))
        right += len(t & p)
        false += len(p - t)
        missed += len(t - p)
    return (right / max(1, right + false), right / max(1, right + missed),
            right / max(1e-9, right + 0.5 * (false + missed)))  # fmt: skip


@entity_f1.alternative
def one_counter(true, predicted):
    a = Counter((n, e) for n, entities in enumerate(true) for e in entities)
    b = Counter((n, e) for n, entities in enumerate(predicted) for e in entities)
    common, said, there = (a & b).total(), b.total(), a.total()
    scores = []
    for top, below in ((common, said), (common, there), (2 * common, said + there)):
        try:
            scores.append(top / below)
        except ZeroDivisionError:
            scores.append(0)
    return scores


@entity_f1.alternative
def numbers_in_tensors(true, predicted):
    right = there = said = 0
    for t, p in zip(true, predicted, strict=True):
        left = list(t)
        there, said = there + len(t), said + len(p)
        for entity in p:
            if entity in left:
                left.remove(entity)
                right += 1
    top = torch.tensor([right, right, 2 * right], dtype=torch.float64)
    return (top / torch.tensor([said, there, said + there]).clamp(min=1)).unbind()


# ---------------------------------------------------------------- 10.4 span targets


@span_targets.alternative
def two_fingers(offsets, is_context, start, end):
    """From the window's left border to the right, and from the right border to the left."""
    first, last = is_context.index(True), len(is_context) - 1 - is_context[::-1].index(True)
    if start is None or offsets[first][0] > start or offsets[last][1] < end:
        return 0, 0
    while first < last and offsets[first + 1][0] <= start:
        first += 1
    while last > first and offsets[last - 1][1] >= end:
        last -= 1
    return first, last


@span_targets.alternative
def pieces_that_overlap(offsets, is_context, start, end):
    if start is None:
        return 0, 0
    triples = [(i, s, e) for i, ((s, e), yes) in enumerate(zip(offsets, is_context, strict=True)) if yes]
    if not (triples[0][1] <= start and end <= triples[-1][2]):
        return 0, 0
    touched = [i for i, s, e in triples if s < end and e > start]
    return touched[0], touched[-1]


@span_targets.alternative
def binary_search(offsets, is_context, start, end):
    places = [i for i in range(len(offsets)) if is_context[i]]
    starts, ends = [offsets[i][0] for i in places], [offsets[i][1] for i in places]
    if start is None or start < starts[0] or end > ends[-1]:
        return 0, 0
    return places[bisect_right(starts, start) - 1], places[bisect_left(ends, end)]


@span_targets.alternative
def a_piece_for_each_character(offsets, is_context, start, end):
    piece = {}
    for i, (s, e) in enumerate(offsets):
        if is_context[i]:
            piece |= dict.fromkeys(range(s, e), i)
    if start is None or start not in piece or end - 1 not in piece:
        return 0, 0
    return piece[start], piece[end - 1]


@span_targets.alternative
def two_masks(offsets, is_context, start, end):
    if start is None:
        return [0, 0]
    starts, ends = torch.tensor(offsets).unbind(1)
    inside = torch.tensor(is_context)
    first, last = (inside & (starts <= start)).nonzero(), (inside & (ends >= end)).nonzero()
    return [int(first[-1]), int(last[0])] if len(first) and len(last) else [0, 0]


# ---------------------------------------------------------------- 10.5 best span


@best_span.alternative
def a_square_of_sums(logits, is_context, max_pieces=30, threshold=0.0):
    start, end = logits.unbind(1)
    sums = start[:, None] + end[None, :]  # (S, S)
    legal = torch.ones_like(sums, dtype=torch.bool).triu().tril(max_pieces - 1)
    legal &= is_context[:, None] & is_context[None, :]
    sums = sums.masked_fill(~legal, -torch.inf)
    best = int(sums.argmax())
    if sums.flatten()[best] <= start[0] + end[0] + threshold:
        return 0, 0
    return divmod(best, len(start))


@best_span.alternative
def best_start_for_each_end(logits, is_context, max_pieces=30, threshold=0.0):
    start, end = logits[:, 0].masked_fill(~is_context, -torch.inf).tolist(), logits[:, 1].tolist()
    candidates = []
    for j in is_context.nonzero().flatten().tolist():
        i = max(range(max(0, j - max_pieces + 1), j + 1), key=start.__getitem__)
        candidates.append((start[i] + end[j], i, j))
    score, i, j = max(candidates)
    return (i, j) if score - threshold > float(logits[0].sum()) else (0, 0)


@best_span.alternative
def sorted_pairs(logits, is_context, max_pieces=30, threshold=0.0):
    starts, ends = logits[:, 0].tolist(), logits[:, 1].tolist()
    inside = [i for i, yes in enumerate(is_context.tolist()) if yes]
    pairs = [(i, j) for i in inside for j in inside if 0 <= j - i < max_pieces]
    pairs.sort(key=lambda pair: starts[pair[0]] + ends[pair[1]])
    i, j = pairs[-1]
    answered = starts[i] + ends[j] - starts[0] - ends[0] > threshold
    return (i, j) if answered else (0, 0)


@best_span.alternative
def log_probabilities(logits, is_context, max_pieces=30, threshold=0.0):
    """The logarithm of a product of probabilities is the sum of scores, but for a constant."""
    chances = logits.log_softmax(0)
    banned = torch.where(is_context, 0.0, -torch.inf)
    best, span = -torch.inf, (0, 0)
    for size in range(1, max_pieces + 1):
        count = len(logits) - size + 1
        if count < 1:
            break
        score = chances[:count, 0] + banned[:count] + chances[size - 1 :, 1] + banned[size - 1 :]
        i = int(score.argmax())
        if float(score[i]) > best:
            best, span = float(score[i]), (i, i + size - 1)
    return span if best > float(chances[0].sum()) + threshold else (0, 0)


@best_span.alternative
def no_answer_is_the_one_to_beat(logits, is_context, max_pieces=30, threshold=0.0):
    best, span = logits[0].sum() + threshold, [0, 0]
    for size in range(1, max_pieces + 1):
        for i in range(len(logits) - size + 1):
            j = i + size - 1
            if is_context[i : j + 1].all() and logits[i, 0] + logits[j, 1] > best:
                best, span = logits[i, 0] + logits[j, 1], [i, j]
    return span


# ---------------------------------------------------------------- 10.6 exact match and F1


@exact_match_and_f1.alternative
def list_of_words_removed_one_by_one(prediction, answers):
    def words(text):
        kept = text.translate(str.maketrans("", "", string.punctuation)).lower()
        kept = re.sub(r"\b(a|an|the)\b", " ", kept)
        return [word for word in re.split(r"\s+", kept) if word]

    def f1(said, true):
        if not said or not true:
            return float(said == true)
        left, common = list(true), 0
        for word in said:
            if word in left:
                left.remove(word)
                common += 1
        if common == 0:
            return 0.0
        precision, recall = common / len(said), common / len(true)
        return 2 * precision * recall / (precision + recall)

    said, golds = words(prediction), [words(answer) for answer in answers] or [[]]
    return float(said in golds), max(f1(said, gold) for gold in golds)


@exact_match_and_f1.alternative
def articles_as_words(prediction, answers):
    def normal(text):
        text = re.sub(f"[{re.escape(string.punctuation)}]", "", text.lower())
        marked = re.sub(r"(?<!\w)(?:an?|the)(?!\w)", " ", text)
        return " ".join(marked.split())

    golds = [normal(answer) for answer in answers] if answers else [""]
    said = normal(prediction)
    scores = []
    for gold in golds:
        a, b = Counter(said.split()), Counter(gold.split())
        shared = sum(min(a[word], b[word]) for word in a)
        whole = a.total() + b.total()
        scores.append(2 * shared / whole if whole else 1)
    return int(said in golds), max(scores)


@exact_match_and_f1.alternative
def sorted_words_side_by_side(prediction, answers):
    def words(text):
        letters = [c for c in text.casefold() if c.isspace() or c not in string.punctuation]
        return re.sub(r"\b(?:a|an|the)\b", " ", "".join(letters)).split()

    def one(gold):
        said, true = sorted(words(prediction)), sorted(words(gold))
        i = j = shared = 0
        while i < len(said) and j < len(true):
            if said[i] == true[j]:
                i, j, shared = i + 1, j + 1, shared + 1
            elif said[i] < true[j]:
                i += 1
            else:
                j += 1
        f1 = 2 * shared / (len(said) + len(true)) if said and true else float(said == true)
        return float(words(prediction) == words(gold)), f1

    matches, f1s = zip(*map(one, answers or [""]), strict=True)
    return max(matches), max(f1s)


@exact_match_and_f1.alternative
def articles_dropped_from_the_list(prediction, answers):
    def words(text):
        bare = text.translate(dict.fromkeys(map(ord, string.punctuation))).casefold()
        return [word for word in bare.split() if word not in {"a", "an", "the"}]

    def f1(said, gold):
        left = gold.copy()
        for word in said:
            if word in left:
                left.remove(word)
        shared, both = len(gold) - len(left), len(said) + len(gold)
        return 2 * shared / both if both else 1.0

    said, golds = words(prediction), [words(answer) for answer in answers] or [[]]
    return torch.tensor(1.0 * (said in golds)), torch.tensor([f1(said, gold) for gold in golds]).max()
