"""Invalid gradients and arguments raise errors of the right type, which name the given and the required value."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from autograd_samples import leaf

import rushlight_core as core
from rushlight_autograd import Function, backward, grad


def function(derivative: Callable, forward: Callable = lambda ctx, x, *_: x * 2):
    class Mine(Function):
        @staticmethod
        def forward(ctx, *args):
            return forward(ctx, *args)

        @staticmethod
        def backward(ctx, *grads):
            return derivative(*grads)

    return Mine


INTEGERS = core.ones(3, dtype=core.int64)
FROM_FUNCTIONS = [
    (lambda g: (g, g), RuntimeError, "MineBackward: backward returned 2 gradients for 1 arguments"),
    (lambda g: (), RuntimeError, r"returned 0 gradient\(s\), but forward took 1"),
    (lambda g: core.ones(4, dtype=core.float64), RuntimeError, r"\(4,\) for argument 0 of shape \(3,\)\nhint: return"),
    (lambda g: g.sum(), RuntimeError, r"of shape \(\) for argument 0"),
    (lambda g: g.to(core.complex128), RuntimeError, "complex128 gradient for argument 0, but the argument is float64\nhint"),
    (lambda g: g.to("meta"), RuntimeError, "on meta for argument 0, but the argument is on cpu"),
    (lambda g: 3.0, TypeError, "returned float as gradient of argument 0, expected a Tensor or None\nhint: "),
    (lambda g: [g], TypeError, "returned list as gradient of argument 0"),
]  # fmt: skip


@pytest.mark.parametrize(("derivative", "error", "text"), FROM_FUNCTIONS)
def test_gradients_from_functions(derivative: Callable, error: type[Exception], text: str) -> None:
    x = leaf(3)
    with pytest.raises(error, match=text):
        function(derivative).apply(x).sum().backward()
    assert x.grad is None


def test_gradients_from_functions_that_are_made_to_fit() -> None:
    x = leaf(3)
    expected = [1.0, 1.0, 1.0]
    for derivative in (
        lambda g: g.float(),
        lambda g: INTEGERS,
        lambda g: (g, None),
        lambda g: (g, None, None),
    ):
        (g,) = grad(function(derivative).apply(x).sum(), x)
        assert (g.dtype, g.tolist()) == (core.float64, expected)
    (g,) = grad(function(lambda g: core.ones(2, 3, dtype=core.float64)).apply(x).sum(), x)
    assert g.tolist() == [2.0, 2.0, 2.0]
    function(lambda g: None).apply(x).sum().backward()
    assert x.grad is None


def test_a_gradient_for_what_is_no_tensor() -> None:
    with pytest.raises(
        RuntimeError, match="argument 1, but this argument is not a Tensor\nhint: return None for this"
    ):
        function(lambda g: (g, g)).apply(leaf(3), 2).sum().backward()
    x = leaf(3)
    function(lambda g: (g, g)).apply(x, INTEGERS).sum().backward()  # gradients of integers are dropped
    assert x.grad.tolist() == [1.0, 1.0, 1.0]
    assert INTEGERS.grad is None


@pytest.mark.parametrize(
    ("mark", "error", "text"),
    [
        (
            lambda ctx, x: ctx.mark_dirty(x * 1),
            RuntimeError,
            "was not returned by forward\nhint: return every",
        ),
        (lambda ctx, x: ctx.mark_dirty(3), TypeError, r"mark_dirty\(\): argument 0 must be Tensor, not int"),
        (lambda ctx, x: ctx.mark_non_differentiable("x"), TypeError, "must be Tensor, not str"),
        (lambda ctx, x: ctx.save_for_backward(3), TypeError, "must be Tensor, not int"),
    ],
)
def test_marks(mark: Callable, error: type[Exception], text: str) -> None:
    def forward(ctx, x):
        mark(ctx, x)
        return x * 2

    with pytest.raises(error, match=text):
        function(lambda g: g, forward).apply(leaf(3))


FROM_HOOKS = [
    (lambda g: core.ones(4, dtype=core.float64), RuntimeError, r"\(4,\), but the gradient had shape \(3,\) before\nhint: "),
    (lambda g: g.float(), RuntimeError, r"dtype float32 on .* had dtype float64 on device cpu before\nhint: convert"),
    (lambda g: INTEGERS, RuntimeError, "of dtype int64 on device cpu, but"),
    (lambda g: g.to("meta"), RuntimeError, "on device meta, but the gradient had dtype float64 on device cpu"),
    (lambda g: 3, TypeError, "must be Tensor, not int"),
    (lambda g: (g,), TypeError, "must be Tensor, not tuple"),
]  # fmt: skip


@pytest.mark.parametrize(("hook", "error", "text"), FROM_HOOKS)
@pytest.mark.parametrize("on", ["leaf", "result"])
def test_gradients_from_tensor_hooks(hook: Callable, error: type[Exception], text: str, on: str) -> None:
    x = leaf(3)
    y = x * 2
    (x if on == "leaf" else y).register_hook(hook)
    with pytest.raises(error, match=text):
        y.sum().backward()
    assert x.grad is None


@pytest.mark.parametrize(
    ("hook", "error", "text"),
    [
        (lambda i, o: (i[0],) * 3, RuntimeError, "must return 2 gradients, but it returned 3"),
        (lambda i, o: (core.ones(4), None), RuntimeError, r"shape \(4,\), but the gradient had"),
        (
            lambda i, o: (i[0].float(), None),
            RuntimeError,
            "on device cpu, but the gradient had dtype float64",
        ),
        (lambda i, o: i[0], TypeError, "must return None or a tuple of 2 gradients"),
        (lambda i, o: (1, 2), TypeError, "must be Tensor, not int"),
    ],
)
def test_gradients_from_node_hooks(hook: Callable, error: type[Exception], text: str) -> None:
    x = leaf(3)
    y = x * 2
    y.grad_fn.register_hook(hook)
    with pytest.raises(error, match=text):
        y.sum().backward()
    assert x.grad is None


def test_hooks_that_give_none_stop_the_gradient() -> None:
    x = leaf(3)
    for register in ("register_hook", "register_prehook"):
        y = x * 2
        getattr(y.grad_fn, register)(lambda *grads: (None,) * len(grads[0]))
        y.sum().backward()
    assert x.grad is None


@pytest.mark.parametrize(
    ("gradient", "error", "text"),
    [
        (core.ones(4), RuntimeError, r"has shape \(4,\), but the output has shape \(3,\)\nhint: "),
        (core.ones(1), RuntimeError, r"has shape \(1,\), but the output has shape \(3,\)"),
        (
            INTEGERS,
            RuntimeError,
            "must be of a floating dtype, got int64\nhint: convert .* the dtype of the output, float64",
        ),
        (
            core.ones(3, dtype=core.complex128),
            RuntimeError,
            "complex128, but the output has dtype float64\nhint: ",
        ),
        (core.ones(3, device="meta"), RuntimeError, "is on meta, but the output is on cpu"),
        (1.0, TypeError, "argument 'gradient' must be Tensor, not float"),
        (None, RuntimeError, r"outputs of one element, output 0 has shape \(3,\)\nhint: reduce the output"),
    ],
)
def test_the_first_gradient(gradient: object, error: type[Exception], text: str) -> None:
    x = leaf(3)
    with pytest.raises(error, match=text):
        (x * 2).backward(gradient)
    assert x.grad is None


def test_the_first_gradient_takes_the_outputs_dtype() -> None:
    x = leaf(3)
    (x * 2).backward(core.ones(3, dtype=core.float32))
    assert x.grad.dtype == core.float64


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x: grad(None, x), TypeError, "outputs must be Tensors or GradientEdges, not NoneType"),
        (lambda x: grad(x.sum(), None), TypeError, "inputs must be Tensors or GradientEdges, not NoneType"),
        (lambda x: grad(x.sum(), [x, None]), TypeError, "not NoneType"),
        (lambda x: grad(x.sum(), []), RuntimeError, "inputs must not be empty"),
        (lambda x: grad(x.sum(), core.ones(2)), RuntimeError, "does not require grad\nhint: call requires_grad_"),
        (lambda x: grad(x.sum(), leaf(2)), RuntimeError, "was not used to compute the outputs\nhint: "),
        (lambda x: backward([x.sum(), None]), TypeError, "tensors must be Tensors or GradientEdges"),
        (lambda x: backward([x.sum(), x.sum()], [None]), RuntimeError, "each of the 2 outputs, got 1 gradients"),
        (lambda x: backward(x.sum(), inputs=[]), RuntimeError, "inputs= must not be empty"),
        (lambda x: x.sum().backward(inputs=[None]), TypeError, "not NoneType"),
        (lambda x: x.sum().backward(inputs=[]), RuntimeError, "inputs= must not be empty"),
        (lambda x: core.ones(1).backward(), RuntimeError, "does not require grad and has no history\nhint: "),
        (lambda x: core.ones(2, dtype=core.int64).requires_grad_(), RuntimeError, "only floating point and complex"),
        (lambda x: x.add_(1), RuntimeError, "a leaf that requires grad cannot be written in place.*\nhint: "),
        (lambda x: x[0].add_(1), RuntimeError, r"\(the base of this view\) cannot be written in place.*\nhint: "),
        (lambda x: core.add(x, 1, out=x), RuntimeError, "results that are written to out= cannot be differentiated\nhint: "),
        (lambda x: setattr(x, "grad", leaf(4).detach()), RuntimeError, r"the tensor's shape \(3,\), got \(4,\)"),
        (lambda x: setattr(x, "grad", 3), TypeError, "must be a Tensor or None, not int"),
    ],
)  # fmt: skip
def test_bad_calls(call: Callable, error: type[Exception], text: str) -> None:
    x = leaf(3)
    before = x.tolist()
    with pytest.raises(error, match=text):
        call(x)
    assert x.tolist() == before
    assert x.grad is None


def test_out_of_results_without_derivative() -> None:
    """`out=` of an operator whose result has no derivative records nothing, unless the overwritten tensor has a history."""
    x, indices = leaf(3), core.empty(0, dtype=core.int64)
    assert core.gt(x, 0, out=core.empty(3)).requires_grad is False
    assert core.argmax(x, out=indices) is indices
    with pytest.raises(RuntimeError, match="cannot be differentiated"):
        core.gt(x.detach(), 0, out=leaf(3))


@pytest.mark.parametrize(
    "graph",
    [lambda x: x.exp().sum(), lambda x: (x * 2).sum(), lambda x: function(lambda g: g).apply(x).sum()],
)
def test_backward_twice(graph: Callable) -> None:
    x = leaf(3)
    y = graph(x)
    y.backward()
    first = x.grad.tolist()
    with pytest.raises(
        RuntimeError,
        match=r"used already, and the tensors saved by .* were freed\nhint: pass retain_graph=True",
    ):
        y.backward()
    assert x.grad.tolist() == first


def test_inputs_that_are_no_leaves_accumulate() -> None:
    x = leaf(3)
    y = x * 2
    z = (y * 3).sum()
    z.backward(inputs=[y], retain_graph=True)
    assert y.grad.tolist() == [3.0, 3.0, 3.0]
    backward(z, inputs=y)
    assert y.grad.tolist() == [6.0, 6.0, 6.0]
    assert x.grad is None


def test_retained_gradients_add_up() -> None:
    x = leaf(3)
    y = x * 2
    y.retain_grad()
    z = (y * 3).sum()
    z.backward(inputs=[y], retain_graph=True)
    assert y.grad.tolist() == [3.0, 3.0, 3.0]
    z.backward(inputs=[x, y], retain_graph=True)
    assert y.grad.tolist() == [6.0, 6.0, 6.0]
    z.backward()
    assert y.grad.tolist() == [9.0, 9.0, 9.0]
    assert x.grad.tolist() == [12.0, 12.0, 12.0]
