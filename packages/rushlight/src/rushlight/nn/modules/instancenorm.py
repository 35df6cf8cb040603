"""Normalisation of instances, by the file that PyTorch has it in."""

from rushlight_nn.layers.instance_norm import InstanceNorm1d, InstanceNorm2d, InstanceNorm3d, _InstanceNorm
from rushlight_nn.layers.lazy import LazyInstanceNorm1d, LazyInstanceNorm2d, LazyInstanceNorm3d

__all__ = [
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "LazyInstanceNorm1d",
    "LazyInstanceNorm2d",
    "LazyInstanceNorm3d",
    "_InstanceNorm",
]
