"""Functions that compute with the shapes of several tensors."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from . import _C
from ._C import Size, Tensor, overridable


def broadcast_shapes(*shapes: int | Sequence[int]) -> Size:
    """Return the shape to which tensors of the given shapes broadcast. An int n is treated as the shape (n,).

    Raises:
        RuntimeError: the shapes do not broadcast, or a size is negative.

    Example:
        >>> torch.broadcast_shapes((2, 1), (3,))
        torch.Size([2, 3])
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
                    f"dimension {len(result) - i} has sizes {result[-i]} and {sizes[-i]}"
                )
            if result[-i] == 1:
                result[-i] = sizes[-i]
    return Size(result)


@overridable
def meshgrid(*tensors: Tensor | Sequence[Tensor], indexing: str | None = None) -> tuple[Tensor, ...]:
    """Return the coordinates of a grid. Output i is a view that repeats vector i along all other dimensions.

    Args:
        tensors: vectors, one by one or in a list.
        indexing: "ij": vector i varies along dimension i. "xy": the first two dimensions are swapped. PyTorch
            plans to change the default from "ij" to "xy", so a call without `indexing` issues a warning.

    Raises:
        RuntimeError: a tensor has more than one dimension, or the dtypes differ.

    Shape:
        - Inputs: (n_1), ..., (n_k). Outputs: k tensors (n_1, ..., n_k), or (n_2, n_1, n_3, ..., n_k)
          with `indexing` "xy".

    Example:
        >>> torch.meshgrid(torch.tensor([1, 2]), torch.tensor([3, 4]), indexing="ij")
        (tensor([[1, 1],
                [2, 2]]), tensor([[3, 4],
                [3, 4]]))
    """
    if indexing is None:
        warnings.warn(
            "meshgrid(indexing): pass indexing='ij', which is the default, or indexing='xy'", stacklevel=2
        )
    vectors = tensors[0] if len(tensors) == 1 and not isinstance(tensors[0], Tensor) else tensors
    return _C.meshgrid(vectors, indexing=indexing)  # type: ignore[arg-type]
