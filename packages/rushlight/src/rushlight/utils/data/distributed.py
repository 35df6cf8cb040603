"""A sampler for several processes, by the file that PyTorch has it in."""

from rushlight_data import (
    DistributedSampler,
)

__all__ = ["DistributedSampler"]
