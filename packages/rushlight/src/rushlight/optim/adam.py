"""Adam, by the file that PyTorch has it in."""

from rushlight_nn.optim import Adam

__all__ = ["Adam"]
