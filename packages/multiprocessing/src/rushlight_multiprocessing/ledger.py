"""Counters of the objects in a queue. The counters stay correct if a process is killed.

A `Ledger` is an anonymous file that all processes of a queue map into memory. Each process has a slot with two numbers: how
many objects it has put into the queue but not yet sent, and how many tasks it has taken but not yet reported as done. The
process locks its slot with an open file description lock (`F_OFD_SETLK`). The kernel releases this lock when the process
ends for any reason, so the numbers of a process that has ended are recognized and removed. A second lock of the same kind,
the lock of the ledger, protects the counts of all processes. The kernel also releases this second lock if the process that
holds it is killed.

Note [Room without a lock]
Locking the ledger takes a sixth of the time that sending a small message takes. If a queue has a limit and seems to have
room, a process with a slot therefore puts a small object without locking the ledger. The process first counts the object as
unsent. The process then reads the counts of all processes, and finally the number of messages in the pipe. If the sum is
within the limit, the process sends the object and then no longer counts it as unsent. A process that has locked the ledger
takes the same steps in the same order. If two processes put objects at the same time, at least one of them reads the other's
count: each process releases the lock `_own` between the write and the reads, and this release acts as a memory barrier.
Together, the processes therefore never exceed the limit. An object that has just been sent may be counted twice for a
moment, and two processes that compete for the last free element of the queue may both find no room. A process may therefore
find less room than there is, but never more. If there seems to be no room, the process locks the ledger and removes the
counts of processes that have ended.

A process without a slot can only take objects, and each object that it takes makes room for another one. As long as only one
process has ever had a slot, this process computes how many objects there is room for, and reads the counts again only after
it has put that many objects. For each of these objects, it only checks that no other process has claimed a slot.
"""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os
import struct
import threading
import weakref
from multiprocessing import reduction
from typing import Any

from .arena import reopen

_FLOCK = struct.Struct("hhqqi4x")  # struct flock
SLOTS = 2000  # processes that put objects into one queue, or take tasks from it, at the same time
_BYTES = 32768
# Indices of words: the number of slots in use, the tasks of freed slots, and the first slot.
_COUNT, _LOST, _ORPHANED, _FIRST = 0, 1, 2, 4


def _lock(kind: int, start: int) -> bytes:
    return _FLOCK.pack(kind, os.SEEK_SET, start, 1, 0)


_LOCKED, _UNLOCKED = _lock(fcntl.F_WRLCK, 0), _lock(fcntl.F_UNLCK, 0)


class Ledger:
    """The counts of one queue. A `with` statement locks the ledger; docstrings state which methods do not need the lock.

    Raises RuntimeError if more than `SLOTS` processes use a queue.
    """

    def __init__(self, fd: int | None = None) -> None:
        if fd is None:
            fd = os.memfd_create("rushlight-queue", os.MFD_CLOEXEC)
            os.ftruncate(fd, _BYTES)
        self._fd = reopen(fd)  # a description with separate locks
        try:
            # mmap keeps a copy of a descriptor, which must have no locks.
            unlocked = reopen(fd)
            self._words = memoryview(mmap.mmap(unlocked, _BYTES)).cast("q")
            os.close(unlocked)
        finally:
            os.close(fd)
        self._start_here()
        _ledgers.add(self)

    def _start_here(self, inherited: bool = False) -> None:
        self._threads = threading.Lock()
        self._own = threading.Lock()  # protects the number of unsent objects of this process
        self._slot: int | None = None
        self._inherited = inherited

    def __enter__(self) -> None:
        self._threads.acquire()
        try:
            if self._inherited:
                self._open_again()
            fcntl.fcntl(self._fd, fcntl.F_OFD_SETLKW, _LOCKED)
        except BaseException:
            self._threads.release()
            raise

    def __exit__(self, *args: object) -> None:
        try:
            fcntl.fcntl(self._fd, fcntl.F_OFD_SETLK, _UNLOCKED)
        finally:
            self._threads.release()

    @property
    def has_slot(self) -> bool:
        """Whether this process has a slot. The ledger need not be locked."""
        return self._slot is not None

    def is_alone(self) -> bool:
        """Return whether the first slot is the only one that was ever claimed. The ledger need not be locked."""
        return self._words[_COUNT] == 1

    def claim_slot(self) -> None:
        """Claim a slot for this process unless it has one."""
        self._mine()

    def add_unsent(self, count: int) -> None:
        """Add `count` to this process's number of unsent objects.

        A process without a slot must hold the ledger's lock; see `has_slot`."""
        word = self._mine()
        with self._own:
            self._words[word] += count

    def set_first_unsent(self) -> None:
        """Set the number of unsent objects of this process from 0 to 1. `remove_unsent` must follow.

        The process must have a slot; the ledger need not be locked."""
        with self._own:
            self._words[self._mine()] = 1  # not += 1: an interrupted call may have left a count

    def remove_unsent(self) -> None:
        """Set this process's number of unsent objects to 0. If the process has a slot, the ledger need not be locked."""
        self._words[self._mine()] = 0

    def add_taken(self, count: int) -> None:
        """Add `count` to the number of tasks that this process has taken but not yet reported as done."""
        self._words[self._mine() + 1] += count

    def unsent(self) -> int:
        """Return the number of unsent objects of all processes. The ledger need not be locked."""
        return sum(self._words[_FIRST : self._end() : 2])

    def taken(self) -> int:
        """Return the number of tasks that were taken but not yet reported as done.

        Tasks of killed processes are no longer included after `forget_dead` has been called."""
        return sum(self._words[_FIRST + 1 : self._end() : 2]) + self._words[_ORPHANED]

    def lost(self) -> int:
        """Return the number of tasks that were lost: killed processes had taken but not finished them."""
        return self._words[_LOST]

    def finish_one(self) -> bool:
        """Subtract 1 from this process's number of taken tasks or, if that is 0, from the number of another process.

        Return False if the number of taken tasks is 0 for every process."""
        taken = range(_FIRST + 1, self._end(), 2)
        for word in [self._mine() + 1, _ORPHANED, *taken, _LOST]:
            if self._words[word] > 0:
                self._words[word] -= 1
                return True
        return False

    def forget_dead(self) -> None:
        """Remove the counts of processes that have ended, and add the tasks they did not finish to `lost`."""
        for word in range(_FIRST, self._end(), 2):
            used = self._words[word] or self._words[word + 1]
            if used and word != self._slot and not self._is_alive(word):
                self._free(word, _LOST)

    def leave(self) -> None:
        """Free the slot of this process. Other processes can still report that the tasks of this process are done."""
        if self._slot is not None:
            self._free(self._slot, _ORPHANED)

    def _mine(self) -> int:
        """Return the index of the first word of this process's slot. The first call claims the slot."""
        if self._slot is None:
            for word in range(_FIRST, _FIRST + 2 * SLOTS, 2):
                try:
                    fcntl.fcntl(self._fd, fcntl.F_OFD_SETLK, _lock(fcntl.F_WRLCK, word))
                except BlockingIOError:
                    continue
                break
            else:
                raise RuntimeError(f"at most {SLOTS} processes can use one queue at the same time")
            self._free(word, _LOST)
            self._slot = word
            self._words[_COUNT] = max(self._words[_COUNT], (word - _FIRST) // 2 + 1)
        return self._slot

    def _free(self, word: int, where: int) -> None:
        self._words[where] += self._words[word + 1]
        self._words[word] = self._words[word + 1] = 0

    def _end(self) -> int:
        return _FIRST + 2 * self._words[_COUNT]

    def _is_alive(self, word: int) -> bool:
        """Return whether the process that claimed the slot with first word `word` still runs."""
        found = fcntl.fcntl(self._fd, fcntl.F_OFD_GETLK, _lock(fcntl.F_WRLCK, word))
        return bool(_FLOCK.unpack(found)[0] != fcntl.F_UNLCK)

    def _after_fork(self) -> None:
        self._start_here(inherited=True)
        with contextlib.suppress(OSError):  # too many open files: try again at the first use
            self._open_again()

    def _open_again(self) -> None:
        """Open a new file description for this process. Locks of the inherited file description belong to the parent."""
        inherited, self._fd = self._fd, reopen(self._fd)
        os.close(inherited)
        self._inherited = False

    def __del__(self) -> None:
        if hasattr(self, "_fd"):
            os.close(self._fd)


_ledgers: weakref.WeakSet[Ledger] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for ledger in list(_ledgers):
        ledger._after_fork()


os.register_at_fork(after_in_child=_after_fork_in_child)


def _rebuild(dup: Any) -> Ledger:
    return Ledger(dup.detach())


def _reduce(ledger: Ledger) -> Any:
    return _rebuild, (reduction.DupFd(ledger._fd),)


reduction.register(Ledger, _reduce)
