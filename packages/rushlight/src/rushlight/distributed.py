"""Processes that compute together: not available, which is what programs ask first.

For several processes on one machine see `rushlight.multiprocessing`.
"""

from __future__ import annotations

from typing import NoReturn

__all__ = ["is_available", "is_initialized", "is_torchelastic_launched"]


def is_available() -> bool:
    """Whether there are process groups: no."""
    return False


def is_initialized() -> bool:
    """Whether this process is in one: no."""
    return False


def is_torchelastic_launched() -> bool:
    """Whether a launcher of process groups started this process: no, none is known."""
    return False


def __getattr__(name: str) -> NoReturn:
    raise AttributeError(
        f"module 'rushlight.distributed' has no attribute {name!r}: there are no process groups\n"
        "hint: ask torch.distributed.is_available() before"
    )
