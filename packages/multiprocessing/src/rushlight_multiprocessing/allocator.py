"""The heap, which allocates blocks in the arenas that this process has created.

A block is *held* while this process has a view of it, *lent* when only other processes may still use it, and
otherwise free. A process does not notify the owner of a block when it drops the block. Every allocation
therefore checks a few of the lent blocks, the oldest first, before it reserves free memory. As a result, a
sequence of batches of any sizes reuses the same memory. When a large block is freed, its pages are returned
to the system if the arenas have more pages than necessary; see `Heap._has_excess_pages`.
"""

from __future__ import annotations

import bisect
import os
from collections import deque

import rushlight_core as core

from .arena import GRANULE, KEEP_BYTES, PAGE, PUNCH_BYTES, Arena, ArenaOwner, Block, file_bytes, guard
from .limits import has_limited_address_space, tightest_limit

FIRST_ARENA_BYTES = 64 << 20
# After this many consecutive allocations of one size, blocks and their pages are kept for reuse, even if each block
# is shared individually.
_STREAM = 4
# The number of lent blocks that an allocation of a small and of a large block checks. A check takes a few
# microseconds, and large blocks take longer to fill.
_CHECKS, _CHECKS_IF_LARGE = 2, 16
_LARGE_BYTES = 64 << 10


class Slab:
    """A range of an arena that is divided into pieces of equal size."""

    __slots__ = ("end", "free", "listed", "next", "start", "used")

    def __init__(self, start: int, end: int) -> None:
        self.start: int = start
        self.end: int = end
        self.next: int = start  # the pieces from this offset on were never used
        self.free: list[int] = []
        self.used: int = 0
        self.listed: bool = False  # whether the slab is in the arena's list of usable slabs

    def take(self, size: int) -> int | None:
        """Reserve a piece and return its offset, or None if the slab is full."""
        if self.free:
            offset = self.free.pop()
        elif self.next + size <= self.end:
            offset, self.next = self.next, self.next + size
        else:
            return None
        self.used += 1
        return offset

    def give_back(self, offset: int) -> None:
        self.free.append(offset)
        self.used -= 1


class OwnedArena(ArenaOwner):
    """An arena that this process has created, with its free ranges and the slabs of small blocks.

    The free ranges are sorted, and no two of them are adjacent. A small block is reserved and freed in
    constant time, because its slab is found by offset or size, and because the number of ranges does not grow
    with the number of small blocks."""

    def __init__(self, heap: Heap, size: int) -> None:
        self.heap: Heap = heap
        fd = os.memfd_create("rushlight", os.MFD_CLOEXEC)
        try:
            os.ftruncate(fd, file_bytes(size))
            self.arena: Arena = Arena(int.from_bytes(os.urandom(8), "little"), size, fd, owner=self)
        finally:
            os.close(fd)
        self.starts: list[int] = [0]
        self.ends: list[int] = [size]
        self.slabs: dict[int, Slab] = {}  # by start
        # Slabs by the size of their pieces. The lists may contain full slabs, and free slabs that are no longer
        # in `slabs`.
        self.usable: dict[int, list[Slab]] = {}

    @property
    def empty(self) -> bool:
        return not self.arena.blocks

    def reserve(self, size: int) -> int | None:
        """Reserve `size` bytes and return their offset, or None if there is no room.

        `size` must be a result of `_rounded`.
        """
        slab_bytes = _slab_bytes(size)
        if slab_bytes is None:
            return self.reserve_range(size, PAGE)
        usable = self.usable.setdefault(size, [])
        while usable:
            slab = usable[-1]
            offset = slab.take(size) if self.slabs.get(slab.start) is slab else None
            if offset is not None:
                return offset
            usable.pop().listed = False
        start = self.reserve_range(slab_bytes, slab_bytes)
        if start is None:
            return None
        slab = self.slabs[start] = Slab(start, start + slab_bytes)
        self._list(slab, size)
        return slab.take(size)

    def give_back(self, offset: int, size: int) -> None:
        """Free the `size` bytes at `offset`, which `reserve` has reserved."""
        slab_bytes = _slab_bytes(size)
        if slab_bytes is None:
            self.give_back_range(offset, size)
            return
        slab = self.slabs[offset - offset % slab_bytes]
        slab.give_back(offset)
        if slab.used:
            self._list(slab, size)
        else:
            del self.slabs[slab.start]
            self.give_back_range(slab.start, slab_bytes)

    def _list(self, slab: Slab, size: int) -> None:
        if not slab.listed:
            slab.listed = True
            self.usable[size].append(slab)

    def reserve_range(self, size: int, alignment: int) -> int | None:
        """Reserve `size` bytes by first fit and return their offset, or None if no free range is large enough."""
        for i, (start, end) in enumerate(zip(self.starts, self.ends, strict=True)):
            offset = -(-start // alignment) * alignment
            if offset + size > end:
                continue
            if offset + size == end:
                del self.starts[i], self.ends[i]
            else:
                self.starts[i] = offset + size
            if offset > start:
                self.starts.insert(i, start)
                self.ends.insert(i, offset)
            return offset
        return None

    def give_back_range(self, offset: int, size: int) -> None:
        i = bisect.bisect(self.starts, offset)
        end = offset + size
        joins_left = i > 0 and self.ends[i - 1] == offset
        joins_right = i < len(self.starts) and self.starts[i] == end
        if joins_left and joins_right:
            self.ends[i - 1] = self.ends[i]
            del self.starts[i], self.ends[i]
        elif joins_left:
            self.ends[i - 1] = end
        elif joins_right:
            self.starts[i] = offset
        else:
            self.starts.insert(i, offset)
            self.ends.insert(i, end)

    def take_back(self, block: Block, returned: bool) -> None:
        self.heap.take_back(self, block, returned)


class Heap:
    """The arenas that this process has created.

    `allocate` and `trim` acquire the lock `guard`. The caller of any other method must hold `guard`.
    """

    def __init__(self) -> None:
        self.arenas: list[OwnedArena] = []
        self.lent: deque[tuple[OwnedArena, Block]] = deque()
        self.used_bytes: int = 0  # of held and lent blocks
        self._next_bytes = 0  # size of the block that is about to be allocated
        self._freed_large = False  # whether a large block was freed, with its pages, for this block
        self._last_size = 0
        self._run = 0  # consecutive allocations of this size
        self._patience = 0  # allocations until all lent blocks are checked again
        self.reuse: bool = True  # whether the pages of a sequence of batches are kept for the next batches

    def allocate(self, nbytes: int, solo: bool) -> tuple[Block, memoryview]:
        """Allocate an uninitialized block of at least `nbytes` bytes. Return the block, and a view that keeps it allocated.

        Raises OutOfMemoryError if a large block would exceed a memory limit; only large blocks are checked.

        If `solo` is true, the block is shared individually rather than as one of a sequence of batches. When
        the last process drops a block of at least `KEEP_BYTES` bytes, the pages of the block are always
        returned to the system. The pages of a smaller block of at least `PUNCH_BYTES` bytes are always
        returned in two cases:

        * `solo` is true, and the block does not follow several allocations of the same size.
        * `solo` and the attribute `reuse` are both false."""
        size = _rounded(nbytes)
        if size >= KEEP_BYTES:
            _check_limit(nbytes)
        with guard:
            self._run = self._run + 1 if size == self._last_size else 0
            self._last_size = size
            self._next_bytes = size
            try:
                self._check_lent(_CHECKS if size < _LARGE_BYTES else _CHECKS_IF_LARGE)
                owned, offset = self._reserve(size)
            finally:
                self._next_bytes = 0
            self.used_bytes += size
            if self._freed_large:
                self._return_excess_pages()
            block = owned.arena.blocks[offset] = Block(owned.arena, offset, size, nbytes, solo)
            block.solo = self._run < _STREAM if solo else not self.reuse
            return block, block.view()

    def take_back(self, owned: OwnedArena, block: Block, returned: bool) -> None:
        """Free a block whose last view in this process was dropped.

        If another process may still use the block, add the block to `lent` instead of freeing it.
        """
        if block.lent:  # this process received the block in a message; it is still in the list
            return
        if returned or not block.sent:
            self._free(owned, block, returned)
        else:
            block.lent = True
            self.lent.append((owned, block))

    def reclaim(self) -> None:
        """Free the lent blocks that no process uses any more, and close empty arenas except the oldest."""
        self._check_lent(len(self.lent))
        self._close_empty(self.arenas[1:])

    def trim(self) -> None:
        """Free the lent blocks that no process uses any more, and close all arenas that are then empty."""
        with guard:
            self.reclaim()
            self._close_empty(self.arenas)

    def _close_empty(self, candidates: list[OwnedArena]) -> None:
        for owned in [owned for owned in candidates if owned.empty]:
            owned.arena.owner = None  # break the reference cycle
            self.arenas.remove(owned)

    def _check_lent(self, count: int) -> None:
        """Check up to `count` lent blocks, the oldest first, and free those that no process uses any more."""
        for _ in range(min(count, len(self.lent))):
            owned, block = self.lent.popleft()
            if block.views:  # this process received the block in a message and holds it again
                block.lent = False
            elif owned.arena.is_free(block.offset):
                self._free(owned, block)
            else:
                self.lent.append((owned, block))

    def _reserve(self, size: int) -> tuple[OwnedArena, int]:
        self._patience -= 1
        reserved = self._reserve_free(size)
        # Checking takes one system call per lent block, so it is repeated only after as many allocations.
        if reserved is None and self.lent and self._patience < 0:
            self.reclaim()
            self._patience = len(self.lent)
            reserved = self._reserve_free(size)
        if reserved is None:
            owned = self._grow(size)
            offset = owned.reserve(size)
            assert offset is not None
            reserved = owned, offset
        return reserved

    def _reserve_free(self, size: int) -> tuple[OwnedArena, int] | None:
        for owned in self.arenas:  # try the oldest arenas first, so that the newest one becomes empty
            offset = owned.reserve(size)
            if offset is not None:
                return owned, offset
        return None

    def _grow(self, size: int) -> OwnedArena:
        # Double the size of each arena, so that the number of arenas (and descriptors) grows logarithmically
        # with the shared memory. The pages of a file are allocated only when they are written. If the address space is
        # limited, arenas have only the necessary size, since the processes that receive the blocks map them, too.
        wanted = max(FIRST_ARENA_BYTES << min(len(self.arenas), 12), size)
        if has_limited_address_space():
            wanted = _slab_bytes(size) or size
        try:
            owned = OwnedArena(self, wanted)
        except (OSError, MemoryError):  # not enough address space: allocate only the necessary size
            owned = OwnedArena(self, _slab_bytes(size) or size)
        self.arenas.append(owned)
        return owned

    def _free(self, owned: OwnedArena, block: Block, returned: bool = False) -> None:
        block.lent = False
        del owned.arena.blocks[block.offset]
        self.used_bytes -= block.size
        large = block.nbytes >= PUNCH_BYTES and not returned
        if large and self._next_bytes and not block.returns_pages:
            # The next block may take these pages. Otherwise, `allocate` returns them.
            self._freed_large = True
        elif large and (block.returns_pages or self._has_excess_pages()):
            owned.arena.return_pages(block)
        owned.give_back(block.offset, block.size)

    def _has_excess_pages(self) -> bool:
        """Return whether the arenas' pages exceed the blocks in use by more than `PUNCH_BYTES` bytes."""
        pages = sum(os.fstat(owned.arena.locks).st_blocks * 512 for owned in self.arenas)
        return pages > self.used_bytes + PUNCH_BYTES

    def _return_excess_pages(self) -> None:
        """Return pages of free ranges to the system, those of the newest arenas and of the highest offsets first.

        Blocks are allocated at the lowest offset, so the remaining pages are used first."""
        self._freed_large = False
        for owned in reversed(self.arenas):
            for start, end in zip(owned.starts[::-1], owned.ends[::-1], strict=True):
                if not self._has_excess_pages():
                    return
                owned.arena.return_range(start, end)


def _check_limit(nbytes: int) -> None:
    """Raise OutOfMemoryError if a block exceeds a memory limit, because writing to the block would kill the process.

    The limit of the address space is not considered, because the block may be in an arena that is mapped already. If a new
    arena exceeds the limit of the address space, mapping the arena raises an error."""
    limit = tightest_limit(address_space=False)
    if limit is not None and nbytes > limit.left:
        raise core.OutOfMemoryError(
            f"shared memory: {nbytes} bytes are needed and {limit.left} are left: {limit}"
        )


def _rounded(nbytes: int) -> int:
    """Return the size that is reserved for a block of `nbytes` bytes."""
    if nbytes < PAGE:
        return -(-max(nbytes, 1) // GRANULE) * GRANULE
    return -(-nbytes // PAGE) * PAGE


def _slab_bytes(size: int) -> int | None:
    """Return the size of the slabs for blocks of `size` bytes, or None if such blocks are not allocated in slabs."""
    if size < PAGE:
        return 16 * PAGE
    return 256 * PAGE if size <= 16 * PAGE else None


_heap = Heap()


def heap() -> Heap:
    return _heap


def _after_fork_in_child() -> None:
    # The arenas belong to the parent; the child uses their blocks as any other process does.
    _heap.arenas.clear()
    _heap.lent.clear()
    _heap.used_bytes = 0


os.register_at_fork(after_in_child=_after_fork_in_child)
