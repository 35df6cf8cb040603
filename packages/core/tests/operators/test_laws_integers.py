"""Law: whole numbers that every integer dtype holds give the same results in each of them.

Samples are called with small numbers in int64 and in the other dtypes. Results that a dtype cannot hold wrap around.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rushlight_core as core
from rushlight_core.codegen.model import Op
from rushlight_testing import Sample
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
# Composites may compute differences on the way, which wrap around in unsigned dtypes, as in PyTorch.
# view.dtype shows the same bytes as other numbers.
OPS = [
    op
    for op in operators()
    if op.samples and op.variants and op.kind != "composite" and op.name != "view.dtype" and not is_random(op)
]


def small(sample: Sample) -> Sample:
    """The sample with every integer between 0 and 7."""
    return map_tensors(lambda t: t.abs().remainder(8) if t.dtype == core.int64 else t, sample)


def called(op: Op, sample: Sample) -> Any:
    """The results, or None where the call is refused: which dtypes are taken, other tests say."""
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
                elif a.dtype == dtype:  # the bits that it has
                    np.testing.assert_array_equal(a.numpy(), b.to(core.int64).to(dtype).numpy(), err_msg=text)
                else:
                    np.testing.assert_allclose(
                        to_numpy(a, wide=True), to_numpy(b, wide=True), rtol=1e-5, atol=1e-6, err_msg=text
                    )
