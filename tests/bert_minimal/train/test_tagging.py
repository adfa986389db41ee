"""Tagging on a tiny model: labels on pieces, what it learns, long sentences, what it refuses."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from bert_minimal import WordPiece
from bert_minimal.heads import TokenClassifier
from bert_minimal.train.finetune import FineTuneOptions, Row
from bert_minimal.train.scores import entity_scores
from bert_minimal.train.tagging import Part, Sentence, parts_of, predict_tags, tag, tag_names

pytestmark = pytest.mark.usefixtures("one_thread")
FAST = FineTuneOptions(epochs=15, batch=8, learning_rate=3e-3, max_length=24)


def sentences(count: int, seed: int) -> list[Sentence]:
    rng, found = np.random.default_rng(seed), []
    for _ in range(count):
        words, tags = [], []
        for _ in range(rng.integers(1, 4)):
            filler = rng.choice(["the", "lamp", "was", "river", "in"], rng.integers(0, 3)).tolist()
            name = [(["anna"], "PER"), (["otto"], "PER"), (["paris"], "LOC"), (["lyon", "paris"], "LOC")][
                rng.integers(4)
            ]
            words += [*filler, *name[0], "."]
            tags += ["O"] * len(filler) + [f"B-{name[1]}"] + [f"I-{name[1]}"] * (len(name[0]) - 1) + ["O"]
        found.append(Sentence(words, tags))
    return found


TRAIN, DEV = sentences(80, 0), sentences(40, 1)


@pytest.mark.parametrize("pieces", ["first", "all"])
def test_it_learns(tiny, pieces):
    result = tag(tiny, TRAIN, DEV, FAST, pieces=pieces)
    assert result.labels[0] == "O"
    assert result.scores["f1"] > 0.9
    assert result.scores == entity_scores([s.tags for s in DEV], result.answers) | {"loss": result.scores["loss"]}
    assert result.settings == {"pieces": pieces}
    found = predict_tags(result, [s.words for s in DEV])
    assert [tags for tags, _ in found] == result.answers
    assert all(1 / len(result.labels) <= p <= 1 for _, ps in found for p in ps)


def test_answers_are_those_of_the_model_itself_at_first_pieces(tiny):
    result = tag(tiny, TRAIN[:16], DEV, replace(FAST, epochs=1))
    for sentence, tags in zip(DEV[:10], result.answers, strict=False):
        ids, first = [result.tokenizer.cls_id], []
        for word in sentence.words:
            first.append(len(ids))
            ids += result.tokenizer(word).input_ids[1:-1]
        with torch.inference_mode():
            logits = result.model(input_ids=torch.tensor([[*ids, result.tokenizer.sep_id]])).logits[0]
        assert tags == [result.labels[k] for k in logits[first].argmax(-1).tolist()]


@pytest.fixture
def cutter() -> WordPiece:
    """anna is one piece, lyon is l ##y ##on, paris has two."""
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "anna", "l", "##y", "##on", "par", "##is", "in"]
    return WordPiece(pieces)


NUMBERS = {"O": 0, "B-LOC": 1, "I-LOC": 2, "B-PER": 3}


def test_both_conventions_by_hand(cutter):
    sentence = Sentence(["anna", "in", "lyon", "paris"], ["B-PER", "O", "B-LOC", "I-LOC"])
    (first,) = parts_of(cutter, sentence, 20, NUMBERS, "first")
    (every,) = parts_of(cutter, sentence, 20, NUMBERS, "all")
    assert first.row == every.row == Row([2, 5, 11, 6, 7, 8, 9, 10, 3], [0] * 9)
    assert first.first == every.first == [1, 2, 3, 6]
    assert first.labels == [-100, 3, 0, 1, -100, -100, 2, -100, -100]
    assert every.labels == [-100, 3, 0, 1, 2, 2, 2, 2, -100]  # never a second B-


def test_long_sentences_are_cut_between_words_and_none_is_left_out(cutter):
    words = ["anna", "lyon", "in", "paris", "lyon", "anna", "in"]
    parts = parts_of(cutter, Sentence(words, ["O"] * 7), 7, NUMBERS)  # room for five pieces
    assert [part.row.ids[1:-1] for part in parts] == [[5, 6, 7, 8, 11], [9, 10, 6, 7, 8], [5, 11]]
    assert [part.first for part in parts] == [[1, 2, 5], [1, 3], [1, 2]]
    assert all(len(part.labels) == len(part.row.ids) for part in parts)


def test_every_word_has_a_piece_and_none_is_longer_than_the_room(cutter):
    (part, last) = parts_of(cutter, Sentence(["\u200b", "lyon"]), 4)
    assert part == Part(Row([2, 1, 3], [0, 0, 0]), [1], [-100] * 3)
    assert last.row.ids == [2, 6, 7, 3]


def test_tags_of_long_sentences_come_back_whole(tiny):
    options = replace(FAST, max_length=8, epochs=2)
    long = [Sentence(s.words * 3, s.tags * 3) for s in DEV[:8]]
    result = tag(tiny, TRAIN, long, options)
    assert [len(tags) for tags in result.answers] == [len(s.words) for s in long]


def test_names_of_the_classes():
    some = [Sentence(["a", "b"], ["B-PER", "I-LOC"]), Sentence(["a"], ["O"])]
    assert tag_names(some, "first") == ("O", "I-LOC", "B-PER")
    assert tag_names(some, "all") == ("O", "I-LOC", "B-PER", "I-PER")


def test_a_tag_that_training_never_saw_counts_as_missed(tiny):
    dev = [Sentence(["anna", "in", "paris"], ["B-PER", "O", "B-SHIP"])]
    result = tag(tiny, TRAIN, dev, FAST)
    assert result.scores["recall"] <= 0.5


def test_saved_and_opened_again(tiny, tmp_path):
    result = tag(tiny, TRAIN[:16], DEV, replace(FAST, epochs=1))
    result.model.save_pretrained(tmp_path)
    again = replace(result, model=TokenClassifier.from_pretrained(tmp_path))
    assert predict_tags(again, [DEV[0].words])[0][0] == result.answers[0]


@pytest.mark.parametrize(
    ("train", "says"),
    [
        ([Sentence(["a", "b"], ["O"])], "training sentence 0 has 2 words and 1 tags"),
        ([Sentence(["a"])], "has 1 words and no tags"),
        ([Sentence(["a"], ["B"])], "the tag 'B'"),
        ([Sentence(["a"], ["S-PER"])], "other schemes: convert"),
        ([Sentence(["a"], ["O"])], "nothing to learn"),
    ],
)
def test_what_cannot_be_is_refused(tiny, train, says):
    with pytest.raises(ValueError, match=says):
        tag(tiny, train, options=FAST)


@pytest.mark.parametrize("option", [{"long": "windows"}, {"pool": "max"}])
def test_options_without_a_use_are_refused(tiny, option):
    with pytest.raises(ValueError, match="would change nothing in tagging"):
        tag(tiny, TRAIN, options=replace(FAST, **option))
