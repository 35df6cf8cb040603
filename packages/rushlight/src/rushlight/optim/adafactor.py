"""Adafactor, by the file that PyTorch has it in."""

from rushlight_nn.optim import Adafactor

__all__ = ["Adafactor"]
