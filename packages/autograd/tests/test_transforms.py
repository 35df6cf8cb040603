"""grad, vjp, jvp and linearize: alone, nested, and with outer tensors that require grad."""

from __future__ import annotations

import pytest
from autograd_samples import leaf

import rushlight_core as core
from rushlight_autograd.forward_ad import dual_level, make_dual, unpack_dual
from rushlight_autograd.transforms import grad, grad_and_value, jvp, linearize, vjp

D = core.float64


def numbers(*values: float):
    return core.tensor(values, dtype=D)


def one(value: float):
    return core.tensor(value, dtype=D)


def test_gradients_nest() -> None:
    f = grad(grad(grad(lambda x: x**5)))
    assert f(one(2.0)).item() == pytest.approx(60 * 4)


def test_a_gradient_requires_grad_only_where_something_outside_does() -> None:
    x, w = numbers(1, 2), leaf(2)
    assert not grad(lambda x: (x**3).sum())(x).requires_grad
    g = grad(lambda x: (x**2 * w).sum())(x)
    g.sum().backward()
    assert w.grad.tolist() == [2, 4]
    assert not grad(lambda x: (x * 2 + w).sum())(x).requires_grad  # this gradient does not depend on w


def test_a_gradient_goes_on_into_the_graph_of_its_argument() -> None:
    x = leaf(3)
    grad(lambda x: (x**3).sum())(x).sum().backward()
    assert x.grad.tolist() == pytest.approx([6 * v for v in x.tolist()])
    with core.no_grad():
        assert not grad(lambda x: (x**3).sum())(x).requires_grad


def test_what_is_over_does_not_count() -> None:
    """The graph of the inner gradient 2 w x leads to the inner x, whose transform has ended, so the result is detached."""
    g = grad(lambda w: grad(lambda x: w * x * x)(one(3.0)))(one(2.0))
    assert g.item() == 6
    assert not g.requires_grad


def test_perturbations_are_not_confused() -> None:
    assert grad(lambda x: x * grad(lambda y: x + y)(one(1.0)))(one(2.0)).item() == 1
    inner = lambda x: jvp(lambda y: x + y, (one(1.0),), (one(1.0),))[1]  # noqa: E731
    assert jvp(lambda x: x * inner(x), (one(2.0),), (one(1.0),))[1].item() == 1
    assert grad(lambda x: x * inner(x))(one(2.0)).item() == 1
    assert jvp(lambda x: x * grad(lambda y: x + y)(one(1.0)), (one(2.0),), (one(1.0),))[1].item() == 1


def test_modes_compose_in_any_order() -> None:
    x, v = numbers(0.3, 0.7), numbers(1, 2)
    want = (6 * x * v).tolist()

    def f(x):
        return (x**3).sum()

    assert jvp(grad(f), (x,), (v,))[1].tolist() == pytest.approx(want)
    assert grad(lambda x: jvp(f, (x,), (v,))[1])(x).tolist() == pytest.approx(want)
    assert vjp(grad(f), x)[1](v)[0].tolist() == pytest.approx(want)
    assert jvp(lambda x: jvp(f, (x,), (v,))[1], (x,), (v,))[1].item() == pytest.approx(
        (6 * x * v * v).sum().item()
    )
    assert grad(lambda x: (grad(f)(x) * v).sum())(x).tolist() == pytest.approx(want)


def test_forward_mode_nests() -> None:
    x = numbers(0.3, 0.7)
    ones = core.ones_like(x)

    def f(x):
        return (x**3).sin()

    def along(function):
        return lambda x: jvp(function, (x,), (ones,))[1]

    second = 6 * x * (x**3).cos() - 9 * x**4 * (x**3).sin()
    assert along(along(f))(x).tolist() == pytest.approx(second.tolist())
    third = (6 - 27 * x**6) * (x**3).cos() - 54 * x**3 * (x**3).sin()
    assert along(along(along(f)))(x).tolist() == pytest.approx(third.tolist())


def test_auxiliary_results_have_tangents_of_outer_levels() -> None:
    """cross_entropy saves the logarithm of a sum, which needs tangents of both the inner and the outer level."""
    x, target = numbers(0.3, 0.7).view(1, 2), core.tensor([1])

    def f(x):
        return core.cross_entropy_loss(x, target)

    v = numbers(1, 2).view(1, 2)
    p = x.softmax(-1)
    want = (p * v * v).sum() - (p * v).sum() ** 2
    got = jvp(lambda x: jvp(f, (x,), (v,))[1], (x,), (v,))[1]
    assert got.item() == pytest.approx(want.item())


def test_levels_of_dual_numbers() -> None:
    x = numbers(2.0)
    with dual_level() as outer:
        a = make_dual(x, numbers(1.0))
        with dual_level():
            b = make_dual(a, numbers(3.0))
            y = b * b
            primal, tangent = unpack_dual(y)
            assert tangent.tolist() == [12]
            assert unpack_dual(tangent, level=outer).tangent.tolist() == [6]
            assert unpack_dual(primal, level=outer).tangent.tolist() == [4]
        assert unpack_dual(y).tangent.tolist() == [4]
        with pytest.raises(RuntimeError, match="levels 0 to 0 are open"):
            unpack_dual(y, level=1)


def test_containers() -> None:
    state = {"a": numbers(1, 2), "b": [one(3.0)]}
    g, (value, aux) = grad_and_value(lambda s, k: ((s["a"] * s["b"][0]).sum() * k, s["a"]), has_aux=True)(
        state, 2
    )
    assert g["a"].tolist() == [6, 6]
    assert g["b"][0].item() == 6
    assert value.item() == 18
    assert aux.tolist() == [1, 2]
    assert not aux.requires_grad
    both = grad(lambda x, y: x * y, argnums=(1, 0))(one(2.0), one(5.0))
    assert [g.item() for g in both] == [2, 5]


def test_vjp_may_be_used_many_times() -> None:
    x = numbers(1, 2)
    (product, total), back = vjp(lambda a, b: (a * b, a.sum()), x, x + 1)
    assert product.tolist() == [2, 6]
    assert not product.requires_grad
    assert total.item() == 3
    for _ in range(2):
        a, b = back((numbers(1, 1), one(1.0)))
        assert a.tolist() == [3, 4]
        assert b.tolist() == [1, 2]


def test_vectors_belong_to_their_outputs_where_others_have_no_graph() -> None:
    x = numbers(1, 2)
    _, back = vjp(lambda a: (core.ones(2, dtype=D), a * 3, a.detach(), a**2), x)
    (gradient,) = back((numbers(100, 100), numbers(1, 2), numbers(100, 100), numbers(10, 20)))
    assert gradient.tolist() == [3 * 1 + 2 * 1 * 10, 3 * 2 + 2 * 2 * 20]


def test_linearize() -> None:
    x = numbers(1, 2)
    y, f = linearize(lambda a: {"cube": a**3}, x)
    assert y["cube"].tolist() == [1, 8]
    assert f(numbers(1, 1))["cube"].tolist() == [3, 12]
    assert f(x)["cube"].tolist() == [3, 24]


def test_constant_functions() -> None:
    x = numbers(1, 2)
    assert grad(lambda x: core.tensor(3.0))(x).tolist() == [0, 0]
    assert jvp(lambda x: core.ones(3), (x,), (x,))[1].tolist() == [0, 0, 0]
    with pytest.raises(RuntimeError, match="strict"):
        jvp(lambda x: core.ones(3), (x,), (x,), strict=True)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda x: grad(lambda x: x)(x), r"0-d Tensor, got shape \(2,\)"),
        (lambda x: grad(lambda x: 3.0)(x), "0-d Tensor, got float"),
        (lambda x: grad(lambda x: x.sum(), argnums=2)(x), "2 is out of range for 1"),
        (lambda x: grad(lambda x: x.sum(), argnums=())(x), "at least one"),
        (lambda x: grad(lambda x: x.sum(), has_aux=True)(x), "must return a tuple"),
        (lambda x: grad(lambda x: x.sum())(x.long()), "floating point"),
        (lambda x: grad(lambda x: x.sum())("x"), "must contain only Tensors, got str"),
        (lambda x: vjp(lambda x: x, x)[1]((x,)), "like the output"),
        (lambda x: vjp(lambda x: x, x)[1](x.sum()), "shape of the output"),
        (lambda x: jvp(lambda x: x, x, (x,)), "must be a tuple"),
        (lambda x: jvp(lambda x: x, (x,), (x, x)), "like primals"),
        (lambda x: jvp(lambda x: x, (x,), (x.float(),)), "shape and dtype"),
    ],
)
def test_errors(call, text) -> None:
    with pytest.raises(RuntimeError, match=text):
        call(numbers(1, 2))


def test_an_error_inside_leaves_nothing_behind() -> None:
    def fails(x):
        raise KeyError("mine")

    for transform in (lambda: grad(fails)(one(1.0)), lambda: jvp(fails, (one(1.0),), (one(1.0),))):
        with core.no_grad(), pytest.raises(KeyError, match="mine"):
            transform()
    assert core.is_grad_enabled()
    assert grad(lambda x: x * x)(one(3.0)).item() == 6
