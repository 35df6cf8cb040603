"""The Cauchy distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence

import rushlight_core as core
from rushlight_core import Tensor

from .location_scale import LocationScale

__all__ = ["Cauchy"]


class Cauchy(LocationScale):
    """The Cauchy distribution, which has no mean.

    Args:
        loc: the median.
        scale: the scale; half of the distribution lies within `scale` of the median.
        validate_args: whether to check the arguments; true by default, unless Python runs with -O.

    Shape:
        - Parameters: (*), numbers or tensors that broadcast; their common shape is the batch shape.
        - Samples: (*sample_shape, *batch_shape).

    Raises:
        ValueError: a scale is not positive.

    Example:
        >>> from rushlight.distributions import Cauchy
        >>> Cauchy(0.0, 1.0).cdf(torch.tensor([-1.0, 0.0, 1.0]))
        tensor([0.2500, 0.5000, 0.7500])
    """

    @property
    def mean(self) -> Tensor:
        return core.full_like(self.loc, math.nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return core.full_like(self.loc, math.inf)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        standard = self.loc.new_empty(self._extended_shape(sample_shape)).cauchy_()
        return self.loc + self.scale * standard

    def log_prob(self, value: Tensor) -> Tensor:
        return -math.log(math.pi) - self.scale.log() - self._standard(value).square().log1p()

    def cdf(self, value: Tensor) -> Tensor:
        return self._standard(value).atan() / math.pi + 0.5

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc + self.scale * (math.pi * (value - 0.5)).tan()

    def entropy(self) -> Tensor:
        return math.log(4 * math.pi) + self.scale.log()
