"""Shapes without tensors."""

from __future__ import annotations

from collections.abc import Sequence

from ._C import Size


def broadcast_shapes(*shapes: int | Sequence[int]) -> Size:
    """The shape that tensors of these shapes broadcast to; an int stands for a vector's.

    Raises:
        RuntimeError: the shapes do not broadcast, or have a negative size.
    """
    result: list[int] = []
    for shape in shapes:
        sizes = (shape,) if isinstance(shape, int) else tuple(shape)
        if any(size < 0 for size in sizes):
            raise RuntimeError(f"broadcast_shapes(shapes): sizes must not be negative, got {sizes}")
        result[:0] = [1] * (len(sizes) - len(result))
        for i in range(1, len(sizes) + 1):
            if sizes[-i] != result[-i] and 1 not in (sizes[-i], result[-i]):
                text = ", ".join(str(s if isinstance(s, int) else tuple(s)) for s in shapes)
                raise RuntimeError(
                    f"broadcast_shapes(shapes): {text} do not broadcast: "
                    f"dimension {len(result) - i} is {result[-i]} against {sizes[-i]}"
                )
            if result[-i] == 1:
                result[-i] = sizes[-i]
    return Size(result)
