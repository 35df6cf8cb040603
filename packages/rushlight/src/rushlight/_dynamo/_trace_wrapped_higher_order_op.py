"""A block in which tensors may be indices of batched tensors; they may here anyway."""

from __future__ import annotations

from typing import Self

__all__ = ["TransformGetItemToIndex"]


class TransformGetItemToIndex:
    """A block; nothing is done."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        pass
