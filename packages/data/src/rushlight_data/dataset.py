"""Datasets: where samples come from.

A map-style dataset has `__getitem__` and usually `__len__`; an iterable one has `__iter__`. Two optional
methods make one faster: `__getitems__(indices)` returns a list of samples, and `__getbatch__(indices)`
returns what the default collation of these samples would. `draws_random = False` promises that reading a
sample draws no random number, which spares the loader from keying the random streams of each batch.
"""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

import rushlight_core as core

from .collate import gather
from .fetch import batch_method
from .random_streams import new_seed, permutation

__all__ = [
    "ChainDataset",
    "ConcatDataset",
    "Dataset",
    "IterableDataset",
    "StackDataset",
    "Subset",
    "TensorDataset",
    "random_split",
]

T = TypeVar("T")


class Dataset(Generic[T]):
    """A map from indices to samples. Subclasses write `__getitem__`, and `__len__` if they can tell."""

    draws_random: bool = True

    def __getitem__(self, index: Any) -> T:
        raise NotImplementedError(f"{type(self).__name__} must define __getitem__(index)")

    def __add__(self, other: Dataset[T]) -> ConcatDataset[T]:
        """The two, one after the other."""
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T], Iterable[T]):
    """A stream of samples. Subclasses write `__iter__`.

    Each worker has its own copy and reads the whole stream, unless `__iter__` takes its share with the help
    of `get_worker_info()`. With `state_dict` and `load_state_dict`, a stream is resumed without reading it
    again."""

    def __iter__(self) -> Iterator[T]:
        raise NotImplementedError(f"{type(self).__name__} must define __iter__()")

    def __add__(self, other: Dataset[T]) -> ChainDataset[T]:  # type: ignore[override]
        """The two streams, one after the other."""
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[core.Tensor, ...]]):
    """Tensors of the same first dimension; a sample is a tuple with a row of each.

    Raises AssertionError if first dimensions differ.
    """

    draws_random = False
    tensors: tuple[core.Tensor, ...]

    def __init__(self, *tensors: core.Tensor) -> None:
        sizes = [tensor.shape[0] for tensor in tensors]
        if len(set(sizes)) > 1:
            raise AssertionError(f"TensorDataset(*tensors): the first dimensions must agree, and are {sizes}")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[core.Tensor, ...]:
        return tuple(tensor[index] for tensor in self.tensors)

    def __getbatch__(self, indices: Sequence[int]) -> list[core.Tensor]:
        return gather(self.tensors, indices)

    def __len__(self) -> int:
        return int(self.tensors[0].shape[0])


class StackDataset(Dataset[Any]):
    """Datasets of the same length side by side; a sample is a tuple, or with keyword arguments a dict, of
    theirs."""

    datasets: tuple[Any, ...] | dict[str, Any]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if bool(args) == bool(kwargs):
            raise ValueError("StackDataset() takes datasets either as arguments or as keyword arguments")
        self.datasets = args or kwargs
        lengths = [len(dataset) for dataset in self._parts()]
        if len(set(lengths)) > 1:
            raise ValueError(f"StackDataset(): the datasets must have the same length, and have {lengths}")
        self._length = lengths[0]

    @property
    def draws_random(self) -> bool:  # type: ignore[override]
        return any(_draws_random(part) for part in self._parts())

    def _parts(self) -> list[Any]:
        return list(self.datasets.values() if isinstance(self.datasets, dict) else self.datasets)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(self.datasets, dict):
            return {name: dataset[index] for name, dataset in self.datasets.items()}
        return tuple(dataset[index] for dataset in self.datasets)

    def __getitems__(self, indices: list[Any]) -> list[Any]:
        columns = [read_samples(dataset, indices) for dataset in self._parts()]
        if isinstance(self.datasets, dict):
            return [dict(zip(self.datasets, sample, strict=True)) for sample in zip(*columns, strict=True)]
        return list(zip(*columns, strict=True))

    def __len__(self) -> int:
        return self._length


class ConcatDataset(Dataset[T]):
    """Map-style datasets one after the other. Raises ValueError if there is none, TypeError for an iterable
    one."""

    datasets: list[Any]
    cumulative_sizes: list[int]

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise ValueError("ConcatDataset(datasets): there must be at least one dataset")
        for dataset in self.datasets:
            if isinstance(dataset, IterableDataset):
                raise TypeError("ConcatDataset(datasets): iterable datasets have no index\nUse ChainDataset.")
        self.cumulative_sizes = list(itertools.accumulate(len(dataset) for dataset in self.datasets))

    @property
    def draws_random(self) -> bool:  # type: ignore[override]
        return any(_draws_random(dataset) for dataset in self.datasets)

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, index: int) -> T:
        if not -len(self) <= index < len(self):
            error = ValueError if index < 0 else IndexError
            raise error(f"ConcatDataset: index {index} is out of range for length {len(self)}")
        index %= len(self)
        which = bisect.bisect_right(self.cumulative_sizes, index)
        start = self.cumulative_sizes[which - 1] if which else 0
        return self.datasets[which][index - start]


class ChainDataset(IterableDataset[T]):
    """Iterable datasets one after the other. Raises TypeError for one that is not iterable-style."""

    def __init__(self, datasets: Iterable[Any]) -> None:
        super().__init__()
        self.datasets = datasets

    def __iter__(self) -> Iterator[T]:
        for dataset in self.datasets:
            _require_iterable(dataset)
            yield from dataset

    def __len__(self) -> int:
        total = 0
        for dataset in self.datasets:
            _require_iterable(dataset)
            total += len(dataset)
        return total


def _require_iterable(dataset: object) -> None:
    if not isinstance(dataset, IterableDataset):
        raise TypeError(f"ChainDataset(datasets): {type(dataset).__name__} is not an IterableDataset")


class Subset(Dataset[T]):
    """The samples of `dataset` at `indices`, in that order."""

    dataset: Any
    indices: Sequence[Any]

    def __init__(self, dataset: Any, indices: Sequence[Any]) -> None:
        self.dataset = dataset
        self.indices = indices

    @property
    def draws_random(self) -> bool:  # type: ignore[override]
        return _draws_random(self.dataset)

    def __getitem__(self, index: Any) -> T:
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]
        return self.dataset[self.indices[index]]

    def __getitems__(self, indices: list[Any]) -> list[T]:
        return read_samples(self.dataset, [self.indices[i] for i in indices])

    @property
    def __getbatch__(self) -> Callable[[Sequence[Any]], Any] | None:
        read = batch_method(self.dataset)
        return None if read is None else lambda indices: read([self.indices[i] for i in indices])

    def __len__(self) -> int:
        return len(self.indices)


def random_split(
    dataset: Any, lengths: Sequence[int | float], generator: core.Generator | None = None
) -> list[Subset[Any]]:
    """Split a dataset into random parts that do not overlap.

    `lengths` holds the parts' lengths, which add up to the dataset's, or fractions, which add up to 1: each
    part then has `floor(fraction * len(dataset))` samples, and what is left over goes to the first parts, one
    each."""
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        for i, fraction in enumerate(lengths):
            if not 0 <= fraction <= 1:
                raise ValueError(
                    f"random_split(lengths): fraction {i} is {fraction}, and must be between 0 and 1"
                )
        sizes = [math.floor(len(dataset) * fraction) for fraction in lengths]
        for i in range(len(dataset) - sum(sizes)):
            sizes[i % len(sizes)] += 1
    else:
        sizes = [int(length) for length in lengths]
    if sum(sizes) != len(dataset):
        raise ValueError(
            f"random_split(lengths): {list(lengths)} add up to {sum(lengths)}, but the dataset has "
            f"{len(dataset)} samples"
        )
    order = list(permutation(len(dataset), new_seed(generator)))
    ends = list(itertools.accumulate(sizes))
    return [Subset(dataset, order[end - size : end]) for size, end in zip(sizes, ends, strict=True)]


def read_samples(dataset: Any, indices: list[Any]) -> list[Any]:
    """The samples at `indices`, at once where the dataset can."""
    at_once = getattr(dataset, "__getitems__", None)
    samples: list[Any] = at_once(indices) if at_once is not None else [dataset[i] for i in indices]
    return samples


def _draws_random(dataset: object) -> bool:
    # A dataset of another make may draw; that a list or a tensor does not need not be told.
    if isinstance(dataset, (list, tuple, range, core.Tensor)):
        return False
    return bool(getattr(dataset, "draws_random", True))
