"""Elementwise transforms."""

from __future__ import annotations

import math
from collections.abc import Sequence

import rushlight_core as core
from rushlight_core import Tensor

from ...functional import softplus
from .. import constraints
from ..utils import sum_rightmost
from .base import Transform

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class _Plain(Transform):
    """Base class of transforms without parameters: all instances of a class are equal."""

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self)

    __hash__: Any = object.__hash__


class ExpTransform(_Plain):
    """The transform ``y = exp(x)``.

    Args:
        cache_size: 0 for no cache, or 1 to cache the last input and output, so that inverting this output
            returns exactly this input.

    Shape:
        - Input and output: (*), any shape.

    Example:
        >>> from rushlight.distributions import ExpTransform
        >>> ExpTransform()(torch.tensor([0.0, 1.0]))
        tensor([1.0000, 2.7183])
    """

    domain = constraints.real
    codomain = constraints.positive
    bijective = True
    sign = 1

    def _call(self, x: Tensor) -> Tensor:
        return x.exp()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x


class PowerTransform(Transform):
    """The transform ``y = x^exponent`` of positive numbers.

    Args:
        exponent: the exponent, a number or a tensor.
        cache_size: 0 for no cache, or 1 to cache the last input and output, so that inverting this output
            returns exactly this input.

    Shape:
        - Input: (*). Output: (*), broadcast with the exponent.

    Example:
        >>> from rushlight.distributions import PowerTransform
        >>> PowerTransform(2.0)(torch.tensor([1.0, 3.0]))
        tensor([1., 9.])
    """

    domain = constraints.positive
    codomain = constraints.positive
    bijective = True

    def __init__(self, exponent: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.exponent: Tensor = exponent if isinstance(exponent, Tensor) else core.as_tensor(exponent)

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self if self._cache_size == cache_size else PowerTransform(self.exponent, cache_size)

    @property
    def sign(self) -> Tensor:
        return self.exponent.sign()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PowerTransform) and _same(self.exponent, other.exponent)

    __hash__: Any = object.__hash__

    def _call(self, x: Tensor) -> Tensor:
        return x.pow(self.exponent)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.pow(1 / self.exponent.to(y.dtype))

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return (self.exponent * y / x).abs().log()

    def forward_shape(self, shape: Sequence[int]) -> Any:
        return core.broadcast_shapes(shape, self.exponent.shape)

    inverse_shape = forward_shape


class SigmoidTransform(_Plain):
    """The transform ``y = 1 / (1 + exp(-x))``, clamped to values strictly between 0 and 1.

    Args:
        cache_size: 0 for no cache, or 1 to cache the last input and output, so that inverting this output
            returns exactly this input.

    Shape:
        - Input and output: (*), any shape.

    Example:
        >>> from rushlight.distributions import SigmoidTransform
        >>> SigmoidTransform().inv(torch.tensor([0.5, 0.9]))
        tensor([0.0000, 2.1972])
    """

    domain = constraints.real
    codomain = constraints.unit_interval
    bijective = True
    sign = 1

    def _call(self, x: Tensor) -> Tensor:
        info = core.finfo(x.dtype)
        return x.sigmoid().clamp(info.tiny, 1 - info.eps)

    def _inverse(self, y: Tensor) -> Tensor:
        info = core.finfo(y.dtype)
        y = y.clamp(info.tiny, 1 - info.eps)
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -softplus(-x) - softplus(x)


class SoftplusTransform(_Plain):
    """The transform ``y = log(1 + exp(x))``.

    Args:
        cache_size: 0 for no cache, or 1 to cache the last input and output, so that inverting this output
            returns exactly this input.

    Shape:
        - Input and output: (*), any shape.

    Example:
        >>> from rushlight.distributions import SoftplusTransform
        >>> SoftplusTransform()(torch.tensor([0.0, 1.0]))
        tensor([0.6931, 1.3133])
    """

    domain = constraints.real
    codomain = constraints.positive
    bijective = True
    sign = 1

    def _call(self, x: Tensor) -> Tensor:
        return softplus(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return (-y).expm1().neg().log() + y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -softplus(-x)


class TanhTransform(_Plain):
    """The transform ``y = tanh(x)``.

    Args:
        cache_size: 0 for no cache, or 1 to cache the last input and output, so that inverting this output
            returns exactly this input.

    Shape:
        - Input and output: (*), any shape.

    Example:
        >>> from rushlight.distributions import TanhTransform
        >>> TanhTransform()(torch.tensor([0.0, 1.0]))
        tensor([0.0000, 0.7616])
    """

    domain = constraints.real
    codomain: Any = constraints.interval(-1.0, 1.0)
    bijective = True
    sign = 1

    def _call(self, x: Tensor) -> Tensor:
        return x.tanh()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.atanh()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        # Compute log(1 - tanh(x)^2) without cancellation where tanh(x) is near 1.
        return 2.0 * (math.log(2.0) - x - softplus(-2.0 * x))


class AbsTransform(_Plain):
    """The transform ``y = |x|``, which is not one-to-one; the inverse returns y, because |y| = y.

    Args:
        cache_size: 0 for no cache, or 1 to cache the last input and output, so that inverting this output
            returns exactly this input.

    Shape:
        - Input and output: (*), any shape.

    Example:
        >>> from rushlight.distributions import AbsTransform
        >>> AbsTransform()(torch.tensor([-2.0, 1.0]))
        tensor([2., 1.])
    """

    domain = constraints.real
    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return x.abs()

    def _inverse(self, y: Tensor) -> Tensor:
        return y


class AffineTransform(Transform):
    """The transform ``y = loc + scale · x``.

    Args:
        loc: the shift.
        scale: the factor.
        event_dim: the number of dimensions of an event, over which Jacobian determinants are multiplied.
        cache_size: 0 for no cache, or 1 to cache the last input and output, so that inverting this output
            returns exactly this input.

    Shape:
        - Input: (*). Output: (*), broadcast with `loc` and `scale`.

    Example:
        >>> from rushlight.distributions import AffineTransform
        >>> AffineTransform(1.0, 2.0)(torch.tensor([0.0, 3.0]))
        tensor([1., 7.])
    """

    loc: Any
    scale: Any

    bijective = True

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.loc, self.scale, self._event_dim = loc, scale, event_dim

    @property
    def event_dim(self) -> int:
        return self._event_dim

    @property
    def domain(self) -> Any:
        return (
            constraints.independent(constraints.real, self._event_dim)
            if self._event_dim
            else constraints.real
        )

    codomain = domain

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return AffineTransform(self.loc, self.scale, self._event_dim, cache_size)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, AffineTransform)
            and _same(self.loc, other.loc)
            and _same(self.scale, other.scale)
        )

    __hash__: Any = object.__hash__

    @property
    def sign(self) -> Any:
        if isinstance(self.scale, Tensor):
            return self.scale.sign()
        return (self.scale > 0) - (self.scale < 0)

    def _call(self, x: Tensor) -> Tensor:
        return self.loc + self.scale * x

    def _inverse(self, y: Tensor) -> Tensor:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        if isinstance(self.scale, Tensor):
            logs = self.scale.abs().log()
        else:
            logs = core.full_like(x, math.log(abs(self.scale)))
        shape = core.broadcast_shapes(x.shape, logs.shape)
        return sum_rightmost(logs.expand(shape), self._event_dim)

    def forward_shape(self, shape: Sequence[int]) -> Any:
        return core.broadcast_shapes(shape, getattr(self.loc, "shape", ()), getattr(self.scale, "shape", ()))

    inverse_shape = forward_shape


class CumulativeDistributionTransform(Transform):
    """The transform ``y = F(x)``, where F is the cumulative distribution function of a distribution.

    Args:
        distribution: the distribution.
        cache_size: 0 for no cache, or 1 to cache the last input and output, so that inverting this output
            returns exactly this input.

    Shape:
        - Input and output: (*), any shape.

    Example:
        >>> from rushlight.distributions import CumulativeDistributionTransform, Normal
        >>> CumulativeDistributionTransform(Normal(0.0, 1.0))(torch.tensor([0.0, 1.0]))
        tensor([0.5000, 0.8413])
    """

    bijective = True
    codomain = constraints.unit_interval
    sign = 1

    def __init__(self, distribution: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.distribution = distribution

    @property
    def domain(self) -> Any:
        return self.distribution.support

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return CumulativeDistributionTransform(self.distribution, cache_size)

    def _call(self, x: Tensor) -> Tensor:
        return self.distribution.cdf(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return self.distribution.log_prob(x)


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, Tensor) or isinstance(b, Tensor):
        return bool(core.as_tensor(a == b).all())
    return bool(a == b)
