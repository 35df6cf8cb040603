"""Gradients of operators over rows of few elements, which are computed for several rows at a time."""

import pytest

import rushlight_autograd as autograd
import rushlight_core as core

LENGTHS = [1, 2, 7, 8, 9, 16, 17, 33, 63, 64, 65, 100]
COUNTS = [1, 8, 9, 17, 100]  # of rows


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("dtype", [core.float32, core.float64])
def test_softmax(dtype: core.dtype, length: int) -> None:
    tolerance = 1e-5 if dtype == core.float32 else 1e-12
    core.manual_seed(0)
    for count in COUNTS:
        x = (3 * core.randn(count, length, dtype=dtype)).requires_grad_()
        grad = core.randn(count, length, dtype=dtype)
        y, g = core.softmax(x.detach().double(), 1), grad.double()
        (found,) = autograd.grad(core.softmax(x, 1), x, grad)
        assert core.allclose(found.double(), y * (g - (g * y).sum(1, keepdim=True)), tolerance, tolerance)
        (found,) = autograd.grad(core.log_softmax(x, 1), x, grad)
        assert core.allclose(found.double(), g - y * g.sum(1, keepdim=True), tolerance, 10 * tolerance)


@pytest.mark.parametrize("length", LENGTHS)
def test_cross_entropy(length: int) -> None:
    core.manual_seed(0)
    for count in COUNTS:
        x = (3 * core.randn(count, length)).requires_grad_()
        target = core.randint(length, (count,))
        (found,) = autograd.grad(core.cross_entropy_loss(x, target, reduction=2), x)
        expected = core.softmax(x.detach().double(), 1)
        expected[core.arange(count), target] -= 1
        assert core.allclose(found.double(), expected, 1e-5, 1e-6)
