"""Products of vectors and matrices of the array API standard, of tensors whose dtypes may differ."""

from __future__ import annotations

from collections.abc import Sequence

from .. import _C
from .. import linalg as _linalg
from .._C import Tensor
from .._contraction import tensordot as _tensordot
from ..linalg import matrix_transpose as matrix_transpose
from ._promotion import same


def matmul(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Return the matrix product over the last two dimensions.

    A vector is a row on the left and a column on the right.
    """
    return _C.matmul(*same(x1, x2))


def tensordot(x1: Tensor, x2: Tensor, /, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2) -> Tensor:
    """Sums of products over the last `axes` dimensions of `x1` and the first ones of `x2`, or over pairs of dimensions."""
    return _tensordot(*same(x1, x2), dims=axes)


def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """Return the sums of products along `axis`; the first tensor is conjugated.

    Raises:
        ValueError: the sizes along `axis`, which are not broadcast, differ.
    """
    if x1.shape[axis] != x2.shape[axis]:
        raise ValueError(f"vecdot(axis): the sizes along it differ: {x1.shape[axis]} and {x2.shape[axis]}")
    return _linalg.vecdot(*same(x1, x2), dim=axis)
