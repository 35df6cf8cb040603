"""Pooling.

Windows are an int, or one number a dimension; the stride is the window's size unless it is given. Inputs are
(N, C, ...) or (C, ...), floating point.
"""

from __future__ import annotations

from collections.abc import Callable

from rushlight_core import Tensor
from rushlight_core.overrides import overridable

from .._core import operator
from .._typing import Any

_max_pools = {d: (operator(f"max_pool{d}d"), operator(f"max_pool{d}d_with_indices")) for d in (1, 2, 3)}
_avg_pools = {d: operator(f"avg_pool{d}d") for d in (1, 2, 3)}
_adaptive_avg_pools = {d: operator(f"adaptive_avg_pool{d}d") for d in (1, 2, 3)}
_adaptive_max_pools = {d: operator(f"adaptive_max_pool{d}d") for d in (1, 2, 3)}


def _max_pool(
    dims: int,
    input: Tensor,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
    return_indices: bool,
) -> Any:
    pool: Callable[..., Any] = _max_pools[dims][return_indices]
    stride = kernel_size if stride is None else stride
    result = pool(input, kernel_size, stride, padding, dilation, ceil_mode)
    return tuple(result) if return_indices else result


@overridable
def max_pool1d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Return the largest value of each window of `input` (N, C, L) or (C, L); arguments as in :func:`max_pool2d`."""
    return _max_pool(1, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


@overridable
def max_pool2d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Return the largest value of each window of `input` (N, C, H, W) or (C, H, W).

    Args:
        input: floating point.
        kernel_size, stride, padding, dilation: int, or a pair for height and width; stride defaults to the
            kernel's size.
        ceil_mode: keep windows that hang over the end.
        return_indices: also return, as int64, where in its H·W plane each maximum is.
    """
    return _max_pool(2, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


@overridable
def max_pool3d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Return the largest value of each window of `input` (N, C, D, H, W) or (C, D, H, W); arguments as in
    :func:`max_pool2d`."""
    return _max_pool(3, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


@overridable
def avg_pool1d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """Return the mean of each window of `input` (N, C, L) or (C, L); arguments as in :func:`avg_pool2d`."""
    stride = kernel_size if stride is None else stride
    return _avg_pools[1](input, kernel_size, stride, padding, ceil_mode, count_include_pad)


@overridable
def avg_pool2d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """Return the mean of each window of `input` (N, C, H, W) or (C, H, W).

    Args:
        input: floating point.
        kernel_size, stride, padding: int, or a pair for height and width; stride defaults to the kernel's
            size.
        ceil_mode: keep windows that hang over the end.
        count_include_pad: whether padding counts in the divisor.
        divisor_override: divide by this number instead.
    """
    stride = kernel_size if stride is None else stride
    return _avg_pools[2](input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


@overridable
def avg_pool3d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """Return the mean of each window of `input` (N, C, D, H, W) or (C, D, H, W); arguments as in
    :func:`avg_pool2d`."""
    stride = kernel_size if stride is None else stride
    return _avg_pools[3](input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def _output_sizes(dims: int, input: Tensor, output_size: Any) -> Any:
    """`output_size` with the input's sizes where it says None.

    Raises:
        ValueError: `input` has no dimension beside those that several sizes are given for.
    """
    if isinstance(output_size, int):
        return output_size
    own = input.shape[-dims:]
    if output_size is None:
        return own
    if dims > 1 and input.dim() <= len(output_size):
        raise ValueError(
            f"adaptive pooling (output_size): {len(output_size)} sizes need an input of at least"
            f" {len(output_size) + 1} dimensions, got shape {tuple(input.shape)}"
        )
    return tuple(own[i] if size is None else size for i, size in enumerate(output_size))


@overridable
def adaptive_avg_pool1d(input: Tensor, output_size: Any) -> Tensor:
    """Return the means of `output_size` windows that cover `input` (N, C, L) or (C, L) evenly."""
    return _adaptive_avg_pools[1](input, _output_sizes(1, input, output_size))


@overridable
def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
    """Return the means of `output_size` windows that cover `input` (N, C, H, W) or (C, H, W) evenly.

    `output_size` is an int or a pair for height and width, where None keeps the input's.
    """
    return _adaptive_avg_pools[2](input, _output_sizes(2, input, output_size))


@overridable
def adaptive_avg_pool3d(input: Tensor, output_size: Any) -> Tensor:
    """Return the means of `output_size` windows that cover `input` (N, C, D, H, W) or (C, D, H, W) evenly."""
    return _adaptive_avg_pools[3](input, _output_sizes(3, input, output_size))


def _adaptive_max_pool(dims: int, input: Tensor, output_size: Any, return_indices: bool) -> Any:
    result, indices = _adaptive_max_pools[dims](input, _output_sizes(dims, input, output_size))
    return (result, indices) if return_indices else result


@overridable
def adaptive_max_pool1d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Return the largest values of `output_size` windows that cover `input` (N, C, L) or (C, L) evenly."""
    return _adaptive_max_pool(1, input, output_size, return_indices)


@overridable
def adaptive_max_pool2d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Return the largest values of `output_size` windows that cover `input` (N, C, H, W) or (C, H, W) evenly.

    Args:
        input: floating point.
        output_size: an int or a pair for height and width, where None keeps the input's.
        return_indices: also return, as int64, where in its H·W plane each maximum is.
    """
    return _adaptive_max_pool(2, input, output_size, return_indices)


@overridable
def adaptive_max_pool3d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Return the largest values of `output_size` windows that cover `input` (N, C, D, H, W) or (C, D, H, W)
    evenly."""
    return _adaptive_max_pool(3, input, output_size, return_indices)


@overridable
def max_pool1d_with_indices(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> tuple[Tensor, Tensor]:
    """:func:`max_pool1d` with `return_indices=True`."""
    pooled: tuple[Tensor, Tensor] = _max_pool(
        1, input, kernel_size, stride, padding, dilation, ceil_mode, True
    )
    return pooled


@overridable
def adaptive_max_pool1d_with_indices(
    input: Tensor, output_size: Any, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """:func:`adaptive_max_pool1d` with `return_indices=True`."""
    pooled: tuple[Tensor, Tensor] = _adaptive_max_pool(1, input, output_size, True)
    return pooled


@overridable
def max_pool2d_with_indices(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> tuple[Tensor, Tensor]:
    """:func:`max_pool2d` with `return_indices=True`."""
    pooled: tuple[Tensor, Tensor] = _max_pool(
        2, input, kernel_size, stride, padding, dilation, ceil_mode, True
    )
    return pooled


@overridable
def adaptive_max_pool2d_with_indices(
    input: Tensor, output_size: Any, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """:func:`adaptive_max_pool2d` with `return_indices=True`."""
    pooled: tuple[Tensor, Tensor] = _adaptive_max_pool(2, input, output_size, True)
    return pooled


@overridable
def max_pool3d_with_indices(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> tuple[Tensor, Tensor]:
    """:func:`max_pool3d` with `return_indices=True`."""
    pooled: tuple[Tensor, Tensor] = _max_pool(
        3, input, kernel_size, stride, padding, dilation, ceil_mode, True
    )
    return pooled


@overridable
def adaptive_max_pool3d_with_indices(
    input: Tensor, output_size: Any, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """:func:`adaptive_max_pool3d` with `return_indices=True`."""
    pooled: tuple[Tensor, Tensor] = _adaptive_max_pool(3, input, output_size, True)
    return pooled
