"""Modules without starting values, by the file that PyTorch has it in."""

from rushlight_nn.utils import (
    skip_init,
)

__all__ = [
    "skip_init",
]
