"""What is special about unit 06: the references against transformers and the package, and classes of every kind."""

import pytest
import torch
from torch import nn

from bert_minimal import Bert, BertConfig
from coursework.checks import model
from coursework.checks.engine import Inputs, run_variant


@pytest.fixture(scope="module")
def tiny():
    """A small random BertModel of the library in float64, every tensor loud, and a padded batch."""
    from transformers import BertConfig as TheirConfig
    from transformers import BertModel

    sizes = {"vocab_size": 31, "hidden_size": 12, "num_hidden_layers": 3, "num_attention_heads": 3,
             "intermediate_size": 17, "max_position_embeddings": 9}  # fmt: skip
    library = BertModel(TheirConfig(**sizes)).double().eval()
    new = Inputs(5, torch.float64)
    with torch.no_grad():
        for parameter in library.parameters():
            parameter.copy_(new.normal(*parameter.shape, scale=0.7, mean=0.3))
    mask = new.padding_mask(4, 7)
    ids, segments = new.integers(1, 31, 4, 7) * mask, new.integers(0, 2, 4, 7) * mask
    return library, sizes, (ids, segments, mask)


def test_the_reference_is_the_librarys_bert(tiny):
    library, sizes, (ids, segments, mask) = tiny
    weights = {name: tensor for name, tensor in library.state_dict().items() if "position_ids" not in name}
    states, pooled = model._bert(ids, segments, mask, weights, 3)
    want = library(input_ids=ids, token_type_ids=segments, attention_mask=mask)
    real = mask == 1
    torch.testing.assert_close(states[real], want.last_hidden_state[real], rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(pooled, want.pooler_output, rtol=1e-9, atol=1e-9)
    assert model._count_parameters(**sizes, type_vocab_size=2) == sum(p.numel() for p in library.parameters())


@pytest.mark.parametrize(("name", "sizes"), [("base", model.BASE), ("large", model.LARGE)])
def test_the_counts_are_those_of_the_package(name, sizes):
    with torch.device("meta"):
        count = sum(p.numel() for p in Bert(BertConfig.preset(name)).parameters())
    assert model._count_parameters(**sizes) == count == {"base": 109_482_240, "large": 335_141_888}[name]


def test_a_count_that_is_off_by_one_is_refused():
    """Whole numbers are compared exactly, not to four digits."""

    def one_more(**sizes):
        return model._count_parameters(**sizes) + 1

    assert not model.count_parameters.verdict(run_variant("count_parameters", one_more), seed=3).passed


def test_layers_in_a_list_of_the_class_are_refused():
    """All encoders would share it, so no numbers can name this mistake: they depend on what was made before."""

    class Shared(nn.Module):
        layers = nn.ModuleList()

        def __init__(self, make_layer, num_layers):
            super().__init__()
            self.layers.extend(make_layer() for _ in range(num_layers))

        def forward(self, hidden, attention_mask=None, all_states=False):
            states = [hidden]
            for layer in self.layers:
                states.append(layer(states[-1], attention_mask))
            return states if all_states else states[-1]

    assert not model.Encoder.verdict(run_variant("Encoder", Shared), seed=3).passed


def test_an_encoder_that_is_half_registered_fails_by_its_parameters():
    class Half(nn.Module):
        def __init__(self, make_layer, num_layers):
            super().__init__()
            made = [make_layer() for _ in range(num_layers)]
            self.first, self.all = made[0], made

        def forward(self, hidden, attention_mask=None, all_states=False):
            states = [hidden]
            for layer in self.all:
                states.append(layer(states[-1], attention_mask))
            return states if all_states else states[-1]

    verdict = model.Encoder.verdict(run_variant("Encoder", Half), seed=3)
    assert verdict.failed == "own parameters"
    assert "finds 1 tensors in a stack of 4 layers" in verdict.what


def test_dropout_of_attention_is_never_misjudged():
    """500 seeds would take minutes with all other cases; the one that chance decides is asked alone."""
    right = model.encoder_layer.alternatives["with_the_librarys_attention"].function
    for seed in range(30):
        case = model._attention_dropout(Inputs(seed), 3, 5, 4)
        ((answer,),) = model.encoder_layer.ask(run_variant("encoder_layer", right), [case])
        assert case.holds(answer) is None, seed


@pytest.mark.long
def test_dropout_of_attention_is_never_misjudged_in_500_seeds():
    right = model.encoder_layer.alternatives["fused_projection_written_out"].function
    for seed in range(1000, 1500):
        case = model._attention_dropout(Inputs(seed), 3, 5, 4)
        ((answer,),) = model.encoder_layer.ask(run_variant("encoder_layer", right), [case])
        assert case.holds(answer) is None, seed
