"""Layers that determine their number of input features or channels from the first input."""

from __future__ import annotations

from rushlight_core import Tensor

from .._typing import Any
from ..lazy import LazyModuleMixin
from ..parameter import UninitializedBuffer, UninitializedParameter
from .conv import Conv1d, Conv2d, Conv3d, _Convolution
from .conv_transpose import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d, _TransposedConvolution
from .instance_norm import InstanceNorm1d, InstanceNorm2d, InstanceNorm3d
from .linear import Linear
from .norm import BatchNorm1d, BatchNorm2d, BatchNorm3d, _NormBase

TYPE_CHECKING = False


def _channels(module: Any, input: Tensor, dims: tuple[int, int]) -> int:
    """Return the number of channels of `input`, which has dims[0] dimensions without a batch, and dims[1] with a batch."""
    if input.dim() not in dims:
        raise RuntimeError(
            f"{type(module).__name__}(input): got {input.dim()} dimensions, needs {dims[0]} or {dims[1]}"
        )
    return input.shape[input.dim() - dims[0]]


class LazyLinear(LazyModuleMixin, Linear):
    """A :class:`Linear` that sets `in_features` to the size of the last dimension of its first input.

    Args:
        out_features: size of the last dimension of the output.
        bias: whether there is a bias.
        device: device of the parameters.
        dtype: dtype of the parameters.

    Shape:
        - Input: (*, in_features).
        - Output: (*, out_features).

    Example:
        >>> layer = nn.LazyLinear(5)
        >>> layer
        LazyLinear(in_features=0, out_features=5, bias=True)
        >>> _ = layer(torch.randn(2, 3))
        >>> layer
        Linear(in_features=3, out_features=5, bias=True)
    """

    cls_to_become: Any = Linear

    def __init__(self, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None) -> None:
        super().__init__(0, 0, False)
        self.out_features = out_features
        self.weight: Any = UninitializedParameter(device=device, dtype=dtype)
        if bias:
            self.bias: Any = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Draw new initial values for the parameters if their shapes are known."""
        if not self.has_uninitialized_params() and self.in_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        """Set `in_features` to the size of the input's last dimension, and initialise the parameters."""
        if self.has_uninitialized_params():
            self.in_features = input.shape[-1]
            self.weight.materialize((self.out_features, self.in_features))
            if self.bias is not None:
                self.bias.materialize((self.out_features,))
            self.reset_parameters()
        elif self.in_features == 0:  # a state was loaded
            self.in_features: int = self.weight.shape[-1]


class _LazyParts(LazyModuleMixin):
    """The base class of lazy convolutions and lazy transposed convolutions."""

    if TYPE_CHECKING:
        in_channels: int
        out_channels: int
        groups: int
        weight: Any
        bias: Any
        _dims: int
        _weight_shape: Any

    def _make_lazy(self, bias: bool, device: Any, dtype: Any) -> None:
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Draw new initial values for the parameters if their shapes are known."""
        if not self.has_uninitialized_params() and self.in_channels != 0:
            super().reset_parameters()  # type: ignore[misc]

    def initialize_parameters(self, input: Tensor, *args: Any, **kwargs: Any) -> None:
        """Set `in_channels` to the input's number of channels, and initialise the parameters."""
        if self.has_uninitialized_params():
            channels = _channels(self, input, (self._dims + 1, self._dims + 2))
            if channels % self.groups:
                raise ValueError(
                    f"{type(self).__name__}(input): {channels} channels cannot be split into {self.groups} groups"
                )
            self.in_channels = channels
            self.weight.materialize(self._weight_shape())
            if self.bias is not None:
                self.bias.materialize((self.out_channels,))
            self.reset_parameters()
        elif self.in_channels == 0:  # a state was loaded
            transposed = isinstance(self, _TransposedConvolution)
            self.in_channels = self.weight.shape[0] if transposed else self.weight.shape[1] * self.groups


class _LazyConvolution(_LazyParts, _Convolution):
    def __init__(
        self,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            0,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            groups,
            False,
            padding_mode,
            device,
            dtype,
        )
        self._make_lazy(bias, device, dtype)


class LazyConv1d(_LazyConvolution, Conv1d):
    """A :class:`Conv1d` that sets `in_channels` to the number of channels of its first input.

    The other arguments are the same as for :class:`Conv1d`.

    Shape:
        - Input: (N, C, L) or (C, L), where C is stored as `in_channels`.
        - Output: the output of :class:`Conv1d`.

    Raises:
        ValueError: the channels of the first input cannot be split into `groups` groups (raised when the module is called).

    Example:
        >>> layer = nn.LazyConv1d(out_channels=6, kernel_size=3)
        >>> _ = layer(torch.randn(8, 16, 50))
        >>> layer
        Conv1d(16, 6, kernel_size=(3,), stride=(1,))
    """

    cls_to_become: Any = Conv1d


class LazyConv2d(_LazyConvolution, Conv2d):
    """A :class:`Conv2d` that sets `in_channels` to the number of channels of its first input.

    The other arguments are the same as for :class:`Conv2d`.

    Shape:
        - Input: (N, C, H, W) or (C, H, W), where C is stored as `in_channels`.
        - Output: the output of :class:`Conv2d`.

    Raises:
        ValueError: the channels of the first input cannot be split into `groups` groups (raised when the module is called).

    Example:
        >>> layer = nn.LazyConv2d(out_channels=6, kernel_size=3)
        >>> _ = layer(torch.randn(8, 16, 20, 20))
        >>> layer
        Conv2d(16, 6, kernel_size=(3, 3), stride=(1, 1))
    """

    cls_to_become: Any = Conv2d


class LazyConv3d(_LazyConvolution, Conv3d):
    """A :class:`Conv3d` that sets `in_channels` to the number of channels of its first input.

    The other arguments are the same as for :class:`Conv3d`.

    Shape:
        - Input: (N, C, D, H, W) or (C, D, H, W), where C is stored as `in_channels`.
        - Output: the output of :class:`Conv3d`.

    Raises:
        ValueError: the channels of the first input cannot be split into `groups` groups (raised when the module is called).

    Example:
        >>> layer = nn.LazyConv3d(out_channels=6, kernel_size=3)
        >>> _ = layer(torch.randn(2, 4, 8, 8, 8))
        >>> layer
        Conv3d(4, 6, kernel_size=(3, 3, 3), stride=(1, 1, 1))
    """

    cls_to_become: Any = Conv3d


class _LazyTransposedConvolution(_LazyParts, _TransposedConvolution):
    def __init__(
        self,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            0,
            out_channels,
            kernel_size,
            stride,
            padding,
            output_padding,
            groups,
            False,
            dilation,
            padding_mode,
            device,
            dtype,
        )
        self._make_lazy(bias, device, dtype)


class LazyConvTranspose1d(_LazyTransposedConvolution, ConvTranspose1d):
    """A :class:`ConvTranspose1d` that sets `in_channels` to the number of channels of its first input.

    The other arguments are the same as for :class:`ConvTranspose1d`.

    Shape:
        - Input: (N, C, L) or (C, L), where C is stored as `in_channels`.
        - Output: the output of :class:`ConvTranspose1d`.

    Raises:
        ValueError: the channels of the first input cannot be split into `groups` groups (raised when the module is called).

    Example:
        >>> layer = nn.LazyConvTranspose1d(out_channels=6, kernel_size=3)
        >>> _ = layer(torch.randn(8, 16, 50))
        >>> layer
        ConvTranspose1d(16, 6, kernel_size=(3,), stride=(1,))
    """

    cls_to_become: Any = ConvTranspose1d


class LazyConvTranspose2d(_LazyTransposedConvolution, ConvTranspose2d):
    """A :class:`ConvTranspose2d` that sets `in_channels` to the number of channels of its first input.

    The other arguments are the same as for :class:`ConvTranspose2d`.

    Shape:
        - Input: (N, C, H, W) or (C, H, W), where C is stored as `in_channels`.
        - Output: the output of :class:`ConvTranspose2d`.

    Raises:
        ValueError: the channels of the first input cannot be split into `groups` groups (raised when the module is called).

    Example:
        >>> layer = nn.LazyConvTranspose2d(out_channels=6, kernel_size=3)
        >>> _ = layer(torch.randn(8, 16, 20, 20))
        >>> layer
        ConvTranspose2d(16, 6, kernel_size=(3, 3), stride=(1, 1))
    """

    cls_to_become: Any = ConvTranspose2d


class LazyConvTranspose3d(_LazyTransposedConvolution, ConvTranspose3d):
    """A :class:`ConvTranspose3d` that sets `in_channels` to the number of channels of its first input.

    The other arguments are the same as for :class:`ConvTranspose3d`.

    Shape:
        - Input: (N, C, D, H, W) or (C, D, H, W), where C is stored as `in_channels`.
        - Output: the output of :class:`ConvTranspose3d`.

    Raises:
        ValueError: the channels of the first input cannot be split into `groups` groups (raised when the module is called).

    Example:
        >>> layer = nn.LazyConvTranspose3d(out_channels=6, kernel_size=3)
        >>> _ = layer(torch.randn(2, 4, 8, 8, 8))
        >>> layer
        ConvTranspose3d(4, 6, kernel_size=(3, 3, 3), stride=(1, 1, 1))
    """

    cls_to_become: Any = ConvTranspose3d


class _LazyNorm(LazyModuleMixin, _NormBase):
    def __init__(
        self,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(0, eps, momentum, False, track_running_stats, device, dtype, bias=False)
        self.affine = affine
        if affine:
            self.weight: Any = UninitializedParameter(device=device, dtype=dtype)
            if bias:
                self.bias: Any = UninitializedParameter(device=device, dtype=dtype)
        if track_running_stats:
            self.running_mean: Any = UninitializedBuffer(device=device, dtype=dtype)
            self.running_var: Any = UninitializedBuffer(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Set the weight to one and the bias to zero, and reset the running statistics, if their shapes are known."""
        if not self.has_uninitialized_params() and self.num_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        """Set `num_features` to the input's number of channels, and initialise the parameters and statistics."""
        tensors: tuple[Any, ...] = (self.weight, self.bias, self.running_mean, self.running_var)
        if self.has_uninitialized_params():
            self.num_features = self._features(input)
            for tensor in tensors:
                if tensor is not None:
                    tensor.materialize((self.num_features,))
            self.reset_parameters()
        elif self.num_features == 0:
            known = [tensor.shape[0] for tensor in tensors if tensor is not None]
            self.num_features: int = known[0] if known else self._features(input)

    def _features(self, input: Tensor) -> int:
        unbatched = isinstance(self, (InstanceNorm1d, InstanceNorm2d, InstanceNorm3d))
        return _channels(self, input, self._dims) if unbatched else input.shape[1]  # type: ignore[arg-type]


class LazyBatchNorm1d(_LazyNorm, BatchNorm1d):
    """A :class:`BatchNorm1d` that sets `num_features` to the number of channels of its first input.

    The other arguments are the same as for :class:`BatchNorm1d`.

    Shape:
        - Input and output: (N, C) or (N, C, L).

    Example:
        >>> layer = nn.LazyBatchNorm1d()
        >>> _ = layer(torch.randn(8, 16, 50))
        >>> layer
        BatchNorm1d(16, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)
    """

    cls_to_become: Any = BatchNorm1d


class LazyBatchNorm2d(_LazyNorm, BatchNorm2d):
    """A :class:`BatchNorm2d` that sets `num_features` to the number of channels of its first input.

    The other arguments are the same as for :class:`BatchNorm2d`.

    Shape:
        - Input and output: (N, C, H, W).

    Example:
        >>> layer = nn.LazyBatchNorm2d()
        >>> _ = layer(torch.randn(8, 16, 20, 20))
        >>> layer
        BatchNorm2d(16, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)
    """

    cls_to_become: Any = BatchNorm2d


class LazyBatchNorm3d(_LazyNorm, BatchNorm3d):
    """A :class:`BatchNorm3d` that sets `num_features` to the number of channels of its first input.

    The other arguments are the same as for :class:`BatchNorm3d`.

    Shape:
        - Input and output: (N, C, D, H, W).

    Example:
        >>> layer = nn.LazyBatchNorm3d()
        >>> _ = layer(torch.randn(2, 4, 8, 8, 8))
        >>> layer
        BatchNorm3d(4, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)
    """

    cls_to_become: Any = BatchNorm3d


class LazyInstanceNorm1d(_LazyNorm, InstanceNorm1d):
    """An :class:`InstanceNorm1d` that sets `num_features` to the number of channels of its first input.

    The other arguments are the same as for :class:`InstanceNorm1d`, but `affine` and `track_running_stats` are True by
    default.

    Shape:
        - Input and output: (N, C, L) or (C, L).

    Example:
        >>> layer = nn.LazyInstanceNorm1d()
        >>> _ = layer(torch.randn(8, 16, 50))
        >>> layer
        InstanceNorm1d(16, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)
    """

    cls_to_become: Any = InstanceNorm1d


class LazyInstanceNorm2d(_LazyNorm, InstanceNorm2d):
    """An :class:`InstanceNorm2d` that sets `num_features` to the number of channels of its first input.

    The other arguments are the same as for :class:`InstanceNorm2d`, but `affine` and `track_running_stats` are True by
    default.

    Shape:
        - Input and output: (N, C, H, W) or (C, H, W).

    Example:
        >>> layer = nn.LazyInstanceNorm2d()
        >>> _ = layer(torch.randn(8, 16, 20, 20))
        >>> layer
        InstanceNorm2d(16, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)
    """

    cls_to_become: Any = InstanceNorm2d


class LazyInstanceNorm3d(_LazyNorm, InstanceNorm3d):
    """An :class:`InstanceNorm3d` that sets `num_features` to the number of channels of its first input.

    The other arguments are the same as for :class:`InstanceNorm3d`, but `affine` and `track_running_stats` are True by
    default.

    Shape:
        - Input and output: (N, C, D, H, W) or (C, D, H, W).

    Example:
        >>> layer = nn.LazyInstanceNorm3d()
        >>> _ = layer(torch.randn(2, 4, 8, 8, 8))
        >>> layer
        InstanceNorm3d(4, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)
    """

    cls_to_become: Any = InstanceNorm3d
