"""Fold and Unfold, by the file that PyTorch has it in."""

from rushlight_nn import (
    Fold,
    Unfold,
)

__all__ = [
    "Fold",
    "Unfold",
]
