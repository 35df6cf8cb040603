"""What runs in a worker: take a task, read the batch, send it, until the loader is done or gone."""

from __future__ import annotations

import os
import queue
import signal
import threading
from collections.abc import Callable
from time import perf_counter
from typing import Any

import rushlight_core as core

from .collate import allocate_batches_by
from .errors import Failure
from .fetch import Abandoned, Fetcher, IterableFetcher, Task
from .random_streams import give_own_generator, seed_streams

__all__ = ["WorkerInfo", "get_worker_info"]

# Kinds of replies.
DATA, FAILURE, END = range(3)
# A worker that was asked to stop, but is in the middle of a sample, ends itself after so many seconds.
PATIENCE = 5.0


class WorkerInfo:
    """In a worker: its number, how many there are, its seed, and its copy of the dataset."""

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
    """Who the calling worker is; None in the training process."""
    return getattr(_Infos.thread, "info", None) or _Infos.process


class Setup:
    """All that a worker is told once."""

    def __init__(
        self,
        worker_id: int,
        num_workers: int,
        seed: int,
        fetcher: Fetcher,
        init_fn: Callable[[int], object] | None,
        transport: Any,
    ) -> None:
        self.worker_id = worker_id
        self.num_workers = num_workers
        self.seed = seed
        self.fetcher = fetcher
        self.init_fn = init_fn
        self.transport = transport


def run(conn: Any, setup: Setup) -> None:
    """A worker's whole life."""
    isolated = setup.transport.isolated
    info = WorkerInfo(setup.worker_id, setup.num_workers, setup.seed, setup.fetcher.dataset)
    if isolated:
        # Ctrl-C reaches every process of the terminal; what happens then is the loader's decision. A handler
        # that does nothing, rather than SIG_IGN, which programs started from here would inherit.
        signal.signal(signal.SIGINT, lambda *_: None)
        core.set_num_threads(1)
        seed_streams(setup.seed)
        _Infos.process = info
    else:
        _Infos.thread.info = info
        give_own_generator(setup.seed)
    allocate_batches_by(setup.transport.empty)
    inbox = Inbox(conn, isolated)
    try:
        _Desk(conn, inbox, setup).work()
    except OSError:
        pass  # the loader is gone
    finally:
        inbox.finish()


class Inbox:
    """Reads the loader's messages in a thread: sending never makes the loader wait, and its end is noticed at
    once, also in the middle of a sample."""

    def __init__(self, conn: Any, isolated: bool) -> None:
        self._conn = conn
        self._isolated = isolated
        self._messages: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.generation = 0
        self.closed = False
        self.finished = threading.Event()
        self.get = self._messages.get
        self._thread = threading.Thread(target=self._read, name="DataLoaderInbox", daemon=True)
        self._thread.start()

    def finish(self) -> None:
        """The worker is about to end. Where it is a thread, what it held is gone with it: the reader ends first."""
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
            self._messages.put(message)
        self.closed = True
        self._messages.put(None)
        if self._isolated and not (asked and self.finished.wait(PATIENCE)):
            os._exit(1)


class _Desk:
    """The main thread of a worker."""

    def __init__(self, conn: Any, inbox: Inbox, setup: Setup) -> None:
        self.conn = conn
        self.inbox = inbox
        self.setup = setup
        self.fetcher = setup.fetcher
        self.fetcher.stopped = self._is_stale
        self.generation = 0
        self.broken: Exception | None = None

    def work(self) -> None:
        if self.setup.init_fn is not None:
            try:
                self.setup.init_fn(self.setup.worker_id)
            except Exception as error:
                self.fetcher.doing = "running worker_init_fn"
                self.broken = error
        try:
            self._work_until_told()
        finally:
            self.fetcher.stopped = None  # it refers to this object, which refers to it

    def _work_until_told(self) -> None:
        while True:
            begun = perf_counter()
            message = self.inbox.get()
            waited = perf_counter() - begun
            if message is None:
                return
            if message[0] == "epoch":
                _, self.generation, seed, done, batch, state = message
                self._start_epoch(seed, done, batch, state)
            elif not self._is_stale():
                _, _, number, task = message
                self._do(number, task, waited)

    def _is_stale(self) -> bool:
        return self.inbox.closed or self.inbox.generation != self.generation

    def _start_epoch(self, seed: int, done: int, batch: Any, state: Any) -> None:
        try:
            self.fetcher.start_epoch(seed)
            if isinstance(self.fetcher, IterableFetcher) and done:
                self.fetcher.resume(done, batch, state)
        except Exception as error:
            self.broken = error

    def _do(self, number: int, task: Task, waited: float) -> None:
        begun = perf_counter()
        state = None
        try:
            if self.broken is not None:
                raise self.broken
            payload = self.fetcher.fetch(task)
            kind = DATA
            if isinstance(self.fetcher, IterableFetcher):
                state = self.fetcher.state()
        except StopIteration:
            kind, payload = END, None
        except Abandoned:
            return
        except Exception as error:
            kind, payload = FAILURE, self._failure(task, error)
        worked = perf_counter() - begun
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
