"""Unit 12's references against the real things: transformers' names, and torch's own entropy."""

import torch

from bert_minimal import Bert
from coursework.checks.hugging_face import (
    _attention_entropy,
    _first_divergence,
    _head_jobs,
    _translate_names,
)
from coursework.checks.hugging_face_rewards import plain_table


def tiny():
    from transformers import BertConfig, BertModel

    torch.manual_seed(3)
    config = BertConfig(vocab_size=40, hidden_size=12, num_hidden_layers=3, num_attention_heads=3,
                        intermediate_size=20, max_position_embeddings=16, attn_implementation="eager")  # fmt: skip
    return BertModel(config).eval()


def test_the_librarys_names_become_ours(tmp_path):
    library = tiny()
    library.save_pretrained(tmp_path)
    state = {name: x for name, x in library.state_dict().items() if "position_ids" not in name}
    ours = _translate_names(state, plain_table(), 3)
    loaded = Bert.from_pretrained(tmp_path).state_dict()
    assert ours.keys() == loaded.keys()
    assert all(torch.equal(ours[name], loaded[name]) for name in loaded)


def test_a_bias_taken_out_of_the_library_is_placed():
    library, names = tiny(), ["embeddings", "layer 0", "layer 1", "layer 2"]
    ids = torch.randint(1, 40, (2, 7))
    mask = torch.tensor([[1] * 7, [1] * 4 + [0] * 3])

    def states():
        with torch.no_grad():
            return dict(zip(names, library(ids, mask, output_hidden_states=True).hidden_states, strict=True))

    theirs = states()
    torch.nn.init.normal_(library.encoder.layer[1].output.LayerNorm.bias)
    assert _first_divergence(states(), theirs, mask) == ("layer 1", "shifted")


def test_entropy_and_jobs_against_torch_distributions():
    mask = torch.tensor([[1] * 6, [1] * 4 + [0] * 2])
    scores = torch.randn(2, 3, 6, 6, dtype=torch.float64).masked_fill(mask[:, None, None] == 0, -torch.inf)
    weights = scores.softmax(-1)
    rows = torch.distributions.Categorical(probs=weights, validate_args=False).entropy().transpose(1, 2)[mask == 1]
    torch.testing.assert_close(_attention_entropy(weights, mask), rows.mean(0))
    most = torch.tensor([6.0] * 6 + [4.0] * 4, dtype=torch.float64).log()
    jobs = _head_jobs(weights, torch.full((2, 6), 9), mask, 9)
    torch.testing.assert_close(jobs["broadcast"], (rows / most[:, None]).mean(0))
    torch.testing.assert_close(jobs["sep"], torch.ones(3, dtype=torch.float64))  # every token is a [SEP] here
