"""The code that runs in a worker: receive tasks, read their batches and send them to the loader."""

from __future__ import annotations

import os
import queue
import signal
import threading
from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any

import rushlight_core as core

from .collate import allocate_batches_by
from .errors import Failure
from .fetch import Abandoned, Fetcher, IterableFetcher, Task
from .freed_memory import keep_freed_memory
from .marks import Marks
from .opened_files import OpenedFiles
from .random_streams import give_own_generator, seed_streams

__all__ = ["WorkerInfo", "get_worker_info"]

# Kinds of replies.
DATA, FAILURE, END = range(3)
# A worker that is stopped while it reads a sample exits after this many seconds.
STOP_SECONDS = 5.0
# A worker that has waited this many seconds for a task is ahead of the loader: keeping memory would not make it faster.
AHEAD_SECONDS = 1e-3


class WorkerInfo:
    """Information about the calling worker, returned by `get_worker_info`.

    Attributes:
        id: number of the worker, from 0 to `num_workers - 1`.
        num_workers: number of workers of the loader.
        seed: seed of the worker's random streams.
        dataset: the worker's copy of the dataset.

    Example:
        >>> WorkerInfo(id=0, num_workers=2, seed=1, dataset=None).num_workers
        2
    """

    def __init__(self, id: int, num_workers: int, seed: int, dataset: Any) -> None:
        self.id = id
        self.num_workers = num_workers
        self.seed = seed
        self.dataset = dataset

    def __repr__(self) -> str:
        return f"WorkerInfo(id={self.id}, num_workers={self.num_workers}, seed={self.seed})"


class _Infos:
    process: WorkerInfo | None = None
    thread = threading.local()


def get_worker_info() -> WorkerInfo | None:
    """Return the `WorkerInfo` of the calling worker, or None in the training process.

    Example:
        >>> get_worker_info() is None  # this is not a worker
        True
    """
    return getattr(_Infos.thread, "info", None) or _Infos.process


class Setup:
    """The arguments that a worker receives when it starts."""

    def __init__(
        self,
        worker_id: int,
        num_workers: int,
        seed: int,
        fetcher: Fetcher,
        init_fn: Callable[[int], object] | None,
        transport: Any,
        marks: Marks,
    ) -> None:
        self.worker_id = worker_id
        self.num_workers = num_workers
        self.seed = seed
        self.fetcher = fetcher
        self.init_fn = init_fn
        self.transport = transport
        self.marks = marks


def run(conn: Any, setup: Setup) -> None:
    """Run a worker until the loader stops the worker, or until the loader itself ends."""
    isolated = setup.transport.isolated
    info = WorkerInfo(setup.worker_id, setup.num_workers, setup.seed, setup.fetcher.dataset)
    if isolated:
        # Ctrl-C reaches every process of the terminal, but only the loader's process handles it. A handler that does
        # nothing is used instead of SIG_IGN, which programs that the worker starts would inherit.
        signal.signal(signal.SIGINT, lambda *_: None)
        core.set_num_threads(1)
        keep_freed_memory()
        seed_streams(setup.seed)
        _Infos.process = info
    else:
        _Infos.thread.info = info
        give_own_generator(setup.seed)
    allocate_batches_by(setup.transport.empty)
    messages = MessageReader(conn, isolated)
    try:
        _WorkerLoop(conn, messages, setup).work()
    except OSError:
        pass  # the loader has ended
    finally:
        messages.finish()


class MessageReader:
    """A thread that reads the loader's messages.

    Because messages are received in a thread, the loader never waits when it sends a message, and a worker
    notices that the loader has ended even while it reads a sample."""

    def __init__(self, conn: Any, isolated: bool) -> None:
        self._conn = conn
        self._isolated = isolated
        self._queue: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.generation: int = 0
        self.closed: bool = False
        self.finished: threading.Event = threading.Event()
        self.get: Callable[..., Any] = self._queue.get
        self._thread = threading.Thread(target=self._read, name="DataLoaderReader", daemon=True)
        self._thread.start()

    def finish(self) -> None:
        """Allow the worker to end. In a thread worker, close the connection and join the reading thread."""
        self.finished.set()
        if not self._isolated:
            self._conn.close()
            self._thread.join()

    def _read(self) -> None:
        asked = False
        while True:
            try:
                message = self._conn.recv()
            except (EOFError, OSError):
                break
            if message is None:
                asked = self.closed = True
            else:
                self.generation = message[1]
            self._queue.put(message)
        self.closed = True
        self._queue.put(None)
        if self._isolated and not (asked and self.finished.wait(STOP_SECONDS)):
            os._exit(1)


class _WorkerLoop:
    """The message loop in the main thread of a worker."""

    def __init__(self, conn: Any, messages: MessageReader, setup: Setup) -> None:
        self.conn = conn
        self.messages = messages
        self.setup = setup
        self.fetcher = setup.fetcher
        self.fetcher.stopped = self._is_stale
        self.fetcher.reading = partial(setup.marks.set, setup.worker_id)
        self.pid = os.getpid()
        self.generation = 0
        self.broken: Exception | None = None
        self.files = OpenedFiles() if setup.transport.isolated else None
        self.reuse_memory = getattr(setup.transport, "reuse_memory", None)

    def work(self) -> None:
        if self.setup.init_fn is not None:
            try:
                self.setup.init_fn(self.setup.worker_id)
            except StopIteration as error:  # the loader would take it for the end of the worker's samples
                self.broken = RuntimeError("worker_init_fn raised StopIteration")
                self.broken.__cause__ = error
            except Exception as error:
                self.broken = error
            if self.broken is not None:
                self.fetcher.doing = "running worker_init_fn"
        try:
            self._process_messages()
        finally:
            self.fetcher.stopped = self.fetcher.reading = (
                None  # break the reference cycle between the fetcher and this object
            )

    def _process_messages(self) -> None:
        while True:
            self._end_copy()
            begun = perf_counter()
            message = self.messages.get()
            waited = perf_counter() - begun
            if message is None:
                return
            if message[0] == "epoch":
                _, self.generation, seed, lanes, batch = message
                self._start_epoch(seed, lanes, batch)
            elif message[0] == "task" and not self._is_stale():
                _, _, number, task, early = message
                self._run_task(number, task, waited, early)

    def _end_copy(self) -> None:
        """End this process if the user's code has forked it from the worker, because only the worker may send replies."""
        if os.getpid() != self.pid:
            os._exit(0)

    def _is_stale(self) -> bool:
        return self.messages.closed or self.messages.generation != self.generation

    def _start_epoch(self, seed: int, lanes: list[tuple[int, int, Any]], batch: Any) -> None:
        try:
            self.fetcher.start_epoch(seed)
            if isinstance(self.fetcher, IterableFetcher):
                for lane, batches, state in lanes:
                    self.fetcher.start_lane(lane, batches, batch, state)
        except Exception as error:
            self.broken = error

    def _run_task(self, number: int, task: Task, waited: float, early: bool) -> None:
        begun = perf_counter()
        state: Any = None
        files = self.files if early else None
        if self.reuse_memory is not None:
            self.reuse_memory(waited < AHEAD_SECONDS)
        try:
            if files is not None:
                files.start()
            if self.broken is not None:
                raise self.broken
            payload = self.fetcher.fetch(task)
            kind = DATA
        except StopIteration:
            kind, payload = END, None
        except Abandoned:
            return
        except Exception as error:
            kind, payload = FAILURE, self._failure(task, error)
        finally:
            if files is not None:
                state = files.stop()
        if isinstance(self.fetcher, IterableFetcher):
            state = self.fetcher.state(task.lane)
        worked = perf_counter() - begun
        self._end_copy()
        try:
            self.conn.send((self.generation, number, kind, payload, waited, worked, state))
        except OSError:
            raise
        except Exception as error:
            self.fetcher.doing, self.fetcher.index = f"sending batch {task.number}", ()
            failure = self._failure(task, error)
            self.conn.send((self.generation, number, FAILURE, failure, waited, worked, None))

    def _failure(self, task: Task, error: Exception) -> Failure:
        isolated = self.setup.transport.isolated
        indices = task.indices if isinstance(task.indices, list) else None
        pid = os.getpid() if isolated else None
        fetcher = self.fetcher
        return Failure(
            self.setup.worker_id, pid, task.number, fetcher.doing, fetcher.index, indices, error, not isolated
        )
