"""Histograms with bins of equal width, or with given bin edges."""

from __future__ import annotations

from . import _C
from ._C import Tensor, overridable

TYPE_CHECKING = False  # typing takes longer to import than this package
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

_result: Any = None  # the class of results; the first call makes it, because importing collections is slow


@overridable
def histogram(
    input: Tensor,
    bins: int | Tensor = 100,
    *,
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
    out: tuple[Tensor, Tensor] | None = None,
) -> Any:
    """Compute a histogram of the elements of `input`, and return a named tuple (hist, bin_edges).

    The last bin includes its upper edge. Elements outside of the range, and NaN, are not counted.

    Args:
        input: float32 or float64, of any shape.
        bins: the number of bins of equal width, or a 1-d tensor of their edges in ascending order, of the dtype of `input`.
        range: (min, max) of the bins of equal width; by default the smallest and the largest element.
        weight: the weight of each element, a tensor of the shape of `input`.
        density: whether to divide the value of each bin by the sum over all bins and by the width of the bin.

    Raises:
        RuntimeError: `bins` or `weight` has a wrong shape or dtype, or the range is not finite.
        NotImplementedError: `input` is neither float32 nor float64, or its device does not support
            histograms.

    Example:
        >>> torch.histogram(torch.tensor([1.0, 2.0, 1.0]), bins=4, range=(0.0, 3.0)).hist
        tensor([0., 2., 1., 0.])
    """
    if not isinstance(input, Tensor) or not isinstance(bins, (int, Tensor)):
        raise TypeError(
            "histogram(input, bins): input must be a Tensor, and bins an int or a Tensor, got "
            f"{type(input).__name__} and {type(bins).__name__}"
        )
    if input.dtype not in (_C.float32, _C.float64):
        raise NotImplementedError(f"histogram(input): needs float32 or float64, got {input.dtype}")
    if weight is not None and (weight.shape != input.shape or weight.dtype != input.dtype):
        raise RuntimeError(
            f"histogram(weight): needs input's shape {tuple(input.shape)} and dtype {input.dtype}, "
            f"got {tuple(weight.shape)} and {weight.dtype}"
        )
    edges = _edges_of("histogram", input, bins, range)
    global _result
    if _result is None:
        from collections import namedtuple

        _result = namedtuple("histogram", ["hist", "bin_edges"])  # type: ignore[name-match]
    result = _result(_C._call_boxed("_histogram", input, edges, weight, bool(density)), edges)
    if out is None:
        return result
    for target, value in zip(out, result, strict=True):
        _C.mul(value, 1, out=target)  # this also resizes the target
    return _result(*out)


def _edges_of(op: str, input: Tensor, bins: int | Tensor, range: Any) -> Tensor:
    """Return the edges of the bins. `op` names the operator in errors."""
    if isinstance(bins, Tensor):
        return _given_edges(op, input, bins, range)
    if bins <= 0:
        raise RuntimeError(f"{op}(bins): must be positive, got {bins}")
    if range is not None:
        low, high = map(float, range)
    elif input.numel() == 0:
        low, high = 0.0, 1.0
    elif input.device.type == "meta":
        raise NotImplementedError(
            f"{op}(input): without range, the edges of the bins depend on values, which a meta tensor does not have\n"
            "hint: pass range=(min, max), or a tensor of edges as bins"
        )
    else:
        low, high = (end.item() for end in _C.aminmax(input.detach()))
    if not (abs(low) < float("inf") and abs(high) < float("inf")):
        raise RuntimeError(f"{op}(range): must be finite, got [{low}, {high}]")
    if low > high:
        raise RuntimeError(f"{op}(range): min must not be larger than max, got {low} and {high}")
    if low == high:
        low, high = low - 0.5, high + 0.5
    return _C.linspace(low, high, bins + 1, dtype=input.dtype, device=input.device)


def _given_edges(op: str, input: Tensor, bins: Tensor, range: Any) -> Tensor:
    if range is not None:
        raise TypeError(f"{op}(range): must not be given if bins is a tensor of bin edges")
    if bins.dim() != 1 or len(bins) < 2 or bins.dtype != input.dtype:
        raise RuntimeError(
            f"{op}(bins): needs at least two edges in one dimension, of input's dtype {input.dtype}, "
            f"got shape {tuple(bins.shape)} of {bins.dtype}"
        )
    return bins.detach().clone()
