"""AdamW, by the file that PyTorch has it in."""

from rushlight_nn.optim import AdamW

__all__ = ["AdamW"]
