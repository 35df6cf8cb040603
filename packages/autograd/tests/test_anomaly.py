"""Anomaly mode."""

from __future__ import annotations

import pytest
from autograd_samples import leaf, ones

import rushlight_core as core
from rushlight_autograd import Function, detect_anomaly, set_detect_anomaly


def recorded_here(x):
    return x.sqrt()


def test_nan_names_its_forward_call() -> None:
    x = core.zeros(2, dtype=core.float64).requires_grad_()
    with detect_anomaly():
        y = recorded_here(x) * 0  # 0 * inf
        with pytest.raises(RuntimeError, match="returned nan values in its 0th output") as caught:
            y.backward(ones(x))
    text = str(caught.value)
    assert "'SqrtBackward0'" in text
    assert "in recorded_here" in text
    assert x.grad is None
    recorded_here(x).mul(0).backward(ones(x))  # off again
    assert x.grad.isnan().all()


def test_nan_may_be_let_pass() -> None:
    x = core.zeros(2, dtype=core.float64).requires_grad_()
    with detect_anomaly(check_nan=False):
        (x.sqrt() * 0).backward(ones(x))
    assert x.grad.isnan().all()


def test_an_error_names_its_forward_call() -> None:
    x = leaf(2)
    with set_detect_anomaly(True):
        y = x * 1
        z = y * y
        y.mul_(2)
        with pytest.raises(RuntimeError, match="changed in place") as caught:
            z.backward(ones(x))
    assert "test_an_error_names_its_forward_call" in str(caught.value)


def test_the_exception_of_a_function_stays_what_it_is() -> None:
    class Fails(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            raise KeyError("mine")

    x = leaf(2)
    with detect_anomaly(), pytest.raises(KeyError, match="mine"):
        Fails.apply(x).backward(ones(x))


def test_what_was_recorded_before_says_so() -> None:
    x = core.zeros(2, dtype=core.float64).requires_grad_()
    y = x.sqrt() * 0
    with detect_anomaly(), pytest.raises(RuntimeError, match="enable anomaly mode before the forward call"):
        y.backward(ones(x))


def test_the_switch_works_at_once() -> None:
    x = core.zeros(2, dtype=core.float64).requires_grad_()
    set_detect_anomaly(True)
    try:
        with pytest.raises(RuntimeError, match="nan"):
            (x.sqrt() * 0).backward(ones(x))
    finally:
        set_detect_anomaly(False)
    (x.sqrt() * 0).backward(ones(x))
