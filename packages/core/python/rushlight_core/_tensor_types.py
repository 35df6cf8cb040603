"""Tensor types with the names of older versions of PyTorch, such as `FloatTensor`, one for each dtype and device."""

from __future__ import annotations

import copyreg
from typing import Any

from . import _C
from ._C import Tensor
from ._creation import legacy_tensor
from ._creation import tensor as _tensor

_TYPE_NAMES = {
    _C.float32: "FloatTensor",
    _C.float64: "DoubleTensor",
    _C.float16: "HalfTensor",
    _C.bfloat16: "BFloat16Tensor",
    _C.uint8: "ByteTensor",
    _C.int8: "CharTensor",
    _C.int16: "ShortTensor",
    _C.int32: "IntTensor",
    _C.int64: "LongTensor",
    _C.bool: "BoolTensor",
    _C.uint16: "UInt16Tensor",
    _C.uint32: "UInt32Tensor",
    _C.uint64: "UInt64Tensor",
    _C.complex64: "ComplexFloatTensor",
    _C.complex128: "ComplexDoubleTensor",
    _C.float8_e4m3fn: "Float8_e4m3fnTensor",
    _C.float8_e5m2: "Float8_e5m2Tensor",
    _C.float8_e4m3fnuz: "Float8_e4m3fnuzTensor",
    _C.float8_e5m2fnuz: "Float8_e5m2fnuzTensor",
    _C.float8_e8m0fnu: "Float8_e8m0fnuTensor",
}
_DTYPES_BY_NAME = {name: dtype for dtype, name in _TYPE_NAMES.items()}


class _TensorType(type):
    """Metaclass of types without instances: `isinstance` returns True for tensors of the type's dtype on the CPU."""

    dtype: Any

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Tensor) and instance.dtype is cls.dtype and instance.device.type == "cpu"

    def __call__(cls, *args: Any, device: Any = None) -> Tensor:
        """Return a copy of data (`FloatTensor([1.0])`), or an uninitialised tensor of given sizes (`FloatTensor(2, 3)`)."""
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
                return legacy_tensor(data)
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
    dtype = _DTYPES_BY_NAME[name]
    text = f"""CPU tensors of dtype {dtype}: deprecated form of `tensor(data, dtype={dtype})`.

    `isinstance` returns True for every CPU tensor of the dtype. A call copies data, or creates an uninitialised tensor of
    given sizes.

    Example:
        >>> torch.{name}([1, 0]).dtype
        {dtype}
    """
    return _TensorType(name, (), {"dtype": dtype, "__module__": "torch", "__doc__": text})


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


def _reduce(cls: _TensorType) -> tuple[Any, tuple[str]]:
    # The module of the types is "torch", which is the module of another library or none at all.
    return _named, (cls.__name__,)


def _named(name: str) -> Any:
    return globals()[name]


copyreg.pickle(_TensorType, _reduce)


def dtype_of_type(kind: Any) -> Any:
    """Return the dtype of a type or of its name, such as "torch.FloatTensor"; None for anything else."""
    if isinstance(kind, _TensorType):
        return kind.dtype
    if kind is Tensor:
        return _C.get_default_dtype()
    if isinstance(kind, str) and kind.startswith("torch."):
        return _DTYPES_BY_NAME.get(kind.removeprefix("torch."))
    return None


def type_of(self: Tensor, dtype: Any = None, non_blocking: bool = False) -> Any:
    """Convert the tensor to `dtype`; without `dtype`, return the name of the tensor's type, such as "torch.FloatTensor".

    Raises:
        TypeError: `dtype` is neither a dtype nor a str.
        ValueError: there is no type of this name.
    """
    if dtype is None:
        module = "torch" if self.device.type == "cpu" else f"torch.{self.device.type}"
        return f"{module}.{_TYPE_NAMES[self.dtype]}"
    if not isinstance(dtype, (_C.dtype, str)):
        dtype = dtype_of_type(dtype) or dtype
    if isinstance(dtype, _C.dtype):
        return self.to(dtype, non_blocking)
    if not isinstance(dtype, str):
        raise TypeError(f"type(dtype): must be a dtype or str, not {type(dtype).__name__}")
    module, _, name = dtype.rpartition(".")
    device = "cpu" if module == "torch" else module.removeprefix("torch.")
    if name not in _DTYPES_BY_NAME or device not in ("cpu", "cuda"):
        raise ValueError(
            f"type(dtype): got {dtype!r}, needs a name such as 'torch.FloatTensor'\n"
            "hint: type(torch.float32) has the same effect"
        )
    return self.to(device, _DTYPES_BY_NAME[name], non_blocking)


def new(self: Tensor, *args: Any, device: Any = None) -> Tensor:
    """Return a tensor with this tensor's dtype and device: a copy of data or, for given sizes, an uninitialised tensor.

    `new(data)` is the older form of `new_tensor(data)`, and `new(2, 3)` is the older form of `new_empty((2, 3))`.
    """
    if len(args) == 1 and not isinstance(args[0], (int, _C.Size)):
        return self.new_tensor(args[0].detach() if isinstance(args[0], Tensor) else args[0], device=device)
    sizes = tuple(args[0]) if len(args) == 1 and isinstance(args[0], _C.Size) else args or (0,)
    return _C.empty(sizes, dtype=self.dtype, device=self.device if device is None else device)
