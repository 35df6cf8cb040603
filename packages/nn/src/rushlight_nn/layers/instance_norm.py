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
    """Normalise each channel of each sample of (N, C, L) or (C, L) (Ulyanov et al. 2016).

    Args:
        num_features: C.
        eps: added to the variance.
        momentum: how far the running statistics move towards each batch's.
        affine: whether a weight and, with `bias`, a bias per channel follow.
        track_running_stats: whether running statistics are kept, for evaluation.
    """

    _dims = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """Normalise each channel of each sample of (N, C, H, W) or (C, H, W); arguments as of
    :class:`InstanceNorm1d`."""

    _dims = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """Normalise each channel of each sample of (N, C, D, H, W) or (C, D, H, W); arguments as of
    :class:`InstanceNorm1d`."""

    _dims = (4, 5)


class LocalResponseNorm(Module):
    """Divide by a power of the channels around; see :func:`rushlight_nn.functional.local_response_norm`."""

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
