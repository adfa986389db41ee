"""Every kernel against the definition, in value and gradient."""

import pytest
import torch

from bert_minimal.attention import mask_to_bias, scaled_dot_product_attention
from bert_minimal.stream import by_flash, by_padding, by_runs, pack, stream_attention, unpack, varlen_attn

H, d = 3, 8
RAGGED = [3, 7, 7, 1, 0, 5]
KERNELS = [by_runs, by_padding, stream_attention]


def loud(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)) * 2


def cumulated(lengths):
    return torch.tensor([0, *lengths]).cumsum(0).to(torch.int32)


def definition(query, key, value, cu_seqlens):
    """The definition on padded tensors, then only the real rows, in the stream's order."""
    lengths = cu_seqlens.diff().tolist()
    mask = torch.arange(max(lengths)) < cu_seqlens.diff()[:, None]

    def pad(x):  # (N, H, d) -> (B, H, S, d)
        return torch.nn.utils.rnn.pad_sequence(x.split(lengths), batch_first=True).transpose(1, 2)

    context, _ = scaled_dot_product_attention(pad(query), pad(key), pad(value), mask_to_bias(mask, query.dtype))
    return context.transpose(1, 2)[mask]


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("lengths", [RAGGED, [4, 4, 4], [6]], ids=["ragged", "equal", "one"])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-5)])
def test_kernel_equals_definition(kernel, lengths, dtype, tolerance):
    cu_seqlens = cumulated(lengths)
    qkv = loud(sum(lengths), 3, H, d).to(dtype).requires_grad_()
    cotangent = loud(sum(lengths), H, d, seed=1).to(dtype)
    ours = kernel(*qkv.unbind(1), cu_seqlens, max(lengths) + 2)  # a looser bound must not matter
    expected = definition(*qkv.unbind(1), cu_seqlens)
    torch.testing.assert_close(ours, expected, atol=tolerance * expected.abs().max().item(), rtol=0)
    (ours_grad,) = torch.autograd.grad(ours, qkv, cotangent)
    (grad,) = torch.autograd.grad(expected, qkv, cotangent)
    torch.testing.assert_close(ours_grad, grad, atol=tolerance * grad.abs().max().item(), rtol=0)


@pytest.mark.skipif(
    varlen_attn is None or not torch.cuda.is_available() or torch.cuda.get_device_capability()[0] < 8,
    reason="needs torch 2.10 and a GPU of compute capability 8.0",
)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_flash_equals_definition(dtype):
    """Half precision rounds: within three of its steps, relative to the largest value."""
    cu_seqlens = cumulated(RAGGED)
    qkv = loud(sum(RAGGED), 3, H, d).to(dtype).double().requires_grad_()
    cotangent = loud(sum(RAGGED), H, d, seed=1).to(dtype).double()
    expected = definition(*qkv.unbind(1), cu_seqlens)
    (grad,) = torch.autograd.grad(expected, qkv, cotangent)
    on_gpu = qkv.detach().to("cuda", dtype).requires_grad_()
    ours = by_flash(*on_gpu.unbind(1), cu_seqlens.cuda(), max(RAGGED))
    (ours_grad,) = torch.autograd.grad(ours, on_gpu, cotangent.to("cuda", dtype))
    step = 3 * torch.finfo(dtype).eps
    torch.testing.assert_close(ours.double().cpu(), expected, atol=step * expected.abs().max().item(), rtol=0)
    torch.testing.assert_close(ours_grad.double().cpu(), grad, atol=step * grad.abs().max().item(), rtol=0)


@pytest.mark.parametrize("kernel", [by_runs, by_padding])
def test_attention_dropout(kernel):
    """All dropped: nothing is left. Some dropped: the mean over many draws is the undropped value."""
    cu_seqlens, qkv = cumulated(RAGGED), loud(sum(RAGGED), 3, H, d)
    assert (kernel(*qkv.unbind(1), cu_seqlens, 7, 1.0) == 0).all()
    torch.manual_seed(0)
    draws = torch.stack([kernel(*qkv.unbind(1), cu_seqlens, 7, 0.3) for _ in range(300)])
    expected = definition(*qkv.unbind(1), cu_seqlens)
    assert draws.std(0).max() > 0.3
    assert ((draws.mean(0) - expected).abs() < 6 * draws.std(0) / 300**0.5 + 1e-9).all()


def test_sequences_do_not_see_each_other():
    cu_seqlens, qkv = cumulated([3, 4]), loud(7, 3, H, d)
    changed = qkv.clone()
    changed[3:] += 1
    for kernel in KERNELS:
        before, after = (kernel(*x.unbind(1), cu_seqlens, 4) for x in (qkv, changed))
        assert before[:3].equal(after[:3])
        assert not before[3:].allclose(after[3:])


def test_pack_and_unpack():
    ids = torch.tensor([[11, 12, 13, 0], [21, 22, 0, 0], [0, 0, 33, 34]])
    mask = torch.tensor([[1, 1, 1, 0], [1, 1, 0, 0], [0, 0, 1, 1]])
    stream, where = pack(ids, ids + 100, torch.arange(ids.shape[1]).expand_as(ids), mask)
    assert stream.input_ids.tolist() == [11, 12, 13, 21, 22, 33, 34]
    assert stream.token_type_ids.equal(stream.input_ids + 100)
    assert stream.position_ids.tolist() == [0, 1, 2, 0, 1, 2, 3]  # the column, also after padding on the left
    assert stream.cu_seqlens.tolist() == [0, 3, 5, 7]
    assert stream.cu_seqlens.dtype == torch.int32
    assert stream.max_seqlen == 3
    assert unpack(stream.input_ids, where, 3, 4).equal(ids)
    assert unpack(stream.input_ids, where, 3, 4, fill=-7)[0].tolist() == [11, 12, 13, -7]
    stream, where = pack(ids, ids, ids, torch.ones_like(ids))
    assert unpack(stream.input_ids, where, 3, 4).equal(ids)


@pytest.mark.long
def test_padding_kernel_compiles_without_a_break():
    """fullgraph: a read-back of any value from the device would be an error."""
    cu_seqlens, qkv = cumulated(RAGGED), loud(sum(RAGGED), 3, H, d)
    compiled = torch.compile(stream_attention, fullgraph=True)
    torch.testing.assert_close(
        compiled(*qkv.unbind(1), cu_seqlens, 7), definition(*qkv.unbind(1), cu_seqlens), atol=1e-12, rtol=0
    )
