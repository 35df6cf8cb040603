"""Student's t distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence

import rushlight_core as core
from rushlight_core import Tensor

from . import constraints
from .distribution import Distribution
from .gamma import Gamma
from .utils import broadcast_all, standard_normal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["StudentT"]


class StudentT(Distribution):
    """Student's t distribution.

    Args:
        df: the degrees of freedom.
        loc: the location.
        scale: the scale.
        validate_args: whether to check the arguments; true by default, unless Python runs with -O.

    Shape:
        - Parameters: (*), numbers or tensors that broadcast; their common shape is the batch shape.
        - Samples: (*sample_shape, *batch_shape).

    Raises:
        ValueError: `df` or a scale is not positive.

    Example:
        >>> from rushlight.distributions import StudentT
        >>> StudentT(4.0).variance  # df / (df - 2)
        tensor(2.)
    """

    df: Tensor
    loc: Tensor
    scale: Tensor

    arg_constraints: Any = {
        "df": constraints.positive,
        "loc": constraints.real,
        "scale": constraints.positive,
    }
    support: Any = constraints.real
    has_rsample = True

    def __init__(self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None) -> None:
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        super().__init__(self.df.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return core.where(self.df > 1, self.loc, math.nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        finite = self.df > 2
        df = core.where(finite, self.df, 3.0)  # see Note [Gradients of infinite moments]
        variance = self.scale.square() * df / (df - 2)
        return core.where(finite, variance, core.where(self.df > 1, math.inf, math.nan).to(variance.dtype))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        # A normal variable divided by the root of a chi-squared variable that is divided by its degrees of freedom.
        x = standard_normal(self._extended_shape(sample_shape), self.df)
        mean_square = Gamma(self.df / 2, self.df / 2, validate_args=False).rsample(sample_shape)
        return self.loc + self.scale * x * mean_square.rsqrt()

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        z = (value - self.loc) / self.scale
        half = (self.df + 1) / 2
        constant = self.scale.log() + 0.5 * (self.df * math.pi).log() + (self.df / 2).lgamma() - half.lgamma()
        return -half * (z.square() / self.df).log1p() - constant

    def entropy(self) -> Tensor:
        half, more = self.df / 2, (self.df + 1) / 2
        beta = 0.5 * math.log(math.pi) + half.lgamma() - more.lgamma()
        return self.scale.log() + more * (more.digamma() - half.digamma()) + 0.5 * self.df.log() + beta
