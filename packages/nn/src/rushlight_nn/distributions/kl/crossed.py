"""KL divergences of p and q from different families, computed as the cross-entropy of p and q minus the entropy of p."""

from __future__ import annotations

import math

import rushlight_core as core
from rushlight_core import Tensor

from ..bernoulli import Bernoulli
from ..beta import Beta
from ..continuous_bernoulli import ContinuousBernoulli
from ..exponential import Exponential
from ..gamma import Gamma
from ..gumbel import Gumbel
from ..laplace import Laplace
from ..normal import Normal
from ..pareto import Pareto
from ..poisson import Poisson
from ..uniform import Uniform
from ..utils import euler_constant
from .registry import register_kl

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# --- cross-entropies of p and q, from expected values under p ---


def _surprise_of_normal(p: Any, q: Normal) -> Tensor:
    distance = p.variance + (p.mean - q.loc).square()
    return 0.5 * distance / q.scale.square() + q.scale.log() + 0.5 * math.log(2 * math.pi)


def _surprise_of_exponential(p: Any, q: Exponential) -> Tensor:
    return q.rate * p.mean - q.rate.log()


def _surprise_of_gamma(p: Any, q: Gamma, mean_log: Tensor) -> Tensor:
    a, rate = q.concentration, q.rate
    return a.lgamma() - a * rate.log() - (a - 1) * mean_log + rate * p.mean


def _surprise_of_gumbel(p: Any, q: Gumbel, mean_exp: Tensor) -> Tensor:
    """Return the cross-entropy of p and the Gumbel distribution q; `mean_exp` is the mean of exp(-x / q.scale) under p."""
    return (p.mean - q.loc) / q.scale + mean_exp * (q.loc / q.scale).exp() + q.scale.log()


def _surprise_of_continuous_bernoulli(p: Any, q: ContinuousBernoulli) -> Tensor:
    return q._log_normalizer(q.logits) - q.logits * p.mean


def _infinite_unless(fits: Tensor, value: Tensor) -> Tensor:
    return core.where(fits, value, math.inf)


# --- expected values under p other than mean and variance ---


def _mean_log_of_exponential(p: Exponential) -> Tensor:
    return -euler_constant - p.rate.log()


def _mean_log_of_beta(p: Beta) -> Tensor:
    return p.concentration1.digamma() - (p.concentration1 + p.concentration0).digamma()


def _mean_log_of_uniform(low: Tensor, high: Tensor) -> Tensor:
    return (core.xlogy(high, high) - core.xlogy(low, low)) / (high - low) - 1


# --- Normal, Laplace, Gumbel: all real numbers ---


@register_kl(Normal, Gumbel)
def _normal_gumbel(p: Normal, q: Gumbel) -> Tensor:
    mean_exp = (0.5 * (p.scale / q.scale).square() - p.loc / q.scale).exp()
    return _surprise_of_gumbel(p, q, mean_exp) - p.entropy()


@register_kl(Normal, Laplace)
def _normal_laplace(p: Normal, q: Laplace) -> Tensor:
    apart = p.loc - q.loc
    z = apart / (math.sqrt(2) * p.scale)
    distance = p.scale * math.sqrt(2 / math.pi) * (-z.square()).exp() + apart * z.erf()
    return distance / q.scale + (2 * q.scale).log() - p.entropy()


@register_kl(Laplace, Normal)
@register_kl(Gumbel, Normal)
@register_kl(Exponential, Normal)
@register_kl(Gamma, Normal)
@register_kl(Beta, Normal)
@register_kl(ContinuousBernoulli, Normal)
@register_kl(Uniform, Normal)
@register_kl(Pareto, Normal)
def _any_normal(p: Any, q: Normal) -> Tensor:
    return _surprise_of_normal(p, q) - p.entropy()


# --- to families of positive numbers ---


@register_kl(Gamma, Exponential)
@register_kl(Beta, Exponential)
@register_kl(ContinuousBernoulli, Exponential)
@register_kl(Pareto, Exponential)
def _any_exponential(p: Any, q: Exponential) -> Tensor:
    return _surprise_of_exponential(p, q) - p.entropy()


@register_kl(Uniform, Exponential)
def _uniform_exponential(p: Uniform, q: Exponential) -> Tensor:
    return _infinite_unless(p.low >= 0, _surprise_of_exponential(p, q) - p.entropy())


@register_kl(Exponential, Gamma)
def _exponential_gamma(p: Exponential, q: Gamma) -> Tensor:
    return _surprise_of_gamma(p, q, _mean_log_of_exponential(p)) - p.entropy()


@register_kl(Beta, Gamma)
def _beta_gamma(p: Beta, q: Gamma) -> Tensor:
    return _surprise_of_gamma(p, q, _mean_log_of_beta(p)) - p.entropy()


@register_kl(Pareto, Gamma)
def _pareto_gamma(p: Pareto, q: Gamma) -> Tensor:
    return _surprise_of_gamma(p, q, p.scale.log() + p.alpha.reciprocal()) - p.entropy()


@register_kl(Uniform, Gamma)
def _uniform_gamma(p: Uniform, q: Gamma) -> Tensor:
    surprise = _surprise_of_gamma(p, q, _mean_log_of_uniform(p.low, p.high))
    return _infinite_unless(p.low >= 0, surprise - p.entropy())


@register_kl(Uniform, Pareto)
def _uniform_pareto(p: Uniform, q: Pareto) -> Tensor:
    surprise = (q.alpha + 1) * _mean_log_of_uniform(p.low, p.high) - q.alpha.log() - q.alpha * q.scale.log()
    return _infinite_unless(p.low >= q.scale, surprise - p.entropy())


# --- to Gumbel ---


@register_kl(Exponential, Gumbel)
def _exponential_gumbel(p: Exponential, q: Gumbel) -> Tensor:
    mean_exp = p.rate / (p.rate + q.scale.reciprocal())
    return _surprise_of_gumbel(p, q, mean_exp) - p.entropy()


@register_kl(Gamma, Gumbel)
def _gamma_gumbel(p: Gamma, q: Gumbel) -> Tensor:
    mean_exp = (-p.concentration * (p.rate * q.scale).reciprocal().log1p()).exp()
    return _surprise_of_gumbel(p, q, mean_exp) - p.entropy()


@register_kl(Uniform, Gumbel)
def _uniform_gumbel(p: Uniform, q: Gumbel) -> Tensor:
    width = (p.high - p.low) / q.scale
    mean_exp = -(-p.low / q.scale).exp() * (-width).expm1() / width
    return _surprise_of_gumbel(p, q, mean_exp) - p.entropy()


# --- to families of numbers between 0 and 1, or other bounds ---


@register_kl(Beta, ContinuousBernoulli)
def _beta_continuous_bernoulli(p: Beta, q: ContinuousBernoulli) -> Tensor:
    return _surprise_of_continuous_bernoulli(p, q) - p.entropy()


@register_kl(Uniform, ContinuousBernoulli)
def _uniform_continuous_bernoulli(p: Uniform, q: ContinuousBernoulli) -> Tensor:
    result = _surprise_of_continuous_bernoulli(p, q) - p.entropy()
    return _infinite_unless((p.low >= 0) & (p.high <= 1), result)


@register_kl(Uniform, Beta)
def _uniform_beta(p: Uniform, q: Beta) -> Tensor:
    a, b = q.concentration1, q.concentration0
    logs = (a - 1) * _mean_log_of_uniform(p.low, p.high) + (b - 1) * _mean_log_of_uniform(
        1 - p.high, 1 - p.low
    )
    result = q._log_normalizer(a, b) - logs - p.entropy()
    return _infinite_unless((p.low >= 0) & (p.high <= 1), result)


@register_kl(Beta, Uniform)
@register_kl(ContinuousBernoulli, Uniform)
def _unit_uniform(p: Any, q: Uniform) -> Tensor:
    result = (q.high - q.low).log() - p.entropy()
    return _infinite_unless((q.low <= 0) & (q.high >= 1), result)


# --- counts ---


@register_kl(Bernoulli, Poisson)
def _bernoulli_poisson(p: Bernoulli, q: Poisson) -> Tensor:
    return q.rate - core.xlogy(p.probs, q.rate) - p.entropy()
