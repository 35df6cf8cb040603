"""Law: errors in float16 and bfloat16 are at most 1.5 times the errors of PyTorch plus half a unit in the last place.

Both libraries compute the same samples, rounded to the half type. The exact results are computed in float64 from the rounded
samples.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from in_torch import OPS, call_torch, torch

import rushlight_core as core
from rushlight_core.codegen.model import Op
from rushlight_testing import Sample
from rushlight_testing.operators import all_samples, call, flat, map_tensors
from rushlight_testing.samples import arguments_of

HALF = ("float16", "bfloat16")
MANTISSA = {"float16": 10, "bfloat16": 7}
SMALLEST = {"float16": -24, "bfloat16": -133}  # the exponent of the smallest number above 0
# Errors beyond the bound, and why.
KNOWN = {"rnn_tanh.data": "one sum at a gate nearly cancels, and is rounded twice, as PyTorch's is"}


def wide(t: Any) -> Any:
    return t.to(core.float64) if t.dtype in (core.float16, core.bfloat16) else t


def numbers(values: Any, dtype: Any) -> list[Any]:
    """Return the results that have the given dtype as float64 arrays, with None in place of other results."""
    return [
        np.asarray((v.to(torch.float64) if isinstance(v, torch.Tensor) else v.to(core.float64)).numpy())
        if hasattr(v, "dtype") and v.dtype in dtype
        else None
        for v in flat(values)
    ]


def unit(values: Any, dtype: str) -> Any:
    """Return the distance between neighbouring numbers of a half type at given values."""
    with np.errstate(divide="ignore"):
        exponent = np.floor(np.log2(np.abs(values)))
    return 2.0 ** np.maximum(
        np.where(np.isfinite(exponent), exponent, -1000) - MANTISSA[dtype], SMALLEST[dtype]
    )


def excess(ours: Any, theirs: Any, exact: Any, dtype: str) -> float:
    """Return how far the largest error exceeds the bound, in units in the last place; at most 0 if the test passes."""
    known = (
        np.isfinite(exact)
        & np.isfinite(theirs)
        & (np.abs(exact) < float(torch.finfo(getattr(torch, dtype)).max))
    )
    if not known.any():
        return 0.0
    exact, ours, theirs = exact[known], ours[known], theirs[known]
    size = unit(exact, dtype)
    mine = np.where(np.isfinite(ours), np.abs(ours - exact), np.inf)
    other = np.maximum(np.abs(theirs - exact), size / 2)
    # Each error is compared with PyTorch's largest error, because single elements may be exact by chance. It suffices that
    # the error is below one of two bounds: PyTorch's largest absolute error, or its largest error in units in the last
    # place, which cancellation can make large.
    absolute = (mine - 1.5 * np.max(other)) / size - 0.5
    relative = mine / size - 1.5 * np.max(other / size) - 0.5
    return float(np.max(np.minimum(absolute, relative)))


def cases(op: Op, dtype: str) -> Iterator[tuple[Sample, list[Any], list[Any], list[Any]]]:
    """Yield each sample with our results, PyTorch's and those in float64, if all three calls work."""
    for sample in all_samples(op, dtype):
        try:
            exact = call(op, map_tensors(wide, sample))
            theirs = call_torch(op, sample)
            ours = call(op, sample)
        except Exception:  # PyTorch raises errors of many classes
            continue
        half = (getattr(torch, dtype), getattr(core, dtype))
        mine, other = numbers(ours, half), numbers(theirs, half)
        reference = numbers(exact, (core.float64,))
        if len(mine) == len(other) == len(reference):
            yield sample, mine, other, reference


@pytest.mark.parametrize("op", [pytest.param(op, id=op.name) for op in OPS])
def test_half_types_are_as_precise_as_pytorch(op: Op) -> None:
    worst = 0.0
    for dtype in HALF:
        for sample, ours, theirs, exact in cases(op, dtype):
            for a, b, c in zip(ours, theirs, exact, strict=True):
                if a is None or b is None or c is None or not a.shape == b.shape == c.shape:
                    continue
                over = excess(a, b, c, dtype)
                worst = max(worst, over)
                assert over <= 0 or op.name in KNOWN, (
                    f"{op.name}({sample.text}) of {dtype}: {over:.2f} units in the last place above the bound"
                )
    assert worst > 0 or op.name not in KNOWN, f"{op.name} is within the bound: strike it out"


def test_an_imprecise_result_is_noticed() -> None:
    exact = np.array([1.0, 3.0, 1000.0])
    theirs = exact + unit(exact, "float16") * 0.5
    assert excess(exact, theirs, exact, "float16") <= 0
    assert excess(exact + unit(exact, "float16"), theirs, exact, "float16") <= 0
    assert excess(exact + 2 * unit(exact, "float16"), theirs, exact, "float16") > 0
    assert excess(exact * np.nan, theirs, exact, "float16") > 0
    op = next(op for op in OPS if op.name == "add")
    assert len(arguments_of(op, next(all_samples(op)))) == 3
    assert len(list(cases(op, "bfloat16"))) > 10
