"""Distinct elements: functions that return one tensor or several, depending on their arguments."""

from __future__ import annotations

from . import _C
from ._C import Tensor, overridable

TYPE_CHECKING = False  # typing takes longer to import than this package
if TYPE_CHECKING:
    from typing import Any


@overridable
def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """Return the distinct elements of a tensor, or its distinct slices along `dim`, in ascending order.

    Each NaN counts as a distinct element, and all NaNs come last.

    Args:
        sorted: ignored; the result is always sorted.
        return_inverse: whether to also return, for each element or slice, its position among the distinct elements or
            slices. If `dim` is None, the tensor of positions has the shape of `input`.
        return_counts: whether to also return the number of occurrences of each distinct element or slice.

    Raises:
        IndexError: `dim` is out of range.
        RuntimeError: the slices have no elements.

    Example:
        >>> torch.unique(torch.tensor([3, 1, 3]), return_counts=True)
        (tensor([1, 3]), tensor([1, 2]))
    """
    return _distinct("unique", input, dim, False, return_inverse, return_counts)


@overridable
def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """Return the elements, or the slices along `dim`, with each run of equal neighbours reduced to one.

    Args:
        return_inverse: whether to also return, for each element or slice, its position in the result. If `dim` is None, the
            tensor of positions has the shape of `input`.
        return_counts: whether to also return the length of each run.

    Example:
        >>> torch.unique_consecutive(torch.tensor([1, 1, 2, 1]))
        tensor([1, 2, 1])
    """
    return _distinct("unique_consecutive", input, dim, True, return_inverse, return_counts)


def _distinct(
    name: str, input: Tensor, dim: int | None, consecutive: bool, inverse: bool, counts: bool
) -> Any:
    if not isinstance(input, Tensor):
        raise TypeError(f"{name}(input): must be a Tensor, got {type(input).__name__}")
    results = _C._call_boxed("_unique", input, dim, consecutive, bool(inverse), bool(counts), name)
    wanted = (True, inverse, counts)
    chosen = tuple(result for result, want in zip(results, wanted, strict=True) if want)
    return chosen if len(chosen) > 1 else chosen[0]
