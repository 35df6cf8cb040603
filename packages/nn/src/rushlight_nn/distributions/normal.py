"""The normal distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence

import rushlight_core as core
from rushlight_core import Tensor

from .exp_family import ExponentialFamily
from .location_scale import LocationScale
from .utils import standard_normal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["Normal"]


class Normal(LocationScale, ExponentialFamily):
    """The normal distribution.

    Args:
        loc: the mean.
        scale: the standard deviation.
        validate_args: whether to check the arguments; true by default, unless Python runs with -O.

    Shape:
        - Parameters: (*), numbers or tensors that broadcast; their common shape is the batch shape.
        - Samples: (*sample_shape, *batch_shape).

    Raises:
        ValueError: a scale is not positive.

    Example:
        >>> from rushlight.distributions import Normal
        >>> dist = Normal(0.0, torch.tensor([1.0, 2.0]))
        >>> dist.sample((3,)).shape
        torch.Size([3, 2])
        >>> dist.log_prob(torch.tensor(0.0)).exp()
        tensor([0.3989, 0.1995])
    """

    @property
    def mean(self) -> Tensor:
        return self.loc

    mode = mean

    @property
    def stddev(self) -> Tensor:
        return self.scale

    @property
    def variance(self) -> Tensor:
        return self.scale.square()

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.loc + self.scale * standard_normal(self._extended_shape(sample_shape), self.loc)

    def log_prob(self, value: Tensor) -> Tensor:
        z = self._standard(value)
        return -0.5 * z * z - self.scale.log() - 0.5 * math.log(2 * math.pi)

    def cdf(self, value: Tensor) -> Tensor:
        return core.special.ndtr(self._standard(value))

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc + self.scale * core.special.ndtri(value)

    def entropy(self) -> Tensor:
        return 0.5 + 0.5 * math.log(2 * math.pi) + self.scale.log()

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        variance = self.scale.square()
        return self.loc / variance, -0.5 / variance

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:  # type: ignore[override]
        return -0.25 * x.square() / y + 0.5 * (-math.pi / y).log()

    _mean_carrier_measure: Any = 0
