"""Lesson 08: what its text says of its experiments is what the stored outputs show, and its functions are right."""

import html
import re
from collections import Counter, namedtuple
from pathlib import Path

import nbformat
import pytest
import torch

from bert_minimal import WordPiece
from bert_minimal.train.data import fetch

LESSON = Path(__file__).parents[2] / "notebooks" / "08_classification.ipynb"
Example = namedtuple("Example", "text label")


@pytest.fixture(scope="module")
def cells():
    return {cell.id: cell for cell in nbformat.read(LESSON, as_version=4).cells}


@pytest.fixture(scope="module")
def said(cells):
    """What a cell printed, and after it the texts of its pictures."""

    def read(name: str) -> str:
        outputs = cells[name].outputs
        pages = [o.data["text/html"] for o in outputs if "data" in o]
        alts = [html.unescape(alt) for page in pages for alt in re.findall(r'<img alt="([^"]*)"', page)]
        return "\n".join([o.text for o in outputs if "text" in o] + alts)

    return read


def _percent(text: str) -> list[float]:
    return [float(number) for number in re.findall(r"(\d+(?:\.\d+)?)%", text)]


def test_sixteen_labels_after_pre_training_are_worth_hundreds_without(said):
    curves = {row.partition(": ")[0]: _percent(row) for row in said("examples-picture").split(". ")[1].split("; ")}
    pre, fresh, counted = (curves[name] for name in ("pre-trained", "random start", "counting words"))
    assert abs(pre[0] - fresh[2]) < 2.7  # within luck, as the lesson measures it
    assert pre[2] > fresh[2] + 5
    assert min(a - b for a, b in zip(pre, counted, strict=True)) > 3


def test_a_larger_rate_forgets(said):
    new, old = (_percent(said("rates"))[i:8:2] for i in (0, 1))
    before, blind = _percent(said("rates"))[8], _percent(said("examples-picture"))[-1]
    assert abs(new[0] - blind) <= 2
    assert abs(old[0] - before) <= 2  # 3e-5: nothing learned, nothing lost
    assert new[1] > blind + 10
    assert old[1] > before - 3  # 3e-4: the new task, and the old one
    assert new[2] <= new[1]
    assert 5 < old[2] < 0.9 * before  # 1e-3
    assert abs(new[3] - blind) <= 2
    assert old[3] < 5  # 3e-3: both are gone


def test_luck_is_larger_than_the_difference_between_full_and_frozen(said):
    luck, full, spread, frozen, narrow = _percent(said("seeds"))
    assert abs(full - frozen) < luck
    assert narrow < spread
    head, _, all_of_it = _percent(said("more"))
    assert abs(head - all_of_it) < 1  # level
    assert min(head, all_of_it) > max(full, frozen)


def test_a_mean_of_means_and_an_order_that_is_lost(said):
    mean, counted = _percent(said("batches"))
    assert abs(mean - counted) > 3
    right, shuffled = _percent(said("answers"))
    assert right == pytest.approx(counted, abs=0.5)
    assert shuffled < 60


def test_the_errors_are_those_that_the_text_names(said, cells):
    for words in ("deeply in love", "in praise of love", "visually striking and slickly staged", "it's also cold",
                  "rather average action film", "several funny moments"):  # fmt: skip
        assert words in said("errors")
        assert f"“{words}" in cells["errors-after"].source
    assert "trial" in said("errors")
    assert said("errors").count("says good") == len(said("errors").strip().splitlines()) == 6


def test_softmax_twice_stops_with_every_answer_right(said):
    twice = re.search(r"softmax twice from [\d.]+ to ([\d.]+) with 100% right", said("wrong-picture"))
    assert 0.31 < float(twice[1]) < 0.36
    healthy = re.search(r"should be from [\d.]+ to ([\d.]+) with 100% right", said("wrong-picture"))
    assert float(healthy[1]) < 0.1


def test_the_counter_of_words_gives_what_a_pencil_gives(cells):
    texts = [Example("warm and warm", "good"), Example("dull and cold", "bad"), Example("warm", "good")]
    names = {"train": texts, "test": [Example("warm and dull warm", None)], "torch": torch, "Counter": Counter}
    exec("import math\n" + cells["count-words"].source, names)
    # warm: ln(3/1), and: ln(2/2), dull: ln(1/2); each word counts once a text
    assert names["count_words"](3).tolist() == [[0.0, pytest.approx(0.405465)]]


def test_ids_and_mask_are_those_of_the_tokenizer(cells):
    names = {"words": WordPiece.from_pretrained(fetch("course")), "torch": torch}
    exec(cells["head"].source[cells["head"].source.index("def encode") :], names)
    texts = ["the plot was thin .", "dull", "a wonderful little comedy ."]
    found, expected = names["encode"](texts), names["words"](texts, padding=True, return_tensors="pt")
    for name in ("input_ids", "attention_mask"):
        assert found[name].tolist() == expected[name].tolist()
