"""Gradients of masked reductions and normalizations."""

from __future__ import annotations

from typing import Any

import pytest

import rushlight_autograd as autograd
import rushlight_core as core
from rushlight_core import masked

WITHOUT_GRADIENT = {"argmax", "argmin"}
MASK = core.tensor([[True, False, True, True], [True, True, True, False], [False, True, True, True]])


def call(name: str, x: core.Tensor) -> core.Tensor:
    function: Any = getattr(masked, name)
    if name == "logaddexp":
        return function(x, 2 * x, input_mask=MASK)
    return function(x, *((2.0, 1) if name in ("norm", "normalize") else (1,)), mask=MASK)


@pytest.mark.parametrize("name", sorted(set(masked.__all__) - WITHOUT_GRADIENT))
def test_gradients(name: str) -> None:
    core.manual_seed(0)
    x = core.randn(3, 4, dtype=core.float64, requires_grad=True)
    # log_softmax returns -inf for elements that are masked out. Clamp it, because it has no finite differences.
    assert autograd.gradcheck(lambda x: call(name, x).clamp(min=-100), (x,))


@pytest.mark.parametrize("name", sorted(set(masked.__all__) - WITHOUT_GRADIENT - {"logaddexp"}))
def test_what_is_left_out_has_no_influence(name: str) -> None:
    core.manual_seed(0)
    values = core.randn(3, 4)
    results = []
    for other in (0.0, core.nan, core.inf):
        x = core.where(MASK, values, other).requires_grad_()
        result = call(name, x)
        result.where(result > -core.inf, 0.0).sum().backward()
        results.append((result.detach(), x.grad))
    for result, grad in results[1:]:
        assert core.equal(result, results[0][0])
        assert core.equal(grad, results[0][1])
    assert (results[0][1][~MASK] == 0).all()
