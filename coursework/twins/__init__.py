"""BERT and GPT as twins: the same size, text and training loop; one attention mask and one question differ.

    twins = {name: open_twin(name) for name in ("bert", "gpt")}      # trained, 1.5 M parameters each
    twins["gpt"](input_ids=ids).logits[:, -1]                        # what comes next
    python -m coursework twins my-twins --steps 8000                 # train them anew (a GPU: minutes)

Devlin et al. 2019, figure 3 and A.4, compare the two on paper. Radford et al. 2018 (GPT) learn to name the next
piece, so no piece may see what comes after it: the causal mask of `attention.causal_mask`. The real GPT differs in
more (another vocabulary, no segments, larger); here everything else is held equal on purpose.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from bert_minimal.attention import (
    causal_mask,
    mask_to_bias,
    merge_heads,
    scaled_dot_product_attention,
    split_heads,
    very_negative,
)
from bert_minimal.checkpoint import load_weights
from bert_minimal.config import BertConfig
from bert_minimal.heads import MaskedLM
from bert_minimal.model import Bert, Layer

HERE = Path(__file__).parent
Twin = Literal["bert", "gpt"]


def causal_attention(query: Tensor, key: Tensor, value: Tensor, cu_seqlens: Tensor, max_seqlen: int) -> Tensor:
    """`stream.stream_attention` in which each token sees itself and what came before: three (N, H, d) -> (N, H, d)."""
    batch = len(cu_seqlens) - 1
    equal = len(query) == batch * max_seqlen  # then all at once, and nothing is read back from a GPU
    runs = [(max_seqlen, batch)] if equal else [(length, 1) for length in cu_seqlens.diff().tolist() if length]
    tokens = [length * count for length, count in runs]
    contexts = []
    for (length, count), *qkv in zip(runs, *(x.split(tokens) for x in (query, key, value)), strict=True):
        q, k, v = (x.unflatten(0, (count, length)).transpose(1, 2) for x in qkv)  # (count, H, length, d)
        context = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        contexts.append(context.transpose(1, 2).flatten(0, 1))
    return torch.cat(contexts)


class CausalLayer(Layer):
    """BERT's layer with the other mask. Has no dropout in attention."""

    def forward(self, x: Tensor, cu_seqlens: Tensor, max_seqlen: int) -> Tensor:
        """The stream (N, D) -> (N, D)."""
        qkv = F.linear(x, self.qkv_weight, self.qkv_bias)  # (N, 3D)
        query, key, value = qkv.unflatten(1, (3, self.num_heads, -1)).unbind(1)  # each (N, H, d)
        context = causal_attention(query, key, value, cu_seqlens, max_seqlen)  # (N, H, d)
        return self.after_attention(x, F.linear(context.flatten(1), self.attention_weight, self.attention_bias))

    def by_definition(self, x: Tensor, attention_mask: Tensor | None) -> tuple[Tensor, Tensor]:
        """(B, S, D) -> (B, S, D) and weights (B, H, S, S), every score written out."""
        query, key, value = F.linear(x, self.qkv_weight, self.qkv_bias).chunk(3, dim=-1)  # each (B, S, D)
        later = ~causal_mask(x.shape[1], x.device)  # (S, S)
        bias = torch.zeros(later.shape, dtype=x.dtype, device=x.device).masked_fill(later, very_negative(x.dtype))
        if attention_mask is not None:
            bias = torch.minimum(bias, mask_to_bias(attention_mask, x.dtype))  # not a sum: twice half the least is −inf
        q, k, v = (split_heads(part, self.num_heads) for part in (query, key, value))
        context, weights = scaled_dot_product_attention(q, k, v, bias)
        attended = F.linear(merge_heads(context), self.attention_weight, self.attention_bias)
        return self.after_attention(x, attended), weights


class Gpt(Bert):
    """BERT, reading from left to right."""

    layer_class = CausalLayer


@dataclass(frozen=True)
class GptConfig(BertConfig):
    """`is_decoder` is how transformers names the causal mask: its BertLMHeadModel opens the file as the same model."""

    required: ClassVar[dict[str, Any]] = {**BertConfig.required, "is_decoder": True}

    @classmethod
    def from_hf(cls, entries: dict) -> BertConfig:
        return super().from_hf({"is_decoder": False, **entries})  # a file that says nothing is a BERT's

    def __post_init__(self):
        super().__post_init__()
        if self.attention_probs_dropout_prob:
            raise ValueError("the causal twin has no dropout in attention: attention_probs_dropout_prob has to be 0")

    def encoder_class(self):
        return Gpt


CONFIGS: dict[Twin, type[BertConfig]] = {"bert": BertConfig, "gpt": GptConfig}


def open_twin(name: Twin, folder: Path = HERE) -> MaskedLM:
    """A trained twin in eval mode: `MaskedLM`, whose head names the hidden piece (bert) or the next one (gpt).

    Raises ValueError if the files in `folder` are not those of this twin.
    """
    entries = json.loads((folder / name / "config.json").read_text(encoding="utf-8"))
    model = MaskedLM(CONFIGS[name].from_hf(entries))
    load_weights(model, folder / name / "model.safetensors")
    return model.eval()
