"""Tensors in shared memory: moving them there, and describing one so that another process can make it
again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import rushlight_core as core

from .arena import Block, find, guard
from .heap import heap


class Place(NamedTuple):
    """A tensor's block, and where in it the tensor begins."""

    block: Block
    view: memoryview  # keeps the block
    byte_offset: int


def share_memory_(tensor: core.Tensor) -> core.Tensor:
    """Move a tensor's data to shared memory, in place, and return the tensor.

    From then on every process that receives the tensor sees the same numbers. A tensor that is shared already
    stays as it is. Moving costs one copy.

    Raises RuntimeError for tensors on another device than the CPU, and for tensors that require grad and are
    not leaves."""
    if tensor.numel() > 0:
        place(tensor)
    return tensor


def is_shared(tensor: core.Tensor) -> bool:
    """Whether the tensor's data is in shared memory."""
    return tensor.device.type == "cpu" and _find(tensor) is not None


def empty(size: Sequence[int], dtype: core.dtype) -> core.Tensor:
    """An uninitialised, contiguous tensor in shared memory, from blocks that go round: for batches, not for
    weights."""
    nbytes = math.prod(size) * dtype.itemsize
    _, view = heap().allocate(nbytes, solo=False)
    return tensor_over(view, 0, dtype, size, contiguous_stride(size))


def place(tensor: core.Tensor) -> Place:
    """Where in shared memory a tensor lies; it is moved there if it lies elsewhere."""
    if tensor.device.type != "cpu":
        raise RuntimeError(
            f"a tensor on {tensor.device} cannot be shared between processes: only CPU memory can\n"
            "Send tensor.cpu(), and move it to the device in the process that receives it."
        )
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError(
            "a tensor that requires grad and is the result of an operation cannot go to another process: "
            "its history stays here\nSend tensor.detach() if only the numbers are wanted."
        )
    found = _find(tensor)
    if found is None:
        _move(tensor)
        found = _find(tensor)
        assert found is not None
    return found


def copy_of(tensor: core.Tensor) -> Place:
    """A contiguous copy in shared memory, from blocks that go round; a tensor that is shared already is not
    copied."""
    found = _find(tensor)
    if found is not None:
        return found
    shared = empty(tensor.shape, tensor.dtype)
    shared.copy_(tensor.detach())
    found = _find(shared)
    assert found is not None
    return found


def tensor_over(
    view: memoryview, byte_offset: int, dtype: core.dtype, size: Sequence[int], stride: Sequence[int]
) -> core.Tensor:
    """The tensor of this geometry over a block's memory, which it keeps."""
    offset, start = divmod(byte_offset, dtype.itemsize)
    if start:  # a view of another dtype: count from where it begins
        offset, start = 0, byte_offset
    # `view` itself must go in, not a slice of it: the block is held for as long as that object lives.
    whole = core.frombuffer(view, dtype=dtype, count=(len(view) - start) // dtype.itemsize, offset=start)
    if offset == 0 and stride == contiguous_stride(size) and 0 < math.prod(size) == whole.numel():
        return whole.view(tuple(size))
    return whole.as_strided(tuple(size), tuple(stride), offset)


def contiguous_stride(size: Sequence[int]) -> tuple[int, ...]:
    """The strides of a contiguous tensor."""
    stride, step = [0] * len(size), 1
    for i in range(len(size) - 1, -1, -1):
        stride[i] = step
        step *= max(size[i], 1)
    return tuple(stride)


def dense_stride(size: Sequence[int], stride: Sequence[int]) -> tuple[int, ...]:
    """Strides without gaps that keep the order of the dimensions in memory (channels last stays channels
    last)."""
    dense, step = [0] * len(size), 1
    for i in sorted(range(len(size)), key=lambda i: (stride[i], -i)):
        dense[i] = step
        step *= max(size[i], 1)
    return tuple(dense)


def _find(tensor: core.Tensor) -> Place | None:
    address = tensor.data_ptr()
    with guard:
        block = find(address)
        # A block without a view is one that this process has dropped: the address belongs to something else.
        if block is None or not block.views:
            return None
        return Place(block, block.view(), address - block.arena.address - block.offset)


def _move(tensor: core.Tensor) -> None:
    size = tuple(tensor.shape)
    stride = dense_stride(size, tensor.stride())
    _, view = heap().allocate(max(tensor.numel(), 1) * tensor.dtype.itemsize, solo=True)
    with core.no_grad():
        shared = tensor_over(view, 0, tensor.dtype, size, stride)
        shared.copy_(tensor.detach())
    tensor.data = shared


def geometry(tensor: core.Tensor) -> tuple[Any, ...]:
    """dtype, size, stride and requires_grad, as they are sent."""
    return tensor.dtype, tuple(tensor.shape), tuple(tensor.stride()), tensor.requires_grad
