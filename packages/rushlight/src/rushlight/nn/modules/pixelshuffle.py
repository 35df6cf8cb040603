"""Pixel shuffle, by the file that PyTorch has it in."""

from rushlight_nn import (
    PixelShuffle,
    PixelUnshuffle,
)

__all__ = [
    "PixelShuffle",
    "PixelUnshuffle",
]
