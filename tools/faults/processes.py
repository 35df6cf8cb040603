"""Faults of processes, queues, pipes and pools that carry tensors."""

from __future__ import annotations

import os
import resource
import signal
import sys
import threading
import time
from functools import partial
from typing import Any

from faults.registry import fault


def _start(lib: Any, target: Any, *args: Any) -> Any:
    process = lib.mp.get_context("fork").Process(target=target, args=args)
    process.start()
    return process


def _put(queue: Any, value: Any, how: str) -> None:
    queue.put(value)
    if how == "killed":
        time.sleep(0.3)
        os.kill(os.getpid(), signal.SIGKILL)


def _after_sender(lib: Any, how: str) -> bool:
    queue = lib.mp.get_context("fork").Queue()
    sender = _start(lib, _put, queue, lib.torch.arange(1000.0), how)
    sender.join(2)  # by now the sender has ended
    value = queue.get(timeout=3)
    return float(value.sum()) == 499500.0


fault("a tensor in a queue", "the sender has ended")(partial(_after_sender, how="ends"))
fault("a tensor in a queue", "the sender was killed")(partial(_after_sender, how="killed"))


def _get_and_die(queue: Any) -> None:
    queue.get()
    os.kill(os.getpid(), signal.SIGKILL)


@fault("a tensor in a queue", "the receiver is killed")
def _receiver(lib: Any) -> bool:
    queue = lib.mp.get_context("fork").Queue()
    receiver = _start(lib, _get_and_die, queue)
    queue.put(lib.torch.ones(100_000))
    receiver.join()
    queue.put(lib.torch.full((3,), 2.0))
    return queue.get(timeout=3).tolist() == [2.0] * 3


@fault("a tensor in a queue", "a waiting reader is killed")
def _waiting(lib: Any) -> bool:
    queue = lib.mp.get_context("fork").Queue()
    reader = _start(lib, queue.get)
    time.sleep(0.3)
    os.kill(reader.pid, signal.SIGKILL)
    reader.join()
    queue.put(lib.torch.ones(3))
    return queue.get(timeout=3).tolist() == [1.0] * 3


@fault("a tensor in a queue", "an object cannot be pickled", "pickle")
def _unpicklable(lib: Any) -> bool:
    queue = lib.mp.get_context("fork").Queue()
    queue.put(threading.Lock())
    queue.put(1)
    return queue.get(timeout=3) == "an error"


@fault("a tensor in a queue", "it is changed after put")
def _changed(lib: Any) -> bool:
    queue = lib.mp.get_context("fork").Queue()
    values = [0]
    queue.put(values)
    values.append(1)
    return queue.get(timeout=3) == [0]


def _many(lib: Any, count: int, limit: int) -> bool:
    queue = lib.mp.get_context("fork").Queue()

    def send() -> None:
        for i in range(count):
            queue.put(lib.torch.full((2,), float(i)))
        time.sleep(60)

    sender = _start(lib, send)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    held = [queue.get(timeout=5) for _ in range(count)]
    good = [float(t[0]) for t in held] == [float(i) for i in range(count)]
    os.kill(sender.pid, signal.SIGKILL)
    sender.join()
    return good


fault("tensors that are held", "200 with 64 descriptors", "descriptor|files")(
    partial(_many, count=200, limit=64)
)
fault("tensors that are held", "3000 with 1024 descriptors", "descriptor|files")(
    partial(_many, count=3000, limit=1024)
)


@fault("a pipe", "the other end is closed", "EOF|Broken|closed")
def _pipe(lib: Any) -> bool:
    ours, theirs = lib.mp.get_context("fork").Pipe()
    theirs.close()
    ours.recv()
    return False


@fault("a pipe", "the writer is killed in a message", "EOF|end of file|message")
def _partial(lib: Any) -> bool:
    ours, theirs = lib.mp.get_context("fork").Pipe(duplex=False)
    writer = _start(lib, lambda: theirs.send(b"x" * (64 << 20)))
    theirs.close()
    time.sleep(0.3)
    os.kill(writer.pid, signal.SIGKILL)
    writer.join()
    return len(ours.recv()) == 64 << 20


def _work(i: int, how: str) -> None:
    if i == 0:
        time.sleep(1000)
    if how == "raises":
        raise ValueError("job is broken")
    if how == "exits":
        sys.exit(3)
    if how == "is killed":
        os.kill(os.getpid(), signal.SIGKILL)
    from faults.loader import _Unpicklable

    raise _Unpicklable("job is broken")


for _how, _names in {
    "raises": "job is broken",
    "exits": "exit code 3|status 3",
    "is killed": "SIGKILL",
    "raises an error that cannot be pickled": "job is broken",
}.items():

    def _spawn(lib: Any, how: str) -> bool:
        lib.mp.start_processes(_work, (how,), nprocs=2, start_method="fork")
        return False

    fault("start_processes, where one process", _how, _names)(partial(_spawn, how=_how))


def _die(_: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@fault("a pool", "a worker is killed in a task", "SIGKILL|Killed|worker|ended")
def _pool_killed(lib: Any) -> bool:
    with lib.mp.get_context("fork").Pool(2) as pool:
        pool.map(_die, [0])
    return False


@fault("a pool", "a result cannot be pickled", "pickle")
def _pool_result(lib: Any) -> bool:
    with lib.mp.get_context("fork").Pool(1) as pool:
        pool.apply(threading.Lock)
    return False


@fault("a pool", "a task raises", "job is broken")
def _pool_raises(lib: Any) -> bool:
    with lib.mp.get_context("fork").Pool(1) as pool:
        pool.apply(_work, (1, "raises"))
    return False


@fault("shared memory", "its owner is killed while another process reads")
def _owner(lib: Any) -> bool:
    ours, theirs = lib.mp.get_context("fork").Pipe()

    def own() -> None:
        tensor = lib.torch.ones(1 << 20)
        theirs.send(tensor)
        theirs.recv()
        os.kill(os.getpid(), signal.SIGKILL)

    owner = _start(lib, own)
    tensor = ours.recv()
    ours.send("die")
    owner.join()
    tensor += 1
    return float(tensor.sum()) == 2.0 * (1 << 20)
