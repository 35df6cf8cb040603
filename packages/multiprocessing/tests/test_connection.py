"""Pipes: messages with and without tensors, closed ends, and leaks of descriptors and memory."""

from __future__ import annotations

import multiprocessing.connection
import os
import signal
import socket
import threading
import time

import pytest

import rushlight_core as core
import rushlight_multiprocessing as mp
from rushlight_multiprocessing.pipes import LARGE_BYTES


def test_both_directions():
    a, b = mp.Pipe()
    a.send([1, core.ones(2)])
    b.send("back")
    assert b.recv()[1].tolist() == [1, 1]
    assert a.recv() == "back"


def test_one_direction():
    reader, writer = mp.Pipe(duplex=False)
    with pytest.raises(OSError, match="write-only"):
        writer.recv()
    with pytest.raises(OSError, match="read-only"):
        reader.send(1)


@pytest.mark.parametrize("size", [0, 1, LARGE_BYTES - 100, LARGE_BYTES + 1, 3_000_000])
def test_messages_of_every_size(size):
    a, b = mp.Pipe()
    a.send(b"x" * size)
    assert b.recv() == b"x" * size


@pytest.mark.parametrize("size", [0, 5, LARGE_BYTES + 1])
def test_bytes(size):
    a, b = mp.Pipe()
    a.send_bytes(b"y" * size)
    assert b.recv_bytes() == b"y" * size
    a.send_bytes(b"012345", 2, 3)
    buffer = bytearray(5)
    assert b.recv_bytes_into(buffer, 1) == 3
    assert bytes(buffer) == b"\x00234\x00"
    a.send_bytes(b"0123456789")
    with pytest.raises(mp.BufferTooShort):
        b.recv_bytes_into(bytearray(2))


def test_messages_are_whole_although_signals_arrive():
    reader, writer = mp.Pipe(duplex=False)
    before = signal.signal(signal.SIGALRM, lambda *_: None)
    received = []

    def read():
        time.sleep(0.05)
        for _ in range(300):
            received.append(reader.recv())

    thread = threading.Thread(target=read)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
        thread.start()
        for i in range(300):
            writer.send(("x" * 5000, core.full((3,), float(i))))  # waits while the pipe is full
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    thread.join()
    assert [int(tensor[0]) for _, tensor in received] == list(range(300))
    assert {text for text, _ in received} == {"x" * 5000}


def test_too_long_bytes_are_refused():
    a, b = mp.Pipe()
    a.send_bytes(b"0123456789")
    with pytest.raises(OSError, match="bad message length"):
        b.recv_bytes(4)


def test_large_messages_do_not_wait_for_the_reader():
    a, b = mp.Pipe()
    for i in range(5):
        a.send((i, b"z" * 500_000))
    assert [b.recv()[0] for _ in range(5)] == [0, 1, 2, 3, 4]


def test_end():
    a, b = mp.Pipe()
    a.send(core.ones(3))
    a.close()
    assert b.poll()
    assert b.recv().tolist() == [1, 1, 1]
    assert b.poll()
    with pytest.raises(EOFError):
        b.recv()
    with pytest.raises(BrokenPipeError):
        b.send(1)
    with pytest.raises(OSError, match="closed"):
        a.send(1)


def test_poll_and_wait():
    a, b = mp.Pipe()
    assert not b.poll()
    assert not b.poll(0.01)
    a.send(1)
    assert b.poll(None)
    assert multiprocessing.connection.wait([a, b], 0) == [b]


def test_what_cannot_be_pickled_leaves_the_pipe_whole():
    a, b = mp.Pipe()
    with pytest.raises(Exception, match="pickle"):
        a.send((core.ones(2), lambda: 0))
    a.send(2)
    assert b.recv() == 2


def test_descriptors_do_not_grow_with_messages(held):
    a, b = mp.Pipe()
    a.send(core.ones(10))
    b.recv()
    before = held.descriptors()
    for i in range(200):
        a.send([core.full((100,), float(i)), core.ones(3000)])
        assert b.recv()[0][0].item() == i
    assert held.descriptors() == before
    a.close()
    b.close()
    assert held.descriptors() < before


def test_unread_messages_are_held_by_the_socket(held):
    a, b = mp.Pipe()
    t = mp.share_memory_(core.ones(10))
    before = held.descriptors()
    for _ in range(50):
        a.send(t)
    assert (
        held.descriptors() == before + 1
    )  # the lock descriptor, which is sent again while the tensor exists
    for _ in range(50):
        b.recv()
    assert held.descriptors() <= before + 2
    del t
    assert held.descriptors() <= before


def test_a_full_pipe_waits_for_its_reader():
    a, b = mp.Pipe()
    received = []

    def read():
        for _ in range(3000):
            received.append(b.recv())

    thread = threading.Thread(target=read)
    thread.start()
    for i in range(3000):
        a.send((i, "x" * 200))
    thread.join()
    assert [i for i, _ in received] == list(range(3000))


def test_arena_of_another_process_is_unmapped_with_its_last_user(held):
    before = held.mappings()
    a, b = mp.Pipe()
    pid = os.fork()
    if pid == 0:
        try:
            b.send(core.ones(100_000))
            b.recv()
        finally:
            os._exit(0)
    b.close()
    t = a.recv()
    a.send("enough")
    os.waitpid(pid, 0)
    assert held.mappings() == before + 1
    a.close()
    assert sum(t.tolist()) == 100_000
    del t
    assert held.mappings() == before


def test_senders_that_are_gone_are_forgotten(held):
    mp.share_memory_(core.ones(1))
    reader, writer = mp.Pipe(duplex=False)
    before = held.mappings()
    for _ in range(5):
        pid = os.fork()
        if pid == 0:
            try:
                writer.send(core.ones(100_000))
            finally:
                os._exit(0)
        os.waitpid(pid, 0)
        assert sum(reader.recv().tolist()) == 100_000
    assert held.mappings() <= before + 1
    assert held.descriptors() < 60


def test_a_message_with_the_wrong_arena_is_refused():
    from rushlight_multiprocessing.arena import attached, close_lock_fd
    from rushlight_multiprocessing.reductions import attach

    mp.share_memory_(core.ones(1))
    arena = next(arena for arena in attached.values() if arena.owner is not None)
    fd = arena.open_locks([])
    with pytest.raises(ValueError, match="a message refers to an arena file"):
        attach(arena.key + 1, arena.size + 4096, fd)
    close_lock_fd(fd)
    with pytest.raises(ValueError, match="refers to bytes"):
        arena.hold(arena.size - 10, 100, False)


def test_the_default_timeout_of_sockets_is_not_that_of_pipes():
    def send_late(connection):
        time.sleep(0.1)
        connection.send(123)

    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(0.01)
    try:
        ours, theirs = mp.Pipe()
        sender = threading.Thread(target=send_late, args=(theirs,))
        sender.start()
        assert ours.recv() == 123
        sender.join()
    finally:
        socket.setdefaulttimeout(before)


def test_a_message_with_tensors_of_many_processes(tensors_of_processes):
    a, b = mp.Pipe()
    a.send(tensors_of_processes(20))
    assert [t[0].item() for t in b.recv()] == list(range(20))
