"""The graph in Python: nodes, edges, hooks for several tensors, saved tensors."""

from __future__ import annotations

import gc
import math

import pytest
from autograd_samples import leaf, ones

import rushlight_core as core
from rushlight_autograd import Function, backward, grad, graph, set_multithreading_enabled
from rushlight_autograd.graph import GradientEdge, get_gradient_edge, register_multi_grad_hook


class Square(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * g * x


class TestNode:
    def test_what_it_shows(self) -> None:
        x = leaf(2)
        y = x.exp()
        node = y.grad_fn
        assert node.name() == "ExpBackward0"
        assert isinstance(node, graph.Node)
        assert node.site.startswith(f"{__file__}:")
        assert node.next_functions[0][0].variable is x

    def test_metadata_is_the_nodes_own(self) -> None:
        y = leaf(2).exp()
        y.grad_fn.metadata["tag"] = [1]
        assert y.grad_fn.metadata == {"tag": [1]}
        assert y.exp().grad_fn.metadata == {}

    def test_what_is_saved(self) -> None:
        x, w = leaf(2), leaf(2)
        y = x * w
        assert y.grad_fn._saved_other is w
        assert y.grad_fn._saved_self is x  # PyTorch's name of the first argument
        assert "_saved_other" in dir(y.grad_fn)
        z = y.exp()
        assert z.grad_fn._saved_result.grad_fn == z.grad_fn
        with pytest.raises(AttributeError, match="saved nothing under the name 'nothing'"):
            _ = y.grad_fn._saved_nothing
        z.backward(ones(x))
        with pytest.raises(RuntimeError, match=r"freed by backward.*\nhint: pass retain_graph"):
            _ = y.grad_fn._saved_other

    def test_the_node_of_a_function(self) -> None:
        y = Square.apply(leaf(2))
        assert type(y.grad_fn).__name__ == y.grad_fn.name() == "SquareBackward"
        assert isinstance(y.grad_fn, graph.Node)
        assert "SquareBackward" in repr(y)

    @pytest.mark.parametrize("where", ["tensor", "pre", "post", "leaf", "accumulated"])
    def test_a_hook_may_take_itself_off(self, where: str) -> None:
        x = leaf(2)
        y = x * 2
        calls: list[str] = []

        def hook(*_: object) -> None:
            calls.append(where)
            handle.remove()

        register = {
            "tensor": y.register_hook,
            "pre": y.grad_fn.register_prehook,
            "post": y.grad_fn.register_hook,
            "leaf": x.register_hook,
            "accumulated": x.register_post_accumulate_grad_hook,
        }
        handle = register[where](hook)
        register[where](lambda *_: calls.append("other"))
        y.backward(ones(x), retain_graph=True)
        y.backward(ones(x))
        assert calls == [where, "other", "other"]


class TestGradientEdge:
    def test_in_an_inputs_place(self) -> None:
        x = leaf(2)
        y = x * 3
        edge = get_gradient_edge(y)
        z = (y * y).sum()
        del y
        (g,) = grad(z, edge, retain_graph=True)
        assert g.tolist() == pytest.approx([6 * v for v in x.tolist()])
        (g,) = grad(z, [get_gradient_edge(x)], retain_graph=True)
        assert g.tolist() == pytest.approx([18 * v for v in x.tolist()])
        backward(z, inputs=[get_gradient_edge(x)], retain_graph=True)
        z.backward(inputs=[get_gradient_edge(x)])
        assert x.grad.tolist() == pytest.approx([36 * v for v in x.tolist()])

    def test_in_an_outputs_place(self) -> None:
        x = leaf(2)
        edge = get_gradient_edge(x * 3)
        with pytest.raises(RuntimeError, match="is not known, since it is a GradientEdge"):
            grad(edge, x)
        (g,) = grad(edge, x, ones(x))
        assert g.tolist() == [3.0, 3.0]

    def test_the_graph_of_a_function_is_kept(self) -> None:
        x = leaf(2)
        edge = get_gradient_edge(Square.apply(x))
        gc.collect()
        (g,) = grad(edge, x, ones(x))
        assert g.tolist() == pytest.approx([2 * v for v in x.tolist()])

    def test_what_has_none(self) -> None:
        with pytest.raises(RuntimeError, match="does not require grad"):
            get_gradient_edge(core.ones(2))
        y = leaf(2) * 1
        with pytest.raises(IndexError, match="has 1 results, output_nr 3 is out of range"):
            grad(y.sum(), GradientEdge(y.grad_fn, 3))
        with pytest.raises(TypeError, match="must be Tensor"):
            grad(y.sum(), [(1, 2)])

    def test_an_edge_that_was_not_used(self) -> None:
        x, other = leaf(2), leaf(2) * 1
        with pytest.raises(RuntimeError, match=r"result of MulBackward0.* was not used"):
            grad((x * 2).sum(), get_gradient_edge(other))
        assert grad((x * 2).sum(), get_gradient_edge(other), allow_unused=True) == (None,)


class TestMultiGradHook:
    def test_all(self) -> None:
        a, b = leaf(2), leaf(2)
        c, d = a * b, a * b
        seen: list[list[bool]] = []
        handle = register_multi_grad_hook(
            (a, b, c, d), lambda grads: seen.append([g is not None for g in grads])
        )
        c.sum().backward(retain_graph=True)
        c.sum().backward(inputs=(a,), retain_graph=True)
        (c + d).sum().backward(retain_graph=True)
        handle.remove()
        c.sum().backward()
        assert seen == [[True, True, True, False], [True, False, True, False], [True, True, True, True]]

    def test_any(self) -> None:
        a, b = leaf(2), leaf(2)
        seen = []
        with register_multi_grad_hook((a, b, core.ones(2)), seen.append, mode="any"):
            (a * 2 + b * 3).sum().backward()
            (a * 2 + b * 3).sum().backward()
        assert len(seen) == 2
        assert all(g.tolist() in ([2.0, 2.0], [3.0, 3.0]) for g in seen)

    @pytest.mark.parametrize("failing", [0, 1])
    def test_after_a_pass_that_raised(self, failing: int) -> None:
        leaves = a, b = leaf(2), leaf(2)
        seen = []
        fails = leaves[failing].register_hook(lambda g: 1 / 0)
        register_multi_grad_hook(leaves, seen.append)
        with pytest.raises(ZeroDivisionError):
            (a * b).sum().backward()
        fails.remove()
        (a * b).sum().backward()
        assert len(seen) == 1

    def test_bad_arguments(self) -> None:
        with pytest.raises(ValueError, match="'all' or 'any', not 'some'"):
            register_multi_grad_hook((leaf(2),), print, mode="some")
        with pytest.raises(RuntimeError, match="does not require grad"):
            register_multi_grad_hook((core.ones(2),), print)


def test_nodes_off_the_way_to_the_inputs_do_not_run() -> None:
    """Their hooks do not run, and gradients that only these nodes need are not computed."""
    x, w = leaf(2), leaf(2)
    asked = []

    class Times(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            asked.append(1)
            return g

    w.register_hook(lambda g: asked.append(2))
    y = (x * Times.apply(w)).sum()
    (g,) = grad(y, x, retain_graph=True)
    assert g.tolist() == w.tolist()
    assert not asked
    y.backward()
    assert asked == [1, 2]


class TestVersions:
    def test_a_write_by_other_means_is_found(self) -> None:
        x = leaf(2)
        y = x * 1
        z = y * y
        before = y._version
        graph.increment_version([y])
        assert y._version == before + 1
        with pytest.raises(RuntimeError, match="last by increment_version"):
            z.backward(ones(x))

    def test_tensors_of_inference_mode_are_passed_over(self) -> None:
        with core.inference_mode():
            t = core.ones(2)
        graph.increment_version(t)


class TestMutation:
    def test_what_is_saved_is_copied_on_the_first_write(self) -> None:
        x = leaf(3)
        with graph.allow_mutation_on_saved_tensors() as book:
            y = x * 1
            square, untouched = y * y, x * x
            y.select(0, 0).zero_()
            y.mul_(2)
            y.mul_(y)
            core.add(x.detach(), 1, out=y.detach())
        assert book.copies == 2  # two copies of y, one for each of the two arguments of the first product
        (square.sum() + untouched.sum()).backward()
        assert x.grad.tolist() == pytest.approx([4 * v for v in x.tolist()])

    def test_gradients_of_the_write_itself(self) -> None:
        x = leaf(3)
        with graph.allow_mutation_on_saved_tensors():
            y = x * 1
            y.mul_(y)
            y.exp_()
            y.sum().backward()
        want = [2 * v * math.exp(v * v) for v in x.tolist()]
        assert x.grad.tolist() == pytest.approx(want)

    def test_afterwards_a_write_is_an_error_again(self) -> None:
        x = leaf(3)
        y = x * 1
        with graph.allow_mutation_on_saved_tensors():
            z = y * y
        y.add_(1)
        with pytest.raises(RuntimeError, match="was changed after the block"):
            z.sum().backward()

    def test_it_does_not_nest(self) -> None:
        with (
            graph.allow_mutation_on_saved_tensors(),
            pytest.raises(RuntimeError, match="cannot be nested"),
            graph.allow_mutation_on_saved_tensors(),
        ):
            pass


class TestDisabledHooks:
    def test_entering_hooks_raises_the_message(self) -> None:
        with graph.disable_saved_tensors_hooks("not in here"):
            with (
                pytest.raises(RuntimeError, match=r"^not in here$"),
                graph.saved_tensors_hooks(lambda t: t, lambda t: t),
            ):
                pass
            leaf(2).exp().sum().backward()
        with graph.saved_tensors_hooks(lambda t: t, lambda t: t):
            leaf(2).exp().sum().backward()

    def test_where_hooks_are_on_already(self) -> None:
        with (
            graph.saved_tensors_hooks(lambda t: t, lambda t: t),
            pytest.raises(RuntimeError, match=r"^not in here$"),
            graph.disable_saved_tensors_hooks("not in here"),
        ):
            pass


def test_the_old_name_of_grad_tensors() -> None:
    x = leaf(2)
    with pytest.warns(FutureWarning, match="grad_variables is deprecated"):
        backward([x * 2], grad_variables=[ones(x)])
    assert x.grad.tolist() == [2.0, 2.0]


def test_the_switch_of_threads_is_a_context_too() -> None:
    x = leaf(2)
    with set_multithreading_enabled(False):
        x.exp().sum().backward()
    set_multithreading_enabled(True)
    assert x.grad is not None


@pytest.mark.parametrize("mode", ["reduced", "complete"])
def test_qr_of_a_matrix_without_columns_has_a_derivative(mode: str) -> None:
    x = core.ones(3, 0, dtype=core.float64, requires_grad=True)
    q, r = core.linalg.qr(x, mode)
    (q.sum() + r.sum()).backward()
    assert x.grad is not None
    assert x.grad.shape == (3, 0)


def test_linear_of_a_vector_takes_a_bias_of_one_row() -> None:
    leaves = [core.ones(*shape, dtype=core.float64, requires_grad=True) for shape in ((3,), (4, 3), (1, 4))]
    y = core.linear(*leaves)
    assert y.tolist() == [4.0, 4.0, 4.0, 4.0]
    y.sum().backward()
    bias = leaves[2]
    assert bias.grad is not None
    assert bias.grad.tolist() == [[1.0, 1.0, 1.0, 1.0]]


def test_another_name_of_the_gradient():
    x = core.ones(2, requires_grad=True)
    x._grad = core.tensor([1.0, 2.0])
    assert x.grad is x._grad
    x.sum().backward()
    assert x.grad.tolist() == [2.0, 3.0]
    x._grad = None
    assert x.grad is None


def test_nodes_have_a_class_for_each_name() -> None:
    x = core.ones(2, requires_grad=True)
    node = (x * 2).exp().grad_fn
    names = []
    while node is not None:
        assert type(node).__name__ == node.name()
        assert isinstance(node, graph.Node)
        names.append(type(node).__name__)
        following = node.next_functions
        node = following[0][0] if following else None
    assert names == ["ExpBackward0", "MulBackward0", "AccumulateGrad"]
    assert type((x + x).grad_fn) is type((x + 1).grad_fn)
    with pytest.raises(TypeError, match="cannot create"):
        type((x + x).grad_fn)()
