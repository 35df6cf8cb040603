"""Queues for tensors, with the interface of the standard queues.

An object is pickled by the thread that calls `put`. `put` therefore raises errors of pickling, and changes of the object
after `put` are not sent.

A queue stays usable when one of its processes is killed at any time: each message is sent and received as a whole, without
locks (see Note [Messages are whole] in `pipes.py`), and the unsent objects of a process are counted only while the process
runs (see `ledger.py`). Objects that the killed process had received, or had not yet sent, are lost.
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

from .ledger import Ledger
from .pipes import LARGE_BYTES, Connection, Pipe
from .reductions import IncomingBlocks, OutgoingBlocks, dumps

__all__ = ["JoinableQueue", "Queue", "SimpleQueue"]

# A process that waits for another one looks again after this many seconds, since the other may have been killed
# before it announced a change.
_LOOK_AGAIN = 0.1


class SimpleQueue:
    """A queue that stores objects in a pipe: `put` waits while the pipe is full.

    Example:
        >>> import rushlight.multiprocessing as mp
        >>> isinstance(mp.SimpleQueue(), SimpleQueue)
        True
    """

    def __init__(self, *, ctx: Any) -> None:
        self._reader, self._writer = Pipe(duplex=False)
        self._start_here()

    def close(self) -> None:
        """Close both ends in this process."""
        self._reader.close()
        self._writer.close()

    def empty(self) -> bool:
        """Return whether the queue is empty."""
        return not self._reader.poll()

    def get(self) -> Any:
        """Wait for the next object and return it. Raises EOFError if all writers have closed the queue."""
        return self._reader.recv()

    def put(self, obj: object) -> None:
        """Put a picklable object."""
        self._writer.send(obj)

    def __getstate__(self) -> Any:
        context.assert_spawning(self)
        return self._reader, self._writer

    def __setstate__(self, state: Any) -> None:
        self._reader, self._writer = state
        self._start_here()

    def _start_here(self) -> None:
        # The standard module's pool, if it is made with a context of this package, locks the queue to empty it.
        self._rlock = threading.Lock()

    __class_getitem__: Any = classmethod(types.GenericAlias)


class Queue:
    """A queue whose `put` blocks only while the queue contains `maxsize` objects.

    `put` writes a small object to the pipe if the pipe has room and no earlier object is still waiting to be written.
    In all other cases, a separate thread writes the object, which takes longer because of the switch between threads.

    Raises Full and Empty like the queues of the standard module, and ValueError after `close`.

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
        self._reader, self._writer = Pipe(duplex=False, counted=True)
        self._ledger = Ledger()
        self._room = ctx.Semaphore(0)  # wakes a process that waits for room, which then counts the room
        self._start_here()
        util.register_after_fork(self, type(self)._start_here)

    def put(self, obj: object, block: bool = True, timeout: float | None = None) -> None:
        """Put a picklable object. Raises queue.Full if there is no room (within `timeout` seconds)."""
        self._check_open()
        packed = dumps(obj)
        self._writer.check_arenas(packed[1])  # the feeder thread could not raise the error in the caller
        deadline: float | None = None
        while not self._put_packed(*packed):
            deadline = _deadline(block, timeout) if deadline is None else deadline
            left = deadline - time.monotonic()
            if left <= 0:
                raise Full
            self._room.acquire(True, min(left, _LOOK_AGAIN))

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        """Remove and return the next object. Raises queue.Empty if there is none (within `timeout` seconds)."""
        self._check_open()
        packed = self._receive(block, timeout)
        if self._maxsize != SEM_VALUE_MAX:
            self._announce(self._room)
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
        self._close_reader()
        with self._changed:
            if self._backlog is None:
                self._writer.close()
            else:
                self._backlog.append(None)
                self._changed.notify()

    def join_thread(self) -> None:
        """Wait until all objects have been sent. Raises ValueError unless `close` was called before."""
        if not self._closed:
            raise ValueError(f"{self!r} is open: call close() before join_thread()")
        if self._join is not None:
            self._join()

    def cancel_join_thread(self) -> None:
        """Let this process exit without waiting until all objects have been sent.

        Objects that have not been sent when the process exits are lost."""
        if self._join is not None:
            self._join.cancel()

    def __getstate__(self) -> Any:
        context.assert_spawning(self)
        return self._maxsize, self._reader, self._writer, self._ledger, self._room

    def __setstate__(self, state: Any) -> None:
        self._maxsize, self._reader, self._writer, self._ledger, self._room = state
        self._start_here()
        util.register_after_fork(self, type(self)._start_here)

    def _close_reader(self) -> None:
        self._reader.close()

    def _count(self) -> int:
        with self._ledger:
            self._ledger.forget_dead()
            return self._ledger.unsent() + self._in_pipe()

    def _in_pipe(self) -> int:
        # A process that has closed its reading end cannot count the messages in the pipe.
        return 0 if self._reader.closed else self._reader.waiting()

    def _count_room(self) -> int:
        """Return how many more objects fit into the queue. The caller must have locked `self._ledger`.

        The result is negative if the queue contains more than `maxsize` objects."""
        room = self._maxsize - self._ledger.unsent() - self._in_pipe()
        if room < 0:
            self._ledger.forget_dead()
            room = self._maxsize - self._ledger.unsent() - self._in_pipe()
        return room

    @staticmethod
    def _announce(change: Any) -> None:
        """Wake one of the processes that wait on the semaphore `change`.

        The woken process may wake a further process. Processes that are not woken look again after `_LOOK_AGAIN` seconds."""
        if change._semlock._is_zero():
            change.release()

    def _check_open(self) -> None:
        if self._closed:
            raise ValueError(f"{self!r} is closed")

    def _put_packed(self, payload: Any, outgoing: OutgoingBlocks) -> bool:
        """If the queue has room, send an object or pass it to the feeder thread. Return whether there was room."""
        with self._changed:
            at_once = not self._backlog and len(payload) <= LARGE_BYTES
            if self._maxsize == SEM_VALUE_MAX:
                if at_once and self._try_send(payload, outgoing):
                    return True
                if not self._ledger.has_slot:
                    with self._ledger:
                        self._ledger.claim_slot()
                self._ledger.add_unsent(1)
            else:
                if at_once and self._ledger.has_slot and self._send_to_room(payload, outgoing):
                    return True
                self._spare = 0
                with self._ledger:
                    waits = False
                    self._ledger.add_unsent(1)
                    try:
                        room = self._count_room()
                        sent = room >= 0 and at_once and self._try_send(payload, outgoing)
                        waits = room >= 0 and not sent
                    finally:
                        if not waits:
                            self._ledger.add_unsent(-1)
                if room < 0:
                    return False
                if room > 0:  # for another process that waits
                    self._announce(self._room)
                if sent:
                    return True
            if self._backlog is None:
                self._backlog = self._start_feeder()
            self._backlog.append((payload, outgoing))
            self._changed.notify()
            return True

    def _send_to_room(self, payload: Any, outgoing: OutgoingBlocks) -> bool:
        """Send an object if there is room, without locking the ledger; see Note [Room without a lock] in `ledger.py`."""
        self._ledger.set_first_unsent()
        try:
            if self._spare <= 0 or not self._ledger.is_alone():
                self._spare = self._maxsize + 1 - self._ledger.unsent() - self._in_pipe()
            self._spare -= 1
            sent = self._spare >= 0 and self._try_send(payload, outgoing)
        finally:
            self._ledger.remove_unsent()
        if sent and self._spare > 0:
            self._announce(self._room)
        return sent

    def _try_send(self, payload: Any, outgoing: OutgoingBlocks) -> bool:
        try:
            return self._writer.try_send_packed(payload, outgoing)
        except ConnectionError:  # all readers have closed the pipe
            return True

    def _receive(self, block: bool, timeout: float | None) -> tuple[Any, IncomingBlocks | None]:
        if block and timeout is None:
            return self._reader.recv_packed()
        deadline = _deadline(block, timeout)
        while (packed := self._reader.try_recv_packed()) is None:
            left = deadline - time.monotonic()
            if left <= 0 or not self._reader.poll(left):
                raise Empty
        return packed

    def _start_here(self) -> None:
        """Initialize the attributes that are not shared with other processes."""
        self._changed = threading.Condition(threading.Lock())
        self._backlog = None
        self._spare = 0  # a lower bound of the room that is left
        self._join: Any = None
        self._closed = False

    def _start_feeder(self) -> deque[tuple[Any, OutgoingBlocks] | None]:
        backlog: deque[tuple[Any, OutgoingBlocks] | None] = deque()
        feeder = threading.Thread(
            target=_feed, args=(backlog, self._changed, self._writer, self._ledger, self._room),
            name="QueueFeeder", daemon=True,
        )  # fmt: skip
        feeder.start()
        # Send everything before the process exits, as the standard queue does: close, then join the feeder.
        self._join = util.Finalize(feeder, _join, [feeder, os.getpid()], exitpriority=-5)
        self._end = util.Finalize(self, _end, [backlog, self._changed], exitpriority=10)
        return backlog


class JoinableQueue(Queue):
    """A queue that counts the objects that were put but not yet reported as done by `task_done`.

    Raises ValueError if `task_done` is called more often than `put`, and RuntimeError from `join` if all unfinished tasks
    were taken by processes that were killed.

    Example:
        >>> import rushlight.multiprocessing as mp
        >>> isinstance(mp.JoinableQueue(), JoinableQueue)
        True
    """

    _leave: Any

    def __init__(self, maxsize: int = 0, *, ctx: Any) -> None:
        super().__init__(maxsize, ctx=ctx)
        self._done = ctx.Semaphore(0)  # wakes a process that waits in `join`

    def task_done(self) -> None:
        """Report one object as done. Raises ValueError if called more often than `put`."""
        with self._ledger:
            if not self._ledger.finish_one():
                if self._unfinished() <= 0:
                    raise ValueError("task_done() called more often than put()")
                self._ledger.add_taken(-1)  # the object may not have been taken yet
            finished = self._unfinished() <= 0
        if finished:
            self._announce(self._done)

    def join(self) -> None:
        """Wait until all objects that were put have been reported as done.

        Raises RuntimeError if all unfinished tasks were taken by processes that were killed."""
        while True:
            with self._ledger:
                self._ledger.forget_dead()
                unfinished, lost = self._unfinished(), self._ledger.lost()
            if unfinished <= 0:
                self._announce(self._done)  # for another process that waits
                if lost:
                    raise RuntimeError(
                        f"join(): {lost} tasks were taken by processes that were killed before task_done()"
                    )
                return
            self._done.acquire(True, _LOOK_AGAIN)

    def _close_reader(self) -> None:
        pass  # `join`, which is called after `close`, counts the messages in the pipe

    def _unfinished(self) -> int:
        return self._ledger.unsent() + self._in_pipe() + self._ledger.taken()

    def _receive(self, block: bool, timeout: float | None) -> tuple[Any, IncomingBlocks | None]:
        deadline = _deadline(block, timeout)
        if self._leave is None:
            self._leave = util.Finalize(self, _leave, [self._ledger, os.getpid()], exitpriority=-10)
        while True:
            # A task is counted at any time, either as a task in the pipe or as a taken task.
            with self._ledger:
                self._ledger.add_taken(1)
                packed = None
                try:
                    packed = self._reader.try_recv_packed()
                finally:
                    if packed is None:
                        self._ledger.add_taken(-1)
            if packed is not None:
                return packed
            left = deadline - time.monotonic()
            if left <= 0 or not self._reader.poll(None if left == float("inf") else left):
                raise Empty

    def __getstate__(self) -> Any:
        return super().__getstate__(), self._done

    def __setstate__(self, state: Any) -> None:
        inner, self._done = state
        super().__setstate__(inner)

    def _start_here(self) -> None:
        super()._start_here()
        self._leave = None


def _deadline(block: bool, timeout: float | None) -> float:
    """Return the time, as measured by `time.monotonic`, at which a call must end."""
    if not block:
        return 0.0
    return float("inf") if timeout is None else time.monotonic() + timeout


def _feed(
    backlog: deque[tuple[Any, OutgoingBlocks] | None],
    changed: threading.Condition,
    writer: Connection,
    ledger: Ledger,
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
            _send_unsent(*packed, writer, ledger)
        except Exception as error:
            with ledger:
                ledger.add_unsent(-1)
            Queue._announce(room)
            if not isinstance(error, ConnectionError):  # unless all readers have closed the pipe
                if util.is_exiting():
                    return
                text = "rushlight_multiprocessing: an object could not be sent through a queue"
                print(text, file=sys.stderr)
                traceback.print_exc()
        del packed
        backlog.popleft()  # only now, so that `put` does not send a later object before this one


def _send_unsent(payload: Any, outgoing: OutgoingBlocks, writer: Connection, ledger: Ledger) -> None:
    """Send an object. At any time, it is counted once: among the unsent objects, or among the objects in the pipe."""
    payload = writer.move_large_payload(payload, outgoing)
    while True:
        with ledger:
            if writer.try_send_packed(payload, outgoing):
                ledger.add_unsent(-1)
                return
        writer.wait_for_room()
        if outgoing.arenas:
            time.sleep(0.001)  # the kernel may have room for the message but not for its descriptors


def _leave(ledger: Ledger, pid: int) -> None:
    if pid == os.getpid():
        with ledger:
            ledger.leave()


def _end(backlog: deque[Any], changed: threading.Condition) -> None:
    with changed:
        backlog.append(None)
        changed.notify()


def _join(feeder: threading.Thread, pid: int) -> None:
    # A forked child inherits the finalizer but not the thread.
    if pid == os.getpid():
        with contextlib.suppress(RuntimeError):
            feeder.join()
