"""Explain a difference by PyTorch's own behaviour. known.yaml matches the sentences of the explanations."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from fuzz import beside
from fuzz.beside import Otherwise
from fuzz.compare import TOLERANCES, Difference, as_computed, near
from fuzz.conditioning import EPSILON, is_ill_conditioned
from fuzz.execute import Observation, Record, complete
from fuzz.processes import Ended
from fuzz.program import COMPLEX, FLOATS, INTEGERS, Call, Input, Program, Ref, example, mapped, moves, refs_in
from fuzz.shrink import alone, with_results
from fuzz.slopes import as_in_reverse, is_right, is_right_beside, is_right_elsewhere
from fuzz.wider import is_near, loses_digits, rounded, widened, with_floats

NO_DERIVATIVE = "PyTorch raises, too, if the arguments have derivatives"
NEEDS_ELEMENTS = "PyTorch raises, too, for tensors with more elements"
ONE_EXAMPLE = "PyTorch raises, too, for one example"
EACH_EXAMPLE = "PyTorch agrees with rushlight for each example alone"
SINGULAR = "PyTorch's result is not finite, or as large as the inverse of a rounding error"
ONLY_OUT = "PyTorch raises only with out="
ONE_SHAPE = "PyTorch agrees with rushlight for arguments of one shape"
ONE_DIMENSION = "PyTorch agrees with rushlight for tensors of one dimension"
ONE_DTYPE = "PyTorch agrees with rushlight for arguments of one dtype"
ROUNDED = "rushlight agrees with PyTorch for tensors without dimensions that are rounded to the half type"
WIDE_INTEGERS = "PyTorch agrees with rushlight for int64"
DIGITS = "rushlight is as close as PyTorch to PyTorch's float64 result"
CONDITION = "PyTorch's result changes as much if its inputs are rounded differently"
ITS_VALUES = "finite differences of PyTorch's values agree with rushlight"
BESIDE = "PyTorch agrees with rushlight at a nearby point"
IN_REVERSE = "PyTorch's gradients agree with rushlight's tangents"
INDEPENDENT = "PyTorch's result is the same for other inputs"
DEPENDENT = "PyTorch's result differs for other inputs"
ZEROS = "PyTorch's derivative is finite although an intermediate derivative of PyTorch is not"
TURNS = "the imaginary parts differ by multiples of 2 pi, and rushlight's lie between -pi and pi"
NAN_INPUT = "an input of the program is NaN"
NO_ELEMENTS = "the inputs with derivatives, or the results, have no elements"
LARGE = 0.01  # times the inverse of a rounding error; larger numbers count as the inverse of nearly zero
SIZE = 7  # replaces the sizes 0 and 1; no other dimension has this size

Run = Callable[[Program], "Observation | Ended"]


def explained(
    program: Program, found: Difference, ours: Run, run: Run, otherwise: Otherwise | None = None
) -> Difference:
    """Return the difference with a sentence about PyTorch's behaviour in a similar program, or in its other code.

    `ours` and `run` run a program in rushlight and in PyTorch.
    """
    known = _sentences(program, found, ours, run)
    if otherwise is not None:
        known = itertools.chain(known, beside.sentences(program, found, ours, run, otherwise))
    text = next((sentence for holds, sentence in known if holds()), "")
    return replace(found, text=f"{found.text}; {text}") if text else found


def _sentences(
    program: Program, found: Difference, ours: Run, run: Run
) -> Iterator[tuple[Callable[[], bool], str]]:
    """Yield the possible explanations of a difference: a check, and the sentence that applies if it holds."""
    kind, both = found.kind, (program, ours, run)
    if kind in ("values", "gradient", "tangent", "accepts"):
        yield lambda: as_of_wide_integers(program, kind, ours, run), WIDE_INTEGERS
    if program.mode == "vmap":
        if kind in ("raises", "values", "dtype", "shape"):
            yield lambda: _raises(run, _one_example(program)), ONE_EXAMPLE
        yield lambda: as_each_example(*both), EACH_EXAMPLE
    elif kind == "raises":
        yield lambda: needs_elements(program, run), NEEDS_ELEMENTS
        yield lambda: has_no_derivative(*both), NO_DERIVATIVE
        yield lambda: is_singular(*both), SINGULAR
    elif kind == "accepts":
        yield lambda: only_with_out(program, run), ONLY_OUT
        yield lambda: as_of_one_dtype(program, kind, ours, run), ONE_DTYPE
        yield lambda: as_of_one_shape(*both), ONE_SHAPE
        yield lambda: as_of_one_dimension(*both), ONE_DIMENSION
    elif kind == "gradient accepts":
        yield lambda: as_of_one_dtype(program, kind, ours, run), ONE_DTYPE
    elif kind in ("values", "alias", "gradient", "tangent"):
        # Functions of integers are computed in float32.
        yield lambda: loses_digits(with_floats(*both), ours, run), DIGITS
        yield lambda: is_ill_conditioned(with_floats(*both), ours, run), CONDITION
        yield lambda: as_of_one_dtype(program, kind, ours, run), ONE_DTYPE
        yield lambda: as_of_rounded_numbers(program, kind, ours, run), ROUNDED
    if kind == "values":
        yield lambda: differs_by_turns(*both), TURNS
        yield lambda: any(value != value for one in program.inputs for value in one.values), NAN_INPUT
    if kind == "tangent" and "(nan), not" in found.text:
        # A result whose inputs have no elements has a tangent of 0, which is multiplied by an infinite derivative.
        yield lambda: not any(one.values for one in program.inputs if moves(one)), NO_ELEMENTS
    if kind in ("gradient", "tangent") and "nan" in found.text:
        yield lambda: as_zero_times_infinity(program, kind, ours, run), ZEROS
    if kind == "tangent":
        yield lambda: as_in_reverse(*both), IN_REVERSE
    if kind in ("gradient", "tangent", "gradient accepts"):
        yield lambda: is_right(program, kind, ours, run), ITS_VALUES
    if kind == "gradient accepts":
        yield lambda: is_right_elsewhere(*both), ITS_VALUES
    if kind in ("gradient", "tangent"):
        yield lambda: is_right_beside(program, kind, ours, run), BESIDE
    if kind == "requires_grad":
        yield lambda: dependence(program, found, run) == NO_ELEMENTS, NO_ELEMENTS
        yield lambda: dependence(program, found, run) == INDEPENDENT, INDEPENDENT
        yield lambda: dependence(program, found, run) == DEPENDENT, DEPENDENT


def dependence(program: Program, found: Difference, run: Run) -> str:
    """Return a sentence about whether PyTorch's last result depends on the inputs that require grad; empty if unknown."""
    results = []
    rng = random.Random(1)
    for low, high in ((0.0, 0.0), (-3.0, 3.0), (0.1, 4.0), (-0.9, 0.9)):
        inputs = tuple(
            replace(one, values=tuple(rng.uniform(low, high) for _ in one.values))
            if one.requires_grad and high
            else one
            for one in program.inputs
        )
        seen = complete(run(replace(program, inputs=inputs, mode="plain")))
        if seen is not None:
            results.append(seen.steps[-1])
    if len(results) < 3 or not all(isinstance(value, Record) for row in results for value in row):
        return ""
    if not any(value.array.size for value in results[0]) or not any(
        one.values for one in program.inputs if one.requires_grad
    ):
        return NO_ELEMENTS
    read = _records_that_grow(program, run)
    if read and not any(value.array.size for value in read):
        return NO_ELEMENTS
    same = all(as_computed(a, b) for row in results for a, b in zip(row, results[0], strict=True))
    finite = all(np.isfinite(value.array).all() for row in results for value in row)
    if "False, not True" in found.text:
        return INDEPENDENT if same and finite else ""
    return "" if same else DEPENDENT


def _records_that_grow(program: Program, run: Run) -> list[Record]:
    """Return the arguments of the last call that require grad in PyTorch."""
    seen = complete(run(program)) if program.mode.startswith("backward") else None
    if seen is None:
        return []
    names: list[str] = []
    call = program.calls[-1]
    mapped((call.args, call.kwargs), lambda v: names.append(v.name) if isinstance(v, Ref) else None)
    found = [seen.final.get(name) for name in names]
    return [value for value in found if isinstance(value, Record) and value.requires_grad]


def has_no_derivative(program: Program, ours: Run, run: Run) -> bool:
    """Return whether PyTorch computes the failing call, but refuses it if its arguments have derivatives as in rushlight.

    In PyTorch the derivative then ended at an earlier call.
    """
    failed, plain = ours(program), complete(run(replace(program, mode="plain")))
    if program.mode in ("plain", "vmap") or not isinstance(failed, Observation) or plain is None:
        return False
    at = failed.failed_at
    small = alone(program, Difference("raises", "", "", at), plain) if isinstance(at, int) else None
    if small is None or not isinstance(at, int):
        return False
    depends = _that_depend(program, at)
    given = {one.name for one in program.inputs}
    # `alone` gives the result v2[1] the name x2_1.
    inputs = tuple(
        replace(
            one,
            requires_grad=(one.name if one.name in given else f"v{one.name[1:].partition('_')[0]}")
            in depends,
        )
        for one in small.inputs
    )
    small = replace(small, inputs=inputs, calls=small.calls[:1])
    return all(_raises(one, small) and not _raises(one, replace(small, mode="plain")) for one in (ours, run))


def _that_depend(program: Program, end: int) -> set[str]:
    """Return the variables before a call that depend on inputs with a derivative."""
    names = {one.name for one in program.inputs if moves(one)}
    for call in program.calls[:end]:
        if names & set(refs_in((call.args, call.kwargs))):
            written = call.kwargs.get("out", call.args[:1]) if call.writes else ()
            names |= {call.result, *refs_in(written)}
    return names


def is_singular(program: Program, ours: Run, run: Run) -> bool:
    """Return whether PyTorch's result of the failing call is not finite, or so large that it divided by nearly zero."""
    failed, seen = ours(program), complete(run(replace(program, mode="plain")))
    if not isinstance(failed, Observation) or not isinstance(failed.failed_at, int) or seen is None:
        return False
    with np.errstate(all="ignore"):
        return any(
            isinstance(one, Record)
            and one.dtype in EPSILON
            and not (np.abs(one.array) < LARGE / EPSILON[one.dtype]).all()
            for one in seen.steps[failed.failed_at]
        )


def as_of_one_dtype(program: Program, kind: str, ours: Run, run: Run) -> bool:
    """Return whether PyTorch agrees if all numbers, or all but integers and bools, have one dtype."""
    wide = widened(program)
    widest = "complex128" if any(one.dtype in COMPLEX for one in program.inputs) else "float64"
    for kept in (("bool", *INTEGERS), ("bool",), ()):
        inputs = tuple(one if one.dtype in kept else replace(one, dtype=widest) for one in wide.inputs)
        other = replace(wide, inputs=inputs)
        if other != program and _has_what_is_here(program, other, kind, ours, run):
            return True
    return False


def as_of_rounded_numbers(program: Program, kind: str, ours: Run, run: Run) -> bool:
    """Return whether rushlight agrees if tensors without dimensions are first rounded to a half type of the program."""
    used = {one.dtype for one in program.inputs}

    def narrow(one: Input, half: str) -> Input:
        if one.shape or one.dtype not in ("float32", "float64"):
            return one
        return replace(one, values=rounded(one.values, half))

    for half in used & {"float16", "bfloat16"}:
        other = replace(program, inputs=tuple(narrow(one, half) for one in program.inputs))
        if other != program and _has_what_is_here(program, other, kind, run, ours):
            return True
    return False


def as_of_wide_integers(program: Program, kind: str, ours: Run, run: Run) -> bool:
    """Return whether PyTorch agrees if no sum or product of integers wraps around."""
    inputs = tuple(replace(one, dtype="int64") if one.dtype in INTEGERS else one for one in program.inputs)
    if inputs == program.inputs:
        return False
    return _has_what_is_here(program, replace(program, inputs=inputs), kind, ours, run)


def as_of_one_shape(program: Program, ours: Run, run: Run) -> bool:
    """Return whether PyTorch agrees if arguments that broadcast are broadcast first."""
    try:
        shape = np.broadcast_shapes(*(one.shape for one in program.inputs))
    except ValueError:
        return False
    inputs = tuple(_broadcast(one, shape) for one in program.inputs)
    if inputs == program.inputs or any(call.writes for call in program.calls):
        return False
    return _has_result_of(program, replace(program, inputs=inputs), ours, run)


def _broadcast(one: Input, shape: tuple[int, ...]) -> Input:
    array = np.empty(len(one.values), dtype=object)
    array[:] = one.values
    values = np.broadcast_to(array.reshape(one.shape), shape).reshape(-1).tolist()
    return replace(one, shape=shape, values=tuple(values))


def of_one_dimension(program: Program) -> Program:
    """Return the program with inputs of one dimension instead of inputs without dimensions."""
    return replace(program, inputs=tuple(replace(one, shape=one.shape or (1,)) for one in program.inputs))


def as_of_one_dimension(program: Program, ours: Run, run: Run) -> bool:
    """Return whether PyTorch agrees, except for sizes of 1, if tensors without dimensions get one dimension."""
    other = of_one_dimension(program)
    mine, seen = complete(ours(program)), complete(run(other))
    if other == program or mine is None or seen is None or mine.final.keys() != seen.final.keys():
        return False
    return all(_is_flat(mine.final[name], seen.final[name]) for name in mine.final)


def _is_flat(a: Any, b: Any) -> bool:
    """Return whether two results are equal except for sizes of 1."""
    if not isinstance(a, Record) or not isinstance(b, Record):
        return bool(a == b)
    if [n for n in a.shape if n != 1] != [n for n in b.shape if n != 1]:
        return False
    return as_computed(
        beside.constant(a), beside.constant(replace(b, shape=a.shape, array=b.array.reshape(a.shape)))
    )


def as_zero_times_infinity(program: Program, kind: str, ours: Run, run: Run) -> bool:
    """Return whether rushlight's derivatives are PyTorch's or NaN, and an intermediate one in PyTorch is not finite.

    The product of zero and such a derivative is NaN. PyTorch does not compute it if it knows that a factor is zero.
    """
    mine, theirs = complete(ours(program)), complete(run(program))
    if mine is None or theirs is None:
        return False
    lists: Any = [one.tangents if kind == "tangent" else one.gradients for one in (mine, theirs)]
    if len(lists[0]) != len(lists[1]) or not all(map(_is_nan_or, *lists)):
        return False
    if kind == "tangent":
        seen = complete(run(replace(program, calls=program.calls[:-1])))
        return seen is not None and not all(np.isfinite(t.array).all() for t in seen.tangents)
    for i, results in enumerate(theirs.steps):
        one = with_results(program, i, results)
        seen = None if one is None or not one.calls else complete(run(one))
        if seen is not None and not all(np.isfinite(g.array).all() for g in seen.gradients if g is not None):
            return True
    return False


def _is_nan_or(a: Record | None, b: Record | None) -> bool:
    """Return whether every element of `a` is near the element of `b`, or is NaN."""
    if a is None or b is None or a.array.shape != b.array.shape:
        return a is b
    return bool((near(a, b) | np.isnan(a.array)).all())


def _has_what_is_here(program: Program, other: Program, kind: str, ours: Run, run: Run) -> bool:
    """Return whether the results or derivatives of `ours` equal those of `run` in the other program, except for dtypes."""
    if kind in ("values", "accepts"):
        return _has_result_of(program, other, ours, run)
    mine, seen = complete(ours(program)), complete(run(other))
    if mine is None or seen is None:
        return False
    lists = [one.tangents if kind == "tangent" else one.gradients for one in (mine, seen)]
    return len(lists[0]) == len(lists[1]) and all(map(is_near, *lists))


def differs_by_turns(program: Program, ours: Run, run: Run) -> bool:
    """Return whether complex results are logarithms of the same numbers, and rushlight's are the principal values."""
    mine, seen = complete(ours(program)), complete(run(program))
    if mine is None or seen is None:
        return False
    pairs = [(mine.final[name], seen.final[name]) for name in seen.final]
    apart = [
        (a, b)
        for a, b in pairs
        if isinstance(a, Record) and isinstance(b, Record) and a.shape == b.shape and not is_near(a, b)
    ]
    return bool(apart) and all(_are_turns(a, b) for a, b in apart)


def _are_turns(a: Record, b: Record) -> bool:
    if not a.array.dtype.kind == b.array.dtype.kind == "c":
        return False
    near, x, y = TOLERANCES[a.dtype], a.array.imag, b.array.imag
    others = ~np.isclose(x, y, near, near, equal_nan=True)
    return bool(
        (abs(x[others]) <= np.pi * (1 + 1e-6)).all()
        and np.allclose(a.array.real, b.array.real, near, near, equal_nan=True)
        and np.allclose(np.exp(1j * x), np.exp(1j * y), 0, near, equal_nan=True)
    )


def _has_result_of(program: Program, other: Program, ours: Run, run: Run) -> bool:
    """Return whether rushlight's result of the last call equals PyTorch's in the other program, except for its dtype."""
    mine, seen = complete(ours(program)), complete(run(other))
    if mine is None or seen is None:
        return False
    names = [name for name in seen.final if name.partition("[")[0] == program.calls[-1].result]
    return bool(names) and all(is_near(mine.final[name], seen.final[name]) for name in names)


def _raises(run: Run, program: Program) -> bool:
    """Return whether a program raises an error or ends the process."""
    return complete(run(program)) is None


def _one_example(program: Program, k: int = 0) -> Program:
    return replace(program, mode="plain", inputs=tuple(example(one, k) for one in program.inputs))


def as_each_example(program: Program, ours: Run, run: Run) -> bool:
    """Return whether rushlight's results under vmap equal those that PyTorch gives for the examples one by one."""
    mine = ours(program)
    count = next((one.shape[0] for one in program.inputs if one.batched), 0)
    if not isinstance(mine, Observation) or mine.error or not count:
        return False
    for k in range(count):
        alone = _one_example(program, k)
        seen = run(alone)
        if not isinstance(seen, Observation) or seen.error or seen.final.keys() != mine.final.keys():
            return False
        if not all(as_computed(_part(mine.final[name], k), seen.final[name]) for name in seen.final):
            return False
    return True


def _part(value: Any, k: int) -> Any:
    """Return the result of one example."""
    if not isinstance(value, Record) or not value.shape:
        return value
    return replace(value, shape=value.shape[1:], array=value.array[k])


def needs_elements(program: Program, run: Run) -> bool:
    """Return whether an argument is accepted only because dimensions are empty or of size 1.

    This is so if PyTorch raises an error when these dimensions are larger, with the sizes among the arguments unchanged and
    enlarged.
    """
    sizes = {n for one in program.inputs for n in one.shape}
    # A dimension of size 1 may be broadcast, so it is enlarged only if no size is larger than 1.
    return any(
        _raises_with_more(program, few, run)
        for few in ({0}, {0, 1})
        if sizes & few and (few == {0} or sizes <= few)
    )


def _raises_with_more(program: Program, few: set[int], run: Run) -> bool:
    filled = replace(program, inputs=tuple(_filled(one, few) for one in program.inputs))
    sized = replace(filled, calls=tuple(_with_size(call) for call in program.calls))
    return _raises(run, filled) and _raises(run, sized)


def _filled(one: Input, few: set[int]) -> Input:
    if not few & set(one.shape):
        return one
    shape = tuple(SIZE if n in few else n for n in one.shape)
    return replace(one, shape=shape, values=(one.values[0] if one.values else 1,) * math.prod(shape))


def _with_size(call: Call) -> Call:
    def change(value: Any) -> Any:
        return SIZE if type(value) is int and value == 0 else value

    return replace(call, args=mapped(call.args, change), kwargs=mapped(call.kwargs, change))


def only_with_out(program: Program, run: Run) -> bool:
    """Return whether the last call succeeds without `out=`, and its results can be cast to the dtypes of `out=`."""
    call = program.calls[-1]
    if "out" not in call.kwargs:
        return False
    rest = {name: value for name, value in call.kwargs.items() if name != "out"}
    plain = replace(program, mode="plain", calls=(*program.calls[:-1], replace(call, kwargs=rest)))
    seen = run(plain)
    if not isinstance(seen, Observation) or seen.error:
        return False
    return all(
        isinstance(result, Record) and _rank(result.dtype) <= _rank(seen.final[name].dtype)
        for result, name in zip(seen.steps[-1], _names(call.kwargs["out"]), strict=True)
    )


def _names(out: Any) -> Iterator[str]:
    yield from (
        one.name for one in (out if isinstance(out, (tuple, list)) else (out,)) if isinstance(one, Ref)
    )


def _rank(dtype: str) -> int:
    """Return the rank of a dtype. A dtype can be cast to dtypes of the same rank and above."""
    return 3 if dtype in COMPLEX else 2 if dtype in FLOATS else 0 if dtype == "bool" else 1
