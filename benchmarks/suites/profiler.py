"""profiler: measure the cost of the imported but inactive profiler, in two processes with interleaved blocks.

Two processes never run at exactly the same speed (address layout, hash seeds), so pairs of fresh processes
are compared. In addition there are control pairs in which neither process imported the profiler. A cost within the variation
of the control pairs is not measurable.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import stats
from ..environment import confined
from ..harness import Plan, Subject, interleave
from ..options import Options
from ..report import table
from ..rows import Row, overhead
from ..worker import Remote, Worker


def run(options: Options) -> dict[str, Any]:
    """Return the ratios imported / not imported per row and their geometric mean, and those of the control pairs."""
    pairs = 2 if options.quick else 6
    rows = [row for row in overhead.ROWS if options.match in row.name]
    clock = options.clock_for(1)
    plan = Plan(rounds=10 if options.quick else 40, block_s=1e-3, seconds=2.0)
    logs: dict[str, list[list[float]]] = {"imported": [], "control": []}
    try:
        with confined(1, options.cpu_list()):
            for _ in range(pairs):
                for key, profiler in (("imported", options.profiler), ("control", None)):
                    with (
                        Worker(options.module, clock) as absent,
                        Worker(options.module, clock, also=profiler) as other,
                    ):
                        logs[key].append([float(np.log(_ratio(row, other, absent, plan))) for row in rows])
                        if absent.loaded(options.profiler):
                            raise RuntimeError(
                                f"{options.module} imports {options.profiler} itself, so there is nothing to compare"
                            )
                print(f"  {key} pair {len(logs[key])} of {pairs}", file=sys.stderr, flush=True)
    except RuntimeError as error:
        return {"suite": "profiler", "problem": str(error)}
    return summarize(options, rows, logs)


def _ratio(row: Row, other: Worker, absent: Worker, plan: Plan) -> float:
    """Return the median over rounds of time with / time without, for one pair of processes."""
    for worker in (other, absent):
        worker.prepare(row)
    subjects: list[Subject] = [Remote(other, "run"), Remote(absent, "run"), Remote(absent, "loop")]
    with_, without, loop = interleave(subjects, plan)
    cost = float(np.median(loop.per_call()))
    return stats.median_ratio(stats.ratios(with_.per_call(cost), without.per_call(cost))).value


def summarize(options: Options, rows: Sequence[Row], logs: dict[str, list[list[float]]]) -> dict[str, Any]:
    """Resample whole pairs: the rows of one pair share its two processes and are not independent."""
    result: dict[str, Any] = {
        "suite": "profiler",
        "module": options.module,
        "profiler": options.profiler,
        "pairs": len(logs["imported"]),
        "rows": [],
    }
    means = {}
    for key, values in logs.items():
        table_ = np.array(values)
        means[key] = stats.median_ratio(np.exp(table_.mean(axis=1)))
        result[key] = means[key].as_dict()
        for index, row in enumerate(rows):
            if key == "imported":
                result["rows"].append({"name": row.name})
            result["rows"][index][key] = stats.median_ratio(np.exp(table_[:, index])).as_dict()
    apart = means["imported"].low > max(means["control"].high, 1.0)
    result["verdict"] = "not met: measurably slower" if apart else "met: nothing measurable"
    return result


def render(result: dict[str, Any]) -> str:
    """Return a table of ratios per row, with the profiler imported and of the control."""
    if "problem" in result:
        return f"profiler: {result['problem']}"
    columns = ("imported", "control")
    body = [
        [entry["name"], *(cell for key in columns for cell in _cells(entry[key]))] for entry in result["rows"]
    ]
    body.append(["geometric mean", *(cell for key in columns for cell in _cells(result[key]))])
    header = ["row", "imported / not", "95 % interval", "control", "95 % interval"]
    return (
        f"profiler: {result['profiler']} imported but off; {result['pairs']} pairs of processes\n\n"
        f"{table(header, body)}\n\n{result['verdict']}"
    )


def _cells(estimate: dict[str, float]) -> tuple[str, str]:
    return f"{estimate['value']:.3f}", f"{estimate['low']:.3f}-{estimate['high']:.3f}"
