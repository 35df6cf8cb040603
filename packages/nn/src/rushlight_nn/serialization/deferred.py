"""Work on tensors that needs their bytes, which follow the structure in a legacy file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

# The work that is left until the storages are filled, or None if storages have their bytes when they are created.
_work: ContextVar[list[Callable[[], None]] | None] = ContextVar("_work", default=None)


@contextmanager
def bytes_come_later() -> Iterator[list[Callable[[], None]]]:
    """Collect the work that is passed to :func:`defer` in the block, for the caller to do when storages are filled."""
    collected: list[Callable[[], None]] = []
    token = _work.set(collected)
    try:
        yield collected
    finally:
        _work.reset(token)


def are_bytes_missing() -> bool:
    """Return whether the storages of the file that is being read get their bytes later."""
    return _work.get() is not None


def defer(work: Callable[[], None]) -> None:
    """Leave `work` until storages are filled, if they get their bytes later; otherwise nothing has to be done."""
    collected = _work.get()
    if collected is not None:
        collected.append(work)
