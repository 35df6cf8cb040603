"""Derivatives of derivatives: all orders of nesting agree."""

from __future__ import annotations

import rushlight_core as core
from rushlight_autograd.checkpoint import checkpoint
from rushlight_autograd.transforms import grad, jvp
from rushlight_core import Tensor

D = core.float64


def test_forward_mode_over_a_checkpoint() -> None:
    x, v = core.tensor([0.3, -0.5], dtype=D), core.tensor([1.0, 0.5], dtype=D)

    def f(x: Tensor) -> Tensor:
        return x.exp() * x * x

    _, found = jvp(grad(lambda x: checkpoint(f, x, use_reentrant=False).sum()), (x,), (v,))
    _, want = jvp(grad(lambda x: f(x).sum()), (x,), (v,))
    assert core.allclose(found, want)


def test_a_saved_result_that_is_written_keeps_its_tangent() -> None:
    x, v = core.tensor([0.3, -0.5], dtype=D), core.tensor([1.0, 0.5], dtype=D)
    _, found = jvp(grad(lambda x: x.tanh().mul_(2).sum()), (x,), (v,))
    y = x.tanh()
    assert core.allclose(found, -4 * y * (1 - y * y) * v)
