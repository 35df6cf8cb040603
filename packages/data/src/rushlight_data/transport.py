"""How the loader starts workers and moves batches: the transports that need no other package, and the choice
of one.

The contract is `rushlight_core.seams.transport.Transport`.
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
    """The transport a loader asks for: an object is taken as it is, a name is looked up, None takes shared
    memory where a package offers it and standard pickling otherwise. Raises ValueError for an unknown
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
        f"DataLoader(transport): {choice!r} is not installed; there are {', '.join(map(repr, known))}\n"
        "'shared_memory' comes with the package rushlight-multiprocessing."
    )


@functools.cache
def _default() -> Transport:
    for point in _entry_points():
        return point.load()()
    return PicklingTransport()


@functools.cache
def _entry_points() -> tuple[Any, ...]:
    from importlib.metadata import entry_points  # 10 ms, only where workers are used

    return tuple(entry_points(group=GROUP))


class PicklingTransport:
    """Worker processes of the standard module; tensors are pickled and copied through a pipe."""

    name = "pickling"
    isolated = True

    def pipe(self) -> tuple[Any, Any]:
        """Two ends of a standard pipe."""
        import multiprocessing  # 10 ms, only where workers are used

        ours, theirs = multiprocessing.Pipe()
        return ours, _Posting(theirs)

    def worker(
        self, target: Callable[..., object], args: tuple[Any, ...], *, name: str, context: Any = None
    ) -> Any:
        """A daemon process of `context`: a start method's name, a context, or None for the one that is
        set."""
        if context is None or isinstance(context, str):
            import multiprocessing

            context = multiprocessing.get_context(context)
        return context.Process(target=target, args=args, name=name, daemon=True)

    def empty(self, size: Sequence[int], dtype: core.dtype) -> core.Tensor | None:
        """None: whatever memory a batch is in, it is copied."""
        return None


class _Posting:
    """A worker's end of a pipe that is sent to by a thread: a worker goes on while its batches wait to be
    read."""

    def __init__(self, conn: Any) -> None:
        self._conn = conn
        self._outgoing: queue.SimpleQueue[bytes] | None = None

    def send(self, obj: Any) -> None:
        if self._outgoing is None:
            self._outgoing = queue.SimpleQueue()
            threading.Thread(
                target=self._post, args=(self._outgoing,), name="DataLoaderPost", daemon=True
            ).start()
        self._outgoing.put(pickle.dumps(obj, pickle.HIGHEST_PROTOCOL))

    def _post(self, outgoing: queue.SimpleQueue[bytes]) -> None:
        while True:
            try:
                self._conn.send_bytes(outgoing.get())
            except OSError:  # the loader is gone
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
        return _Posting, (self._conn,)


class ThreadTransport:
    """Workers that are threads of this process: nothing is pickled or copied. For datasets that wait (disk,
    network) or compute without the GIL. Threads share the global random streams, so augmentation that draws
    from those is not reproducible; a thread cannot be killed."""

    name = "threads"
    isolated = False

    def pipe(self) -> tuple[Any, Any]:
        """Two ends in this process."""
        there, back = _Lane(), _Lane()
        return _ThreadConnection(back, there), _ThreadConnection(there, back)

    def worker(
        self, target: Callable[..., object], args: tuple[Any, ...], *, name: str, context: Any = None
    ) -> Any:
        """A daemon thread; `context` must be None, for there is no start method to choose."""
        if context is not None:
            raise ValueError("DataLoader(multiprocessing_context): transport 'threads' starts no processes")
        return _ThreadWorker(target, args, name)

    def empty(self, size: Sequence[int], dtype: core.dtype) -> core.Tensor | None:
        """None: the worker's memory is the loader's."""
        return None


class _Lane:
    """One direction of a pipe between threads. The descriptor counts what can be read; the end counts as one
    object that is never taken."""

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
    def __init__(self, incoming: _Lane, outgoing: _Lane) -> None:
        self._incoming, self._outgoing = incoming, outgoing

    def send(self, obj: Any) -> None:
        if self._outgoing.ended or self._incoming.ended:
            raise BrokenPipeError("the other side is closed")
        self._outgoing.objects.append(obj)
        os.eventfd_write(self._outgoing.fd, 1)

    def recv(self) -> Any:
        os.eventfd_read(self._incoming.fd)
        try:
            return self._incoming.objects.popleft()
        except IndexError:
            os.eventfd_write(self._incoming.fd, 1)  # the end stays readable
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
    """A thread behind the interface of a process."""

    pid = None

    def __init__(self, target: Callable[..., object], args: tuple[Any, ...], name: str) -> None:
        self.exitcode: int | None = None
        self._ended = _Lane()
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
