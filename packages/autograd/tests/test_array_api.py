"""Gradients through the array API namespace, and through slices that run backwards."""

from __future__ import annotations

import pytest

import rushlight_autograd
import rushlight_core as core
from rushlight_autograd.batching import vmap
from rushlight_core import array_api


def test_functions_of_the_namespace_have_gradients() -> None:
    xp = array_api

    def program(x: core.Tensor, y: core.Tensor) -> core.Tensor:
        z = xp.maximum(xp.multiply(x, 2.0), xp.permute_dims(y, (1, 0)))
        z = xp.concat([z, xp.flip(x, axis=1)], axis=0)
        z = z - xp.max(z, axis=(0, 1), keepdims=True)
        z = xp.take(xp.sort(z, axis=0), core.tensor([0, -1]), axis=1)
        return xp.sum(xp.var(z, axis=1)) + xp.prod(xp.linalg.solve(x[:, :2], y[0])) + xp.linalg.vector_norm(z)

    x = core.tensor([[1.0, 2.5, -0.5], [3.0, -2.0, 0.7]], dtype=core.float64, requires_grad=True)
    y = core.tensor([[0.3, 1.1], [9.0, -0.4], [2.2, 5.0]], dtype=core.float64, requires_grad=True)
    assert rushlight_autograd.gradcheck(program, (x, y))


def test_steps_backwards_have_gradients() -> None:
    t = core.arange(5.0).requires_grad_()
    (t[::-2] * core.tensor([1.0, 2.0, 3.0])).sum().backward()
    assert t.grad is not None
    assert t.grad.tolist() == [3.0, 0.0, 2.0, 0.0, 1.0]

    written = core.zeros(4).requires_grad_()
    value = core.tensor([1.0, 2.0], requires_grad=True)
    copy = written * 1
    copy[2:0:-1] = value
    assert copy.tolist() == [0.0, 2.0, 1.0, 0.0]
    (copy * core.arange(4.0)).sum().backward()
    assert value.grad is not None
    assert written.grad is not None
    assert (value.grad.tolist(), written.grad.tolist()) == ([2.0, 1.0], [0.0, 0.0, 0.0, 3.0])


@pytest.mark.parametrize("step", [-1, -2])
def test_steps_backwards_in_a_batch(step: int) -> None:
    x = core.arange(12.0).reshape(3, 4)
    assert vmap(lambda row: row[::step])(x).tolist() == x[:, ::step].tolist()
