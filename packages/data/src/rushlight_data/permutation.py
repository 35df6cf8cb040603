"""Random permutations in constant memory, for datasets of billions of samples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Sized
from typing import Any, overload

import rushlight_core as core

from .random_streams import mix
from .sampler import _Seeded

__all__ = ["Permutation", "PermutationSampler"]

_ROUNDS = 8
_CHUNK = 4096
_WORD = (1 << 32) - 1


class Permutation(Sequence[int]):
    """A random permutation of `range(length)` whose items are computed on access.

    Computing an item takes the same memory and time for every length. The items come from a Feistel network
    (Luby and Rackoff, 1988) over the integers below a power of two that is at least `length`. If the network
    returns a value outside of the range, the network is applied to this value again (cycle walking; Black and
    Rogaway, 2002). Some permutations do not occur for any seed.

    Arguments:
        length: number of items, less than 2**62.
        seed: an integer that determines the permutation.

    Raises ValueError if `length` is out of range.

    Example:
        >>> order = Permutation(10**12, seed=0)
        >>> len(set(order[:100]))
        100

    Shape:
        - Items are Python integers; `len()` is `length`.
    """

    def __init__(self, length: int, seed: int) -> None:
        if not 0 <= length < 1 << 62:
            raise ValueError(f"Permutation(length): must be at least 0 and less than 2**62, got {length}")
        self._length = length
        bits = max((length - 1).bit_length(), 2)
        self._low_bits = bits // 2
        self._low = (1 << self._low_bits) - 1
        self._high = (1 << bits - self._low_bits) - 1
        self._keys = [mix(seed, i) & _WORD for i in range(_ROUNDS)]

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> list[int]: ...
    def __getitem__(self, index: int | slice) -> int | list[int]:
        if isinstance(index, slice):
            positions = range(self._length)[index]
            return self._at(core.tensor(positions, dtype=core.int64)) if positions else []
        if not -self._length <= index < self._length:
            raise IndexError(f"Permutation: index {index} is out of range for length {self._length}")
        return self._at(core.tensor([index % self._length], dtype=core.int64))[0]

    def __iter__(self) -> Iterator[int]:
        return self.iter_from(0)

    def iter_from(self, start: int) -> Iterator[int]:
        """Iterate over the items from position `start` on."""
        for begin in range(start, self._length, _CHUNK):
            yield from self._at(core.arange(begin, min(begin + _CHUNK, self._length)))

    def _at(self, positions: core.Tensor) -> list[int]:
        values = self._encrypt(positions)
        outside = values >= self._length
        while bool(outside.any()):
            values[outside] = self._encrypt(values[outside])
            outside = values >= self._length
        result: list[int] = values.tolist()
        return result

    def _encrypt(self, values: core.Tensor) -> core.Tensor:
        """Permute the integers below the power of two for which the network was built.

        In each round, one half of the bits is combined with a hash of the other half."""
        low, high = values & self._low, values >> self._low_bits
        for i in range(0, _ROUNDS, 2):
            low = low ^ (_hash(high, self._keys[i]) & self._low)
            high = high ^ (_hash(low, self._keys[i + 1]) & self._high)
        return (high << self._low_bits) | low


def _hash(values: core.Tensor, key: int) -> core.Tensor:
    """Hash 31-bit integers to 32 bits. All intermediate products are less than 2**63."""
    values = (values + key) & _WORD
    for _ in range(2):
        values = ((values ^ (values >> 16)) * 0x45D9F3B) & _WORD
    return values ^ (values >> 16)


class PermutationSampler(_Seeded):
    """A sampler that yields the indices of `data_source` in random order, in constant memory.

    `RandomSampler` stores all indices in random order, which takes 8 bytes per index. `PermutationSampler`
    computes each index on demand (see `Permutation`), so an epoch over billions of indices starts or resumes
    without delay.

    Arguments:
        data_source: the dataset.
        generator: the generator from which the seed is drawn; None selects the default generator.

    Example:
        >>> sampler = PermutationSampler(range(10**10))
        >>> next(iter(sampler)) < 10**10
        True
    """

    data_source: Sized

    def __init__(self, data_source: Sized, generator: Any = None) -> None:
        self.data_source = data_source
        self.generator = generator

    def _order(self, seed: int, start: int) -> Iterator[int]:
        return Permutation(len(self.data_source), seed).iter_from(start)

    def __len__(self) -> int:
        return len(self.data_source)
