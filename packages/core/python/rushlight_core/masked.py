"""Reductions and normalizations of the elements that a mask keeps: `rushlight.masked`, as torch.masked defines them.

Every function takes `mask`, a bool tensor that broadcasts to the input. True keeps an element, and False
leaves the element out. Without a mask all elements are kept. The values of elements that are left out do not
affect the result, and their gradients are 0.
"""

from __future__ import annotations

from . import _C
from ._C import Tensor, overridable
from ._info import iinfo, inf, nan

TYPE_CHECKING = False  # typing takes longer to import than this package
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    Dims = int | Sequence[int] | None

__all__ = [
    "amax",
    "amin",
    "argmax",
    "argmin",
    "cumprod",
    "cumsum",
    "log_softmax",
    "logaddexp",
    "logsumexp",
    "mean",
    "median",
    "norm",
    "normalize",
    "prod",
    "softmax",
    "softmin",
    "std",
    "sum",
    "var",
]

_SMALL_INTEGERS = {_C.bool, _C.uint8, _C.int8, _C.int16, _C.int32}


@overridable
def sum(
    input: Tensor,
    dim: Dims = None,
    *,
    keepdim: bool | None = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Return the sum of the kept elements, or 0 if there are none.

    Args:
        input: a tensor of any shape and dtype.
        dim: the dimensions to reduce; None or () reduces all dimensions.
        keepdim: whether the result keeps the reduced dimensions, with size 1.
        dtype: the dtype of the result, by default the dtype of `input`, or int64 for bools and smaller
            integer dtypes.
        mask: a bool tensor that is True for the elements to keep and broadcasts to the shape of `input`; None keeps all.

    Shape:
        - Input: (*); `mask` broadcasts to it.
        - Output: the shape of the input, where the reduced dimensions are removed, or have size 1 if `keepdim` is true.

    Raises:
        IndexError: a dimension is out of range, or `mask` has more dimensions than `input`.
        RuntimeError: a dimension occurs twice, or `mask` does not broadcast to the shape of `input`.

    Example:
        >>> x = torch.tensor([[1.0, 5.0], [3.0, 4.0]])
        >>> mask = torch.tensor([[True, False], [True, True]])
        >>> torch.masked.sum(x, 1, mask=mask)
        tensor([1., 7.])
    """
    return _sum("sum", input, dim, keepdim, _dtype_of_sum(input) if dtype is None else dtype, mask)


@overridable
def prod(
    input: Tensor,
    dim: Dims = None,
    *,
    keepdim: bool | None = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Return the product of the kept elements, or 1 if there are none. Arguments: see :func:`sum`.

    Shape:
        - Input: (*); `mask` broadcasts to it.
        - Output: the shape of the input, where the reduced dimensions are removed, or have size 1 if `keepdim` is true.

    Raises:
        IndexError: a dimension is out of range, or `mask` has more dimensions than `input`.
        RuntimeError: a dimension occurs twice, or `mask` does not broadcast to the shape of `input`.

    Example:
        >>> x = torch.tensor([[1.0, 5.0], [3.0, 4.0]])
        >>> mask = torch.tensor([[True, False], [True, True]])
        >>> torch.masked.prod(x, 1, mask=mask)
        tensor([ 1., 12.])
    """
    dims = _dims("prod", dim, input)
    result = _fill("prod", input, mask, 1).to(_dtype_of_sum(input) if dtype is None else dtype)
    for one in reversed(dims):
        result = _C.prod(result, one, bool(keepdim))
    return result


@overridable
def cumsum(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """Return the cumulative sums of the kept elements along `dim`.

    Args:
        input: a tensor of any shape.
        dim: the dimension to sum along.
        dtype: the dtype of the result, by default the dtype of `input`, or int64 for bools.
        mask: see :func:`sum`.

    Shape:
        - Input: (*); `mask` broadcasts to it.
        - Output: (*).

    Raises:
        IndexError: a dimension is out of range, or `mask` has more dimensions than `input`.
        RuntimeError: `mask` does not broadcast to the shape of `input`.

    Example:
        >>> x = torch.tensor([[1.0, 5.0], [3.0, 4.0]])
        >>> mask = torch.tensor([[True, False], [True, True]])
        >>> torch.masked.cumsum(x, 1, mask=mask)
        tensor([[1., 1.],
                [3., 7.]])
    """
    return _cumulative("cumsum", _C.cumsum, input, dim, dtype, mask, 0)


@overridable
def cumprod(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """Return the cumulative products of the kept elements along `dim`. Arguments: see :func:`cumsum`.

    Shape:
        - Input: (*); `mask` broadcasts to it.
        - Output: (*).

    Raises:
        IndexError: a dimension is out of range, or `mask` has more dimensions than `input`.
        RuntimeError: `mask` does not broadcast to the shape of `input`.

    Example:
        >>> x = torch.tensor([[1.0, 5.0], [3.0, 4.0]])
        >>> mask = torch.tensor([[True, False], [True, True]])
        >>> torch.masked.cumprod(x, 1, mask=mask)
        tensor([[ 1.,  1.],
                [ 3., 12.]])
    """
    return _cumulative("cumprod", _C.cumprod, input, dim, dtype, mask, 1)


@overridable
def amax(
    input: Tensor,
    dim: Dims = None,
    *,
    keepdim: bool | None = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Return the largest of the kept elements; if there are none, return the smallest value of the dtype of `input`.

    Arguments: see :func:`sum`; `dtype` is by default the dtype of `input`, which must be real.

    Shape:
        - Input: (*); `mask` broadcasts to it.
        - Output: the shape of the input, where the reduced dimensions are removed, or have size 1 if `keepdim` is true.

    Raises:
        IndexError: a dimension is out of range, or `mask` has more dimensions than `input`.
        RuntimeError: a dimension occurs twice, or `mask` does not broadcast to the shape of `input`.
        NotImplementedError: the dtype is complex.

    Example:
        >>> x = torch.tensor([[1.0, 5.0], [3.0, 4.0]])
        >>> mask = torch.tensor([[True, False], [True, True]])
        >>> torch.masked.amax(x, 1, mask=mask)
        tensor([1., 4.])
    """
    dims = _dims("amax", dim, input)
    kept = _fill("amax", input, mask, _lowest("amax", input))
    return _C.amax(kept, dims, bool(keepdim)).to(input.dtype if dtype is None else dtype)


@overridable
def amin(
    input: Tensor,
    dim: Dims = None,
    *,
    keepdim: bool | None = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Return the smallest of the kept elements; if there are none, return the largest value of the dtype of `input`.

    Arguments: see :func:`amax`.

    Shape:
        - Input: (*); `mask` broadcasts to it.
        - Output: the shape of the input, where the reduced dimensions are removed, or have size 1 if `keepdim` is true.

    Raises:
        IndexError: a dimension is out of range, or `mask` has more dimensions than `input`.
        RuntimeError: a dimension occurs twice, or `mask` does not broadcast to the shape of `input`.
        NotImplementedError: the dtype is complex.

    Example:
        >>> x = torch.tensor([[1.0, 5.0], [3.0, 4.0]])
        >>> mask = torch.tensor([[True, False], [True, True]])
        >>> torch.masked.amin(x, 0, mask=mask)
        tensor([1., 4.])
    """
    dims = _dims("amin", dim, input)
    kept = _fill("amin", input, mask, _highest("amin", input))
    return _C.amin(kept, dims, bool(keepdim)).to(input.dtype if dtype is None else dtype)


@overridable
def argmax(
    input: Tensor,
    dim: int | None = None,
    *,
    keepdim: bool | None = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Return the index of the largest of the kept elements, or 0 if there are none.

    Args:
        input: a tensor of a real dtype.
        dim: the dimension to reduce; None returns the index into the flattened input.
        keepdim: whether the result keeps the reduced dimension, with size 1.
        dtype: the dtype of the result, by default the dtype of `input`, as in PyTorch. To index with the result, pass int64,
            because a small dtype cannot represent every index.
        mask: see :func:`sum`.

    Shape:
        - Input: (*); `mask` broadcasts to it.
        - Output: the shape of the input, where the reduced dimensions are removed, or have size 1 if `keepdim` is true.

    Raises:
        IndexError: a dimension is out of range, or `mask` has more dimensions than `input`.
        RuntimeError: `mask` does not broadcast to the shape of `input`.

    Example:
        >>> x = torch.tensor([[1.0, 5.0], [3.0, 4.0]])
        >>> mask = torch.tensor([[True, False], [True, True]])
        >>> torch.masked.argmax(x, 1, dtype=torch.int64, mask=mask)
        tensor([0, 1])
    """
    return _index("argmax", input, dim, keepdim, dtype, mask)


@overridable
def argmin(
    input: Tensor,
    dim: int | None = None,
    *,
    keepdim: bool | None = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Return the index of the smallest of the kept elements, or 0 if there are none. Arguments: see :func:`argmax`.

    Shape:
        - Input: (*); `mask` broadcasts to it.
        - Output: the shape of the input, where the reduced dimensions are removed, or have size 1 if `keepdim` is true.

    Raises:
        IndexError: a dimension is out of range, or `mask` has more dimensions than `input`.
        RuntimeError: `mask` does not broadcast to the shape of `input`.

    Example:
        >>> x = torch.tensor([[1.0, 5.0], [3.0, 4.0]])
        >>> mask = torch.tensor([[True, False], [True, True]])
        >>> torch.masked.argmin(x, 1, dtype=torch.int64, mask=mask)
        tensor([0, 0])
    """
    return _index("argmin", input, dim, keepdim, dtype, mask)


@overridable
def mean(
    input: Tensor,
    dim: Dims = None,
    *,
    keepdim: bool | None = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Return the mean of the kept elements, or NaN if there are none.

    Arguments: see :func:`sum`; `dtype` is by default the dtype of `input`.

    Shape:
        - Input: (*); `mask` broadcasts to it.
        - Output: the shape of the input, where the reduced dimensions are removed, or have size 1 if `keepdim` is true.

    Raises:
        ValueError: the dtype of the result is neither floating-point nor complex.

    Example:
        >>> x = torch.tensor([[1.0, 5.0], [3.0, 4.0]])
        >>> mask = torch.tensor([[True, False], [True, True]])
        >>> torch.masked.mean(x, 1, mask=mask)
        tensor([1.0000, 3.5000])
    """
    wanted = input.dtype if dtype is None else dtype
    if not (wanted.is_floating_point or wanted.is_complex):
        raise ValueError(f"mean(dtype): needs a floating-point or complex dtype, got {wanted}")
    total = _sum("mean", input, dim, keepdim, wanted, mask)
    return total / _count("mean", input, dim, keepdim, mask)


@overridable
def median(
    input: Tensor, dim: int = -1, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """Return the median of the kept elements along a dimension.

    For an even number of elements, the median is the lower of the two elements in the middle. Elements that are NaN are left
    out, too. The median is NaN if no element is kept.

    Args:
        input: a tensor of a real dtype.
        dim: the dimension to reduce.
        keepdim: whether the result keeps the reduced dimension, with size 1.
        dtype: the dtype of the result, by default the dtype of `input`.
        mask: see :func:`sum`.

    Shape:
        - Input: (*); `mask` broadcasts to it.
        - Output: the shape of the input, where the reduced dimensions are removed, or have size 1 if `keepdim` is true.

    Raises:
        ValueError: `input` has an integer dtype, and the mask leaves out all elements of a slice.
        IndexError: a dimension is out of range, or `mask` has more dimensions than `input`.
        RuntimeError: `mask` does not broadcast to the shape of `input`.

    Example:
        >>> x = torch.tensor([[1.0, 5.0], [3.0, 4.0]])
        >>> mask = torch.tensor([[True, False], [True, True]])
        >>> torch.masked.median(x, 0, mask=mask)
        tensor([1., 4.])
    """
    (dim,) = _dims("median", dim, input)[:1] or (0,)
    wanted = input.dtype if dtype is None else dtype
    if input.is_floating_point():
        return _C.nanmedian(_fill("median", input, mask, nan), dim, keepdim).values.to(wanted)
    # Integers have no NaN: the elements that are left out are sorted to the end, after the kept elements.
    count = _count("median", input, dim, True, mask)
    if (count == 0).any():
        raise ValueError(
            f"median(mask): all elements of a slice are masked out, and {input.dtype} has no NaN for its median"
        )
    ordered = _C.sort(_fill("median", input, mask, _highest("median", input)), dim).values
    middle = (count - 1) // 2
    result = ordered if ordered.dim() == 0 else _C.gather(ordered, dim, middle)
    return (result if keepdim or ordered.dim() == 0 else result.squeeze(dim)).to(wanted)


@overridable
def logsumexp(
    input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """Return the logarithm of the sum of the exponentials of the kept elements, or -inf if there are none.

    Arguments: see :func:`sum`; `dtype` is by default the dtype of `input`.

    Shape:
        - Input: (*); `mask` broadcasts to it.
        - Output: the shape of the input, where the reduced dimensions are removed, or have size 1 if `keepdim` is true.

    Raises:
        IndexError: a dimension is out of range, or `mask` has more dimensions than `input`.
        RuntimeError: a dimension occurs twice, or `mask` does not broadcast to the shape of `input`.

    Example:
        >>> x = torch.tensor([[1.0, 5.0], [3.0, 4.0]])
        >>> mask = torch.tensor([[True, False], [True, True]])
        >>> torch.masked.logsumexp(x, 1, mask=mask)
        tensor([1.0000, 4.3133])
    """
    dims = _dims("logsumexp", dim, input)
    low = -inf if input.is_complex() else _lowest("logsumexp", input)
    result = _C.logsumexp(_fill("logsumexp", input, mask, low), dims, bool(keepdim))
    return result.to(input.dtype if dtype is None else dtype)


@overridable
def logaddexp(
    input: Tensor,
    other: Tensor,
    *,
    dtype: Any = None,
    input_mask: Tensor | None = None,
    other_mask: Tensor | None = None,
) -> Tensor:
    """Return log(exp(input) + exp(other)), element by element, where an element that is left out counts as -inf.

    Args:
        input: a tensor of a floating-point dtype.
        other: the second tensor, which broadcasts with `input`.
        dtype: the dtype of the result, by default the dtype of `input`.
        input_mask: which elements of `input` to keep; see :func:`sum`.
        other_mask: which elements of `other` to keep.

    Shape:
        - Inputs: shapes that broadcast; each mask broadcasts to the shape of its tensor.
        - Output: the broadcast shape.

    Example:
        >>> zeros = torch.zeros(2)
        >>> torch.masked.logaddexp(zeros, zeros, other_mask=torch.tensor([True, False]))
        tensor([0.6931, 0.0000])
    """
    kept = _fill("logaddexp", input, input_mask, _lowest("logaddexp", input))
    kept_other = _fill("logaddexp", other, other_mask, _lowest("logaddexp", other))
    return _C.logaddexp(kept, kept_other).to(input.dtype if dtype is None else dtype)


@overridable
def norm(
    input: Tensor,
    ord: float | None = 2.0,
    dim: Dims = None,
    *,
    keepdim: bool | None = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Return the norm of order `ord` of the kept elements; if there are none, return 0, or inf for the order -inf.

    Args:
        input: a tensor of a floating-point or complex dtype.
        ord: the order, see `linalg.vector_norm`.
        dim: the dimensions to reduce; None or () reduces all dimensions.
        keepdim: whether the result keeps the reduced dimensions, with size 1.
        dtype: the dtype to compute in, by default the dtype of `input`. The norm of complex numbers is real.
        mask: see :func:`sum`.

    Shape:
        - Input: (*); `mask` broadcasts to it.
        - Output: the shape of the input, where the reduced dimensions are removed, or have size 1 if `keepdim` is true.

    Raises:
        IndexError: a dimension is out of range, or `mask` has more dimensions than `input`.
        RuntimeError: a dimension occurs twice, or `mask` does not broadcast to the shape of `input`.

    Example:
        >>> x = torch.tensor([[1.0, 5.0], [3.0, 4.0]])
        >>> mask = torch.tensor([[True, False], [True, True]])
        >>> torch.masked.norm(x, 2.0, 1, mask=mask)
        tensor([1., 5.])
    """
    return _norm("norm", input, ord, dim, keepdim, dtype, mask)


@overridable
def var(
    input: Tensor,
    dim: Dims = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool | None = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Return the variance of the kept elements.

    The variance is the sum of the squared distances of the kept elements from their mean, divided by the number of kept
    elements minus `correction`. If at most `correction` elements are kept, the variance is NaN if these
    elements are equal, and infinite otherwise.

    Args:
        input: a tensor of any dtype; integers are converted to float32.
        dim: the dimensions to reduce; None or () reduces all dimensions.
        unbiased: True sets `correction` to 1, and False sets it to 0.
        correction: the number that is subtracted from the number of kept elements, by default 1. Only one of `correction`
            and `unbiased` may be given.
        keepdim: whether the result keeps the reduced dimensions, with size 1.
        dtype: the dtype of the result, by default the dtype of `input`, or float32 for integers.
        mask: see :func:`sum`.

    Shape:
        - Input: (*); `mask` broadcasts to it.
        - Output: the shape of the input, where the reduced dimensions are removed, or have size 1 if `keepdim` is true.

    Raises:
        AssertionError: both `unbiased` and `correction` are given.

    Example:
        >>> x = torch.tensor([[1.0, 5.0], [3.0, 4.0]])
        >>> mask = torch.tensor([[True, False], [True, True]])
        >>> torch.masked.var(x, 0, mask=mask, correction=0)
        tensor([1., 0.])
    """
    return _variance("var", input, dim, unbiased, correction, keepdim, dtype, mask)


@overridable
def std(
    input: Tensor,
    dim: Dims = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool | None = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Return the standard deviation of the kept elements, the square root of :func:`var`, which has the same arguments.

    Shape:
        - Input: (*); `mask` broadcasts to it.
        - Output: the shape of the input, where the reduced dimensions are removed, or have size 1 if `keepdim` is true.

    Raises:
        AssertionError: both `unbiased` and `correction` are given.

    Example:
        >>> x = torch.tensor([[1.0, 5.0], [3.0, 4.0]])
        >>> mask = torch.tensor([[True, False], [True, True]])
        >>> torch.masked.std(x, 0, mask=mask, correction=0)
        tensor([1., 0.])
    """
    return _variance("std", input, dim, unbiased, correction, keepdim, dtype, mask).sqrt()


@overridable
def softmax(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """Return exp(x) divided by the sum of the exponentials of the kept elements along `dim`.

    The result is 0 for elements that are left out, or NaN if no element is kept along `dim`.

    Args:
        input: a tensor of a real dtype.
        dim: the dimension along which the results sum to 1.
        dtype: the dtype of the computation and of the result, by default the dtype of `input`.
        mask: see :func:`sum`.

    Shape:
        - Input: (*); `mask` broadcasts to it.
        - Output: (*).

    Raises:
        NotImplementedError: the dtype is complex.
        IndexError: a dimension is out of range, or `mask` has more dimensions than `input`.
        RuntimeError: `mask` does not broadcast to the shape of `input`.

    Example:
        >>> x = torch.tensor([[1.0, 5.0], [3.0, 4.0]])
        >>> mask = torch.tensor([[True, False], [True, True]])
        >>> torch.masked.softmax(x, 1, mask=mask)
        tensor([[1.0000, 0.0000],
                [0.2689, 0.7311]])
    """
    return _C.softmax(
        *_for_softmax("softmax", input, dim, mask), dtype=input.dtype if dtype is None else dtype
    )


@overridable
def log_softmax(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """Return the logarithm of :func:`softmax`; it is -inf for elements that are left out. Arguments: see :func:`softmax`.

    Shape:
        - Input: (*); `mask` broadcasts to it.
        - Output: (*).

    Raises:
        NotImplementedError: the dtype is complex.
        IndexError: a dimension is out of range, or `mask` has more dimensions than `input`.
        RuntimeError: `mask` does not broadcast to the shape of `input`.

    Example:
        >>> x = torch.tensor([[1.0, 5.0], [3.0, 4.0]])
        >>> mask = torch.tensor([[True, False], [True, True]])
        >>> torch.masked.log_softmax(x, 1, mask=mask)
        tensor([[ 0.0000,    -inf],
                [-1.3133, -0.3133]])
    """
    kept, dim = _for_softmax("log_softmax", input, dim, mask)
    return _C.log_softmax(kept, dim, dtype=input.dtype if dtype is None else dtype)


@overridable
def softmin(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """Return :func:`softmax` of -input. Arguments: see :func:`softmax`.

    Shape:
        - Input: (*); `mask` broadcasts to it.
        - Output: (*).

    Raises:
        NotImplementedError: the dtype is complex.
        IndexError: a dimension is out of range, or `mask` has more dimensions than `input`.
        RuntimeError: `mask` does not broadcast to the shape of `input`.

    Example:
        >>> x = torch.tensor([[1.0, 5.0], [3.0, 4.0]])
        >>> mask = torch.tensor([[True, False], [True, True]])
        >>> torch.masked.softmin(x, 1, mask=mask)
        tensor([[1.0000, 0.0000],
                [0.7311, 0.2689]])
    """
    kept, dim = _for_softmax("softmin", input, dim, mask, lowest=False)
    wanted = input.dtype if dtype is None else dtype
    return _C.softmax(-kept.to(wanted), dim)


@overridable
def normalize(
    input: Tensor,
    ord: float,
    dim: int,
    *,
    eps: float = 1e-12,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Divide the kept elements by their norm along `dim`, or by `eps` if `eps` is larger than the norm.

    The result is 0 for elements that are left out.

    Args:
        input: a tensor of a floating-point or complex dtype.
        ord: the order of the norm, see `linalg.vector_norm`.
        dim: the dimension of the vectors.
        eps: the smallest divisor.
        dtype: the dtype in which the norm is computed, by default the dtype of `input`.
        mask: see :func:`sum`.

    Shape:
        - Input: (*); `mask` broadcasts to it.
        - Output: (*).

    Raises:
        IndexError: a dimension is out of range, or `mask` has more dimensions than `input`.
        RuntimeError: `mask` does not broadcast to the shape of `input`.

    Example:
        >>> x = torch.tensor([[1.0, 5.0], [3.0, 4.0]])
        >>> mask = torch.tensor([[True, False], [True, True]])
        >>> torch.masked.normalize(x, 2.0, 1, mask=mask)
        tensor([[1.0000, 0.0000],
                [0.6000, 0.8000]])
    """
    length = _norm("normalize", input, ord, dim, True, dtype, mask)
    return _fill("normalize", input, mask, 0) / length.clamp(min=eps)


# --- shared functions ---


def _fill(name: str, input: Tensor, mask: Tensor | None, value: float) -> Tensor:
    """Return `input` with `value` in place of the elements that the mask leaves out."""
    return input if mask is None else _C.where(_mask(name, input, mask), input, _value_like(input, value))


def _value_like(input: Tensor, value: float) -> Tensor:
    return _C.full((), value, dtype=input.dtype, device=input.device)


def _mask(name: str, input: Tensor, mask: Tensor) -> Tensor:
    """Return the mask as a bool tensor of the input's shape."""
    if not isinstance(mask, Tensor):
        raise TypeError(f"{name}(mask): needs a tensor, got {type(mask).__name__}")
    if mask.dim() > input.dim():
        raise IndexError(f"{name}(mask): got {mask.dim()} dimensions, but the input has only {input.dim()}")
    try:
        return mask.to(_C.bool).expand(input.shape)
    except RuntimeError:
        raise RuntimeError(
            f"{name}(mask): must broadcast to the input's shape {tuple(input.shape)}, got {tuple(mask.shape)}"
        ) from None


def _dims(name: str, dim: Dims, input: Tensor) -> tuple[int, ...]:
    """Return the dimensions to reduce as sorted non-negative numbers. Dimension 0 of a 0-d tensor is accepted, too."""
    rank = input.dim()
    given = () if dim is None else (dim,) if isinstance(dim, int) else tuple(dim)
    if not given:
        return tuple(range(rank))
    rank = max(rank, 1)
    for one in given:
        if not -rank <= one < rank:
            raise IndexError(f"{name}(dim): must be between {-rank} and {rank - 1}, got {one}")
    found = sorted({one % rank for one in given})
    if len(found) != len(given):
        raise RuntimeError(f"{name}(dim): every dimension may occur only once, got {given}")
    return tuple(found)


def _sum(
    name: str, input: Tensor, dim: Dims, keepdim: bool | None, dtype: Any, mask: Tensor | None
) -> Tensor:
    return _C.sum(_fill(name, input, mask, 0), _dims(name, dim, input), bool(keepdim), dtype=dtype)


def _norm(
    name: str,
    input: Tensor,
    ord: float | None,
    dim: Dims,
    keepdim: bool | None,
    dtype: Any,
    mask: Tensor | None,
) -> Tensor:
    dims = _dims(name, dim, input)
    kept = _fill(name, input, mask, inf if ord == -inf else 0)
    return _C.linalg_vector_norm(kept, 2.0 if ord is None else ord, dims, bool(keepdim), dtype=dtype)


def _dtype_of_sum(input: Tensor) -> Any:
    return _C.int64 if input.dtype in _SMALL_INTEGERS else input.dtype


def _lowest(name: str, input: Tensor) -> float:
    """Return a lower bound of the values of the input's dtype: -inf, or the smallest integer of an integer dtype."""
    return _limit(name, input, -inf, "min")


def _highest(name: str, input: Tensor) -> float:
    """Return an upper bound of the values of the input's dtype: inf, or the largest integer of an integer dtype."""
    return _limit(name, input, inf, "max")


def _limit(name: str, input: Tensor, infinity: float, end: str) -> float:
    if input.is_complex():
        raise NotImplementedError(f"{name}(input): complex numbers have no order, got {input.dtype}")
    if input.is_floating_point():
        return infinity
    return infinity > 0 if input.dtype == _C.bool else getattr(iinfo(input.dtype), end)


def _count(name: str, input: Tensor, dim: Dims, keepdim: bool | None, mask: Tensor | None) -> Tensor:
    """Return how many elements are kept."""
    if mask is None:
        mask = _C.ones((), dtype=_C.bool, device=input.device)
    return _C.sum(_mask(name, input, mask), _dims(name, dim, input), bool(keepdim))


def _cumulative(
    name: str, function: Any, input: Tensor, dim: int, dtype: Any, mask: Tensor | None, start: int
) -> Tensor:
    (dim,) = _dims(name, dim, input)[:1] or (0,)
    if dtype is None:
        dtype = _C.int64 if input.dtype == _C.bool else input.dtype
    return function(_fill(name, input, mask, start), dim, dtype=dtype)


def _index(
    name: str, input: Tensor, dim: int | None, keepdim: bool | None, dtype: Any, mask: Tensor | None
) -> Tensor:
    choose, limit = (_C.argmax, _lowest) if name == "argmax" else (_C.argmin, _highest)
    wanted = input.dtype if dtype is None else dtype
    if mask is None:
        return choose(input, dim, bool(keepdim)).to(wanted)
    # An element that is left out must not be selected if a kept element equals the fill value.
    kept = _mask(name, input, mask)
    filled = _C.where(kept, input.detach(), _value_like(input, limit(name, input)))
    best = (filled.amax if name == "argmax" else filled.amin)(() if dim is None else dim, True)
    chosen = kept & ((filled == best) | (filled != filled))
    return _C.argmax(chosen.to(_C.uint8), dim, bool(keepdim)).to(wanted)


def _for_softmax(
    name: str, input: Tensor, dim: int, mask: Tensor | None, lowest: bool = True
) -> tuple[Tensor, int]:
    (dim,) = _dims(name, dim, input)[:1] or (0,)
    return _fill(name, input, mask, (_lowest if lowest else _highest)(name, input)), dim


def _variance(
    name: str,
    input: Tensor,
    dim: Dims,
    unbiased: bool | None,
    correction: float | None,
    keepdim: bool | None,
    dtype: Any,
    mask: Tensor | None,
) -> Tensor:
    if unbiased is not None and correction is not None:
        raise AssertionError(f"{name}(unbiased, correction): only one of them may be given, got both")
    if correction is None:
        correction = 1 if unbiased is None or unbiased else 0
    wanted = dtype
    if wanted is None:
        wanted = input.dtype if input.is_floating_point() or input.is_complex() else _C.float32
    compute = wanted if wanted.is_floating_point or wanted.is_complex else _C.float32
    kept = _fill(name, input, mask, 0).to(compute)
    count = _count(name, input, dim, True, mask)
    distance = kept - sum(kept, dim, keepdim=True) / count
    distance = _fill(name, distance, mask, 0)  # elements that are left out do not count
    total = sum(distance * distance.conj(), dim, keepdim=keepdim)
    precise = _C.float64 if compute in (_C.float64, _C.complex128) else _C.float32
    freedom = (count.reshape(total.shape).to(precise) - correction).clamp(min=0)
    return (total / freedom).to(wanted)
