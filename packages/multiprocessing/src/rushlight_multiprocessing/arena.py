"""Arenas: anonymous shared-memory files, with tables of the blocks that each process holds.

Note [When a block is freed]
An arena is a memfd that is mapped by every process that uses a tensor in it. The process that created the
arena allocates its blocks (`allocator.py`). A block may be freed when every process that used it has dropped
it or has ended. A process that is killed does not drop its blocks. Every process therefore records the blocks
that it *holds* in a separate table, which is ignored when the process has ended:

* After the data, the file contains `SLOTS` tables with one byte per `GRANULE` bytes of data. Each table and
  its lock form a *slot*. A process that attaches the arena takes a slot that is not locked, and locks it
  exclusively (`F_OFD_SETLK`, a lock of an open file description, which the kernel releases when the process
  ends for any reason). The process writes 1 to its table for each block that it holds, and 0 when it drops
  the block. No other process writes to this table, so no atomic operation is needed.
* A process that attaches an arena opens the memfd again (`/proc/self/fd/N`), so that its locks are separate
  from those of other processes.
* A message that contains tensors carries one *lock descriptor* per arena: a new open file description that holds shared
  locks on ranges which contain the message's blocks. The descriptor exists as long as the message. The sender may therefore
  drop the tensor, or end, before the message is read. If a message is never read, its blocks are freed when the socket is
  closed. The sender keeps the lock descriptor of its last message open until the sender drops one of the message's blocks.
  If the next message contains the same blocks, it carries the same descriptor.
* A forked child gets its own slot, whose table contains the blocks that the parent held at the time of the fork. If no slot
  or descriptor is left for the child, the parent holds these blocks until it ends, and the child must get a slot before it
  can receive other blocks.
* A block is free if no message and no table of a locked slot contains it. To check a block, a process first takes an
  exclusive lock on it, which is possible only if no message contains the block, and then reads the tables. While the process
  holds this lock, no other process can send the block, because sending needs a lock, too. A receiver enters a block in its
  table before it releases the message's lock. When the owner of an arena needs memory, it checks which of the arena's blocks
  are free.
* When the last process drops a large block that was shared individually, it deallocates the block's memory
  pages; see `Block.returns_pages`. While a process drops such a large block, it locks the byte at
  `_DROP_LOCKS` plus the block's offset. If several processes drop the block at the same time, the last one to
  get this lock finds that no other process holds the block.

The number of locks depends on the numbers of processes and unread messages, but not on the number of tensors. A large number
of locks would be slow, because the kernel searches all locks of a file for every lock, unlock and close.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import mmap
import os
import struct
import sys
import threading
import time
import warnings
import weakref
from collections import deque
from collections.abc import Iterable, Iterator
from functools import partial

import rushlight_core as core

from .limits import tightest_limit

PAGE = mmap.PAGESIZE
# The pages of an individually shared block of at least this many bytes are returned to the system as soon as the
# block is dropped.
PUNCH_BYTES = 1 << 20
# The same limit for blocks of a sequence of batches. The pages of smaller blocks are kept for the next block.
KEEP_BYTES = 8 << 20

# The data of a block begins at a multiple of this. Tables have one byte per granule.
GRANULE = 64
# The number of processes that can use an arena at the same time. The owner has slot 0.
SLOTS = 1024
# The lock of slot i is the byte at this offset plus i, beyond the end of every arena.
_SLOT_LOCKS = 1 << 62
# A process that drops a large block locks the byte at this offset plus the block's offset.
_DROP_LOCKS = _SLOT_LOCKS + (1 << 61)
# The largest number of ranges that a lock descriptor locks.
_MAX_RANGES = 64

_FLOCK = struct.Struct("hhqqi4x")  # struct flock: type, whence, start, length, pid


class Guard:
    """The lock that protects this process's arenas.

    The finalizer of a view may run at any time, even in a thread that holds the lock. The finalizer therefore only appends
    the block of the view to `dropped`, and the thread that holds the lock processes this list."""

    def __init__(self) -> None:
        self.lock: threading.Lock = threading.Lock()
        self.dropped: deque[Block] = deque()

    def __enter__(self) -> None:
        self.lock.acquire()
        if self.dropped:
            try:
                self._settle()
            except BaseException:  # Ctrl-C
                self.lock.release()
                raise

    def __exit__(self, *exc: object) -> None:
        try:
            if self.dropped:
                self._settle()
        finally:
            self.lock.release()
        if self.dropped:
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


guard: Guard = Guard()
# Every arena this process has mapped, by key. `_in_use`, connections and the heap keep them alive.
attached: weakref.WeakValueDictionary[int, Arena] = weakref.WeakValueDictionary()
# The arenas with blocks that this process views. A tensor refers to the view of its block only, not to the arena, whose
# locks and table hold the block.
_in_use: set[Arena] = set()
# Lock descriptors that are open in this process. A forked child closes its copies.
_lock_fds: set[int] = set()
# The lock descriptor of the last message with few blocks. It is closed when this process drops one of the blocks.
_last_locks: MessageLocks | None = None


class Block:
    """A block of an arena, in a process that uses the block or owns the arena.

    `views` is the number of this process's memoryviews of the block. The process's table contains the block while `views`
    is not 0. A deleted view is counted until `Guard` has processed its deletion."""

    __slots__ = ("arena", "lent", "nbytes", "offset", "sent", "size", "solo", "view_ref", "views")

    def __init__(self, arena: Arena, offset: int, size: int, nbytes: int, solo: bool) -> None:
        self.arena: Arena = arena
        self.offset: int = offset
        self.size: int = size  # the reserved size, which only the owner stores
        self.nbytes: int = nbytes
        self.solo: bool = solo
        self.sent: bool = False  # whether another process may hold it
        self.lent: bool = False  # whether it is in the heap's list of lent blocks
        self.views: int = 0
        self.view_ref: weakref.ref[memoryview] | None = None

    @property
    def returns_pages(self) -> bool:
        """Whether the block's memory pages are deallocated when the last process drops the block."""
        return self.nbytes >= (PUNCH_BYTES if self.solo else KEEP_BYTES)

    def view(self) -> memoryview:
        """Return a view of the memory, which stays allocated as long as the view exists. Call under `guard`."""
        view = self.view_ref() if self.view_ref is not None else None
        if view is None:
            if self.views == 0:
                self.arena.table[self.offset // GRANULE] = 1
                self.arena.num_viewed += 1
                _in_use.add(self.arena)
            view = self.arena.memory[self.offset : self.offset + self.nbytes]
            self.views += 1
            self.view_ref = weakref.ref(view, partial(_dropped, self))
        return view

    def _forget_view(self) -> None:
        self.views -= 1
        if self.views == 0:
            self.arena.num_viewed -= 1
            if self.arena.num_viewed == 0:
                _in_use.discard(self.arena)
            self.arena.release(self)


def _dropped(block: Block, _: object) -> None:
    guard.drop(block)


class Arena:
    """A shared-memory file (memfd) that is mapped into this process.

    `owner` is the `OwnedArena` in the process that created the arena, and None in other processes."""

    def __init__(self, key: int, size: int, fd: int, owner: ArenaOwner | None = None) -> None:
        self.key: int = key
        self.size: int = size
        self.owner: ArenaOwner | None = owner
        # Map the file through a description without locks. mmap keeps a copy of the descriptor, which would otherwise
        # keep the locks of the message, or the parent's locks in a forked child.
        plain = reopen(fd)
        try:
            locks, table = _claim_slot(plain, size)
            self.locks: int = locks
            self.table: mmap.mmap = table
            self.mapping: mmap.mmap = _map(plain, size)
        finally:
            os.close(plain)
        self.memory: memoryview = memoryview(self.mapping)
        self.address: int = core.frombuffer(self.memory, dtype=core.uint8, count=1).data_ptr()
        self.blocks: dict[int, Block] = {}
        self.num_viewed: int = 0
        # Whether the locks and the table are the parent's, because the fork found no slot or descriptor for this process.
        self.has_parents_slot: bool = False
        attached[key] = self

    def __del__(self) -> None:
        with contextlib.suppress(OSError, AttributeError):
            os.close(self.locks)

    @property
    def abandoned(self) -> bool:
        """Whether the process that created the arena has ended, so that no block will be added to it."""
        return self.owner is None and not any(_locked(self.locks, _SLOT_LOCKS, _SLOT_LOCKS + 1))

    def hold(self, offset: int, nbytes: int, solo: bool) -> memoryview:
        """Record that this process holds a block that a message contained, and return a view of the block.

        Call under `guard`."""
        if self.has_parents_slot:
            _use_own_slot(self, *_claim_new_slot(self))
        block = self.blocks.get(offset)
        if block is None:
            if not 0 <= offset <= offset + nbytes <= self.size:
                raise ValueError(
                    f"a message refers to bytes {offset} to {offset + nbytes}, but the arena has only {self.size} bytes"
                )
            block = self.blocks[offset] = Block(self, offset, nbytes, nbytes, solo)
        block.sent = True
        return block.view()

    def release(self, block: Block) -> None:
        """Record that this process no longer holds a block, which has no views, so that it can be freed."""
        global _last_locks
        if _last_locks is not None and _last_locks.arena is self and block.offset in _last_locks.offsets:
            _last_locks = None  # close the descriptor, unless a thread is sending it
        if self.has_parents_slot:  # the parent holds the block until it ends
            del self.blocks[block.offset]
            return
        returned = False
        if block.returns_pages:
            returned = self._return_pages_if_last(block)
        self.table[block.offset // GRANULE] = 0
        if self.owner is not None:
            self.owner.take_back(block, returned)
        else:
            del self.blocks[block.offset]

    def _return_pages_if_last(self, block: Block) -> bool:
        """Deallocate the pages of a block that this process drops, unless another process uses the block.

        Return whether the pages were deallocated. During the call, the block stays in the table of this
        process, so that the owner of the arena does not use the memory for another block. If several
        processes drop the block at the same time, they check it one after the other. If another process has a
        shared lock on the block, the pages are kept: a message contains the block or may contain it again, so
        another process will drop the block later."""
        dropping = _DROP_LOCKS + block.offset
        _set_lock(self.locks, fcntl.F_WRLCK, dropping, wait=True)
        try:
            while not self._try_exclusive(block.offset):
                if self._lock_kind(block.offset) == fcntl.F_RDLCK:
                    return False
                time.sleep(0)
            last = not self._is_held_elsewhere(block.offset)
            if last:
                self.return_pages(block)
            return last
        finally:
            self.table[block.offset // GRANULE] = 0  # before other processes check the block
            self.unlock(block.offset)
            self.unlock(dropping)

    def write(self, block: Block, data: memoryview) -> None:
        """Write `data` to the beginning of a block with a system call instead of through the mapping.

        If the memory has no pages yet, the system call takes half as long, since it causes no page faults.

        Raises OutOfMemoryError if the system has no pages left."""
        done, data = 0, data.cast("B")
        try:
            while done < len(data):  # a call writes at most 2 GiB
                done += os.pwrite(self.locks, data[done:], block.offset + done)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.ENOMEM):
                raise
            raise core.OutOfMemoryError(f"shared memory: cannot write {len(data)} bytes: {error}") from error

    def return_pages(self, block: Block) -> None:
        """Deallocate the memory pages of a block. No other process may use the block."""
        self.return_range(block.offset, block.offset + block.nbytes)

    def return_range(self, start: int, end: int) -> None:
        """Deallocate the memory pages between two offsets. No process may use this memory."""
        first = -(-start // PAGE) * PAGE
        length = end // PAGE * PAGE - first
        if length > 0:
            # MADV_REMOVE deallocates this range of the file for all processes.
            self.mapping.madvise(mmap.MADV_REMOVE, first, length)

    def is_free(self, offset: int) -> bool:
        """Return whether no message contains a block and no other process holds it. Only the owner may call this method.

        The tables are read while this process holds an exclusive lock, so that no message can lock the block in the
        meantime."""
        if not self._try_exclusive(offset):
            return False
        free = not self._is_held_elsewhere(offset)
        self.unlock(offset)
        return free

    def _try_exclusive(self, offset: int) -> bool:
        try:
            _set_lock(self.locks, fcntl.F_WRLCK, offset)
        except BlockingIOError:
            return False
        return True

    def _lock_kind(self, offset: int) -> int:
        """Return the type of the lock that another open file description holds on a block, or F_UNLCK if there is none."""
        asked = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, offset, 1, 0)
        kind: int = _FLOCK.unpack(fcntl.fcntl(self.locks, fcntl.F_OFD_GETLK, asked))[0]
        return kind

    def unlock(self, offset: int) -> None:
        _set_lock(self.locks, fcntl.F_UNLCK, offset)

    def _is_held_elsewhere(self, offset: int) -> bool:
        """Return whether the table of another running process contains the block."""
        where, length = self.size + offset // GRANULE, _table_bytes(self.size)
        slots = _locked(self.locks, _SLOT_LOCKS, _SLOT_LOCKS + SLOTS)
        return any(os.pread(self.locks, 1, where + (slot - _SLOT_LOCKS) * length) == b"\1" for slot in slots)

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

    def open_locks(self, offsets: Iterable[int]) -> int:
        """Open a lock descriptor that keeps the blocks at `offsets` allocated until its last copy is closed.

        The descriptor locks at most `_MAX_RANGES` ranges. The ranges may also contain other blocks, which are then freed
        later than necessary. The caller closes the descriptor with `close_lock_fd`.
        """
        fd = reopen(self.locks)
        _lock_fds.add(fd)
        ordered = sorted(offsets)
        step = max(1, -(-len(ordered) // _MAX_RANGES))
        for i in range(0, len(ordered), step):
            last = ordered[min(i + step, len(ordered)) - 1]
            lock_blocks(fd, ordered[i], last + 1 - ordered[i])
        return fd

    def lock_message(self, offsets: set[int]) -> MessageLocks:
        """Lock the blocks at `offsets`, which a message will contain, and return the locks.

        If the previous message contains the same blocks, return the locks of that message. Call under
        `guard`."""
        global _last_locks
        if _last_locks is not None and _last_locks.arena is self and _last_locks.offsets == offsets:
            return _last_locks
        # A copy of the offsets, because a large payload may still be added to the message.
        locks = MessageLocks(self, frozenset(offsets), self.open_locks(offsets))
        for offset in offsets:
            self.blocks[offset].sent = True
        # With more blocks, a range may also contain other blocks, which must not be kept.
        if len(offsets) <= _MAX_RANGES:
            _last_locks = locks
        return locks


class MessageLocks:
    """The owner of a lock descriptor `fd` that locks the blocks at `offsets` while messages contain them.

    The descriptor is closed when the last reference to this object is deleted."""

    def __init__(self, arena: Arena, offsets: frozenset[int], fd: int) -> None:
        self.arena: Arena = arena
        self.offsets: frozenset[int] = offsets
        self.fd: int = fd

    def __del__(self) -> None:
        with contextlib.suppress(AttributeError):  # the interpreter is ending
            if self.fd >= 0:
                close_lock_fd(self.fd)


class ArenaOwner:
    """Interface of the owner of an arena. `OwnedArena` in `allocator.py` implements this interface."""

    def take_back(self, block: Block, returned: bool) -> None:
        """Free a block that has no views in this process, unless another process may use it.

        If `returned` is true, the memory pages of the block have been deallocated, and no process uses the
        block.
        """
        raise NotImplementedError


def close_lock_fd(fd: int) -> None:
    _lock_fds.discard(fd)
    os.close(fd)


def track_lock_fd(fd: int) -> None:
    """Record a lock descriptor, received with a message, so that forked children close their copies."""
    _lock_fds.add(fd)


def lock_blocks(fd: int, start: int, length: int) -> None:
    """Lock all blocks of an arena whose offsets are from `start` to `start + length - 1`.

    The lock is shared, and belongs to the lock descriptor `fd`. Wait while another process checks one of the
    blocks."""
    _set_lock(fd, fcntl.F_RDLCK, start, length, wait=True)


def reopen(fd: int) -> int:
    """Open a memfd again, to get a separate open file description that can hold its own locks."""
    try:
        return os.open(f"/proc/self/fd/{fd}", os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError as error:
        raise RuntimeError(
            "sharing tensors needs the /proc file system, which is not mounted\n"
            "Mount it in the container or chroot."
        ) from error


def file_bytes(size: int) -> int:
    """Return the length in bytes of the file of an arena: `size` bytes of data, and the tables."""
    return size + SLOTS * _table_bytes(size)


def _table_bytes(size: int) -> int:
    return -(-size // (GRANULE * PAGE)) * PAGE


def _claim_slot(fd: int, size: int) -> tuple[int, mmap.mmap]:
    """Claim a slot of an arena. Return the descriptor that holds the lock of the slot, and the empty table of the slot."""
    locks = reopen(fd)
    try:
        for slot in range(SLOTS):
            try:
                _set_lock(locks, fcntl.F_WRLCK, _SLOT_LOCKS + slot)
                break
            except BlockingIOError:
                continue
        else:
            raise RuntimeError(
                f"at most {SLOTS} processes can use the tensors of one process at the same time"
            )
        length = _table_bytes(size)
        table = _map(fd, length, size + slot * length)
        table.madvise(mmap.MADV_REMOVE)  # the table of a process that has ended
    except BaseException:
        os.close(locks)
        raise
    return locks, table


def _map(fd: int, size: int, offset: int = 0) -> mmap.mmap:
    try:
        if sys.version_info >= (3, 13):
            return mmap.mmap(fd, size, offset=offset, trackfd=False)  # do not keep a copy of the descriptor
        return mmap.mmap(fd, size, offset=offset)
    except OSError as error:
        if error.errno != errno.ENOMEM:
            raise
        limit = tightest_limit()
        reason = "the system has no memory" if limit is None else str(limit)
        raise core.OutOfMemoryError(f"shared memory: {size} bytes cannot be mapped: {reason}") from error


def find(address: int) -> Block | None:
    """Return the block that contains a memory address, or None if the address is not in an arena."""
    for reference in attached.valuerefs():  # a copy, made in less time than one of `attached.values()`
        arena = reference()
        block = None if arena is None else arena.find(address)
        if block is not None:
            return block
    return None


def _set_lock(fd: int, kind: int, start: int, length: int = 1, wait: bool = False) -> None:
    command = fcntl.F_OFD_SETLKW if wait else fcntl.F_OFD_SETLK
    fcntl.fcntl(fd, command, _FLOCK.pack(kind, os.SEEK_SET, start, length, 0))


def _locked(fd: int, start: int, end: int) -> Iterator[int]:
    """Yield, in any order, the offsets from `start` to `end - 1` that other open file descriptions lock."""
    ranges = [(start, end)]
    while ranges:
        start, end = ranges.pop()
        asked = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, start, end - start, 0)
        kind, _, found, _, _ = _FLOCK.unpack(fcntl.fcntl(fd, fcntl.F_OFD_GETLK, asked))
        if kind != fcntl.F_UNLCK:
            yield found
            ranges += [part for part in ((start, found), (found + 1, end)) if part[0] < part[1]]


# Hooks around fork(), which run in the thread that forks; see Note [When a block is freed].

_claimed: list[tuple[Arena, int, mmap.mmap]] = []  # the slots of the child
_unclaimed: list[tuple[Arena, BaseException]] = []  # arenas without a slot for the child


def _held(arena: Arena) -> Iterator[Block]:
    return (block for block in arena.blocks.values() if block.views)


def _claim_new_slot(arena: Arena) -> tuple[int, mmap.mmap]:
    """Claim a second slot of an attached arena, and enter in its table the blocks that this process holds."""
    fd = reopen(arena.locks)  # mmap keeps a copy of a descriptor, which must have no locks
    try:
        locks, table = _claim_slot(fd, arena.size)
    finally:
        os.close(fd)
    for block in _held(arena):
        table[block.offset // GRANULE] = 1
    return locks, table


def _use_own_slot(arena: Arena, locks: int, table: mmap.mmap) -> None:
    """In a forked child, use the child's own slot of an arena in place of the parent's slot."""
    os.close(arena.locks)
    arena.table.close()
    arena.locks, arena.table = locks, table
    arena.has_parents_slot = False


def _before_fork() -> None:
    guard.__enter__()
    for arena in list(attached.values()):
        for block in _held(arena):
            block.sent = True
        try:
            locks, table = _claim_new_slot(arena)
        except BaseException as error:  # a hook cannot prevent the fork
            _unclaimed.append((arena, error))
            continue
        _lock_fds.add(locks)
        _claimed.append((arena, locks, table))


def _after_fork_in_parent() -> None:
    for _, locks, table in _claimed:
        table.close()
        close_lock_fd(locks)
    _claimed.clear()
    kept = [(block, error) for arena, error in _unclaimed for block in _held(arena)]
    _unclaimed.clear()
    for block, _ in kept:
        block.views += 1  # permanently, because the child may use the block
    guard.__exit__()
    if kept:
        warnings.warn(
            f"fork: {len(kept)} blocks of shared memory stay allocated until this process ends, because the child "
            f"process cannot hold them itself: {kept[0][1]}",
            RuntimeWarning,
            stacklevel=2,
        )


def _after_fork_in_child() -> None:
    global _last_locks
    for arena, locks, table in _claimed:
        _lock_fds.discard(locks)
        _use_own_slot(arena, locks, table)
    for arena, _ in _unclaimed:
        arena.has_parents_slot = True
    for arena in list(attached.values()):
        arena.owner = None
        arena.blocks = {block.offset: block for block in _held(arena)}
    _claimed.clear()
    _unclaimed.clear()
    for fd in _lock_fds:
        os.close(fd)
    _lock_fds.clear()
    if _last_locks is not None:
        _last_locks.fd = -1  # closed above
        _last_locks = None
    guard.__exit__()


os.register_at_fork(
    before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child
)
