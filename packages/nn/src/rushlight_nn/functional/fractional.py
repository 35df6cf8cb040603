"""Fractional max pooling over pseudo-random windows that cover the input almost evenly (Graham 2014)."""

from __future__ import annotations

import math

import rushlight_core as core
from rushlight_core import Tensor
from rushlight_core.overrides import overridable

from .._typing import Any
from ._arguments import sizes_of


def _starts(input_size: int, output_size: int, window: int, samples: Tensor) -> Tensor:
    """Return the start positions of windows, of shape (..., output_size), for random numbers `samples` of shape (...).

    The distance between consecutive starts is the mean distance, rounded down or up. The random number
    determines which distances are rounded up.
    """
    last = core.full((*samples.shape, 1), input_size - window, dtype=core.int64, device=samples.device)
    if output_size == 1:
        return last
    step = (input_size - window) / (output_size - 1)
    positions = core.arange(output_size - 1, dtype=samples.dtype, device=samples.device)
    shift = samples.unsqueeze(-1)
    starts = ((positions + shift) * step).to(core.int64) - (shift * step).to(core.int64)
    return core.cat([starts, last], -1)


def _fractional_max_pool(
    dims: int,
    input: Tensor,
    kernel_size: Any,
    output_size: Any,
    output_ratio: Any,
    samples: Tensor | None,
) -> tuple[Tensor, Tensor]:
    name = f"fractional_max_pool{dims}d"
    if not input.is_floating_point():
        raise NotImplementedError(f"{name}(input): got {input.dtype}, needs a floating-point dtype")
    if input.dim() not in (dims + 1, dims + 2):
        raise RuntimeError(f"{name}(input): got {input.dim()} dimensions, needs {dims + 1} or {dims + 2}")
    sizes = tuple(input.shape[-dims:])
    if output_size is None:
        if output_ratio is None:
            raise ValueError(f"{name}(output_size, output_ratio): got neither, needs one of them")
        ratios = sizes_of(dims, output_ratio, f"{name}(output_ratio)")
        output_size = tuple(int(size * ratio) for size, ratio in zip(sizes, ratios, strict=True))
    window = sizes_of(dims, kernel_size, f"{name}(kernel_size)")
    output = sizes_of(dims, output_size, f"{name}(output_size)")
    for size, k, out in zip(sizes, window, output, strict=True):
        if k < 1 or out < 1 or out + k - 1 > size:
            raise RuntimeError(
                f"{name}(kernel_size, output_size): {out} windows of size {k} need at least {max(out + k - 1, 1)} "
                f"elements, but the input has {size}"
            )
    batched = input.dim() == dims + 2
    batch, channels = (input.shape[0], input.shape[1]) if batched else (1, input.shape[0])
    if 0 in input.shape[int(batched) :]:
        raise RuntimeError(f"{name}(input): got shape {tuple(input.shape)}, only the batch may be empty")
    if samples is None:
        samples = core.rand((batch, channels, dims), dtype=input.dtype, device=input.device)
    elif tuple(samples.shape) != (batch, channels, dims):
        raise RuntimeError(
            f"{name}(_random_samples): got shape {tuple(samples.shape)}, needs {(batch, channels, dims)}"
        )
    samples = samples.detach()
    # Compute the positions of the elements of all windows in their plane. The shape is (batch, channels, outputs...,
    # window...). In two dimensions, the first random number is for the width. In three dimensions, the random numbers
    # have the order of the dimensions.
    order = range(dims) if dims == 3 else reversed(range(dims))
    positions: Any = 0
    stride = math.prod(sizes)
    for d, sample in enumerate(order):
        stride //= sizes[d]
        starts = _starts(sizes[d], output[d], window[d], samples[..., sample])
        index = starts.unsqueeze(-1) + core.arange(window[d], device=input.device)
        shape = [batch, channels] + [1] * (2 * dims)
        shape[2 + d], shape[2 + dims + d] = output[d], window[d]
        positions = positions + index.reshape(shape) * stride
    positions = positions.reshape(batch, channels, math.prod(output), math.prod(window))
    planes = (input if batched else input.unsqueeze(0)).flatten(2)
    # Record only the last gather in the graph. The search for the largest elements is not differentiated.
    values = planes.detach().gather(2, positions.flatten(2)).reshape(positions.shape)
    largest = values.argmax(-1, keepdim=True) if values.numel() else positions[..., :1]
    indices = positions.gather(3, largest).squeeze(3)
    result = (batch, channels, *output) if batched else (channels, *output)
    return planes.gather(2, indices).reshape(result), indices.reshape(result)


@overridable
def fractional_max_pool2d_with_indices(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Return the result of :func:`fractional_max_pool2d` and the positions of the maxima in the flattened H·W plane.

    The arguments are the same as for :func:`fractional_max_pool2d`.

    Shape:
        - Input: (N, C, H, W) or (C, H, W).
        - Output and indices (int64): (N, C, H_out, W_out) or (C, H_out, W_out).

    Example:
        >>> output, indices = F.fractional_max_pool2d_with_indices(torch.randn(1, 2, 8, 8), 2, output_size=5)
        >>> output.shape == indices.shape == (1, 2, 5, 5)
        True
    """
    return _fractional_max_pool(2, input, kernel_size, output_size, output_ratio, _random_samples)


@overridable
def fractional_max_pool3d_with_indices(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Return the result of :func:`fractional_max_pool3d` and the positions of the maxima in the flattened D·H·W volume.

    The arguments are the same as for :func:`fractional_max_pool3d`.

    Shape:
        - Input: (N, C, D, H, W) or (C, D, H, W).
        - Output and indices (int64): (N, C, D_out, H_out, W_out) or (C, D_out, H_out, W_out).

    Example:
        >>> output, indices = F.fractional_max_pool3d_with_indices(torch.randn(1, 2, 8, 8, 8), 2, output_size=5)
        >>> output.shape == indices.shape == (1, 2, 5, 5, 5)
        True
    """
    return _fractional_max_pool(3, input, kernel_size, output_size, output_ratio, _random_samples)


@overridable
def fractional_max_pool2d(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """Apply fractional max pooling to images, with `output_size` windows at random distances (Graham 2014).

    Args:
        input: the images, floating point.
        kernel_size: size of the windows, an int or a pair for height and width.
        output_size: number of windows, an int or a pair.
        output_ratio: number of windows divided by the input's size, between 0 and 1. `output_ratio` is used if `output_size`
            is None.
        return_indices: whether to also return the int64 positions of the maxima in the flattened H·W plane.
        _random_samples: numbers between 0 and 1, of shape (N, C, 2), to use instead of random numbers.

    Shape:
        - Input: (N, C, H, W) or (C, H, W).
        - Output: (N, C, H_out, W_out) or (C, H_out, W_out), where (H_out, W_out) is `output_size`, or
          floor(output_ratio · (H, W)).

    Raises:
        ValueError: neither `output_size` nor `output_ratio` is given.
        RuntimeError: the windows do not fit in the input.

    Example:
        >>> F.fractional_max_pool2d(torch.randn(20, 16, 50, 32), 3, output_size=(13, 12)).shape
        torch.Size([20, 16, 13, 12])
    """
    result = _fractional_max_pool(2, input, kernel_size, output_size, output_ratio, _random_samples)
    return result if return_indices else result[0]


@overridable
def fractional_max_pool3d(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """Apply fractional max pooling to volumes, with `output_size` windows at random distances (Graham 2014).

    Args:
        input: the volumes, floating point.
        kernel_size: size of the windows, an int or a triple for depth, height and width.
        output_size: number of windows, an int or a triple.
        output_ratio: number of windows divided by the input's size, between 0 and 1. `output_ratio` is used if `output_size`
            is None.
        return_indices: whether to also return the int64 positions of the maxima in the flattened D·H·W
            volume.
        _random_samples: numbers between 0 and 1, of shape (N, C, 3), to use instead of random numbers.

    Shape:
        - Input: (N, C, D, H, W) or (C, D, H, W).
        - Output: (N, C, D_out, H_out, W_out) or (C, D_out, H_out, W_out), where (D_out, H_out, W_out) is
          `output_size`, or floor(output_ratio · (D, H, W)).

    Raises:
        ValueError: neither `output_size` nor `output_ratio` is given.
        RuntimeError: the windows do not fit in the input.

    Example:
        >>> F.fractional_max_pool3d(torch.randn(2, 4, 20, 20, 16), 3, output_ratio=0.5).shape
        torch.Size([2, 4, 10, 10, 8])
    """
    result = _fractional_max_pool(3, input, kernel_size, output_size, output_ratio, _random_samples)
    return result if return_indices else result[0]
