"""Law: if an operator selects one of several elements, its gradients add up to 1, even if elements are equal.

Adding a number to all arguments adds it to the result of such an operator, so the derivative in that direction is 1.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import pytest

import rushlight_core as core
from rushlight_autograd import forward_ad
from rushlight_core import Tensor

NUMBERS = [-math.inf, -2.0, 0.0, 0.0, 1.0, math.inf]
BETWEEN: dict[str, tuple[int, Callable[..., Tensor]]] = {
    "maximum": (2, core.maximum),
    "minimum": (2, core.minimum),
    "fmax": (2, core.fmax),
    "fmin": (2, core.fmin),
    "clamp(min)": (2, lambda x, low: core.clamp(x, min=low)),
    "clamp(max)": (2, lambda x, high: core.clamp(x, max=high)),
    "clamp": (3, core.clamp),
}
WITHIN: dict[str, Callable[[Tensor], Any]] = {
    "amax": lambda x: core.amax(x, 0),
    "amin": lambda x: core.amin(x, 0),
    "aminmax": lambda x: core.aminmax(x, dim=0),
    "max": core.max,
    "min": core.min,
    "max.dim": lambda x: core.max(x, 0).values,
    "min.dim": lambda x: core.min(x, 0).values,
    "cummax": lambda x: core.cummax(x, 0).values,
    "cummin": lambda x: core.cummin(x, 0).values,
    "median": core.median,
    "median.dim": lambda x: core.median(x, 0).values,
    "nanmedian": core.nanmedian,
    "kthvalue": lambda x: core.kthvalue(x, 3, 0).values,
    "mode": lambda x: core.mode(x, 0).values,
    "sort": lambda x: core.sort(x, 0).values,
    "topk": lambda x: core.topk(x, 3, 0).values,
    "quantile": lambda x: core.quantile(x, core.tensor([0.0, 0.3, 1.0], dtype=x.dtype), 0),
    "logsumexp": lambda x: core.logsumexp(x, 0),
    "mean": lambda x: core.mean(x, 0),
    "max_pool1d": lambda x: core.max_pool1d(x.unsqueeze(0), 2),
}


def derivatives(function: Callable[..., Any], *arguments: Tensor) -> tuple[list[Tensor], list[Tensor]]:
    """Return the gradients of the sum of all results, and the tangents of the results if all arguments have tangent 1."""
    leaves = [x.clone().requires_grad_() for x in arguments]
    results = function(*leaves)
    results = list(results) if isinstance(results, tuple) else [results]
    gradients = core.autograd.grad(sum(y.sum() for y in results), leaves)
    with forward_ad.dual_level():
        duals = [forward_ad.make_dual(x, core.ones_like(x)) for x in arguments]
        results = function(*duals)
        results = list(results) if isinstance(results, tuple) else [results]
        tangents = [forward_ad.unpack_dual(y).tangent for y in results]
    return list(gradients), tangents


@pytest.mark.parametrize("name", BETWEEN)
def test_equal_arguments_share_the_gradient(name: str) -> None:
    count, function = BETWEEN[name]
    arguments = core.tensor(list(itertools.product(NUMBERS, repeat=count))).unbind(1)
    gradients, (tangent,) = derivatives(function, *arguments)
    ones = [1.0] * len(arguments[0])
    assert sum(gradients).tolist() == tangent.tolist() == ones  # type: ignore[union-attr]
    assert all((g >= 0).all() for g in gradients)


@pytest.mark.parametrize("name", ["fmax", "fmin"])
def test_what_is_chosen_instead_of_nan_has_the_gradient(name: str) -> None:
    nan = core.full((len(NUMBERS),), math.nan)
    numbers = core.tensor(NUMBERS)
    for order in (1, -1):
        (*gradients,), _ = derivatives(BETWEEN[name][1], *(numbers, nan)[::order])
        of_numbers, of_nan = gradients[::order]
        assert of_numbers.tolist() == [1.0] * len(NUMBERS)
        assert of_nan.tolist() == [0.0] * len(NUMBERS)


@pytest.mark.parametrize("name", WITHIN)
def test_equal_elements_share_the_gradient(name: str) -> None:
    x = core.tensor([1.0, 1.0, -3.0, 1.0, -3.0, 0.0], dtype=core.float64).unsqueeze(1).expand(6, 2)
    if name == "max_pool1d":
        x = x.t()
    (gradient,), tangents = derivatives(WITHIN[name], x)
    assert gradient.sum().item() == pytest.approx(sum(t.numel() for t in tangents))
    assert all(t.flatten().tolist() == pytest.approx([1.0] * t.numel()) for t in tangents)
