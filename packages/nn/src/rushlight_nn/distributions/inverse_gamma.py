"""The inverse gamma distribution."""

from __future__ import annotations

import rushlight_core as core
from rushlight_core import Tensor

from . import constraints
from .gamma import Gamma
from .transformed_distribution import TransformedDistribution
from .transforms import PowerTransform

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["InverseGamma"]


class InverseGamma(TransformedDistribution):
    """The inverse gamma distribution: the reciprocal of a gamma variable.

    Args:
        concentration: the concentration of the gamma variable.
        rate: the rate of the gamma variable.
        validate_args: whether to check the arguments; true by default, unless Python runs with -O.

    Shape:
        - Parameters: (*), numbers or tensors that broadcast; their common shape is the batch shape.
        - Samples: (*sample_shape, *batch_shape).

    Raises:
        ValueError: a parameter is not positive.

    Example:
        >>> from rushlight.distributions import InverseGamma
        >>> InverseGamma(3.0, 4.0).mean  # rate / (concentration - 1)
        tensor(2.)
    """

    arg_constraints: Any = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive
    base_dist: Gamma

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        base = Gamma(concentration, rate, validate_args=validate_args)
        transform = PowerTransform(base.rate.new_tensor(-1.0))
        super().__init__(base, transform, validate_args=validate_args)

    @property
    def concentration(self) -> Tensor:
        """The concentration of the gamma variable."""
        return self.base_dist.concentration

    @property
    def rate(self) -> Tensor:
        """The rate of the gamma variable."""
        return self.base_dist.rate

    @property
    def mean(self) -> Tensor:
        finite = self.concentration > 1
        a = core.where(finite, self.concentration, 2.0)  # see Note [Gradients of infinite moments]
        return core.where(finite, self.rate / (a - 1), float("inf"))

    @property
    def mode(self) -> Tensor:
        return self.rate / (self.concentration + 1)

    @property
    def variance(self) -> Tensor:
        finite = self.concentration > 2
        a = core.where(finite, self.concentration, 3.0)  # see Note [Gradients of infinite moments]
        return core.where(finite, self.rate.square() / ((a - 1).square() * (a - 2)), float("inf"))

    def entropy(self) -> Tensor:
        a = self.concentration
        return a + self.rate.log() + a.lgamma() - (1 + a) * a.digamma()
