"""Functions of the array API standard that search, sort and find distinct elements."""

from __future__ import annotations

from typing import NamedTuple

from .. import _C
from .._C import Tensor, overridable
from .._unique import unique
from ._promotion import Scalar, like, pair, same
from ._reductions import Axis, sum


class UniqueAll(NamedTuple):
    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    values: Tensor
    inverse_indices: Tensor


def _different(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the distinct elements in ascending order, the position of each element among them, and their counts."""
    if not x.dtype.is_complex:
        return unique(x, return_inverse=True, return_counts=True)
    # Complex numbers become rows of two numbers, so that they are ordered by the real part first.
    rows = _C.view_as_real(x.reshape(-1))
    values, inverse, counts = unique(rows, dim=0, return_inverse=True, return_counts=True)
    return _C.view_as_complex(values.contiguous()), inverse.reshape(x.shape), counts


def argmax(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Return the index of the first maximum along `axis`, or in the flattened tensor if `axis` is None.

    Shape:
        - Output: the shape of `x` without the reduced dimensions. With `keepdims`, the reduced dimensions
          remain, with size 1. If `axis` is None, all dimensions are reduced.

    Example:
        >>> import rushlight.array_api as xp
        >>> xp.argmax(xp.asarray([[1, 3], [4, 4]]), axis=1)
        tensor([1, 0])
    """
    return _C.argmax(x, axis, keepdims)


def argmin(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Return the index of the first minimum along `axis`, or in the flattened tensor if `axis` is None.

    Shape:
        - Output: the shape of `x` without the reduced dimensions. With `keepdims`, the reduced dimensions
          remain, with size 1. If `axis` is None, all dimensions are reduced.

    Example:
        >>> import rushlight.array_api as xp
        >>> xp.argmin(xp.asarray([[1, 3], [4, 4]]), axis=1)
        tensor([0, 0])
    """
    return _C.argmin(x, axis, keepdims)


def argsort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """Return the indices that sort the elements along `axis`.

    Shape:
        - Input and output: (*).

    Example:
        >>> import rushlight.array_api as xp
        >>> xp.argsort(xp.asarray([30, 10, 20]))
        tensor([1, 2, 0])
    """
    return _C.argsort(x, dim=axis, descending=descending, stable=stable)


def count_nonzero(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Return the number of elements along `axis` that are not zero.

    Shape:
        - Output: the shape of `x` without the reduced dimensions. With `keepdims`, the reduced dimensions
          remain, with size 1. If `axis` is None, all dimensions are reduced.

    Example:
        >>> import rushlight.array_api as xp
        >>> xp.count_nonzero(xp.asarray([[0, 1], [2, 3]]), axis=1)
        tensor([1, 2])
    """
    return sum(x if x.dtype is _C.bool else _C.ne(x, 0), axis=axis, dtype=_C.int64, keepdims=keepdims)


def isin(x1: Tensor | Scalar, x2: Tensor | Scalar, /, *, invert: bool = False) -> Tensor:
    """Return, for each element of `x1`, whether `x2` contains it. If `invert` is true, the result is negated.

    Shape:
        - Inputs: `x1` and `x2` of any shapes.
        - Output: the shape of `x1`.

    Example:
        >>> import rushlight.array_api as xp
        >>> xp.isin(xp.asarray([1, 2, 3]), xp.asarray([2, 3]))
        tensor([False,  True,  True])
    """
    return _C.isin(*pair("isin", x1, x2), invert=invert)


def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """Return the indices of the elements that are not zero, as one tensor for each dimension.

    In contrast, `torch.nonzero` returns the indices as one matrix.

    Shape:
        - Outputs: (k) each, where k is the number of elements that are not zero.

    Raises:
        ValueError: `x` has no dimensions.

    Example:
        >>> import rushlight.array_api as xp
        >>> xp.nonzero(xp.asarray([[0, 1], [2, 0]]))
        (tensor([0, 1]), tensor([1, 0]))
    """
    if x.ndim == 0:
        raise ValueError("nonzero(x): must have at least one dimension, got a 0-d tensor")
    return tuple(_C.nonzero(x).unbind(1))


def searchsorted(
    x1: Tensor, x2: Tensor | Scalar, /, *, side: str = "left", sorter: Tensor | None = None
) -> Tensor:
    """Return the positions at which the elements of `x2` can be inserted into the sorted vector `x1`.

    Args:
        x1: a vector in ascending order, or any vector if `sorter` is given.
        x2: the elements to insert: a tensor or a scalar.
        side: "left" for the positions before equal elements, "right" for the positions after equal elements.
        sorter: the indices that sort `x1` in ascending order.

    Shape:
        - Input: `x1` and `sorter` (n), `x2` (*).
        - Output: (*).

    Example:
        >>> import rushlight.array_api as xp
        >>> xp.searchsorted(xp.asarray([1, 3, 5]), xp.asarray([3, 4]))
        tensor([1, 2])
        >>> xp.searchsorted(xp.asarray([1, 3, 5]), 3, side="right")
        tensor(2)
    """
    values = x2 if isinstance(x2, Tensor) else like(x2, x1)
    ordered, values = same(x1, values)
    return _C.searchsorted(ordered, values, side=side, sorter=None if sorter is None else sorter.to(_C.int64))


def sort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """Return the elements sorted along `axis`. `torch.sort` also returns the indices.

    Shape:
        - Input and output: (*).

    Example:
        >>> import rushlight.array_api as xp
        >>> xp.sort(xp.asarray([3, 1, 2]), descending=True)
        tensor([3, 2, 1])
    """
    values: Tensor = _C.sort(x, dim=axis, descending=descending, stable=stable).values
    return values


@overridable
def unique_all(x: Tensor, /) -> UniqueAll:
    """Return the sorted distinct elements, their first indices, the inverse indices, and the counts.

    For each element of `x`, `inverse_indices` contains the index of the equal element in `values`.

    Args:
        x: the tensor.

    Shape:
        - Input and inverse: (*). Other outputs: (number of distinct elements).

    Example:
        >>> import rushlight.array_api as xp
        >>> xp.unique_all(xp.asarray([3, 1, 3])).inverse_indices
        tensor([1, 0, 1])
    """
    values, inverse, counts = _different(x)
    positions = _C.argsort(inverse.flatten(), stable=True)
    return UniqueAll(values, positions[counts.cumsum(0) - counts], inverse, counts)


@overridable
def unique_counts(x: Tensor, /) -> UniqueCounts:
    """Return the distinct elements in ascending order, and the number of occurrences of each, as a named tuple.

    Args:
        x: the tensor.

    Shape:
        - Input: (*). Outputs: (number of distinct elements).

    Example:
        >>> import rushlight.array_api as xp
        >>> xp.unique_counts(xp.asarray([3, 1, 3])).counts
        tensor([1, 2])
    """
    values, _, counts = _different(x)
    return UniqueCounts(values, counts)


@overridable
def unique_inverse(x: Tensor, /) -> UniqueInverse:
    """Return the sorted distinct elements, and the indices that reconstruct `x` from them, as a named tuple.

    Args:
        x: the tensor.

    Shape:
        - Input and inverse: (*). Distinct elements: (number of distinct elements).

    Example:
        >>> import rushlight.array_api as xp
        >>> xp.unique_inverse(xp.asarray([3, 1, 3])).inverse_indices
        tensor([1, 0, 1])
    """
    return UniqueInverse(*_different(x)[:2])


@overridable
def unique_values(x: Tensor, /) -> Tensor:
    """Return the distinct elements in ascending order.

    Args:
        x: the tensor.

    Shape:
        - Input: (*). Output: (number of distinct elements).

    Example:
        >>> import rushlight.array_api as xp
        >>> xp.unique_values(xp.asarray([3, 1, 3]))
        tensor([1, 3])
    """
    return _different(x)[0] if x.dtype.is_complex else unique(x)


def where(condition: Tensor, x1: Tensor | Scalar, x2: Tensor | Scalar, /) -> Tensor:
    """Return the elements of `x1` where the condition is true, and the elements of `x2` elsewhere.

    Shape:
        - Inputs: shapes that broadcast.
        - Output: the broadcast shape.

    Example:
        >>> import rushlight.array_api as xp
        >>> x = xp.asarray([-1.0, 2.0])
        >>> xp.where(x > 0, x, 0.0)
        tensor([0., 2.])
    """
    return _C.where(condition, *pair("where", x1, x2))
