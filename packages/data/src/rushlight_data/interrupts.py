"""Handling of a Ctrl-C that arrives while Python runs a finalizer.

Python prints and discards exceptions of finalizers (`__del__` and weak-reference callbacks, including those of the import
system), even KeyboardInterrupt. Without `KeepInterrupts`, a loader that waits for its workers would ignore the Ctrl-C.
"""

from __future__ import annotations

import sys
import threading
from typing import Any

__all__ = ["KeepInterrupts", "raise_kept_interrupt"]

_kept = False


class KeepInterrupts:
    """Context manager that stores a KeyboardInterrupt that a finalizer raises, and raises it again later.

    `raise_kept_interrupt()` raises the stored exception. If `raise_kept_interrupt` is not called, the exception is raised
    when the context ends, unless another exception ends the context. The context manager has no effect outside the main
    thread, because only the main thread handles signals.

    Example:
        >>> with KeepInterrupts():
        ...     raise_kept_interrupt()  # nothing was interrupted
    """

    def __enter__(self) -> None:
        self._hook: Any = None
        if threading.current_thread() is threading.main_thread():
            self._hook, sys.unraisablehook = sys.unraisablehook, self._keep

    def __exit__(self, kind: Any, value: Any, traceback: Any) -> None:
        global _kept
        if self._hook is None:
            return
        sys.unraisablehook = self._hook
        if kind is None or kind is StopIteration:
            raise_kept_interrupt()
        _kept = False  # another exception is already being raised

    def _keep(self, unraisable: sys.UnraisableHookArgs) -> None:
        global _kept
        if issubclass(unraisable.exc_type, KeyboardInterrupt):
            _kept = True
        else:
            self._hook(unraisable)


def raise_kept_interrupt() -> None:
    """Raise KeyboardInterrupt if `KeepInterrupts` has stored one.

    Example:
        >>> raise_kept_interrupt()  # nothing was interrupted
    """
    global _kept
    if _kept:
        _kept = False
        raise KeyboardInterrupt
