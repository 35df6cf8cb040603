"""Law: integers that fit every integer dtype give the same results in each of these dtypes.

Samples are called with small numbers in int64 and in the other dtypes. Results that a dtype cannot hold wrap around.
Floating-point results of small integers equal the results of the same numbers in float64.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rushlight_core as core
from rushlight_core.codegen.model import Op
from rushlight_testing import Sample
from rushlight_testing.dtypes import samples_of_dtype
from rushlight_testing.operators import (
    TYPED_ERRORS,
    all_samples,
    call,
    flat,
    is_random,
    map_tensors,
    operators,
    to_numpy,
)

INTEGERS = ("uint8", "int8", "int16", "int32", "uint16", "uint32", "uint64")
# Composites are left out, because their intermediate differences may wrap around in unsigned dtypes, as in PyTorch.
# view.dtype is left out, because it reads the same bytes as other numbers.
OPS = [
    op
    for op in operators()
    if op.samples and op.variants and op.kind != "composite" and op.name != "view.dtype" and not is_random(op)
]


def small(sample: Sample) -> Sample:
    """Return the sample with every integer reduced to a number from 0 to 7."""
    return map_tensors(lambda t: t.abs().remainder(8) if t.dtype == core.int64 else t, sample)


def called(op: Op, sample: Sample) -> Any:
    """Return the results, or None if the call raises. Other tests check which dtypes are accepted."""
    try:
        return call(op, map_tensors(lambda t: t.clone(), sample))
    except TYPED_ERRORS:
        return None


@pytest.mark.parametrize("op", [pytest.param(op, id=op.name) for op in OPS])
def test_integers_of_all_dtypes_agree(op: Op) -> None:
    for sample in map(small, all_samples(op, "int64")):
        expected = called(op, sample)
        if expected is None:
            continue
        for name in INTEGERS:
            dtype = getattr(core, name)
            narrow = map_tensors(lambda t, to=dtype: t.to(to) if t.dtype == core.int64 else t, sample)
            found = called(op, narrow)
            if found is None:
                continue
            for a, b in zip(flat(found), flat(expected), strict=True):
                text = f"{op.name}({sample.text}) of {name}"
                if not isinstance(a, core.Tensor):
                    assert a == b or dtype in (a, b), text
                elif a.dtype == dtype:  # compare the bits that fit the dtype
                    np.testing.assert_array_equal(a.numpy(), b.to(core.int64).to(dtype).numpy(), err_msg=text)
                else:
                    np.testing.assert_allclose(
                        to_numpy(a, wide=True), to_numpy(b, wide=True), rtol=1e-5, atol=1e-6, err_msg=text
                    )


# Operators whose differences wrap around in uint8, as in PyTorch.
WRAPPING = {"margin_ranking_loss", "triplet_margin_loss"}
FLOATING = [
    op
    for op in operators()
    if op.samples and "hidden" not in op.variants and op.variants and not is_random(op)
]


@pytest.mark.parametrize("op", [pytest.param(op, id=op.name) for op in FLOATING])
def test_floating_point_results_of_small_integers(op: Op) -> None:
    wrong = []
    for name in ("uint8", "int8"):
        dtype = getattr(core, name)
        for sample in samples_of_dtype(op, name):
            wide = map_tensors(lambda t, of=dtype: t.double() if t.dtype == of else t, sample)
            found, expected = called(op, sample), called(op, wide)
            if found is None or expected is None:
                continue
            for a, b in zip(flat(found), flat(expected), strict=True):
                if not isinstance(a, core.Tensor) or not a.is_floating_point():
                    continue
                x, y = a.double().numpy(), b.to(a.dtype).double().numpy()
                if x.shape != y.shape or not np.allclose(x, y, rtol=1e-4, atol=1e-5, equal_nan=True):
                    wrong.append((name, sample.text))
    assert bool(wrong) == (op.name in WRAPPING), wrong
