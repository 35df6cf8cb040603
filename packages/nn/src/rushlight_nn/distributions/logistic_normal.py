"""The logistic-normal distribution."""

from __future__ import annotations

from rushlight_core import Tensor

from . import constraints
from .independent import Independent
from .normal import Normal
from .transformed_distribution import TransformedDistribution
from .transforms import StickBreakingTransform

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["LogisticNormal"]


class LogisticNormal(TransformedDistribution):
    """The logistic-normal distribution of vectors that sum to 1.

    A sample is a vector of normal variables, transformed by :class:`StickBreakingTransform`.

    Args:
        loc: means of the normal variables.
        scale: standard deviations of the normal variables.
        validate_args: whether to check the arguments; true by default, unless Python runs with -O.

    Shape:
        - Parameters: (*, K); all but the last dimension are the batch shape.
        - Samples: (*sample_shape, *batch_shape, K + 1).

    Raises:
        ValueError: a scale is not positive.

    Example:
        >>> from rushlight.distributions import LogisticNormal
        >>> LogisticNormal(torch.zeros(2), torch.ones(2)).sample().sum()
        tensor(1.)
    """

    arg_constraints: Any = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex
    base_dist: Independent

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        if not base.batch_shape:
            base = base.expand((1,))
        super().__init__(base, StickBreakingTransform(), validate_args=validate_args)

    @property
    def _normal(self) -> Normal:
        base: Any = self.base_dist.base_dist
        return base

    @property
    def loc(self) -> Tensor:
        """The means of the normal variables."""
        return self._normal.loc

    @property
    def scale(self) -> Tensor:
        """The standard deviations of the normal variables."""
        return self._normal.scale
