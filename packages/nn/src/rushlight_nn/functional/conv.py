"""Convolutions. All functions except `conv_tbc` are operators of rushlight-core."""

from __future__ import annotations

from rushlight_core import Tensor
from rushlight_core.overrides import overridable

from .._core import operator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rushlight_core import conv1d as conv1d
    from rushlight_core import conv2d as conv2d
    from rushlight_core import conv3d as conv3d
    from rushlight_core import conv_transpose1d as conv_transpose1d
    from rushlight_core import conv_transpose2d as conv_transpose2d
    from rushlight_core import conv_transpose3d as conv_transpose3d
else:
    conv1d = operator("conv1d")
    conv2d = operator("conv2d")
    conv3d = operator("conv3d")
    conv_transpose1d = operator("conv_transpose1d")
    conv_transpose2d = operator("conv_transpose2d")
    conv_transpose3d = operator("conv_transpose3d")


@overridable
def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """Compute the 1D convolution of sequences of shape (time, batch, channels).

    Args:
        input: the sequences.
        weight: the filters.
        bias: the bias of each output channel.
        pad: number of zeros added before and after each sequence.

    Shape:
        - Input: (T, N, in_channels).
        - `weight`: (kernel, in_channels, out_channels); `bias`: (out_channels).
        - Output: (T + 2 · pad - kernel + 1, N, out_channels).

    Raises:
        RuntimeError: the shapes do not match.

    Example:
        >>> F.conv_tbc(torch.randn(10, 2, 4), torch.randn(3, 4, 8), torch.zeros(8), pad=1).shape
        torch.Size([10, 2, 8])
    """
    if input.dim() != 3 or weight.dim() != 3 or bias.dim() != 1:
        raise RuntimeError(
            f"conv_tbc(input, weight, bias): got {input.dim()}, {weight.dim()} and {bias.dim()} dimensions, "
            "needs 3, 3 and 1"
        )
    return conv1d(input.permute(1, 2, 0), weight.permute(2, 1, 0), bias, padding=pad).permute(2, 0, 1)
