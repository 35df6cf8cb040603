"""Seeding of the random streams that datasets draw from.

Note [Streams]
A dataset draws random numbers from the global streams of `random`, NumPy and `rushlight_core`. The drawn
numbers must not depend on which worker reads a sample, on the number of workers, or on the position at which
a run was resumed. Therefore the streams are seeded before each batch, with a hash of the epoch's seed and the
batch's number in the epoch. With `streams="sample"`, they are seeded before each sample, with a hash of the
epoch's seed and the sample's position. Without workers, the training process reads the samples, so its own
streams are seeded. The streams of the training process are saved before each batch and restored after it, so
that training also draws the same numbers for any number of workers. Note [Quiet datasets] describes how
seeding is avoided if samples draw no random numbers. One value is not restored: the second Gaussian that
NumPy's legacy generator caches.
"""

from __future__ import annotations

import itertools
import random
import sys
import threading
from collections.abc import Iterator
from typing import Any

import rushlight_core as core

_MASK = (1 << 64) - 1


def imported_numpy() -> Any:
    """Return the module `numpy` if the program has imported it, and None otherwise.

    While another thread imports NumPy, `sys.modules` contains a module that lacks some attributes. In that
    case, the function returns None, because the calling thread cannot have created arrays yet."""
    numpy = sys.modules.get("numpy")
    if numpy is not None and getattr(numpy.__spec__, "_initializing", False):
        return None
    return numpy


def mix(*numbers: int) -> int:
    """Hash integers to 64 bits, by chaining the finalizer of SplitMix64 (Steele et al., 2014)."""
    h = 0x9E3779B97F4A7C15
    for number in numbers:
        h = (h ^ (number & _MASK)) + 0x9E3779B97F4A7C15 & _MASK
        h = (h ^ (h >> 30)) * 0xBF58476D1CE4E5B9 & _MASK
        h = (h ^ (h >> 27)) * 0x94D049BB133111EB & _MASK
        h ^= h >> 31
    return h


def new_seed(generator: Any = None) -> int:
    """Draw a 63-bit seed from `generator`. None selects the default generator, which `torch.manual_seed` seeds."""
    return int(core.empty((), dtype=core.int64).random_(generator=generator).item())


def permutation(n: int, seed: int, start: int = 0) -> Iterator[int]:
    """Iterate over the permutation of `range(n)` that `seed` determines, starting at position `start`."""
    order = core.randperm(n, generator=generator_of(seed))
    # A list of the whole permutation would take 36 bytes per index.
    return itertools.chain.from_iterable(order[i : i + 4096].tolist() for i in range(start, n, 4096))


def generator_of(seed: int | core.Tensor) -> Any:
    """Return a new generator with the seed `seed`. If `seed` is a tensor, it becomes the state of the generator."""
    generator = core.Generator()
    if isinstance(seed, core.Tensor):
        generator.set_state(seed)
    else:
        generator.manual_seed(seed)
    return generator


_own = threading.local()


def give_own_generator(seed: int) -> None:
    """Create a generator for the calling thread. Later calls of `seed_streams` in this thread seed this generator."""
    _own.generator = generator_of(seed)


def thread_safe_generator() -> Any:
    """Return the generator of the calling worker thread. In other threads, return None, which selects the default generator.

    Threads share the global streams. Values drawn from this generator depend only on the loader's seed and on the batch, and
    equal the values that a worker process draws from the default generator.

    Example:
        >>> thread_safe_generator() is None  # the calling thread is not a worker
        True
    """
    return getattr(_own, "generator", None)


def seed_streams(seed: int) -> None:
    """Seed the thread's own generator and the global streams of `random`, `rushlight_core` and, if imported, NumPy."""
    own = thread_safe_generator()
    if own is not None:
        own.manual_seed(seed & (_MASK >> 1))
    random.seed(seed)
    core.default_generator.manual_seed(seed & (_MASK >> 1))
    numpy = imported_numpy()
    if numpy is not None:
        numpy.random.seed(seed & 0xFFFFFFFF)


def seed_core(seed: int) -> None:
    """Seed only the global stream of `rushlight_core`, in the same way as `seed_streams`."""
    core.default_generator.manual_seed(seed & (_MASK >> 1))


class PreservedStreams:
    """Context manager that restores this process's global random streams on exit."""

    __slots__ = ("_core", "_numpy", "_python", "_replaced")

    def __init__(self) -> None:
        self._numpy: Any = None

    def __enter__(self) -> None:
        self._python = random.getstate()
        self._core = core.default_generator.get_state()
        numpy = imported_numpy()
        if numpy is not None:
            # Reading the state of NumPy's generator takes 50 microseconds; replacing its bit generator is
            # almost free.
            if self._numpy is None:
                self._numpy = numpy.random.MT19937()
            self._replaced = numpy.random.get_bit_generator()
            numpy.random.set_bit_generator(self._numpy)

    def __exit__(self, *exc: object) -> None:
        random.setstate(self._python)
        core.default_generator.set_state(self._core)
        numpy = imported_numpy()
        if numpy is not None and self._numpy is not None:
            # If the dataset itself imports NumPy, no state was saved, and NumPy stays seeded.
            numpy.random.set_bit_generator(self._replaced)
