"""How tensors are pickled between processes.

Two ways lead to the same place. A message over one of our connections collects the blocks it mentions in a
*cargo*, whose parcels (see Note [Who frees a block] in `arena.py`) travel beside the bytes. Everything that
pickles by the standard module, such as the arguments of a spawned process or a standard queue, carries its
parcel in a `DupFd`.
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

from .arena import Arena, attached, close_parcel, guard, lock_in_parcel, track_parcel
from .sharing import copy_of, geometry, place, tensor_over

# In a connection that gives its tensors away (`Connection.gives`), smaller ones are sent as bytes.
INLINE_BYTES = 4096


class Cargo:
    """The blocks that one outgoing message mentions, by arena."""

    def __init__(self) -> None:
        self.arenas: list[Arena] = []
        self.offsets: list[set[int]] = []
        self.views: list[memoryview] = []  # keep the blocks until the parcels do

    def add(self, arena: Arena, offset: int, view: memoryview) -> int:
        """Note a block; returns the arena's number within the message."""
        self.views.append(view)
        for slot, known in enumerate(self.arenas):
            if known is arena:
                self.offsets[slot].add(offset)
                return slot
        self.arenas.append(arena)
        self.offsets.append({offset})
        return len(self.arenas) - 1

    def seal(self) -> list[int]:
        """The parcels, one descriptor per arena; the caller closes them by `close_parcel`."""
        with guard:
            for arena, offsets in zip(self.arenas, self.offsets, strict=True):
                for offset in offsets:
                    arena.blocks[offset].publish()
            return [arena.parcel(offsets) for arena, offsets in zip(self.arenas, self.offsets, strict=True)]


class Delivery:
    """The parcels that came with a message: arenas are attached at once, blocks are held as tensors are
    made."""

    def __init__(self, table: list[tuple[int, int]], parcels: list[int]) -> None:
        self.parcels = parcels
        self.arenas = [attach(key, size, fd) for (key, size), fd in zip(table, parcels, strict=True)]

    def close(self) -> None:
        for fd in self.parcels:
            close_parcel(fd)
        self.parcels = []


class Pickler(ForkingPickler):
    """Pickles one message for our connections. With `gives`, the sender gives tensors away: small ones go as
    bytes, and others are copied to shared memory rather than moved there."""

    def __init__(self, file: io.BytesIO, gives: bool) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self.cargo = Cargo()
        self.gives = gives

    def reducer_override(self, obj: Any) -> Any:
        if not isinstance(obj, core.Tensor):
            return NotImplemented
        if obj.numel() == 0 or (
            self.gives and obj.numel() * obj.dtype.itemsize < INLINE_BYTES and _plain(obj)
        ):
            return reduce_inline(obj)
        block, view, byte_offset = copy_of(obj) if self.gives else place(obj)
        slot = self.cargo.add(block.arena, block.offset, view)
        return _with_class(
            obj, rebuild, (slot, block.offset, block.nbytes, block.solo, byte_offset, *geometry(obj))
        )


def dumps(obj: object, gives: bool = False) -> tuple[memoryview, Cargo]:
    """Pickle a message and collect its cargo."""
    file = io.BytesIO()
    pickler = Pickler(file, gives)
    pickler.dump(obj)
    return file.getbuffer(), pickler.cargo


_local = threading.local()


def loads(data: Any, delivery: Delivery | None) -> Any:
    """Unpickle a message that came with this delivery."""
    if delivery is None:
        return pickle.loads(data)
    outer = getattr(_local, "delivery", None)
    _local.delivery = delivery
    try:
        return pickle.loads(data)
    finally:
        _local.delivery = outer


def attach(key: int, size: int, fd: int) -> Arena:
    """The arena behind a parcel, mapped if it is not yet."""
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
    """Make a tensor of the message that is being read."""
    arena = _local.delivery.arenas[slot]
    with guard:
        view = arena.hold(offset, nbytes, solo)
    tensor = tensor_over(view, byte_offset, dtype, size, stride)
    return tensor.requires_grad_() if requires_grad else tensor


def reduce_inline(tensor: core.Tensor) -> Any:
    """A small tensor as bytes."""
    _check_sendable(tensor)
    flat = tensor.detach().contiguous().view(-1)
    data = bytearray(flat.numel() * flat.dtype.itemsize)
    if data:
        core.frombuffer(data, dtype=flat.dtype).copy_(flat)
    return _with_class(tensor, rebuild_inline, (data, *geometry(tensor)))


def rebuild_inline(data: bytearray, dtype: Any, size: Any, stride: Any, requires_grad: bool) -> core.Tensor:
    """Make a tensor from bytes that came inside a message."""
    tensor = core.frombuffer(data, dtype=dtype).view(size) if data else core.empty(size, dtype=dtype)
    return tensor.requires_grad_() if requires_grad else tensor


def rebuild_subclass(
    build: Callable[..., core.Tensor], args: tuple[Any, ...], kind: type, state: dict[str, Any]
) -> Any:
    """Make a tensor of a subclass, with the attributes that were set on it."""
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


# By the standard pickler: the parcel goes in a DupFd.


class _Launch:
    """The parcels of a process that is being started: one per arena, since each descriptor costs the child
    one."""

    def __init__(self) -> None:
        self.parcels: dict[Arena, tuple[int, Any]] = {}

    def close(self) -> None:
        for fd, _ in self.parcels.values():
            close_parcel(fd)
        self.parcels.clear()


_launches: weakref.WeakKeyDictionary[Any, _Launch] = weakref.WeakKeyDictionary()
# In a started process: the parcels of its own arguments, closed when all arguments have been read.
_arrived: dict[int, int] = {}


def reduce_tensor(tensor: core.Tensor) -> Any:
    """The reducer that the standard module's pickler uses for tensors."""
    if tensor.numel() == 0:
        return reduce_inline(tensor)
    block, _view, byte_offset = place(tensor)
    arena = block.arena
    popen = context.get_spawning_popen()
    launch = None
    if popen is not None:
        launch = _launches.get(popen)
        if launch is None:
            launch = _launches[popen] = _Launch()
            weakref.finalize(popen, launch.close).atexit = False
    with guard:
        block.publish()
        if launch is None:
            fd = arena.parcel([block.offset])
        elif arena in launch.parcels:
            fd, dup = launch.parcels[arena]
            lock_in_parcel(fd, block.offset)
        else:
            fd = arena.parcel([block.offset])
    if launch is None:
        # The standard module's server thread hands the parcel over when the other side asks for it, once.
        dup = reduction.DupFd(fd)
        close_parcel(fd)
    elif arena not in launch.parcels:
        dup = reduction.DupFd(fd)
        launch.parcels[arena] = (fd, dup)
    where = (arena.key, arena.size, block.offset, block.nbytes, block.solo, byte_offset)
    return _with_class(tensor, rebuild_from_descriptor, (launch is not None, dup, *where, *geometry(tensor)))


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
    """Make a tensor whose parcel came by the standard module."""
    dtype, shape, stride, requires_grad = geometry
    fd = _arrived.get(key) if inherited else None
    if fd is None:
        fd = dup.detach()
        track_parcel(fd)
        if inherited:
            os.set_inheritable(fd, False)
            _arrived[key] = fd
    arena = attach(key, size, fd)
    with guard:
        view = arena.hold(offset, nbytes, solo)
    if not inherited:
        close_parcel(fd)
    tensor = tensor_over(view, byte_offset, dtype, shape, stride)
    return tensor.requires_grad_() if requires_grad else tensor


def launched(popen: object) -> None:
    """A process has been started: its parcels are with it, and this side's copies can be closed."""
    launch = _launches.pop(popen, None)
    if launch is not None:
        launch.close()


def arguments_read() -> None:
    """In a process that was started: all its arguments have been made, and hold what they need."""
    for fd in _arrived.values():
        close_parcel(fd)
    _arrived.clear()


def _reduce_subclass(tensor: core.Tensor) -> Any:
    return reduce_tensor(tensor)


def init_reductions() -> None:
    """Teach the standard module's pickler about tensors. Called when the package is imported."""
    ForkingPickler.register(core.Tensor, reduce_tensor)
    _teach_subclasses(core.Tensor)


def _teach_subclasses(kind: type) -> None:
    subclass: type
    for subclass in kind.__subclasses__():
        ForkingPickler.register(subclass, _reduce_subclass)
        _teach_subclasses(subclass)
