"""The pool of workers of a `DataLoader`, which starts workers, exchanges messages with them, and stops them."""

from __future__ import annotations

import contextlib
import copy
import errno
import os
import select
import time
import warnings
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from .collate import default_collate_fn_map
from .early import EarlyBatches
from .errors import exited
from .fetch import Fetcher, IterableFetcher, Streams, Task
from .interrupts import raise_kept_interrupt
from .marks import Marks
from .snapshot import Snapshot
from .streams import Stream
from .unpicklable import explain
from .worker import Setup, run

# When the pool stops, a worker that is still reading a sample is killed after this many seconds. Ctrl-C and
# `break` return after at most one second, unless the machine is overloaded.
STOP_SECONDS = 0.5
# Seconds to wait for the end of a worker that was killed. Only an overloaded machine needs nearly as long.
END_SECONDS = 30.0
# Seconds to wait for the exit code of a worker that has closed its connection.
LOST_SECONDS = 5.0

# The loader's ends of all pipes to processes. They are closed in forked children: a worker detects that the loader has
# ended, or was killed, when the last copy of the other end of its pipe is closed.
_open_ends: weakref.WeakSet[Any] = weakref.WeakSet()


def _close_in_child() -> None:
    for end in list(_open_ends):
        end.close()
    _open_ends.clear()


os.register_at_fork(after_in_child=_close_in_child)


class WorkerHandle:
    """The loader's connection to one worker, and the worker's pending tasks.

    `tasks` maps batch numbers to the tasks to which the worker has not replied yet."""

    waited: float
    worked: float

    def __init__(self, worker_id: int, conn: Any, process: Any) -> None:
        self.id = worker_id
        self.conn = conn
        self.process = process
        self.tasks: dict[int, Task] = {}
        self.waited = self.worked = 0.0
        # A pidfd, because the standard sentinel is a pipe that the worker's own children inherit: it would
        # not become readable while any of them runs.
        self.pidfd: int | None = None
        if process.pid is not None:
            with contextlib.suppress(OSError):
                self.pidfd = os.pidfd_open(process.pid)

    @property
    def sentinel(self) -> int:
        """The file descriptor that becomes readable when the worker ends."""
        return int(self.process.sentinel) if self.pidfd is None else self.pidfd

    def join(self, timeout: float) -> None:
        """Wait at most `timeout` seconds for the worker to end, and collect its exit code."""
        poller = select.poll()
        poller.register(self.sentinel, select.POLLIN)
        if poller.poll(timeout * 1000):
            # A thread signals that it has finished shortly before its frames are released. join() waits for their release.
            self.process.join(timeout)

    def forget(self) -> None:
        """Close the loader's end of the pipe to this worker, and the worker's pidfd."""
        self.conn.close()
        _open_ends.discard(self.conn)
        if self.pidfd is not None:
            os.close(self.pidfd)
            self.pidfd = None


class WorkerPool:
    """The workers of one loader. The constructor starts the workers. `receive` raises `WorkerExited` if a worker exits."""

    def __init__(
        self, num_workers: int, fetcher: Fetcher, seed: int, init_fn: Any, transport: Any, context: Any
    ) -> None:
        self.generation: int = 0
        self.streams: Streams = fetcher.streams
        # The workers copy these objects later. Workers that are threads have no copies.
        self.snapshot: Snapshot | None = (
            Snapshot(fetcher, init_fn, default_collate_fn_map) if transport.isolated else None
        )
        self.early: EarlyBatches | None = None
        # The iterator of the current epoch, while it exists and the epoch has not ended.
        self.iterator: Callable[[], Any] = _none
        self.transport = transport
        self._iterable = isinstance(fetcher, IterableFetcher)
        # Other iterable datasets may store their position in the dataset, so a copy may not begin at the start.
        self._begins_anew = not self._iterable or isinstance(fetcher.dataset, Stream)
        self.workers: list[WorkerHandle] = []
        self._marks = Marks(num_workers)
        self._by_fd: dict[int, WorkerHandle] = {}
        self._poller = select.poll()
        self._pid = os.getpid()
        self._stop = weakref.finalize(self, _stop, self.workers, self._pid)
        try:
            for i in range(num_workers):
                setup = Setup(i, num_workers, seed + i, copy.copy(fetcher), init_fn, transport, self._marks)
                self._start(setup, transport, context)
        except BaseException:
            self.stop()
            raise

    def _start(self, setup: Setup, transport: Any, context: Any) -> None:
        ours, theirs = transport.pipe()
        if transport.isolated:
            # Closing a pipe between threads in a forked child would close it in the parent, too.
            _open_ends.add(ours)
        name = f"DataLoaderWorker-{setup.worker_id}"
        process = transport.worker(run, (theirs, setup), name=name, context=context)
        with warnings.catch_warnings():
            # Python warns about forking a process that has threads. Core's thread pool supports it: a child
            # starts without threads and makes its own.
            warnings.filterwarnings(
                "ignore", message=".*multi-threaded, use of fork.*", category=DeprecationWarning
            )
            try:
                process.start()
            except Exception as error:
                if not isinstance(error, OSError):
                    explain(
                        error,
                        dataset=setup.fetcher.dataset,
                        collate_fn=setup.fetcher.collate_fn,
                        worker_init_fn=setup.init_fn,
                    )
                raise
        if transport.isolated:
            theirs.close()
        worker = WorkerHandle(setup.worker_id, ours, process)
        self.workers.append(worker)
        for fd in (ours.fileno(), worker.sentinel):
            self._by_fd[fd] = worker
            self._poller.register(fd, select.POLLIN)

    @property
    def stopped(self) -> bool:
        return not self._stop.alive

    @property
    def is_own(self) -> bool:
        """Whether this process started the workers. A forked child cannot use the workers of its parent."""
        return self._pid == os.getpid()

    @property
    def is_known(self) -> bool:
        """Whether `is_current` can detect changes to the dataset and the other objects that workers copy."""
        return self.snapshot is not None and self.snapshot.known and self._begins_anew

    def is_current(self) -> bool:
        """Return whether all workers are running, and the objects that they copied have not changed since."""
        poller = select.poll()
        for worker in self.workers:
            poller.register(worker.sentinel, select.POLLIN)
        return not poller.poll(0) and not (self.snapshot is not None and self.snapshot.changed())

    def start_epoch(
        self, seed: int, lanes: Sequence[tuple[int, Any]] = (), batch_size: int | None = None
    ) -> None:
        """Begin an epoch in all workers and cancel the tasks of the previous epoch.

        The samples of an iterable dataset come from several lanes. For each lane, `lanes` contains the number
        of batches that were already read, and the state of the lane."""
        self.generation += 1
        count = len(self.workers)
        for worker in self.workers:
            worker.tasks.clear()
            mine = [(lane, *lanes[lane]) for lane in range(worker.id, len(lanes), count)]
            self.send(worker, ("epoch", self.generation, seed, mine, batch_size))

    def assign(self, worker: WorkerHandle, number: int, task: Task, early: bool = False) -> None:
        """Send a task of the current epoch to a worker."""
        worker.tasks[number] = task
        self.send(worker, ("task", self.generation, number, task, early))

    def send(self, worker: WorkerHandle, message: Any) -> None:
        """Send a message to a worker. If the worker has ended, the next `receive` raises an error."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            worker.conn.send(message)

    def receive(self, timeout: float | None) -> list[tuple[WorkerHandle, Any]]:
        """Wait at most `timeout` seconds for replies and return them as (worker, message) pairs.

        Raises WorkerExited when a worker has ended and all its messages have been read."""
        raise_kept_interrupt()
        ready = self._poller.poll(None if timeout is None else timeout * 1000)
        replies = []
        for worker in {id(worker): worker for worker in (self._by_fd[fd] for fd, _ in ready)}.values():
            try:
                # Read everything that a worker has sent before reporting its end.
                if worker.conn.poll():
                    replies.append((worker, worker.conn.recv()))
                    continue
            except EOFError:
                pass
            except OSError as error:
                # The worker ended in the middle of a message. Other errors, such as too many open files, occurred in
                # this process.
                if error.errno not in (None, errno.ECONNRESET, errno.EPIPE):
                    raise
            if not replies:
                self._lost(worker)
        return replies

    def _lost(self, worker: WorkerHandle) -> None:
        worker.join(LOST_SECONDS)
        lost = [(task.number, self._samples_of(task)) for task in worker.tasks.values()]
        raise exited(worker.id, worker.process.pid, worker.process.exitcode, lost, self._marks.get(worker.id))

    def _samples_of(self, task: Task) -> Sequence[Any]:
        """Return the indices of a batch's samples; for an iterable dataset, their positions in the stream."""
        if self._iterable:
            return range(task.position, task.position + (1 if task.indices is None else task.indices))
        return task.indices if isinstance(task.indices, list) else [task.indices]

    def stop(self) -> None:
        """Stop all workers and wait until they have ended."""
        self._stop()


def _none() -> None:
    return None


def _stop(workers: list[WorkerHandle], pid: int) -> None:
    # This also runs at interpreter exit, and in forked children, which must not stop their parent's workers.
    if os.getpid() != pid:
        return
    for worker in workers:
        with contextlib.suppress(OSError):
            worker.conn.send(None)
            worker.conn.close()
    _join(workers, STOP_SECONDS)
    reading = [worker for worker in workers if worker.process.is_alive()]
    for worker in reading:
        worker.process.kill()
    # A thread cannot be killed, and ends after the sample that it reads.
    _join([worker for worker in reading if worker.process.pid is not None], END_SECONDS)
    for worker in workers:
        worker.forget()


def _join(workers: list[WorkerHandle], timeout: float) -> None:
    """Wait at most `timeout` seconds in total for the workers to end."""
    deadline = time.monotonic() + timeout
    for worker in workers:
        worker.join(max(0.0, deadline - time.monotonic()))
