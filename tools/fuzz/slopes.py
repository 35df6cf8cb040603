"""Compute derivatives from differences of PyTorch's values, to decide which of two gradients is right."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from fuzz.compare import difference
from fuzz.execute import Observation, Record, complete
from fuzz.processes import Ended
from fuzz.program import COMPLEX, Input, Program, moves, refs_in
from fuzz.wider import is_near, widened, with_copies

STEP = 1e-6
NEAR = 1e-3  # the largest distance of a derivative from the difference quotient, relative to the largest derivative
APART = 10.0  # a derivative that is this many times further away is wrong
DRAWS = 5  # number of points with values of both signs; at most points a result may be NaN
AROUND = 16  # number of points around a point at which slopes may jump
FAR = 100.0  # slopes that differ by more are at a pole, and do not count
# Results of these operators have no part in a gradient, whatever they depend on.
CUT = (
    "detach",
    "detach_",
    "detach_copy",
    "fill_diagonal_",
    "round",
    "sign",
    "floor",
    "ceil",
    "trunc",
    "frac",
    "sgn",
)

Run = Callable[[Program], "Observation | Ended"]
Numbers = list[np.ndarray]


def is_right(program: Program, kind: str, ours: Run, run: Run) -> bool:
    """Return whether rushlight's gradients or tangents, and not PyTorch's, are derivatives of PyTorch's values.

    Both are computed in float64. If the slopes on both sides of a point differ, every number between them is right.
    Non-finite results of finite inputs have no slope: they are left out, as are gradients that are not finite.
    """
    if _is_cut(program):
        return False
    wide = widened(program)
    # If a conversion to float64 does nothing, its result is its argument, which later writes would change.
    return any(_is_right_in(program, one, kind, ours, run) for one in (wide, with_copies(wide)))


def _is_cut(program: Program) -> bool:
    """Return whether an operator of `CUT` is called with a value that depends on an input with a derivative."""
    depend = {one.name for one in program.inputs if moves(one)}
    for call in program.calls:
        read = set(refs_in((call.args, call.kwargs)))
        if not read & depend:
            continue
        if call.op in CUT:
            return True
        depend.add(call.result)
        if call.writes:  # views of the written tensor depend, too
            depend |= {one.name for one in program.inputs} | {other.result for other in program.calls}
    return False


def _is_right_in(program: Program, wide: Program, kind: str, ours: Run, run: Run) -> bool:
    mine, theirs = ours(wide), run(wide)
    if not isinstance(mine, Observation) or not isinstance(theirs, Observation) or mine.error:
        return False
    if not theirs.error and difference(wide, mine, theirs) is None:
        # PyTorch has this gradient for one dtype only.
        small = complete(ours(program))
        return (
            kind == "gradient accepts"
            and small is not None
            and all(map(is_near, small.gradients, theirs.gradients))
        )
    return any(_is_right(wide, kind, mine, theirs, run, step) for step in _steps(wide))


def _steps(program: Program) -> Iterator[float]:
    """Yield lengths of steps. For tiny numbers there are shorter steps, because the usual length would be too long."""
    yield STEP
    tiny = [abs(v) for one in program.inputs if moves(one) for v in one.values if 0 < abs(v) < 100 * STEP]
    shorter = min(tiny, default=0.0) * 1e-3
    if shorter > 0:  # not rounded to 0
        yield shorter


def _is_right(
    wide: Program, kind: str, mine: Observation, theirs: Observation, run: Run, step: float
) -> bool:
    try:
        sides = (
            _tangents(wide, theirs, run, step) if kind == "tangent" else _gradients(wide, theirs, run, step)
        )
    except _CannotTellError:
        return False
    given: list[Any] = mine.tangents if kind == "tangent" else mine.gradients
    other: list[Any] = theirs.tangents if kind == "tangent" else theirs.gradients
    partly = all(np.isfinite(one.values).all() for one in wide.inputs)
    distance = _distance(given, other, sides, partly)
    if not distance < NEAR:
        return False
    return bool(theirs.error) or not _distance(other, given, sides, partly) < APART * max(
        distance, NEAR / APART / APART
    )


def is_right_elsewhere(program: Program, ours: Run, run: Run) -> bool:
    """Return whether PyTorch has no gradient for other inputs either, and rushlight's gradients for them are right.

    These are finite numbers in the place of infinities and NaN, and random numbers in the place of all.
    """
    rng = random.Random(1)

    def fails(other: Program) -> bool:
        seen = run(other)
        return isinstance(seen, Observation) and bool(seen.error) and not isinstance(seen.failed_at, int)

    def drawn(low: float) -> Callable[[Any], Any]:
        return lambda value: rng.uniform(low, 1.7) if isinstance(value, (float, complex)) else value

    for change in (_finite, drawn(0.3), *(drawn(-1.7) for _ in range(DRAWS))):
        inputs = tuple(replace(one, values=tuple(map(change, one.values))) for one in program.inputs)
        other = replace(program, inputs=inputs)
        if other != program and fails(other) and is_right(other, "gradient accepts", ours, run):
            return True
    return False


def _finite(value: Any) -> Any:
    if not isinstance(value, (float, complex)) or np.isfinite(value):
        return value
    return -1.5 if isinstance(value, float) and value < 0 else 1.5


def is_right_beside(program: Program, kind: str, ours: Run, run: Run) -> bool:
    """Return whether PyTorch's gradients or tangents equal rushlight's if inputs are slightly larger or smaller.

    The slopes then jump at this point, and libraries choose one side or a value between the sides.
    """
    wide = widened(program)
    mine, theirs = complete(ours(wide)), complete(run(wide))
    if mine is None or theirs is None or _are_close(kind, mine, theirs):
        return False
    for first, second in ((1, 1), (-1, -1), (1, -1), (-1, 1)):
        steps = (first * STEP, second * STEP)
        inputs = tuple(_beside(one, steps) for one in wide.inputs)
        seen = complete(run(replace(wide, inputs=inputs)))
        if seen is not None and _are_close(kind, mine, seen):
            return True
    around = [seen for seen in _around(wide, run) if _listed(kind, seen)]
    return len(around) == AROUND and _is_between(
        _listed(kind, mine), [_listed(kind, seen) for seen in around]
    )


def _around(program: Program, run: Run) -> Iterator[Observation]:
    """Yield PyTorch's observations at points around this one."""
    rng = np.random.default_rng(1)
    for _ in range(AROUND):
        inputs = tuple(
            replace(one, values=tuple(v + STEP * max(1.0, abs(v)) * rng.uniform(-1, 1) for v in one.values))
            if one.dtype in ("float64", *COMPLEX)
            else one
            for one in program.inputs
        )
        seen = complete(run(replace(program, inputs=inputs)))
        if seen is None:
            return
        yield seen


def _is_between(mine: list[Record | None], around: list[list[Record | None]]) -> bool:
    """Return whether every number lies between the numbers of `around`, which must be close to each other."""
    for i, one in enumerate(mine):
        others = [row[i] if i < len(row) else None for row in around]
        if one is None or any(other is None or other.shape != one.shape for other in others):
            if one is None and all(other is None for other in others):
                continue
            return False
        value = one.array.astype(complex)
        stacked = np.array([other.array for other in others if other is not None]).astype(complex)
        if not (np.isfinite(value).all() and np.isfinite(stacked).all()):
            return False
        for part in (np.real, np.imag):
            low, high = part(stacked).min(axis=0, initial=np.inf), part(stacked).max(axis=0, initial=-np.inf)
            near = NEAR * np.maximum(1.0, abs(part(value)))
            if ((high - low > FAR) | (part(value) < low - near) | (part(value) > high + near)).any():
                return False
    return True


def _listed(kind: str, seen: Observation) -> list[Any]:
    return list(seen.tangents if kind == "tangent" else seen.gradients)


def _are_close(kind: str, mine: Observation, other: Observation) -> bool:
    lists = [_listed(kind, one) for one in (mine, other)]
    return bool(lists[0]) and len(lists[0]) == len(lists[1]) and all(map(_is_close, *lists))


def _beside(one: Input, steps: tuple[float, float]) -> Input:
    if one.dtype not in ("float64", *COMPLEX):
        return one
    return replace(one, values=tuple(v + steps[i % 2] * max(1.0, abs(v)) for i, v in enumerate(one.values)))


def _is_close(a: Any, b: Any) -> bool:
    if not isinstance(a, Record) or not isinstance(b, Record):
        return bool(a == b)
    return a.array.shape == b.array.shape and bool(np.allclose(a.array, b.array, rtol=NEAR, atol=NEAR))


class _CannotTellError(Exception):
    """Raised if PyTorch fails, or has no finite results, near the point."""


def _values(program: Program, run: Run) -> Observation:
    seen = run(program)
    if not isinstance(seen, Observation) or (seen.error and not str(seen.failed_at).startswith("backward")):
        raise _CannotTellError
    return seen


def weights(shape: tuple[int, ...]) -> np.ndarray:
    """Return the incoming gradients and tangents, as in execute.py."""
    count = int(np.prod(shape))
    return (np.arange(1, count + 1) / (count + 1)).reshape(shape)


def _weighted(records: list[Record], counted: list[np.ndarray] | None = None) -> float:
    """Return the weighted sum of all elements, or of those where `counted` is True."""
    total = 0.0
    with np.errstate(invalid="ignore"):
        for i, r in enumerate(records):
            products = r.array * weights(r.shape)
            total += float((products if counted is None else np.where(counted[i], products, 0)).sum().real)
    return total


def _slopes(value: Callable[[float], Any], step: float) -> tuple[Any, Any]:
    """Return the slopes of a function of one number to the left and to the right of a point."""
    below, here, above = value(-step), value(0.0), value(step)
    return (here - below) / step, (above - here) / step


def _gradients(
    program: Program, theirs: Observation, run: Run, step: float
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return, for each leaf, the slopes of the weighted sum of results; with backward2, then those of the gradients."""
    leaves = [one for one in program.inputs if one.requires_grad]
    counted = [name for name, value in theirs.final.items() if value.requires_grad]
    finite = [np.isfinite(theirs.final[name].array) for name in counted]

    def loss(inputs: Program) -> float:
        seen = _values(replace(inputs, mode="plain"), run)
        return _weighted([seen.final[name] for name in counted], finite)

    found = [_of_leaf(program, one, loss, step) for one in leaves]
    if program.mode == "backward2":
        first = [g is not None and g.requires_grad for g in theirs.gradients[: len(leaves)]]

        def again(inputs: Program) -> float:
            seen = _values(inputs, run)
            made = seen.gradients[: len(leaves)]
            if len(made) < len(first):
                raise _CannotTellError
            return _weighted([g for g, used in zip(made, first, strict=True) if used and g is not None])

        if any(first):
            found += [_of_leaf(program, one, again, step) for one in leaves]
    return found


def _of_leaf(
    program: Program, leaf: Input, loss: Callable[[Program], float], step: float
) -> tuple[np.ndarray, np.ndarray]:
    at = program.inputs.index(leaf)
    units = (1.0, 1j) if leaf.dtype in COMPLEX else (1.0,)
    left, right = (np.zeros(len(leaf.values), dtype=complex) for _ in range(2))
    for i, _ in enumerate(leaf.values):
        for unit in units:

            def moved(step: float, i: int = i, unit: complex = unit) -> float:
                values = list(leaf.values)
                values[i] = values[i] + step * unit
                inputs = (
                    *program.inputs[:at],
                    replace(leaf, values=tuple(values)),
                    *program.inputs[at + 1 :],
                )
                return loss(replace(program, inputs=inputs))

            slopes = _slopes(moved, step)
            left[i] += slopes[0] * unit
            right[i] += slopes[1] * unit
    return left.reshape(leaf.shape), right.reshape(leaf.shape)


def _tangents(
    program: Program, theirs: Observation, run: Run, length: float
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return, for each result, the slopes along the tangents of the inputs."""

    def moved(step: float) -> Numbers:
        inputs = tuple(
            replace(
                one, values=tuple((np.array(one.values) + step * weights(one.shape).reshape(-1)).tolist())
            )
            if moves(one)
            else one
            for one in program.inputs
        )
        seen = _values(replace(program, mode="plain", inputs=inputs), run)
        return [seen.final[name].array.astype(complex) for name in theirs.final]

    below, here, above = moved(-length), moved(0.0), moved(length)
    return [((b - a) / length, (c - b) / length) for a, b, c in zip(below, here, above, strict=True)]


def _distance(
    given: list[Record | None],
    other: list[Record | None],
    sides: list[tuple[np.ndarray, np.ndarray]],
    partly: bool = False,
) -> float:
    """Return the distance of derivatives from the range between the slopes, relative to the largest slope.

    A missing derivative counts as 0. A derivative that equals the one in `other` is left out if it or its slopes are not
    finite.
    `partly` leaves out derivatives that are not finite.
    """
    if len(given) != len(sides):
        return float("inf")
    if len(other) != len(given):  # PyTorch raised an error
        other = [None] * len(given)
    return max((_from_sides(*one, partly) for one in zip(given, other, sides, strict=True)), default=0.0)


def _from_sides(
    record: Record | None, other: Record | None, sides: tuple[np.ndarray, np.ndarray], partly: bool
) -> float:
    left, right = sides
    value = np.zeros_like(left) if record is None else record.array.astype(complex)
    if value.shape != left.shape:
        return float("inf")
    same = np.zeros(value.shape, dtype=bool)
    if other is not None and other.array.shape == value.shape:
        same |= (other.array == value) | (np.isnan(other.array) & np.isnan(value))
    undecided = same & ~(np.isfinite(left) & np.isfinite(right) & np.isfinite(value))
    if undecided.all():
        return 0.0
    known = ~undecided & (np.isfinite(value) | (not partly))
    value, left, right = (np.where(known, v, 0) for v in (value, left, right))
    if not known.any() or not all(np.isfinite(v).all() for v in (value, left, right)):
        return float("inf")
    largest = max(1.0, float(abs(left).max()), float(abs(right).max()))
    return max(float(d.max()) for d in _beyond(value, left, right)) / largest


def _beyond(value: np.ndarray, left: np.ndarray, right: np.ndarray) -> Iterator[np.ndarray]:
    for part in (np.real, np.imag):
        low, high = np.minimum(part(left), part(right)), np.maximum(part(left), part(right))
        yield np.maximum(0, np.maximum(low - part(value), part(value) - high))


def as_in_reverse(program: Program, ours: Run, run: Run) -> bool:
    """Return whether rushlight's tangents, and not PyTorch's, are consistent with PyTorch's gradients."""
    wide = widened(program)
    inputs = tuple(replace(one, requires_grad=moves(one)) for one in wide.inputs)
    mine, theirs = complete(ours(wide)), complete(run(wide))
    reverse = complete(run(replace(wide, mode="backward", inputs=inputs)))
    if mine is None or theirs is None or reverse is None:
        return False
    if mine.final.keys() != theirs.final.keys():
        return False  # other results have tangents
    counted = [reverse.final[name].requires_grad for name in theirs.final]
    expected = sum(
        float((g.array.conj() * weights(g.shape)).sum().real) for g in reverse.gradients if g is not None
    )
    totals = [
        _weighted([t for t, used in zip(seen.tangents, counted, strict=True) if used])
        for seen in (mine, theirs)
    ]
    return [bool(np.isclose(total, expected, rtol=1e-7, atol=1e-7)) for total in totals] == [True, False]
