"""Window functions for spectral analysis.

Source: F. Harris, "On the use of windows for harmonic analysis with the discrete Fourier transform", 1978.
"""

from __future__ import annotations

import math

from . import _C
from ._C import Tensor

TYPE_CHECKING = False  # typing takes longer to import than this package
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def _window(
    name: str,
    length: int,
    periodic: bool,
    dtype: Any,
    device: Any,
    requires_grad: bool,
    shape: Callable[[Tensor], Tensor],
) -> Tensor:
    """Return the values of the window function `shape` at `length` evenly spaced positions from 0 to 1.

    Position 1 is included unless `periodic` is true.
    """
    dtype = _C.get_default_dtype() if dtype is None else dtype
    if not dtype.is_floating_point:
        raise RuntimeError(f"{name}(dtype): must be a floating-point dtype, got {dtype}")
    if length < 0:
        raise RuntimeError(f"{name}(window_length): must not be negative, got {length}")
    steps = length if periodic else length - 1
    if length <= 1:
        made = _C.ones(length, dtype=dtype, device=device)
    else:
        made = shape(_C.arange(length, dtype=_C.float64, device=device) / steps).to(dtype)
    return made.requires_grad_(requires_grad)


def bartlett_window(
    window_length: int,
    periodic: bool = True,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return the triangular window ``1 - |2x - 1|`` for x from 0 to 1.

    Args:
        window_length: the number of elements.
        periodic: if True, return one period of a periodic window. If False, return a symmetric window, whose
            last element equals the first.
        dtype, device, requires_grad: see `zeros`.

    Shape:
        - Output: (window_length).

    Example:
        >>> torch.bartlett_window(4)
        tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    return _window(
        "bartlett_window",
        window_length,
        periodic,
        dtype,
        device,
        requires_grad,
        lambda x: 1 - (2 * x - 1).abs(),
    )


def hamming_window(
    window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, *,
    dtype: Any = None, device: Any = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Return the window ``alpha - beta · cos(2πx)`` for x from 0 to 1.

    Args:
        alpha, beta: the coefficients.
        window_length, periodic, dtype, device, requires_grad: see :func:`bartlett_window`.

    Shape:
        - Output: (window_length).

    Example:
        >>> torch.hamming_window(4)
        tensor([0.0800, 0.5400, 1.0000, 0.5400])
    """

    def shape(x: Tensor) -> Tensor:
        return alpha - beta * (2 * math.pi * x).cos()

    return _window("hamming_window", window_length, periodic, dtype, device, requires_grad, shape)


def hann_window(
    window_length: int,
    periodic: bool = True,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return the window ``sin²(πx)`` for x from 0 to 1.

    Args:
        window_length, periodic, dtype, device, requires_grad: see :func:`bartlett_window`.

    Shape:
        - Output: (window_length).

    Example:
        >>> torch.hann_window(4)
        tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    return _window(
        "hann_window",
        window_length,
        periodic,
        dtype,
        device,
        requires_grad,
        lambda x: (math.pi * x).sin() ** 2,
    )


def blackman_window(
    window_length: int,
    periodic: bool = True,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return the window ``0.42 - 0.5 · cos(2πx) + 0.08 · cos(4πx)`` for x from 0 to 1.

    Args:
        window_length, periodic, dtype, device, requires_grad: see :func:`bartlett_window`.

    Shape:
        - Output: (window_length).

    Example:
        >>> torch.blackman_window(4)[1:]
        tensor([0.3400, 1.0000, 0.3400])
    """

    def shape(x: Tensor) -> Tensor:
        return 0.42 - 0.5 * (2 * math.pi * x).cos() + 0.08 * (4 * math.pi * x).cos()

    return _window("blackman_window", window_length, periodic, dtype, device, requires_grad, shape)


def kaiser_window(
    window_length: int, periodic: bool = True, beta: float = 12.0, *,
    dtype: Any = None, device: Any = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Return the window ``I0(beta · sqrt(1 - (2x - 1)²)) / I0(beta)`` for x from 0 to 1.

    I0 is the modified Bessel function of the first kind of order 0.

    Args:
        beta: the shape parameter. A larger value makes the window narrower.
        window_length, periodic, dtype, device, requires_grad: see :func:`bartlett_window`.

    Shape:
        - Output: (window_length).

    Example:
        >>> torch.kaiser_window(4)
        tensor([5.2773e-05, 2.1567e-01, 1.0000e+00, 2.1567e-01])
    """

    def shape(x: Tensor) -> Tensor:
        height = _C.i0(_C.tensor(float(beta), dtype=x.dtype, device=x.device))
        return _C.i0(beta * (1 - (2 * x - 1) ** 2).clamp(min=0).sqrt()) / height

    return _window("kaiser_window", window_length, periodic, dtype, device, requires_grad, shape)
