import math

import pytest
import torch
import torch.nn.functional as F

from bert_minimal.attention import (
    attention_scores,
    causal_mask,
    mask_to_bias,
    merge_heads,
    multi_head_attention,
    scaled_dot_product_attention,
    split_heads,
)

B, H, S, d = 2, 3, 5, 4
D = H * d
HALF = [torch.float16, torch.bfloat16]


def loud(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)) * 2


def test_scores_by_hand():
    query = torch.tensor([[[[1.0, 2.0, 0.0, 1.0]]]])
    key = torch.tensor([[[[3.0, 1.0, 5.0, 1.0], [0.0, 0.0, 9.0, 0.0]]]])
    assert attention_scores(query, key).tolist() == [[[[3.0, 0.0]]]]  # (3 + 2 + 0 + 1) / √4


def test_scores_have_variance_1_whatever_the_head_size():
    for size in (4, 64, 1024):
        scores = attention_scores(loud(1, 1, 200, size) / 2, loud(1, 1, 200, size, seed=1) / 2)
        assert math.isclose(scores.var().item(), 1, abs_tol=0.1)


def test_split_heads_gives_neighbouring_features_to_a_head():
    x = torch.arange(B * S * D).view(B, S, D)
    heads = split_heads(x, H)
    assert heads.shape == (B, H, S, d)
    for b, h, s in ((0, 0, 0), (1, 2, 3), (1, 1, 4)):
        assert heads[b, h, s].equal(x[b, s, h * d : (h + 1) * d])
    assert merge_heads(heads).equal(x)
    with pytest.raises(ValueError, match="12 features do not split into 5"):
        split_heads(x, 5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, *HALF])
def test_padding_gets_no_weight_and_nothing_becomes_nan(dtype):
    mask = torch.tensor([[1, 1, 1, 0, 0], [0, 0, 0, 0, 0]])
    bias = mask_to_bias(mask, dtype)
    assert bias.shape == (B, 1, 1, S)
    assert bias.dtype == dtype
    for scale in (-1.0, 1.0):  # large scores of both signs: the bias must stay finite after the addition
        query, key = (
            torch.full((B, H, S, d), scale * 60, dtype=dtype),
            torch.full((B, H, S, d), 60, dtype=dtype),
        )
        context, weights = scaled_dot_product_attention(query, key, key, bias)
        assert context.isfinite().all()
        assert (weights[0, ..., 3:] == 0).all()
        torch.testing.assert_close(weights[0, ..., :3].float(), torch.full((H, S, 3), 1 / 3), atol=2e-3, rtol=0)


def test_masks_of_bool_and_float_mean_the_same():
    mask = torch.tensor([[1, 0, 1]])
    assert mask_to_bias(mask.bool(), torch.float32).equal(mask_to_bias(mask.float(), torch.float32))


def test_causal_mask_looks_back_and_at_itself():
    assert causal_mask(3).tolist() == [[True, False, False], [True, True, False], [True, True, True]]


def test_attention_equals_torch_in_value_and_gradient():
    inputs = [loud(B, H, S, d, seed=i).requires_grad_() for i in range(3)]
    bias = mask_to_bias(torch.tensor([[1, 1, 1, 1, 0], [1, 1, 0, 0, 0]]), torch.float64)
    ours, weights = scaled_dot_product_attention(*inputs, bias)
    theirs = F.scaled_dot_product_attention(*inputs, attn_mask=bias)
    torch.testing.assert_close(ours, theirs, atol=1e-12, rtol=0)
    torch.testing.assert_close(weights.sum(-1), torch.ones(B, H, S, dtype=torch.float64))
    cotangent = loud(B, H, S, d, seed=9)
    for a, b in zip(
        torch.autograd.grad(ours, inputs, cotangent),
        torch.autograd.grad(theirs, inputs, cotangent),
        strict=True,
    ):
        torch.testing.assert_close(a, b, atol=1e-11, rtol=0)


def test_dropout_removes_weights_only_in_training():
    query, key, value = (loud(B, H, S, d, seed=i) for i in range(3))
    plain, _ = scaled_dot_product_attention(query, key, value)
    assert scaled_dot_product_attention(query, key, value, None, 1.0, False)[0].equal(plain)
    context, weights = scaled_dot_product_attention(query, key, value, None, 1.0, True)
    assert (context == 0).all()
    torch.testing.assert_close(weights.sum(-1), torch.ones(B, H, S, dtype=torch.float64))


def test_multi_head_attention_equals_torch():
    theirs = torch.nn.MultiheadAttention(D, H, batch_first=True, dtype=torch.float64)
    for i, p in enumerate(theirs.parameters()):
        p.data = loud(*p.shape, seed=i)
    x, mask = loud(B, S, D, seed=20), torch.tensor([[1, 1, 1, 1, 0], [1, 1, 0, 0, 0]])
    expected, expected_weights = theirs(x, x, x, key_padding_mask=mask == 0, average_attn_weights=False)
    ours, weights = multi_head_attention(
        x,
        theirs.in_proj_weight,
        theirs.in_proj_bias,
        theirs.out_proj.weight,
        theirs.out_proj.bias,
        H,
        mask,
    )
    torch.testing.assert_close(ours, expected, atol=1e-11, rtol=0)
    torch.testing.assert_close(weights, expected_weights, atol=1e-12, rtol=0)
    without = multi_head_attention(x, theirs.in_proj_weight, None, theirs.out_proj.weight, None, H)[0]
    assert not without.allclose(ours)
