"""Arenas: anonymous shared-memory files, and the locks that count references to their blocks.

Note [Who frees a block]
An arena is a memfd that is mapped by every process that uses a tensor in it. The process that created the
arena allocates its blocks (`heap.py`). A block may be freed when the last process has dropped it, and this
must also work when a process is killed. The kernel therefore counts the references: a process that uses a
block holds a shared lock on its first byte (`F_OFD_SETLK`, a lock that belongs to an open file description).
The kernel releases the locks of a process that ends for any reason, and a stray write cannot corrupt them.

* A process that attaches an arena opens the memfd again (`/proc/self/fd/N`) to have locks of its own.
* A message that contains tensors carries one *lock descriptor* per arena: a new open file description that
  holds locks on the message's blocks. It exists as long as the message, so the sender may drop the tensor, or
  end, before the message is read. If a message is never read, its blocks are freed when the socket is closed.
* A forked child gets its own description with locks on all blocks that the parent held at the fork.
* A block is free if an exclusive lock on it can be taken. The owner tries this when it needs memory.
* The last process that drops a large block shared by itself returns its pages to the system; see
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
# The pages of a block of at least this many bytes that was shared by itself are returned to the system as
# soon as the block is dropped.
PUNCH_BYTES = 1 << 20

# The owner of an arena holds a lock at this offset, which is beyond the end of every arena, until it ends.
_ALIVE = 1 << 62

_FLOCK = struct.Struct("hhqqi4x")  # struct flock: type, whence, start, length, pid


class Guard:
    """The lock that protects this process's arenas.

    A finalizer may run at any time, even while its own thread holds the lock. It appends its block to
    `dropped`, and the holder of the lock processes the list."""

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
        # Check again after the release: a block may have been dropped shortly before it.
        while self.dropped and self.lock.acquire(blocking=False):
            try:
                self._settle()
            finally:
                self.lock.release()


guard = Guard()
# Every arena this process has mapped, by key. Blocks, connections and the heap keep them alive.
attached: weakref.WeakValueDictionary[int, Arena] = weakref.WeakValueDictionary()
# Lock descriptors that are open in this process while messages are sent or read. A forked child closes its
# copies.
_lock_fds: set[int] = set()


class Block:
    """A block of an arena that this process uses or owns.

    `views` counts the memoryviews of this process over the block. A view that was deleted counts until
    `Guard` has processed it."""

    __slots__ = ("arena", "lent", "nbytes", "offset", "published", "size", "solo", "view_ref", "views")

    def __init__(self, arena: Arena, offset: int, size: int, nbytes: int, solo: bool) -> None:
        self.arena = arena
        self.offset = offset
        self.size = size  # the reserved size, which only the owner knows
        self.nbytes = nbytes
        self.solo = solo
        self.published = False  # other processes may use it, and this one holds a lock
        self.lent = False  # whether it is in the heap's list of lent blocks
        self.views = 0
        self.view_ref: weakref.ref[memoryview] | None = None

    def view(self) -> memoryview:
        """Return a view of the memory, which stays allocated as long as the view exists. Call under `guard`."""
        view = self.view_ref() if self.view_ref is not None else None
        if view is None:
            view = self.arena.memory[self.offset : self.offset + self.nbytes]
            self.views += 1
            self.view_ref = weakref.ref(view, partial(_dropped, self))
        return view

    def publish(self) -> None:
        """Take this process's lock on the block, so that other processes may use it from now on."""
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
    """A memfd mapped into this process. `owner` is the heap that created it, or None in other processes."""

    def __init__(self, key: int, size: int, fd: int, owner: ArenaOwner | None = None) -> None:
        self.key = key
        self.size = size
        self.owner = owner
        self.locks = reopen(fd)
        if owner is not None:
            self.lock(_ALIVE)
        # Map the file through a description without locks: mmap keeps a copy of the descriptor, and a forked
        # child would otherwise keep its parent's locks.
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
        """Whether the process that created the arena has ended, so that no block will be added to it."""
        if self.owner is not None or not self.try_exclusive(_ALIVE):
            return False
        self.unlock(_ALIVE)
        return True

    def hold(self, offset: int, nbytes: int, solo: bool) -> memoryview:
        """Lock a block that was received in a message and return a view of its memory. Call under `guard`."""
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
        """Release a block of which this process has no view left."""
        if self.owner is not None:
            self.owner.take_back(block)
            return
        del self.blocks[block.offset]
        self.unlock(block.offset)
        if block.solo and block.nbytes >= PUNCH_BYTES:
            self.punch_if_free(block)

    def punch_if_free(self, block: Block) -> bool:
        """Return the pages of a block to the system if no process uses it, and return whether it did.

        The exclusive lock keeps the owner from reusing the block meanwhile. If several processes drop the
        block at once, the last one to unlock it succeeds."""
        if not self.try_exclusive(block.offset):
            return False
        first = -(-block.offset // PAGE) * PAGE
        length = (block.offset + block.nbytes) // PAGE * PAGE - first
        if length > 0:
            # MADV_REMOVE deallocates this range of the file for all processes.
            self.mapping.madvise(mmap.MADV_REMOVE, first, length)
        self.unlock(block.offset)
        return True

    def find(self, address: int) -> Block | None:
        """Return the block that contains a memory address, or None."""
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

    def open_locks(self, offsets: Iterable[int]) -> int:
        """Open a descriptor that holds locks on these blocks until its last copy is closed.

        The caller closes it with `close_lock_fd`."""
        fd = reopen(self.locks)
        _lock_fds.add(fd)
        for offset in offsets:
            _set_lock(fd, fcntl.F_RDLCK, offset)
        return fd


class ArenaOwner:
    """Interface of the owner of an arena, which the heap implements."""

    def take_back(self, block: Block) -> None:
        raise NotImplementedError


def close_lock_fd(fd: int) -> None:
    _lock_fds.discard(fd)
    os.close(fd)


def track_lock_fd(fd: int) -> None:
    """Record a descriptor that was received with a message, until `close_lock_fd`."""
    _lock_fds.add(fd)


def lock_block(fd: int, offset: int) -> None:
    _set_lock(fd, fcntl.F_RDLCK, offset)


def reopen(fd: int) -> int:
    """Open a memfd again, to get a separate open file description that can hold its own locks."""
    try:
        return os.open(f"/proc/self/fd/{fd}", os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError as error:
        raise RuntimeError(
            "sharing tensors needs the /proc file system, which is not mounted\n"
            "Mount it in the container or chroot."
        ) from error


def _map(fd: int, size: int) -> mmap.mmap:
    if sys.version_info >= (3, 13):
        return mmap.mmap(fd, size, trackfd=False)  # do not keep a copy of the descriptor
    return mmap.mmap(fd, size)


def find(address: int) -> Block | None:
    """Return the block that contains a memory address, or None if the address is not in an arena."""
    for arena in list(attached.values()):
        block = arena.find(address)
        if block is not None:
            return block
    return None


def _set_lock(fd: int, kind: int, offset: int) -> None:
    fcntl.fcntl(fd, fcntl.F_OFD_SETLK, _FLOCK.pack(kind, os.SEEK_SET, offset, 1, 0))


# Hooks around fork(), which run in the thread that forks; see Note [Who frees a block].

_inherited: list[tuple[Arena, int]] = []


def _held(arena: Arena) -> Iterator[Block]:
    return (block for block in arena.blocks.values() if block.views)


def _before_fork() -> None:
    guard.__enter__()
    for arena in list(attached.values()):
        held = list(_held(arena))
        for block in held:
            block.publish()
        _inherited.append((arena, arena.open_locks(block.offset for block in held)))


def _after_fork_in_parent() -> None:
    for _, fd in _inherited:
        close_lock_fd(fd)
    _inherited.clear()
    guard.__exit__()


def _after_fork_in_child() -> None:
    for arena, fd in _inherited:
        _lock_fds.discard(fd)
        os.close(arena.locks)
        arena.locks = fd
        arena.owner = None
        arena.blocks = {block.offset: block for block in _held(arena)}
    _inherited.clear()
    for fd in _lock_fds:
        os.close(fd)
    _lock_fds.clear()
    guard.__exit__()


os.register_at_fork(
    before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child
)
