"""What goes on top of BERT: the two pre-training tasks and three kinds of fine-tuning.

Sections are those of Devlin et al. 2019, shapes use the letters of `config.py` (K: classes). Every model
here has the encoder as `.bert` and two doors:

* `model(input_ids=…, …, labels=…)` takes a padded batch as `Bert` does, and gives `HeadOutput`;
* `model.stream(**stream)` takes tokens laid end to end (see `stream.py`) and gives logits: for training.

A label of -100 is no label: it takes no part in the loss.
"""

from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .attention import very_negative
from .config import GELU_KIND, BertConfig
from .model import Module, layer_norm, parameter
from .stream import unpack

NO_LABEL = -100


@dataclass
class HeadOutput:
    """The mean loss when labels were given, and the scores before softmax; shapes stand at each model."""

    loss: Tensor | None = None
    logits: Tensor | None = None
    seq_relationship_logits: Tensor | None = None  # PreTraining: (B, 2)
    start_logits: Tensor | None = None  # QuestionAnswering: (B, S)
    end_logits: Tensor | None = None  # QuestionAnswering: (B, S)


def cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """Mean of -log softmax(logits)[label] over the labelled; 0 if none is. logits (M, K), labels (M,).

    In float32 at least: log-probabilities of thousands of classes lose too much in half precision.
    """
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    total = F.cross_entropy(logits, labels, ignore_index=NO_LABEL, reduction="sum")
    return total / (labels != NO_LABEL).sum().clamp(min=1)


def check_labels(name: str, labels: Tensor, shape: tuple[int, ...], classes: int) -> None:
    """Raise ValueError unless labels (of that shape) are whole numbers 0 … classes - 1, or -100."""
    if labels.shape != shape or labels.dtype != torch.int64:
        raise ValueError(f"{name} is {labels.dtype} {tuple(labels.shape)}; expected torch.int64 {tuple(shape)}")
    wrong = labels[(labels != NO_LABEL) & ((labels < 0) | (labels >= classes))]
    if len(wrong):
        raise ValueError(f"{name} contains {wrong[0].item()}; it may be 0 to {classes - 1}, or -100 for none")


def places_in_stream(wanted: Tensor, where: Tensor) -> Tensor:
    """wanted (B, S), true where a token is wanted; where (N,), from `pack` -> places in the stream (M,)."""
    places = wanted.flatten()[where].nonzero().squeeze(1)
    if len(places) != wanted.count_nonzero():
        raise ValueError("padding is marked as a piece to guess: labels on padding have to be -100")
    return places


class MaskedLMHead(nn.Module):
    """From a token's vector to a score for every piece of the vocabulary (section 3.1, "Task #1").

    A dense layer with GELU and LayerNorm (these stand only in the released code), then a product with the
    word embeddings themselves ("tied"), and a bias for each piece.
    """

    def __init__(self, config: BertConfig):
        super().__init__()
        self.gelu_kind = GELU_KIND[config.hidden_act]
        self.eps, width = config.layer_norm_eps, config.embedding_size  # D, but for ALBERT
        self.dense_weight = parameter(width, config.hidden_size)
        self.dense_bias = parameter(width)
        self.norm_weight = parameter(width)
        self.norm_bias = parameter(width)
        self.decoder_bias = parameter(config.vocab_size)

    def forward(self, x: Tensor, word_embeddings: Tensor) -> Tensor:
        """x (M, D), word_embeddings (V, D) -> logits (M, V)."""
        x = F.gelu(F.linear(x, self.dense_weight, self.dense_bias), approximate=self.gelu_kind)
        return F.linear(layer_norm(x, self.norm_weight, self.norm_bias, self.eps), word_embeddings, self.decoder_bias)


class MaskedLM(Module):
    """Guess the hidden pieces (section 3.1, "Task #1: Masked LM")."""

    hf_name = "BertForMaskedLM"

    def __init__(self, config: BertConfig):
        super().__init__(config)
        self.bert = config.encoder_class()(config, pooler=False)
        self.mlm = MaskedLMHead(config)
        self.initialise()

    def stream(self, masked_positions: Tensor, **stream) -> Tensor:
        """masked_positions (M,): places in the stream, 0 to N - 1 -> logits (M, V)."""
        return self.mlm(self.bert.stream(**stream)[masked_positions], self.bert.embeddings.word)

    def forward(
        self, *, input_ids, token_type_ids=None, attention_mask=None, labels=None, masked_positions=None
    ) -> HeadOutput:
        """labels (B, S): the true ids where a piece is to be guessed, -100 elsewhere -> loss.

        With labels, or with masked_positions (B, S; true where wanted), the logits are (M, V), for those
        positions only, row by row: the product with 30,522 embeddings is the dearest of the model. With
        neither they are (B, S, V), 0 on padding.
        """
        stream, where = self.bert.pack(input_ids, token_type_ids, attention_mask)
        if labels is not None:
            check_labels("labels", labels, input_ids.shape, self.config.vocab_size)
            masked_positions = labels != NO_LABEL
        if masked_positions is None:
            logits = self.stream(torch.arange(len(where), device=where.device), **stream._asdict())
            return HeadOutput(logits=unpack(logits, where, *input_ids.shape))
        if masked_positions.shape != input_ids.shape or masked_positions.dtype != torch.bool:
            raise ValueError(f"masked_positions has to be true and false in the shape {tuple(input_ids.shape)}")
        places = places_in_stream(masked_positions, where)
        logits = self.stream(places, **stream._asdict())  # (M, V)
        loss = None if labels is None else cross_entropy(logits, labels.flatten()[where[places]])
        return HeadOutput(loss, logits)


class NextSentence(Module):
    """Does B follow A? Class 0 says yes (section 3.1, "Task #2: Next Sentence Prediction")."""

    hf_name = "BertForNextSentencePrediction"

    def __init__(self, config: BertConfig):
        super().__init__(config)
        self.bert = config.encoder_class()(config, pooler=True)
        self.nsp_weight = parameter(2, config.hidden_size)
        self.nsp_bias = parameter(2)
        self.initialise()

    def stream(self, **stream) -> Tensor:
        """-> logits (B, 2)."""
        pooled = self.bert.pooler(self.bert.stream(**stream), stream["cu_seqlens"])
        return F.linear(pooled, self.nsp_weight, self.nsp_bias)

    def forward(self, *, input_ids, token_type_ids=None, attention_mask=None, labels=None) -> HeadOutput:
        """labels (B,): 0 where B is the true next sentence, 1 where it is not -> loss, logits (B, 2)."""
        stream, _ = self.bert.pack(input_ids, token_type_ids, attention_mask)
        if labels is not None:
            check_labels("labels", labels, input_ids.shape[:1], 2)
        logits = self.stream(**stream._asdict())
        return HeadOutput(None if labels is None else cross_entropy(logits, labels), logits)


class PreTraining(Module):
    """Both tasks at once; the loss is the sum of the two means (A.2).

    For answers without labels load the same checkpoint as `MaskedLM` or `NextSentence`.
    """

    hf_name = "BertForPreTraining"

    def __init__(self, config: BertConfig):
        super().__init__(config)
        self.bert = config.encoder_class()(config, pooler=True)
        self.mlm = MaskedLMHead(config)
        self.nsp_weight = parameter(2, config.hidden_size)
        self.nsp_bias = parameter(2)
        self.initialise()

    def stream(self, masked_positions: Tensor, **stream) -> tuple[Tensor, Tensor]:
        """masked_positions (M,): places in the stream -> piece logits (M, V), next-sentence logits (B, 2)."""
        x = self.bert.stream(**stream)  # (N, D)
        pieces = self.mlm(x[masked_positions], self.bert.embeddings.word)
        pooled = self.bert.pooler(x, stream["cu_seqlens"])
        return pieces, F.linear(pooled, self.nsp_weight, self.nsp_bias)

    def forward(
        self, *, input_ids, token_type_ids=None, attention_mask=None, labels, next_sentence_label
    ) -> HeadOutput:
        """labels (B, S) as in `MaskedLM`, next_sentence_label (B,) as in `NextSentence`.

        -> loss, logits (M, V), seq_relationship_logits (B, 2).
        """
        stream, where = self.bert.pack(input_ids, token_type_ids, attention_mask)
        check_labels("labels", labels, input_ids.shape, self.config.vocab_size)
        check_labels("next_sentence_label", next_sentence_label, input_ids.shape[:1], 2)
        places = places_in_stream(labels != NO_LABEL, where)
        pieces, follows = self.stream(places, **stream._asdict())
        loss = cross_entropy(pieces, labels.flatten()[where[places]])
        return HeadOutput(loss + cross_entropy(follows, next_sentence_label), pieces, follows)


class SequenceClassifier(Module):
    """One answer for a text or a pair, from the pooled [CLS] (section 4.1). K = len(config.labels).

    With a single label it is a regression: labels are floats, the loss is the mean squared error.
    """

    hf_name = "BertForSequenceClassification"

    def __init__(self, config: BertConfig):
        super().__init__(config)
        self.bert = config.encoder_class()(config, pooler=True)
        self.classifier_weight = parameter(len(config.labels), config.hidden_size)
        self.classifier_bias = parameter(len(config.labels))
        self.initialise()

    def stream(self, **stream) -> Tensor:
        """-> logits (B, K)."""
        pooled = self.bert.pooler(self.bert.stream(**stream), stream["cu_seqlens"])
        pooled = F.dropout(pooled, self.config.hidden_dropout_prob, self.training)
        return F.linear(pooled, self.classifier_weight, self.classifier_bias)

    def forward(self, *, input_ids, token_type_ids=None, attention_mask=None, labels=None) -> HeadOutput:
        """labels (B,): class numbers, or floats for a regression -> loss, logits (B, K)."""
        stream, _ = self.bert.pack(input_ids, token_type_ids, attention_mask)
        logits, classes = self.stream(**stream._asdict()), len(self.config.labels)
        if labels is None:
            return HeadOutput(logits=logits)
        if classes == 1:
            if labels.shape != input_ids.shape[:1] or not labels.is_floating_point():
                raise ValueError(
                    f"labels are {labels.dtype} {tuple(labels.shape)}; one label makes a regression, which "
                    f"wants floats ({len(input_ids)},). For classes name two or more in the configuration"
                )
            return HeadOutput(F.mse_loss(logits.squeeze(1), labels), logits)
        check_labels("labels", labels, input_ids.shape[:1], classes)
        return HeadOutput(cross_entropy(logits, labels), logits)


class TokenClassifier(Module):
    """One label a token, as for named entities (section 5.3). K = len(config.labels).

    The paper labels the first piece of each word: give -100 to the others, to [CLS], [SEP] and padding.
    """

    hf_name = "BertForTokenClassification"

    def __init__(self, config: BertConfig):
        super().__init__(config)
        self.bert = config.encoder_class()(config, pooler=False)
        self.classifier_weight = parameter(len(config.labels), config.hidden_size)
        self.classifier_bias = parameter(len(config.labels))
        self.initialise()

    def stream(self, **stream) -> Tensor:
        """-> logits (N, K)."""
        x = F.dropout(self.bert.stream(**stream), self.config.hidden_dropout_prob, self.training)
        return F.linear(x, self.classifier_weight, self.classifier_bias)

    def forward(self, *, input_ids, token_type_ids=None, attention_mask=None, labels=None) -> HeadOutput:
        """labels (B, S): class numbers or -100, never read on padding -> loss, logits (B, S, K), 0 there."""
        stream, where = self.bert.pack(input_ids, token_type_ids, attention_mask)
        logits, loss = self.stream(**stream._asdict()), None
        if labels is not None:
            check_labels("labels", labels, input_ids.shape, len(self.config.labels))
            loss = cross_entropy(logits, labels.flatten()[where])
        return HeadOutput(loss, unpack(logits, where, *input_ids.shape))


class QuestionAnswering(Module):
    """Where the answer starts and ends in the passage: two scores a token, vectors S and E (section 4.2).

    On padding the scores are so low that softmax makes them 0: no answer can lie there and padding changes
    nothing. (`transformers` has meaningless scores there, and its softmax shares weight out to them.)
    """

    hf_name = "BertForQuestionAnswering"

    def __init__(self, config: BertConfig):
        super().__init__(replace(config, labels=("start", "end")))  # transformers counts labels here too
        self.bert = config.encoder_class()(config, pooler=False)
        self.span_weight = parameter(2, config.hidden_size)  # S and E
        self.span_bias = parameter(2)  # not in the paper, but in the code
        self.initialise()

    def stream(self, **stream) -> Tensor:
        """-> (N, 2), start and end scores."""
        return F.linear(self.bert.stream(**stream), self.span_weight, self.span_bias)

    def forward(
        self, *, input_ids, token_type_ids=None, attention_mask=None, start_positions=None, end_positions=None
    ) -> HeadOutput:
        """start_positions, end_positions (B,): first and last piece of the answer -> loss, two logits (B, S).

        No answer is 0 and 0, that is [CLS], as in section 4.3; -100 leaves a row out. The loss is the mean of
        the two cross-entropies, as in Google's code; the paper says their sum, which is twice that.
        """
        stream, where = self.bert.pack(input_ids, token_type_ids, attention_mask)
        logits = self.stream(**stream._asdict())
        logits = unpack(logits, where, *input_ids.shape, fill=very_negative(logits.dtype))  # (B, S, 2)
        start, end = logits.unbind(-1)
        if start_positions is None and end_positions is None:
            return HeadOutput(start_logits=start, end_logits=end)
        for name, labels in (("start_positions", start_positions), ("end_positions", end_positions)):
            if labels is None:
                raise ValueError(f"{name} is missing: start_positions and end_positions go together")
            check_labels(name, labels, input_ids.shape[:1], input_ids.shape[1])
            answered = labels != NO_LABEL
            if attention_mask is not None and not attention_mask[answered, labels[answered]].all():
                raise ValueError(f"{name} points at padding: an answer lies on real tokens; 0 is none")
        loss = (cross_entropy(start, start_positions) + cross_entropy(end, end_positions)) / 2
        return HeadOutput(loss, start_logits=start, end_logits=end)
