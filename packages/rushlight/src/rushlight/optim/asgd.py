"""ASGD, by the file that PyTorch has it in."""

from rushlight_nn.optim import ASGD

__all__ = ["ASGD"]
