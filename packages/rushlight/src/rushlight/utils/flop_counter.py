"""Counting operations of floating-point numbers: not there; the profiler counts time and memory."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = ["FlopCounterMode"]


class FlopCounterMode:
    """A block whose operations are counted: entering it raises NotImplementedError."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def get_flop_counts(self) -> dict[str, dict[Any, int]]:
        """What was counted: nothing."""
        return {}

    def get_total_flops(self) -> int:
        """How many there were: none was counted."""
        return 0

    def __enter__(self) -> NoReturn:
        raise NotImplementedError(
            "FlopCounterMode: operations are not counted\nhint: rushlight.profiler counts time and memory"
        )

    def __exit__(self, *error: Any) -> None:
        pass
