"""Exceptions of the `DataLoader`."""

from __future__ import annotations

import pickle
import signal
import traceback
from collections.abc import Sequence
from typing import Any

from .marks import READING_AT_ONCE

__all__ = ["LoaderTimeout", "WorkerError", "WorkerExited"]

_SHOWN = 16
_NAMED = 1024  # of a batch that fails as a whole


class WorkerError(RuntimeError):
    """An error in a worker.

    The loader raises the worker's own exception with a WorkerError as its `__cause__`. If that exception
    cannot be pickled, the WorkerError itself is raised.

    Attributes:
        worker_id: number of the worker.
        pid: process id of the worker; None for a thread.
        batch: number of the batch in the epoch.
        index: index of the sample that failed; None if the error does not belong to one sample.
        indices: indices of the batch; None for an iterable dataset.
        traceback: traceback of the worker, as text.

    Example:
        >>> class Broken(torch.utils.data.Dataset):
        ...     def __len__(self):
        ...         return 1
        ...
        ...     def __getitem__(self, index):
        ...         raise ValueError("no such file")
        >>> try:
        ...     list(torch.utils.data.DataLoader(Broken(), num_workers=1, multiprocessing_context="fork"))
        ... except ValueError as error:
        ...     print(type(error.__cause__).__name__, error.__cause__.index)
        WorkerError 0
    """

    worker_id: int | None = None
    pid: int | None = None
    batch: int | None = None
    index: Any = None
    indices: list[Any] | None = None
    traceback: str = ""


class WorkerExited(WorkerError):  # noqa: N818
    """Raised when a worker exits unexpectedly or is killed by a signal.

    Attributes:
        exitcode: exit code of the process, as in `multiprocessing.Process.exitcode`.
        lost: indices of the samples that were assigned to the worker and did not arrive.

    Example:
        >>> issubclass(WorkerExited, RuntimeError)
        True
    """

    exitcode: int | None = None
    lost: list[Any]


class LoaderTimeout(WorkerError):  # noqa: N818
    """Raised when no batch arrives within the loader's `timeout`.

    Example:
        >>> issubclass(LoaderTimeout, RuntimeError)
        True
    """


class Failure:
    """A worker's exception in the form in which it is sent to the loader.

    The argument `index` is a tuple that contains the index of the sample, or an empty tuple if the error does
    not belong to one sample. If the worker is a thread, `exception` is the exception itself. If the worker is
    a process, `pickled` is the pickled exception, or None if the exception cannot be pickled."""

    def __init__(
        self,
        worker_id: int,
        pid: int | None,
        batch: int | None,
        doing: str,
        index: tuple[Any, ...],
        indices: list[Any] | None,
        error: BaseException,
        sends_objects: bool,
    ) -> None:
        self.worker_id = worker_id
        self.pid = pid
        self.batch = batch
        self.doing = doing
        self.index: Any = index[0] if index else None
        if not _can_be_sent(self.index):
            self.index = repr(self.index)
        self.indices = indices
        self.text: str = "".join(traceback.format_exception(error))
        self.summary: str = "".join(traceback.format_exception_only(error)).strip()
        # A transport within one process carries the exception as it is.
        self.exception: BaseException | None = error if sends_objects else None
        self.pickled: bytes | None = None if sends_objects else _pickle(error)

    def error(self) -> BaseException:
        """Return the exception that the loader raises, if possible of the class of the worker's exception."""
        where = f"DataLoader worker {self.worker_id}" + (f" (pid {self.pid})" if self.pid is not None else "")
        cause = WorkerError(f"in {where}, while {self.doing}:\n{self.text}")
        cause.worker_id, cause.pid, cause.batch = self.worker_id, self.pid, self.batch
        cause.index, cause.indices, cause.traceback = self.index, self.indices, self.text
        error = self.exception if self.exception is not None else _unpickle(self.pickled)
        if error is None or isinstance(error, StopIteration):
            # The exception cannot be unpickled, or is a StopIteration, which would end the caller's loop.
            cause.args = (f"{self.summary}\nIn {where}, while {self.doing}:\n{self.text}",)
            return cause
        error.add_note(f"in {where}, while {self.doing}")
        error.__cause__ = cause
        return error


def exited(
    worker_id: int,
    pid: int | None,
    exitcode: int | None,
    lost: Sequence[tuple[int, Sequence[Any]]],
    reading: tuple[int, int] | None = None,
) -> WorkerExited:
    """Return the error that the loader raises for a worker that has ended unexpectedly.

    `lost` contains the number and the sample indices of each batch that the worker had not delivered.
    `reading` contains the number of the batch and the offset of the sample that the worker was reading; see
    `Marks`."""
    if exitcode is None:
        how, hint = "ended unexpectedly", ""
    elif exitcode < 0:
        try:
            name = signal.Signals(-exitcode).name
        except ValueError:
            name = f"signal {-exitcode}"
        how = f"was killed by {name}"
        hints: dict[int, str] = {
            signal.SIGKILL: "\nThe system may be out of memory: see the kernel's log.",
            signal.SIGBUS: "\nShared memory may be exhausted, or a memory-mapped file was truncated.",
            signal.SIGSEGV: "\nA native library crashed; run python -X faulthandler for a traceback.",
        }
        hint = hints.get(-exitcode, "")
    else:
        how, hint = f"exited with code {exitcode}", ""
    held = "; ".join(f"batch {batch} (samples {shown(indices)})" for batch, indices in lost) or "no batch"
    pid_text = f" (pid {pid})" if pid is not None else ""
    doing, index = "", None
    batch, indices = lost[0] if lost else (None, None)
    # The lanes of a stream number their batches separately. The worker reads the first of equal numbers.
    current = [each for each in lost if reading is not None and each[0] == reading[0]][:1]
    if reading is not None and current:
        (batch, indices), offset = current[0], reading[1]
        if offset >= 0:
            index = indices[offset]
            doing = f" while it read sample {index!r} of batch {batch}"
        elif offset == READING_AT_ONCE:
            doing = f" while it read batch {batch} at once ({named(indices)})"
        else:
            doing = f" while it collated or sent batch {batch} ({named(indices)})"
    error = WorkerExited(f"DataLoader worker {worker_id}{pid_text} {how}{doing}\nUnfinished: {held}{hint}")
    error.worker_id, error.pid, error.exitcode = worker_id, pid, exitcode
    error.lost = [index for _, indices in lost for index in indices]
    error.batch, error.index, error.indices = batch, index, None if indices is None else list(indices)
    return error


def shown(indices: Sequence[Any], at_most: int = _SHOWN) -> str:
    """Format a list of indices, and shorten it if it has more than `at_most` items."""
    text = ", ".join(repr(index) for index in indices[:at_most])
    return text + (f", … {len(indices)} in all" if len(indices) > at_most else "")


def named(indices: Sequence[Any]) -> str:
    """Return the sample indices of a batch as text, for errors in which the failing sample is not known."""
    return f"sample{'s' * (len(indices) != 1)} {shown(indices, _NAMED)}"


def _pickle(error: BaseException) -> bytes | None:
    try:
        pickled = pickle.dumps(error)
        # Many exceptions can be pickled but not unpickled, because their constructors need other arguments.
        pickle.loads(pickled)
    except Exception:
        return None
    return pickled


def _unpickle(pickled: bytes | None) -> BaseException | None:
    if pickled is None:
        return None
    try:
        error = pickle.loads(pickled)
    except Exception:
        return None
    return error if isinstance(error, BaseException) else None


def _can_be_sent(index: Any) -> bool:
    return isinstance(index, (int, str, bytes, tuple, list, type(None)))
