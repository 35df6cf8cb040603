"""Queues between processes."""

from __future__ import annotations

import os
import queue
import signal
import threading

import pytest

import rushlight_core as core
import rushlight_multiprocessing as mp
from rushlight_multiprocessing import pipes
from rushlight_multiprocessing.pipes import LARGE_BYTES

fork = mp.get_context("fork")
KINDS = ["Queue", "SimpleQueue", "JoinableQueue"]


def produce(q, n):
    for i in range(n):
        q.put((i, core.full((500,), float(i))))


@pytest.mark.parametrize("kind", KINDS)
def test_tensors_outlive_their_sender(kind):
    q = getattr(fork, kind)()
    process = fork.Process(target=produce, args=(q, 20))
    process.start()
    if kind != "SimpleQueue":
        process.join()
        assert process.exitcode == 0
    for i in range(20):
        number, t = q.get()
        assert number == i
        assert sum(t.tolist()) == 500 * i
    process.join()


def test_several_readers_and_writers():
    tasks, results = fork.Queue(), fork.Queue()

    def work():
        while (t := tasks.get()) is not None:
            results.put((t[0].item(), sum((t * 2).tolist())))

    workers = [fork.Process(target=work) for _ in range(3)]
    for worker in workers:
        worker.start()
    for i in range(60):
        tasks.put(core.full((50,), float(i)))
    got = dict(results.get() for _ in range(60))
    assert got == {float(i): 100.0 * i for i in range(60)}
    for _ in workers:
        tasks.put(None)
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0


def test_shared_tensor_is_written_by_the_child():
    q = fork.SimpleQueue()
    t = core.zeros(10)
    q.put(t)
    assert mp.is_shared(t)

    def add():
        q.get().add_(5)

    process = fork.Process(target=add)
    process.start()
    process.join()
    assert t.tolist() == [5] * 10


def test_put_never_waits_without_a_limit():
    q = fork.Queue()
    for i in range(2000):
        q.put((i, "x" * 300))
    assert q.qsize() == 2000
    assert [q.get()[0] for _ in range(2000)] == list(range(2000))
    assert q.empty()


def test_limit_and_timeouts():
    q = fork.Queue(2)
    with pytest.raises(queue.Empty):
        q.get(timeout=0.01)
    with pytest.raises(queue.Empty):
        q.get_nowait()
    q.put(1)
    q.put(2)
    assert q.full()
    with pytest.raises(queue.Full):
        q.put(3, timeout=0.01)
    with pytest.raises(queue.Full):
        q.put_nowait(3)
    assert q.get() == 1
    assert q.get(timeout=5) == 2


def test_objects_that_others_are_about_to_put_take_room():
    q = fork.Queue(2)
    q.put(0)
    announced, end = fork.Event(), fork.Event()

    def announce():
        with q._ledger:
            q._ledger.claim_slot()
        q._ledger.set_first_unsent()
        announced.set()
        end.wait()
        q._ledger.remove_unsent()

    process = fork.Process(target=announce)
    process.start()
    assert announced.wait(40)
    assert q.full()
    with pytest.raises(queue.Full):
        q.put_nowait(1)
    assert q.get() == 0
    q.put_nowait(1)
    end.set()
    process.join()
    assert q.qsize() == 1
    q.put_nowait(2)
    with pytest.raises(queue.Full):
        q.put_nowait(3)


def test_an_object_is_counted_before_the_pipe():
    q = fork.Queue(1)
    count, seen = q._in_pipe, []
    q._in_pipe = lambda: seen.append(q._ledger.unsent()) or count()
    q.put(0)  # with the ledger locked, to claim a slot
    q.get()
    q.put(1)  # without the lock
    assert seen == [1, 1]
    with pytest.raises(queue.Full):
        q.put_nowait(
            2
        )  # without the lock, then with the lock, before and after looking for processes that have ended
    assert seen == [1] * 5
    assert (q.qsize(), q._ledger.unsent()) == (1, 0)


def test_the_only_writer_counts_again_when_it_has_used_the_room():
    q = fork.Queue(4)
    count, counts = q._in_pipe, []
    q._in_pipe = lambda: counts.append(count()) or counts[-1]
    for i in range(4):
        q.put(i)
    assert counts == [0, 1]
    with pytest.raises(queue.Full):
        q.put_nowait(4)
    assert [q.get(), q.get()] == [0, 1]
    del counts[:]
    q.put(4)
    assert counts == [2]
    process = fork.Process(target=q.put, args=(5,))  # another writer, which uses the room that was counted
    process.start()
    process.join()
    with pytest.raises(queue.Full):
        q.put_nowait(6)
    assert [q.get() for _ in range(4)] == [2, 3, 4, 5]


def test_several_writers_never_exceed_the_limit():
    q = fork.Queue(3)
    start, tries = fork.Barrier(3), 300

    def put(counts):
        taken = 0
        start.wait()
        for i in range(tries):
            try:
                q.put_nowait(i)
            except queue.Full:
                pass
            else:
                taken += 1
        counts.send(taken)

    for _ in range(5):
        reader, writer = fork.Pipe(duplex=False)
        processes = [fork.Process(target=put, args=(writer,)) for _ in range(3)]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
        assert sum(reader.recv() for _ in processes) == 3
        assert [q.get() >= 0 for _ in range(3)] == [True] * 3
        assert q.empty()


def test_what_cannot_be_pickled_raises_in_put():
    q = fork.Queue(1)
    with pytest.raises(Exception, match="pickle"):
        q.put(lambda: 0)
    q.put(1)  # the failed put does not count
    assert q.get() == 1


def test_closed_queue():
    q = fork.Queue()
    q.put(1)
    with pytest.raises(ValueError, match="open"):
        q.join_thread()
    q.close()
    q.join_thread()
    with pytest.raises(ValueError, match="closed"):
        q.put(2)
    with pytest.raises(ValueError, match="closed"):
        q.get()


def test_joinable_queue_counts():
    q = fork.JoinableQueue()

    def work():
        for _ in range(3):
            q.get()
            q.task_done()

    process = fork.Process(target=work)
    process.start()
    for i in range(3):
        q.put(core.full((2,), float(i)))
    q.join()
    process.join()
    with pytest.raises(ValueError, match="task_done"):
        q.task_done()


def test_a_killed_sender_leaves_nothing(held):
    mp.empty_cache()
    q = fork.SimpleQueue()
    before = held.mappings(), held.descriptors()

    def send():
        q.put(core.ones(50_000))
        os.kill(os.getpid(), signal.SIGKILL)

    process = fork.Process(target=send)
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    process.close()
    t = q.get()
    assert sum(t.tolist()) == 50_000
    del t
    q.close()
    assert held.mappings() == before[0]
    assert held.descriptors() <= before[1] - 2
    assert held.children() == []


def test_queue_needs_inheritance():
    with pytest.raises(RuntimeError, match="inheritance"):
        mp.Pipe()[0].send(fork.Queue())


def feeders() -> int:
    return sum(thread.name == "QueueFeeder" for thread in threading.enumerate())


def test_plain_objects_are_written_by_put_while_the_pipe_has_room():
    before = feeders()
    queue = mp.Queue()
    for i in range(50):
        queue.put({"n": i})
        assert queue.get() == {"n": i}
    assert feeders() == before
    for i in range(5000):  # more than fit: `put` does not wait
        queue.put((i, "x" * 100))
    assert feeders() == before + 1
    assert [queue.get()[0] for _ in range(5000)] == list(range(5000))
    queue.close()
    queue.join_thread()


def test_plain_objects_do_not_overtake_tensors():
    queue = mp.Queue()
    for _ in range(20):
        for i in range(30):
            queue.put(core.tensor(i) if i % 3 == 0 else i)
        assert [int(queue.get()) for _ in range(30)] == list(range(30))


def test_plain_objects_to_a_queue_that_nobody_reads():
    queue = mp.Queue(2)
    queue._reader.close()
    for i in range(10):
        queue.put(i, timeout=10)  # raises queue.Full if an object that was not sent keeps its room


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("other", ["small", "x" * (LARGE_BYTES + 1)], ids=["small", "large"])
def test_tensors_of_too_many_processes(kind, other, tensors_of_processes, monkeypatch):
    monkeypatch.setattr(pipes, "_MAX_ARENAS", 2)
    tensors = tensors_of_processes(3)
    q = getattr(fork, kind)()
    with pytest.raises(ValueError, match="at most 2 arenas, got"):
        q.put((tensors, other))
    q.put((tensors[:2], other))
    received, word = q.get()
    assert ([t.tolist() for t in received], word) == ([[0.0] * 3, [1.0] * 3], other)
