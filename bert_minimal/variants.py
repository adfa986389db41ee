"""RoBERTa, ALBERT and DistilBERT: what each changes in BERT, and nothing else.

    Bert.from_pretrained(FOLDER)        a checkpoint of any of the three, under Hugging Face's names
    MaskedLM(AlbertConfig())            every head of `heads.py` takes their configurations

A family is a configuration and a `Bert` in which one or two pieces are others; data/names.txt has what its files
call things.
What a family changes in *training* is not here: RoBERTa (Liu et al. 2019) leaves the next sentence out, masks
anew each time, reads ten times more text in batches of 8,192; ALBERT (Lan et al. 2020) learns the order of two
sentences (`train/pairs.py`); DistilBERT (Sanh et al. 2019) learns from a larger model.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import torch.nn.functional as F
from torch import Tensor

from .config import BertConfig
from .model import Bert, Embeddings, Pooler, parameter

# ---- RoBERTa: positions counted from 2, one segment, another ε, byte-level BPE


class Roberta(Bert):
    """The same layers. Padding (id 1) has position 1, and the first token the next free one: 2."""

    def positions(self, input_ids: Tensor) -> Tensor:
        """(B, S) -> (B, S): real tokens count 2, 3, 4 … wherever the padding is; padding keeps 1."""
        real = input_ids != self.config.pad_token_id
        return real.cumsum(dim=1) * real + self.config.pad_token_id


@dataclass(frozen=True)
class RobertaConfig(BertConfig):
    """The defaults are roberta-base. 514 rows of positions hold 512 tokens: rows 0 and 1 stand for none."""

    vocab_size: int = 50265
    max_position_embeddings: int = 514
    type_vocab_size: int = 1  # no segments: everything is in segment 0
    layer_norm_eps: float = 1e-5  # type: ignore[misc]  # one for all of BERT; here an entry

    model_type: ClassVar[str] = "roberta"
    pad_token_id: ClassVar[int] = 1
    first_position: ClassVar[int] = 2
    required: ClassVar[dict[str, Any]] = {"pad_token_id": 1}

    def encoder_class(self):
        return Roberta


def byte_level_bpe(folder: str | os.PathLike):
    """RoBERTa's tokenizer, from the `vocab.json` and `merges.txt` of a checkpoint: a `tokenizers.Tokenizer`.

    Radford et al. 2019 (GPT-2), section 2.2: pairs are merged by frequency, starting from the 256 bytes, so
    that no text is unknown. A space belongs to the word after it. `.encode(text, pair).ids` is
    <s> text </s> or <s> text </s></s> pair </s>: Liu et al. 2019 mark no segments but by these.
    """
    from tokenizers import ByteLevelBPETokenizer, processors

    tokenizer = ByteLevelBPETokenizer.from_file(*(str(Path(folder) / name) for name in ("vocab.json", "merges.txt")))
    cls, sep = ((piece, tokenizer.token_to_id(piece)) for piece in ("<s>", "</s>"))
    tokenizer.post_processor = processors.RobertaProcessing(sep, cls, trim_offsets=True, add_prefix_space=False)
    tokenizer.add_special_tokens(["<s>", "<pad>", "</s>", "<unk>", "<mask>"])
    tokenizer.enable_padding(pad_id=1, pad_token="<pad>")
    return tokenizer


# ---- ALBERT: narrow embeddings, one layer for all


class FactorisedEmbeddings(Embeddings):
    """E numbers a piece instead of D, then one matrix for all pieces: V·E + E·D instead of V·D (section 3.1)."""

    def __init__(self, config: BertConfig):
        super().__init__(config)
        self.widen_weight = parameter(config.hidden_size, config.embedding_size)
        self.widen_bias = parameter(config.hidden_size)

    def normalise(self, x: Tensor) -> Tensor:  # (…, E) -> (…, D)
        return F.linear(super().normalise(x), self.widen_weight, self.widen_bias)


class Albert(Bert):
    """One layer, run L times (section 3.1): its gradient is the sum over its L places."""

    embeddings_class = FactorisedEmbeddings

    def depth(self) -> list[Any]:
        return [self.layers[0]] * self.config.num_hidden_layers


@dataclass(frozen=True)
class AlbertConfig(BertConfig):
    """The defaults are albert-base-v2. `PreTraining` is its model with the sentence-order head."""

    vocab_size: int = 30000
    embedding_size: int = 128  # type: ignore[misc]
    hidden_act: str = "gelu_new"
    hidden_dropout_prob: float = 0.0
    attention_probs_dropout_prob: float = 0.0

    model_type: ClassVar[str] = "albert"
    num_stored_layers: ClassVar[int] = 1  # type: ignore[misc]
    required: ClassVar[dict[str, Any]] = {**BertConfig.required, "num_hidden_groups": 1, "inner_group_num": 1}
    more_tensors: ClassVar = (("embeddings", "bert.embeddings.widen_*", "bert.encoder.embedding_hidden_mapping_in.*"),)

    def encoder_class(self):
        return Albert


# ---- DistilBERT: half the layers, no segments, no pooler


class OneSegment(Embeddings):
    """Pieces and positions only."""

    def __init__(self, config: BertConfig):
        super().__init__(config)
        del self.segment

    def forward(self, input_ids: Tensor, token_type_ids: Tensor, position_ids: Tensor) -> Tensor:
        return self.normalise(F.embedding(input_ids, self.word) + F.embedding(position_ids, self.position))


class ReluPooler(Pooler):
    """Only in its sequence classifier, where it starts fresh ("pre_classifier")."""

    activation = staticmethod(F.relu)  # type: ignore[assignment]


class DistilBert(Bert):
    """BERT's layers, six of them."""

    embeddings_class, pooler_class = OneSegment, ReluPooler

    def __init__(self, config: BertConfig, pooler: bool = False):
        super().__init__(config, pooler)


@dataclass(frozen=True)
class DistilBertConfig(BertConfig):
    """The defaults are distilbert-base-uncased."""

    num_hidden_layers: int = 6
    type_vocab_size: int = 1

    model_type: ClassVar[str] = "distilbert"
    required: ClassVar[dict[str, Any]] = {}

    def encoder_class(self):
        return DistilBert


FAMILIES = {family.model_type: family for family in (BertConfig, RobertaConfig, AlbertConfig, DistilBertConfig)}
