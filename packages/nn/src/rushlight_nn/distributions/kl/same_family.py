"""Divergences of two univariate distributions of the same family."""

from __future__ import annotations

import math

import rushlight_core as core
from rushlight_core import Tensor

from ..bernoulli import Bernoulli
from ..beta import Beta
from ..binomial import Binomial
from ..cauchy import Cauchy
from ..continuous_bernoulli import ContinuousBernoulli
from ..exp_family import ExponentialFamily, normalizer_with_gradients
from ..exponential import Exponential
from ..gamma import Gamma
from ..geometric import Geometric
from ..gumbel import Gumbel
from ..half_normal import HalfNormal
from ..laplace import Laplace
from ..normal import Normal
from ..pareto import Pareto
from ..poisson import Poisson
from ..uniform import Uniform
from ..utils import euler_constant, sum_rightmost
from .registry import register_kl


@register_kl(ExponentialFamily, ExponentialFamily)
def _exponential_family(p: ExponentialFamily, q: ExponentialFamily) -> Tensor:
    if type(p) is not type(q):
        raise NotImplementedError(
            f"kl_divergence: not implemented for {type(p).__name__} and {type(q).__name__}, which are different exponential"
            " families\n"
            "hint: register an implementation with register_kl"
        )
    params, normalizer, gradients = normalizer_with_gradients(p)
    result = q._log_normalizer(*q._natural_params) - normalizer
    dims = len(q.event_shape)
    for mine, other, gradient in zip(params, q._natural_params, gradients, strict=True):
        # Sum over the dimensions of the event. A parameter with one number per event does not have these dimensions.
        own = dims if gradient.dim() > result.dim() else 0
        result = result - sum_rightmost((other - mine) * gradient, own)
    return result


@register_kl(Normal, Normal)
def _normal(p: Normal, q: Normal) -> Tensor:
    ratio = (p.scale / q.scale).square()
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).square() - 1 - ratio.log())


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p: HalfNormal, q: HalfNormal) -> Tensor:
    return _normal(p.base_dist, q.base_dist)


@register_kl(Laplace, Laplace)
def _laplace(p: Laplace, q: Laplace) -> Tensor:
    ratio, apart = p.scale / q.scale, (p.loc - q.loc).abs()
    return -ratio.log() + apart / q.scale + ratio * (-apart / p.scale).exp() - 1


@register_kl(Gumbel, Gumbel)
def _gumbel(p: Gumbel, q: Gumbel) -> Tensor:
    ratio, apart = p.scale / q.scale, (q.loc - p.loc) / q.scale
    return (
        -ratio.log()
        - apart
        + ratio * euler_constant
        + (apart + (1 + ratio).lgamma()).exp()
        - (1 + euler_constant)
    )


@register_kl(Cauchy, Cauchy)
def _cauchy(p: Cauchy, q: Cauchy) -> Tensor:
    # F. Chyzak and F. Nielsen, "A closed-form formula for the Kullback-Leibler divergence between Cauchy
    # distributions", 2019.
    both = (p.scale + q.scale).square() + (p.loc - q.loc).square()
    return both.log() - (4 * p.scale * q.scale).log()


@register_kl(Exponential, Exponential)
def _exponential(p: Exponential, q: Exponential) -> Tensor:
    ratio = q.rate / p.rate
    return ratio - 1 - ratio.log()


@register_kl(Gamma, Gamma)
def _gamma(p: Gamma, q: Gamma) -> Tensor:
    a, b = p.concentration, q.concentration
    shapes = (a - b) * a.digamma() - a.lgamma() + b.lgamma()
    return shapes + b * (p.rate / q.rate).log() + a * (q.rate / p.rate - 1)


@register_kl(Beta, Beta)
def _beta(p: Beta, q: Beta) -> Tensor:
    more1, more0 = p.concentration1 - q.concentration1, p.concentration0 - q.concentration0
    total = p.concentration1 + p.concentration0
    return (
        q._log_normalizer(q.concentration1, q.concentration0)
        - p._log_normalizer(p.concentration1, p.concentration0)
        + more1 * p.concentration1.digamma()
        + more0 * p.concentration0.digamma()
        - (more1 + more0) * total.digamma()
    )


@register_kl(Pareto, Pareto)
def _pareto(p: Pareto, q: Pareto) -> Tensor:
    ratio = q.alpha / p.alpha
    result = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    return core.where(p.scale < q.scale, math.inf, result)


@register_kl(Uniform, Uniform)
def _uniform(p: Uniform, q: Uniform) -> Tensor:
    result = ((q.high - q.low) / (p.high - p.low)).log()
    return core.where((q.low > p.low) | (q.high < p.high), math.inf, result)


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _continuous_bernoulli(p: ContinuousBernoulli, q: ContinuousBernoulli) -> Tensor:
    normalizers = q._log_normalizer(q.logits) - p._log_normalizer(p.logits)
    return p.mean * (p.logits - q.logits) + normalizers


@register_kl(Poisson, Poisson)
def _poisson(p: Poisson, q: Poisson) -> Tensor:
    # If the rate of p is 0, the first terms are 0.
    return core.xlogy(p.rate, p.rate) - core.xlogy(p.rate, q.rate) - (p.rate - q.rate)


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p: Bernoulli, q: Bernoulli) -> Tensor:
    ones = p.probs * (_softplus(-q.logits) - _softplus(-p.logits))
    zeros = (1 - p.probs) * (_softplus(q.logits) - _softplus(p.logits))
    # The divergence is infinite if an outcome has probability 0 under q but not under p. The logits are always
    # finite.
    ones = core.where((q.probs == 0) & (p.probs > 0), math.inf, core.where(p.probs == 0, 0.0, ones))
    zeros = core.where((q.probs == 1) & (p.probs < 1), math.inf, core.where(p.probs == 1, 0.0, zeros))
    return ones + zeros


def _softplus(x: Tensor) -> Tensor:
    return core.logaddexp(x, core.zeros_like(x))


@register_kl(Binomial, Binomial)
def _binomial(p: Binomial, q: Binomial) -> Tensor:
    if bool((p.total_count < q.total_count).any()):
        raise NotImplementedError(
            "kl_divergence: q.total_count must be at most p.total_count for Binomial distributions, "
            f"got {q.total_count} and {p.total_count}"
        )
    result = p.total_count * (p.probs * (p.logits - q.logits) + _softplus(q.logits) - _softplus(p.logits))
    return core.where(p.total_count > q.total_count, math.inf, result)


@register_kl(Geometric, Geometric)
def _geometric(p: Geometric, q: Geometric) -> Tensor:
    return -p.entropy() - (-q.probs).log1p() / p.probs - q.logits
