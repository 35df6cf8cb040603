"""Forward mode, and the functions made of both modes."""

from __future__ import annotations

import pytest
from autograd_samples import leaf

import rushlight_core as core
from rushlight_autograd import functional, grad
from rushlight_autograd.forward_ad import dual_level, make_dual, unpack_dual


def test_a_tangent_follows_the_operators() -> None:
    x, t = leaf(3).detach(), leaf(3).detach()
    with dual_level():
        y = make_dual(x, t).exp() * 2
        primal, tangent = unpack_dual(y)
    assert primal.tolist() == pytest.approx((x.exp() * 2).tolist())
    assert tangent.tolist() == pytest.approx((x.exp() * 2 * t).tolist())


def test_constants_have_no_tangent() -> None:
    with dual_level():
        assert unpack_dual(core.ones(2)).tangent is None


def test_make_dual_checks() -> None:
    with pytest.raises(RuntimeError, match="dual_level"):
        make_dual(core.ones(2), core.ones(2))
    with dual_level(), pytest.raises(RuntimeError, match="shape and dtype"):
        make_dual(core.ones(2), core.ones(3))


def test_forward_over_reverse() -> None:
    x = leaf(3)
    direction = core.ones(3, dtype=core.float64)
    with dual_level():
        dual = make_dual(x, direction)
        (g,) = grad(dual * dual * dual, dual, core.ones(3, dtype=core.float64), create_graph=True)
        tangent = unpack_dual(g).tangent
    assert tangent.tolist() == pytest.approx([6 * v for v in x.tolist()])


def test_functional() -> None:
    x = leaf(2).detach()

    def f(x):
        return x * x * x

    _, tangent = functional.jvp(f, x, core.ones(2, dtype=core.float64))
    _, product = functional.vjp(f, x, core.ones(2, dtype=core.float64))
    want = [3 * v * v for v in x.tolist()]
    assert tangent.tolist() == pytest.approx(want)
    assert product.tolist() == pytest.approx(want)
    jacobian = functional.jacobian(f, x)
    assert jacobian.diagonal().tolist() == pytest.approx(want)
    assert jacobian.select(0, 0).select(0, 1).item() == 0.0
