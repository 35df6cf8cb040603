"""Find the differences between two observations of a program."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from fuzz.execute import Observation, Record
from fuzz.program import INTEGERS, Named, Program, mapped

# Tolerances, relative to the element, and to the largest element of the tensor if this is above 1.
TOLERANCES = {
    "float64": 1e-7, "float32": 2e-4, "float16": 2e-2, "bfloat16": 1e-1, "complex128": 1e-7, "complex64": 2e-4,
}  # fmt: skip
KINDS = (
    "values", "dtype", "shape", "requires_grad", "raises", "accepts", "alias", "gradient", "gradient raises",
    "gradient accepts", "tangent", "crash", "hang",
)  # fmt: skip
OTHER_DTYPE = "PyTorch's dtype is not the value's"
NOT_FINITE = "PyTorch's is not finite"
# Marks the elements without a defined value, given a gradient of rushlight and of PyTorch.
Excuse = Callable[[np.ndarray, np.ndarray], np.ndarray]
# Texts of errors for operators without a kernel, rule or formula in PyTorch. It is no difference if rushlight has one.
NOT_THERE = (
    "not implemented for", "not supported", "is not implemented", "not yet supported", "unsupported", "Could not run",
    "is only supported", "not currently supported", "does not support", "is only available", "only supports",
    "has no attribute", "Expected a supported", "No implementation", "not support", "only implemented for", "batching rule",
    "not available", "does not have a forward",
    # Arguments that only rushlight's function has; another tool compares names.
    "invalid combination of arguments", "unexpected keyword argument", "required positional argument",
)  # fmt: skip


def coarsest(program: Program, seen: Observation) -> float:
    """Return the tolerance of the smallest dtype involved: a value rounded to float16 stays rounded in a later float64."""
    values = [*itertools.chain(*seen.steps), *seen.final.values()]
    dtypes = [one.dtype for one in program.inputs] + [v.dtype for v in values if isinstance(v, Record)]
    for call in program.calls:
        mapped((call.args, call.kwargs), lambda v: dtypes.append(v.name) if isinstance(v, Named) else None)
        if "out" in call.kwargs and any(one.dtype in ("bool", *INTEGERS) for one in program.inputs):
            dtypes.append("float32")  # the dtype in which functions of integers are computed
    return max((TOLERANCES[dtype] for dtype in dtypes if dtype in TOLERANCES), default=0.0)


@dataclass(frozen=True)
class Difference:
    """The first difference from PyTorch."""

    kind: str  # one of KINDS
    op: str  # the operator of the call that shows the difference; empty if it is not known before shrinking
    text: str
    call: int = field(default=-1, compare=False)  # number of that call

    def same_as(self, other: Difference | None) -> bool:
        return other is not None and (self.kind, self.op) == (other.kind, other.op)


def difference(program: Program, ours: Observation, theirs: Observation) -> Difference | None:
    """Return the difference of `ours` from `theirs`, or None if they agree."""
    alone = len(program.calls) == 1 and "out" not in program.calls[0].kwargs
    least = 0.0 if alone else coarsest(program, theirs)
    for i, (call, a, b) in enumerate(zip(program.calls, ours.steps, theirs.steps, strict=False)):
        found = _results(a, b, least)
        if found:
            return Difference(found[0], call.op, found[1], i)
    if ours.error or theirs.error:
        return _raised(program, ours, theirs)
    for name in sorted(theirs.final, key=lambda name: _dimensions(theirs.final[name])):
        found = _results([ours.final.get(name)], [theirs.final[name]], least)
        if found and program.mode in ("jvp", "vmap"):
            variable, _, index = name.rstrip("]").partition("[")
            return Difference(
                found[0],
                _only(program),
                f"result {index}: {found[1]}" if index else f"{variable}: {found[1]}",
            )
        if found:
            writing = [call.op for call in program.calls if call.writes]
            return Difference(
                "alias", writing[-1] if writing else _only(program), f"{name} at the end: {found[1]}"
            )
    if theirs.tangents_are_shared and any(call.writes for call in program.calls):
        return None
    # Formulas may read inputs of a less precise dtype than the gradient's.
    least = coarsest(program, theirs)
    for kind, mine, other in (
        ("gradient", ours.gradients, theirs.gradients), ("tangent", ours.tangents, theirs.tangents)
    ):  # fmt: skip
        # If a gradient does not depend on the inputs, its own gradient is missing or zero.
        undefined = _undefined(program, kind, theirs)
        values = list(theirs.final.values())
        for i, (one, another) in enumerate(itertools.zip_longest(mine, other)):
            text = _gradient(one, another, least, next(undefined))
            if (
                kind == "tangent"
                and text.startswith("dtype")
                and another
                and another.dtype != values[i].dtype
            ):
                text += f"; {OTHER_DTYPE}"
            if text:
                return Difference(kind, _only(program), f"number {i}: {text}")
    return None


def _only(program: Program) -> str:
    """Return the operators that may be the cause; a single name if the program was shrunk to one call."""
    return "+".join(sorted({call.op for call in program.calls}))


def _raised(program: Program, ours: Observation, theirs: Observation) -> Difference | None:
    if ours.error and theirs.error:
        return None
    failed = ours if ours.error else theirs
    text = f"only {'here' if failed is ours else 'in PyTorch'}: {failed.error.splitlines()[0][:300]}"
    at = -1
    if isinstance(failed.failed_at, int):
        at = failed.failed_at
        kind, op = ("raises" if failed is ours else "accepts"), program.calls[at].op
    else:
        kind, op = ("gradient raises" if failed is ours else "gradient accepts"), _only(program)
    if failed is theirs:
        if program.mode in ("jvp", "vmap") or any(known in theirs.error for known in NOT_THERE):
            return None
    return Difference(kind, op, text, at)


def _results(ours: list[Any], theirs: list[Any], least: float = 0.0) -> tuple[str, str] | None:
    """Return the kind and the text of the difference of a call's results; "result i" begins the text if there are several.

    Results with fewer dimensions are compared first: eigenvalues are determined, and the signs of their vectors are not.
    """
    if len(ours) != len(theirs):
        return "shape", f"{len(ours)} results, not {len(theirs)}"
    for i in sorted(range(len(ours)), key=lambda i: _dimensions(theirs[i])):
        if found := _result(ours[i], theirs[i], least):
            return found[0], f"result {i}: {found[1]}" if len(ours) > 1 else found[1]
    return None


def _dimensions(value: Any) -> int:
    return len(getattr(value, "shape", ()))


def _result(a: Any, b: Any, least: float) -> tuple[str, str] | None:
    if not isinstance(a, Record) or not isinstance(b, Record):
        same = isinstance(a, Record) == isinstance(b, Record) and _same_number(a, b)
        return None if same else ("values", f"{_shown(a)}, not {_shown(b)}")
    if a.dtype != b.dtype:
        return "dtype", f"{a.dtype}, not {b.dtype}"
    if a.shape != b.shape:
        return "shape", f"{a.shape}, not {b.shape}"
    if a.requires_grad != b.requires_grad:
        return "requires_grad", f"{a.requires_grad}, not {b.requires_grad}"
    text = apart(a, b, least=least)
    return ("values", text) if text else None


def as_computed(a: Any, b: Any) -> bool:
    """Return whether two values are equal except for rounding."""
    return _results([a], [b]) is None


def _shown(value: Any) -> str:
    return f"a tensor of {value.shape}" if isinstance(value, Record) else repr(value)


def _same_number(a: Any, b: Any) -> bool:
    if isinstance(a, (bool, int, float, complex)) and isinstance(b, (bool, int, float, complex)):
        return type(a) is type(b) and bool(np.isclose(a, b, rtol=1e-4, atol=1e-6, equal_nan=True))
    return bool(a == b)


def _undefined(program: Program, kind: str, seen: Observation) -> Iterator[Excuse | None]:
    """Return, for each gradient or tangent, which elements have no derivative because the value is NaN.

    The tangent of an element belongs to one value. A gradient belongs to all values, so it may be NaN if any value is NaN.
    """
    if kind == "tangent":
        values = [np.isnan(v.array) if v.array.dtype.kind in "fc" else None for v in seen.final.values()]
        yield from (None if v is None else (lambda x, y, v=v: v) for v in values)
    else:
        given = {one.name for one in program.inputs}
        made = [v.array for name, v in seen.final.items() if name not in given]
        if any(v.dtype.kind in "fc" and np.isnan(v).any() for v in made):
            yield from itertools.repeat(lambda x, y: np.isnan(x) | np.isnan(y))
    yield from itertools.repeat(None)


def _gradient(a: Record | None, b: Record | None, least: float = 0.0, undefined: Excuse | None = None) -> str:
    if a is None or b is None:
        known = b if a is None else a
        if known is None:
            return ""
        # A gradient of zeros and a missing gradient have the same effect when they are added up.
        zeros = replace(known, array=np.zeros_like(known.array))
        if not _gradient(known, zeros, least, undefined):
            return ""
        return "none, where PyTorch has one" if a is None else "PyTorch has none"
    if a.dtype != b.dtype:
        return f"dtype {a.dtype}, not {b.dtype}"
    if a.shape != b.shape:
        return f"shape {a.shape}, not {b.shape}"
    if undefined is not None:
        away = undefined(a.array, b.array)
        if away.shape == a.shape:
            a, b = (replace(v, array=np.where(away, 0, v.array).astype(v.array.dtype)) for v in (a, b))
    return apart(a, b, least=least)


def near(a: Record, b: Record, factor: float = 1.0, least: float = 0.0) -> np.ndarray:
    """Return which elements of two tensors of one dtype and shape are equal except for rounding.

    The tolerance is that of the dtype, and at least `least`.
    """
    x, y = a.array, b.array
    if x.dtype.kind not in "fc":
        return np.asarray(x == y)
    tolerance = max(TOLERANCES.get(a.dtype, 0.0), least) * factor
    with np.errstate(all="ignore"):
        finite = np.abs(y[np.isfinite(y)])
        largest = max(1.0, float(finite.max())) if finite.size else 1.0
        found = np.isclose(x, y, rtol=tolerance, atol=tolerance * largest, equal_nan=True)
        if x.dtype.kind == "c":  # a complex number that is not finite has many representations
            found |= ~np.isfinite(x) & ~np.isfinite(y)
    return np.asarray(found)


def apart(a: Record, b: Record, factor: float = 1.0, least: float = 0.0) -> str:
    """Return a description of how two tensors differ by more than rounding, which `near` determines.

    The text names one of the differing elements, if possible one for which PyTorch has a finite number.
    """
    same = near(a, b, factor, least)
    if np.all(same):
        return ""
    x, y = a.array, b.array
    finite_there = np.isfinite(y)
    at = np.unravel_index(int(np.argmax(np.where(same, 0, 1 + finite_there))), same.shape)
    text = f"{x[at]!r}, not {y[at]!r}, at {tuple(int(i) for i in at)}"
    return text if finite_there[at] else f"{text}; {NOT_FINITE}"
