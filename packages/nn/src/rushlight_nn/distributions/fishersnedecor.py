"""The F distribution."""

from __future__ import annotations

from collections.abc import Sequence

import rushlight_core as core
from rushlight_core import Tensor

from . import constraints
from .distribution import Distribution
from .gamma import Gamma
from .utils import broadcast_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["FisherSnedecor"]


class FisherSnedecor(Distribution):
    """The F distribution: the ratio of two chi-squared variables, each divided by its degrees of freedom.

    Args:
        df1: degrees of freedom of the numerator.
        df2: degrees of freedom of the denominator.
        validate_args: whether to check the arguments; true by default, unless Python runs with -O.

    Shape:
        - Parameters: (*), numbers or tensors that broadcast; their common shape is the batch shape.
        - Samples: (*sample_shape, *batch_shape).

    Raises:
        ValueError: `df1` or `df2` is not positive.

    Example:
        >>> from rushlight.distributions import FisherSnedecor
        >>> FisherSnedecor(2.0, 4.0).mean  # df2 / (df2 - 2)
        tensor(2.)
    """

    df1: Tensor
    df2: Tensor

    arg_constraints: Any = {"df1": constraints.positive, "df2": constraints.positive}
    support: Any = constraints.positive
    has_rsample = True

    def __init__(self, df1: Any, df2: Any, validate_args: bool | None = None) -> None:
        self.df1, self.df2 = broadcast_all(df1, df2)
        super().__init__(self.df1.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        finite = self.df2 > 2
        n = core.where(finite, self.df2, 3.0)  # see Note [Gradients of infinite moments]
        return core.where(finite, n / (n - 2), float("nan"))

    @property
    def mode(self) -> Tensor:
        mode = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return core.where(self.df1 > 2, mode, float("nan"))

    @property
    def variance(self) -> Tensor:
        m = self.df1
        finite = self.df2 > 4
        n = core.where(finite, self.df2, 5.0)  # see Note [Gradients of infinite moments]
        variance = 2 * n.square() * (m + n - 2) / (m * (n - 2).square() * (n - 4))
        return core.where(finite, variance, float("nan"))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        first, second = (Gamma(df / 2, df / 2, validate_args=False) for df in (self.df1, self.df2))
        value = first.rsample(sample_shape) / second.rsample(sample_shape)
        value.detach().clamp_(min=core.finfo(value.dtype).tiny)  # zero would have no logarithm
        return value

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        ratio, half1, half2 = self.df1 / self.df2, self.df1 / 2, self.df2 / 2
        constant = (half1 + half2).lgamma() - half1.lgamma() - half2.lgamma() + half1 * ratio.log()
        return constant + (half1 - 1) * value.log() - (half1 + half2) * (ratio * value).log1p()
