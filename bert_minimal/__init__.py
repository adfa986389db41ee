"""BERT in one evening's reading: the model, its heads, its tokenizer and its checkpoints.

Start with `config.py` (the letters used for shapes), then `attention.py`, `model.py`, `heads.py`.
Importing this needs torch, numpy and safetensors only.
"""

from .config import BertConfig
from .model import Bert
from .wordpiece import WordPiece

__all__ = ["Bert", "BertConfig", "WordPiece"]
