"""Gradients of complex tensors: convention, real arguments, writes to real and imaginary parts. Values are PyTorch's."""

from __future__ import annotations

import pytest

import rushlight_autograd
import rushlight_core as core


def test_the_gradient_is_that_of_both_parts() -> None:
    z = core.tensor([1 + 2j, 3 - 4j], requires_grad=True)
    (z * z.conj()).real.sum().backward()
    assert z.grad.tolist() == [2 + 4j, 6 - 8j]


def test_a_real_argument_has_a_real_gradient() -> None:
    x = core.tensor([1.0, 2.0], requires_grad=True)
    z = core.tensor([1 + 1j, 2 - 1j], requires_grad=True)
    (x * z).abs().square().sum().backward()
    assert x.grad.dtype == core.float32
    assert core.allclose(x.grad, core.tensor([4.0, 20.0]))
    assert core.allclose(z.grad, core.tensor([2 + 2j, 16 - 8j]))


def test_a_part_that_is_written() -> None:
    z = core.tensor([1 + 2j, 3 - 4j], requires_grad=True)
    w = z * 1
    w.real.mul_(3)
    assert w.tolist() == [3 + 2j, 9 - 4j]
    w.abs().square().sum().backward()
    assert core.allclose(z.grad, core.tensor([18 + 4j, 54 - 8j]))


def test_a_part_of_what_was_written_since() -> None:
    z = core.tensor([1 + 2j, 3 - 4j], requires_grad=True)
    w = z * 1
    real = w.real
    w.mul_(2j)
    assert real.tolist() == [-4.0, 8.0]
    real.sum().backward()
    assert z.grad.tolist() == [-2j, -2j]


def test_real_memory_written_as_complex() -> None:
    x = core.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    y = x * 1
    core.view_as_complex(y).mul_(1j)
    assert y.tolist() == [[-2.0, 1.0], [-4.0, 3.0]]
    (y * core.tensor([[1.0, 10.0], [100.0, 1000.0]])).sum().backward()
    assert x.grad.tolist() == [[10.0, -1.0], [1000.0, -100.0]]


def test_a_complex_result_needs_a_gradient() -> None:
    z = core.tensor([1j], requires_grad=True)
    with pytest.raises(RuntimeError):
        (z * 2).sum().backward()
    (z * 2).sum().backward(core.tensor(1j))
    assert z.grad.tolist() == [2j]


def test_acosh_left_of_its_branch_cut() -> None:
    """The derivative is 1 / sinh(acosh(z)) on both sides of the branch cut."""
    z = core.tensor([-2 + 2j, 2 + 2j, -0.5 - 1j], dtype=core.complex128).requires_grad_()
    value = core.acosh(z)
    (found,) = rushlight_autograd.grad(value.real.sum(), z)
    assert core.allclose(found.conj() * core.sinh(value.detach()), core.ones(3, dtype=core.complex128))


def test_the_angle_of_a_real_number_has_no_slope() -> None:
    x = core.tensor([1.0, -2.0, 0.0, float("inf"), float("nan")], requires_grad=True)
    angle = core.angle(x)
    assert core.isnan(angle.detach()).tolist() == [False] * 4 + [True]
    assert rushlight_autograd.grad(angle.sum(), x)[0].tolist() == [0.0] * 5
