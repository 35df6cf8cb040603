"""Layers that rearrange patches and channels; see the functions in :mod:`rushlight_nn.functional`."""

from __future__ import annotations

from rushlight_core import Tensor

from .. import functional as F
from .._typing import Any
from ..module import Module


class PixelShuffle(Module):
    """A layer that rearranges channels into pixels, so that images become r times higher and wider (Shi et al. 2016).

    Args:
        upscale_factor: r, the factor by which height and width grow.

    Shape:
        - Input: (*, C · r², H, W).
        - Output: (*, C, H · r, W · r).

    Example:
        >>> nn.PixelShuffle(3)(torch.randn(1, 9, 4, 4)).shape
        torch.Size([1, 1, 12, 12])
    """

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_shuffle(input, self.upscale_factor)

    def extra_repr(self) -> str:
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(Module):
    """A layer that rearranges blocks of r × r pixels into channels: the inverse of :class:`PixelShuffle`.

    Args:
        downscale_factor: r, which must divide height and width.

    Shape:
        - Input: (*, C, H · r, W · r).
        - Output: (*, C · r², H, W).

    Example:
        >>> nn.PixelUnshuffle(3)(torch.randn(1, 1, 12, 12)).shape
        torch.Size([1, 9, 4, 4])
    """

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_unshuffle(input, self.downscale_factor)

    def extra_repr(self) -> str:
        return f"downscale_factor={self.downscale_factor}"


class ChannelShuffle(Module):
    """A layer that splits the channels into groups and interleaves the groups (Zhang et al. 2018).

    Args:
        groups: number of groups, which must divide the number of channels.

    Shape:
        - Input and output: (N, C, *).

    Example:
        >>> nn.ChannelShuffle(2)(torch.arange(4.0).reshape(1, 4, 1, 1)).flatten()
        tensor([0., 2., 1., 3.])
    """

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        return F.channel_shuffle(input, self.groups)

    def extra_repr(self) -> str:
        return f"groups={self.groups}"


class Unfold(Module):
    """A layer that returns the sliding windows of images as columns.

    Args:
        kernel_size: size of the windows, an int or a pair for height and width; likewise `dilation`, `padding` and
            `stride`.
        dilation: distance between adjacent elements of a window.
        padding: number of zeros added on each side.
        stride: distance between windows.

    Shape:
        - Input: (N, C, H, W) or (C, H, W).
        - Output: (N, C · kernel_size[0] · kernel_size[1], L) or without N, where L is the number of windows: floor((H +
          2 · padding[0] - dilation[0] · (kernel_size[0] - 1) - 1) / stride[0]) + 1 along the height, times the number of
          windows along the width, which follows from the same formula.

    Example:
        >>> nn.Unfold(kernel_size=(2, 3))(torch.randn(2, 5, 3, 4)).shape  # 5 · 2 · 3 elements at 2 · 2 positions
        torch.Size([2, 30, 4])
    """

    def __init__(self, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Tensor) -> Tensor:
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, dilation={self.dilation}, padding={self.padding}, "
            f"stride={self.stride}"
        )


class Fold(Module):
    """A layer that combines sliding windows, given as columns, into images: the transpose of :class:`Unfold`.

    Where windows overlap, the values at the same position of the image are summed.

    Args:
        output_size: height and width of the images.
        kernel_size: size of the windows, an int or a pair for height and width; likewise `dilation`, `padding` and
            `stride`.
        dilation: distance between adjacent elements of a window.
        padding: number of elements by which windows may extend beyond each edge of the image.
        stride: distance between windows.

    Shape:
        - Input: (N, C · kernel_size[0] · kernel_size[1], L) or without N, where L is the number of windows; see
          :class:`Unfold`.
        - Output: (N, C, output_size[0], output_size[1]) or without N.

    Example:
        >>> nn.Fold(output_size=(4, 5), kernel_size=(2, 2))(torch.randn(1, 3 * 2 * 2, 12)).shape
        torch.Size([1, 3, 4, 5])
        >>> windows = nn.Unfold(2)(torch.ones(1, 1, 3, 3))
        >>> nn.Fold(3, 2)(windows)[0, 0]  # in how many windows each pixel is
        tensor([[1., 2., 1.],
                [2., 4., 2.],
                [1., 2., 1.]])
    """

    def __init__(
        self, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
    ) -> None:
        super().__init__()
        self.output_size = output_size
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Tensor) -> Tensor:
        return F.fold(input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return (
            f"output_size={self.output_size}, kernel_size={self.kernel_size}, dilation={self.dilation}, "
            f"padding={self.padding}, stride={self.stride}"
        )
