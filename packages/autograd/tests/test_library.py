"""Custom operators: custom_op and its derivative."""

from __future__ import annotations

import numpy as np
import pytest
from autograd_samples import leaf, ones

import rushlight_core as core
from rushlight_autograd import grad, gradcheck, gradgradcheck
from rushlight_autograd.batching import vmap
from rushlight_autograd.library import (
    custom_op,
    get_op,
    register_autograd,
    register_fake,
    register_kernel,
    register_vmap,
)  # fmt: skip


@custom_op("tests::power", mutates_args=())
def power(x: core.Tensor, exponent: float = 2.0, *, scale: float = 1.0) -> core.Tensor:
    """By NumPy, which nothing records."""
    return core.from_numpy(np.power(x.numpy(), exponent) * scale)


def keep(ctx, inputs, output, keyword_only_inputs) -> None:
    x, ctx.exponent = inputs
    ctx.scale = keyword_only_inputs["scale"]
    ctx.save_for_backward(x)


def derivative(ctx, g):
    (x,) = ctx.saved_tensors
    return g * power(x, ctx.exponent - 1, scale=ctx.scale * ctx.exponent), None, None


power.register_autograd(derivative, setup_context=keep)


@power.register_fake
def _(x, exponent=2.0, *, scale=1.0):
    return core.empty_like(x)


def test_values_and_derivatives() -> None:
    x = leaf(3)
    y = power(x, 3.0, scale=2.0)
    assert y.tolist() == pytest.approx([2 * v**3 for v in x.tolist()])
    assert y.grad_fn.name() == "TestsPowerBackward"
    gradcheck(lambda t: power(t, 3.0, scale=2.0), [x])
    gradgradcheck(lambda t: power(t, exponent=3.0), [x])
    assert not power(x.detach()).requires_grad
    assert power.__doc__ == "By NumPy, which nothing records."


def test_by_name() -> None:
    assert get_op("tests::power") is power
    with pytest.raises(RuntimeError, match="no operator 'tests::nothing'\nhint: custom_op"):
        get_op("tests::nothing")
    double = custom_op("tests::double", lambda x: x + x, mutates_args=())
    register_autograd("tests::double", lambda ctx, g: 2 * g)
    x = leaf(2)
    double(x).backward(ones(x))
    assert x.grad.tolist() == [2.0, 2.0]


def test_without_a_derivative() -> None:
    op = custom_op("tests::constant", lambda x: x * 2, mutates_args=())
    x = leaf(2)
    y = op(x)
    with pytest.raises(RuntimeError, match=r"tests::constant has no derivative\nhint: .*register_autograd"):
        y.sum().backward()


def test_several_results_and_lists() -> None:
    @custom_op("tests::parts", mutates_args=())
    def parts(xs, k: int):
        return xs[0] * k, xs[1].clone(), 3

    a, b, n = parts([core.ones(2), core.zeros(2)], 4)
    assert (a.tolist(), b.tolist(), n) == ([4.0, 4.0], [0.0, 0.0], 3)


def test_writing_an_argument() -> None:
    @custom_op("tests::fill", mutates_args="out")
    def fill(x, out) -> None:
        np.copyto(out.numpy(), x.numpy() * 2)

    t = core.zeros(2)
    before = t._version
    assert fill(core.ones(2), t) is None
    assert t.tolist() == [2.0, 2.0]
    assert t._version > before  # so that a graph that has saved the tensor detects the write
    with pytest.raises(RuntimeError, match=r"argument 'out' requires grad, but .* in place\nhint: "):
        fill(core.ones(2), leaf(2))
    with pytest.raises(RuntimeError, match="in place cannot have a derivative"):
        fill.register_autograd(lambda ctx, g: g)
    with pytest.raises(ValueError, match="names 'y', which is not an argument"):
        custom_op("tests::bad", lambda x: x, mutates_args=("y",))


def test_other_devices() -> None:
    assert power(core.ones(2, 3, device="meta")).shape == (2, 3)
    op = custom_op("tests::here", lambda x: x * 2, mutates_args=(), device_types="cpu")
    with pytest.raises(NotImplementedError, match=r"device 'meta', but .*\nhint: .*\.register_fake"):
        op(core.ones(2, device="meta"))
    register_fake(op, lambda x: x.new_empty(x.shape))
    assert op(core.ones(2, device="meta")).device.type == "meta"

    @register_kernel(op, "meta")
    def _(x):
        return core.empty(5, device="meta")

    assert op(core.ones(2, device="meta")).shape == (5,)
    only_meta = custom_op("tests::there", lambda x: x * 2, mutates_args=(), device_types=["meta"])
    with pytest.raises(NotImplementedError, match="there is no kernel for cpu; there are kernels for meta"):
        only_meta(core.ones(2, device="cpu"))


def test_batches_of_calls() -> None:
    @custom_op("tests::weighted", mutates_args=())
    def weighted(x: core.Tensor, y: core.Tensor, power: int, *, scale: float = 1.0) -> core.Tensor:
        return core.from_numpy(scale * x.numpy() * y.numpy() ** power)

    weighted.register_autograd(
        lambda ctx, g: (g * ctx.saved_tensors[0] ** 2, None, None, None),
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(inputs[1]),
    )
    x, y = core.arange(6.0).view(3, 2), core.tensor([2.0, 3.0, 4.0])
    with pytest.raises(RuntimeError, match="cannot be used inside vmap"):
        vmap(lambda a: weighted(a, y, 2), in_dims=1)(x)
    calls = []

    @register_vmap("tests::weighted")
    def _(info, in_dims, x, y, power, *, scale):
        calls.append((info.batch_size, in_dims, power, scale))
        x = x if in_dims[0] is None else x.movedim(in_dims[0], 0)
        y = y if in_dims[1] is None else y.movedim(in_dims[1], 0)
        return weighted(x, y, power, scale=scale), 0

    found = vmap(lambda a: weighted(a, y, 2, scale=0.5), in_dims=1)(x)
    assert calls == [(2, (0, None, None), 2, 0.5)]
    assert core.equal(found, (0.5 * x * y[:, None] ** 2).T)
    x.requires_grad_()
    (g,) = grad(vmap(lambda a: weighted(a, y, 2), in_dims=1)(x).sum(), x)
    assert core.equal(g, (y[:, None] ** 2).expand(3, 2))


def test_bad_operators() -> None:
    with pytest.raises(ValueError, match="must be 'namespace::name', not 'name'"):
        custom_op("name", lambda x: x, mutates_args=())
    with pytest.raises(ValueError, match=r"\*args is not supported"):
        custom_op("tests::varargs", lambda *args: args, mutates_args=())
    alias = custom_op("tests::alias", lambda x: x.view(-1), mutates_args=())
    with pytest.raises(
        RuntimeError, match=r"result 0 shares the memory of an argument\nhint: return a clone"
    ):
        alias(core.ones(2, 2))
    text = custom_op("tests::text", lambda x: "text", mutates_args=())
    with pytest.raises(TypeError, match="result 0 must be a Tensor or a number, got str"):
        text(core.ones(2))
    with pytest.raises(TypeError, match="missing a required argument: 'x'"):
        power()
    wrong = custom_op("tests::wrong", lambda x: x * 2, mutates_args=())
    wrong.register_autograd(lambda ctx, g: (g, g))
    x = leaf(2)
    with pytest.raises(RuntimeError, match="returned 2 gradients for 1 arguments"):
        grad(wrong(x).sum(), x)
