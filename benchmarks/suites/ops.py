"""ops: sixty operators by size and thread count."""

from __future__ import annotations

from typing import Any

from .. import stats
from ..options import Options
from ..rows import ops
from . import micro
from .micro import render

__all__ = ["render", "run"]


def run(options: Options) -> dict[str, Any]:
    """Run once per thread count. A quick run leaves out the rows of 16 Mi elements."""
    rows = [row for row in ops.ROWS if not (options.quick and row.size == "16Mi")]
    return judge_sizes(micro.run_rows("ops", rows, options, large=True))


def judge_sizes(result: dict[str, Any]) -> dict[str, Any]:
    """Add the verdicts on the geometric mean of each size. A verdict is "not met" if rows of the size failed."""
    for run in result["runs"]:
        for size, mean in run["sizes"].items():
            if mean is None:
                continue
            failed = sum("problem" in row for row in run["rows"] if row["size"] == size)
            answer = stats.verdict(stats.Estimate(**mean), ops.MEANS[size])
            mean["target"] = ops.MEANS[size]
            mean["verdict"] = f"not met: {failed} rows failed" if failed else answer
    return result
