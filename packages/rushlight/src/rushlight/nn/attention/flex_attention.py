"""Attention whose scores are changed by a user-defined function: `flex_attention(q, k, v, score_mod, block_mask)`.

The function computes one score, and `vmap` applies it to all scores, which form one tensor (B, H, Q_LEN,
KV_LEN). A mask is also stored as a tensor (B, H, Q_LEN, KV_LEN). A call without `score_mod` that requests no
additional result uses the blocked kernel of `scaled_dot_product_attention`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import rushlight_core as core
from rushlight_autograd.batching import vmap
from rushlight_core import Tensor
from rushlight_nn.functional import scaled_dot_product_attention

__all__ = [
    "AuxOutput",
    "AuxRequest",
    "BlockMask",
    "and_masks",
    "create_block_mask",
    "create_mask",
    "flex_attention",
    "noop_mask",
    "or_masks",
]

MaskMod = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
ScoreMod = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]

_DEFAULT_SPARSE_BLOCK_SIZE = 128


class AuxRequest(NamedTuple):
    """Selection of the results that `flex_attention` returns in addition to its output.

    Attributes:
        lse: whether to return the log-sum-exp of the scores of each query.
        max_scores: whether to return the largest score of each query.

    Example:
        >>> AuxRequest(lse=True)
        AuxRequest(lse=True, max_scores=False)
    """

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """The additional results of `flex_attention`, which an AuxRequest selects.

    Shape:
        - `lse`, `max_scores`: (B, H, Q_LEN), or None.

    Example:
        >>> q = torch.ones(1, 2, 3, 4)
        >>> _, aux = flex_attention(q, q, q, return_aux=AuxRequest(lse=True))
        >>> aux.lse.shape, aux.max_scores
        (torch.Size([1, 2, 3]), None)
    """

    lse: Tensor | None = None
    max_scores: Tensor | None = None


def noop_mask(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    """Mask function that lets every query attend to every key.

    Shape:
        - Arguments: scalar tensors, the indices of the batch, the head, the query and the key.
        - Output: a scalar tensor, True.

    Example:
        >>> create_mask(noop_mask, None, None, 2, 3).sum()
        tensor(6)
    """
    return batch.new_ones((), dtype=core.bool)


def and_masks(*mask_mods: MaskMod) -> MaskMod:
    """Return the mask function that is True where all of `mask_mods` are True.

    Shape:
        - Arguments and results of the functions: scalar tensors.

    Example:
        >>> mask = and_masks(lambda b, h, q, kv: q >= kv, lambda b, h, q, kv: q - kv < 2)
        >>> create_mask(mask, None, None, 3, 3).int()[0, 0]
        tensor([[1, 0, 0],
                [1, 1, 0],
                [0, 1, 1]], dtype=torch.int32)
    """

    def mask(b: Tensor, h: Tensor, q: Tensor, kv: Tensor) -> Tensor:
        result = noop_mask(b, h, q, kv)
        for one in mask_mods:
            result = result & one(b, h, q, kv)
        return result

    return mask


def or_masks(*mask_mods: MaskMod) -> MaskMod:
    """Return the mask function that is True where at least one of `mask_mods` is True.

    Shape:
        - Arguments and results of the functions: scalar tensors.

    Example:
        >>> mask = or_masks(lambda b, h, q, kv: q == kv, lambda b, h, q, kv: kv == 0)
        >>> create_mask(mask, None, None, 3, 3).int()[0, 0]
        tensor([[1, 0, 0],
                [1, 1, 0],
                [1, 0, 1]], dtype=torch.int32)
    """

    def mask(b: Tensor, h: Tensor, q: Tensor, kv: Tensor) -> Tensor:
        result = b.new_zeros((), dtype=core.bool)
        for one in mask_mods:
            result = result | one(b, h, q, kv)
        return result

    return mask


def _for_all(function: Callable[..., Tensor], scores: int, *sizes: int, device: Any) -> Callable[..., Tensor]:
    """Return a function that computes the results of `function` at all positions of a tensor with the given sizes."""
    positions = [core.arange(size, device=device) for size in sizes]
    first = (0,) * scores
    for at in reversed(range(len(sizes))):
        function = vmap(function, in_dims=(*first, *(0 if i == at else None for i in range(len(sizes)))))
    return lambda *args: function(*args, *positions)


def create_mask(
    mod_fn: MaskMod, B: int | None, H: int | None, Q_LEN: int, KV_LEN: int, device: Any = None
) -> Tensor:
    """Return the values of `mod_fn(b, h, q, kv)` for all indices, as a boolean tensor.

    Args:
        mod_fn: a function of the indices of the batch, the head, the query and the key.
        B: the batch size; None if all examples have the same mask.
        H: the number of heads; None if all heads have the same mask.
        Q_LEN, KV_LEN: numbers of queries and keys.
        device: the device of the result.

    Shape:
        - Output: (B or 1, H or 1, Q_LEN, KV_LEN).

    Example:
        >>> create_mask(lambda b, h, q, kv: q >= kv, None, None, 2, 2)
        tensor([[[[ True, False],
                  [ True,  True]]]])
    """
    return _for_all(mod_fn, 0, B or 1, H or 1, Q_LEN, KV_LEN, device=device)()


class BlockMask:
    """A mask of the keys to which each query attends. Use `create_block_mask` to create a mask.

    Attributes:
        mask_mod: the mask function.
        seq_lengths: numbers of queries and keys.
        BLOCK_SIZE: the block size for `to_dense` and `sparsity`; it does not affect `flex_attention`.

    Shape:
        - `shape` is (B, H, Q_LEN, KV_LEN). B is 1 if all examples have the same mask, and H is 1 if all heads have the same
          mask.

    Example:
        >>> mask = create_block_mask(lambda b, h, q, kv: q >= kv, None, None, 256, 256)
        >>> mask
        BlockMask(shape=(1, 1, 256, 256), sparsity=25.00%)
    """

    def __init__(self, mask: Tensor, mask_mod: MaskMod, block_size: tuple[int, int]) -> None:
        self._mask = mask
        self.mask_mod = mask_mod
        self.BLOCK_SIZE = block_size
        self.seq_lengths: tuple[int, int] = (mask.shape[-2], mask.shape[-1])

    @property
    def shape(self) -> tuple[int, ...]:
        """(B, H, Q_LEN, KV_LEN). B is 1 if all examples have the same mask, and H is 1 if all heads have the same mask."""
        return tuple(self._mask.shape)

    def numel(self) -> int:
        """Return the number of elements of the mask."""
        return self._mask.numel()

    def to_dense(self) -> Tensor:
        """Return a tensor that is 1 for each block with an unmasked element, and 0 for other blocks."""
        padded = self._mask
        for dim, block in zip((-2, -1), self.BLOCK_SIZE, strict=True):
            missing = -padded.shape[dim] % block
            shape = list(padded.shape)
            shape[dim] = missing
            padded = core.cat([padded, padded.new_zeros(shape)], dim).unflatten(dim, (-1, block)).amax(dim)
            if dim == -2:
                continue
        return padded.to(core.int32)

    def sparsity(self) -> float:
        """Return the percentage of blocks that are entirely masked."""
        blocks = self.to_dense()
        return 100.0 * (1.0 - blocks.sum().item() / max(blocks.numel(), 1))

    def to(self, device: Any) -> BlockMask:
        """Return the mask on `device`."""
        return BlockMask(self._mask.to(device), self.mask_mod, self.BLOCK_SIZE)

    def __repr__(self) -> str:
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%)"


def create_block_mask(
    mask_mod: MaskMod,
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: Any = None,
    BLOCK_SIZE: int | tuple[int, int] = _DEFAULT_SPARSE_BLOCK_SIZE,
    _compile: bool = False,
) -> BlockMask:
    """Return the mask for `flex_attention` in which a query attends to a key if `mask_mod(b, h, q, kv)` is True.

    Args:
        mask_mod: a function of the indices of the example b, the head h, the query q and the key kv.
        B: the batch size; None if all examples have the same mask.
        H: the number of heads; None if all heads have the same mask.
        Q_LEN, KV_LEN: numbers of queries and keys.
        device: the device of the mask.
        BLOCK_SIZE: the block size for `BlockMask.to_dense` and `BlockMask.sparsity`.
        _compile: has no effect.

    Shape:
        - The mask: (B or 1, H or 1, Q_LEN, KV_LEN).

    Example:
        >>> causal = create_block_mask(lambda b, h, q, kv: q >= kv, None, None, 4, 4)
        >>> q = torch.ones(1, 2, 4, 8)
        >>> flex_attention(q, q, q, block_mask=causal).shape
        torch.Size([1, 2, 4, 8])
    """
    block = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else tuple(BLOCK_SIZE)
    return BlockMask(create_mask(mask_mod, B, H, Q_LEN, KV_LEN, device), mask_mod, (block[0], block[1]))


def flex_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: ScoreMod | None = None,
    block_mask: BlockMask | None = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    kernel_options: Any = None,
    *,
    return_aux: AuxRequest | None = None,
) -> Any:
    """Compute attention with user-defined functions that change the scores and define the mask.

    Args:
        query, key, value: the tensors.
        score_mod: `score_mod(score, b, h, q, kv)` returns the new score of query q and key kv, before the softmax.
        block_mask: the keys to which each query attends. The result is zero for a query that attends to no key.
        scale: factor of the scores; by default 1 / sqrt(E).
        enable_gqa: whether the number of heads Hq may be a multiple of Hkv, instead of equal to Hkv.
        return_lse: whether to also return the log-sum-exp of the scores of each query.
        kernel_options: has no effect.
        return_aux: the additional results to return.

    Shape:
        - `query`: (B, Hq, Q_LEN, E); `key`: (B, Hkv, KV_LEN, E); `value`: (B, Hkv, KV_LEN, Ev).
        - Output: (B, Hq, Q_LEN, Ev); log-sum-exp: (B, Hq, Q_LEN).

    Raises:
        ValueError: the shapes do not match.

    Example:
        >>> q = torch.randn(1, 2, 3, 4)
        >>> plain = flex_attention(q, q, q)
        >>> torch.allclose(plain, F.scaled_dot_product_attention(q, q, q), atol=1e-6)
        True
        >>> flex_attention(q, q, q, score_mod=lambda score, b, h, i, j: score - (i - j).abs()).shape
        torch.Size([1, 2, 3, 4])
    """
    if query.dim() != 4 or key.dim() != 4 or value.dim() != 4:
        raise ValueError(
            "flex_attention(query, key, value): need 4 dimensions each: (B, H, length, features)"
        )
    if query.shape[1] != key.shape[1]:
        if not enable_gqa or query.shape[1] % key.shape[1]:
            raise ValueError(
                f"flex_attention(query, key): got {query.shape[1]} and {key.shape[1]} heads\n"
                "hint: pass enable_gqa=True if one is a multiple of the other"
            )
        key, value = (t.repeat_interleave(query.shape[1] // key.shape[1], 1) for t in (key, value))
    mask = None
    if block_mask is not None:
        mask = block_mask._mask
        if mask.shape[-2] < query.shape[-2] or mask.shape[-1] < key.shape[-2]:
            raise ValueError(
                f"flex_attention(block_mask): must be for at least {(query.shape[-2], key.shape[-2])} queries and keys, "
                f"got a mask for {block_mask.seq_lengths}"
            )
        mask = mask[..., : query.shape[-2], : key.shape[-2]]
    scale = 1.0 / math.sqrt(query.shape[-1]) if scale is None else scale
    aux = return_aux or AuxRequest()
    if score_mod is None and not return_lse and return_aux is None:
        result = scaled_dot_product_attention(query, key, value, attn_mask=mask, scale=scale)
        return result if mask is None else result.masked_fill(~mask.any(-1, keepdim=True), 0.0)
    scores = (query * scale) @ key.mT
    if score_mod is not None:
        scores = _for_all(score_mod, 1, *scores.shape, device=query.device)(scores)
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    lse = scores.logsumexp(-1)
    weights = (scores - lse.unsqueeze(-1)).exp()
    if mask is not None:
        weights = weights.masked_fill(~mask.any(-1, keepdim=True), 0.0)
    result = weights.to(value.dtype) @ value
    if return_aux is not None:
        return result, AuxOutput(lse if aux.lse else None, scores.amax(-1) if aux.max_scores else None)
    return (result, lse) if return_lse else result
