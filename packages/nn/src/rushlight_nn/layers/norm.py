"""Normalisation layers."""

from __future__ import annotations

from collections.abc import Sequence

import rushlight_core as core
from rushlight_core import Tensor

from .. import functional as F
from .. import init
from .._typing import Any
from ..module import Module
from ..parameter import Parameter


def _reset_affine(module: Any) -> None:
    if module.weight is not None:
        init.ones_(module.weight)
    if module.bias is not None:
        init.zeros_(module.bias)


class _NormBase(Module):
    """The base class of batch and instance normalisation layers."""

    _dims: tuple[int, ...]

    num_features: int
    weight: Parameter | None
    bias: Parameter | None
    running_mean: Any
    running_var: Any
    num_batches_tracked: Any
    _version = 2

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        for name, wanted in (("weight", affine), ("bias", affine and bias)):
            values = core.empty(num_features, device=device, dtype=dtype) if wanted else None
            self.register_parameter(name, None if values is None else Parameter(values))
        if track_running_stats:
            self.register_buffer("running_mean", core.zeros(num_features, device=device, dtype=dtype))
            self.register_buffer("running_var", core.ones(num_features, device=device, dtype=dtype))
            self.register_buffer("num_batches_tracked", core.zeros((), device=device, dtype=core.int64))
        else:
            for name in ("running_mean", "running_var", "num_batches_tracked"):
                self.register_buffer(name, None)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Reset the running statistics."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Set the weight to one and the bias to zero, and reset the running statistics."""
        self.reset_running_stats()
        _reset_affine(self)

    def _load_from_state_dict(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )
        # States of versions before 2, and states that other programs wrote, may lack `num_batches_tracked`.
        count = prefix + "num_batches_tracked"
        if (local_metadata.get("version") or 1) < 2 and count in missing_keys:
            missing_keys.remove(count)

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() not in self._dims:
            needed = " or ".join(map(str, self._dims))
            raise ValueError(f"{type(self).__name__}(input): got {input.dim()} dimensions, needs {needed}")
        training = self.training
        momentum = self.momentum
        if training and self.track_running_stats and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if momentum is None:  # compute the plain average over all batches
                momentum = 1.0 / float(self.num_batches_tracked)
        # Without running statistics, the statistics of the batch are used in evaluation mode, too. Running statistics
        # that are no longer tracked do not change in training mode.
        use_batch = training or self.running_mean is None
        frozen = training and not self.track_running_stats
        return F.batch_norm(
            input,
            None if frozen else self.running_mean,
            None if frozen else self.running_var,
            self.weight,
            self.bias,
            use_batch,
            0.0 if momentum is None else momentum,
            self.eps,
        )

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )


class _BatchNorm(_NormBase):
    """The base class of batch normalisation layers, for use with `isinstance`."""


class BatchNorm1d(_BatchNorm):
    """Batch normalisation of features or sequences, per channel (Ioffe and Szegedy 2015).

    The result is ``(x - mean) / sqrt(var + eps) · weight + bias``. In training mode, the mean and the (biased) variance
    are computed from the batch, and the running averages of the mean and the unbiased variance are updated in place. In
    evaluation mode, the running averages are used.

    Args:
        num_features: C, the number of channels.
        eps: added to the variance.
        momentum: the weight of each new batch in the running averages; None selects the simple average of all batches.
        affine: whether the layer has a weight per channel and, if `bias` is True, a bias per channel.
        track_running_stats: whether running averages are tracked. If False, the statistics of the batch are also used in
            evaluation mode.
        device: device of the parameters and buffers.
        dtype: dtype of the parameters and buffers.
        bias: whether the layer has a bias in addition to the weight.

    Shape:
        - Input and output: (N, C) or (N, C, L).
        - `weight`, `bias`, `running_mean` and `running_var`: (C).

    Raises:
        ValueError: the input has neither 2 nor 3 dimensions, or, in training mode, it has only one value per channel.

    Example:
        >>> layer = nn.BatchNorm1d(2)
        >>> layer(torch.tensor([[1.0, 10.0], [3.0, 30.0]])).detach()
        tensor([[-1.0000, -1.0000],
                [ 1.0000,  1.0000]])
        >>> layer.running_mean  # 0.9 · 0 + 0.1 · mean of the batch
        tensor([0.2000, 2.0000])
    """

    _dims = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Batch normalisation of images, per channel (Ioffe and Szegedy 2015).

    The result is ``(x - mean) / sqrt(var + eps) · weight + bias``. In training mode, the mean and the (biased) variance
    are computed from the batch, and the running averages of the mean and the unbiased variance are updated in place. In
    evaluation mode, the running averages are used.

    Args:
        num_features: C, the number of channels.
        eps: added to the variance.
        momentum: the weight of each new batch in the running averages; None selects the simple average of all batches.
        affine: whether the layer has a weight per channel and, if `bias` is True, a bias per channel.
        track_running_stats: whether running averages are tracked. If False, the statistics of the batch are also used in
            evaluation mode.
        device: device of the parameters and buffers.
        dtype: dtype of the parameters and buffers.
        bias: whether the layer has a bias in addition to the weight.

    Shape:
        - Input and output: (N, C, H, W).
        - `weight`, `bias`, `running_mean` and `running_var`: (C).

    Raises:
        ValueError: the input does not have 4 dimensions, or, in training mode, it has only one value per channel.

    Example:
        >>> output = nn.BatchNorm2d(3)(torch.randn(20, 3, 8, 8) * 5 + 2)
        >>> bool((output.mean((0, 2, 3)).abs() < 1e-5).all())  # every channel has mean 0
        True
    """

    _dims = (4,)


class BatchNorm3d(_BatchNorm):
    """Batch normalisation of volumes, per channel (Ioffe and Szegedy 2015).

    The arguments and the computation are the same as for :class:`BatchNorm2d`.

    Shape:
        - Input and output: (N, C, D, H, W).
        - `weight`, `bias`, `running_mean` and `running_var`: (C).

    Raises:
        ValueError: the input does not have 5 dimensions, or, in training mode, it has only one value per channel.

    Example:
        >>> nn.BatchNorm3d(3)(torch.randn(20, 3, 4, 5, 6)).shape
        torch.Size([20, 3, 4, 5, 6])
    """

    _dims = (5,)


class SyncBatchNorm(_BatchNorm):
    """Batch normalisation that computes its statistics only from the batch of this process.

    Unlike in PyTorch, the statistics are not yet computed over all processes of a group. The class is for programs that
    convert their models but run in a single process.

    Args:
        num_features: C, the number of channels.
        eps, momentum, affine, track_running_stats, device, dtype, bias: see :class:`BatchNorm2d`.
        process_group: stored, but not used.

    Shape:
        - Input and output: (N, C, *).

    Raises:
        ValueError: the input has fewer than 2 dimensions, or, in training mode, it has only one value per channel.

    Example:
        >>> model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8))
        >>> nn.SyncBatchNorm.convert_sync_batchnorm(model)[1]
        SyncBatchNorm(8, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)
    """

    _dims = tuple(range(2, 65))

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self.process_group = process_group

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Module:
        """Replace each BatchNorm in `module` by a SyncBatchNorm, and return the module.

        Each SyncBatchNorm has the parameters and statistics of the BatchNorm that it replaces.
        """
        result = module
        if isinstance(module, _BatchNorm) and not isinstance(module, cls):
            result = cls(
                module.num_features,
                module.eps,
                module.momentum,
                module.affine,
                module.track_running_stats,
                process_group,
                bias=module.bias is not None,
            )
            for name in ("weight", "bias", "running_mean", "running_var", "num_batches_tracked"):
                setattr(result, name, getattr(module, name))
            result.training = module.training
        for name, child in module.named_children():
            result.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return result


class LayerNorm(Module):
    """Layer normalisation: normalise over the last dimensions of each sample (Ba et al. 2016).

    The result is ``(x - mean) / sqrt(var + eps) · weight + bias`` with the mean and the biased variance over the dimensions
    of `normalized_shape`.

    Args:
        normalized_shape: sizes of the dimensions to normalise over. An int is the size of the last dimension.
        eps: added to the variance.
        elementwise_affine: whether the layer has a weight and, if `bias` is True, a bias. Both have the shape
            `normalized_shape`.
        bias: whether the layer has a bias in addition to the weight.
        device: device of the parameters.
        dtype: dtype of the parameters.

    Shape:
        - Input and output: (*, *normalized_shape).

    Example:
        >>> nn.LayerNorm(3)(torch.tensor([[1.0, 2.0, 3.0], [10.0, 20.0, 30.0]])).detach()
        tensor([[-1.2247,  0.0000,  1.2247],
                [-1.2247,  0.0000,  1.2247]])
        >>> nn.LayerNorm([5, 10, 10])(torch.randn(20, 5, 10, 10)).shape
        torch.Size([20, 5, 10, 10])
    """

    normalized_shape: tuple[int, ...]
    weight: Parameter | None
    bias: Parameter | None

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.normalized_shape = shape
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        for name, wanted in (("weight", elementwise_affine), ("bias", elementwise_affine and bias)):
            values = core.empty(shape, device=device, dtype=dtype) if wanted else None
            self.register_parameter(name, None if values is None else Parameter(values))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the weight to one and the bias to zero."""
        _reset_affine(self)

    def forward(self, input: Tensor) -> Tensor:
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, "
            f"bias={self.bias is not None}"
        )


class RMSNorm(Module):
    """Root mean square normalisation over the last dimensions of each sample (Zhang and Sennrich 2019).

    The result is ``x / sqrt(mean(x²) + eps) · weight``.

    Args:
        normalized_shape: sizes of the dimensions to normalise over. An int is the size of the last dimension.
        eps: added to the mean of squares. None selects the machine epsilon of the input's dtype.
        elementwise_affine: whether the layer has a weight of the shape `normalized_shape`.
        device: device of the weight.
        dtype: dtype of the weight.

    Shape:
        - Input and output: (*, *normalized_shape).

    Example:
        >>> nn.RMSNorm(2)(torch.tensor([[1.0, 7.0], [3.0, 4.0]])).detach()
        tensor([[0.2000, 1.4000],
                [0.8485, 1.1314]])
    """

    normalized_shape: tuple[int, ...]
    weight: Parameter | None

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.normalized_shape = shape
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        values = core.empty(shape, device=device, dtype=dtype) if elementwise_affine else None
        self.register_parameter("weight", None if values is None else Parameter(values))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the weight to one."""
        if self.weight is not None:
            init.ones_(self.weight)

    def forward(self, input: Tensor) -> Tensor:
        return F.rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class GroupNorm(Module):
    """Group normalisation: normalise each sample over groups of channels (Wu and He 2018).

    With one group, all channels are normalised together. With as many groups as channels, each channel is normalised
    separately.

    Args:
        num_groups: number of groups, a divisor of `num_channels`.
        num_channels: C, the number of channels.
        eps: added to the variance.
        affine: whether the layer has a weight per channel and, if `bias` is True, a bias per channel.
        device: device of the parameters.
        dtype: dtype of the parameters.
        bias: whether the layer has a bias in addition to the weight.

    Shape:
        - Input and output: (N, C, *).
        - `weight` and `bias`: (C).

    Raises:
        ValueError: the channels cannot be split into `num_groups` equal groups.

    Example:
        >>> nn.GroupNorm(3, 6)(torch.randn(20, 6, 10, 10)).shape
        torch.Size([20, 6, 10, 10])
    """

    weight: Parameter | None
    bias: Parameter | None

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_groups < 1 or num_channels % num_groups:
            raise ValueError(
                f"GroupNorm(num_groups): {num_channels} channels cannot be split into {num_groups} groups"
            )
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        for name, wanted in (("weight", affine), ("bias", affine and bias)):
            values = core.empty(num_channels, device=device, dtype=dtype) if wanted else None
            self.register_parameter(name, None if values is None else Parameter(values))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the weight to one and the bias to zero."""
        _reset_affine(self)

    def forward(self, input: Tensor) -> Tensor:
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )
