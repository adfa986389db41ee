"""Cutting and pooling, against what the words promise."""

from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bert_minimal.windows import head_tail, pool, truncate, windows


@given(st.integers(0, 300), st.integers(1, 60), st.data())
def test_windows_hold_every_piece_and_none_lies_inside_another(length, size, data):
    stride = data.draw(st.integers(1, size))
    found = windows(length, size, stride)
    assert sorted({i for a, b in found for i in range(a, b)}) == list(range(length))
    assert all(b - a == size for a, b in found[:-1])
    assert all(b - a <= size for a, b in found)
    assert all(later[0] - earlier[0] == stride for earlier, later in pairwise(found))
    assert all(later[1] > earlier[1] for earlier, later in pairwise(found))


def test_windows_by_hand():
    assert windows(10, 4, 3) == [(0, 4), (3, 7), (6, 10)]
    assert windows(11, 4, 3) == [(0, 4), (3, 7), (6, 10), (9, 11)]
    assert windows(4, 4, 2) == [(0, 4)]
    assert windows(0, 4, 2) == [(0, 0)]


@given(st.lists(st.integers()), st.integers(1, 40))
def test_head_and_tail(pieces, room):
    assert truncate(pieces, room) == pieces[:room]
    found = head_tail(pieces, room)
    assert len(found) == min(room, len(pieces))
    head = room // 4
    assert found[:head] == pieces[:head]
    assert found == pieces or (room == head or found[head:] == pieces[head - room :])


def test_head_of_the_paper():
    assert head_tail(range(2000), 510, 128) == [*range(128), *range(2000 - 382, 2000)]
    assert head_tail(range(9), 4, 4) == [0, 1, 2, 3]  # no tail: [-0:] would be everything
    assert head_tail(range(9), 4, 0) == [5, 6, 7, 8]


@pytest.mark.parametrize("how", ["mean", "max"])
def test_pooling_is_that_of_a_loop_in_value_and_gradient(how):
    torch.manual_seed(0)
    x = torch.randn(7, 3, dtype=torch.float64, requires_grad=True)
    document = torch.tensor([0, 0, 0, 1, 2, 2, 2])
    out = pool(x, document, 3, how)
    rows = [x[document == d] for d in range(3)]
    expected = torch.stack([r.mean(0) if how == "mean" else r.amax(0) for r in rows])
    torch.testing.assert_close(out, expected)
    weights = torch.randn(3, 3, dtype=torch.float64)
    (ours,) = torch.autograd.grad((out * weights).sum(), x, retain_graph=True)
    (theirs,) = torch.autograd.grad((expected * weights).sum(), x)
    torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: windows(10, 4, 5), "pieces are skipped"),
        (lambda: windows(10, 4, 0), "it can be 1 to 4"),
        (lambda: windows(10, 0, 1), "room for 0 pieces"),
        (lambda: truncate([1], 0), "max_length has to exceed"),
        (lambda: head_tail([1], 4, 5), "head is 5"),
        (lambda: pool(torch.zeros(1, 1), torch.zeros(1, dtype=torch.int64), 1, "sum"), '"mean" or "max"'),
    ],
)
def test_what_cannot_be_is_refused(call, says):
    with pytest.raises(ValueError, match=says):
        call()
