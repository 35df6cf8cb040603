"""Pools of other kinds as layers; what they compute is said in :mod:`rushlight_nn.functional`."""

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
    """Maxima at the places where MaxPool1d found them; see :func:`rushlight_nn.functional.max_unpool2d`."""

    _dims = 1
    _unpool = staticmethod(F.max_unpool1d)


class MaxUnpool2d(_MaxUnpool):
    """Maxima at the places where MaxPool2d found them; see :func:`rushlight_nn.functional.max_unpool2d`."""

    _dims = 2
    _unpool = staticmethod(F.max_unpool2d)


class MaxUnpool3d(_MaxUnpool):
    """Maxima at the places where MaxPool3d found them; see :func:`rushlight_nn.functional.max_unpool2d`."""

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
    """The p-norm of each window of (N, C, L); see :func:`rushlight_nn.functional.lp_pool1d`."""

    _pool = staticmethod(F.lp_pool1d)


class LPPool2d(_LPPool):
    """The p-norm of each window of (N, C, H, W); see :func:`rushlight_nn.functional.lp_pool2d`."""

    _pool = staticmethod(F.lp_pool2d)


class LPPool3d(_LPPool):
    """The p-norm of each window of (N, C, D, H, W); see :func:`rushlight_nn.functional.lp_pool3d`."""

    _pool = staticmethod(F.lp_pool3d)
