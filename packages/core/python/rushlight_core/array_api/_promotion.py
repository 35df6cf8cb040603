"""Promotion by the rules of the array API standard, which depend only on dtypes and types of Python scalars.

The operators of rushlight_core promote dtypes as in PyTorch, where a 0-d tensor is treated like a Python
scalar if another operand has at least one dimension.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from .. import _C
from .._C import Tensor

Scalar: TypeAlias = bool | int | float | complex


def like(scalar: Scalar, x: Tensor) -> Tensor:
    """Convert a scalar to a 0-d tensor of `x.dtype`, or of the default dtype for the type of the scalar.

    The default is used if `x.dtype` is of a lower kind than the scalar, such as int64 for a float.
    """
    dtype = x.dtype
    if isinstance(scalar, bool):
        fits = True
    elif isinstance(scalar, int):
        fits = dtype is not _C.bool
    elif isinstance(scalar, float):
        fits = dtype.is_floating_point or dtype.is_complex
    else:
        fits = dtype.is_complex
    return filled((), scalar, dtype if fits else None, x.device)


def filled(shape: Sequence[int], value: Scalar, dtype: _C.dtype | None, device: Any) -> Tensor:
    """Return `full(shape, value)`, even for integers that exceed int64, which operators do not accept."""
    if not isinstance(value, int) or value < 2**63:
        return _C.full(shape, value, dtype=dtype, device=device)
    made = _C.tensor(value, dtype=_C.uint64, device=device).expand(shape)
    return made.clone() if dtype in (None, _C.uint64) else made.to(dtype)


def pair(name: str, x1: Tensor | Scalar, x2: Tensor | Scalar) -> tuple[Tensor, Tensor]:
    """Return two operands as tensors whose dtypes an operator promotes as the array API standard requires."""
    if isinstance(x1, Tensor):
        if not isinstance(x2, Tensor):
            return x1, like(x2, x1)
        if x1.dtype == x2.dtype or (x1.ndim and x2.ndim):
            return x1, x2
        return same(x1, x2)
    if isinstance(x2, Tensor):
        return like(x1, x2), x2
    raise TypeError(
        f"{name}(x1, x2): one of the arguments must be a tensor, got {type(x1).__name__} and {type(x2).__name__}"
    )


def same(x1: Tensor, x2: Tensor) -> tuple[Tensor, Tensor]:
    """Return two tensors converted to the dtype to which both promote."""
    if x1.dtype == x2.dtype:
        return x1, x2
    dtype = _C.promote_types(x1.dtype, x2.dtype)
    return x1.to(dtype), x2.to(dtype)


def accumulator(x: Tensor, dtype: _C.dtype | None) -> _C.dtype:
    """Return the dtype of sums: uint64 for unsigned integers, int64 for other integers, else `x.dtype`."""
    if dtype is not None:
        return dtype
    if x.dtype.is_floating_point or x.dtype.is_complex:
        return x.dtype
    return _C.uint64 if str(x.dtype).startswith("torch.uint") else _C.int64
