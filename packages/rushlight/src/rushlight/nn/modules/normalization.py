"""Normalisation of layers and groups, by the file that PyTorch has them in."""

from rushlight_nn.layers.instance_norm import (
    LocalResponseNorm,
)
from rushlight_nn.layers.norm import (
    GroupNorm,
    LayerNorm,
    RMSNorm,
)

__all__ = ["GroupNorm", "LayerNorm", "LocalResponseNorm", "RMSNorm"]
