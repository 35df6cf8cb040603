"""Layers that change only the shape."""

from __future__ import annotations

from collections.abc import Sequence

from rushlight_core import Tensor

from ..module import Module


class Flatten(Module):
    """A layer that merges the dimensions from `start_dim` to `end_dim` into one.

    Args:
        start_dim: the first dimension to merge.
        end_dim: the last dimension to merge.

    Shape:
        - Input: (*, S_start, ..., S_end, *).
        - Output: (*, S_start · ... · S_end, *).

    Example:
        >>> nn.Flatten()(torch.randn(32, 1, 5, 5)).shape
        torch.Size([32, 25])
        >>> nn.Flatten(0, 2)(torch.randn(32, 1, 5, 5)).shape
        torch.Size([160, 5])
    """

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: Tensor) -> Tensor:
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """A layer that splits a dimension into several.

    Args:
        dim: the dimension to split.
        unflattened_size: the new sizes of the dimension. One size may be -1; it is computed from the other sizes.

    Shape:
        - Input: (*, S, *) with S in dimension `dim`.
        - Output: (*, *unflattened_size, *).

    Raises:
        TypeError: `dim` or a size is not an int.

    Example:
        >>> nn.Unflatten(1, (2, 5, 5))(torch.randn(3, 50)).shape
        torch.Size([3, 2, 5, 5])
    """

    def __init__(self, dim: int, unflattened_size: Sequence[int]) -> None:
        super().__init__()
        if not isinstance(dim, int):
            raise TypeError(f"Unflatten(dim): got {type(dim).__name__}, needs an int")
        if not all(isinstance(size, int) for size in unflattened_size):
            raise TypeError(f"Unflatten(unflattened_size): got {unflattened_size!r}, needs ints")
        self.dim = dim
        self.unflattened_size: tuple[int, ...] = tuple(unflattened_size)

    def forward(self, input: Tensor) -> Tensor:
        return input.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"
