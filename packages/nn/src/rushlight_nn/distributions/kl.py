"""The Kullback-Leibler divergence of two distributions."""

from __future__ import annotations

import math
from collections.abc import Callable

import rushlight_core as core
from rushlight_core import Tensor

from .continuous import Cauchy, Exponential, Gumbel, HalfNormal, Laplace, LogNormal, Normal, Uniform
from .discrete import Bernoulli, Categorical, Geometric, OneHotCategorical, Poisson
from .distribution import Distribution
from .joint import Independent, MultivariateNormal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    F = TypeVar("F", bound=Callable[..., Tensor])

_registry: dict[tuple[type, type], Callable[[Any, Any], Tensor]] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[F], F]:
    """Decorates the function that computes the divergence of two classes of distributions.

    Raises:
        TypeError: they are no such classes.
    """
    for kind in (type_p, type_q):
        if not (isinstance(kind, type) and issubclass(kind, Distribution)):
            raise TypeError(f"register_kl: got {kind!r}, needs classes of distributions")

    def keep(function: F) -> F:
        _registry[type_p, type_q] = function
        return function

    return keep


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """The divergence of `q` from `p`, KL(p ‖ q), in nats: (batch_shape).

    Raises:
        NotImplementedError: nobody said how, for two such distributions.
    """
    for left in type(p).__mro__:
        for right in type(q).__mro__:
            function = _registry.get((left, right))
            if function is not None:
                return function(p, q)
    raise NotImplementedError(
        f"kl_divergence: not known of {type(p).__name__} and {type(q).__name__}\nhint: register_kl says how"
    )


@register_kl(Normal, Normal)
def _normal(p: Normal, q: Normal) -> Tensor:
    ratio = (p.scale / q.scale).square()
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).square() - 1 - ratio.log())


@register_kl(LogNormal, LogNormal)
def _log_normal(p: LogNormal, q: LogNormal) -> Tensor:
    return _normal(p._normal(), q._normal())


@register_kl(Laplace, Laplace)
def _laplace(p: Laplace, q: Laplace) -> Tensor:
    ratio, apart = p.scale / q.scale, (p.loc - q.loc).abs()
    return -ratio.log() + apart / q.scale + ratio * (-apart / p.scale).exp() - 1


@register_kl(Gumbel, Gumbel)
def _gumbel(p: Gumbel, q: Gumbel) -> Tensor:
    ratio, apart = p.scale / q.scale, (q.loc - p.loc) / q.scale
    euler = 0.5772156649015329
    return -ratio.log() - apart + ratio * euler + (apart + (1 + ratio).lgamma()).exp() - (1 + euler)


@register_kl(Cauchy, Cauchy)
def _cauchy(p: Cauchy, q: Cauchy) -> Tensor:
    both = (p.scale + q.scale).square() + (p.loc - q.loc).square()
    return both.log() - (4 * p.scale * q.scale).log()


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p: HalfNormal, q: HalfNormal) -> Tensor:
    ratio = (p.scale / q.scale).square()
    return 0.5 * (ratio - 1 - ratio.log())


@register_kl(Exponential, Exponential)
def _exponential(p: Exponential, q: Exponential) -> Tensor:
    ratio = q.rate / p.rate
    return ratio - 1 - ratio.log()


@register_kl(Uniform, Uniform)
def _uniform(p: Uniform, q: Uniform) -> Tensor:
    result = ((q.high - q.low) / (p.high - p.low)).log()
    return core.where((q.low > p.low) | (q.high < p.high), math.inf, result)


@register_kl(Poisson, Poisson)
def _poisson(p: Poisson, q: Poisson) -> Tensor:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p: Bernoulli, q: Bernoulli) -> Tensor:
    ones = p.probs * (_softplus(-q.logits) - _softplus(-p.logits))
    return ones + (1 - p.probs) * (_softplus(q.logits) - _softplus(p.logits))


def _softplus(x: Tensor) -> Tensor:
    return core.logaddexp(x, core.zeros_like(x))


@register_kl(Geometric, Geometric)
def _geometric(p: Geometric, q: Geometric) -> Tensor:
    return -p.entropy() - (-q.probs).log1p() / p.probs - q.logits


@register_kl(Categorical, Categorical)
def _categorical(p: Categorical, q: Categorical) -> Tensor:
    terms = p.probs * (p.logits - q.logits)
    terms = core.where(q.probs == 0, math.inf, terms)
    return core.where(p.probs == 0, 0.0, terms).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot(p: OneHotCategorical, q: OneHotCategorical) -> Tensor:
    return _categorical(p._categorical, q._categorical)


@register_kl(MultivariateNormal, MultivariateNormal)
def _multivariate(p: MultivariateNormal, q: MultivariateNormal) -> Tensor:
    size = p.event_shape[0]
    batch = core.broadcast_shapes(p.batch_shape, q.batch_shape)
    factor = q.scale_tril.expand(*batch, size, size)
    trace = (
        core.linalg.solve_triangular(factor, p.scale_tril.expand_as(factor), upper=False)
        .square()
        .sum((-2, -1))
    )
    apart = (q.loc - p.loc).expand(*batch, size).unsqueeze(-1)
    distance = core.linalg.solve_triangular(factor, apart, upper=False).square().sum((-2, -1))
    return q._half_log_determinant() - p._half_log_determinant() + 0.5 * (trace + distance - size)


@register_kl(Independent, Independent)
def _independent(p: Independent, q: Independent) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError("kl_divergence: Independent of different numbers of dimensions")
    return p._sum(kl_divergence(p.base_dist, q.base_dist))
