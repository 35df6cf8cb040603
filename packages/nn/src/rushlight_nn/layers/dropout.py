"""Dropout layers."""

from __future__ import annotations

from rushlight_core import Tensor

from .. import functional as F
from ..functional._arguments import check_probability
from ..module import Module


class _Dropout(Module):
    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        check_probability(type(self).__name__, p)
        self.p = p
        self.inplace = inplace

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_Dropout):
    """While training, zero each element with probability `p` and scale the others by 1 / (1 - p)."""

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout(input, self.p, self.training, self.inplace)


class Dropout2d(_Dropout):
    """While training, zero whole channels of (N, C, H, W) with probability `p`, and scale the others."""

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout2d(input, self.p, self.training, self.inplace)


class Dropout1d(_Dropout):
    """While training, zero whole channels of (N, C, L) with probability `p`, and scale the others."""

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout1d(input, self.p, self.training, self.inplace)


class Dropout3d(_Dropout):
    """While training, zero whole channels of (N, C, D, H, W) with probability `p`, and scale the others."""

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout3d(input, self.p, self.training, self.inplace)


class AlphaDropout(_Dropout):
    """While training, drop elements to SELU's lower limit; see :func:`rushlight_nn.functional.alpha_dropout`."""

    def forward(self, input: Tensor) -> Tensor:
        return F.alpha_dropout(input, self.p, self.training, self.inplace)


class FeatureAlphaDropout(_Dropout):
    """:class:`AlphaDropout` of whole channels of (N, C, ...)."""

    def forward(self, input: Tensor) -> Tensor:
        return F.feature_alpha_dropout(input, self.p, self.training, self.inplace)
