"""Divergences that are infinite, because p can take values outside of the support of q."""

from __future__ import annotations

import math

import rushlight_core as core
from rushlight_core import Tensor

from ..bernoulli import Bernoulli
from ..beta import Beta
from ..binomial import Binomial
from ..continuous_bernoulli import ContinuousBernoulli
from ..distribution import Distribution
from ..exponential import Exponential
from ..gamma import Gamma
from ..gumbel import Gumbel
from ..laplace import Laplace
from ..normal import Normal
from ..pareto import Pareto
from ..poisson import Poisson
from ..uniform import Uniform
from .registry import register_kl

_BOUNDED = (Beta, ContinuousBernoulli, Uniform)
_POSITIVE = (Exponential, Gamma)

PAIRS: list[tuple[type, type]] = [
    (Beta, Pareto),
    (ContinuousBernoulli, Pareto),
    *((p, q) for p in _POSITIVE for q in (*_BOUNDED, Pareto)),
    *((p, q) for p in (Gumbel, Laplace, Normal) for q in (*_BOUNDED, *_POSITIVE, Pareto)),
    *((Pareto, q) for q in _BOUNDED),
    (Poisson, Bernoulli),
    (Poisson, Binomial),
]


def _infinite(p: Distribution, q: Distribution) -> Tensor:
    shape = core.broadcast_shapes(p.batch_shape, q.batch_shape)
    like = p.mean
    return core.full(shape, math.inf, dtype=like.dtype, device=like.device)


for _pair in PAIRS:
    register_kl(*_pair)(_infinite)
