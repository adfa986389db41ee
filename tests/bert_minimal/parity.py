"""A tiny BERT with loud weights, its twin in transformers, and what "equal" means: used by several tests.

Tolerances are relative to the largest value of each tensor: 1e-9 in float64, 1e-5 in float32. Weights are
loud, biases and LayerNorm parameters far from 0 and 1: with the usual small ones half of all mistakes hide.
"""

import copy

import torch
import transformers

from bert_minimal import BertConfig
from bert_minimal.checkpoint import state_for_file

CONFIG = BertConfig(
    vocab_size=61,
    hidden_size=24,
    num_hidden_layers=3,
    num_attention_heads=3,
    intermediate_size=40,
    max_position_embeddings=16,
    type_vocab_size=2,
)
TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-5}


def make_loud(model, seed=0):
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in model.named_parameters():
        noise = torch.randn(parameter.shape, generator=generator, dtype=torch.float64) * 0.4
        parameter.data = (noise + name.endswith("norm_weight")).to(parameter.dtype)
    return model


def batch(lengths=(7, 4, 9), seed=0, config=CONFIG):
    generator = torch.Generator().manual_seed(seed)
    shape = len(lengths), max(lengths)
    return {
        # from 1: transformers gives row 0, [PAD], no gradient even where it is read as a real token
        "input_ids": torch.randint(1, config.vocab_size, shape, generator=generator),
        "token_type_ids": torch.randint(0, 2, shape, generator=generator),
        "attention_mask": (torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]).long(),
    }


def transformers_twin(model, hf_class=transformers.BertModel, attention="eager", **entries):
    """The same model as transformers has it, strictly the same tensors."""
    hf_config = transformers.BertConfig(**model.config.to_hf(), **entries, attn_implementation=attention)
    twin = hf_class(hf_config).to(next(model.parameters()).dtype)
    missing, unexpected = twin.load_state_dict(state_for_file(model), strict=False)
    assert not unexpected
    assert set(missing) <= {"cls.predictions.decoder.weight", "cls.predictions.decoder.bias"}  # tied: twins
    twin.tie_weights()
    return twin.train(model.training)


def assert_close(ours, theirs, tolerance=None, name=""):
    tolerance = TOLERANCE[ours.dtype] if tolerance is None else tolerance
    assert ours.shape == theirs.shape, name
    off, largest = (ours - theirs).abs().max().item(), theirs.abs().max().item()
    assert off <= tolerance * largest, f"{name}: off by {off:.2e} where the largest value is {largest:.2e}"


def gradients_under_file_names(model):
    """The gradients as a state for the file, query, key and value apart: what the twin's can be held to."""
    saved = {name: p.data for name, p in model.named_parameters()}
    try:
        for p in model.parameters():
            p.data = torch.zeros_like(p) if p.grad is None else p.grad
        return state_for_file(model)
    finally:
        for name, p in model.named_parameters():
            p.data = saved[name]


def assert_gradients_close(model, twin, zero=(), again=None):
    """`zero` names those whose gradient is 0 in theory and rounding in practice, as a key's bias always is
    (softmax does not notice a shift): they are held to the largest gradient of all.

    Where large numbers cancel, float32 rounds differently on each processor. `again` takes the twin in float64 and
    gives its loss: ours may then be off from that by four times what the twin is off itself, if that is more.
    """
    theirs = {name: p.grad for name, p in twin.named_parameters()}
    ours = gradients_under_file_names(model)
    assert len(ours) == len(theirs)
    largest = max(g.abs().max() for g in theirs.values())
    truth, rounding = theirs, dict.fromkeys(theirs, 0.0)
    if again is not None and largest.dtype == torch.float32:
        exact = copy.deepcopy(twin).double()
        exact.zero_grad()
        again(exact).backward()
        truth = {name: p.grad for name, p in exact.named_parameters()}
        rounding = {name: 4 * (theirs[name] - grad).abs().max() for name, grad in truth.items()}
    for name, gradient in ours.items():
        size = theirs[name].abs().max()
        if name.endswith(("key.bias", *zero)):
            assert size < TOLERANCE[gradient.dtype] * largest
            size = largest
        off, allowed = (gradient - truth[name]).abs().max(), TOLERANCE[gradient.dtype] * size
        assert off <= max(allowed, rounding[name]), f"gradient of {name}: off by {off:.2e} of {size:.2e}"
