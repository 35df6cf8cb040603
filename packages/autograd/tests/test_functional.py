"""Products with Jacobians and Hessians, compared with known values."""

from __future__ import annotations

import pytest

import rushlight_core as core
from rushlight_autograd import functional

A = core.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, -6.0]], dtype=core.float64)
X = core.tensor([0.5, -1.0], dtype=core.float64)
V = core.tensor([2.0, 1.0], dtype=core.float64)


def linear(x):
    return A @ x


def cubic(x):
    return (x**3).sum() + x[0] * x[1]


def second(x):
    return core.diag(6 * x) + core.tensor([[0.0, 1.0], [1.0, 0.0]], dtype=core.float64)


def close(a, b) -> bool:
    return a.shape == b.shape and bool(core.allclose(a, b))


def test_products_with_a_jacobian() -> None:
    u = core.tensor([1.0, -1.0, 2.0], dtype=core.float64)
    y, left = functional.vjp(linear, X, u)
    assert close(y, A @ X)
    assert close(left, A.t() @ u)
    y, right = functional.jvp(linear, X, V)
    assert close(y, A @ X)
    assert close(right, A @ V)
    assert not left.requires_grad
    assert not right.requires_grad


def test_a_vector_may_be_left_out_of_one_element() -> None:
    assert close(functional.vjp(cubic, X)[1], 3 * X**2 + X.flip(0))
    one = core.tensor([3.0], dtype=core.float64)
    assert close(functional.jvp(lambda x: x**2, one)[1], 2 * one)
    with pytest.raises(RuntimeError, match=r"vjp\(v\): may be left out only if the output"):
        functional.vjp(linear, X)
    with pytest.raises(RuntimeError, match=r"jvp\(v\): must have the shapes of the input"):
        functional.jvp(linear, X, core.ones(3))


@pytest.mark.parametrize("strategy", ["reverse-mode", "forward-mode"])
def test_jacobian(strategy: str) -> None:
    assert close(functional.jacobian(linear, X, strategy=strategy), A)

    def two(x, y):
        return x * y, x.sum()

    found = functional.jacobian(two, (X, V), strategy=strategy)
    zero = core.zeros(2, dtype=core.float64)
    wanted = ((core.diag(V), core.diag(X)), (core.ones_like(X), zero))
    assert all(
        close(a, b) for row, other in zip(found, wanted, strict=True) for a, b in zip(row, other, strict=True)
    )
    with pytest.raises(ValueError, match="strategy"):
        functional.jacobian(linear, X, strategy="sideways")


@pytest.mark.parametrize("strategy", ["reverse-mode", "forward-mode"])
def test_hessian(strategy: str) -> None:
    assert close(functional.hessian(cubic, X, outer_jacobian_strategy=strategy), second(X))
    (a, b), (c, d) = functional.hessian(
        lambda x, y: (x * y**2).sum(), (X, V), outer_jacobian_strategy=strategy
    )
    assert close(a, core.zeros(2, 2, dtype=core.float64))
    assert close(b, core.diag(2 * V))
    assert close(c, core.diag(2 * V))
    assert close(d, core.diag(2 * X))
    with pytest.raises(RuntimeError, match=r"hessian\(func\)"):
        functional.hessian(linear, X)


@pytest.mark.parametrize("product", [functional.vhp, functional.hvp])
def test_products_with_a_hessian(product) -> None:
    y, found = product(cubic, X, V)
    assert close(y, cubic(X))
    assert close(found, second(X) @ V)
    assert not found.requires_grad
    x = X.clone().requires_grad_()
    again = product(cubic, x, V, create_graph=True)[1]
    again.sum().backward()
    assert close(x.grad, 6 * V)


def test_strict_finds_what_does_not_depend() -> None:
    def first(x, y):
        return x * 2

    one = core.ones(1)
    assert functional.vjp(first, (one, one))[1][1].item() == 0
    for call in (functional.vjp, functional.jacobian, functional.hessian):
        with pytest.raises(RuntimeError, match=r"strict.*does not depend"):
            call(first, (one, one), strict=True)
    for product in (functional.vhp, functional.hvp):
        with pytest.raises(RuntimeError, match=r"strict.*does not depend"):
            product(first, (one, one), (one, one), strict=True)
    with pytest.raises(RuntimeError, match=r"jvp\(strict\)"):
        functional.jvp(lambda x: core.ones(2), one, one, strict=True)


def test_a_result_may_be_differentiated_again() -> None:
    x = X.clone().requires_grad_()
    functional.vjp(cubic, x, create_graph=True)[1].sum().backward()
    assert close(x.grad, second(X).sum(0))
    x.grad = None
    functional.jacobian(lambda x: x**2, x, create_graph=True).sum().backward()
    assert close(x.grad, core.full((2,), 2.0, dtype=core.float64))
