"""What students really get wrong in unit 03, as code: each must be rejected and called by its name."""

import math
import re
import string
import unicodedata
from collections import Counter
from itertools import pairwise

from coursework.checks.wordpiece import decode, encode_word, pair_scores, split_words, train, truncate_pair

# ---------------------------------------------------------------- 03.1 split into words

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def _is_mark(c):
    return unicodedata.category(c)[0] == "P" or c in string.punctuation


def _no_accents(text, form="NFD"):
    return "".join(c for c in unicodedata.normalize(form, text) if unicodedata.category(c) != "Mn")


def _small(text):
    return _no_accents(text.lower())


def _is_chinese(c):
    return "\u4e00" <= c <= "\u9fff"


def _parts(text):
    return re.split(r"(\[(?:PAD|UNK|CLS|SEP|MASK)\])", text)


def _split(text, lower, *, small=_small, cased=str, alone=lambda c: _is_mark(c) or _is_chinese(c), control="",
           space=str.isspace, parts=_parts):  # fmt: skip
    """A right answer with one step to be exchanged."""
    words = []
    for part in parts(text):
        if part in SPECIAL:
            words.append(part)
            continue
        part = small(part) if lower else cased(part)
        spaced = ""
        for c in part:
            if space(c):
                spaced += " "
            elif unicodedata.category(c) in ("Cc", "Cf"):
                spaced += c if control is None else control
            else:
                spaced += f" {c} " if alone(c) else c
        words += spaced.split(" ")
    return [word for word in words if word]


@split_words.mistake("text.split() alone", think="is “home.” a word, with its full stop?")
def split_at_spaces_only(text, lower=True):
    return (_small(text) if lower else text).split()


@split_words.mistake("text.split(' '), at single spaces", think="what comes between two spaces in a row?")
def empty_words(text, lower=True):
    words = []
    for part in _parts(text):
        spaced = "".join(f" {w} " if len(w) == 1 and _is_mark(w) else w for w in _split_keeping_spaces(part, lower))
        words += [part] if part in SPECIAL else spaced.split(" ")
    return words


def _split_keeping_spaces(part, lower):
    for c in _small(part) if lower else part:
        if unicodedata.category(c) not in ("Cc", "Cf") or c.isspace():
            yield f" {c} " if _is_mark(c) or _is_chinese(c) else " " if c.isspace() else c


@split_words.mistake(
    "only the space separates words, not the tab or the end of a line", think="which str method tells?"
)
def only_the_space(text, lower=True):
    return _split(text, lower, space=lambda c: c == " ", control=None)


@split_words.mistake(
    "tab and new line taken for control characters and removed", think="what do the two words around a tab become?"
)
def tabs_removed(text, lower=True):
    return _split(text, lower, space=lambda c: c == " " or unicodedata.category(c) == "Zs")


@split_words.mistake("control characters kept", think="can a vocabulary hold what nobody sees?")
def control_kept(text, lower=True):
    return _split(text, lower, control=None)


@split_words.mistake("control characters turned into spaces", think="is a word with a soft hyphen one word or two?")
def control_as_space(text, lower=True):
    return _split(text, lower, control=" ")


@split_words.mistake(
    "only category Cc removed, not the format characters (Cf)", think="which category has the zero-width space?"
)
def format_kept(text, lower=True):
    text = "".join(c for c in text if unicodedata.category(c) != "Cc" or c.isspace())
    return _split(text, lower, control=None)


@split_words.mistake("only string.punctuation, the ASCII marks", think="what does “ do, or an em dash?")
def ascii_marks_only(text, lower=True):
    return _split(text, lower, alone=lambda c: c in string.punctuation or _is_chinese(c))


@split_words.mistake(
    "only Unicode's punctuation (P…): the ASCII signs $ + < = > ^ ` | ~ are left in words",
    think="which category has $?",
)
def signs_left_in_words(text, lower=True):
    return _split(text, lower, alone=lambda c: unicodedata.category(c)[0] == "P" or _is_chinese(c))


@split_words.mistake("all symbols (S…) split off, also € and ×", think="which symbols does the text name?")
def all_symbols(text, lower=True):
    return _split(text, lower, alone=lambda c: unicodedata.category(c)[0] in "PS" or _is_chinese(c))


@split_words.mistake(
    "everything that is neither letter nor digit split off",
    think="is € punctuation? And a vowel sign of Hindi, which is no letter?",
)
def not_alphanumeric(text, lower=True):
    return _split(text, lower, alone=lambda c: not c.isalnum() or _is_chinese(c))


@split_words.mistake(
    r"re.findall(r'\w+|[^\w\s]'): another idea of what a word is",
    think="what becomes of [MASK], of _ and of a soft hyphen?",
)
def words_by_pattern(text, lower=True):
    return re.findall(r"\w+|[^\w\s]", text.lower() if lower else text)


@split_words.mistake(
    "accents dropped by encode('ascii', 'ignore'), and everything else that is not ASCII with them",
    think="what is left of “мой” and of “€”?",
)
def ascii_alone(text, lower=True):
    return _split(text, lower, small=lambda text: text.lower().encode("ascii", "ignore").decode())


@split_words.mistake("marks in a row kept together", think="how many words is “...”?")
def runs_of_marks(text, lower=True):
    words = []
    for word in _split(text, lower):
        glue = words and len(word) == 1 and _is_mark(word) and all(map(_is_mark, words[-1]))
        if glue and words[-1] + word in text:
            words[-1] += word
        else:
            words.append(word)
    return words


@split_words.mistake("punctuation thrown away", think="would BERT know a question from a statement?")
def no_marks(text, lower=True):
    return [word for word in _split(text, lower) if word in SPECIAL or not all(map(_is_mark, word))]


@split_words.mistake("Chinese characters left together", think="where are the spaces in a Chinese sentence?")
def chinese_not_split(text, lower=True):
    return _split(text, lower, alone=_is_mark)


@split_words.mistake("capitals kept although lower is True", think="what is `lower` for?")
def capitals_kept(text, lower=True):
    return _split(text, lower, small=_no_accents)


@split_words.mistake("always lower case, whatever `lower` says", think="which words does a cased vocabulary hold?")
def always_lower(text, lower=True):
    return _split(text, True)


@split_words.mistake("lower(), but the accents stay", think="is “é” in a vocabulary without accents?")
def accents_kept(text, lower=True):
    return _split(text, lower, small=str.lower)


@split_words.mistake("accents stripped also when lower is False", think="what does a cased model make of “Ångström”?")
def accents_always_stripped(text, lower=True):
    return _split(text, lower, cased=_no_accents)


@split_words.mistake(
    "accents removed without taking letters apart first (no NFD)", think="how many characters is “é” as you got it?"
)
def no_decomposition(text, lower=True):
    return _split(text, lower, small=lambda part: "".join(c for c in part.lower() if unicodedata.category(c) != "Mn"))


@split_words.mistake("taken apart (NFD), but the accents not removed", think="how many characters has “é” after NFD?")
def only_decomposed(text, lower=True):
    return _split(text, lower, small=lambda part: unicodedata.normalize("NFD", part.lower()))


@split_words.mistake("every mark (M…) removed, not Mn alone", think="which vowel of Hindi is of category Mc?")
def all_marks_removed(text, lower=True):
    def small(part):
        return "".join(c for c in unicodedata.normalize("NFD", part.lower()) if unicodedata.category(c)[0] != "M")

    return _split(text, lower, small=small)


@split_words.mistake("letters put together again (NFC) at the end", think="in which form does the task leave a text?")
def composed_again(text, lower=True):
    return _split(text, lower, small=lambda part: unicodedata.normalize("NFC", _small(part)))


@split_words.mistake("all letters of category Lo split, not only Chinese ones", think="which range does the text give?")
def other_letters_split(text, lower=True):
    return _split(text, lower, alone=lambda c: _is_mark(c) or unicodedata.category(c) == "Lo")


@split_words.mistake("the apostrophe kept in words", think="is ' punctuation by its category?")
def apostrophe_kept(text, lower=True):
    return _split(text, lower, alone=lambda c: c != "'" and (_is_mark(c) or _is_chinese(c)))


@split_words.mistake("apostrophe and hyphen kept in words", think="are ' and - punctuation by their category?")
def hyphen_kept(text, lower=True):
    return _split(text, lower, alone=lambda c: c not in "'-" and (_is_mark(c) or _is_chinese(c)))


@split_words.mistake("special tokens thrown away", think="how will the model see the blank?")
def special_dropped(text, lower=True):
    return [word for word in _split(text, lower) if word not in SPECIAL]


@split_words.mistake("NFKD instead of NFD", think="what becomes of ² and of ½?")
def compatibility_form(text, lower=True):
    return _split(text, lower, small=lambda part: _no_accents(part.lower(), "NFKD"))


@split_words.mistake(
    "everything outside ASCII thrown away with the accents", think="what is left of a word in Cyrillic letters?"
)
def ascii_only(text, lower=True):
    kept = "".join(c for c in unicodedata.normalize("NFD", text) if c.isascii() or c.isspace()) if lower else text
    return _split(kept, lower)


@split_words.mistake("casefold() instead of lower()", think="what does each of them do with ß?")
def casefolded(text, lower=True):
    return _split(text, lower, small=lambda part: _no_accents(part.casefold()))


@split_words.mistake("[MASK] lower-cased and cut like any text", think="is “[” + “mask” + “]” the blank BERT knows?")
def special_cut(text, lower=True):
    return _split(text, lower, parts=lambda text: [text])


@split_words.mistake("[MASK] cut at its brackets", think="is “[” + “MASK” + “]” the blank BERT knows?")
def special_cut_in_capitals(text, lower=True):
    words = []
    for part in _parts(text):
        words += [part[0], part[1:-1], part[-1]] if part in SPECIAL else _split(part, lower)
    return words


@split_words.mistake("[MASK] kept in one word, but lower-cased", think="which spelling has the vocabulary?")
def special_lowered(text, lower=True):
    return [word.lower() if lower else word for word in _split(text, lower)]


@split_words.mistake(
    "special tokens seen only between spaces", think="what becomes of “[MASK].” at the end of a sentence?"
)
def special_between_spaces(text, lower=True):
    words = []
    for run in text.split():
        words += [run] if run in SPECIAL else _split(run, lower, parts=lambda text: [text])
    return words


@split_words.mistake("“[mask]” taken for [MASK]", think="may a text contain the word mask in brackets?")
def special_in_any_case(text, lower=True):
    found = re.compile(r"(\[(?:PAD|UNK|CLS|SEP|MASK)\])", re.IGNORECASE)
    words = []
    for part in found.split(text):
        words += [part.upper()] if part.upper() in SPECIAL else _split(part, lower)
    return words


# ---------------------------------------------------------------- 03.2 pair scores


def _counts(splits):
    single, together = Counter(), Counter()
    for pieces, n in splits.items():
        for piece in pieces:
            single[piece] += n
        for pair in pairwise(pieces):
            together[pair] += n
    return single, together


@pair_scores.mistake(
    "how often the pair occurs, and no more: byte-pair encoding's rule", think="what are the two counts below the line?"
)
def frequency(splits):
    return dict(_counts(splits)[1])


@pair_scores.mistake("word counts ignored: every word counted once", think="how often does each of these pairs occur?")
def unweighted(splits):
    return _ratio(*_counts(dict.fromkeys(splits, 1)))


def _ratio(single, together):
    return {(a, b): n / (single[a] * single[b]) for (a, b), n in together.items()}


@pair_scores.mistake("the pairs weighted by the word counts, the single pieces not", think="what is count(a)?")
def singles_unweighted(splits):
    return _ratio(_counts(dict.fromkeys(splits, 1))[0], _counts(splits)[1])


@pair_scores.mistake("the single pieces weighted by the word counts, the pairs not", think="what is count(ab)?")
def pairs_unweighted(splits):
    return _ratio(_counts(splits)[0], _counts(dict.fromkeys(splits, 1))[1])


@pair_scores.mistake("divided by count(a) only", think="is a pair surprising if b is everywhere?")
def given_the_first(splits):
    single, together = _counts(splits)
    return {(a, b): n / single[a] for (a, b), n in together.items()}


@pair_scores.mistake(
    "divided by count(a), then multiplied by count(b): brackets are missing", think="what is 8 / 2 * 4 in Python?"
)
def brackets_missing(splits):
    single, together = _counts(splits)
    return {(a, b): n / single[a] * single[b] for (a, b), n in together.items()}


@pair_scores.mistake(
    "shares of all pieces instead of counts: larger by the number of pieces",
    think="which three numbers stand in the formula?",
)
def shares_not_counts(splits):
    single, together = _counts(splits)
    total = sum(single.values())
    return {(a, b): (n / total) / (single[a] / total * single[b] / total) for (a, b), n in together.items()}


@pair_scores.mistake("a and b in the order of the alphabet", think="is ab the same pair as ba?")
def pairs_sorted(splits):
    single, together = _counts(splits)
    either = Counter()
    for pair, n in together.items():
        either[tuple(sorted(pair))] += n
    return _ratio(single, either)


@pair_scores.mistake("divided by count(b) only", think="is a pair surprising if a is everywhere?")
def given_the_second(splits):
    single, together = _counts(splits)
    return {(a, b): n / single[b] for (a, b), n in together.items()}


@pair_scores.mistake("divided by count(a) + count(b)", think="a product or a sum?")
def divided_by_the_sum(splits):
    single, together = _counts(splits)
    return {(a, b): n / (single[a] + single[b]) for (a, b), n in together.items()}


@pair_scores.mistake("the logarithm of the ratio", think="the order is the same: but which number was asked for?")
def logarithm(splits):
    return {pair: math.log(score) for pair, score in _ratio(*_counts(splits)).items()}


@pair_scores.mistake(
    "shares instead of counts: p(ab) / (p(a) · p(b))", think="the order is the same: but which number was asked for?"
)
def shares(splits):
    single, together = _counts(splits)
    scale = single.total() ** 2 / together.total()
    return {pair: score * scale for pair, score in _ratio(single, together).items()}


@pair_scores.mistake(
    "count(a) only where a has a right neighbour, count(b) only where b has a left one",
    think="does the last piece of a word not occur?",
)
def counted_in_pairs_only(splits):
    together = _counts(splits)[1]
    left, right = Counter(), Counter()
    for (a, b), n in together.items():
        left[a] += n
        right[b] += n
    return {(a, b): n / (left[a] * right[b]) for (a, b), n in together.items()}


@pair_scores.mistake("s and ##s counted as one piece", think="which of the two can a word begin with?")
def marks_ignored_in_counts(splits):
    single, together = _counts(splits)
    bare = Counter()
    for piece, n in single.items():
        bare[piece.removeprefix("##")] += n
    return {(a, b): n / (bare[a.removeprefix("##")] * bare[b.removeprefix("##")]) for (a, b), n in together.items()}


@pair_scores.mistake("pairs without their ##", think="are “s ##e” and “##s ##e” the same pair?")
def marks_dropped(splits):
    bare = Counter()
    for pieces, n in splits.items():
        bare[tuple(piece.removeprefix("##") for piece in pieces)] += n
    return _ratio(*_counts(bare))


@pair_scores.mistake(
    "a piece or a pair counted once a word, however often it stands there", think="how many e has eel?"
)
def once_a_word(splits):
    single, together = Counter(), Counter()
    for pieces, n in splits.items():
        single.update(dict.fromkeys(pieces, n))
        together.update(dict.fromkeys(pairwise(pieces), n))
    return _ratio(single, together)


@pair_scores.mistake("a piece counted once a word, however often it stands there", think="how many e has eel?")
def pieces_once_a_word(splits):
    single, together = Counter(), _counts(splits)[1]
    for pieces, n in splits.items():
        single.update(dict.fromkeys(pieces, n))
    return _ratio(single, together)


@pair_scores.mistake("a pair counted once a word, however often it stands there", think="how many ee has eee?")
def pairs_once_a_word(splits):
    single, together = _counts(splits)[0], Counter()
    for pieces, n in splits.items():
        together.update(dict.fromkeys(pairwise(pieces), n))
    return _ratio(single, together)


@pair_scores.mistake("words of a single piece skipped", think="does a piece that stands alone not occur?")
def short_words_skipped(splits):
    return _ratio(*_counts({pieces: n for pieces, n in splits.items() if len(pieces) > 1}))


@pair_scores.mistake("divided by the root of count(a) · count(b)", think="is there a root in the formula?")
def root_of_the_product(splits):
    single, together = _counts(splits)
    return {(a, b): n / math.sqrt(single[a] * single[b]) for (a, b), n in together.items()}


@pair_scores.mistake("// instead of /: whole numbers", think="what is 4 // 20?")
def whole_numbers(splits):
    single, together = _counts(splits)
    return {(a, b): float(n // (single[a] * single[b])) for (a, b), n in together.items()}


@pair_scores.mistake("the fraction upside down", think="should a pair that occurs often score high or low?")
def upside_down(splits):
    return {pair: 1 / score for pair, score in _ratio(*_counts(splits)).items()}


@pair_scores.mistake("pairs across the border of two words", think="may a piece reach from one word into the next?")
def across_words(splits):
    single, together = _counts(splits)
    for one, other in pairwise(splits):
        together[one[-1], other[0]] += 1
    return _ratio(single, together)


@pair_scores.mistake("pairs in both directions", think="is ab the same as ba?")
def both_directions(splits):
    single, together = _counts(splits)
    turned = Counter(together)
    for (a, b), n in together.items():
        turned[b, a] += n
    return _ratio(single, turned)


@pair_scores.mistake("all pairs of pieces in a word, also those far apart", think="can two pieces merge at a distance?")
def at_any_distance(splits):
    single, _ = _counts(splits)
    far = Counter()
    for pieces, n in splits.items():
        for i, a in enumerate(pieces):
            for b in pieces[i + 1 :]:
                far[a, b] += n
    return _ratio(single, far)


@pair_scores.mistake("the last pair of each word forgotten", think="how many pairs has a word of two pieces?")
def last_pair_lost(splits):
    single, _ = _counts(splits)
    together = _counts({pieces[:-1]: 0 for pieces in splits})[1]
    for pieces, n in splits.items():
        for pair in pairwise(pieces[:-1]):
            together[pair] += n
    return _ratio(single, together)


@pair_scores.mistake("the pair joined to one string as the key", think="where do a and b meet in “abc”?")
def joined_keys(splits):
    return {a + b.removeprefix("##"): score for (a, b), score in _ratio(*_counts(splits)).items()}


# ---------------------------------------------------------------- 03.3 train


def _characters(word):
    return [word[0], *("##" + c for c in word[1:])]


def _ratio_of(single, together, pair):
    return together[pair] / (single[pair[0]] * single[pair[1]])


def _join(pieces, a, b, new):
    out, i = [], 0
    while i < len(pieces):
        both = tuple(pieces[i : i + 2]) == (a, b)
        out.append(new if both else pieces[i])
        i += 1 + both
    return out


def _learn(word_counts, num_merges, *, start=_characters, count=_counts, score=_ratio_of, join=_join,
           glue=lambda a, b: a + b.removeprefix("##"), choose=None):  # fmt: skip
    """A right answer with one step to be exchanged."""
    choose = choose or (lambda score, pairs: min(pairs, key=lambda pair: (-score(pair), pair)))
    splits = {word: start(word) for word in word_counts}
    vocabulary = sorted({piece for pieces in splits.values() for piece in pieces})
    for _ in range(num_merges):
        weighted = Counter()
        for word, pieces in splits.items():
            weighted[tuple(pieces)] += word_counts[word]
        single, together = count(weighted)
        if not together:
            break
        a, b = choose(lambda pair, s=single, t=together: score(s, t, pair), list(together))
        vocabulary.append(glue(a, b))
        splits = {word: join(pieces, a, b, vocabulary[-1]) for word, pieces in splits.items()}
    return vocabulary


@train.mistake(
    "the most frequent pair merged: byte-pair encoding, not the ratio", think="which score does the exercise define?"
)
def byte_pair_encoding(word_counts, num_merges):
    return _learn(word_counts, num_merges, score=lambda single, together, pair: together[pair])


@train.mistake("the worst pair merged first", think="min or max?")
def worst_first(word_counts, num_merges):
    return _learn(word_counts, num_merges, score=lambda s, t, pair: -_ratio_of(s, t, pair))


@train.mistake("word counts ignored: every word counted once", think="what does the number beside each word say?")
def words_unweighted(word_counts, num_merges):
    return _learn(dict.fromkeys(word_counts, 1), num_merges)


@train.mistake("## left in the middle of a merge", think="which piece would be looked up in “sea”: “s##ea” or “sea”?")
def marks_in_the_middle(word_counts, num_merges):
    return _learn(word_counts, num_merges, glue=lambda a, b: a + b)


@train.mistake("all ## dropped in a merge, the first one too", think="can ##ea begin a word?")
def first_mark_lost(word_counts, num_merges):
    return _learn(word_counts, num_merges, glue=lambda a, b: (a + b).replace("##", ""))


@train.mistake("no ## at all: words start as plain characters", think="how would one see where a word begins?")
def no_marks_at_all(word_counts, num_merges):
    return _learn(word_counts, num_merges, start=list)


@train.mistake("## on the first character too", think="what does a word begin with?")
def marks_everywhere(word_counts, num_merges):
    return _learn(word_counts, num_merges, start=lambda word: ["##" + c for c in word])


@train.mistake("the vocabulary without the single characters", think="how is a new word spelled that nobody merged?")
def no_characters(word_counts, num_merges):
    return _learn(word_counts, num_merges)[len(_learn(word_counts, 0)) :]


@train.mistake("words of one letter skipped", think="how would such a word be spelled?")
def short_words_not_read(word_counts, num_merges):
    return _learn({word: n for word, n in word_counts.items() if len(word) > 1}, num_merges)


@train.mistake("the special tokens in front", think="what does the exercise list first?")
def special_tokens_first(word_counts, num_merges):
    return [*SPECIAL, *_learn(word_counts, num_merges)]


@train.mistake("a character entered each time it occurs", think="how often may a piece stand in a vocabulary?")
def characters_repeated(word_counts, num_merges):
    characters = [piece for word in word_counts for piece in _characters(word)]
    return characters + _learn(word_counts, num_merges)[len(_learn(word_counts, 0)) :]


@train.mistake("divided by count(a) only", think="which two counts stand below the line?")
def divided_by_the_first(word_counts, num_merges):
    return _learn(word_counts, num_merges, score=lambda single, together, pair: together[pair] / single[pair[0]])


@train.mistake("divided by count(a) + count(b)", think="a product or a sum?")
def divided_by_both_added(word_counts, num_merges):
    return _learn(word_counts, num_merges, score=lambda s, t, pair: t[pair] / (s[pair[0]] + s[pair[1]]))


@train.mistake("the merges first, then the characters", think="in which order does the exercise list them?")
def characters_last(word_counts, num_merges):
    count, vocabulary = len(_learn(word_counts, 0)), _learn(word_counts, num_merges)
    return vocabulary[count:] + vocabulary[:count]


@train.mistake("the vocabulary as a sorted list or a set: the order of the merges is lost", think="which came first?")
def sorted_vocabulary(word_counts, num_merges):
    return sorted(_learn(word_counts, num_merges))


@train.mistake(
    "ties broken by whichever pair came first in the dictionary", think="and if the words come in another order?"
)
def first_in_the_dictionary(word_counts, num_merges):
    return _learn(word_counts, num_merges, choose=lambda score, pairs: max(pairs, key=score))


@train.mistake("ties broken by whichever pair came last", think="and if the words come in another order?")
def last_in_the_dictionary(word_counts, num_merges):
    return _learn(word_counts, num_merges, choose=lambda score, pairs: max(reversed(pairs), key=score))


@train.mistake(
    "ties broken by the last pair in the alphabet: max over (score, pair)",
    think="which of two equal tuples is the max?",
)
def last_in_the_alphabet(word_counts, num_merges):
    return _learn(word_counts, num_merges, choose=lambda score, pairs: max(pairs, key=lambda p: (score(p), p)))


@train.mistake(
    "ties broken by the new piece in the alphabet, not by the pair", think="which comes first: (s, ##e) or (sa, ##d)?"
)
def first_new_piece(word_counts, num_merges):
    def choose(score, pairs):
        return min(pairs, key=lambda pair: (-score(pair), pair[0] + pair[1].removeprefix("##")))

    return _learn(word_counts, num_merges, choose=choose)


@train.mistake("ties broken by the longest piece", think="what does the exercise say of pairs that score the same?")
def longest_new_piece(word_counts, num_merges):
    def choose(score, pairs):
        return min(pairs, key=lambda pair: (-score(pair), -len(pair[0] + pair[1]), pair))

    return _learn(word_counts, num_merges, choose=choose)


@train.mistake(
    "the scores computed once, before the first merge", think="how often does a occur once it is part of ab?"
)
def scores_from_the_start(word_counts, num_merges):
    splits = {tuple(_characters(word)): n for word, n in word_counts.items()}
    single, together = _counts(splits)
    ranked = sorted(together, key=lambda pair: (-_ratio_of(single, together, pair), pair))
    return sorted(single) + [a + b.removeprefix("##") for a, b in ranked[:num_merges]]


@train.mistake(
    "the merge entered in the vocabulary but not made in the words", think="what are the words cut into now?"
)
def words_not_merged(word_counts, num_merges):
    return _learn(word_counts, num_merges, join=lambda pieces, a, b, new: pieces)


@train.mistake("only the first place in each word merged", think="how often may a pair stand in one word?")
def first_place_only(word_counts, num_merges):
    def join(pieces, a, b, new):
        at = next((i for i, pair in enumerate(pairwise(pieces)) if pair == (a, b)), None)
        return pieces if at is None else [*pieces[:at], new, *pieces[at + 2 :]]

    return _learn(word_counts, num_merges, join=join)


@train.mistake("merged from right to left", think="which two of three e in a row become one?")
def from_right_to_left(word_counts, num_merges):
    def join(pieces, a, b, new):
        out, i = [], len(pieces)
        while i > 0:
            both = tuple(pieces[max(0, i - 2) : i]) == (a, b)
            out.insert(0, new if both else pieces[i - 1])
            i -= 1 + both
        return out

    return _learn(word_counts, num_merges, join=join)


@train.mistake("overlapping places both merged", think="how many pairs can be made of three e?")
def overlapping(word_counts, num_merges):
    def join(pieces, a, b, new):
        out = []
        for i, piece in enumerate(pieces):
            if tuple(pieces[i : i + 2]) == (a, b):
                out.append(new)
            elif not (i and tuple(pieces[i - 1 : i + 1]) == (a, b)):
                out.append(piece)
        return out

    return _learn(word_counts, num_merges, join=join)


@train.mistake(
    "str.replace on the joined pieces, which also hits parts of longer pieces", think="does “##se ##a” hold “e ##a”?"
)
def replaced_as_text(word_counts, num_merges):
    def join(pieces, a, b, new):
        return " ".join(pieces).replace(f"{a} {b}", new).split(" ")

    return _learn(word_counts, num_merges, join=join)


@train.mistake("num_merges counted as the size of the vocabulary", think="how many pieces are there before any merge?")
def size_instead_of_merges(word_counts, num_merges):
    return _learn(word_counts, max(0, num_merges - len(_learn(word_counts, 0))))


@train.mistake("one merge too many", think="how many merges does num_merges = 0 make?")
def one_too_many(word_counts, num_merges):
    return _learn(word_counts, num_merges + 1)


@train.mistake("one merge too few", think="how many merges does num_merges = 1 make?")
def one_too_few(word_counts, num_merges):
    return _learn(word_counts, max(0, num_merges - 1))


@train.mistake("no stop when no pair is left", think="what is the best of no pairs?")
def no_stop(word_counts, num_merges):
    vocabulary = _learn(word_counts, num_merges)
    if len(vocabulary) - len(_learn(word_counts, 0)) < num_merges:
        return max([])
    return vocabulary


# ---------------------------------------------------------------- 03.4 encode a word


def _walk(word, vocab, find, start=0):
    """Pieces from left to right, as find(start) ends them; None where it finds none."""
    pieces = []
    while start < len(word):
        end = find(start)
        if end is None:
            return None
        pieces.append("##" * bool(start) + word[start:end])
        start = end
    return pieces


def _known(word, vocab, start):
    """The ends of all pieces known at `start`, shortest first."""
    return [end for end in range(start + 1, len(word) + 1) if "##" * bool(start) + word[start:end] in vocab]


def _longest(word, vocab, start):
    return max(_known(word, vocab, start), default=None)


def _right(word, vocab):
    return _walk(word, vocab, lambda start: _longest(word, vocab, start)) or ["[UNK]"]


@encode_word.mistake("the shortest match taken", think="start with the whole rest, or with one character?")
def shortest_match(word, vocab, max_chars=100):
    pieces = _walk(word, vocab, lambda start: min(_known(word, vocab, start), default=None))
    return ["[UNK]"] if len(word) > max_chars or pieces is None else pieces


@encode_word.mistake(
    "the match grown letter by letter until it is no piece", think="may “abc” be a piece when “ab” is none?"
)
def grown_until_unknown(word, vocab, max_chars=100):
    def find(start):
        end = start
        while end < len(word) and "##" * bool(start) + word[start : end + 1] in vocab:
            end += 1
        return end if end > start else None

    pieces = _walk(word, vocab, find)
    return ["[UNK]"] if len(word) > max_chars or pieces is None else pieces


@encode_word.mistake("the fewest pieces sought, not the longest match at each step", think="does the rule look ahead?")
def fewest_pieces(word, vocab, max_chars=100):
    if len(word) > max_chars:
        return ["[UNK]"]
    best = {0: []}
    for start in range(len(word)):
        for end in _known(word, vocab, start) if start in best else []:
            pieces = [*best[start], "##" * bool(start) + word[start:end]]
            if end not in best or len(pieces) < len(best[end]):
                best[end] = pieces
    return best.get(len(word), ["[UNK]"])


@encode_word.mistake("matched from the end of the word", think="which end does BERT begin at?")
def from_the_end(word, vocab, max_chars=100):
    pieces, end = [], len(word)
    while end > 0 and len(word) <= max_chars:
        start = next((i for i in range(end) if "##" * bool(i) + word[i:end] in vocab), None)
        if start is None:
            return ["[UNK]"]
        pieces.insert(0, "##" * bool(start) + word[start:end])
        end = start
    return pieces or ["[UNK]"]


@encode_word.mistake("another cut tried after a dead end", think="does longest match first ever take a step back?")
def with_a_step_back(word, vocab, max_chars=100):
    def rest(start):
        if start == len(word):
            return []
        for end in reversed(_known(word, vocab, start)):
            tail = rest(end)
            if tail is not None:
                return ["##" * bool(start) + word[start:end], *tail]
        return None

    return ["[UNK]"] if len(word) > max_chars else rest(0) or ["[UNK]"]


@encode_word.mistake("a known word, or its single characters", think="is there nothing between a word and a letter?")
def word_or_letters(word, vocab, max_chars=100):
    pieces = [word] if word in vocab else ["##" * bool(i) + c for i, c in enumerate(word)]
    return pieces if len(word) <= max_chars and all(p in vocab for p in pieces) else ["[UNK]"]


def _pieces_until_unknown(word, vocab):
    """(pieces, where the first unknown part starts)."""
    pieces, start = [], 0
    while start < len(word):
        end = _longest(word, vocab, start)
        if end is None:
            break
        pieces.append("##" * bool(start) + word[start:end])
        start = end
    return pieces, start


@encode_word.mistake(
    "the known pieces, then [UNK] for the unknown tail", think="can the model read “violin [UNK]” as one word?"
)
def unknown_tail(word, vocab, max_chars=100):
    pieces, start = _pieces_until_unknown(word, vocab)
    return ["[UNK]"] if len(word) > max_chars else pieces + ["[UNK]"] * (start < len(word))


@encode_word.mistake(
    "the known pieces, and the unknown tail dropped", think="who tells the model that a part is missing?"
)
def tail_dropped(word, vocab, max_chars=100):
    return ["[UNK]"] if len(word) > max_chars else _pieces_until_unknown(word, vocab)[0]


def _one_by_one(word, vocab, instead):
    pieces, start = [], 0
    while start < len(word):
        end = _longest(word, vocab, start)
        pieces += instead if end is None else ["##" * bool(start) + word[start:end]]
        start = end or start + 1
    return pieces


@encode_word.mistake("[UNK] for each unknown character, the rest cut as usual", think="how many [UNK] may a word give?")
def unknown_characters(word, vocab, max_chars=100):
    return ["[UNK]"] if len(word) > max_chars else _one_by_one(word, vocab, ["[UNK]"])


@encode_word.mistake("unknown characters skipped", think="is the word still the same without them?")
def characters_skipped(word, vocab, max_chars=100):
    return ["[UNK]"] if len(word) > max_chars else _one_by_one(word, vocab, [])


@encode_word.mistake("nothing for an unknown word, an empty list", think="what stands in its place?")
def nothing_for_unknown(word, vocab, max_chars=100):
    pieces = _right(word, vocab) if len(word) <= max_chars else ["[UNK]"]
    return [] if pieces == ["[UNK]"] else pieces


@encode_word.mistake("the text [UNK] instead of a list that holds it", think="what does the caller loop over?")
def unknown_as_text(word, vocab, max_chars=100):
    pieces = _right(word, vocab) if len(word) <= max_chars else ["[UNK]"]
    return "[UNK]" if pieces == ["[UNK]"] else pieces


@encode_word.mistake("an unknown word returned as it is", think="which id has a word that is not in the vocabulary?")
def unknown_as_it_is(word, vocab, max_chars=100):
    pieces = _right(word, vocab) if len(word) <= max_chars else ["[UNK]"]
    return [word] if pieces == ["[UNK]"] else pieces


@encode_word.mistake("ids instead of pieces", think="what does the exercise return: pieces or their numbers?")
def ids_returned(word, vocab, max_chars=100):
    return [vocab[piece] for piece in (_right(word, vocab) if len(word) <= max_chars else ["[UNK]"])]


@encode_word.mistake("single characters never tried", think="where does range(len(word), start + 1, -1) stop?")
def no_single_characters(word, vocab, max_chars=100):
    def find(start):
        return max((end for end in _known(word, vocab, start) if end > start + 1), default=None)

    return ["[UNK]"] if len(word) > max_chars else _walk(word, vocab, find) or ["[UNK]"]


@encode_word.mistake("the last character never part of a piece", think="where does range(len(word) - 1, …) begin?")
def never_to_the_end(word, vocab, max_chars=100):
    def find(start):
        return max((end for end in _known(word, vocab, start) if end < len(word)), default=None)

    return ["[UNK]"] if len(word) > max_chars else _walk(word, vocab, find) or ["[UNK]"]


@encode_word.mistake("nothing for a word that is too long", think="what stands in its place?")
def nothing_for_too_long(word, vocab, max_chars=100):
    return [] if len(word) > max_chars else _right(word, vocab)


@encode_word.mistake("max_chars ignored", think="what is done with a word of a thousand letters?")
def no_ceiling(word, vocab, max_chars=100):
    return _right(word, vocab)


@encode_word.mistake("a word of exactly max_chars characters refused", think="> or >=?")
def ceiling_too_low(word, vocab, max_chars=100):
    return ["[UNK]"] if len(word) >= max_chars else _right(word, vocab)


@encode_word.mistake("one character more than max_chars allowed", think="> or >=?")
def ceiling_too_high(word, vocab, max_chars=100):
    return ["[UNK]"] if len(word) > max_chars + 1 else _right(word, vocab)


@encode_word.mistake("a long word cut off at max_chars instead of [UNK]", think="is the beginning the same word?")
def cut_at_the_ceiling(word, vocab, max_chars=100):
    return _right(word[:max_chars], vocab)


@encode_word.mistake("the ceiling fixed at 100, whatever the caller says", think="what is the argument for?")
def ceiling_fixed(word, vocab, max_chars=100):
    return ["[UNK]"] if len(word) > 100 else _right(word, vocab)


@encode_word.mistake("the ceiling compared with the number of pieces", think="max_chars of what?")
def ceiling_on_pieces(word, vocab, max_chars=100):
    pieces = _right(word, vocab)
    return ["[UNK]"] if len(pieces) > max_chars else pieces


def _plain_walk(word, vocab, max_chars):
    if len(word) > max_chars:
        return None

    def find(start):
        return max((end for end in range(start + 1, len(word) + 1) if word[start:end] in vocab), default=None)

    return _walk(word, vocab, find)


@encode_word.mistake("## neither looked up nor written", think="how does the vocabulary write a piece inside a word?")
def without_marks(word, vocab, max_chars=100):
    pieces = _plain_walk(word, vocab, max_chars)
    return ["[UNK]"] if pieces is None else [piece.removeprefix("##") for piece in pieces]


@encode_word.mistake(
    "looked up without ##, which is added afterwards", think="is every piece you return in the vocabulary?"
)
def marks_added_afterwards(word, vocab, max_chars=100):
    return _plain_walk(word, vocab, max_chars) or ["[UNK]"]


@encode_word.mistake("## looked up but not written", think="does the model know “##maker” and “maker” apart?")
def marks_not_written(word, vocab, max_chars=100):
    pieces = ["[UNK]"] if len(word) > max_chars else _right(word, vocab)
    return [piece.removeprefix("##") for piece in pieces]


@encode_word.mistake("## on the first piece too", think="what does the first piece continue?")
def marks_on_the_first(word, vocab, max_chars=100):
    if len(word) > max_chars:
        return ["[UNK]"]
    pieces, start = [], 0
    while start < len(word):
        end = next((e for e in range(len(word), start, -1) if "##" + word[start:e] in vocab), None)
        if end is None:
            return ["[UNK]"]
        pieces.append("##" + word[start:end])
        start = end
    return pieces


@encode_word.mistake(
    "with or without ##, whichever is found", think="may “fg” be used inside a word if only “fg” is known?"
)
def either_mark(word, vocab, max_chars=100):
    pieces, start = [], 0
    while start < len(word) and len(word) <= max_chars:
        known = [p for e in range(len(word), start, -1) for p in (word[start:e], "##" + word[start:e]) if p in vocab]
        if not known:
            return ["[UNK]"]
        best = "##" + word[start : start + len(known[0].removeprefix("##"))]
        pieces.append(best if start and best in vocab else known[0])
        start += len(known[0].removeprefix("##"))
    return pieces or ["[UNK]"]


# ---------------------------------------------------------------- 03.5 decode

LEFT_OUT = ("[CLS]", "[SEP]", "[PAD]")


def _joined(pieces, without=LEFT_OUT):
    return " ".join(piece for piece in pieces if piece not in without).replace(" ##", "")


@decode.mistake("pieces joined by spaces, ## and all", think="how many words is “violin ##maker”?")
def marks_left(pieces):
    return " ".join(piece for piece in pieces if piece not in LEFT_OUT)


@decode.mistake("## removed, but the space before it left", think="how many words is “violin maker”?")
def space_left(pieces):
    kept = [piece for piece in pieces if piece not in LEFT_OUT]
    return " ".join(piece[2:] if i and piece.startswith("##") else piece for i, piece in enumerate(kept))


@decode.mistake(
    "every ## removed from the joined text, but no space before it", think="how many words is “violin maker”?"
)
def marks_removed_from_the_text(pieces):
    return " ".join(piece for piece in pieces if piece not in LEFT_OUT).replace("##", "")


@decode.mistake(
    "glued first, then left out: a continuation sticks to [CLS]", think="which comes first, leaving out or gluing?"
)
def glued_then_left_out(pieces):
    words = []
    for piece in pieces:
        if piece.startswith("##") and words:
            words[-1] += piece[2:]
        else:
            words.append(piece)
    return " ".join(word for word in words if word not in LEFT_OUT)


@decode.mistake("pieces glued, but ## left in the words", think="what is ## for, once the piece is in its place?")
def glued_with_marks(pieces):
    return " ".join(piece for piece in pieces if piece not in LEFT_OUT).replace(" ##", "##")


@decode.mistake(
    "special tokens removed from the joined text: the spaces around them stay", think="how many spaces are left?"
)
def spaces_of_special_left(pieces):
    text = " ".join(pieces).replace(" ##", "")
    for token in LEFT_OUT:
        text = text.replace(token, "")
    return text.strip()


@decode.mistake("the first and the last piece left out, whatever they are", think="has every row a [CLS]?")
def first_and_last_left_out(pieces):
    return " ".join(pieces[1:-1]).replace(" ##", "")


@decode.mistake(
    '`piece in "[CLS][SEP][PAD]"`, which looks for a part of a text, and finds “[” and “]” there',
    think="what does `in` ask of a string, and what of a list?",
)
def part_of_a_text(pieces):
    return " ".join(piece for piece in pieces if piece not in "[CLS][SEP][PAD]").replace(" ##", "")


@decode.mistake("everything left out that begins with “[”", think="what of [MASK], and of a bracket in the text?")
def brackets_left_out(pieces):
    return " ".join(piece for piece in pieces if not piece.startswith("[")).replace(" ##", "")


@decode.mistake(
    "a continuation after [SEP] not glued", think="what stands before it once [CLS], [SEP] and [PAD] are left out?"
)
def special_ends_a_word(pieces):
    words, fresh = [], True
    for piece in pieces:
        if piece in LEFT_OUT:
            fresh = True
            continue
        if piece.startswith("##") and not fresh:
            words[-1] += piece[2:]
        else:
            words.append(piece)
        fresh = False
    return " ".join(words)


@decode.mistake("all after the first [SEP] lost", think="how many texts has a pair?")
def stops_at_sep(pieces):
    return _joined(pieces[: pieces.index("[SEP]")] if "[SEP]" in pieces else pieces)


@decode.mistake("a continuation at the beginning glued to a word that is not there", think="what is [][-1]?")
def glued_to_nothing(pieces):
    words = []
    for piece in pieces:
        if piece in LEFT_OUT:
            continue
        if piece.startswith("##"):
            words[-1] += piece[2:]
        else:
            words.append(piece)
    return " ".join(words)


@decode.mistake("everything in one word", think="which pieces begin a new word?")
def no_spaces(pieces):
    kept = [piece for piece in pieces if piece not in LEFT_OUT]
    return "".join(piece[2:] if i and piece.startswith("##") else piece for i, piece in enumerate(kept))


@decode.mistake("a space at the end", think="what stands between words, and only between?")
def space_at_the_end(pieces):
    return _joined(pieces) + " " if _joined(pieces) else ""


@decode.mistake("a space at the beginning", think="what stands between words, and only between?")
def space_at_the_beginning(pieces):
    return " " + _joined(pieces) if _joined(pieces) else ""


@decode.mistake("every # removed, also the word “#”", think="is one # a mark or a character?")
def every_hash_removed(pieces):
    text = ""
    for piece in pieces:
        if piece not in LEFT_OUT:
            text += piece.replace("#", "") if piece.startswith("##") and text else " " + piece.replace("#", "")
    return text.strip()


@decode.mistake(
    "lstrip('##'), which strips every # and not the two as one", think="what does str.removeprefix do, and lstrip not?"
)
def stripped_hashes(pieces):
    words = []
    for piece in pieces:
        if piece in LEFT_OUT:
            continue
        if piece.startswith("##") and words:
            words[-1] += piece.lstrip("##")  # noqa: B005, the mistake itself
        else:
            words.append(piece)
    return " ".join(words)


@decode.mistake("what starts with one # taken for a continuation", think="how many # has a continuation?")
def one_hash_is_enough(pieces):
    words = []
    for piece in pieces:
        if piece in LEFT_OUT:
            continue
        if piece.startswith("#") and words:
            words[-1] += piece.removeprefix("##")
        else:
            words.append(piece)
    return " ".join(words)


@decode.mistake("[CLS], [SEP] and [PAD] left in the text", think="did the writer write them?")
def special_left(pieces):
    return _joined(pieces, ())


@decode.mistake("only [PAD] left out", think="which three stand for nothing in the text?")
def only_padding_left_out(pieces):
    return _joined(pieces, ("[PAD]",))


@decode.mistake("[PAD] left in the text", think="which three stand for nothing in the text?")
def padding_left(pieces):
    return _joined(pieces, ("[CLS]", "[SEP]"))


@decode.mistake("[MASK] and [UNK] left out too", think="how would one see that a word stood there?")
def all_special_left_out(pieces):
    return _joined(pieces, (*LEFT_OUT, "[MASK]", "[UNK]"))


@decode.mistake("[UNK] left out too", think="how would one see that a word stood there?")
def unknown_left_out(pieces):
    return _joined(pieces, (*LEFT_OUT, "[UNK]"))


@decode.mistake(
    "spaces before punctuation guessed away, as if decode(encode(x)) were x",
    think="was it “it 's” or “it's”? Can the pieces tell?",
)
def tidied(pieces):
    return re.sub(
        r" ([.,!?'])( (?=\w+\b))?", lambda m: m[1] + ("" if m[1] == "'" else " " * bool(m[2])), _joined(pieces)
    )


@decode.mistake(
    "punctuation drawn to the word before it (the library's clean-up)",
    think="which piece says that there was no space?",
)
def punctuation_drawn_up(pieces):
    return re.sub(r" ([.,!?])", r"\1", _joined(pieces))


@decode.mistake("a capital at the beginning, by guess", think="which piece says that there was one?")
def capital_at_the_beginning(pieces):
    text = _joined(pieces)
    return text[:1].upper() + text[1:]


@decode.mistake("## removed from the first piece too", think="how would one see that a beginning is missing?")
def first_mark_removed(pieces):
    return _joined(pieces).removeprefix("##")


@decode.mistake("a continuation glued to [CLS] and lost with it", think="which comes first, leaving out or gluing?")
def glued_to_cls(pieces):
    text = " ".join(pieces).replace(" ##", "")
    return " ".join(word for word in text.split() if not word.startswith(LEFT_OUT))


# ---------------------------------------------------------------- 03.6 truncate a pair


def _shortened(a, b, room, first=lambda a, b: len(a) > len(b)):
    if room < 0:
        raise ValueError("no room")
    a, b = list(a), list(b)
    while len(a) + len(b) > room:
        (a if (first(a, b) and a) or not b else b).pop()
    return a, b


@truncate_pair.mistake("always b shortened", think="what is left of a pair whose second text is short?")
def always_b(a, b, max_length):
    return _shortened(a, b, max_length - 3, lambda a, b: False)


@truncate_pair.mistake("always a shortened", think="what is left of a pair whose first text is short?")
def always_a(a, b, max_length):
    return _shortened(a, b, max_length - 3, lambda a, b: True)


@truncate_pair.mistake("the shorter text shortened", think="< or >?")
def the_shorter(a, b, max_length):
    return _shortened(a, b, max_length - 3, lambda a, b: len(a) < len(b))


@truncate_pair.mistake("a shortened where both are equally long", think="> or >=?")
def a_loses_ties(a, b, max_length):
    return _shortened(a, b, max_length - 3, lambda a, b: len(a) >= len(b))


@truncate_pair.mistake(
    "no room left for [CLS] and the two [SEP]", think="how long is the row once the special tokens are in?"
)
def special_forgotten(a, b, max_length):
    _shortened(a, b, max_length - 3)
    return _shortened(a, b, max_length)


@truncate_pair.mistake("room for two special tokens only, as for a single text", think="how many [SEP] has a pair?")
def room_for_two(a, b, max_length):
    _shortened(a, b, max_length - 3)
    return _shortened(a, b, max_length - 2)


@truncate_pair.mistake("one token too many cut off", think="> or >=?")
def one_too_many_cut(a, b, max_length):
    return _shortened(a, b, max(0, max_length - 4)) if max_length >= 3 else _shortened(a, b, -1)


@truncate_pair.mistake(
    "half of the room for each text, whether it needs it or not", think="what if one text is much shorter than half?"
)
def half_each(a, b, max_length):
    room = max_length - 3
    if room < 0:
        raise ValueError("no room")
    if len(a) + len(b) <= room:
        return a, b
    return a[: room - room // 2], b[: room // 2]


@truncate_pair.mistake("both texts shortened alike, a token each in turn", think="why take from the one that is short?")
def in_turns(a, b, max_length):
    turn = [False]

    def first(a, b):
        turn[0] = not turn[0]
        return turn[0]

    return _shortened(a, b, max_length - 3, first)


@truncate_pair.mistake("both texts shortened in proportion", think="what does a short text lose then?")
def in_proportion(a, b, max_length):
    room = max_length - 3
    if room < 0:
        raise ValueError("no room")
    if len(a) + len(b) <= room:
        return a, b
    keep = round(room * len(a) / (len(a) + len(b)))
    return a[:keep], b[: room - keep]


@truncate_pair.mistake("beginnings cut off instead of ends", think="pop() or pop(0)?")
def beginnings_cut(a, b, max_length):
    a, b = _shortened(a[::-1], b[::-1], max_length - 3)
    return a[::-1], b[::-1]


@truncate_pair.mistake(
    "the caller's lists shortened in place, as in Google's code", think="who else may hold these lists?"
)
def in_place(a, b, max_length):
    if max_length < 3:
        raise ValueError("no room")
    while len(a) + len(b) > max_length - 3:
        (a if len(a) > len(b) else b).pop()
    return a, b


@truncate_pair.mistake("a[:-0], which is empty, where nothing has to go", think="what is [1, 2][:-0]?")
def minus_zero(a, b, max_length):
    x, y = _shortened(a, b, max_length - 3)
    return a[: -(len(a) - len(x))], b[: -(len(b) - len(y))]


@truncate_pair.mistake(
    "no check of the room: the loop runs until there is nothing to take off", think="what does [].pop() say?"
)
def pops_from_nothing(a, b, max_length):
    a, b = list(a), list(b)
    while len(a) + len(b) > max_length - 3:
        (a if len(a) > len(b) else b).pop()
    return a, b


@truncate_pair.mistake(
    "an assert where a ValueError is asked", think="what is left of an assert when Python runs with -O?"
)
def asserts_the_room(a, b, max_length):
    assert max_length >= 3, "no room"
    return _shortened(a, b, max_length - 3)


@truncate_pair.mistake("an error instead of a shorter pair", think="which rows are too long for good?")
def error_instead_of_cutting(a, b, max_length):
    if len(a) + len(b) + 3 > max_length:
        raise ValueError("too long")
    return a, b


@truncate_pair.mistake("room asked for a token of each text", think="may a row hold three special tokens alone?")
def error_below_five(a, b, max_length):
    if max_length < 5:
        raise ValueError("no room")
    return _shortened(a, b, max_length - 3)


@truncate_pair.mistake(
    "the longer text found once and not again", think="which one is longer after it has lost five tokens?"
)
def longer_found_once(a, b, max_length):
    longer = len(a) > len(b)
    return _shortened(a, b, max_length - 3, lambda a, b: longer)


@truncate_pair.mistake("no error where not even the special tokens fit", think="what is a list's slice [:-1]?")
def no_error(a, b, max_length):
    return _shortened(a, b, max(0, max_length - 3))


@truncate_pair.mistake("an error where exactly the special tokens fit", think="< 3 or <= 3?")
def error_at_three(a, b, max_length):
    if max_length <= 3:
        raise ValueError("no room")
    return _shortened(a, b, max_length - 3)
