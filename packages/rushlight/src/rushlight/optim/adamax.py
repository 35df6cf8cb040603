"""Adamax, by the file that PyTorch has it in."""

from rushlight_nn.optim import Adamax

__all__ = ["Adamax"]
