"""Extraction of patches of images (`unfold`), its transpose (`fold`), and rearrangement of channels (`pixel_shuffle`)."""

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
    """Return the sliding windows of images as columns.

    Args:
        input: the images.
        kernel_size: size of the windows. `kernel_size`, `dilation`, `padding` and `stride` are an int or a pair for height
            and width.
        dilation: distance between adjacent elements of a window.
        padding: number of zeros added on each side.
        stride: distance between windows.

    Shape:
        - Input: (N, C, H, W) or (C, H, W).
        - Output: (N, C · kernel_size[0] · kernel_size[1], L) or without N, where L is the number of windows; see
          :class:`rushlight_nn.Unfold`.

    Raises:
        RuntimeError: a window is larger than the padded image, or an argument is out of range.

    Example:
        >>> F.unfold(torch.arange(9.0).reshape(1, 1, 3, 3), kernel_size=2)
        tensor([[[0., 1., 3., 4.],
                 [1., 2., 4., 5.],
                 [3., 4., 6., 7.],
                 [4., 5., 7., 8.]]])
    """
    return _im2col(input, kernel_size, dilation, padding, stride)


@overridable
def fold(
    input: Tensor, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Tensor:
    """Combine sliding windows, given as columns, into images: the transpose of :func:`unfold`.

    Where windows overlap, the elements at the same position of the image are summed.

    Args:
        input: the columns.
        output_size: height and width of the images.
        kernel_size: size of the windows. `kernel_size`, `dilation`, `padding` and `stride` are an int or a pair for height
            and width.
        dilation: distance between adjacent elements of a window.
        padding: number of elements by which windows may extend beyond each edge of the image.
        stride: distance between windows.

    Shape:
        - Input: (N, C · kernel_size[0] · kernel_size[1], L) or without N, where L is the number of windows.
        - Output: (N, C, output_size[0], output_size[1]) or without N.

    Raises:
        RuntimeError: the input's shape does not match the windows of an image of the size `output_size`, or an argument is
            out of range.

    Example:
        >>> F.fold(F.unfold(torch.ones(1, 1, 3, 3), 2), 3, 2)[0, 0]  # in how many windows each pixel is
        tensor([[1., 2., 1.],
                [2., 4., 2.],
                [1., 2., 1.]])
    """
    return _col2im(input, output_size, kernel_size, dilation, padding, stride)
