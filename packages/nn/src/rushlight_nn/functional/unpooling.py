"""Power-average pooling, and the inverse of max pooling."""

from __future__ import annotations

import math

from rushlight_core import Tensor
from rushlight_core.overrides import overridable

from .._core import core
from .._typing import Any
from ._arguments import sizes_of
from .pooling import avg_pool1d, avg_pool2d, avg_pool3d, max_pool1d, max_pool2d, max_pool3d


def _unpool(
    dims: int, input: Tensor, indices: Tensor, kernel_size: Any, stride: Any, padding: Any, output_size: Any
) -> Tensor:
    name = f"max_unpool{dims}d"
    if input.dim() not in (dims + 1, dims + 2):
        raise RuntimeError(
            f"{name}(input): got {input.dim()} dimensions, needs {dims + 2}, or {dims + 1} without a batch"
        )
    if indices.dtype != core.int64 or indices.shape != input.shape:
        raise RuntimeError(
            f"{name}(indices): got {indices.dtype} of shape {tuple(indices.shape)}, needs int64 of the input's "
            f"shape {tuple(input.shape)}"
        )
    kernel = sizes_of(dims, kernel_size, f"{name}(kernel_size)")
    steps = kernel if stride is None else sizes_of(dims, stride, f"{name}(stride)")
    margins = sizes_of(dims, padding, f"{name}(padding)")
    old = input.shape[-dims:]
    usual = tuple((n - 1) * s + k - 2 * p for n, s, k, p in zip(old, steps, kernel, margins, strict=True))
    if output_size is None:
        sizes = usual
    else:
        sizes = tuple(output_size)[-dims:]
        if len(sizes) != dims:
            raise ValueError(f"{name}(output_size): got {len(sizes)} sizes, needs {dims}")
        if any(abs(size - n) >= s for size, n, s in zip(sizes, usual, steps, strict=True)):
            raise ValueError(
                f"{name}(output_size): got {sizes}, needs sizes that differ from {usual} by less than the stride"
            )
    planes = tuple(input.shape[:-dims])
    flat = core.zeros((*planes, math.prod(sizes)), dtype=input.dtype, device=input.device)
    count = math.prod(old)
    flat = flat.scatter(-1, indices.reshape(*planes, count), input.reshape(*planes, count))
    return flat.reshape(*planes, *sizes)


@overridable
def max_unpool1d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    output_size: Any = None,
) -> Tensor:
    """Partially invert :func:`max_pool1d`: write the maxima at their positions in a tensor of zeros.

    Args:
        input: the maxima.
        indices: the positions of the maxima, int64, as returned by ``max_pool1d(..., return_indices=True)``.
        kernel_size, stride, padding: the arguments that were passed to the pooling function.
        output_size: the size before pooling. Pass it if pooling maps several sizes to the same size.

    Shape:
        - Input and indices: (N, C, L) or (C, L).
        - Output: (N, C, L_out) or (C, L_out), where L_out is `output_size` or, if `output_size` is not given, the size
          described in :class:`rushlight_nn.MaxUnpool1d`.

    Raises:
        ValueError: `output_size` is not a possible size.
        RuntimeError: `indices` has the wrong dtype or shape, or an index is out of range.

    Example:
        >>> maxima, indices = F.max_pool1d(torch.tensor([[1.0, 5.0, 2.0, 3.0]]), 2, return_indices=True)
        >>> F.max_unpool1d(maxima, indices, 2)
        tensor([[0., 5., 0., 3.]])
    """
    return _unpool(1, input, indices, kernel_size, stride, padding, output_size)


@overridable
def max_unpool2d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    output_size: Any = None,
) -> Tensor:
    """Partially invert :func:`max_pool2d`: write the maxima at their positions in a tensor of zeros.

    Args:
        input: the maxima.
        indices: the positions of the maxima, int64, as returned by ``max_pool2d(..., return_indices=True)``.
        kernel_size, stride, padding: the arguments that were passed to the pooling function.
        output_size: the size before pooling. Pass it if pooling maps several sizes to the same size.

    Shape:
        - Input and indices: (N, C, H, W) or (C, H, W).
        - Output: (N, C, H_out, W_out) or (C, H_out, W_out), where the sizes are `output_size` or, if `output_size` is not
          given, the sizes described in :class:`rushlight_nn.MaxUnpool2d`.

    Raises:
        ValueError: `output_size` is not a possible size.
        RuntimeError: `indices` has the wrong dtype or shape, or an index is out of range.

    Example:
        >>> maxima, indices = F.max_pool2d(torch.arange(16.0).reshape(1, 4, 4), 2, return_indices=True)
        >>> F.max_unpool2d(maxima, indices, 2)
        tensor([[[ 0.,  0.,  0.,  0.],
                 [ 0.,  5.,  0.,  7.],
                 [ 0.,  0.,  0.,  0.],
                 [ 0., 13.,  0., 15.]]])
    """
    return _unpool(2, input, indices, kernel_size, stride, padding, output_size)


@overridable
def max_unpool3d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    output_size: Any = None,
) -> Tensor:
    """Partially invert :func:`max_pool3d`: write the maxima at their positions in a tensor of zeros.

    Args:
        input: the maxima.
        indices: the positions of the maxima, int64, as returned by ``max_pool3d(..., return_indices=True)``.
        kernel_size, stride, padding: the arguments that were passed to the pooling function.
        output_size: the size before pooling. Pass it if pooling maps several sizes to the same size.

    Shape:
        - Input and indices: (N, C, D, H, W) or (C, D, H, W).
        - Output: (N, C, D_out, H_out, W_out) or without N, where the sizes are `output_size` or, if `output_size` is not
          given, the sizes described in :class:`rushlight_nn.MaxUnpool3d`.

    Raises:
        ValueError: `output_size` is not a possible size.
        RuntimeError: `indices` has the wrong dtype or shape, or an index is out of range.

    Example:
        >>> maxima, indices = F.max_pool3d(torch.arange(64.0).reshape(1, 4, 4, 4), 4, return_indices=True)
        >>> F.max_unpool3d(maxima, indices, 4).nonzero()
        tensor([[0, 3, 3, 3]])
    """
    return _unpool(3, input, indices, kernel_size, stride, padding, output_size)


_MEANS = {1: avg_pool1d, 2: avg_pool2d, 3: avg_pool3d}
_MAXIMA = {1: max_pool1d, 2: max_pool2d, 3: max_pool3d}


def _lp_pool(
    dims: int, input: Tensor, norm_type: float, kernel_size: Any, stride: Any, ceil_mode: bool
) -> Tensor:
    kernel = sizes_of(dims, kernel_size, f"lp_pool{dims}d(kernel_size)")
    if norm_type == math.inf:
        return _MAXIMA[dims](input.abs(), kernel, stride, 0, 1, ceil_mode)
    if norm_type == -math.inf:
        return -_MAXIMA[dims](-input.abs(), kernel, stride, 0, 1, ceil_mode)
    mean = _MEANS[dims](input.pow(norm_type), kernel, stride, 0, ceil_mode)
    total = mean * math.prod(kernel)
    empty = total == 0  # the root has no derivative at zero, so use zero as its gradient
    return total.masked_fill(empty, 1.0).pow(1.0 / norm_type).masked_fill(empty, 0.0)


@overridable
def lp_pool1d(
    input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
) -> Tensor:
    """Apply power-average pooling to sequences: return ``(sum of x^p)^(1/p)`` for each window of each channel.

    Args:
        input: the sequences, floating point.
        norm_type: the order p. Infinity selects the largest magnitude, and minus infinity selects the smallest magnitude.
        kernel_size: length of the windows.
        stride: distance between windows; `kernel_size` by default.
        ceil_mode: round the number of windows up instead of down, so that the last window may extend beyond the end of the
            input.

    Shape:
        - Input: (N, C, L) or (C, L).
        - Output: (N, C, L_out) or (C, L_out), with the sizes described in :class:`rushlight_nn.LPPool1d`.

    Example:
        >>> F.lp_pool1d(torch.tensor([[1.0, 5.0, 2.0, 3.0]]), 2, 2)
        tensor([[5.0990, 3.6056]])
    """
    return _lp_pool(1, input, norm_type, kernel_size, stride, ceil_mode)


@overridable
def lp_pool2d(
    input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
) -> Tensor:
    """Apply power-average pooling to images: return ``(sum of x^p)^(1/p)`` for each window of each channel.

    Args:
        input: the images, floating point.
        norm_type: the order p. Infinity selects the largest magnitude, and minus infinity selects the smallest magnitude.
        kernel_size: size of the windows, an int or a pair for height and width. `stride` has the same form.
        stride: distance between windows; `kernel_size` by default.
        ceil_mode: round the number of windows up instead of down, so that the last window may extend beyond the end of the
            input.

    Shape:
        - Input: (N, C, H, W) or (C, H, W).
        - Output: (N, C, H_out, W_out) or (C, H_out, W_out), with the sizes described in :class:`rushlight_nn.LPPool2d`.

    Example:
        >>> F.lp_pool2d(torch.arange(16.0).reshape(1, 4, 4), 2, 2)
        tensor([[[ 6.4807,  9.8995],
                 [21.4009, 25.3377]]])
    """
    return _lp_pool(2, input, norm_type, kernel_size, stride, ceil_mode)


@overridable
def lp_pool3d(
    input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
) -> Tensor:
    """Apply power-average pooling to volumes: return ``(sum of x^p)^(1/p)`` for each window of each channel.

    Args:
        input: the volumes, floating point.
        norm_type: the order p. Infinity selects the largest magnitude, and minus infinity selects the smallest magnitude.
        kernel_size: size of the windows, an int or a triple for depth, height and width. `stride` has the same form.
        stride: distance between windows; `kernel_size` by default.
        ceil_mode: round the number of windows up instead of down, so that the last window may extend beyond the end of the
            input.

    Shape:
        - Input: (N, C, D, H, W) or (C, D, H, W).
        - Output: (N, C, D_out, H_out, W_out) or without N, with the sizes described in :class:`rushlight_nn.LPPool3d`.

    Example:
        >>> F.lp_pool3d(torch.arange(64.0).reshape(1, 4, 4, 4), 2, 4)
        tensor([[[[292.1370]]]])
    """
    return _lp_pool(3, input, norm_type, kernel_size, stride, ceil_mode)
