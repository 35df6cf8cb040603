"""Dropout."""

from __future__ import annotations

from rushlight_core import Tensor

from .._core import core, operator
from ._arguments import check_probability

_dropout = operator("dropout")
_dropout_ = operator("dropout_")


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zero each element with probability `p` and scale the others by 1 / (1 - p) (Srivastava et al. 2014)."""
    check_probability("dropout", p)
    return _dropout_(input, p, training) if inplace else _dropout(input, p, training)


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zero whole channels of `input` (N, C, H, W) or (C, H, W) with probability `p` (Tompson et al. 2015)."""
    check_probability("dropout2d", p)
    if input.dim() not in (3, 4):
        raise RuntimeError(f"dropout2d(input): got {input.dim()} dimensions, needs (N, C, H, W) or (C, H, W)")
    if not training or p == 0.0:
        return input
    kept = _dropout(core.ones((*input.shape[:-2], 1, 1), dtype=input.dtype, device=input.device), p, True)
    return input.mul_(kept) if inplace else input * kept
