"""The backward pass: accumulation, freed graphs, errors, depth, threads."""

from __future__ import annotations

import gc
import signal
import threading
import weakref

import pytest
from autograd_samples import leaf, ones

import rushlight_core as core
from rushlight_autograd import backward, grad


def test_gradients_accumulate_in_leaves() -> None:
    x = leaf(3)
    for times in (1, 2, 3):
        (x * 2).backward(ones(x))
        assert x.grad.tolist() == [2.0 * times] * 3


def test_a_first_gradient_is_not_shared_with_its_giver() -> None:
    x = leaf(3)
    given = core.ones(3, dtype=core.float64)
    (x * 1).backward(given)
    given.zero_()
    assert x.grad.tolist() == [1.0, 1.0, 1.0]


def test_two_leaves_do_not_share_one_gradient() -> None:
    x, y = leaf(2), leaf(2)
    (x + y).backward(ones(x))
    assert x.grad.data_ptr() != y.grad.data_ptr()


def test_a_diamond_sums_both_ways() -> None:
    x = leaf(2)
    y = x * 3
    (y * y + y).backward(ones(x))
    for got, v in zip(x.grad.tolist(), x.tolist(), strict=True):
        assert got == pytest.approx(18 * v + 3)


def test_backward_needs_a_history() -> None:
    with pytest.raises(RuntimeError, match="does not require grad"):
        core.ones(1).backward()


def test_backward_needs_a_gradient_for_many_elements() -> None:
    with pytest.raises(RuntimeError, match="outputs of one element"):
        (leaf(3) * 2).backward()


def test_a_gradient_of_another_shape_is_refused() -> None:
    with pytest.raises(RuntimeError, match=r"shape \(2,\), the output has \(3,\)"):
        (leaf(3) * 2).backward(core.ones(2, dtype=core.float64))


def test_a_graph_can_be_used_once() -> None:
    x = leaf(2)
    y = x * x
    y.backward(ones(x))
    with pytest.raises(RuntimeError, match="used already"):
        y.backward(ones(x))


def test_a_retained_graph_can_be_used_again() -> None:
    x = leaf(2)
    y = x * x
    y.backward(ones(x), retain_graph=True)
    y.backward(ones(x))
    assert x.grad.tolist() == pytest.approx([4 * v for v in x.tolist()])


def test_grad_returns_and_does_not_accumulate() -> None:
    x, y = leaf(2), leaf(2)
    gx, gy = grad(x * y, (x, y), ones(x))
    assert gx.tolist() == y.tolist()
    assert gy.tolist() == x.tolist()
    assert x.grad is None


def test_grad_of_an_inner_tensor() -> None:
    x = leaf(2)
    y = x * 2
    (g,) = grad(y * y, y, ones(x))
    assert g.tolist() == pytest.approx([4 * v for v in x.tolist()])


def test_grad_of_what_was_not_used() -> None:
    x, y = leaf(2), leaf(2)
    with pytest.raises(RuntimeError, match=r"input 0 .* was not used"):
        grad(x * 2, y, ones(x))
    assert grad(x * 2, y, ones(x), allow_unused=True) == (None,)
    assert grad(x * 2, y, ones(x), materialize_grads=True)[0].tolist() == [0.0, 0.0]


def test_backward_of_chosen_inputs_only() -> None:
    x, y = leaf(2), leaf(2)
    backward(x * y, ones(x), inputs=[x])
    assert x.grad is not None
    assert y.grad is None


def test_second_derivative() -> None:
    x = leaf(3)
    (g,) = grad(x * x * x, x, ones(x), create_graph=True)
    (h,) = grad(g, x, ones(x))
    assert h.tolist() == pytest.approx([6 * v for v in x.tolist()])


def test_broadcast_gradients_have_the_shape_of_the_leaf() -> None:
    x, y = leaf(3, 1), leaf(4)
    (x * y).backward(core.ones(3, 4, dtype=core.float64))
    assert tuple(x.grad.shape) == (3, 1)
    assert tuple(y.grad.shape) == (4,)


def test_a_promoted_argument_gets_a_gradient_of_its_dtype() -> None:
    x = leaf(2, dtype=core.float32)
    (x * leaf(2)).backward(core.ones(2, dtype=core.float64))
    assert x.grad.dtype == core.float32


def test_no_grad_records_nothing() -> None:
    x = leaf(2)
    with core.no_grad():
        y = x * 2
    assert not y.requires_grad
    assert y.grad_fn is None


def test_detach_cuts() -> None:
    x = leaf(2)
    (x.detach() * x).backward(ones(x))
    assert x.grad.tolist() == x.tolist()


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
            del z  # a graph that never ran
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


def test_tensors_are_freed_with_their_graph() -> None:
    x = leaf(2)
    y = x * x
    alive = weakref.ref(y)
    z = y * y
    z.backward(ones(x))
    del y, z
    gc.collect()
    assert alive() is None


def test_an_out_argument_cannot_be_recorded() -> None:
    x = leaf(2)
    with pytest.raises(RuntimeError, match="out="):
        core.add(x, x, out=core.empty(2, dtype=core.float64))


def test_ctrl_c_ends_a_backward_pass() -> None:
    """The handler runs in the middle, and its exception arrives; the graph is still there."""
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
