"""The continuous Bernoulli distribution."""

from __future__ import annotations

from collections.abc import Sequence

import rushlight_core as core
from rushlight_core import Tensor

from . import constraints
from .exp_family import ExponentialFamily
from .probs_or_logits import ProbsOrLogits
from .utils import broadcast_all, clamp_probs, open_uniform

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["ContinuousBernoulli"]


class ContinuousBernoulli(ProbsOrLogits, ExponentialFamily):
    """The continuous Bernoulli distribution of numbers between 0 and 1.

    The density at x is proportional to ``probs^x · (1 - probs)^(1 - x)`` (Loaiza-Ganem and Cunningham 2019).

    Args:
        probs: the parameter, from 0 to 1, which is not the mean.
        logits: ``log(probs / (1 - probs))``, given instead of `probs`.
        lims: the limits of an interval around 0.5. If `probs` is in this interval, the distribution is nearly uniform,
            and its moments and probabilities are computed from Taylor series.
        validate_args: whether to check the arguments; true by default, unless Python runs with -O.

    Shape:
        - Parameters: (*), numbers or tensors that broadcast; their common shape is the batch shape.
        - Samples: (*sample_shape, *batch_shape).

    Raises:
        ValueError: both or neither of `probs` and `logits` are given, or a probability is not between 0 and 1.

    Example:
        >>> from rushlight.distributions import ContinuousBernoulli
        >>> ContinuousBernoulli(probs=0.5).mean  # uniform
        tensor(0.5000)
    """

    arg_constraints: Any = {"probs": constraints.unit_interval, "logits": constraints.real}
    support: Any = constraints.unit_interval
    has_rsample = True

    def __init__(
        self,
        probs: Any = None,
        logits: Any = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:
        name, given = self._given(probs, logits)
        (value,) = broadcast_all(given)
        self.__dict__[name] = value
        self._lims = lims
        super().__init__(value.shape, validate_args=validate_args)
        if name == "probs":
            self.__dict__[name] = clamp_probs(value)

    def _split(self) -> tuple[Tensor, Tensor, Tensor]:
        """Separate the elements whose `probs` are outside `lims` from the other elements.

        Return three tensors: a mask of the elements outside `lims`; the log-odds, with 1 wherever the mask is False; and the
        log-odds, with 0 wherever the mask is True.
        """
        low, high = self._lims
        steep = (self.probs < low) | (self.probs > high)
        return steep, core.where(steep, self.logits, 1.0), core.where(steep, 0.0, self.logits)

    @property
    def mean(self) -> Tensor:
        steep, s, x = self._split()
        # 1 / (1 - e^-s) - 1 / s
        return core.where(steep, -1 / (-s).expm1() - 1 / s, 0.5 + x / 12 - x.pow(3) / 720)

    @property
    def variance(self) -> Tensor:
        steep, s, x = self._split()
        exact = s.pow(-2) - 0.25 * (s / 2).sinh().pow(-2)
        return core.where(steep, exact, 1 / 12 - x.square() / 240 + x.pow(4) / 6048)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.icdf(open_uniform(self._extended_shape(sample_shape), self._param))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return self.logits * value - self._log_normalizer(self.logits)

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        steep, s, x = self._split()
        # (e^sv - 1) / (e^s - 1). For s > 0 the complement is computed, so that the exponentials do not overflow.
        fall = -s.abs()
        share = (fall * core.where(s > 0, 1 - value, value)).expm1() / fall.expm1()
        exact = core.where(s > 0, 1 - share, share)
        near = value * (1 - value)
        series = value - near * x / 2 + near * (1 - 2 * value) * x.square() / 12
        return core.where(steep, exact, series).clamp(0, 1)

    def icdf(self, value: Tensor) -> Tensor:
        steep, s, x = self._split()
        fall = -s.abs()
        share = (core.where(s > 0, 1 - value, value) * fall.expm1()).log1p() / fall
        exact = core.where(s > 0, 1 - share, share)
        near = value * (1 - value)
        series = value + near * x / 2 + near * (1 - 2 * value) * x.square() / 6
        return core.where(steep, exact, series)

    def entropy(self) -> Tensor:
        return self._log_normalizer(self.logits) - self.logits * self.mean

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.logits,)

    def _log_normalizer(self, x: Tensor) -> Tensor:  # type: ignore[override]
        """Return log((e^x - 1) / x)."""
        steep = x.abs() > 0.02
        s, near = core.where(steep, x, 1.0), core.where(steep, 0.0, x)
        exact = s.clamp(min=0) + (-(-s.abs()).expm1() / s.abs()).log()
        return core.where(steep, exact, near / 2 + near.square() / 24 - near.pow(4) / 2880)

    _mean_carrier_measure: Any = 0
