"""Shared memory as the loader's transport (the seam `rushlight_core.seams.transport`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import rushlight_core as core

from . import sharing
from .connection import Connection, Pipe
from .context import get_context
from .reductions import INLINE_BYTES


class SharedMemoryTransport:
    """Worker processes whose tensors lie in shared memory."""

    name = "shared_memory"
    isolated = True

    def pipe(self) -> tuple[Connection, Connection]:
        """Two ends of a socket."""
        return Pipe(gives=True)

    def worker(
        self, target: Callable[..., object], args: tuple[Any, ...], *, name: str, context: Any = None
    ) -> Any:
        """A daemon process of `context`: a start method's name, a context, or None for the one that is
        set."""
        if context is None or isinstance(context, str):
            context = get_context(context)
        elif hasattr(context, "get_start_method"):
            # A standard context: ours of the same method, whose processes know tensors.
            context = get_context(context.get_start_method())
        return context.Process(target=target, args=args, name=name, daemon=True)

    def empty(self, size: Sequence[int], dtype: core.dtype) -> core.Tensor | None:
        """A tensor in shared memory; None for a small one, which goes as bytes."""
        if math.prod(size) * dtype.itemsize < INLINE_BYTES:
            return None
        return sharing.empty(size, dtype)

    share_memory_ = staticmethod(sharing.share_memory_)
    is_shared = staticmethod(sharing.is_shared)
