"""Embeddings, by the file that PyTorch has them in."""

from rushlight_nn.layers.embedding import (
    Embedding,
    EmbeddingBag,
)

__all__ = ["Embedding", "EmbeddingBag"]
