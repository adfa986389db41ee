import dataclasses
import subprocess
import sys

import pytest
import torch
import transformers

from bert_minimal import Bert, BertConfig
from bert_minimal.config import PRESETS


@pytest.mark.parametrize(("name", "parameters"), [("base", 109_482_240), ("large", 335_141_888)])
def test_published_sizes(name, parameters):
    """bert-base-uncased and bert-large-uncased, and transformers agrees."""
    config = BertConfig.preset(name)
    with torch.device("meta"):
        ours = Bert(config)
        theirs = transformers.BertModel(transformers.BertConfig(**config.to_hf()))
    assert sum(p.numel() for p in ours.parameters()) == parameters
    assert sum(p.numel() for p in theirs.parameters()) == parameters


def test_default_is_base():
    assert BertConfig.preset("base") == BertConfig()


@pytest.mark.parametrize("name", PRESETS)
def test_presets_have_heads_of_64(name):
    config = BertConfig.preset(name)
    assert config.hidden_size == 64 * config.num_attention_heads
    assert config.intermediate_size == 4 * config.hidden_size


def test_round_trip_through_transformers(tmp_path):
    config = BertConfig.preset("mini", vocab_size=77, labels=("B-PER", "I-PER", "O"), hidden_act="gelu_new")
    transformers.BertConfig(**config.to_hf()).save_pretrained(tmp_path)
    theirs = transformers.BertConfig.from_pretrained(tmp_path)
    assert theirs.num_labels == 3
    assert BertConfig.from_hf(theirs.to_dict()) == config


def test_num_labels_alone_is_understood():
    assert BertConfig.from_hf({"num_labels": 3}).labels == ("LABEL_0", "LABEL_1", "LABEL_2")


def test_frozen_and_hashable():
    config = BertConfig(labels=["no", "yes"])
    assert hash(config) == hash(BertConfig(labels=("no", "yes")))
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.hidden_size = 3


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ({"hidden_size": 100, "num_attention_heads": 12}, "100 does not split into 12"),
        ({"hidden_act": "relu"}, "relu"),
        ({"num_hidden_layers": 0}, "num_hidden_layers is 0"),
        ({"vocab_size": 30522.0}, "vocab_size is 30522.0"),
        ({"hidden_dropout_prob": 1.5}, "between 0 and 1"),
        ({"labels": ()}, "labels is empty"),
    ],
)
def test_impossible_sizes(entries, words):
    with pytest.raises(ValueError, match=words):
        BertConfig(**entries)


@pytest.mark.parametrize(
    "entries",
    [
        {"model_type": "roberta"},
        {"position_embedding_type": "relative_key"},
        {"layer_norm_eps": 1e-5},
        {"is_decoder": True},
    ],
)
def test_checkpoints_that_compute_something_else_are_refused(entries):
    with pytest.raises(ValueError, match=next(iter(entries))):
        BertConfig.from_hf(entries)
    with pytest.raises(ValueError, match="no preset"):
        BertConfig.preset("huge")


def test_importing_the_package_needs_torch_numpy_and_safetensors_only():
    code = (
        "import sys, bert_minimal; from bert_minimal import Bert, BertConfig, WordPiece, heads, checkpoint;"
        "print(*(m for m in ('transformers', 'tokenizers', 'huggingface_hub', 'pooch', 'matplotlib')"
        " if m in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
