"""Derivatives of derivatives: all orders of nesting agree, in random programs and for all pairs of transforms."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import rushlight_core as core
from rushlight_autograd import functional
from rushlight_autograd.batching import vmap
from rushlight_autograd.checkpoint import checkpoint
from rushlight_autograd.graph import saved_tensors_hooks
from rushlight_autograd.jacobians import hessian, jacfwd, jacrev
from rushlight_autograd.transforms import grad, grad_and_value, jvp, linearize, vjp
from rushlight_autograd.tree import flatten
from rushlight_core import Tensor

D = core.float64
Function = Callable[[Tensor], Any]


def numbers(generator: random.Random, *shape: int) -> Tensor:
    count = core.Size(shape).numel()
    return core.tensor([generator.uniform(-1.2, 1.2) for _ in range(count)], dtype=D).view(shape)


# --- random programs that write in place ---
# A program draws its statements from a generator, and the values of the tensors do not change what is drawn. The operands
# of operators that are not in place are copies, so that no write invalidates a tensor that a node has saved.


def fitted(source: Tensor, like: Tensor) -> Tensor:
    """Return a value with the shape of `like`, or one that broadcasts to it."""
    if source.shape == like.shape:
        return source.clone()
    flat = source.reshape(-1)
    count = like.numel()
    return flat[:count].clone().view(like.shape) if flat.numel() >= count else flat[0].clone()


def buffer_like(draw: random.Random, a: Tensor) -> Tensor:
    return draw.choice(
        [
            lambda: core.zeros_like(a),
            lambda: a.new_zeros(a.shape),
            lambda: core.zeros(a.shape, dtype=D),
            lambda: core.full(a.shape, 0.5, dtype=D),
            lambda: a.clone(),
        ]
    )()


def view_of(draw: random.Random, a: Tensor) -> Tensor:
    if not a.dim():
        return a.view(1)
    d, n = a.dim() - 1, a.shape[0]
    return draw.choice(
        [
            lambda: a[draw.randrange(n)],
            lambda: a[draw.randrange(n) :],
            lambda: a[: draw.randint(1, n)],
            lambda: a[::2],
            lambda: a[...],
            lambda: a.transpose(0, d),
            lambda: a.diagonal() if d else a,
            lambda: a.select(d, 0),
            lambda: a.unsqueeze(draw.randint(0, d)),
            lambda: a.view_as(a),
            lambda: a.chunk(2)[0],
        ]
    )()


def computed(draw: random.Random, a: Tensor, b: Tensor) -> Tensor:
    b = fitted(b, a).expand(a.shape)
    return draw.choice(
        [
            lambda: a * b,
            lambda: a.exp() / (b * b + 1),
            lambda: a.sigmoid(),
            lambda: a.tanh() + b,
            lambda: a.softmax(0) if a.dim() else a,
            lambda: a.cumsum(0) if a.dim() else a,
            lambda: core.stack([a, b]).sin().sum(0),
            lambda: a.flip(0) * 2 if a.dim() else a,
        ]
    )()


def write(draw: random.Random, target: Tensor, source: Tensor) -> None:
    value = fitted(source, target)
    number = draw.uniform(-1, 1)
    mask = core.tensor([draw.random() < 0.5 for _ in range(target.numel())]).view(target.shape)

    def part(change: Callable[[Tensor], Any]) -> None:
        change(target if not target.dim() else target[0])

    draw.choice(
        [
            lambda: target.copy_(value),
            lambda: target.add_(value, alpha=2),
            lambda: target.mul_(value),
            lambda: target.sub_(number),
            lambda: target.div_(value * value + 1),
            lambda: target.pow_(2),
            lambda: target.sin_(),
            lambda: target.cos_(),
            lambda: target.tanh_(),
            lambda: target.sigmoid_(),
            lambda: target.atan_(),
            lambda: target.abs_(),
            lambda: target.clamp_(-0.6, 0.7),
            lambda: target.zero_(),
            lambda: target.fill_(number),
            lambda: target.fill_(value.sum()),
            lambda: target.masked_fill_(mask, number),
            lambda: target.masked_fill_(mask, value.sum()),
            lambda: target.lerp_(value.expand(target.shape), 0.25),
            lambda: target.addcmul_(value, value, value=number),
            lambda: part(lambda row: row.copy_(fitted(source, row))),
            lambda: part(lambda row: row.mul_(fitted(source, row))),
            lambda: target.__setitem__(0 if target.dim() else ..., value.sum()),
            lambda: target.__setitem__(mask, value.sum()),
            lambda: target.__setitem__(mask, number),
            lambda: target.__iadd__(value),
        ]
    )()


def program(seed: int, x: Tensor) -> Tensor:
    """Run the program of number `seed`, and return a number."""
    draw = random.Random(seed)
    made = [x * 1.5, x.cos()]
    for _ in range(draw.randint(3, 9)):
        a, b = draw.choice(made), draw.choice(made)
        kind = draw.random()
        if kind < 0.2:
            made.append(computed(draw, a.clone(), b))
        elif kind < 0.35:
            made.append(buffer_like(draw, a))
        elif kind < 0.45:
            made.append(view_of(draw, a))
        else:
            target = view_of(draw, a) if draw.random() < 0.7 else a
            write(draw, target, b)
    return sum((t * t * (1 + i)).sum() + (t * made[i - 1].sum()).sum() for i, t in enumerate(made))


@contextlib.contextmanager
def nothing() -> Iterator[None]:
    yield


SETTINGS: dict[str, Callable[[], Any]] = {
    "plain": nothing,
    "packed": lambda: saved_tensors_hooks(lambda t: t.clone(), lambda t: t),
}


def refused(error: RuntimeError) -> bool:
    """Return whether a node refuses a saved tensor because it was changed in place."""
    return "after it was saved" in str(error)


def products_agree(seed: int, setting: str) -> bool:
    """Check the product of the Hessian of a program with a vector; return False if reverse mode refuses the program."""
    draw = random.Random(-seed)
    shape = draw.choice([(3,), (2, 3), (3, 3), (2, 1, 3)])
    x, v = numbers(draw, *shape), numbers(draw, *shape)

    def f(y: Tensor) -> Tensor:
        with SETTINGS[setting]():
            return program(seed, y)

    gradient = grad(f)
    try:
        want = grad(lambda y: (gradient(y) * v).sum())(x)
    except RuntimeError as error:
        # The result of an operator was written through a view, and then written again.
        if refused(error):
            return False
        raise
    scale = 1 + want.abs().max().item()
    step = 1e-5
    slope = (gradient(x + step * v) - gradient(x - step * v)) / (2 * step)
    assert (want - slope).abs().max().item() < 1e-4 * scale, "reverse over reverse"
    for mode in (nothing, core.no_grad):
        with mode():
            _, found = jvp(gradient, (x,), (v,))
            _, along = jvp(f, (x,), (v,))
        assert (found - want).abs().max().item() < 1e-9 * scale, "forward over reverse"
        assert along.item() == pytest.approx((gradient(x) * v).sum().item()), "forward"
    try:
        found = grad(lambda y: jvp(f, (y,), (v,))[1])(x)
    except RuntimeError as error:
        # The formulas of forward mode save values that the operators themselves do not save.
        if refused(error):
            return False
        raise
    assert (found - want).abs().max().item() < 1e-9 * scale, "reverse over forward"
    return True


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("first", range(0, 120, 20))
def test_products_with_the_hessian_of_programs_in_place(first: int, setting: str) -> None:
    """Forward over reverse, reverse over forward, reverse over reverse and finite differences give the same product."""
    assert sum(products_agree(seed, setting) for seed in range(first, first + 20)) > 10


# --- pairs of transforms ---


def total(result: Any) -> Tensor:
    """Return the sum of all numbers in the result of a transform."""
    return sum((t * t).sum() for t in flatten(result)[0])


V = core.tensor([0.5, -1.0, 0.25], dtype=D)
TRANSFORMS: dict[str, Callable[[Function], Function]] = {
    "grad": lambda f: grad(lambda x: total(f(x))),
    "grad_and_value": lambda f: grad_and_value(lambda x: total(f(x))),
    "value beside grad": lambda f: lambda x: grad_and_value(lambda x: total(f(x)))(x)[1],
    "vjp": lambda f: lambda x: vjp(lambda x: total(f(x)), x)[1](core.ones((), dtype=D)),
    "value beside vjp": lambda f: lambda x: vjp(lambda x: total(f(x)), x)[0],
    "jvp": lambda f: lambda x: jvp(f, (x,), (V,)),
    "jacrev": lambda f: jacrev(lambda x: total(f(x))),
    "jacfwd": lambda f: jacfwd(lambda x: total(f(x))),
    "hessian": lambda f: hessian(lambda x: total(f(x))),
    "linearize": lambda f: lambda x: linearize(lambda x: total(f(x)), x)[1](V),
    "aux": lambda f: grad(lambda x: (total(f(x)), f(x)), has_aux=True),
}


def written(x: Tensor) -> Tensor:
    z = core.zeros_like(x)
    z[0] = x[0] ** 2
    z[1:].copy_(x[:2]).sin_()
    y = x.exp()
    y[1:].mul_(x[1:])
    return z * y * x


def copied(x: Tensor) -> Tensor:
    z = core.cat([x[:1] ** 2, x[:2].sin()])
    e = x.exp()
    return z * core.cat([e[:1], e[1:] * x[1:]]) * x


@pytest.mark.parametrize("outer", TRANSFORMS)
def test_results_of_transforms_are_detached(outer: str) -> None:
    """No graph of a transform that has ended is left, and writes in place and disabled gradients change no value."""
    x = core.tensor([0.3, -0.5, 0.8], dtype=D)
    for inner in TRANSFORMS:
        want = flatten(TRANSFORMS[outer](TRANSFORMS[inner](copied))(x))[0]
        for mode in (nothing, core.no_grad):
            with mode():
                try:
                    got = flatten(TRANSFORMS[outer](TRANSFORMS[inner](written))(x))[0]
                except RuntimeError as error:
                    if not refused(error):
                        raise
                    got = want
            for a, b in zip(got, want, strict=True):
                assert not any(t.requires_grad or t.grad_fn for t in (a, b)), inner
                assert core.allclose(a, b), inner


def test_tangents_of_values_of_an_inner_transform_have_no_graph() -> None:
    x = core.tensor([1.0, 2.0], dtype=D)
    ones = core.ones_like(x)

    def f(x: Tensor) -> Tensor:
        return (x**3).sum()

    (_, value), (_, along) = jvp(grad_and_value(f), (x,), (ones,))
    assert value.item() == 9
    assert along.numpy() == 15
    w = core.tensor(2.0, dtype=D, requires_grad=True)
    _, along = jvp(lambda x: vjp(lambda x: f(x * w), x)[0], (x,), (ones,))
    (gradient,) = vjp(lambda t: t * 1, along)[1](core.ones((), dtype=D))
    assert gradient.item() == 1
    along.backward()  # the tangent 3 w^3 (x_1^2 + x_2^2) depends on a tensor outside of the transforms
    assert w.grad.item() == pytest.approx(9 * 4 * 5)


def test_a_function_that_was_linearized_without_gradients_is_linear() -> None:
    x = core.tensor([0.3, -0.5], dtype=D)
    with core.no_grad():
        _, along = linearize(lambda x: x**3, x)
        _, back = vjp(lambda x: x**3, x)
        assert core.allclose(along(x), 3 * x**3)
    weight = core.tensor(2.0, dtype=D, requires_grad=True)
    back(weight * x)[0].sum().backward()
    assert core.allclose(weight.grad, (3 * x**3).sum())


def test_forward_mode_over_a_checkpoint() -> None:
    x, v = core.tensor([0.3, -0.5], dtype=D), core.tensor([1.0, 0.5], dtype=D)

    def f(x: Tensor) -> Tensor:
        return x.exp() * x * x

    _, found = jvp(grad(lambda x: checkpoint(f, x, use_reentrant=False).sum()), (x,), (v,))
    _, want = jvp(grad(lambda x: f(x).sum()), (x,), (v,))
    assert core.allclose(found, want)


def test_a_saved_result_that_is_written_keeps_its_tangent() -> None:
    x, v = core.tensor([0.3, -0.5], dtype=D), core.tensor([1.0, 0.5], dtype=D)
    _, found = jvp(grad(lambda x: x.tanh().mul_(2).sum()), (x,), (v,))
    y = x.tanh()
    assert core.allclose(found, -4 * y * (1 - y * y) * v)


def test_transforms_work_inside_of_inference_mode():
    def function(x):
        y = x.clone()
        y[0] = x.view(-1)[1] * 3
        return (y**2).sum() + (x[0:1] ** 3).sum()

    def plain(x):
        return 10 * x[1] ** 2 + x[2] ** 2 + x[0] ** 3

    outside = core.tensor([0.3, -0.5, 0.8], dtype=D)
    vector = core.ones(3, dtype=D)
    transforms = {
        "grad": lambda f, x: grad(f)(x),
        "vjp": lambda f, x: vjp(f, x)[1](core.tensor(2.0, dtype=D))[0],
        "jvp": lambda f, x: jvp(f, (x,), (vector,))[1],
        "hessian": lambda f, x: hessian(f)(x),
        "forward over reverse": lambda f, x: jvp(grad(f), (x,), (vector,))[1],
        "vmap": lambda f, x: vmap(grad(f))(core.stack([x, 2 * x])),
        "functional": lambda f, x: functional.hessian(f, x),
    }
    for name, transform in transforms.items():
        want = transform(plain, outside)
        with core.inference_mode():
            made_inside = outside + 0
            for x in (outside, made_inside) if name != "functional" else (outside,):
                got = transform(function, x)
                assert core.allclose(got, want), name
                assert not got.requires_grad, name


def test_reentrant_checkpoints_have_first_derivatives_and_forward_mode_over_them():
    def function(x):
        return checkpoint(lambda y: (y**3).sum(), x, use_reentrant=True)

    x = core.tensor([0.3, -0.5, 0.8], dtype=D)
    tangent = core.tensor([1.0, 2.0, 3.0], dtype=D)
    assert core.allclose(jvp(grad(function), (x,), (tangent,))[1], 6 * x * tangent)
    assert core.allclose(hessian(function)(x), (6 * x).diag())
    with pytest.raises(RuntimeError, match="ReentrantCheckpointBackward is marked once_differentiable"):
        functional.hessian(function, x)
