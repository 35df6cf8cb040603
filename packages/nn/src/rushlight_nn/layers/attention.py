"""Multi-head attention."""

from __future__ import annotations

import rushlight_core as core
from rushlight_core import Tensor

from .. import init
from .._typing import Any
from ..functional.attention import attend
from ..module import Module
from ..parameter import Parameter
from .linear import NonDynamicallyQuantizableLinear


class MultiheadAttention(Module):
    """Multi-head attention: ``softmax(Q Kᵀ / sqrt(d)) V`` in several heads (Vaswani et al. 2017).

    The queries Q, keys K and values V of the heads are linear projections of the inputs. Another linear
    projection computes the result from the outputs of all heads. If the layer is called with
    `need_weights=False`, the attention weights are not returned, and a fused computation uses less memory.

    Args:
        embed_dim: E, the size of queries and of the result.
        num_heads: number of heads, each of size d = embed_dim / num_heads.
        dropout: probability of dropping an attention weight in training mode.
        bias: whether the projections have a bias.
        add_bias_kv: append a learned key and value to the sequence.
        add_zero_attn: append a zero key and value to the sequence.
        kdim: size of keys; `embed_dim` by default.
        vdim: size of values; `embed_dim` by default.
        batch_first: whether the batch is the first dimension instead of the second.
        device: device of the parameters.
        dtype: dtype of the parameters.

    Shape:
        - Query: (L, N, E); (N, L, E) with `batch_first`; (L, E) without a batch.
        - Key and value: the query's shape with the length S and the sizes `kdim` and `vdim`.
        - Output: a pair. The first element is the result, which has the query's shape. The second element
          contains the attention weights: (N, L, S), or (N, num_heads, L, S) if they are not averaged over the
          heads, or None if they are not requested.

    Raises:
        ValueError: `embed_dim` or `num_heads` is not positive.
        AssertionError: `num_heads` does not divide `embed_dim`.

    Example:
        >>> attention = nn.MultiheadAttention(embed_dim=16, num_heads=4, batch_first=True)
        >>> x = torch.randn(2, 5, 16)
        >>> output, weights = attention(x, x, x)
        >>> output.shape, weights.shape
        (torch.Size([2, 5, 16]), torch.Size([2, 5, 5]))
        >>> mask = nn.Transformer.generate_square_subsequent_mask(5)
        >>> causal, _ = attention(x, x, x, attn_mask=mask, is_causal=True, need_weights=False)
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
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                f"MultiheadAttention(embed_dim, num_heads): must be positive, got {embed_dim} and {num_heads}"
            )
        if embed_dim % num_heads:
            raise AssertionError(  # as in PyTorch
                f"MultiheadAttention: embed_dim {embed_dim} cannot be split into {num_heads} equal heads"
            )
        self.embed_dim = embed_dim
        self.num_heads = num_heads
        self.head_dim: int = embed_dim // num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.kdim: int = embed_dim if kdim is None else kdim
        self.vdim: int = embed_dim if vdim is None else vdim

        def new(*shape: int) -> Parameter:
            return Parameter(core.empty(shape, device=device, dtype=dtype))

        # If queries, keys and values have the same width, one product computes all of them.
        self._qkv_same_embed_dim = self.kdim == embed_dim == self.vdim
        for name, width in (("q", embed_dim), ("k", self.kdim), ("v", self.vdim)):
            self.register_parameter(
                f"{name}_proj_weight", None if self._qkv_same_embed_dim else new(embed_dim, width)
            )
        whole = new(3 * embed_dim, embed_dim) if self._qkv_same_embed_dim else None
        self.register_parameter("in_proj_weight", whole)
        self.register_parameter("in_proj_bias", new(3 * embed_dim) if bias else None)
        self.out_proj: NonDynamicallyQuantizableLinear = NonDynamicallyQuantizableLinear(
            embed_dim, embed_dim, bias, device, dtype
        )
        self.register_parameter("bias_k", new(1, 1, embed_dim) if add_bias_kv else None)
        self.register_parameter("bias_v", new(1, 1, embed_dim) if add_bias_kv else None)
        self.add_zero_attn = add_zero_attn
        self._reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new weights for the input projections, and set the biases of all projections to zero.

        The weights, `bias_k` and `bias_v` are initialised as in Glorot and Bengio 2010.
        """
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        # Subclasses override this method under PyTorch's name.
        for weight in (self.in_proj_weight, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight):
            if weight is not None:
                init.xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            init.zeros_(self.in_proj_bias)
            init.zeros_(self.out_proj.bias)
        for bias in (self.bias_k, self.bias_v):
            if bias is not None:
                init.xavier_normal_(bias)

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
        """Compute the attention of `query` to `key` and `value`.

        Args:
            query: (L, N, E); (N, L, E) with `batch_first`; (L, E) without a batch.
            key, value: the shape of `query` with the length S and the sizes `kdim` and `vdim`.
            key_padding_mask: (N, S) or (S). A bool mask is True for the keys to ignore. A floating-point mask is added
                to the scores, with -inf for the keys to ignore.
            need_weights: whether to return the attention weights. If False, a fused computation is used.
            attn_mask: (L, S) or (N · heads, L, S). A bool mask is True where attention is not allowed. A floating-point
                mask is added to the scores.
            average_attn_weights: whether to average the returned weights over the heads.
            is_causal: whether `attn_mask` is the causal mask. If True, the causal mask may be applied without reading
                `attn_mask`.

        Returns:
            a pair. The first element is the result, which has the query's shape. The second element contains
            the attention weights, of shape (N, L, S), or (N, heads, L, S) if the weights are not averaged
            over the heads. If the weights are not requested, the second element is None.
        """
        weights: Any = self.in_proj_weight
        if weights is None:
            weights = (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
        return attend(
            (query, key, value),
            (self.embed_dim, self.num_heads),
            weights,
            self.in_proj_bias,
            (self.bias_k, self.bias_v, self.add_zero_attn),
            self.dropout if self.training else 0.0,
            (self.out_proj.weight, self.out_proj.bias),
            (key_padding_mask, attn_mask, is_causal),
            (need_weights, average_attn_weights),
            self.batch_first,
        )
