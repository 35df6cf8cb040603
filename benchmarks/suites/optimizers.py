"""optimizers: steps over ResNet-50's parameters against the peer's fused steps, and against a copy of as many bytes.

A step over parameters that exceed the caches is limited by memory, so its time is compared with a copy by NumPy in the same
rounds, which reads half of the bytes that the step moves and writes half. The target is met if either ratio meets it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .. import stats
from ..options import Options
from ..report import bound, number, table
from ..rows import optimizers
from . import micro
from .micro import duration

TO_PEER, TO_COPY = 0.8, 1.1


def run(options: Options) -> dict[str, Any]:
    """Run once per thread count."""
    runs = []
    for threads in options.threads:
        chosen = [row for row in optimizers.rows(threads) if options.match in row.name]
        if not chosen:
            raise ValueError(f"no optimizer's name contains {options.match!r}")
        plan = options.plan(threads, large=True)
        if not options.quick:
            plan = replace(plan, rounds=120, seconds=20.0)
        run = micro.run_threads(chosen, options, threads, plan)
        for row in run["rows"]:
            if "problem" not in row:
                judge(row)
        runs.append(run)
    return {"suite": "optimizers", "module": options.module, "peer": options.peer, "runs": runs}


def judge(row: dict[str, Any]) -> None:
    """Add the bytes that the step moves, and whether one of the two targets is met."""
    (step,) = [step for step in optimizers.STEPS if step.name == row["name"]]
    row["bytes"] = optimizers.moved_bytes(step)
    answers = [
        stats.verdict(stats.Estimate(**row["ratio"]), TO_PEER),
        stats.verdict(stats.Estimate(**row["numpy_ratio"]), TO_COPY),
    ]
    row["verdict"] = next((answer for answer in ("met", "met?", "not met?") if answer in answers), "not met")


def render(result: dict[str, Any]) -> str:
    """Return the tables, one per thread count."""
    return "\n\n".join(_render_run(result, run) for run in result["runs"])


def _render_run(result: dict[str, Any], run: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in run["versions"].items())
    title = (
        f"optimizers: ResNet-50, {optimizers.elements()} float32 parameters, {run['threads']} thread(s), "
        f"{run['clock']} time; {versions}"
    )
    header = ["step", result["module"], f"{result['peer']} fused", "copy"]
    header += [f"to {result['peer']}", "95 % interval", "to copy", "95 % interval"]
    header += ["MB moved", "GB/s", "GB/s of copy", f"{TO_PEER} or {TO_COPY}"]
    body = [_render_row(row) for row in run["rows"]]
    failures = "".join(f"\n{row['name']}: {row['problem']}" for row in run["rows"] if "problem" in row)
    return f"{title}\n\n{table(header, body)}" + (f"\n{failures}" if failures else "")


def _render_row(row: dict[str, Any]) -> list[str]:
    if "problem" in row:
        return [row["name"], *[""] * 10, "failed"]
    medians = [row["ns"][key]["median"] for key in ("subject", "peer", "numpy")]
    ratios = [row["ratio"], row["numpy_ratio"]]
    return [
        row["name"],
        *(duration(median) for median in medians),
        *(text for r in ratios for text in (number(r["value"]), bound(r["low"], r["high"]))),
        f"{row['bytes'] / 1e6:.0f}",
        *(f"{row['bytes'] / median:.1f}" for median in (medians[0], medians[2])),
        row["verdict"],
    ]
