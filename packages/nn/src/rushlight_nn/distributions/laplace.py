"""The two-sided exponential distribution."""

from __future__ import annotations

from collections.abc import Sequence

import rushlight_core as core
from rushlight_core import Tensor

from .location_scale import LocationScale
from .utils import open_uniform

__all__ = ["Laplace"]


class Laplace(LocationScale):
    """The Laplace distribution: exponential on both sides of `loc`.

    Args:
        loc: the mean.
        scale: the mean distance of a sample from `loc`.
        validate_args: whether to check the arguments; true by default, unless Python runs with -O.

    Shape:
        - Parameters: (*), numbers or tensors that broadcast; their common shape is the batch shape.
        - Samples: (*sample_shape, *batch_shape).

    Raises:
        ValueError: a scale is not positive.

    Example:
        >>> from rushlight.distributions import Laplace
        >>> Laplace(0.0, 1.0).log_prob(torch.tensor(0.0)).exp()
        tensor(0.5000)
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
