"""Distances, by the file that PyTorch has it in."""

from rushlight_nn import (
    CosineSimilarity,
    PairwiseDistance,
)

__all__ = [
    "CosineSimilarity",
    "PairwiseDistance",
]
