"""The memory of a tensor, viewed as elements of the tensor's dtype."""

from __future__ import annotations

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

    def data_ptr(self) -> int:
        """Return the address of the memory."""
        return self._untyped.data_ptr()

    def nbytes(self) -> int:
        """Return the number of bytes."""
        return self._untyped.nbytes()

    def is_shared(self) -> bool:
        """Return whether the memory is in shared memory."""
        return self._untyped.is_shared()

    def share_memory_(self) -> TypedStorage:
        """Move the memory to shared memory, in place, and return the storage."""
        self._untyped.share_memory_()
        return self

    def resize_(self, size: int) -> TypedStorage:
        """Enlarge the memory to `size` elements, in place. A smaller size raises NotImplementedError."""
        self._untyped.resize_(size * self.element_size())
        self._elements = self._elements.as_strided((size,), (1,), 0)
        return self

    def size(self) -> int:
        """Return the number of elements."""
        return self._elements.numel()

    __len__ = size

    def element_size(self) -> int:
        """Return the number of bytes of an element."""
        return self._elements.element_size()

    def tolist(self) -> list[Any]:
        """Return the elements as numbers."""
        return self._elements.tolist()

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def __getitem__(self, index: Any) -> Any:
        found = self._elements[index]
        return found.item() if isinstance(index, int) else found.tolist()

    def __setitem__(self, index: Any, value: Any) -> None:
        self._elements[index] = value

    def __repr__(self) -> str:
        return f"{self.tolist()!r}\n[TypedStorage(dtype={self.dtype}, device={self.device}) of size {self.size()}]"
