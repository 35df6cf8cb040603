"""Normalisation."""

from __future__ import annotations

from collections.abc import Sequence

from rushlight_core import Tensor

from .._core import operator

_batch_norm = operator("batch_norm")
_layer_norm = operator("layer_norm")
_group_norm = operator("group_norm")
_rms_norm = operator("rms_norm")


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalise `input` (N, C, ...) per channel (Ioffe and Szegedy 2015).

    With `training` the batch's statistics are used, and the running ones, if given, moved towards them by
    `momentum` in place; otherwise the running ones are used.

    Raises:
        ValueError: training, and a channel has a single value.
    """
    if training and input.dim() > 1 and input.numel() == input.shape[1]:
        raise ValueError(
            f"batch_norm(input): shape {tuple(input.shape)} has one value per channel, training needs more\n"
            "hint: a larger batch, or module.eval()"
        )
    return _batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, True)


def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Normalise over the last dimensions, which have the sizes `normalized_shape` (Ba et al. 2016)."""
    return _layer_norm(input, normalized_shape, weight, bias, eps)


def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Normalise `input` (N, C, ...) over groups of C / num_groups channels (Wu and He 2018)."""
    return _group_norm(input, num_groups, weight, bias, eps)


def rms_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    """Divide by the root mean square over the last dimensions (Zhang and Sennrich 2019).

    `eps` defaults to the machine epsilon of the input's dtype.
    """
    return _rms_norm(input, normalized_shape, weight, eps)


def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Tensor:
    """`input` divided by its p-norm along `dim`, or by `eps` where the norm is smaller."""
    return input / input.norm(p, dim, keepdim=True).clamp(min=eps)
