"""Functions of dtypes of the array API standard."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

from .. import _C, _info
from .._C import Tensor, dtype
from ._promotion import Scalar, like


@dataclass(frozen=True)
class FInfo:
    """Limits of a floating-point dtype; of a complex one, those of its parts, whose dtype it says."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: dtype


@dataclass(frozen=True)
class IInfo:
    """Limits of an integer dtype."""

    bits: int
    max: int
    min: int
    dtype: dtype


def finfo(type: dtype | Tensor, /) -> FInfo:
    """Limits of a floating-point dtype, or of a tensor's."""
    limits = _info.finfo(type.dtype if isinstance(type, Tensor) else type)
    named: dtype = getattr(_C, limits.dtype)
    return FInfo(limits.bits, limits.eps, limits.max, limits.min, limits.smallest_normal, named)


def iinfo(type: dtype | Tensor, /) -> IInfo:
    """Limits of an integer dtype, or of a tensor's."""
    limits = _info.iinfo(type.dtype if isinstance(type, Tensor) else type)
    return IInfo(limits.bits, limits.max, limits.min, getattr(_C, limits.dtype))


def can_cast(from_: dtype | Tensor, to: dtype, /) -> bool:
    """Return whether promotion leads from a dtype to another; unlike PyTorch's `can_cast`, not from int64 to int8."""
    dtype = from_.dtype if isinstance(from_, Tensor) else from_
    try:
        return bool(_C.promote_types(dtype, to) == to)
    except RuntimeError:  # no dtype holds both
        return False


def result_type(*arrays_and_dtypes: Tensor | dtype | Scalar) -> dtype:
    """Return the dtype that tensors, dtypes and Python scalars, of which at least one is no scalar, promote to."""
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
