"""BERT, from token ids to vectors (Devlin et al. 2019, section 3).

Bare parameters and functions: every product, sum and normalisation stands here to be read. Shapes use the
letters listed in `config.py`; sections are those of Devlin et al. unless Vaswani et al. 2017 is named.

Reading order: `Embeddings`, `Layer`, then `Bert.stream`, which is the whole forward pass. `Bert.forward` is
the door for padded batches: it checks, drops the padding, calls `stream` and pads the result again.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .attention import multi_head_attention
from .config import GELU_KIND, LAYER_NORM_EPS, BertConfig
from .stream import Stream, pack, stream_attention, unpack


def parameter(*shape: int) -> nn.Parameter:
    """Of this shape, to be filled by `Module.initialise` or from a checkpoint."""
    return nn.Parameter(torch.empty(shape))


def layer_norm(x: Tensor, weight: Tensor, bias: Tensor, eps: float = LAYER_NORM_EPS) -> Tensor:
    """(…, D): each token's features to mean 0 and variance 1, then scaled and shifted (Ba et al. 2016)."""
    return F.layer_norm(x, weight.shape, weight, bias, eps)


def dropout(x: Tensor, p: float, training: bool) -> Tensor:
    """Each number is 0 with probability p, else divided by 1 - p (Srivastava et al. 2014).

    F.dropout, except in a compiled training step on a GPU. There F.dropout's generator (Philox, ten rounds a
    number, forward and again backward) costs up to a tenth of the step; a hash of a random seed and the place,
    with two multiplications (MurmurHash3's last step), does as well here. Measured in benchmarks/LOG.md.
    """
    if not (training and p < 1.0 and x.is_cuda and torch.compiler.is_compiling()):
        return F.dropout(x, p, training)
    place = torch.arange(x.numel(), dtype=torch.int32, device=x.device).view(x.shape)
    seed = torch.randint(-(2**31), 2**31, (1,), dtype=torch.int32, device=x.device)
    h = (place ^ seed) * -1640531535
    h = (h ^ (h >> 16 & 0xFFFF)) * -2048144789  # int32 wraps around; & makes the shift a logical one
    h = (h ^ (h >> 13 & 0x7FFFF)) * -1028477387
    h = h ^ (h >> 16 & 0xFFFF)  # uniform over all of int32
    return torch.where(h >= int(p * 2**32) - 2**31, x / (1 - p), 0.0)


@torch.no_grad()
def initialise_parameter(name: str, parameter: Tensor, std: float) -> None:
    """Fresh values: a normal distribution cut at two standard deviations for matrices, as in Google's code.

    Biases start at 0, LayerNorm's scales at 1. The cut has to be given: `trunc_normal_` alone cuts at an
    absolute ±2, which is a hundred standard deviations here.
    """
    if parameter.ndim > 1:
        nn.init.trunc_normal_(parameter, std=std, a=-2 * std, b=2 * std)
    else:
        parameter.fill_(1.0 if name.endswith("norm_weight") else 0.0)


class Module(nn.Module):
    """What `Bert` and every model in `heads.py` share: fresh weights, and weights from and to a folder."""

    hf_name: str  # the class of transformers that reads our checkpoint as the same model

    def __init__(self, config: BertConfig):
        super().__init__()
        self.config = config

    def initialise(self) -> None:
        for name, parameter in self.named_parameters():
            if not name.startswith("bert."):  # the encoder inside a head has seen to itself
                initialise_parameter(name, parameter, self.config.initializer_range)

    @classmethod
    def from_pretrained(cls, folder_or_id, **changes) -> "Module":
        """The model with the weights in a folder or a hub repository, in eval mode.

        `changes` replace entries of the configuration (`labels=("no", "yes")`, `hidden_dropout_prob=0.0`).
        What was not in the file and starts fresh is printed, and kept with the unused names in `.loaded`.
        Raises ValueError or FileNotFoundError saying what is wrong with the checkpoint.
        """
        from .checkpoint import from_pretrained

        return from_pretrained(cls, folder_or_id, **changes)

    def save_pretrained(self, folder) -> None:
        """Write `config.json` and `model.safetensors`, which `transformers` opens as `hf_name`."""
        from .checkpoint import save_pretrained

        save_pretrained(self, folder)


class Embeddings(nn.Module):
    """The sum of what the token is, which segment it is in and where it stands (section 3, figure 2)."""

    def __init__(self, config: BertConfig):
        super().__init__()
        width = config.embedding_size  # D, but for ALBERT
        self.dropout_p, self.eps = config.hidden_dropout_prob, config.layer_norm_eps
        self.word = parameter(config.vocab_size, width)
        self.position = parameter(config.max_position_embeddings, width)
        self.segment = parameter(config.type_vocab_size, width)
        self.norm_weight = parameter(width)
        self.norm_bias = parameter(width)

    def forward(self, input_ids: Tensor, token_type_ids: Tensor, position_ids: Tensor) -> Tensor:
        """Three tensors of whole numbers of one shape (…) -> (…, D)."""
        x = (
            F.embedding(input_ids, self.word)
            + F.embedding(token_type_ids, self.segment)
            + F.embedding(position_ids, self.position)
        )
        return self.normalise(x)

    def normalise(self, x: Tensor) -> Tensor:
        return dropout(layer_norm(x, self.norm_weight, self.norm_bias, self.eps), self.dropout_p, self.training)


class Layer(nn.Module):
    """One Transformer encoder layer: attention, then feed-forward, each followed by residual and LayerNorm.

    Vaswani et al., sections 3.1 to 3.3. LayerNorm comes after the sum ("post-LN"), dropout before it, on
    what the sub-layer gives (Vaswani et al., 5.4).
    """

    def __init__(self, config: BertConfig):
        super().__init__()
        width, inner = config.hidden_size, config.intermediate_size
        self.num_heads = config.num_attention_heads
        self.gelu_kind = GELU_KIND[config.hidden_act]
        self.dropout_p, self.eps = config.hidden_dropout_prob, config.layer_norm_eps
        self.attention_dropout_p = config.attention_probs_dropout_prob
        self.qkv_weight = parameter(3 * width, width)  # query, key, value below one another: one product
        self.qkv_bias = parameter(3 * width)
        self.attention_weight = parameter(width, width)  # mixes what the heads found
        self.attention_bias = parameter(width)
        self.attention_norm_weight = parameter(width)
        self.attention_norm_bias = parameter(width)
        self.up_weight = parameter(inner, width)
        self.up_bias = parameter(inner)
        self.down_weight = parameter(width, inner)
        self.down_bias = parameter(width)
        self.norm_weight = parameter(width)
        self.norm_bias = parameter(width)

    def forward(self, x: Tensor, cu_seqlens: Tensor, max_seqlen: int) -> Tensor:
        """The stream (N, D) -> (N, D)."""
        qkv = F.linear(x, self.qkv_weight, self.qkv_bias)  # (N, 3D)
        query, key, value = qkv.unflatten(1, (3, self.num_heads, -1)).unbind(1)  # each (N, H, d)
        dropout_p = self.attention_dropout_p if self.training else 0.0
        context = stream_attention(query, key, value, cu_seqlens, max_seqlen, dropout_p)  # (N, H, d)
        attended = F.linear(context.flatten(1), self.attention_weight, self.attention_bias)
        return self.after_attention(x, attended)

    def by_definition(self, x: Tensor, attention_mask: Tensor) -> tuple[Tensor, Tensor]:
        """The same by the text of `attention.py`: (B, S, D) -> (B, S, D) and weights (B, H, S, S)."""
        weights = (self.qkv_weight, self.qkv_bias, self.attention_weight, self.attention_bias)
        rates = (self.attention_dropout_p, self.training)
        attended, weights = multi_head_attention(x, *weights, self.num_heads, attention_mask, *rates)
        return self.after_attention(x, attended), weights

    def after_attention(self, x: Tensor, attended: Tensor) -> Tensor:
        """Add & Norm, feed-forward, Add & Norm, token by token: any (…, D) (Vaswani et al., figure 1)."""
        attended = dropout(attended, self.dropout_p, self.training)
        x = layer_norm(x + attended, self.attention_norm_weight, self.attention_norm_bias, self.eps)
        inner = self.down(F.linear(x, self.up_weight, self.up_bias))
        inner = dropout(inner, self.dropout_p, self.training)
        return layer_norm(x + inner, self.norm_weight, self.norm_bias, self.eps)

    def down(self, inner: Tensor) -> Tensor:
        """GELU (A.2), then back to the width of the model: (…, F) -> (…, D)."""
        return F.linear(F.gelu(inner, approximate=self.gelu_kind), self.down_weight, self.down_bias)


class Pooler(nn.Module):
    """One vector for a whole sequence: the final vector of [CLS], one dense layer, tanh.

    "C" in section 3 and figure 1; that a dense layer and a tanh belong to it only the released code says.
    """

    activation = staticmethod(torch.tanh)

    def __init__(self, config: BertConfig):
        super().__init__()
        self.weight = parameter(config.hidden_size, config.hidden_size)
        self.bias = parameter(config.hidden_size)

    def forward(self, x: Tensor, cu_seqlens: Tensor) -> Tensor:
        """The stream (N, D) -> (B, D), from the first token of each sequence.

        For an empty sequence (they fill up a batch of fixed shape) the row means nothing; ignore it.
        """
        first = cu_seqlens[:-1].clamp(max=len(x) - 1)
        return self.activation(F.linear(x[first], self.weight, self.bias))


@dataclass
class BertOutput:
    """Padded results. Rows of padding are 0; attention weights are given as they are, before dropout."""

    last_hidden_state: Tensor  # (B, S, D)
    pooler_output: Tensor | None  # (B, D); None for a model without pooler
    hidden_states: tuple[Tensor, ...] | None  # L + 1 of (B, S, D): after the embeddings, after each layer
    attentions: tuple[Tensor, ...] | None  # L of (B, H, S, S)


class Bert(Module):
    """The encoder. `Bert(config)` has fresh weights and trains; `Bert.from_pretrained(…)` has learned ones.

    `pooler=False` leaves the pooler out, for models that never read it. The three classes named first and the
    methods `positions` and `depth` are what `variants.py` replaces.
    """

    hf_name = "BertModel"
    embeddings_class, layer_class, pooler_class = Embeddings, Layer, Pooler

    def __init__(self, config: BertConfig, pooler: bool = True):
        super().__init__(config)
        if not isinstance(self, config.encoder_class()):
            raise ValueError(f"{type(config).__name__} describes another model: {config.encoder_class().__name__}(…)")
        self.embeddings = self.embeddings_class(config)
        self.layers = nn.ModuleList(self.layer_class(config) for _ in range(config.num_stored_layers))
        self.pooler = self.pooler_class(config) if pooler else None
        self.initialise()

    def positions(self, input_ids: Tensor) -> Tensor:
        """(B, S) -> (B, S), the row of the position table for each token: its column, also when padding comes first."""
        return torch.arange(input_ids.shape[1], device=input_ids.device).expand_as(input_ids)

    def depth(self) -> Iterable[nn.Module]:
        """The L layers in the order in which they are run."""
        return self.layers

    def stream(
        self,
        *,
        input_ids: Tensor,
        token_type_ids: Tensor,
        position_ids: Tensor,
        cu_seqlens: Tensor,
        max_seqlen: int,
        states: list[Tensor] | None = None,
    ) -> Tensor:
        """The model itself, on tokens laid end to end (see `stream.py`): ids (N,) -> vectors (N, D).

        Compiles as one piece. Nothing is checked here, since a check would have to wait for the device.
        `states` collects the L + 1 hidden states when a list is given.
        """
        x = self.embeddings(input_ids, token_type_ids, position_ids)  # (N, D)
        if states is not None:
            states.append(x)
        for layer in self.depth():
            x = layer(x, cu_seqlens, max_seqlen)
            if states is not None:
                states.append(x)
        return x

    def pack(
        self, input_ids: Tensor, token_type_ids: Tensor | None = None, attention_mask: Tensor | None = None
    ) -> tuple[Stream, Tensor]:
        """Check a padded batch (B, S) and drop its padding -> the stream and each token's place in B * S.

        Raises ValueError, saying what to do, for what `check_batch` lists.
        """
        if not torch.compiler.is_compiling():
            check_batch(self.config, self.embeddings.word.device, input_ids, token_type_ids, attention_mask)
        token_type_ids = torch.zeros_like(input_ids) if token_type_ids is None else token_type_ids
        attention_mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        return pack(input_ids, token_type_ids, self.positions(input_ids), attention_mask)

    def forward(
        self,
        *,
        input_ids: Tensor,
        token_type_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        output_attentions: bool = False,
        output_hidden_states: bool = False,
    ) -> BertOutput:
        """Padded batch in, padded results out. All of shape (B, S), keywords only.

        input_ids: numbers of word pieces. token_type_ids: 0 in the first segment, 1 in the second; all 0 when
        absent. attention_mask: 1 for real tokens, 0 for padding; all 1 when absent. Asking for attentions
        takes the slower path that writes every weight out. Raises ValueError as `check_batch` says.
        """
        batch, length = input_ids.shape if input_ids.ndim == 2 else (0, 0)  # `pack` rejects other shapes
        stream, where = self.pack(input_ids, token_type_ids, attention_mask)
        states, weights = ([] if output_hidden_states else None), None
        if output_attentions:
            all_states, weights = self.by_definition(input_ids, token_type_ids, attention_mask)
            all_states = [x.flatten(0, 1)[where] for x in all_states]
            x, states = all_states[-1], (all_states if output_hidden_states else None)
        else:
            x = self.stream(**stream._asdict(), states=states)
        pooled = None if self.pooler is None else self.pooler(x, stream.cu_seqlens)
        states = None if states is None else tuple(unpack(state, where, batch, length) for state in states)
        return BertOutput(unpack(x, where, batch, length), pooled, states, weights)

    def by_definition(
        self, input_ids: Tensor, token_type_ids: Tensor | None, attention_mask: Tensor | None
    ) -> tuple[list[Tensor], tuple[Tensor, ...]]:
        """With padding kept and attention as in `attention.py`: L + 1 states (B, S, D), L weights."""
        token_type_ids = torch.zeros_like(input_ids) if token_type_ids is None else token_type_ids
        states, weights = [self.embeddings(input_ids, token_type_ids, self.positions(input_ids))], []
        for layer in self.depth():
            x, weight = layer.by_definition(states[-1], attention_mask)
            states.append(x)
            weights.append(weight)
        return states, tuple(weights)


def check_batch(
    config: BertConfig,
    device: torch.device,
    input_ids: Tensor,
    token_type_ids: Tensor | None,
    attention_mask: Tensor | None,
) -> None:
    """Raise ValueError for a batch the model cannot mean anything by, and say what to do about it.

    On a GPU the same mistakes would surface later, as a device-side assert, or never.
    """
    if input_ids.ndim != 2 or input_ids.numel() == 0:
        raise ValueError(
            f"input_ids has shape {tuple(input_ids.shape)}; it has to be (batch, tokens) with at least one "
            "sequence and one token. For a single sequence add the first axis: input_ids[None]"
        )
    positions = config.max_position_embeddings - config.first_position
    if input_ids.shape[1] > positions:
        raise ValueError(
            f"{input_ids.shape[1]} tokens a sequence, but this model has {positions} "
            "position vectors: truncate, or cut the text into windows (bert_minimal/windows.py)"
        )
    for name, x, meaning, limit in (
        ("input_ids", input_ids, "the vocabulary has", config.vocab_size),
        ("token_type_ids", token_type_ids, "the segments are", config.type_vocab_size),
        ("attention_mask", attention_mask, "1 = real and 0 = padding are", 2),
    ):
        if x is None:
            continue
        if x.shape != input_ids.shape:
            raise ValueError(f"{name} has shape {tuple(x.shape)}; it needs input_ids' {tuple(input_ids.shape)}")
        if x.device != device:
            raise ValueError(f"{name} is on {x.device}, the model on {device}: move it with .to({str(device)!r})")
        if name != "attention_mask" and x.dtype not in (torch.int64, torch.int32):
            raise ValueError(f"{name} is {x.dtype}; ids are whole numbers: call .long() on them")
        low, high = x.min().item(), x.max().item()
        if low < 0 or high >= limit:
            raise ValueError(
                f"{name} runs from {low} to {high}, but {meaning} {limit} values, 0 to {limit - 1}"
                + ("; is the tokenizer the one of this model?" if name == "input_ids" else "")
            )
    if attention_mask is not None and (attention_mask.sum(dim=1) == 0).any():
        rows = (attention_mask.sum(dim=1) == 0).nonzero().flatten().tolist()
        raise ValueError(f"rows {rows} of attention_mask are all padding: leave those rows out of the batch")
