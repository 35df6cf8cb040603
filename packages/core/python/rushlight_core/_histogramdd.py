"""Histograms of points in several dimensions."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence
from typing import Any

from . import _C
from ._C import Tensor, overridable
from ._histogram import _edges_of

_Result = namedtuple("histogramdd", ["hist", "bin_edges"])  # type: ignore[name-match]


@overridable
def histogramdd(
    input: Tensor,
    bins: int | Sequence[int] | Sequence[Tensor],
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> Any:
    """Count the points in each cell of a grid, and return a named tuple (hist, bin_edges).

    A cell includes its lower edge along each dimension; the last cell along a dimension also includes its
    upper edge. Points outside of the grid are not counted.

    Args:
        input: points (..., D), float32 or float64.
        bins: the number of bins of equal width along every dimension, or a list with one entry for each dimension. The
            entries are numbers of bins, or tensors of ascending bin edges.
        range: min and max of the bins along each dimension, as one list of 2 · D numbers; by default the range of the
            points.
        weight: the weight of each point, (...).
        density: whether to divide the value of each cell by the total of all cells and by the volume of the cell.

    Returns: `hist`, with one element for each cell of the grid, and `bin_edges`, with one tensor for each dimension.

    Raises:
        RuntimeError: `bins` or `range` does not match the number of dimensions, or `weight` does not match the number of
            points.
        NotImplementedError: the dtype is neither float32 nor float64.

    Shape:
        - Points: (*, D). `hist`: (bins_1, ..., bins_D); `bin_edges`: D tensors (bins_i + 1).

    Example:
        >>> torch.histogramdd(torch.tensor([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]), bins=[2, 2]).hist
        tensor([[0., 1.],
                [1., 1.]])
    """
    if not isinstance(input, Tensor):
        raise TypeError(f"histogramdd(input): must be a Tensor, not {type(input).__name__}")
    if input.dim() < 2:
        raise RuntimeError(f"histogramdd(input): must have a shape (..., D), got {tuple(input.shape)}")
    if input.dtype not in (_C.float32, _C.float64):
        raise NotImplementedError(f"histogramdd(input): needs float32 or float64, got {input.dtype}")
    dims = input.shape[-1]
    each: list[Any] = [bins] * dims if isinstance(bins, int) else list(bins)
    if len(each) != dims:
        raise RuntimeError(
            f"histogramdd(bins): got {len(each)} entries, needs one for each of {dims} dimensions"
        )
    if range is not None and len(range) != 2 * dims:
        raise RuntimeError(f"histogramdd(range): got {len(range)} numbers, needs {2 * dims}")
    if weight is not None and (weight.shape != input.shape[:-1] or weight.dtype != input.dtype):
        raise RuntimeError(
            f"histogramdd(weight): needs shape {tuple(input.shape[:-1])} and dtype {input.dtype}, "
            f"got {tuple(weight.shape)} and {weight.dtype}"
        )
    points = input.detach().reshape(-1, dims)
    ends, flat_indices, inside = (
        [],
        _C.zeros(len(points), dtype=_C.int64, device=input.device),
        _C.ones(len(points), dtype=_C.bool, device=input.device),
    )
    for d, part in enumerate(each):
        column = points[:, d].contiguous()
        span = None if range is None else range[2 * d : 2 * d + 2]
        edges = _edges_of("histogramdd", column, part, span)
        count = len(edges) - 1
        index = _C.bucketize(column, edges, right=True) - 1
        index = _C.where(column == edges[-1], count - 1, index)
        inside = inside & (index >= 0) & (index < count)
        flat_indices = flat_indices * count + index
        ends.append(edges)
    counts = [len(edges) - 1 for edges in ends]
    total = 1
    for count in counts:
        total *= count
    heights = _C.ones_like(points[:, 0]) if weight is None else weight.detach().reshape(-1)
    # Points outside of the grid add 0 to the first cell, so that no shape depends on values.
    hist = _C.zeros(total, dtype=input.dtype, device=input.device)
    hist = hist.index_add(0, _C.where(inside, flat_indices, 0), _C.where(inside, heights, 0)).reshape(counts)
    if density:
        hist = hist / hist.sum()
        for d, edges in enumerate(ends):
            hist = hist / edges.diff().reshape([-1 if i == d else 1 for i, _ in enumerate(ends)])
    return _Result(hist, tuple(ends))
