"""Exceptions that name the process that failed and the reason."""

from __future__ import annotations

import signal
from typing import Any

__all__ = ["ProcessException", "ProcessExitedException", "ProcessRaisedException"]


class ProcessException(Exception):  # noqa: N818 (PyTorch's name)
    """Raised when a process started by `spawn` fails.

    `error_index` is the index of the process, from 0 to nprocs - 1; `pid` and `error_pid` are its process ID.

    Example:
        >>> ProcessException("it failed", 1, 4321).pid
        4321
    """

    error_pid: int

    def __init__(self, msg: str, error_index: int, pid: int) -> None:
        super().__init__(msg)
        self.msg = msg
        self.error_index = error_index
        self.pid = self.error_pid = pid

    def __reduce__(self) -> Any:
        return type(self), (self.msg, self.error_index, self.pid)


class ProcessRaisedException(ProcessException):
    """Raised when the function that `spawn` runs in a process raises an exception.

    The message contains the traceback. `__cause__` is the exception itself if it can be pickled.

    Example:
        >>> issubclass(ProcessRaisedException, ProcessException)
        True
    """

    def __init__(self, msg: str, error_index: int, error_pid: int) -> None:
        super().__init__(msg, error_index, error_pid)


class ProcessExitedException(ProcessException):
    """Raised when a process is killed by a signal or exits with a code other than 0.

    Example:
        >>> ProcessExitedException("it was killed", 1, 4321, -9, "SIGKILL").signal_name
        'SIGKILL'
    """

    def __init__(
        self, msg: str, error_index: int, error_pid: int, exit_code: int, signal_name: str | None = None
    ) -> None:
        super().__init__(msg, error_index, error_pid)
        self.exit_code = exit_code
        self.signal_name = signal_name

    def __reduce__(self) -> Any:
        return type(self), (self.msg, self.error_index, self.pid, self.exit_code, self.signal_name)


def exited(where: str, index: int, process: Any, what: str = "") -> ProcessExitedException:
    """Return the ProcessExitedException for a process that ended before it finished its task.

    The error text begins with `where`, the name of the process, and ends with `what`, text about the task."""
    code = process.exitcode
    if code >= 0:
        return ProcessExitedException(f"{where} ended with exit code {code}{what}", index, process.pid, code)
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return ProcessExitedException(f"{where} was ended by {name}{what}", index, process.pid, code, name)
