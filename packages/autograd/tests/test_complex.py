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


LARGE = {
    **dict.fromkeys(("asin", "acos", "asinh", "acosh"), 1),
    **dict.fromkeys(("atan", "atanh"), 2),
}  # the derivative is proportional to this negative power


def derivative(name: str, z: core.Tensor) -> core.Tensor:
    z = z.detach().requires_grad_()
    value = getattr(core, name)(z)
    return rushlight_autograd.grad(value, z, core.ones_like(value))[0].conj()


@pytest.mark.parametrize("name", LARGE)
@pytest.mark.parametrize(
    ("dtype", "start", "scales"),
    [(core.complex64, 1e8, (1e4, 1e10, 1e28)), (core.complex128, 1e8, (1e10, 1e142, 1e290))],
)
def test_derivatives_of_large_complex_numbers(
    name: str, dtype: core.dtype, start: float, scales: tuple[float, ...]
) -> None:
    angles = core.tensor([0.3, 1.4, 2.0, 2.9, -0.3, -1.4, -2.0, -2.9], dtype=core.float64)
    z = (start * core.exp(1j * angles)).to(dtype)
    first = derivative(name, z)
    assert core.allclose((first * z ** LARGE[name]).abs(), core.ones(8, dtype=first.real.dtype), rtol=1e-5)
    for scale in scales:
        found, factor = derivative(name, z * scale), scale if LARGE[name] == 1 else scale * scale
        assert bool(core.isfinite(found).all())
        if start * factor < core.finfo(dtype).max / 1e10:
            assert core.allclose(found * factor, first, rtol=1e-5, atol=0), scale


@pytest.mark.parametrize(
    ("dtype", "largest"), [(core.float16, 6e4), (core.float32, 1e38), (core.float64, 1e307)]
)
def test_derivatives_of_large_real_numbers(dtype: core.dtype, largest: float) -> None:
    x = core.tensor([300.0, 1e4, largest / 10, largest], dtype=dtype)
    assert core.allclose(derivative("asinh", x) * x, core.ones(4, dtype=dtype), rtol=1e-2)
    assert core.allclose(derivative("asinh", -x) * x, core.ones(4, dtype=dtype), rtol=1e-2)
    assert core.allclose(derivative("acosh", x) * x, core.ones(4, dtype=dtype), rtol=1e-2)
    # The square of the derivative's root is a subnormal number in float16.
    assert core.allclose(derivative("atan", x[:1]) * x[:1] * x[:1], core.ones(1, dtype=dtype), rtol=1e-2)


def test_derivatives_near_branch_points() -> None:
    """The differences from the branch points keep their digits."""
    apart = 3e-4 * core.exp(1j * core.tensor([0.5, 2.0, -2.5]))
    for name, point in (("asin", 1), ("acos", -1), ("atanh", 1), ("atan", 1j), ("asinh", 1j), ("asinh", -1j)):
        z = (point + apart).to(core.complex64)
        exact = derivative(name, z.to(core.complex128))
        assert core.allclose(derivative(name, z).to(core.complex128), exact, rtol=2e-6), name


def test_sigmoid_of_large_complex_numbers_has_a_derivative() -> None:
    z = core.tensor([-80 + 1j, -1e4 + 3j, 1e4 + 3j], dtype=core.complex64)
    found = derivative("sigmoid", z)
    assert core.allclose(found[:1] / core.exp(z[:1]), core.ones(1, dtype=core.complex64))
    assert found[1:].tolist() == [0, 0]
