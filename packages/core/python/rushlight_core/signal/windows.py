"""Windows by which pieces of signals are weighted: `rushlight.signal.windows`, as torch.signal.windows defines them.

With n = 0, ..., M - 1 the places of a window of M elements, and N = M - 1, or N = M where `sym` is False, formulas are in
x = n / N, which runs from 0 to 1. A window of one element is 1.

Sources: F. Harris, "On the use of windows for harmonic analysis with the discrete Fourier transform", 1978; A. Nuttall,
"Some windows with very good sidelobe behavior", 1981.
"""

from __future__ import annotations

import math
from operator import index

from .. import _C
from .._C import Tensor
from .._info import strided

TYPE_CHECKING = False  # typing takes longer to import than this package
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

__all__ = [
    "bartlett",
    "blackman",
    "cosine",
    "exponential",
    "gaussian",
    "general_cosine",
    "general_hamming",
    "hamming",
    "hann",
    "kaiser",
    "nuttall",
]


def bartlett(
    M: int,
    *,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return a triangle from 0 to 1 and back: 1 - |2x - 1|.

    Args:
        M: the number of elements, in one dimension.
        sym: whether the window is symmetric, for filters; otherwise it is one period of a longer one, for spectra.
        dtype: float32 or float64, by default the default dtype.
        layout: `torch.strided`.
        device: where the result is, by default the default device.
        requires_grad: whether operations on the result are recorded. It is a leaf.

    Raises:
        ValueError: `M` is negative, or `dtype` or `layout` is another.
    """

    def shape(n: Tensor, period: int) -> Tensor:
        return 1 - (2 * n / period - 1).abs()

    return _window("bartlett", M, sym, dtype, layout, device, requires_grad, shape)


def blackman(
    M: int,
    *,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """0.42 - 0.5 cos(2πx) + 0.08 cos(4πx). Arguments: see :func:`bartlett`."""
    return _cosines("blackman", M, (0.42, 0.5, 0.08), sym, dtype, layout, device, requires_grad)


def cosine(
    M: int,
    *,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """sin(π(n + 1/2) / (N + 1)). Arguments: see :func:`bartlett`."""

    def shape(n: Tensor, period: int) -> Tensor:
        return (math.pi * (n + 0.5) / (period + 1)).sin()

    return _window("cosine", M, sym, dtype, layout, device, requires_grad, shape)


def exponential(
    M: int,
    *,
    center: float | None = None,
    tau: float = 1.0,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """exp(-|n - center| / tau).

    Args:
        center: where the window is 1, by default N / 2; only for windows with `sym=False`.
        tau: after how many elements the window falls by a factor e; positive.

    Other arguments: see :func:`bartlett`. Raises ValueError also for a `tau` that is not positive and for a `center` of a
    symmetric window.
    """
    if not tau > 0:
        raise ValueError(f"exponential(tau): must be positive, got {tau}")
    if sym and center is not None:
        raise ValueError(f"exponential(center): must be None for a symmetric window, got {center}")

    def shape(n: Tensor, period: int) -> Tensor:
        return (-(n - (period / 2 if center is None else center)).abs() / tau).exp()

    return _window("exponential", M, sym, dtype, layout, device, requires_grad, shape, one=center is None)


def gaussian(
    M: int,
    *,
    std: float = 1.0,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """exp(-(n - N/2)² / (2 std²)).

    Args:
        std: the standard deviation, in elements; positive.

    Other arguments: see :func:`bartlett`. Raises ValueError also for an `std` that is not positive.
    """
    if not std > 0:
        raise ValueError(f"gaussian(std): must be positive, got {std}")

    def shape(n: Tensor, period: int) -> Tensor:
        return (-(((n - period / 2) / std) ** 2) / 2).exp()

    return _window("gaussian", M, sym, dtype, layout, device, requires_grad, shape)


def general_cosine(
    M: int,
    *,
    a: Iterable[float],
    sym: bool = True,
    dtype: Any = None,
    layout: Any = strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """a₀ - a₁ cos(2πx) + a₂ cos(4πx) - ...

    Args:
        a: the coefficients, at least one.

    Other arguments: see :func:`bartlett`. Raises TypeError where `a` cannot be iterated, ValueError where it is empty.
    """
    try:
        coefficients = tuple(float(one) for one in a)
    except TypeError:
        raise TypeError(f"general_cosine(a): needs numbers in a list or tuple, got {a!r}") from None
    if not coefficients:
        raise ValueError("general_cosine(a): needs at least one coefficient, got none")
    return _cosines("general_cosine", M, coefficients, sym, dtype, layout, device, requires_grad)


def general_hamming(
    M: int,
    *,
    alpha: float = 0.54,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """alpha - (1 - alpha) cos(2πx). Other arguments: see :func:`bartlett`."""
    return _cosines("general_hamming", M, (alpha, 1 - alpha), sym, dtype, layout, device, requires_grad)


def hamming(
    M: int,
    *,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """0.54 - 0.46 cos(2πx). Arguments: see :func:`bartlett`."""
    return _cosines("hamming", M, (0.54, 0.46), sym, dtype, layout, device, requires_grad)


def hann(
    M: int,
    *,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """sin²(πx). Arguments: see :func:`bartlett`."""
    return _cosines("hann", M, (0.5, 0.5), sym, dtype, layout, device, requires_grad)


def kaiser(
    M: int,
    *,
    beta: float = 12.0,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """I0(beta sqrt(1 - (2x - 1)²)) / I0(beta), with I0 the modified Bessel function of order 0.

    Args:
        beta: the larger, the narrower the window; not negative.

    Other arguments: see :func:`bartlett`. Raises ValueError also for a negative `beta`.
    """
    if not beta >= 0:
        raise ValueError(f"kaiser(beta): must not be negative, got {beta}")

    def shape(n: Tensor, period: int) -> Tensor:
        root = beta * (1 - (2 * n / period - 1) ** 2).clamp(min=0).sqrt()
        # i0e(x) is exp(-|x|) I0(x), which does not overflow.
        top = _C.tensor(float(beta), dtype=n.dtype, device=n.device)
        return _C.special_i0e(root) / _C.special_i0e(top) * (root - top).exp()

    return _window("kaiser", M, sym, dtype, layout, device, requires_grad, shape)


def nuttall(
    M: int,
    *,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """The window of four cosine terms with the lowest side lobes, after Nuttall: 0.3635819 - 0.4891775 cos(2πx) +
    0.1365995 cos(4πx) - 0.0106411 cos(6πx). Arguments: see :func:`bartlett`."""
    coefficients = (0.3635819, 0.4891775, 0.1365995, 0.0106411)
    return _cosines("nuttall", M, coefficients, sym, dtype, layout, device, requires_grad)


def _cosines(
    name: str,
    M: int,
    coefficients: tuple[float, ...],
    sym: bool,
    dtype: Any,
    layout: Any,
    device: Any,
    requires_grad: bool,
) -> Tensor:
    def shape(n: Tensor, period: int) -> Tensor:
        terms = [(-1) ** i * a * (2 * math.pi * i * n / period).cos() for i, a in enumerate(coefficients)]
        return sum(terms[1:], terms[0])

    return _window(name, M, sym, dtype, layout, device, requires_grad, shape)


def _window(
    name: str,
    M: int,
    sym: bool,
    dtype: Any,
    layout: Any,
    device: Any,
    requires_grad: bool,
    shape: Callable[[Tensor, int], Tensor],
    one: bool = True,
) -> Tensor:
    """`shape` of the places and the period, computed in float64; a single element is 1 where `one` says so."""
    M = index(M)
    if M < 0:
        raise ValueError(f"{name}(M): must not be negative, got {M}")
    if layout is not strided:
        raise ValueError(f"{name}(layout): must be torch.strided, got {layout}")
    dtype = _C.get_default_dtype() if dtype is None else dtype
    if dtype not in (_C.float32, _C.float64):
        raise ValueError(f"{name}(dtype): must be float32 or float64, got {dtype}")
    places = _C.arange(M, dtype=_C.float64, device=device)
    if M == 0 or (M == 1 and one):
        made = _C.ones(M, dtype=dtype, device=device)
    else:
        made = shape(places, M - 1 if sym else M).to(dtype)
    return made.requires_grad_(requires_grad)
