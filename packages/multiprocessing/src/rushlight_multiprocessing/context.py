"""Contexts: the standard start methods, with our pipes and queues, and processes whose arguments may hold
tensors.

The choice of a start method is shared with the standard module: `set_start_method` here and there is the
same.
"""

from __future__ import annotations

import multiprocessing
from multiprocessing import context as standard
from typing import Any

from . import reductions
from .connection import Connection, Pipe
from .queues import JoinableQueue, Queue, SimpleQueue


def _start(popen_of: Any, process: Any) -> Any:
    reductions.init_reductions()  # again: subclasses of Tensor may have come since
    popen = popen_of(process)
    reductions.launched(popen)
    return popen


class _WithTensors:
    """What a process does once it has read its arguments."""

    def _bootstrap(self, *args: Any, **kwargs: Any) -> int:
        reductions.arguments_read()
        return super()._bootstrap(*args, **kwargs)  # type: ignore[misc]


class ForkProcess(_WithTensors, standard.ForkProcess):
    """A process started by forking."""

    @staticmethod
    def _Popen(process_obj: Any) -> Any:
        return _start(standard.ForkProcess._Popen, process_obj)


class SpawnProcess(_WithTensors, standard.SpawnProcess):
    """A process started by a fresh interpreter."""

    @staticmethod
    def _Popen(process_obj: Any) -> Any:
        return _start(standard.SpawnProcess._Popen, process_obj)


class ForkServerProcess(_WithTensors, standard.ForkServerProcess):
    """A process forked from a small server process."""

    @staticmethod
    def _Popen(process_obj: Any) -> Any:
        return _start(standard.ForkServerProcess._Popen, process_obj)


class Process(_WithTensors, standard.Process):
    """A process started by the method that is set."""

    @staticmethod
    def _Popen(process_obj: Any) -> Any:
        return get_context().Process._Popen(process_obj)


class _Shared:
    """The part of a context that differs from the standard one."""

    _name: str

    def Pipe(self, duplex: bool = True) -> tuple[Connection, Connection]:
        """Two connections; see `rushlight_multiprocessing.Pipe`."""
        return Pipe(duplex)

    def Queue(self, maxsize: int = 0) -> Queue:
        """A queue; see `rushlight_multiprocessing.queues.Queue`."""
        return Queue(maxsize, ctx=self)

    def JoinableQueue(self, maxsize: int = 0) -> JoinableQueue:
        """A queue that counts unfinished objects."""
        return JoinableQueue(maxsize, ctx=self)

    def SimpleQueue(self) -> SimpleQueue:
        """A locked pipe."""
        return SimpleQueue(ctx=self)

    def get_context(self, method: str | None = None) -> Any:
        """The context of a start method: 'fork', 'spawn' or 'forkserver'. Raises ValueError for another."""
        return self if method is None else get_context(method)


class ForkContext(_Shared, standard.ForkContext):  # type: ignore[misc]
    """The standard context 'fork', for tensors."""

    Process = ForkProcess


class SpawnContext(_Shared, standard.SpawnContext):  # type: ignore[misc]
    """The standard context 'spawn', for tensors."""

    Process = SpawnProcess


class ForkServerContext(_Shared, standard.ForkServerContext):  # type: ignore[misc]
    """The standard context 'forkserver', for tensors."""

    Process = ForkServerProcess


_contexts: dict[str, Any] = {
    "fork": ForkContext(),
    "spawn": SpawnContext(),
    "forkserver": ForkServerContext(),
}


def get_context(method: str | None = None) -> Any:
    """The context of a start method, by default the one that is set. Raises ValueError for an unknown
    method."""
    if method is None:
        method = multiprocessing.get_start_method()
    try:
        return _contexts[method]
    except KeyError:
        raise ValueError(f"cannot find context for {method!r}: there are {', '.join(_contexts)}") from None
