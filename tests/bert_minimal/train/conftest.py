"""A tiny random model to fine-tune, in a folder as a checkpoint lies there."""

from pathlib import Path

import pytest
import torch

from bert_minimal import BertConfig, WordPiece
from bert_minimal.heads import PreTraining

WORDS = """the a lamp door boat clerk river was is good bad fine dull warm cold not very who where when lit closed in
, . ? paris lyon anna otto""".split()  # noqa: SIM905 (a list of words reads better so)


@pytest.fixture(scope="session")
def tiny(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("tiny")
    tokenizer = WordPiece.train({word: 5 for word in WORDS}, 200)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=64,
        initializer_range=0.1,
    )
    PreTraining(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def one_thread():
    """For models so small that two threads only wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
