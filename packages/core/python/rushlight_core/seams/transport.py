"""The seam between whoever starts workers (the DataLoader) and whatever carries tensors to and from them.

A transport is found by the entry point group `rushlight.transport`, or given as an argument. What it must
offer is the part of the standard `multiprocessing` module that a loader needs, so that the standard module
itself almost is one. There are three: shared memory (`rushlight_multiprocessing`), standard pickling and
threads (both in `rushlight_data`).

A transport may also have a method `memory_left() -> int | None`: how many bytes of memory the loader's process may
still use, None without a limit. The loader then reads fewer batches ahead while there is no room for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from rushlight_core import Tensor, dtype

GROUP = "rushlight.transport"


@runtime_checkable
class Connection(Protocol):
    """One end of a pipe between the loader and a worker; `multiprocessing.connection.Connection` is one."""

    def send(self, obj: Any, /) -> None:
        """Send an object. What is sent is given away: the sender does not change it afterwards. Raises
        OSError (BrokenPipeError) when the other side is closed."""

    def recv(self) -> Any:
        """The next object; waits for it. Raises EOFError when the other side is closed and everything has
        been read."""

    def poll(self, timeout: float | None = 0.0, /) -> bool:
        """Whether `recv` would not wait: an object or the end is there, at the latest after `timeout`
        seconds."""

    def fileno(self) -> int:
        """A descriptor that is readable when `recv` would not wait."""

    def close(self) -> None:
        """Close this end. May be called twice."""


@runtime_checkable
class Worker(Protocol):
    """A process, or what stands for one; `multiprocessing.Process` is one."""

    @property
    def pid(self) -> int | None:
        """Its number in the system."""

    @property
    def exitcode(self) -> int | None:
        """None while it runs; 0 when it ended well; -N when signal N ended it."""

    @property
    def sentinel(self) -> int:
        """A descriptor that is readable once it has ended."""

    def start(self) -> None:
        """Start it."""

    def is_alive(self) -> bool:
        """Whether it runs."""

    def join(self, timeout: float | None = None) -> None:
        """Wait for its end, at most `timeout` seconds."""

    def kill(self) -> None:
        """End it at once. Does nothing where that is impossible (a thread)."""


@runtime_checkable
class Transport(Protocol):
    """A way to start workers and to move tensors between them and the loader."""

    name: str
    isolated: bool
    """Whether a worker has global state of its own (random streams, thread counts, signal handlers)."""

    def pipe(self) -> tuple[Connection, Connection]:
        """Two connected ends that both read and write: the first for the loader, the second for the
        worker."""

    def worker(
        self, target: Callable[..., object], args: tuple[Any, ...], *, name: str, context: Any = None
    ) -> Worker:
        """A worker, not yet started, that runs `target(*args)`; one of `args` is its end of a pipe. `context`
        is the caller's wish for a way to start it: a start method's name, or a multiprocessing context."""

    def empty(self, size: Sequence[int], dtype: dtype) -> Tensor | None:
        """In a worker: an uninitialised tensor that `Connection.send` need not copy, or None if there is no
        use."""
