"""Layers that change the size of images; see :func:`rushlight_nn.functional.interpolate`."""

from __future__ import annotations

from rushlight_core import Tensor

from .. import functional as F
from .._typing import Any
from ..module import Module


class Upsample(Module):
    """A layer that resizes sequences, images or volumes; see :func:`rushlight_nn.functional.interpolate`.

    Args:
        size: size of the output, an int or one number per dimension.
        scale_factor: ratio of the output's size to the input's size, given instead of `size`.
        mode: "nearest", "linear" (sequences), "bilinear" and "bicubic" (images) or "trilinear" (volumes).
        align_corners: whether to align the centres of the corner elements of input and output, instead of
            their outer edges. `align_corners` must be None for mode "nearest".
        recompute_scale_factor: whether to compute the scale factor again from the rounded output size.

    Shape:
        - Input: (N, C, W), (N, C, H, W) or (N, C, D, H, W).
        - Output: the input's shape with the sizes after C replaced by `size` or by floor(size of the input ·
          scale_factor).

    Example:
        >>> input = torch.tensor([[[[1.0, 2.0], [3.0, 4.0]]]])
        >>> nn.Upsample(scale_factor=2)(input)[0, 0]
        tensor([[1., 1., 2., 2.],
                [1., 1., 2., 2.],
                [3., 3., 4., 4.],
                [3., 3., 4., 4.]])
        >>> nn.Upsample(scale_factor=2, mode="bilinear")(input)[0, 0]
        tensor([[1.0000, 1.2500, 1.7500, 2.0000],
                [1.5000, 1.7500, 2.2500, 2.5000],
                [2.5000, 2.7500, 3.2500, 3.5000],
                [3.0000, 3.2500, 3.7500, 4.0000]])
    """

    def __init__(
        self,
        size: Any = None,
        scale_factor: Any = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        super().__init__()
        self.size = size
        if isinstance(scale_factor, tuple):
            scale_factor = tuple(float(factor) for factor in scale_factor)
        elif scale_factor is not None:
            scale_factor = float(scale_factor)
        self.scale_factor = scale_factor
        self.mode = mode
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.interpolate(
            input, self.size, self.scale_factor, self.mode, self.align_corners, self.recompute_scale_factor
        )

    def extra_repr(self) -> str:
        given = f"size={self.size}" if self.scale_factor is None else f"scale_factor={self.scale_factor}"
        return f"{given}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """A layer that resizes images; each pixel of the output is the nearest pixel of the input.

    Args:
        size: size of the output, an int or a pair.
        scale_factor: ratio of the output's size to the input's size, given instead of `size`.

    Shape:
        - Input: (N, C, H, W).
        - Output: (N, C, H_out, W_out), where (H_out, W_out) is `size` or floor((H, W) · scale_factor).

    Example:
        >>> nn.UpsamplingNearest2d(scale_factor=2)(torch.tensor([[[[1.0, 2.0], [3.0, 4.0]]]]))[0, 0]
        tensor([[1., 1., 2., 2.],
                [1., 1., 2., 2.],
                [3., 3., 4., 4.],
                [3., 3., 4., 4.]])
    """

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, "nearest")


class UpsamplingBilinear2d(Upsample):
    """A layer that resizes images by bilinear interpolation, with the centres of the corner pixels aligned.

    Args:
        size: size of the output, an int or a pair.
        scale_factor: ratio of the output's size to the input's size, given instead of `size`.

    Shape:
        - Input: (N, C, H, W).
        - Output: (N, C, H_out, W_out), where (H_out, W_out) is `size` or floor((H, W) · scale_factor).

    Example:
        >>> nn.UpsamplingBilinear2d(scale_factor=2)(torch.tensor([[[[1.0, 2.0], [3.0, 4.0]]]]))[0, 0]
        tensor([[1.0000, 1.3333, 1.6667, 2.0000],
                [1.6667, 2.0000, 2.3333, 2.6667],
                [2.3333, 2.6667, 3.0000, 3.3333],
                [3.0000, 3.3333, 3.6667, 4.0000]])
    """

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, "bilinear", True)
