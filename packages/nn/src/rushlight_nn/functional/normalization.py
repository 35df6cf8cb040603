"""Normalisation functions."""

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
    """Normalise each channel over the batch: ``(x - mean) / sqrt(var + eps) · weight + bias`` (Ioffe and Szegedy 2015).

    Args:
        input: the tensor.
        running_mean: running mean of each channel; updated in place if `training` is True.
        running_var: running variance of each channel; updated in place if `training` is True.
        weight: the scale of each channel.
        bias: a bias that is added to each channel.
        training: whether to use the statistics of the batch instead of the running statistics.
        momentum: the weight of the batch's statistics in the update of the running statistics.
        eps: added to the variance. `eps` must be positive if `training` is True, and must not be negative if
            it is False.

    Shape:
        - Input and output: (N, C, *).
        - `running_mean`, `running_var`, `weight` and `bias`: (C).

    Raises:
        ValueError: `training` is True, and a channel has a single value; or `eps` is out of range.
        IndexError: `training` is True, and `input` has no channel dimension.

    Example:
        >>> F.batch_norm(torch.tensor([[1.0, 10.0], [3.0, 30.0]]), None, None, training=True)
        tensor([[-1.0000, -1.0000],
                [ 1.0000,  1.0000]])
    """
    if eps < 0 or (training and eps == 0):
        raise ValueError(f"batch_norm(eps): must be {'positive' if training else 'at least 0'}, got {eps}")
    if input.dim() == 1 and input.numel() == 0:
        none = input.reshape(0, 0)
        return batch_norm(none, running_mean, running_var, weight, bias, training, momentum, eps).reshape(0)
    if training and input.dim() > 0 and input.shape[0] * math.prod(input.shape[2:]) == 1:
        raise ValueError(
            "batch_norm(input): Expected more than 1 value per channel when training, got input size "
            f"{input.shape}\n"
            "hint: use a larger batch, or call eval()"
        )
    if training and input.dim() < (2 if running_mean is None else 1):
        raise IndexError(
            f"batch_norm(input): needs at least 2 dimensions (batch, channels), got shape {tuple(input.shape)}"
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
    """Normalise over the last dimensions: ``(x - mean) / sqrt(var + eps) · weight + bias`` (Ba et al. 2016).

    Args:
        input: the tensor.
        normalized_shape: the sizes of the last dimensions.
        weight: the scale of each element, of shape `normalized_shape`.
        bias: the bias that is added to each element, of shape `normalized_shape`.
        eps: added to the variance.

    Shape:
        - Input and output: (*, *normalized_shape).

    Example:
        >>> F.layer_norm(torch.tensor([[1.0, 2.0, 3.0], [10.0, 20.0, 30.0]]), [3])
        tensor([[-1.2247,  0.0000,  1.2247],
                [-1.2247,  0.0000,  1.2247]])
    """
    return _layer_norm(input, normalized_shape, weight, bias, eps)


@overridable
def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Normalise each sample over groups of channels (Wu and He 2018).

    Args:
        input: the tensor.
        num_groups: number of groups, a divisor of C.
        weight: the scale of each channel.
        bias: a bias that is added to each channel.
        eps: added to the variance.

    Shape:
        - Input and output: (N, C, *).
        - `weight` and `bias`: (C).

    Raises:
        ValueError: `input` has only one sample, and each group has a single value.

    Example:
        >>> F.group_norm(torch.tensor([[[1.0], [3.0], [10.0], [30.0]]]), num_groups=2).flatten()
        tensor([-1.0000,  1.0000, -1.0000,  1.0000])
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
    """Divide the input by its root mean square over the last dimensions: ``x / sqrt(mean(x²) + eps) · weight``.

    The method is from Zhang and Sennrich 2019.

    Args:
        input: the tensor.
        normalized_shape: the sizes of the last dimensions.
        weight: the scale of each element, of shape `normalized_shape`.
        eps: added to the mean of squares; by default the machine epsilon of float64 for float64 and
            complex128 inputs, and the machine epsilon of float32 for all other dtypes.

    Shape:
        - Input and output: (*, *normalized_shape).

    Example:
        >>> F.rms_norm(torch.tensor([[1.0, 7.0], [3.0, 4.0]]), [2])
        tensor([[0.2000, 1.4000],
                [0.8485, 1.1314]])
    """
    return _rms_norm(input, normalized_shape, weight, eps)


@overridable
def normalize(
    input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: Tensor | None = None
) -> Tensor:
    """Divide vectors along a dimension by their p-norm: ``x / max(|x|, eps)``.

    Args:
        input: the tensor.
        p: order of the norm.
        dim: the dimension along which the norms are computed.
        eps: lower bound of the norm, which avoids division by zero.
        out: the tensor to write into.

    Shape:
        - Input and output: (*), any shape.

    Example:
        >>> F.normalize(torch.tensor([[3.0, 4.0], [0.0, 2.0]]))
        tensor([[0.6000, 0.8000],
                [0.0000, 1.0000]])
    """
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
    """Normalise each channel of each sample separately (Ulyanov et al. 2016).

    Args:
        input: the tensor.
        running_mean: running mean of each channel; updated in place if `use_input_stats` is True.
        running_var: running variance of each channel; updated in place if `use_input_stats` is True.
        weight: the scale of each channel.
        bias: a bias that is added to each channel.
        use_input_stats: whether to use each sample's statistics instead of the running statistics.
        momentum: the weight of the new statistics in the update of the running statistics. The new statistics
            are averaged over the batch.
        eps: added to the variance.

    Shape:
        - Input and output: (N, C, *).
        - `running_mean`, `running_var`, `weight` and `bias`: (C).

    Raises:
        ValueError: `use_input_stats` is True, and a channel of a sample has a single value.

    Example:
        >>> F.instance_norm(torch.tensor([[[1.0, 3.0], [10.0, 30.0]]]))
        tensor([[[-1.0000,  1.0000],
                 [-1.0000,  1.0000]]])
    """
    if not use_input_stats:
        return batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
    if math.prod(input.shape[2:]) == 1:
        raise ValueError(
            "instance_norm(input): Expected more than 1 spatial element when training, got input size "
            f"{input.shape}"
        )
    batch, channels = input.shape[:2]
    if input.numel() == 0:
        result = input.clone()  # without statistics
    elif running_mean is None or running_var is None:
        return _group_norm(input, channels, weight, bias, eps)
    else:
        # Treat the channels of all samples as channels of one sample, and store the mean of the updated statistics.
        means, variances = running_mean.repeat(batch), running_var.repeat(batch)
        flat = input.reshape(1, batch * channels, *input.shape[2:])
        result = _batch_norm(flat, None, None, means, variances, True, momentum, eps, True)
        result = result.reshape(input.shape)
        with core.no_grad():
            running_mean.copy_(means.reshape(batch, channels).mean(0))
            running_var.copy_(variances.reshape(batch, channels).mean(0))
    per_channel = (channels, *(1,) * (input.dim() - 2))
    if weight is not None:
        result = result * weight.reshape(per_channel)
    return result if bias is None else result + bias.reshape(per_channel)


@overridable
def local_response_norm(
    input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Tensor:
    """Divide the input by a power of the mean square of neighbouring channels: ``x / (k + alpha · mean)^beta``.

    The method is from Krizhevsky, Sutskever and Hinton 2012.

    Args:
        input: the tensor.
        size: number of neighbouring channels over which the mean is computed.
        alpha: the factor by which the mean is multiplied.
        beta: the exponent.
        k: added to alpha times the mean.

    Shape:
        - Input and output: (N, C, *).

    Raises:
        ValueError: the input has fewer than 3 dimensions.

    Example:
        >>> F.local_response_norm(torch.randn(32, 5, 24, 24), size=2).shape
        torch.Size([32, 5, 24, 24])
    """
    if input.dim() < 3:
        raise ValueError(f"local_response_norm(input): got {input.dim()} dimensions, needs 3 or more")
    if input.numel() == 0:
        return input
    squares = (input * input).flatten(2).unsqueeze(1)  # (N, 1, C, positions), to pool over channels
    padded = _constant_pad(squares, [0, 0, size // 2, (size - 1) // 2])
    means = _avg_pool2d(padded, (size, 1), 1).reshape(input.shape)
    return input / (means * alpha + k) ** beta
