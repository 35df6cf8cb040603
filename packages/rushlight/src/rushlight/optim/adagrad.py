"""Adagrad, by the file that PyTorch has it in."""

from rushlight_nn.optim import Adagrad

__all__ = ["Adagrad"]
