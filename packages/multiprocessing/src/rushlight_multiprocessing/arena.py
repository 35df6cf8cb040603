"""Arenas: anonymous files of shared memory, and who holds which block of them.

Note [Who frees a block]
An arena is a memfd, mapped by every process that uses a tensor in it. Its blocks are handed out by the
process that made the arena (`heap.py`). Somebody has to know when the last process has dropped a block, and
that must survive a process that is killed, so the count is left to the kernel: holding a block is holding a
shared lock on its first byte (`F_OFD_SETLK`, a lock that belongs to an open file description). The kernel
drops the locks of a process that ends, however it ends, and nothing written by a stray pointer can corrupt
them.

* A process opens the memfd anew (`/proc/self/fd/N`) when it attaches an arena, so that its locks are its own.
* A message that carries tensors carries a *parcel* per arena: a fresh open file description that holds the
  locks of the message's blocks. It lives as long as the message, so that the sender may drop the tensor, or
  die, before the message is read; a message nobody reads frees its blocks when the socket that held it is
  closed.
* A forked child gets its own description with the locks of all blocks that the parent held at the fork.
* A block is free when an exclusive lock on it can be taken: the owner tries that when it wants memory.
* Large blocks that were shared one by one are returned to the system by whoever drops them last; see
  `Arena.punch_if_free`.
"""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os
import struct
import sys
import threading
import weakref
from collections import deque
from collections.abc import Iterable, Iterator
from functools import partial

import rushlight_core as core

PAGE = mmap.PAGESIZE
# Blocks of at least this many bytes, shared one by one, give their pages back as soon as they are dropped.
PUNCH_BYTES = 1 << 20

# A lock beyond every arena's end, held by its owner while that lives.
_ALIVE = 1 << 62

_FLOCK = struct.Struct("hhqqi4x")  # struct flock: type, whence, start, length, pid


class Guard:
    """The lock over this process's arenas. A finaliser may run at any moment, also while its own thread holds
    the lock: it leaves the block in `dropped`, for whoever holds the lock to deal with."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.dropped: deque[Block] = deque()

    def __enter__(self) -> None:
        self.lock.acquire()
        try:
            self._settle()
        except BaseException:  # Ctrl-C
            self.lock.release()
            raise

    def __exit__(self, *exc: object) -> None:
        try:
            self._settle()
        finally:
            self.lock.release()
        self._settle_if_free()

    def drop(self, block: Block) -> None:
        self.dropped.append(block)
        self._settle_if_free()

    def _settle(self) -> None:
        while self.dropped:
            self.dropped.popleft()._forget_view()

    def _settle_if_free(self) -> None:
        # Again after the release: a block may have come between the last look and the release.
        while self.dropped and self.lock.acquire(blocking=False):
            try:
                self._settle()
            finally:
                self.lock.release()


guard = Guard()
# Every arena this process has mapped, by key. Blocks, connections and the heap keep them alive.
attached: weakref.WeakValueDictionary[int, Arena] = weakref.WeakValueDictionary()
# Parcels that this process has open between two system calls; a forked child closes its copies.
_parcels: set[int] = set()


class Block:
    """A piece of an arena that this process knows of. `views` counts the memoryviews over it that live here
    (a dead one counts until `Guard` has dealt with it)."""

    __slots__ = ("arena", "lent", "nbytes", "offset", "published", "size", "solo", "view_ref", "views")

    def __init__(self, arena: Arena, offset: int, size: int, nbytes: int, solo: bool) -> None:
        self.arena = arena
        self.offset = offset
        self.size = size  # what the heap reserved; only the owner knows it
        self.nbytes = nbytes
        self.solo = solo
        self.published = False  # other processes may hold it, and this one has its lock
        self.lent = False  # it stands in the heap's list of lent blocks
        self.views = 0
        self.view_ref: weakref.ref[memoryview] | None = None

    def view(self) -> memoryview:
        """The memory, for as long as somebody refers to what is returned. Call under `guard`."""
        view = self.view_ref() if self.view_ref is not None else None
        if view is None:
            view = self.arena.memory[self.offset : self.offset + self.nbytes]
            self.views += 1
            self.view_ref = weakref.ref(view, partial(_dropped, self))
        return view

    def publish(self) -> None:
        """Take this process's own lock: from now on other processes may hold the block."""
        if not self.published:
            self.arena.lock(self.offset)
            self.published = True

    def _forget_view(self) -> None:
        self.views -= 1
        if self.views == 0:
            self.arena.release(self)


def _dropped(block: Block, _: object) -> None:
    guard.drop(block)


class Arena:
    """One memfd, mapped here. `owner` is the heap that made it, or None in every other process."""

    def __init__(self, key: int, size: int, fd: int, owner: ArenaOwner | None = None) -> None:
        self.key = key
        self.size = size
        self.owner = owner
        self.locks = reopen(fd)
        if owner is not None:
            self.lock(_ALIVE)
        # Mapped through a description that never carries locks: mmap keeps a copy of the descriptor, and a
        # forked child would otherwise keep its parent's locks alive.
        self.mapping = _map(fd, size)
        self.memory = memoryview(self.mapping)
        self.address: int = core.frombuffer(self.memory, dtype=core.uint8, count=1).data_ptr()
        self.blocks: dict[int, Block] = {}
        attached[key] = self

    def __del__(self) -> None:
        with contextlib.suppress(OSError, AttributeError):
            os.close(self.locks)

    @property
    def abandoned(self) -> bool:
        """Whether the process that made the arena has ended, so that nothing new will come in it."""
        if self.owner is not None or not self.try_exclusive(_ALIVE):
            return False
        self.unlock(_ALIVE)
        return True

    def hold(self, offset: int, nbytes: int, solo: bool) -> memoryview:
        """The memory of a block that a parcel has brought, held by this process from now on. Call under
        `guard`."""
        block = self.blocks.get(offset)
        if block is None:
            if not 0 <= offset <= offset + nbytes <= self.size:
                raise ValueError(
                    f"a message names bytes {offset} to {offset + nbytes} of an arena of {self.size} bytes"
                )
            block = self.blocks[offset] = Block(self, offset, nbytes, nbytes, solo)
        block.publish()
        return block.view()

    def release(self, block: Block) -> None:
        """No view of `block` is left in this process."""
        if self.owner is not None:
            self.owner.take_back(block)
            return
        del self.blocks[block.offset]
        self.unlock(block.offset)
        if block.solo and block.nbytes >= PUNCH_BYTES:
            self.punch_if_free(block)

    def punch_if_free(self, block: Block) -> bool:
        """Return the pages of a block that no process holds. The exclusive lock keeps its owner from reusing
        it meanwhile; of several processes that drop it at once, the last to unlock succeeds."""
        if not self.try_exclusive(block.offset):
            return False
        first = -(-block.offset // PAGE) * PAGE
        length = (block.offset + block.nbytes) // PAGE * PAGE - first
        if length > 0:
            # MADV_REMOVE punches a hole into the file: the bytes are gone for every process.
            self.mapping.madvise(mmap.MADV_REMOVE, first, length)
        self.unlock(block.offset)
        return True

    def find(self, address: int) -> Block | None:
        """The block around a memory address, if it is one of this arena's."""
        offset = address - self.address
        if not 0 <= offset < self.size:
            return None
        block = self.blocks.get(offset)
        if block is not None:
            return block
        for block in self.blocks.values():
            if block.offset <= offset < block.offset + block.nbytes:
                return block
        return None

    def lock(self, offset: int) -> None:
        _set_lock(self.locks, fcntl.F_RDLCK, offset)

    def unlock(self, offset: int) -> None:
        _set_lock(self.locks, fcntl.F_UNLCK, offset)

    def try_exclusive(self, offset: int) -> bool:
        try:
            _set_lock(self.locks, fcntl.F_WRLCK, offset)
        except BlockingIOError:
            return False
        return True

    def parcel(self, offsets: Iterable[int]) -> int:
        """A descriptor that holds these blocks until its last copy is closed. The caller closes it by
        `close_parcel`."""
        fd = reopen(self.locks)
        _parcels.add(fd)
        for offset in offsets:
            _set_lock(fd, fcntl.F_RDLCK, offset)
        return fd


class ArenaOwner:
    """What an arena's owner must be able to do (the heap)."""

    def take_back(self, block: Block) -> None:
        raise NotImplementedError


def close_parcel(fd: int) -> None:
    _parcels.discard(fd)
    os.close(fd)


def track_parcel(fd: int) -> None:
    """Note a descriptor that came with a message, until `close_parcel`."""
    _parcels.add(fd)


def lock_in_parcel(fd: int, offset: int) -> None:
    _set_lock(fd, fcntl.F_RDLCK, offset)


def reopen(fd: int) -> int:
    """Open a memfd anew: the same file through a description of its own, which can hold locks of its own."""
    try:
        return os.open(f"/proc/self/fd/{fd}", os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError as error:
        raise RuntimeError(
            "sharing tensors needs the /proc file system, which is not mounted\n"
            "Mount it in the container or chroot."
        ) from error


def _map(fd: int, size: int) -> mmap.mmap:
    if sys.version_info >= (3, 13):
        return mmap.mmap(fd, size, trackfd=False)  # no descriptor is kept
    return mmap.mmap(fd, size)


def find(address: int) -> Block | None:
    """The block that holds a memory address, or None if it is not in an arena."""
    for arena in list(attached.values()):
        block = arena.find(address)
        if block is not None:
            return block
    return None


def _set_lock(fd: int, kind: int, offset: int) -> None:
    fcntl.fcntl(fd, fcntl.F_OFD_SETLK, _FLOCK.pack(kind, os.SEEK_SET, offset, 1, 0))


# Forks. The parent's hooks run in the thread that forks; see Note [Who frees a block].

_inherited: list[tuple[Arena, int]] = []


def _held(arena: Arena) -> Iterator[Block]:
    return (block for block in arena.blocks.values() if block.views)


def _before_fork() -> None:
    guard.__enter__()
    for arena in list(attached.values()):
        held = list(_held(arena))
        for block in held:
            block.publish()
        _inherited.append((arena, arena.parcel(block.offset for block in held)))


def _after_fork_in_parent() -> None:
    for _, fd in _inherited:
        close_parcel(fd)
    _inherited.clear()
    guard.__exit__()


def _after_fork_in_child() -> None:
    for arena, fd in _inherited:
        _parcels.discard(fd)
        os.close(arena.locks)
        arena.locks = fd
        arena.owner = None
        arena.blocks = {block.offset: block for block in _held(arena)}
    _inherited.clear()
    for fd in _parcels:
        os.close(fd)
    _parcels.clear()
    guard.__exit__()


os.register_at_fork(
    before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child
)
