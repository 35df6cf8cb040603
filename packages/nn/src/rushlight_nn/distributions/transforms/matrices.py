"""Transforms to triangular and positive definite matrices."""

from __future__ import annotations

import math
from collections.abc import Sequence

import rushlight_core as core
from rushlight_core import Size, Tensor

from ...functional import softplus
from .. import constraints
from ..utils import tril_matrix_to_vec, vec_to_tril_matrix
from .elementwise import _Plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class LowerCholeskyTransform(_Plain):
    """The transform to lower triangular matrices with positive diagonals. The diagonal is exponentiated.

    Args:
        cache_size: 0 for no cache, or 1 to cache the last input and output, so that inverting this output
            returns exactly this input.

    Shape:
        - Input and output: (*, n, n); the input's upper triangle is ignored.

    Example:
        >>> from rushlight.distributions import LowerCholeskyTransform
        >>> LowerCholeskyTransform()(torch.tensor([[0.0, 9.0], [2.0, 1.0]]))
        tensor([[1.0000, 0.0000],
                [2.0000, 2.7183]])
    """

    domain: Any = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def _call(self, x: Tensor) -> Tensor:
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(_Plain):
    """The transform to positive definite matrices L Lᵀ, where L is the result of :class:`LowerCholeskyTransform`.

    Args:
        cache_size: 0 for no cache, or 1 to cache the last input and output, so that inverting this output
            returns exactly this input.

    Shape:
        - Input and output: (*, n, n).

    Example:
        >>> from rushlight.distributions import PositiveDefiniteTransform
        >>> PositiveDefiniteTransform()(torch.tensor([[0.0, 0.0], [2.0, 0.0]]))
        tensor([[1., 2.],
                [2., 5.]])
    """

    domain: Any = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def _call(self, x: Tensor) -> Tensor:
        factor = LowerCholeskyTransform()(x)
        return factor @ factor.mT

    def _inverse(self, y: Tensor) -> Tensor:
        return LowerCholeskyTransform().inv(core.linalg.cholesky(y))


class CorrCholeskyTransform(_Plain):
    """The transform from vectors to Cholesky factors of correlation matrices.

    The hyperbolic tangents of the input are the partial correlations, which fill the lower triangle row by
    row (Lewandowski, Kurowicka and Joe 2009).

    Args:
        cache_size: 0 for no cache, or 1 to cache the last input and output, so that inverting this output
            returns exactly this input.

    Shape:
        - Input: (*, n · (n - 1) / 2). Output: (*, n, n).

    Raises:
        ValueError: vectors have a length other than n · (n - 1) / 2, or matrices are not square (raised by `forward_shape`
            and `inverse_shape`).

    Example:
        >>> from rushlight.distributions import CorrCholeskyTransform
        >>> factor = CorrCholeskyTransform()(torch.tensor([1.0, 0.5, -0.5]))
        >>> (factor @ factor.T).diagonal()
        tensor([1., 1., 1.])
    """

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    def _call(self, x: Tensor) -> Tensor:
        eps = core.finfo(x.dtype).eps
        partial = vec_to_tril_matrix(x.tanh().clamp(eps - 1, 1 - eps), -1)
        left = (1 - partial.square()).sqrt().cumprod(-1)
        # The diagonal element is chosen so that the norm of the row is 1.
        last = core.eye(partial.shape[-1], dtype=x.dtype, device=x.device)
        before = core.cat([core.ones_like(left[..., :1]), left[..., :-1]], -1)
        return (partial + last) * before

    def _inverse(self, y: Tensor) -> Tensor:
        used = y.square().cumsum(-1)
        left = core.cat([core.ones_like(used[..., :1]), 1 - used[..., :-1]], -1)
        partial = tril_matrix_to_vec(y, -1) / tril_matrix_to_vec(left, -1).sqrt()
        return partial.atanh()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        # The Jacobian matrix is triangular. Its diagonal elements dy/dx are (1 - tanh²(x)) times the root of 1 minus the
        # sum of the squares to the left of y.
        if y.shape[-1] < 2:
            return x.new_zeros(x.shape[:-1])
        left = 1 - y.square().cumsum(-1)
        lengths = 0.5 * tril_matrix_to_vec(left[..., 1:, :-1], -1).log().sum(-1) if y.shape[-1] > 2 else 0.0
        slopes = -2 * (x + softplus(-2 * x) - math.log(2.0)).sum(-1)
        return slopes + lengths

    def forward_shape(self, shape: Sequence[int]) -> Any:
        if len(shape) < 1:
            raise ValueError("CorrCholeskyTransform: got a tensor without dimensions, needs vectors")
        count = shape[-1]
        size = (1 + math.isqrt(1 + 8 * count)) // 2
        if size * (size - 1) // 2 != count:
            raise ValueError(
                f"CorrCholeskyTransform: got vectors of {count} numbers, needs n (n - 1) / 2 for some n"
            )
        return Size((*shape[:-1], size, size))

    def inverse_shape(self, shape: Sequence[int]) -> Any:
        if len(shape) < 2 or shape[-1] != shape[-2]:
            raise ValueError(f"CorrCholeskyTransform: got shape {tuple(shape)}, needs square matrices")
        return Size((*shape[:-2], shape[-1] * (shape[-1] - 1) // 2))
