"""Attention."""

from __future__ import annotations

import math

from rushlight_core import Tensor
from rushlight_core.overrides import overridable

from .._core import core, operator
from .._typing import Any
from .activation import softmax
from .dropout import dropout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rushlight_core import scaled_dot_product_attention as scaled_dot_product_attention
else:
    scaled_dot_product_attention = operator("scaled_dot_product_attention")

_linear = operator("linear")
_constant_pad = operator("constant_pad_nd")


@overridable
def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Compute multi-head attention, including the input and output projections (Vaswani et al. 2017).

    :class:`rushlight_nn.MultiheadAttention` contains the parameters and calls this function.

    Args:
        query: the queries.
        key: the keys.
        value: the values.
        embed_dim_to_check: the embedding size E.
        num_heads: number of heads, a divisor of E.
        in_proj_weight: the stacked weights of the projections of query, key and value; not used if
            `use_separate_proj_weight` is True.
        in_proj_bias: the stacked biases of the projections of query, key and value.
        bias_k, bias_v: vectors that are appended to the projected keys and values, as one more position.
        add_zero_attn: whether to append a position of zeros to the projected keys and values.
        dropout_p: probability of dropping an attention weight if `training` is True.
        out_proj_weight, out_proj_bias: weight and bias of the output projection.
        training: whether to apply dropout.
        key_padding_mask: a bool mask, True for the keys to ignore, or a floating-point mask that is added to the scores.
        need_weights: whether to return the attention weights, too. If False, a fused operator computes the
            attention.
        attn_mask: a bool mask, True where attention is not allowed, or a floating-point mask that is added to the scores.
        use_separate_proj_weight: whether to use `q_proj_weight`, `k_proj_weight` and `v_proj_weight` instead
            of `in_proj_weight`.
        static_k, static_v: tensors that are used instead of the projected keys and values.
        average_attn_weights: whether to average the returned weights over the heads.
        is_causal: whether `attn_mask` is the causal mask. If True, the causal mask may be applied without reading
            `attn_mask`.

    Shape:
        - Query: (L, N, E), or (L, E) without a batch. Key and value have the same dimensions with the length S instead of L.
        - `in_proj_weight`: (3 · E, E); `in_proj_bias`: (3 · E); `out_proj_weight`: (E, E); `out_proj_bias`: (E).
        - `q_proj_weight`: (E, E); `k_proj_weight` and `v_proj_weight`: (E, size of keys) and (E, size of values).
        - `bias_k` and `bias_v`: (1, 1, E); `static_k` and `static_v`: (N · num_heads, S, E / num_heads).
        - `key_padding_mask`: (N, S) or (S); `attn_mask`: (L, S) or (N · num_heads, L, S).
        - Output: the query's shape. Weights: (N, L, S), or (N, num_heads, L, S) if they are not averaged; None if
          `need_weights` is False.

    Raises:
        AssertionError: the shapes of query, key, value and `key_padding_mask` do not match, `num_heads` does not divide E,
            or a mask is neither bool nor floating point. PyTorch raises AssertionError, too.
        RuntimeError: `attn_mask` has the wrong shape, or `is_causal` is True and `attn_mask` is None.

    Example:
        >>> x, weight = torch.randn(5, 2, 8), torch.randn(24, 8)
        >>> output, weights = F.multi_head_attention_forward(
        ...     x, x, x, 8, 2, weight, None, None, None, False, 0.0, torch.eye(8), None
        ... )
        >>> output.shape, weights.shape
        (torch.Size([5, 2, 8]), torch.Size([2, 5, 5]))
    """
    if use_separate_proj_weight:
        weights: Any = (q_proj_weight, k_proj_weight, v_proj_weight)
    else:
        weights = in_proj_weight
    return attend(
        (query, key, value),
        (embed_dim_to_check, num_heads),
        weights,
        in_proj_bias,
        (bias_k, bias_v, add_zero_attn),
        dropout_p if training else 0.0,
        (out_proj_weight, out_proj_bias),
        (key_padding_mask, attn_mask, is_causal),
        (need_weights, average_attn_weights),
        False,
        (static_k, static_v),
    )


def attend(
    inputs: tuple[Tensor, Tensor, Tensor],
    sizes: tuple[int, int],
    in_weights: Any,
    in_bias: Tensor | None,
    appended: tuple[Tensor | None, Tensor | None, bool],
    dropout_p: float,
    last_map: tuple[Tensor, Tensor | None],
    masks: tuple[Tensor | None, Tensor | None, bool],
    wanted: tuple[bool, bool],
    batch_first: bool,
    static: tuple[Tensor | None, Tensor | None] = (None, None),
) -> tuple[Tensor, Tensor | None]:
    """Compute :func:`multi_head_attention_forward`. If `batch_first` is set, sequences have the shape (N, L, E)."""
    name = "multi_head_attention_forward"
    width, heads = sizes
    _check_inputs(name, inputs, width, heads)
    key_padding_mask, attn_mask, is_causal = masks
    if is_causal and attn_mask is None:
        raise RuntimeError(
            f"{name}(is_causal): requires attn_mask\nhint: pass the causal mask as attn_mask, too"
        )
    batched = inputs[0].dim() == 3
    if not batched:
        inputs, batch_first = _unsqueezed(inputs), True
        if key_padding_mask is not None:
            key_padding_mask = key_padding_mask.unsqueeze(0)
    q, k, v = _project(inputs, in_weights, in_bias)
    batch = q.shape[0 if batch_first else 1]
    bias_k, bias_v, add_zero = appended
    extra = 0
    if bias_k is not None and bias_v is not None:
        if static[0] is not None or static[1] is not None:
            raise AssertionError(f"{name}(bias_k, bias_v): cannot be combined with static_k or static_v")
        k, v = (_append(t, b, batch, batch_first) for t, b in ((k, bias_k), (v, bias_v)))
        extra += 1
    q, k, v = (_split_heads(t, heads, batch_first) for t in (q, k, v))
    if static[0] is not None:
        k = _given(name, "static_k", static[0], k)
    if static[1] is not None:
        v = _given(name, "static_v", static[1], v)
    if add_zero:
        k, v = (
            core.cat([t, core.zeros((batch, heads, 1, t.shape[-1]), dtype=t.dtype, device=t.device)], 2)
            for t in (k, v)
        )
        extra += 1
    need_weights, average = wanted
    fused_causal = is_causal and key_padding_mask is None and not need_weights and not extra
    mask = None
    if not fused_causal and (attn_mask is not None or key_padding_mask is not None):
        mask = _merge_masks(name, attn_mask, key_padding_mask, q, k.shape[2], extra)
    shares = None
    if need_weights:
        scores = (q * (1.0 / math.sqrt(width // heads))) @ k.transpose(-2, -1)
        shares = softmax(scores if mask is None else scores + mask, -1)
        if dropout_p > 0.0:
            shares = dropout(shares, dropout_p)
        result = shares @ v
    else:
        result = scaled_dot_product_attention(q, k, v, mask, dropout_p, fused_causal)
    if batch_first and batched and core.random_stream() == "torch":
        # The result has the memory order of (L, N, E), as in PyTorch, so that a dropout of it draws the same mask.
        # This order takes more time, so it is only used with PyTorch's random stream.
        result = _linear(result.permute(2, 0, 1, 3).flatten(2), *last_map).transpose(0, 1)
    else:
        joined = result.transpose(1, 2) if batch_first else result.permute(2, 0, 1, 3)
        result = _linear(joined.flatten(2), *last_map)
    if shares is not None and average:
        shares = shares.mean(1)
    if not batched:
        return result.squeeze(0), None if shares is None else shares.squeeze(0)
    return result, shares


def _check_inputs(name: str, inputs: tuple[Tensor, Tensor, Tensor], width: int, heads: int) -> None:
    query, key, value = inputs
    if query.dim() not in (2, 3) or key.dim() != query.dim() or value.dim() != query.dim():
        raise AssertionError(
            f"{name}(query, key, value): got {query.dim()}, {key.dim()} and {value.dim()} dimensions, "
            "need 3, or 2 without a batch"
        )
    if query.shape[-1] != width:
        raise AssertionError(f"{name}(query): got a last dimension of size {query.shape[-1]}, needs {width}")
    if width % heads:
        raise AssertionError(f"{name}(num_heads): {width} cannot be split into {heads} equal heads")
    if key.shape[:-1] != value.shape[:-1]:
        raise AssertionError(
            f"{name}(key, value): got shapes {tuple(key.shape)} and {tuple(value.shape)}, "
            "needs the same length and batch size"
        )


def _unsqueezed(inputs: tuple[Tensor, Tensor, Tensor]) -> tuple[Tensor, Tensor, Tensor]:
    # If two inputs are the same object, return the same object for both: self-attention is detected by identity.
    query, key, value = inputs
    q = query.unsqueeze(0)
    k = q if key is query else key.unsqueeze(0)
    v = k if value is key else value.unsqueeze(0)
    return q, k, v


def _project(inputs: tuple[Tensor, Tensor, Tensor], weights: Any, bias: Tensor | None) -> Any:
    query, key, value = inputs
    if not isinstance(weights, tuple):
        if query is key and key is value:  # compute queries, keys and values with one matrix product
            return _linear(query, weights, bias).chunk(3, -1)
        weights = weights.chunk(3)
    biases = (None, None, None) if bias is None else bias.chunk(3)
    return tuple(_linear(x, w, b) for x, w, b in zip(inputs, weights, biases, strict=True))


def _append(tensor: Tensor, bias: Tensor, batch: int, batch_first: bool) -> Tensor:
    shape = (batch, 1, -1) if batch_first else (1, batch, -1)
    return core.cat([tensor, bias.expand(shape)], 1 if batch_first else 0)


def _split_heads(tensor: Tensor, heads: int, batch_first: bool) -> Tensor:
    first, second, width = tensor.shape
    parts = tensor.reshape(first, second, heads, width // heads)
    return parts.transpose(1, 2) if batch_first else parts.permute(1, 2, 0, 3)


def _given(name: str, argument: str, static: Tensor, like: Tensor) -> Tensor:
    batch, heads, _, depth = like.shape
    if static.dim() != 3 or static.shape[0] != batch * heads or static.shape[2] != depth:
        raise AssertionError(
            f"{name}({argument}): got shape {tuple(static.shape)}, needs ({batch * heads}, length, {depth})"
        )
    return static.reshape(batch, heads, static.shape[1], depth)


def _merge_masks(
    name: str, attn_mask: Tensor | None, padding: Tensor | None, q: Tensor, sources: int, extra: int
) -> Tensor:
    """Merge both masks into one mask, which is added to the scores and broadcasts to (N, heads, L, S).

    The last `extra` keys are not masked.
    """
    batch, heads, targets, _ = q.shape
    own = sources - extra
    merged = None
    if attn_mask is not None:
        allowed: tuple[tuple[int, ...], ...] = ((targets, own), (batch * heads, targets, own))
        if tuple(attn_mask.shape) not in allowed:
            raise RuntimeError(
                f"{name}(attn_mask): got shape {tuple(attn_mask.shape)}, needs {allowed[0]} or {allowed[1]}"
            )
        merged = _additive(name, "attn_mask", attn_mask, q)
        if attn_mask.dim() == 3:
            merged = merged.reshape(batch, heads, targets, own)
    if padding is not None:
        if tuple(padding.shape) != (batch, own):
            raise AssertionError(
                f"{name}(key_padding_mask): got shape {tuple(padding.shape)}, needs {(batch, own)}"
            )
        ignored = _additive(name, "key_padding_mask", padding, q).reshape(batch, 1, 1, own)
        merged = ignored if merged is None else merged + ignored
    assert merged is not None
    return _constant_pad(merged, [0, extra], 0.0) if extra else merged


def _additive(name: str, argument: str, mask: Tensor, like: Tensor) -> Tensor:
    if mask.dtype == core.bool:
        return core.zeros(mask.shape, dtype=like.dtype, device=like.device).masked_fill(mask, -math.inf)
    if not mask.is_floating_point():
        raise AssertionError(f"{name}({argument}): got dtype {mask.dtype}, needs bool or a floating dtype")
    return mask.to(like.dtype)
