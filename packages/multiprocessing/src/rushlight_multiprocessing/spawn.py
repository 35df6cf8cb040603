"""`spawn`, which runs a function in several processes and raises the first error."""

from __future__ import annotations

import pickle
import time
import traceback
from collections.abc import Callable
from multiprocessing import connection as standard
from typing import Any

from .contexts import get_context
from .errors import ProcessException, ProcessExitedException, ProcessRaisedException, exited
from .pipes import Connection
from .threads import share_of_threads

__all__ = [
    "ProcessContext",
    "ProcessException",
    "ProcessExitedException",
    "ProcessRaisedException",
    "SpawnContext",
    "spawn",
    "start_processes",
]


class ProcessContext:
    """The processes started by `spawn(join=False)`.

    Raises ProcessRaisedException or ProcessExitedException from `join` when a process fails.

    Example::

        import rushlight.multiprocessing as mp

        if __name__ == "__main__":
            context = mp.spawn(train, nprocs=2, join=False)
            while not context.join(timeout=1.0):
                print("still running")
    """

    def __init__(self, processes: list[Any], errors: list[Connection]) -> None:
        self.processes = processes
        self._errors = errors
        self._waiting = {process.sentinel: i for i, process in enumerate(processes)}

    @property
    def sentinels(self) -> list[int]:
        """The sentinels of the running processes, for `multiprocessing.connection.wait`."""
        return list(self._waiting)

    def pids(self) -> list[int]:
        """Return the process ids."""
        return [process.pid for process in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Wait at most `timeout` seconds until a process ends. Return True if all processes have ended successfully.

        If a process fails, the other processes are terminated after `grace_period` seconds (by default at once), and killed
        30 seconds later if they are still running. Raises ProcessRaisedException or ProcessExitedException for
        the process that failed."""
        if not self._waiting:
            return True
        failed = None
        for sentinel in standard.wait(self.sentinels, timeout):
            index = self._waiting.pop(sentinel)
            self.processes[index].join()
            if self.processes[index].exitcode != 0 and failed is None:
                failed = index
        if failed is None:
            return not self._waiting
        self._end_all(grace_period)
        raise self._error_of(failed)

    def _end_all(self, grace_period: float | None) -> None:
        if grace_period is not None:
            self._wait_for_all(grace_period)
        for process in self.processes:
            if process.is_alive():
                process.terminate()
        self._wait_for_all(30.0)
        for process in self.processes:
            if process.is_alive():
                process.kill()
            process.join()
        self._waiting.clear()

    def _wait_for_all(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        for process in self.processes:
            process.join(max(0.0, deadline - time.monotonic()))

    def _error_of(self, index: int) -> ProcessException:
        process = self.processes[index]
        where = f"process {index} (pid {process.pid})"
        # The process sends the function's exception before it ends.
        if self._errors[index].poll():
            try:
                pickled, text = self._errors[index].recv()
            except (EOFError, OSError):
                pass
            else:
                error = ProcessRaisedException(f"{where} raised:\n{text}", index, process.pid)
                error.__cause__ = _unpickle(pickled)
                return error
        return exited(where, index, process)


class SpawnContext(ProcessContext):
    """Deprecated alias of `ProcessContext`.

    Example:
        >>> issubclass(SpawnContext, ProcessContext)
        True
    """


def start_processes(
    fn: Callable[..., object],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> SpawnContext | None:
    """Run `fn(i, *args)` in `nprocs` processes that are started by `start_method`; see `spawn`.

    Arguments:
        fn: the function.
        args: the arguments of `fn` after the process index `i`.
        nprocs: the number of processes to start.
        join: whether to wait for the processes.
        daemon: whether the processes are daemons, which end with the calling process.
        start_method: "fork", "spawn" or "forkserver".

    Example:
        >>> x = torch.zeros(2).share_memory_()
        >>> def fill(rank, x):
        ...     x[rank] = rank + 1
        >>> start_processes(fill, (x,), nprocs=2, start_method="fork")
        >>> x
        tensor([1., 2.])
    """
    ctx = get_context(start_method)
    processes, errors = [], []
    for i in range(nprocs):
        ours, theirs = ctx.Pipe(duplex=False)
        process = ctx.Process(target=_run, args=(fn, i, args, theirs, start_method), daemon=daemon)
        process._num_threads = share_of_threads(nprocs)
        process.start()
        theirs.close()
        processes.append(process)
        errors.append(ours)
    running = SpawnContext(processes, errors)
    if not join:
        return running
    while not running.join():
        pass
    return None


def spawn(
    fn: Callable[..., object],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> SpawnContext | None:
    """Run `fn(i, *args)` for each i from 0 to `nprocs - 1` in a separate process.

    If a process fails, the other processes are terminated and an exception is raised: ProcessRaisedException if `fn` raised
    an exception, and ProcessExitedException if the process was killed or exited. Tensors in `args` are shared, not copied.
    The processes end when the calling process ends, even if the calling process is killed. Each process starts with the
    calling process's number of threads divided by `nprocs`, at least 1, unless the environment variable OMP_NUM_THREADS is
    set.

    Arguments:
        fn: the function.
        args: the arguments of `fn` after the process index `i`.
        nprocs: the number of processes to start.
        join: whether to wait for the processes. If False, a `ProcessContext` is returned, whose method `join` waits for
            the processes.
        daemon: whether the processes are daemons, which end with the calling process.
        start_method: must be "spawn"; use `start_processes` for other start methods.

    Example::

        import rushlight.multiprocessing as mp

        def fill(rank, x):
            x[rank] = rank + 1

        if __name__ == "__main__":
            x = torch.zeros(2).share_memory_()
            mp.spawn(fill, args=(x,), nprocs=2)
            print(x)
    """
    return start_processes(fn, args, nprocs, join, daemon, start_method)


def _run(
    fn: Callable[..., object], i: int, args: tuple[Any, ...], errors: Connection, start_method: str
) -> None:
    _end_with_parent()
    try:
        fn(i, *args)
    except KeyboardInterrupt:
        pass  # the parent receives the signal, too
    except Exception as error:
        try:
            pickled = pickle.dumps(error)
        except Exception:
            pickled = None
        errors.send((pickled, traceback.format_exc()))
        raise SystemExit(1) from None


def _unpickle(pickled: bytes | None) -> BaseException | None:
    if pickled is None:
        return None
    try:
        error = pickle.loads(pickled)
    except Exception:
        return None
    return error if isinstance(error, BaseException) else None


def _end_with_parent() -> None:
    """End this process when its parent ends, even if the parent is killed or this process is busy."""
    import os
    import threading
    from multiprocessing import parent_process

    parent = parent_process()
    if parent is None:
        return
    sentinel = parent.sentinel

    def watch() -> None:
        standard.wait([sentinel])
        os._exit(1)

    threading.Thread(target=watch, name="ParentWatch", daemon=True).start()
