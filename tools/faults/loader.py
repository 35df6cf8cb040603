"""Faults of a DataLoader with worker processes."""

from __future__ import annotations

import ctypes
import mmap
import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from faults.registry import NO_ERROR, fault

BAD = 10  # the sample with the fault


class _Unpicklable(Exception):  # noqa: N818
    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.lock = threading.Lock()


class _TwoArguments(Exception):  # noqa: N818
    def __init__(self, path: str, line: int) -> None:
        super().__init__(f"{path}:{line} is empty")


def _raise(error: Any) -> None:
    raise error


def _recurse() -> None:
    _recurse()


def _fork() -> None:
    if os.fork() == 0:
        time.sleep(0.2)
        sys.exit(0)


def _closed_memory() -> Any:
    import numpy

    region = mmap.mmap(-1, 1 << 16)
    array = numpy.frombuffer(region, dtype=numpy.float32)[:4].copy()
    del array
    region.close()
    return memoryview(region)  # raises ValueError because the memory is closed


# The faults, and the regular expression that an error must match.
WAYS: dict[str, tuple[Callable[[], Any], str]] = {
    "ValueError": (lambda: _raise(ValueError("the file is empty")), r"ValueError.*the file is empty"),
    "KeyError": (lambda: _raise(KeyError("label")), r"KeyError.*label"),
    "an exception that cannot be pickled": (lambda: _raise(_Unpicklable("no lock")), r"no lock"),
    "an exception with two arguments": (lambda: _raise(_TwoArguments("a.txt", 3)), r"a\.txt:3 is empty"),
    "StopIteration": (lambda: _raise(StopIteration), r"StopIteration"),
    "SystemExit": (lambda: sys.exit(3), r"exit|Exit"),
    "KeyboardInterrupt": (lambda: _raise(KeyboardInterrupt), r"KeyboardInterrupt|worker.*exit"),
    "RecursionError": (_recurse, r"RecursionError"),
    "MemoryError": (lambda: _raise(MemoryError("no room")), r"MemoryError|no room"),
    "os._exit(0)": (lambda: os._exit(0), r"\b(pid|worker)\b.*exit"),
    "os._exit(3)": (lambda: os._exit(3), r"\b(pid|worker)\b.*exit"),
    "abort": (os.abort, r"SIGABRT|Aborted"),
    "a segmentation fault": (lambda: ctypes.string_at(8), r"SIGSEGV|Segmentation"),
    "SIGKILL": (lambda: os.kill(os.getpid(), signal.SIGKILL), r"SIGKILL|Killed"),
    "SIGTERM": (lambda: os.kill(os.getpid(), signal.SIGTERM), r"SIGTERM|Terminated"),
    "SIGSTOP, with a timeout": (lambda: os.kill(os.getpid(), signal.SIGSTOP), r"timed out"),
    "an endless sleep, with a timeout": (lambda: time.sleep(1000), r"timed out"),
    "a fork that exits": (_fork, NO_ERROR),
    "memory that is closed": (_closed_memory, r"ValueError"),
    "a lambda": (lambda: lambda: 1, r"function|lambda|pickle"),
    "a tensor of another shape": (lambda: "shape", r"shape|size|equal"),
    "an object of an unknown class": (object, r"object"),
}
FEW = [
    "ValueError", "an exception that cannot be pickled", "os._exit(3)", "a segmentation fault", "SIGKILL", "SystemExit",
    "an endless sleep, with a timeout", "StopIteration",
]  # fmt: skip


def _act(lib: Any, way: str) -> Any:
    value = WAYS[way][0]()
    return lib.torch.ones(3) if value == "shape" else value


def _sample(lib: Any, i: int, way: str) -> Any:
    if i == BAD:
        value = _act(lib, way)
        if value is not None:
            return value
    return lib.torch.full((8,), float(i))


def _options(way: str) -> dict[str, Any]:
    return {"timeout": 2} if "timeout" in way else {}


def _read(loader: Any) -> bool:
    """Read an epoch of 16 samples; return whether all of them arrived."""
    seen = [float(value) for batch in loader for value in batch[:, 0]]
    return sorted(seen) == [float(i) for i in range(16)]


def _in_sample(lib: Any, way: str) -> bool:
    class Samples(lib.data.Dataset):
        def __len__(self) -> int:
            return 16

        def __getitem__(self, i: int) -> Any:
            return _sample(lib, i, way)

    return _read(lib.data.DataLoader(Samples(), 4, num_workers=2, **_options(way)))


def _in_stream(lib: Any, way: str) -> bool:
    class Samples(lib.data.IterableDataset):
        def __iter__(self) -> Any:
            worker = lib.data.get_worker_info()
            for i in range(worker.id, 16, worker.num_workers):
                yield _sample(lib, i, way)

    return _read(lib.data.DataLoader(Samples(), 2, num_workers=2, **_options(way)))


def _in_collate(lib: Any, way: str) -> bool:
    def collate(samples: list[int]) -> Any:
        if BAD in samples:
            _act(lib, way)
        return lib.torch.tensor(samples).reshape(-1, 1)

    return _read(lib.data.DataLoader(range(16), 4, num_workers=2, collate_fn=collate, **_options(way)))


def _in_init(lib: Any, way: str) -> bool:
    def init(worker: int) -> None:
        if worker == 1:
            _act(lib, way)

    data = lib.data.TensorDataset(lib.torch.arange(16).reshape(16, 1))
    loader = lib.data.DataLoader(data, 4, num_workers=2, worker_init_fn=init, **_options(way))
    return _read([batch[0] for batch in loader])


for _way, (_, _names) in WAYS.items():
    fault("a sample", _way, _names)(partial(_in_sample, way=_way))
for _way in FEW:
    fault("a stream's sample", _way, WAYS[_way][1])(partial(_in_stream, way=_way))
    fault("collate_fn", _way, WAYS[_way][1])(partial(_in_collate, way=_way))
    fault("worker_init_fn", _way, WAYS[_way][1])(partial(_in_init, way=_way))


class _Numbers:
    def __init__(self, lib: Any, seconds: float = 0.0) -> None:
        self.lib, self.seconds = lib, seconds

    def __len__(self) -> int:
        return 16

    def __getitem__(self, i: int) -> Any:
        time.sleep(self.seconds)
        return self.lib.torch.full((8,), float(i))


def _children() -> list[int]:
    with open(f"/proc/self/task/{os.getpid()}/children") as file:
        return [int(pid) for pid in file.read().split()]


def _between(lib: Any, signal_: int, **options: Any) -> bool:
    loader = lib.data.DataLoader(_Numbers(lib), 4, num_workers=2, persistent_workers=True, **options)
    good = _read(loader)
    for pid in _children():
        os.kill(pid, signal_)
    time.sleep(0.2)
    return _read(loader) and good


fault("a worker between epochs", "SIGKILL", r"SIGKILL|Killed")(partial(_between, signal_=signal.SIGKILL))
fault("a worker between epochs", "SIGSTOP, with a timeout", "timed out")(
    partial(_between, signal_=signal.SIGSTOP, timeout=2)
)


@fault("the loop", "all workers are killed while one batch is read", r"SIGKILL|Killed")
def _all(lib: Any) -> bool:
    iterator = iter(lib.data.DataLoader(_Numbers(lib, 0.1), 1, num_workers=2, prefetch_factor=1))
    next(iterator)
    for pid in _children():
        os.kill(pid, signal.SIGKILL)
    return _read(iterator)


@fault("the loop", "break")
def _break(lib: Any) -> bool:
    for _ in lib.data.DataLoader(_Numbers(lib, 0.3), 1, num_workers=2):
        break
    return True


@fault("the loop", "an exception in its body", "body")
def _body(lib: Any) -> bool:
    for _ in lib.data.DataLoader(_Numbers(lib, 0.3), 1, num_workers=2):
        raise ValueError("body")
    return False


@fault("the loop", "Ctrl-C", "KeyboardInterrupt")
def _interrupt(lib: Any) -> bool:
    timer = threading.Timer(0.5, os.killpg, (os.getpgrp(), signal.SIGINT))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    timer.start()
    return _read(lib.data.DataLoader(_Numbers(lib, 0.5), 1, num_workers=2))


@fault("the loop", "sys.exit in its body", "SystemExit")
def _exit(lib: Any) -> bool:
    for _ in lib.data.DataLoader(_Numbers(lib, 0.3), 1, num_workers=2):
        sys.exit(0)
    return False


@fault("the loop", "the program is killed", "")
def _killed(lib: Any) -> bool:
    for _ in lib.data.DataLoader(_Numbers(lib, 0.3), 1, num_workers=2):
        os.kill(os.getpid(), signal.SIGKILL)
    return False


@fault("the loop", "the sampler raises", "sampler is broken")
def _sampler(lib: Any) -> bool:
    def order() -> Any:
        yield from range(6)
        raise ValueError("sampler is broken")

    return _read(lib.data.DataLoader(_Numbers(lib), 2, sampler=order(), num_workers=2))


@fault("the loop", "batches are held with 64 descriptors", "descriptor|files")
def _descriptors(lib: Any) -> bool:
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    data = lib.data.TensorDataset(lib.torch.arange(400.0).reshape(-1, 1))
    held = list(lib.data.DataLoader(data, 1, num_workers=2))
    return [float(batch[0]) for batch in held] == [float(i) for i in range(400)]
