"""Check the sizes, strides, offset and bytes of a tensor in a file, and construct it from its storage."""

from __future__ import annotations

import rushlight_core as core
from rushlight_core import Tensor

from .._typing import Any
from .errors import FormatError

# The largest number of dimensions of a tensor in core.
MAX_DIMENSIONS = 64


def check_geometry(shape: Any, strides: Any, offset: Any) -> None:
    """Check that a tensor can have the given sizes, strides and offset.

    The sizes are multiplied as Python ints, which do not overflow.

    Raises:
        FormatError: the sizes, strides or offset are not valid.
    """
    for values in (shape, strides, (offset,)):
        if not isinstance(values, (tuple, list)) or len(values) > MAX_DIMENSIONS:
            raise FormatError(
                f"the sizes and the strides of a tensor must be tuples or lists of at most {MAX_DIMENSIONS} numbers"
            )
        if not all(type(v) is int and 0 <= v < 2**62 for v in values):
            raise FormatError(
                "a tensor has a size, stride or offset that is not an integer from 0 to 2**62 - 1"
            )
    if len(shape) != len(strides):
        raise FormatError(
            f"a tensor must have as many strides as sizes, got {len(strides)} strides and {len(shape)} sizes"
        )
    count = 1
    for size in shape:
        count *= size
    if count >= 2**59:
        raise FormatError(f"a tensor of shape {tuple(shape)} is larger than any memory")


def tensor_over(storage: Any, dtype: Any, shape: Any, strides: Any, offset: Any) -> Tensor:
    """Return a tensor over the bytes of `storage`, after checking all arguments.

    Raises:
        FormatError: the sizes, strides or offset are not valid or reach beyond the storage, or the dtype is not supported.
    """
    check_geometry(shape, strides, offset)
    if not isinstance(dtype, core.dtype):
        raise FormatError(f"a tensor has dtype {dtype}, which rushlight-core does not support")
    if 0 not in shape:
        last = offset + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
        if (last + 1) * dtype.itemsize > storage.nbytes():
            raise FormatError(
                f"a tensor of shape {tuple(shape)} reaches beyond the end of its storage of {storage.nbytes()} bytes"
            )
    else:
        offset = 0
    return core._C._tensor_over(storage, dtype, list(shape), list(strides), offset)


def check_bools(storage: Any) -> None:
    """Check that all bytes are 0 or 1. For any other byte, operators that count bools would return wrong results.

    Raises:
        FormatError: a byte is neither 0 nor 1.
    """
    count = storage.nbytes()
    if count and int(core._C._tensor_over(storage, core.uint8, [count], [1], 0).max()) > 1:
        raise FormatError("a tensor of bools holds bytes other than 0 and 1")
