"""Explain differences by other code of PyTorch that computes the same function and agrees with rushlight.

In these cases PyTorch contradicts itself, and a computation that is independent of rushlight confirms rushlight's result. A
mistake of rushlight is never explained in this way, unless PyTorch makes the same mistake.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from fuzz.compare import NOT_FINITE, NOT_THERE, Difference, as_computed, difference
from fuzz.execute import Observation, Record, complete
from fuzz.processes import Ended
from fuzz.program import FLOATS, INTEGERS, Call, Input, Program, Ref, mapped
from fuzz.wider import is_near, widened

WAYS = {
    "strided": "PyTorch agrees with rushlight for other strides",
    "decomposed": "PyTorch's decompositions agree with rushlight",
    "references": "PyTorch's reference implementations agree with rushlight",
}
RESOLVED = "PyTorch agrees with rushlight if it conjugates at once"
WIDE_DEFAULT = "PyTorch agrees with rushlight if the default dtype is float64"
META = "PyTorch's meta kernels agree with rushlight"
REFUSED = "PyTorch's meta kernels or reference implementations refuse the call, too"
WITHOUT_DERIVATIVES = "PyTorch agrees with rushlight if no derivatives are computed"
NEW_TENSOR = "PyTorch agrees with rushlight if it writes to a new tensor"
MORE_ELEMENTS = "rushlight's sizes follow PyTorch's rule for tensors with elements"
TOWARDS_INFINITY = "PyTorch's values approach rushlight's for large arguments"
LEAF = "a leaf Variable that requires grad"
MORE = (7, 11)  # sizes that replace 0
FAR = (1e60, 1e100, 1e150)  # numbers that replace infinity

Run = Callable[[Program], "Observation | Ended"]
Otherwise = Callable[[str, Program], "Observation | Ended"]


def sentences(
    program: Program, found: Difference, ours: Run, run: Run, otherwise: Otherwise
) -> Iterator[tuple[Callable[[], bool], str]]:
    """Yield the possible explanations of a difference: a check, and the sentence that applies if it holds."""
    kind, writes = found.kind, any(call.writes for call in program.calls)
    if kind == "accepts" and LEAF in found.text:
        yield lambda: is_a_leaf_of_none(program, ours, run), MORE_ELEMENTS
    if kind in ("shape", "accepts"):
        yield lambda: sizes_of_more_elements(program, kind, ours, run), MORE_ELEMENTS
    if kind in ("values", "alias"):
        yield lambda: has_wide_values(program, ours, run), WIDE_DEFAULT
    if kind == "values" and found.text.endswith(NOT_FINITE):
        yield lambda: towards_infinity(program, ours, run), TOWARDS_INFINITY
    if kind in ("values", "shape", "dtype", "raises") and program.mode in ("backward", "backward2", "jvp"):
        yield lambda: without_derivatives(program, kind, ours, run), WITHOUT_DERIVATIVES
    if kind in ("values", "shape") and writes:
        yield lambda: in_a_new_tensor(program, ours, run), NEW_TENSOR
    if kind in ("values", "shape", "dtype", "gradient", "tangent") and not writes:
        # Writes to views are excluded, because other code may return copies instead of views.
        for way, sentence in WAYS.items():
            yield partial(_agrees, way, program, ours, otherwise), sentence
    if kind in ("values", "alias", "gradient", "tangent", "accepts", "gradient accepts") and writes:
        yield partial(_agrees, "resolved", program, ours, otherwise), RESOLVED
    if kind in ("shape", "dtype"):
        yield lambda: _has_form(program, ours, otherwise), META
    if kind == "raises" and program.mode != "vmap":
        yield lambda: is_refused(program, ours, otherwise), REFUSED


def _agrees(way: str, program: Program, ours: Run, otherwise: Otherwise) -> bool:
    one, other = complete(ours(program)), complete(otherwise(way, program))
    return one is not None and other is not None and difference(program, one, other) is None


def _has_form(program: Program, ours: Run, otherwise: Otherwise) -> bool:
    """Return whether results have the dtypes and sizes of PyTorch's meta tensors."""
    plain = replace(program, mode="plain") if program.mode != "vmap" else program
    mine, seen = complete(ours(program)), complete(otherwise("meta", plain))
    if mine is None or seen is None or not mine.final:
        return False
    return all(_form(value) == _form(seen.final.get(name)) for name, value in mine.final.items())


def has_wide_values(program: Program, ours: Run, run: Run) -> bool:
    """Return whether results equal, up to rounding to their dtype, those of PyTorch with integers in float64."""
    if not any(one.dtype in ("bool", *INTEGERS) for one in program.inputs):
        return False
    mine, seen = complete(ours(program)), complete(run(replace(program, default_dtype="float64")))
    if mine is None or seen is None or not mine.final or mine.final.keys() != seen.final.keys():
        return False
    return all(is_near(mine.final[name], seen.final[name]) for name in mine.final)


def _form(value: Any) -> Any:
    return (value.dtype, value.shape) if isinstance(value, Record) else type(value)


def is_refused(program: Program, ours: Run, otherwise: Otherwise) -> bool:
    """Return whether other code of PyTorch also rejects the arguments of the same call."""
    plain = replace(program, mode="plain")
    mine = ours(plain)
    if not isinstance(mine, Observation) or not mine.error:
        return False
    for way in ("meta", "references"):
        seen = otherwise(way, plain)
        if not isinstance(seen, Observation) or seen.failed_at != mine.failed_at or not seen.error:
            continue
        wrong_argument = seen.error.startswith(("RuntimeError: ", "ValueError: ", "IndexError: "))
        if wrong_argument and not any(text in seen.error for text in (*NOT_THERE, "meta", "Meta", "prims")):
            return True
    return False


def without_derivatives(program: Program, kind: str, ours: Run, run: Run) -> bool:
    """Return whether rushlight's values with derivatives equal PyTorch's values without derivatives."""
    plain = replace(program, mode="plain")
    mine, seen = ours(program), run(plain)
    if not isinstance(mine, Observation) or not isinstance(seen, Observation):
        return False
    if kind == "raises":
        alone = ours(plain)
        return isinstance(alone, Observation) and bool(alone.error and seen.error)
    if not mine.final or seen.error:
        return False
    pairs = [(mine.final[name], seen.final.get(name)) for name in mine.final]
    return all(as_computed(constant(a), constant(b)) for a, b in pairs)


def constant(value: Any) -> Any:
    return replace(value, requires_grad=False) if isinstance(value, Record) else value


def in_a_new_tensor(program: Program, ours: Run, run: Run) -> bool:
    """Return whether the last call writes the values that PyTorch's out-of-place call computes."""
    call = program.calls[-1]
    if call.path.startswith(".") and call.path.endswith("_"):
        beside = replace(call, path=call.path[:-1])
    elif "out" in call.kwargs:
        beside = replace(call, kwargs={name: v for name, v in call.kwargs.items() if name != "out"})
    else:
        return False
    mine, seen = ours(program), run(replace(program, calls=(*program.calls[:-1], beside)))
    steps = [one.steps for one in (mine, seen) if isinstance(one, Observation) and not one.error]
    if len(steps) < 2 or not steps[0] or len(steps[0]) != len(steps[1]):
        return False
    pairs = list(zip(steps[0][-1], steps[1][-1], strict=False))
    return bool(pairs) and len(steps[0][-1]) == len(steps[1][-1]) and all(_is_cast(*pair) for pair in pairs)


def _is_cast(written: Any, computed: Any) -> bool:
    """Return whether a result equals the computed value, converted to the dtype of the result."""
    if not isinstance(written, Record) or not isinstance(computed, Record):
        return False
    if written.array.dtype.kind != "c" and computed.array.dtype.kind == "c":
        return False
    with np.errstate(all="ignore"):
        array = computed.array.astype(written.array.dtype)
    return as_computed(constant(written), constant(replace(written, shape=computed.shape, array=array)))


# --- tensors with more elements ---


def sizes_of_more_elements(program: Program, kind: str, ours: Run, run: Run) -> bool:
    """Return whether the sizes of an empty result follow PyTorch's rule for other sizes, extended to size 0.

    Both libraries must agree on results with elements.
    """
    if program.mode == "vmap" or not any(0 in one.shape for one in program.inputs):
        return False
    mine, theirs = ours(program), run(program)
    if not isinstance(mine, Observation) or not isinstance(theirs, Observation) or mine.error:
        return False
    if not mine.steps or not all(isinstance(r, Record) and not r.array.size for r in mine.steps[-1]):
        return False
    if kind == "shape" and not all(isinstance(r, Record) and not r.array.size for r in theirs.steps[-1]):
        return False
    seen = []
    for size in MORE:
        larger = _filled(program, size)
        one, other = complete(ours(larger)), complete(run(larger))
        if one is None or other is None or difference(larger, one, other) is not None:
            return False
        seen.append(other.steps[-1])
    return len(mine.steps[-1]) == len(seen[0]) == len(seen[1]) and all(
        _sizes_at_none(a, b) == r.shape and a.dtype == r.dtype
        for r, a, b in zip(mine.steps[-1], *seen, strict=True)
    )


def is_a_leaf_of_none(program: Program, ours: Run, run: Run) -> bool:
    """Return whether the last call writes to a result that PyTorch computes as a new tensor, but only if it has elements.

    Without elements PyTorch returns its argument, which is a leaf.
    """
    call, *earlier = program.calls[::-1]
    target = call.args[0] if call.args else None
    if (
        "out" in call.kwargs
        or not isinstance(target, Ref)
        or target.name in {one.name for one in program.inputs}
    ):
        return False
    write = Call("mul_", ".mul_", "w", (target, 1))
    empty = replace(program, calls=(*earlier[::-1], write))
    larger = _filled(empty, MORE[0])
    if larger.inputs == program.inputs or complete(run(empty)) is not None:
        return False
    one, other = complete(ours(larger)), complete(run(larger))
    return one is not None and other is not None and difference(larger, one, other) is None


def _sizes_at_none(few: Record, many: Record) -> tuple[int, ...]:
    """Return the sizes of a result for an input of size 0, extrapolated from two results for larger inputs."""
    if len(few.shape) != len(many.shape):
        return (-1,)
    slopes = [(b - a) / (MORE[1] - MORE[0]) for a, b in zip(few.shape, many.shape, strict=True)]
    exact = [a - slope * MORE[0] for a, slope in zip(few.shape, slopes, strict=True)]
    return tuple(max(0, int(n)) if n == int(n) else -1 for n in exact)


def _filled(program: Program, size: int) -> Program:
    def larger(one: Input) -> Input:
        shape = tuple(n or size for n in one.shape)
        return one if shape == one.shape else replace(one, shape=shape, values=(1,) * math.prod(shape))

    def change(value: Any) -> Any:
        return size if type(value) is int and value == 0 else value

    def resized(call: Call) -> Call:
        """Return the call with larger sizes. Only lists change: they contain sizes, and seldom numbers of dimensions."""
        args = tuple(mapped(a, change) if isinstance(a, (tuple, list)) else a for a in call.args)
        return replace(call, args=args)

    return replace(
        program, inputs=tuple(map(larger, program.inputs)), calls=tuple(map(resized, program.calls))
    )


# --- towards infinity ---


def towards_infinity(program: Program, ours: Run, run: Run) -> bool:
    """Return whether PyTorch's float64 values tend to rushlight's results at infinity, where PyTorch has NaN."""
    wide = widened(replace(program, mode="plain"))
    if not any(_is_infinite(v) for one in wide.inputs for v in one.values):
        return False
    mine, theirs = complete(ours(program)), complete(run(program))
    near = [complete(run(_finite(wide, far))) for far in FAR]
    if mine is None or theirs is None or not mine.steps or not all(near):
        return False
    rows = [one.steps[-1] for one in (mine, theirs, *near) if one is not None]
    if len({len(row) for row in rows}) > 1:
        return False
    return all(_goes_to(*values) for values in zip(*rows, strict=True))


def _goes_to(mine: Any, theirs: Any, *near: Any) -> bool:
    if not all(isinstance(v, Record) and v.shape == mine.shape for v in (mine, theirs, *near)):
        return bool(mine == theirs)
    if mine.array.dtype.kind != "f":
        return bool(np.array_equal(mine.array, theirs.array))
    a, b = mine.array.astype(np.float64), theirs.array.astype(np.float64)
    last = [v.array.astype(np.float64) for v in near]
    with np.errstate(all="ignore"):
        same = np.isclose(a, b, rtol=2e-4, atol=1e-6, equal_nan=True)
        limit = np.isnan(b) & np.isfinite(a)
        limit &= np.isclose(last[1], a, rtol=1e-6, atol=1e-30) & np.isclose(last[2], a, rtol=1e-6, atol=1e-30)
        steps = (np.abs(last[0]) < np.abs(last[1])) & (np.abs(last[1]) < np.abs(last[2]))
        grows = (
            np.isnan(b) & np.isinf(a) & steps & (np.abs(last[2]) > 1e20) & (np.sign(last[2]) == np.sign(a))
        )
    return bool((same | limit | grows).all())


def _is_infinite(value: Any) -> bool:
    return isinstance(value, float) and math.isinf(value)


def _finite(program: Program, far: float) -> Program:
    def change(one: Input) -> Input:
        if one.dtype not in FLOATS:
            return one
        values = tuple(math.copysign(far, v) if _is_infinite(v) else v for v in one.values)
        return replace(one, values=values)

    return replace(program, inputs=tuple(map(change, program.inputs)))
