"""What a loader raises when loading fails."""

from __future__ import annotations

import pickle
import signal
import traceback
from collections.abc import Sequence
from typing import Any

__all__ = ["LoaderTimeout", "WorkerError", "WorkerExited"]

_SHOWN = 16


class WorkerError(RuntimeError):
    """What happened in a worker. It is the `__cause__` of the exception that the worker raised, or is raised
    itself where that exception could not be sent.

    worker_id: number of the worker; pid: its process id (None for a thread); batch: number of the batch in
    the epoch; index: the sample that was read, as given to the dataset, or None if no single one was;
    indices: those of the whole batch, or None; traceback: the worker's traceback as text."""

    worker_id: int | None = None
    pid: int | None = None
    batch: int | None = None
    index: Any = None
    indices: list[Any] | None = None
    traceback: str = ""


class WorkerExited(WorkerError):  # noqa: N818
    """A worker ended without being asked to: killed by a signal, or by exiting. `exitcode` as in
    multiprocessing; `lost`: indices of the samples it had been given and not delivered."""

    exitcode: int | None = None
    lost: list[Any]


class LoaderTimeout(WorkerError):  # noqa: N818
    """No batch came within the loader's `timeout`."""


class Failure:
    """An exception on its way from a worker. `index` holds the sample's index, or is empty; `pickled` or
    `exception` is the exception itself, if it can be had."""

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
        self.index = index[0] if index else None
        if not _can_be_sent(self.index):
            self.index = repr(self.index)
        self.indices = indices
        self.text = "".join(traceback.format_exception(error))
        self.summary = "".join(traceback.format_exception_only(error)).strip()
        # A transport within one process carries the exception as it is.
        self.exception = error if sends_objects else None
        self.pickled = None if sends_objects else _pickle(error)

    def error(self) -> BaseException:
        """The exception to raise in the loader's process: of the same class as in the worker, if it can be
        made."""
        where = f"DataLoader worker {self.worker_id}" + (f" (pid {self.pid})" if self.pid is not None else "")
        cause = WorkerError(f"in {where}, while {self.doing}:\n{self.text}")
        cause.worker_id, cause.pid, cause.batch = self.worker_id, self.pid, self.batch
        cause.index, cause.indices, cause.traceback = self.index, self.indices, self.text
        error = self.exception if self.exception is not None else _unpickle(self.pickled)
        if error is None or isinstance(error, StopIteration):
            # Not to be made here; or it would end the caller's loop as if all were well.
            cause.args = (f"{self.summary}\nIn {where}, while {self.doing}:\n{self.text}",)
            return cause
        error.add_note(f"in {where}, while {self.doing}")
        error.__cause__ = cause
        return error


def exited(
    worker_id: int, pid: int | None, exitcode: int | None, lost: Sequence[tuple[int, Sequence[Any]]]
) -> WorkerExited:
    """The error for a worker that is gone; `lost`: number and indices of each batch it held."""
    if exitcode is None:
        how, hint = "went away", ""
    elif exitcode < 0:
        try:
            name = signal.Signals(-exitcode).name
        except ValueError:
            name = f"signal {-exitcode}"
        how = f"was killed by {name}"
        hints: dict[int, str] = {
            signal.SIGKILL: "\nIf nobody did it by hand, memory may have run out: see the kernel's log.",
            signal.SIGBUS: "\nMemory may have run out, or a mapped file was cut short.",
            signal.SIGSEGV: "\nA native library crashed; python -X faulthandler shows where.",
        }
        hint = hints.get(-exitcode, "")
    else:
        how, hint = f"exited with code {exitcode}", ""
    held = "; ".join(f"batch {batch} (samples {shown(indices)})" for batch, indices in lost) or "no batch"
    pid_text = f" (pid {pid})" if pid is not None else ""
    error = WorkerExited(f"DataLoader worker {worker_id}{pid_text} {how} while it held {held}{hint}")
    error.worker_id, error.pid, error.exitcode = worker_id, pid, exitcode
    error.lost = [index for _, indices in lost for index in indices]
    if lost:
        error.batch, error.indices = lost[0][0], list(lost[0][1])
    return error


def shown(indices: Sequence[Any]) -> str:
    """Indices as text, the first few of many."""
    text = ", ".join(repr(index) for index in indices[:_SHOWN])
    return text + (f", … {len(indices)} in all" if len(indices) > _SHOWN else "")


def _pickle(error: BaseException) -> bytes | None:
    try:
        pickled = pickle.dumps(error)
        pickle.loads(
            pickled
        )  # many exceptions are written but not read: their constructors want other arguments
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
