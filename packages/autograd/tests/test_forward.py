"""Forward mode, and functions that combine both modes."""

from __future__ import annotations

import weakref

import pytest
from autograd_samples import leaf

import rushlight_core as core
from rushlight_autograd import functional, grad
from rushlight_autograd.forward_ad import (
    dual_level,
    enter_dual_level,
    exit_dual_level,
    make_dual,
    unpack_dual,
)
from rushlight_autograd.transforms import jvp as functional_jvp


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


@pytest.mark.parametrize("mode", [core.enable_grad, core.no_grad])
def test_writing_a_view_changes_the_tangent_of_its_tensor(mode) -> None:
    """no_grad leaves forward mode on. A view that is made under no_grad requires no gradient, nor do its views."""
    x, t = leaf(3), leaf(3).detach()
    with dual_level():
        with mode():
            dual = make_dual(x.detach(), t)
            whole = core.zeros(3, dtype=x.dtype)
            whole[1] = dual[1]
            assert unpack_dual(whole).tangent.tolist() == [0, t[1].item(), 0]
            doubled = dual * 2
            doubled[1] = 5.0
            doubled[:2].mul_(3)
            assert unpack_dual(doubled).tangent.tolist() == pytest.approx(
                [6 * t[0].item(), 0, 2 * t[2].item()]
            )
        with core.no_grad():
            part = (x * 1)[1:]
        with core.no_grad():
            base = x * 1
            rows = base.view(3, 1)
        assert not part.requires_grad
        assert not rows.requires_grad
        assert not rows[0].requires_grad
        assert not rows.view(3).requires_grad


def test_a_tangent_has_the_layout_of_its_tensor() -> None:
    """If a view of a tensor is possible, it is also possible for the tangent."""
    x, t = leaf(2, 3).detach(), leaf(3, 2).detach().t()
    assert functional_jvp(lambda x: x.view(6), (x,), (t,))[1].tolist() == t.reshape(6).tolist()
    with dual_level():
        dual = make_dual(x, t)
        assert unpack_dual(dual).tangent.stride() == x.stride()
        assert unpack_dual(make_dual(x.t(), t.t()).t().view(6)).tangent.tolist() == t.reshape(6).tolist()


def test_what_is_detached_in_place_has_no_tangent() -> None:
    x, t = leaf(3).detach(), leaf(3).detach()
    with dual_level():
        y = make_dual(x, t) * 2
        assert unpack_dual(y.detach_()).tangent is None
        z = make_dual(x, t) * 2
        for view in (z[:2], z.tile(()), z.t()):
            with pytest.raises(RuntimeError, match="view"):
                view.detach_()
        assert unpack_dual(z).tangent is not None
        fixed = x * 2
        assert unpack_dual(fixed[:2].detach_()).tangent is None


def test_make_dual_checks() -> None:
    with pytest.raises(RuntimeError, match="dual_level"):
        make_dual(core.ones(2), core.ones(2))
    with dual_level(), pytest.raises(RuntimeError, match="shape and dtype"):
        make_dual(core.ones(2), core.ones(3))


def test_levels_are_closed_from_the_innermost() -> None:
    outer, inner = enter_dual_level(), enter_dual_level()
    try:
        assert (outer, inner) == (0, 1)
        with pytest.raises(RuntimeError, match="level 0 is not the innermost of the 2 open levels"):
            exit_dual_level(level=outer)
    finally:
        exit_dual_level(level=inner)
        exit_dual_level()
    with pytest.raises(RuntimeError, match="the 0 open levels"):
        exit_dual_level()


def test_forward_over_reverse() -> None:
    x = leaf(3)
    direction = core.ones(3, dtype=core.float64)
    with dual_level():
        dual = make_dual(x, direction)
        (g,) = grad(dual * dual * dual, dual, core.ones(3, dtype=core.float64), create_graph=True)
        tangent = unpack_dual(g).tangent
    assert tangent.tolist() == pytest.approx([6 * v for v in x.tolist()])


def test_a_saved_result_has_its_tangent() -> None:
    """The node of tanh saves tanh(x) before the tangent of tanh(x) is computed."""
    x = leaf(3)
    with dual_level():
        dual = make_dual(x, core.ones(3, dtype=core.float64))
        (g,) = grad(dual.tanh().sum(), dual, create_graph=True)
        tangent = unpack_dual(g).tangent
    y = x.detach().tanh()
    assert tangent.tolist() == pytest.approx((-2 * y * (1 - y * y)).tolist())


def test_a_real_view_of_a_part_of_complex_numbers_has_its_tangent() -> None:
    part = core.ones(6, dtype=core.complex128)[2:].detach()  # a root with an offset in its memory
    numbers = core.view_as_real(part)
    tangent = core.arange(4, dtype=core.float64) * (1 + 2j)
    with dual_level():
        part.mul_(make_dual(core.ones(4, dtype=core.complex128), tangent))
        found = unpack_dual(numbers).tangent
    assert found.tolist() == core.view_as_real(tangent).tolist()


def test_the_end_of_a_level_takes_tangents_off() -> None:
    x = leaf(3)
    with dual_level():
        dual = make_dual(x, core.ones(3, dtype=core.float64))
        y = dual.tanh()
        alive = weakref.ref(unpack_dual(y).tangent)
    assert alive() is None  # although the graphs of y and of its tangent referred to each other
    with dual_level():
        assert unpack_dual(y).tangent is None
        assert unpack_dual(y * 2).tangent is None


def test_an_in_place_operator_writes_the_tangent_of_what_a_view_shows() -> None:
    base, source = core.zeros(2, 3, dtype=core.float64), leaf(3).detach()
    index = core.tensor([[2, 0, 1]])
    with dual_level():
        base[1:].scatter_(1, index, make_dual(source, source * 10).view(1, 3))
        tangent = unpack_dual(base).tangent
        assert tangent[0].tolist() == [0, 0, 0]
        assert tangent[1, [2, 0, 1]].tolist() == pytest.approx((source * 10).tolist())
        base[1:].scatter_(1, index[:, :1], 7.0)
        assert unpack_dual(base).tangent[1, 2].item() == 0


@pytest.mark.parametrize("mode", [core.no_grad, core.inference_mode, core.enable_grad])
def test_a_write_to_a_view_reaches_the_tangent_of_its_base(mode) -> None:
    """Whether gradients are enabled does not matter, also for views that exist before the base becomes dual."""
    x = core.tensor([2.0, 3.0])
    with dual_level(), mode():
        dual = make_dual(x, core.tensor([10.0, 20.0]))
        base = core.zeros(3)
        before, part = base[:], base[1:]
        of_part = part[:1]
        part.copy_(dual)
        for view, want in (
            (base, [0, 10, 20]),
            (before, [0, 10, 20]),
            (of_part, [10]),
            (base[::2], [0, 20]),
            (before * 2, [0, 20, 40]),
        ):
            assert unpack_dual(view).tangent.tolist() == want
        of_part.mul_(2)
        assert unpack_dual(base).tangent.tolist() == [0, 20, 20]
        primal = unpack_dual(base).primal
        assert unpack_dual(primal).tangent is None
        assert unpack_dual(primal[1:]).tangent is None


def test_fill_with_a_dual_number() -> None:
    with dual_level():
        value = make_dual(core.tensor(2.0), core.tensor(3.0))
        assert unpack_dual(core.zeros(2).fill_(value)).tangent.tolist() == [3, 3]


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


def test_the_primal_of_a_result_has_no_tangent() -> None:
    with dual_level():
        x = make_dual(leaf(3), core.ones(3, dtype=core.float64))
        for dual in (x, x * x, (x * x)[1:], x.exp().view(3, 1)):
            primal = unpack_dual(dual).primal
            assert unpack_dual(primal).tangent is None
            assert unpack_dual(primal * 2).tangent is None
            assert primal.grad_fn is not None
            assert unpack_dual(dual).tangent is not None


@pytest.mark.parametrize("name", ["expand_as", "view_as"])
def test_a_view_in_the_shape_of_a_dual_tensor_follows_its_root(name: str) -> None:
    def f(like, x):
        root = core.ones(2)
        view = getattr(root, name)(like)
        root.copy_(x)  # the root gets its tangent after the view is made
        return root * 1, view * 1

    like, x = core.ones(1, 2), core.tensor([3.0, 4.0])
    tangent = core.tensor([0.5, 0.25])
    _, (of_root, of_view) = functional_jvp(f, (like, x), (core.ones(1, 2), tangent))
    assert of_root.tolist() == [0.5, 0.25]
    assert of_view.tolist() == [[0.5, 0.25]]


def test_a_pooling_window_in_the_padding_has_no_derivative() -> None:
    """With dilation a window may contain no element; its value is minus infinity for any input."""
    window = ((2, 1), (1, 1), (1, 0), (2, 1))
    x = leaf(1, 1, 2)

    def pool(t):  # type: ignore[no-untyped-def]
        return core.max_pool2d(t, *window)

    value, tangent = functional_jvp(pool, (core.ones(1, 1, 2),), (core.ones(1, 1, 2),))
    assert value.tolist() == [[[-float("inf")] * 2]]
    assert tangent.tolist() == [[[0.0, 0.0]]]
    assert core.max_pool2d_with_indices(x, *window)[1].tolist() == [[[-1, -1]]]
    (found,) = grad(pool(x).sum(), (x,))
    assert found.tolist() == [[[0.0, 0.0]]]


def test_an_index_beyond_the_plane_is_an_error() -> None:
    for index in (4, -2):
        values, indices = core.max_pool2d_with_indices(leaf(1, 2, 2), (2, 2))
        indices.data.fill_(index)  # without a new version
        with pytest.raises(IndexError, match="an index is out of range for the 4 elements of one channel"):
            values.sum().backward()


VIEWS = {
    "base": lambda c: c,
    "slice": lambda c: c[3:7],
    "slice of a slice": lambda c: c[2:10][1:5],
    "every other": lambda c: c[1::2],
    "matrix": lambda c: c.view(3, 4)[1:],
    "transposed": lambda c: c.view(3, 4).t()[1:],
}
STRIDED = {
    "read": lambda c, v: v.as_strided((2, 3), (3, 1), 1) * 2,
    "write": lambda c, v: (v.as_strided((2, 3), (3, 1), 1).mul_(3), c)[1],
    "write after the base": lambda c, v: (c.mul_(2), v.as_strided((2, 3), (3, 1), 1).mul_(3), c)[2],
    "write before the view is read": lambda c, v: (v.as_strided((2, 3), (3, 1), 1).mul_(3), v * 1)[1],
    "write through a part": lambda c, v: (v.as_strided((2, 3), (3, 1), 1)[:, 1:].mul_(3), c)[1],
    "in place": lambda c, v: v.as_strided_((2, 3), (3, 1), 1) * 2,
    "in place, then written": lambda c, v: (v.as_strided_((2, 3), (3, 1), 1).mul_(3), c)[1],
}


@pytest.mark.parametrize("strided", STRIDED)
@pytest.mark.parametrize("view", VIEWS)
def test_as_strided_of_a_view_reaches_the_elements_of_its_base(view: str, strided: str) -> None:
    def f(x: core.Tensor) -> core.Tensor:
        c = x.clone()
        return STRIDED[strided](c, VIEWS[view](c))

    x, t = core.arange(12, dtype=core.float64), core.arange(12, dtype=core.float64).add(1).sqrt()
    value, tangent = functional_jvp(f, (x,), (t,))
    # These functions are linear.
    assert value.tolist() == f(x).tolist()
    assert tangent.flatten().tolist() == pytest.approx(f(t).flatten().tolist())
