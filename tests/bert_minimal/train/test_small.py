"""The small sets: as the grammar writes them, large enough, and nothing of the test part to be learned by heart."""

import itertools
import re

import pytest

from bert_minimal.train import small
from bert_minimal.train.scores import answer_scores, entities, entity_scores
from bert_minimal.train.small import grammar, names, passages

LINKS = {"of", "and"}  # words inside names that parts may share
each_pair = pytest.mark.parametrize(("a", "b"), list(itertools.combinations(small.PARTS, 2)))


def test_the_files_are_what_the_grammar_writes():
    for name, content in grammar.files().items():
        assert (small.FOLDER / name).read_text(encoding="utf-8") == content, f"{name}: run the grammar again"


def test_there_is_enough_of_everything():
    sizes = {part: (len(small.sentences(part)), len(small.questions(part))) for part in small.PARTS}
    assert sum(s for s, _ in sizes.values()) >= 300
    assert sum(q for _, q in sizes.values()) >= 150
    for part in small.PARTS:
        none = sum(not question.answers for question in small.questions(part))
        assert 0.2 < none / sizes[part][1] < 0.3
        kinds = {kind for s in small.sentences(part) for kind, _, _ in entities(s.tags)}
        assert kinds == {"PER", "LOC", "ORG"}
        assert any(set(s.tags) == {"O"} for s in small.sentences(part))
    with pytest.raises(ValueError, match="train, dev, test"):
        small.sentences("training")


def test_every_answer_stands_in_its_passage():
    for part in small.PARTS:
        questions = small.questions(part)
        assert len({q.id for q in questions}) == len(questions)
        for question in questions:
            assert question.question.endswith("?")
            for text, at in question.answers:
                assert question.context[at : at + len(text)] == text


def words_of_names(part):
    found = set()
    for sentence in small.sentences(part):
        for _, start, end in entities(sentence.tags):
            found |= {word.lower() for word in sentence.words[start:end]}
    return found - LINKS


@each_pair
def test_no_word_of_a_name_stands_in_two_parts(a, b):
    assert not words_of_names(a) & words_of_names(b)


def frames(part):
    """Sentences with their names taken out."""
    found = set()
    for sentence in small.sentences(part):
        words = list(sentence.words)
        for kind, start, end in reversed(entities(sentence.tags)):
            words[start:end] = [kind]
        found.add(" ".join(words).lower())
    return found


@each_pair
def test_no_pattern_stands_in_two_parts(a, b):
    assert not frames(a) & frames(b)


def bare(text):
    return re.sub(r"\{\w+\}", "_", text)


@each_pair
def test_no_fact_question_title_or_answer_stands_in_two_parts(a, b):
    def facts(part):
        return [fact for theme in passages.THEMES[part].values() for fact in theme]

    def asked(part):
        return {bare(question) for _, questions in facts(part) for question, _ in questions}

    def answers(part):
        return {text.lower() for question in small.questions(part) for text, _ in question.answers}

    assert not {bare(s) for s, _ in facts(a)} & {bare(s) for s, _ in facts(b)}
    assert not asked(a) & asked(b)
    assert not set(passages.THEMES[a]) & set(passages.THEMES[b])
    assert not set(passages.SUBJECTS[a].split()) & set(passages.SUBJECTS[b].split())
    assert not answers(a) & answers(b)
    assert not {q.context for q in small.questions(a)} & {q.context for q in small.questions(b)}


def test_a_list_of_names_finds_nothing_in_the_test_part():
    known = {}
    for sentence in small.sentences("train"):
        for kind, start, end in entities(sentence.tags):
            known[tuple(sentence.words[start:end])] = kind
    test = small.sentences("test")

    def looked_up(words):
        tags = ["O"] * len(words)
        for start, end in itertools.combinations(range(len(words) + 1), 2):
            if kind := known.get(tuple(words[start:end])):
                tags[start:end] = [f"B-{kind}"] + [f"I-{kind}"] * (end - start - 1)
        return tags

    scores = entity_scores([s.tags for s in test], [looked_up(s.words) for s in test])
    assert scores["f1"] == 0.0
    assert scores["word_accuracy"] > 0.7
    assert small.baseline_scores("names")["list of names"]["f1"] == pytest.approx(scores["f1"])


def test_baselines_are_between_nothing_and_everything():
    capitals = small.baseline_scores("names")["capital letters"]["f1"]
    shared = small.baseline_scores("questions")["shared words"]
    assert 0.1 < capitals < 0.8
    assert 0.05 < shared["f1"] < 0.6
    silent = answer_scores([[a for a, _ in q.answers] for q in small.questions("test")], [""] * 121)
    assert small.baseline_scores("questions")["never an answer"] == silent


def test_word_lists_are_used_up():
    """Every hand-written sentence and passage is in the test part."""
    assert len(small.sentences("test")) == grammar.SENTENCES["test"] + len(names.BY_HAND.strip().split("\n"))
    assert {t for _, t, _ in passages.BY_HAND} <= {q.context for q in small.questions("test")}
