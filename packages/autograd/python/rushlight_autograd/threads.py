"""How many threads a backward pass uses."""

from __future__ import annotations

from types import TracebackType

from rushlight_autograd._C import _get_parallel_branches, _set_device_threads, _set_parallel_branches

__all__ = ["parallel_branches", "set_multithreading_enabled"]

_allowed = True


class parallel_branches:  # noqa: N801
    """Inside, backward passes that this thread starts run independent branches of the graph on several threads.

    For graphs whose branches are heavy and whose operators are each too small for all processors, or serial: handing a
    node over costs some microseconds. Gradients are added up in the order of a pass on one thread, so the results are the
    same, bit by bit. While several nodes run, each has one thread; together they stay within `get_num_threads()`.

    Hooks and Functions may run on any of the threads, one at a time, since they need Python's lock; in which order those
    of different branches run is not said. An exception ends the pass and arrives here.
    """

    def __init__(self, enabled: bool = True) -> None:
        self.enabled = enabled
        self._before: list[bool] = []

    def __enter__(self) -> None:
        self._before.append(_set_parallel_branches(self.enabled and _allowed))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        _set_parallel_branches(self._before.pop())


class set_multithreading_enabled:  # noqa: N801
    """Whether backward passes may use threads beside the one that starts them: at once, or until the end of a `with` block.

    They do for devices other than the CPU, each of which has a thread that runs its nodes, and where `parallel_branches`
    asks for it. False gives every node to the thread that starts the pass.
    """

    def __init__(self, mode: bool) -> None:
        global _allowed
        self._before = _allowed, _get_parallel_branches()
        _allowed = bool(mode)
        _set_device_threads(_allowed)
        if not mode:
            _set_parallel_branches(False)

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        global _allowed
        _allowed, branches = self._before
        _set_device_threads(_allowed)
        _set_parallel_branches(branches)
