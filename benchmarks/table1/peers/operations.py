"""The operations with which the networks of `networks.py` are written, and which each library's module implements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

# A library's tensor; `+` and `*` work on two of the same shape. Images are in the layout that the library prefers.
Tensor = Any


class Operations(Protocol):
    """Operations of a training step. `name` is the name of a layer, to which PyTorch's names of its weights are appended."""

    def conv(self, x: Tensor, name: str, stride: int = 1, padding: int = 0, groups: int = 1) -> Tensor:
        """Return a convolution of images, with a bias if the layer has one. groups: 1, or the number of channels."""

    def batch_norm(self, x: Tensor, name: str) -> Tensor:
        """Normalise by the batch's statistics and update the running ones; epsilon 1e-5, momentum 0.1."""

    def layer_norm(self, x: Tensor, name: str) -> Tensor:
        """Normalise over the last axis; epsilon 1e-5."""

    def relu(self, x: Tensor) -> Tensor: ...

    def relu6(self, x: Tensor) -> Tensor: ...

    def gelu(self, x: Tensor) -> Tensor:
        """Return GELU, computed with the error function."""

    def max_pool(self, x: Tensor, size: int, stride: int, padding: int = 0) -> Tensor:
        """Return the maxima of windows. Images are nowhere negative, so they may be padded with zeros."""

    def average(self, x: Tensor) -> Tensor:
        """Return the means of the images' channels (batch, channels)."""

    def flatten(self, x: Tensor) -> Tensor:
        """Return images as vectors (batch, channels * height * width), in this order."""

    def rows(self, x: Tensor) -> Tensor:
        """Return images as sequences (batch, height * width, channels)."""

    def linear(self, x: Tensor, name: str) -> Tensor:
        """Apply a linear layer to the last axis, with a bias if the layer has one."""

    def dropout(self, x: Tensor, p: float) -> Tensor: ...

    def embedding(self, indices: Tensor, name: str) -> Tensor: ...

    def logits_by_embedding(self, x: Tensor, name: str) -> Tensor:
        """Return the product of `x` (…, size) with each row of an embedding."""

    def concat(self, parts: Sequence[Tensor]) -> Tensor:
        """Concatenate along the last axis."""

    def lstm(self, x: Tensor, name: str, bidirectional: bool = False) -> Tensor:
        """Return one layer's outputs (batch, length, size) from zero states; twice the size if bidirectional."""

    def normed_attention(self, queries: Tensor, keys: Tensor, name: str) -> Tensor:
        """Return the result of `models.NormedAttention`."""

    def self_attention(self, qkv: Tensor, heads: int, causal: bool, p: float) -> Tensor:
        """Return the attention of `qkv` (batch, length, 3 * size), which contains queries, keys and values by heads.

        p: the dropout of the attention weights.
        """

    def shift(self, x: Tensor, name: str) -> Tensor:
        """Return `x` (batch, length, size) plus a weight (length, size) or (1, length, size)."""

    def prepend(self, x: Tensor, name: str) -> Tensor:
        """Return `x` (batch, length, size) with a weight (1, 1, size) in front of each sequence."""

    def first(self, x: Tensor) -> Tensor:
        """`x[:, 0]`."""

    def cross_entropy(self, logits: Tensor, labels: Tensor, smoothing: float = 0.0) -> Tensor:
        """Return the mean loss over all positions. Classes are the last axis of the logits."""

    def binary_cross_entropy(self, logits: Tensor, targets: Tensor) -> Tensor:
        """Return the mean loss of logits (batch, 1) and targets (batch,)."""


_EMBEDDINGS = {
    "source", "target", "tokens", "user_factors", "item_factors", "user_features", "item_features"
}  # fmt: skip


def kind(name: str, array: NDArray[np.generic]) -> Literal["filter", "matrix", "other"]:
    """Return the kind of a weight: the filter of a convolution, a matrix (outputs, inputs), or another weight."""
    layer, _, weight = name.rpartition(".")
    if array.ndim == 4:
        return "filter"
    if array.ndim == 2 and weight.startswith("weight") and layer not in _EMBEDDINGS:
        return "matrix"
    return "other"
