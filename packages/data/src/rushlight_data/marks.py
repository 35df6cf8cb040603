"""Shared memory in which each worker records what it reads, so that the error after a crash names the sample."""

from __future__ import annotations

import mmap
import os
from typing import Any

_OFFSET_BITS = 32
# Offsets that stand for all samples of a batch.
READING_AT_ONCE = -1  # the dataset reads several samples in one call
COLLATING = -2  # all samples have been read


class Marks:
    """Shared memory in which each worker stores the number of the batch and the offset of the sample that it reads.

    An offset is the position of a sample in its batch, `READING_AT_ONCE` or `COLLATING`. The numbers remain readable if the
    worker crashes."""

    def __init__(self, num_workers: int, fd: int | None = None) -> None:
        self.num_workers = num_workers
        self._fd = os.memfd_create("rushlight-marks", os.MFD_CLOEXEC) if fd is None else fd
        nbytes = 8 * num_workers
        if fd is None:
            os.ftruncate(self._fd, nbytes)
        self._mapping = mmap.mmap(self._fd, nbytes)
        self._words = memoryview(self._mapping).cast("q")
        if fd is None:
            for worker in range(num_workers):
                self._words[worker] = -1

    def __del__(self) -> None:
        os.close(self._fd)

    def __reduce__(self) -> Any:
        from multiprocessing.reduction import DupFd

        return _rebuild, (self.num_workers, DupFd(self._fd))

    def set(self, worker: int, batch: int, offset: int) -> None:
        """Record that a worker reads the sample at `offset` of the batch with the number `batch`."""
        self._words[worker] = batch << _OFFSET_BITS | offset - COLLATING

    def get(self, worker: int) -> tuple[int, int] | None:
        """Return the batch number and the offset that a worker recorded last, or None if there are none."""
        batch, position = divmod(self._words[worker], 1 << _OFFSET_BITS)
        return None if batch < 0 else (batch, position + COLLATING)


def _rebuild(num_workers: int, dup: Any) -> Marks:
    return Marks(num_workers, dup.detach())
