"""Dropout in attention: the kernel drops the same weights as dropout that is applied to the matrix of weights."""

from __future__ import annotations

from typing import Any

import pytest

import rushlight as torch
from rushlight.nn.attention import SDPBackend, sdpa_kernel
from rushlight.nn.functional import scaled_dot_product_attention

Shapes = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]
SMALL: Shapes = ((2, 4, 5, 8), (2, 4, 7, 8), (2, 4, 7, 6))
CALLS: dict[str, tuple[Shapes, dict[str, Any]]] = {
    "plain": (SMALL, {}),
    "causal": (SMALL, {"is_causal": True}),
    "bools": (SMALL, {"attn_mask": torch.arange(35).reshape(5, 7) % 3 != 0}),
    "numbers": (SMALL, {"attn_mask": torch.arange(35.0).reshape(5, 7) % 4}),
    "a target that sees nothing": (SMALL, {"attn_mask": torch.arange(5)[:, None].expand(5, 7) != 2}),
    "scale": (SMALL, {"scale": 0.7}),
    "shared heads": (((2, 6, 5, 8), (2, 2, 7, 8), (2, 2, 7, 6)), {"enable_gqa": True}),
    "one head": (((3, 5, 8), (3, 7, 8), (3, 7, 6)), {}),
    "one example": (((5, 8), (7, 8), (7, 6)), {}),
    "several blocks": (((1, 2, 150, 8), (1, 2, 900, 8), (1, 2, 900, 8)), {}),
    "several blocks, causal": (((1, 2, 500, 8), (1, 2, 450, 8), (1, 2, 450, 8)), {"is_causal": True}),
}


def operands(shapes: Shapes, dtype: torch.dtype = torch.float32) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(5)
    return [torch.randn(shape, generator=generator).to(dtype).requires_grad_() for shape in shapes]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("call", CALLS)
def test_the_kernel_is_dropout_of_weights(call: str, dtype: torch.dtype) -> None:
    shapes, options = CALLS[call]
    tensors = operands(shapes, dtype)
    if "attn_mask" in options and options["attn_mask"].is_floating_point():
        options = {"attn_mask": options["attn_mask"].to(dtype)}
    found = []
    for backend in (SDPBackend.FLASH_ATTENTION, SDPBackend.MATH):
        torch.manual_seed(3)
        with sdpa_kernel(backend):
            y = scaled_dot_product_attention(*tensors, dropout_p=0.4, **options)
        found.append([y, *torch.autograd.grad((y * torch.arange(y.shape[-1]).cos()).sum(), tensors)])
    tolerance = {torch.float32: 2e-5, torch.float64: 1e-12, torch.bfloat16: 4e-2}[dtype]
    for fused, composed in zip(*found, strict=True):
        torch.testing.assert_close(
            fused, composed, rtol=tolerance, atol=tolerance * float(composed.abs().max())
        )


def test_weights_are_dropped_with_the_probability() -> None:
    values = torch.eye(300).expand(4, 300, 300)
    weights = scaled_dot_product_attention(
        torch.zeros(4, 300, 8), torch.zeros(4, 300, 8), values, dropout_p=0.3
    )
    dropped = (weights == 0).double().mean().item()
    assert abs(dropped - 0.3) < 0.005  # six standard deviations of 360000 draws
    assert torch.allclose(weights[weights != 0], torch.tensor(1 / (300 * 0.7)))


def test_derivatives() -> None:
    tensors = operands(((1, 4, 3, 4), (1, 2, 5, 4), (1, 2, 5, 2)), torch.float64)

    def attend(*given: torch.Tensor) -> torch.Tensor:
        torch.manual_seed(3)
        return scaled_dot_product_attention(*given, dropout_p=0.4, is_causal=True, enable_gqa=True)

    assert torch.autograd.gradcheck(attend, tensors)
    assert torch.autograd.gradgradcheck(attend, tensors)


def test_examples_of_a_batch_may_draw_apart_or_alike() -> None:
    q, k, v = (torch.ones(6, 2, 9, 4) for _ in range(3))

    def attend(query: torch.Tensor) -> torch.Tensor:
        return scaled_dot_product_attention(query, k[:2], v[:2], dropout_p=0.5)

    queries = q[:, None].expand(6, 2, 2, 9, 4)
    apart = torch.vmap(attend, randomness="different")(queries)
    alike = torch.vmap(attend, randomness="same")(queries)
    assert not torch.equal(apart[0], apart[1])
    assert all(torch.equal(alike[0], other) for other in alike)
    with pytest.raises(RuntimeError, match="random"):
        torch.vmap(attend)(queries)


def test_the_torch_stream_draws_what_dropout_of_weights_draws() -> None:
    tensors = operands(SMALL)
    found = []
    with torch.random.stream("torch"):
        for backend in (SDPBackend.FLASH_ATTENTION, SDPBackend.MATH):
            torch.manual_seed(3)
            with sdpa_kernel(backend):
                found.append(scaled_dot_product_attention(*tensors, dropout_p=0.4))
    torch.testing.assert_close(*found)
