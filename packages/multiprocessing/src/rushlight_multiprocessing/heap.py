"""The heap, which allocates blocks in the arenas that this process has created.

A block is *held* while this process has a view of it, *lent* when only other processes may still use it, and
then free. Other processes do not report when they drop a block; the heap checks the locks when it needs
memory. An allocation first tries lent blocks of its size, oldest first: a sequence of batches of the same size
then reuses a few blocks, whose pages are already mapped in all processes.
"""

from __future__ import annotations

import bisect
import os
from collections import deque

from .arena import PAGE, PUNCH_BYTES, Arena, ArenaOwner, Block, guard

FIRST_ARENA_BYTES = 64 << 20
ALIGNMENT = 64
# After this many consecutive allocations of one size, blocks are kept for reuse with their pages, even if each
# is shared by itself.
_STREAM = 4
_TRIES = 2  # lent blocks to check before free memory is used instead


class OwnedArena(ArenaOwner):
    """An arena created by this process, with the sorted list of its free ranges, no two of which are adjacent."""

    def __init__(self, heap: Heap, size: int) -> None:
        self.heap = heap
        fd = os.memfd_create("rushlight", os.MFD_CLOEXEC)
        try:
            os.ftruncate(fd, size)
            self.arena = Arena(int.from_bytes(os.urandom(8), "little"), size, fd, owner=self)
        finally:
            os.close(fd)
        self.starts = [0]
        self.ends = [size]

    @property
    def empty(self) -> bool:
        return not self.arena.blocks

    def reserve(self, size: int, alignment: int) -> int | None:
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

    def give_back(self, offset: int, size: int) -> None:
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

    def take_back(self, block: Block) -> None:
        self.heap.take_back(self, block)


class Heap:
    """The arenas that this process has created. Call all methods but `allocate` and `trim` under `guard`."""

    def __init__(self) -> None:
        self.arenas: list[OwnedArena] = []
        self.lent: dict[int, deque[tuple[OwnedArena, Block]]] = {}
        self._last_size = 0
        self._run = 0  # consecutive allocations of this size
        self._patience = 0  # allocations until all lent blocks are checked again

    def allocate(self, nbytes: int, solo: bool) -> tuple[Block, memoryview]:
        """Allocate an uninitialized block of at least `nbytes` bytes; return it with a view that keeps it.

        With `solo`, the block is shared by itself rather than as one of a sequence of batches, and its pages
        are returned to the system when it is dropped."""
        size, alignment = _rounded(nbytes)
        with guard:
            self._run = self._run + 1 if size == self._last_size else 0
            self._last_size = size
            block = self._reuse_lent(size)
            if block is None:
                owned, offset = self._reserve(size, alignment)
                block = Block(owned.arena, offset, size, nbytes, solo)
                owned.arena.blocks[offset] = block
            block.nbytes = nbytes
            block.solo = solo and self._run < _STREAM
            return block, block.view()

    def take_back(self, owned: OwnedArena, block: Block) -> None:
        """Free or lend a block of which this process has no view left."""
        was_published, block.published = block.published, False
        if was_published:
            owned.arena.unlock(block.offset)
        returned = block.solo and block.nbytes >= PUNCH_BYTES and owned.arena.punch_if_free(block)
        if block.lent:  # it was received back in a message and is still in the list
            return
        if returned or not was_published:
            self._free(owned, block)
        else:
            block.lent = True
            self.lent.setdefault(block.size, deque()).append((owned, block))

    def reclaim(self) -> None:
        """Free the lent blocks that no process uses any more, and close empty arenas except the newest."""
        for size, queue in list(self.lent.items()):
            still_lent: deque[tuple[OwnedArena, Block]] = deque()
            for owned, block in queue:
                if block.views:  # it was received back in a message and is held again
                    block.lent = False
                elif owned.arena.try_exclusive(block.offset):
                    owned.arena.unlock(block.offset)
                    self._free(owned, block)
                else:
                    still_lent.append((owned, block))
            if still_lent:
                self.lent[size] = still_lent
            else:
                del self.lent[size]
        self._close_empty(self.arenas[:-1])

    def trim(self) -> None:
        """Close every arena in which no block is held or lent."""
        with guard:
            self.reclaim()
            self._close_empty(self.arenas)

    def _close_empty(self, candidates: list[OwnedArena]) -> None:
        for owned in [owned for owned in candidates if owned.empty]:
            owned.arena.owner = None  # break the reference cycle
            self.arenas.remove(owned)

    def _reuse_lent(self, size: int) -> Block | None:
        queue = self.lent.get(size)
        if not queue:
            return None
        for _ in range(min(_TRIES, len(queue))):
            owned, block = queue.popleft()
            if block.views:
                block.lent = False
                continue
            # Keep the exclusive lock until the block is published, so that no process returns its pages.
            if owned.arena.try_exclusive(block.offset):
                block.lent = False
                return block
            queue.append((owned, block))
        return None

    def _reserve(self, size: int, alignment: int) -> tuple[OwnedArena, int]:
        self._patience -= 1
        place = self._reserve_free(size, alignment)
        # Checking takes one system call per lent block, so it is repeated only after as many allocations.
        if place is None and self.lent and self._patience < 0:
            self.reclaim()
            self._patience = sum(map(len, self.lent.values()))
            place = self._reserve_free(size, alignment)
        if place is None:
            owned = self._grow(size)
            offset = owned.reserve(size, alignment)
            assert offset is not None
            place = owned, offset
        return place

    def _reserve_free(self, size: int, alignment: int) -> tuple[OwnedArena, int] | None:
        for owned in reversed(self.arenas):
            offset = owned.reserve(size, alignment)
            if offset is not None:
                return owned, offset
        return None

    def _grow(self, size: int) -> OwnedArena:
        # Double the size of each arena, so that the number of arenas (and descriptors) grows logarithmically
        # with the shared memory. The pages of a file are allocated only when they are written.
        wanted = max(FIRST_ARENA_BYTES << min(len(self.arenas), 12), size)
        try:
            owned = OwnedArena(self, wanted)
        except (OSError, MemoryError):  # not enough address space: allocate only what is needed
            owned = OwnedArena(self, size)
        self.arenas.append(owned)
        return owned

    def _free(self, owned: OwnedArena, block: Block) -> None:
        block.lent = False
        del owned.arena.blocks[block.offset]
        owned.give_back(block.offset, block.size)


def _rounded(nbytes: int) -> tuple[int, int]:
    if nbytes < PAGE:
        return -(-max(nbytes, 1) // ALIGNMENT) * ALIGNMENT, ALIGNMENT
    return -(-nbytes // PAGE) * PAGE, PAGE


_heap = Heap()


def heap() -> Heap:
    return _heap


def _after_fork_in_child() -> None:
    # The arenas belong to the parent; the child uses their blocks as any other process does.
    _heap.arenas.clear()
    _heap.lent.clear()


os.register_at_fork(after_in_child=_after_fork_in_child)
