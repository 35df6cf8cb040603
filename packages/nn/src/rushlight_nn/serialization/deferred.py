"""Postpone work on tensors until their bytes have been read. In a legacy file, the bytes follow the object's pickle."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

# The functions to call after the storages are filled, or None if storages are filled when they are created.
_work: ContextVar[list[Callable[[], None]] | None] = ContextVar("_work", default=None)


@contextmanager
def bytes_come_later() -> Iterator[list[Callable[[], None]]]:
    """Yield a list that receives the functions passed to :func:`defer` in the block.

    The caller fills the storages and then calls these functions.
    """
    collected: list[Callable[[], None]] = []
    token = _work.set(collected)
    try:
        yield collected
    finally:
        _work.reset(token)


def are_bytes_missing() -> bool:
    """Return whether the current file stores the bytes of storages after the pickle of the object."""
    return _work.get() is not None


def defer(work: Callable[[], None]) -> None:
    """Register `work` to be called after the storages are filled, or do nothing if no bytes are missing."""
    collected = _work.get()
    if collected is not None:
        collected.append(work)
