"""Module, by the file that PyTorch has it in."""

from rushlight_nn.module import Module

__all__ = ["Module"]
