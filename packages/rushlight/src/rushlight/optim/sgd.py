"""SGD, by the file that PyTorch has it in."""

from rushlight_nn.optim import SGD

__all__ = ["SGD"]
