"""Queues and pools keep working for the other processes when one process is killed."""

from __future__ import annotations

import contextlib
import multiprocessing.connection
import os
import queue
import random
import signal
import threading
import time

import pytest

import rushlight_core as core
import rushlight_multiprocessing as mp

fork = mp.get_context("fork")
SECONDS = 40  # after this time, a wait counts as endless

QUEUES = {
    "Queue": lambda: fork.Queue(),
    "Queue of 3": lambda: fork.Queue(3),
    "SimpleQueue": lambda: fork.SimpleQueue(),
    "JoinableQueue of 3": lambda: fork.JoinableQueue(3),
}


def kill(process):
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    assert process.exitcode == -signal.SIGKILL


def busy(q, started, seed):
    """Put and get objects and tensors forever."""
    values = [seed, "x" * 3000, core.ones(600), b"y" * 100_000]
    started.set()
    i = seed
    while True:
        q.put(values[i % 4])
        if i % 3 == 0 or isinstance(q, mp.queue.SimpleQueue):
            q.get()
        elif hasattr(q, "qsize") and q.qsize() > 2:
            q.get()
            if hasattr(q, "task_done"):
                q.task_done()
        i += 1


def usable(q, count):
    """Empty a queue, then put and get `count` objects."""
    wait = {} if isinstance(q, mp.queue.SimpleQueue) else {"timeout": SECONDS}
    while not q.empty():
        q.get(**wait)
    for i in range(count):
        q.put((i, core.full((2,), float(i))), **wait)
    for i in range(count):
        number, tensor = q.get(**wait)
        assert number == i
        assert tensor.tolist() == [i, i]


@pytest.mark.parametrize("kind", list(QUEUES))
def test_a_queue_of_which_processes_are_killed_at_any_time(kind):
    chance = random.Random(kind)
    q = QUEUES[kind]()
    for round_ in range(12):
        started = [fork.Event(), fork.Event()]
        victims = [fork.Process(target=busy, args=(q, started[i], 2 * round_ + i)) for i in range(2)]
        for victim in victims:
            victim.start()
        for event in started:
            event.wait()
        time.sleep(chance.uniform(0, 0.01))
        for victim in victims:
            kill(victim)
        usable(q, 3)
        if kind != "SimpleQueue":
            assert q.qsize() == 0
    if "3" in kind:
        for i in range(3):
            q.put(i, timeout=SECONDS)  # no slot of the queue was lost,
        with pytest.raises(queue.Full):
            q.put_nowait(4)  # and no slot was gained


@pytest.mark.parametrize("kind", list(QUEUES))
def test_a_reader_that_is_killed_while_it_waits(kind):
    q = QUEUES[kind]()
    reader = fork.Process(target=q.get)
    reader.start()
    time.sleep(0.05)
    kill(reader)
    usable(q, 3)


def test_objects_that_a_killed_process_had_not_sent_need_no_room():
    q = fork.Queue(300)
    filled = fork.Event()

    def put():
        for _ in range(300):  # more than fits into the pipe
            q.put("x" * 5000)
        filled.set()
        time.sleep(60)

    process = fork.Process(target=put)
    process.start()
    assert filled.wait(SECONDS)
    assert q.full()
    kill(process)
    waiting = q.qsize()
    assert 0 < waiting < 300
    for i in range(300 - waiting):
        q.put(i, timeout=SECONDS)
    with pytest.raises(queue.Full):
        q.put_nowait(None)


def test_one_that_waits_for_room_learns_of_a_death():
    q = fork.Queue(1)
    filled = fork.Event()

    def put():
        q._writer.try_send_packed = lambda *args: False  # objects that are put are never sent
        q._writer.wait_for_room = lambda: time.sleep(60)
        q.put(1)
        filled.set()
        time.sleep(60)

    process = fork.Process(target=put)
    process.start()
    assert filled.wait(SECONDS)
    threading.Timer(0.1, kill, [process]).start()
    q.put(2, timeout=SECONDS)
    assert q.get(timeout=SECONDS) == 2


def test_tasks_of_a_killed_process_end_join_with_an_error():
    q = fork.JoinableQueue()
    taken = fork.Event()

    def take():
        for _ in range(2):
            q.get()
        q.task_done()
        taken.set()
        time.sleep(60)

    process = fork.Process(target=take)
    process.start()
    for i in range(3):
        q.put(i)
    assert taken.wait(SECONDS)
    threading.Timer(0.1, kill, [process]).start()
    q.get()
    q.task_done()
    with pytest.raises(RuntimeError, match="1 tasks were taken by processes that were killed"):
        q.join()


def test_tasks_of_a_process_that_has_ended_can_be_reported_by_another():
    q = fork.JoinableQueue()
    q.put(1)
    process = fork.Process(target=q.get)
    process.start()
    process.join()
    threading.Timer(0.05, q.task_done).start()
    q.join()
    with pytest.raises(ValueError, match="more often"):
        q.task_done()


def test_slots_of_ended_processes_are_used_again():
    q = fork.Queue(2)
    for i in range(5):
        process = fork.Process(target=q.put, args=(core.ones(3),))
        process.start()
        process.join()
        assert q.get(timeout=SECONDS).tolist() == [1, 1, 1], i
    with q._ledger:
        assert q._ledger._end() == 4 + 2  # one slot is in use


def sleep_or_die(i):
    if i == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    if i == 4:
        os._exit(0)
    return i * 2


def test_a_spawned_pool_of_which_a_process_is_killed(run_script):
    out = run_script("""
        import os, signal
        import rushlight_multiprocessing as mp

        def die(_):
            os.kill(os.getpid(), signal.SIGKILL)

        if __name__ == "__main__":
            with mp.get_context("spawn").Pool(1) as pool:
                try:
                    pool.map(die, [0])
                except mp.ProcessExitedException as error:
                    print(error.signal_name, pool.apply(abs, (-3,)))
    """)
    assert out == "SIGKILL 3\n"


def test_tasks_of_killed_processes_of_a_pool_raise():
    with fork.Pool(2) as pool:
        results = [pool.apply_async(sleep_or_die, (i,)) for i in range(8)]
        with pytest.raises(mp.ProcessExitedException, match="SIGKILL before it returned the result") as error:
            results[3].get(SECONDS)
        assert error.value.signal_name == "SIGKILL"
        with pytest.raises(mp.ProcessExitedException, match="exit code 0"):
            results[4].get(SECONDS)
        assert [results[i].get(SECONDS) for i in (0, 1, 2, 5, 6, 7)] == [0, 2, 4, 10, 12, 14]
        with pytest.raises(mp.ProcessExitedException):
            pool.map(sleep_or_die, range(8), chunksize=2)
        values = pool.imap(sleep_or_die, range(3, 6))
        for _ in range(2):
            with pytest.raises(mp.ProcessExitedException):
                next(values)
        assert next(values) == 10


def double(tensor):
    return tensor * 2


def test_a_pool_of_which_processes_are_killed_at_any_time():
    chance = random.Random(1)
    with fork.Pool(3) as pool:
        for _ in range(8):
            results = [pool.apply_async(double, (core.full((50,), float(i)),)) for i in range(60)]
            time.sleep(chance.uniform(0, 0.01))
            for worker in pool._pool[:2]:
                with contextlib.suppress(
                    ProcessLookupError
                ):  # it was killed before, and the pool has just joined it
                    os.kill(worker.pid, signal.SIGKILL)
            lost = 0
            for i, result in enumerate(results):
                try:
                    assert result.get(SECONDS)[0].item() == 2 * i
                except mp.ProcessExitedException:
                    lost += 1
            assert lost <= 2
        pool.close()
        pool.join()


def raise_(*args):
    raise ValueError("no start")


def test_a_pool_whose_processes_cannot_start(capfd):
    with fork.Pool(1, initializer=raise_) as pool:
        result = pool.apply_async(abs, (1,))
        with pytest.raises(mp.ProcessExitedException, match="before it received a task"):
            result.get(SECONDS)
    assert "no start" in capfd.readouterr().err


class Unreadable:
    def __reduce__(self):
        return raise_, ()


def test_a_task_that_cannot_be_unpickled_raises():
    with fork.Pool(1) as pool:
        result = pool.apply_async(abs, (Unreadable(),))
        with pytest.raises(ValueError, match="no start"):
            result.get(SECONDS)
        assert pool.apply(abs, (-1,)) == 1


def test_a_pool_ends_although_its_pipe_is_full():
    pool = fork.Pool(1)
    pool.map_async(time.sleep, [60] * 1000, chunksize=1)
    time.sleep(0.1)
    worker = pool._pool[0]._process
    os.kill(worker.pid, signal.SIGKILL)
    # A thread of the pool collects the exit code, so that `worker.join()` could return before it is known.
    assert multiprocessing.connection.wait([worker.sentinel], SECONDS)
    started = time.monotonic()
    pool.terminate()
    pool.join()
    assert time.monotonic() - started < SECONDS


def receive_and_die():
    receive = mp.Connection.try_recv_tagged

    def die(connection):
        message = receive(connection)
        if message is not None and b"fatal" in bytes(message[1]):
            os.kill(os.getpid(), signal.SIGKILL)  # before the process records which task it has received
        return message

    mp.Connection.try_recv_tagged = die


def test_a_process_of_a_pool_that_is_killed_before_it_says_what_it_received():
    with fork.Pool(2, initializer=receive_and_die) as pool:
        results = [pool.apply_async(len, (text,)) for text in ["a", "fatal", "ab", "fatal", "abc"]]
        for i in (1, 3):
            with pytest.raises(mp.ProcessExitedException, match="SIGKILL"):
                results[i].get(SECONDS)
        assert [results[i].get(SECONDS) for i in (0, 2, 4)] == [1, 2, 3]
