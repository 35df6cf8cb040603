"""A context manager without effect: tensors are always permitted as indices of batched tensors."""

from __future__ import annotations

from typing import Self

__all__ = ["TransformGetItemToIndex"]


class TransformGetItemToIndex:
    """Context manager without effect: indexing with a tensor needs no transformation.

    Example:
        >>> with TransformGetItemToIndex():
        ...     print(torch.arange(3)[torch.tensor(2)])
        tensor(2)
    """

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        pass
