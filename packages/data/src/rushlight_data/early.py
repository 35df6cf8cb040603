"""Prediction of the next epoch, so that workers can read its first batches before the epoch begins.

Note [Early batches]
So that workers are not idle between two epochs, they read the first batches of the next epoch before it
begins. The indices of these batches are predicted with copies of the samplers and generators, so that the
states of the originals do not change. The prediction is correct if the program changes neither the loader nor
its samplers and generators before the next epoch begins. When this epoch begins, its actual order and seed
are determined. The batches that were read early are used only if they are the first batches of this epoch and
the workers' state has not changed (Note [Snapshots]); otherwise they are dropped. If a file has changed since
a batch was read from it, the batch is read again (`opened_files.py`). A wrong prediction therefore costs only
time.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import rushlight_core as core

from .fetch import Task
from .length_samplers import BucketBatchSampler, TokenBatchSampler
from .permutation import PermutationSampler
from .random_streams import mix, new_seed
from .sampler import (
    BatchSampler,
    DistributedSampler,
    RandomSampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

if TYPE_CHECKING:
    from .loader import DataLoader

_RANDOM = (
    RandomSampler, SubsetRandomSampler, WeightedRandomSampler, PermutationSampler, BucketBatchSampler, TokenBatchSampler
)  # fmt: skip
_FIXED = (SequentialSampler, DistributedSampler, list, tuple, range)


class EarlyBatches:
    """The seed of a predicted epoch, and the tasks of its first batches, which workers read early."""

    def __init__(self, seed: int, tasks: list[Task]) -> None:
        self.seed = seed
        self.tasks = tasks


def predict(loader: DataLoader[Any], count: int) -> EarlyBatches | None:
    """Predict the first `count` batches of the next epoch; return None if its order cannot be predicted."""
    generators = _Copies()
    # Draw the seed before the sampler draws its seed, as at the beginning of an epoch.
    if loader.seed is None:
        seed = new_seed(generators.copy(loader.generator))
    else:
        seed = mix(loader.seed, loader._epoch) >> 1
    sampler = _copy(
        loader.batch_sampler if loader._batched else loader.sampler,
        None if loader.seed is None else mix(seed, -2) >> 1,
        generators,
    )
    if sampler is None:
        return None
    order: Iterator[Any] = itertools.islice(iter(sampler), count)
    tasks: list[Task] = []
    position = 0
    for number, indices in enumerate(order):
        # A copy, so that a change of the original is detected.
        indices = copy.deepcopy(indices)
        if loader._batched and not isinstance(indices, list):
            indices = list(indices)
        tasks.append(Task(number, position, indices))
        position += len(indices) if loader._batched else 1
    return EarlyBatches(seed, tasks)


class _Copies:
    """Copies of generators. Samplers that share a generator also share its copy, so each generator is copied once."""

    def __init__(self) -> None:
        self._copies: dict[int, core.Generator] = {}

    def copy(self, generator: Any) -> core.Generator:
        original = core.default_generator if generator is None else generator
        if id(original) not in self._copies:
            made = self._copies[id(original)] = core.Generator()
            made.set_state(original.get_state())
        return self._copies[id(original)]


def _copy(sampler: Any, seed: int | None, generators: _Copies) -> Any:
    """Return a sampler that yields the items of the next iteration of `sampler`, or None if they cannot be predicted."""
    kind = type(sampler)
    if kind in _FIXED:
        return sampler
    if kind is BatchSampler:
        inner = _copy(sampler.sampler, seed, generators)
        return None if inner is None else BatchSampler(inner, sampler.batch_size, sampler.drop_last)
    if kind in _RANDOM:
        made = copy.copy(sampler)
        if seed is not None:
            made.reseed(seed)
        made._global = generators.copy(None)
        if sampler.generator is not None:
            made.generator = generators.copy(sampler.generator)
        return made
    return None
