"""Rprop, by the file that PyTorch has it in."""

from rushlight_nn.optim import Rprop

__all__ = ["Rprop"]
