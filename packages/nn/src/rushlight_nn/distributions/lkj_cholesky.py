"""The LKJ distribution of correlation matrices."""

from __future__ import annotations

import math
from collections.abc import Sequence

import rushlight_core as core
from rushlight_core import Tensor

from . import constraints
from .beta import Beta
from .distribution import Distribution
from .utils import broadcast_all, standard_normal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["LKJCholesky"]


class LKJCholesky(Distribution):
    """The LKJ distribution of Cholesky factors of correlation matrices.

    The density of a correlation matrix is proportional to its determinant to the power ``concentration - 1``. Samples are
    drawn by the onion method (Lewandowski, Kurowicka and Joe 2009).

    Args:
        dim: the size n of the matrices.
        concentration: 1 makes all matrices equally likely; larger values favor matrices near the identity.
        validate_args: whether to check the arguments; true by default, unless Python runs with -O.

    Shape:
        - `concentration`: (*), the batch shape.
        - Samples: (*sample_shape, *batch_shape, n, n), lower triangular.

    Raises:
        ValueError: `dim` is below 2, or a concentration is not positive.

    Example:
        >>> from rushlight.distributions import LKJCholesky
        >>> factor = LKJCholesky(3, 1.0).sample()
        >>> (factor @ factor.T).diagonal()
        tensor([1., 1., 1.])
    """

    concentration: Tensor

    arg_constraints: Any = {"concentration": constraints.positive}
    support: Any = constraints.corr_cholesky

    def __init__(self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None) -> None:
        if dim < 2:
            raise ValueError(f"LKJCholesky(dim): got {dim}, needs at least 2")
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        super().__init__(self.concentration.shape, (dim, dim), validate_args)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with core.no_grad():
            # The i numbers of row i before the diagonal have a random direction, and their squared norm is a beta
            # variable.
            rows = core.arange(1, self.dim, dtype=self.concentration.dtype, device=self.concentration.device)
            least = self.concentration.unsqueeze(-1) + 0.5 * (self.dim - 2)
            square = Beta(rows / 2, least - 0.5 * (rows - 1), validate_args=False).sample(sample_shape)
            shape = self._extended_shape(sample_shape)
            direction = standard_normal(shape, self.concentration).tril(-1)[..., 1:, :]
            direction = direction / direction.norm(dim=-1, keepdim=True)
            below = square.sqrt().unsqueeze(-1) * direction
            tiny = core.finfo(below.dtype).tiny
            last = (1 - below.square().sum(-1)).clamp(min=tiny).sqrt()
            first = core.zeros_like(below[..., :1, :])
            diagonal = core.cat([core.ones_like(last[..., :1]), last], -1)
            return core.cat([first, below], -2) + diagonal.diag_embed()

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        # The exponent of diagonal element i, for i = 2 ... dim, is 2 (concentration - 1) + dim - i; page 1999 of the
        # paper.
        diagonal = value.diagonal(dim1=-2, dim2=-1)[..., 1:]
        order = core.arange(2, self.dim + 1, dtype=diagonal.dtype, device=diagonal.device)
        powers = 2 * (self.concentration - 1).unsqueeze(-1) + self.dim - order
        count = self.dim - 1
        top = self.concentration + 0.5 * count
        volume = 0.5 * count * math.log(math.pi) + core.mvlgamma(top - 0.5, count) - count * top.lgamma()
        return (powers * diagonal.log()).sum(-1) - volume
