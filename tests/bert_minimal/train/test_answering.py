"""Question answering: spans in pieces and characters, windows, legal pairs, no answer; and a tiny model learns."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from bert_minimal import WordPiece
from bert_minimal.heads import QuestionAnswering
from bert_minimal.train import answering
from bert_minimal.train.answering import (
    Answer,
    Question,
    SpanObjective,
    answer,
    best_answer,
    best_spans,
    decide,
    predict_answers,
    span_batch,
    span_scores,
    threshold_for,
    windows_of,
)
from bert_minimal.train.finetune import FineTuneOptions, open_start
from bert_minimal.train.scores import answer_scores

pytestmark = pytest.mark.usefixtures("one_thread")
FAST = FineTuneOptions(epochs=9, batch=16, learning_rate=3e-3, max_length=32, stride=8)


def questions(count: int, seed: int, empty: bool = False) -> list[Question]:
    """Who was it? Anna or Otto or both, never Paris. With `empty`, a third of the passages do not say it."""
    rng, found = np.random.default_rng(seed), []
    for n in range(count):
        name = ("Anna", "Otto", "Anna,  Otto")[rng.integers(3)]
        words = [*rng.choice(["was", "the lamp", "  cold", "a boat,", "Paris"], 5), name]
        if empty and n % 3 == 0:
            words.remove(name)
        context = " ".join(rng.permutation(words))
        answers = ((name, context.index(name)),) if name in words else ()
        found.append(Question(str(n), "Who was it?", context, answers))
    return found


def test_it_learns(tiny):
    train, dev = questions(200, 0), questions(30, 1)
    result = answer(tiny, train, dev, FAST)
    assert result.scores["exact"] > 0.8
    truths = [[text for text, _ in q.answers] for q in dev]
    expected = answer_scores(truths, [a.text for a in result.answers])
    assert result.scores == expected | {"loss": result.scores["loss"]}
    assert all(q.context[a.start : a.end] == a.text for q, a in zip(dev, result.answers, strict=True))
    assert predict_answers(result, dev) == result.answers
    assert all(0 < a.score <= 1 for a in result.answers)


def test_it_learns_to_say_nothing(tiny):
    train, dev = questions(240, 0, empty=True), questions(45, 1, empty=True)
    result = answer(tiny, train, dev, FAST)
    nothing = [a.text == "" for a in result.answers]
    assert np.mean([said == (q.answers == ()) for said, q in zip(nothing, dev, strict=True)]) > 0.8
    assert result.settings["may_be_empty"]


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_spans_of_pieces_are_the_answer_in_every_window(tiny, data):
    """Wherever an answer of whole words stands, the labelled pieces are its characters, no more and no fewer."""
    tokenizer = WordPiece.from_pretrained(tiny)
    some = st.lists(
        st.sampled_from(["Lamp", "boat,", "the", "Anna's", "«river»", "2.5", "lit"]), min_size=1, max_size=40
    )
    words = data.draw(some)
    first = data.draw(st.integers(0, len(words) - 1))
    last = data.draw(st.integers(first, min(len(words) - 1, first + 5)))
    context, text = "  ".join(words), "  ".join(words[first : last + 1])
    start = len("  ".join([*words[:first], ""]))
    question = Question("q", "who?", context, ((text, start),))
    found = windows_of(tokenizer, question, FAST)
    pieces = tokenizer(context).input_ids[1:-1]
    covered = set()
    for window in found:
        a, b = window.context
        assert len(window.row.ids) <= FAST.max_length
        assert window.row.types == [0] * a + [1] * (len(window.row.ids) - a)
        characters = [tuple(x) for x in window.offsets]
        assert len(characters) == b - a
        covered |= set(characters)
        s, e = window.span
        if (s, e) != (0, 0):
            assert context[window.offsets[s - a][0] : window.offsets[e - a][1]] == text
        else:
            inside = [x for x in characters if x[0] < start + len(text) and x[1] > start]
            assert len(inside) < len(tokenizer(text).input_ids) - 2  # it is not whole in here
    assert len(covered) == len(pieces)
    if len(tokenizer(text).input_ids) - 2 <= FAST.max_length - len(tokenizer("who?").input_ids) - 1 - FAST.stride:
        assert any(window.span != (0, 0) for window in found)


scores = arrays(np.float64, (2, 12), elements=st.floats(-9, 9))


@settings(max_examples=100, deadline=None)
@given(scores, st.integers(1, 5), st.integers(6, 12), st.integers(1, 9))
def test_best_spans_are_the_best_of_all_legal_pairs(rows, a, b, longest):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(answering, "LONGEST_ANSWER", longest)
        found = best_spans(*rows, (a, b), 5)
    pairs = [(i, j) for i in range(a, b) for j in range(i, min(b, i + longest))]
    sums = sorted((rows[0, i] + rows[1, j] for i, j in pairs), reverse=True)
    assert [score for score, _, _ in found] == sums[:5]
    assert all((i, j) in pairs and rows[0, i] + rows[1, j] == score for score, i, j in found)


def test_best_ends_apart_need_not_be_legal():
    start, end = np.zeros(6), np.zeros(6)
    start[4], end[2], end[5] = 5.0, 5.0, 1.0
    assert best_spans(start, end, (1, 6), 1) == [(6.0, 4, 5)]


def test_the_best_window_answers_and_the_least_sure_of_nothing_counts(tiny):
    """Two windows by hand: the answer is the second's; the score of no answer is the lowest of both."""
    tokenizer = WordPiece.from_pretrained(tiny)
    question = Question("q", "who?", "the lamp was lit the boat was cold in the river")
    options = replace(FAST, max_length=14, stride=6)
    asked = windows_of(tokenizer, question, options)
    assert len(asked) > 1
    rows = [np.full((2, len(window.row.ids)), -5.0) for window in asked]
    rows[0][:, 0], rows[1][:, 0] = 1.0, -2.0  # [CLS]
    a = asked[1].context[0]
    rows[1][0, a + 1], rows[1][1, a + 2] = 3.0, 4.0
    found = best_answer(question, asked, rows)
    assert (found.start, found.end) == (asked[1].offsets[1][0], asked[1].offsets[2][1])
    assert found.text == question.context[found.start : found.end]
    least = min(float(row[:, 0].sum()) for row in rows)
    assert found.gap == pytest.approx(least - 7.0)
    assert decide(found, {"may_be_empty": True, "threshold": 0.0}) == found
    assert decide(found, {"may_be_empty": True, "threshold": found.gap - 1}).text == ""
    assert decide(found, {"may_be_empty": False, "threshold": found.gap - 1}) == found


def test_no_questions_are_refused(tiny):
    with pytest.raises(ValueError, match="no training examples"):
        answer(tiny, [], options=FAST)


def test_threshold_is_chosen_by_f1():
    spans = [Answer("x", 1.0, 0, 1, gap) for gap in (-3.0, -1.0, 2.0)]
    assert -3 < threshold_for(spans, [["x"], [], []]) < -1
    assert threshold_for(spans, [["x"], ["x"], ["x"]]) > 2
    assert threshold_for(spans, [[], [], []]) < -3


def test_losses_and_scores_are_those_of_the_model_itself(tiny):
    tokenizer, model = open_start(QuestionAnswering, tiny, FAST)
    model.eval()
    asked = [windows_of(tokenizer, q, replace(FAST, max_length=20)) for q in questions(3, 5)]
    flat = [window for some in asked for window in some]
    (sums,), _ = SpanObjective().losses(model, span_batch(flat))
    losses = []
    found, mean = span_scores(model, asked)
    for window, rows in zip(flat, [rows for some in found for rows in some], strict=True):
        ids, types = (torch.tensor([x]) for x in window.row)
        ends = {f"{n}_positions": torch.tensor([x]) for n, x in zip(("start", "end"), window.span, strict=True)}
        output = model(input_ids=ids, token_type_ids=types, **ends)
        losses.append(output.loss.item())
        np.testing.assert_allclose(rows[0], output.start_logits[0].detach(), atol=1e-5)
        np.testing.assert_allclose(rows[1], output.end_logits[0].detach(), atol=1e-5)
    assert sums.item() == pytest.approx(sum(losses), rel=1e-5)
    assert mean == pytest.approx(np.mean(losses), rel=1e-5)


def test_a_long_question_is_cut_and_leaves_room(tiny):
    tokenizer = WordPiece.from_pretrained(tiny)
    asked = windows_of(tokenizer, Question("q", "who " * 200, "the lamp was lit"), replace(FAST, max_length=80))
    assert asked[0].context[0] == 66


@pytest.mark.parametrize(
    ("question", "options", "says"),
    [
        (Question("q7", "who?", "Anna was warm", (("Anna", 1),)), FAST, "q7: at character 1 stands 'nna ', not 'Anna'"),
        (Question("q7", "who?", "Anna", (("Anna", 0),)), replace(FAST, max_length=5), "--max-length 5 leaves no room"),
        (Question("q7", "who?", " "), FAST, "no word in its passage"),
        (Question("q7", "who?", "a \u200b b", (("\u200b", 2),)), FAST, "sees nothing in its answer"),
    ],
)
def test_what_cannot_be_is_refused(tiny, question, options, says):
    with pytest.raises(ValueError, match=says):
        windows_of(WordPiece.from_pretrained(tiny), question, options)


@pytest.mark.parametrize("option", [{"long": "windows"}, {"pool": "max"}, {"class_weights": True}])
def test_options_without_a_use_are_refused(tiny, option):
    with pytest.raises(ValueError, match="would change nothing for questions"):
        answer(tiny, questions(3, 0), options=replace(FAST, **option))
