"""Pooling."""

from __future__ import annotations

from rushlight_core import Tensor

from .._core import operator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_max_pool2d = operator("max_pool2d_with_indices")
_adaptive_avg_pool2d = operator("adaptive_avg_pool2d")
_avg_pool2d = operator("avg_pool2d")


def max_pool2d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The largest value of each window of `input` (N, C, H, W) or (C, H, W).

    Args:
        input: floating point.
        kernel_size, stride, padding, dilation: int, or a pair for height and width; stride defaults to the
            kernel's size.
        ceil_mode: keep windows that hang over the end.
        return_indices: also return, as int64, where in its H·W plane each maximum is.
    """
    result, indices = _max_pool2d(
        input, kernel_size, kernel_size if stride is None else stride, padding, dilation, ceil_mode
    )
    return (result, indices) if return_indices else result


def avg_pool2d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """The mean of each window of `input` (N, C, H, W) or (C, H, W).

    Args:
        input: floating point.
        kernel_size, stride, padding: int, or a pair for height and width; stride defaults to the kernel's
            size.
        ceil_mode: keep windows that hang over the end.
        count_include_pad: whether padding counts in the divisor.
        divisor_override: divide by this number instead.
    """
    if stride is None:
        stride = kernel_size
    return _avg_pool2d(input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
    """The means of `output_size` windows that cover `input` (N, C, H, W) or (C, H, W) evenly.

    `output_size` is an int or a pair for height and width, where None keeps the input's.
    """
    if not isinstance(output_size, int):
        own = input.shape[-2:]
        height, width = own if output_size is None else output_size
        output_size = (own[0] if height is None else height, own[1] if width is None else width)
    return _adaptive_avg_pool2d(input, output_size)
