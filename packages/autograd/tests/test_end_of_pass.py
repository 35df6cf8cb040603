"""Callbacks at the end of a backward pass."""

from __future__ import annotations

import pytest

import rushlight_autograd as autograd
import rushlight_core as core

engine = autograd.Variable._execution_engine


def test_a_callback_runs_once_after_all_gradients() -> None:
    first, second = core.ones(2, requires_grad=True), core.ones(2, requires_grad=True)
    seen = []

    def at_end() -> None:
        seen.append((first.grad is not None, second.grad is not None))

    second.register_post_accumulate_grad_hook(lambda _: engine.queue_callback(at_end))
    (first.exp() * second).sum().backward()
    assert seen == [(True, True)]
    second.detach_()
    first.exp().sum().backward()
    assert len(seen) == 1


def test_a_callback_may_queue_another_one() -> None:
    x, seen = core.ones(2, requires_grad=True), []

    def first() -> None:
        seen.append("first")
        engine.queue_callback(lambda: seen.append("second"))

    x.register_hook(lambda _: engine.queue_callback(first))
    x.exp().sum().backward()
    assert seen == ["first", "second"]
    with pytest.raises(RuntimeError, match="no backward pass is running"):
        engine.queue_callback(first)


def test_an_error_in_the_pass_drops_the_callback_and_one_in_the_callback_is_raised() -> None:
    def fail() -> None:
        raise KeyError("from the callback")

    seen = []
    x = core.ones(2, requires_grad=True)
    y = x * 2
    y.register_hook(lambda _: engine.queue_callback(lambda: seen.append(1)))
    x.register_hook(lambda _: fail())
    with pytest.raises(KeyError):
        y.sum().backward()
    assert not seen
    z = core.ones(2, requires_grad=True)
    z.register_hook(lambda _: engine.queue_callback(fail))
    with pytest.raises(KeyError, match="from the callback"):
        (z * 2).sum().backward()
    assert z.grad is not None


def test_the_end_is_that_of_the_outermost_pass() -> None:
    order = []
    inner, outer = core.ones(1, requires_grad=True), core.ones(1, requires_grad=True)

    def run_inner(_: object) -> None:
        with core.enable_grad():
            (inner * 3).sum().backward()
        order.append("inner pass")

    inner.register_hook(lambda _: engine.queue_callback(lambda: order.append("callback")))
    outer.register_hook(run_inner)
    (outer * 2).sum().backward()
    assert order == ["inner pass", "callback"]


def test_outside_of_a_pass_it_is_refused() -> None:
    with pytest.raises(RuntimeError, match="no backward pass is running"):
        engine.queue_callback(lambda: None)
    with pytest.raises(TypeError):
        engine.queue_callback(3)  # type: ignore[arg-type]


def test_with_parallel_branches() -> None:
    leaves = [core.ones(3, requires_grad=True) for _ in range(8)]
    seen = []

    def at_end() -> None:
        seen.append(all(leaf.grad is not None for leaf in leaves))

    for leaf in leaves:
        leaf.register_post_accumulate_grad_hook(lambda _: engine.queue_callback(at_end))
    with autograd.parallel_branches():
        sum((leaf.exp().sum() for leaf in leaves), core.zeros(())).backward()
    assert seen == [True] * 8
