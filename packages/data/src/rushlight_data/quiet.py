"""Read batches without seeding random generators if the samples of the dataset draw no random numbers.

Note [Quiet datasets] Seeding the generators of `random` and NumPy before a batch, and restoring their states
after it, takes longer than reading a batch of tiny samples, and is not necessary if samples draw no random
numbers, as in most datasets. Before the first batch of a loader, the generators are seeded. If reading the
first batch does not change the states of the generators, the dataset is treated as quiet, and later batches
are read without seeding. If a later batch nevertheless draws random numbers, the loader notices that the
memory of a generator has changed. The loader then restores the states of the generators, seeds them, reads
the batch again, and from then on seeds the generators before every batch. The contents of batches are
therefore the same as if the generators were seeded before every batch. Only the samples of the first batch
that draws random numbers are read twice.

rushlight's own generator is seeded and restored for every batch, which takes 0.2 microseconds. While a batch is read,
NumPy's generator is replaced by a generator of the loader. The replacement also discards a normally distributed
number that NumPy's legacy generator may have computed in advance.
"""

from __future__ import annotations

import _random
import ctypes
import random
import struct
from typing import Any

import rushlight_core as core

from .fetch import Fetcher, Task
from .random_streams import PreservedStreams, imported_numpy, seed_core, seed_streams

_WORDS = 624
_Snapshot = tuple[bytes, Any]


def memory_of_random() -> memoryview | None:
    """Return the memory of the generator behind the functions of `random`, or None if its layout is unknown.

    In CPython a generator consists of an object header, the position and the words of a Mersenne Twister.
    Callers must not write to this memory. Comparing the memory takes less time than `random.getstate`, which
    takes 9 microseconds."""
    size = 4 * (_WORDS + 1)
    if _random.Random.__basicsize__ < object.__basicsize__ + size:
        return None
    memory = _memory(id(random._inst) + object.__basicsize__, size)
    _, state, _ = random.getstate()
    return memory if bytes(memory) == struct.pack(f"=i{_WORDS}I", state[-1], *state[:-1]) else None


def memory_of_numpy(generator: Any) -> memoryview | None:
    """Return the memory of one of NumPy's MT19937 generators, or None if its layout is unknown."""
    memory = _memory(generator.ctypes.state_address, 4 * (_WORDS + 1))
    state = generator.state["state"]
    return memory if bytes(memory) == struct.pack(f"={_WORDS}Ii", *state["key"], state["pos"]) else None


def _memory(address: int, size: int) -> memoryview:
    return memoryview((ctypes.c_ubyte * size).from_address(address)).cast("B")


class QuietStreams:
    """Reads batches of a map-style dataset, without seeding random generators if the samples draw no random numbers."""

    def __init__(self) -> None:
        self._random = memory_of_random()
        # Whether batches are read without seeds: None before the first batch, which is read with seeds.
        self.quiet: bool | None = False if self._random is None else None
        self._generator: Any = None  # replaces NumPy's generator; None before NumPy is imported
        self._numpy: memoryview | None = None
        self._unused = b""  # the memory of that generator before any draw

    def __reduce__(self) -> Any:
        return QuietStreams, ()  # a loader that is copied or unpickled reads its first batch with seeds again

    def fetch(self, fetcher: Fetcher, task: Task, preserved: PreservedStreams) -> Any:
        """Return the batch of a task, and leave the random generators of this process unchanged."""
        if self.quiet:
            fetcher.reseed = seed_core
            drawn, data = self._fetch_unseeded(fetcher, task)
            if not drawn:
                return data
            self.quiet = False
        fetcher.reseed = seed_streams
        with preserved:
            return self._fetch_first(fetcher, task) if self.quiet is None else fetcher.fetch(task)

    def _fetch_first(self, fetcher: Fetcher, task: Task) -> Any:
        """Seed the generators, read a batch, and record whether its samples drew random numbers."""
        seeded: tuple[Any, Any] = (None, None)

        def reseed(seed: int) -> None:
            nonlocal seeded
            seed_streams(seed)
            seeded = self._snapshot(), _state_of_numpy()

        fetcher.reseed = reseed
        self.quiet = False  # if an exception is raised
        data = fetcher.fetch(task)
        random_of, numpy_of = seeded
        if numpy_of is None and imported_numpy() is not None:
            self.quiet = None  # the dataset has imported NumPy: decide at the next batch
        else:
            self.quiet = self._snapshot() == random_of and _state_of_numpy() == numpy_of
        return data

    def _fetch_unseeded(self, fetcher: Fetcher, task: Task) -> tuple[bool, Any]:
        """Return whether samples drew random numbers, and the batch, which is valid only if they did not.

        If samples drew random numbers, restore the earlier states of the generators, and discard an exception that a
        sample raised."""
        before = self._snapshot()
        numpy = imported_numpy()
        if numpy is not None:
            if self._numpy is None and not self._watch_numpy(numpy):
                return True, None
            replaced = numpy.random.get_bit_generator()
            numpy.random.set_bit_generator(self._generator)
        ours = core.default_generator.get_state()
        data = error = None
        try:
            data = fetcher.fetch(task)
        except Exception as raised:
            error = raised
        finally:
            core.default_generator.set_state(ours)
            drawn = self._snapshot() != before
            if drawn:
                _restore(before)
            if numpy is not None:
                numpy.random.set_bit_generator(replaced)
                drawn = drawn or bytes(self._numpy) != self._unused  # type: ignore[arg-type]
            else:
                # The dataset has just imported NumPy, so its draws were not observed.
                drawn = drawn or imported_numpy() is not None
        if error is not None and not drawn:
            raise error
        return drawn, data

    def _watch_numpy(self, numpy: Any) -> bool:
        self._generator = numpy.random.MT19937(0)
        self._numpy = memory_of_numpy(self._generator)
        self._unused = bytes(self._numpy or b"")
        return self._numpy is not None

    def _snapshot(self) -> _Snapshot:
        return bytes(self._random), random._inst.gauss_next  # type: ignore[arg-type, attr-defined]


def _state_of_numpy() -> tuple[Any, ...] | None:
    numpy = imported_numpy()
    if numpy is None:
        return None
    _, key, *rest = numpy.random.get_state()
    return key.tobytes(), *rest


def _restore(snapshot: _Snapshot) -> None:
    position, *words = struct.unpack(f"=i{_WORDS}I", snapshot[0])
    random.setstate((3, (*words, position), snapshot[1]))
