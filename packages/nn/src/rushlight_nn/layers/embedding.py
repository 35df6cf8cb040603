"""Embedding layers."""

from __future__ import annotations

import rushlight_core as core
from rushlight_core import Tensor

from .. import functional as F
from .. import init
from .._typing import Any
from ..module import Module
from ..parameter import Parameter


class Embedding(Module):
    """A lookup table of trainable vectors, indexed by integers.

    The vectors are initialised from the standard normal distribution; the vector of `padding_idx` is zero.

    Args:
        num_embeddings: number of vectors.
        embedding_dim: size of each vector.
        padding_idx: the index of a vector that receives no gradient.
        max_norm: the maximum norm of a vector. A vector whose norm exceeds `max_norm` is rescaled in place to
            this norm when it is looked up.
        norm_type: the order of the norm for `max_norm`.
        scale_grad_by_freq: whether to divide the gradient of each vector by the number of its lookups in the call.
        sparse: whether the gradient of the table is sparse.
        device: device of the table.
        dtype: dtype of the table.

    Shape:
        - Input: (*), int32 or int64, from 0 to num_embeddings - 1.
        - Output: (*, embedding_dim).
        - `weight`: (num_embeddings, embedding_dim).

    Raises:
        IndexError: `padding_idx` is out of range.
        ValueError: the shape of `_weight` is not (num_embeddings, embedding_dim).

    Example:
        >>> table = nn.Embedding(10, 3, padding_idx=0)
        >>> table(torch.tensor([[1, 2, 4, 5], [4, 3, 2, 9]])).shape
        torch.Size([2, 4, 3])
        >>> table(torch.tensor(0)).detach()
        tensor([0., 0., 0.])
    """

    weight: Parameter

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Tensor | None = None,
        _freeze: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        if padding_idx is not None:
            if not -num_embeddings <= padding_idx < num_embeddings:
                raise IndexError(
                    f"Embedding(padding_idx): {padding_idx} is out of range for {num_embeddings} rows"
                )
            padding_idx %= num_embeddings
        self.padding_idx = padding_idx
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.sparse = sparse
        if _weight is None:
            values = core.empty((num_embeddings, embedding_dim), device=device, dtype=dtype)
            self.weight = Parameter(values, requires_grad=not _freeze)
            self.reset_parameters()
        else:
            if tuple(_weight.shape) != (num_embeddings, embedding_dim):
                raise ValueError(
                    f"Embedding(_weight): got shape {tuple(_weight.shape)}, "
                    f"needs {(num_embeddings, embedding_dim)}"
                )
            self.weight = Parameter(_weight, requires_grad=not _freeze)

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Embedding:
        """Return a layer with the table `embeddings` (rows, width). If `freeze` is true, the table is not trained."""
        if embeddings.dim() != 2:
            raise ValueError(
                f"from_pretrained(embeddings): got {embeddings.dim()} dimensions, needs 2 (rows, width)"
            )
        rows, width = embeddings.shape
        return cls(
            rows, width, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse, embeddings, freeze
        )

    def reset_parameters(self) -> None:
        """Draw new initial values for the table."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with core.no_grad():
                self.weight[self.padding_idx].fill_(0)

    def forward(self, input: Tensor) -> Tensor:
        return F.embedding(
            input,
            self.weight,
            self.padding_idx,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.sparse,
        )

    def extra_repr(self) -> str:
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        for name, default in (
            ("padding_idx", None),
            ("max_norm", None),
            ("norm_type", 2.0),
            ("scale_grad_by_freq", False),
            ("sparse", False),
        ):
            value = getattr(self, name)
            if value != default:
                text += f", {name}={value}"
        return text


class EmbeddingBag(Module):
    """A layer that returns, for each bag of indices, the sum, mean or maximum of vectors from a trainable table.

    The result is the same as for :class:`Embedding` followed by a reduction. On the CPU, the modes "sum" and "mean" do not
    store the individual vectors, unless `per_sample_weights` are given.

    Args:
        num_embeddings: number of vectors.
        embedding_dim: size of each vector.
        max_norm, norm_type, scale_grad_by_freq, sparse: see :class:`Embedding`.
        mode: "sum", "mean" or "max".
        include_last_offset: whether `offsets` has an additional last element, the length of the input.
        padding_idx: the index of a vector that is omitted from every bag.
        device: device of the table.
        dtype: dtype of the table.

    Shape:
        - Input: (B, n), where each row is a bag, or (n) with `offsets` (B), the positions at which the bags begin; int32 or
          int64.
        - Output: (B, embedding_dim).
        - `weight`: (num_embeddings, embedding_dim).

    Raises:
        ValueError: `padding_idx` is out of range, or the shape of `_weight` is not (num_embeddings, embedding_dim).

    Example:
        >>> table = nn.EmbeddingBag.from_pretrained(torch.tensor([[0.0, 0.0], [1.0, 2.0], [3.0, 4.0]]), mode="sum")
        >>> table(torch.tensor([1, 2, 2, 1]), torch.tensor([0, 2]))  # bags [1, 2] and [2, 1]
        tensor([[4., 6.],
                [4., 6.]])
    """

    weight: Parameter

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Tensor | None = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.mode = mode
        self.sparse = sparse
        self.include_last_offset = include_last_offset
        if padding_idx is not None:
            if not -num_embeddings <= padding_idx < num_embeddings:
                raise ValueError(
                    f"EmbeddingBag(padding_idx): got {padding_idx} for a table of {num_embeddings} rows"
                )
            padding_idx %= num_embeddings
        self.padding_idx = padding_idx
        shape = (num_embeddings, embedding_dim)
        if _weight is None:
            self.weight = Parameter(core.empty(shape, device=device, dtype=dtype))
            self.reset_parameters()
        else:
            if tuple(_weight.shape) != shape:
                raise ValueError(f"EmbeddingBag(_weight): got shape {tuple(_weight.shape)}, needs {shape}")
            self.weight = Parameter(_weight)

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
    ) -> EmbeddingBag:
        """Return a layer with the table `embeddings` (rows, width). If `freeze` is true, the table is not trained."""
        if embeddings.dim() != 2:
            raise ValueError(
                f"from_pretrained(embeddings): got {embeddings.dim()} dimensions, needs 2 (rows, width)"
            )
        rows, width = embeddings.shape
        settings = (max_norm, norm_type, scale_grad_by_freq, mode, sparse, embeddings)
        layer = cls(rows, width, *settings, include_last_offset, padding_idx)
        layer.weight.requires_grad = not freeze
        return layer

    def reset_parameters(self) -> None:
        """Draw new initial values for the table."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with core.no_grad():
                self.weight[self.padding_idx].fill_(0)

    def forward(
        self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None
    ) -> Tensor:
        return F.embedding_bag(
            input,
            self.weight,
            offsets,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.mode,
            self.sparse,
            per_sample_weights,
            self.include_last_offset,
            self.padding_idx,
        )

    def extra_repr(self) -> str:
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        for name, default in (
            ("max_norm", None),
            ("norm_type", 2.0),
            ("scale_grad_by_freq", False),
        ):
            if getattr(self, name) != default:
                text += f", {name}={getattr(self, name)}"
        text += f", mode={self.mode!r}"
        return text if self.padding_idx is None else f"{text}, padding_idx={self.padding_idx}"
