"""Datasets, which provide samples.

A map-style dataset has `__getitem__` and usually `__len__`; an iterable-style dataset has `__iter__`. Two optional
methods read several samples at once: `__getitems__(indices)` returns a list of samples, and
`__getbatch__(indices)` returns the batch that the default collation would create from these samples. A
dataset that sets `draws_random = False` declares that reading a sample draws no random numbers; the loader
then does not seed the random number generators before each batch.
"""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

import rushlight_core as core

from .collate import gather

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
Begin = Callable[[int], object] | None


class Dataset(Generic[T]):
    """Base class of map-style datasets. Subclasses define `__getitem__`, and `__len__` if the length is known.

    Raises NotImplementedError if a subclass does not define `__getitem__`.

    Example:
        >>> class Squares(Dataset):
        ...     def __len__(self):
        ...         return 5
        ...
        ...     def __getitem__(self, index):
        ...         return index**2
        >>> list(torch.utils.data.DataLoader(Squares(), batch_size=3))
        [tensor([0, 1, 4]), tensor([ 9, 16])]
    """

    draws_random: bool = True

    def __getitem__(self, index: Any) -> T:
        raise NotImplementedError(f"{type(self).__name__} must define __getitem__(index)")

    def __add__(self, other: Dataset[T]) -> ConcatDataset[T]:
        """Concatenate two datasets."""
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T], Iterable[T]):
    """Base class of datasets that are streams of samples. Subclasses define `__iter__`.

    Each worker has its own copy of the dataset and reads the whole stream, unless `__iter__` uses `get_worker_info()` to
    select a part of it. If the dataset or its iterator has `state_dict` and `load_state_dict`, a loader resumes the stream
    without reading its beginning again.

    Raises NotImplementedError if a subclass does not define `__iter__`.

    Example:
        >>> class Countdown(IterableDataset):
        ...     def __iter__(self):
        ...         return iter([3, 2, 1])
        >>> list(torch.utils.data.DataLoader(Countdown(), batch_size=2))
        [tensor([3, 2]), tensor([1])]
    """

    def __iter__(self) -> Iterator[T]:
        raise NotImplementedError(f"{type(self).__name__} must define __iter__()")

    def __add__(self, other: Dataset[T]) -> ChainDataset[T]:  # type: ignore[override]
        """Chain two streams."""
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[core.Tensor, ...]]):
    """A dataset of tensors with the same first dimension. A sample is a tuple with one row of each tensor.

    Arguments:
        tensors: tensors of shapes (N, *); a row has the shape (*).

    Raises AssertionError if the first dimensions differ.

    Example:
        >>> dataset = TensorDataset(torch.arange(6.0).reshape(3, 2), torch.tensor([0, 1, 0]))
        >>> len(dataset), dataset[1]
        (3, (tensor([2., 3.]), tensor(1)))
    """

    draws_random = False
    tensors: tuple[core.Tensor, ...]

    def __init__(self, *tensors: core.Tensor) -> None:
        sizes = [tensor.shape[0] for tensor in tensors]
        if len(set(sizes)) > 1:
            raise AssertionError(
                f"TensorDataset(*tensors): the tensors must have the same first dimension, got {sizes}"
            )
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[core.Tensor, ...]:
        return tuple(tensor[index] for tensor in self.tensors)

    def __getbatch__(self, indices: Sequence[int]) -> list[core.Tensor]:
        return gather(self.tensors, indices)

    def __len__(self) -> int:
        return int(self.tensors[0].shape[0])


class StackDataset(Dataset[Any]):
    """A dataset that joins several datasets of the same length: sample i consists of sample i of each dataset.

    A sample is a tuple if the datasets are passed as positional arguments, and a dict if they are passed as keyword
    arguments. Raises ValueError if the lengths differ, if there is no dataset, or if both kinds of arguments are passed.

    Example:
        >>> dataset = StackDataset(image=["a.png", "b.png"], label=[0, 1])
        >>> dataset[1]
        {'image': 'b.png', 'label': 1}
    """

    datasets: tuple[Any, ...] | dict[str, Any]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if bool(args) == bool(kwargs):
            raise ValueError(
                "StackDataset(): needs datasets, either all as positional or all as keyword arguments"
            )
        self.datasets = args or kwargs
        lengths = [len(dataset) for dataset in self._parts()]
        if len(set(lengths)) > 1:
            raise ValueError(f"StackDataset(): the datasets must have the same length, got {lengths}")
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
        return self._read_samples(indices, None)

    def _read_samples(self, indices: list[Any], begin: Begin) -> list[Any]:
        columns = [read_samples(dataset, indices, begin) for dataset in self._parts()]
        if isinstance(self.datasets, dict):
            return [dict(zip(self.datasets, sample, strict=True)) for sample in zip(*columns, strict=True)]
        return list(zip(*columns, strict=True))

    def __len__(self) -> int:
        return self._length


class ConcatDataset(Dataset[T]):
    """A concatenation of map-style datasets. Raises ValueError if there is no dataset, and TypeError for iterable datasets.

    Arguments:
        datasets: the datasets.

    Example:
        >>> dataset = ConcatDataset([["a", "b"], ["c"]])
        >>> len(dataset), dataset[2]
        (3, 'c')
    """

    datasets: list[Any]
    cumulative_sizes: list[int]

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise ValueError("ConcatDataset(datasets): must contain at least one dataset")
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
    """A chain of iterable datasets. Iteration raises TypeError for a dataset that is not an IterableDataset.

    Arguments:
        datasets: the datasets.

    Example:
        >>> class Letters(IterableDataset):
        ...     def __iter__(self):
        ...         return iter("ab")
        >>> list(ChainDataset([Letters(), Letters()]))
        ['a', 'b', 'a', 'b']
    """

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
    """The subset of `dataset` at `indices`, in the order of `indices`.

    Arguments:
        dataset: a map-style dataset.
        indices: the indices.

    Example:
        >>> list(Subset(["a", "b", "c"], [2, 0]))
        ['c', 'a']
    """

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
        return self._read_samples(indices, None)

    def _read_samples(self, indices: list[Any], begin: Begin) -> list[T]:
        return read_samples(self.dataset, [self.indices[i] for i in indices], begin)

    @property
    def __getbatch__(self) -> Callable[[Sequence[Any]], Any] | None:
        read = batch_method(self.dataset)
        return None if read is None else lambda indices: read([self.indices[i] for i in indices])

    def __len__(self) -> int:
        return len(self.indices)


def random_split(
    dataset: Any, lengths: Sequence[int | float], generator: core.Generator | None = None
) -> list[Subset[Any]]:
    """Split a dataset into random subsets that do not overlap.

    Arguments:
        dataset: the dataset.
        lengths: the lengths of the subsets, which add up to the length of the dataset, or fractions that add up to 1.
            With fractions, a subset has `floor(fraction * len(dataset))` samples, and each of the first
            subsets gets one of the remaining samples.
        generator: the generator from which the order is drawn; None selects the default generator.

    Raises ValueError if a fraction is not between 0 and 1, or if the sum of the lengths differs from the dataset's length.

    Example:
        >>> train, test = random_split(range(10), [0.8, 0.2])
        >>> len(train), len(test), sorted([*train, *test]) == list(range(10))
        (8, 2, True)
    """
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        for i, fraction in enumerate(lengths):
            if not 0 <= fraction <= 1:
                raise ValueError(
                    f"random_split(lengths): fraction {i} must be between 0 and 1, got {fraction}"
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
    order = core.randperm(len(dataset), generator=generator).tolist()
    ends = list(itertools.accumulate(sizes))
    return [Subset(dataset, order[end - size : end]) for size, end in zip(sizes, ends, strict=True)]


def read_samples(dataset: Any, indices: list[Any], begin: Begin = None) -> list[Any]:
    """Return the samples at `indices`, with one call if the dataset has `__getitems__`.

    If the samples are read one by one, call `begin(i)` before the sample at `indices[i]` is read, and `begin(-1)` after the
    last sample. If one call reads all samples, call only `begin(-1)`, before this call."""
    method = getattr(dataset, "__getitems__", None)
    if getattr(method, "__func__", None) in (StackDataset.__getitems__, Subset.__getitems__):
        samples: list[Any] = dataset._read_samples(indices, begin)
        return samples
    if method is not None:
        if begin is not None:
            begin(-1)
        return method(indices)
    if begin is None:
        return [dataset[i] for i in indices]
    samples = []
    for position, i in enumerate(indices):
        begin(position)
        samples.append(dataset[i])
    begin(-1)
    return samples


def batch_method(dataset: Any) -> Callable[[Sequence[int]], Any] | None:
    """Return `dataset.__getbatch__`, or None if it cannot be used.

    The method cannot be used if a subclass overrides `__getitem__` or `__getitems__` without overriding
    `__getbatch__`. In a dataset that wraps another dataset, `__getbatch__` may be None, if the method of
    the other dataset cannot be used."""
    for kind in type(dataset).__mro__:
        if "__getbatch__" in vars(kind):
            return dataset.__getbatch__
        if "__getitem__" in vars(kind) or "__getitems__" in vars(kind):
            return None
    return None


def _draws_random(dataset: object) -> bool:
    # Other types of datasets may draw random numbers; reading lists and tensors does not.
    if isinstance(dataset, (list, tuple, range, core.Tensor)):
        return False
    return bool(getattr(dataset, "draws_random", True))
