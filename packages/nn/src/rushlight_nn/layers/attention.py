"""Multi-head attention."""

from __future__ import annotations

import math

import rushlight_core as core
from rushlight_core import Tensor

from .. import functional as F
from .. import init
from ..module import Module
from ..parameter import Parameter
from .linear import Linear

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class MultiheadAttention(Module):
    """softmax(Q Kᵀ / sqrt(d)) V in `num_heads` heads, between linear maps (Vaswani et al. 2017).

    Args:
        embed_dim: width of queries and of the result, a multiple of `num_heads`.
        num_heads: number of heads, of width d = embed_dim / num_heads.
        dropout: probability of dropping an attention weight while training.
        bias: whether the linear maps have one.
        add_bias_kv: append a learned key and value to the sequence.
        add_zero_attn: append a zero key and value to the sequence.
        kdim, vdim: widths of keys and values; `embed_dim` by default.
        batch_first: sequences are (batch, length, width) instead of (length, batch, width).
    """

    in_proj_weight: Parameter | None
    in_proj_bias: Parameter | None

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if embed_dim <= 0 or num_heads <= 0 or embed_dim % num_heads:
            raise ValueError(
                f"MultiheadAttention: embed_dim {embed_dim} cannot be split into {num_heads} equal heads"
            )
        if add_zero_attn or add_bias_kv:
            option = "add_bias_kv" if add_bias_kv else "add_zero_attn"
            raise NotImplementedError(f"MultiheadAttention({option}=True) is not supported")
        self.embed_dim = embed_dim
        self.num_heads = num_heads
        self.head_dim = embed_dim // num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim

        def new(*shape: int) -> Parameter:
            return Parameter(core.empty(shape, device=device, dtype=dtype))

        # One product makes queries, keys and values where they have the same width.
        self._same_width = self.kdim == embed_dim == self.vdim
        self.in_proj_weight = new(3 * embed_dim, embed_dim) if self._same_width else None
        for name, width in (("q", embed_dim), ("k", self.kdim), ("v", self.vdim)):
            self.register_parameter(
                f"{name}_proj_weight", None if self._same_width else new(embed_dim, width)
            )
        self.register_parameter("in_proj_bias", new(3 * embed_dim) if bias else None)
        self.out_proj = Linear(embed_dim, embed_dim, bias, device, dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new starting values (Glorot's), biases zero."""
        for weight in (self.in_proj_weight, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight):
            if weight is not None:
                init.xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            init.zeros_(self.in_proj_bias)
            init.zeros_(self.out_proj.bias)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Attend from `query` to `key` and `value`.

        Args:
            query: (L, N, E), with `batch_first` (N, L, E), or (L, E); key and value likewise, with length S.
            key_padding_mask: (N, S), or (S): true, or -inf added, where a key is to be ignored.
            need_weights: also return the attention weights. Without them the computation is fused.
            attn_mask: (L, S) or (N · heads, L, S): true where attention is forbidden, or numbers to add.
            average_attn_weights: average the returned weights over the heads.
            is_causal: `attn_mask` is the causal mask; it is applied without being read.

        Returns:
            the result, shaped like the query; and the weights (N, L, S) or (N, heads, L, S), or None.
        """
        batched = query.dim() == 3
        if query.dim() not in (2, 3) or key.dim() != query.dim() or value.dim() != query.dim():
            raise ValueError(
                f"MultiheadAttention: query, key and value have {query.dim()}, {key.dim()} and {value.dim()} "
                "dimensions, need 3, or 2 without a batch"
            )
        if is_causal and attn_mask is None:
            raise RuntimeError(
                "MultiheadAttention(is_causal): it is a hint about attn_mask, which is missing\n"
                "hint: pass the causal mask too"
            )
        if not batched:
            query, key, value = (t.unsqueeze(0) for t in (query, key, value))
            if key_padding_mask is not None:
                key_padding_mask = key_padding_mask.unsqueeze(0)
        elif not self.batch_first:
            query, key, value = _to_batch_first(query, key, value)
        q, k, v = (self._split_heads(t) for t in self._project(query, key, value))
        fused_causal = is_causal and key_padding_mask is None and not need_weights
        mask = None if fused_causal else self._merge_masks(attn_mask, key_padding_mask, q, k)
        p = self.dropout if self.training else 0.0
        weights = None
        if need_weights:
            scores = (q * (1.0 / math.sqrt(self.head_dim))) @ k.transpose(-2, -1)
            weights = F.softmax(scores if mask is None else scores + mask, -1)
            if p > 0.0:
                weights = F.dropout(weights, p)
            heads = weights @ v
        else:
            heads = F.scaled_dot_product_attention(q, k, v, mask, p, fused_causal)
        result = self.out_proj(heads.transpose(1, 2).flatten(2))
        if weights is not None and average_attn_weights:
            weights = weights.mean(1)
        if not batched:
            return result.squeeze(0), None if weights is None else weights.squeeze(0)
        return (result if self.batch_first else result.transpose(0, 1)), weights

    def _project(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        if self.in_proj_weight is not None:
            if query is key and key is value:
                return F.linear(query, self.in_proj_weight, self.in_proj_bias).chunk(3, -1)
            weights = self.in_proj_weight.chunk(3)
        else:
            weights = (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
        biases = (None, None, None) if self.in_proj_bias is None else self.in_proj_bias.chunk(3)
        inputs = (query, key, value)
        q, k, v = (F.linear(x, w, b) for x, w, b in zip(inputs, weights, biases, strict=True))
        return q, k, v

    def _split_heads(self, tensor: Tensor) -> Tensor:
        batch, length, _ = tensor.shape
        return tensor.reshape(batch, length, self.num_heads, self.head_dim).transpose(1, 2)

    def _merge_masks(
        self, attn_mask: Tensor | None, key_padding_mask: Tensor | None, q: Tensor, k: Tensor
    ) -> Any:
        """One mask of numbers to add, which broadcasts to (N, heads, L, S)."""
        batch, heads, targets, _ = q.shape
        sources = k.shape[2]
        merged = None
        if attn_mask is not None:
            allowed: tuple[tuple[int, ...], ...] = ((targets, sources), (batch * heads, targets, sources))
            if tuple(attn_mask.shape) not in allowed:
                raise RuntimeError(
                    f"MultiheadAttention(attn_mask): shape {tuple(attn_mask.shape)}, "
                    f"needs {allowed[0]} or {allowed[1]}"
                )
            merged = _additive(attn_mask, q)
            if attn_mask.dim() == 3:
                merged = merged.reshape(batch, heads, targets, sources)
        if key_padding_mask is not None:
            if tuple(key_padding_mask.shape) != (batch, sources):
                raise RuntimeError(
                    f"MultiheadAttention(key_padding_mask): shape {tuple(key_padding_mask.shape)}, "
                    f"needs {(batch, sources)}"
                )
            padding = _additive(key_padding_mask, q).reshape(batch, 1, 1, sources)
            merged = padding if merged is None else merged + padding
        return merged

    def extra_repr(self) -> str:
        return f"embed_dim={self.embed_dim}, num_heads={self.num_heads}, batch_first={self.batch_first}"


def _to_batch_first(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    # Tensors that are one object stay one object: self-attention is recognised by it.
    q = query.transpose(0, 1)
    k = q if key is query else key.transpose(0, 1)
    v = k if value is key else value.transpose(0, 1)
    return q, k, v


def _additive(mask: Tensor, like: Tensor) -> Tensor:
    if mask.dtype == core.bool:
        return core.zeros(mask.shape, dtype=like.dtype, device=like.device).masked_fill(mask, -math.inf)
    return mask.to(like.dtype)
