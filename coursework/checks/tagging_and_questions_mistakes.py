"""What students really get wrong in unit 10, as code: each must be rejected and called by its name."""

import re
import string
from collections import Counter

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


def _aligned(word_labels, word_ids, *, first=lambda label: label, more=lambda label: -100, other=-100, padding=None):
    """A right answer with one kind of place exchanged."""
    out = torch.full_like(word_ids, other)
    for row, words in enumerate(word_ids.tolist()):
        end = max(i for i, word in enumerate(words) if word >= 0) + 2  # [SEP] is the last before padding
        for i, word in enumerate(words):
            if word >= 0:
                label = word_labels[row][word]
                out[row, i] = more(label) if words[i - 1] == word and i else first(label)
            elif i >= end and padding is not None:
                out[row, i] = padding
    return out


def _in_order(word_labels, word_ids, start):
    """The labels of the words, one a piece, from place `start` on."""
    out = torch.full_like(word_ids, -100)
    for row, labels in enumerate(word_labels):
        places = range(start, int((word_ids[row] >= 0).nonzero().max()) + 1)
        for i, label in zip(places, labels, strict=False):
            out[row, i] = label
    return out


@align_labels.mistake("one label a word laid one after another on the pieces: all shifts after the first split word",
                      think="which word is piece 5 a part of?")  # fmt: skip
def one_label_a_piece(word_labels, word_ids):
    return _in_order(word_labels, word_ids, 1)


@align_labels.mistake("the first word's label given to [CLS], and so on", think="which word is [CLS] a part of?")
def from_cls_on(word_labels, word_ids):
    return _in_order(word_labels, word_ids, 0)


@align_labels.mistake("B- repeated on the pieces that continue a word (each piece its word's label)",
                      think="how many entities do B-PER B-PER B-PER make?")  # fmt: skip
def repeated(word_labels, word_ids):
    return _aligned(word_labels, word_ids, more=lambda label: label)


@align_labels.mistake("the other convention: I- on the pieces that continue a B- word",
                      think="a choice too, but which one was asked for?")  # fmt: skip
def inside_on_continuations(word_labels, word_ids):
    return _aligned(word_labels, word_ids, more=lambda label: label + label % 2)


@align_labels.mistake("0, that is O, in place of -100", think="is [CLS] a word outside of all entities, or no word?")
def outside_for_all(word_labels, word_ids):
    return _aligned(word_labels, word_ids, more=lambda label: 0, other=0)


@align_labels.mistake("0, that is O, on the pieces that continue a word", think="is “##maker” outside of the name?")
def outside_on_continuations(word_labels, word_ids):
    return _aligned(word_labels, word_ids, more=lambda label: 0)


@align_labels.mistake("0, that is O, on [CLS], [SEP] and padding", think="should the loss learn to tag padding?")
def outside_on_specials(word_labels, word_ids):
    return _aligned(word_labels, word_ids, other=0)


@align_labels.mistake("0, that is O, on padding", think="should the loss learn to tag padding?")
def outside_on_padding(word_labels, word_ids):
    return _aligned(word_labels, word_ids, padding=0)


@align_labels.mistake("-1 in place of -100", think="which number does cross-entropy leave out?")
def minus_one(word_labels, word_ids):
    return _aligned(word_labels, word_ids, more=lambda label: -1, other=-1)


@align_labels.mistake("-100 used as one more class: a number of its own for pieces without a label",
                      think="should the model have to learn that class?")  # fmt: skip
def a_class_of_its_own(word_labels, word_ids):
    classes = 1 + max(label for labels in word_labels for label in labels)
    return _aligned(word_labels, word_ids, more=lambda label: classes, other=classes)


@align_labels.mistake("the label on the last piece of a word", think="which piece did the paper take?")
def last_piece(word_labels, word_ids):
    out = torch.full_like(word_ids, -100)
    for row, words in enumerate(word_ids.tolist()):
        for i, word in enumerate(words):
            if word >= 0 and (i + 1 == len(words) or words[i + 1] != word):
                out[row, i] = word_labels[row][word]
    return out


@align_labels.mistake("word -1 looked up: Python takes that for the last word", think="what is labels[-1] of a list?")
def the_last_word(word_labels, word_ids):
    out = torch.full_like(word_ids, -100)
    for row, words in enumerate(word_ids.tolist()):
        for i, word in enumerate(words):
            if i == 0 or words[i - 1] != word:
                out[row, i] = word_labels[row][word]
    return out


@align_labels.mistake("word -1 looked up for each special token and padding: Python takes that for the last word",
                      think="what is labels[-1] of a list?")  # fmt: skip
def the_last_word_everywhere(word_labels, word_ids):
    out = _aligned(word_labels, word_ids)
    for row, labels in enumerate(word_labels):
        out[row][word_ids[row] < 0] = labels[-1]
    return out


@align_labels.mistake("a piece taken for a continuation when the label is the same as before",
                      think="can two words in a row have one label?")  # fmt: skip
def compares_labels(word_labels, word_ids):
    out = torch.full_like(word_ids, -100)
    for row, words in enumerate(word_ids.tolist()):
        before = None
        for i, word in enumerate(words):
            label = word_labels[row][word] if word >= 0 else None
            if word >= 0 and label != before:
                out[row, i] = label
            before = label
    return out


@align_labels.mistake("words already seen in an earlier row left out", think="is word 2 of row 1 the word 2 of row 0?")
def seen_in_another_row(word_labels, word_ids):
    out, seen = torch.full_like(word_ids, -100), set()
    for row, words in enumerate(word_ids.tolist()):
        for i, word in enumerate(words):
            if word >= 0 and word not in seen:
                out[row, i] = word_labels[row][word]
                seen.add(word)
    return out


@align_labels.mistake("the labels of row 0 used for every row", think="whose words are those of row 1?")
def labels_of_the_first_row(word_labels, word_ids):
    longest = max(word_labels, key=len)
    return _aligned([[*word_labels[0], *longest[len(word_labels[0]) :]] for _ in word_labels], word_ids)


@align_labels.mistake(
    "every label one place too far right", think="is there a 1 added for [CLS] that is counted already?"
)
def one_too_far(word_labels, word_ids):
    return torch.roll(_aligned(word_labels, word_ids), 1, 1)


@align_labels.mistake("squeeze() at the end: a single text loses its axis", think="which shape has a batch of one?")
def axis_squeezed(word_labels, word_ids):
    return _aligned(word_labels, word_ids).squeeze()


@align_labels.mistake("`label or -100`: class 0, that is O, taken for no label", think="is 0 nothing, or a class?")
def class_0_is_nothing(word_labels, word_ids):
    return _aligned(word_labels, word_ids, first=lambda label: label or -100)


@align_labels.mistake("word 0 taken for no word (word > 0)", think="which number has the first word of a text?")
def word_0_is_nothing(word_labels, word_ids):
    out = _aligned(word_labels, word_ids)
    out[word_ids == 0] = -100
    return out


@align_labels.mistake("the label of the word before", think="which number has the first word of a text?")
def label_of_the_word_before(word_labels, word_ids):
    return _aligned([labels[-1:] + labels[:-1] for labels in word_labels], word_ids)


@align_labels.mistake("the number of the word in place of its label", think="what is word_labels for?")
def numbers_of_words(word_labels, word_ids):
    return _aligned([range(len(labels)) for labels in word_labels], word_ids)


@align_labels.mistake("words of several pieces left without a label", think="which of their pieces stands for them?")
def split_words_left_out(word_labels, word_ids):
    out = _aligned(word_labels, word_ids)
    for row, words in enumerate(word_ids.tolist()):
        for i, word in enumerate(words):
            if words.count(word) > 1:
                out[row, i] = -100
    return out


@align_labels.mistake("100 in place of -100", think="which number does cross-entropy leave out?")
def without_the_minus(word_labels, word_ids):
    return _aligned(word_labels, word_ids, more=lambda label: 100, other=100)


@align_labels.mistake("word_ids overwritten with the labels", think="who else needs word_ids?")
def word_ids_overwritten(word_labels, word_ids):
    return word_ids.copy_(_aligned(word_labels, word_ids))


# ---------------------------------------------------------------- 10.2 find entities


def _entities(tags, goes_on, begins=lambda tag, kind: tag != "O", name=lambda tag: tag[2:]):
    """A right answer with one decision to be exchanged: goes_on(tag, name of the open entity)."""
    found, kind, start = [], None, 0
    for i, tag in enumerate([*tags, "O"]):
        if kind is not None and goes_on(tag, kind):
            continue
        if kind is not None:
            found.append((kind, start, i))
            kind = None
        if begins(tag, kind):
            kind, start = name(tag), i
    return found


def _same(tag, kind):
    return tag == f"I-{kind}"


@find_entities.mistake(
    "the end is the last token itself, not the place after it", think="what does tags[start:end] give?"
)
def inclusive_end(tags):
    return [(kind, start, end - 1) for kind, start, end in _entities(tags, _same)]


@find_entities.mistake("an entity that reaches the end of the sentence is lost",
                       think="who closes it, when no tag comes after?")  # fmt: skip
def the_last_one_lost(tags):
    return [entity for entity in _entities(tags, _same) if entity[2] < len(tags)]


@find_entities.mistake("I- without a B- before it left out", think="is a name that lost its B- no name?")
def stray_left_out(tags):
    found, kind, start = [], None, 0
    for i, tag in enumerate([*tags, "O"]):
        if kind is not None and not _same(tag, kind):
            found.append((kind, start, i))
            kind = None
        if tag.startswith("B-"):
            kind, start = tag[2:], i
    return found


@find_entities.mistake("I- after O left out, though I- after another kind begins an entity",
                       think="what tells these two cases apart?")  # fmt: skip
def stray_after_o_left_out(tags):
    found, kind, start, before = [], None, 0, "O"
    for i, tag in enumerate([*tags, "O"]):
        if kind is not None and not _same(tag, kind):
            found.append((kind, start, i))
            kind = None
        if tag.startswith("B-") or (tag != "O" and kind is None and before != "O"):
            kind, start = tag[2:], i
        before = tag
    return found


@find_entities.mistake("I- of another kind continues the entity", think="is B-PER I-LOC one person?")
def another_kind_goes_on(tags):
    return _entities(tags, lambda tag, kind: tag.startswith("I-"))


@find_entities.mistake(
    "I- of another kind ends the entity and is then forgotten", think="is I-LOC after B-PER nothing?"
)
def another_kind_forgotten(tags):
    found, kind, start, open_ = [], None, 0, False
    for i, tag in enumerate([*tags, "O"]):
        if kind is not None and not _same(tag, kind):
            found.append((kind, start, i))
            kind, open_ = None, True
        if tag.startswith("B-") or (tag.startswith("I-") and kind is None and not open_):
            kind, start = tag[2:], i
        open_ = open_ and tag.startswith("I-")
    return found


@find_entities.mistake("a B- of the same kind right after an entity continues it", think="what is B- for, if not that?")
def same_kind_goes_on(tags):
    return _entities(tags, lambda tag, kind: tag != "O" and tag[2:] == kind)


@find_entities.mistake("any tag but O continues an entity", think="how many names are B-PER B-LOC?")
def all_goes_on(tags):
    return _entities(tags, lambda tag, kind: tag != "O")


@find_entities.mistake("an entity begins only after O", think="can two names stand side by side?")
def only_after_o(tags):
    found, kind, start, before = [], None, 0, "O"
    for i, tag in enumerate([*tags, "O"]):
        if kind is not None and not _same(tag, kind):
            found.append((kind, start, i))
            kind = None
        if tag != "O" and kind is None and before == "O":
            kind, start = tag[2:], i
        before = tag
    return found


@find_entities.mistake("the kind cut at its own hyphen: split('-')[1]", think="what is left of B-creative-work?")
def kind_cut(tags):
    return [(kind.split("-")[0], start, end) for kind, start, end in _entities(tags, _same)]


@find_entities.mistake(
    "only what comes after the last hyphen kept as the kind", think="what is left of B-creative-work?"
)
def kind_cut_from_the_left(tags):
    return [(kind.split("-")[-1], start, end) for kind, start, end in _entities(tags, _same)]


@find_entities.mistake("B- kept in the kind", think="is B-PER a kind of thing?")
def mark_in_the_kind(tags):
    return [(tags[start], start, end) for _, start, end in _entities(tags, _same)]


@find_entities.mistake("each token an entity by itself", think="how many people are B-PER I-PER?")
def each_token(tags):
    return [(tag[2:], i, i + 1) for i, tag in enumerate(tags) if tag != "O"]


@find_entities.mistake("only tokens with B- found, without what continues them", think="where does the entity end?")
def only_beginnings(tags):
    return [(tag[2:], i, i + 1) for i, tag in enumerate(tags) if tag.startswith("B-")]


@find_entities.mistake("places counted from 1", think="what is the place of the first tag?")
def from_one(tags):
    return [(kind, start + 1, end + 1) for kind, start, end in _entities(tags, _same)]


@find_entities.mistake("runs of O taken for entities as well", think="what does O stand for?")
def outside_too(tags):
    found = []
    for kind, start, end in _entities(tags, lambda tag, kind: tag == f"I-{kind}" or tag == "O" == kind,
                                      lambda tag, kind: True, lambda tag: tag[2:] or "O"):  # fmt: skip
        if start < len(tags):
            found.append((kind, start, min(end, len(tags))))
    return found


@find_entities.mistake("start and length instead of start and end", think="what does tags[start:end] give?")
def lengths(tags):
    return [(kind, start, end - start) for kind, start, end in _entities(tags, _same)]


@find_entities.mistake("an entity of a single token left out", think="is a name of one word no name?")
def single_left_out(tags):
    return [entity for entity in _entities(tags, _same) if entity[2] - entity[1] > 1]


@find_entities.mistake("lstrip(“BI-”), which takes away letters of the kind too", think="what is left of B-BIRD?")
def stripped(tags):
    return [(tags[start].lstrip("BI-"), start, end) for _, start, end in _entities(tags, _same)]


@find_entities.mistake("replace(“B-”, “”), which replaces inside the kind too", think="what is left of B-CLUB-NIGHT?")
def replaced(tags):
    names = [tag.replace("B-", "").replace("I-", "") for tag in tags]
    return [(names[start], start, end) for _, start, end in _entities(tags, _same)]


@find_entities.mistake("I- of a kind that only begins like the open one continues it (startswith)",
                       think="is I-art-of-war the same kind as B-art?")  # fmt: skip
def begins_alike(tags):
    return _entities(tags, lambda tag, kind: tag.startswith(f"I-{kind}"))


@find_entities.mistake("I- of a kind in whose name the open one occurs continues it (`in`)",
                       think="is I-creative-work the same kind as B-work?")  # fmt: skip
def occurs_in_it(tags):
    return _entities(tags, lambda tag, kind: tag.startswith("I-") and kind in tag)


@find_entities.mistake("every tag with the letter O in it taken for O", think="is “O” in “B-LOC”?")
def letter_o(tags):
    return _entities(["O" if "O" in tag else tag for tag in tags], _same)


@find_entities.mistake("entities sorted by kind", think="in which order was the text written?")
def sorted_by_kind(tags):
    return sorted(_entities(tags, _same))


@find_entities.mistake("an entity added at an O only: one that another follows at once is overwritten",
                       think="what becomes of the open entity when a B- comes?")  # fmt: skip
def added_at_o_only(tags):
    found, kind, start = [], None, 0
    for i, tag in enumerate([*tags, "O"]):
        if tag == "O" and kind is not None:
            found.append((kind, start, i))
            kind = None
        elif tag != "O" and not (kind is not None and _same(tag, kind)):
            kind, start = tag[2:], i
    return found


@find_entities.mistake("each I- without a B- an entity by itself", think="what does a second I- of the kind do?")
def stray_one_by_one(tags):
    found = []
    for kind, start, end in _entities(tags, _same):
        stray = tags[start].startswith("I-")
        found += [(kind, i, i + 1) for i in range(start, end)] if stray else [(kind, start, end)]
    return found


@find_entities.mistake("an O added to the caller's list, to close the last entity", think="who else holds this list?")
def o_added_for_the_caller(tags):
    found = _entities(tags, _same)
    tags.append("O")
    return found


@find_entities.mistake("the words (here: tags) of each entity in place of its start and end",
                       think="which three things are asked for?")  # fmt: skip
def what_stands_there(tags):
    return [(kind, " ".join(tags[start:end])) for kind, start, end in _entities(tags, _same)]


# ---------------------------------------------------------------- 10.3 entity F1


def _ratio(top, below):
    return top / below if below else 0.0


def _three(right, said, there):
    return _ratio(right, said), _ratio(right, there), _ratio(2 * right, said + there)


def _right(true, predicted):
    return sum(e in t for t, p in zip(true, predicted, strict=True) for e in p)


def _totals(true, predicted):
    return sum(map(len, predicted)), sum(map(len, true))


@entity_f1.mistake("precision and recall exchanged", think="of which of the two lists is precision a share?")
def exchanged(true, predicted):
    precision, recall, f1 = _three(_right(true, predicted), *_totals(true, predicted))
    return recall, precision, f1


@entity_f1.mistake(
    "recall divided by what was predicted, too", think="of all names that are there, how many were found?"
)
def recall_of_the_predicted(true, predicted):
    precision, _, f1 = _three(_right(true, predicted), *_totals(true, predicted))
    return precision, precision, f1


@entity_f1.mistake("the plain mean of precision and recall, not the harmonic one",
                   think="what should F1 be when one of them is 0?")  # fmt: skip
def plain_mean(true, predicted):
    precision, recall, _ = _three(_right(true, predicted), *_totals(true, predicted))
    return precision, recall, (precision + recall) / 2


@entity_f1.mistake("the geometric mean of precision and recall", think="which mean is 2PR / (P + R)?")
def geometric_mean(true, predicted):
    precision, recall, _ = _three(_right(true, predicted), *_totals(true, predicted))
    return precision, recall, (precision * recall) ** 0.5


@entity_f1.mistake("PR / (P + R), without the 2", think="what is F1 when both are 1?")
def without_the_two(true, predicted):
    precision, recall, f1 = _three(_right(true, predicted), *_totals(true, predicted))
    return precision, recall, f1 / 2


@entity_f1.mistake(
    "right ones over the union (Jaccard) instead of F1", think="which of the two counts right ones twice?"
)
def jaccard(true, predicted):
    right, (said, there) = _right(true, predicted), _totals(true, predicted)
    precision, recall, _ = _three(right, said, there)
    return precision, recall, _ratio(right, said + there - right)


@entity_f1.mistake("a mean over sentences instead of counts over all of them",
                   think="does a sentence with one entity weigh as much as one with six?")  # fmt: skip
def mean_of_sentences(true, predicted):
    rows = [_three(_right([t], [p]), len(p), len(t)) for t, p in zip(true, predicted, strict=True)]
    return tuple(sum(row[k] for row in rows) / len(rows) for k in range(3))


@entity_f1.mistake("a mean over the kinds of entity (macro) instead of counts over all of them",
                   think="does a rare kind weigh as much as a frequent one?")  # fmt: skip
def mean_of_kinds(true, predicted):
    rows = []
    for kind in sorted({e[0] for entities in (*true, *predicted) for e in entities}):
        t, p = ([[e for e in entities if e[0] == kind] for entities in side] for side in (true, predicted))
        rows.append(_three(_right(t, p), *_totals(t, p)))
    return tuple(sum(row[k] for row in rows) / max(1, len(rows)) for k in range(3))


@entity_f1.mistake("the kind ignored: borders alone decide", think="is a person found as a place a hit?")
def borders_alone(true, predicted):
    t, p = ([[("", *e[1:]) for e in entities] for entities in side] for side in (true, predicted))
    return _three(_right(t, p), *_totals(t, p))


@entity_f1.mistake("overlap of the same kind is enough", think="is “New” a hit, when “New York” is true?")
def overlap_is_enough(true, predicted):
    right = sum(
        any(e[0] == x[0] and e[1] < x[2] and x[1] < e[2] for x in t)
        for t, p in zip(true, predicted, strict=True)
        for e in p
    )
    return _three(right, *_totals(true, predicted))


@entity_f1.mistake("the same start and kind are enough", think="where does the name end?")
def start_is_enough(true, predicted):
    t, p = ([[e[:2] for e in entities] for entities in side] for side in (true, predicted))
    return _three(_right(t, p), *_totals(t, p))


@entity_f1.mistake("the same end and kind are enough", think="where does the name begin?")
def end_is_enough(true, predicted):
    t, p = ([[(e[0], e[2]) for e in entities] for entities in side] for side in (true, predicted))
    return _three(_right(t, p), *_totals(t, p))


@entity_f1.mistake("tokens inside entities counted, not entities", think="is half a name half a hit?")
def tokens_counted(true, predicted):
    t, p = (
        [[(e[0], i) for e in entities for i in range(e[1], e[2])] for entities in side] for side in (true, predicted)
    )
    return _three(_right(t, p), *_totals(t, p))


@entity_f1.mistake("token accuracy reported as entity F1", think="how well does “O everywhere” score, by your number?")
def token_accuracy(true, predicted):
    same = total = 0
    for t, p in zip(true, predicted, strict=True):
        length = max([0, *(e[2] for e in (*t, *p))])
        rows = []
        for entities in (t, p):
            row = ["O"] * length
            for kind, start, end in entities:
                row[start:end] = [f"I-{kind}"] * (end - start)
            rows.append(row)
        same += sum(x == y for x, y in zip(*rows, strict=True))
        total += length
    share = same / total if total else 0.0
    return share, share, share


@entity_f1.mistake("all sentences thrown together: places lose their sentence",
                   think="is place 2 to 4 of one sentence that of another?")  # fmt: skip
def sentences_thrown_together(true, predicted):
    t, p = ([tuple(e) for entities in side for e in entities] for side in (true, predicted))
    return _three(len(set(t) & set(p)), len(set(p)), len(set(t)))


@entity_f1.mistake("all sentences in one list: an entity found in any sentence counts",
                   think="is place 2 to 4 of one sentence that of another?")  # fmt: skip
def found_anywhere(true, predicted):
    t, p = ([tuple(e) for entities in side for e in entities] for side in (true, predicted))
    return _three(sum(e in t for e in p), len(p), len(t))


@entity_f1.mistake("a division by zero where nothing is predicted, or nothing is there",
                   think="what if a model finds nothing?")  # fmt: skip
def divides_by_zero(true, predicted):
    right, (said, there) = _right(true, predicted), _totals(true, predicted)
    precision, recall = right / said, right / there
    return precision, recall, 2 * precision * recall / (precision + recall)


@entity_f1.mistake("NaN where nothing is predicted, or nothing is there", think="what should a report show there?")
def not_a_number(true, predicted):
    right, (said, there) = _right(true, predicted), _totals(true, predicted)
    nan = float("nan")
    return (right / said if said else nan, right / there if there else nan,
            2 * right / (said + there) if said + there else nan)  # fmt: skip


@entity_f1.mistake("1 where nothing is predicted, or nothing is there", think="is a model that says nothing perfect?")
def perfect_when_empty(true, predicted):
    right, (said, there) = _right(true, predicted), _totals(true, predicted)
    return (right / said if said else 1.0, right / there if there else 1.0,
            2 * right / (said + there) if said + there else 1.0)  # fmt: skip


@entity_f1.mistake("percent instead of shares", think="between which two numbers were the scores asked for?")
def percent(true, predicted):
    return tuple(100 * x for x in _three(_right(true, predicted), *_totals(true, predicted)))


@entity_f1.mistake("F1 first, then precision and recall", think="in which order are they asked for?")
def f1_first(true, predicted):
    precision, recall, f1 = _three(_right(true, predicted), *_totals(true, predicted))
    return f1, precision, recall


@entity_f1.mistake("the three counts, not divided", think="between which two numbers were the scores asked for?")
def not_divided(true, predicted):
    return _right(true, predicted), *_totals(true, predicted)


@entity_f1.mistake("the product of precision and recall", think="what is F1 when both are 0.5?")
def product(true, predicted):
    precision, recall, _ = _three(_right(true, predicted), *_totals(true, predicted))
    return precision, recall, precision * recall


@entity_f1.mistake("the smaller of precision and recall", think="which mean is 2PR / (P + R)?")
def the_smaller_of_both(true, predicted):
    precision, recall, _ = _three(_right(true, predicted), *_totals(true, predicted))
    return precision, recall, min(precision, recall)


@entity_f1.mistake("entities compared in pairs, first with first, second with second (zip)",
                   think="what if the first one is missed?")  # fmt: skip
def in_pairs(true, predicted):
    right = sum(a == b for t, p in zip(true, predicted, strict=True) for a, b in zip(t, p, strict=False))
    return _three(right, *_totals(true, predicted))


@entity_f1.mistake("sentences counted that are right as a whole", think="what is counted, sentences or entities?")
def whole_sentences(true, predicted):
    right = sum(t == p for t, p in zip(true, predicted, strict=True))
    return _three(right, len(predicted), len(true))


@entity_f1.mistake("the first sentence only: a return inside the loop", think="when does a loop end that returns?")
def first_sentence_only(true, predicted):
    return _three(_right(true[:1], predicted[:1]), *_totals(true[:1], predicted[:1]))


@entity_f1.mistake("the last sentence only: counts set back in the loop", think="where does a count begin at 0?")
def last_sentence_only(true, predicted):
    return _three(_right(true[-1:], predicted[-1:]), *_totals(true[-1:], predicted[-1:]))


@entity_f1.mistake("sentences left out in which nothing is predicted, or nothing is there",
                   think="is a name that was missed there no miss?")  # fmt: skip
def empty_sentences_left_out(true, predicted):
    both = [(t, p) for t, p in zip(true, predicted, strict=True) if t and p]
    true, predicted = [t for t, _ in both], [p for _, p in both]
    return _three(_right(true, predicted), *_totals(true, predicted))


@entity_f1.mistake("F1 as a mean over sentences, beside precision and recall over all",
                   think="does a sentence with one entity weigh as much as one with six?")  # fmt: skip
def mean_of_f1(true, predicted):
    precision, recall, _ = _three(_right(true, predicted), *_totals(true, predicted))
    rows = [_three(_right([t], [p]), len(p), len(t))[2] for t, p in zip(true, predicted, strict=True)]
    return precision, recall, sum(rows) / len(rows)


@entity_f1.mistake("one right entity a sentence at most (any)", think="how many are right, or is one?")
def one_a_sentence(true, predicted):
    right = sum(any(e in t for e in p) for t, p in zip(true, predicted, strict=True))
    return _three(right, *_totals(true, predicted))


@entity_f1.mistake("borders that are off by one taken for right", think="is “New” a hit, when “New York” is true?")
def nearly_is_enough(true, predicted):
    right = sum(
        any(e[0] == x[0] and abs(e[1] - x[1]) <= 1 and abs(e[2] - x[2]) <= 1 for x in t)
        for t, p in zip(true, predicted, strict=True)
        for e in p
    )
    return _three(right, *_totals(true, predicted))


@entity_f1.mistake("true entities removed from the caller's list once found", think="who else holds this list?")
def removed_once_found(true, predicted):
    found = _three(_right(true, predicted), *_totals(true, predicted))
    for t, p in zip(true, predicted, strict=True):
        t[:] = [e for e in t if e not in p]
    return found


# ---------------------------------------------------------------- 10.4 span targets


def _span(offsets, is_context, start, end):
    """A right answer, and None when the window does not hold it."""
    inside = [i for i, yes in enumerate(is_context) if yes]
    if start is None or offsets[inside[0]][0] > start or offsets[inside[-1]][1] < end:
        return None
    return max(i for i in inside if offsets[i][0] <= start), min(i for i in inside if offsets[i][1] >= end)


def _first_of(is_context):
    return list(is_context).index(True)


@span_targets.mistake("`if not start`: an answer that begins at character 0 taken for none", think="what is `not 0`?")
def zero_is_none(offsets, is_context, start, end):
    return (0, 0) if not start else _span(offsets, is_context, start, end) or (0, 0)


@span_targets.mistake("the last piece one too far: the place after it", think="is the last piece a part of the answer?")
def exclusive_last(offsets, is_context, start, end):
    found = _span(offsets, is_context, start, end)
    return (found[0], found[1] + 1) if found else (0, 0)


@span_targets.mistake("`end` taken for the last character: the piece of text[end] is sought",
                      think="is text[end] still a part of text[start:end]?")  # fmt: skip
def end_taken_inclusive(offsets, is_context, start, end):
    return _span(offsets, is_context, start, None if end is None else end + 1) or (0, 0)


@span_targets.mistake(
    "both pieces one too far left", think="does your loop stop before, or at, the piece it looks for?"
)
def one_too_far_left(offsets, is_context, start, end):
    found = _span(offsets, is_context, start, end)
    return (found[0] - 1, found[1] - 1) if found else (0, 0)


@span_targets.mistake("the first piece one too far left (its start has to be below `start`, not at it)",
                      think="may the answer begin where a piece begins?")  # fmt: skip
def first_strictly_before(offsets, is_context, start, end):
    found = _span(offsets, is_context, start, end)
    if not found:
        return 0, 0
    return max([i for i, yes in enumerate(is_context) if yes and offsets[i][0] < start] or [found[0]]), found[1]


@span_targets.mistake("the last piece one too far right (its end has to be above `end`, not at it)",
                      think="may the answer end where a piece ends?")  # fmt: skip
def last_strictly_after(offsets, is_context, start, end):
    found = _span(offsets, is_context, start, end)
    if not found:
        return 0, 0
    return found[0], min([i for i, yes in enumerate(is_context) if yes and offsets[i][1] > end] or [found[1]])


@span_targets.mistake(
    "the question's pieces are searched too", think="to which text do the question's characters belong?"
)
def question_searched(offsets, is_context, start, end):
    if start is None or not _span(offsets, is_context, start, end):
        return 0, 0
    first = next(i for i, (s, e) in enumerate(offsets) if s <= start < e)
    last = next((i for i, (s, e) in enumerate(offsets) if s < end <= e and i >= first), first)
    return first, last


@span_targets.mistake("places counted from the passage's first piece", think="what stands before it in the sequence?")
def counted_in_the_passage(offsets, is_context, start, end):
    found = _span(offsets, is_context, start, end)
    return (found[0] - _first_of(is_context), found[1] - _first_of(is_context)) if found else (0, 0)


@span_targets.mistake("characters taken for pieces", think="how many characters has a piece?")
def characters_are_pieces(offsets, is_context, start, end):
    return (start, end) if _span(offsets, is_context, start, end) else (0, 0)


@span_targets.mistake("an answer must begin and end with a piece, else it is not found",
                      think="what of “2019” in “2019s”?")  # fmt: skip
def exact_borders_only(offsets, is_context, start, end):
    inside = [i for i, yes in enumerate(is_context) if yes]
    first = [i for i in inside if offsets[i][0] == start]
    last = [i for i in inside if offsets[i][1] == end]
    return (first[0], last[0]) if first and last else (0, 0)


@span_targets.mistake(
    "a piece that the answer only partly covers is left out", think="can the model point at half a piece?"
)
def whole_pieces_only(offsets, is_context, start, end):
    if start is None or not _span(offsets, is_context, start, end):
        return 0, 0
    whole = [i for i, yes in enumerate(is_context) if yes and start <= offsets[i][0] and offsets[i][1] <= end]
    return (whole[0], whole[-1]) if whole else (0, 0)


@span_targets.mistake("an answer cut by the window's border is cut down to what is left of it",
                      think="is half an answer the answer?")  # fmt: skip
def cut_at_the_border(offsets, is_context, start, end):
    inside = [i for i, yes in enumerate(is_context) if yes]
    touched = [i for i in inside if start is not None and offsets[i][0] < end and offsets[i][1] > start]
    return (touched[0], touched[-1]) if touched else (0, 0)


@span_targets.mistake("an answer cut by the right border is kept: only the start has to lie in the window",
                      think="where does this answer end?")  # fmt: skip
def only_the_start_inside(offsets, is_context, start, end):
    inside = [i for i, yes in enumerate(is_context) if yes]
    if start is None or not offsets[inside[0]][0] <= start < offsets[inside[-1]][1]:
        return 0, 0
    first = max(i for i in inside if offsets[i][0] <= start)
    return first, next((i for i in inside if offsets[i][1] >= end), inside[-1])


@span_targets.mistake("an answer cut by the left border is kept: only the end has to lie in the window",
                      think="where does this answer begin?")  # fmt: skip
def only_the_end_inside(offsets, is_context, start, end):
    inside = [i for i, yes in enumerate(is_context) if yes]
    if start is None or not offsets[inside[0]][0] < end <= offsets[inside[-1]][1]:
        return 0, 0
    last = min(i for i in inside if offsets[i][1] >= end)
    return max([i for i in inside if offsets[i][0] <= start] or inside[:1]), last


@span_targets.mistake(
    "an answer outside the window is moved to its border", think="what would the model learn from that?"
)
def moved_to_the_border(offsets, is_context, start, end):
    if start is None:
        return 0, 0
    inside = [i for i, yes in enumerate(is_context) if yes]
    first = max([i for i in inside if offsets[i][0] <= start] or inside[:1])
    return first, min([i for i in inside if offsets[i][1] >= end] or inside[-1:])


@span_targets.mistake(
    "-100 where there is no answer in the window", think="what does the paper let such a window point at?"
)
def no_label(offsets, is_context, start, end):
    return _span(offsets, is_context, start, end) or (-100, -100)


@span_targets.mistake("(-1, -1) where there is no answer in the window", think="which piece is at place -1?")
def minus_one_span(offsets, is_context, start, end):
    return _span(offsets, is_context, start, end) or (-1, -1)


@span_targets.mistake("the passage's first piece instead of [CLS] where there is no answer",
                      think="is the passage's first word an answer?")  # fmt: skip
def first_of_the_passage(offsets, is_context, start, end):
    first = _first_of(is_context)
    return _span(offsets, is_context, start, end) or (first, first)


@span_targets.mistake("start=None not thought of", think="what is None <= 3?")
def none_not_thought_of(offsets, is_context, start, end):
    if start is None:
        return offsets[0][0] <= start
    return _span(offsets, is_context, start, end) or (0, 0)


@span_targets.mistake(
    "first piece and length instead of first and last", think="which two places does the model point at?"
)
def first_and_length(offsets, is_context, start, end):
    found = _span(offsets, is_context, start, end)
    return (found[0], found[1] - found[0] + 1) if found else (0, 0)


@span_targets.mistake("a piece's end taken as inclusive: an answer that begins in a word's second piece gets the first",
                      think="is text[end] still a part of text[start:end]?")  # fmt: skip
def first_piece_that_touches(offsets, is_context, start, end):
    found = _span(offsets, is_context, start, end)
    if not found:
        return 0, 0
    return next(i for i, yes in enumerate(is_context) if yes and offsets[i][0] <= start <= offsets[i][1]), found[1]


@span_targets.mistake("the last of two pieces that meet at `end` (start <= end <= end of the piece)",
                      think="is text[end] still a part of text[start:end]?")  # fmt: skip
def last_piece_that_touches(offsets, is_context, start, end):
    found = _span(offsets, is_context, start, end)
    if not found:
        return 0, 0
    return found[0], max(i for i, yes in enumerate(is_context) if yes and offsets[i][0] <= end <= offsets[i][1])


@span_targets.mistake("the pieces whose borders are nearest to the answer's",
                      think="in which piece is the character itself?")  # fmt: skip
def nearest_borders(offsets, is_context, start, end):
    inside = [i for i, yes in enumerate(is_context) if yes]
    if not _span(offsets, is_context, start, end):
        return 0, 0
    return (min(inside, key=lambda i: abs(offsets[i][0] - start)),
            min(inside, key=lambda i: abs(offsets[i][1] - end)))  # fmt: skip


@span_targets.mistake("the answer widened to whole words", think="does the model point at words or at pieces?")
def whole_words(offsets, is_context, start, end):
    first, last = _span(offsets, is_context, start, end) or (0, 0)
    while is_context[first] and is_context[first - 1] and offsets[first - 1][1] == offsets[first][0]:
        first -= 1
    while is_context[last] and is_context[last + 1] and offsets[last + 1][0] == offsets[last][1]:
        last += 1
    return first, last


@span_targets.mistake("first and last piece exchanged", think="which comes first in the text?")
def last_before_first(offsets, is_context, start, end):
    return (_span(offsets, is_context, start, end) or (0, 0))[::-1]


@span_targets.mistake("one piece for both: that in which the answer begins", think="in which piece does it end?")
def one_piece_for_both(offsets, is_context, start, end):
    found = _span(offsets, is_context, start, end) or (0, 0)
    return found[0], found[0]


@span_targets.mistake("all from the window's first piece on taken for the passage, [SEP] and padding too",
                      think="which characters has [SEP], by its offsets?")  # fmt: skip
def padding_searched(offsets, is_context, start, end):
    if not _span(offsets, is_context, start, end):
        return 0, 0
    rest = range(_first_of(is_context), len(offsets))
    return max(i for i in rest if offsets[i][0] <= start), min(i for i in rest if offsets[i][1] >= end)


@span_targets.mistake("only the answer's last piece is searched in the question too",
                      think="to which text do the question's characters belong?")  # fmt: skip
def question_searched_for_the_end(offsets, is_context, start, end):
    found = _span(offsets, is_context, start, end)
    return (found[0], min(i for i, (_, e) in enumerate(offsets) if e >= end)) if found else (0, 0)


@span_targets.mistake("an answer that begins or ends with the window taken for cut off",
                      think="is all of it in the window?")  # fmt: skip
def borders_refused(offsets, is_context, start, end):
    inside = [i for i, yes in enumerate(is_context) if yes]
    if start is None or offsets[inside[0]][0] >= start or offsets[inside[-1]][1] <= end:
        return 0, 0
    return _span(offsets, is_context, start, end)


@span_targets.mistake("(0, 0) only for an answer that is cut off at both ends", think="is half an answer the answer?")
def cut_at_both_ends_only(offsets, is_context, start, end):
    inside = [i for i, yes in enumerate(is_context) if yes]
    if start is None:
        return 0, 0
    first = [i for i in inside if offsets[i][0] <= start]
    last = [i for i in inside if offsets[i][1] >= end]
    return first[-1] if first else 0, last[0] if last else 0


@span_targets.mistake("characters counted from the window's first one", think="from where does `start` count?")
def counted_from_the_window(offsets, is_context, start, end):
    low = offsets[_first_of(is_context)][0]
    return (0, 0) if start is None else _span(offsets, is_context, start - low, end - low) or (0, 0)


@span_targets.mistake("None where there is no answer in the window", think="what does the model point at then?")
def none_for_none(offsets, is_context, start, end):
    return _span(offsets, is_context, start, end)


@span_targets.mistake("an error raised where the window does not hold the answer",
                      think="of ten windows, how many hold it?")  # fmt: skip
def raised_outside(offsets, is_context, start, end):
    found = _span(offsets, is_context, start, end)
    if start is not None and not found:
        raise ValueError("the answer is not in this window")
    return found or (0, 0)


# ---------------------------------------------------------------- 10.5 best span


def _pairs(is_context, low, high):
    inside = [i for i, yes in enumerate(is_context.tolist()) if yes]
    return [(i, j) for i in inside for j in inside if low <= j - i < high]


def _answered(logits, pairs, threshold, score, nothing=lambda logits: sum(logits[0])):
    """The best of the pairs, if it beats `nothing`."""
    if not pairs:
        return 0, 0
    logits = logits.tolist()
    best = max(pairs, key=lambda pair: score(logits, *pair))
    return best if score(logits, *best) > nothing(logits) + threshold else (0, 0)


def _sum(logits, i, j):
    return logits[i][0] + logits[j][1]


def _separately(logits, is_context):
    inside = [i for i, yes in enumerate(is_context.tolist()) if yes]
    return (max(inside, key=lambda i: float(logits[i, 0])), max(inside, key=lambda j: float(logits[j, 1])))


def _or_none(logits, span, threshold):
    return span if _sum(logits.tolist(), *span) > float(logits[0].sum()) + threshold else (0, 0)


@best_span.mistake("start and end chosen apart: the end may come before the start", think="what text is from 15 to 9?")
def chosen_apart(logits, is_context, max_pieces=30, threshold=0.0):
    return _or_none(logits, _separately(logits, is_context), threshold)


@best_span.mistake("start and end chosen apart, and exchanged when the end comes first",
                   think="did the model say that this piece is a start?")  # fmt: skip
def exchanged_ends(logits, is_context, max_pieces=30, threshold=0.0):
    i, j = _separately(logits, is_context)
    answered = _or_none(logits, (i, j), threshold) != (0, 0)
    return (min(i, j), max(i, j)) if answered else (0, 0)


@best_span.mistake("start and end chosen apart, and no answer when the end comes first",
                   think="is there no other pair that is legal?")  # fmt: skip
def none_when_illegal(logits, is_context, max_pieces=30, threshold=0.0):
    i, j = _separately(logits, is_context)
    return _or_none(logits, (i, j), threshold) if 0 <= j - i < max_pieces else (0, 0)


@best_span.mistake("the best start first, then the best end after it", think="what if that start has only bad ends?")
def start_first(logits, is_context, max_pieces=30, threshold=0.0):
    i, _ = _separately(logits, is_context)
    return _answered(logits, [p for p in _pairs(is_context, 0, max_pieces) if p[0] == i], threshold, _sum)


@best_span.mistake("the best end first, then the best start before it", think="what if that end has only bad starts?")
def end_first(logits, is_context, max_pieces=30, threshold=0.0):
    _, j = _separately(logits, is_context)
    return _answered(logits, [p for p in _pairs(is_context, 0, max_pieces) if p[1] == j], threshold, _sum)


@best_span.mistake("max_pieces ignored", think="may an answer be as long as the passage?")
def any_length(logits, is_context, max_pieces=30, threshold=0.0):
    return _answered(logits, _pairs(is_context, 0, len(logits)), threshold, _sum)


@best_span.mistake("spans one piece too long allowed", think="how many pieces is a span from 5 to 8?")
def one_too_long(logits, is_context, max_pieces=30, threshold=0.0):
    return _answered(logits, _pairs(is_context, 0, max_pieces + 1), threshold, _sum)


@best_span.mistake("spans of max_pieces pieces refused", think="how many pieces is a span from 5 to 8?")
def one_too_short(logits, is_context, max_pieces=30, threshold=0.0):
    return _answered(logits, _pairs(is_context, 0, max_pieces - 1), threshold, _sum)


@best_span.mistake("a span that is too long cut down to max_pieces", think="did the model say that it ends there?")
def cut_to_length(logits, is_context, max_pieces=30, threshold=0.0):
    i, j = _answered(logits, _pairs(is_context, 0, len(logits)), threshold, _sum)
    return i, min(j, i + max_pieces - 1)


@best_span.mistake("answers of a single piece refused: start < end", think="may the answer be one word?")
def two_at_least(logits, is_context, max_pieces=30, threshold=0.0):
    return _answered(logits, _pairs(is_context, 1, max(2, max_pieces)), threshold, _sum)


@best_span.mistake(
    "the search begun with a best score of 0, or 0 put in place of scores that don't count",
    think="may all scores of a passage be below 0?",
)
def begins_at_zero(logits, is_context, max_pieces=30, threshold=0.0):
    pairs = [(i, j) for i, j in _pairs(is_context, 0, max_pieces) if float(logits[i, 0] + logits[j, 1]) > 0]
    return _answered(logits, pairs, threshold, _sum) if pairs else (0, 0)


@best_span.mistake("pieces outside the passage allowed", think="may an answer lie in the question?")
def anywhere(logits, is_context, max_pieces=30, threshold=0.0):
    everywhere = torch.ones_like(is_context)
    return _answered(logits, _pairs(everywhere, 0, max_pieces), threshold, _sum)


@best_span.mistake("everything but [CLS] allowed, also the question", think="may an answer lie in the question?")
def all_but_cls(logits, is_context, max_pieces=30, threshold=0.0):
    allowed = torch.ones_like(is_context)
    allowed[0] = False
    return _answered(logits, _pairs(allowed, 0, max_pieces), threshold, _sum)


@best_span.mistake("only the start has to lie in the passage", think="may an answer end on [SEP]?")
def start_in_the_passage(logits, is_context, max_pieces=30, threshold=0.0):
    inside = [i for i, yes in enumerate(is_context.tolist()) if yes]
    pairs = [(i, j) for i in inside for j in range(i, min(i + max_pieces, len(logits)))]
    return _answered(logits, pairs, threshold, _sum)


@best_span.mistake("only the end has to lie in the passage", think="may an answer begin in the question?")
def end_in_the_passage(logits, is_context, max_pieces=30, threshold=0.0):
    inside = [j for j, yes in enumerate(is_context.tolist()) if yes]
    pairs = [(i, j) for j in inside for i in range(max(1, j - max_pieces + 1), j + 1)]
    return _answered(logits, pairs, threshold, _sum)


@best_span.mistake(
    "always an answer: the score of no answer is not looked at", think="what do the two scores of [CLS] say?"
)
def always_an_answer(logits, is_context, max_pieces=30, threshold=0.0):
    return _answered(logits, _pairs(is_context, 0, max_pieces), threshold, _sum, lambda logits: -1e9)


@best_span.mistake("[CLS]'s start alone is the score of no answer", think="how many scores has every other pair?")
def start_of_cls_alone(logits, is_context, max_pieces=30, threshold=0.0):
    return _answered(logits, _pairs(is_context, 0, max_pieces), threshold, _sum, lambda logits: logits[0][0])


@best_span.mistake("[CLS]'s end alone is the score of no answer", think="how many scores has every other pair?")
def end_of_cls_alone(logits, is_context, max_pieces=30, threshold=0.0):
    return _answered(logits, _pairs(is_context, 0, max_pieces), threshold, _sum, lambda logits: logits[0][1])


@best_span.mistake("0 is the score of no answer", think="where does the model put its belief that there is none?")
def zero_for_nothing(logits, is_context, max_pieces=30, threshold=0.0):
    return _answered(logits, _pairs(is_context, 0, max_pieces), threshold, _sum, lambda logits: 0.0)


@best_span.mistake("the threshold ignored", think="what does a higher threshold make more frequent?")
def no_threshold(logits, is_context, max_pieces=30, threshold=0.0):
    return _answered(logits, _pairs(is_context, 0, max_pieces), 0.0, _sum)


@best_span.mistake("the threshold with the wrong sign", think="does a higher threshold mean more answers or fewer?")
def threshold_reversed(logits, is_context, max_pieces=30, threshold=0.0):
    return _answered(logits, _pairs(is_context, 0, max_pieces), -threshold, _sum)


@best_span.mistake("logits split on the wrong axis: the first half of the numbers taken for the starts",
                   think="what is the shape of logits[:, 0]?")  # fmt: skip
def wrong_axis(logits, is_context, max_pieces=30, threshold=0.0):
    split = logits.reshape(2, len(logits)).T
    return _answered(split, _pairs(is_context, 0, max_pieces), threshold, _sum)


@best_span.mistake("start and end columns exchanged", think="which column is S, which E?")
def columns_exchanged(logits, is_context, max_pieces=30, threshold=0.0):
    return _answered(logits.flip(1), _pairs(is_context, 0, max_pieces), threshold, _sum)


@best_span.mistake(
    "the place after the last piece returned as the end", think="what is asked for: last, or after the last?"
)
def after_the_last(logits, is_context, max_pieces=30, threshold=0.0):
    i, j = _answered(logits, _pairs(is_context, 0, max_pieces), threshold, _sum)
    return (i, j + 1) if (i, j) != (0, 0) else (0, 0)


@best_span.mistake("start and end score multiplied", think="what is (-2) times (-2)?")
def multiplied(logits, is_context, max_pieces=30, threshold=0.0):
    return _answered(logits, _pairs(is_context, 0, max_pieces), threshold, lambda x, i, j: x[i][0] * x[j][1],
                     lambda x: x[0][0] * x[0][1])  # fmt: skip


@best_span.mistake("probabilities added, instead of scores", think="which sum has the product of probabilities in it?")
def probabilities_added(logits, is_context, max_pieces=30, threshold=0.0):
    return _answered(logits.softmax(0), _pairs(is_context, 0, max_pieces), threshold, _sum)


@best_span.mistake("the smaller of the two scores decides, not their sum", think="what does the paper maximise?")
def the_smaller(logits, is_context, max_pieces=30, threshold=0.0):
    return _answered(logits, _pairs(is_context, 0, max_pieces), threshold,
                     lambda x, i, j: min(x[i][0], x[j][1]), lambda x: min(x[0]))  # fmt: skip


@best_span.mistake("places counted from the passage's first piece", think="what stands before it in the sequence?")
def from_the_passage_on(logits, is_context, max_pieces=30, threshold=0.0):
    i, j = _answered(logits, _pairs(is_context, 0, max_pieces), threshold, _sum)
    shift = int(is_context.nonzero()[0])
    return (i - shift, j - shift) if (i, j) != (0, 0) else (0, 0)


@best_span.mistake("an answer also when its score is only equal (>=)", think="what says “greater”?")
def equal_is_enough(logits, is_context, max_pieces=30, threshold=0.0):
    i, j = _answered(logits, _pairs(is_context, 0, max_pieces), threshold, _sum, lambda logits: -1e9)
    return (i, j) if float(logits[i, 0] + logits[j, 1]) >= float(logits[0].sum()) + threshold else (0, 0)


@best_span.mistake("only the 20 best starts and ends tried (n_best_size), and the best pair is not among them",
                   think="can a bad start belong to the best pair?")  # fmt: skip
def twenty_best(logits, is_context, max_pieces=30, threshold=0.0):
    starts, ends = logits.topk(20, 0).indices.T.tolist()
    pairs = [(i, j) for i, j in _pairs(is_context, 0, max_pieces) if i in starts and j in ends]
    return _answered(logits, pairs, threshold, _sum)


@best_span.mistake("start and end each compared with [CLS]'s own, not their sum",
                   think="what is compared with what in section 4.3?")  # fmt: skip
def each_by_itself(logits, is_context, max_pieces=30, threshold=0.0):
    i, j = _answered(logits, _pairs(is_context, 0, max_pieces), threshold, _sum, lambda logits: -1e9)
    x = logits.tolist()
    return (i, j) if x[i][0] > x[0][0] + threshold and x[j][1] > x[0][1] + threshold else (0, 0)


@best_span.mistake("the threshold as a share of no answer's score", think="plus τ, or times?")
def threshold_times(logits, is_context, max_pieces=30, threshold=0.0):
    return _answered(logits, _pairs(is_context, 0, max_pieces), 0.0, _sum, lambda x: sum(x[0]) * (1 + threshold))


@best_span.mistake("the end may lie before the start, if only it is near", think="what text is from 15 to 9?")
def near_either_way(logits, is_context, max_pieces=30, threshold=0.0):
    return _answered(logits, _pairs(is_context, 1 - max_pieces, max_pieces), threshold, _sum)


@best_span.mistake("the best pair sought first, and no answer when it is too long",
                   think="is there no other pair that is legal?")  # fmt: skip
def none_when_too_long(logits, is_context, max_pieces=30, threshold=0.0):
    i, j = _answered(logits, _pairs(is_context, 0, len(logits)), threshold, _sum)
    return (i, j) if j - i < max_pieces else (0, 0)


@best_span.mistake("probabilities multiplied and the threshold added to them", think="what is τ added to?")
def threshold_on_probabilities(logits, is_context, max_pieces=30, threshold=0.0):
    return _answered(logits.double().softmax(0), _pairs(is_context, 0, max_pieces), threshold,
                     lambda x, i, j: x[i][0] * x[j][1], lambda x: x[0][0] * x[0][1])  # fmt: skip


@best_span.mistake("softmax over start and end of a piece, not over pieces", think="what are the rivals of a start?")
def softmax_of_each_piece(logits, is_context, max_pieces=30, threshold=0.0):
    return _answered(logits.softmax(1), _pairs(is_context, 0, max_pieces), threshold, _sum)


@best_span.mistake("last piece first, first piece second", think="in which order are they asked for?")
def last_before_first_piece(logits, is_context, max_pieces=30, threshold=0.0):
    return _answered(logits, _pairs(is_context, 0, max_pieces), threshold, _sum)[::-1]


@best_span.mistake("(-1, -1) for no answer", think="which piece is at place -1?")
def minus_one_pair(logits, is_context, max_pieces=30, threshold=0.0):
    found = _answered(logits, _pairs(is_context, 0, max_pieces), threshold, _sum)
    return found if found != (0, 0) else (-1, -1)


@best_span.mistake("None for no answer", think="which pair stands for it?")
def none_pair(logits, is_context, max_pieces=30, threshold=0.0):
    found = _answered(logits, _pairs(is_context, 0, max_pieces), threshold, _sum)
    return found if found != (0, 0) else None


@best_span.mistake("the score returned with the pair", think="which two numbers are asked for?")
def pair_and_score(logits, is_context, max_pieces=30, threshold=0.0):
    i, j = _answered(logits, _pairs(is_context, 0, max_pieces), threshold, _sum)
    return i, j, float(logits[i, 0] + logits[j, 1])


@best_span.mistake("the scores outside the passage overwritten in the caller's tensor", think="who else needs logits?")
def overwritten(logits, is_context, max_pieces=30, threshold=0.0):
    found = _answered(logits, _pairs(is_context, 0, max_pieces), threshold, _sum)
    logits[~is_context] = -1e9
    return found


# ---------------------------------------------------------------- 10.6 exact match and F1


def _lower(text):
    return text.lower()


def _bare(text):
    return "".join(c for c in text if c not in string.punctuation)


def _no_articles(text):
    return re.sub(r"\b(a|an|the)\b", " ", text)


def _words(text, steps=(_lower, _bare, _no_articles)):
    for step in steps:
        text = step(text)
    return text.split()


def _f1(said, true):
    if not said or not true:
        return float(said == true)
    return 2 * (Counter(said) & Counter(true)).total() / (len(said) + len(true))


def _scored(prediction, answers, words=_words, f1=_f1, match=lambda said, true: float(said == true), best=max):
    said = words(prediction)
    golds = [words(answer) for answer in answers or [""]]
    return best([match(said, gold) for gold in golds]), best([f1(said, gold) for gold in golds])


def _without(step):
    steps = [s for s in (_lower, _bare, _no_articles) if s is not step]
    return lambda text: _words(text, steps)


@exact_match_and_f1.mistake("no normalising at all", think="is “The bridge.” another answer than “bridge”?")
def not_normalised(prediction, answers):
    return _scored(prediction, answers, str.split, match=lambda said, true: float(said == true))


@exact_match_and_f1.mistake("F1 first, exact match second", think="in which order are they asked for?")
def scores_exchanged(prediction, answers):
    return _scored(prediction, answers)[::-1]


@exact_match_and_f1.mistake("capitals not lowered", think="is “Bridge” another answer than “bridge”?")
def capitals_kept(prediction, answers):
    return _scored(prediction, answers, _without(_lower))


@exact_match_and_f1.mistake("punctuation kept", think="is “bridge.” another answer than “bridge”?")
def punctuation_kept(prediction, answers):
    return _scored(prediction, answers, _without(_bare))


@exact_match_and_f1.mistake("articles kept", think="is “the bridge” another answer than “a bridge”?")
def articles_kept(prediction, answers):
    return _scored(prediction, answers, _without(_no_articles))


@exact_match_and_f1.mistake("punctuation turned into spaces", think="what becomes of “U.S.A.”?")
def punctuation_as_space(prediction, answers):
    spaced = lambda text: "".join(" " if c in string.punctuation else c for c in text)  # noqa: E731
    return _scored(prediction, answers, lambda text: _words(text, (_lower, spaced, _no_articles)))


@exact_match_and_f1.mistake("articles removed before punctuation", think="what becomes of the last letter of “U.S.A.”?")
def articles_first(prediction, answers):
    return _scored(prediction, answers, lambda text: _words(text, (_lower, _no_articles, _bare)))


@exact_match_and_f1.mistake("articles removed before capitals were lowered", think="what becomes of “The bridge”?")
def articles_before_capitals(prediction, answers):
    return _scored(prediction, answers, lambda text: _words(text, (_bare, _no_articles, _lower)))


@exact_match_and_f1.mistake("articles removed inside words too: replace(“the”, “”)", think="what becomes of “theatre”?")
def articles_inside_words(prediction, answers):
    cut = lambda text: re.sub(r"the|an|a", "", text)  # noqa: E731
    return _scored(prediction, answers, lambda text: _words(text, (_lower, _bare, cut)))


@exact_match_and_f1.mistake("articles removed where a word begins with one", think="what becomes of “theatre”?")
def articles_at_the_beginning(prediction, answers):
    cut = lambda text: re.sub(r"\b(the|an|a)", "", text)  # noqa: E731
    return _scored(prediction, answers, lambda text: _words(text, (_lower, _bare, cut)))


@exact_match_and_f1.mistake("an article at the beginning removed, others not", think="what of “in the bridge”?")
def first_article_only(prediction, answers):
    cut = lambda text: re.sub(r"^\s*(the|an|a)\b", "", text)  # noqa: E731
    return _scored(prediction, answers, lambda text: _words(text, (_lower, _bare, cut)))


@exact_match_and_f1.mistake("“the” removed, “a” and “an” not", think="how many articles has English?")
def only_the(prediction, answers):
    cut = lambda text: re.sub(r"\bthe\b", " ", text)  # noqa: E731
    return _scored(prediction, answers, lambda text: _words(text, (_lower, _bare, cut)))


@exact_match_and_f1.mistake(
    "quotes and dashes outside ASCII removed as well", think="which marks has string.punctuation?"
)
def all_marks_removed(prediction, answers):
    bare = lambda text: re.sub(r"[^\w\s]", "", text)  # noqa: E731
    return _scored(prediction, answers, lambda text: _words(text, (_lower, bare, _no_articles)))


@exact_match_and_f1.mistake("white space left as it is", think="is a line break in the passage a part of the answer?")
def spaces_kept(prediction, answers):
    one = lambda text: _no_articles(_bare(text.lower()))  # noqa: E731
    said, golds = one(prediction), [one(answer) for answer in answers or [""]]
    return (max(float(said == gold) for gold in golds),
            max(_f1(said.split(), gold.split()) for gold in golds))  # fmt: skip


@exact_match_and_f1.mistake("exact match when the answer is inside the prediction",
                            think="what would a model gain by answering with the whole passage?")  # fmt: skip
def inside_is_enough(prediction, answers):
    return _scored(prediction, answers, match=lambda said, true: float(" ".join(true) in " ".join(said)))


@exact_match_and_f1.mistake("exact match without the order of words", think="is “mouse bridge” the “bridge mouse”?")
def order_ignored(prediction, answers):
    return _scored(prediction, answers, match=lambda said, true: float(sorted(said) == sorted(true)))


@exact_match_and_f1.mistake("F1 from sets of words: one that occurs twice counts once",
                            think="how many times is “mouse” shared?")  # fmt: skip
def sets_of_words(prediction, answers):
    return _scored(prediction, answers, f1=lambda said, true: _f1(sorted(set(said)), sorted(set(true))))


@exact_match_and_f1.mistake("shared words counted from the prediction only: each that the answer has somewhere",
                            think="the answer has it once, you say it three times: how many are shared?")  # fmt: skip
def each_that_occurs(prediction, answers):
    def f1(said, true):
        if not said or not true:
            return float(said == true)
        return 2 * sum(word in true for word in said) / (len(said) + len(true))

    return _scored(prediction, answers, f1=f1)


@exact_match_and_f1.mistake("F1 of characters instead of words", think="how near are “mouse” and “house”?")
def of_characters(prediction, answers):
    return _scored(prediction, answers, f1=lambda said, true: _f1(list("".join(said)), list("".join(true))))


@exact_match_and_f1.mistake("precision instead of F1", think="what if only one word is said, and it is right?")
def precision_alone(prediction, answers):
    def share(said, true):
        return (Counter(said) & Counter(true)).total() / len(said) if said and true else float(said == true)

    return _scored(prediction, answers, f1=share)


@exact_match_and_f1.mistake("recall instead of F1", think="what if the whole passage is said?")
def recall_alone(prediction, answers):
    def share(said, true):
        return (Counter(said) & Counter(true)).total() / len(true) if said and true else float(said == true)

    return _scored(prediction, answers, f1=share)


@exact_match_and_f1.mistake(
    "shared words over the union instead of F1", think="which of the two counts shared ones twice?"
)
def over_the_union(prediction, answers):
    def share(said, true):
        if not said or not true:
            return float(said == true)
        return (Counter(said) & Counter(true)).total() / (Counter(said) | Counter(true)).total()

    return _scored(prediction, answers, f1=share)


@exact_match_and_f1.mistake("a mean over the answers instead of the best", think="must one give all answers at once?")
def mean_of_answers(prediction, answers):
    return _scored(prediction, answers, best=lambda values: sum(values) / len(values))


@exact_match_and_f1.mistake("only the first answer looked at", think="what are the other answers for?")
def first_answer_only(prediction, answers):
    return _scored(prediction, answers[:1])


@exact_match_and_f1.mistake("only the last answer looked at", think="is the loop's variable kept, or the best?")
def last_answer_only(prediction, answers):
    return _scored(prediction, answers[-1:])


@exact_match_and_f1.mistake(
    "no answers at all not thought of: the maximum of nothing", think="what is right to say then?"
)
def no_answers_not_thought_of(prediction, answers):
    said = _words(prediction)
    golds = [_words(answer) for answer in answers]
    return max(float(said == gold) for gold in golds), max(_f1(said, gold) for gold in golds)


@exact_match_and_f1.mistake(
    "0 where there is no answer, even for an empty prediction", think="what is right to say then?"
)
def always_wrong_without_answers(prediction, answers):
    return _scored(prediction, answers) if answers else (0.0, 0.0)


@exact_match_and_f1.mistake("a division by zero for an empty answer or prediction", think="how many words has “”?")
def divides_by_no_words(prediction, answers):
    def f1(said, true):
        common = (Counter(said) & Counter(true)).total()
        precision, recall = common / len(said), common / len(true)
        return 2 * precision * recall / (precision + recall) if common else 0.0

    return _scored(prediction, answers, f1=f1)


@exact_match_and_f1.mistake(
    "F1 0 for two empty texts, as in SQuAD 1.1", think="nothing was to be said, and nothing was?"
)
def zero_for_two_empty(prediction, answers):
    def f1(said, true):
        return 0.0 if not said or not true else _f1(said, true)

    return _scored(prediction, answers, f1=f1)


@exact_match_and_f1.mistake("percent instead of shares", think="between which two numbers were the scores asked for?")
def in_percent(prediction, answers):
    match, f1 = _scored(prediction, answers)
    return 100 * match, 100 * f1


@exact_match_and_f1.mistake("exact match with the answer of the best F1 only", think="can two answers have F1 1?")
def match_of_the_best_f1(prediction, answers):
    said, golds = _words(prediction), [_words(answer) for answer in answers or [""]]
    gold = max(golds, key=lambda gold: _f1(said, gold))
    return float(said == gold), _f1(said, gold)


@exact_match_and_f1.mistake("no answers: prediction compared with “” before it is brought to plain words",
                            think="how many words has “The!”?")  # fmt: skip
def no_answers_before_words(prediction, answers):
    return _scored(prediction, answers) if answers else (float(prediction == ""),) * 2


@exact_match_and_f1.mistake("an empty prediction judged before the answers are brought to plain words",
                            think="how many words has “The!”?")  # fmt: skip
def empty_before_words(prediction, answers):
    return _scored(prediction, answers) if prediction else (float(not answers or "" in answers),) * 2


@exact_match_and_f1.mistake("punctuation removed only where a word begins or ends (strip)",
                            think="what becomes of “lantern's”?")  # fmt: skip
def marks_inside_words_kept(prediction, answers):
    strip = lambda text: " ".join(word.strip(string.punctuation) for word in text.split())  # noqa: E731
    return _scored(prediction, answers, lambda text: _words(text, (_lower, strip, _no_articles)))


@exact_match_and_f1.mistake("a few marks removed, not all of string.punctuation", think="which 32 marks are there?")
def a_few_marks(prediction, answers):
    few = lambda text: re.sub(r"[.,;:!?'\"-]", "", text)  # noqa: E731
    return _scored(prediction, answers, lambda text: _words(text, (_lower, few, _no_articles)))


@exact_match_and_f1.mistake(
    "“_” kept: for a regular expression it is a letter (\\w)", think="is _ in string.punctuation?"
)
def underscore_kept(prediction, answers):
    bare = lambda text: "".join(c for c in text if c == "_" or c not in string.punctuation)  # noqa: E731
    return _scored(prediction, answers, lambda text: _words(text, (_lower, bare, _no_articles)))


@exact_match_and_f1.mistake("articles sought with a space on both sides: of two side by side one stays",
                            think="which spaces are left for the second?")  # fmt: skip
def articles_between_spaces(prediction, answers):
    cut = lambda text: re.sub(r" (a|an|the) ", " ", f" {' '.join(text.split())} ")  # noqa: E731
    return _scored(prediction, answers, lambda text: _words(text, (_lower, _bare, cut)))


@exact_match_and_f1.mistake("an article removed only with a space after it", think="what of one at the very end?")
def articles_before_a_space(prediction, answers):
    cut = lambda text: re.sub(r"\b(a|an|the)\s", "", text)  # noqa: E731
    return _scored(prediction, answers, lambda text: _words(text, (_lower, _bare, cut)))


@exact_match_and_f1.mistake("articles removed with the spaces around them: two words grow together",
                            think="what stands between the words on either side?")  # fmt: skip
def words_grown_together(prediction, answers):
    cut = lambda text: re.sub(r"\s*\b(a|an|the)\b\s*", "", text)  # noqa: E731
    return _scored(prediction, answers, lambda text: _words(text, (_lower, _bare, cut)))


@exact_match_and_f1.mistake("exact match of the letters, without the spaces between words",
                            think="are “foot ball” and “football” the same words?")  # fmt: skip
def letters_alone(prediction, answers):
    return _scored(prediction, answers, match=lambda said, true: float("".join(said) == "".join(true)))


@exact_match_and_f1.mistake("split at single spaces: tabs and line breaks stay in words",
                            think="what is white space besides “ ”?")  # fmt: skip
def split_at_spaces(prediction, answers):
    words = lambda text: [word for word in _no_articles(_bare(text.lower())).split(" ") if word]  # noqa: E731
    return _scored(prediction, answers, words)


@exact_match_and_f1.mistake("the prediction not brought to plain words, the answers only",
                            think="who writes capitals, the model or the people?")  # fmt: skip
def answers_normalised_only(prediction, answers):
    golds = [_words(answer) for answer in answers or [""]]
    said = prediction.split()
    return max(float(said == gold) for gold in golds), max(_f1(said, gold) for gold in golds)


@exact_match_and_f1.mistake("words compared place by place for F1", think="does F1 ask for the order?")
def place_by_place(prediction, answers):
    def f1(said, true):
        if not said or not true:
            return float(said == true)
        return 2 * sum(a == b for a, b in zip(said, true, strict=False)) / (len(said) + len(true))

    return _scored(prediction, answers, f1=f1)


@exact_match_and_f1.mistake("all answers in one bag of words for F1", think="must one give all answers at once?")
def answers_in_one_bag(prediction, answers):
    match, _ = _scored(prediction, answers)
    return match, _f1(_words(prediction), [word for answer in answers for word in _words(answer)])


@exact_match_and_f1.mistake("only the shortest answer looked at", think="what are the other answers for?")
def shortest_answer_only(prediction, answers):
    return _scored(prediction, [min(answers, key=len)] if answers else [])


@exact_match_and_f1.mistake("words without letters left out: numbers, say", think="is 1905 no answer?")
def numbers_left_out(prediction, answers):
    return _scored(prediction, answers, lambda text: [word for word in _words(text) if word.isalpha()])


@exact_match_and_f1.mistake("“” added to the caller's empty list of answers", think="who else holds this list?")
def added_for_the_caller(prediction, answers):
    found = _scored(prediction, answers)
    if not answers:
        answers.append("")
    return found
