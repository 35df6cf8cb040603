"""Checks and conversions of arguments that several functions share."""

from __future__ import annotations

import warnings

from .._typing import Any

_REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}


def reduction_code(
    function: str, reduction: str, size_average: bool | None = None, reduce: bool | None = None
) -> int:
    """Return the number by which core identifies a reduction: 0 for "none", 1 for "mean" and 2 for "sum".

    If the deprecated `size_average` or `reduce` is given, it takes precedence over `reduction`, and a warning is issued.
    """
    if size_average is not None or reduce is not None:
        average = size_average is None or size_average
        reduction = "none" if reduce is False else "mean" if average else "sum"
        warnings.warn(
            f"{function}: size_average and reduce are deprecated, write reduction={reduction!r}",
            DeprecationWarning,
            stacklevel=3,
        )
    try:
        return _REDUCTIONS[reduction]
    except (KeyError, TypeError):
        raise ValueError(f"{function}(reduction): got {reduction!r}, needs 'none', 'mean' or 'sum'") from None


def check_probability(function: str, p: float) -> None:
    """Raise ValueError unless 0 <= p <= 1."""
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"{function}(p): got {p}, needs a probability between 0 and 1")


def tuple_of(count: int, value: Any) -> tuple[Any, ...]:
    """Return `value` as a tuple; a value that is not a tuple or list is repeated `count` times."""
    if isinstance(value, (tuple, list)):
        return tuple(value)
    return (value,) * count


def sizes_of(count: int, value: Any, argument: str) -> tuple[Any, ...]:
    """Return `value` as a tuple of one element for each of `count` dimensions; a single value is repeated.

    Raise RuntimeError if `value` has neither 1 nor `count` elements. The message begins with `argument`, such
    as "unfold(stride)".
    """
    given = tuple_of(1, value)
    if len(given) == 1:
        return given * count
    if len(given) != count:
        raise RuntimeError(f"{argument}: got {len(given)} values, needs 1 or {count}")
    return given
