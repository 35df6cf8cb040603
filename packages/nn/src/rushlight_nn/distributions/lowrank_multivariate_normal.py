"""The multivariate normal distribution whose covariance is a low-rank matrix plus a diagonal matrix."""

from __future__ import annotations

import math
from collections.abc import Sequence

import rushlight_core as core
from rushlight_core import Tensor

from . import constraints
from .distribution import Distribution
from .multivariate_normal import mahalanobis
from .utils import half_log_determinant, lazy_property, standard_normal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["LowRankMultivariateNormal"]


class LowRankMultivariateNormal(Distribution):
    """The multivariate normal distribution with the covariance matrix W Wᵀ + D.

    Determinants and inverses are computed from r × r matrices, by the matrix determinant lemma and the
    Woodbury matrix identity.

    Args:
        loc: the mean.
        cov_factor: the matrix W, which has few columns.
        cov_diag: the diagonal of D.
        validate_args: whether to check the arguments; true by default, unless Python runs with -O.

    Shape:
        - `loc` and `cov_diag`: (*, n); `cov_factor`: (*, n, r).
        - Samples: (*sample_shape, *batch_shape, n).

    Raises:
        ValueError: an element of the diagonal is not positive, or the shapes do not match.

    Example:
        >>> from rushlight.distributions import LowRankMultivariateNormal
        >>> dist = LowRankMultivariateNormal(torch.zeros(2), torch.ones(2, 1), torch.ones(2))
        >>> dist.covariance_matrix
        tensor([[2., 1.],
                [1., 2.]])
    """

    arg_constraints: Any = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support: Any = constraints.real_vector
    has_rsample = True

    def __init__(
        self, loc: Tensor, cov_factor: Tensor, cov_diag: Tensor, validate_args: bool | None = None
    ) -> None:
        if loc.dim() < 1:
            raise ValueError("LowRankMultivariateNormal(loc): must be at least 1-dimensional, got a scalar")
        size = loc.shape[-1]
        if cov_factor.dim() < 2 or cov_factor.shape[-2] != size:
            raise ValueError(
                f"LowRankMultivariateNormal(cov_factor): got shape {tuple(cov_factor.shape)}, needs (..., {size}, rank)"
            )
        if cov_diag.dim() < 1 or cov_diag.shape[-1] != size:
            raise ValueError(
                f"LowRankMultivariateNormal(cov_diag): got shape {tuple(cov_diag.shape)}, needs (..., {size})"
            )
        batch = core.broadcast_shapes(loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1])
        self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag = cov_factor, cov_diag
        self.loc: Tensor = loc.expand(*batch, size)
        self.cov_factor: Tensor = cov_factor.expand(*batch, *cov_factor.shape[-2:])
        self.cov_diag: Tensor = cov_diag.expand(*batch, size)
        super().__init__(batch, (size,), validate_args)
        scaled = cov_factor.mT / cov_diag.unsqueeze(-2)
        identity = core.eye(cov_factor.shape[-1], dtype=loc.dtype, device=loc.device)
        self._capacitance_tril = core.linalg.cholesky(scaled @ cov_factor + identity)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        made: Any = super().expand(batch_shape, _instance)
        for name in ("scale_tril", "covariance_matrix", "precision_matrix"):
            made.__dict__.pop(name, None)
        return made

    def _matrix_shape(self) -> tuple[int, ...]:
        return (*self._batch_shape, *self._event_shape, *self._event_shape)

    @property
    def mean(self) -> Tensor:
        return self.loc

    mode = mean

    @property
    def variance(self) -> Tensor:
        squares = self._unbroadcasted_cov_factor.square().sum(-1) + self._unbroadcasted_cov_diag
        return squares.expand(self._extended_shape())

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance matrices."""
        factor = self._unbroadcasted_cov_factor
        return (factor @ factor.mT + self._unbroadcasted_cov_diag.diag_embed()).expand(self._matrix_shape())

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The Cholesky factor of the covariance, which is D^½ times the Cholesky factor of I + D^-½ W Wᵀ D^-½."""
        root = self._unbroadcasted_cov_diag.sqrt().unsqueeze(-1)
        scaled = self._unbroadcasted_cov_factor / root
        identity = core.eye(self._event_shape[0], dtype=root.dtype, device=root.device)
        return (root * core.linalg.cholesky(scaled @ scaled.mT + identity)).expand(self._matrix_shape())

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The precision matrices, the inverses of the covariance matrices."""
        diag = self._unbroadcasted_cov_diag
        scaled = self._unbroadcasted_cov_factor.mT / diag.unsqueeze(-2)
        a = _solved(self._capacitance_tril, scaled)
        return (diag.reciprocal().diag_embed() - a.mT @ a).expand(self._matrix_shape())

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        within = standard_normal((*shape[:-1], self.cov_factor.shape[-1]), self.loc)
        apart = standard_normal(shape, self.loc)
        common = (self._unbroadcasted_cov_factor @ within.unsqueeze(-1)).squeeze(-1)
        return self.loc + common + self._unbroadcasted_cov_diag.sqrt() * apart

    def _half_log_determinant(self) -> Tensor:
        return half_log_determinant(self._capacitance_tril) + 0.5 * self._unbroadcasted_cov_diag.log().sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        distance = low_rank_mahalanobis(
            self._unbroadcasted_cov_factor,
            self._unbroadcasted_cov_diag,
            self._capacitance_tril,
            value - self.loc,
        )
        size = self._event_shape[0]
        return -0.5 * (size * math.log(2 * math.pi) + distance) - self._half_log_determinant()

    def entropy(self) -> Tensor:
        half = self._half_log_determinant()
        return (0.5 * self._event_shape[0] * (1 + math.log(2 * math.pi)) + half).expand(self._batch_shape)


def _solved(factor: Tensor, right: Tensor) -> Tensor:
    """Return L⁻¹ R for batches of matrices that broadcast."""
    batch = core.broadcast_shapes(factor.shape[:-2], right.shape[:-2])
    return core.linalg.solve_triangular(
        factor.expand(*batch, *factor.shape[-2:]), right.expand(*batch, *right.shape[-2:]), upper=False
    )


def low_rank_mahalanobis(
    factor: Tensor, diag: Tensor, capacitance_tril: Tensor, difference: Tensor
) -> Tensor:
    """Return dᵀ (W Wᵀ + D)⁻¹ d for vectors d of shape (..., n)."""
    common = ((factor.mT / diag.unsqueeze(-2)) @ difference.unsqueeze(-1)).squeeze(-1)
    return (difference.square() / diag).sum(-1) - mahalanobis(capacitance_tril, common)
