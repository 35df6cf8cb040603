"""Spectral normalisation, by the file that PyTorch has it in."""

from rushlight_nn.utils import (
    remove_spectral_norm,
    spectral_norm,
)

__all__ = [
    "remove_spectral_norm",
    "spectral_norm",
]
