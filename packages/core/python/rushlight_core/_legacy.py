"""Types of tensors by their old names: `FloatTensor`, `LongTensor` and so on; and storages that know a dtype."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from . import _C
from ._C import Tensor
from ._creation import tensor as _tensor
from ._methods import _DTYPES_BY_NAME


class _TensorType(type):
    """A class that has no instances of its own: tensors on the CPU of one dtype are what `isinstance` says yes to."""

    dtype: Any

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Tensor) and instance.dtype is cls.dtype and instance.device.type == "cpu"

    def __call__(cls, *args: Any, device: Any = None) -> Tensor:
        """`FloatTensor(data)`, `FloatTensor(2, 3)`, `FloatTensor()`: a copy of data, or uninitialised by sizes."""
        if device is not None and str(device) != "cpu":
            raise RuntimeError(
                f"{cls.__name__}(device): must be 'cpu', got {device!r}\nhint: use tensor(..., device=...)"
            )
        if len(args) == 1 and (not isinstance(args[0], int) or isinstance(args[0], (bool, _C.Size))):
            (data,) = args
            if isinstance(data, _C.Size):
                return _C.empty(tuple(data), dtype=cls.dtype)
            if isinstance(data, Tensor):
                if data.dtype is not cls.dtype:
                    raise TypeError(
                        f"{cls.__name__}(data): got a tensor of {data.dtype}, needs {cls.dtype}\n"
                        f"hint: use data.to({cls.dtype})"
                    )
                return data.detach()
            return _tensor(data, dtype=cls.dtype)
        if not all(isinstance(size, int) and not isinstance(size, bool) for size in args):
            kinds = ", ".join(type(a).__name__ for a in args)
            raise TypeError(
                f"{cls.__name__}(): needs data, or sizes that are ints, got ({kinds})\nhint: use tensor(data)"
            )
        return _C.empty(args or (0,), dtype=cls.dtype)

    def __repr__(cls) -> str:
        return f"<class 'torch.{cls.__name__}'>"


def _type(name: str) -> Any:
    return _TensorType(name, (), {"dtype": _DTYPES_BY_NAME[name], "__module__": "torch"})


BFloat16Tensor: Any = _type("BFloat16Tensor")
BoolTensor: Any = _type("BoolTensor")
ByteTensor: Any = _type("ByteTensor")
CharTensor: Any = _type("CharTensor")
DoubleTensor: Any = _type("DoubleTensor")
FloatTensor: Any = _type("FloatTensor")
HalfTensor: Any = _type("HalfTensor")
IntTensor: Any = _type("IntTensor")
LongTensor: Any = _type("LongTensor")
ShortTensor: Any = _type("ShortTensor")


def dtype_of_type(kind: Any) -> Any:
    """The dtype of a type, or of its name, "torch.FloatTensor"; None if it is none."""
    if isinstance(kind, _TensorType):
        return kind.dtype
    if isinstance(kind, str) and kind.startswith("torch."):
        return _DTYPES_BY_NAME.get(kind.removeprefix("torch."))
    return None


class TypedStorage:
    """A tensor's whole memory as elements of its dtype, without shape; what `Tensor.storage()` returns."""

    dtype: _C.dtype

    def __init__(self, tensor: Tensor) -> None:
        self.dtype = tensor.dtype
        self._untyped = tensor.untyped_storage()
        count = self._untyped.nbytes() // max(tensor.element_size(), 1)
        self._elements = tensor.detach().as_strided((count,), (1,), 0)

    @property
    def device(self) -> Any:
        """Where the memory is."""
        return self._untyped.device

    def untyped(self) -> Any:
        """The same memory as bytes."""
        return self._untyped

    def data_ptr(self) -> int:
        """The memory's address."""
        return self._untyped.data_ptr()

    def nbytes(self) -> int:
        """How many bytes there are."""
        return self._untyped.nbytes()

    def is_shared(self) -> bool:
        """Return whether the memory is in shared memory."""
        return self._untyped.is_shared()

    def share_memory_(self) -> TypedStorage:
        """Move the memory to shared memory, in place, and return the storage."""
        self._untyped.share_memory_()
        return self

    def resize_(self, size: int) -> TypedStorage:
        """Make the memory larger, in place: `size` elements. See `UntypedStorage.resize_`."""
        self._untyped.resize_(size * self.element_size())
        self._elements = self._elements.as_strided((size,), (1,), 0)
        return self

    def size(self) -> int:
        """How many elements there are."""
        return self._elements.numel()

    __len__ = size

    def element_size(self) -> int:
        """Bytes of an element."""
        return self._elements.element_size()

    def tolist(self) -> list[Any]:
        """The elements as numbers."""
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
