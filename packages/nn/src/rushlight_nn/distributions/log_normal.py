"""The log-normal distribution."""

from __future__ import annotations

from rushlight_core import Tensor

from . import constraints
from .normal import Normal
from .transformed_distribution import TransformedDistribution
from .transforms import ExpTransform

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["LogNormal"]


class LogNormal(TransformedDistribution):
    """The log-normal distribution: the exponential of a normal variable.

    Args:
        loc: mean of the normal variable.
        scale: standard deviation of the normal variable.
        validate_args: whether to check the arguments; true by default, unless Python runs with -O.

    Shape:
        - Parameters: (*), numbers or tensors that broadcast; their common shape is the batch shape.
        - Samples: (*sample_shape, *batch_shape).

    Raises:
        ValueError: a scale is not positive.

    Example:
        >>> from rushlight.distributions import LogNormal
        >>> LogNormal(0.0, 1.0).mean  # e^(1 / 2)
        tensor(1.6487)
    """

    arg_constraints: Any = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.positive
    base_dist: Normal

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    @property
    def loc(self) -> Tensor:
        """The mean of the normal variable: the mean of the logarithm of a sample."""
        return self.base_dist.loc

    @property
    def scale(self) -> Tensor:
        """The standard deviation of the normal variable: the standard deviation of the logarithm of a sample."""
        return self.base_dist.scale

    @property
    def mean(self) -> Tensor:
        return (self.loc + self.scale.square() / 2).exp()

    @property
    def mode(self) -> Tensor:
        return (self.loc - self.scale.square()).exp()

    @property
    def variance(self) -> Tensor:
        square = self.scale.square()
        return square.expm1() * (2 * self.loc + square).exp()

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() + self.loc
