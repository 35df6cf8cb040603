"""The interface between code that starts workers (the DataLoader) and packages that transfer tensors to and from them.

A transport is found in the entry point group `rushlight.transport`, or given as an argument. Its methods resemble the part
of the standard `multiprocessing` module that a loader needs. There are three transports: shared memory
(`rushlight_multiprocessing`), standard pickling, and threads (both in `rushlight_data`).

A transport may also have two optional methods:

* `memory_left() -> int | None` returns the number of bytes of memory that the loader's process may still use, or None if
  there is no limit. If the next batch does not fit, the loader reads fewer batches ahead.
* `reuse_memory(reuse: bool) -> None` is called by a worker before it reads a batch. If `reuse` is true, the
  memory that `empty` allocated for a batch is reused for a later batch once the loader has released it. If
  `reuse` is false, because the worker had to wait for the loader, the memory is returned to the system.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from rushlight_core import Tensor, dtype

GROUP = "rushlight.transport"


@runtime_checkable
class Connection(Protocol):
    """One end of a pipe between the loader and a worker, such as a `multiprocessing.connection.Connection`."""

    def send(self, obj: Any, /) -> None:
        """Send an object.

        The sender must not change an object after sending it. Raises OSError (BrokenPipeError) when the other side is
        closed.
        """

    def recv(self) -> Any:
        """Wait for the next object and return it.

        Raises EOFError when the other side is closed and all objects have been received.
        """

    def poll(self, timeout: float | None = 0.0, /) -> bool:
        """Wait at most `timeout` seconds for an object, and return whether one can be received without waiting."""

    def fileno(self) -> int:
        """Return a file descriptor that is readable when `recv` can return without waiting."""

    def close(self) -> None:
        """Close this end. May be called twice."""


@runtime_checkable
class Worker(Protocol):
    """A process, such as `multiprocessing.Process`, or an object that behaves like a process."""

    @property
    def pid(self) -> int | None:
        """The process ID."""

    @property
    def exitcode(self) -> int | None:
        """The exit code: None while the worker runs, 0 if it ended without an error, -N if signal N ended it."""

    @property
    def sentinel(self) -> int:
        """A file descriptor that is readable once the worker has ended."""

    def start(self) -> None:
        """Start the worker."""

    def is_alive(self) -> bool:
        """Return whether the worker is running."""

    def join(self, timeout: float | None = None) -> None:
        """Wait until the worker has ended, but at most `timeout` seconds."""

    def kill(self) -> None:
        """End the worker immediately. Does nothing if the worker is a thread, which cannot be ended."""


@runtime_checkable
class Transport(Protocol):
    """A way to start workers and to move tensors between them and the loader."""

    name: str
    isolated: bool
    """Whether a worker has separate global state (random streams, thread counts, signal handlers)."""

    def pipe(self) -> tuple[Connection, Connection]:
        """Return two connected ends, for the loader and for the worker. Both ends can send and receive."""

    def worker(
        self, target: Callable[..., object], args: tuple[Any, ...], *, name: str, context: Any = None
    ) -> Worker:
        """Return a worker, not yet started, that runs `target(*args)`.

        One of `args` is the worker's end of a pipe. `context` determines how the worker is started: it is the name of a
        start method, or a multiprocessing context.
        """

    def empty(self, size: Sequence[int], dtype: dtype) -> Tensor | None:
        """Return an uninitialised tensor that `Connection.send` can send without copying it. Workers call this method.

        Return None if the transport does not provide such tensors.
        """
