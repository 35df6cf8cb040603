"""Creation functions of the array API standard."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import _C
from .._C import Tensor, dtype
from .._creation import asarray as _asarray
from ._promotion import Scalar, filled

Shape = int | Sequence[int]


def arange(
    start: float,
    /,
    stop: float | None = None,
    step: float = 1,
    *,
    dtype: dtype | None = None,
    device: Any = None,
) -> Tensor:
    """The numbers from `start` (0 where `stop` is not given) up to `stop`, which is not among them; none where `step`
    leads away from it."""
    if stop is None:
        start, stop = 0, start
    if step == 0:
        raise ValueError("arange(step): must not be 0")
    if (stop - start) * step <= 0:
        whole = all(isinstance(value, int) for value in (start, stop, step))
        return _C.empty(0, dtype=dtype or (_C.int64 if whole else None), device=device)
    return _C.arange(start, stop, step, dtype=dtype, device=device)


def asarray(
    obj: Any, /, *, dtype: dtype | None = None, device: Any = None, copy: bool | None = None
) -> Tensor:
    """A tensor of numbers, nested sequences of them, a tensor or an array; of the same memory where that is possible,
    unless `copy`.

    Raises:
        ValueError: `copy` is False, and it cannot be had without a copy.
    """
    if dtype is None and isinstance(obj, int) and obj >= 2**63:
        dtype = _C.uint64  # the only one that may hold it
    return _asarray(obj, dtype=dtype, device=device, copy=copy)


def empty(shape: Shape, *, dtype: dtype | None = None, device: Any = None) -> Tensor:
    """Return a tensor whose values are not set."""
    return _C.empty(shape, dtype=dtype, device=device)


def empty_like(x: Tensor, /, *, dtype: dtype | None = None, device: Any = None) -> Tensor:
    """Return a tensor of the shape of `x` whose values are not set."""
    return _C.empty_like(x, dtype=dtype, device=device)


def eye(
    n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: dtype | None = None, device: Any = None
) -> Tensor:
    """Ones on the diagonal that is `k` above the main one, and zeros elsewhere."""
    columns = n_rows if n_cols is None else n_cols
    if k == 0:
        return _C.eye(n_rows, columns, dtype=dtype, device=device)
    made = _C.zeros((n_rows, columns), dtype=dtype, device=device)
    if -n_rows < k < columns:
        made.diagonal(k).fill_(1)
    return made


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """What has `__dlpack__`, as a tensor: of the same memory, unless `copy`.

    Raises:
        BufferError: `copy` is False, and it cannot be had without a copy.
    """
    return _C.from_dlpack(x, device=device, copy=copy)


def full(shape: Shape, fill_value: Scalar, *, dtype: dtype | None = None, device: Any = None) -> Tensor:
    """Return a tensor of one value; its dtype is by default that of the value's kind."""
    return filled((shape,) if isinstance(shape, int) else shape, fill_value, dtype, device)


def full_like(x: Tensor, /, fill_value: Scalar, *, dtype: dtype | None = None, device: Any = None) -> Tensor:
    """Return a tensor of the shape of `x` and one value."""
    return filled(
        x.shape, fill_value, x.dtype if dtype is None else dtype, x.device if device is None else device
    )


def linspace(
    start: Scalar,
    stop: Scalar,
    /,
    num: int,
    *,
    dtype: dtype | None = None,
    device: Any = None,
    endpoint: bool = True,
) -> Tensor:
    """`num` evenly spaced numbers from `start` to `stop`, which is the last of them unless `endpoint` is False."""
    steps = num if endpoint else num + 1
    if isinstance(start, complex) or isinstance(stop, complex):
        start, stop = complex(start), complex(stop)
        parts = [
            _C.linspace(a, b, steps, dtype=_C.float64, device=device)
            for a, b in ((start.real, stop.real), (start.imag, stop.imag))
        ]
        default = _C.complex128 if _C.get_default_dtype() == _C.float64 else _C.complex64
        made = _C.complex(*parts).to(default if dtype is None else dtype)
    else:
        made = _C.linspace(start, stop, steps, dtype=dtype, device=device)
    return made if endpoint else made[:-1]


def meshgrid(*arrays: Tensor, indexing: str = "xy") -> list[Tensor]:
    """Vectors expanded to the grid that they span: with "xy" the first is along the second dimension, with "ij" along
    the first."""
    from .._shapes import meshgrid as grids

    return list(grids(*arrays, indexing=indexing)) if arrays else []


def ones(shape: Shape, *, dtype: dtype | None = None, device: Any = None) -> Tensor:
    """Return a tensor of ones."""
    return _C.ones(shape, dtype=dtype, device=device)


def ones_like(x: Tensor, /, *, dtype: dtype | None = None, device: Any = None) -> Tensor:
    """Ones of the shape of `x`."""
    return _C.ones_like(x, dtype=dtype, device=device)


def tril(x: Tensor, /, *, k: int = 0) -> Tensor:
    """Return the matrices with zeros above the diagonal that is `k` above the main one."""
    return _C.tril(x, k)


def triu(x: Tensor, /, *, k: int = 0) -> Tensor:
    """Return the matrices with zeros below the diagonal that is `k` above the main one."""
    return _C.triu(x, k)


def zeros(shape: Shape, *, dtype: dtype | None = None, device: Any = None) -> Tensor:
    """Return a tensor of zeros."""
    return _C.zeros(shape, dtype=dtype, device=device)


def zeros_like(x: Tensor, /, *, dtype: dtype | None = None, device: Any = None) -> Tensor:
    """Zeros of the shape of `x`."""
    return _C.zeros_like(x, dtype=dtype, device=device)
