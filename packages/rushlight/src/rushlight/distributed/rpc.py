"""Remote procedure calls, which are not supported."""

from __future__ import annotations

from typing import NoReturn

__all__ = ["is_available"]


def is_available() -> bool:
    """Return False: remote procedure calls are not supported.

    Example:
        >>> torch.distributed.rpc.is_available()
        False
    """
    return False


def __getattr__(name: str) -> NoReturn:
    raise AttributeError(
        f"module 'rushlight.distributed.rpc' has no attribute {name!r}: functions are not called in other processes\n"
        "hint: check torch.distributed.rpc.is_available() first"
    )
