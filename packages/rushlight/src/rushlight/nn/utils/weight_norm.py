"""Weight normalisation, by the file that PyTorch has it in."""

from rushlight_nn.utils import (
    remove_weight_norm,
    weight_norm,
)

__all__ = [
    "remove_weight_norm",
    "weight_norm",
]
