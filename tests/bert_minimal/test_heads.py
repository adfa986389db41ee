"""Every head against its counterpart in transformers: logits, loss and gradients."""

import math
from dataclasses import replace

import pytest
import torch
import transformers

from bert_minimal import Bert
from bert_minimal.heads import (
    MaskedLM,
    NextSentence,
    PreTraining,
    QuestionAnswering,
    SequenceClassifier,
    TokenClassifier,
    cross_entropy,
)

from .parity import CONFIG, assert_close, assert_gradients_close, batch, make_loud, transformers_twin

REAL = batch()["attention_mask"].bool()  # (3, 9), 20 real tokens


def token_labels(classes, seed=3):
    """Labels on about half of the real tokens, -100 elsewhere."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, classes, REAL.shape, generator=generator)
    chosen = (torch.rand(REAL.shape, generator=generator) < 0.5) & REAL
    return labels.where(chosen, torch.tensor(-100))


def pair(head, dtype, hf_class, labels=("a", "b"), **entries):
    model = make_loud(head(replace(CONFIG, labels=labels)).to(dtype)).eval()
    return model, transformers_twin(model, hf_class, **entries)


def backward(*losses):
    for loss in losses:
        loss.backward()


both = pytest.mark.parametrize("dtype", [torch.float64, torch.float32])


@both
def test_masked_lm(dtype):
    model, twin = pair(MaskedLM, dtype, transformers.BertForMaskedLM)
    labels = token_labels(CONFIG.vocab_size)
    ours, theirs = model(**batch(), labels=labels), twin(**batch(), labels=labels)
    assert ours.logits.shape == ((labels != -100).sum(), CONFIG.vocab_size)
    assert_close(ours.logits, theirs.logits[labels != -100], name="logits")
    assert_close(ours.loss, theirs.loss, name="loss")
    backward(ours.loss, theirs.loss)
    assert_gradients_close(model, twin, again=lambda exact: exact(**batch(), labels=labels).loss)

    everywhere = model(**batch())
    assert everywhere.loss is None
    assert_close(everywhere.logits[REAL], theirs.logits[REAL], name="logits everywhere")
    assert (everywhere.logits[~REAL] == 0).all()
    assert model(**batch(), masked_positions=labels != -100).logits.equal(ours.logits)


@both
def test_next_sentence(dtype):
    model, twin = pair(NextSentence, dtype, transformers.BertForNextSentencePrediction)
    labels = torch.tensor([0, 1, 1])
    ours, theirs = model(**batch(), labels=labels), twin(**batch(), labels=labels)
    assert_close(ours.logits, theirs.logits, name="logits")
    assert_close(ours.loss, theirs.loss, name="loss")
    backward(ours.loss, theirs.loss)
    assert_gradients_close(model, twin, again=lambda exact: exact(**batch(), labels=labels).loss)


@both
def test_pretraining(dtype):
    model, twin = pair(PreTraining, dtype, transformers.BertForPreTraining)
    labels = {"labels": token_labels(CONFIG.vocab_size), "next_sentence_label": torch.tensor([1, 0, 1])}
    ours, theirs = model(**batch(), **labels), twin(**batch(), **labels)
    assert_close(ours.logits, theirs.prediction_logits[labels["labels"] != -100], name="logits")
    assert_close(ours.seq_relationship_logits, theirs.seq_relationship_logits, name="next sentence")
    assert_close(ours.loss, theirs.loss, name="loss")
    backward(ours.loss, theirs.loss)
    assert_gradients_close(model, twin, again=lambda exact: exact(**batch(), **labels).loss)


@both
def test_sequence_classifier(dtype):
    model, twin = pair(SequenceClassifier, dtype, transformers.BertForSequenceClassification, labels="abc")
    labels = torch.tensor([2, 0, 1])
    ours, theirs = model(**batch(), labels=labels), twin(**batch(), labels=labels)
    assert_close(ours.logits, theirs.logits, name="logits")
    assert_close(ours.loss, theirs.loss, name="loss")
    backward(ours.loss, theirs.loss)
    assert_gradients_close(model, twin, again=lambda exact: exact(**batch(), labels=labels).loss)


@both
def test_regression(dtype):
    model, twin = pair(SequenceClassifier, dtype, transformers.BertForSequenceClassification, labels=("score",))
    labels = torch.tensor([0.3, -1.5, 4.0], dtype=dtype)
    ours, theirs = model(**batch(), labels=labels), twin(**batch(), labels=labels)
    assert twin.config.problem_type == "regression"
    assert_close(ours.logits, theirs.logits, name="logits")
    assert_close(ours.loss, theirs.loss, name="loss")
    backward(ours.loss, theirs.loss)
    assert_gradients_close(model, twin, again=lambda exact: exact(**batch(), labels=labels.double()).loss)


@both
def test_token_classifier(dtype):
    model, twin = pair(TokenClassifier, dtype, transformers.BertForTokenClassification, labels="abcde")
    labels = token_labels(5)
    ours, theirs = model(**batch(), labels=labels), twin(**batch(), labels=labels)
    assert_close(ours.logits[REAL], theirs.logits[REAL], name="logits")
    assert_close(ours.loss, theirs.loss, name="loss")
    backward(ours.loss, theirs.loss)
    assert_gradients_close(model, twin, again=lambda exact: exact(**batch(), labels=labels).loss)


@both
def test_question_answering(dtype):
    model, twin = pair(QuestionAnswering, dtype, transformers.BertForQuestionAnswering)
    full = batch((9, 9, 9))  # without padding: there transformers shares softmax weight out to padding
    answer = {"start_positions": torch.tensor([0, 3, 8]), "end_positions": torch.tensor([0, 5, 8])}
    ours, theirs = model(**full, **answer), twin(**full, **answer)
    assert_close(ours.start_logits, theirs.start_logits, name="start")
    assert_close(ours.end_logits, theirs.end_logits, name="end")
    assert_close(ours.loss, theirs.loss, name="loss")
    backward(ours.loss, theirs.loss)
    zero = ("qa_outputs.bias", "layer.2.output.LayerNorm.bias")
    assert_gradients_close(model, twin, zero, again=lambda exact: exact(**full, **answer).loss)
    ragged, other = model(**batch()), twin(**batch())
    assert_close(ragged.start_logits[REAL], other.start_logits[REAL])
    assert (ragged.start_logits.softmax(-1)[~REAL] == 0).all()


def test_padding_changes_no_answer():
    model = make_loud(QuestionAnswering(CONFIG).double()).eval()
    answer = {"start_positions": torch.tensor([1, 3, 8]), "end_positions": torch.tensor([2, -100, 8])}
    wider = {name: torch.nn.functional.pad(x, (0, 4)) for name, x in batch().items()}
    assert_close(model(**wider, **answer).loss, model(**batch(), **answer).loss, 1e-12)


def test_decoder_is_tied():
    model = MaskedLM(CONFIG)
    assert [name for name, p in model.named_parameters() if p.shape[0] == CONFIG.vocab_size] == [
        "bert.embeddings.word",
        "mlm.decoder_bias",
    ]


def test_fresh_model_starts_at_the_loss_of_guessing():
    torch.manual_seed(0)
    out = PreTraining(CONFIG)(
        **batch(), labels=token_labels(CONFIG.vocab_size), next_sentence_label=torch.tensor([0, 1, 0])
    )
    assert abs(out.loss.item() - math.log(CONFIG.vocab_size) - math.log(2)) < 0.2


def test_nothing_labelled_is_a_loss_of_0_with_gradient():
    loss = cross_entropy(torch.randn(4, 3, requires_grad=True), torch.full((4,), -100))
    loss.backward()
    assert loss.item() == 0
    nothing = MaskedLM(CONFIG)(**batch(), labels=torch.full(REAL.shape, -100))
    assert nothing.loss.item() == 0
    assert nothing.logits.shape == (0, CONFIG.vocab_size)


def test_loss_is_taken_in_float32():
    logits, labels = torch.randn(50, 3000).bfloat16() * 4, torch.arange(50)
    assert cross_entropy(logits, labels).equal(cross_entropy(logits.float(), labels))


@pytest.mark.parametrize("head", [SequenceClassifier, TokenClassifier])
def test_classifier_dropout_leaves_the_bias(head):
    model = make_loud(head(replace(CONFIG, hidden_dropout_prob=1.0)))
    logits = model(**batch()).logits
    logits = logits[REAL] if head is TokenClassifier else logits
    assert logits.equal(model.classifier_bias.expand_as(logits))


@pytest.mark.parametrize("head", [NextSentence, SequenceClassifier])
def test_pooled_heads_read_the_pooled_vector(head):
    model = make_loud(head(CONFIG).double()).eval()
    weight, bias = (model.nsp_weight, model.nsp_bias) if head is NextSentence else (None, None)
    if head is SequenceClassifier:
        weight, bias = model.classifier_weight, model.classifier_bias
    pooled = model.bert(**batch()).pooler_output
    assert_close(model(**batch()).logits, pooled @ weight.T + bias, 1e-12)


def test_stream_gives_the_same_logits():
    model = make_loud(PreTraining(CONFIG).double()).eval()
    labels = token_labels(CONFIG.vocab_size)
    padded = model(**batch(), labels=labels, next_sentence_label=torch.tensor([0, 1, 0]))
    stream, where = model.bert.pack(**batch())
    places = (labels.flatten()[where] != -100).nonzero().squeeze(1)
    pieces, follows = model.stream(places, **stream._asdict())
    assert pieces.equal(padded.logits)
    assert follows.equal(padded.seq_relationship_logits)


@pytest.mark.parametrize(
    ("head", "labels", "words"),
    [
        (MaskedLM, {"labels": torch.full((3, 9), 61)}, "labels contains 61; it may be 0 to 60"),
        (MaskedLM, {"labels": torch.zeros(3, 8, dtype=torch.long)}, r"expected torch.int64 \(3, 9\)"),
        (MaskedLM, {"labels": torch.zeros(3, 9, dtype=torch.long)}, "padding"),
        (MaskedLM, {"masked_positions": torch.ones(3, 9).bool()}, "padding"),
        (MaskedLM, {"masked_positions": torch.ones(3, 9)}, r"true and false in the shape \(3, 9\)"),
        (NextSentence, {"labels": torch.tensor([0, 1, 2])}, "labels contains 2"),
        (SequenceClassifier, {"labels": torch.tensor([0, 1, -1])}, "labels contains -1"),
        (SequenceClassifier, {"labels": torch.tensor([0.0, 1.0, 1.0])}, "float32"),
        (TokenClassifier, {"labels": torch.tensor([0, 1, 0])}, r"expected torch.int64 \(3, 9\)"),
        (QuestionAnswering, {"start_positions": torch.tensor([0, 1, 0])}, "end_positions is missing"),
        (
            QuestionAnswering,
            {"start_positions": torch.tensor([0, 1, 9]), "end_positions": torch.tensor([0, 1, 0])},
            "start_positions contains 9",
        ),
        (
            QuestionAnswering,
            {"start_positions": torch.tensor([0, 1, -100]), "end_positions": torch.tensor([0, 8, -100])},
            "end_positions points at padding",
        ),
    ],
)
def test_bad_labels_are_refused_with_advice(head, labels, words):
    with pytest.raises(ValueError, match=words):
        head(CONFIG)(**batch(), **labels)


def test_regression_wants_floats():
    model = SequenceClassifier(replace(CONFIG, labels=("score",)))
    with pytest.raises(ValueError, match="regression"):
        model(**batch(), labels=torch.tensor([0, 1, 0]))
    with pytest.raises(ValueError, match="regression"):
        model(**batch(), labels=torch.rand(3, 1))


def test_real_masked_lm_equals_transformers(bert_tiny_mlm):
    """BERT-tiny with its trained masked-LM head, gamma and beta names."""
    model = MaskedLM.from_pretrained(bert_tiny_mlm)
    assert model.loaded.fresh == []
    theirs = transformers.BertForMaskedLM.from_pretrained(bert_tiny_mlm).eval()
    inputs = batch((17, 5, 30), config=model.config)
    real = inputs["attention_mask"].bool()
    labels = inputs["input_ids"].where(real & (torch.arange(30) % 3 == 1), torch.tensor(-100))
    for dtype in (torch.float32, torch.float64):
        model, theirs = model.to(dtype), theirs.to(dtype)
        for m in (model, theirs):
            m.zero_grad()
        assert_close(model(**inputs).logits[real], theirs(**inputs).logits[real], name="logits")
        ours, expected = model(**inputs, labels=labels), theirs(**inputs, labels=labels)
        assert_close(ours.loss, expected.loss, name="loss")
        backward(ours.loss, expected.loss)
        assert_gradients_close(model, theirs)
    assert isinstance(model.bert, Bert)
