"""The Wishart distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence

import rushlight_core as core
from rushlight_core import Tensor

from . import constraints
from .exp_family import ExponentialFamily
from .multivariate_normal import factor_of, one_matrix
from .utils import half_log_determinant, lazy_property, standard_normal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["Wishart"]


class Wishart(ExponentialFamily):
    """The Wishart distribution of positive definite matrices: sums of the outer products v vᵀ of normal vectors v.

    Samples are drawn by Bartlett's decomposition (Bartlett 1934).

    Args:
        df: the degrees of freedom, a number above n - 1 that need not be an integer.
        covariance_matrix: the covariance matrix of the normal vectors.
        precision_matrix: the inverse of the covariance matrix, given instead of `covariance_matrix`.
        scale_tril: the lower triangular Cholesky factor of the covariance matrix, given instead of `covariance_matrix`.
        validate_args: whether to check the arguments; true by default, unless Python runs with -O.

    Shape:
        - `df`: (*); the matrix that is given: (*, n, n).
        - Samples: (*sample_shape, *batch_shape, n, n).

    Raises:
        ValueError: not exactly one of the three matrices is given, the matrix is not positive definite, or `df` is not
            above n - 1.

    Example:
        >>> from rushlight.distributions import Wishart
        >>> dist = Wishart(torch.tensor(3.0), torch.eye(2))
        >>> dist.mean  # df · covariance_matrix
        tensor([[3., 0.],
                [0., 3.]])
    """

    support: Any = constraints.positive_definite
    has_rsample = True

    def __init__(
        self,
        df: Any,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        name, matrix = one_matrix("Wishart", covariance_matrix, precision_matrix, scale_tril)
        df = core.as_tensor(df, dtype=matrix.dtype, device=matrix.device)
        batch = core.broadcast_shapes(matrix.shape[:-2], df.shape)
        size = matrix.shape[-1]
        self.df: Any = df.expand(batch)
        self.__dict__[name] = matrix.expand(*batch, size, size)
        self._event_shape = core.Size((size, size))
        if bool((self.df <= size - 1).any()):
            raise ValueError(
                f"Wishart(df): needs numbers above {size - 1}, the size of the matrices minus 1, got {self.df.min().item()}"
            )
        super().__init__(batch, (size, size), validate_args)
        self._unbroadcasted_scale_tril = factor_of(name, matrix)

    @property
    def arg_constraints(self) -> dict[str, constraints.Constraint]:
        return {
            "covariance_matrix": constraints.positive_definite,
            "precision_matrix": constraints.positive_definite,
            "scale_tril": constraints.lower_cholesky,
            "df": constraints.greater_than(self._event_shape[-1] - 1),
        }

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The Cholesky factors of the covariance matrices."""
        return self._unbroadcasted_scale_tril.expand(self._extended_shape())

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance matrices."""
        factor = self._unbroadcasted_scale_tril
        return (factor @ factor.mT).expand(self._extended_shape())

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The precision matrices, the inverses of the covariance matrices."""
        return core.cholesky_inverse(self._unbroadcasted_scale_tril).expand(self._extended_shape())

    def _df(self) -> Tensor:
        return self.df.unsqueeze(-1).unsqueeze(-1)

    @property
    def mean(self) -> Tensor:
        return self._df() * self.covariance_matrix

    @property
    def mode(self) -> Tensor:
        factor = self._df() - self._event_shape[-1] - 1
        return core.where(factor > 0, factor, math.nan) * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        v = self.covariance_matrix
        diagonal = v.diagonal(dim1=-2, dim2=-1)
        return self._df() * (v.square() + diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2))

    def rsample(self, sample_shape: Sequence[int] = (), max_try_correction: int | None = None) -> Tensor:
        """Return samples of shape (*sample_shape, *batch_shape, n, n); `max_try_correction` is ignored."""
        shape = self._extended_shape(sample_shape)
        size = self._event_shape[-1]
        less = core.arange(size, dtype=self.df.dtype, device=self.df.device)
        shapes = ((self.df.unsqueeze(-1) - less) / 2).expand(shape[:-1])
        squares = 2 * core._standard_gamma(shapes)  # chi-squared with df, df - 1, ... degrees of freedom
        noise = standard_normal(shape, self.df).tril(-1) + squares.sqrt().diag_embed()
        factor = self._unbroadcasted_scale_tril @ noise
        return factor @ factor.mT

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        size = self._event_shape[-1]
        factor = self._unbroadcasted_scale_tril
        trace = core.cholesky_solve(value, factor.expand(core.broadcast_shapes(value.shape, factor.shape)))
        spread = -0.5 * trace.diagonal(dim1=-2, dim2=-1).sum(-1)
        determinant = half_log_determinant(core.linalg.cholesky(value))
        return spread + (self.df - size - 1) * determinant - self._normalizer()

    def _normalizer(self) -> Tensor:
        """Return the logarithm of the normalising constant."""
        size, half = self._event_shape[-1], self.df / 2
        logs = math.log(2) * size * half + core.mvlgamma(half, size)
        return logs + self.df * half_log_determinant(self._unbroadcasted_scale_tril)

    def entropy(self) -> Tensor:
        size = self._event_shape[-1]
        return (
            self._normalizer() + self.df * size / 2 - (self.df - size - 1) / 2 * self._mean_log_determinant()
        )

    def _mean_log_determinant(self) -> Tensor:
        size = self._event_shape[-1]
        less = core.arange(size, dtype=self.df.dtype, device=self.df.device)
        digammas = ((self.df.unsqueeze(-1) - less) / 2).digamma().sum(-1)
        return digammas + size * math.log(2) + 2 * half_log_determinant(self._unbroadcasted_scale_tril)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return -0.5 * self.precision_matrix, 0.5 * (self.df - self._event_shape[-1] - 1)

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:  # type: ignore[override]
        size = self._event_shape[-1]
        half = y + 0.5 * (size + 1)
        return half * -core.linalg.slogdet(-x).logabsdet + core.mvlgamma(half, size)

    _mean_carrier_measure: Any = 0
