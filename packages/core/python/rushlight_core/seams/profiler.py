"""The interfaces of the profiler: named spans that any package may open, and sinks that write recorded profiles.

`span("DataLoader.next")` marks a part of the program for the running profiler; it does nothing if no profiler runs. A sink
writes a recorded profile. A program passes a sink as an argument, or by its name in the entry point group
`rushlight.profiler`. rushlight-profiler provides three sinks: a Chrome trace, JSON lines and an HTML page.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

GROUP = "rushlight.profiler"

# --- spans --------------------------------------------------------------------------------------------------

DATA_WAIT = "DataLoader.next"
"""Name of the span in which a loop waits for its next batch. A profiler that gives advice searches for this name."""

_NO_SPAN: AbstractContextManager[object] = nullcontext()
_open_span: Callable[[str], AbstractContextManager[object]] | None = None


def span(name: str) -> AbstractContextManager[object]:
    """Return a context manager that records the time of its block if a profiler is recording.

    Args:
        name: the name of the span.

    Example:
        >>> with span("load the batch"):
        ...     batch = torch.ones(2)
    """
    return _NO_SPAN if _open_span is None else _open_span(name)


def set_span(function: Callable[[str], AbstractContextManager[object]] | None) -> None:
    """Set the function that `span` calls. With None, `span` calls no function.

    A profiler calls `set_span` when a recording begins, and calls `set_span(None)` when the recording ends.
    """
    global _open_span
    _open_span = function


# --- recorded profiles --------------------------------------------------------------------------------------


class Argument(NamedTuple):
    """A description of a tensor that was passed to an operator."""

    dtype: str
    shape: tuple[int, ...]


class Event(NamedTuple):
    """An event on one thread: a span of time, or memory that is allocated or freed at one moment.

    The spans of one thread nest: two of them are disjoint, or one is inside the other.

    Example::

        class Counter:  # a sink
            def begin(self, header):
                self.time = 0

            def event(self, event):
                if event.kind == "operator" and event.name == "mm":
                    self.time += event.end - event.begin

            def end(self):
                print(self.time / 1e6, "ms in mm")
    """

    kind: Literal["operator", "node", "annotation", "memory"]
    """A call of an operator, a backward node, a named part of the program, or a change of memory."""
    name: str
    """The name of the operator without its overload, of the node or of the annotation; for memory the device."""
    overload: str
    """The overload of an operator ("out", "dim"); empty for other events."""
    thread: int
    """The system's number of the thread: a key of `Header.threads`."""
    begin: int
    """The beginning, in nanoseconds since the profile began."""
    end: int
    """The end, in nanoseconds since the profile began; for memory the same as `begin`."""
    id: int
    """A number that is unique in the profile; 0 for memory."""
    parent: int
    """The `id` of the innermost span that contains this event on its thread; 0 if there is none."""
    sequence: int
    """The number of the graph node that the operator recorded, or of the node itself; 0 if there is none."""
    nbytes: int
    """The size of an operator's first result in bytes. For memory: the allocated size, negative for freed memory."""
    address: int
    """The address of the memory; 0 for other events."""
    arguments: tuple[Argument | tuple[Argument, ...] | str | None, ...] | None
    """The arguments of an operator in order: tensors, tuples of tensors, and None for other arguments; or the text of an
    annotation. None if they were not recorded."""
    stack: tuple[str, ...] | None
    """The calls in Python, the innermost first, as "file(line): function"; None if they were not recorded."""


class Header(NamedTuple):
    """Properties that apply to the whole profile."""

    process: int
    start_time: int
    """The time at which the profile began, in nanoseconds since 1970."""
    duration: int
    """The duration of the profile in nanoseconds."""
    threads: dict[int, str]
    """A dict from numbers of threads to their names; the main thread is the first."""
    dropped: int
    """The number of events that were not recorded, because the buffer of their thread was full."""
    allocated: int
    """The bytes that were in use on the host when the profile began; memory events are relative to this number."""
    metadata: dict[str, Any]
    """The user's metadata and the settings, as values that JSON supports."""


@runtime_checkable
class Sink(Protocol):
    """An object that receives one profile: first `begin`, then `event` for each event (sorted by start), then `end`."""

    def begin(self, header: Header) -> None:
        """Receive the header of the profile."""

    def event(self, event: Event) -> None:
        """Receive the next event."""

    def end(self) -> None:
        """End the profile. This method is not called if `begin` or `event` has raised an exception."""


SinkFactory = Callable[[str], Sink]
"""A function that takes a path and returns a sink that writes to it. Entry points of `rushlight.profiler` refer to it."""
