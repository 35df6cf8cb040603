"""torch.range, which PyTorch deprecates, in a separate file because its name hides Python's `range`."""

from __future__ import annotations

import math
import warnings

from . import _C
from ._C import Tensor

TYPE_CHECKING = False  # typing takes longer to import than this package
if TYPE_CHECKING:
    from typing import Any


def range(
    start: float,
    end: float,
    step: float = 1,
    *,
    out: Tensor | None = None,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return the numbers `start`, `start + step`, `start + 2 * step` and so on, up to and including `end`.

    Deprecated, as in PyTorch: use `arange`, which excludes the end.

    Args:
        start: the first number.
        end: the limit of the numbers, which is included if a whole number of steps leads to it.
        step: the difference between neighbours.
        out, dtype, device, requires_grad: see `arange`.

    Shape:
        - Output: (floor((end - start) / step) + 1).

    Example:
        >>> torch.range(1, 4)
        tensor([1., 2., 3., 4.])
    """
    warnings.warn(
        "range() is deprecated: use arange(), which excludes the end as Python's range does", stacklevel=2
    )
    if out is None:
        dtype = _C.get_default_dtype() if dtype is None else dtype
    held = (_C.empty(0, dtype=dtype) if out is None else out).dtype  # `dtype` may be Python's int or float
    if not (held.is_floating_point or held.is_complex) and step and step == int(step):
        # For an integer dtype, the fractions of the ends are dropped before the numbers are counted.
        start, end, step = int(start), int(end), int(step)
        beyond: float = start + ((end - start) // step + 1) * step
    else:
        # The end for `arange` is half a step beyond the last number.
        beyond = start + (math.floor((end - start) / step) + 0.5) * step if step else end
    if out is not None:
        return _C.arange(start, beyond, step, out=out)
    return _C.arange(start, beyond, step, dtype=dtype, device=device, requires_grad=requires_grad)
