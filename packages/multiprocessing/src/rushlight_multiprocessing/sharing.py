"""Functions that move storages to shared memory and create tensors in shared memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import rushlight_core as core

from .allocator import heap
from .arena import PUNCH_BYTES, Block, find, guard


class BlockLocation(NamedTuple):
    """The block that contains the data of a storage, and the offset of the storage in the block."""

    block: Block
    view: memoryview  # keeps the block
    byte_offset: int


Memory = TypeVar("Memory", core.Tensor, core.UntypedStorage)


def share_memory_(data: Memory) -> Memory:
    """Move a storage, or the storage of a tensor, to shared memory in place, and return the argument.

    All tensors that use the storage are then in shared memory, and a process that receives one of these tensors uses the
    same memory. The move copies the data once. An argument that is already in shared memory is returned unchanged.

    Raises RuntimeError if the tensor is not on the CPU, or requires grad and is not a leaf.

    Example:
        >>> x = torch.zeros(3)
        >>> x.share_memory_().is_shared()
        True
    """
    if isinstance(data, core.Tensor):
        move_to_shared_memory(storage_of(data))
    else:
        move_to_shared_memory(data)
    return data


def is_shared(data: core.Tensor | core.UntypedStorage) -> bool:
    """Return whether the data of a tensor or a storage is in shared memory.

    Arguments:
        data: a tensor of any shape, or a storage.

    Example:
        >>> is_shared(torch.zeros(3)), is_shared(torch.zeros(3).share_memory_())
        (False, True)
    """
    if data.device.type != "cpu":
        return False
    return _find(data.untyped_storage() if isinstance(data, core.Tensor) else data) is not None


def empty(size: Sequence[int], dtype: core.dtype) -> core.Tensor:
    """Return an uninitialised contiguous tensor in shared memory.

    The memory is kept for reuse when the tensor is destroyed, so use this function for short-lived tensors such as batches.

    Arguments:
        size: the shape.
        dtype: the dtype.

    Example:
        >>> empty((2, 3), torch.float32).is_shared()
        True
    """
    storage = empty_storage(math.prod(size) * dtype.itemsize, solo=False)
    return tensor_over(storage, dtype, size, contiguous_stride(size), 0)


def empty_storage(nbytes: int, solo: bool) -> core.UntypedStorage:
    """Return an uninitialised storage in shared memory; see `Heap.allocate`."""
    _, view = heap().allocate(nbytes, solo)
    return storage_over(view, 0, nbytes)


def check_sendable(tensor: core.Tensor) -> None:
    """Raise RuntimeError if a tensor cannot be sent to another process."""
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


def storage_of(tensor: core.Tensor) -> core.UntypedStorage:
    """Return the storage of a tensor. Raises RuntimeError if the tensor cannot be sent to another process."""
    check_sendable(tensor)
    return tensor.untyped_storage()


def move_to_shared_memory(storage: core.UntypedStorage) -> BlockLocation:
    """Return the location of a storage in shared memory, moving it there if necessary.

    Raises RuntimeError for a storage that is not on the CPU.

    Example:
        >>> storage = torch.zeros(3).untyped_storage()
        >>> _ = move_to_shared_memory(storage)
        >>> is_shared(storage)
        True
    """
    found = _find(storage)
    if found is not None:
        return found
    if storage.device.type != "cpu":
        raise RuntimeError(
            f"a storage on {storage.device} cannot be shared between processes: only CPU storages can"
        )
    nbytes = storage.nbytes()
    block, view = heap().allocate(nbytes, solo=True)
    if nbytes:
        large = nbytes >= PUNCH_BYTES
        if large:
            with memoryview(storage) as data:
                block.arena.write(block, data)
        storage._move_to(storage_over(view, 0, nbytes), large)
    return BlockLocation(block, view, 0)


def storage_over(view: memoryview, byte_offset: int, nbytes: int) -> core.UntypedStorage:
    """Return a storage whose data are `nbytes` bytes of a block. The storage keeps the block allocated."""
    if not nbytes:
        return core.empty(0, dtype=core.uint8).untyped_storage()
    # Pass `view` itself, not a slice of it: the block is held as long as that object exists.
    return core.frombuffer(view, dtype=core.uint8, count=nbytes, offset=byte_offset).untyped_storage()


def tensor_over(
    storage: core.UntypedStorage, dtype: core.dtype, size: Sequence[int], stride: Sequence[int], offset: int
) -> core.Tensor:
    """Return a tensor of the given dtype, size, stride and offset whose elements are in `storage`."""
    return core._C._tensor_over(storage, dtype, tuple(size), tuple(stride), offset)


def extent(tensor: core.Tensor) -> tuple[int, int]:
    """Return the beginning and the end of the range of bytes that a non-empty tensor uses in its storage."""
    item = tensor.dtype.itemsize
    last = sum((n - 1) * step for n, step in zip(tensor.shape, tensor.stride(), strict=True))
    first = tensor.storage_offset() * item
    return first, first + (last + 1) * item


def contiguous_stride(size: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of a contiguous tensor."""
    stride, step = [0] * len(size), 1
    for i in range(len(size) - 1, -1, -1):
        stride[i] = step
        step *= max(size[i], 1)
    return tuple(stride)


def _find(storage: core.UntypedStorage) -> BlockLocation | None:
    address = storage.data_ptr()
    with guard:
        block = find(address)
        # This process has dropped a block without a view, so the address belongs to other memory.
        if block is None or not block.views:
            return None
        return BlockLocation(block, block.view(), address - block.arena.address - block.offset)
