"""Functions that search, sort and tell elements apart, of the array API standard."""

from __future__ import annotations

from .. import _C
from .._array_api import unique_all as unique_all
from .._array_api import unique_counts as unique_counts
from .._array_api import unique_inverse as unique_inverse
from .._array_api import unique_values as unique_values
from .._C import Tensor
from ._promotion import Scalar, like, pair, same
from ._reductions import Axis, sum


def argmax(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Return the first places of the greatest elements along `axis`, or among the flattened ones."""
    return _C.argmax(x, axis, keepdims)


def argmin(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Return the first places of the least elements along `axis`, or among the flattened ones."""
    return _C.argmin(x, axis, keepdims)


def argsort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """Return the places from which the elements along `axis` come in order."""
    return _C.argsort(x, dim=axis, descending=descending, stable=stable)


def count_nonzero(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Return how many elements along `axis` are not zero."""
    return sum(x if x.dtype is _C.bool else _C.ne(x, 0), axis=axis, dtype=_C.int64, keepdims=keepdims)


def isin(x1: Tensor | Scalar, x2: Tensor | Scalar, /, *, invert: bool = False) -> Tensor:
    """Return whether each element of `x1` is in `x2`; with `invert`, whether it is not."""
    return _C.isin(*pair("isin", x1, x2), invert=invert)


def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """Return the places of the elements that are not zero, a tensor for each dimension (PyTorch's is one tensor).

    Raises:
        ValueError: `x` has no dimensions.
    """
    if x.ndim == 0:
        raise ValueError("nonzero(x): must have a dimension")
    return tuple(_C.nonzero(x).unbind(1))


def searchsorted(
    x1: Tensor, x2: Tensor | Scalar, /, *, side: str = "left", sorter: Tensor | None = None
) -> Tensor:
    """The places in the sorted vector `x1`, or in the one that `sorter` orders, where the elements of `x2` belong."""
    values = x2 if isinstance(x2, Tensor) else like(x2, x1)
    ordered, values = same(x1, values)
    return _C.searchsorted(ordered, values, side=side, sorter=None if sorter is None else sorter.to(_C.int64))


def sort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """Return the elements along `axis` in order (PyTorch's `sort` gives their places too)."""
    values: Tensor = _C.sort(x, dim=axis, descending=descending, stable=stable).values
    return values


def where(condition: Tensor, x1: Tensor | Scalar, x2: Tensor | Scalar, /) -> Tensor:
    """Return the elements of `x1` where the condition is true, and those of `x2` elsewhere."""
    return _C.where(condition, *pair("where", x1, x2))
