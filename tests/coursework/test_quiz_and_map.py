"""The quiz, the map and the cast: small things that every lesson uses."""

import importlib
import inspect
import pkgutil
import re

import pytest

from coursework import quizzes
from coursework.bert_map import PIECES, bert_map
from coursework.cast import CAST, NEXT, TWINS
from coursework.quiz import quiz

CHOICES = {"one <b>": "because `x`", "two": "so"}


def all_quizzes():
    for module in pkgutil.iter_modules(quizzes.__path__):
        loaded = importlib.import_module(f"coursework.quizzes.{module.name}")
        for name, function in inspect.getmembers(loaded, inspect.isfunction):
            if function.__module__ == loaded.__name__:
                yield pytest.param(function, id=f"{module.name}.{name}")


def test_without_a_guess_everything_is_folded_and_there():
    page = quiz("Which?", CHOICES, "b").data
    assert page.count("<details") == 2
    assert " open" not in page
    assert page.count("✓ Yes.") == 1
    assert page.count("✗ No.") == 1
    assert "one &lt;b&gt;" in page  # text, not markup
    assert "<code>x</code>" in page


def test_a_guess_opens_its_explanation():
    right, wrong = quiz("Which?", CHOICES, "b", "B ").data, quiz("Which?", CHOICES, "b", "a").data
    assert "b it is" in right
    assert re.search(r"<details open[^>]*><summary[^>]*><b>b</b>", right)
    assert "choose again" in wrong
    assert re.search(r"<details open[^>]*><summary[^>]*><b>a</b>", wrong)


@pytest.mark.parametrize(("answer", "guess"), [("c", ""), ("ab", ""), ("", ""), ("a", "z"), ("a", "ab")])
def test_letters_that_are_no_choice_are_refused(answer, guess):
    with pytest.raises(ValueError, match="one of"):
        quiz("Which?", CHOICES, answer, guess)


@pytest.mark.parametrize("ask", list(all_quizzes()))
def test_every_question_explains_every_choice_at_length(ask):
    page = ask().data
    whys = re.findall(r"(?:Yes|No)\.</b> (.*?)</div>", page)
    assert len(whys) >= 3
    assert min(map(len, whys)) > 60
    assert page.count("✓") == 1


@pytest.mark.parametrize("unit", range(13))
def test_map_names_the_units_piece_in_words(unit):
    page = bert_map(unit).data
    assert "Map of the course" in page
    assert (" Today: " in page) == (unit > 0)


def test_map_has_every_unit_and_no_other():
    assert {piece.unit for piece in PIECES} == set(range(1, 13))
    with pytest.raises(ValueError, match="0 to 12"):
        bert_map(13)


def test_cast_each_has_a_twin_that_differs_late_and_a_continuation():
    assert set(CAST) == set(TWINS) == set(NEXT)
    for word, sentence in CAST.items():
        assert word in sentence.lower()
        assert len(sentence.split()) <= 12
        mine, other = sentence.split(), TWINS[word].split()
        apart = next(i for i, (a, b) in enumerate(zip(mine, other, strict=False)) if a != b)
        assert apart > mine.index(next(w for w in mine if word in w.lower()))  # the word comes first
