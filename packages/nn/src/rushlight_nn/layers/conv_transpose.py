"""Transposed convolution layers: the gradients of convolutions, used to make outputs larger."""

from __future__ import annotations

from collections.abc import Sequence

from rushlight_core import Tensor

from .. import functional as F
from .._typing import Any
from ..functional._arguments import tuple_of
from .conv import _Convolution


class _TransposedConvolution(_Convolution):
    """What transposed convolutions of any number of dimensions share."""

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
            raise ValueError(f"{name}(padding_mode): got {padding_mode!r}, only 'zeros' has a meaning here")
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
        """Convolve; `output_size` chooses among the sizes that stride allows, in the place of
        `output_padding`."""
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
        for mark in (", groups=", ", bias="):  # where PyTorch writes it
            if mark in text:
                return text.replace(mark, part + mark, 1)
        return text + part


class ConvTranspose1d(_TransposedConvolution):
    """The transpose of :class:`Conv1d`; arguments as in :class:`ConvTranspose2d`."""

    _dims = 1
    _convolve = staticmethod(F.conv_transpose1d)


class ConvTranspose2d(_TransposedConvolution):
    """The transpose of :class:`Conv2d`: from (N, in_channels, H, W) to about `stride` times that size.

    Args:
        in_channels, out_channels: numbers of channels before and after.
        kernel_size, stride, dilation: int, or a pair for height and width.
        padding: dilation · (kernel_size - 1) - padding zeros are added around the input.
        output_padding: how much larger the output is at its end, of the sizes that the same convolution
            would take to the input's.
        groups: the channels are split into this many independent convolutions.
        bias: whether a number is added to every output channel.
        padding_mode: "zeros".
    """

    _dims = 2
    _convolve = staticmethod(F.conv_transpose2d)


class ConvTranspose3d(_TransposedConvolution):
    """The transpose of :class:`Conv3d`; arguments as in :class:`ConvTranspose2d`."""

    _dims = 3
    _convolve = staticmethod(F.conv_transpose3d)
