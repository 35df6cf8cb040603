"""Divergences of categorical and multivariate distributions, and of distributions that contain other distributions."""

from __future__ import annotations

import math

import rushlight_core as core
from rushlight_core import Tensor

from ..categorical import Categorical
from ..dirichlet import Dirichlet
from ..independent import Independent
from ..lowrank_multivariate_normal import LowRankMultivariateNormal, low_rank_mahalanobis
from ..multivariate_normal import MultivariateNormal, mahalanobis
from ..one_hot_categorical import OneHotCategorical
from ..transformed_distribution import TransformedDistribution
from ..utils import half_log_determinant, sum_rightmost
from .registry import kl_divergence, register_kl

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


@register_kl(Categorical, Categorical)
def _categorical(p: Categorical, q: Categorical) -> Tensor:
    terms = p.probs * (p.logits - q.logits)
    terms = core.where(q.probs == 0, math.inf, terms)
    return core.where(p.probs == 0, 0.0, terms).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot(p: OneHotCategorical, q: OneHotCategorical) -> Tensor:
    return _categorical(p._categorical, q._categorical)


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p: Dirichlet, q: Dirichlet) -> Tensor:
    a, b = p.concentration, q.concentration
    logs = a.digamma() - a.sum(-1, keepdim=True).digamma()
    return q._log_normalizer(b) - p._log_normalizer(a) + ((a - b) * logs).sum(-1)


@register_kl(Independent, Independent)
def _independent(p: Independent, q: Independent) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError(
            "kl_divergence: Independent distributions must have the same reinterpreted_batch_ndims, "
            f"got {p.reinterpreted_batch_ndims} and {q.reinterpreted_batch_ndims}"
        )
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: TransformedDistribution, q: TransformedDistribution) -> Tensor:
    # A transform that both distributions share does not change the divergence.
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError(
            f"kl_divergence: {type(p).__name__} and {type(q).__name__} must have equal transforms and event shapes, "
            f"got {p.transforms} and {q.transforms}, {tuple(p.event_shape)} and {tuple(q.event_shape)}"
        )
    return kl_divergence(p.base_dist, q.base_dist)


# --- multivariate normal distributions: (tr(Σq⁻¹ Σp) + dᵀ Σq⁻¹ d - n + log det Σq - log det Σp) / 2 ---


def _root(p: Any) -> Tensor:
    """Return a factor R of shape (..., n, m) with R Rᵀ = Σ."""
    if isinstance(p, MultivariateNormal):
        return p._unbroadcasted_scale_tril
    diagonal = p._unbroadcasted_cov_diag.sqrt().diag_embed()
    factor = p._unbroadcasted_cov_factor
    batch = core.broadcast_shapes(diagonal.shape[:-2], factor.shape[:-2])
    return core.cat(
        [factor.expand(*batch, *factor.shape[-2:]), diagonal.expand(*batch, *diagonal.shape[-2:])], -1
    )


def _half_determinant(p: Any) -> Tensor:
    if isinstance(p, MultivariateNormal):
        return half_log_determinant(p._unbroadcasted_scale_tril)
    return p._half_log_determinant()


def _distances(q: Any, vectors: Tensor) -> Tensor:
    """Return vᵀ Σ⁻¹ v for each vector v."""
    if isinstance(q, MultivariateNormal):
        return mahalanobis(q._unbroadcasted_scale_tril, vectors)
    return low_rank_mahalanobis(
        q._unbroadcasted_cov_factor, q._unbroadcasted_cov_diag, q._capacitance_tril, vectors
    )


@register_kl(MultivariateNormal, MultivariateNormal)
@register_kl(MultivariateNormal, LowRankMultivariateNormal)
@register_kl(LowRankMultivariateNormal, MultivariateNormal)
@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _normal_vectors(p: Any, q: Any) -> Tensor:
    if p.event_shape != q.event_shape:
        raise ValueError(
            f"kl_divergence: events must have equal sizes, got {p.event_shape[0]} and {q.event_shape[0]}"
        )
    # Move the columns of the root to a new first dimension, so that each is treated as a separate vector.
    columns = _root(p).movedim(-1, 0)
    ones = (1,) * max(len(q.batch_shape) - (columns.dim() - 2), 0)
    trace = _distances(q, columns.reshape((columns.shape[0], *ones, *columns.shape[1:]))).sum(0)
    distance = _distances(q, q.loc - p.loc)
    halves = _half_determinant(q) - _half_determinant(p)
    return halves + 0.5 * (trace + distance - p.event_shape[0])
