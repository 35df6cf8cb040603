"""Samplers, which determine the order in which samples are read.

Any iterable of indices is a sampler. The classes of this module can also start at any position (`iter_from`)
and save their order in a few bytes (`state_dict`), so that a loader can be resumed without iterating over the
indices again. When an iteration in random order begins, one 63-bit seed is drawn from the sampler's
generator, by default the default generator of rushlight-core. The order is a function of this seed.

Note [Orders of PyTorch]
If the random stream is "torch", samplers return the same orders as PyTorch's samplers. If a generator is passed to a sampler
of PyTorch, the sampler draws the indices, not a seed, from this generator. Without a generator, SubsetRandomSampler and
WeightedRandomSampler draw the indices from the global generator. In these cases, the samplers of this module draw the whole
order when an iteration begins, and save the state of the generator at that time instead of a seed.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any, Generic, TypeVar

import rushlight_core as core
from rushlight_core.seams.collectives import default_group

from .random_streams import generator_of, mix, new_seed, permutation

__all__ = [
    "BatchSampler",
    "DistributedSampler",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "SubsetRandomSampler",
    "WeightedRandomSampler",
    "iterate",
]

T_co = TypeVar("T_co", covariant=True)
_CHUNK = 4096


class Sampler(Generic[T_co]):
    """Base class of samplers.

    Subclasses define `__iter__`, and `__len__` if the length is known. A sampler with a random order can be
    resumed if it also defines `state_dict`, which describes the order of the latest iteration, and
    `load_state_dict`, after which the next iteration has this order.

    Raises NotImplementedError if a subclass does not define `__iter__`.

    Example:
        >>> class Reversed(Sampler):
        ...     def __init__(self, dataset):
        ...         self.dataset = dataset
        ...
        ...     def __iter__(self):
        ...         return iter(range(len(self.dataset) - 1, -1, -1))
        >>> list(Reversed("abc"))
        [2, 1, 0]
    """

    def __init__(self, data_source: Sized | None = None) -> None:
        pass

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError(f"{type(self).__name__} must define __iter__()")

    def iter_from(self, start: int) -> Iterator[T_co]:
        """Iterate over the items from position `start` on."""
        return itertools.islice(iter(self), start, None)


def iterate(sampler: Iterable[Any], start: int = 0) -> Iterator[Any]:
    """Iterate over any sampler from position `start` on.

    Arguments:
        sampler: an iterable of indices.
        start: number of indices to skip.

    Example:
        >>> list(iterate(SequentialSampler("abcd"), 2))
        [2, 3]
    """
    if start == 0:
        return iter(sampler)
    if hasattr(sampler, "iter_from") and not _overrides_only_iter(type(sampler)):
        return sampler.iter_from(start)
    return itertools.islice(iter(sampler), start, None)


def begins_anew(sampler: Any) -> bool:
    """Return whether a sampler has neither a saved state nor its own `iter_from`.

    A loader can resume such a sampler only by iterating over it from the beginning.
    """
    if isinstance(sampler, BatchSampler) and not _overrides_only_iter(type(sampler)):
        return begins_anew(sampler.sampler)
    if hasattr(sampler, "state_dict") and sampler.state_dict() is not None:
        return False
    return not hasattr(sampler, "iter_from") or _overrides_only_iter(type(sampler))


def _overrides_only_iter(kind: type) -> bool:
    """Return whether a class overrides `__iter__` but not the `iter_from` of its base class."""
    for base in kind.__mro__:
        if "iter_from" in base.__dict__:
            return False
        if "__iter__" in base.__dict__:
            return True
    return False


class SequentialSampler(Sampler[int]):
    """A sampler that yields the indices of `data_source` in order.

    Arguments:
        data_source: the dataset.

    Example:
        >>> list(SequentialSampler("abc"))
        [0, 1, 2]
    """

    data_source: Sized

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def iter_from(self, start: int) -> Iterator[int]:
        return iter(range(start, len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class _Seeded(Sampler[int]):
    """Base class of samplers whose random order is a function of a seed, or of a generator's state."""

    generator: Any = None
    _global: Any = None  # a generator that replaces core's global one
    _seed: Any = None
    _next_seed: Any = None

    def __iter__(self) -> Iterator[int]:
        return self.iter_from(0)

    def iter_from(self, start: int) -> Iterator[int]:
        # This is not a generator function: the seed is drawn here, not when the first index is requested.
        seed, source = self._next_seed, None
        if seed is None:
            given = self.generator if self.generator is not None else self._global
            source = core.default_generator if given is None else given
            if source.stream == "torch" and self._draws_directly():
                seed = source.get_state()
            else:
                seed, source = new_seed(given), None
        self._seed, self._next_seed = seed, None
        return self._order_from(source if source is not None else generator_of(seed), seed, start)

    def _order_from(self, generator: Any, seed: Any, start: int) -> Iterator[Any]:
        if generator.stream == "torch" and (passes := self._passes(generator)) is not None:
            return self._selected(itertools.islice(_numbers(list(passes)), start, None))
        return self._order(seed, start)

    def _order(self, seed: int, start: int) -> Iterator[Any]:
        raise NotImplementedError

    def _draws_directly(self) -> bool:
        """Return whether PyTorch's sampler draws indices, not a seed, from the generator. See Note [Orders of PyTorch]."""
        return False

    def _passes(self, generator: Any) -> Iterator[Any] | None:
        """Return the numbers that PyTorch's sampler draws from a generator, or None if PyTorch has no such sampler."""
        return None

    def _selected(self, drawn: Iterator[int]) -> Iterator[Any]:
        """Convert the numbers that `_passes` returned to the items that the sampler yields."""
        return drawn

    def reseed(self, seed: int) -> None:
        """Use `seed` for the next iteration, unless the sampler was created with a generator."""
        if self.generator is None:
            self._next_seed = seed

    def state_dict(self) -> dict[str, Any]:
        """Return the seed, or the generator's state, that determines the order of the latest iteration."""
        return {"seed": self._seed}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a saved state. The next iteration has the order of this state."""
        self._next_seed = _entry(self, state_dict, "seed")


class RandomSampler(_Seeded):
    """A sampler that yields the indices of `data_source` in random order.

    Arguments:
        data_source: the dataset.
        replacement: whether to draw each index independently. If False, no index is repeated before all
            indices have been drawn.
        num_samples: number of indices per iteration. Default: the length of `data_source`.
        generator: the generator from which the seed is drawn; None selects the default generator.

    Raises TypeError or ValueError if `replacement` is not a bool or `num_samples` is not a positive int.

    Example:
        >>> sorted(RandomSampler("abcd"))
        [0, 1, 2, 3]
    """

    data_source: Sized

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Any = None,
    ) -> None:
        _require_bool("RandomSampler", "replacement", replacement)
        if num_samples is not None:
            _require_positive("RandomSampler", "num_samples", num_samples)
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator

    @property
    def num_samples(self) -> int:
        """The number of indices per iteration, by default the length of `data_source`."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def _order(self, seed: int, start: int) -> Iterator[int]:
        n, total = len(self.data_source), self.num_samples
        if n == 0 or start >= total:
            return
        if self.replacement:
            drawn = core.randint(0, n, (total,), dtype=core.int64, generator=generator_of(seed))
            for i in range(start, total, _CHUNK):
                yield from drawn[i : i + _CHUNK].tolist()
            return
        round_, start = divmod(start, n)
        left = total - round_ * n - start
        while left > 0:
            # The first permutation uses the seed itself, as in PyTorch.
            yield from itertools.islice(
                permutation(n, mix(seed, round_) >> 1 if round_ else seed, start), left
            )
            left -= n - start
            round_, start = round_ + 1, 0

    def _draws_directly(self) -> bool:
        return self.generator is not None

    def _passes(self, generator: Any) -> Iterator[Any]:
        n, total = len(self.data_source), self.num_samples
        if n == 0:
            return
        if self.replacement:
            yield core.randint(0, n, (total,), dtype=core.int64, generator=generator)
            return
        for _ in range(total // n):
            yield core.randperm(n, generator=generator)
        yield core.randperm(n, generator=generator)[: total % n]  # drawn even if no index of it is used

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(_Seeded):
    """A sampler that yields the given indices in random order, without replacement.

    Arguments:
        indices: the indices.
        generator: the generator from which the seed is drawn; None selects the default generator.

    Example:
        >>> sorted(SubsetRandomSampler([7, 2, 5]))
        [2, 5, 7]
    """

    indices: Sequence[Any]

    def __init__(self, indices: Sequence[Any], generator: Any = None) -> None:
        self.indices = indices
        self.generator = generator

    def _order(self, seed: int, start: int) -> Iterator[Any]:
        return self._selected(permutation(len(self.indices), seed, start))

    def _draws_directly(self) -> bool:
        return True

    def _passes(self, generator: Any) -> Iterator[Any]:
        yield core.randperm(len(self.indices), generator=generator)

    def _selected(self, drawn: Iterator[int]) -> Iterator[Any]:
        return (self.indices[i] for i in drawn)

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(_Seeded):
    """A sampler that draws indices with probabilities proportional to `weights`.

    Arguments:
        weights: one non-negative number per index; at least one is positive.
        num_samples: number of indices per iteration.
        replacement: whether an index can be drawn more than once.
        generator: the generator from which the seed is drawn; None selects the default generator.

    Raises ValueError if `weights` is not one-dimensional.

    Example:
        >>> list(WeightedRandomSampler([0.0, 1.0, 0.0], num_samples=3))
        [1, 1, 1]
    """

    weights: core.Tensor

    def __init__(
        self, weights: Sequence[float], num_samples: int, replacement: bool = True, generator: Any = None
    ) -> None:
        _require_positive("WeightedRandomSampler", "num_samples", num_samples)
        _require_bool("WeightedRandomSampler", "replacement", replacement, ValueError)
        self.weights = core.as_tensor(weights, dtype=core.float64)
        if self.weights.dim() != 1:
            raise ValueError(
                f"WeightedRandomSampler(weights): must be 1-dimensional, got shape {tuple(self.weights.shape)}"
            )
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def _order(self, seed: int, start: int) -> Iterator[int]:
        return _numbers(drawn[start:] for drawn in self._passes(generator_of(seed)))

    def _draws_directly(self) -> bool:
        return True

    def _passes(self, generator: Any) -> Iterator[Any]:
        yield core.multinomial(self.weights, self.num_samples, self.replacement, generator=generator)

    def __len__(self) -> int:
        return self.num_samples


def _numbers(tensors: Iterable[core.Tensor]) -> Iterator[int]:
    """Iterate over the elements of tensors, converting a few elements at a time to Python ints."""
    return itertools.chain.from_iterable(
        tensor[i : i + _CHUNK].tolist() for tensor in tensors for i in range(0, len(tensor), _CHUNK)
    )


class BatchSampler(Sampler[list[Any]]):
    """A sampler that groups the indices of another sampler into lists of `batch_size`.

    Arguments:
        sampler: an iterable of indices.
        batch_size: number of indices per list.
        drop_last: whether to drop the last list if it is shorter than `batch_size`.

    A subclass that defines `__iter__` need not call `super().__init__()`.

    Example:
        >>> list(BatchSampler(SequentialSampler("abcde"), batch_size=2, drop_last=False))
        [[0, 1], [2, 3], [4]]
    """

    sampler: Any = None
    batch_size: int
    drop_last: bool

    def __init__(self, sampler: Iterable[Any], batch_size: int, drop_last: bool) -> None:
        _require_positive("BatchSampler", "batch_size", batch_size)
        _require_bool("BatchSampler", "drop_last", drop_last, ValueError)
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[Any]]:
        return self.iter_from(0)

    def iter_from(self, start: int) -> Iterator[list[Any]]:
        return self._batches(iterate(self.sampler, start * self.batch_size))

    def _batches(self, items: Iterator[Any]) -> Iterator[list[Any]]:
        size = self.batch_size
        while len(batch := list(itertools.islice(items, size))) == size:
            yield batch
        if batch and not self.drop_last:
            yield batch

    def __len__(self) -> int:
        n = len(self.sampler)
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)

    def reseed(self, seed: int) -> None:
        """Pass a seed to the wrapped sampler if it supports `reseed`."""
        if hasattr(self.sampler, "reseed"):
            self.sampler.reseed(seed)

    def state_dict(self) -> dict[str, Any] | None:
        """Return the state of the wrapped sampler, or None if that sampler has no state."""
        return self.sampler.state_dict() if hasattr(self.sampler, "state_dict") else None

    def load_state_dict(self, state_dict: dict[str, Any] | None) -> None:
        """Load a state into the wrapped sampler."""
        if state_dict is not None and hasattr(self.sampler, "load_state_dict"):
            self.sampler.load_state_dict(state_dict)


class DistributedSampler(Sampler[int]):
    """A sampler that restricts each of `num_replicas` processes to its own part of a dataset.

    With `shuffle`, the order is a function of `seed` and the epoch, and every process must call `set_epoch(epoch)` before
    each epoch. All parts have the same length: to make the number of indices divisible by `num_replicas`, the first indices
    are repeated, or, with `drop_last`, the last indices are dropped.

    Arguments:
        dataset: the dataset.
        num_replicas: number of processes; None selects the number of processes in the group of all processes.
        rank: rank of the calling process, from 0 to `num_replicas - 1`; None selects the rank in the group.
        shuffle: whether to shuffle the indices.
        seed: seed of the order, the same in all processes.
        drop_last: whether to drop the last indices instead of repeating the first indices.

    Raises ValueError if `rank` is out of range, and RuntimeError if there is no process group and `num_replicas` or `rank`
    is not given.

    Example:
        >>> [list(DistributedSampler("abcde", num_replicas=2, rank=rank, shuffle=False)) for rank in (0, 1)]
        [[0, 2, 4], [1, 3, 0]]
    """

    epoch: int = 0

    def __init__(
        self,
        dataset: Sized,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        if num_replicas is None or rank is None:
            group = default_group()
            if group is None:
                raise RuntimeError(
                    "DistributedSampler(num_replicas, rank): both must be given if there is no process group\n"
                    "Pass the number of processes and the rank of this process, or call init_process_group() first."
                )
            num_replicas = group.size() if num_replicas is None else num_replicas
            rank = group.rank() if rank is None else rank
        if not 0 <= rank < num_replicas:
            raise ValueError(f"DistributedSampler(rank): {rank} is not between 0 and {num_replicas - 1}")
        self.dataset = dataset
        self.num_replicas = num_replicas
        self.rank = rank
        self.shuffle = shuffle
        self.seed = seed
        self.drop_last = drop_last
        self.epoch = 0
        n = len(dataset)
        self.num_samples: int = n // num_replicas if drop_last else math.ceil(n / num_replicas)
        self.total_size: int = self.num_samples * num_replicas

    def __iter__(self) -> Iterator[int]:
        return self.iter_from(0)

    def iter_from(self, start: int) -> Iterator[int]:
        return self._share(self.epoch, start)

    def _share(self, epoch: int, start: int) -> Iterator[int]:
        n = len(self.dataset)
        order: Any = range(n)
        if self.shuffle:
            order = core.randperm(n, generator=generator_of(self.seed + epoch)).tolist()
        for position in range(self.rank + start * self.num_replicas, self.total_size, self.num_replicas):
            yield order[position % n]

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch, which determines the order of the next iteration."""
        self.epoch = epoch

    def state_dict(self) -> dict[str, Any]:
        """Return the epoch."""
        return {"epoch": self.epoch}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Set the epoch to the epoch of a saved state."""
        self.epoch = _entry(self, state_dict, "epoch")


def _entry(sampler: Sampler[Any], state: Any, name: str) -> Any:
    if not isinstance(state, dict) or name not in state:
        raise ValueError(
            f"{type(sampler).__name__}.load_state_dict(state_dict): must be a dict with an entry {name!r}, got {state!r}"
        )
    return state[name]


def _require_bool(who: str, name: str, value: object, error: type[Exception] = TypeError) -> None:
    if not isinstance(value, bool):
        raise error(f"{who}({name}): must be a bool, got {value!r}")


def _require_positive(who: str, name: str, value: object) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
        raise ValueError(f"{who}({name}): must be a positive int, got {value!r}")
