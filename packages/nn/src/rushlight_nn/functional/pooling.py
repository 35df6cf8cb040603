"""Pooling.

`kernel_size` is an int or one number per dimension. The default value of `stride` is `kernel_size`. Inputs are
floating-point tensors of shape (N, C, ...) or (C, ...).
"""

from __future__ import annotations

from collections.abc import Callable

from rushlight_core import Tensor
from rushlight_core.overrides import overridable

from .._core import operator
from .._typing import Any

_max_pools = {d: (operator(f"max_pool{d}d"), operator(f"max_pool{d}d_with_indices")) for d in (1, 2, 3)}
_avg_pools = {d: operator(f"avg_pool{d}d") for d in (1, 2, 3)}
_adaptive_avg_pools = {d: operator(f"adaptive_avg_pool{d}d") for d in (1, 2, 3)}
_adaptive_max_pools = {d: operator(f"adaptive_max_pool{d}d") for d in (1, 2, 3)}


def _max_pool(
    dims: int,
    input: Tensor,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
    return_indices: bool,
) -> Any:
    pool: Callable[..., Any] = _max_pools[dims][return_indices]
    stride = kernel_size if stride is None else stride
    result = pool(input, kernel_size, stride, padding, dilation, ceil_mode)
    return tuple(result) if return_indices else result


@overridable
def max_pool1d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Slide a window over each channel of sequences, and return the largest value at each position of the window.

    The padding counts as minus infinity.

    Args:
        input: the sequences, floating point.
        kernel_size: length of the windows.
        stride: distance between windows; `kernel_size` by default.
        padding: number of elements added at each end, at most half of `kernel_size`.
        dilation: distance between adjacent elements of a window.
        ceil_mode: round the number of windows up instead of down, so that the last window may extend beyond the end of the
            input.
        return_indices: also return the positions of the maxima, int64.

    Shape:
        - Input: (N, C, L) or (C, L).
        - Output: (N, C, L_out) or (C, L_out), with the sizes described in :class:`rushlight_nn.MaxPool1d`.

    Example:
        >>> F.max_pool1d(torch.tensor([[1.0, 5.0, 2.0, 3.0]]), 2)
        tensor([[5., 3.]])
    """
    return _max_pool(1, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


@overridable
def max_pool2d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Slide a window over each channel of images, and return the largest value at each position of the window.

    The padding counts as minus infinity.

    Args:
        input: the images, floating point.
        kernel_size: size of the windows, an int or a pair for height and width. `stride`, `padding` and `dilation` have the
            same form.
        stride: distance between windows; `kernel_size` by default.
        padding: number of elements added at each end, at most half of `kernel_size`.
        dilation: distance between adjacent elements of a window.
        ceil_mode: round the number of windows up instead of down, so that the last window may extend beyond the end of the
            input.
        return_indices: also return the positions of the maxima in the flattened H·W plane, int64.

    Shape:
        - Input: (N, C, H, W) or (C, H, W).
        - Output: (N, C, H_out, W_out) or (C, H_out, W_out), with the sizes described in :class:`rushlight_nn.MaxPool2d`.

    Example:
        >>> F.max_pool2d(torch.arange(16.0).reshape(1, 4, 4), 2)
        tensor([[[ 5.,  7.],
                 [13., 15.]]])
    """
    return _max_pool(2, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


@overridable
def max_pool3d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Slide a window over each channel of volumes, and return the largest value at each position of the window.

    The padding counts as minus infinity.

    Args:
        input: the volumes, floating point.
        kernel_size: size of the windows, an int or a triple for depth, height and width. `stride`, `padding` and `dilation`
            have the same form.
        stride: distance between windows; `kernel_size` by default.
        padding: number of elements added at each end, at most half of `kernel_size`.
        dilation: distance between adjacent elements of a window.
        ceil_mode: round the number of windows up instead of down, so that the last window may extend beyond the end of the
            input.
        return_indices: also return the positions of the maxima in the flattened D·H·W volume, int64.

    Shape:
        - Input: (N, C, D, H, W) or (C, D, H, W).
        - Output: (N, C, D_out, H_out, W_out) or without N, with the sizes described in :class:`rushlight_nn.MaxPool3d`.

    Example:
        >>> F.max_pool3d(torch.arange(64.0).reshape(1, 4, 4, 4), 2)
        tensor([[[[21., 23.],
                  [29., 31.]],
        <BLANKLINE>
                 [[53., 55.],
                  [61., 63.]]]])
    """
    return _max_pool(3, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


@overridable
def avg_pool1d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """Slide a window over each channel of sequences, and return the mean at each position of the window.

    Args:
        input: the sequences, floating point.
        kernel_size: length of the windows.
        stride: distance between windows; `kernel_size` by default.
        padding: number of zeros added at each end, at most half of `kernel_size`.
        ceil_mode: round the number of windows up instead of down, so that the last window may extend beyond the end of the
            input.
        count_include_pad: whether the mean includes the zeros of the padding.

    Shape:
        - Input: (N, C, L) or (C, L).
        - Output: (N, C, L_out) or (C, L_out), with the sizes described in :class:`rushlight_nn.AvgPool1d`.

    Example:
        >>> F.avg_pool1d(torch.tensor([[1.0, 5.0, 2.0, 3.0]]), 2)
        tensor([[3.0000, 2.5000]])
    """
    stride = kernel_size if stride is None else stride
    return _avg_pools[1](input, kernel_size, stride, padding, ceil_mode, count_include_pad)


@overridable
def avg_pool2d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """Slide a window over each channel of images, and return the mean at each position of the window.

    Args:
        input: the images, floating point.
        kernel_size: size of the windows, an int or a pair for height and width. `stride` and `padding` have the same form.
        stride: distance between windows; `kernel_size` by default.
        padding: number of zeros added at each end, at most half of `kernel_size`.
        ceil_mode: round the number of windows up instead of down, so that the last window may extend beyond the end of the
            input.
        count_include_pad: whether the mean includes the zeros of the padding.
        divisor_override: divide by this number instead of the window's size.

    Shape:
        - Input: (N, C, H, W) or (C, H, W).
        - Output: (N, C, H_out, W_out) or (C, H_out, W_out), with the sizes described in :class:`rushlight_nn.AvgPool2d`.

    Example:
        >>> F.avg_pool2d(torch.arange(16.0).reshape(1, 4, 4), 2)
        tensor([[[ 2.5000,  4.5000],
                 [10.5000, 12.5000]]])
    """
    stride = kernel_size if stride is None else stride
    return _avg_pools[2](input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


@overridable
def avg_pool3d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """Slide a window over each channel of volumes, and return the mean at each position of the window.

    Args:
        input: the volumes, floating point.
        kernel_size: size of the windows, an int or a triple for depth, height and width. `stride` and `padding` have the
            same form.
        stride: distance between windows; `kernel_size` by default.
        padding: number of zeros added at each end, at most half of `kernel_size`.
        ceil_mode: round the number of windows up instead of down, so that the last window may extend beyond the end of the
            input.
        count_include_pad: whether the mean includes the zeros of the padding.
        divisor_override: divide by this number instead of the window's size.

    Shape:
        - Input: (N, C, D, H, W) or (C, D, H, W).
        - Output: (N, C, D_out, H_out, W_out) or without N, with the sizes described in :class:`rushlight_nn.AvgPool3d`.

    Example:
        >>> F.avg_pool3d(torch.arange(64.0).reshape(1, 4, 4, 4), 2)
        tensor([[[[10.5000, 12.5000],
                  [18.5000, 20.5000]],
        <BLANKLINE>
                 [[42.5000, 44.5000],
                  [50.5000, 52.5000]]]])
    """
    stride = kernel_size if stride is None else stride
    return _avg_pools[3](input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def _output_sizes(dims: int, input: Tensor, output_size: Any) -> Any:
    """Return `output_size` with each None replaced by the input's size.

    Raises:
        ValueError: `output_size` has k sizes, k > 1, and `input` has fewer than k + 1 dimensions.
    """
    if isinstance(output_size, int):
        return output_size
    own = input.shape[-dims:]
    if output_size is None:
        return own
    if dims > 1 and input.dim() <= len(output_size):
        raise ValueError(
            f"adaptive pooling(output_size): {len(output_size)} sizes need an input of at least"
            f" {len(output_size) + 1} dimensions, got shape {tuple(input.shape)}"
        )
    return tuple(own[i] if size is None else size for i, size in enumerate(output_size))


@overridable
def adaptive_avg_pool1d(input: Tensor, output_size: Any) -> Tensor:
    """Cover each channel of sequences evenly with `output_size` windows, and return the mean of each window.

    Along a side of length L, window i of n covers the positions from floor(i · L / n) to ceil((i + 1) · L / n) - 1.

    Args:
        input: the sequences, floating point.
        output_size: length of the output.

    Shape:
        - Input: (N, C, L) or (C, L).
        - Output: (N, C, output_size) or (C, output_size).

    Example:
        >>> F.adaptive_avg_pool1d(torch.tensor([[1.0, 5.0, 2.0, 3.0]]), 2)
        tensor([[3.0000, 2.5000]])
    """
    return _adaptive_avg_pools[1](input, _output_sizes(1, input, output_size))


@overridable
def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
    """Cover each channel of images evenly with `output_size` windows, and return the mean of each window.

    Along a side of length L, window i of n covers the positions from floor(i · L / n) to ceil((i + 1) · L / n) - 1.

    Args:
        input: the images, floating point.
        output_size: size of the output, an int or a pair; None keeps the size of the input.

    Shape:
        - Input: (N, C, H, W) or (C, H, W).
        - Output: (N, C, *output_size) or (C, *output_size).

    Raises:
        ValueError: the input has too few dimensions.

    Example:
        >>> F.adaptive_avg_pool2d(torch.arange(16.0).reshape(1, 4, 4), 2)
        tensor([[[ 2.5000,  4.5000],
                 [10.5000, 12.5000]]])
    """
    return _adaptive_avg_pools[2](input, _output_sizes(2, input, output_size))


@overridable
def adaptive_avg_pool3d(input: Tensor, output_size: Any) -> Tensor:
    """Cover each channel of volumes evenly with `output_size` windows, and return the mean of each window.

    Along a side of length L, window i of n covers the positions from floor(i · L / n) to ceil((i + 1) · L / n) - 1.

    Args:
        input: the volumes, floating point.
        output_size: size of the output, an int or a triple; None keeps the size of the input.

    Shape:
        - Input: (N, C, D, H, W) or (C, D, H, W).
        - Output: (N, C, *output_size) or (C, *output_size).

    Raises:
        ValueError: the input has too few dimensions.

    Example:
        >>> F.adaptive_avg_pool3d(torch.arange(64.0).reshape(1, 4, 4, 4), 1)
        tensor([[[[31.5000]]]])
    """
    return _adaptive_avg_pools[3](input, _output_sizes(3, input, output_size))


def _adaptive_max_pool(dims: int, input: Tensor, output_size: Any, return_indices: bool) -> Any:
    result, indices = _adaptive_max_pools[dims](input, _output_sizes(dims, input, output_size))
    return (result, indices) if return_indices else result


@overridable
def adaptive_max_pool1d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Cover each channel of sequences evenly with `output_size` windows, and return the largest value of each window.

    The windows are the same as for :func:`adaptive_avg_pool1d`.

    Args:
        input: the sequences, floating point.
        output_size: length of the output.
        return_indices: also return the positions of the maxima, int64.

    Shape:
        - Input: (N, C, L) or (C, L).
        - Output: (N, C, output_size) or (C, output_size).

    Example:
        >>> F.adaptive_max_pool1d(torch.tensor([[1.0, 5.0, 2.0, 3.0]]), 2)
        tensor([[5., 3.]])
    """
    return _adaptive_max_pool(1, input, output_size, return_indices)


@overridable
def adaptive_max_pool2d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Cover each channel of images evenly with `output_size` windows, and return the largest value of each window.

    The windows are the same as for :func:`adaptive_avg_pool2d`.

    Args:
        input: the images, floating point.
        output_size: size of the output, an int or a pair; None keeps the size of the input.
        return_indices: also return the positions of the maxima in the flattened H·W plane, int64.

    Shape:
        - Input: (N, C, H, W) or (C, H, W).
        - Output: (N, C, *output_size) or (C, *output_size).

    Example:
        >>> F.adaptive_max_pool2d(torch.arange(16.0).reshape(1, 4, 4), 2)
        tensor([[[ 5.,  7.],
                 [13., 15.]]])
    """
    return _adaptive_max_pool(2, input, output_size, return_indices)


@overridable
def adaptive_max_pool3d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Cover each channel of volumes evenly with `output_size` windows, and return the largest value of each window.

    The windows are the same as for :func:`adaptive_avg_pool3d`.

    Args:
        input: the volumes, floating point.
        output_size: size of the output, an int or a triple; None keeps the size of the input.
        return_indices: also return the positions of the maxima in the flattened D·H·W volume, int64.

    Shape:
        - Input: (N, C, D, H, W) or (C, D, H, W).
        - Output: (N, C, *output_size) or (C, *output_size).

    Example:
        >>> F.adaptive_max_pool3d(torch.arange(64.0).reshape(1, 4, 4, 4), 1)
        tensor([[[[63.]]]])
    """
    return _adaptive_max_pool(3, input, output_size, return_indices)


@overridable
def max_pool1d_with_indices(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> tuple[Tensor, Tensor]:
    """Return the result of :func:`max_pool1d` and the positions of the maxima.

    The arguments are the same as for :func:`max_pool1d`.

    Shape:
        - Input: (N, C, L) or (C, L).
        - Output and indices (int64): (N, C, L_out) or (C, L_out).

    Example:
        >>> F.max_pool1d_with_indices(torch.tensor([[1.0, 5.0, 2.0, 3.0]]), 2)
        (tensor([[5., 3.]]), tensor([[1, 3]]))
    """
    pooled: tuple[Tensor, Tensor] = _max_pool(
        1, input, kernel_size, stride, padding, dilation, ceil_mode, True
    )
    return pooled


@overridable
def adaptive_max_pool1d_with_indices(
    input: Tensor, output_size: Any, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """Return the result of :func:`adaptive_max_pool1d` and the positions of the maxima.

    The arguments are the same as for :func:`adaptive_max_pool1d`.

    Shape:
        - Input: (N, C, L) or (C, L).
        - Output and indices (int64): (N, C, output_size) or (C, output_size).

    Example:
        >>> F.adaptive_max_pool1d_with_indices(torch.tensor([[1.0, 5.0, 2.0, 3.0]]), 2)
        (tensor([[5., 3.]]), tensor([[1, 3]]))
    """
    pooled: tuple[Tensor, Tensor] = _adaptive_max_pool(1, input, output_size, True)
    return pooled


@overridable
def max_pool2d_with_indices(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> tuple[Tensor, Tensor]:
    """Return the result of :func:`max_pool2d` and the positions of the maxima in the flattened H·W plane.

    The arguments are the same as for :func:`max_pool2d`.

    Shape:
        - Input: (N, C, H, W) or (C, H, W).
        - Output and indices (int64): (N, C, H_out, W_out) or (C, H_out, W_out).

    Example:
        >>> F.max_pool2d_with_indices(torch.arange(16.0).reshape(1, 4, 4), 2)
        (tensor([[[ 5.,  7.],
                 [13., 15.]]]), tensor([[[ 5,  7],
                 [13, 15]]]))
    """
    pooled: tuple[Tensor, Tensor] = _max_pool(
        2, input, kernel_size, stride, padding, dilation, ceil_mode, True
    )
    return pooled


@overridable
def adaptive_max_pool2d_with_indices(
    input: Tensor, output_size: Any, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """Return the result of :func:`adaptive_max_pool2d` and the positions of the maxima in the flattened H·W plane.

    The arguments are the same as for :func:`adaptive_max_pool2d`.

    Shape:
        - Input: (N, C, H, W) or (C, H, W).
        - Output and indices (int64): (N, C, *output_size) or (C, *output_size).

    Example:
        >>> F.adaptive_max_pool2d_with_indices(torch.arange(16.0).reshape(1, 4, 4), 2)
        (tensor([[[ 5.,  7.],
                 [13., 15.]]]), tensor([[[ 5,  7],
                 [13, 15]]]))
    """
    pooled: tuple[Tensor, Tensor] = _adaptive_max_pool(2, input, output_size, True)
    return pooled


@overridable
def max_pool3d_with_indices(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> tuple[Tensor, Tensor]:
    """Return the result of :func:`max_pool3d` and the positions of the maxima in the flattened D·H·W volume.

    The arguments are the same as for :func:`max_pool3d`.

    Shape:
        - Input: (N, C, D, H, W) or (C, D, H, W).
        - Output and indices (int64): (N, C, D_out, H_out, W_out) or without N.

    Example:
        >>> F.max_pool3d_with_indices(torch.arange(64.0).reshape(1, 4, 4, 4), 4)
        (tensor([[[[63.]]]]), tensor([[[[63]]]]))
    """
    pooled: tuple[Tensor, Tensor] = _max_pool(
        3, input, kernel_size, stride, padding, dilation, ceil_mode, True
    )
    return pooled


@overridable
def adaptive_max_pool3d_with_indices(
    input: Tensor, output_size: Any, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """Return the result of :func:`adaptive_max_pool3d` and the positions of the maxima in the flattened D·H·W volume.

    The arguments are the same as for :func:`adaptive_max_pool3d`.

    Shape:
        - Input: (N, C, D, H, W) or (C, D, H, W).
        - Output and indices (int64): (N, C, *output_size) or (C, *output_size).

    Example:
        >>> F.adaptive_max_pool3d_with_indices(torch.arange(64.0).reshape(1, 4, 4, 4), 1)
        (tensor([[[[63.]]]]), tensor([[[[63]]]]))
    """
    pooled: tuple[Tensor, Tensor] = _adaptive_max_pool(3, input, output_size, True)
    return pooled
