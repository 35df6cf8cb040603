"""Normalisation."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rushlight_core import Tensor
from rushlight_core.overrides import overridable

from .._core import core, operator

_batch_norm = operator("batch_norm")
_layer_norm = operator("layer_norm")
_group_norm = operator("group_norm")
_rms_norm = operator("rms_norm")
_constant_pad = operator("constant_pad_nd")
_avg_pool2d = operator("avg_pool2d")


@overridable
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
    """Normalise `input` (N, C, ...) per channel (Ioffe and Szegedy 2015). A vector without elements has no channels.

    With `training` the batch's statistics are used, and the running ones, if given, moved towards them by
    `momentum` in place; otherwise the running ones are used.

    Raises:
        ValueError: training, and a channel has a single value.
    """
    if input.dim() == 1 and input.numel() == 0:
        none = input.reshape(0, 0)
        return batch_norm(none, running_mean, running_var, weight, bias, training, momentum, eps).reshape(0)
    if training and input.dim() > 1 and input.shape[0] * math.prod(input.shape[2:]) == 1:
        raise ValueError(
            "batch_norm(input): Expected more than 1 value per channel when training, got input size "
            f"{input.shape}\n"
            "hint: a larger batch, or module.eval()"
        )
    return _batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, True)


@overridable
def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Normalise over the last dimensions, which have the sizes `normalized_shape` (Ba et al. 2016)."""
    return _layer_norm(input, normalized_shape, weight, bias, eps)


@overridable
def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Normalise `input` (N, C, ...) over groups of C / num_groups channels (Wu and He 2018).

    Raises:
        ValueError: a group of the only sample has a single value.
    """
    if input.numel() == num_groups and input.dim() > 1:
        raise ValueError(
            f"group_norm(input): Expected more than 1 value per channel when training, got input size {input.shape}"
        )
    return _group_norm(input, num_groups, weight, bias, eps)


@overridable
def rms_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    """Divide by the root mean square over the last dimensions (Zhang and Sennrich 2019).

    `eps` defaults to the machine epsilon of the input's dtype.
    """
    return _rms_norm(input, normalized_shape, weight, eps)


@overridable
def normalize(
    input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: Tensor | None = None
) -> Tensor:
    """`input` divided by its p-norm along `dim`, or by `eps` where the norm is smaller; into `out` if it is given."""
    norm = input.norm(p, dim, keepdim=True).clamp(min=eps)
    return input / norm if out is None else input.div(norm, out=out)


@overridable
def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalise each channel of each sample of `input` (N, C, ...) (Ulyanov et al. 2016).

    With `use_input_stats` the sample's own statistics are used, and the running ones, if given, moved towards
    their mean over the batch by `momentum` in place; otherwise the running ones are used.

    Raises:
        ValueError: a channel of a sample has a single value, and its statistics are to be used.
    """
    if not use_input_stats:
        return batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
    batch, channels = input.shape[:2]
    if math.prod(input.shape[2:]) == 1:
        raise ValueError(
            "instance_norm(input): Expected more than 1 spatial element when training, got input size "
            f"{input.shape}"
        )
    if input.numel() == 0:
        return input.clone()
    if running_mean is None or running_var is None:
        return _group_norm(input, channels, weight, bias, eps)
    # The samples' channels are channels of one sample; of the statistics that come out the mean is kept.
    means, variances = running_mean.repeat(batch), running_var.repeat(batch)
    flat = input.reshape(1, batch * channels, *input.shape[2:])
    result = _batch_norm(flat, None, None, means, variances, True, momentum, eps, True).reshape(input.shape)
    with core.no_grad():
        running_mean.copy_(means.reshape(batch, channels).mean(0))
        running_var.copy_(variances.reshape(batch, channels).mean(0))
    per_channel = (-1, *(1,) * (input.dim() - 2))
    if weight is not None:
        result = result * weight.reshape(per_channel)
    return result if bias is None else result + bias.reshape(per_channel)


@overridable
def local_response_norm(
    input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Tensor:
    """`input` (N, C, ...) divided by (k + alpha · mean of squares over `size` channels around)^beta.

    Krizhevsky, Sutskever and Hinton 2012.
    """
    if input.dim() < 3:
        raise ValueError(f"local_response_norm(input): got {input.dim()} dimensions, needs 3 or more")
    if input.numel() == 0:
        return input
    squares = (input * input).flatten(2).unsqueeze(1)  # (N, 1, C, places): channels are pooled
    padded = _constant_pad(squares, [0, 0, size // 2, (size - 1) // 2])
    means = _avg_pool2d(padded, (size, 1), 1).reshape(input.shape)
    return input / (means * alpha + k) ** beta
