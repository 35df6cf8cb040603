"""Options of LinearCrossEntropyLoss, by the file that PyTorch has it in."""

from rushlight_nn import (
    LinearCrossEntropyOptions,
)

__all__ = [
    "LinearCrossEntropyOptions",
]
