"""The Python interface of Function, hooks and the graph."""

from __future__ import annotations

import gc
import weakref

import pytest
from autograd_samples import leaf, ones

import rushlight_core as core
from rushlight_autograd import Function, backward, grad, gradcheck, gradgradcheck
from rushlight_autograd.function import once_differentiable
from rushlight_autograd.graph import GradientEdge


class Square(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * x * 2


class Exp(Function):
    """A Function that saves its own result, with setup_context."""

    @staticmethod
    def forward(x):
        return x.exp()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx, grad):
        (y,) = ctx.saved_tensors
        return grad * y


@pytest.mark.parametrize("function", [Square, Exp])
def test_derivatives_of_a_function(function) -> None:
    gradcheck(function.apply, [leaf(3)])
    gradgradcheck(function.apply, [leaf(3)])


def test_a_result_that_saves_itself_dies() -> None:
    x = leaf(2)
    y = Exp.apply(x)
    alive = weakref.ref(y)
    del y
    gc.collect()
    assert alive() is None


def test_a_view_of_an_argument_is_recorded() -> None:
    class Reshape(Function):
        @staticmethod
        def forward(ctx, x):
            return x.view(2, 1)

        @staticmethod
        def backward(ctx, grad):
            return grad.view(2) * 3

    x = leaf(2)
    y = Reshape.apply(x)
    assert y.requires_grad
    y.backward(core.ones(2, 1, dtype=core.float64))
    assert x.grad.tolist() == [3.0, 3.0]


def test_other_arguments_and_needs_input_grad() -> None:
    seen = []

    class Scale(Function):
        @staticmethod
        def forward(ctx, x, factor, bias):
            ctx.factor = factor
            return x * factor + bias

        @staticmethod
        def backward(ctx, grad):
            seen.append(ctx.needs_input_grad)
            return grad * ctx.factor, None, grad

    x, bias = leaf(2), core.ones(2, dtype=core.float64)
    Scale.apply(x, 3, bias).backward(ones(x))
    assert x.grad.tolist() == [3.0, 3.0]
    assert seen == [(True, False, False)]


def test_several_results_and_absent_gradients() -> None:
    class Two(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, a, b):
            assert b.tolist() == [0.0, 0.0]
            return a * 2 + b * 3

    x = leaf(2)
    a, _ = Two.apply(x)
    a.backward(ones(x))
    assert x.grad.tolist() == [2.0, 2.0]

    class Raw(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, a, b):
            assert b is None
            return a * 2

    a, _ = Raw.apply(x)
    a.backward(ones(x))


def test_in_place_function() -> None:
    class Double(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            with core.no_grad():
                return x.mul_(2)

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    x = leaf(2)
    y = x * 1
    z = Double.apply(y)
    assert z is y
    z.backward(ones(x))
    assert x.grad.tolist() == [2.0, 2.0]


def test_a_result_without_gradient() -> None:
    class Where(Function):
        @staticmethod
        def forward(ctx, x):
            y = x * 2
            ctx.mark_non_differentiable(y)
            return x * 3, y

        @staticmethod
        def backward(ctx, grad, _):
            return grad * 3

    a, b = Where.apply(leaf(2))
    assert a.requires_grad
    assert not b.requires_grad


def test_gradients_of_outputs_without_gradient() -> None:
    """They are zeros of the output's shape and dtype, and None for an output that is not a tensor."""
    seen = []

    class Mixed(Function):
        @staticmethod
        def forward(ctx, x):
            order, twice = x.argsort(), (2 * x).unsqueeze(0)
            ctx.mark_non_differentiable(order, twice)
            return 3 * x, order, twice, 5, None, "text"

        @staticmethod
        def backward(ctx, *grads):
            seen.extend(grads)
            return 3 * grads[0]

    x = leaf(2)
    Mixed.apply(x)[0].sum().backward()
    _, order, twice, *rest = seen
    assert (order.dtype, order.tolist()) == (core.int64, [0, 0])
    assert (twice.dtype, twice.tolist()) == (x.dtype, [[0.0, 0.0]])
    assert rest == [None, None, None]


def test_a_result_that_is_returned_twice() -> None:
    class Twice(Function):
        @staticmethod
        def forward(ctx, x):
            y = 2 * x
            return y, y

        @staticmethod
        def backward(ctx, a, b):
            return 2 * (a + b)

    x = leaf(2)
    a, b = Twice.apply(x)
    assert a is b
    (a + 3 * b).sum().backward()
    assert x.grad.tolist() == [8.0, 8.0]

    class InPlace(Twice):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x.mul_(2))
            return x, x

    with pytest.raises(RuntimeError, match="returned a tensor passed to mark_dirty\\(\\) more than once"):
        InPlace.apply(leaf(2) * 1)


def test_defaults_of_forward_are_inputs() -> None:
    class Power(Function):
        @staticmethod
        def forward(x, exponent=3, *, scale=1.0):
            return scale * x**exponent

        @staticmethod
        def setup_context(ctx, inputs, output):
            x, ctx.exponent = inputs
            ctx.save_for_backward(x)

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return ctx.exponent * x ** (ctx.exponent - 1) * grad, None

    x = core.tensor([2.0, 3.0], requires_grad=True)
    for arguments, expected in (((x,), [12.0, 27.0]), ((x, 2), [4.0, 6.0])):
        assert grad(Power.apply(*arguments).sum(), x)[0].tolist() == expected
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        Power.apply()


def test_vjp_is_another_name_of_backward() -> None:
    class Double(Function):
        @staticmethod
        def forward(ctx, x):
            return 2 * x

        @staticmethod
        def vjp(ctx, grad):
            return 2 * grad

    class Triple(Double):
        @staticmethod
        def backward(ctx, grad):
            return 3 * grad

    for function, factor in ((Double, 2.0), (Triple, 3.0)):
        x = leaf(2)
        function.apply(x).sum().backward()
        assert x.grad.tolist() == [factor, factor]
    with pytest.raises(RuntimeError, match="Both: backward and vjp are two names of one method"):

        class Both(Double):
            @staticmethod
            def backward(ctx, grad):
                return grad

            @staticmethod
            def vjp(ctx, grad):
                return grad


@pytest.mark.parametrize(
    ("result", "error", "text"),
    [
        (lambda g: (g, g), RuntimeError, "returned 2 gradients for 1"),
        (lambda g: (), RuntimeError, r"returned 0 gradient\(s\)"),
        (lambda g: "no", TypeError, "expected a Tensor or None"),
        (
            lambda g: core.ones(5, dtype=core.float64, device=g.device),
            RuntimeError,
            r"shape \(5,\) for argument 0 of shape \(2,\)",
        ),
    ],
)
def test_wrong_results_of_backward(result, error, text) -> None:
    class Wrong(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return result(g)

    x = leaf(2)
    with pytest.raises(error, match=text):
        Wrong.apply(x).backward(ones(x))


def test_an_exception_keeps_its_type_and_leaves_the_graph_usable() -> None:
    class Failing(Function):
        fail = True

        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            if Failing.fail:
                raise KeyError("mine")
            return g * 2

    x = leaf(2)
    y = Failing.apply(x)
    with pytest.raises(KeyError, match="mine"):
        y.backward(ones(x))
    Failing.fail = False
    y.backward(ones(x))
    assert x.grad.tolist() == [2.0, 2.0]


def test_once_differentiable() -> None:
    class Once(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @once_differentiable
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * x * 2

    x = leaf(2)
    for seed in (ones(x).requires_grad_(), ones(x)):  # the gradient depends on x, too
        (g,) = grad(Once.apply(x), x, seed, create_graph=True)
        assert "grad_fn=<_OnceBackward>" in repr(g)
        with pytest.raises(RuntimeError, match="OnceBackward is marked once_differentiable"):
            grad(g, x, ones(x))


def test_attributes_of_ctx_do_not_change_the_repr() -> None:
    class Named(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.name = "a name"
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    assert "NamedBackward" in repr(Named.apply(leaf(2)))


def test_saved_tensors_are_freed() -> None:
    x = leaf(2)
    y = Square.apply(x)
    node = y.grad_fn
    y.backward(ones(x))
    with pytest.raises(RuntimeError, match="freed"):
        _ = node.saved_tensors
    with pytest.raises(RuntimeError, match="used already"):
        y.backward(ones(x))


def test_names_and_edges() -> None:
    x = leaf(2)
    y = x * 2 + x.exp()
    assert y.grad_fn.name() == "AddBackward0"
    names = [node.name() for node, _ in y.grad_fn.next_functions]
    assert names == ["MulBackward0", "ExpBackward0"]
    (accumulate, index), _ = y.grad_fn.next_functions[0][0].next_functions
    assert accumulate.name() == "AccumulateGrad"
    assert accumulate.variable is x
    assert index == 0
    assert Square.apply(x).grad_fn.name() == "SquareBackward"


def test_tensor_hooks() -> None:
    x = leaf(2)
    seen = []
    handle = x.register_hook(lambda g: seen.append(g.tolist()))
    y = x * 2
    y.register_hook(lambda g: g * 10)
    y.backward(ones(x))
    assert seen == [[20.0, 20.0]]
    handle.remove()
    (x * 1).backward(ones(x))
    assert len(seen) == 1


def test_a_hook_sees_the_sum() -> None:
    x = leaf(1)
    seen = []
    x.register_hook(lambda g: seen.append(g.item()))
    (x * 2 + x * 3).backward(ones(x))
    assert seen == [5.0]


def test_node_and_post_accumulate_hooks() -> None:
    x = leaf(2)
    y = x * 2
    seen = []
    y.grad_fn.register_hook(lambda inputs, outputs: seen.append((inputs[0].tolist(), outputs[0].tolist())))
    y.grad_fn.register_prehook(lambda outputs: (outputs[0] * 3,))
    x.register_post_accumulate_grad_hook(lambda t: seen.append(t.grad.tolist()))
    y.backward(ones(x))
    assert seen == [([6.0, 6.0], [3.0, 3.0]), [6.0, 6.0]]


def test_a_hook_that_refers_to_its_tensor_is_collected() -> None:
    x = leaf(2)
    x.register_hook(lambda g, x=x: g)
    alive = weakref.ref(x)
    del x
    gc.collect()
    assert alive() is None


def test_retain_grad() -> None:
    x = leaf(2)
    y = x * 2
    y.retain_grad()
    (y * 3).backward(ones(x))
    assert y.retains_grad
    assert y.grad.tolist() == [3.0, 3.0]


def test_a_retained_gradient_is_kept_between_the_hooks_of_the_tensor_and_of_the_node() -> None:
    x = leaf(2)
    y = x * 2
    y.grad_fn.register_prehook(lambda grads: (grads[0] * 7,))
    y.retain_grad()
    y.register_hook(lambda g: g * 5)
    (y * 3).backward(ones(x))
    assert y.grad.tolist() == [15.0, 15.0]
    assert x.grad.tolist() == [210.0, 210.0]


def test_a_retained_gradient_of_a_view_in_a_new_geometry() -> None:
    x = core.ones(2, 3).requires_grad_()
    y = (x * 2)[:1]
    y.retain_grad()
    y.t_()
    (y * 3).backward(ones(y))
    assert y.grad.tolist() == [[3.0]] * 3


def test_what_keeps_a_gradient_does_not_keep_the_tensor() -> None:
    x = leaf(2)
    y = x * 2
    y.retain_grad()
    z = y * 3
    alive = weakref.ref(y)
    del y
    assert alive() is None
    z.backward(ones(x))
    assert x.grad.tolist() == [6.0, 6.0]


def test_grad_fn_of_a_result_that_is_gone() -> None:
    x = leaf(2)
    context = Square.apply(x).grad_fn
    assert context.name() == "SquareBackward"
    assert context.next_functions[0][0].variable is x
    (saved,) = context.saved_tensors
    assert saved is x
    assert context.needs_input_grad == (True,)
    context.register_hook(lambda inputs, outputs: None).remove()


def test_a_context_that_is_held_keeps_its_graph_and_no_longer() -> None:
    gone: list[str] = []
    x = leaf(2)
    y = x * 2
    y.grad_fn.metadata["end"] = weakref.finalize(holder := _Holder(), gone.append, "graph")
    y.grad_fn.metadata["holder"] = holder
    del holder
    context = Square.apply(y).grad_fn
    del y
    gc.collect()
    assert gone == []
    gc.disable()
    try:
        del context
        assert gone == ["graph"]
    finally:
        gc.enable()


class _Holder:
    pass


def test_a_pass_from_a_context_alone() -> None:
    x = leaf(2)
    edge = GradientEdge(Square.apply(x).grad_fn, 0)
    backward([edge], [ones(x)])
    assert x.grad.tolist() == [2 * v for v in x.tolist()]


def test_a_wrong_hook_result() -> None:
    x = leaf(2)
    x.register_hook(lambda g: 3)
    with pytest.raises(TypeError, match="result of the hook"):
        (x * 1).backward(ones(x))


def test_an_object_of_a_function_cannot_be_called() -> None:
    class Double(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

    with pytest.raises(RuntimeError, match=r"hint: call Double\.apply"):
        Double()(core.ones(2))
