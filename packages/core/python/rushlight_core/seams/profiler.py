"""The interfaces of the profiler: named spans that any package may open, and sinks that write recordings.

`span("DataLoader.next")` marks a part of the program for the running profiler; it does nothing if no profiler runs. A sink
writes a recorded profile somewhere. It is given as an argument or found by name in the entry point group
`rushlight.profiler`; rushlight-profiler provides two, a Chrome trace and JSON lines.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

GROUP = "rushlight.profiler"

# --- spans --------------------------------------------------------------------------------------------------

DATA_WAIT = "DataLoader.next"
"""Name of the span in which a loop waits for its next batch; a profiler that gives advice looks for it."""

_NO_SPAN: AbstractContextManager[object] = nullcontext()
_open_span: Callable[[str], AbstractContextManager[object]] | None = None


def span(name: str) -> AbstractContextManager[object]:
    """Return a context manager that records the time of its block, while a profiler records.

    Args:
        name: the name of the span.

    Example:
        >>> with span("load the batch"):
        ...     batch = torch.ones(2)
    """
    return _NO_SPAN if _open_span is None else _open_span(name)


def set_span(function: Callable[[str], AbstractContextManager[object]] | None) -> None:
    """Set the function that `span` calls from now on, for a profiler that records; None removes it."""
    global _open_span
    _open_span = function


# --- what was recorded --------------------------------------------------------------------------------------


class Argument(NamedTuple):
    """A tensor that was given to an operator."""

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
    """A call of an operator; a backward node; a part of the program with a name; memory."""
    name: str
    """Of the operator without its overload, of the node, of the annotation; for memory the device."""
    overload: str
    """The rest of an operator's name ("out", "dim"); empty for all else."""
    thread: int
    """The system's number of the thread: a key of `Header.threads`."""
    begin: int
    """Nanoseconds since the profile began."""
    end: int
    """For memory the same as `begin`."""
    id: int
    """Unique in its profile; 0 for memory."""
    parent: int
    """`id` of the innermost span around it on its thread; 0 where there is none."""
    sequence: int
    """Number of the graph node that the operator recorded, or of the node itself; 0 where there is none."""
    nbytes: int
    """Size of an operator's first result. For memory: the size taken, negative where it was given back."""
    address: int
    """For memory: where; else 0."""
    arguments: tuple[Argument | tuple[Argument, ...] | str | None, ...] | None
    """An operator's arguments in order: a tensor, a list of tensors, or None for any other. An annotation's
    text. None: not recorded."""
    stack: tuple[str, ...] | None
    """Python's calls, the innermost first, as "file(line): function"; None: not recorded."""


class Header(NamedTuple):
    """The properties of a profile as a whole."""

    process: int
    start_time: int
    """When it began, in nanoseconds since 1970."""
    duration: int
    """Nanoseconds."""
    threads: dict[int, str]
    """Number to name; the main thread is the first."""
    dropped: int
    """How many events found their thread's buffer full and are missing: the last ones of the thread."""
    allocated: int
    """Bytes that were in use on the host when it began; what memory events add to and take from."""
    metadata: dict[str, Any]
    """The user's, and the settings; fit for JSON."""


@runtime_checkable
class Sink(Protocol):
    """An object that receives one profile: `begin`, then `event` for each event in order of `begin`, then `end`."""

    def begin(self, header: Header) -> None:
        """Receive the header of the profile."""

    def event(self, event: Event) -> None:
        """Receive the next event."""

    def end(self) -> None:
        """End the profile. Not called if `begin` or `event` raised."""


SinkFactory = Callable[[str], Sink]
"""What an entry point of the group holds: makes a sink that writes to a path."""
