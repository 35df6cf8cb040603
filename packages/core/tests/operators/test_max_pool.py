"""The indices that max_pool returns, compared with a search of each window element by element."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import rushlight_core as core

CASES = [
    # kernel, stride, padding, dilation
    ((3, 3), (1, 1), (0, 0), (1, 1)),
    ((2, 3), (2, 1), (1, 1), (1, 1)),
    ((3, 2), (1, 2), (1, 1), (2, 3)),
    ((2, 1), (1, 1), (1, 0), (9, 1)),  # the first row of windows is in the padding or one element beyond
    ((1, 3), (1, 2), (0, 1), (1, 2)),  # the windows lie in one row
    ((3, 3, 2), (1, 2, 1), (1, 1, 0), (1, 1, 2)),
    ((2, 2, 2), (2, 2, 2), (0, 0, 0), (1, 1, 1)),
]


def max_positions(x: Any, window: Any) -> Any:
    """Return the index of each window's first largest element, or of its last NaN; -1 for windows without elements."""
    kernel, stride, padding, dilation = window
    sizes = [
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, k, s, p, d in zip(x.shape, kernel, stride, padding, dilation, strict=True)
    ]
    found = np.full(sizes, -1)
    for at in np.ndindex(*sizes):
        starts = [o * s - p for o, s, p in zip(at, stride, padding, strict=True)]
        best = -1
        for step in itertools.product(*map(range, kernel)):
            position = [a + i * d for a, i, d in zip(starts, step, dilation, strict=True)]
            if not all(0 <= i < n for i, n in zip(position, x.shape, strict=True)):
                continue
            index = int(np.ravel_multi_index(position, x.shape))
            value = x.flat[index]
            if best < 0 or value > x.flat[best] or value != value:
                best = index
        found[at] = best
    return found


@pytest.mark.parametrize("window", CASES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int32"])
def test_positions_of_the_largest(window: Any, dtype: str) -> None:
    rng, dims = np.random.default_rng(7), len(window[0])
    pool = core.max_pool2d_with_indices if dims == 2 else core.max_pool3d_with_indices
    for _ in range(4):
        # There are few distinct numbers, so that some elements are equal.
        x = rng.integers(-3, 4, (2, *(9, 21, 7)[3 - dims :])).astype(float)
        if dtype != "int32":
            x[rng.random(x.shape) < 0.2] = np.nan
            x[rng.random(x.shape) < 0.1] = -np.inf
        tensor = core.tensor(x.tolist()).to(getattr(core, dtype))
        values, indices = pool(tensor, *window)
        alone = (core.max_pool2d if dims == 2 else core.max_pool3d)(tensor, *window)
        np.testing.assert_array_equal(alone.double().numpy(), values.double().numpy())
        for plane, given, chosen in zip(x, values.to(core.float64).numpy(), indices.numpy(), strict=True):
            expected = max_positions(plane, window)
            assert np.array_equal(chosen, expected)
            there = expected >= 0
            assert np.array_equal(given[there], plane.flat[expected[there]], equal_nan=True)
            if dtype != "int32":
                assert (given[~there] == -np.inf).all()
