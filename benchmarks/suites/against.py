"""against: the rows of `overhead` or `ops` with this build of the library against another build, usually an older one.

Each build has its own environment. In every round a fresh process of each is started, and their blocks are interleaved, so
that a slow machine slows both. Two processes never run at exactly the same speed, even of one build (address layout, hash
seeds), so rounds are resampled, not blocks.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import stats
from ..environment import confined
from ..harness import Plan, Subject, compare, interleave
from ..options import Options
from ..report import table
from ..rows import Row, ops, overhead
from ..worker import Remote, Worker

MEAN_LIMIT = 1.02  # the interval of the geometric mean must reach down to this
ROW_LIMIT = 1.05

ROUNDS, QUICK_ROUNDS = 40, 10


def run(options: Options) -> dict[str, Any]:
    """Return the ratios of times, this build over the other one, per row and of the geometric mean."""
    if options.other_python is None:
        return {
            "suite": "against",
            "problem": "--other-python is missing: the interpreter of the other build",
        }
    known: dict[str, Sequence[Row]] = {"overhead": overhead.ROWS, "ops": ops.ROWS}
    if options.rows not in known:
        raise ValueError(f"no such rows: {options.rows!r} (choose from {', '.join(known)})")
    rows = [row for row in known[options.rows] if options.match in row.name]
    if not rows:
        raise ValueError(f"no row's name contains {options.match!r}")
    clock = options.clock_for(1)
    plan = Plan(rounds=10, block_s=1e-3, seconds=2.0)
    rounds = QUICK_ROUNDS if options.quick else ROUNDS
    order = random.Random(0)
    logs: list[list[float]] = []
    with confined(1, options.cpu_list()):
        for round_ in range(rounds):
            pythons = [options.python, options.other_python]
            # The order alternates, because the first process finds the machine in another state.
            turn = order.random() < 0.5
            with (
                Worker(options.module, clock, python=pythons[turn]) as first,
                Worker(options.module, clock, python=pythons[1 - turn]) as second,
            ):
                ours, other = (second, first) if turn else (first, second)
                if round_ == 0:
                    versions = check(rows, ours, other)
                logs.append([log_ratio(row, ours, other, plan) for row in rows])
            print(f"  round {round_ + 1} of {rounds}", file=sys.stderr, flush=True)
    return summarize(rows, logs) | {"module": options.module, "versions": versions}


def check(rows: Sequence[Row], ours: Worker, other: Worker) -> list[str]:
    """Return the versions of the builds. Raises an error unless they are two builds that give the same values."""
    (our_file, our_version), (other_file, other_version) = ours.origin(), other.origin()
    if our_file == other_file:
        raise RuntimeError(f"both interpreters import {our_file}: nothing to compare")
    for row in rows:
        compare(row, ours.result(row), other.result(row))
    return [our_version, other_version]


def log_ratio(row: Row, ours: Worker, other: Worker, plan: Plan) -> float:
    """Return the logarithm of the median over blocks of our time over the other's, for one pair of processes."""
    for worker in (ours, other):
        worker.prepare(row)
    subjects: list[Subject] = [Remote(ours, "run"), Remote(other, "run"), Remote(ours, "loop")]
    mine, theirs, loop = interleave(subjects, plan)
    cost = float(np.median(loop.per_call()))
    return float(np.log(np.median(stats.ratios(mine.per_call(cost), theirs.per_call(cost)))))


def summarize(rows: Sequence[Row], logs: Sequence[Sequence[float]]) -> dict[str, Any]:
    """Return the medians over rounds and their intervals. logs: one list per round, with the logarithm of each row's ratio.

    The rows of one round share its two processes and are not independent: whole rounds are resampled.
    """
    values = np.array(logs)
    mean = stats.median_ratio(np.exp(values.mean(axis=1)))
    result: dict[str, Any] = {
        "suite": "against",
        "rounds": len(logs),
        "geometric_mean": mean.as_dict(),
        "geometric_mean_target": MEAN_LIMIT,
        "geometric_mean_verdict": "met" if mean.low <= MEAN_LIMIT else "not met",
        "rows": [],
    }
    for index, row in enumerate(rows):
        ratio = stats.median_ratio(np.exp(values[:, index]))
        result["rows"].append(
            {
                "name": row.name,
                "ratio": ratio.as_dict(),
                "paired": [round(float(value), 5) for value in np.exp(values[:, index])],
                "target": ROW_LIMIT,
                "verdict": stats.verdict(ratio, ROW_LIMIT),
            }
        )
    return result


def render(result: dict[str, Any]) -> str:
    """Return a table of ratios: below 1, this build is faster than the other."""
    if "problem" in result:
        return f"against: {result['problem']}"
    body = [_line(row["name"], row["ratio"], row["target"], row["verdict"]) for row in result["rows"]]
    mean = result["geometric_mean"]
    body.append(
        _line("geometric mean", mean, result["geometric_mean_target"], result["geometric_mean_verdict"])
    )
    ours, other = result["versions"]
    header = ["row", "this / other", "95 % interval", "limit", "verdict"]
    return (
        f"against: {result['module']} {ours} against {other}; {result['rounds']} rounds of fresh processes\n\n"
        f"{table(header, body)}"
    )


def _line(name: str, ratio: dict[str, float], limit: float, verdict: str) -> list[str]:
    interval = f"{ratio['low']:.3f}-{ratio['high']:.3f}"
    return [name, f"{ratio['value']:.3f}", interval, f"{limit:.2f}", verdict]
