"""Compare a program in float64 with the same program in a smaller dtype."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from fuzz.compare import TOLERANCES
from fuzz.execute import Observation, Record, complete
from fuzz.processes import Ended
from fuzz.program import COMPLEX, FLOATS, INTEGERS, Call, Input, Named, Program, Ref, mapped

WIDEST = dict.fromkeys(FLOATS, "float64") | dict.fromkeys(COMPLEX, "complex128")
# Operators that return their argument if it has the requested dtype, and otherwise a copy.
COPIES = ("to", "type_as", "half", "bfloat16", "float", "double", "cfloat", "cdouble")
CONVERSIONS = {".half": ".double", ".bfloat16": ".double", ".float": ".double", ".cfloat": ".cdouble"}
# rushlight's error may be this many times PyTorch's. (The design requires 1.5 times, and half a unit in the last place.)
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
    inputs = tuple(map(wide, program.inputs))
    changed = replace(program, inputs=inputs, calls=calls)
    if changed == program and not any(one.dtype in ("bool", *INTEGERS) for one in inputs):
        return program
    return replace(changed, default_dtype="float64")


def with_copies(program: Program) -> Program:
    """Return the program with a copy of each converted tensor, which also has the dtype of its argument."""
    calls: list[Call] = []
    for call in program.calls:
        calls.append(call)
        if call.op in COPIES:
            calls.append(Call("clone", ".clone", call.result, (Ref(call.result),)))
    return replace(program, calls=tuple(calls))


def _without_copies(program: Program, seen: Observation) -> Observation:
    """Return the observation of `with_copies` of a program without the steps of the copies."""
    copies = [copy for call in program.calls for copy in ((False, True) if call.op in COPIES else (False,))]
    kept = [step for step, copy in zip(seen.steps, copies, strict=False) if not copy]
    return replace(seen, steps=kept)


def loses_digits(program: Program, ours: Run, run: Run) -> bool:
    """Return whether a smaller dtype, rather than a formula, causes the difference.

    This is so if PyTorch's results in float64 are as close to rushlight's results as to PyTorch's own in the smaller dtype.
    """
    wide = widened(program)
    mine, theirs = complete(ours(program)), complete(run(program))
    if wide == program or mine is None or theirs is None:
        return False
    if (
        wide.inputs == program.inputs
        and wide.calls == program.calls
        and not any(map(_is_small, records(mine)))
    ):
        return False
    best = complete(run(wide))
    if best is None:  # a conversion that does nothing in float64 returns its argument, which may be a leaf
        best = complete(run(with_copies(wide)))
        best = None if best is None else _without_copies(wide, best)
    if best is None:
        return False
    rows = [records(seen) for seen in (mine, theirs, best)]
    return len({len(row) for row in rows}) == 1 and all(map(_is_near, *rows))


def with_floats(program: Program, ours: Run, run: Run) -> Program:
    """Return the program with float32 in the place of integers, if that makes no difference; otherwise the program."""
    inputs = tuple(
        replace(one, dtype="float32", values=tuple(map(float, one.values))) if one.dtype in INTEGERS else one
        for one in program.inputs
    )
    floats = replace(program, inputs=inputs)
    if floats == program:
        return program
    for library in (ours, run):
        before, after = complete(library(program)), complete(library(floats))
        if before is None or after is None or not all(map(_is_same, records(before), records(after))):
            return program
    return floats


def _is_small(value: Any) -> bool:
    return isinstance(value, Record) and WIDEST.get(value.dtype, value.dtype) != value.dtype


def _is_same(a: Any, b: Any) -> bool:
    """Return whether results are equal, or integers and the floats nearest to them."""
    if not isinstance(a, Record) or not isinstance(b, Record):
        return bool(a == b)
    array = a.array if a.array.dtype.kind in "fc" else a.array.astype(b.array.dtype)
    return bool(np.array_equal(array, b.array, equal_nan=True))


def records(seen: Observation) -> list[Any]:
    return [
        *(value for step in seen.steps for value in step), *seen.final.values(), *seen.gradients, *seen.tangents
    ]  # fmt: skip


def _is_near(mine: Any, theirs: Any, best: Any) -> bool:
    if not all(isinstance(value, Record) for value in (mine, theirs, best)):
        return True  # other code compares whether there is a gradient at all
    if not mine.array.shape == theirs.array.shape == best.array.shape:
        return False
    if mine.array.dtype.kind not in "fc":
        return np.array_equal(mine.array, theirs.array) or np.array_equal(mine.array, best.array)
    a, b, exact = (value.array.astype(np.complex128) for value in (mine, theirs, best))
    with np.errstate(all="ignore"):
        exact = np.where(abs(exact) > np.finfo(mine.array.dtype).max, np.inf, exact)
        # If both overflow, neither is closer.
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
