"""Distributions of real numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence

import rushlight_core as core
from rushlight_core import Tensor

from .distribution import Distribution, broadcast_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar

_EULER = 0.5772156649015329


class _LocationScale(Distribution):
    """Distributions of loc + scale · noise."""

    has_rsample = True
    _names: ClassVar[tuple[str, ...]] = ("loc", "scale")
    loc: Tensor
    scale: Tensor

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, (), validate_args)
        self._check("scale", self.scale > 0, "positive numbers")
        self._check("loc", self.loc == self.loc, "numbers")

    def _standard(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._check("value", value == value, "numbers")
        return (value - self.loc) / self.scale

    def _uniform(self, sample_shape: Sequence[int]) -> Tensor:
        """Numbers strictly between 0 and 1."""
        tiny = core.finfo(self.loc.dtype).tiny
        shape = self._shape(sample_shape)
        return core.rand(shape, dtype=self.loc.dtype, device=self.loc.device).clamp_(min=tiny)


class Normal(_LocationScale):
    """The normal distribution of mean `loc` and standard deviation `scale`.

    Raises:
        ValueError: a scale is not positive.
    """

    @property
    def mean(self) -> Tensor:
        return self.loc

    mode = mean

    @property
    def stddev(self) -> Tensor:
        return self.scale

    @property
    def variance(self) -> Tensor:
        return self.scale.square()

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._shape(sample_shape)
        return self.loc + self.scale * core.randn(shape, dtype=self.loc.dtype, device=self.loc.device)

    def log_prob(self, value: Tensor) -> Tensor:
        z = self._standard(value)
        return -0.5 * z * z - self.scale.log() - 0.5 * math.log(2 * math.pi)

    def cdf(self, value: Tensor) -> Tensor:
        return core.special.ndtr(self._standard(value))

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc + self.scale * core.special.ndtri(value)

    def entropy(self) -> Tensor:
        return 0.5 + 0.5 * math.log(2 * math.pi) + self.scale.log()


class Laplace(_LocationScale):
    """The two-sided exponential distribution around `loc` of scale `scale`.

    Raises:
        ValueError: a scale is not positive.
    """

    @property
    def mean(self) -> Tensor:
        return self.loc

    mode = mean

    @property
    def variance(self) -> Tensor:
        return 2 * self.scale.square()

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        eps = core.finfo(self.loc.dtype).eps
        u = (2 * self._uniform(sample_shape) - 1).clamp(eps - 1, 1 - eps)
        return self.loc - self.scale * u.sign() * (-u.abs()).log1p()

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


class Cauchy(_LocationScale):
    """The Cauchy distribution around `loc`, half of it within `scale`; it has no mean.

    Raises:
        ValueError: a scale is not positive.
    """

    @property
    def mean(self) -> Tensor:
        return core.full_like(self.loc, math.nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return core.full_like(self.loc, math.inf)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.loc + self.scale * (math.pi * (self._uniform(sample_shape) - 0.5)).tan()

    def log_prob(self, value: Tensor) -> Tensor:
        return -math.log(math.pi) - self.scale.log() - self._standard(value).square().log1p()

    def cdf(self, value: Tensor) -> Tensor:
        return self._standard(value).atan() / math.pi + 0.5

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc + self.scale * (math.pi * (value - 0.5)).tan()

    def entropy(self) -> Tensor:
        return math.log(4 * math.pi) + self.scale.log()


class Gumbel(_LocationScale):
    """The distribution of the greatest of many exponential ones, with its mode at `loc`.

    Raises:
        ValueError: a scale is not positive.
    """

    @property
    def mean(self) -> Tensor:
        return self.loc + self.scale * _EULER

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return self.scale.square() * (math.pi**2 / 6)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        u = self._uniform(sample_shape).clamp(max=1 - core.finfo(self.loc.dtype).eps / 2)
        return self.loc - self.scale * (-u.log()).log()

    def log_prob(self, value: Tensor) -> Tensor:
        z = self._standard(value)
        return -z - (-z).exp() - self.scale.log()

    def cdf(self, value: Tensor) -> Tensor:
        return (-(-self._standard(value)).exp()).exp()

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc - self.scale * (-value.log()).log()

    def entropy(self) -> Tensor:
        return self.scale.log() + (1 + _EULER)


class LogNormal(_LocationScale):
    """The distribution of the exponential of a normal one of mean `loc` and standard deviation `scale`.

    Raises:
        ValueError: a scale is not positive.
    """

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

    def _normal(self) -> Normal:
        return Normal(self.loc, self.scale, validate_args=False)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self._normal().rsample(sample_shape).exp()

    def log_prob(self, value: Tensor) -> Tensor:
        self._check("value", value > 0, "positive numbers")
        logs = value.log()
        return self._normal().log_prob(logs) - logs

    def cdf(self, value: Tensor) -> Tensor:
        return self._normal().cdf(value.log())

    def icdf(self, value: Tensor) -> Tensor:
        return self._normal().icdf(value).exp()

    def entropy(self) -> Tensor:
        return self._normal().entropy() + self.loc


class Uniform(Distribution):
    """The uniform distribution from `low` to `high`, which does not belong to it.

    Raises:
        ValueError: `low` is not less than `high`.
    """

    has_rsample = True
    _names: ClassVar[tuple[str, ...]] = ("low", "high")

    def __init__(self, low: Any, high: Any, validate_args: bool | None = None) -> None:
        self.low, self.high = broadcast_all(low, high)
        super().__init__(self.low.shape, (), validate_args)
        self._check("low", self.low < self.high, "numbers below high")

    @property
    def mean(self) -> Tensor:
        return (self.low + self.high) / 2

    @property
    def variance(self) -> Tensor:
        return (self.high - self.low).square() / 12

    @property
    def mode(self) -> Tensor:
        return core.full_like(self.low, math.nan)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        u = core.rand(self._shape(sample_shape), dtype=self.low.dtype, device=self.low.device)
        return self.low + u * (self.high - self.low)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check("value", (value >= self.low) & (value <= self.high), "numbers from low to high")
        inside = (value >= self.low) & (value < self.high)
        return inside.to(self.low.dtype).log() - (self.high - self.low).log()

    def cdf(self, value: Tensor) -> Tensor:
        return ((value - self.low) / (self.high - self.low)).clamp(0, 1)

    def icdf(self, value: Tensor) -> Tensor:
        return self.low + value * (self.high - self.low)

    def entropy(self) -> Tensor:
        return (self.high - self.low).log()


class Exponential(Distribution):
    """The exponential distribution of mean 1 / `rate`.

    Raises:
        ValueError: a rate is not positive.
    """

    has_rsample = True
    _names: ClassVar[tuple[str, ...]] = ("rate",)

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.shape, (), validate_args)
        self._check("rate", self.rate > 0, "positive numbers")

    @property
    def mean(self) -> Tensor:
        return self.rate.reciprocal()

    stddev = mean

    @property
    def mode(self) -> Tensor:
        return core.zeros_like(self.rate)

    @property
    def variance(self) -> Tensor:
        return self.rate.pow(-2)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        noise = core.empty(self._shape(sample_shape), dtype=self.rate.dtype, device=self.rate.device)
        return noise.exponential_() / self.rate

    def log_prob(self, value: Tensor) -> Tensor:
        self._check("value", value >= 0, "numbers of at least 0")
        return self.rate.log() - self.rate * value

    def cdf(self, value: Tensor) -> Tensor:
        return -(-self.rate * value).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        return -(-value).log1p() / self.rate

    def entropy(self) -> Tensor:
        return 1 - self.rate.log()


class HalfNormal(Distribution):
    """The distribution of the absolute value of a normal one of mean 0 and standard deviation `scale`.

    Raises:
        ValueError: a scale is not positive.
    """

    has_rsample = True
    _names: ClassVar[tuple[str, ...]] = ("scale",)

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        (self.scale,) = broadcast_all(scale)
        super().__init__(self.scale.shape, (), validate_args)
        self._check("scale", self.scale > 0, "positive numbers")

    @property
    def mean(self) -> Tensor:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def mode(self) -> Tensor:
        return core.zeros_like(self.scale)

    @property
    def variance(self) -> Tensor:
        return self.scale.square() * (1 - 2 / math.pi)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._shape(sample_shape)
        return (self.scale * core.randn(shape, dtype=self.scale.dtype, device=self.scale.device)).abs()

    def log_prob(self, value: Tensor) -> Tensor:
        self._check("value", value >= 0, "numbers of at least 0")
        z = value / self.scale
        logs = 0.5 * math.log(2 / math.pi) - 0.5 * z * z - self.scale.log()
        return core.where(value >= 0, logs, -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        return (value / (self.scale * math.sqrt(2))).erf()

    def icdf(self, value: Tensor) -> Tensor:
        return self.scale * core.special.ndtri((value + 1) / 2)

    def entropy(self) -> Tensor:
        return 0.5 * math.log(math.pi / 2) + 0.5 + self.scale.log()
