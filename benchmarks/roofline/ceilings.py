"""Measure the machine's limits: products of large matrices, and copies that exceed the caches."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import process

ORDER, COPIED = 2048, 256 << 20  # rows and columns; bytes


def measure(threads: int) -> dict[str, float]:
    """Return the GFLOP/s of float32 products, the best of ours and NumPy's, and the GB/s that a copy reads and writes."""
    found: dict[str, float] = process.fresh(_measure, threads)
    return found


def _measure(send: process.Send, threads: int) -> None:
    import rushlight as torch

    torch.set_num_threads(threads)
    a, b = (np.random.default_rng(0).random((ORDER, ORDER), np.float32) for _ in "ab")
    x, y = torch.from_numpy(a), torch.from_numpy(b)
    operations = 2 * ORDER**3 / 1e9
    source, target = torch.ones(COPIED // 4), torch.ones(COPIED // 4)
    products: tuple[Callable[[], Any], ...] = (lambda: a @ b, lambda: x @ y)
    send(
        {
            "gflops": operations / min(_fastest(product, 10) for product in products),
            "gbytes": 2 * COPIED / 1e9 / _fastest(lambda: target.copy_(source), 10),
        }
    )


def _fastest(function: Callable[[], Any], repeats: int) -> float:
    """Return the seconds of the fastest call, after one that is not timed."""
    function()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)
