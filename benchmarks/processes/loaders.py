"""Measure loaders: samples per second by kind of sample and workers, the second epoch's first batch, shared memory."""

from __future__ import annotations

import importlib
import io
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np


class Dataset:
    """The library under test, and the number of samples."""

    def __init__(self, torch: Any, length: int) -> None:
        self.torch, self.length = torch, length

    def __len__(self) -> int:
        return self.length


class Decoded(Dataset):
    """Samples of 600 KB that take about 2 ms of NumPy."""

    batch = 8

    def __init__(self, torch: Any, length: int) -> None:
        super().__init__(torch, length)
        self.seed = np.arange(200_000, dtype=np.float32)

    def __getitem__(self, i: int) -> Any:
        data = self.seed * np.float32(1.0 / (i + 1))
        end = time.perf_counter() + 2e-3
        while time.perf_counter() < end:
            np.sqrt(data[:50_000], out=data[:50_000])
        return self.torch.from_numpy(data[:150_000]), i


class Tiny:
    """Samples of 8 numbers."""

    batch = 32

    def __init__(self, torch: Any, length: int) -> None:
        self.table = torch.arange(8.0 * 64).view(64, 8)
        self.length = length

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, i: int) -> Any:
        return self.table[i % 64], i


class Computed(Dataset):
    """Samples of 16 KB that take about 2 ms of Python, which holds the GIL."""

    batch = 8

    def __getitem__(self, i: int) -> Any:
        total = 0
        for number in range(30_000):
            total += number ^ i
        return self.torch.full((4096,), float(total)), i


class Awaited(Dataset):
    """Samples of 16 KB for which the dataset waits 4 ms, as for a network."""

    batch = 8

    def __getitem__(self, i: int) -> Any:
        time.sleep(4e-3)
        return self.torch.full((4096,), float(i)), i


class Images:
    """JPEG files in memory, decoded and resized by Pillow."""

    batch = 8

    def __init__(self, torch: Any, length: int) -> None:
        image = importlib.import_module("PIL.Image")
        self.torch, self.length, self.open = torch, length, image.open
        noise = np.random.default_rng(0).integers(0, 255, (48, 64, 3), dtype=np.uint8)
        file = io.BytesIO()
        image.fromarray(noise).resize((500, 375)).save(file, "JPEG", quality=90)
        self.file = file.getvalue()

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, i: int) -> Any:
        pixels = np.array(self.open(io.BytesIO(self.file)).convert("RGB").resize((224, 224)))
        return self.torch.from_numpy(pixels).permute(2, 0, 1).float() / 255, i


KINDS = {
    "decode-like samples": (Decoded, 400),
    "Python samples": (Computed, 400),
    "waiting samples": (Awaited, 400),
    "tiny samples": (Tiny, 60_000),
    "images": (Images, 400),
}


def _loader(module: str, kind: str, workers: int, quick: bool, threads: bool = False) -> Any:
    torch = importlib.import_module(module)
    torch.set_num_threads(1)
    made, length = KINDS[kind]
    dataset = made(torch, length // 20 if quick else length)
    data = importlib.import_module(f"{module}.utils.data")
    options: dict[str, Any] = {"persistent_workers": True} if workers else {}
    if threads and module != "torch":  # the peer has no worker threads
        options["transport"] = "threads"
    elif workers:
        options["multiprocessing_context"] = "fork"
    return data.DataLoader(dataset, made.batch, num_workers=workers, **options)


def epoch_time(send: Any, module: str, quick: bool, kind: str, workers: int, threads: bool) -> None:
    """Measure the milliseconds of the fastest of three epochs after the first one.

    If `threads` is true, the workers are threads, and the peer's are processes."""
    loader = _loader(module, kind, workers, quick, threads)
    times = []
    for _ in range(2 if quick else 4):
        begun = time.perf_counter()
        count = sum(len(indices) for _, indices in loader)
        times.append(time.perf_counter() - begun)
        assert count == len(loader.dataset)
    send(1e3 * min(times[1:]))


def second_first_batch(send: Any, module: str, quick: bool, workers: int) -> None:
    """Measure the milliseconds until the second epoch's first batch, if it begins a second after the first epoch."""
    loader = _loader(module, "decode-like samples", workers, quick)
    for _ in loader:
        pass
    time.sleep(0.2 if quick else 1.0)
    begun = time.perf_counter()
    next(iter(loader))
    send(1e3 * (time.perf_counter() - begun))


def _shared_bytes() -> int:
    """Return the bytes of shared memory of the whole system: memory that waits in a queue belongs to no process."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("Shmem:"))


def shared_memory(send: Any, module: str, quick: bool, pause: float) -> None:
    """Measure the median megabytes of shared memory while 2 workers read batches of 4.8 MB.

    The loop pauses for `pause` seconds after each batch, as if it trained.
    """
    loader = _loader(module, "decode-like samples", 2, quick)
    before, seen = _shared_bytes(), []
    for _ in range(2 if quick else 3):
        for _ in loader:
            time.sleep(pause)
            seen.append(_shared_bytes() - before)
    send(sorted(seen)[len(seen) // 2] / 1e6)


def throughput(kind: str, workers: int, threads: bool = False) -> Any:
    return partial(epoch_time, kind=kind, workers=workers, threads=threads)


def first_batch(workers: int) -> Any:
    return partial(second_first_batch, workers=workers)


def memory(pause: float) -> Any:
    return partial(shared_memory, pause=pause)
