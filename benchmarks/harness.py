"""The timing loop: it runs statements in a bare loop, interleaves blocks of the libraries, and subtracts the loop's cost.

Note [Fair comparison]
The machine is shared, so absolute times are not reliable. The libraries are measured in turn, in short blocks, for
many rounds. A ratio is computed within each round, in which a slow machine slows both libraries. The median
over rounds then discards the rounds in which only one of them was slowed. The order is drawn again for each round, and a few
untimed calls precede each block: each library leaves the caches in a certain state to the next one, and in a fixed order
this would always affect the same library.

Note [Loop cost]
A block is `for _ in range(n): statement`. The cost of the loop itself is measured by an empty loop in the same rounds, and
its median per iteration is subtracted. Otherwise a fast call would appear slower than it is, and every ratio closer to one.
"""

from __future__ import annotations

import ast
import gc
import itertools
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from .rows import Row

Clock = Callable[[], int]  # a reading in nanoseconds


class Subject(Protocol):
    """A statement that can be timed: run(count) executes it count times and returns the nanoseconds taken."""

    name: str

    def run(self, count: int) -> int: ...


@dataclass(frozen=True)
class Plan:
    """How long to measure. block_s: intended length of a block. rounds: upper bound; seconds: budget of a row.

    settle_s: pause before each block, so that worker threads of the previous library, which spin for some
    milliseconds after their last region, do not take a core from the next one. Zero with one thread.
    calls: number of calls in a block, for rows with long calls. None: as many as fill the block.
    """

    rounds: int = 100
    minimum_rounds: int = 5
    block_s: float = 2e-3
    seconds: float = 10.0
    settle_s: float = 0.0
    calls: int | None = None


@dataclass
class Series:
    """The blocks of one subject: calls in each, and the duration of each in nanoseconds."""

    count: int
    blocks: list[int] = field(default_factory=list)

    def per_call(self, loop_cost: float = 0.0) -> list[float]:
        """Return nanoseconds per call, without the cost of the loop."""
        return [block / self.count - loop_cost for block in self.blocks]


def compile_loop(statement: str, namespace: Mapping[str, Any]) -> Callable[[Any], None]:
    """Return a function that runs the statement once per item of its argument.

    The names that the statement reads are bound as default arguments, so they are local variables, which have the fastest
    look-up: as in `timeit`, the loop adds as little as possible.
    """
    tree = ast.parse(statement)
    read = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    bound = sorted(read & namespace.keys())
    body = "\n".join("        " + line for line in statement.splitlines())
    signature = ", ".join(["_items", *(f"{name}={name}" for name in bound)])
    source = f"def _loop({signature}):\n    for _ in _items:\n{body}\n"
    scope = dict(namespace)
    exec(compile(source, "<benchmark>", "exec"), scope)
    loop: Callable[[Any], None] = scope["_loop"]
    return loop


class Loop:
    """A subject with a statement, its namespace and a clock."""

    def __init__(self, name: str, statement: str, namespace: Mapping[str, Any], clock: Clock) -> None:
        self.name = name
        self._loop = compile_loop(statement, namespace)
        self._clock = clock

    def run(self, count: int) -> int:
        items = itertools.repeat(None, count)
        start = self._clock()
        self._loop(items)
        return self._clock() - start


def empty_loop(clock: Clock) -> Loop:
    """Return the subject whose time per iteration is the loop's own cost."""
    return Loop("loop", "pass", {}, clock)


def calibrate(subject: Subject, block_s: float) -> int:
    """Return the number of calls that fill a block. Doubling up to it warms caches, allocator and interpreter.

    The fastest of three runs is used, so that one interruption does not leave a row with blocks of a single cold call.
    """
    count = 1
    while True:
        elapsed = min(subject.run(count) for _ in range(3))
        if elapsed >= block_s * 1e9 / 2 or count >= 1 << 24:
            return max(1, round(count * block_s * 1e9 / max(elapsed, 1)))
        count *= 2


def warm_up(count: int) -> int:
    """Return the number of untimed calls before a block of count calls: none before a single call, which is long."""
    return 0 if count == 1 else count // 8 + 1


def interleave(
    subjects: Sequence[Subject],
    plan: Plan,
    *,
    now: Callable[[], float] = time.perf_counter,
    sleep: Callable[[float], None] = time.sleep,
) -> list[Series]:
    """Measure every subject in every round, in an order drawn from a fixed seed. See Note [Fair comparison].

    Stops after plan.rounds, or when the row's budget is spent and plan.minimum_rounds are done. The cyclic garbage collector
    is off during the measurement, as in `timeit`, since its time would count for one library although the objects belong to
    another.
    """
    enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        series = [Series(plan.calls or calibrate(subject, plan.block_s)) for subject in subjects]
        order = list(range(len(subjects)))
        rng = random.Random(0)
        start = now()
        for round_ in range(plan.rounds):
            if round_ >= plan.minimum_rounds and now() - start > plan.seconds:
                break
            rng.shuffle(order)
            for index in order:
                if plan.settle_s:
                    sleep(plan.settle_s)
                subjects[index].run(warm_up(series[index].count))
                series[index].blocks.append(subjects[index].run(series[index].count))
        return series
    finally:
        if enabled:
            gc.enable()


def data(*shape: int, seed: int = 0) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Return seeded float32 values in [0.5, 1.5): no zeros, no denormals, the same for every library."""
    values = np.random.default_rng([seed, *shape]).random(shape, dtype=np.float32)
    values += np.float32(0.5)
    return values


class WrongResultError(AssertionError):
    """Raised if two libraries disagree about the value of a row, so that timing it would be meaningless."""


def to_numpy(value: Any) -> list[np.ndarray[Any, Any]]:
    """Return the arrays in a result: a tensor, an array, a number, None, or a (nested) sequence of these."""
    if value is None:
        return []
    if isinstance(value, (tuple, list)):
        return [array for item in value for array in to_numpy(item)]
    if hasattr(value, "detach"):
        return [np.array(value.detach().numpy())]
    return [np.array(value)]


def compare(row: Row, got: Any, expected: Any, *, same_type: bool = True) -> None:
    """Raise `WrongResultError` unless shapes, dtypes (if same_type) and values agree within the row's tolerances."""
    ours, theirs = to_numpy(got), to_numpy(expected)
    if len(ours) != len(theirs):
        raise WrongResultError(f"{row.name}: expected {len(theirs)} results, got {len(ours)}")
    for index, (left, right) in enumerate(zip(ours, theirs, strict=True)):
        if left.shape != right.shape or (same_type and left.dtype != right.dtype):
            raise WrongResultError(
                f"{row.name}: result {index} must be {right.dtype}{list(right.shape)}, got "
                f"{left.dtype}{list(left.shape)}"
            )
        if not np.allclose(left, right, rtol=row.rtol, atol=row.atol, equal_nan=True):
            worst = float(np.max(np.abs(left.astype(np.float64) - right.astype(np.float64))))
            raise WrongResultError(
                f"{row.name}: result {index} differs from the expected values by up to {worst:.3g}"
            )


def result_expression(row: Row) -> str | None:
    """Return the expression that `compare` evaluates: the declared result, or the statement if it is an expression."""
    if row.result is not None:
        return row.result
    try:
        ast.parse(row.statement, mode="eval")
    except SyntaxError:
        return None
    return row.statement
