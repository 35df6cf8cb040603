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
        if amounts[i] or amounts[i + 1]:
            input = _extended(input, input.dim() - 1 - i // 2, amounts[i], amounts[i + 1], mode)
    return input


def _extended(input: Tensor, dim: int, before: int, after: int, mode: str) -> Tensor:
    """`input` between what it takes from itself, along one dimension."""
    size = input.shape[dim]
    most = {"reflect": size - 1, "circular": size}.get(mode)
    if before < 0 or after < 0 or size == 0 or (most is not None and max(before, after) > most):
        raise RuntimeError(
            f"pad(pad): amounts {before} and {after} for dimension {dim} of size {size} in mode {mode!r}, "
            f"needs amounts from 0{'' if most is None else f' to {most}'}"
        )

    def edge(position: int, amount: int) -> Tensor:
        return input.narrow(dim, position, 1).expand(*input.shape[:dim], amount, *input.shape[dim + 1 :])

    if mode == "replicate":
        parts = [edge(0, before), input, edge(size - 1, after)]
    elif mode == "circular":
        parts = [input.narrow(dim, size - before, before), input, input.narrow(dim, 0, after)]
    else:
        mirrored = (
            input.narrow(dim, 1, before).flip(dim),
            input.narrow(dim, size - 1 - after, after).flip(dim),
        )
        parts = [mirrored[0], input, mirrored[1]]
    return core.cat([part for part in parts if part.shape[dim]], dim)
