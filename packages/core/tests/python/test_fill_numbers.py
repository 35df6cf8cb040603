"""Numbers and tensors without dimensions that fill a tensor must fit its dtype."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import rushlight_core as rl

FILLS: dict[str, Callable[[rl.Tensor, Any], rl.Tensor]] = {
    "index_fill": lambda x, v: rl.index_fill(x, 0, rl.tensor([0]), v),
    "index_fill_": lambda x, v: x.index_fill_(0, rl.tensor([0]), v),
    "masked_fill": lambda x, v: rl.masked_fill(x, rl.tensor([True, False]), v),
    "masked_fill_": lambda x, v: x.masked_fill_(rl.tensor([True, False]), v),
    "full_like": rl.full_like,
}


@pytest.mark.parametrize("fill", FILLS)
@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        (rl.uint8, 300),
        (rl.uint8, -2.0),
        (rl.int8, 128),
        (rl.int32, 1e10),
        (rl.int64, float("nan")),
        (rl.int16, float("inf")),
        (rl.float32, 1j),
        (rl.float32, 1e300),
    ],
)
def test_values_that_do_not_fit_are_refused(fill: str, dtype: rl.dtype, value: Any) -> None:
    x = rl.ones(2, dtype=dtype)
    wide = rl.tensor(value, dtype=rl.complex128 if isinstance(value, complex) else rl.float64)
    for given in (value, wide):
        with pytest.raises(RuntimeError, match="does not fit dtype"):
            FILLS[fill](x, given)
    assert x.tolist() == [1, 1]


@pytest.mark.parametrize("fill", FILLS)
@pytest.mark.parametrize(
    ("dtype", "value"), [(rl.uint8, 255), (rl.int8, -128), (rl.float16, 2.5), (rl.bool, 3)]
)
def test_values_that_fit_are_the_same_as_tensors(fill: str, dtype: rl.dtype, value: Any) -> None:
    results = [FILLS[fill](rl.zeros(2, dtype=dtype), given) for given in (value, rl.tensor(value))]
    assert results[0].tolist()[0] == (True if dtype == rl.bool else value)
    assert rl.equal(*results)
