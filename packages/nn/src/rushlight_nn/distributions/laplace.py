"""The two-sided exponential distribution."""

from __future__ import annotations

from collections.abc import Sequence

import rushlight_core as core
from rushlight_core import Tensor

from . import constraints
from .distribution import Distribution
from .utils import broadcast_all, open_uniform

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["Laplace"]


class Laplace(Distribution):
    """The two-sided exponential distribution around `loc` of scale `scale`.

    Raises:
        ValueError: a scale is not positive.
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.loc

    mode = mean

    @property
    def variance(self) -> Tensor:
        return 2 * self.scale.square()

    @property
    def stddev(self) -> Tensor:
        return self.scale * 2**0.5

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        eps = core.finfo(self.loc.dtype).eps
        u = (2 * open_uniform(self._extended_shape(sample_shape), self.loc) - 1).clamp(eps - 1, 1 - eps)
        return self.loc - self.scale * u.sign() * (-u.abs()).log1p()

    def _standard(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return (value - self.loc) / self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        return -self._standard(value).abs() - (2 * self.scale).log()

    def cdf(self, value: Tensor) -> Tensor:
        z = self._standard(value)
        return 0.5 - 0.5 * z.sign() * (-z.abs()).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        centred = value - 0.5
        return self.loc - self.scale * centred.sign() * (-2 * centred.abs()).log1p()

    def entropy(self) -> Tensor:
        return 1 + (2 * self.scale).log()
