"""Functions that a pickle calls to make NumPy's arrays, dtypes and numbers, and that set their states."""

from __future__ import annotations

from .._typing import Any
from .errors import FormatError
from .geometry import check_geometry


class ArrayType:
    """A placeholder for numpy.ndarray, so that NumPy is imported only for files that contain arrays."""


class DtypeType:
    """A placeholder for numpy.dtype."""


def numpy_dtype(name: Any, align: Any = False, copy: Any = True) -> Any:
    if type(name) is not str or not name[:1].isalpha() or len(name) > 12:
        raise FormatError(
            "a pickle makes a NumPy dtype from an argument that is not the name of a numeric dtype"
        )
    import numpy

    # Create a new object, because its byte order is set afterwards.
    found = numpy.dtype(name, copy=True)
    if found.kind not in "biufc":
        raise FormatError(f"an array has the dtype {found}, which is not a numeric dtype")
    return found


def numpy_array(kind: Any, shape: Any, code: Any) -> Any:
    if kind is not ArrayType:
        raise FormatError("a pickle makes an array of a class other than numpy.ndarray")
    import numpy

    return numpy.empty(0)


def numpy_scalar(dtype: Any, data: Any) -> Any:
    import numpy

    if not isinstance(dtype, numpy.dtype) or type(data) is not bytes or len(data) != dtype.itemsize:
        raise FormatError(
            "a pickle makes a NumPy number from data other than a numeric dtype and the bytes of one element"
        )
    return numpy.frombuffer(data, dtype)[0]


def numpy_frombuffer(data: Any, dtype: Any, shape: Any, order: Any) -> Any:
    array = numpy_array(ArrayType, (0,), b"b")
    fill_array(array, (1, shape, dtype, order == "F", bytes(data) if isinstance(data, bytearray) else data))
    return array


def fill_array(array: Any, state: Any) -> None:
    import numpy

    if type(state) is not tuple or len(state) != 5:
        raise FormatError(
            "the state of an array must be a tuple of a version, a shape, a dtype, an order and bytes"
        )
    _, shape, dtype, fortran, data = state
    check_geometry(shape, [0] * len(shape) if isinstance(shape, (tuple, list)) else None, 0)
    if not isinstance(dtype, numpy.dtype) or type(data) is not bytes or type(fortran) is not bool:
        raise FormatError(
            "the state of an array must be a tuple of a version, a shape, a dtype, an order and bytes"
        )
    count = dtype.itemsize
    for n in shape:
        count *= n
    if len(shape) > 32 or count != len(data):
        raise FormatError(
            f"an array of shape {shape} and dtype {dtype} has {len(data)} bytes, needs {count} and at most 32 dimensions"
        )
    array.__setstate__((1, tuple(shape), dtype, fortran, data))


def fill_dtype(dtype: Any, state: Any) -> None:
    if type(state) is not tuple or len(state) < 3 or state[1] not in ("<", ">", "|", "="):
        raise FormatError("the state of a NumPy dtype must be a tuple that contains the byte order")
    if dtype.itemsize > 1:
        dtype.__setstate__((3, state[1], None, None, None, -1, -1, 0))
