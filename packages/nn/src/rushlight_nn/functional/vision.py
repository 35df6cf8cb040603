"""Resizing of images."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable

from rushlight_core import Tensor
from rushlight_core.overrides import overridable

from .._core import core, operator
from .._typing import Any
from .pooling import adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d

_resample = operator("_resample")
_area: dict[int, Callable[..., Tensor]] = {
    1: adaptive_avg_pool1d,
    2: adaptive_avg_pool2d,
    3: adaptive_avg_pool3d,
}
_NEAREST = {"nearest": 0, "nearest-exact": 1}
# For each interpolating mode, its number in core and the number of spatial dimensions. The other modes support 1 to 3
# spatial dimensions.
_SMOOTH = {
    "linear": (2, 1),
    "bilinear": (2, 2),
    "bicubic": (3, 2),
    "trilinear": (2, 3),
}
_PLAIN = ("nearest", "nearest-exact", "area")


@overridable
def interpolate(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Resize sequences, images or volumes.

    Args:
        input: floating point, or uint8 with the modes "nearest", "nearest-exact", "bilinear" and "bicubic".
        size: size of the output, an int or one number per dimension.
        scale_factor: factors by which the sizes of the input are multiplied, given instead of `size`.
        mode: "nearest" rounds positions in the input down, and "nearest-exact" selects the element with the
            nearest centre. "linear" (sequences), "bilinear" and "bicubic" (images; Keys 1981) and "trilinear"
            (volumes) interpolate. "area" averages the elements that each output element covers.
        align_corners: whether to align the centres of the corner elements of input and output, instead of the
            outer edges of these elements. `align_corners` is only allowed with the modes "linear",
            "bilinear", "bicubic" and "trilinear".
        recompute_scale_factor: whether to interpolate with the ratio of the output size to the input size
            instead of `scale_factor`.
        antialias: whether to widen the filter if the output is smaller than the input; only for "bilinear"
            and "bicubic".

    Shape:
        - Input: (N, C, W), (N, C, H, W) or (N, C, D, H, W).
        - Output: the input's shape with the sizes after C replaced by `size` or floor(input size · scale_factor).

    Raises:
        ValueError: both or neither of `size` and `scale_factor` are given, a sequence does not have one number for each
            dimension after C, or an option does not fit the mode.
        TypeError: `size` contains a number that is not an integer.
        RuntimeError: a size of the output does not fit in 64 bits.
        NotImplementedError: the mode is unknown, or does not support this number of dimensions.

    Example:
        >>> image = torch.tensor([[[[1.0, 2.0], [3.0, 4.0]]]])
        >>> F.interpolate(image, size=(2, 4))[0, 0]
        tensor([[1., 1., 2., 2.],
                [3., 3., 4., 4.]])
        >>> F.interpolate(image, scale_factor=2, mode="bilinear", align_corners=True)[0, 0, 0]
        tensor([1.0000, 1.3333, 1.6667, 2.0000])
    """
    dims = input.dim() - 2
    if mode not in _PLAIN and mode not in _SMOOTH:
        raise NotImplementedError(
            f"interpolate(mode): got {mode!r}, needs one of {', '.join((*_PLAIN, *_SMOOTH))}"
        )
    if mode in _PLAIN and align_corners is not None:
        raise ValueError(f"interpolate(align_corners): must be None for mode {mode!r}, got {align_corners}")
    if antialias and mode not in ("bilinear", "bicubic"):
        raise ValueError(f"interpolate(antialias): needs mode 'bilinear' or 'bicubic', got {mode!r}")
    if dims not in (1, 2, 3) or (mode in _SMOOTH and _SMOOTH[mode][1] != dims):
        needed = f"{_SMOOTH[mode][1] + 2}" if mode in _SMOOTH else "3, 4 or 5"
        raise NotImplementedError(
            f"interpolate(input): got {input.dim()} dimensions, mode {mode!r} needs {needed}"
        )
    old = tuple(input.shape[2:])
    sizes, scales = _sizes(old, size, scale_factor, recompute_scale_factor)
    if mode == "area":
        return _area[dims](input, sizes)
    kind = _SMOOTH[mode][0] if mode in _SMOOTH else _NEAREST[mode]
    is_bytes = input.dtype == core.uint8
    if is_bytes and mode in ("bilinear", "bicubic"):
        result = input
        for d in (1, 0):  # use Pillow's order, width first, because each pass rounds its result
            if sizes[d] != old[d] or (scales[d] is not None and scales[d] != 1.0):
                result = _resample_bytes(
                    result, d + 2, sizes[d], kind, bool(align_corners), scales[d], antialias
                )
        return input.clone() if result is input else result
    changed = [d for d in range(dims) if sizes[d] != old[d] or (scales[d] is not None and scales[d] != 1.0)]
    if not changed:
        return input.clone()
    # Compute several passes over 16-bit floats in float32, so that results and gradients are rounded only once.
    wide = is_bytes or (len(changed) > 1 and input.dtype in (core.float16, core.bfloat16))
    result = input.float() if wide else input

    for d in _order_of_passes(changed, old, sizes, scales):
        result = _resample(result, d + 2, sizes[d], kind, bool(align_corners), scales[d], antialias)
    return result.to(input.dtype) if wide else result


def _order_of_passes(
    changed: list[int], old: tuple[int, ...], sizes: list[int], scales: list[float | None]
) -> list[int]:
    """Return the dimensions to resize, the one that shrinks most first, so that later passes have fewer elements.

    Factors are compared in powers of two, so that the order is the same for all sizes of images whose dimensions are resized
    alike. Dimensions with the same factor are resized from the last to the first.
    """
    last_first = changed[::-1]
    if scales[0] is not None and scales.count(scales[0]) == len(scales):
        return last_first

    def octave(d: int) -> int:
        scale = scales[d]
        factor = sizes[d] / max(old[d], 1) if scale is None else scale
        return round(math.log2(max(factor, 2.0**-40)))

    return sorted(last_first, key=octave)


def _resample_bytes(
    input: Tensor, dim: int, size: int, kind: int, align_corners: bool, scale: float | None, antialias: bool
) -> Tensor:
    """Resize one dimension of a uint8 tensor in fixed-point arithmetic, with signed 15-bit weights as in Pillow."""
    identity = core.eye(input.shape[dim], dtype=core.float64)
    weights = _resample(identity, 1, size, kind, align_corners, scale, antialias)  # (old, new)
    most, bits = float(weights.max()), 0
    while bits < 22 and int(0.5 + most * 2 ** (bits + 1)) < 2**15:
        bits += 1
    fixed = (weights.abs() * 2**bits + 0.5).floor() * weights.sign()
    used = fixed != 0
    indices = used.to(core.int64).topk(int(used.sum(0).max()), 0)[1]
    shape = [size if d == dim else 1 for d in range(input.dim())]
    total = core.full((1,), 2 ** (bits - 1), dtype=core.int32)
    for index, weight in zip(indices, fixed.gather(0, indices).to(core.int32), strict=True):
        total = total + input.index_select(dim, index).to(core.int32) * weight.reshape(shape)
    return (total >> bits).clamp(0, 255).to(core.uint8)


def _is_integer(value: Any) -> bool:
    if isinstance(value, Tensor):
        return not value.dtype.is_floating_point and not value.dtype.is_complex
    return hasattr(value, "__index__")


def _sizes(
    old: tuple[int, ...], size: Any, scale_factor: Any, recompute: bool | None
) -> tuple[list[int], list[float | None]]:
    """Return the sizes of the output, and the scale of each dimension.

    If a scale is None, the dimension is scaled by the ratio of the output's size to the input's size.
    """
    dims = len(old)
    if (size is None) == (scale_factor is None):
        raise ValueError(
            f"interpolate(size, scale_factor): exactly one of them must be given, got {size} and "
            f"{scale_factor}"
        )
    if size is not None:
        if recompute:
            raise ValueError(
                "interpolate(recompute_scale_factor): must be False or None if a size is given, got "
                f"{recompute}"
            )
        sizes = list(size) if isinstance(size, (tuple, list)) else [size] * dims
        if len(sizes) != dims:
            raise ValueError(
                f"interpolate(size): got {len(sizes)} numbers, needs one for each of {dims} dimensions"
            )
        if wrong := [s for s in sizes if not _is_integer(s)]:
            raise TypeError(f"interpolate(size): got {wrong[0]!r}, needs integers")
        return [int(s) for s in sizes], [None] * dims
    factors = list(scale_factor) if isinstance(scale_factor, (tuple, list)) else [scale_factor] * dims
    if len(factors) != dims:
        raise ValueError(
            f"interpolate(scale_factor): got {len(factors)} numbers, needs one for each of {dims} dimensions"
        )
    sizes = [math.floor(float(n) * float(f)) for n, f in zip(old, factors, strict=True)]
    if max(map(abs, sizes)) >= 2**63:
        raise RuntimeError(
            f"interpolate(scale_factor): got {scale_factor}, but the sizes of the output do not fit "
            "in 64 bits"
        )
    return sizes, [None] * dims if recompute else [float(f) for f in factors]


@overridable
def upsample(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """Deprecated alias of :func:`interpolate`.

    Shape:
        - Input and output: the same as for :func:`interpolate`.

    Example:
        >>> F.upsample(torch.tensor([[[1.0, 2.0]]]), scale_factor=2)
        tensor([[[1., 1., 2., 2.]]])
    """
    warnings.warn("upsample: deprecated, write interpolate", stacklevel=2)
    return interpolate(input, size, scale_factor, mode, align_corners)


@overridable
def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """Deprecated alias of :func:`interpolate` with mode "nearest".

    Shape:
        - Input and output: the same as for :func:`interpolate`.

    Example:
        >>> F.upsample_nearest(torch.tensor([[[1.0, 2.0]]]), scale_factor=2)
        tensor([[[1., 1., 2., 2.]]])
    """
    warnings.warn("upsample_nearest: deprecated, write interpolate", stacklevel=2)
    return interpolate(input, size, scale_factor)


@overridable
def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """Deprecated alias of :func:`interpolate` with mode "bilinear" and `align_corners=True`.

    Shape:
        - Input: (N, C, H, W). Output: (N, C, H_out, W_out).

    Example:
        >>> F.upsample_bilinear(torch.tensor([[[[1.0, 2.0], [3.0, 4.0]]]]), size=(2, 3))[0, 0]
        tensor([[1.0000, 1.5000, 2.0000],
                [3.0000, 3.5000, 4.0000]])
    """
    warnings.warn("upsample_bilinear: deprecated, write interpolate", stacklevel=2)
    return interpolate(input, size, scale_factor, "bilinear", True)
