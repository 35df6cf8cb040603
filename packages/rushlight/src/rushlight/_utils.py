"""Helpers of PyTorch that other libraries import."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any, NoReturn

import rushlight_core as core
from rushlight_core import Tensor


def _flatten_dense_tensors(tensors: Sequence[Tensor]) -> Tensor:
    """Return a one-dimensional tensor with the elements of all `tensors`, which must have the same dtype."""
    return core.cat([tensor.contiguous().view(-1) for tensor in tensors])


def _unflatten_dense_tensors(flat: Tensor, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Return views of `flat` with the shapes of `tensors`."""
    sizes = [tensor.numel() for tensor in tensors]
    begins = [sum(sizes[:position]) for position in range(len(sizes))]
    return tuple(
        flat.narrow(0, begin, size).view(tensor.shape)
        for begin, size, tensor in zip(begins, sizes, tensors, strict=True)
    )


def _take_tensors(tensors: Sequence[Tensor], size_limit: int) -> Iterator[list[Tensor]]:
    """Group tensors by dtype, and yield lists of at most `size_limit` bytes.

    A tensor of more than `size_limit` bytes is the only element of its list.
    """
    lists: dict[Any, tuple[list[Tensor], int]] = {}
    for tensor in tensors:
        size = tensor.numel() * tensor.element_size()
        held, total = lists.get(tensor.dtype, ([], 0))
        if held and total + size > size_limit:
            yield held
            held, total = [], 0
        held.append(tensor)
        lists[tensor.dtype] = held, total + size
    for held, _ in lists.values():
        yield held


def _reorder_tensors_as(tensors: Sequence[Tensor], ordered_tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Reorder `tensors`, so that each has the dtype of the tensor at the same position in `ordered_tensors`.

    The order of tensors of the same dtype is preserved.
    """
    by_dtype: dict[Any, list[Tensor]] = {}
    for tensor in tensors:
        by_dtype.setdefault(tensor.dtype, []).append(tensor)
    following = {dtype: iter(group) for dtype, group in by_dtype.items()}
    return tuple(next(following[tensor.dtype]) for tensor in ordered_tensors)


def _element_size(dtype: core.dtype) -> int:
    """Return the number of bytes of an element."""
    if not isinstance(dtype, core.dtype):
        raise RuntimeError(f"_element_size(dtype): needs a dtype, got {type(dtype).__name__}")
    return dtype.itemsize


def _get_available_device_type() -> str | None:
    """Return "cuda" if there is a GPU, or None."""
    from rushlight import cuda

    return "cuda" if cuda.is_available() else None


def _get_all_device_indices() -> list[int]:
    from rushlight import cuda

    return list(range(cuda.device_count()))


def _get_device_index(device: Any, optional: bool = False, allow_cpu: bool = False) -> int:
    """Return the index of a device.

    If `optional` is true, return the current GPU's index for None and for a GPU without an index. If
    `allow_cpu` is true, return -1 for the CPU.
    """
    if isinstance(device, str):
        device = core.device(device)
    if isinstance(device, core.device):
        if device.type == "cpu" and not allow_cpu:
            raise ValueError(f"_get_device_index(device): needs a GPU, got {device}")
        if device.index is not None or device.type == "cpu":
            return -1 if device.index is None else device.index
        device = None if optional else device
    elif isinstance(device, int):
        return device
    if device is not None or not optional:
        raise ValueError(
            f"_get_device_index(device): needs an index, or a device with an index, got {device!r}"
        )
    from rushlight import cuda

    return cuda.current_device()


def _get_device_module(device_type: str) -> Any:
    """Return the module for a device type, such as `torch.cuda` for "cuda"."""
    from rushlight.accelerator import get_device_module

    return get_device_module(device_type)


def _import_dotted_name(name: str) -> Any:
    """Import the module that is the first part of a dotted name, and look up the other parts as attributes."""
    first, *rest = name.split(".")
    found: Any = import_module(first)
    for part in rest:
        found = getattr(found, part)
    return found


def render_call(fn: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> str:
    """Return the text of a call, such as "f(1, x=2)", for messages."""
    named = [f"{key}={value!r}" for key, value in kwargs.items()]
    return f"{getattr(fn, '__name__', repr(fn))}({', '.join([*map(repr, args), *named])})"


class ExceptionWrapper:
    """An exception and its traceback as text, to be raised again in another thread or process.

    Args:
        exc_info: a result of `sys.exc_info()`; by default the exception that is being handled.
        where: the place where the exception was raised, for the message.
    """

    def __init__(self, exc_info: Any = None, where: str = "in background") -> None:
        kind, error, trace = exc_info or sys.exc_info()
        self.exc_type: Any = kind
        self.exc_msg = "".join(traceback.format_exception(kind, error, trace))
        self.where = where

    def reraise(self) -> NoReturn:
        """Raise an exception of the original class, or RuntimeError if its constructor fails."""
        message = f"Caught {self.exc_type.__name__} {self.where}.\nOriginal {self.exc_msg}"
        try:
            error = self.exc_type(message)
        except Exception:
            raise RuntimeError(message) from None
        raise error


def __getattr__(name: str) -> NoReturn:
    raise AttributeError(
        f"module {__name__!r} has no attribute {name!r}: it provides only the helpers that other libraries import"
    )
