"""A pool of processes that raises an error for a task if the process that runs the task ends without a result.

The standard pool replaces a process that ends without a result, and waits for the result of its task forever.
The pool of this module numbers its tasks. Each process has a word, an integer in memory that it shares with
the pool, to which it writes the number of its task. When a process ends, the pool compares the words with the
tasks that have no result yet, and so finds the tasks that are lost.
"""

from __future__ import annotations

import mmap
import os
import threading
import time
from collections import deque
from multiprocessing import pool as standard
from multiprocessing import reduction
from multiprocessing.context import BaseContext
from multiprocessing.pool import ExceptionWithTraceback, MaybeEncodingError, ThreadPool  # type: ignore[attr-defined]
from typing import Any

from .errors import exited
from .pipes import Connection, Pipe
from .queue import SimpleQueue
from .reductions import dumps
from .threads import share_of_threads

__all__ = ["Pool", "ThreadPool"]


def __getattr__(name: str) -> Any:
    """Look up a name, such as `AsyncResult`, in the standard module `multiprocessing.pool`."""
    return getattr(standard, name)


# States of a process, which it writes to its word. Other values are the number of the task that it runs.
_STARTING, _RECEIVING, _IDLE = -1, -2, -3

# Number of consecutive failed starts after which the pool fails all tasks.
_FAILED_STARTS = 3
_MAX_PROCESSES = 4096
_TAGS = 1 << 32


class Pool(standard.Pool):
    """A pool of processes; see `rushlight_multiprocessing.Pool`.

    A process that ends before it returns a result is replaced, and ProcessExitedException is raised for its task.
    If three processes in a row end before they receive a task, the exception is raised for all tasks.

    Arguments:
        processes, initializer, initargs, maxtasksperchild: see `rushlight_multiprocessing.Pool`.
        context: a context or None, which selects the default start method. For a context of the standard module, only its
            start method is used.

    Each new process starts with the parent's number of threads divided by the number of processes, at least 1. If the
    environment variable OMP_NUM_THREADS is set, the variable determines the number of threads. Call `set_num_threads` in the
    `initializer` to set another number of threads.

    Example::

        import rushlight.multiprocessing as mp

        if __name__ == "__main__":
            with mp.Pool(2) as pool:
                results = [pool.apply_async(work, (item,)) for item in items]
                for result in results:
                    try:
                        print(result.get())
                    except mp.ProcessExitedException as error:
                        print(error)  # another process has taken the place of the one that was killed
    """

    _ctx: Any

    def __init__(
        self,
        processes: int | None = None,
        initializer: Any = None,
        initargs: Any = (),
        maxtasksperchild: int | None = None,
        context: Any = None,
    ) -> None:
        from . import contexts  # `contexts` imports this module

        if context is None:
            context = contexts.get_context()
        elif isinstance(context, BaseContext) and not isinstance(context, contexts.ContextWithTensors):
            context = contexts.get_context(context.get_start_method())
        super().__init__(processes, initializer, initargs, maxtasksperchild, context=context)

    def _setup_queues(self) -> None:
        self._outqueue = self._ctx.SimpleQueue()
        self._inqueue = _Tasks(self._outqueue)
        self._quick_put = self._inqueue.put
        self._quick_get = self._inqueue.get_result

    def _repopulate_pool(self) -> None:
        self._inqueue.num_threads = share_of_threads(self._processes)  # type: ignore[attr-defined]
        super()._repopulate_pool()  # type: ignore[misc]

    @staticmethod
    def Process(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        """Return a process of the pool, not yet started."""
        if isinstance(tasks := kwargs.get("args", (None,))[0], _Tasks):
            return _Worker(ctx, tasks, kwargs)
        return ctx.Process(*args, **kwargs)

    @staticmethod
    def _help_stuff_finish(inqueue: _Tasks, task_handler: threading.Thread, size: int) -> None:
        while task_handler.is_alive() and inqueue.drop_one():
            time.sleep(0)


class _Words:
    """An array in shared memory with one integer, called word, for each process. Words are accessed atomically."""

    def __init__(self, fd: int | None = None) -> None:
        if fd is None:
            fd = os.memfd_create("rushlight-pool", os.MFD_CLOEXEC)
            os.ftruncate(fd, 8 * _MAX_PROCESSES)
        self.fd = fd
        self.values = memoryview(mmap.mmap(fd, 8 * _MAX_PROCESSES)).cast("q")

    def __del__(self) -> None:
        if hasattr(self, "fd"):
            os.close(self.fd)


def _rebuild_words(dup: Any) -> _Words:
    return _Words(dup.detach())


def _reduce_words(words: _Words) -> Any:
    return _rebuild_words, (reduction.DupFd(words.fd),)


reduction.register(_Words, _reduce_words)


class _Tasks:
    """The tasks of a pool: the queue to its processes, and the record of the tasks without a result.

    A task is identified by the tag of its message, which is the task's number modulo `_TAGS`."""

    def __init__(self, results: SimpleQueue) -> None:
        self.reader, self.writer = Pipe(duplex=False, counted=True)
        self.results = results
        self.num_threads: int | None = None  # number of threads of each process
        self.words = _Words()
        self._free_words = deque(range(_MAX_PROCESSES))
        self._workers: dict[int, _Worker] = {}  # by the index of its word
        self._failed_starts = 0
        self._sending = threading.Lock()
        self._sent = 0  # number of messages to the processes
        self._open: dict[int, tuple[Any, Any]] = {}  # job and index of each task without a result, by its tag
        self._received: deque[tuple[Any, Any, Any]] = deque()
        self._stopped = False

    # The following methods are called by the threads that send tasks and receive results.

    def put(self, task: tuple[Any, ...] | None) -> None:
        """Send a task to the processes. If `task` is None, the process that receives it ends."""
        payload, outgoing = dumps(task)
        payload = self.writer.move_large_payload(payload, outgoing)
        while True:
            with self._sending:
                tag = self._sent % _TAGS
                if task is not None:
                    self._open[tag] = task[0], task[1]
                sent = False
                try:
                    sent = self.writer.try_send_packed(payload, outgoing, tag)
                finally:
                    if not sent:
                        self._open.pop(tag, None)
                if sent:
                    self._sent += 1
                    return
            self.writer.wait_for_room()
            if outgoing.arenas:
                time.sleep(0.001)  # the kernel may have room for the message but not for its descriptors

    def get_result(self) -> tuple[Any, Any, Any] | None:
        """Wait for a result. Return the job of the task, the index of the task in this job, and the result.

        Return None if the pool's thread that calls this method must end."""
        while not self._received:
            message = self.results.get()
            if message is None:
                return None
            tags, result = message
            if result[0]:
                self._failed_starts = 0
            # Tasks for which an error was raised before are not in `_open` any more.
            found = [self._open.pop(tag) for tag in tags if tag in self._open]
            self._received.extend((job, i, result) for job, i in found)
        return self._received.popleft()

    def drop_one(self) -> bool:
        """Remove a task from the queue when the pool ends. Return whether the queue contained a task."""
        self._stopped = True
        try:
            message = self.reader.try_recv_packed()
        except OSError:
            return True
        if message is not None and message[1] is not None:
            message[1].close()
        return message is not None

    # The following methods are called by the thread that manages the processes.

    def started(self, worker: _Worker) -> int:
        """Register a new process, and return the index of its integer in `_Words`."""
        if not self._free_words:
            raise ValueError(f"Pool(processes): must be at most {_MAX_PROCESSES}")
        word = self._free_words.popleft()
        self.words.values[word] = _STARTING
        self._workers[word] = worker
        return word

    def ended(self, worker: _Worker) -> None:
        """If a process has ended before it returned the result of its task, send an error as the result."""
        if self._workers.pop(worker.word, None) is None:
            return
        state = self.words.values[worker.word]
        self._free_words.append(worker.word)
        tags, what = [state], " before it returned the result of its task"
        if state == _IDLE:
            return
        if state == _RECEIVING:
            tags = self._lost_tags()
        elif state == _STARTING:
            self._failed_starts += 1
            if self._failed_starts < _FAILED_STARTS:
                return
            tags = list(self._open)
            what = f" before it received a task, like {_FAILED_STARTS - 1} processes before it"
        error = exited(f"worker {worker.word} (pid {worker.pid}) of a pool", worker.word, worker, what)
        payload, outgoing = dumps((tags, (False, error)))
        # The error is queued after the results that the processes have already sent.
        while tags and not self._stopped and not self.results._writer.try_send_packed(payload, outgoing):
            self.results._writer.wait_for_room(0.1)

    def _lost_tags(self) -> list[int]:
        """Return the tags of the tasks that have no result, are not in the queue, and are not being run by a process."""
        with self._sending:
            waiting = {(self._sent - 1 - i) % _TAGS for i in range(self.reader.waiting())}
        received = [tag for tag in list(self._open) if tag not in waiting]
        kept = set()
        for word, worker in self._workers.items():
            while (tag := self.words.values[word]) == _RECEIVING and worker.exitcode is None:
                time.sleep(0.001)  # it is about to write the number of the task
            kept.add(tag)
        return [tag for tag in received if tag not in kept]


class _Worker:
    """A process of a pool. `join` tells the pool if the process has ended."""

    def __init__(self, ctx: Any, tasks: _Tasks, arguments: dict[str, Any]) -> None:
        self._tasks = tasks
        self.word = tasks.started(self)
        side = _Side(tasks.words, self.word, tasks.reader, tasks.writer, tasks.results)
        self._process = ctx.Process(**{**arguments, "args": (side, side, *arguments["args"][2:])})
        self._process._num_threads = tasks.num_threads

    def join(self, *timeout: float | None) -> None:
        self._process.join(*timeout)
        if self._process.exitcode is not None:
            self._tasks.ended(self)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._process, name)

    def __setattr__(self, name: str, value: object) -> None:
        if name in ("name", "daemon"):
            setattr(self._process, name, value)
        else:
            super().__setattr__(name, value)


class _Side:
    """The object that a worker process of a pool uses both as its input queue and as its output queue."""

    def __init__(
        self, words: _Words, word: int, tasks: Connection, tasks_writer: Connection, results: SimpleQueue
    ) -> None:
        self._words, self._word = words, word
        self._tasks, self._results = tasks, results
        # The standard module's worker closes these ends.
        self._writer, self._reader = tasks_writer, results._reader

    def get(self) -> Any:
        """Wait for a task."""
        values, word = self._words.values, self._word
        values[word] = _IDLE
        while True:
            self._tasks.poll(None)
            values[word] = _RECEIVING
            message = self._tasks.try_recv_tagged()
            values[word] = _IDLE if message is None else message[0]
            if message is None:
                continue
            try:
                task = self._tasks.unpack(*message[1:])
            except Exception as error:
                self._fail(error)
            else:
                if task is None:
                    values[word] = _IDLE
                return task

    def put(self, answer: tuple[Any, Any, Any]) -> None:
        """Send the result of the task."""
        self._send(answer[2])

    def _fail(self, error: Exception) -> None:
        """Send the error with which the unpickling of a task failed, as the result of this task."""
        try:
            self._send((False, ExceptionWithTraceback(error, error.__traceback__)))
        except Exception as reason:
            self._send((False, MaybeEncodingError(reason, error)))

    def _send(self, result: tuple[bool, Any]) -> None:
        values, word = self._words.values, self._word
        self._results.put(((values[word],), result))
        values[word] = _IDLE
