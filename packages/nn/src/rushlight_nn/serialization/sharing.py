"""Find tensors that share memory, so that the memory is stored once.

Note [Shared memory in a checkpoint]
Tensors whose bytes overlap (tied weights, a tensor and its slice) are stored as one tensor and described as views of it, so
that they share memory again after loading. Tensors in the same storage that do not overlap are stored separately: a slice of
a large tensor is saved without the rest of that tensor.
"""

from __future__ import annotations

import rushlight_core as core
from rushlight_core import Tensor

from .._typing import Any
from .errors import FormatError
from .geometry import check_geometry, tensor_over


class Stored:
    """A contiguous tensor to store, and the shapes, strides and offsets of its views."""

    def __init__(self, data: Tensor, members: dict[int, list[Any] | None]) -> None:
        self.data = data
        # A dictionary from the number of a tensor to its geometry: [shape, strides, offset] in elements of `data`, or None
        # if the tensor is `data` itself.
        self.members = members


def gather(tensors: list[Tensor], paths: list[str]) -> list[Stored]:
    """Return the tensors to store for `tensors`: one :class:`Stored` for each group of tensors that overlap."""
    alone: list[Stored] = []
    spans: list[tuple[Any, int, int, int]] = []
    for number, tensor in enumerate(tensors):
        if str(tensor.device) == "meta":
            raise ValueError(f"save: {paths[number]} is on the device 'meta': it has no values")
        if tensor.numel() == 0:
            alone.append(Stored(tensor.detach().contiguous(), {number: None}))
        else:
            begin = tensor.data_ptr()
            extent = sum(
                (size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True)
            )
            spans.append((str(tensor.device), begin, begin + (extent + 1) * tensor.element_size(), number))
    result = alone
    cluster: list[tuple[Any, int, int, int]] = []
    end = 0
    for span in [*sorted(spans), None]:
        if span is not None and cluster and span[0] == cluster[0][0] and span[1] < end:
            cluster.append(span)
            end = max(end, span[2])
            continue
        if cluster:
            result.append(_store(tensors, paths, cluster, end))
        if span is not None:
            cluster, end = [span], span[2]
    return sorted(result, key=lambda stored: min(stored.members))


def _store(
    tensors: list[Tensor], paths: list[str], cluster: list[tuple[Any, int, int, int]], end: int
) -> Stored:
    numbers = sorted(span[3] for span in cluster)
    if len(numbers) == 1:
        return Stored(tensors[numbers[0]].detach().contiguous().cpu(), {numbers[0]: None})
    begin = cluster[0][1]
    first = tensors[numbers[0]]
    for number in numbers[1:]:
        if tensors[number].dtype != first.dtype:
            raise ValueError(
                f"save: {paths[numbers[0]]} and {paths[number]} share memory, but their dtypes are {first.dtype} and "
                f"{tensors[number].dtype}\nhint: save a clone() of one of them"
            )
    item = first.element_size()
    count = (end - begin) // item
    owner = next((n for n in numbers if tensors[n].numel() == count and tensors[n].is_contiguous()), None)
    if owner is not None:
        data = tensors[owner].detach()
    else:
        lowest = tensors[cluster[0][3]].detach()
        data = core.as_strided(lowest, (count,), (1,), lowest.storage_offset())
    members: dict[int, list[Any] | None] = {}
    for number in numbers:
        tensor = tensors[number]
        offset = (tensor.data_ptr() - begin) // item
        geometry = [list(tensor.shape), list(tensor.stride()), offset]
        members[number] = None if number == owner else geometry
    return Stored(data.cpu(), members)


def view_of(data: Tensor, geometry: Any) -> Tensor:
    """Return the view of the contiguous tensor `data` with the `geometry` [shape, strides, offset].

    Raises:
        FormatError: the view would reach beyond the tensor.
    """
    if not isinstance(geometry, list) or len(geometry) != 3:
        raise FormatError("the shape, strides or offset of a view are not valid")
    shape, strides, offset = geometry
    check_geometry(shape, strides, offset)
    if 0 in shape:
        raise FormatError("the shape, strides or offset of a view are not valid")
    # Check against the size of `data`, because its storage may be larger.
    if offset + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True)) >= data.numel():
        raise FormatError(
            f"a view of shape {tuple(shape)} reaches beyond its tensor of {data.numel()} elements"
        )
    return tensor_over(data.untyped_storage(), data.dtype, shape, strides, data.storage_offset() + offset)
