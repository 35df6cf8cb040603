"""Layer and group normalisation, under PyTorch's module path."""

from rushlight_nn.layers.instance_norm import (
    LocalResponseNorm,
)
from rushlight_nn.layers.norm import (
    GroupNorm,
    LayerNorm,
    RMSNorm,
)

CrossMapLRN2d = LocalResponseNorm  # PyTorch has a second class for images

__all__ = ["CrossMapLRN2d", "GroupNorm", "LayerNorm", "LocalResponseNorm", "RMSNorm"]
