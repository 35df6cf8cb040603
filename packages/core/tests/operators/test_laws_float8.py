"""Law: an operator that takes float8 tensors computes what it computes of the same float32 numbers, rounded to float8."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rushlight_core as core
from rushlight_core.codegen.dtypes import FLOAT8, takes_float8
from rushlight_core.codegen.model import Op
from rushlight_testing.dtypes import samples_of_dtype
from rushlight_testing.operators import (
    TYPED_ERRORS,
    call,
    flat,
    is_random,
    map_tensors,
    operators,
    tensors_in,
)

# Their results have elements that nothing has written, or are those of the bytes.
OF_MEMORY = ("empty", "new_empty", "resize", "set_", "view.dtype", "view_copy.dtype")
OPS = [
    op
    for op in operators()
    if op.samples and takes_float8(op.dtypes) and not is_random(op) and not op.name.startswith(OF_MEMORY)
]


def numbers(result: Any, dtype: Any) -> Any:
    """A result as it is compared: what is float32 in the one call and float8 in the other is rounded in both."""
    if not isinstance(result, core.Tensor):
        return result
    result = result.to(dtype) if result.dtype == core.float32 else result
    return result.float().numpy() if result.dtype == dtype else result.to(core.complex128).numpy()


@pytest.mark.parametrize("op", [pytest.param(op, id=op.name) for op in OPS])
def test_results_are_those_of_float32(op: Op) -> None:
    for name in FLOAT8:
        dtype = getattr(core, name)
        for sample in samples_of_dtype(op, name):
            if not any(t.dtype == dtype for t in tensors_in([*sample.args, *sample.kwargs.values()])):
                continue
            wide = map_tensors(lambda t, dtype=dtype: t.float() if t.dtype == dtype else t.clone(), sample)
            try:
                found = flat(call(op, sample))
            except TYPED_ERRORS:  # a dtype among the arguments, or a sample that only some dtypes allow
                continue
            expected = flat(call(op, wide))
            assert len(found) == len(expected)
            for a, b in zip(found, expected, strict=True):
                np.testing.assert_array_equal(
                    numbers(a, dtype), numbers(b, dtype), f"{op.name}({sample.text})"
                )
