"""The generalised Pareto distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence

import rushlight_core as core
from rushlight_core import Tensor

from . import constraints
from .distribution import Distribution
from .utils import broadcast_all, open_uniform

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["GeneralizedPareto"]


class GeneralizedPareto(Distribution):
    """The generalised Pareto distribution: excesses over a high threshold (Pickands 1975).

    Args:
        loc: the threshold.
        scale: the scale.
        concentration: 0 for an exponential tail, above 0 for a heavier tail. If the concentration is below 0, the largest
            possible value is loc - scale / concentration.
        validate_args: whether to check the arguments; true by default, unless Python runs with -O.

    Shape:
        - Parameters: (*), numbers or tensors that broadcast; their common shape is the batch shape.
        - Samples: (*sample_shape, *batch_shape).

    Raises:
        ValueError: a scale is not positive.

    Example:
        >>> from rushlight.distributions import GeneralizedPareto
        >>> GeneralizedPareto(0.0, 1.0, 0.0).cdf(torch.tensor(1.0))  # 1 - e^-1
        tensor(0.6321)
    """

    loc: Tensor
    scale: Tensor
    concentration: Tensor

    arg_constraints: Any = {
        "loc": constraints.real,
        "scale": constraints.positive,
        "concentration": constraints.real,
    }
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        end = core.where(self.concentration < 0, self.loc - self.scale / self.concentration, math.inf)
        return constraints.interval(self.loc, end)

    def _split(self) -> tuple[Tensor, Tensor, Tensor]:
        """Separate the concentrations that are nearly zero from the other concentrations.

        Return three tensors: a mask of the concentrations whose magnitude exceeds the machine epsilon; the concentrations,
        with 1 wherever the mask is False; and the concentrations, with 0 wherever the mask is True.
        """
        curved = self.concentration.abs() > core.finfo(self.concentration.dtype).eps
        return (
            curved,
            core.where(curved, self.concentration, 1.0),
            core.where(curved, 0.0, self.concentration),
        )

    @property
    def mean(self) -> Tensor:
        finite = self.concentration < 1
        xi = core.where(finite, self.concentration, 0.0)  # see Note [Gradients of infinite moments]
        return core.where(finite, self.loc + self.scale / (1 - xi), math.nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        finite = self.concentration < 0.5
        xi = core.where(finite, self.concentration, 0.0)  # see Note [Gradients of infinite moments]
        return core.where(finite, self.scale.square() / ((1 - xi).square() * (1 - 2 * xi)), math.nan)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.icdf(open_uniform(self._extended_shape(sample_shape), self.loc))

    def _above(self, log_survival: Tensor) -> Tensor:
        """Return the value that a sample exceeds with the probability exp(log_survival)."""
        curved, xi, nearly = self._split()
        # This series has a gradient. At the end of the support, its second term would be 0 * inf.
        finite = core.where(log_survival.isfinite(), log_survival, 0.0)
        flat = -log_survival + 0.5 * nearly * finite * finite
        steps = core.where(curved, (-xi * core.where(curved, log_survival, 0.0)).expm1() / xi, flat)
        return self.loc + self.scale * steps

    def log_survival_function(self, value: Tensor) -> Tensor:
        """Return the logarithm of the probability that a sample is above `value`."""
        if self._validate_args:
            self._validate_sample(value)
        curved, xi, nearly = self._split()
        z = (value - self.loc) / self.scale
        log = (xi * core.where(curved, z, 0.0)).clamp(min=-1).log1p()
        finite = core.where(z.isfinite(), z, 0.0)  # see _above
        return core.where(curved, -log / xi, 0.5 * nearly * finite * finite - z)

    def log_prob(self, value: Tensor) -> Tensor:
        # The density is S(z)^(1 + xi) / scale. For xi = -1 it is uniform, and S may be 0.
        power, log = 1 + self.concentration, self.log_survival_function(value)
        return core.where(power == 0, 0.0, power * log) - self.scale.log()

    def log_cdf(self, value: Tensor) -> Tensor:
        """Return the logarithm of the probability that a sample is at most `value`."""
        return (-self.log_survival_function(value).exp()).log1p()

    def cdf(self, value: Tensor) -> Tensor:
        return -self.log_survival_function(value).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        return self._above((-value).log1p())

    def entropy(self) -> Tensor:
        return self.scale.log() + self.concentration + 1
