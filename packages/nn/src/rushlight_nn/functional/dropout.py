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
    if inplace:  # what changes nothing writes nothing: the tensor may have been saved for a gradient
        return _dropout_(input, p, training) if training and p > 0.0 else input
    return _dropout(input, p, training)


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zero whole channels of `input` (N, C, H, W) or (C, H, W) with probability `p` (Tompson et al. 2015)."""
    check_probability("dropout2d", p)
    if input.dim() not in (3, 4):
        raise RuntimeError(f"dropout2d(input): got {input.dim()} dimensions, needs (N, C, H, W) or (C, H, W)")
    if not training or p == 0.0:
        return input
    kept = _dropout(core.ones((*input.shape[:-2], 1, 1), dtype=input.dtype, device=input.device), p, True)
    return input.mul_(kept) if inplace else input * kept


def _dropped_channels(
    function: str, dims: int, input: Tensor, p: float, training: bool, inplace: bool
) -> Tensor:
    """Zero whole channels of (N, C, places) or (C, places), which have `dims` dimensions of places."""
    check_probability(function, p)
    if input.dim() not in (dims + 1, dims + 2):
        raise RuntimeError(
            f"{function}(input): got {input.dim()} dimensions, needs {dims + 2}, or {dims + 1} without a batch"
        )
    if not training or p == 0.0:
        return input
    shape = (*input.shape[: input.dim() - dims], *(1,) * dims)
    kept = _dropout(core.ones(shape, dtype=input.dtype, device=input.device), p, True)
    return input.mul_(kept) if inplace else input * kept


def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zero whole channels of `input` (N, C, L) or (C, L) with probability `p` (Tompson et al. 2015)."""
    return _dropped_channels("dropout1d", 1, input, p, training, inplace)


def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zero whole channels of `input` (N, C, D, H, W) or (C, D, H, W) with probability `p`."""
    return _dropped_channels("dropout3d", 3, input, p, training, inplace)


# What SELU tends to far below zero.
_SELU_LOWEST = -1.7580993408473766


def _alpha_dropped(shape: tuple[int, ...], input: Tensor, p: float, inplace: bool) -> Tensor:
    if p == 1.0:
        return input.mul_(0) if inplace else input * 0
    a = ((1 - p) * (1 + p * _SELU_LOWEST**2)) ** -0.5
    b = -a * _SELU_LOWEST * p
    kept = core.empty(shape, dtype=input.dtype, device=input.device).bernoulli_(1 - p)
    shift = (1 - kept) * (_SELU_LOWEST * a) + b
    return input.mul_(kept * a).add_(shift) if inplace else input * (kept * a) + shift


def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Set elements, with probability `p`, to the lower limit of SELU, and keep mean and variance.

    Klambauer et al. 2017.
    """
    check_probability("alpha_dropout", p)
    return _alpha_dropped(tuple(input.shape), input, p, inplace) if training and p > 0.0 else input


def feature_alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """:func:`alpha_dropout` of whole channels of `input` (N, C, ...)."""
    check_probability("feature_alpha_dropout", p)
    if not training or p == 0.0:
        return input
    if input.dim() < 2:
        raise RuntimeError(f"feature_alpha_dropout(input): got {input.dim()} dimensions, needs at least 2")
    return _alpha_dropped((*input.shape[:2], *(1,) * (input.dim() - 2)), input, p, inplace)
