"""Queues for tensors, with the interface of the standard ones.

An object is pickled by the thread that calls `put`: errors are raised there, and later changes to the object
are not sent.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
import traceback
import types
from collections import deque
from multiprocessing import context, util
from multiprocessing.synchronize import SEM_VALUE_MAX  # type: ignore[attr-defined]
from queue import Empty, Full
from typing import Any

from .pipes import LARGE_BYTES, Connection, Pipe
from .reductions import OutgoingBlocks, dumps

__all__ = ["JoinableQueue", "Queue", "SimpleQueue"]


class SimpleQueue:
    """A pipe with a lock at each end: `put` waits while the pipe is full.

    Example:
        >>> import rushlight.multiprocessing as mp
        >>> isinstance(mp.SimpleQueue(), SimpleQueue)
        True
    """

    def __init__(self, *, ctx: Any) -> None:
        self._reader, self._writer = Pipe(duplex=False)
        self._rlock, self._wlock = ctx.Lock(), ctx.Lock()

    def close(self) -> None:
        """Close both ends in this process."""
        self._reader.close()
        self._writer.close()

    def empty(self) -> bool:
        """Return whether the queue is empty."""
        return not self._reader.poll()

    def get(self) -> Any:
        """Wait for the next object and return it. Raises EOFError if all writers have closed the queue."""
        with self._rlock:
            packed = self._reader.recv_packed()
        return self._reader.unpack(*packed)

    def put(self, obj: object) -> None:
        """Put a picklable object."""
        packed = dumps(obj)
        with self._wlock:
            self._writer.send_packed(*packed)

    def __getstate__(self) -> Any:
        context.assert_spawning(self)
        return self._reader, self._writer, self._rlock, self._wlock

    def __setstate__(self, state: Any) -> None:
        self._reader, self._writer, self._rlock, self._wlock = state

    __class_getitem__: Any = classmethod(types.GenericAlias)


class Queue:
    """A queue whose `put` blocks only when `maxsize` objects are in it.

    `put` writes a plain object to the pipe if the pipe has room and nothing waits before it. Otherwise a thread
    writes to the pipe, which takes longer because two threads take turns.

    Raises the standard module's Full and Empty as its queues do, and ValueError after `close`.

    Example:
        >>> import rushlight.multiprocessing as mp
        >>> queue = mp.Queue(maxsize=1)
        >>> queue.put("object")
        >>> queue.get()
        'object'
    """

    _closed: bool
    _backlog: deque[tuple[Any, OutgoingBlocks] | None] | None

    def __init__(self, maxsize: int = 0, *, ctx: Any) -> None:
        self._maxsize = maxsize if maxsize > 0 else SEM_VALUE_MAX
        self._reader, self._writer = Pipe(duplex=False)
        self._rlock, self._wlock = ctx.Lock(), ctx.Lock()
        self._room = ctx.BoundedSemaphore(self._maxsize)
        self._start_here()
        util.register_after_fork(self, Queue._start_here)

    def put(self, obj: object, block: bool = True, timeout: float | None = None) -> None:
        """Put a picklable object. Raises queue.Full if there is no room (within `timeout` seconds)."""
        self._check_open()
        packed = dumps(obj)
        if not self._room.acquire(block, timeout):
            raise Full
        with self._changed:
            if not self._backlog and self._send_now(*packed):
                return
            if self._backlog is None:
                self._backlog = self._start_feeder()
            self._backlog.append(packed)
            self._changed.notify()

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        """Remove and return the next object. Raises queue.Empty if there is none (within `timeout` seconds)."""
        self._check_open()
        if block and timeout is None:
            with self._rlock:
                packed = self._reader.recv_packed()
        else:
            deadline = time.monotonic() + timeout if timeout is not None and block else None
            if not self._rlock.acquire(block, timeout):
                raise Empty
            try:
                left = 0.0 if deadline is None else max(0.0, deadline - time.monotonic())
                if not self._reader.poll(left):
                    raise Empty
                packed = self._reader.recv_packed()
            finally:
                self._rlock.release()
        self._room.release()
        return self._reader.unpack(*packed)

    def put_nowait(self, obj: object) -> None:
        """Equivalent to `put(obj, False)`."""
        self.put(obj, False)

    def get_nowait(self) -> Any:
        """Equivalent to `get(False)`."""
        return self.get(False)

    def qsize(self) -> int:
        """Return the approximate number of objects in the queue."""
        return self._count()

    def empty(self) -> bool:
        """Return whether the queue is empty."""
        return not self._reader.poll()

    def full(self) -> bool:
        """Return whether `maxsize` objects are in the queue."""
        return self._count() >= self._maxsize

    def close(self) -> None:
        """Close the queue in this process. Objects that were put before are still sent."""
        if self._closed:
            return
        self._closed = True
        self._reader.close()
        with self._changed:
            if self._backlog is None:
                self._writer.close()
            else:
                self._backlog.append(None)
                self._changed.notify()

    def join_thread(self) -> None:
        """Wait until all objects have been sent. Call `close` first; raises ValueError otherwise."""
        if not self._closed:
            raise ValueError(f"{self!r} is open: close() it before join_thread()")
        if self._join is not None:
            self._join()

    def cancel_join_thread(self) -> None:
        """Do not wait at exit until all objects have been sent. Objects that were not sent are lost."""
        if self._join is not None:
            self._join.cancel()

    def __getstate__(self) -> Any:
        context.assert_spawning(self)
        return self._maxsize, self._reader, self._writer, self._rlock, self._wlock, self._room

    def __setstate__(self, state: Any) -> None:
        self._maxsize, self._reader, self._writer, self._rlock, self._wlock, self._room = state
        self._start_here()
        util.register_after_fork(self, Queue._start_here)

    def _count(self) -> int:
        return self._maxsize - self._room._semlock._get_value()

    def _check_open(self) -> None:
        if self._closed:
            raise ValueError(f"{self!r} is closed")

    def _send_now(self, payload: Any, outgoing: OutgoingBlocks) -> bool:
        """Write an object without tensors to the pipe if this does not block, and return whether it was written."""
        if outgoing.arenas or len(payload) > LARGE_BYTES or not self._wlock.acquire(False):
            return False
        try:
            if not self._writer.has_room():
                return False
            self._writer.send_packed(payload, outgoing)
        except BrokenPipeError:  # all readers have closed the pipe
            self._room.release()
        finally:
            self._wlock.release()
        return True

    def _start_here(self) -> None:
        """Initialize the state that is separate in each process."""
        self._changed = threading.Condition(threading.Lock())
        self._backlog = None
        self._join: Any = None
        self._closed = False

    def _start_feeder(self) -> deque[tuple[Any, OutgoingBlocks] | None]:
        backlog: deque[tuple[Any, OutgoingBlocks] | None] = deque()
        feeder = threading.Thread(
            target=_feed, args=(backlog, self._changed, self._writer, self._wlock, self._room),
            name="QueueFeeder", daemon=True,
        )  # fmt: skip
        feeder.start()
        # Send everything before the process exits, as the standard queue does: close, then join the feeder.
        self._join = util.Finalize(feeder, _join, [feeder, os.getpid()], exitpriority=-5)
        self._end = util.Finalize(self, _end, [backlog, self._changed], exitpriority=10)
        return backlog


class JoinableQueue(Queue):
    """A queue that counts the objects that were put and not yet reported as done by `task_done`.

    Raises ValueError if `task_done` is called more often than `put`.

    Example:
        >>> import rushlight.multiprocessing as mp
        >>> isinstance(mp.JoinableQueue(), JoinableQueue)
        True
    """

    def __init__(self, maxsize: int = 0, *, ctx: Any) -> None:
        super().__init__(maxsize, ctx=ctx)
        self._unfinished = ctx.Semaphore(0)
        self._done = ctx.Condition()

    def put(self, obj: object, block: bool = True, timeout: float | None = None) -> None:
        """Put a picklable object and count it as unfinished."""
        with self._done:
            super().put(obj, block, timeout)
            self._unfinished.release()

    def task_done(self) -> None:
        """Report one object as done. Raises ValueError if called more often than `put`."""
        with self._done:
            if not self._unfinished.acquire(False):
                raise ValueError("task_done() called more often than put()")
            if self._unfinished._semlock._is_zero():
                self._done.notify_all()

    def join(self) -> None:
        """Wait until all objects that were put have been reported as done."""
        with self._done:
            if not self._unfinished._semlock._is_zero():
                self._done.wait()

    def __getstate__(self) -> Any:
        return super().__getstate__(), self._unfinished, self._done

    def __setstate__(self, state: Any) -> None:
        inner, self._unfinished, self._done = state
        super().__setstate__(inner)


def _feed(
    backlog: deque[tuple[Any, OutgoingBlocks] | None],
    changed: threading.Condition,
    writer: Connection,
    wlock: Any,
    room: Any,
) -> None:
    while True:
        with changed:
            while not backlog:
                changed.wait()
            packed = backlog[0]
        if packed is None:
            writer.close()
            return
        try:
            with wlock:
                writer.send_packed(*packed)
        except BrokenPipeError:  # all readers have closed the pipe
            room.release()
        except Exception:
            room.release()
            if util.is_exiting():
                return
            print("rushlight_multiprocessing: an object could not be sent through a queue", file=sys.stderr)
            traceback.print_exc()
        del packed
        backlog.popleft()  # only now, so that `put` does not write an object before this one


def _end(backlog: deque[Any], changed: threading.Condition) -> None:
    with changed:
        backlog.append(None)
        changed.notify()


def _join(feeder: threading.Thread, pid: int) -> None:
    # A forked child inherits the finalizer but not the thread.
    if pid == os.getpid():
        with contextlib.suppress(RuntimeError):
            feeder.join()
