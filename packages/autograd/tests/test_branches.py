"""Parallel branches: sums, exceptions, hooks and modes are the same as on one thread."""

from __future__ import annotations

import threading
import time

import pytest
from autograd_samples import leaf, ones

import rushlight_core as core
from rushlight_autograd import Function, grad, gradcheck, parallel_branches, set_multithreading_enabled


@pytest.fixture(autouse=True)
def two_threads():
    before = core.get_num_threads()
    core.set_num_threads(2)
    yield
    core.set_num_threads(before)


def branches(x, width: int = 6, depth: int = 12):
    """Return sums of branches in float32, whose rounding depends on the order of additions."""
    ends = []
    for i in range(width):
        y = x * (1.1 + i)
        for _ in range(depth):
            y = (y * 0.9).tanh() + x * 0.1
        ends.append(y)
    return sum(ends)


def test_the_bits_are_those_of_one_thread() -> None:
    x = core.randn(57).requires_grad_()
    w = core.randn(57)
    (alone,) = grad(branches(x), x, w)
    for _ in range(20):
        with parallel_branches():
            (together,) = grad(branches(x), x, w)
        assert (together == alone).all()


class Meet(Function):
    """A Function whose backward waits until the backward of another call has begun."""

    @staticmethod
    def forward(ctx, x, barrier, seen):
        ctx.barrier, ctx.seen = barrier, seen
        return x * 1

    @staticmethod
    def backward(ctx, g):
        ctx.seen.append((threading.get_ident(), core.is_grad_enabled()))
        ctx.barrier.wait(timeout=30)
        return g, None, None


def test_branches_run_on_two_threads() -> None:
    barrier, seen = threading.Barrier(2), []
    x, y = leaf(2), leaf(2)
    out = Meet.apply(x, barrier, seen) + Meet.apply(y, barrier, seen)
    with parallel_branches():
        out.backward(ones(x))
    assert len({ident for ident, _ in seen}) == 2
    assert x.grad.tolist() == y.grad.tolist() == [1.0, 1.0]


def test_the_state_of_the_caller_is_carried_over() -> None:
    barrier, seen = threading.Barrier(2), []
    x, y = leaf(2), leaf(2)
    with parallel_branches():
        out = Meet.apply(x, barrier, seen) + Meet.apply(y, barrier, seen)
        grad(out, (x, y), ones(x), create_graph=True)
    assert [enabled for _, enabled in seen] == [True, True]


@pytest.mark.parametrize("on", ["disabled", "not allowed", "nested"])
def test_switches(on: str) -> None:
    barrier, seen = threading.Barrier(1), []
    x = leaf(2)
    out = Meet.apply(x, barrier, seen) + Meet.apply(x, barrier, seen)
    if on == "disabled":
        with parallel_branches(enabled=False):
            out.backward(ones(x))
    elif on == "not allowed":
        with set_multithreading_enabled(False), parallel_branches():
            out.backward(ones(x))
    else:
        with parallel_branches(), parallel_branches(False):
            out.backward(ones(x))
    assert {ident for ident, _ in seen} == {threading.get_ident()}


class Fails(Function):
    @staticmethod
    def forward(ctx, x, barrier):
        ctx.barrier = barrier
        return x * 1

    @staticmethod
    def backward(ctx, g):
        ctx.barrier.wait(timeout=30)
        raise KeyError("mine")


def test_exceptions_arrive_with_their_type() -> None:
    for _ in range(5):
        barrier = threading.Barrier(2)
        x = leaf(2)
        out = Fails.apply(x, barrier) + Fails.apply(x, barrier)
        with parallel_branches(), pytest.raises(KeyError, match="mine") as caught:
            out.backward(ones(x))
        assert caught.traceback[-1].name == "backward"
        assert x.grad is None


def test_an_exception_of_a_saved_tensor_hook_arrives() -> None:
    from rushlight_autograd.graph import saved_tensors_hooks

    x = leaf(2)
    out = sum((x * (i + 2.0)).exp() for i in range(4))

    def fails(t):
        raise KeyError("packed")

    with parallel_branches(), pytest.raises(KeyError, match="packed"), saved_tensors_hooks(fails, fails):
        grad(out, x, ones(x), create_graph=True)


def test_hooks_and_second_derivatives() -> None:
    calls = []

    def f(x, y):
        a, b = (x * y).tanh(), (x + y).exp()
        for y in (a, b):
            if y.requires_grad:
                y.register_hook(lambda g: calls.append(1))
        return a * b + a

    with parallel_branches():
        gradcheck(f, (leaf(3), leaf(3)))
    assert calls


def test_a_pass_inside_of_a_pass() -> None:
    class Inner(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 1

        @staticmethod
        def backward(ctx, g):
            with core.enable_grad():
                x = ctx.saved_tensors[0].detach().requires_grad_()
                return grad(branches(x, 3, 3), x, g)[0]

    x = leaf(4)
    with parallel_branches():
        (Inner.apply(x) + Inner.apply(x * 2)).sum().backward()
    assert x.grad is not None


def test_many_threads_share_a_leaf_and_a_graph() -> None:
    x = leaf(8)
    y = branches(x, 3, 4).sum()
    errors: list[BaseException] = []

    def run() -> None:
        try:
            with parallel_branches():
                for _ in range(10):
                    y.backward(retain_graph=True)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    (once,) = grad(y, x)
    assert x.grad.tolist() == pytest.approx([80 * v for v in once.tolist()])


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoints_in_branches_keep_their_random_numbers(reentrant: bool) -> None:
    """Each branch is recomputed with its own random state, even if another branch is recomputed at the same time."""
    from rushlight_autograd.checkpoint import checkpoint

    def noisy(x):
        for _ in range(5):
            x = x * core.rand(5)
            time.sleep(1e-4)  # lets other threads run
        return x

    x = core.ones(5, requires_grad=True)
    for _ in range(3):
        core.manual_seed(1)
        direct = grad(sum(noisy(x * i) for i in range(1, 5)).sum(), x)[0]
        core.manual_seed(1)
        total = sum(checkpoint(noisy, x * i, use_reentrant=reentrant) for i in range(1, 5)).sum()
        x.grad = None
        with parallel_branches():
            total.backward()
        assert (x.grad == direct).all()
