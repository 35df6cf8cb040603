"""Streams and events of GPUs."""

from __future__ import annotations

import rushlight_core as core
from rushlight_core import _streams

from ._devices import _device, _need, _resolved

TYPE_CHECKING = False  # typing takes longer to import than this module
if TYPE_CHECKING:
    import ctypes
    from typing import Any

__all__ = [
    "Event",
    "ExternalStream",
    "Stream",
    "StreamContext",
    "current_stream",
    "default_stream",
    "set_stream",
    "stream",
]


class Stream(core.Stream):
    """A queue of work for a GPU. The GPU executes the work in the order in which it was submitted.

    Args:
        device: an index or a device; by default the current GPU.
        priority: lower numbers have a higher priority. A priority outside of `priority_range` becomes the nearest one.

    Raises:
        RuntimeError: there is no GPU.

    Example::

        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            x = torch.ones(2, device="cuda")
        torch.cuda.current_stream().wait_stream(stream)
    """

    def __init__(self, device: Any = None, priority: int = 0) -> None:
        _need("Stream")
        where = _device(device)
        if priority and isinstance(priority, int):
            least, greatest = core._C._stream_priorities(where)
            priority = max(greatest, min(priority, least))
        super().__init__(where, priority=priority)

    @staticmethod
    def priority_range() -> tuple[int, int]:
        """Return the lowest and the highest priority of streams of the current GPU, such as (0, -5).

        Raises:
            RuntimeError: there is no GPU.
        """
        _need("Stream.priority_range")
        return core._C._stream_priorities(_device(None))

    @property
    def cuda_stream(self) -> int:
        """The address of the stream (`cudaStream_t`), for functions of CUDA."""
        return self.stream_id

    @property
    def _as_parameter_(self) -> ctypes.c_void_p:
        """The stream as an argument of a function that `ctypes` calls."""
        import ctypes

        return ctypes.c_void_p(self.stream_id)

    def __cuda_stream__(self) -> tuple[int, int]:
        """Return the version of the protocol, 0, and the address of the stream, for packages such as `cuda.core`."""
        return 0, self.stream_id


class ExternalStream(Stream):
    """A stream that another library created. The stream must not be destroyed before the tensors that were used on it.

    Args:
        stream_ptr: the address of the stream.
        device: an index or a device; by default the current GPU.

    Raises:
        RuntimeError: there is no GPU.

    Example::

        with torch.cuda.stream(torch.cuda.ExternalStream(stream_ptr)):
            x = torch.ones(2, device="cuda")
    """

    def __init__(self, stream_ptr: int, device: Any = None) -> None:
        _need("ExternalStream")
        self._assign(_resolved(device), stream_ptr)


class Event(core.Event):
    """A point in a stream of the current GPU.

    Streams and the host can wait for an event, and the time between two events can be measured.

    Args:
        enable_timing: whether `elapsed_time` may be called.
        blocking: whether threads that wait for the event sleep instead of using the processor.
        interprocess: must be False.

    Raises:
        RuntimeError: there is no GPU.
        NotImplementedError: `interprocess` is true.

    Example::

        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        x = torch.ones(1000, 1000, device="cuda") @ torch.ones(1000, 1000, device="cuda")
        end.record()
        end.synchronize()
        begin.elapsed_time(end)  # milliseconds
    """

    def __init__(
        self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False
    ) -> None:
        _need("Event")
        super().__init__("cuda", enable_timing=enable_timing, blocking=blocking, interprocess=interprocess)

    @property
    def cuda_event(self) -> int:
        """The address of the event (`cudaEvent_t`), for functions of CUDA; 0 before the event is recorded."""
        return self.event_id

    @property
    def _as_parameter_(self) -> ctypes.c_void_p:
        """The event as an argument of a function that `ctypes` calls."""
        import ctypes

        return ctypes.c_void_p(self.event_id)


def current_stream(device: Any = None) -> Stream:
    """Return the stream to which the calling thread submits work.

    Args:
        device: an index or a device; by default the current GPU.

    Raises:
        RuntimeError: there is no GPU.

    Example::

        torch.cuda.current_stream().synchronize()
    """
    _need("current_stream")
    found = _streams.current_stream(_device(device))
    return Stream._existing(found.device, found.stream_id)


def set_stream(stream: core.Stream | None) -> None:
    """Select the stream to which the calling thread submits its work for the stream's device.

    Args:
        stream: a stream; None changes nothing.

    Example:
        >>> torch.cuda.set_stream(None)
    """
    if stream is not None:
        _streams.set_stream(stream)


def default_stream(device: Any = None) -> Stream:
    """Return the stream that a GPU uses before another stream is selected.

    Args:
        device: an index or a device; by default the current GPU.

    Raises:
        RuntimeError: there is no GPU.

    Example::

        torch.cuda.default_stream().synchronize()
    """
    _need("default_stream")
    return Stream._existing(_resolved(device), 0)


class stream:  # noqa: N801
    """Context manager that selects the stream to which its block submits work.

    Args:
        stream: a stream; None changes nothing.

    Example:
        >>> with torch.cuda.stream(None):
        ...     x = torch.ones(2)
    """

    def __init__(self, stream: core.Stream | None) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        if self.stream is not None:
            self.stream.__enter__()

    def __exit__(self, *error: object) -> None:
        if self.stream is not None:
            self.stream.__exit__(*error)


StreamContext = stream
