"""Distributions of several numbers together."""

from __future__ import annotations

import math
from collections.abc import Sequence

import rushlight_core as core
from rushlight_core import Tensor

from .distribution import Distribution

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar


class Independent(Distribution):
    """Independent distributions taken for one: the last `reinterpreted_batch_ndims` of the batch belong to the event.

    Raises:
        ValueError: the batch has fewer dimensions.
    """

    def __init__(
        self,
        base_distribution: Distribution,
        reinterpreted_batch_ndims: int,
        validate_args: bool | None = None,
    ) -> None:
        batch, event = tuple(base_distribution.batch_shape), tuple(base_distribution.event_shape)
        count = reinterpreted_batch_ndims
        if count > len(batch):
            raise ValueError(
                f"Independent(reinterpreted_batch_ndims): got {count}, the distribution has {len(batch)} batch dimensions"
            )
        super().__init__(batch[: len(batch) - count], batch[len(batch) - count :] + event, validate_args)
        self.base_dist = base_distribution
        self.reinterpreted_batch_ndims = count
        self.has_rsample = base_distribution.has_rsample

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        inner = tuple(self.base_dist.batch_shape)
        kept = inner[len(inner) - self.reinterpreted_batch_ndims :]
        base = self.base_dist.expand((*batch_shape, *kept))
        return Independent(base, self.reinterpreted_batch_ndims, self._validate_args)

    @property
    def mean(self) -> Tensor:
        return self.base_dist.mean

    @property
    def mode(self) -> Tensor:
        return self.base_dist.mode

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.base_dist.rsample(sample_shape)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.base_dist.sample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        return self._sum(self.base_dist.log_prob(value))

    def entropy(self) -> Tensor:
        return self._sum(self.base_dist.entropy())

    def _sum(self, value: Tensor) -> Tensor:
        count = self.reinterpreted_batch_ndims
        return value.sum(list(range(-count, 0))) if count else value

    def __repr__(self) -> str:
        return f"Independent({self.base_dist!r}, {self.reinterpreted_batch_ndims})"


class MultivariateNormal(Distribution):
    """The normal distribution of vectors, of mean `loc` (..., n) and one of three matrices (..., n, n).

    Args:
        loc: the mean.
        covariance_matrix: the covariances,
        precision_matrix: or their inverse,
        scale_tril: or the lower triangular factor of the covariances, which is quickest.

    Raises:
        ValueError: not exactly one matrix is given, or it is not positive definite.
    """

    has_rsample = True
    _names: ClassVar[tuple[str, ...]] = ("loc", "scale_tril")
    _event_dims: ClassVar[dict[str, int]] = {"loc": 1, "scale_tril": 2}

    def __init__(
        self,
        loc: Tensor,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        given = [m for m in (covariance_matrix, precision_matrix, scale_tril) if m is not None]
        if len(given) != 1:
            raise ValueError(
                "MultivariateNormal(covariance_matrix, precision_matrix, scale_tril): "
                f"got {len(given)} matrices, needs exactly one"
            )
        if loc.dim() < 1 or given[0].dim() < 2:
            raise ValueError(
                f"MultivariateNormal(loc): got {loc.dim()} and {given[0].dim()} dimensions, needs vectors and matrices"
            )
        size = loc.shape[-1]
        batch = core.broadcast_shapes(given[0].shape[:-2], loc.shape[:-1])
        super().__init__(batch, (size,), validate_args)
        self.loc = loc.expand(*batch, size)
        if scale_tril is not None:
            self._check("scale_tril", scale_tril.diagonal(dim1=-2, dim2=-1) > 0, "a positive diagonal")
            factor = scale_tril
        else:
            matrix = given[0]
            try:
                factor = core.linalg.cholesky(matrix)
            except RuntimeError as error:
                name = "precision_matrix" if covariance_matrix is None else "covariance_matrix"
                raise ValueError(f"MultivariateNormal({name}): it is not positive definite") from error
            if precision_matrix is not None:  # the inverse's factor, by a triangular system
                flipped = core.linalg.cholesky(core.flip(matrix, (-2, -1)))
                inverse = core.flip(flipped, (-2, -1)).mT
                identity = core.eye(size, dtype=matrix.dtype, device=matrix.device)
                factor = core.linalg.solve_triangular(inverse, identity.expand_as(inverse), upper=False)
        self.scale_tril = factor.expand(*batch, size, size)

    @property
    def covariance_matrix(self) -> Tensor:
        """The covariances."""
        return self.scale_tril @ self.scale_tril.mT

    @property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariances."""
        return core.cholesky_inverse(self.scale_tril)

    @property
    def mean(self) -> Tensor:
        return self.loc

    mode = mean

    @property
    def variance(self) -> Tensor:
        return self.scale_tril.square().sum(-1).expand(self._shape())

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        noise = core.randn(self._shape(sample_shape), dtype=self.loc.dtype, device=self.loc.device)
        return self.loc + (self.scale_tril @ noise.unsqueeze(-1)).squeeze(-1)

    def _half_log_determinant(self) -> Tensor:
        return self.scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check("value", value == value, "numbers")
        difference = (value - self.loc).unsqueeze(-1)
        factor = self.scale_tril.expand(*difference.shape[:-2], *self.scale_tril.shape[-2:])
        z = core.linalg.solve_triangular(factor, difference, upper=False).squeeze(-1)
        size = self._event_shape[0]
        return -0.5 * (size * math.log(2 * math.pi) + z.square().sum(-1)) - self._half_log_determinant()

    def entropy(self) -> Tensor:
        return 0.5 * self._event_shape[0] * (1 + math.log(2 * math.pi)) + self._half_log_determinant()

    def __repr__(self) -> str:
        return f"MultivariateNormal(loc: {self.loc.size()}, scale_tril: {self.scale_tril.size()})"
