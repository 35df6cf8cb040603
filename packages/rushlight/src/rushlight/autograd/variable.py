"""Variable, by the file that PyTorch has it in."""

from rushlight_autograd.variable import (
    Variable,
)

__all__ = [
    "Variable",
]
