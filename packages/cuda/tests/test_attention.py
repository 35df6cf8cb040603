"""Attention on the plug-in, compared with the CPU."""

from __future__ import annotations

import math

import pytest

import rushlight as torch
import rushlight_core as core
from rushlight.nn import functional

pytestmark = pytest.mark.usefixtures("driver")

TOLERANCE = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 2e-6, "float64": 1e-14}
MASKS = {
    "none": lambda dtype: None,
    "bools": lambda dtype: (torch.arange(5 * 7) % 3 != 0).reshape(5, 7),
    "bools of each head": lambda dtype: (torch.arange(2 * 4 * 5 * 7) % 5 != 0).reshape(2, 4, 5, 7),
    "numbers": lambda dtype: ((torch.arange(5 * 7) % 4) / 2).reshape(1, 1, 5, 7).to(dtype),
    "of sources": lambda dtype: torch.tensor([True, True, False, True, True, False, True]),
    "a row that sees nothing": lambda dtype: torch.arange(5)[:, None].expand(5, 7) != 2,
    "minus infinity": lambda dtype: torch.where(torch.arange(7) < 3, 0.0, -math.inf).to(dtype),
}


def values(dtype: torch.dtype, *shape: int) -> torch.Tensor:
    n = torch.Size(shape).numel()
    return ((torch.arange(n) * 37 % 101 - 50) / 40).reshape(shape).to(dtype)


def compare(query, key, value, mask, dtype: str, **options) -> None:
    """Compare the result and all gradients on both devices."""
    results = []
    for device in ("cpu", "cuda"):
        leaves = [t.to(device).clone().requires_grad_() for t in (query, key, value)]
        y = functional.scaled_dot_product_attention(
            *leaves, attn_mask=None if mask is None else mask.to(device), **options
        )
        y.backward(values(y.dtype, *y.shape).to(device))
        results.append([y.detach(), *(leaf.grad for leaf in leaves)])
    for here, there in zip(*results, strict=True):
        assert there.device.type == "cuda"
        scale = max(1.0, float(here.double().abs().max()))
        torch.testing.assert_close(there.cpu(), here, rtol=0, atol=TOLERANCE[dtype] * scale)


@pytest.mark.parametrize(("mask", "is_causal"), [*((mask, False) for mask in MASKS), ("none", True)])
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_masks(mask, dtype, is_causal):
    kind = getattr(torch, dtype)
    q, k, v = values(kind, 2, 4, 5, 8), values(kind, 2, 4, 7, 8), values(kind, 2, 4, 7, 6)
    compare(q, k, v, MASKS[mask](kind), dtype, is_causal=is_causal)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_several_heads_of_query_share_one_of_key(dtype):
    kind = getattr(torch, dtype)
    q, k, v = values(kind, 2, 6, 5, 4), values(kind, 2, 2, 7, 4), values(kind, 2, 2, 7, 3)
    compare(q, k, v, None, dtype, enable_gqa=True, is_causal=True)
    mask = (torch.arange(2 * 6 * 5 * 7) % 4 != 0).reshape(2, 6, 5, 7)
    compare(q, k, v, mask, dtype, enable_gqa=True, scale=0.7)


@pytest.mark.parametrize("dropout_p", [0.0, 0.5])
def test_the_kernel_for_keys_of_length_0(dropout_p):
    """The public operator computes this case without the kernel."""
    q, k, v = (values(torch.float32, 2, 4, n, 8).cuda() for n in (5, 0, 0))
    kept = torch.ones(2, 4, 5, 0, dtype=torch.bool, device="cuda") if dropout_p else None
    rest = False, 0.3, dropout_p
    y = core._C._call_boxed("_attention", q, k, v, None, kept, *rest)
    assert y.cpu().equal(torch.zeros(2, 4, 5, 8))
    given = torch.ones_like(y), q, k, v, None, kept, y, torch.zeros(2, 4, 5, device="cuda")
    gradients = core._C._call_boxed("_attention_backward", *given, *rest)
    assert gradients[0].cpu().equal(torch.zeros(2, 4, 5, 8))
    assert gradients[1].shape == gradients[2].shape == (2, 4, 0, 8)


def test_more_scores_than_fit_at_once():
    """Some heads are processed at a time, because the build of the tests limits the memory for scores."""
    q, k, v = (values(torch.float32, 3, 5, 33, 4) for _ in range(3))
    compare(q, k, v, None, "float32", is_causal=True)


def test_heads_cut_from_one_projection():
    x = values(torch.float32, 2, 9, 3 * 4 * 8)
    q, k, v = (t.reshape(2, 9, 4, 8).transpose(1, 2) for t in x.chunk(3, -1))
    compare(q, k, v, None, "float32")
    qd, kd, vd = (t.reshape(2, 9, 4, 8).transpose(1, 2) for t in x.cuda().chunk(3, -1))
    found = functional.scaled_dot_product_attention(qd, kd, vd)
    torch.testing.assert_close(found.cpu(), functional.scaled_dot_product_attention(q, k, v))


def test_a_transformer_block_trains():
    def losses(device: str) -> list[float]:
        torch.manual_seed(0)
        block = torch.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True).to(device)
        head = torch.nn.Linear(8, 3).to(device)
        optimizer = torch.optim.AdamW([*block.parameters(), *head.parameters()], lr=0.01)
        x = values(torch.float32, 4, 6, 8).to(device)
        target = (torch.arange(24) % 3).to(device)
        found = []
        for _ in range(4):
            optimizer.zero_grad()
            loss = functional.cross_entropy(head(block(x)).reshape(24, 3), target)
            loss.backward()
            optimizer.step()
            found.append(loss.item())
        return found

    expected = losses("cpu")
    assert expected[-1] < expected[0]
    assert losses("cuda") == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_dropout_draws_the_same_weights_as_the_cpu(dtype):
    kind = getattr(torch, dtype)
    q, k, v = values(kind, 2, 4, 5, 8), values(kind, 2, 4, 7, 8), values(kind, 2, 4, 7, 6)
    results = []
    for device in ("cpu", "cuda"):
        torch.manual_seed(3)
        leaves = [t.to(device).clone().requires_grad_() for t in (q, k, v)]
        y = functional.scaled_dot_product_attention(*leaves, dropout_p=0.4)
        y.backward(values(kind, *y.shape).to(device))
        results.append([y.detach(), *(leaf.grad for leaf in leaves)])
    for here, there in zip(*results, strict=True):
        scale = max(1.0, float(here.double().abs().max()))
        torch.testing.assert_close(there.cpu(), here, rtol=0, atol=TOLERANCE[dtype] * scale)
