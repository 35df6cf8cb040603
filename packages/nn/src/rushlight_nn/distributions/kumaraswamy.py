"""Kumaraswamy's distribution."""

from __future__ import annotations

import rushlight_core as core
from rushlight_core import Tensor

from . import constraints
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, PowerTransform
from .uniform import Uniform
from .utils import broadcast_all, euler_constant

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["Kumaraswamy"]


class Kumaraswamy(TransformedDistribution):
    """The Kumaraswamy distribution of numbers between 0 and 1 (Kumaraswamy 1980).

    The probability that a sample is above x is ``(1 - x^concentration1)^concentration0``.

    Args:
        concentration1: the exponent of x.
        concentration0: the exponent of 1 - x^concentration1.
        validate_args: whether to check the arguments; true by default, unless Python runs with -O.

    Shape:
        - Parameters: (*), numbers or tensors that broadcast; their common shape is the batch shape.
        - Samples: (*sample_shape, *batch_shape).

    Raises:
        ValueError: a concentration is not positive.

    Example:
        >>> from rushlight.distributions import Kumaraswamy
        >>> Kumaraswamy(1.0, 1.0).mean  # uniform
        tensor(0.5000)
    """

    concentration1: Tensor
    concentration0: Tensor

    arg_constraints: Any = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None) -> None:
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        # (1 - u^(1/b))^(1/a)
        transforms = [
            PowerTransform(self.concentration0.reciprocal()),
            AffineTransform(1.0, -1.0),
            PowerTransform(self.concentration1.reciprocal()),
        ]
        zeros = core.zeros_like(self.concentration0)
        base = Uniform(zeros, zeros + 1, validate_args=False)
        super().__init__(base, transforms, validate_args=validate_args)

    def _moment(self, order: int) -> Tensor:
        a, b = self.concentration1, self.concentration0
        part = 1 + order / a
        return (b.log() + part.lgamma() + b.lgamma() - (part + b).lgamma()).exp()

    @property
    def mean(self) -> Tensor:
        return self._moment(1)

    @property
    def mode(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        inside = (a >= 1) & (b >= 1) & ~((a == 1) & (b == 1))
        return core.where(inside, ((a - 1) / (a * b - 1)).pow(a.reciprocal()), float("nan"))

    @property
    def variance(self) -> Tensor:
        return self._moment(2) - self._moment(1).square()

    def entropy(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        harmonic = (b + 1).digamma() + euler_constant
        return (1 - b.reciprocal()) + (1 - a.reciprocal()) * harmonic - a.log() - b.log()
