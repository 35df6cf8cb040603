"""Discrete Fourier transforms: `rushlight.fft`, as torch.fft and numpy.fft define them."""

from __future__ import annotations

from ._C import fft_fft as fft
from ._C import fft_fft2 as fft2
from ._C import fft_fftfreq as fftfreq
from ._C import fft_fftn as fftn
from ._C import fft_fftshift as fftshift
from ._C import fft_hfft as hfft
from ._C import fft_hfft2 as hfft2
from ._C import fft_hfftn as hfftn
from ._C import fft_ifft as ifft
from ._C import fft_ifft2 as ifft2
from ._C import fft_ifftn as ifftn
from ._C import fft_ifftshift as ifftshift
from ._C import fft_ihfft as ihfft
from ._C import fft_ihfft2 as ihfft2
from ._C import fft_ihfftn as ihfftn
from ._C import fft_irfft as irfft
from ._C import fft_irfft2 as irfft2
from ._C import fft_irfftn as irfftn
from ._C import fft_rfft as rfft
from ._C import fft_rfft2 as rfft2
from ._C import fft_rfftfreq as rfftfreq
from ._C import fft_rfftn as rfftn

__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "hfft2",
    "hfftn",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "ihfft2",
    "ihfftn",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]
