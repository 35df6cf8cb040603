"""The two-sided exponential distribution."""

from __future__ import annotations

from collections.abc import Sequence

import rushlight_core as core
from rushlight_core import Tensor

from .location_scale import LocationScale
from .utils import open_uniform

__all__ = ["Laplace"]


class Laplace(LocationScale):
    """The two-sided exponential distribution around `loc` of scale `scale`.

    Raises:
        ValueError: a scale is not positive.
    """

    @property
    def mean(self) -> Tensor:
        return self.loc

    mode = mean

    @property
    def variance(self) -> Tensor:
        return 2 * self.scale.square()

    @property
    def stddev(self) -> Tensor:
        return self.scale * 2**0.5

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        eps = core.finfo(self.loc.dtype).eps
        u = (2 * open_uniform(self._extended_shape(sample_shape), self.loc) - 1).clamp(eps - 1, 1 - eps)
        return self.loc - self.scale * u.sign() * (-u.abs()).log1p()

    def log_prob(self, value: Tensor) -> Tensor:
        return -self._standard(value).abs() - (2 * self.scale).log()

    def cdf(self, value: Tensor) -> Tensor:
        z = self._standard(value)
        return 0.5 - 0.5 * z.sign() * (-z.abs()).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        centred = value - 0.5
        return self.loc - self.scale * centred.sign() * (-2 * centred.abs()).log1p()

    def entropy(self) -> Tensor:
        return 1 + (2 * self.scale).log()
