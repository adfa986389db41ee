"""What students really get wrong in unit 05, as code: each must be rejected and called by its name."""

import random

import torch
import torch.nn.functional as F

from coursework.checks.nsp import (
    gather,
    make_pair,
    nsp_head,
    nsp_loss,
    order_pair,
    pretraining_loss,
    read_documents,
)

# ---------------------------------------------------------------- 05.1 read documents


@read_documents.mistake(
    "every line a document of its own: then no sentence has a next, and every pair is random",
    think="what ends a document: the end of a line, or an empty line?",
)
def each_line_a_document(text):
    return [[line.strip()] for line in text.splitlines() if line.strip()]


@read_documents.mistake("one document for all: the empty lines are only left out", think="where does a document end?")
def one_document(text):
    return [[line.strip() for line in text.splitlines() if line.strip()]]


@read_documents.mistake(
    "a new document at every empty line, also where nothing was collected",
    think="what do two empty lines in a row enclose?",
)
def blank_lines_as_documents(text):
    documents = [[]]
    for line in text.splitlines():
        if line.strip():
            documents[-1].append(line.strip())
        else:
            documents.append([])
    return documents


@read_documents.mistake("empty lines kept as sentences", think="what would BERT learn from a sentence of no words?")
def blank_lines_as_sentences(text):
    documents, current = [], []
    for line in text.splitlines():
        current.append(line.strip())
        if not line.strip():
            documents.append(current)
            current = []
    return [*documents, current] if current else documents


@read_documents.mistake(
    "the last document forgotten: no empty line comes after it", think="what is in your hands when the loop ends?"
)
def last_document_lost(text):
    documents, current = [], []
    for line in text.splitlines():
        if line.strip():
            current.append(line.strip())
        elif current:
            documents.append(current)
            current = []
    return documents


@read_documents.mistake(
    "the last document forgotten where the text ends without an empty line",
    think="what is in your hands when the loop ends?",
)
def last_document_lost_without_an_end(text):
    documents, current = [], []
    for line in text.split("\n"):
        if line.strip():
            current.append(line.strip())
        elif current:
            documents.append(current)
            current = []
    return documents


@read_documents.mistake(
    "split at '\\n\\n': more empty lines than one, or one with a blank in it, are not seen",
    think="what does split give between four ends of line in a row?",
)
def split_at_two_ends(text):
    return [block.split("\n") for block in text.split("\n\n")]


@read_documents.mistake(
    "split at '\\n\\n', then the sentences tidied, but not the documents",
    think="what stands before the first '\\n\\n'?",
)
def split_at_two_ends_and_stripped(text):
    return [[line.strip() for line in block.split("\n") if line.strip()] for block in text.split("\n\n")]


@read_documents.mistake(
    "split at '\\n\\n': a line that holds only white space ends no document there",
    think="what stands between the two ends of line?",
)
def split_at_two_ends_and_tidied(text):
    return [document for document in split_at_two_ends_and_stripped(text) if document]


@read_documents.mistake("white space taken off the end only", think="which sides does rstrip leave?")
def end_stripped_only(text):
    documents, current = [], []
    for line in [*text.splitlines(), ""]:
        if line.strip():
            current.append(line.rstrip())
        elif current:
            documents.append(current)
            current = []
    return documents


@read_documents.mistake("the end of the line left at each sentence", think="what does strip do?")
def ends_of_lines_left(text):
    documents, current = [], []
    for line in [*text.splitlines(keepends=True), ""]:
        if line.strip():
            current.append(line)
        elif current:
            documents.append(current)
            current = []
    return documents


@read_documents.mistake(
    "a line with a blank in it not seen as empty, and the white space left",
    think="how does a line that holds only a space differ from an empty one, to the eye?",
)
def spaces_are_not_empty(text):
    documents, current = [], []
    for line in [*text.splitlines(), ""]:
        if line:
            current.append(line)
        elif current:
            documents.append(current)
            current = []
    return documents


@read_documents.mistake("split at full stops again", think="each line is a sentence already: who split the text?")
def split_at_full_stops(text):
    documents, current = [], []
    for line in [*text.splitlines(), ""]:
        if line.strip():
            current += [part.strip() for part in line.split(". ")]
        elif current:
            documents.append(current)
            current = []
    return documents


@read_documents.mistake("one list emptied and used again for each document", think="what does .clear() do to it?")
def list_used_again(text):
    documents, current = [], []
    for line in [*text.splitlines(), ""]:
        if line.strip():
            current.append(line.strip())
        elif current:
            documents.append(current)
            current.clear()
    return documents


@read_documents.mistake(
    "the lines of a document joined to one", think="where does a sentence end, if not with its line?"
)
def lines_joined(text):
    documents, current = [], []
    for line in [*text.splitlines(), ""]:
        if line.strip():
            current.append(line.strip())
        elif current:
            documents.append([" ".join(current)])
            current = []
    return documents


# ---------------------------------------------------------------- 05.2 gather


@gather.mistake(
    "a single sentence: but a segment is packed full", think="how many sentences does the target have room for?"
)
def single_sentence(document, start, target):
    return document[start : start + 1]


@gather.mistake(
    "the sentence that goes over the target left out", think="may the last sentence go over? What does the text say?"
)
def stops_before_going_over(document, start, target):
    taken, length = [], 0
    for sentence in document[start:]:
        if length + len(sentence) > target:
            break
        taken.append(sentence)
        length += len(sentence)
    return taken


@gather.mistake("one sentence more where the target is met exactly", think="is 12 of 12 enough?")
def more_when_exact(document, start, target):
    taken, length = [], 0
    for sentence in document[start:]:
        if length > target:
            break
        taken.append(sentence)
        length += len(sentence)
    return taken


@gather.mistake("one sentence too many: added before asking whether there is enough", think="when do you ask?")
def one_too_many(document, start, target):
    taken, length = [], 0
    for sentence in document[start:]:
        taken.append(sentence)
        if length >= target:
            break
        length += len(sentence)
    return taken


@gather.mistake("sentences counted instead of tokens", think="target is a number of what?")
def counts_sentences(document, start, target):
    return document[start : start + target]


@gather.mistake("from the beginning of the document, whatever start says", think="what is start for?")
def from_the_beginning(document, start, target):
    taken, length = [], 0
    for sentence in document:
        if length >= target:
            break
        taken.append(sentence)
        length += len(sentence)
    return taken


@gather.mistake(
    "one sentence too late: start itself is left out", think="is sentence number start the first or the one before?"
)
def after_start(document, start, target):
    taken, length = [], 0
    for sentence in document[start + 1 :]:
        if length >= target:
            break
        taken.append(sentence)
        length += len(sentence)
    return taken


@gather.mistake("one sentence too early: start counted from 1", think="which number has the first sentence?")
def start_counted_from_one(document, start, target):
    return _take(document, start - 1, target)


@gather.mistake(
    "the tokens before start counted too", think="which tokens are in your hands when you have taken nothing yet?"
)
def earlier_tokens_counted(document, start, target):
    return _take(document, start, target - _length(document[:start]))


@gather.mistake("the last sentence cut to fit", think="who cuts, and when? Are the results still whole sentences?")
def cut_to_fit(document, start, target):
    taken, length = [], 0
    for sentence in document[start:]:
        if length >= target:
            break
        taken.append(sentence[: target - length])
        length += len(sentence)
    return taken


@gather.mistake("all tokens in one list", think="a list of sentences, or a list of numbers?")
def flattened(document, start, target):
    taken, length = [], 0
    for sentence in document[start:]:
        if length >= target:
            break
        taken += sentence
        length += len(sentence)
    return taken


@gather.mistake("all in a single sentence", think="how many sentences should there be?")
def melted(document, start, target):
    tokens, length = [], 0
    for sentence in document[start:]:
        if length >= target:
            break
        tokens += sentence
        length += len(sentence)
    return [tokens]


@gather.mistake("sentences taken out of the document itself", think="who else needs this document?")
def pops(document, start, target):
    taken, length = [], 0
    while start < len(document) and length < target:
        taken.append(document.pop(start))
        length += len(taken[-1])
    return taken


@gather.mistake("no look at the end of the document", think="what if the document ends before the target is reached?")
def past_the_end(document, start, target):
    taken, length = [], 0
    while length < target:
        taken.append(document[start])
        length += len(document[start])
        start += 1
    return taken


@gather.mistake("the last sentence of the document never taken", think="which number does the last sentence have?")
def last_left_out(document, start, target):
    taken, length = [], 0
    while start < len(document) - 1 and length < target:
        taken.append(document[start])
        length += len(document[start])
        start += 1
    return taken


# ---------------------------------------------------------------- 05.3 make a pair


def _take(document, start, target):
    taken, length = [], 0
    while start < len(document) and length < target:
        taken.append(document[start])
        length += len(document[start])
        start += 1
    return taken


def _chunk(documents, number, start, target):
    chunk = _take(documents[number], start, target)
    return chunk if len(chunk) > 1 else documents[number][start : start + 2]


def _length(segment):
    return sum(len(sentence) for sentence in segment)


def _another(documents, number):
    return random.choice([i for i in range(len(documents)) if i != number])


def _pair(documents, number, start, target, chunk=None, cut=None, other=None, begin=None, room=None, p=0.5):
    """The right answer, with one thing replaced: each replacement is a value or a function of what is there."""
    chunk = chunk or _chunk(documents, number, start, target)
    cut = random.randint(1, len(chunk) - 1) if cut is None else cut(len(chunk))
    a = chunk[:cut]
    if random.random() < p:
        return a, chunk[cut:], 0, len(chunk)
    other = _another(documents, number) if other is None else other(documents, number)
    begin = random.randrange(len(documents[other])) if begin is None else begin(len(documents[other]))
    room = max(1, target - _length(a)) if room is None else room(target, a)
    return a, _take(documents[other], begin, room), 1, len(a)


@make_pair.mistake("labels the wrong way round: 1 for the true next", think="which number is IsNext?")
def labels_reversed(documents, number, start, target):
    a, b, label, used = _pair(documents, number, start, target)
    return a, b, 1 - label, used


@make_pair.mistake(
    "the random B drawn from all documents, A's own among them",
    think="which document must the random one not be? It may even give the true next.",
)
def own_document_included(documents, number, start, target):
    return _pair(documents, number, start, target, other=lambda documents, number: random.randrange(len(documents)))


@make_pair.mistake(
    "the random B drawn from A's own document", think="a random sentence of the same text: how random is its topic?"
)
def own_document_always(documents, number, start, target):
    return _pair(documents, number, start, target, other=lambda documents, number: number)


@make_pair.mistake(
    "the random B taken from further down in the same document", think="how does a model tell far from near?"
)
def further_down(documents, number, start, target):
    document, chunk = documents[number], _chunk(documents, number, start, target)
    cut = random.randint(1, len(chunk) - 1)
    a, later = chunk[:cut], start + cut + 1
    if random.random() < 0.5 or later >= len(document):
        return a, chunk[cut:], 0, len(chunk)
    return a, _take(document, random.randrange(later, len(document)), max(1, target - _length(a))), 1, len(a)


@make_pair.mistake("segments of one sentence each", think="how much of the 512 places would such a pair fill?")
def single_sentences(documents, number, start, target):
    a = documents[number][start : start + 1]
    if random.random() < 0.5:
        return a, documents[number][start + 1 : start + 2], 0, 2
    other = documents[_another(documents, number)]
    begin = random.randrange(len(other))
    return a, other[begin : begin + 1], 1, 1


@make_pair.mistake(
    "A packed, but the random B a single sentence", think="could a model tell NotNext by B's length alone?"
)
def random_b_of_one_sentence(documents, number, start, target):
    return _pair(documents, number, start, target, room=lambda target, a: 1)


@make_pair.mistake(
    "A packed, but the true next a single sentence", think="could a model tell IsNext by B's length alone?"
)
def next_b_of_one_sentence(documents, number, start, target):
    a, b, label, used = _pair(documents, number, start, target)
    return (a, b[:1], 0, len(a) + 1) if label == 0 else (a, b, label, used)


@make_pair.mistake("the random B as long as the whole target", think="how much room has A left?")
def random_b_full_length(documents, number, start, target):
    return _pair(documents, number, start, target, room=lambda target, a: target)


@make_pair.mistake(
    "B empty where A alone fills the target: no token of room is left", think="how many sentences has B at least?"
)
def no_room_left(documents, number, start, target):
    return _pair(documents, number, start, target, room=lambda target, a: target - _length(a))


@make_pair.mistake("the random B up to the end of its document", think="how much room has A left?")
def random_b_to_the_end(documents, number, start, target):
    return _pair(documents, number, start, target, room=lambda target, a: 10**9)


@make_pair.mistake(
    "the target filled twice: once by A, once more by B", think="is target the length of a segment, or of the pair?"
)
def target_for_each(documents, number, start, target):
    document = documents[number]
    a = _take(document[:-1], start, target)
    b = _take(document, start + len(a), target)
    if random.random() < 0.5:
        return a, b, 0, len(a) + len(b)
    other = _another(documents, number)
    return a, _take(documents[other], random.randrange(len(documents[other])), target), 1, len(a)


@make_pair.mistake("B begins one sentence too late", think="which sentence comes right after A?")
def a_sentence_skipped(documents, number, start, target):
    a, b, label, used = _pair(documents, number, start, target)
    later = start + len(a) + 1
    if label == 1 or later >= len(documents[number]):
        return a, b, label, used
    return a, _take(documents[number], later, max(1, target - _length(a))), 0, used


@make_pair.mistake("B begins with A's last sentence", think="does the slice for b begin where the slice for a ends?")
def overlapping(documents, number, start, target):
    a, b, label, used = _pair(documents, number, start, target)
    return (a, a[-1:] + b, 0, used) if label == 0 else (a, b, label, used)


@make_pair.mistake("start forgotten: A is always the beginning of the document", think="what is start for?")
def always_from_the_beginning(documents, number, start, target):
    return _pair(documents, number, 0, target)


@make_pair.mistake(
    "a cut of 0 or of everything is possible: A or B empty", think="which cuts leave both with a sentence?"
)
def empty_segments(documents, number, start, target):
    return _pair(documents, number, start, target, cut=lambda count: random.choice((0, count)))


@make_pair.mistake("the chunk cut in the middle each time", think="should all A be about as long as B?")
def cut_in_the_middle(documents, number, start, target):
    return _pair(documents, number, start, target, cut=lambda count: count // 2)


@make_pair.mistake("A is always one sentence and B the rest", think="how many ways are there to cut?")
def cut_after_the_first(documents, number, start, target):
    return _pair(documents, number, start, target, cut=lambda count: 1)


@make_pair.mistake(
    "the last cut never drawn: random.randrange leaves its end out", think="what is the largest number that it gives?"
)
def last_cut_missing(documents, number, start, target):
    return _pair(documents, number, start, target, cut=lambda count: random.randrange(1, max(2, count - 1)))


@make_pair.mistake("always IsNext", think="what does a model learn that only ever sees one answer?")
def always_next(documents, number, start, target):
    return _pair(documents, number, start, target, p=1.0)


@make_pair.mistake("always NotNext", think="what does a model learn that only ever sees one answer?")
def never_next(documents, number, start, target):
    return _pair(documents, number, start, target, p=0.0)


@make_pair.mistake(
    "85 to 15 instead of 50 to 50: that is the share of masked words", think="how often is B the true next?"
)
def share_of_masking(documents, number, start, target):
    return _pair(documents, number, start, target, p=0.85)


@make_pair.mistake("the same seed set inside: the same pair every time", think="what does the second call draw?")
def seed_inside(documents, number, start, target):
    random.seed(42)
    return _pair(documents, number, start, target)


@make_pair.mistake(
    "the random B goes on over the end of its document into another",
    think="what should B do when its document ends before there are enough tokens?",
)
def over_the_end(documents, number, start, target):
    a, b, label, used = _pair(documents, number, start, target)
    if label == 1:
        pool = [sentence for i, document in enumerate(documents) if i != number for sentence in document]
        b = _take(pool, random.randrange(len(pool)), max(1, target - _length(a)))
    return a, b, label, used


@make_pair.mistake("the caller's documents changed in place (pop, remove)", think="who else needs these documents?")
def taken_out(documents, number, start, target):
    document = documents.pop(number)
    return _pair([document, *documents], 0, start, target)


@make_pair.mistake("the other document is always the one after", think="can any other document come?")
def the_next_document(documents, number, start, target):
    return _pair(documents, number, start, target, other=lambda documents, number: (number + 1) % len(documents))


@make_pair.mistake("the random B always begins its document", think="do beginnings sound like the middle of a text?")
def first_sentence_always(documents, number, start, target):
    return _pair(documents, number, start, target, begin=lambda count: 0)


@make_pair.mistake("the last sentence of the other document never drawn", think="is the end of the range in it?")
def last_beginning_missing(documents, number, start, target):
    return _pair(documents, number, start, target, begin=lambda count: random.randrange(count - 1))


@make_pair.mistake(
    "the sentences that the random B displaced are counted as used", think="when would they be seen, then?"
)
def displaced_are_lost(documents, number, start, target):
    chunk = _chunk(documents, number, start, target)
    a, b, label, _ = _pair(documents, number, start, target, chunk=chunk)
    return a, b, label, len(chunk)


@make_pair.mistake("the random B's sentences counted as used", think="whose sentences are used up?")
def both_counted(documents, number, start, target):
    a, b, label, _ = _pair(documents, number, start, target)
    return a, b, label, len(a) + len(b)


@make_pair.mistake("only A's sentences counted as used", think="is the true next of this document too?")
def only_a_counted(documents, number, start, target):
    a, b, label, _ = _pair(documents, number, start, target)
    return a, b, label, len(a)


@make_pair.mistake(
    "where to go on, instead of how many were used", think="used is a number of sentences: counted from where?"
)
def the_place_instead(documents, number, start, target):
    a, b, label, used = _pair(documents, number, start, target)
    return a, b, label, start + used


@make_pair.mistake("tokens counted as used, not sentences", think="used is a number of what?")
def tokens_counted(documents, number, start, target):
    a, b, label, _ = _pair(documents, number, start, target)
    return a, b, label, _length(a) + (_length(b) if label == 0 else 0)


@make_pair.mistake(
    "no second sentence when one fills the target: there is nothing to cut",
    think="what are the possible cuts of a single sentence?",
)
def one_long_sentence(documents, number, start, target):
    return _pair(documents, number, start, target, chunk=_take(documents[number], start, target))


@make_pair.mistake(
    "NotNext without a draw when one sentence fills the target",
    think="that is what Google's code does; what does this exercise ask for?",
)
def long_sentence_never_next(documents, number, start, target):
    chunk = _take(documents[number], start, target)
    if len(chunk) > 1:
        return _pair(documents, number, start, target)
    other = documents[_another(documents, number)]
    return chunk, other[(begin := random.randrange(len(other))) : begin + 1], 1, 1


@make_pair.mistake("labels drawn by a coin of their own", think="which draw decides what B is?")
def label_by_another_coin(documents, number, start, target):
    a, b, _, used = _pair(documents, number, start, target)
    return a, b, random.randrange(2), used


@make_pair.mistake(
    "cut to the target by taking tokens off B's end: always B loses",
    think="which of the two should lose, and is it done here?",
)
def b_cut_to_the_target(documents, number, start, target):
    a, b, label, used = _pair(documents, number, start, target)
    while len(b) > 1 and _length(a) + _length(b) > target:
        b = b[:-1] if len(b[-1]) == 1 else [*b[:-1], b[-1][:-1]]
    return a, b, label, used


# ---------------------------------------------------------------- 05.4 sentence order


@order_pair.mistake("labels the wrong way round", think="which number is “in order”?")
def order_labels_reversed(sentences):
    cut = random.randint(1, len(sentences) - 1)
    if random.random() < 0.5:
        return sentences[:cut], sentences[cut:], 1
    return sentences[cut:], sentences[:cut], 0


@order_pair.mistake(
    "the sentences reversed instead of the segments swapped", think="what is swapped: two segments, or all sentences?"
)
def sentences_reversed(sentences):
    cut = random.randint(1, len(sentences) - 1)
    if random.random() < 0.5:
        return sentences[:cut], sentences[cut:], 0
    return sentences[cut:][::-1], sentences[:cut][::-1], 1


@order_pair.mistake("the words reversed as well", think="what is swapped: two segments, or all words?")
def words_reversed(sentences):
    cut = random.randint(1, len(sentences) - 1)
    if random.random() < 0.5:
        return sentences[:cut], sentences[cut:], 0
    return [s[::-1] for s in sentences[cut:]], [s[::-1] for s in sentences[:cut]], 1


@order_pair.mistake(
    "the caller's list changed in place (reverse, pop)", think="what does .reverse() do to the caller's list?"
)
def reversed_in_place(sentences):
    cut = random.randint(1, len(sentences) - 1)
    if random.random() < 0.5:
        return sentences[:cut], sentences[cut:], 0
    sentences.reverse()
    return sentences[:cut], sentences[cut:], 1


@order_pair.mistake("never swapped, only the label changes", think="what does the model see when the label is 1?")
def only_the_label(sentences):
    cut = random.randint(1, len(sentences) - 1)
    return sentences[:cut], sentences[cut:], random.randrange(2)


@order_pair.mistake("swapped, but the label is a draw of its own", think="which draw decides the order?")
def two_coins(sentences):
    cut = random.randint(1, len(sentences) - 1)
    a, b = sentences[:cut], sentences[cut:]
    return (a, b, random.randrange(2)) if random.random() < 0.5 else (b, a, random.randrange(2))


@order_pair.mistake("always in order", think="what does a model learn that only ever sees one answer?")
def never_swapped(sentences):
    cut = random.randint(1, len(sentences) - 1)
    return sentences[:cut], sentences[cut:], 0


@order_pair.mistake("always swapped", think="what does a model learn that only ever sees one answer?")
def always_swapped(sentences):
    cut = random.randint(1, len(sentences) - 1)
    return sentences[cut:], sentences[:cut], 1


@order_pair.mistake("cut in the middle each time", think="how many ways are there to cut?")
def always_in_the_middle(sentences):
    cut = len(sentences) // 2
    if random.random() < 0.5:
        return sentences[:cut], sentences[cut:], 0
    return sentences[cut:], sentences[:cut], 1


@order_pair.mistake("cut after the first sentence each time", think="how many ways are there to cut?")
def always_after_the_first(sentences):
    if random.random() < 0.5:
        return sentences[:1], sentences[1:], 0
    return sentences[1:], sentences[:1], 1


@order_pair.mistake("two sentences picked, the others lost", think="where do the other sentences go?")
def two_neighbours(sentences):
    i = random.randrange(len(sentences) - 1)
    a, b = sentences[i : i + 1], sentences[i + 1 : i + 2]
    return (a, b, 0) if random.random() < 0.5 else (b, a, 1)


@order_pair.mistake(
    "a overwritten before b is taken from it: both are the same", think="what is in a after the first line?"
)
def overwritten(sentences):
    cut = random.randint(1, len(sentences) - 1)
    a, b, label = sentences[:cut], sentences[cut:], 0
    if random.random() < 0.5:
        a = b
        b = a
        label = 1
    return a, b, label


@order_pair.mistake("the sentence before the cut taken twice", think="where does the second part begin?")
def cut_with_overlap(sentences):
    cut = random.randint(1, len(sentences) - 1)
    a, b = sentences[:cut], sentences[cut - 1 :]
    return (a, b, 0) if random.random() < 0.5 else (b, a, 1)


@order_pair.mistake(
    "a cut of 0 or of everything is possible: an empty segment", think="which cuts leave both with a sentence?"
)
def empty_half(sentences):
    cut = random.choice((0, len(sentences)))
    if random.random() < 0.5:
        return sentences[:cut], sentences[cut:], 0
    return sentences[cut:], sentences[:cut], 1


@order_pair.mistake("the same seed set inside: the same pair every time", think="what does the second call draw?")
def order_seed_inside(sentences):
    random.seed(0)
    cut = random.randint(1, len(sentences) - 1)
    if random.random() < 0.5:
        return sentences[:cut], sentences[cut:], 0
    return sentences[cut:], sentences[:cut], 1


# ---------------------------------------------------------------- 05.5 NSP head


def _logits(pooled, weights):
    return F.linear(pooled, weights["classifier.weight"], weights["classifier.bias"])


def _dense(x, weights):
    return F.linear(x, weights["pooler.weight"], weights["pooler.bias"])


@nsp_head.mistake("the raw [CLS]: the pooler is left out", think="what stands between [CLS] and the classifier?")
def raw_cls(hidden, weights):
    return _logits(hidden[:, 0], weights)


@nsp_head.mistake("the mean of all tokens instead of [CLS]", think="which token does the pooler read?")
def mean_of_tokens(hidden, weights):
    return _logits(_dense(hidden.mean(1), weights).tanh(), weights)


@nsp_head.mistake("the pooler on each token, then the mean", think="which token does the pooler read?")
def mean_of_pooled(hidden, weights):
    return _logits(_dense(hidden, weights).tanh().mean(1), weights)


@nsp_head.mistake("the largest of all tokens instead of [CLS]", think="which token does the pooler read?")
def largest_of_tokens(hidden, weights):
    return _logits(_dense(hidden.amax(1), weights).tanh(), weights)


@nsp_head.mistake("scores for every token", think="how many answers does one pair of sentences need?")
def every_token(hidden, weights):
    return _logits(_dense(hidden, weights).tanh(), weights)


@nsp_head.mistake("the last token instead of the first", think="where does [CLS] stand?")
def last_token(hidden, weights):
    return _logits(_dense(hidden[:, -1], weights).tanh(), weights)


@nsp_head.mistake("the first text of the batch instead of the first token of each", think="which axis of hidden is S?")
def first_text(hidden, weights):
    return _logits(_dense(hidden[0], weights).tanh(), weights)


@nsp_head.mistake("no tanh", think="what happens between the two layers?")
def no_tanh(hidden, weights):
    return _logits(_dense(hidden[:, 0], weights), weights)


@nsp_head.mistake("tanh before the dense layer", think="in which order: dense, then tanh, or the other way?")
def tanh_first(hidden, weights):
    return _logits(_dense(hidden[:, 0].tanh(), weights), weights)


@nsp_head.mistake("tanh on the scores too", think="may a score be larger than 1?")
def tanh_on_scores(hidden, weights):
    return _logits(_dense(hidden[:, 0], weights).tanh(), weights).tanh()


@nsp_head.mistake("GELU instead of tanh", think="which function does the pooler use?")
def gelu_pooler(hidden, weights):
    return _logits(F.gelu(_dense(hidden[:, 0], weights)), weights)


@nsp_head.mistake("ReLU instead of tanh", think="which function does the pooler use?")
def relu_pooler(hidden, weights):
    return _logits(_dense(hidden[:, 0], weights).relu(), weights)


@nsp_head.mistake("sigmoid instead of tanh", think="between which numbers does tanh lie?")
def sigmoid_pooler(hidden, weights):
    return _logits(_dense(hidden[:, 0], weights).sigmoid(), weights)


@nsp_head.mistake("tanh, but no dense layer", think="what are pooler.weight and pooler.bias for?")
def no_dense(hidden, weights):
    return _logits(hidden[:, 0].tanh(), weights)


@nsp_head.mistake("pooler.bias forgotten", think="which of the four tensors is not in your function?")
def no_pooler_bias(hidden, weights):
    return _logits((hidden[:, 0] @ weights["pooler.weight"].T).tanh(), weights)


@nsp_head.mistake("classifier.bias forgotten", think="which of the four tensors is not in your function?")
def no_classifier_bias(hidden, weights):
    return _dense(hidden[:, 0], weights).tanh() @ weights["classifier.weight"].T


@nsp_head.mistake("the pooler's weight not transposed", think="is pooler.weight (out, in) or (in, out)?")
def weight_not_transposed(hidden, weights):
    return _logits((hidden[:, 0] @ weights["pooler.weight"] + weights["pooler.bias"]).tanh(), weights)


@nsp_head.mistake("the pooler twice", think="how many layers stand between [CLS] and the scores?")
def pooler_twice(hidden, weights):
    return _logits(_dense(_dense(hidden[:, 0], weights).tanh(), weights).tanh(), weights)


@nsp_head.mistake("[CLS] added to the pooled vector", think="is there a residual in the pooler?")
def residual(hidden, weights):
    return _logits(hidden[:, 0] + _dense(hidden[:, 0], weights).tanh(), weights)


@nsp_head.mistake("softmax at the end: probabilities, no scores", think="what does cross-entropy want to be given?")
def probabilities(hidden, weights):
    return _logits(_dense(hidden[:, 0], weights).tanh(), weights).softmax(-1)


@nsp_head.mistake("log-softmax at the end", think="what does cross-entropy do by itself?")
def log_probabilities(hidden, weights):
    return _logits(_dense(hidden[:, 0], weights).tanh(), weights).log_softmax(-1)


@nsp_head.mistake("the two scores in the other order", think="which column is IsNext?")
def columns_swapped(hidden, weights):
    return _logits(_dense(hidden[:, 0], weights).tanh(), weights).flip(-1)


@nsp_head.mistake("one number a pair, the difference of the scores", think="what shape is asked for?")
def one_score(hidden, weights):
    scores = _logits(_dense(hidden[:, 0], weights).tanh(), weights)
    return scores[:, 1] - scores[:, 0]


@nsp_head.mistake("the value is right but cut off from the gradient", think="does .detach() or .data stand there?")
def detached(hidden, weights):
    return _logits(_dense(hidden[:, 0], weights).tanh().detach(), weights)


# ---------------------------------------------------------------- 05.6 NSP loss


def _mean(logits, labels, ignore=-100):
    total = F.cross_entropy(logits, labels, ignore_index=ignore, reduction="sum")
    return total / (labels != ignore).sum().clamp(min=1)


@nsp_loss.mistake(
    "ignore_index=0 given to cross_entropy: IsNext is never learned, and −100 is no class",
    think="what does 0 mean among these labels?",
)
def ignore_index_zero(logits, labels):
    return F.cross_entropy(logits, labels, ignore_index=0)


@nsp_loss.mistake(
    "label 0 left out together with −100: IsNext is never learned", think="what does 0 mean among these labels?"
)
def zero_left_out(logits, labels):
    return _mean(logits, labels.masked_fill(labels == 0, -100))


@nsp_loss.mistake("labels turned round: column 0 for NotNext", think="which column is IsNext?")
def flipped(logits, labels):
    return _mean(logits, torch.where(labels == -100, labels, 1 - labels))


@nsp_loss.mistake("−100 counted as NotNext", think="is a pair without a label a pair that does not follow?")
def unlabelled_is_not_next(logits, labels):
    return _mean(logits, torch.where(labels == -100, 1, labels))


@nsp_loss.mistake("−100 counted as IsNext", think="is a pair without a label a pair that follows?")
def unlabelled_is_next(logits, labels):
    return _mean(logits, labels.clamp(min=0))


@nsp_loss.mistake("divided by all pairs, also those without a label", think="how many pairs were asked?")
def divided_by_all(logits, labels):
    return F.cross_entropy(logits, labels, reduction="sum") / len(labels)


@nsp_loss.mistake("the sum instead of the mean", think="should twice as many pairs give twice the loss?")
def the_sum(logits, labels):
    return F.cross_entropy(logits, labels, reduction="sum")


@nsp_loss.mistake("divided by both classes too: half the mean", think="how many numbers are added, one a pair or two?")
def half_of_it(logits, labels):
    return _mean(logits, labels) / 2


@nsp_loss.mistake("PyTorch's mean, which is 0/0 = NaN when no pair has a label", think="what is 0 / 0?")
def nan_without_labels(logits, labels):
    return F.cross_entropy(logits, labels)


@nsp_loss.mistake("softmax first, then cross-entropy", think="what does cross_entropy do first, by itself?")
def softmax_twice(logits, labels):
    return _mean(logits.softmax(-1), labels)


@nsp_loss.mistake("raw scores taken for log-probabilities", think="are your scores logarithms of probabilities?")
def raw_scores(logits, labels):
    total = F.nll_loss(logits, labels, reduction="sum")
    return total / (labels != -100).sum().clamp(min=1)


@nsp_loss.mistake("the minus forgotten", think="is a loss negative where the model is right?")
def no_minus(logits, labels):
    return -_mean(logits, labels)


@nsp_loss.mistake("softmax over the pairs of the batch", think="which two scores compete?")
def softmax_over_the_batch(logits, labels):
    chance = logits.log_softmax(0)
    total = F.nll_loss(chance, labels, reduction="sum")
    return total / (labels != -100).sum().clamp(min=1)


@nsp_loss.mistake("a sigmoid of the second score alone", think="what is the first score for?")
def sigmoid_of_one(logits, labels):
    asked = labels != -100
    each = F.binary_cross_entropy_with_logits(logits[:, 1], labels.clamp(min=0).to(logits.dtype), reduction="none")
    return (each * asked).sum() / asked.sum().clamp(min=1)


@nsp_loss.mistake("logarithm of base 2", think="which logarithm is ln?")
def base_2(logits, labels):
    return _mean(logits, labels) / torch.tensor(2.0).log().item()


@nsp_loss.mistake("exp of the scores without care: large ones overflow", think="what is exp(200) in 32 bits?")
def overflows(logits, labels):
    chance = logits.exp() / logits.exp().sum(-1, keepdim=True)
    asked = labels != -100
    each = -chance.gather(1, labels.clamp(min=0)[:, None])[:, 0].log()
    return torch.where(asked, each, 0.0).sum() / asked.sum().clamp(min=1)


@nsp_loss.mistake(
    "the mean of the mean of each class", think="do three pairs of one label weigh as much as one of the other?"
)
def mean_of_classes(logits, labels):
    means = [_mean(logits[labels == k], labels[labels == k]) for k in (0, 1) if bool((labels == k).any())]
    return sum(means) / len(means) if means else logits.sum() * 0


@nsp_loss.mistake(
    "a small number in the logarithm, which cuts large losses off", think="how large can −ln(p + 1e-8) get?"
)
def clipped(logits, labels):
    asked = labels != -100
    chance = logits.softmax(-1).gather(1, labels.clamp(min=0)[:, None])[:, 0]
    return (-(chance + 1e-8).log() * asked).sum() / asked.sum().clamp(min=1)


@nsp_loss.mistake("one number in a list of its own: shape (1,), not ()", think="how many axes has a number?")
def one_axis_left(logits, labels):
    return _mean(logits, labels).reshape(1)


@nsp_loss.mistake("one loss for each pair, no mean", think="how many numbers should come out?")
def one_loss_a_pair(logits, labels):
    return F.cross_entropy(logits, labels, reduction="none")


@nsp_loss.mistake("the value is right but cut off from the gradient", think="does .item() or .detach() stand there?")
def loss_detached(logits, labels):
    return _mean(logits, labels).detach()


@nsp_loss.mistake(
    "log of softmax in two steps: −∞ when a probability rounds to 0",
    think="what is log(softmax(x)) of a score 200 below?",
)
def log_of_softmax(logits, labels):
    asked = labels != -100
    picked = logits.softmax(-1)[asked].log().gather(-1, labels[asked][:, None])
    return -picked.sum() / asked.sum().clamp(min=1)


@nsp_loss.mistake("1 minus the probability, no logarithm", think="what does −ln p do that 1 − p does not?")
def one_minus_probability(logits, labels):
    asked = labels != -100
    picked = logits.softmax(-1)[asked].gather(-1, labels[asked][:, None])
    return (1 - picked).sum() / asked.sum().clamp(min=1)


# ---------------------------------------------------------------- 05.7 pre-training loss


def _words(logits, labels):
    return _mean(logits.flatten(0, 1), labels.flatten())


@pretraining_loss.mistake("the next sentence left out", think="which two tasks are learned at once?")
def words_alone(mlm_logits, mlm_labels, nsp_logits, nsp_labels):
    return _words(mlm_logits, mlm_labels)


@pretraining_loss.mistake("the masked words left out", think="which two tasks are learned at once?")
def sentences_alone(mlm_logits, mlm_labels, nsp_logits, nsp_labels):
    return _mean(nsp_logits, nsp_labels)


@pretraining_loss.mistake("two losses side by side, not added", think="how many numbers does backward() begin at?")
def not_added(mlm_logits, mlm_labels, nsp_logits, nsp_labels):
    return _words(mlm_logits, mlm_labels), _mean(nsp_logits, nsp_labels)


@pretraining_loss.mistake("one number in a list of its own: shape (1,), not ()", think="how many axes has a number?")
def sum_with_an_axis(mlm_logits, mlm_labels, nsp_logits, nsp_labels):
    return (_words(mlm_logits, mlm_labels) + _mean(nsp_logits, nsp_labels)).reshape(1)


@pretraining_loss.mistake(
    "the next-sentence loss divided by all pairs, also those without a label", think="how many pairs were asked?"
)
def sentences_over_all(mlm_logits, mlm_labels, nsp_logits, nsp_labels):
    total = F.cross_entropy(nsp_logits, nsp_labels, reduction="sum")
    return _words(mlm_logits, mlm_labels) + total / len(nsp_labels)


@pretraining_loss.mistake(
    "words asked only in pairs that follow", think="is a hidden word harder to guess when B is a stranger?"
)
def words_of_true_pairs(mlm_logits, mlm_labels, nsp_logits, nsp_labels):
    return _words(mlm_logits, mlm_labels.masked_fill(nsp_labels[:, None] != 0, -100)) + _mean(nsp_logits, nsp_labels)


@pretraining_loss.mistake("the mean of the two losses instead of their sum", think="does the paper divide by two?")
def mean_of_both(mlm_logits, mlm_labels, nsp_logits, nsp_labels):
    return (_words(mlm_logits, mlm_labels) + _mean(nsp_logits, nsp_labels)) / 2


@pretraining_loss.mistake("the next-sentence loss weighted by a half", think="are the two weighted in the paper?")
def half_next_sentence(mlm_logits, mlm_labels, nsp_logits, nsp_labels):
    return _words(mlm_logits, mlm_labels) + 0.5 * _mean(nsp_logits, nsp_labels)


@pretraining_loss.mistake("the MLM loss weighted by a half", think="are the two weighted in the paper?")
def half_words(mlm_logits, mlm_labels, nsp_logits, nsp_labels):
    return 0.5 * _words(mlm_logits, mlm_labels) + _mean(nsp_logits, nsp_labels)


@pretraining_loss.mistake(
    "one mean over all answers, words and pairs together", think="how much would the few pairs weigh beside many words?"
)
def one_mean(mlm_logits, mlm_labels, nsp_logits, nsp_labels):
    total = F.cross_entropy(mlm_logits.flatten(0, 1), mlm_labels.flatten(), reduction="sum")
    total = total + F.cross_entropy(nsp_logits, nsp_labels, reduction="sum")
    return total / ((mlm_labels != -100).sum() + (nsp_labels != -100).sum()).clamp(min=1)


@pretraining_loss.mistake("two sums instead of two means", think="should a longer text weigh more?")
def two_sums(mlm_logits, mlm_labels, nsp_logits, nsp_labels):
    total = F.cross_entropy(mlm_logits.flatten(0, 1), mlm_labels.flatten(), reduction="sum")
    return total + F.cross_entropy(nsp_logits, nsp_labels, reduction="sum")


@pretraining_loss.mistake("the next-sentence loss a sum, not a mean", think="should a larger batch weigh more?")
def sum_of_sentences(mlm_logits, mlm_labels, nsp_logits, nsp_labels):
    return _words(mlm_logits, mlm_labels) + F.cross_entropy(nsp_logits, nsp_labels, reduction="sum")


@pretraining_loss.mistake("the MLM loss over all places, not over those asked", think="what should divide the sum?")
def words_over_all(mlm_logits, mlm_labels, nsp_logits, nsp_labels):
    total = F.cross_entropy(mlm_logits.flatten(0, 1), mlm_labels.flatten(), reduction="sum")
    return total / mlm_labels.numel() + _mean(nsp_logits, nsp_labels)


@pretraining_loss.mistake(
    "the MLM loss as a mean of each text's mean", think="does a text with one blank weigh as much as one with four?"
)
def mean_of_texts(mlm_logits, mlm_labels, nsp_logits, nsp_labels):
    each = torch.stack([_mean(scores, labels) for scores, labels in zip(mlm_logits, mlm_labels, strict=True)])
    return each.mean() + _mean(nsp_logits, nsp_labels)


@pretraining_loss.mistake(
    "ignore_index = 0 in both losses: IsNext is never learned, and no piece 0", think="which number means “not asked”?"
)
def zero_ignored_in_both(mlm_logits, mlm_labels, nsp_logits, nsp_labels):
    keep = lambda labels: labels.masked_fill(labels == 0, -100)  # noqa: E731
    return _words(mlm_logits, keep(mlm_labels)) + _mean(nsp_logits, keep(nsp_labels))


@pretraining_loss.mistake(
    "ignore_index = 0 in the next-sentence loss: IsNext is never learned", think="what does 0 mean there?"
)
def zero_ignored_in_sentences(mlm_logits, mlm_labels, nsp_logits, nsp_labels):
    return _words(mlm_logits, mlm_labels) + _mean(nsp_logits, nsp_labels.masked_fill(nsp_labels == 0, -100))


@pretraining_loss.mistake("label 0 left out of the MLM loss", think="is piece 0 a piece like any other?")
def zero_ignored_in_words(mlm_logits, mlm_labels, nsp_logits, nsp_labels):
    return _words(mlm_logits, mlm_labels.masked_fill(mlm_labels == 0, -100)) + _mean(nsp_logits, nsp_labels)


@pretraining_loss.mistake("next-sentence labels turned round", think="which column is IsNext?")
def sentences_flipped(mlm_logits, mlm_labels, nsp_logits, nsp_labels):
    return _words(mlm_logits, mlm_labels) + _mean(
        nsp_logits, torch.where(nsp_labels == -100, nsp_labels, 1 - nsp_labels)
    )


@pretraining_loss.mistake(
    "−100 read as 0 among the next-sentence labels", think="is a pair without a label a pair that follows?"
)
def unasked_pairs_are_next(mlm_logits, mlm_labels, nsp_logits, nsp_labels):
    return _words(mlm_logits, mlm_labels) + _mean(nsp_logits, nsp_labels.clamp(min=0))


@pretraining_loss.mistake(
    "−100 read as piece 0 among the words", think="what should a model answer where nothing is asked?"
)
def unasked_words_are_zero(mlm_logits, mlm_labels, nsp_logits, nsp_labels):
    return _words(mlm_logits, mlm_labels.clamp(min=0)) + _mean(nsp_logits, nsp_labels)


@pretraining_loss.mistake(
    "PyTorch's mean in both: NaN as soon as one of the tasks has no label",
    think="what is 0 / 0, and what is it plus 1?",
)
def nan_if_one_is_empty(mlm_logits, mlm_labels, nsp_logits, nsp_labels):
    return F.cross_entropy(mlm_logits.flatten(0, 1), mlm_labels.flatten()) + F.cross_entropy(nsp_logits, nsp_labels)


@pretraining_loss.mistake("the two losses multiplied", think="what happens to the product when one task is solved?")
def multiplied(mlm_logits, mlm_labels, nsp_logits, nsp_labels):
    return _words(mlm_logits, mlm_labels) * _mean(nsp_logits, nsp_labels)


@pretraining_loss.mistake("the larger of the two losses", think="what does the smaller one teach, then?")
def the_larger(mlm_logits, mlm_labels, nsp_logits, nsp_labels):
    return torch.maximum(_words(mlm_logits, mlm_labels), _mean(nsp_logits, nsp_labels))


@pretraining_loss.mistake(
    "no loss at all when one of the tasks has no label", think="does the other task still have something to teach?"
)
def all_or_nothing(mlm_logits, mlm_labels, nsp_logits, nsp_labels):
    both = bool((mlm_labels != -100).any()) and bool((nsp_labels != -100).any())
    return (
        _words(mlm_logits, mlm_labels) + _mean(nsp_logits, nsp_labels)
        if both
        else 0.0 * (mlm_logits.sum() + nsp_logits.sum())
    )


@pretraining_loss.mistake(
    "the next-sentence loss detached: it is seen, but not learned", think="does .item() stand there?"
)
def sentences_detached(mlm_logits, mlm_labels, nsp_logits, nsp_labels):
    return _words(mlm_logits, mlm_labels) + _mean(nsp_logits, nsp_labels).item()
