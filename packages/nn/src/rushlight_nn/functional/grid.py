"""Images read at any places."""

from __future__ import annotations

import itertools
import math
import warnings

from rushlight_core import Tensor

from .._core import core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_MODES = ("bilinear", "nearest", "bicubic")
_PADDINGS = ("zeros", "border", "reflection")


def _warn_of_corners(function: str) -> None:
    warnings.warn(f"{function}(align_corners): not given, taken for False; say which is meant", stacklevel=3)


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
    _check(input, grid, mode)
    dims = input.dim() - 2
    sizes = input.shape[2:]
    batch, channels = input.shape[:2]
    places = grid.shape[1:-1]
    count = math.prod(places)
    # Of each dimension, the last of the input first: pairs of an index and a weight.
    taps = []
    for d in range(dims):
        size = sizes[dims - 1 - d]
        x = grid[..., d].reshape(batch, count)
        x = (x + 1) * 0.5 * (size - 1) if align_corners else ((x + 1) * size - 1) * 0.5
        taps.append(_taps(x, size, mode, padding_mode, align_corners))
    flat = input.reshape(batch, channels, -1)
    result: Any = None
    for chosen in itertools.product(*taps):
        at: Any = 0
        factor: Any = None
        step = 1
        for d, (index, weight) in enumerate(chosen):
            size = sizes[dims - 1 - d]
            inside = (index >= 0) & (index < size)
            at = at + index.clamp(0, size - 1).to(core.int64) * step
            weight = weight.masked_fill(~inside, 0.0)
            factor = weight if factor is None else factor * weight
            step *= size
        part = flat.gather(2, at.unsqueeze(1).expand(batch, channels, count)) * factor.unsqueeze(1)
        result = part if result is None else result + part
    return result.reshape(batch, channels, *places)


def _check(input: Tensor, grid: Tensor, mode: str) -> None:
    dims = input.dim() - 2
    if dims not in (2, 3) or grid.dim() != input.dim() or grid.shape[-1] != dims:
        raise RuntimeError(
            f"grid_sample(input, grid): shapes {tuple(input.shape)} and {tuple(grid.shape)}, needs "
            "(N, C, H, W) and (N, ..., 2), or (N, C, D, H, W) and (N, ..., 3)"
        )
    if input.shape[0] != grid.shape[0]:
        raise RuntimeError(
            f"grid_sample(input, grid): batches of {input.shape[0]} and {grid.shape[0]} samples differ"
        )
    if input.dtype != grid.dtype:
        raise RuntimeError(f"grid_sample(input, grid): the dtypes {input.dtype} and {grid.dtype} differ")
    if 0 in input.shape[2:]:
        raise RuntimeError(f"grid_sample(input): shape {tuple(input.shape)} has no places to sample")
    if mode == "bicubic" and dims != 2:
        raise RuntimeError("grid_sample(mode): 'bicubic' is for images (N, C, H, W)")


def _taps(x: Tensor, size: int, mode: str, padding: str, align: bool) -> list[tuple[Tensor, Tensor]]:
    if mode == "bicubic":
        low = x.detach().floor()
        f = x - low
        weights = (_far(f + 1), _near(f), _near(1 - f), _far(2 - f))
        return [(_padded(low + (k - 1), size, padding, align), w) for k, w in enumerate(weights)]
    x = _padded(x, size, padding, align)
    if mode == "nearest":
        return [(x.detach().round(), x.sign() * 0 + 1)]  # the weight is one, and its gradient zero
    low = x.detach().floor()
    return [(low, low + 1 - x), (low + 1, x - low)]


# Keys' kernel with a = -0.75, as interpolate's.
def _near(x: Tensor) -> Tensor:
    return (1.25 * x - 2.25) * x * x + 1


def _far(x: Tensor) -> Tensor:
    return ((-0.75 * x + 3.75) * x - 6) * x + 3


def _padded(x: Tensor, size: int, padding: str, align: bool) -> Tensor:
    """Coordinates from anywhere as coordinates within the input, unless what is outside counts zero."""
    if padding == "zeros":
        return x
    if padding == "reflection":
        low, high = (0.0, size - 1.0) if align else (-0.5, size - 0.5)
        if high == low:
            x = x * 0
        else:
            x = (x - low).abs()
            span = high - low
            turns = (x.detach() / span).floor()
            rest = x - turns * span
            x = core.where(turns % 2 == 0, rest + low, high - rest)
    return x.clamp(0, size - 1)


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
