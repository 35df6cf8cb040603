"""Methods of UntypedStorage that are written in Python."""

from __future__ import annotations

import mmap
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from . import _C
from ._C import Tensor, UntypedStorage


def from_file(filename: str | os.PathLike[str], shared: bool = False, nbytes: int = 0) -> UntypedStorage:
    """Map a file into memory; each page is read when it is first used.

    Args:
        filename: the file.
        shared: whether writes change the file. If True, the file is created or extended if necessary. If False, writes are
            visible only in this process.
        nbytes: the number of bytes to map.

    Raises:
        RuntimeError: `shared` is False, and the file has fewer than `nbytes` bytes.
        FileNotFoundError: `shared` is False, and there is no such file.

    Example:
        >>> with open("numbers", "wb") as file:
        ...     n = file.write(bytes([1, 2, 3]))
        >>> torch.UntypedStorage.from_file("numbers", shared=False, nbytes=3)[1]
        2
    """
    if not nbytes:
        return _C.empty(0, dtype=_C.uint8).untyped_storage()
    flags = os.O_RDWR | os.O_CREAT if shared else os.O_RDONLY
    handle = os.open(filename, flags, 0o666)
    try:
        size = os.fstat(handle).st_size
        if size < nbytes:
            if not shared:
                raise RuntimeError(
                    f"UntypedStorage.from_file(nbytes): got {nbytes}, {os.fspath(filename)} has {size} bytes"
                )
            os.truncate(handle, nbytes)
        memory = mmap.mmap(handle, nbytes, access=mmap.ACCESS_WRITE if shared else mmap.ACCESS_COPY)
    finally:
        os.close(handle)
    return _C.frombuffer(memory, dtype=_C.uint8).untyped_storage()


def new_storage(size: Any = 0, *, device: Any = None) -> UntypedStorage:
    """Return a new storage. This function is the constructor of `UntypedStorage`.

    Args:
        size: the number of uninitialised bytes, or a sequence of ints with the values of the bytes.
        device: the device; None selects the CPU.

    Raises:
        RuntimeError: `size` is neither a number of bytes nor a sequence of ints, or the number is negative.
    """
    device = "cpu" if device is None else device
    if isinstance(size, int) and not isinstance(size, bool):
        if size < 0:
            raise RuntimeError(f"UntypedStorage(size): must be at least 0, got {size}")
        return _C.empty(size, dtype=_C.uint8, device=device).untyped_storage()
    if not isinstance(size, Sequence):
        raise RuntimeError(
            f"UntypedStorage(size): must be a number of bytes or a sequence of ints, got {type(size).__name__}"
        )
    data = bytearray(_byte_of("UntypedStorage(size)", value) for value in size)
    filled = _C.empty(len(data), dtype=_C.uint8)
    if data:
        filled.copy_(_C.frombuffer(data, dtype=_C.uint8))
    return filled.to(device).untyped_storage()


new_storage.__qualname__ = "UntypedStorage"  # for the errors about its arguments


def from_buffer(
    buffer: Any,
    byte_order: str | None = None,
    count: int = -1,
    offset: int = 0,
    *,
    dtype: _C.dtype,
) -> UntypedStorage:
    """Return a storage with a copy of the bytes of a buffer, in the byte order of the machine.

    Args:
        buffer: an object with the buffer protocol, such as bytes.
        byte_order: the byte order of the elements in the buffer: "native", "little" or "big". May be omitted if elements
            have one byte.
        count: the number of elements to copy; -1 copies all elements from `offset` on.
        offset: the position of the first byte to copy.
        dtype: the dtype of the elements.

    Raises:
        TypeError: `buffer` has no buffer protocol.
        RuntimeError: elements have several bytes and `byte_order` is missing.
        ValueError: the buffer has fewer than `count` elements, its size is not a multiple of the element
            size, `offset` is out of range, or `byte_order` is unknown.
    """
    if byte_order is None and dtype.itemsize > 1:
        raise RuntimeError(f"UntypedStorage.from_buffer(byte_order): is required for {dtype}")
    if byte_order not in (None, "native", "little", "big"):
        raise ValueError(
            f"UntypedStorage.from_buffer(byte_order): must be 'native', 'little' or 'big', got {byte_order!r}"
        )
    data = memoryview(buffer).cast("B")
    if not 0 <= offset <= len(data):
        raise ValueError(f"UntypedStorage.from_buffer(offset): must be from 0 to {len(data)}, got {offset}")
    data = data[offset:]
    if count < 0 and len(data) % dtype.itemsize:
        raise ValueError(
            f"UntypedStorage.from_buffer(buffer): must have a multiple of {dtype.itemsize} bytes, the size of {dtype}, got "
            f"{len(data)}"
        )
    nbytes = len(data) if count < 0 else count * dtype.itemsize
    if nbytes > len(data):
        raise ValueError(
            f"UntypedStorage.from_buffer(count): {count} numbers need {nbytes} bytes, the buffer has {len(data)}"
        )
    storage = new_storage(data[:nbytes])
    if byte_order not in (None, "native", sys.byteorder):
        byteswap(storage, dtype)
    return storage


def tensor_of_bytes(storage: UntypedStorage) -> Tensor:
    """Return a uint8 tensor that shares the memory of the storage."""
    return _C._tensor_over(storage, _C.uint8, (storage.nbytes(),), (1,), 0)


def getitem(self: UntypedStorage, index: Any) -> Any:
    """Return the byte at an index or, for a slice of step 1, a storage that shares the memory of the slice."""
    if not isinstance(index, slice):
        return tensor_of_bytes(self)[_checked_index(self, index)].item()
    start, stop = _bounds(self, index)
    if stop <= start:
        return new_storage(0)
    return _C.frombuffer(memoryview(self)[start:stop], dtype=_C.uint8).untyped_storage()


def setitem(self: UntypedStorage, index: Any, value: int) -> None:
    """Set the byte at an index, or all bytes of a slice of step 1, to an int modulo 256."""
    elements = tensor_of_bytes(self)
    if isinstance(index, slice):
        start, stop = _bounds(self, index)
        elements = elements[start : max(start, stop)]
    else:
        try:
            elements = elements[_checked_index(self, index)]
        except IndexError as error:  # PyTorch raises RuntimeError here, and IndexError when the index is read
            raise RuntimeError(*error.args) from None
    elements.fill_(_byte_of("UntypedStorage.__setitem__(value)", value))


def _bounds(storage: UntypedStorage, index: slice) -> tuple[int, int]:
    start, stop, step = index.indices(storage.nbytes())
    if step != 1:
        raise RuntimeError(f"UntypedStorage[{start}:{stop}:{step}]: steps other than 1 are not supported")
    return start, stop


def _checked_index(storage: UntypedStorage, index: Any) -> int:
    if not isinstance(index, int) or isinstance(index, bool):
        raise TypeError(f"UntypedStorage[index]: must be an int or a slice, got {type(index).__name__}")
    if not -storage.nbytes() <= index < storage.nbytes():
        raise IndexError(f"UntypedStorage[{index}]: out of range for {storage.nbytes()} bytes")
    return index


def _byte_of(name: str, value: Any) -> int:
    if not isinstance(value, int):
        raise RuntimeError(f"{name}: must be ints, got {type(value).__name__}")
    return value & 255


def iterate(self: UntypedStorage) -> Iterator[int]:
    """Return an iterator over the bytes."""
    return iter(tolist(self))


def tolist(self: UntypedStorage) -> list[int]:
    """Return the bytes as a list of ints."""
    return tensor_of_bytes(self).tolist()


def fill_(self: UntypedStorage, value: int) -> UntypedStorage:
    """Set all bytes to an int modulo 256, and return the storage."""
    tensor_of_bytes(self).fill_(_byte_of("UntypedStorage.fill_(value)", value))
    return self


def copy_(self: UntypedStorage, source: Any, non_blocking: bool | None = None) -> UntypedStorage:
    """Copy the bytes of another storage to this one, and return this storage.

    Args:
        source: an UntypedStorage or a TypedStorage.
        non_blocking: whether the copy may run asynchronously if one of the storages is on another device.

    Raises:
        TypeError: `source` is not a storage.
        RuntimeError: the storages differ in size.
    """
    from ._typed_storage import TypedStorage

    if isinstance(source, TypedStorage):
        source = source.untyped()
    if not isinstance(source, UntypedStorage):
        raise TypeError(f"UntypedStorage.copy_(source): must be a storage, got {type(source).__name__}")
    if source.nbytes() != self.nbytes():
        raise RuntimeError(
            f"UntypedStorage.copy_(source): size does not match, this storage has {self.nbytes()} bytes, the source has "
            f"{source.nbytes()}"
        )
    tensor_of_bytes(self).copy_(tensor_of_bytes(source), bool(non_blocking))
    return self


def clone(self: UntypedStorage) -> UntypedStorage:
    """Return a storage with a copy of the bytes."""
    return tensor_of_bytes(self).clone().untyped_storage()


def new(self: UntypedStorage) -> UntypedStorage:
    """Return an empty storage on the same device."""
    return new_storage(0, device=self.device)


def elements(self: UntypedStorage) -> Any:
    """Return a TypedStorage of uint8 that shares the memory of the storage."""
    from ._typed_storage import TypedStorage

    return TypedStorage(tensor_of_bytes(self))


def byteswap(self: UntypedStorage, dtype: _C.dtype) -> None:
    """Reverse the byte order of each element, in place. A complex element is swapped as two real numbers.

    Raises:
        RuntimeError: `dtype` is not a dtype, or the size of the storage is not a multiple of the element size.
    """
    if not isinstance(dtype, _C.dtype):
        raise RuntimeError(f"UntypedStorage.byteswap(dtype): must be a dtype, got {type(dtype).__name__}")
    size = dtype.itemsize // 2 if dtype.is_complex else dtype.itemsize
    if self.nbytes() % size:
        raise RuntimeError(
            f"UntypedStorage.byteswap(dtype): {self.nbytes()} bytes are not a multiple of {size}, the size of {dtype}"
        )
    numbers = tensor_of_bytes(self).view(-1, size)
    numbers.copy_(numbers.flip(1))


def to(self: UntypedStorage, *, device: Any, non_blocking: bool = False) -> UntypedStorage:
    """Return the storage if it is on `device`, and otherwise a copy on `device`.

    Args:
        device: the device.
        non_blocking: whether the copy may run asynchronously.
    """
    if self.device == _C.device(device):
        return self
    return tensor_of_bytes(self).to(device, non_blocking=non_blocking).untyped_storage()


def cpu(self: UntypedStorage) -> UntypedStorage:
    """Return the storage if it is on the CPU, and otherwise a copy on the CPU."""
    return to(self, device="cpu")


def cuda(self: UntypedStorage, device: Any = None, non_blocking: bool = False) -> UntypedStorage:
    """Return the storage if it is on the CUDA device, and otherwise a copy on this device.

    Args:
        device: the device or its index; None selects the current device.
        non_blocking: whether the copy may run asynchronously.
    """
    return tensor_of_bytes(self).cuda(device, non_blocking=non_blocking).untyped_storage()


def pin_memory(self: UntypedStorage) -> UntypedStorage:
    """Return a copy of a CPU storage in pinned memory, or the storage itself if it is pinned already."""
    return tensor_of_bytes(self).pin_memory().untyped_storage()


def is_pinned(self: UntypedStorage) -> bool:
    """Return whether the storage is in pinned memory."""
    return self.device.type == "cpu" and tensor_of_bytes(self).is_pinned()


def element_size(self: UntypedStorage) -> int:
    """Return 1, the size of a byte."""
    return 1


def get_device(self: UntypedStorage) -> int | None:
    """Return the index of the device, or None for the CPU."""
    return self.device.index


def untyped(self: UntypedStorage) -> UntypedStorage:
    """Return the storage itself."""
    return self


def share_memory_(self: UntypedStorage) -> UntypedStorage:
    """Move the storage to shared memory, in place, and return it. Tensors that use the storage move with it."""
    from ._shared_memory import shared_memory_package

    return self if self.device.type == "cuda" else shared_memory_package().share_memory_(self)


def is_shared(self: UntypedStorage) -> bool:
    """Return whether the storage is in shared memory. The result is always True for a CUDA storage."""
    # If the package was never imported, no memory is shared.
    package = sys.modules.get("rushlight_multiprocessing")
    return self.device.type == "cuda" or (package is not None and package.is_shared(self))


def set_to_storage(
    set_to_tensor: Callable[..., Tensor],
    self: Tensor,
    source: Any,
    storage_offset: int = 0,
    size: Any = None,
    stride: Any = (),
) -> Tensor:
    """Set the storage, shape and strides of a tensor, which then shares the memory of the storage.

    Args:
        set_to_tensor: the C++ implementation of `Tensor.set_`, which accepts only a tensor as its source.
        source: an UntypedStorage, or a TypedStorage of the tensor's dtype.
        storage_offset: the position of the first element, in elements.
        size: the shape; by default one dimension with all elements of the storage.
        stride: the strides, in elements; row-major by default.

    Raises:
        TypeError: `source` is not a tensor or a storage.
        RuntimeError: the elements are outside of the storage, or the dtypes or devices differ.
    """
    from ._typed_storage import TypedStorage

    if isinstance(source, TypedStorage):
        if source.dtype != self.dtype:
            raise RuntimeError(
                f"set_(source): must have the tensor's dtype, {self.dtype}, got a storage of {source.dtype}"
            )
        source = source.untyped()
    if not isinstance(source, UntypedStorage):
        raise TypeError(f"set_(source): must be a Tensor or a storage, got {type(source).__name__}")
    count = source.nbytes() // self.element_size()
    elements = _C._tensor_over(source, self.dtype, (count,), (1,), 0)
    return set_to_tensor(self, elements, storage_offset, (count,) if size is None else size, stride)
