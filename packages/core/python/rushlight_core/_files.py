"""Tensors whose memory is a mapped file."""

from __future__ import annotations

import mmap
import os
from typing import Any

from . import _C
from ._C import Tensor


def from_file(
    filename: str | os.PathLike[str],
    shared: bool | None = None,
    size: int = 0,
    *,
    dtype: _C.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """Return a tensor whose memory is a mapped file.

    Args:
        filename: the name of the file.
        shared: whether writes to the tensor change the file. If True, the file is created or extended if
            necessary. If False or None, the file is opened for reading only, and must already contain `size`
            elements.
        size: the number of elements.
        dtype: dtype of the elements; the default dtype if it is omitted.
        layout: must be `strided`.
        device: must be the CPU.
        pin_memory: must be False.
        requires_grad: whether autograd records operations on the tensor.

    Raises:
        ValueError: `size` is negative, or the file is shorter than `size` elements.
        NotImplementedError: another device, or page-locked memory, is requested.

    Example:
        >>> _ = open("numbers.bin", "wb").write(bytes([1, 2, 3]))
        >>> torch.from_file("numbers.bin", size=3, dtype=torch.uint8)
        tensor([1, 2, 3], dtype=torch.uint8)
    """
    if pin_memory or (device is not None and _C.device(device).type != "cpu"):
        raise NotImplementedError(
            "from_file(device, pin_memory): a file can only be mapped to CPU memory that is not pinned, got"
            f" device={device!r} and pin_memory={pin_memory!r}"
        )
    if size < 0:
        raise ValueError(f"from_file(size): must not be negative, got {size}")
    chosen = _C.get_default_dtype() if dtype is None else dtype
    nbytes = size * chosen.itemsize
    descriptor = os.open(filename, os.O_RDWR | os.O_CREAT if shared else os.O_RDONLY, 0o666)
    try:
        have = os.fstat(descriptor).st_size
        if have < nbytes and not shared:
            raise ValueError(
                f"from_file(filename, size): {os.fspath(filename)} has {have} bytes, {size} elements of {chosen} need"
                f" {nbytes}\nhint: pass shared=True to extend the file"
            )
        if have < nbytes:
            os.ftruncate(descriptor, nbytes)
        if not nbytes:
            return _C.empty(0, dtype=chosen, requires_grad=requires_grad)
        memory = mmap.mmap(descriptor, nbytes, access=mmap.ACCESS_WRITE if shared else mmap.ACCESS_COPY)
    finally:
        os.close(descriptor)
    return _C.frombuffer(memory, dtype=chosen, requires_grad=requires_grad)
