"""Masked-LM corruption: shares counted on many tokens, and what must never happen."""

import pytest
import torch

from bert_minimal.masking import Masking
from bert_minimal.wordpiece import SPECIAL, WordPiece

TOKENIZER = WordPiece([*SPECIAL, *(f"w{i}" for i in range(500)), *(f"##p{i}" for i in range(500))])


def ids(rows: int, length: int, seed: int = 0) -> torch.Tensor:
    """[CLS] … [SEP] and padding at the end of every row."""
    x = torch.randint(5, len(TOKENIZER), (rows, length), generator=torch.Generator().manual_seed(seed))
    x[:, 0], x[:, -6], x[:, -5:] = TOKENIZER.cls_id, TOKENIZER.sep_id, TOKENIZER.pad_id
    return x


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_shares_are_15_and_80_10_10():
    x = ids(2000, 128)
    corrupted, labels = Masking(TOKENIZER)(x, generator(1))
    asked = labels != -100
    n, candidates = asked.sum().item(), 2000 * 121
    # Five standard deviations of a binomial; two draws in a row (81/10/9) would be ten away.
    assert abs(n / candidates - 0.15) < 5 * (0.15 * 0.85 / candidates) ** 0.5
    masked = (corrupted == TOKENIZER.mask_id)[asked].float().mean().item()
    kept = (corrupted == x)[asked].float().mean().item()
    assert abs(masked - 0.8) < 5 * (0.16 / n) ** 0.5
    assert abs(kept - 0.1 - 0.1 / 1000) < 5 * (0.09 / n) ** 0.5  # a random piece may be the same by chance


def test_labels_are_the_originals_and_nothing_else_changes():
    x = ids(50, 64)
    before = x.clone()
    corrupted, labels = Masking(TOKENIZER)(x, generator(2))
    assert torch.equal(x, before)  # the caller's batch
    asked = labels != -100
    assert torch.equal(labels[asked], x[asked])
    assert torch.equal(corrupted[~asked], x[~asked])


@pytest.mark.parametrize("whole_words", [False, True])
def test_specials_are_neither_selected_nor_drawn(whole_words):
    x = ids(500, 32)
    corrupted, labels = Masking(TOKENIZER, probability=1.0, whole_words=whole_words)(x, generator(3))
    special = torch.isin(x, torch.tensor(TOKENIZER.special_ids))
    assert torch.equal(labels != -100, ~special)  # probability 1: everything but the specials
    assert torch.equal(corrupted[special], x[special])
    drawn = corrupted[(corrupted != x) & (corrupted != TOKENIZER.mask_id)]
    assert len(drawn) > 500
    assert not torch.isin(drawn, torch.tensor(TOKENIZER.special_ids)).any()


def test_whole_words_go_together():
    a, b, p, q = (TOKENIZER.vocab[s] for s in ("w1", "w2", "##p1", "##p2"))
    row = [TOKENIZER.cls_id, a, p, q, b, a, p, TOKENIZER.sep_id, q, a, TOKENIZER.sep_id]
    x = torch.tensor([row] * 4000)
    selected = Masking(TOKENIZER, whole_words=True).select(x, generator(4))
    for word in ([1, 2, 3], [4], [5, 6], [8], [9]):  # 8: a text cut inside a word begins a word of its own
        together = selected[:, word]
        assert (together.all(1) == together.any(1)).all()
        assert abs(together[:, 0].float().mean().item() - 0.15) < 0.03
    assert selected[:, [1, 4]].all(1).float().mean().item() < 0.05  # neighbours are drawn apart


def test_dynamic_but_reproducible():
    x, masking = ids(4, 64), Masking(TOKENIZER)
    same = [masking(x, generator(5))[0] for _ in range(2)]
    assert torch.equal(*same)
    one = generator(6)
    assert not torch.equal(masking(x, one)[1], masking(x, one)[1])


def test_at_most():
    x = ids(20, 128)
    labels = Masking(TOKENIZER)(x, generator(7), at_most=100)[1]
    assert (labels != -100).sum() == 100
    rows = (labels != -100).any(1).sum()
    assert rows > 15  # spared anywhere, not from the end on


def test_probability_is_checked():
    with pytest.raises(ValueError, match="share of pieces"):
        Masking(TOKENIZER, probability=15)
