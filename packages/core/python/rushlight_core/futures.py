"""Futures: results that another thread sets later."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar, cast

__all__ = ["Future", "collect_all", "wait_all"]

T = TypeVar("T")
S = TypeVar("S")


class Future(Generic[T]):
    """A result that another thread sets later.

    Args:
        devices: ignored; accepted for compatibility with PyTorch.

    Raises:
        RuntimeError: a result or an exception is set twice.
        TypeError: `set_exception` is called with an object that is not an Exception.

    Example:
        >>> future = torch.futures.Future()
        >>> following = future.then(lambda done: done.wait() + 1)
        >>> future.set_result(1)
        >>> following.wait()
        2
    """

    def __init__(self, *, devices: Any = None) -> None:
        self._ready = threading.Event()
        self._lock = threading.Lock()
        self._value: T | None = None
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[], None]] = []

    def done(self) -> bool:
        """Return whether a result or an exception has been set."""
        return self._ready.is_set()

    def wait(self) -> T:
        """Wait for the result and return it. If an exception is set instead of a result, raise the exception."""
        self._ready.wait()
        if self._error is not None:
            raise self._error
        return cast(T, self._value)

    value = wait

    def _set(self, value: T | None, error: BaseException | None) -> None:
        with self._lock:
            if self._ready.is_set():
                raise RuntimeError(
                    "Future: a result or an exception is already set, and can be set only once"
                )
            self._value, self._error = value, error
            callbacks, self._callbacks = self._callbacks, []
            self._ready.set()
        for callback in callbacks:
            callback()

    def set_result(self, result: T) -> None:
        """Set the result. Raises RuntimeError if the future already has a result or an exception."""
        self._set(result, None)

    def set_exception(self, result: BaseException) -> None:
        """Set the exception that `wait` raises. Raises RuntimeError if the future already has a result or an exception."""
        if not isinstance(result, Exception):
            raise TypeError(
                f"Future.set_exception(result): must be an Exception, not {type(result).__name__}"
            )
        self._set(None, result)

    def _when_done(self, callback: Callable[[], None]) -> None:
        with self._lock:
            if not self._ready.is_set():
                self._callbacks.append(callback)
                return
        callback()

    def add_done_callback(self, callback: Callable[[Future[T]], None]) -> None:
        """Call `callback(self)` in the thread that completes the future, or immediately if the future is complete."""
        self._when_done(lambda: callback(self))

    def then(self, callback: Callable[[Future[T]], S]) -> Future[S]:
        """Return a future for the result of `callback(self)`, which is called when this future completes."""
        following: Future[S] = Future()

        def run() -> None:
            try:
                made = callback(self)
            except Exception as error:
                following.set_exception(error)
            else:
                following.set_result(made)

        self._when_done(run)
        return following


def collect_all(futures: Sequence[Future[Any]]) -> Future[list[Future[Any]]]:
    """Return a future that completes when all `futures` have completed. The result of the new future is the list `futures`.

    Example:
        >>> a, b = torch.futures.Future(), torch.futures.Future()
        >>> both = torch.futures.collect_all([a, b])
        >>> a.set_result(1)
        >>> both.done()
        False
        >>> b.set_result(2)
        >>> [one.value() for one in both.wait()]
        [1, 2]
    """
    whole: Future[list[Future[Any]]] = Future()
    rest, lock = [len(futures)], threading.Lock()

    def one_less(_: Any) -> None:
        with lock:
            rest[0] -= 1
            last = not rest[0]
        if last:
            whole.set_result(list(futures))

    if not futures:
        whole.set_result([])
    for future in futures:
        future.add_done_callback(one_less)
    return whole


def wait_all(futures: Sequence[Future[Any]]) -> list[Any]:
    """Wait for all futures, and return their results. If futures have exceptions, the first exception is raised.

    Example:
        >>> a, b = torch.futures.Future(), torch.futures.Future()
        >>> a.set_result(1)
        >>> b.set_result(2)
        >>> torch.futures.wait_all([a, b])
        [1, 2]
    """
    return [future.wait() for future in futures]
