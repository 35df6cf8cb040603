"""Padding."""

from __future__ import annotations

from collections.abc import Sequence

from rushlight_core import Tensor

from .._core import core, operator

_constant_pad = operator("constant_pad_nd")


def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """Extend `input` at its edges.

    Args:
        input: the tensor.
        pad: how much before and after in the last dimension, then in the one before it, and so on; negative
            amounts cut off ("constant" only).
        mode: "constant" fills with `value`, "reflect" mirrors at the edge element, "replicate" repeats it and
            "circular" takes from the other end.
        value: what "constant" fills with, 0 by default.
    """
    amounts = [int(amount) for amount in pad]
    if len(amounts) % 2 or len(amounts) > 2 * input.dim():
        raise RuntimeError(
            f"pad(pad): got {len(amounts)} amounts for {input.dim()} dimensions, needs pairs, one a dimension"
        )
    if mode == "constant":
        return _constant_pad(input, amounts, 0.0 if value is None else value)
    if mode not in ("reflect", "replicate", "circular"):
        raise NotImplementedError(
            f"pad(mode): got {mode!r}, needs 'constant', 'reflect', 'replicate' or 'circular'"
        )
    if value:
        raise ValueError(f"pad(value): mode {mode!r} takes no value, got {value}")
    for i in range(0, len(amounts), 2):
        dim = input.dim() - 1 - i // 2
        if amounts[i] or amounts[i + 1]:
            input = input.index_select(dim, _source(input, dim, amounts[i], amounts[i + 1], mode))
    return input


def _source(input: Tensor, dim: int, before: int, after: int, mode: str) -> Tensor:
    """Where each element of the padded dimension comes from."""
    size = input.shape[dim]
    most = {"reflect": size - 1, "circular": size}.get(mode)
    if before < 0 or after < 0 or size == 0 or (most is not None and max(before, after) > most):
        raise RuntimeError(
            f"pad(pad): amounts {before} and {after} for dimension {dim} of size {size} in mode {mode!r}, "
            f"needs amounts from 0{'' if most is None else f' to {most}'}"
        )
    positions = range(-before, size + after)
    if mode == "replicate":
        indices = [min(max(i, 0), size - 1) for i in positions]
    elif mode == "circular":
        indices = [i % size for i in positions]
    else:
        indices = [-i if i < 0 else i if i < size else 2 * (size - 1) - i for i in positions]
    return core.tensor(indices, dtype=core.int64, device=input.device)
