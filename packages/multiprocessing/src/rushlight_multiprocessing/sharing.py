"""Functions that move tensors to shared memory and describe them for other processes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import rushlight_core as core

from .arena import Block, find, guard
from .heap import heap


class Place(NamedTuple):
    """The block that contains a tensor's data, and the tensor's offset in it."""

    block: Block
    view: memoryview  # keeps the block
    byte_offset: int


def share_memory_(tensor: core.Tensor) -> core.Tensor:
    """Move a tensor's data to shared memory, in place, and return the tensor.

    Processes that receive the tensor afterwards use the same memory. Moving copies the data once. A tensor
    that is already in shared memory is returned unchanged.

    Raises RuntimeError if the tensor is not on the CPU, or requires grad and is not a leaf."""
    if tensor.numel() > 0:
        place(tensor)
    return tensor


def is_shared(tensor: core.Tensor) -> bool:
    """Return whether the tensor's data is in shared memory."""
    return tensor.device.type == "cpu" and _find(tensor) is not None


def empty(size: Sequence[int], dtype: core.dtype) -> core.Tensor:
    """Return an uninitialized contiguous tensor in shared memory.

    The memory is kept for reuse when the tensor is dropped, which suits batches rather than weights."""
    nbytes = math.prod(size) * dtype.itemsize
    _, view = heap().allocate(nbytes, solo=False)
    return tensor_over(view, 0, dtype, size, contiguous_stride(size))


def place(tensor: core.Tensor) -> Place:
    """Return the location of a tensor in shared memory, moving it there if necessary."""
    if tensor.device.type != "cpu":
        raise RuntimeError(
            f"a tensor on {tensor.device} cannot be shared between processes: only CPU tensors can\n"
            "Send tensor.cpu(), and move it to the device in the receiving process."
        )
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError(
            "a tensor that requires grad and is not a leaf cannot be sent to another process, since its "
            "graph cannot be sent\nSend tensor.detach() if only the values are needed."
        )
    found = _find(tensor)
    if found is None:
        _move(tensor)
        found = _find(tensor)
        assert found is not None
    return found


def copy_of(tensor: core.Tensor) -> Place:
    """Copy a tensor to shared memory and return the location of the copy.

    A tensor that is already in shared memory is not copied."""
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
    """Return a tensor of this size and stride over a block's memory, which it keeps allocated."""
    offset, start = divmod(byte_offset, dtype.itemsize)
    if start:  # a view of another dtype whose offset is not a multiple of the item size
        offset, start = 0, byte_offset
    # Pass `view` itself, not a slice of it: the block is held as long as that object exists.
    whole = core.frombuffer(view, dtype=dtype, count=(len(view) - start) // dtype.itemsize, offset=start)
    if offset == 0 and stride == contiguous_stride(size) and 0 < math.prod(size) == whole.numel():
        return whole.view(tuple(size))
    return whole.as_strided(tuple(size), tuple(stride), offset)


def contiguous_stride(size: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of a contiguous tensor."""
    stride, step = [0] * len(size), 1
    for i in range(len(size) - 1, -1, -1):
        stride[i] = step
        step *= max(size[i], 1)
    return tuple(stride)


def dense_stride(size: Sequence[int], stride: Sequence[int]) -> tuple[int, ...]:
    """Return dense strides that preserve the memory order of the dimensions, such as channels last."""
    dense, step = [0] * len(size), 1
    for i in sorted(range(len(size)), key=lambda i: (stride[i], -i)):
        dense[i] = step
        step *= max(size[i], 1)
    return tuple(dense)


def _find(tensor: core.Tensor) -> Place | None:
    address = tensor.data_ptr()
    with guard:
        block = find(address)
        # This process has dropped a block without a view, so the address belongs to other memory.
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
    """Return the dtype, size, stride and requires_grad of a tensor, as they are sent."""
    return tensor.dtype, tuple(tensor.shape), tuple(tensor.stride()), tensor.requires_grad
