"""Pickling of tensors that are sent to other processes.

A tensor is sent as its storage, dtype, shape, strides and offset, so tensors that share a storage still share
it after they are received.

There are two cases:

* A message over a `Connection` of this package: an `OutgoingBlocks` collects the shared-memory blocks of the
  tensors while they are pickled. With the message, the connection sends lock descriptors: file descriptors
  whose locks keep these blocks allocated (see Note [When a block is freed] in `arena.py`).
* The arguments of a spawned process and the objects in standard queues, which the standard module pickles:
  each storage is pickled with a `DupFd` that sends the lock descriptor of the storage's block.
"""

from __future__ import annotations

import io
import os
import pickle
import threading
import weakref
from collections.abc import Callable, Sequence
from multiprocessing import context, reduction
from multiprocessing.reduction import ForkingPickler
from typing import Any

import rushlight_core as core

from .arena import Arena, MessageLocks, attached, close_lock_fd, file_bytes, guard, lock_blocks, track_lock_fd
from .sharing import (
    check_sendable,
    contiguous_stride,
    empty_storage,
    extent,
    is_shared,
    move_to_shared_memory,
    storage_of,
    storage_over,
    tensor_over,
)

# A connection with `copy=True` sends storages below this size as bytes.
INLINE_BYTES = 4096
ITEM_BYTES = 16  # the size of the largest dtype


class OutgoingBlocks:
    """The shared-memory blocks of an outgoing message, grouped by arena (the file that contains a block)."""

    def __init__(self) -> None:
        self.arenas: list[Arena] = []
        self.offsets: list[set[int]] = []
        self.views: list[memoryview] = []  # keep the blocks until the descriptors are open
        self.payload_in_block = False
        self.is_tensor = False  # whether the payload is one tensor, described by `_describe`

    def add(self, arena: Arena, offset: int, view: memoryview) -> int:
        """Add a block, and return the index of its arena in `arenas`."""
        self.views.append(view)
        for slot, known in enumerate(self.arenas):
            if known is arena:
                self.offsets[slot].add(offset)
                return slot
        self.arenas.append(arena)
        self.offsets.append({offset})
        return len(self.arenas) - 1

    def lock(self) -> list[MessageLocks]:
        """Lock the blocks, so that they stay allocated until the message has been received.

        Return one object for each arena. It contains the file descriptor that is sent with the message and
        holds the locks.
        """
        with guard:
            return [
                arena.lock_message(offsets) for arena, offsets in zip(self.arenas, self.offsets, strict=True)
            ]


class IncomingBlocks:
    """The arenas (shared-memory files) of a received message, and the file descriptors that lock its blocks.

    When a tensor is rebuilt, the process records that it holds the tensor's block; see Note [When a block is freed]."""

    def __init__(self, arenas: list[Arena], lock_fds: Sequence[int], is_tensor: bool) -> None:
        self.lock_fds: Sequence[int] = lock_fds
        self.is_tensor = is_tensor
        self.arenas: list[Arena] = arenas

    def close(self) -> None:
        for fd in self.lock_fds:
            close_lock_fd(fd)
        self.lock_fds = ()


class Pickler(ForkingPickler):
    """Pickles one message for a `Connection`.

    Storages that are not in shared memory are moved to shared memory. If `copies` is given, they are copied
    instead."""

    def __init__(self, file: io.BytesIO, copies: Copies | None) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self.outgoing: OutgoingBlocks = OutgoingBlocks()
        self.copies: Copies | None = copies

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, core.Tensor):
            if obj.layout is not core.strided:
                return reduce_tensor(obj)
            if self.copies is None or obj.numel() == 0 or is_shared(obj):
                return reduce_tensor(obj)
            storage_of(obj)  # raises for tensors that cannot be sent
            return _with_class(obj, (*self.copies.copy(obj), obj.requires_grad))
        if isinstance(obj, core.UntypedStorage):
            if self.copies is not None and not is_shared(obj):
                if obj.nbytes() < INLINE_BYTES:
                    return rebuild_inline, (bytearray(obj),)
                obj = self.copies.copy_range(obj, 0, obj.nbytes())
            block, view, byte_offset = move_to_shared_memory(obj)
            slot = self.outgoing.add(block.arena, block.offset, view)
            where = (slot, block.offset, block.nbytes, block.solo, byte_offset, obj.nbytes())
            return rebuild_storage, where
        return NotImplemented


class Copies:
    """Copies of those parts of storages that the tensors of one message use.

    A tensor may use only a small part of its storage, and only this part is copied. Tensors that overlap must still share
    memory when they are received. If a message contains such tensors, it is pickled a second time, with one copy of each
    range that several tensors use.
    """

    def __init__(self) -> None:
        self.used: dict[core.UntypedStorage, list[tuple[int, int]]] = {}
        # Sorted ranges that several tensors share, with one copy of each. They are set before the message is pickled
        # again.
        self.ranges: dict[core.UntypedStorage, list[tuple[int, int, core.UntypedStorage]]] = {}

    def copy(self, tensor: core.Tensor) -> tuple[Any, ...]:
        """Return the storage, dtype, shape, strides and offset with which a tensor is sent."""
        storage = tensor.untyped_storage()
        start, end = extent(tensor)
        geometry = tensor.dtype, tuple(tensor.shape), tuple(tensor.stride())
        if storage in self.ranges:
            for first, last, copied in self.ranges[storage]:
                if first <= start < last:
                    return copied, *geometry, (start - first) // tensor.dtype.itemsize
        self.used.setdefault(storage, []).append((start, end))
        nbytes = tensor.numel() * tensor.dtype.itemsize
        if end - start > nbytes:  # send a view with gaps as a contiguous copy
            flat = tensor_over(
                _new_storage(nbytes), tensor.dtype, tensor.shape, contiguous_stride(tensor.shape), 0
            )
            flat.copy_(tensor.detach())
            return flat.untyped_storage(), tensor.dtype, tuple(tensor.shape), tuple(flat.stride()), 0
        return self.copy_range(storage, start, end), *geometry, 0

    def copy_range(self, storage: core.UntypedStorage, start: int, end: int) -> core.UntypedStorage:
        """Return a copy of a range of bytes, in shared memory unless the range is small."""
        copied = _new_storage(end - start)
        bytes_of(copied, 0, end - start).copy_(bytes_of(storage, start, end))
        return copied

    def merge(self) -> bool:
        """Return whether tensors of the message overlap in memory.

        If so, copy each range of bytes that the tensors use once, for the second pickling.
        """
        overlap = False
        merged: dict[core.UntypedStorage, list[list[int]]] = {}
        for storage, used in self.used.items():
            ranges = merged[storage] = []
            for start, end in sorted(used):
                if ranges and start < ranges[-1][1]:
                    ranges[-1][1] = max(end, ranges[-1][1])
                    overlap = True
                else:
                    # Begin at a multiple of the largest item size, for tensors of other dtypes.
                    ranges.append([start // ITEM_BYTES * ITEM_BYTES, end])
        if overlap:
            for storage, ranges in merged.items():
                self.ranges[storage] = [
                    (start, end, self.copy_range(storage, start, end)) for start, end in ranges
                ]
        return overlap


def _new_storage(nbytes: int) -> core.UntypedStorage:
    if nbytes < INLINE_BYTES:
        return core.empty(nbytes, dtype=core.uint8).untyped_storage()
    return empty_storage(nbytes, solo=False)


def bytes_of(storage: core.UntypedStorage, start: int, end: int) -> core.Tensor:
    """Return a range of a storage as a tensor of bytes."""
    return tensor_over(storage, core.uint8, (end - start,), (1,), start)


def dumps(obj: object, copy: bool = False) -> tuple[memoryview, OutgoingBlocks]:
    """Pickle an object; return the bytes and the shared-memory blocks of its tensors.

    Storages that are not in shared memory are moved to shared memory. If `copy` is true, such storages are copied to shared
    memory instead, or sent as bytes if they have less than `INLINE_BYTES` bytes."""
    if not copy and type(obj) is core.Tensor and obj.layout is core.strided and obj.numel() > 0:
        return _describe(obj)
    copies = Copies() if copy else None
    while True:
        file = io.BytesIO()
        pickler = Pickler(file, copies)
        pickler.dump(obj)
        if copies is None or copies.ranges or not copies.merge():
            return file.getbuffer(), pickler.outgoing


_DTYPES = sorted({value for value in vars(core).values() if isinstance(value, core.dtype)}, key=str)
_DTYPE_NUMBERS = {dtype: number for number, dtype in enumerate(_DTYPES)}


def _describe(tensor: core.Tensor) -> tuple[memoryview, OutgoingBlocks]:
    """Pickle a message that consists of one tensor; this is faster than `dumps`.

    The message contains the place of the tensor in shared memory, its dtype, shape, strides and offset, and
    whether it requires grad, but not the elements.
    """
    storage = storage_of(tensor)
    block, view, byte_offset = move_to_shared_memory(storage)
    outgoing = OutgoingBlocks()
    outgoing.is_tensor = True
    outgoing.add(block.arena, block.offset, view)
    where = block.offset, block.nbytes, block.solo, byte_offset, storage.nbytes()
    geometry = tuple(tensor.shape), tensor.stride(), tensor.storage_offset()
    described = where, _DTYPE_NUMBERS[tensor.dtype], geometry, tensor.requires_grad
    return memoryview(pickle.dumps(described, pickle.HIGHEST_PROTOCOL)), outgoing


def _rebuild_described(data: Any, arena: Arena) -> core.Tensor:
    """Rebuild a tensor from the payload that `_describe` has returned."""
    (offset, block_bytes, solo, byte_offset, nbytes), number, geometry, requires_grad = pickle.loads(data)
    with guard:
        view = arena.hold(offset, block_bytes, solo)
    tensor = core._C._tensor_over(storage_over(view, byte_offset, nbytes), _DTYPES[number], *geometry)
    return tensor.requires_grad_() if requires_grad else tensor


_local = threading.local()


def loads(data: Any, incoming: IncomingBlocks | None) -> Any:
    """Unpickle a message whose tensors are in the blocks of `incoming`."""
    if incoming is None:
        return pickle.loads(data)
    if incoming.is_tensor:
        return _rebuild_described(data, incoming.arenas[0])
    previous = getattr(_local, "incoming", None)
    _local.incoming = incoming
    try:
        return pickle.loads(data)
    finally:
        _local.incoming = previous


def attach(key: int, size: int, fd: int) -> Arena:
    """Return the arena (shared-memory file) with the key `key`; map its file `fd` if it is not mapped yet."""
    with guard:
        arena = attached.get(key)
        if arena is None:
            found, expected = os.fstat(fd).st_size, file_bytes(size)
            if found != expected:
                raise ValueError(
                    f"a message refers to an arena file of {expected} bytes, but the file has {found}"
                )
            arena = Arena(key, size, fd)
        return arena


def rebuild_storage(
    slot: int, offset: int, block_bytes: int, solo: bool, byte_offset: int, nbytes: int
) -> core.UntypedStorage:
    """Rebuild a storage of the message that is being unpickled."""
    arena = _local.incoming.arenas[slot]
    with guard:
        view = arena.hold(offset, block_bytes, solo)
    return storage_over(view, byte_offset, nbytes)


def rebuild_inline(data: bytearray) -> core.UntypedStorage:
    """Rebuild a storage that was sent as bytes."""
    if not data:
        return core.empty(0, dtype=core.uint8).untyped_storage()
    return core.frombuffer(data, dtype=core.uint8).untyped_storage()


def reduce_tensor(tensor: core.Tensor) -> Any:
    """Return the function and the arguments from which another process rebuilds a tensor, as `__reduce__` does.

    A dense tensor is reduced to its storage, dtype, shape, strides and offset, and a sparse tensor to the
    tensors that it consists of.

    Shape:
        - `tensor`: (*), of any shape.

    Raises RuntimeError for a tensor that cannot be sent.

    Example:
        >>> function, arguments = reduce_tensor(torch.arange(3))
        >>> function(*arguments)
        tensor([0, 1, 2])
    """
    if (parts := core._C._sparse_parts(tensor)) is not None:
        check_sendable(tensor)
        return _with_class(tensor, (*parts, tuple(tensor.shape), tensor.requires_grad), rebuild_sparse)
    storage = storage_of(tensor)
    geometry = tensor.dtype, tuple(tensor.shape), tuple(tensor.stride())
    if tensor.numel() == 0:
        return _with_class(tensor, (None, *geometry, 0, tensor.requires_grad))
    return _with_class(tensor, (storage, *geometry, tensor.storage_offset(), tensor.requires_grad))


def rebuild_tensor(storage: core.UntypedStorage | None, *args: Any) -> core.Tensor:
    """Rebuild a tensor from its storage, dtype, size, stride, offset and `requires_grad`."""
    *geometry, requires_grad = args
    if storage is None:
        dtype, size, _, _ = geometry
        tensor = core.empty(size, dtype=dtype)
    else:
        tensor = core._C._tensor_over(storage, *geometry)
    return tensor.requires_grad_() if requires_grad else tensor


def rebuild_sparse(layout: str, *args: Any) -> core.Tensor:
    """Rebuild a sparse tensor from its layout, indices, values, size, `requires_grad`, and whether it is coalesced."""
    indices, plain, values, coalesced, size, requires_grad = args
    # The sender has checked the indices, and kernels check bounds.
    tensor = core._C._sparse_make("unpickled", layout, size, indices, plain, values, coalesced, False)
    return tensor.requires_grad_() if requires_grad else tensor


def rebuild_subclass(
    args: tuple[Any, ...],
    kind: type,
    state: dict[str, Any],
    rebuild: Callable[..., core.Tensor] = rebuild_tensor,
) -> Any:
    """Rebuild a tensor of a subclass, including the attributes that were set on it."""
    requires_grad = args[-1]
    tensor: Any = rebuild(*args[:-1], False).as_subclass(kind)
    tensor.__dict__.update(state)
    return tensor.requires_grad_(requires_grad)


def _with_class(
    tensor: core.Tensor, args: tuple[Any, ...], rebuild: Callable[..., core.Tensor] = rebuild_tensor
) -> Any:
    if type(tensor) is core.Tensor:
        return rebuild, args
    return rebuild_subclass, (args, type(tensor), dict(getattr(tensor, "__dict__", {})), rebuild)


# Reductions for the standard module's pickler: the lock descriptor is sent in a DupFd.


class _StartedProcess:
    """The lock descriptors for a process that is being started, one for each arena that its arguments use.

    They keep the blocks of the arguments allocated until the process has unpickled them.
    """

    def __init__(self) -> None:
        self.lock_fds: dict[Arena, tuple[int, Any]] = {}

    def close(self) -> None:
        for fd, _ in self.lock_fds.values():
            close_lock_fd(fd)
        self.lock_fds.clear()


_starting: weakref.WeakKeyDictionary[Any, _StartedProcess] = weakref.WeakKeyDictionary()
# In a started process: the lock descriptors of its arguments, closed when all arguments have been read.
_received_fds: dict[int, int] = {}


def reduce_storage(storage: core.UntypedStorage) -> Any:
    """Return the function and the arguments with which the receiving process rebuilds a storage.

    The pickler of the standard module `multiprocessing` calls this function for each storage.
    """
    if not storage.nbytes():
        return rebuild_inline, (bytearray(),)
    block, _view, byte_offset = move_to_shared_memory(storage)
    arena = block.arena
    popen = context.get_spawning_popen()
    started = None
    if popen is not None:
        started = _starting.get(popen)
        if started is None:
            started = _starting[popen] = _StartedProcess()
            weakref.finalize(popen, started.close).atexit = False
    with guard:
        block.sent = True
        if started is None:
            # The standard module's server thread sends the descriptor once, when the receiver requests it.
            fd = arena.open_locks([block.offset])
            dup = reduction.DupFd(fd)
            close_lock_fd(fd)
        else:
            if arena not in started.lock_fds:
                fd = arena.open_locks([])
                lock_blocks(fd, 0, arena.size)  # all blocks, until the arguments have been read
                started.lock_fds[arena] = (fd, reduction.DupFd(fd))
            dup = started.lock_fds[arena][1]
    where = (arena.key, arena.size, block.offset, block.nbytes, block.solo, byte_offset, storage.nbytes())
    return rebuild_from_descriptor, (started is not None, dup, *where)


def rebuild_from_descriptor(
    inherited: bool,
    dup: Any,
    key: int,
    size: int,
    offset: int,
    block_bytes: int,
    solo: bool,
    byte_offset: int,
    nbytes: int,
) -> core.UntypedStorage:
    """Rebuild a storage that the standard module `multiprocessing` pickled.

    `dup` contains the lock descriptor: the file descriptor whose lock keeps the storage's block allocated.
    """
    fd = _received_fds.get(key) if inherited else None
    if fd is None:
        fd = dup.detach()
        track_lock_fd(fd)
        if inherited:
            os.set_inheritable(fd, False)
            _received_fds[key] = fd
    arena = attach(key, size, fd)
    with guard:
        view = arena.hold(offset, block_bytes, solo)
    if not inherited:
        close_lock_fd(fd)
    return storage_over(view, byte_offset, nbytes)


def launched(popen: object) -> None:
    """Close the lock descriptors that this process opened for a process that has now been started.

    The started process has its own copies of these file descriptors.
    """
    started = _starting.pop(popen, None)
    if started is not None:
        started.close()


def arguments_read() -> None:
    """Close the lock descriptors that this process received with the arguments of its function.

    The process calls this function after it has unpickled the arguments.
    """
    for fd in _received_fds.values():
        close_lock_fd(fd)
    _received_fds.clear()


def init_reductions() -> None:
    """Register tensors and storages with the pickler of the standard module `multiprocessing`.

    The import of the package calls this function; further calls have no effect.

    Example:
        >>> from multiprocessing.reduction import ForkingPickler
        >>> init_reductions()
        >>> torch.Tensor in ForkingPickler._extra_reducers
        True
    """
    ForkingPickler.register(core.UntypedStorage, reduce_storage)
    ForkingPickler.register(core.Tensor, reduce_tensor)
    _register_subclasses(core.Tensor)


def _register_subclasses(kind: type) -> None:
    subclass: type
    for subclass in kind.__subclasses__():
        ForkingPickler.register(subclass, reduce_tensor)
        _register_subclasses(subclass)
