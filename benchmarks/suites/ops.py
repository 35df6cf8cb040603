"""ops: operators by size and thread count."""

from __future__ import annotations

from typing import Any

from ..options import Options
from ..rows import ops
from . import micro
from .micro import render

__all__ = ["render", "run"]


def run(options: Options) -> dict[str, Any]:
    """One run per thread count. A quick run leaves out the rows of 16 Mi elements."""
    rows = [row for row in ops.ROWS if not (options.quick and "16Mi" in row.name)]
    return micro.run_rows("ops", rows, options, large=True)
