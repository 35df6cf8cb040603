"""The multivariate normal distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence

import rushlight_core as core
from rushlight_core import Tensor

from . import constraints
from .distribution import Distribution
from .utils import half_log_determinant, inverse_factor, lazy_property, standard_normal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["MultivariateNormal"]


class MultivariateNormal(Distribution):
    """The multivariate normal distribution.

    Args:
        loc: the mean.
        covariance_matrix: the covariance matrix.
        precision_matrix: the inverse of the covariance matrix, given instead of `covariance_matrix`.
        scale_tril: the lower triangular Cholesky factor of the covariance matrix, given instead of `covariance_matrix`.
            Passing `scale_tril` requires the least computation.
        validate_args: whether to check the arguments; true by default, unless Python runs with -O.

    Shape:
        - `loc`: (*, n); the matrix that is given: (*, n, n).
        - Samples: (*sample_shape, *batch_shape, n).

    Raises:
        ValueError: not exactly one of the three matrices is given, or the matrix is not positive definite.

    Example:
        >>> from rushlight.distributions import MultivariateNormal
        >>> dist = MultivariateNormal(torch.zeros(2), torch.eye(2))
        >>> dist.log_prob(torch.zeros(2)).exp()  # 1 / (2 pi)
        tensor(0.1592)
    """

    arg_constraints: Any = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support: Any = constraints.real_vector
    has_rsample = True

    def __init__(
        self,
        loc: Tensor,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if loc.dim() < 1:
            raise ValueError("MultivariateNormal(loc): must be at least 1-dimensional, got a scalar")
        name, matrix = one_matrix("MultivariateNormal", covariance_matrix, precision_matrix, scale_tril)
        size = loc.shape[-1]
        batch = core.broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        self.loc: Tensor = loc.expand(*batch, size)
        self.__dict__[name] = matrix.expand(*batch, *matrix.shape[-2:])
        super().__init__(batch, (size,), validate_args)
        self._unbroadcasted_scale_tril = factor_of(name, matrix)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        made = super().expand(batch_shape, _instance)
        made._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril
        return made

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The Cholesky factors of the covariance matrices."""
        return self._unbroadcasted_scale_tril.expand(self._matrix_shape())

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance matrices."""
        factor = self._unbroadcasted_scale_tril
        return (factor @ factor.mT).expand(self._matrix_shape())

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The precision matrices, the inverses of the covariance matrices."""
        return core.cholesky_inverse(self._unbroadcasted_scale_tril).expand(self._matrix_shape())

    def _matrix_shape(self) -> tuple[int, ...]:
        return (*self._batch_shape, *self._event_shape, *self._event_shape)

    @property
    def mean(self) -> Tensor:
        return self.loc

    mode = mean

    @property
    def variance(self) -> Tensor:
        return self._unbroadcasted_scale_tril.square().sum(-1).expand(self._extended_shape())

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        noise = standard_normal(self._extended_shape(sample_shape), self.loc)
        return self.loc + (self._unbroadcasted_scale_tril @ noise.unsqueeze(-1)).squeeze(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        distance = mahalanobis(self._unbroadcasted_scale_tril, value - self.loc)
        size = self._event_shape[0]
        return -0.5 * (size * math.log(2 * math.pi) + distance) - half_log_determinant(
            self._unbroadcasted_scale_tril
        )

    def entropy(self) -> Tensor:
        half = half_log_determinant(self._unbroadcasted_scale_tril)
        return (0.5 * self._event_shape[0] * (1 + math.log(2 * math.pi)) + half).expand(self._batch_shape)


def one_matrix(
    owner: str, covariance: Tensor | None, precision: Tensor | None, factor: Tensor | None
) -> tuple[str, Tensor]:
    """Return the name and the value of the one matrix that is given.

    Raises:
        ValueError: not exactly one of the three matrices is given, or the given matrix has fewer than two dimensions.
    """
    given = {"covariance_matrix": covariance, "precision_matrix": precision, "scale_tril": factor}
    found = [(name, matrix) for name, matrix in given.items() if matrix is not None]
    if len(found) != 1:
        raise ValueError(f"{owner}({', '.join(given)}): got {len(found)} matrices, needs exactly one")
    name, matrix = found[0]
    if matrix.dim() < 2:
        raise ValueError(f"{owner}({name}): got {matrix.dim()} dimensions, needs at least 2")
    return name, matrix


def factor_of(name: str, matrix: Tensor) -> Tensor:
    """Return the Cholesky factor of the covariance matrix.

    `matrix` is the covariance matrix, the precision matrix or the Cholesky factor, as `name` states.

    Raises:
        ValueError: the matrix is not positive definite.
    """
    if name == "scale_tril":
        return matrix
    try:
        return core.linalg.cholesky(matrix) if name == "covariance_matrix" else inverse_factor(matrix)
    except RuntimeError as error:
        raise ValueError(f"({name}): the matrix is not positive definite") from error


def mahalanobis(factor: Tensor, difference: Tensor) -> Tensor:
    """Return the squared norm of L⁻¹ d, where L is `factor` (..., n, n) and d is `difference` (..., n).

    The leading dimensions of both arguments are broadcast."""
    batch = core.broadcast_shapes(factor.shape[:-2], difference.shape[:-1])
    size = factor.shape[-1]
    many = factor.dim() == 2 and difference.dim() > 1
    if many:  # for a single factor, use all vectors as columns of one right-hand side
        columns = difference.reshape(-1, size).mT
        return core.linalg.solve_triangular(factor, columns, upper=False).square().sum(0).reshape(batch)
    factor = factor.expand(*batch, size, size)
    z = core.linalg.solve_triangular(factor, difference.expand(*batch, size).unsqueeze(-1), upper=False)
    return z.square().sum((-2, -1))


# Other libraries import these names.
_batch_mahalanobis = mahalanobis
_precision_to_scale_tril = inverse_factor


def _batch_mv(bmat: Tensor, bvec: Tensor) -> Tensor:
    return (bmat @ bvec.unsqueeze(-1)).squeeze(-1)
