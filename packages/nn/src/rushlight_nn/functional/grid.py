"""Sampling of images at arbitrary coordinates: `grid_sample` and `affine_grid`."""

from __future__ import annotations

import warnings

from rushlight_core import Tensor
from rushlight_core.overrides import overridable

from .._core import core, operator
from .._typing import Any

_grid_sampler = operator("grid_sampler")
# The index of a mode in this tuple is its number in core.
_MODES = ("bilinear", "nearest", "bicubic")
_PADDINGS = ("zeros", "border", "reflection")


def _warn_of_corners(function: str) -> None:
    warnings.warn(
        f"{function}(align_corners): defaults to False; pass True or False explicitly", stacklevel=3
    )


@overridable
def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """Sample images or volumes at the positions of a grid (Jaderberg et al. 2015).

    Args:
        input: the images or volumes, floating point.
        grid: for each element of the output, its coordinates x, y (and z) in the input, from -1 to 1; x is
            the coordinate along the width.
        mode: "bilinear" (trilinear for volumes), "nearest", or "bicubic" (images only).
        padding_mode: the values outside of the input: zeros ("zeros"), the nearest element of the border ("border") or the
            mirror image ("reflection").
        align_corners: whether -1 and 1 refer to the centres of the corner elements, instead of their outer edges.

    Shape:
        - Input: (N, C, H, W) or (N, C, D, H, W).
        - Grid: (N, H_out, W_out, 2) or (N, D_out, H_out, W_out, 3).
        - Output: (N, C, H_out, W_out) or (N, C, D_out, H_out, W_out).

    Raises:
        ValueError: `mode` or `padding_mode` is unknown.

    Example:
        >>> image = torch.tensor([[[[1.0, 2.0], [3.0, 4.0]]]])
        >>> grid = torch.tensor([[[[0.0, 0.0], [-1.0, 1.0]]]])  # the centre, and the corner at the left bottom
        >>> F.grid_sample(image, grid, align_corners=True)
        tensor([[[[2.5000, 3.0000]]]])
    """
    if mode not in _MODES:
        raise ValueError(f"grid_sample(mode): got {mode!r}, needs one of {', '.join(_MODES)}")
    if padding_mode not in _PADDINGS:
        raise ValueError(
            f"grid_sample(padding_mode): got {padding_mode!r}, needs one of {', '.join(_PADDINGS)}"
        )
    if align_corners is None:
        _warn_of_corners("grid_sample")
        align_corners = False
    return _grid_sampler(input, grid, _MODES.index(mode), _PADDINGS.index(padding_mode), bool(align_corners))


@overridable
def affine_grid(theta: Tensor, size: Any, align_corners: bool | None = None) -> Tensor:
    """Return the sampling grid of affine maps for :func:`grid_sample`.

    Args:
        theta: the matrices of the affine maps. The last column of each matrix is the translation.
        size: the size of the output of :func:`grid_sample`.
        align_corners: see :func:`grid_sample`.

    Shape:
        - `theta`: (N, 2, 3) for the size (N, C, H, W), or (N, 3, 4) for (N, C, D, H, W).
        - Output: (N, H, W, 2) or (N, D, H, W, 3).

    Raises:
        ValueError: `theta` has an integer dtype or does not match `size`, or a size is not positive.
        NotImplementedError: `size` has neither 4 nor 5 elements.

    Example:
        >>> mirror = torch.tensor([[[-1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]])
        >>> grid = F.affine_grid(mirror, (1, 1, 2, 2), align_corners=False)
        >>> F.grid_sample(torch.tensor([[[[1.0, 2.0], [3.0, 4.0]]]]), grid, align_corners=False)
        tensor([[[[2., 1.],
                  [4., 3.]]]])
    """
    if not theta.is_floating_point():
        raise ValueError(f"affine_grid(theta): got {theta.dtype}, needs a floating dtype")
    if align_corners is None:
        _warn_of_corners("affine_grid")
        align_corners = False
    sizes = [int(n) for n in size]
    dims = len(sizes) - 2
    if dims not in (2, 3):
        raise NotImplementedError(f"affine_grid(size): got {len(sizes)} sizes, needs 4 or 5")
    if tuple(theta.shape) != (sizes[0], dims, dims + 1):
        raise ValueError(
            f"affine_grid(theta): got shape {tuple(theta.shape)}, needs {(sizes[0], dims, dims + 1)} for size {sizes}"
        )
    if min(sizes) <= 0:
        raise ValueError(f"affine_grid(size): got {sizes}, needs positive sizes")
    spatial = sizes[2:]
    columns = []
    for d in reversed(range(dims)):  # x first
        n = spatial[d]
        line = (
            core.linspace(-1, 1, n, dtype=theta.dtype, device=theta.device) if n > 1 else theta.new_zeros(1)
        )
        if not align_corners:
            line = line * ((n - 1) / n)
        columns.append(line.reshape([-1 if k == d else 1 for k in range(dims)]).expand(spatial).reshape(-1))
    columns.append(core.ones_like(columns[0]))
    return (core.stack(columns, -1) @ theta.transpose(1, 2)).reshape(sizes[0], *spatial, dims)
