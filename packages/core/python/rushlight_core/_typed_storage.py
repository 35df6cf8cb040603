"""The memory of a tensor, viewed as elements of the tensor's dtype."""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from typing import Any

from . import _C
from ._C import Tensor


class TypedStorage:
    """A tensor's whole memory, viewed as elements of the tensor's dtype, without a shape. `Tensor.storage()` returns it.

    Args:
        tensor: the tensor that owns the memory.

    Example:
        >>> x = torch.arange(6).view(2, 3)
        >>> x[1].storage().tolist()  # a view has the whole memory
        [0, 1, 2, 3, 4, 5]
        >>> x.storage()[0] = 7
        >>> x
        tensor([[7, 1, 2],
                [3, 4, 5]])
    """

    dtype: _C.dtype

    def __init__(self, tensor: Tensor) -> None:
        self.dtype = tensor.dtype
        self._untyped = tensor.untyped_storage()
        count = self._untyped.nbytes() // max(tensor.element_size(), 1)
        self._elements = tensor.detach().as_strided((count,), (1,), 0)

    @property
    def device(self) -> Any:
        """The device of the memory."""
        return self._untyped.device

    def untyped(self) -> Any:
        """Return the same memory as an `UntypedStorage`, whose elements are bytes."""
        return self._untyped

    def data_ptr(self) -> builtins.int:
        """Return the address of the memory."""
        return self._untyped.data_ptr()

    def nbytes(self) -> builtins.int:
        """Return the number of bytes."""
        return self._untyped.nbytes()

    def is_shared(self) -> builtins.bool:
        """Return whether the memory is in shared memory."""
        return self._untyped.is_shared()

    def share_memory_(self) -> TypedStorage:
        """Move the memory to shared memory, in place, and return the storage."""
        self._untyped.share_memory_()
        return self

    def resize_(self, size: builtins.int) -> TypedStorage:
        """Enlarge the memory to `size` elements, in place. A smaller size raises NotImplementedError."""
        self._untyped.resize_(size * self.element_size())
        self._elements = self._elements.as_strided((size,), (1,), 0)
        return self

    def fill_(self, value: Any) -> TypedStorage:
        """Set all elements to a number, and return the storage."""
        self._elements.fill_(value)
        return self

    def copy_(self, source: Any, non_blocking: bool | None = None) -> TypedStorage:
        """Copy the bytes of `source`, a storage of the same size in bytes, and return this storage.

        Raises:
            TypeError: `source` is not a storage.
            RuntimeError: the storages differ in size.
        """
        self._untyped.copy_(source, non_blocking)
        return self

    def clone(self) -> TypedStorage:
        """Return a storage with a copy of the elements."""
        return TypedStorage(self._elements.clone())

    def cpu(self) -> TypedStorage:
        """Return a storage on the CPU with the same elements. On the CPU, no copy is made."""
        return TypedStorage(self._elements.cpu())

    def _converted(self, dtype: _C.dtype) -> TypedStorage:
        return TypedStorage(self._elements.to(dtype, copy=True))

    def bool(self) -> TypedStorage:
        """Return a storage with the elements converted to bool."""
        return self._converted(_C.bool)

    def byte(self) -> TypedStorage:
        """Return a storage with the elements converted to uint8."""
        return self._converted(_C.uint8)

    def char(self) -> TypedStorage:
        """Return a storage with the elements converted to int8."""
        return self._converted(_C.int8)

    def short(self) -> TypedStorage:
        """Return a storage with the elements converted to int16."""
        return self._converted(_C.int16)

    def int(self) -> TypedStorage:
        """Return a storage with the elements converted to int32."""
        return self._converted(_C.int32)

    def long(self) -> TypedStorage:
        """Return a storage with the elements converted to int64."""
        return self._converted(_C.int64)

    def half(self) -> TypedStorage:
        """Return a storage with the elements converted to float16."""
        return self._converted(_C.float16)

    def bfloat16(self) -> TypedStorage:
        """Return a storage with the elements converted to bfloat16."""
        return self._converted(_C.bfloat16)

    def float(self) -> TypedStorage:
        """Return a storage with the elements converted to float32."""
        return self._converted(_C.float32)

    def double(self) -> TypedStorage:
        """Return a storage with the elements converted to float64."""
        return self._converted(_C.float64)

    def complex_float(self) -> TypedStorage:
        """Return a storage with the elements converted to complex64."""
        return self._converted(_C.complex64)

    def complex_double(self) -> TypedStorage:
        """Return a storage with the elements converted to complex128."""
        return self._converted(_C.complex128)

    @property
    def is_cuda(self) -> builtins.bool:
        """Whether the memory is on a CUDA device."""
        return self._untyped.is_cuda

    def get_device(self) -> builtins.int | None:
        """Return the index of the device; None on the CPU."""
        return self._untyped.get_device()

    def size(self) -> builtins.int:
        """Return the number of elements."""
        return self._elements.numel()

    __len__ = size

    def element_size(self) -> builtins.int:
        """Return the number of bytes of an element."""
        return self._elements.element_size()

    def tolist(self) -> list[Any]:
        """Return the elements as a list of numbers."""
        return self._elements.tolist()

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def __getitem__(self, index: Any) -> Any:
        found = self._elements[index]
        return found.item() if isinstance(index, builtins.int) else found.tolist()

    def __setitem__(self, index: Any, value: Any) -> None:
        self._elements[index] = value

    def __repr__(self) -> str:
        return f"{self.tolist()!r}\n[TypedStorage(dtype={self.dtype}, device={self.device}) of size {self.size()}]"
