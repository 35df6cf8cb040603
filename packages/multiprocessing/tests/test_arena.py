"""Holders of a block: tables, which count while their process runs, and the locks of messages."""

from __future__ import annotations

import errno
import os
import resource
import signal
import sys
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rushlight_core as core
import rushlight_multiprocessing as mp
import rushlight_multiprocessing.arena as arena_module
from rushlight_multiprocessing.allocator import FIRST_ARENA_BYTES, Heap, OwnedArena, _rounded, heap
from rushlight_multiprocessing.arena import Arena, find, guard
from rushlight_multiprocessing.pipes import Pipe
from rushlight_multiprocessing.reductions import dumps
from rushlight_multiprocessing.transport import SharedMemoryTransport


def block_of(t):
    return find(t.data_ptr())


def pages_of(arena) -> int:
    """Return the number of bytes for which the file of an arena has pages."""
    return os.fstat(arena.locks).st_blocks * 512


def is_held_elsewhere(arena, offset) -> bool:
    """Return whether another open file description holds the block."""
    return not arena.is_free(offset)


def test_a_message_holds_its_blocks_until_it_is_read():
    reader, writer = Pipe(duplex=False)
    t = mp.share_memory_(core.arange(1000.0))
    block = block_of(t)
    arena, offset = block.arena, block.offset
    writer.send(t)
    del t, block
    assert is_held_elsewhere(arena, offset)
    # The next tensors must not get the block.
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


def test_a_message_with_the_same_blocks_is_not_locked_again(monkeypatch):
    reader, writer = Pipe(duplex=False)
    tensors = [mp.share_memory_(core.full((100,), float(i))) for i in range(3)]
    opened = []
    reopen = arena_module.reopen
    monkeypatch.setattr(arena_module, "reopen", lambda fd: opened.append(fd) or reopen(fd))
    for message in (tensors[0], tensors[0], tensors[:2], tensors[1::-1], tensors[0]):
        writer.send(message)
    assert len(opened) == 3
    arena, offsets = block_of(tensors[0]).arena, [block_of(t).offset for t in tensors]
    del message, tensors
    assert [is_held_elsewhere(arena, offset) for offset in offsets] == [True, True, False]
    assert [reader.recv().tolist()[0] for _ in range(2)] == [0.0, 0.0]
    assert [[t.tolist()[0] for t in reader.recv()] for _ in range(2)] == [[0.0, 1.0], [1.0, 0.0]]
    assert reader.recv().tolist()[0] == 0.0
    assert not any(is_held_elsewhere(arena, offset) for offset in offsets)


def test_a_block_that_is_added_to_a_message_is_locked():
    """A large payload may be moved to shared memory after a message could not be sent."""
    t = mp.share_memory_(core.ones(100))
    _, outgoing = dumps([t])
    locks = outgoing.lock()
    other = mp.share_memory_(core.ones(100))
    block = block_of(other)
    with guard:
        outgoing.add(block.arena, block.offset, block.view())
    again = outgoing.lock()
    arena, offset = block.arena, block.offset
    outgoing.views.clear()
    del other, block
    assert is_held_elsewhere(arena, offset)
    del locks, again
    assert not is_held_elsewhere(arena, offset)


def test_a_lock_of_many_blocks_is_not_kept(held):
    """Its ranges may contain other blocks, which would not be freed as long as the blocks of the message exist."""
    reader, writer = Pipe(duplex=False)
    tensors = [mp.share_memory_(core.full((100,), float(i))) for i in range(200)]
    before = held.descriptors()
    writer.send(tensors[::2])
    reader.recv()
    assert held.descriptors() == before
    arena, between = block_of(tensors[1]).arena, block_of(tensors[1]).offset
    del tensors[1]
    assert not is_held_elsewhere(arena, between)


def test_a_forked_child_does_not_keep_the_lock_of_a_message():
    ours, theirs = Pipe()
    t = mp.share_memory_(core.arange(1000.0))
    arena, offset = block_of(t).arena, block_of(t).offset
    ours.send(t)
    theirs.recv()
    pid = os.fork()
    if pid == 0:
        try:
            del t
            theirs.send("dropped")
            signal.pause()
        finally:
            os._exit(1)
    assert ours.recv() == "dropped"
    del t
    assert not is_held_elsewhere(arena, offset)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def test_pages_are_returned_if_two_processes_drop_a_block_at_the_same_time():
    a, b = Pipe()
    t = mp.share_memory_(core.ones(4 << 20))
    arena = block_of(t).arena
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            mine = b.recv()

            def lock_kind(self, offset):
                kind = asked(self, offset)
                b.send("the block is locked")
                time.sleep(0.5)  # the other process drops the block now
                return kind

            asked, arena_module.Arena._lock_kind = arena_module.Arena._lock_kind, lock_kind
            del t, mine
            code = 0
        finally:
            os._exit(code)
    a.send(t)
    assert a.recv() == "the block is locked"  # because this process may send it again
    pages = pages_of(arena)
    del t
    assert os.waitpid(pid, 0)[1] == 0
    assert pages_of(arena) <= pages - (16 << 20)


def test_arenas_grow():
    own = Heap()
    held = [own.allocate(FIRST_ARENA_BYTES, solo=False) for _ in range(20)]
    assert len(own.arenas) == 5  # arenas of 1, 2, 4, 8 and 16 blocks
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
            theirs.recv()  # the parent has dropped the tensor and filled other tensors
            theirs.send(sum(t.tolist()))
            # The child shares its tensors in an arena of its own.
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


COLLECTED = """
    import gc, sys
    import rushlight_core as core
    import rushlight_multiprocessing as mp

    def child(given, queue, collected, go):
        tensors = [given] if given is not None else queue.get()
        queue.close()
        gc.collect()  # arenas are in reference cycles
        collected.set()
        go.wait()
        assert all(t.tolist() == [i] * 1000 for i, t in enumerate(tensors, 1)), tensors
        assert all(mp.is_shared(t) for t in tensors)

    if __name__ == "__main__":
        context = mp.get_context(sys.argv[1])
        queue, collected, go = context.Queue(), context.Event(), context.Event()
        tensors = [mp.share_memory_(core.full((1000,), float(i))) for i in range(1, 6)]
        given = tensors[0] if sys.argv[2] == "argument" else None
        process = context.Process(target=child, args=(given, queue, collected, go), daemon=True)
        process.start()
        if given is None:
            queue.put(tensors)
        assert collected.wait(40)
        del tensors, given
        others = [mp.share_memory_(core.full((1000,), -1.0)) for _ in range(40)]
        go.set()
        process.join()
        assert process.exitcode == 0
"""


@pytest.mark.parametrize("way", ["argument", "queue"])
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_tensors_of_other_processes_outlive_a_garbage_collection(run_script, method, way):
    run_script(COLLECTED, method, way)


def test_a_child_without_a_descriptor_of_its_own_keeps_its_tensors():
    ours, theirs = Pipe()
    tensors = [mp.share_memory_(core.ones(1000))]
    arena, offset = block_of(tensors[0]).arena, block_of(tensors[0]).offset
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")), limits[1]))

    def fork() -> int:
        pid = os.fork()
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        if pid:
            return pid
        code = 1
        try:
            received = theirs.recv()  # needs a slot, for which there are descriptors now
            theirs.send(tensors[0].tolist() == [1] * 1000 and received.tolist() == [2] * 1000)
            theirs.recv()
            theirs.send(tensors[0].tolist() == [1] * 1000 and received.tolist() == [2] * 1000)
            code = 0
        finally:
            os._exit(code)

    with pytest.warns(RuntimeWarning, match="blocks of shared memory stay allocated .* Too many open files"):
        pid = fork()
    theirs.close()
    tensors.clear()
    assert find(arena.address + offset) is not None
    second = mp.share_memory_(core.full((1000,), 2.0))
    ours.send(second)
    del second
    others = [mp.share_memory_(core.zeros(1000)) for _ in range(20)]
    assert ours.recv() is True
    others += [mp.share_memory_(core.zeros(1000)) for _ in range(20)]
    ours.send(None)
    assert ours.recv() is True
    assert os.waitpid(pid, 0)[1] == 0
    with guard:  # the child has ended: other tests may use the block again
        find(arena.address + offset)._forget_view()


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


def test_blocks_of_any_size_are_used_again():
    """A sequence of batches of different sizes needs little more memory than the batches that are in use at once."""
    a, b = Pipe(copy=True)
    own = heap()
    a.send(core.ones(300_000))
    b.recv()
    kept, pages = [], []
    for i in range(200):
        a.send(core.ones(200_000 + i * 7919 % 200_000))
        kept.append(b.recv())
        kept = kept[-3:]
        pages.append(sum(pages_of(owned.arena) for owned in own.arenas))
    assert max(pages[100:]) < 10 << 20  # five batches take 8 MB
    assert len(own.lent) <= 5


def test_the_next_batch_takes_the_pages_of_the_last_one(monkeypatch):
    """If there are too many pages, those of memory that stays free are returned."""
    returned = []
    original = Arena.return_range

    def return_range(arena, start, end):
        returned.append((start, end))
        original(arena, start, end)

    monkeypatch.setattr(Arena, "return_range", return_range)
    a, b = Pipe(copy=True)
    kept = []
    for count in (3, 1, 2, 1):  # batches of 4 MB in use
        for i in range(12):
            a.send(core.ones(1 << 20))
            kept.append(b.recv())
            kept = kept[-count:]
            if i == 4:
                returned.clear()
        assert returned == []
        pages = sum(pages_of(owned.arena) for owned in heap().arenas)
        assert pages <= (count + 2 << 22) + (1 << 20)


@pytest.mark.parametrize("reuse", [True, False])
def test_the_reader_returns_the_pages_of_batches_that_are_not_reused(reuse):
    mine, theirs = Pipe(copy=True)

    def send(connection):
        transport = SharedMemoryTransport()
        transport.reuse_memory(reuse)
        for i in range(2):
            batch = transport.empty((1 << 19,), core.float32)  # 2 MB
            connection.send(batch.fill_(i))
            del batch
            connection.recv()

    process = mp.get_context("fork").Process(target=send, args=(theirs,))
    process.start()
    left = []
    for i in range(2):
        batch = mine.recv()
        assert batch[-1].item() == i
        arena = block_of(batch).arena
        del batch
        until = time.monotonic() + 20
        # The process that drops the block last returns its pages, and this may be the sender.
        while not reuse and pages_of(arena) >= 1 << 20 and time.monotonic() < until:
            time.sleep(0.01)
        left.append(pages_of(arena))
        mine.send(None)
    process.join()
    assert process.exitcode == 0
    assert (min(left) >= 2 << 20) == reuse
    assert (max(left) < 1 << 20) == (not reuse)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.ENOMEM])
def test_a_large_tensor_that_cannot_be_written_stays_where_it_is(monkeypatch, number):
    def pwrite(fd, data, offset):
        if len(data) < 4 << 20:
            raise OSError(number, os.strerror(number))
        return original(fd, data[: 1 << 20], offset)

    original = os.pwrite
    monkeypatch.setattr(os, "pwrite", pwrite)
    t = core.arange(1 << 20)
    heap().trim()
    before = heap().used_bytes
    with pytest.raises(core.OutOfMemoryError, match="cannot write 8388608 bytes: "):
        mp.share_memory_(t)
    assert not mp.is_shared(t)
    assert t.tolist() == list(range(1 << 20))
    assert heap().used_bytes == before
    monkeypatch.undo()
    assert mp.share_memory_(t).tolist() == list(range(1 << 20))


def test_a_large_tensor_is_written_in_parts(monkeypatch):
    original = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda fd, data, offset: original(fd, data[:1_000_003], offset))
    t = core.arange(1 << 20)
    array = t.numpy()
    assert mp.share_memory_(t).is_shared()
    assert t.tolist() == array.tolist() == list(range(1 << 20))


def test_lent_blocks_are_used_again():
    a, b = Pipe(copy=True)
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
            offset = owned.reserve_range(size, alignment)
            if offset is None:
                continue
            assert offset % alignment == 0
            assert all(offset + size <= start or end <= offset for start, end in taken)
            taken.append((offset, offset + size))
            if random.random() < 0.3:
                start, end = taken.pop(random.randrange(len(taken)))
                owned.give_back_range(start, end - start)
        random.shuffle(taken)
        for start, end in taken:
            owned.give_back_range(start, end - start)
        assert (owned.starts, owned.ends) == ([0], [1 << 16])
    finally:
        owned.arena.owner = None


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 100_000), max_size=60), st.randoms())
def test_blocks_of_slabs_never_overlap_and_slabs_become_free(requests, random):
    owned = OwnedArena(Heap(), 32 << 20)
    try:
        taken: list[tuple[int, int]] = []
        for nbytes in requests:
            size = _rounded(nbytes)
            offset = owned.reserve(size)
            assert offset % (64 if size < 4096 else 4096) == 0
            assert all(offset + size <= start or end <= offset for start, end in taken)
            taken.append((offset, offset + size))
            if random.random() < 0.4:
                start, end = taken.pop(random.randrange(len(taken)))
                owned.give_back(start, end - start)
        for start, end in taken:
            owned.give_back(start, end - start)
        assert (owned.starts, owned.ends, owned.slabs) == ([0], [32 << 20], {})
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


def test_pages_are_not_returned_while_their_block_may_be_another_ones():
    """The owner cannot give memory to another block while a process is about to return its pages."""
    a, b = Pipe()
    t = mp.share_memory_(core.arange(1 << 19))
    arena, offset = block_of(t).arena, block_of(t).offset
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            from rushlight_multiprocessing.arena import Arena

            def before_pages(self, block):
                b.send("about to return the pages")
                b.recv()
                remove(self, block)

            remove, Arena.return_pages = Arena.return_pages, before_pages
            b.send("forked")
            b.recv()
            del t
            code = 0
        finally:
            os._exit(code)
    assert a.recv() == "forked"
    del t
    a.send("drop it")
    assert a.recv() == "about to return the pages"
    assert is_held_elsewhere(arena, offset)
    a.send("go on")
    assert os.waitpid(pid, 0)[1] == 0
    assert not is_held_elsewhere(arena, offset)


def test_finalisers_that_run_under_the_lock_are_dealt_with_later():
    t = mp.share_memory_(core.ones(100))
    block = block_of(t)
    with guard:
        del t  # as if the garbage collector ran here
        assert block.views == 1
    assert block.views == 0


def locks_of(arena) -> int:
    """Count the kernel's locks of an arena's file. Every operation on a lock of the file searches all of them."""
    inode = os.fstat(arena.locks).st_ino
    return sum(int(line.split()[5].split(":")[-1]) == inode for line in open("/proc/locks"))


def lines_run(function) -> int:
    """Count the lines of this package that a call executes."""
    count = 0

    def trace(frame, event, arg):
        nonlocal count
        if "rushlight_multiprocessing" not in frame.f_code.co_filename:
            return None
        count += event == "line"
        return trace

    previous = sys.gettrace()
    sys.settrace(trace)
    try:
        function()
    finally:
        sys.settrace(previous)
    return count


@pytest.mark.parametrize("at_once", [False, True])
def test_cost_of_a_held_tensor_does_not_grow_with_their_number(at_once, held):
    """The costs that are counted per tensor are locks in the kernel, lines of Python, and descriptors."""
    a, b = Pipe()
    kept = []

    def receive(n):
        if at_once:
            a.send([core.full((1 + i % 300,), float(i)) for i in range(n)])
            kept.extend(b.recv())
        else:
            for i in range(n):
                a.send(core.full((1 + i % 300,), float(i)))
                kept.append(b.recv())

    receive(100)  # this maps the pipe's first arena
    arenas = {id(block_of(t).arena): block_of(t).arena for t in kept}
    descriptors = held.descriptors()
    lines, locks = [], []
    for _ in range(4):
        lines.append(lines_run(lambda: receive(400)))
        locks.append(sum(map(locks_of, arenas.values())))
    assert max(locks) <= 4
    assert max(lines[2:]) <= 1.1 * max(lines[:2])
    assert held.descriptors() == descriptors
    assert [t[-1].item() for t in kept[100:]] == [float(i) for i in range(400)] * 4


def test_dropping_and_reusing_small_blocks_takes_constant_time():
    own = Heap()
    views = [own.allocate(64 * (1 + i % 500), solo=True)[1] for i in range(4000)]
    views = views[::2]

    def again():
        views.extend(own.allocate(64 * (1 + i % 500), solo=True)[1] for i in range(500))

    again()
    counts = [lines_run(again) for _ in range(3)]
    assert max(counts) <= 1.5 * min(counts)


def test_a_message_with_many_blocks_has_few_locks():
    a, b = Pipe()
    tensors = [mp.share_memory_(core.full((20,), float(i))) for i in range(3000)]
    arena = block_of(tensors[0]).arena
    before = locks_of(arena)
    a.send(tensors[::7])
    assert locks_of(arena) - before <= 64
    offsets = [block_of(t).offset for t in tensors[::7]]
    del tensors
    assert all(is_held_elsewhere(arena, offset) for offset in offsets)
    assert [t[3].item() for t in b.recv()] == [float(i) for i in range(0, 3000, 7)]


def test_the_table_of_a_process_that_ended_does_not_count():
    """A new process takes the slot of one that was killed, and begins with an empty table."""
    reader, writer = Pipe()
    t = mp.share_memory_(core.arange(1000.0))
    arena, offset = block_of(t).arena, block_of(t).offset
    for _ in range(2):
        pid = os.fork()
        if pid == 0:
            try:
                writer.send(t.sum().item())
                signal.pause()
            finally:
                os._exit(1)
        assert reader.recv() == 499500
        assert is_held_elsewhere(arena, offset)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    del t
    pid = os.fork()
    if pid == 0:
        try:
            writer.send(None)
            signal.pause()
        finally:
            os._exit(1)
    reader.recv()
    assert not is_held_elsewhere(arena, offset)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def test_several_holders_are_all_asked():
    """The kernel reports locks in no particular order."""
    pipes, pids = [Pipe() for _ in range(5)], []
    t = mp.share_memory_(core.arange(1000.0))
    arena, offset = block_of(t).arena, block_of(t).offset
    for _, theirs in pipes:
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                kept = t
                del t
                theirs.send(0)
                theirs.recv()
                del kept
                theirs.send(0)
                theirs.recv()
                code = 0
            finally:
                os._exit(code)
        pids.append(pid)
    for ours, _ in pipes:
        ours.recv()
    del t
    for i in (2, 0, 4, 1, 3):
        assert is_held_elsewhere(arena, offset)
        pipes[i][0].send(0)
        pipes[i][0].recv()
    assert not is_held_elsewhere(arena, offset)
    for (ours, _), pid in zip(pipes, pids, strict=True):
        ours.send(0)
        assert os.waitpid(pid, 0)[1] == 0


def test_more_processes_than_slots_are_refused(monkeypatch):
    from rushlight_multiprocessing import arena as arenas

    t = mp.share_memory_(core.ones(3))
    arena = block_of(t).arena
    monkeypatch.setattr(arenas, "SLOTS", 1)
    with pytest.raises(RuntimeError, match="at most 1 processes"):
        arenas._claim_slot(arena.locks, arena.size)
