"""Create tensors of random values of any dtype and shape."""

from __future__ import annotations

import math
from typing import Any

import rushlight_core as core
from rushlight_core import Tensor


def make_tensor(
    *shape: int | tuple[int, ...],
    dtype: Any,
    device: Any = "cpu",
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: Any = None,
    seed: int | None = None,
) -> Tensor:
    """Return a tensor of random values from [low, high).

    The default range is [-9, 10) for signed integers, [0, 10) for unsigned integers, and [-9, 9) for floating-point
    numbers and for the real and imaginary parts of complex numbers. Bools are False or True with equal probability.
    Limits are clamped to the range of the dtype.

    Args:
        shape: the sizes, as separate arguments or as a tuple.
        dtype: dtype of the result.
        device: device of the result.
        low: the lower limit.
        high: the upper limit, which is excluded.
        requires_grad: whether the result requires grad.
        noncontiguous: whether there are gaps between the elements.
        exclude_zero: whether zeros are replaced by ones.
        memory_format: the order of the dimensions in memory, such as `torch.channels_last`.
        seed: the seed of the random numbers; None to draw from the default generator.

    Shape:
        - Output: `shape`.

    Raises:
        ValueError: `low` is not less than `high`, the dtype has no number between them, the dtype cannot require grad, or
            both `noncontiguous` and `memory_format` are given.

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
    inexact = dtype.is_floating_point or dtype.is_complex
    if requires_grad and not inexact:
        raise ValueError(f"make_tensor(requires_grad): a tensor of dtype {dtype} cannot require grad")
    if noncontiguous and memory_format is not None:
        raise ValueError("make_tensor(noncontiguous, memory_format): only one of them can be given")
    first, last = _limits(dtype, low, high)
    spread = noncontiguous and math.prod(sizes) > 1
    drawn = (*sizes[:-1], 2 * sizes[-1]) if spread else sizes
    generator = None if seed is None else core.Generator().manual_seed(seed)
    if inexact:
        wide = core.float64 if dtype in (core.float64, core.complex128) else core.float32
        pairs = (*drawn, 2) if dtype.is_complex else drawn
        # The difference `last - first` is not computed, because it may exceed the largest number of the dtype.
        part = core.rand(pairs, dtype=wide, generator=generator)
        values = first * (1 - part) + last * part
        if not dtype.is_complex:
            # Rounding may reach the upper limit, which is excluded.
            values = values.to(dtype).to(wide)
            values = core.where(values < last, values, first)
        made = (core.view_as_complex(values) if dtype.is_complex else values).to(dtype)
    else:
        made = core.randint(math.ceil(first), math.ceil(last), drawn, generator=generator).to(dtype)
    if exclude_zero:
        made[made == 0] = 1
    if spread:
        made = made[..., ::2]
    made = made.to(device)
    if memory_format is not None:
        made = made.clone(memory_format=memory_format)
    return made.requires_grad_() if requires_grad else made


def _limits(dtype: Any, low: float | None, high: float | None) -> tuple[float, float]:
    """Return the lower limit and the excluded upper limit of the values, restricted to the range of `dtype`."""
    least: float
    most: float
    first: float
    last: float
    if dtype == core.bool:
        least, most, first, last = 0, 2, 0, 2
    elif dtype.is_floating_point or dtype.is_complex:
        range_of = core.finfo(dtype)
        least, most, first, last = range_of.min, range_of.max, -9, 9
    else:
        info = core.iinfo(dtype)
        # The numbers are drawn in int64.
        least, most, first, last = info.min, min(info.max + 1, 2**63 - 1), max(-9, info.min), 10
    start, end = first if low is None else low, last if high is None else high
    if not start < end:
        raise ValueError(f"make_tensor(low, high): low must be less than high, got {start} and {end}")
    if end <= least or start >= most:
        raise ValueError(f"make_tensor(low, high): {dtype} has no number from {start} to {end}")
    return max(start, least), min(end, most)
