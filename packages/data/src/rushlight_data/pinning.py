"""Copies of batches in page-locked memory, which one thread of each iterator with workers makes."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import rushlight_core as core

if TYPE_CHECKING:
    from concurrent.futures import Future


def should_pin(loader: Any) -> bool:
    """Return whether to pin the loader's batches. Warn if pinning is requested, but no device supports it."""
    if not loader.pin_memory:
        return False
    if memory_can_be_pinned():
        return True
    warnings.warn("DataLoader(pin_memory): no device that pins memory is available", stacklevel=3)
    return False


def memory_can_be_pinned() -> bool:
    """Return whether there is a device that copies batches from page-locked memory."""
    return core._C._pinning_device() != ""


class Pinner:
    """Copies batches to page-locked memory in a thread, in the order in which they are passed.

    The thread ends when the object is garbage-collected."""

    def __init__(self, device: str = "") -> None:
        from concurrent.futures import ThreadPoolExecutor  # this import takes long

        self._device = device
        # Memory is pinned on the current device of the calling thread.
        current = core._C._current_device(device or core._C._pinning_device())
        self._executor = ThreadPoolExecutor(
            1, thread_name_prefix="DataLoader-pin", initializer=core._C._set_device, initargs=(current,)
        )

    def start(self, data: Any) -> Future[Any]:
        """Start to copy a batch. The result of the future is the copy."""
        return self._executor.submit(pin, data, self._device)


def pin(data: Any, device: str = "") -> Any:
    """Return the batch with its tensors copied to page-locked memory, at any nesting depth.

    If an object that is not a tensor has a method `pin_memory`, the result of this method replaces the object."""
    if isinstance(data, core.Tensor):
        return data.pin_memory(device) if device else data.pin_memory()
    if hasattr(data, "pin_memory"):
        return data.pin_memory()
    if isinstance(data, (str, bytes)):
        return data
    if isinstance(data, Mapping):
        pinned = {key: pin(value, device) for key, value in data.items()}
        return pinned if type(data) is dict else _like(data, pinned)
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(pin(value, device) for value in data))
    if isinstance(data, Sequence):
        items = [pin(value, device) for value in data]
        return items if type(data) is list else _like(data, items)
    return data


def _like(data: Any, values: Any) -> Any:
    try:
        return type(data)(values)
    except TypeError:
        return values
