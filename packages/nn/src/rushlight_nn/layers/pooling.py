"""Pooling layers; see the functions in :mod:`rushlight_nn.functional`."""

from __future__ import annotations

from collections.abc import Callable

from rushlight_core import Tensor

from .. import functional as F
from .._typing import Any
from ..functional._arguments import tuple_of
from ..module import Module


class _MaxPool(Module):
    _pool: Callable[..., Any]

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride: Any = kernel_size if stride is None else stride
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Any:
        return self._pool(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            self.ceil_mode,
            self.return_indices,
        )

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
            f"dilation={self.dilation}, ceil_mode={self.ceil_mode}"
        )


class MaxPool1d(_MaxPool):
    """Max pooling over sequences: the largest value of each window, per channel.

    The padding consists of minus infinity.

    Args:
        kernel_size: length of the windows.
        stride: distance between windows; `kernel_size` by default.
        padding: number of elements added at each end, at most half of `kernel_size`.
        dilation: distance between adjacent elements of a window.
        return_indices: whether to also return the positions of the maxima, int64, for :class:`MaxUnpool1d`.
        ceil_mode: whether to round the number of windows up, so that the last window may extend beyond the end of the input.

    Shape:
        - Input: (N, C, L) or (C, L).
        - Output: (N, C, L_out) or (C, L_out), where
          L_out = floor((L + 2 · padding - dilation · (kernel_size - 1) - 1) / stride) + 1.

    Example:
        >>> nn.MaxPool1d(3, stride=2)(torch.tensor([[1.0, 5.0, 2.0, 3.0, 4.0]]))
        tensor([[5., 4.]])
    """

    _pool = staticmethod(F.max_pool1d)


class MaxPool2d(_MaxPool):
    """Max pooling over images: the largest value of each window, per channel.

    The padding consists of minus infinity.

    Args:
        kernel_size: size of the windows, an int or a pair for height and width; likewise `stride`, `padding` and
            `dilation`.
        stride: distance between windows; `kernel_size` by default.
        padding: number of elements added at each end, at most half of `kernel_size`.
        dilation: distance between the elements of a window.
        return_indices: whether to also return the positions of the maxima in the flattened H·W plane, int64, for
            :class:`MaxUnpool2d`.
        ceil_mode: whether to round the number of windows up, so that the last window may extend beyond the end of the input.

    Shape:
        - Input: (N, C, H, W) or (C, H, W).
        - Output: (N, C, H_out, W_out) or (C, H_out, W_out), where
          H_out = floor((H + 2 · padding[0] - dilation[0] · (kernel_size[0] - 1) - 1) / stride[0]) + 1,
          and W_out likewise with index 1.

    Example:
        >>> nn.MaxPool2d(2)(torch.arange(16.0).reshape(1, 4, 4))
        tensor([[[ 5.,  7.],
                 [13., 15.]]])
        >>> nn.MaxPool2d((3, 2), stride=(2, 1))(torch.randn(20, 16, 50, 32)).shape
        torch.Size([20, 16, 24, 31])
    """

    _pool = staticmethod(F.max_pool2d)


class MaxPool3d(_MaxPool):
    """Max pooling over volumes: the largest value of each window, per channel.

    The padding consists of minus infinity.

    Args:
        kernel_size: size of the windows, an int or a triple for depth, height and width; likewise `stride`, `padding`
            and `dilation`.
        stride: distance between windows; `kernel_size` by default.
        padding: number of elements added at each end, at most half of `kernel_size`.
        dilation: distance between the elements of a window.
        return_indices: whether to also return the positions of the maxima in the flattened D·H·W volume, int64, for
            :class:`MaxUnpool3d`.
        ceil_mode: whether to round the number of windows up, so that the last window may extend beyond the end of the input.

    Shape:
        - Input: (N, C, D, H, W) or (C, D, H, W).
        - Output: (N, C, D_out, H_out, W_out) or (C, D_out, H_out, W_out), where
          D_out = floor((D + 2 · padding[0] - dilation[0] · (kernel_size[0] - 1) - 1) / stride[0]) + 1,
          and H_out and W_out likewise with indices 1 and 2.

    Example:
        >>> nn.MaxPool3d((3, 2, 2), stride=(2, 1, 2))(torch.randn(2, 16, 11, 8, 6)).shape
        torch.Size([2, 16, 5, 7, 3])
    """

    _pool = staticmethod(F.max_pool3d)


class AvgPool1d(Module):
    """Average pooling over sequences: the mean of each window, per channel.

    Args:
        kernel_size: length of the windows.
        stride: distance between windows; `kernel_size` by default.
        padding: number of zeros added at each end, at most half of `kernel_size`.
        ceil_mode: whether to round the number of windows up, so that the last window may extend beyond the end of the input.
        count_include_pad: whether the zeros of the padding are included in the mean.

    Shape:
        - Input: (N, C, L) or (C, L).
        - Output: (N, C, L_out) or (C, L_out), where L_out = floor((L + 2 · padding - kernel_size) / stride) + 1.

    Example:
        >>> nn.AvgPool1d(3, stride=2)(torch.tensor([[1.0, 2.0, 3.0, 4.0, 5.0]]))
        tensor([[2., 4.]])
    """

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__()
        self.kernel_size: tuple[Any, ...] = tuple_of(1, kernel_size)
        self.stride: tuple[Any, ...] = self.kernel_size if stride is None else tuple_of(1, stride)
        self.padding: tuple[Any, ...] = tuple_of(1, padding)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool1d(
            input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad
        )

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class _AvgPool(Module):
    _pool: Callable[..., Tensor]

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride: Any = kernel_size if stride is None else stride
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: Tensor) -> Tensor:
        return self._pool(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool2d(_AvgPool):
    """Average pooling over images: the mean of each window, per channel.

    Args:
        kernel_size: size of the windows, an int or a pair for height and width; likewise `stride` and `padding`.
        stride: distance between windows; `kernel_size` by default.
        padding: number of zeros added at each end, at most half of `kernel_size`.
        ceil_mode: whether to round the number of windows up, so that the last window may extend beyond the end of the input.
        count_include_pad: whether the zeros of the padding are included in the mean.
        divisor_override: divide by this number instead of the window's size.

    Shape:
        - Input: (N, C, H, W) or (C, H, W).
        - Output: (N, C, H_out, W_out) or (C, H_out, W_out), where
          H_out = floor((H + 2 · padding[0] - kernel_size[0]) / stride[0]) + 1, and W_out likewise with index 1.

    Example:
        >>> nn.AvgPool2d(2)(torch.arange(16.0).reshape(1, 4, 4))
        tensor([[[ 2.5000,  4.5000],
                 [10.5000, 12.5000]]])
    """

    _pool = staticmethod(F.avg_pool2d)


class AvgPool3d(_AvgPool):
    """Average pooling over volumes: the mean of each window, per channel.

    Args:
        kernel_size: size of the windows, an int or a triple for depth, height and width; likewise `stride` and
            `padding`.
        stride: distance between windows; `kernel_size` by default.
        padding: number of zeros added at each end, at most half of `kernel_size`.
        ceil_mode: whether to round the number of windows up, so that the last window may extend beyond the end of the input.
        count_include_pad: whether the zeros of the padding are included in the mean.
        divisor_override: divide by this number instead of the window's size.

    Shape:
        - Input: (N, C, D, H, W) or (C, D, H, W).
        - Output: (N, C, D_out, H_out, W_out) or (C, D_out, H_out, W_out), where
          D_out = floor((D + 2 · padding[0] - kernel_size[0]) / stride[0]) + 1, and H_out and W_out likewise with
          indices 1 and 2.

    Example:
        >>> nn.AvgPool3d((3, 2, 2), stride=(2, 1, 2))(torch.randn(2, 16, 11, 8, 6)).shape
        torch.Size([2, 16, 5, 7, 3])
    """

    _pool = staticmethod(F.avg_pool3d)


class _AdaptiveAvgPool(Module):
    _pool: Callable[..., Tensor]

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def forward(self, input: Tensor) -> Tensor:
        return self._pool(input, self.output_size)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_AdaptiveAvgPool):
    """Average pooling to a fixed length: the means of `output_size` windows that cover the input evenly.

    Window i covers the positions from floor(i · L / output_size) to ceil((i + 1) · L / output_size) - 1.

    Args:
        output_size: length of the output.

    Shape:
        - Input: (N, C, L) or (C, L).
        - Output: (N, C, output_size) or (C, output_size).

    Example:
        >>> nn.AdaptiveAvgPool1d(2)(torch.tensor([[1.0, 2.0, 3.0, 4.0, 5.0]]))
        tensor([[2., 4.]])
    """

    _pool = staticmethod(F.adaptive_avg_pool1d)


class AdaptiveAvgPool2d(_AdaptiveAvgPool):
    """Average pooling to a fixed size: the means of windows that cover the input evenly.

    Along a dimension of size H, window i of n covers the positions from floor(i · H / n) to
    ceil((i + 1) · H / n) - 1.

    Args:
        output_size: size of the output, an int or a pair for height and width; None keeps the size of the input.

    Shape:
        - Input: (N, C, H, W) or (C, H, W).
        - Output: (N, C, output_size[0], output_size[1]) or (C, output_size[0], output_size[1]).

    Example:
        >>> nn.AdaptiveAvgPool2d((5, None))(torch.randn(1, 64, 10, 9)).shape
        torch.Size([1, 64, 5, 9])
        >>> nn.AdaptiveAvgPool2d(1)(torch.arange(6.0).reshape(1, 1, 2, 3)).item()  # the mean of each channel
        2.5
    """

    _pool = staticmethod(F.adaptive_avg_pool2d)


class AdaptiveAvgPool3d(_AdaptiveAvgPool):
    """Average pooling to a fixed size: the means of windows that cover the input evenly.

    Along a dimension of size D, window i of n covers the positions from floor(i · D / n) to
    ceil((i + 1) · D / n) - 1.

    Args:
        output_size: size of the output, an int or a triple for depth, height and width; None keeps the size of the input.

    Shape:
        - Input: (N, C, D, H, W) or (C, D, H, W).
        - Output: (N, C, *output_size) or (C, *output_size).

    Example:
        >>> nn.AdaptiveAvgPool3d((7, None, 2))(torch.randn(1, 4, 10, 9, 8)).shape
        torch.Size([1, 4, 7, 9, 2])
    """

    _pool = staticmethod(F.adaptive_avg_pool3d)


class _AdaptiveMaxPool(Module):
    _pool: Callable[..., Any]

    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__()
        self.output_size = output_size
        self.return_indices = return_indices

    def forward(self, input: Tensor) -> Any:
        return self._pool(input, self.output_size, self.return_indices)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveMaxPool1d(_AdaptiveMaxPool):
    """Max pooling to a fixed length: the largest values of `output_size` windows that cover the input evenly.

    The windows are the same as for :class:`AdaptiveAvgPool1d`.

    Args:
        output_size: length of the output.
        return_indices: whether to also return the positions of the maxima, int64.

    Shape:
        - Input: (N, C, L) or (C, L).
        - Output: (N, C, output_size) or (C, output_size).

    Example:
        >>> nn.AdaptiveMaxPool1d(2)(torch.tensor([[1.0, 5.0, 2.0, 3.0, 4.0]]))
        tensor([[5., 4.]])
    """

    _pool = staticmethod(F.adaptive_max_pool1d)


class AdaptiveMaxPool2d(_AdaptiveMaxPool):
    """Max pooling to a fixed size: the largest values of windows that cover the input evenly.

    The windows are the same as for :class:`AdaptiveAvgPool2d`.

    Args:
        output_size: size of the output, an int or a pair for height and width; None keeps the size of the input.
        return_indices: whether to also return the positions of the maxima in the flattened H·W plane, int64.

    Shape:
        - Input: (N, C, H, W) or (C, H, W).
        - Output: (N, C, output_size[0], output_size[1]) or (C, output_size[0], output_size[1]).

    Example:
        >>> nn.AdaptiveMaxPool2d((5, None))(torch.randn(1, 64, 10, 9)).shape
        torch.Size([1, 64, 5, 9])
    """

    _pool = staticmethod(F.adaptive_max_pool2d)


class AdaptiveMaxPool3d(_AdaptiveMaxPool):
    """Max pooling to a fixed size: the largest values of windows that cover the input evenly.

    The windows are the same as for :class:`AdaptiveAvgPool3d`.

    Args:
        output_size: size of the output, an int or a triple for depth, height and width; None keeps the size of the input.
        return_indices: whether to also return the positions of the maxima in the flattened D·H·W volume, int64.

    Shape:
        - Input: (N, C, D, H, W) or (C, D, H, W).
        - Output: (N, C, *output_size) or (C, *output_size).

    Example:
        >>> nn.AdaptiveMaxPool3d((7, None, 2))(torch.randn(1, 4, 10, 9, 8)).shape
        torch.Size([1, 4, 7, 9, 2])
    """

    _pool = staticmethod(F.adaptive_max_pool3d)
