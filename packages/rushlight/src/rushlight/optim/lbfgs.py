"""LBFGS, by the file that PyTorch has it in."""

from rushlight_nn.optim import LBFGS

__all__ = ["LBFGS"]
