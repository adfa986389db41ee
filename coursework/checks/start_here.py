"""Unit 00: a warm-up of one line, to meet the checks before there is anything hard to check."""

import re

import torch

from coursework.checks.engine import Call, Case, Exercise, Inputs, Part

LESSON = "00_start_here"

count_words = Exercise(
    "00.1", "count_words", "count words",
    lesson=LESSON, section="How checks talk", points=1,
    parts=[Part("plain sentences"), Part("extra spaces"), Part("nothing to count")],
)  # fmt: skip


@count_words.reference
def _count_words(sentence):
    count, inside = 0, False
    for character in sentence:
        if not character.isspace() and not inside:  # a word begins  # step: plain sentences
            count += 1  # step: plain sentences
        inside = not character.isspace()  # step: plain sentences
    return count


@count_words.cases
def _(new: Inputs):
    words = ["the", "seal", "broke", "letter", "and", "swam", "home", "under", "a", "cold", "moon"]
    sentences = [" ".join(new.random.choices(words, k=k)) for k in (new.random.randrange(4, 9), 2, 1)]
    told = "The seal broke the seal and swam home, the letter unread."
    for sentence in (*sentences, told, "The captain's well-known seal broke at 10:30!"):
        yield Case("plain sentences", (Call((sentence,)),), holds=_expects(sentence))
    first = sentences[0]
    for sentence in (first.replace(" ", "   "), f"  {first} ", first.replace(" ", "\n"), first.replace(" ", "\t")):
        yield Case("extra spaces", (Call((sentence,)),), holds=_expects(sentence))
    for sentence in ("", "   "):
        yield Case("nothing to count", (Call((sentence,)),), holds=_expects(sentence))


def _expects(sentence: str):
    want = _count_words(sentence)
    return lambda a: (
        None if repr(a.value) == repr(want) else f"count_words({sentence!r}) returns {a.value}, expected {want}"
    )


@count_words.mistake("counting characters", think="what does len of a string count?")
def counts_characters(sentence):
    return len(sentence)


@count_words.mistake("counting spaces", think="how many spaces stand between three words?")
def counts_spaces(sentence):
    return sentence.count(" ")


@count_words.mistake(
    'a cut at every single space, as split(" ") does', think="what stands between two spaces next to each other?"
)
def cuts_at_each_space(sentence):
    return len(sentence.split(" "))


@count_words.mistake("printing the number instead of returning it", think="what does a function without return give?")
def prints_instead_of_returning(sentence):
    print(len(sentence.split()))


@count_words.mistake("counting different words, each once", think="is a word that comes back a second word?")
def counts_distinct_words(sentence):
    return len(set(sentence.split()))


@count_words.mistake("the list of words, not their number", think="what is asked for: the words, or how many?")
def returns_the_words(sentence):
    return sentence.split()


@count_words.mistake("spaces cut off at the ends only", think="how many spaces may stand between two words?")
def strips_the_ends(sentence):
    return len(sentence.strip().split(" "))


@count_words.mistake(
    "a cut at every run of white space, as re.split does", think="what stands before the first space of ' seal'?"
)
def cuts_at_each_run(sentence):
    return len(re.split(r"\s+", sentence))


@count_words.mistake("runs of letters and digits counted, as \\w+ does", think="is “captain's” one word here, or two?")
def letters_and_digits(sentence):
    return len(re.findall(r"\w+", sentence))


@count_words.mistake("at least one word found, even where there is none", think="how many words has an empty sentence?")
def never_zero(sentence):
    return len(sentence.split()) or 1


@count_words.mistake("a float", think="what is asked for: 5 or 5.0?")
def as_a_float(sentence):
    return float(len(sentence.split()))


@count_words.alternative
def split_and_len(sentence):
    return len(sentence.split())


@count_words.alternative
def regular_expression(sentence):
    return len(re.findall(r"\S+", sentence))


@count_words.alternative
def sum_of_beginnings(sentence):
    return sum(a.isspace() and not b.isspace() for a, b in zip(" " + sentence, sentence, strict=False))


@count_words.alternative
def torch_does_it(sentence):
    letters = torch.tensor([0] + [not character.isspace() for character in sentence])
    return int((letters.diff() == 1).sum())
