"""Instance normalisation."""

from __future__ import annotations

from rushlight_core import Tensor

from .. import functional as F
from .._typing import Any
from ..module import Module
from .norm import _NormBase


class _InstanceNorm(_NormBase):
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def forward(self, input: Tensor) -> Tensor:
        name = type(self).__name__
        if input.dim() not in self._dims:
            needed = " or ".join(map(str, self._dims))
            raise ValueError(f"{name}(input): got {input.dim()} dimensions, needs {needed}")
        unbatched = input.dim() == self._dims[0]
        channels = input.shape[0 if unbatched else 1]
        if channels != self.num_features and self.affine:
            raise ValueError(
                f"{name}(input): got {channels} channels, needs num_features={self.num_features}"
            )
        result = F.instance_norm(
            input.unsqueeze(0) if unbatched else input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            0.0 if self.momentum is None else self.momentum,
            self.eps,
        )
        return result.squeeze(0) if unbatched else result


class InstanceNorm1d(_InstanceNorm):
    """Instance normalisation of sequences: normalise each channel of each sample separately (Ulyanov et al. 2016).

    Args:
        num_features: C, the number of channels.
        eps: added to the variance.
        momentum: the weight of each new batch in the running averages.
        affine: whether the layer has a weight per channel and, if `bias` is True, a bias per channel.
        track_running_stats: whether to compute running averages and use them in evaluation mode. If
            `track_running_stats` is False, the statistics of each sample are used in training and in
            evaluation mode.
        device: device of the parameters and buffers.
        dtype: dtype of the parameters and buffers.
        bias: whether the layer has a bias in addition to the weight.

    Shape:
        - Input and output: (N, C, L) or (C, L).

    Raises:
        ValueError: the input has neither 2 nor 3 dimensions, or `affine` is True and the number of channels is not
            `num_features`.

    Example:
        >>> nn.InstanceNorm1d(2)(torch.tensor([[[1.0, 3.0], [10.0, 30.0]]]))
        tensor([[[-1.0000,  1.0000],
                 [-1.0000,  1.0000]]])
    """

    _dims = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """Instance normalisation of images: normalise each channel of each sample separately (Ulyanov et al. 2016).

    Args:
        num_features: C, the number of channels.
        eps, momentum, affine, track_running_stats, device, dtype, bias: see :class:`InstanceNorm1d`.

    Shape:
        - Input and output: (N, C, H, W) or (C, H, W).

    Raises:
        ValueError: the input has neither 3 nor 4 dimensions, or `affine` is True and the number of channels is not
            `num_features`.

    Example:
        >>> nn.InstanceNorm2d(100)(torch.randn(20, 100, 35, 45)).shape
        torch.Size([20, 100, 35, 45])
    """

    _dims = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """Instance normalisation of volumes: normalise each channel of each sample separately (Ulyanov et al. 2016).

    Args:
        num_features: C, the number of channels.
        eps, momentum, affine, track_running_stats, device, dtype, bias: see :class:`InstanceNorm1d`.

    Shape:
        - Input and output: (N, C, D, H, W) or (C, D, H, W).

    Raises:
        ValueError: the input has neither 4 nor 5 dimensions, or `affine` is True and the number of channels is not
            `num_features`.

    Example:
        >>> nn.InstanceNorm3d(10)(torch.randn(2, 10, 5, 6, 7)).shape
        torch.Size([2, 10, 5, 6, 7])
    """

    _dims = (4, 5)


class LocalResponseNorm(Module):
    """Local response normalisation: divide the input by a power of the mean square of neighbouring channels.

    The result is ``x / (k + alpha · mean)^beta``, where the mean is taken over the squares of `size` channels
    around each channel (Krizhevsky, Sutskever and Hinton 2012).

    Args:
        size: number of neighbouring channels over which the mean is computed.
        alpha: the factor by which the mean is multiplied.
        beta: the exponent.
        k: added to alpha times the mean.

    Shape:
        - Input and output: (N, C, *).

    Raises:
        ValueError: the input has fewer than 3 dimensions.

    Example:
        >>> nn.LocalResponseNorm(2)(torch.randn(32, 5, 24, 24)).shape
        torch.Size([32, 5, 24, 24])
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Tensor) -> Tensor:
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"
