"""The positive half of a Cauchy distribution."""

from __future__ import annotations

import math

import rushlight_core as core
from rushlight_core import Tensor

from . import constraints
from .cauchy import Cauchy
from .transformed_distribution import TransformedDistribution
from .transforms import AbsTransform

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["HalfCauchy"]


class HalfCauchy(TransformedDistribution):
    """The half-Cauchy distribution: the absolute value of a Cauchy variable with median 0.

    Args:
        scale: the scale, which is the median of the distribution.
        validate_args: whether to check the arguments; true by default, unless Python runs with -O.

    Shape:
        - Parameters: (*), numbers or tensors that broadcast; their common shape is the batch shape.
        - Samples: (*sample_shape, *batch_shape).

    Raises:
        ValueError: a scale is not positive.

    Example:
        >>> from rushlight.distributions import HalfCauchy
        >>> HalfCauchy(2.0).cdf(torch.tensor(2.0))
        tensor(0.5000)
    """

    arg_constraints: Any = {"scale": constraints.positive}
    support = constraints.nonnegative
    base_dist: Cauchy

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        base = Cauchy(0, scale, validate_args=False)
        super().__init__(base, AbsTransform(), validate_args=validate_args)

    @property
    def scale(self) -> Tensor:
        """The scale of the Cauchy distribution with median 0."""
        return self.base_dist.scale

    @property
    def mean(self) -> Tensor:
        return core.full_like(self.scale, math.inf)

    @property
    def mode(self) -> Tensor:
        return core.zeros_like(self.scale)

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return core.where(value >= 0, self.base_dist.log_prob(value) + math.log(2), -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return (value / self.scale).atan() * (2 / math.pi)

    def icdf(self, value: Tensor) -> Tensor:
        return self.base_dist.icdf((value + 1) / 2)

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() - math.log(2)
