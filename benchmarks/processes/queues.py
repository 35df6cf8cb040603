"""Measure sending tensors and plain objects to another process and back."""

from __future__ import annotations

import importlib
import math
import os
import time
from collections.abc import Callable
from typing import Any

_PLAIN = {"step": 7, "name": "layer.3.weight", "losses": [0.5, 0.25, 0.125], "done": False}


def _echo(incoming: Any, outgoing: Any) -> None:
    while (value := incoming.get()) is not None:
        outgoing.put(value)


def _round_trips(module: str, values: Callable[[Any], Any], count: int) -> float:
    """Return the smallest milliseconds of `count` round trips."""
    torch = importlib.import_module(module)
    context = importlib.import_module(f"{module}.multiprocessing").get_context("fork")
    there, back = context.Queue(), context.Queue()
    process = context.Process(target=_echo, args=(there, back), daemon=True)
    process.start()
    best = math.inf
    for number in range(count + 1):
        value = values(torch)
        begun = time.perf_counter()
        there.put(value)
        returned = back.get()
        if number:  # the first one includes imports and mappings, and does not count
            best = min(best, time.perf_counter() - begun)
        del value, returned
    there.put(None)
    process.join()
    return 1e3 * best


def shared_round_trip(send: Any, module: str, quick: bool) -> None:
    """Measure a round trip of 256 MB that are already in shared memory."""
    kept: list[Any] = []

    def values(torch: Any) -> Any:
        if not kept:
            kept.append(torch.ones((4 if quick else 64) << 20).share_memory_())
        return kept[0]

    send(_round_trips(module, values, 3 if quick else 20))


def fresh_round_trip(send: Any, module: str, quick: bool) -> None:
    """Measure a round trip of 256 MB that are not in shared memory."""
    send(_round_trips(module, lambda torch: torch.ones((4 if quick else 64) << 20), 2 if quick else 5))


def plain_round_trips(send: Any, module: str, quick: bool) -> None:
    """Measure round trips of 1,000 plain objects, one by one."""
    context = importlib.import_module(f"{module}.multiprocessing").get_context("fork")
    there, back = context.Queue(), context.Queue()
    process = context.Process(target=_echo, args=(there, back), daemon=True)
    process.start()
    best = math.inf
    for _ in range(2 if quick else 8):
        begun = time.perf_counter()
        for _ in range(100 if quick else 1000):
            there.put(_PLAIN)
            back.get()
        best = min(best, time.perf_counter() - begun)
    there.put(None)
    process.join()
    send(1e3 * best)


def _put_small(torch: Any, queue: Any, count: int, done: Any) -> None:
    for number in range(count):
        queue.put(torch.full((16,), float(number)))
    done.wait()


def _receive_small(module: str, count: int, held: bool) -> float:
    """Return the seconds to receive `count` small tensors, which are kept if `held` is true."""
    torch = importlib.import_module(module)
    context = importlib.import_module(f"{module}.multiprocessing").get_context("fork")
    queue, done = context.Queue(), context.Event()
    process = context.Process(target=_put_small, args=(torch, queue, count, done), daemon=True)
    begun = time.perf_counter()
    process.start()
    kept = []
    for _ in range(count):
        tensor = queue.get()
        if held:
            kept.append(tensor)
    spent = time.perf_counter() - begun
    assert not held or (len(kept) == count and kept[-1][3].item() == count - 1)
    descriptors.append(len(os.listdir("/proc/self/fd")))
    done.set()
    process.join()
    return spent


descriptors: list[int] = []  # descriptors that are open at the end of each run


def small_tensors(send: Any, module: str, quick: bool) -> None:
    """Measure sending 10,000 tensors of 64 bytes through a queue."""
    send(1e3 * _receive_small(module, 300 if quick else 10_000, held=False))


def growth_of_held(send: Any, module: str, quick: bool) -> None:
    """Measure how the time per tensor grows from 10,000 to 100,000 tensors that the receiver keeps."""
    few, many = (200, 1000) if quick else (10_000, 100_000)
    first = _receive_small(module, few, held=True)
    send(_receive_small(module, many, held=True) / first * few / many)


def descriptors_of_held(send: Any, module: str, quick: bool) -> None:
    """Count the descriptors that are open while 100,000 tensors are kept."""
    _receive_small(module, 500 if quick else 100_000, held=True)
    send(float(descriptors[-1]))
