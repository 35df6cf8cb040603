"""Fourier transforms: rushlight_core.fft."""

import rushlight_core.fft as _package
from rushlight_core.fft import *  # noqa: F403

__all__ = list(_package.__all__)
