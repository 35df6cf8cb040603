"""Methods of UntypedStorage that are written in Python."""

from __future__ import annotations

import mmap
import os
import sys
from collections.abc import Callable
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
                    f"UntypedStorage.from_file(nbytes): {os.fspath(filename)} has {size} bytes, not {nbytes}"
                )
            os.truncate(handle, nbytes)
        memory = mmap.mmap(handle, nbytes, access=mmap.ACCESS_WRITE if shared else mmap.ACCESS_COPY)
    finally:
        os.close(handle)
    return _C.frombuffer(memory, dtype=_C.uint8).untyped_storage()


def tensor_of_bytes(storage: UntypedStorage) -> Tensor:
    """Return the memory as a tensor of bytes."""
    return _C._tensor_over(storage, _C.uint8, (storage.nbytes(),), (1,), 0)


def getitem(self: UntypedStorage, index: Any) -> Any:
    """Return the byte at an index or, for a slice of step 1, a storage that shares the memory of the slice."""
    if not isinstance(index, slice):
        return tensor_of_bytes(self)[index].item()
    start, stop, step = index.indices(self.nbytes())
    if step != 1:
        raise RuntimeError(f"UntypedStorage[{start}:{stop}:{step}]: steps other than 1 are not supported")
    if stop <= start:
        return _C.empty(0, dtype=_C.uint8).untyped_storage()
    return _C.frombuffer(memoryview(self)[start:stop], dtype=_C.uint8).untyped_storage()


def untyped(self: UntypedStorage) -> UntypedStorage:
    """Return the storage itself."""
    return self


def share_memory_(self: UntypedStorage) -> UntypedStorage:
    """Move the memory to shared memory, in place, for all tensors that use the storage. Return the storage."""
    from ._shared_memory import shared_memory_package

    return self if self.device.type == "cuda" else shared_memory_package().share_memory_(self)


def is_shared(self: UntypedStorage) -> bool:
    """Return whether the memory is in shared memory. The result is always True for memory of a CUDA device."""
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
    """Make the tensor use the memory of a storage.

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
