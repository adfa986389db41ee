"""The encoder against transformers' BertModel, and against itself under padding, batching and order."""

import itertools
from dataclasses import replace

import pytest
import torch
import transformers
from torch import nn

from bert_minimal import Bert, BertConfig
from bert_minimal.model import Layer

from .parity import CONFIG, assert_close, assert_gradients_close, batch, make_loud, transformers_twin


@pytest.mark.parametrize("definition", [False, True], ids=["stream", "definition"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("act", ["gelu", "gelu_new"])
def test_equals_transformers_in_value_and_gradient(dtype, definition, act):
    config = replace(CONFIG, hidden_act=act)
    model = make_loud(Bert(config).to(dtype)).eval()
    twin, inputs = transformers_twin(model), batch()
    ours = model(**inputs, output_attentions=definition, output_hidden_states=True)
    theirs = twin(**inputs, output_attentions=True, output_hidden_states=True)
    real = inputs["attention_mask"].bool()
    assert len(ours.hidden_states) == config.num_hidden_layers + 1
    for i, (a, b) in enumerate(zip(ours.hidden_states, theirs.hidden_states, strict=True)):
        assert_close(a[real], b[real], name=f"hidden state {i}")
        assert (a[~real] == 0).all()
    assert ours.last_hidden_state.equal(ours.hidden_states[-1])
    assert_close(ours.pooler_output, theirs.pooler_output, name="pooler")
    if definition:
        for a, b in zip(ours.attentions, theirs.attentions, strict=True):
            assert_close(a.transpose(1, 2)[real], b.transpose(1, 2)[real], name="attention")
    else:
        assert ours.attentions is None
    cotangents = [torch.randn(x.shape, generator=torch.Generator().manual_seed(5)) for x in ours.hidden_states]
    for out in (ours, theirs):
        total = (out.pooler_output * cotangents[0][:, 0].to(dtype)).sum()
        for state, cotangent in zip(out.hidden_states, cotangents, strict=True):
            total = total + (state[real] * cotangent[real].to(dtype)).sum()
        total.backward()
    assert_gradients_close(model, twin)


@pytest.mark.parametrize("definition", [False, True], ids=["stream", "definition"])
def test_ragged_batch_equals_one_by_one(definition):
    model, inputs = make_loud(Bert(CONFIG).double()).eval(), batch((7, 1, 9, 9, 4))
    together = model(**inputs, output_attentions=definition)
    for row, length in enumerate((7, 1, 9, 9, 4)):
        alone = {name: x[row : row + 1, :length] for name, x in inputs.items() if name != "attention_mask"}
        single = model(**alone, output_attentions=definition)
        assert_close(together.last_hidden_state[row, :length], single.last_hidden_state[0], 1e-12)
        assert_close(together.pooler_output[row], single.pooler_output[0], 1e-12)


@pytest.mark.parametrize("definition", [False, True], ids=["stream", "definition"])
def test_more_padding_other_padding_and_order_change_nothing(definition):
    model, inputs = make_loud(Bert(CONFIG).double()).eval(), batch()
    before = model(**inputs, output_attentions=definition).last_hidden_state
    wider = {name: nn.functional.pad(x, (0, 5), value=0) for name, x in inputs.items()}
    wider["input_ids"] = torch.where(wider["attention_mask"] == 1, wider["input_ids"], 60)
    after = model(**wider, output_attentions=definition).last_hidden_state
    assert_close(after[:, :9], before, 1e-12)
    assert (after[:, 9:] == 0).all()
    order = [2, 0, 1]
    shuffled = model(**{name: x[order] for name, x in inputs.items()}, output_attentions=definition)
    assert_close(shuffled.last_hidden_state, before[order], 1e-12)


def test_padding_on_the_left_keeps_the_columns_as_positions():
    model, inputs = make_loud(Bert(CONFIG).double()).eval(), batch()
    inputs["attention_mask"] = inputs["attention_mask"].flip(1)
    real = inputs["attention_mask"].bool()
    ours, theirs = model(**inputs), transformers_twin(model)(**inputs)
    assert_close(ours.last_hidden_state[real], theirs.last_hidden_state[real])
    assert_close(ours.last_hidden_state, model(**inputs, output_attentions=True).last_hidden_state, 1e-12)


def test_stream_of_fixed_shape():
    """A tail of padding as a sequence of its own, and empty sequences, leave the real rows as they are."""
    model, inputs = make_loud(Bert(CONFIG).double()).eval(), batch()
    stream, _ = model.pack(**inputs)
    expected, tokens = model.stream(**stream._asdict()), len(stream.input_ids)
    filled = {name: nn.functional.pad(getattr(stream, name), (0, 6)) for name in stream._fields[:3]}
    ends = torch.tensor([tokens + 6, tokens + 6, tokens + 6], dtype=torch.int32)
    cu_seqlens = torch.cat([stream.cu_seqlens, ends])
    x = model.stream(**filled, cu_seqlens=cu_seqlens, max_seqlen=stream.max_seqlen)
    assert_close(x[:tokens], expected, 1e-12)
    pooled = model.pooler(x, cu_seqlens)
    assert_close(pooled[:3], model.pooler(expected, stream.cu_seqlens), 1e-12)


def test_absent_mask_and_segments():
    model, inputs = make_loud(Bert(CONFIG).double()).eval(), batch((5, 5))
    ids = inputs["input_ids"]
    explicit = model(input_ids=ids, token_type_ids=ids * 0, attention_mask=torch.ones_like(ids).bool())
    assert model(input_ids=ids).last_hidden_state.equal(explicit.last_hidden_state)
    assert_close(model(input_ids=ids, output_attentions=True).last_hidden_state, explicit.last_hidden_state, 1e-12)


@pytest.mark.parametrize("definition", [False, True], ids=["stream", "definition"])
def test_dropout_places(definition):
    """With everything dropped, what is left tells where dropout sits; in eval mode nothing happens."""
    config = replace(CONFIG, hidden_dropout_prob=1.0, attention_probs_dropout_prob=0.0)
    model, inputs = make_loud(Bert(config).double()), batch()
    real = inputs["attention_mask"].bool()
    states = model(**inputs, output_hidden_states=True, output_attentions=definition).hidden_states
    assert (states[0] == 0).all()  # after the embeddings' LayerNorm
    for layer, before, after in zip(model.layers, states[:-1], states[1:], strict=True):  # both residuals survive
        norms = [
            (layer.attention_norm_weight, layer.attention_norm_bias),
            (layer.norm_weight, layer.norm_bias),
        ]
        x = before[real]
        for weight, bias in norms:
            x = nn.functional.layer_norm(x, weight.shape, weight, bias, 1e-12)
        assert_close(after[real], x, 1e-12)
    model.eval()
    plain = model(**inputs, output_attentions=definition).last_hidden_state
    assert plain.equal(model(**inputs, output_attentions=definition).last_hidden_state)
    assert_close(plain, make_loud(Bert(CONFIG).double()).eval()(**inputs).last_hidden_state, 1e-12)


def test_attention_dropout_leaves_the_output_bias():
    config = replace(CONFIG, hidden_dropout_prob=0.0, attention_probs_dropout_prob=1.0)
    layer, x = make_loud(Layer(config).double()), torch.randn(9, 24, dtype=torch.float64)
    expected = layer.after_attention(x, layer.attention_bias.expand(9, 24))
    assert_close(layer(x, torch.tensor([0, 4, 9]), 5), expected, 1e-12)
    assert_close(layer.by_definition(x[None], None)[0][0], expected, 1e-12)


def test_fresh_weights():
    torch.manual_seed(0)
    config = BertConfig.preset("tiny", initializer_range=0.05)
    for name, p in Bert(config).named_parameters():
        if p.ndim == 1:
            assert (p == (1 if name.endswith("norm_weight") else 0)).all(), name
        else:  # a normal cut at 2 σ keeps 0.88 of its standard deviation
            assert p.abs().max() <= 2 * 0.05 + 1e-6, name
            if p.numel() > 1000:
                assert abs(p.std() / (0.05 * 0.8796) - 1) < 0.03, name


def test_no_ready_made_layers():
    ready = (nn.Linear, nn.LayerNorm, nn.Embedding, nn.MultiheadAttention, nn.TransformerEncoderLayer)
    assert not [m for m in Bert(CONFIG).modules() if isinstance(m, ready)]


def test_inputs_stay_as_they_are():
    model, inputs = Bert(CONFIG), batch()
    before = {name: x.clone() for name, x in inputs.items()}
    model(**inputs, output_attentions=True)
    model(**inputs)
    assert all(inputs[name].equal(before[name]) for name in inputs)


IDS = batch()["input_ids"]
MASK = batch()["attention_mask"]


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        ({"input_ids": IDS + 60}, "vocabulary has 61 values"),
        ({"input_ids": IDS - 61}, "vocabulary has 61 values"),
        ({"input_ids": torch.zeros(1, 17, dtype=torch.long)}, "17 tokens a sequence.*truncate"),
        ({"input_ids": torch.zeros(2, 0, dtype=torch.long)}, "at least one"),
        ({"input_ids": torch.zeros(0, 3, dtype=torch.long)}, "at least one"),
        ({"input_ids": IDS[0]}, r"input_ids\[None\]"),
        ({"input_ids": IDS.float()}, r"call .long\(\)"),
        ({"input_ids": IDS, "attention_mask": MASK[:, :-1]}, r"attention_mask has shape \(3, 8\)"),
        ({"input_ids": IDS, "attention_mask": MASK[:, None, None]}, "attention_mask has shape"),
        ({"input_ids": IDS, "attention_mask": MASK * torch.tensor([[1], [0], [1]])}, r"rows \[1\]"),
        ({"input_ids": IDS, "attention_mask": (1 - MASK) * -1e4}, "attention_mask runs from -10000"),
        ({"input_ids": IDS, "token_type_ids": IDS * 0 + 2}, "token_type_ids runs from 2"),
        ({"input_ids": IDS, "token_type_ids": MASK[:1]}, "token_type_ids has shape"),
        ({"input_ids": IDS, "token_type_ids": MASK.bool()}, "whole numbers"),
        ({"input_ids": IDS, "attention_mask": MASK.to("meta")}, "on meta, the model on cpu"),
        ({"input_ids": IDS.to("meta")}, "on meta, the model on cpu"),
    ],
)
def test_bad_input_is_refused_with_advice(inputs, words):
    with pytest.raises(ValueError, match=words):
        Bert(CONFIG)(**inputs)


def test_positional_calls_are_refused():
    """transformers #1790: mask and segments swapped in a positional call, unnoticed."""
    with pytest.raises(TypeError):
        Bert(CONFIG)(IDS, MASK)


@pytest.mark.long
def test_stream_compiles_as_one_piece():
    model, inputs = make_loud(Bert(CONFIG)).eval(), batch()
    stream, _ = model.pack(**inputs)
    compiled = torch.compile(model.stream, fullgraph=True)
    assert_close(compiled(**stream._asdict()), model.stream(**stream._asdict()))


@pytest.mark.long
def test_padded_door_may_be_compiled_too():
    """The packing runs eagerly, the rest compiled; other lengths give other shapes and still the right numbers."""
    model = make_loud(Bert(CONFIG)).eval()
    compiled = torch.compile(model)
    with torch.no_grad():
        for lengths in ((7, 4, 9), (3, 5, 2)):
            inputs = batch(lengths)
            assert_close(compiled(**inputs).last_hidden_state, model(**inputs).last_hidden_state)


def test_real_weights_equal_transformers(minilm):
    """MiniLM-L6, 22.7 million parameters that somebody trained."""
    model = Bert.from_pretrained(minilm)
    twin = transformers.BertModel.from_pretrained(minilm, attn_implementation="eager").eval()
    assert sum(p.numel() for p in model.parameters()) == 22_713_216
    inputs = batch((17, 5, 30), config=model.config)
    real = inputs["attention_mask"].bool()
    for dtype in (torch.float32, torch.float64):
        model, twin = model.to(dtype), twin.to(dtype)
        for m in (model, twin):
            m.zero_grad()
        ours = model(**inputs, output_hidden_states=True)
        theirs = twin(**inputs, output_hidden_states=True)
        for i, (a, b) in enumerate(zip(ours.hidden_states, theirs.hidden_states, strict=True)):
            assert_close(a[real], b[real], name=f"hidden state {i}")
        assert_close(ours.pooler_output, theirs.pooler_output, name="pooler")
        cotangent = torch.randn(real.sum(), 384, generator=torch.Generator().manual_seed(1)).to(dtype)
        for out in (ours, theirs):
            ((out.last_hidden_state[real] * cotangent).sum() + out.pooler_output.sum()).backward()
        assert_gradients_close(model, twin)


on_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")


@on_gpu
@pytest.mark.parametrize("name", ["base", "large"])
def test_published_sizes_train_in_bf16_on_a_gpu(name):
    """Forward and backward, near the same model in float32: every gradient arrives and is finite."""
    torch.manual_seed(0)
    config = BertConfig.preset(name, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    model = Bert(config).cuda()
    inputs = {key: x.cuda() for key, x in batch((128, 5, 77), config=config).items()}
    with torch.no_grad():
        exact = model(**inputs).last_hidden_state
    model = model.bfloat16()
    out = model(**inputs)
    assert out.last_hidden_state.dtype == torch.bfloat16
    off = (out.last_hidden_state - exact).norm() / exact.norm()
    assert off < 0.03, f"bf16 is {off:.1%} away from float32"
    (out.last_hidden_state.float().square().mean() + out.pooler_output.float().sum()).backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


@on_gpu
@pytest.mark.parametrize("dropout", [0.0, 0.1])
def test_streams_of_one_shape_compile_once(dropout):
    """Other lengths in the same fixed shape: no graph break, no recompilation, the eager numbers."""
    config = replace(BertConfig.preset("tiny"), attention_probs_dropout_prob=dropout, hidden_dropout_prob=0.0)
    model = Bert(config).cuda().bfloat16().train(dropout > 0)
    ids = torch.randint(1, config.vocab_size, (256,), device="cuda")
    torch._dynamo.reset()  # forget what other tests compiled
    compiled = torch.compile(model.stream, fullgraph=True, dynamic=False)
    with torch._dynamo.config.patch(error_on_recompile=True):
        for ends in (
            [0, 64, 100, 164, 200, 256, 256],
            [0, 10, 20, 70, 130, 192, 256],
            [0, 64, 128, 192, 256, 256, 256],
        ):
            cu_seqlens = torch.tensor(ends, dtype=torch.int32, device="cuda")
            positions = torch.cat([torch.arange(b - a) for a, b in itertools.pairwise(ends)]).cuda()
            stream = dict(input_ids=ids, token_type_ids=ids * 0, position_ids=positions, cu_seqlens=cu_seqlens)
            out = compiled(**stream, max_seqlen=64)
            out.float().square().mean().backward()
            assert out.isfinite().all()
            if dropout == 0:
                assert_close(out.float(), model.stream(**stream, max_seqlen=64).float(), 0.03)
    assert all(p.grad.isfinite().all() for n, p in model.named_parameters() if not n.startswith("pooler"))


@on_gpu
def test_ids_left_on_the_cpu_are_refused():
    with pytest.raises(ValueError, match=r"input_ids is on cpu, the model on cuda:0: move it with .to\('cuda:0'\)"):
        Bert(CONFIG).cuda()(input_ids=IDS)
