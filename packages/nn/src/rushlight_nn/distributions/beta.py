"""The beta distribution."""

from __future__ import annotations

from collections.abc import Sequence

import rushlight_core as core
from rushlight_core import Tensor

from . import constraints
from .dirichlet import Dirichlet
from .exp_family import ExponentialFamily
from .utils import broadcast_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["Beta"]


class Beta(ExponentialFamily):
    """The beta distribution of numbers between 0 and 1.

    The density at x is proportional to ``x^(concentration1 - 1) · (1 - x)^(concentration0 - 1)``.

    Args:
        concentration1: the first concentration, often called alpha.
        concentration0: the second concentration, often called beta.
        validate_args: whether to check the arguments; true by default, unless Python runs with -O.

    Shape:
        - Parameters: (*), numbers or tensors that broadcast; their common shape is the batch shape.
        - Samples: (*sample_shape, *batch_shape).

    Raises:
        ValueError: a concentration is not positive.

    Example:
        >>> from rushlight.distributions import Beta
        >>> Beta(2.0, 2.0).log_prob(torch.tensor(0.5)).exp()
        tensor(1.5000)
    """

    concentration1: Tensor
    concentration0: Tensor

    arg_constraints: Any = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support: Any = constraints.unit_interval
    has_rsample = True

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None) -> None:
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        super().__init__(self.concentration1.shape, validate_args=validate_args)

    @property
    def _dirichlet(self) -> Dirichlet:
        """Return the Dirichlet distribution of (x, 1 - x)."""
        return Dirichlet(core.stack([self.concentration1, self.concentration0], -1), validate_args=False)

    @property
    def mean(self) -> Tensor:
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def mode(self) -> Tensor:
        return self._dirichlet.mode[..., 0]

    @property
    def variance(self) -> Tensor:
        total = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (total.square() * (total + 1))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self._dirichlet.rsample(sample_shape)[..., 0]

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        a, b = self.concentration1, self.concentration0
        powers = core.xlogy(a - 1, value) + core.special.xlog1py(b - 1, -value)
        return powers + (a + b).lgamma() - a.lgamma() - b.lgamma()

    def entropy(self) -> Tensor:
        return self._dirichlet.entropy()

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return self.concentration1, self.concentration0

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:  # type: ignore[override]
        return x.lgamma() + y.lgamma() - (x + y).lgamma()
