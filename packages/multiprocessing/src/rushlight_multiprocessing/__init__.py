"""Tensors between processes: the standard `multiprocessing` module, with tensors in shared memory.

    import rushlight_multiprocessing as mp

    queue = mp.Queue()
    mp.Process(target=work, args=(queue, model)).start()

Everything of the standard module is here. What is put into a queue, a pipe or a pool, or passed to a process,
may hold tensors, which are not copied: all processes see the same memory. It is anonymous, so nothing stays
behind when a process is killed, and no limit on /dev/shm applies.
"""

import multiprocessing as _standard
from typing import Any

from . import reductions as _reductions
from .connection import Connection, Pipe
from .context import Process, get_context
from .heap import heap as _heap
from .queues import JoinableQueue as _JoinableQueue
from .queues import Queue as _Queue
from .queues import SimpleQueue as _SimpleQueue
from .sharing import is_shared, share_memory_
from .spawn import (
    ProcessContext,
    ProcessException,
    ProcessExitedException,
    ProcessRaisedException,
    SpawnContext,
    spawn,
    start_processes,
)

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Whatever is not defined here is the standard module's."""
    if name in _standard.__all__:
        return getattr(_standard, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_standard.__all__})


def Queue(maxsize: int = 0) -> _Queue:
    """A queue for any number of writers and readers; `put` waits only when `maxsize` objects are there."""
    queue: _Queue = get_context().Queue(maxsize)
    return queue


def JoinableQueue(maxsize: int = 0) -> _JoinableQueue:
    """A queue that counts what has not been reported as done (`task_done`, `join`)."""
    queue: _JoinableQueue = get_context().JoinableQueue(maxsize)
    return queue


def SimpleQueue() -> _SimpleQueue:
    """A pipe with a lock at each end."""
    queue: _SimpleQueue = get_context().SimpleQueue()
    return queue


def Pool(
    processes: int | None = None,
    initializer: Any = None,
    initargs: Any = (),
    maxtasksperchild: int | None = None,
) -> Any:
    """A pool of processes; arguments and results may hold tensors."""
    return get_context().Pool(processes, initializer, initargs, maxtasksperchild)


_STRATEGIES = {"file_descriptor", "file_system"}
_strategy = "file_descriptor"


def get_all_sharing_strategies() -> set[str]:
    """The names PyTorch has; see `set_sharing_strategy`."""
    return set(_STRATEGIES)


def get_sharing_strategy() -> str:
    """The name that was set last."""
    return _strategy


def set_sharing_strategy(new_strategy: str) -> None:
    """Accepted for programs written for PyTorch. There is one way here, which neither runs out of descriptors
    nor leaves files behind. Raises ValueError for a name PyTorch does not have."""
    global _strategy
    if new_strategy not in _STRATEGIES:
        raise ValueError(
            f"sharing strategy {new_strategy!r} is unknown: there are {', '.join(sorted(_STRATEGIES))}"
        )
    _strategy = new_strategy


def empty_cache() -> None:
    """Return shared memory that no process uses to the system."""
    _heap().trim()


_reductions.init_reductions()

__all__ = [
    *(name for name in _standard.__all__ if name not in globals()),
    "Connection",
    "JoinableQueue",
    "Pipe",
    "Pool",
    "Process",
    "Queue",
    "SimpleQueue",
    "ProcessContext",
    "ProcessException",
    "ProcessExitedException",
    "ProcessRaisedException",
    "SpawnContext",
    "empty_cache",
    "get_all_sharing_strategies",
    "get_context",
    "get_sharing_strategy",
    "is_shared",
    "set_sharing_strategy",
    "share_memory_",
    "spawn",
    "start_processes",
]
