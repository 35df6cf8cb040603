"""Settings for the threads that a backward pass uses."""

from __future__ import annotations

from types import TracebackType

from rushlight_autograd._C import _get_parallel_branches, _set_device_threads, _set_parallel_branches

__all__ = ["parallel_branches", "set_multithreading_enabled"]

_allowed = True


class parallel_branches:  # noqa: N801
    """A context manager within which backward passes run independent branches of the graph on several threads.

    The setting applies to backward passes that the calling thread starts. They become faster if the graph has
    long branches whose operators are too small to use all processors. Passing a node to another thread takes
    a few microseconds. Gradients are added in the same order as in a pass on one thread, so the results are
    identical bit for bit. While several nodes run at the same time, the operators of each node use one
    thread, and the pass uses at most `get_num_threads()` threads. Hooks and Functions run on any of these
    threads, one at a time; the order of hooks in different branches is not defined.

    Args:
        enabled: whether independent branches run on several threads; if False, each pass runs them one after the other.

    Example:
        >>> x = torch.ones(2, requires_grad=True)
        >>> with parallel_branches():
        ...     (x.exp().sum() + x.sin().sum()).backward()
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
    """Set whether backward passes may use other threads. As a context manager, restore the setting after the block.

    By default, each device other than the CPU has a thread that runs its nodes, and :class:`parallel_branches` uses
    further threads. False runs every node on the thread that starts the pass.

    Args:
        mode: whether backward passes may use other threads.

    Example:
        >>> x = torch.ones(2, requires_grad=True)
        >>> with torch.autograd.set_multithreading_enabled(False):
        ...     x.exp().sum().backward()
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
