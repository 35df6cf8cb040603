"""Layers that change shapes, by the file that PyTorch has them in."""

from rushlight_nn import Flatten, Unflatten

__all__ = ["Flatten", "Unflatten"]
