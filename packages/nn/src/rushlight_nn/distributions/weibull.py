"""The Weibull distribution."""

from __future__ import annotations

import rushlight_core as core
from rushlight_core import Tensor

from . import constraints
from .exponential import Exponential
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, PowerTransform
from .utils import broadcast_all, euler_constant

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["Weibull"]


class Weibull(TransformedDistribution):
    """The Weibull distribution of positive numbers.

    The probability that a sample is above x is ``exp(-(x / scale)^concentration)``.

    Args:
        scale: the scale.
        concentration: the exponent, often called the shape.
        validate_args: whether to check the arguments; true by default, unless Python runs with -O.

    Shape:
        - Parameters: (*), numbers or tensors that broadcast; their common shape is the batch shape.
        - Samples: (*sample_shape, *batch_shape).

    Raises:
        ValueError: a parameter is not positive.

    Example:
        >>> from rushlight.distributions import Weibull
        >>> Weibull(2.0, 1.0).mean  # exponential
        tensor(2.)
    """

    scale: Tensor
    concentration: Tensor

    arg_constraints: Any = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive

    def __init__(self, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.scale, self.concentration = broadcast_all(scale, concentration)
        base = Exponential(core.ones_like(self.scale), validate_args=False)
        transforms = [
            PowerTransform(self.concentration.reciprocal()),
            AffineTransform(0, self.scale),
        ]
        super().__init__(base, transforms, validate_args=validate_args)

    def _moment(self, order: int) -> Tensor:
        """Return the moment of order `order` of the variable ``x / scale``."""
        return (1 + order / self.concentration).lgamma().exp()

    @property
    def mean(self) -> Tensor:
        return self.scale * self._moment(1)

    @property
    def mode(self) -> Tensor:
        k = self.concentration
        return self.scale * ((k - 1) / k).clamp(min=0).pow(k.reciprocal())

    @property
    def variance(self) -> Tensor:
        return self.scale.square() * (self._moment(2) - self._moment(1).square())

    def entropy(self) -> Tensor:
        inverse = self.concentration.reciprocal()
        return euler_constant * (1 - inverse) + (self.scale * inverse).log() + 1
