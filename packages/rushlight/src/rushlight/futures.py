"""Results that come later."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar, cast

__all__ = ["Future", "collect_all", "wait_all"]

T = TypeVar("T")
S = TypeVar("S")


class Future(Generic[T]):
    """A result that another thread sets.

    Args:
        devices: accepted; a result is there for all devices when it is set.
    """

    def __init__(self, *, devices: Any = None) -> None:
        self._ready = threading.Event()
        self._lock = threading.Lock()
        self._value: T | None = None
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[], None]] = []

    def done(self) -> bool:
        """Whether it is set, to a result or an exception."""
        return self._ready.is_set()

    def wait(self) -> T:
        """The result, when it is there. Raises what was set as an exception."""
        self._ready.wait()
        if self._error is not None:
            raise self._error
        return cast(T, self._value)

    value = wait

    def _set(self, value: T | None, error: BaseException | None) -> None:
        with self._lock:
            if self._ready.is_set():
                raise RuntimeError("Future: it is set already")
            self._value, self._error = value, error
            callbacks, self._callbacks = self._callbacks, []
            self._ready.set()
        for callback in callbacks:
            callback()

    def set_result(self, result: T) -> None:
        """Sets it. Raises RuntimeError where it is set already."""
        self._set(result, None)

    def set_exception(self, result: BaseException) -> None:
        """What those who wait for it will raise."""
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
        """Calls callback(self) when it is set, in the thread that sets it; at once if it is."""
        self._when_done(lambda: callback(self))

    def then(self, callback: Callable[[Future[T]], S]) -> Future[S]:
        """A future of callback(self)."""
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
    """A future of the list, set when all of it are."""
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
    """The results, when all are there. Raises the first exception among them."""
    return [future.wait() for future in futures]
