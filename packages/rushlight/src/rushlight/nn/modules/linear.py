"""Linear layers, by the file that PyTorch has them in."""

from rushlight_nn.layers.lazy import (
    LazyLinear,
)
from rushlight_nn.layers.linear import (
    Bilinear,
    Identity,
    Linear,
)

__all__ = ["Bilinear", "Identity", "LazyLinear", "Linear"]
