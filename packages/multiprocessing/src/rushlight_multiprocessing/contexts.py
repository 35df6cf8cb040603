"""Contexts of the standard start methods, with this package's pipes, queues and processes.

The default start method is shared with the standard module: `set_start_method` is the same function in both.
"""

from __future__ import annotations

import multiprocessing
import multiprocessing.context as standard
from typing import Any, ClassVar

import rushlight_core as core

from . import reductions
from .pipes import Connection, Pipe
from .pool import Pool
from .queue import JoinableQueue, Queue, SimpleQueue
from .threads import share_of_threads


class _WithTensors:
    """Mixin for processes whose arguments may contain tensors.

    The parent passes file descriptors to the child whose locks keep the memory of the tensors allocated; see Note [When a
    block is freed] in `arena.py`. The parent closes its copies of the descriptors after the start, and the child closes its
    copies after it has read the arguments. The mixin also sets the number of threads with which the process starts.
    """

    _num_threads: int | None = None  # None leaves the number unchanged

    @classmethod
    def _Popen(cls, process_obj: Any) -> Any:
        reductions.init_reductions()  # again, for subclasses of Tensor that were defined in the meantime
        popen = super()._Popen(process_obj)  # type: ignore[misc]
        reductions.launched(popen)
        return popen

    def _bootstrap(self, *args: Any, **kwargs: Any) -> int:
        reductions.arguments_read()
        if self._num_threads is not None:
            core.set_num_threads(self._num_threads)
        return super()._bootstrap(*args, **kwargs)  # type: ignore[misc]


class _WithShareOfThreads(_WithTensors):
    """Mixin for processes that start with a share of the parent's number of threads.

    The share is the parent's number of threads divided by its number of running children, including the new
    process.
    """

    @classmethod
    def _Popen(cls, process_obj: Any) -> Any:
        if process_obj._num_threads is None:
            process_obj._num_threads = share_of_threads(len(multiprocessing.active_children()) + 1)
        return super()._Popen(process_obj)


class ForkProcess(_WithTensors, standard.ForkProcess):
    """A process started by the method 'fork'."""


class SpawnProcess(_WithShareOfThreads, standard.SpawnProcess):
    """A process started by the method 'spawn', in a new interpreter."""


class ForkServerProcess(_WithShareOfThreads, standard.ForkServerProcess):
    """A process started by the method 'forkserver'."""


class Process(_WithTensors, standard.Process):
    """A process that is started by the default start method; its arguments may contain tensors.

    A process started by 'spawn' or 'forkserver' begins with the parent's number of threads divided by the number of living
    children of the parent, including the new one, unless OMP_NUM_THREADS is set. Call `set_num_threads` in the process to
    set another number of threads. A forked process computes with one thread, its main thread.

    Example::

        import rushlight.multiprocessing as mp

        if __name__ == "__main__":
            x = torch.zeros(2).share_memory_()
            process = mp.Process(target=x.fill_, args=(1.0,))
            process.start()
            process.join()
    """

    @classmethod
    def _Popen(cls, process_obj: Any) -> Any:
        return get_context().Process._Popen(process_obj)


class ContextWithTensors:
    """Mixin for the contexts of the standard module, so that they create this package's pipes, queues and pools."""

    _name: str

    def Pipe(self, duplex: bool = True) -> tuple[Connection, Connection]:
        """Return the two connected ends of a pipe; see `rushlight_multiprocessing.Pipe`."""
        return Pipe(duplex)

    def Queue(self, maxsize: int = 0) -> Queue:
        """Return a queue; see `rushlight_multiprocessing.queue.Queue`."""
        return Queue(maxsize, ctx=self)

    def JoinableQueue(self, maxsize: int = 0) -> JoinableQueue:
        """Return a queue that counts unfinished objects; see `rushlight_multiprocessing.queue.JoinableQueue`."""
        return JoinableQueue(maxsize, ctx=self)

    def SimpleQueue(self) -> SimpleQueue:
        """Return a queue that consists of a single pipe; see `rushlight_multiprocessing.queue.SimpleQueue`."""
        return SimpleQueue(ctx=self)

    def Pool(
        self,
        processes: int | None = None,
        initializer: Any = None,
        initargs: Any = (),
        maxtasksperchild: int | None = None,
    ) -> Pool:
        """Return a pool of processes; see `rushlight_multiprocessing.pool.Pool`."""
        return Pool(processes, initializer, initargs, maxtasksperchild, context=self.get_context())

    def get_context(self, method: str | None = None) -> Any:
        """Return the context of a start method: 'fork', 'spawn' or 'forkserver'. Raises ValueError for other names."""
        return self if method is None else get_context(method)


class ForkContext(ContextWithTensors, standard.ForkContext):  # type: ignore[misc]
    """The context of the start method 'fork'."""

    Process: ClassVar[Any] = ForkProcess


class SpawnContext(ContextWithTensors, standard.SpawnContext):  # type: ignore[misc]
    """The context of the start method 'spawn'.

    Example:
        >>> isinstance(get_context("spawn"), SpawnContext)
        True
    """

    Process: ClassVar[Any] = SpawnProcess


class ForkServerContext(ContextWithTensors, standard.ForkServerContext):  # type: ignore[misc]
    """The context of the start method 'forkserver'."""

    Process: ClassVar[Any] = ForkServerProcess


_contexts: dict[str, Any] = {
    "fork": ForkContext(),
    "spawn": SpawnContext(),
    "forkserver": ForkServerContext(),
}


def get_context(method: str | None = None) -> Any:
    """Return the context of a start method. Raises ValueError for an unknown method.

    Arguments:
        method: "fork", "spawn" or "forkserver"; None selects the default method.

    Example:
        >>> get_context("fork").Queue().empty()
        True
    """
    if method is None:
        method = multiprocessing.get_start_method()
    try:
        return _contexts[method]
    except KeyError:
        raise ValueError(
            f"cannot find context for {method!r}: must be one of {', '.join(_contexts)}"
        ) from None
