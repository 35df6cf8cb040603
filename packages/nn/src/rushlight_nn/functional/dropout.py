"""Dropout."""

from __future__ import annotations

import warnings

from rushlight_core import Tensor
from rushlight_core.overrides import overridable

from .._core import core, operator
from ._arguments import check_probability

_dropout = operator("dropout")
_dropout_ = operator("dropout_")


@overridable
def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zero each element with probability `p` and scale the others by 1 / (1 - p) (Srivastava et al. 2014)."""
    check_probability("dropout", p)
    if inplace:  # what changes nothing writes nothing: the tensor may have been saved for a gradient
        return _dropout_(input, p, training) if training and p > 0.0 else input
    return _dropout(input, p, training)


def _drop_channels(
    function: str, leading: int, input: Tensor, p: float, training: bool, inplace: bool
) -> Tensor:
    """Zero whole channels, which the first `leading` dimensions of `input` count."""
    if not training or p == 0.0 or input.numel() == 0:
        return input
    if input.dim() < leading:
        raise RuntimeError(f"{function}(input): got {input.dim()} dimensions, needs at least {leading}")
    shape = (*input.shape[:leading], *(1,) * (input.dim() - leading))
    kept = _dropout(core.ones(shape, dtype=input.dtype, device=input.device), p, True)
    return input.mul_(kept) if inplace else input * kept


def _warn_of_dimensions(function: str, input: Tensor, needed: str) -> None:
    warnings.warn(
        f"{function}(input): got {input.dim()} dimensions, is made for {needed}\n"
        "hint: dropout zeroes elements, dropout1d channels of (N, C, L)",
        stacklevel=3,
    )


@overridable
def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zero whole channels of `input` (N, C, L) or (C, L) with probability `p` (Tompson et al. 2015).

    Raises:
        RuntimeError: `input` has another number of dimensions.
    """
    check_probability("dropout1d", p)
    if input.dim() not in (2, 3):
        raise RuntimeError(f"dropout1d(input): got {input.dim()} dimensions, needs (N, C, L) or (C, L)")
    return _drop_channels("dropout1d", input.dim() - 1, input, p, training, inplace)


@overridable
def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zero whole channels of `input` (N, C, H, W) with probability `p` (Tompson et al. 2015).

    As in PyTorch, three dimensions are taken for (N, C, L), with a warning, and two for (N, C).

    Raises:
        RuntimeError: training, and `input` has fewer than two dimensions.
    """
    check_probability("dropout2d", p)
    if input.dim() != 4:
        _warn_of_dimensions("dropout2d", input, "(N, C, H, W), and takes the first two for N and C")
    return _drop_channels("dropout2d", 2, input, p, training, inplace)


@overridable
def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zero whole channels of `input` (N, C, D, H, W) or (C, D, H, W) with probability `p`.

    Another number of dimensions warns, and the first one counts channels.

    Raises:
        RuntimeError: training, and `input` has no dimensions.
    """
    check_probability("dropout3d", p)
    if input.dim() not in (4, 5):
        _warn_of_dimensions("dropout3d", input, "(N, C, D, H, W) or (C, D, H, W)")
    return _drop_channels("dropout3d", 2 if input.dim() == 5 else 1, input, p, training, inplace)


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


@overridable
def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Set elements, with probability `p`, to the lower limit of SELU, and keep mean and variance.

    Klambauer et al. 2017.
    """
    check_probability("alpha_dropout", p)
    return _alpha_dropped(tuple(input.shape), input, p, inplace) if training and p > 0.0 else input


@overridable
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
