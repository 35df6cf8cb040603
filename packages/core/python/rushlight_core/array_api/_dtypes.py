"""Functions of the array API standard for dtypes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any

from .. import _C, _info
from .._C import Tensor, dtype, overridable
from ._promotion import Scalar, like


@dataclass(frozen=True)
class FInfo:
    """The limits of a floating-point dtype. A complex dtype has the limits of its real part."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: dtype


@dataclass(frozen=True)
class IInfo:
    """The limits of an integer dtype."""

    bits: int
    max: int
    min: int
    dtype: dtype


def finfo(type: dtype | Tensor, /) -> FInfo:
    """Return the limits of a floating-point dtype, or of a tensor's dtype.

    For a complex dtype, return the limits of the real part's dtype.

    Args:
        type: a dtype or a tensor of any shape.

    Returns:
        An object with `bits`, `eps`, `max`, `min`, `smallest_normal` and `dtype`.

    Raises:
        TypeError: the dtype is an integer dtype or bool.

    Example:
        >>> import rushlight.array_api as xp
        >>> xp.finfo(xp.float32).eps
        1.1920928955078125e-07
        >>> xp.finfo(xp.complex64).dtype
        torch.float32
    """
    limits = _info.finfo(type.dtype if isinstance(type, Tensor) else type)
    named: dtype = getattr(_C, limits.dtype)
    return FInfo(limits.bits, limits.eps, limits.max, limits.min, limits.smallest_normal, named)


def iinfo(type: dtype | Tensor, /) -> IInfo:
    """Return the limits of an integer dtype, or of a tensor's dtype.

    Args:
        type: a dtype or a tensor of any shape.

    Returns:
        An object with `bits`, `max`, `min` and `dtype`.

    Raises:
        TypeError: the dtype is not an integer dtype.

    Example:
        >>> import rushlight.array_api as xp
        >>> xp.iinfo(xp.int8).max
        127
    """
    limits = _info.iinfo(type.dtype if isinstance(type, Tensor) else type)
    return IInfo(limits.bits, limits.max, limits.min, getattr(_C, limits.dtype))


@overridable
def astype(x: Tensor, dtype: dtype, /, *, copy: bool = True, device: Any = None) -> Tensor:
    """Convert a tensor to a dtype.

    Args:
        x: the tensor.
        dtype: the dtype.
        copy: whether to copy even if the tensor has the dtype already.
        device: the device of the result.

    Shape:
        - Input and output: (*).

    Example:
        >>> import rushlight.array_api as xp
        >>> xp.astype(xp.asarray([1.7, -1.7]), xp.int64)
        tensor([ 1, -1])
    """
    return x.to(device=device, dtype=dtype, copy=copy) if device is not None else x.to(dtype, copy=copy)


def can_cast(from_: dtype | Tensor, to: dtype, /) -> bool:
    """Return whether a dtype can be promoted to another one.

    For example, `can_cast` returns False for int64 and int8, whereas PyTorch's `can_cast` returns True.

    Args:
        from_: a dtype or a tensor of any shape.
        to: a dtype.

    Example:
        >>> import rushlight.array_api as xp
        >>> xp.can_cast(xp.int32, xp.int64)
        True
        >>> xp.can_cast(xp.int64, xp.int32)
        False
    """
    dtype = from_.dtype if isinstance(from_, Tensor) else from_
    try:
        return bool(_C.promote_types(dtype, to) == to)
    except RuntimeError:  # no dtype holds both
        return False


def isdtype(dtype: dtype, kind: Any) -> bool:
    """Return whether a dtype belongs to a kind of dtypes, such as "integral".

    Args:
        dtype: the dtype.
        kind: a dtype, "bool", "signed integer", "unsigned integer", "integral", "real floating", "complex
            floating" or "numeric", or a tuple of these. For a tuple, return whether the dtype belongs to at
            least one of the kinds.

    Raises:
        ValueError: the kind is unknown.

    Example:
        >>> import rushlight.array_api as xp
        >>> xp.isdtype(xp.uint8, "integral"), xp.isdtype(xp.float32, ("bool", "integral"))
        (True, False)
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, one) for one in kind)
    if isinstance(kind, _C.dtype):
        return dtype == kind
    name = str(dtype).rsplit(".", 1)[-1]
    kinds = {
        "bool": name == "bool",
        "signed integer": name.startswith("int"),
        "unsigned integer": name.startswith("uint"),
        "real floating": dtype.is_floating_point,
        "complex floating": dtype.is_complex,
    }
    kinds["integral"] = kinds["signed integer"] or kinds["unsigned integer"]
    kinds["numeric"] = name != "bool"
    if kind not in kinds:
        raise ValueError(f"isdtype(kind): got {kind!r}, needs a dtype or one of {', '.join(kinds)}")
    return kinds[kind]


def result_type(*arrays_and_dtypes: Tensor | dtype | Scalar) -> dtype:
    """Return the dtype to which tensors, dtypes and Python scalars promote.

    Args:
        arrays_and_dtypes: tensors, dtypes and Python scalars; at least one must be a tensor or a dtype. A
            scalar changes the dtype only if the scalar is of a higher kind, such as a float combined with an
            integer tensor.

    Raises:
        ValueError: all arguments are Python scalars.
        RuntimeError: no dtype can represent the values of all arguments, for example uint64 and int8.

    Example:
        >>> import rushlight.array_api as xp
        >>> xp.result_type(xp.int32, xp.int64)
        torch.int64
        >>> xp.result_type(xp.float32, 1.5)
        torch.float32
        >>> xp.result_type(xp.int32, xp.float64)
        torch.float64
    """
    scalars = [one for one in arrays_and_dtypes if isinstance(one, bool | int | float | complex)]
    dtypes = [
        one.dtype if isinstance(one, Tensor) else one
        for one in arrays_and_dtypes
        if not isinstance(one, bool | int | float | complex)
    ]
    if not dtypes:
        raise ValueError("result_type(): needs a tensor or a dtype, got none among the arguments")
    found = reduce(_C.promote_types, dtypes)
    for scalar in scalars:
        one = _C.empty(1, dtype=found)
        found = _C.result_type(one, like(scalar, one))
    return found
