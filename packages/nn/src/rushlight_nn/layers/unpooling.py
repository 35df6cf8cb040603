"""Layers for power-average pooling and for the inverse of max pooling; see :mod:`rushlight_nn.functional`."""

from __future__ import annotations

from collections.abc import Callable

from rushlight_core import Tensor

from .. import functional as F
from .._typing import Any
from ..functional._arguments import tuple_of
from ..module import Module


class _MaxUnpool(Module):
    _dims: int
    _unpool: Callable[..., Tensor]

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        super().__init__()
        self.kernel_size: tuple[Any, ...] = tuple_of(self._dims, kernel_size)
        self.stride: tuple[Any, ...] = self.kernel_size if stride is None else tuple_of(self._dims, stride)
        self.padding: tuple[Any, ...] = tuple_of(self._dims, padding)

    def forward(self, input: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:
        return self._unpool(input, indices, self.kernel_size, self.stride, self.padding, output_size)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpool):
    """The partial inverse of :class:`MaxPool1d`: place the maxima at their positions and zeros elsewhere.

    `forward` takes the maxima, their positions and optionally `output_size`, which selects one of several possible
    lengths.

    Args:
        kernel_size, stride, padding: the arguments of the pooling layer.

    Shape:
        - Input and indices: (N, C, L) or (C, L); the indices are int64.
        - Output: (N, C, L_out) or (C, L_out), where L_out = (L - 1) · stride - 2 · padding + kernel_size, or the length
          in `output_size`.

    Example:
        >>> pool = nn.MaxPool1d(2, return_indices=True)
        >>> nn.MaxUnpool1d(2)(*pool(torch.tensor([[1.0, 2.0, 4.0, 3.0]])))
        tensor([[0., 2., 4., 0.]])
    """

    _dims = 1
    _unpool = staticmethod(F.max_unpool1d)


class MaxUnpool2d(_MaxUnpool):
    """The partial inverse of :class:`MaxPool2d`: place the maxima at their positions and zeros elsewhere.

    `forward` takes the maxima, their positions and optionally `output_size`, which selects one of several possible
    sizes.

    Args:
        kernel_size, stride, padding: the arguments of the pooling layer.

    Shape:
        - Input and indices: (N, C, H, W) or (C, H, W); the indices are int64.
        - Output: (N, C, H_out, W_out) or (C, H_out, W_out), where H_out = (H - 1) · stride[0] - 2 · padding[0] +
          kernel_size[0] and W_out likewise with index 1, or the sizes in `output_size`.

    Example:
        >>> pool = nn.MaxPool2d(2, return_indices=True)
        >>> nn.MaxUnpool2d(2)(*pool(torch.arange(16.0).reshape(1, 4, 4)))
        tensor([[[ 0.,  0.,  0.,  0.],
                 [ 0.,  5.,  0.,  7.],
                 [ 0.,  0.,  0.,  0.],
                 [ 0., 13.,  0., 15.]]])
    """

    _dims = 2
    _unpool = staticmethod(F.max_unpool2d)


class MaxUnpool3d(_MaxUnpool):
    """The partial inverse of :class:`MaxPool3d`: place the maxima at their positions and zeros elsewhere.

    `forward` takes the maxima, their positions and optionally `output_size`, which selects one of several possible
    sizes.

    Args:
        kernel_size, stride, padding: the arguments of the pooling layer.

    Shape:
        - Input and indices: (N, C, D, H, W) or (C, D, H, W); the indices are int64.
        - Output: (N, C, D_out, H_out, W_out) or (C, D_out, H_out, W_out), where D_out = (D - 1) · stride[0] - 2 ·
          padding[0] + kernel_size[0] and H_out and W_out likewise with indices 1 and 2, or the sizes in `output_size`.

    Example:
        >>> pool = nn.MaxPool3d(3, stride=2, return_indices=True)
        >>> nn.MaxUnpool3d(3, stride=2)(*pool(torch.randn(2, 16, 51, 33, 15))).shape
        torch.Size([2, 16, 51, 33, 15])
    """

    _dims = 3
    _unpool = staticmethod(F.max_unpool3d)


class _LPPool(Module):
    _pool: Callable[..., Tensor]

    def __init__(
        self, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
    ) -> None:
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Tensor:
        return self._pool(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)

    def extra_repr(self) -> str:
        return (
            f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"ceil_mode={self.ceil_mode}"
        )


class LPPool1d(_LPPool):
    """Power-average pooling over sequences: the p-norm of each window, ``(sum of x^p)^(1/p)``, per channel.

    Args:
        norm_type: the order p. If p is infinite, the result is the largest magnitude.
        kernel_size: length of the windows.
        stride: distance between windows; `kernel_size` by default.
        ceil_mode: whether to round the number of windows up, so that the last window may extend beyond the end of the input.

    Shape:
        - Input: (N, C, L) or (C, L).
        - Output: (N, C, L_out) or (C, L_out), where L_out = floor((L - kernel_size) / stride) + 1.

    Example:
        >>> nn.LPPool1d(2, 2)(torch.tensor([[3.0, 4.0, 5.0, 12.0]]))
        tensor([[ 5., 13.]])
    """

    _pool = staticmethod(F.lp_pool1d)


class LPPool2d(_LPPool):
    """Power-average pooling over images: the p-norm of each window, ``(sum of x^p)^(1/p)``, per channel.

    Args:
        norm_type: the order p. If p is infinite, the result is the largest magnitude.
        kernel_size: size of the windows, an int or a pair for height and width; likewise `stride`.
        stride: distance between windows; `kernel_size` by default.
        ceil_mode: whether to round the number of windows up, so that the last window may extend beyond the end of the input.

    Shape:
        - Input: (N, C, H, W) or (C, H, W).
        - Output: (N, C, H_out, W_out) or (C, H_out, W_out), where
          H_out = floor((H - kernel_size[0]) / stride[0]) + 1, and W_out likewise with index 1.

    Example:
        >>> nn.LPPool2d(1.2, (3, 2), stride=(2, 1))(torch.rand(20, 16, 50, 32)).shape
        torch.Size([20, 16, 24, 31])
    """

    _pool = staticmethod(F.lp_pool2d)


class LPPool3d(_LPPool):
    """Power-average pooling over volumes: the p-norm of each window, ``(sum of x^p)^(1/p)``, per channel.

    Args:
        norm_type: the order p. If p is infinite, the result is the largest magnitude.
        kernel_size: size of the windows, an int or a triple for depth, height and width; likewise `stride`.
        stride: distance between windows; `kernel_size` by default.
        ceil_mode: whether to round the number of windows up, so that the last window may extend beyond the end of the input.

    Shape:
        - Input: (N, C, D, H, W) or (C, D, H, W).
        - Output: (N, C, D_out, H_out, W_out) or (C, D_out, H_out, W_out), where
          D_out = floor((D - kernel_size[0]) / stride[0]) + 1, and H_out and W_out likewise with indices 1 and 2.

    Example:
        >>> nn.LPPool3d(1.2, (3, 2, 2), stride=(2, 1, 2))(torch.rand(2, 16, 11, 8, 6)).shape
        torch.Size([2, 16, 5, 7, 3])
    """

    _pool = staticmethod(F.lp_pool3d)
