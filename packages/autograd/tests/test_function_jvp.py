"""Function.jvp: tangents computed by a custom rule."""

from __future__ import annotations

import pytest
from autograd_samples import leaf

import rushlight_core as core
from rushlight_autograd import Function, forward_ad, gradcheck
from rushlight_autograd.batching import vmap
from rushlight_autograd.transforms import grad, jvp


class Scaled(Function):
    """The product x y z, with methods that count their calls."""

    calls: list[str] = []

    @staticmethod
    def forward(ctx, x, y, z):
        ctx.save_for_backward(x, y)
        ctx.save_for_forward(x, y)
        ctx.z = z
        return x * y * z

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * y * ctx.z, g * x * ctx.z, None

    @staticmethod
    def jvp(ctx, dx, dy, dz):
        Scaled.calls.append("jvp")
        assert dz is None
        x, y = ctx.saved_tensors
        return ctx.z * (y * dx + x * dy)


def test_the_rule_makes_the_tangent() -> None:
    Scaled.calls.clear()
    x, y = core.tensor([1.0, 2.0]), core.tensor([3.0, 4.0])
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, core.tensor([10.0, 100.0]))
        result = forward_ad.unpack_dual(Scaled.apply(dual, y, 2))
        assert result.primal.tolist() == [6, 16]
        assert result.tangent.tolist() == [60, 800]  # y has no tangent, so its tangent is zero
        assert forward_ad.unpack_dual(Scaled.apply(x, y, 2)).tangent is None
    assert Scaled.calls == ["jvp"]
    assert Scaled.apply(x, y, 2).tolist() == [6, 16]


def test_gradcheck_in_both_modes() -> None:
    gradcheck(lambda a, b: Scaled.apply(a, b, 3), (leaf(3), leaf(3)), check_forward_ad=True)


def test_over_and_under_other_derivatives() -> None:
    one = core.tensor(1.0, dtype=core.float64)
    x = core.tensor(2.0, dtype=core.float64)

    def cube(t):  # returns 2 t^3
        return Scaled.apply(t, t * t, 2)

    assert jvp(cube, (x,), (one,))[1].item() == 24
    # Forward over forward, forward over reverse, reverse over forward: 12 t.
    assert jvp(lambda t: jvp(cube, (t,), (one,))[1], (x,), (one,))[1].item() == 24
    assert jvp(grad(cube), (x,), (one,))[1].item() == 24
    assert grad(lambda t: jvp(cube, (t,), (one,))[1])(x).item() == 24


class Parts(Function):
    given: list[object] = []

    @staticmethod
    def forward(x, y):
        return x + y, x.argmax(), x

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(output[1])

    @staticmethod
    def backward(ctx, g, _, h):
        return g, g

    @staticmethod
    def jvp(ctx, dx, dy):
        Parts.given.append(dy)
        return dx, None, dx


def test_several_outputs_and_absent_tangents() -> None:
    Parts.given.clear()
    with forward_ad.dual_level():
        x = forward_ad.make_dual(core.ones(2), core.full((2,), 5.0))
        total, index, same = Parts.apply(x, core.ones(2))
        assert forward_ad.unpack_dual(total).tangent.tolist() == [5, 5]
        assert forward_ad.unpack_dual(index).tangent is None
        assert forward_ad.unpack_dual(same).tangent.tolist() == [5, 5]
    assert Parts.given == [None]


def _with(rule):
    return type("Wrong", (Scaled,), {"jvp": staticmethod(rule)})


@pytest.mark.parametrize(
    ("rule", "error", "said"),
    [
        (lambda ctx, *t: (t[0], t[0]), RuntimeError, r"2 tangent\(s\), but forward returned 1 output"),
        (lambda ctx, *t: core.ones(3), RuntimeError, r"shape \(3,\)"),
        (lambda ctx, *t: t[0].double(), RuntimeError, "float64"),
        (lambda ctx, *t: 1.0, TypeError, "float as tangent of output 0"),
    ],
)
def test_wrong_tangents(rule, error, said) -> None:
    with forward_ad.dual_level():
        x = forward_ad.make_dual(core.ones(2), core.ones(2))
        with pytest.raises(error, match="Wrong: jvp returned .*" + said):
            _with(rule).apply(x, core.ones(2), 1)


def test_an_error_in_the_rule_keeps_its_type() -> None:
    def rule(ctx, *tangents):
        raise KeyError("mine")

    with forward_ad.dual_level():
        x = forward_ad.make_dual(core.ones(2), core.ones(2))
        with pytest.raises(KeyError, match="mine"):
            _with(rule).apply(x, core.ones(2), 1)


class InPlace(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    def jvp(ctx, dx):
        return dx * 2


def test_writing_in_place_is_refused() -> None:
    with forward_ad.dual_level():
        x = forward_ad.make_dual(core.ones(2), core.ones(2))
        with pytest.raises(NotImplementedError, match="changes an argument in place"):
            InPlace.apply(x)


class Detour(Function):
    @staticmethod
    def forward(ctx, x, mark):
        result = core.tensor(x.tolist()) * 2  # not computed by operators
        if mark:
            ctx.mark_non_differentiable(result)
        return result, x * 3


def test_what_has_lost_its_tangent_is_an_error() -> None:
    with forward_ad.dual_level():
        x = forward_ad.make_dual(core.ones(2), core.ones(2))
        assert forward_ad.unpack_dual(Detour.apply(x, True)[1]).tangent.tolist() == [3, 3]
        with pytest.raises(
            NotImplementedError, match=r"output 0 has no tangent.*\nhint: write a static method jvp"
        ):
            Detour.apply(x, False)
    assert Detour.apply(core.ones(2), False)[0].tolist() == [2, 2]


class Pair(Function):
    """The functions x y and x + y. The result of jvp has an additional factor of 100, to show that it was used."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x, y):
        return x * y, x + y

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_forward(*inputs)

    @staticmethod
    def jvp(ctx, dx, dy):
        x, y = ctx.saved_tensors
        return 100 * (dx * y + x * dy), dx + dy


@pytest.mark.parametrize("y_dim", [0, None])
def test_vmap_takes_the_tangents_of_jvp(y_dim) -> None:
    x = core.tensor([1.0, 2.0])
    y = core.tensor([3.0, 4.0]) if y_dim == 0 else core.tensor(3.0)
    expected = 100 * (x * y + x * x)
    inner = vmap(lambda x, y: jvp(Pair.apply, (x, y), (x, x)), in_dims=(0, y_dim))(x, y)
    assert inner[1][0].tolist() == expected.tolist()
    _, (tangent, total) = jvp(vmap(Pair.apply, in_dims=(0, y_dim)), (x, y), (x, core.ones_like(y)))
    assert tangent.tolist() == (100 * (x * y + x)).tolist()
    assert total.tolist() == (x + 1).tolist()
