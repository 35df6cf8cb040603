"""The Pareto distribution."""

from __future__ import annotations

import math

import rushlight_core as core
from rushlight_core import Tensor

from . import constraints
from .exponential import Exponential
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, ExpTransform
from .utils import broadcast_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["Pareto"]

# Note [Gradients of infinite moments]
#
# Where the mean or the variance of a distribution is infinite or undefined, where() selects a constant instead of the
# formula, and passes the gradient 0 to the formula. At a pole of the formula, such as alpha = 2 for the variance here,
# this 0 would be multiplied by an infinite derivative, which is NaN. Therefore, the formula is computed there with
# another parameter, whose moment is finite.


class Pareto(TransformedDistribution):
    """The Pareto distribution of numbers above `scale`.

    The probability that a sample is above x is ``(scale / x)^alpha``.

    Args:
        scale: the lower limit of the samples.
        alpha: the exponent.
        validate_args: whether to check the arguments; true by default, unless Python runs with -O.

    Shape:
        - Parameters: (*), numbers or tensors that broadcast; their common shape is the batch shape.
        - Samples: (*sample_shape, *batch_shape).

    Raises:
        ValueError: a parameter is not positive.

    Example:
        >>> from rushlight.distributions import Pareto
        >>> Pareto(1.0, 2.0).mean  # alpha · scale / (alpha - 1)
        tensor(2.)
    """

    scale: Tensor
    alpha: Tensor

    arg_constraints: Any = {"alpha": constraints.positive, "scale": constraints.positive}

    def __init__(self, scale: Any, alpha: Any, validate_args: bool | None = None) -> None:
        self.scale, self.alpha = broadcast_all(scale, alpha)
        base = Exponential(self.alpha, validate_args=validate_args)
        transforms = [ExpTransform(), AffineTransform(0, self.scale)]
        super().__init__(base, transforms, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        return constraints.greater_than_eq(self.scale)

    @property
    def mean(self) -> Tensor:
        finite = self.alpha > 1
        a = core.where(finite, self.alpha, 2.0)  # see Note [Gradients of infinite moments]
        return core.where(finite, a * self.scale / (a - 1), math.inf)

    @property
    def mode(self) -> Tensor:
        return self.scale

    @property
    def variance(self) -> Tensor:
        finite = self.alpha > 2
        a = core.where(finite, self.alpha, 3.0)  # see Note [Gradients of infinite moments]
        return core.where(finite, self.scale.square() * a / ((a - 1).square() * (a - 2)), math.inf)

    def entropy(self) -> Tensor:
        return (self.scale / self.alpha).log() + (1 + self.alpha.reciprocal())
