"""Gradients of sampled values, estimated by finite differences."""

from __future__ import annotations

from . import _C
from ._C import Tensor, overridable

TYPE_CHECKING = False  # typing takes longer to import than this package
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


@overridable
def gradient(
    input: Tensor, *, spacing: Any = None, dim: int | Sequence[int] | None = None, edge_order: int = 1
) -> tuple[Tensor, ...]:
    """Estimate the gradient of a sampled function, and return the partial derivative along each dimension.

    The derivative at an inner sample is computed from both neighbours and is accurate to second order, even
    if the distances are unequal. The derivative at the first or last sample is computed from neighbours on
    one side, and is accurate to the order `edge_order`.

    Args:
        input: samples of any dtype except uint8 and bool.
        spacing: the distance between samples (one number, or a number for each dimension in `dim`), or the
            coordinates of the samples (a 1-d tensor for each dimension in `dim`). By default, the distance is
            1.
        dim: the dimensions along which to differentiate; by default all dimensions.
        edge_order: the order of accuracy at the first and last samples, 1 or 2.

    Raises:
        RuntimeError: `spacing` or `edge_order` is not valid, a dimension is listed twice, or a dimension has fewer than
            `edge_order` + 1 samples.
        IndexError: a dimension in `dim` is out of range.

    Source: B. Fornberg, "Generation of finite difference formulas on arbitrarily spaced grids", 1988.

    Shape:
        - Input: (*). Outputs: (*), one for each dimension in `dim`.

    Example:
        >>> torch.gradient(torch.tensor([1.0, 4.0, 9.0, 16.0]))
        (tensor([3., 4., 6., 7.]),)
    """
    if not isinstance(input, Tensor) or isinstance(spacing, Tensor):
        raise TypeError(
            "gradient(input, spacing): input must be a Tensor, and spacing a number or a sequence, got "
            f"{type(input).__name__} and {type(spacing).__name__}\nhint: pass coordinates as a tuple of tensors"
        )
    if input.dtype in (_C.uint8, _C.bool):
        raise RuntimeError(f"gradient(input): not defined for {input.dtype}")
    if edge_order not in (1, 2):
        raise RuntimeError(f"gradient(edge_order): must be 1 or 2, got {edge_order}")
    dims = _dims(input, dim)
    spacings = list(spacing) if isinstance(spacing, (tuple, list)) else [spacing] * len(dims)
    if len(spacings) != len(dims):
        raise RuntimeError(
            f"gradient(spacing): needs a number or tensor for each of {len(dims)} dimensions, got {len(spacings)}"
        )
    spacings = [1 if by is None else by for by in spacings]
    values = input if input.is_floating_point() or input.is_complex() else input.to(_C.get_default_dtype())
    return tuple(_along(values, d, by, edge_order) for d, by in zip(dims, spacings, strict=True))


def _dims(input: Tensor, dim: Any) -> list[int]:
    if dim is None:
        return list(range(input.dim()))
    dims = []
    for d in (dim,) if isinstance(dim, int) else dim:
        if not -input.dim() <= d < input.dim():
            raise IndexError(f"gradient(dim): {d} is out of range for {input.dim()} dimensions")
        dims.append(d % input.dim())
    if len(set(dims)) < len(dims):
        raise RuntimeError(f"gradient(dim): a dimension is listed twice in {tuple(dims)}")
    return dims


def _along(values: Tensor, dim: int, spacing: Any, edge_order: int) -> Tensor:
    n = values.shape[dim]
    if n < edge_order + 1:
        raise RuntimeError(
            f"gradient(input): edge_order={edge_order} needs {edge_order + 1} samples, but dimension {dim} has {n}"
        )
    if isinstance(spacing, Tensor):
        if spacing.dim() != 1 or len(spacing) != n:
            raise RuntimeError(
                f"gradient(spacing): dimension {dim} needs {n} coordinates, got shape {tuple(spacing.shape)}"
            )
        steps = (spacing[1:] - spacing[:-1]).view(-1, *[1] * (values.dim() - dim - 1))
        steps = steps if steps.is_floating_point() or steps.is_complex() else steps.to(values.dtype)
    else:
        distance = spacing if isinstance(spacing, complex) else float(spacing)
        shape = (n - 1, *[1] * (values.dim() - dim - 1))
        steps = _C.full(shape, distance, dtype=_C.result_type(values, distance))

    def step(i: int, count: int = 1) -> Tensor:
        return steps.narrow(0, i % (n - 1), count)

    slopes = values.diff(dim=dim) / steps  # slopes of the lines between neighbours
    first, last = slopes.narrow(dim, 0, 1), slopes.narrow(dim, n - 2, 1)
    if edge_order == 2:
        second, earlier = slopes.narrow(dim, 1, 1), slopes.narrow(dim, n - 3, 1)
        first = first + (first - second) * (step(0) / (step(0) + step(1)))
        last = last + (last - earlier) * (step(-1) / (step(-1) + step(-2)))
    if n == 2:
        return _C.cat([first, last], dim)
    left, right = steps.narrow(0, 0, n - 2), steps.narrow(0, 1, n - 2)
    # The weight of each neighbouring slope is the length of the interval on the other side.
    inner = (slopes.narrow(dim, 0, n - 2) * right + slopes.narrow(dim, 1, n - 2) * left) / (left + right)
    return _C.cat([first, inner, last], dim)
