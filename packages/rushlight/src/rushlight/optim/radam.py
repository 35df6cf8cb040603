"""RAdam, by the file that PyTorch has it in."""

from rushlight_nn.optim import RAdam

__all__ = ["RAdam"]
