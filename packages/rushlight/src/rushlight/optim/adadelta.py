"""Adadelta, by the file that PyTorch has it in."""

from rushlight_nn.optim import Adadelta

__all__ = ["Adadelta"]
