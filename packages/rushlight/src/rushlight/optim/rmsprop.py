"""RMSprop, by the file that PyTorch has it in."""

from rushlight_nn.optim import RMSprop

__all__ = ["RMSprop"]
