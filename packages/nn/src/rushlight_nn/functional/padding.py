"""Padding."""

from __future__ import annotations

from collections.abc import Sequence

from rushlight_core import Tensor
from rushlight_core.overrides import overridable

from .._core import operator

_constant_pad = operator("constant_pad_nd")
_pad = operator("_pad")


@overridable
def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """Pad the last dimensions of a tensor.

    Args:
        input: the tensor.
        pad: number of elements to add at the beginning and at the end of the last dimension, then of the
            second to last dimension, and so on. Negative numbers remove elements: in mode "circular" before
            the padding, and in the other modes after the padding.
        mode: "constant" pads with `value`, "reflect" with the input mirrored at its border element,
            "replicate" with copies of the border element, and "circular" with the elements at the opposite
            end.
        value: the value for mode "constant", 0 by default.

    Shape:
        - Input: (*, n).
        - Output: (*, pad[0] + n + pad[1]), and likewise for the other dimensions that are padded.

    Raises:
        RuntimeError: the length of `pad` is odd, or more than twice the number of dimensions.
        NotImplementedError: the mode is unknown.
        ValueError: `mode` is not "constant", and `value` is neither None nor 0.

    Example:
        >>> F.pad(torch.tensor([1.0, 2.0, 3.0]), (2, 1))
        tensor([0., 0., 1., 2., 3., 0.])
        >>> F.pad(torch.tensor([[1.0, 2.0, 3.0]]), (2, 1), mode="reflect")
        tensor([[3., 2., 1., 2., 3., 2.]])
    """
    padding = [int(count) for count in pad]
    if len(padding) % 2 or len(padding) > 2 * input.dim():
        raise RuntimeError(
            f"pad(pad): got {len(padding)} numbers for {input.dim()} dimensions, needs one pair for each padded dimension"
        )
    if mode == "constant":
        return _constant_pad(input, padding, 0.0 if value is None else value)
    if mode not in ("reflect", "replicate", "circular"):
        raise NotImplementedError(
            f"pad(mode): got {mode!r}, needs 'constant', 'reflect', 'replicate' or 'circular'"
        )
    if value:
        raise ValueError(f"pad(value): mode {mode!r} takes no value, got {value}")
    if mode != "circular":
        _check_sizes(input, padding, mode)
    if all(count >= 0 for count in padding):
        return _pad(input, padding, mode)
    cut, added = [min(count, 0) for count in padding], [max(count, 0) for count in padding]
    if mode == "circular":
        return _pad(_constant_pad(input, cut, 0.0), added, mode)
    return _constant_pad(_pad(input, added, mode), cut, 0.0)


def _check_sizes(input: Tensor, padding: Sequence[int], mode: str) -> None:
    """Raise RuntimeError if a dimension is empty before or after padding in mode "reflect" or "replicate"."""
    padded = len(padding) // 2
    if 0 in input.shape[max(0, input.dim() - padded - 1) :]:
        raise RuntimeError(
            f"pad(input): mode {mode!r} requires elements in every padded dimension and in the dimension before the padded"
            f" dimensions, got shape {tuple(input.shape)}"
        )
    for k in range(padded):
        size = input.shape[-1 - k] + padding[2 * k] + padding[2 * k + 1]
        if size < 1:
            raise RuntimeError(
                f"pad(pad): dimension {input.dim() - 1 - k} of size {input.shape[-1 - k]} would get size {size} in mode"
                f" {mode!r}, needs at least 1"
            )
