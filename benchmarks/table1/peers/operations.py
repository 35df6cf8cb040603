"""What the networks of `networks.py` are written in, and what each library's module implements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

# A library's tensor; `+` and `*` work on two of the same shape. Images are in the layout that the library prefers.
Tensor = Any


class Operations(Protocol):
    """Operations of a training step. `name` is that of a layer, whose weights have PyTorch's names below it."""

    def conv(self, x: Tensor, name: str, stride: int = 1, padding: int = 0, groups: int = 1) -> Tensor:
        """A convolution of images, with a bias where there is one. groups: 1, or the number of channels."""

    def batch_norm(self, x: Tensor, name: str) -> Tensor:
        """By the batch's statistics, which are also added to the running ones; epsilon 1e-5, momentum 0.1."""

    def layer_norm(self, x: Tensor, name: str) -> Tensor:
        """Over the last axis, epsilon 1e-5."""

    def relu(self, x: Tensor) -> Tensor: ...

    def relu6(self, x: Tensor) -> Tensor: ...

    def gelu(self, x: Tensor) -> Tensor:
        """By the error function."""

    def max_pool(self, x: Tensor, size: int, stride: int, padding: int = 0) -> Tensor:
        """Of images that are nowhere negative, so that they may be padded with zeros."""

    def average(self, x: Tensor) -> Tensor:
        """Images to their channels' means (batch, channels)."""

    def flatten(self, x: Tensor) -> Tensor:
        """Images to vectors (batch, channels * height * width), in this order."""

    def rows(self, x: Tensor) -> Tensor:
        """Images to sequences (batch, height * width, channels)."""

    def linear(self, x: Tensor, name: str) -> Tensor:
        """Over the last axis, with a bias where there is one."""

    def dropout(self, x: Tensor, p: float) -> Tensor: ...

    def embedding(self, indices: Tensor, name: str) -> Tensor: ...

    def logits_by_embedding(self, x: Tensor, name: str) -> Tensor:
        """The product of `x` (…, size) with each row of an embedding."""

    def concat(self, parts: Sequence[Tensor]) -> Tensor:
        """Along the last axis."""

    def lstm(self, x: Tensor, name: str, bidirectional: bool = False) -> Tensor:
        """One layer's outputs (batch, length, size) from zero states; twice the size in both directions."""

    def normed_attention(self, queries: Tensor, keys: Tensor, name: str) -> Tensor:
        """`models.NormedAttention`."""

    def self_attention(self, qkv: Tensor, heads: int, causal: bool, p: float) -> Tensor:
        """Attention among (batch, length, 3 * size), in which queries, keys and values lie one after the other, each by
        heads; p: dropout of the attention's weights.
        """

    def shift(self, x: Tensor, name: str) -> Tensor:
        """`x` (batch, length, size) plus a weight (length, size) or (1, length, size)."""

    def prepend(self, x: Tensor, name: str) -> Tensor:
        """`x` (batch, length, size) behind a weight (1, 1, size)."""

    def first(self, x: Tensor) -> Tensor:
        """`x[:, 0]`."""

    def cross_entropy(self, logits: Tensor, labels: Tensor, smoothing: float = 0.0) -> Tensor:
        """The mean over all positions; classes are the last axis of the logits."""

    def binary_cross_entropy(self, logits: Tensor, targets: Tensor) -> Tensor:
        """The mean, of logits (batch, 1) and targets (batch,)."""


_EMBEDDINGS = {
    "source", "target", "tokens", "user_factors", "item_factors", "user_features", "item_features"
}  # fmt: skip


def kind(name: str, array: NDArray[np.generic]) -> Literal["filter", "matrix", "other"]:
    """What a weight is: the filter of a convolution, a matrix (outputs, inputs), or anything else."""
    layer, _, weight = name.rpartition(".")
    if array.ndim == 4:
        return "filter"
    if array.ndim == 2 and weight.startswith("weight") and layer not in _EMBEDDINGS:
        return "matrix"
    return "other"
