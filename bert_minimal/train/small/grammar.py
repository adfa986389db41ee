"""Writes the files of the small sets: `python -m bert_minimal.train.small.grammar`.

The same files each time, on every machine: all chance comes from `random.random`, whose numbers Python promises to
keep for a seed.
"""

import itertools
import json
import random
import re
from pathlib import Path

from .names import BY_HAND as SENTENCES_BY_HAND
from .names import COMPANIES, PATTERNS, PEOPLE, PLACES
from .passages import BY_HAND as PASSAGES_BY_HAND
from .passages import SUBJECTS, THEMES, THINGS

SENTENCES = {"train": 400, "dev": 100, "test": 130}  # test: and those by hand
PASSAGES = {"train": 120, "dev": 14, "test": 18}  # test: likewise
FACTS = 4  # of a passage
KINDS = {"P": "PER", "L": "LOC", "O": "ORG"}
PARTS = ("train", "dev", "test")


class Chance(random.Random):
    def pick(self, items):
        return items[int(self.random() * len(items))]

    def some(self, items, count):
        """`count` different ones, in random order."""
        return [items[i] for _, i in sorted((self.random(), i) for i in range(len(items)))[:count]]


# ---- names


def name(part: str, kind: str, chance: Chance) -> str:
    if kind != "P":
        return chance.pick({"L": PLACES, "O": COMPANIES}[kind][part].split("|"))
    first, last = (chance.pick(names.split()) for names in PEOPLE[part])
    return chance.pick([f"{first} {last}"] * 3 + [first, last])


def tagged(text: str) -> list[tuple[str, str]]:
    """ "[P Ada Marsh] slept ." -> words with tags."""
    rows = []
    for kind, inside, word in re.findall(r"\[(\w) ([^\]]+)\]|(\S+)", text):
        rows += [(w, f"{'I' if i else 'B'}-{KINDS[kind]}") for i, w in enumerate(inside.split())] or [(word, "O")]
    return rows


def sentences(part: str) -> list[list[tuple[str, str]]]:
    chance, patterns = Chance(2018 + PARTS.index(part)), PATTERNS[part].strip().split("\n")
    found: dict[str, None] = {}
    for pattern in itertools.cycle(patterns):  # one without names, or with few, is used up some day
        sentence = pattern
        for kind in re.findall(r"\{(\w)\}", pattern):
            while (new := f"[{kind} {name(part, kind, chance)}]") in sentence:
                pass  # nobody meets himself
            sentence = sentence.replace(f"{{{kind}}}", new, 1)
        found[sentence] = None
        if len(found) == SENTENCES[part]:
            break
    by_hand = SENTENCES_BY_HAND.strip().split("\n") if part == "test" else []
    return [tagged(text) for text in [*found, *by_hand]]


def conll(rows: list[list[tuple[str, str]]]) -> str:
    return "\n".join("".join(f"{word} {tag}\n" for word, tag in row) for row in rows)


# ---- questions


def filler(part: str, slot: str, chance: Chance) -> str:
    third = PARTS.index(part)  # years and numbers of the three parts are different ones
    if slot == "year":
        return str(1701 + 3 * int(chance.random() * 99) + third)
    if slot == "number":
        return str(12 + 3 * int(chance.random() * 290) + third)
    if slot == "thing":
        return chance.pick(THINGS[part].split("|"))
    if slot == "place":
        return chance.pick(PLACES[part].split("|"))
    first, last = (chance.pick(names.split()) for names in PEOPLE[part])
    return f"{first} {last}"


def passage(part: str, title: str, theme: list, chance: Chance) -> tuple[str, list]:
    """A text of a few facts; questions about them, and one about a fact that was left out."""
    order = chance.some(theme, len(theme))
    text, asked = "", []
    for sentence, questions in sorted(order[:FACTS], key=lambda fact: "{x}" not in fact[0]):  # who it is comes first
        values: dict[str, tuple[str, int]] = {}
        text += " " if text else ""
        for piece in re.split(r"(\{\w+\})", sentence):
            value = piece
            if piece.startswith("{"):
                value = title if piece == "{x}" else filler(part, piece[1:-1], chance)
                values[piece[1:-1]] = value, len(text)
            text += value
        asked += [(question, [values[slot]]) for question, slot in questions]
    asked = chance.some(asked, 3)
    question, _ = chance.pick(order[FACTS][1])
    return text, [(q.replace("{x}", in_sentence(title)), a) for q, a in [*asked, (question, [])]]


def in_sentence(title: str) -> str:
    return title[0].lower() + title[1:]


def articles(part: str) -> list[tuple[str, str, list]]:
    """(title, text, [(question, [(answer, where)])])."""
    chance, found = Chance(1812 + PARTS.index(part)), []
    for i in range(PASSAGES[part]):
        heading, theme = list(THEMES[part].items())[i % len(THEMES[part])]
        title = heading.replace("{w}", chance.pick(SUBJECTS[part].split()))
        found.append((title, *passage(part, title, theme, chance)))
    if part == "test":
        for title, text, asked in PASSAGES_BY_HAND:
            found.append((title, text, [(q, [(a, text.index(a)) for a in answers]) for q, *answers in asked]))
    return found


def squad(part: str) -> str:
    data = []
    for i, (title, text, asked) in enumerate(articles(part)):
        qas = [
            {
                "id": f"{part}-{i}-{k}",
                "question": question,
                "is_impossible": not answers,
                "answers": [{"text": answer, "answer_start": at} for answer, at in answers],
            }
            for k, (question, answers) in enumerate(asked)
        ]
        data.append({"title": title, "paragraphs": [{"context": text, "qas": qas}]})
    return json.dumps({"version": "v2.0", "data": data}, indent=1, ensure_ascii=False) + "\n"


def files() -> dict[str, str]:
    """File name -> content."""
    return {f"names_{part}.conll": conll(sentences(part)) for part in PARTS} | {
        f"questions_{part}.json": squad(part) for part in PARTS
    }


if __name__ == "__main__":
    for file, content in files().items():
        Path(__file__).with_name(file).write_text(content, encoding="utf-8", newline="\n")
