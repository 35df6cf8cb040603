"""The `DataLoader` transport that uses shared memory; it implements `rushlight_core.seams.transport`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import rushlight_core as core

from . import sharing
from .allocator import heap
from .contexts import get_context
from .limits import tightest_limit
from .pipes import Connection, Pipe
from .reductions import INLINE_BYTES


class SharedMemoryTransport:
    """Start worker processes and send their batches through shared memory."""

    name = "shared_memory"
    isolated = True

    def pipe(self) -> tuple[Connection, Connection]:
        """Return the two ends of a pipe: the loader's and the worker's."""
        return Pipe(copy=True)

    def worker(
        self, target: Callable[..., object], args: tuple[Any, ...], *, name: str, context: Any = None
    ) -> Any:
        """Return a daemon process that has not been started yet.

        `context` is a multiprocessing context, the name of a start method, or None for the default start
        method."""
        if context is None or isinstance(context, str):
            context = get_context(context)
        elif hasattr(context, "get_start_method"):
            # Replace a standard context by this package's context of the same start method.
            context = get_context(context.get_start_method())
        return context.Process(target=target, args=args, name=name, daemon=True)

    def empty(self, size: Sequence[int], dtype: core.dtype) -> core.Tensor | None:
        """Return a tensor in shared memory, or None for a small tensor, which is sent as bytes."""
        if math.prod(size) * dtype.itemsize < INLINE_BYTES:
            return None
        return sharing.empty(size, dtype)

    def reuse_memory(self, reuse: bool) -> None:
        """Set whether the memory of later batches is kept for reuse, or is returned to the system."""
        heap().reuse = reuse

    def memory_left(self) -> int | None:
        """Return how many bytes of memory the process may still use, or None if there is no limit."""
        limit = tightest_limit()
        return None if limit is None else limit.left

    @staticmethod
    def share_memory_(tensor: core.Tensor) -> core.Tensor:
        """Move the memory of a tensor to shared memory, in place."""
        return sharing.share_memory_(tensor)

    @staticmethod
    def is_shared(tensor: core.Tensor) -> bool:
        """Return whether the memory of a tensor is shared memory."""
        return sharing.is_shared(tensor)
