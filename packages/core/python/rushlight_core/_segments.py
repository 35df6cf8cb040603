"""Reductions of segments."""

from __future__ import annotations

from math import prod
from typing import Any

from . import _C
from ._C import Tensor, overridable

_STARTS = {"sum": 0.0, "mean": 0.0, "max": -float("inf"), "min": float("inf"), "prod": 1.0}


@overridable
def segment_reduce(
    data: Tensor,
    reduce: str,
    *,
    lengths: Tensor | None = None,
    indices: Tensor | None = None,
    offsets: Tensor | None = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: Any = None,
) -> Tensor:
    """Reduce consecutive segments of `data` along `axis`.

    Args:
        data: the tensor, of a floating-point dtype, (..., n, ...).
        reduce: "sum", "mean", "max", "min" or "prod".
        lengths: the length of each segment, of shape (..., segments), where ... are the dimensions of `data`
            before `axis`.
        indices: not supported, as in PyTorch.
        offsets: the index at which each segment begins, and the end of the last segment, of shape (...,
            segments + 1). Either `lengths` or `offsets` must be given.
        axis: the dimension.
        unsafe: whether to omit the check that `offsets` cover the dimension. The check of `lengths` is never omitted.
        initial: the initial value of each reduction, and the result of an empty segment. Without `initial`,
            the result of an empty segment is 0 for "sum", NaN for "mean", -inf for "max", inf for "min" and 1
            for "prod".

    Returns:
        A tensor whose size along `axis` is the number of segments. Its other sizes are those of `data`.

    Raises:
        RuntimeError: an argument is not valid, or the segments do not cover the dimension.
        NotImplementedError: `indices` is given.
        IndexError: `axis` is out of range.

    Example:
        >>> torch.segment_reduce(torch.tensor([1.0, 2.0, 3.0]), "sum", lengths=torch.tensor([2, 1]))
        tensor([3., 3.])
    """
    name = "segment_reduce"
    if reduce not in _STARTS:
        raise RuntimeError(f"{name}(reduce): must be one of {', '.join(_STARTS)}, got {reduce!r}")
    if indices is not None:
        raise NotImplementedError(f"{name}(): indices based reduction is not supported yet.")
    if not data.dtype.is_floating_point:
        raise RuntimeError(f"{name}(data): must be floating point, got {data.dtype}")
    if (lengths is None) == (offsets is None):
        given_both = "both" if lengths is not None else "neither"
        raise RuntimeError(f"{name}(lengths, offsets): exactly one of them must be given, got {given_both}")
    if not -data.dim() <= axis < data.dim():
        raise IndexError(f"{name}(axis): must be in [{-data.dim()}, {data.dim() - 1}], got {axis}")
    axis %= data.dim()
    given = lengths if lengths is not None else offsets
    assert given is not None
    if given.dtype not in (_C.int64, _C.int32):
        raise RuntimeError(f"{name}(): lengths and offsets must be int64 or int32, got {given.dtype}")
    if given.dim() != axis + 1 or given.shape[:axis] != data.shape[:axis]:
        raise RuntimeError(
            f"{name}(): lengths or offsets must have the shape (*data.shape[:{axis}], n), got shape {tuple(given.shape)}"
            f" for data of shape {tuple(data.shape)}"
        )
    if offsets is not None and offsets.shape[-1] == 0:
        raise RuntimeError(f"{name}(offsets): needs at least one number")
    counts = (given if offsets is None else _C.diff(offsets)).to(_C.int64)
    front, n = tuple(data.shape[:axis]), data.shape[axis]
    if counts.numel() and int(counts.min()) < 0:
        raise RuntimeError(f"{name}(): lengths contains negative value!")
    if not unsafe or offsets is None:
        covered = counts.sum(-1)
        if bool((covered != n).any()) or (offsets is not None and bool((offsets[..., 0] != 0).any())):
            if offsets is not None:
                raise RuntimeError(f"{name}(offsets): must begin with 0 and end with data.size({axis}) = {n}")
            raise RuntimeError(
                f"{name}(lengths): must sum to data.size({axis}) = {n} along the last dimension"
            )
    segments, rest = counts.shape[-1], tuple(data.shape[axis + 1 :])
    total = counts[..., 0].numel() * segments if segments else 0
    if offsets is not None and unsafe:  # the offsets need not begin with 0 or end with n
        rows = prod(front)
        data = _covered(data.reshape(rows, n, *rest), offsets.reshape(rows, segments + 1))
    flat = data.flatten(0, data.dim() - len(rest) - 1)
    segment = _C.repeat_interleave(counts.reshape(-1))
    start = _C.full(
        (total, *rest), _STARTS[reduce] if initial is None else initial, dtype=data.dtype, device=data.device
    )
    if reduce in ("sum", "mean"):
        result = start.index_add(0, segment, flat)
        if reduce == "mean":
            shape = (total, *(1,) * len(rest))
            sizes = counts.reshape(shape).to(data.dtype)
            empty = _C.full_like(start, float("nan")) if initial is None else start
            result = _C.where(sizes > 0, result / sizes.clamp(min=1), empty)
    else:
        word = {"max": "amax", "min": "amin", "prod": "prod"}[reduce]
        result = start.index_reduce(0, segment, flat, word)
    return result.reshape(*front, segments, *rest)


def _covered(data: Tensor, offsets: Tensor) -> Tensor:
    """Return the elements that lie in any segment of their row, concatenated over the rows."""
    rows = [row[int(o[0]) : int(o[-1])] for row, o in zip(data, offsets, strict=True)]
    return _C.cat(rows) if rows else data
