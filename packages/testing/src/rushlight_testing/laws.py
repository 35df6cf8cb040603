"""Functions for the laws in ops/*.yaml, which test operators that have no reference implementation.

A law (the key `law` of an entry) is a Python expression that must be true. If the entry has samples, the law is evaluated
for each sample, with the arguments and `result` as NumPy arrays. If the entry has no samples, the expression
contains the call of the operator, and may use the helpers of rushlight_testing.samples. Laws of random
operators draw numbers with a fixed seed, and test whether they follow the expected distribution.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import rushlight_core as core


def adjoint(a: Any) -> Any:
    """Return the conjugate transposes of matrices."""
    return np.conj(np.swapaxes(a, -1, -2))


def close(a: Any, b: Any) -> bool:
    """Return whether values are equal within tolerances of 1e-4."""
    return bool(np.allclose(a, b, rtol=1e-4, atol=1e-4))


def orthonormal(a: Any) -> bool:
    """Return whether the columns of matrices are orthonormal."""
    return close(adjoint(a) @ a, np.eye(a.shape[-1]))


def follows(values: Any, name: str, *parameters: float) -> bool:
    """Return whether numbers pass the Kolmogorov-Smirnov test for a distribution of SciPy."""
    from scipy import stats

    return bool(stats.kstest(values.numpy(), name, parameters).pvalue > 1e-3)


def frequent(values: Any, wanted: dict[int, float]) -> bool:
    """Return whether the number of occurrences of each value is within four standard deviations of the expected number."""
    numbers = values.numpy()
    count = numbers.size
    rest = count
    for number, chance in wanted.items():
        seen = int((numbers == number).sum())
        rest -= seen
        if abs(seen - count * chance) > 4 * np.sqrt(count * chance * (1 - chance)) + 0.5:
            return False
    return rest <= count * (1 - sum(wanted.values())) + 4 * np.sqrt(count) * (sum(wanted.values()) < 0.999)


def raises(error: type[Exception], function: Callable[[], Any]) -> bool:
    """Return whether calling `function` raises an exception of the class `error`."""
    try:
        function()
    except error:
        return True
    return False


def same_memory(make: Callable[[Any, Any], Any]) -> bool:
    """Return whether `make(x, y)` gives x the memory and shape of y, as `x.set_(y)` does, and returns x."""
    x, y = core.zeros(1), core.arange(6.0).reshape(2, 3)
    made = make(x, y)
    y[0, 1] = 9.0
    return made is x and x.shape == y.shape and bool((x == y).all()) and x.data_ptr() == y.data_ptr()


def stepped(step: Callable[[Any, Any, Any], Any], wanted: Callable[[Any, Any, Any], Any]) -> bool:
    """Return whether an optimizer step, `step(params, grads, state)`, changes `params` to expected values.

    `wanted(params, grads, state)` returns the expected values. It receives the same arguments as `step`,
    before the step has changed them; `state` is zero.
    """

    def given() -> list[Any]:
        return [core.tensor([1.0, -2.0, 0.5]), core.tensor([3.0, -4.0, 0.25]), core.zeros(3)]

    own = given()
    step(*own)
    return bool(core.allclose(own[0], wanted(*given())))
