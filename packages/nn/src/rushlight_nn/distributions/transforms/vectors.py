"""Transforms from vectors to vectors that sum to 1."""

from __future__ import annotations

from collections.abc import Sequence

import rushlight_core as core
from rushlight_core import Size, Tensor

from ...functional import pad, softplus
from .. import constraints
from .elementwise import SigmoidTransform, _Plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class SoftmaxTransform(_Plain):
    """The transform ``y = exp(x) / sum(exp(x))``, which is not one-to-one; the inverse returns log(y).

    Args:
        cache_size: 0 for no cache, or 1 to cache the last input and output, so that inverting this output
            returns exactly this input.

    Shape:
        - Input and output: (*, K).

    Example:
        >>> from rushlight.distributions import SoftmaxTransform
        >>> SoftmaxTransform()(torch.tensor([0.0, 0.0]))
        tensor([0.5000, 0.5000])
    """

    domain = constraints.real_vector
    codomain = constraints.simplex

    def _call(self, x: Tensor) -> Tensor:
        return x.softmax(-1)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def forward_shape(self, shape: Sequence[int]) -> Any:
        return _a_vector(self, shape)

    inverse_shape = forward_shape


class StickBreakingTransform(_Plain):
    """The transform from K numbers to K + 1 numbers that sum to 1, by stick-breaking.

    Output k is a fraction of the remainder, which is 1 minus the sum of outputs 1 to k - 1. Input k
    determines the ratio of output k to the remainder. If all inputs are zero, all outputs have the same
    value.

    Args:
        cache_size: 0 for no cache, or 1 to cache the last input and output, so that inverting this output
            returns exactly this input.

    Shape:
        - Input: (*, K). Output: (*, K + 1).

    Example:
        >>> from rushlight.distributions import StickBreakingTransform
        >>> StickBreakingTransform()(torch.zeros(3))
        tensor([0.2500, 0.2500, 0.2500, 0.2500])
    """

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = True

    def _call(self, x: Tensor) -> Tensor:
        share = SigmoidTransform()(x - self._offset(x))
        left = (1 - share).cumprod(-1)
        return pad(share, [0, 1], value=1.0) * pad(left, [1, 0], value=1.0)

    def _inverse(self, y: Tensor) -> Tensor:
        parts = y[..., :-1]
        left = (1 - parts.cumsum(-1)).clamp(min=core.finfo(y.dtype).tiny)
        return parts.log() - left.log() + self._offset(parts)

    @staticmethod
    def _offset(x: Tensor) -> Tensor:
        count = x.shape[-1]
        return core.arange(count, 0, -1, dtype=x.dtype, device=x.device).log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        # The Jacobian matrix is triangular, and dy_k/dx_k = share (1 - share) remainder = y_k (1 - share).
        shifted = x - self._offset(x)
        return (y[..., :-1].log() - softplus(shifted)).sum(-1)

    def forward_shape(self, shape: Sequence[int]) -> Any:
        _a_vector(self, shape)
        return Size((*shape[:-1], shape[-1] + 1))

    def inverse_shape(self, shape: Sequence[int]) -> Any:
        _a_vector(self, shape)
        return Size((*shape[:-1], shape[-1] - 1))


def _a_vector(transform: Any, shape: Sequence[int]) -> Any:
    if len(shape) < 1:
        raise ValueError(f"{type(transform).__name__}: got a tensor without dimensions, needs vectors")
    return shape
