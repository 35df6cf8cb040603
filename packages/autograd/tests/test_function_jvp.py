"""Function.jvp: tangents computed by a custom rule."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from autograd_samples import leaf

import rushlight_core as core
from rushlight_autograd import Function, forward_ad, functional, gradcheck, gradgradcheck
from rushlight_autograd.batching import vmap
from rushlight_autograd.graph import saved_tensors_hooks
from rushlight_autograd.jacobians import hessian, jacfwd, jacrev
from rushlight_autograd.transforms import grad, jvp, vjp
from rushlight_autograd.tree import flatten
from rushlight_core import Tensor


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


# --- random nestings of transforms ---
# A Function with random features must have the same derivatives as the operators of its forward, for all nestings.


def operators(x: Tensor, w: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    y = x.exp() * w
    return y, x.sin() + y, x.view_as(x)


def without_operators(x: Tensor, w: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the values of `operators`, which have no derivatives."""
    return tuple(core.tensor(t.tolist(), dtype=core.float64) for t in operators(x, w))  # type: ignore[return-value]


def custom(draw: random.Random, forward: Callable[..., Any], splits: bool) -> type[Function]:
    """Return a Function that saves its inputs, its first output, or a view that it returns."""
    saves = draw.choice(["inputs", "an output", "a view"])

    def save(ctx, x, w, y, v):
        saved = {"inputs": (x, w), "an output": (x, w, y), "a view": (v, w, y)}[saves]
        ctx.save_for_backward(*saved)
        ctx.save_for_forward(*saved)

    def load(ctx):
        x, w, *y = ctx.saved_tensors
        return x, w, y[0] if y else x.exp() * w

    class Custom(Function):
        generate_vmap_rule = splits

        @staticmethod
        def backward(ctx, g, h, u):
            x, _, y = load(ctx)
            return (g + h) * y + h * x.cos() + u, (g + h) * x.exp()

        @staticmethod
        def jvp(ctx, dx, dw):
            x, _, y = load(ctx)
            dy = dx * y + x.exp() * dw
            return dy, dx * x.cos() + dy, dx

    def joint(ctx, x, w):
        output = forward(x, w)
        save(ctx, x, w, output[0], output[2])
        return output

    def setup_context(ctx, inputs, output):
        save(ctx, *inputs, output[0], output[2])

    methods = {"forward": forward, "setup_context": setup_context} if splits else {"forward": joint}
    return type("Random", (Custom,), {name: staticmethod(method) for name, method in methods.items()})


def parts(result: Any) -> list[Tensor]:
    return flatten(result)[0]


def total(result: Any) -> Tensor:
    return sum((t * t).sum() * (i + 1) for i, t in enumerate(parts(result)))


V = core.tensor([0.5, -1.0, 0.25], dtype=core.float64)
ROWS = core.tensor([[1.0, 2.0, -1.0], [0.5, 0.5, 1.0]], dtype=core.float64)
OF_ONE: dict[str, Callable[[Callable[..., Any]], Callable[..., Any]]] = {
    "grad": lambda f: grad(lambda x: total(f(x))),
    "vjp": lambda f: lambda x: vjp(lambda x: total(f(x)), x)[1](core.tensor(1.5, dtype=core.float64)),
    "jvp": lambda f: lambda x: jvp(f, (x,), (V,)),
}
TRANSFORMS = {
    **OF_ONE,
    "jacrev": lambda f: jacrev(lambda x: parts(f(x))[-1] + parts(f(x))[0]),
    "jacfwd": lambda f: jacfwd(lambda x: parts(f(x))[-1] + parts(f(x))[0]),
    "hessian": lambda f: hessian(lambda x: total(f(x))),
    "vmap": lambda f: lambda x: vmap(lambda row: tuple(parts(f(row))))(ROWS * x),
    "vmap of a factor": lambda f: lambda x: vmap(lambda row: tuple(parts(f(x * row))))(ROWS),
}


def check_nesting(seed: int, kind: str) -> None:
    draw = random.Random(seed)
    splits = kind != "joint"
    names = list(OF_ONE if kind == "without operators" else TRANSFORMS)
    if not splits:
        names = [name for name in names if "vmap" not in name]
    nesting = [draw.choice(names) for _ in range(draw.randint(1, 4))]
    function = custom(draw, without_operators if kind == "without operators" else operators, splits)
    x = core.tensor([0.3, -0.4, 0.7], dtype=core.float64)
    w = core.tensor([1.5, 0.5, -0.5], dtype=core.float64)
    use = draw.choice([lambda f: lambda x: f(x, w), lambda f: lambda x: f(x, x * x + w)])
    found, want = use(function.apply), use(operators)
    for name in nesting:
        found, want = TRANSFORMS[name](found), TRANSFORMS[name](want)
    for a, b in zip(parts(found(x)), parts(want(x)), strict=True):
        assert a.shape == b.shape, nesting
        assert core.allclose(a, b), nesting


@pytest.mark.parametrize("kind", ["split", "joint", "without operators"])
def test_all_nestings_agree_with_operators(kind: str) -> None:
    for seed in range(80):
        check_nesting(seed, kind)


class Exponential(Function):
    """A Function that saves only its output."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return x.exp()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output)
        ctx.save_for_forward(output)

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0]

    @staticmethod
    def jvp(ctx, t):
        return t * ctx.saved_tensors[0]


def test_second_derivatives_of_a_function_that_saves_its_output() -> None:
    x = core.tensor([0.3, 0.7], dtype=core.float64)
    want = x.exp().diag()

    def f(x):
        return Exponential.apply(x).sum()

    assert core.allclose(hessian(f)(x), want)
    assert core.allclose(
        functional.hessian(f, x, outer_jacobian_strategy="forward-mode", vectorize=True), want
    )
    assert core.allclose(vmap(hessian(f))(core.stack([x, x])), core.stack([want, want]))
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x.clone().requires_grad_(), core.ones_like(x))
        (gradient,) = core.autograd.grad(f(dual), dual, create_graph=True)
        assert core.allclose(forward_ad.unpack_dual(gradient).tangent, x.exp())
    leaf = x.clone().requires_grad_()
    gradgradcheck(Exponential.apply, (leaf,), check_fwd_over_rev=True)


def test_saved_outputs_that_hooks_pack_have_tangents() -> None:
    x = core.tensor([0.3, 0.7], dtype=core.float64)

    def f(x):
        with saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
            return Exponential.apply(x).sum()

    assert core.allclose(hessian(f)(x), x.exp().diag())


class Tripled(Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return x * 3

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, g):
        return vjp(lambda g: g * 3, g)[1](g)[0]

    @staticmethod
    def jvp(ctx, t):
        return vmap(lambda row: vjp(lambda u: u * 3, row)[1](row)[0])(t)


def test_methods_that_call_transforms_run_in_vmap() -> None:
    x = core.arange(12.0, dtype=core.float64).view(2, 3, 2)
    want = 3 * core.eye(4, dtype=core.float64).view(2, 2, 2, 2)
    rows = x[:, :2]
    for transform in (jacfwd, jacrev):
        assert core.allclose(vmap(transform(Tripled.apply))(rows), core.stack([want, want]))
        assert core.allclose(transform(vmap(Tripled.apply))(rows[0]), want)
    curvature = vmap(hessian(lambda x: (Tripled.apply(x) ** 2).sum()))(rows)
    assert core.allclose(curvature, core.stack([6 * want, 6 * want]))


def test_a_tensor_of_the_vmap_around_it_must_be_an_argument() -> None:
    x = core.arange(6.0).view(3, 2)

    def f(x):
        class Captures(Tripled):
            @staticmethod
            def forward(y):
                return y * x

        return Captures.apply(x * 2)

    with pytest.raises(RuntimeError, match="pass the tensor to the Function as an argument"):
        vmap(f)(x)


class SlopeOfCube(Function):
    """The function 3 x^2, computed in forward mode. Its derivative is computed in forward mode, too."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return jvp(lambda u: u**3, (x,), (core.ones_like(x),))[1]

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx, g):
        return g * jvp(lambda u: 3 * u**2, ctx.saved_tensors, (core.ones_like(g),))[1]

    @staticmethod
    def jvp(ctx, t):
        return jvp(lambda u: 3 * u**2, ctx.saved_tensors, (t,))[1]


def test_methods_that_use_forward_mode() -> None:
    x = core.tensor([0.3, 0.7], dtype=core.float64)
    values, slopes = jvp(SlopeOfCube.apply, (x,), (core.ones_like(x),))
    assert core.allclose(values, 3 * x**2)
    assert core.allclose(slopes, 6 * x)
    for name, transform in TRANSFORMS.items():
        for outer_name, outer in TRANSFORMS.items():
            y = core.tensor([0.3, -0.4, 0.7], dtype=core.float64)
            found = parts(outer(transform(SlopeOfCube.apply))(y))
            want = parts(outer(transform(lambda x: 3 * x**2))(y))
            for a, b in zip(found, want, strict=True):
                assert core.allclose(a, b), (name, outer_name)


# --- reverse mode over the tangents of a Function without jvp ---


def without_jvp(draw: random.Random, splits: bool) -> type[Function]:
    function = custom(draw, operators, splits)
    function.jvp = Function.jvp  # type: ignore[method-assign]
    function._has_jvp = False
    return function


def with_factor(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x: f(x, x * x + 0.5)


REVERSE = {"grad", "vjp", "jacrev", "hessian"}
FORWARD = {"jvp", "jacfwd", "hessian"}


@pytest.mark.parametrize("splits", [True, False])
def test_nestings_without_jvp_are_right_or_refused(splits: bool) -> None:
    refused = 0
    for seed in range(150):
        draw = random.Random(seed)
        names = list(TRANSFORMS) if splits else list(OF_ONE)
        nesting = [draw.choice(names) for _ in range(draw.randint(1, 4))]
        function = without_jvp(draw, splits)
        x = core.tensor([0.3, -0.4, 0.7], dtype=core.float64)
        found, want = with_factor(function.apply), with_factor(operators)
        for name in nesting:
            found, want = TRANSFORMS[name](found), TRANSFORMS[name](want)
        try:
            results = parts(found(x))
        except NotImplementedError as error:
            assert "tangents of Random cannot be differentiated" in str(error)  # noqa: PT017
            first = next(i for i, name in enumerate(nesting) if name in FORWARD)
            assert REVERSE & set(nesting[first:]), nesting
            refused += 1
            continue
        for a, b in zip(results, parts(want(x)), strict=True):
            assert core.allclose(a, b), nesting
    assert 20 < refused < 100


class Squared(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x, x

    @staticmethod
    def backward(ctx, g, h):
        return 2 * g * ctx.saved_tensors[0] + h


def test_the_tangent_of_a_recorded_argument_has_a_refusing_node() -> None:
    x = core.tensor([2.0, 3.0], requires_grad=True)
    v = core.tensor([1.0, -1.0], requires_grad=True)
    for primal, direction in ((x, v.detach()), (x.detach(), v), (x, v)):
        with forward_ad.dual_level():
            square, same = Squared.apply(forward_ad.make_dual(primal, direction))
            tangent = forward_ad.unpack_dual(square).tangent
            assert tangent.tolist() == [4, -6]
            assert tangent.grad_fn.name() == "UnrecordedTangents(Squared)"
            wanted = [t for t in (primal, direction) if t.requires_grad]
            with pytest.raises(
                NotImplementedError, match=r"Squared cannot.*\nhint: write a static method jvp"
            ):
                core.autograd.grad(tangent.sum(), wanted, retain_graph=True)
            if direction.requires_grad:  # an output that is an argument has the tangent of the argument
                along = forward_ad.unpack_dual(same).tangent
                assert core.autograd.grad((along * 3).sum(), v)[0].tolist() == [3, 3]
    with forward_ad.dual_level():
        output = Squared.apply(forward_ad.make_dual(x.detach(), v.detach()))[0]
        assert not forward_ad.unpack_dual(output).tangent.requires_grad
    with forward_ad.dual_level(), core.no_grad():
        output = Squared.apply(forward_ad.make_dual(x, v))[0]
        assert not forward_ad.unpack_dual(output).tangent.requires_grad


class Doubled(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    def backward(ctx, g):
        return 2 * g


def test_the_tangent_of_a_written_argument_has_a_refusing_node() -> None:
    v = core.tensor([1.0, -1.0], requires_grad=True)
    with forward_ad.dual_level():
        y = Doubled.apply(forward_ad.make_dual(core.ones(2), v * 1))
        tangent = forward_ad.unpack_dual(y).tangent
        assert tangent.tolist() == [2, -2]
        with pytest.raises(NotImplementedError, match="Doubled cannot be differentiated"):
            tangent.sum().backward()
