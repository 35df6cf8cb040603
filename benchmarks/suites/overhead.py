"""overhead: calls on tiny tensors."""

from __future__ import annotations

from typing import Any

from ..options import Options
from ..rows import overhead
from . import micro
from .micro import render

__all__ = ["render", "run"]


def run(options: Options) -> dict[str, Any]:
    """Run once per thread count, and add the verdict on the geometric mean."""
    result = micro.run_rows("overhead", overhead.ROWS, options)
    return result if options.match else micro.judge_mean(result, overhead.GEOMETRIC_MEAN_TARGET)
