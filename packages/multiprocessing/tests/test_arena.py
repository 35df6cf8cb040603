"""Who holds a block: locks that the kernel drops with their process."""

from __future__ import annotations

import os
import signal

from hypothesis import given, settings
from hypothesis import strategies as st

import rushlight_core as core
import rushlight_multiprocessing as mp
from rushlight_multiprocessing.arena import find, guard
from rushlight_multiprocessing.connection import Pipe
from rushlight_multiprocessing.heap import FIRST_ARENA_BYTES, Heap, OwnedArena, heap


def block_of(t):
    return find(t.data_ptr())


def is_held_elsewhere(arena, offset) -> bool:
    """Whether another open file description holds the block."""
    if arena.try_exclusive(offset):
        arena.unlock(offset)
        return False
    return True


def test_a_message_holds_its_blocks_until_it_is_read():
    reader, writer = Pipe(duplex=False)
    t = mp.share_memory_(core.arange(1000.0))
    block = block_of(t)
    arena, offset = block.arena, block.offset
    writer.send(t)
    del t, block
    assert is_held_elsewhere(arena, offset)
    # What comes next must not get the block.
    others = [mp.share_memory_(core.zeros(1000)) for _ in range(20)]
    got = reader.recv()
    assert got.tolist() == core.arange(1000.0).tolist()
    del others


def test_a_message_that_nobody_reads_frees_its_blocks():
    reader, writer = Pipe(duplex=False)
    t = mp.share_memory_(core.arange(1000.0))
    arena, offset = block_of(t).arena, block_of(t).offset
    writer.send(t)
    del t
    assert is_held_elsewhere(arena, offset)
    reader.close()
    writer.close()
    assert not is_held_elsewhere(arena, offset)


def test_arenas_grow():
    own = Heap()
    held = [own.allocate(FIRST_ARENA_BYTES, solo=False) for _ in range(20)]
    assert len(own.arenas) == 5  # of 1, 2, 4, 8 and 16 blocks
    del held


def test_a_killed_process_holds_nothing():
    reader, writer = Pipe()
    t = mp.share_memory_(core.arange(1000.0))
    arena, offset = block_of(t).arena, block_of(t).offset
    pid = os.fork()
    if pid == 0:
        try:
            kept = writer.recv()
            writer.send(sum(kept.tolist()))
            signal.pause()
        finally:
            os._exit(1)
    writer.close()
    reader.send(t)
    assert reader.recv() == 499500
    del t
    assert is_held_elsewhere(arena, offset)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    assert not is_held_elsewhere(arena, offset)


def test_a_forked_child_keeps_what_it_inherited():
    ours, theirs = Pipe()
    t = mp.share_memory_(core.arange(5000.0))
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            theirs.recv()  # the parent has dropped the tensor, and filled others
            theirs.send(sum(t.tolist()))
            # What the child shares, it takes from an arena of its own.
            u = mp.share_memory_(core.ones(10))
            code = int(block_of(u).arena is block_of(t).arena)
        finally:
            os._exit(code)
    theirs.close()
    expected = sum(t.tolist())
    del t
    others = [mp.share_memory_(core.zeros(5000)) for _ in range(20)]
    ours.send("go")
    assert ours.recv() == expected
    assert os.waitpid(pid, 0)[1] == 0
    del others


def test_a_tensor_that_comes_back_is_the_same_memory():
    a, b = Pipe()
    t = mp.share_memory_(core.zeros(100))
    a.send(t)
    u = b.recv()
    del t
    b.send(u)
    del u
    v = a.recv()
    v += 1
    others = [mp.share_memory_(core.zeros(100)) for _ in range(20)]
    assert v.tolist() == [1] * 100
    del others, v


def test_lent_blocks_are_used_again():
    a, b = Pipe(gives=True)
    addresses = set()
    for _ in range(30):
        a.send(core.ones(20_000))
        got = b.recv()
        addresses.add(got.data_ptr())
        del got
    assert len(addresses) <= 3


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 5000), st.sampled_from([64, 4096])), max_size=30), st.randoms())
def test_free_pieces_never_overlap_and_join_again(requests, random):
    owned = OwnedArena(Heap(), 1 << 16)
    try:
        taken: list[tuple[int, int]] = []
        for size, alignment in requests:
            size = -(-size // 64) * 64
            offset = owned.reserve(size, alignment)
            if offset is None:
                continue
            assert offset % alignment == 0
            assert all(offset + size <= start or end <= offset for start, end in taken)
            taken.append((offset, offset + size))
            if random.random() < 0.3:
                start, end = taken.pop(random.randrange(len(taken)))
                owned.give_back(start, end - start)
        random.shuffle(taken)
        for start, end in taken:
            owned.give_back(start, end - start)
        assert (owned.starts, owned.ends) == ([0], [1 << 16])
    finally:
        owned.arena.owner = None


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 200_000), st.booleans()), min_size=1, max_size=40), st.randoms())
def test_blocks_in_use_never_overlap(requests, random):
    views = []
    for nbytes, solo in requests:
        block, view = heap().allocate(nbytes, solo)
        assert len(view) == nbytes
        tag = bytes([random.randrange(256)])
        view[:] = tag * nbytes
        views.append((block, view, tag))
        if random.random() < 0.4:
            views.pop(random.randrange(len(views)))
        del block, view
    for block, view, tag in views:
        assert bytes(view) == tag * block.nbytes


def test_finalisers_that_run_under_the_lock_are_dealt_with_later():
    t = mp.share_memory_(core.ones(100))
    block = block_of(t)
    with guard:
        del t  # as if the collector ran here
        assert block.views == 1
    assert block.views == 0
