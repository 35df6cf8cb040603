"""NAdam, by the file that PyTorch has it in."""

from rushlight_nn.optim import NAdam

__all__ = ["NAdam"]
