"""Derivatives of derivatives: all orders of nesting agree."""

from __future__ import annotations

import pytest

import rushlight_core as core
from rushlight_autograd.checkpoint import checkpoint
from rushlight_autograd.transforms import grad, grad_and_value, jvp, vjp
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


def test_tangents_of_values_of_an_inner_transform_have_no_graph() -> None:
    x = core.tensor([1.0, 2.0], dtype=D)
    ones = core.ones_like(x)

    def f(x: Tensor) -> Tensor:
        return (x**3).sum()

    (_, value), (_, along) = jvp(grad_and_value(f), (x,), (ones,))
    assert value.item() == 9
    assert along.numpy() == 15
    w = core.tensor(2.0, dtype=D, requires_grad=True)
    _, along = jvp(lambda x: vjp(lambda x: f(x * w), x)[0], (x,), (ones,))
    (gradient,) = vjp(lambda t: t * 1, along)[1](core.ones((), dtype=D))
    assert gradient.item() == 1
    along.backward()  # the tangent 3 w^3 (x_1^2 + x_2^2) depends on a tensor outside of the transforms
    assert w.grad.item() == pytest.approx(9 * 4 * 5)
