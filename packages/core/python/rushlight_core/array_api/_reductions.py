"""Statistical functions of the array API standard, and `all`, `any`, `diff`.

An `axis` of () reduces no dimension. In PyTorch, an empty `dim` reduces all dimensions.
"""

from __future__ import annotations

from .. import _C
from .._C import Tensor, dtype, overridable
from ._promotion import accumulator

Axis = int | tuple[int, ...] | None


def _over(x: Tensor, axis: Axis, keepdims: bool) -> tuple[Tensor, Axis, bool]:
    """Return the tensor, `axis` and `keepdims` to pass to a reduction of the core package.

    For an empty `axis`, add a dimension of size 1 to `x`, and reduce only this dimension.
    """
    return (x.unsqueeze(0), 0, False) if axis == () else (x, axis, keepdims)


def all(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Return whether all elements along `axis` are true or nonzero.

    Shape:
        - Output: the shape of `x` without the dimensions in `axis`; with `keepdims`, these dimensions have
          size 1. If `axis` is None, all dimensions are reduced.

    Example:
        >>> import rushlight.array_api as xp
        >>> xp.all(xp.asarray([[1, 0], [1, 2]]), axis=1)
        tensor([False,  True])
    """
    return _C.all(*_over(x, axis, keepdims)).to(_C.bool)  # in PyTorch, the result for uint8 tensors is uint8


def any(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Return whether at least one element along `axis` is true or nonzero.

    Shape:
        - Output: the shape of `x` without the dimensions in `axis`; with `keepdims`, these dimensions have
          size 1. If `axis` is None, all dimensions are reduced.

    Example:
        >>> import rushlight.array_api as xp
        >>> xp.any(xp.asarray([[0, 0], [1, 2]]), axis=1)
        tensor([False,  True])
    """
    return _C.any(*_over(x, axis, keepdims)).to(_C.bool)


def max(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Return the maximum along `axis`. The result is NaN if any of the elements is NaN.

    Shape:
        - Output: the shape of `x` without the dimensions in `axis`; with `keepdims`, these dimensions have
          size 1. If `axis` is None, all dimensions are reduced.

    Example:
        >>> import rushlight.array_api as xp
        >>> xp.max(xp.asarray([[1, 3], [4, 2]]), axis=0)
        tensor([4, 3])
    """
    x, axis, keepdims = _over(x, axis, keepdims)
    return _C.amax(x, () if axis is None else axis, keepdims)


def min(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Return the minimum along `axis`. The result is NaN if any of the elements is NaN.

    Shape:
        - Output: the shape of `x` without the dimensions in `axis`; with `keepdims`, these dimensions have
          size 1. If `axis` is None, all dimensions are reduced.

    Example:
        >>> import rushlight.array_api as xp
        >>> xp.min(xp.asarray([[1, 3], [4, 2]]), axis=0)
        tensor([1, 2])
    """
    x, axis, keepdims = _over(x, axis, keepdims)
    return _C.amin(x, () if axis is None else axis, keepdims)


def mean(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Return the means along `axis`.

    Shape:
        - Output: the shape of `x` without the dimensions in `axis`; with `keepdims`, these dimensions have
          size 1. If `axis` is None, all dimensions are reduced.

    Example:
        >>> import rushlight.array_api as xp
        >>> xp.mean(xp.asarray([[1.0, 3.0], [4.0, 2.0]]), axis=1)
        tensor([2., 3.])
    """
    return _C.mean(*_over(x, axis, keepdims))


def sum(x: Tensor, /, *, axis: Axis = None, dtype: dtype | None = None, keepdims: bool = False) -> Tensor:
    """Return the sums along `axis`.

    By default, signed integers are summed in int64, and unsigned integers in uint64.

    Shape:
        - Output: the shape of `x` without the dimensions in `axis`; with `keepdims`, these dimensions have
          size 1. If `axis` is None, all dimensions are reduced.

    Example:
        >>> import rushlight.array_api as xp
        >>> xp.sum(xp.asarray([[1, 3], [4, 2]]), axis=1)
        tensor([4, 6])
        >>> xp.sum(xp.asarray([200, 100], dtype=xp.uint8))
        tensor(300, dtype=torch.uint64)
    """
    return _C.sum(*_over(x, axis, keepdims), dtype=accumulator(x, dtype))


def prod(x: Tensor, /, *, axis: Axis = None, dtype: dtype | None = None, keepdims: bool = False) -> Tensor:
    """Return the products along `axis`.

    By default, signed integers are multiplied in int64, and unsigned integers in uint64.

    Shape:
        - Output: the shape of `x` without the dimensions in `axis`; with `keepdims`, these dimensions have
          size 1. If `axis` is None, all dimensions are reduced.

    Example:
        >>> import rushlight.array_api as xp
        >>> xp.prod(xp.asarray([[1, 3], [4, 2]]), axis=1)
        tensor([3, 8])
    """
    dtype = accumulator(x, dtype)
    x, axis, keepdims = _over(x, axis, keepdims)
    if axis is None:
        axis = tuple(range(x.ndim))
    if isinstance(axis, int):
        return _C.prod(x, axis, keepdims, dtype=dtype)
    if not axis:  # a tensor without dimensions
        return _C.prod(x, dtype=dtype)
    for one in axis:
        x = _C.prod(x, one, True, dtype=dtype)
    return x if keepdims else _C.squeeze(x, axis)


def std(x: Tensor, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """Return the standard deviations along `axis`.

    The sum of the squared differences from the mean is divided by the number of elements minus `correction`, which is 0 by
    default; PyTorch's default is 1.

    Shape:
        - Output: the shape of `x` without the dimensions in `axis`; with `keepdims`, these dimensions have
          size 1. If `axis` is None, all dimensions are reduced.

    Example:
        >>> import rushlight.array_api as xp
        >>> xp.std(xp.asarray([1.0, 3.0]))
        tensor(1.)
        >>> xp.std(xp.asarray([1.0, 3.0]), correction=1)
        tensor(1.4142)
    """
    x, axis, keepdims = _over(x, axis, keepdims)
    return _C.std(x, axis, correction=correction, keepdim=keepdims)


def var(x: Tensor, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """Return the variances along `axis`.

    The sum of the squared differences from the mean is divided by the number of elements minus `correction`, which is 0 by
    default; PyTorch's default is 1.

    Shape:
        - Output: the shape of `x` without the dimensions in `axis`; with `keepdims`, these dimensions have
          size 1. If `axis` is None, all dimensions are reduced.

    Example:
        >>> import rushlight.array_api as xp
        >>> xp.var(xp.asarray([1.0, 3.0]))
        tensor(1.)
    """
    x, axis, keepdims = _over(x, axis, keepdims)
    return _C.var(x, axis, correction=correction, keepdim=keepdims)


def _cumulative(
    name: str, x: Tensor, axis: int | None, dtype: _C.dtype | None, include_initial: bool, first: int
) -> Tensor:
    if axis is None:
        if x.dim() > 1:
            raise ValueError(f"{name}(axis): must be given for a tensor of {x.dim()} dimensions")
        axis = 0
    function = _C.cumsum if first == 0 else _C.cumprod
    made = function(x.reshape(1) if x.dim() == 0 else x, axis, dtype=dtype)
    if not include_initial:
        return made
    shape = list(made.shape)
    shape[axis] = 1
    return _C.cat([_C.full(shape, first, dtype=made.dtype, device=made.device), made], axis)


@overridable
def cumulative_sum(
    x: Tensor, /, *, axis: int | None = None, dtype: dtype | None = None, include_initial: bool = False
) -> Tensor:
    """Return the cumulative sums along `axis`; with `include_initial` they begin with 0.

    Shape:
        - Input: (*, n, *), where n is the size along `axis`.
        - Output: the shape of the input, or (*, n + 1, *) if `include_initial` is true.

    Raises:
        ValueError: `axis` is not given, and `x` has more than one dimension.

    Example:
        >>> import rushlight.array_api as xp
        >>> xp.cumulative_sum(xp.asarray([1, 2, 3]), include_initial=True)
        tensor([0, 1, 3, 6])
    """
    return _cumulative("cumulative_sum", x, axis, accumulator(x, dtype), include_initial, 0)


@overridable
def cumulative_prod(
    x: Tensor, /, *, axis: int | None = None, dtype: dtype | None = None, include_initial: bool = False
) -> Tensor:
    """Return the cumulative products along `axis`; with `include_initial` they begin with 1.

    Shape:
        - Input: (*, n, *), where n is the size along `axis`.
        - Output: the shape of the input, or (*, n + 1, *) if `include_initial` is true.

    Raises:
        ValueError: `axis` is not given, and `x` has more than one dimension.

    Example:
        >>> import rushlight.array_api as xp
        >>> xp.cumulative_prod(xp.asarray([1, 2, 3]))
        tensor([1, 2, 6])
    """
    return _cumulative("cumulative_prod", x, axis, accumulator(x, dtype), include_initial, 1)


def diff(
    x: Tensor, /, *, axis: int = -1, n: int = 1, prepend: Tensor | None = None, append: Tensor | None = None
) -> Tensor:
    """Return the `n`-th discrete difference along `axis`.

    `prepend` and `append`, if given, are first concatenated to the beginning and the end of `x` along `axis`.

    Shape:
        - Output: the shape of `x` concatenated with `prepend` and `append`, but with `n` fewer elements along
          `axis`.

    Example:
        >>> import rushlight.array_api as xp
        >>> xp.diff(xp.asarray([1, 4, 9]))
        tensor([3, 5])
        >>> xp.diff(xp.asarray([1, 4, 9]), n=2)
        tensor([2])
    """
    return _C.diff(x, n, axis, prepend, append)
