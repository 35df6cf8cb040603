"""Transformers."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable

import rushlight_core as core
from rushlight_core import Tensor
from rushlight_core.overrides import has_torch_function

from .. import functional as F
from .. import init
from .._capturing import is_capturing
from .._typing import Any
from ..module import Module
from .activation import GELU, ReLU
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


_fast_path = True


def get_fastpath_enabled() -> bool:
    """Return whether :class:`TransformerEncoder` may return zeros at padded positions in evaluation mode.

    Example:
        >>> torch.backends.mha.get_fastpath_enabled()
        True
    """
    return _fast_path


def set_fastpath_enabled(value: bool) -> None:
    """Set whether :class:`TransformerEncoder` may return zeros at padded positions in evaluation mode.

    Args:
        value: if False, padded positions are computed like all other positions.

    Example:
        >>> torch.backends.mha.set_fastpath_enabled(True)
    """
    global _fast_path
    _fast_path = value


class TransformerEncoderLayer(Module):
    """An encoder layer: self-attention and a feed-forward network (Vaswani et al. 2017).

    The result of the attention is added to the input of the attention, and the sum is normalised. The result
    of the feed-forward network is added to the input of the network, and the sum is normalised, too.

    Args:
        d_model: E, the number of features.
        nhead: number of attention heads, a divisor of `d_model`.
        dim_feedforward: number of features between the two linear layers.
        dropout: probability of dropping an element after attention, after the activation and after the second layer.
        activation: "relu", "gelu" or a function of one tensor.
        layer_norm_eps: added to the variance in layer normalisation.
        batch_first: whether the batch is the first dimension, not the second.
        norm_first: whether to normalise the inputs of the attention and of the feed-forward network, instead
            of the sums of inputs and results.
        bias: whether linear and normalisation layers have a bias.
        device: device of the parameters.
        dtype: dtype of the parameters.

    Shape:
        - Input and output: (S, N, E); (N, S, E) with `batch_first`; (S, E) without a batch.
        - `src_mask`: (S, S) or (N · nhead, S, S); `src_key_padding_mask`: (N, S) or (S).

    Raises:
        RuntimeError: `activation` is a string other than "relu" and "gelu".

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
        """Encode `src`. See :class:`MultiheadAttention` for the masks."""
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

    The layers are copies of `encoder_layer`. The copies have the same initial values but share no parameters.

    Args:
        encoder_layer: the layer to copy.
        num_layers: number of layers.
        norm: a module that is applied to the result of the last layer.
        enable_nested_tensor: whether, in evaluation mode, the result of the last layer is set to zero at the
            positions that `src_key_padding_mask` masks. `norm` is applied after the zeros are set.
            `enable_nested_tensor` has an effect only if the layers are copies of a
            :class:`TransformerEncoderLayer` with `batch_first`, without `norm_first`, with an even number of
            heads, with biases and with the activation ReLU or GELU. `enable_nested_tensor` has no effect in a
            call with a `mask` or without a batch, under autocast, or if gradients of `src` or of the first
            layer's parameters are recorded.
        mask_check: whether to check that the masked positions are at the end of each sequence. If a masked
            position is followed by an unmasked position, nothing is set to zero. If `mask_check` is False and
            n positions of a sequence are masked, the last n positions are treated as the masked positions. A
            captured program makes this check in each run.

    Shape:
        - Input and output: the same as for the layer: (S, N, E); (N, S, E) with `batch_first`; (S, E) without a batch.

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
        self.enable_nested_tensor = enable_nested_tensor
        self.use_nested_tensor: bool = enable_nested_tensor and _gives_zeros(encoder_layer)
        self.mask_check = mask_check

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        """Encode `src`. See :class:`MultiheadAttention` for the masks."""
        padding = None
        if src_key_padding_mask is not None and mask is None:
            padding, src_key_padding_mask = self._padding_of_zeros(src, src_key_padding_mask)
        for layer in self.layers:
            src = layer(src, mask, src_key_padding_mask, bool(is_causal))
        if padding is not None:
            src = src.masked_fill(padding.unsqueeze(-1), 0.0)
        return src if self.norm is None else self.norm(src)

    def _padding_of_zeros(self, src: Tensor, mask: Tensor) -> tuple[Tensor | None, Tensor]:
        """Return a mask of the positions that `forward` sets to zero before `norm`, or None, and the mask for the layers."""
        first = self.layers[0]
        if not (_fast_path and self.use_nested_tensor) or first.training or core.is_autocast_enabled():
            return None, mask
        if src.dim() != 3 or tuple(mask.shape) != tuple(src.shape[:2]):
            return None, mask
        tensors = (src, *_parameters_read(first))
        if has_torch_function(tensors):
            return None, mask
        if core.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors):
            return None, mask
        hidden = mask if mask.dtype == core.bool else mask != 0
        lengths = hidden.logical_not().sum(1, keepdim=True)
        padding = core.arange(src.shape[1], device=src.device) >= lengths
        if not self.mask_check:
            return padding, padding
        if is_capturing():  # a program cannot branch by the mask's values, but it can select by them
            at_end = (padding == hidden).all()
            if mask.is_floating_point():  # the layers would add numbers, but boolean masks are -inf
                numbers = core.zeros_like(padding, dtype=mask.dtype).masked_fill(padding, -math.inf)
                mask = core.where(at_end, numbers, mask)
            return padding.logical_and(at_end), mask
        return (padding, padding) if core.equal(padding, hidden) else (None, mask)


def _gives_zeros(layer: Module) -> bool:
    """Return whether PyTorch uses nested tensors for `layer`, and thus returns zeros at padded positions."""
    return (
        isinstance(layer, TransformerEncoderLayer)
        and not layer.norm_first
        and layer.self_attn.batch_first
        and layer.self_attn._qkv_same_embed_dim
        and layer.self_attn.in_proj_bias is not None
        and (layer.activation in (F.relu, F.gelu) or isinstance(layer.activation, (ReLU, GELU)))
        and layer.norm1.eps == layer.norm2.eps
        and layer.self_attn.num_heads % 2 == 0
    )


def _parameters_read(layer: Module) -> Any:
    attention = layer.self_attn
    yield from (attention.in_proj_weight, attention.in_proj_bias)
    for part in (attention.out_proj, layer.norm1, layer.norm2, layer.linear1, layer.linear2):
        yield from (part.weight, part.bias)


class TransformerDecoderLayer(Module):
    """A decoder layer: self-attention, cross-attention and a feed-forward network (Vaswani et al. 2017).

    The results of both attentions and of the feed-forward network are added to their inputs, and the sums are
    normalised. The arguments are the same as for :class:`TransformerEncoderLayer`.

    Shape:
        - `tgt` and output: (T, N, E); (N, T, E) with `batch_first`; (T, E) without a batch.
        - `memory`: the shape of `tgt` with the length S of the encoder's sequence instead of T.
        - `tgt_mask`: (T, T); `memory_mask`: (T, S); the key padding masks of `tgt` and `memory`: (N, T) and (N, S).

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
        """Decode `tgt` given the encoder's result `memory`. See :class:`MultiheadAttention` for the masks."""
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

    The layers are copies of `decoder_layer`. The copies have the same initial values but share no parameters.

    Args:
        decoder_layer: the layer to copy.
        num_layers: number of layers.
        norm: a module that is applied to the result of the last layer.

    Shape:
        - Inputs and output: the same as for the layer; see :class:`TransformerDecoderLayer`.

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
        """Decode `tgt` given the encoder's result `memory`. See :class:`MultiheadAttention` for the masks."""
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
    """An encoder of a source sequence, and a decoder of a target sequence (Vaswani et al. 2017).

    The decoder attends to the output of the encoder.

    Args:
        d_model: E, the number of features.
        nhead: number of attention heads, a divisor of `d_model`.
        num_encoder_layers: number of layers of the encoder.
        num_decoder_layers: number of layers of the decoder.
        dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias, device, dtype: see
            :class:`TransformerEncoderLayer`.
        custom_encoder: a module that replaces the encoder.
        custom_decoder: a module that replaces the decoder.

    Shape:
        - `src`: (S, N, E); (N, S, E) with `batch_first`; (S, E) without a batch.
        - `tgt` and output: the shape of `src` with the length T instead of S.
        - Masks: `src_mask` (S, S), `tgt_mask` (T, T), `memory_mask` (T, S); key padding masks (N, S) and (N, T).

    Raises:
        RuntimeError: the batch sizes of `src` and `tgt` differ, or `src` or `tgt` does not have `d_model` features (raised
            when the module is called).

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
        """Initialise all parameters that have more than one dimension with `xavier_uniform_`."""
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
        """Encode `src`, and decode `tgt` given the encoder's result.

        See :class:`Transformer` for the shapes and :class:`MultiheadAttention` for the masks.
        """
        batch = 0 if self.batch_first else 1
        if src.dim() == 3 and src.shape[batch] != tgt.shape[batch]:
            raise RuntimeError(
                f"Transformer(src, tgt): shapes {tuple(src.shape)} and {tuple(tgt.shape)} differ in batch size"
            )
        if src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            raise RuntimeError(
                f"Transformer(src, tgt): got last dimensions of size {src.shape[-1]} and {tgt.shape[-1]}, "
                f"needs d_model={self.d_model}"
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
        """Return a mask of shape (sz, sz) with -inf above the diagonal and zero elsewhere."""
        return core.full((sz, sz), -math.inf, dtype=dtype, device=device).triu(1)
