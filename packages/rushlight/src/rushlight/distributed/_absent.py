"""A base for classes that programs ask about, and of which there are no instances without process groups."""

from __future__ import annotations

from typing import Any

HINT = "hint: ask torch.distributed.is_available() before"


class Absent:
    """Making an instance raises RuntimeError."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError(f"distributed.{type(self).__name__}(): there are no process groups\n{HINT}")
