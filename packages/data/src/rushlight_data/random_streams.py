"""Random streams: which numbers a sample sees.

Note [Streams]
A dataset draws from the global streams of `random`, NumPy and core. What it draws must not
depend on which worker reads a sample, on how many there are, or on where a run was resumed. So before each
batch (or, by choice, each sample) the streams are seeded by a hash of the epoch's seed and the batch's number
(the sample's position) in the epoch. Without workers this happens in the training process, whose own streams
are put aside meanwhile: training draws the same numbers for any number of workers, too. (But for one: the
second Gaussian that NumPy's old generator keeps in reserve is lost.)
"""

from __future__ import annotations

import random
import sys
import threading
from collections.abc import Iterator
from typing import Any

import rushlight_core as core

_MASK = (1 << 64) - 1


def mix(*numbers: int) -> int:
    """A 64-bit hash of integers (the finaliser of SplitMix64, Steele et al. 2014, chained)."""
    h = 0x9E3779B97F4A7C15
    for number in numbers:
        h = (h ^ (number & _MASK)) + 0x9E3779B97F4A7C15 & _MASK
        h = (h ^ (h >> 30)) * 0xBF58476D1CE4E5B9 & _MASK
        h = (h ^ (h >> 27)) * 0x94D049BB133111EB & _MASK
        h ^= h >> 31
    return h


def new_seed(generator: Any = None) -> int:
    """A 63-bit seed drawn from a generator, by default from core's global stream."""
    return int(core.empty((), dtype=core.int64).random_(generator=generator).item())


def permutation(n: int, seed: int, start: int = 0) -> Iterator[int]:
    """The numbers below `n` in the order that `seed` gives, from position `start` on."""
    order = core.randperm(n, generator=generator_of(seed))
    for i in range(start, n, 4096):  # a list of all would cost 36 bytes an index
        yield from order[i : i + 4096].tolist()


def generator_of(seed: int) -> Any:
    """A generator of core's with this seed."""
    generator = core.Generator()
    generator.manual_seed(seed)
    return generator


_own = threading.local()


def give_own_generator(seed: int) -> None:
    """Give the calling thread a generator of its own, which `seed_streams` seeds from now on."""
    _own.generator = generator_of(seed)


def thread_safe_generator() -> Any:
    """In a worker that is a thread, its own generator; None elsewhere, which stands for the default one.

    Threads share the global streams. What is drawn from this generator depends on the loader's seed and the batch alone,
    and is what a worker process draws from the default one.
    """
    return getattr(_own, "generator", None)


def seed_streams(seed: int) -> None:
    """Seed the global streams of `random`, core and, if it is loaded, NumPy; and the thread's own generator."""
    own = thread_safe_generator()
    if own is not None:
        own.manual_seed(seed & (_MASK >> 1))
    random.seed(seed)
    core.default_generator.manual_seed(seed & (_MASK >> 1))
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(seed & 0xFFFFFFFF)


class Aside:
    """`with Aside():` puts this process's global streams aside, so that `seed_streams` disturbs nobody."""

    __slots__ = ("_core", "_numpy", "_python", "_replaced")

    def __init__(self) -> None:
        self._numpy: Any = None

    def __enter__(self) -> None:
        self._python = random.getstate()
        self._core = core.default_generator.get_state()
        numpy = sys.modules.get("numpy")
        if numpy is not None:
            # Reading the state of NumPy's stream takes 50 microseconds; exchanging the generator behind it
            # takes none.
            if self._numpy is None:
                self._numpy = numpy.random.MT19937()
            self._replaced = numpy.random.get_bit_generator()
            numpy.random.set_bit_generator(self._numpy)

    def __exit__(self, *exc: object) -> None:
        random.setstate(self._python)
        core.default_generator.set_state(self._core)
        numpy = sys.modules.get("numpy")
        if numpy is not None and self._numpy is not None:
            # A dataset that imports NumPy for the first time leaves it seeded: there was no stream to put
            # aside.
            numpy.random.set_bit_generator(self._replaced)
