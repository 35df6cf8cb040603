"""The conformance kit of the autograd interface: tests for packages that compute gradients."""

from __future__ import annotations

import gc
import math
import random
import weakref
from collections.abc import Callable
from typing import Any, ClassVar

import pytest

import rushlight_core as core
from rushlight_core import Tensor
from rushlight_testing.conformance.contract import Contract


def leaf(*shape: int, dtype: Any = core.float64) -> Tensor:
    """Return a tensor of values between 0.5 and 2 that requires grad."""
    source = random.Random(math.prod(shape))
    values = [source.uniform(0.5, 2.0) for _ in range(math.prod(shape))]
    return core.tensor(values, dtype=dtype).view(shape).requires_grad_()


def ones(t: Tensor) -> Tensor:
    return core.ones_like(t.detach())


def gradient(t: Tensor) -> Tensor:
    """Return the `grad` of a tensor, and fail if there is none."""
    assert t.grad is not None
    return t.grad


class AutogradContract(Contract):
    """Tests for a package that computes gradients of core's tensors, such as rushlight-autograd.

    Set `backward` and `grad` to the functions of the package. The tests use tensors of many shapes, including
    () and (0).

    Example::

        class TestMyTape(AutogradContract):
            backward = staticmethod(my_tape.backward)
            grad = staticmethod(my_tape.grad)
    """

    backward: ClassVar[Callable[..., None]]
    grad: ClassVar[Callable[..., tuple[Tensor | None, ...]]]

    def gradients(self, function: Callable[..., Tensor], *inputs: Tensor) -> None:
        """Compare the first and second derivatives of `function` with finite differences; see `check_gradients`."""
        check_gradients(function, list(inputs), type(self).grad)

    # --- leaves ---

    def test_gradients_accumulate_in_leaves(self) -> None:
        x = leaf(3)
        for times in (1, 2, 3):
            (x * 2).backward(ones(x))
            assert gradient(x).tolist() == [2.0 * times] * 3

    def test_a_first_gradient_is_not_shared_with_its_giver(self) -> None:
        x = leaf(3)
        given = core.ones(3, dtype=core.float64)
        (x * 1).backward(given)
        given.zero_()
        assert gradient(x).tolist() == [1.0, 1.0, 1.0]

    def test_two_leaves_do_not_share_one_gradient(self) -> None:
        x, y = leaf(2), leaf(2)
        (x + y).backward(ones(x))
        assert gradient(x).data_ptr() != gradient(y).data_ptr()

    def test_computed_tensors_are_no_leaves(self) -> None:
        x = leaf(2)
        y = x * 2
        assert x.is_leaf
        assert x.grad_fn is None
        assert y.requires_grad
        assert not y.is_leaf
        node: Any = y.grad_fn
        assert node.name() == "MulBackward0"

    # --- the pass ---

    def test_a_diamond_sums_both_ways(self) -> None:
        x = leaf(2)
        y = x * 3
        (y * y + y).backward(ones(x))
        for got, v in zip(gradient(x).tolist(), x.tolist(), strict=True):
            assert got == pytest.approx(18 * v + 3)

    def test_backward_needs_a_history(self) -> None:
        with pytest.raises(RuntimeError, match="does not require grad"):
            core.ones(1).backward()

    def test_backward_needs_a_gradient_for_many_elements(self) -> None:
        with pytest.raises(RuntimeError, match="outputs of one element"):
            (leaf(3) * 2).backward()

    def test_a_gradient_of_another_shape_is_refused(self) -> None:
        with pytest.raises(RuntimeError, match=r"shape \(2,\), but the output has shape \(3,\)"):
            (leaf(3) * 2).backward(core.ones(2, dtype=core.float64))

    def test_a_graph_can_be_used_once(self) -> None:
        x = leaf(2)
        y = x * x
        y.backward(ones(x))
        with pytest.raises(RuntimeError, match="used already"):
            y.backward(ones(x))

    def test_a_retained_graph_can_be_used_again(self) -> None:
        x = leaf(2)
        y = x * x
        y.backward(ones(x), retain_graph=True)
        y.backward(ones(x))
        assert gradient(x).tolist() == pytest.approx([4 * v for v in x.tolist()])

    def test_grad_returns_and_does_not_accumulate(self) -> None:
        x, y = leaf(2), leaf(2)
        gx, gy = type(self).grad(x * y, (x, y), ones(x))
        assert gx is not None
        assert gy is not None
        assert gx.tolist() == y.tolist()
        assert gy.tolist() == x.tolist()
        assert x.grad is None

    def test_grad_of_an_inner_tensor(self) -> None:
        x = leaf(2)
        y = x * 2
        (g,) = type(self).grad(y * y, y, ones(x))
        assert g is not None
        assert g.tolist() == pytest.approx([4 * v for v in x.tolist()])

    def test_grad_of_what_was_not_used(self) -> None:
        x, y = leaf(2), leaf(2)
        grad = type(self).grad
        with pytest.raises(RuntimeError, match=r"input 0 .* was not used"):
            grad(x * 2, y, ones(x))
        assert grad(x * 2, y, ones(x), allow_unused=True) == (None,)
        (zeros,) = grad(x * 2, y, ones(x), materialize_grads=True)
        assert zeros is not None
        assert zeros.tolist() == [0.0, 0.0]

    def test_backward_of_chosen_inputs_only(self) -> None:
        x, y = leaf(2), leaf(2)
        type(self).backward(x * y, ones(x), inputs=[x])
        assert x.grad is not None
        assert y.grad is None

    def test_second_derivative(self) -> None:
        x = leaf(3)
        grad = type(self).grad
        (g,) = grad(x * x * x, x, ones(x), create_graph=True)
        assert g is not None
        (h,) = grad(g, x, ones(x))
        assert h is not None
        assert h.tolist() == pytest.approx([6 * v for v in x.tolist()])

    def test_broadcast_gradients_have_the_shape_of_the_leaf(self) -> None:
        x, y = leaf(3, 1), leaf(4)
        (x * y).backward(core.ones(3, 4, dtype=core.float64))
        assert tuple(gradient(x).shape) == (3, 1)
        assert tuple(gradient(y).shape) == (4,)

    def test_a_promoted_argument_gets_a_gradient_of_its_dtype(self) -> None:
        x = leaf(2, dtype=core.float32)
        (x * leaf(2)).backward(core.ones(2, dtype=core.float64))
        assert gradient(x).dtype == core.float32

    def test_no_grad_records_nothing(self) -> None:
        x = leaf(2)
        with core.no_grad():
            y = x * 2
        assert not y.requires_grad
        assert y.grad_fn is None

    def test_detach_cuts(self) -> None:
        x = leaf(2)
        (x.detach() * x).backward(ones(x))
        assert gradient(x).tolist() == x.tolist()

    def test_tensors_are_freed_with_their_graph(self) -> None:
        x = leaf(2)
        y = x * x
        alive = weakref.ref(y)
        z = y * y
        z.backward(ones(x))
        del y, z
        gc.collect()
        assert alive() is None

    def test_a_saved_result_does_not_keep_itself_alive(self) -> None:
        y = leaf(2).exp()
        alive = weakref.ref(y)
        gc.disable()
        try:
            del y
            assert alive() is None
        finally:
            gc.enable()

    # --- hooks and Functions, which packages that build on core require ---

    def test_hooks_see_and_replace_gradients(self) -> None:
        x = leaf(3)
        seen: list[list[float]] = []
        x.register_hook(lambda g: seen.append(g.tolist()))
        handle = x.register_hook(lambda g: g * 10)
        y = x * 2
        y.register_hook(lambda g: g * 3)
        y.backward(ones(x))
        assert seen == [[6.0] * 3]
        assert gradient(x).tolist() == [60.0] * 3
        handle.remove()
        (x * 2).backward(ones(x))
        assert gradient(x).tolist() == [62.0] * 3

    def test_hooks_of_a_tensor_that_is_gone(self) -> None:
        x = leaf(3)
        y = x * 2
        y.register_hook(lambda g: g * 3)
        z = y + 1
        del y
        z.backward(ones(x))
        assert gradient(x).tolist() == [6.0] * 3

    def test_retained_gradients(self) -> None:
        x = leaf(3)
        y = x * 2
        y.retain_grad()
        assert y.retains_grad
        assert not x.retains_grad
        (y * 3).backward(ones(x))
        assert gradient(y).tolist() == [3.0] * 3

    def test_retained_gradients_are_what_all_hooks_have_left(self) -> None:
        x = leaf(3)
        y = x * 2
        y.register_hook(lambda g: g * 5)
        y.retain_grad()
        y.register_hook(lambda g: g * 7)
        (y * 3).backward(ones(x))
        assert gradient(y).tolist() == [105.0] * 3
        assert gradient(x).tolist() == [210.0] * 3

    def test_retained_gradients_belong_to_the_tensor_and_hooks_to_its_value(self) -> None:
        x = leaf(3)
        y = x * 2
        y.retain_grad()
        y.register_hook(lambda g: g * 5)
        y.mul_(7)
        assert y.retains_grad
        (y * 3).backward(ones(x))
        assert gradient(y).tolist() == [3.0] * 3
        assert gradient(x).tolist() == [210.0] * 3

    def test_retained_gradients_of_views_and_roots_that_are_written(self) -> None:
        x = leaf(3)
        root = x * 2
        view = root.select(0, 0)
        view.retain_grad()
        root.mul_(5)
        (view * 3).backward()
        assert gradient(view).item() == 3.0
        assert gradient(x).tolist() == [30.0, 0.0, 0.0]

        root = x * 2
        root.retain_grad()
        root.select(0, 0).mul_(5)
        (root * 3).backward(ones(x))
        assert gradient(root).tolist() == [3.0] * 3

    def test_hooks_after_accumulation(self) -> None:
        x = leaf(3)
        seen: list[list[float]] = []
        x.register_post_accumulate_grad_hook(lambda t: seen.append(gradient(t).tolist()))
        for _ in range(2):
            (x * 2).backward(ones(x))
        assert seen == [[2.0] * 3, [4.0] * 3]

    def test_functions(self) -> None:
        provider: Any = core.autograd  # type: ignore[attr-defined]

        class Cube(provider.Function):
            @staticmethod
            def forward(ctx: Any, x: Tensor, scale: float) -> tuple[Tensor, Tensor]:
                assert ctx.needs_input_grad == (x.requires_grad, False)
                ctx.save_for_backward(x)
                ctx.scale = scale
                positive = x > 0
                ctx.mark_non_differentiable(positive)
                return x * x * x * scale, positive

            @staticmethod
            def backward(ctx: Any, grad: Tensor, _: Any) -> tuple[Tensor, None]:
                (x,) = ctx.saved_tensors
                return 3 * x * x * grad * ctx.scale, None

        x = leaf(3)
        self.gradients(lambda t: Cube.apply(t, 2.0)[0], x)
        y, positive = Cube.apply(x, 2.0)
        assert y.requires_grad
        assert not positive.requires_grad

    def test_functions_that_return_their_argument(self) -> None:
        provider: Any = core.autograd  # type: ignore[attr-defined]

        class Double(provider.Function):
            """A function that returns its argument, and whose backward doubles the incoming gradient."""

            @staticmethod
            def forward(ctx: Any, x: Tensor) -> Tensor:
                ctx.set_materialize_grads(False)
                return x

            @staticmethod
            def backward(ctx: Any, grad: Tensor) -> Tensor:
                return grad * 2

        x = leaf(3)
        y = Double.apply(x)
        assert y is not x
        assert y.data_ptr() == x.data_ptr()
        y.backward(ones(x))
        assert gradient(x).tolist() == [2.0] * 3

    def test_functions_that_write(self) -> None:
        provider: Any = core.autograd  # type: ignore[attr-defined]

        class Halve(provider.Function):
            @staticmethod
            def forward(ctx: Any, x: Tensor) -> Tensor:
                ctx.mark_dirty(x)
                return x.mul_(0.5)

            @staticmethod
            def backward(ctx: Any, grad: Tensor) -> Tensor:
                return grad * 0.5

        x = leaf(3)
        y = x * 4
        Halve.apply(y)
        y.backward(ones(x))
        assert gradient(x).tolist() == [2.0] * 3

    def test_an_out_argument_cannot_be_recorded(self) -> None:
        x = leaf(2)
        with pytest.raises(RuntimeError, match="out="):
            core.add(x, x, out=core.empty(2, dtype=core.float64))

    # --- formulas ---

    @pytest.mark.parametrize(
        ("function", "shapes"),
        [
            (lambda x, y: x + y * 2, ((2, 3), (3,))),
            (lambda x, y: x * y - y, ((2, 1), (3,))),
            (lambda x, y: x / y, ((3,), (2, 3))),
            (lambda x: x.sum(), ((2, 3),)),
            (lambda x: x.sum(1, True) * x, ((2, 3),)),
            (lambda x: x.mean(0), ((2, 3),)),
            (lambda x: x.exp().log(), ((3,),)),
            (lambda x, y: x.mm(y), ((2, 3), (3, 2))),
            (lambda x: x.t().select(0, 1) * 3, ((2, 3),)),
            (lambda x, y: core.cat([x, y, x], 1), ((2, 1), (2, 2))),
            (lambda x, w, b: core.linear(x, w, b), ((2, 3), (2, 3), (2,))),
            (lambda x: core.softmax(x, 1), ((2, 3),)),
            (lambda x: x.max(1).values, ((2, 3),)),
        ],
        ids=[
            "add",
            "mul",
            "div",
            "sum",
            "sum.dim",
            "mean",
            "exp-log",
            "mm",
            "views",
            "cat",
            "linear",
            "softmax",
            "max.dim",
        ],
    )
    def test_formula(self, function: Callable[..., Tensor], shapes: tuple[tuple[int, ...], ...]) -> None:
        self.gradients(function, *(leaf(*shape) for shape in shapes))

    # --- in-place operators ---

    def test_in_place_on_a_tensor(self) -> None:
        def f(x: Tensor, y: Tensor) -> Tensor:
            z = x * 1
            z.mul_(y)
            z.add_(x)
            return z.exp_()

        self.gradients(f, leaf(3), leaf(3))

    @pytest.mark.parametrize("name", ["eq_", "logical_and_", "fill_"])
    def test_what_is_overwritten_has_a_gradient_of_zero(self, name: str) -> None:
        x = leaf(3)
        y = x * 2
        getattr(y[:2], name)(1.0 if name != "logical_and_" else ones(x)[:2])
        y.backward(ones(y))
        assert gradient(x).tolist() == [0, 0, 2]

    def test_in_place_on_a_view_reaches_the_base(self) -> None:
        def f(x: Tensor, y: Tensor) -> Tensor:
            z = x * 1
            z.select(0, 0).mul_(y)
            z.select(1, 1).add_(y.select(0, 0))
            return z * z

        self.gradients(f, leaf(2, 3), leaf(3))

    def test_in_place_on_the_base_reaches_a_view(self) -> None:
        def f(x: Tensor, w: Tensor) -> Tensor:
            base = x * 1
            view = base.select(0, 1)
            base.mul_(w)
            return view * view

        self.gradients(f, leaf(2, 3), leaf(3))

    def test_a_view_from_before_its_base_required_grad(self) -> None:
        def f(w: Tensor) -> Tensor:
            base = core.zeros(2, 3, dtype=core.float64)
            view = base.select(0, 1)
            base.copy_(w)
            return view * view

        self.gradients(f, leaf(2, 3))

    def test_overwriting_cuts_the_history(self) -> None:
        x = leaf(3)
        y = x * 2
        y.zero_()
        y.add_(x)
        y.backward(ones(x))
        assert gradient(x).tolist() == [1.0, 1.0, 1.0]

    def test_a_saved_tensor_that_was_written_raises(self) -> None:
        x = leaf(3)
        y = x * 2
        z = y * y
        y.add_(1)
        with pytest.raises(RuntimeError, match="MulBackward0 needs was changed in place after it was saved"):
            z.backward(ones(x))

    def test_a_saved_result_that_was_written_raises_or_was_copied(self) -> None:
        x = leaf(3)
        wanted = 2 * x.detach().exp()
        y = x.exp()
        y.mul_(2)
        try:
            y.backward(ones(x))
        except RuntimeError as error:
            assert "ExpBackward0" in str(error)  # noqa: PT017
        else:
            assert core.allclose(gradient(x), wanted)

    def test_what_is_not_needed_may_be_written(self) -> None:
        x = leaf(3)
        y = x + 1
        z = y + x
        y.add_(1)
        z.backward(ones(x))
        assert gradient(x).tolist() == [2.0, 2.0, 2.0]

    def test_a_leaf_that_requires_grad_cannot_be_written(self) -> None:
        x = leaf(3)
        before = x.tolist()
        with pytest.raises(RuntimeError, match="a leaf that requires grad"):
            x.add_(1)
        with pytest.raises(RuntimeError, match="the base of this view"):
            x.select(0, 0).zero_()
        assert x.tolist() == before
        with core.no_grad():
            x.add_(1)
        assert x.is_leaf


# --- differences ---


def check_gradients(
    function: Callable[..., Tensor], inputs: list[Tensor], grad: Callable[..., Any], second: bool = True
) -> None:
    """Compare gradients with central differences, for a weighted sum of the elements that `function` returns.

    If `second` is true, compare second derivatives, too.
    """

    def numbers(*xs: Tensor) -> Tensor:
        y = function(*xs)
        return core.view_as_real(y) if y.is_complex() else y

    with core.no_grad():
        shape = tuple(numbers(*inputs).shape)
    weights = core.linspace(0.5, 1.5, math.prod(shape), dtype=core.float64).view(shape)

    def weighted(*xs: Tensor) -> Tensor:
        return (numbers(*xs) * weights).sum()

    def slopes(*xs: Tensor) -> Tensor:
        with core.enable_grad():
            xs = tuple(x if x.requires_grad else x.requires_grad_() for x in xs)
            first = grad(weighted(*xs), xs, create_graph=True, materialize_grads=True)
            return core.cat([g.reshape(-1) * (i + 1) for i, g in enumerate(first)]).sum()

    _compare("first", weighted, inputs, grad)
    if second:
        _compare("second", slopes, inputs, grad)


def _compare(
    order: str, function: Callable[..., Tensor], inputs: list[Tensor], grad: Callable[..., Any]
) -> None:
    value = function(*inputs)
    if value.requires_grad:
        found = grad(value, inputs, materialize_grads=True)
    else:  # the gradient does not depend on the inputs
        found = tuple(core.zeros_like(x) for x in inputs)
    for i, got in enumerate(found):
        for g, w in zip(got.detach().reshape(-1).tolist(), _differences(function, inputs, i), strict=True):
            assert abs(g - w) <= 1e-5 * (1 + abs(w)), (
                f"{order} derivative by input {i}: {g}, but finite differences give {w}"
            )


def _differences(
    function: Callable[..., Tensor], inputs: list[Tensor], which: int, step: float = 1e-5
) -> list[float]:
    slopes = []
    for e in range(inputs[which].numel()):
        sides = []
        for sign in (step, -step):
            moved = [x.detach().clone(memory_format=core.contiguous_format) for x in inputs]
            flat = moved[which].view(-1).select(0, e)
            flat.fill_(flat.item() + sign)
            with core.no_grad():
                sides.append(function(*moved).item())
        slopes.append((sides[0] - sides[1]) / (2 * step))
    return slopes
