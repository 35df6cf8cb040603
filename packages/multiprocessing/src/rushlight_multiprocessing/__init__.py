"""The standard `multiprocessing` module, extended to send tensors through shared memory.

    import rushlight_multiprocessing as mp

    queue = mp.Queue()
    mp.Process(target=work, args=(queue, model)).start()

All names of the standard module are available. Objects sent through queues, pipes and pools, and arguments of processes, may
contain tensors. A tensor is moved to shared memory when it is sent, and the receiving process uses this memory without a
copy. The memory is anonymous: it is released when processes are killed, and the size of /dev/shm does not limit it.
"""

import multiprocessing as _standard
from importlib import import_module as _import_module
from importlib.util import find_spec as _find_spec
from typing import Any

from . import reductions as _reductions
from .allocator import heap as _heap
from .contexts import Process, get_context
from .pipes import Connection, Pipe
from .queue import JoinableQueue as _JoinableQueue
from .queue import Queue as _Queue
from .queue import SimpleQueue as _SimpleQueue
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
    """Return a name or submodule of the standard module, if this module does not define it."""
    if name in _standard.__all__:
        return getattr(_standard, name)
    if not name.startswith("_") and _find_spec(f"multiprocessing.{name}") is not None:
        return _import_module(f"multiprocessing.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_standard.__all__})


def Queue(maxsize: int = 0) -> _Queue:
    """Return a queue to which any number of processes may write, and from which any number may read.

    Arguments:
        maxsize: the number of objects in the queue at which `put` blocks; 0 for no limit.

    Example:
        >>> import rushlight.multiprocessing as mp
        >>> queue = mp.Queue()
        >>> queue.put(torch.ones(2))
        >>> queue.get()
        tensor([1., 1.])
    """
    queue: _Queue = get_context().Queue(maxsize)
    return queue


def JoinableQueue(maxsize: int = 0) -> _JoinableQueue:
    """Return a queue whose `join` waits until `task_done` has been called for each object that was put.

    Arguments:
        maxsize: the number of objects in the queue at which `put` blocks; 0 for no limit.

    Example:
        >>> import rushlight.multiprocessing as mp
        >>> queue = mp.JoinableQueue()
        >>> queue.put("task")
        >>> _ = queue.get()
        >>> queue.task_done()
        >>> queue.join()
    """
    queue: _JoinableQueue = get_context().JoinableQueue(maxsize)
    return queue


def SimpleQueue() -> _SimpleQueue:
    """Return a queue that stores objects in a pipe.

    Any number of processes may write to the queue and read from it. `put` waits while the pipe is full.

    Example:
        >>> import rushlight.multiprocessing as mp
        >>> queue = mp.SimpleQueue()
        >>> queue.put({"x": torch.ones(2)})
        >>> queue.get()
        {'x': tensor([1., 1.])}
    """
    queue: _SimpleQueue = get_context().SimpleQueue()
    return queue


def Pool(
    processes: int | None = None,
    initializer: Any = None,
    initargs: Any = (),
    maxtasksperchild: int | None = None,
) -> Any:
    """Return a pool of processes. Arguments and results may contain tensors.

    Each new process starts with the parent's number of threads divided by the number of processes, and with at least one
    thread. If the environment variable OMP_NUM_THREADS is set, the variable determines the number of threads.

    Arguments:
        processes: number of processes; the number of processors by default.
        initializer, initargs: a function that each process calls with these arguments when it starts.
        maxtasksperchild: number of tasks after which a process is replaced.

    Example::

        import rushlight.multiprocessing as mp

        if __name__ == "__main__":
            with mp.Pool(2) as pool:
                print(pool.map(torch.exp, [torch.zeros(2), torch.ones(2)]))
    """
    return get_context().Pool(processes, initializer, initargs, maxtasksperchild)


_STRATEGIES = {"file_descriptor", "file_system"}
_strategy = "file_descriptor"


def get_all_sharing_strategies() -> set[str]:
    """Return the names of PyTorch's sharing strategies; see `set_sharing_strategy`.

    Example:
        >>> sorted(torch.multiprocessing.get_all_sharing_strategies())
        ['file_descriptor', 'file_system']
    """
    return set(_STRATEGIES)


def get_sharing_strategy() -> str:
    """Return the name of the sharing strategy that was set last.

    Example:
        >>> torch.multiprocessing.get_sharing_strategy()
        'file_descriptor'
    """
    return _strategy


def set_sharing_strategy(new_strategy: str) -> None:
    """Set the sharing strategy, which has no effect.

    The function exists for programs written for PyTorch. All tensors are shared in the same way, regardless
    of the strategy. Raises ValueError if PyTorch has no strategy of this name.

    Example:
        >>> torch.multiprocessing.set_sharing_strategy("file_descriptor")
    """
    global _strategy
    if new_strategy not in _STRATEGIES:
        raise ValueError(
            f"unknown sharing strategy {new_strategy!r}: must be one of {', '.join(sorted(_STRATEGIES))}"
        )
    _strategy = new_strategy


def empty_cache() -> None:
    """Return unused shared memory to the system.

    Example:
        >>> x = torch.ones(1000).share_memory_()
        >>> del x
        >>> torch.multiprocessing.empty_cache()
    """
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
