"""The Dirichlet distribution."""

from __future__ import annotations

from collections.abc import Sequence

import rushlight_core as core
from rushlight_core import Tensor

from .._typing import Any
from . import constraints
from .exp_family import ExponentialFamily

__all__ = ["Dirichlet"]


class Dirichlet(ExponentialFamily):
    """The Dirichlet distribution of vectors that sum to 1.

    The density of a vector x is proportional to the product of ``x_i^(concentration_i - 1)`` over all i.

    Args:
        concentration: the concentrations.
        validate_args: whether to check the arguments; true by default, unless Python runs with -O.

    Shape:
        - `concentration`: (*, K); all but the last dimension are the batch shape.
        - Samples: (*sample_shape, *batch_shape, K).

    Raises:
        ValueError: a concentration is not positive, or `concentration` is 0-dimensional.

    Example:
        >>> from rushlight.distributions import Dirichlet
        >>> dist = Dirichlet(torch.tensor([1.0, 3.0]))
        >>> dist.mean, dist.sample((5,)).sum(-1)
        (tensor([0.2500, 0.7500]), tensor([1.0000, 1.0000, 1.0000, 1.0000, 1.0000]))
    """

    arg_constraints: Any = {"concentration": constraints.independent(constraints.positive, 1)}
    support: Any = constraints.simplex
    has_rsample = True

    def __init__(self, concentration: Tensor, validate_args: bool | None = None) -> None:
        if concentration.dim() < 1:
            raise ValueError("Dirichlet(concentration): must be at least 1-dimensional, got a scalar")
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:], validate_args)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.concentration.sum(-1, True)

    @property
    def mode(self) -> Tensor:
        # If all concentrations are below 1, the mode is the corner of the greatest concentration.
        above = (self.concentration - 1).clamp(min=0)
        mode = above / above.sum(-1, True)
        corner = core.zeros_like(mode).scatter_(-1, self.concentration.argmax(-1, True), 1.0)
        return core.where((self.concentration < 1).all(-1, True), corner, mode)

    @property
    def variance(self) -> Tensor:
        total = self.concentration.sum(-1, True)
        return self.concentration * (total - self.concentration) / (total.square() * (total + 1))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        drawn = core._sample_dirichlet(self.concentration.expand(self._extended_shape(sample_shape)))
        # Elements that round to 0 or 1 would have infinite densities.
        info = core.finfo(drawn.dtype)
        return drawn.clamp(info.tiny, 1 - info.eps / 2)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return core.xlogy(self.concentration - 1, value).sum(-1) - self._log_normalizer(self.concentration)

    def entropy(self) -> Tensor:
        a, total = self.concentration, self.concentration.sum(-1)
        expected = ((a - 1) * a.digamma()).sum(-1) - (total - a.shape[-1]) * total.digamma()
        return self._log_normalizer(a) - expected

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.concentration,)

    def _log_normalizer(self, x: Tensor) -> Tensor:  # type: ignore[override]
        return x.lgamma().sum(-1) - x.sum(-1).lgamma()
