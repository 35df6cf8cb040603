"""Statistical functions of the array API standard, and `all`, `any`, `diff`.

An `axis` of () reduces no dimension, where PyTorch takes an empty `dim` for all of them.
"""

from __future__ import annotations

from .. import _C
from .._array_api import _cumulative
from .._C import Tensor, dtype
from ._promotion import accumulator

Axis = int | tuple[int, ...] | None


def _over(x: Tensor, axis: Axis, keepdims: bool) -> tuple[Tensor, Axis, bool]:
    """What to reduce, where: for no dimension a new one of size 1."""
    return (x.unsqueeze(0), 0, False) if axis == () else (x, axis, keepdims)


def all(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Return whether all elements along `axis` are true, or not zero."""
    return _C.all(*_over(x, axis, keepdims)).to(_C.bool)  # PyTorch's is uint8 for uint8


def any(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Return whether an element along `axis` is true, or not zero."""
    return _C.any(*_over(x, axis, keepdims)).to(_C.bool)


def max(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Return the greatest elements along `axis`; NaN where one is among them."""
    x, axis, keepdims = _over(x, axis, keepdims)
    return _C.amax(x, () if axis is None else axis, keepdims)


def min(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Return the least elements along `axis`; NaN where one is among them."""
    x, axis, keepdims = _over(x, axis, keepdims)
    return _C.amin(x, () if axis is None else axis, keepdims)


def mean(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Return the means along `axis`."""
    return _C.mean(*_over(x, axis, keepdims))


def sum(x: Tensor, /, *, axis: Axis = None, dtype: dtype | None = None, keepdims: bool = False) -> Tensor:
    """Return the sums along `axis`; by default those of integers have 64 bits, and no sign where `x` has none."""
    return _C.sum(*_over(x, axis, keepdims), dtype=accumulator(x, dtype))


def prod(x: Tensor, /, *, axis: Axis = None, dtype: dtype | None = None, keepdims: bool = False) -> Tensor:
    """Return the products along `axis`; by default those of integers have 64 bits, and no sign where `x` has none."""
    dtype = accumulator(x, dtype)
    x, axis, keepdims = _over(x, axis, keepdims)
    if axis is None:
        axis = tuple(range(x.ndim))
    if isinstance(axis, int):
        return _C.prod(x, axis, keepdims, dtype=dtype)
    if not axis:  # a tensor of no dimensions
        return _C.prod(x, dtype=dtype)
    for one in axis:
        x = _C.prod(x, one, True, dtype=dtype)
    return x if keepdims else _C.squeeze(x, axis)


def std(x: Tensor, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """Return the standard deviations along `axis`.

    By default those of whole populations; PyTorch divides by one less by default.
    """
    x, axis, keepdims = _over(x, axis, keepdims)
    return _C.std(x, axis, correction=correction, keepdim=keepdims)


def var(x: Tensor, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """Return the variances along `axis`: by default of whole populations (PyTorch's default is a correction of 1)."""
    x, axis, keepdims = _over(x, axis, keepdims)
    return _C.var(x, axis, correction=correction, keepdim=keepdims)


def cumulative_sum(
    x: Tensor, /, *, axis: int | None = None, dtype: dtype | None = None, include_initial: bool = False
) -> Tensor:
    """Running sums along `axis`; with `include_initial` they begin with 0."""
    return _cumulative("cumulative_sum", x, axis, accumulator(x, dtype), include_initial, 0)


def cumulative_prod(
    x: Tensor, /, *, axis: int | None = None, dtype: dtype | None = None, include_initial: bool = False
) -> Tensor:
    """Running products along `axis`; with `include_initial` they begin with 1."""
    return _cumulative("cumulative_prod", x, axis, accumulator(x, dtype), include_initial, 1)


def diff(
    x: Tensor, /, *, axis: int = -1, n: int = 1, prepend: Tensor | None = None, append: Tensor | None = None
) -> Tensor:
    """Return the differences of neighbours along `axis`, taken `n` times.

    `prepend` and `append` are joined to `x` first.
    """
    return _C.diff(x, n, axis, prepend, append)
