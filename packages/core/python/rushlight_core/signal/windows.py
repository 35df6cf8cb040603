"""Window functions: `rushlight.signal.windows`, as torch.signal.windows defines them.

A window has M elements at the positions n = 0, ..., M - 1. Let N = M - 1, or N = M if `sym` is False. Formulas use
x = n / N, which lies between 0 and 1. A window of length 1 contains the value 1, unless `exponential` is called with
`center`.

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
    """Return the Bartlett window, a triangle that rises from 0 to 1 and falls back to 0: 1 - |2x - 1|.

    Args:
        M: the number of elements.
        sym: True for a symmetric window, as used for filters; False for a periodic window, as used for spectra.
        dtype: float32 or float64, by default the default dtype.
        layout: `torch.strided`.
        device: device of the result, by default the default device.
        requires_grad: whether autograd records operations on the result.

    Shape:
        - Output: (M).

    Raises:
        ValueError: `M` is negative, `dtype` is neither float32 nor float64, or `layout` is not `torch.strided`.

    Example:
        >>> torch.signal.windows.bartlett(5)
        tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
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
    """Return the Blackman window: 0.42 - 0.5 cos(2πx) + 0.08 cos(4πx).

    Args:
        M: the number of elements.
        sym: True for a symmetric window, as used for filters; False for a periodic window, as used for spectra.
        dtype: float32 or float64, by default the default dtype.
        layout: `torch.strided`.
        device: device of the result, by default the default device.
        requires_grad: whether autograd records operations on the result.

    Shape:
        - Output: (M).

    Raises:
        ValueError: `M` is negative, `dtype` is neither float32 nor float64, or `layout` is not `torch.strided`.

    Example:
        >>> torch.signal.windows.blackman(5)[1:4]
        tensor([0.3400, 1.0000, 0.3400])
    """
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
    """Return the cosine window, also known as the sine window: sin(π(n + 1/2) / (N + 1)).

    Args:
        M: the number of elements.
        sym: True for a symmetric window, as used for filters; False for a periodic window, as used for spectra.
        dtype: float32 or float64, by default the default dtype.
        layout: `torch.strided`.
        device: device of the result, by default the default device.
        requires_grad: whether autograd records operations on the result.

    Shape:
        - Output: (M).

    Raises:
        ValueError: `M` is negative, `dtype` is neither float32 nor float64, or `layout` is not `torch.strided`.

    Example:
        >>> torch.signal.windows.cosine(4)
        tensor([0.3827, 0.9239, 0.9239, 0.3827])
    """

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
    """Return the exponential window, which decays on both sides of `center`: exp(-|n - center| / tau).

    Args:
        M: the number of elements.
        center: the position at which the window is 1, by default N / 2; may be given only with `sym=False`.
        tau: the decay constant, which is the number of elements over which the window falls by a factor of e;
            must be positive.
        sym: True for a symmetric window, as used for filters; False for a periodic window, as used for spectra.
        dtype: float32 or float64, by default the default dtype.
        layout: `torch.strided`.
        device: device of the result, by default the default device.
        requires_grad: whether autograd records operations on the result.

    Shape:
        - Output: (M).

    Raises:
        ValueError: `M` is negative, `dtype` is neither float32 nor float64, `layout` is not `torch.strided`, `tau` is not
            positive, or `center` is given for a symmetric window.

    Example:
        >>> torch.signal.windows.exponential(5, tau=2.0)
        tensor([0.3679, 0.6065, 1.0000, 0.6065, 0.3679])
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
    """Return the Gaussian window: exp(-(n - N/2)² / (2 std²)).

    Args:
        M: the number of elements.
        std: the standard deviation, in elements; must be positive.
        sym: True for a symmetric window, as used for filters; False for a periodic window, as used for spectra.
        dtype: float32 or float64, by default the default dtype.
        layout: `torch.strided`.
        device: device of the result, by default the default device.
        requires_grad: whether autograd records operations on the result.

    Shape:
        - Output: (M).

    Raises:
        ValueError: `M` is negative, `dtype` is neither float32 nor float64, `layout` is not `torch.strided`, or `std` is not
            positive.

    Example:
        >>> torch.signal.windows.gaussian(5, std=1.0)
        tensor([0.1353, 0.6065, 1.0000, 0.6065, 0.1353])
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
    """Return the general cosine window: a₀ - a₁ cos(2πx) + a₂ cos(4πx) - ...

    Args:
        M: the number of elements.
        a: the coefficients a₀, a₁, ..., at least one.
        sym: True for a symmetric window, as used for filters; False for a periodic window, as used for spectra.
        dtype: float32 or float64, by default the default dtype.
        layout: `torch.strided`.
        device: device of the result, by default the default device.
        requires_grad: whether autograd records operations on the result.

    Shape:
        - Output: (M).

    Raises:
        TypeError: `a` cannot be iterated.
        ValueError: `M` is negative, `dtype` is neither float32 nor float64, `layout` is not `torch.strided`, or `a` is
            empty.

    Example:
        >>> torch.signal.windows.general_cosine(5, a=[0.5, 0.5])
        tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
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
    """Return the general Hamming window: alpha - (1 - alpha) cos(2πx).

    Args:
        M: the number of elements.
        alpha: the coefficient; 0.54 for the Hamming window, and 0.5 for the Hann window.
        sym: True for a symmetric window, as used for filters; False for a periodic window, as used for spectra.
        dtype: float32 or float64, by default the default dtype.
        layout: `torch.strided`.
        device: device of the result, by default the default device.
        requires_grad: whether autograd records operations on the result.

    Shape:
        - Output: (M).

    Raises:
        ValueError: `M` is negative, `dtype` is neither float32 nor float64, or `layout` is not `torch.strided`.

    Example:
        >>> torch.signal.windows.general_hamming(5, alpha=0.6)
        tensor([0.2000, 0.6000, 1.0000, 0.6000, 0.2000])
    """
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
    """Return the Hamming window: 0.54 - 0.46 cos(2πx).

    Args:
        M: the number of elements.
        sym: True for a symmetric window, as used for filters; False for a periodic window, as used for spectra.
        dtype: float32 or float64, by default the default dtype.
        layout: `torch.strided`.
        device: device of the result, by default the default device.
        requires_grad: whether autograd records operations on the result.

    Shape:
        - Output: (M).

    Raises:
        ValueError: `M` is negative, `dtype` is neither float32 nor float64, or `layout` is not `torch.strided`.

    Example:
        >>> torch.signal.windows.hamming(5)
        tensor([0.0800, 0.5400, 1.0000, 0.5400, 0.0800])
    """
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
    """Return Hann's window: sin²(πx).

    Args:
        M: the number of elements.
        sym: True for a symmetric window, as used for filters; False for a periodic window, as used for spectra.
        dtype: float32 or float64, by default the default dtype.
        layout: `torch.strided`.
        device: device of the result, by default the default device.
        requires_grad: whether autograd records operations on the result.

    Shape:
        - Output: (M).

    Raises:
        ValueError: `M` is negative, `dtype` is neither float32 nor float64, or `layout` is not `torch.strided`.

    Example:
        >>> torch.signal.windows.hann(5)
        tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """
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
    """Return the Kaiser window: I0(beta sqrt(1 - (2x - 1)²)) / I0(beta), with I0 the modified Bessel function of order 0.

    Args:
        M: the number of elements.
        beta: the shape parameter, which must not be negative; a larger `beta` makes the window narrower.
        sym: True for a symmetric window, as used for filters; False for a periodic window, as used for spectra.
        dtype: float32 or float64, by default the default dtype.
        layout: `torch.strided`.
        device: device of the result, by default the default device.
        requires_grad: whether autograd records operations on the result.

    Shape:
        - Output: (M).

    Raises:
        ValueError: `M` is negative, `dtype` is neither float32 nor float64, `layout` is not `torch.strided`, or `beta` is
            negative.

    Example:
        >>> torch.signal.windows.kaiser(5, beta=5.0)
        tensor([0.0367, 0.5529, 1.0000, 0.5529, 0.0367])
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
    """Return Nuttall's minimum four-term Blackman-Harris window, a sum of cosines with very low side lobes.

    The window is 0.3635819 - 0.4891775 cos(2πx) + 0.1365995 cos(4πx) - 0.0106411 cos(6πx).

    Args:
        M: the number of elements.
        sym: True for a symmetric window, as used for filters; False for a periodic window, as used for spectra.
        dtype: float32 or float64, by default the default dtype.
        layout: `torch.strided`.
        device: device of the result, by default the default device.
        requires_grad: whether autograd records operations on the result.

    Shape:
        - Output: (M).

    Raises:
        ValueError: `M` is negative, `dtype` is neither float32 nor float64, or `layout` is not `torch.strided`.

    Example:
        >>> torch.signal.windows.nuttall(5)
        tensor([3.6280e-04, 2.2698e-01, 1.0000e+00, 2.2698e-01, 3.6280e-04])
    """
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
    """Return the window whose elements `shape(positions, period)` computes in float64, converted to `dtype`.

    If `one` is true, a window of length 1 has the value 1.
    """
    M = index(M)
    if M < 0:
        raise ValueError(f"{name}(M): must not be negative, got {M}")
    if layout is not strided:
        raise ValueError(f"{name}(layout): must be torch.strided, got {layout}")
    dtype = _C.get_default_dtype() if dtype is None else dtype
    if dtype not in (_C.float32, _C.float64):
        raise ValueError(f"{name}(dtype): must be float32 or float64, got {dtype}")
    positions = _C.arange(M, dtype=_C.float64, device=device)
    if M == 0 or (M == 1 and one):
        made = _C.ones(M, dtype=dtype, device=device)
    else:
        made = shape(positions, M - 1 if sym else M).to(dtype)
    return made.requires_grad_(requires_grad)
