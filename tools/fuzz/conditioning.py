"""Recognize ill-conditioned results: rounding errors of the inputs change them as much as the libraries differ."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from fuzz.compare import difference, near
from fuzz.execute import Observation, Record, complete
from fuzz.processes import Ended
from fuzz.program import COMPLEX, FLOATS, Input, Program
from fuzz.wider import records

# Inputs are moved by these numbers of units in the last place. At a jump or a pole both distances cause the same change; a
# smooth function, however steep, changes in proportion.
FEW, MANY = 1, 64
GROWTH = (8.0, 512.0)  # times as far, because the results at the moved points are rounded, too
POINTS = 6  # number of points at each distance
EPSILON = {
    "float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7,
    "complex128": 2.0**-52, "complex64": 2.0**-23,
}  # fmt: skip

Run = Callable[[Program], "Observation | Ended"]


def is_ill_conditioned(program: Program, ours: Run, run: Run) -> bool:
    """Return whether PyTorch's results change by as much as the difference if inputs are changed by rounding errors."""
    mine, theirs = complete(ours(program)), complete(run(program))
    if mine is None or theirs is None:
        return False
    if difference(program, mine, theirs) is None:
        return False
    rows = [records(seen) for seen in (mine, theirs)]
    if len(rows[0]) != len(rows[1]):
        return False
    rng = random.Random(1)
    changes = []
    for units in (FEW, MANY):
        moved = [complete(run(_moved(program, units, rng))) for _ in range(POINTS)]
        found = [records(seen) for seen in moved if seen is not None]
        if len(found) < POINTS or any(len(row) != len(rows[1]) for row in found):
            return False
        changes.append(found)
    return all(
        _is_within(a, b, [row[i] for row in changes[0]], [row[i] for row in changes[1]])
        for i, (a, b) in enumerate(zip(*rows, strict=True))
    )


def _moved(program: Program, units: int, rng: random.Random) -> Program:
    def move(value: Any, step: float) -> Any:
        if isinstance(value, complex):
            return complex(move(value.real, step), move(value.imag, step))
        return value * (1 + step * rng.choice((-1, 1))) if np.isfinite(value) else value

    def change(one: Input) -> Input:
        if one.dtype not in (*FLOATS, *COMPLEX):
            return one
        return replace(one, values=tuple(move(v, units * EPSILON[one.dtype]) for v in one.values))

    return replace(program, inputs=tuple(map(change, program.inputs)))


def _is_within(mine: Any, theirs: Any, few: list[Any], many: list[Any]) -> bool:
    if not isinstance(mine, Record) or not isinstance(theirs, Record):
        return bool(mine == theirs)
    if (mine.dtype, mine.shape) != (theirs.dtype, theirs.shape):
        return False
    same = near(mine, theirs)
    if same.all():
        return True
    others = [*few, *many]
    if mine.array.dtype.kind not in "fc" or not all(
        isinstance(v, Record) and v.shape == mine.shape for v in others
    ):
        return False
    a, b, *rest = (v.array.astype(np.complex128) for v in (mine, theirs, *others))
    with np.errstate(all="ignore"):
        distances = [abs(v - b) for v in rest]
        least, most = (np.max(part, axis=0) for part in (distances[: len(few)], distances[len(few) :]))
        smooth = np.isfinite(most) & (most >= GROWTH[0] * least) & (most <= GROWTH[1] * least)
        return bool((same | (smooth & (abs(a - b) <= most))).all())
