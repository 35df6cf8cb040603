"""Information about dtypes and objects."""

from __future__ import annotations

from . import _C
from ._C import Tensor, dtype

TYPE_CHECKING = False  # typing takes longer to import than this package
if TYPE_CHECKING:
    from typing import Any

e: float = 2.718281828459045
pi: float = 3.141592653589793
inf: float = float("inf")
nan: float = float("nan")
newaxis: None = None
# Other names of complex dtypes, like `float` and `double` for real dtypes.
cfloat: dtype = _C.complex64
cdouble: dtype = _C.complex128

# The number of bits of the significand without the hidden bit, and the largest exponent.
_FLOATS = {"float16": (10, 15), "bfloat16": (7, 127), "float32": (23, 127), "float64": (52, 1023)}
_FLOATS |= {"complex64": _FLOATS["float32"], "complex128": _FLOATS["float64"]}
_DIGITS = {"float16": 3, "bfloat16": 2, "float32": 6, "float64": 15, "complex64": 6, "complex128": 15}

# The smallest number, the largest number, eps, and the smallest normal number.
_FLOATS_OF_8_BITS = {
    "float8_e4m3fn": (-448.0, 448.0, 0.125, 2.0**-6),
    "float8_e4m3fnuz": (-240.0, 240.0, 0.125, 2.0**-7),
    "float8_e5m2": (-57344.0, 57344.0, 0.25, 2.0**-14),
    "float8_e5m2fnuz": (-57344.0, 57344.0, 0.125, 2.0**-15),
    "float8_e8m0fnu": (2.0**-127, 2.0**127, 1.0, 2.0**-127),
}


def _name(type: dtype) -> str:
    return repr(type).rpartition(".")[2]


class finfo:  # noqa: N801
    """Limits of a floating-point dtype: `bits`, `eps`, `max`, `min`, `tiny` (= `smallest_normal`) and `resolution`.

    Args:
        type: the dtype, by default `get_default_dtype()`. For a complex dtype, the limits are the limits of its real part.

    Raises:
        TypeError: the dtype is not floating point.

    Example:
        >>> torch.finfo(torch.float16).max
        65504.0
    """

    dtype: str
    bits: int
    eps: float
    max: float
    min: float
    tiny: float
    smallest_normal: float
    resolution: float

    def __init__(self, type: _C.dtype | None = None) -> None:
        type = _C.get_default_dtype() if type is None else _C._dtype_of(type) or type
        if (limits := _FLOATS_OF_8_BITS.get(_name(type))) is not None:
            self.dtype, self.bits, self.resolution = _name(type), 8, 1.0
            self.min, self.max, self.eps, self.tiny = limits
            self.smallest_normal = self.tiny
            return
        if not isinstance(type, dtype) or _name(type) not in _FLOATS:
            raise TypeError(
                f"finfo(type): needs a floating-point dtype, got {type!r}\nhint: iinfo is for integers"
            )
        name = _name(type)
        fraction, exponent = _FLOATS[name]
        self.dtype = {"complex64": "float32", "complex128": "float64"}.get(name, name)
        self.bits = type.itemsize * 8 // (2 if type.is_complex else 1)
        self.eps = 2.0**-fraction
        self.max = (2.0 - self.eps) * 2.0**exponent
        self.min = -self.max
        self.tiny = self.smallest_normal = 2.0 ** (1 - exponent)
        self.resolution = float(f"1e-{_DIGITS[name]}")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, finfo) and (self.dtype, self.bits) == (other.dtype, other.bits)

    def __hash__(self) -> int:
        return hash(("finfo", self.dtype))

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, eps={self.eps:g}, "
            f"smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, dtype={self.dtype})"
        )


class iinfo:  # noqa: N801
    """Limits of an integer dtype: `bits`, `min` and `max`.

    Args:
        type: the dtype.

    Raises:
        TypeError: the dtype is not an integer dtype.

    Example:
        >>> torch.iinfo(torch.int8).min, torch.iinfo(torch.int8).max
        (-128, 127)
    """

    dtype: str
    bits: int
    max: int
    min: int

    def __init__(self, type: _C.dtype) -> None:
        type = _C._dtype_of(type) or type
        if not isinstance(type, dtype) or type.is_floating_point or type.is_complex or type is _C.bool:
            raise TypeError(f"iinfo(type): needs an integer dtype, got {type!r}\nhint: finfo is for floats")
        self.dtype = _name(type)
        self.bits = type.itemsize * 8
        self.min = -(1 << self.bits - 1) if type.is_signed else 0
        self.max = (1 << self.bits - type.is_signed) - 1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, iinfo) and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash(("iinfo", self.dtype))

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"


class layout:  # noqa: N801
    """The way in which the elements of a tensor are stored, such as `strided` and `sparse_coo`.

    Example:
        >>> torch.ones(2).layout
        torch.strided
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return f"torch.{self._name}"

    def __reduce__(self) -> str:
        return self._name


class _OtherLayout(layout):
    """A layout other than strided. Most functions that create tensors raise an error for such a layout."""


strided: layout = layout("strided")
sparse_coo: layout = _OtherLayout("sparse_coo")
sparse_csr: layout = _OtherLayout("sparse_csr")
sparse_csc: layout = _OtherLayout("sparse_csc")
sparse_bsr: layout = _OtherLayout("sparse_bsr")
sparse_bsc: layout = _OtherLayout("sparse_bsc")
jagged: layout = _OtherLayout("jagged")


class memory_format(str):  # noqa: N801
    """The order of dimensions in memory: `contiguous_format`, `channels_last` or `channels_last_3d`.

    `preserve_format` selects the order of the input.

    Example:
        >>> torch.ones(1, 3, 2, 2).contiguous(memory_format=torch.channels_last).stride()
        (12, 1, 6, 3)
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return f"torch.{self.__reduce__()}"

    def __reduce__(self) -> str:
        return f"{self}_format" if self in ("contiguous", "preserve") else str(self)


contiguous_format: memory_format = memory_format("contiguous")
preserve_format: memory_format = memory_format("preserve")
channels_last: memory_format = memory_format("channels_last")
channels_last_3d: memory_format = memory_format("channels_last_3d")


def is_tensor(obj: Any) -> bool:
    """Return whether `obj` is a Tensor.

    Example:
        >>> torch.is_tensor(torch.ones(1)), torch.is_tensor([1.0])
        (True, False)
    """
    return isinstance(obj, Tensor)


def typename(obj: Any) -> str:
    """Return the qualified name of a class or a function, or of the type of any other object.

    For a tensor, the name depends on the dtype, as in "torch.FloatTensor".

    Example:
        >>> torch.typename(torch.ones(1)), torch.typename(1)
        ('torch.FloatTensor', 'int')
    """
    if isinstance(obj, Tensor):
        return obj.type()
    module = getattr(obj, "__module__", "") or ""
    if module in ("builtins", "__builtin__"):
        module = ""
    name = getattr(obj, "__qualname__", getattr(obj, "__name__", "")) or ""
    if not name:
        kind = type(obj)
        module, name = kind.__module__, kind.__qualname__
        if module == "builtins":
            module = ""
    return f"{module}.{name}" if module else name
