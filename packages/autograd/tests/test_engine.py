"""The backward pass: the tests for all providers of gradients (the kit), deep graphs, threads."""

from __future__ import annotations

import signal
import threading

import pytest
from autograd_samples import leaf, ones

import rushlight_core as core
from rushlight_autograd import Function, backward, grad
from rushlight_testing.conformance import AutogradContract


class TestEngine(AutogradContract):
    backward = staticmethod(backward)
    grad = staticmethod(grad)


@pytest.mark.parametrize(
    "shared",
    [
        lambda x: x.expand(3, 2),
        lambda x: -(x + 1),
        lambda x: core.stack([x, x]).sum(0),
        lambda x: x.reshape(3)[1:],
    ],
)
def test_what_saved_no_tensor_serves_many_passes(shared) -> None:
    x = leaf(3, 1)
    y = shared(x)
    y.square().sum().backward()
    first = x.grad.clone()
    y.square().sum().backward()
    assert core.allclose(x.grad, 2 * first)


def test_what_saved_a_tensor_is_used_up() -> None:
    x = leaf(3, 1)
    y = x.exp()
    (y * 2).sum().backward()
    with pytest.raises(RuntimeError, match=r"saved by ExpBackward0 were freed\nhint: pass retain_graph"):
        (y * 2).sum().backward()


@pytest.mark.parametrize("depth", [100_000])
def test_a_deep_chain_runs_and_dies_on_a_small_stack(depth: int) -> None:
    failures: list[BaseException] = []

    def run() -> None:
        try:
            x = leaf(1)
            y = x
            for _ in range(depth):
                y = y + 0.0
            y.backward()
            assert x.grad.tolist() == [1.0]
            z = x
            for _ in range(depth):
                z = z + 0.0
            del z  # destroys a graph that no pass has used
        except BaseException as error:
            failures.append(error)

    old = threading.stack_size(256 * 1024)
    try:
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(old)
    assert not failures


def test_threads_share_a_leaf() -> None:
    x = leaf(4)
    errors: list[BaseException] = []

    def run() -> None:
        try:
            for _ in range(50):
                (g,) = grad(x * x, x, ones(x))
                assert g.tolist() == pytest.approx([2 * v for v in x.tolist()])
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors


def test_ctrl_c_ends_a_backward_pass() -> None:
    """The signal handler runs during the pass, its exception reaches the caller, and the graph can be used again."""
    x = leaf(3)
    y = x
    for _ in range(200_000):
        y = y * 1
    ran = []
    handler = signal.signal(signal.SIGUSR1, lambda *_: ran.append(1) or 1 / 0)
    y.register_hook(lambda _: signal.raise_signal(signal.SIGUSR1))
    try:
        with pytest.raises(ZeroDivisionError):
            y.backward(ones(x), retain_graph=True)
    finally:
        signal.signal(signal.SIGUSR1, handler)
    assert ran == [1]
    assert x.grad is None


def test_what_a_pass_for_some_inputs_records_has_gradients_of_its_own() -> None:
    # The first pass needs only the gradient of x. The graph that it records also leads to w, so its nodes must save
    # the tensors for the gradient of w.
    w = core.tensor([[2.0], [3.0]], requires_grad=True)
    x = core.tensor([[1.0, -1.0], [0.5, 4.0]], requires_grad=True)
    (g,) = grad(x @ w, [x], core.ones(2, 1), create_graph=True)
    (g * g).sum().backward()
    assert w.grad.tolist() == [[8.0], [12.0]]

    class Again(Function):
        @staticmethod
        def forward(ctx, x, w):
            ctx.save_for_backward(x, w)
            return x @ w

        @staticmethod
        def backward(ctx, given):
            with core.enable_grad():
                x, w = (t.detach().requires_grad_() for t in ctx.saved_tensors)
                return grad(x @ w, [x, w], given)

    (g,) = grad(Again.apply(x, w), [x], core.ones(2, 1))
    assert g.tolist() == [[2.0, 3.0], [2.0, 3.0]]


def test_sums_do_not_write_into_the_gradient_that_was_given() -> None:
    x, g = leaf(4), core.ones(4, dtype=core.float64)
    (x.view(2, 2).view(4) + x.view(1, 4).view(4)).backward(g)
    assert x.grad.tolist() == [2.0] * 4
    assert g.tolist() == [1.0] * 4


def test_what_was_recorded_last_runs_first() -> None:
    x, order = leaf(3), []
    early, late = x * 2, x * 3
    early.register_hook(lambda g: order.append("early"))
    late.register_hook(lambda g: order.append("late"))
    (early + late).sum().backward()
    assert order == ["late", "early"]
