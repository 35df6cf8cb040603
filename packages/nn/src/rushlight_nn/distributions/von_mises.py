"""The von Mises distribution."""

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

__all__ = ["VonMises"]


class VonMises(Distribution):
    """The von Mises distribution of angles in radians.

    The density of an angle is proportional to ``exp(concentration · cos(angle - loc))``. Samples are drawn by the method of
    Best and Fisher 1979, and computed in float64.

    Args:
        loc: the mean direction.
        concentration: the concentration around the mean direction.
        validate_args: whether to check the arguments; true by default, unless Python runs with -O.

    Shape:
        - Parameters: (*), numbers or tensors that broadcast; their common shape is the batch shape.
        - Samples: (*sample_shape, *batch_shape), with values from -π to π.

    Raises:
        ValueError: a concentration is not positive.

    Example:
        >>> from rushlight.distributions import VonMises
        >>> dist = VonMises(0.0, 1.0)
        >>> bool(dist.sample((100,)).abs().max() <= torch.pi)
        True
    """

    loc: Tensor
    concentration: Tensor

    arg_constraints: Any = {"loc": constraints.real, "concentration": constraints.positive}
    support: Any = constraints.real

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        """The circular mean."""
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        """The circular variance: 1 minus the length of the mean of the vectors (cos x, sin x)."""
        k = self.concentration
        return 1 - core.special.i1e(k) / core.special.i0e(k)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        # exp(-k) I0(k) does not overflow, and cos - 1 is computed as -2 sin² of the half angle to avoid cancellation.
        half = (0.5 * (value - self.loc)).sin()
        k = self.concentration
        return -2 * k * half.square() - math.log(2 * math.pi) - core.special.i0e(k).log()

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with core.no_grad():
            loc, k = self.loc.double(), self.concentration.double().clamp(min=1e-8)
            shape = self._extended_shape(sample_shape)
            tau = 1 + (1 + 4 * k.square()).sqrt()
            rho = (tau - (2 * tau).sqrt()) / (2 * k)
            # For small k the difference in rho cancels, so compute r from its series.
            r = core.where(k < 1e-5, 1 / k + k, (1 + rho.square()) / (2 * rho))
            k, r = k.expand(shape), r.expand(shape)
            angle = core.zeros(shape, dtype=core.float64, device=loc.device)
            done = core.zeros(shape, dtype=core.bool, device=loc.device)
            while not bool(done.all()):
                u = open_uniform((3, *shape), k)
                z = (math.pi * u[0]).cos()
                f = (1 + r * z) / (r + z)
                c = k * (r - f)
                accepted = (c * (2 - c) > u[1]) | ((c / u[1]).log() + 1 - c >= 0)
                drawn = (u[2] - 0.5).sign() * f.clamp(-1, 1).acos()
                # A later angle replaces an earlier one, as in PyTorch. Both have the right distribution.
                angle = core.where(accepted, drawn, angle)
                done = done | accepted
            return ((angle + math.pi + loc) % (2 * math.pi) - math.pi).to(self.loc.dtype)
