"""The debugger finds planted divergences, places them in the right step and says how the numbers differ."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from bert_minimal import Bert
from coursework.debugger import first_difference

B, S, D, H, LAYERS = 2, 7, 24, 3, 3
INPUTS = {
    "input_ids": torch.arange(B * S).view(B, S) * 3 % 47 + 2,
    "token_type_ids": torch.tensor([[0, 0, 0, 1, 1, 1, 1], [0, 0, 1, 1, 1, 0, 0]]),
    "attention_mask": torch.tensor([[1] * 7, [1] * 5 + [0] * 2]),
}


@pytest.fixture(scope="module")
def library():
    """A BertModel of transformers in which no weight is 0 and no γ is 1, in float64, every step written out."""
    from transformers import BertConfig, BertModel

    sizes = dict(hidden_size=D, num_hidden_layers=LAYERS, num_attention_heads=H, intermediate_size=40)
    config = BertConfig(vocab_size=50, max_position_embeddings=16, attn_implementation="eager", **sizes)
    model = BertModel(config).double().eval()
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
            parameter.copy_((noise * 0.4 + ("LayerNorm.weight" in name)).float())  # as a file keeps them
    return model


@pytest.fixture(scope="module")
def ours(library, tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    library.save_pretrained(folder)
    return Bert.from_pretrained(folder).double()


def student(weights: dict, flaw: str = "", at: int = 1, fused: bool = False):
    """A BERT as a function over a dictionary of weights, with one flaw in layer `at` (or where it can only be)."""

    def linear(x, name):
        w, b = weights[f"{name}.weight"], weights[f"{name}.bias"]
        if flaw == "bias missing" and name == f"encoder.layer.{at}.attention.self.query":
            return x @ w.T
        if flaw == "weight transposed" and name == f"encoder.layer.{at}.attention.output.dense":
            return x @ w + b
        return x @ w.T + b

    def norm(x, name):
        w, b = weights[f"{name}.LayerNorm.weight"], weights[f"{name}.LayerNorm.bias"]
        mean, var = x.mean(-1, keepdim=True), x.var(-1, keepdim=True, unbiased=flaw == "unbiased variance")
        eps = 1e-5 if flaw == "eps" else 1e-12
        if flaw == "beta missing" and name == f"encoder.layer.{at}.output":
            b = 0.0
        return (x - mean) / (var + eps).sqrt() * w + b

    def attention(x, mask, name, here):
        q, k, v = (linear(x, f"{name}.self.{kind}") for kind in ("query", "key", "value"))

        def split(y):
            if here and flaw == "heads split by view":
                return y.reshape(B, H, S, D // H)
            if here and flaw == "heads interleaved":
                return y.reshape(B, S, D // H, H).permute(0, 3, 1, 2)
            return y.view(B, S, H, D // H).transpose(1, 2)

        q, k, v = split(q), split(k), split(v)
        bias = (1 - mask[:, None, None, :].double()) * -1e9
        if here and flaw == "mask forgotten":
            bias = 0 * bias
        scale = {"not scaled": 1.0, "scaled by √D": math.sqrt(D), "scaled by d": D / H}.get(flaw if here else "")
        scale = scale or math.sqrt(D / H)
        if fused:
            context = F.scaled_dot_product_attention(q, k, v, attn_mask=bias, scale=1 / scale)
        else:
            scores = q @ k.transpose(2, 3) / scale + bias
            if here and flaw == "causal":
                scores = scores.masked_fill(torch.ones(S, S).triu(1).bool(), -1e9)
            context = scores.softmax(-2 if here and flaw == "softmax over queries" else -1) @ v
        if here and flaw == "heads merged by view":
            context = context.reshape(B, S, D)
        else:
            context = context.transpose(1, 2).reshape(B, S, D)
        return context if here and flaw == "no output projection" else linear(context, f"{name}.output.dense")

    def layer(x, mask, number):
        here, name = number == at, f"encoder.layer.{0 if flaw == 'one layer for all' else number}"
        attended = attention(x, mask, f"{name}.attention", here)
        x = norm(attended if here and flaw == "residual missing" else x + attended, f"{name}.attention.output")
        inner = linear(x, f"{name}.intermediate.dense")
        kind = flaw if here else ""
        inner = F.relu(inner) if kind == "relu" else F.gelu(inner, approximate="tanh" if kind == "tanh" else "none")
        if here and flaw == "dropout on":
            inner = F.dropout(inner, 0.1)
        return norm(x + linear(inner, f"{name}.output.dense"), f"{name}.output")

    def model(input_ids, token_type_ids, attention_mask):
        position = torch.arange(S) + (flaw == "positions from 1")
        x = weights["embeddings.word_embeddings.weight"][input_ids]
        x = x + weights["embeddings.position_embeddings.weight"][position]
        if flaw != "no segments":
            x = x + weights["embeddings.token_type_embeddings.weight"][token_type_ids]
        x = norm(x, "embeddings")
        for number in range(LAYERS - (flaw == "a layer too few")):
            x = layer(x, attention_mask, number)
        if flaw == "scaled output":
            return 2.5 * x
        first = x[:, -1] if flaw == "pools the last token" else x.mean(1) if flaw == "pools the mean" else x[:, 0]
        pooled = linear(first, "pooler.dense")
        return x, pooled if flaw == "pooler without tanh" else pooled.tanh()

    return model


# flaw -> (the library's step where it has to be found, words that have to be in the explanation)
FLAWS = {
    "bias missing": ("layer.1.attention.self.query (linear)", "bias is missing"),
    "weight transposed": ("layer.1.attention.output.dense (linear)", "transposed"),
    "unbiased variance": ("embeddings.LayerNorm (layer_norm)", "n − 1"),
    "eps": ("embeddings.LayerNorm (layer_norm)", "eps 1e-05 instead of 1e-12"),
    "beta missing": ("layer.1.output.LayerNorm (layer_norm)", "without β"),
    "heads split by view": ("layer.1.attention.self (transpose)", "mixed"),
    "heads interleaved": ("layer.1.attention.self (view)", "dealt out"),
    "mask forgotten": ("layer.1.attention.self (add)", "mask"),
    "not scaled": ("layer.1.attention.self (mul)", "not scaled"),
    "scaled by √D": ("layer.1.attention.self (mul)", "√D"),
    "scaled by d": ("layer.1.attention.self (mul)", "1/d"),
    "causal": ("layer.1.attention.self (softmax)", "causal"),
    "softmax over queries": ("layer.1.attention.self (softmax)", "softmax over axis 2"),
    "heads merged by view": ("layer.1.attention.self (transpose)", "mixed"),
    "no output projection": ("layer.1.attention.output.dense (linear)", "left out"),
    "one layer for all": ("layer.1.attention.self.query (linear)", "weights of encoder.layer.0.attention.self.query"),
    "residual missing": ("layer.1.attention.output (add)", "missing"),
    "relu": ("layer.1.intermediate", "ReLU"),
    "tanh": ("layer.1.intermediate", "tanh approximation"),
    "positions from 1": ("embeddings.position_embeddings (embedding)", "from 1"),
    "no segments": ("embeddings.token_type_embeddings (embedding)", "left out"),
    "a layer too few": ("layer.2.", "steps are missing"),
    "scaled output": ("layer.2.output.LayerNorm (layer_norm)", "2.5 times"),
    "pools the last token": ("pooler", "last token"),
    "pools the mean": ("pooler", "mean"),
    "pooler without tanh": ("pooler.activation (tanh)", "tanh is left out"),
}
NOT_FUSED = {"causal", "softmax over queries"}


def test_equal_models_are_equal(library, ours):
    assert not first_difference(ours, library, INPUTS)
    assert not first_difference(library, ours, INPUTS)
    for fused in (False, True):
        right = student(library.state_dict(), fused=fused)
        for reference in (library, ours):
            answer = first_difference(right, reference, INPUTS)
            assert not answer, str(answer)
            assert str(answer).startswith("✓ equal: 2 outputs to ")


@pytest.mark.parametrize("fused", [False, pytest.param(True, marks=pytest.mark.long)], ids=["written out", "fused"])
@pytest.mark.parametrize("flaw", FLAWS)
def test_planted_flaws_are_placed_and_explained(flaw, fused, library):
    if fused and flaw in NOT_FUSED:
        return  # the fused kernel cannot be wrong in this way
    answer = first_difference(student(library.state_dict(), flaw, fused=fused), library, INPUTS)
    step, words = FLAWS[flaw]
    assert step in answer.step, str(answer)
    assert words in answer.kind, str(answer)


def test_dropout_is_found_in_either_mode(library, ours):
    answer = first_difference(student(library.state_dict(), "dropout on"), library, INPUTS)
    assert "dropout is on outside of training mode" in answer.kind
    assert "F.dropout(inner, 0.1)" in answer.your_line
    ours.train()
    try:
        assert "Call .eval()" in first_difference(ours, library, INPUTS).kind
        with pytest.raises(ValueError, match=r"the reference gives another answer each time: call \.eval\(\)"):
            first_difference(library, ours, INPUTS)
    finally:
        ours.eval()


def test_the_bias_of_the_keys_makes_no_difference(library):
    """It adds the same to all scores of a query, which softmax does not see: equal models, then."""
    weights = dict(library.state_dict())
    weights["encoder.layer.0.attention.self.key.bias"] = torch.zeros(D, dtype=torch.float64)
    assert not first_difference(student(weights), library, INPUTS)


def test_wrong_weights_in_our_own_model_are_found_from_either_side(library, ours):
    bias = ours.layers[2].qkv_bias
    right = bias.detach().clone()
    with torch.no_grad():
        bias[:D] = 0.0
    try:
        there, back = first_difference(ours, library, INPUTS), first_difference(library, ours, INPUTS)
    finally:
        with torch.no_grad():
            bias.copy_(right)
    assert (there.step, there.kind) == ("encoder.layer.2.attention.self.query (linear)", "the bias is missing")
    assert "layers.2" in back.step
    assert "the same vector is added to every row" in back.kind


class Torch(nn.Module):
    """The embeddings' sum through torch's own encoder layer: fused products, other names, other modules."""

    def __init__(self, library, norm_first):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(
            D, H, 40, 0.0, "gelu", layer_norm_eps=1e-12, batch_first=True, norm_first=norm_first, dtype=torch.float64
        ).eval()
        theirs = library.encoder.layer[0]
        qkv = [getattr(theirs.attention.self, name) for name in ("query", "key", "value")]
        with torch.no_grad():
            self.layer.self_attn.in_proj_weight.copy_(torch.cat([part.weight for part in qkv]))
            self.layer.self_attn.in_proj_bias.copy_(torch.cat([part.bias for part in qkv]))
            for mine, its in (
                (self.layer.self_attn.out_proj, theirs.attention.output.dense),
                (self.layer.norm1, theirs.attention.output.LayerNorm),
                (self.layer.linear1, theirs.intermediate.dense),
                (self.layer.linear2, theirs.output.dense),
                (self.layer.norm2, theirs.output.LayerNorm),
            ):
                mine.load_state_dict(its.state_dict())

    def forward(self, x):
        return self.layer(x)


def test_a_module_of_another_make_on_vectors_instead_of_ids(library):
    x = torch.randn(B, S, D, dtype=torch.float64, generator=torch.Generator().manual_seed(1))

    def reference(x):
        given = library.encoder.layer[0](x)
        return given if isinstance(given, torch.Tensor) else given[0]  # a tuple before transformers 5

    assert not first_difference(Torch(library, norm_first=False), reference, x)
    answer = first_difference(Torch(library, norm_first=True), reference, (x,))
    assert answer.agrees == ""  # pre-LN: nothing after the input is the same
    assert "modeling_bert.py" in answer.reference_line


def test_masked_tokens_and_shapes_are_told(library):
    answer = first_difference(student(library.state_dict(), "mask forgotten"), library, INPUTS)
    assert answer.tokens == "all in the sequences that have padding, none in the others"
    assert answer.your_line
    answer = first_difference(lambda **inputs: torch.zeros(B, S, D + 1), library, INPUTS)
    assert answer.kind.startswith(f"shape: your model returns [({B}, {S}, {D + 1})]")
    with pytest.raises(ValueError, match=r"has to be \(batch, tokens, …\)"):
        first_difference(torch.sin, torch.sin, torch.zeros(3))


def test_comparing_changes_nothing(library):
    """No hooks left behind, no random number taken, the same weights and mode."""
    state, before = torch.get_rng_state(), library.embeddings.word_embeddings.weight.clone()
    first_difference(student(library.state_dict()), library, INPUTS)
    assert torch.equal(state, torch.get_rng_state())
    assert torch.equal(before, library.embeddings.word_embeddings.weight)
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in library.modules())
