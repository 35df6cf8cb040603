"""Transformer encoders."""

from __future__ import annotations

import copy
from collections.abc import Callable

from rushlight_core import Tensor

from .. import functional as F
from ..module import Module
from .attention import MultiheadAttention
from .container import ModuleList
from .dropout import Dropout
from .linear import Linear
from .norm import LayerNorm

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class TransformerEncoderLayer(Module):
    """Self-attention and a two-layer network, each added to its input and normalised (Vaswani et al. 2017).

    Args:
        d_model: width of the sequence.
        nhead: number of attention heads, a divisor of `d_model`.
        dim_feedforward: width between the two linear layers.
        dropout: probability of dropping, after attention, activation and the second layer.
        activation: "relu", "gelu" or a function of one tensor.
        layer_norm_eps: added to the variance.
        batch_first: sequences are (batch, length, width) instead of (length, batch, width).
        norm_first: normalise before each part instead of after it.
        bias: whether linear and normalisation layers have one.
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Tensor], Tensor] = "relu",
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if isinstance(activation, str):
            if activation not in ("relu", "gelu"):
                raise RuntimeError(f"activation: got {activation!r}, needs 'relu', 'gelu' or a callable")
            activation = F.relu if activation == "relu" else F.gelu
        self.self_attn = MultiheadAttention(
            d_model, nhead, dropout, bias, batch_first=batch_first, device=device, dtype=dtype
        )
        self.linear1 = Linear(d_model, dim_feedforward, bias, device, dtype)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, device, dtype)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, layer_norm_eps, bias=bias, device=device, dtype=dtype)
        self.norm2 = LayerNorm(d_model, layer_norm_eps, bias=bias, device=device, dtype=dtype)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.activation = activation

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """Encode `src`; the masks are those of :class:`MultiheadAttention`."""
        if self.norm_first:
            src = src + self._attend(self.norm1(src), src_mask, src_key_padding_mask, is_causal)
            return src + self._feed_forward(self.norm2(src))
        src = self.norm1(src + self._attend(src, src_mask, src_key_padding_mask, is_causal))
        return self.norm2(src + self._feed_forward(src))

    def _attend(self, x: Tensor, mask: Tensor | None, padding: Tensor | None, is_causal: bool) -> Tensor:
        result, _ = self.self_attn(x, x, x, padding, need_weights=False, attn_mask=mask, is_causal=is_causal)
        return self.dropout1(result)

    def _feed_forward(self, x: Tensor) -> Tensor:
        return self.dropout2(self.linear2(self.dropout(self.activation(self.linear1(x)))))


class TransformerEncoder(Module):
    """`num_layers` copies of `encoder_layer`, one after the other, and `norm` after the last.

    The copies start with the same values, but share nothing.
    """

    def __init__(
        self,
        encoder_layer: Module,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__()
        self.layers = ModuleList(copy.deepcopy(encoder_layer) for _ in range(num_layers))
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        """Encode `src`; the masks are those of :class:`MultiheadAttention`."""
        for layer in self.layers:
            src = layer(src, mask, src_key_padding_mask, bool(is_causal))
        return src if self.norm is None else self.norm(src)
