"""SparseAdam, by the file that PyTorch has it in."""

from rushlight_nn.optim import SparseAdam

__all__ = ["SparseAdam"]
