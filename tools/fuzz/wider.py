"""Compare a program in float64 with the same program in a smaller dtype."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from fuzz.compare import TOLERANCES
from fuzz.execute import Observation, Record, complete
from fuzz.processes import Ended
from fuzz.program import COMPLEX, FLOATS, Input, Named, Program, mapped

WIDEST = dict.fromkeys(FLOATS, "float64") | dict.fromkeys(COMPLEX, "complex128")
CONVERSIONS = {".half": ".double", ".bfloat16": ".double", ".float": ".double", ".cfloat": ".cdouble"}
# An error that is this often PyTorch's is none: the design asks for 1.5 times it, and half a unit in the last place.
AS_FAR = 2.0

Run = Callable[[Program], "Observation | Ended"]


def rounded(values: tuple[Any, ...], dtype: str) -> tuple[Any, ...]:
    """Return the numbers, rounded to a dtype."""
    if dtype == "float64" or dtype not in WIDEST or not values:
        return values
    if dtype == "bfloat16":
        bits = np.array(values, dtype=np.float32).view(np.uint32)
        nearest = (bits + (0x7FFF + ((bits >> 16) & 1)).astype(np.uint32)) & np.uint32(0xFFFF0000)
        return tuple(np.where(np.isnan(values), np.nan, nearest.view(np.float32)).tolist())
    with np.errstate(all="ignore"):
        return tuple(np.array(values).astype(dtype).tolist())


def widened(program: Program) -> Program:
    """Return the program with float64 and complex128 in the place of smaller dtypes; its inputs have the same values."""

    def change(value: Any) -> Any:
        return Named(WIDEST[value.name]) if isinstance(value, Named) and value.name in WIDEST else value

    def wide(one: Input) -> Input:
        return replace(one, dtype=WIDEST.get(one.dtype, one.dtype), values=rounded(one.values, one.dtype))

    calls = tuple(
        replace(
            call,
            path=CONVERSIONS.get(call.path, call.path),
            args=mapped(call.args, change),
            kwargs=mapped(call.kwargs, change),
        )
        for call in program.calls
    )
    return replace(program, inputs=tuple(map(wide, program.inputs)), calls=calls)


def loses_digits(program: Program, ours: Run, run: Run) -> bool:
    """Return whether a smaller dtype, rather than a formula, causes the difference.

    This is so if PyTorch's results in float64 are as near to rushlight's as to its own in the smaller dtype.
    """
    wide = widened(program)
    if wide == program:
        return False
    observations = map(complete, (ours(program), run(program), run(wide)))
    rows = [records(seen) for seen in observations if seen is not None]
    if len(rows) < 3 or len({len(row) for row in rows}) > 1:
        return False
    return all(_is_near(mine, theirs, best) for mine, theirs, best in zip(*rows, strict=True))


def records(seen: Observation) -> list[Any]:
    return [
        *(value for step in seen.steps for value in step), *seen.final.values(), *seen.gradients, *seen.tangents
    ]  # fmt: skip


def _is_near(mine: Any, theirs: Any, best: Any) -> bool:
    if not all(isinstance(value, Record) for value in (mine, theirs, best)):
        return True  # whether there is a gradient at all is compared elsewhere
    if not mine.array.shape == theirs.array.shape == best.array.shape:
        return False
    if mine.array.dtype.kind not in "fc":
        return np.array_equal(mine.array, theirs.array) or np.array_equal(mine.array, best.array)
    a, b, exact = (value.array.astype(np.complex128) for value in (mine, theirs, best))
    with np.errstate(all="ignore"):
        exact = np.where(abs(exact) > np.finfo(mine.array.dtype).max, np.inf, exact)
        # Where both leave the range, neither is nearer.
        same = (a == b) | ~(np.isfinite(a) | np.isfinite(b)) | ~(np.isfinite(a) | np.isfinite(exact))
        errors = [np.where(same, 0, abs(v - exact)) for v in (a, b)]
        far = errors[1][np.isfinite(errors[1])].max(initial=0)
        largest = abs(exact[np.isfinite(exact)]).max(initial=1.0)
        return bool((errors[0] <= AS_FAR * far + TOLERANCES.get(mine.dtype, 0.0) * largest).all())


def is_near(a: Any, b: Any) -> bool:
    """Return whether two values of different dtypes are equal up to rounding to the smaller dtype."""
    if not isinstance(a, Record) or not isinstance(b, Record):
        return bool(a == b)
    if a.array.shape != b.array.shape:
        return False
    tolerance = max(TOLERANCES.get(one.dtype, 0.0) for one in (a, b))
    x, y = (one.array.astype(np.complex128) for one in (a, b))
    return bool(np.isclose(x, y, rtol=tolerance, atol=tolerance, equal_nan=True).all())
