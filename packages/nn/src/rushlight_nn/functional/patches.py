"""Patches of images, and channels moved to places and back."""

from __future__ import annotations

from rushlight_core import Tensor
from rushlight_core.overrides import overridable

from .._core import operator
from .._typing import Any

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rushlight_core import channel_shuffle as channel_shuffle
    from rushlight_core import native_channel_shuffle as native_channel_shuffle
    from rushlight_core import pixel_shuffle as pixel_shuffle
    from rushlight_core import pixel_unshuffle as pixel_unshuffle
else:
    pixel_shuffle = operator("pixel_shuffle")
    pixel_unshuffle = operator("pixel_unshuffle")
    channel_shuffle = operator("channel_shuffle")
    native_channel_shuffle = operator("native_channel_shuffle")


_im2col = operator("_im2col")
_col2im = operator("_col2im")


@overridable
def unfold(input: Tensor, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Tensor:
    """Return the windows of images as columns.

    Args:
        input: (N, C, H, W) or (C, H, W).
        kernel_size, dilation, padding, stride: int, or a pair for height and width.

    Returns:
        (N, C * kernel elements, number of windows), without N alike.

    Raises:
        RuntimeError: a window is larger than the padded image, or a number is out of range.
    """
    return _im2col(input, kernel_size, dilation, padding, stride)


@overridable
def fold(
    input: Tensor, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Tensor:
    """Images to which columns are added where :func:`unfold` takes them: where windows overlap, their sum.

    Args:
        input: (N, C * kernel elements, number of windows), or without N.
        output_size: height and width of the images.
        kernel_size, dilation, padding, stride: int, or a pair for height and width.

    Returns:
        (N, C, H, W), without N alike.

    Raises:
        RuntimeError: the input's sizes do not fit the windows of such an image, or a number is out of range.
    """
    return _col2im(input, output_size, kernel_size, dilation, padding, stride)
