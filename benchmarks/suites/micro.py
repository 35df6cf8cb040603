"""Timed rows: library and peer in one process with interleaved blocks, and NumPy for the rows that it supports."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import process, stats
from ..environment import confined
from ..harness import Clock, Loop, Plan, Series, Subject, compare, empty_loop, interleave
from ..library import Library, numpy_namespace
from ..options import Options
from ..report import bound, number, table
from ..rows import Row

# A row whose confidence interval is wider than this share of its ratio is marked, and should be measured again on a
# quieter machine. Usually the reason is that threads wait for each other while another program uses one of their
# processors.
NOISY = 0.25

# CPU time of all threads of the process, so that the work of a second thread counts.
CLOCKS: dict[str, Clock] = {"cpu": time.process_time_ns, "wall": time.perf_counter_ns}


def run_rows(suite: str, rows: Sequence[Row], options: Options, *, large: bool = False) -> dict[str, Any]:
    """Measure rows once per thread count; each count has its own fresh process."""
    chosen = [row for row in rows if options.match in row.name]
    if not chosen:
        raise ValueError(f"no row's name contains {options.match!r}")
    runs = [
        run_threads(chosen, options, threads, options.plan(threads, large=large))
        for threads in options.threads
    ]
    return {"suite": suite, "module": options.module, "peer": options.peer, "runs": runs}


def run_threads(rows: Sequence[Row], options: Options, threads: int, plan: Plan) -> dict[str, Any]:
    """Measure rows with one thread count, in a fresh process with the same number of processors."""
    with confined(threads, options.cpu_list()):
        return _run_confined(rows, options, threads, plan)


def _run_confined(rows: Sequence[Row], options: Options, threads: int, plan: Plan) -> dict[str, Any]:
    clock = options.clock_for(threads)
    run: dict[str, Any] = {"threads": threads, "clock": clock, "versions": {}, "rows": []}
    pending = list(rows)
    while pending:
        try:
            for kind, value in process.stream(
                measure, pending, options.module, options.peer, threads, plan, clock
            ):
                if kind == "versions":
                    run["versions"] = value
                else:
                    run["rows"].append(value)
                    pending.pop(0)
                    _progress(value)
        except process.CrashedError as crash:
            # The row that was running is the first one without a result. Continue with the rows after it.
            run["rows"].append(_failed(pending.pop(0), f"crashed: {crash}"))
            _progress(run["rows"][-1])
    run["geometric_mean"] = _geometric_mean(run["rows"])
    groups = list(dict.fromkeys(row["group"] for row in run["rows"] if row["group"]))
    run["groups"] = {
        group: _geometric_mean([row for row in run["rows"] if row["group"] == group]) for group in groups
    }
    sizes = list(dict.fromkeys(row["size"] for row in run["rows"] if row.get("size")))
    run["sizes"] = {
        size: _geometric_mean([row for row in run["rows"] if row.get("size") == size]) for size in sizes
    }
    return run


def _geometric_mean(rows: list[dict[str, Any]]) -> dict[str, float] | None:
    paired = [np.asarray(row["paired"]) for row in rows if "paired" in row]
    return stats.geometric_mean(paired).as_dict() if paired else None


def _progress(row: dict[str, Any]) -> None:
    outcome = row.get("problem") or f"{row['ratio']['value']:.3f}"
    print(f"  {row['name']}: {outcome}", file=sys.stderr, flush=True)


def _failed(row: Row, problem: str) -> dict[str, Any]:
    return {
        "name": row.name,
        "group": row.group,
        "size": row.size,
        "target": row.target,
        "problem": problem,
    }


def measure(
    send: process.Send, rows: Sequence[Row], module: str, peer: str, threads: int, plan: Plan, clock: str
) -> None:
    """Run in the fresh process: send the versions once, then one result per row, in order."""
    libraries = (Library(module, threads), Library(peer, threads))
    send(("versions", {library.name: library.version for library in libraries} | {"numpy": np.__version__}))
    for row in rows:
        try:
            result = measure_row(row, *libraries, plan, CLOCKS[clock])
        except Exception as error:  # a missing operator or a wrong value invalidates its row only
            first_line = str(error).strip().splitlines()[0] if str(error).strip() else "no message"
            result = _failed(row, f"{type(error).__name__}: {first_line}")
        send(("row", result))


def measure_row(row: Row, library: Library, peer: Library, plan: Plan, clock: Clock) -> dict[str, Any]:
    """Check that the libraries agree, then time them. Raises `WrongResultError` or the row's own error."""
    peer_setup = row.setup if row.peer_setup is None else row.peer_setup
    expected = peer.result(row, peer_setup)
    compare(row, library.result(row, row.setup), expected)
    subjects: list[Subject] = [library.subject(row, row.setup, clock), peer.subject(row, peer_setup, clock)]
    if row.numpy is not None:
        scope = numpy_namespace(row)
        if row.result is None:
            compare(row, eval(row.numpy, scope), expected, same_type=False)
            scope = numpy_namespace(row)  # the check may have written into its operands
        subjects.append(Loop("numpy", row.numpy, scope, clock))
    del expected
    subjects.append(empty_loop(clock))
    return summarize_row(row, interleave(subjects, plan))


def summarize_row(row: Row, series: Sequence[Series]) -> dict[str, Any]:
    """Return times per call and ratios from the series of the library, the peer, the empty loop and, if present, NumPy."""
    *measured, loop = series
    loop_cost = float(np.median(loop.per_call()))
    calls = [one.per_call(loop_cost) for one in measured]
    names = ("subject", "peer", "numpy")
    paired = stats.ratios(calls[0], calls[1])
    ratio = stats.median_ratio(paired)
    result: dict[str, Any] = {
        "name": row.name,
        "group": row.group,
        "size": row.size,
        "target": row.target,
        "ns": {name: stats.summarize(values).as_dict() for name, values in zip(names, calls, strict=False)},
        "calls_per_block": {name: one.count for name, one in zip(names, measured, strict=False)},
        "loop_ns": loop_cost,
        "ratio": ratio.as_dict(),
        "minimum_ratio": min(calls[0]) / min(calls[1]),
        "noisy": ratio.high - ratio.low > NOISY * ratio.value,
        "verdict": stats.verdict(ratio, row.target),
        "paired": [round(float(value), 5) for value in paired],
    }
    if len(calls) > 2:
        result["numpy_ratio"] = stats.median_ratio(stats.ratios(calls[0], calls[2])).as_dict()
    return result


def judge_mean(result: dict[str, Any], target: float) -> dict[str, Any]:
    """Add the verdict on the geometric mean of the one-thread run. It is "not met" if rows failed."""
    for run in result["runs"]:
        mean = run["geometric_mean"]
        if run["threads"] != 1 or mean is None:
            continue
        missing = sum("problem" in row for row in run["rows"])
        answer = stats.verdict(stats.Estimate(**mean), target)
        run["geometric_mean_target"] = target
        run["geometric_mean_verdict"] = f"not met: {missing} rows failed" if missing else answer
    return result


def render(result: dict[str, Any]) -> str:
    """Return the tables, one per thread count."""
    return "\n\n".join(_render_run(result, run) for run in result["runs"])


def _render_run(result: dict[str, Any], run: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in run["versions"].items())
    title = f"{result['suite']}: {run['threads']} thread(s), {run['clock']} time; {versions}"
    header = [
        "row",
        f"{result['module']}",
        f"{result['peer']}",
        "numpy",
        "ratio",
        "95 % interval",
        "target",
        "verdict",
        "spread",
        "of minima",
        "to numpy",
    ]
    body = [_render_row(row) for row in run["rows"]]
    for group, values in (run["groups"] | run.get("sizes", {})).items():
        if values:
            body.append(
                [
                    f"geometric mean of {group}",
                    "",
                    "",
                    "",
                    number(values["value"]),
                    bound(values["low"], values["high"]),
                    number(values.get("target")),
                    values.get("verdict", ""),
                ]
            )
    if run["geometric_mean"]:
        mean = stats.Estimate(**run["geometric_mean"])
        body.append(
            [
                "geometric mean",
                "",
                "",
                "",
                number(mean.value),
                bound(mean.low, mean.high),
                number(run.get("geometric_mean_target")),
                run.get("geometric_mean_verdict", ""),
            ]
        )
    failures = "".join(f"\n{row['name']}: {row['problem']}" for row in run["rows"] if "problem" in row)
    return f"{title}\n\n{table(header, body)}" + (f"\n{failures}" if failures else "")


def _render_row(row: dict[str, Any]) -> list[str]:
    if "problem" in row:
        return [row["name"], "", "", "", "-", "", number(row["target"]), "failed"]
    ns = row["ns"]
    ratio = row["ratio"]
    spread = f"{ns['subject']['spread']:.0%}/{ns['peer']['spread']:.0%}" + (" noisy" if row["noisy"] else "")
    return [
        row["name"],
        duration(ns["subject"]["median"]),
        duration(ns["peer"]["median"]),
        duration(ns["numpy"]["median"]) if "numpy" in ns else "",
        number(ratio["value"]),
        bound(ratio["low"], ratio["high"]),
        number(row["target"]),
        row["verdict"],
        spread,
        number(row["minimum_ratio"]),
        number(row["numpy_ratio"]["value"]) if "numpy_ratio" in row else "",
    ]


def duration(nanoseconds: float) -> str:
    """Return a time with a unit: 34 ns, 1.60 us, 12.3 ms."""
    for limit, unit in ((1e3, "ns"), (1e6, "us"), (1e9, "ms")):
        if nanoseconds < limit:
            return f"{nanoseconds / limit * 1e3:.3g} {unit}"
    return f"{nanoseconds / 1e9:.3g} s"
