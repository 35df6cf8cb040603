"""Create tensors of random values of any dtype and shape."""

from __future__ import annotations

import math
import random
from typing import Any

import rushlight_core as core
from rushlight_core import Tensor

_RANGES = {"bool": (0, 2), "uint8": (0, 10)}


def make_tensor(
    *shape: int | tuple[int, ...],
    dtype: Any,
    device: Any = "cpu",
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    seed: int | None = None,
) -> Tensor:
    """Return a tensor of random values from [low, high).

    The default range is [-9, 9) for floating-point dtypes, [-9, 10) for integers and [0, 10) for uint8. Bools are drawn from
    both values.

    Args:
        shape: the sizes, as separate arguments or as a tuple.
        dtype: dtype of the result.
        device: device of the result.
        low: the lower limit.
        high: the upper limit, which is excluded.
        requires_grad: whether the result requires grad.
        noncontiguous: whether there are gaps between the elements.
        exclude_zero: whether zeros are replaced by ones.
        seed: the seed of the random numbers; None for different values at each call.

    Shape:
        - Output: `shape`.

    Raises:
        ValueError: `low` is not less than `high`.

    Example:
        >>> make_tensor(2, 3, dtype=torch.int64, low=0, high=5).shape
        torch.Size([2, 3])
        >>> x, y = (make_tensor(2, dtype=torch.float32, seed=0) for _ in range(2))
        >>> torch.equal(x, y)
        True
    """
    sizes: tuple[Any, ...] = shape
    if len(shape) == 1 and isinstance(shape[0], (tuple, list)):
        sizes = tuple(shape[0])
    source = random.Random(seed)
    name = str(dtype).rsplit(".", 1)[-1]
    floating = dtype.is_floating_point
    least, most = _RANGES.get(name, (-9, 9 if floating else 10))
    first, last = least if low is None else low, most if high is None else high
    if not first < last:
        raise ValueError(f"make_tensor(low, high): low must be less than high, got {first} and {last}")

    def value() -> float | int:
        drawn = (
            source.uniform(first, last) if floating else source.randrange(math.ceil(first), math.ceil(last))
        )
        return 1 if exclude_zero and drawn == 0 else drawn

    count = math.prod(sizes)
    values = [value() for _ in range(count)]
    if noncontiguous and count > 1:
        spread = [v for v in values for _ in range(2)]
        made = core.tensor(spread, dtype=dtype, device=device).as_strided(
            sizes, tuple(2 * math.prod(sizes[d + 1 :]) for d in range(len(sizes)))
        )
    else:
        made = core.tensor(values, dtype=dtype, device=device).view(sizes)
    return made.requires_grad_() if requires_grad else made
