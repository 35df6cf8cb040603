"""Dropout."""

from __future__ import annotations

import warnings

from rushlight_core import Tensor
from rushlight_core.overrides import overridable

from .._core import core, operator
from ._arguments import check_probability

_dropout = operator("dropout")
_dropout_ = operator("dropout_")


def _drop_all(input: Tensor, inplace: bool) -> Tensor:
    """Multiply by a zero of the dtype of `input`, which preserves the dtype of integers and booleans."""
    zero = core.zeros((), dtype=input.dtype, device=input.device)
    return input.mul_(zero) if inplace else input * zero


@overridable
def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zero each element with probability `p`, and scale the remaining elements by 1 / (1 - p) (Srivastava et al. 2014).

    Args:
        input: the tensor.
        p: probability of zeroing an element.
        training: if False, return the input unchanged.
        inplace: overwrite the input.

    Shape:
        - Input and output: (*), any shape.

    Raises:
        ValueError: `p` is not between 0 and 1.

    Example:
        >>> set(F.dropout(torch.ones(100), p=0.5).tolist()) == {0.0, 2.0}
        True
    """
    check_probability("dropout", p)
    if training and p == 1.0 and not input.is_floating_point():  # _dropout would convert integers
        return _drop_all(input, inplace)
    if inplace:  # do not write if nothing changes, because the tensor may be saved for the backward pass
        return _dropout_(input, p, training) if training and p > 0.0 else input
    return _dropout(input, p, training)


def _drop_channels(
    function: str, leading: int, input: Tensor, p: float, training: bool, inplace: bool
) -> Tensor:
    """Zero whole channels. A channel is the part of `input` at one index of the first `leading` dimensions."""
    if not training or p == 0.0 or input.numel() == 0:
        return input
    if input.dim() < leading:
        raise RuntimeError(f"{function}(input): got {input.dim()} dimensions, needs at least {leading}")
    if p == 1.0 and not input.is_floating_point():
        return _drop_all(input, inplace)
    shape = (*input.shape[:leading], *(1,) * (input.dim() - leading))
    kept = _dropout(core.ones(shape, dtype=input.dtype, device=input.device), p, True)
    return input.mul_(kept) if inplace else input * kept


def _warn_of_dimensions(function: str, input: Tensor, needed: str) -> None:
    warnings.warn(
        f"{function}(input): got {input.dim()} dimensions, expected {needed}\n"
        "hint: use dropout to zero elements, or dropout1d to zero channels of (N, C, L)",
        stacklevel=3,
    )


@overridable
def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zero whole channels of sequences with probability `p` and scale the others by 1 / (1 - p) (Tompson et al. 2015).

    Args:
        input: the sequences.
        p: probability of zeroing a channel.
        training: if False, return the input unchanged.
        inplace: overwrite the input.

    Shape:
        - Input and output: (N, C, L) or (C, L).

    Raises:
        ValueError: `p` is not between 0 and 1.
        RuntimeError: the input does not have 2 or 3 dimensions.

    Example:
        >>> dropped = F.dropout1d(torch.ones(20, 16, 4))
        >>> bool((dropped == dropped[:, :, :1]).all())  # a channel is dropped as a whole
        True
    """
    check_probability("dropout1d", p)
    if input.dim() not in (2, 3):
        raise RuntimeError(f"dropout1d(input): got {input.dim()} dimensions, needs (N, C, L) or (C, L)")
    return _drop_channels("dropout1d", input.dim() - 1, input, p, training, inplace)


@overridable
def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zero whole channels of images with probability `p` and scale the others by 1 / (1 - p) (Tompson et al. 2015).

    Args:
        input: the images.
        p: probability of zeroing a channel.
        training: if False, return the input unchanged.
        inplace: overwrite the input.

    Shape:
        - Input and output: (N, C, H, W). Other inputs of at least two dimensions are treated as (N, C, *), with a warning.

    Raises:
        ValueError: `p` is not between 0 and 1.
        RuntimeError: `training` is true, and the input has fewer than two dimensions.

    Example:
        >>> dropped = F.dropout2d(torch.ones(20, 16, 4, 4))
        >>> bool((dropped == dropped[:, :, :1, :1]).all())  # a channel is dropped as a whole
        True
    """
    check_probability("dropout2d", p)
    if input.dim() != 4:
        _warn_of_dimensions(
            "dropout2d", input, "(N, C, H, W); the first two dimensions are treated as N and C"
        )
    return _drop_channels("dropout2d", 2, input, p, training, inplace)


@overridable
def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zero whole channels of volumes with probability `p` and scale the others by 1 / (1 - p) (Tompson et al. 2015).

    Args:
        input: the volumes.
        p: probability of zeroing a channel.
        training: if False, return the input unchanged.
        inplace: overwrite the input.

    Shape:
        - Input and output: (N, C, D, H, W) or (C, D, H, W). Other inputs are treated as (C, *), with a warning.

    Raises:
        ValueError: `p` is not between 0 and 1.
        RuntimeError: `training` is true, and the input has no dimensions.

    Example:
        >>> dropped = F.dropout3d(torch.ones(20, 16, 2, 4, 4))
        >>> bool((dropped == dropped[:, :, :1, :1, :1]).all())  # a channel is dropped as a whole
        True
    """
    check_probability("dropout3d", p)
    if input.dim() not in (4, 5):
        _warn_of_dimensions("dropout3d", input, "(N, C, D, H, W) or (C, D, H, W)")
    return _drop_channels("dropout3d", 2 if input.dim() == 5 else 1, input, p, training, inplace)


# The limit of SELU as x tends to minus infinity.
_SELU_LOWEST = -1.7580993408473766


def _alpha_dropped(shape: tuple[int, ...], input: Tensor, p: float, inplace: bool) -> Tensor:
    if p == 1.0:
        return _drop_all(input, inplace)
    a = ((1 - p) * (1 + p * _SELU_LOWEST**2)) ** -0.5
    b = -a * _SELU_LOWEST * p
    kept = core.empty(shape, dtype=input.dtype, device=input.device).bernoulli_(1 - p)
    shift = (1 - kept) * (_SELU_LOWEST * a) + b
    return input.mul_(kept * a).add_(shift) if inplace else input * (kept * a) + shift


@overridable
def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Set elements to the lower limit of SELU with probability `p`, and preserve mean 0 and variance 1.

    All elements are then scaled and shifted, which keeps mean and variance (Klambauer et al. 2017).

    Args:
        input: the tensor.
        p: probability of dropping an element.
        training: if False, return the input unchanged.
        inplace: overwrite the input.

    Shape:
        - Input and output: (*), any shape.

    Raises:
        ValueError: `p` is not between 0 and 1.

    Example:
        >>> dropped = F.alpha_dropout(torch.randn(100_000), p=0.2, training=True)
        >>> abs(float(dropped.mean())) < 0.05, abs(float(dropped.std()) - 1) < 0.05
        (True, True)
    """
    check_probability("alpha_dropout", p)
    return _alpha_dropped(tuple(input.shape), input, p, inplace) if training and p > 0.0 else input


@overridable
def feature_alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """Set whole channels to the lower limit of SELU with probability `p`; see :func:`alpha_dropout`.

    Args:
        input: the tensor.
        p: probability of dropping a channel.
        training: if False, return the input unchanged.
        inplace: overwrite the input.

    Shape:
        - Input and output: (N, C, *).

    Raises:
        ValueError: `p` is not between 0 and 1.
        RuntimeError: `training` is true, and the input has fewer than two dimensions.

    Example:
        >>> dropped = F.feature_alpha_dropout(torch.ones(20, 16, 4), training=True)
        >>> bool((dropped == dropped[:, :, :1]).all())  # a channel is dropped as a whole
        True
    """
    check_probability("feature_alpha_dropout", p)
    if not training or p == 0.0:
        return input
    if input.dim() < 2:
        raise RuntimeError(f"feature_alpha_dropout(input): got {input.dim()} dimensions, needs at least 2")
    return _alpha_dropped((*input.shape[:2], *(1,) * (input.dim() - 2)), input, p, inplace)
