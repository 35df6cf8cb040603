"""Transposed convolution layers: each computes the gradient of a convolution with respect to its input."""

from __future__ import annotations

from collections.abc import Sequence

from rushlight_core import Tensor

from .. import functional as F
from .._typing import Any
from ..functional._arguments import tuple_of
from .conv import _Convolution


class _TransposedConvolution(_Convolution):
    """The base class of transposed convolution layers, for any number of spatial dimensions."""

    padding: tuple[int, ...]
    output_padding: tuple[int, ...]

    transposed = True

    def __init__(
        self,
        in_channels: int,
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
        name = type(self).__name__
        if padding_mode != "zeros":
            raise ValueError(f"{name}(padding_mode): got {padding_mode!r}, only 'zeros' is supported")
        if isinstance(padding, str):
            raise TypeError(f"{name}(padding): got {padding!r}, needs numbers")
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )
        self.output_padding = tuple_of(self._dims, output_padding)

    def _weight_shape(self) -> tuple[int, ...]:
        return (self.in_channels, self.out_channels // self.groups, *self.kernel_size)

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """Compute the transposed convolution of `input`.

        If the stride is above 1, the output can have one of several sizes, and `output_size` selects one of them. If
        `output_size` is given, the layer's `output_padding` is ignored.
        """
        output_padding = (
            self.output_padding if output_size is None else self._output_padding(input, output_size)
        )
        return self._convolve(
            input,
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            output_padding,
            self.groups,
            self.dilation,
        )

    def _output_padding(self, input: Tensor, output_size: Sequence[int]) -> tuple[int, ...]:
        dims = self._dims
        smallest = [
            (input.shape[d - dims] - 1) * self.stride[d]
            - 2 * self.padding[d]
            + self.dilation[d] * (self.kernel_size[d] - 1)
            + 1
            for d in range(dims)
        ]
        wanted = list(output_size)[-dims:]
        if len(output_size) not in (dims, input.dim()) or any(
            not 0 <= w - s < self.stride[d] for d, (w, s) in enumerate(zip(wanted, smallest, strict=True))
        ):
            largest = [s + step - 1 for s, step in zip(smallest, self.stride, strict=True)]
            raise ValueError(
                f"{type(self).__name__}(output_size): got {tuple(output_size)}, needs sizes from "
                f"{tuple(smallest)} to {tuple(largest)} for an input of shape {tuple(input.shape)}"
            )
        return tuple(w - s for w, s in zip(wanted, smallest, strict=True))

    def extra_repr(self) -> str:
        text = super().extra_repr()
        if self.output_padding == (0,) * self._dims:
            return text
        part = f", output_padding={self.output_padding}"
        for mark in (", groups=", ", bias="):  # the position is the same as in PyTorch
            if mark in text:
                return text.replace(mark, part + mark, 1)
        return text + part


class ConvTranspose1d(_TransposedConvolution):
    """A transposed convolution over sequences: the gradient of :class:`Conv1d` with respect to its input.

    Args:
        in_channels: number of channels of the input.
        out_channels: number of channels of the output.
        kernel_size: length of the filters.
        stride: the approximate ratio of the output's length to the input's length.
        padding: number of elements that are removed at each end of the output.
        output_padding: number of elements that are added at the end of the output; it must be less than the larger of
            `stride` and `dilation`.
        groups: number of groups of channels that are convolved independently.
        bias: whether a learned bias is added to each output channel.
        dilation: distance between the output elements to which adjacent elements of a filter contribute.
        padding_mode: must be "zeros".
        device: device of the parameters.
        dtype: dtype of the parameters.

    Shape:
        - Input: (N, in_channels, L) or (in_channels, L).
        - Output: (N, out_channels, L_out) or (out_channels, L_out), where
          L_out = (L - 1) · stride - 2 · padding + dilation · (kernel_size - 1) + output_padding + 1.
        - `weight`: (in_channels, out_channels / groups, kernel_size); `bias`: (out_channels).

    Raises:
        ValueError: `groups` does not divide both numbers of channels, or `padding_mode` is not "zeros".
        TypeError: `padding` is a string.

    Example:
        >>> layer = nn.ConvTranspose1d(16, 8, 4, stride=2, padding=1)
        >>> layer(torch.randn(20, 16, 50)).shape
        torch.Size([20, 8, 100])
    """

    _dims = 1
    _convolve = staticmethod(F.conv_transpose1d)


class ConvTranspose2d(_TransposedConvolution):
    """A transposed convolution over images: the gradient of :class:`Conv2d` with respect to its input.

    A transposed convolution is also called a fractionally strided convolution or, less exactly, a deconvolution (Zeiler et
    al. 2010). `forward` has a second argument, `output_size`. If `output_size` is given, the layer chooses `output_padding`
    so that the output has this size.

    Args:
        in_channels: number of channels of the input.
        out_channels: number of channels of the output.
        kernel_size: size of the filters, an int or a pair for height and width; likewise `stride`, `padding`,
            `output_padding` and `dilation`.
        stride: the approximate ratio of the output's size to the input's size.
        padding: number of elements that are removed at each end of the output.
        output_padding: number of elements that are added at the end of the output; it must be less than the larger of
            `stride` and `dilation`.
        groups: number of groups of channels that are convolved independently.
        bias: whether a learned bias is added to each output channel.
        dilation: distance between the output elements to which adjacent elements of a filter contribute.
        padding_mode: must be "zeros".
        device: device of the parameters.
        dtype: dtype of the parameters.

    Shape:
        - Input: (N, in_channels, H, W) or (in_channels, H, W).
        - Output: (N, out_channels, H_out, W_out) or (out_channels, H_out, W_out), where
          H_out = (H - 1) · stride[0] - 2 · padding[0] + dilation[0] · (kernel_size[0] - 1) + output_padding[0] + 1,
          and W_out likewise with index 1.
        - `weight`: (in_channels, out_channels / groups, kernel_size[0], kernel_size[1]); `bias`: (out_channels).

    Raises:
        ValueError: `groups` does not divide both numbers of channels, or `padding_mode` is not "zeros".
        TypeError: `padding` is a string.

    Example:
        >>> down = nn.Conv2d(16, 16, 3, stride=2, padding=1)
        >>> up = nn.ConvTranspose2d(16, 16, 3, stride=2, padding=1)
        >>> input = torch.randn(1, 16, 12, 12)
        >>> up(down(input)).shape
        torch.Size([1, 16, 11, 11])
        >>> up(down(input), output_size=input.shape).shape
        torch.Size([1, 16, 12, 12])
    """

    _dims = 2
    _convolve = staticmethod(F.conv_transpose2d)


class ConvTranspose3d(_TransposedConvolution):
    """A transposed convolution over volumes: the gradient of :class:`Conv3d` with respect to its input.

    Args:
        in_channels: number of channels of the input.
        out_channels: number of channels of the output.
        kernel_size: size of the filters, an int or a triple for depth, height and width; likewise `stride`,
            `padding`, `output_padding` and `dilation`.
        stride: the approximate ratio of the output's size to the input's size.
        padding: number of elements that are removed at each end of the output.
        output_padding: number of elements that are added at the end of the output; it must be less than the larger of
            `stride` and `dilation`.
        groups: number of groups of channels that are convolved independently.
        bias: whether a learned bias is added to each output channel.
        dilation: distance between the output elements to which adjacent elements of a filter contribute.
        padding_mode: must be "zeros".
        device: device of the parameters.
        dtype: dtype of the parameters.

    Shape:
        - Input: (N, in_channels, D, H, W) or (in_channels, D, H, W).
        - Output: (N, out_channels, D_out, H_out, W_out), or without N, where
          D_out = (D - 1) · stride[0] - 2 · padding[0] + dilation[0] · (kernel_size[0] - 1) + output_padding[0] + 1,
          and H_out and W_out likewise with indices 1 and 2.
        - `weight`: (in_channels, out_channels / groups, *kernel_size); `bias`: (out_channels).

    Raises:
        ValueError: `groups` does not divide both numbers of channels, or `padding_mode` is not "zeros".
        TypeError: `padding` is a string.

    Example:
        >>> layer = nn.ConvTranspose3d(4, 2, (3, 5, 2), stride=(2, 1, 1), padding=(0, 4, 2))
        >>> layer(torch.randn(1, 4, 3, 10, 9)).shape
        torch.Size([1, 2, 7, 6, 6])
    """

    _dims = 3
    _convolve = staticmethod(F.conv_transpose3d)
