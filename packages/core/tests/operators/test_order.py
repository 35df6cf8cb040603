"""Sorting and selecting the first elements: every dtype, long and short rows, equal elements, NaN and both zeros."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight_core as core

DTYPES = [
    "bool",
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "float32",
    "float64",
]


def values(dtype: str, n: int) -> np.ndarray:
    """Return the extremes of the dtype, both zeros, NaN and many equal elements, shuffled."""
    rng = np.random.default_rng(n)
    kind = np.dtype(dtype)
    if kind.kind == "f":
        odd = [
            np.nan,
            -np.nan,
            np.inf,
            -np.inf,
            0.0,
            -0.0,
            np.finfo(kind).max,
            np.finfo(kind).smallest_subnormal,
        ]
        x = np.concatenate([np.array(odd, kind), rng.normal(size=n).round(1).astype(kind)])
    elif kind.kind == "b":
        x = rng.random(n) < 0.5
    else:
        info = np.iinfo(kind)
        x = np.concatenate([np.array([info.min, info.max, 0, 1], kind), rng.integers(0, 50, n).astype(kind)])
    return rng.permutation(x)[:n]


def expected(x: np.ndarray, descending: bool) -> np.ndarray:
    """Return the indices of a stable sort in which NaN is the largest value."""
    wide = x.astype(object) if x.dtype.kind in "iu" else x.astype(np.float64)
    missing = np.isnan(wide) if x.dtype.kind == "f" else np.zeros(x.shape, bool)
    wide = np.where(missing, 0, wide)
    if descending:
        return np.lexsort(
            (np.arange(len(x)), -wide.astype(object) if x.dtype.kind in "iu" else -wide, ~missing)
        )
    return np.lexsort((np.arange(len(x)), wide, missing))


@pytest.mark.parametrize("n", [1, 5, 96, 97, 3000])
@pytest.mark.parametrize("dtype", DTYPES)
def test_sort_is_stable_both_ways(dtype: str, n: int) -> None:
    x = values(dtype, n)
    for descending in (False, True):
        got = core.sort(core.from_numpy(x), descending=descending)
        order = expected(x, descending)
        np.testing.assert_array_equal(got[1].numpy(), order)
        np.testing.assert_array_equal(got[0].numpy(), x[order])


@pytest.mark.parametrize("k", [0, 1, 7, 300, 2999, 3000])
@pytest.mark.parametrize("dtype", ["int64", "float32", "float64", "uint8"])
def test_topk_is_the_beginning_of_a_sort(dtype: str, k: int) -> None:
    x = values(dtype, 3000)
    for largest in (False, True):
        got = core.topk(core.from_numpy(x), k, largest=largest)
        np.testing.assert_array_equal(got[1].numpy(), expected(x, largest)[:k])


def test_lines_along_any_dimension() -> None:
    x = np.random.default_rng(0).integers(0, 9, (130, 3, 5)).astype(np.float32)
    for dim in (0, 1, 2):
        got = core.sort(core.from_numpy(x), dim)
        np.testing.assert_array_equal(got[1].numpy(), np.argsort(x, dim, kind="stable"))
        np.testing.assert_array_equal(got[0].numpy(), np.sort(x, dim))
