"""Keep a Ctrl-C that arrives while Python runs a finalizer.

Python prints exceptions of finalizers (`__del__`, weak-reference callbacks, those of the import system among
them) and drops them, a KeyboardInterrupt too. A loader that went on to wait for workers would wait for good.
"""

from __future__ import annotations

import sys
import threading
from typing import Any

__all__ = ["KeepInterrupts", "raise_kept_interrupt"]

_kept = False


class KeepInterrupts:
    """A context in which a KeyboardInterrupt of a finalizer is kept and raised by `raise_kept_interrupt()`,
    or at the end. It does nothing in other threads than the main one, where Python handles signals."""

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
        _kept = False  # another exception ends the loop

    def _keep(self, unraisable: sys.UnraisableHookArgs) -> None:
        global _kept
        if issubclass(unraisable.exc_type, KeyboardInterrupt):
            _kept = True
        else:
            self._hook(unraisable)


def raise_kept_interrupt() -> None:
    """Raise KeyboardInterrupt if one was kept."""
    global _kept
    if _kept:
        _kept = False
        raise KeyboardInterrupt
