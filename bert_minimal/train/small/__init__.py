"""Two small sets written for this project: 650 sentences with names, 657 questions about short passages.

    from bert_minimal.train import small

    small.sentences("train")     # [Sentence(words, tags)], tags O, B- and I- with PER, LOC, ORG
    small.questions("test")      # [Question(id, question, context, answers)], some without an answer

The parts are "train", "dev" and "test". No name, no passage and no pattern of a sentence or question stands in two
of them (tests/bert_minimal/train/test_small.py), so that what is learned by heart in training is worth nothing in
the test. The files are in the formats of CoNLL and SQuAD 2.0; grammar.py writes them, from its own word lists and
some passages written by hand. They are small and made up: good for learning how it is done, no measure of a model.
Licence: LICENCE beside this file.
"""

import re
from pathlib import Path

from ..answering import Question
from ..files import read_questions, read_sentences
from ..scores import answer_scores, entities, entity_scores
from ..tagging import Sentence

FOLDER = Path(__file__).parent
PARTS = ("train", "dev", "test")


def sentences(part: str) -> list[Sentence]:
    """The sentences of one part, with tags. Raises ValueError for another part's name."""
    return read_sentences(FOLDER / f"names_{_checked(part)}.conll").examples


def questions(part: str) -> list[Question]:
    """The questions of one part, with answers (none: `answers == ()`). Raises ValueError for another part's name."""
    return read_questions(FOLDER / f"questions_{_checked(part)}.json").examples


def _checked(part: str) -> str:
    if part not in PARTS:
        raise ValueError(f"the parts are {', '.join(PARTS)}, not {part!r}")
    return part


# ---- what can be had without a model


def baseline_scores(what: str) -> dict[str, dict[str, float]]:
    """Scores on the test part of simple rules, to stand beside a model's. what: "names" or "questions"."""
    if what == "names":
        test = sentences("test")
        gold = [sentence.tags or [] for sentence in test]
        known = known_names()
        return {
            "list of names": entity_scores(gold, [look_up(s.words, known) for s in test]),
            "capital letters": entity_scores(gold, [capitals(s.words) for s in test]),
        }
    asked = questions("test")
    truths = [[text for text, _ in question.answers or ()] for question in asked]
    return {
        "never an answer": answer_scores(truths, [""] * len(asked)),
        "shared words": answer_scores(truths, [shared_words(q.question, q.context) for q in asked]),
    }


def known_names() -> dict[tuple[str, ...], str]:
    """Each name of the training part -> its kind."""
    return {tuple(s.words[start:end]): kind for s in sentences("train") for kind, start, end in entities(s.tags or [])}


def look_up(words: list[str], known: dict[tuple[str, ...], str]) -> list[str]:
    """Tags by longest match with known names."""
    tags, i = ["O"] * len(words), 0
    while i < len(words):
        end = next((end for end in range(len(words), i, -1) if tuple(words[i:end]) in known), i)
        if end > i:
            kind = known[tuple(words[i:end])]
            tags[i:end] = [f"B-{kind}"] + [f"I-{kind}"] * (end - i - 1)
        i = max(end, i + 1)
    return tags


def capitals(words: list[str]) -> list[str]:
    """Every run of words in capitals is a person, the most frequent kind; the sentence's first word alone is not."""
    tags = ["O"] * len(words)
    for i, word in enumerate(words):
        if word[0].isupper() and (i > 0 or (len(words) > 1 and words[1][0].isupper())):
            tags[i] = "I-PER" if i and tags[i - 1] != "O" else "B-PER"
    return tags


def shared_words(question: str, context: str) -> str:
    """In the sentence with most words of the question, the longest run of words in capitals, or a number, that the
    question does not have; the first six words if there is none."""
    asked = set(re.findall(r"\w+", question.lower()))
    parts = re.split(r"(?<=[.;:])\s+", context)
    best = max(parts, key=lambda part: len(asked & set(re.findall(r"\w+", part.lower()))))
    runs = re.findall(r"(?<!^)(?:[A-Z]\w+(?: [A-Z]\w+)*|\d+)", best)
    runs = [run for run in runs if not asked & set(run.lower().split())]
    return max(runs, key=len) if runs else " ".join(best.split()[:6])
