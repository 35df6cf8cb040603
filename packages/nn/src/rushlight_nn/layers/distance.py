"""Layers that compute distances and angles between vectors."""

from __future__ import annotations

from rushlight_core import Tensor

from .. import functional as F
from ..module import Module


class CosineSimilarity(Module):
    """The cosine of the angle between vectors along a dimension of two tensors: ``x1 · x2 / (|x1| |x2|)``.

    Args:
        dim: the dimension along which the cosine is computed.
        eps: lower limit of each norm in the denominator, so that the denominator is never zero.

    Shape:
        - Inputs: (*, D, *) with D in dimension `dim`; the inputs are broadcast to one shape.
        - Output: the shape of the broadcast inputs without dimension `dim`.

    Example:
        >>> nn.CosineSimilarity()(torch.tensor([[1.0, 0.0], [1.0, 1.0]]), torch.tensor([[0.0, 2.0], [2.0, 2.0]]))
        tensor([0.0000, 1.0000])
    """

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim = dim
        self.eps = eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.cosine_similarity(x1, x2, self.dim, self.eps)


class PairwiseDistance(Module):
    """The p-norm of ``x1 - x2 + eps`` along the last dimension.

    Args:
        p: order of the norm.
        eps: added to the difference, so that the gradient exists where the vectors are equal.
        keepdim: whether to keep the last dimension, with size 1.

    Shape:
        - Inputs: (N, D) or (D); the inputs are broadcast to one shape.
        - Output: (N) or (); (N, 1) or (1) with `keepdim`.

    Example:
        >>> nn.PairwiseDistance()(torch.tensor([[0.0, 0.0]]), torch.tensor([[3.0, 4.0]]))
        tensor([5.0000])
    """

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        self.norm = p
        self.eps = eps
        self.keepdim = keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)
