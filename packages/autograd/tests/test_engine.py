"""The backward pass: what any provider of gradients does (the kit), depth, threads."""

from __future__ import annotations

import signal
import threading

import pytest
from autograd_samples import leaf, ones

from rushlight_autograd import backward, grad
from rushlight_testing.conformance import AutogradContract


class TestEngine(AutogradContract):
    backward = staticmethod(backward)
    grad = staticmethod(grad)


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
