"""Softmax of many classes, by the file that PyTorch has it in."""

from rushlight_nn import (
    AdaptiveLogSoftmaxWithLoss,
)

__all__ = [
    "AdaptiveLogSoftmaxWithLoss",
]
