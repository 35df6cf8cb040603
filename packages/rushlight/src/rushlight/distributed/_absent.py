"""A base for classes that programs check for, and of which there are no instances."""

from __future__ import annotations

from typing import Any

HINT = "hint: rushlight.distributed has process groups over shared memory, and DistributedDataParallel"


class Absent:
    """Making an instance raises RuntimeError."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError(f"distributed.{type(self).__name__}(): is not supported\n{HINT}")
