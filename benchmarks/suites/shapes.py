"""shapes: layers in the shapes of real networks, in training, and against the peer's best settings."""

from __future__ import annotations

from typing import Any

from ..options import Options
from ..rows import shapes
from . import micro
from .micro import render

__all__ = ["render", "run"]


def run(options: Options) -> dict[str, Any]:
    """Run once per thread count. A quick run leaves out the rows of 16 Mi elements."""
    rows = [row for row in shapes.ROWS if not (options.quick and "16Mi" in row.name)]
    return micro.run_rows("shapes", rows, options, large=True)
