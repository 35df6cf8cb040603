"""The vector and matrix products of the array API standard. The dtypes of the operands may differ."""

from __future__ import annotations

from collections.abc import Sequence

from .. import _C
from .. import linalg as _linalg
from .._C import Tensor, overridable
from .._contraction import tensordot as _tensordot
from ..linalg import matrix_transpose as matrix_transpose
from ._promotion import same


def matmul(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Return the matrix product over the last two dimensions.

    A vector is treated as a row on the left and as a column on the right.

    Shape:
        - Inputs: (*, n, m) and (*, m, p), whose batch dimensions broadcast; (m) for a vector.
        - Output: (*, n, p), without n or p if an input is a vector.

    Raises:
        RuntimeError: the inner sizes differ, the batch dimensions do not broadcast, or an input has no dimensions.

    Example:
        >>> import rushlight.array_api as xp
        >>> xp.matmul(xp.asarray([[1, 2], [3, 4]]), xp.asarray([1, 1]))
        tensor([3, 7])
    """
    return _C.matmul(*same(x1, x2))


def tensordot(x1: Tensor, x2: Tensor, /, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2) -> Tensor:
    """Return the tensor contraction of `x1` and `x2` over the dimensions `axes`.

    Args:
        x1: the first tensor.
        x2: the second tensor.
        axes: a number n, to sum over the last n dimensions of `x1` and the first n dimensions of `x2`; or two sequences
            with the dimensions of `x1` and of `x2`.

    Shape:
        - Output: the remaining sizes of `x1`, followed by the remaining sizes of `x2`.

    Example:
        >>> import rushlight.array_api as xp
        >>> xp.tensordot(xp.ones((2, 3, 4)), xp.ones((3, 4, 5))).shape
        torch.Size([2, 5])
        >>> xp.tensordot(xp.asarray([1, 2]), xp.asarray([3, 4]), axes=1)
        tensor(11)
    """
    return _tensordot(*same(x1, x2), dims=axes)


@overridable
def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """Return the dot products of vectors along `axis`; the elements of `x1` are conjugated.

    Shape:
        - Inputs: shapes that broadcast in all dimensions except `axis`.
        - Output: the broadcast shape without `axis`.

    Raises:
        ValueError: the sizes along `axis` differ (this dimension does not broadcast).

    Example:
        >>> import rushlight.array_api as xp
        >>> xp.vecdot(xp.asarray([[1, 2], [3, 4]]), xp.asarray([1, 10]))
        tensor([21, 43])
    """
    if x1.shape[axis] != x2.shape[axis]:
        raise ValueError(
            f"vecdot(axis): x1 and x2 must have the same size along axis, got {x1.shape[axis]} and {x2.shape[axis]}"
        )
    return _linalg.vecdot(*same(x1, x2), dim=axis)
