"""Handles of hooks, by the file that PyTorch has them in."""

from rushlight_nn.hooks import RemovableHandle

__all__ = ["RemovableHandle"]
