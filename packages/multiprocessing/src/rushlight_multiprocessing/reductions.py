"""Pickling of tensors that are sent to other processes.

There are two cases. For a message over a `Connection` of this package, the pickler collects the shared-memory
blocks of the tensors in an `OutgoingBlocks`, and the connection sends their lock descriptors (see Note [Who
frees a block] in `arena.py`) with the message. For the standard module's pickler, which handles the arguments
of a spawned process and standard queues, each tensor carries its lock descriptor in a `DupFd`.
"""

from __future__ import annotations

import io
import os
import pickle
import threading
import weakref
from collections.abc import Callable
from multiprocessing import context, reduction
from multiprocessing.reduction import ForkingPickler
from typing import Any

import rushlight_core as core

from .arena import Arena, attached, close_lock_fd, guard, lock_block, track_lock_fd
from .sharing import copy_of, geometry, place, tensor_over

# A connection with `gives=True` sends tensors below this size as bytes.
INLINE_BYTES = 4096


class OutgoingBlocks:
    """The shared-memory blocks of an outgoing message, by arena."""

    def __init__(self) -> None:
        self.arenas: list[Arena] = []
        self.offsets: list[set[int]] = []
        self.views: list[memoryview] = []  # keep the blocks until the descriptors are open

    def add(self, arena: Arena, offset: int, view: memoryview) -> int:
        """Add a block, and return the number of its arena within the message."""
        self.views.append(view)
        for slot, known in enumerate(self.arenas):
            if known is arena:
                self.offsets[slot].add(offset)
                return slot
        self.arenas.append(arena)
        self.offsets.append({offset})
        return len(self.arenas) - 1

    def open_locks(self) -> list[int]:
        """Open one lock descriptor per arena. The caller closes them with `close_lock_fd`."""
        with guard:
            for arena, offsets in zip(self.arenas, self.offsets, strict=True):
                for offset in offsets:
                    arena.blocks[offset].publish()
            return [
                arena.open_locks(offsets) for arena, offsets in zip(self.arenas, self.offsets, strict=True)
            ]


class IncomingBlocks:
    """The arenas and lock descriptors of a received message.

    Arenas are attached at once; a block is locked when its tensor is rebuilt."""

    def __init__(self, table: list[tuple[int, int]], lock_fds: list[int]) -> None:
        self.lock_fds = lock_fds
        self.arenas = [attach(key, size, fd) for (key, size), fd in zip(table, lock_fds, strict=True)]

    def close(self) -> None:
        for fd in self.lock_fds:
            close_lock_fd(fd)
        self.lock_fds = []


class Pickler(ForkingPickler):
    """Pickles one message for a `Connection`.

    With `gives=True`, small tensors are sent as bytes, and others are copied to shared memory instead of
    moved."""

    def __init__(self, file: io.BytesIO, gives: bool) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self.outgoing = OutgoingBlocks()
        self.gives = gives

    def reducer_override(self, obj: Any) -> Any:
        if not isinstance(obj, core.Tensor):
            return NotImplemented
        if obj.numel() == 0 or (
            self.gives and obj.numel() * obj.dtype.itemsize < INLINE_BYTES and _plain(obj)
        ):
            return reduce_inline(obj)
        block, view, byte_offset = copy_of(obj) if self.gives else place(obj)
        slot = self.outgoing.add(block.arena, block.offset, view)
        return _with_class(
            obj, rebuild, (slot, block.offset, block.nbytes, block.solo, byte_offset, *geometry(obj))
        )


def dumps(obj: object, gives: bool = False) -> tuple[memoryview, OutgoingBlocks]:
    """Pickle an object; return the bytes and the shared-memory blocks of its tensors."""
    file = io.BytesIO()
    pickler = Pickler(file, gives)
    pickler.dump(obj)
    return file.getbuffer(), pickler.outgoing


_local = threading.local()


def loads(data: Any, incoming: IncomingBlocks | None) -> Any:
    """Unpickle a message whose tensors are in the blocks of `incoming`."""
    if incoming is None:
        return pickle.loads(data)
    previous = getattr(_local, "incoming", None)
    _local.incoming = incoming
    try:
        return pickle.loads(data)
    finally:
        _local.incoming = previous


def attach(key: int, size: int, fd: int) -> Arena:
    """Return the arena of a received descriptor, mapping it if necessary."""
    with guard:
        arena = attached.get(key)
        if arena is None:
            found = os.fstat(fd).st_size
            if found != size:
                raise ValueError(f"a message announces an arena of {size} bytes, but it has {found}")
            arena = Arena(key, size, fd)
        return arena


def rebuild(
    slot: int, offset: int, nbytes: int, solo: bool, byte_offset: int, dtype: Any, size: Any, stride: Any,
    requires_grad: bool,
) -> core.Tensor:  # fmt: skip
    """Rebuild a tensor of the message that is being unpickled."""
    arena = _local.incoming.arenas[slot]
    with guard:
        view = arena.hold(offset, nbytes, solo)
    tensor = tensor_over(view, byte_offset, dtype, size, stride)
    return tensor.requires_grad_() if requires_grad else tensor


def reduce_inline(tensor: core.Tensor) -> Any:
    """Reduce a small tensor to its bytes."""
    _check_sendable(tensor)
    flat = tensor.detach().contiguous().view(-1)
    data = bytearray(flat.numel() * flat.dtype.itemsize)
    if data:
        core.frombuffer(data, dtype=flat.dtype).copy_(flat)
    return _with_class(tensor, rebuild_inline, (data, *geometry(tensor)))


def rebuild_inline(data: bytearray, dtype: Any, size: Any, stride: Any, requires_grad: bool) -> core.Tensor:
    """Rebuild a tensor that was sent as bytes."""
    tensor = core.frombuffer(data, dtype=dtype).view(size) if data else core.empty(size, dtype=dtype)
    return tensor.requires_grad_() if requires_grad else tensor


def rebuild_subclass(
    build: Callable[..., core.Tensor], args: tuple[Any, ...], kind: type, state: dict[str, Any]
) -> Any:
    """Rebuild a tensor of a subclass, including the attributes that were set on it."""
    requires_grad = args[-1]
    tensor: Any = build(*args[:-1], False).as_subclass(kind)
    tensor.__dict__.update(state)
    return tensor.requires_grad_(requires_grad)


def _with_class(tensor: core.Tensor, build: Callable[..., core.Tensor], args: tuple[Any, ...]) -> Any:
    if _plain(tensor):
        return build, args
    return rebuild_subclass, (build, args, type(tensor), dict(getattr(tensor, "__dict__", {})))


def _plain(tensor: core.Tensor) -> bool:
    return type(tensor) is core.Tensor


def _check_sendable(tensor: core.Tensor) -> None:
    if tensor.requires_grad and not tensor.is_leaf:
        place(tensor)  # raises


# Reductions for the standard module's pickler: the lock descriptor is sent in a DupFd.


class _StartedProcess:
    """The lock descriptors of a process that is being started, one per arena."""

    def __init__(self) -> None:
        self.lock_fds: dict[Arena, tuple[int, Any]] = {}

    def close(self) -> None:
        for fd, _ in self.lock_fds.values():
            close_lock_fd(fd)
        self.lock_fds.clear()


_starting: weakref.WeakKeyDictionary[Any, _StartedProcess] = weakref.WeakKeyDictionary()
# In a started process: the lock descriptors of its arguments, closed when all arguments have been read.
_received_fds: dict[int, int] = {}


def reduce_tensor(tensor: core.Tensor) -> Any:
    """Reduce a tensor for the standard module's pickler."""
    if tensor.numel() == 0:
        return reduce_inline(tensor)
    block, _view, byte_offset = place(tensor)
    arena = block.arena
    popen = context.get_spawning_popen()
    started = None
    if popen is not None:
        started = _starting.get(popen)
        if started is None:
            started = _starting[popen] = _StartedProcess()
            weakref.finalize(popen, started.close).atexit = False
    with guard:
        block.publish()
        if started is None:
            fd = arena.open_locks([block.offset])
        elif arena in started.lock_fds:
            fd, dup = started.lock_fds[arena]
            lock_block(fd, block.offset)
        else:
            fd = arena.open_locks([block.offset])
    if started is None:
        # The standard module's server thread sends the descriptor once, when the receiver asks for it.
        dup = reduction.DupFd(fd)
        close_lock_fd(fd)
    elif arena not in started.lock_fds:
        dup = reduction.DupFd(fd)
        started.lock_fds[arena] = (fd, dup)
    where = (arena.key, arena.size, block.offset, block.nbytes, block.solo, byte_offset)
    return _with_class(tensor, rebuild_from_descriptor, (started is not None, dup, *where, *geometry(tensor)))


def rebuild_from_descriptor(
    inherited: bool,
    dup: Any,
    key: int,
    size: int,
    offset: int,
    nbytes: int,
    solo: bool,
    byte_offset: int,
    *geometry: Any,
) -> core.Tensor:
    """Rebuild a tensor whose lock descriptor was sent by the standard module."""
    dtype, shape, stride, requires_grad = geometry
    fd = _received_fds.get(key) if inherited else None
    if fd is None:
        fd = dup.detach()
        track_lock_fd(fd)
        if inherited:
            os.set_inheritable(fd, False)
            _received_fds[key] = fd
    arena = attach(key, size, fd)
    with guard:
        view = arena.hold(offset, nbytes, solo)
    if not inherited:
        close_lock_fd(fd)
    tensor = tensor_over(view, byte_offset, dtype, shape, stride)
    return tensor.requires_grad_() if requires_grad else tensor


def launched(popen: object) -> None:
    """Close this process's copies of the lock descriptors of a process that has been started."""
    started = _starting.pop(popen, None)
    if started is not None:
        started.close()


def arguments_read() -> None:
    """In a started process, close the lock descriptors of its arguments once these have been unpickled."""
    for fd in _received_fds.values():
        close_lock_fd(fd)
    _received_fds.clear()


def _reduce_subclass(tensor: core.Tensor) -> Any:
    return reduce_tensor(tensor)


def init_reductions() -> None:
    """Register tensors with the standard module's pickler. Called when the package is imported."""
    ForkingPickler.register(core.Tensor, reduce_tensor)
    _register_subclasses(core.Tensor)


def _register_subclasses(kind: type) -> None:
    subclass: type
    for subclass in kind.__subclasses__():
        ForkingPickler.register(subclass, _reduce_subclass)
        _register_subclasses(subclass)
