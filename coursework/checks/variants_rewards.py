"""What a student sees after getting unit 11 right: one number of the real families from their own function.

As in rewards.py: a few lines within two seconds, and never a download.
"""

import torch

from bert_minimal.variants import AlbertConfig, Roberta, RobertaConfig
from coursework.cast import CAST


def rows_of_a_batch(function):
    ids = torch.tensor([[0, 133, 8, 2], [0, 9, 2, 1]])
    config = RobertaConfig(
        hidden_size=12, num_hidden_layers=1, num_attention_heads=3, intermediate_size=8, vocab_size=200
    )
    same = torch.equal(function(ids, 1), Roberta(config).positions(ids))
    print(
        f"  {function(ids, 1).tolist()}, and RoBERTa's own: {'the same' if same else 'other ones'}. The longest text is"
    )
    print("  512 tokens, positions 2 to 513: that is why the published table has 514 rows, and two are never read")
    print("  as a place.")


def what_it_saves(function):
    config = AlbertConfig()
    vocab, narrow, wide = config.vocab_size, config.embedding_size, config.hidden_size
    weights = {
        "word": torch.zeros(vocab, narrow),
        "widen.weight": torch.zeros(wide, narrow),
        "widen.bias": torch.ones(wide),
    }
    shape = tuple(function(torch.tensor([[2, 13, 3]]), weights).shape)
    print(f"  With ALBERT's sizes yours gives {shape}. A table of {vocab:,} × {wide} has {vocab * wide:,} numbers;")
    print(f"  {vocab:,} × {narrow} and {narrow} × {wide} together have {vocab * narrow + narrow * wide:,}: a sixth.")


def deeper_is_no_larger(function):
    def make_layer():
        return _Linear(64)

    counts = [sum(p.numel() for p in function(make_layer, times).parameters()) for times in (1, 12, 100)]
    print(f"  Run 1, 12 and 100 times your encoder has {counts[0]:,}, {counts[1]:,} and {counts[2]:,} parameters.")
    print("  The work grows all the same: every run multiplies by the whole matrix again.")


class _Linear(torch.nn.Linear):
    def __init__(self, width):
        super().__init__(width, width)

    def forward(self, hidden, attention_mask=None):
        return super().forward(hidden)


def four_sizes(function):
    bert, albert = function(30522, 768, 3072, 12, 768, False), function(30000, 768, 3072, 12, 128, True)
    narrow, shared = function(30000, 768, 3072, 12, 128, False), function(30000, 768, 3072, 12, 768, True)
    print(f"  BERT base {bert:,}, ALBERT base {albert:,}: both to the last parameter as published, with the MLM head.")
    print(f"  Narrow embeddings alone: {narrow:,}. One layer for all alone: {shared:,}.")


def an_order(function):
    words = [sentence.split() for sentence in (CAST["seal"], CAST["match"])]
    a, b, label = function(words, 1, True)
    print(f"  A  {' '.join(a)}")
    print(f"  B  {' '.join(b)}")
    print(
        f"  label {label}. Both halves have one topic: counting words does not help here, as it does for next sentence."
    )


def soft_answers(function):
    teacher = torch.tensor([[6.0, 5.0, 1.0]])  # "sea", "lake", "spoon"
    hidden, mask, label = torch.ones(1, 1, 3), torch.ones(1, 1, dtype=torch.long), torch.tensor([0])
    print("  A teacher says sea 73 %, lake 27 %, spoon hardly. Two pupils who give the right word the same 73 %:")
    for name, logits in (("the rest to lake ", [6.0, 5.0, 1.0]), ("the rest to spoon", [6.0, 1.0, 5.0])):
        soft, hard, _ = function(torch.tensor([logits]), teacher, label, hidden, hidden, mask, 2.0)
        print(f"    {name}  hard loss {float(hard):.2f}   soft loss {float(soft):.2f}")
    print("  Only the soft loss tells them apart: that is what a teacher knows beyond the answer.")


def half_the_course(function):
    state = {f"layers.{n}.up_weight": torch.full((2, 2), float(n)) for n in range(12)} | {
        "embeddings.word": torch.ones(3)
    }
    student = function(state)
    came = [int(student[f"layers.{n}.up_weight"][0, 0]) for n in range(6)]
    print(f"  A teacher of 12 layers gives its layers {came} to a student of 6.")
    print("  DistilBERT began so: with the teacher's words and half of its layers, and learned only the difference.")
