"""The Fourier transform extension of the array API standard."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import fft as _fft
from .._C import Tensor, dtype

__all__ = [
    "fft",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfftn",
    "rfft",
    "rfftfreq",
    "rfftn",
]


def _one(name: str) -> Callable[..., Tensor]:
    operator = getattr(_fft, name)

    def function(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
        return operator(x, n, axis, norm)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Return `{name}` along `axis`. The input is first cut or zero-padded to length `n`."
    return function


def _several(name: str) -> Callable[..., Tensor]:
    operator = getattr(_fft, name)

    def function(
        x: Tensor,
        /,
        *,
        s: Sequence[int] | None = None,
        axes: Sequence[int] | None = None,
        norm: str = "backward",
    ) -> Tensor:
        return operator(x, s, axes, norm)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"Return `{name}` along `axes`, by default all. The input is first cut or zero-padded to sizes `s`."
    )
    return function


fft: Callable[..., Tensor] = _one("fft")
ifft: Callable[..., Tensor] = _one("ifft")
rfft: Callable[..., Tensor] = _one("rfft")
irfft: Callable[..., Tensor] = _one("irfft")
hfft: Callable[..., Tensor] = _one("hfft")
ihfft: Callable[..., Tensor] = _one("ihfft")
fftn: Callable[..., Tensor] = _several("fftn")
ifftn: Callable[..., Tensor] = _several("ifftn")
rfftn: Callable[..., Tensor] = _several("rfftn")
irfftn: Callable[..., Tensor] = _several("irfftn")


def fftfreq(n: int, /, *, d: float = 1.0, dtype: dtype | None = None, device: Any = None) -> Tensor:
    """Return the sample frequencies of `fft` for `n` samples with the spacing `d`.

    Shape:
        - Output: (n).

    Raises:
        RuntimeError: `n` is negative, or `dtype` is an integer dtype or bool.

    Example:
        >>> import rushlight.array_api as xp
        >>> xp.fft.fftfreq(4, d=0.5)
        tensor([ 0.0000,  0.5000, -1.0000, -0.5000])
    """
    return _fft.fftfreq(n, d, dtype=dtype, device=device)


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: dtype | None = None, device: Any = None) -> Tensor:
    """Return the sample frequencies of `rfft` for `n` samples with the spacing `d`.

    Shape:
        - Output: (n // 2 + 1).

    Raises:
        RuntimeError: `n` is negative, or `dtype` is an integer dtype or bool.

    Example:
        >>> import rushlight.array_api as xp
        >>> xp.fft.rfftfreq(4, d=0.5)
        tensor([0.0000, 0.5000, 1.0000])
    """
    return _fft.rfftfreq(n, d, dtype=dtype, device=device)


def fftshift(x: Tensor, /, *, axes: int | Sequence[int] | None = None) -> Tensor:
    """Move the zero frequency to the middle along `axes`, by default along all dimensions.

    Shape:
        - Input and output: (*).

    Example:
        >>> import rushlight.array_api as xp
        >>> xp.fft.fftshift(xp.fft.fftfreq(4))
        tensor([-0.5000, -0.2500,  0.0000,  0.2500])
    """
    return _fft.fftshift(x, axes)


def ifftshift(x: Tensor, /, *, axes: int | Sequence[int] | None = None) -> Tensor:
    """Undo `fftshift`: move the zero frequency from the middle to the beginning along `axes`.

    Shape:
        - Input and output: (*).

    Example:
        >>> import rushlight.array_api as xp
        >>> xp.fft.ifftshift(xp.fft.fftshift(xp.arange(5)))
        tensor([0, 1, 2, 3, 4])
    """
    return _fft.ifftshift(x, axes)
