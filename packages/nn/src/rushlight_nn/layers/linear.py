"""Layers that multiply by a matrix."""

from __future__ import annotations

import math

import rushlight_core as core
from rushlight_core import Tensor

from .. import init
from ..functional import linear
from ..module import Module
from ..parameter import Parameter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Identity(Module):
    """Returns its input, whatever the arguments it was made with."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        return input


class Linear(Module):
    """x Wᵀ + b for x (*, in_features); the result is (*, out_features).

    Both start uniform over ±1 / sqrt(in_features).

    Args:
        in_features, out_features: sizes of the last dimension before and after.
        bias: whether there is a b.
    """

    in_features: int
    out_features: int
    weight: Parameter
    bias: Parameter | None

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = Parameter(core.empty((out_features, in_features), device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(core.empty(out_features, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new starting values."""
        bound = 1 / math.sqrt(self.in_features) if self.in_features > 0 else 0.0
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        return linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"
        )
