"""Collation, which makes a batch from a list of samples."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any

import rushlight_core as core

from .random_streams import imported_numpy

__all__ = ["collate", "default_collate", "default_collate_fn_map", "default_convert"]

CollateMap = dict[type | tuple[type, ...], Callable[..., Any]]
Allocate = Callable[[Sequence[int], core.dtype], core.Tensor | None]

# Collate functions for further types. `default_collate_fn_map[type] = fn` applies to every default collation
# in this process.
default_collate_fn_map: CollateMap = {}

# In a worker, `allocate` is `Transport.empty`, so that batches are written directly to memory that can be sent.
_worker = threading.local()


def allocate_batches_by(allocate: Allocate | None) -> None:
    """Set the function that allocates the memory of the batches that the calling thread collates."""
    _worker.allocate = allocate


def default_collate(batch: Sequence[Any]) -> Any:
    """Combine samples into a batch with a new first dimension.

    Tensors, NumPy arrays and NumPy scalars are stacked into tensors. Bools, ints and floats become a tensor
    of dtype bool, int64 or float64. Strings and bytes are collected in a list. Mappings, named tuples and
    sequences are collated item by item. Each container in the result has the type of the container in the
    samples, if such an object can be constructed. Tuples other than named tuples become lists.

    Raises:
        TypeError: the type of the samples is not supported.
        RuntimeError: tensors differ in shape, or sequences differ in length.

    Example:
        >>> default_collate([{"x": torch.zeros(2), "label": 1}, {"x": torch.ones(2), "label": 0}])
        {'x': tensor([[0., 0.],
                [1., 1.]]), 'label': tensor([1, 0])}
    """
    return collate(batch, collate_fn_map=default_collate_fn_map)


def collate(batch: Sequence[Any], *, collate_fn_map: CollateMap | None = None) -> Any:
    """Combine samples into a batch, with additional collate functions for further types.

    If `collate_fn_map` has an entry for the type of the first sample or one of its base classes, return
    `collate_fn_map[type](batch, collate_fn_map=collate_fn_map)`; otherwise follow the rules of
    `default_collate`.

    Arguments:
        batch: the samples.
        collate_fn_map: a dict from types to collate functions.

    Raises:
        TypeError: there is no rule for the type of the samples.

    Example:
        >>> collate([{1, 2}, {3}], collate_fn_map={set: lambda batch, collate_fn_map: set.union(*batch)})
        {1, 2, 3}
    """
    first = batch[0]
    if collate_fn_map:
        fn = _find(collate_fn_map, first)
        if fn is not None:
            return fn(batch, collate_fn_map=collate_fn_map)

    def inner(samples: Sequence[Any]) -> Any:
        return collate(samples, collate_fn_map=collate_fn_map)

    # Tuples are checked first, because most samples are tuples and the other checks take longer.
    if type(first) is tuple:
        return [inner(column) for column in _columns(batch)]
    if isinstance(first, core.Tensor):
        return stack(batch)
    if isinstance(first, float):
        return core.tensor(batch, dtype=core.float64)
    if isinstance(first, int):
        return core.tensor(batch)
    if isinstance(first, (str, bytes)):
        return batch
    numpy = imported_numpy()
    if numpy is not None:
        if isinstance(first, numpy.ndarray):
            if first.dtype.kind not in "biufc":
                raise TypeError(
                    f"default_collate(batch): arrays must have a numeric or bool dtype, got {first.dtype}"
                )
            return stack([core.as_tensor(array) for array in batch])
        if isinstance(first, (numpy.bool_, numpy.number)):
            return core.as_tensor(numpy.asarray(batch))
    if isinstance(first, Mapping):
        return _as_mapping(first, {key: inner([sample[key] for sample in batch]) for key in first})
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*(inner(column) for column in _columns(batch)))
    if isinstance(first, tuple):
        return [inner(column) for column in _columns(batch)]
    if isinstance(first, Sequence):
        return _as_sequence(first, [inner(column) for column in _columns(batch)])
    raise TypeError(
        "default_collate(batch): samples must be tensors, NumPy arrays, numbers, strings, mappings or "
        f"sequences of them, got {type(first).__name__}\n"
        "Pass a collate_fn to DataLoader for other types."
    )


def default_convert(data: Any) -> Any:
    """Convert NumPy arrays and scalars to tensors, at any nesting depth, and leave other values unchanged.

    Tuples other than named tuples become lists. A `DataLoader` without batching applies this function to each sample.

    Example:
        >>> import numpy as np
        >>> default_convert([np.array([1.0, 2.0]), "text"])
        [tensor([1., 2.], dtype=torch.float64), 'text']
    """
    numpy = imported_numpy()
    if numpy is not None and isinstance(data, (numpy.ndarray, numpy.bool_, numpy.number)):
        return core.as_tensor(data) if data.dtype.kind in "biufc" else data
    if isinstance(data, (core.Tensor, str, bytes)):
        return data
    if isinstance(data, Mapping):
        return _as_mapping(data, {key: default_convert(value) for key, value in data.items()})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(default_convert(value) for value in data))
    if isinstance(data, tuple):
        return [default_convert(value) for value in data]
    if isinstance(data, Sequence):
        return _as_sequence(data, [default_convert(value) for value in data])
    return data


def tensor_bytes(data: Any) -> int:
    """Return the total number of bytes of the tensors in a batch, at any nesting depth."""
    if isinstance(data, core.Tensor):
        return data.numel() * data.element_size()
    if isinstance(data, Mapping):
        return sum(map(tensor_bytes, data.values()))
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes, range)):
        return sum(map(tensor_bytes, data))
    return 0


def stack(tensors: Sequence[core.Tensor]) -> core.Tensor:
    """Stack tensors along a new first dimension. In a worker process, allocate the result in shared memory if possible.

    Arguments:
        tensors: N tensors of the same shape (*).

    Returns:
        A tensor of shape (N, *).

    Example:
        >>> stack([torch.zeros(2), torch.ones(2)])
        tensor([[0., 0.],
                [1., 1.]])
    """
    allocate: Allocate | None = getattr(_worker, "allocate", None)
    first = tensors[0]
    if allocate is None or first.requires_grad or first.device.type != "cpu":
        return core.stack(tuple(tensors), 0)
    dtype, shape = first.dtype, first.shape
    for tensor in tensors:
        # core.stack() promotes different dtypes and raises for different shapes, as without workers.
        if tensor.dtype != dtype or tensor.shape != shape or tensor.requires_grad:
            return core.stack(tuple(tensors), 0)
    out = allocate((len(tensors), *shape), dtype)
    return core.stack(tuple(tensors), 0) if out is None else core.stack(tuple(tensors), 0, out=out)


def gather(tensors: Sequence[core.Tensor], indices: Sequence[int]) -> list[core.Tensor]:
    """Return the rows at `indices` of each tensor.

    Arguments:
        tensors: tensors of shapes (rows, *).
        indices: N row numbers.

    Returns:
        A list of tensors of shapes (N, *).

    Example:
        >>> [rows.tolist() for rows in gather([torch.arange(4)], [3, 0])]
        [[3, 0]]
    """
    allocate: Allocate | None = getattr(_worker, "allocate", None)
    length = tensors[0].shape[0]
    rows = [i + length if i < 0 else i for i in indices] if min(indices) < 0 else list(indices)
    where = core.tensor(rows)
    batch = []
    for tensor in tensors:
        out = None
        if allocate is not None and not tensor.requires_grad and tensor.device.type == "cpu":
            out = allocate((len(rows), *tensor.shape[1:]), tensor.dtype)
        at = where if tensor.device.type == "cpu" else where.to(tensor.device)
        batch.append(
            core.index_select(tensor, 0, at) if out is None else core.index_select(tensor, 0, at, out=out)
        )
    return batch


def _columns(batch: Sequence[Any]) -> list[tuple[Any, ...]]:
    try:
        return list(zip(*batch, strict=True))
    except ValueError:
        lengths = list(map(len, batch))
        length = lengths[0]
        if lengths.count(length) == len(lengths):
            raise
        i = next(i for i, other in enumerate(lengths) if other != length)
        raise RuntimeError(
            f"default_collate(batch): sequences must have the same length; sample 0 has {length} items, "
            f"sample {i} has {lengths[i]}"
        ) from None


def _as_mapping(like: Any, values: dict[Any, Any]) -> Any:
    if type(like) is dict:
        return values
    try:
        if isinstance(like, MutableMapping):
            # A copy keeps other attributes of the mapping, such as a default factory.
            clone = copy.copy(like)
            clone.update(values)
            return clone
        return type(like)(values)
    except TypeError:  # the type cannot be constructed from a dict
        return values


def _as_sequence(like: Any, values: list[Any]) -> Any:
    if type(like) is list:
        return values
    try:
        if isinstance(like, MutableSequence):
            clone = copy.copy(like)
            for i, value in enumerate(values):
                clone[i] = value
            return clone
        return type(like)(values)
    except TypeError:  # the type cannot be constructed from a list, as a range cannot
        return values


def _find(functions: CollateMap, first: object) -> Callable[..., Any] | None:
    exact = functions.get(type(first))
    if exact is not None:
        return exact
    return next((fn for kind, fn in functions.items() if isinstance(first, kind)), None)
