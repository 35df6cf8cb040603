"""A module that several processes train together, by the file that PyTorch has it in."""

from rushlight_nn import DistributedDataParallel

__all__ = ["DistributedDataParallel"]
