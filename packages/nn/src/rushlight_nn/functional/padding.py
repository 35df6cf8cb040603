"""Padding."""

from __future__ import annotations

from collections.abc import Sequence

from rushlight_core import Tensor

from .._core import operator

_constant_pad = operator("constant_pad_nd")
_pad = operator("_pad")


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
    return _pad(input, amounts, mode)
