"""Transformers."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable

import rushlight_core as core
from rushlight_core import Tensor

from .. import functional as F
from .. import init
from .._typing import Any
from ..module import Module
from .attention import MultiheadAttention
from .container import ModuleList
from .dropout import Dropout
from .linear import Linear
from .norm import LayerNorm


def _activation(given: str | Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    if not isinstance(given, str):
        return given
    if given not in ("relu", "gelu"):
        raise RuntimeError(f"activation: got {given!r}, needs 'relu', 'gelu' or a callable")
    return F.relu if given == "relu" else F.gelu


class TransformerEncoderLayer(Module):
    """Self-attention and a two-layer network, each added to its input and normalised (Vaswani et al. 2017).

    Args:
        d_model: E, the number of features.
        nhead: number of attention heads, a divisor of `d_model`.
        dim_feedforward: number of features between the two linear layers.
        dropout: probability of dropping an element, after attention, activation and the second layer.
        activation: "relu", "gelu" or a function of one tensor.
        layer_norm_eps: added to the variance in layer normalisation.
        batch_first: the batch is the first dimension, not the second.
        norm_first: normalise before each part instead of after it.
        bias: whether linear and normalisation layers have a bias.
        device: where the parameters are.
        dtype: dtype of the parameters.

    Shape:
        - Input and output: (S, N, E), with `batch_first` (N, S, E), without a batch (S, E).
        - `src_mask`: (S, S) or (N · nhead, S, S); `src_key_padding_mask`: (N, S) or (S).

    Raises:
        RuntimeError: `activation` is another string.

    Example:
        >>> layer = nn.TransformerEncoderLayer(d_model=16, nhead=4, dim_feedforward=32, batch_first=True)
        >>> layer(torch.randn(2, 10, 16)).shape
        torch.Size([2, 10, 16])
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
        self.self_attn: MultiheadAttention = MultiheadAttention(
            d_model, nhead, dropout, bias, batch_first=batch_first, device=device, dtype=dtype
        )
        self.linear1: Linear = Linear(d_model, dim_feedforward, bias, device, dtype)
        self.dropout: Dropout = Dropout(dropout)
        self.linear2: Linear = Linear(dim_feedforward, d_model, bias, device, dtype)
        self.norm_first = norm_first
        self.norm1: LayerNorm = LayerNorm(d_model, layer_norm_eps, bias=bias, device=device, dtype=dtype)
        self.norm2: LayerNorm = LayerNorm(d_model, layer_norm_eps, bias=bias, device=device, dtype=dtype)
        self.dropout1: Dropout = Dropout(dropout)
        self.dropout2: Dropout = Dropout(dropout)
        self.activation: Callable[[Tensor], Tensor] = _activation(activation)

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
    """A stack of encoder layers.

    The layers are copies of `encoder_layer`: they start with the same values, but share no parameters.

    Args:
        encoder_layer: the layer to copy.
        num_layers: number of layers.
        norm: a module that is applied to the result of the last layer.
        enable_nested_tensor, mask_check: accepted and ignored: there is no faster path for them to select.

    Shape:
        - Input and output: those of the layer, (S, N, E), with `batch_first` (N, S, E), without a batch (S, E).

    Example:
        >>> layer = nn.TransformerEncoderLayer(d_model=16, nhead=4, dim_feedforward=32)
        >>> encoder = nn.TransformerEncoder(layer, num_layers=2)
        >>> encoder(torch.randn(10, 2, 16)).shape
        torch.Size([10, 2, 16])
    """

    layers: ModuleList

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


class TransformerDecoderLayer(Module):
    """Self-attention, attention to an encoder's result and a two-layer network (Vaswani et al. 2017).

    Each part is added to its input and normalised. Arguments are those of :class:`TransformerEncoderLayer`.

    Shape:
        - `tgt` and output: (T, N, E), with `batch_first` (N, T, E), without a batch (T, E).
        - `memory`: likewise, with the length S of the encoder's sequence.
        - `tgt_mask`: (T, T); `memory_mask`: (T, S); their key padding masks (N, T) and (N, S).

    Raises:
        RuntimeError: `activation` is a string other than "relu" and "gelu".

    Example:
        >>> layer = nn.TransformerDecoderLayer(d_model=16, nhead=4, dim_feedforward=32)
        >>> memory = torch.randn(10, 2, 16)
        >>> layer(torch.randn(7, 2, 16), memory).shape
        torch.Size([7, 2, 16])
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
        own: dict[str, Any] = {"device": device, "dtype": dtype}
        self.self_attn: MultiheadAttention = MultiheadAttention(
            d_model, nhead, dropout, bias, batch_first=batch_first, **own
        )
        self.multihead_attn: MultiheadAttention = MultiheadAttention(
            d_model, nhead, dropout, bias, batch_first=batch_first, **own
        )
        self.linear1: Linear = Linear(d_model, dim_feedforward, bias, **own)
        self.dropout: Dropout = Dropout(dropout)
        self.linear2: Linear = Linear(dim_feedforward, d_model, bias, **own)
        self.norm_first = norm_first
        self.norm1: LayerNorm = LayerNorm(d_model, layer_norm_eps, bias=bias, **own)
        self.norm2: LayerNorm = LayerNorm(d_model, layer_norm_eps, bias=bias, **own)
        self.norm3: LayerNorm = LayerNorm(d_model, layer_norm_eps, bias=bias, **own)
        self.dropout1: Dropout = Dropout(dropout)
        self.dropout2: Dropout = Dropout(dropout)
        self.dropout3: Dropout = Dropout(dropout)
        self.activation: Callable[[Tensor], Tensor] = _activation(activation)

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Decode `tgt` given an encoder's `memory`; the masks are those of :class:`MultiheadAttention`."""
        own = (tgt_key_padding_mask, tgt_mask, tgt_is_causal)
        other = (memory_key_padding_mask, memory_mask, memory_is_causal)
        if self.norm_first:
            tgt = tgt + self._attend_itself(self.norm1(tgt), own)
            tgt = tgt + self._attend_memory(self.norm2(tgt), memory, other)
            return tgt + self._feed_forward(self.norm3(tgt))
        tgt = self.norm1(tgt + self._attend_itself(tgt, own))
        tgt = self.norm2(tgt + self._attend_memory(tgt, memory, other))
        return self.norm3(tgt + self._feed_forward(tgt))

    def _attend_itself(self, x: Tensor, masks: Any) -> Tensor:
        padding, mask, is_causal = masks
        result, _ = self.self_attn(x, x, x, padding, need_weights=False, attn_mask=mask, is_causal=is_causal)
        return self.dropout1(result)

    def _attend_memory(self, x: Tensor, memory: Tensor, masks: Any) -> Tensor:
        padding, mask, is_causal = masks
        result, _ = self.multihead_attn(
            x, memory, memory, padding, need_weights=False, attn_mask=mask, is_causal=is_causal
        )
        return self.dropout2(result)

    def _feed_forward(self, x: Tensor) -> Tensor:
        return self.dropout3(self.linear2(self.dropout(self.activation(self.linear1(x)))))


class TransformerDecoder(Module):
    """A stack of decoder layers.

    The layers are copies of `decoder_layer`: they start with the same values, but share no parameters.

    Args:
        decoder_layer: the layer to copy.
        num_layers: number of layers.
        norm: a module that is applied to the result of the last layer.

    Shape:
        - Inputs and output: those of the layer; see :class:`TransformerDecoderLayer`.

    Example:
        >>> layer = nn.TransformerDecoderLayer(d_model=16, nhead=4, dim_feedforward=32)
        >>> decoder = nn.TransformerDecoder(layer, num_layers=2)
        >>> decoder(torch.randn(7, 2, 16), torch.randn(10, 2, 16)).shape
        torch.Size([7, 2, 16])
    """

    layers: ModuleList

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = ModuleList(copy.deepcopy(decoder_layer) for _ in range(num_layers))
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Decode `tgt` given an encoder's `memory`; the masks are those of :class:`MultiheadAttention`."""
        for layer in self.layers:
            tgt = layer(
                tgt,
                memory,
                tgt_mask=tgt_mask,
                memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask,
                tgt_is_causal=bool(tgt_is_causal),
                memory_is_causal=memory_is_causal,
            )
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Module):
    """An encoder of one sequence and a decoder of another that attends to it (Vaswani et al. 2017).

    Args:
        d_model: E, the number of features.
        nhead: number of attention heads, a divisor of `d_model`.
        num_encoder_layers: number of layers of the encoder.
        num_decoder_layers: number of layers of the decoder.
        dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias, device, dtype: as of
            :class:`TransformerEncoderLayer`.
        custom_encoder: a module that replaces the encoder.
        custom_decoder: a module that replaces the decoder.

    Shape:
        - `src`: (S, N, E), with `batch_first` (N, S, E), without a batch (S, E).
        - `tgt` and output: likewise, with the length T.
        - Masks: `src_mask` (S, S), `tgt_mask` (T, T), `memory_mask` (T, S); key padding masks (N, S) and (N, T).

    Raises:
        RuntimeError: `src` and `tgt` have different batches, or not `d_model` features (when called).

    Example:
        >>> model = nn.Transformer(d_model=16, nhead=4, num_encoder_layers=1, num_decoder_layers=1, dim_feedforward=32)
        >>> src, tgt = torch.randn(10, 2, 16), torch.randn(7, 2, 16)
        >>> model(src, tgt, tgt_mask=model.generate_square_subsequent_mask(7)).shape
        torch.Size([7, 2, 16])
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Tensor], Tensor] = "relu",
        custom_encoder: Any = None,
        custom_decoder: Any = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        own: dict[str, Any] = {"device": device, "dtype": dtype}
        layer = (dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias)
        if custom_encoder is None:
            custom_encoder = TransformerEncoder(
                TransformerEncoderLayer(d_model, nhead, *layer, **own),
                num_encoder_layers,
                LayerNorm(d_model, layer_norm_eps, bias=bias, **own),
            )
        if custom_decoder is None:
            custom_decoder = TransformerDecoder(
                TransformerDecoderLayer(d_model, nhead, *layer, **own),
                num_decoder_layers,
                LayerNorm(d_model, layer_norm_eps, bias=bias, **own),
            )
        self.encoder = custom_encoder
        self.decoder = custom_decoder
        self._reset_parameters()
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first

    def _reset_parameters(self) -> None:
        """Draw new matrices (Glorot's)."""
        for parameter in self.parameters():
            if parameter.dim() > 1:
                init.xavier_uniform_(parameter)

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Decode `tgt` (T, N, E), with `batch_first` (N, T, E), or (T, E), given `src`, shaped likewise.

        The masks are those of :class:`MultiheadAttention`.
        """
        batch = 0 if self.batch_first else 1
        if src.dim() == 3 and src.shape[batch] != tgt.shape[batch]:
            raise RuntimeError(
                f"Transformer(src, tgt): shapes {tuple(src.shape)} and {tuple(tgt.shape)} differ in batch"
            )
        if src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            raise RuntimeError(
                f"Transformer(src, tgt): the last sizes are {src.shape[-1]} and {tgt.shape[-1]}, "
                f"need d_model={self.d_model}"
            )
        memory = self.encoder(src, src_mask, src_key_padding_mask, src_is_causal)
        return self.decoder(
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
            tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
        """Return a mask (sz, sz) with -inf above the diagonal and zero elsewhere."""
        return core.full((sz, sz), -math.inf, dtype=dtype, device=device).triu(1)
