"""Law: if a result fits float16, no intermediate result overflows.

Each sample is called with float16 tensors whose elements are large, and with the same numbers in float64. bfloat16 is not
tested, because it has the range of float32, in which its results are computed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rushlight_core as core
from rushlight_core.codegen.model import Op
from rushlight_testing.dtypes import samples_of_dtype
from rushlight_testing.operators import TYPED_ERRORS, call, flat, is_random, map_tensors, operators

OPS = [op for op in operators() if op.samples and not is_random(op) and not op.base.startswith("_")]
FACTOR = 64.0  # for the elements of samples, which are small: third powers overflow
LARGEST = 65504.0

# Operators that overflow, and why.
KNOWN: dict[str, str] = {
    "prod_backward": "the result is an argument, which is not the product of the factors if all tensors are scaled",
}


def overflows(mine: Any, exact: Any) -> bool:
    """Return whether a float16 result is not finite although the float64 result is well within float16's range."""
    if not isinstance(mine, core.Tensor) or mine.dtype != core.float16 or mine.shape != exact.shape:
        return False
    got, want = mine.double().numpy(), exact.double().numpy()
    return bool((~np.isfinite(got) & (np.abs(want) < LARGEST / 4)).any())


def in_float64(t: Any) -> Any:
    return t.double() if t.dtype == core.float16 else t


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_no_overflow(op: Op) -> None:
    found = []
    for sample in samples_of_dtype(op, "float16"):
        large = map_tensors(lambda t: (t * FACTOR) if t.dtype == core.float16 else t, sample)
        try:
            exact, mine = flat(call(op, map_tensors(in_float64, large))), flat(call(op, large))
        except TYPED_ERRORS:
            continue
        if len(mine) == len(exact) and any(overflows(*pair) for pair in zip(mine, exact, strict=True)):
            found.append(sample.text)
    assert bool(found) == (op.name in KNOWN), found


@pytest.mark.parametrize("shape", [(4000, 3), (5, 4000), (8, 300), (12000,)], ids=str)
@pytest.mark.parametrize("dtype", [core.bfloat16, core.float16], ids=str)
def test_sums_beyond_the_range_of_float(shape: tuple[int, ...], dtype: core.dtype) -> None:
    # Neighbours along every dimension cancel, but partial sums in float overflow.
    largest = core.finfo(dtype).max
    values = core.full(shape, largest, dtype=dtype)
    for dim in range(len(shape)):
        half = shape[dim] // 2
        x = values.clone()
        x.narrow(dim, half, half).neg_()
        x.narrow(dim, 2 * half, shape[dim] - 2 * half).fill_(1)
        assert core.equal(x.sum(dim), x.double().sum(dim).to(dtype))
        assert core.equal(x.mean(dim), x.double().mean(dim).to(dtype))


def test_nan_and_infinity_in_sums_of_halves() -> None:
    x = core.ones(70, 70, dtype=core.bfloat16)
    x[3, 5], x[10, 20] = core.nan, core.inf
    for dim in (0, 1):
        wanted = x.double().sum(dim).to(core.bfloat16)
        assert core.equal(core.nan_to_num(x.sum(dim), nan=7.0), core.nan_to_num(wanted, nan=7.0))
        assert core.equal(core.nansum(x, dim), core.nansum(x.double(), dim).to(core.bfloat16))
