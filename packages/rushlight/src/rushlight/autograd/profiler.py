"""The profiler, under PyTorch's older module path."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rushlight_profiler import EventList, FunctionEvent, profile, record_function

__all__ = ["EventList", "FunctionEvent", "emit_itt", "emit_nvtx", "profile", "record_function"]


@contextmanager
def emit_nvtx(enabled: bool = True, record_shapes: bool = False) -> Iterator[None]:
    """Accepted for compatibility with PyTorch; operators cannot be marked for NVIDIA's profilers.

    Args:
        enabled: must be False, because operators cannot be marked.
        record_shapes: has no effect.

    Raises:
        NotImplementedError: `enabled` is true.

    Example:
        >>> with torch.autograd.profiler.emit_nvtx(enabled=False):
        ...     _ = torch.ones(2) + 1
    """
    if enabled:
        raise NotImplementedError("emit_nvtx(): not supported: operators cannot be shown in other profilers")
    yield


emit_itt = emit_nvtx
