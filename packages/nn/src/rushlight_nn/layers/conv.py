"""Convolution layers."""

from __future__ import annotations

import math
from collections.abc import Callable

import rushlight_core as core
from rushlight_core import Tensor

from .. import functional as F
from .. import init
from .._typing import Any
from ..functional._arguments import tuple_of
from ..module import Module
from ..parameter import Parameter

_PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


class _Convolution(Module):
    """The base class of convolution layers, for any number of spatial dimensions."""

    _dims: int
    _convolve: Callable[..., Tensor]

    in_channels: int
    out_channels: int
    kernel_size: tuple[int, ...]
    stride: tuple[int, ...]
    padding: str | tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int
    padding_mode: str
    weight: Parameter
    bias: Parameter | None
    transposed = False

    def __init__(
        self,
        in_channels: int,
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
        super().__init__()
        name, dims = type(self).__name__, self._dims
        if groups < 1:
            raise ValueError(f"{name}(groups): got {groups}, needs at least 1")
        for what, channels in (("in_channels", in_channels), ("out_channels", out_channels)):
            if channels % groups:
                raise ValueError(f"{name}({what}): {channels} channels cannot be split into {groups} groups")
        if padding_mode not in _PADDING_MODES:
            raise ValueError(
                f"{name}(padding_mode): got {padding_mode!r}, needs one of {', '.join(_PADDING_MODES)}"
            )
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = tuple_of(dims, kernel_size)
        self.stride = tuple_of(dims, stride)
        self.dilation = tuple_of(dims, dilation)
        self.groups = groups
        self.padding_mode = padding_mode
        self.output_padding: tuple[int, ...] = (0,) * dims
        self.padding = padding if isinstance(padding, str) else tuple_of(dims, padding)
        self._split_padding()  # raises an error for an invalid padding
        self.weight = Parameter(core.empty(self._weight_shape(), device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(core.empty(out_channels, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def _weight_shape(self) -> tuple[int, ...]:
        return (self.out_channels, self.in_channels // self.groups, *self.kernel_size)

    def _split_padding(self) -> tuple[tuple[int, ...], list[int] | None]:
        """Return the padding to pass to the operator, and the padding to pass to `functional.pad` beforehand.

        The second item is None if the input needs no padding before the call of the operator.
        """
        if isinstance(self.padding, str):
            if self.padding not in ("same", "valid"):
                raise ValueError(
                    f"{type(self).__name__}(padding): got {self.padding!r}, needs numbers, 'same' or 'valid'"
                )
            if self.padding == "same" and any(s != 1 for s in self.stride):
                raise ValueError(f"{type(self).__name__}(padding): 'same' needs stride 1, got {self.stride}")
            if self.padding == "valid":
                totals = [0] * self._dims
            else:
                totals = [d * (k - 1) for d, k in zip(self.dilation, self.kernel_size, strict=True)]
        else:
            totals = [2 * p for p in self.padding]
        symmetric = all(total % 2 == 0 for total in totals)
        if self.padding_mode == "zeros" and symmetric:
            return tuple(total // 2 for total in totals), None
        extra = [side for total in reversed(totals) for side in (total // 2, total - total // 2)]
        return (0,) * self._dims, extra if any(extra) else None

    @property
    def _reversed_padding_repeated_twice(self) -> list[int]:
        """The padding in the format of `functional.pad`."""
        if isinstance(self.padding, str):
            whole = [
                d * (k - 1) if self.padding == "same" else 0
                for d, k in zip(self.dilation, self.kernel_size, strict=True)
            ]
            return [side for total in reversed(whole) for side in (total // 2, total - total // 2)]
        return [p for p in reversed(self.padding) for _ in range(2)]

    def reset_parameters(self) -> None:
        """Draw new initial values for the parameters from the uniform distribution between ±1 / sqrt(fan_in)."""
        fan_in = math.prod(self.weight.shape[1:])
        bound = 1 / math.sqrt(fan_in) if fan_in > 0 else 0.0
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.weight, self.bias)

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """Convolve the input with the given weight and bias.

        Subclasses that compute the weight themselves call this method.
        """
        padding = self.padding
        if self.padding_mode != "zeros" or isinstance(padding, str):
            padding, extra = self._split_padding()
            if extra is not None:
                input = F.pad(input, extra, "constant" if self.padding_mode == "zeros" else self.padding_mode)
        return self._convolve(input, weight, bias, self.stride, padding, self.dilation, self.groups)

    def extra_repr(self) -> str:
        text = (
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        )
        if self.padding != (0,) * self._dims:
            text += f", padding={self.padding}"
        if self.dilation != (1,) * self._dims:
            text += f", dilation={self.dilation}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        if self.bias is None:
            text += ", bias=False"
        if self.padding_mode != "zeros":
            text += f", padding_mode={self.padding_mode}"
        return text


class Conv1d(_Convolution):
    """A convolution over sequences: each output channel is the cross-correlation of the input with a learned filter.

    Weight and bias are initialised uniformly between ±1 / sqrt(in_channels / groups · kernel_size).

    Args:
        in_channels: number of channels of the input.
        out_channels: number of channels of the output.
        kernel_size: length of the filters, an int or a tuple of one int.
        stride: distance between adjacent positions of a filter.
        padding: number of elements added at each end; "valid" adds none, "same" preserves the length.
        dilation: distance between the input elements to which adjacent elements of a filter are applied.
        groups: number of groups of channels that are convolved independently.
        bias: whether a learned bias is added to each output channel.
        padding_mode: the values with which the input is padded: "zeros", "reflect", "replicate" or "circular".
        device: device of the parameters.
        dtype: dtype of the parameters.

    Shape:
        - Input: (N, in_channels, L) or (in_channels, L).
        - Output: (N, out_channels, L_out) or (out_channels, L_out), where
          L_out = floor((L + 2 · padding - dilation · (kernel_size - 1) - 1) / stride) + 1.
        - `weight`: (out_channels, in_channels / groups, kernel_size); `bias`: (out_channels).

    Raises:
        ValueError: `groups` does not divide both numbers of channels, the padding mode is unknown, or `padding` is "same"
            and the stride is not 1.

    Example:
        >>> layer = nn.Conv1d(16, 33, 3, stride=2)
        >>> layer(torch.randn(20, 16, 50)).shape
        torch.Size([20, 33, 24])
    """

    _dims = 1
    _convolve = staticmethod(F.conv1d)


class Conv2d(_Convolution):
    """A convolution over images: each output channel is the cross-correlation of the input with a learned filter.

    Weight and bias are initialised uniformly between ±1 / sqrt(in_channels / groups · number of elements of the kernel).

    Args:
        in_channels: number of channels of the input.
        out_channels: number of channels of the output.
        kernel_size: size of the filters, an int or a pair for height and width; likewise `stride`, `padding` and
            `dilation`.
        stride: distance between adjacent positions of a filter.
        padding: number of elements added at each end; "valid" adds none, "same" preserves the size.
        dilation: distance between the input elements to which adjacent elements of a filter are applied.
        groups: number of groups of channels that are convolved independently; `groups=in_channels` makes a depthwise
            convolution.
        bias: whether a learned bias is added to each output channel.
        padding_mode: the values with which the input is padded: "zeros", "reflect", "replicate" or "circular".
        device: device of the parameters.
        dtype: dtype of the parameters.

    Shape:
        - Input: (N, in_channels, H, W) or (in_channels, H, W).
        - Output: (N, out_channels, H_out, W_out) or (out_channels, H_out, W_out), where
          H_out = floor((H + 2 · padding[0] - dilation[0] · (kernel_size[0] - 1) - 1) / stride[0]) + 1,
          and W_out likewise with index 1.
        - `weight`: (out_channels, in_channels / groups, kernel_size[0], kernel_size[1]); `bias`: (out_channels).

    Raises:
        ValueError: `groups` does not divide both numbers of channels, the padding mode is unknown, or `padding` is "same"
            and the stride is not 1.

    Example:
        >>> layer = nn.Conv2d(16, 33, (3, 5), stride=(2, 1), padding=(4, 2))
        >>> layer(torch.randn(2, 16, 50, 100)).shape
        torch.Size([2, 33, 28, 100])
        >>> nn.Conv2d(3, 8, 3, padding="same")(torch.randn(2, 3, 32, 32)).shape
        torch.Size([2, 8, 32, 32])
    """

    _dims = 2
    _convolve = staticmethod(F.conv2d)


class Conv3d(_Convolution):
    """A convolution over volumes: each output channel is the cross-correlation of the input with a learned filter.

    Weight and bias are initialised uniformly between ±1 / sqrt(in_channels / groups · number of elements of the kernel).

    Args:
        in_channels: number of channels of the input.
        out_channels: number of channels of the output.
        kernel_size: size of the filters, an int or a triple for depth, height and width; likewise `stride`, `padding`
            and `dilation`.
        stride: distance between adjacent positions of a filter.
        padding: number of elements added at each end; "valid" adds none, "same" preserves the size.
        dilation: distance between the input elements to which adjacent elements of a filter are applied.
        groups: number of groups of channels that are convolved independently.
        bias: whether a learned bias is added to each output channel.
        padding_mode: the values with which the input is padded: "zeros", "reflect", "replicate" or "circular".
        device: device of the parameters.
        dtype: dtype of the parameters.

    Shape:
        - Input: (N, in_channels, D, H, W) or (in_channels, D, H, W).
        - Output: (N, out_channels, D_out, H_out, W_out), or without N, where
          D_out = floor((D + 2 · padding[0] - dilation[0] · (kernel_size[0] - 1) - 1) / stride[0]) + 1,
          and H_out and W_out likewise with indices 1 and 2.
        - `weight`: (out_channels, in_channels / groups, *kernel_size); `bias`: (out_channels).

    Raises:
        ValueError: `groups` does not divide both numbers of channels, the padding mode is unknown, or `padding` is "same"
            and the stride is not 1.

    Example:
        >>> layer = nn.Conv3d(4, 8, (3, 5, 2), stride=(2, 1, 1), padding=(4, 2, 0))
        >>> layer(torch.randn(1, 4, 10, 12, 9)).shape
        torch.Size([1, 8, 8, 12, 8])
    """

    _dims = 3
    _convolve = staticmethod(F.conv3d)
