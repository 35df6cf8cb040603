"""Convolutions."""

from __future__ import annotations

from .._core import core, operator
from ._arguments import tuple_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

conv2d = operator("conv2d")
conv3d = operator("conv3d")
conv_transpose2d = operator("conv_transpose2d")


def _conv1d(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Any:
    """Convolve `input` (N, C, L) or (C, L) with `weight` (out, C/groups, K)."""
    # a 2-d convolution of height one
    if not isinstance(padding, str):
        padding = (0, *tuple_of(1, padding))
    stride, dilation = (1, *tuple_of(1, stride)), (1, *tuple_of(1, dilation))
    return conv2d(input.unsqueeze(-2), weight.unsqueeze(-2), bias, stride, padding, dilation, groups).squeeze(
        -2
    )


conv1d = getattr(core, "conv1d", None) or _conv1d
