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
    """Return the numbers from `start` up to, but not including, `stop`, in steps of `step`.

    With one argument, `start` is the end of the range: the numbers go from 0 up to, but not including, `start`. The result
    is empty if `step` leads away from `stop`.

    Shape:
        - Output: (n), where n is ceil((stop - start) / step), but at least 0.

    Raises:
        ValueError: `step` is 0.

    Example:
        >>> import rushlight.array_api as xp
        >>> xp.arange(2, 8, 3)
        tensor([2, 5])
        >>> xp.arange(3.0)
        tensor([0., 1., 2.])
    """
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
    """Convert a number, nested sequences of numbers, a tensor or an array to a tensor.

    The result shares the memory of `obj` if possible, unless `copy` is True.

    Args:
        obj: a number, nested sequences of numbers, a tensor, or an object with `__array__`, `__dlpack__` or the
            buffer protocol.
        dtype: dtype of the result; by default the dtype of `obj`.
        device: device of the result; by default the device of `obj`.
        copy: True always copies, False never copies, and None copies only if the dtype or the device requires it.

    Shape:
        - Output: the shape of `obj`; for nested sequences, their lengths.

    Raises:
        ValueError: `copy` is False, and a copy is needed.

    Example:
        >>> import rushlight.array_api as xp
        >>> x = xp.asarray([[1, 2], [3, 4]])
        >>> x
        tensor([[1, 2],
                [3, 4]])
        >>> xp.asarray(x, copy=True) is x
        False
    """
    if dtype is None and isinstance(obj, int) and obj >= 2**63:
        dtype = _C.uint64  # the only dtype that may hold the number
    return _asarray(obj, dtype=dtype, device=device, copy=copy)


def empty(shape: Shape, *, dtype: dtype | None = None, device: Any = None) -> Tensor:
    """Return an uninitialised tensor.

    Args:
        shape: the sizes, or one size.
        dtype: dtype of the result; by default the default dtype.
        device: device of the result; by default the default device.

    Shape:
        - Output: `shape`.

    Example:
        >>> import rushlight.array_api as xp
        >>> xp.empty((2, 3)).shape
        torch.Size([2, 3])
    """
    return _C.empty(shape, dtype=dtype, device=device)


def empty_like(x: Tensor, /, *, dtype: dtype | None = None, device: Any = None) -> Tensor:
    """Return an uninitialised tensor of the shape of `x`.

    Args:
        x: the tensor that determines the shape and, by default, the dtype and the device of the result.

    Shape:
        - Input and output: (*).

    Example:
        >>> import rushlight.array_api as xp
        >>> xp.empty_like(xp.ones((2, 3), dtype=xp.int64)).dtype
        torch.int64
    """
    return _C.empty_like(x, dtype=dtype, device=device)


def eye(
    n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: dtype | None = None, device: Any = None
) -> Tensor:
    """Return a matrix with ones on one diagonal and zeros elsewhere.

    Args:
        n_rows: the number of rows.
        n_cols: the number of columns; by default `n_rows`.
        k: the diagonal: 0 selects the main diagonal, and positive numbers select diagonals above it.
        dtype: dtype of the result; by default the default dtype.
        device: device of the result; by default the default device.

    Shape:
        - Output: (n_rows, n_cols).

    Example:
        >>> import rushlight.array_api as xp
        >>> xp.eye(2, 3, k=1)
        tensor([[0., 1., 0.],
                [0., 0., 1.]])
    """
    columns = n_rows if n_cols is None else n_cols
    if k == 0:
        return _C.eye(n_rows, columns, dtype=dtype, device=device)
    made = _C.zeros((n_rows, columns), dtype=dtype, device=device)
    if -n_rows < k < columns:
        made.diagonal(k).fill_(1)
    return made


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """Convert an object with `__dlpack__` to a tensor, which shares the object's memory unless `copy` is True.

    Shape:
        - Output: the shape of `x`.

    Raises:
        BufferError: `copy` is False, and a copy is needed.

    Example:
        >>> import rushlight.array_api as xp
        >>> import numpy as np
        >>> host = np.zeros(2)
        >>> x = xp.from_dlpack(host)
        >>> host[0] = 7
        >>> x
        tensor([7., 0.], dtype=torch.float64)
    """
    return _C.from_dlpack(x, device=device, copy=copy)


def full(shape: Shape, fill_value: Scalar, *, dtype: dtype | None = None, device: Any = None) -> Tensor:
    """Return a tensor in which every element is `fill_value`.

    Args:
        shape: the sizes, or one size.
        fill_value: a Python scalar.
        dtype: dtype of the result; by default bool, int64, the default dtype or its complex counterpart, depending on the
            type of the scalar.

    Shape:
        - Output: `shape`.

    Example:
        >>> import rushlight.array_api as xp
        >>> xp.full((2, 2), 7)
        tensor([[7, 7],
                [7, 7]])
        >>> xp.full(2, 0.5)
        tensor([0.5000, 0.5000])
    """
    return filled((shape,) if isinstance(shape, int) else shape, fill_value, dtype, device)


def full_like(x: Tensor, /, fill_value: Scalar, *, dtype: dtype | None = None, device: Any = None) -> Tensor:
    """Return a tensor of the shape of `x` in which every element is `fill_value`.

    Shape:
        - Input and output: (*).

    Example:
        >>> import rushlight.array_api as xp
        >>> xp.full_like(xp.ones(2), 3)
        tensor([3., 3.])
    """
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
    """Return `num` evenly spaced numbers from `start` to `stop`.

    `stop` is the last number, unless `endpoint` is False. If `start` or `stop` is complex, the result is
    complex.

    Shape:
        - Output: (num).

    Example:
        >>> import rushlight.array_api as xp
        >>> xp.linspace(0, 1, 5)
        tensor([0.0000, 0.2500, 0.5000, 0.7500, 1.0000])
        >>> xp.linspace(0, 1, 4, endpoint=False)
        tensor([0.0000, 0.2500, 0.5000, 0.7500])
    """
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
    """Return the coordinates of a grid: each vector expanded along the dimensions of the other vectors.

    Args:
        arrays: vectors, (n_1), (n_2), ...
        indexing: "xy": the first vector varies along the second dimension, and the second vector along the first dimension.
            "ij": vector i varies along dimension i.

    Shape:
        - Outputs: each has shape (n_1, n_2, ...) with "ij", and shape (n_2, n_1, ...) with "xy".

    Example:
        >>> import rushlight.array_api as xp
        >>> x, y = xp.meshgrid(xp.arange(3), xp.arange(2))
        >>> x
        tensor([[0, 1, 2],
                [0, 1, 2]])
        >>> y
        tensor([[0, 0, 0],
                [1, 1, 1]])
    """
    from .._shapes import meshgrid as grids

    return list(grids(*arrays, indexing=indexing)) if arrays else []


def ones(shape: Shape, *, dtype: dtype | None = None, device: Any = None) -> Tensor:
    """Return a tensor of ones.

    Args:
        shape: the sizes, or one size.
        dtype: dtype of the result; by default the default dtype.
        device: device of the result; by default the default device.

    Shape:
        - Output: `shape`.

    Example:
        >>> import rushlight.array_api as xp
        >>> xp.ones((2, 3))
        tensor([[1., 1., 1.],
                [1., 1., 1.]])
    """
    return _C.ones(shape, dtype=dtype, device=device)


def ones_like(x: Tensor, /, *, dtype: dtype | None = None, device: Any = None) -> Tensor:
    """Return a tensor of ones of the shape of `x`.

    Args:
        x: the tensor that determines the shape and, by default, the dtype and the device of the result.

    Shape:
        - Input and output: (*).

    Example:
        >>> import rushlight.array_api as xp
        >>> xp.ones_like(xp.zeros(2, dtype=xp.int64))
        tensor([1, 1])
    """
    return _C.ones_like(x, dtype=dtype, device=device)


def tril(x: Tensor, /, *, k: int = 0) -> Tensor:
    """Return the lower triangles of matrices: elements above the diagonal `k` are replaced by zero.

    Args:
        x: matrices.
        k: the diagonal above which elements are zero: 0 selects the main diagonal, and positive numbers select diagonals
            above it.

    Shape:
        - Input and output: (*, n, m).

    Example:
        >>> import rushlight.array_api as xp
        >>> xp.tril(xp.ones((3, 3)))
        tensor([[1., 0., 0.],
                [1., 1., 0.],
                [1., 1., 1.]])
    """
    return _C.tril(x, k)


def triu(x: Tensor, /, *, k: int = 0) -> Tensor:
    """Return the upper triangles of matrices: elements below the diagonal `k` are replaced by zero.

    Args:
        x: matrices.
        k: the diagonal below which elements are zero: 0 selects the main diagonal, and positive numbers select diagonals
            above it.

    Shape:
        - Input and output: (*, n, m).

    Example:
        >>> import rushlight.array_api as xp
        >>> xp.triu(xp.ones((3, 3)), k=1)
        tensor([[0., 1., 1.],
                [0., 0., 1.],
                [0., 0., 0.]])
    """
    return _C.triu(x, k)


def zeros(shape: Shape, *, dtype: dtype | None = None, device: Any = None) -> Tensor:
    """Return a tensor of zeros.

    Args:
        shape: the sizes, or one size.
        dtype: dtype of the result; by default the default dtype.
        device: device of the result; by default the default device.

    Shape:
        - Output: `shape`.

    Example:
        >>> import rushlight.array_api as xp
        >>> xp.zeros(3, dtype=xp.int64)
        tensor([0, 0, 0])
    """
    return _C.zeros(shape, dtype=dtype, device=device)


def zeros_like(x: Tensor, /, *, dtype: dtype | None = None, device: Any = None) -> Tensor:
    """Return a tensor of zeros of the shape of `x`.

    Args:
        x: the tensor that determines the shape and, by default, the dtype and the device of the result.

    Shape:
        - Input and output: (*).

    Example:
        >>> import rushlight.array_api as xp
        >>> xp.zeros_like(xp.ones(2))
        tensor([0., 0.])
    """
    return _C.zeros_like(x, dtype=dtype, device=device)
