"""Streams of devices, and events that order and time the work of streams.

A stream runs its work in the order in which the work was queued. The work of different streams may run at the same time,
unless events define an order. The CPU has one stream, whose work is always complete.
"""

from __future__ import annotations

from _thread import get_ident

from . import _C
from ._C import device as _device

TYPE_CHECKING = False  # typing takes longer to import than this package
if TYPE_CHECKING:
    from typing import Any, Self

    from .devices import DeviceLike


# The priorities of streams, by device and address, if they are not 0.
_priorities: dict[tuple[_device, int], int] = {}


def _of(device: DeviceLike | None) -> _device:
    """Return `device`. If it is an accelerator without an index, use the current device of its type.

    If `device` is None, return the current device of the accelerator, or the CPU if there is no accelerator.
    """
    if device is None:
        for type in ("cuda", _C._plugin_device()):
            if type and _C._device_count(type):
                return _C._current_device(type)
        return _device("cpu")
    found = _device(device)
    return found if found.type == "cpu" or found.index is not None else _C._current_device(found)


class Stream:
    """A queue of work on a device.

    Inside `with stream:`, the stream is the current stream, and its device is the current device.

    Args:
        device: the device; by default the current device of the accelerator, or the CPU if there is none.
        priority: the priority of the stream's work; a smaller number is more urgent.

    Raises:
        NotImplementedError: the backend has one stream only.

    Example:
        >>> stream = torch.Stream("cpu")
        >>> with stream:
        ...     y = torch.ones(2) + 1
        >>> stream.query()  # the CPU works synchronously
        True
    """

    def __init__(self, device: DeviceLike | None = None, *, priority: int = 0) -> None:
        self.device: _device = _of(device)
        self.priority: int = priority
        self.stream_id: int = 0 if self.device.type == "cpu" else _C._new_stream(self.device, priority)
        if priority:
            _priorities[self.device, self.stream_id] = priority
        # The current devices and streams outside of `with` blocks, by threads.
        self._before: dict[int, list[tuple[_device, Stream]]] = {}

    @classmethod
    def _existing(cls, device: _device, stream_id: int) -> Self:
        self = cls.__new__(cls)
        self._assign(device, stream_id)
        return self

    def _assign(self, device: _device, stream_id: int) -> None:
        self.device, self.stream_id, self._before = device, stream_id, {}
        self.priority = _priorities.get((device, stream_id), 0)

    @property
    def device_index(self) -> int:
        """The index of the device; 0 for the CPU."""
        return self.device.index or 0

    @property
    def native_handle(self) -> int:
        """The address of the backend's stream; 0 for a default stream."""
        return self.stream_id

    def is_capturing(self) -> bool:
        """Return whether work that is queued on the stream is recorded in a graph."""
        with self:
            return _C._is_capturing(self.device)

    def query(self) -> bool:
        """Return whether all work that was queued on the stream is done."""
        return self.device.type == "cpu" or _C._query_stream(self.device, self.stream_id)

    def synchronize(self) -> None:
        """Wait until all work that was queued on the stream is done, and raise the errors of that work."""
        if self.device.type != "cpu":
            _C._synchronize_stream(self.device, self.stream_id)

    def wait_event(self, event: Event) -> None:
        """Make all future work submitted to this stream wait for the event."""
        _check("wait_event(event)", event, Event)
        event.wait(self)

    def wait_stream(self, stream: Stream) -> None:
        """Make all future work submitted to this stream wait for the work already queued on `stream`."""
        _check("wait_stream(stream)", stream, Stream)
        if stream.device.type != "cpu":
            self.wait_event(stream.record_event())

    def record_event(self, event: Event | None = None) -> Event:
        """Record `event`, or a new event, after all work that has been queued so far. Return the event."""
        event = Event(self.device) if event is None else event
        _check("record_event(event)", event, Event)
        event.record(self)
        return event

    def __enter__(self) -> Stream:
        if self.device.type != "cpu":
            outer = _C._current_device(self.device.type)
            self._before.setdefault(get_ident(), []).append((outer, current_stream(self.device)))
            _C._set_device(self.device)
            set_stream(self)
        return self

    def __exit__(self, *_: object) -> None:
        if self.device.type != "cpu":
            entered = self._before.get(get_ident())
            if not entered:
                raise RuntimeError("Stream.__exit__: this thread is not in a `with` block of the stream")
            outer, stream = entered.pop()
            if not entered:
                del self._before[get_ident()]
            set_stream(stream)
            _C._set_device(outer)

    def __reduce__(self) -> str:
        raise TypeError(
            "Stream: streams cannot be pickled or copied, because other processes cannot use them"
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and self.device == other.device and self.stream_id == other.stream_id

    def __hash__(self) -> int:
        return hash((self.device, self.stream_id))

    def __repr__(self) -> str:
        return f"Stream(device={str(self.device)!r}, stream_id={self.stream_id:#x})"


class Event:
    """A position in the queue of a stream.

    An event belongs to the device of the first stream on which it is recorded.

    Args:
        device: the device type of the streams; by default the accelerator, or the CPU if there is none.
        enable_timing: whether `elapsed_time` may be called.
        blocking: whether threads that wait for the event sleep instead of using the processor.
        interprocess: must be False.

    Raises:
        NotImplementedError: `interprocess` is true.

    Example::

        begin, end = (torch.Event("cuda", enable_timing=True) for _ in range(2))
        begin.record()
        y = x @ x
        end.record()
        end.synchronize()
        print(begin.elapsed_time(end), "ms")
    """

    def __init__(
        self,
        device: DeviceLike | None = None,
        *,
        enable_timing: bool = False,
        blocking: bool = False,
        interprocess: bool = False,
    ) -> None:
        if interprocess:
            raise NotImplementedError(
                "Event(interprocess): must be False, because events cannot be shared between processes"
            )
        where = _of(device)
        self.device: _device = _device(where.type)  # has no index until the event is recorded
        self._event: Any = (
            None if where.type == "cpu" else _C._new_event(where, bool(enable_timing), bool(blocking))
        )

    def record(self, stream: Stream | None = None) -> None:
        """Record the event on a stream, after all work that is already queued there.

        Args:
            stream: the stream; by default the current stream of the current device.

        Raises:
            ValueError: the event was previously recorded on a stream of another device.
        """
        if self._event is not None:
            stream = current_stream(self.device.type) if stream is None else stream
            _C._record_event(self._event, stream.device, stream.stream_id)
            self.device = stream.device

    def wait(self, stream: Stream | None = None) -> None:
        """Make all future work submitted to `stream`, by default the current stream, wait for this event."""
        if self._event is not None:
            stream = current_stream(self.device.type) if stream is None else stream
            _C._wait_event(self._event, stream.device, stream.stream_id)

    def query(self) -> bool:
        """Return whether all work queued before the event is done; True if the event was not recorded."""
        return self._event is None or _C._query_event(self._event)

    @property
    def event_id(self) -> int:
        """The address of the backend's event; 0 if the event was not recorded, or belongs to the CPU."""
        return 0 if self._event is None else _C._event_handle(self._event)

    def ipc_handle(self) -> bytes:
        """Raise NotImplementedError: events cannot be shared between processes."""
        raise NotImplementedError("ipc_handle(): events cannot be shared between processes")

    @classmethod
    def from_ipc_handle(cls, device: DeviceLike, handle: bytes) -> Self:
        """Raise NotImplementedError: events cannot be shared between processes.

        Args:
            device: the device of the event.
            handle: the handle of an event of another process.
        """
        raise NotImplementedError(
            "from_ipc_handle(device, handle): events cannot be shared between processes"
        )

    def synchronize(self) -> None:
        """Wait until all work queued before the event is done, and raise the errors of that work."""
        if self._event is not None:
            _C._synchronize_event(self._event)

    def elapsed_time(self, end_event: Event) -> float:
        """Return the time in milliseconds from this event to `end_event`. Both events must be made with `enable_timing`.

        Raises:
            ValueError: an event was made without timing, was not recorded, or belongs to the CPU.
            RuntimeError: the work queued before one of the events is not complete.
        """
        _check("elapsed_time(end_event)", end_event, Event)
        if self._event is None or end_event._event is None:
            raise ValueError(
                "elapsed_time: both events must belong to a device with streams, but one belongs to the CPU"
            )
        return _C._elapsed_time(self._event, end_event._event)

    def __repr__(self) -> str:
        return f"Event(device={str(self.device)!r})"


def _check(argument: str, value: object, wanted: type) -> None:
    if not isinstance(value, wanted):
        raise TypeError(f"{argument}: must be {wanted.__name__}, got {type(value).__name__}")


def current_stream(device: DeviceLike | None = None) -> Stream:
    """Return the stream on which this thread queues work for a device."""
    where = _of(device)
    return Stream._existing(where, 0 if where.type == "cpu" else _C._current_stream(where))


def set_stream(stream: Stream) -> None:
    """Set the stream on which this thread queues work for the device of the stream."""
    if stream.device.type != "cpu":
        _C._set_stream(stream.device, stream.stream_id)
