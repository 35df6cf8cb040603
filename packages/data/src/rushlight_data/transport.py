"""Built-in transports, which start workers and move batches, and the function that selects a transport.

The interface is `rushlight_core.seams.transport.Transport`.
"""

from __future__ import annotations

import functools
import os
import pickle
import queue
import select
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import rushlight_core as core

if TYPE_CHECKING:
    from rushlight_core.seams.transport import Transport

GROUP = "rushlight.transport"


def find_transport(choice: str | Transport | None) -> Transport:
    """Return the transport for the `transport` argument of a loader.

    A transport object is returned unchanged, and a name selects a transport. If `choice` is None, batches are sent in shared
    memory if a package with such a transport is installed; otherwise batches are pickled. Raises ValueError for an unknown
    name."""
    if choice is None:
        return _default()
    if not isinstance(choice, str):
        return choice
    if choice in _BUILT_IN:
        return _BUILT_IN[choice]()
    for point in _entry_points():
        if point.name == choice:
            return point.load()()
    known = [*_BUILT_IN, *(point.name for point in _entry_points())]
    raise ValueError(
        f"DataLoader(transport): {choice!r} is not installed; available: {', '.join(map(repr, known))}\n"
        "The package rushlight-multiprocessing provides 'shared_memory'."
    )


@functools.cache
def _default() -> Transport:
    for point in _entry_points():
        return point.load()()
    return PicklingTransport()


@functools.cache
def _entry_points() -> tuple[Any, ...]:
    from importlib.metadata import entry_points  # takes 10 ms, and only workers need it

    return tuple(entry_points(group=GROUP))


class PicklingTransport:
    """Start processes of the standard `multiprocessing` module and send pickled batches through pipes."""

    name = "pickling"
    isolated = True

    def pipe(self) -> tuple[Any, Any]:
        """Return the two ends of a standard pipe: the loader's and the worker's."""
        import multiprocessing  # takes 10 ms, and only workers need it

        ours, theirs = multiprocessing.Pipe()
        return ours, _SenderConnection(theirs)

    def worker(
        self, target: Callable[..., object], args: tuple[Any, ...], *, name: str, context: Any = None
    ) -> Any:
        """Return a daemon process that has not been started yet.

        `context` is a multiprocessing context, the name of a start method, or None for the default start
        method."""
        if context is None or isinstance(context, str):
            import multiprocessing

            context = multiprocessing.get_context(context)
        return context.Process(target=target, args=args, name=name, daemon=True)

    def empty(self, size: Sequence[int], dtype: core.dtype) -> core.Tensor | None:
        """Return None: pickling copies every tensor, so tensors need no special memory."""
        return None


class _SenderConnection:
    """The worker's end of a pipe. A thread sends the messages while the worker prepares the next batch."""

    def __init__(self, conn: Any) -> None:
        self._conn = conn
        self._outgoing: queue.SimpleQueue[bytes] | None = None

    def send(self, obj: Any) -> None:
        if self._outgoing is None:
            self._outgoing = queue.SimpleQueue()
            threading.Thread(
                target=self._send_all, args=(self._outgoing,), name="DataLoaderSender", daemon=True
            ).start()
        self._outgoing.put(pickle.dumps(obj, pickle.HIGHEST_PROTOCOL))

    def _send_all(self, outgoing: queue.SimpleQueue[bytes]) -> None:
        while True:
            try:
                self._conn.send_bytes(outgoing.get())
            except OSError:  # the loader has ended
                return

    def recv(self) -> Any:
        return self._conn.recv()

    def poll(self, timeout: float | None = 0.0) -> bool:
        return bool(self._conn.poll(timeout))

    def fileno(self) -> int:
        return int(self._conn.fileno())

    def close(self) -> None:
        self._conn.close()

    def __reduce__(self) -> Any:
        return _SenderConnection, (self._conn,)


class ThreadTransport:
    """Run workers as threads of the calling process, without pickling or copying batches.

    Threads suit datasets that wait for a disk or a network, or that compute without the GIL. Threads share
    the global random streams, so augmentation that draws from these streams is not reproducible. A thread cannot be
    killed."""

    name = "threads"
    isolated = False

    def pipe(self) -> tuple[Any, Any]:
        """Return two connected ends for use within this process."""
        there, back = _ThreadPipe(), _ThreadPipe()
        return _ThreadConnection(back, there), _ThreadConnection(there, back)

    def worker(
        self, target: Callable[..., object], args: tuple[Any, ...], *, name: str, context: Any = None
    ) -> Any:
        """Return a daemon thread that has not been started yet. `context` must be None, since no process is started."""
        if context is not None:
            raise ValueError(
                f"DataLoader(multiprocessing_context): must be None for transport 'threads', got {context!r}"
            )
        return _ThreadWorker(target, args, name)

    def empty(self, size: Sequence[int], dtype: core.dtype) -> core.Tensor | None:
        """Return None: threads pass tensors without a copy, so tensors need no special memory."""
        return None


class _ThreadPipe:
    """One direction of a pipe between threads.

    The counter of the eventfd `fd` is the number of objects that can be read. The end of the stream counts as
    one more object, which is never removed."""

    def __init__(self) -> None:
        self.fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_SEMAPHORE)
        self.objects: deque[Any] = deque()
        self.ended = False

    def __del__(self) -> None:
        os.close(self.fd)

    def end(self) -> None:
        if not self.ended:
            self.ended = True
            os.eventfd_write(self.fd, 1)


class _ThreadConnection:
    def __init__(self, incoming: _ThreadPipe, outgoing: _ThreadPipe) -> None:
        self._incoming, self._outgoing = incoming, outgoing

    def send(self, obj: Any) -> None:
        if self._outgoing.ended or self._incoming.ended:
            raise BrokenPipeError("the other end of the connection is closed")
        self._outgoing.objects.append(obj)
        os.eventfd_write(self._outgoing.fd, 1)

    def recv(self) -> Any:
        os.eventfd_read(self._incoming.fd)
        try:
            return self._incoming.objects.popleft()
        except IndexError:
            os.eventfd_write(self._incoming.fd, 1)  # the end of the stream stays readable
            raise EOFError from None

    def poll(self, timeout: float | None = 0.0) -> bool:
        poller = select.poll()
        poller.register(self._incoming.fd, select.POLLIN)
        return bool(poller.poll(None if timeout is None else timeout * 1000))

    def fileno(self) -> int:
        return self._incoming.fd

    def close(self) -> None:
        self._outgoing.end()
        self._incoming.end()


class _ThreadWorker:
    """A thread with the interface of `multiprocessing.Process`."""

    pid = None

    def __init__(self, target: Callable[..., object], args: tuple[Any, ...], name: str) -> None:
        self.exitcode: int | None = None
        self._ended = _ThreadPipe()
        self._thread = threading.Thread(target=self._run, args=(target, args), name=name, daemon=True)

    @property
    def sentinel(self) -> int:
        return self._ended.fd

    def _run(self, target: Callable[..., object], args: tuple[Any, ...]) -> None:
        try:
            target(*args)
            self.exitcode = 0
        except SystemExit as exit:
            self.exitcode = exit.code if isinstance(exit.code, int) else int(exit.code is not None)
        except BaseException:
            self.exitcode = 1
            raise
        finally:
            self._ended.end()

    def start(self) -> None:
        self._thread.start()

    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def join(self, timeout: float | None = None) -> None:
        self._thread.join(timeout)

    def kill(self) -> None:
        pass


_BUILT_IN: dict[str, Callable[[], Any]] = {"pickling": PicklingTransport, "threads": ThreadTransport}
