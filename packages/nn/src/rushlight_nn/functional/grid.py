"""Images read at any places."""

from __future__ import annotations

import warnings

from rushlight_core import Tensor
from rushlight_core.overrides import overridable

from .._core import core, operator
from .._typing import Any

_grid_sampler = operator("grid_sampler")
# In the order of core's numbers for them.
_MODES = ("bilinear", "nearest", "bicubic")
_PADDINGS = ("zeros", "border", "reflection")


def _warn_of_corners(function: str) -> None:
    warnings.warn(f"{function}(align_corners): not given, taken for False; say which is meant", stacklevel=3)


@overridable
def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """`input` (N, C, H, W) or (N, C, D, H, W) at the places `grid` (N, ..., 2) or (N, ..., 3) (Jaderberg et al. 2015).

    Args:
        input: floating point.
        grid: of each place of the result x, y (and z), from -1 to 1 over the input; the last size first.
        mode: "bilinear" (of volumes too), "nearest", or "bicubic" of images.
        padding_mode: what is outside: "zeros", the nearest edge ("border"), or the input mirrored ("reflection").
        align_corners: whether -1 and 1 are the centres of the first and last elements, or their outer edges.

    Returns:
        (N, C, ...), with the places of the grid.
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
    """The places that a linear map and a shift take those of an image to: a grid for :func:`grid_sample`.

    Args:
        theta: (N, 2, 3) for images, (N, 3, 4) for volumes: the map, and the shift in its last column.
        size: (N, C, H, W) or (N, C, D, H, W) of the result of :func:`grid_sample`.
        align_corners: as of :func:`grid_sample`.

    Returns:
        (N, H, W, 2) or (N, D, H, W, 3).
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
            f"affine_grid(theta): shape {tuple(theta.shape)}, needs {(sizes[0], dims, dims + 1)} for {sizes}"
        )
    if min(sizes) <= 0:
        raise ValueError(f"affine_grid(size): got {sizes}, needs positive sizes")
    places = sizes[2:]
    columns = []
    for d in reversed(range(dims)):  # x first
        n = places[d]
        line = (
            core.linspace(-1, 1, n, dtype=theta.dtype, device=theta.device) if n > 1 else theta.new_zeros(1)
        )
        if not align_corners:
            line = line * ((n - 1) / n)
        columns.append(line.reshape([-1 if k == d else 1 for k in range(dims)]).expand(places).reshape(-1))
    columns.append(core.ones_like(columns[0]))
    return (core.stack(columns, -1) @ theta.transpose(1, 2)).reshape(sizes[0], *places, dims)
